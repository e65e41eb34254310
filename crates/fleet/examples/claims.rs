//! How fast a store gives out jobs, for `cargo xtask bench --fleet`: `claims STORE jobs N CLAIMERS`, `claims STORE deaths N` or `claims STORE slots N`. STORE is
//! a folder or the address of a NATS server; both must be empty. Each measurement is a JSON object on a line of its own.
//!
//! - `jobs`: so many threads, each with a view of its own, take N trivial jobs one after the other, with the ledger's two writes for each;
//! - `deaths`: a process that holds N jobs under as many names is killed, and it is measured how long it takes until all of them are someone else's;
//! - `slots`: N names are held for three leases, while jobs are claimed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a measurement for developers"
)]

use std::{
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ralph_fleet::{
    board::Board,
    change::{self, Changed},
    job_rules::Outcome,
    records::{JOB, Job, LEDGER, Ledger, SPEC, Spec, VERSION, key},
    store::{
        Holder, Store,
        dir::Dir,
        nats::{Nats, Settings},
    },
};
use serde_json::json;

const LEASE: Duration = Duration::from_secs(10);

fn open(place: &str) -> Box<dyn Store> {
    if place.starts_with("nats://") {
        let settings = Settings { lease: LEASE, timeout: Duration::from_secs(10), ..Settings::new(place, "bench") };
        Box::new(Nats::open(settings).unwrap())
    } else {
        Box::new(Dir::open(Path::new(place)).unwrap())
    }
}

fn enqueue(store: &dyn Store, name: &str, count: usize) {
    for n in 0..count {
        let spec = Spec { version: VERSION, id: format!("{name}{n}"), task: "x".into(), number: n as u64, ..Spec::default() };
        store.put_if(&key(SPEC, &spec.id), &serde_json::to_vec(&spec).unwrap(), 0).unwrap();
    }
}

/// One claimer, until nothing is left: it takes the first job, as a worker does. How long each claim took, and how many races it lost.
fn claim_all(store: &dyn Store, name: &str) -> (Vec<Duration>, usize) {
    let _hold = store.hold(name).unwrap();
    let (mut board, mut took, mut lost) = (Board::default(), Vec::new(), 0);
    loop {
        let began = Instant::now();
        board.refresh(store).unwrap();
        let Some((id, card)) = board.to_run(store, &[], 1).next() else { return (took, lost) };
        let (job, claim) = card.job.claimed(name, 1);
        let number = took.len() + lost;
        let nonce = |n: usize| format!("{name}:{n}:{number}");
        match change::job(store, id, job, card.revision, nonce(1)).unwrap() {
            Changed::Done(job, revision) => {
                took.push(began.elapsed());
                // The money of its session, as for a real job.
                let ledger = |change: &mut dyn FnMut(Ledger) -> Option<Ledger>| change::shared(store, LEDGER, change).unwrap();
                ledger(&mut |ledger| ledger.settle_older(id, claim.token));
                ledger(&mut |ledger| Some(ledger.reserve(id, claim.token, 2, 1)?.0));
                ledger(&mut |ledger| Some(ledger.settle(id, claim.token, 1)));
                change::job(store, id, job.ended(Outcome::Landed { commit: "0".repeat(40) }, 1), revision, nonce(2)).unwrap();
            }
            Changed::Refused(_) => lost += 1,
        }
    }
}

fn measure_claims(place: &str, jobs: usize, claimers: usize) {
    let store = open(place);
    let began = Instant::now();
    enqueue(&*store, "j", jobs);
    let added = jobs as f64 / began.elapsed().as_secs_f64();
    let views: Vec<_> = (0..claimers).map(|_| open(place)).collect();
    let began = Instant::now();
    let all: Vec<(Vec<Duration>, usize)> = thread::scope(|scope| {
        let started: Vec<_> = views.iter().enumerate().map(|(n, view)| scope.spawn(move || claim_all(&**view, &format!("c{n}")))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    let lost: usize = all.iter().map(|(_, lost)| lost).sum();
    let mut took: Vec<Duration> = all.into_iter().flat_map(|(took, _)| took).collect();
    took.sort();
    let at = |share: usize| took[(took.len() - 1) * share / 100];
    assert_eq!(took.len(), jobs);
    say(
        &json!({ "jobs": jobs, "added_per_second": added, "claims_per_second": jobs as f64 / seconds, "p50_ms": ms(at(50)), "p99_ms": ms(at(99)), "races_lost": lost }),
    );
}

/// What the process does that is killed.
fn hold_many(place: &str, count: usize) {
    let store = open(place);
    let holds: Vec<_> = (0..count).map(|n| store.hold(&format!("d{n}")).unwrap()).collect();
    for n in 0..count {
        let (job, _) = Job::new(1).claimed(&format!("d{n}"), 1);
        change::job(&*store, &format!("k{n}"), job, 0, format!("d{n}")).unwrap();
    }
    thread::sleep(Duration::from_mins(10));
    drop(holds);
}

fn measure_deaths(place: &str, deaths: usize) {
    let store = open(place);
    enqueue(&*store, "k", deaths);
    let mut holder = Command::new(std::env::current_exe().unwrap());
    let mut holder = holder.args([place, "hold", &deaths.to_string()]).stdout(Stdio::null()).spawn().unwrap();
    let last = key(JOB, &format!("k{}", deaths - 1));
    while store.get(&last).unwrap().is_none() {
        thread::sleep(Duration::from_millis(10));
    }
    let views: Vec<_> = (0..4).map(|_| open(place)).collect();
    // They have seen it all before it happens.
    for view in &views {
        view.list("").unwrap();
    }
    thread::sleep(Duration::from_secs(1));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let began = Instant::now();
    let took: usize = thread::scope(|scope| {
        let recover = |n: usize, view: &dyn Store| {
            let mut count = 0;
            while view.list("job.k").unwrap().iter().any(|(_, entry)| String::from_utf8_lossy(&entry.value).contains(r#""worker":"d"#)) {
                count += claim_all(view, &format!("r{n}")).0.len();
                thread::sleep(Duration::from_millis(20));
            }
            count
        };
        let started: Vec<_> = views.iter().enumerate().map(|(n, view)| scope.spawn(move || recover(n, &**view))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let lease = if place.starts_with("nats://") { LEASE } else { Duration::ZERO };
    say(&json!({ "deaths": deaths, "taken_over": took, "recovered_ms": ms(began.elapsed()), "lease_ms": ms(lease) }));
}

/// Names that are renewed, and claims beside them. None of them may look dead.
fn measure_slots(place: &str, slots: usize) {
    let (store, other) = (open(place), open(place));
    let began = Instant::now();
    let holds: Vec<_> = (0..slots).map(|n| store.hold(&format!("s{n}")).unwrap()).collect();
    let held = began.elapsed();
    let busy = cpu_seconds();
    let began = Instant::now();
    let jobs = 1000;
    enqueue(&*other, "s", jobs);
    let claimed = Instant::now();
    let (mut took, _) = claim_all(&*other, "c");
    let seconds = claimed.elapsed().as_secs_f64();
    took.sort();
    let mut dead = 0;
    while began.elapsed() < LEASE * 3 {
        let is_gone = |n: &usize| other.is_gone(Holder { worker: &format!("s{n}"), key: "job.s0", revision: 1 }).unwrap();
        dead += (0..slots).filter(is_gone).count();
        thread::sleep(Duration::from_millis(500));
    }
    let busy = (cpu_seconds() - busy) / began.elapsed().as_secs_f64();
    drop(holds);
    let p99 = ms(took[(took.len() - 1) * 99 / 100]);
    say(&json!({
        "slots": slots, "taken_in_ms": ms(held), "looked_dead": dead, "claims_per_second_beside": jobs as f64 / seconds, "p99_ms_beside": p99, "share_of_a_core": busy,
    }));
}

/// The processor time of this process so far.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or_default().split(' ').skip(12).take(2).filter_map(|field| field.parse().ok()).collect();
    fields.iter().sum::<f64>() / 100.0
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn say(value: &serde_json::Value) {
    println!("{value}");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args[at].parse::<usize>().unwrap();
    match args[1].as_str() {
        "hold" => hold_many(&args[0], number(2)),
        "deaths" => measure_deaths(&args[0], number(2)),
        "slots" => measure_slots(&args[0], number(2)),
        _ => measure_claims(&args[0], number(2), number(3)),
    }
}
