//! `ralph.toml`: the settings of a project, above all the gates that must hold before a loop may end.
//!
//! Everything in it is optional. An unknown key is an error: a gate that is silently missing proves nothing.

mod fleet;
mod keys;
mod pull_requests;
mod reader;
mod running;
pub(crate) mod worktree_yaml;

pub use fleet::Fleet;
pub use pull_requests::PullRequests;
pub use running::{Notify, Run as Running};
pub use worktree_yaml::worktree_commands;

use keys::{Kind, table};
use pull_requests::told;
use reader::{Field, Fields};

use crate::{
    gate::{
        Check, Ci, Command, DEFAULT_DEADLINE_MS, DEFAULT_EXCERPT, Features, File, Gate, GuardPolicy, Markers, OldFailures, Origin, Run,
        Stage, regex, within_a_day,
    },
    text::{Problem, utf8, without_bom},
};

/// The file, in the project's root.
pub const FILE: &str = "ralph.toml";

/// More than this of an output would fill the agent's context.
const MAX_EXCERPT: usize = 8_000;

/// More gates than this are a mistake.
const MAX_GATES: usize = 200;

const CHECKS_THAT_COUNT: &[&str] = &["all", "required"];

table! {
    /// Settings of a project that uses ralph.
    pub struct Config = "the file";
    /// What happens when tests vanish, are skipped, or a gate is weakened while a loop runs: tests (missing or skipped tests keep it from ending, the rest is
    /// listed; the default), block (all of it does), warn (it is listed), off.
    guard: GuardPolicy = GuardPolicy::Tests, Kind::Choice(&["tests", "block", "warn", "off"]),
        |field| field.pick([GuardPolicy::Tests, GuardPolicy::Block, GuardPolicy::Warn, GuardPolicy::Off]);
    /// Run further commands after one has failed.
    keep_going: bool = false, Kind::Bool, Field::bool;
    /// The gates that must hold before a loop may end, in this order.
    gates as "gate": Vec<Gate> = Vec::new(), Kind::Gates, gates;
    /// Settings for all lists.
    per_session as "features": u64 = 0, Kind::Table(FeaturesTable::TABLE), |field| Ok(FeaturesTable::of(field)?.per_session);
    /// The proof that a subagent must bring when it stops.
    verify: Option<Verify> = None, Kind::Table(Verify::TABLE), verify;
    /// The targets that loops of a pull request look at.
    pull_requests as "pr": PullRequests = PullRequests::default(), Kind::Table(PullRequests::TABLE), PullRequests::of;
    /// How `ralph run` runs fresh sessions.
    run: Running = Running::default(), Kind::Table(Running::TABLE), running::run;
    /// Who is told when a run ends, waits for long, or needs a person.
    notify: Notify = Notify::default(), Kind::Table(Notify::TABLE), Notify::of;
    /// How `ralph fleet` makes a folder ready for a job.
    fleet: Fleet = Fleet::default(), Kind::Table(Fleet::TABLE), Fleet::of;
}

