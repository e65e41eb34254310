//! Who did what: the work on a loop by agent and model.

use serde::Serialize;

use super::{History, Used};

/// What one agent did with one model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentWork {
    /// As `--agent` names it; `command`: a program of the person's own.
    pub agent: String,
    /// Absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Iterations that it ended.
    pub iterations: u64,
    pub used: Used,
}

impl AgentWork {
    /// Tokens whose price is not known.
    pub fn unpriced(&self) -> u64 {
        self.used.unpriced_tokens
    }
}

/// The row of an agent and a model, made if there is none.
fn row<'a>(all: &'a mut Vec<AgentWork>, agent: &str, model: Option<&str>) -> &'a mut AgentWork {
    let is_it = |one: &AgentWork| one.agent == agent && one.model.as_deref() == model;
    let at = all.iter().position(is_it).unwrap_or_else(|| {
        all.push(AgentWork { agent: agent.to_owned(), model: model.map(str::to_owned), ..AgentWork::default() });
        all.len() - 1
    });
    &mut all[at]
}

impl History {
    /// Adds what an agent used.
    pub(super) fn worked(&mut self, agent: &str, model: Option<&str>, used: &Used) {
        row(&mut self.worked, agent, model).used.join(used);
    }

    /// One row for each agent and model, in the order in which they came. Iterations of a person's own session have what their transcripts say, which is added to
    /// the iterations and not here.
    pub fn by_agent(&self) -> Vec<AgentWork> {
        let mut all = Vec::new();
        for iteration in &self.rounds {
            let row = row(&mut all, &iteration.agent, iteration.model.as_deref());
            row.iterations += 1;
            if iteration.used.sessions == 0 {
                row.used.join(&iteration.used);
            }
        }
        for work in &self.worked {
            row(&mut all, &work.agent, work.model.as_deref()).used.join(&work.used);
        }
        all
    }
}
