//! The command line of the first minutes: the first page, careful defaults, `--preset pr`, names that fit the reader, and a clean way out.

use std::{fs, time::Duration};

use ralph_testkit::{Check, Output, pty::Pty};
use serde_json::Value;

use crate::{
    common::{Bed, LOOP, ME, RALPH, loop_text, run},
    hub,
    screen::{shown, without_styles},
    slash::context,
};

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a person sees who types `ralph`, on a screen of 24 rows and 80 columns.
fn page(bed: &Bed, folder: &str) -> String {
    let mut command = bed.command(RALPH);
    command.current_dir(bed.path(folder)).env("TERM", "xterm-256color");
    let pty = Pty::spawn(command, 24, 80);
    assert_eq!(pty.wait_exit(PATIENCE), Some(0), "{}", pty.screen());
    assert!(pty.wait_closed(PATIENCE));
    let screen = pty.screen();
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// One that is shown in a test has the same name everywhere.
fn with_place(page: &str, bed: &Bed) -> String {
    page.replace(bed.path("").to_str().unwrap().trim_end_matches('/'), "[PROJECT]")
}

#[test]
fn u1_the_first_page_says_what_comes_next() {
    let bed = Bed::in_git();
    let at = |page: &str| {
        with_place(page, &bed)
            .lines()
            .filter(|line| !line.contains("[PROJECT]") && !line.starts_with("  project"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(
        at(&page(&bed, "")),
        "\
Ralph keeps a coding agent working until the work is proven done.

  set up      no: no agent calls ralph yet
  loop        none so far

Next: ralph init
      finds this project's checks and registers ralph with Claude Code; it asks
      before each step
`ralph --help` lists the commands."
    );
    bed.register();
    let next = || at(&page(&bed, "")).split_once("\nNext: ").unwrap().1.to_owned();
    assert!(next().starts_with("ralph init\n      finds the checks"), "no check yet: {}", next());
    bed.write("ralph.toml", "[[gate]]\nname = \"tests\"\ncommand = \"true\"\n");
    assert!(next().starts_with("ralph trust\n"), "nothing of it runs yet: {}", next());
    bed.ralph_ok(&["trust", "--yes"]);
    assert!(next().starts_with("ralph run \"TASK\"\n") && next().contains("\n      /ralph-loop TASK\n"), "{}", next());
    bed.write("ralph.toml", "[[gate]]\nname = tests\n");
    assert!(next().starts_with("ralph gate\n"), "a mistake in it: {}", next());
    fs::remove_file(bed.path("ralph.toml")).unwrap();
    // Another agent alone is enough, and is the one that is named.
    let other = Bed::in_git();
    other.ralph_ok(&["init", "--agent", "codex"]);
    other.write("ralph.toml", "[[gate]]\nname = \"list\"\nfeatures = \"feature_list.json\"\n");
    let of_codex = page(&other, "");
    for words in
        ["yes: Codex calls ralph\n", "\nNext: ralph run \"TASK\" --agent codex\n", "in a session of Codex:\n      $ralph-loop TASK\n"]
    {
        assert!(of_codex.contains(words), "{words}\n{of_codex}");
    }
    assert!(!bed.path(".ralph").exists(), "a look leaves nothing behind");
    // A loop in three lines.
    bed.ralph_ok(&["start", "Make it work", "--promise", "DONE", "--session", ME]);
    let of_loop = at(&page(&bed, ""));
    let lines: Vec<&str> = of_loop.lines().collect();
    assert!(lines.len() == 4 && lines[0].starts_with("main-") && lines[0].contains(" iteration 1"), "{of_loop}");
    assert_eq!(lines[1], "  prompt      Make it work");
    assert_eq!(lines[2], "  next        `ralph watch` shows it as it goes");
    bed.ralph_ok(&["pause"]);
    assert!(page(&bed, "").contains("  next        you paused it: `ralph resume` goes on."), "{}", page(&bed, ""));
    bed.ralph_ok(&["cancel"]);
    let over = page(&bed, "");
    assert!(over.contains("last loop   main-") && over.contains("cancelled at iteration 1") && over.contains("Next: ralph init"), "{over}");
}

/// A person without a terminal, or a script, gets the page, and doctor has nothing to tell of it. An agent's client that sends no event is trouble.
#[test]
fn u1_the_first_page_without_a_terminal_is_no_hook_call() {
    let bed = Bed::in_git();
    for input in ["", "\n"] {
        let out = run(&mut bed.command(RALPH), input.as_bytes());
        assert!(out.code == Some(0) && out.stdout.contains("Next: ralph init\n"), "{out:?}");
    }
    assert!(!bed.ralph(&["doctor"]).stdout.contains("hook.trouble"));
    let out = run(bed.command(RALPH).env("CLAUDE_PROJECT_DIR", bed.dir()), b"");
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), ""), "{out:?}");
    assert!(bed.ralph(&["doctor"]).stdout.contains("hook.trouble"));
}

#[test]
fn u1_the_first_page_where_no_project_is() {
    let bed = Bed::new();
    let mut command = bed.command(RALPH);
    command.current_dir(bed.home()).args(["--color", "never"]);
    let out = run(&mut command, b"");
    assert_eq!(out.code, Some(0));
    assert!(out.stdout.contains("none: this is your home folder") && out.stdout.contains("Next: cd PROJECT"), "{}", out.stdout);
    let mut command = bed.command(RALPH);
    command.args(["-C", "/"]);
    let out = run(&mut command, b"");
    assert!(out.code == Some(0) && out.stdout.contains("the top folder of the system"), "{out:?}");
    // With an event on standard input and no argument it is the hook, as ever.
    let event = bed.stop("Hello").json();
    let out = run(&mut bed.command(RALPH), event.as_bytes());
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), ""));
}

