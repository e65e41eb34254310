//! Whose loop is it? Sessions, adoption, git, worktrees, folders, names and foreign callers (pains 6; design 4 … §7).

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::common::{Bed, CLIENT, LOOP, ME, OTHER, PROMPT, loop_text, records, value_in};

const DONE: &str = "<promise>DONE</promise>";

/// A loop file that names no session.
fn free(iteration: u64) -> String {
    loop_text("null", iteration, 0, "DONE")
}

/// pains 6: a second session is never touched, whatever it says; nothing but the log changes.
#[test]
fn pains_6_another_session_is_untouched() {
    let bed = Bed::with_loop(2, 3, "DONE");
    let before = bed.tree();
    for said in ["hello", DONE] {
        bed.stop(said).session(OTHER).send().is_silent();
    }
    bed.event("SubagentStop").session(OTHER).field("agent_type", "check").send().is_silent();
    bed.event("SessionEnd").session(OTHER).field("reason", "other").send().is_silent();
    bed.event("StopFailure").session(OTHER).field("error", "rate_limit").send().is_silent();
    bed.typed("hi").session(OTHER).send().is_silent();
    for source in ["startup", "resume", "compact"] {
        bed.event("SessionStart").session(OTHER).field("source", source).send().is_silent();
    }
    assert_eq!(bed.tree(), before);
}

/// pains 6: nor by a `/clear` in another session, which asks whose process it was.
#[test]
fn pains_6_a_clear_in_another_session_leaves_no_trace() {
    let bed = Bed::with_loop(2, 3, "DONE");
    let before = bed.tree();
    bed.event("SessionStart").session(OTHER).field("source", "clear").send().is_silent();
    assert_eq!(bed.tree(), before);
}

/// pains 6: the same once ralph's folder is there: only the log grows, and it says why.
#[test]
fn pains_6_another_session_costs_one_line_of_the_log() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let before = bed.tree_but_log();
    bed.stop(DONE).session(OTHER).send().is_silent();
    assert_eq!(bed.tree_but_log(), before);
    assert_eq!(bed.hook_log().pop().unwrap(), format!("event=Stop decision=allow code=session.other session={OTHER}"));
}

/// An event that names no session, or an empty one, owns nothing.
#[test]
fn pains_6_an_event_without_a_session_owns_nothing() {
    for text in [free(1), loop_text(ME, 1, 0, "DONE")] {
        let bed = Bed::new();
        bed.write(LOOP, &text);
        let before = bed.tree();
        for strange in [json!(""), json!(null), json!(5)] {
            bed.stop(DONE).field("session_id", strange).no_env("CLAUDE_CODE_SESSION_ID").send().is_silent();
        }
        bed.stop(DONE).without("session_id").no_env("CLAUDE_CODE_SESSION_ID").send().is_silent();
        assert_eq!(bed.tree(), before);
    }
}

/// A loop without an owner belongs to the first session that stops; the file is not touched for it.
#[test]
fn pains_6_adoption_is_recorded_and_the_file_is_untouched() {
    let bed = Bed::new();
    bed.write(LOOP, free(1));
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(bed.read(LOOP), free(2));
    assert_eq!(bed.kinds(), ["started", "adopted", "stop"]);
    let journal = bed.journal();
    assert_eq!(journal[0]["event"]["by"], "file");
    assert_eq!((&journal[1]["session"], &journal[1]["state"]["owner"]), (&json!(ME), &json!(ME)));
    assert_eq!(bed.status()["session"], ME);
    // The second one is a stranger from then on.
    let before = bed.tree_but_log();
    bed.stop(DONE).session(OTHER).send().is_silent();
    assert_eq!(bed.tree_but_log(), before);
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 3);
}

/// All ways to name no session.
#[test]
fn pains_6_an_empty_session_id_is_none() {
    for none in ["null", "~", "", "\"\"", "''"] {
        let bed = Bed::new();
        bed.write(LOOP, loop_text(none, 1, 0, "DONE"));
        bed.work().send().blocks_with(PROMPT);
        bed.work().session(OTHER).send().is_silent();
        assert_eq!(bed.kinds(), ["started", "adopted", "stop"], "{none:?}");
    }
}

/// A paused loop without an owner is not adopted.
#[test]
fn pains_6_a_paused_loop_is_not_adopted() {
    let bed = Bed::new();
    bed.write(LOOP, free(1).replace("active: true", "active: false"));
    let before = bed.tree();
    bed.work().send().is_silent();
    assert_eq!(bed.tree(), before);
}

