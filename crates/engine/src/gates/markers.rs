//! The `markers` gate: words that must all stand in the agent's last message (S3-6).

use ralph_core::{
    gate::{Finding, Gate, Markers, Verdict},
    text,
};

use crate::gates::Context;

/// More of a list does not help.
const SHOWN: usize = 1_000;

pub(super) fn measure(gate: &Gate, check: &Markers, ctx: &Context<'_>) -> Finding {
    let missing: Vec<&str> = check.words.iter().map(String::as_str).filter(|word| !stands_in(ctx.message, word)).collect();
    if missing.is_empty() {
        return gate.finding(Verdict::Pass, "all markers stand in the last message");
    }
    let what = format!("the last message lacks {}", text::opening(&missing.join(", "), SHOWN));
    let detail = "Write each of these markers in your last message, as it stands here, once what it stands for is really done.";
    gate.finding(Verdict::Fail, what).with_detail(detail)
}

/// Whether a marker stands in a text on its own: `LINT_FINISH` is no part of `NO_LINT_FINISHED`.
fn stands_in(text: &str, marker: &str) -> bool {
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(marker).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !goes_on(before) && !goes_on(after)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ralph_core::gate::{Check, Origin};

    use super::*;
    use crate::store::project::Project;

    fn found(message: &str, markers: &[&str]) -> Finding {
        let check = Markers { words: markers.iter().map(|m| (*m).to_owned()).collect() };
        let gate = Gate::new("markers", Check::Markers(check.clone()), Origin::Loop);
        let project = Project::at("/nowhere");
        measure(&gate, &check, &Context { message, ..Context::new(&project, "x", Duration::ZERO) })
    }

    #[test]
    fn s3_6_all_markers_must_stand_in_the_last_message() {
        let both = ["LINT_FINISH", "TYPE_CHECK_FINISH"];
        for message in ["LINT_FINISH\nTYPE_CHECK_FINISH", "Done: **TYPE_CHECK_FINISH**, `LINT_FINISH`.", "(LINT_FINISH;TYPE_CHECK_FINISH)"]
        {
            assert_eq!(found(message, &both).verdict, Verdict::Pass, "{message}");
        }
        let lacks = |message: &str| found(message, &both).what;
        assert_eq!(lacks("LINT_FINISH only"), "the last message lacks TYPE_CHECK_FINISH");
        assert_eq!(lacks(""), "the last message lacks LINT_FINISH, TYPE_CHECK_FINISH");
        for message in [
            "LINT_FINISHED TYPE_CHECK_FINISH",
            "NO_LINT_FINISH TYPE_CHECK_FINISH",
            "lint_finish TYPE_CHECK_FINISH",
            "éLINT_FINISH TYPE_CHECK_FINISH",
        ] {
            assert_eq!(lacks(message), "the last message lacks LINT_FINISH", "{message}");
        }
        assert_eq!(found("xDONE and DONE", &["DONE"]).verdict, Verdict::Pass, "the second one stands on its own");
        assert!(found("", &[&"LONG_".repeat(1_000)]).what.chars().count() < SHOWN + 100);
    }
}
