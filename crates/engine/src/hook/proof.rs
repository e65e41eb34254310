//! The proof of one stop: its loop's gates are measured without the lock, because that may take long and a cancel must not wait.

use std::{fs::File, sync::Arc, time::Instant};

use ralph_core::{
    gate::{Check, Finding, Gate, Proof, only_waits},
    journal::{Event, Parked, State},
    judge::{Evidence, Next, judge},
    loops::LoopFile,
    time::millis,
    unproven,
};

use crate::{
    forge,
    gates::{
        self, Context, Want, Watch,
        declared::{self, Declared},
        guard,
        usual::{self, Time},
        wait::{self, Pauses, Waited},
    },
    hook::{Call, evidence::gather, round, select, standstill, waiter},
    store::{
        Error, journal,
        locked::{Locked, Loop},
        loops::{self, Found},
        project::Project,
        turn,
    },
    sys::clock,
};

/// What was measured for one stop.
#[derive(Debug, Default)]
pub(super) struct Measured {
    findings: Vec<Finding>,
    suspicions: Vec<String>,
    /// How long what is decided elsewhere was waited for.
    waited_ms: u64,
    /// The stop was ruled on before, and parked.
    is_after_a_wait: bool,
    /// The commit and the files that it was measured on, where somebody asks.
    pub(super) tree: Option<String>,
}

impl Measured {
    /// Of a loop that has nothing to prove.
    pub(super) fn of_tree(tree: Option<String>) -> Self {
        Measured { tree, ..Measured::default() }
    }

    /// Whether all that has to be proven is.
    pub(super) fn holds(&self) -> bool {
        Proof::of(&self.findings) == Proof::Holds
    }

    /// Puts it into the evidence.
    pub(super) fn join(self, evidence: &mut Evidence, unknown_before: u64) {
        evidence.gates = self.findings;
        evidence.suspicions = self.suspicions;
        evidence.waited_ms = self.waited_ms;
        // What is left out while something else is waited for is not unknown: it has its turn afterwards.
        let is_asked = (evidence.claims() && !evidence.waits()) || evidence.asked_in_vain();
        let is_unknown = is_asked && Proof::of(&evidence.gates) == Proof::Unknown;
        evidence.unknown_rounds = if is_unknown { unknown_before.saturating_add(1) } else { 0 };
    }

    /// What the loop was parked for, where this was measured after the wait for it.
    pub(super) fn after<'s>(&self, state: &'s State) -> Option<&'s Parked> {
        state.parked.as_ref().filter(|_| self.is_after_a_wait)
    }
}

/// The right to measure a loop's gates, where it has any: one hook at a time, whoever reports the stop. Where there is no place for a lock, hooks of one
/// stop measure at the same time, and the first one to end answers for all.
pub(super) fn turn(call: &Call, seen: &Found) -> Result<Option<File>, Error> {
    let gated = seen.parsed.as_ref().is_ok_and(|file| declared::may_ask(&call.project, file));
    if gated { turn::take(&call.project, &seen.id(), call.patience()) } else { Ok(None) }
}

/// Who waits for what is decided elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// This hook, unless another one does beside it.
    Here,
    /// Nobody any more: this process has waited.
    IsOver,
    /// The runner that started the session: it judges the round afterwards.
    Elsewhere,
}

/// Measures what the loop has to prove. `None`: there is nothing left to answer.
pub(super) fn measure<'p>(
    call: &'p Call,
    locked: Locked<'p>,
    l: Loop,
    declared: &Declared,
    waiting: Waiting,
) -> Result<Option<(Locked<'p>, Loop, Measured)>, Error> {
    if !call.is_ruled_on(&l.file) {
        return Ok(Some((locked, l, Measured { findings: gates::unasked(&declared.gates), ..Measured::default() })));
    }
    drop(locked);
    // A loop that nobody started with ralph begins, for all that ralph knows, with its first stop.
    guard::note_start(&call.project, &l.id, declared);
    if declared.gates.iter().any(Gate::is_decided_elsewhere) {
        forge::note_subject(&call.project, &l.id, l.file.began(), Instant::now() + call.time_left());
    }
    let found = l.found.clone();
    let is_parked = |found: Found| journal::live_state(&call.project, &found).is_parked_by(&call.event.stop_fingerprint());
    let is_of_use =
        || waiting != Waiting::IsOver || loops::reread(&call.project, found.clone()).is_ok_and(|found| found.is_some_and(is_parked));
    let wanted = || (call.round.is_some() || loops::is_wanted(&found)) && call.is_awaited() && is_of_use();
    let measured = match waiting {
        Waiting::Here => until_nothing_waits(call, &l, declared, &wanted)?,
        Waiting::Elsewhere => Looking::at(call, &l, declared, &wanted).measure(),
        Waiting::IsOver => {
            let waited = l.state.parked.as_ref().map_or(0, |parked| clock::now() - parked.since);
            let measured = Looking::at(call, &l, declared, &wanted).measure();
            Measured { is_after_a_wait: true, waited_ms: u64::try_from(waited).unwrap_or(0), ..measured }
        }
    };
    Ok(again(call, l.found, waiting)?.map(|(locked, l)| (locked, l, measured)))
}

