//! What the tests with the real client share: a project whose settings register the built binary for every event, the
//! commands of that binary, and what it left on disk.

#![allow(clippy::print_stderr, reason = "what ralph left on disk is the evidence of a failed test")]

pub(crate) mod hub;
pub(crate) mod setup;
pub(crate) mod terminal;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ralph_testkit::project::PATH;
use ralph_testkit::{Client, Gate, Hook, ModelServer, Output, PrintOutput, PrintRun, Project, Reply, Settings, Skip, Version};
use serde_json::Value;

pub(crate) const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

/// The unnamed loop's file.
pub(crate) const LOOP: &str = ".claude/ralph-loop.local.md";

/// How long the model takes for an answer: longer than the client needs to write what came before into its transcript.
pub(crate) const PACE: Duration = Duration::from_millis(200);

/// How long anything may take that should be there at once, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Makes a test of each client version out of a case with the same name: for what the older client does otherwise, and for what ralph asks of its
/// version (`hosts/claude/version.rs`).
macro_rules! both {
    ($case:ident) => {
        mod $case {
            #[test]
            fn older() {
                super::$case(ralph_testkit::Version::Older);
            }

            #[test]
            fn newest() {
                super::$case(ralph_testkit::Version::Newest);
            }
        }
    };
}

/// Makes a test with the newest client out of a case with the same name; in the nightly run it is tried with the older one, too.
macro_rules! newest {
    ($case:ident) => {
        mod $case {
            #[test]
            fn client() {
                for version in ralph_testkit::Version::usual() {
                    super::$case(*version);
                }
            }
        }
    };
}

/// The model's answer in round `n`: words of its own, and time to think.
pub(crate) fn round(n: usize) -> Reply {
    say(format!("This is iteration {n}."))
}

pub(crate) fn say(text: impl Into<String>) -> Reply {
    Reply::text(text).delay(PACE)
}

pub(crate) fn claim(n: usize) -> Reply {
    say(claimed(n))
}

pub(crate) fn claimed(n: usize) -> String {
    format!("Iteration {n} did it.\n\n<promise>DONE</promise>")
}

/// A tool call that leaves a line in `work.txt`.
pub(crate) fn work(n: usize) -> Reply {
    Reply::bash(format!("echo {n} >> work.txt")).delay(PACE / 2)
}

/// A client in a project where ralph is its hook.
pub(crate) struct Bed {
    pub(crate) client: Client,
    pub(crate) project: Project,
    /// Where the client, its hooks and the person look for programs.
    pub(crate) path: String,
}

impl Bed {
    pub(crate) fn new(version: Version) -> Result<Self, Skip> {
        Self::with(version, |settings| settings)
    }

    /// With more in the settings than ralph's hook.
    pub(crate) fn with(version: Version, more: impl FnOnce(Settings) -> Settings) -> Result<Self, Skip> {
        let client = Client::installed(version)?;
        let project = Project::new();
        more(Settings::new().hook(Hook::new(RALPH))).write(&project);
        Ok(Self { client, project, path: PATH.to_owned() })
    }

    pub(crate) fn is_newest(&self) -> bool {
        self.client.version == Version::Newest
    }

    /// Runs a command of ralph's in the project, from a person's shell.
    pub(crate) fn ralph(&self, args: &[&str]) -> Output {
        self.project.run(RALPH).env("PATH", &self.path).args(args).output()
    }

    pub(crate) fn ralph_ok(&self, args: &[&str]) -> String {
        let output = self.ralph(args);
        assert!(output.success(), "ralph {args:?}: {output:?}");
        output.stdout
    }

    /// `claude -p` with all its events, tools allowed.
    pub(crate) fn print(&self, server: &ModelServer, prompt: &str) -> PrintRun {
        let run = self.client.print(&self.project, server, prompt).env("PATH", &self.path);
        run.skip_permissions().stream_json().timeout(Duration::from_mins(1))
    }

    /// The same to its successful end.
    pub(crate) fn run(&self, server: &ModelServer, prompt: &str) -> PrintOutput {
        let output = self.print(server, prompt).output();
        assert_eq!(output.code, Some(0), "{output:?}");
        output
    }

    pub(crate) fn loop_file(&self) -> Option<String> {
        std::fs::read_to_string(self.project.path(LOOP)).ok()
    }

    /// The value of a key in the loop file's front matter.
    pub(crate) fn value(&self, key: &str) -> String {
        value_in(&self.loop_file().expect("the loop file is there"), key)
    }

    /// The archived loop files.
    pub(crate) fn archive(&self) -> Vec<String> {
        files_in(self.project.path(".ralph/archive")).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }

    /// The only journal.
    pub(crate) fn journal(&self) -> Journal {
        let mut paths = files_in(self.project.path(".ralph/journal"));
        assert_eq!(paths.len(), 1, "one loop, one journal: {paths:?}");
        Journal::read(paths.remove(0))
    }

