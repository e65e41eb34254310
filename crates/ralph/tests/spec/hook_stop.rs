//! The stop hook's sequence, S0-1 … S0-11, and hook mode's acceptance criteria S1-AC2 … S1-AC5.

use std::fs;

use serde_json::json;

use crate::common::{Bed, LOOP, ME, OTHER, PROMPT, loop_text};

/// S0-1: every call leaves one line with trigger, decision, reason and error.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "a release build has no fault to provoke")]
fn s0_1_every_call_is_in_the_debug_log() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    bed.work().session(OTHER).send();
    bed.event("PreCompact").field("trigger", "auto").send();
    bed.event("Stop").send_raw("no json");
    bed.work().env("RALPH_FAULT", "panic").send();
    bed.stop("<promise>DONE</promise>").send();
    let log = bed.hook_log();
    let id = bed.files_in(".ralph/journal")[0].file_stem().unwrap().to_str().unwrap().to_owned();
    assert_eq!(log[0], format!("event=Stop decision=block code=promise.missing session={ME} loop={id}"));
    assert_eq!(log[1], format!("event=Stop decision=allow code=session.other session={OTHER}"));
    assert_eq!(log[2], format!("event=PreCompact decision=allow code=event.heard session={ME} loop={id}"));
    assert!(log[3].starts_with("event=? decision=allow code=input.invalid session=- error=\"expected ident"), "{}", log[3]);
    let error = "error=\"internal error: provoked by RALPH_FAULT\"";
    assert_eq!(log[4], format!("event=Stop decision=allow code=internal.error session={ME} loop={id} {error}"));
    assert_eq!(log[5], format!("event=Stop decision=allow code=loop.paused session={ME} loop={id}"));
    assert_eq!(log.len(), 6);
}

/// S0-1: in a project that does not use ralph only the log that the user named is written.
#[test]
fn s0_1_the_users_own_log_file_works_without_a_loop() {
    let bed = Bed::new();
    let log = bed.home().join("all hooks.log");
    bed.work().env("RALPH_LOG", &log).send().is_silent();
    let text = fs::read_to_string(&log).unwrap();
    let (time, rest) = text.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && time.len() == 24, "{time}");
    assert_eq!(rest, format!("event=Stop decision=allow code=loop.none session={ME}\n"));
    assert_eq!(bed.tree().len(), 0);
}

/// S0-1: the log is bounded, and one old log is kept.
#[test]
fn s0_1_the_debug_log_is_bounded() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    bed.write(".ralph/hook.log", vec![b'x'; 1024 * 1024]);
    bed.work().send();
    assert!(!bed.exists(".ralph/hook.log"));
    bed.work().send();
    assert_eq!(bed.hook_log().len(), 1);
    assert_eq!(bed.files_in(".ralph").iter().filter(|p| p.to_string_lossy().contains("hook.log")).count(), 2);
}

/// S0-2
#[test]
fn s0_2_without_a_loop_file_the_hook_is_silent_and_leaves_no_trace() {
    let bed = Bed::new();
    bed.work().send().is_silent();
    assert!(bed.tree().is_empty());
    bed.write(".claude/settings.json", "{}");
    let before = bed.tree();
    bed.work().send().is_silent();
    bed.event("SessionStart").field("source", "startup").send().is_silent();
    bed.typed("hello").send().is_silent();
    assert_eq!(bed.tree(), before);
}

/// S0-2: names that only look like a loop's are no loops.
#[test]
fn s0_2_only_loop_files_are_loops() {
    let bed = Bed::new();
    for name in ["ralph-loop.md", "ralph-loop.local.md.bak", "ralph-loop..local.md", "ralph-loop.a b.local.md", "ralph-loop.local.md~"] {
        bed.write(format!(".claude/{name}"), loop_text(ME, 1, 0, "DONE"));
    }
    bed.work().send().is_silent();
    assert!(!bed.exists(".ralph"));
}

