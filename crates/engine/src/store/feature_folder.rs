//! The feature folder: a loop that has a list of features instead of a loop file (S4-1…S4-3).
//!
//! `feature_list.json` is the work, `progress.txt` beside it says how far it is, and `hook.log` gets a line for every decision. The loop's values are
//! read from the first two, so that all other code sees a loop like any other. The folder is `.claude/data/ralph-loops/current`, or the one that
//! `RALPH_LOOP_DIR` names. Each folder is a loop of its own, with an id made of its path.
//!
//! Agents write into `progress.txt`, too. A count that went back while the loop's session lives is therefore ignored: only a person ends or extends a loop.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::{
    gate::list::{List, MAX_BYTES},
    journal::{Event, State},
    judge::{Code, Decision, Ending, Message},
    loops::{
        LoopFile, LoopSettings, Value, fnv1a,
        progress_txt::{self as progress, DEFAULT_MAX_ITERATIONS, Key, Progress, Status},
    },
    text::{
        self, Problem,
        time::{self, Millis},
    },
};

use crate::{
    store::{
        Error,
        journal::owner_may_live,
        loops::{LoopOnDisk, Storage},
        project::Project,
        seal,
    },
    sys::{
        clock, env,
        exchange::{self, Swapped},
        files,
        lock::Lock,
        secrets,
    },
};

/// The loop's name in the usual folder; others add the name of their folder.
const NAME: &str = "feature-list";
/// The name of its journal; others add the name of their folder and a fingerprint of its path.
const ID: &str = "feature-list-folder";
/// The list in the folder.
pub(crate) const LIST: &str = "feature_list.json";

const USUAL: &str = ".claude/data/ralph-loops/current";

const PROGRESS: &str = "progress.txt";
const LOG: &str = "hook.log";

/// The folder below `.claude` without which there is no feature folder in its usual place.
pub(super) const WITHIN: &str = "data";

/// A longer log is put aside; one old log is kept.
const MAX_LOG: u64 = 1024 * 1024;

/// Attempts at a file that is edited at the same moment.
const ATTEMPTS: usize = 20;

/// The folder is locked only for one exchange. After this wait the exchange alone has to do.
const ALONE: Duration = Duration::from_secs(1);

/// A feature folder as it was read.
#[derive(Debug, Clone)]
pub struct Folder {
    pub dir: PathBuf,
    /// The id of its loop.
    pub id: String,
    progress: Option<Vec<u8>>,
}

