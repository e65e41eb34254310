//! The command line: start, cancel, pause, resume, status, list, log, explain, and their exit codes.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use ralph_testkit::Output;
use serde_json::{Value, json};

use crate::common::{Bed, CLIENT, LOOP, ME, OTHER, PROMPT, RALPH, loop_text};

const DONE: &str = "<promise>DONE</promise>";

#[track_caller]
fn fails(out: &Output, code: i32, stderr: &str) {
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(code), "", stderr));
}

/// S1-3: a loop is started, its limits are printed back in words, its file is complete.
#[test]
fn s1_3_start_prints_the_limits_back() {
    let bed = Bed::new();
    let out = bed.ralph_ok(&["start", "Fix", "all", "tests", "--max-iterations", "20", "--completion-promise", "ALL DONE", "--hours=2.5"]);
    let status = bed.status();
    let id = status["id"].as_str().unwrap();
    assert!(id.starts_with("main-20"), "{id}");
    assert_eq!(
        out,
        format!(
            "Ralph loop started: {id}\n  ends when the agent truthfully says <promise>ALL DONE</promise>\n  at most 20 iterations\n  \
             at most 2 h 30 min\n  pauses after 7 iterations in a row without any tool call\n  \
             pauses after 10 iterations in a row that change nothing: no commit, no file, no finding\n  file        {}\n\
             The first session that stops takes it: start the agent in {} and tell it to begin.\n",
            bed.path(LOOP).display(),
            bed.dir().display()
        )
    );
    let started_at = bed.value("started_at");
    assert_eq!(
        bed.read(LOOP),
        format!(
            "---\nactive: true\niteration: 1\nsession_id: null\nmax_iterations: 20\ncompletion_promise: \"ALL DONE\"\nstarted_at: {started_at}\n\
             loop_id: \"{id}\"\nmax_hours: 2.5\nremind: true\n---\n\nFix all tests\n"
        )
    );
    assert_eq!(status["status"], "waiting");
    // No iteration limit is legal, and it is spelled out (S2-7).
    let bed = Bed::new();
    let out = bed.ralph_ok(&["start", "Go", "--hours", "0", "--idle-iterations", "3", "--endless", "--session", ME]);
    assert!(
        out.contains(
            "\n  no promise: only a limit or a cancel ends it\n  no limit on iterations\n  no limit on time\n  pauses after 3 iterations in a row \
             without any tool call\n"
        ),
        "{out}"
    );
    assert!(out.ends_with(&format!("  session     {ME}\n")), "{out}");
    assert_eq!(bed.status()["status"], "active");
}

/// The host's cap is in the words that are printed back.
#[test]
fn s2_7_start_knows_the_hosts_cap() {
    let bed = Bed::new();
    let out = bed.run(RALPH).args(["start", "Go", "--endless"]).env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0").output();
    assert!(out.stdout.contains("\n  pauses after 25 iterations in a row without any tool call\n"), "{}", out.stdout);
}

/// A prompt from a file and from standard input arrives whole.
#[test]
fn pains_8_prompts_from_files_and_standard_input() {
    let prompt = "# Task\n\n- don't; `x` $(y) \"z\" \\ --max-iterations 3\n---\n\tünïcødé 🎉\n\n\nend";
    let body = |bed: &Bed| bed.read(LOOP).split_once("remind: true\n---\n\n").unwrap().1.to_owned();
    let bed = Bed::new();
    bed.write("TASK.md", format!("\u{feff}\n{prompt}\n\n"));
    bed.ralph_ok(&["start", "--prompt-file", "TASK.md", "--endless"]);
    assert_eq!(body(&bed), format!("{prompt}\n"));
    assert_eq!(bed.value("max_iterations"), "0");
    bed.work().send();
    let bed = Bed::new();
    let out = bed.run(RALPH).args(["start", "--stdin", "--max-iterations=5"]).stdin(prompt).output();
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(body(&bed), format!("{prompt}\n"));
    assert_eq!(bed.value("max_iterations"), "5");
    // CRLF stays CRLF.
    let bed = Bed::new();
    let out = bed.run(RALPH).args(["start", "--stdin", "--endless"]).stdin("a\r\nb\r\n").output();
    assert_eq!(out.code, Some(0));
    assert_eq!(body(&bed), "a\r\nb\n");
    // Words after `--` are all prompt.
    let bed = Bed::new();
    bed.ralph_ok(&["start", "--endless", "--", "--max-iterations", "is", "a flag"]);
    assert_eq!(body(&bed), "--max-iterations is a flag\n");
}

