//! Loops as people and programs look at them: read-only, without the lock.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_core::{
    gate::{Finding, Kind},
    history::{Denials, History},
    journal::{Event, Holder, Record, Spending, State},
    loops::{LoopFile, MAX_FILE_BYTES},
    money,
    text::{
        self,
        time::{self, Millis},
    },
};

use crate::{
    gates::{self, declared, durations},
    git::tracked::{self, Origin},
    stop::find::is_unreleased_checkout,
    store::{
        journal::{self, owner_may_live},
        loops::{self, LoopOnDisk},
        measure_lock,
        project::Project,
        seal, waiter,
    },
    sys::{clock, files},
};

use crate::view::{
    model::{Carrier, Checking, GateView, Status, View, Waiter, Waits},
    person,
};

/// A loop in the archive.
#[derive(Debug, Clone)]
pub struct Archived {
    pub id: String,
    pub name: String,
    pub path: PathBuf,
    /// RFC 3339; empty if the journal does not tell.
    pub ended_at: String,
    /// A loop that was resumed and ended again has several files.
    pub version: u32,
}

/// The session that a loop belongs to.
pub fn owner(project: &Project, found: &LoopOnDisk) -> Option<String> {
    found.session().or_else(|| journal::live_state(project, found).owner)
}

/// The loops that have a file, in order.
pub fn live(project: &Project) -> Vec<View> {
    loops::known(project).iter().map(|found| view_of(project, found)).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Reads what the project declares, and asks git.
    Whole,
    /// Reads only the loop's file and the end of its journal.
    Quick,
}

pub fn view_of(project: &Project, found: &LoopOnDisk) -> View {
    look(project, found, Look::Whole)
}

/// The same in a moment: the gates are those that were measured lately, and git is not asked where a loop came from.
pub fn quick(project: &Project, found: &LoopOnDisk) -> View {
    look(project, found, Look::Quick)
}

fn look(project: &Project, found: &LoopOnDisk, look: Look) -> View {
    let id = found.id();
    let (record, state) = journal::live(project, found);
    let owner = found.session().or_else(|| state.owner.clone());
    let status = match &found.parsed {
        Err(_) => Status::Corrupt,
        Ok(file) if !file.active => Status::Paused,
        Ok(_) if owner.is_none() && look == Look::Whole && is_unreleased_checkout(project, found, state.released) => Status::Tracked,
        // It may have come with the repository.
        Ok(_) if owner.is_none() && look == Look::Quick && !state.released => Status::Tracked,
        Ok(_) if owner.is_none() => Status::Waiting,
        Ok(_) if !owner_may_live(&state) => Status::LeftBehind,
        Ok(_) if state.parked.is_some() => Status::Parked,
        Ok(_) => Status::Active,
    };
    let mut view = of_state(project, &id, &found.name, status, &state, record.as_ref());
    view.runner_pid = journal::runner_of(&state).map(|runner| runner.pid);
    view.carrier = match view.runner_pid {
        Some(_) => Carrier::Runner,
        None if matches!(status, Status::Active | Status::Parked) && matches!(state.holder(owner.as_deref()), Holder::Session(_)) => {
            Carrier::Session
        }
        None => Carrier::Nobody,
    };
    view.session = owner;
    view.file = Some(found.path.clone());
    view.problem = found.parsed.as_ref().err().map(ToString::to_string);
    if let Ok(file) = &found.parsed {
        fill(&mut view, file);
        let past = match look {
            Look::Whole => journal::history(&view.journal),
            Look::Quick => journal::recent_history(&view.journal),
        };
        view.gates = match look {
            Look::Whole => gates(project, &past, file),
            Look::Quick => past.findings().map(of_finding).collect(),
        };
        let context = past.last_stop.as_ref().map(|stop| &stop.evidence).filter(|e| e.max_context > 0 && file.max_context() > 0);
        view.context = context.map(|e| e.context);
        view.many_agents = past.has_many_agents();
        (view.agent, view.model) = past.last_worker().map(|worker| (Some(worker.agent), worker.model)).unwrap_or_default();
        view.denied = Denials::sorted(past.denied_in_run);
        view.paused_at = past.paused_at.filter(|_| status == Status::Paused);
        view.by_run = past.by_run;
        if view.runner_pid.is_some() || view.by_run {
            view.stall_limit = file.fresh_stall_rounds();
        }
        view.why = past.why.filter(|_| matches!(status, Status::Paused | Status::LeftBehind)).map(|why| without_the_name(&why));
        if status == Status::Tracked && look == Look::Whole {
            view.why = Some(why_not_armed(project, found).to_owned());
        }
        view.checking = record.as_ref().filter(|_| status.is_armed()).and_then(|record| checking(project, &id, record));
        view.waits = if status.is_armed() { waits(project, &id, &state, past.waiting) } else { None };
        let may_be_held = status == Status::Active && view.checking.is_none() && view.waits.is_none();
        if let Some(session) = view.session.as_deref().filter(|_| may_be_held && view.carrier == Carrier::Session) {
            let held = person::held(project, &id, session, &state);
            (view.waits, view.interrupted) = (held.waits, held.interrupted);
        }
    }
    view
}