/// design 6: a loop file that came with a repository does not arm itself in a stranger's checkout.
#[test]
fn pains_20_a_tracked_loop_file_is_never_adopted() {
    let bed = Bed::in_git();
    bed.write(LOOP, free(1));
    bed.git(&["add", "--force", LOOP]);
    let staged = bed.tree();
    bed.work().send().is_silent();
    assert_eq!(bed.tree(), staged);
    bed.commit_all("a loop");
    for session in [ME, OTHER] {
        bed.stop(DONE).session(session).send().is_silent();
    }
    assert_eq!(bed.tree(), staged);
    // From a folder further down and with a changed file as well.
    bed.write(LOOP, free(7));
    bed.work().cwd(bed.dir().join(".claude")).send().is_silent();
    assert_eq!(bed.read(LOOP), free(7));
    // A person may arm it, and says so explicitly.
    let said = bed.ralph_ok(&["resume"]);
    assert!(said.contains("is active again at iteration 7."), "{said}");
    bed.work().send().blocks_with(PROMPT);
    bed.work().session(OTHER).send().is_silent();
    assert_eq!(bed.iteration(), 8);
}

/// A tracked file that is broken is nobody's either.
#[test]
fn pains_20_a_tracked_broken_file_is_left_alone() {
    let bed = Bed::in_git();
    bed.write(LOOP, "---\niteration: x\n---\nGo\n");
    bed.commit_all("a loop");
    let before = bed.tree();
    bed.work().send().is_silent();
    assert_eq!(bed.tree(), before);
}

/// In a repository an untracked file is adopted as everywhere; ralph's folder ignores itself.
#[test]
fn pains_6_an_untracked_file_in_a_repository_is_adopted() {
    let bed = Bed::in_git();
    bed.write(LOOP, free(1));
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(bed.git(&["status", "--porcelain"]), "?? .claude/\n");
}

/// A repository whose git cannot be asked arms nothing by itself.
#[test]
fn pains_20_where_git_cannot_be_asked_nothing_is_adopted() {
    let bed = Bed::in_git();
    bed.write(LOOP, free(1));
    let index = std::fs::read(bed.path(".git/index")).unwrap();
    bed.write(".git/index", "no index");
    bed.work().send().is_silent();
    assert!(!bed.exists(".ralph"));
    // What is tracked can be told without git (t8).
    bed.write(".git/index", index);
    bed.work().env("PATH", "/nowhere").send().blocks_with(PROMPT);
    // A loop that names its session needs no git.
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    bed.work().env("PATH", "/nowhere").send().blocks_with(PROMPT);
}

/// A git that never answers, for a pipe in the place of its index, keeps no hook waiting for ever.
#[test]
fn s4_7_a_git_that_hangs_keeps_no_hook_waiting() {
    let bed = Bed::in_git();
    bed.write(LOOP, free(1));
    fs::remove_file(bed.path(".git/index")).unwrap();
    assert!(Command::new("mkfifo").arg(bed.path(".git/index")).status().unwrap().success());
    let begun = std::time::Instant::now();
    bed.work().send().is_silent();
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(!bed.exists(".ralph"), "what git cannot tell about is not adopted");
}

/// pains 6: linked worktrees are projects of their own.
#[test]
fn pains_6_linked_worktrees_are_separate() {
    let bed = Bed::in_git();
    let tree = bed.home().join("tree");
    bed.git(&["worktree", "add", "--quiet", tree.to_str().unwrap()]);
    bed.write(LOOP, free(1));
    // The worktree has no loop, with and without the variable.
    bed.work().env("CLAUDE_PROJECT_DIR", &tree).cwd(&tree).field("cwd", tree.to_str().unwrap()).send().is_silent();
    bed.work().no_env("CLAUDE_PROJECT_DIR").cwd(&tree).field("cwd", tree.to_str().unwrap()).send().is_silent();
    assert!(!tree.join(".ralph").exists() && !bed.exists(".ralph"));
    // Each has its own loop and its own count.
    fs::create_dir(tree.join(".claude")).unwrap();
    fs::write(tree.join(LOOP), free(40)).unwrap();
    bed.work().session(OTHER).env("CLAUDE_PROJECT_DIR", &tree).send().blocks_with(PROMPT);
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 2);
    assert_eq!(value_in(&fs::read_to_string(tree.join(LOOP)).unwrap(), "iteration"), "41");
    // A worktree inside the project is found as one, too.
    let inner = bed.path(".claude/worktrees/one");
    bed.git(&["worktree", "add", "--quiet", inner.to_str().unwrap()]);
    bed.work().session(OTHER).no_env("CLAUDE_PROJECT_DIR").cwd(&inner).field("cwd", inner.to_str().unwrap()).send().is_silent();
    assert_eq!(bed.iteration(), 2);
}