/// Usage errors exit with 2 and say what is wrong; nothing is started.
#[test]
fn exit_2_for_a_command_line_that_makes_no_sense() {
    let bed = Bed::new();
    fails(
        &bed.ralph(&["start"]),
        2,
        "error: there is no prompt: give it as words, with --prompt-file FILE, or - to read it from standard input\n",
    );
    fails(
        &bed.ralph(&["start", "  \n "]),
        2,
        "error: there is no prompt: give it as words, with --prompt-file FILE, or - to read it from standard input\n",
    );
    let out = bed.run(RALPH).args(["start", "--stdin", "--endless"]).stdin(b"\xff\xfe".to_vec()).output();
    fails(&out, 2, "error: the prompt is not UTF-8 text\n");
    for args in [
        vec!["start", "x", "--max-iterations", "-1"],
        vec!["start", "x", "--max-iterations", "many"],
        vec!["start", "x", "--max-iteration", "3"],
        vec!["start", "x", "--hours", "nan"],
        vec!["start", "x", "--hours", "-1"],
        vec!["start", "x", "--prompt-file", "y"],
        vec!["start", "x", "--continue-with", "exit2", "--endless"],
        vec!["start", "x", "--completion-promise"],
        vec!["frobnicate"],
        vec!["status", "--frob"],
        vec!["start", "x", "--name", "../x"],
        vec!["start", "x", "--completion-promise", " "],
        vec!["status", "--directory", "not there"],
    ] {
        let out = bed.ralph(&args);
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(out.stderr.starts_with("error: ") && !out.stderr.contains("panicked"), "{args:?}: {}", out.stderr);
    }
    assert!(bed.tree().is_empty());
    // With a flag that is nearly right clap suggests the right one.
    assert!(bed.ralph(&["start", "x", "--max-iteration", "3"]).stderr.contains("'--max-iterations'"));
}

/// A failure exits with 1; no loop with 3.
#[test]
fn exit_1_for_failures_and_3_for_no_loop() {
    let bed = Bed::new();
    let out = bed.ralph(&["start", "--prompt-file", "not there"]);
    fails(&out, 1, "error: cannot read not there: No such file or directory (os error 2)\n");
    let none = "No active Ralph loop\n";
    let never = "No loop has run in this project yet. Start one: ralph run \"…\"\n";
    let unnamed = "there is no loop \"x\" here, nor any other\n";
    for (args, said) in [
        (vec!["cancel"], none),
        (vec!["pause"], none),
        (vec!["resume"], none),
        (vec!["status"], never),
        (vec!["log"], never),
        (vec!["explain"], never),
        (vec!["cancel", "--name", "x"], unnamed),
    ] {
        let out = bed.ralph(&args);
        assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(3), said, ""), "{args:?}");
    }
    assert_eq!(bed.ralph_ok(&["list"]), "No loop has run in this project yet.\n");
    assert_eq!(bed.ralph_json(&["list", "--json"]), json!([]));
    assert_eq!(bed.ralph_json(&["status", "--json"]), json!({"loops": [], "last_ended": null}));
    let out = bed.ralph(&["resume", "nobody"]);
    fails(&out, 1, "error: there is no loop \"nobody\"; `ralph status --all` shows all loops\n");
    let out = bed.ralph(&["log", "nobody"]);
    fails(&out, 1, "error: there is no loop \"nobody\"; `ralph status --all` shows all loops\n");
}

/// Commands that only look leave no trace in a project without ralph.
#[test]
fn looking_leaves_no_trace() {
    let bed = Bed::new();
    for args in [["status"], ["list"], ["log"], ["explain"]] {
        bed.ralph(&args);
    }
    assert!(bed.tree().is_empty());
}

/// Asking for a cancel, a pause or a resume where there is nothing leaves no loop.
#[test]
fn s1_ac7_commands_without_a_loop_make_none() {
    let bed = Bed::new();
    for args in [["cancel"], ["pause"], ["resume"]] {
        bed.ralph(&args);
    }
    assert!(!bed.exists(".claude"));
}

