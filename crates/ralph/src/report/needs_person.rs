//! Steps for a person, the most urgent first.

use ralph_core::{
    gate::{Check, Gate, Origin, Verdict},
    history::{Denials, History},
    report::{About, Acceptance, Left, Need, Standing},
    text,
};
use ralph_engine::{
    hosts::Advice,
    ops::command_sources::Source,
    store::{project::Project, seal, trust::Trust},
    view::{GateView, Status, View},
};

use super::{Sources, relative};
use crate::advice;

/// How many of a kind are listed.
const MOST: usize = 20;

pub(super) fn of(sources: Sources<'_>, acceptance: &[Acceptance], left: Option<&Left>) -> Vec<Need> {
    let Sources { project, view, history, .. } = sources;
    let resting = resting(view, history);
    // A loop that rests because of a gate has said what is wrong with it.
    let is_said = |what: &str| resting.as_ref().is_some_and(|need| need.what.contains(what));
    let gates = gates(view, history, is_said);
    let mut all: Vec<Need> = resting.into_iter().chain(gates).collect();
    all.extend(untrusted(sources));
    all.extend(suspicions(view, history));
    all.extend(denied(history));
    all.extend(unproven(acceptance, view));
    all.extend(left.and_then(|left| uncommitted(left, view)));
    all.extend(files(project, view, history));
    all
}

/// Why it does not go on, and how it does.
fn resting(view: &View, history: &History) -> Option<Need> {
    let (what, how) = match view.status {
        Status::Paused | Status::LeftBehind | Status::Tracked => {
            let what = view.why.clone().unwrap_or_else(|| format!("It is {}.", view.status.words()));
            (what, advice::step(view)?)
        }
        Status::Capped => {
            let how = format!("`{}` goes on.", advice::command(view, history));
            ("It stopped at a limit before it was done, and is kept.".to_owned(), how)
        }
        Status::Gone => (
            "Its file is gone, and no ending was written down.".to_owned(),
            "`ralph resume` brings it back from the archive, if it is in there".to_owned(),
        ),
        Status::Failed | Status::Corrupt => {
            let what = view.problem.as_ref().map(|problem| format!("Its file cannot be read: {problem}"));
            (
                what.unwrap_or_else(|| "Its file could not be read.".to_owned()),
                "fix the file (its last version is in .ralph/backup), then `ralph resume`".to_owned(),
            )
        }
        _ => return None,
    };
    Some(Need { about: About::Resting, what, how: vec![how] })
}

/// Gates that only a person can change: not trusted, not readable, asking for a person.
fn gates(view: &View, c: &History, is_said: impl Fn(&str) -> bool) -> Vec<Need> {
    let need =
        |name: &str, what: &str, needs: &str| Need { about: About::Gate, what: format!("{name}: {what}"), how: vec![needs.to_owned()] };
    if view.is_live() {
        let asks = |gate: &GateView| gate.needs.as_deref().map(|needs| need(&gate.name, &gate.what, needs));
        return view.gates.iter().filter(|gate| !is_said(&gate.what)).filter_map(asks).take(MOST).collect();
    }
    let open = c.findings().filter(|finding| finding.verdict != Verdict::Pass && !is_said(&finding.what));
    open.filter_map(|finding| finding.needs.as_deref().map(|needs| need(&finding.gate, &finding.what, needs))).take(MOST).collect()
}

/// Files of this loop whose commands run only after a person allows it. Gates that say so themselves are listed already.
fn untrusted(Sources { project, view, declared, history, .. }: Sources<'_>) -> Vec<Need> {
    if matches!(view.status, Status::Complete | Status::Cancelled) {
        return Vec::new();
    }
    let says_so = |gate: &Gate| {
        let of_view = view.gates.iter().any(|shown| shown.name == gate.name && shown.needs.is_some());
        of_view || (!view.is_live() && history.findings().any(|finding| finding.gate == gate.name && finding.needs.is_some()))
    };
    let is_from = |gate: &Gate, origin: &str| match (&gate.check, &gate.origin) {
        (Check::Features(list), _) => list.path == origin,
        (_, Origin::File(file) | Origin::List(file)) => gate.acts() && file == origin,
        (_, Origin::Loop) => view.file.as_ref().is_some_and(|file| relative(project, file) == origin),
    };
    let concerns = |source: &&Source| declared.gates.iter().any(|gate| is_from(gate, &source.origin) && !says_so(gate));
    let (sources, _) = Source::all(project);
    sources.iter().filter(|source| !source.trust.is_trusted()).filter(concerns).take(MOST).map(of_source).collect()
}

