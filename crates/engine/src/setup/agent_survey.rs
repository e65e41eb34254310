//! What the settings of another agent than Claude Code say about ralph, as that agent reads them.

use std::path::{Path, PathBuf};

use ralph_core::text::quoted;
use serde_json::{Value, json};

use crate::{
    hosts::{
        Form, Host, Off, Registration,
        claude::{
            registration::CommandLine,
            settings_file::{Registered, Settings},
        },
    },
    setup::file_change,
};

/// An agent's settings.
pub struct AgentSurvey {
    pub host: &'static Host,
    registration: &'static Registration,
    /// The file that registers hooks.
    pub file: PathBuf,
    /// Why it cannot be read.
    pub problem: Option<String>,
    value: Value,
    folders: Vec<PathBuf>,
}

impl AgentSurvey {
    /// `None` without a home. `project`: its settings can switch hooks off, too.
    pub fn take(host: &'static Host, project: Option<&Path>) -> Option<Self> {
        let (registration, folder) = (host.registration.as_ref()?, host.folder()?);
        let file = folder.join(registration.file);
        let read = if let Form::Plugin(_) = registration.form { of_plugin(&file, registration.events) } else { read(&file) };
        let (value, problem) = match read {
            Ok(value) => (value, None),
            Err(problem) => (Value::Null, Some(problem)),
        };
        let folders = std::iter::once(folder).chain(project.map(|root| root.join(registration.folder))).collect();
        Some(AgentSurvey { host, registration, file, problem, value, folders })
    }

    /// The entries that call ralph as this agent's hook.
    pub fn own(&self) -> impl Iterator<Item = Registered> {
        let name = self.host.name;
        ralphs(self.registration, &self.value).into_iter().filter(move |hook| names(&hook.line, name))
    }

    /// How many entries call ralph as somebody else's hook, and so do nothing here, in the user's file and in the project's.
    pub fn strange(&self) -> impl Iterator<Item = (PathBuf, usize)> {
        let files = self.folders.iter().map(|folder| folder.join(self.registration.file));
        files.filter(|_| !self.registration.form.is_own()).filter_map(|file| {
            let hooks = ralphs(self.registration, &read(&file).ok()?);
            let count = hooks.iter().filter(|hook| !names(&hook.line, self.host.name)).count();
            (count > 0).then_some((file, count))
        })
    }

    /// The entry for the stop.
    pub fn stop(&self) -> Option<Registered> {
        let stop = self.registration.events.first()?;
        self.own().find(|hook| hook.event == *stop)
    }

    /// Events that have no entry.
    pub fn missing(&self) -> Vec<&'static str> {
        let own: Vec<Registered> = self.own().collect();
        self.registration.events.iter().copied().filter(|event| own.iter().all(|hook| hook.event != *event)).collect()
    }

    /// The seconds that the agent gives a hook, if its entry says so.
    pub fn seconds(&self, hook: &Registered) -> Option<f64> {
        hook.timeout.map(|given| self.registration.unit.in_seconds(given))
    }

    /// A setting that switches the hooks off, by its keys, and its file.
    pub fn switched_off(&self) -> Option<(String, PathBuf)> {
        let places = self.folders.iter().flat_map(|folder| self.registration.switches.iter().map(move |switch| (switch, folder)));
        places.into_iter().find_map(|(switch, folder)| {
            let file = folder.join(switch.file);
            let value = read(&file).ok()?;
            let value = switch.keys.iter().try_fold(&value, |value, key| value.get(key))?;
            let is_off = match switch.off {
                Off::Is(off) => *value == off,
                Off::Lists(name) => value.as_array().is_some_and(|names| names.iter().any(|one| one == name)),
            };
            is_off.then(|| (switch.keys.join("."), file))
        })
    }

    /// Events whose hooks wait for their user's review.
    pub fn unreviewed(&self) -> Vec<String> {
        let Some((file, unreviewed)) = self.registration.review else { return Vec::new() };
        let reviewed = self.folders.first().and_then(|folder| read(&folder.join(file)).ok()).unwrap_or_default();
        unreviewed(&self.file, &self.value, &reviewed)
    }
}

/// Every entry of a file that calls ralph.
fn ralphs(registration: &Registration, file: &Value) -> Vec<Registered> {
    let hooks = match registration.form {
        Form::OwnFlat => Registered::all_in(&nested(file)),
        Form::Settings | Form::NamedSettings | Form::Own | Form::Plugin(_) => Registered::all_in(file),
    };
    hooks.into_iter().filter(|hook| hook.line.is_ralphs()).collect()
}

/// Whether a line says that it is this agent's hook.
fn names(line: &CommandLine, name: &str) -> bool {
    let text = line.to_string();
    let mut words = text.split_whitespace().skip_while(|word| *word != "hook");
    words.nth(1) == Some(name)
}

/// A flat list for each event, with a group around each entry and Claude Code's name for its limit.
fn nested(file: &Value) -> Value {
    let group = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(seconds) = entry.get("timeoutSec").cloned() {
            entry["timeout"] = seconds;
        }
        json!({ "hooks": [entry] })
    };
    let events = file.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let events = events.map(|(event, list)| (event.clone(), list.as_array().into_iter().flatten().map(group).collect()));
    json!({ "hooks": Value::Object(events.collect()) })
}

/// A plugin as settings that call the hook for each of the agent's events.
fn of_plugin(file: &Path, events: &[&str]) -> Result<Value, String> {
    let text = file_change::read(file).map_err(|problem| problem.what)?.unwrap_or_default();
    let words = text.lines().find_map(|line| line.strip_prefix(Form::HOOK)?.strip_suffix(';'));
    let Some(words) = words.and_then(|words| serde_json::from_str::<Vec<String>>(words).ok()) else { return Ok(Value::Null) };
    let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let group = json!([{"hooks": [{"type": "command", "command": line}]}]);
    let events = events.iter().map(|event| ((*event).to_owned(), group.clone()));
    Ok(json!({ "hooks": Value::Object(events.collect()) }))
}

/// A settings file, by its ending; nothing where there is none.
fn read(file: &Path) -> Result<Value, String> {
    let Some(text) = file_change::read(file).map_err(|problem| problem.what)? else { return Ok(Value::Null) };
    if file.extension().is_some_and(|ending| ending == "toml") {
        return toml::from_str(&text).map_err(|e| format!("is not valid TOML: {}", e.message()));
    }
    // Most of these agents put up with comments.
    Settings::parse(text.as_bytes()).map(|settings| settings.value()).map_err(|problem| problem.to_string())
}
