//! The source documents to the letter, and what people are told (t19, t20, t22, t23).

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::common::{Answer, Bed, CLIENT, LOOP, ME, OTHER, loop_text, next_stop, unique};

/// Types a command: both events that the client sends for it, and the first answer that says something.
fn types(bed: &Bed, text: &str) -> Answer {
    let turn = format!("turn-{}", unique());
    let (name, args) = text.strip_prefix('/').unwrap().split_once(char::is_whitespace).unwrap_or((&text[1..], ""));
    let submitted = bed.event("UserPromptSubmit").field("prompt", text).field("prompt_id", turn.as_str()).client(CLIENT).send();
    let expanded = bed
        .event("UserPromptExpansion")
        .field("expansion_type", "slash_command")
        .field("command_name", name)
        .field("command_args", args)
        .field("command_source", "projectSettings")
        .field("prompt", text)
        .field("prompt_id", turn.as_str())
        .client(CLIENT)
        .send();
    if expanded.json.is_some() { expanded } else { submitted }
}

fn prompt(bed: &Bed) -> String {
    let text = bed.read(LOOP);
    text.split_once("\n---\n\n").unwrap().1.strip_suffix('\n').unwrap().to_owned()
}

fn report(bed: &Bed) -> Value {
    bed.ralph_json(&["report", "--json"])
}

/// Document 002, to the byte: the command, its prompt, its promise, its limit.
const DOCUMENT_002: [(&str, &str, &str, &str); 8] = [
    (
        "/ralph-loop \"实现 <功能描述>，完成质检并创建 PR 后输出 <promise>QUALITY_GATE_PASSED</promise>\" \\\n    --completion-promise \"QUALITY_GATE_PASSED\"\n    # 不设置 --max-iterations = 无限循环\n",
        "实现 <功能描述>，完成质检并创建 PR 后输出 <promise>QUALITY_GATE_PASSED</promise>",
        "\"QUALITY_GATE_PASSED\"",
        "0",
    ),
    (
        "/ralph-loop \"修复 PR #<number> 的 CI 失败，CI 通过并合并后输出 <promise>CI_PASSED</promise>\" \\\n    --completion-promise \"CI_PASSED\"\n    # 不设置 --max-iterations = 无限循环",
        "修复 PR #<number> 的 CI 失败，CI 通过并合并后输出 <promise>CI_PASSED</promise>",
        "\"CI_PASSED\"",
        "0",
    ),
    ("/ralph-loop \"任务描述\" --completion-promise \"SIGNAL\"", "任务描述", "\"SIGNAL\"", "0"),
    ("/ralph-loop \"任务描述\" --completion-promise \"SIGNAL\" --max-iterations 20", "任务描述", "\"SIGNAL\"", "20"),
    (
        "/ralph-loop \"实现功能X，完成质检并创建 PR 后输出 <promise>DONE</promise>\" \\\n    --completion-promise \"DONE\"",
        "实现功能X，完成质检并创建 PR 后输出 <promise>DONE</promise>",
        "\"DONE\"",
        "0",
    ),
    ("/ralph-loop \"实现功能X，完成质检并创建 PR\"", "实现功能X，完成质检并创建 PR", "null", "0"),
    (
        "/ralph-loop \"实现用户登录功能，完成质检并创建 PR\" \\\n    --completion-promise \"QUALITY_GATE_PASSED\"",
        "实现用户登录功能，完成质检并创建 PR",
        "\"QUALITY_GATE_PASSED\"",
        "0",
    ),
    (
        "/ralph-loop \"修复 PR #123 的 CI 失败，CI 通过并合并\" \\\n    --completion-promise \"CI_PASSED\"",
        "修复 PR #123 的 CI 失败，CI 通过并合并",
        "\"CI_PASSED\"",
        "0",
    ),
];

#[test]
fn t19_every_start_command_of_document_002_starts_what_it_says() {
    for (command, task, promise, max) in DOCUMENT_002 {
        let bed = Bed::new();
        let answer = types(&bed, command);
        assert_eq!(prompt(&bed), task, "{answer:?}");
        assert_eq!((bed.value("completion_promise").as_str(), bed.value("max_iterations").as_str()), (promise, max), "{command}");
        let line = answer.json.unwrap()["systemMessage"].as_str().unwrap().to_owned();
        assert_eq!(line.contains("no limit on iterations"), max == "0", "{line}");
        assert_eq!(line.contains("was read as a comment"), command.contains("# 不设置"), "{line}");
    }
}

