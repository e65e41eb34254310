//! Who did what: the work on a loop by agent and model.

use std::sync::Arc;

use serde::Serialize;

use super::{History, Iteration, MOST, Used};
use crate::{
    journal::Holder,
    judge::session_outcome::{Tokens, Work},
    money::Micros,
    text::time::Millis,
};

/// The agent of records that name none: those of the first versions, which knew one.
pub const FIRST_AGENT: &str = "claude";

/// The row of all agents and models beyond the first [`MOST`], which only a forged journal has.
const OTHERS: &str = "others";

/// An agent and its model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    /// As `--agent` names it; `command`: a program of the person's own.
    pub agent: String,
    /// Absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What one agent did with one model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentWork {
    #[serde(flatten)]
    pub worker: Worker,
    /// Iterations that it ended.
    pub iterations: u64,
    pub used: Used,
}

/// What a session that ralph did not start used at a moment.
#[derive(Debug, Clone)]
pub struct OwnUse {
    pub agent: &'static str,
    pub at: Millis,
    pub model: Option<Arc<str>>,
    pub tokens: Tokens,
    pub tool_calls: u64,
    /// `None`: the model's price is not known.
    pub usd_micros: Option<Micros>,
    /// How full its context was; 0: not known, or a subagent's.
    pub context: u64,
}

/// The rows of [`AgentWork`] as they grow.
#[derive(Debug, Clone, Default)]
pub(super) struct Workers {
    /// Sessions that ralph started, and what transcripts tell of the others.
    told: Vec<AgentWork>,
    /// Money of sessions that ralph did not start, counted against a limit. It counts where no transcript tells more.
    counted: Vec<AgentWork>,
    /// When runs had the loop, the oldest first. The last has no end while one has it.
    runs: Vec<(Millis, Option<Millis>)>,
}

impl Workers {
    /// Notes that a run took the loop, or left it; `last` is the time of the record before.
    pub(super) fn run(&mut self, is_run: bool, at: Millis, last: Option<Millis>) {
        match (is_run, self.runs.last_mut()) {
            (true, Some((_, None))) | (false, None | Some((_, Some(_)))) => {}
            (true, _) => self.runs.push((at, None)),
            (false, Some((_, until))) => *until = Some(last.unwrap_or(at)),
        }
    }

    /// Whether a run had the loop at this moment.
    fn had_run(&self, at: Millis) -> bool {
        let after = self.runs.partition_point(|(from, _)| *from <= at);
        after.checked_sub(1).is_some_and(|n| self.runs[n].1.is_none_or(|until| at <= until))
    }
}

/// The row of an agent and a model, made if there is none.
fn row<'a>(all: &'a mut Vec<AgentWork>, agent: &str, model: Option<&str>) -> &'a mut AgentWork {
    let find = |all: &[AgentWork], agent: &str, model| {
        all.iter().position(|one| one.worker.agent == agent && one.worker.model.as_deref() == model)
    };
    let at = find(all, agent, model).or_else(|| find(all, OTHERS, None).filter(|_| all.len() >= MOST)).unwrap_or_else(|| {
        let worker = if all.len() < MOST - 1 {
            Worker { agent: agent.to_owned(), model: model.map(str::to_owned) }
        } else {
            Worker { agent: OTHERS.to_owned(), model: None }
        };
        all.push(AgentWork { worker, ..AgentWork::default() });
        all.len() - 1
    });
    &mut all[at]
}

impl History {
    /// Adds what a session that ralph started used.
    pub(super) fn session_used(&mut self, work: &Work) {
        let used = Used::of(work);
        self.open.join(&used);
        self.denied(&work.denied);
        let Some(working) = &self.working else { return };
        let model = work.model.as_deref().or(working.model.as_deref());
        row(&mut self.workers.told, &working.agent, model).used.join(&Used { sessions: 1, ..used });
    }

    /// Keeps who worked on the iteration that goes on, in a session that broke.
    pub(super) fn session_broke(&mut self, work: &Work) {
        if let Some(working) = self.working.take() {
            let worker = Worker { agent: working.agent, model: work.model.clone().or(working.model) };
            if !self.broke.contains(&worker) && self.broke.len() < MOST {
                self.broke.push(worker);
            }
        }
    }

    /// Adds the money that was counted of a session that ralph did not start.
    pub(super) fn money_counted(&mut self, usd_micros: Micros) {
        self.own_stops += u64::from(self.state.runner.is_none());
        self.open.add(Tokens::default(), 0, usd_micros);
        self.open.counted = self.open.counted.saturating_add(usd_micros);
        self.open.estimated = true;
        if usd_micros > 0 {
            let row = row(&mut self.workers.counted, self.state.host.as_deref().unwrap_or(FIRST_AGENT), None);
            row.used.add(Tokens::default(), 0, usd_micros);
            row.used.estimated = true;
        }
    }

