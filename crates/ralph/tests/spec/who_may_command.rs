//! Who may command a loop: a person, by a command that the client says was entered, or in a terminal; not a prompt that the model scheduled, and not the
//! agent's own shell (t1, t2). What the person typed while the agent worked is heard (t3, t4), and one variable makes every hook silent (t6).

use std::process::Command;

use ralph_testkit::Output;
use serde_json::json;

use crate::common::{Bed, CLIENT, Event, LOOP, ME, RALPH, now_ms, run, tick, unique};

/// The clients that say who entered a command.
const CLIENTS: [&str; 2] = ["claude-code_2-1-197_harness", CLIENT];

/// A prompt as any of them is reported: typed, scheduled by the model, or sent by a program.
fn prompted<'b>(bed: &'b Bed, command: &str, turn: &str) -> Event<'b> {
    bed.event("UserPromptSubmit").field("prompt", command).field("prompt_id", turn)
}

/// The event that only a command that a person entered has.
fn entered<'b>(bed: &'b Bed, command: &str, turn: &str) -> Event<'b> {
    let (name, args) = command.trim_start_matches('/').split_once(' ').unwrap_or((command.trim_start_matches('/'), ""));
    let event = bed.event("UserPromptExpansion").field("expansion_type", "slash_command").field("command_source", "projectSettings");
    event.field("command_name", name).field("command_args", args).field("prompt", command).field("prompt_id", turn)
}

const EVIL: &str = "/ralph-loop Tidy up --verify 'touch shell' --completion-promise DONE";

#[test]
fn t1_a_prompt_that_no_person_entered_starts_nothing() {
    for client in CLIENTS {
        let bed = Bed::new();
        let answer = prompted(&bed, EVIL, "t").client(client).send().json.unwrap();
        assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit");
        let told = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert!(told.contains("no person entered it") && answer.get("systemMessage").is_none(), "{answer}");
        assert!(!bed.exists(LOOP) && !bed.exists(".ralph"), "nothing was written");
        bed.stop("<promise>DONE</promise>").client(client).send().is_silent();
        assert!(!bed.exists("shell"));
        assert_eq!(bed.ralph_ok(&["trust", "--list"]), "No file of this project declares a command.\n");
    }
}

#[test]
fn t1_a_command_that_a_person_entered_starts_in_either_order() {
    for client in CLIENTS {
        for first in [true, false] {
            let bed = Bed::new();
            let (submit, expansion) = (prompted(&bed, EVIL, "t").client(client), entered(&bed, EVIL, "t").client(client));
            let answer = if first {
                submit.send();
                expansion.send()
            } else {
                let answer = expansion.send();
                submit.send();
                answer
            };
            let json = answer.json.unwrap();
            assert!(json["systemMessage"].as_str().unwrap().starts_with("Ralph: loop started"), "{json}");
            assert_eq!(bed.kinds(), ["started"]);
            // The person trusted the command by typing it.
            bed.stop("<promise>DONE</promise>").client(client).send();
            assert!(bed.exists("shell") && !bed.exists(LOOP), "{:?}", bed.hook_log());
        }
    }
}

#[test]
fn t1_a_prompt_that_no_person_entered_neither_ends_nor_pauses_nor_resumes() {
    for client in CLIENTS {
        for command in ["/cancel-ralph", "/ralph-pause", "/ralph cancel", "/ralph:cancel main"] {
            let bed = Bed::with_loop(3, 0, "DONE");
            bed.work().client(client).send();
            let before = bed.loop_bytes();
            prompted(&bed, command, "t").client(client).send();
            assert_eq!(bed.loop_bytes(), before, "{command}");
            assert!(bed.work().client(client).send().blocks(), "{command}: the loop goes on");
            entered(&bed, command, "t").client(client).send().instead();
            assert!(bed.work().client(client).send().json.is_none_or(|j| j.get("systemMessage").is_some()), "{command}");
        }
        let bed = Bed::with_loop(3, 0, "DONE");
        bed.ralph_ok(&["pause"]);
        prompted(&bed, "/ralph-resume --max-iterations 0", "t").client(client).send();
        assert_eq!(bed.value("active"), "false");
        entered(&bed, "/ralph-resume", "t").client(client).send();
        assert_eq!(bed.value("active"), "true");
        // Looking is free.
        assert!(prompted(&bed, "/ralph-status", "t2").client(client).send().instead().starts_with("Ralph loop: active"));
    }
}