/// The same text after `ralph start` in a shell, where the document's blocks say `bash`.
#[test]
fn t19_the_same_commands_work_in_a_shell() {
    for (command, task, promise, max) in DOCUMENT_002 {
        let bed = Bed::new();
        let line = command.replacen("/ralph-loop", &format!("'{}' start", crate::common::RALPH), 1);
        let types = |line: &str| {
            let mut sh = bed.command("sh");
            sh.args(["-c", line]);
            crate::common::run(&mut sh, b"")
        };
        let mut out = types(&line);
        if (promise, max) == ("null", "0") {
            // A shell's loop that nothing ends has to be wanted (u4); the error says how.
            assert!(out.code == Some(2) && out.stderr.contains("--endless"), "{line}: {out:?}");
            out = types(&format!("{line} --endless"));
        }
        assert_eq!(out.code, Some(0), "{line}: {out:?}");
        assert_eq!(prompt(&bed), task);
        assert_eq!((bed.value("completion_promise").as_str(), bed.value("max_iterations").as_str()), (promise, max), "{command}");
    }
}

#[test]
fn t19_an_unquoted_promise_of_several_words_asks_for_quotes() {
    let bed = Bed::new();
    for command in ["/ralph-loop Fix it --completion-promise ALL TESTS PASS", "/ralph-loop --completion-promise ALL TESTS PASS Fix it"] {
        let text = types(&bed, command).instead();
        assert!(text.contains("needs quotes: --promise \"ALL TESTS PASS"), "{text}");
        assert!(!bed.exists(LOOP));
    }
    types(&bed, "/ralph-loop --completion-promise DONE Fix it");
    assert_eq!((prompt(&bed).as_str(), bed.value("completion_promise").as_str()), ("Fix it", "\"DONE\""));
    let bed = Bed::new();
    types(&bed, "/ralph-loop fix -- run it --max-iterations 3");
    assert_eq!((prompt(&bed).as_str(), bed.value("max_iterations").as_str()), ("fix run it --max-iterations 3", "0"));
}

/// Document 002's files, as agents write them: what passes, and what the agent is told otherwise.
#[test]
fn t19_a_decision_and_a_quality_gate_are_read_as_they_were_meant() {
    let told = |audit: &str, quality: &str| {
        let bed = Bed::new();
        bed.write("docs/AUDIT-REPORT.md", format!("# Audit\n\n{audit}\n"));
        bed.write(".layer2-evidence.md", "- ran the tests\n");
        bed.write(".quality-gate-passed", quality);
        bed.write(LOOP, loop_text(ME, 1, 0, "null").replace("---\n\n", "preset: pre-pr\n---\n\n"));
        let answer = bed.work().send();
        let json = answer.json.unwrap_or_default();
        json["reason"].as_str().or(json["systemMessage"].as_str()).unwrap_or_default().to_owned()
    };
    for audit in ["Decision: PASS", "Decision: PASS ✅", "Decision: PASS (no issues)"] {
        let text = told(audit, "ok");
        assert!(!text.contains("AUDIT-REPORT.md does not say"), "{audit}: {text}");
    }
    for (audit, says) in
        [("Decision: FAIL", "FAIL"), ("Decision: NOT PASS", "NOT PASS"), ("Decision: PASS/FAIL", "PASS/FAIL"), ("Decision: PASS?", "PASS?")]
    {
        let text = told(audit, "ok");
        assert!(text.contains(&format!("docs/AUDIT-REPORT.md does not say `Decision: PASS`: its decision is `{says}`")), "{text}");
    }
    let text = told("Decision: PASS", "typecheck: ok\ntest: FAILED\n");
    assert!(text.contains(".quality-gate-passed exists, but says `test: FAILED`"), "{text}");
    assert!(!told("Decision: PASS", "12 passed, 0 failed").contains("but says"));
}

const DIR: &str = ".claude/data/ralph-loops/current";

fn list(open: bool) -> String {
    json!({"features": [
        {"id": 1, "description": "Log in", "passes": true},
        {"id": 2, "description": "Log out", "passes": true},
        {"id": 5, "description": "Empty cuisine buttons trigger dialog", "steps": ["press one"], "passes": !open},
    ]})
    .to_string()
}

