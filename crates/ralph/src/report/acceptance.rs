//! The acceptance criteria of a loop, each with its proof, and those without one.

use ralph_core::{
    gate::{
        Check, Finding, Gate, Kind, Origin, Verdict,
        list::{Item, List},
    },
    history::{GateHistory, History},
    judge::{Code, Ending},
    messages::tag,
    report::{Acceptance, Evidence, Of, Standing},
    text::{clean, count, opening},
};
use ralph_engine::{
    gates::{declared::Declared, features},
    store::project::Project,
    view::View,
};

use super::Sources;

/// Longer titles are in the list itself.
const TITLE: usize = 300;

/// The promise first, then the gates, then the items of each list.
pub(super) fn of(l: Sources<'_>) -> Vec<Acceptance> {
    let (c, gates) = (l.history, &l.declared.gates);
    let mut all: Vec<Acceptance> = promise(l).into_iter().collect();
    let lists: Vec<(&str, List)> = gates.iter().filter_map(|gate| list(l.project, gate)).collect();
    let is_listed = |gate: &GateHistory| gate.last.kind == Kind::Features && !lists.is_empty();
    let is_shown = |gate: &&GateHistory| !matches!(gate.last.kind, Kind::Guard | Kind::Config) && !is_listed(gate);
    all.extend(c.gates.iter().filter(is_shown).map(|gate| if gate.gone { gone(gate, l) } else { measured(gate, l) }));
    all.extend(meant(l.view, l.declared).filter(|gate| !is_known(gate, c)).map(|gate| unmeasured(gate, l.view)));
    for (path, list) in &lists {
        let gate = c.gates.iter().find(|gate| gate.last.kind == Kind::Features);
        let proven = features::proven(l.project, path, &list.items);
        all.extend(list.items.iter().zip(proven).map(|(item, proven)| of_item(path, item, proven, gate, l)));
    }
    if l.view.is_live() && all.iter().all(|one| one.of == Of::Promise) {
        // The criteria were in a file that cannot be read.
        all.extend(l.declared.problems.iter().map(|problem| bare(problem.gate.clone(), Standing::Unknown, problem.what.clone())));
    }
    all
}

/// The gates that the loop has. Settings may have changed since it ended, but its own file is the one that it had.
pub(super) fn meant<'d>(view: &View, declared: &'d Declared) -> impl Iterator<Item = &'d Gate> {
    let is_live = view.is_live();
    declared.gates.iter().filter(move |gate| is_live || gate.origin == Origin::Loop)
}

fn bare(name: String, standing: Standing, what: String) -> Acceptance {
    Acceptance { of: Of::Gate, name, title: None, list: None, standing, what, evidence: None }
}

fn is_known(gate: &Gate, c: &History) -> bool {
    matches!(gate.check, Check::Features(_)) || c.gates.iter().any(|known| known.last.gate == gate.name)
}

fn list<'g>(project: &Project, gate: &'g Gate) -> Option<(&'g str, List)> {
    let Check::Features(check) = &gate.check else { return None };
    let bytes = features::bytes(project, project.root(), &check.path).ok()?;
    Some((&check.path, check.list(&bytes).ok()?))
}

fn promise(l: Sources<'_>) -> Option<Acceptance> {
    let (view, c) = (l.view, l.history);
    let of_stop = || c.last_stop.as_ref().and_then(|stop| stop.evidence.promise.as_deref());
    let promise = view.completion_promise.as_deref().or_else(of_stop)?;
    let accepted = c
        .last_stop
        .as_ref()
        .filter(|stop| stop.ruling.code == Code::PromiseAccepted && c.ended.is_some_and(|ended| ended.ending == Ending::Complete));
    let (standing, what, evidence) = match (accepted, c.refused.kept.last()) {
        (Some(stop), _) => {
            let evidence = Evidence { at: Some(stop.at), stop: Some(stop.number), ..l.snapshots.at(c, stop.number, stop.at) };
            let (standing, what) = match stop.evidence.gates.len() {
                0 => (Standing::Claimed, "the agent said so; no gate had to prove it".to_owned()),
                1 => (Standing::Proven, "the agent said so, and the gate held".to_owned()),
                n => (Standing::Proven, format!("the agent said so, and all {n} gates held")),
            };
            (standing, what, Some(evidence))
        }
        (None, Some(last)) => {
            let times = if c.refused.count == 1 { "once".to_owned() } else { format!("{} times", c.refused.count) };
            let evidence = Evidence { at: Some(last.at), stop: Some(last.stop), ..Evidence::default() };
            (Standing::Open, format!("claimed {times}, and refused: {}", last.why), Some(evidence))
        }
        (None, None) => (Standing::Open, "the agent has not said it".to_owned(), None),
    };
    Some(Acceptance { of: Of::Promise, name: tag(promise), title: None, list: None, standing, what, evidence })
}

