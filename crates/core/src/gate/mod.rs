//! Gates, which must hold before a loop may end, and the findings about them.
//!
//! A promise is a claim; a gate is a proof. Here are the plain values; the engine measures them.

mod completion_markers;
mod count_entries;
mod decision;
mod file;
pub mod guard;
pub mod list;
mod output;
pub mod pull_request;
pub(crate) mod regex;
pub mod test_results;

pub use completion_markers::completion_markers;
pub(crate) use decision::DECISION;
pub use output::{Stream, Useful};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    gate::test_results::TestResults,
    text::{
        Problem, clean, quoted,
        time::{Millis, parse_duration},
    },
};

/// How long a command may run by default (S3-3).
pub(crate) const DEFAULT_DEADLINE_MS: u64 = 120_000;

/// No command may run longer.
pub(crate) const MAX_DEADLINE_MS: u64 = 24 * 3_600_000;

/// How many characters of a command's output the agent is shown by default (S3-3).
pub(crate) const DEFAULT_EXCERPT: usize = 500;

/// One thing that must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub name: String,
    pub check: Check,
    pub origin: Origin,
    /// A person allowed its commands to run.
    pub trusted: bool,
    /// Measured at every stop, not only when the agent claims to be done. A gate that costs nothing is always measured.
    pub every_stop: bool,
    /// The agent's next step while it does not hold.
    pub next: Option<String>,
}

/// The kinds of gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    Command(Command),
    File(File),
    Features(Features),
    Markers(Markers),
    /// Nothing in the working tree is uncommitted.
    Committed,
    PullRequest(PullRequest),
    Ci(Ci),
}

/// A command that must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub run: Run,
    /// Relative to the project's root.
    pub folder: Option<String>,
    pub env: Vec<(String, String)>,
    pub deadline_ms: u64,
    /// May run at the same time as its neighbours that may, too.
    pub parallel: bool,
    /// A failure is tried once more; if it passes then, it was a flake.
    pub retry: bool,
    /// Whether the verdict on an unchanged tree is believed.
    pub cache: bool,
    /// A pass in one clone of the repository is believed in its other clones, where no loop ends by it.
    pub any_clone: bool,
    /// Of all commands of this user's that name the same thing, one runs at a time: a database, a port, a device.
    pub exclusive: Option<String>,
    /// Its children may outlive it: a build server, for instance.
    pub leave_running: bool,
    /// Failures that were there when the loop started.
    pub old_failures: OldFailures,
    /// Where its test results are, besides what it prints: a JUnit file, relative to the project's root.
    pub junit: Option<String>,
    /// How many characters of its output the agent gets.
    pub excerpt: usize,
}

impl Command {
    /// A line for the shell, everything else by default.
    pub fn shell(line: impl Into<String>) -> Self {
        Command {
            run: Run::Shell(line.into()),
            folder: None,
            env: Vec::new(),
            deadline_ms: DEFAULT_DEADLINE_MS,
            parallel: false,
            retry: false,
            cache: true,
            any_clone: false,
            exclusive: None,
            leave_running: false,
            old_failures: OldFailures::Block,
            junit: None,
            excerpt: DEFAULT_EXCERPT,
        }
    }

    /// How long a command may run, as people write it, in milliseconds.
    pub fn parse_deadline(text: &str) -> Result<u64, String> {
        parse_duration(text).and_then(within_a_day)
    }
}

/// How a command is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// A line for the shell.
    Shell(String),
    /// A program and its arguments, as they are.
    Argv(Vec<String>),
}

impl Run {
    /// As one line that a person can read.
    pub fn shown(&self) -> String {
        match self {
            Run::Shell(line) => line.clone(),
            Run::Argv(words) => words.join(" "),
        }
    }

    /// As one line that a shell would take for the same words.
    pub fn typed(&self) -> String {
        match self {
            Run::Shell(line) => line.clone(),
            Run::Argv(words) => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        }
    }
}

/// The treatment of failures that were there when the loop started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OldFailures {
    /// They count like any other: the task may be to fix them.
    #[default]
    Block,
    /// Only new ones count, where they can be told apart.
    Allow,
}

/// A file that must say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Relative to the project's root.
    pub path: String,
    /// A regular expression that must match somewhere in it.
    pub contains: Option<String>,
    /// A readable name for the expression.
    pub called: Option<String>,
    /// Patterns of the sources that must not have changed since the file was last written; `None`: its age does not matter.
    pub fresh: Option<Vec<String>>,
    /// So many entries must be in it: items of lists, rows of tables, paragraphs.
    pub entries: u64,
    /// A check that passed left it behind: if it says that something failed, it does not count.
    pub of_success: bool,
}

impl File {
    /// A file that must exist.
    pub fn at(path: impl Into<String>) -> Self {
        File { path: path.into(), contains: None, called: None, fresh: None, entries: 0, of_success: false }
    }
}

/// A list whose items must all pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    /// Relative to the project's root, or absolute.
    pub path: String,
    /// After so many items done in one session the loop pauses; 0 means no limit.
    pub per_session: u64,
    /// The one item that counts; `None`: all of them.
    pub item: Option<String>,
}

