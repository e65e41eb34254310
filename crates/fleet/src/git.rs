//! Git for a fleet: in repositories that it made itself, and with the person's only to fetch from it and to push to it without force.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_engine::sys::command::{Failure, Ran, Task};
use serde::{Deserialize, Serialize};

use crate::{
    problem::{Problem, Result},
    settings,
};

/// A fetch of a large repository takes its time; anything that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(15);

const MOST_OUTPUT: usize = 16 << 20;

/// Variables that would send git to another repository, or make it run something.
const HIDDEN: [&str; 14] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH_COMMAND",
    "GIT_EDITOR",
];

/// Settings for every call: nothing of a repository's own is run, and nothing happens behind our back.
const ALWAYS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "protocol.ext.allow=never",
    "fetch.recurseSubmodules=no",
    "submodule.recurse=false",
    "merge.conflictStyle=merge",
];

/// What stands in a slot's git folder, and is not git's own: an agent may have written it, and git would obey.
const FOREIGN: [&str; 8] = [
    "hooks",
    "info/attributes",
    "info/grafts",
    "config.worktree",
    "commondir",
    "shallow",
    "objects/info/alternates",
    "objects/info/http-alternates",
];

/// How git is started at the other end, in the person's own repository: its hooks are not run, and a branch that is checked out there is not moved.
pub(crate) const AT_THE_PERSONS: [&str; 2] = [
    "--upload-pack=git -c core.fsmonitor=false upload-pack",
    "--receive-pack=git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c receive.denyCurrentBranch=refuse -c receive.autogc=false receive-pack",
];

/// The oldest git that merges without files.
const OLDEST: (u64, u64) = (2, 38);

/// Says before anything begins that this machine's git is too old. What does not tell its version is tried.
pub(crate) fn refuse_old() -> Result<()> {
    let said = Git::at(Path::new(".")).word(&["--version"])?;
    let mut numbers = said.split_whitespace().nth(2).unwrap_or_default().split('.').map_while(|part| part.parse::<u64>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST => Err(Problem::new(format!(
            "this is git {major}.{minor}, and a fleet needs {}.{} or newer, which merges without files",
            OLDEST.0, OLDEST.1
        ))),
        _ => Ok(()),
    }
}

/// A loop's own files, as patterns: they belong into nobody's commit.
pub(crate) const OF_A_LOOP: [&str; 2] = [".ralph/", ".claude/ralph-loop*.local.md"];

/// A repository of the fleet's own.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    pub folder: PathBuf,
    pub vars: Vec<(OsString, OsString)>,
}

/// Who makes commits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

