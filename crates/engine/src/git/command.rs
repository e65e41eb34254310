//! The only place that starts git.
//!
//! Git gets a folder of its own in the place of the repository's: with links to the objects, refs and reflogs, a copy of HEAD, and a configuration that
//! ralph wrote. So there is no hook, filter, pager, monitor, helper or included file of the repository's that git could know of, whatever it is called.
//! The person's own configuration counts, as ever, unless it is inside the project. No variable of git's comes from outside, nothing is fetched, and
//! the time and the output are bounded.

use std::{
    ffi::{OsStr, OsString},
    fmt, fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::{Folders, config::Harmless, head, owner};
use crate::sys::{
    command::{Failure, Ran, Task},
    env, files, process,
    temp_dir::Scratch,
};

/// The temporary folders' names begin with this.
pub(crate) const PREFIX: &str = "ralph-git-";

/// A list of some hundred thousand files.
const MOST_OUTPUT: usize = 64 << 20;

/// The links of the sealed folder into the one that all working trees share, and into that of one linked working tree.
const SHARED: [&str; 9] = ["objects", "refs", "packed-refs", "reftable", "logs", "info", "shallow", "worktrees", "lfs"];
const OF_TREE: [&str; 4] = ["refs", "reftable", "logs", "info"];

/// Against the person's own settings: git writes nothing but what is asked for, believes no shortcut about files, and starts nothing beside itself.
const SETTINGS: [&str; 15] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.ignoreStat=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.safecrlf=false",
    "index.sparse=false",
    "submodule.recurse=false",
    "i18n.commitEncoding=UTF-8",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

const VARIABLES: [(&str, &str); 10] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // No way of fetching or pushing is allowed.
    ("GIT_ALLOW_PROTOCOL", ""),
    // Snapshots need no `user.name`.
    ("GIT_AUTHOR_NAME", "ralph"),
    ("GIT_AUTHOR_EMAIL", "ralph@localhost"),
    ("GIT_COMMITTER_NAME", "ralph"),
    ("GIT_COMMITTER_EMAIL", "ralph@localhost"),
    // What git says is read, and must not depend on the person's language.
    ("LC_ALL", "C"),
];

/// Why git has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    NoGit,
    TooSlow,
    /// The repository belongs to another user: whose, and what to do about it.
    Foreign {
        user: u32,
        top: PathBuf,
    },
    /// Anything else, in words.
    Other(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoGit => f.write_str("git is not there"),
            Problem::TooSlow => f.write_str("git did not answer in time"),
            Problem::Foreign { user, top } => write!(
                f,
                "this repository belongs to another user ({user}), so git is not asked about it. If you trust it: \
                 git config --global --add safe.directory '{}'",
                top.display()
            ),
            Problem::Other(words) => f.write_str(words),
        }
    }
}

impl From<Problem> for String {
    fn from(problem: Problem) -> Self {
        problem.to_string()
    }
}

impl From<String> for Problem {
    fn from(words: String) -> Self {
        Problem::Other(words)
    }
}

/// A git that knows one repository and nothing that the repository says about programs.
#[derive(Debug)]
pub(super) struct Sealed {
    program: PathBuf,
    folders: Folders,
    /// The folder that git takes for the repository's; it goes with this value.
    scratch: Scratch,
}

/// The circumstances of a question.
#[derive(Default)]
pub struct Ask<'a> {
    pub index: Option<&'a Path>,
    pub input: Vec<u8>,
    /// Where paths are seen from; otherwise the top of the working tree.
    pub folder: Option<&'a Path>,
}

impl Sealed {
    pub(super) fn new(folders: &Folders, harmless: &Harmless) -> Result<Self, Problem> {
        let program = process::which_outside("git", &folders.top).ok_or(Problem::NoGit)?;
        let cannot = |e: io::Error| Problem::Other(format!("no temporary folder can be made for git: {e}"));
        let scratch = Scratch::create(PREFIX, false).map_err(cannot)?;
        seal(folders, &harmless.written(), scratch.path()).map_err(cannot)?;
        Ok(Sealed { program, folders: folders.clone(), scratch })
    }

