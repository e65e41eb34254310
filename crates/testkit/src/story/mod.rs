//! A loop's life, made up: a journal as `ralph run` writes it, with all that happens in a good night, the same in the middle of it, and one of any length.

mod agent;
mod journal;

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::project::{Contents, Project};
use journal::Journal;

/// The loop that the night is about.
pub const ID: &str = "main-20261114-214000";

/// What the project is called.
pub const NAME: &str = "tidydate";

/// What the agent has to say.
pub const PROMISE: &str = "EVERY FORMAT PARSES";

const PROMPT: &str = "Make `tidydate` parse every date format that spec/formats.md lists.\n\
\n\
Work through feature_list.json, one item at a time. All tests must pass, clippy must be silent, and the checks of the pull request must be green.\n\
Keep the public API as it is, and commit after every step.";

const TESTS: &str = "cargo test";
const LINT: &str = "cargo clippy -- -D warnings";

/// The items of the list: id, what it asks for, the command that proves it.
const ITEMS: [(&str, &str, Option<&str>); 6] = [
    ("F1", "ISO 8601 week dates (2026-W46-7)", Some("cargo test --test iso_weeks")),
    ("F2", "RFC 2822 dates with comments and odd zones", Some("cargo test --test rfc2822")),
    ("F3", "Relative dates: \"in three days\", \"last Friday\"", Some("cargo test --test relative")),
    ("F4", "Month names in German, French and Spanish", Some("cargo test --test months")),
    ("F5", "Durations survive a round trip", Some("cargo test --test durations")),
    ("F6", "Errors say what was expected, and where", None),
];

/// One round of the night.
struct Round {
    item: &'static str,
    minutes: i64,
    /// Tests that failed after it, and how many of them had failed before the loop.
    failing: (u64, u64),
    /// Whether clippy is silent; `None`: not run again, because nothing changed for it.
    lint: Option<bool>,
    tools: u64,
    thousand_tokens: u64,
    cents: u64,
    added: u64,
    removed: u64,
    said: &'static str,
}

#[rustfmt::skip]
const NIGHT: [Round; 12] = [
    Round { item: "F1", minutes: 14, failing: (14, 3), lint: Some(true), tools: 41, thousand_tokens: 910, cents: 84, added: 212, removed: 18, said: "I read the spec and the parser, and added week dates to the grammar. The edge at the end of the year is still wrong." },
    Round { item: "F1", minutes: 9, failing: (11, 3), lint: Some(true), tools: 28, thousand_tokens: 640, cents: 57, added: 96, removed: 41, said: "Week dates are done, with the 53rd week. F1 is marked." },
    Round { item: "F2", minutes: 17, failing: (9, 3), lint: Some(false), tools: 52, thousand_tokens: 1_180, cents: 104, added: 301, removed: 64, said: "RFC 2822 parses, comments are skipped. Clippy complains about a needless clone; I will see to it." },
    Round { item: "F2", minutes: 11, failing: (7, 3), lint: Some(false), tools: 30, thousand_tokens: 720, cents: 63, added: 88, removed: 102, said: "Odd zones work. F2 is marked. The lint is still there, in generated code." },
    Round { item: "F3", minutes: 21, failing: (6, 3), lint: Some(true), tools: 66, thousand_tokens: 1_490, cents: 131, added: 418, removed: 37, said: "Relative dates have a small grammar of their own now. \"Last Friday\" on a Friday is open." },
    Round { item: "F3", minutes: 12, failing: (4, 2), lint: Some(true), tools: 33, thousand_tokens: 700, cents: 61, added: 77, removed: 59, said: "\"Last Friday\" is decided and written down. F3 is marked." },
    Round { item: "F4", minutes: 19, failing: (2, 2), lint: Some(true), tools: 48, thousand_tokens: 1_050, cents: 93, added: 264, removed: 22, said: "All formats of the list parse now. The two tests that still fail did so before I began.\n\n<promise>EVERY FORMAT PARSES</promise>" },
    Round { item: "F4", minutes: 13, failing: (2, 1), lint: Some(true), tools: 39, thousand_tokens: 830, cents: 74, added: 140, removed: 75, said: "One of the old failures was a wrong table of months and is mended; accents in French broke a new one." },
    Round { item: "F5", minutes: 16, failing: (1, 0), lint: Some(true), tools: 44, thousand_tokens: 960, cents: 85, added: 187, removed: 48, said: "Durations print what they parse. One test about negative ones is left." },
    Round { item: "F5", minutes: 8, failing: (0, 0), lint: None, tools: 22, thousand_tokens: 510, cents: 45, added: 31, removed: 12, said: "Everything passes here. I would end with `<promise>EVERY FORMAT PARSES</promise>` once the pull request is green." },
    Round { item: "F6", minutes: 7, failing: (0, 0), lint: Some(true), tools: 19, thousand_tokens: 430, cents: 38, added: 64, removed: 9, said: "Errors name the place and what was expected.\n\n<promise>EVERY FORMAT PARSES</promise>" },
    Round { item: "F6", minutes: 6, failing: (0, 0), lint: None, tools: 17, thousand_tokens: 380, cents: 34, added: 12, removed: 7, said: "The path separator in a test was wrong on Windows; it is mended and pushed.\n\n<promise>EVERY FORMAT PARSES</promise>" },
];

