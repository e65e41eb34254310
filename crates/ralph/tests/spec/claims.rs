//! Claims: what counts as the agent's own promise, and where its words are read (S0-6 … S0-8; pains 1 … 5).

use std::fs;

use serde_json::json;

use crate::common::{Answer, Bed, CLIENT, LOOP, ME, PROMPT, fixture, fixture_until, is_text, loop_text, now_ms, tick, unique};

const DONE: &str = "<promise>DONE</promise>";

/// How an agent says that it cannot go on, as it is told together with how to claim.
pub(crate) const BLOCKED: &str = "If you cannot go on without a person, end your message with <blocked>why</blocked> on a line of its own, with the reason in \
                                  place of \"why\".";

/// What came of one stop that says `said` in a fresh loop with the promise `DONE`.
fn code_of(said: &str) -> String {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.stop(said).send();
    bed.codes().pop().unwrap()
}

/// pains 3, 4; design 6: the whole table of claims and mentions.
#[test]
fn pains_3_s0_8_what_is_a_claim_and_what_is_a_mention() {
    let claims = [
        DONE,
        "All tests pass.\n<promise>DONE</promise>",
        "Tests: 12 passed, 0 failed\n\n<promise>DONE</promise>",
        "Everything is finished. <promise>DONE</promise>",
        "<promise>DONE</promise>.\n\n---",
        "**<promise>DONE</promise>**",
        "  <promise>DONE</promise>  ",
        "<promise>\n  DONE\n</promise>",
        "<promise>  DONE </promise>",
        "<promise>\tDONE\r\n</promise>",
        "Not everything was easy. Now it works.\n\n<promise>DONE</promise>",
        "The example was `<promise>DONE</promise>`, and now it is true.\n\n<promise>DONE</promise>",
        "<promise>OTHER</promise>\n<promise>DONE</promise>",
        "It is done.\r\n<promise>DONE</promise>\r\n",
    ];
    for said in claims {
        assert_eq!(code_of(said), "promise.accepted", "{said:?}");
    }
    let mentions = [
        "Say `<promise>DONE</promise>` when it is done.",
        "`<promise>DONE</promise>`",
        "``<promise>DONE</promise>``",
        "```\n<promise>DONE</promise>\n```",
        "~~~xml\n<promise>DONE</promise>\n~~~",
        "```\n<promise>DONE</promise>",
        "Some code:\n\n    <promise>DONE</promise>\n",
        "> <promise>DONE</promise>",
        "\"<promise>DONE</promise>\"",
        "“<promise>DONE</promise>”",
        "'<promise>DONE</promise>'",
        "I will not say <promise>DONE</promise>",
        "I can't say <promise>DONE</promise>",
        "When the tests pass I'll say <promise>DONE</promise>",
        "Once all is true: <promise>DONE</promise>",
        "I will not output this yet:\n<promise>DONE</promise>",
        "The words <promise>DONE</promise> come later.",
        "<promise>DONE</promise> is what I say at the end.",
        "<promise>done</promise>",
        "<promise>DONE!</promise>",
        "<promise>NOT DONE</promise>",
        "<promise></promise>",
        "<promise>DONE DONE</promise>",
        "All tests pass.\n\n<promise>DONE</promise>\n\nHave a nice day.",
        "Everything is finished: <promise>DONE</promise>.",
        "<pre>\n<promise>DONE</promise>\n</pre>",
        "<thinking>\nAll is done.\n\n<promise>DONE</promise>",
        "~~<promise>DONE</promise>~~",
        "<promise>DONE</promise>?",
        "| end | <promise>DONE</promise> |",
        "PROMPT.md:3:<promise>DONE</promise>",
        "User: <promise>DONE</promise>",
        "The following is false:\n\n<promise>DONE</promise>",
        "Ich kann noch nicht sagen: <promise>DONE</promise>",
        "- [ ] write the tests\n\n<promise>DONE</promise>",
        "<blocked>no key</blocked>\n\n<promise>DONE</promise>",
    ];
    for said in mentions {
        assert_eq!(code_of(said), "promise.refused", "{said:?}");
    }
    let nothing = [
        "DONE",
        "The work is DONE.",
        "promise: DONE",
        "<promise>DONE",
        "DONE</promise>",
        "<PROMISE>DONE</PROMISE>",
        "&lt;promise>DONE&lt;/promise>",
    ];
    for said in nothing {
        assert_eq!(code_of(said), "promise.missing", "{said:?}");
    }
}

