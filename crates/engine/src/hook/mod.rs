//! One hook call: read the event, find out who is calling, answer, log.
//!
//! Whatever goes wrong in here, the agent may stop, the loop is kept, and the person is told in one line.

mod command;
mod compaction;
mod context;
mod driven;
mod evidence;
mod fail_open;
mod failure;
mod notes;
mod proof;
mod queued;
pub mod round;
mod select;
mod session;
mod spending;
mod standstill;
mod stop;
mod subagent;
mod waiter;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use ralph_core::{
    journal::Answered,
    loops::{LoopFile, fnv1a},
    time::millis,
};

use crate::{
    hosts::claude::{
        answer::Answer,
        caller::{Caller, Version},
        event::Event,
        registration::Invocation,
    },
    store::{
        Error,
        hook_log::{self, Entry},
        loops, notices, page,
        project::Project,
        trouble,
    },
    sys::{
        clock, env,
        input::{Input, SILENCE},
        process, signals,
    },
};

/// So late after the first one's answer a second hook on the same stop may be born, on a machine that is busy beyond measure: the client starts them all at
/// once. This decides nothing between registrations that have reported before; see [`Call::is_second_report`].
const LATEST_MS: u64 = 10_000;

/// Nobody registers the hook in more places: whoever goes on changing its name is counted after all.
const MOST_REGISTRATIONS: usize = 16;

/// A longer task would reach the model as a preview only.
const MAX_TASK: usize = 9_000;

/// How long commands may run in a hook that the client ends after `limit`: the answer has to be out before.
pub fn time_to_work(limit: Duration) -> Duration {
    limit.saturating_sub((limit / 50).max(Duration::from_secs(5)))
}

/// A limit that leaves `work` for what it is the limit of; see [`time_to_work`].
fn limit_for(work: Duration) -> Duration {
    age() + work + (work / 49).max(Duration::from_secs(5))
}

/// How long a hook may wait for another one with the same limit: that one's commands have their time, have to be ended, and have to be answered for.
fn time_to_wait(limit: Duration) -> Duration {
    let work = time_to_work(limit);
    work + limit.saturating_sub(work) * 4 / 5
}

/// How long this process has lived.
fn age() -> Duration {
    Duration::from_millis(clock::uptime_ms().saturating_sub(clock::born_ms()))
}

/// One call of the hook.
pub(crate) struct Call {
    event: Event,
    project: Project,
    client: Option<Version>,
    /// How long the client lets this process run.
    limit: Duration,
    /// How this process was called.
    invocation: Invocation,
    /// The process that started this one.
    parent: Option<u32>,
    /// The project is known not to use ralph: one look is enough.
    unused: AtomicBool,
    /// There is no hook: a runner reports a round of a session that it started.
    round: Option<round::Report>,
}

impl Call {
    fn of(event: Event, caller: &Caller, invocation: Invocation) -> Self {
        Call {
            project: Project::of_event(event.text("cwd")),
            client: if let Caller::ClaudeCode { version } = caller { *version } else { None },
            limit: invocation.limit(),
            invocation,
            event,
            parent: process::parent_pid(),
            unused: AtomicBool::new(false),
            round: None,
        }
    }

    /// Whether the project uses ralph, looked at before anything in it is.
    fn finds_ralph_in_use(&self) -> bool {
        let in_use = self.project.is_in_use();
        self.unused.store(!in_use, Ordering::Relaxed);
        in_use
    }

    /// Until when commands may run: the answer has to be out before the client's patience ends, which began with this process.
    fn budget(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(time_to_work(self.limit).saturating_sub(age())).unwrap_or(now)
    }

    /// How long commands may still run.
    fn time_left(&self) -> Duration {
        self.budget().saturating_duration_since(Instant::now())
    }