/// A client that never says who entered a command is obeyed, and its commands are not trusted for it.
#[test]
fn t1_an_old_clients_word_trusts_nothing() {
    let bed = Bed::new();
    prompted(&bed, EVIL, "t").send();
    assert!(bed.exists(LOOP));
    let line = bed.stop("<promise>DONE</promise>").send().line();
    assert!(line.contains("ralph trust") && !bed.exists("shell"), "{line}");
    prompted(&bed, "/cancel-ralph", "t2").send().instead();
}

#[test]
fn t1_a_session_of_a_run_takes_no_command() {
    let bed = Bed::new();
    entered(&bed, EVIL, "t").client(CLIENT).env("RALPH_RUN", "main-20261115-093000.1").send().is_silent();
    assert!(!bed.exists(LOOP));
}

/// With `ralph` allowed in its shell, an agent can call the hook itself: that is nobody's event.
#[test]
fn t1_t2_an_agent_cannot_report_events_of_its_own() {
    let agent = "claude-code_2-1-325_agent";
    let bed = Bed::new();
    entered(&bed, EVIL, "t").client(agent).send().is_silent();
    assert!(!bed.exists(LOOP));
    let bed = Bed::with_loop(3, 0, "DONE");
    bed.work().send();
    for event in
        [entered(&bed, "/cancel-ralph", "t"), bed.stop("<promise>DONE</promise>"), bed.event("SessionEnd").field("reason", "clear")]
    {
        let before = bed.loop_bytes();
        event.client(agent).send().is_silent();
        assert_eq!(bed.loop_bytes(), before);
    }
    assert!(bed.hook_log().iter().any(|line| line.contains("hook.shell")), "{:?}", bed.hook_log());
}

/// Nor does it gain by an event that looks like that of a client with other words, or none, in `AI_AGENT`: what no client says was typed trusts nothing.
#[test]
fn t1_t2_an_event_that_no_client_vouches_for_trusts_nothing() {
    for client in ["", "claude-code_2-1-325", "claude-code_2-1-100_harness", "codex_2-1-325_harness"] {
        let bed = Bed::new();
        entered(&bed, EVIL, "t").client(client).send();
        let line = bed.stop("<promise>DONE</promise>").client(client).send().line();
        assert!(line.contains("ralph trust") && !bed.exists("shell"), "{client:?}: {line}");
    }
}

fn in_a_shell(bed: &Bed, args: &[&str], signs: &[(&str, &str)]) -> Output {
    run(bed.command(RALPH).args(args).envs(signs.iter().copied()), b"")
}

/// What is refused in an agent's shell, as it is typed.
const REFUSED: [&[&str]; 31] = [
    &["start", "Go"],
    &["run", "Go"],
    &["run", "--continue"],
    &["cancel"],
    &["pause"],
    &["resume"],
    &["resume", "--max-iterations", "0"],
    &["steer", "Do it so"],
    &["rollback", "1"],
    &["init"],
    &["init", "--local"],
    &["init", "--yes"],
    &["uninstall"],
    &["doctor", "--fix"],
    &["gate", "--accept"],
    &["gate", "--gates", "/tmp/gates.toml"],
    &["gate", "--junit", "gates.xml"],
    &["bundle", "export", "out.bundle"],
    &["-C", "/tmp", "item", "done", "--list", "TODO.md", "item-1"],
    &["-C", ".", "gate"],
    &["report", "--step-summary"],
    &["trust"],
    &["trust", "--yes"],
    &["trust", "--revoke"],
    &["notify", "cmd:touch shell"],
    &["plugin", "out"],
    &["report", "--html", "page.html"],
    &["report", "--markdown", "--output", "page.md"],
    &["report", "--open"],
    &["man", "--dir", "out"],
    &["statusline", "--after", "touch shell", "--color", "never"],
];

