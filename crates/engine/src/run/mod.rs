//! `ralph run`: works on a loop in fresh sessions, one for each iteration, until the loop ends, a person is needed, or the run is told to stop.

mod control;
pub mod events;
mod iterations;
mod listener;
mod plan;
pub mod preflight;
pub mod session;

use std::sync::Arc;

use ralph_core::{config::Running, loops::LoopFile, messages::prompt::Spent, money, text};

use crate::{
    gates::{declared, loop_start},
    hosts::{Advice, prices::Prices},
    notify::{News, Ways},
    ops::{Refusal, resume, take_over},
    run::{
        control::Control,
        events::{End, Observer, RunEvent},
        iterations::Iterations,
        session::Agent,
    },
    store::{Error, journal, project::Project, runner},
    sys::{env, signals},
};

/// The task of a run.
#[derive(Debug, Clone)]
pub struct Orders {
    /// Which loop, and with what limits from now on.
    pub resume: resume::Request,
    /// The agent, and those that take over in this order while the quota of the ones before is used up, each with a model of its own if it has one. There is at
    /// least one.
    pub agents: Vec<(Agent, Option<String>)>,
    /// What models cost, where a person wrote it down.
    pub prices: Prices,
    /// So many iterations and no more; `None`: until the loop ends.
    pub rounds: Option<u64>,
    /// Where an item of a list names no model and no rule says otherwise.
    pub settings: Running,
    /// It waits for limits to reset and for what is decided elsewhere; otherwise it ends, parked.
    pub waits: bool,
    /// Who is told when it ends, parks or needs a person.
    pub ways: Ways,
    /// How the loop was run before, and is run again, as a person would type it.
    pub as_before: Option<String>,
    /// What may be in the way of the first session; told only if there is one.
    pub remarks: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Finished {
    pub loop_id: String,
    pub end: End,
    /// In one sentence.
    pub line: String,
    /// Iterations that were ruled on.
    pub rounds: u64,
    pub iteration: u64,
    /// Spent on the loop, by this run and before.
    pub spent: Spent,
    /// Rules that would have allowed what was denied.
    pub denied: Vec<String>,
    /// The loop is complete, and the proof is not what it was when it began.
    pub doubtful: bool,
}

/// Works on a loop until the run ends.
pub fn drive(project: &Project, orders: &Orders, observer: &Arc<dyn Observer>) -> Result<Finished, Refusal> {
    let found = take_over::bring(project, &orders.resume)?;
    let id = found.id();
    let _carrying = match runner::carry(project, &id)? {
        Ok(carrying) => carrying,
        Err(pid) => return Err(take_over::carried(pid)),
    };
    let mark = runner::new_mark(&id);
    env::note_runner(&mark);
    let signals = signals::Told::listen();
    let taken = take_over::take(project, found, &mark, orders.settings.inner)?;
    let ended = taken.dead.as_deref().map_or(0, runner::end_leftovers);
    let taken_name = taken.found.name.clone();
    let mut picked_up = taken.picked_up.clone();
    if let Some(picked_up) = picked_up.as_mut().filter(|_| ended > 0) {
        let are = text::count(ended as u64, "process of its was", "processes of its were");
        *picked_up = format!("{picked_up}; {are} still running and ended");
    }
    observer.on_event(&RunEvent::Run {
        of_loop: &id,
        iteration: taken.file.iteration,
        max_iterations: taken.file.max_iterations(),
        picked_up,
        folder: &project.root().to_string_lossy(),
        limits: limits(project, &taken.file, &orders.agents)
            .into_iter()
            .chain(orders.as_before.as_ref().map(|options| format!("as before: {options}")))
            .collect(),
    });
    if orders.agents.iter().any(|(agent, _)| agent.tells_use()) && taken.file.max_usd_micros() == 0 && taken.file.max_tokens() == 0 {
        let text = "there is no limit on money: `--usd X` or `--tokens N` sets one, now or with `ralph run --continue`".to_owned();
        observer.on_event(&RunEvent::Warning { text });
    }
    if let Some(text) = no_brake(orders, &taken.file) {
        observer.on_event(&RunEvent::Warning { text });
    }
    let control = Control::new(signals, project, &taken.found, observer);
    let mut iterations = Iterations::new(project, orders, observer, control, &mark, taken);
    let (end, line) = iterations.until_it_ends().unwrap_or_else(|e| could_not_go_on(&e));
    // The lock is given back by the end of this process anyway; that the loop rests is what counts.
    let line = match take_over::leave(project, &iterations.found, &mark, &line) {
        Ok(()) => line,
        Err(e) => format!("{line} (and the loop could not be paused: {e})"),
    };
    let finished = iterations.finished(id, end, line);
    tell(project, orders, &taken_name, &finished, observer);
    Ok(finished)
}

/// A plain command tells neither what it cost nor how many tokens it used.
fn no_brake(orders: &Orders, file: &LoopFile) -> Option<String> {
    let limits = [("--usd", file.max_usd_micros() > 0), ("--tokens", file.max_tokens() > 0)];
    let set: Vec<&str> = limits.into_iter().filter(|(_, is_set)| *is_set).map(|(option, _)| option).collect();
    let is_plain = orders.agents.iter().any(|(agent, _)| !agent.tells_use());
    (is_plain && !set.is_empty()).then(|| {
        format!(
            "the agent is a plain command, which reports neither money nor tokens: {} cannot brake it; `--max-iterations N` and `--hours H` can",
            set.join(" and ")
        )
    })
}

fn could_not_go_on(e: &Error) -> (End, String) {
    match e {
        Error::File { .. } => (End::Blocked, format!("{e}. Fix it; then `ralph run --continue` goes on")),
        e => (End::Failed, format!("ralph could not go on: {e}")),
    }
}

/// Tells the observer, and sends the notifications that the orders ask for.
fn tell(project: &Project, orders: &Orders, name: &str, finished: &Finished, observer: &Arc<dyn Observer>) {
    let total = journal::history(&project.journal(&finished.loop_id)).used();
    observer.on_event(&RunEvent::Ended {
        how: finished.end,
        exit: finished.end.exit(),
        line: finished.line.clone(),
        rounds: finished.rounds,
        spent_usd: money::in_dollars(finished.spent.usd_micros),
        spent_tokens: finished.spent.tokens,
        total_usd: money::in_dollars(total.usd_micros.unwrap_or(0).max(finished.spent.usd_micros)),
        total_tokens: total.total_tokens().max(finished.spent.tokens),
        denied: finished.denied.clone(),
        allow: Advice::of(orders.agents.first().map(|agent| agent.0.name())).allow,
        doubtful: finished.doubtful,
    });
    let Some(kind) = finished.end.news() else { return };
    let news = News {
        loop_id: &finished.loop_id,
        name,
        folder: project.root(),
        kind,
        how: finished.end.as_str(),
        line: &finished.line,
        iteration: finished.iteration,
        rounds: finished.rounds,
        usd_micros: finished.spent.usd_micros,
        until: None,
        next: None,
    };
    notify_all(orders, &news, observer);
}

/// Sends notifications; one that fails costs the run a warning.
fn notify_all(orders: &Orders, news: &News<'_>, observer: &Arc<dyn Observer>) {
    for text in news.tell(&orders.ways) {
        observer.on_event(&RunEvent::Warning { text });
    }
}

/// The loop's limits and what ends it, in words.
fn limits(project: &Project, file: &LoopFile, agents: &[(Agent, Option<String>)]) -> Vec<String> {
    let declared = declared::of_loop(project, file);
    let (idle, _) = ralph_core::judge::idle_limit(file.idle_rounds, None);
    let mut limits = file.limits_in_words(!declared.is_empty(), idle);
    if agents.iter().any(|(agent, _)| agent.tells_use()) {
        limits.extend(file.further_limits_in_words(file.fresh_stall_rounds(), true));
    } else {
        limits.push("no limit on money: what this agent costs cannot be known".to_owned());
        limits.extend(file.further_limits_in_words(file.fresh_stall_rounds(), true).into_iter().skip(1));
    }
    if !declared.gates.is_empty() {
        limits.insert(1, loop_start::named(&declared.gates));
    }
    limits
}
