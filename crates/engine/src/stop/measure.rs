//! Measures what a loop has to prove, without the project's lock: that may take long, and a cancel must not wait.

use std::{sync::Arc, time::Instant};

use ralph_core::{
    gate::{Check, Finding, Gate, Proof, only_waits},
    journal::{Event, Parked, State},
    judge::{Next, Said, judge},
    loops::LoopFile,
    messages::gate_messages,
    text::time::{Millis, millis},
};

use super::{Checking, Stop, find, gather, hear, notes, standstill, waiting_hook};
use crate::{
    gates::{
        self, Context, Want, Watch,
        declared::{self, Declared},
        durations::{self, Time},
        forge, guard,
        wait::{Pauses, Waited},
    },
    store::{
        Error, journal,
        loops::{self, LoopOnDisk},
        measure_lock,
        project::Project,
        project_lock::{Locked, Loop},
    },
    sys::{clock, lock::Lock},
};

/// The result of measuring one stop.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(super) findings: Vec<Finding>,
    pub(super) suspicions: Vec<String>,
    /// When measuring began.
    pub(super) began: Option<Millis>,
    /// How long this process waited for what is decided elsewhere.
    pub(super) waited_ms: u64,
    /// The stop was ruled on before, and parked.
    is_after_a_wait: bool,
    /// The commit and the files that it was measured on, where the loop limits iterations that change nothing.
    pub(super) tree: Option<String>,
}

impl Measured {
    /// Whether all that has to be proven is.
    pub(super) fn holds(&self) -> bool {
        Proof::of(&self.findings) == Proof::Holds
    }

    /// The park that was waited for, if this was measured after it.
    pub(super) fn after<'s>(&self, state: &'s State) -> Option<&'s Parked> {
        state.parked.as_ref().filter(|_| self.is_after_a_wait)
    }
}

/// The lock on measuring a loop's gates, if it has any: one process at a time. Where there is no place for a lock, hooks of one stop measure at the same time,
/// and the first one to end answers for all.
pub(crate) fn lock(stop: &Stop<'_>, seen: &LoopOnDisk) -> Result<Option<Lock>, Error> {
    let gated = seen.parsed.as_ref().is_ok_and(|file| declared::may_ask(stop.project, file));
    if gated { measure_lock::take(stop.project, &seen.id(), stop.deadline.patience()) } else { Ok(None) }
}

/// Who waits for what is decided elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// This hook, unless another one does beside it.
    Here,
    /// No process any more: this one has waited.
    IsOver,
    /// The run that started the session: it judges the iteration afterwards.
    Elsewhere,
}

/// Measures what the loop has to prove, and whether anything changed, as far as its settings ask. `None`: there is nothing left to answer.
pub(super) fn measure<'p>(
    stop: &'p Stop<'p>,
    locked: Locked<'p>,
    l: Box<Loop>,
    waiting: Waiting,
) -> Result<Option<(Locked<'p>, Box<Loop>, Measured)>, Error> {
    let declared = declared::of_loop(stop.project, &l.for_gates(&l.file));
    // A proof that was once asked for does not vanish with the file that asked.
    let gated = !declared.is_empty() || l.state.gated;
    if !gated && !standstill::is_due(stop, &l) {
        return Ok(Some((locked, l, Measured::default())));
    }
    if !stop.counts(&l.file) {
        return Ok(Some((locked, l, Measured { findings: gates::unasked(&declared.gates), ..Measured::default() })));
    }
    drop(locked);
    let began = Some(clock::now());
    // A loop that was not started with ralph begins, for all that ralph knows, with its first stop.
    let noted = l.state.noted || (gated && guard::note_start(stop.project, &l.id, &declared));
    let measured =
        if gated { gates_of(stop, &l, &declared, waiting)? } else { Measured { tree: standstill::look(stop, &l), ..Measured::default() } };
    let measured = Measured { began, ..measured };
    Ok(again(stop, l.found, waiting)?.map(|(locked, mut l)| {
        l.state.noted = noted;
        (locked, l, measured)
    }))
}

fn gates_of(stop: &Stop<'_>, l: &Loop, declared: &Declared, waiting: Waiting) -> Result<Measured, Error> {
    if declared.gates.iter().any(Gate::is_decided_elsewhere) {
        forge::note_subject(stop.project, &l.id, l.file.began(), Instant::now() + stop.deadline.time_left());
    }
    let is_parked = |found: LoopOnDisk| journal::live_state(stop.project, &found).is_parked_by(&stop.fingerprint);
    let is_of_use =
        || waiting != Waiting::IsOver || loops::reread(stop.project, l.found.clone()).is_ok_and(|found| found.is_some_and(is_parked));
    let wanted = || (stop.report().is_some() || loops::is_wanted(&l.found)) && stop.is_awaited() && is_of_use();
    let measurement = Measurement::of(stop, l, declared, &wanted);
    Ok(match waiting {
        Waiting::Here => until_nothing_waits(&measurement)?,
        Waiting::Elsewhere => measurement.take(),
        Waiting::IsOver => {
            let waited = l.state.parked.as_ref().map_or(0, |parked| clock::now() - parked.since);
            Measured { is_after_a_wait: true, waited_ms: u64::try_from(waited).unwrap_or(0), ..measurement.take() }
        }
    })
}

