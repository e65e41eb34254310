//! How the agents of a fleet are started, and how much each job may use: flags of `ralph run`, which each job's own `ralph run` gets.

use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser};
use ralph_core::{
    loops::{Flag, LoopSettings, Setting},
    text::{clean, nearest},
};
use ralph_engine::hosts;

use crate::{
    problem::{Problem, Result},
    records::Spec,
};

/// The limits that count what a loop has used: given once more, they would begin anew.
const COUNTED: [&str; 3] = ["--max-iterations", "--hours", "--tokens"];

#[derive(clap::Args)]
#[command(next_help_heading = "The sessions, as in `ralph run`")]
pub(crate) struct Sessions {
    /// The agent, or acp:NAME for one over the Agent Client Protocol [default: claude]
    #[arg(long, value_name = "AGENT", value_parser = PossibleValuesParser::new(hosts::headless_names()), hide_possible_values = true, conflicts_with_all = ["agent_cmd", "acp_cmd"])]
    agent: Option<String>,
    /// An agent that goes on while the account of the one before is used up
    #[arg(long, value_name = "AGENT[=MODEL]", value_parser = hosts::check_fallback)]
    fallback: Vec<String>,
    /// Another program: it reads the prompt on standard input
    #[arg(long, value_name = "CMD", conflicts_with_all = ["permission_mode", "inner"])]
    agent_cmd: Option<String>,
    /// Another program that speaks the Agent Client Protocol
    #[arg(long, value_name = "CMD", conflicts_with = "agent_cmd")]
    acp_cmd: Option<String>,
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What an agent may do without asking
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(hosts::PERMISSION_MODES))]
    permission_mode: Option<String>,
    /// How often a session is sent back while gates fail, before the iteration ends
    #[arg(long, value_name = "N")]
    inner: Option<u64>,
    #[command(flatten, next_help_heading = "Limits of each job, as in `ralph run`")]
    limits: Limits,
}

impl Sessions {
    /// As each `ralph run` gets them: names and values in turn.
    pub(crate) fn args(&self) -> Vec<String> {
        let one = [
            ("--agent", self.agent.clone()),
            ("--agent-cmd", self.agent_cmd.clone()),
            ("--acp-cmd", self.acp_cmd.clone()),
            ("--model", self.model.clone()),
            ("--permission-mode", self.permission_mode.clone()),
            ("--inner", self.inner.map(|n| n.to_string())),
        ];
        let named = one.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        let fallback = self.fallback.iter().map(|agent| ["--fallback".to_owned(), agent.clone()]);
        let limits = self.limits.0.given().map(|(_, flag, values)| [format!("--{}", flag.name), values.concat()]);
        named.chain(fallback).chain(limits).flatten().collect()
    }
}

/// Refuses a list whose items name agents that do not exist: each of these jobs would only wait for a person.
pub(crate) fn refuse_unknown_agents(list: &str, items: &[Spec]) -> Result<()> {
    let known = hosts::headless_names();
    let unknown = items.iter().find_map(|item| Some((&item.id, item.agent.as_deref().filter(|agent| !known.contains(agent))?)));
    let Some((id, agent)) = unknown else { return Ok(()) };
    let meant = nearest(agent, known.iter().copied());
    let help = meant.map_or_else(|| format!("there are {}", known.join(", ")), |meant| format!("did you mean {meant}?"));
    Err(Problem::new(format!("{list}: {id} names the agent {}, which does not exist; {help}", clean(agent))))
}

/// The value of a flag for a loop that goes on, `released_at` this iteration by a person, who lets its limits begin anew. `None`: what its bundle has counts.
pub(crate) fn again(flag: &str, value: &str, released_at: Option<u64>) -> Option<String> {
    if !COUNTED.contains(&flag) {
        return Some(value.to_owned());
    }
    let before = released_at?;
    Some(match (flag, value.parse::<u64>()) {
        // The number of the last iteration, not how many there may be.
        ("--max-iterations", Ok(n)) if n > 0 => before.saturating_add(n).to_string(),
        _ => value.to_owned(),
    })
}

/// The limits in the one list of settings that a loop can have anew. Money is the fleet's.
struct Limits(LoopSettings);

fn rows() -> impl Iterator<Item = (&'static Setting, &'static Flag)> {
    let rows = Setting::ALL.iter().filter_map(|setting| Some((setting, setting.flag.as_ref()?)));
    rows.filter(|(_, flag)| flag.resume.is_some() && flag.name != "usd")
}

impl clap::Args for Limits {
    fn augment_args(command: Command) -> Command {
        command.args(rows().map(|(setting, flag)| {
            let checked = move |text: &str| match setting.set(&mut LoopSettings::default(), text) {
                Ok(()) => Ok(text.to_owned()),
                Err(wanted) => Err(format!("needs {wanted}")),
            };
            Arg::new(flag.name).long(flag.name).value_name(flag.value).help(flag.help).value_parser(checked).allow_hyphen_values(true)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Limits {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let mut limits = Limits(LoopSettings::default());
        limits.update_from_arg_matches(matches).map(|()| limits)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        for (setting, flag) in rows() {
            if let Some(text) = matches.get_one::<String>(flag.name) {
                setting.set(&mut self.0, text).map_err(|wanted| clap::Error::raw(clap::error::ErrorKind::InvalidValue, wanted))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_a_limit_that_counts_is_given_once_and_anew_after_a_release() {
        for (flag, value, goes_on, released) in [
            ("--hours", "2", None, Some("2")),
            ("--tokens", "900", None, Some("900")),
            ("--max-iterations", "5", None, Some("12")),
            ("--max-iterations", "0", None, Some("0")),
            ("--stall-iterations", "3", Some("3"), Some("3")),
            ("--model", "7", Some("7"), Some("7")),
        ] {
            assert_eq!(again(flag, value, None).as_deref(), goes_on, "{flag}");
            assert_eq!(again(flag, value, Some(7)).as_deref(), released, "{flag}");
        }
    }
}
