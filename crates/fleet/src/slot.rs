//! A slot: a clone of its own in which one job at a time is worked on, or landed work is tried. Between jobs it is kept, with what `keep` names.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_engine::sys::{
    command::{self, Failure, Task},
    files, process,
};

use crate::{
    git::{self, Git, Identity},
    hub::Hub,
    merge,
    problem::{Problem, Result},
    seat::Seat,
    settings::{self, Place, Settings},
};

/// How long `setup` may take.
const SETUP: Duration = Duration::from_mins(30);

/// With more objects or packs than this a slot's git folder is cleared up.
const MOST_LOOSE: usize = 6700;
const MOST_PACKS: usize = 50;

/// The first port of the first slot; each has a hundred.
const FIRST_PORT: usize = 20_000;

#[derive(Debug, Clone)]
pub struct Slot {
    pub folder: PathBuf,
    temp: PathBuf,
    name: String,
    seat: Seat,
    identity: Identity,
    settings: Settings,
    /// The job that is worked on here, as its processes are marked.
    job: Option<String>,
}

/// What marks the processes of a job.
const JOB: &str = "RALPH_JOB";

impl Slot {
    /// The slot with this number, or the lander's. What a process before this one left running there is ended.
    pub fn take(place: &Place, settings: &Settings, seat: Seat, name: &str) -> Self {
        let temp = place.temp(name);
        process::end_marked("TMPDIR", temp.as_os_str());
        Slot {
            folder: place.slot(name),
            temp,
            name: name.to_owned(),
            seat,
            identity: settings.identity.clone(),
            settings: settings.clone(),
            job: None,
        }
    }

    /// Marks what runs here from now on. `taken_over`: the worker that had the job is gone, but what it started may not be.
    pub(crate) fn begin(&mut self, mark: String, taken_over: bool) {
        if taken_over {
            process::end_marked(JOB, mark.as_ref());
        }
        self.job = Some(mark);
    }

