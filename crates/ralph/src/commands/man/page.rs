//! A manual page: what `--help` knows of a command, in the language of `man`.

use std::io;

use clap::{Arg, ArgAction, Command};
use clap_mangen::{
    Man,
    roff::{Inline, Roff, bold, italic, roman},
};

use crate::{
    exit::EXIT_CODES,
    help::{FILES, FOR_PROGRAMS, VARIABLES, is_heading},
};

pub(crate) fn file_name(command: &Command) -> String {
    format!("{}.1", title(command))
}

fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of a command that has been built as a part of `root`, or of `root` itself.
pub(crate) fn of(command: &Command, root: &Command) -> io::Result<Vec<u8>> {
    let version = format!("ralph {}", root.get_version().unwrap_or_default());
    let command = command.clone().subcommand_help_heading("COMMANDS").subcommand_value_name("COMMAND");
    let man = Man::new(command.clone()).source(version).manual("Ralph Manual");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    synopsis(&command).to_writer(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    let mut rest = Roff::new();
    closing(&mut rest, &command);
    exit_status(&mut rest);
    if title(&command) == title(root) {
        rest.control("SH", ["FOR PROGRAMS"]);
        rest.text([roman(FOR_PROGRAMS)]);
        table(&mut rest, "ENVIRONMENT", VARIABLES);
        table(&mut rest, "FILES", FILES);
    }
    see_also(&mut rest, &command, root);
    rest.to_writer(&mut out)?;
    Ok(out)
}

/// The command line: every option with its value, and what may be given more than once with dots.
fn synopsis(command: &Command) -> Roff {
    let (options, words): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|arg| !arg.is_hide_set()).partition(|arg| !arg.is_positional());
    let mut line = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()))];
    for arg in options.into_iter().chain(words) {
        line.push(roman(" "));
        line.extend(in_synopsis(arg));
    }
    if command.has_subcommands() {
        line.extend([roman(" ["), italic("command"), roman("]")]);
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text(line);
    roff
}

fn in_synopsis(arg: &Arg) -> Vec<Inline> {
    let (open, close) = if arg.is_required_set() { ("", "") } else { ("[", "]") };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let flag = [short, long].into_iter().flatten().collect::<Vec<_>>().join("|");
    let value = if arg.get_action().takes_values() { arg.get_value_names().unwrap_or_default().join(" ") } else { String::new() };
    let gap = if flag.is_empty() || value.is_empty() { "" } else { " " };
    let is_many = matches!(arg.get_action(), ArgAction::Append) || arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    let dots = if is_many { "..." } else { "" };
    vec![roman(open), bold(flag), roman(gap), italic(value), roman(close), roman(dots)]
}

/// The text below a command's options: each heading becomes a section, and indented lines stay as they are.
fn closing(roff: &mut Roff, command: &Command) {
    let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) else { return };
    let mut literal = false;
    for line in text.to_string().lines() {
        if line.starts_with(' ') != literal && !line.is_empty() {
            literal = !literal;
            roff.control(if literal { "nf" } else { "fi" }, []);
        }
        if line.is_empty() {
            roff.control("PP", []);
        } else if is_heading(line) {
            roff.control("SH", [line.trim_end_matches(':').to_uppercase().as_str()]);
        } else {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
    }
    if literal {
        roff.control("fi", []);
    }
}

fn exit_status(roff: &mut Roff) {
    roff.control("SH", ["EXIT STATUS"]);
    for (code, _, meaning) in EXIT_CODES {
        item(roff, &code.to_string(), meaning);
    }
}

fn table(roff: &mut Roff, heading: &str, rows: &[(&str, &str)]) {
    roff.control("SH", [heading]);
    for (name, meaning) in rows {
        item(roff, name, meaning);
    }
}

fn item(roff: &mut Roff, name: &str, meaning: &str) {
    roff.control("TP", []);
    roff.text([bold(name)]);
    roff.text([roman(meaning)]);
}

/// The page of ralph itself names all others; they lead back to it.
fn see_also(roff: &mut Roff, command: &Command, root: &Command) {
    if title(command) == title(root) {
        return;
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold(title(root)), roman("(1), for the variables and files that ralph uses, and for the other commands.")]);
}
