//! Loops as people and programs look at them: read-only, without the lock.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_core::{
    gate::{Finding, Kind, Verdict},
    journal::{Event, Note, Record, State},
    judge::Ending,
    loop_file::LoopFile,
    prices,
    time::{self, Millis},
    words,
};
use serde::{Serialize, Serializer};

use crate::{
    gates::{self, declared, usual},
    ops::came_with_the_repository,
    store::{
        denials::Denials,
        journal::{self, owner_may_live},
        loops::{self, Found},
        project::Project,
        turn, waiter,
    },
    sys::clock,
};

/// Where a loop stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A session works on it.
    Active,
    /// Its agent was allowed to stop until something outside is decided.
    Parked,
    /// No session has it yet: the first one that stops in the project takes it.
    Waiting,
    /// It came with the repository: nobody takes it until a person says so.
    Tracked,
    Paused,
    /// Its session is gone; `ralph resume` hands it to another one.
    LeftBehind,
    /// The file cannot be read.
    Corrupt,
    Complete,
    Capped,
    Cancelled,
    Failed,
    /// The file is gone, and no ending was written down: somebody removed it, or ralph was killed at that moment.
    Gone,
}

impl Status {
    pub fn words(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Parked => "parked",
            Status::Waiting => "waiting for a session",
            Status::Tracked => "came with the repository",
            Status::Paused => "paused",
            Status::LeftBehind => "left behind",
            Status::Corrupt => "cannot be read",
            Status::Complete => "complete",
            Status::Capped => "capped",
            Status::Cancelled => "cancelled",
            Status::Failed => "failed",
            Status::Gone => "gone",
        }
    }

    fn is_armed(self) -> bool {
        matches!(self, Status::Active | Status::Parked | Status::Waiting | Status::LeftBehind)
    }

    fn of_ending(ending: Option<Ending>) -> Self {
        match ending {
            Some(Ending::Complete) => Status::Complete,
            Some(Ending::Capped) => Status::Capped,
            Some(Ending::Cancelled) => Status::Cancelled,
            Some(Ending::Failed) => Status::Failed,
            None => Status::Gone,
        }
    }
}

/// One loop; the JSON of `ralph status --json` and `ralph list --json`.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub id: String,
    pub name: String,
    pub status: Status,
    pub iteration: u64,
    /// 0 means no limit.
    pub max_iterations: u64,
    pub completion_promise: Option<String>,
    /// 0 means no limit.
    pub max_ms: u64,
    pub spent_ms: u64,
    /// 0 means no limit.
    pub max_usd: f64,
    /// An estimate; `None`: nobody counts.
    pub spent_usd: Option<f64>,
    pub idle_rounds: u64,
    /// Rounds in a row in which nothing changed, where that is counted.
    pub stalled_rounds: u64,
    /// 0 means no limit.
    pub stall_limit: u64,
    pub stops: u64,
    pub session: Option<String>,
    pub carrier: Carrier,
    /// The runner's process.
    pub runner_pid: Option<u32>,
    /// The reason code of the last ruling.
    pub last_code: Option<String>,
    pub last_event_at: Option<String>,
    #[serde(serialize_with = "readable")]
    pub file: Option<PathBuf>,
    #[serde(serialize_with = "readable")]
    pub journal: PathBuf,
    /// What it has to prove, with what was found last.
    pub gates: Vec<GateView>,
    /// The stop that paused it.
    pub paused_at: Option<u64>,
    /// Why it rests, or what went wrong last, in words.
    pub why: Option<String>,
    /// `ralph run` carried it last, and no session has it since.
    #[serde(skip)]
    pub by_run: bool,
    /// The command that a hook is running for it right now.
    pub checking: Option<Checking>,
    /// What it waits for.
    pub waits: Option<Waits>,
    /// What a person left for the agent, until a round with it was judged.
    pub notes: Vec<Note>,
    /// What nobody was there to allow since fresh sessions carry it.
    pub denied: Vec<Denials>,
    pub problem: Option<String>,
    /// Keys that look misspelt.
    pub warnings: Vec<String>,
    /// The start of the prompt.
    pub prompt: String,
}

/// Who works on a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// The agent's own session, which its hooks hold.
    Session,
    /// `ralph run`, in sessions of its own.
    Runner,
    Nobody,
}