/// A live, paused or broken loop is never overwritten.
#[test]
fn s1_3_start_never_overwrites() {
    let cases = [
        (
            loop_text(ME, 3, 9, "DONE"),
            "error: a loop is active in this project (iteration 3 of 9). `ralph status` shows it, `ralph cancel` ends it\n".to_owned(),
        ),
        (
            loop_text("null", 3, 0, "DONE"),
            "error: a loop is active in this project (iteration 3). `ralph status` shows it, `ralph resume` goes on with it in a session, `ralph run --continue` in fresh ones, `ralph cancel` ends it\n".to_owned(),
        ),
        (
            loop_text(ME, 3, 9, "DONE").replace("active: true", "active: false"),
            "error: a loop is paused in this project (iteration 3 of 9). `ralph status` shows it, `ralph resume` goes on with it in a session, `ralph run --continue` in fresh ones, `ralph cancel` ends it\n".to_owned(),
        ),
        (
            "garbage".to_owned(),
            "error: [LOOP] cannot be read: line 1: the file does not begin with a `---` line. Fix it, or `ralph cancel` puts it aside\n".to_owned(),
        ),
    ];
    for (text, said) in cases {
        let bed = Bed::new();
        bed.write(LOOP, &text);
        fails(&bed.ralph(&["start", "x"]), 1, &said.replace("[LOOP]", bed.path(LOOP).to_str().unwrap()));
        assert_eq!(bed.read(LOOP), text);
        // Under another name there is room.
        bed.ralph_ok(&["start", "x", "--name", "docs", "--endless"]);
        assert_eq!(bed.read(LOOP), text);
        assert_eq!(bed.ralph(&["start", "x", "--name", "docs", "--endless"]).code, Some(1));
    }
}

/// Two loops that are started within a second have two ids and two journals.
#[test]
fn s1_3_loops_that_start_within_a_second_are_two() {
    let bed = Bed::new();
    for _ in 0..3 {
        bed.ralph_ok(&["start", "x", "--endless"]);
        bed.ralph_ok(&["cancel"]);
    }
    assert_eq!(bed.files_in(".ralph/journal").len(), 3);
    assert_eq!(bed.files_in(".ralph/archive").len(), 3);
}

/// S1-AC6 from the command line.
#[test]
fn s1_ac6_cancel_from_another_terminal() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let before = bed.loop_bytes();
    let said = "Ralph loop cancelled at iteration 2 (0 s). It is kept in the archive: `ralph resume` brings it back.\n";
    assert_eq!(bed.ralph_ok(&["cancel"]), said);
    assert!(!bed.exists(LOOP));
    assert_eq!(bed.archived(), before);
    bed.work().send().is_silent();
    let out = bed.ralph(&["status"]);
    let ended = bed.last_ended();
    assert_eq!(out.code, Some(3));
    assert!(out.stdout.starts_with(&format!("Last loop: {} cancelled at iteration 2, ", ended["id"].as_str().unwrap())), "{}", out.stdout);
    assert!(out.stdout.ends_with("No active Ralph loop\n"), "{}", out.stdout);
    // And back, where it was.
    bed.ralph_ok(&["resume"]);
    assert_eq!(bed.read(LOOP), loop_text(ME, 2, 0, "DONE"));
    bed.work().send().blocks_with(PROMPT);
    assert!(bed.files_in(".ralph/archive").is_empty());
}

/// A broken file and a loop that nobody has can be cancelled too.
#[test]
fn s1_ac6_anything_can_be_cancelled() {
    for text in ["garbage".to_owned(), String::new(), loop_text("null", 1, 0, "DONE"), loop_text("gone", 1, 0, "DONE")] {
        let bed = Bed::new();
        bed.write(LOOP, &text);
        bed.ralph_ok(&["cancel"]);
        assert!(!bed.exists(LOOP));
        assert_eq!(bed.archived(), text.as_bytes());
    }
}

#[test]
fn pause_and_resume_by_command() {
    let bed = Bed::with_loop(4, 9, "DONE");
    bed.work().send();
    let paused = bed.ralph_ok(&["pause"]);
    assert!(paused.contains("iteration 5 of 9"), "{paused}");
    assert_eq!(bed.read(LOOP), loop_text(ME, 5, 9, "DONE").replace("active: true", "active: false"));
    assert!(bed.stop(DONE).send().line().contains("so this stop was not checked"));
    bed.ralph_ok(&["pause"]);
    let id = bed.status()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        bed.ralph_ok(&["resume"]),
        format!("Ralph loop {id} is active again at iteration 5 of 9.\nSession {ME} has it: tell the agent there to go on.\n")
    );
    assert_eq!(bed.read(LOOP), loop_text(ME, 5, 9, "DONE"));
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(
        bed.ralph_ok(&["resume"]),
        format!("Ralph loop {id} was active all along at iteration 6 of 9.\nSession {ME} has it: tell the agent there to go on.\n")
    );
}