table! {
    /// One thing that must hold: a command, a file, a list, markers, a clean working tree, a pull request or its checks.
    struct GateTable = "[[gate]]";
    /// Its name; made from its check if not given.
    name: Option<String> = None, Kind::Text, gate_name;
    /// Measure it at every stop, not only when the agent claims to be done.
    every_stop: Option<bool> = None, Kind::Bool, Field::bool;
    /// The agent's task while it does not hold.
    next: Option<String> = None, Kind::Text, told;
    /// A command that must pass: a line for the shell, or a program and its arguments.
    command: Option<Run> = None, Kind::Run, run;
    /// Where it runs, relative to the project's root.
    folder of "command": Option<String> = None, Kind::Text, inside;
    /// Variables beside those of the agent.
    env of "command": Vec<(String, String)> = Vec::new(), Kind::Env, env;
    /// How long it may run: "90s", "10m", "2h", or seconds. 120 s if not given.
    deadline of "command": u64 = DEFAULT_DEADLINE_MS, Kind::Time, deadline;
    /// It may run at the same time as its neighbours that may, too.
    parallel of "command": bool = false, Kind::Bool, Field::bool;
    /// A failure is tried once more, to tell a flake.
    retry of "command": bool = false, Kind::Bool, Field::bool;
    /// Believe the last verdict while no file has changed. True if not given.
    cache of "command": bool = true, Kind::Bool, Field::bool;
    /// Its verdict depends on nothing but the files that git tracks and the tools on the path: `ralph gate --cached` believes a pass from any clone of the repository.
    any_clone of "command": bool = false, Kind::Bool, Field::bool;
    /// What it needs for itself, such as "db": of all gates on this machine that name it, one runs at a time. Its deadline begins when it does.
    exclusive of "command": Option<String> = None, Kind::Text, exclusive;
    /// Processes that it started may outlive it.
    leave_running of "command": bool = false, Kind::Bool, Field::bool;
    /// Failures that were there when the loop started: block (they count), allow (only new ones do).
    old_failures of "command": OldFailures = OldFailures::Block, Kind::Choice(&["block", "allow"]),
        |field| field.pick([OldFailures::Block, OldFailures::Allow]);
    /// A JUnit file that it writes, or a folder of them, relative to the project's root.
    junit of "command": Option<String> = None, Kind::Text, inside;
    /// How many characters of its output the agent is shown. 500 if not given.
    excerpt of "command": usize = DEFAULT_EXCERPT, Kind::Count, excerpt;
    /// A file that must be there, relative to the project's root.
    file: Option<String> = None, Kind::Text, inside;
    /// A regular expression that must match in it.
    contains of "file": Option<String> = None, Kind::Text, expression_of_lines;
    /// Its sources must not have changed since it was written: true for all files, or patterns such as "src/**".
    fresh of "file": Option<Vec<String>> = None, Kind::Fresh,
        |field| field.as_bool().map_or_else(|| field.texts().map(Some), |all| Ok(all.then(Vec::new)));
    /// So many entries must stand in it: items of lists, rows of tables, paragraphs.
    entries of "file": u64 = 0, Kind::Count, Field::count;
    /// A list whose items must all pass: `feature_list.json`, `prd.json`, or a Markdown file with check boxes.
    features: Option<String> = None, Kind::Text, inside;
    /// Words that must all stand in the agent's last message.
    markers: Vec<String> = Vec::new(), Kind::Texts, markers;
    /// true: everything is committed but ralph's own files and the lists.
    committed: Option<()> = None, Kind::Bool, only_true;
    /// The branch's pull request must be open, or merged.
    pr: Option<Stage> = None, Kind::Choice(&["open", "merged"]), |field| field.pick([Stage::Open, Stage::Merged]);
    /// The checks on the pull request's head commit must be green: all of them, or those that the base branch requires.
    ci: Option<bool> = None, Kind::Choice(CHECKS_THAT_COUNT), |field| field.pick([false, true]);
}

table! {
    /// Settings for all lists.
    struct FeaturesTable = "[features]";
    /// After so many items done in one session the loop pauses; 0 means no limit.
    per_session: u64 = 0, Kind::Count, Field::count;
}

table! {
    /// The proof that a subagent must bring when it stops.
    pub struct Verify = "[verify]";
    /// The types of the agents that must prove their work; "check" if not given.
    agents: Option<Vec<String>> = None, Kind::Texts, Field::texts;
    /// The commands that must pass, in this order.
    commands: Vec<Command> = Vec::new(), Kind::Commands, |field| field.entries().into_iter().map(verify_command).collect::<Result<Vec<_>, _>>();
    // S3-5
    /// Iterations after which an agent is let go, unverified. 5 if not given.
    rounds: u64 = 5, Kind::Count, at_least_one;
    /// Minutes after which it is. 30 if not given.
    minutes: u64 = 30, Kind::Count, at_least_one;
    /// How many characters of a command's output the agent is shown.
    excerpt: Option<usize> = None, Kind::Count, excerpt;
}