/// A gate as people look at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateView {
    pub name: String,
    /// `None`: it has not been measured yet.
    pub verdict: Option<Verdict>,
    pub what: String,
    /// Only a person can change it: what to type.
    pub needs: Option<String>,
}

/// A command that runs for a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checking {
    pub gate: String,
    pub since: String,
    pub for_ms: u64,
    pub limit_ms: u64,
    /// How long it took the last times, where that is known.
    pub usual_ms: Option<u64>,
}

/// A wait for something outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// For what, in words.
    pub what: String,
    pub since: String,
    pub for_ms: u64,
    /// When it is over, where that is known.
    pub until: Option<String>,
    pub by: Waiter,
}

impl Waits {
    /// `the rate limit (until 2026-11-15T23:12:00Z)`.
    pub fn words(&self) -> String {
        let until = self.until.as_deref().map(|until| format!(" (until {until})")).unwrap_or_default();
        format!("{}{until}", words::clean(&self.what))
    }
}

/// Who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiter {
    /// A stop hook: the agent stands at its stop.
    Hook,
    /// A hook in the background of the session, which it wakes then.
    Session,
    /// `ralph run`, which goes on then.
    Runner,
    Nobody,
}

/// A folder may have a name that is no Unicode text; that must not cost the rest of the JSON.
fn readable<S: Serializer>(path: &(impl Clone + Into<Option<PathBuf>>), serializer: S) -> Result<S::Ok, S::Error> {
    let path: Option<PathBuf> = path.clone().into();
    path.as_deref().map(Path::to_string_lossy).serialize(serializer)
}

impl View {
    pub fn is_live(&self) -> bool {
        self.file.is_some() && self.status != Status::Corrupt
    }

    /// `carried by the runner 4711`; `None`: the status says enough.
    pub fn carried(&self) -> Option<String> {
        self.runner_pid.map(|pid| format!("carried by the runner {pid}"))
    }

    /// `about $3.20 of $50`; `None`: nobody counts.
    pub fn money(&self) -> Option<String> {
        let spent = self.spent_usd.or((self.max_usd > 0.0).then_some(0.0))?;
        Some(words::spent_of(prices::of_dollars(spent), prices::of_dollars(self.max_usd)))
    }

    /// One line: where it stands and how far it is.
    pub fn line(&self) -> String {
        let named = if self.name == "main" { String::new() } else { format!(" \"{}\"", self.name) };
        let round = words::of_limit(self.iteration, self.max_iterations);
        let spent = ralph_core::time::in_words(self.spent_ms);
        match &self.problem {
            Some(problem) => format!("Ralph loop{named}: {} ({problem})", self.status.words()),
            None => {
                let end = words::ends_on(self.completion_promise.as_deref(), !self.gates.is_empty());
                let money = self.money().map(|money| format!(", {money}")).unwrap_or_default();
                let waits = self.waits.as_ref().map(|waits| format!(", waits for {}", waits.words())).unwrap_or_default();
                let carried = self.carried().map(|carried| format!(", {carried}")).unwrap_or_default();
                format!("Ralph loop{named}: {}{carried}, iteration {round}, {spent}{money}, ends on {end}{waits}", self.status.words())
            }
        }
    }
}

/// A loop in the archive.
#[derive(Debug, Clone)]
pub struct Archived {
    pub id: String,
    pub name: String,
    pub path: PathBuf,
    /// When it ended, RFC 3339; empty if the journal does not tell.
    pub ended_at: String,
    /// A loop that was brought back and ended again has several files.
    pub version: u32,
}

/// The session that a loop belongs to.
pub fn owner(project: &Project, found: &Found) -> Option<String> {
    found.session().or_else(|| journal::live_state(project, found).owner)
}

/// The loops that have a file, in order.
pub fn live(project: &Project) -> Vec<View> {
    loops::all(project).iter().map(|found| view_of(project, found)).collect()
}

