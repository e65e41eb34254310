//! `ralph init` as a guide: what it proposes, what each answer does, and what it leaves alone.

use std::{fs, os::unix::fs::PermissionsExt, process::Command, time::Duration};

use ralph_testkit::pty::Pty;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::screen::without_styles;

/// For what happens at once on a quiet machine.
pub(super) const SOON: Duration = Duration::from_mins(2);
const NPM: &str = r#"{"scripts": {"test": "vitest run", "lint": "eslint .", "typecheck": "tsc -p ."}}"#;
const FIRST: &str = "Write ralph.toml (3 checks; `ralph run` may edit files without asking)? [Y/n]";
const RULES: &str = "without asking (.claude/settings.local.json)? [Y/n]";
const SECOND: &str = "Register ralph with Claude Code for you, in all projects? [Y/n]";
const RUN: &str = "Next: ralph run \"Fix the failing tests\"";
const LOOP: &str = "  or, in Claude Code: /ralph-loop Fix the failing tests";
const IGNORED: &str = "Have git ignore .claude/ralph-loop*.local.md and settings.local.json? [Y/n]";
const CHOICE: &str = "  Type y for yes, n for no, q to quit, or ? to see what this is about; Enter means yes.\n";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// A project with scripts of npm's.
fn npm() -> Bed {
    let bed = Bed::new();
    bed.write("package.json", NPM);
    bed
}

