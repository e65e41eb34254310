//! A loop's report: what people read in the morning, and what `ralph report --json` prints. Every other form is drawn from this one.
//!
//! Moments are milliseconds since 1970 in UTC, lengths of time milliseconds, money millionths of a dollar. Unknown values are absent, and not 0.

pub mod junit;

use serde::Serialize;

use crate::{
    gate::Kind,
    history::{AgentWork, Iteration, Mark, Refused, Said, Span, Took, Used},
    judge::{Code, Ending},
    money::Micros,
    text::{of_limit, time::Millis},
};

/// The version of the form that this program writes. Fields are added within a version; none is taken away or changes its meaning.
pub const VERSION: u32 = 1;

/// A loop from its start until now, or until its end.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    pub v: u32,
    /// The version of ralph that wrote it.
    pub ralph: String,
    /// When it was written.
    pub written: Millis,
    /// The journal that it was drawn from, from the project's root on.
    pub journal: String,
    /// The name of the project's folder.
    pub project: String,
    pub id: String,
    pub name: String,
    /// As in `ralph status --json`: `active`, `paused`, `complete` and so on.
    pub status: String,
    /// How that looks to a person who has to decide whether to read on.
    pub mood: Mood,
    /// How it ended and why, or where it stands, in one sentence.
    pub sentence: String,
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Millis>,
    /// When the last event was written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The ruling that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    pub limits: Limits,
    pub figures: Figures,
    pub cost: Cost,
    /// Who did what: one row for each agent and model.
    pub agents: Vec<AgentWork>,
    /// Changes that were in no commit when this was written; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Steps that only a person can take or decide; empty: none.
    pub needs: Vec<Need>,
    /// Problems on the way, equal ones together.
    pub troubles: Vec<Trouble>,
    /// Acceptance criteria, each with its proof.
    pub acceptance: Vec<Acceptance>,
    /// Where the time went, the oldest first.
    pub spans: Vec<Span>,
    pub gates: Vec<GateStory>,
    /// Claims that did not end the loop: the newest.
    pub refused: Vec<Refused>,
    /// Notes from people to the agent: the newest.
    pub notes: Vec<Said>,
    /// All iterations, the oldest first.
    pub rounds: Vec<IterationRow>,
    /// The iteration that was cut off, or goes on; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// How to look at it again, to undo it and to go on: what it does, and what to type.
    pub ways: Vec<Way>,
}

/// How a loop stands, at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mood {
    /// Done, and proven as far as it can be.
    Good,
    /// It goes on, or waits for something that comes by itself.
    Going,
    /// It rests until a person does something, or ended without being done.
    Held,
    /// It broke.
    Bad,
}

impl Mood {
    pub fn mark(self) -> &'static str {
        match self {
            Mood::Good => "✓",
            Mood::Going => "▶",
            Mood::Held => "‖",
            Mood::Bad => "✗",
        }
    }
}

/// 0 means that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    pub iterations: u64,
    pub ms: u64,
    pub usd_micros: Micros,
}

/// The loop in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    pub iteration: u64,
    /// Iterations that were ruled on.
    pub rounds: u64,
    /// Stops that were decided.
    pub stops: u64,
    /// From its start until its end, or until now, by the clock.
    pub elapsed_ms: u64,
    /// The time that counts for its limit: while a session or a run had it.
    pub spent_ms: u64,
    pub took: Took,
    pub used: Used,
    /// Things that have to hold, the promise not counted.
    pub wanted: u64,
    /// Those of them that are proven.
    pub verified: u64,
    /// Items of lists that are marked as done and have no command that could prove it: they are done by their marks alone.
    pub by_mark: u64,
    /// Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
    pub refused: u64,
    pub notes: u64,
    pub unreadable_lines: u64,
}

impl Figures {
    /// `2 of 3`, `3 of 3, by their marks alone`: the same story that a list's gate tells.
    pub fn verified_in_words(&self) -> String {
        let done = of_limit(self.verified.saturating_add(self.by_mark), self.wanted);
        match (self.by_mark, self.wanted) {
            (0, _) => done,
            (1, 1) => format!("{done}, by its mark alone"),
            (n, wanted) if n == wanted => format!("{done}, by their marks alone"),
            (1, _) => format!("{done}, 1 of them by its mark alone"),
            (n, _) => format!("{done}, {n} of them by their marks alone"),
        }
    }
}

/// Changes, by git's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changed {
    pub commits: u64,
    pub added_lines: u64,
    pub removed_lines: u64,
    /// The files themselves were not kept: uncommitted lines are not counted.
    pub only_commits: bool,
}

impl Changed {
    #[must_use]
    pub fn plus(self, other: Changed) -> Self {
        Changed {
            commits: self.commits.saturating_add(other.commits),
            added_lines: self.added_lines.saturating_add(other.added_lines),
            removed_lines: self.removed_lines.saturating_add(other.removed_lines),
            only_commits: self.only_commits || other.only_commits,
        }
    }

