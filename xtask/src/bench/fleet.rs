//! What a fleet costs: claims a second, what a dead worker costs, whether a job costs the same in a long list, and one more job of a list beside a `ralph run` of its own.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use ralph_testkit::{NatsServer, NatsVersion};
use serde_json::{Value, json};

use crate::{Result, Verdict, cargo};

/// A job on the folder queue may take so many times as long as a `ralph run`.
const MOST_OF_A_RUN: f64 = 2.0;

/// A claim in a list of 10,000 jobs may take so many times as long as in one of 1,000.
const MOST_GROWTH: f64 = 2.0;

/// What is measured: jobs of the longest list, deaths, slots, and how often a run and fleets of the same work.
struct Size {
    jobs: usize,
    deaths: usize,
    slots: usize,
    pairs: u32,
}

const FULL: Size = Size { jobs: 10_000, deaths: 100, slots: 1_000, pairs: 10 };
const QUICK: Size = Size { jobs: 2_000, deaths: 20, slots: 100, pairs: 4 };

const CLAIMERS: &str = "8";

/// What one more job costs is measured with so many.
const MORE: u32 = 10;

/// What an agent of a trivial job does.
const AGENT: &str = "sh -c 'cat > /dev/null; echo x > $$.txt; git add -A; git -c user.name=A -c user.email=a@example.org commit -qm x; echo \"<promise>DONE</promise>\"'";

pub(super) fn run(quick: bool, json_file: Option<&Path>, record: bool, place: &Path) -> Result<Verdict> {
    let size = if quick { QUICK } else { FULL };
    let nats = NatsVersion::Newest.installed();
    if record && (quick || nats.is_err()) {
        return Err("a record has everything: --record without --quick, and with a NATS server".into());
    }
    let programs = Programs::build()?;
    let folder = tempfile::Builder::new().prefix("ralph-bench-").tempdir_in(place)?;
    let mut rows = Vec::new();
    let dir = |name: &str| -> Result<String> { Ok(folder.path().join(name).to_str().ok_or("the folder's name is no text")?.to_owned()) };
    let mut stores = vec![("a folder", measure(&programs, &size, &dir)?)];
    match nats {
        Ok(_) => {
            let mut servers = Vec::new();
            // An empty store for each measurement.
            let mut url = |_: &str| -> Result<String> {
                let server = NatsServer::start(NatsVersion::Newest, "").map_err(|skip| format!("{skip:?}"))?;
                let url = server.url();
                servers.push(server);
                Ok(url)
            };
            stores.push(("NATS", measure(&programs, &size, &mut url)?));
        }
        Err(skip) => println!("NATS is not measured: {skip:?}"),
    }
    for (name, of) in &stores {
        rows.extend(of.iter().map(|(what, value)| format!("| {name} | {what} | {value} |")));
    }
    let job = job_beside_run(&programs, folder.path(), size.pairs)?;
    let times = |times: f64, ms: f64| format!("{times:.2} × ({ms:.0} ms beside {:.0} ms)", job.run);
    rows.push(format!(
        "| a folder | one more job on a list, one worker, landing included, beside a `ralph run` of it | {} |",
        times(job.ratio(), job.next)
    ));
    rows.push(format!(
        "| a folder | a fleet of one job, its start and end included, beside a `ralph run` of it | {} |",
        times(job.alone / job.run, job.alone)
    ));
    let mut checks = vec![("a job on the folder queue, beside `ralph run`".to_owned(), job.ratio(), MOST_OF_A_RUN)];
    for (name, of) in &stores {
        let growth =
            of.iter().find(|(what, _)| what == GROWTH).and_then(|(_, value)| value.trim_end_matches(" ×").parse().ok()).unwrap_or(f64::MAX);
        checks.push((format!("a claim in the longest list beside one a tenth as long, {name}"), growth, MOST_GROWTH));
    }
    let mut text = format!("| queue | measured | |\n|---|---|---|\n{}\n\n| ratio | is | at most | |\n|---|---|---|---|\n", rows.join("\n"));
    for (what, is, most) in &checks {
        writeln!(text, "| {what} | {is:.2} | {most} | {} |", if is <= most { "met" } else { "MISSED" })?;
    }
    println!("{text}");
    if let Some(file) = json_file {
        let stores: Vec<Value> = stores.iter().map(|(name, rows)| json!({ "queue": name, "measured": rows })).collect();
        fs::write(
            file,
            serde_json::to_string_pretty(
                &json!({ "stores": stores, "job_beside_run": job.ratio(), "fleet_of_one_beside_run": job.alone / job.run }),
            )? + "\n",
        )?;
    }
    if record {
        fs::write(cargo::root().join("bench/FLEET.md"), format!("{INTRODUCTION}\n{text}"))?;
    }
    Ok(Verdict::when(checks.iter().all(|(_, is, most)| is <= most)))
}

const INTRODUCTION: &str = "\
# Speed of a fleet

Written by `cargo xtask bench --fleet --record`. Server, workers and measurement share one machine; only the ratios mean anything elsewhere. What a claim's \
cost is made of, and what limits the next factor of ten: [docs/fleet-server.md](../docs/fleet-server.md#how-fast-it-is).
";

const GROWTH: &str = "time for a claim, the longest list beside one a tenth as long";

/// The programs, as optimised as for a try-out: the flags of what is shipped change nothing about disks and servers.
struct Programs {
    claims: PathBuf,
    fleet: PathBuf,
    ralph: PathBuf,
}

