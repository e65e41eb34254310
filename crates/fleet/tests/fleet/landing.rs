//! What is proven lands: one at a time, with the gates run again, and nothing of the person's is touched.

use std::{fs, process::Command};

use crate::bed::{Bed, compact};

/// Passes unless six and seven are there without peace; with a flaky file it fails once in the lander's slot.
const CHECK: &str = r#"set -e
if [ -f six.txt ] && [ -f seven.txt ]; then test -f peace.txt; fi
if [ -f flaky.txt ] && [ "$RALPH_SLOT" = 0 ] && [ ! -e "$MARKS/flaked" ]; then touch "$MARKS/flaked"; echo "flaked"; exit 1; fi
! grep -q '<<<<<<<' notes.txt
"#;

const AGENT: &str = r#"
case "$task" in
*note*) printf 'start\n%s\n' "$task" > notes.txt;;
*flaky*) echo flaky > flaky.txt;;
*six*) echo 6 > six.txt;;
*seven*) echo 7 > seven.txt;;
*) printf '%s' "$task" | tr -dc 'a-z' > "own-$(printf '%s' "$task" | tr -dc 'a-z').txt";;
esac
case "$prompt" in *"came back"*) echo peace > peace.txt;; esac
say "$task"
"#;

/// Twelve items with conflicts, a compact list, a dirty checkout, a person who commits meanwhile, a flaky gate, an item that breaks another's tests.
#[test]
fn f4_twelve_items_land_proven_and_no_file_of_the_persons_is_touched() {
    let items = [
        ("N1", "note one"),
        ("N2", "note two"),
        ("N3", "note three"),
        ("F", "a flaky one"),
        ("S", "six"),
        ("V", "seven"),
        ("A", "alpha"),
        ("B", "beta"),
        ("C", "gamma"),
        ("D", "delta"),
        ("E", "epsilon"),
        ("G", "zeta"),
    ];
    let list = compact(&items);
    let bed = Bed::new(&[("feature_list.json", &list), ("check.sh", CHECK), ("notes.txt", "start\n"), ("mine.txt", "mine\n")], AGENT);
    bed.write("mine.txt", "not committed\n");
    bed.write("untracked.txt", "untracked\n");
    let before = (bed.git(&["status", "--porcelain"]), bed.git(&["ls-files", "--stage"]));
    let mut run = bed.start("feature_list.json", &["--workers", "4", "--verify", "sh check.sh"]);
    // The person goes on in the same repository.
    bed.until("a landing", || bed.log().matches(" landed ").count() >= 2);
    bed.write("persons.txt", "by hand\n");
    bed.git(&["add", "persons.txt"]);
    bed.git(&["commit", "-qm", "By hand", "persons.txt"]);
    let code = run.wait().unwrap().code();
    assert_eq!(code, Some(0), "{}", bed.log());

    assert_eq!(bed.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(bed.git(&["status", "--porcelain"]), before.0);
    assert!(bed.git(&["ls-files", "--stage"]).contains(&before.1.lines().next().unwrap().to_owned()));
    assert_eq!(fs::read_to_string(bed.repo().join("mine.txt")).unwrap(), "not committed\n");
    // The list is as it was, with twelve values changed.
    assert_eq!(bed.git(&["show", "ralph/feature-list:feature_list.json"]), list.replace("false", "true"));
    assert!(bed.log().contains("flaky") && bed.log().contains("sent-back"), "{}", bed.log());
    every_commit_passes(&bed, "ralph/feature-list");
    let landed = bed.git(&["log", "--first-parent", "--format=%(trailers:key=Ralph-Job,valueonly)", "ralph/feature-list"]);
    let mut jobs: Vec<&str> = landed.lines().filter(|line| !line.is_empty()).collect();
    jobs.sort_unstable();
    let count = jobs.len();
    jobs.dedup();
    assert_eq!((jobs.len(), count), (12, 12), "each one once: {landed}");
    // In the morning.
    bed.git(&["merge", "-q", "--ff-only", "ralph/feature-list"]);
    assert!(bed.git(&["show", "HEAD:notes.txt"]).lines().count() >= 4 && bed.repo().join("persons.txt").is_file());
}

/// Every first-parent commit, in a clone of its own.
fn every_commit_passes(bed: &Bed, branch: &str) {
    let clone = bed.root.path().join("looked");
    bed.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let commits = bed.git(&["rev-list", "--first-parent", branch]);
    for commit in commits.lines() {
        let checked = Command::new("git").current_dir(&clone).args(["checkout", "-q", commit]).status().unwrap();
        let passed = Command::new("sh").current_dir(&clone).arg("check.sh").env("RALPH_SLOT", "1").status().unwrap();
        assert!(checked.success() && passed.success(), "{commit}");
    }
}

/// What the target has without the job is nobody's fault: landing stops and says so, and the job stays proven.
#[test]
fn f4_a_red_target_blames_nobody() {
    let check = "test ! -e red.txt || test \"$RALPH_SLOT\" != 0\n";
    let bed = Bed::new(
        &[("feature_list.json", &compact(&[("A", "alpha")])), ("check.sh", check), ("red.txt", "red\n")],
        "echo x > a.txt; say a\n",
    );
    let mut run = bed.start("feature_list.json", &["--verify", "sh check.sh"]);
    bed.until("the word", || bed.fleet(&["status"]).1.contains("fails without this job"));
    assert_eq!(bed.of_job("a", "returns"), "0");
    // The person mends it, and landing goes on.
    bed.git(&["rm", "-q", "red.txt"]);
    bed.git(&["commit", "-qm", "Mended"]);
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
}

/// A lock file of which both sides changed is made anew by its own tool; a file that is named `union` keeps both sides.
#[test]
fn f4_files_of_which_both_sides_count_keep_both() {
    let toml = "[fleet]\nunion = [\"CHANGELOG.md\"]\n";
    let agent = "printf '# Changes\\n- %s\\n' \"$task\" > CHANGELOG.md; sleep 0.3; say \"$task\"\n";
    let list = compact(&[("A", "alpha"), ("B", "beta")]);
    let bed = Bed::new(&[("feature_list.json", &list), ("CHANGELOG.md", "# Changes\n"), ("ralph.toml", toml)], agent);
    let trusted = bed.ralph(&["trust", "--yes"]);
    assert_eq!(trusted.0, 0, "{}", trusted.1);
    let (code, said) = bed.run("feature_list.json", &["--workers", "2", "--verify", "true"]);
    assert_eq!(code, 0, "{said}");
    let log = bed.git(&["show", "ralph/feature-list:CHANGELOG.md"]);
    assert!(log.contains("- alpha") && log.contains("- beta"), "{log}");
    assert!(!said.contains("sent-back"), "{said}");
}

/// Nothing lands before a person has looked at it; what they send back comes again with their words.
#[test]
fn f4_with_review_a_person_decides_what_lands() {
    let agent = "case \"$prompt\" in *\"came back\"*) echo better > a.txt;; *) echo x > a.txt;; esac; say a\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], agent);
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--review"]);
    assert_eq!((code, bed.of_job("a", "state").as_str()), (12, "proven"), "{said}");
    assert_eq!(bed.fleet(&["back", "A", "Make it better"]).0, 0);
    assert_eq!(bed.run("feature_list.json", &["--verify", "true", "--review"]).0, 12);
    assert_eq!((bed.of_job("a", "state").as_str(), bed.of_job("a", "iterations").as_str()), ("proven", "2"));
    assert_eq!(bed.fleet(&["land", "A"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--review"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(bed.git(&["show", "ralph/feature-list:a.txt"]), "better");
}

/// A lander that is killed after its push is not told: the next one finds the job on the branch.
#[test]
fn f4_what_was_pushed_without_a_word_has_landed() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say a\n");
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--review"]);
    assert_eq!(code, 12, "{said}");
    let status = bed.status();
    let fleet = status["fleet"].as_str().unwrap();
    let work = status["jobs"][0]["commit"].as_str().unwrap().to_owned();
    let hub = bed.root.path().join("home/.local/state/ralph/fleets").join(fleet).join("hub.git");
    bed.git(&["fetch", "-q", hub.to_str().unwrap(), &work]);
    let commit =
        bed.git(&["commit-tree", &format!("{work}^{{tree}}"), "-p", "main", "-p", &work, "-m", &format!("A\n\nRalph-Job: {fleet}/a\n")]);
    bed.git(&["branch", "ralph/feature-list", &commit]);
    assert_eq!(bed.fleet(&["land", "A"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--review"]);
    assert_eq!((code, bed.git(&["rev-parse", "ralph/feature-list"])), (0, commit), "{said}");
}