impl Folder {
    /// The path of its list for the journal; `None` for the usual folder.
    pub(super) fn noted(&self) -> Option<String> {
        (self.id != ID).then(|| self.dir.join(LIST).display().to_string())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Live,
    /// Those that have ended as well.
    Any,
}

/// Where a project's feature folder would be.
pub(crate) fn place(project: &Project) -> PathBuf {
    env::loop_dir().map_or_else(|| project.root().join(USUAL), |dir| project.root().join(dir))
}

/// The path of the list in a project's feature folder, relative to the project's root if it is there.
pub(crate) fn list(project: &Project) -> String {
    let path = place(project).join(LIST);
    path.strip_prefix(project.root()).unwrap_or(&path).display().to_string()
}

/// The id of the loop in the project's feature folder.
pub(crate) fn id(project: &Project) -> String {
    names(project, &place(project)).1
}

/// Name and id of the loop in a folder. Two folders never share an id, whatever links or dots are in the path.
fn names(project: &Project, dir: &Path) -> (String, String) {
    let usual = project.root().join(USUAL);
    if dir == usual {
        return (NAME.to_owned(), ID.to_owned());
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (dir, root) = (real(dir), real(project.root()));
    if dir == real(&usual) {
        return (NAME.to_owned(), ID.to_owned());
    }
    // A project that is moved keeps its loops.
    let path = dir.strip_prefix(&root).unwrap_or(&dir);
    let called = dir.file_name().unwrap_or_default().to_string_lossy();
    let called: String = called.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(40).collect();
    let mark = format!("{:016x}", fnv1a(path.as_os_str().as_encoded_bytes()));
    (format!("{NAME}-{called}"), format!("{ID}-{called}-{}", &mark[..8]))
}

/// The other feature folders whose loops have a journal here, and that still have a list: other sessions work in them.
pub(super) fn others(project: &Project, want: Want) -> Vec<LoopOnDisk> {
    let own = id(project);
    let entries = fs::read_dir(project.own().join("journal")).into_iter().flatten().flatten();
    let of_folder = |name: &str| name.strip_suffix(".jsonl").is_some_and(|id| id.starts_with(ID) && id != own);
    let journals = entries.filter(|entry| entry.file_name().to_str().is_some_and(of_folder));
    let folder = |entry: fs::DirEntry| {
        let state = seal::last(project, entry.file_name().to_str()?.strip_suffix(".jsonl")?)?.state;
        let dir = if entry.file_name().to_str() == Some(&format!("{ID}.jsonl")) {
            project.root().join(USUAL)
        } else {
            Path::new(&state.list?).parent()?.to_owned()
        };
        let found = read_at(project, dir, want)?;
        // A journal of the project may be forged: the folder counts only if this very journal belongs to it.
        (format!("{}.jsonl", found.id()) == entry.file_name().to_str()?).then_some(found)
    };
    let mut all: Vec<LoopOnDisk> = journals.filter_map(folder).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Whether a folder looks like a project because of a feature folder inside of it.
pub(super) fn marks(root: &Path) -> bool {
    let dir = env::loop_dir().filter(|dir| dir.is_relative()).unwrap_or_else(|| USUAL.into());
    root.join(dir).join(LIST).is_file()
}

/// The loop of the project's feature folder. `None`: there is none, or it has ended.
pub(super) fn live(project: &Project) -> Option<LoopOnDisk> {
    read(project, Want::Live)
}

pub(super) fn read(project: &Project, want: Want) -> Option<LoopOnDisk> {
    read_at(project, place(project), want)
}

/// The same folder again.
pub(super) fn again(project: &Project, folder: &Folder) -> Option<LoopOnDisk> {
    read_at(project, folder.dir.clone(), Want::Live)
}

fn read_at(project: &Project, dir: PathBuf, want: Want) -> Option<LoopOnDisk> {
    let path = dir.join(LIST);
    let read = match files::read(&path, MAX_BYTES) {
        Err(e) if files::is_missing(&e) => return None,
        read => read.map_err(|e| Problem::new(None, e.to_string())),
    };
    let (name, id) = names(project, &dir);
    let (progress, read) = match files::read(&dir.join(PROGRESS), MAX_BYTES) {
        Err(e) if !files::is_missing(&e) => (None, Err(Problem::new(None, format!("{PROGRESS} cannot be read: {e}")))),
        progress => (progress.ok(), read),
    };
    let values = Progress::parse(progress.as_deref().unwrap_or_default());
    let state = seal::last_of(project, &name, &id).map(|r| r.state).unwrap_or_default();
    let list = read.as_ref().map_err(Clone::clone).and_then(|bytes| List::parse(bytes));
    let open = list.as_ref().map_or(1, |list| list.open().count());
    let max = values.settings.max_iterations.unwrap_or(DEFAULT_MAX_ITERATIONS);
    let iteration = iteration(&values, &state, open);
    let ended = match values.status {
        Some(Status::Cancelled) => true,
        Some(Status::Complete) => open == 0 || list.is_err(),
        // A higher limit of iterations goes on; a limit of time, money or tokens is raised by `ralph resume`.
        Some(Status::ReachedLimit) => open > 0 && ((max > 0 && iteration >= max) || ran_out(&state)),
        Some(Status::Paused | Status::InProgress) | None => false,
    };
    // An agent may have written that it ended. While the seal says that it lives, a stop is still judged, or it is paused, and that is reported.
    let lives_on = ended && seal::living(project, &name, &id).is_some();
    let ended = ended && !lives_on;
    if ended && want == Want::Live {
        return None;
    }
    let active = !ended && !matches!(values.status, Some(Status::Paused | Status::Cancelled));
    let parsed = list.and_then(|_| as_loop(project, &path, &values, active, iteration, max));
    let storage = Storage::Folder(Folder { dir, id, progress });
    Some(LoopOnDisk { name, path, bytes: read.unwrap_or_default(), parsed, storage, known_as: None })
}

/// Whether the list is gone while the loop was alive and this session's.
pub(crate) fn lost_its_list(project: &Project, session: &str) -> bool {
    let was_alive = |state: &State| state.ended.is_none() && state.armed_since.is_some() && state.owner.as_deref() == Some(session);
    let (name, id) = names(project, &place(project));
    seal::last_of(project, &name, &id).is_some_and(|record| was_alive(&record.state)) && !place(project).join(LIST).exists()
}

/// Logs in the folder that there is nothing to work on: it has a `progress.txt`, and no list. Costs one look where there is neither.
pub(crate) fn note_without_list(project: &Project, session: &str) {
    let dir = place(project);
    if fs::symlink_metadata(dir.join(PROGRESS)).is_err() || dir.join(LIST).exists() {
        return;
    }
    let folder = Folder { dir, id: String::new(), progress: None };
    let line = format!("allow loop.none: {LIST} is not there, so there is nothing to work on");
    log_once(&folder, clock::now(), Some(session), &line);
}

/// Logs a line that would repeat at every stop only once, as long as nothing else happens.
fn log_once(folder: &Folder, at: Millis, session: Option<&str>, line: &str) {
    let log = files::read_end(&folder.dir.join(LOG), 4096).unwrap_or_default();
    if !String::from_utf8_lossy(&log).lines().rev().take(4).any(|last| last.contains(line)) {
        write_log(folder, at, session, line);
    }
}

/// A sentence about a file that cannot be read: the list, or `progress.txt` beside it.
pub(crate) fn unreadable(list: &str, problem: &str) -> String {
    if problem.starts_with(PROGRESS) { problem.to_owned() } else { format!("{list} cannot be read: {problem}") }
}

/// Whether the loop is neither cancelled nor paused, and its list still exists.
pub(super) fn is_wanted(folder: &Folder) -> bool {
    let progress = files::read(&folder.dir.join(PROGRESS), MAX_BYTES).unwrap_or_default();
    folder.dir.join(LIST).exists() && !matches!(Progress::parse(&progress).status, Some(Status::Cancelled | Status::Paused))
}

/// The current iteration.
fn iteration(values: &Progress, state: &State, open: usize) -> u64 {
    let told = values.iteration.unwrap_or(1);
    match state.ended {
        // New work after the old was complete: the old count is not about it.
        None if values.status == Some(Status::Complete) && open > 0 => state.iteration.max(1),
        Some(Ending::Complete) if values.status == Some(Status::Complete) && open > 0 => 1,
        None if owner_may_live(state) => told.max(state.iteration),
        // It has ended, or there is no agent that could have set the count back: a person starts again.
        _ => told,
    }
}

/// Whether the loop ended at a limit of time, money or tokens.
fn ran_out(state: &State) -> bool {
    let has = |code| matches!(code, Code::LimitTime | Code::LimitCost | Code::LimitTokens);
    state.ended == Some(Ending::Capped) && state.last.as_ref().is_some_and(|last| has(last.ruling.code))
}

/// The loop as a loop file would describe it.
fn as_loop(project: &Project, path: &Path, values: &Progress, active: bool, iteration: u64, max: u64) -> Result<LoopFile, Problem> {
    let list = path.strip_prefix(project.root()).unwrap_or(path).display().to_string();
    let shown = text::clean(&list);
    let text = format!(
        "---\nactive: {active}\niteration: {iteration}\n---\n\n\
         Work through the features in {shown}, one at a time, in the order in which ralph names them. Do what its steps say, make sure that it works, \
         commit, and mark it with `ralph item done ID`, which runs the feature's own checks first and changes the list for you. \
         You can keep notes in progress.txt beside the list; its Iteration and Status are ralph's.\n"
    );
    let mut file = LoopFile::parse(text.as_bytes())?;
    file.settings = LoopSettings { max_iterations: Some(max), ..values.settings.clone() }.with_defaults();
    file.list = Some(list);
    Ok(file)
}

/// Values of a loop in the words of `progress.txt`.
fn changes<'v>(values: &[(&str, Value<'v>)], now: &Progress) -> Vec<(Key, &'v str)> {
    let mut out = Vec::new();
    for (key, value) in values {
        let (Value::Plain(text) | Value::Text(text)) = *value;
        match *key {
            "active" => out.push((Key::Status, if text == "true" { Status::InProgress } else { Status::Paused }.as_str())),
            "iteration" => {
                out.push((Key::Iteration, text));
                // A pause that came in between stays one.
                if now.status != Some(Status::Paused) {
                    out.push((Key::Status, Status::InProgress.as_str()));
                }
            }
            key => out.extend(Key::settings().find(|setting| setting.key == key).map(|setting| (Key::Setting(setting), text))),
        }
    }
    out
}

