//! Registers ralph with other agents than Claude Code, for the user in all projects, and takes that back.

use std::path::PathBuf;

use ralph_core::text::quoted;
use serde_json::{Map, Value, json};

use crate::{
    hosts::{
        CommandForm, Form, Host, Registration, SHORT,
        claude::{commands::Command, registration::Hook, settings_file::Settings},
    },
    setup::{
        Plan, Problem,
        agent_survey::AgentSurvey,
        file_change::{self, Change},
        init::original,
        record::Records,
    },
    sys::{env, process},
};

/// Agents other than Claude Code that ralph can be registered with.
pub fn known() -> impl Iterator<Item = &'static Host> {
    Host::ALL.into_iter().filter(|host| host.registration.is_some())
}

/// Those whose program is on the path.
pub fn found() -> impl Iterator<Item = &'static Host> {
    known().filter(|host| process::which(host.name).is_some())
}

/// The changes that register the program `command` with an agent.
pub fn plan(host: &Host, command: &str, records: &Records) -> Result<Plan, Problem> {
    let mut plan = Plan::default();
    let (Some(registration), Some(folder)) = (&host.registration, host.folder()) else { return Ok(plan) };
    let file = folder.join(registration.file);
    let before = file_change::read_settled(&file)?;
    let groups = registration.events.iter().map(|event| (*event, host.group(registration, event, command))).collect::<Vec<_>>();
    let (after, original) = match registration.form {
        Form::Settings | Form::NamedSettings => {
            let left_alone = |e| Problem::left_alone(&file, &e);
            let settings = Settings::parse(before.as_deref().unwrap_or("{\n}\n").as_bytes()).map_err(left_alone)?;
            settings.register_groups(&groups).map_err(left_alone)?;
            (settings.to_text(), original(&file, records, before.as_deref())?)
        }
        Form::Own | Form::OwnFlat => (own_file(registration.form, groups), None),
        Form::Plugin(text) => (plugin(text, command, host.name), None),
    };
    plan.changes.extend(Change::to(&file, before, after, original));
    let Some((place, form)) = registration.commands else { return Ok(plan) };
    for command in Command::ALL {
        let (name, text) = command_file(&command, form);
        let path = folder.join(place).join(name);
        match file_change::read(&path)? {
            Some(now) if now != text && records.get(&path).is_none_or(|record| record.after != now) => {
                plan.notes.push(format!("{} was not written by ralph: it is left as it is.", path.display()));
            }
            now => plan.changes.extend(Change::to(&path, now, text, None)),
        }
    }
    Ok(plan)
}

/// The changes that take all of it back, of every agent.
pub(super) fn back(records: &Records) -> Result<Vec<Change>, Problem> {
    let mut changes = Vec::new();
    for host in known() {
        let (Some(registration), Some(folder)) = (&host.registration, host.folder()) else { continue };
        let file = folder.join(registration.file);
        if let Some(now) = file_change::read_settled(&file)?.filter(|_| host.is_registered()) {
            let after = if registration.form.is_own() { None } else { original(&file, records, Some(&now))? };
            changes.extend(Change::back(&file, now, after));
        }
        let Some((place, form)) = registration.commands else { continue };
        for command in Command::ALL {
            let (name, text) = command_file(&command, form);
            let path = folder.join(place).join(name);
            if let Some(now) = file_change::read(&path)?.filter(|now| *now == text) {
                changes.extend(Change::back(&path, now, None));
            }
        }
    }
    Ok(changes)
}

impl Host {
    /// Whether the agent is told to call ralph.
    pub fn is_registered(&'static self) -> bool {
        AgentSurvey::take(self, None).is_some_and(|survey| survey.own().next().is_some())
    }

    /// What a person has to do besides.
    pub fn consent(&self) -> Option<&'static str> {
        self.registration.as_ref()?.consent
    }

    /// The agent's folder in the user's home.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let registration = self.registration.as_ref()?;
        let moved = registration.moved_by.and_then(|(variable, name)| Some((PathBuf::from(env::os(variable)?), name)));
        let moved = moved.filter(|(path, _)| path.is_absolute()).map(|(path, name)| if name.is_empty() { path } else { path.join(name) });
        moved.or_else(|| Some(env::home()?.join(registration.folder)))
    }

    /// The file that gives the agent a status line, and the lines for that.
    pub fn status_line(&self) -> Option<(PathBuf, &'static str)> {
        let (file, lines) = self.registration.as_ref()?.status_line?;
        Some((self.folder()?.join(file), lines))
    }

    /// One event's entry, in the group that the agent wants around it. All of them take a line for the shell.
    fn group(&self, registration: &Registration, event: &str, command: &str) -> Value {
        let is_stop = registration.events.first() == Some(&event) || event == "SubagentStop";
        let seconds = match event {
            _ if is_stop => Hook::LONG,
            event if registration.hasty_events.contains(&event) => Registration::AT_MOST,
            _ => SHORT,
        };
        let timeout = registration.unit.of_seconds(seconds);
        let limit = if is_stop { format!(" --timeout {seconds}") } else { String::new() };
        let line = format!("{} hook {}{limit} --via user", quoted(command), self.name);
        match registration.form {
            Form::Settings | Form::Own => json!({"hooks": [{"type": "command", "command": line, "timeout": timeout}]}),
            Form::NamedSettings => {
                let entry = json!({"name": "ralph", "type": "command", "command": line, "timeout": timeout});
                json!({"matcher": "*", "hooks": [entry]})
            }
            Form::OwnFlat => json!({"type": "command", "command": line, "timeoutSec": timeout}),
            Form::Plugin(_) => Value::Null,
        }
    }
}

fn own_file(form: Form, groups: Vec<(&str, Value)>) -> String {
    let hooks: Map<String, Value> = groups.into_iter().map(|(event, group)| (event.to_owned(), json!([group]))).collect();
    let file = if form == Form::OwnFlat { json!({"version": 1, "hooks": hooks}) } else { json!({"hooks": hooks}) };
    format!("{file:#}\n")
}

/// A plugin that calls this program.
fn plugin(text: &str, command: &str, name: &str) -> String {
    let limit = Hook::LONG.to_string();
    let words = json!([command, "hook", name, "--timeout", limit, "--via", "user"]);
    text.replacen(&format!("{}[];", Form::HOOK), &format!("{}{words};", Form::HOOK), 1)
}

/// The name and the text of a command's file. The hook reads what was typed; these files only make the agent know the commands, and its model must not call them.
fn command_file(command: &Command, form: CommandForm) -> (String, String) {
    let description = command.description();
    match form {
        CommandForm::Markdown(args) => (
            command.file_name(),
            format!("---\ndescription: \"{description}\"\ndisable-model-invocation: true\n---\n\n/{} {args}\n", command.short),
        ),
        // The hook sees the expanded text, so that is the command as it was typed.
        CommandForm::Toml(args) => {
            (format!("{}.toml", command.short), format!("description = \"{description}\"\nprompt = \"/{} {args}\"\n", command.short))
        }
        CommandForm::Skill => (format!("{}/SKILL.md", command.short), command.skill()),
    }
}
