//! `ralph explain`: why a stop was blocked or allowed, and what would have changed the decision.

use std::path::{Path, PathBuf};

use ralph_core::{
    gate::Verdict,
    history::{FIRST_AGENT, History},
    journal::{Event, Record},
    judge::{Claim, Code, Evidence, Message, Ruling, ToolUse, judge},
    messages::{spent_of, tag},
    money::{self, Micros},
    text::{clean, count, iterations, time::in_words},
};
use ralph_engine::store::project::Project;
use serde_json::{Value, json};

use crate::{
    agent_names,
    exit::{Done, Failure},
    find_loop,
    journal_lines::{follows, of_ruling, of_work, when},
    ui,
};

/// Explain why a stop was blocked or allowed, and what would have changed that
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph explain            the last stop
  ralph explain 3          the third stop of the loop
  ralph explain 3 docs     that of the loop \"docs\"
  ralph explain --replay .ralph/journal/main-20261115-093000.jsonl")]
pub(crate) struct Args {
    /// Which stop, from 1 (otherwise the last), or which loop
    #[arg(value_name = "N|LOOP")]
    what: Option<String>,
    /// Which loop, by name or id; otherwise the latest
    #[arg(value_name = "LOOP")]
    of_loop: Option<String>,
    /// The same, as an option
    #[arg(long = "loop", value_name = "LOOP", alias = "name", hide = true, conflicts_with = "of_loop")]
    which: Option<String>,
    /// Judge every stop of a journal again and compare
    #[arg(long, value_name = "FILE", conflicts_with_all = ["what", "of_loop", "which"])]
    replay: Option<PathBuf>,
    /// For programs: JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    if let Some(path) = &args.replay {
        return replay(path, args.json);
    }
    let number = args.what.as_deref().and_then(|w| w.parse::<u64>().ok());
    let named = args.what.as_deref().filter(|_| number.is_none());
    let view = find_loop::view(project, args.which.as_deref().or(args.of_loop.as_deref()).or(named))?;
    let (records, _) = find_loop::read(&view.journal).unwrap_or_default();
    let stops: Vec<&Record> = records.iter().filter(|r| matches!(r.event, Event::Stop { .. })).collect();
    let wanted = match number {
        None => stops.last(),
        Some(n) => stops.iter().find(|r| r.state.stops == n),
    };
    let record = wanted.ok_or_else(|| match (number, stops.len()) {
        (_, 0) => Failure::new(format!("loop {} has had no stop yet; `ralph log` shows what happened to it", view.id)),
        (Some(n), count) => Failure::new(format!("loop {} has no stop {n}; it has had {count}", view.id)),
        (None, _) => Failure::no_loop(),
    })?;
    if args.json {
        show_json(record);
    } else {
        show(record, by_then(&records, record));
    }
    Ok(())
}

/// What the loop's sessions cost up to this stop, as far as a run counted it, and who stopped, if several agents have worked on it.
fn by_then(records: &[Record], stop: &Record) -> (Micros, Option<String>) {
    let mut history = History::default();
    let until = records.iter().position(|record| std::ptr::eq(record, stop)).map_or(0, |at| at + 1);
    records[..until].iter().for_each(|record| history.take(record.clone()));
    let spent = history.used().usd_micros.unwrap_or(0);
    let last = history.rounds.last().map(agent_names::of_iteration);
    records[until..].iter().for_each(|record| history.take(record.clone()));
    (spent, last.filter(|_| history.has_many_agents()))
}

fn show(record: &Record, (spent, who): (Micros, Option<String>)) {
    let Event::Stop { evidence: e, ruling, said, client, work } = &record.event else { return };
    let stop = ui::bold(format!("Stop {}", record.state.stops));
    ui::paragraph(format!("{stop} of loop {}, {}", clean(&record.loop_id), when(&record.at)), 2);
    ui::paragraph(format!("  {}", of_ruling(e, ruling)), 4);
    ui::line(ui::bold("Evidence"));
    for (label, value) in evidence(e, spent) {
        ui::field(label, value);
    }
    if !said.is_empty() {
        ui::excerpt("said", format!("\"{said}\""));
    }
    if let Some(who) = who {
        ui::field("agent", who);
    }
    if let Some(work) = work {
        ui::field("session", of_work(work));
    }
    if let Some(client) = client {
        ui::field("client", format!("{} {client}", agent_names::title(record.state.host.as_deref().unwrap_or(FIRST_AGENT))));
    }
    ui::line(ui::bold("What would have changed the decision"));
    for (change, evidence, other) in alternatives(e, ruling) {
        let then = if gates_decide(&evidence, &other) {
            "its gates would be measured, and decide".to_owned()
        } else {
            format!("{} ({})", follows(&evidence, &other), other.code.as_str())
        };
        ui::paragraph(format!("  {change} {} {then}", ui::dim("→")), 4);
    }
}