table! {
    /// A command, and how long it may run.
    struct VerifyCommand = "a command of [verify]";
    /// A line for the shell, or a program and its arguments.
    run: Option<Run> = None, Kind::Run, run;
    /// Another word for `run`.
    command: Option<Run> = None, Kind::Run, run;
    /// How long it may run. 120 s if not given.
    deadline: u64 = DEFAULT_DEADLINE_MS, Kind::Time, deadline;
}

impl Config {
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let text = without_bom(utf8(bytes)?);
        let document = reader::document(text)?;
        let mut config = Self::read(&Fields::of(text, document.get_ref(), 1, Self::TABLE)?)?;
        for gate in &mut config.gates {
            match &mut gate.check {
                Check::Features(list) => list.per_session = config.per_session,
                Check::PullRequest(request) => gate.check = config.pull_requests.request(request.must_be),
                Check::Ci(ci) => *ci = Ci { required_only: ci.required_only, ..config.pull_requests.ci() },
                _ => {}
            }
        }
        Ok(config)
    }
}

fn gates(field: Field<'_>) -> Result<Vec<Gate>, Problem> {
    let tables = field.tables(GateTable::TABLE)?;
    if let Some(excess) = tables.get(MAX_GATES) {
        return Err(excess.problem(format!("there are {} gates, and at most {MAX_GATES} may be there", tables.len())));
    }
    let mut gates: Vec<Gate> = Vec::with_capacity(tables.len());
    for table in tables {
        let gate = gate(&table)?;
        if gates.iter().any(|other| other.name == gate.name) {
            return Err(table.problem(format!("there are two gates called \"{}\": give them names of their own", gate.name)));
        }
        gates.push(gate);
    }
    Ok(gates)
}

fn gate(table: &Fields<'_>) -> Result<Gate, Problem> {
    let given: Vec<&str> = keys::CHECKS.into_iter().filter(|check| table.get(check).is_some()).collect();
    let [check] = given[..] else {
        let name = table.get("name").and_then(Field::as_text).map(|n| format!(" \"{n}\"")).unwrap_or_default();
        return Err(table.problem(match given[..] {
            [] => format!("the gate{name} checks nothing: give it `command`, `file`, `features`, `markers`, `committed`, `pr` or `ci`"),
            _ => format!("the gate{name} has {}: make it a gate for each", given.join(" and ")),
        }));
    };
    // A key that belongs to another kind of gate would be silently without effect.
    if let Some((field, of)) = table.iter().find_map(|field| Some((field, field.key.of.filter(|of| *of != check)?))) {
        return Err(field.problem(format!("`{}` belongs to a gate with `{of}`, and this one has `{check}`", field.key.name)));
    }
    let t = GateTable::read(table)?;
    let (made, check) = match (t.command, t.file, t.features, t.pr, t.ci) {
        (Some(run), ..) => {
            let made = run.shown();
            let command = Command {
                run,
                folder: t.folder,
                env: t.env,
                deadline_ms: t.deadline,
                parallel: t.parallel,
                retry: t.retry,
                cache: t.cache,
                any_clone: t.any_clone,
                exclusive: t.exclusive,
                leave_running: t.leave_running,
                old_failures: t.old_failures,
                junit: t.junit,
                excerpt: t.excerpt,
            };
            (made, Check::Command(command))
        }
        (_, Some(path), ..) => {
            (path.clone(), Check::File(File { contains: t.contains, fresh: t.fresh, entries: t.entries, ..File::at(path) }))
        }
        (_, _, Some(path), ..) => (path.clone(), Check::Features(Features::of(path))),
        (.., Some(stage), _) => {
            let name = if stage == Stage::Open { "pr" } else { "merged" };
            (name.to_owned(), PullRequests::default().request(stage))
        }
        (.., Some(required_only)) => ("ci".to_owned(), Check::Ci(Ci { required_only, ..PullRequests::default().ci() })),
        _ if t.committed.is_some() => ("committed".to_owned(), Check::Committed),
        _ => ("markers".to_owned(), Check::Markers(Markers { words: t.markers })),
    };
    let gate = Gate::new(t.name.unwrap_or_else(|| Gate::name_for(&made)), check, Origin::File(FILE.to_owned()));
    // CI and reviews are asked at every stop: the agent does not have to claim anything before ralph waits for them.
    Ok(Gate { every_stop: t.every_stop.unwrap_or(gate.is_decided_elsewhere()), next: t.next, ..gate })
}

