//! One hook call: read the event, find out who is calling, answer, log.
//!
//! Whatever goes wrong in here, the agent may stop, the loop is kept, and the person is told in one line.

mod command;
mod evidence;
mod guard;
mod proof;
mod queued;
mod select;
mod session;
mod stop;
mod subagent;

use std::time::{Duration, Instant};

use ralph_core::loop_file::fnv1a;

use crate::{
    hosts::claude::{
        answer::Answer,
        caller::{Caller, Version},
        event::Event,
    },
    store::{
        Error,
        hook_log::{self, Entry},
        loops,
        project::Project,
    },
    sys::{clock, env, process, signals},
};

/// A second hook on the same stop was born no later than this after the first one answered: the client starts them all at once, though on a
/// busy machine the second one came 50 ms late. The next stop comes later, because a model has to answer in between; only one that says the same
/// words within this time is taken for the stop before, and then it is not counted.
const SAME_STOP_MS: u64 = 300;

/// A longer task would reach the model as a preview only.
const MAX_TASK: usize = 9_000;

/// How long commands may run in a hook that the client ends after `limit`: the answer has to be out before.
pub fn time_to_work(limit: Duration) -> Duration {
    limit.saturating_sub((limit / 50).max(Duration::from_secs(5)))
}

/// One call of the hook.
pub(crate) struct Call {
    event: Event,
    project: Project,
    client: Option<Version>,
    /// How long the client lets this process run.
    limit: Duration,
    /// The process that started this one.
    parent: Option<u32>,
}

impl Call {
    /// Until when commands may run: the answer has to be out before the client's patience ends, which began with this process.
    fn budget(&self) -> Instant {
        let age = Duration::from_millis(clock::uptime_ms().saturating_sub(clock::born_ms()));
        let now = Instant::now();
        now.checked_add(time_to_work(self.limit).saturating_sub(age)).unwrap_or(now)
    }

    /// Whether anybody waits for the answer: nobody does if the client wants this process to end, or has gone without a word.
    fn is_awaited(&self) -> bool {
        !signals::asked_to_end() && process::parent_pid() == self.parent
    }

    fn client_pid() -> Option<u32> {
        env::claude_pid().or_else(process::parent_pid)
    }

    /// Whether this process was started when the other one answered. A machine that was restarted since counts from zero again.
    fn is_same_moment(answered_uptime_ms: u64) -> bool {
        let born_ms = clock::born_ms();
        born_ms <= answered_uptime_ms + SAME_STOP_MS && born_ms + 60_000 >= answered_uptime_ms
    }

    /// A fingerprint of a command that was typed in this session: both events that report it carry the id of the same turn.
    fn command_fingerprint(&self, name: &str, args: &str) -> String {
        let parts = [self.event.session().unwrap_or_default(), self.event.text("prompt_id").unwrap_or_default(), name, args.trim()];
        format!("{:016x}", fnv1a(parts.join("\0").as_bytes()))
    }
}

/// What came of a call.
pub(crate) struct Outcome {
    answer: Answer,
    /// A reason code: the judge's, or one of the hook's own.
    code: &'static str,
    loop_id: String,
    error: Option<String>,
}

impl Outcome {
    fn silent(code: &'static str) -> Self {
        Outcome { answer: Answer::Silent, code, loop_id: String::new(), error: None }
    }

    fn tell(code: &'static str, line: impl Into<String>) -> Self {
        Outcome { answer: Answer::Tell { line: line.into() }, ..Outcome::silent(code) }
    }

    fn instead(code: &'static str, text: impl Into<String>) -> Self {
        Outcome { answer: Answer::Instead { text: text.into() }, ..Outcome::silent(code) }
    }

    fn of_loop(self, id: &str) -> Self {
        Outcome { loop_id: id.to_owned(), ..self }
    }
}

/// Answers the event in `input`, within `limit` of this process's birth; `None` is silence. Never fails: the worst case is a line for the person.
pub fn answer(input: &[u8], limit: Duration) -> Option<String> {
    let event = match Event::parse(input) {
        Ok(event) => event,
        Err(e) => return invalid_input(input, &e),
    };
    let caller = Caller::of(&event);
    let client = if let Caller::ClaudeCode { version } = caller { version } else { None };
    let call = Call { project: Project::of_event(event.text("cwd")), client, limit, event, parent: process::parent_pid() };
    let outcome = match caller {
        Caller::Foreign(agent) => Outcome { error: Some(format!("called by {agent}")), ..Outcome::silent("host.foreign") },
        Caller::ClaudeCode { .. } => guard::open(&call, || dispatch(&call)),
    };
    log(&call, &outcome);
    outcome.answer.to_json()
}

fn dispatch(call: &Call) -> Result<Outcome, Error> {
    match call.event.name() {
        "Stop" => stop::on_stop(call),
        "SubagentStop" => subagent::on_stop(call),
        "UserPromptSubmit" | "UserPromptExpansion" => command::on_prompt(call),
        "SessionStart" => session::on_start(call),
        "SessionEnd" => session::on_end(call),
        _ => session::on_other(call),
    }
}

/// S0-6: input that is no JSON object says nothing about who stopped, so the loop, if there is one, stays as it is.
fn invalid_input(input: &[u8], problem: &serde_json::Error) -> Option<String> {
    let project = Project::of_event(None);
    let outcome = if loops::any(&project) {
        let bytes = input.len();
        let line = format!(
            "Ralph: the hook's input is not a JSON event ({problem}; {bytes} bytes). The stop is allowed and the loop is kept as it is."
        );
        Outcome::tell("input.invalid", line)
    } else {
        Outcome::silent("input.invalid")
    };
    let entry = Entry {
        trigger: "?",
        decision: decision(&outcome.answer),
        code: outcome.code,
        error: Some(&problem.to_string()),
        ..Entry::default()
    };
    hook_log::write(&project, &entry);
    outcome.answer.to_json()
}

fn log(call: &Call, outcome: &Outcome) {
    let entry = Entry {
        trigger: call.event.name(),
        session: call.event.session().unwrap_or_default(),
        decision: decision(&outcome.answer),
        code: outcome.code,
        loop_id: &outcome.loop_id,
        error: outcome.error.as_deref(),
    };
    hook_log::write(&call.project, &entry);
}

fn decision(answer: &Answer) -> &'static str {
    match answer {
        Answer::Silent | Answer::Tell { .. } => "allow",
        Answer::Block { .. } | Answer::Context { event: "Stop" | "SubagentStop", .. } => "block",
        Answer::Context { .. } => "context",
        Answer::Instead { .. } => "answered",
    }
}