/// Lines for a session begin with ralph's name.
fn without_the_name(why: &str) -> String {
    text::opening(why.strip_prefix("Ralph: ").unwrap_or(why), 600)
}

/// The gates of a loop, with their last findings.
fn gates(project: &Project, past: &History, file: &LoopFile) -> Vec<GateView> {
    let declared = declared::of_loop(project, file);
    if declared.is_empty() {
        return Vec::new();
    }
    let gates = declared.gates.iter().map(|gate| match past.findings().find(|f| f.gate == gate.name) {
        _ if gates::is_untrusted(gate) => of_finding(&gates::untrusted(gate)),
        Some(finding) => of_finding(&Finding { needs: None, ..finding.clone() }),
        None => GateView { name: gate.name.clone(), verdict: None, what: "not measured yet".to_owned(), needs: None },
    });
    let guard = past.findings().filter(|f| f.kind == Kind::Guard).map(of_finding);
    declared.problems.iter().map(of_finding).chain(gates).chain(guard).collect()
}

fn of_finding(f: &Finding) -> GateView {
    GateView { name: f.gate.clone(), verdict: Some(f.verdict), what: f.what.clone(), needs: f.needs.clone() }
}

/// The command that runs now: as long as the process that measures lives, which a hook that was interrupted does not.
fn checking(project: &Project, id: &str, record: &Record) -> Option<Checking> {
    let Event::Checking { gate, command, limit_ms } = &record.event else { return None };
    let for_ms = u64::try_from(clock::now() - time::parse(&record.at)?).ok()?;
    let is_running = for_ms < limit_ms + 10_000 && measure_lock::is_taken(project, id);
    let usual_ms = || durations::usual_ms(project, gate, command);
    is_running.then(|| Checking { gate: gate.clone(), since: record.at.clone(), for_ms, limit_ms: *limit_ms, usual_ms: usual_ms() })
}

/// The wait of a loop: parked, or with its agent at the stop.
fn waits(project: &Project, id: &str, state: &State, waiting: Option<(String, Millis)>) -> Option<Waits> {
    let passed = |since: Millis| u64::try_from(clock::now() - since).unwrap_or(0);
    if let Some(parked) = &state.parked {
        let by = match waiter::of(project, id) {
            _ if journal::runner_of(state).is_some() => Waiter::Runner,
            Some(_) => Waiter::Session,
            None => Waiter::Nobody,
        };
        let until = parked.until.map(time::format);
        return Some(Waits { what: parked.what.clone(), since: time::format(parked.since), for_ms: passed(parked.since), until, by });
    }
    let (what, since) = waiting?;
    // A hook that was killed, or interrupted, waits no more.
    measure_lock::is_taken(project, id).then(|| Waits {
        what,
        since: time::format(since),
        for_ms: passed(since),
        until: None,
        by: Waiter::Hook,
    })
}

fn fill(view: &mut View, file: &LoopFile) {
    view.iteration = file.iteration;
    view.max_iterations = file.max_iterations();
    view.completion_promise.clone_from(&file.completion_promise);
    view.max_ms = file.max_millis();
    view.max_usd = file.max_usd();
    view.max_tokens = file.max_tokens();
    view.max_context = file.max_context();
    view.stall_limit = file.hook_stall_rounds();
    view.warnings.clone_from(&file.warnings);
    view.prompt = text::opening(&file.prompt, 200);
}

/// Whether spending was ever reported, even if it is nothing.
fn was_heard(spending: &Spending, state: &State) -> bool {
    spending.usd_micros > 0 || !spending.files.is_empty() || state.tokens.total() > 0
}