/// A capped loop needs a higher limit, and is refused before anything moves.
#[test]
fn s0_5_resume_of_a_capped_loop_needs_a_higher_limit() {
    let bed = Bed::with_loop(3, 3, "DONE");
    bed.work().send();
    let before = bed.tree_but_log();
    for args in [vec!["resume"], vec!["resume", "--max-iterations", "3"], vec!["resume", "--max-iterations", "2"]] {
        let out = bed.ralph(&args);
        assert_eq!(out.code, Some(1), "{args:?}");
        assert!(out.stderr.starts_with("error: the loop is at iteration 3 of "), "{}", out.stderr);
        assert_eq!(bed.tree_but_log(), before);
    }
    let stderr = bed.ralph(&["resume"]).stderr;
    assert_eq!(stderr, "error: the loop is at iteration 3 of 3: give it more with --max-iterations 6\n");
    let said = bed.ralph_ok(&["resume", "--max-iterations", "6"]);
    assert!(said.contains("is active again at iteration 3 of 6."), "{said}");
    assert_eq!(bed.read(LOOP), loop_text(ME, 3, 6, "DONE"));
    assert_eq!(bed.work().send().blocks_with(PROMPT), "Ralph: iteration 4 of 6. Ends on <promise>DONE</promise>.");
    assert!(bed.files_in(".ralph/archive").is_empty());
}

/// S0-4: a broken file is mended in the archive and resumed by its id.
#[test]
fn s0_4_a_broken_loop_is_mended_in_the_archive_and_resumed() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 7, 9, "DONE").replace("iteration: 7", "iteration: seven"));
    let line = bed.work().send().line();
    let id = line.rsplit_once("`/ralph-resume ").unwrap().1.trim_end_matches("`.").to_owned();
    let archived = bed.path(format!(".ralph/archive/{id}.md"));
    let out = bed.ralph(&["resume", &id]);
    assert_eq!(out.code, Some(1));
    let problem = "line 3: `iteration` must be a whole number from 0 on, not `seven`";
    assert!(out.stderr.starts_with(&format!("error: {} cannot be read: {problem}.", archived.display())), "{}", out.stderr);
    fs::write(&archived, fs::read_to_string(&archived).unwrap().replace("seven", "7")).unwrap();
    let said = bed.ralph_ok(&["resume", &id]);
    assert!(said.contains("is active again at iteration 7 of 9."), "{said}");
    assert_eq!(bed.read(LOOP), loop_text(ME, 7, 9, "DONE"));
    bed.work().send().blocks_with(PROMPT);
}

/// A loop that was left behind is handed to the next session; one that is alive is not taken away.
#[test]
fn pains_7_resume_of_a_left_behind_loop_rebinds_it() {
    let bed = Bed::with_loop(4, 0, "DONE");
    bed.work().send();
    bed.event("SessionEnd").field("reason", "other").send();
    assert_eq!(bed.status()["status"], "left-behind");
    let said = bed.ralph_ok(&["resume"]);
    assert!(
        said.ends_with(&format!(
            "The next session that stops takes it: start the agent in {} and tell it to go on.\n",
            bed.dir().display()
        )),
        "{said}"
    );
    assert_eq!(bed.value("session_id"), "null");
    assert_eq!(bed.status()["status"], "waiting");
    bed.work().session(OTHER).send().blocks_with(PROMPT);
    bed.work().send().is_silent();
    // Explicitly, to a session of one's choice.
    let said = bed.ralph_ok(&["resume", "--session", ME]);
    assert!(said.contains(&format!("Session {ME} has it")), "{said}");
    bed.work().session(OTHER).send().is_silent();
    bed.work().send().blocks_with(PROMPT);
}

/// Of several ended loops the last one is meant, or the one that is named.
#[test]
fn resume_picks_the_loop_that_ended_last_or_the_one_that_is_named() {
    let bed = Bed::new();
    let ids: Vec<String> = ["one", "two", "three"]
        .iter()
        .map(|name| {
            bed.ralph_ok(&["start", name, "--name", name, "--endless"]);
            let id = bed.status()["id"].as_str().unwrap().to_owned();
            bed.ralph_ok(&["cancel"]);
            crate::common::tick();
            id
        })
        .collect();
    bed.ralph_ok(&["resume"]);
    assert_eq!(bed.status()["name"], "three");
    assert!(bed.ralph_ok(&["resume", &ids[0]]).contains(&ids[0]));
    assert!(bed.ralph_ok(&["resume", "two"]).contains(&ids[1]));
    assert_eq!(bed.ralph_json(&["status", "--json"])["loops"].as_array().unwrap().len(), 3);
}

/// A loop that was archived twice (its file was put back by hand) comes back as it was last.
#[test]
fn resume_brings_back_the_later_of_two_archived_versions() {
    for iterations in [[3, 7], [7, 3]] {
        let bed = Bed::new();
        for iteration in iterations {
            bed.write(LOOP, loop_text(ME, iteration, 0, "DONE"));
            bed.ralph_ok(&["cancel"]);
            crate::common::tick();
        }
        bed.ralph_ok(&["resume", "--session", ME]);
        assert_eq!(bed.iteration(), iterations[1]);
    }
}

