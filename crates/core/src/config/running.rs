//! `[run]` and `[notify]` in `ralph.toml`: how fresh sessions are run, and who is told when a run needs somebody.

use super::{
    Problem, deadline,
    pull_requests::told,
    reader::{Field, Fields},
};

/// How `ralph run` runs sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The model of every session, unless an item of a list names another.
    pub model: Option<String>,
    /// The client's permission mode; `None`: what its own settings say. Counts only from a file that a person trusts.
    pub permission_mode: Option<String>,
    /// So many times a session is sent back by its own stop hook while gates fail, before its round ends.
    pub inner: u64,
    /// A session of which nothing is heard for so long is ended.
    pub silence_ms: u64,
    /// One round may not take longer; 0 means no limit.
    pub round_ms: u64,
    /// So many crashes of the agent in a row are borne.
    pub retries: u64,
    /// So many sessions are started within an hour; 0 means no limit.
    pub calls_per_hour: u64,
    /// After so many failing rounds in a row the other model gets its turn; 0 means never.
    pub escalate_after: u64,
    pub escalate_model: Option<String>,
    /// Keep the files after every round under `refs/ralph/`.
    pub snapshots: bool,
    /// How long nothing is tried after too many rounds without progress; then comes one last try.
    pub cooldown_ms: u64,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            model: None,
            permission_mode: None,
            inner: 0,
            silence_ms: 15 * 60_000,
            round_ms: 2 * 3_600_000,
            retries: 3,
            calls_per_hour: 0,
            escalate_after: 0,
            escalate_model: None,
            snapshots: true,
            cooldown_ms: 60_000,
        }
    }
}

/// Who is told when a run ends, parks, or needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notify {
    pub desktop: bool,
    pub terminal: bool,
    /// A line for the shell. Runs only from a file that a person trusts.
    pub command: Option<String>,
    /// An address that gets a JSON document. Asked only from a file that a person trusts.
    pub webhook: Option<String>,
}

pub(super) fn read_run(table: &Fields<'_>) -> Result<Run, Problem> {
    let usual = Run::default();
    let count = |key, otherwise| Ok::<u64, Problem>(table.read(key, Field::count)?.unwrap_or(otherwise));
    let run = Run {
        model: table.read("model", told)?,
        permission_mode: table.read("permission_mode", |field| field.choice().map(str::to_owned))?,
        inner: count("inner", usual.inner)?,
        silence_ms: table.read("silence", deadline)?.unwrap_or(usual.silence_ms),
        round_ms: table.read("round", or_none)?.unwrap_or(usual.round_ms),
        retries: count("retries", usual.retries)?,
        calls_per_hour: count("calls_per_hour", usual.calls_per_hour)?,
        escalate_after: count("escalate_after", usual.escalate_after)?,
        escalate_model: table.read("escalate_model", told)?,
        snapshots: table.read("snapshots", Field::bool)?.unwrap_or(usual.snapshots),
        cooldown_ms: table.read("cooldown", or_none)?.unwrap_or(usual.cooldown_ms),
    };
    match (run.escalate_after, &run.escalate_model) {
        (0, Some(_)) => Err(table.problem("`escalate_model` needs `escalate_after`: after how many failing rounds")),
        (1.., None) => Err(table.problem("`escalate_after` needs `escalate_model`: which model gets its turn then")),
        _ => Ok(run),
    }
}

/// A length of time; 0 means none.
fn or_none(field: Field<'_>) -> Result<u64, Problem> {
    if field.count().is_ok_and(|seconds| seconds == 0) { Ok(0) } else { deadline(field) }
}

pub(super) fn read_notify(table: &Fields<'_>) -> Result<Notify, Problem> {
    let flag = |key| Ok::<bool, Problem>(table.read(key, Field::bool)?.unwrap_or(false));
    Ok(Notify {
        desktop: flag("desktop")?,
        terminal: flag("terminal")?,
        command: table.read("command", told)?,
        webhook: table.read("webhook", address)?,
    })
}

fn address(field: Field<'_>) -> Result<String, Problem> {
    let text = told(field)?;
    if is_address(&text) { Ok(text) } else { Err(field.problem("`webhook` must be an address such as \"https://example.org/hook\"")) }
}

/// Whether a text can be the address of a webhook.
pub fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && text.len() <= 2_000 && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\\'))
    })
}
