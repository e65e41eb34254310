//! The beginning of a loop: what it has to prove, and what later rounds are compared with.

use std::{sync::Arc, time::Duration};

use ralph_core::{
    gate::{Check, Finding, Gate, OldFailures, Verdict},
    loop_file::LoopFile,
    words::clean,
};

use crate::{
    gates::{
        Context, Watch, baseline, command,
        declared::{self, Declared},
        guard,
    },
    store::project::Project,
    sys::env,
};

/// What a new loop has to prove.
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
            let names: Vec<String> = self.declared.gates.iter().map(|gate| clean(&gate.name)).collect();
            told.push(format!("{}: {}", if names.len() == 1 { "gate" } else { "gates" }, names.join(", ")));
        }
        let failing = self.before.iter().filter(|f| f.verdict != Verdict::Pass);
        told.extend(failing.map(|f| format!("before the loop begins: {}: {}", clean(&f.gate), clean(&f.what))));
        told
    }

    /// What keeps the loop from ever ending, unless a person does something about it.
    pub fn in_the_way(&self) -> Vec<String> {
        let problems = self.declared.problems.iter().map(|f| clean(&f.what));
        let is_untrusted = |gate: &&Gate| matches!(gate.check, Check::Command(_)) && !gate.trusted;
        let untrusted = self.declared.gates.iter().find(is_untrusted).map(|gate| {
            format!("{} is not trusted yet, so nothing in it is run and the loop cannot end: `ralph trust`", gate.origin.shown())
        });
        problems.chain(untrusted).collect()
    }
}

/// Notes the state that the loop begins with. Commands are run only where their old failures shall not count; of others, what is known already is noted.
pub fn note(project: &Project, loop_id: &str, file: &LoopFile, budget: Duration, watch: Arc<dyn Watch>) -> Begun {
    let declared = declared::of_loop(project, file);
    if declared.is_empty() {
        return Begun { declared, before: Vec::new() };
    }
    guard::note_start(project, loop_id, &declared);
    let ctx = Context { watch, keeps: env::of_an_agent().is_none(), ..Context::new(project, loop_id, budget) };
    let mut before = Vec::new();
    for gate in &declared.gates {
        let Check::Command(wanted) = &gate.check else { continue };
        let known = command::known(gate, wanted, &ctx);
        let finding = match wanted.old_failures {
            OldFailures::Allow if known.is_none() => Some(command::run(gate, wanted, &ctx)),
            _ => known,
        };
        if let Some(finding) = finding {
            baseline::note(project, loop_id, &gate.name, &finding);
            if wanted.old_failures == OldFailures::Allow {
                before.push(finding);
            }
        }
    }
    Begun { declared, before }
}
