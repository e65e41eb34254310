//! `ralph status`: where the loops of this project stand.

use ralph_core::{
    time::{self, in_words},
    words::{clean, ends_on, opening},
};
use ralph_engine::{
    ops::{
        view::{self, GateView, Status, View, Waiter, Waits},
        worktree::{self, Beside},
    },
    store::{denials::Denials, project::Project},
    sys::clock,
};
use serde::Serialize;

use crate::{
    columns::columns,
    commands::beside,
    exit::{Done, Failure},
    lasting::Lasting,
    text::{short, when},
    ui,
};

/// Show where the loops of this project stand
///
/// The exit code is 3 if there is none; how the last one ended is shown then.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph status
  ralph status --json | jq '.loops[0].iteration'")]
pub(crate) struct Args {
    /// For programs: JSON, always with exit code 0
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    loops: Vec<View>,
    last_ended: Option<View>,
    /// Loops that work in working trees of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    worktrees: Vec<Beside>,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let report =
        Report { loops: view::live(project), last_ended: view::ended(project).into_iter().next(), worktrees: worktree::loops(project) };
    if args.json {
        ui::json(&report);
        return Ok(());
    }
    for view in &report.loops {
        show(view);
    }
    report.worktrees.iter().for_each(beside::show);
    if !report.loops.is_empty() || !report.worktrees.is_empty() {
        return Ok(());
    }
    if let Some(last) = &report.last_ended {
        let at = last.last_event_at.as_deref().map(when).unwrap_or_default();
        let (id, ending, iteration) = (clean(&last.id), last.status.words(), last.iteration);
        ui::paragraph(format!("Last loop: {id} {ending} at iteration {iteration}, {at}. `ralph log` shows what happened."), 0);
    }
    Err(Failure::no_loop())
}

fn gate_line(gate: &GateView, widest: usize) -> String {
    let verdict = gate.verdict.map(|v| format!("{}: ", v.as_str())).unwrap_or_default();
    let pad = " ".repeat(widest.saturating_sub(columns(&clean(&gate.name))));
    format!("{}{pad}  {verdict}{}", gate.name, gate.what)
}

/// How a paused loop goes on.
fn after_a_pause(v: &View) -> String {
    let goes_on = if v.by_run { again(v) } else { "`ralph resume`".to_owned() };
    let why = match v.paused_at {
        Some(n) => format!(" `ralph explain {n}` says why it paused."),
        None if v.why.is_some() => String::new(),
        None => " `ralph log` says why it paused.".to_owned(),
    };
    match v.gates.iter().find_map(|gate| gate.needs.as_deref()) {
        Some(needs) => format!("{needs}; then {goes_on} goes on.{why}"),
        None => format!("{goes_on} goes on.{why}"),
    }
}

/// What goes on in fresh sessions. The usual loop needs no name.
fn again(v: &View) -> String {
    let which = if v.name == "main" { String::new() } else { format!(" --name {}", v.name) };
    format!("`ralph run --continue{which}`")
}

/// How a loop goes on that its session, or its runner, has left behind.
fn after_the_session(v: &View) -> String {
    let resume = "`ralph resume` hands it to the next session that stops here";
    match &v.waits {
        _ if v.by_run => format!("its runner has ended: {} goes on; {resume}", again(v)),
        Some(_) if is_until(v) => format!("its session has ended: {} goes on in fresh ones; {resume}", again(v)),
        Some(_) => format!("its session has ended: `ralph wait` waits for that, and says how to go on; {resume}"),
        None => format!("its session has ended: {resume}"),
    }
}

/// Whether it waits for a time, and for nothing that can be looked at.
fn is_until(v: &View) -> bool {
    v.waits.as_ref().is_some_and(|waits| waits.until.is_some())
}

/// Who sees to it that a parked loop goes on.
fn after_the_wait(v: &View) -> String {
    match v.waits.as_ref().map(|waits| waits.by) {
        Some(Waiter::Runner) => format!("its runner goes on by itself{}", v.waits.as_ref().and_then(left).unwrap_or_default()),
        Some(Waiter::Session) if is_until(v) => "its session is woken then".to_owned(),
        Some(Waiter::Session) => "its session is woken when that is decided".to_owned(),
        _ if is_until(v) => format!("in its session, /ralph-resume goes on; {} does in fresh ones", again(v)),
        _ => "`ralph wait` waits for it; in its session, /ralph-resume goes on".to_owned(),
    }
}