/// S0-4: each broken file ends the loop with a clear message, moves to the archive as it is, and allows the stop.
#[test]
fn s0_4_a_file_that_cannot_be_read_ends_the_loop_and_is_kept() {
    let head = format!("---\nsession_id: {ME}\n");
    let cases: &[(String, &str)] = &[
        (format!("{head}---\nPrompt\n"), "`iteration` is missing"),
        (format!("{head}iteration: -1\n---\nPrompt\n"), "line 3: `iteration` must be a whole number from 0 on, not `-1`"),
        (format!("{head}iteration: 1.5\n---\nPrompt\n"), "line 3: `iteration` must be a whole number from 0 on, not `1.5`"),
        (format!("{head}iteration: abc\n---\nPrompt\n"), "line 3: `iteration` must be a whole number from 0 on, not `abc`"),
        (format!("{head}iteration:\n---\nPrompt\n"), "`iteration` is missing"),
        (format!("{head}iteration: [1]\n---\nPrompt\n"), "line 3: `iteration` must be a single value"),
        (format!("{head}iteration: 1\niteration: 2\n---\nPrompt\n"), "line 4: `iteration` is given twice"),
        (
            format!("{head}iteration: 1\nmax_iterations: many\n---\nPrompt\n"),
            "line 4: `max_iterations` must be a whole number from 0 on, not `many`",
        ),
        (format!("{head}iteration: 1\n---\n"), "there is no prompt after the front matter"),
        (format!("{head}iteration: 1\n---\n \n\t\n"), "there is no prompt after the front matter"),
        (format!("{head}iteration: 1\n"), "the closing `---` line of the front matter is missing"),
        ("no front matter, only a prompt\n".to_owned(), "line 1: the file does not begin with a `---` line"),
        (String::new(), "line 1: the file does not begin with a `---` line"),
        ("\0\0\0\0".to_owned(), "line 1: the file does not begin with a `---` line"),
    ];
    for (text, problem) in cases {
        let bed = Bed::new();
        bed.write(LOOP, text);
        let line = bed.work().send().line();
        let archived = bed.files_in(".ralph/archive");
        assert_eq!(archived.len(), 1, "{text:?}");
        let id = archived[0].file_stem().unwrap().to_str().unwrap();
        assert_eq!(
            line,
            format!(
                "Ralph: {LOOP} cannot be read: {problem}. The loop has ended; its file is in .ralph/archive/{id}.md. \
                 Fix it there, then `/ralph-resume {id}`."
            )
        );
        assert!(!bed.exists(LOOP));
        assert_eq!(bed.archived(), text.as_bytes());
        assert_eq!(bed.last_ended()["status"], "failed");
        // The loop has ended once, and nobody is told again.
        bed.work().send().is_silent();
    }
}

/// S0-4: YAML errors name the line; the parser's own words follow.
#[test]
fn s0_4_yaml_errors_name_the_line() {
    for (text, line) in [("---\niteration: 1\nbroken: \"no end\n---\nPrompt\n", 3), ("---\niteration: 1\n\tbad: tab\n---\nPrompt\n", 3)] {
        let bed = Bed::new();
        bed.write(LOOP, text);
        let said = bed.work().send().line();
        let begin = format!("Ralph: {LOOP} cannot be read: line ");
        let rest = said.strip_prefix(&begin).unwrap_or_else(|| panic!("{said}"));
        let number: usize = rest.split(':').next().unwrap().parse().unwrap();
        assert!(number.abs_diff(line) <= 1, "{said}");
        assert_eq!(bed.archived(), text.as_bytes());
    }
}

/// S0-4: a broken file of another session is that session's business.
#[test]
fn s0_4_a_broken_file_of_another_session_is_left_alone() {
    let bed = Bed::new();
    bed.write(LOOP, format!("---\nsession_id: \"{OTHER}\"\niteration: x\n---\nPrompt\n"));
    let before = bed.tree();
    bed.work().send().is_silent();
    assert_eq!(bed.tree(), before);
    assert!(bed.work().session(OTHER).send().line().contains("cannot be read"));
}

/// S0-5, S1-AC5
#[test]
fn s0_5_s1_ac5_the_limit_ends_the_loop_with_a_message() {
    let bed = Bed::with_loop(3, 3, "DONE");
    let before = bed.loop_bytes();
    bed.work().send().tells(
        "Ralph: stopped at its limit of 3 iterations, without the promise. The loop is kept: `/ralph-resume --max-iterations 6` goes on.",
    );
    assert!(!bed.exists(LOOP));
    assert_eq!(bed.archived(), before);
    assert_eq!(bed.codes(), ["limit.iterations"]);
    let ended = bed.last_ended();
    assert_eq!((ended["status"].as_str(), ended["iteration"].as_u64()), (Some("capped"), Some(3)));
    bed.work().send().is_silent();
}

/// S0-5: a loop without a promise does not speak of one when it reaches its limit.
#[test]
fn s0_5_the_limit_of_a_loop_without_a_promise() {
    let bed = Bed::with_loop(5, 5, "null");
    let line = bed.work().send().line();
    assert!(line.starts_with("Ralph: stopped at its limit of 5 iterations"), "{line}");
    assert!(!line.contains("promise"), "there was none to keep: {line}");
}

