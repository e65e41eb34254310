//! The events of a run in words: the same for a terminal and for plain lines.

use ralph_core::{
    gate::Finding,
    judge::{
        Code, Ending, Next, Ruling,
        session_outcome::{Outcome, Work},
    },
    money,
    text::{clean, of_limit, opening, time::in_words},
};
use ralph_engine::run::events::{Heard, RunEvent};

use crate::{
    journal_lines::{in_thousands, of_work, when},
    term::width::DOT,
    ui,
};

/// The subject of a tool call may be a whole script.
const LONGEST_SUBJECT: usize = 400;

/// Words of other origin on one line.
pub(crate) fn subject(what: &str) -> String {
    opening(what, LONGEST_SUBJECT)
}

/// The same about a call; files of the project go by their names in it.
pub(crate) fn subject_in(what: &str, folder: &str) -> String {
    if folder.len() > 1 { subject(&what.replace(&format!("{folder}/"), "")) } else { subject(what) }
}

/// `Iteration 3 of 10`, and the rest: which item and model.
pub(crate) fn round(told: &RunEvent<'_>) -> (String, Vec<String>) {
    let RunEvent::Iteration { iteration, max_iterations, attempt, model, item, notes, .. } = told else { return Default::default() };
    let notes: Vec<String> = notes.iter().map(u64::to_string).collect();
    let parts = [
        (*attempt > 1).then(|| format!("try {attempt}")),
        item.map(|item| format!("item {}", clean(item))),
        model.map(clean),
        (!notes.is_empty()).then(|| format!("with note {}", notes.join(", "))),
    ];
    (format!("Iteration {}", of_limit(*iteration, *max_iterations)), parts.into_iter().flatten().collect())
}

/// How a session ended, where that is not the usual, and what it used. What follows comes next, and says itself.
pub(crate) fn over(outcome: &Outcome, work: &Work) -> String {
    let used = of_work(work);
    match outcome {
        Outcome::Stopped | Outcome::Interrupted => used,
        _ => format!("{} ({used})", clean(&outcome.words())),
    }
}

/// Until when nothing is done, and why, unless that was just said.
pub(crate) fn rests(until: &str, why: &str, said: &str) -> String {
    let why = why.strip_prefix(said).filter(|_| !said.is_empty()).unwrap_or(why).trim_start_matches([';', ' ']);
    let why = if why.is_empty() { String::new() } else { format!(": {}", clean(why)) };
    format!("waits until {}{why}", when(until))
}

/// What a loop has to prove, then its limits and what pauses it, each in a line of its own.
pub(crate) fn in_groups(limits: &[String]) -> Vec<String> {
    let (mut lines, mut most, mut pauses) = (Vec::new(), Vec::new(), Vec::new());
    for limit in limits {
        match (limit.strip_prefix("at most "), limit.strip_prefix("pauses after ")) {
            // Why it is only about as much is for the documentation.
            (Some(text), _) => most.push(text.split(", estimated").next().unwrap_or(text)),
            (_, Some(text)) => pauses.push(text.split(": ").next().unwrap_or(text)),
            _ if limit.starts_with("no limit") => most.push(limit),
            _ if limit.starts_with("no pause") => pauses.push(limit),
            _ => lines.push(limit.clone()),
        }
    }
    lines.extend((!most.is_empty()).then(|| format!("limits: {}", most.join(DOT))));
    lines.extend((!pauses.is_empty()).then(|| format!("pauses after: {}", pauses.join(DOT))));
    lines
}

/// The loop was paused from elsewhere, or the pause was taken back; `is_last`: the run ends after this iteration for another reason.
pub(crate) fn paused(paused: bool, is_last: bool) -> &'static str {
    match (paused, is_last) {
        (true, false) => "paused: this iteration is the last; `ralph resume` takes the pause back",
        (true, true) => "paused: this iteration is the last",
        (false, false) => "not paused any more: the run goes on",
        (false, true) => "not paused any more; the run ends after this iteration all the same",
    }
}