/// What one command became part of another gives the same, under either name.
#[test]
fn u1_old_names_do_the_same() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    let same = |old: &[&str], new: &[&str]| {
        let (old, new) = (bed.ralph(old), bed.ralph(new));
        assert_eq!((old.code, &old.stdout, &old.stderr), (new.code, &new.stdout, &new.stderr), "{new:?}");
    };
    same(&["phase", "--json"], &["pr", "--json"]);
    same(&["phase"], &["pr"]);
    same(&["-C", ".", "--color", "never", "phase"], &["-C", ".", "--color", "never", "pr"]);
    same(&["wait"], &["pr", "--wait"]);
    same(&["wait", "--timeout", "1s", "--json"], &["pr", "--wait", "--timeout", "1s", "--json"]);
    same(&["notify"], &["doctor", "--notify"]);
    same(&["notify", "nowhere"], &["doctor", "--notify", "nowhere"]);
    same(&["explain", "--loop", "main"], &["explain", "1", "main"]);
    same(&["steer", "--name", "main", "--list"], &["steer", "--list", "main"]);
    same(&["gate", "--loop", "main"], &["gate", "main"]);
    let folders = ["a", "b"].map(|name| bed.home().join(name).display().to_string());
    let (old, new) = (bed.ralph_ok(&["plugin", &folders[0]]), bed.ralph_ok(&["init", "--plugin", &folders[1]]));
    assert_eq!(old.replace(&folders[0], ""), new.replace(&folders[1], ""));
    let usual = bed.ralph_ok(&["init", "--plugin"]);
    assert!(usual.contains(".local/state/ralph/plugin"), "{usual}");
    assert!(bed.home().join(".local/state/ralph/plugin/plugin/bin/ralph").exists());
    // Ended loops are in the list of all.
    bed.ralph_ok(&["cancel"]);
    let all = bed.ralph(&["status", "--all"]);
    assert!(all.code == Some(3) && all.stdout.contains("  main") && all.stdout.contains("cancelled at iteration 2"), "{all:?}");
}

#[test]
fn u1_a_loop_is_named_by_its_place() {
    let bed = Bed::new();
    bed.ralph_ok(&["start", "Write", "--name", "docs", "--endless"]);
    bed.ralph_ok(&["start", "Build", "--promise", "DONE"]);
    assert!(bed.ralph_ok(&["steer", "docs", "Use tabs"]).contains("for the agent of docs-"));
    // More words are a note, and say nothing of a loop.
    fails(&bed.ralph(&["steer", "main", "needs", "tests"]), 2, "there are several loops here");
    let notes = bed.ralph_ok(&["steer", "--list", "docs"]);
    assert!(notes.contains("Use tabs"), "{notes}");
    let out = bed.ralph(&["run", "--continue", "two words"]);
    assert!(out.code == Some(2) && out.stderr.contains("name only the loop"), "{out:?}");
    let out = bed.ralph(&["run", "--continue", "nowhere", "--agent-cmd", "true"]);
    assert!(out.code != Some(0) && out.stderr.contains("nowhere"), "{out:?}");
}