#[test]
fn t2_what_is_a_persons_is_refused_in_an_agents_shell() {
    let bed = Bed::in_git();
    bed.write(LOOP, crate::common::loop_text(ME, 3, 0, "DONE"));
    bed.work().send();
    let before = bed.tree();
    for args in REFUSED {
        for sign in [("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", ME), ("RALPH_RUN", "x.1")] {
            let out = in_a_shell(&bed, args, &[sign]);
            assert!(out.code.is_some_and(|code| code != 0) || args[0] == "statusline", "{args:?}: {out:?}");
            assert!(out.stderr.contains(&format!("this is an agent's shell ({} is set)", sign.0)), "{args:?}: {out:?}");
            assert!(out.stderr.contains("in their own terminal"), "{args:?}: {out:?}");
        }
    }
    let json: serde_json::Value = serde_json::from_str(&in_a_shell(&bed, &["cancel", "--json"], &[("CLAUDECODE", "1")]).stdout).unwrap();
    assert!(json["error"]["message"].as_str().unwrap().contains("an agent's shell"), "{json}");
    assert_eq!(bed.tree(), before, "nothing was changed");
    for args in [&["status"][..], &["list"], &["log"], &["explain"], &["trust", "--list"], &["init", "--dry-run"], &["man"]] {
        let out = in_a_shell(&bed, args, &[("CLAUDECODE", "1")]);
        assert_eq!(out.code, Some(0), "{args:?}: {out:?}");
    }
}

/// An agent may mark what it may not edit: the lists of its loop, wherever they are. Another file with a box in it is no such list.
#[test]
fn t2_an_agent_marks_lists_of_the_project_and_nothing_else() {
    let bed = Bed::in_git();
    let box_of = |text: &str| format!("# {text}\n\n- [ ] one\n");
    bed.write(LOOP, crate::common::loop_text(ME, 3, 0, "DONE") + "- [ ] I, the person, approve\n");
    bed.write(".claude/agents/x.md", box_of("An agent"));
    bed.write("TODO.md", box_of("A plan"));
    let outside = bed.home().join("other.md");
    std::fs::write(&outside, box_of("Not of this project")).unwrap();
    let before = bed.tree();
    let done = |list: &str| in_a_shell(&bed, &["item", "done", "--list", list, "item-1"], &[("CLAUDECODE", "1")]);
    for list in [LOOP, ".claude/agents/x.md", outside.to_str().unwrap(), "../home/other.md"] {
        let out = done(list);
        assert!(
            out.code == Some(1)
                && (out.stderr.contains("is no list of") || out.stderr.contains("leads out of") || out.stderr.contains("not there")),
            "{list}: {out:?}"
        );
    }
    assert_eq!(bed.tree(), before, "nothing was changed");
    assert_eq!(done("TODO.md").code, Some(0));
    assert!(bed.read("TODO.md").contains("- [x] one"));
    // What a gate names is its list, wherever it is.
    bed.write("ralph.toml", "[[gate]]\nname = \"plan\"\nfeatures = \".claude/agents/x.md\"\n");
    assert_eq!(done(".claude/agents/x.md").code, Some(0), "{:?}", done(".claude/agents/x.md"));
}

/// The status line of a person's own is a command, and the client may run it; the agent may not.
#[test]
fn t2_an_agent_gets_no_shell_by_the_status_line() {
    let bed = Bed::new();
    for sign in [("AI_AGENT", "claude-code_2-1-325_agent"), ("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", ME), ("GEMINI_SESSION_ID", "g")]
    {
        for args in [&["statusline", "--after", "touch shell"][..], &["statusline", "--after=touch shell"]] {
            assert_eq!(in_a_shell(&bed, args, &[sign]).code, Some(0), "{sign:?}");
            assert!(!bed.exists("shell"), "{sign:?}");
        }
    }
    in_a_shell(&bed, &["statusline", "--after", "touch shell"], &[("AI_AGENT", CLIENT), ("CLAUDECODE", "1")]);
    assert!(bed.exists("shell"));
}

/// An agent that clears the environment of one command still has its shell above it.
#[test]
fn t2_a_cleared_environment_is_seen_through() {
    let bed = Bed::new();
    let shell = |line: &str| {
        let mut command: Command = bed.command("/bin/sh");
        command.env("CLAUDECODE", "1").env_remove("RALPH_ALONE").args(["-c", &format!("{line}; exit $?")]);
        run(&mut command, b"")
    };
    let home = bed.home().display().to_string();
    for line in [
        format!("env -i HOME='{home}' PATH=/usr/bin:/bin '{RALPH}' start Go"),
        format!("unset CLAUDECODE; '{RALPH}' start Go"),
        format!("unset CLAUDECODE; sh -c \"'{RALPH}' start Go; exit \\$?\""),
    ] {
        let out = shell(&line);
        assert!(out.code == Some(1) && out.stderr.contains("an agent's shell (CLAUDECODE is set)"), "{line}: {out:?}");
    }
    assert!(!bed.exists(LOOP));
}

