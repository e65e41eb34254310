//! Registers hooks with the client, the way a person's settings file or a plugin would.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::project::Project;

/// Every event ralph may register for.
pub const ALL_EVENTS: &[&str] = &[
    "Stop",
    "SubagentStop",
    "StopFailure",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Notification",
    "PreCompact",
];

/// One command, in exec form, for a list of events.
#[derive(Debug, Clone)]
pub struct Hook {
    command: PathBuf,
    args: Vec<String>,
    events: Vec<String>,
    timeout: u32,
}

impl Hook {
    /// `<command> hook claude`, for every event.
    pub fn new(command: impl Into<PathBuf>) -> Self {
        Self {
            command: command.into(),
            args: vec!["hook".to_owned(), "claude".to_owned()],
            events: ALL_EVENTS.iter().map(ToString::to_string).collect(),
            timeout: 60,
        }
    }

    #[must_use]
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    #[must_use]
    pub fn events<T: Into<String>>(mut self, events: impl IntoIterator<Item = T>) -> Self {
        self.events = events.into_iter().map(Into::into).collect();
        self
    }

    #[must_use]
    pub fn timeout(mut self, seconds: u32) -> Self {
        self.timeout = seconds;
        self
    }
}

/// A settings file in the making.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    hooks: Vec<Hook>,
    env: Map<String, Value>,
    extra: Map<String, Value>,
}

impl Settings {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn hook(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Any other top-level key.
    #[must_use]
    pub fn set(mut self, key: &str, value: Value) -> Self {
        self.extra.insert(key.to_owned(), value);
        self
    }

    pub fn to_json(&self) -> Value {
        let mut all = self.extra.clone();
        all.insert("hooks".to_owned(), hooks_json(&self.hooks));
        if !self.env.is_empty() {
            all.insert("env".to_owned(), self.env.clone().into());
        }
        all.into()
    }

    /// Writes `.claude/settings.json` in the project.
    pub fn write(&self, project: &Project) -> PathBuf {
        project.write(".claude/settings.json", pretty(&self.to_json()))
    }
}

/// Writes a plugin that registers the hooks, outside the project; give it to the client with `--plugin-dir`.
pub fn write_plugin(project: &Project, name: &str, hooks: &[Hook]) -> PathBuf {
    let dir = project.home().join("plugins").join(name);
    let manifest = json!({"name": name, "version": "0.0.1", "description": "test plugin"});
    write_json(&dir.join(".claude-plugin/plugin.json"), &manifest);
    write_json(&dir.join("hooks/hooks.json"), &json!({"hooks": hooks_json(hooks)}));
    dir
}

fn hooks_json(hooks: &[Hook]) -> Value {
    let mut by_event = Map::new();
    for hook in hooks {
        let command = json!({
            "type": "command",
            "command": hook.command,
            "args": hook.args,
            "timeout": hook.timeout,
        });
        for event in &hook.events {
            let groups = by_event.entry(event).or_insert_with(|| json!([]));
            groups.as_array_mut().unwrap().push(json!({"hooks": [command]}));
        }
    }
    by_event.into()
}

fn write_json(path: &Path, value: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, pretty(value)).unwrap();
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}
