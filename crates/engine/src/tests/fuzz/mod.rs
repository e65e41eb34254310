//! Bytes that nobody meant: every parser of foreign bytes gets mutated samples and has to keep what it promises.
//!
//! `cargo test` runs some seconds of it, with a new seed each time, which it prints; `cargo xtask fuzz --minutes 60 [TARGET]` runs it for as long as
//! wanted. What fails is written to `target/fuzz/<target>/`, with the seed; put it into `found/<target>/` here, and it is tried for ever after.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "tests")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times and random numbers")]
#![allow(clippy::disallowed_methods, reason = "the harness writes what failed, and is told by variables how long to run")]

mod mutate;
mod targets;

use std::{
    collections::HashSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use mutate::{Mutator, Random};
use targets::{TARGETS, Target};

/// An input that has this much, and not more, has to be dealt with within a target's limit.
const MOST_BYTES: usize = 64 << 10;

/// Of each target's inputs that did something new so many are kept to go on from.
const MOST_KEPT: usize = 400;

/// No input may take more of the processor's time, in builds without optimisation too: what grows with the square takes longer.
const MOST_TIME: Duration = Duration::from_secs(10);

/// After this time an input is taken to hang.
const HANGS: Duration = Duration::from_mins(2);

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// How long it runs: by hand for minutes, as a test for some seconds.
fn time() -> Duration {
    variable("RALPH_FUZZ_SECONDS").and_then(|n| n.parse().ok()).map_or(Duration::from_secs(4), Duration::from_secs)
}

fn seed() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    variable("RALPH_FUZZ_SEED").and_then(|n| n.parse().ok()).unwrap_or_else(now)
}

/// The time of the processor that this thread has used: how busy the machine is does not matter.
fn used() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What is tried now, so that a hang can be told.
type Current = Arc<Mutex<Option<(Instant, &'static str, Vec<u8>)>>>;

fn watch(current: &Current) {
    let current = Arc::clone(current);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if let Some((since, target, input)) = &*current.lock().unwrap()
                && since.elapsed() > HANGS
            {
                let path = keep(target, input);
                eprintln!("{target} hangs: {}", path.display());
                std::process::abort();
            }
        }
    });
}

/// Tries one input: what it did, or which promise was broken.
fn tried(target: &Target, input: &[u8], current: &Current) -> Result<u64, String> {
    *current.lock().unwrap() = Some((Instant::now(), target.name, input.to_vec()));
    let begun = used();
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let took = used().saturating_sub(begun);
    *current.lock().unwrap() = None;
    match result {
        Ok(_) if took > MOST_TIME => Err(format!("took {took:?} for {} bytes", input.len())),
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
            Err(format!("panicked: {}", text.unwrap_or_default()))
        }
    }
}

fn keep(target: &str, input: &[u8]) -> PathBuf {
    // Beside the build: this program is `<build>/<profile>/deps/ralph_engine-…`.
    let program = std::env::current_exe().unwrap();
    let folder = program.ancestors().nth(3).unwrap().join("fuzz").join(target);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{:016x}", ralph_core::loops::fnv1a(input)));
    fs::write(&path, input).unwrap();
    path
}

/// Cuts away what is not needed for the failure, for a while.
fn smaller(target: &Target, input: &[u8], current: &Current) -> Vec<u8> {
    let mut input = input.to_vec();
    let until = Instant::now() + Duration::from_secs(20);
    let mut size = input.len() / 2;
    while size > 0 && Instant::now() < until {
        let mut at = 0;
        while at < input.len() && Instant::now() < until {
            let mut less = input.clone();
            less.drain(at..(at + size).min(input.len()));
            if tried(target, &less, current).is_err() {
                input = less;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    input
}

fn found() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/fuzz/found")
}

/// The inputs in a folder, in the same order each time.
fn inputs(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

#[test]
fn fuzz_what_was_found_once_is_right_now() {
    let current = Current::default();
    for target in &TARGETS {
        for input in inputs(&found().join(target.name)).into_iter().chain(targets::samples(target)) {
            if let Err(problem) = tried(target, &input, &current) {
                panic!("{}: {problem}\n{}", target.name, String::from_utf8_lossy(&input[..input.len().min(2_000)]));
            }
        }
    }
}

#[test]
fn fuzz_every_parser_of_foreign_bytes() {
    let (seed, only) = (seed(), variable("RALPH_FUZZ_TARGET"));
    let chosen: Vec<&Target> = TARGETS.iter().filter(|target| only.as_deref().is_none_or(|only| only == target.name)).collect();
    assert!(!chosen.is_empty(), "there is no such target; there are {:?}", TARGETS.map(|target| target.name));
    eprintln!("seed {seed}: RALPH_FUZZ_SEED={seed} tries the same again");
    // Other tests run beside this one: their panics are told as ever.
    let (here, usual) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != here {
            usual(panic);
        }
    }));
    let current = Current::default();
    watch(&current);
    let share = time() / u32::try_from(chosen.len()).unwrap();
    let (mut count, mut failed) = (0, Vec::new());
    for target in chosen {
        let (n, problem) = fuzz(target, seed, share, &current);
        println!("{:<12} {n:>9} inputs", target.name);
        count += n;
        failed.extend(problem);
    }
    println!("{count} inputs in all");
    let _ = std::panic::take_hook();
    assert!(failed.is_empty(), "seed {seed}\n{}", failed.join("\n"));
}

/// Tries mutated inputs for a while, and returns how many.
fn fuzz(target: &Target, seed: u64, time: Duration, current: &Current) -> (u64, Option<String>) {
    let mut random = Random::new(seed ^ ralph_core::loops::fnv1a(target.name.as_bytes()));
    let mut corpus: Vec<Vec<u8>> = targets::samples(target).into_iter().chain(inputs(&found().join(target.name))).collect();
    let begun = Instant::now();
    let mut seen = HashSet::new();
    let mut count = 0;
    while begun.elapsed() < time {
        let input = Mutator { random: &mut random, corpus: &corpus, words: target.words, most: MOST_BYTES }.next();
        count += 1;
        match tried(target, &input, current) {
            Ok(what) if seen.insert(what) => {
                if corpus.len() >= MOST_KEPT {
                    let at = random.below(corpus.len());
                    corpus.swap_remove(at);
                }
                corpus.push(input);
            }
            Ok(_) => {}
            Err(problem) => {
                let path = keep(target.name, &smaller(target, &input, current));
                return (count, Some(format!("{}: {problem}\n  {}", target.name, path.display())));
            }
        }
    }
    (count, None)
}
