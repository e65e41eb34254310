//! Completions: the scripts work in the real shells.

use std::time::Duration;

use ralph_testkit::{Skip, pty::Pty};

use crate::common::{Bed, RALPH};

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// A bed whose `ralph` is on the path, and the script of a shell in a file.
fn bed_with_script(shell: &str) -> Bed {
    let bed = Bed::new();
    let script = bed.ralph_ok(&["completions", shell]);
    bed.write("script", script);
    std::fs::create_dir(bed.path("bin")).unwrap();
    std::os::unix::fs::symlink(RALPH, bed.path("bin/ralph")).unwrap();
    bed
}

/// The path with `ralph` on it.
fn path(bed: &Bed) -> String {
    format!("{}:/usr/bin:/bin", bed.path("bin").display())
}

/// What bash offers for a line whose last word is being typed.
fn in_bash(bed: &Bed, words: &[&str]) -> Vec<String> {
    // What readline does: find the function that is registered for the command, and call it.
    let script = r#"set -eu
source ./script
[[ $(complete -p ralph) == "complete "*"-F _ralph ralph" ]]
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_ralph ralph "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}""#;
    let out = bed.run("bash").args(["--norc", "-c", script, "bash"]).args(words).output();
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{words:?}");
    out.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let bed = bed_with_script("bash");
    let out = bed.run("bash").args(["-n", "script"]).output();
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    assert_eq!(in_bash(&bed, &["ralph", "sta"]), ["start", "status", "statusline"]);
    assert_eq!(in_bash(&bed, &["ralph", "start", "--max"]), ["--max-iterations"]);
    assert_eq!(in_bash(&bed, &["ralph", "start", "x", "--continue-with", ""]), ["auto", "block", "context"]);
    assert_eq!(in_bash(&bed, &["ralph", "man", "expl"]), ["explain"]);
    assert_eq!(in_bash(&bed, &["ralph", "completions", "f"]), ["fish"]);
}

/// With its keys, in a terminal.
#[test]
fn bash_completes_what_is_typed() {
    let bed = bed_with_script("bash");
    let mut bash = bed.command("bash");
    bash.args(["--norc", "--noprofile", "-i"]).env("PATH", path(&bed)).env("TERM", "xterm").env("PS1", "> ");
    completes_typed_words(&Pty::spawn(bash, 24, 100), "source ./script\n");
}

#[test]
fn zsh_completes_what_is_typed() {
    let zsh = match Skip::unless_installed("zsh") {
        Ok(zsh) => zsh,
        Err(skip) => return skip.tell(),
    };
    let bed = bed_with_script("zsh");
    let out = bed.run(&zsh).args(["-n", "script"]).output();
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    // As the help says: a folder of the search path, before the completions are set up.
    bed.write("zfunc/_ralph", bed.read("script"));
    let mut command = bed.command(&zsh);
    command.args(["-f", "-i"]).env("PATH", path(&bed)).env("TERM", "xterm").env("PS1", "> ");
    completes_typed_words(&Pty::spawn(command, 24, 100), "fpath+=($PWD/zfunc); autoload -U compinit; compinit -u -D\n");
}

/// Types the beginning of a command and the tab key until the command runs.
fn completes_typed_words(pty: &Pty, setup: &str) {
    let wait = |wanted: &str| pty.wait_for(|screen| screen.contains(wanted), Duration::from_secs(20)).unwrap_or_else(|s| panic!("{s}"));
    wait("> ");
    pty.send(setup);
    pty.send("echo set\"\" up\n");
    wait("set up");
    pty.send("ralph comp\t");
    wait("ralph completions");
    pty.send("--he\t");
    wait("ralph completions --help");
    pty.send("| head -1\n");
    wait("Print a completion script");
}

#[test]
fn fish_completes_commands_options_and_their_values() {
    let fish = match Skip::unless_installed("fish") {
        Ok(fish) => fish,
        Err(skip) => return skip.tell(),
    };
    let bed = bed_with_script("fish");
    for (line, offered) in [
        ("ralph sta", vec!["start", "status", "statusline"]),
        ("ralph start --max", vec!["--max-iterations"]),
        ("ralph start --continue-with ", vec!["auto", "block", "context"]),
        ("ralph status --color ", vec!["always", "auto", "never"]),
    ] {
        let script = "source ./script; complete -C $argv[1]";
        let out = bed.run(&fish).args(["--no-config", "-c", script, line]).env("PATH", path(&bed)).output();
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{line}");
        let mut words: Vec<&str> = out.stdout.lines().map(|l| l.split('\t').next().unwrap()).collect();
        words.sort_unstable();
        assert_eq!(words, offered, "{line}");
    }
}

/// Every shell that the help names has a script that knows the commands, and its help says where to put it.
#[test]
fn every_shell_has_a_script_and_a_place_for_it() {
    let bed = Bed::new();
    let help = bed.ralph_ok(&["completions", "--help"]);
    for shell in SHELLS {
        assert!(bed.ralph_ok(&["completions", shell]).contains("explain"), "{shell}");
        assert!(help.contains(&format!("ralph completions {shell} >")), "{shell}: {help}");
    }
}

/// Without a name it is the person's own shell; an unknown one is answered with those that are known.
#[test]
fn the_shell_comes_from_the_environment_if_it_is_not_named() {
    let bed = Bed::new();
    let of = |shell: &str| bed.run(RALPH).args(["completions"]).env("SHELL", shell).output();
    for shell in ["bash", "fish", "zsh", "elvish"] {
        assert_eq!(of(&format!("/usr/bin/{shell}")).stdout, bed.ralph_ok(&["completions", shell]), "{shell}");
    }
    for out in [of("/bin/tcsh"), of(""), bed.ralph(&["completions"])] {
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""));
        assert_eq!(out.stderr, "error: say which shell: bash, elvish, fish, powershell, zsh\n");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bed = Bed::new();
    for shell in SHELLS {
        // The reader is gone before the first byte is written.
        let script = "{ sleep 0.1; \"$1\" completions \"$2\"; echo \"rc $?\" >&2; } | true";
        let out = bed.run("/bin/sh").args(["-c", script, "sh", RALPH, shell]).output();
        assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(0), "", "rc 0\n"), "{shell}");
    }
}

/// The lines that the help and the page say to copy, each block in a home that has nothing yet.
#[test]
fn s2_8_the_printed_lines_work_in_a_clean_home() {
    let page = include_str!("../../../../docs/install.md").to_owned();
    let bed = bed_with_script("bash");
    let texts = [bed.ralph_ok(&["completions", "--help"]), bed.ralph_ok(&["completions", "-h"]), page];
    let mut written = Vec::new();
    for text in texts {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (n, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("ralph completions ") && line.contains("> ~/")) {
            // The line before it, if that is a command, belongs to it.
            let before = if lines[n - 1].starts_with("mkdir") { lines[n - 1] } else { "" };
            let home = bed.home().join(format!("clean-{}", written.len()));
            std::fs::create_dir(&home).unwrap();
            let out = bed.run("/bin/sh").args(["-c", &format!("{before}\n{line}")]).env("HOME", &home).env("PATH", path(&bed)).output();
            assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{before}\n{line}");
            let file = line.split_once("> ~/").unwrap().1;
            assert!(std::fs::metadata(home.join(file)).unwrap().len() > 1_000, "{line}");
            written.push(file.to_owned());
        }
    }
    written.sort();
    written.dedup();
    assert_eq!(written.len(), 4, "bash, zsh, fish and Elvish: {written:?}");
}
