//! How many instructions a hook call takes: a number that repeats where times do not, so that a check can hold on to it.
//!
//! The surroundings are the same each time (environment, lengths of all paths, input). What still varies is what the call reads about itself:
//! its process id, the time, its memory map.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::{Deserialize, Serialize};

use crate::{
    Result, Verdict,
    cargo::{self, Build, Program},
    hot_functions::{self, HotFunctions},
    scene::{self, Cache, Project, Repository, Stops},
    transcript,
};

/// Count the instructions of a hook call, and compare with what was recorded in bench/
///
/// Fails when a path takes more than 10 % more than recorded. Needs valgrind, and the recorded toolchain and target.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Record what is counted instead of comparing
    #[arg(long)]
    record: bool,
    /// Count on the program that the tests start, which needs no build of its own
    #[arg(long)]
    of_tests: bool,
}

/// How much a path may grow.
const SLACK: f64 = 0.10;

/// Counts of one path; the smallest is taken.
const REPEATS: u64 = 3;

/// What was counted on the build that we ship, and on that of the tests.
const FILE: &str = "bench/instructions.json";
const FILE_OF_TESTS: &str = "bench/instructions-of-tests.json";

/// Counts, and what they depend on.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    toolchain: String,
    target: String,
    valgrind: String,
    counts: BTreeMap<String, u64>,
}

pub(crate) fn run(args: &Args) -> Result<Verdict> {
    let Ok(valgrind) = cargo::first_output("valgrind", &["--version"]) else {
        return Ok(skip("valgrind is not installed"));
    };
    let (toolchain, host) = cargo::toolchain()?;
    let (build, target, name) = if args.of_tests {
        // Linked with the C library of this machine.
        let library = cargo::first_output("ldd", &["--version"])?;
        (Build::OfTests, format!("{host}, {}", library.lines().next().unwrap_or_default()), FILE_OF_TESTS)
    } else if let Some(why) = cargo::cannot_ship()? {
        return Ok(skip(&why));
    } else {
        (Build::Released, cargo::shipped_target()?, FILE)
    };
    let file = cargo::root().join(name);
    let recorded = match fs::read(&file) {
        Ok(bytes) => Some(serde_json::from_slice::<Recorded>(&bytes)?),
        Err(_) => None,
    };
    if let (Some(r), false) = (&recorded, args.record)
        && (&r.toolchain, &r.target) != (&toolchain, &target)
    {
        return Ok(skip(&format!("recorded with {} for {}, and this is {toolchain} for {target}", r.toolchain, r.target)));
    }
    let binary = cargo::binary(Program::Ralph, build)?;
    let scene = Scene::make(&binary)?;
    let counts = scene.count_all()?;
    if args.record {
        if build == Build::Released {
            scene.hot_functions()?.write()?;
            println!("the functions that were run are in bench/hot-functions.ld");
        }
        let text = serde_json::to_string_pretty(&Recorded { toolchain, target, valgrind, counts })?;
        fs::write(&file, text + "\n")?;
        println!("recorded in {name}");
        return Ok(Verdict::Good);
    }
    let recorded = recorded.ok_or_else(|| format!("{name} is missing: `cargo xtask instructions --record` writes it"))?;
    Ok(Verdict::when(compare(&recorded.counts, &counts)))
}

fn skip(why: &str) -> Verdict {
    println!("skipped: {why}");
    Verdict::Skipped
}

