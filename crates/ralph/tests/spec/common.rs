//! The bed that every test lies in: a sealed project, events as the client sends them, and transcripts as it writes them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    fs,
    io::Write as _,
    ops::Deref,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ralph_testkit::{Output, Project, process::run_alone};
use serde_json::{Map, Value, json};

pub(crate) const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
/// Where the loop lies.
pub(crate) const LOOP: &str = ".claude/ralph-loop.local.md";
/// The session that most tests speak for.
pub(crate) const ME: &str = "5e551017-0000-4000-8000-000000000001";
/// Another one.
pub(crate) const OTHER: &str = "5e551017-0000-4000-8000-000000000002";
/// A client that knows the context form and sends the last message.
pub(crate) const CLIENT: &str = "claude-code_2-1-325_harness";

/// A number that no other call in this process got.
pub(crate) fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A sealed project with helpers.
pub(crate) struct Bed {
    project: Project,
}

impl Deref for Bed {
    type Target = Project;
    fn deref(&self) -> &Project {
        &self.project
    }
}

impl Bed {
    /// A folder without a repository: no git is asked.
    pub(crate) fn new() -> Self {
        Bed { project: Project::without_git() }
    }

    /// A git repository.
    pub(crate) fn in_git() -> Self {
        Bed { project: Project::new() }
    }

    /// A git repository in the home, where paths are short and the same each time.
    pub(crate) fn at_home(name: &str) -> Self {
        Bed { project: Project::at_home(name) }
    }

    /// A project with a loop that belongs to [`ME`].
    pub(crate) fn with_loop(iteration: u64, max: u64, promise: &str) -> Self {
        let bed = Self::new();
        bed.write(LOOP, loop_text(ME, iteration, max, promise));
        bed
    }

    /// The loop file's bytes.
    pub(crate) fn loop_bytes(&self) -> Vec<u8> {
        fs::read(self.path(LOOP)).unwrap()
    }

    /// The value of one key of the loop file, as it is spelled there.
    pub(crate) fn value(&self, key: &str) -> String {
        value_in(&self.read(LOOP), key)
    }

    pub(crate) fn iteration(&self) -> u64 {
        self.value("iteration").parse().unwrap()
    }