/// pains 1 (35 threads: "read wrongly, in both directions"): a claim on a line of its own counts, whatever the line before it ends with.
#[test]
fn s0_8_a_claim_on_its_own_line_after_a_line_that_ends_in_code_or_quotes() {
    for said in [
        "All tests pass with `cargo test`\n\n<promise>DONE</promise>",
        "I renamed it to \"foo\"\n<promise>DONE</promise>",
        "Nothing is left of the users' 'quirks'\n\n<promise>DONE</promise>",
        "```\nok\n```\n\n<promise>DONE</promise>",
    ] {
        assert_eq!(code_of(said), "promise.accepted", "{said:?}");
    }
}

/// pains 3: the prompt's own lines, repeated, are no claim; the same tag said by the agent is.
#[test]
fn pains_3_an_echo_of_the_prompt_is_no_claim() {
    let prompt = "Do it. When all is true, say\n<promise>DONE</promise>\non a line of its own.";
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace(PROMPT, prompt));
    bed.stop(&format!("My task is:\n\n{prompt}")).send();
    bed.stop("It is all true.\n<promise>DONE</promise>").send();
    assert_eq!(bed.codes(), ["promise.refused", "promise.accepted"]);
}

/// design 6: a mention that does not count is answered with how to claim, and the loop heals in one round.
#[test]
fn pains_3_a_refused_mention_says_how_to_claim() {
    let bed = Bed::with_loop(1, 0, "ALL DONE");
    let answer = bed.stop("I cannot say <promise>ALL DONE</promise>").send();
    answer.blocks_with(&format!(
        "{PROMPT}\n\n[ralph] Your message had a promise tag that does not count: the tag shared its line with other words. \
         Only when all of it is completely true, end your message with <promise>ALL DONE</promise> on a line of its own. {BLOCKED}"
    ));
    bed.stop("<promise>ALL FINE</promise>").send().blocks_with(&format!(
        "{PROMPT}\n\n[ralph] Your message had a promise tag that does not count: the words between the tags were \"ALL FINE\". \
         Only when all of it is completely true, end your message with <promise>ALL DONE</promise> on a line of its own. {BLOCKED}"
    ));
    bed.stop("<promise>ALL DONE</promise>").send().line();
}

/// t11: a loop that is capped in the very iteration of an unclear claim says so.
#[test]
fn t11_a_capped_loop_says_that_an_unclear_claim_was_made() {
    let bed = Bed::with_loop(3, 3, "DONE");
    let line = bed.stop("Everything is finished: <promise>DONE</promise>").send().line();
    assert!(
        line.contains("its limit of 3 iterations, with an unclear claim (the tag shared its line with other words). The loop is kept"),
        "{line}"
    );
    let plain = Bed::with_loop(3, 3, "DONE");
    assert!(plain.work().send().line().contains("its limit of 3 iterations, without the promise."));
}

/// t11, t24: a message of many megabytes of tags is read once.
#[test]
fn t11_a_huge_message_of_tags_is_answered_soon() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let began = std::time::Instant::now();
    let tags = ralph_testkit::nightly::amount(100_000, 600_000);
    assert!(bed.stop(&"<promise>x</promise> ".repeat(tags)).send().blocks());
    bed.stop(&format!("{}\n\n{DONE}", "<promise>x</promise>\n".repeat(tags))).send().line();
    assert_eq!(bed.codes(), ["promise.refused", "promise.accepted"]);
    assert!(began.elapsed() < std::time::Duration::from_mins(1), "{:?}", began.elapsed());
}