    /// Git in this slot, once its git folder obeys us again.
    pub(crate) fn git(&self) -> Result<Git> {
        let kept_out = &self.settings.slots.copy;
        if !git::seal(&self.folder, &self.identity, kept_out)? {
            self.remove();
            git::init(&self.folder, false)?;
            git::seal(&self.folder, &self.identity, kept_out)?;
        }
        Ok(Git::at(&self.folder).by(&self.identity))
    }

    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_file(&self.folder);
    }

    /// Puts a commit's files here, and nothing else but what is kept. A git folder that the last agent broke is made anew.
    pub(crate) fn check_out(&self, hub: &Hub, commit: &str, branch: &str) -> Result<()> {
        match self.put_files(hub, commit, branch) {
            Err(problem) if !problem.is_passing() => {
                self.remove();
                self.put_files(hub, commit, branch)?;
            }
            put => put?,
        }
        self.refuse_links()?;
        self.copy_files()
    }

    /// A loop's files would be written where the commit's links lead.
    fn refuse_links(&self) -> Result<()> {
        let is_link = |name: &str| fs::symlink_metadata(self.folder.join(name)).is_ok_and(|meta| meta.is_symlink());
        match merge::OWN_FOLDERS.into_iter().find(|name| is_link(name)) {
            Some(name) => {
                Err(Problem::new(format!("{name} is a link in the commit that it begins with, and ralph would write through it")))
            }
            None => Ok(()),
        }
    }

    fn put_files(&self, hub: &Hub, commit: &str, branch: &str) -> Result<()> {
        settings::make(&self.folder)?;
        let _ = fs::remove_dir_all(&self.temp);
        settings::make(&self.temp)?;
        let git = self.git()?;
        if !self.head().is_some_and(|head| hub.give(&self.folder, &head, commit)) {
            let from = hub.git.folder.to_str().ok_or_else(|| Problem::new("the fleet's path is no text that git could be told"))?;
            // The last job's branches say what need not be sent.
            git.run(&["fetch", "--quiet", "--no-tags", from, commit])?;
        }
        let cannot = |e| Problem::when(format!("the git folder of {} cannot be emptied", self.folder.display()))(e);
        self.forget_other_work(branch).map_err(cannot)?;
        let is_empty = fs::read_dir(&self.folder).is_ok_and(|entries| entries.count() == 1);
        if !is_empty {
            // What the files are is seen anew, so that those which are right keep their times.
            git.run(&["reset", "--quiet", "--refresh", commit])?;
        }
        git.run(&["checkout", "--quiet", "--force", "-B", branch, commit])?;
        if !is_empty {
            let mut clean = vec!["clean", "-ffdxq"];
            clean.extend(self.settings.slots.keep.iter().flat_map(|keep| ["-e", keep.as_str()]));
            git.run(&clean)?;
        }
        self.clear_objects(&git)
    }

    /// The commit that the last job ended with.
    fn head(&self) -> Option<String> {
        let own = self.folder.join(".git");
        let head = fs::read_to_string(own.join("HEAD")).ok()?;
        git::loose(&own, head.trim().strip_prefix("ref: ").unwrap_or("HEAD"))
    }

    /// Of the last job's git folder only the objects stay: no branch, stash or snapshot of it, no merge that was begun, no index that says of a file that it is as it was.
    fn forget_other_work(&self, branch: &str) -> std::io::Result<()> {
        let own = self.folder.join(".git");
        for entry in fs::read_dir(&own)? {
            let entry = entry?;
            if ["objects", "config", "info"].iter().any(|kept| entry.file_name() == *kept) {
                continue;
            }
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
        fs::create_dir_all(own.join("refs/heads"))?;
        files::replace_private(&own.join("HEAD"), format!("ref: refs/heads/{branch}\n").as_bytes())
    }

    /// Objects of earlier jobs go, once there are many: git's own clearing is off in a slot, because an agent may be at work.
    fn clear_objects(&self, git: &Git) -> Result<()> {
        let count = |folder: &str| fs::read_dir(self.folder.join(".git/objects").join(folder)).map_or(0, Iterator::count);
        // Git estimates by one of 256 folders, too. A pack has an index and more beside it.
        if count("17") > MOST_LOOSE / 256 || count("pack") > 3 * MOST_PACKS {
            let settings = [format!("gc.auto={MOST_LOOSE}"), format!("gc.autoPackLimit={MOST_PACKS}")];
            let once = ["-c", settings[0].as_str(), "-c", &settings[1], "-c", "gc.autoDetach=false", "-c", "gc.pruneExpire=now"];
            git.run(&[&once[..], &["gc", "--auto", "--quiet"]].concat())?;
        }
        Ok(())
    }

    fn copy_files(&self) -> Result<()> {
        for name in &self.settings.slots.copy {
            let (from, to) = (self.settings.repository.join(name), self.folder.join(name));
            if !from.exists() {
                return Err(Problem::new(format!("[fleet] copy: there is no {}", from.display())));
            }
            self.clear(Path::new(name))
                .and_then(|()| copy(&from, &to))
                .map_err(Problem::when(format!("{name} cannot be copied to a slot")))?;
        }
        Ok(())
    }

    /// Makes room for a file in the slot: what a branch has there goes, and a link on the way to it, too, which would lead elsewhere.
    fn clear(&self, name: &Path) -> std::io::Result<()> {
        let mut at = self.folder.clone();
        for part in name.components() {
            at.push(part);
            match fs::symlink_metadata(&at) {
                Ok(meta) if meta.is_dir() && at.as_path() != self.folder.join(name) => {}
                Ok(meta) if meta.is_dir() => fs::remove_dir_all(&at)?,
                Ok(_) => fs::remove_file(&at)?,
                Err(_) => break,
            }
        }
        name.parent().map_or(Ok(()), |parent| fs::create_dir_all(self.folder.join(parent)))
    }

    /// Runs the line of `[fleet] setup`.
    pub fn set_up(&self, cancelled: &dyn Fn() -> bool) -> Result<()> {
        let Some(line) = &self.settings.slots.setup else { return Ok(()) };
        let (program, args) = command::shell(line);
        let task = Task {
            program,
            args,
            folder: &self.folder,
            vars: self.vars(),
            hidden: Vec::new(),
            input: Vec::new(),
            limit: SETUP,
            most_output: 64 << 10,
        };
        match task.run_until(cancelled) {
            Ok(ran) if ran.code == Some(0) => Ok(()),
            Err(Failure::Cancelled) => Err(Problem::passing("this process was told to end")),
            Ok(ran) => {
                let said = if ran.stderr.trim().is_empty() { ran.text() } else { ran.stderr.trim().to_owned() };
                Err(Problem::new(format!("[fleet] setup, `{line}`, fails: {}", said.lines().last().unwrap_or("it says nothing"))))
            }
            Err(_) => {
                Err(Problem::new(format!("[fleet] setup, `{line}`, cannot be run, or took longer than {} minutes", SETUP.as_secs() / 60)))
            }
        }
    }

    /// The variables of everything that runs here.
    pub fn vars(&self) -> Vec<(OsString, OsString)> {
        let (slot, port) = (self.seat.number.to_string(), (FIRST_PORT + self.seat.number * 100).to_string());
        let mut own = vec![("RALPH_SLOT", OsString::from(&slot)), ("RALPH_PORT", port.into()), ("TMPDIR", self.temp.clone().into())];
        own.extend(self.job.as_ref().map(|job| (JOB, job.into())));
        let most = self.settings.slots.gates_at_once;
        own.extend((most > 0).then(|| ("RALPH_GATES_AT_ONCE", most.to_string().into())));
        let named = self.settings.slots.env.iter().map(|(name, value)| (name.into(), value.replace("{slot}", &slot).into()));
        own.into_iter().map(|(name, value)| (name.into(), value)).chain(named).collect()
    }

    /// Merges a commit in, as far as it goes; conflicts stay for the agent. The result names the files that conflict.
    pub(crate) fn begin_merge(&self, hub: &Hub, commit: &str) -> Result<Vec<String>> {
        let git = self.git()?;
        let from = hub.git.folder.to_str().unwrap_or_default().to_owned();
        git.run(&["fetch", "--quiet", "--no-tags", &from, commit])?;
        let merged = git.ran(&["merge", "--no-edit", "--no-ff", "-m", "Merge what has landed meanwhile", commit], b"")?;
        if merged.code == Some(0) {
            return Ok(Vec::new());
        }
        let files = git.word(&["diff", "--name-only", "--diff-filter=U", "--ignore-submodules=all"])?;
        Ok(files.lines().map(str::to_owned).collect())
    }

    /// What is not committed here, beside the list and copied files; a loop's own files are ignored.
    pub fn uncommitted(&self) -> Result<Vec<String>> {
        // A submodule has a git folder of its own, with settings of the agent's: git would obey them.
        let said = self.git()?.run(&["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=dirty"])?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let own = |path: &str| self.settings.list.as_deref() == Some(path) || self.settings.slots.copies(path);
        Ok(text.lines().filter_map(|line| line.get(3..)).filter(|path| !own(path)).map(str::to_owned).collect())
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
