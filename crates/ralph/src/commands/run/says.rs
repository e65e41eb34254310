//! What happens in a run, in words: the same for a terminal and for plain lines.

use ralph_core::{
    attempt::{Outcome, Then, Work},
    gate::{Finding, Verdict},
    judge::{Next, Ruling},
    prices,
    time::in_words,
    words::{clean, of_limit, opening},
};
use ralph_engine::runner::told::{End, Heard, Told};

use crate::{
    text::{in_thousands, of_outcome, of_then, of_work, short},
    ui,
};

/// Between parts of a line.
pub(super) const DOT: &str = " · ";

/// What a tool call is about may be a whole script.
const LONGEST_SUBJECT: usize = 400;

/// Words of other origin on one line.
pub(super) fn subject(what: &str) -> String {
    opening(what, LONGEST_SUBJECT)
}

/// `Round 3 of 10`, and the rest: which item, model and session.
pub(super) fn round(told: &Told<'_>) -> (String, String) {
    let Told::Round { iteration, max_iterations, attempt, session, model, item, notes, .. } = told else { return Default::default() };
    let notes: Vec<String> = notes.iter().map(u64::to_string).collect();
    let parts = [
        (*attempt > 1).then(|| format!("try {attempt}")),
        item.map(|item| format!("item {}", clean(item))),
        model.map(clean),
        Some(format!("session {}", clean(short(Some(session))))),
        (!notes.is_empty()).then(|| format!("with note {}", notes.join(", "))),
    ];
    (format!("Round {}", of_limit(*iteration, *max_iterations)), parts.into_iter().flatten().collect::<Vec<_>>().join(DOT))
}

/// How a session ended, and what it used. What follows is said only where it is not the usual.
pub(super) fn over(outcome: &Outcome, work: &Work, then: Then) -> String {
    let used = of_work(work);
    match (outcome, then) {
        (Outcome::Stopped, Then::Judge) => used,
        (_, Then::Judge) => format!("{} ({used})", clean(&of_outcome(outcome))),
        _ => format!("{}; {} ({used})", clean(&of_outcome(outcome)), of_then(then)),
    }
}

/// `round 3: ✗ tests · goes on with round 4 (gate.failed)`
pub(super) fn ruled(iteration: u64, findings: &[Finding], ruling: &Ruling) -> String {
    let gates = gates(findings);
    let gates = if gates.is_empty() { gates } else { format!("{gates}{DOT}") };
    format!("round {iteration}: {gates}{}", of_ruling(ruling))
}

/// `✓ tests  ✗ features 3/10`
fn gates(findings: &[Finding]) -> String {
    let one = |finding: &Finding| {
        let tally = finding.tally.map(|tally| format!(" {}/{}", tally.done, tally.total)).unwrap_or_default();
        let mark = match finding.verdict {
            _ if finding.skipped => ui::dim("-"),
            Verdict::Pass => ui::good("✓"),
            Verdict::Fail => ui::bad("✗"),
            Verdict::Wait => ui::warn("…"),
            Verdict::Unknown => ui::warn("?"),
        };
        format!("{mark} {}{tally}", subject(&finding.gate))
    };
    findings.iter().map(one).collect::<Vec<_>>().join("  ")
}

/// What becomes of the loop, and why.
fn of_ruling(ruling: &Ruling) -> String {
    let what = match ruling.next {
        Next::GoesOn { iteration } => format!("goes on with round {iteration}"),
        Next::Stays => "stays as it is".to_owned(),
        Next::Parks => "waits".to_owned(),
        Next::Pauses => "pauses".to_owned(),
        Next::Ends { ending } => format!("ends: {}", ending.as_str()),
    };
    format!("{what} ({})", ruling.code.as_str())
}