/// Programs that answer, so that nothing is wrong with the machine.
fn with_programs(bed: &Bed) -> String {
    let folder = on_path(bed);
    for program in ["claude", "npm", "cargo", "python3", "mypy", "ruff"] {
        put(&folder.join(program), "#!/bin/sh\necho '2.1.325 (Claude Code)'\n");
        fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:/usr/bin:/bin", folder.display())
}

/// `ralph init` in a terminal.
struct Guide {
    pty: Pty,
}

impl Guide {
    fn start(bed: &Bed, cols: u16, args: &[&str], vars: &[(&str, &str)]) -> Self {
        let mut command = bed.command(RALPH);
        command.arg("init").args(args).env("TERM", "xterm-256color").envs(vars.iter().copied());
        Guide { pty: Pty::spawn(command, 60, cols) }
    }

    /// Waits for a question, and types the answer.
    #[track_caller]
    fn answers(&self, question: &str, answer: &str) -> &Self {
        let seen = |screen: &str| screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(question);
        if let Err(screen) = self.pty.wait_for(seen, SOON) {
            panic!("no {question:?}: {screen}");
        }
        self.pty.send(answer);
        self
    }

    /// The exit code, and all that was printed.
    fn end(&self) -> (Option<i32>, String) {
        let code = self.pty.wait_exit(SOON);
        (code, without_styles(&String::from_utf8_lossy(&self.pty.raw()).replace('\r', "")))
    }
}

/// The gates of `ralph.toml` with their commands, and whether they are trusted.
fn gates(bed: &Bed) -> (Vec<(String, String)>, String) {
    let all = bed.ralph_json(&["trust", "--json"]);
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{all}")).to_owned();
    let file = all["files"].as_array().unwrap().iter().find(|file| file["file"] == "ralph.toml").unwrap_or_else(|| panic!("{all}"));
    let commands = file["commands"].as_array().unwrap().iter().filter(|command| command["name"] != "permission_mode");
    (commands.map(|command| (text(&command["name"]), text(&command["run"]))).collect(), text(&file["trust"]))
}

fn has_hooks(bed: &Bed) -> bool {
    settings(bed, "--user").exists()
}

#[test]
fn u2_enter_agrees_to_each_step_and_a_second_time_asks_nothing() {
    let bed = npm();
    let path = with_programs(&bed);
    let guide = Guide::start(&bed, 80, &[], &[("PATH", &path)]);
    let (code, said) = guide.answers(FIRST, "\r").answers(RULES, "\r").answers(SECOND, "\r").end();
    assert_eq!(code, Some(0), "{said}");
    let wanted = [("tests", "npm test"), ("types", "npm run typecheck"), ("lint", "npm run lint")];
    let wanted = wanted.map(|(name, command)| (name.to_owned(), command.to_owned())).to_vec();
    assert_eq!(gates(&bed), (wanted, "trusted".to_owned()));
    is_registered(&text_of(&settings(&bed, "--user")), "ralph");
    for line in [
        "    command = \"npm run typecheck\"",
        "Wrote ralph.toml, and trusted it. When it changes, `ralph trust` asks again.",
        &format!("will write  ~/.claude/settings.json (hooks for {} events)", EVENTS.len()),
        "will write  6 commands in ~/.claude/commands",
        "Registered for you, in all projects.",
        "Everything checks out (`ralph doctor`).",
    ] {
        assert!(said.lines().any(|l| l == line), "{line}: {said}");
    }
    assert!(said.ends_with(&format!("{RUN}\n{LOOP}\n")), "{said}");
    // Every line of the file was seen before the question.
    let question = said.find(FIRST).unwrap();
    for line in text_of(&bed.path("ralph.toml")).lines().filter(|line| !line.is_empty()) {
        assert!(said[..question].contains(&format!("\n    {line}\n")), "{line}: {said}");
    }

    let before = everything(&bed);
    let (code, again) = Guide::start(&bed, 80, &[], &[("PATH", &path)]).end();
    assert_eq!((code, again.contains("[Y/n]")), (Some(0), false), "{again}");
    assert!(
        again.starts_with("ralph.toml exists: 3 checks (tests, types, lint), valid and trusted.\nAlready registered for you"),
        "{again}"
    );
    assert!(again.ends_with(&format!("{RUN}\n{LOOP}\n")), "{again}");
    assert_eq!(everything(&bed), before, "a second time changes nothing");
}

/// The rules for exactly these checks, for this person in this project; and the file is given back as it was, from another project too.
#[test]
fn u2_the_agent_may_run_the_checks_that_were_agreed_to() {
    let allowed = |bed: &Bed| {
        let text = fs::read_to_string(settings(bed, "--local")).unwrap_or_default();
        let settings: Value = serde_json::from_str(&text).unwrap_or_default();
        settings["permissions"]["allow"].clone()
    };
    let rules = json!(["Bash(npm test:*)", "Bash(npm run typecheck)", "Bash(npm run lint)"]);
    let bed = npm();
    let said = bed.ralph_ok(&["init", "--yes"]);
    assert_eq!(allowed(&bed), rules, "{said}");
    assert!(said.contains("settings.local.json (allows `npm test …`, `npm run typecheck`, `npm run"), "{said}");
    bed.ralph_ok(&["uninstall", "--yes"]);
    assert!(!settings(&bed, "--local").exists() && !bed.path(".claude").exists());

    // A file with rules of the person's own comes back byte for byte, and so does one that was changed since.
    let own = "{ \"permissions\": {\"allow\": [\"Bash(ls:*)\"]} }";
    let bed = npm();
    bed.write(".claude/settings.local.json", own);
    bed.ralph_ok(&["init", "--yes", "--local"]);
    assert_eq!(allowed(&bed).as_array().unwrap().len(), 4);
    bed.ralph_ok(&["uninstall", "--yes"]);
    assert_eq!(text_of(&settings(&bed, "--local")), own);
    bed.ralph_ok(&["init", "--yes"]);
    let with_more = text_of(&settings(&bed, "--local")).replace("\"Bash(ls:*)\"", "\"Bash(ls:*)\", \"Bash(pwd)\"");
    bed.write(".claude/settings.local.json", with_more);
    let elsewhere = bed.path("elsewhere");
    fs::create_dir_all(elsewhere.join(".git")).unwrap();
    bed.ralph_ok(&["-C", elsewhere.to_str().unwrap(), "uninstall", "--yes"]);
    assert_eq!(allowed(&bed), json!(["Bash(ls:*)", "Bash(pwd)"]), "what the person added stays");

    // No rule for commands that nobody approved, nor where the person denies all commands.
    let bed = npm();
    bed.write("ralph.toml", "[[gate]]\nname = \"theirs\"\ncommand = \"curl evil\"\n");
    bed.ralph_ok(&["init", "--yes"]);
    assert_eq!(allowed(&bed), Value::Null);
    let bed = npm();
    bed.write(".claude/settings.json", r#"{"permissions": {"deny": ["Bash"]}}"#);
    bed.ralph_ok(&["init", "--yes"]);
    assert_eq!(allowed(&bed), Value::Null);
}

#[test]
fn u2_no_skips_one_step_only() {
    let bed = npm();
    let (code, said) = Guide::start(&bed, 80, &[], &[]).answers(FIRST, "n\r").answers(SECOND, "y\r").end();
    assert_eq!((code, bed.path("ralph.toml").exists(), has_hooks(&bed)), (Some(0), false, true), "{said}");
    assert!(said.contains("\nSkipped: no ralph.toml was written.\n"), "{said}");
    assert!(
        said.contains(&format!("\n{RUN} --verify 'npm test' --permission-mode\n      acceptEdits\n")),
        "what it has to prove is named: {said}"
    );

    let bed = npm();
    let (code, said) = Guide::start(&bed, 80, &[], &[]).answers(FIRST, "yes\r").answers(RULES, "n\r").answers(SECOND, "No\r").end();
    assert_eq!((code, gates(&bed).1.as_str(), has_hooks(&bed)), (Some(0), "trusted", false), "{said}");
    assert!(said.contains("\nSkipped: ralph is not registered.\n") && said.ends_with(&format!("{RUN}\n")), "{said}");
    assert!(said.contains("Fix: ralph init"), "the doctor says what is missing: {said}");
}

/// q, the end of the input and Ctrl-C end it; what was not agreed to is not done, what was agreed to stays.
#[test]
fn u2_it_can_be_left_at_every_question() {
    for answer in ["q\r", CTRL_D, CTRL_C] {
        let exit = Some(1);
        let bed = npm();
        let before = everything(&bed);
        let (code, said) = Guide::start(&bed, 80, &[], &[]).answers(FIRST, answer).end();
        assert_eq!((code, everything(&bed)), (exit, before), "{answer:?}: {said}");
        assert!(said.ends_with("\nStopped: nothing was changed.\n"), "{answer:?}: {said}");

        let bed = npm();
        let (code, said) = Guide::start(&bed, 80, &[], &[]).answers(FIRST, "\r").answers(RULES, "\r").answers(SECOND, answer).end();
        assert_eq!((code, has_hooks(&bed), gates(&bed).1.as_str()), (exit, false, "trusted"), "{answer:?}: {said}");
        assert!(said.contains("Wrote ralph.toml, and trusted it."), "{answer:?}: {said}");
        assert!(said.ends_with("\nStopped. Done before: ralph.toml was written, the agent may run the checks.\n"), "{answer:?}: {said}");
        assert!(!said.contains("Next: "), "{said}");
    }
}

#[test]
fn u2_yes_needs_no_terminal() {
    let bed = npm();
    let said = bed.ralph_ok(&["init", "--yes"]);
    assert_eq!(gates(&bed).1, "trusted");
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
    assert!(!said.contains("[Y/n]") && !said.contains('\u{1b}') && said.ends_with(&format!("{RUN}\n{LOOP}\n")), "{said}");
    // The scope is the one that was asked for.
    let bed = npm();
    let said = bed.ralph_ok(&["init", "-y", "--local"]);
    assert!(said.contains(" events)\n") && !has_hooks(&bed) && settings(&bed, "--local").exists(), "{said}");
}

/// Only the bytes that were shown are trusted: nothing else that the repository brings along.
#[test]
fn u2_nothing_else_is_trusted() {
    let bed = npm();
    bed.write(".trellis/worktree.yaml", "verify:\n  - touch theirs\n");
    bed.ralph_ok(&["init", "--yes"]);
    let all = bed.ralph_json(&["trust", "--json"]);
    let trust: Vec<(&str, &str)> =
        all["files"].as_array().unwrap().iter().map(|file| (file["file"].as_str().unwrap(), file["trust"].as_str().unwrap())).collect();
    assert_eq!(trust, [("ralph.toml", "trusted"), (".trellis/worktree.yaml", "untrusted")]);
    let written = text_of(&bed.path("ralph.toml"));
    bed.write("ralph.toml", format!("{written}\n"));
    assert_eq!(gates(&bed).1, "changed");
}

#[test]
fn u2_without_a_terminal_it_only_registers_and_says_what_more_there_is() {
    let bed = npm();
    let said = bed.ralph_ok(&["init"]);
    assert!(has_hooks(&bed) && !bed.path("ralph.toml").exists());
    assert!(
        said.contains("\n`ralph init --yes` also writes ralph.toml, with 3 checks (tests, types, lint), and lets the agent run them.\n"),
        "{said}"
    );
    bed.ralph_ok(&["init", "--yes"]);
    assert!(!bed.ralph_ok(&["init"]).contains("--yes"), "there is one now");
    assert!(!Bed::new().ralph_ok(&["init"]).contains("--yes"), "nothing to propose");
}

#[test]
fn u2_a_dry_run_shows_the_file_and_every_change() {
    let bed = npm();
    let before = everything(&bed);
    for args in [&["init", "--dry-run"][..], &["init", "--dry-run", "--yes"]] {
        let said = bed.ralph_ok(args);
        assert!(said.contains("ralph.toml\n    # What has to pass") && said.contains("\n    command = \"npm test\"\n"), "{said}");
        assert!(said.contains("\"Bash(npm test:*)\", \"Bash(npm run typecheck)\", \"Bash(npm run lint)\""), "{said}");
        assert!(said.contains("    +  \"hooks\": {\n") && said.ends_with("Nothing was changed: this was a dry run.\n"), "{said}");
        assert_eq!(everything(&bed), before);
    }
    let (code, said) = Guide::start(&bed, 80, &["--dry-run"], &[]).end();
    assert_eq!((code, said.contains("[Y/n]"), everything(&bed)), (Some(0), false, before), "{said}");
}

/// A `ralph.toml` of any kind is left as it is, and it is said how it stands.
#[test]
fn u2_an_existing_file_is_never_changed() {
    const GATE: &str = "[[gate]]\nname = \"mine\"\ncommand = \"true\"\n";
    for (text, told) in [
        (GATE, "ralph.toml exists: 1 check (mine), valid, and not trusted yet."),
        ("# nothing yet\n", "ralph.toml exists, and has no checks."),
        ("[[gate]]\nname = \"mine\"\ncomand = \"true\"\n", "not valid: ralph.toml cannot be read: "),
        ("[[[", "not valid: ralph.toml cannot be read: "),
    ] {
        let bed = npm();
        bed.write("ralph.toml", text);
        let said = bed.ralph_ok(&["init", "--yes"]);
        assert!(said.lines().next().is_some_and(|line| line.starts_with(told)), "{text}: {said}");
        assert_eq!((text_of(&bed.path("ralph.toml")).as_str(), has_hooks(&bed)), (text, true));
        assert_eq!(said.matches("cannot be read").count(), usize::from(told.starts_with("not valid")), "said once: {said}");
        assert!(!told.starts_with("not valid") || said.contains("Next: fix ralph.toml"), "{said}");
    }
    let bed = npm();
    bed.write("ralph.toml", GATE);
    bed.ralph_ok(&["init", "--yes"]);
    assert_eq!(gates(&bed).1, "untrusted", "it was not shown, so it is not trusted");
    let said = bed.ralph_ok(&["init", "--yes"]);
    let end = format!("\nNext: ralph trust, which shows the commands and asks\n{}\n{LOOP}\n", RUN.replace("Next", "Then"));
    assert!(said.ends_with(&end), "the run would fail before that: {said}");
}

#[test]
fn u2_the_commands_of_an_existing_file_are_shown_and_asked_for() {
    const QUESTION: &str = "Let this command run? [y/N]";
    for (answer, trust, end) in [
        ("\r", "untrusted", "\nNext: ralph trust, which shows the commands and asks\n"),
        ("y\r", "trusted", "\nTrusted: ralph.toml. A changed file asks again.\n"),
    ] {
        let bed = npm();
        bed.write("ralph.toml", "[[gate]]\nname = \"mine\"\ncommand = \"touch mine\"\n\n[run]\npermission_mode = \"acceptEdits\"\n");
        let guide = Guide::start(&bed, 80, &[], &[]);
        guide.answers(QUESTION, answer);
        if trust == "trusted" {
            guide.answers(RULES, "\r");
        }
        let (code, said) = guide.answers(SECOND, "\r").end();
        assert_eq!((code, gates(&bed).1.as_str()), (Some(0), trust), "{said}");
        assert!(said.contains(end) && said.find("$ touch mine") < said.find(QUESTION), "{said}");
        assert!(said.contains("`ralph run` starts Claude Code with the permission mode acceptEdits"), "{said}");
        assert!(!said.contains("Fix: ralph trust") && !said.contains("at most 2 min\n  permission_mode\n    $"), "{said}");
    }
}

/// What is not understood is neither a yes nor a no.
#[test]
fn u2_an_unclear_answer_is_asked_for_again() {
    let bed = npm();
    let guide = Guide::start(&bed, 120, &[], &[]);
    let (code, said) = guide.answers(FIRST, "maybe\r?\rwhat\r\r").answers(RULES, "\r").answers(SECOND, "NO\r").end();
    assert_eq!((code, bed.path("ralph.toml").exists(), has_hooks(&bed)), (Some(0), true, false), "{said}");
    assert_eq!((said.matches(CHOICE).count(), said.matches(FIRST).count()), (3, 4), "{said}");
    assert_eq!(said.matches("permission_mode = \"acceptEdits\" is for the sessions of").count(), 1, "{said}");
}

/// In a repository the guide keeps ralph's own files out of commits, if the person agrees.
#[test]
fn u2_git_ignores_the_loop_file() {
    for (answer, is_ignored) in [("\r", true), ("n\r", false)] {
        let bed = Bed::in_git();
        bed.write("package.json", NPM);
        let path = with_programs(&bed);
        let guide = Guide::start(&bed, 80, &[], &[("PATH", &path)]);
        let (code, said) = guide.answers(FIRST, "\r").answers(RULES, "\r").answers(SECOND, "\r").answers(IGNORED, answer).end();
        assert_eq!(code, Some(0), "{said}");
        let line = "**/.claude/ralph-loop*.local.md";
        assert_eq!(text_of(&bed.path(".git/info/exclude")).lines().any(|l| l == line), is_ignored, "{said}");
        assert_eq!(said.contains("\nChanged .git/info/exclude. Everything checks out"), is_ignored, "{said}");
        assert_eq!(said.replace("\n  ", " ").contains("Fix: ralph doctor --fix"), !is_ignored, "{said}");
    }
}

#[test]
fn u2_links_and_pipes_are_neither_followed_nor_waited_for() {
    let bed = Bed::in_git();
    fs::write(bed.home().join("secret.json"), NPM).unwrap();
    symlink(bed.home().join("secret.json"), bed.path("package.json")).unwrap();
    for pipe in ["Makefile", "Cargo.toml"] {
        assert!(Command::new("mkfifo").arg(bed.path(pipe)).status().unwrap().success());
    }
    bed.write("pyproject.toml", "x".repeat(3 << 20));
    let said = bed.ralph_ok(&["init", "--yes"]);
    assert!(!said.contains("npm test"), "{said}");
    assert_eq!(gates(&bed).0, [("tests".to_owned(), "cargo test --no-fail-fast".to_owned())], "by its name alone");

    // In the place of the file itself.
    for kind in ["a link out", "a broken link", "a pipe", "a folder"] {
        let bed = npm();
        let path = bed.path("ralph.toml");
        match kind {
            "a link out" => {
                symlink(bed.home().join("theirs.toml"), &path).and_then(|()| fs::write(bed.home().join("theirs.toml"), "x")).unwrap();
            }
            "a broken link" => symlink("nowhere", &path).unwrap(),
            "a pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            _ => fs::create_dir(&path).unwrap(),
        }
        let before = fs::symlink_metadata(&path).unwrap().ino();
        let said = bed.ralph_ok(&["init", "--yes"]);
        assert!(said.starts_with("not valid: ") && !said.contains("Wrote"), "{kind}: {said}");
        assert_eq!(fs::symlink_metadata(&path).unwrap().ino(), before, "{kind}");
    }
}

/// The name of a file, which anyone can choose, reaches neither the terminal nor the file as anything but a comment.
#[test]
fn u2_a_files_name_adds_no_gate() {
    let bed = Bed::new();
    bed.write("x\n[[gate]]\ncommand = 'touch pwned'\n\u{1b}[2J#.sln", "");
    let said = bed.ralph_ok(&["--color", "always", "init", "--yes"]);
    assert_eq!(gates(&bed).0, [("tests".to_owned(), "dotnet test".to_owned())]);
    assert!(!said.contains("\u{1b}[2J") && !text_of(&bed.path("ralph.toml")).contains('\u{1b}'), "{said:?}");
}

/// (Root may write everywhere, so another user tries.)
#[test]
fn u2_a_read_only_project_is_registered_without_a_file() {
    let bed = npm();
    fs::set_permissions(bed.dir(), fs::Permissions::from_mode(0o555)).unwrap();
    let mut other = bed.command("/usr/bin/setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups", RALPH, "init", "--yes"]);
    assert!(Command::new("chown").args(["-R", "65534:65534"]).arg(bed.home()).status().unwrap().success());
    let out = run(&mut other, b"");
    fs::set_permissions(bed.dir(), fs::Permissions::from_mode(0o755)).unwrap();
    if out.stderr.contains("setpriv") || out.code == Some(126) || out.code == Some(127) {
        return;
    }
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.contains("cannot be written to, so no ralph.toml is proposed."), "{}", out.stdout);
    assert!(has_hooks(&bed) && !bed.path("ralph.toml").exists());
}