/// pains 4: white space, line ends, escapes and Unicode on both sides of the comparison.
#[test]
fn pains_4_s0_8_double_space_crlf_escaped_and_unicode_promises_complete() {
    let cases = [
        ("\"ALL  DONE\"", "<promise>ALL  DONE</promise>"),
        ("\"ALL  DONE\"", "<promise>ALL DONE</promise>"),
        ("ALL DONE", "<promise>ALL\r\n  DONE</promise>"),
        ("\"\\x41LL\\u0020DONE\"", "<promise>ALL DONE</promise>"),
        ("\"say \\\"hi\\\"\"", "<promise>say \"hi\"</promise>"),
        ("'it''s: done'", "<promise>it's: done</promise>"),
        ("\"Готово 🎉 — fertig\"", "<promise>Готово 🎉 — fertig</promise>"),
        ("完成", "<promise>完成</promise>"),
        ("|\n  ALL\n  DONE", "<promise>ALL DONE</promise>"),
        (">-\n  ALL\n  DONE", "<promise>ALL DONE</promise>"),
        ("42", "<promise>42</promise>"),
        ("true", "<promise>true</promise>"),
        ("\"null\"", "<promise>null</promise>"),
        ("a & b < c", "<promise>a & b < c</promise>"),
        ("DONE # with a comment", "<promise>DONE</promise>"),
        ("\"(DONE|x) [a] * \\\\ $HOME\"", "<promise>(DONE|x) [a] * \\ $HOME</promise>"),
        ("\"\\u00a0DONE\"", "<promise>DONE</promise>"),
    ];
    for (yaml, said) in cases {
        for eol in ["\n", "\r\n"] {
            let bed = Bed::new();
            let text = format!("---\niteration: 1\nsession_id: {ME}\ncompletion_promise: {yaml}\n---\nGo\n");
            bed.write(LOOP, text.replace('\n', eol));
            bed.stop(said).send();
            assert_eq!(bed.codes(), ["promise.accepted"], "{yaml:?} {said:?}");
        }
    }
}

/// A promise may hold what Markdown reads as code: the words between the tags are the loop's own.
#[test]
fn pains_4_a_promise_with_backticks_can_be_claimed() {
    let bed = Bed::new();
    bed.write(LOOP, format!("---\niteration: 1\nsession_id: {ME}\ncompletion_promise: \"`make check` is green\"\n---\nGo\n"));
    bed.stop("<promise>`make check` is green</promise>").send();
    assert_eq!(bed.codes(), ["promise.accepted"]);
}

/// pains 5: a promise in the last allowed iteration is complete, not capped; also when the time is over.
#[test]
fn pains_5_a_promise_on_the_last_iteration_is_complete() {
    let bed = Bed::with_loop(3, 3, "DONE");
    bed.stop(DONE).send().tells("Ralph: complete after 3 iterations (0 s): the agent claimed <promise>DONE</promise>.");
    assert_eq!(bed.last_ended()["status"], "complete");
    let first = Bed::with_loop(1, 1, "DONE");
    first.stop(DONE).send().tells("Ralph: complete after 1 iteration (0 s): the agent claimed <promise>DONE</promise>.");
}

/// pains 1: the payload without any transcript, first turn.
#[test]
fn pains_1_payload_without_transcript_loops() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send().blocks_with(PROMPT);
    bed.work().without("transcript_path").send().blocks_with(PROMPT);
    bed.work().field("transcript_path", "").send().blocks_with(PROMPT);
    bed.work().field("transcript_path", json!(null)).send().blocks_with(PROMPT);
    bed.work().field("transcript_path", bed.dir().to_str().unwrap()).send().blocks_with(PROMPT);
    fs::write(bed.transcript_path(), "").unwrap();
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 7);
}

/// pains 2: the tag is in the payload and not yet in the transcript, which still shows an earlier message.
#[test]
fn pains_2_a_lagging_transcript_does_not_hide_the_payload() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.transcript().user("go").says("m1", "Working on it.").uses_tool("m1");
    bed.stop(&format!("Finished.\n{DONE}")).send().line();
    assert_eq!(bed.codes(), ["promise.accepted"]);
}

