//! The fleet's own repository, without files: what comes from the person, from slots and back goes through it. Its refs:
//!
//! - `refs/person/heads/*`: the person's branches, as they were when they were last fetched;
//! - `refs/ralph-fleet/<job>/<token>`: the work of one claim;
//! - `refs/ralph-fleet-snapshots/<job>/<token>`: its files that were not committed;
//! - `refs/ralph-fleet-loops/<job>/<token>`: its loop, as a bundle.
//!
//! With several machines the last three travel through the remote that the person named.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use ralph_engine::sys::{command::Ran, digest, files};

use crate::{
    git::{self, Git},
    problem::{Problem, Result},
    settings::{self, Land, Place, Settings},
};

/// What is kept of a claim: its commits, its files that were not committed, its loop.
const KINDS: [&str; 3] = ["", "-snapshots", "-loops"];

/// So many objects are copied to a slot one by one.
const FEW: usize = 500;

/// The longest pause between two questions to the remote.
const LONGEST_PAUSE: Duration = Duration::from_secs(32);

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    Done,
    /// Someone else pushed first.
    Raced,
    /// The branch takes only signed commits.
    WantsSignature,
}

#[derive(Debug)]
pub(crate) struct Hub {
    pub git: Git,
    /// Where the person's branches are: their folder, or the remote of all machines.
    repository: String,
    is_shared: bool,
    pub base: String,
    pub target: String,
    /// The person's branches as they were when they were last fetched.
    seen: Mutex<Option<Branches>>,
}

/// Branches as git keeps them: what their files say.
type Branches = BTreeMap<PathBuf, Vec<u8>>;

