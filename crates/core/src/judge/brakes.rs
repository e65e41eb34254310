//! The brakes: how many iterations without any tool call, or without any change, a loop may have, and which iterations count as such.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    gate::{Finding, Kind, Verdict},
    loops::{DEFAULT_IDLE_ROUNDS, fnv1a},
};

/// Consecutive blocks that the client honours before it ends the turn by itself, unless its environment says otherwise.
const DEFAULT_BLOCK_CAP: u64 = 8;

/// Whether the agent used a tool in the iteration that just ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolUse {
    Used,
    None,
    /// There is no transcript to tell.
    #[default]
    Unknown,
}

/// Who set the limit of idle iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IdleLimitFrom {
    Loop,
    /// The host honours so many blocks in a row without a tool call.
    HostCap,
    /// The host honours so many blocks in a turn, tool calls or not.
    HostTurnCap,
    Default,
}

/// The host's block cap as its variable sets it; `None` means no cap. The client reads the value as a JavaScript number.
pub fn block_cap(variable: Option<&str>) -> Option<u64> {
    match variable.map(str::trim).and_then(|v| v.parse::<f64>().ok()) {
        None => Some(DEFAULT_BLOCK_CAP),
        Some(cap) if cap.is_nan() => Some(DEFAULT_BLOCK_CAP),
        Some(cap) if !(1.0..1_000_000.0).contains(&cap) => None,
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a million")]
        Some(cap) => Some(cap as u64),
    }
}

/// How many idle iterations a loop may have. 0 in the loop file lifts the loop's own limit, never the host's.
///
/// Under a cap of n the host honours n blocks in a row, from any hook; ralph pauses one block earlier than it must, so that the turn
/// never ends "as a success" behind its back.
pub fn idle_limit(wanted: Option<u64>, cap: Option<u64>) -> (u64, IdleLimitFrom) {
    let own = match wanted {
        Some(0) => (u64::MAX, IdleLimitFrom::Loop),
        Some(rounds) => (rounds, IdleLimitFrom::Loop),
        None => (DEFAULT_IDLE_ROUNDS, IdleLimitFrom::Default),
    };
    match cap.map(|cap| cap.saturating_sub(1).max(2)) {
        Some(bound) if bound < own.0 => (bound, IdleLimitFrom::HostCap),
        _ => own,
    }
}

/// Idle iterations in a row, this one included. Without a transcript, only a message that repeats the last one is known to be idle.
pub fn count_idle(before: u64, tools: ToolUse, same_message: bool) -> u64 {
    match (tools, same_message) {
        (ToolUse::Used, _) => 0,
        (ToolUse::None, _) | (ToolUse::Unknown, true) => before + 1,
        (ToolUse::Unknown, false) => before,
    }
}

/// The state of the work at the last stop, and for how many iterations it has been the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Standstill {
    /// The commit, and a fingerprint of all files.
    pub tree: String,
    /// Fingerprints of what each gate found when it was last measured.
    pub findings: BTreeMap<String, String>,
    /// Iterations in a row in which nothing changed.
    pub rounds: u64,
    /// Iterations since then, in which the files were not looked at.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub unseen: u64,
    /// Fingerprints of all files after the iterations before, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<String>,
}

/// Where looking at the files at every stop is not worth its time, it is done once in so many iterations.
const LOOK_EVERY: u64 = 5;

/// So many iterations are remembered: enough for a pattern to come three times.
const REMEMBERED: usize = 7;

/// How often the files may come back to their state of two iterations before until the agent is told, and until the loop pauses.
pub(crate) const SWINGS_TOLD: u64 = 2;
pub(crate) const SWINGS_BORNE: u64 = 4;

