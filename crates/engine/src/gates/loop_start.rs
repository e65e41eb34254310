//! The beginning of a loop: what it has to prove, and what later iterations are compared with.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{Check, Finding, Gate, OldFailures, Verdict},
    loops::LoopFile,
    text::{clean, time::in_words},
};

use crate::{
    gates::{
        Context, Watch, baseline, command,
        declared::{self, Declared},
        forge, guard, is_untrusted,
    },
    hosts,
    store::project::Project,
};

/// The proof that a new loop needs.
pub struct Begun {
    pub declared: Declared,
    /// The commands whose failures of today were noted, and what they were.
    pub before: Vec<Finding>,
}

impl Begun {
    /// In a few sentences, without their full stops.
    pub fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        if !self.declared.gates.is_empty() {
            told.push(named(&self.declared.gates));
        }
        told.extend(self.fails_already());
        told
    }

    /// Gates that fail before the loop begins, in words.
    pub fn fails_already(&self) -> Vec<String> {
        let (gate, what) = (|f: &Finding| clean(&f.gate), |f: &Finding| clean(&f.what));
        let told = |f: &Finding| match f.verdict {
            Verdict::Fail => format!("before the loop begins: {}: {}", gate(f), what(f)),
            _ => format!("{}: what fails already could not be noted, so all failures count ({})", gate(f), what(f)),
        };
        self.before.iter().filter(|f| f.verdict != Verdict::Pass).map(told).collect()
    }

    /// Obstacles that keep the loop from ever ending, unless a person removes them.
    pub fn in_the_way(&self) -> Vec<String> {
        let problems = self.declared.problems.iter().map(|f| clean(&f.what));
        let untrusted = self.declared.gates.iter().find(|gate| is_untrusted(gate)).map(|gate| {
            format!("{} is not trusted yet, so nothing in it is run and the loop cannot end: `ralph trust`", gate.origin.shown())
        });
        problems.chain(untrusted).collect()
    }
}

/// The gates by name, with the limits of their commands, while a person can still change them.
pub(crate) fn named(gates: &[Gate]) -> String {
    let limit = |gate: &Gate| if let Check::Command(command) = &gate.check { Some(command.deadline_ms) } else { None };
    let name = |gate: &Gate| clean(&gate.name);
    let timed = |gate: &Gate| limit(gate).map_or_else(|| name(gate), |ms| format!("{} (at most {})", name(gate), in_words(ms)));
    let list = |shown: &dyn Fn(&Gate) -> String| gates.iter().map(shown).collect::<Vec<_>>().join(" · ");
    match gates {
        [gate] => format!("gate: {}", timed(gate)),
        [first, others @ ..] => match limit(first).filter(|ms| others.iter().all(|gate| limit(gate) == Some(*ms))) {
            Some(ms) => format!("gates: {} (at most {} each)", list(&name), in_words(ms)),
            None => format!("gates: {}", list(&timed)),
        },
        [] => String::new(),
    }
}

/// Notes the state that the loop begins with. Commands are run only if their old failures should not count; of others, known findings are noted.
pub(crate) fn note(project: &Project, loop_id: &str, file: &LoopFile, budget: Duration, watch: Arc<dyn Watch>) -> Begun {
    let declared = declared::of_loop(project, file);
    if declared.is_empty() {
        return Begun { declared, before: Vec::new() };
    }
    guard::note_start(project, loop_id, &declared);
    if declared.gates.iter().any(Gate::is_decided_elsewhere) {
        forge::note_subject(project, loop_id, file.began(), Instant::now() + budget);
    }
    let ctx = Context { watch, keeps: hosts::of_an_agent().is_none(), ..Context::new(project, loop_id, budget) };
    let (mut before, mut known_at_start) = (Vec::new(), Vec::new());
    for gate in &declared.gates {
        let Check::Command(wanted) = &gate.check else { continue };
        let known = command::known(gate, wanted, &ctx);
        let finding = match wanted.old_failures {
            OldFailures::Allow if known.is_none() => Some(command::run(gate, wanted, &ctx)),
            _ => known,
        };
        if let Some(finding) = finding {
            baseline::note(project, loop_id, &gate.name, &finding);
            known_at_start.push(finding.clone());
            if wanted.old_failures == OldFailures::Allow {
                before.push(finding);
            }
        }
    }
    baseline::fewer_tests(project, loop_id, &known_at_start);
    Begun { declared, before }
}

#[cfg(test)]
mod tests {
    use ralph_core::gate::{Command, Markers, Origin};

    use super::*;

    #[test]
    fn s3_3_the_gates_are_told_with_their_deadlines() {
        let gate = |name: &str, check| Gate { trusted: true, ..Gate::new(name, check, Origin::Loop) };
        let command = |name, deadline_ms| gate(name, Check::Command(Command { deadline_ms, ..Command::shell(name) }));
        let words = gate("words", Check::Markers(Markers { words: vec!["X".to_owned()] }));
        assert_eq!(named(&[command("cargo test", 120_000)]), "gate: cargo test (at most 2 min)");
        assert_eq!(named(&[command("true", 120_000), command("true 2", 120_000)]), "gates: true · true 2 (at most 2 min each)");
        assert_eq!(named(&[command("a", 90_000), command("b", 120_000)]), "gates: a (at most 1 min 30 s) · b (at most 2 min)");
        assert_eq!(named(&[words.clone(), command("b", 120_000)]), "gates: words · b (at most 2 min)");
        assert_eq!(named(&[words]), "gate: words");
    }
}
