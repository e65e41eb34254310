//! `ralph fleet` hands over to `ralph-fleet`: beside it, or on the PATH; and the manual, completions and help know its commands.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::common::{Bed, RALPH};

/// What the other program says of its commands, as `ralph-fleet described` prints it.
const DESCRIBED: &str = r#"{"name":"ralph fleet","about":"Work on a list","long_about":null,"after_help":"Examples:\n  ralph fleet run L","args":[
{"id":"queue","short":null,"long":"queue","takes_value":true,"value":"URL","values":[],"many":false,"required":false,"global":true,"help":"A server","heading":null}],
"commands":[{"name":"run","about":"Work on it","long_about":"Work on it\n\nAll of it.","after_help":null,"commands":[],"args":[
{"id":"list","short":null,"long":null,"takes_value":true,"value":"LIST","values":[],"many":false,"required":false,"global":false,"help":"The list","heading":null},
{"id":"land","short":"l","long":"land","takes_value":true,"value":"HOW","values":["branch","pr"],"many":false,"required":false,"global":false,"help":"Where to","heading":"Landing"},
{"id":"pool","short":null,"long":"pool","takes_value":true,"value":"POOL","values":[],"many":true,"required":false,"global":false,"help":null,"heading":null}]}]}"#;

/// A folder with a copy of `ralph`: nothing of the build is beside it.
fn alone() -> Bed {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("bin")).unwrap();
    // By another program: a file that this process has open for writing cannot be started from another thread.
    assert!(bed.run("cp").arg(RALPH).arg(bed.path("bin/ralph")).output().success());
    bed
}

fn put(bed: &Bed, path: &str) {
    bed.write("described.json", DESCRIBED);
    let json = bed.path("described.json");
    bed.write(path, format!("#!/bin/sh\nif [ \"$1\" = described ]; then cat '{}'; else echo \"$0 got $*\"; exit 12; fi\n", json.display()));
    fs::set_permissions(bed.path(path), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn f8_the_program_is_found_beside_ralph_and_then_on_the_path() {
    let bed = alone();
    let other = bed.path("other");
    let run = |args: &[&str]| bed.run(bed.path("bin/ralph")).args(args).env("PATH", format!("{}:/usr/bin:/bin", other.display())).output();
    let out = run(&["fleet", "status"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    for part in ["ralph-fleet is neither beside", "bin/ralph nor on your PATH", "install ralph again", "--path crates/fleet"] {
        assert!(out.stderr.contains(part), "{part}: {}", out.stderr);
    }
    put(&bed, "other/ralph-fleet");
    let out = run(&["-C", "/", "fleet", "run", "list.json", "--workers", "4", "--", "-x"]);
    assert_eq!(
        (out.code, out.stdout.trim_end()),
        (Some(12), &*format!("{}/ralph-fleet got -C / run list.json --workers 4 -- -x", other.display()))
    );
    put(&bed, "bin/ralph-fleet");
    let out = run(&["fleet", "--version"]);
    assert!(out.stdout.contains("bin/ralph-fleet got --version"), "{out:?}");
}

#[test]
fn f8_manual_completions_and_help_know_the_commands_of_the_fleet() {
    let bed = alone();
    let ralph = |args: &[&str]| bed.run(bed.path("bin/ralph")).args(args).output().stdout;
    assert!(!ralph(&["completions", "bash"]).contains("--queue"), "without the program there is nothing to know");
    assert!(ralph(&["help", "fleet"]).contains("land what is proven"));
    put(&bed, "bin/ralph-fleet");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = ralph(&["completions", shell]);
        assert!(script.contains("queue") && script.contains("branch"), "{shell}");
    }
    let help = ralph(&["help", "fleet"]);
    assert!(help.contains("--queue <URL>") && help.contains("Work on it"), "{help}");
    ralph(&["man", "--dir", "pages"]);
    let (page, of_run) = (bed.read("pages/ralph-fleet.1"), bed.read("pages/ralph-fleet-run.1"));
    assert!(page.contains("ralph\\-fleet\\-run(1)") && page.contains("ralph fleet run L") && !page.contains("SH ENVIRONMENT"), "{page}");
    assert!(of_run.contains("SH LANDING") || of_run.contains("\\-\\-land"), "{of_run}");
    assert!(of_run.contains("All of it."), "{of_run}");
}