/// S0-7: all text blocks of the last message count; the event carries only the last.
#[test]
fn s0_7_an_earlier_block_of_the_same_message_counts() {
    // Both blocks are written.
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.transcript().user("go").says("m1", &format!("All of it is true.\n{DONE}")).says("m1", "Bye.");
    bed.stop("Bye.").send().line();
    assert_eq!(bed.codes(), ["promise.accepted"]);
    // The last one is not yet written.
    let lagging = Bed::with_loop(1, 0, "DONE");
    lagging.transcript().user("go").says("m1", &format!("All of it is true.\n{DONE}"));
    lagging.stop("Bye.").send().line();
    assert_eq!(lagging.codes(), ["promise.accepted"]);
}

/// S0-7: a message before the last one is another message.
#[test]
fn s0_7_another_message_of_the_same_turn_does_not_count() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", &format!("All true.\n{DONE}")).uses_tool("m1").says("m2", "Hm, one test is red again.");
    bed.stop("Hm, one test is red again.").send().blocks_with(PROMPT);
    // The same with the last message not yet written.
    tick();
    transcript.feedback(PROMPT).says("m3", &format!("All true.\n{DONE}")).uses_tool("m3");
    bed.stop("Hm, still red.").send().blocks_with(PROMPT);
}

/// S0-6, amended: an older client sends no message; then the transcript is read.
#[test]
fn s0_6_the_transcript_alone_is_enough() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "First.").says("m1", "Second.");
    bed.work().no_message().send().blocks_with(PROMPT);
    assert_eq!(bed.journal().last().unwrap()["event"]["evidence"]["message"], json!({"from": "transcript"}));
    assert_eq!(bed.journal().last().unwrap()["event"]["said"], "First. Second.");
    tick();
    transcript.feedback(PROMPT).says("m2", DONE).says("m2", "That is all.");
    bed.work().no_message().field("prompt_id", "later").send().line();
    assert_eq!(bed.codes(), ["promise.missing", "promise.accepted"]);
}

/// S0-6, amended: torn lines, control characters, garbage and foreign lines are passed over.
#[test]
fn s0_6_torn_and_garbled_lines_are_no_error() {
    let cases: &[&[u8]] = &[
        b"{\"type\":\"assistant\",\"message\":{\"id\":\"m9\",\"content\":[{\"type\":\"text\",\"te",
        b"{\"type\":\"assistant\"",
        b"not json at all\n",
        b"\xff\xfe\x00garbage\n",
        b"[]\n\n\n{}\nnull\n",
        b"{\"type\":\"assistant\",\"message\":\"what\"}\n",
        b"{\"type\":\"assistant\",\"message\":{\"content\":{\"a\":1}}}\n",
        b"{\"type\":\"assistant\",\"message\":{\"content\":null}}\n",
        b"{\"type\":42,\"message\":[]}\n",
    ];
    for bytes in cases {
        // Without the message in the event the text before the garbage is found.
        let bed = Bed::with_loop(1, 0, "DONE");
        bed.transcript().user("go").says("m1", DONE).raw(bytes);
        bed.work().no_message().client("claude-code_2-1-40_harness").send().line();
        assert_eq!(bed.codes(), ["promise.accepted"], "{}", String::from_utf8_lossy(bytes));
        // With it nothing changes either.
        let bed = Bed::with_loop(1, 0, "DONE");
        bed.transcript().user("go").raw(bytes);
        bed.work().send().blocks_with(PROMPT);
        bed.stop(DONE).send().line();
    }
}