pub fn view_of(project: &Project, found: &Found) -> View {
    let id = found.id();
    let (record, state) = journal::live(project, found);
    let owner = found.session().or_else(|| state.owner.clone());
    let status = match &found.parsed {
        Err(_) => Status::Corrupt,
        Ok(file) if !file.active => Status::Paused,
        Ok(_) if owner.is_none() && came_with_the_repository(project, found, state.released) => Status::Tracked,
        Ok(_) if owner.is_none() => Status::Waiting,
        Ok(_) if !owner_may_live(&state) => Status::LeftBehind,
        Ok(_) if state.parked.is_some() => Status::Parked,
        Ok(_) => Status::Active,
    };
    let mut view = bare(project, &id, &found.name, status, &state, record.as_ref());
    view.runner_pid = journal::runner_of(&state).map(|runner| runner.pid);
    view.carrier = match view.runner_pid {
        Some(_) => Carrier::Runner,
        None if owner.is_some() && matches!(status, Status::Active | Status::Parked) => Carrier::Session,
        None => Carrier::Nobody,
    };
    view.session = owner;
    view.file = Some(found.path.clone());
    view.problem = found.parsed.as_ref().err().map(ToString::to_string);
    if let Ok(file) = &found.parsed {
        fill(&mut view, file);
        let past = journal::past(&view.journal);
        view.gates = gates(project, &past.findings, file);
        view.denied = past.denied;
        view.paused_at = past.paused_at.filter(|_| status == Status::Paused);
        view.by_run = past.by_run;
        view.why = past.why.filter(|_| matches!(status, Status::Paused | Status::LeftBehind)).map(|why| without_the_name(&why));
        view.checking = record.as_ref().filter(|_| status.is_armed()).and_then(|record| checking(project, record));
        view.waits = if status.is_armed() { waits(project, &id, &state, past.waiting) } else { None };
    }
    view
}

/// Lines for a session say who speaks.
fn without_the_name(why: &str) -> String {
    words::opening(why.strip_prefix("Ralph: ").unwrap_or(why), 600)
}

/// What a loop has to prove, together with what was found last.
fn gates(project: &Project, found: &[Finding], file: &LoopFile) -> Vec<GateView> {
    let declared = declared::of_loop(project, file);
    if declared.is_empty() {
        return Vec::new();
    }
    let of_finding =
        |f: &Finding| GateView { name: f.gate.clone(), verdict: Some(f.verdict), what: f.what.clone(), needs: f.needs.clone() };
    let gates = declared.gates.iter().map(|gate| match found.iter().find(|f| f.gate == gate.name) {
        _ if gates::is_untrusted(gate) => of_finding(&gates::untrusted(gate)),
        Some(finding) => of_finding(&Finding { needs: None, ..finding.clone() }),
        None => GateView { name: gate.name.clone(), verdict: None, what: "not measured yet".to_owned(), needs: None },
    });
    let guard = found.iter().filter(|f| f.kind == Kind::Guard).map(of_finding);
    declared.problems.iter().map(of_finding).chain(gates).chain(guard).collect()
}

/// A command that began to run and was not followed by anything. One that should have ended long ago did, with the hook that ran it.
fn checking(project: &Project, record: &Record) -> Option<Checking> {
    let Event::Checking { gate, command, limit_ms } = &record.event else { return None };
    let for_ms = u64::try_from(clock::now() - time::parse(&record.at)?).ok()?;
    let is_running = for_ms < limit_ms + 10_000;
    let usual_ms = || usual::usual_ms(project, gate, command);
    is_running.then(|| Checking { gate: gate.clone(), since: record.at.clone(), for_ms, limit_ms: *limit_ms, usual_ms: usual_ms() })
}

/// What a loop waits for: parked, or with its agent at the stop.
fn waits(project: &Project, id: &str, state: &State, waiting: Option<(String, String)>) -> Option<Waits> {
    let passed = |since: Millis| u64::try_from(clock::now() - since).unwrap_or(0);
    if let Some(parked) = &state.parked {
        let by = match waiter::of(project, id) {
            _ if journal::runner_of(state).is_some() => Waiter::Runner,
            Some(_) => Waiter::Session,
            None => Waiter::Nobody,
        };
        let until = parked.until.map(time::format);
        return Some(Waits { what: parked.what.clone(), since: time::format(parked.since), for_ms: passed(parked.since), until, by });
    }
    let (what, since) = waiting?;
    let for_ms = passed(time::parse(&since)?);
    // A hook that was killed, or interrupted, waits no more.
    turn::is_taken(project, id).then_some(Waits { what, since, for_ms, until: None, by: Waiter::Hook })
}

