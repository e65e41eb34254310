//! The repository around a project, as snapshots ask it: nothing that lies in it is run, neither hooks nor filters of its own.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ralph_core::words;

use crate::{
    store::project::Project,
    sys::{
        bounded::{Failure, Raw},
        digest, git_settings, process,
    },
};

/// A list of some hundred thousand files.
const MOST_OUTPUT: usize = 64 << 20;

/// Settings under which git writes nothing but what is asked for, and runs neither a hook nor another program.
const QUIET: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.splitIndex=false",
    "core.ignoreStat=false",
    "core.safecrlf=false",
    "i18n.commitEncoding=UTF-8",
    // Signatures are checked by a program that the repository names.
    "log.showSignature=false",
    "advice.addEmbeddedRepo=false",
];

/// Who keeps snapshots: they need no `user.name`.
const AUTHOR: [(&str, &str); 5] = [
    ("GIT_AUTHOR_NAME", "ralph"),
    ("GIT_AUTHOR_EMAIL", "ralph@localhost"),
    ("GIT_COMMITTER_NAME", "ralph"),
    ("GIT_COMMITTER_EMAIL", "ralph@localhost"),
    // What git says is read, and must not depend on the person's language.
    ("LC_ALL", "C"),
];

#[derive(Debug)]
pub(crate) struct Repository {
    /// The top of the working tree, without links.
    pub(crate) top: PathBuf,
    /// What belongs to this working tree alone: its index, its HEAD.
    pub(crate) git_dir: PathBuf,
    /// Where the project lies below the top.
    pub(crate) below: PathBuf,
    /// Which working tree and which folder of it, in a few letters; empty for the usual one.
    pub(super) place: String,
    /// The filters that the repository itself names programs for.
    pub(super) own_filters: Vec<String>,
    options: Vec<OsString>,
    until: Instant,
}

/// One question to git.
#[derive(Default)]
pub(crate) struct Ask<'a> {
    pub(crate) index: Option<&'a Path>,
    pub(crate) input: Vec<u8>,
    /// Where paths are seen from; otherwise the top.
    pub(crate) folder: Option<&'a Path>,
    /// The repository's own filters run, as they do when the person calls git.
    pub(crate) with_filters: bool,
}

