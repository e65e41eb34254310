//! The options that describe a loop: its prompt, and the flags of its settings, made from the one list of them.

use std::{fs, path::PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use ralph_core::loops::{Flag, Kind, LoopSettings, Setting, is_name};
use ralph_engine::ops::{resume, start};

use crate::{
    commands::{name, read_stdin},
    exit::Failure,
};

/// A loop that is wanted.
#[derive(clap::Args)]
pub(super) struct NewLoop {
    /// The task for the agent; - reads it from standard input
    #[arg(value_name = "PROMPT", help_heading = None::<&'static str>)]
    pub(super) prompt: Vec<String>,
    /// Take the prompt from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "stdin"])]
    pub(super) prompt_file: Option<PathBuf>,
    /// Take the prompt from standard input; the same as - for a prompt
    #[arg(long, conflicts_with = "prompt", hide = true)]
    pub(super) stdin: bool,
    #[command(flatten)]
    pub(super) settings: LoopFlags<true>,
    /// Start a loop that nothing ends but you: no promise, no gate, no limit
    #[arg(long)]
    pub(super) endless: bool,
    /// A name, for more than one loop in a project
    #[arg(long, value_parser = name)]
    pub(super) name: Option<String>,
}

/// A text that is not empty.
pub(super) fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("needs words".to_owned()) } else { Ok(text.to_owned()) }
}

impl NewLoop {
    /// The command line names a prompt, even if it is empty.
    pub(super) fn has_prompt(&self) -> bool {
        !self.prompt.is_empty() || self.prompt_file.is_some() || self.stdin
    }

    /// Where a loop is continued, the words are no prompt, but its name or id.
    pub(super) fn take_the_loops_name(&mut self) -> Result<(), Failure> {
        match &self.prompt[..] {
            [] => {}
            [one] if self.name.is_none() && is_name(one) => self.name = self.prompt.pop(),
            _ => {
                let message = "a loop that is continued keeps its prompt: name only the loop, as in `ralph run --continue docs`, or leave out --continue to start a new one";
                return Err(Failure::usage(message));
            }
        }
        Ok(())
    }

    /// The new loop, with its prompt read from wherever it is.
    pub(super) fn request(self) -> Result<start::Request, Failure> {
        let prompt = self.prompt()?;
        Ok(start::Request { name: self.name, prompt, settings: self.settings.0 })
    }

    /// The loop that exists, with the new limits.
    pub(super) fn again(self) -> resume::Request {
        resume::Request { which: self.name, settings: self.settings.0, goes_on: true, ..resume::Request::default() }
    }

    pub(super) fn is_from_stdin(&self) -> bool {
        self.stdin || self.prompt == ["-"]
    }

    fn prompt(&self) -> Result<String, Failure> {
        let raw = if let Some(path) = &self.prompt_file {
            fs::read(path).map_err(Failure::cannot_read(path))?
        } else if self.is_from_stdin() {
            read_stdin("the prompt", u64::MAX)?
        } else if let (true, Some(id)) = (self.prompt.is_empty(), &self.settings.0.item) {
            format!("Do {id}, one item of this project's list of work, and nothing else.").into_bytes()
        } else {
            self.prompt.join(" ").into_bytes()
        };
        let text = String::from_utf8(raw).map_err(|_| Failure::usage("the prompt is not UTF-8 text"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let prompt = text.trim_matches(['\r', '\n']);
        if prompt.trim().is_empty() {
            return Err(Failure::usage(match (&self.prompt_file, self.is_from_stdin()) {
                (Some(path), _) => format!("there is no prompt in {}", path.display()),
                (None, true) => "standard input was empty: there is no prompt".to_owned(),
                (None, false) => {
                    "there is no prompt: give it as words, with --prompt-file FILE, or - to read it from standard input".to_owned()
                }
            }));
        }
        Ok(prompt.to_owned())
    }
}

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
    let rows = Setting::ALL.iter().filter_map(|setting| Some((setting, setting.flag.as_ref()?)));
    rows.filter(move |(_, flag)| is_new || flag.resume.is_some())
}

fn arg(setting: &'static Setting, flag: &'static Flag, is_new: bool) -> Arg {
    let help = flag.resume.filter(|_| !is_new).unwrap_or(flag.help);
    let arg = Arg::new(flag.name).long(flag.name).visible_aliases(flag.alias).aliases(flag.old_name).value_name(flag.value).help(help);
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
        Kind::YesNo => arg
            .value_name("true|false")
            .value_parser(checked)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true),
        Kind::Count | Kind::Percent | Kind::Hours | Kind::Dollars => arg.value_parser(checked).allow_hyphen_values(true),
    }
}
