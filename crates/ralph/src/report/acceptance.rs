//! What has to hold before a loop is done, each with what proves it, and those that nothing proves.

use ralph_core::{
    chronicle::{Chronicle, Story},
    feature_list::{Item, List},
    gate::{Check, Finding, Gate, Kind, Origin, Verdict},
    judge::{Code, Ending},
    loop_file::LoopFile,
    report::{Acceptance, Evidence, Of, Standing},
    words::{clean, opening, tag},
};
use ralph_engine::{
    gates::{declared, features},
    ops::view::View,
    store::project::Project,
};

/// Longer titles are in the list itself.
const TITLE: usize = 300;

/// The promise first, then the gates, then the items of each list.
pub(super) fn of(project: &Project, view: &View, file: Option<&LoopFile>, c: &Chronicle) -> Vec<Acceptance> {
    let declared = file.map(|file| declared::of_loop(project, file).gates).unwrap_or_default();
    let mut all: Vec<Acceptance> = promise(view, c).into_iter().collect();
    let lists: Vec<(&str, List)> = declared.iter().filter_map(|gate| list(project, gate)).collect();
    let is_listed = |story: &Story| story.last.kind == Kind::Features && !lists.is_empty();
    let is_shown = |story: &&Story| !story.gone && !matches!(story.last.kind, Kind::Guard | Kind::Config) && !is_listed(story);
    all.extend(c.proofs.gates.iter().filter(is_shown).map(|story| measured(story, c)));
    // Settings may have changed since a loop ended, but its own file is the one that it had.
    let is_meant = |gate: &&Gate| view.is_live() || gate.origin == Origin::Loop;
    let never = declared.iter().filter(is_meant).filter(|gate| !is_known(gate, c)).map(|gate| unmeasured(gate, view));
    all.extend(never);
    for (path, list) in &lists {
        let story = c.proofs.gates.iter().find(|story| story.last.kind == Kind::Features);
        let proven = features::proven(project, path, &list.items);
        all.extend(list.items.iter().zip(proven).map(|(item, proven)| of_item(path, item, proven, story, c)));
    }
    all
}

fn is_known(gate: &Gate, c: &Chronicle) -> bool {
    matches!(gate.check, Check::Features(_)) || c.proofs.gates.iter().any(|story| story.last.gate == gate.name)
}

fn list<'g>(project: &Project, gate: &'g Gate) -> Option<(&'g str, List)> {
    let Check::Features(check) = &gate.check else { return None };
    let bytes = features::bytes(project, project.root(), &check.path).ok()?;
    Some((&check.path, List::parse(&bytes).ok()?))
}

fn promise(view: &View, c: &Chronicle) -> Option<Acceptance> {
    let of_stop = || c.last_stop.as_ref().and_then(|stop| stop.evidence.promise.as_deref());
    let promise = view.completion_promise.as_deref().or_else(of_stop)?;
    let accepted = c
        .last_stop
        .as_ref()
        .filter(|stop| stop.ruling.code == Code::PromiseAccepted && c.ended.is_some_and(|ended| ended.ending == Ending::Complete));
    let (standing, what, evidence) = match (accepted, c.refused.kept.last()) {
        (Some(stop), _) => {
            let evidence = Evidence { at: Some(stop.at), stop: Some(stop.number), commit: commit(c, stop.number), ..Evidence::default() };
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

fn measured(story: &Story, c: &Chronicle) -> Acceptance {
    let f = &story.last;
    let ran = c.proofs.ran.get(&f.gate).map(|ran| ran.command.clone());
    let evidence = Evidence { command: ran.filter(|_| f.kind == Kind::Command), ..found(story, c) };
    Acceptance {
        of: Of::Gate,
        name: f.gate.clone(),
        title: None,
        list: None,
        standing: standing(f),
        what: f.what.clone(),
        evidence: Some(evidence),
    }
}

fn found(story: &Story, c: &Chronicle) -> Evidence {
    let f = &story.last;
    Evidence {
        command: None,
        at: Some(story.at),
        stop: Some(story.stop),
        took_ms: (f.took_ms > 0).then_some(f.took_ms),
        log: f.log.clone(),
        commit: commit(c, story.stop),
        cached: f.cached,
        flaky: f.flaky,
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

/// The commit that was checked out when a stop was ruled on.
fn commit(c: &Chronicle, stop: u64) -> Option<String> {
    let round = c.rounds.get(c.rounds.partition_point(|round| round.stop < stop));
    let of_round = round.filter(|round| round.stop == stop).and_then(|round| round.head.clone());
    of_round.or_else(|| c.snapshots.iter().find(|kept| kept.stop == stop).map(|kept| kept.commit.clone()))
}

fn unmeasured(gate: &Gate, view: &View) -> Acceptance {
    let told = view.gates.iter().find(|shown| shown.name == gate.name).map(|shown| shown.what.clone());
    let command = match &gate.check {
        Check::Command(command) => Some(command.run.shown()),
        _ => None,
    };
    Acceptance {
        of: Of::Gate,
        name: gate.name.clone(),
        title: None,
        list: None,
        standing: Standing::Unknown,
        what: told.unwrap_or_else(|| "never measured".to_owned()),
        evidence: command.map(|command| Evidence { command: Some(command), ..Evidence::default() }),
    }
}

/// An item as its list has it now; `proven`: its commands passed when ralph ran them.
fn of_item(path: &str, item: &Item, proven: bool, story: Option<&Story>, c: &Chronicle) -> Acceptance {
    // A list passes only after the commands of all its items did.
    let all_passed = story.filter(|story| !story.gone && story.last.verdict == Verdict::Pass);
    let ran = c.proofs.ran.get(&format!("item {}", clean(&item.id)));
    let has_commands = !item.verify.is_empty();
    let is_refuted = story.is_some_and(|story| story.last.verdict == Verdict::Fail) && ran.is_some();
    let (standing, what) = match (item.is_open(), has_commands, proven || all_passed.is_some()) {
        (true, ..) => (Standing::Open, item.problem.clone().unwrap_or_else(|| "not marked as done".to_owned())),
        (false, false, _) => (Standing::Claimed, "marked as done; it has no command that could prove it".to_owned()),
        (false, true, true) => {
            (Standing::Proven, if item.verify.len() == 1 { "its command passed" } else { "its commands passed" }.to_owned())
        }
        (false, true, false) if is_refuted => (Standing::Fails, "marked as done, but its command does not pass".to_owned()),
        (false, true, false) => (Standing::Claimed, "marked as done; its commands have not passed yet".to_owned()),
    };
    let evidence = (has_commands && standing != Standing::Open).then(|| {
        let command = Some(item.verify.join(" && "));
        match (all_passed, ran) {
            (Some(story), _) => Evidence { command, took_ms: None, log: None, ..found(story, c) },
            (None, Some(ran)) => {
                Evidence { command, at: Some(ran.at), stop: Some(ran.stops + 1), commit: commit(c, ran.stops + 1), ..Evidence::default() }
            }
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