/// The loop under the lock again, after something that took long. `None`: no answer is wanted any more, or the loop is gone or another session's.
fn again<'p>(stop: &Stop<'p>, found: LoopOnDisk, waiting: Waiting) -> Result<Option<(Locked<'p>, Box<Loop>)>, Error> {
    if !stop.is_awaited() {
        return Ok(None);
    }
    let mut l = find::under_lock(stop.project, found.clone())?;
    if l.is_none() && loops::reread(stop.project, found.clone())?.is_some_and(|now| now.parsed.is_err()) {
        // It is being written just now: to let the stop through for that would end no loop, and hold none either.
        let settled = Locked::acquire(stop.project)?.settled(found)?;
        l = settled.map(|found| find::under_lock(stop.project, found)).transpose()?.flatten();
    }
    Ok(l.filter(|(_, l)| l.owner().is_none() || is_of_this_client(stop, l, waiting)))
}

/// Measures, and where there is nothing to do but to wait, waits within this process's time until there is something else to rule. All is measured again
/// then: what held before may not hold any more, and something else may be asked for.
fn until_nothing_waits(measurement: &Measurement<'_>) -> Result<Measured, Error> {
    let Measurement { stop, l, wanted, .. } = *measurement;
    let mut measured = measurement.take();
    if !measurement.has_to_wait(&measured.findings) || !stop.may_wait() || waiting_hook::takes_over(stop, &l.id) {
        return Ok(measured);
    }
    let began = Instant::now();
    let mut pauses = Pauses::default();
    let mut waited = measurement.until_decided(&measured.findings, &mut pauses);
    while waited == Waited::Decided && !waiting_hook::is_there(stop, &l.id) {
        let Some((_, l)) = find::under_lock(stop.project, l.found.clone())? else { break };
        let declared = declared::of_loop(stop.project, &l.for_gates(&l.file));
        let measurement = Measurement::of(stop, &l, &declared, wanted);
        measured = measurement.take();
        if !measurement.has_to_wait(&measured.findings) {
            break;
        }
        waited = measurement.until_decided(&measured.findings, &mut pauses);
    }
    Ok(Measured { waited_ms: millis(began.elapsed()).max(1), ..measured })
}

/// Whether a loop is this session's; or, for one that waited, that of the session that `/clear` began in the same client.
pub(crate) fn is_of_this_client(stop: &Stop<'_>, l: &Loop, waiting: Waiting) -> bool {
    let has_waited = waiting == Waiting::IsOver && l.state.client_pid.is_some() && l.state.client_pid == stop.holder_pid();
    l.owner() == stop.session() || has_waited
}

