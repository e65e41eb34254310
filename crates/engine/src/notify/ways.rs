//! The notifications that `ralph.toml`, the command line and the environment ask for.

use ralph_core::{
    config::{self, Notify},
    text::opening,
};

use crate::{gates::declared, hosts, store::project::Project, sys::env};

/// The ways to notify.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ways {
    pub desktop: bool,
    pub terminal: bool,
    /// Lines for the shell.
    pub commands: Vec<String>,
    /// Addresses that get a JSON document.
    pub webhooks: Vec<String>,
}

impl Ways {
    /// All ways of a run in this project, and a sentence for each that is left out. `asked` is what the command line names; an error is a mistake in that.
    pub fn of_run(project: &Project, asked: &[String]) -> Result<(Self, Vec<String>), String> {
        // A variable that an agent set does not count.
        let (mut ways, left_out) = Ways::of_project(project, env::notify().filter(|_| hosts::of_an_agent().is_none()));
        for text in asked {
            ways.add(text).map_err(|why| format!("--notify: {why}"))?;
        }
        Ok((ways, left_out))
    }

    /// The same for a loop in the client's own session, whose hooks have the client's environment. The client has the terminal, and shows notifications of its
    /// own there.
    pub fn of_session(project: &Project) -> (Self, Vec<String>) {
        let (ways, left_out) = Ways::of_project(project, env::notify());
        (Ways { terminal: false, ..ways }, left_out)
    }

    fn of_project(project: &Project, variable: Option<String>) -> (Self, Vec<String>) {
        let mut ways = Ways::default();
        let mut left_out = ways.add_settings(project);
        if let Some(wanted) = variable {
            left_out.extend(ways.add_list(&wanted));
        }
        (ways, left_out)
    }

    pub fn is_empty(&self) -> bool {
        *self == Ways::default()
    }

    /// One way, in the words of `--notify`.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        match text.trim() {
            "desktop" => self.desktop = true,
            "terminal" => self.terminal = true,
            text => match text.strip_prefix("cmd:").map(str::trim) {
                Some("") => return Err("there is no command after cmd:".to_owned()),
                Some(line) => add(&mut self.commands, line),
                None if Notify::is_address(text) => add(&mut self.webhooks, text),
                // An address holds a secret more often than not.
                None if text.contains("://") => return Err(
                    "this is no address that can be asked: it needs http:// or https:// and a host, without blanks, quotes or backslashes"
                        .to_owned(),
                ),
                None => {
                    return Err(format!(
                        "\"{}\" is not a way to notify you: use desktop, terminal, an address (https://…) or cmd:LINE",
                        opening(text, 40)
                    ));
                }
            },
        }
        Ok(())
    }

    /// Several ways with commas between; a command is the rest of the text.
    fn add_list(&mut self, text: &str) -> Vec<String> {
        let mut left_out = Vec::new();
        let mut rest = text.trim_matches([',', ' ']);
        while !rest.is_empty() {
            let end = if rest.starts_with("cmd:") { rest.len() } else { rest.find(',').unwrap_or(rest.len()) };
            let (one, more) = rest.split_at(end);
            if let Err(why) = self.add(one) {
                left_out.push(format!("RALPH_NOTIFY: {why}"));
            }
            rest = more.trim_start_matches([',', ' ']);
        }
        left_out
    }

    /// Adds what `ralph.toml` asks for. Its command and its address count only once a person trusts the file.
    fn add_settings(&mut self, project: &Project) -> Vec<String> {
        let (notify, trust) = match declared::config_of_runs(project) {
            None => return Vec::new(),
            Some(Err(problem)) => return vec![format!("{}, so its notifications are left out", problem.what)],
            Some(Ok((config, trust))) => (config.notify, trust),
        };
        let Notify { desktop, terminal, command, webhook } = notify;
        self.desktop |= desktop;
        self.terminal |= terminal;
        let asks = command.is_some() || webhook.is_some();
        if trust.is_trusted() {
            if let Some(line) = &command {
                add(&mut self.commands, line);
            }
            if let Some(address) = &webhook {
                add(&mut self.webhooks, address);
            }
        } else if asks {
            let why = "is not trusted, or has changed since it was";
            return vec![format!("{} {why}, so its notifications are left out: `ralph trust` shows them and asks", config::FILE)];
        }
        Vec::new()
    }
}

fn add(list: &mut Vec<String>, text: &str) {
    if !list.iter().any(|known| known == text) {
        list.push(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_8_ways_are_named_by_words() {
        let mut ways = Ways::default();
        for text in ["desktop", " terminal ", "https://example.org/hook?x=1", "http://127.0.0.1:1", "cmd: say done, now", "desktop"] {
            assert_eq!(ways.add(text), Ok(()), "{text}");
        }
        assert!(ways.desktop && ways.terminal);
        assert_eq!((ways.commands, ways.webhooks.len()), (vec!["say done, now".to_owned()], 2));
        for text in ["", "dekstop", "cmd:", "https://", "https://a b", "ftp://x", "https://secret\"x"] {
            let why = Ways::default().add(text).unwrap_err();
            assert!(!why.contains("secret") && why.len() > 20, "{text}: {why}");
        }
    }

    #[test]
    fn s4_8_a_list_ends_with_its_command() {
        let mut ways = Ways::default();
        let left_out = ways.add_list("desktop, nonsense,https://example.org/a ,cmd:echo a, b");
        assert_eq!(left_out.len(), 1, "{left_out:?}");
        assert!(ways.desktop && !ways.terminal);
        assert_eq!((ways.commands, ways.webhooks), (vec!["echo a, b".to_owned()], vec!["https://example.org/a".to_owned()]));
        assert_eq!(Ways::default().add_list(" , "), Vec::<String>::new());
    }
}
