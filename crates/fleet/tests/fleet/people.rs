//! What people do with a fleet that works.

use std::fs;

use crate::bed::{Bed, compact, lives};

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
    bed.until("the agent's end", || !lives(agent));
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

/// The limits of a job hold for its whole loop, however many `ralph run`s that is. Once a person lets the job go on, they begin anew.
#[test]
fn f1_a_limit_of_a_job_ends_it_and_a_release_gives_it_anew() {
    let agent = "n=$(cat \"$MARKS/n\" 2>/dev/null || echo 0); n=$((n+1)); echo $n > \"$MARKS/n\"\n\
        if [ $n -lt 4 ]; then sleep $WORKS; echo $n > $n.txt; git add -A; git commit -qm $n; echo on; exit; fi\n\
        echo x > 4.txt; say four\n";
    // With each of them no more than two iterations are possible.
    for (limit, works) in [(["--hours", "0.003"], "6"), (["--max-iterations", "2"], "0")] {
        let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], &agent.replace("$WORKS", works));
        let run = || bed.run("feature_list.json", &[&["--workers", "1", "--verify", "true"], &limit[..]].concat());
        let iterations = || bed.of_job("a", "iterations").parse::<u64>().unwrap();
        // The time may also be up before the next iteration begins.
        let is_limit = |said: &str| said.contains("limit of") || said.contains("used up its time");
        let (code, said) = run();
        assert!(code == 12 && is_limit(&said), "{limit:?}: {said}");
        assert!((1..=2).contains(&iterations()), "{said}");
        // It stays with the person, also where the fleet is begun again.
        let before = iterations();
        assert_eq!((run().0, iterations()), (12, before));
        assert_eq!(bed.fleet(&["release", "A"]).0, 0);
        let (code, said) = run();
        assert!(iterations() > before && (code == 0 || is_limit(&said)), "{limit:?}: {said}");
    }
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

/// Money that other jobs have set aside may come back: it is waited for, and is no end.
#[test]
fn f5_what_is_set_aside_is_waited_for() {
    let agent = "sleep 0.5; echo x > \"$task.txt\"; say x\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha"), ("B", "beta"), ("C", "gamma")]))], agent);
    let (code, said) = bed.run("feature_list.json", &["--workers", "3", "--verify", "true", "--usd", "5"]);
    assert_eq!(code, 0, "{said}");
}

