//! How a loop was run: `ralph run --continue` goes on with the same agent, unless told otherwise.
//!
//! It is in the user's state folder: which program is started, and what a session may do, is not for the repository or the agent to say.

use serde::{Deserialize, Serialize};

use crate::store::{Error, project::Project};

/// Options of `ralph run`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Agents that take over, as they were named: `NAME` or `NAME=MODEL`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_cmd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acp_cmd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner: Option<u64>,
    /// The settings that count instead of `ralph.toml`, by their absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gates: Option<String>,
}

fn path(loop_name: &str) -> String {
    format!("runs/{loop_name}.json")
}

impl RunOptions {
    /// How the loop of that name was run last.
    pub fn of(project: &Project, loop_name: &str) -> Self {
        project.load(&path(loop_name)).unwrap_or_default()
    }

    pub fn keep(&self, project: &Project, loop_name: &str) -> Result<(), Error> {
        if *self == RunOptions::default() {
            project.delete(&path(loop_name));
            return Ok(());
        }
        project.save(&path(loop_name), self)
    }

    /// Fills in what was not given again.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        RunOptions {
            agent: self.agent.or(before.agent),
            fallback: if self.fallback.is_empty() { before.fallback } else { self.fallback },
            agent_cmd: self.agent_cmd.or(before.agent_cmd),
            acp_cmd: self.acp_cmd.or(before.acp_cmd),
            model: self.model.or(before.model),
            permission_mode: self.permission_mode.or(before.permission_mode),
            inner: self.inner.or(before.inner),
            gates: self.gates.or(before.gates),
        }
    }

    /// As a person would type it; `None`: there are none.
    pub fn words(&self) -> Option<String> {
        let quoted = |text: &String| {
            if text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c)) { text.clone() } else { format!("'{text}'") }
        };
        let fallback = self.fallback.iter().map(|name| ("--fallback", Some(quoted(name))));
        let options = [
            ("--agent", self.agent.as_ref().map(quoted)),
            ("--agent-cmd", self.agent_cmd.as_ref().map(quoted)),
            ("--acp-cmd", self.acp_cmd.as_ref().map(quoted)),
            ("--model", self.model.as_ref().map(quoted)),
            ("--permission-mode", self.permission_mode.as_ref().map(quoted)),
            ("--inner", self.inner.map(|n| n.to_string())),
            ("--gates", self.gates.as_ref().map(quoted)),
        ];
        let words: Vec<String> =
            options.into_iter().chain(fallback).filter_map(|(name, value)| Some(format!("{name} {}", value?))).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}
