//! The manual: complete, without a warning of the real `man`, and readable on a terminal with and without it.

use std::{fs, time::Duration};

use ralph_testkit::{Skip, nightly, pty::Pty};

use crate::{
    common::{Bed, RALPH},
    help::{HIDDEN, commands},
};

/// A file of the repository.
fn source(path: &str) -> String {
    fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// A page as plain text: without the escapes of its language.
fn plain(page: &str) -> String {
    page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
}

#[test]
fn every_page_has_its_sections() {
    let bed = Bed::new();
    let root = bed.ralph_ok(&["man"]);
    assert!(root.contains(".TH ralph 1 "), "{root}");
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXAMPLES", "\"EXIT STATUS\"", "ENVIRONMENT", "FILES"] {
        assert!(root.contains(&format!(".SH {section}\n")), "{section}: {root}");
    }
    for command in commands(&bed) {
        let page = bed.ralph_ok(&["man", &command]);
        assert!(plain(&page).contains(&format!("ralph-{command} - ")), "{page}");
        for section in ["NAME", "SYNOPSIS", "EXAMPLE", "\"EXIT STATUS\"", "\"SEE ALSO\""] {
            assert!(page.contains(&format!(".SH {section}")), "{command} {section}: {page}");
        }
        let is_listed = plain(&root).contains(&format!("ralph-{command}(1)"));
        assert_eq!(is_listed, !HIDDEN.contains(&command.as_str()), "{command}: {root}");
    }
}

/// A synopsis says what an option takes, and what may be given more than once.
#[test]
fn a_synopsis_has_values_and_dots() {
    let page = plain(&Bed::new().ralph_ok(&["man", "gate"])).replace('\n', " ");
    for part in ["[--preset PRESET]", "[--cached]", "[GATE|LOOP]..."] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// The page keeps up with what ralph reads: every variable, but those that only recognise other agents, provoke faults or hurry tests.
#[test]
fn the_page_names_every_variable_that_ralph_reads() {
    let page = plain(&Bed::new().ralph_ok(&["man"]));
    // What is only kept from the agent, in the list at the top, is not read.
    let of_claude = source("crates/engine/src/hosts/claude/variables.rs");
    let (_, read) = of_claude.split_once("];").unwrap();
    let code = source("crates/engine/src/sys/env.rs") + read;
    let quoted = code.split('"').skip(1).step_by(2);
    // A word that ends with _ is the beginning of names, which are passed on or kept back.
    let is_name = |word: &&str| word.len() > 2 && !word.ends_with('_') && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let signs = source("crates/engine/src/hosts/signs.rs");
    let names: Vec<&str> =
        quoted.filter(is_name).filter(|n| !signs.contains(*n) && !["RALPH_FAULT", "RALPH_HASTE", "RALPH_ALONE"].contains(n)).collect();
    assert!(names.len() >= 9, "{names:?}");
    for name in names.into_iter().chain(["NO_COLOR", "CLICOLOR_FORCE"]) {
        assert!(page.contains(name), "{name}: {page}");
    }
}

/// The page names the same files as docs/ARCHITECTURE.md.
#[test]
fn the_page_names_every_file_that_ralph_writes() {
    let page = plain(&Bed::new().ralph_ok(&["man"]));
    let text = source("docs/ARCHITECTURE.md");
    let table = text.split("## On disk").nth(1).unwrap().split("\n## ").next().unwrap();
    let files: Vec<&str> = table.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        assert!(page.contains(file), "{file}: {page}");
    }
}

#[test]
fn the_real_man_renders_every_page_without_a_warning() {
    let man = match Skip::unless_installed("man") {
        Ok(man) => man,
        Err(skip) => return skip.tell(),
    };
    let bed = Bed::new();
    bed.ralph_ok(&["man", "--dir", "pages"]);
    for page in bed.files_in("pages") {
        // What does not fit is complained about where it is narrow.
        for width in nightly::amount(&["60"][..], &["60", "80", "160"]) {
            let out = bed.run(&man).args(["--warnings", "-E", "UTF-8", "-l"]).args([&page]).env("MANWIDTH", width).output();
            assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", page.display());
            assert!(out.stdout.contains("EXIT STATUS"), "{}", page.display());
        }
    }
    // The way that the help shows.
    let out = bed.run("/bin/sh").args(["-c", "\"$1\" man start | man -l -", "sh", RALPH]).output();
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    assert!(out.stdout.contains("ralph start --prompt-file TASK.md --hours 2\n"), "{}", out.stdout);
}

