//! `ralph.toml`: what a project wants proven before a loop may end.
//!
//! Everything in it is optional. A key that nobody knows is an error: a gate that is silently not there proves nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::gate::{
    Check, Command, DEFAULT_DEADLINE_MS, DEFAULT_EXCERPT, Features, File, Gate, GuardPolicy, Markers, OldFailures, Origin, Run,
};

/// The file, in the project's root.
pub const FILE: &str = "ralph.toml";

/// A file larger than this was not meant as settings.
pub const MAX_BYTES: usize = 1 << 20;

/// Longer than this no command may run.
const MAX_DEADLINE_MS: u64 = 24 * 3_600_000;

/// More than this of an output would fill the agent's context.
const MAX_EXCERPT: usize = 8_000;

/// Nobody reads about more gates.
const MAX_GATES: usize = 200;

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    pub guard: GuardPolicy,
    /// Further commands are run after one has failed.
    pub keep_going: bool,
    /// In the order of the file. Nobody has trusted them yet.
    pub gates: Vec<Gate>,
    /// After so many items done in one session a loop pauses; 0 means no limit.
    pub per_session: u64,
    pub verify: Option<Verify>,
}

/// What a subagent must prove when it stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// The agents' types; `None`: the usual one.
    pub agents: Option<Vec<String>>,
    pub commands: Vec<Command>,
    pub rounds: u64,
    pub minutes: u64,
    pub excerpt: Option<usize>,
}

/// Rounds after which a subagent is let go, unverified (S3-5).
pub const DEFAULT_ROUNDS: u64 = 5;
/// Minutes after which it is (S3-5).
pub const DEFAULT_MINUTES: u64 = 30;

/// What is wrong with the file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub line: usize,
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Reads the file.
pub fn parse(bytes: &[u8]) -> Result<Config, Problem> {
    let text =
        std::str::from_utf8(bytes).map_err(|e| Problem { line: line_at(bytes, e.valid_up_to()), what: "not UTF-8 text".to_owned() })?;
    let raw: Raw = toml::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|e| Problem {
        line: e.span().map_or(1, |span| line_at(bytes, span.start)),
        what: e.message().lines().next().unwrap_or_default().to_owned(),
    })?;
    let per_session = raw.features.per_session;
    if let Some(excess) = raw.gate.get(MAX_GATES) {
        let what = format!("there are {} gates, and at most {MAX_GATES} may be there", raw.gate.len());
        return Err(Problem { line: line_at(bytes, excess.span().start), what });
    }
    let mut gates: Vec<Gate> = Vec::with_capacity(raw.gate.len());
    for spanned in raw.gate {
        let line = line_at(bytes, spanned.span().start);
        let problem = |what: String| Problem { line, what };
        let gate = spanned.into_inner().gate(per_session).map_err(problem)?;
        if gates.iter().any(|other| other.name == gate.name) {
            return Err(problem(format!("there are two gates called \"{}\": give them names of their own", gate.name)));
        }
        gates.push(gate);
    }
    let verify = raw.verify.map(RawVerify::verify).transpose().map_err(|what| Problem { line: line_of(text, "[verify]"), what })?;
    Ok(Config { guard: raw.guard, keep_going: raw.keep_going, gates, per_session, verify })
}

/// The line, from 1, of a byte.
fn line_at(bytes: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &bytes[..at.min(bytes.len())]).count() + 1
}

fn line_of(text: &str, start: &str) -> usize {
    text.lines().position(|l| l.trim_start().starts_with(start)).map_or(1, |at| at + 1)
}

/// Settings of a project that uses ralph.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Raw {
    /// What happens when tests vanish, are skipped, or a gate is weakened while a loop runs: warn (list it), block (the loop does not end), off.
    #[serde(default)]
    guard: GuardPolicy,
    /// Run further commands after one has failed.
    #[serde(default)]
    keep_going: bool,
    /// What must hold before a loop may end, in this order.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<RawGate>"))]
    gate: Vec<Spanned<RawGate>>,
    #[serde(default)]
    features: RawFeatures,
    /// What a subagent must prove when it stops.
    verify: Option<RawVerify>,
}

