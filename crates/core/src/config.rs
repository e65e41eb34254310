//! `ralph.toml`: what a project wants proven before a loop may end.
//!
//! Everything in it is optional. A key that nobody knows is an error: a gate that is silently not there proves nothing.

mod keys;
mod pull_requests;
mod reader;
mod running;

pub use keys::schema;
pub use pull_requests::PullRequests;
pub use running::{Notify, Run as Running, is_address};

use reader::{Field, Fields};

use crate::{
    expression,
    gate::{Check, Command, DEFAULT_EXCERPT, Features, File, Gate, GuardPolicy, MAX_DEADLINE_MS, Markers, OldFailures, Origin, Run, Stage},
};

/// The file, in the project's root.
pub const FILE: &str = "ralph.toml";

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
    pub pull_requests: PullRequests,
    pub run: Running,
    pub notify: Notify,
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
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = memchr::memchr_iter(b'\n', &bytes[..e.valid_up_to()]).count() + 1;
        Problem { line, what: "not UTF-8 text".to_owned() }
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = reader::document(text)?;
    let top = Fields::of(text, document.get_ref(), 1, &keys::TOP)?;
    let features = top.read("features", |field| field.table(&keys::FEATURES))?;
    let per_session = features.map(|table| table.read("per_session", Field::count)).transpose()?.flatten().unwrap_or(0);
    let pull_requests = top.read("pr", |field| pull_requests::read(&field.table(&keys::PR)?))?.unwrap_or_default();
    let tables = top.read("gate", |field| field.tables(&keys::GATE))?.unwrap_or_default();
    if let Some(excess) = tables.get(MAX_GATES) {
        return Err(excess.problem(format!("there are {} gates, and at most {MAX_GATES} may be there", tables.len())));
    }
    let mut gates: Vec<Gate> = Vec::with_capacity(tables.len());
    for table in tables {
        let gate = gate(&table, per_session, &pull_requests)?;
        if gates.iter().any(|other| other.name == gate.name) {
            return Err(table.problem(format!("there are two gates called \"{}\": give them names of their own", gate.name)));
        }
        gates.push(gate);
    }
    Ok(Config {
        guard: top.read("guard", guard)?.unwrap_or_default(),
        keep_going: top.read("keep_going", Field::bool)?.unwrap_or(false),
        gates,
        per_session,
        verify: top.read("verify", |field| verify(&field.table(&keys::VERIFY)?))?,
        pull_requests,
        run: top.read("run", |field| running::read_run(&field.table(&keys::RUN)?))?.unwrap_or_default(),
        notify: top.read("notify", |field| running::read_notify(&field.table(&keys::NOTIFY)?))?.unwrap_or_default(),
    })
}

fn guard(field: Field<'_>) -> Result<GuardPolicy, Problem> {
    Ok(match field.choice()? {
        "block" => GuardPolicy::Block,
        "warn" => GuardPolicy::Warn,
        "off" => GuardPolicy::Off,
        _ => GuardPolicy::Tests,
    })
}

