//! One stop, one way: find the loop → measure what it has to prove → gather the evidence → judge → commit.
//!
//! Both drivers report a stop as a plain [`Stop`]: the hook (`hook/stop.rs`) what the client told it, the run (`run/iterations.rs`) what it heard of a session that it started.

mod deadline;
mod edits;
pub(crate) mod find;
mod gather;
pub(crate) mod hear;
pub(crate) mod measure;
pub(crate) mod notes;
mod record;
mod same_stop;
mod spending;
mod standstill;
pub(crate) mod waiting_hook;

use std::{sync::Arc, time::Duration};

use ralph_core::{
    journal::{Answered, State},
    judge::{Code, Decision, Evidence, Next, Ruling, ToolUse, judge, session_outcome::Work},
    loops::LoopFile,
    messages::{self, gate_messages},
};

use crate::{
    gates::durations::Time,
    hosts::{Client, Invocation, fingerprint},
    store::{
        Error,
        loops::LoopOnDisk,
        project::Project,
        project_lock::{Locked, Loop},
    },
    sys::{clock, process, secrets, signals},
};
pub(crate) use deadline::Deadline;
pub use deadline::time_to_work;
use gather::{Gathered, gather};
use measure::{Measured, Waiting};
pub(crate) use same_stop::{is_second_report, note_second_report};
pub use standstill::tree;

/// One attempt of an agent to stop.
pub(crate) struct Stop<'a> {
    pub project: &'a Project,
    pub session: &'a str,
    /// Identifies the stop, together with who reports it.
    pub fingerprint: String,
    /// The person's turn that it belongs to.
    pub turn: Option<&'a str>,
    /// The agent's last message, as far as it was reported.
    pub message: Option<&'a str>,
    /// Work that still runs in the background, in words.
    pub background: Vec<String>,
    pub deadline: Deadline,
    pub origin: Origin<'a>,
}

/// Who reports a stop.
pub(crate) enum Origin<'a> {
    Hook(Hook<'a>),
    Run(&'a SessionReport),
}

/// The part of a stop that only the client's hook knows.
pub(crate) struct Hook<'a> {
    pub transcript: &'a str,
    pub client: Client,
    /// The stop before this one was in the same turn, and the agent was sent back.
    pub after_a_block: bool,
    pub invocation: &'a Invocation,
    /// The process that started this one.
    pub parent: Option<u32>,
}

/// Hears which gate's command begins, and how long that takes.
pub type Checking = Arc<dyn Fn(&str, Time) + Send + Sync>;

/// A session that a run has listened to until it stopped.
pub(crate) struct SessionReport {
    /// The session's prompt: an agent that only repeats it claims nothing.
    pub prompt: String,
    /// The agent's last message.
    pub text: Option<String>,
    pub tools: ToolUse,
    pub work: Work,
    /// No session was started yet: the loop ends if everything holds, and otherwise nothing is written.
    pub before_the_first: bool,
    /// Asked again and again: whether the ruling is still wanted.
    pub wanted: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Asked again and again: whether to wait for what is decided elsewhere; otherwise the loop is parked.
    pub waits: Arc<dyn Fn() -> bool + Send + Sync>,
    pub checking: Checking,
}

impl SessionReport {
    /// The rules that would have allowed what was denied, each once.
    fn denied(&self) -> Vec<String> {
        let mut rules: Vec<String> = self.work.denied.iter().map(|denied| denied.rule.clone()).collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

impl Stop<'_> {
    fn hook(&self) -> Option<&Hook<'_>> {
        if let Origin::Hook(hook) = &self.origin { Some(hook) } else { None }
    }

    fn report(&self) -> Option<&SessionReport> {
        if let Origin::Run(report) = &self.origin { Some(report) } else { None }
    }

    /// The session, where the client names it.
    pub(crate) fn session(&self) -> Option<&str> {
        Some(self.session).filter(|session| !session.is_empty())
    }

    /// Whether the answer is still wanted: no longer if the client wants this process to end, or is gone.
    pub(crate) fn is_awaited(&self) -> bool {
        match &self.origin {
            Origin::Run(report) => (report.wanted)(),
            Origin::Hook(hook) => is_awaited(hook.parent),
        }
    }

    /// Whether to wait for what is decided elsewhere. A hook may, within its time.
    fn may_wait(&self) -> bool {
        self.report().is_none_or(|report| (report.waits)())
    }

