//! Commands typed in the agent's session: `/ralph-loop`, `/cancel-ralph`, `/ralph-status`, pause and resume (S1-3, S1-AC1, S1-AC6, S1-AC7; pains 8, 9).

use serde_json::{Value, json};

use crate::{
    claims::BLOCKED,
    common::{Answer, Bed, Event, LOOP, ME, OTHER, PROMPT, Transcript, loop_text, unique},
};

/// The two events of one typed command.
fn submit<'b>(bed: &'b Bed, name: &str, args: &str, turn: &str) -> Event<'b> {
    let prompt = if args.is_empty() { format!("/{name}") } else { format!("/{name} {args}") };
    bed.event("UserPromptSubmit").field("prompt", prompt).field("prompt_id", turn)
}

fn expansion<'b>(bed: &'b Bed, name: &str, args: &str, turn: &str) -> Event<'b> {
    let prompt = if args.is_empty() { format!("/{name}") } else { format!("/{name} {args}") };
    bed.event("UserPromptExpansion")
        .field("expansion_type", "slash_command")
        .field("command_name", name)
        .field("command_args", args)
        .field("command_source", "projectSettings")
        .field("prompt", prompt)
        .field("prompt_id", turn)
}

pub(crate) fn context(answer: &Answer) -> (String, String, String) {
    let json = answer.json.clone().expect("an answer");
    let text = |v: &Value| v.as_str().unwrap_or_else(|| panic!("{json}")).to_owned();
    let specific = &json["hookSpecificOutput"];
    (text(&specific["hookEventName"]), text(&specific["additionalContext"]), text(&json["systemMessage"]))
}

/// The prompt of a loop that was started with this argument text.
fn prompt_of(args: &str) -> String {
    let bed = Bed::new();
    submit(&bed, "ralph-loop", args, "t").send();
    let text = bed.read(LOOP);
    text.split_once("\n---\n\n").unwrap().1.strip_suffix('\n').unwrap().to_owned()
}

/// S1-3, S1-AC1: typed, started, and the stop hook is active.
#[test]
fn s1_3_s1_ac1_a_typed_command_starts_a_loop_in_this_session() {
    for name in ["ralph-loop", "ralph", "ralph:loop", "ralph:ralph-loop"] {
        let bed = Bed::new();
        let args = "Fix all tests --max-iterations 20 --completion-promise DONE";
        let (event, text, line) = context(&submit(&bed, name, args, "t").send());
        assert_eq!(event, "UserPromptSubmit");
        assert_eq!(
            line,
            "Ralph: loop started: ends when the agent truthfully says <promise>DONE</promise>; at most 20 iterations; at most 8 h; \
             pauses after 7 iterations in a row without any tool call; pauses after 10 iterations in a row that change nothing: no commit, no file, no \
             finding."
        );
        let claim = "Only when all of it is completely true, end your message with <promise>DONE</promise> on a line of its own.";
        assert!(text.ends_with(&format!("{claim} {BLOCKED}")), "{text}");
        assert_eq!(bed.value("session_id"), format!("\"{ME}\""));
        assert_eq!((bed.value("iteration"), bed.value("max_iterations")), ("1".into(), "20".into()));
        let answer = bed.work().send();
        assert!(answer.blocks());
        assert_eq!(answer.json.unwrap()["reason"].as_str().unwrap().lines().next(), Some("Fix all tests"));
        assert_eq!(bed.kinds(), ["started", "stop"]);
        assert_eq!(bed.journal()[0]["event"]["by"], "session");
    }
}

/// S1-3: `/ralph --mode hook` is this mode; another mode is refused in words.
#[test]
fn s1_3_s1_ac1_mode_hook_is_accepted() {
    let bed = Bed::new();
    context(&submit(&bed, "ralph", "--mode hook Do it", "t").send());
    assert_eq!(prompt_of("--mode=hook Do it"), "Do it");
    let bed = Bed::new();
    let text = submit(&bed, "ralph", "--mode strange Do it", "t").send().instead();
    assert!(text.starts_with("Ralph: --mode strange is not known here"), "{text}");
    assert!(!bed.exists(LOOP));
}