fn gate(table: &Fields<'_>, per_session: u64, pull_requests: &PullRequests) -> Result<Gate, Problem> {
    let given: Vec<&str> = keys::CHECKS.into_iter().filter(|check| table.get(check).is_some()).collect();
    let [check] = given[..] else {
        let name = table.get("name").and_then(Field::as_text).map(|n| format!(" \"{n}\"")).unwrap_or_default();
        return Err(table.problem(match given[..] {
            [] => format!("the gate{name} checks nothing: give it `command`, `file`, `features`, `markers`, `pr` or `ci`"),
            _ => format!("the gate{name} has {}: make it a gate for each", given.join(" and ")),
        }));
    };
    // A key that belongs to another kind of gate would be silently without effect.
    if let Some((field, of)) = table.iter().find_map(|field| Some((field, field.key.of.filter(|of| *of != check)?))) {
        return Err(field.problem(format!("`{}` belongs to a gate with `{of}`, and this one has `{check}`", field.key.name)));
    }
    let (made, check) = match check {
        "command" => {
            let command = gate_command(table)?;
            (command.run.shown(), Check::Command(command))
        }
        "file" => {
            let file = file(table)?;
            (file.path.clone(), Check::File(file))
        }
        "features" => {
            let path = table.read("features", inside)?.unwrap_or_default();
            (path.clone(), Check::Features(Features { path, per_session }))
        }
        "pr" => {
            let stage = table.read("pr", stage)?.unwrap_or(Stage::Open);
            let name = if stage == Stage::Open { "pr" } else { "merged" };
            (name.to_owned(), pull_requests.request(stage, name).check)
        }
        "ci" => {
            let required_only = table.read("ci", pull_requests::requires)?.unwrap_or(false);
            ("ci".to_owned(), pull_requests.green(required_only, "ci").check)
        }
        _ => ("markers".to_owned(), Check::Markers(Markers { words: table.read("markers", markers)?.unwrap_or_default() })),
    };
    let name = table.read("name", gate_name)?.unwrap_or_else(|| short_name(&made));
    // What is decided elsewhere is asked at every stop: the agent does not have to claim anything before ralph waits for it.
    let gate = Gate::new(name, check, Origin::File(FILE.to_owned()));
    Ok(Gate {
        every_stop: table.read("every_stop", Field::bool)?.unwrap_or(gate.is_decided_elsewhere()),
        next: table.read("next", pull_requests::told)?,
        ..gate
    })
}

fn stage(field: Field<'_>) -> Result<Stage, Problem> {
    Ok(if field.choice()? == "merged" { Stage::Merged } else { Stage::Open })
}

fn gate_name(field: Field<'_>) -> Result<String, Problem> {
    let name = field.text()?;
    if name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(field.problem("a gate's name has 1 to 64 characters and none that steer a terminal"));
    }
    Ok(name.trim().to_owned())
}

fn gate_command(table: &Fields<'_>) -> Result<Command, Problem> {
    let usual = Command::shell("");
    let flag = |key, otherwise| Ok::<bool, Problem>(table.read(key, Field::bool)?.unwrap_or(otherwise));
    Ok(Command {
        run: table.read("command", run)?.unwrap_or(usual.run),
        folder: table.read("folder", inside)?,
        env: table.read("env", env)?.unwrap_or_default(),
        deadline_ms: table.read("deadline", deadline)?.unwrap_or(usual.deadline_ms),
        parallel: flag("parallel", usual.parallel)?,
        retry: flag("retry", usual.retry)?,
        cache: flag("cache", usual.cache)?,
        leave_running: flag("leave_running", usual.leave_running)?,
        old_failures: table.read("old_failures", old_failures)?.unwrap_or_default(),
        junit: table.read("junit", inside)?,
        excerpt: table.read("excerpt", excerpt)?.unwrap_or(usual.excerpt),
    })
}

fn env(field: Field<'_>) -> Result<Vec<(String, String)>, Problem> {
    let pairs = field.pairs()?;
    match pairs.iter().find(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')) {
        Some((name, _)) => Err(field.problem(format!("`env` cannot set \"{}\"", name.escape_default()))),
        None => Ok(pairs),
    }
}

fn old_failures(field: Field<'_>) -> Result<OldFailures, Problem> {
    Ok(if field.choice()? == "allow" { OldFailures::Allow } else { OldFailures::Block })
}

fn file(table: &Fields<'_>) -> Result<File, Problem> {
    let fresh = |field: Field<'_>| match field.as_bool() {
        Some(all) => Ok(all.then(Vec::new)),
        None => field.texts().map(Some),
    };
    Ok(File {
        contains: table.read("contains", expression_of_lines)?,
        fresh: table.read("fresh", fresh)?.flatten(),
        entries: table.read("entries", Field::count)?.unwrap_or(0),
        ..File::at(table.read("file", inside)?.unwrap_or_default())
    })
}

fn expression_of_lines(field: Field<'_>) -> Result<String, Problem> {
    let text = field.text()?;
    match expression::of_lines(&text) {
        Ok(_) => Ok(text),
        Err(e) => Err(field.problem(format!("`{}` is no regular expression: {e}", field.key.name))),
    }
}

