//! What people do with a fleet that works.

use std::fs;

use crate::bed::{Bed, compact};

/// A killed fleet leaves no agent behind, and goes on at the same iteration.
#[test]
fn f3_a_killed_fleet_goes_on_where_it_was() {
    let agent = "n=$(cat \"$MARKS/n\" 2>/dev/null || echo 0); n=$((n+1)); echo $n > \"$MARKS/n\"; echo $$ > \"$MARKS/pid\"\n\
        if [ $n = 1 ]; then echo one > a.txt; git add -A; git commit -qm one; echo go on; exit; fi\n\
        if [ $n = 2 ]; then sleep 600; fi\n\
        test -f a.txt && echo two > b.txt && say two\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], agent);
    let mut run = bed.start("feature_list.json", &["--verify", "test -f b.txt"]);
    let noted = |name: &str| fs::read_to_string(bed.marks().join(name)).unwrap_or_default().trim().to_owned();
    bed.until("the second session", || noted("n") == "2");
    let agent: u32 = noted("pid").parse().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    bed.until("the agent's end", || !std::path::Path::new(&format!("/proc/{agent}")).exists());
    assert_eq!((bed.of_job("a", "state").as_str(), bed.of_job("a", "iterations").as_str()), ("runs", "1"));
    let (code, said) = bed.run("feature_list.json", &["--verify", "test -f b.txt"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(bed.of_job("a", "iterations"), "2");
    assert_eq!(bed.git(&["show", "ralph/feature-list:a.txt"]), "one");
}

/// Tasks in words, dependencies, priorities.
#[test]
fn f1_jobs_are_taken_in_their_order() {
    let list = r#"{"features": [{"id": "last", "description": "third", "dependsOn": ["mid"], "passes": false},
        {"id": "mid", "description": "second", "passes": false}, {"id": "first", "description": "first", "priority": 1, "passes": false},
        {"id": "done", "description": "done before", "passes": true}]}"#;
    let bed = Bed::new(&[("feature_list.json", list)], "echo \"$task\" >> \"$MARKS/order\"; echo x > \"$task.txt\"; say x\n");
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(bed.marks().join("order")).unwrap(), "first\nsecond\nthird\n");
    let (code, said) = bed.fleet(&["add", "One", "more"]);
    assert_eq!((code, said.as_str()), (0, "one-more is added; `ralph fleet run` works on it\n"));
    assert_eq!(bed.run("feature_list.json", &["--verify", "true"]).0, 0);
    assert_eq!(bed.of_job("one-more", "state"), "landed");
}

/// One budget for all: what is not left is not spent.
#[test]
fn f5_a_fleet_without_money_begins_nothing() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say a\n");
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--usd", "0.01"]);
    assert_eq!(code, 10, "{said}");
    assert!(!bed.marks().join("n").exists());
    assert_eq!(bed.run("feature_list.json", &["--verify", "true", "--usd", "1"]).0, 0);
}

/// Cancel, pause, steer while it works.
#[test]
fn f6_people_steer_pause_and_cancel() {
    let agent = "case \"$task\" in *alpha*) echo $$ > \"$MARKS/alpha\"; sleep 600;; esac\n\
        case \"$prompt\" in *hurry*) echo x > b.txt; say b;; *) touch \"$MARKS/beta\"; sleep 0.2; echo on > on-$$.txt; git add -A; git commit -qm on;; esac\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha"), ("B", "beta")]))], agent);
    let mut run = bed.start("feature_list.json", &["--workers", "2", "--verify", "true"]);
    bed.until("both", || bed.marks().join("alpha").exists() && bed.marks().join("beta").exists());
    assert_eq!(bed.fleet(&["steer", "B", "Please", "hurry"]).0, 0);
    bed.until("its end", || bed.of_job("b", "state") == "landed");
    assert_eq!(bed.fleet(&["pause"]).0, 0);
    assert!(bed.fleet(&["status"]).1.contains("paused"));
    assert_eq!(bed.fleet(&["resume"]).0, 0);
    assert_eq!(bed.fleet(&["cancel", "A"]).0, 0);
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    let pid = fs::read_to_string(bed.marks().join("alpha")).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
    assert_eq!(bed.of_job("a", "state"), "cancelled");
    let (code, said) = bed.fleet(&["report"]);
    assert!(code == 0 && said.contains("git merge --ff-only ralph/feature-list") && said.contains("1 of 1 landed"), "{said}");
    let (code, said) = bed.fleet(&["metrics"]);
    assert!(code == 0 && said.contains("state=\"landed\"} 1") && said.contains("state=\"cancelled\"} 1"), "{said}");
}

/// Only a person commands a fleet.
#[test]
fn f7_an_agents_shell_may_only_look() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "say a\n");
    assert_eq!(bed.fleet(&["add", "x"]).0, 0);
    let run = |args: &[&str]| bed.command(args).env("CLAUDECODE", "1").output().unwrap();
    assert!(run(&["status"]).status.success());
    for args in [&["add", "y"][..], &["cancel", "x"], &["run", "feature_list.json"], &["land", "x"], &["release", "x"]] {
        let refused = run(args);
        assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("agent's shell"), "{args:?} {refused:?}");
    }
}
