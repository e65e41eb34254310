//! `ralph statusline`: one line about the loop, whatever comes in, and never in the way of a line that was there before.

use std::time::{Duration, Instant};

use ralph_testkit::Output;
use serde_json::{Value, json};

use crate::common::{Bed, LOOP, ME, OTHER, RALPH, loop_text, run};

/// What the client sends to a status line, in short.
fn told(bed: &Bed, session: &str) -> Value {
    json!({
        "session_id": session, "cwd": bed.dir(), "model": {"id": "m", "display_name": "Model"},
        "workspace": {"current_dir": bed.dir(), "project_dir": bed.dir()},
        "cost": {"total_cost_usd": 0.5}, "context_window": {"used_percentage": 42.4},
    })
}

fn line_with(bed: &Bed, input: &[u8], args: &[&str], env: &[(&str, &str)]) -> Output {
    let out = run(bed.command(RALPH).arg("statusline").args(args).envs(env.iter().copied()), input);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    out
}

/// The line of a session, without colour.
fn line(bed: &Bed, session: &str, env: &[(&str, &str)]) -> String {
    let env = [&[("NO_COLOR", "1")], env].concat();
    line_with(bed, told(bed, session).to_string().as_bytes(), &[], &env).stdout
}

#[test]
fn eyes_3_the_statusline_has_the_sessions_loop() {
    let bed = Bed::new();
    bed.write(
        "ralph.toml",
        "keep_going = true\n[[gate]]\nname = \"tests\"\ncommand = \"false\"\n[[gate]]\nname = \"lint\"\ncommand = \"true\"\n",
    );
    bed.ralph_ok(&["trust", "--yes"]);
    bed.ralph_ok(&["start", "Go", "--session", ME, "--max-iterations", "20", "--usd", "50", "--completion-promise", "DONE"]);
    bed.stop("It is done.\n\n<promise>DONE</promise>").send();
    let before = bed.tree();
    let shown = line(&bed, ME, &[]);
    assert!(shown.starts_with("ralph 2/20 · ") && shown.ends_with(" s of 8 h · $0 of $50 · tests ✗ lint ✓\n"), "{shown}");
    let coloured = line_with(&bed, told(&bed, ME).to_string().as_bytes(), &[], &[]).stdout;
    assert!(coloured.contains("\x1b[31mtests ✗\x1b[0m \x1b[32mlint ✓\x1b[0m"), "{coloured:?}");
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string().split(" · ").count(), 4);
    // Where there is little room the most important stays. The client keeps two columns free on each side.
    for (columns, expected) in [("34", "ralph 2/20 · tests ✗ lint ✓\n"), ("16", "ralph 2/20\n"), ("10", "ralph…\n")] {
        assert_eq!(line(&bed, ME, &[("COLUMNS", columns)]), expected);
    }
    // Another session of the project sees that it is not its own.
    assert!(line(&bed, OTHER, &[]).starts_with("ralph (another session) 2/20 · "));
    assert_eq!(bed.tree(), before, "a look leaves no trace");
    bed.ralph_ok(&["pause"]);
    assert!(line(&bed, ME, &[]).ends_with(" · paused\n"));
    bed.ralph_ok(&["cancel"]);
    assert_eq!(line(&bed, ME, &[]), "");
}

#[test]
fn eyes_3_the_statusline_counts_where_there_are_several_and_shows_no_strangers() {
    let bed = Bed::in_git();
    assert_eq!(line(&bed, ME, &[]), "");
    bed.write(LOOP, loop_text("null", 1, 9, "DONE"));
    assert_eq!(line(&bed, ME, &[]), "", "a file that nobody took may have come with a checkout");
    std::fs::remove_file(bed.path(LOOP)).unwrap();
    bed.write(".claude/ralph-loop.docs.local.md", loop_text(OTHER, 3, 7, "DONE"));
    assert!(line(&bed, ME, &[]).starts_with("ralph (another session) docs 3/7"));
    bed.write(".claude/ralph-loop.more.local.md", loop_text("third", 1, 0, "DONE"));
    assert_eq!(line(&bed, ME, &[]), "ralph: 2 loops here\n");
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE").replace("active:", "max_context: 80\nactive:"));
    assert_eq!(line(&bed, ME, &[]), "ralph 1 · 0 s of 8 h · context 42 of 80 %\n");
}

