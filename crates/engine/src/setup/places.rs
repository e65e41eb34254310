//! Where Claude Code looks for settings, commands and plugins.

use std::path::{Path, PathBuf};

use crate::{hosts::client, store::project::Project};

/// Who a setup is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user, in all projects.
    User,
    /// All who work in the project: the file is checked in.
    Project,
    /// The user, in this project.
    Local,
}

impl Scope {
    pub const ALL: [Scope; 3] = [Scope::User, Scope::Project, Scope::Local];

    /// The option that names it, and the word in messages.
    pub fn word(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Local => "local",
        }
    }

    /// The command that registers ralph for it: the user is whom `ralph init` is for anyway.
    pub fn init_command(self) -> String {
        if self == Scope::User { "ralph init".to_owned() } else { format!("ralph init --{}", self.word()) }
    }
}

#[derive(Debug, Clone)]
pub struct Places {
    pub project: Project,
    /// The user's configuration folder; unknown without a home.
    pub config: Option<PathBuf>,
}

impl Places {
    pub fn of(project: &Project) -> Self {
        Places { project: project.clone(), config: client::config_folder() }
    }

    /// The settings file of a scope.
    pub fn settings(&self, scope: Scope) -> Option<PathBuf> {
        match scope {
            Scope::User => Some(self.config.as_deref()?.join("settings.json")),
            Scope::Project => Some(self.project.claude().join("settings.json")),
            Scope::Local => Some(self.project.claude().join("settings.local.json")),
        }
    }

    /// The folder for command files; the project and local scopes share one.
    pub fn commands(&self, scope: Scope) -> Option<PathBuf> {
        match scope {
            Scope::User => Some(self.config.as_deref()?.join("commands")),
            Scope::Project | Scope::Local => Some(self.project.claude().join("commands")),
        }
    }

    /// The folder that writes must stay in: a checkout can have links that point anywhere.
    pub fn bounds(&self, scope: Scope) -> Option<&Path> {
        (scope != Scope::User).then(|| self.project.root())
    }

    /// The administrator's settings for this machine.
    pub fn managed() -> PathBuf {
        PathBuf::from(match std::env::consts::OS {
            "macos" => "/Library/Application Support/ClaudeCode/managed-settings.json",
            "windows" => "C:\\Program Files\\ClaudeCode\\managed-settings.json",
            _ => "/etc/claude-code/managed-settings.json",
        })
    }
}
