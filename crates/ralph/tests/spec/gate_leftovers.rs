//! After hundreds of gate runs: nothing runs, and ralph's folders have not grown beyond their bounds.

use std::{
    fs, thread,
    time::{Duration, SystemTime},
};

use crate::{
    common::unique,
    gated::{Gated, gate},
};

/// How many verdicts and logs are kept.
const VERDICTS: usize = 200;
const LOGS: usize = 60;

/// Ten commands, of which some pass, fail, take too long, and leave all kinds of things behind.
fn mixed() -> String {
    let both = "parallel = true\ncache = false\ndeadline = 1";
    let commands = [
        "true",
        "exit 1",
        "echo error: x; exit 3",
        "setsid sleep 300 &",
        "(setsid sh -c 'trap \"\" TERM HUP; sleep 300 & wait' > /dev/null 2>&1 &); exit 1",
        "perl -e 'use POSIX; fork and exit; setsid; fork and exit; sleep 300'",
        "for i in 1 2 3 4 5; do sleep 300 & done; nohup setsid sleep 300 &",
        "sleep 300 & setsid sleep 300 & wait",
        "kill -9 $$",
        "yes | head -c 1000000",
    ];
    let gates = commands.iter().enumerate().map(|(n, command)| gate(&format!("g{n}"), command, both));
    std::iter::once("keep_going = true\n".to_owned()).chain(gates).collect()
}

#[test]
fn point_2_nothing_is_left_running_after_three_hundred_gate_runs() {
    const PROJECTS: usize = 6;
    const ROUNDS: usize = 5;
    let work = || {
        let bed = Gated::new(&mixed());
        for _ in 0..ROUNDS {
            let answer = bed.claim().send();
            assert!(answer.blocks(), "{answer:?}");
            bed.leaves_nothing();
            let verdicts: Vec<String> = bed.verdicts().into_iter().map(|(_, verdict)| verdict).collect();
            let expected = ["pass", "fail", "fail", "pass", "fail", "pass", "pass", "unknown", "fail", "pass"];
            let odd: Vec<_> = verdicts.iter().zip(expected).filter(|(v, e)| v != e && *v != "unknown").collect();
            assert!(odd.is_empty(), "on a busy machine a second may be too short, but nothing else differs: {:?}", bed.findings());
        }
        let logs = bed.files_in(".ralph/logs").len();
        assert!((10 * ROUNDS..=LOGS).contains(&logs), "{logs}");
        10 * ROUNDS
    };
    let runs: usize = thread::scope(|scope| {
        let all: Vec<_> = (0..PROJECTS).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(runs, 300);
}

#[test]
fn point_2_logs_and_verdicts_are_bounded() {
    let bed = Gated::new(&gate("bad", "exit 1", ""));
    bed.claim().send();
    for n in 0..300 {
        bed.write(format!(".ralph/logs/20200101T000000{n:03}Z-old.log"), "old");
        fs::write(bed.place_of_kept("verdicts").join(format!("{n:032x}")), "{}").unwrap();
    }
    for _ in 0..3 {
        bed.write("changes", unique().to_string());
        bed.claim().send();
    }
    let (logs, verdicts) = (bed.files_in(".ralph/logs").len(), bed.kept("verdicts").len());
    assert!(logs <= LOGS && verdicts <= VERDICTS, "{logs} logs, {verdicts} verdicts");
    let log = bed.findings()[0]["log"].as_str().unwrap().to_owned();
    assert!(bed.exists(&log), "the newest one is there");
}

/// Every loop has a lock of its own; those of loops that ended long ago go.
#[test]
fn point_2_locks_of_former_loops_are_removed() {
    let bed = Gated::new(&gate("bad", "exit 1", ""));
    let long_ago = SystemTime::now() - Duration::from_hours(90 * 24);
    for n in 0..30 {
        let path = bed.write(format!(".ralph/locks/loop-{n}.lock"), "");
        fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    bed.claim().send();
    assert_eq!(bed.files_in(".ralph/locks").len(), 1);
}