/// pains §2 (#68665): raw control characters, lone surrogates and invalid UTF-8, in the transcript and in the event.
#[test]
fn s0_6_control_characters_neither_hide_nor_break_a_claim() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let line = "{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":[{\"type\":\"text\",\"text\":\"a\u{1}\u{1b}[0m\\ud83d\tb\n\n<promise>DONE</promise>\"}]}}";
    let transcript = bed.transcript();
    // A raw line break inside a string would be two lines; every other control character stays one.
    transcript.user("go").raw(line.replace("\n\n", "\\n\\n").as_bytes()).raw(b"\n");
    bed.work().no_message().send().line();
    assert_eq!(bed.codes(), ["promise.accepted"]);

    let bed = Bed::with_loop(1, 0, "DONE");
    let event = bed.stop("WORDS").json().replace("WORDS", "raw \u{1}\u{7}\u{1b}[31m \\udc00 \t \n\n<promise>DONE</promise>");
    let mut bytes = event.into_bytes();
    let at = bytes.windows(4).position(|w| w == b"raw ").unwrap();
    bytes.splice(at..at, [0xff, 0xfe, 0x80]);
    bed.stop("").send_raw(bytes).line();
    assert_eq!(bed.codes(), ["promise.accepted"]);
}

/// pains 3: a sidechain is a subagent's, and an API error is nobody's word.
#[test]
fn pains_3_sidechains_and_errors_do_not_claim() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    let message = json!({"id": "m5", "role": "assistant", "content": [{"type": "text", "text": DONE}]});
    transcript.user("go").says("m1", "Not yet.");
    transcript.line(json!({"type": "assistant", "isSidechain": true, "message": message}));
    transcript.line(json!({"type": "assistant", "isApiErrorMessage": true, "message": message}));
    bed.work().no_message().send().blocks_with(PROMPT);
    assert_eq!(bed.journal().last().unwrap()["event"]["said"], "Not yet.");
    bed.event("SubagentStop").field("agent_type", "check").field("agent_id", "a").field("last_assistant_message", DONE).send().is_silent();
    bed.event("SubagentStop").field("agent_type", "").field("last_assistant_message", DONE).send().is_silent();
    assert!(bed.exists(LOOP));
    assert_eq!(bed.iteration(), 2);
}

/// pains §2: a promise of an earlier turn is stale, also when this turn ends without any text.
#[test]
fn pains_3_a_stale_promise_of_an_earlier_turn_does_not_count() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("first task").says("m1", DONE).user("second task").uses_tool("m2");
    bed.work().no_message().client(CLIENT).send().goes_on_with(PROMPT);
    tick();
    transcript.feedback(PROMPT).uses_tool("m3");
    bed.work().no_message().client(CLIENT).field("prompt_id", "x").send().goes_on_with(PROMPT);
    assert_eq!(bed.codes(), ["promise.missing", "promise.missing"]);
}

/// A claim that was already ruled on (the loop was resumed since) is not read again from the transcript.
#[test]
fn pains_3_the_promise_of_the_round_before_does_not_count_again() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", &format!("It is true.\n{DONE}"));
    bed.stop(&format!("It is true.\n{DONE}")).send().line();
    bed.ralph_ok(&["resume", "--again", "--session", ME]);
    tick();
    // The person asks for more; the agent's answer is not yet in the transcript.
    transcript.user("one more thing");
    bed.stop("Looking into it.").send().blocks_with(PROMPT);
    assert!(bed.exists(LOOP));
}

/// S0-6: thinking is not speech.
#[test]
fn s0_6_a_turn_without_text_goes_on() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let thinking = json!({"type": "thinking", "thinking": DONE, "signature": "s"});
    bed.transcript().user("go").block("m1", &thinking);
    bed.work().no_message().client(CLIENT).send().goes_on_with(PROMPT);
    bed.stop("  \n ").client(CLIENT).field("prompt_id", "prompt-2").send().goes_on_with(PROMPT);
    assert_eq!(bed.codes(), ["promise.missing", "promise.missing"]);
    assert_eq!(bed.journal().last().unwrap()["event"]["evidence"]["message"], json!({"from": "no-text"}));
}

/// S0-6: no message and no transcript. A client that would have sent one had nothing to say: the loop goes on.
#[test]
fn s0_6_a_missing_transcript_of_a_client_that_sends_messages_goes_on() {
    for client in ["claude-code_2-1-47_harness", "claude-code_2-1-197_harness", CLIENT, "claude-code_3-0-0_x"] {
        let bed = Bed::with_loop(1, 0, "DONE");
        assert!(bed.work().no_message().client(client).send().blocks(), "{client}");
        assert_eq!(bed.iteration(), 2);
    }
}