impl Identity {
    /// The person's own, as git would take it in this repository.
    pub(crate) fn of(repository: &Path) -> Self {
        let git = Git::at(repository);
        let asked = |key: &str, default: &str| {
            git.word(&["config", "--get", key]).ok().filter(|word| !word.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        Identity { name: asked("user.name", "ralph"), email: asked("user.email", "ralph@localhost") }
    }

    fn vars(&self) -> Vec<(OsString, OsString)> {
        let pairs =
            [("AUTHOR_NAME", &self.name), ("AUTHOR_EMAIL", &self.email), ("COMMITTER_NAME", &self.name), ("COMMITTER_EMAIL", &self.email)];
        pairs.into_iter().map(|(name, value)| (format!("GIT_{name}").into(), value.into())).collect()
    }
}

impl Git {
    pub(crate) fn at(folder: &Path) -> Self {
        let vars = [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_LFS_SKIP_SMUDGE", "1"),
            ("LC_ALL", "C"),
        ];
        Git { folder: folder.to_owned(), vars: vars.map(|(name, value)| (name.into(), value.into())).to_vec() }
    }

    /// The same, with commits by this person.
    #[must_use]
    pub(crate) fn by(mut self, identity: &Identity) -> Self {
        self.vars.extend(identity.vars());
        self
    }

    /// The same, with another index.
    #[must_use]
    pub(crate) fn with_index(mut self, index: &Path) -> Self {
        self.vars.push(("GIT_INDEX_FILE".into(), index.into()));
        self
    }

    /// Runs it, and gives back whatever it says.
    pub(crate) fn ran(&self, args: &[&str], input: &[u8]) -> Result<Ran> {
        let settings = ALWAYS.iter().flat_map(|setting| ["-c".into(), OsString::from(setting)]);
        let task = Task {
            program: "git".into(),
            args: settings.chain(args.iter().map(OsString::from)).collect(),
            folder: &self.folder,
            vars: self.vars.clone(),
            hidden: HIDDEN.iter().filter(|name| !self.vars.iter().any(|(set, _)| set == **name)).map(OsString::from).collect(),
            input: input.to_vec(),
            limit: LIMIT,
            most_output: MOST_OUTPUT,
        };
        task.run().map_err(|failure| {
            Problem::new(match failure {
                Failure::CannotStart(e) => format!("git cannot be started: {e}"),
                Failure::TookTooLong => format!("git {} took longer than {} minutes", args.first().unwrap_or(&""), LIMIT.as_secs() / 60),
                Failure::Cancelled => "git was ended".to_owned(),
            })
        })
    }

    /// Runs it; anything but success is a problem.
    pub(crate) fn run(&self, args: &[&str]) -> Result<Ran> {
        let ran = self.ran(args, b"")?;
        if ran.code == Some(0) { Ok(ran) } else { Err(Problem::new(format!("git {}: {}", args.join(" "), last_words(&ran)))) }
    }

    /// The one word that it prints.
    pub(crate) fn word(&self, args: &[&str]) -> Result<String> {
        Ok(self.run(args)?.text())
    }

    /// The commit of a name, if it has one.
    pub(crate) fn commit(&self, name: &str) -> Result<Option<String>> {
        let ran = self.ran(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")], b"")?;
        Ok((ran.code == Some(0)).then(|| ran.text()))
    }

    /// The same for a ref, which mostly has a file of its own.
    pub(crate) fn tip(&self, name: &str) -> Result<Option<String>> {
        loose(&self.folder, name).map_or_else(|| self.commit(name), |tip| Ok(Some(tip)))
    }

    pub(crate) fn is_ancestor(&self, older: &str, newer: &str) -> Result<bool> {
        Ok(self.ran(&["merge-base", "--is-ancestor", older, newer], b"")?.code == Some(0))
    }

    /// The bytes of a file in a commit or tree, if it is there.
    pub(crate) fn file(&self, of: &str, path: &str) -> Result<Option<Vec<u8>>> {
        let ran = self.ran(&["cat-file", "blob", &format!("{of}:{path}")], b"")?;
        Ok((ran.code == Some(0)).then_some(ran.stdout))
    }

    /// A tree with one file replaced. It is the file that it is in `like`, whatever the tree has at its path: a link, a folder.
    pub(crate) fn with_file(&self, tree: &str, like: &str, path: &str, bytes: &[u8]) -> Result<String> {
        let blob = self.ran(&["hash-object", "-w", "--stdin"], bytes)?.text();
        let mode = self.word(&["ls-tree", "--format=%(objectmode)", like, "--", path])?;
        let mode = if mode == "100755" { mode } else { "100644".to_owned() };
        let index = self.folder.join(format!("index-{}-{:?}", std::process::id(), std::thread::current().id()));
        let git = self.clone().with_index(&index);
        let made = (|| {
            git.run(&["read-tree", tree])?;
            git.run(&["update-index", "--add", "--replace", "--cacheinfo", &format!("{mode},{blob},{path}")])?;
            git.word(&["write-tree"])
        })();
        let _ = fs::remove_file(&index);
        made
    }
}

/// What the file of a ref says, if it has one of its own and names an object.
pub(crate) fn loose(git_folder: &Path, name: &str) -> Option<String> {
    let told = fs::read_to_string(git_folder.join(name)).ok()?;
    let told = told.trim();
    (matches!(told.len(), 40 | 64) && told.bytes().all(|b| b.is_ascii_hexdigit())).then(|| told.to_owned())
}

/// Makes an empty repository: with files, or without.
pub(crate) fn init(folder: &Path, bare: bool) -> Result<Git> {
    settings::make(folder)?;
    let git = Git::at(folder);
    let kind: &[&str] =
        if bare { &["init", "--quiet", "--bare", "--template="] } else { &["init", "--quiet", "--template=", "--initial-branch=ralph"] };
    git.run(kind)?;
    Ok(git)
}

/// Makes a slot's git folder obey us again: its settings are ours, and what would run is gone. `kept_out`: files that belong into no commit. `false`: it is no git
/// folder any more.
pub(crate) fn seal(folder: &Path, identity: &Identity, kept_out: &[String]) -> Result<bool> {
    let own = folder.join(".git");
    if !fs::symlink_metadata(&own).is_ok_and(|meta| meta.is_dir()) {
        return Ok(false);
    }
    for name in FOREIGN {
        let path = own.join(name);
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        let removed = if meta.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(Problem::when(format!("{} cannot be removed", path.display())))?;
    }
    let Identity { name, email } = identity;
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n[user]\n\tname = {}\n\temail = {}\n[gc]\n\tauto = 0\n[receive]\n\tdenyCurrentBranch = refuse\n",
        quoted(name),
        quoted(email)
    );
    settings::write(&own.join("config"), config.as_bytes())?;
    settings::make(&own.join("info"))?;
    let of_a_loop = OF_A_LOOP.map(str::to_owned);
    let kept_out =
        kept_out.iter().map(|path| path.chars().flat_map(|c| if "*?[\\ ".contains(c) { vec!['\\', c] } else { vec![c] }).collect());
    let excluded: String = of_a_loop.into_iter().chain(kept_out).map(|path: String| ["/", &path, "\n"].concat()).collect();
    settings::write(&own.join("info/exclude"), excluded.as_bytes())?;
    Ok(true)
}

fn quoted(value: &str) -> String {
    let inside: String =
        value.chars().filter(|c| !c.is_control()).flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] }).collect();
    format!("\"{inside}\"")
}

/// The last line of what git complained about.
pub(crate) fn last_words(ran: &Ran) -> String {
    let said = ran.stderr.trim();
    let told: Vec<&str> =
        said.lines().filter(|line| line.starts_with("fatal:") || line.starts_with("error:") || line.starts_with(" ! ")).collect();
    if told.is_empty() { said.lines().last().unwrap_or("it failed").to_owned() } else { told.join("; ") }
}
