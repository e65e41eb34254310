//! The client's permissions for an agent: the permission mode, and the rules.

use std::path::{Path, PathBuf};

use crate::setup::{
    places::Scope,
    survey::{Origin, Survey},
};

/// The tools that nearly every task needs.
pub const TOOLS: [&str; 3] = ["Edit", "Write", "Bash"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Allowed,
    /// The client asks; without a terminal the answer is no.
    Asked,
    Denied,
}

/// The mode and the rules that a session would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// `None`: the client's own.
    pub mode: Option<String>,
    /// A mode in the project's settings that the client accepts only from the user's own; and its file.
    pub ignored_mode: Option<(String, PathBuf)>,
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

impl Permissions {
    pub fn of_settings(survey: &Survey) -> Self {
        let (mode, ignored_mode) = mode(survey);
        let list = |name: &str| survey.lists(&["permissions", name]);
        Permissions { mode, ignored_mode, allow: list("allow"), ask: list("ask"), deny: list("deny") }
    }

    /// The same for an unattended session. Rules of the project's settings count there only in a trusted folder; also returns how many do not count.
    pub fn unattended(survey: &Survey, folder: &Path, mode: Option<&str>) -> (Self, usize) {
        let all = Permissions::of_settings(survey);
        let allow = if survey.trusts(folder) { all.allow.clone() } else { survey.own_lists(&["permissions", "allow"]) };
        let ignored = all.allow.len() - allow.len();
        match mode {
            Some(mode) => (Permissions { mode: Some(mode.to_owned()), ignored_mode: None, allow, ..all }, ignored),
            None => (Permissions { allow, ..all }, ignored),
        }
    }

    pub fn fate(&self, tool: &str) -> Fate {
        match () {
            () if names(&self.deny, tool) => Fate::Denied,
            () if names(&self.ask, tool) => Fate::Asked,
            () if names(&self.allow, tool) => Fate::Allowed,
            () => by_mode(self.mode.as_deref(), tool),
        }
    }

    /// The [`TOOLS`] of this fate.
    pub fn of_fate(&self, wanted: Fate) -> Vec<&'static str> {
        TOOLS.into_iter().filter(|tool| self.fate(tool) == wanted).collect()
    }

    pub(crate) fn has_command_rules(&self) -> bool {
        self.allow.iter().any(|rule| rule.starts_with("Bash"))
    }

    /// The commands of a shell line that no rule allows, split as the client splits them.
    pub(crate) fn unallowed<'l>(&self, line: &'l str) -> Vec<&'l str> {
        if self.fate("Bash") == Fate::Allowed {
            return Vec::new();
        }
        let parts = line.split(['|', '&', ';', '\n']).map(str::trim).filter(|part| !part.is_empty());
        parts.filter(|part| !self.allow.iter().any(|rule| covers_command(rule, part))).collect()
    }
}

/// Whether a rule like `Bash(npm test:*)` or `Bash(npm *)` allows this command.
fn covers_command(rule: &str, command: &str) -> bool {
    let Some(pattern) = rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let begins = |prefix: &str| command.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    match (pattern.strip_suffix(":*"), pattern.strip_suffix(" *")) {
        (Some(prefix), _) | (None, Some(prefix)) => begins(prefix),
        (None, None) => pattern == command,
    }
}

/// The mode of sessions here. Some modes count in the user's own settings only.
fn mode(survey: &Survey) -> (Option<String>, Option<(String, PathBuf)>) {
    let Some((mode, file)) = survey.says(&["permissions", "defaultMode"]) else { return (None, None) };
    let Some(mode) = mode.as_str().map(str::to_owned) else { return (None, None) };
    let of_user = matches!(file.origin, Origin::Managed | Origin::Settings(Scope::User));
    if !of_user && matches!(mode.as_str(), "auto" | "bypassPermissions") {
        (None, Some((mode, file.path.clone())))
    } else {
        (Some(mode), None)
    }
}

/// Whether a rule covers a whole tool. A rule for editing files covers writing them, if it names files.
fn names(rules: &[String], tool: &str) -> bool {
    let covers = |rule: &str| match rule.split_once('(').map_or((rule, ""), |(name, rest)| (name, rest.trim_end_matches(')'))) {
        (name, "" | "*" | "**" | "./**" | "/**") if name == tool => true,
        ("Edit", "**" | "./**" | "/**") => tool == "Write",
        _ => false,
    };
    rules.iter().any(|rule| covers(rule))
}

fn by_mode(mode: Option<&str>, tool: &str) -> Fate {
    match (mode, tool) {
        (Some("bypassPermissions" | "auto"), _) | (Some("acceptEdits"), "Edit" | "Write") => Fate::Allowed,
        (Some("dontAsk"), _) => Fate::Denied,
        _ => Fate::Asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_6_a_line_is_taken_apart_and_each_command_needs_its_rule() {
        let with = |rules: &[&str]| Permissions {
            mode: Some("acceptEdits".to_owned()),
            ignored_mode: None,
            allow: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            ask: Vec::new(),
            deny: Vec::new(),
        };
        let line = "npm ci && npm test -- --all | tee log";
        assert_eq!(with(&[]).unallowed(line), ["npm ci", "npm test -- --all", "tee log"]);
        assert_eq!(with(&["Bash(npm test:*)", "Bash(npm ci)"]).unallowed(line), ["tee log"]);
        assert_eq!(with(&["Bash(npm *)", "Bash(tee:*)"]).unallowed(line), Vec::<&str>::new());
        assert_eq!(with(&["Bash(np:*)"]).unallowed("npm ci"), ["npm ci"], "a word is a word");
        assert_eq!(with(&["Bash"]).unallowed(line), Vec::<&str>::new());
        let anything = Permissions { mode: Some("bypassPermissions".to_owned()), ..with(&[]) };
        assert_eq!(anything.unallowed(line), Vec::<&str>::new());
    }
}
