//! A repository, a home folder and an agent for one test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

pub(crate) struct Bed {
    pub(crate) root: TempDir,
}

/// What an agent does first: `$task` has the first line of its prompt, `$prompt` all of it, and a merge that was begun is resolved by keeping both sides.
const AGENT: &str = r#"#!/bin/sh
prompt=$(cat); task=$(printf '%s' "$prompt" | head -1)
say() { git add -A; git commit -qm "$1"; echo '<promise>DONE</promise>'; }
if git rev-parse -q --verify MERGE_HEAD >/dev/null; then
  for f in $(git diff --name-only --diff-filter=U); do sed -i '/^<<<<<<<\|^=======\|^>>>>>>>/d' "$f"; done
  say merged; exit
fi
"#;

/// `ralph` beside `ralph-fleet`: it is built with the rest of the workspace, and else now.
pub(crate) fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_ralph-fleet")).parent().unwrap().to_owned();
        if !folder.join("ralph").is_file() {
            let built = Command::new(env!("CARGO")).args(["build", "--quiet", "-p", "ralph-loop"]).status().unwrap();
            assert!(built.success());
        }
        folder
    })
}

impl Bed {
    /// A repository with these files, committed on `main`.
    pub(crate) fn new(files: &[(&str, &str)], agent: &str) -> Self {
        let bed = Bed { root: tempfile::tempdir().unwrap() };
        for folder in ["home", "repo", "marks"] {
            fs::create_dir(bed.root.path().join(folder)).unwrap();
        }
        bed.write_outside("agent.sh", &format!("{AGENT}{agent}"));
        bed.git(&["init", "-q", "-b", "main"]);
        bed.git(&["config", "user.name", "Person"]);
        bed.git(&["config", "user.email", "person@example.org"]);
        for (path, text) in files {
            bed.write(path, text);
        }
        bed.git(&["add", "-A"]);
        bed.git(&["commit", "-qm", "Start"]);
        bed
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.root.path().join("repo")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.repo().join(path), text).unwrap();
    }

    pub(crate) fn write_outside(&self, path: &str, text: &str) {
        fs::write(self.root.path().join(path), text).unwrap();
    }

    /// A program in the repository, with a clean environment.
    pub(crate) fn clean(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let (toolchain, path) = (Path::new(env!("CARGO")).parent().map(Path::to_owned), std::env::var_os("PATH").unwrap());
        command
            .env_clear()
            // The toolchain itself before what would look for one in the home folder, which is another one here.
            .env("PATH", std::env::join_paths(toolchain.into_iter().chain(std::env::split_paths(&path))).unwrap())
            .env("HOME", self.root.path().join("home"))
            .env("MARKS", self.root.path().join("marks"));
        command.current_dir(self.repo());
        command
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = self.clean("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.clean(programs().join("ralph-fleet"));
        command.args(args);
        command
    }

    /// `ralph-fleet` with these arguments, to its end.
    pub(crate) fn fleet(&self, args: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command(args).stdin(Stdio::null()).output().unwrap();
        (status.code().unwrap_or(-1), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
    }

    /// `ralph` with these arguments.
    pub(crate) fn ralph(&self, args: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = self.clean(programs().join("ralph")).args(args).stdin(Stdio::null()).output().unwrap();
        (status.code().unwrap_or(-1), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
    }

    /// The arguments of a run of the list with the script as its agent.
    pub(crate) fn run_args<'a>(&self, list: &'a str, more: &[&'a str]) -> Vec<String> {
        let agent = format!("sh '{}'", self.root.path().join("agent.sh").display());
        let mut args: Vec<String> = ["run", list, "--agent-cmd", &agent].map(str::to_owned).to_vec();
        args.extend(more.iter().map(|word| (*word).to_owned()));
        args
    }

    pub(crate) fn run(&self, list: &str, more: &[&str]) -> (i32, String) {
        let args = self.run_args(list, more);
        self.fleet(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn start(&self, list: &str, more: &[&str]) -> Child {
        let args = self.run_args(list, more);
        let log = fs::File::create(self.root.path().join("run.log")).unwrap();
        let mut command = self.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        command.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log).spawn().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.root.path().join("run.log")).unwrap_or_default()
    }

    /// What `ralph fleet status --json` says.
    pub(crate) fn status(&self) -> serde_json::Value {
        let (code, said) = self.fleet(&["status", "--json"]);
        assert_eq!(code, 0, "{said}");
        serde_json::from_str(&said).unwrap()
    }

    /// A job's field, as text.
    pub(crate) fn of_job(&self, id: &str, field: &str) -> String {
        let status = self.status();
        let job =
            status["jobs"].as_array().unwrap().iter().find(|job| job["id"] == id).unwrap_or_else(|| panic!("no {id} in {status}")).clone();
        job[field].as_str().map_or_else(|| job[field].to_string(), str::to_owned)
    }

    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_mins(2);
        while !holds() {
            assert!(Instant::now() < end, "{what} did not come: {}", self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn marks(&self) -> PathBuf {
        self.root.path().join("marks")
    }
}

/// Whether a process lives; one that nobody has buried yet does not.
pub(crate) fn lives(pid: impl std::fmt::Display) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// A list of items, all on one line.
pub(crate) fn compact(items: &[(&str, &str)]) -> String {
    let items: Vec<String> = items.iter().map(|(id, text)| format!(r#"{{"id":"{id}","description":"{text}","passes":false}}"#)).collect();
    format!(r#"{{"features":[{}]}}"#, items.join(","))
}