fn of_source(source: &Source) -> Need {
    let origin = text::clean(&source.origin);
    let why = if source.trust == Trust::Changed { "has changed since it was trusted" } else { "is not trusted" };
    let commands = match source.commands.len() {
        1 => "its command is not run".to_owned(),
        n => format!("none of its {n} commands is run"),
    };
    Need {
        about: About::Gate,
        what: format!("{origin} {why}: {commands}, so nothing that it asks for can be proven."),
        how: vec!["`ralph trust` shows what it would run and asks".to_owned()],
    }
}

fn suspicions(view: &View, c: &History) -> Option<Need> {
    if c.suspicions.is_empty() {
        return None;
    }
    let listed = c.suspicions.iter().take(MOST).map(|one| one.trim_end_matches('.').to_owned());
    let mut how = vec!["look at each: `ralph diff` shows what changed".to_owned()];
    if view.is_live() {
        how.push("if it is right as it is, `ralph gate --accept` says so".to_owned());
    }
    Some(Need { about: About::Suspicion, what: format!("{}.", listed.collect::<Vec<_>>().join("; ")), how })
}

fn denied(c: &History) -> Option<Need> {
    if c.denied.is_empty() {
        return None;
    }
    let all = Denials::sorted(c.denied.clone());
    let times = |times: u64| if times == 1 { "once".to_owned() } else { format!("{times} times") };
    let one = |denied: &Denials| format!("`{}` ({})", denied.rule.replace('`', ""), times(denied.times));
    let rules: Vec<String> = all.iter().take(MOST).map(one).collect();
    let more = if all.len() > MOST { format!(" and {} more", all.len() - MOST) } else { String::new() };
    Some(Need {
        about: About::Denied,
        what: format!("Denied, with no person to ask: {}{more}.", rules.join(", ")),
        how: vec![Advice::of(c.last_worker().map(|worker| worker.agent).as_deref()).allow.to_owned()],
    })
}

/// Items that count as done without proof, once the loop says that it is done.
fn unproven(acceptance: &[Acceptance], view: &View) -> Option<Need> {
    let claimed: Vec<&str> = acceptance.iter().filter(|one| one.standing == Standing::Claimed).map(|one| one.name.as_str()).collect();
    if claimed.is_empty() || view.status != Status::Complete {
        return None;
    }
    let shown = claimed.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    let more = claimed.len().saturating_sub(MOST);
    let (is, it) = if claimed.len() == 1 { ("is", "it") } else { ("are", "them") };
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(Need {
        about: About::Unproven,
        what: format!("{shown}{more} {is} claimed to be done, and nothing that ralph ran proves it."),
        how: vec![format!("look at {it} yourself, or give {it} a command (`verify`) next time")],
    })
}

/// Uncommitted work, once no agent works on it any more.
fn uncommitted(left: &Left, view: &View) -> Option<Need> {
    if matches!(view.status, Status::Active | Status::Parked | Status::Waiting) || (left.files == 0 && left.stashes == 0) {
        return None;
    }
    let more = left.files.saturating_sub(left.named.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = left.named.iter().map(|path| format!("`{}`", path.replace('`', ""))).collect::<Vec<_>>().join(", ");
    let files =
        (left.files > 0).then(|| format!("{} changed and not committed: {named}{more}", text::count(left.files, "file is", "files are")));
    let stashes =
        (left.stashes > 0).then(|| format!("{} made since the loop began", text::count(left.stashes, "stash was", "stashes were")));
    let shows = |command: &str, n: u64| format!("`{command}` shows {}", if n == 1 { "it" } else { "them" });
    let how = [files.as_ref().map(|_| shows("git status", left.files)), stashes.as_ref().map(|_| shows("git stash list", left.stashes))];
    Some(Need {
        about: About::Uncommitted,
        what: format!("{}.", [files, stashes].into_iter().flatten().collect::<Vec<_>>().join("; ")),
        how: how.into_iter().flatten().collect(),
    })
}

/// Problems with ralph's own files.
fn files(project: &Project, view: &View, c: &History) -> Vec<Need> {
    let mut all: Vec<Need> = Vec::new();
    let misfit = seal::misfit(project, &view.id).map(|misfit| format!(": {misfit}"));
    if misfit.is_some() || c.misfits > 0 {
        let misfit = misfit.unwrap_or_default();
        all.push(Need {
            about: About::Files,
            what: format!(
                "The journal was changed by something other than ralph{misfit}. What this report tells of the past may be wrong."
            ),
            how: vec!["`ralph log` shows where; decisions were made by ralph's own copy".to_owned()],
        });
    }
    if c.unreadable > 0 {
        let lines = text::count(c.unreadable, "line", "lines");
        all.push(Need {
            about: About::Files,
            what: format!("{lines} of the journal cannot be read: that is missing here."),
            how: Vec::new(),
        });
    }
    let warning = |text: &String| Need { about: About::Files, what: format!("The loop file: {text}"), how: Vec::new() };
    all.extend(view.warnings.iter().take(MOST).map(warning));
    all
}
