//! Agents as people know them: `Codex with gpt-5.4`.

use ralph_core::{
    history::{FIRST_AGENT, Iteration},
    journal::{Event, Record},
    text::clean,
};
use ralph_engine::hosts::Host;

/// An agent's name as people know it.
pub(crate) fn title(agent: &str) -> String {
    match (Host::by_name(agent), agent) {
        (Some(host), _) => host.title.to_owned(),
        (None, "command") => "your own command".to_owned(),
        (None, other) => clean(other),
    }
}

/// An agent and its model, where that is known.
pub(crate) fn with_model(agent: &str, model: Option<&str>) -> String {
    match model.filter(|model| !model.is_empty()) {
        Some(model) => format!("{} with {}", title(agent), clean(model)),
        None => title(agent),
    }
}

/// All who worked on an iteration, in their order.
pub(crate) fn of_iteration(iteration: &Iteration) -> String {
    let all: Vec<String> = iteration.workers().map(|(agent, model)| with_model(agent, model)).collect();
    all.join(", ")
}

/// Names the agent of each stop of a journal, from the moment on when a second agent works on the loop.
#[derive(Debug, Default)]
pub(crate) struct Who {
    /// The session that ralph started last, if it has not ended.
    started: Option<(String, Option<String>)>,
    first: Option<String>,
    has_many: bool,
}

impl Who {
    /// Takes the next record. For a stop it returns the agent that stopped.
    pub(crate) fn take(&mut self, record: &Record) -> Option<String> {
        match &record.event {
            Event::Began { agent, model, .. } => {
                self.started = Some((agent.clone(), model.clone()));
                self.meets(agent);
                None
            }
            Event::Stop { evidence, work, .. } if !evidence.before_the_first => {
                let of_session = || (record.state.host.clone().unwrap_or_else(|| FIRST_AGENT.to_owned()), None);
                let (agent, model) = self.started.take().unwrap_or_else(of_session);
                self.meets(&agent);
                let model = work.as_deref().and_then(|work| work.model.clone()).or(model);
                self.has_many.then(|| with_model(&agent, model.as_deref()))
            }
            Event::Broke { .. } | Event::Left { .. } | Event::Taken { .. } | Event::Adopted | Event::Rebound { .. } => {
                self.started = None;
                None
            }
            _ => None,
        }
    }

    fn meets(&mut self, agent: &str) {
        self.has_many |= self.first.get_or_insert_with(|| agent.to_owned()) != agent;
    }
}
