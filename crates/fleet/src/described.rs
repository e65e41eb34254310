//! The commands and options of `ralph fleet` as JSON, for `ralph`, which makes its manual pages and completions of them.

use clap::{Arg, ArgAction, Command, builder::StyledStr};
use serde_json::{Value, json};

pub(crate) fn of(command: &Command) -> Value {
    let args: Vec<Value> = command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_built_in(arg)).map(argument).collect();
    let commands: Vec<Value> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(of).collect();
    json!({
        "name": command.get_name(), "about": text(command.get_about()), "long_about": text(command.get_long_about()),
        "after_help": text(command.get_after_help()), "args": args, "commands": commands,
    })
}

/// What every command of clap's has: `ralph` has it, too.
fn is_built_in(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version)
}

fn argument(arg: &Arg) -> Value {
    let takes_value = arg.get_action().takes_values();
    let values: Vec<String> = if takes_value { arg.get_possible_values() } else { Vec::new() }
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    let is_many = matches!(arg.get_action(), ArgAction::Append) || arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    json!({
        "id": arg.get_id().as_str(), "short": arg.get_short(), "long": arg.get_long(), "takes_value": takes_value,
        "value": arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string), "values": values, "many": is_many,
        "required": arg.is_required_set(), "global": arg.is_global_set(), "help": text(arg.get_help()), "heading": arg.get_help_heading(),
    })
}

fn text(text: Option<&StyledStr>) -> Option<String> {
    text.map(ToString::to_string)
}