/// What was typed, at this time.
fn typed_at(typed: &str, at: i64) -> serde_json::Value {
    json!({"type": "queue-operation", "operation": "enqueue", "content": typed, "timestamp": ralph_core::text::time::format(at)})
}

/// The line of what was typed before a ruling reaches the file after it: the next ruling sees it, though it is older than the one before.
#[test]
fn t3_a_cancel_whose_line_comes_late_is_heard() {
    for client in CLIENTS {
        let bed = Bed::with_loop(1, 0, "DONE");
        let transcript = bed.transcript();
        transcript.user("go").says("m1", "one");
        let typed = now_ms();
        tick();
        assert!(bed.stop("one").client(client).send().blocks());
        transcript.line(typed_at("/cancel-ralph", typed)).feedback("go").uses_tool("m2").says("m3", "two");
        assert!(bed.stop("two").client(client).send().json.is_none(), "let through: {:?}", bed.codes());
        assert_eq!(bed.codes(), ["promise.missing", "host.queued-input"]);
        // Another hook may have sent the agent back meanwhile: in the same turn it still waits.
        transcript.says("m4", "three");
        assert!(bed.stop("three").client(client).send().json.is_none());
        transcript.line(json!({"type": "queue-operation", "operation": "dequeue"}));
        entered(&bed, "/cancel-ralph", "t2").client(client).send();
        assert!(!bed.exists(LOOP));
    }
}

/// The same at the first ruling: the line stands before the message that began the turn, or even before the turn in which the loop was started.
#[test]
fn t3_a_cancel_typed_before_the_first_ruling_is_heard() {
    let before_the_message = |bed: &Bed| {
        bed.transcript().waits("/cancel-ralph").user("go").says("m1", "one");
    };
    let before_the_turn = |bed: &Bed| {
        let transcript = bed.transcript();
        transcript
            .user("hello")
            .waits("/ralph-loop x")
            .waits("/cancel-ralph")
            .says("m0", "Hello.")
            .queue("dequeue")
            .user("/ralph-loop x")
            .says("m1", "one");
    };
    for write in [&before_the_message as &dyn Fn(&Bed), &before_the_turn] {
        let bed = Bed::with_loop(1, 0, "DONE");
        write(&bed);
        assert!(bed.stop("one").client(CLIENT).send().json.is_none());
        assert_eq!(bed.codes(), ["host.queued-input"]);
    }
    // What an earlier process left there is gone, and a session that comes back begins anew.
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.transcript().line(typed_at("/cancel-ralph", 1_000)).user("go").says("m1", "one");
    assert!(bed.stop("one").client(CLIENT).send().blocks());
    let bed = Bed::with_loop(1, 0, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "one");
    bed.stop("one").client(CLIENT).send();
    transcript.waits("/cancel-ralph");
    bed.event("SessionStart").field("source", "resume").client(CLIENT).send();
    transcript.user("again").says("m2", "two");
    assert!(bed.stop("two").field("prompt_id", "p2").client(CLIENT).send().blocks(), "{:?}", bed.codes());
}

/// A line of the person's, as both clients write it.
fn by_person(text: &str) -> serde_json::Value {
    json!({"type": "user", "message": {"role": "user", "content": text}, "origin": {"kind": "human"}, "promptSource": "typed"})
}

#[test]
fn t4_a_message_that_says_stop_pauses_the_loop() {
    for said in ["stop", "Halt!", "wait", "please stop"] {
        let bed = Bed::with_loop(2, 9, "DONE");
        let transcript = bed.transcript();
        transcript.user("go").says("m1", "one");
        assert!(bed.stop("one").client(CLIENT).send().blocks());
        tick();
        transcript.line(by_person(said)).says("m2", "All right.");
        bed.stop("All right.")
            .client(CLIENT)
            .send()
            .tells("Ralph: you said stop, so the loop is paused at iteration 3 of 9. /ralph-resume arms it again, /cancel-ralph ends it.");
        assert_eq!(bed.codes(), ["promise.missing", "person.stop"]);
        // And it goes on when the person says so: the word was heard once.
        bed.ralph_ok(&["resume"]);
        transcript.says("m3", "three");
        assert!(bed.stop("three").client(CLIENT).send().blocks(), "{said}");
    }
}