/// A job for workers of a pool that nobody here is of: that is told.
#[test]
fn f5_a_pool_without_a_worker_is_told() {
    let list = r#"{"features": [{"id": "A", "description": "alpha", "passes": false, "pool": "gpu"}, {"id": "B", "description": "beta", "passes": false}]}"#;
    let bed = Bed::new(&[("feature_list.json", list)], "echo x > \"$task.txt\"; say x\n");
    let mut run = bed.start("feature_list.json", &["--workers", "1", "--verify", "true"]);
    bed.until("a landing", || bed.log().contains(" landed "));
    assert!(bed.log().contains("`--pool gpu` takes them here, too"), "{}", bed.log());
    assert!(bed.fleet(&["status"]).1.contains("waits for a worker of the pool gpu"), "{}", bed.fleet(&["status"]).1);
    assert!(std::process::Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    run.wait().unwrap();
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--pool", "gpu"]);
    assert!(code == 0 && !said.contains("takes them here"), "{said}");
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
    assert!(!lives(pid.trim()));
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

/// SIGTERM and `drain` let the iteration end, give the job back with what it brought, and the work goes on elsewhere at the next iteration.
#[test]
fn f6_a_drained_worker_finishes_its_iteration_and_gives_the_job_back() {
    let agent = "n=$(cat \"$MARKS/n\" 2>/dev/null || echo 0); n=$((n+1)); echo $n > \"$MARKS/n\"\n\
        if [ $n -lt 4 ]; then sleep 2; echo $n > $n.txt; git add -A; git commit -qm $n; echo on; exit; fi\n\
        test -f 1.txt && test -f 3.txt && echo x > 4.txt && say four\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], agent);
    let noted = || fs::read_to_string(bed.marks().join("n")).unwrap_or_default().trim().to_owned();
    let mut run = bed.start("feature_list.json", &["--workers", "1", "--verify", "true"]);
    bed.until("the first session", || noted() == "1");
    assert!(std::process::Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    assert_eq!(
        (noted().as_str(), bed.of_job("a", "state").as_str(), bed.of_job("a", "iterations").as_str()),
        ("1", "waits", "1"),
        "{}",
        bed.log()
    );
    let mut run = bed.start("feature_list.json", &["--workers", "1", "--verify", "true"]);
    bed.until("the second session", || noted() == "2");
    let (code, said) = bed.fleet(&["drain"]);
    assert!(code == 0 && said.contains("all workers end"), "{said}");
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    assert_eq!((noted().as_str(), bed.of_job("a", "state").as_str(), bed.of_job("a", "iterations").as_str()), ("2", "waits", "2"));
    // Those that begin later go on.
    let mut run = bed.start("feature_list.json", &["--workers", "1", "--verify", "true"]);
    bed.until("the third session", || noted() == "3");
    assert!(std::process::Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(130), "{}", bed.log());
    assert_eq!((bed.of_job("a", "state").as_str(), bed.of_job("a", "iterations").as_str()), ("waits", "3"), "{}", bed.log());
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true"]);
    assert_eq!((code, bed.of_job("a", "iterations").as_str()), (0, "4"), "{said}");
}

/// One worker of several ends; a second signal ends the agents now.
#[test]
fn f6_one_worker_can_be_drained_and_a_second_signal_ends_all_now() {
    let agent = "echo $$ >> \"$MARKS/pids\"; sleep 600\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha"), ("B", "beta")]))], agent);
    let mut run = bed.start("feature_list.json", &["--workers", "2", "--verify", "true"]);
    let pids = || fs::read_to_string(bed.marks().join("pids")).unwrap_or_default();
    bed.until("both", || pids().lines().count() == 2);
    let worker = bed.of_job("a", "worker");
    assert_eq!(bed.fleet(&["drain", &worker]).0, 0);
    let signal = || assert!(std::process::Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    signal();
    bed.until("its word", || bed.log().contains("a second Ctrl-C or SIGTERM ends it now"));
    assert!(pids().lines().all(lives), "they finish their iterations");
    signal();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{}", bed.log());
    assert!(pids().lines().all(|pid| !lives(pid)), "{}", bed.log());
    assert_eq!((bed.of_job("a", "state").as_str(), bed.of_job("b", "state").as_str()), ("waits", "waits"), "{}", bed.log());
}

/// The same for a landing: its gates end at once, and the job stays proven.
#[test]
fn f6_a_second_signal_ends_the_gates_of_a_landing() {
    let check = "if [ \"$RALPH_SLOT\" = 0 ]; then echo $$ > \"$MARKS/lands\"; sleep 600; fi\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")])), ("check.sh", check)], "echo x > a.txt; say a\n");
    let mut run = bed.start("feature_list.json", &["--workers", "1", "--verify", "sh check.sh"]);
    let pid = || fs::read_to_string(bed.marks().join("lands")).unwrap_or_default().trim().to_owned();
    bed.until("the landing", || !pid().is_empty());
    let signal = || assert!(std::process::Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    signal();
    bed.until("its word", || bed.log().contains("a second Ctrl-C or SIGTERM ends it now"));
    assert!(lives(pid()), "what began is finished");
    signal();
    run.wait().unwrap();
    assert!(!lives(pid()), "{}", bed.log());
    assert_eq!((bed.of_job("a", "state").as_str(), bed.of_job("a", "returns").as_str()), ("proven", "0"), "{}", bed.log());
}