/// Whatever comes in, the exit code is 0, and nothing but a line comes out.
#[test]
fn eyes_3_the_statusline_takes_any_input() {
    let bed = Bed::with_loop(4, 9, "DONE");
    for input in [
        "",
        "null",
        "[]",
        "{",
        "nonsense\0",
        "{\"session_id\": 7, \"cwd\": [], \"workspace\": \"x\", \"context_window\": {\"used_percentage\": \"y\"}}",
    ] {
        let out = line_with(&bed, input.as_bytes(), &[], &[("NO_COLOR", "1")]);
        assert!(out.stdout.starts_with("ralph (another session) 4/9"), "{input}: {out:?}");
    }
    // A name of a gate steers no terminal.
    bed.write("ralph.toml", "[[gate]]\nname = \"\\u001b[2Jx\"\nfile = \"x\"\n");
    bed.work().send();
    assert!(!line(&bed, ME, &[]).contains('\x1b'));
    let out = run(bed.command(RALPH).args(["statusline", "--afer", "x"]), b"{}");
    assert!(out.code == Some(0) && out.stdout.lines().count() == 1 && out.stdout.contains("--help"), "{out:?}");
    assert!(bed.ralph_ok(&["statusline", "--help"]).contains("Usage: ralph statusline"));
}

/// A status line of the person's own comes first, as it is; the loop never costs it anything, nor it the loop.
#[test]
fn eyes_3_the_statusline_comes_after_the_persons_own() {
    let bed = Bed::with_loop(4, 9, "DONE");
    let input = told(&bed, ME).to_string();
    let after = |command: &str, env: &[(&str, &str)]| {
        let env = [&[("NO_COLOR", "1")], env].concat();
        line_with(&bed, input.as_bytes(), &["--after", command], &env).stdout
    };
    let own = "ralph 4/9 · 0 s of 8 h";
    assert_eq!(
        after("grep -o '\"display_name\":\"[a-zA-Z]*\"'; echo second", &[]),
        format!("\"display_name\":\"Model\" | {own}\nsecond\n")
    );
    assert_eq!(after("true", &[]), format!("{own}\n"));
    assert_eq!(after("echo x; exit 3", &[]), format!("{own} | (your status line: exit 3)\n"));
    assert_eq!(after("echo long", &[("COLUMNS", "22")]), "long | ralph 4/9\n");
    assert_eq!(after("echo long enough", &[("COLUMNS", "22")]), "long enough\nralph 4/9\n");
    // One that was given this very program does not show the loop twice.
    assert_eq!(after(&format!("{RALPH} statusline"), &[]), format!("{own}\n"));
    // What it looks up for the next time goes on, and nobody waits for it.
    after("(sleep 0.3; echo x > later) > /dev/null 2>&1 & echo now", &[]);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !bed.exists("later") {
        assert!(Instant::now() < deadline, "what it left running was ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    let hung = after("sleep 60", &[]);
    assert!(hung.starts_with(own) && hung.contains("took more than 3 s"), "{hung}");
    bed.ralph_ok(&["cancel"]);
    assert_eq!(after("printf 'a \\033[1mb\\nc\\n'", &[]), "a \x1b[1mb\nc\n", "without a loop it is as it came");
}

/// What other agents send to a status line, as it was captured from them: without the project's folder, and without Claude Code's variables.
#[test]
fn h4_the_status_line_of_other_agents_has_the_sessions_loop() {
    let bed = Bed::new();
    std::fs::create_dir_all(bed.path("src")).unwrap();
    bed.ralph_ok(&["start", "Go", "--session", ME, "--max-iterations", "20"]);
    bed.ralph_ok(&["start", "Go", "--session", OTHER, "--name", "other", "--max-iterations", "5"]);
    let context = json!({"context_window_size": 128_000, "used_percentage": 0, "remaining_percentage": 100});
    let more = [
        ("copilot", json!({"session_name": "do", "version": "1.0.102", "remote": {"connected": false}, "ai_used": {"formatted": "0"}})),
        ("qwen", json!({"version": "0.24.4", "git": {"branch": "master"}, "metrics": {"models": {}}})),
        ("grok", json!({"schema_version": 1, "version": "1.0.41", "trigger": "state"})),
    ];
    for (agent, more) in more {
        // They name the folder that the agent is in, which may be below the project's.
        for folder in [bed.dir().to_owned(), bed.path("src")] {
            let line_of = |session: &str| {
                let mut told = more.clone();
                told["session_id"] = session.into();
                told["workspace"] = json!({"current_dir": folder});
                told["context_window"] = context.clone();
                line_with(&bed, told.to_string().as_bytes(), &[], &[("NO_COLOR", "1")]).stdout
            };
            assert!(line_of(ME).starts_with("ralph 1/20 · "), "{agent}: {}", line_of(ME));
            assert!(line_of(OTHER).starts_with("ralph other 1/5 · "), "{agent}: {}", line_of(OTHER));
            assert_eq!(line_of("5e551017-0000-4000-8000-000000000003"), "ralph: 2 loops here\n", "{agent}");
        }
    }
}
