//! A project whose lock is held: the only way to change a loop.

use std::{borrow::Cow, fs, time::Duration};

use ralph_core::{
    journal::{Actor, Event, Record, State, VERSION},
    judge::Ending,
    loops::{Edit, LoopFile, NewLoop, Terms, Value, file_of},
    messages,
    text::time::{self, Millis},
};

use crate::{
    store::{
        Error, archive, feature_folder,
        journal::{Tail, owner_may_live},
        loops::{self, LoopOnDisk, Storage},
        project::Project,
        seal, sessions,
    },
    sys::{
        clock,
        exchange::{self, Swapped},
        files,
        lock::{self, Lock},
    },
};

/// How long to wait for another ralph process; it holds the lock for a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(3);

/// Attempts at a file that is edited at the same moment.
const ATTEMPTS: usize = 5;

/// How long an editor takes between emptying a file and filling it, generously.
const EDITOR: Duration = Duration::from_millis(20);

/// A project with its lock held, until this is dropped or the process dies.
#[derive(Debug)]
pub struct Locked<'p> {
    pub project: &'p Project,
    _lock: Lock,
}

/// A loop file with its state. It has some 2 KB, and is handed from function to function: mostly in a box, so that it is not copied onto the stack each time.
#[derive(Debug)]
pub struct Loop {
    pub id: String,
    pub found: LoopOnDisk,
    pub file: LoopFile,
    pub state: State,
    /// Its journal has no line yet.
    pub is_new: bool,
    /// The terms that count, until an edit of the file is accepted.
    terms: Terms,
    /// Edits that do not count.
    held: Vec<Edit>,
    /// The session that is told if it loses this loop without a person's act.
    pub(super) holder: Option<String>,
    tail: Tail,
}

impl Loop {
    /// The time of its last event.
    pub(crate) fn last_event(&self) -> Option<Millis> {
        time::parse(&self.tail.last.as_ref()?.at)
    }

    /// How the file's terms differ from those that count.
    pub fn edits(&self) -> Vec<Edit> {
        self.terms.edits(&Terms::of(&self.file))
    }

    /// A version of the loop's file as its gates are measured: an edit that names an item counts from the next stop on, if it counts at all.
    pub(crate) fn for_gates<'f>(&self, file: &'f LoopFile) -> Cow<'f, LoopFile> {
        if file.item.is_none() || file.item == self.terms.item {
            return Cow::Borrowed(file);
        }
        let mut sealed = file.clone();
        sealed.settings.item.clone_from(&self.terms.item);
        Cow::Owned(sealed)
    }

    /// Makes edits of the file count. Those that `counts` refuses are ignored.
    pub fn settle(&mut self, edits: &[Edit], counts: impl Fn(&Edit) -> bool) {
        self.held = edits.iter().filter(|edit| !counts(edit)).cloned().collect();
        self.terms.accept(edits.iter().filter(|edit| counts(edit)), &self.file);
        self.terms.hold(&self.held, &mut self.file);
    }

    /// A person takes the loop up, so all edits count. Returns them in words.
    pub(crate) fn accept_edits(&mut self) -> Vec<String> {
        let edits = self.edits();
        self.settle(&edits, |_| true);
        edits.into_iter().map(|edit| edit.what).collect()
    }

    /// Takes over keys that ralph has written into the file. Edits that did not count still do not.
    fn written(&mut self, file: LoopFile, keys: &[&str]) {
        self.file = file;
        self.terms.take(keys, &self.file);
        let held: Vec<Edit> = self.edits().into_iter().filter(|edit| self.held.contains(edit)).collect();
        self.terms.hold(&held, &mut self.file);
    }

    /// The session that the loop belongs to.
    pub fn owner(&self) -> Option<&str> {
        self.file.session_id.as_deref().or(self.state.owner.as_deref())
    }

    /// Stops the clock of a loop whose session or run is gone without a word: at the last event, because work is known until then.
    pub(crate) fn stop_clock_if_abandoned(&mut self) {
        let is_abandoned = self.owner().is_none() || !owner_may_live(&self.state);
        if let Some(at) = self.last_event().filter(|_| is_abandoned && self.state.armed_since.is_some()) {
            self.state.disarm(at);
        }
    }
}

impl<'p> Locked<'p> {
    /// Takes the lock within [`PATIENCE`], making ralph's folder if need be.
    pub(crate) fn acquire(project: &'p Project) -> Result<Self, Error> {
        project.prepare()?;
        let path = project.own().join("lock");
        let lock = Lock::take(&path, PATIENCE).map_err(Error::io("lock", &path))?.ok_or(Error::Busy)?;
        Ok(Locked { project, _lock: lock })
    }