/// Document 004's sample input, as it stands there: no message, and a transcript that is not there.
fn sample(bed: &Bed) -> String {
    json!({
        "session_id": "abc123",
        "transcript_path": "~/.claude/projects/.../00893aaf-19fa-41d2-8238-13269b9b3ca0.jsonl",
        "cwd": bed.dir(),
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "stop_hook_active": true
    })
    .to_string()
}

#[test]
fn t20_the_sample_input_of_document_004_is_sent_back_with_the_open_feature() {
    let bed = Bed::new();
    bed.write(format!("{DIR}/feature_list.json"), list(true));
    // The client of the document is older than the ones that say who they are.
    let send = || bed.work().no_env("AI_AGENT").send_raw(sample(&bed));
    // Ten iterations that change nothing would pause it.
    for iteration in 2..=9 {
        let answer = send();
        assert!(answer.blocks(), "iteration {iteration}: {answer:?}");
        let json = answer.json.unwrap();
        let reason = json["reason"].as_str().unwrap();
        assert!(reason.contains("Next: 5: Empty cuisine buttons trigger dialog"), "{reason}");
        assert!(bed.read(format!("{DIR}/progress.txt")).contains(&format!("Iteration: {iteration}\n")));
        next_stop();
    }
    let log = bed.read(format!("{DIR}/hook.log"));
    let cause = "the event carries no message, and its transcript does not exist (";
    assert!(log.lines().any(|line| line.contains("block gate.failed: iteration 1 of 15") && line.contains(cause)), "{log}");
    bed.write(format!("{DIR}/feature_list.json"), list(false));
    assert!(send().line().contains("all 3 features verified"));
    assert!(bed.read(format!("{DIR}/progress.txt")).contains("Status: COMPLETE"));
}

/// A promise needs a message: without one the loop is paused, as before.
#[test]
fn t20_a_promise_still_needs_a_message() {
    let bed = Bed::with_loop(1, 9, "DONE");
    let line = bed.work().no_message().no_env("AI_AGENT").send().line();
    assert!(line.contains("paused at iteration 1 of 9: the event carries no message"), "{line}");
}

/// `~/` is the user's folder.
#[test]
fn t20_a_transcript_below_the_users_folder_is_found() {
    let bed = Bed::with_loop(1, 9, "DONE");
    let text = json!({"type": "assistant", "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Well.\n\n<promise>DONE</promise>"}]},
        "timestamp": crate::common::now(), "uuid": "u", "isSidechain": false});
    fs::create_dir_all(bed.home().join("t")).unwrap();
    fs::write(bed.home().join("t/x.jsonl"), format!("{text}\n")).unwrap();
    let line = bed.work().no_message().no_env("AI_AGENT").field("transcript_path", "~/t/x.jsonl").send().line();
    assert!(line.starts_with("Ralph: complete after 1 iteration"), "{line}");
}

/// Each `$RALPH_LOOP_DIR` is a loop of its own: its owner, its count, its journal, its ending.
#[test]
fn t20_each_feature_folder_is_a_loop_of_its_own() {
    let bed = Bed::new();
    let dirs = [".claude/data/ralph-loops/one", ".claude/data/ralph-loops/two", DIR];
    for dir in dirs {
        bed.write(format!("{dir}/feature_list.json"), list(true));
    }
    let stop = |dir: &str, session: &str| {
        let event = bed.work().session(session);
        let event = if dir == DIR { event } else { event.env("RALPH_LOOP_DIR", dir) };
        event.send()
    };
    for _ in 0..3 {
        assert!(stop(dirs[0], ME).blocks());
    }
    assert!(stop(dirs[1], OTHER).blocks(), "the second session is held by its own loop");
    assert!(stop(dirs[2], "third").blocks());
    let iteration = |dir: &str| bed.read(format!("{dir}/progress.txt")).lines().next().unwrap().to_owned();
    assert_eq!(dirs.map(iteration), ["Iteration: 4", "Iteration: 2", "Iteration: 2"]);
    // Its own folder under another name is the same loop.
    assert!(stop("./.claude/data/ralph-loops/../ralph-loops/one", ME).blocks());
    assert_eq!(iteration(dirs[0]), "Iteration: 5");
    let mut journals: Vec<String> =
        bed.files_in(".ralph/journal").iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    journals.sort();
    assert_eq!(journals.len(), 3, "{journals:?}");
    assert_eq!(journals[0], "feature-list-folder");
    assert!(journals[1].starts_with("feature-list-folder-one-") && journals[2].starts_with("feature-list-folder-two-"), "{journals:?}");
    // Whoever looks sees all of them, in whatever folder they are.
    let status = bed.ralph_json(&["list", "--json"]);
    let shown: Vec<(String, String)> = status
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["name"].as_str().unwrap().to_owned(), v["status"].as_str().unwrap().to_owned()))
        .collect();
    let named = |name: &str| (name.to_owned(), "active".to_owned());
    assert_eq!(shown, [named("feature-list"), named("feature-list-one"), named("feature-list-two")]);
    // One of them ends, and the others go on.
    bed.write(format!("{}/feature_list.json", dirs[0]), list(false));
    assert!(stop(dirs[0], ME).line().contains("all 3 features verified"));
    assert!(stop(dirs[1], OTHER).blocks());
    bed.ralph_ok(&["cancel", "feature-list-two"]);
    assert!(bed.read(format!("{}/progress.txt", dirs[1])).contains("Status: CANCELLED"));
    assert!(stop(dirs[2], "third").blocks());
}

