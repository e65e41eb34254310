//! One hook call: read the event, find out who is calling, answer, log.
//!
//! If anything goes wrong in here, the agent may stop, the loop is kept, and the person is told in one line.

mod api_error;
mod command;
mod compaction;
mod fail_open;
mod inside_run;
mod news;
mod permission;
mod queued_command;
mod session;
mod stop;
mod subagent;
mod wake;

pub use news::send as send_news;

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ralph_core::{judge::Reason, loops::fnv1a, messages::ForAgent};

use self::news::{News, NewsDue};
use crate::{
    hosts::{self, Answer, Caller, Client, Event, Invocation, Kind},
    stop::{
        Deadline, Hook, Origin, Stop,
        find::{self, Selected},
        is_awaited, is_second_report,
    },
    store::{
        Error,
        hook_log::{self, Entry},
        loops::{self, LoopOnDisk},
        notices,
        project::Project,
        trouble,
    },
    sys::{
        clock, env,
        input::{Input, SILENCE},
        process,
    },
};

/// A longer task would reach the model as a preview only.
const MAX_TASK: usize = 9_000;

/// Drawing a page asks git, which is given 20 s at most.
const TIME_FOR_PAGE: Duration = Duration::from_secs(30);

/// One call of the hook.
pub(crate) struct Call {
    event: Event,
    project: Project,
    client: Client,
    deadline: Deadline,
    /// How this process was called.
    invocation: Invocation,
    /// The process that started this one.
    parent: Option<u32>,
    /// The project is known not to use ralph: one look is enough.
    unused: AtomicBool,
}

impl Call {
    fn of(event: Event, caller: Caller, invocation: Invocation) -> Self {
        Call {
            project: Project::of_session(event.cwd.as_deref(), event.session()),
            client: if let Caller::Own(client) = caller { client } else { Client::default() },
            deadline: Deadline::of_client(invocation.limit()),
            invocation,
            event,
            parent: process::parent_pid(),
            unused: AtomicBool::new(false),
        }
    }

    /// The session's id; empty if the client names none.
    fn session(&self) -> &str {
        self.event.session().unwrap_or_default()
    }

    /// The session's own loop, read without the lock.
    fn own_loop(&self) -> Option<LoopOnDisk> {
        match find::select(&self.project, self.session()) {
            Selected::Own(found) => Some(*found),
            _ => None,
        }
    }

    /// Whether the project uses ralph. Looked at before anything else in it.
    fn finds_ralph_in_use(&self) -> bool {
        let in_use = self.project.is_in_use();
        self.unused.store(!in_use, Ordering::Relaxed);
        in_use
    }

    /// The stop that this call reports.
    fn stop(&self) -> Stop<'_> {
        Stop {
            project: &self.project,
            session: self.session(),
            fingerprint: self.event.stop_fingerprint(),
            turn: self.event.turn.as_deref(),
            message: self.event.message.as_deref(),
            background: self.event.background.clone(),
            deadline: self.deadline,
            origin: Origin::Hook(Hook {
                transcript: self.transcript(),
                client: self.client,
                after_a_block: self.event.after_a_block,
                invocation: &self.invocation,
                parent: self.parent,
            }),
        }
    }

    /// The path of the session's transcript; empty if the client names none.
    fn transcript(&self) -> &str {
        &self.event.transcript
    }

    /// Whether the client still waits for the answer.
    fn is_awaited(&self) -> bool {
        is_awaited(self.parent)
    }

    /// Whether a stop that these registrations reported, and that was answered then, is the one that this call reports.
    fn is_second_report(&self, via: &[String], answered_ms: u64) -> bool {
        is_second_report(&self.invocation, self.deadline, via, answered_ms)
    }

    /// A task for the agent, and what it has to know besides. Where that would be cut, the agent reads the task from the loop's file, so that the rest arrives.
    fn with_task(&self, before: &str, task: &str, file: Option<&Path>, note: Option<&str>) -> String {
        let note = note.map(|note| format!("\n\n{note}")).unwrap_or_default();
        let whole = format!("{before}{task}{note}");
        let Some(file) = file.filter(|_| !self.client.host.takes_whole(&whole)) else { return whole };
        let file = file.strip_prefix(self.project.root()).unwrap_or(file);
        ForAgent::LongTask { task, file: &file.display().to_string() }.text() + &note
    }

    /// A fingerprint of a command that was typed in this session: both events that report it name the same turn.
    fn command_fingerprint(&self, name: &str, args: &str) -> String {
        let parts = [self.session(), self.event.turn.as_deref().unwrap_or_default(), name, args.trim()];
        format!("{:016x}", fnv1a(parts.join("\0").as_bytes()))
    }
}