fn gate_name(field: Field<'_>) -> Result<String, Problem> {
    let name = field.text()?;
    if name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(field.problem("a gate's name has 1 to 64 characters and none that steer a terminal"));
    }
    Ok(name.trim().to_owned())
}

fn env(field: Field<'_>) -> Result<Vec<(String, String)>, Problem> {
    let pairs = field.pairs()?;
    match pairs.iter().find(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')) {
        Some((name, _)) => Err(field.problem(format!("`env` cannot set \"{}\"", name.escape_default()))),
        None => Ok(pairs),
    }
}

/// It becomes the name of a file.
fn exclusive(field: Field<'_>) -> Result<String, Problem> {
    let name = field.text()?;
    let fits = (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if fits { Ok(name) } else { Err(field.problem("`exclusive` is a word of 1 to 64 letters, digits, - and _, such as \"db\"")) }
}

fn expression_of_lines(field: Field<'_>) -> Result<String, Problem> {
    let text = field.text()?;
    match regex::of_lines(&text) {
        Ok(_) => Ok(text),
        Err(e) => Err(field.problem(format!("`{}` is no regular expression: {e}", field.key.name))),
    }
}

/// A gate that checks nothing would look like one that does.
fn only_true(field: Field<'_>) -> Result<(), Problem> {
    if field.bool()? { Ok(()) } else { Err(field.problem(format!("`{}` can only be true: leave the gate out instead", field.key.name))) }
}

fn markers(field: Field<'_>) -> Result<Vec<String>, Problem> {
    let words: Vec<String> = field.texts()?.into_iter().filter(|w| !w.trim().is_empty()).collect();
    if words.is_empty() { Err(field.problem("`markers` needs words")) } else { Ok(words) }
}

fn verify(field: Field<'_>) -> Result<Verify, Problem> {
    let mut verify = Verify::of(field)?;
    let excerpt = verify.excerpt.unwrap_or(DEFAULT_EXCERPT);
    verify.commands.iter_mut().for_each(|command| command.excerpt = excerpt);
    Ok(verify)
}

/// A line for the shell, or a table that also says how long it may take.
fn verify_command(entry: Field<'_>) -> Result<Command, Problem> {
    let usual = Command::shell("");
    if !entry.is_table() {
        return Ok(Command { run: line(entry, entry.text()?)?, ..usual });
    }
    let command = VerifyCommand::of(entry)?;
    let run = match (command.run, command.command) {
        (Some(run), None) | (None, Some(run)) => run,
        (None, None) => return Err(entry.problem("the command has no `run`")),
        (Some(_), Some(_)) => return Err(entry.problem("`run` and `command` mean the same: give one of them")),
    };
    Ok(Command { run, deadline_ms: command.deadline, ..usual })
}

/// A limit of 0 would let an agent go that has not been asked once.
fn at_least_one(field: Field<'_>) -> Result<u64, Problem> {
    Ok(field.count()?.max(1))
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
        Some(text) => Command::parse_deadline(&text),
        None => within_a_day(field.count()?.saturating_mul(1_000)),
    };
    ms.map_err(|what| field.problem(what))
}

fn excerpt(field: Field<'_>) -> Result<usize, Problem> {
    let characters = usize::try_from(field.count()?).ok().filter(|n| (100..=MAX_EXCERPT).contains(n));
    characters.ok_or_else(|| field.problem(format!("`excerpt` must be between 100 and {MAX_EXCERPT} characters")))
}

/// A path that stays in the project, as far as its words can tell.
fn inside(field: Field<'_>) -> Result<String, Problem> {
    inside_path(field, field.text()?)
}

