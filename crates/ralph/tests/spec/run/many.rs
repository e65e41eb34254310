//! A long run: nothing leaks, nothing grows.

use std::fs;

use ralph_testkit::nightly;

use super::{Runs, until};
use crate::common::Bed;

/// 300 rounds (100 at every change): descriptors, threads, memory and processes stay as they are.
#[test]
fn pains_13_three_hundred_rounds_leak_nothing() {
    let bed = Bed::new();
    let runs = Runs::of(bed, "setsid sleep 300 &\necho x\n");
    let rounds = nightly::amount(100, 300);
    let all = rounds.to_string();
    let running =
        runs.start(&["Go", "--max-iterations", &all, "--stall-iterations", "0", "--idle-iterations", "0", "--quiet", "--no-snapshots"]);
    let process = format!("/proc/{}", running.pid());
    let look = || {
        let status = fs::read_to_string(format!("{process}/status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
        };
        let descriptors = fs::read_dir(format!("{process}/fd")).map_or(0, Iterator::count);
        (field("VmRSS:"), field("Threads:"), descriptors)
    };
    let at_most = |look: &dyn Fn() -> (u64, u64, usize)| {
        // Between two sessions least is open.
        (0..40)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                look()
            })
            .fold((0, u64::MAX, usize::MAX), |a, b| (a.0.max(b.0), a.1.min(b.1), a.2.min(b.2)))
    };
    until("20 iterations", || runs.sessions() >= 20);
    let early = at_most(&look);
    until("almost all iterations", || runs.sessions() >= rounds - 20);
    let late = at_most(&look);
    let (code, shown) = running.ends();
    assert_eq!(code, Some(10), "{shown}");
    assert_eq!(runs.sessions(), rounds);
    // One leak a round would be 60 of them at least.
    assert!(late.1 <= early.1 + 8 && late.2 <= early.2 + 8, "threads, descriptors: {early:?} {late:?}");
    assert!(late.0 < early.0 + early.0 / 2 + 2_048, "memory in kB: {early:?} {late:?}");
    assert!(runs.bed.files_in(".ralph/rounds").len() == 1);
}
