//! The part of Claude Code in the demo: it reports events to the hook, each in a process of its own, and reads the answers.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Output,
    time::{Duration, Instant},
};

use ralph_core::{
    journal::{Event, records},
    judge::{Decision, Ruling},
};
use ralph_engine::{
    hosts::{PLUGIN, Version, claude::registration::Hook},
    sys::process,
};
use serde_json::{Value, json};

use crate::exit::Failure;

const STATE: &str = if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME" };

const SESSION: &str = "0de30000-0000-4000-8000-000000000001";

/// A session of the agent's client in a project.
pub(super) struct Client {
    folder: PathBuf,
    /// Where ralph keeps that the person trusts what they typed; not among the person's own files.
    state: PathBuf,
    /// Messages that the person has sent.
    turns: u32,
    /// Whether the hook sent the agent back in this turn.
    sent_back: bool,
    /// How long the hook took for each stop, and whether it ran the check.
    took: Vec<(Duration, bool)>,
}

pub(super) struct Answer {
    /// For the person.
    pub(super) line: String,
    /// For the agent.
    pub(super) text: String,
}

impl Client {
    pub(super) fn new(folder: &Path, state: PathBuf) -> Self {
        Client { folder: folder.to_owned(), state, turns: 0, sent_back: false, took: Vec::new() }
    }

    /// The number of stops, and how long one took that had nothing to check: a new process, the decision, the file, the journal. The quickest, because
    /// a busy machine makes the others wait, and there are two.
    pub(super) fn pace(&self) -> (usize, Duration) {
        let quickest = self.took.iter().filter(|(_, checked)| !checked).map(|(took, _)| *took).min();
        (self.took.len(), quickest.unwrap_or_default())
    }

    /// The person sends a message, which must set the agent to work.
    pub(super) fn submit(&mut self, prompt: &str) -> Result<Answer, Failure> {
        self.turns += 1;
        self.sent_back = false;
        let (name, args) = prompt.trim_start_matches('/').split_once(' ').unwrap_or((prompt, ""));
        let answer = self.report("UserPromptExpansion", json!({ "prompt": prompt, "command_name": name, "command_args": args }))?;
        let (line, text) = (text_at(&answer, "/systemMessage"), text_at(&answer, "/hookSpecificOutput/additionalContext"));
        match (line, text) {
            (Some(line), Some(text)) => Ok(Answer { line, text }),
            _ => Err(unexpected("the typed command", &answer)),
        }
    }

    /// The agent tries to stop with these words. The ruling is what the journal says, and the answer must agree with it.
    pub(super) fn stop(&mut self, said: &str) -> Result<(Answer, Ruling), Failure> {
        let fields = json!({ "last_assistant_message": said, "stop_hook_active": self.sent_back });
        let begun = Instant::now();
        let answer = self.report("Stop", fields)?;
        let took = begun.elapsed();
        let reason = text_at(&answer, "/reason").or_else(|| text_at(&answer, "/hookSpecificOutput/additionalContext"));
        self.sent_back = reason.is_some();
        let (ruling, checked) = self.last_ruling()?;
        self.took.push((took, checked));
        match text_at(&answer, "/systemMessage") {
            Some(line) if self.sent_back == (ruling.decision == Decision::Block) => {
                Ok((Answer { line, text: reason.unwrap_or_default() }, ruling))
            }
            _ => Err(unexpected("the stop", &answer)),
        }
    }

    /// Runs one of ralph's commands in the project; what it prints.
    pub(super) fn run(&self, args: &[&str]) -> Result<String, Failure> {
        let name = format!("ralph {}", args.join(" "));
        printed(&name, process::run_self(args, &self.folder, &[(STATE, self.state.as_os_str())], b""))
    }

    fn report(&self, name: &str, fields: Value) -> Result<Value, Failure> {
        let mut event = json!({
            "session_id": SESSION, "cwd": self.folder, "hook_event_name": name, "prompt_id": self.turns.to_string(), "permission_mode": "default",
        });
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        let version = Version::TESTED.to_string().replace('.', "-");
        let client = format!("claude-code_{version}_harness");
        let vars = [
            // As this client does: what it reports as typed was typed.
            ("AI_AGENT", OsStr::new(&client)),
            ("CLAUDE_PROJECT_DIR", self.folder.as_os_str()),
            ("CLAUDE_CODE_SESSION_ID", OsStr::new(SESSION)),
            (STATE, self.state.as_os_str()),
            // The folder is removed at the end of the demo, so a page is of no use.
            ("RALPH_REPORT", OsStr::new("off")),
        ];
        let args = Hook::of(name).map(|hook| hook.args(hook.timeout, PLUGIN)).unwrap_or_default();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = process::run_self(&args, &self.folder, &vars, event.to_string().as_bytes());
        let text = printed("ralph hook claude", output)?;
        serde_json::from_str(&text)
            .map_err(|_| Failure::new(format!("ralph hook claude answered to {name}, unexpectedly: \"{}\"", text.trim())))
    }

    /// The last ruling, and whether something was run for it.
    fn last_ruling(&self) -> Result<(Ruling, bool), Failure> {
        let journal = self.run(&["log", "--json"])?;
        match records(journal.as_bytes()).0.pop().map(|record| record.event) {
            Some(Event::Stop { ruling, evidence, .. }) => Ok((ruling, evidence.gates.iter().any(|finding| !finding.skipped))),
            _ => Err(Failure::new("the stop is not in the journal")),
        }
    }
}

fn text_at(answer: &Value, pointer: &str) -> Option<String> {
    answer.pointer(pointer)?.as_str().map(str::to_owned)
}

fn unexpected(what: &str, answer: &Value) -> Failure {
    Failure::new(format!("the hook answered {what} unexpectedly: {answer}"))
}

/// The output of a ralph command that went well.
fn printed(name: &str, output: std::io::Result<Output>) -> Result<String, Failure> {
    let output = output.map_err(|e| Failure::new(format!("cannot run {name}: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Failure::new(format!("{name} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
}