/// All pages at once, for packages; a second time over the first.
#[test]
fn dir_gets_all_pages_and_nothing_else() {
    let bed = Bed::new();
    bed.write("share/man/man1/ralph.1", "an older page");
    for dir in ["new/share/man1", "share/man/man1"] {
        let said = bed.ralph_ok(&["man", "--dir", dir]);
        let shown = commands(&bed)
            .into_iter()
            .filter(|c| !HIDDEN.contains(&c.as_str()))
            .chain(["help", "bundle-export", "bundle-import"].map(str::to_owned));
        let mut expected: Vec<String> = shown.map(|c| format!("ralph-{c}.1")).chain(["ralph.1".to_owned()]).collect();
        expected.sort();
        let mut names: Vec<String> = bed.files_in(dir).iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(said, format!("{} pages are in {dir}\n", names.len()));
        // Where `ralph-fleet` is beside this program, its commands have pages, too.
        let of_fleet = names.extract_if(.., |name| name.starts_with("ralph-fleet-")).count();
        assert_eq!(of_fleet > 0, std::path::Path::new(RALPH).with_file_name("ralph-fleet").is_file());
        assert_eq!(names, expected);
        assert_eq!(bed.read(format!("{dir}/ralph.1")), bed.ralph_ok(&["man"]));
        assert_eq!(bed.read(format!("{dir}/ralph-log.1")), bed.ralph_ok(&["man", "log"]));
    }
    let out = bed.ralph(&["man", "--dir", "share/man/man1/ralph.1"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert!(out.stderr.starts_with("error: cannot write share/man/man1/ralph.1: "), "{}", out.stderr);
}

/// `ralph man …` in a terminal, with this search path; what it printed, and its exit code.
fn on_terminal(bed: &Bed, path: &str, args: &[&str]) -> (String, Option<i32>) {
    let mut command = bed.command(RALPH);
    command.arg("man").args(args).env("PATH", path).env("TERM", "xterm").env("MANPAGER", "cat");
    let pty = Pty::spawn(command, 50, 80);
    let _ = pty.wait_for(|_| false, Duration::from_secs(20));
    (String::from_utf8_lossy(&pty.raw()).replace("\r\n", "\n"), pty.wait_exit(Duration::from_secs(5)))
}

#[test]
fn on_a_terminal_man_shows_the_page() {
    if let Err(skip) = Skip::unless_installed("man") {
        return skip.tell();
    }
    let bed = Bed::new();
    let (shown, code) = on_terminal(&bed, "/usr/bin:/bin", &["pause"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("PAUSE(1)") || shown.contains("pause(1)"), "{shown}");
    assert!(!shown.contains(".SH"), "{shown}");
}

/// Without `man`, or with one that cannot do it, the same is there in plain words.
#[test]
fn on_a_terminal_without_man_there_is_help() {
    let bed = Bed::new();
    bed.script("bin/man", "#!/bin/sh\nexit 1\n");
    for path in ["/nowhere".to_owned(), bed.path("bin").display().to_string()] {
        let (shown, code) = on_terminal(&bed, &path, &["pause"]);
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("Usage:") && shown.contains("ralph pause docs"), "{shown}");
        let (shown, _) = on_terminal(&bed, &path, &[]);
        assert!(shown.contains("Start and control:"), "{shown}");
    }
}

/// The current folder may be anybody's, and a search path may have a gap.
#[test]
fn s4_7_a_man_in_the_current_folder_is_never_run() {
    let bed = Bed::new();
    let mark = bed.home().join("ran");
    for name in ["man", "mandoc", "bin/man", "bin/mandoc"] {
        bed.script(name, &format!("#!/bin/sh\n/bin/touch {}\n/bin/cat > /dev/null\n", mark.display()));
    }
    for path in [".", "", "./", "bin", ":/nowhere", "/nowhere:"] {
        let (shown, code) = on_terminal(&bed, path, &["pause"]);
        assert_eq!(code, Some(0), "{shown}");
        assert!(!mark.exists() && shown.contains("ralph pause docs"), "PATH={path}: {shown}");
    }
}

/// Ctrl-C belongs to the pager: ralph stays until the pager ends, so that the shell does not take its keys away.
#[test]
fn an_interrupt_belongs_to_the_pager() {
    let bed = Bed::new();
    bed.script(
        "bin/man",
        "#!/bin/sh\ntrap 'echo caught' INT\ncat >/dev/null\necho ready\nuntil read line </dev/tty; do :; done\necho got $line\n",
    );
    let mut command = bed.command(RALPH);
    command.arg("man").env("PATH", format!("{}:/usr/bin:/bin", bed.path("bin").display()));
    let pty = Pty::spawn(command, 24, 80);
    let wait = |wanted: &str| pty.wait_for(|screen| screen.contains(wanted), Duration::from_secs(20)).unwrap_or_else(|s| panic!("{s}"));
    wait("ready");
    pty.send("\u{3}");
    wait("caught");
    assert_eq!(pty.wait_exit(Duration::from_millis(200)), None);
    pty.send("enough\n");
    wait("got enough");
    assert_eq!(pty.wait_exit(Duration::from_secs(10)), Some(0));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bed = Bed::new();
    let script = "{ sleep 0.1; \"$1\" man; echo \"rc $?\" >&2; } | true";
    let out = bed.run("/bin/sh").args(["-c", script, "sh", RALPH]).output();
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), "rc 0\n"));
}