/// What comes from files and agents must not steer a terminal.
#[test]
fn pains_20_control_characters_are_not_shown() {
    let bed = Bed::new();
    let text = loop_text(ME, 1, 0, "DONE")
        .replace(PROMPT, "Go \u{1b}]0;title\u{7} \u{1b}[31mred\u{9b}5m")
        .replace("\"DONE\"", "\"\\e[2JDONE\\a\"");
    bed.write(LOOP, text);
    bed.stop("I \u{1b}[2J said\u{7} <promise>x\u{1b}[1m</promise>").send();
    bed.ralph_ok(&["pause"]);
    for args in [
        vec!["status"],
        vec!["list"],
        vec!["log"],
        vec!["explain"],
        vec!["status", "--json"],
        vec!["log", "--json"],
        vec!["explain", "--json"],
    ] {
        let out = bed.ralph_ok(&args);
        assert!(!out.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {out:?}");
    }
    // In a terminal as well: colour is ralph's own, nothing else is.
    for args in [["status"], ["list"], ["log"], ["explain"]] {
        let forced = bed.run(RALPH).args(args).env("CLICOLOR_FORCE", "1").output().stdout;
        assert!(forced.contains('\u{1b}'), "{args:?} has no colour of its own: {forced:?}");
        for foreign in ["\u{1b}[2J", "\u{1b}[31mred", "\u{1b}]0", "\u{7}", "\u{9b}"] {
            assert!(!forced.contains(foreign), "{args:?}: {forced:?}");
        }
    }
}

/// A completed loop can be resumed, too.
#[test]
fn s0_8_a_completed_loop_can_be_resumed() {
    let bed = Bed::with_loop(2, 0, "DONE");
    bed.stop(DONE).send().line();
    assert_eq!(bed.ralph(&["resume"]).code, Some(1), "t17: only by --again");
    bed.ralph_ok(&["resume", "--again"]);
    crate::common::next_stop();
    bed.stop(&format!("Really.\n{DONE}")).send().line();
    assert_eq!(bed.codes(), ["promise.accepted", "promise.accepted"]);
    assert_eq!(bed.kinds(), ["stop", "resumed", "stop"]);
}

/// `status` for people and for programs.
#[test]
fn s2_8_status_for_people_and_programs() {
    let bed = Bed::with_loop(1, 9, "ALL DONE");
    bed.work().client(CLIENT).send();
    let status = bed.status();
    let id = status["id"].as_str().unwrap();
    let keys: Vec<&String> = status.as_object().unwrap().keys().collect();
    let mut expected = vec![
        "id",
        "name",
        "status",
        "iteration",
        "max_iterations",
        "completion_promise",
        "max_ms",
        "max_usd",
        "warnings",
        "spent_ms",
        "spent_usd",
        "tokens",
        "max_tokens",
        "context",
        "max_context",
        "project",
        "idle_rounds",
        "interrupted",
        "stalled_rounds",
        "stall_limit",
        "doubtful",
        "stops",
        "session",
        "last_code",
        "last_event_at",
        "file",
        "journal",
        "problem",
        "gates",
        "checking",
        "waits",
        "paused_at",
        "why",
        "prompt",
        "carrier",
        "agent",
        "model",
        "runner_pid",
        "notes",
        "denied",
    ];
    expected.sort_unstable();
    let mut sorted: Vec<&str> = keys.iter().map(|k| k.as_str()).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    let part = |k: &str| status[k].clone();
    assert_eq!(
        json!([
            part("name"),
            part("status"),
            part("iteration"),
            part("max_iterations"),
            part("completion_promise"),
            part("stops"),
            part("session"),
            part("last_code"),
            part("prompt"),
            part("problem")
        ]),
        json!(["main", "active", 2, 9, "ALL DONE", 1, ME, "promise.missing", PROMPT.replace('\n', " "), null])
    );
    assert_eq!(status["file"], json!(bed.path(LOOP)));
    assert_eq!(
        bed.ralph_ok(&["status"]),
        format!(
            "{id}  active\n  iteration   2 (of 9)\n  time        0 s (of 8 h)\n  ends on     <promise>ALL DONE</promise>\n  session     5e551017\n  \
             last stop   promise.missing (`ralph explain` says more)\n  prompt      Make the tests pass. Then write the notes.\n"
        )
    );
    // Broken.
    bed.write(LOOP, "garbage");
    let broken = bed.status();
    assert_eq!((&broken["status"], &broken["problem"]), (&json!("corrupt"), &json!("line 1: the file does not begin with a `---` line")));
    assert!(bed.ralph_ok(&["status"]).contains("  cannot be read\n  problem     line 1: the file does not begin with a `---` line\n"));
}

/// `list` shows live and ended loops with how they ended.
#[test]
fn s2_8_list_shows_every_loop_and_its_ending() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 3, 3, "DONE").replace("09:30", "09:31"));
    bed.work().send();
    bed.write(LOOP, loop_text(ME, 1, 3, "DONE").replace("09:30", "09:32"));
    bed.stop(DONE).send();
    bed.write(LOOP, loop_text(ME, 1, 3, "DONE").replace("09:30", "09:33"));
    bed.work().send();
    bed.ralph_ok(&["cancel"]);
    bed.write(LOOP, loop_text(ME, 1, 3, "DONE").replace("09:30", "09:34"));
    bed.work().send();
    fs::remove_file(bed.path(LOOP)).unwrap();
    bed.write(LOOP, "garbage");
    bed.work().send();
    bed.write(LOOP, loop_text(ME, 1, 3, "DONE").replace("09:30", "09:35"));
    bed.work().send();
    let all = bed.ralph_json(&["list", "--json"]);
    let mut statuses: Vec<&str> = all.as_array().unwrap().iter().map(|v| v["status"].as_str().unwrap()).collect();
    assert_eq!(statuses.remove(0), "active");
    statuses.sort_unstable();
    assert_eq!(statuses, ["cancelled", "capped", "complete", "failed", "gone"]);
    let plain = bed.ralph_ok(&["list"]);
    assert_eq!(plain.lines().count(), 7, "a header and six loops");
    for words in ["active", "cancelled", "capped", "complete", "failed", "gone"] {
        assert!(plain.contains(words), "{words}: {plain}");
    }
    assert!(!plain.contains('\u{1b}'), "no colour in a pipe: {plain:?}");
}

