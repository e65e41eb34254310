//! Messages about gates: to the agent, what it has to fix; to the person, what is proven and what is not.

use std::fmt::Write as _;

use crate::{
    gate::{Finding, Kind, Verdict},
    judge::{Evidence, brakes::Repeated, claim::Claim},
    messages::tag,
    text::clean,
};

/// Of the first failing gate the agent gets everything; of each further one no more than this.
const FURTHER: usize = 400;

/// For the agent: what is not proven, the first failing gate first, with what is needed to fix it. `None`: there is nothing to fix.
pub(super) fn for_agent(e: &Evidence) -> Option<String> {
    let opening = match (&e.promise, &e.claim) {
        (Some(promise), Claim::Made) => format!("[ralph] {} was claimed but is not proven. ", tag(promise)),
        (None, _) => "[ralph] Not done yet. ".to_owned(),
        _ => "[ralph] ".to_owned(),
    };
    let found = to_tell(e);
    let parts: Vec<String> = (!found.is_empty()).then(|| told(&found)).into_iter().chain(again(e)).chain(weakened(e)).collect();
    (!parts.is_empty()).then(|| format!("{opening}{}", parts.join("\n\n")))
}

/// Findings that are worth a sentence: failures first, then what could not be measured. Without a claim, only failures.
fn to_tell(e: &Evidence) -> Vec<&Finding> {
    let of = |verdict| e.gates.iter().filter(move |f| f.verdict == verdict && !f.skipped && f.kind != Kind::Guard);
    let failing = of(Verdict::Fail);
    if e.claims() || e.forge_unreachable() { failing.chain(of(Verdict::Unknown)).collect() } else { failing.collect() }
}

/// Different advice each time the same failure comes again: the same words lead to the same attempts.
fn again(e: &Evidence) -> Option<String> {
    let gate = Repeated::failing(&e.gates)?;
    if gate.cached {
        let blocked = "end your message with <blocked>why</blocked> on a line of its own, and a person is asked";
        return Some(format!(
            "No file was changed since \"{}\" failed. If there is nothing that you can change, {blocked}.",
            clean(&gate.gate)
        ));
    }
    let advice = match e.same_failure {
        0 | 1 => return None,
        2 => "The last change did not help: read the output once more before the next one.",
        3 => "Do not try the same again. Reproduce it in the smallest form that still fails, and look for the cause somewhere else.",
        4 => "Undo what did not help, write down what you know for certain, and take another way.",
        _ => "If no other way is left, end your message with <blocked>why</blocked> on a line of its own, and a person is asked.",
    };
    let tried = if e.fresh { " `git log` shows what was tried." } else { "" };
    Some(format!("Gate \"{}\" has failed in this very way {} times in a row.{tried} {advice}", clean(&gate.gate), e.same_failure))
}

/// The guard's suspicions, and what to do about them.
fn weakened(e: &Evidence) -> Option<String> {
    let list: Vec<String> = e.suspicions.iter().map(|s| format!("- {}", clean(s))).collect();
    let way = if blocked_by_guard(e) {
        "Undo it. If it is right as it is, only the person can say so: `ralph gate --accept`."
    } else {
        "Unless the task asked for it, undo it: work counts, not a weaker check."
    };
    (!list.is_empty()).then(|| format!("Since the loop began, the proof itself has changed:\n{}\n{way}", list.join("\n")))
}

fn blocked_by_guard(e: &Evidence) -> bool {
    e.gates.iter().any(|f| f.kind == Kind::Guard)
}

/// All findings, the first one with everything that is needed to fix it.
pub(super) fn told(found: &[&Finding]) -> String {
    let mut text = String::new();
    for (n, finding) in found.iter().enumerate() {
        let _ = write!(text, "{}{}", if n == 0 { "" } else { "\n\n" }, sentence(finding));
        append_detail(&mut text, finding, if n == 0 { usize::MAX } else { FURTHER });
    }
    text
}

/// For an agent that goes on after a pause: what failed when it was last measured.
pub fn last_measured<'f>(findings: impl Iterator<Item = &'f Finding>) -> Option<String> {
    let failing: Vec<&Finding> = findings.filter(|f| f.verdict == Verdict::Fail).collect();
    (!failing.is_empty()).then(|| format!("[ralph] When it was last measured: {}", told(&failing)))
}

/// `Gate "tests" fails: exit code 101 after 3 s.`
fn sentence(f: &Finding) -> String {
    let verb = match f.verdict {
        Verdict::Pass => "holds",
        Verdict::Fail => "fails",
        Verdict::Wait => "waits",
        Verdict::Unknown => "could not be measured",
    };
    let elsewhere = if f.verdict == Verdict::Fail { " If the cause is elsewhere, run the command yourself with `ralph gate`." } else { "" };
    let known = f.not_run_again().map(|why| format!(" It was {why}.{elsewhere}")).unwrap_or_default();
    format!("Gate \"{}\" {verb}: {}.{known}", clean(&f.gate), clean(&f.what))
}