/// Puts a loop that ran through the night into a new project, with its list and its commits; it is complete, and its id is [`ID`].
pub fn night(project: &Project) -> String {
    // Two hundred calls of git: made once in each process.
    static MADE: OnceLock<(Contents, String)> = OnceLock::new();
    let (contents, journal) = MADE.get_or_init(|| {
        let project = Project::new();
        let mut journal = rounds(&project, journal::at(2026, 11, 14, 21, 40), &dead(), NIGHT.len());
        journal.ended();
        (project.contents(), journal.text())
    });
    project.fill(contents);
    project.write_journal(ID, journal);
    project.write(format!(".ralph/archive/{ID}.md"), loop_file(false, NIGHT.len()));
    ID.to_owned()
}

/// Puts the same loop into a project as it was after nine rounds, in the middle of the tenth, with that moment at `now`. `runner` is the process that
/// carries it, as the loop's state names it.
pub fn under_way(project: &Project, now: i64, runner: &Value) {
    const DONE: usize = 9;
    let any = journal::at(2026, 11, 14, 21, 40);
    let length = rounds(&Project::new(), any, runner, DONE).now() - any;
    let mut journal = rounds(project, now - length - agent::SINCE, runner, DONE);
    let iteration = DONE as u64 + 1;
    journal.began(iteration, 1, NIGHT[DONE].item);
    project.write_journal(ID, &journal.text());
    project.write(".claude/ralph-loop.local.md", loop_file(true, DONE + 1));
    project.write(journal::log(ID, iteration, 1), agent::log(project, now));
}

/// A runner that is no more.
fn dead() -> Value {
    json!({ "pid": 4_194_303, "mark": "night", "attempt": 0 })
}

fn rounds(project: &Project, begun: i64, runner: &Value, count: usize) -> Journal {
    let mut journal = Journal::begin(ID, begun, PROMPT, runner);
    write_list(project, 0);
    let head = commit(project, "The task: every format of the spec", begun - 60_000);
    keep(project, &mut journal, 0, &head);
    for (n, round) in NIGHT.iter().take(count).enumerate() {
        let iteration = n as u64 + 1;
        if iteration == 6 {
            quota(&mut journal, iteration, round.item);
        }
        one_round(project, &mut journal, iteration, round);
    }
    journal
}

fn one_round(project: &Project, journal: &mut Journal, iteration: u64, round: &Round) {
    journal.began(iteration, if iteration == 6 { 2 } else { 1 }, round.item);
    journal.pass(round.minutes * 60);
    let head = change(project, iteration, round, journal.now());
    let claimed = round.said.contains("\n\n<promise>");
    let mut gates = vec![tests(journal, round.failing), lint(journal, round.lint), features(journal, iteration)];
    if iteration >= 10 {
        gates.push(checks(journal, iteration));
    }
    let denied = match iteration {
        8 => json!([{ "tool": "WebFetch", "what": "https://www.unicode.org/cldr/charts/", "rule": "WebFetch(domain:www.unicode.org)" }]),
        _ => json!([]),
    };
    let work = json!({
        "model": "claude-opus-5-5", "turns": round.tools / 2, "tool_calls": round.tools,
        "input": round.thousand_tokens * 14, "output": round.thousand_tokens * 21, "cache_read": round.thousand_tokens * 890, "cache_written": round.thousand_tokens * 75,
        "usd_micros": round.cents * 10_000, "took_ms": round.minutes * 60_000, "context": 61_000 + round.thousand_tokens * 45, "context_window": 1_000_000, "denied": denied
    });
    let claim = match (claimed, iteration) {
        (true, _) => json!({ "is": "made" }),
        (false, 10) => json!({ "is": "refused", "why": { "because": "in-code" } }),
        (false, _) => json!({ "is": "none" }),
    };
    let stop = journal::Stop { iteration, claim, gates, said: round.said, work, is_last: iteration == 12 };
    journal.stop(&stop, &head);
    journal.pass(2);
    keep(project, journal, iteration, &head);
}