/// design 7, pains 6: the root is `CLAUDE_PROJECT_DIR`, whatever the model did with `cd`.
#[test]
fn pains_6_the_clients_project_folder_beats_the_cwd() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let deep = bed.path("sub/deep/er");
    fs::create_dir_all(&deep).unwrap();
    bed.work().cwd(&deep).field("cwd", deep.to_str().unwrap()).send().blocks_with(PROMPT);
    // Another project that the model happened to enter, with a loop of its own.
    let elsewhere = bed.home().join("elsewhere");
    fs::create_dir_all(elsewhere.join(".claude")).unwrap();
    fs::write(elsewhere.join(LOOP), free(50)).unwrap();
    bed.work().cwd(&elsewhere).field("cwd", elsewhere.to_str().unwrap()).send().blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 3);
    assert_eq!(fs::read_to_string(elsewhere.join(LOOP)).unwrap(), free(50));
    // A folder that is gone.
    bed.work().field("cwd", "/gone/away").send().blocks_with(PROMPT);
}

/// Without the variable the project is found from the event's folder upwards, and never beyond the home folder or the repository.
#[test]
fn pains_6_without_the_variable_the_project_is_found_upwards() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let deep = bed.path("sub/deep");
    fs::create_dir_all(&deep).unwrap();
    let at = |dir: &std::path::Path| bed.work().no_env("CLAUDE_PROJECT_DIR").field("cwd", dir.to_str().unwrap()).cwd("/").send();
    at(&deep).blocks_with(PROMPT);
    // A variable that names no folder, or a relative one, is none.
    bed.work().env("CLAUDE_PROJECT_DIR", "/gone/away").field("cwd", deep.to_str().unwrap()).send().blocks_with(PROMPT);
    bed.work().env("CLAUDE_PROJECT_DIR", "relative").field("cwd", deep.to_str().unwrap()).send().blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 4);
    // A repository in between is a border for others; the session that has the loop stays in it.
    let inner = bed.path("vendor/lib");
    fs::create_dir_all(inner.join(".git")).unwrap();
    let of_another = bed.work().no_env("CLAUDE_PROJECT_DIR").field("session_id", OTHER).field("cwd", inner.to_str().unwrap()).cwd("/");
    of_another.env("CLAUDE_CODE_SESSION_ID", OTHER).send().is_silent();
    assert_eq!(bed.iteration(), 4);
    at(&inner).blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 5);
    // The home folder's `.claude` is configuration and no project.
    fs::create_dir_all(bed.home().join(".claude")).unwrap();
    let in_home = bed.home().join("code");
    fs::create_dir_all(&in_home).unwrap();
    at(&in_home).is_silent();
    let out = bed.run(crate::common::RALPH).args(["start", "Go", "--endless"]).cwd(&in_home).output();
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(in_home.join(LOOP).exists());
}

/// A nested folder with a `.claude` of its own does not hide the project's loop from a command that is typed there.
#[test]
fn pains_9_a_cancel_from_a_nested_folder_finds_the_loop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let nested = bed.path("packages/app/.claude");
    fs::create_dir_all(&nested).unwrap();
    let out = bed.run(crate::common::RALPH).arg("cancel").cwd(nested.parent().unwrap()).output();
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(!bed.exists(LOOP));
}

/// A `.claude` folder behind a link (people keep their settings elsewhere) works.
#[test]
fn pains_20_a_linked_claude_folder_works() {
    let bed = Bed::new();
    let real = bed.home().join("dotfiles");
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, bed.path(".claude")).unwrap();
    bed.ralph_ok(&["start", "Go", "--session", ME, "--endless"]);
    for n in 2..5 {
        bed.work().send().blocks_with("Go");
        assert_eq!(bed.iteration(), n);
    }
    bed.ralph_ok(&["cancel"]);
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
}

/// A loop file with the same text as one that has ended (written by hand, from the template) is a new loop: the first session that stops takes
/// it, and the old one's time is not on its account.
#[test]
fn pains_6_the_same_file_after_an_ending_is_a_new_loop() {
    let text = "---\niteration: 1\nmax_iterations: 5\ncompletion_promise: DONE\n---\nGo\n";
    let bed = Bed::new();
    bed.write(LOOP, text);
    bed.work().send().blocks_with("Go");
    bed.stop(DONE).send().line();
    bed.event("SessionEnd").field("reason", "other").send();
    bed.write(LOOP, text);
    assert_ne!(bed.status()["session"], ME, "a new loop belongs to nobody yet");
    bed.work().session(OTHER).send().blocks_with("Go");
}

