//! The failures that were there when the loop began, and their weight for failures now.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ralph_core::{
    gate::{
        Check, Command, End, Finding, Gate, OldFailures, Verdict,
        test_results::{Split, TestResults},
    },
    text::opening,
};
use serde::{Deserialize, Serialize};

use crate::{
    gates::Context,
    hosts,
    store::project::Project,
    sys::{files, lock::Lock},
};

/// Two gates may be measured for the first time at once.
const ALONE: Duration = Duration::from_secs(1);

/// More than this is no list of failures.
const MAX_BYTES: usize = 16 << 20;

/// The result of a command when the loop began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Before {
    gate: String,
    pub(super) failed: bool,
    /// Which tests, where the command told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tests: Option<TestResults>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<End>,
}

impl Before {
    /// The tests that failed, where they are known. A command that passed without a word of its tests had none that failed.
    fn failures(&self) -> Option<&BTreeSet<String>> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        match &self.tests {
            Some(tests) => tests.are_all_named().then_some(&tests.failed),
            None => (!self.failed).then_some(&NONE),
        }
    }
}

fn path(loop_id: &str) -> String {
    format!("baseline/{loop_id}.failures.jsonl")
}

pub(super) fn forget(project: &Project, loop_id: &str) {
    project.delete(&path(loop_id));
    project.delete(&counts_path(loop_id));
}

/// How many tests a gate's command told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Ran {
    ran: u64,
    skipped: u64,
}

impl Ran {
    fn of(tests: &TestResults) -> Self {
        Ran { ran: tests.ran(), skipped: tests.ignored }
    }
}

fn counts_path(loop_id: &str) -> String {
    format!("baseline/{loop_id}.counts.json")
}

/// A person says that fewer tests are right: the next measurement is what later ones are compared with.
pub(super) fn accept_counts(project: &Project, loop_id: &str) {
    project.delete(&counts_path(loop_id));
}

/// Gates that hold with fewer tests, or with more of them skipped, than when they were first measured in this loop; one sentence each. What is measured for the
/// first time is noted, but not in an agent's own shell, where `cargo` may be anything.
pub(super) fn fewer_tests(project: &Project, loop_id: &str, findings: &[Finding]) -> Vec<String> {
    let told: Vec<(&Finding, Ran)> = findings.iter().filter_map(|f| Some((f, Ran::of(f.tests.as_ref()?)))).collect();
    if told.is_empty() {
        return Vec::new();
    }
    let path = counts_path(loop_id);
    let known: BTreeMap<String, Ran> = project.load(&path).unwrap_or_default();
    if !hosts::is_in_the_agents_shell() && told.iter().any(|(f, _)| !known.contains_key(&f.gate)) {
        project.update(&path, |all: &mut BTreeMap<String, Ran>| {
            for (finding, ran) in &told {
                all.entry(finding.gate.clone()).or_insert(*ran);
            }
            true
        });
    }
    let compared = |(finding, now): &(&Finding, Ran)| {
        let then = known.get(&finding.gate).filter(|_| finding.verdict == Verdict::Pass)?;
        let gate = opening(&finding.gate, 60);
        if now.ran < then.ran {
            Some(format!("gate \"{gate}\": {} tests ran, and {} did at first", now.ran, then.ran))
        } else if now.skipped > then.skipped {
            Some(format!("gate \"{gate}\": {} tests were skipped, and {} were at first", now.skipped, then.skipped))
        } else {
            None
        }
    };
    told.iter().filter_map(compared).collect()
}

