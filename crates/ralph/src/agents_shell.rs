//! Commands that an agent may use in its own shell: one row for each command, kept in step with `docs/SECURITY.md` by a test.
//!
//! An agent that is allowed to run `ralph` must not get by it what it is not allowed to do otherwise: run commands, end or escape its loop, speak in the
//! person's name, change files that it may not edit. This is no wall against an agent that may run any command at all.

use clap::ArgMatches;
use ralph_engine::hosts;

use crate::exit::{BLOCKED, FAILED, Failure};

/// When a command is refused there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Allowed,
    Refused,
    RefusedWith(&'static [&'static str]),
    RefusedWithout(&'static str),
}

/// Each command, its rule, and the reason.
const TABLE: [(&str, Rule, &str); 28] = [
    ("hook", Rule::Refused, "events come from the client, which calls the hook itself"),
    ("start", Rule::Refused, "only a person can start a loop"),
    ("run", Rule::Refused, "a run inside a session would not be counted"),
    ("cancel", Rule::Refused, "only a person can end a loop without proof"),
    ("pause", Rule::Refused, "only a person can pause a loop"),
    ("resume", Rule::Refused, "only a person can resume a loop, or give it new limits"),
    ("steer", Rule::Refused, "only a person can leave notes"),
    ("status", Rule::Allowed, "it only shows"),
    ("watch", Rule::Allowed, "it only shows; its keys do nothing there"),
    ("statusline", Rule::RefusedWith(&["after"]), "it would run any command"),
    ("list", Rule::Allowed, "it only shows"),
    ("pr", Rule::Allowed, "it only shows, and waits for what is decided elsewhere"),
    ("log", Rule::Allowed, "it only shows"),
    ("explain", Rule::Allowed, "it only shows"),
    (
        "report",
        Rule::RefusedWith(&["html", "output", "open", "step_summary"]),
        "it would write a file that the agent may not be allowed to",
    ),
    ("diff", Rule::Allowed, "it only shows"),
    ("rollback", Rule::RefusedWithout("dry_run"), "it would overwrite files"),
    ("item", Rule::RefusedWith(&["directory"]), "items of this project are done if their own commands pass; others are not the agent's"),
    ("init", Rule::RefusedWithout("dry_run"), "only a person can change the client's settings"),
    ("uninstall", Rule::RefusedWithout("dry_run"), "only a person can change the client's settings"),
    ("doctor", Rule::RefusedWith(&["fix", "notify"]), "only a person can change the client's settings, or have any command run (cmd:LINE)"),
    (
        "gate",
        Rule::RefusedWith(&["accept", "gates", "junit", "directory"]),
        "only a person can accept changes, choose other commands or another project, or have a file written",
    ),
    ("trust", Rule::RefusedWithout("list"), "only a person can trust commands"),
    ("bundle", Rule::Refused, "a bundle decides what counts as proven"),
    ("fleet", Rule::Allowed, "there only what shows something is allowed"),
    ("demo", Rule::Allowed, "it plays in a temporary folder"),
    ("completions", Rule::Allowed, "it only shows"),
    ("man", Rule::RefusedWith(&["dir"]), "it would write files that the agent may not be allowed to"),
];

pub(crate) fn refusal(command: &str, args: &ArgMatches) -> Option<Failure> {
    let (_, rule, why) = TABLE.iter().find(|(name, ..)| *name == command)?;
    let is_given = |option: &str| matches!(args.value_source(option), Some(clap::parser::ValueSource::CommandLine));
    let form = match rule {
        Rule::Allowed => return None,
        Rule::RefusedWith(options) => options.iter().find(|option| is_given(option)).map(|option| format!(" {}", spelled(option)))?,
        Rule::RefusedWithout(option) if is_given(option) => return None,
        Rule::Refused | Rule::RefusedWithout(_) => String::new(),
    };
    let sign = hosts::of_an_agent()?;
    let message =
        format!("this is an agent's shell ({sign} is set), and {why}: ask the person to run `ralph {command}{form}` in their own terminal");
    // A run that a run's session starts has always ended so.
    Some(Failure::coded(if command == "run" { BLOCKED } else { FAILED }, message))
}