fn markers(field: Field<'_>) -> Result<Vec<String>, Problem> {
    let words: Vec<String> = field.texts()?.into_iter().filter(|w| !w.trim().is_empty()).collect();
    if words.is_empty() { Err(field.problem("`markers` needs words")) } else { Ok(words) }
}

fn verify(table: &Fields<'_>) -> Result<Verify, Problem> {
    let shown = table.read("excerpt", excerpt)?;
    let commands = table.get("commands").map(Field::entries).unwrap_or_default();
    let one = |entry| verify_command(entry).map(|command| Command { excerpt: shown.unwrap_or(DEFAULT_EXCERPT), ..command });
    Ok(Verify {
        agents: table.read("agents", Field::texts)?,
        commands: commands.into_iter().map(one).collect::<Result<_, _>>()?,
        rounds: table.read("rounds", Field::count)?.unwrap_or(DEFAULT_ROUNDS).max(1),
        minutes: table.read("minutes", Field::count)?.unwrap_or(DEFAULT_MINUTES).max(1),
        excerpt: shown,
    })
}

/// A line for the shell, or a table that also says how long it may take.
fn verify_command(entry: Field<'_>) -> Result<Command, Problem> {
    let usual = Command::shell("");
    if !entry.is_table() {
        return Ok(Command { run: line(entry, entry.text()?)?, ..usual });
    }
    let table = entry.table(&keys::VERIFY_COMMAND)?;
    let run = match (table.read("run", run)?, table.read("command", run)?) {
        (Some(run), None) | (None, Some(run)) => run,
        (None, None) => return Err(table.problem("the command has no `run`")),
        (Some(_), Some(_)) => return Err(table.problem("`run` and `command` mean the same: give one of them")),
    };
    Ok(Command { run, deadline_ms: table.read("deadline", deadline)?.unwrap_or(usual.deadline_ms), ..usual })
}

fn run(field: Field<'_>) -> Result<Run, Problem> {
    let Some(text) = field.as_text() else { return program(field, field.list()?) };
    line(field, text)
}

fn line(field: Field<'_>, line: String) -> Result<Run, Problem> {
    match line.trim().is_empty() {
        true => Err(field.problem("the command is empty")),
        false if line.contains('\0') => Err(field.problem("a command cannot hold a NUL character")),
        false => Ok(Run::Shell(line)),
    }
}

fn program(field: Field<'_>, words: Vec<String>) -> Result<Run, Problem> {
    match words.first().is_none_or(|program| program.trim().is_empty()) {
        true => Err(field.problem("the command has no program")),
        false if words.iter().any(|word| word.contains('\0')) => Err(field.problem("a command cannot hold a NUL character")),
        false => Ok(Run::Argv(words)),
    }
}

fn deadline(field: Field<'_>) -> Result<u64, Problem> {
    let ms = match field.as_text() {
        Some(text) => time_limit(&text),
        None => in_bounds(field.count()?.saturating_mul(1_000)),
    };
    ms.map_err(|what| field.problem(what))
}