/// The text as on a machine that is not busy: what took some seconds there took none.
fn timeless(text: &str) -> String {
    (1..60).fold(text.to_owned(), |text, n| text.replace(&format!(" {n} s"), " 0 s").replace(&format!("({n} s"), "(0 s"))
}

/// design 7: both events report one command, in either order: it is carried out once.
#[test]
fn s1_3_one_command_in_two_events_counts_once() {
    for first_is_submit in [true, false] {
        let send = |bed: &Bed, name: &str, args: &str| {
            let turn = format!("turn-{}", unique());
            let (a, b) = (submit(bed, name, args, &turn), expansion(bed, name, args, &turn));
            if first_is_submit { (a.send(), b.send()) } else { (b.send(), a.send()) }
        };
        let bed = Bed::new();
        let (first, second) = send(&bed, "ralph-loop", "Go on --max-iterations 3");
        context(&first);
        second.is_silent();
        let (first, second) = send(&bed, "ralph-pause", "");
        assert_eq!(first.instead(), "Ralph: paused at iteration 1 of 3. /ralph-resume goes on.");
        assert!(second.json.is_none() || second == first, "{second:?}");
        let (first, second) = send(&bed, "ralph-resume", "");
        let (_, text, line) = context(&first);
        assert_eq!((text.as_str(), line.as_str()), ("Go on with this task now:\n\nGo on", "Ralph: the loop goes on at iteration 1 of 3."));
        second.is_silent();
        let (first, second) = send(&bed, "ralph-status", "");
        assert_eq!(timeless(&first.instead()), "Ralph loop: active, iteration 1 of 3, 0 s, ends on a limit or a cancel");
        assert_eq!(timeless(&format!("{first:?}")), timeless(&format!("{second:?}")));
        let (first, second) = send(&bed, "cancel-ralph", "");
        let told = "Ralph loop cancelled at iteration 1 (0 s). It is kept in the archive: /ralph-resume brings it back.";
        assert_eq!(timeless(&first.instead()), told);
        assert_eq!(first, second);
        assert_eq!(bed.kinds(), ["started", "paused", "resumed", "cancelled"]);
        assert_eq!(bed.files_in(".ralph/archive").len(), 1);
    }
}

/// The same text typed again in a later turn is a new command.
#[test]
fn s1_3_the_same_command_in_a_later_turn_is_a_new_one() {
    let bed = Bed::new();
    for turn in ["a", "b", "c"] {
        context(&submit(&bed, "ralph-loop", "Go", turn).send());
        expansion(&bed, "ralph-loop", "Go", turn).send().is_silent();
        submit(&bed, "cancel-ralph", "", &format!("{turn}2")).send().instead();
        expansion(&bed, "cancel-ralph", "", &format!("{turn}2")).send().instead();
        assert!(!bed.exists(LOOP));
    }
    assert_eq!(bed.files_in(".ralph/archive").len(), 3);
}

/// pains 9, design 4 "a cancel always wins": also from a client whose events carry no id of the turn, typed twice within a minute.
#[test]
fn pains_9_a_second_cancel_without_a_turns_id_cancels_too() {
    let bed = Bed::new();
    for round in 0..2 {
        submit(&bed, "ralph-loop", &format!("Go {round}"), "x").without("prompt_id").send();
        assert!(bed.exists(LOOP), "iteration {round}");
        submit(&bed, "cancel-ralph", "", "x").without("prompt_id").send();
        assert!(!bed.exists(LOOP), "iteration {round}: the loop is still there after a cancel");
    }
}

/// The same for the start: the second one is a new loop, not a repetition of the first.
#[test]
fn s1_3_a_second_start_without_a_turns_id_starts_too() {
    let bed = Bed::new();
    for _ in 0..2 {
        context(&submit(&bed, "ralph-loop", "Go", "x").without("prompt_id").send());
        assert!(bed.exists(LOOP));
        bed.ralph_ok(&["cancel"]);
    }
}

