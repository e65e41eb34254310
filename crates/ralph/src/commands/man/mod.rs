//! `ralph man`: the manual pages.

mod page;

use std::{
    fs,
    io::{IsTerminal, Write, stdout},
    path::{Path, PathBuf},
};

use clap::{Command, ValueHint};
use ralph_engine::sys::{files, process};

use crate::{
    commands,
    exit::{Done, Failure},
    help, ui,
};

/// The program that shows a page from standard input, one screen at a time.
const READER: (&str, &[&str]) = if cfg!(target_os = "macos") { ("mandoc", &["-a"]) } else { ("man", &["-l", "-"]) };

/// Show the manual page of ralph, or of one of its commands
///
/// On a terminal the page is shown with `man`, or as plain help where there is no `man`. Into a pipe or a file goes its source, for `man -l` and for packages.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph man
  ralph man start
  ralph man explain > ralph-explain.1
  ralph man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The command; otherwise ralph itself
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write all pages into this folder
    ///
    /// The folder is created if needed. Pages of an earlier version are replaced.
    #[arg(long, value_name = "DIR", conflicts_with = "command", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Done {
    let mut root = commands::whole_tree();
    root.build();
    if let Some(dir) = &args.dir {
        return write_all(&root, dir);
    }
    let command = args.command.as_deref().and_then(|name| root.find_subcommand(name)).unwrap_or(&root);
    let source = page::of(command, &root).map_err(|e| Failure::new(format!("cannot make the page: {e}")))?;
    if !stdout().is_terminal() {
        let mut out = stdout().lock();
        // A reader that goes away has read enough.
        let _ = out.write_all(&source).and_then(|()| out.flush());
    } else if !process::show_with(READER.0, READER.1, &source) {
        help::show(commands::whole_tree(), args.command.as_deref(), args.command.is_none());
    }
    Ok(())
}

fn write_all(root: &Command, dir: &Path) -> Done {
    fs::create_dir_all(dir).map_err(Failure::cannot_write(dir))?;
    let all = all_in(root);
    for command in &all {
        let path = dir.join(page::file_name(command));
        page::of(command, root).and_then(|source| files::write_whole(&path, &source)).map_err(Failure::cannot_write(&path))?;
    }
    ui::line(format!("{} pages are in {}", all.len(), ui::path(dir)));
    Ok(())
}

/// A command with all that it has, at every depth.
fn all_in(command: &Command) -> Vec<&Command> {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    std::iter::once(command).chain(shown.flat_map(all_in)).collect()
}