#[test]
fn u1_the_promise_and_standard_input_in_short() {
    let bed = Bed::new();
    bed.register();
    let mut command = bed.command(RALPH);
    command.args(["start", "-", "--promise", "ALL DONE"]);
    let out = run(&mut command, b"from a pipe\n");
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!((bed.status()["prompt"].as_str(), bed.status()["completion_promise"].as_str()), (Some("from a pipe"), Some("ALL DONE")));
    bed.ralph_ok(&["cancel"]);
    for flag in ["--promise", "--completion-promise"] {
        bed.typed(&format!("/ralph-loop Do it {flag} DONE")).send();
        assert_eq!(bed.status()["completion_promise"], "DONE", "{flag}");
        bed.ralph_ok(&["cancel"]);
    }
}

/// People read their own time; programs read UTC.
#[test]
fn u1_times_are_local_for_people() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.work().send();
    let shown = |zone: &str, args: &[&str]| {
        let out = run(bed.command(RALPH).args(args).env("TZ", zone), b"");
        assert_eq!(out.code, Some(0), "{out:?}");
        out.stdout
    };
    let at = bed.journal()[0]["at"].as_str().unwrap()[..19].replace('T', " ");
    // Four hours and a half ahead, without any file of the system's.
    let zone = "XST-4:30";
    assert!(shown("UTC", &["log"]).contains(&format!("{at}Z")), "{at}");
    let local = shown(zone, &["log"]);
    assert!(local.contains(" XST ") && !local.contains(&at), "{at}: {local}");
    assert!(shown(zone, &["explain"]).contains(" XST"));
    assert_eq!(shown(zone, &["log", "--json"]), shown("UTC", &["log", "--json"]));
    assert_eq!(shown(zone, &["status", "--json"]).matches("\"last_event_at\"").count(), 1);
    let page = shown(zone, &["report", "--html", "-"]);
    assert!(page.contains("All times are XST.") && page.contains("<time datetime=\"20"), "{page}");
    assert!(shown("UTC", &["report", "--html", "-"]).contains("All times are UTC."));
    // What they read, they may type.
    let minute = local.lines().next().unwrap()[..16].to_owned();
    assert_eq!(shown(zone, &["log", "--since", &minute]), local);
}

fn fails(out: &Output, code: i32, said: &str) {
    assert_eq!(out.code, Some(code), "{out:?}");
    assert!(out.stderr.contains(said), "{out:?}");
}

#[test]
fn u4_a_loop_that_nothing_ends_has_to_be_wanted() {
    let bed = Bed::new();
    bed.register();
    let why = "nothing but you would end this loop before 8 hours are over: it has no promise and no gate. `ralph init` finds checks";
    fails(&bed.ralph(&["start", "Go"]), 2, why);
    fails(&bed.ralph(&["start", "Go"]), 2, "or --endless");
    fails(&bed.ralph(&["start", "Go", "--max-iterations", "0", "--hours", "0"]), 2, "nothing but you would end this loop: it has");
    fails(&bed.ralph(&["run", "Go", "--agent-cmd", "true"]), 2, why);
    assert!(!bed.path(LOOP).exists(), "nothing was started");
    for limit in
        [&["--promise", "X"][..], &["--verify", "true"], &["--max-iterations", "3"], &["--hours", "1"], &["--usd", "1"], &["--endless"]]
    {
        bed.ralph_ok(&[&["start", "Go"][..], limit].concat());
        bed.ralph_ok(&["cancel"]);
    }
    // What the project has to prove ends it, too.
    bed.write("ralph.toml", "[[gate]]\nfile = \"done.txt\"\n");
    bed.ralph_ok(&["start", "Go"]);
    bed.ralph_ok(&["cancel"]);
    fs::remove_file(bed.path("ralph.toml")).unwrap();
    // In a terminal a person is asked, and no is the usual answer.
    for (answer, starts) in [("\r", false), ("n\r", false), ("y\r", true)] {
        let mut command = bed.command(RALPH);
        command.args(["start", "Go"]).env("TERM", "xterm-256color");
        let pty = Pty::spawn(command, 24, 80);
        pty.wait_for(|screen| screen.contains("Start it all the same? [y/N]"), PATIENCE).unwrap();
        pty.send(answer);
        assert_eq!(pty.wait_exit(PATIENCE), Some(i32::from(!starts)), "{}", pty.screen());
        assert_eq!(bed.path(LOOP).exists(), starts, "{answer:?}");
    }
    bed.ralph_ok(&["cancel"]);
}