/// The loop under the lock again, after something that took long. `None`: nobody waits for the answer any more, or the loop is gone or another's.
pub(super) fn again(call: &Call, found: Found, waiting: Waiting) -> Result<Option<(Locked<'_>, Loop)>, Error> {
    if !call.is_awaited() {
        return Ok(None);
    }
    let mut l = select::under_lock(&call.project, found.clone())?;
    if l.is_none() && loops::reread(&call.project, found.clone())?.is_some_and(|now| now.parsed.is_err()) {
        // Somebody is writing into it just now: a stop that is let through for that would end nobody's loop, and hold nobody either.
        let settled = Locked::acquire(&call.project)?.settled(found)?;
        l = settled.map(|found| select::under_lock(&call.project, found)).transpose()?.flatten();
    }
    Ok(l.filter(|(_, l)| l.owner().is_none() || is_of_this_client(call, l, waiting)))
}

/// Measures, and where there is nothing to do but to wait, waits within the hook's time until there is something else to rule. All is measured again
/// then: what held before may not hold any more, and something else may be asked for.
fn until_nothing_waits(call: &Call, l: &Loop, declared: &Declared, wanted: &(dyn Fn() -> bool + Sync)) -> Result<Measured, Error> {
    let looking = Looking::at(call, l, declared, wanted);
    let mut measured = looking.measure();
    if !looking.has_to_wait(&measured.findings) || !call.may_wait() || waiter::takes_over(call, &l.id) {
        return Ok(measured);
    }
    let began = Instant::now();
    let mut pauses = Pauses::default();
    let mut waited = looking.until_decided(&measured.findings, &mut pauses);
    while waited == Waited::Decided && !waiter::is_there(call, &l.id) {
        let Some((_, l)) = select::under_lock(&call.project, l.found.clone())? else { break };
        let declared = declared::of_loop(&call.project, &l.file);
        let looking = Looking::at(call, &l, &declared, wanted);
        measured = looking.measure();
        if !looking.has_to_wait(&measured.findings) {
            break;
        }
        waited = looking.until_decided(&measured.findings, &mut pauses);
    }
    Ok(Measured { waited_ms: millis(began.elapsed()).max(1), ..measured })
}

/// Whether a loop is this session's; or, for one that waited, that of the session that `/clear` began in the same client.
pub(super) fn is_of_this_client(call: &Call, l: &Loop, waiting: Waiting) -> bool {
    let has_waited = waiting == Waiting::IsOver && l.state.client_pid.is_some() && l.state.client_pid == Call::client_pid();
    l.owner() == call.event.session() || has_waited
}