/// What `ralph run` keeps after a round: all is committed, so the files are those of the commit.
fn keep(project: &Project, journal: &mut Journal, iteration: u64, head: &str) {
    let name = format!("refs/ralph/{ID}/{iteration}");
    let kept = project.git(&["commit-tree", "-p", head, "-m", &format!("ralph: {ID} {iteration}"), &format!("{head}^{{tree}}")]);
    project.git(&["update-ref", &name, kept.trim()]);
    journal.event(&json!({ "kind": "snapshot", "name": name, "commit": kept.trim() }), None);
}

/// The five hours are used up, and the runner waits.
fn quota(journal: &mut Journal, iteration: u64, item: &str) {
    journal.began(iteration, 1, item);
    journal.pass(180);
    let until = journal.now() + 2 * 3_600_000 + 12 * 60_000;
    let outcome = json!({ "outcome": "failed", "trouble": { "trouble": "limit", "until": until, "quota": "five_hour" } });
    let work = json!({ "turns": 6, "tool_calls": 9, "input": 1_200, "output": 3_100, "cache_read": 96_000, "cache_written": 12_000, "usd_micros": 110_000, "took_ms": 180_000 });
    journal.event(
        &json!({ "kind": "broke", "iteration": iteration, "attempt": 1, "outcome": outcome, "then": { "then": "park", "until": until }, "work": work }),
        None,
    );
    let parked = json!({ "since": journal.now(), "what": "the 5-hour limit of the account is used up", "until": until, "tools": "unknown", "idle_rounds": 0 });
    journal.state(&json!({ "parked": parked, "armed_since": null, "spent_ms": journal.spent() }));
    journal.event(&json!({ "kind": "waiting", "what": "the 5-hour limit of the account is used up" }), None);
    journal.pass((until - journal.now()) / 1000);
    journal.state(&json!({ "parked": null, "armed_since": journal.now() }));
}

fn tests(journal: &mut Journal, (failed, old): (u64, u64)) -> Value {
    journal.checks(TESTS, TESTS, 41);
    let counts = json!({ "total": 318, "failed": failed, "old": old });
    let log = format!(".ralph/logs/{ID}/{}-cargo-test.log", journal.stops() + 1);
    if failed == 0 {
        return json!({ "gate": TESTS, "kind": "command", "verdict": "pass", "what": "exit code 0 after 41 s, 318 tests pass", "took_ms": 41_000, "log": log, "counts": counts });
    }
    let what = format!("exit code 101 after 41 s: {failed} of 318 tests fail, {old} of them before the loop began");
    json!({ "gate": TESTS, "kind": "command", "verdict": "fail", "what": what, "took_ms": 41_000, "log": log, "counts": counts })
}

fn lint(journal: &mut Journal, silent: Option<bool>) -> Value {
    if silent.is_some() {
        journal.checks(LINT, LINT, 18);
    }
    match silent {
        Some(false) => {
            json!({ "gate": LINT, "kind": "command", "verdict": "fail", "what": "exit code 101 after 18 s: 1 warning", "took_ms": 18_000 })
        }
        _ => {
            json!({ "gate": LINT, "kind": "command", "verdict": "pass", "what": "exit code 0 after 18 s", "took_ms": 18_000, "cached": silent.is_none() })
        }
    }
}

/// How many items are marked after a round.
fn marked(iteration: u64) -> usize {
    match iteration {
        0 | 1 => 0,
        2 | 3 => 1,
        4 | 5 => 2,
        6 => 3,
        7..=9 => 4,
        10 => 5,
        _ => 6,
    }
}

fn features(journal: &mut Journal, iteration: u64) -> Value {
    let done = marked(iteration);
    if done == ITEMS.len() {
        for (id, _, command) in ITEMS {
            if let Some(command) = command {
                journal.checks(&format!("item {id}"), command, 4);
            }
        }
    }
    let tally = json!({ "done": done, "total": ITEMS.len() });
    match ITEMS.len() - done {
        0 => json!({ "gate": "features", "kind": "features", "verdict": "pass", "what": "all 6 features verified", "tally": tally }),
        open => {
            json!({ "gate": "features", "kind": "features", "verdict": "fail", "what": format!("{open} of 6 features are open"), "tally": tally })
        }
    }
}

