//! What people get wrong gets an answer that helps, and nothing is lost.

use crate::bed::{Bed, compact};

#[test]
fn f1_what_is_wrong_is_said_and_nothing_begins() {
    let ring = r#"{"features": [{"id": "A", "description": "a", "dependsOn": ["B"], "passes": false}, {"id": "B", "description": "b", "dependsOn": ["A"], "passes": false}]}"#;
    let bed = Bed::new(
        &[
            ("feature_list.json", &compact(&[("A", "alpha")])),
            ("ring.json", ring),
            ("broken.json", "{"),
            ("ralph.toml", "[[gate]]\ncommand = \"true\"\n"),
        ],
        "say a\n",
    );
    let says = |args: &[&str], words: &str| {
        let (code, said) = bed.fleet(args);
        assert!(code != 0 && said.contains(words), "{args:?}: {said}");
    };
    says(&["status"], "there is no fleet in this repository");
    says(&["run", "feature_list.json"], "ralph.toml is not trusted");
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    says(&["run", "nowhere.json"], "nowhere.json cannot be read");
    says(&["run", "broken.json"], "broken.json:");
    says(&["run", "ring.json"], "ring");
    says(&["run", "feature_list.json", "--base", "nowhere"], "nowhere");
    says(&["run", "feature_list.json", "--target", "main"], "your own branch");
    says(&["run", "feature_list.json", "--workers", "0"], "0");
    says(&["run", "/etc/hostname"], "is not in this repository");
    assert_eq!(bed.fleet(&["add", "Do it"]).0, 0);
    says(&["cancel", "nobody"], "there is no job nobody");
    says(&["land", "do-it"], "not proven yet");
    says(&["release", "do-it"], "with nobody");
}

/// A record of a newer version is left alone, and told.
#[test]
fn f2_a_newer_versions_job_is_left_alone() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha"), ("B", "beta")]))], "echo x > \"$task.txt\"; say x\n");
    assert_eq!(bed.run("feature_list.json", &["--verify", "true", "--usd", "0.01"]).0, 10);
    let fleets = bed.root.path().join("home/.local/state/ralph/fleets");
    let fleet = std::fs::read_dir(fleets).unwrap().next().unwrap().unwrap().path();
    let folder = fleet.join("queue/keys/job.a");
    let newest =
        std::fs::read_dir(&folder).unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u64>().ok()).max().unwrap();
    std::fs::write(folder.join((newest + 1).to_string()), r#"{"version": 99, "state": "dances"}"#).unwrap();
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--usd", "1"]);
    assert_eq!(code, 12, "{said}");
    assert!(bed.of_job("a", "sealed").contains("version 99") && bed.of_job("b", "state") == "landed", "{said}");
}

/// The person has the branch checked out that work should land on: nothing is touched, it waits, and goes on.
#[test]
fn f4_a_checked_out_target_is_not_moved() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say a\n");
    bed.git(&["switch", "-qc", "ralph/feature-list"]);
    let mut run = bed.start("feature_list.json", &["--verify", "true", "--base", "main"]);
    bed.until("the word", || bed.fleet(&["status"]).1.contains("checked out: switch"));
    assert!(!bed.repo().join("a.txt").exists());
    bed.git(&["switch", "-q", "main"]);
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    assert!(!bed.repo().join("a.txt").exists());
}