fn inside_path(field: Field<'_>, path: String) -> Result<String, Problem> {
    let key = field.key.name;
    let leaves = path.starts_with(['/', '\\', '~']) || path.split(['/', '\\']).any(|part| part == "..") || path.get(1..2) == Some(":");
    match path.trim().is_empty() || path.contains('\0') {
        true => Err(field.problem(format!("`{key}` needs a path"))),
        false if leaves => Err(field.problem(format!("`{key}` must be a path within the project, not \"{path}\""))),
        false => Ok(path.strip_prefix("./").map(str::to_owned).unwrap_or(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn u3_every_recipe_can_be_read() {
        let page = include_str!("../../../../docs/recipes.md");
        let blocks: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(blocks.len() >= 12, "{}", blocks.len());
        for block in blocks {
            let gates = Config::parse(block.as_bytes()).unwrap_or_else(|problem| panic!("{problem}\n{block}")).gates;
            assert!(!gates.is_empty(), "{block}");
        }
    }

    fn problem(text: &str) -> String {
        Config::parse(text.as_bytes()).map_or_else(|p| p.to_string(), |c| format!("{c:?}"))
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
        let config = Config::parse(text.as_bytes()).unwrap();
        let names: Vec<&str> = config.gates.iter().map(|g| g.name.as_str()).collect();
        assert_eq!(names, ["tests", "npm run lint", "docs/AUDIT.md", "prd.json", "markers"]);
        let Check::Command(tests) = &config.gates[0].check else { unreachable!() };
        assert_eq!((tests.folder.as_deref(), tests.deadline_ms, tests.retry, tests.cache), (Some("crates"), 5_400_000, true, true));
        assert_eq!(config.gates[3].check, Check::Features(Features { per_session: 3, ..Features::of("prd.json") }));
        assert_eq!(config.guard, GuardPolicy::Block);
        let verify = config.verify.unwrap();
        assert_eq!((verify.rounds, verify.minutes), (5, 30), "S3-5");
        assert_eq!(verify.commands.iter().map(|c| c.deadline_ms).collect::<Vec<_>>(), [120_000, 300_000], "S3-3");
        assert_eq!(Config::parse(b""), Ok(Config::default()));
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
            ("[[gate]]\ncommitted = false\n", "line 2: `committed` can only be true: leave the gate out instead"),
            ("\n[verify]\nrounds = 1\ncommands = [\n  \"a\",\n  \"\",\n]\n", "line 6: the command is empty"),
            ("[pr]\nignore = [\"a\", \" \"]\n", "line 2: `ignore` needs the names of checks"),
            ("[verify]\ncommands = [{ deadline = 3 }]\n", "line 2: the command has no `run`"),
            ("[verify]\ncommands = [{ run = \"a\", command = \"b\" }]\n", "line 2: `run` and `command` mean the same"),
        ] {
            assert!(problem(text).starts_with(expected), "{text:?}: {}", problem(text));
        }
        assert!(Config::parse(b"a = \"\xff\"").is_err());
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
        let config = Config::parse(format!("{text}commands = [{{ command = \"a\" }}, \"b\"]\n").as_bytes()).unwrap();
        assert_eq!(config.gates[0].check, Check::Markers(Markers { words: vec!["LINT".to_owned()] }));
        let Check::File(file) = &config.gates[1].check else { unreachable!() };
        assert_eq!(file.fresh.as_deref(), Some(["src/**".to_owned()].as_slice()));
        let verify = config.verify.unwrap();
        assert_eq!(verify.agents, Some(vec!["check".to_owned()]));
        assert_eq!(verify.commands.iter().map(|c| c.run.shown()).collect::<Vec<_>>(), ["a", "b"]);
        let alone = Config::parse(b"[verify]\ncommands = \"a\"\n").unwrap().verify.unwrap();
        assert_eq!(alone.commands.len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]a-z=\"\n {},.]{0,120}") {
            let _ = Config::parse(&bytes);
            let _ = Config::parse(text.as_bytes());
            let _ = Command::parse_deadline(&text);
        }
    }
}