    /// The process that has the loop: the client that runs this hook, or the run itself.
    fn holder_pid(&self) -> Option<u32> {
        self.hook().map_or_else(|| Some(std::process::id()), |hook| hook.client.pid())
    }

    /// Whether the stop counts as one of a loop that works. The end of a run's session does, even if the loop was paused meanwhile: a pause means that no other session begins.
    fn counts(&self, file: &LoopFile) -> bool {
        file.active || self.report().is_some()
    }

    /// How many iterations in a row may change nothing. A run has one more, for a trial.
    fn stall_limit(&self, file: &LoopFile) -> u64 {
        match (self.report(), file.fresh_stall_rounds()) {
            (None, _) => file.hook_stall_rounds(),
            (Some(_), 0) => 0,
            (Some(_), rounds) => rounds.saturating_add(1),
        }
    }

    /// Whether the files are looked at only now and then: in a session whose loop does not set `stall_rounds`, so that going on stays cheap.
    fn looks_now_and_then(&self, file: &LoopFile) -> bool {
        self.hook().is_some() && file.stall_rounds.is_none()
    }
}

/// Whether the process that started this one waits for its answer.
pub(crate) fn is_awaited(parent: Option<u32>) -> bool {
    !signals::asked_to_end() && process::parent_pid() == parent
}

/// The result of a stop.
pub(crate) enum Outcome {
    Ruled(Box<Ruled>),
    /// Another hook reported the same stop before, and this is how it was answered.
    Repeated(Box<Loop>, Box<Answered>),
    /// The loop is paused, and the agent has just told the person so.
    Told(Box<Loop>),
    /// The loop is gone or another session's, or no answer is wanted any more.
    Gone,
}

/// A stop that was ruled on.
pub(crate) struct Ruled {
    pub l: Box<Loop>,
    pub gathered: Gathered,
    pub ruling: Ruling,
    /// For the agent, if it is sent back; otherwise for the person.
    pub note: Option<String>,
    /// For the person, about the gates; `None`: there are none.
    pub told: Option<String>,
    /// For the person, about the loop.
    pub more: Vec<String>,
    at: ralph_core::text::time::Millis,
}

/// Rules on a stop of the loop `l`.
pub(crate) fn rule<'p>(stop: &'p Stop<'p>, locked: Locked<'p>, l: Box<Loop>, waiting: Waiting) -> Result<Outcome, Error> {
    if same_stop::is_repeated(stop, &l, waiting) {
        return Ok(same_stop::repeated(stop, &locked, l));
    }
    if has_told_the_person(stop, &l) {
        return Ok(Outcome::Told(l));
    }
    let Some((locked, mut l, measured)) = measure::measure(stop, locked, l, waiting)? else { return Ok(Outcome::Gone) };
    let is_of_use = match waiting {
        // A wait that is over counts for the very stop that was parked.
        Waiting::IsOver => l.state.is_parked_by(&stop.fingerprint),
        _ => stop.report().is_none_or(|report| !report.before_the_first || measured.holds()),
    };
    if !is_of_use {
        return Ok(Outcome::Gone);
    }
    // Where hooks cannot wait for each other, another one may have ruled on this very stop meanwhile.
    if same_stop::is_repeated(stop, &l, waiting) {
        return Ok(same_stop::repeated(stop, &locked, l));
    }
    if let (None, Some(hook)) = (l.owner(), stop.hook()) {
        // A command removed ralph's files, and with them the loop's owner.
        find::adopt(&locked, &mut l, stop.session, hook.client)?;
    }
    decide(stop, &locked, l, measured)
}

/// Whether the agent is sent back although the loop pauses: nothing else tells its person about the cap of an agent that shows no line.
pub(crate) fn is_told_by_the_agent(client: Client, ruling: &Ruling) -> bool {
    ruling.code == Code::HostBlockCap && ruling.next == Next::Pauses && !client.host.shows_line()
}

/// Whether this is the stop after that: it counts for nothing.
fn has_told_the_person(stop: &Stop<'_>, l: &Loop) -> bool {
    let sent_back = stop.hook().filter(|hook| hook.after_a_block && !l.file.active);
    sent_back.zip(l.state.last.as_ref()).is_some_and(|(hook, last)| is_told_by_the_agent(hook.client, &last.ruling))
}