impl Repository {
    /// `None`: there is no git, no repository, or one that ignores the project.
    pub(crate) fn of(project: &Project, limit: Duration) -> Result<Option<Self>, String> {
        let until = Instant::now() + limit;
        let Ok(root) = project.root().canonicalize() else { return Ok(None) };
        let Some(top) = root.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_owned) else { return Ok(None) };
        let below = root.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let mut repository =
            Repository { git_dir: top.join(".git"), top, below, place: String::new(), own_filters: Vec::new(), options: Vec::new(), until };
        if process::which_outside("git", &repository.top).is_none() || repository.is_ignored()? {
            return Ok(None);
        }
        repository.find_git_dir()?;
        repository.leave_filters_out()?;
        Ok(Some(repository))
    }

    /// A repository around the project, of somebody's home folder for instance, need not have anything to do with it.
    fn is_ignored(&self) -> Result<bool, String> {
        if self.below.as_os_str().is_empty() {
            return Ok(false);
        }
        let args = ["check-ignore".as_ref(), "-q".as_ref(), "--".as_ref(), self.below.as_os_str()];
        Ok(self.ran(&args, Ask::default())?.code == Some(0))
    }

    fn find_git_dir(&mut self) -> Result<(), String> {
        let said = self.ask(&["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"])?;
        let mut paths = said.split(|b| *b == b'\n').map(|line| self.top.join(path_of(line)));
        let mut next = || paths.next().and_then(|path| path.canonicalize().ok());
        let (top, git_dir, common) = (next(), next(), next());
        drop(paths);
        let (Some(top), Some(git_dir), Some(common)) = (top, git_dir, common) else {
            return Err("git does not say where its folders are".to_owned());
        };
        // A repository can say that its files lie anywhere, in somebody's home for instance.
        if top != self.top {
            return Err(format!("git takes {} for the working tree of {}", top.display(), self.top.display()));
        }
        let of_tree = git_dir.strip_prefix(&common).unwrap_or(&git_dir);
        if !of_tree.as_os_str().is_empty() || !self.below.as_os_str().is_empty() {
            let place = [of_tree.as_os_str().as_encoded_bytes(), b"\0", self.below.as_os_str().as_encoded_bytes()].concat();
            self.place = digest::short(&place).chars().take(8).collect();
        }
        self.git_dir = git_dir;
        Ok(())
    }

    /// Programs that the repository itself names to be run over its files are not run: it could name any. The user's own are, like those of Git LFS.
    fn leave_filters_out(&mut self) -> Result<(), String> {
        let cannot = "git's configuration cannot be read";
        let settings = git_settings::read(&self.top, r"^filter\.", self.time_left()?).ok_or(cannot)?;
        for name in settings.iter().filter_map(git_settings::Setting::own_filter) {
            if !self.own_filters.iter().any(|known| known == name) {
                let options = git_settings::without_filter(name);
                self.options.extend(options.ok_or_else(|| format!("a filter of this repository has an odd name: {name}"))?);
                self.own_filters.push(name.to_owned());
            }
        }
        Ok(())
    }

    fn time_left(&self) -> Result<Duration, String> {
        self.until.checked_duration_since(Instant::now()).ok_or_else(too_slow)
    }

    /// Runs git, however it ends.
    pub(crate) fn ran(&self, args: &[&OsStr], ask: Ask<'_>) -> Result<Raw, String> {
        let quiet = QUIET.iter().flat_map(|setting| ["-c", setting]).map(OsStr::new);
        let filters = self.options.iter().filter(|_| !ask.with_filters).map(OsString::as_os_str);
        let args: Vec<&OsStr> = quiet.chain(filters).chain(args.iter().copied()).collect();
        let mut vars = AUTHOR.map(|(name, value)| (name, OsStr::new(value))).to_vec();
        vars.extend(ask.index.map(|index| ("GIT_INDEX_FILE", index.as_os_str())));
        let ran = process::git_raw(ask.folder.unwrap_or(&self.top), &args, &vars, ask.input, self.time_left()?, MOST_OUTPUT).map_err(
            |failure| match failure {
                Failure::CannotStart(e) if e.kind() == io::ErrorKind::NotFound => "git is not there".to_owned(),
                Failure::CannotStart(e) => format!("git cannot be started: {e}"),
                Failure::TookTooLong | Failure::Cancelled => too_slow(),
            },
        )?;
        if ran.whole { Ok(ran) } else { Err("git said more than can be read".to_owned()) }
    }

    /// What git answers; it must succeed.
    pub(crate) fn answer(&self, args: &[&OsStr], ask: Ask<'_>) -> Result<Vec<u8>, String> {
        let ran = self.ran(args, ask)?;
        if ran.code == Some(0) { Ok(ran.stdout) } else { Err(complaint(args, &ran.stderr)) }
    }

    pub(crate) fn ask(&self, args: &[&str]) -> Result<Vec<u8>, String> {
        self.answer(&args.iter().map(OsStr::new).collect::<Vec<_>>(), Ask::default())
    }

    /// One word of git's; `None`: it has none.
    pub(crate) fn word(&self, args: &[&str]) -> Result<Option<String>, String> {
        let ran = self.ran(&args.iter().map(OsStr::new).collect::<Vec<_>>(), Ask::default())?;
        let word = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        Ok(Some(word).filter(|word| ran.code == Some(0) && !word.is_empty()))
    }

    /// The commit that is checked out; `None` before the first one.
    pub(crate) fn head(&self) -> Result<Option<String>, String> {
        self.word(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])
    }

    /// The branch that is checked out, as `refs/heads/…`.
    pub(crate) fn branch(&self) -> Result<Option<String>, String> {
        self.word(&["symbolic-ref", "--quiet", "HEAD"])
    }
}

fn too_slow() -> String {
    "git did not answer in time".to_owned()
}

/// What git complained about, in one line: the first thing that went wrong is the cause of the rest.
pub(crate) fn complaint(args: &[&OsStr], stderr: &str) -> String {
    let is_complaint = |line: &&str| line.starts_with("error: ") || line.starts_with("fatal: ");
    let said = stderr.lines().find(is_complaint).or_else(|| stderr.lines().last()).unwrap_or("it failed without a word");
    let is_command = |arg: &str| !arg.starts_with('-') && !arg.contains('=');
    let command = args.iter().filter_map(|arg| arg.to_str()).find(|arg| is_command(arg)).unwrap_or_default();
    format!("git {command}: {}", words::clean(said))
}

/// A path as git writes it.
#[cfg(unix)]
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(std::str::from_utf8(bytes).unwrap_or_default())
}

/// The pieces between zeros.
pub(crate) fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|b| *b == 0).filter(|piece| !piece.is_empty())
}
