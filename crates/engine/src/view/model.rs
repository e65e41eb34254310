//! A loop as people see it; the JSON of `ralph status --json` and `ralph list --json` is made of it.

use std::path::{Path, PathBuf};

use ralph_core::{gate::Verdict, history::Denials, journal::Note, judge::Ending, messages, money, text};
use serde::{Serialize, Serializer};

/// Where a loop stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A session works on it.
    Active,
    /// Its agent was allowed to stop until something outside is decided.
    Parked,
    /// No session has it yet: the first one that stops in the project takes it.
    Waiting,
    /// It came with the repository: no session takes it until a person says so.
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
    /// The file is gone, and no ending was written down: a person removed it, or ralph was killed at that moment.
    #[default]
    Gone,
}

impl Status {
    pub fn words(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Parked => "parked",
            Status::Waiting => "waiting for a session",
            Status::Tracked => "not armed",
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

    pub(super) fn is_armed(self) -> bool {
        matches!(self, Status::Active | Status::Parked | Status::Waiting | Status::LeftBehind)
    }

    pub(super) fn of_ending(ending: Option<Ending>) -> Self {
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
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// An estimate; `None`: unknown.
    pub spent_usd: Option<f64>,
    /// Tokens of fresh sessions; in a person's session they are not counted.
    pub tokens: u64,
    /// 0 means no limit.
    pub max_tokens: u64,
    /// How full the session's context was at the last stop, in percent, where there is a limit on that.
    pub context: Option<u64>,
    /// 0 means no limit.
    pub max_context: u64,
    pub idle_rounds: u64,
    /// Iterations in a row in which nothing changed, where that is counted.
    pub stalled_rounds: u64,
    /// 0 means no limit.
    pub stall_limit: u64,
    /// It is complete, and the proof is not what it was when the loop began.
    pub doubtful: bool,
    pub stops: u64,
    pub session: Option<String>,
    /// The agent at work, or the one that ended the last iteration, as `--agent` names it.
    pub agent: Option<String>,
    /// Its model, where that is known.
    pub model: Option<String>,
    /// Several agents have worked on it, as far as the end of its journal tells.
    #[serde(skip)]
    pub many_agents: bool,
    pub carrier: Carrier,
    /// The runner's process.
    pub runner_pid: Option<u32>,
    /// The reason code of the last ruling.
    pub last_code: Option<String>,
    pub last_event_at: Option<String>,
    /// The folder of its project.
    #[serde(serialize_with = "readable")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub project: PathBuf,
    /// `None`: it has ended.
    #[serde(serialize_with = "readable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub file: Option<PathBuf>,
    #[serde(serialize_with = "readable")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub journal: PathBuf,
    /// Its gates, with their last findings.
    pub gates: Vec<GateView>,
    /// The stop that paused it.
    pub paused_at: Option<u64>,
    /// Why it rests, or what went wrong last, in words.
    pub why: Option<String>,
    /// `ralph run` carried it last, and no session has it since.
    #[serde(skip)]
    pub by_run: bool,
    /// It is complete, and no session was ever started: everything held before.
    #[serde(skip)]
    pub had_nothing_to_do: bool,
    /// The command that a hook is running for it right now.
    pub checking: Option<Checking>,
    /// The thing that it waits for.
    pub waits: Option<Waits>,
    /// Since when the agent does nothing, because its person interrupted it.
    pub interrupted: Option<String>,
    /// Notes from a person for the agent, until an iteration with them was judged.
    pub notes: Vec<Note>,
    /// Tool calls that were denied since fresh sessions work on it, because no person was there to allow them.
    pub denied: Vec<Denials>,
    pub problem: Option<String>,
    /// Keys that look misspelt.
    pub warnings: Vec<String>,
    /// The start of the prompt.
    pub prompt: String,
}

/// Who works on a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// The agent's own session, which its hooks hold.
    Session,
    /// `ralph run`, in sessions of its own.
    Runner,
    #[default]
    Nobody,
}

/// A gate as people look at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// `the rate limit (until 2026-11-15T23:12:00Z)`, `your permission since 02:14 UTC`.
    pub fn words(&self) -> String {
        if self.by == Waiter::Person {
            return format!("{} since {} UTC", text::clean(&self.what), self.since.get(11..16).unwrap_or(&self.since));
        }
        let until = self.until.as_deref().map(|until| format!(" (until {until})")).unwrap_or_default();
        format!("{}{until}", text::clean(&self.what))
    }
}

