//! Words and tables that every form of the report shares.

use ralph_core::{
    history::{AgentWork, Mark},
    money::{self, Micros},
    report::{Acceptance, Changed, Evidence, IterationRow, Report},
    text::{clean, time::measured},
};

use crate::{
    agent_names,
    journal_lines::{in_thousands, short},
};

/// Where nothing is known.
pub(super) const DASH: &str = "–";

/// `+12 −3`, or a dash where it is not known.
pub(super) fn lines(changed: Changed) -> String {
    let shown = |(added, removed)| format!("+{} −{}", in_thousands(added), in_thousands(removed));
    changed.lines().map_or_else(|| DASH.to_owned(), shown)
}

/// `$0.42`, `about $0.42`, or a dash where it is not known.
pub(super) fn money(spent: Micros, estimated: bool) -> String {
    match spent {
        0 => DASH.to_owned(),
        _ if estimated => format!("about {}", money::shown(spent)),
        _ => money::shown(spent).to_string(),
    }
}

/// A sentence in pieces; `true`: a piece that stood between back quotes, to be typed. A back quote without a partner is a character like any other.
pub(super) fn pieces(sentence: &str) -> Vec<(bool, &str)> {
    let mut all = Vec::new();
    let mut rest = sentence;
    while let Some((before, (code, after))) = rest.split_once('`').and_then(|(before, after)| Some((before, after.split_once('`')?))) {
        all.extend([(false, before), (true, code)]);
        rest = after;
    }
    all.push((false, rest));
    all
}

/// Where the files are that were measured, with what can be typed between back quotes.
pub(super) fn files(e: &Evidence) -> Option<String> {
    let quoted = |text: &str| format!("`{}`", text.replace('`', ""));
    let commit = e.commit.as_deref().map(|commit| quoted(short(Some(commit))));
    match (commit, e.uncommitted, e.kept_as.as_deref()) {
        (Some(commit), Some(false), _) => Some(format!("commit {commit}")),
        (Some(commit), _, Some(kept)) => Some(format!("files kept as {}, on top of commit {commit}", quoted(kept))),
        (Some(commit), _, None) => Some(format!("on top of commit {commit}")),
        (None, _, Some(kept)) => Some(format!("files kept as {}", quoted(kept))),
        (None, _, None) => None,
    }
}

/// The finding, without the command that stands beside it as evidence.
pub(super) fn found(one: &Acceptance) -> &str {
    let command = one.evidence.as_ref().and_then(|e| e.command.as_deref());
    command.and_then(|command| one.what.strip_prefix(&format!("`{command}`: "))).unwrap_or(&one.what)
}

/// How long it took, unless the finding says so.
pub(super) fn took(one: &Acceptance) -> Option<u64> {
    one.evidence.as_ref()?.took_ms.filter(|ms| !one.what.contains(&measured(*ms)))
}

/// How often a gate's command was run, and how often not, because the files were the same.
pub(super) fn measurements(marks: &[Mark]) -> (usize, usize) {
    let cached = marks.iter().filter(|mark| mark.cached).count();
    (marks.len() - cached, cached)
}

/// The heading over the commands.
pub(super) fn ways(r: &Report) -> &'static str {
    if r.ways.iter().any(|way| way.what == GO_ON) { "Look again, undo, go on" } else { "Look again, undo" }
}

/// What the command does that goes on.
pub(super) const GO_ON: &str = "Go on";

/// The heads of the table of agents, and its rows: agent, model, iterations, tokens, cost. Empty where one agent did all of it with one model.
pub(super) const AGENT_HEADS: [&str; 5] = ["Agent", "Model", "Iterations", "Tokens", "Cost"];

pub(super) fn agents(r: &Report) -> Vec<[String; 5]> {
    let row = |one: &AgentWork| {
        let tokens = one.used.tokens.map_or_else(|| "not known".to_owned(), |tokens| in_thousands(tokens.total()));
        let known = one.used.usd_micros.filter(|usd| *usd > 0).map(|usd| money(usd, one.used.estimated));
        let unpriced =
            (one.used.unpriced_tokens > 0).then(|| format!("{} tokens without a known price", in_thousands(one.used.unpriced_tokens)));
        let cost = match (known, unpriced) {
            (Some(known), Some(unpriced)) => format!("{known} and {unpriced}"),
            (Some(known), None) => known,
            (None, _) => "not known".to_owned(),
        };
        [
            agent_names::title(&one.worker.agent),
            one.worker.model.as_deref().map_or_else(|| DASH.to_owned(), clean),
            one.iterations.to_string(),
            tokens,
            cost,
        ]
    };
    if r.agents.len() < 2 { Vec::new() } else { r.agents.iter().map(row).collect() }
}

/// A column of the table of iterations.
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) is_number: bool,
    /// Text of any origin, from an iteration and the one before it; `None`: not known.
    pub(super) cell: fn(&IterationRow, Option<&IterationRow>) -> Option<String>,
}

/// Between the iteration's number and its ruling; the first only where there are several agents.
const COLUMNS: [Column; 9] = [
    Column { head: "Agent", is_number: false, cell: |row, _| Some(agent_names::of_iteration(&row.round)) },
    Column { head: "Item", is_number: false, cell: |row, _| row.round.item.clone() },
    Column { head: "Time", is_number: true, cell: |row, _| Some(measured(row.round.took_ms())) },
    Column { head: "Tools", is_number: true, cell: |row, _| row.round.used.tool_calls.map(|calls| calls.to_string()) },
    Column { head: "Tokens", is_number: true, cell: |row, _| row.round.used.tokens.map(|tokens| in_thousands(tokens.total())) },
    Column { head: "Cost", is_number: true, cell: |row, _| row.round.used.usd_micros.map(|usd| money(usd, false)) },
    Column { head: "Commits", is_number: true, cell: |row, _| row.changed.map(|changed| changed.commits.to_string()) },
    Column { head: "Lines", is_number: true, cell: |row, _| row.changed.map(lines) },
    Column { head: "Gates held", is_number: true, cell: held },
];

/// The columns of this report: who did it is a question only where there was more than one agent.
pub(super) fn columns(r: &Report) -> &'static [Column] {
    let has_many = r.agents.iter().any(|one| one.worker.agent != r.agents[0].worker.agent);
    &COLUMNS[usize::from(!has_many)..]
}

/// `2 → 3 of 4`
fn held(row: &IterationRow, before: Option<&IterationRow>) -> Option<String> {
    let now = format!("{} of {}", row.gates_held, row.gates_known);
    let before = before.filter(|before| before.gates_known > 0 && before.gates_held != row.gates_held);
    let shown = before.map_or_else(|| now.clone(), |before| format!("{} → {now}", before.gates_held));
    (row.gates_known > 0 || before.is_some()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eyes_2_only_a_pair_of_back_quotes_holds_code() {
        assert_eq!(pieces("type `ralph` now"), [(false, "type "), (true, "ralph"), (false, " now")]);
        assert_eq!(pieces("a `b` ` c"), [(false, "a "), (true, "b"), (false, " ` c")]);
        assert_eq!(pieces("a ` b"), [(false, "a ` b")]);
    }
}