/// The result of a call.
pub(crate) struct Outcome {
    answer: Answer,
    code: Reason,
    loop_id: String,
    /// The loop ended, paused or parked in this call.
    at_rest: bool,
    /// What the person's notifications say of it.
    news: Option<News>,
    error: Option<String>,
}

impl Outcome {
    fn new(code: Reason, answer: Answer) -> Self {
        Outcome { answer, code, loop_id: String::new(), at_rest: false, news: None, error: None }
    }

    fn silent(code: Reason) -> Self {
        Outcome::new(code, Answer::Silent)
    }

    fn tell(code: Reason, line: impl Into<String>) -> Self {
        Outcome::new(code, Answer::Tell { line: line.into() })
    }

    fn instead(code: Reason, text: impl Into<String>) -> Self {
        Outcome::new(code, Answer::Instead { text: text.into() })
    }

    fn of_loop(self, id: &str) -> Self {
        Outcome { loop_id: id.to_owned(), ..self }
    }

    fn at_rest(self) -> Self {
        Outcome { at_rest: true, ..self }
    }

    fn with_news(self, news: Option<News>) -> Self {
        Outcome { news, ..self }
    }
}

/// The answer to a call, and what is due once it is out.
pub struct Reply {
    /// `None` is silence.
    pub answer: Option<String>,
    news: Option<NewsDue>,
    /// A loop that ended, paused or parked in this call, if there is time left to draw its page.
    pub page_due: Option<(Project, String)>,
}

impl Reply {
    /// Has the person's notifications sent, without waiting for them.
    pub fn send_news(&self) {
        if let Some(news) = &self.news {
            news.send();
        }
    }

    fn of(call: Call, answer: Option<String>, outcome: Outcome) -> Self {
        // The client drops the answer of a hook that it has to end. How old this process is costs a look at the system.
        let is_due = outcome.at_rest && call.deadline.until_the_end() >= TIME_FOR_PAGE;
        let news = outcome.news.map(|news| NewsDue::of(call.project.clone(), outcome.loop_id.clone(), news));
        let page_due = is_due.then_some((call.project, outcome.loop_id));
        // The process ends soon: freeing the event would take time for nothing.
        std::mem::forget(call.event);
        Reply { answer, news, page_due }
    }
}

/// Answers the event in `input`, within the time that the client gives this process. Never fails: the worst case is a line for the person.
pub fn answer(input: &Input, invocation: Invocation) -> Reply {
    let (event, caller) = match hosts::read(&input.bytes, &invocation) {
        Ok(read) => read,
        Err(e) => return Reply { answer: invalid_input(input, &e), news: None, page_due: None },
    };
    let call = Call::of(event, caller, invocation);
    let outcome = match caller {
        // A gate may ask an agent for its opinion. That one is no part of the loop, and to measure gates for it would never end.
        _ if env::is_within_gate() => Outcome::silent(Reason::GATE_WITHIN),
        Caller::Foreign(agent) => Outcome { error: Some(format!("called by {agent}")), ..Outcome::silent(Reason::HOST_FOREIGN) },
        // An agent must not report events of its own: with `ralph` allowed in its shell it could enter what only a person may.
        Caller::Own(_) if hosts::is_in_the_agents_shell() => Outcome::silent(Reason::HOOK_SHELL),
        Caller::Own(_) => fail_open::guarded(&call, || dispatch(&call)),
    };
    // One look for both: where ralph is not used, nothing waits and nothing is logged.
    let in_use = !call.unused.load(Ordering::Relaxed) && call.project.is_in_use();
    let outcome = if in_use { told_what_waits(&call, outcome) } else { outcome };
    let outcome = Outcome { error: outcome.error.or_else(trouble::take_missed), ..outcome };
    log(&call, &outcome, in_use);
    let answer = hosts::print(&outcome.answer, &call.event, call.client.host);
    Reply::of(call, answer, outcome)
}

/// Waits in the background of an interactive session for what its stop, or a failure, was parked for; the answer is what to wake the session with.
/// `None`: there is nothing to wait for.
pub fn wait(input: &Input, invocation: Invocation) -> Option<Reply> {
    let (event, caller) = hosts::read(&input.bytes, &invocation).ok()?;
    // A runner waits for its sessions by itself.
    if env::is_within_gate() || hosts::is_in_the_agents_shell() || env::run_mark().is_some() || !matches!(caller, Caller::Own(_)) {
        return None;
    }
    let call = Call::of(event, caller, invocation);
    let outcome = fail_open::quietly(|| if call.event.kind == Kind::TurnFailed { api_error::wait(&call) } else { wake::on_stop(&call) });
    if outcome.code != Reason::WAIT_NONE {
        log(&call, &outcome, call.project.is_in_use());
    }
    Some(Reply::of(call, wake::told(&outcome.answer), outcome))
}

