//! How fast is a hook call, next to the least that such a call can cost, and next to a hook made of bash and jq?
//!
//! All cases run interleaved, in another order each time, so that whatever else the machine does falls on all of them alike.

mod cases;
mod fleet;
mod floor;
mod gates;
mod iterations;
mod report;
mod spawn;
mod views;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;

use crate::{
    Result, Verdict,
    bench::{
        cases::{Case, Stage},
        floor::Floors,
        report::{Check, Measured},
    },
    cargo::{self, Build, Program},
};

/// Measure hook calls against static C floors and a bash + jq hook, and print the ratios
///
/// Needs cc, bash and jq, about 3 GB of disk, and five minutes after the builds. Fails when a target is missed; times are printed and never judged.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// 40 runs of each case instead of 300, a largest transcript of 200 MB, and nothing of the build that `cargo install` makes
    #[arg(long)]
    quick: bool,
    /// Another number of runs of each case
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Only what looks at a long journal: report and watch
    #[arg(long, conflicts_with = "record")]
    views: bool,
    /// Only fleets: claims of 10,000 jobs, 100 deaths, 1,000 slots, and a job beside a run; --record writes bench/FLEET.md
    #[arg(long, conflicts_with_all = ["views", "runs"])]
    fleet: bool,
    /// Write everything that was measured to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables to bench/RESULTS.md
    #[arg(long)]
    record: bool,
}

const RUNS: u64 = 300;
const QUICK_RUNS: u64 = 40;
/// Runs before the measuring begins.
const WARM_UP: u64 = 3;
/// A slow case is run so many times less often.
const SLOW: u64 = 6;
/// So is a look at a long journal.
const VIEWS: u64 = 10;
/// Runs that measure memory.
const MEMORY_RUNS: u64 = 3;

const GB: u64 = 1_000_000_000;

pub(crate) fn run(args: &Args) -> Result<Verdict> {
    let place = place()?;
    if args.fleet {
        return fleet::run(args.quick, args.json.as_deref(), args.record, &place);
    }
    let folder = tempfile::Builder::new().prefix("ralph-bench-").tempdir_in(&place)?;
    let largest = if args.quick || free_bytes(&place)? < 3 * GB { GB / 5 } else { GB };
    let floors = Floors::compile(folder.path())?;
    let ralph = installed(&cargo::binary(Program::Ralph, Build::Released)?, &folder.path().join("ralph"))?;
    let cargo_install = if args.quick || args.views {
        None
    } else {
        Some(installed(&cargo::binary(Program::Ralph, Build::Installed)?, &folder.path().join("ralph-installed"))?)
    };
    let stage = Stage { folder: folder.path(), ralph: &ralph, cargo_install: cargo_install.as_deref(), floors: &floors, largest };
    let cases = if args.views { Vec::new() } else { stage.cases()? };

    let runs = args.runs.unwrap_or(if args.quick { QUICK_RUNS } else { RUNS });
    let mut all = measure(&cases, runs, &floors)?;
    all.extend(stage.views(runs.div_ceil(VIEWS))?);
    let label = if largest == GB { "1 GB" } else { "200 MB" };
    if largest < GB && !args.views {
        println!("The largest transcript has 200 MB: {}.", if args.quick { "a quick run" } else { "less than 3 GB are free" });
    }
    let checks = report::checks(&all, label);
    let tables = format!("{}\n{}{}", report::ratio_table(&checks), report::missed(&checks), report::case_table(&all));
    println!("{tables}");
    if let Some(file) = &args.json {
        fs::write(file, serde_json::to_string_pretty(&json!({ "machine": machine(), "cases": all, "ratios": checks }))? + "\n")?;
    }
    if args.record {
        fs::write(cargo::root().join("bench/RESULTS.md"), record(&tables))?;
    }
    Ok(Verdict::when(checks.iter().all(Check::is_met)))
}

/// Where the projects are: not in the system's temporary folder, which may be in memory, because writing to a disk is what costs; and, where that is
/// possible, not in this repository, because ralph would look at it.
fn place() -> Result<PathBuf> {
    let outside = Path::new("/var/tmp");
    if outside.is_dir() { Ok(outside.to_owned()) } else { cargo::target_dir() }
}

/// Copies a program as an installation does. One that the linker has just written is in the page cache in single pages, and each start of
/// it takes some 20 % longer than that of a copy, which is there in large pieces: only the person who built it would ever see that.
fn installed(program: &Path, to: &Path) -> Result<PathBuf> {
    fs::copy(program, to)?;
    Ok(to.to_owned())
}