/// One look at what a loop has to prove.
pub(crate) struct Measurement<'a> {
    stop: &'a Stop<'a>,
    l: &'a Loop,
    declared: &'a Declared,
    /// The agent's last message.
    text: String,
    wants_proof: bool,
    /// Whether the result is still wanted.
    wanted: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Measurement<'a> {
    pub(crate) fn of(stop: &'a Stop<'a>, l: &'a Loop, declared: &'a Declared, wanted: &'a (dyn Fn() -> bool + Sync)) -> Self {
        let heard = hear::hear(stop, l, clock::now());
        let said = Said {
            claim: &heard.claim(stop, l),
            has_promise: l.file.completion_promise.is_some(),
            before_the_first: stop.report().is_some_and(|report| report.before_the_first),
            // Whether the message is needed is known once the gates are.
            is_disturbed: heard.interrupted || heard.told_to_stop || !stop.background.is_empty(),
            notes_waiting: notes::waiting(stop, &l.state),
        };
        let wants_proof = stop.counts(&l.file) && said.says_done();
        Measurement { stop, l, declared, text: heard.text, wants_proof, wanted }
    }

    fn take(&self) -> Measured {
        let cancelled = || !(self.wanted)();
        let mut findings = self.declared.problems.clone();
        let start = guard::Start::of(self.stop.project, &self.l.id);
        findings.extend(start.gone(self.declared));
        let acts = self.wants_proof && findings.is_empty() && !self.is_doubtful(&start);
        let ctx = Context { acts, ..self.context(&cancelled) };
        findings.extend(gates::measure(&self.declared.gates, if self.wants_proof { Want::Everything } else { Want::Cheap }, &ctx));
        let mut weigh = || start.weigh(self.stop.project, self.declared, Some(&ctx), &mut findings);
        let suspicions = if self.wants_proof { weigh() } else { Vec::new() };
        let tree = if standstill::is_due(self.stop, self.l) { standstill::of(&ctx) } else { None };
        Measured { findings, suspicions, tree, ..Measured::default() }
    }

    /// Whether the guard keeps the loop from ending, so that nothing may be done that cannot be undone.
    fn is_doubtful(&self, start: &guard::Start) -> bool {
        let does_something = self.declared.gates.iter().any(|gate| gate.acts() && !matches!(gate.check, Check::Command(_)));
        does_something && start.blocks(self.stop.project, self.declared)
    }

    fn context<'c>(&'c self, cancelled: &'c (dyn Fn() -> bool + Sync)) -> Context<'c> {
        let session = self.stop.session().map(str::to_owned);
        let checking = self.stop.report().map(|report| Arc::clone(&report.checking));
        let progress = Progress { project: self.stop.project.clone(), found: self.l.found.clone(), session, checking };
        Context {
            message: &self.text,
            cancelled,
            watch: Arc::new(progress),
            keep_going: self.declared.keep_going,
            since: Some(self.since()),
            ..Context::new(self.stop.project, &self.l.id, self.stop.deadline.time_left())
        }
    }

    /// From when on a pass counts for this loop: it was started or resumed then, or a run is about to begin.
    fn since(&self) -> Millis {
        let is_new = self.stop.report().is_some_and(|report| report.before_the_first);
        if is_new {
            return clock::now();
        }
        // Nothing is armed while something outside decides, and that is no resume.
        let parked = || self.l.state.parked.as_ref().and_then(|_| self.l.file.began());
        self.l.state.armed_since.or_else(parked).unwrap_or_else(clock::now)
    }

    /// Whether a ruling now would park the loop.
    fn has_to_wait(&self, findings: &[Finding]) -> bool {
        // Mostly there is nothing to wait for, and then nothing is read again.
        if !only_waits(findings) {
            return false;
        }
        let now = clock::now();
        let measured = Measured { findings: findings.to_vec(), ..Measured::default() };
        let gathered = gather::gather(self.stop, self.l, hear::hear(self.stop, self.l, now), measured, now);
        judge(&gathered.evidence).next == Next::Parks
    }

    /// Waits for these findings to change, for as long as this process may.
    pub(crate) fn until_decided(&self, findings: &[Finding], pauses: &mut Pauses) -> Waited {
        let event = Event::Waiting { what: gate_messages::short(findings) };
        note(self.stop.project, &self.l.found, self.stop.session(), event);
        let waiting = gates::wait::waiting(&self.declared.gates, findings);
        let cancelled = || !(self.wanted)();
        let over = || self.is_outdated() || !self.has_to_wait(findings) || waiting_hook::is_there(self.stop, &self.l.id);
        gates::wait::until_decided(
            &waiting,
            self.stop.deadline.instant(),
            pauses,
            || self.context(&cancelled),
            &|| cancelled() || !self.stop.may_wait(),
            &over,
        )
    }

    /// Whether the loop, or what it has to prove, has changed since.
    fn is_outdated(&self) -> bool {
        let Ok(Some(now)) = loops::reread(self.stop.project, self.l.found.clone()) else { return true };
        let asks_the_same = |file: &LoopFile| declared::of_loop(self.stop.project, &self.l.for_gates(file)) == *self.declared;
        !now.is_same(&self.l.found) || !now.parsed.as_ref().is_ok_and(asks_the_same)
    }
}

/// Writes into the loop's journal what goes on, for people who look. If that fails, the ruling will say so.
fn note(project: &Project, found: &LoopOnDisk, session: Option<&str>, event: Event) {
    let write = || {
        let locked = Locked::acquire(project).ok()?;
        let mut l = locked.open(loops::reread(project, found.clone()).ok()??).ok()?;
        locked.record(&mut l, clock::now(), session, event).ok()
    };
    let _ = write();
}

/// Tells the journal which command runs.
struct Progress {
    project: Project,
    found: LoopOnDisk,
    session: Option<String>,
    /// Hears it at once.
    checking: Option<Checking>,
}

impl Watch for Progress {
    fn begins(&self, gate: &Gate, time: Time) {
        let Check::Command(command) = &gate.check else { return };
        if let Some(checking) = &self.checking {
            checking(&gate.name, time);
        }
        let event = Event::Checking { gate: gate.name.clone(), command: durations::shown(command), limit_ms: millis(time.limit) };
        note(&self.project, &self.found, self.session.as_deref(), event);
    }
}