/// What the hook could not work with leaves one line with its cause in the folder's own log.
#[test]
fn t20_the_folders_log_names_the_cause() {
    let log = |bed: &Bed| fs::read_to_string(bed.path(format!("{DIR}/hook.log"))).unwrap_or_default();
    // No list, but somebody counts.
    let bed = Bed::new();
    bed.write(format!("{DIR}/progress.txt"), "Iteration: 1\n");
    for _ in 0..3 {
        bed.work().send().is_silent();
    }
    assert_eq!(log(&bed).lines().count(), 1, "{}", log(&bed));
    assert!(log(&bed).contains("feature_list.json is not there, so there is nothing to work on"), "{}", log(&bed));
    // A list that is none.
    let bed = Bed::new();
    bed.write(format!("{DIR}/feature_list.json"), "{ \"features\": [");
    for _ in 0..3 {
        bed.work().send();
    }
    assert_eq!(log(&bed).lines().count(), 1, "{}", log(&bed));
    assert!(log(&bed).contains("allow loop.corrupt: feature_list.json cannot be read"), "{}", log(&bed));
    // A count that is none, and one that cannot be read at all.
    let bed = Bed::new();
    bed.write(format!("{DIR}/feature_list.json"), list(true));
    bed.write(format!("{DIR}/progress.txt"), "Iteration: soon\nMax Iterations: 9\n");
    assert!(bed.work().send().blocks());
    assert!(log(&bed).contains("progress.txt: \"Iteration: soon\" has no number that makes sense"), "{}", log(&bed));
    let bed = Bed::new();
    bed.write(format!("{DIR}/feature_list.json"), list(true));
    fs::create_dir_all(bed.path(format!("{DIR}/progress.txt"))).unwrap();
    let line = bed.work().send().line();
    assert!(line.starts_with("Ralph: progress.txt cannot be read: "), "{line}");
    assert!(log(&bed).contains("allow loop.corrupt: progress.txt cannot be read: "), "{}", log(&bed));
}

/// The line of the ending and the report count the same things, in a feature folder and with a preset.
#[test]
fn t20_the_report_tells_the_same_story_as_the_ending() {
    let folder = Bed::new();
    folder.write(format!("{DIR}/feature_list.json"), list(false));
    let preset = Bed::new();
    preset.write("feature_list.json", list(false));
    preset.write(LOOP, loop_text(ME, 1, 9, "null").replace("---\n\n", "preset: features\n---\n\n"));
    for bed in [folder, preset] {
        let line = bed.work().send().line();
        assert!(line.contains("all 3 features verified, by their marks alone"), "{line}");
        let told = report(&bed);
        let f = &told["figures"];
        assert_eq!(json!([f["wanted"], f["verified"], f["by_mark"]]), json!([3, 0, 3]), "{told}");
        assert_eq!(told["acceptance"].as_array().unwrap().len(), 3);
        let text = bed.ralph_ok(&["report", "--markdown"]);
        assert!(text.contains("| 3 of 3, by their marks alone |"), "{text}");
        let page = bed.ralph_ok(&["report", "--html", "-"]);
        assert!(page.contains("<dt>verified, by their marks alone</dt><dd>3 of 3</dd>"), "{page}");
    }
}