fn dispatch(call: &Call) -> Result<Outcome, Error> {
    if let Some(mark) = env::run_mark()
        && let Some(outcome) = inside_run::within_a_run(call, &mark)?
    {
        return Ok(outcome);
    }
    match call.event.kind {
        Kind::Stop => stop::on_stop(call),
        Kind::SubagentStop => subagent::on_stop(call),
        Kind::Prompt | Kind::TypedCommand => command::on_prompt(call),
        Kind::SessionStart => session::on_start(call),
        Kind::SessionEnd => session::on_end(call),
        Kind::TurnFailed => api_error::on_failure(call),
        Kind::Interrupted => session::on_interrupt(call),
        Kind::Notification => Ok(permission::on_notification(call)),
        Kind::Other if call.event.is_late => stop::unheard(call),
        Kind::Other => session::on_other(call),
    }
}

/// When a session stops or is woken, the person is told what could not be shown to them before; where the agent has to tell it, when the person is there.
fn told_what_waits(call: &Call, outcome: Outcome) -> Outcome {
    // What an agent's own shell, a gate or another agent calls, no person sees.
    let is_the_clients = !matches!(outcome.code, Reason::HOOK_SHELL | Reason::GATE_WITHIN | Reason::HOST_FOREIGN);
    let is_moment = if call.client.host.shows_line() {
        call.event.kind == Kind::Stop || wake::is_wake(call)
    } else {
        call.event.kind.takes_context() && outcome.code != Reason::PROMPT_OWN
    };
    let is_shown = is_the_clients && is_moment;
    if is_the_clients && !is_shown {
        keep_what_is_not_shown(call, &outcome.answer);
    }
    let Some(session) = call.event.session().filter(|_| is_shown) else { return outcome };
    let lines = notices::take(&call.project, session, clock::now());
    if lines.is_empty() { outcome } else { Outcome { answer: outcome.answer.and_tell(&lines.join("\n")), ..outcome } }
}

/// Keeps the person's line where the agent shows none, and cannot be asked to tell it now.
fn keep_what_is_not_shown(call: &Call, answer: &Answer) {
    if let (false, Answer::Tell { line }, Some(session)) = (call.client.host.shows_line(), answer, call.event.session()) {
        // The hook's log has it in any case.
        let _ = notices::keep(&call.project, session, clock::now(), line);
    }
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
        Outcome::tell(Reason::INPUT_INVALID, line)
    } else {
        Outcome::silent(Reason::INPUT_INVALID)
    };
    let entry = Entry {
        trigger: "?",
        decision: decision(&outcome.answer, Kind::Other),
        code: outcome.code.as_str(),
        error: Some(&problem.to_string()),
        ..Entry::default()
    };
    hook_log::write(&project, project.is_in_use(), &entry);
    trouble::note(&project, "?", outcome.code, &format!("the hook's input is not a JSON event: {problem} ({} bytes)", input.bytes.len()));
    hosts::print(&outcome.answer, &Event::default(), Client::default().host)
}

/// The event could not be read from standard input.
pub fn unread(problem: &str) {
    trouble::note(&Project::of_event(None), "?", Reason::INPUT_UNREAD, &format!("cannot read the event from standard input: {problem}"));
}

/// Why a hook did not do its work; `None`: it did. Hooks of another agent are not ours.
fn trouble_of(outcome: &Outcome) -> Option<&str> {
    match (outcome.code, outcome.error.as_deref()) {
        (Reason::HOST_FOREIGN, _) => None,
        (Reason::LOOP_TRACKED, None) => {
            Some("the loop waits: git tracks its file, so it came with the repository and no person started it here")
        }
        (_, error) => error,
    }
}

fn log(call: &Call, outcome: &Outcome, in_use: bool) {
    let entry = Entry {
        trigger: &call.event.name,
        session: call.session(),
        decision: decision(&outcome.answer, call.event.kind),
        code: outcome.code.as_str(),
        loop_id: &outcome.loop_id,
        error: outcome.error.as_deref(),
    };
    hook_log::write(&call.project, in_use, &entry);
    if let Some(cause) = trouble_of(outcome) {
        trouble::note(&call.project, &call.event.name, outcome.code, cause);
    }
}

fn decision(answer: &Answer, kind: Kind) -> &'static str {
    match answer {
        Answer::Silent | Answer::Tell { .. } => "allow",
        Answer::Block { .. } => "block",
        Answer::Context { .. } if matches!(kind, Kind::Stop | Kind::SubagentStop) => "block",
        Answer::Context { .. } => "context",
        Answer::Instead { .. } => "answered",
    }
}