fn evidence(e: &Evidence, in_all: Micros) -> Vec<(&'static str, String)> {
    let claim = match (&e.claim, &e.promise) {
        (_, None) => "no promise is configured".to_owned(),
        (Claim::None, Some(p)) => format!("none; {} was not said", tag(p)),
        (Claim::Made, Some(p)) if e.notes_waiting > 0 => format!("{} was claimed, and did not count: a note comes first", tag(p)),
        (Claim::Made, Some(p)) => format!("{} was claimed", tag(p)),
        (Claim::Refused { why }, Some(_)) => format!("refused: {}", why.words()),
    };
    let message = match &e.message {
        _ if e.before_the_first => "none: no session was started".to_owned(),
        Message::Event => "the client sent it".to_owned(),
        Message::Transcript => "read from the transcript".to_owned(),
        Message::NoText => "the turn ended without text".to_owned(),
        Message::Unreadable { transcript } => format!("not sent, and {transcript} is not there"),
    };
    let limit = |n: u64, text: String| if n == 0 { "no limit".to_owned() } else { text };
    let iteration = format!("{} ({})", e.iteration, limit(e.max_iterations, format!("of {}", e.max_iterations)));
    let mut out = vec![
        ("iteration", if e.before_the_first { "none: no session was started".to_owned() } else { iteration }),
        ("claim", claim),
        ("message", message),
        ("time", format!("{} ({})", in_words(e.spent_ms), limit(e.max_ms, format!("of {}", in_words(e.max_ms))))),
        (
            "tools",
            match e.tools {
                _ if e.before_the_first => "none: no session was started".to_owned(),
                ToolUse::Used => "at least one call in this iteration".to_owned(),
                ToolUse::None => {
                    format!(
                        "none in this iteration; {} in a row of {}",
                        count(e.idle_rounds, "idle iteration", "idle iterations"),
                        e.idle_limit
                    )
                }
                ToolUse::Unknown => "unknown: there is no transcript of this iteration".to_owned(),
            },
        ),
    ];
    if e.max_usd_micros > 0 {
        out.push(("money", money_of(e, in_all)));
    }
    if e.stalled_rounds > 0 && !e.before_the_first {
        // A run has one more, for a last try.
        let limit = if e.fresh { format!("{} and one more try", e.stall_limit.saturating_sub(1)) } else { e.stall_limit.to_string() };
        out.push(("standstill", format!("{} in a row changed nothing; it pauses after {limit}", iterations(e.stalled_rounds))));
    }
    out.extend(e.blocked.as_ref().map(|why| {
        ("blocked", format!("the agent says that it cannot go on, {} in a row: {why}", count(e.blocked_rounds, "time", "times")))
    }));
    if e.notes_waiting > 0 {
        out.push(("notes", format!("{} not delivered yet", e.notes_waiting)));
    }
    out.extend(proof(e));
    if e.waited_ms > 0 {
        out.push(("waited", format!("{} for what is decided elsewhere", in_words(e.waited_ms))));
    }
    if !e.active {
        out.push(("paused", "the loop was paused".to_owned()));
    }
    if e.interrupted {
        out.push(("interrupt", "the person interrupted the agent".to_owned()));
    }
    if e.queued_input {
        out.push(("queue", "input waited in the client's queue".to_owned()));
    }
    if !e.background.is_empty() {
        out.push(("background", e.background.join(", ")));
    }
    out
}

/// The money that counts towards the limit. `--usd` for a loop that goes on begins the count again, and then the whole is told, too.
fn money_of(e: &Evidence, in_all: Micros) -> String {
    let counted = spent_of(e.spent_usd_micros, e.max_usd_micros);
    if in_all <= e.spent_usd_micros {
        return counted;
    }
    format!("{counted} since the limit was set; the loop in all: about {}", money::shown(in_all))
}

/// Findings of the gates and the guard.
fn proof(e: &Evidence) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    for f in &e.gates {
        if f.skipped {
            out.push(("gate", format!("{}: {}", f.gate, f.what)));
            continue;
        }
        out.push(("gate", format!("{}: {}: {}", f.gate, f.verdict.as_str(), f.told())));
        out.extend(f.log.as_ref().map(|log| ("log", log.clone())));
        out.extend(f.needs.as_ref().map(|needs| ("needs", needs.clone())));
    }
    out.extend(e.suspicions.iter().map(|suspicion| ("guard", suspicion.clone())));
    out
}