/// A loop that was typed in a session: work is work, and gates are gates.
#[test]
fn t22_the_time_of_a_typed_loop_is_its_sessions() {
    let bed = Bed::new();
    types(&bed, "/ralph-loop Fix it --completion-promise DONE --verify \"sleep 0.6; test -f ok\"");
    let pause = || thread::sleep(Duration::from_millis(400));
    pause();
    assert!(bed.work().send().blocks());
    // In the middle of it, whoever looks sees the same.
    let status = bed.status();
    assert_eq!(json!([status["status"], status["carrier"], status["session"]]), json!(["active", "session", ME]));
    let told = report(&bed);
    assert_eq!(told["figures"]["took"]["paused_ms"], 0, "{told}");
    assert_eq!(told["spans"].as_array().unwrap().iter().map(|s| s["phase"].as_str().unwrap()).collect::<Vec<_>>(), ["work"]);
    pause();
    assert!(bed.stop("Done.\n\n<promise>DONE</promise>").send().blocks());
    bed.write("ok", "");
    pause();
    assert!(bed.stop("Now it is.\n\n<promise>DONE</promise>").send().line().contains("complete"));
    let told = report(&bed);
    let took = |phase: &str| told["figures"]["took"][phase].as_u64().unwrap();
    assert!(took("work_ms") >= 1_100, "{told}");
    assert!((1_200..took("work_ms") + 5_000).contains(&took("gates_ms")), "{told}");
    assert_eq!((took("paused_ms"), took("service_ms"), took("elsewhere_ms")), (0, 0, 0), "{told}");
    assert_eq!(took("work_ms") + took("gates_ms"), told["figures"]["elapsed_ms"].as_u64().unwrap(), "nothing of the time is lost");
}

/// A session that ended does not go on working, whoever takes the loop up later.
#[test]
fn t22_the_time_after_a_sessions_end_is_nobodys() {
    let bed = Bed::new();
    types(&bed, "/ralph-loop Fix it --max-iterations 9");
    assert!(bed.work().send().blocks());
    bed.event("SessionEnd").field("reason", "prompt_input_exit").send();
    thread::sleep(Duration::from_millis(700));
    bed.event("SessionStart").field("source", "resume").send();
    assert!(bed.work().send().blocks());
    let took = report(&bed)["figures"]["took"].clone();
    assert!(took["paused_ms"].as_u64().unwrap() >= 650, "{took}");
    assert_eq!(bed.status()["carrier"], "session");
}

/// What a person finds in the morning: files in no commit, and stashes.
#[test]
fn t22_uncommitted_files_and_stashes_are_named() {
    let bed = Bed::in_git();
    bed.write("a.txt", "one");
    bed.commit_all("first");
    bed.git(&["stash", "list"]);
    types(&bed, "/ralph-loop Fix it --max-iterations 1");
    bed.write("a.txt", "two");
    bed.git(&["stash"]);
    bed.write("a.txt", "three");
    bed.write("new.txt", "new");
    let index = fs::read(bed.path(".git/index")).unwrap();
    assert!(bed.work().send().line().contains("stopped at its limit"));
    let told = report(&bed);
    assert_eq!(told["left"], json!({"files": 2, "named": ["a.txt", "new.txt"], "stashes": 1}), "{told}");
    let need = told["needs"].as_array().unwrap().iter().find(|need| need["about"] == "uncommitted").unwrap().clone();
    assert_eq!(need["what"], "2 files are changed and not committed: `a.txt`, `new.txt`; 1 stash was made since the loop began.");
    assert_eq!(fs::read(bed.path(".git/index")).unwrap(), index, "nothing is written for asking");
    bed.commit_all("second");
    bed.git(&["stash", "drop"]);
    let told = report(&bed);
    assert_eq!(told["left"], json!({"files": 0, "named": [], "stashes": 0}));
    assert!(!told["needs"].to_string().contains("uncommitted"));
}

#[test]
fn t23_help_is_answered_and_starts_nothing() {
    let bed = Bed::new();
    for command in ["/ralph-loop --help", "/ralph --help", "/ralph help", "/ralph-loop -h"] {
        let text = types(&bed, command).instead();
        assert!(text.contains("--promise TEXT") && text.contains("--max-iterations N"), "{command}: {text}");
    }
    assert!(types(&bed, "/cancel-ralph --help").instead().starts_with("/cancel-ralph [NAME]"));
    assert!(!bed.exists(LOOP));
    assert!(!bed.exists(".ralph"));
}