/// `log` in words and as the journal's own lines.
#[test]
fn s0_1_log_tells_what_happened() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text("null", 1, 3, "DONE"));
    bed.work().send();
    bed.ralph_ok(&["pause"]);
    bed.ralph_ok(&["resume"]);
    bed.event("StopFailure").field("error", "rate_limit").send();
    bed.stop(DONE).send();
    let lines: Vec<String> = bed.ralph_ok(&["log"]).lines().map(|l| l[21..].to_owned()).collect();
    assert_eq!(
        lines,
        [
            "started by a file (ralph-loop.local.md): Make the tests pass. Then write the notes.",
            "taken by session 5e551017",
            "stop 1    promise.missing    sent back to iteration 2 of 3",
            "paused by hand",
            "resumed by hand at iteration 2",
            "heard StopFailure (rate_limit)",
            "stop 2    promise.accepted   allowed, the loop is complete",
        ]
    );
    let json: Vec<Value> = bed.ralph_ok(&["log", "--json"]).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(json, bed.journal());
}

/// `log -f` shows what happens while it happens, and ends with the loop.
#[test]
fn s2_8_log_follows_until_the_loop_ends() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let mut child = bed.command(RALPH).args(["log", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().map(|l| l.unwrap()[21..].to_owned());
    assert_eq!(next().unwrap(), "stop 1    promise.missing    sent back to iteration 2");
    bed.work().send();
    assert_eq!(next().unwrap(), "stop 2    promise.missing    sent back to iteration 3");
    bed.stop(DONE).send();
    assert_eq!(next().unwrap(), "stop 3    promise.accepted   allowed, the loop is complete");
    assert_eq!(next(), None);
    assert!(child.wait().unwrap().success());
}

/// `log -f` of a loop that was resumed after an ending shows all of it, and goes on.
#[test]
fn s2_8_log_follows_a_resumed_loop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.stop(DONE).send();
    bed.ralph_ok(&["resume", "--again"]);
    crate::common::next_stop();
    bed.stop(&format!("Again.\n{DONE}")).send();
    let out = bed.ralph_ok(&["log", "-f"]);
    assert_eq!(out.lines().count(), 3, "{out}");
}

/// A reader that goes away is no error.
#[test]
fn a_broken_pipe_is_no_error() {
    let bed = Bed::with_loop(1, 0, "DONE");
    for _ in 0..3 {
        bed.work().send();
    }
    let path = bed.files_in(".ralph/journal")[0].clone();
    let journal = fs::read_to_string(&path).unwrap();
    fs::write(&path, journal.repeat(300)).unwrap();
    for command in ["log", "log --json", "log -f", "list", "status", "explain", "status --json"] {
        let script = format!("{{ \"$1\" {command}; echo \"rc $?\" >&2; }} | head -1");
        let out = bed.run("/bin/sh").args(["-c", &script, "sh", RALPH]).output();
        assert_eq!(out.stderr, "rc 0\n", "{command}");
        assert_eq!(out.stdout.lines().count(), 1, "{command}");
    }
}