/// What is worth a line of its own among what is heard of the agent, besides its words and tools.
pub(super) fn heard(heard: &Heard) -> Option<String> {
    match heard {
        Heard::Session { model, permission_mode, client, .. } => {
            let parts = [
                model.as_deref().map(clean),
                permission_mode.as_deref().map(|mode| format!("permissions {}", clean(mode))),
                client.as_deref().map(|client| format!("client {}", clean(client))),
            ];
            Some(parts.into_iter().flatten().collect::<Vec<_>>().join(DOT)).filter(|line| !line.is_empty())
        }
        Heard::Denied { tool, what, rule } => {
            let rule = if rule.is_empty() { String::new() } else { format!("; allowed by the rule {}", subject(rule)) };
            Some(format!("denied: {}{rule}", call(tool, what)))
        }
        Heard::Retry { attempt, after_ms, status } => {
            let status = status.map(|status| format!(", status {status}")).unwrap_or_default();
            Some(format!("the service is asked again in {} (try {attempt}{status})", in_words(*after_ms)))
        }
        Heard::Quota { rejected: true, quota, .. } => {
            let quota = quota.as_deref().map(|quota| format!(" ({})", clean(quota))).unwrap_or_default();
            Some(format!("the account's limit{quota} is used up"))
        }
        Heard::Compacting => Some("the client makes the conversation shorter".to_owned()),
        _ => None,
    }
}

/// `Bash  npm test`
pub(super) fn call(tool: &str, what: &str) -> String {
    format!("{}  {}", clean(tool), subject(what)).trim_end().to_owned()
}

/// `12 rounds · 48k tokens · $1.20`
pub(super) fn spent(rounds: u64, tokens: u64, usd: f64) -> String {
    let rounds = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
    [Some(rounds), used_tokens(tokens), money(usd)].into_iter().flatten().collect::<Vec<_>>().join(DOT)
}

pub(super) fn used_tokens(tokens: u64) -> Option<String> {
    (tokens > 0).then(|| format!("{} tokens", in_thousands(tokens)))
}

pub(super) fn money(usd: f64) -> Option<String> {
    (usd > 0.0 && usd.is_finite()).then(|| prices::shown(prices::of_dollars(usd)).to_string())
}

/// How the run ended, in a word.
pub(super) fn ending(how: End) -> String {
    match how {
        End::Complete => ui::good("✓ complete"),
        End::Capped => ui::warn("stopped at a limit"),
        End::Stalled => ui::warn("stopped: no progress"),
        End::Blocked => ui::warn("stopped: it needs you"),
        End::Enough => ui::good("done for now"),
        End::Paused => ui::warn("paused"),
        End::Cancelled => ui::warn("cancelled"),
        End::Parked => ui::warn("parked"),
        End::Interrupted => ui::warn("interrupted"),
        End::Failed => ui::bad("failed"),
    }
}

/// Rules that would have allowed what nobody could be asked for.
pub(super) fn denied(rules: &[String]) -> Option<String> {
    let rules: Vec<String> = rules.iter().map(|rule| subject(rule)).collect();
    (!rules.is_empty()).then(|| format!("denied, because nobody could be asked; `permissions.allow` would take: {}", rules.join(", ")))
}

/// What a person would type next. The usual loop needs no name.
pub(super) fn next(how: End, of_loop: &str) -> String {
    let which = if of_loop.starts_with("main-") { String::new() } else { format!(" --name {}", clean(of_loop)) };
    let again = format!("ralph run --continue{which}");
    match how {
        End::Complete => "`ralph log` shows how it went.".to_owned(),
        End::Capped => format!("Give it more: `{again} --max-iterations N` (or --hours, --usd, --tokens)."),
        End::Stalled => {
            format!("`ralph explain` says why, `ralph steer \"…\"` tells the agent what to do about it, `{again}` goes on.")
        }
        End::Blocked => format!("See to that; then `{again}` goes on."),
        End::Enough | End::Paused | End::Interrupted => format!("`{again}` goes on."),
        End::Parked => format!("`{again}` goes on, later."),
        End::Cancelled => "`ralph list` shows what can be brought back.".to_owned(),
        End::Failed => format!("`ralph doctor` looks for what is wrong; `{again}` goes on."),
    }
}