/// S0-5: below the limit it goes on; the limit is the last round that is worked on.
#[test]
fn s0_5_a_limit_of_three_is_three_rounds() {
    let bed = Bed::with_loop(1, 3, "DONE");
    assert_eq!(bed.work().send().blocks_with(PROMPT), "Ralph: iteration 2 of 3. Ends on <promise>DONE</promise>.");
    assert_eq!(bed.work().send().blocks_with(PROMPT), "Ralph: iteration 3 of 3. Ends on <promise>DONE</promise>.");
    assert!(!bed.work().send().blocks());
    assert_eq!(bed.codes(), ["promise.missing", "promise.missing", "limit.iterations"]);
}

/// S0-5: iteration above the limit (somebody lowered it) ends it too; 0 is no limit, and so is none given.
#[test]
fn s0_5_edges_of_the_limit() {
    let above = Bed::with_loop(9, 3, "DONE");
    assert!(!above.work().send().blocks());
    assert!(!above.exists(LOOP));
    let none = Bed::with_loop(1_000_000, 0, "DONE");
    assert_eq!(none.work().send().blocks_with(PROMPT), "Ralph: iteration 1000001. Ends on <promise>DONE</promise>.");
    let unset = Bed::new();
    unset.write(LOOP, format!("---\niteration: 0\nsession_id: {ME}\n---\nGo\n"));
    assert_eq!(unset.work().send().blocks_with("Go"), "Ralph: iteration 1, no iteration limit and no promise. /cancel-ralph ends it.");
}

/// S0-5: the largest numbers there are end in words, not in an internal error.
#[test]
fn s0_5_the_largest_numbers() {
    let bed = Bed::with_loop(u64::MAX, u64::MAX, "DONE");
    let line = bed.work().send().line();
    assert!(line.starts_with(&format!("Ralph: stopped at its limit of {} iterations", u64::MAX)), "{line}");
    assert_ne!(bed.ralph(&["resume"]).code, Some(101));
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("iteration: 1\n", "iteration: 99999999999999999999\n"));
    assert!(bed.work().send().line().contains("`iteration` must be a whole number from 0 on"));
}

/// S0-8, S1-AC4
#[test]
fn s0_8_s1_ac4_the_promise_completes_the_loop() {
    let bed = Bed::with_loop(4, 20, "COMPLETE");
    let before = bed.loop_bytes();
    let answer = bed.stop("All of it works now.\n\n<promise>COMPLETE</promise>").send();
    answer.tells("Ralph: complete after 4 iterations (0 s): the agent claimed <promise>COMPLETE</promise>.");
    assert!(!bed.exists(LOOP));
    assert_eq!(bed.archived(), before);
    assert_eq!(bed.codes(), ["promise.accepted"]);
    assert_eq!(bed.last_ended()["status"], "complete");
    bed.work().send().is_silent();
}

/// S0-9
#[test]
fn s0_9_without_a_promise_the_loop_goes_on_until_its_limit() {
    let bed = Bed::with_loop(1, 3, "null");
    let said = bed.stop("<promise>COMPLETE</promise>").send();
    assert_eq!(said.blocks_with(PROMPT), "Ralph: iteration 2 of 3, no promise: it ends at the limit or with /cancel-ralph.");
    assert_eq!(
        bed.stop("<promise>null</promise>").send().blocks_with(PROMPT),
        "Ralph: iteration 3 of 3, no promise: it ends at the limit or with /cancel-ralph."
    );
    assert!(!bed.work().send().blocks());
    assert_eq!(bed.codes(), ["promise.none", "promise.none", "limit.iterations"]);
}

/// S0-9: all the ways to say "none".
#[test]
fn s0_9_an_empty_promise_is_no_promise() {
    for none in ["null", "~", "", "\"\"", "''", "\"  \""] {
        let bed = Bed::new();
        bed.write(LOOP, format!("---\niteration: 1\nsession_id: {ME}\ncompletion_promise: {none}\n---\nGo\n"));
        bed.stop("<promise></promise>").send().blocks_with("Go");
        assert_eq!(bed.codes(), ["promise.none"], "{none:?}");
    }
}