    /// A path for a file that goes with this value.
    pub(super) fn temporary(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Refuses a repository of another user's that the person did not allow.
    pub(super) fn check_owner(&self, limit: Duration) -> Result<(), Problem> {
        let Some(user) = owner::stranger(&self.folders) else { return Ok(()) };
        let args = ["config", "-z", "--type=path", "--get-all", "safe.directory"];
        let said = self.run(&args, Ask { folder: Some(self.scratch.path()), ..Ask::default() }, limit)?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let settings: Vec<&str> = said.split_terminator('\0').collect();
        if owner::is_allowed(&self.folders, &settings) { Ok(()) } else { Err(Problem::Foreign { user, top: self.folders.top.clone() }) }
    }

    /// Runs git, however it ends.
    pub(super) fn run(&self, words: &[impl AsRef<OsStr>], ask: Ask<'_>, limit: Duration) -> Result<Ran, Problem> {
        let mut args: Vec<OsString> = vec!["--no-pager".into()];
        args.extend(settings().map(OsStr::to_owned));
        args.extend(words.iter().map(|word| word.as_ref().to_owned()));
        let task = Task {
            program: self.program.clone().into(),
            args,
            folder: ask.folder.unwrap_or(&self.folders.top),
            vars: self.variables(ask.index),
            hidden: git_vars(),
            input: ask.input,
            limit,
            most_output: MOST_OUTPUT,
        };
        let ran = task.run_whole().map_err(|failure| match failure {
            Failure::CannotStart(e) if e.kind() == io::ErrorKind::NotFound => Problem::NoGit,
            Failure::CannotStart(e) => Problem::Other(format!("git cannot be started: {e}")),
            Failure::TookTooLong | Failure::Cancelled => Problem::TooSlow,
        })?;
        if ran.whole { Ok(ran) } else { Err(Problem::Other("git said more than can be read".to_owned())) }
    }

    /// Has git show something to the person, through their pager where there is a terminal.
    #[expect(clippy::disallowed_methods, reason = "the one place where git speaks to the person")]
    pub(super) fn show(&self, folder: &Path, args: &[&OsStr]) -> io::Result<Option<i32>> {
        const OF_THE_PERSON: [&str; 2] = ["GIT_PAGER", "GIT_PAGER_IN_USE"];
        let mut command = Command::new(&self.program);
        for name in git_vars().iter().filter(|name| !OF_THE_PERSON.iter().any(|own| *name == own)) {
            command.env_remove(name);
        }
        let mut child = command.args(settings()).args(args).current_dir(folder).envs(self.variables(None)).spawn()?;
        process::leave_interrupts_to_the_reader();
        Ok(child.wait()?.code())
    }

    fn variables(&self, index: Option<&Path>) -> Vec<(OsString, OsString)> {
        let folder = self.scratch.path().join(if self.folders.is_linked() { "tree" } else { "shared" });
        let index = index.map_or_else(|| self.folders.index(), Path::to_owned);
        let places = [("GIT_DIR", folder), ("GIT_WORK_TREE", self.folders.top.clone()), ("GIT_INDEX_FILE", index)];
        let mut all: Vec<(OsString, OsString)> = places.into_iter().map(|(name, path)| (name.into(), path.into())).collect();
        all.extend(VARIABLES.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        if is_configured_by(&self.folders.top) {
            all.push(("GIT_CONFIG_GLOBAL".into(), if cfg!(windows) { "NUL" } else { "/dev/null" }.into()));
        }
        all
    }
}

/// Makes the folder that git gets in the place of the repository's.
fn seal(folders: &Folders, configuration: &[u8], at: &Path) -> io::Result<()> {
    let shared = at.join("shared");
    fs::create_dir(&shared)?;
    files::write_whole(&shared.join("config"), configuration)?;
    link_all(&folders.common, &shared, &SHARED)?;
    copy_head(&folders.common, &shared)?;
    if folders.is_linked() {
        let tree = at.join("tree");
        fs::create_dir(&tree)?;
        files::write_whole(&tree.join("commondir"), b"../shared\n")?;
        link_all(&folders.git_dir, &tree, &OF_TREE)?;
        copy_head(&folders.git_dir, &tree)?;
    }
    Ok(())
}

fn link_all(from: &Path, to: &Path, names: &[&str]) -> io::Result<()> {
    for name in names {
        let target = from.join(name);
        if let Ok(meta) = fs::metadata(&target) {
            link(&target, &to.join(name), meta.is_dir())?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(target: &Path, at: &Path, _is_folder: bool) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(windows)]
fn link(target: &Path, at: &Path, is_folder: bool) -> io::Result<()> {
    if is_folder { std::os::windows::fs::symlink_dir(target, at) } else { std::os::windows::fs::symlink_file(target, at) }
}

/// Git takes a link there for something else.
fn copy_head(from: &Path, to: &Path) -> io::Result<()> {
    let head = head::head(from).ok_or_else(|| io::Error::other("HEAD cannot be read"))?;
    files::write_whole(&to.join("HEAD"), format!("{head}\n").as_bytes())
}

fn settings() -> impl Iterator<Item = &'static OsStr> {
    SETTINGS.iter().flat_map(|setting| ["-c", *setting]).map(OsStr::new)
}

/// Variables that could lead git elsewhere.
fn git_vars() -> Vec<OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| name.as_encoded_bytes().starts_with(b"GIT_")).collect()
}

/// Whether what looks like the person's own configuration is inside the project: settings of a project can set variables. Some people keep their home folder
/// in git; that is the working tree itself.
fn is_configured_by(top: &Path) -> bool {
    let places = [env::home(), env::config_home()];
    let real = |place: PathBuf| place.canonicalize().unwrap_or(place);
    let home = env::home().map(real);
    home.as_deref() != Some(top) && places.into_iter().flatten().map(real).any(|place| place.starts_with(top))
}

/// Plain git for tests, which make repositories with it; it must succeed.
#[cfg(test)]
pub(crate) fn in_test(folder: &Path, args: &[&str], vars: &[(&str, &OsStr)]) -> Vec<u8> {
    let ran = try_in_test(folder, args, vars, Vec::new());
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

#[cfg(test)]
pub(crate) fn try_in_test(folder: &Path, args: &[&str], vars: &[(&str, &OsStr)], input: Vec<u8>) -> Ran {
    let me = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"];
    let task = Task {
        program: process::which("git").unwrap().into(),
        args: me.iter().chain(args).map(OsString::from).collect(),
        folder,
        vars: vars.iter().map(|(name, value)| ((*name).into(), (*value).to_owned())).collect(),
        hidden: git_vars(),
        input,
        limit: Duration::from_mins(1),
        most_output: MOST_OUTPUT,
    };
    task.run_whole().unwrap()
}