/// The checks of the pull request: red on Windows at first.
fn checks(journal: &mut Journal, iteration: u64) -> Value {
    journal.event(&json!({ "kind": "waiting", "what": "the checks of pull request #41" }), None);
    journal.pass(if iteration == 12 { 540 } else { 690 });
    let finding = |verdict: &str, what: &str| json!({ "gate": "ci", "kind": "ci", "verdict": verdict, "what": what });
    match iteration {
        12 => finding("pass", "all 6 checks on 4d1f0c2 are green"),
        11 => finding("fail", "1 of 6 checks fails: test (windows-latest)"),
        _ => finding("unknown", "GitHub did not answer (status 502)"),
    }
}

fn loop_file(active: bool, iteration: usize) -> String {
    format!(
        "---\nactive: {active}\niteration: {iteration}\nmax_iterations: 20\ncompletion_promise: \"{PROMISE}\"\nloop_id: {ID}\nmax_hours: 10\nmax_usd: 25\n\
         verify:\n  - \"{TESTS}\"\n  - \"{LINT}\"\npreset: features\n---\n\n{PROMPT}\n"
    )
}

fn write_list(project: &Project, done: usize) {
    let item = |(n, (id, description, command)): (usize, &(&str, &str, Option<&str>))| {
        let mut item = json!({ "id": id, "description": description, "passes": n < done });
        if let Some(command) = command {
            item["verify"] = json!([command]);
        }
        item
    };
    let list = json!({ "features": ITEMS.iter().enumerate().map(item).collect::<Vec<_>>() });
    project.write("feature_list.json", serde_json::to_string_pretty(&list).unwrap() + "\n");
}

/// The files and the commit of a round; the commit is returned.
fn change(project: &Project, iteration: u64, round: &Round, at: i64) -> String {
    let name = format!("src/{}.rs", round.item.to_lowercase());
    let before = std::fs::read_to_string(project.path(&name)).unwrap_or_default();
    let kept: Vec<&str> = before.lines().skip(usize::try_from(round.removed).unwrap()).collect();
    let new: Vec<String> = (0..round.added).map(|n| format!("// iteration {iteration}, line {n}")).collect();
    project.write(&name, kept.into_iter().map(str::to_owned).chain(new).collect::<Vec<_>>().join("\n") + "\n");
    for step in 0..round.tools / 18 {
        project.write(format!("notes/{iteration}-{step}.md"), format!("Step {step} of iteration {iteration}.\n"));
        commit(project, &format!("{}: a step of iteration {iteration}", round.item), at - 60_000 + i64::try_from(step).unwrap() * 1000);
    }
    write_list(project, marked(iteration));
    commit(project, &format!("{}: iteration {iteration}", round.item), at - 20_000)
}

fn commit(project: &Project, message: &str, at: i64) -> String {
    let date = format!("{} +0000", at / 1000);
    project.git(&["add", "--all"]);
    let committed = project
        .run("git")
        .args(["-c", "maintenance.auto=false", "commit", "--quiet", "--allow-empty", "--message", message])
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .output();
    assert!(committed.success(), "{}", committed.stderr);
    project.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

/// The journal of a loop of that many rounds that has not ended.
pub fn long(id: &str, rounds: u64) -> String {
    let mut journal = Journal::begin(id, journal::at(2026, 11, 1, 8, 0), PROMPT, &dead());
    for iteration in 1..=rounds {
        let round = &NIGHT[usize::try_from(iteration).unwrap() % NIGHT.len()];
        journal.began(iteration, 1, round.item);
        journal.pass(round.minutes * 4);
        let gates = vec![tests(&mut journal, round.failing), lint(&mut journal, round.lint)];
        let work = json!({
            "turns": round.tools, "tool_calls": round.tools, "input": 900, "output": 2_000 + iteration % 700, "cache_read": 80_000, "cache_written": 9_000,
            "usd_micros": round.cents * 1_000, "took_ms": round.minutes * 4_000
        });
        let claim = if iteration % 50 == 0 { json!({ "is": "made" }) } else { json!({ "is": "none" }) };
        let gates = if round.failing.0 == 0 { vec![tests(&mut journal, (1, 0)), gates[1].clone()] } else { gates };
        journal.stop(
            &journal::Stop { iteration, claim, gates, said: round.said, work, is_last: false },
            "0123456789abcdef0123456789abcdef01234567",
        );
    }
    journal.text()
}