/// Gates that hold and do not tell of tests any more, though they did when they were first measured in this loop. A tool that writes a report writes none where
/// nothing has changed, and that is no sign of anything.
pub(super) fn silent(project: &Project, loop_id: &str, gates: &[Gate], findings: &[Finding]) -> Vec<String> {
    let writes_report = |name: &str| {
        let is_it = |gate: &&Gate| gate.name == name;
        gates.iter().find(is_it).is_some_and(|gate| matches!(&gate.check, Check::Command(command) if command.junit.is_some()))
    };
    let is_silent = |f: &&Finding| f.verdict == Verdict::Pass && f.tests.is_none() && !f.skipped && !writes_report(&f.gate);
    let silent: Vec<&Finding> = findings.iter().filter(is_silent).collect();
    if silent.is_empty() {
        return Vec::new();
    }
    let known: BTreeMap<String, Ran> = project.load(&counts_path(loop_id)).unwrap_or_default();
    let said = |finding: &&Finding| {
        let then = known.get(&finding.gate).filter(|then| then.ran > 0)?;
        Some(format!("gate \"{}\": {} tests ran at first, and now it does not tell of any", opening(&finding.gate, 60), then.ran))
    };
    silent.iter().filter_map(said).collect()
}

fn lines(project: &Project, loop_id: &str) -> Vec<u8> {
    project.state_file(&path(loop_id)).and_then(|path| files::read(&path, MAX_BYTES).ok()).unwrap_or_default()
}

/// The result of a gate's command when the loop began, if that is known.
pub(super) fn of(project: &Project, loop_id: &str, gate: &str) -> Option<Before> {
    lines(project, loop_id)
        .split(|b| *b == b'\n')
        .filter_map(|line| serde_json::from_slice::<Before>(line).ok())
        .find(|before| before.gate == gate)
}

/// Notes it. Only the first word about a gate counts, and only one that says something.
pub(super) fn note(project: &Project, loop_id: &str, gate: &str, finding: &Finding) {
    if !matches!(finding.verdict, Verdict::Pass | Verdict::Fail) {
        return;
    }
    let _alone = project.make_state_file(&path(loop_id)).ok().and_then(|file| Lock::of_folder(file.parent()?, ALONE).ok()?);
    if of(project, loop_id, gate).is_some() {
        return;
    }
    let before = Before { gate: gate.to_owned(), failed: finding.verdict == Verdict::Fail, tests: finding.tests.clone(), end: finding.end };
    let (Ok(path), Ok(line)) = (project.make_state_file(&path(loop_id)), serde_json::to_vec(&before)) else { return };
    // Without it all failures count as new.
    let _ = files::replace_private(&path, &[lines(project, loop_id), line, b"\n".to_vec()].concat());
}

/// A finding compared with what failed when the loop began.
pub(super) fn weigh(gate: &Gate, command: &Command, ctx: &Context<'_>, finding: Finding) -> Finding {
    let fails = |tests: &TestResults| tests.failures() > 0;
    let is_asked = finding.verdict == Verdict::Fail || finding.tests.as_ref().is_some_and(fails);
    let before = if is_asked { of(ctx.project, ctx.about, &gate.name) } else { None };
    let counts = finding.tests.as_ref().and_then(|tests| tests.counts(before.as_ref().and_then(Before::failures)));
    let finding = Finding { counts, ..finding };
    match before.filter(|before| before.failed && finding.verdict == Verdict::Fail) {
        Some(before) => compared(finding, &before, command),
        None => finding,
    }
}

/// A failure compared with that of the start.
fn compared(finding: Finding, before: &Before, command: &Command) -> Finding {
    let allows = command.old_failures == OldFailures::Allow;
    let (only_old, note) = match (&finding.tests, &before.tests) {
        (Some(now), Some(then)) if now.are_all_named() && then.are_all_named() => {
            let Split { new, old } = now.split(&then.failed);
            match (new.len(), old.len()) {
                (0, 1) => (true, "a failure from before the loop began".to_owned()),
                (0, old) if old > 0 => (true, format!("all {old} failures are from before the loop began")),
                (new, old) => (false, format!("{} new, {old} from before the loop began", count(new))),
            }
        }
        (None, None) => (true, "it failed before the loop began, too".to_owned()),
        // Numbers are all that this command ever told.
        (Some(now), Some(then)) if now.failures() > 0 && !then.are_all_named() => {
            let (now, then) = (now.failures(), then.failures());
            (now <= then, format!("{then} failed before the loop began"))
        }
        // Without the names it is unknown: a suite that no longer compiles is not an old failure.
        _ => return finding,
    };
    let (only_old, note) = match (before.end, finding.end) {
        (Some(then), Some(now)) if only_old && !ends_alike((then, before.tests.as_ref()), (now, finding.tests.as_ref())) => {
            (false, format!("before the loop began it failed too, but with {then}"))
        }
        _ => (only_old, note),
    };
    let verdict = if only_old && allows { Verdict::Pass } else { Verdict::Fail };
    Finding { what: format!("{} ({note})", finding.what), verdict, ..finding }
}

