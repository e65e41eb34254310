//! `ralph demo`: it shows what really happened, reads well everywhere, and leaves nothing behind.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use ralph_testkit::{Output, Pty};

use crate::common::{Bed, RALPH, records, run};

const SOON: Duration = Duration::from_secs(30);
/// What a person watches for longer than this has been slowed down for them.
const WATCHED: Duration = Duration::from_secs(8);

/// A place for temporary files of one's own.
fn place(bed: &Bed) -> PathBuf {
    let place = bed.home().join("tmp");
    fs::create_dir_all(&place).unwrap();
    place
}

fn demo(bed: &Bed, args: &[&str]) -> Command {
    let mut command = bed.command(RALPH);
    command.arg("demo").args(args).env("TMPDIR", place(bed)).env("TERM", "xterm-256color");
    command
}

fn piped(bed: &Bed, args: &[&str]) -> Output {
    run(&mut demo(bed, args), b"")
}

/// What a demo without pauses writes to a terminal of this width.
fn shown(command: Command, columns: u16) -> String {
    let pty = Pty::spawn(command, 100, columns);
    assert!(pty.wait_closed(SOON), "{}", pty.screen());
    assert_eq!(pty.wait_exit(SOON), Some(0), "{}", pty.screen());
    String::from_utf8(pty.raw()).unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The project that a demo with `--keep` left.
fn kept(bed: &Bed) -> PathBuf {
    let names = names_in(&place(bed));
    assert_eq!(names.len(), 1, "{names:?}");
    place(bed).join(&names[0]).join("notes")
}

/// Words that do not depend on the time that it took.
fn words(text: &str) -> Vec<&str> {
    let is_unit = |word: &str| matches!(word.trim_end_matches(['.', ')', ';']), "ms" | "s");
    text.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()) && !is_unit(word)).collect()
}