/// S1-AC6: the file is gone (archived), statistics are shown, and the model is not asked.
#[test]
fn s1_ac6_cancel_archives_the_loop_and_shows_statistics() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    bed.work().send();
    let before = bed.loop_bytes();
    assert_eq!(
        submit(&bed, "cancel-ralph", "", "t").send().instead(),
        "Ralph loop cancelled at iteration 3 (0 s). It is kept in the archive: /ralph-resume brings it back."
    );
    assert!(!bed.exists(LOOP));
    assert_eq!(bed.archived(), before);
    assert_eq!(bed.last_ended()["status"], "cancelled");
    bed.work().send().is_silent();
}

/// S1-AC7
#[test]
fn s1_ac7_cancel_without_a_loop() {
    let bed = Bed::new();
    for name in ["cancel-ralph", "ralph-cancel", "ralph:cancel", "ralph-status", "ralph-pause", "ralph-resume"] {
        assert_eq!(submit(&bed, name, "", "t").send().instead(), "No active Ralph loop", "{name}");
    }
    let out = bed.ralph(&["cancel"]);
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(3), "No active Ralph loop\n", ""));
    // Asking for nothing leaves nothing behind.
    assert!(!bed.exists(LOOP));
}

/// A cancel typed in one session ends that session's loop and no other's; the only loop of the project is meant by any session.
#[test]
fn s1_ac6_cancel_ends_this_sessions_loop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.write(".claude/ralph-loop.docs.local.md", crate::common::loop_text(OTHER, 5, 0, "DONE"));
    submit(&bed, "cancel-ralph", "", "t").session(OTHER).send().instead();
    assert!(bed.exists(LOOP) && !bed.exists(".claude/ralph-loop.docs.local.md"));
    submit(&bed, "cancel-ralph", "", "t2").session("third").send().instead();
    assert!(!bed.exists(LOOP));
}

/// pains 8: any bytes in the prompt survive, and nothing of it is code to anybody.
#[test]
fn pains_8_the_prompt_survives_byte_for_byte() {
    let nasty = [
        "don't stop",
        "fix auth; rm -rf / && echo $(id) `id` ${HOME} $HOME !! *",
        "quote \" and ' and ` and \\ and \\n and \\\\",
        "tab\there, two  blanks,   three",
        "line one\nline two\n\n\nline five",
        "crlf\r\nends",
        "---\nnot: front matter\n---\nat all",
        "# heading\n- item\n```sh\necho \"$X\" --not-a-flag\n```",
        "ünïcødé Привет 世界 🎉👩‍👩‍👧 \u{202e}rtl\u{202c} \u{feff}bom \u{2028}sep",
        "nul \u{0} bell \u{7} esc \u{1b}[31m del \u{7f}",
        "{\"json\": [1, null]} <xml a='b'/> %s %d {} {0} $1 @file #tag",
        "a - b -- c",
        "-x --",
        "C:\\Users\\né\\file.txt",
        "<promise>DONE</promise>",
        "'single'",
        "say \"hello world\" twice",
    ];
    for prompt in nasty {
        let bed = Bed::new();
        // Quoted as a whole, or bare where no word of it looks like a flag.
        let args = if prompt.contains("--") { format!("-- {prompt}") } else { prompt.to_owned() };
        submit(&bed, "ralph-loop", &args, "t").send();
        let text = String::from_utf8(bed.loop_bytes()).unwrap();
        let body = text.split_once("remind: true\n---\n\n").unwrap_or_else(|| panic!("{text}")).1;
        let expected = if prompt == "'single'" { "single" } else { prompt };
        assert_eq!(body, format!("{expected}\n"), "{prompt:?}");
        // And it comes back to the agent as it was typed.
        bed.work().send().blocks_with(expected);
        // Through the other event, too.
        let other = Bed::new();
        expansion(&other, "ralph-loop", &args, "t").send();
        assert_eq!(String::from_utf8(other.loop_bytes()).unwrap().split_once("remind: true\n---\n\n").unwrap().1, body);
    }
}