/// `iteration 3: ✗ tests · next is iteration 4`
pub(crate) fn ruled(iteration: u64, findings: &[Finding], ruling: &Ruling) -> String {
    let parts = [Some(gates(findings)).filter(|gates| !gates.is_empty()), of_claim(ruling.code), Some(of_next(ruling.next))];
    format!("iteration {iteration}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(DOT))
}

/// Then the person's line says what is open; otherwise the run's last words do.
pub(crate) fn goes_on(ruling: &Ruling) -> bool {
    matches!(ruling.next, Next::GoesOn { .. })
}

/// `✓ tests  ✗ features 3/10`
fn gates(findings: &[Finding]) -> String {
    let one = |finding: &Finding| {
        let tally = finding.tally.map(|tally| format!(" {}/{}", tally.done, tally.total)).unwrap_or_default();
        let mark = if finding.skipped { ui::dim("-") } else { ui::judged(finding.verdict, finding.verdict.mark()) };
        format!("{mark} {}{tally}", subject(&finding.gate))
    };
    findings.iter().map(one).collect::<Vec<_>>().join("  ")
}

pub(crate) fn of_claim(code: Code) -> Option<String> {
    let what = match code {
        Code::PromiseMissing => "not claimed yet",
        Code::PromiseRefused => "the claim does not count",
        Code::PromiseUnproven => "claimed and not proven",
        Code::NoteUndelivered => "claimed, but your note comes first",
        Code::AgentBlocked => "the agent says that it cannot go on",
        _ => return None,
    };
    Some(what.to_owned())
}

/// The next state of the loop. Where it does not go on, the summary says why.
fn of_next(next: Next) -> String {
    match next {
        Next::GoesOn { iteration } => format!("next is iteration {iteration}"),
        Next::Stays => "stays as it is".to_owned(),
        Next::Parks => "waits".to_owned(),
        Next::Pauses => "pauses".to_owned(),
        Next::Ends { ending: Ending::Capped } => "stops at a limit".to_owned(),
        Next::Ends { ending } => ending.as_str().to_owned(),
    }
}

/// Events of the agent that are worth a line, besides its words and tools.
pub(crate) fn heard(heard: &Heard) -> Option<String> {
    match heard {
        Heard::Session { model, permission_mode, client, .. } => {
            let parts = [
                model.as_deref().map(clean),
                permission_mode.as_deref().map(|mode| format!("permissions {}", clean(mode))),
                client.as_deref().map(|client| format!("client {}", clean(client))),
            ];
            Some(parts.into_iter().flatten().collect::<Vec<_>>().join(DOT)).filter(|line| !line.is_empty())
        }
        Heard::Retry { attempt, after_ms, status } => {
            let status = status.map(|status| format!(", status {status}")).unwrap_or_default();
            Some(format!("the service is retried in {} (try {attempt}{status})", in_words(*after_ms)))
        }
        Heard::Compacting => Some("the client compacts the conversation".to_owned()),
        _ => None,
    }
}

/// `denied: Bash  npm test; the rule Bash(npm test:*) would allow it`
pub(crate) fn denied(tool: &str, what: &str, rule: &str) -> String {
    format!("denied: {}{}", call(tool, what), would_allow(rule))
}

pub(crate) fn would_allow(rule: &str) -> String {
    if rule.is_empty() { String::new() } else { format!("; the rule {} would allow it", subject(rule)) }
}

/// `Bash  npm test`
pub(crate) fn call(tool: &str, what: &str) -> String {
    format!("{}  {}", clean(tool), subject(what)).trim_end().to_owned()
}

pub(crate) fn used_tokens(tokens: u64) -> Option<String> {
    (tokens > 0).then(|| format!("{} tokens", in_thousands(tokens)))
}

pub(crate) fn money(usd: f64) -> Option<String> {
    (usd > 0.0 && usd.is_finite()).then(|| money::shown(money::of_dollars(usd)).to_string())
}
