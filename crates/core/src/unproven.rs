//! What is told about gates: to the agent, what it has to mend; to the person, what is proven and what is not.

use std::fmt::Write as _;

use crate::{
    gate::{Finding, Kind, Verdict},
    judge::Evidence,
    promise::Claim,
    words::{clean, tag},
};

/// Of the first failing gate the agent gets everything; of each further one no more than this.
const FURTHER: usize = 400;

/// For the agent: what is not proven, the first failing gate first, with what is needed to mend it. `None`: there is nothing to mend.
pub fn for_agent(e: &Evidence) -> Option<String> {
    let found = to_tell(e);
    let mut parts = Vec::new();
    if !found.is_empty() {
        let opening = match (&e.promise, &e.claim) {
            (Some(promise), Claim::Made) => format!("[ralph] {} was claimed but is not proven. ", tag(promise)),
            (None, _) => "[ralph] Not done yet. ".to_owned(),
            _ => "[ralph] ".to_owned(),
        };
        parts.push(format!("{opening}{}", told(&found)));
    }
    if !e.suspicions.is_empty() {
        let list: Vec<String> = e.suspicions.iter().map(|s| format!("- {}", clean(s))).collect();
        let list = list.join("\n");
        parts.push(format!(
            "[ralph] Since the loop began, the proof itself has changed:\n{list}\nUnless the task asked for it, undo it: work counts, not a weaker check."
        ));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// What is worth telling: failures first, then what could not be measured. Without a claim, only what was measured and fails.
fn to_tell(e: &Evidence) -> Vec<&Finding> {
    let of = |verdict| e.gates.iter().filter(move |f| f.verdict == verdict && !f.skipped);
    let failing = of(Verdict::Fail);
    if e.claims() { failing.chain(of(Verdict::Unknown)).collect() } else { failing.collect() }
}

/// All that was found, the first one with everything that is needed to mend it.
pub fn told(found: &[&Finding]) -> String {
    let mut text = String::new();
    for (n, finding) in found.iter().enumerate() {
        let _ = write!(text, "{}{}", if n == 0 { "" } else { "\n\n" }, sentence(finding));
        append_detail(&mut text, finding, if n == 0 { usize::MAX } else { FURTHER });
    }
    text
}

/// `Gate "tests" fails: exit code 101 after 3 s.`
fn sentence(f: &Finding) -> String {
    let verb = match f.verdict {
        Verdict::Pass => "holds",
        Verdict::Fail => "fails",
        Verdict::Wait => "waits",
        Verdict::Unknown => "could not be measured",
    };
    format!("Gate \"{}\" {verb}: {}.", clean(&f.gate), clean(&f.what))
}

fn append_detail(text: &mut String, f: &Finding, max: usize) {
    if !f.detail.is_empty() {
        let cut: String = f.detail.chars().take(max).collect();
        let mark = if cut.len() < f.detail.len() { " …" } else { "" };
        let _ = write!(text, "\n{cut}{mark}");
    }
    if let Some(log) = &f.log {
        let _ = write!(text, "\nThe whole output: {}", clean(log));
    }
}

/// `tests fails (exit code 1), list could not be measured (…)`, for the person's line.
pub fn in_short(e: &Evidence) -> String {
    short(&e.gates)
}

/// The same of any findings.
pub fn short(findings: &[Finding]) -> String {
    let one = |f: &&Finding| {
        let verb = if f.verdict == Verdict::Fail { "fails" } else { f.verdict.as_str() };
        format!("{} {verb}: {}", clean(&f.gate), clean(&f.what))
    };
    let open: Vec<&Finding> = findings.iter().filter(|f| f.verdict != Verdict::Pass && !f.skipped).collect();
    let mut short: Vec<String> = open.iter().take(2).map(one).collect();
    if open.len() > 2 {
        short.push(format!("{} more", open.len() - 2));
    }
    short.join("; ")
}

/// For the line that a loop ends with at a limit.
pub fn at_the_end(e: &Evidence) -> String {
    let short = in_short(e);
    if short.is_empty() { String::new() } else { format!(", not proven ({short})") }
}

/// `the gate tests holds`, `all 3 gates hold (tests, lint, list)`; `None` without gates.
pub fn proven(e: &Evidence) -> Option<String> {
    let name = |f: &Finding| {
        let mark = if f.flaky {
            ", which passed when it was tried again"
        } else if f.cached {
            ", unchanged since it passed"
        } else {
            ""
        };
        format!("{}{mark}", clean(&f.gate))
    };
    let list = match &e.gates[..] {
        [] => return None,
        [one] if one.kind == Kind::Command => format!("its gate holds ({}: {})", name(one), clean(&one.what)),
        [one] => format!("{} ({})", clean(&one.what), name(one)),
        all => format!("all {} gates hold ({})", all.len(), all.iter().map(name).collect::<Vec<_>>().join(", ")),
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

/// What only a person can do, and how.
pub fn needs(e: &Evidence) -> String {
    let needed = e.gates.iter().find_map(|f| f.needs.as_ref().map(|needs| (f, needs)));
    needed.map_or_else(String::new, |(f, needs)| format!("{}: {}: {}", clean(&f.gate), clean(&f.what), clean(needs)))
}

/// For the person's line while the loop goes on; `None` where there is nothing to say.
pub fn for_person(e: &Evidence) -> Option<String> {
    let claimed = e.claim == Claim::Made;
    let failing = e.gates.iter().find(|f| f.verdict == Verdict::Fail);
    let doubtful = e.gates.iter().find(|f| f.verdict == Verdict::Unknown && (f.needs.is_some() || (claimed && !f.skipped)));
    let first = failing.or(doubtful).map(|f| {
        let needs = f.needs.as_deref().map(|n| format!(": {}", clean(n))).unwrap_or_default();
        format!("{}: {}{needs}", clean(&f.gate), clean(&f.what))
    });
    let doubts = match e.suspicions.len() {
        0 => None,
        1 => Some(format!("the proof has changed ({})", clean(&e.suspicions[0]))),
        n => Some(format!("the proof has changed in {n} places (`ralph explain`)")),
    };
    let opening = if claimed { "Claimed but not proven: " } else { "" };
    match (first, doubts) {
        (None, None) => None,
        (Some(first), None) => Some(format!("{opening}{first}.")),
        (None, Some(doubts)) => Some(format!("{doubts}.")),
        (Some(first), Some(doubts)) => Some(format!("{opening}{first}; {doubts}.")),
    }
}
