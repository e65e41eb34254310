//! The repository around a project, and the questions that it is asked. Nothing that it brings is run ([`super::command`]).

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ralph_core::text;

use super::{
    Folders, Problem, attributes,
    command::{Ask, Sealed},
    config::Harmless,
    head::{self, is_id},
    index::Index,
    refs,
};
use crate::{
    store::project::Project,
    sys::{command::Ran, digest},
};

/// Git answers small questions in milliseconds.
pub(crate) const HASTE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Repository {
    pub folders: Folders,
    /// Where the project is below the top of the working tree.
    pub(crate) below: PathBuf,
    /// Which working tree and which folder of it, in a few letters; empty for the usual one.
    pub(crate) place: String,
    pub(crate) harmless: Harmless,
    sealed: Sealed,
    until: Instant,
}

impl Repository {
    /// The repository that keeps a project's files. `None`: there is no git, no repository, or one that ignores the project.
    pub(crate) fn of(project: &Project, limit: Duration) -> Result<Option<Self>, Problem> {
        let repository = match Repository::around(project.root(), limit) {
            Err(Problem::NoGit) => return Ok(None),
            other => other?,
        };
        let Some(repository) = repository else { return Ok(None) };
        Ok(if repository.is_ignored()? { None } else { Some(repository) })
    }

    /// The repository around a folder. `None`: there is none.
    pub fn around(folder: &Path, limit: Duration) -> Result<Option<Self>, Problem> {
        let until = Instant::now() + limit;
        let Some(folders) = Folders::around(folder)? else { return Ok(None) };
        let harmless = Harmless::of(&folders)?;
        if let Some(other) = harmless.other_worktree(&folders) {
            return Err(Problem::Other(format!("git takes {} for the working tree of {}", other.display(), folders.top.display())));
        }
        let sealed = Sealed::new(&folders, &harmless)?;
        sealed.check_owner(limit.min(HASTE))?;
        let root = folder.canonicalize().map_err(|e| Problem::Other(format!("{} cannot be read: {e}", folder.display())))?;
        let below = root.strip_prefix(&folders.top).unwrap_or(Path::new("")).to_owned();
        let place = place(&folders, &below);
        Ok(Some(Repository { folders, below, place, harmless, sealed, until }))
    }

    /// A repository around the project, a home folder for instance, need not have anything to do with it.
    fn is_ignored(&self) -> Result<bool, Problem> {
        if self.below.as_os_str().is_empty() {
            return Ok(false);
        }
        let args = [OsStr::new("check-ignore"), OsStr::new("-q"), OsStr::new("--"), self.below.as_os_str()];
        Ok(self.ran(&args, Ask::default())?.code == Some(0))
    }

    /// The same word in all clones: made from the first commits of the history. `None`: there is no commit yet, or the history is cut off.
    pub(crate) fn id(&self) -> Result<Option<String>, Problem> {
        if self.folders.common.join("shallow").exists() {
            return Ok(None);
        }
        let told = self.ran(&["rev-list", "--max-parents=0", "HEAD"], Ask::default())?;
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        let mut roots: Vec<&str> = text.lines().filter(|line| is_id(line)).collect();
        roots.sort_unstable();
        Ok((told.code == Some(0) && !roots.is_empty()).then(|| digest::short(roots.join(" ").as_bytes())))
    }

    pub(crate) fn top(&self) -> &Path {
        &self.folders.top
    }

    /// Runs git, however it ends.
    pub fn ran(&self, args: &[impl AsRef<OsStr>], ask: Ask<'_>) -> Result<Ran, Problem> {
        let time_left = self.until.checked_duration_since(Instant::now()).ok_or(Problem::TooSlow)?;
        self.sealed.run(args, ask, time_left)
    }

    /// Git's answer; it must succeed.
    pub(crate) fn answer(&self, args: &[impl AsRef<OsStr>], ask: Ask<'_>) -> Result<Vec<u8>, Problem> {
        let ran = self.ran(args, ask)?;
        if ran.code == Some(0) { Ok(ran.stdout) } else { Err(Problem::Other(complaint(args, &ran.stderr))) }
    }

