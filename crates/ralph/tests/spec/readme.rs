//! The README and the guide are true: their commands run. `docs.rs` looks at all pages.

use std::{fs, path::Path};

use crate::common::{Bed, RALPH};

/// A page of the documentation.
fn page(name: &str) -> String {
    fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The fenced blocks of one kind in a page.
fn blocks(name: &str, kind: &str) -> Vec<String> {
    let begin = format!("```{kind}\n");
    page(name).split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The lines of a page's blocks that begin with this word.
fn lines(name: &str, kind: &str, word: &str) -> Vec<String> {
    blocks(name, kind).iter().flat_map(|block| block.lines()).filter(|line| line.starts_with(word)).map(str::to_owned).collect()
}

/// Every command of ralph's own, for a user who has nothing yet: the guide starts a loop, and the README looks at it. CI proves what cargo does.
#[test]
fn u10_the_commands_of_readme_and_guide_run() {
    let bed = Bed::in_git();
    let bin = std::path::Path::new(RALPH).parent().unwrap();
    let ours: Vec<String> = ["docs/guide.md", "README.md"].iter().flat_map(|name| lines(name, "sh", "ralph ")).collect();
    for command in ["init", "start", "gate", "status", "report"] {
        assert!(ours.iter().any(|line| line.starts_with(&format!("ralph {command}"))), "{command}: {ours:?}");
    }
    for line in ours {
        let out = bed.run("/bin/sh").args(["-c", &line]).env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output();
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{line}: {}", out.stdout);
    }
    assert_eq!(bed.status()["completion_promise"], "DONE");
    bed.ralph_ok(&["uninstall"]);
    assert!(!bed.home().join(".claude/settings.json").exists(), "uninstall leaves nothing behind");
}

/// The commands that start sessions have flags that exist.
#[test]
fn u10_the_runs_of_readme_and_guide_are_understood() {
    let bed = Bed::new();
    let bin = std::path::Path::new(RALPH).parent().unwrap();
    let runs: Vec<String> = ["docs/guide.md", "README.md"].iter().flat_map(|name| lines(name, "text", "ralph ")).collect();
    assert!(runs.len() >= 4, "{runs:?}");
    for line in runs {
        let out =
            bed.run("/bin/sh").args(["-c", &format!("{line} --help")]).env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output();
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{line}: {}", out.stdout);
    }
}

/// The commands that the pages type in Claude Code start a loop, with the limits that they name.
#[test]
fn u10_the_slash_commands_of_readme_and_guide_start_a_loop() {
    let typed: Vec<String> = ["docs/guide.md", "README.md"].iter().flat_map(|name| lines(name, "text", "/ralph-loop ")).collect();
    assert!(typed.len() >= 2, "{typed:?}");
    for line in typed {
        let bed = Bed::new();
        bed.typed(&line).send();
        let status = bed.status();
        assert_eq!((&status["completion_promise"], &status["max_iterations"]), (&"DONE".into(), &20.into()), "{status}");
    }
}

/// The README's `cargo run --release -- demo` names no program, so the default members of the workspace may have only one.
#[test]
fn u10_cargo_run_knows_which_program_is_meant() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest: toml::Table = fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let members = manifest["workspace"]["default-members"].as_array().unwrap().iter().map(|member| root.join(member.as_str().unwrap()));
    let programs: Vec<_> = members.filter(|member| member.join("src/main.rs").is_file()).collect();
    assert_eq!(programs.len(), 1, "{programs:?}");
}
