//! Agents that speak the Agent Client Protocol (ACP): one client for all of them, and a table of the programs that are known to speak it.

mod client;
mod permission;
mod tool_calls;

pub(crate) use client::AcpClient;

use std::path::{Path, PathBuf};

use crate::sys::process;

use super::headless::Headless;

/// A program that speaks ACP.
pub struct AcpAgent {
    /// `acp:gemini`: as a person names it, and as journals do.
    pub name: &'static str,
    /// The name that people know.
    pub title: &'static str,
    pub headless: Headless,
    tried: Tried,
}

/// How we know that it works.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    /// Tests go through sessions of the real program (`client/run_acp.rs`).
    InTests,
    /// Once, with the real program and a scripted model.
    ByHand,
    No,
}

impl std::fmt::Debug for AcpAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for AcpAgent {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for AcpAgent {}

/// The permission modes: they say how ralph answers what an agent asks for, so no agent needs arguments for them.
const MODES: &[(&str, &[&str])] = &[("default", &[]), ("acceptEdits", &[]), ("bypassPermissions", &[])];

/// Any program. It is asked for its model by the protocol.
const ANY: Headless =
    Headless { modes: MODES, needs_mode: true, stream: |launch| Box::new(AcpClient::new(launch, true)), ..Headless::PLAIN };

/// A line of `--acp-cmd`.
pub(crate) static COMMAND: AcpAgent = AcpAgent { name: "acp", title: "the ACP agent", headless: ANY, tried: Tried::No };

const fn agent(name: &'static str, title: &'static str, program: &'static str, install: &'static str) -> AcpAgent {
    AcpAgent { name, title, headless: Headless { program, install, ..ANY }, tried: Tried::No }
}

impl AcpAgent {
    const fn args(self, before: &'static [&'static str]) -> Self {
        AcpAgent { headless: Headless { before, ..self.headless }, ..self }
    }

    /// The option for its model, before arguments that must be the last.
    const fn model(self, option: &'static str, after: &'static [&'static str]) -> Self {
        let headless = Headless { model: Some(option), after, stream: |launch| Box::new(AcpClient::new(launch, false)), ..self.headless };
        AcpAgent { headless, ..self }
    }

    /// What its own settings do not ask for, it may do.
    const fn acts_unasked(self) -> Self {
        AcpAgent { headless: Headless { needs_mode: false, ..self.headless }, ..self }
    }

    const fn tried(self, tried: Tried) -> Self {
        AcpAgent { tried, ..self }
    }

    const fn variables(self, variables: &'static [(&'static str, &'static str)]) -> Self {
        AcpAgent { headless: Headless { variables, ..self.headless }, ..self }
    }

    #[cfg(test)]
    pub(super) fn is_in_tests(&self) -> bool {
        self.tried == Tried::InTests
    }

    /// Where its program is, but never one in the project.
    pub fn find_program(&self, project: &Path) -> Option<PathBuf> {
        process::which_outside(self.headless.program, project)
    }

    /// The names, for the documentation.
    pub fn table() -> String {
        let row = |agent: &AcpAgent| {
            let AcpAgent { name, title, headless, tried } = agent;
            let tried = match tried {
                Tried::InTests => "in tests",
                Tried::ByHand => "by hand",
                Tried::No => "no",
            };
            format!("| `{name}` | {title} | `{}` | `{}` | {tried} |\n", headless.program, headless.install)
        };
        let rows: String = AGENTS.iter().map(row).collect();
        format!("| `--agent` | agent | its program | installed with | tried |\n|---|---|---|---|---|\n{rows}")
    }

    pub fn by_name(name: &str) -> Option<&'static AcpAgent> {
        AGENTS.iter().find(|agent| agent.name == name)
    }
}

/// The programs that are known.
pub(crate) static AGENTS: [AcpAgent; 13] = [
    agent("acp:gemini", "Gemini CLI", "gemini", "npm install -g @google/gemini-cli")
        .args(&["--acp", "--skip-trust"])
        .model("-m", &[])
        // Behind its relauncher it hears no request to end.
        .variables(&[("GEMINI_CLI_NO_RELAUNCH", "true")])
        .tried(Tried::InTests),
    agent("acp:copilot", "Copilot CLI", "copilot", "npm install -g @github/copilot")
        .args(&["--acp", "--no-auto-update"])
        .model("--model", &[])
        .tried(Tried::InTests),
    agent("acp:qwen", "Qwen Code", "qwen", "npm install -g @qwen-code/qwen-code").args(&["--acp"]).model("-m", &[]).tried(Tried::InTests),
    agent("acp:opencode", "opencode", "opencode", "npm install -g opencode-ai").args(&["acp"]).acts_unasked().tried(Tried::InTests),
    agent("acp:kilo", "Kilo", "kilo", "npm install -g @kilocode/cli").args(&["acp"]).acts_unasked().tried(Tried::ByHand),
    agent("acp:kimi", "Kimi Code", "kimi", "npm install -g @moonshot-ai/kimi-code").args(&["acp"]).tried(Tried::ByHand),
    agent("acp:grok", "Grok", "grok", "npm install -g @xai-official/grok").args(&["agent"]).model("-m", &["stdio"]).tried(Tried::InTests),
    agent("acp:droid", "Droid", "droid", "npm install -g droid")
        .args(&["exec", "--output-format", "acp"])
        .model("-m", &[])
        .tried(Tried::InTests),
    agent("acp:goose", "goose", "goose", "brew install block-goose-cli").args(&["acp"]).tried(Tried::InTests),
    agent("acp:codex", "Codex", "codex-acp", "npm install -g @zed-industries/codex-acp").tried(Tried::ByHand),
    agent("acp:vibe", "Mistral Vibe", "vibe-acp", "uv tool install mistral-vibe"),
    agent("acp:hermes", "Hermes", "hermes-acp", "uv tool install 'hermes-agent[acp]'").acts_unasked().tried(Tried::InTests),
    agent("acp:openhands", "OpenHands", "openhands-acp", "uv tool install openhands"),
];

#[cfg(test)]
mod tests;