/// An option as it is typed.
fn spelled(option: &str) -> String {
    format!("--{}", option.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row as `docs/SECURITY.md` has it.
    fn written((command, rule, why): &(&str, Rule, &str)) -> String {
        let spelled = |options: &[&str]| options.iter().map(|option| format!("`{}`", spelled(option))).collect::<Vec<_>>().join(", ");
        let rule = match rule {
            Rule::Allowed => "allowed".to_owned(),
            Rule::Refused => "refused".to_owned(),
            Rule::RefusedWith(options) => format!("refused with {}", spelled(options)),
            Rule::RefusedWithout(option) => format!("refused without {}", spelled(&[option])),
        };
        format!("| `ralph {command}` | {rule} | {why} |")
    }

    /// No command is forgotten, and no option that a rule names is misspelt.
    #[test]
    fn t2_every_command_has_its_row() {
        let tree = crate::commands::tree();
        let commands: Vec<&str> = tree.get_subcommands().map(clap::Command::get_name).filter(|name| *name != "help").collect();
        assert_eq!(commands.len(), TABLE.len(), "{commands:?}");
        for (name, rule, _) in &TABLE {
            let command = tree.find_subcommand(name).unwrap();
            let options: &[&str] = match rule {
                Rule::Allowed | Rule::Refused => &[],
                Rule::RefusedWith(options) => options,
                Rule::RefusedWithout(option) => std::slice::from_ref(option),
            };
            for option in options {
                let known = command.get_arguments().chain(tree.get_arguments()).any(|arg| arg.get_id() == option);
                assert!(known, "{name} {option}");
            }
        }
    }

    /// The options that an agent may use, beside those that say which loop is meant and `--json`. Who adds one decides here, or in the table, whose it is.
    const AN_AGENTS: [(&str, &[&str]); 14] = [
        ("status", &["all"]),
        ("watch", &["all"]),
        ("list", &["all"]),
        ("pr", &["wait", "timeout"]),
        ("log", &["follow", "since", "reason", "last"]),
        ("explain", &["what", "replay"]),
        ("report", &["markdown", "junit", "prometheus", "all"]),
        ("diff", &["what", "stat", "paths"]),
        ("item", &["action", "ids", "list"]),
        ("gate", &["names", "preset", "cached", "keep_going"]),
        // Its own program has a rule for each of its commands.
        ("fleet", &["args"]),
        ("demo", &["fast", "keep"]),
        ("completions", &["shell"]),
        ("man", &["command"]),
    ];

    #[test]
    fn t2_no_option_is_an_agents_by_default() {
        let tree = crate::commands::tree();
        let of_all: Vec<&str> = tree.get_arguments().map(|arg| arg.get_id().as_str()).chain(["which", "name", "of_loop", "json"]).collect();
        for (name, rule, _) in &TABLE {
            let refused: &[&str] = match rule {
                Rule::Allowed => &[],
                Rule::RefusedWith(options) => options,
                Rule::Refused | Rule::RefusedWithout(_) => continue,
            };
            let allowed = AN_AGENTS.iter().find(|(command, _)| command == name).map_or(&[][..], |(_, options)| options);
            let command = tree.find_subcommand(name).unwrap();
            let options =
                command.get_arguments().map(|arg| arg.get_id().as_str()).filter(|id| !of_all.contains(id) && !refused.contains(id));
            assert_eq!(options.collect::<Vec<_>>(), allowed, "{name}");
        }
    }

    #[test]
    fn t2_the_documentation_has_the_same_table() {
        let page = include_str!("../../../docs/SECURITY.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `ralph ")).collect();
        assert_eq!(rows, TABLE.iter().map(written).collect::<Vec<_>>());
    }
}
