//! How fast a store gives out jobs: `claims STORE JOBS CLAIMERS DEATHS`. STORE is a folder or the address of a NATS server; both must be empty.
//!
//! CLAIMERS threads, each with a view of its own, take JOBS trivial jobs one after the other. Then a process that holds DEATHS jobs under as many names is killed,
//! and it is measured how long it takes until all of them are someone else's.

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
    machine::Outcome,
    records::{JOB, Job, SPEC, Spec, VERSION, key},
    store::{
        Store,
        dir::Dir,
        nats::{Nats, Settings},
    },
};

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

/// One claimer, until nothing is left. How long each claim took, and how many races it lost.
fn claim_all(store: &dyn Store, name: &str, spread: usize, finish: bool) -> (Vec<Duration>, usize) {
    let _hold = store.hold(name).unwrap();
    let (mut board, mut took, mut lost, mut turn) =
        (Board::default(), Vec::new(), 0, name.bytes().fold(0, |sum, b| sum * 31 + usize::from(b)));
    loop {
        let began = Instant::now();
        board.refresh(store).unwrap();
        // Not all take the first one: those who look at the same time would take it from each other.
        turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut free = board.to_run(store, &[], 1);
        let first = free.next();
        let Some((id, card)) = free.nth((turn >> 33) % spread).or(first) else { return (took, lost) };
        let (job, _) = card.job.claimed(name, 1);
        let number = took.len() + lost;
        let nonce = |n: usize| format!("{name}:{n}:{number}");
        match change::job(store, id, job, card.revision, nonce(1)).unwrap() {
            Changed::Done(job, revision) => {
                took.push(began.elapsed());
                if finish {
                    change::job(store, id, job.ended(Outcome::Landed { commit: "x".into() }, 1), revision, nonce(2)).unwrap();
                }
            }
            Changed::Refused(_) => lost += 1,
        }
    }
}

fn measure_claims(place: &str, jobs: usize, claimers: usize) {
    let store = open(place);
    let began = Instant::now();
    enqueue(&*store, "j", jobs);
    println!("{:.0} jobs a second were added", jobs as f64 / began.elapsed().as_secs_f64());
    let views: Vec<_> = (0..claimers).map(|_| open(place)).collect();
    let began = Instant::now();
    let all: Vec<(Vec<Duration>, usize)> = thread::scope(|scope| {
        let started: Vec<_> =
            views.iter().enumerate().map(|(n, view)| scope.spawn(move || claim_all(&**view, &format!("c{n}"), claimers, true))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    let lost: usize = all.iter().map(|(_, lost)| lost).sum();
    let mut took: Vec<Duration> = all.into_iter().flat_map(|(took, _)| took).collect();
    took.sort();
    let at = |share: usize| took[(took.len() - 1) * share / 100];
    assert_eq!(took.len(), jobs);
    println!("{:.0} claims a second by {claimers}, p50 {:?}, p99 {:?}, {lost} races lost", jobs as f64 / seconds, at(50), at(99));
}

/// What the process does that is killed.
fn hold_many(place: &str, count: usize) {
    let store = open(place);
    let holds: Vec<_> = (0..count).map(|n| store.hold(&format!("d{n}")).unwrap()).collect();
    for n in 0..count {
        let (job, _) = Job::new(1).claimed(&format!("d{n}"), 1);
        change::job(&*store, &format!("k{n}"), job, 0, format!("d{n}")).unwrap();
    }
    println!("ready");
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
                count += claim_all(view, &format!("r{n}"), 4, true).0.len();
                thread::sleep(Duration::from_millis(20));
            }
            count
        };
        let started: Vec<_> = views.iter().enumerate().map(|(n, view)| scope.spawn(move || recover(n, &**view))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let lease = if place.starts_with("nats://") { LEASE } else { Duration::ZERO };
    println!("{took} jobs of {deaths} dead workers were taken over {:?} after their death, with a lease of {lease:?}", began.elapsed());
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args[at].parse::<usize>().unwrap();
    match args[1].as_str() {
        "hold" => hold_many(&args[0], number(2)),
        _ => {
            measure_claims(&args[0], number(1), number(2));
            if number(3) > 0 {
                measure_deaths(&args[0], number(3));
            }
        }
    }
}