/// The official plugin's commands go on working: in a session such a loop starts, and a line says what it lacks (S0-9).
#[test]
fn u4_a_session_is_warned_of_a_loop_that_nothing_ends() {
    let bed = Bed::new();
    let line = context(&bed.typed("/ralph-loop Go on and on").send()).2;
    assert!(
        line.contains("Ralph: loop started") && line.contains("nothing but you ends this loop") && line.contains("--endless"),
        "{line}"
    );
    assert!(bed.path(LOOP).exists());
    bed.ralph_ok(&["cancel"]);
    for quiet in ["/ralph-loop Go on and on --endless", "/ralph-loop Go --promise DONE", "/ralph-loop Go --max-iterations 3"] {
        let line = context(&bed.typed(quiet).send()).2;
        assert!(line.contains("Ralph: loop started") && !line.contains("nothing but you"), "{line}");
        assert!(!bed.status()["prompt"].as_str().unwrap().contains("--endless"));
        bed.ralph_ok(&["cancel"]);
    }
}

#[test]
fn u4_no_loop_in_the_home_folder() {
    let bed = Bed::new();
    for (folder, place) in [(bed.home().to_owned(), "your home folder"), ("/".into(), "the top folder of the system")] {
        let mut command = bed.command(RALPH);
        command.args(["start", "Go", "--endless", "-C"]).arg(&folder);
        fails(&run(&mut command, b""), 1, &format!("refusing to start a loop in {place}: cd into a project, or pass -C"));
        assert!(!folder.join(LOOP).exists());
    }
}

#[test]
fn u4_a_long_prompt_is_mentioned() {
    let bed = Bed::new();
    bed.register();
    bed.write("TASK.md", "word ".repeat(30_000));
    let out = bed.ralph(&["start", "--prompt-file", "TASK.md", "--endless"]);
    fails(&out, 0, "the prompt has 146 KB");
    bed.ralph_ok(&["cancel"]);
    bed.write("TASK.md", "word ".repeat(20_000));
    assert_eq!(bed.ralph(&["start", "--prompt-file", "TASK.md", "--endless"]).stderr, "");
}

/// Of another program's money nothing is known, and that is said where the limits are.
#[test]
fn u4_a_run_says_what_it_may_spend() {
    let runs = crate::run::Runs::new("echo work >> work.txt\n");
    let out = runs.run(&["Go", "--max-iterations", "1"]);
    assert!(out.stdout.contains("no limit on money: what this agent costs cannot be known"), "{}", out.stdout);
}