/// Whether a command failed in the same way. A suite that crashes halfway tells of no new failure either. Some commands end with the number of their failures.
fn ends_alike(then: (End, Option<&TestResults>), now: (End, Option<&TestResults>)) -> bool {
    let counts = |(end, tests): (End, Option<&TestResults>)| matches!((end, tests), (End::Code(code), Some(tests)) if u64::try_from(code) == Ok(tests.failures()));
    then.0 == now.0 || (counts(then) && counts(now))
}

fn count(failures: usize) -> String {
    if failures == 1 { "1 failure".to_owned() } else { format!("{failures} failures") }
}

#[cfg(test)]
mod tests {
    use ralph_core::gate::{Kind, Origin, TestCounts};

    use super::*;
    use crate::sys::temp_dir::Scratch;

    #[test]
    fn eyes_2_a_finding_says_how_many_tests_fail_and_how_many_did_before() {
        let scratch = Scratch::create("ralph-baseline-", false).unwrap();
        let project = Project::with_state(scratch.path().join("project"), &scratch.path().join("state"));
        let command = Command::shell("cargo test");
        let counts_of = |about: &str, verdict, failed: &[&str]| {
            let failed = failed.iter().map(|name| (*name).to_owned()).collect();
            let tests = TestResults { passed: 3, ignored: 1, failed, ..TestResults::default() };
            let finding = Finding { tests: Some(tests), ..Finding::new("tests", Kind::Command, verdict, "") };
            let gate = Gate::new("tests", Check::Command(command.clone()), Origin::Loop);
            let ctx = Context::new(&project, about, std::time::Duration::ZERO);
            let weighed = weigh(&gate, &command, &ctx, finding.clone());
            note(&project, about, "tests", &finding);
            weighed.counts.unwrap()
        };
        assert_eq!(counts_of("a", Verdict::Fail, &["x", "y"]), TestCounts { total: 5, failed: 2, old: None }, "nothing is known yet");
        assert_eq!(counts_of("a", Verdict::Fail, &["y", "z", "u"]), TestCounts { total: 6, failed: 3, old: Some(1) });
        assert_eq!(counts_of("b", Verdict::Pass, &[]), TestCounts { total: 3, failed: 0, old: Some(0) });
        assert_eq!(counts_of("b", Verdict::Fail, &["x"]), TestCounts { total: 4, failed: 1, old: Some(0) }, "all passed at the start");
        let written = serde_json::to_string(&Finding {
            counts: Some(counts_of("b", Verdict::Pass, &[])),
            ..Finding::new("t", Kind::Command, Verdict::Pass, "")
        });
        assert!(written.unwrap().contains(r#""counts":{"total":3,"failed":0,"old":0}"#));
    }

    #[test]
    fn u3_failures_without_names_are_compared_by_number_only_where_there_never_were_names() {
        let command = Command { old_failures: OldFailures::Allow, ..Command::shell("npm test") };
        let tests = |unnamed: u64, names: &[&str]| {
            let failed = names.iter().map(|name| (*name).to_owned()).collect();
            Some(TestResults { passed: 3, unnamed, failed, ..TestResults::default() })
        };
        let verdict = |then: Option<TestResults>, now: Option<TestResults>| {
            let before = Before { gate: "g".to_owned(), failed: true, tests: then, end: Some(End::Code(1)) };
            let finding = Finding { tests: now, end: Some(End::Code(1)), ..Finding::new("g", Kind::Command, Verdict::Fail, "") };
            compared(finding, &before, &command).verdict
        };
        assert_eq!(verdict(tests(2, &[]), tests(2, &[])), Verdict::Pass);
        assert_eq!(verdict(tests(2, &[]), tests(1, &["a"])), Verdict::Pass);
        assert_eq!(verdict(tests(2, &[]), tests(3, &[])), Verdict::Fail, "more than before");
        assert_eq!(verdict(tests(2, &[]), tests(0, &[])), Verdict::Fail, "it fails, and no test does");
        assert_eq!(verdict(tests(0, &["a", "b"]), tests(0, &["b"])), Verdict::Pass);
        assert_eq!(verdict(tests(0, &["a", "b"]), tests(1, &["b"])), Verdict::Fail, "a name that is missing now may be a new one");
        assert_eq!(verdict(tests(0, &["a", "b"]), tests(2, &[])), Verdict::Fail);
        assert_eq!(verdict(tests(2, &[]), None), Verdict::Fail);
    }

    #[test]
    fn u3_a_gate_that_holds_with_fewer_tests_or_tells_of_none_is_noticed() {
        let scratch = Scratch::create("ralph-baseline-", false).unwrap();
        let project = Project::with_state(scratch.path().join("project"), &scratch.path().join("state"));
        let found = |verdict, tests: Option<TestResults>| [Finding { tests, ..Finding::new("tests", Kind::Command, verdict, "") }];
        let ran = |passed, ignored, packages| Some(TestResults { passed, ignored, packages, ..TestResults::default() });
        let names = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let said = |about: &str, finding: &[Finding]| fewer_tests(&project, about, finding);
        let none: [String; 0] = [];
        let at_first = TestResults { passed: 1, packages: 2, outside: 2, failed: names, ..TestResults::default() };
        assert_eq!(said("a", &found(Verdict::Fail, Some(at_first))), none);
        assert_eq!(said("a", &found(Verdict::Pass, ran(1, 0, 2))), none, "the same packages, and no failure");
        assert_eq!(said("a", &found(Verdict::Pass, ran(1, 0, 1))), ["gate \"tests\": 2 tests ran, and 3 did at first"]);
        assert_eq!(said("a", &found(Verdict::Pass, ran(3, 1, 0))), ["gate \"tests\": 1 tests were skipped, and 0 were at first"]);
        let gate = |junit: Option<&str>| {
            let command = Command { junit: junit.map(str::to_owned), ..Command::shell("npm test") };
            [Gate::new("tests", Check::Command(command), Origin::Loop)]
        };
        let silent = |about: &str, gates: &[Gate], finding: &[Finding]| silent(&project, about, gates, finding);
        let passed = found(Verdict::Pass, None);
        assert_eq!(silent("a", &gate(None), &passed), ["gate \"tests\": 3 tests ran at first, and now it does not tell of any"]);
        assert_eq!(silent("a", &gate(Some("reports")), &passed), none, "nothing to do for the tool that writes the report");
        assert_eq!(silent("a", &gate(None), &found(Verdict::Fail, None)), none, "it fails anyway");
        assert_eq!(silent("a", &gate(None), &found(Verdict::Pass, ran(3, 0, 0))), none);
        assert_eq!(silent("b", &gate(None), &passed), none, "it never told of any");
    }

    #[test]
    fn the_first_word_counts() {
        let scratch = Scratch::create("ralph-baseline-", false).unwrap();
        let project = Project::with_state(scratch.path().join("project"), &scratch.path().join("state"));
        let found = |verdict| Finding::new("tests", Kind::Command, verdict, "");
        assert_eq!(of(&project, "a", "tests"), None);
        note(&project, "a", "tests", &found(Verdict::Unknown));
        assert_eq!(of(&project, "a", "tests"), None, "nothing was measured");
        let tests = TestResults { passed: 3, ignored: 0, failed: BTreeSet::from(["x::y".to_owned()]), ..TestResults::default() };
        note(&project, "a", "tests", &Finding { tests: Some(tests.clone()), ..found(Verdict::Fail) });
        note(&project, "a", "tests", &found(Verdict::Pass));
        note(&project, "a", "lint", &found(Verdict::Pass));
        let before = of(&project, "a", "tests").unwrap();
        assert_eq!((before.failed, before.tests), (true, Some(tests)));
        assert!(!of(&project, "a", "lint").unwrap().failed);
        assert_eq!(of(&project, "b", "tests"), None, "another loop");
    }
}