fn fill(view: &mut View, file: &LoopFile) {
    view.iteration = file.iteration;
    view.max_iterations = file.max_iterations;
    view.completion_promise.clone_from(&file.completion_promise);
    view.max_ms = file.max_millis();
    view.max_usd = file.max_usd;
    view.stall_limit = file.stall_rounds;
    view.warnings.clone_from(&file.warnings);
    view.prompt = words::opening(&file.prompt, 200);
}

fn bare(project: &Project, id: &str, name: &str, status: Status, state: &State, record: Option<&Record>) -> View {
    View {
        id: id.to_owned(),
        name: name.to_owned(),
        status,
        iteration: state.iteration,
        max_iterations: 0,
        completion_promise: None,
        max_ms: 0,
        // Only what is armed goes on ageing.
        spent_ms: state.spent(if status.is_armed() { clock::now() } else { record.and_then(|r| time::parse(&r.at)).unwrap_or(0) }),
        max_usd: 0.0,
        spent_usd: state.spending.as_ref().map(|spending| prices::in_dollars(spending.usd_micros)),
        idle_rounds: state.idle_rounds,
        stalled_rounds: state.standstill.as_ref().map_or(0, |standstill| standstill.rounds),
        stall_limit: 0,
        stops: state.stops,
        session: state.owner.clone(),
        carrier: Carrier::Nobody,
        runner_pid: None,
        last_code: state.last.as_ref().map(|l| l.ruling.code.as_str().to_owned()),
        last_event_at: record.map(|r| r.at.clone()),
        file: None,
        journal: project.journal(id),
        gates: Vec::new(),
        paused_at: None,
        why: None,
        by_run: false,
        checking: None,
        waits: None,
        notes: state.notes.clone(),
        denied: Vec::new(),
        problem: None,
        warnings: Vec::new(),
        prompt: String::new(),
    }
}

/// The loops of the archive, the one that ended last first.
pub fn archive(project: &Project) -> Vec<Archived> {
    let Ok(entries) = fs::read_dir(project.archive()) else { return Vec::new() };
    let one = |entry: fs::DirEntry| {
        let path = entry.path();
        let stem = path.file_stem()?.to_str()?;
        // `id.2.md` is the same loop, archived a second time.
        let (id, version) = stem.split_once('.').map_or((stem, 1), |(id, n)| (id, n.parse().unwrap_or(1)));
        let id = id.to_owned();
        let last = journal::tail(&project.journal(&id)).last;
        let name = last.as_ref().and_then(|r| r.state.name.clone()).unwrap_or_else(|| "main".to_owned());
        Some(Archived { name, ended_at: last.map(|r| r.at).unwrap_or_default(), id, path, version })
    };
    let mut all: Vec<Archived> = entries.flatten().filter_map(one).collect();
    all.sort_by(|a, b| (&b.ended_at, b.version).cmp(&(&a.ended_at, a.version)));
    all
}

/// Every loop that ever left a journal here and has no file now, newest first.
pub fn ended(project: &Project) -> Vec<View> {
    let live: Vec<String> = loops::all(project).iter().map(Found::id).collect();
    let Ok(entries) = fs::read_dir(project.own().join("journal")) else { return Vec::new() };
    let archived = archive(project);
    let one = |entry: fs::DirEntry| {
        let path = entry.path();
        let id = path.file_stem()?.to_str()?.to_owned();
        let record = journal::tail(&path).last.filter(|_| !live.contains(&id))?;
        let mut view = bare(
            project,
            &id,
            record.state.name.as_deref().unwrap_or("main"),
            Status::of_ending(record.state.ended),
            &record.state,
            Some(&record),
        );
        if let Some(file) = archived.iter().find(|a| a.id == id).and_then(|a| LoopFile::parse(&fs::read(&a.path).ok()?).ok()) {
            fill(&mut view, &file);
        }
        Some(view)
    };
    let mut views: Vec<View> = entries.flatten().filter_map(one).collect();
    views.sort_by(|a, b| b.last_event_at.cmp(&a.last_event_at));
    views
}