/// The parts of a view that the loop's state has.
fn of_state(project: &Project, id: &str, name: &str, status: Status, state: &State, record: Option<&Record>) -> View {
    // Only an armed loop ages, and one whose run still works on its last iteration.
    let is_ageing = (status.is_armed() && status != Status::LeftBehind) || journal::runner_of(state).is_some();
    let now = if is_ageing { clock::now() } else { record.and_then(|r| time::parse(&r.at)).unwrap_or(0) };
    View {
        id: id.to_owned(),
        name: name.to_owned(),
        status,
        iteration: state.iteration,
        spent_ms: state.spent(now),
        spent_usd: state.spending.as_ref().filter(|spending| was_heard(spending, state)).map(|s| money::in_dollars(s.usd_micros)),
        tokens: state.tokens.total(),
        idle_rounds: state.idle_rounds,
        stalled_rounds: state.standstill.as_ref().map_or(0, |standstill| standstill.rounds),
        doubtful: state.doubtful,
        stops: state.stops,
        session: state.owner.clone(),
        last_code: state.last.as_ref().map(|l| l.ruling.code.as_str().to_owned()),
        last_event_at: record.map(|r| r.at.clone()),
        project: project.root().to_owned(),
        journal: project.journal(id),
        notes: state.notes.clone(),
        ..View::default()
    }
}

/// The loops of the archive, the one that ended last first.
pub fn archive(project: &Project) -> Vec<Archived> {
    let Ok(entries) = fs::read_dir(project.archive()) else { return Vec::new() };
    let one = |entry: fs::DirEntry| {
        let path = entry.path();
        let stem = path.file_stem()?.to_str()?;
        // `id.2.md` is the same loop, archived a second time.
        let (id, version) = stem.split_once('.').map_or((stem, 1), |(id, n)| (id, n.parse().unwrap_or(1)));
        let id = id.to_owned();
        let last = seal::last(project, &id);
        let name = last.as_ref().and_then(|r| r.state.name.clone()).unwrap_or_else(|| "main".to_owned());
        Some(Archived { name, ended_at: last.map(|r| r.at).unwrap_or_default(), id, path, version })
    };
    let mut all: Vec<Archived> = entries.flatten().filter_map(one).collect();
    // A journal without a seal can name any time, so it comes last.
    all.sort_by_cached_key(|a| std::cmp::Reverse((seal::is_known(project, &a.id), a.ended_at.clone(), a.version)));
    all
}

/// Every loop with a journal and without a file, newest first.
pub fn ended(project: &Project) -> Vec<View> {
    let live: Vec<String> = loops::known(project).iter().map(LoopOnDisk::id).collect();
    let Ok(entries) = fs::read_dir(project.own().join("journal")) else { return Vec::new() };
    let archived = archive(project);
    let one = |entry: fs::DirEntry| {
        let path = entry.path();
        let id = path.file_stem()?.to_str()?.to_owned();
        let record = if live.contains(&id) { None } else { seal::last(project, &id) }?;
        let mut view = of_state(
            project,
            &id,
            record.state.name.as_deref().unwrap_or("main"),
            Status::of_ending(record.state.ended),
            &record.state,
            Some(&record),
        );
        if let Some(file) =
            archived.iter().find(|a| a.id == id).and_then(|a| LoopFile::parse(&files::read(&a.path, MAX_FILE_BYTES).ok()?).ok())
        {
            fill(&mut view, &file);
        }
        view.had_nothing_to_do = view.status == Status::Complete && view.stops == 1 && began_with_its_proof(&path);
        Some(view)
    };
    let mut views: Vec<View> = entries.flatten().filter_map(one).collect();
    views.sort_by_cached_key(|view| std::cmp::Reverse((seal::is_known(project, &view.id), view.last_event_at.clone())));
    views
}

/// Whether everything held before a session was started.
fn began_with_its_proof(journal: &Path) -> bool {
    journal::recent_history(journal).last_stop.is_some_and(|stop| stop.evidence.before_the_first)
}

/// Why a loop without a session waits for `ralph resume`.
fn why_not_armed(project: &Project, found: &LoopOnDisk) -> &'static str {
    let root = match &found.storage {
        loops::Storage::Folder(folder) if !folder.dir.starts_with(project.root()) => &folder.dir,
        _ => project.root(),
    };
    match tracked::origin_of(root, &found.path) {
        Origin::Tracked => "git tracks its file, so it came with the repository",
        Origin::Link => "its file is a link that leads out of the project, so it is unknown who wrote it",
        Origin::Nested => "its file is in a repository of its own, so it is unknown who wrote it",
        Origin::Unknown | Origin::Here => "git could not be asked whether its file came with the repository",
    }
}
