//! The decision of an audit report, and failures in a file that should stand for success (S2-2).
//!
//! People and agents write `Decision: PASS` with emphasis, marks and short remarks around it. A remark counts only if it says that nothing was found:
//! "PASS (2 issues left)" or "PASS / FAIL" is no decision for passing.

use crate::gate::regex;

/// In a gate this expression means "the report decided to pass"; [`passes`] reads it, and knows more forms than an expression could.
pub(crate) const DECISION: &str = r"(?i)^[\s>*_#|-]*decision[\s*_]*:[\s*_`]*pass[\s*_`.|]*$";

/// The word, and the remarks that take nothing back.
const PASSED: &str = r"(?i)^pass(?:ed)?(?:[\s,;:.(（\[–—-]+(?:(?:no|0|zero|without(?: any)?)(?: [a-z0-9/+-]+){0,3}? (?:issues?|problems?|findings?|errors?|defects?|blockers?|concerns?)(?: (?:found|left|remaining|open))?|all (?:clear|good|green|(?:checks|tests|gates) pass(?:ed)?)|clean|无问题|没有问题|全部通过))?[\s)）\].!]*$";

/// Whether the report's last decision is to pass; `Err`: its other decision, if it has one.
pub(super) fn passes(text: &str) -> Result<(), Option<String>> {
    let Some(last) = text.lines().rev().find_map(decided) else { return Err(None) };
    let plain: String = last.chars().filter(|c| !matches!(c, '*' | '_' | '`' | '|') && !is_mark(*c)).collect();
    match regex::matches(PASSED, plain.trim()) {
        Ok(true) => Ok(()),
        _ => Err(Some(last.trim().to_owned())),
    }
}

/// The words after `Decision:`, with or without Markdown around it.
fn decided(line: &str) -> Option<&str> {
    let is_around = |c: char| c.is_whitespace() || matches!(c, '>' | '*' | '_' | '#' | '|' | '-') || is_mark(c);
    let line = line.trim_start_matches(is_around);
    let word = line.get(..8).filter(|word| word.eq_ignore_ascii_case("decision"))?;
    let rest = line[word.len()..].trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`'));
    rest.strip_prefix([':', '：'])
}

/// Marks that people put beside a good decision.
fn is_mark(c: char) -> bool {
    matches!(c, '✅' | '✔' | '☑' | '✓' | '🎉' | '👍' | '🟢' | '\u{fe0f}')
}

/// The first line that says that something failed; "0 failed" does not.
pub(super) fn failure(text: &str) -> Option<&str> {
    text.lines().find(|line| says_failed(line)).map(str::trim)
}

fn says_failed(line: &str) -> bool {
    const FAILED: [&str; 6] = ["fail", "fails", "failed", "failing", "failure", "failures"];
    const NONE: [&str; 6] = ["0", "no", "zero", "none", "without", "false"];
    if ["❌", "✗", "✘", "失败", "未通过"].iter().any(|mark| line.contains(mark)) {
        return true;
    }
    let words: Vec<String> =
        line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
    let is_none = |at: usize| words.get(at).is_some_and(|word| NONE.contains(&word.as_str()));
    words.iter().enumerate().any(|(at, word)| {
        let is_not_passed = word == "not" && words.get(at + 1).is_some_and(|next| matches!(next.as_str(), "pass" | "passed" | "passing"));
        let before = at.checked_sub(1).is_some_and(is_none);
        // `failed: 0`, `failed tests: 0`.
        let after = is_none(at + 1) || (words.get(at + 1).is_some_and(|next| next.ends_with('s')) && is_none(at + 2));
        is_not_passed || (FAILED.contains(&word.as_str()) && !before && !after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_2_t19_a_decision_is_read_as_it_was_meant() {
        for line in [
            "Decision: PASS",
            "**Decision**: PASS",
            "**Decision:** PASS",
            "## Decision: **PASS**",
            "- Decision : pass.",
            "| Decision: PASS |",
            "> decision: `PASS`",
            "Decision: PASS ✅",
            "Decision: ✅ PASS",
            "✅ Decision: PASS",
            "Decision: **PASS** ✔️",
            "Decision: PASS (no issues)",
            "Decision: PASS (no L1 or L2 issues found)",
            "Decision: PASS - 0 issues left",
            "Decision: PASS, all tests passed!",
            "Decision: PASSED",
            "Decision：PASS（无问题）",
        ] {
            assert_eq!(passes(&format!("# Audit\n\n{line}\nmore\n")), Ok(()), "{line}");
        }
        for line in [
            "Decision: FAIL",
            "Decision: NOT PASS",
            "Decision: PASS/FAIL",
            "Decision: PASS / FAIL",
            "Decision: PASS or FAIL?",
            "Decision: PASS?",
            "Decision: PASSABLE",
            "Decision: PASS (2 issues left)",
            "Decision: PASS (not yet)",
            "Decision: PASS (no, not yet)",
            "Decision: PASS if CI is green",
            "Decision: PASS ❌",
            "Decision: [PASS | FAIL]",
            "Decision: ~~PASS~~ FAIL",
            "No Decision: PASS yet",
            "Decision:\nPASS later",
            "Decision:",
            "",
        ] {
            assert!(passes(&format!("# Audit\n\n{line}\n")).is_err(), "{line}");
        }
    }

    /// A report that grows keeps its old decisions: the last one counts.
    #[test]
    fn t19_the_last_decision_counts() {
        assert_eq!(passes("Decision: FAIL\n\n## Again\nDecision: PASS\n"), Ok(()));
        assert_eq!(passes("Decision: PASS\n\n## Again\nDecision: FAIL\n"), Err(Some("FAIL".to_owned())));
        assert_eq!(passes("nothing"), Err(None));
    }

    #[test]
    fn t19_a_file_that_stands_for_success_must_not_say_that_something_failed() {
        for text in [
            "FAILED",
            "typecheck: pass\ntest: FAILED\n",
            "build ❌",
            "{\"test\": \"fail\"}",
            "2 failed",
            "not passed",
            "测试失败",
            "failures: 3",
        ] {
            assert!(failure(text).is_some(), "{text}");
        }
        for text in [
            "",
            "ok",
            "typecheck + test + build 全部通过",
            "12 passed, 0 failed",
            "failed: 0",
            "{\"failed\":false}",
            "no failures",
            "failed tests: 0",
            "failsafe",
        ] {
            assert_eq!(failure(text), None, "{text}");
        }
    }
}