#[test]
fn t23_mode_fresh_names_the_command_to_type() {
    let bed = Bed::new();
    let text = types(&bed, "/ralph --mode fresh Don't stop --completion-promise \"ALL DONE\" --max-iterations 5").instead();
    assert!(text.contains("`ralph run 'Don'\\''t stop' --max-iterations 5 --promise 'ALL DONE'`"), "{text}");
    assert!(!bed.exists(LOOP));
}

/// Three gates of one file that nobody trusts are told as three.
#[test]
fn t23_three_commands_are_told_as_three() {
    let bed = Bed::new();
    bed.write("ralph.toml", "[[gate]]\nname = \"a\"\ncommand = \"true\"\n[[gate]]\nname = \"b\"\ncommand = \"true\"\n[[gate]]\nname = \"c\"\ncommand = \"true\"\n");
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE"));
    let line = bed.stop("Done.\n\n<promise>DONE</promise>").send().line();
    assert!(line.contains("a, b, c: their commands were not run, because ralph.toml is not trusted"), "{line}");
    let bed = Bed::new();
    let item = |id: &str| json!({"id": id, "passes": true, "verify": ["true", "true"]});
    bed.write(format!("{DIR}/feature_list.json"), json!([item("A"), item("B")]).to_string());
    let line = bed.work().send().line();
    assert!(line.contains("A is not proven: its commands were not run"), "{line}");
}

/// A loop file that is a link is not told as one that git tracks.
#[test]
fn t23_a_link_is_told_as_a_link() {
    let bed = Bed::in_git();
    let elsewhere = bed.home().join("loop.md");
    fs::write(
        &elsewhere,
        loop_text(ME, 1, 9, "DONE").replace(&format!("session_id: {ME}\n"), "").replace(&format!("session_id: \"{ME}\"\n"), ""),
    )
    .unwrap();
    fs::create_dir_all(bed.path(".claude")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bed.path(LOOP)).unwrap();
    let text = bed.ralph_ok(&["status"]);
    assert!(text.contains("its file is a link that leads out of the project"), "{text}");
    assert!(!text.contains("came with the repository"), "{text}");
    let text = bed.ralph(&["doctor"]).stdout;
    assert!(text.contains("its file is a link") && !text.contains("git tracks its file"), "{text}");
}

/// t7, t23: a journal that cannot be written is told, and keeps no loop from its end: ralph has its own copy.
#[test]
fn t23_a_loop_ends_although_its_journal_cannot_be_written() {
    let bed = Bed::with_loop(1, 9, "DONE");
    assert!(bed.work().send().blocks());
    let journal = bed.files_in(".ralph/journal")[0].clone();
    fs::remove_file(&journal).unwrap();
    fs::create_dir(&journal).unwrap();
    let line = bed.stop("Done.\n\n<promise>DONE</promise>").send().line();
    assert!(line.contains("complete after 2 iterations") && line.contains("it cannot be read: not a plain file"), "{line}");
    assert!(!bed.exists(LOOP) && !line.contains("kept as it is"), "{line}");
}

/// One is one, and what has no limit has no "of 0".
#[test]
fn t23_numbers_have_the_right_word() {
    let bed = Bed::new();
    let text = bed.ralph_ok(&["start", "Fix it", "--idle-iterations", "1", "--stall-iterations", "1", "--max-iterations", "1"]);
    assert!(text.contains("at most 1 iteration\n") && text.contains("pauses after 1 iteration in a row without"), "{text}");
    assert!(!text.contains("1 iterations"), "{text}");
    let line = bed.work().field("last_assistant_message", "x").send().line();
    assert!(!line.contains("1 iterations") && !line.contains("1 iterations"), "{line}");
    let bed = Bed::with_loop(3, 9, "DONE");
    bed.work().send();
    let mut last = bed.journal().pop().unwrap();
    last["state"]["standstill"] = json!({"tree": "", "findings": {}, "rounds": 4});
    bed.write_journal(last["loop"].as_str().unwrap(), &format!("{last}\n"));
    let text = bed.ralph_ok(&["status"]);
    assert!(text.contains("4 iterations changed nothing") && !text.contains("of 0"), "{text}");
}