fn append_detail(text: &mut String, f: &Finding, max: usize) {
    if !f.detail.is_empty() {
        let cut: String = f.detail.chars().take(max).collect();
        let mark = if cut.len() < f.detail.len() { " …" } else { "" };
        let _ = write!(text, "\n{cut}{mark}");
    }
    if let Some(next) = &f.next {
        let _ = write!(text, "\nNext: {}", clean(next));
    }
    if let Some(log) = &f.log {
        let _ = write!(text, "\nThe whole output: {}", clean(log));
    }
}

/// `tests failed: exit code 1; lint unknown: …`, for the person's line.
pub fn in_short(e: &Evidence) -> String {
    short(&e.gates)
}

/// The same of any findings.
pub fn short(findings: &[Finding]) -> String {
    let one = |f: &&Finding| {
        let verb = match f.verdict {
            // Right after "lint" and after "tests".
            Verdict::Fail => " failed",
            Verdict::Unknown => " unknown",
            // What it waits for says it.
            Verdict::Pass | Verdict::Wait => "",
        };
        format!("{}{verb}: {}", clean(&f.gate), f.told())
    };
    let open: Vec<&Finding> = findings.iter().filter(|f| f.verdict != Verdict::Pass && !f.skipped).collect();
    let mut short: Vec<String> = open.iter().take(2).map(one).collect();
    if open.len() > 2 {
        short.push(format!("{} more", open.len() - 2));
    }
    short.join("; ")
}

/// For the line that a loop ends with at a limit.
pub(super) fn at_the_end(e: &Evidence) -> String {
    let short = in_short(e);
    if short.is_empty() { String::new() } else { format!(", not proven ({short})") }
}

/// `the gate tests holds`, `all 3 gates hold (tests, lint, list)`; `None` without gates.
pub(super) fn proven(e: &Evidence) -> Option<String> {
    let name = |f: &Finding| {
        let mark = if f.flaky { ", which passed when it was tried again" } else { "" };
        format!("{}{mark}", clean(&f.gate))
    };
    let list = match &e.gates[..] {
        [] => return None,
        [one] if one.kind == Kind::Command => format!("its gate holds ({}: {})", clean(&one.gate), one.told()),
        [one] => format!("{} ({})", clean(&one.what), name(one)),
        all => {
            let names = all.iter().map(name).collect::<Vec<_>>().join(", ");
            let request = all.iter().rev().find(|f| f.kind == Kind::PullRequest).map(|f| format!("; {}", clean(&f.what)));
            format!("all {} gates hold ({names}){}", all.len(), request.unwrap_or_default())
        }
    };
    let doubt = match e.suspicions.len() {
        0 => String::new(),
        _ => format!(
            ". But look at what changed since the loop began: {}",
            e.suspicions.iter().map(|s| clean(s)).collect::<Vec<_>>().join("; ")
        ),
    };
    Some(format!("{list}{doubt}"))
}

/// The action that only a person can take.
pub(super) fn needs(e: &Evidence) -> String {
    needing(e).unwrap_or_default()
}

/// The first finding that needs a person, together with those that need the same for the same reason.
fn needing(e: &Evidence) -> Option<String> {
    let first = e.gates.iter().find(|f| f.needs.is_some())?;
    let alike = e.gates.iter().filter(|f| f.needs == first.needs && f.what == first.what && f.kind == first.kind);
    let names: Vec<String> = alike.map(|f| clean(&f.gate)).collect();
    if names.len() == 1 {
        return Some(needed(first));
    }
    let what = first.what.replacen("its command was", "their commands were", 1);
    Some(needed(&Finding { gate: names.join(", "), what, ..first.clone() }))
}

/// A finding with what it takes. What declares gates names itself.
fn needed(f: &Finding) -> String {
    let gate = if f.kind == Kind::Config { String::new() } else { format!("{}: ", clean(&f.gate)) };
    let needs = f.needs.as_deref().map(|needs| format!(": {}", clean(needs))).unwrap_or_default();
    format!("{gate}{}{needs}", f.told())
}

/// For the person's line while the loop goes on; `None` where there is nothing to say.
pub fn for_person(e: &Evidence) -> Option<String> {
    let claimed = e.claim == Claim::Made;
    let failing = e.gates.iter().find(|f| f.verdict == Verdict::Fail && f.kind != Kind::Guard);
    let is_needing = |f: &Finding| f.needs.is_some();
    let doubtful = e.gates.iter().find(|f| f.verdict == Verdict::Unknown && claimed && !f.skipped);
    let told = match (failing, needing(e)) {
        (Some(failing), Some(needing)) if !is_needing(failing) => vec![needed(failing), needing],
        (_, Some(needing)) => vec![needing],
        (failing, None) => failing.or(doubtful).map(needed).into_iter().collect(),
    };
    let doubts = match e.suspicions.len() {
        0 => None,
        1 => Some(format!("the proof itself has changed ({})", clean(&e.suspicions[0]))),
        n => Some(format!("the proof itself has changed in {n} places (`ralph explain`)")),
    };
    let accept = blocked_by_guard(e).then(|| "if that is right, `ralph gate --accept` says so".to_owned());
    let told: Vec<String> = told.into_iter().chain(doubts).chain(accept).collect();
    let opening = if claimed { "Claimed but not proven: " } else { "" };
    (!told.is_empty()).then(|| format!("{opening}{}.", told.join("; ")))
}