/// A worker that stands still keeps its job until a person releases it; then another does the work, and nothing of the first one's counts.
#[test]
fn f3_a_released_job_goes_to_another_worker_and_the_first_one_writes_nothing() {
    let agent = "if [ ! -e \"$MARKS/first\" ]; then echo $$ > \"$MARKS/first\"; sleep 5; echo stale > a.txt; say stale; exit; fi; echo fresh > a.txt; say fresh\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], agent);
    let mut stopped = bed.start("feature_list.json", &["--workers", "1", "--verify", "true", "--review"]);
    bed.until("the first", || bed.marks().join("first").exists());
    let signal =
        |name: &str| assert!(std::process::Command::new("kill").args([name, &stopped.id().to_string()]).status().unwrap().success());
    signal("-STOP");
    let agent = fs::read_to_string(bed.marks().join("first")).unwrap().trim().to_owned();
    assert_eq!(bed.fleet(&["release", "A"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true", "--review"]);
    assert_eq!((code, bed.of_job("a", "state").as_str()), (12, "proven"), "{said}");
    assert!(!lives(&agent), "two agents on one job");
    let (token, commit) = (bed.of_job("a", "token"), bed.of_job("a", "commit"));
    signal("-CONT");
    assert_eq!(stopped.wait().unwrap().code(), Some(12), "{}", bed.log());
    assert_eq!((bed.of_job("a", "token"), bed.of_job("a", "commit")), (token, commit), "{}", bed.log());
    assert_eq!(bed.fleet(&["land", "A"]).0, 0);
    assert_eq!(bed.run("feature_list.json", &["--verify", "true", "--review"]).0, 0);
    assert_eq!(bed.git(&["show", "ralph/feature-list:a.txt"]), "fresh");
}

/// Two runs of one fleet at once share the work: one of them lands, and says so.
#[test]
fn f4_two_landers_of_one_fleet_land_each_job_once() {
    let items: Vec<(String, String)> = (0..6).map(|n| (format!("J{n}"), format!("job{n}"))).collect();
    let list = compact(&items.iter().map(|(id, task)| (id.as_str(), task.as_str())).collect::<Vec<_>>());
    let bed = Bed::new(&[("feature_list.json", &list)], "sleep 0.5; echo x > \"$task.txt\"; say x\n");
    let args = ["--workers", "1", "--verify", "true"];
    let mut first = bed.start("feature_list.json", &args);
    bed.until("it begins", || bed.log().contains("began"));
    let (code, said) = bed.run("feature_list.json", &args);
    assert_eq!((code, first.wait().unwrap().code()), (0, Some(0)), "{said}\n{}", bed.log());
    assert!(said.contains("another process lands for this fleet already"), "{said}");
    let landed = bed.git(&["log", "--first-parent", "--format=%(trailers:key=Ralph-Job,valueonly)", "ralph/feature-list"]);
    let mut jobs: Vec<&str> = landed.lines().filter(|line| !line.is_empty()).collect();
    let all = jobs.len();
    jobs.sort_unstable();
    jobs.dedup();
    assert_eq!((jobs.len(), all), (6, 6), "{landed}");
}

/// A `ralph run` that is killed is begun again by the next claim, three times; then a person has to look. Its session counts as if it had cost all that it might.
#[test]
#[cfg(target_os = "linux")]
fn f3_a_run_that_dies_is_tried_again_three_times() {
    let agent = "echo x >> \"$MARKS/tries\"; kill -9 $PPID; sleep 600\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], agent);
    // The shell that starts the agent is between it and `ralph run`.
    bed.write_outside("agent.sh", "echo x >> \"$MARKS/tries\"\np=$PPID\nwhile [ \"$(cat /proc/$p/comm)\" != ralph ]; do p=$(awk '/^PPid/ {print $2}' /proc/$p/status); done\nkill -9 $p; sleep 600\n");
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true", "--usd", "40"]);
    assert_eq!((code, bed.of_job("a", "state").as_str()), (12, "needs-person"), "{said}");
    assert_eq!(fs::read_to_string(bed.marks().join("tries")).unwrap().lines().count(), 3, "{said}");
    assert!(bed.of_job("a", "why").contains("3 workers in a row"), "{}", bed.of_job("a", "why"));
    assert_eq!(bed.status()["usd"], 15.0);
}