/// Who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Waiter {
    /// A stop hook: the agent stands at its stop.
    Hook,
    /// A hook in the background of the session, which it wakes then.
    Session,
    /// `ralph run`, which goes on then.
    Runner,
    /// The agent, for its person.
    Person,
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

    /// It is paused, and its runner still lives: the iteration that runs is finished before it leaves.
    pub fn is_in_its_last_iteration(&self) -> bool {
        self.status == Status::Paused && self.carrier == Carrier::Runner
    }

    /// Where it stands, in words.
    pub fn stands(&self) -> &'static str {
        match self.status {
            _ if self.is_in_its_last_iteration() => "paused: this iteration is the last",
            Status::Complete if self.doubtful => "complete, with doubts",
            Status::Active if self.interrupted.is_some() => "interrupted",
            status => status.words(),
        }
    }

    /// How it ended, and how far it was: `complete at iteration 4`, `complete with nothing to do`.
    pub fn ended(&self) -> String {
        let how = self.stands();
        if self.had_nothing_to_do { format!("{how} with nothing to do") } else { format!("{how} at iteration {}", self.iteration) }
    }

    /// ``running in `ralph run` (pid 4711)``; `None`: the status says enough.
    pub fn carried(&self) -> Option<String> {
        self.runner_pid.map(|pid| format!("running in `ralph run` (pid {pid})"))
    }

    /// Whether a figure is known for what was used, or one will be: of fresh sessions only their agent can tell, and not every one does.
    fn uncounted(&self, heard: bool) -> Option<&'static str> {
        match (heard, self.by_run || self.file.is_none()) {
            (false, true) if self.stops == 0 => Some("not counted yet"),
            (false, true) => Some("not counted"),
            _ => None,
        }
    }

    /// `not counted`, where the cost of sessions is unknown.
    pub fn uncounted_money(&self) -> Option<&'static str> {
        self.uncounted(self.spent_usd.is_some())
    }

    /// The same about tokens.
    pub fn uncounted_tokens(&self) -> Option<&'static str> {
        self.uncounted(self.tokens > 0)
    }

    /// `about $3.20 of $50`, `not counted (limit $50)`; `None`: it is not counted.
    pub fn money(&self) -> Option<String> {
        let spent = self.spent_usd.or((self.max_usd > 0.0).then_some(0.0))?;
        let most = money::of_dollars(self.max_usd);
        Some(match self.uncounted_money() {
            Some(uncounted) => format!("{uncounted} (limit {})", money::shown(most)),
            None => messages::spent_of(money::of_dollars(spent), most),
        })
    }

    /// One line: where it stands and how far it is.
    pub fn line(&self) -> String {
        let named = if self.name == "main" { String::new() } else { format!(" \"{}\"", self.name) };
        let iteration = text::of_limit(self.iteration, self.max_iterations);
        let spent = ralph_core::text::time::in_words(self.spent_ms);
        match &self.problem {
            Some(problem) => format!("Ralph loop{named}: {} ({problem})", self.status.words()),
            None => {
                let end = messages::ends_on(self.completion_promise.as_deref(), !self.gates.is_empty());
                let money = self.money().map(|money| format!(", {money}")).unwrap_or_default();
                let waits = self.waits.as_ref().map(|waits| format!(", waits for {}", waits.words())).unwrap_or_default();
                let carried = self.carried().map(|carried| format!(", {carried}")).unwrap_or_default();
                format!("Ralph loop{named}: {}{carried}, iteration {iteration}, {spent}{money}, ends on {end}{waits}", self.stands())
            }
        }
    }
}