    /// Whether the lock could be taken, without making anything.
    pub fn look(project: &Project) -> Result<(), Error> {
        project.look()?;
        let path = project.own().join("lock");
        match files::options().write(true).open(&path) {
            Ok(file) if lock::wait_for(&file, PATIENCE).map_err(Error::io("lock", &path))? => Ok(()),
            Ok(_) => Err(Error::Busy),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(Error::io("open", &path)(e)),
        }
    }

    /// The loop of a file that can be read, with its state.
    pub fn open(&self, found: LoopOnDisk) -> Result<Box<Loop>, Box<LoopOnDisk>> {
        let mut l = self.put_together(found)?;
        let state = l.state.clone().of_live_file(Some(&l.file));
        if state != l.state {
            l.is_new = true;
            l.terms = Terms::of(&l.file);
            l.state = state;
        }
        if l.is_new {
            seal::make_room(self.project, &l.found.name, &l.id);
        }
        Ok(l)
    }

    /// The same for a file from the archive. Its clock stopped at the last event, even if that was no ending.
    pub fn open_ended(&self, found: LoopOnDisk) -> Result<Box<Loop>, Box<LoopOnDisk>> {
        let mut l = self.put_together(found)?;
        if let Some(at) = l.tail.last.as_ref().and_then(|r| time::parse(&r.at)) {
            l.state.disarm(at);
        }
        Ok(l)
    }

    fn put_together(&self, found: LoopOnDisk) -> Result<Box<Loop>, Box<LoopOnDisk>> {
        let Ok(file) = found.parsed.clone() else { return Err(Box::new(found)) };
        let id = found.id();
        let tail = seal::tail(self.project, Some(&found.name), &id);
        let state = tail.last.as_ref().map(|r| r.state.clone()).unwrap_or_default();
        let terms = state.terms.clone().unwrap_or_else(|| Terms::of(&file));
        let holder = sessions::holder(&state);
        Ok(Box::new(Loop { id, found, file, state, is_new: tail.last.is_none(), terms, held: Vec::new(), holder, tail }))
    }

    /// Writes an event into the loop's journal, with the loop's state after it.
    pub fn record(&self, l: &mut Loop, at: Millis, session: Option<&str>, event: Event) -> Result<(), Error> {
        l.state.iteration = l.file.iteration;
        l.state.name = Some(l.found.name.clone());
        self.note_misfit(l, at, session)?;
        if let Storage::Folder(folder) = &l.found.storage {
            feature_folder::log(folder, at, session, &event);
            l.state.list = folder.noted();
        }
        sessions::follow(self.project, l);
        self.write(l, at, session, event)
    }

    /// Writes down first that the journal was changed from outside, and leaves a line for the person.
    pub(crate) fn note_misfit(&self, l: &mut Loop, at: Millis, session: Option<&str>) -> Result<(), Error> {
        let Some(what) = l.tail.misfit.take() else { return Ok(()) };
        l.state.untold.push(messages::misfit(&l.id, &what));
        self.write(l, at, session, Event::Misfit { what })
    }

    fn write(&self, l: &mut Loop, at: Millis, session: Option<&str>, event: Event) -> Result<(), Error> {
        l.terms.iteration = l.terms.iteration.max(l.file.iteration);
        l.state.terms = Some(l.terms.clone());
        let is_named = l.found.known_as.is_some() || l.file.is_named(&l.found.name);
        self.append(&l.id, is_named, &mut l.tail, at, session, event, &l.state)
    }

    /// Writes an event that does not change the loop's state, whether it lives or has ended.
    pub fn note(&self, id: &str, session: Option<&str>, event: Event) -> Result<(), Error> {
        let (mut tail, state) = self.known(None, id);
        self.append(id, true, &mut tail, clock::now(), session, event, &state)
    }