impl Hub {
    /// Opens it, and makes it where it is not there yet.
    pub(crate) fn open(place: &Place, settings: &Settings) -> Result<Self> {
        git::refuse_old()?;
        let folder = place.hub();
        if !folder.join("HEAD").is_file() {
            git::init(&folder, true)?;
        }
        let git = Git::at(&folder).by(&settings.identity);
        let local = || {
            settings
                .repository
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| Problem::new("the repository's path is no text that git could be told"))
        };
        let repository = settings.remote.clone().map_or_else(local, Ok)?;
        // A pull request goes to the person's branch, and nothing of ours is pushed there.
        let target = if settings.land == Land::Pr { &settings.base } else { &settings.target };
        Ok(Hub {
            git,
            repository,
            is_shared: settings.remote.is_some(),
            base: settings.base.clone(),
            target: target.clone(),
            seen: Mutex::default(),
        })
    }

    /// Fetches the person's branches, unless they are as they were.
    pub(crate) fn fetch_person(&self) -> Result<()> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // Read before the fetch: what moves meanwhile is another state the next time.
        let now = if self.is_shared { None } else { branches(Path::new(&self.repository)) };
        if now.is_some() && *seen == now {
            return Ok(());
        }
        let _lock = self.lock()?;
        let told = |problem: Problem| Problem::passing(format!("the repository cannot be read: {problem}"));
        let mut args = vec!["fetch", "--quiet", "--prune", "--no-tags"];
        args.extend(self.at_the_persons(0));
        args.extend([&*self.repository, "+refs/heads/*:refs/person/heads/*"]);
        self.git.run(&args).map_err(told)?;
        *seen = now;
        Ok(())
    }

    /// Two writers of the person's branches at once would refuse each other.
    fn lock(&self) -> Result<fs::File> {
        let path = self.git.folder.join("ralph-fetch.lock");
        let lock = files::options().create(true).append(true).open(&path).map_err(Problem::when(path.display()))?;
        lock.lock().map_err(Problem::when(path.display()))?;
        Ok(lock)
    }

    /// How git is started in the person's own repository. What a server does with a push is the server's.
    fn at_the_persons(&self, which: usize) -> Option<&'static str> {
        git::AT_THE_PERSONS.get(which).copied().filter(|_| !self.is_shared)
    }

    /// Asks the remote of all machines, some times if need be: what an iteration brought must not be lost because a line was down for a moment.
    fn patiently(&self, args: &[&str]) -> Result<()> {
        let mut pause = Duration::from_secs(1);
        loop {
            match self.git.run(args) {
                Ok(_) => return Ok(()),
                Err(_) if pause < LONGEST_PAUSE => thread::sleep(pause),
                Err(problem) => return Err(Problem::passing(format!("the remote does not answer: {problem}"))),
            }
            pause *= 2;
        }
    }

    /// The tip of the person's branch.
    pub(crate) fn base_tip(&self) -> Result<String> {
        let tip = self.git.tip(&person(&self.base))?;
        tip.ok_or_else(|| Problem::new(format!("the branch {} is gone: say another one with --base", self.base)))
    }

    /// The tip of the branch that work lands on, if it is there.
    pub(crate) fn target_tip(&self) -> Result<Option<String>> {
        self.git.tip(&person(&self.target))
    }

    /// Where new work begins.
    pub(crate) fn start(&self) -> Result<String> {
        match self.target_tip()? {
            Some(tip) => Ok(tip),
            None => self.base_tip(),
        }
    }

    /// Copies the objects that a slot lacks of a commit, if it has another one and they are few: a fetch starts six programs. `false`: it has to fetch.
    pub(crate) fn give(&self, slot: &Path, has: &str, commit: &str) -> bool {
        let asked = self.git.run(&["rev-list", "--objects", "--no-object-names", commit, &format!("^{has}")]);
        let Ok(ran) = asked else { return false };
        let text = ran.text();
        let names: Vec<&str> = text.lines().collect();
        let (from, to) = (self.git.folder.join("objects"), slot.join(".git/objects"));
        let copy = |name: &&str| {
            let file = Path::new(name.get(..2).unwrap_or_default()).join(name.get(2..).unwrap_or_default());
            let (from, to) = (from.join(&file), to.join(&file));
            if to.exists() {
                return true;
            }
            let unfinished = to.with_extension("new");
            let copied = settings::make(to.parent().unwrap_or(slot)).is_ok() && fs::copy(&from, &unfinished).is_ok();
            copied && fs::rename(&unfinished, &to).is_ok()
        };
        ran.whole && names.len() <= FEW && names.iter().all(copy)
    }

    /// Fetches a slot's commit.
    pub(crate) fn fetch_slot(&self, slot: &Path, job: &str, token: u64) -> Result<String> {
        let from = slot.to_str().ok_or_else(|| Problem::new("the slot's path is no text that git could be told"))?;
        let to = format!("refs/ralph-fleet/{job}/{token}");
        self.git.run(&["fetch", "--quiet", "--no-tags", from, &format!("+HEAD:{to}")])?;
        self.git.tip(&to)?.ok_or_else(|| Problem::new(format!("{to} is gone")))
    }

    /// Keeps a loop's bundle; the result names it.
    pub(crate) fn keep_loop(&self, bytes: &[u8], job: &str, token: u64) -> Result<String> {
        let blob = self.git.ran(&["hash-object", "-w", "--stdin"], bytes)?.text();
        self.git.run(&["update-ref", &format!("refs/ralph-fleet-loops/{job}/{token}"), &blob])?;
        Ok(blob)
    }

    pub(crate) fn blob(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.git.run(&["cat-file", "blob", name])?.stdout)
    }

    /// Sends what is kept of a claim to the other machines. Nobody else writes under its token.
    pub(crate) fn send_job(&self, job: &str, token: u64) -> Result<()> {
        if !self.is_shared {
            return Ok(());
        }
        let own = KINDS.map(|kind| format!("refs/ralph-fleet{kind}/{job}/{token}"));
        let refs = self.git.word(&["for-each-ref", "--format=+%(refname):%(refname)", &own[0], &own[1], &own[2]])?;
        let mut args = vec!["push", "--quiet", "--no-verify", &self.repository];
        args.extend(refs.lines());
        self.patiently(&args)
    }

    /// Tells the other machines where a claim begins.
    pub(crate) fn send_start(&self, job: &str, token: u64, commit: &str) -> Result<()> {
        if !self.is_shared {
            return Ok(());
        }
        self.git.run(&["update-ref", &format!("refs/ralph-fleet/{job}/{token}"), commit])?;
        self.send_job(job, token)
    }

    /// Fetches what other machines kept of a job.
    pub(crate) fn fetch_job(&self, job: &str) -> Result<()> {
        if self.is_shared {
            let all = KINDS.map(|kind| format!("+refs/ralph-fleet{kind}/{job}/*:refs/ralph-fleet{kind}/{job}/*"));
            self.patiently(&["fetch", "--quiet", "--no-tags", &self.repository, &all[0], &all[1], &all[2]])?;
        }
        Ok(())
    }

    /// Lets go of what was kept of jobs that are over, here and on the remote. Git clears the rest away in its own time.
    pub(crate) fn forget(&self, is_over: &dyn Fn(&str) -> bool) -> Result<()> {
        let own = KINDS.map(|kind| format!("refs/ralph-fleet{kind}/"));
        let refs = self.git.word(&["for-each-ref", "--format=%(objectname)\t%(refname)", &own[0], &own[1], &own[2]])?;
        let all: Vec<&str> = refs.lines().filter(|line| line.split('/').nth(2).is_some_and(is_over)).collect();
        // Lines of commands are not endless.
        for some in all.chunks(200) {
            let names = || some.iter().filter_map(|line| line.split_once('\t')).map(|(_, name)| name);
            if self.is_shared {
                // Only what is there as it is here: others may have written under the same name.
                let there = self.git.word(&["ls-remote", "--quiet", &self.repository, "refs/ralph-fleet*"])?;
                let both: Vec<&str> = there.lines().filter(|line| some.contains(line)).filter_map(|line| line.split('\t').nth(1)).collect();
                if !both.is_empty() {
                    self.git.run(&[&["push", "--quiet", "--no-verify", &self.repository, "--delete"][..], &both].concat())?;
                }
            }
            let deleted: String = names().flat_map(|name| ["delete ", name, "\n"]).collect();
            self.git.ran(&["update-ref", "--stdin"], deleted.as_bytes())?;
        }
        self.git.ran(&["-c", "gc.auto=6700", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"], b"")?;
        Ok(())
    }

    /// Fetches a snapshot of a slot, by its ref there.
    pub(crate) fn fetch_snapshot(&self, slot: &Path, name: &str, job: &str, token: u64) -> Result<String> {
        let from = slot.to_str().ok_or_else(|| Problem::new("the slot's path is no text that git could be told"))?;
        let to = format!("refs/ralph-fleet-snapshots/{job}/{token}");
        self.git.run(&["fetch", "--quiet", "--no-tags", from, &format!("+{name}:{to}")])?;
        self.git.word(&["rev-parse", &to])
    }

    /// Pushes a commit to a new branch elsewhere. Should that be there already, it stays as it is.
    pub(crate) fn push_new(&self, url: &str, commit: &str, branch: &str) -> Result<()> {
        let ran = self.git.ran(&["push", "--porcelain", "--no-verify", "--", url, &format!("{commit}:refs/heads/{branch}")], b"")?;
        if ran.code == Some(0) || is_raced(&ran) {
            return Ok(());
        }
        Err(Problem::new(format!("{branch} cannot be pushed: {}", git::last_words(&ran))))
    }

    /// Pushes a commit to a branch of the person's, without force.
    pub(crate) fn push(&self, commit: &str, branch: &str) -> Result<Pushed> {
        self.refuse_checked_out(branch)?;
        let to = format!("{commit}:refs/heads/{branch}");
        let ran = if self.is_shared {
            self.git.ran(&["push", "--porcelain", "--no-verify", &self.repository, &to], b"")?
        } else {
            self.push_and_see(&to, branch, commit)?
        };
        if ran.code == Some(0) {
            return Ok(Pushed::Done);
        }
        if is_raced(&ran) {
            return Ok(Pushed::Raced);
        }
        let said = format!("{} {}", ran.text(), ran.stderr);
        if said.contains("signature") || said.contains("signed") {
            return Ok(Pushed::WantsSignature);
        }
        if said.contains("checked out") {
            return Err(checked_out(branch));
        }
        Err(Problem::new(format!("{branch} cannot be pushed: {}", git::last_words(&ran))))
    }

    /// Pushes to the person's repository. Git notes where the branch is then, so that it need not be fetched.
    fn push_and_see(&self, to: &str, branch: &str, commit: &str) -> Result<Ran> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = self.lock()?;
        let url = format!("remote.person.url={}", self.repository);
        let mut args =
            vec!["-c", &url, "-c", "remote.person.fetch=+refs/heads/*:refs/person/heads/*", "push", "--porcelain", "--no-verify"];
        args.extend(self.at_the_persons(1));
        args.extend(["person", to]);
        let ran = self.git.ran(&args, b"")?;
        if ran.code == Some(0)
            && let Some(seen) = &mut *seen
        {
            seen.insert(Path::new(&self.repository).join(".git/refs/heads").join(branch), format!("{commit}\n").into_bytes());
        }
        Ok(ran)
    }

    /// Refuses a branch that the person has checked out, whatever their settings allow: their next commit would undo what lands there.
    fn refuse_checked_out(&self, branch: &str) -> Result<()> {
        if self.is_shared {
            return Ok(());
        }
        if let Some(heads) = heads(Path::new(&self.repository)) {
            return if heads.contains(&format!("refs/heads/{branch}")) { Err(checked_out(branch)) } else { Ok(()) };
        }
        let person = Git::at(Path::new(&self.repository));
        let tree = person.word(&["for-each-ref", "--format=%(worktreepath)", &format!("refs/heads/{branch}")])?;
        if tree.is_empty() { Ok(()) } else { Err(checked_out(branch)) }
    }
}