/// Whether no path grew too much.
fn compare(recorded: &BTreeMap<String, u64>, counts: &BTreeMap<String, u64>) -> bool {
    let mut good = true;
    for (path, now) in counts {
        let Some(before) = recorded.get(path) else {
            println!("{path}: not recorded yet");
            good = false;
            continue;
        };
        let growth = ratio(*now, *before) - 1.0;
        let verdict = if growth > SLACK { "GREW" } else { "ok" };
        good &= growth <= SLACK;
        println!(
            "{path:<14} {now:>9} instructions, recorded {before:>9}, {:+.2} % (at most {:+.0} %)  {verdict}",
            growth * 100.0,
            SLACK * 100.0
        );
    }
    if !good {
        println!("If the growth is worth it, `cargo xtask instructions --record` accepts it.");
    }
    good
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

/// The calls that are looked at, and where they take place.
struct Scene {
    no_loop: Counter,
    ended: Counter,
    goes_on: Counter,
    /// The same with a transcript to read.
    heard: Counter,
    gate: Counter,
    known: Counter,
    /// Goes with the scene.
    _folder: tempfile::TempDir,
}

impl Scene {
    fn make(binary: &Path) -> Result<Self> {
        // Not the system's temporary folder, whose name may be of any length.
        let folder = tempfile::Builder::new().prefix("ralph-count-").rand_bytes(6).tempdir_in("/tmp")?;
        let at = |name: &str| folder.path().join(name);
        let ralph = at("ralph");
        fs::copy(binary, &ralph)?;
        let (none, transcript) = (at("none.jsonl"), at("some.jsonl"));
        transcript::write(&transcript, 60_000, 0)?;
        let messages = |project: Project, transcript: &Path| {
            let stops = Stops::with_message(&project, transcript);
            Counter { project, stops, ralph: ralph.clone() }
        };
        let claims = |project: Project| Counter { stops: Stops::with_claim(&project), project, ralph: ralph.clone() };
        Ok(Scene {
            no_loop: messages(Project::bare(at("bare"))?, &none),
            ended: messages(Project::with_ended_loop(at("ended"), &ralph)?, &none),
            goes_on: messages(Project::with_loop(at("loop"), &ralph)?, &none),
            heard: messages(Project::with_loop(at("heard"), &ralph)?, &transcript),
            gate: claims(Project::with_gate(at("gate"), &ralph, Cache::Off, Repository::No)?),
            known: claims(Project::with_gate(at("known"), &ralph, Cache::On, Repository::Yes)?),
            _folder: folder,
        })
    }

    fn count_all(&self) -> Result<BTreeMap<String, u64>> {
        // The first stop of a loop differs from all others.
        self.goes_on.count(0)?;
        let mut counts = BTreeMap::new();
        for (name, counter) in [("no-loop", &self.no_loop), ("loop-goes-on", &self.goes_on)] {
            let all = (1..=REPEATS).map(|n| counter.count(n)).collect::<Result<Vec<_>>>()?;
            println!("{name:<14} counted {all:?}");
            counts.insert(name.to_owned(), all.into_iter().min().unwrap_or(0));
        }
        let reached = self.goes_on.project.iteration()?;
        if reached != REPEATS + 2 {
            return Err(
                format!("the loop should be at iteration {}, but is at {reached}: that was not the path to count", REPEATS + 2).into()
            );
        }
        Ok(counts)
    }

    /// The functions of all these calls: the commonest call first, so that it touches the least.
    fn hot_functions(&self) -> Result<HotFunctions> {
        let map = hot_functions::map()?;
        let functions = hot_functions::functions(&fs::read_to_string(&map).map_err(|e| format!("{}: {e}", map.display()))?);
        let mut hot = HotFunctions::default();
        for call in [&self.no_loop, &self.ended, &self.goes_on, &self.heard, &self.gate, &self.known] {
            // The second time, a gate's verdict is known.
            for n in REPEATS + 1..=REPEATS + 2 {
                hot.add(&call.profile(n)?, &functions);
            }
        }
        Ok(hot)
    }
}

/// Runs one case under callgrind.
struct Counter {
    project: Project,
    stops: Stops,
    ralph: PathBuf,
}

impl Counter {
    fn count(&self, n: u64) -> Result<u64> {
        let log = self.run(n, &["--callgrind-out-file=/dev/null"])?;
        let collected = log.lines().find_map(|l| l.split_once("Collected : ")?.1.trim().parse().ok());
        collected.ok_or_else(|| format!("valgrind counted nothing:\n{log}").into())
    }

    /// What callgrind writes about a call: each instruction that was run, with its address.
    fn profile(&self, n: u64) -> Result<String> {
        let file = self.project.dir.with_extension("callgrind");
        self.run(n, &["--dump-instr=yes", "--compress-pos=no", &format!("--callgrind-out-file={}", file.display())])?;
        Ok(fs::read_to_string(file)?)
    }

    fn run(&self, n: u64, options: &[&str]) -> Result<String> {
        let event = self.project.dir.join("event.json");
        fs::write(&event, self.stops.event(n))?;
        let output = Command::new("valgrind")
            .arg("--tool=callgrind")
            .args(options)
            .arg(&self.ralph)
            .args(scene::hook_args())
            .env_clear()
            .envs(self.project.env(Some("claude-code_2-1-325_harness")))
            .stdin(File::open(&event)?)
            .stdout(Stdio::null())
            .output()?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