/// pains 8: any words in the promise survive the way through YAML.
#[test]
fn pains_8_the_promise_survives() {
    for promise in [
        "ALL DONE",
        "it's: done # really",
        "say \"hi\"",
        "back\\slash",
        "Готово 🎉",
        "null",
        "- x",
        "{a}",
        "true",
        "0x10",
        "\u{7}bell",
        "tab\tinside",
    ] {
        let bed = Bed::new();
        let quote = if promise.contains('"') { '\'' } else { '"' };
        submit(&bed, "ralph-loop", &format!("Go --completion-promise {quote}{promise}{quote}"), "t").send();
        assert_eq!(bed.status()["completion_promise"], promise);
        bed.stop(&format!("<promise>{promise}</promise>")).send();
        assert_eq!(bed.codes(), ["promise.accepted"], "{promise:?}");
    }
}

/// pains 8: `--x y`, `--x=y`, before, after and between the words.
#[test]
fn pains_8_flags_in_every_place_and_form() {
    for args in [
        "--max-iterations 7 --completion-promise \"ALL DONE\" Fix it all",
        "Fix it all --max-iterations=7 --completion-promise=\"ALL DONE\"",
        "Fix --max-iterations 7 it --completion-promise 'ALL DONE' all",
        "\"Fix it all\" --completion-promise 'ALL DONE' --max-iterations 7",
    ] {
        let bed = Bed::new();
        context(&submit(&bed, "ralph-loop", args, "t").send());
        let status = bed.status();
        assert_eq!(
            (&status["max_iterations"], &status["completion_promise"], &status["prompt"]),
            (&json!(7), &json!("ALL DONE"), &json!("Fix it all")),
            "{args}"
        );
    }
    let bed = Bed::new();
    let line = context(&submit(&bed, "ralph-loop", "Go --hours 0.5 --idle-iterations 4 --name docs", "t").send()).2;
    assert_eq!(
        line,
        "Ralph: loop started: no promise: only a limit or a cancel ends it; no limit on iterations; at most 30 min; pauses after 4 iterations in a \
         row without any tool call; pauses after 10 iterations in a row that change nothing: no commit, no file, no finding."
    );
    assert!(bed.exists(".claude/ralph-loop.docs.local.md"));
}

/// pains 8: flags inside quotes are prompt text, and the person is warned.
#[test]
fn pains_8_flags_inside_quotes_are_warned_of() {
    let bed = Bed::new();
    let line = context(&submit(&bed, "ralph-loop", "\"fix it --max-iterations 3\"", "t").send()).2;
    assert!(line.ends_with(".\nRalph: --max-iterations stands inside quotes, so it is part of the prompt and sets nothing."), "{line}");
    assert_eq!(bed.status()["max_iterations"], 0);
    assert_eq!(bed.status()["prompt"], "fix it --max-iterations 3");
}

/// pains 8: an unknown flag is refused, with the one that was meant; nothing is started.
#[test]
fn pains_8_an_unknown_flag_is_refused_with_a_suggestion() {
    let cases = [
        ("Go --max-iteration 5", "unknown flag --max-iteration: did you mean --max-iterations?"),
        ("Go --max_iterations=5", "unknown flag --max_iterations: did you mean --max-iterations?"),
        ("Go --complete-promise X", "unknown flag --complete-promise: "),
        ("Go --frobnicate", "unknown flag --frobnicate: the flags are --max-iterations, "),
        ("Go --max-iterations", "--max-iterations needs a value"),
        ("Go --max-iterations --hours 3", "--max-iterations needs a value"),
        ("Go --max-iterations five", "--max-iterations needs a whole number from 0 on, not \"five\""),
        ("Go --max-iterations -5", "--max-iterations needs a whole number from 0 on, not \"-5\""),
        ("Go --hours never", "--hours needs a number of hours from 0 on, not \"never\""),
        ("Go --name ../../etc", "--name needs letters, digits, - and _ only, not \"../../etc\""),
        ("Go --completion-promise \"\"", "--completion-promise needs words"),
        (
            "",
            "there is no prompt: say what the agent should work on, as in `/ralph-loop Fix the failing tests`; `/ralph help` shows the options",
        ),
        ("--max-iterations 5", "there is no prompt: say what the agent should work on"),
    ];
    for (args, refusal) in cases {
        let bed = Bed::new();
        for event in [submit(&bed, "ralph-loop", args, "t"), expansion(&bed, "ralph-loop", args, "t")] {
            let text = event.send().instead();
            assert!(text.starts_with(&format!("Ralph: {refusal}")), "{args:?}: {text}");
        }
        assert!(!bed.exists(LOOP), "{args}");
    }
}