    /// The end of a loop's journal and its state. That the journal was changed is left for the person.
    fn known(&self, name: Option<&str>, id: &str) -> (Tail, State) {
        let mut tail = seal::tail(self.project, name, id);
        let mut state = tail.last.as_ref().map(|r| r.state.clone()).unwrap_or_default();
        state.untold.extend(tail.misfit.take().map(|what| messages::misfit(id, &what)));
        (tail, state)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one record")]
    fn append(
        &self,
        id: &str,
        is_named: bool,
        tail: &mut Tail,
        at: Millis,
        session: Option<&str>,
        event: Event,
        state: &State,
    ) -> Result<(), Error> {
        let record = Box::new(Record {
            v: VERSION,
            seq: tail.last.as_ref().map_or(1, |r| r.seq + 1),
            at: time::format(at),
            loop_id: id.to_owned(),
            session: session.map(str::to_owned),
            event,
            state: state.clone(),
        });
        seal::append(self.project, is_named, tail, record)
    }

    /// Changes values in the loop's file and nothing else. `false`: the file was deleted, and stays deleted.
    pub fn set(&self, l: &mut Loop, values: &[(&str, Value<'_>)]) -> Result<bool, Error> {
        if l.found.is_folder() {
            let Some(found) = feature_folder::set(self.project, l.found.clone(), values)? else { return Ok(false) };
            if let Ok(file) = &found.parsed {
                l.written(file.clone(), &values.iter().map(|(key, _)| *key).collect::<Vec<_>>());
            }
            l.found = found;
            return Ok(true);
        }
        for _ in 0..ATTEMPTS {
            let path = l.found.path.clone();
            let shown = || path.display().to_string();
            let mut bytes = l.found.bytes.clone();
            let mut file = l.file.clone();
            let keys: Vec<&str> = values.iter().map(|(key, _)| *key).collect();
            for (key, value) in values {
                (bytes, file) = file.with(&bytes, key, *value).map_err(|problem| Error::File { path: shown(), problem })?;
            }
            if bytes == l.found.bytes {
                return Ok(path.exists());
            }
            let backup = self.project.backup(&l.found.name);
            match exchange::swap_keeping(&path, &backup, &l.found.bytes, &bytes).map_err(Error::io("write", &path))? {
                Swapped::Done => {
                    l.found.bytes = bytes;
                    l.written(file, &keys);
                    return Ok(true);
                }
                Swapped::Gone => return Ok(false),
                Swapped::Changed => {
                    // An editor is writing: give it the time to finish.
                    std::thread::sleep(EDITOR);
                    let Some(found) = loops::read(self.project, &l.found.name)? else { return Ok(false) };
                    if let Ok(fresh) = self.open(found) {
                        *l = Loop { state: l.state.clone(), ..*fresh };
                    }
                }
            }
        }
        Err(Error::Restless { path: l.found.path.display().to_string() })
    }

    /// Reads a broken file again until it can be parsed or no longer changes. `None`: it is gone.
    pub fn settled(&self, mut found: LoopOnDisk) -> Result<Option<LoopOnDisk>, Error> {
        for _ in 0..ATTEMPTS {
            std::thread::sleep(EDITOR);
            let Some(again) = loops::reread(self.project, found.clone())? else { return Ok(None) };
            if again.parsed.is_ok() || again.is_same(&found) {
                return Ok(Some(again));
            }
            found = again;
        }
        Ok(Some(found))
    }

    /// Writes a journal line for a loop file that cannot be read, and archives the file.
    pub(crate) fn archive_corrupt(&self, found: &LoopOnDisk, session: Option<&str>, problem: &str) -> Result<bool, Error> {
        let id = found.id();
        let (mut tail, mut state) = self.known(Some(&found.name), &id);
        let now = clock::now();
        state.disarm(now);
        state.ended = Some(Ending::Failed);
        state.name = Some(found.name.clone());
        let event = Event::Corrupt { problem: problem.to_owned() };
        self.append(&id, true, &mut tail, now, session, event, &state)?;
        archive::archive(self.project, found, &id)
    }

    /// Writes down that the list of a feature folder cannot be read; the loop stays as it is. `false`: the last event says so already.
    pub(crate) fn note_unreadable(&self, found: &LoopOnDisk, session: Option<&str>, problem: &str) -> Result<bool, Error> {
        let id = found.id();
        let (mut tail, mut state) = self.known(Some(&found.name), &id);
        let event = Event::Corrupt { problem: problem.to_owned() };
        if tail.last.as_ref().is_some_and(|r| r.event == event) {
            return Ok(false);
        }
        state.name = Some(found.name.clone());
        let now = clock::now();
        if let Storage::Folder(folder) = &found.storage {
            feature_folder::log(folder, now, session, &event);
            state.list = folder.noted();
        }
        self.append(&id, true, &mut tail, now, session, event, &state)?;
        Ok(true)
    }

    /// Pauses the loop of a feature folder whose list is gone, until there is one again. `false`: it is paused already.
    pub(crate) fn note_lost_list(&self, session: &str) -> Result<bool, Error> {
        if !feature_folder::lost_its_list(self.project, session) {
            return Ok(false);
        }
        let id = feature_folder::id(self.project);
        let (mut tail, mut state) = self.known(None, &id);
        let now = clock::now();
        state.disarm(now);
        let event = Event::Paused { by: Actor::Ralph, why: format!("{} is gone", feature_folder::LIST) };
        self.append(&id, true, &mut tail, now, Some(session), event, &state)?;
        Ok(true)
    }

    /// Writes the file of a new loop. `false`: one of that name exists.
    pub fn create(&self, name: &str, new: &NewLoop<'_>) -> Result<bool, Error> {
        let folder = self.project.claude();
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let path = folder.join(file_of(name));
        match exchange::create_new(&path, &self.project.backup(name), new.render().as_bytes()) {
            Ok(()) => {
                seal::close(self.project, name);
                Ok(true)
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(Error::io("write", &path)(e)),
        }
    }
}