fn measured(gate: &GateHistory, l: Sources<'_>) -> Acceptance {
    let f = &gate.last;
    let ran = l.history.ran.get(&f.gate).map(|ran| ran.command.clone());
    let evidence = Evidence { command: ran.filter(|_| f.kind == Kind::Command), ..found(gate, l) };
    Acceptance { evidence: Some(evidence), ..bare(f.gate.clone(), standing(f), with_tests(f)) }
}

/// The finding, with how many tests passed where that is known.
fn with_tests(f: &Finding) -> String {
    let says_so = f.what.contains("tests pass") || f.what.contains("test passes");
    let passed = f.counts.filter(|_| f.verdict == Verdict::Pass && !says_so).map_or(0, |counts| counts.total.saturating_sub(counts.failed));
    if passed == 0 { f.what.clone() } else { format!("{}, {}", f.what, count(passed, "test passes", "tests pass")) }
}

/// A gate that the last stop did not have: what it found before proves nothing now.
fn gone(gate: &GateHistory, l: Sources<'_>) -> Acceptance {
    let is_back = l.declared.gates.iter().any(|declared| declared.name == gate.last.gate);
    let why = if is_back { "not measured since it is declared again" } else { "not declared any more" };
    let what = format!("{why}; last found: {}", gate.last.what);
    Acceptance { standing: Standing::Unknown, what, ..measured(gate, l) }
}

fn found(gate: &GateHistory, l: Sources<'_>) -> Evidence {
    let f = &gate.last;
    Evidence {
        command: None,
        at: Some(f.measured.as_ref().map_or(gate.at, |measured| measured.at)),
        stop: Some(gate.stop),
        took_ms: (f.took_ms > 0).then_some(f.took_ms),
        log: f.log.clone(),
        cached: f.cached,
        flaky: f.flaky,
        ..l.snapshots.at(l.history, gate.stop, gate.at)
    }
}

fn standing(f: &Finding) -> Standing {
    match f.verdict {
        Verdict::Pass => Standing::Proven,
        Verdict::Fail => Standing::Fails,
        Verdict::Wait => Standing::Waits,
        Verdict::Unknown => Standing::Unknown,
    }
}

fn unmeasured(gate: &Gate, view: &View) -> Acceptance {
    let told = view.gates.iter().find(|shown| shown.name == gate.name).map(|shown| shown.what.clone());
    let command = match &gate.check {
        Check::Command(command) => Some(command.run.shown()),
        _ => None,
    };
    let evidence = command.map(|command| Evidence { command: Some(command), ..Evidence::default() });
    Acceptance { evidence, ..bare(gate.name.clone(), Standing::Unknown, told.unwrap_or_else(|| "not measured yet".to_owned())) }
}

/// An item as its list has it now; `proven`: its commands passed when ralph ran them.
fn of_item(path: &str, item: &Item, proven: bool, gate: Option<&GateHistory>, l: Sources<'_>) -> Acceptance {
    // A list passes only after the commands of all its items did.
    let all_passed = gate.filter(|gate| !gate.gone && gate.last.verdict == Verdict::Pass);
    let ran = l.history.ran.get(&format!("item {}", clean(&item.id)));
    let has_commands = !item.verify.is_empty();
    let is_refuted = gate.is_some_and(|gate| gate.last.verdict == Verdict::Fail) && ran.is_some();
    let (standing, what) = match (item.is_open(), has_commands, proven || all_passed.is_some()) {
        (true, ..) => (Standing::Open, item.problem.clone().unwrap_or_else(|| "not marked as done".to_owned())),
        (false, false, _) => (Standing::Claimed, "marked as done; it has no command that could prove it".to_owned()),
        (false, true, true) => {
            (Standing::Proven, if item.verify.len() == 1 { "its command passed" } else { "its commands passed" }.to_owned())
        }
        (false, true, false) if is_refuted => (
            Standing::Fails,
            if item.verify.len() == 1 {
                "marked as done, but its command does not pass"
            } else {
                "marked as done, but one of its commands does not pass"
            }
            .to_owned(),
        ),
        (false, true, false) => (
            Standing::Claimed,
            if item.verify.len() == 1 {
                "marked as done; its command has not passed yet"
            } else {
                "marked as done; its commands have not passed yet"
            }
            .to_owned(),
        ),
    };
    let evidence = (has_commands && standing != Standing::Open).then(|| {
        let command = Some(item.verify.join(" && "));
        match (all_passed, ran) {
            (Some(gate), _) => Evidence { command, took_ms: None, log: None, ..found(gate, l) },
            // In the middle of an iteration the files are not looked at.
            (None, Some(ran)) => Evidence { command, at: Some(ran.at), stop: Some(ran.stops + 1), ..Evidence::default() },
            (None, None) => Evidence { command, ..Evidence::default() },
        }
    });
    Acceptance {
        of: Of::Item,
        name: item.id.clone(),
        title: Some(opening(&item.title, TITLE)).filter(|title| !title.is_empty()),
        list: Some(path.to_owned()),
        standing,
        what,
        evidence,
    }
}
