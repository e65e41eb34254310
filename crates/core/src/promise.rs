//! The claim: does the agent itself say, here and now, that it is done?
//!
//! A claim is `<promise>TEXT</promise>` with the loop's own text, outside code and quotes, on a line of its own or at the very end of the
//! message. A tag that is only mentioned, quoted, negated, postponed or echoed from the prompt is a refusal with a reason: the
//! answer then tells the agent how to claim, so a strict rule costs one round and never a loop.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::words::clean;

const OPEN: &str = "<promise>";
const CLOSE: &str = "</promise>";

/// Of more tags only the last are looked at: whoever writes so many claims nothing, and each costs a look at the message.
const MOST_TAGS: usize = 100;

/// What the agent's last message says about completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Claim {
    /// No promise tag at all.
    None,
    /// The agent claims completion.
    Made,
    /// A tag was seen, and it does not count.
    Refused { why: Refusal },
}

/// Why a promise tag does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum Refusal {
    /// The words between the tags are not the loop's promise.
    OtherWords {
        found: String,
    },
    InCode,
    Quoted,
    /// In the middle of a sentence.
    NotAlone,
    /// In a sentence that negates or postpones it.
    Negated {
        word: String,
    },
    /// The prompt's own lines, repeated.
    Echo,
}

impl Refusal {
    /// One clause for people and agents: "the tag …".
    pub fn words(&self) -> String {
        match self {
            Refusal::OtherWords { found } => format!("the words between the tags were \"{found}\""),
            Refusal::InCode => "the tag stood in code or in a comment".to_owned(),
            Refusal::Quoted => "the tag stood in quotes".to_owned(),
            Refusal::NotAlone => "the tag stood in the middle of a sentence".to_owned(),
            Refusal::Negated { word } => format!("the sentence around the tag says \"{word}\""),
            Refusal::Echo => "the tag was part of the prompt, repeated".to_owned(),
        }
    }
}

