//! A project whose loop has something to prove, and what is asked about it again and again.

use std::{
    fs,
    io::Write as _,
    ops::Deref,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use ralph_testkit::Output;
use serde_json::Value;

use crate::common::{Answer, Bed, Event, LOOP, ME, loop_text, run, unique};

/// Long enough for anything that ends at all, on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A gate of `ralph.toml`; `more` are further lines of it.
pub(crate) fn gate(name: &str, command: &str, more: &str) -> String {
    format!("[[gate]]\nname = \"{name}\"\ncommand = '''{command}'''\n{more}\n")
}

/// Adds a line to a file outside of the tree.
pub(crate) const COUNT: &str = "echo x >> \"$HOME/runs\"";

/// A project with a loop of [`ME`] and trusted gates. All that its commands start carries a mark.
pub(crate) struct Gated {
    bed: Bed,
    mark: String,
}

impl Deref for Gated {
    type Target = Bed;
    fn deref(&self) -> &Bed {
        &self.bed
    }
}

impl Gated {
    /// Outside of any repository.
    pub(crate) fn new(settings: &str) -> Self {
        Self::on(Bed::new(), settings)
    }

    pub(crate) fn in_git(settings: &str) -> Self {
        Self::on(Bed::in_git(), settings)
    }

    fn on(bed: Bed, settings: &str) -> Self {
        let gated = Gated { bed, mark: format!("ralph-mark-{}-{}-", std::process::id(), unique()) };
        gated.write(LOOP, loop_text(ME, 1, 20, "DONE"));
        gated.set(settings);
        gated
    }

    /// Writes `ralph.toml`, where `MARK` stands for the mark, and trusts it.
    pub(crate) fn set(&self, settings: &str) {
        self.write("ralph.toml", settings.replace("MARK", &self.mark));
        self.ralph_ok(&["trust", "--yes"]);
    }

    /// The loop asks for no promise.
    pub(crate) fn without_promise(self) -> Self {
        self.write(LOOP, loop_text(ME, 1, 20, "null"));
        self
    }

    /// A stop that claims to be done, unlike any other.
    pub(crate) fn claim(&self) -> Event<'_> {
        self.marked(self.stop(&format!("All of it works ({}).\n\n<promise>DONE</promise>", unique())))
    }

    /// A stop that claims nothing.
    pub(crate) fn works(&self) -> Event<'_> {
        self.marked(self.work())
    }

    fn marked<'b>(&self, event: Event<'b>) -> Event<'b> {
        event.env("RALPH_TEST_MARK", &self.mark)
    }

    /// How often [`COUNT`] ran.
    pub(crate) fn runs(&self) -> usize {
        self.at_home("runs").lines().count()
    }

    /// What a command wrote into a file of the home folder.
    pub(crate) fn at_home(&self, name: &str) -> String {
        fs::read_to_string(self.home().join(name)).unwrap_or_default()
    }

    /// Waits until a command wrote it.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str) {
        let until = Instant::now() + PATIENCE;
        while self.at_home(name).is_empty() {
            assert!(Instant::now() < until, "{name} never came: {:?}", self.left());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The processes that carry the mark, in their environment or in their command line.
    pub(crate) fn left(&self) -> Vec<String> {
        let holds = |bytes: &[u8]| bytes.windows(self.mark.len()).any(|part| part == self.mark.as_bytes());
        let process = |pid: u32| {
            let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let command = read("cmdline");
            (holds(&read("environ")) || holds(&command)).then(|| format!("{pid}: {}", String::from_utf8_lossy(&command).replace('\0', " ")))
        };
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        all.filter_map(process).collect()
    }

    /// Nothing that the commands started is there. A process that was ended may still be on its way out.
    #[track_caller]
    pub(crate) fn leaves_nothing(&self) {
        // A process that was killed is gone when the machine gets round to it; one that was not sleeps for minutes.
        let until = Instant::now() + Duration::from_secs(20);
        while !self.left().is_empty() {
            assert!(Instant::now() < until, "{:?}", self.left());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// What the last stop found, of each gate in its order.
    pub(crate) fn findings(&self) -> Vec<Value> {
        let stop = self.journal().into_iter().rev().find(|r| r["event"]["kind"] == "stop").expect("a stop");
        stop["event"]["evidence"]["gates"].as_array().cloned().unwrap_or_default()
    }

    /// Names and verdicts of the last stop.
    pub(crate) fn verdicts(&self) -> Vec<(String, String)> {
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        self.findings().iter().map(|f| (text(&f["gate"]), text(&f["verdict"]))).collect()
    }

    /// The line of one gate at the last stop.
    #[track_caller]
    pub(crate) fn what(&self, gate: &str) -> String {
        let findings = self.findings();
        let finding = findings.iter().find(|f| f["gate"] == gate).unwrap_or_else(|| panic!("no {gate} in {findings:?}"));
        finding["what"].as_str().unwrap().to_owned()
    }

    /// The log of one gate at the last stop.
    #[track_caller]
    pub(crate) fn log(&self, gate: &str) -> Vec<u8> {
        let findings = self.findings();
        let finding = findings.iter().find(|f| f["gate"] == gate).unwrap_or_else(|| panic!("no {gate} in {findings:?}"));
        fs::read(self.path(finding["log"].as_str().expect("a log"))).unwrap()
    }

    /// The code of the last stop.
    pub(crate) fn code(&self) -> String {
        self.codes().pop().unwrap_or_default()
    }
}

/// A hook that runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    begun: Instant,
}

/// Starts the hook with further arguments.
pub(crate) fn begin(event: &Event<'_>, args: &[&str]) -> Running {
    let mut command = event.command();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(event.json().as_bytes()).unwrap();
    Running { child, begun }
}

impl Running {
    /// Its answer, and how long it took in all.
    pub(crate) fn answer(self) -> (Answer, Duration) {
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        (Answer::of_stdout(&String::from_utf8(output.stdout).unwrap()), self.begun.elapsed())
    }

    /// What the client does on Esc and when its patience ends.
    pub(crate) fn terminate(&self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(std::process::Command::new("/bin/sh").args(["-c", &kill]).status().unwrap().success());
    }
}

/// Sends an event to the hook with further arguments.
pub(crate) fn send_with(event: &Event<'_>, args: &[&str]) -> (Answer, Duration) {
    let output: Output = run(event.command().args(args), event.json().as_bytes());
    (Answer::of(&output), output.duration)
}

/// What the agent is told when it is sent back.
#[track_caller]
pub(crate) fn reason(answer: &Answer) -> String {
    assert!(answer.blocks(), "{answer:?}");
    answer.json.as_ref().unwrap()["reason"].as_str().unwrap().to_owned()
}

/// The person's line, whatever else the answer is.
#[track_caller]
pub(crate) fn line(answer: &Answer) -> String {
    answer.json.as_ref().expect("an answer")["systemMessage"].as_str().expect("a line").to_owned()
}
