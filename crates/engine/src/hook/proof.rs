//! The proof of one stop: its loop's gates are measured without the lock, because that may take long and a cancel must not wait.

use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
    time::Duration,
};

use ralph_core::{
    gate::{Check, Finding, Gate, Proof},
    journal::Event,
    judge::Evidence,
    time::millis,
    words::opening,
};

use crate::{
    gates::{
        self, Context, Want, Watch,
        declared::{self, Declared},
        guard,
    },
    hook::{Call, evidence::gather, select, standstill},
    store::{
        Error,
        locked::{Locked, Loop},
        loops::{self, Found},
        project::Project,
    },
    sys::{clock, files},
};

/// What was measured for one stop.
#[derive(Debug, Default)]
pub(super) struct Measured {
    findings: Vec<Finding>,
    suspicions: Vec<String>,
    /// The commit and the files that it was measured on, where somebody asks.
    pub(super) tree: Option<String>,
}

impl Measured {
    /// Of a loop that has nothing to prove.
    pub(super) fn of_tree(tree: Option<String>) -> Self {
        Measured { tree, ..Measured::default() }
    }

    /// Puts it into the evidence.
    pub(super) fn join(self, evidence: &mut Evidence, unknown_before: u64) {
        evidence.gates = self.findings;
        evidence.suspicions = self.suspicions;
        let is_unknown = evidence.claims() && Proof::of(&evidence.gates) == Proof::Unknown;
        evidence.unknown_rounds = if is_unknown { unknown_before.saturating_add(1) } else { 0 };
    }
}

/// The right to measure a loop's gates, where it has any: one hook at a time, whoever reports the stop. Where there is no place for a lock, hooks of one
/// stop measure at the same time, and the first one to end answers for all.
pub(super) fn turn(call: &Call, seen: &Found) -> Result<Option<File>, Error> {
    let gated = seen.parsed.as_ref().is_ok_and(|file| declared::may_ask(&call.project, file));
    let Some(folder) = gated.then(|| call.project.folder("locks").ok()).flatten() else { return Ok(None) };
    remove_old_locks(&folder);
    let path = folder.join(format!("{}.lock", seen.id()));
    let Ok(file) = files::options().write(true).create(true).truncate(false).open(&path) else { return Ok(None) };
    match files::wait_for_lock(&file, call.patience()) {
        Ok(true) => Ok(Some(file)),
        Ok(false) => Err(Error::Busy),
        Err(_) => Ok(None),
    }
}

/// Removes the locks of loops that nobody can still be measuring. A lock is never written, so its age is that of the loop's first stop; the lock of a
/// loop that lives on is made anew.
fn remove_old_locks(folder: &Path) {
    const OLD: Duration = Duration::from_hours(30 * 24);
    let is_old = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_file() && files::is_older(&meta, OLD));
    let locks = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in locks.filter(|path| path.extension().is_some_and(|e| e == "lock") && is_old(path)) {
        let is_free = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if is_free {
            let _ = fs::remove_file(path);
        }
    }
}

/// Measures what the loop has to prove. `None`: there is nothing left to answer.
pub(super) fn measure<'p>(
    call: &'p Call,
    locked: Locked<'p>,
    l: Loop,
    declared: &Declared,
) -> Result<Option<(Locked<'p>, Loop, Measured)>, Error> {
    let gathered = gather(call, &l, clock::now());
    if !l.file.active {
        return Ok(Some((locked, l, Measured { findings: gates::unasked(&declared.gates), ..Measured::default() })));
    }
    let wants_proof = gathered.evidence.wants_proof(true);
    drop(locked);
    // A loop that nobody started with ralph begins, for all that ralph knows, with its first stop.
    guard::note_start(&call.project, &l.id, declared);
    let found = l.found.clone();
    let wanted = || loops::is_wanted(&found);
    let progress = Progress { project: call.project.clone(), found: found.clone(), session: call.event.session().map(str::to_owned) };
    let ctx = Context {
        message: &gathered.text,
        cancelled: &|| !wanted() || !call.is_awaited(),
        watch: Arc::new(progress),
        keep_going: declared.keep_going,
        ..Context::new(&call.project, &l.id, call.time_left())
    };
    let mut findings = declared.problems.clone();
    let start = guard::Start::of(&call.project, &l.id);
    findings.extend(start.gone(declared));
    findings.extend(gates::measure(&declared.gates, if wants_proof { Want::Everything } else { Want::Cheap }, &ctx));
    let suspicions = if wants_proof { start.weigh(&call.project, declared, &mut findings) } else { Vec::new() };
    let tree = if l.file.stall_rounds > 0 { standstill::tree(&ctx) } else { None };
    if !call.is_awaited() {
        return Ok(None);
    }
    let again = select::under_lock(&call.project, l.found)?;
    let own = again.filter(|(_, l)| l.owner().is_none() || l.owner() == call.event.session());
    Ok(own.map(|(locked, l)| (locked, l, Measured { findings, suspicions, tree })))
}

/// Tells the journal which command runs, for whoever looks.
struct Progress {
    project: Project,
    found: Found,
    session: Option<String>,
}

impl Watch for Progress {
    fn begins(&self, gate: &Gate, limit: Duration) {
        let Check::Command(command) = &gate.check else { return };
        let event = Event::Checking { gate: gate.name.clone(), command: opening(&command.run.shown(), 200), limit_ms: millis(limit) };
        let note = || {
            let locked = Locked::acquire(&self.project).ok()?;
            let mut l = locked.open(loops::reread(&self.project, self.found.clone()).ok()??).ok()?;
            locked.record(&mut l, clock::now(), self.session.as_deref(), event).ok()
        };
        // The verdict is what counts; a journal that cannot be written is told by the ruling.
        let _ = note();
    }
}