    /// A stop of [`ME`] with this last message.
    pub(crate) fn stop(&self, said: &str) -> Event<'_> {
        self.event("Stop")
            .field("prompt_id", "prompt-1")
            .field("permission_mode", "bypassPermissions")
            .field("effort", json!({"level": "high"}))
            .field("stop_hook_active", false)
            .field("last_assistant_message", said)
            .field("background_tasks", json!([]))
            .field("session_crons", json!([]))
    }

    /// A stop with a message like no other, so that it is not taken for a second report of the stop before.
    pub(crate) fn work(&self) -> Event<'_> {
        self.stop(&format!("I worked on it ({}).", unique()))
    }

    /// An event of [`ME`], with the fields that all events have.
    pub(crate) fn event(&self, name: &str) -> Event<'_> {
        let fields = json!({
            "session_id": ME,
            "transcript_path": self.transcript_path(),
            "cwd": self.dir(),
            "hook_event_name": name,
        });
        let Value::Object(fields) = fields else { unreachable!() };
        let env = vec![
            ("CLAUDE_PROJECT_DIR".into(), self.dir().into()),
            ("CLAUDE_CODE_SESSION_ID".into(), ME.into()),
            ("CLAUDECODE".into(), "1".into()),
            ("CLAUDE_CODE_ENTRYPOINT".into(), "cli".into()),
        ];
        Event { bed: self, fields, env, cwd: self.dir().to_owned() }
    }

    /// A typed message, as `UserPromptSubmit` reports it.
    pub(crate) fn typed(&self, prompt: &str) -> Event<'_> {
        self.event("UserPromptSubmit").field("prompt", prompt).field("prompt_id", format!("prompt-{}", unique()))
    }

    pub(crate) fn transcript_path(&self) -> PathBuf {
        self.home().join("transcript.jsonl")
    }

    /// A new, empty transcript, where the events of this bed say that it is.
    pub(crate) fn transcript(&self) -> Transcript {
        let path = self.transcript_path();
        fs::write(&path, "").unwrap();
        Transcript { path }
    }

    /// Where ralph keeps what it believes about this project: with the user.
    pub(crate) fn place_of_kept(&self, what: &str) -> PathBuf {
        let all = self.home().join(".local/state/ralph/projects");
        let projects: Vec<PathBuf> = fs::read_dir(&all).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        assert!(projects.len() <= 1, "{projects:?}");
        projects.first().unwrap_or(&all).join(what)
    }

    /// The files in one of its folders.
    pub(crate) fn kept(&self, what: &str) -> Vec<PathBuf> {
        fs::read_dir(self.place_of_kept(what)).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    /// A copy of the program. A process of its own makes it: what another test's child still holds open for writing cannot be started.
    pub(crate) fn copy_of_ralph(&self, to: &Path) {
        assert_eq!(run(self.command("/bin/cp").arg(RALPH).arg(to), b"").code, Some(0));
    }

    /// Registers the hook in the user's settings, unless there are some: `start` warns where it is not.
    pub(crate) fn register(&self) {
        let settings = self.home().join(".claude/settings.json");
        if !settings.exists() {
            fs::create_dir_all(settings.parent().unwrap()).unwrap();
            let hook = json!([{"hooks": [{"type": "command", "command": RALPH, "args": ["hook", "claude", "--timeout", "3600"], "timeout": 3600}]}]);
            fs::write(&settings, json!({"hooks": {"Stop": hook}}).to_string()).unwrap();
        }
    }

    /// Runs `ralph` with arguments, as a person in a terminal's shell who has set ralph up.
    pub(crate) fn ralph(&self, args: &[&str]) -> Output {
        if args.contains(&"start") {
            self.register();
        }
        let mut command = self.command(RALPH);
        command.args(args);
        run(&mut command, b"")
    }

    /// The same, and it must succeed; returns what was printed.
    pub(crate) fn ralph_ok(&self, args: &[&str]) -> String {
        let out = self.ralph(args);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "ralph {args:?}: {}", out.stdout);
        out.stdout
    }

    pub(crate) fn ralph_json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ralph_ok(args)).unwrap()
    }

    /// The only live loop as `ralph status --json` shows it.
    pub(crate) fn status(&self) -> Value {
        let all = self.ralph_json(&["status", "--json"]);
        assert_eq!(all["loops"].as_array().unwrap().len(), 1, "{all}");
        all["loops"][0].clone()
    }

    /// The state of the loop that ended last.
    pub(crate) fn last_ended(&self) -> Value {
        let all = self.ralph_json(&["status", "--json"]);
        assert_eq!(all["loops"], json!([]), "{all}");
        all["last_ended"].clone()
    }

    /// The records of the only journal.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let journals = self.files_in(".ralph/journal");
        assert_eq!(journals.len(), 1, "{journals:?}");
        records(&journals[0])
    }

    /// Reason codes of the stops in the only journal.
    pub(crate) fn codes(&self) -> Vec<String> {
        let code = |r: Value| r["event"]["ruling"]["code"].as_str().map(str::to_owned);
        self.journal().into_iter().filter_map(code).collect()
    }

    /// What happened, by kind, in the only journal.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.journal().iter().map(|r| r["event"]["kind"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn files_in(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths
    }

    /// The only file in the archive.
    pub(crate) fn archived(&self) -> Vec<u8> {
        let files = self.files_in(".ralph/archive");
        assert_eq!(files.len(), 1, "{files:?}");
        fs::read(&files[0]).unwrap()
    }

    /// The lines of the debug log, without their time.
    pub(crate) fn hook_log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path(".ralph/hook.log")).unwrap_or_default();
        text.lines().map(|l| l.split_once(' ').unwrap().1.to_owned()).collect()
    }

    /// Everything in the project but git's own files, byte for byte.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut out = BTreeMap::new();
        let mut folders = vec![self.dir().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.file_name().unwrap() == ".git" {
                    continue;
                }
                let kind = path.symlink_metadata().unwrap().file_type();
                let is = if kind.is_symlink() {
                    format!("link to {}", fs::read_link(&path).unwrap().display())
                } else if kind.is_dir() {
                    folders.push(path.clone());
                    "folder".to_owned()
                } else if kind.is_file() {
                    String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
                } else {
                    "special".to_owned()
                };
                out.insert(path.strip_prefix(self.dir()).unwrap().to_owned(), is);
            }
        }
        out
    }

    /// The tree without ralph's own log, which every call of a project that uses ralph may write.
    pub(crate) fn tree_but_log(&self) -> BTreeMap<PathBuf, String> {
        let mut tree = self.tree();
        tree.remove(Path::new(".ralph/hook.log"));
        tree
    }
}

/// Runs a program to its end. One that hangs, or leaves a process behind that holds its pipes, is killed.
pub(crate) fn run(command: &mut Command, stdin: &[u8]) -> Output {
    run_alone(command, stdin, Duration::from_mins(1))
}