/// The same after a cancel.
#[test]
fn pains_6_the_same_file_after_a_cancel_is_a_new_loop() {
    let text = "---\niteration: 1\nsession_id: null\n---\nGo\n";
    let bed = Bed::new();
    bed.write(LOOP, text);
    bed.work().send().blocks_with("Go");
    bed.ralph_ok(&["cancel"]);
    bed.write(LOOP, text);
    bed.work().session(OTHER).send().blocks_with("Go");
}

/// A loop's id becomes a file name: one that would lead elsewhere is not taken.
#[test]
fn pains_20_a_loop_id_cannot_lead_out_of_ralphs_folder() {
    for id in ["../../evil", "/tmp/evil", "a/b", "..", "x\\0y"] {
        let bed = Bed::new();
        bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("active: true\n", &format!("active: true\nloop_id: \"{id}\"\n")));
        bed.work().send().blocks_with(PROMPT);
        assert_eq!(bed.files_in(".ralph/journal").len(), 1, "{id}");
        bed.ralph_ok(&["cancel"]);
        assert_eq!(bed.files_in(".ralph/archive").len(), 1, "{id}");
    }
}

/// pains 20: folders with spaces, line breaks, quotes and letters of the world.
#[test]
fn pains_20_any_folder_name_works() {
    for name in ["with space", "ünïcødé 🎉", "quote'\"s", "new\nline", "-dash", "$HOME;rm `x`"] {
        let bed = Bed::new();
        let dir = bed.path(name);
        fs::create_dir_all(dir.join(".claude")).unwrap();
        fs::write(dir.join(LOOP), free(1)).unwrap();
        let event = bed.work().env("CLAUDE_PROJECT_DIR", &dir).field("cwd", dir.to_str().unwrap());
        event.send().blocks_with(PROMPT);
        let out = bed.run(crate::common::RALPH).args(["cancel"]).cwd(&dir).output();
        assert_eq!(out.code, Some(0), "{name}: {out:?}");
        assert!(!dir.join(LOOP).exists());
    }
}

/// design 4: further loops, one per session.
#[test]
fn pains_6_named_loops_one_per_session() {
    let bed = Bed::new();
    let docs = ".claude/ralph-loop.docs.local.md";
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    bed.write(docs, loop_text(OTHER, 10, 0, "DONE"));
    bed.work().send().blocks_with(PROMPT);
    bed.work().session(OTHER).send().blocks_with(PROMPT);
    assert_eq!((bed.iteration(), value_in(&bed.read(docs), "iteration")), (2, "11".to_owned()));
    let names: Vec<Value> = bed.ralph_json(&["status", "--json"])["loops"].as_array().unwrap().iter().map(|l| l["name"].clone()).collect();
    assert_eq!(names, [json!("main"), json!("docs")]);
    // Which one is meant has to be said, unless a session asks.
    let out = bed.ralph(&["cancel"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(2), "error: there are several loops here: main, docs. Say which one, by its name\n"));
    bed.stop(DONE).session(OTHER).send().line();
    assert!(bed.exists(LOOP) && !bed.exists(docs));
    bed.work().send().blocks_with(PROMPT);
}

/// Two loops that belong to nobody, two sessions: each takes one, and keeps it.
#[test]
fn pains_6_two_free_loops_go_to_two_sessions() {
    let bed = Bed::new();
    let docs = ".claude/ralph-loop.docs.local.md";
    bed.write(LOOP, free(1));
    bed.write(docs, free(10).replace("09:30", "10:30"));
    for _ in 0..2 {
        bed.work().send().blocks_with(PROMPT);
        bed.work().session(OTHER).send().blocks_with(PROMPT);
    }
    assert_eq!((bed.iteration(), value_in(&bed.read(docs), "iteration")), (3, "12".to_owned()));
    bed.work().session("a third one").send().is_silent();
}

