//! `ralph run` with agents that are small scripts: what the runner itself does, without a client and without a model.

mod acp;
mod agents;
mod beside;
mod brakes;
mod control;
mod crash;
mod for_programs;
mod ground;
mod many;
mod money;
mod night;
mod one_item;
mod rounds;
mod screen;
mod several_agents;
mod status;

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ralph_testkit::{
    Output,
    process::{kill_tree, run_bounded},
};
use serde_json::Value;

use crate::common::{Bed, LOOP, RALPH};

/// How long a run of a few short rounds may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A bed in which a script is the agent. It is called once a round, with the prompt on its standard input, in the project's folder; beside the project,
/// `$OUT` is a folder for its notes: `$OUT/prompt.N` holds the prompt of its Nth session.
pub(crate) struct Runs {
    pub(crate) bed: Bed,
    agent: PathBuf,
}

const PROLOGUE: &str = r#"#!/bin/sh
OUT="$(dirname "$0")"
N=$(( $(cat "$OUT/sessions" 2>/dev/null || echo 0) + 1 ))
echo "$N" > "$OUT/sessions"
cat > "$OUT/prompt.$N"
echo "$RALPH_ITERATION" >> "$OUT/iterations"
commit() { git add -A >/dev/null && git commit -qm "iteration $RALPH_ITERATION" >/dev/null; }
"#;

impl Runs {
    /// In a git repository with one commit.
    pub(crate) fn new(script: &str) -> Self {
        let bed = Bed::in_git();
        bed.write("README.md", "a project\n");
        bed.commit_all("begin");
        Self::of(bed, script)
    }

    pub(crate) fn of(bed: Bed, script: &str) -> Self {
        let folder = bed.home().join("agent");
        fs::create_dir_all(&folder).unwrap();
        let agent = folder.join("agent.sh");
        fs::write(&agent, format!("{PROLOGUE}{script}")).unwrap();
        Runs { bed, agent }
    }

    pub(crate) fn agent_cmd(&self) -> String {
        format!("sh '{}'", self.agent.display())
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bed.command(RALPH);
        // The script ends most of these loops, and not their settings.
        command.args(["run", "--endless", "--agent-cmd"]).arg(self.agent_cmd()).args(args);
        command
    }

    /// Runs to the end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let out = run_bounded(&mut self.command(args), b"", PATIENCE);
        assert!(!out.timed_out, "ralph run {args:?} hangs\n{}\n{}", out.stdout, out.stderr);
        out
    }

    /// Runs to the end, which must come with this exit code.
    pub(crate) fn ends(&self, code: i32, args: &[&str]) -> Output {
        let out = self.run(args);
        assert_eq!(out.code, Some(code), "ralph run {args:?}\n{}\n{}", out.stdout, out.stderr);
        out
    }

    /// Starts it, in a process group of its own.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.spawn(self.command(args))
    }

    pub(crate) fn spawn(&self, mut command: Command) -> Running {
        let log = fs::File::create(self.out("shown")).unwrap();
        let errors = log.try_clone().unwrap();
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0).spawn().unwrap();
        Running { child, shown: self.out("shown") }
    }

    /// Ralph with a script in the place of Claude Code.
    pub(crate) fn with_client(&self, script: &str) -> Command {
        let folder = self.bed.home().join("client");
        fs::create_dir_all(&folder).unwrap();
        let client = format!("#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '2.1.325 (Claude Code)'; exit 0; }}\n{script}");
        fs::write(folder.join("claude"), client).unwrap();
        fs::set_permissions(folder.join("claude"), PermissionsExt::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap()))).unwrap();
        let mut command = self.bed.command(RALPH);
        command.env("PATH", path);
        command
    }

    /// A file of the agent's notes.
    pub(crate) fn out(&self, name: &str) -> PathBuf {
        self.agent.with_file_name(name)
    }

    pub(crate) fn noted(&self, name: &str) -> String {
        fs::read_to_string(self.out(name)).unwrap_or_default()
    }

    pub(crate) fn prompt(&self, session: u64) -> String {
        self.noted(&format!("prompt.{session}"))
    }

    /// How many sessions were started.
    pub(crate) fn sessions(&self) -> u64 {
        self.noted("sessions").trim().parse().unwrap_or(0)
    }

    /// The rounds that sessions were started for, in order.
    pub(crate) fn iterations(&self) -> Vec<u64> {
        self.noted("iterations").lines().map(|line| line.parse().unwrap()).collect()
    }

    /// The rounds that were ruled on, in order, each with its code.
    pub(crate) fn ruled(&self) -> Vec<(u64, String)> {
        let of = |r: &Value| {
            let event = &r["event"];
            (event["kind"] == "stop")
                .then(|| (event["evidence"]["iteration"].as_u64().unwrap(), event["ruling"]["code"].as_str().unwrap().to_owned()))
        };
        self.bed.journal().iter().filter_map(of).collect()
    }

    /// The records of one kind.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.bed.journal().into_iter().filter(|r| r["event"]["kind"] == kind).map(|r| r["event"].clone()).collect()
    }

    pub(crate) fn is_live(&self) -> bool {
        self.bed.exists(LOOP)
    }
}

/// A run that goes on.
pub(crate) struct Running {
    pub(super) child: Child,
    shown: PathBuf,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(self.pid().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; the exit code and all that it printed.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it does not end:\n{}", fs::read_to_string(&self.shown).unwrap());
            thread::sleep(Duration::from_millis(20));
        }
        (self.child.wait().unwrap().code(), fs::read_to_string(&self.shown).unwrap())
    }

    pub(crate) fn shown(&self) -> String {
        fs::read_to_string(&self.shown).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            kill_tree(self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process lives, zombies not counted.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}