impl Standstill {
    /// The count after one more iteration. Where the files cannot be seen nothing is concluded; a gate that was not measured has not changed.
    #[must_use]
    pub fn after(before: Option<&Self>, tree: Option<&str>, gates: &[Finding]) -> Option<Self> {
        let Some(tree) = tree else { return before.cloned() };
        let measured = gates.iter().filter(|f| !f.skipped).map(|f| (f.gate.clone(), fingerprint(f)));
        let findings: BTreeMap<String, String> = measured.collect();
        let is_same =
            |last: &&Self| last.tree == tree && findings.iter().all(|(gate, f)| last.findings.get(gate).is_none_or(|known| known == f));
        let trees = before.map_or_else(Vec::new, |last| last.trees.clone());
        let mut after = match before.filter(is_same) {
            None => Standstill { tree: tree.to_owned(), findings, ..Standstill::default() },
            Some(last) => {
                let known = last.findings.clone().into_iter().chain(findings).collect();
                Standstill { findings: known, rounds: last.rounds.saturating_add(1), ..last.clone() }
            }
        };
        after.trees = remembered(trees, tree);
        Some(after)
    }

    /// Whether it is time to look at the files, where that is not done at every stop.
    pub fn is_look_due(before: Option<&Self>) -> bool {
        before.is_none_or(|last| last.unseen + 1 >= LOOK_EVERY)
    }

    /// The count after one more iteration of a loop whose files are looked at now and then. `looked`: they were, and `tree` was seen. Between two looks only a
    /// changed finding can be known; a look that finds the same as the last one means that nothing changed in between. `is_idle`: the iteration had no tool
    /// call at all, and another brake counts it.
    #[must_use]
    pub fn now_and_then(before: Option<&Self>, looked: bool, tree: Option<&str>, gates: &[Finding], is_idle: bool) -> Self {
        let last = before.cloned().unwrap_or_default();
        let unseen = last.unseen + u64::from(!is_idle);
        let Some(next) = Self::after(before, Some(last.tree.as_str()), gates) else { return last };
        let has_found_something_else = before.is_some() && next.rounds == 0;
        let known = Standstill { rounds: if has_found_something_else { 0 } else { last.rounds }, trees: last.trees, ..next };
        match (looked, tree) {
            (false, _) => Standstill { unseen: if has_found_something_else { 0 } else { unseen }, ..known },
            // Files that cannot be seen are no change and no standstill.
            (true, None) => Standstill { unseen: 0, ..known },
            (true, Some(tree)) if tree != last.tree => Standstill { tree: tree.to_owned(), rounds: 0, unseen: 0, ..known },
            (true, Some(_)) if has_found_something_else => Standstill { unseen: 0, ..known },
            (true, Some(_)) => Standstill { rounds: last.rounds.saturating_add(unseen), unseen: 0, ..known },
        }
    }

    /// How often in a row the files came back to their state of two iterations before: A-B-A-B is two times.
    pub fn swings(&self) -> u64 {
        let is_swing = |three: &&[String]| three[0] == three[2] && three[0] != three[1];
        self.trees.windows(3).rev().take_while(is_swing).count() as u64
    }
}

/// The files after the last iterations. A commit that only takes them back is no other state.
fn remembered(mut trees: Vec<String>, tree: &str) -> Vec<String> {
    let files = tree.rsplit(' ').next().unwrap_or_default();
    if trees.last().is_none_or(|last| last != files) {
        trees.push(files.to_owned());
    }
    let excess = trees.len().saturating_sub(REMEMBERED);
    trees.drain(..excess);
    trees
}

/// A gate's failure, and how often in a row it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Repeated {
    pub gate: String,
    /// Fingerprint of what was found.
    pub finding: String,
    pub times: u64,
}

impl Repeated {
    /// The first failing gate whose output tells what is wrong; a list that is not done yet fails in the same way all the time.
    pub fn failing(gates: &[Finding]) -> Option<&Finding> {
        let tells = |f: &&Finding| matches!(f.kind, Kind::Command | Kind::Ci | Kind::File);
        gates.iter().filter(tells).find(|f| f.verdict == Verdict::Fail && !f.skipped)
    }

    /// The count after one more stop. A gate that was not measured has not changed.
    #[must_use]
    pub fn after(before: Option<&Self>, gates: &[Finding]) -> Option<Self> {
        let Some(f) = Self::failing(gates) else {
            let is_unmeasured = |last: &&Self| gates.is_empty() || gates.iter().any(|f| f.gate == last.gate && f.skipped);
            return before.filter(is_unmeasured).cloned();
        };
        let finding = fingerprint(f);
        let is_same = |last: &&Self| last.gate == f.gate && last.finding == finding;
        // A verdict that is known from before was not found once more.
        let before = before.filter(is_same).map_or(0, |last| last.times);
        let times = if f.cached { before.max(1) } else { before.saturating_add(1) };
        Some(Repeated { gate: f.gate.clone(), finding, times })
    }
}

