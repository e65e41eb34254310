//! A sealed project: a temporary folder with a home of its own and a real git repository, untouched by the machine's
//! own configuration.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::process::{Output, bounded_methods, command_methods, run_bounded};

/// What every sealed process finds on its path.
pub const PATH: &str = "/usr/bin:/bin";

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

    fn with_git(self) -> Self {
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
        let root = TempDir::with_prefix("ralph-test-").unwrap();
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
        let output = self.run("git").args(args).output();
        assert!(output.success(), "git {args:?}: {}", output.stderr);
        output.stdout
    }

    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
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
