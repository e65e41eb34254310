//! The flags of a loop's settings, made from the one list of them.

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use ralph_core::loops::{Flag, Kind, LoopSettings, SETTINGS, Setting};

/// The settings that were given to a command: all of them for a new loop, or its limits where one is resumed.
pub(super) struct LoopFlags<const NEW: bool>(pub(super) LoopSettings);

impl<const NEW: bool> clap::Args for LoopFlags<NEW> {
    fn augment_args(command: Command) -> Command {
        command.args(rows(NEW).map(|(setting, flag)| arg(setting, flag, NEW)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const NEW: bool> clap::FromArgMatches for LoopFlags<NEW> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = LoopFlags(LoopSettings::default());
        flags.update_from_arg_matches(matches).map(|()| flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (setting, flag) in rows(NEW) {
            for text in matches.get_many::<String>(flag.name).into_iter().flatten() {
                setting.set(&mut self.0, text).map_err(|wanted| clap::Error::raw(clap::error::ErrorKind::InvalidValue, wanted))?;
            }
        }
        Ok(())
    }
}

/// The flags that say nothing about a loop that exists.
pub(super) fn only_for_a_new_loop() -> impl Iterator<Item = &'static str> {
    rows(true).filter(|(_, flag)| flag.resume.is_none()).map(|(_, flag)| flag.name)
}

fn rows(is_new: bool) -> impl Iterator<Item = (&'static Setting, &'static Flag)> {
    let rows = SETTINGS.iter().filter_map(|setting| Some((setting, setting.flag.as_ref()?)));
    rows.filter(move |(_, flag)| is_new || flag.resume.is_some())
}

fn arg(setting: &'static Setting, flag: &'static Flag, is_new: bool) -> Arg {
    let help = flag.resume.filter(|_| !is_new).unwrap_or(flag.help);
    let arg = Arg::new(flag.name).long(flag.name).value_name(flag.value).help(help);
    let arg = if is_new && !flag.more.is_empty() { arg.long_help(format!("{help}\n\n{}", flag.more)) } else { arg };
    let checked = move |text: &str| match setting.set(&mut LoopSettings::default(), text) {
        Ok(()) => Ok(text.to_owned()),
        Err(wanted) => Err(format!("needs {wanted}")),
    };
    match setting.kind {
        Kind::Choice(names) => arg.value_parser(PossibleValuesParser::new(names)),
        Kind::Commands => arg.value_parser(checked).action(ArgAction::Append),
        Kind::Text => arg.value_parser(checked),
        Kind::Time => arg.value_parser(checked).requires("verify"),
        Kind::YesNo | Kind::Count | Kind::Percent | Kind::Hours | Kind::Dollars => arg.value_parser(checked).allow_hyphen_values(true),
    }
}
