//! A sealed project: a temporary folder with a home of its own and a real git repository, untouched by the machine's
//! own configuration.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::process::{Output, bounded_methods, command_methods, run_bounded};

/// What every sealed process finds on its path.
pub const PATH: &str = "/usr/bin:/bin";

/// What is in a project: a folder comes before what is in it, and has no content.
pub(crate) type Contents = Vec<(PathBuf, Option<Vec<u8>>)>;

/// A temporary project folder beside its temporary home; both vanish on drop.
#[derive(Debug)]
pub struct Project {
    _root: TempDir,
    dir: PathBuf,
    home: PathBuf,
}

impl Project {
    /// A git repository with one commit.
    pub fn new() -> Self {
        Self::without_git().with_git()
    }

    /// The same in the home, where people have theirs, with a name that can be shown to them.
    pub fn at_home(name: &str) -> Self {
        Self::within(|base| base.join("home").join(name)).with_git()
    }

    /// A repository is made once in each process and then copied: that takes one git instead of eight.
    fn with_git(self) -> Self {
        static REPOSITORY: OnceLock<Contents> = OnceLock::new();
        self.fill(REPOSITORY.get_or_init(|| Self::without_git().with_new_git().contents()));
        self
    }

    /// Everything in this project, for [`Self::fill`]; without git's index, which knows files by their inodes and times, and its samples of hooks.
    pub(crate) fn contents(&self) -> Contents {
        let mut all = Vec::new();
        let mut folders = vec![self.dir.clone()];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.ends_with(".git/index") || path.extension().is_some_and(|ext| ext == "sample") {
                    continue;
                }
                let content = (!path.is_dir()).then(|| std::fs::read(&path).unwrap());
                all.push((path.strip_prefix(&self.dir).unwrap().to_owned(), content));
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        all
    }

    /// Gives this project the contents of another one: all that is in its repository is committed.
    pub(crate) fn fill(&self, contents: &Contents) {
        for (path, content) in contents {
            let path = self.path(path);
            match content {
                None => std::fs::create_dir_all(path).unwrap(),
                // An object that is here already cannot be written to, and is the same.
                Some(_) if path.exists() && path.starts_with(self.path(".git/objects")) => {}
                Some(bytes) => std::fs::write(path, bytes).unwrap(),
            }
        }
        self.git(&["add", "--all"]);
    }

    fn with_new_git(self) -> Self {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.git(&["config", "user.name", "Test"]);
        self.git(&["config", "user.email", "test@example.invalid"]);
        self.write("README.md", "A project.\n");
        self.commit_all("start");
        self
    }

    /// A bare folder, no repository.
    pub fn without_git() -> Self {
        Self::within(|base| base.join("project"))
    }

