//! Projects, events and transcripts to run the hook on: always the same, but for the numbers that make one stop differ from the next.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use ralph_engine::hosts::{PLUGIN, claude::registration::Hook};
use serde_json::json;

use crate::Result;

pub(crate) const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// Stands for the number of a stop in an event; as long as the number itself.
const NUMBER: &str = "@@@@@@@@";

/// About as long as people's prompts are.
const PROMPT: &str = "Port the configuration loader to the new format.

Work through the open points in docs/port.md one by one. For each of them write a failing test first, make it pass, then run the whole
test suite and the linter. Keep the public interface as it is; where it has to change, add a note to CHANGELOG.md that says why and
what a user has to do. Do not touch the generated files by hand. When every point is done, all tests pass and the linter is silent,
claim completion.";

/// About as long as the last message of a round is.
pub(crate) const MESSAGE: &str = "I finished point 12 of docs/port.md: the loader now reads the nested tables, and the old format is still \
accepted with a warning.\n\n- `loader::read` takes the new section names\n- three tests cover the nested tables, one the warning\n- the \
whole suite passes (214 tests), the linter is silent\n\nNext I would take on the environment overrides, which still go through the old \
path. There are two places that I am not sure about: whether an empty variable should count as unset, and what happens when both \
formats are present. I will write tests for both before I change anything.";

/// The arguments that the hook is registered with.
pub(crate) fn hook_args() -> Vec<String> {
    Hook::of("Stop").map(|hook| hook.args(hook.timeout, PLUGIN)).unwrap_or_default()
}

/// The file that is never there.
const REPORT: &str = "REPORT.md";

/// Whether the verdict of a gate's command is believed while no file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    On,
    Off,
}

/// Whether a project is a git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repository {
    Yes,
    No,
}

/// A folder to run the hook in.
pub(crate) struct Project {
    pub(crate) dir: PathBuf,
}

impl Project {
    /// An empty folder.
    pub(crate) fn bare(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        fs::create_dir_all(&dir)?;
        Ok(Project { dir })
    }

    /// A folder in which Claude Code was used, but never ralph.
    pub(crate) fn with_claude(dir: impl Into<PathBuf>) -> Result<Self> {
        let project = Self::bare(dir)?;
        fs::create_dir_all(project.dir.join(".claude/commands"))?;
        fs::write(project.dir.join(".claude/settings.local.json"), "{}\n")?;
        Ok(project)
    }

    /// A folder with a loop of the session, without a limit on iterations.
    pub(crate) fn with_loop(dir: impl Into<PathBuf>, ralph: &Path) -> Result<Self> {
        let project = Self::with_claude(dir)?;
        project.start(ralph, &[])?;
        Ok(project)
    }

    /// A folder that uses ralph, but has no live loop.
    pub(crate) fn with_ended_loop(dir: impl Into<PathBuf>, ralph: &Path) -> Result<Self> {
        let project = Self::with_loop(dir, ralph)?;
        project.ralph(ralph, &["cancel"])?;
        Ok(project)
    }

    /// A repository of 200 committed files.
    pub(crate) fn with_repository(dir: impl Into<PathBuf>) -> Result<Self> {
        let project = Self::bare(dir)?;
        for n in 0..200 {
            let file = project.dir.join(format!("src/part{}/file{n}.rs", n / 20));
            fs::create_dir_all(file.parent().unwrap_or(&file))?;
            fs::write(file, format!("/// Number {n}.\npub fn number() -> u32 {{\n    {n}\n}}\n").repeat(10))?;
        }
        fs::write(project.dir.join(".gitignore"), "/.claude/\n/ralph.toml\n")?;
        // Files that are almost as new as git's index are read at every look, because they may have changed since; in few repositories all of them are.
        thread::sleep(Duration::from_millis(2_100));
        project.git(&["init", "--quiet"])?;
        project.git(&["add", "."])?;
        project.git(&["-c", "user.name=n", "-c", "user.email=n@localhost", "commit", "--quiet", "--message", "All"])?;
        Ok(project)
    }

    /// A folder with a loop whose claim has to be proven by the command `true`, and by a file that is never there, so that the loop goes on.
    pub(crate) fn with_gate(dir: impl Into<PathBuf>, ralph: &Path, cache: Cache, repository: Repository) -> Result<Self> {
        let dir = dir.into();
        if repository == Repository::Yes {
            Self::with_repository(&dir)?;
        }
        let project = Self::with_claude(dir)?;
        let settings = format!(
            "keep_going = true\n\n[[gate]]\nname = \"trivial\"\ncommand = \"true\"\ncache = {}\n\n[[gate]]\nname = \"report\"\nfile = \"{REPORT}\"\n",
            cache == Cache::On
        );
        fs::write(project.dir.join("ralph.toml"), settings)?;
        project.ralph(ralph, &["trust", "--yes"])?;
        project.start(ralph, &["--stall-iterations", "1000000"])?;
        Ok(project)
    }