/// Looks at what a loop has to prove, without the lock.
pub(super) struct Looking<'a> {
    call: &'a Call,
    l: &'a Loop,
    declared: &'a Declared,
    /// The agent's last message.
    text: String,
    wants_proof: bool,
    /// Whether anybody still wants to know.
    wanted: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Looking<'a> {
    pub(super) fn at(call: &'a Call, l: &'a Loop, declared: &'a Declared, wanted: &'a (dyn Fn() -> bool + Sync)) -> Self {
        let gathered = gather(call, l, clock::now());
        Looking { call, l, declared, text: gathered.text, wants_proof: gathered.evidence.wants_proof(true), wanted }
    }

    fn measure(&self) -> Measured {
        let cancelled = || !(self.wanted)();
        let mut findings = self.declared.problems.clone();
        let start = guard::Start::of(&self.call.project, &self.l.id);
        findings.extend(start.gone(self.declared));
        let acts = self.wants_proof && findings.is_empty() && !self.is_doubtful(&start);
        let ctx = Context { acts, ..self.context(&cancelled) };
        findings.extend(gates::measure(&self.declared.gates, if self.wants_proof { Want::Everything } else { Want::Cheap }, &ctx));
        let suspicions = if self.wants_proof { start.weigh(&self.call.project, self.declared, &mut findings) } else { Vec::new() };
        let tree = if standstill::is_due(self.call, self.l) { standstill::tree(&ctx) } else { None };
        Measured { findings, suspicions, tree, ..Measured::default() }
    }

    /// Whether the guard keeps the loop from ending, so that nothing may be done that cannot be undone.
    fn is_doubtful(&self, start: &guard::Start) -> bool {
        let does_something = self.declared.gates.iter().any(|gate| gate.acts() && !matches!(gate.check, Check::Command(_)));
        does_something && start.blocks(&self.call.project, self.declared)
    }

    fn context<'c>(&'c self, cancelled: &'c (dyn Fn() -> bool + Sync)) -> Context<'c> {
        let session = self.call.event.session().map(str::to_owned);
        let checking = self.call.round.as_ref().map(|round| Arc::clone(&round.checking));
        let progress = Progress { project: self.call.project.clone(), found: self.l.found.clone(), session, checking };
        Context {
            message: &self.text,
            cancelled,
            watch: Arc::new(progress),
            keep_going: self.declared.keep_going,
            ..Context::new(&self.call.project, &self.l.id, self.call.time_left())
        }
    }

    /// Whether a ruling now would park the loop.
    fn has_to_wait(&self, findings: &[Finding]) -> bool {
        // Mostly there is nothing to wait for, and then nothing is read again.
        if !only_waits(findings) {
            return false;
        }
        let mut evidence = gather(self.call, self.l, clock::now()).evidence;
        evidence.gates = findings.to_vec();
        judge(&evidence).next == Next::Parks
    }

    /// Waits for these findings to change, for as long as this process may.
    pub(super) fn until_decided(&self, findings: &[Finding], pauses: &mut Pauses) -> Waited {
        let event = Event::Waiting { what: unproven::short(findings) };
        note(&self.call.project, &self.l.found, self.call.event.session(), event);
        let waiting = wait::waiting(&self.declared.gates, findings);
        let cancelled = || !(self.wanted)();
        let over = || self.is_outdated() || !self.has_to_wait(findings) || waiter::is_there(self.call, &self.l.id);
        wait::until_decided(
            &waiting,
            self.call.budget(),
            pauses,
            || self.context(&cancelled),
            &|| cancelled() || !self.call.may_wait(),
            &over,
        )
    }

    /// Whether the loop, or what it has to prove, has changed since.
    fn is_outdated(&self) -> bool {
        let Ok(Some(now)) = loops::reread(&self.call.project, self.l.found.clone()) else { return true };
        let asks_the_same = |file: &LoopFile| declared::of_loop(&self.call.project, file) == *self.declared;
        !now.is_same(&self.l.found) || !now.parsed.as_ref().is_ok_and(asks_the_same)
    }
}

/// Writes into the loop's journal what goes on, for whoever looks. The verdict is what counts; a journal that cannot be written is told by the ruling.
fn note(project: &Project, found: &Found, session: Option<&str>, event: Event) {
    let write = || {
        let locked = Locked::acquire(project).ok()?;
        let mut l = locked.open(loops::reread(project, found.clone()).ok()??).ok()?;
        locked.record(&mut l, clock::now(), session, event).ok()
    };
    let _ = write();
}

/// Tells the journal which command runs, for whoever looks.
struct Progress {
    project: Project,
    found: Found,
    session: Option<String>,
    /// Whoever looks on at this very moment.
    checking: Option<round::Checking>,
}

impl Watch for Progress {
    fn begins(&self, gate: &Gate, time: Time) {
        let Check::Command(command) = &gate.check else { return };
        if let Some(checking) = &self.checking {
            checking(&gate.name, time);
        }
        let event = Event::Checking { gate: gate.name.clone(), command: usual::shown(command), limit_ms: millis(time.limit) };
        note(&self.project, &self.found, self.session.as_deref(), event);
    }
}
