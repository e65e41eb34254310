use proptest::prelude::*;

use super::*;

fn claim(message: &str) -> Claim {
    Claim::find(message, "DONE", "Fix it.\nWhen all tests pass, output this:\n<promise>DONE</promise>\n")
}

fn why(message: &str) -> String {
    match claim(message) {
        Claim::Made => "made".to_owned(),
        Claim::None => "none".to_owned(),
        Claim::Refused { why } => serde_json::to_value(why).unwrap_or_default()["because"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The agent copies the tag as it is shown, and there it has nothing that draws nothing.
#[test]
fn s0_8_a_promise_counts_as_it_is_shown() {
    for promise in ["\u{1f469}\u{200d}\u{1f467} done", "\u{feff}all\u{200b} \u{202e} done", "\u{5d4}\u{5db}\u{5dc}\u{200f} !", "a\u{7}b"] {
        assert_eq!(Claim::find(&crate::messages::tag(promise), promise, ""), Claim::Made, "{promise:?}");
        assert_eq!(Claim::find(&format!("<promise>{promise}</promise>"), promise, ""), Claim::Made, "{promise:?}");
    }
    assert_ne!(claim("<promise>DON\u{200d}E</promise>"), Claim::Made);
}

#[test]
fn s0_8_real_claims_count() {
    for message in [
        "<promise>DONE</promise>",
        "All tests pass.\n\n<promise>DONE</promise>\n",
        "All tests pass. <promise>DONE</promise>",
        "<promise>DONE</promise> 🎉",
        "## Result\n- Added a check if the file is missing\n- <promise>DONE</promise>",
        "1. <promise>DONE</promise>",
        "- [x] all green\n- [x] <promise>DONE</promise>",
        "- Handles the case when it is not there\n\n<promise>DONE</promise>",
        "**<promise>DONE</promise>**",
        "Work complete!\r\n<promise>\r\n  DONE\r\n</promise>\r\n",
        "The rule was `<promise>DONE</promise>` on its own line.\n\n<promise>DONE</promise>",
        "<promise>WRONG</promise>\n<promise>DONE</promise>",
        "I could not do it before. Now all 40 tests pass. <promise>DONE</promise>.",
        "An unmatched ` backtick.\n<promise>DONE</promise>",
        "All tests pass with `cargo test`\n\n<promise>DONE</promise>",
        "```\nok\n```\n<promise>DONE</promise>",
        "```yaml\nkeys:\n```\n\n<promise>DONE</promise>",
        "Every `[ ]` in TODO.md is ticked, and `<div>` is balanced.\n\n<promise>DONE</promise>",
        "<br>\nDone.\n\n<promise>DONE</promise>",
        "See <https://example.org>\n<https://example.org>\n\n<promise>DONE</promise>",
        "All 12 tests pass :)\n\n<promise>DONE</promise>",
        "\u{5d4}\u{5db}\u{5dc} \u{5d8}\u{5d5}\u{5d1}.\n\n\u{200f}<promise>DONE</promise>\u{200e}",
    ] {
        assert_eq!(claim(message), Claim::Made, "{message:?}");
    }
}

#[test]
fn t11_mentions_do_not_count_and_say_why() {
    let cases = [
        ("DONE", "none"),
        ("<promise>DONE", "none"),
        ("<promise>done</promise>", "other-words"),
        ("<promise>DONE and more</promise>", "other-words"),
        ("I will output <promise>DONE</promise>", "not-alone"),
        ("Everything is finished: <promise>DONE</promise>", "not-alone"),
        ("User: <promise>DONE</promise>", "not-alone"),
        ("PROMPT.md:3:<promise>DONE</promise>", "not-alone"),
        ("<promise>DONE</promise>?", "not-alone"),
        ("~~<promise>DONE</promise>~~", "not-alone"),
        ("| end | <promise>DONE</promise> |", "not-alone"),
        ("The tag <promise>DONE</promise> ends the loop.", "not-alone"),
        ("i.e. <promise>DONE</promise>", "not-alone"),
        ("❌ <promise>DONE</promise>", "not-alone"),
        ("+<promise>DONE</promise>", "not-alone"),
        ("<promise>DONE</promise>\n\nSummary: I changed three files.", "not-last"),
        ("The following is false:\n\n<promise>DONE</promise>", "announced"),
        ("May I?\n<promise>DONE</promise>", "announced"),
        ("One of:\n<promise>A</promise>\n- <promise>DONE</promise>", "announced"),
        ("- [ ] output <promise>DONE</promise>", "not-alone"),
        ("- [ ] <promise>DONE</promise>", "not-alone"),
        ("- [ ] docs\n\n<promise>DONE</promise>", "open-box"),
        ("- [ ] docs\n\nCode is done. <promise>DONE</promise>", "open-box"),
        ("<!--\n<promise>DONE</promise>\n-->", "in-code"),
        ("`<promise>DONE</promise>`", "in-code"),
        ("```\n<promise>DONE</promise>\n```", "in-code"),
        ("~~~text\n<promise>DONE</promise>", "in-code"),
        ("Example\n\n    <promise>DONE</promise>\n", "in-code"),
        ("Say \"<promise>DONE</promise>\"", "quoted"),
        ("> <promise>DONE</promise>", "quoted"),
        ("> The task\n<promise>DONE</promise>", "quoted"),
        ("<pre>\n<promise>DONE</promise>\n</pre>", "in-element"),
        ("<example>\nAll is well.\n\n<promise>DONE</promise>", "in-element"),
        ("<thinking>\nSo I say\n\n<promise>DONE</promise>\n</thinking>\n\nI go on.", "in-element"),
        ("<thinking>All is well. <promise>DONE</promise>", "in-element"),
        ("<!-- All is well. <promise>DONE</promise>", "in-code"),
        ("I say then:\u{200f}\n<promise>DONE</promise>", "announced"),
        ("<blocked>no key</blocked>\n\n<promise>DONE</promise>", "both-tags"),
        ("<blocked>no key</blocked>. <promise>DONE</promise>", "both-tags"),
        ("You asked\nFix it.\nWhen all tests pass, output this:\n<promise>DONE</promise>\n", "announced"),
    ];
    for (message, expected) in cases {
        assert_eq!(why(message), expected, "{message:?}");
    }
}

#[test]
fn pains_4_white_space_is_normalised_on_both_sides() {
    assert_eq!(Claim::find("<promise>ALL   DONE</promise>", "ALL DONE", ""), Claim::Made);
    assert_eq!(Claim::find("<promise>ALL\n\nDONE</promise>", "ALL  DONE", ""), Claim::Made);
    assert_eq!(Claim::find("<promise>全部\u{3000}完成 ✅</promise>", "全部 完成 ✅", ""), Claim::Made);
    assert_eq!(Claim::find("<promise></promise>", " ", ""), Claim::None);
    assert_eq!(Claim::find("<promise>`x` passes</promise>", "`x` passes", ""), Claim::Made);
}

/// S0-7: a message has several text blocks, and each has a last line. A page break that an agent quotes ends no block.
#[test]
fn t11_each_block_of_a_message_has_its_own_last_line() {
    let message = |blocks: &[&str]| join_blocks(blocks.iter().copied());
    assert_eq!(claim(&message(&["All true.\n<promise>DONE</promise>", "Bye."])), Claim::Made);
    assert_eq!(why("All true.\n<promise>DONE</promise>\nBye."), "not-last");
    assert_eq!(why(&message(&["The last line will be:", "<promise>DONE</promise>"])), "announced");
    assert_eq!(why(&message(&["- [ ] docs", "<promise>DONE</promise>"])), "open-box");
    assert_eq!(claim(&message(&["```\nunclosed", "<promise>DONE</promise>"])), Claim::Made, "a block is a text of its own");
    assert_eq!(why(&message(&["All true.\n<promise>DONE</promise>\u{c}and so on"])), "not-last");
    assert_eq!(normalised(&message(&["First.", "Second."])), "First. Second.");
}

#[test]
fn a_prompt_that_is_repeated_whole_is_an_echo_wherever_its_tag_stands() {
    let rest = "\n\n[ralph] This is iteration 1.\n\n[ralph] Two tests fail.\n";
    for prompt in
        ["Fix it, then say\n<promise>DONE</promise>", "<promise>DONE</promise>", "One.\nTwo.\nSay it\n\n  <promise>DONE</promise>"]
    {
        let whole = format!("{prompt}{rest}");
        let marked: Vec<String> = whole.lines().map(|line| format!("| {line}")).collect();
        for message in [whole.clone(), format!("user:\n{prompt}"), format!("{whole}\nI have read it."), marked.join("\n")] {
            assert!(matches!(Claim::find(&message, "DONE", &whole), Claim::Refused { .. }), "{message}");
            assert_eq!(
                Claim::find(&format!("{message}\nAll is well.\n\n<promise>DONE</promise>\n"), "DONE", &whole),
                Claim::Made,
                "{message}"
            );
        }
    }
    let echo = Claim::Refused { why: Refusal::Echo };
    assert_eq!(
        Claim::find("Right.\n- Fix it, then say\n<promise>DONE</promise>", "DONE", "Fix it, then say <promise>DONE</promise>"),
        echo
    );
    assert_eq!(Claim::find("Right.\nFix it. Say so. <promise>DONE</promise>", "DONE", "Fix it. Say so. <promise>DONE</promise>"), echo);
}

#[test]
fn an_answer_that_the_prompt_asked_for_is_no_echo() {
    let prompt = "Fix it. Your final message must be exactly:\n\nAll tests pass.\n<promise>DONE</promise>";
    assert_eq!(Claim::find("All tests pass.\n<promise>DONE</promise>", "DONE", prompt), Claim::Made);
    assert_eq!(Claim::find(prompt, "DONE", prompt), Claim::Refused { why: Refusal::Echo });
}

/// A look at each of these tags that read all of the message would take minutes.
#[test]
fn t11_a_message_full_of_tags_is_no_work() {
    let tags = "a <promise>x</promise> ".repeat(300_000);
    assert_ne!(claim(&tags), Claim::Made);
    assert_eq!(claim(&format!("{tags}\n\n<promise>DONE</promise>")), Claim::Made);
    assert_eq!(claim(&format!("{}\n<promise>DONE</promise>", "<promise>x</promise>\n".repeat(300_000))), Claim::Made);
    assert_eq!(why(&format!("{}\n<promise>DONE</promise>", "<!-- ".repeat(500_000))), "in-code");
    assert_eq!(why(&format!("{}<promise>DONE</promise>", "<a>\n".repeat(500_000))), "in-element");
    let runs: String = (1..2_000).map(|n| "`".repeat(n) + " ").collect();
    assert_eq!(claim(&format!("{runs}.\n<promise>DONE</promise>")), Claim::Made);
    assert!(matches!(claim(&format!("<promise>{}</promise>", "DONE ".repeat(500_000))), Claim::Refused { .. }));
}

#[test]
fn t12_blocked_counts_alone_on_the_last_line_only() {
    let why = |message: &str| Claim::blocked(message);
    assert_eq!(why("There is no key.\n\n<blocked>no API key in this shell</blocked>").as_deref(), Some("no API key in this shell"));
    assert_eq!(why("- [ ] deploy\n\n**<blocked>\n the VPN is\n down\n</blocked>**\n").as_deref(), Some("the VPN is down"));
    assert_eq!(why("`<promise>DONE</promise>` would be a lie.\n\n<blocked>no key</blocked>").as_deref(), Some("no key"));
    for message in [
        "<blocked></blocked>",
        "<blocked> </blocked>",
        "<blocked>why</blocked>",
        "<blocked>Reason</blocked>",
        "<blocked>…</blocked>",
        "<blocked>...</blocked>",
        "There is no key. <blocked>no key</blocked>",
        "<blocked>no key</blocked>\nI go on.",
        "If it fails, I say:\n<blocked>no key</blocked>",
        "```\n<blocked>no key</blocked>\n```",
        "> <blocked>no key</blocked>",
        "<example>\n<blocked>no key</blocked>",
        "<promise>DONE</promise>\n\n<blocked>no key</blocked>",
        "<blocked>no key</blocked>\n\n<promise>DONE</promise>",
        "<blocked>no key",
    ] {
        assert_eq!(why(message), None, "{message:?}");
    }
    assert_eq!(why(&format!("<blocked>{}</blocked>", "x".repeat(10_000))).map(|why| why.chars().count()), Some(301));
}

/// Journals of older and newer versions are read.
#[test]
fn t11_refusals_of_other_versions_are_readable() {
    let read = |json: &str| serde_json::from_str::<Claim>(json).map_err(|e| e.to_string());
    let why = |why| Ok(Claim::Refused { why });
    assert_eq!(read(r#"{"is":"refused","why":{"because":"negated","word":"not"}}"#), why(Refusal::Negated { word: "not".to_owned() }));
    assert_eq!(read(r#"{"is":"refused","why":{"because":"not-alone"}}"#), why(Refusal::NotAlone));
    assert_eq!(read(r#"{"is":"refused","why":{"because":"sung","key":"C"}}"#), why(Refusal::Unclear));
}

proptest! {
    #[test]
    fn never_panics(message in "(\\PC|\n|`|>|<promise>|</promise>|<blocked>|</blocked>|DONE|\u{c}|<a>|</a>){0,40}", promise in "\\PC{0,8}") {
        let _ = Claim::find(&message, &promise, &message);
        let _ = Claim::blocked(&message);
    }

    /// Whatever was said before it, a tag on a line of its own after a finished paragraph is a claim, and the promise may be any words.
    #[test]
    fn s1_ac4_own_line_claims(promise in "[A-Za-z0-9é ]*[A-Za-z0-9][A-Za-z0-9é ]*", before in "[A-Za-z ,]{0,40}") {
        let message = format!("{before}.\n\n<promise>{promise}</promise>");
        prop_assert_eq!(Claim::find(&message, &promise, ""), Claim::Made);
    }

    /// Inside a code fence nothing is ever a claim.
    #[test]
    fn fenced_is_never_a_claim(before in "[a-z \n]{0,30}", after in "[a-z \n]{0,30}") {
        let message = format!("{before}\n```\n<promise>DONE</promise>\n```\n{after}");
        prop_assert_ne!(Claim::find(&message, "DONE", ""), Claim::Made);
    }

    /// Nothing after the tag but what has no words: otherwise it is no claim.
    #[test]
    fn t11_words_after_the_tag_are_never_a_claim(after in "[^\u{c}]{0,20}[a-z][^\u{c}]{0,20}") {
        prop_assert_ne!(Claim::find(&format!("All is well.\n<promise>DONE</promise>{after}"), "DONE", ""), Claim::Made);
    }
}