/// S0-10, S1-AC2: one compact line; the prompt comes back; one value changes in the file.
#[test]
fn s0_10_s1_ac2_a_stop_in_mid_loop_is_blocked_and_the_prompt_comes_back() {
    let bed = Bed::with_loop(1, 20, "DONE");
    let event = bed.work();
    let out = ralph_testkit::process::run_bounded(&mut event.command(), event.json().as_bytes(), std::time::Duration::from_secs(10));
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        out.stdout,
        "{\"decision\":\"block\",\"reason\":\"Make the tests pass.\\nThen write the notes.\",\
         \"systemMessage\":\"Ralph: iteration 2 of 20. Ends on <promise>DONE</promise>.\"}\n"
    );
    assert_eq!(bed.read(LOOP), loop_text(ME, 2, 20, "DONE"));
}

/// S0-10: the journal tells the same story as the file.
#[test]
fn s0_10_the_journal_has_the_evidence_and_the_ruling() {
    let bed = Bed::with_loop(1, 20, "DONE");
    bed.stop("Not finished.").client("claude-code_2-1-197_harness").send();
    let journal = bed.journal();
    let record = journal.last().unwrap();
    assert_eq!(record["v"], 1);
    assert_eq!(record["session"], ME);
    assert_eq!(
        record["event"]["ruling"],
        json!({"decision": "block", "code": "promise.missing", "next": {"loop": "goes-on", "iteration": 2}})
    );
    let evidence = &record["event"]["evidence"];
    assert_eq!(evidence["iteration"], 1);
    assert_eq!(evidence["max_iterations"], 20);
    assert_eq!(evidence["promise"], "DONE");
    assert_eq!(evidence["claim"], json!({"is": "none"}));
    assert_eq!(evidence["message"], json!({"from": "event"}));
    assert_eq!(record["event"]["said"], "Not finished.");
    assert_eq!(record["event"]["client"], "2.1.197");
    assert_eq!(record["state"]["stops"], 1);
    assert_eq!(record["state"]["iteration"], 2);
}

/// S1-AC2: `stop_hook_active` is information and no reason to yield (also S4-4).
#[test]
fn s1_ac2_stop_hook_active_is_no_reason_to_yield() {
    let bed = Bed::with_loop(1, 0, "DONE");
    for n in 2..6 {
        bed.work().field("stop_hook_active", true).send().blocks_with(PROMPT);
        assert_eq!(bed.iteration(), n);
    }
}

/// S0-11: the hook can be called without arguments, as clients without the exec form do.
#[test]
fn s0_11_the_bare_program_is_the_hook() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let event = bed.work();
    for args in [vec![], vec!["hook"]] {
        let out = bed.run(crate::common::RALPH).args(&args).env("CLAUDE_PROJECT_DIR", bed.dir()).stdin(event.json()).output();
        crate::common::Answer::of(&out).blocks_with(PROMPT);
    }
}

/// S0-11: whatever the registration says about the limit of time, a stop is answered.
#[test]
fn s0_11_an_odd_limit_is_no_reason_not_to_answer() {
    let bed = Bed::with_loop(1, 0, "DONE");
    for args in [
        &["hook", "claude", "--timeout", "3600"][..],
        &["hook", "claude", "--timeout=3600"],
        &["hook", "--timeout", "3600"],
        &["hook", "claude", "--timeout"],
        &["hook", "claude", "--timeout", "soon"],
        &["hook", "claude", "--timeout", "-1"],
        &["hook", "claude", "--timeout", "1e999"],
        &["hook", "claude", "--timeout", "0", "--timeout", "5"],
        &["hook", "claude", "--newer-option"],
    ] {
        let out = bed.run(crate::common::RALPH).args(args).env("CLAUDE_PROJECT_DIR", bed.dir()).stdin(bed.work().json()).output();
        crate::common::Answer::of(&out).blocks_with(PROMPT);
    }
}

/// S0-11: a mistyped registration must not block the agent, which is what an exit code of 2 means to it.
#[test]
fn s0_11_a_mistyped_registration_blocks_nobody() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let out = bed.run(crate::common::RALPH).args(["hook", "nobody"]).stdin(bed.work().json()).output();
    let line = "Ralph: the hook is registered as `ralph hook nobody`, which is not known; it is `ralph hook claude`.";
    assert_eq!((out.code, out.stdout), (Some(0), format!("{}\n", serde_json::json!({ "systemMessage": line }))));
    let typo =
        bed.run(crate::common::RALPH).args(["hooks", "claude"]).env("CLAUDE_PROJECT_DIR", bed.dir()).stdin(bed.work().json()).output();
    assert_eq!(typo.code, Some(1), "{}", typo.stderr);
}
