//! `ralph completions`: what a shell needs to complete ralph's command line.

use std::io::{Write, stdout};

use clap::ValueEnum;
use clap_complete::{Shell, generate};
use ralph_engine::sys::env;

use crate::{
    commands,
    exit::{Done, Failure},
};

/// Print a completion script for your shell
///
/// Put the script where your shell looks for it, once, and again after an update of ralph.
#[derive(clap::Args)]
#[command(
    after_help = "Example:
  mkdir -p ~/.local/share/bash-completion/completions
  ralph completions bash > ~/.local/share/bash-completion/completions/ralph",
    after_long_help = "Examples:
  bash:
    mkdir -p ~/.local/share/bash-completion/completions
    ralph completions bash > ~/.local/share/bash-completion/completions/ralph
  zsh, with `fpath+=(~/.zfunc)` before `compinit` in ~/.zshrc:
    mkdir -p ~/.zfunc
    ralph completions zsh > ~/.zfunc/_ralph
  fish:
    mkdir -p ~/.config/fish/completions
    ralph completions fish > ~/.config/fish/completions/ralph.fish
  PowerShell:
    New-Item -ItemType Directory -Force (Split-Path $PROFILE)
    ralph completions powershell >> $PROFILE
  Elvish:
    mkdir -p ~/.config/elvish
    ralph completions elvish >> ~/.config/elvish/rc.elv

Only for the shell that is open:
  source <(ralph completions bash)"
)]
pub(crate) struct Args {
    /// The shell; otherwise the one that $SHELL names
    #[arg(value_name = "SHELL")]
    shell: Option<Shell>,
}

pub(crate) fn run(args: &Args) -> Done {
    let shell = args.shell.or_else(|| Shell::from_shell_path(env::shell()?)).ok_or_else(which)?;
    let mut script = Vec::new();
    generate(shell, &mut commands::whole_tree(), "ralph", &mut script);
    let mut out = stdout().lock();
    // A reader that goes away has read enough.
    let _ = out.write_all(&script).and_then(|()| out.flush());
    Ok(())
}

fn which() -> Failure {
    let known: Vec<String> = Shell::value_variants().iter().map(ToString::to_string).collect();
    Failure::usage(format!("say which shell: {}", known.join(", ")))
}