    /// Waits until the journal satisfies `wanted`.
    pub(crate) fn wait_journal(&self, what: &str, wanted: impl Fn(&Journal) -> bool) -> Journal {
        let deadline = Instant::now() + SOON;
        loop {
            let journal = self.journal();
            if wanted(&journal) {
                return journal;
            }
            assert!(Instant::now() < deadline, "{what} did not come into the journal: {:?}", journal.lines());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The hook's log, one call a line.
    pub(crate) fn hook_log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.project.path(".ralph/hook.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How many calls the log has with all of these words.
    pub(crate) fn logged(&self, words: &[&str]) -> usize {
        self.hook_log().iter().filter(|line| words.iter().all(|word| line.split(' ').any(|part| part == *word))).count()
    }

    /// The loop ended, and is in the archive at `iteration`.
    pub(crate) fn assert_archived(&self, iteration: u64) {
        assert_eq!(self.loop_file(), None, "the loop file is gone");
        let archive = self.archive();
        assert_eq!(archive.len(), 1, "{archive:?}");
        assert_eq!(value_in(&archive[0], "iteration"), iteration.to_string());
    }

    /// Every ruling of the journal, judged again, is the same.
    pub(crate) fn assert_replays(&self, stops: usize) {
        let journal = self.journal();
        let said = self.ralph_ok(&["explain", "--replay", journal.path.to_str().unwrap()]);
        assert_eq!(said.trim(), format!("{stops} stops judged again: {stops} the same, 0 different"));
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("client {}", self.client.version.number());
            eprintln!("hook.log:\n  {}", self.hook_log().join("\n  "));
            for path in files_in(self.project.path(".ralph/journal")) {
                eprintln!("{}:\n  {}", path.display(), Journal::read(path.clone()).lines().join("\n  "));
            }
            eprintln!("{LOOP}: {:?}", self.loop_file());
        }
    }
}

/// Opens a gate at the end, even at a bad one: a test that fails shall not wait for a client that waits for its model.
pub(crate) struct Opens<'g>(pub(crate) &'g Gate);

impl Drop for Opens<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

pub(crate) fn files_in(dir: PathBuf) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The value of a front matter key, as it is written.
pub(crate) fn value_in(file: &str, key: &str) -> String {
    let line = file.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {key} in {file}")).trim().to_owned()
}

/// The prompt in a loop file.
pub(crate) fn prompt_in(file: &str) -> &str {
    file.splitn(3, "---\n").nth(2).expect("front matter").trim_matches('\n')
}

/// One loop's journal.
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    pub(crate) records: Vec<Value>,
}

impl Journal {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { path, records }
    }

    /// What happened, without the states.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.records.iter().map(|r| format!("{} {} {}", r["at"], r["session"], r["event"])).collect()
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.records.iter().filter(|r| r["event"]["kind"] == kind).collect()
    }

    pub(crate) fn stops(&self) -> Vec<&Value> {
        self.of_kind("stop").into_iter().map(|r| &r["event"]).collect()
    }

    /// The reason codes of all stops.
    pub(crate) fn codes(&self) -> Vec<&str> {
        self.stops().into_iter().map(|event| event["ruling"]["code"].as_str().unwrap()).collect()
    }

    /// The iterations at which the stops came.
    pub(crate) fn iterations(&self) -> Vec<u64> {
        self.stops().into_iter().map(|event| event["evidence"]["iteration"].as_u64().unwrap()).collect()
    }

    /// How often an event was heard that changes nothing.
    pub(crate) fn heard(&self, event: &str) -> usize {
        self.of_kind("heard").iter().filter(|r| r["event"]["event"] == event).count()
    }
}

/// `n` times the same code.
pub(crate) fn times(n: usize, code: &'static str) -> Vec<&'static str> {
    vec![code; n]
}

/// The codes of a loop that goes on `n` times and then ends with `last`.
pub(crate) fn missing_then(n: usize, last: &'static str) -> Vec<&'static str> {
    let mut codes = times(n, "promise.missing");
    codes.push(last);
    codes
}

/// What the client printed for the person as events of its own (325 only).
pub(crate) fn informed(output: &PrintOutput) -> Vec<&str> {
    let events = output.events.iter().filter(|e| e["type"] == "system" && e["subtype"] == "informational");
    events.filter_map(|e| e["content"].as_str()).collect()
}

/// What ralph answered to an event, call by call; an empty text is silence.
pub(crate) fn answers<'a>(output: &'a PrintOutput, event: &str) -> Vec<&'a str> {
    let responses = output.events.iter().filter(|e| e["subtype"] == "hook_response" && e["hook_event"] == event);
    responses.filter_map(|e| e["stdout"].as_str()).collect()
}

pub(crate) fn result_text(output: &PrintOutput) -> &str {
    output.result().and_then(|r| r["result"].as_str()).unwrap_or_else(|| panic!("no result: {output:?}"))
}

pub(crate) fn session_of(output: &PrintOutput) -> String {
    output.result().and_then(|r| r["session_id"].as_str()).expect("a result with a session").to_owned()
}

/// How often `needle` stands in `text`.
pub(crate) fn count(text: &str, needle: &str) -> usize {
    text.matches(needle).count()
}