/// One thing that must hold: a command, a file, a list or markers.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct RawGate {
    /// What it is called; made from what it checks if not given.
    name: Option<String>,
    /// Measure it at every stop, not only when the agent claims to be done.
    #[serde(default)]
    every_stop: bool,

    /// A command that must pass: a line for the shell, or a program and its arguments.
    command: Option<RawRun>,
    /// Where it runs, relative to the project's root.
    folder: Option<String>,
    /// Variables beside those of the agent.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// How long it may run: "90s", "10m", "2h", or seconds. 120 s if not given.
    deadline: Option<RawTime>,
    /// It may run at the same time as its neighbours that may, too.
    parallel: Option<bool>,
    /// A failure is tried once more, to tell a flake.
    retry: Option<bool>,
    /// Believe the last verdict while no file has changed. True if not given.
    cache: Option<bool>,
    /// What it started may outlive it.
    leave_running: Option<bool>,
    /// Failures that were there when the loop started: block (they count), allow (only new ones do).
    old_failures: Option<OldFailures>,
    /// A JUnit file that it writes, relative to the project's root.
    junit: Option<String>,
    /// How many characters of its output the agent is shown. 500 if not given.
    excerpt: Option<usize>,

    /// A file that must be there, relative to the project's root.
    file: Option<String>,
    /// A regular expression that must match in it.
    contains: Option<String>,
    /// Its sources must not have changed since it was written: true for all files, or patterns such as "src/**".
    fresh: Option<RawFresh>,

    /// A list whose items must all pass: `feature_list.json`, `prd.json`, or a Markdown file with check boxes.
    features: Option<String>,

    /// Words that must all stand in the agent's last message.
    markers: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum RawRun {
    Shell(String),
    Argv(Vec<String>),
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum RawTime {
    Seconds(u64),
    Text(String),
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum RawFresh {
    All(bool),
    Of(Vec<String>),
}

/// Settings for all lists.
#[derive(Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct RawFeatures {
    /// After so many items done in one session the loop pauses; 0 means no limit.
    #[serde(default)]
    per_session: u64,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct RawVerify {
    /// The types of the agents that must prove their work; "check" if not given.
    agents: Option<Vec<String>>,
    /// The commands that must pass, in this order.
    #[serde(default)]
    commands: Vec<RawVerifyCommand>,
    /// Rounds after which an agent is let go, unverified. 5 if not given.
    rounds: Option<u64>,
    /// Minutes after which it is. 30 if not given.
    minutes: Option<u64>,
    /// How many characters of a command's output the agent is shown.
    excerpt: Option<usize>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum RawVerifyCommand {
    Line(String),
    Full(RawVerifyFull),
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct RawVerifyFull {
    /// A line for the shell, or a program and its arguments.
    run: RawRun,
    /// How long it may run. 120 s if not given.
    deadline: Option<RawTime>,
}

impl RawGate {
    fn gate(self, per_session: u64) -> Result<Gate, String> {
        let kinds = [
            ("command", self.command.is_some()),
            ("file", self.file.is_some()),
            ("features", self.features.is_some()),
            ("markers", self.markers.is_some()),
        ];
        let given: Vec<&str> = kinds.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        let [kind] = given[..] else {
            let name = self.name.as_deref().map(|n| format!(" \"{n}\"")).unwrap_or_default();
            return Err(match given[..] {
                [] => format!("the gate{name} checks nothing: give it `command`, `file`, `features` or `markers`"),
                _ => format!("the gate{name} has {}: make it a gate for each", given.join(" and ")),
            });
        };
        self.refuse_keys_of_others(kind)?;
        let name = self.name()?;
        let every_stop = self.every_stop;
        Ok(Gate { name, check: self.check(per_session)?, origin: Origin::File(FILE.to_owned()), trusted: false, every_stop })
    }

    /// A key that belongs to another kind of gate would be silently without effect.
    fn refuse_keys_of_others(&self, kind: &str) -> Result<(), String> {
        let keys = [
            ("command", "folder", self.folder.is_some()),
            ("command", "env", !self.env.is_empty()),
            ("command", "deadline", self.deadline.is_some()),
            ("command", "parallel", self.parallel.is_some()),
            ("command", "retry", self.retry.is_some()),
            ("command", "cache", self.cache.is_some()),
            ("command", "leave_running", self.leave_running.is_some()),
            ("command", "old_failures", self.old_failures.is_some()),
            ("command", "junit", self.junit.is_some()),
            ("command", "excerpt", self.excerpt.is_some()),
            ("file", "contains", self.contains.is_some()),
            ("file", "fresh", self.fresh.is_some()),
        ];
        match keys.iter().find(|(of, _, given)| *given && *of != kind) {
            Some((of, key, _)) => Err(format!("`{key}` belongs to a gate with `{of}`, and this one has `{kind}`")),
            None => Ok(()),
        }
    }

    fn name(&self) -> Result<String, String> {
        let made = || {
            let command = self.command.as_ref().map(|run| match run {
                RawRun::Shell(line) => line.clone(),
                RawRun::Argv(words) => words.join(" "),
            });
            command.or_else(|| self.file.clone()).or_else(|| self.features.clone()).unwrap_or_else(|| "markers".to_owned())
        };
        match &self.name {
            None => Ok(short_name(&made())),
            Some(name) if name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) => {
                Err("a gate's name has 1 to 64 characters and none that steer a terminal".to_owned())
            }
            Some(name) => Ok(name.trim().to_owned()),
        }
    }

    fn check(self, per_session: u64) -> Result<Check, String> {
        if let Some(run) = self.command {
            let mut command = command(run, self.deadline)?;
            command.folder = self.folder.map(|folder| inside(folder, "folder")).transpose()?;
            command.env = self.env.into_iter().collect();
            if let Some((name, _)) =
                command.env.iter().find(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0'))
            {
                return Err(format!("`env` cannot set \"{}\"", name.escape_default()));
            }
            command.parallel = self.parallel.unwrap_or(false);
            command.retry = self.retry.unwrap_or(false);
            command.cache = self.cache.unwrap_or(true);
            command.leave_running = self.leave_running.unwrap_or(false);
            command.old_failures = self.old_failures.unwrap_or_default();
            command.junit = self.junit.map(|path| inside(path, "junit")).transpose()?;
            command.excerpt = self.excerpt.map_or(Ok(DEFAULT_EXCERPT), excerpt)?;
            return Ok(Check::Command(command));
        }
        if let Some(path) = self.file {
            let fresh = match self.fresh {
                None | Some(RawFresh::All(false)) => None,
                Some(RawFresh::All(true)) => Some(Vec::new()),
                Some(RawFresh::Of(patterns)) => Some(patterns),
            };
            return Ok(Check::File(File { path: inside(path, "file")?, contains: self.contains, fresh }));
        }
        if let Some(path) = self.features {
            return Ok(Check::Features(Features { path: inside(path, "features")?, per_session }));
        }
        let words: Vec<String> = self.markers.unwrap_or_default().into_iter().filter(|w| !w.trim().is_empty()).collect();
        if words.is_empty() { Err("`markers` needs words".to_owned()) } else { Ok(Check::Markers(Markers { words })) }
    }
}

impl RawVerify {
    fn verify(self) -> Result<Verify, String> {
        let shown = self.excerpt.map(excerpt).transpose()?;
        let one = |raw| {
            let made = match raw {
                RawVerifyCommand::Line(line) => command(RawRun::Shell(line), None),
                RawVerifyCommand::Full(full) => command(full.run, full.deadline),
            };
            made.map(|command| Command { excerpt: shown.unwrap_or(DEFAULT_EXCERPT), ..command })
        };
        Ok(Verify {
            agents: self.agents,
            commands: self.commands.into_iter().map(one).collect::<Result<_, _>>()?,
            rounds: self.rounds.unwrap_or(DEFAULT_ROUNDS).max(1),
            minutes: self.minutes.unwrap_or(DEFAULT_MINUTES).max(1),
            excerpt: shown,
        })
    }
}

impl Command {
    /// A line for the shell with everything else as it is when nobody says otherwise.
    pub fn shell(line: impl Into<String>) -> Self {
        Command {
            run: Run::Shell(line.into()),
            folder: None,
            env: Vec::new(),
            deadline_ms: DEFAULT_DEADLINE_MS,
            parallel: false,
            retry: false,
            cache: true,
            leave_running: false,
            old_failures: OldFailures::Block,
            junit: None,
            excerpt: DEFAULT_EXCERPT,
        }
    }
}

fn command(raw: RawRun, deadline: Option<RawTime>) -> Result<Command, String> {
    let run = match raw {
        RawRun::Shell(line) if line.trim().is_empty() => return Err("the command is empty".to_owned()),
        RawRun::Shell(line) => Run::Shell(line),
        RawRun::Argv(words) if words.first().is_none_or(|program| program.trim().is_empty()) => {
            return Err("the command has no program".to_owned());
        }
        RawRun::Argv(words) => Run::Argv(words),
    };
    let has_nul = match &run {
        Run::Shell(line) => line.contains('\0'),
        Run::Argv(words) => words.iter().any(|word| word.contains('\0')),
    };
    if has_nul {
        return Err("a command cannot hold a NUL character".to_owned());
    }
    let deadline_ms = deadline.map_or(Ok(DEFAULT_DEADLINE_MS), |time| match time {
        RawTime::Seconds(seconds) => in_bounds(seconds.saturating_mul(1_000)),
        RawTime::Text(text) => millis(&text).and_then(in_bounds),
    })?;
    Ok(Command { run, deadline_ms, ..Command::shell("") })
}

fn in_bounds(ms: u64) -> Result<u64, String> {
    if (1..=MAX_DEADLINE_MS).contains(&ms) { Ok(ms) } else { Err("`deadline` must be more than nothing and at most 24 hours".to_owned()) }
}

/// A length of time as people write it: `90s`, `10m`, `1h 30m`, `45`.
pub fn millis(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!("\"{}\" is no length of time: write \"90s\", \"10m\" or \"2h\"", text.chars().take(40).collect::<String>().escape_debug())
    };
    let mut rest = text.trim();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit_and_rest = rest[digits..].trim_start();
        let letters = unit_and_rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit_and_rest.len());
        let unit = match &unit_and_rest[..letters] {
            "ms" => 1,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hour" | "hours" => 3_600_000,
            _ => return Err(wrong()),
        };
        total = number.checked_mul(unit).and_then(|ms| total.checked_add(ms)).ok_or_else(wrong)?;
        rest = unit_and_rest[letters..].trim_start();
    }
    if total == 0 { Err(wrong()) } else { Ok(total) }
}

fn excerpt(characters: usize) -> Result<usize, String> {
    if (100..=MAX_EXCERPT).contains(&characters) {
        Ok(characters)
    } else {
        Err(format!("`excerpt` must be between 100 and {MAX_EXCERPT} characters"))
    }
}

/// A path that stays in the project, as far as its words can tell.
fn inside(path: String, key: &str) -> Result<String, String> {
    let leaves = path.starts_with(['/', '\\', '~']) || path.split(['/', '\\']).any(|part| part == "..") || path.get(1..2) == Some(":");
    match path.trim().is_empty() || path.contains('\0') {
        true => Err(format!("`{key}` needs a path")),
        false if leaves => Err(format!("`{key}` must be a path within the project, not \"{path}\"")),
        false => Ok(path.strip_prefix("./").map(str::to_owned).unwrap_or(path)),
    }
}

/// A name made of the first words of what it stands for.
pub fn short_name(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= 40 { line } else { line.chars().take(39).chain(['…']).collect() }
}

/// The JSON schema of the file.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Raw).to_value();
    schema["title"] = "ralph.toml".into();
    // That a gate checks one thing is more than its fields can say.
    schema["$defs"]["RawGate"]["oneOf"] =
        ["command", "file", "features", "markers"].map(|kind| serde_json::json!({ "required": [kind] })).as_slice().into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(text: &str) -> String {
        parse(text.as_bytes()).map_or_else(|p| p.to_string(), |c| format!("{c:?}"))
    }

    #[test]
    fn every_kind_of_gate_in_the_order_of_the_file() {
        let text = r#"
            guard = "block"
            [[gate]]
            name = "tests"
            command = ["cargo", "test"]
            folder = "./crates"
            env = { A = "1" }
            deadline = "1h 30m"
            retry = true
            [[gate]]
            command = "npm run lint"
            [[gate]]
            file = "docs/AUDIT.md"
            contains = "Decision: PASS"
            fresh = ["src/**"]
            [[gate]]
            features = "prd.json"
            [[gate]]
            markers = ["LINT_FINISH"]
            [features]
            per_session = 3
            [verify]
            commands = ["a", { run = "b", deadline = 300 }]
        "#;
        let config = parse(text.as_bytes()).unwrap();
        let names: Vec<&str> = config.gates.iter().map(|g| g.name.as_str()).collect();
        assert_eq!(names, ["tests", "npm run lint", "docs/AUDIT.md", "prd.json", "markers"]);
        let Check::Command(tests) = &config.gates[0].check else { unreachable!() };
        assert_eq!((tests.folder.as_deref(), tests.deadline_ms, tests.retry, tests.cache), (Some("crates"), 5_400_000, true, true));
        assert_eq!(config.gates[3].check, Check::Features(Features { path: "prd.json".to_owned(), per_session: 3 }));
        assert_eq!(config.guard, GuardPolicy::Block);
        let verify = config.verify.unwrap();
        assert_eq!((verify.rounds, verify.minutes), (5, 30), "S3-5");
        assert_eq!(verify.commands.iter().map(|c| c.deadline_ms).collect::<Vec<_>>(), [120_000, 300_000], "S3-3");
        assert_eq!(parse(b""), Ok(Config::default()));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, expected) in [
            ("[[gate]]\nname = \"x\"\n", "line 1: the gate \"x\" checks nothing"),
            ("\n[[gate]]\ncomand = \"x\"\n", "line 3: unknown field `comand`"),
            ("[[gate]]\ncommand = \"a\"\nfile = \"b\"\n", "command and file"),
            ("[[gate]]\nfile = \"b\"\nretry = true\n", "`retry` belongs to a gate with `command`"),
            (&"[[gate]]\nmarkers = [\"A\"]\n".repeat(201), "line 401: there are 201 gates, and at most 200 may be there"),
            ("[[gate]]\ncommand = \"a\"\n\n[[gate]]\ncommand = \"a\"\n", "line 4: there are two gates called \"a\""),
            ("[[gate]]\nfile = \"../b\"\n", "within the project"),
            ("[[gate]]\nfile = \"/etc/passwd\"\n", "within the project"),
            ("[[gate]]\ncommand = \"  \"\n", "the command is empty"),
            ("[[gate]]\ncommand = []\n", "no program"),
            ("[[gate]]\ncommand = \"a\"\ndeadline = \"soon\"\n", "\"soon\" is no length of time"),
            ("[[gate]]\ncommand = \"a\"\ndeadline = 0\n", "more than nothing"),
            ("[[gate]]\nmarkers = []\n", "needs words"),
            ("guard = \"maybe\"\n", "line 1: "),
            ("gate = 3\n", "line 1: "),
            ("x = [", "line 1: "),
            ("[verify]\ncommands = [\"\"]\n", "line 1: the command is empty"),
        ] {
            assert!(problem(text).contains(expected), "{text:?}: {}", problem(text));
        }
        assert!(parse(b"a = \"\xff\"").is_err());
    }

    #[test]
    fn lengths_of_time_as_people_write_them() {
        for (text, ms) in
            [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1h30m", 5_400_000), (" 45 ", 45_000), ("1 min 5 sec", 65_000)]
        {
            assert_eq!(millis(text), Ok(ms), "{text}");
        }
        for text in ["", "0", "s", "-1", "1.5h", "1d", "99999999999999999999"] {
            assert!(millis(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]a-z=\"\n {},.]{0,120}") {
            let _ = parse(&bytes);
            let _ = parse(text.as_bytes());
            let _ = millis(&text);
        }
    }
}
