//! `ralph plugin`: the plugin as a folder that Claude Code can install from, with this program inside.

use std::{fs, path::PathBuf};

use ralph_engine::{
    hosts::claude::plugin::{INSIDE, MARKETPLACE, NAME, files},
    sys,
};

use crate::{
    exit::{Done, Failure},
    text::quoted,
    ui,
};

/// Write the Claude Code plugin, with this program inside, into a folder
///
/// For machines where `ralph` is not on the PATH of Claude Code. Run it again after an update of ralph.
#[derive(clap::Args)]
#[command(after_help = "Example:
  ralph plugin ~/.local/share/ralph-plugin
  claude plugin marketplace add ~/.local/share/ralph-plugin
  claude plugin install ralph@ralph-loop")]
pub(crate) struct Args {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> Done {
    let folder = std::path::absolute(&args.folder).unwrap_or_else(|_| args.folder.clone());
    let failed = |what: &str, path: &std::path::Path, e: std::io::Error| Failure::new(format!("cannot {what} {}: {e}", path.display()));
    for (name, text) in files(INSIDE).map_err(|e| Failure::new(e.to_string()))? {
        let path = folder.join(name);
        sys::files::write_whole(&path, text.as_bytes()).map_err(|e| failed("write", &path, e))?;
    }
    let exe = std::env::current_exe().map_err(|e| Failure::new(format!("cannot find this program: {e}")))?;
    let program = folder.join("plugin/bin").join(format!("ralph{}", std::env::consts::EXE_SUFFIX));
    let bin = program.parent().unwrap_or(&folder);
    fs::create_dir_all(bin).map_err(|e| failed("create", bin, e))?;
    // Beside first, then in its place: a program that runs cannot be written to.
    let beside = program.with_extension("new");
    fs::copy(&exe, &beside).and_then(|_| fs::rename(&beside, &program)).map_err(|e| failed("write", &program, e))?;
    ui::line(format!("{} {}", ui::good("Written:"), folder.display()));
    ui::line(format!("  claude plugin marketplace add {}", quoted(&folder.display().to_string())));
    ui::line(format!("  claude plugin install {NAME}@{MARKETPLACE}"));
    Ok(())
}