    /// The same as text.
    pub(crate) fn text(&self, args: &[&str], input: impl Into<Vec<u8>>) -> Result<String, Problem> {
        let bytes = self.answer(args, Ask { input: input.into(), ..Ask::default() })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// One word of git's; `None`: it has none.
    pub fn word(&self, args: &[&str]) -> Result<Option<String>, Problem> {
        let ran = self.ran(args, Ask::default())?;
        let word = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        Ok(Some(word).filter(|word| ran.code == Some(0) && !word.is_empty()))
    }

    /// Has git show something to the person, in their colours and through their pager.
    pub(crate) fn show(&self, folder: &Path, args: &[&OsStr]) -> std::io::Result<Option<i32>> {
        self.sealed.show(folder, args)
    }

    /// The tracked files, in this index, that have a filter which is not the person's own. No such filter runs.
    pub(crate) fn filtered_by_others(&self, index: &Index) -> Result<HashSet<Vec<u8>>, Problem> {
        if !attributes::name_filters(&self.folders, index) {
            return Ok(HashSet::new());
        }
        let tracked: Vec<u8> = index.entries.iter().flat_map(|entry| [&entry.path, b"\0".as_slice()].concat()).collect();
        let told = self.answer(&["check-attr", "-z", "--stdin", "filter"], Ask { input: tracked, ..Ask::default() })?;
        let fields: Vec<&[u8]> = told.split(|b| *b == 0).collect();
        let has_one = |value: &[u8]| !matches!(value, b"unspecified" | b"unset" | b"set" | b"");
        let filtered: Vec<&[&[u8]]> = fields.chunks_exact(3).filter(|field| has_one(field[2])).collect();
        if filtered.is_empty() {
            return Ok(HashSet::new());
        }
        let names = self.ran(&["config", "-z", "--name-only", "--get-regexp", r"^filter\."], Ask::default())?.stdout;
        let of_person = |name: &[u8]| pieces(&names).any(|key| filter_in(key) == Some(name));
        Ok(filtered.iter().filter(|field| !of_person(field[2])).map(|field| field[0].to_vec()).collect())
    }

    /// The working tree's index, with an entry for each file.
    pub(crate) fn index(&self) -> Result<Index, Problem> {
        let cannot = |e| Problem::Other(format!("git's index cannot be read: {e}"));
        Index::full(&self.folders, self.harmless.id_length()).map_err(cannot)
    }

    /// The trees of those of these commits that exist.
    pub(crate) fn trees<'c>(&self, commits: impl IntoIterator<Item = &'c str>) -> Result<HashMap<String, String>, Problem> {
        let commits: Vec<&str> = commits.into_iter().collect::<HashSet<_>>().into_iter().collect();
        if commits.is_empty() {
            return Ok(HashMap::new());
        }
        let asked = commits.iter().flat_map(|commit| [commit, "^{tree}\n"]).collect::<String>();
        let told = self.text(&["cat-file", "--batch-check=%(objectname)"], asked)?;
        // One line for each, in their order; `… missing` for one that does not exist.
        let found = commits.iter().zip(told.lines()).filter(|(_, tree)| is_id(tree));
        Ok(found.map(|(commit, tree)| ((*commit).to_owned(), tree.to_owned())).collect())
    }

    /// The commit that is checked out; `None` before the first one.
    pub(crate) fn head(&self) -> Result<Option<String>, Problem> {
        match head::of(&self.folders) {
            Some(commit) => Ok(Some(commit)),
            None => self.word(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]),
        }
    }

    /// The branch that is checked out, as `refs/heads/…`.
    pub fn branch(&self) -> Result<Option<String>, Problem> {
        if self.folders.has_reftable() {
            return self.word(&["symbolic-ref", "--quiet", "HEAD"]);
        }
        Ok(head::branch(&self.folders))
    }

    /// The value of a ref; `None`: there is none.
    pub(crate) fn reference(&self, name: &str) -> Result<Option<String>, Problem> {
        if self.folders.has_reftable() {
            return self.word(&["rev-parse", "--quiet", "--verify", name]);
        }
        Ok(head::named(&self.folders, name))
    }

    /// Points a ref to a commit, without a reflog.
    pub(crate) fn set_reference(&self, name: &str, commit: &str) -> Result<(), Problem> {
        if refs::write(&self.folders, name, commit) {
            return Ok(());
        }
        self.text(&["-c", "core.logAllRefUpdates=false", "update-ref", "--no-deref", name, commit], "").map(drop)
    }

    /// A path for a file that goes with this value.
    pub(crate) fn temporary(&self, name: &str) -> PathBuf {
        self.sealed.temporary(name)
    }
}

fn place(folders: &Folders, below: &Path) -> String {
    let of_tree = folders.git_dir.strip_prefix(&folders.common).unwrap_or(&folders.git_dir);
    if of_tree.as_os_str().is_empty() && below.as_os_str().is_empty() {
        return String::new();
    }
    let place = [of_tree.as_os_str().as_encoded_bytes(), b"\0", below.as_os_str().as_encoded_bytes()].concat();
    digest::short(&place).chars().take(8).collect()
}

/// Git's complaint, in one line: the first error is the cause of the rest.
fn complaint(args: &[impl AsRef<OsStr>], stderr: &str) -> String {
    let is_complaint = |line: &&str| line.starts_with("error: ") || line.starts_with("fatal: ");
    let said = stderr.lines().find(is_complaint).or_else(|| stderr.lines().last()).unwrap_or("it failed without a word");
    let is_command = |arg: &str| !arg.starts_with('-') && !arg.contains('=');
    let command = args.iter().filter_map(|arg| arg.as_ref().to_str()).find(|arg| is_command(arg)).unwrap_or_default();
    format!("git {command}: {}", text::clean(said))
}

/// The name in `filter.name.clean`.
fn filter_in(key: &[u8]) -> Option<&[u8]> {
    let rest = key.strip_prefix(b"filter.")?;
    rest.get(..rest.iter().rposition(|byte| *byte == b'.')?)
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