    /// Added and removed lines; `None`: there are none that anybody counted, and that need not be all.
    pub fn lines(self) -> Option<(u64, u64)> {
        let lines = (self.added_lines, self.removed_lines);
        (lines != (0, 0) || !self.only_commits).then_some(lines)
    }
}

/// The cost of the loop's work, for each thing that is proven.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Absent where it is not known, or nothing is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_verified: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_round: Option<Micros>,
    /// In words, with why something is not known.
    pub words: String,
}

/// Changes in the working tree that are in no commit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Left {
    /// Files that are changed or new.
    pub files: u64,
    /// The first of them.
    pub named: Vec<String>,
    /// Stashes that were made since the loop began.
    pub stashes: u64,
}

/// Something for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Need {
    pub about: About,
    /// In words.
    pub what: String,
    /// The step, in words or as a command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub how: Vec<String>,
}

/// The reason why a person is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// The loop rests, or stopped before it was done.
    Resting,
    /// A gate cannot be measured without a person.
    Gate,
    /// The proof itself has changed since the loop began.
    Suspicion,
    /// Denied tools, because no person was there to allow them.
    Denied,
    /// Marked as done, and nothing proves it.
    Unproven,
    /// Work that is in no commit.
    Uncommitted,
    /// Something of ralph's own files.
    Files,
}

impl About {
    pub fn words(self) -> &'static str {
        match self {
            About::Resting => "The loop has stopped",
            About::Gate => "A gate needs you",
            About::Suspicion => "The proof itself changed",
            About::Denied => "Tools were denied",
            About::Unproven => "Claimed, not proven",
            About::Uncommitted => "Not committed",
            About::Files => "Files",
        }
    }
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trouble {
    pub what: String,
    pub times: u64,
    /// The last time.
    pub at: Millis,
    pub iteration: u64,
}

/// Something that has to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Acceptance {
    pub of: Of,
    /// The gate's name, the item's id, the promise.
    pub name: String,
    /// The demand of an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The file that an item stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
    pub standing: Standing,
    /// The result, or why there is none, in words.
    pub what: String,
    /// The evidence for it; absent where nothing was ever measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl Acceptance {
    /// An item that is done because it is marked so, and for no other reason.
    pub fn is_by_mark_alone(&self) -> bool {
        self.of == Of::Item && self.standing == Standing::Claimed && self.evidence.is_none()
    }
}

/// The kind of an acceptance criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    Promise,
    Gate,
    Item,
}

/// How far it is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    Proven,
    /// Claimed, and not proven by anything that ralph ran.
    Claimed,
    /// It was measured, and does not hold.
    Fails,
    /// Not claimed to be done.
    Open,
    /// Something outside has not decided.
    Waits,
    /// It could not be measured, or never was.
    Unknown,
}

impl Standing {
    pub const ALL: [Standing; 6] =
        [Standing::Proven, Standing::Claimed, Standing::Fails, Standing::Open, Standing::Waits, Standing::Unknown];

    /// A stable word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Proven => "proven",
            Standing::Claimed => "claimed",
            Standing::Fails => "fails",
            Standing::Open => "open",
            Standing::Waits => "waits",
            Standing::Unknown => "unknown",
        }
    }

    pub fn words(self) -> &'static str {
        if self == Standing::Claimed { "claimed, not proven" } else { self.as_str() }
    }

    pub fn mark(self) -> &'static str {
        match self {
            Standing::Proven => "✓",
            Standing::Claimed => "!",
            Standing::Fails => "✗",
            Standing::Open => "○",
            Standing::Waits => "…",
            Standing::Unknown => "?",
        }
    }
}

/// The evidence for a standing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The command that was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// The N of `ralph explain N`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// The whole output, from the project's root on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The commit that was checked out. It need not have the files that were measured: see `uncommitted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether the files were others than that commit's; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<bool>,
    /// The name under which git has the files just as they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<String>,
    /// Nothing was run: it was the verdict on the same files.
    pub cached: bool,
    /// It failed, and passed when it was tried again.
    pub flaky: bool,
}

/// A gate over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateStory {
    pub name: String,
    pub kind: Kind,
    /// It is not one of the loop's gates any more.
    pub gone: bool,
    /// Every measurement, the oldest first.
    pub marks: Vec<Mark>,
}

/// An iteration with what git says about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RoundRow"))]
pub struct IterationRow {
    #[serde(flatten)]
    pub round: Iteration,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
    /// Gates that held after it, and how many had been measured by then.
    pub gates_held: u64,
    pub gates_known: u64,
}

/// An iteration that was not ruled on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unfinished {
    pub iteration: u64,
    pub took: Took,
    /// Usage of its sessions that are over.
    pub used: Used,
}

/// A way on, back or into the details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Way {
    pub what: String,
    pub command: String,
}