impl Programs {
    fn build() -> Result<Self> {
        let build = |args: &[&str]| -> Result<PathBuf> {
            let mut command = cargo::cargo();
            command.args(["build", "--release", "--message-format=json-render-diagnostics"]).args(args).stderr(Stdio::inherit());
            let output = command.output()?;
            let name = args.last().copied().unwrap_or_default();
            let messages = String::from_utf8(output.stdout)?;
            let found = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut found = found.filter(|message| message["target"]["name"] == name);
            let path = found.find_map(|message| message["executable"].as_str().map(PathBuf::from));
            path.ok_or_else(|| format!("{name} was not built").into())
        };
        Ok(Programs {
            claims: build(&["-p", "ralph-fleet", "--example", "claims"])?,
            fleet: build(&["-p", "ralph-fleet", "--bin", "ralph-fleet"])?,
            ralph: build(&["-p", "ralph-loop", "--bin", "ralph"])?,
        })
    }

    fn claims(&self, args: &[&str]) -> Result<Value> {
        let output = Command::new(&self.claims).args(args).stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8(output.stdout)?;
        let line = text.lines().last().ok_or_else(|| format!("claims {} failed", args.join(" ")))?;
        Ok(serde_json::from_str(line)?)
    }
}

type Rows = Vec<(String, String)>;

fn measure(programs: &Programs, size: &Size, mut empty: impl FnMut(&str) -> Result<String>) -> Result<Rows> {
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap_or(f64::NAN);
    let claims = |place: &str, jobs: usize| programs.claims(&[place, "jobs", &jobs.to_string(), CLAIMERS]);
    let short = claims(&empty("short")?, size.jobs / 10)?;
    let long = claims(&empty("long")?, size.jobs)?;
    let deaths = programs.claims(&[&empty("deaths")?, "deaths", &size.deaths.to_string()])?;
    let slots = programs.claims(&[&empty("slots")?, "slots", &size.slots.to_string()])?;
    let rate = |of: &Value| number(of, "claims_per_second");
    let n = size.jobs;
    Ok(vec![
        (format!("jobs added a second, {n} jobs"), format!("{:.0}", number(&long, "added_per_second"))),
        (format!("jobs claimed and ended a second, {n} jobs, {CLAIMERS} claimers"), format!("{:.0}", rate(&long))),
        ("a claim, p50 and p99".to_owned(), format!("{:.1} and {:.1} ms", number(&long, "p50_ms"), number(&long, "p99_ms"))),
        (GROWTH.to_owned(), format!("{:.2} ×", rate(&short) / rate(&long))),
        (
            format!("{} workers die at once: all their jobs are others'", size.deaths),
            format!("{:.1} s, with a lease of {:.0} s", number(&deaths, "recovered_ms") / 1e3, number(&deaths, "lease_ms") / 1e3),
        ),
        (
            format!("{} slots are held: share of a core, and how many looked dead", size.slots),
            format!("{:.1} %, {:.0}", number(&slots, "share_of_a_core") * 1e2, number(&slots, "looked_dead")),
        ),
        (
            "jobs claimed and ended a second beside them, and p99".to_owned(),
            format!("{:.0}, {:.1} ms", number(&slots, "claims_per_second_beside"), number(&slots, "p99_ms_beside")),
        ),
    ])
}

/// What a trivial job takes, in milliseconds.
struct Job {
    /// As a `ralph run`.
    run: f64,
    /// As a fleet of its own.
    alone: f64,
    /// As one more job on a fleet's list.
    next: f64,
}

impl Job {
    fn ratio(&self) -> f64 {
        self.next / self.run
    }
}

/// The same work as a run, as a fleet of one job, and as one of many jobs of a fleet, in turn.
fn job_beside_run(programs: &Programs, folder: &Path, pairs: u32) -> Result<Job> {
    let common = ["--agent-cmd", AGENT, "--verify", "true"];
    let (as_run, as_fleet) = (&["run", "Do it", "--promise", "DONE"][..], &["run", "list.json", "--workers", "1"][..]);
    let ways =
        [("run", 1, &programs.ralph, as_run), ("alone", 1, &programs.fleet, as_fleet), ("list", 1 + MORE, &programs.fleet, as_fleet)];
    let mut times = [const { Vec::new() }; 3];
    for n in 0..pairs {
        for ((name, jobs, program, args), times) in ways.iter().zip(&mut times) {
            let project = repository(folder, &format!("{name}-{n}"), *jobs)?;
            let began = Instant::now();
            ends(&project, program, &[args, &common[..]].concat())?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    let [run, alone, list] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    Ok(Job { run, alone, next: (list - alone) / f64::from(MORE) })
}

fn ends(project: &Path, program: &Path, args: &[&str]) -> Result<()> {
    let output = person(program, project).args(args).output()?;
    let said = || {
        format!(
            "{} {}: {}{}",
            program.display(),
            args.join(" "),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    if output.status.success() { Ok(()) } else { Err(said().into()) }
}

/// A program in a project, with a home of its own.
fn person(program: &Path, project: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(project).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", project.with_extension("home"));
    command
}

fn repository(folder: &Path, name: &str, jobs: u32) -> Result<PathBuf> {
    let project = folder.join(name);
    fs::create_dir_all(&project)?;
    fs::create_dir_all(project.with_extension("home"))?;
    let items: Vec<Value> = (0..jobs).map(|n| json!({ "id": format!("A{n}"), "description": "Do it", "passes": false })).collect();
    fs::write(project.join("list.json"), json!({ "features": items }).to_string())?;
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["config", "user.name", "Person"],
        &["config", "user.email", "person@example.org"],
        &["add", "-A"],
        &["commit", "-qm", "Start"],
    ] {
        ends(&project, Path::new("git"), args)?;
    }
    Ok(project)
}