/// Runs all cases, interleaved, and checks that every one did what it is measured for.
fn measure(cases: &[Case], runs: u64, floors: &Floors) -> Result<Vec<Measured>> {
    let mut times: Vec<Vec<Duration>> = cases.iter().map(|_| Vec::new()).collect();
    let mut order: Vec<usize> = (0..cases.len()).collect();
    let mut dice = Dice(0x5eed);
    for n in 0..WARM_UP + runs {
        dice.shuffle(&mut order);
        for at in &order {
            let case = &cases[*at];
            if case.is_slow && n >= WARM_UP && !(n - WARM_UP).is_multiple_of(SLOW) {
                continue;
            }
            case.prepare(n)?;
            let run = case.program.run().map_err(|e| format!("{}, run {n}: {e}", case.id))?;
            if case.answers == run.stdout.is_empty() {
                return Err(format!("{}: unexpected answer in run {n}: {}", case.id, String::from_utf8_lossy(&run.stdout)).into());
            }
            if n >= WARM_UP {
                times[*at].push(run.wall);
            }
        }
    }
    let mut all = Vec::new();
    for (case, times) in cases.iter().zip(times) {
        let done = WARM_UP + times.len() as u64;
        let peak = peak(case, WARM_UP + runs, floors)?;
        all.push(Measured::of(case.id, times, peak));
        counted(case, done + MEMORY_RUNS)?;
    }
    Ok(all)
}

fn peak(case: &Case, from: u64, floors: &Floors) -> Result<u64> {
    let mut peak = 0;
    for n in from..from + MEMORY_RUNS {
        case.prepare(n)?;
        peak = peak.max(case.program.peak_kb(&floors.peak)?);
    }
    Ok(peak)
}

/// A run that was taken for a repetition of the one before, or that paused the loop, would be measured for nothing.
fn counted(case: &Case, runs: u64) -> Result<()> {
    let Some(project) = &case.counts else { return Ok(()) };
    let iteration = project.iteration()?;
    if iteration == runs + 1 {
        return Ok(());
    }
    Err(format!("{}: {runs} stops brought the loop to iteration {iteration}", case.id).into())
}

/// A generator of repeatable disorder.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % n
    }

    fn shuffle(&mut self, items: &mut [usize]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

fn free_bytes(path: &Path) -> Result<u64> {
    let text = cargo::first_output("df", &["--output=avail", "--block-size=1", &path.display().to_string()])?;
    Ok(text.lines().last().unwrap_or_default().trim().parse()?)
}

/// What the figures depend on.
fn machine() -> Vec<(&'static str, String)> {
    let ask = |program, args: &[&str]| cargo::first_output(program, args).unwrap_or_default().lines().next().unwrap_or_default().to_owned();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|l| l.strip_prefix("model name")).map(|l| l.trim_start_matches([' ', '\t', ':']).to_owned());
    let place = place().map(|place| place.display().to_string()).unwrap_or_default();
    vec![
        ("date", ask("date", &["-u", "+%F"])),
        ("ralph", ask("git", &["--no-optional-locks", "describe", "--always", "--dirty"])),
        ("processor", format!("{} × {}", ask("nproc", &[]), model.unwrap_or_default())),
        // Without the build's own suffix, which says nothing about speed.
        ("kernel", ask("uname", &["-sr"]).split('-').next().unwrap_or_default().to_owned()),
        ("file system", ask("stat", &["--file-system", "--format=%T", &place])),
        ("target", cargo::shipped_target().unwrap_or_default()),
        ("rustc", ask("rustc", &["--version"])),
        ("cc", ask("cc", &["--version"])),
        ("bash", ask("bash", &["--version"])),
        ("jq", ask("jq", &["--version"])),
    ]
}

const INTRODUCTION: &str = "\
# Speed

Written by `cargo xtask bench --record`. All cases ran interleaved, in another order each time. Only the ratios mean anything elsewhere; the times are \
those of one machine on one day. A target that is MISSED makes the benchmark fail.

Measured is the program as it is released: static, for musl. The rows of `cargo install` are what that command builds: for the host's own C library, \
without our flags.

- A *floor* is a static C program (`bench/floor/`) that does the least that is possible: it reads the event and makes the same writes, with the same sync, and decides nothing. \
*The same writes* of a loop that goes on: the loop file (written beside it, synced, exchanged with it), the seal (written beside it, exchanged with it), a line of \
the journal and one of the log.
- *bash + jq* are scripts of the usual shape (`bench/baseline/`).
- A *gate* is the command `true`, which has to prove a claim, in a folder without git and with `cache = false`, or in a repository of 200 files. Beside it \
is a file that never exists, so that the loop goes on. What a gate costs besides its command: two sealed journal lines, the loop file with its sync, a log, \
a second look at the settings and at what the loop began with; in git a fingerprint of all files, and after the command another one. No git process is started.
- A *run* is five iterations of `ralph run` with the agent `true`, its own start and end included, in a folder without git or in a repository of 200 \
files. With snapshots each iteration writes a commit object and a ref, and the end of the run lists them.
- The *views* show a journal of 10,000 iterations, as `ralph run` writes them. Their floor reads that file into memory and finds its lines. `watch` runs in a \
terminal, from its start until its first screen, and until its screen knows all iterations.
- *Peak memory* counts the pages of the program's own file, too, which all processes share.
";

fn record(tables: &str) -> String {
    let machine: Vec<String> = machine().iter().map(|(name, value)| format!("- {name}: {value}")).collect();
    format!("{INTRODUCTION}\n{}\n\n{tables}", machine.join("\n"))
}