/// Two loops whose files say the same of themselves are two loops all the same.
#[test]
fn pains_6_loops_with_the_same_start_have_their_own_journals() {
    let bed = Bed::new();
    bed.write(LOOP, free(1));
    bed.write(".claude/ralph-loop.docs.local.md", free(10));
    bed.work().send().blocks_with(PROMPT);
    bed.work().session(OTHER).send().blocks_with(PROMPT);
    let journals = bed.files_in(".ralph/journal");
    assert_eq!(journals.len(), 2);
    let owners: Vec<Value> = journals.iter().map(|j| records(j).pop().unwrap()["session"].clone()).collect();
    assert!(owners.contains(&json!(ME)) && owners.contains(&json!(OTHER)));
}

/// Agents that run Claude Code's hooks are not Claude Code. Each one's event and environment, as measured.
#[test]
fn pains_6_foreign_callers_never_touch_the_loop() {
    let stop = || json!({"session_id": ME, "hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": DONE, "transcript_path": "/t"});
    let with = |extra: Value| {
        let mut event = stop();
        event.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        event
    };
    let gemini = json!({"session_id": ME, "hook_event_name": "AfterAgent", "prompt": "p", "prompt_response": DONE, "timestamp": "2026-11-15T00:00:00Z"});
    let copilot = json!({"sessionId": ME, "transcriptPath": "/t", "stopReason": "end_turn", "timestamp": 1});
    let grok = with(json!({"hookEventName": "stop", "sessionId": ME, "promptId": "p", "lastAssistantMessage": DONE}));
    let callers: Vec<(&str, Value, Vec<&str>)> = vec![
        ("codex", with(json!({"turn_id": "t-1", "model": "m", "permission_mode": "bypassPermissions"})), vec![]),
        ("codex plugin", with(json!({"turn_id": "t-1", "model": "m"})), vec!["PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"]),
        ("gemini", gemini, vec!["GEMINI_SESSION_ID", "GEMINI_CWD"]),
        ("copilot agentStop", copilot, vec!["COPILOT_CLI"]),
        ("copilot Stop", with(json!({"stop_reason": "end_turn"})), vec!["COPILOT_CLI", "COPILOT_PROJECT_DIR"]),
        ("copilot without variables", with(json!({"stop_reason": "end_turn"})), vec![]),
        (
            "qwen",
            with(json!({"prompt_id": "x########0", "context_usage": 0.1, "crons": []})),
            vec!["QWEN_CODE_SESSION_ID", "GEMINI_PROJECT_DIR"],
        ),
        ("qwen by its variable", stop(), vec!["QWEN_CODE_SESSION_ID", "QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR"]),
        (
            "droid",
            with(json!({"message_id": "m", "tool_execution_count": 1, "elapsed_time": 1})),
            vec!["DROID_PROJECT_DIR", "FACTORY_PROJECT_DIR"],
        ),
        ("droid by its variable", stop(), vec!["FACTORY_PROJECT_DIR"]),
        ("grok", grok, vec!["GROK_SESSION_ID", "GROK_HOOK_EVENT"]),
        ("grok by its variable", stop(), vec!["GROK_HOOK_EVENT"]),
        ("kimi", with(json!({"client_type": "kimi_code_cli"})), vec![]),
    ];
    for (name, event, variables) in callers {
        for text in [free(1), loop_text(ME, 1, 0, "DONE")] {
            let bed = Bed::new();
            bed.write(LOOP, &text);
            let before = bed.tree();
            // Started from Claude Code's own shell, an agent also inherits that session's variables; its own session is another one.
            for inherited in [None, Some("another-session")] {
                let mut call = bed.event("Stop").no_env("CLAUDE_CODE_SESSION_ID").no_env("CLAUDECODE");
                if let Some(session) = inherited {
                    call = call.env("CLAUDE_CODE_SESSION_ID", session).env("CLAUDECODE", "1").client(CLIENT);
                }
                for variable in &variables {
                    call = call.env(variable, "1");
                }
                let mut event = event.clone();
                event["cwd"] = json!(bed.dir());
                call.send_raw(event.to_string()).is_silent();
                assert_eq!(bed.tree(), before, "{name}");
            }
        }
    }
}

/// A foreign caller in a project that uses ralph is named in the log.
#[test]
fn pains_6_a_foreign_caller_is_logged() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    bed.work().no_env("CLAUDE_CODE_SESSION_ID").field("turn_id", "t").send().is_silent();
    assert_eq!(
        bed.hook_log().pop().unwrap(),
        format!("event=Stop decision=allow code=host.foreign session={ME} error=\"called by codex\"")
    );
}

/// Claude Code started from another agent's shell is still Claude Code: its own session is in the environment.
#[test]
fn pains_6_claude_code_inside_another_agents_shell_is_claude_code() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().env("COPILOT_CLI", "1").env("GEMINI_SESSION_ID", "g").env("QWEN_CODE_SESSION_ID", "q").send().blocks_with(PROMPT);
}