/// A live loop is never overwritten, and one session carries one loop at a time.
#[test]
fn s1_3_a_live_loop_is_not_overwritten() {
    let bed = Bed::with_loop(3, 9, "DONE");
    let before = bed.loop_bytes();
    let text = submit(&bed, "ralph-loop", "Another task", "t").send().instead();
    assert_eq!(
        text,
        "Ralph: a loop is active in this project (iteration 3 of 9). /ralph-status shows it, /ralph-resume goes on with it, /cancel-ralph ends it."
    );
    let named = submit(&bed, "ralph-loop", "Another task --name docs", "t2").send().instead();
    assert!(named.starts_with("Ralph: a loop is active"), "{named}");
    assert_eq!(bed.loop_bytes(), before);
    // Another session may have its own.
    context(&submit(&bed, "ralph-loop", "Another task --name docs", "t3").session(OTHER).send());
    bed.work().session(OTHER).send().blocks();
    bed.work().send().blocks_with(PROMPT);
}

/// Other plugins' commands and words that only look like commands are none of ralph's business.
#[test]
fn s1_3_other_commands_are_left_alone() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let before = bed.tree();
    for name in ["ralph-loop:ralph-loop", "ralph-wiggum:cancel-ralph", "other", "ralphloop", "cancel"] {
        submit(&bed, name, "", "t").send().is_silent();
        expansion(&bed, name, "", "t").send().is_silent();
    }
    for text in ["please run /cancel-ralph", "cancel-ralph", "// cancel-ralph", "", "/"] {
        bed.typed(text).send().is_silent();
    }
    assert_eq!(bed.tree(), before);
}

/// Resume typed in another session takes the loop over.
#[test]
fn s2_8_resume_in_another_session_takes_the_loop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let (_, text, _) = context(&submit(&bed, "ralph-resume", "", "t").session(OTHER).send());
    assert_eq!(text, format!("Go on with this task now:\n\n{PROMPT}"));
    assert_eq!(bed.value("session_id"), format!("\"{OTHER}\""));
    bed.work().send().is_silent();
    bed.work().session(OTHER).send().blocks_with(PROMPT);
}

/// A prompt that is larger than a loop file may be is refused when it is typed, not at the first stop.
#[test]
fn pains_8_a_prompt_that_cannot_be_read_back_is_refused() {
    let bed = Bed::new();
    let answer = submit(&bed, "ralph-loop", &"x ".repeat(9 * 1024 * 1024), "t").send();
    assert!(answer.json.is_some());
    if bed.exists(LOOP) {
        assert!(bed.work().send().blocks(), "started, and dead at its first stop");
    }
}

/// `/cancel-ralph NAME` is about that loop, and `/ralph cancel` is a cancel.
#[test]
fn s1_ac6_a_cancel_means_the_loop_that_it_names() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    let docs = ".claude/ralph-loop.docs.local.md";
    bed.write(docs, loop_text(OTHER, 1, 0, "DONE"));
    let text = submit(&bed, "cancel-ralph", "--name docs", "t").send().instead();
    assert!(text.starts_with("Ralph loop of session "), "{text}");
    assert!(bed.exists(LOOP) && !bed.exists(docs));
    submit(&bed, "ralph", "cancel", "t2").send().instead();
    assert!(!bed.exists(LOOP));
}