/// `explain` says why, and what would have changed it.
#[test]
fn s2_8_explain_says_why() {
    let bed = Bed::with_loop(1, 3, "DONE");
    bed.stop("I cannot say <promise>DONE</promise>").client(CLIENT).send();
    bed.work().send();
    bed.work().send();
    let id = bed.last_ended()["id"].as_str().unwrap().to_owned();
    let first = bed.ralph_ok(&["explain", "1"]);
    let mut lines = first.lines();
    assert!(lines.next().unwrap().starts_with(&format!("Stop 1 of loop {id}, ")), "{first}");
    let rest: Vec<&str> = lines.collect();
    assert_eq!(
        rest,
        [
            "  promise.refused    sent back to iteration 2 of 3",
            "Evidence",
            "  iteration   1 (of 3)",
            "  claim       refused: the tag shared its line with other words",
            "  message     the client sent it",
            "  time        0 s (of 8 h)",
            "  tools       unknown: there is no transcript of this iteration",
            "  said        \"I cannot say <promise>DONE</promise>\"",
            "  client      Claude Code 2.1.325",
            "What would have changed the decision",
            "  <promise>DONE</promise> on a line of its own → allowed, the loop is complete (promise.accepted)",
            "  no claim → sent back to iteration 2 of 3 (promise.missing)",
            "  the loop paused → allowed, the loop stays as it is (loop.paused)",
            "  7 idle iterations in a row → allowed, the loop is paused (host.block-cap)",
            "  a limit of 1 iteration → allowed, the loop is capped (limit.iterations)",
        ]
    );
    let capped = bed.ralph_ok(&["explain", "3"]);
    assert!(capped.contains("no limit on iterations → sent back to iteration 4 (promise.missing)\n"), "{capped}");
    let last = bed.ralph_json(&["explain", "--json"]);
    assert_eq!(last["record"], *bed.journal().last().unwrap());
    assert_eq!(last["record"]["event"]["ruling"]["code"], "limit.iterations");
    let changes: Vec<&str> = last["alternatives"].as_array().unwrap().iter().map(|a| a["change"].as_str().unwrap()).collect();
    assert!(changes.contains(&"no limit on iterations"), "{changes:?}");
    assert_eq!(bed.ralph_json(&["explain", "2", "--json"])["record"]["state"]["stops"], 2);
    assert_eq!(bed.ralph_json(&["explain", "2", "--loop", &id, "--json"])["record"]["state"]["stops"], 2);
    fails(&bed.ralph(&["explain", "9"]), 1, &format!("error: loop {id} has no stop 9; it has had 3\n"));
    bed.ralph_ok(&["start", "x", "--endless"]);
    let out = bed.ralph(&["explain"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.ends_with(" has had no stop yet; `ralph log` shows what happened to it\n"), "{}", out.stderr);
}

/// Any ruling can be judged again from the journal; one that was tampered with shows.
#[test]
fn s2_8_explain_replays_a_journal_and_sees_tampering() {
    let bed = Bed::with_loop(1, 3, "DONE");
    for _ in 0..3 {
        bed.work().send();
    }
    let path = bed.files_in(".ralph/journal")[0].clone();
    let name = path.to_str().unwrap().to_owned();
    assert_eq!(bed.ralph_ok(&["explain", "--replay", &name]), "3 stops judged again: 3 the same, 0 different\n");
    assert_eq!(bed.ralph_json(&["explain", "--json", "--replay", &name]), json!({"same": 3, "different": [], "unreadable_lines": 0}));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"max_iterations\":3", "\"max_iterations\":1", 1)).unwrap();
    let out = bed.ralph(&["explain", "--replay", &name]);
    assert_eq!(
        (out.code, out.stdout.as_str(), out.stderr.as_str()),
        (
            Some(1),
            "stop 1: recorded promise.missing, now limit.iterations\n3 stops judged again: 2 the same, 1 different\n",
            "error: the journal and the judge disagree\n"
        )
    );
    let out = bed.ralph(&["explain", "--json", "--replay", &name]);
    assert_eq!(out.code, Some(1));
    assert_eq!(serde_json::from_str::<Value>(&out.stdout).unwrap(), json!({"same": 2, "different": [1], "unreadable_lines": 0}));
    fs::write(&path, format!("{text}torn")).unwrap();
    let out = bed.ralph_ok(&["explain", "--replay", &name]);
    assert_eq!(out, "3 stops judged again: 3 the same, 0 different, unreadable lines: 1\n");
    assert_eq!(bed.ralph(&["explain", "--replay", "nowhere"]).code, Some(1));
    // Nothing judged is nothing proven.
    bed.write("empty.jsonl", "");
    assert_eq!(bed.ralph(&["explain", "--replay", "empty.jsonl"]).code, Some(1));
}

