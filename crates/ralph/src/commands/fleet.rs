//! `ralph fleet`: the program `ralph-fleet`, found and run in this one's place.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{
    Arg, ArgAction, Command,
    builder::{PossibleValuesParser, Resettable, Str, StyledStr},
};
use ralph_engine::sys::{command::Task, process};
use serde::Deserialize;

use crate::exit::{Done, Failure};

/// Work on a list with several agents at once, and land what is proven
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
#[command(after_help = "Examples:
  ralph fleet run feature_list.json --workers 4 --verify \"cargo test\" --usd 60
  ralph fleet --help")]
pub(crate) struct Args {
    /// A command of the fleet's and its options; --help lists them
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(args: Args, directory: Option<&Path>) -> Done {
    let Some(program) = program() else {
        return Err(Failure::new(format!(
            "the program ralph-fleet is neither beside {} nor on your PATH. Every package of ralph includes it: install ralph again, \
             or from a checkout `cargo install --locked --profile dist --path crates/fleet`",
            std::env::current_exe().map_or_else(|_| "ralph".to_owned(), |own| own.display().to_string())
        )));
    };
    let folder = directory.map(|folder| [OsString::from("-C"), folder.into()]).into_iter().flatten();
    let failed = process::run_instead(&program, folder.chain(args.args));
    match failed {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::coded(code, "")),
        Err(e) => Err(Failure::new(format!("{} cannot be started: {e}", program.display()))),
    }
}

fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    own.ok().and_then(|own| beside(&own)).or_else(|| process::which("ralph-fleet"))
}

/// The program beside this one, where every package puts it.
pub(super) fn beside(own: &Path) -> Option<PathBuf> {
    let fleet = own.with_file_name(format!("ralph-fleet{}", std::env::consts::EXE_SUFFIX));
    fleet.is_file().then_some(fleet)
}

/// A command as `ralph-fleet described` tells it.
#[derive(Deserialize)]
struct Described {
    name: String,
    about: Option<String>,
    long_about: Option<String>,
    after_help: Option<String>,
    args: Vec<Argument>,
    commands: Vec<Described>,
}

#[derive(Deserialize)]
struct Argument {
    id: String,
    short: Option<char>,
    long: Option<String>,
    takes_value: bool,
    value: Option<String>,
    values: Vec<String>,
    many: bool,
    required: bool,
    global: bool,
    help: Option<String>,
    heading: Option<String>,
}

/// The tree of commands with those of the fleet, as the installed `ralph-fleet` tells them: for the manual, completions and help. Without it the tree stays as it is.
pub(crate) fn with_its_commands(tree: Command) -> Command {
    let described = described();
    tree.mut_subcommand("fleet", |stub| {
        let stub = stub.disable_help_flag(false);
        match described {
            Some(described) => filled(stub.mut_arg("args", |arg| arg.hide(true)), described),
            None => stub,
        }
    })
}

fn described() -> Option<Described> {
    let (program, folder) = (program()?, std::env::current_dir().ok()?);
    let task = Task {
        program: program.into(),
        args: vec!["described".into()],
        folder: &folder,
        vars: Vec::new(),
        hidden: Vec::new(),
        input: Vec::new(),
        limit: Duration::from_secs(10),
        most_output: 1 << 20,
    };
    serde_json::from_slice(&task.run().ok().filter(|ran| ran.code == Some(0))?.stdout).ok()
}

fn filled(command: Command, described: Described) -> Command {
    let styled = |text: Option<String>| Resettable::from(text.map(StyledStr::from));
    let command = command.about(styled(described.about)).long_about(styled(described.long_about)).after_help(styled(described.after_help));
    // The folder is an option of every command of ralph's.
    let own = described.args.into_iter().filter(|arg| arg.long.as_deref() != Some("directory"));
    command
        .disable_help_subcommand(true)
        .args(own.map(argument))
        .subcommands(described.commands.into_iter().map(|sub| filled(Command::new(sub.name.clone()), sub)))
}

fn argument(told: Argument) -> Arg {
    let action = match (told.takes_value, told.many) {
        (true, false) => ArgAction::Set,
        (true, true) => ArgAction::Append,
        (false, _) => ArgAction::SetTrue,
    };
    let mut arg = Arg::new(told.id).action(action).required(told.required).global(told.global);
    let name = |text: Option<String>| Resettable::from(text.map(Str::from));
    arg = arg.short(told.short).long(name(told.long)).help_heading(name(told.heading));
    arg = arg.help(Resettable::from(told.help.map(StyledStr::from)));
    if let Some(value) = told.value.filter(|_| told.takes_value) {
        arg = arg.value_name(value);
    }
    if !told.values.is_empty() {
        arg = arg.value_parser(PossibleValuesParser::new(told.values));
    }
    arg
}