    fn within(place: impl Fn(&Path) -> PathBuf) -> Self {
        children_hear_signals();
        let root = TempDir::with_prefix_in("ralph-test-", temp_folder()).unwrap();
        // The client reports resolved paths, and a temporary folder may be behind a symbolic link.
        let base = root.path().canonicalize().unwrap();
        let (dir, home) = (place(&base), base.join("home"));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        Self { _root: root, dir, home }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.dir.join(relative)
    }

    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.path(relative).exists()
    }

    /// Writes a file, with the folders it needs.
    pub fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes the journal of a loop as if ralph had written it: with its seal, the copy of its last line in the user's state folder.
    pub fn write_journal(&self, id: &str, text: &str) {
        use std::os::unix::fs::DirBuilderExt;
        self.write(format!(".ralph/journal/{id}.jsonl"), text);
        let last = text.trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
        let record: serde_json::Value = serde_json::from_str(last).unwrap();
        let name = record["state"]["name"].as_str().unwrap_or("main");
        let place = if record["state"]["ended"].is_null() { format!("loops/{name}") } else { format!("ended/{id}") };
        let digest = Sha256::digest(self.dir.as_os_str().as_encoded_bytes());
        let hash = digest.iter().take(16).fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"));
        let seal = self.home.join(".local/state/ralph/projects").join(hash).join(place);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(seal.parent().unwrap()).unwrap();
        std::fs::write(seal, format!("1 {id} named {}\n{last}\n", text.len() - last.len() - 1)).unwrap();
    }

    /// Changes the journal of a loop, and seals it again.
    pub fn change_journal(&self, id: &str, change: impl Fn(&str) -> String) {
        let text = self.read(format!(".ralph/journal/{id}.jsonl"));
        self.write_journal(id, &change(&text));
    }

    /// Writes an executable file.
    pub fn script(&self, relative: impl AsRef<Path>, content: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(relative, content);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn read(&self, relative: impl AsRef<Path>) -> String {
        let path = self.path(relative);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// Runs git in the project and returns what it printed; a failure is a panic.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.run(git_program()).args(args).output();
        assert!(output.success(), "git {args:?}: {}", output.stderr);
        output.stdout
    }

    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "--all"]);
        // Two more processes that find nothing to tidy up.
        self.git(&["-c", "maintenance.auto=false", "commit", "--quiet", "--message", message]);
    }

    /// Prepares a run of `program` in the project, with a clean environment.
    pub fn run(&self, program: impl AsRef<OsStr>) -> Run {
        Run { command: self.command(program), stdin: Vec::new(), timeout: Duration::from_secs(30) }
    }

    /// A bare command in the project's folder and its sealed environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.dir).env_clear().envs(self.env());
        command
    }

    /// The sealed environment: nothing of the machine but a minimal path and, under coverage, where to write profiles.
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), self.home.clone().into()),
            ("PATH".into(), PATH.into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_TERMINAL_PROMPT".into(), "0".into()),
            ("TZ".into(), "UTC".into()),
            // Nobody waits for the process that writes a page: it would still be there when the folder goes away.
            ("RALPH_REPORT".into(), "off".into()),
            // A person's shell, even where an agent runs the tests.
            ("RALPH_ALONE".into(), "1".into()),
        ];
        // Without this an instrumented binary would drop its profile file into the project.
        env.extend(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE".into(), file)));
        env
    }

    /// The session transcripts the client has written in this project's home, oldest first.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = std::fs::read_dir(self.home.join(".claude/projects"))
            .into_iter()
            .flatten()
            .filter_map(|folder| std::fs::read_dir(folder.ok()?.path()).ok())
            .flatten()
            .filter_map(|file| Some(file.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
            .collect();
        found.sort_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok());
        found
    }
}

/// Where git is. A program that is named by its path is started without a copy of this process; one that is looked for on a path of its own is not.
pub(crate) fn git_program() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| PATH.split(':').map(|dir| Path::new(dir).join("git")).find(|path| path.exists()).unwrap_or_else(|| "git".into()))
}

/// Where projects are made: in memory where there is room for them, because every change that ralph makes is synced, and a disk takes its time
/// for that. `TMPDIR` names another place.
fn temp_folder() -> PathBuf {
    const ROOM: u64 = 2 << 30;
    let memory = Path::new("/dev/shm");
    let has_room = || {
        let name = CString::new(memory.as_os_str().as_bytes()).unwrap();
        // SAFETY: an all-zero `statvfs` is a valid value of it.
        let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: the name ends with a zero byte, and the result is written to a live structure.
        let known = unsafe { libc::statvfs(name.as_ptr(), &raw mut found) } == 0;
        // Projects have scripts in them that are started.
        known && found.f_bavail * found.f_frsize >= ROOM && found.f_flag & libc::ST_NOEXEC == 0
    };
    if std::env::var_os("TMPDIR").is_none() && has_room() { memory.to_owned() } else { std::env::temp_dir() }
}

/// What is ignored here would be ignored by every program that a test starts: under `nohup` a hangup, in the background of a shell without job
/// control an interrupt. What is handled is not passed on, and this process still survives it.
fn children_hear_signals() {
    static ONCE: Once = Once::new();
    extern "C" fn nothing(_: libc::c_int) {}
    ONCE.call_once(|| {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: an all-zero `sigaction` is a valid value of it; the handler does nothing, which is safe at any moment.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN {
                    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
                    action.sa_flags = libc::SA_RESTART;
                    libc::sigaction(signal, &raw const action, std::ptr::null_mut());
                }
            }
        }
    });
}

impl Default for Project {
    fn default() -> Self {
        Self::new()
    }
}

/// A program about to run in a project.
#[derive(Debug)]
pub struct Run {
    command: Command,
    stdin: Vec<u8>,
    timeout: Duration,
}

impl Run {
    command_methods!();
    bounded_methods!();

    pub fn output(mut self) -> Output {
        run_bounded(&mut self.command, &self.stdin, self.timeout)
    }
}