/// A loop can be started for a session; t2: by a person, and not by the agent in its own shell.
#[test]
fn pains_6_t2_a_loop_started_for_a_session_belongs_to_it() {
    let bed = Bed::new();
    let start = || bed.run(crate::common::RALPH).args(["start", "Go", "--session", ME, "--endless"]);
    let out = start().env("CLAUDE_CODE_SESSION_ID", ME).output();
    assert_eq!((out.code, bed.exists(LOOP)), (Some(1), false), "{out:?}");
    assert_eq!(start().output().code, Some(0));
    assert_eq!(bed.value("session_id"), format!("\"{ME}\""));
    bed.work().session(OTHER).send().is_silent();
    bed.work().send().blocks_with("Go");
}

/// The sealed git really is the machine's own program: otherwise the tests about tracked files prove nothing.
#[test]
fn the_sealed_path_has_git() {
    assert!(Command::new("git").env_clear().env("PATH", ralph_testkit::project::PATH).arg("--version").output().unwrap().status.success());
}

/// A person edits the prompt of a file that has no id of its own: it stays the same loop of the same session.
#[test]
fn pains_6_an_edited_prompt_stays_with_its_session() {
    let bed = Bed::new();
    bed.write(LOOP, "---\niteration: 1\nmax_iterations: 0\ncompletion_promise: DONE\n---\nThe task.\n");
    bed.work().send().blocks_with("The task.");
    bed.write(LOOP, bed.read(LOOP).replace("The task.", "Another task."));
    bed.work().session(OTHER).send().is_silent();
    bed.work().send().blocks_with("Another task.");
}

/// A file that somebody deleted and wrote anew is a new loop, for whoever stops first.
#[test]
fn pains_6_a_file_written_anew_is_a_new_loop() {
    let bed = Bed::new();
    let text = "---\niteration: 1\nmax_iterations: 0\ncompletion_promise: DONE\n---\nThe task.\n";
    bed.write(LOOP, text);
    bed.work().send().blocks_with("The task.");
    std::fs::remove_file(bed.path(LOOP)).unwrap();
    bed.write(LOOP, text);
    bed.work().session(OTHER).send().blocks_with("The task.");
    bed.work().send().is_silent();
}

/// A bad edit of an adopted file is for its owner to hear of; another session does not end the loop.
#[test]
fn pains_6_another_session_does_not_end_a_loop_with_a_bad_edit() {
    let bed = Bed::new();
    bed.write(LOOP, "---\niteration: 1\nmax_iterations: 0\n---\nThe task.\n");
    bed.work().send().blocks_with("The task.");
    bed.write(LOOP, bed.read(LOOP).replace("max_iterations: 0", "max_iterations: twenty"));
    bed.work().session(OTHER).send().is_silent();
    assert!(bed.exists(LOOP));
    assert!(bed.work().send().line().contains("`max_iterations` must be a whole number"));
}

/// A checkout cannot arm a loop through a link, a submodule or a planted journal.
#[test]
fn design_6_a_checkout_arms_nothing() {
    let text = "---\niteration: 1\nmax_iterations: 0\n---\nEVIL\n";
    // `.claude` is a link to a folder that git tracks.
    let bed = Bed::in_git();
    bed.write("planted/ralph-loop.local.md", text);
    std::os::unix::fs::symlink("planted", bed.path(".claude")).unwrap();
    bed.commit_all("planted");
    bed.work().send().is_silent();
    // `.claude` is a repository of its own.
    let bed = Bed::in_git();
    bed.write(LOOP, text);
    bed.write(".claude/.git/HEAD", "ref: refs/heads/main\n");
    bed.work().send().is_silent();
    // The project is reached through a link.
    let bed = Bed::in_git();
    bed.write("sub/.claude/ralph-loop.local.md", text);
    bed.commit_all("planted");
    let link = bed.home().join("link");
    std::os::unix::fs::symlink(bed.path("sub"), &link).unwrap();
    bed.work().env("CLAUDE_PROJECT_DIR", link.as_os_str()).send().is_silent();
    // People are told what it is.
    let bed = Bed::in_git();
    bed.write(LOOP, text);
    bed.commit_all("planted");
    assert!(bed.ralph_ok(&["status"]).contains("came with the repository"));
    assert!(bed.event("SessionStart").field("source", "startup").send().line().contains("until you say /ralph-resume"));
}