/// How long a command may run, as people write it.
pub fn time_limit(text: &str) -> Result<u64, String> {
    millis(text).and_then(in_bounds)
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

fn excerpt(field: Field<'_>) -> Result<usize, Problem> {
    let characters = usize::try_from(field.count()?).ok().filter(|n| (100..=MAX_EXCERPT).contains(n));
    characters.ok_or_else(|| field.problem(format!("`excerpt` must be between 100 and {MAX_EXCERPT} characters")))
}

/// A path that stays in the project, as far as its words can tell.
fn inside(field: Field<'_>) -> Result<String, Problem> {
    let (key, path) = (field.key.name, field.text()?);
    let leaves = path.starts_with(['/', '\\', '~']) || path.split(['/', '\\']).any(|part| part == "..") || path.get(1..2) == Some(":");
    match path.trim().is_empty() || path.contains('\0') {
        true => Err(field.problem(format!("`{key}` needs a path"))),
        false if leaves => Err(field.problem(format!("`{key}` must be a path within the project, not \"{path}\""))),
        false => Ok(path.strip_prefix("./").map(str::to_owned).unwrap_or(path)),
    }
}

/// A name made of the first words of what it stands for.
pub fn short_name(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= 40 { line } else { line.chars().take(39).chain(['…']).collect() }
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
            ("[[gate]]\ncommand = \"a\"\nfile = \"b\"\n", "line 1: the gate has command and file"),
            ("[[gate]]\nfile = \"b\"\n\nretry = true\n", "line 4: `retry` belongs to a gate with `command`"),
            (&"[[gate]]\nmarkers = [\"A\"]\n".repeat(201), "line 401: there are 201 gates, and at most 200 may be there"),
            ("[[gate]]\ncommand = \"a\"\n\n[[gate]]\ncommand = \"a\"\n", "line 4: there are two gates called \"a\""),
            ("[[gate]]\nname = \"x\"\nfile = \"../b\"\n", "line 3: `file` must be a path within the project"),
            ("[[gate]]\nfile = \"/etc/passwd\"\n", "line 2: `file` must be a path within the project"),
            ("[[gate]]\nfile = \"a\"\n\ncontains = \"(\"\n", "line 4: `contains` is no regular expression: "),
            ("[[gate]]\ncommand = \"  \"\n", "line 2: the command is empty"),
            ("[[gate]]\ncommand = []\n", "line 2: the command has no program"),
            ("[[gate]]\ncommand = \"a\"\ndeadline = \"soon\"\n", "line 3: \"soon\" is no length of time"),
            ("[[gate]]\ncommand = \"a\"\ndeadline = 0\n", "line 3: `deadline` must be more than nothing"),
            ("[[gate]]\ncommand = \"a\"\nexcerpt = 1\n", "line 3: `excerpt` must be between 100 and"),
            ("[[gate]]\nname = \"\"\ncommand = \"a\"\n", "line 2: a gate's name has"),
            ("[[gate]]\nmarkers = []\n", "line 2: `markers` needs words"),
            ("\n[verify]\nrounds = 1\ncommands = [\n  \"a\",\n  \"\",\n]\n", "line 6: the command is empty"),
            ("[pr]\nignore = [\"a\", \" \"]\n", "line 2: `ignore` needs the names of checks"),
            ("[verify]\ncommands = [{ deadline = 3 }]\n", "line 2: the command has no `run`"),
            ("[verify]\ncommands = [{ run = \"a\", command = \"b\" }]\n", "line 2: `run` and `command` mean the same"),
        ] {
            assert!(problem(text).starts_with(expected), "{text:?}: {}", problem(text));
        }
        assert!(parse(b"a = \"\xff\"").is_err());
    }

    #[test]
    fn a_value_of_another_type_is_a_sentence_about_its_key() {
        for (text, expected) in [
            (
                "[[gate]]\ncommand = \"a\"\n\ndeadline = true\n",
                "line 4: `deadline` must be a length of time such as \"10m\", or seconds, not true",
            ),
            (
                "[[gate]]\ncommand = \"a\"\ndeadline = 1.5\n",
                "line 3: `deadline` must be a length of time such as \"10m\", or seconds, not 1.5",
            ),
            (
                "[[gate]]\nname = \"x\"\ncommand = 5\n",
                "line 3: `command` must be a line for the shell such as \"cargo test\", or a list of words such as [\"cargo\", \"test\"], not 5",
            ),
            ("[[gate]]\ncommand = [\n  \"a\",\n  5,\n]\n", "line 4: `command` must be a line for the shell"),
            ("guard = true\n", "line 1: `guard` must be \"tests\", \"block\", \"warn\" or \"off\", not true"),
            ("guard = \"maybe\"\n", "line 1: `guard` must be \"tests\", \"block\", \"warn\" or \"off\", not \"maybe\""),
            ("[[gate]]\ncommand = \"a\"\nold_failures = true\n", "line 3: `old_failures` must be \"block\" or \"allow\", not true"),
            ("[[gate]]\ncommand = \"a\"\nretry = \"yes\"\n", "line 3: `retry` must be true or false, not \"yes\""),
            (
                "[[gate]]\ncommand = \"a\"\nenv = { A = 1 }\n",
                "line 3: `env` must be names with texts in quotes, such as { RUST_BACKTRACE = \"1\" }, not 1",
            ),
            ("[[gate]]\nfile = \"a\"\nfresh = 3\n", "line 3: `fresh` must be true, false, or a list of patterns"),
            ("[gate]\ncommand = \"a\"\n", "line 1: `gate` must be a list of gates: write [[gate]], with two brackets"),
            (
                "[gate]\ncommand = \"a\"\n\n[gate]\ncommand = \"b\"\n",
                "line 1: `gate` must be a list of gates: write [[gate]], with two brackets",
            ),
            ("gate = 3\n", "line 1: `gate` must be a list of gates"),
            ("gate = [3]\n", "line 1: `gate` must be a list of gates"),
            ("[[verify]]\nrounds = 1\n", "line 1: there is only one of these: write [verify], with one bracket"),
            ("verify = \"a\"\n", "line 1: `verify` must be a table: write [verify] on a line of its own, not \"a\""),
            ("[features]\nper_session = -1\n", "line 2: `per_session` must be a whole number from 0 on, not -1"),
            ("[verify]\nagents = 3\n", "line 2: `agents` must be a text in quotes, or a list of them, not 3"),
            ("[verify]\ncommands = [3]\n", "line 2: `commands` must be a list of lines for the shell"),
            ("[[gate]]\nname = tests\ncommand = \"a\"\n", "line 2: a text must stand in quotes: \"tests\""),
            ("[[gate]]\ncommand = \"a\"\ndeadline = 10m # long\n", "line 3: a text must stand in quotes: \"10m\""),
            ("[[gate]]\ncommand = \"a\"\ncommand = \"b\"\n", "line 3: the same key is given twice"),
            ("x = [", "line 1: not TOML: "),
            ("[[gate]]\ncommand: \"a\"\n", "line 2: not TOML: key with no value, expected `=`"),
            ("[[gate]]\ncommand = \n", "line 2: there is no value after the `=`"),
        ] {
            assert!(problem(text).starts_with(expected), "{text:?}: {}", problem(text));
        }
    }

    #[test]
    fn a_key_that_nobody_knows_is_named_with_the_one_that_was_meant() {
        for (text, expected) in [
            ("\n[[gate]]\ncomand = \"x\"\n", "line 3: `comand` is not known here; did you mean `command`?"),
            ("[[gates]]\ncommand = \"x\"\n", "line 1: `gates` is not known here; did you mean `gate`?"),
            ("command = \"x\"\n", "line 1: `command` is not known here; it belongs under [[gate]]"),
            ("[features]\ncolour = 1\n", "line 2: `colour` is not known here; the keys are `per_session`"),
            ("[verify]\ncommands = [{ rum = \"a\" }]\n", "line 2: `rum` is not known here; did you mean `run`?"),
        ] {
            assert_eq!(problem(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_can_only_mean_one_thing_is_taken() {
        let text = "[[gate]]\nmarkers = \"LINT\"\n[[gate]]\nfile = \"a\"\nfresh = \"src/**\"\n[verify]\nagents = \"check\"\n";
        let config = parse(format!("{text}commands = [{{ command = \"a\" }}, \"b\"]\n").as_bytes()).unwrap();
        assert_eq!(config.gates[0].check, Check::Markers(Markers { words: vec!["LINT".to_owned()] }));
        let Check::File(file) = &config.gates[1].check else { unreachable!() };
        assert_eq!(file.fresh.as_deref(), Some(["src/**".to_owned()].as_slice()));
        let verify = config.verify.unwrap();
        assert_eq!(verify.agents, Some(vec!["check".to_owned()]));
        assert_eq!(verify.commands.iter().map(|c| c.run.shown()).collect::<Vec<_>>(), ["a", "b"]);
        let alone = parse(b"[verify]\ncommands = \"a\"\n").unwrap().verify.unwrap();
        assert_eq!(alone.commands.len(), 1);
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