    /// The agent at work: of the session that ralph started, or the one whose session has the loop.
    pub fn agent_now(&self) -> &str {
        let started = self.working.as_ref().map(|working| working.agent.as_str());
        started.or(self.state.host.as_deref()).unwrap_or(FIRST_AGENT)
    }

    /// The agent and model of the session that ralph started, or else of the last iteration; if a session has the loop that ralph did not start, its agent.
    pub fn last_worker(&self) -> Option<Worker> {
        let last = || self.rounds.last().map(|last| Worker { agent: last.agent.clone(), model: last.model.clone() });
        match (&self.working, self.holder()) {
            (Some(working), _) => Some(Worker { agent: working.agent.clone(), model: working.model.clone() }),
            (None, Holder::Session(_)) => {
                let last = last().filter(|last| last.agent == self.agent_now());
                last.or_else(|| Some(Worker { agent: self.agent_now().to_owned(), model: None }))
            }
            (None, Holder::Runner(_) | Holder::Nobody) => last(),
        }
    }

    /// Whether a session that ralph did not start has worked on the loop, or may be at it.
    pub fn has_own_sessions(&self) -> bool {
        self.own_stops > 0 || (self.rounds.is_empty() && self.open.sessions == 0 && self.working.is_none())
    }

    /// The agents whose own sessions worked on it, or may be at it.
    pub fn own_agents(&self) -> Vec<&str> {
        let ended = self.rounds.iter().flat_map(|iteration| iteration.workers().map(|(agent, _)| agent));
        let mut all: Vec<&str> = ended.chain([self.agent_now()]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Takes what agents' transcripts of their sessions tell. The first agent's tell all of it: what was counted against a limit is a part. What a session used while
    /// a run had the loop was not for the loop.
    pub fn add_own_use(&mut self, all: Vec<OwnUse>) {
        if all.iter().any(|one| one.agent == FIRST_AGENT) {
            let counted = self.rounds.iter_mut().map(|iteration| &mut iteration.used).chain([&mut self.open]);
            counted.for_each(Used::drop_counted);
            self.workers.counted.retain(|row| row.worker.agent != FIRST_AGENT);
        }
        for one in all {
            if self.workers.had_run(one.at) || self.ended.is_some_and(|ended| one.at > ended.at) {
                continue;
            }
            let at = self.rounds.partition_point(|iteration| iteration.ended < one.at);
            let used = match self.rounds.get_mut(at) {
                // Another agent's own session did it.
                Some(iteration) if iteration.agent != one.agent && iteration.used.sessions == 0 => continue,
                Some(iteration) => {
                    if iteration.agent == one.agent && iteration.model.is_none() {
                        iteration.model = one.model.as_deref().map(str::to_owned);
                    }
                    &mut iteration.used
                }
                None => &mut self.open,
            };
            let row = row(&mut self.workers.told, one.agent, one.model.as_deref());
            for used in [used, &mut row.used] {
                used.add_own(&one);
            }
        }
    }

    /// One row for each agent and model, in the order in which they came.
    pub fn by_agent(&self) -> Vec<AgentWork> {
        let mut all = Vec::new();
        for iteration in &self.rounds {
            for earlier in &iteration.earlier {
                row(&mut all, &earlier.agent, earlier.model.as_deref());
            }
            row(&mut all, &iteration.agent, iteration.model.as_deref()).iterations += 1;
        }
        for work in self.workers.told.iter().chain(&self.workers.counted) {
            row(&mut all, &work.worker.agent, work.worker.model.as_deref()).used.join(&work.used);
        }
        all
    }

    /// Whether more than one agent has worked on the loop.
    pub fn has_many_agents(&self) -> bool {
        let ended = self.rounds.iter().flat_map(|iteration| iteration.workers().map(|(agent, _)| agent));
        let now = self.broke.iter().map(|worker| &worker.agent).chain(self.working.as_ref().map(|working| &working.agent));
        let mut all = ended.chain(now.map(String::as_str));
        let first = all.next();
        all.any(|agent| Some(agent) != first)
    }
}

impl Iteration {
    /// The iteration with those who worked on it before, each once.
    pub(super) fn after(mut self, before: Vec<Worker>) -> Self {
        let later = std::mem::take(&mut self.earlier);
        for worker in before.into_iter().chain(later) {
            let ended_it = worker.agent == self.agent && (worker.model.is_none() || worker.model == self.model || self.model.is_none());
            if ended_it {
                self.model = self.model.or(worker.model);
            } else if !self.earlier.contains(&worker) && self.earlier.len() < MOST {
                self.earlier.push(worker);
            }
        }
        self
    }

    /// All who worked on it, in their order: `earlier`, and the one that ended it.
    pub fn workers(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let earlier = self.earlier.iter().map(|worker| (worker.agent.as_str(), worker.model.as_deref()));
        earlier.chain([(self.agent.as_str(), self.model.as_deref())])
    }
}