fn decide(stop: &Stop<'_>, locked: &Locked<'_>, mut l: Box<Loop>, measured: Measured) -> Result<Outcome, Error> {
    let at = clock::now();
    locked.note_misfit(&mut l, at, stop.session())?;
    let has_just_paused = edits::note(stop, locked, &mut l, at)?;
    // A pause by hand is first seen here.
    if stop.counts(&l.file) {
        // What was measured for this stop was measured in this loop.
        l.state.arm(measured.began.unwrap_or(at));
    } else {
        l.state.disarm(at);
    }
    if let Some(report) = stop.report() {
        l.state.charge(&report.work, at);
    }
    let gathered = gather(stop, &l, hear::hear(stop, &l, at), measured, at);
    let ruling = judge(&gathered.evidence);
    let was_checked = |l: &Loop| l.state.last.as_ref().is_none_or(|last| last.ruling.code != Code::LoopPaused);
    let is_first_unchecked = ruling.code == Code::LoopPaused && was_checked(&l) && !has_just_paused;
    let note = match ruling.decision {
        Decision::Block => messages::hint(&gathered.evidence, l.file.remind()),
        Decision::Allow if is_first_unchecked => Some(messages::unchecked(&gathered.evidence)),
        Decision::Allow => messages::allowed(&gathered.evidence, &ruling).or_else(|| notes::goes_first(&ruling, &gathered.heard.queue)),
    };
    let note = notes::add(stop, &mut l.state, &ruling, note.map(|note| secrets::mask(&note)));
    let told =
        (!gathered.evidence.gates.is_empty()).then(|| secrets::mask(&gate_messages::for_person(&gathered.evidence).unwrap_or_default()));
    let more = std::mem::take(&mut l.state.untold);
    let ruled = Ruled { l, gathered, ruling, note, told, more, at };
    Ok(record::commit(stop, locked, ruled)?.map_or(Outcome::Gone, |ruled| Outcome::Ruled(Box::new(ruled))))
}

/// What [`preview`] sees: the loop under the lock, and the ruling with what it is made of.
type Preview<'p> = (Locked<'p>, Box<Loop>, Evidence, Ruling);

/// The ruling that a stop would get now, and the loop to note it in. `None`: there is nothing left to answer.
pub(crate) fn preview<'p>(stop: &'p Stop<'p>, locked: Locked<'p>, l: Box<Loop>) -> Result<Option<Preview<'p>>, Error> {
    let measured = measure::measure(stop, locked, l, Waiting::Elsewhere)?;
    Ok(measured.map(|(locked, l, measured)| {
        let at = clock::now();
        let evidence = gather(stop, &l, hear::hear(stop, &l, at), measured, at).evidence;
        let ruling = judge(&evidence);
        (locked, l, evidence, ruling)
    }))
}

/// How a session of a run was ruled on.
#[derive(Debug)]
pub(crate) struct RuledSession {
    pub ruling: Ruling,
    pub evidence: Evidence,
    /// The person's line.
    pub line: Option<String>,
    /// The loop after it.
    pub file: LoopFile,
    pub state: State,
}

/// Rules on a session that a run has heard out, which takes no longer than `patience`. `None`: the loop is gone, or is another session's.
pub(crate) fn rule_on_session(
    project: &Project,
    found: &LoopOnDisk,
    session: &str,
    report: &SessionReport,
    patience: Duration,
) -> Result<Option<RuledSession>, Error> {
    let message = report.text.as_deref().filter(|text| !text.trim().is_empty());
    let stop = Stop {
        project,
        session,
        fingerprint: fingerprint(false, session, "", message.unwrap_or_default()),
        turn: None,
        message,
        background: Vec::new(),
        deadline: Deadline::of_work(patience),
        origin: Origin::Run(report),
    };
    let _lock = measure::lock(&stop, found)?;
    let Some((locked, l)) = find::under_lock(project, found.clone())? else { return Ok(None) };
    if l.owner() != Some(session) {
        return Ok(None);
    }
    let waiting = if report.before_the_first { Waiting::Elsewhere } else { Waiting::Here };
    let Outcome::Ruled(ruled) = rule(&stop, locked, l, waiting)? else { return Ok(None) };
    let line = match ruled.ruling.next {
        Next::GoesOn { .. } => gate_messages::for_person(&ruled.gathered.evidence).filter(|line| !line.is_empty()),
        _ => ruled.note,
    };
    let line = ruled.more.into_iter().chain(line).reduce(|all, one| format!("{all}\n{one}"));
    Ok(Some(RuledSession { ruling: ruled.ruling, evidence: ruled.gathered.evidence, line, file: ruled.l.file, state: ruled.l.state }))
}