    /// Starts a loop of the session without a limit on iterations.
    fn start(&self, ralph: &Path, options: &[&str]) -> Result<()> {
        let start = ["start", PROMPT, "--completion-promise", "DONE", "--max-iterations", "0", "--session", SESSION];
        self.ralph(ralph, &[&start[..], options].concat())
    }

    /// One of the files of a repository.
    pub(crate) fn source(&self) -> PathBuf {
        self.dir.join("src/part0/file0.rs")
    }

    fn git(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new("git");
        let output = command
            .args(args)
            .current_dir(&self.dir)
            .env("HOME", self.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .output()?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
    }

    /// The user's home folder, beside the project.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.with_extension("home")
    }

    /// Runs one of ralph's commands here.
    pub(crate) fn ralph(&self, ralph: &Path, args: &[&str]) -> Result<()> {
        let mut command = Command::new(ralph);
        command.args(args).current_dir(&self.dir).env_clear().envs(self.env_of_person()).stdin(Stdio::null());
        let output = command.output()?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
    }

    pub(crate) fn loop_file(&self) -> PathBuf {
        self.dir.join(".claude/ralph-loop.local.md")
    }

    /// Repeats the journal's lines until it has about that many bytes.
    pub(crate) fn lengthen_journal(&self, bytes: usize) -> Result<()> {
        for entry in fs::read_dir(self.dir.join(".ralph/journal"))? {
            let path = entry?.path();
            let lines = fs::read(&path)?;
            fs::write(&path, lines.repeat(bytes / lines.len().max(1) + 1))?;
        }
        Ok(())
    }

    /// How far the loop is.
    pub(crate) fn iteration(&self) -> Result<u64> {
        let text = fs::read_to_string(self.loop_file())?;
        let value = text.lines().find_map(|l| l.strip_prefix("iteration: "));
        Ok(value.ok_or("the loop file has no iteration")?.trim().parse()?)
    }

    /// The environment of a person's own shell.
    pub(crate) fn env_of_person(&self) -> Vec<(&'static str, String)> {
        vec![("PATH", "/usr/bin:/bin".to_owned()), ("HOME", self.home().display().to_string())]
    }

    /// The environment that the client gives a hook. `client` is its name and version.
    pub(crate) fn env(&self, client: Option<&str>) -> Vec<(&'static str, String)> {
        let mut env = self.env_of_person();
        env.extend([
            ("CLAUDE_PROJECT_DIR", self.dir.display().to_string()),
            ("CLAUDE_CODE_SESSION_ID", SESSION.to_owned()),
            ("CLAUDECODE", "1".to_owned()),
            ("CLAUDE_CODE_ENTRYPOINT", "cli".to_owned()),
            ("CLAUDE_PID", "12345".to_owned()),
        ]);
        env.extend(client.map(|c| ("AI_AGENT", c.to_owned())));
        env
    }
}

/// The stops of one case: all alike, and no two the same.
pub(crate) struct Stops {
    template: String,
}

impl Stops {
    /// Stops whose event carries the last message.
    pub(crate) fn with_message(project: &Project, transcript: &Path) -> Self {
        Stops { template: event(project, transcript, Some(MESSAGE)) }
    }

    /// Stops as clients before 2.1.47 report them: the message is in the transcript only.
    pub(crate) fn without_message(project: &Project, transcript: &Path) -> Self {
        Stops { template: event(project, transcript, None) }
    }

    /// Stops whose agent claims to be done.
    pub(crate) fn with_claim(project: &Project) -> Self {
        let nowhere = project.dir.with_extension("jsonl");
        Stops { template: event(project, &nowhere, Some(&format!("{MESSAGE}\n\n<promise>DONE</promise>"))) }
    }

    /// The event of stop number `n`; as long as that of any other.
    pub(crate) fn event(&self, n: u64) -> String {
        self.template.replace(NUMBER, &format!("{n:08}"))
    }
}

fn event(project: &Project, transcript: &Path, message: Option<&str>) -> String {
    let mut event = json!({
        "session_id": SESSION,
        "transcript_path": transcript,
        "cwd": project.dir,
        // One per turn of the person's. A new one each time also keeps ralph from taking two stops for one.
        "prompt_id": format!("aaaaaaaa-bbbb-4ccc-8ddd-0000{NUMBER}"),
        "permission_mode": "default",
        "effort": { "level": "high" },
        "hook_event_name": "Stop",
        "stop_hook_active": true,
        "background_tasks": [],
        "session_crons": [],
    });
    if let Some(message) = message {
        event["last_assistant_message"] = json!(message);
    }
    event.to_string()
}
