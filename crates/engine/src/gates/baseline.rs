//! What failed when the loop began, and what that means for what fails now.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ralph_core::{
    gate::{
        Command, End, Finding, Gate, OldFailures, Verdict,
        test_results::{Split, TestResults},
    },
    text::opening,
};
use serde::{Deserialize, Serialize};

use crate::{
    gates::Context,
    store::project::Project,
    sys::{env, files, lock::Lock},
};

/// Two gates may be measured for the first time at once.
const ALONE: Duration = Duration::from_secs(1);

/// More than this is no list of failures.
const MAX_BYTES: usize = 16 << 20;

/// What a command did when the loop began.
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
        self.tests.as_ref().map(|tests| &tests.failed).or((!self.failed).then_some(&NONE))
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
        Ran { ran: tests.passed.saturating_add(tests.failed.len() as u64), skipped: tests.ignored }
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
    if !env::is_in_the_agents_shell() && told.iter().any(|(f, _)| !known.contains_key(&f.gate)) {
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

fn lines(project: &Project, loop_id: &str) -> Vec<u8> {
    project.state_file(&path(loop_id)).and_then(|path| files::read(&path, MAX_BYTES).ok()).unwrap_or_default()
}

/// What a gate's command did when the loop began, if that is known.
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
    let fails = |tests: &TestResults| !tests.failed.is_empty();
    let is_asked = finding.verdict == Verdict::Fail || finding.tests.as_ref().is_some_and(fails);
    let before = if is_asked { of(ctx.project, ctx.about, &gate.name) } else { None };
    let counts = finding.tests.as_ref().map(|tests| tests.counts(before.as_ref().and_then(Before::failures)));
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
        (Some(now), Some(then)) => {
            let Split { new, old } = now.split(&then.failed);
            match (new.len(), old.len()) {
                (0, 1) => (true, "a failure from before the loop began".to_owned()),
                (0, old) if old > 0 => (true, format!("all {old} failures are from before the loop began")),
                (new, old) => (false, format!("{} new, {old} from before the loop began", count(new))),
            }
        }
        (None, None) => (true, "it failed before the loop began, too".to_owned()),
        // Without the names nobody can tell: a suite that no longer compiles is not an old failure.
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
    let counts = |(end, tests): (End, Option<&TestResults>)| matches!((end, tests), (End::Code(code), Some(tests)) if usize::try_from(code) == Ok(tests.failed.len()));
    then.0 == now.0 || (counts(then) && counts(now))
}

fn count(failures: usize) -> String {
    if failures == 1 { "1 failure".to_owned() } else { format!("{failures} failures") }
}

#[cfg(test)]
mod tests {
    use ralph_core::gate::{Check, Kind, Origin, TestCounts};

    use super::*;
    use crate::sys::temp_dir::Scratch;

    #[test]
    fn eyes_2_a_finding_says_how_many_tests_fail_and_how_many_did_before() {
        let scratch = Scratch::create("ralph-baseline-", false).unwrap();
        let project = Project::with_state(scratch.path().join("project"), &scratch.path().join("state"));
        let command = Command::shell("cargo test");
        let counts_of = |about: &str, verdict, failed: &[&str]| {
            let tests = TestResults { passed: 3, ignored: 1, failed: failed.iter().map(|name| (*name).to_owned()).collect() };
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
    fn the_first_word_counts() {
        let scratch = Scratch::create("ralph-baseline-", false).unwrap();
        let project = Project::with_state(scratch.path().join("project"), &scratch.path().join("state"));
        let found = |verdict| Finding::new("tests", Kind::Command, verdict, "");
        assert_eq!(of(&project, "a", "tests"), None);
        note(&project, "a", "tests", &found(Verdict::Unknown));
        assert_eq!(of(&project, "a", "tests"), None, "nothing was measured");
        let tests = TestResults { passed: 3, ignored: 0, failed: BTreeSet::from(["x::y".to_owned()]) };
        note(&project, "a", "tests", &Finding { tests: Some(tests.clone()), ..found(Verdict::Fail) });
        note(&project, "a", "tests", &found(Verdict::Pass));
        note(&project, "a", "lint", &found(Verdict::Pass));
        let before = of(&project, "a", "tests").unwrap();
        assert_eq!((before.failed, before.tests), (true, Some(tests)));
        assert!(!of(&project, "a", "lint").unwrap().failed);
        assert_eq!(of(&project, "b", "tests"), None, "another loop");
    }
}