/// S0-6: from an older or unknown client nothing can be judged: the stop is allowed, the file named, the loop kept as paused.
#[test]
fn s0_6_a_missing_transcript_of_an_unknown_client_pauses_and_names_the_file() {
    for client in [None, Some("claude-code_2-1-46_harness"), Some("codex_9-9-9"), Some("claude-code_next")] {
        let bed = Bed::with_loop(4, 9, "DONE");
        let mut event = bed.work().no_message();
        if let Some(client) = client {
            event = event.client(client);
        }
        event.send().tells(&format!(
            "Ralph: paused at iteration 4 of 9: the event carries no message, and its transcript does not exist ({}). /ralph-resume arms it again.",
            bed.transcript_path().display()
        ));
        assert_eq!((bed.value("active").as_str(), bed.iteration()), ("false", 4));
        // Once, so that what is said now is not taken for checked.
        assert!(bed.work().send().line().contains("so this stop was not checked"));
        bed.work().send().is_silent();
        bed.ralph_ok(&["resume"]);
        bed.work().send().blocks_with(PROMPT);
    }
}

/// S0-6: a message that is no text is no message.
#[test]
fn s0_6_a_message_of_a_strange_type_is_no_error() {
    for strange in [json!(null), json!(7), json!(["a"]), json!({"text": DONE})] {
        let bed = Bed::with_loop(1, 0, "DONE");
        bed.work().field("last_assistant_message", strange.clone()).client(CLIENT).send().goes_on_with(PROMPT);
        assert_eq!(bed.codes(), ["promise.missing"], "{strange}");
    }
}

/// A transcript that is no plain file is no transcript, and holds nobody up.
#[test]
fn s0_6_a_transcript_that_is_a_pipe_does_not_hold_the_hook() {
    let bed = Bed::with_loop(1, 0, "DONE");
    assert!(std::process::Command::new("mkfifo").arg(bed.transcript_path()).status().unwrap().success());
    bed.work().send().blocks_with(PROMPT);
    bed.work().field("transcript_path", "/dev/zero").send().blocks_with(PROMPT);
    bed.typed("hello").send().is_silent();
}

/// A long message and a long transcript: the end is what counts.
#[test]
fn s0_7_long_messages_and_transcripts() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.stop(&format!("{}\n{DONE}", "long ".repeat(60_000))).send().line();
    assert_eq!(bed.codes(), ["promise.accepted"]);
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    let filler = format!("{}\n", json!({"type": "system", "x": "y".repeat(4000)}));
    transcript.raw(filler.repeat(2_000).as_bytes()).user("go").says("m1", &format!("{}\n{DONE}", "words ".repeat(30_000)));
    transcript.raw(filler.repeat(100).as_bytes());
    bed.work().no_message().client("claude-code_2-1-40_x").send().line();
    assert_eq!(bed.codes(), ["promise.accepted"]);
}