    /// Whether anybody waits for the answer: nobody does if the client wants this process to end, or has gone without a word.
    fn is_awaited(&self) -> bool {
        if let Some(round) = &self.round {
            return (round.wanted)();
        }
        !signals::asked_to_end() && process::parent_pid() == self.parent
    }

    /// Whether what is decided elsewhere may be waited for. A hook may, within its time.
    fn may_wait(&self) -> bool {
        self.round.as_ref().is_none_or(|round| (round.waits)())
    }

    fn client_pid() -> Option<u32> {
        env::claude_pid().or_else(process::parent_pid)
    }

    /// The process that carries the loop: the client that runs this hook, or the runner itself.
    fn carrier_pid(&self) -> Option<u32> {
        if self.round.is_some() { Some(std::process::id()) } else { Call::client_pid() }
    }

    /// Whether the stop is ruled on as one of a loop that works. A round that is over is, whoever paused the loop meanwhile: that means that no other begins.
    fn is_ruled_on(&self, file: &LoopFile) -> bool {
        file.active || self.round.is_some()
    }

    /// How many rounds in a row may change nothing. A runner has one more, for a trial.
    fn stall_limit(&self, file: &LoopFile) -> u64 {
        match (&self.round, file.fresh_stall_rounds()) {
            (None, _) => file.hook_stall_rounds(),
            (Some(_), 0) => 0,
            (Some(_), rounds) => rounds.saturating_add(1),
        }
    }

    /// Whether the files are looked at only now and then: in a session whose loop says nothing about rounds that change nothing, so that going on stays cheap.
    fn looks_now_and_then(&self, file: &LoopFile) -> bool {
        self.round.is_none() && file.stall_rounds.is_none()
    }

    /// How long this process may wait for another one that measures the same stop.
    fn patience(&self) -> Duration {
        time_to_wait(self.limit).saturating_sub(age())
    }

    /// The registration that this is a call of.
    fn via(&self) -> String {
        self.invocation.via()
    }

    /// Whether a stop with the words of this one, which these registrations have reported and which was answered then, is this very stop. The client runs each
    /// registration once at every stop and waits for all of them: whoever has reported it reports the next one now, however soon that comes.
    fn is_second_report(&self, via: &[String], answered_ms: u64) -> bool {
        let late_ms = if via.is_empty() { 0 } else { LATEST_MS };
        if via.len() >= MOST_REGISTRATIONS {
            return false;
        }
        // Nobody answered in the future: whoever says so wrote it by hand.
        answered_ms <= clock::uptime_ms()
            && is_same_moment(clock::born_ms(), answered_ms, self.limit, late_ms)
            && !via.contains(&self.via())
    }

    /// Whether this stop was answered so before, to another hook that reported it.
    fn is_answered_by(&self, last: &Answered) -> bool {
        last.stop == self.event.stop_fingerprint() && self.is_second_report(&last.via, last.uptime_ms)
    }

    /// A fingerprint of a command that was typed in this session: both events that report it carry the id of the same turn.
    fn command_fingerprint(&self, name: &str, args: &str) -> String {
        let parts = [self.event.session().unwrap_or_default(), self.event.text("prompt_id").unwrap_or_default(), name, args.trim()];
        format!("{:016x}", fnv1a(parts.join("\0").as_bytes()))
    }
}