#[test]
fn u5_the_preset_pr_needs_a_request_with_green_checks() {
    let hub = hub!();
    let found = |preset: &str| -> Vec<(String, String)> {
        let out = hub.ralph_asking(&["gate", "--preset", preset, "--json"]);
        let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
        let pair = |finding: &Value| (finding["gate"].as_str().unwrap().to_owned(), finding["verdict"].as_str().unwrap().to_owned());
        report["findings"].as_array().unwrap().iter().map(pair).collect()
    };
    let pairs =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(gate, verdict)| ((*gate).to_owned(), (*verdict).to_owned())).collect::<Vec<_>>();
    assert_eq!(found("pr"), pairs(&[("pr", "fail"), ("ci", "unknown")]));
    assert_eq!(found("pre-pr").iter().map(|(gate, _)| gate.as_str()).collect::<Vec<_>>(), ["audit", "quality", "evidence", "pr"]);
    assert_eq!(found("after-pr").len(), 6);
    let head = {
        hub.open(&[Check::run("build").pending()]);
        hub.head()
    };
    assert_eq!(found("pr"), pairs(&[("pr", "pass"), ("ci", "wait")]));
    hub.hub.passed(&head, "build");
    assert_eq!(found("pr"), pairs(&[("pr", "pass"), ("ci", "pass")]));
    // The project's own gates hold as well, and with --merge the merge is asked for.
    hub.write("ralph.toml", "[[gate]]\nname = \"notes\"\nfile = \"NOTES.md\"\n");
    assert_eq!(found("pr").first(), pairs(&[("notes", "fail")]).first());
    let out = hub.ralph_asking(&["start", "Go", "--preset", "pr", "--merge", "--session", ME]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let gates = |status: &Value| {
        status["gates"].as_array().unwrap().iter().map(|gate| gate["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(gates(&hub.status()), ["notes", "pr", "ci", "merged"]);
    assert_eq!((hub.status()["max_usd"].as_f64(), hub.status()["completion_promise"].as_str()), (Some(50.0), None));
    hub.ralph_ok(&["cancel"]);
    let out = hub.ralph_asking(&["start", "Go", "--preset", "pre-pr", "--merge"]);
    fails(&out, 1, "--merge goes with --preset pr");
    let out = hub.ralph_asking(&["start", "Go", "--preset", "pr", "--session", ME]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(gates(&hub.status()), ["notes", "pr", "ci"]);
}

/// `--merge` needs no value where it is typed in a session.
#[test]
fn u5_merge_is_a_switch() {
    let hub = hub!();
    hub.asking(hub.typed("/ralph-loop Ship it --preset pr --merge")).send();
    assert_eq!((hub.status()["prompt"].as_str(), hub.value("merge")), (Some("Ship it"), "true".to_owned()));
}

/// A message names what can be typed where it is read.
#[test]
fn u7_messages_name_the_readers_commands() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 3, 3, "DONE"));
    bed.work().send().tells(
        "Ralph: stopped at its limit of 3 iterations, without the promise. The loop is kept: `/ralph-resume --max-iterations 6` goes on.",
    );
    let page = bed.ralph_ok(&["report", "--markdown"]);
    assert!(page.contains("ralph resume") && !page.contains("/ralph-resume"), "{page}");
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE"));
    let told = bed.typed("/ralph-loop Another one").send().instead();
    assert!(told.contains("/ralph-status shows it, /ralph-resume goes on with it, /cancel-ralph ends it"), "{told}");
    let out = bed.ralph(&["start", "Another one", "--endless"]);
    assert!(out.stderr.contains("`ralph status` shows it, `ralph cancel` ends it"), "{out:?}");
    assert!(bed.typed("/cancel-ralph").send().instead().ends_with("/ralph-resume brings it back."));
}

#[test]
fn u7_a_cancelled_loop_steps_aside_in_watch() {
    let bed = Bed::new();
    bed.ralph_ok(&["start", "Write the docs", "--name", "docs", "--endless"]);
    bed.ralph_ok(&["start", "Build it", "--promise", "DONE"]);
    let mut command = bed.command(RALPH);
    command.arg("watch").env("TERM", "xterm-256color");
    let pty = Pty::spawn(command, 24, 80);
    let sees =
        |wanted: &str| pty.wait_for(|screen| screen.contains(wanted), PATIENCE).unwrap_or_else(|screen| panic!("{wanted}:\n{screen}"));
    sees("task Build it");
    bed.ralph_ok(&["cancel", "main"]);
    sees("task Write the docs");
    pty.send("q");
    assert_eq!(pty.wait_exit(PATIENCE), Some(0));
}

/// `ralph run` alone says first that a task is missing.
#[test]
fn u7_a_run_without_a_task_says_so() {
    let bed = Bed::new();
    let none = |args: &[&str], said: &str| {
        let out = bed.ralph(&[&["run", "--agent-cmd", "true"][..], args].concat());
        assert!(out.code == Some(3) && out.stdout.starts_with(said), "{out:?}");
    };
    none(&[], "a task is missing: `ralph run \"…\"` starts a loop with one");
    none(&["--continue"], "No active Ralph loop");
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE"));
    bed.stop("<promise>DONE</promise>").send();
    let status = bed.typed("/ralph-status").send().instead();
    assert!(status.starts_with("No active Ralph loop. The last one (") && status.ends_with(") is complete at iteration 1."), "{status}");
    fails(&bed.ralph(&["run", "--agent-cmd", "true"]), 1, "a task is missing");
}

#[test]
fn u9_resume_leaves_nothing_where_nothing_was() {
    let bed = Bed::new();
    let before = bed.tree();
    assert_eq!(bed.ralph(&["resume"]).code, Some(3));
    assert_eq!(bed.ralph(&["resume", "docs"]).code, Some(1));
    assert_eq!(bed.ralph(&["cancel"]).code, Some(3));
    assert_eq!(bed.tree(), before);
}

#[test]
fn u9_uninstall_says_what_stays_and_purges_what_is_wanted() {
    let bed = Bed::in_git();
    let state = bed.home().join(".local/state/ralph");
    let exclude = bed.path(".git/info/exclude");
    let excluded = fs::read_to_string(&exclude).unwrap_or_default();
    bed.ralph_ok(&["init"]);
    bed.ralph(&["doctor", "--fix"]);
    let with_lines = fs::read_to_string(&exclude).unwrap();
    assert!(with_lines.contains("ralph-loop"), "{with_lines}");
    bed.ralph_ok(&["start", "Go", "--promise", "DONE"]);
    fails(&bed.ralph(&["uninstall", "--purge", "--yes"]), 1, "is live: `ralph cancel` ends it");
    bed.ralph_ok(&["cancel"]);
    bed.git(&["update-ref", "refs/ralph/main-1/1", "HEAD"]);
    bed.git(&["update-ref", "refs/heads/kept", "HEAD"]);
    fails(&bed.ralph(&["uninstall", "--purge"]), 1, "there is no terminal to ask in");
    assert!(bed.path(".ralph").exists() && state.exists());
    let said = bed.ralph_ok(&["uninstall", "--dry-run", "--purge"]);
    assert!(said.contains("refs/ralph") && bed.path(".ralph").exists(), "{said}");
    let said = bed.ralph_ok(&["uninstall"]);
    assert!(said.contains("What stays: ") && said.contains("`ralph uninstall --purge`"), "{said}");
    assert!(said.contains("the line for ralph in .git/info/exclude") && said.contains(", too: `rm "), "{said}");
    assert!(bed.path(".ralph").exists() && state.exists());
    // Working trees may have work in them.
    bed.write(".ralph/worktrees/tidy/work.txt", "mine");
    let said = bed.ralph_ok(&["uninstall", "--purge", "--yes"]);
    assert!(said.contains("\nDeleted.\n") && said.contains("git worktree remove"), "{said}");
    assert!(!state.exists() && bed.files_in(".ralph").len() == 1 && bed.path(".ralph/worktrees/tidy/work.txt").exists());
    assert_eq!(bed.git(&["for-each-ref", "refs/ralph"]), "");
    assert!(bed.git(&["for-each-ref", "refs/heads/kept"]).contains("kept"));
    assert_eq!(fs::read_to_string(&exclude).unwrap_or_default(), excluded);
    fs::remove_dir_all(bed.path(".ralph")).unwrap();
    assert!(!bed.ralph_ok(&["uninstall"]).contains("What stays"));
}

/// Both programs are named where both are.
#[test]
fn u9_uninstall_names_the_programs_that_are_left() {
    let bed = Bed::new();
    let bin = bed.home().join("bin");
    fs::create_dir(&bin).unwrap();
    bed.copy_of_ralph(&bin.join("ralph"));
    let said = || run(bed.command(bin.join("ralph")).arg("uninstall"), b"").stdout;
    let (ralph, fleet) = (bin.join("ralph").display().to_string(), bin.join("ralph-fleet").display().to_string());
    assert!(said().contains(&format!("The program stays, too: `rm {ralph}` removes it.")), "{}", said());
    fs::write(&fleet, "").unwrap();
    assert!(said().contains(&format!("The programs stay, too: `rm {ralph} {fleet}` removes them.")), "{}", said());
    fs::write(bed.home().join(".crates.toml"), "[v1]\n\"ralph-loop 0.1.0 (path+file:///x)\" = [\"ralph\"]\n").unwrap();
    assert!(said().contains("`cargo uninstall ralph-loop ralph-fleet` removes them."), "{}", said());
}

/// With its last record the state folder goes by itself, before the purge gets to it.
#[test]
fn u9_a_purge_right_after_init_succeeds() {
    let bed = Bed::in_git();
    bed.write("Cargo.toml", "[package]\nname = \"x\"\n");
    bed.ralph_ok(&["init", "--yes"]);
    bed.ralph_ok(&["start", "Go"]);
    bed.ralph_ok(&["cancel"]);
    assert!(bed.path(".claude").is_dir(), "the loop made it");
    let said = bed.ralph_ok(&["uninstall", "--purge", "--yes"]);
    assert!(said.contains("\nDeleted.\n") && said.contains("/ralph.toml.\n") && said.contains(", too: `rm "), "{said}");
    assert!(!bed.home().join(".local/state/ralph").exists() && !bed.path(".claude").exists() && bed.path("ralph.toml").exists());
    // Without trust and without a repository, nothing but records.
    let bed = Bed::new();
    bed.ralph_ok(&["init"]);
    assert!(bed.ralph_ok(&["uninstall", "--purge", "--yes"]).contains("\nDeleted.\n"));
}

/// What fleets proved and did not land is nowhere else, and a loop that is live elsewhere is decided by what ralph knows of it.
#[test]
fn t7_u9_a_purge_keeps_what_fleets_have_and_other_projects_live_loops() {
    let bed = Bed::in_git();
    bed.ralph_ok(&["init"]);
    let other = bed.home().join("other");
    fs::create_dir(&other).unwrap();
    let other = other.to_str().unwrap();
    bed.ralph_ok(&["-C", other, "start", "Go", "--promise", "DONE"]);
    fails(&bed.ralph(&["uninstall", "--purge", "--yes"]), 1, "a loop is live in ");
    bed.ralph_ok(&["-C", other, "cancel"]);
    let hub = bed.home().join(".local/state/ralph/fleets/list-1/hub.git");
    fs::create_dir_all(&hub).unwrap();
    let said = bed.ralph_ok(&["uninstall", "--purge", "--yes"]);
    assert!(said.contains("\nDeleted.\n") && said.contains("fleets/list-1 (work of a fleet"), "{said}");
    assert!(hub.is_dir() && !bed.home().join(".local/state/ralph/projects").exists());
}

#[test]
fn u9_uninstall_asks_in_a_terminal_and_is_short() {
    let bed = Bed::new();
    let settings = bed.home().join(".claude/settings.json");
    for (answer, code) in [("n\r", 1), ("\u{3}", 1), ("\r", 0)] {
        bed.ralph_ok(&["init"]);
        let mut command = bed.command(RALPH);
        command.arg("uninstall").env("TERM", "xterm-256color");
        let pty = Pty::spawn(command, 24, 80);
        pty.wait_for(|screen| screen.contains("Uninstall ralph from Claude Code? [Y/n]"), PATIENCE).unwrap();
        pty.send(answer);
        assert_eq!(pty.wait_exit(PATIENCE), Some(code), "{}", pty.screen());
        assert_eq!(settings.exists(), code == 1, "{answer:?}");
        let screen = pty.screen();
        assert!(screen.contains("will remove ~/.claude/settings.json") && screen.contains("will remove 6 commands in"), "{screen}");
        assert!(!screen.contains("\"hooks\""), "{screen}");
    }
    bed.ralph_ok(&["init"]);
    assert!(bed.ralph_ok(&["uninstall", "--dry-run"]).contains("    -  \"hooks\": {\n"), "every line, for who asks");
    assert!(bed.ralph_ok(&["uninstall", "--yes"]).lines().count() < 8);
}

/// What does not fit goes on below its own text, not at the margin.
#[test]
fn u1_examples_go_on_below_themselves() {
    let bed = Bed::new();
    for cols in [60, 80] {
        let text = without_styles(&shown(&bed, cols, &["help", "init"], &[]));
        let examples = text.split("Examples:").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap().trim_matches(['\r', '\n']);
        for line in examples.lines().map(str::trim_end) {
            assert!(
                line.len() <= cols.into() && (line.starts_with("  ralph init") || line.starts_with("    ")),
                "{cols}: {line:?}\n{text}"
            );
        }
    }
    let help = bed.ralph_ok(&["help", "run"]);
    assert!(help.contains("--merge[=<true|false>]\n"), "{help}");
}

/// The first page, the help and an error fit a small screen, too.
#[test]
fn u1_small_screens_are_enough() {
    let bed = Bed::in_git();
    for args in [&["--help"][..], &["-C", "."], &["start", "Go", "--json"]] {
        let text = without_styles(&shown(&bed, 60, args, &[]));
        let long = text.lines().find(|line| line.len() > 60 && line.split_whitespace().all(|word| word.len() < 40));
        assert!(long.is_none(), "{args:?}: {long:?}");
    }
}