/// One change at a time, judged again: the changes that make a difference, the evidence with them, and the ruling they lead to.
fn alternatives(e: &Evidence, ruling: &Ruling) -> Vec<(String, Evidence, Ruling)> {
    let mut changes: Vec<(String, Evidence)> = Vec::new();
    let mut change = |what: String, edit: &dyn Fn(&mut Evidence)| {
        let mut other = e.clone();
        edit(&mut other);
        changes.push((what, other));
    };
    if let Some(promise) = &e.promise {
        change(format!("{} on a line of its own", tag(promise)), &|o| o.claim = Claim::Made);
        change("no claim".to_owned(), &|o| o.claim = Claim::None);
    }
    for (at, f) in e.gates.iter().enumerate().filter(|(_, f)| !f.skipped) {
        change(format!("the gate \"{}\" passing", f.gate), &|o| o.gates[at].verdict = Verdict::Pass);
        change(format!("the gate \"{}\" failing", f.gate), &|o| o.gates[at].verdict = Verdict::Fail);
    }
    if e.gates.iter().filter(|f| f.verdict != Verdict::Pass).count() > 1 {
        change("all gates passing".to_owned(), &|o| o.gates.iter_mut().for_each(|f| f.verdict = Verdict::Pass));
    }
    change("the loop active".to_owned(), &|o| o.active = true);
    change("the loop paused".to_owned(), &|o| o.active = false);
    change("no note waiting".to_owned(), &|o| o.notes_waiting = 0);
    change("not blocked".to_owned(), &|o| (o.blocked, o.blocked_rounds) = (None, 0));
    change("nothing in the background".to_owned(), &|o| o.background.clear());
    change("nothing in the queue".to_owned(), &|o| o.queued_input = false);
    change("no interrupt".to_owned(), &|o| o.interrupted = false);
    change("a tool call in this iteration".to_owned(), &|o| o.idle_rounds = 0);
    change(format!("{} in a row", count(e.idle_limit, "idle iteration", "idle iterations")), &|o| o.idle_rounds = o.idle_limit);
    change(format!("a limit of {}", iterations(e.iteration)), &|o| o.max_iterations = o.iteration.max(1));
    change("no limit on iterations".to_owned(), &|o| o.max_iterations = 0);
    change("no limit on time".to_owned(), &|o| o.max_ms = 0);
    change("no limit on money".to_owned(), &|o| o.max_usd_micros = 0);
    change("a change in this iteration".to_owned(), &|o| o.stalled_rounds = 0);
    let judged = changes.into_iter().map(|(what, other)| {
        let ruling = judge(&other);
        (what, other, ruling)
    });
    judged.filter(|(_, _, other)| other.code != ruling.code).collect()
}

/// Whether it cannot be known, because gates would have been measured that were not.
fn gates_decide(e: &Evidence, ruling: &Ruling) -> bool {
    ruling.code == Code::GateUnknown && e.claims() && e.gates.iter().any(|f| f.skipped)
}

fn show_json(record: &Record) {
    let Event::Stop { evidence, ruling, .. } = &record.event else { return };
    // `gates_decide`: gates that were not asked would have been measured; the ruling is that without them.
    let of_change = |(change, other, ruling): (String, Evidence, Ruling)| json!({ "change": change, "gates_decide": gates_decide(&other, &ruling), "ruling": ruling });
    let alternatives: Vec<Value> = alternatives(evidence, ruling).into_iter().map(of_change).collect();
    ui::json(&json!({ "record": record, "alternatives": alternatives }));
}

/// Judges every recorded stop again. A journal is the proof that the judge did what it says, so a difference is a failure.
fn replay(path: &Path, json: bool) -> Done {
    let (records, unreadable) = find_loop::read(path)?;
    let mut same = 0;
    let mut different = Vec::new();
    for record in &records {
        let Event::Stop { evidence, ruling, .. } = &record.event else { continue };
        let again = judge(evidence);
        if again == *ruling { same += 1 } else { different.push((record, ruling, again)) }
    }
    if json {
        let differing: Vec<u64> = different.iter().map(|(r, ..)| r.state.stops).collect();
        ui::json(&json!({ "same": same, "different": differing, "unreadable_lines": unreadable }));
    } else {
        for (record, ruling, again) in &different {
            ui::line(format!("stop {}: recorded {}, now {}", record.state.stops, ruling.code.as_str(), again.code.as_str()));
        }
        let lines = if unreadable == 0 { String::new() } else { format!(", unreadable lines: {unreadable}") };
        ui::line(format!(
            "{} judged again: {same} the same, {} different{lines}",
            count((same + different.len()) as u64, "stop", "stops"),
            different.len()
        ));
    }
    match (different.is_empty(), same) {
        // The report is on standard output already, in either form.
        (false, _) => Err(Failure { in_json: true, ..Failure::new("the journal and the judge disagree") }),
        (true, 0) => Err(Failure { in_json: true, ..Failure::new(format!("there is no stop to judge in {}", path.display())) }),
        (true, _) => Ok(()),
    }
}