/// The records of a journal file.
pub(crate) fn records(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The value of a key as it is spelled in a loop file.
pub(crate) fn value_in(text: &str, key: &str) -> String {
    let prefix = format!("{key}:");
    let line = text.lines().find_map(|l| l.strip_prefix(&prefix)).unwrap_or_else(|| panic!("no {key} in {text}"));
    line.trim().to_owned()
}

/// A loop file as the well-known plugin writes it. The prompt is [`PROMPT`].
pub(crate) fn loop_text(session: &str, iteration: u64, max: u64, promise: &str) -> String {
    let promise = if promise == "null" { promise.to_owned() } else { format!("\"{promise}\"") };
    format!(
        "---\nactive: true\niteration: {iteration}\nsession_id: {session}\nmax_iterations: {max}\ncompletion_promise: {promise}\n\
         started_at: \"2026-11-15T09:30:00Z\"\n---\n\n{PROMPT}\n"
    )
}

/// What is told, once, about a loop file that was edited so.
pub(crate) const PAUSED_BY_HAND: &str = "Ralph: the loop is paused: its file says `active: false` now. /ralph-resume goes on.";

pub(crate) const PROMPT: &str = "Make the tests pass.\nThen write the notes.";

/// One hook call in the making.
#[derive(Clone)]
pub(crate) struct Event<'b> {
    bed: &'b Bed,
    fields: Map<String, Value>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
}

impl Event<'_> {
    pub(crate) fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.fields.remove(name);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self = self.no_env(name);
        self.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn no_env(mut self, name: &str) -> Self {
        self.env.retain(|(n, _)| n != name);
        self
    }

    /// Another session, in the event and in the environment.
    pub(crate) fn session(self, id: &str) -> Self {
        self.field("session_id", id).env("CLAUDE_CODE_SESSION_ID", id)
    }

    /// Reported by another registration than events usually are: one of a plugin with this number.
    pub(crate) fn by_plugin(self, n: usize) -> Self {
        self.env("CLAUDE_PLUGIN_ROOT", format!("/plugins/{n}"))
    }

    /// A client of this version, as its environment tells.
    pub(crate) fn client(self, ai_agent: &str) -> Self {
        self.env("AI_AGENT", ai_agent)
    }

    /// The folder that the hook's process runs in.
    pub(crate) fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = dir.into();
        self
    }

    /// The event carries no message, like that of a turn without text or of an old client.
    pub(crate) fn no_message(self) -> Self {
        self.without("last_assistant_message")
    }

    pub(crate) fn json(&self) -> String {
        let mut fields = self.fields.clone();
        // The hook waits a moment for a transcript that is announced; most cases are not about that.
        if fields.contains_key("last_assistant_message") && fs::symlink_metadata(self.bed.transcript_path()).is_err() {
            fields.remove("transcript_path");
        }
        Value::Object(fields).to_string()
    }

    /// The hook as a bare command, in its environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.bed.command(RALPH);
        command.args(["hook", "claude"]).envs(self.env.iter().cloned()).current_dir(&self.cwd);
        command
    }

    /// Calls the hook with these bytes instead of the event.
    pub(crate) fn send_raw(&self, input: impl AsRef<[u8]>) -> Answer {
        Answer::of(&run(&mut self.command(), input.as_ref()))
    }

    pub(crate) fn send(&self) -> Answer {
        self.send_raw(self.json())
    }
}

/// What the hook answered: always exit code 0, nothing on standard error, and one line of JSON or nothing.
#[derive(Debug, PartialEq, Clone)]
pub(crate) struct Answer {
    pub(crate) json: Option<Value>,
}

impl Answer {
    pub(crate) fn of(out: &Output) -> Self {
        assert!(!out.timed_out, "the hook hangs: {out:?}");
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
        Self::of_stdout(&out.stdout)
    }

    pub(crate) fn of_stdout(stdout: &str) -> Self {
        if stdout.is_empty() {
            return Answer { json: None };
        }
        let line = stdout.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {stdout:?}"));
        assert!(!line.contains('\n'), "more than one line: {stdout}");
        let json: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON ({e}): {line}"));
        assert!(json.is_object(), "{json}");
        Answer { json: Some(json) }
    }

    #[track_caller]
    pub(crate) fn is_silent(&self) {
        assert_eq!(self.json, None);
    }

    /// Blocked with this reason; returns the line for the person.
    #[track_caller]
    pub(crate) fn blocks_with(&self, reason: &str) -> String {
        let json = self.json.clone().expect("an answer");
        let line = json["systemMessage"].as_str().expect("a line").to_owned();
        assert_eq!(json, json!({"decision": "block", "reason": reason, "systemMessage": line}));
        line
    }

    /// Sent back in the context form; returns the line for the person.
    #[track_caller]
    pub(crate) fn goes_on_with(&self, text: &str) -> String {
        let json = self.json.clone().expect("an answer");
        let line = json["systemMessage"].as_str().expect("a line").to_owned();
        let specific = json!({"hookEventName": "Stop", "additionalContext": text});
        assert_eq!(json, json!({"hookSpecificOutput": specific, "systemMessage": line}));
        line
    }