/// After a deletion by hand, no older loop is brought back in its place.
#[test]
fn pains_7_resume_does_not_bring_back_another_loop_than_the_deleted_one() {
    let bed = Bed::new();
    bed.ralph_ok(&["start", "first", "--endless"]);
    bed.ralph_ok(&["cancel"]);
    crate::common::next_stop();
    bed.ralph_ok(&["start", "second", "--session", ME, "--endless"]);
    bed.work().send();
    fs::remove_file(bed.path(LOOP)).unwrap();
    let out = bed.ralph(&["resume"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("was deleted; .ralph/backup/main.md has the version before"), "{}", out.stderr);
    assert!(!bed.exists(LOOP));
}

/// A misspelt key is a limit that is not there: the person is told.
#[test]
fn pains_3_a_misspelt_key_is_named() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("max_iterations", "max_iteration"));
    let warning = "`max_iteration` sets nothing; did you mean `max_iterations`?";
    assert!(bed.work().send().blocks_with(PROMPT).contains(warning));
    assert!(bed.ralph_ok(&["status"]).contains(warning));
}

/// Several loops: every command takes the name in the same way.
#[test]
fn commands_take_a_loops_name() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    bed.ralph_ok(&["start", "x", "--name", "docs", "--session", OTHER, "--endless"]);
    for args in
        [vec!["pause", "docs"], vec!["resume", "docs"], vec!["log", "docs"], vec!["cancel", "--name", "docs"], vec!["resume", "docs"]]
    {
        bed.ralph_ok(&args);
    }
    let out = bed.ralph(&["cancel", "doc"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(3), "there is no loop \"doc\" here; there are: main, docs\n"));
}

/// `-C` works from anywhere, and commands find the project upwards.
#[test]
fn commands_find_their_project() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let deep = bed.path("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    let out = bed.run(RALPH).arg("status").cwd(&deep).output();
    assert_eq!(out.code, Some(0), "{out:?}");
    let out = bed.run(RALPH).args(["-C", bed.dir().to_str().unwrap(), "cancel"]).cwd("/").output();
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(!bed.exists(LOOP));
}

/// S1-2: the documented template is a loop file that works as it is.
#[test]
fn s1_2_the_template_is_a_working_loop_file() {
    let bed = Bed::new();
    let template = ralph_core::loops::Setting::template();
    bed.write(LOOP, &template);
    let answer = bed.work().send();
    assert!(answer.blocks(), "{answer:?}");
    assert_eq!(bed.read(LOOP), template.replace("\niteration: 1\n", "\niteration: 2\n"));
    assert_eq!(bed.status()["completion_promise"], "COMPLETE");
    bed.stop("It is all true.\n<promise>COMPLETE</promise>").send().line();
    assert_eq!(bed.codes(), ["promise.missing", "promise.accepted"]);
}

/// What nobody was there to allow is shown with the rule that would have, since fresh sessions carry the loop.
#[test]
fn s4_6_status_shows_what_was_denied() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let journal = bed.files_in(".ralph/journal")[0].clone();
    let last = bed.journal().pop().unwrap();
    let denied = |rule: &str| json!({"tool": "Bash", "what": "npm test", "rule": rule});
    let broke = |rules: &[&str]| {
        let mut record = last.clone();
        let work = json!({"turns": 1, "tool_calls": 1, "input": 0, "output": 0, "cache_read": 0, "cache_written": 0, "usd_micros": 0,
            "took_ms": 5, "denied": rules.iter().map(|rule| denied(rule)).collect::<Vec<_>>()});
        record["event"] = json!({"kind": "broke", "iteration": 2, "attempt": 1, "outcome": {"outcome": "interrupted"},
            "then": {"then": "leave"}, "work": work});
        format!("{record}\n")
    };
    let text =
        fs::read_to_string(&journal).unwrap() + &broke(&["Edit", "Bash(npm test:*)", "Bash(npm test:*)"]) + &broke(&["Bash(npm test:*)"]);
    fs::write(&journal, text).unwrap();
    assert_eq!(bed.status()["denied"][0], json!({"rule": "Bash(npm test:*)", "times": 3, "what": "npm test"}));
    let shown = bed.ralph_ok(&["status"]);
    assert!(
        shown.contains("Bash(npm test:*) ×3, Edit ×1: add what you want to allow to permissions.allow in the client's settings"),
        "{shown}"
    );
}