/// Real transcripts, as both clients wrote them, cut where their first stop was.
#[test]
fn s0_7_real_transcripts_are_read() {
    for version in ["2.1.197", "2.1.325"] {
        // Two text blocks in one message: the event of that stop carried only the second.
        let text = fixture_until(&format!("{version}-block"), is_text("BBB one"));
        let stop = |promise: &str, message: Option<&str>, transcript: &str| -> (Bed, Answer) {
            let bed = Bed::with_loop(1, 0, promise);
            fs::write(bed.transcript_path(), transcript).unwrap();
            let event = message.map_or_else(|| bed.work().no_message(), |m| bed.stop(m));
            let answer = event.send();
            (bed, answer)
        };
        let (bed, _) = stop("X", Some("BBB one"), &text);
        let record = bed.journal().pop().unwrap();
        assert_eq!(record["event"]["said"], "AAA one BBB one", "{version}");
        assert_eq!(record["event"]["evidence"]["tools"], "none");
        let (bed, _) = stop("X", None, &text);
        assert_eq!(bed.journal().pop().unwrap()["event"]["said"], "AAA one BBB one", "{version}");
        // The same with a promise in the first block.
        let claimed = text.replace("AAA one", "AAA\\n<promise>X</promise>");
        assert_ne!(claimed, text);
        let (bed, _) = stop("X", Some("BBB one"), &claimed);
        assert_eq!(bed.codes(), ["promise.accepted"], "{version}");
        // Only the last block is there yet in the event, nothing of the message in the transcript.
        let lagging = fixture_until(&format!("{version}-block"), is_text("AAA one"));
        let without: String = lagging.lines().filter(|l| !l.contains("AAA one")).flat_map(|l| [l, "\n"]).collect();
        let (bed, _) = stop("X", Some("BBB one"), &without);
        assert_eq!(bed.journal().pop().unwrap()["event"]["said"], "BBB one", "{version}");
        // Second stop of the same file: a tool was used, and the first round's text is not in it.
        let second = fixture_until(&format!("{version}-block"), is_text("two done")).replace("AAA one", "AAA\\n<promise>X</promise>");
        let (bed, _) = stop("X", None, &second);
        let record = bed.journal().pop().unwrap();
        assert_eq!(record["event"]["evidence"]["tools"], "used", "{version}");
        assert_eq!(record["event"]["said"], "two done", "{version}");
        // The context form's rounds are told apart as well.
        let second = fixture_until(&format!("{version}-context"), is_text("two done"));
        let (bed, _) = stop("X", None, &second);
        assert_eq!(bed.journal().pop().unwrap()["event"]["said"], "two done", "{version}");
    }
}

/// Whole real transcripts of every kind as a first stop: never an error, never a wrong completion.
#[test]
fn s0_6_every_real_transcript_can_be_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/transcripts");
    let files =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let names: Vec<String> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let can_be_read = |name: &str| {
        let bed = Bed::with_loop(1, 0, "DONE");
        fs::write(bed.transcript_path(), fixture(name)).unwrap();
        bed.stop(&format!("Still at it ({}).", unique())).send();
        let log = bed.hook_log();
        assert!(log.iter().all(|l| !l.contains("error=")), "{name}: {log:?}");
        assert!(bed.exists(LOOP), "{name}");
        // And cut anywhere, as a transcript that is being written is.
        let bytes = fixture(name).into_bytes();
        for part in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 2] {
            let bed = Bed::with_loop(1, 0, "DONE");
            fs::write(bed.transcript_path(), &bytes[..part]).unwrap();
            bed.work().no_message().client(CLIENT).send();
            assert!(bed.hook_log().iter().all(|l| !l.contains("error=")), "{name} cut at {part}");
            assert!(bed.exists(LOOP), "{name} cut at {part}");
        }
    };
    // A hook waits for the rest of a transcript that was cut: they can do so beside each other.
    let some = |names: &[String]| names.iter().for_each(|name| can_be_read(name));
    std::thread::scope(|scope| names.chunks(names.len().div_ceil(8)).for_each(|names| drop(scope.spawn(|| some(names)))));
    assert!(names.len() >= 40, "only {} transcripts", names.len());
}

/// Lines that are older than the ruling before belong to the round before, wherever they stand.
#[test]
fn s0_7_late_lines_of_the_round_before_are_not_this_rounds() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").uses_tool("m1");
    let before = ralph_core::text::time::format(now_ms());
    tick();
    bed.stop("Iteration one.").send().blocks_with(PROMPT);
    // The first round's last line is written only now.
    let message = json!({"id": "m2", "role": "assistant", "content": [{"type": "text", "text": DONE}]});
    transcript.line(json!({"type": "assistant", "isSidechain": false, "timestamp": before, "message": message}));
    bed.stop("Iteration two.").send().blocks_with(PROMPT);
    assert_eq!(bed.journal().pop().unwrap()["event"]["said"], "Iteration two.");
}