#[test]
fn u2_where_there_is_no_project_it_only_registers() {
    let bed = Bed::new();
    fs::write(bed.home().join("package.json"), NPM).unwrap();
    let empty = bed.path("empty");
    fs::create_dir(&empty).unwrap();
    for folder in [bed.home(), std::path::Path::new("/"), &empty] {
        let out = run(bed.command(RALPH).args(["init", "--yes"]).current_dir(folder), b"");
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", out.stdout);
        assert!(out.stdout.contains("egistered for you, in all projects.") && !out.stdout.contains("ralph.toml"), "{}", out.stdout);
        assert!(out.stdout.contains("\nNext: ralph init, in a project\n"), "{}", out.stdout);
        assert!(!folder.join("ralph.toml").exists());
        let (_, said) = {
            let mut command = bed.command(RALPH);
            command.arg("init").current_dir(folder).env("TERM", "xterm-256color");
            Guide { pty: Pty::spawn(command, 60, 80) }.end()
        };
        assert!(!said.contains("[Y/n]"), "{}: {said}", folder.display());
    }
    // A repository in which nothing is recognised is a project.
    let bed = Bed::in_git();
    let said = bed.ralph_ok(&["init", "--yes"]);
    assert!(said.starts_with("No tests or linters were recognised here") && said.contains("--verify COMMAND"), "{said}");
}