/// The circuit breaker of a loop in fresh sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Breaker {
    /// Iterations make progress, or have not failed to for long.
    Closed,
    /// Too many iterations changed nothing: after a rest comes one trial.
    HalfOpen,
    /// The trial changed nothing either: a person is asked.
    Open,
}

impl Breaker {
    /// `rounds` iterations in a row changed nothing, and `limit` may; 0 means no limit.
    pub fn of(rounds: u64, limit: u64) -> Self {
        match limit {
            0 => Breaker::Closed,
            _ if rounds < limit => Breaker::Closed,
            _ if rounds == limit => Breaker::HalfOpen,
            _ => Breaker::Open,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Breaker::Closed => "closed",
            Breaker::HalfOpen => "half-open",
            Breaker::Open => "open",
        }
    }
}

/// Failing iterations in a row, this one included: a measured gate fails, and no more holds than before. `held` counts the items that are done and the gates
/// that pass.
pub fn count_failing(before: u64, fails: bool, held_before: u64, held: u64) -> u64 {
    if !fails || held > held_before { 0 } else { before.saturating_add(1) }
}

/// A finding in short, whatever time it took.
fn fingerprint(f: &Finding) -> String {
    let text = format!("{}\0{}", f.verdict.as_str(), without_durations(&f.what));
    format!("{:016x}", fnv1a(text.as_bytes()))
}