/// White space is one blank, at the ends none: both sides of the comparison are brought to this form (S0-8).
pub fn normalised(text: &str) -> String {
    // As it is shown, because the agent copies what it is shown.
    text.split_whitespace().map(clean).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Looks for the claim of `promise` in `message`. `prompt` is the loop's own, to recognise an echo.
pub fn find(message: &str, promise: &str, prompt: &str) -> Claim {
    let wanted = normalised(promise);
    let mut tags = tags(message);
    tags.drain(..tags.len().saturating_sub(MOST_TAGS));
    if tags.is_empty() || wanted.is_empty() {
        return Claim::None;
    }
    let masks = masks(message);
    let mut last = Claim::None;
    for tag in tags {
        let found = normalised(&message[tag.start + OPEN.len()..tag.end - CLOSE.len()]);
        let refusal = masked(&masks, &tag).or_else(|| misplaced(message, &tag, prompt));
        last = match refusal {
            None if found == wanted => return Claim::Made,
            None => Claim::Refused { why: Refusal::OtherWords { found: found.chars().take(80).collect() } },
            Some(why) => Claim::Refused { why },
        };
    }
    last
}

/// The byte ranges of all complete tags; of nested openings the innermost counts.
fn tags(message: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut from = 0;
    while let Some(close) = message[from..].find(CLOSE).map(|at| from + at) {
        if let Some(open) = message[from..close].rfind(OPEN) {
            out.push(from + open..close + CLOSE.len());
        }
        from = close + CLOSE.len();
    }
    out
}

#[derive(Clone, Copy, PartialEq)]
enum Mask {
    Code,
    Quote,
}

fn masked(masks: &[(Range<usize>, Mask)], tag: &Range<usize>) -> Option<Refusal> {
    let touches = |r: &Range<usize>| r.start < tag.end && tag.start < r.end;
    // Backticks within the promise itself are part of its words.
    let is_within = |r: &Range<usize>| tag.start < r.start && r.end < tag.end;
    let (_, mask) = masks.iter().find(|(r, _)| touches(r) && !is_within(r))?;
    Some(if *mask == Mask::Code { Refusal::InCode } else { Refusal::Quoted })
}

/// Code blocks, inline code, comments and block quotes, as Markdown has them.
fn masks(message: &str) -> Vec<(Range<usize>, Mask)> {
    let mut out = comments(message);
    let mut at = 0;
    let mut fence: Option<(char, usize)> = None;
    let mut may_be_indented_code = true;
    for line in message.split_inclusive('\n') {
        let whole = at..at + line.len();
        at = whole.end;
        let text = line.trim();
        let mark = fence_mark(text);
        if let Some(open) = fence {
            out.push((whole, Mask::Code));
            let closes = mark.is_some_and(|(c, n)| c == open.0 && n >= open.1 && text.len() == n);
            fence = if closes { None } else { fence };
        } else if mark.is_some_and(|(c, _)| c == '~' || !text.trim_start_matches('`').contains('`')) {
            fence = mark;
            out.push((whole, Mask::Code));
        } else if text.starts_with('>') {
            out.push((whole, Mask::Quote));
        } else if may_be_indented_code && !text.is_empty() && (line.starts_with("    ") || line.starts_with('\t')) {
            out.push((whole, Mask::Code));
            continue;
        } else {
            inline_code(&message[whole.clone()], whole.start, &mut out);
        }
        may_be_indented_code = text.is_empty();
    }
    out
}

fn comments(message: &str) -> Vec<(Range<usize>, Mask)> {
    let mut out = Vec::new();
    let mut from = 0;
    while let Some(open) = message[from..].find("<!--").map(|at| from + at) {
        let end = message[open..].find("-->").map_or(message.len(), |at| open + at);
        out.push((open..end, Mask::Code));
        from = end;
    }
    out
}

/// A run of three or more backticks or tildes at the start of a line.
fn fence_mark(text: &str) -> Option<(char, usize)> {
    let c = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let n = text.chars().take_while(|x| *x == c).count();
    (n >= 3).then_some((c, n))
}

/// Backtick spans of one line: a run of n closes with the next run of n; an unmatched run is just characters.
fn inline_code(line: &str, offset: usize, out: &mut Vec<(Range<usize>, Mask)>) {
    let bytes = line.as_bytes();
    let run = |at: usize| bytes[at..].iter().take_while(|b| **b == b'`').count();
    let mut at = 0;
    while let Some(open) = line[at..].find('`').map(|i| at + i) {
        let n = run(open);
        let mut close = open + n;
        loop {
            match line[close..].find('`').map(|i| close + i) {
                Some(c) if run(c) == n => {
                    out.push((offset + open..offset + c + n, Mask::Code));
                    at = c + n;
                    break;
                }
                Some(c) => close = c + run(c),
                None => {
                    at = open + n;
                    break;
                }
            }
        }
    }
}

const QUOTES: [char; 12] = ['"', '\'', '“', '”', '„', '‘', '’', '«', '»', '「', '」', '`'];

/// Marks of something that is not done.
const CROSSES: [char; 6] = ['❌', '✗', '✘', '🚫', '⛔', '☐'];

const TERMINATORS: [char; 7] = ['.', '!', '?', '…', '。', '！', '？'];

/// Why the place of a tag disqualifies it, if it does.
///
/// The form decides, not the vocabulary: a tag that stands alone, or after a finished sentence or a label at the very end, is a statement. Only where the form
/// leaves room for doubt do words: those that negate or postpone, and for an unfinished sentence those that say that it is done.
fn misplaced(message: &str, tag: &Range<usize>, prompt: &str) -> Option<Refusal> {
    let line_before = message[..tag.start].rsplit('\n').next().unwrap_or_default();
    let line_after = message[tag.end..].split('\n').next().unwrap_or_default();
    if let Some(cross) = line_before
        .contains("[ ]")
        .then_some("[ ]".to_owned())
        .or_else(|| line_before.chars().find(|c| CROSSES.contains(c)).map(String::from))
    {
        return Some(Refusal::Negated { word: cross });
    }
    let emphasis = |c: char| c.is_whitespace() || matches!(c, '*' | '_');
    if line_before.trim_end_matches(emphasis).ends_with(QUOTES) || line_after.trim_start_matches(emphasis).starts_with(QUOTES) {
        return Some(Refusal::Quoted);
    }
    let lead = without_list_marker(line_before).trim_end_matches(emphasis);
    let is_last = !has_words(&message[tag.end..]);
    if !has_words(lead) && !has_words(line_after) {
        on_its_own_line(message, tag, prompt)
    } else if is_last {
        at_the_end(message, tag, lead)
    } else {
        Some(Refusal::NotAlone)
    }
}

/// A tag on a line of its own counts, unless it is part of a sentence that runs on around it, or the prompt's own line.
fn on_its_own_line(message: &str, tag: &Range<usize>, prompt: &str) -> Option<Refusal> {
    if is_echo(message, tag, prompt) {
        return Some(Refusal::Echo);
    }
    let runs_on = message[tag.end..].trim_start_matches(['*', '_', ' ', '\r', '\n']).starts_with(char::is_lowercase);
    if runs_on {
        return Some(Refusal::NotAlone);
    }
    let before = message[..tag.start].trim_end();
    let above = before.rsplit('\n').next().unwrap_or_default().trim_start();
    let is_prose = above.starts_with(|c: char| c.is_alphabetic()) && !above.ends_with(TERMINATORS);
    is_prose.then(|| negation(sentence(before))).flatten().map(|word| Refusal::Negated { word })
}

/// A tag at the end of a line of words, which ends the message.
fn at_the_end(message: &str, tag: &Range<usize>, lead: &str) -> Option<Refusal> {
    if lead.ends_with(TERMINATORS) {
        return None;
    }
    let sentence = sentence(message[..tag.start].trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_')));
    if let Some(word) = negation(sentence) {
        return Some(Refusal::Negated { word });
    }
    let says_so = lead.ends_with([':', '：']) || words(sentence).any(|w| DONE.contains(&w.as_str()));
    (!says_so).then_some(Refusal::NotAlone)
}

fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// A line without the bullet, number or ticked box that it begins with.
fn without_list_marker(line: &str) -> &str {
    let line = line.trim_start().trim_start_matches(['-', '*', '+', '•', '#']).trim_start();
    let line = line.strip_prefix("[x]").or_else(|| line.strip_prefix("[X]")).unwrap_or(line);
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < line.len() { rest.strip_prefix(['.', ')']).unwrap_or(line) } else { line }
}

/// The unfinished sentence at the end of `text`, within its paragraph.
fn sentence(text: &str) -> &str {
    let paragraph = text.rsplit("\n\n").next().unwrap_or(text);
    let mut start = 0;
    let mut chars = paragraph.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = matches!(c, '.' | '!' | '?') && chars.peek().is_some_and(|(_, next)| next.is_whitespace());
        if ends || matches!(c, '。' | '！' | '？') {
            start = at + c.len_utf8();
        }
    }
    paragraph[start..].trim()
}

/// Words that turn a statement into its opposite, or into a plan.
const NEGATIONS: &[&str] = &[
    "not",
    "no",
    "never",
    "cannot",
    "without",
    "unable",
    "will",
    "would",
    "shall",
    "should",
    "could",
    "may",
    "might",
    "must",
    "when",
    "once",
    "until",
    "till",
    "unless",
    "if",
    "after",
    "before",
    "later",
    "yet",
    "soon",
    "going",
    "about",
    "almost",
    "nearly",
    "want",
    "plan",
    "need",
    "instead",
    "premature",
    "prematurely",
    "still",
    "fail",
    "fails",
    "failed",
    "failing",
    "refuse",
    "blocked",
    "next",
    "todo",
    "remaining",
    "pending",
    "target",
    "goal",
    "toward",
    "towards",
    "unfinished",
    "incomplete",
];

/// Words that say that something is done.
const DONE: &[&str] = &[
    "done",
    "complete",
    "completed",
    "finished",
    "pass",
    "passes",
    "passed",
    "green",
    "ready",
    "implemented",
    "fixed",
    "met",
    "satisfied",
    "verified",
    "successful",
    "successfully",
    "resolved",
    "works",
];

fn words(sentence: &str) -> impl Iterator<Item = String> {
    let words = sentence.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’' | '-')));
    words.map(|w| w.to_lowercase().replace('’', "'"))
}

fn negation(sentence: &str) -> Option<String> {
    words(sentence).find(|w| NEGATIONS.contains(&w.as_str()) || w.ends_with("n't") || w.ends_with("'ll"))
}

/// Whether the tag stands among the same two lines as in the prompt: above it, below it, or one of each. One line alone may be what the prompt asked for.
fn is_echo(message: &str, tag: &Range<usize>, prompt: &str) -> bool {
    let own = around(message, tag);
    let is_same = |n: usize, own: &[String], other: &[String]| own.len() >= n && other.len() >= n && own[..n] == other[..n];
    tags(prompt).iter().any(|tag| {
        let (above, below) = around(prompt, tag);
        is_same(2, &own.0, &above) || is_same(2, &own.1, &below) || (is_same(1, &own.0, &above) && is_same(1, &own.1, &below))
    })
}

/// The two lines above and the two below a tag, the nearest first. Programs that repeat their input put marks before its lines.
fn around(text: &str, tag: &Range<usize>) -> (Vec<String>, Vec<String>) {
    let words = |line: &str| normalised(line.trim_start_matches(|c: char| !c.is_alphanumeric()));
    let some = |lines: &mut dyn Iterator<Item = &str>| lines.map(words).filter(|line| !line.is_empty()).take(2).collect();
    (some(&mut text[..tag.start].lines().rev()), some(&mut text[tag.end..].lines()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(message: &str) -> Claim {
        find(message, "DONE", "Fix it.\nWhen all tests pass, output this:\n<promise>DONE</promise>\n")
    }

    fn why(message: &str) -> &'static str {
        match claim(message) {
            Claim::Made => "made",
            Claim::None => "none",
            Claim::Refused { why } => match why {
                Refusal::OtherWords { .. } => "other words",
                Refusal::InCode => "code",
                Refusal::Quoted => "quoted",
                Refusal::NotAlone => "not alone",
                Refusal::Negated { .. } => "negated",
                Refusal::Echo => "echo",
            },
        }
    }

    /// The agent copies the tag as it is shown, and there it has nothing that draws nothing.
    #[test]
    fn s0_8_a_promise_counts_as_it_is_shown() {
        for promise in
            ["\u{1f469}\u{200d}\u{1f467} done", "\u{feff}all\u{200b} \u{202e} done", "\u{5d4}\u{5db}\u{5dc}\u{200f} !", "a\u{7}b"]
        {
            assert_eq!(find(&crate::words::tag(promise), promise, ""), Claim::Made, "{promise:?}");
            assert_eq!(find(&format!("<promise>{promise}</promise>"), promise, ""), Claim::Made, "{promise:?}");
        }
        assert_ne!(claim("<promise>DON\u{200d}E</promise>"), Claim::Made);
    }

    #[test]
    fn s0_8_real_claims_count() {
        for message in [
            "<promise>DONE</promise>",
            "All tests pass.\n\n<promise>DONE</promise>\n",
            "All tests pass. <promise>DONE</promise>",
            "Everything is finished: <promise>DONE</promise>",
            "I have completed the task <promise>DONE</promise>",
            "<promise>DONE</promise> 🎉",
            "✅ <promise>DONE</promise>\n\nI changed three files.",
            "## Result\n- Added a check if the file is missing\n- <promise>DONE</promise>",
            "1. <promise>DONE</promise>",
            "- [x] all green\n- [x] <promise>DONE</promise>",
            "All must-have items are met: <promise>DONE</promise>",
            "- Handles the case when it is not there\n\n<promise>DONE</promise>",
            "**<promise>DONE</promise>**",
            "Work complete!\r\n<promise>\r\n  DONE\r\n</promise>\r\n",
            "<promise>DONE</promise>\n\nSummary: I changed three files.",
            "The rule was `<promise>DONE</promise>` on its own line.\n\n<promise>DONE</promise>",
            "<promise>WRONG</promise>\n<promise>DONE</promise>",
            "I could not do it before. Now all 40 tests pass. <promise>DONE</promise>.",
            "An unmatched ` backtick.\n<promise>DONE</promise>",
            "All tests pass with `cargo test`\n\n<promise>DONE</promise>",
            "He said \"fine\"\n<promise>DONE</promise>\n\"quoted\"",
            "```\nok\n```\n<promise>DONE</promise>",
        ] {
            assert_eq!(claim(message), Claim::Made, "{message:?}");
        }
    }

    #[test]
    fn mentions_do_not_count() {
        let cases = [
            ("DONE", "none"),
            ("<promise>DONE", "none"),
            ("<promise>done</promise>", "other words"),
            ("<promise>DONE and more</promise>", "other words"),
            ("I will output <promise>DONE</promise>", "negated"),
            ("I can't say <promise>DONE</promise>", "negated"),
            ("I’ll finish with <promise>DONE</promise>", "negated"),
            ("Two tests fail, so it is not time for\n<promise>DONE</promise> yet.", "not alone"),
            ("I must not write this yet:\n\n<promise>DONE</promise>", "negated"),
            ("Two tests still fail, so no <promise>DONE</promise>.", "negated"),
            ("Plan:\n1. Fix the parser\n2. Output <promise>DONE</promise>", "not alone"),
            ("1. Fix the parser\n2. Output <promise>DONE</promise>", "not alone"),
            ("- [ ] output <promise>DONE</promise>", "negated"),
            ("- [ ] <promise>DONE</promise>", "negated"),
            ("❌ <promise>DONE</promise>", "negated"),
            ("I refuse to output <promise>DONE</promise>", "negated"),
            ("The loop ends with <promise>DONE</promise>", "not alone"),
            ("Next step: <promise>DONE</promise>", "negated"),
            ("Noch nicht fertig, daher kein <promise>DONE</promise>", "not alone"),
            ("还有两个测试失败，不能输出 <promise>DONE</promise>", "not alone"),
            ("I am not going to write\n\n<promise>DONE</promise>\n\nuntil all tests pass.", "not alone"),
            ("I cannot say\n\n<promise>DONE</promise>", "negated"),
            ("<promise>DONE</promise>\n\nis what I will write once the last test passes.", "not alone"),
            ("<!--\n<promise>DONE</promise>\n-->", "code"),
            ("Say \"<promise>DONE</promise>\"", "quoted"),
            ("> <promise>DONE</promise>", "quoted"),
            ("`<promise>DONE</promise>`", "code"),
            ("```\n<promise>DONE</promise>\n```", "code"),
            ("~~~text\n<promise>DONE</promise>", "code"),
            ("Example:\n\n    <promise>DONE</promise>\n", "code"),
            ("The tag <promise>DONE</promise> ends the loop.", "not alone"),
            ("You asked:\nFix it.\nWhen all tests pass, output this:\n<promise>DONE</promise>\n", "echo"),
        ];
        for (message, expected) in cases {
            assert_eq!(why(message), expected, "{message:?}");
        }
    }

    #[test]
    fn pains_4_white_space_is_normalised_on_both_sides() {
        assert_eq!(find("<promise>ALL   DONE</promise>", "ALL DONE", ""), Claim::Made);
        assert_eq!(find("<promise>ALL DONE</promise>", "ALL  DONE", ""), Claim::Made);
        assert_eq!(find("<promise>全部\u{3000}完成 ✅</promise>", "全部 完成 ✅", ""), Claim::Made);
        assert_eq!(find("<promise></promise>", " ", ""), Claim::None);
        assert_eq!(find("<promise>`x` passes</promise>", "`x` passes", ""), Claim::Made);
    }

    #[test]
    fn a_prompt_that_is_repeated_whole_is_an_echo_wherever_its_tag_stands() {
        let rest = "\n\n[ralph] This is round 1.\n\n[ralph] Two tests fail.\n";
        for prompt in
            ["Fix it, then say\n<promise>DONE</promise>", "<promise>DONE</promise>", "One.\nTwo.\nSay:\n\n  <promise>DONE</promise>"]
        {
            let prompt = format!("{prompt}{rest}");
            let marked: Vec<String> = prompt.lines().map(|line| format!("| {line}")).collect();
            for message in [prompt.clone(), format!("user:\n{prompt}"), format!("{prompt}\nI have read it."), marked.join("\n")] {
                assert_eq!(find(&message, "DONE", &prompt), Claim::Refused { why: Refusal::Echo }, "{message}");
                assert_eq!(
                    find(&format!("{message}\nAll is well.\n\n<promise>DONE</promise>\n"), "DONE", &prompt),
                    Claim::Made,
                    "{message}"
                );
            }
        }
    }

    #[test]
    fn an_answer_that_the_prompt_asked_for_is_no_echo() {
        let prompt = "Fix it. Your final message must be exactly:\n\nAll tests pass.\n<promise>DONE</promise>";
        assert_eq!(find("All tests pass.\n<promise>DONE</promise>", "DONE", prompt), Claim::Made);
    }

    /// A look at each of these tags that read all of the message would take minutes.
    #[test]
    fn a_message_full_of_tags_is_no_work() {
        let tags = "a <promise>x</promise> ".repeat(8_000);
        assert_ne!(claim(&tags), Claim::Made);
        assert_eq!(claim(&format!("{tags}\n\n<promise>DONE</promise>")), Claim::Made);
        assert_eq!(why(&format!("{}<promise>DONE</promise>", "<!-- ".repeat(50_000))), "code");
    }

    proptest! {
        #[test]
        fn never_panics(message in "(\\PC|\n|`|>|<promise>|</promise>|DONE){0,40}", promise in "\\PC{0,8}") {
            let _ = find(&message, &promise, &message);
        }

        /// Whatever was said before it, a tag on a line of its own after a finished paragraph is a claim, and the promise may be any words.
        #[test]
        fn s1_ac4_own_line_claims(promise in "[A-Za-z0-9é ]*[A-Za-z0-9][A-Za-z0-9é ]*", before in "[A-Za-z ,]{0,40}") {
            let message = format!("{before}.\n\n<promise>{promise}</promise>");
            prop_assert_eq!(find(&message, &promise, ""), Claim::Made);
        }

        /// Inside a code fence nothing is ever a claim.
        #[test]
        fn fenced_is_never_a_claim(before in "[a-z \n]{0,30}", after in "[a-z \n]{0,30}") {
            let message = format!("{before}\n```\n<promise>DONE</promise>\n```\n{after}");
            prop_assert_ne!(find(&message, "DONE", ""), Claim::Made);
        }
    }
}