/// Sessions of a run have no one to ask: where the client would ask before an edit, the file says what they may do, and nowhere else.
#[test]
fn u2_edits_are_allowed_where_the_client_would_ask() {
    for (settings_text, is_named) in [
        ("{}", true),
        (r#"{"permissions": {"defaultMode": "plan"}}"#, true),
        (r#"{"permissions": {"defaultMode": "acceptEdits"}}"#, false),
        (r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#, false),
        (r#"{"permissions": {"defaultMode": "dontAsk"}}"#, false),
        (r#"{"permissions": {"allow": ["Edit(./**)"]}}"#, false),
        (r#"{"permissions": {"deny": ["Edit"]}}"#, false),
    ] {
        let bed = bed_with("--user", settings_text);
        bed.write("package.json", NPM);
        let said = bed.ralph_ok(&["init", "--dry-run"]);
        assert_eq!(said.contains("    permission_mode = \"acceptEdits\"\n"), is_named, "{settings_text}: {said}");
    }
}

/// A project: its name, its files with their contents, and the gates that are written and trusted.
type Shape = (&'static str, &'static [(&'static str, &'static str)], &'static [(&'static str, &'static str)]);

#[rustfmt::skip]
const SHAPES: [Shape; 20] = [
    ("Cargo", &[("Cargo.toml", "[package]\nname = \"x\"\n"), ("src/lib.rs", "")], &[("tests", "cargo test --no-fail-fast")]),
    ("Cargo workspace", &[("Cargo.toml", "[workspace]\nmembers = []\n\n[workspace.lints.clippy]\nall = \"warn\"\n"), ("rustfmt.toml", "")],
        &[("tests", "cargo test --workspace --no-fail-fast"), ("lint", "cargo clippy --workspace --all-targets -- -D warnings"), ("format", "cargo fmt --all --check")]),
    ("npm", &[("package.json", NPM), ("package-lock.json", "{}")], &[("tests", "npm test"), ("types", "npm run typecheck"), ("lint", "npm run lint")]),
    ("pnpm", &[("package.json", NPM), ("pnpm-lock.yaml", "")], &[("tests", "pnpm test"), ("types", "pnpm run typecheck"), ("lint", "pnpm run lint")]),
    ("yarn", &[("package.json", r#"{"scripts": {"test": "jest"}}"#), ("yarn.lock", "")], &[("tests", "yarn test")]),
    ("bun", &[("package.json", r#"{"scripts": {"test": "bun test"}}"#), ("bun.lock", "")], &[("tests", "bun run test")]),
    ("pytest", &[("pyproject.toml", "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\n\n[tool.ruff]\n")], &[("tests", "python3 -m pytest"), ("lint", "ruff check")]),
    ("uv", &[("pyproject.toml", "[tool.pytest.ini_options]\n"), ("uv.lock", "")], &[("tests", "uv run pytest")]),
    ("tox", &[("tox.ini", "[tox]\n\n[testenv]\ncommands = x\n"), ("setup.py", "")], &[("tests", "tox")]),
    ("go", &[("go.mod", "module x\n"), (".golangci.yml", "")], &[("tests", "go test -v ./..."), ("lint", "golangci-lint run")]),
    ("go workspace", &[("go.work", "go 1.22\n")], &[("tests", "go list -f '{{.Dir}}/...' -m | xargs go test -v")]),
    ("make", &[("Makefile", ".PHONY: test\ntest:\n\t./run\nlint:\n\t./lint\n")], &[("tests", "make test"), ("lint", "make lint")]),
    ("just", &[("justfile", "test:\n  ./run\n")], &[("tests", "just test")]),
    ("Maven", &[("pom.xml", "<project/>")], &[("tests", "mvn -B test")]),
    ("Gradle wrapper", &[("build.gradle.kts", ""), ("gradlew", "")], &[("tests", "./gradlew --console=plain test")]),
    ("dotnet", &[("Shop.sln", "")], &[("tests", "dotnet test")]),
    ("mix", &[("mix.exs", ""), (".formatter.exs", "")], &[("tests", "mix test"), ("format", "mix format --check-formatted")]),
    ("RSpec", &[("Gemfile", "gem 'rspec'\n"), ("spec/x_spec.rb", "")], &[("tests", "bundle exec rspec")]),
    ("PHPUnit", &[("composer.json", "{}"), ("phpunit.xml", "")], &[("tests", "vendor/bin/phpunit")]),
    ("CMake", &[("CMakeLists.txt", "project(x)\nenable_testing()\n")],
        &[("tests", "cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure")]),
];

#[test]
fn u2_each_shape_of_project_gets_its_checks() {
    for (shape, files, wanted) in SHAPES {
        let bed = Bed::new();
        for (file, text) in files {
            bed.write(file, text);
        }
        bed.ralph_ok(&["init", "--yes"]);
        let wanted: Vec<(String, String)> = wanted.iter().map(|(name, command)| ((*name).to_owned(), (*command).to_owned())).collect();
        assert_eq!(gates(&bed), (wanted, "trusted".to_owned()), "{shape}");
    }
}

/// On one screen, for the common kinds of projects; at 60 columns no line is broken within a word; without colour where none is wanted.
#[test]
fn u2_it_fits_a_small_terminal() {
    const LINTS: &str = "[package]\nname = \"x\"\n\n[lints.clippy]\nall = \"warn\"\n";
    const PYTHON: &str = "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\n\n[tool.mypy]\n\n[tool.ruff]\n";
    for (file, text, first) in [
        ("Cargo.toml", LINTS, "Write ralph.toml (2 checks; `ralph run` may edit files without asking)? [Y/n]"),
        ("package.json", NPM, FIRST),
        ("pyproject.toml", PYTHON, FIRST),
    ] {
        for (cols, vars) in [(80, None), (60, Some(("NO_COLOR", "1")))] {
            // In git, where the doctor has something to say.
            let bed = Bed::in_git();
            bed.write(file, text);
            let path = with_programs(&bed);
            let vars: Vec<(&str, &str)> = vars.into_iter().chain([("PATH", path.as_str())]).collect();
            let guide = Guide::start(&bed, cols, &[], &vars);
            let (code, said) = guide.answers(first, "\r").answers(RULES, "\r").answers(SECOND, "\r").answers(IGNORED, "\r").end();
            assert_eq!(code, Some(0), "{said}");
            // No more than a screen between two questions, and not much more than one in all.
            assert!(cols < 80 || said.lines().count() <= 26, "{} lines:\n{said}", said.lines().count());
            assert_eq!(guide.pty.raw().contains(&0x1b), cols == 80, "{said}");
            for line in said.lines() {
                assert!(line.width() <= cols.into() || line.contains(bed.dir().to_str().unwrap()), "{cols}: {line:?}\n{said}");
            }
        }
    }
}