    /// What the agent was sent back with.
    #[track_caller]
    pub(crate) fn reason(&self) -> String {
        self.json.as_ref().and_then(|json| json["reason"].as_str()).expect("the agent was sent back").to_owned()
    }

    /// Whether the agent was sent back, in whichever form.
    pub(crate) fn blocks(&self) -> bool {
        self.json.as_ref().is_some_and(|j| j["decision"] == "block" || j["hookSpecificOutput"]["hookEventName"] == "Stop")
    }

    /// Allowed, with exactly this line for the person.
    #[track_caller]
    pub(crate) fn tells(&self, line: &str) {
        assert_eq!(self.json, Some(json!({"systemMessage": line})));
    }

    /// Allowed, with some line for the person.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        let json = self.json.clone().expect("an answer");
        let line = json["systemMessage"].as_str().expect("a line").to_owned();
        assert_eq!(json, json!({"systemMessage": line}));
        line
    }

    /// The person was answered instead of the model.
    #[track_caller]
    pub(crate) fn instead(&self) -> String {
        let json = self.json.clone().expect("an answer");
        let text = json["stopReason"].as_str().expect("a text").to_owned();
        assert_eq!(json, json!({"continue": false, "stopReason": text}));
        text
    }
}

/// A transcript that grows as the client's does.
pub(crate) struct Transcript {
    pub(crate) path: PathBuf,
}

impl Transcript {
    pub(crate) fn raw(&self, bytes: &[u8]) -> &Self {
        fs::File::options().append(true).open(&self.path).unwrap().write_all(bytes).unwrap();
        self
    }

    /// A line, with the present time unless it brings its own.
    pub(crate) fn line(&self, line: Value) -> &Self {
        let mut line = line;
        if line.get("timestamp").is_none() {
            line["timestamp"] = json!(now());
        }
        self.raw(format!("{line}\n").as_bytes())
    }

    pub(crate) fn user(&self, text: &str) -> &Self {
        self.line(json!({"type": "user", "isSidechain": false, "message": {"role": "user", "content": text}, "uuid": "u"}))
    }

    /// What the client writes when a hook sent the agent back.
    pub(crate) fn feedback(&self, text: &str) -> &Self {
        let content = format!("Stop hook feedback:\n{text}");
        self.line(json!({"type": "user", "isMeta": true, "isSidechain": false, "message": {"role": "user", "content": content}}))
    }

    /// One block of an assistant's message.
    pub(crate) fn block(&self, id: &str, block: &Value) -> &Self {
        let message = json!({"id": id, "role": "assistant", "content": [block], "model": "m", "usage": {"input_tokens": 1}});
        self.line(json!({"type": "assistant", "isSidechain": false, "message": message}))
    }

    pub(crate) fn says(&self, id: &str, text: &str) -> &Self {
        self.block(id, &json!({"type": "text", "text": text}))
    }

    /// A tool call and its result.
    pub(crate) fn uses_tool(&self, id: &str) -> &Self {
        self.block(id, &json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "true"}}));
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]);
        self.line(json!({"type": "user", "isSidechain": false, "message": {"role": "user", "content": result}}))
    }

    pub(crate) fn queue(&self, operation: &str) -> &Self {
        self.line(json!({"type": "queue-operation", "operation": operation, "content": "typed while busy"}))
    }

    /// What the person typed while the agent worked.
    pub(crate) fn waits(&self, typed: &str) -> &Self {
        self.line(json!({"type": "queue-operation", "operation": "enqueue", "content": typed}))
    }
}

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// The present time as the client writes it.
pub(crate) fn now() -> String {
    ralph_core::text::time::format(now_ms())
}

/// Waits until the clock shows another millisecond: a line of the transcript belongs to a round by its time.
pub(crate) fn tick() {
    std::thread::sleep(Duration::from_millis(2));
}

/// Before a stop with the same words: it is the next one, however soon it comes (t13).
pub(crate) fn next_stop() {
    tick();
}

/// A real transcript of the client (see the README there), as one of [`ME`].
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/transcripts").join(format!("{name}.jsonl"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let session = text.split("\"sessionId\":\"").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
    session.map_or(text.clone(), |session| text.replace(&session, ME))
}

/// The lines of a real transcript up to the first one that `wanted` accepts, that one included.
pub(crate) fn fixture_until(name: &str, wanted: impl Fn(&Value) -> bool) -> String {
    let mut out = String::new();
    for line in fixture(name).lines() {
        let _ = writeln!(out, "{line}");
        if wanted(&serde_json::from_str(line).unwrap()) {
            return out;
        }
    }
    panic!("{name} has no such line");
}

/// Whether a transcript line is the assistant's text `said`.
pub(crate) fn is_text(said: &str) -> impl Fn(&Value) -> bool {
    move |line| line["message"]["content"].as_array().is_some_and(|c| c.iter().any(|b| b["text"] == said))
}