impl Features {
    /// All items of the list in this file.
    pub fn of(path: impl Into<String>) -> Self {
        Features { path: path.into(), per_session: 0, item: None }
    }

    /// The items that count in a list.
    pub fn list(&self, bytes: &[u8]) -> Result<list::List, Problem> {
        let list = list::List::parse(bytes)?;
        match &self.item {
            None => Ok(list),
            Some(id) => {
                list.only(id).ok_or_else(|| Problem::new(None, format!("there is no item {id} in it, and the loop is about that one")))
            }
        }
    }
}

/// Words that must all be in the agent's last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markers {
    pub words: Vec<String>,
}

/// A pull request for the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub must_be: Stage,
    /// Who merges it, where it must be merged.
    pub merge: Merge,
    /// The branch that it must go to; `None`: any.
    pub base: Option<String>,
}

/// How far a pull request must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Open,
    Merged,
}

/// Who merges a pull request once everything else holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merge {
    #[default]
    Agent,
    Ralph,
}

/// Green checks on the head commit of the pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ci {
    /// Checks that the base branch does not require do not count.
    pub required_only: bool,
    /// Patterns of the names of checks that do not count.
    pub ignore: Vec<String>,
    /// A commit that no check reports on passes, once there was time for them to appear.
    pub may_have_none: bool,
}

/// Where a gate was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file of settings, relative to the project's root: `ralph.toml`, `.ideal/worktree.yaml`. Trusted as a whole.
    File(String),
    /// A list whose items have commands of their own. Its flags change all the time, so only the commands are trusted.
    List(String),
    /// The loop's own file. Ralph changes it all the time, so only the commands are trusted.
    Loop,
}

impl Origin {
    /// The file, for people; relative to the project's root.
    pub fn shown(&self) -> &str {
        match self {
            Origin::File(path) | Origin::List(path) => path,
            Origin::Loop => "the loop file",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    #[default]
    Command,
    File,
    Features,
    Markers,
    Committed,
    PullRequest,
    Ci,
    /// The comparison with the start of the loop, where it may block.
    Guard,
    /// Settings that declare gates and cannot be read.
    Config,
}

impl Kind {
    /// CI and reviewers decide in their own time.
    pub fn is_decided_elsewhere(self) -> bool {
        matches!(self, Kind::PullRequest | Kind::Ci)
    }
}

impl Gate {
    pub fn kind(&self) -> Kind {
        match self.check {
            Check::Command(_) => Kind::Command,
            Check::File(_) => Kind::File,
            Check::Features(_) => Kind::Features,
            Check::Markers(_) => Kind::Markers,
            Check::Committed => Kind::Committed,
            Check::PullRequest(_) => Kind::PullRequest,
            Check::Ci(_) => Kind::Ci,
        }
    }

    /// The line of its command, if it has one.
    pub fn line(&self) -> Option<String> {
        match &self.check {
            Check::Command(command) => Some(command.run.typed()),
            _ => None,
        }
    }

    /// Whether measuring it has effects.
    pub fn acts(&self) -> bool {
        match &self.check {
            Check::Command(_) => true,
            Check::PullRequest(request) => request.must_be == Stage::Merged && request.merge == Merge::Ralph,
            Check::File(_) | Check::Features(_) | Check::Markers(_) | Check::Committed | Check::Ci(_) => false,
        }
    }

    pub fn is_decided_elsewhere(&self) -> bool {
        self.kind().is_decided_elsewhere()
    }

    /// A gate that is not trusted yet, and measured when the agent claims to be done.
    pub fn new(name: impl Into<String>, check: Check, origin: Origin) -> Self {
        Gate { name: name.into(), check, origin, trusted: false, every_stop: false, next: None }
    }

    /// The name of a gate that has none of its own: the first words of what it asks for.
    pub fn name_for(text: &str) -> String {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect();
        if line.chars().count() <= 40 { line } else { line.chars().take(39).chain(['…']).collect() }
    }

    /// A finding about this gate, without details.
    pub fn finding(&self, verdict: Verdict, what: impl Into<String>) -> Finding {
        Finding::new(&self.name, self.kind(), verdict, what)
    }
}

/// Whether it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Pass,
    Fail,
    /// Something outside decides, and has not yet.
    Wait,
    /// It could not be measured: it timed out, broke, was not run, is not trusted. Never a pass.
    #[default]
    Unknown,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Wait => "wait",
            Verdict::Unknown => "unknown",
        }
    }

    /// One character for people.
    pub fn mark(self) -> &'static str {
        match self {
            Verdict::Pass => "✓",
            Verdict::Fail => "✗",
            Verdict::Wait => "…",
            Verdict::Unknown => "?",
        }
    }
}