/// Changes values in `progress.txt` and nothing else, making it if need be. `None`: the loop is gone, and nothing was written.
pub(super) fn set(project: &Project, found: LoopOnDisk, values: &[(&str, Value<'_>)]) -> Result<Option<LoopOnDisk>, Error> {
    write(project, found, |progress| changes(values, progress))
}

/// Ends the loop, in one step and without the lock. `false`: it had ended before.
pub(super) fn end(project: &Project, found: &LoopOnDisk, ending: Ending) -> Result<bool, Error> {
    let status = match ending {
        Ending::Complete => Status::Complete,
        Ending::Capped => Status::ReachedLimit,
        Ending::Cancelled | Ending::Failed => Status::Cancelled,
    };
    Ok(write(project, found.clone(), |_| vec![(Key::Status, status.as_str())])?.is_some())
}

fn write<'v>(
    project: &Project,
    mut found: LoopOnDisk,
    change: impl Fn(&Progress) -> Vec<(Key, &'v str)>,
) -> Result<Option<LoopOnDisk>, Error> {
    // A cancel comes without the project's lock, and another worktree with a lock of its own.
    let _alone = if let Storage::Folder(folder) = &found.storage { Lock::of_folder(&folder.dir, ALONE).ok().flatten() } else { None };
    for attempt in 0..ATTEMPTS {
        let Storage::Folder(folder) = &found.storage else { return Ok(None) };
        let path = folder.dir.join(PROGRESS);
        let old = folder.progress.clone();
        let values = Progress::parse(old.as_deref().unwrap_or_default());
        let mut new = old.clone().unwrap_or_else(|| fresh(found.parsed.as_ref().ok()));
        for (key, value) in change(&values) {
            new = progress::with(&new, key, value);
        }
        let backup = project.backup(if folder.id == ID { NAME } else { &folder.id });
        let written = match &old {
            _ if !found.path.exists() => return Ok(None),
            Some(old) if *old == new => Swapped::Done,
            Some(old) => exchange::swap_keeping(&path, &backup, old, &new).map_err(Error::io("write", &path))?,
            None => created(&path, &backup, &new)?,
        };
        if written == Swapped::Done {
            // The same loop with the new values, even if it has ended by them.
            return Ok(Some(with_progress(project, found, new)));
        }
        if attempt > 2 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        match again(project, folder) {
            Some(newer) => found = newer,
            None => return Ok(None),
        }
    }
    Err(Error::Restless { path: found.path.display().to_string() })
}

fn created(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<Swapped, Error> {
    match exchange::create_new(path, temporary, bytes) {
        Ok(()) => Ok(Swapped::Done),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(Swapped::Changed),
        Err(e) => Err(Error::io("write", path)(e)),
    }
}

/// A `progress.txt` for a folder that has none.
fn fresh(file: Option<&LoopFile>) -> Vec<u8> {
    let (iteration, max) = file.map_or((1, DEFAULT_MAX_ITERATIONS), |f| (f.iteration, f.max_iterations()));
    format!("Iteration: {iteration}\nMax Iterations: {max}\nStatus: {}\n", Status::InProgress.as_str()).into_bytes()
}

/// The same loop with another `progress.txt`.
fn with_progress(project: &Project, found: LoopOnDisk, progress: Vec<u8>) -> LoopOnDisk {
    let values = Progress::parse(&progress);
    let max = values.settings.max_iterations.unwrap_or(DEFAULT_MAX_ITERATIONS);
    let active = values.status == Some(Status::InProgress);
    let parsed =
        found.parsed.and_then(|file| as_loop(project, &found.path, &values, active, values.iteration.unwrap_or(file.iteration), max));
    let Storage::Folder(folder) = found.storage else { return LoopOnDisk { parsed, ..found } };
    LoopOnDisk { parsed, storage: Storage::Folder(Folder { progress: Some(progress), ..folder }), ..found }
}

pub(super) fn is_same(a: &LoopOnDisk, b: &LoopOnDisk) -> bool {
    matches!((&a.storage, &b.storage), (Storage::Folder(x), Storage::Folder(y)) if x.progress == y.progress) && a.bytes == b.bytes
}

/// Writes a decision into the folder's `hook.log` (S4-2). Failing to log never changes an answer.
pub(super) fn log(folder: &Folder, at: Millis, session: Option<&str>, event: &Event) {
    let Some(line) = in_words(event) else { return };
    let said =
        folder.progress.as_deref().filter(|_| matches!(event, Event::Adopted | Event::Stop { .. })).map(progress::odd).unwrap_or_default();
    for odd in said {
        log_once(folder, at, session, &format!("{PROGRESS}: {}", text::opening(&odd, 200)));
    }
    write_log(folder, at, session, &line);
}

fn write_log(folder: &Folder, at: Millis, session: Option<&str>, line: &str) {
    let stamp = time::format(at).chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect::<String>();
    let session = session.map(|s| format!(" (session {})", text::opening(s, 80))).unwrap_or_default();
    let path = folder.dir.join(LOG);
    let _ = files::append_bounded(&path, secrets::mask(&format!("[{stamp}] {line}{session}\n")).as_bytes(), MAX_LOG);
}

fn in_words(event: &Event) -> Option<String> {
    Some(match event {
        Event::Stop { evidence: e, ruling, .. } => {
            let decision = if ruling.decision == Decision::Block { "block" } else { "allow" };
            let round = text::of_limit(e.iteration, e.max_iterations);
            let mut line = format!("{decision} {}: iteration {round}", ruling.code.as_str());
            for f in &e.gates {
                let _ = write!(line, "; {}: {}", text::clean(&f.gate), text::opening(&f.what, 300));
            }
            if let Message::Unreadable { transcript } = &e.message {
                let _ =
                    write!(line, "; the event carries no message, and its transcript does not exist ({})", text::opening(transcript, 300));
            }
            line
        }
        Event::Adopted => "adopted by the session that stopped".to_owned(),
        Event::Paused { why, .. } if why.is_empty() => "paused".to_owned(),
        Event::Paused { why, .. } => format!("paused: {}", text::opening(why, 300)),
        Event::Resumed { iteration, .. } => format!("resumed at iteration {iteration}"),
        Event::Cancelled { iteration, .. } => format!("cancelled at iteration {iteration}"),
        Event::Corrupt { problem } => format!("allow loop.corrupt: {}", unreadable(LIST, &text::opening(problem, 300))),
        Event::Error { what } => format!("error: {}", text::opening(what, 300)),
        _ => return None,
    })
}