/// `, in 4 min`
fn left(waits: &Waits) -> Option<String> {
    let until = time::parse(waits.until.as_deref()?)?;
    Some(format!(", in {}", in_words(u64::try_from(until - clock::now()).unwrap_or(0))))
}

/// The session that has it.
fn session(v: &View) -> &str {
    match v.session.as_deref() {
        Some(session) => short(Some(session)),
        None if v.status == Status::Tracked => "none, until `ralph resume`",
        None if v.by_run => "none: with `ralph run` each round has its own",
        None => "none yet: the first one that stops here",
    }
}

/// What nobody was there to allow, with the rules that would have.
fn denied(all: &[Denials]) -> String {
    const SHOWN: usize = 5;
    let rules: Vec<String> = all.iter().take(SHOWN).map(|denied| format!("{} ×{}", opening(&denied.rule, 80), denied.times)).collect();
    let more = if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
    let them = if all.len() == 1 { "add it" } else { "add what you want to allow" };
    format!("{}{more}: {them} to permissions.allow in the client's settings", rules.join(", "))
}

fn show(v: &View) {
    let status = match v.status {
        Status::Active | Status::Waiting => ui::good(v.status.words()),
        _ => ui::warn(v.status.words()),
    };
    ui::paragraph(format!("{}  {status}", ui::bold(clean(&v.id))), 2);
    if let Some(problem) = &v.problem {
        ui::field("problem", problem);
    }
    let limit = if v.max_iterations == 0 { "no limit".to_owned() } else { format!("of {}", v.max_iterations) };
    ui::field("iteration", format!("{} ({limit})", v.iteration));
    let time = if v.max_ms > 0 { format!("of {}", in_words(v.max_ms)) } else { "no limit".to_owned() };
    ui::field("time", format!("{} ({time})", in_words(v.spent_ms)));
    if let Some(money) = v.money() {
        ui::field("money", money);
    }
    ui::field("ends on", ends_on(v.completion_promise.as_deref(), !v.gates.is_empty()));
    let widest = v.gates.iter().map(|gate| columns(&clean(&gate.name))).max().unwrap_or(0).min(30);
    for gate in &v.gates {
        ui::field("gate", gate_line(gate, widest));
    }
    if let Some(c) = &v.checking {
        ui::field("checking", format!("{}: {}", c.gate, Lasting { passed: c.for_ms, usual: c.usual_ms, limit: c.limit_ms }.words()));
    }
    if let Some(waits) = &v.waits {
        let until = waits.until.as_deref().map(|until| format!("until {}, ", when(until))).unwrap_or_default();
        ui::field("waits", format!("for {} ({until}{} so far)", waits.what, in_words(waits.for_ms)));
    }
    if v.idle_rounds > 0 {
        ui::field("idle", format!("{} rounds without any tool call", v.idle_rounds));
    }
    if v.stalled_rounds > 0 {
        ui::field("standstill", format!("{} rounds changed nothing (of {})", v.stalled_rounds, v.stall_limit));
    }
    for note in &v.notes {
        let fate = note.told_in.map_or_else(|| "waits for the next prompt".to_owned(), |round| format!("told in round {round}"));
        ui::field("note", format!("{}: {} ({fate})", note.id, opening(&note.text, 100)));
    }
    if !v.denied.is_empty() {
        ui::field("denied", denied(&v.denied));
    }
    for warning in &v.warnings {
        ui::field("warning", warning);
    }
    ui::field("session", session(v));
    if let Some(carried) = v.carried() {
        ui::field("runner", carried);
    }
    if let Some(why) = &v.why {
        ui::field("why", why);
    }
    match v.status {
        Status::Paused => ui::field("next", after_a_pause(v)),
        Status::Parked => ui::field("next", after_the_wait(v)),
        Status::LeftBehind => ui::field("next", after_the_session(v)),
        Status::Tracked => ui::field("next", "`ralph resume` releases it; a loop that came with a repository arms itself for nobody"),
        _ => {}
    }
    if let Some(code) = &v.last_code {
        ui::field("last stop", format!("{code} (`ralph explain` says more)"));
    }
    ui::excerpt("prompt", &v.prompt);
}