#[test]
fn demo_in_a_pipe_is_plain_quick_and_short() {
    let bed = Bed::new();
    let out = piped(&bed, &[]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", out.stdout);
    assert!(!out.stdout.contains('\u{1b}') && !out.stdout.contains('\r'), "{}", out.stdout);
    assert!(out.duration < WATCHED, "{:?}", out.duration);
    assert!(out.stdout.lines().count() <= 56, "{}", out.stdout);
    assert!(out.stdout.lines().all(|line| line.chars().count() <= 80), "{}", out.stdout);
    assert_eq!(names_in(&place(&bed)), Vec::<String>::new());
    assert!(bed.tree().is_empty(), "the folder that it runs in is not touched: {:?}", bed.tree());
}

/// The story has all of its turns: refused, claimed without proof, the limit, resumed, proven.
#[test]
fn demo_tells_the_whole_story() {
    let text = piped(&Bed::new(), &[]).stdout;
    let turns = [
        "> /ralph-loop ",
        "3 → 2 dead links",
        "sent back · Ralph: iteration 2 of 3.",
        "its line with other words",
        "2 → 1 dead link",
        "sent back · Ralph: iteration 3 of 3.",
        "Claimed but not proven: sh check.sh: exit code 1",
        "error: guide.md links to faq.md, which is not there",
        "may stop · Ralph: stopped at its limit of 3 iterations",
        "> /ralph-resume --max-iterations 6",
        "Ralph: the loop goes on at iteration 3 of 6.",
        "1 → 0 dead links",
        "may stop · Ralph: complete after 3 iterations",
        "its gate holds (sh check.sh: passed in",
        "$ ralph log",
        "promise.accepted",
        "no model was asked",
        "ralph explain 1",
    ];
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = flat.as_str();
    for turn in turns {
        rest = rest.split_once(turn).unwrap_or_else(|| panic!("\"{turn}\" is missing or misplaced in\n{text}")).1;
    }
}

/// What is shown is what stands in the project: its journal, its archive, its pages.
#[test]
fn demo_keeps_a_project_whose_journal_replays() {
    let bed = Bed::new();
    let out = piped(&bed, &["--keep"]);
    let folder = kept(&bed);
    assert!(out.stdout.contains(folder.file_name().unwrap().to_str().unwrap()), "{}", out.stdout);
    assert_eq!(folder.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let journal = folder.join(".ralph/journal").join(&names_in(&folder.join(".ralph/journal"))[0]);
    let codes: Vec<String> = records(&journal).iter().filter_map(|r| r["event"]["ruling"]["code"].as_str().map(str::to_owned)).collect();
    assert_eq!(codes, ["promise.refused", "promise.unproven", "limit.iterations", "promise.accepted"]);
    let there = ["-C", folder.to_str().unwrap()];
    let log = bed.ralph_ok(&[&["log"][..], &there].concat());
    let shown = out.stdout.split_once("$ ralph log\n").unwrap().1;
    assert!(words(shown).starts_with(&words(&log)), "{log}\n{shown}");
    bed.ralph_ok(&["explain", "--replay", journal.to_str().unwrap()]);
    assert!(bed.ralph_ok(&[&["explain", "1"][..], &there].concat()).contains("two to go"));
    assert_eq!(names_in(&folder), [".claude", ".ralph", "check.sh", "faq.md", "guide.md", "index.md", "setup.md"]);
    assert!(piped(&bed, &[]).success());
    assert!(folder.exists(), "the next demo leaves it alone");
}

#[test]
fn demo_on_a_terminal_has_colour_unless_it_is_unwanted() {
    let bed = Bed::new();
    let colourful = shown(demo(&bed, &["--fast"]), 100);
    assert!(colourful.contains("\u{1b}["));
    let mut plain = demo(&bed, &["--fast"]);
    plain.env("NO_COLOR", "1");
    let plain = shown(plain, 100);
    assert!(!plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn demo_breaks_lines_between_words() {
    let bed = Bed::new();
    let at = |columns| {
        let mut command = demo(&bed, &["--fast"]);
        command.env("NO_COLOR", "1");
        shown(command, columns)
    };
    let (narrow, wide) = (at(60), at(100));
    for (text, columns) in [(&narrow, 60), (&wide, 100)] {
        assert!(text.lines().all(|line| line.trim_end().chars().count() <= columns), "{text}");
    }
    assert_eq!(words(&narrow), words(&wide));
}

#[test]
fn demo_takes_its_time_for_those_who_watch() {
    let bed = Bed::new();
    let pty = Pty::spawn(demo(&bed, &[]), 60, 100);
    assert_eq!(pty.wait_exit(SOON), Some(0), "{}", pty.screen());
    let parts = pty.recording();
    let length = parts.last().unwrap().0;
    assert!(length > WATCHED, "{length:?}");
    assert!(parts.len() > 60, "typed letter by letter, not in {} parts", parts.len());
}

/// It may run in an agent's shell, or in the shell of another agent: neither reaches the hook.
#[test]
fn demo_does_not_depend_on_the_environment() {
    let bed = Bed::new();
    let log = bed.home().join("log");
    let mut command = demo(&bed, &[]);
    command.env("CLAUDE_CODE_SESSION_ID", "another").env("CLAUDE_PROJECT_DIR", bed.dir()).env("COPILOT_CLI", "1");
    command.env("RALPH_LOG", &log).env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "1");
    let out = run(&mut command, b"");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", out.stdout);
    assert!(bed.tree().is_empty() && !log.exists());
}

#[test]
fn demo_without_a_place_for_its_folder_fails_clearly() {
    let bed = Bed::new();
    for missing in ["no/such/folder", "/proc"] {
        let out = run(demo(&bed, &[]).env("TMPDIR", missing), b"");
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
        assert!(out.stderr.starts_with(&format!("error: cannot make a folder in {missing}: ")), "{}", out.stderr);
    }
}

/// A reader that goes away ends the play, and the stage is cleared as ever.
#[test]
fn demo_survives_a_reader_that_goes_away() {
    let bed = Bed::new();
    let script = format!("{RALPH} demo | head -n 1");
    let out = run(bed.command("/bin/sh").args(["-c", &script]).env("TMPDIR", place(&bed)), b"");
    assert_eq!((out.code, out.stderr.as_str(), out.stdout.lines().count()), (Some(0), "", 1));
    for _ in 0..100 {
        if names_in(&place(&bed)).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("left behind: {:?}", names_in(&place(&bed)));
}

/// Starts a demo from a program file that vanishes before the first hook call. Linux then says that it lies at `… (deleted)`.
fn with_hook(bed: &Bed, hook: Option<&str>) -> (Option<i32>, String) {
    let program = bed.home().join("ralph");
    bed.copy_of_ralph(&program);
    let mut command = bed.command(&program);
    command.arg("demo").env("TMPDIR", place(bed)).env("NO_COLOR", "1");
    let pty = Pty::spawn(command, 60, 100);
    pty.wait_for(|screen| screen.contains("prove that it is"), SOON).unwrap();
    fs::remove_file(&program).unwrap();
    if let Some(hook) = hook {
        let stand_in = bed.home().join("ralph (deleted)");
        fs::write(&stand_in, hook).unwrap();
        fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert!(pty.wait_closed(SOON));
    (pty.wait_exit(SOON), pty.screen())
}

#[test]
fn demo_says_so_when_the_hook_fails_or_answers_unexpectedly() {
    let cases = [
        (None, "error: cannot run ralph hook claude"),
        (Some("#!/bin/sh\nexit 7\n"), "error: ralph hook claude failed (exit status: 7)"),
        (Some("#!/bin/sh\necho nonsense\n"), "error: ralph hook claude answered to UserPromptExpansion, unexpectedly: \"nonsense\""),
        (Some("#!/bin/sh\necho '{}'\n"), "error: the hook answered the typed command unexpectedly: {}"),
    ];
    for (hook, message) in cases {
        let bed = Bed::new();
        let (code, screen) = with_hook(&bed, hook);
        assert_eq!(code, Some(1), "{screen}");
        assert!(screen.contains(message), "{screen}");
        assert_eq!(names_in(&place(&bed)), Vec::<String>::new());
    }
}

/// What an interrupted demo left goes; what another one is using, what was kept and what is not ours stays.
#[test]
fn demo_removes_what_interrupted_demos_left_and_nothing_else() {
    let bed = Bed::new();
    let (dead, random) = (i32::MAX, "0123456789abcdef");
    let place = place(&bed);
    let make = |name: &str, minutes: u64| {
        fs::create_dir_all(place.join(name).join("sub")).unwrap();
        let then = SystemTime::now() - Duration::from_secs(60 * minutes);
        fs::File::open(place.join(name)).unwrap().set_modified(then).unwrap();
    };
    let left = format!("ralph-demo-{dead}-{random}");
    make(&left, 60);
    let mut others = vec![
        format!("ralph-demo-{}-{random}", std::process::id()),
        format!("ralph-demo-kept-{random}"),
        format!("ralph-demo-{dead}-notes"),
        format!("ralph-{dead}-{random}"),
    ];
    for name in &others {
        make(name, 60);
    }
    let recent = format!("ralph-demo-{}-{random}", dead - 1);
    make(&recent, 1);
    let link = format!("ralph-demo-{}-{random}", dead - 2);
    symlink(place.join(&others[0]), place.join(&link)).unwrap();
    assert!(piped(&bed, &[]).success());
    others.extend([recent, link]);
    others.sort();
    assert_eq!(names_in(&place), others);
    assert!(place.join(&others[0]).join("sub").exists());
}