/// The result of measuring a gate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    pub gate: String,
    pub kind: Kind,
    pub verdict: Verdict,
    /// One line, for people and agents.
    pub what: String,
    /// Details that the agent needs to fix it, bounded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The agent's next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The whole output, relative to the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub took_ms: u64,
    /// It was not its turn: nothing was measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The verdict on the same tree as before: nothing was run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// When it was measured, where nothing was run for this stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// It failed, and passed when it was tried again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// Which tests failed, where the command told. Too much for a journal; `what` has it in short.
    #[serde(skip)]
    pub tests: Option<TestResults>,
    /// The same in numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<TestCounts>,
    /// How the command ended; `what` says it in words.
    #[serde(skip)]
    pub end: Option<End>,
    /// Only a person can change it: what to type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// How far a list is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<Tally>,
}

/// The moment of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    pub at: Millis,
    /// On the person's clock: `05:38`.
    pub shown: String,
}

/// How many tests a command told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestCounts {
    /// How many ran.
    pub total: u64,
    pub failed: u64,
    /// How many of those that failed had failed when the loop began; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<u64>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    Code(i32),
    Signal(i32),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Code(code) => write!(f, "exit code {code}"),
            End::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// How far a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tally {
    pub done: u64,
    pub total: u64,
    /// So many may be done in one session; 0 means no limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub per_session: u64,
}

impl Finding {
    pub fn new(gate: &str, kind: Kind, verdict: Verdict, what: impl Into<String>) -> Self {
        Finding { gate: gate.to_owned(), kind, verdict, what: what.into(), ..Finding::default() }
    }

    /// Why nothing was run, where the verdict is from before: `not run again: the files are the same as at 05:38`.
    pub fn not_run_again(&self) -> Option<String> {
        let at =
            self.measured.as_ref().map_or_else(|| "when it was measured".to_owned(), |measured| format!("at {}", clean(&measured.shown)));
        self.cached.then(|| format!("not run again: the files are the same as {at}"))
    }

    /// The finding in one line, and whether it is from before.
    pub fn told(&self) -> String {
        let parts = [Some(clean(&self.what)), self.not_run_again()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Finding { detail: detail.into(), ..self }
    }
}

/// All findings together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// There is no gate: the claim alone counts.
    NotAsked,
    Holds,
    Fails,
    /// Only a person can change it.
    NeedsPerson,
    Unknown,
    Waits,
}

impl Proof {
    /// A failure is something to work on, so it goes before everything that is not known yet.
    pub fn of(findings: &[Finding]) -> Self {
        let any = |verdict| findings.iter().any(|f| f.verdict == verdict);
        if findings.is_empty() {
            Proof::NotAsked
        } else if any(Verdict::Fail) {
            Proof::Fails
        } else if findings.iter().any(|f| f.verdict == Verdict::Unknown && f.needs.is_some()) {
            Proof::NeedsPerson
        } else if any(Verdict::Unknown) {
            Proof::Unknown
        } else if any(Verdict::Wait) {
            Proof::Waits
        } else {
            Proof::Holds
        }
    }
}

/// Whether there is nothing to do but to wait: CI or a reviewer has not decided yet, and no other measured gate asks for work.
pub fn only_waits(findings: &[Finding]) -> bool {
    let mut open = findings.iter().filter(|finding| finding.verdict != Verdict::Pass && !finding.skipped).peekable();
    open.peek().is_some() && open.all(|finding| finding.verdict == Verdict::Wait)
}

/// The reaction to signs that the proof was weakened instead of the work done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GuardPolicy {
    /// Tests that are gone or skipped keep the loop from ending until they are back or a person accepts it; everything else is listed.
    #[default]
    Tests,
    /// It is listed.
    Warn,
    /// It is listed, and the loop does not end before it is fixed or a person accepts it.
    Block,
    Off,
}

pub(crate) fn within_a_day(ms: u64) -> Result<u64, String> {
    if (1..=MAX_DEADLINE_MS).contains(&ms) { Ok(ms) } else { Err("`deadline` must be more than nothing and at most 24 hours".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(verdict: Verdict) -> Finding {
        Finding::new("g", Kind::Command, verdict, "")
    }

    #[test]
    fn what_is_not_known_is_never_a_pass() {
        use Verdict::{Fail, Pass, Unknown, Wait};
        let proof = |verdicts: &[Verdict]| Proof::of(&verdicts.iter().map(|v| found(*v)).collect::<Vec<_>>());
        assert_eq!(proof(&[]), Proof::NotAsked);
        assert_eq!(proof(&[Pass, Pass]), Proof::Holds);
        assert_eq!(proof(&[Pass, Unknown]), Proof::Unknown);
        assert_eq!(proof(&[Unknown, Fail, Pass]), Proof::Fails);
        assert_eq!(proof(&[Pass, Wait]), Proof::Waits);
        assert_eq!(proof(&[Wait, Unknown]), Proof::Unknown);
        let untrusted = Finding { needs: Some("ralph trust".to_owned()), ..found(Unknown) };
        assert_eq!(Proof::of(&[found(Pass), untrusted.clone()]), Proof::NeedsPerson);
        assert_eq!(Proof::of(&[untrusted, found(Fail)]), Proof::Fails, "there is work to do");
    }
}