#[test]
fn t4_a_stop_that_no_person_typed_is_none() {
    let bed = Bed::with_loop(2, 9, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "one");
    bed.stop("one").client(CLIENT).send();
    tick();
    let mut scheduled = by_person("stop");
    scheduled["isMeta"] = json!(true);
    scheduled["promptSource"] = json!("system");
    transcript.line(scheduled).says("m2", "I was told to stop.");
    assert!(bed.stop("I was told to stop.").client(CLIENT).send().blocks());
    transcript.line(by_person("do not stop")).says("m3", "I go on.");
    assert!(bed.stop("I go on.").client(CLIENT).send().blocks());
}

/// A command that the client did not report (its event is not registered) is the person's word all the same.
#[test]
fn t4_a_cancel_that_no_event_reported_pauses() {
    let bed = Bed::with_loop(2, 9, "DONE");
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "one");
    bed.stop("one").client(CLIENT).send();
    tick();
    let expanded =
        "<command-message>cancel-ralph</command-message>\n<command-name>/cancel-ralph</command-name>\n<command-args></command-args>";
    transcript.user(expanded).says("m2", "The hook is not at work.");
    assert!(bed.stop("The hook is not at work.").client(CLIENT).send().line().contains("you said stop"));
}

#[test]
fn t6_one_variable_makes_every_hook_silent() {
    let bed = Bed::with_loop(2, 9, "DONE");
    bed.work().send();
    let before = bed.tree();
    let events = || {
        [bed.work(), bed.stop("<promise>DONE</promise>"), entered(&bed, "/cancel-ralph", "t"), bed.event("SessionStart"), bed.typed("x")]
    };
    for event in events() {
        let event = event.env("RALPH_DISABLE", "1").env("RALPH_LOG", bed.path("log"));
        event.send().is_silent();
        event.send_raw("no JSON").is_silent();
        let mut waits = event.command();
        let out = run(waits.args(["--wait", "--timeout", "60"]), event.json().as_bytes());
        assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(0), "", ""));
    }
    assert_eq!(bed.tree(), before, "nothing was read or written");
    for off in ["", "0", " "] {
        assert!(bed.work().env("RALPH_DISABLE", off).send().blocks(), "{off:?}");
    }
}

#[test]
fn t6_doctor_names_the_switch() {
    let bed = Bed::new();
    bed.ralph_ok(&["init"]);
    let disabled = |bed: &Bed, value: Option<&str>| {
        let mut command = bed.command(RALPH);
        command.args(["doctor", "--json"]).envs(value.map(|value| ("RALPH_DISABLE", value)));
        let json: serde_json::Value = serde_json::from_str(&run(&mut command, b"").stdout).unwrap();
        let found = json["findings"].as_array().unwrap().iter().find(|f| f["id"] == "disabled").cloned();
        found.map(|f| (f["severity"].as_str().unwrap().to_owned(), f["what"].as_str().unwrap().to_owned()))
    };
    assert_eq!((disabled(&bed, None), disabled(&bed, Some("0")), disabled(&bed, Some(""))), (None, None, None));
    let (severity, what) = disabled(&bed, Some("1")).unwrap();
    assert!(severity == "error" && what.starts_with("RALPH_DISABLE is set in this shell"), "{what}");
    let settings = format!("{{\"env\":{{\"RALPH_DISABLE\":\"yes\"}},\"x\":{}}}", unique());
    bed.write(".claude/settings.local.json", settings);
    assert!(disabled(&bed, None).unwrap().1.contains("settings.local.json"));
}

#[test]
fn t2_doctor_warns_of_rules_that_allow_more_than_it_seems() {
    let found = |rule: &str| {
        let bed = Bed::new();
        bed.write(".claude/settings.json", json!({"permissions": {"allow": ["Read", rule]}}).to_string());
        let out = bed.ralph(&["doctor", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["id"] == "permissions.ralph")
            .map(|f| f["severity"].as_str().unwrap().to_owned())
    };
    for rule in ["Bash(ralph:*)", "Bash(ralph *)", "Bash(/usr/local/bin/ralph:*)", "Bash(ralph*)"] {
        assert_eq!(found(rule).as_deref(), Some("warning"), "{rule}");
    }
    for rule in ["Bash", "Bash(*)"] {
        assert_eq!(found(rule).as_deref(), Some("note"), "{rule}");
    }
    for rule in ["Bash(ralph item:*)", "Bash(ralph status)", "Bash(cargo:*)", "Edit"] {
        assert_eq!(found(rule), None, "{rule}");
    }
}