/// The ref of a branch of the person's.
fn person(branch: &str) -> String {
    format!("refs/person/heads/{branch}")
}

/// What is checked out in a repository and its worktrees, read without git. `None`: only git can tell.
fn heads(repository: &Path) -> Option<Vec<String>> {
    let own = repository.join(".git");
    let head =
        |folder: &Path| Some(fs::read_to_string(folder.join("HEAD")).ok()?.trim().strip_prefix("ref: ").unwrap_or_default().to_owned());
    let mut heads = vec![head(&own)?];
    for worktree in fs::read_dir(own.join("worktrees")).into_iter().flatten() {
        heads.push(head(&worktree.ok()?.path())?);
    }
    // In another format of refs it says so.
    heads.iter().all(|head| head != "refs/heads/.invalid").then_some(heads)
}

/// The branches of a repository, read without git. `None`: only git can tell.
fn branches(repository: &Path) -> Option<Branches> {
    let own = repository.join(".git");
    let (mut branches, mut folders) = (Branches::new(), vec![own.join("refs/heads")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok()? {
            let entry = entry.ok()?;
            let path = entry.path();
            if entry.file_type().ok()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|end| end != "lock") {
                // One that only names another ref may change without its file.
                let value = fs::read(&path).ok().filter(|value| !value.starts_with(b"ref:"))?;
                branches.insert(path, value);
            }
        }
    }
    match fs::read(own.join("packed-refs")) {
        Ok(packed) => drop(branches.insert(own, digest::short(&packed).into_bytes())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(_) => return None,
    }
    Some(branches)
}

/// Whether a push failed because the branch is somewhere else by now.
fn is_raced(ran: &Ran) -> bool {
    let said = format!("{} {}", ran.text(), ran.stderr);
    ["non-fast-forward", "fetch first", "failed to update ref", "cannot lock ref"].iter().any(|words| said.contains(words))
}

fn checked_out(branch: &str) -> Problem {
    Problem::new(format!("you have {branch} checked out: switch to another branch, and landing goes on"))
}