/// A loop whose stop was let through because this waits in the queue; returns what the person was told.
fn held_up_by(typed: &str) -> (Bed, Transcript, Answer) {
    let bed = Bed::with_loop(1, 9, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").waits(typed).says("m1", "Iteration one.");
    let answer = bed.stop("Iteration one.").send();
    assert_eq!(bed.codes(), ["host.queued-input"]);
    transcript.queue("dequeue");
    (bed, transcript, answer)
}

/// Status and refusals that waited in the queue are answered, and the loop goes on with them: the stop was let through for their sake. Clients report them
/// twice, in either order.
#[test]
fn s1_3_a_command_that_waited_does_not_end_the_loop() {
    for (name, args, said) in [
        ("ralph-status", "", "Ralph loop: active, iteration 1 of 9"),
        ("ralph-loop", "again", "Ralph: a loop is active"),
        ("ralph-loop", "x --max-iteration 3", "did you mean"),
    ] {
        for submit_first in [true, false] {
            let (bed, transcript, answer) = held_up_by(&format!("/{name} {args}"));
            answer.is_silent();
            let (mut one, mut two) = (submit(&bed, name, args, "t"), expansion(&bed, name, args, "t"));
            if !submit_first {
                std::mem::swap(&mut one, &mut two);
            }
            let (_, agent, person) = context(&one.send());
            assert!(person.contains(said), "{person}");
            assert!(agent.ends_with(PROMPT) && agent.contains("go on with your task"), "{agent}");
            two.send().is_silent();
            transcript.user("go on").says("m2", "Iteration two.");
            assert_eq!(bed.iteration(), 2, "the iteration that the answer began counts");
            bed.stop("Iteration two.").send().blocks_with(PROMPT);
            assert_eq!(bed.iteration(), 3);
        }
    }
}

/// u6: a command that waited costs no iteration: the agent hears with its answer what it would have been sent back with, and the next claim counts.
#[test]
fn u6_a_command_that_waited_brings_what_the_stop_would_have_said() {
    const CLAIM: &str = "It works.\n\n<promise>DONE</promise>";
    for (note, told) in
        [(None, ["was claimed but is not proven", "apples are wrong"]), (Some("Use tabs"), ["The note comes first", "- Use tabs"])]
    {
        let bed = Bed::with_loop(1, 9, "DONE");
        bed.write("ralph.toml", "[[gate]]\nname = \"tests\"\ncommand = \"echo apples are wrong; test -e fixed\"\n");
        bed.ralph_ok(&["trust", "--yes"]);
        if let Some(note) = note {
            bed.ralph_ok(&["steer", note]);
        }
        let transcript = bed.transcript();
        transcript.user("go").waits("/ralph-status").says("m1", CLAIM);
        bed.stop(CLAIM).field("prompt_id", "s").send().is_silent();
        assert_eq!(bed.codes(), ["host.queued-input"]);
        transcript.queue("dequeue");
        let (_, agent, person) = context(&submit(&bed, "ralph-status", "", "t").send());
        assert!(person.contains("Ralph loop: active, iteration 1 of 9"), "{person}");
        for told in told {
            assert!(agent.contains(PROMPT) && agent.contains(told), "{told}: {agent}");
        }
        transcript.user("go on").uses_tool("m2").says("m3", CLAIM);
        bed.write("fixed", "");
        let line = bed.stop(CLAIM).field("prompt_id", "t").send().line();
        assert!(line.contains("complete after 2 iterations"), "{line}");
    }
}

/// Without anything in the queue before, and after an interrupt, status is only an answer.
#[test]
fn s1_3_status_alone_sends_nobody_on() {
    let bed = Bed::with_loop(1, 9, "DONE");
    assert!(submit(&bed, "ralph-status", "", "t").send().instead().starts_with("Ralph loop: active"));
    bed.work().send();
    submit(&bed, "ralph-status", "", "t2").send().instead();
    let (bed, transcript, _) = held_up_by("what is 2 + 2?");
    transcript.user("what is 2 + 2?").says("m2", "Let me").user("[Request interrupted by user]");
    submit(&bed, "ralph-status", "", "t").send().instead();
    let (bed, _, _) = held_up_by("/ralph-status");
    bed.ralph_ok(&["pause"]);
    submit(&bed, "ralph-status", "", "t").send().instead();
}

/// Only the command that the stop was let through for sends the agent on, and only then.
#[test]
fn s1_3_a_later_command_sends_nobody_on() {
    for between in ["StopFailure", "SessionEnd"] {
        let (bed, _, _) = held_up_by("/ralph-status");
        bed.event(between).field("error", "server_error").field("reason", "other").send();
        submit(&bed, "ralph-status", "", "t").send().instead();
    }
    let (bed, _, _) = held_up_by("/context");
    submit(&bed, "ralph-status", "", "t").send().instead();
    let (bed, transcript, _) = held_up_by("/ralph-status");
    transcript.user("[Request interrupted by user]");
    submit(&bed, "ralph-status", "", "t").send().instead();
    transcript.user("<command-name>/ralph-status</command-name>").user("Operation stopped by hook: Ralph loop: active");
    submit(&bed, "ralph-status", "", "t2").send().instead();
}

/// Ending or pausing another loop leaves the own one running; ending or pausing the own one does not.
#[test]
fn pains_9_a_cancel_that_waited_is_about_the_loop_that_it_names() {
    for (name, goes_on) in [("cancel-ralph docs", true), ("ralph-pause docs", true), ("cancel-ralph", false), ("ralph-pause", false)] {
        let (bed, _, answer) = held_up_by(&format!("/{name}"));
        answer.is_silent();
        bed.write(".claude/ralph-loop.docs.local.md", loop_text(OTHER, 1, 0, "DONE"));
        let (command, args) = name.split_once(' ').unwrap_or((name, ""));
        let one = submit(&bed, command, args, "t").send();
        let two = expansion(&bed, command, args, "t").send();
        if goes_on {
            assert!(context(&one).1.ends_with(PROMPT));
            two.is_silent();
        } else {
            one.instead();
        }
    }
}

/// A limit that is reached ends the loop, whatever waits: the input is let through with it.
#[test]
fn s1_ac5_what_waits_in_the_queue_does_not_lead_past_a_limit() {
    let bed = Bed::with_loop(3, 3, "DONE");
    bed.transcript().user("go").waits("/ralph-status").says("m1", "Iteration three.");
    bed.stop("Iteration three.").send();
    assert_eq!(bed.last_ended()["status"], "capped");
    let (bed, transcript, _) = held_up_by("/ralph-status");
    for n in 2..=9 {
        submit(&bed, "ralph-status", "", &format!("t{n}")).send();
        transcript.user("go on").waits("/ralph-status").says(&format!("m{n}"), &format!("Iteration {n}."));
        bed.stop(&format!("Iteration {n}.")).send();
        transcript.queue("dequeue");
    }
    assert_eq!((bed.last_ended()["status"].clone(), bed.last_ended()["iteration"].clone()), (json!("capped"), json!(9)));
}

/// A command that is not ralph's may start no turn: the person is told how the loop goes on then, and it does.
#[test]
fn pains_9_another_command_goes_first_and_the_person_is_told() {
    let (bed, _, answer) = held_up_by("/context");
    let told = "Ralph: /context goes first. If it leaves the agent with nothing to do, /ralph-resume goes on with the loop.";
    assert_eq!(answer.json, Some(json!({ "systemMessage": told })));
    let (_, agent, _) = context(&submit(&bed, "ralph-resume", "", "t").send());
    assert!(agent.ends_with(PROMPT), "{agent}");
    for typed in ["/cancel-ralph", "/ralph:status", "plain words", "/ralph pause", "/etc/hosts is wrong"] {
        held_up_by(typed).2.is_silent();
    }
}

/// A deadline is for commands, and without any it would set nothing.
#[test]
fn s3_3_a_deadline_can_be_typed() {
    let bed = Bed::new();
    let refused = submit(&bed, "ralph-loop", "fix it --deadline 10m", "t").send();
    assert!(refused.json.unwrap()["stopReason"].as_str().unwrap().contains("give --verify as well"));
    let (_, _, line) = context(&submit(&bed, "ralph-loop", "fix it --verify \"cargo test\" --deadline 10m", "u").send());
    assert!(line.contains("\nRalph: gate: cargo test (at most 10 min)."), "{line}");
    assert!(bed.read(LOOP).contains("  - run: \"cargo test\"\n    deadline: 10m\n"));
}