/// A text without `3 s`, `812 ms`, `1 h 20 min`.
fn without_durations(text: &str) -> String {
    const UNITS: [&str; 5] = ["ms", "s", "min", "h", "d"];
    let mut kept: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
        let is_number = |last: &&str| last.trim_start_matches('(').parse::<u64>().is_ok();
        if is_unit && kept.last().is_some_and(is_number) {
            kept.pop();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(gate: &str, verdict: Verdict, what: &str) -> Finding {
        Finding::new(gate, Kind::Command, verdict, what)
    }

    /// The count after looks at the tree and the gates, one for each iteration.
    fn stalled(looks: &[(Option<&str>, Vec<Finding>)]) -> u64 {
        let last = looks.iter().fold(None, |before, (tree, gates)| Standstill::after(before.as_ref(), *tree, gates));
        last.map_or(0, |s| s.rounds)
    }

    /// The same failure is counted whatever time it took, and a gate that was not asked has not changed.
    #[test]
    fn t12_the_same_failure_in_a_row_is_counted() {
        let failing = |what: &str| vec![Finding::new("tests", Kind::Command, Verdict::Fail, what)];
        let not_asked = || vec![Finding { skipped: true, ..Finding::new("tests", Kind::Command, Verdict::Unknown, "") }];
        let looks = |all: &[Vec<Finding>]| {
            let last = all.iter().fold(None, |before: Option<Repeated>, gates| Repeated::after(before.as_ref(), gates));
            last.map_or(0, |last| last.times)
        };
        let (one, same) = (failing("exit code 1 after 3 s"), failing("exit code 1 after 12 s"));
        assert_eq!(looks(&[one.clone(), not_asked(), same.clone(), vec![]]), 2);
        let known = || vec![Finding { cached: true, ..one[0].clone() }];
        assert_eq!(looks(&[one.clone(), known(), known()]), 1, "u3: it ran once");
        assert_eq!(looks(&[one.clone(), failing("exit code 2 after 3 s"), same.clone()]), 1);
        assert_eq!(looks(&[one.clone(), vec![Finding::new("tests", Kind::Command, Verdict::Pass, "")], same]), 1);
        let list = vec![Finding::new("list", Kind::Features, Verdict::Fail, "2 of 5")];
        assert_eq!(looks(&[list.clone(), list]), 0, "a list that is worked off fails all the time");
        assert_eq!(looks(&[one, vec![Finding::new("lint", Kind::Command, Verdict::Pass, "")]]), 0);
    }

    #[test]
    fn s2_7_rounds_that_change_nothing_are_counted() {
        let tests = |what: &str| vec![found("tests", Verdict::Fail, what)];
        let same = (Some("a"), tests("exit code 1 after 3 s"));
        assert_eq!(stalled(std::slice::from_ref(&same)), 0, "nobody knows what the first iteration changed");
        assert_eq!(stalled(&[same.clone(), same.clone(), same.clone()]), 2);
        assert_eq!(stalled(&[same.clone(), (Some("a"), tests("exit code 1 after 1 min 20 s"))]), 1, "time passes");
        assert_eq!(stalled(&[same.clone(), same.clone(), (Some("b"), tests("exit code 1 after 3 s"))]), 0, "another tree");
        assert_eq!(stalled(&[same.clone(), same.clone(), (Some("a"), tests("exit code 2 after 3 s"))]), 0, "another finding");
        assert_eq!(stalled(&[same.clone(), same.clone(), (Some("a"), vec![found("tests", Verdict::Pass, "exit code 1 after 3 s")])]), 0);
        assert_eq!(stalled(&[same.clone(), (None, tests("x")), same.clone()]), 1, "what cannot be seen is no change and no standstill");
    }

    #[test]
    fn s2_7_a_gate_that_was_not_asked_has_not_changed() {
        let asked = (Some("a"), vec![found("tests", Verdict::Fail, "exit code 1")]);
        let mut not_asked = asked.clone();
        not_asked.1[0] = Finding { skipped: true, ..found("tests", Verdict::Unknown, "not asked") };
        assert_eq!(
            stalled(&[not_asked.clone(), asked.clone(), not_asked.clone(), asked.clone()]),
            3,
            "claiming every other iteration is no progress"
        );
        let passed = (Some("a"), vec![found("tests", Verdict::Pass, "passed in 1 s")]);
        assert_eq!(stalled(&[asked, not_asked, passed]), 0);
    }

    #[test]
    fn t16_ten_rounds_without_a_change_are_seen_with_two_looks() {
        let iteration = |before: Option<Standstill>, tree: &str, gates: &[Finding], is_idle: bool| {
            let looked = Standstill::is_look_due(before.as_ref());
            (Standstill::now_and_then(before.as_ref(), looked, looked.then_some(tree), gates, is_idle), looked)
        };
        let run = |trees: &str| {
            let (mut state, mut looks) = (None, 0);
            for tree in trees.chars() {
                let (next, looked) = iteration(state, &tree.to_string(), &[], false);
                looks += u64::from(looked);
                state = Some(next);
            }
            (state.unwrap_or_default().rounds, looks)
        };
        assert_eq!(run("AAAAA"), (0, 1), "the first look is what later ones are compared with");
        assert_eq!(run("AAAAAA"), (5, 2));
        assert_eq!(run("AAAAAAAAAA"), (5, 2), "nothing is concluded between two looks");
        assert_eq!(run("AAAAAAAAAAA"), (10, 3));
        assert_eq!(run("AAAABBBBBBB"), (5, 3), "a change is seen at the next look");
        assert_eq!(run("ABCDEFGHIJKLMNOP"), (0, 4));
        let found = |what: &str| vec![found("tests", Verdict::Fail, what)];
        let (mut state, _) = iteration(None, "A", &found("3 fail"), false);
        for what in ["3 fail", "3 fail", "2 fail", "2 fail", "2 fail", "2 fail", "2 fail", "2 fail"] {
            state = iteration(Some(state), "A", &found(what), false).0;
        }
        assert_eq!((state.rounds, state.unseen), (5, 0), "a finding that changed is progress");
        let (mut idle, _) = iteration(None, "A", &[], false);
        for _ in 0..30 {
            idle = iteration(Some(idle), "A", &[], true).0;
        }
        assert_eq!((idle.rounds, idle.unseen), (0, 0), "iterations without any tool call have a brake of their own");
        let blind = Standstill::now_and_then(
            Some(&Standstill { tree: "A".to_owned(), rounds: 5, unseen: 4, ..Standstill::default() }),
            true,
            None,
            &[],
            false,
        );
        assert_eq!((blind.rounds, blind.unseen), (5, 0), "what cannot be seen proves nothing");
    }

    #[test]
    fn pains_11_going_back_and_forth_is_seen() {
        let swings = |trees: &str| {
            let names: Vec<String> = trees.chars().enumerate().map(|(n, c)| format!("commit{n} {c}")).collect();
            let looks = names.iter().map(String::as_str);
            looks
                .fold(None, |before: Option<Standstill>, tree| Standstill::after(before.as_ref(), Some(tree), &[]))
                .map_or(0, |s| s.swings())
        };
        assert_eq!(swings("AB"), 0);
        assert_eq!(swings("ABA"), 1);
        assert_eq!(swings("ABAB"), SWINGS_TOLD);
        assert_eq!(swings("ABABAB"), SWINGS_BORNE);
        assert_eq!(swings("ABABABABAB"), 5, "no more is remembered");
        assert_eq!(swings("ABCABC"), 0, "three states take longer, and may be work");
        assert_eq!(swings("ABABC"), 0, "it found its way out");
        assert_eq!(swings("AAAA"), 0, "nothing changed at all: that is a standstill");
        assert_eq!(swings("ABBBA"), 1, "iterations that change nothing lie between");
    }

    #[test]
    fn a_breaker_has_one_trial_before_it_asks_a_person() {
        let positions: Vec<&str> = (0..5).map(|rounds| Breaker::of(rounds, 3).as_str()).collect();
        assert_eq!(positions, ["closed", "closed", "closed", "half-open", "open"]);
        assert_eq!(Breaker::of(100, 0), Breaker::Closed);
    }

    #[test]
    fn a_round_after_which_more_holds_has_not_failed() {
        assert_eq!(count_failing(2, true, 3, 3), 3);
        assert_eq!(count_failing(2, true, 3, 4), 0);
        assert_eq!(count_failing(2, false, 3, 3), 0);
    }

    #[test]
    fn durations_say_nothing_about_the_work() {
        assert_eq!(without_durations("exit code 1 after 812 ms"), "exit code 1 after");
        assert_eq!(without_durations("3 of 12 tests fail (after 1 h 20 min), 4 s later"), "3 of 12 tests fail (after later");
        assert_eq!(without_durations("5 jobs fail: build, d, s"), "5 jobs fail: build, d, s");
    }

    proptest! {
        /// A standstill is never counted across a change.
        #[test]
        fn s2_7_a_change_starts_anew(trees in proptest::collection::vec(0u8..3, 1..20)) {
            let names: Vec<String> = trees.iter().map(u8::to_string).collect();
            let looks: Vec<_> = names.iter().map(|name| (Some(name.as_str()), Vec::new())).collect();
            let same = trees.iter().rev().take_while(|tree| Some(*tree) == trees.last()).count();
            prop_assert_eq!(stalled(&looks), same as u64 - 1);
        }
    }

    #[test]
    fn the_cap_is_read_as_the_client_reads_it() {
        let cases = [
            (None, Some(8)),
            (Some("abc"), Some(8)),
            (Some(""), Some(8)),
            (Some("0"), None),
            (Some("-1"), None),
            (Some("1000000"), None),
            (Some("3"), Some(3)),
            (Some("1.5"), Some(1)),
        ];
        for (variable, cap) in cases {
            assert_eq!(block_cap(variable), cap, "{variable:?}");
        }
    }

    #[test]
    fn ralph_pauses_before_the_host_gives_up() {
        assert_eq!(idle_limit(None, Some(8)), (7, IdleLimitFrom::HostCap));
        assert_eq!(idle_limit(None, None), (25, IdleLimitFrom::Default));
        assert_eq!(idle_limit(Some(3), Some(8)), (3, IdleLimitFrom::Loop));
        assert_eq!(idle_limit(Some(50), Some(8)), (7, IdleLimitFrom::HostCap));
        assert_eq!(idle_limit(Some(0), None), (u64::MAX, IdleLimitFrom::Loop));
        for cap in 1..20 {
            // The host overrides the block that would follow `cap` honoured ones.
            assert!(idle_limit(None, Some(cap)).0 <= cap + 1);
        }
    }

    #[test]
    fn only_known_idleness_counts() {
        assert_eq!(count_idle(3, ToolUse::Used, true), 0);
        assert_eq!(count_idle(3, ToolUse::None, false), 4);
        assert_eq!(count_idle(3, ToolUse::Unknown, true), 4);
        assert_eq!(count_idle(3, ToolUse::Unknown, false), 3);
    }
}
