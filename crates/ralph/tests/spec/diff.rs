//! `ralph diff`: what rounds changed.

use std::time::Duration;

use ralph_testkit::pty::Pty;
use serde_json::json;

use crate::{
    common::{Bed, RALPH, run},
    snapshots::{ID, keep, with_paused_loop},
};

/// Three rounds: a file is made, changed and committed, removed.
pub(crate) fn three_rounds() -> Bed {
    let bed = with_paused_loop();
    keep(&bed, 0);
    bed.write("src/a", "one\n");
    keep(&bed, 1);
    bed.write("src/a", "one\ntwo\n");
    bed.write("b", "b\n");
    bed.commit_all("iteration 2");
    keep(&bed, 2);
    std::fs::remove_file(bed.path("b")).unwrap();
    bed.commit_all("iteration 3");
    keep(&bed, 3);
    bed
}

#[test]
fn s4_6_diff_shows_what_rounds_did() {
    let bed = three_rounds();
    let paths = |args: &[&str]| {
        let all: Vec<&str> = ["diff", "--json"].iter().chain(args).copied().collect();
        let told = bed.ralph_json(&all);
        let one = |f: &serde_json::Value| format!("{} {}", f["what"].as_str().unwrap(), f["path"].as_str().unwrap());
        told["files"].as_array().unwrap().iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(paths(&[]), ["added src/a"], "b came and went");
    assert_eq!(paths(&["1"]), ["added src/a"]);
    assert_eq!(paths(&["2"]), ["added b", "changed src/a"]);
    assert_eq!(paths(&["3"]), ["removed b"]);
    assert_eq!(paths(&["0", "2"]), ["added b", "added src/a"]);
    assert_eq!(paths(&["0", "2", "--", "src"]), ["added src/a"]);
    bed.write("new", "x\n");
    assert_eq!(paths(&["3", "now"]), ["added new"]);
    assert_eq!(paths(&["now"]), ["added new"]);
    let told = bed.ralph_json(&["diff", "2", "--json", "--loop", "main"]);
    assert_eq!(
        json!([told["loop"], told["from"]["name"], told["to"]["name"], told["added"], told["removed"]]),
        json!([ID, "1", "2", 2, 0])
    );
    let text = bed.ralph_ok(&["diff", "2"]);
    assert!(text.starts_with("diff --git a/b b/b\n") && text.contains("\n+two\n"), "{text}");
    assert!(bed.ralph_ok(&["diff", "2", "--stat"]).contains("2 files changed, 2 insertions(+)"));
    assert!(bed.ralph_ok(&["diff", "2", "--color", "always"]).contains("\u{1b}["));
    // Paths are seen from where the person is.
    let out = run(bed.command(RALPH).args(["diff", "2", "--stat", "--", "a"]).current_dir(bed.path("src")), b"");
    assert!(out.stdout.contains("1 file changed"), "{out:?}");
}

/// On a terminal git shows it with its colours, through the person's pager.
#[test]
fn s4_6_diff_is_shown_through_the_pager() {
    let bed = three_rounds();
    let mut command = bed.command(RALPH);
    command.args(["diff", "2"]).env("GIT_PAGER", "sed s/^/paged:/").env("TERM", "xterm");
    let pty = Pty::spawn(command, 40, 100);
    assert_eq!(pty.wait_exit(Duration::from_secs(20)), Some(0));
    let shown = String::from_utf8_lossy(&pty.raw()).into_owned();
    assert!(shown.contains("paged:") && shown.contains("\u{1b}[32m+"), "{shown}");
}

#[test]
fn s4_6_diff_says_which_rounds_there_are() {
    let bed = three_rounds();
    let out = bed.ralph(&["diff", "9"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(1), "error: there is no snapshot 9; this loop has 0–3\n"));
    assert!(bed.ralph(&["diff", "0"]).stderr.contains("nothing is kept from before the start"));
    assert!(bed.ralph(&["diff", "--loop", "nobody"]).stderr.contains("there is no loop \"nobody\""));
    assert!(bed.ralph(&["diff", "--output=x"]).stderr.contains("unexpected argument"));
    assert_eq!(bed.ralph(&["diff", "--", "--output=x"]).code, Some(0), "what looks like an option is a path");
    assert!(!bed.exists("x"));
    let none = Bed::in_git();
    assert_eq!(none.ralph(&["diff", "--json"]).code, Some(3));
    let nothing = Bed::new();
    assert!(nothing.ralph(&["diff"]).stdout.contains("are kept here"));
}

/// Silence could be an error; and an older loop is not taken without a word.
#[test]
fn eyes_2_diff_says_that_nothing_changed_and_which_loop_it_is() {
    let bed = three_rounds();
    let out = bed.ralph(&["diff", "3", "3"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), ""));
    assert_eq!(out.stderr, format!("No file changed from 3 to 3 of {ID}.\n"));
    bed.ralph_ok(&["start", "Write the docs", "--name", "docs", "--endless"]);
    let said = bed.ralph(&["diff", "--stat"]).stderr;
    assert!(said.starts_with("The loop docs-") && said.contains(&format!("has no snapshots: this is about {ID}.")), "{said}");
    assert_eq!(bed.ralph(&["diff", "--stat", "--loop", ID]).stderr, "", "one that was named");
}

/// A loop that ended still has its rounds; no program that the repository names is run.
#[test]
fn s4_6_diff_of_a_loop_that_ended_runs_nothing() {
    let bed = three_rounds();
    bed.ralph_ok(&["cancel"]);
    for setting in ["diff.external", "core.pager", "pager.diff", "diff.evil.textconv", "core.fsmonitor"] {
        bed.git(&["config", setting, "touch \"$HOME/ran\"; false"]);
    }
    bed.write(".gitattributes", "* diff=evil\n");
    assert!(bed.ralph_ok(&["diff", "2"]).contains("+two"));
    assert!(bed.ralph_ok(&["diff", "2", "now"]).contains("+++ b/.gitattributes"));
    assert!(!bed.home().join("ran").exists());
}