/// Whether a process was born when another one answered: before that, because all hooks of one stop are started at once, or so late after it, but before it by
/// no more than the time that a hook may take; a machine that was restarted since counts from zero again.
fn is_same_moment(born_ms: u64, answered_ms: u64, limit: Duration, late_ms: u64) -> bool {
    let limit_ms = millis(limit);
    born_ms <= answered_ms.saturating_add(late_ms) && born_ms.saturating_add(limit_ms) >= answered_ms
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

/// What a call is answered with, and what is left to do when the answer is out.
pub struct Reply {
    /// `None` is silence.
    pub answer: Option<String>,
    /// The loop that something happened to.
    happened_to: Option<(Project, String)>,
}

impl Reply {
    /// What nobody waits for.
    pub fn afterwards(&self) {
        // In a session of a run the runner sees to it.
        if let Some((project, loop_id)) = self.happened_to.as_ref().filter(|_| env::run_mark().is_none()) {
            page::bring_up_to_date(project, loop_id);
        }
    }
}

/// Answers the event in `input`, within the time that the client gives this process. Never fails: the worst case is a line for the person.
pub fn answer(input: &Input, invocation: Invocation) -> Reply {
    let event = match Event::parse(&input.bytes) {
        Ok(event) => event,
        Err(e) => return Reply { answer: invalid_input(input, &e), happened_to: None },
    };
    let caller = Caller::of(&event);
    let call = Call::of(event, &caller, invocation);
    let outcome = match caller {
        // A gate may ask an agent for its opinion. That one is no part of the loop, and to measure gates for it would never end.
        _ if env::is_within_gate() => Outcome::silent("gate.within"),
        Caller::Foreign(agent) => Outcome { error: Some(format!("called by {agent}")), ..Outcome::silent("host.foreign") },
        // An agent must not report events of its own: with `ralph` allowed in its shell it could enter what only a person may.
        Caller::ClaudeCode { .. } if env::is_in_the_agents_shell() => Outcome::silent("hook.shell"),
        Caller::ClaudeCode { .. } => fail_open::guarded(&call, || dispatch(&call)),
    };
    // One look for both: where ralph is not used, nothing waits and nothing is logged.
    let in_use = !call.unused.load(Ordering::Relaxed) && call.project.is_in_use();
    let outcome = if in_use { told_what_waits(&call, outcome) } else { outcome };
    let outcome = Outcome { error: outcome.error.or_else(trouble::take_missed), ..outcome };
    log(&call, &outcome, in_use);
    // The process ends with the answer: to take the event apart again would be for nobody.
    std::mem::forget(call.event);
    let happened_to = (!outcome.loop_id.is_empty()).then_some((call.project, outcome.loop_id));
    Reply { answer: outcome.answer.to_json(), happened_to }
}

/// Waits in the background of an interactive session for what its stop, or a failure, was parked for; the result is what to wake the session with.
pub fn wait(input: &Input, invocation: Invocation) -> Option<String> {
    let event = Event::parse(&input.bytes).ok()?;
    let caller = Caller::of(&event);
    // A runner waits for its sessions by itself.
    if env::is_within_gate() || env::is_in_the_agents_shell() || env::run_mark().is_some() || !matches!(caller, Caller::ClaudeCode { .. }) {
        return None;
    }
    let call = Call::of(event, &caller, invocation);
    let outcome = fail_open::quietly(|| if call.event.name() == "StopFailure" { failure::wait(&call) } else { waiter::on_stop(&call) });
    if outcome.code != waiter::NONE {
        log(&call, &outcome, call.project.is_in_use());
    }
    waiter::told(outcome)
}

fn dispatch(call: &Call) -> Result<Outcome, Error> {
    if let Some(mark) = env::run_mark()
        && let Some(outcome) = driven::within_a_run(call, &mark)?
    {
        return Ok(outcome);
    }
    match call.event.name() {
        "Stop" => stop::on_stop(call),
        "SubagentStop" => subagent::on_stop(call),
        "UserPromptSubmit" | "UserPromptExpansion" => command::on_prompt(call),
        "SessionStart" => session::on_start(call),
        "SessionEnd" => session::on_end(call),
        "StopFailure" => failure::on_failure(call),
        _ => session::on_other(call),
    }
}

/// When a session stops or is woken, the person is told what could not be shown to them before.
fn told_what_waits(call: &Call, outcome: Outcome) -> Outcome {
    let is_shown = call.event.name() == "Stop" || waiter::is_wake(call);
    let Some(session) = call.event.session().filter(|_| is_shown) else { return outcome };
    let lines = notices::take(&call.project, session, clock::now());
    if lines.is_empty() { outcome } else { Outcome { answer: outcome.answer.and_tell(&lines.join("\n")), ..outcome } }
}

/// S0-6: input that is no JSON object says nothing about who stopped, so the loop, if there is one, stays as it is.
fn invalid_input(input: &Input, problem: &serde_json::Error) -> Option<String> {
    let project = Project::of_event(None);
    let outcome = if loops::any(&project) {
        let bytes = input.bytes.len();
        let silence = if input.fell_silent { format!("; nothing more came for {} s", SILENCE.as_secs()) } else { String::new() };
        let line = format!(
            "Ralph: the hook's input is not a JSON event ({problem}; {bytes} bytes{silence}). The stop is allowed and the loop is kept as it is."
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
    hook_log::write(&project, project.is_in_use(), &entry);
    trouble::note(&project, "?", outcome.code, &format!("the hook's input is not a JSON event: {problem} ({} bytes)", input.bytes.len()));
    outcome.answer.to_json()
}

/// The event could not be read from standard input.
pub fn unread(problem: &str) {
    trouble::note(&Project::of_event(None), "?", "input.unread", &format!("cannot read the event from standard input: {problem}"));
}

/// Why a hook did not do what it is there for; `None`: it did. What another agent's hooks do is its own affair.
fn trouble_of(outcome: &Outcome) -> Option<&str> {
    match (outcome.code, outcome.error.as_deref()) {
        ("host.foreign", _) => None,
        ("loop.tracked", None) => Some("the loop waits: git tracks its file, so it came with the repository and no person started it here"),
        (_, error) => error,
    }
}

fn log(call: &Call, outcome: &Outcome, in_use: bool) {
    let entry = Entry {
        trigger: call.event.name(),
        session: call.event.session().unwrap_or_default(),
        decision: decision(&outcome.answer),
        code: outcome.code,
        loop_id: &outcome.loop_id,
        error: outcome.error.as_deref(),
    };
    hook_log::write(&call.project, in_use, &entry);
    if let Some(cause) = trouble_of(outcome) {
        trouble::note(&call.project, call.event.name(), outcome.code, cause);
    }
}

fn decision(answer: &Answer) -> &'static str {
    match answer {
        Answer::Silent | Answer::Tell { .. } => "allow",
        Answer::Block { .. } | Answer::Context { event: "Stop" | "SubagentStop", .. } => "block",
        Answer::Context { .. } => "context",
        Answer::Instead { .. } => "answered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second hook of one stop was born when the first one was, however long that measured.
    #[test]
    fn pains_9_a_second_hook_is_known_however_long_the_first_one_takes() {
        let hour = Duration::from_hours(1);
        for took_ms in [0, 299, 1_000, 61_000, 1_200_000, 3_540_000] {
            assert!(is_same_moment(5_000_000, 5_000_000 + took_ms, hour, 0), "{took_ms}");
        }
        assert!(is_same_moment(5_009_000, 5_000_000, hour, LATEST_MS), "9 s late");
        assert!(!is_same_moment(5_011_000, 5_000_000, hour, LATEST_MS), "no hook of one stop comes so late");
        assert!(!is_same_moment(5_000_010, 5_000_000, hour, 0), "answered by a version that did not note to whom");
        assert!(!is_same_moment(1_000, 9_000_000, hour, LATEST_MS), "restarted since");
        assert!(!is_same_moment(5_000_000, 5_061_000, Duration::from_mins(1), LATEST_MS), "it would not live any more");
    }

    #[test]
    fn point_8_who_waits_for_another_hook_waits_longer_than_that_one_measures() {
        for seconds in [8, 60, 600, 3600] {
            let limit = Duration::from_secs(seconds);
            let wait = time_to_wait(limit);
            assert!(time_to_work(limit) + Duration::from_secs(3) < wait && wait < limit, "{seconds}");
        }
    }
}
