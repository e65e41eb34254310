//! `ralph init --plugin`: the plugin as a folder that Claude Code can install from, with this program inside.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_engine::{
    hosts::claude::plugin::{INSIDE, MARKETPLACE, NAME, files},
    sys,
};
use serde_json::Value;

use crate::{
    exit::{Done, Failure},
    journal_lines::quoted,
    ui,
};

/// The file that tells what a folder offers.
const OFFER: &str = ".claude-plugin/marketplace.json";
/// Ralph's own is far smaller.
const MAX_OFFER: usize = 1 << 20;

pub(super) fn write(folder: &Path) -> Done {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let program = format!("plugin/bin/ralph{}", std::env::consts::EXE_SUFFIX);
    let files = files(INSIDE).map_err(|e| Failure::new(e.to_string()))?;
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).chain([program.as_str()]).collect();
    may_write(&folder, &names, &program)?;
    for (name, text) in &files {
        let path = folder.join(name);
        sys::files::write_whole(&path, text.as_bytes()).map_err(Failure::cannot_write(&path))?;
    }
    let exe = std::env::current_exe().map_err(|e| Failure::new(format!("cannot find this program: {e}")))?;
    let program = folder.join(program);
    sys::files::place_program(&exe, &program).map_err(Failure::cannot_write(&program))?;
    let shown = ui::path(&folder);
    ui::line(format!("{} {shown}", ui::good("Written:")));
    ui::line(format!("  claude plugin marketplace add {}", quoted(&shown)));
    ui::line(format!("  claude plugin install {NAME}@{MARKETPLACE}"));
    Ok(())
}

/// Only a folder that has none of the files, or that an earlier run wrote, and no link on the way to any: the files may be a person's work.
fn may_write(folder: &Path, names: &[&str], program: &str) -> Done {
    let refused = |path: &Path, why: &str| Failure::new(format!("{} {why}. Nothing was written: choose an empty folder", path.display()));
    let between = |name: &str| Path::new(name).ancestors().skip(1).map(|part| folder.join(part)).filter(|part| part != folder).collect();
    let folders: Vec<PathBuf> = names.iter().flat_map(|name| -> Vec<PathBuf> { between(name) }).collect();
    if let Some(odd) = folders.iter().find(|path| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir())) {
        return Err(refused(odd, "is not a folder"));
    }
    let taken = names.iter().map(|name| folder.join(name)).find(|path| fs::symlink_metadata(path).is_ok());
    match taken {
        Some(path) if !is_earlier(folder, program) => Err(refused(&path, "already exists, and no earlier `ralph init --plugin` wrote it")),
        _ => Ok(()),
    }
}

/// Whether an earlier ralph wrote this folder. Ralph's own sources offer the same plugin, but without the program.
fn is_earlier(folder: &Path, program: &str) -> bool {
    let is_plain = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok_and(|meta| meta.is_file());
    let offer = || serde_json::from_slice::<Value>(&sys::files::read(&folder.join(OFFER), MAX_OFFER).ok()?).ok();
    is_plain(OFFER) && is_plain(program) && offer().is_some_and(|offer| offer["name"] == MARKETPLACE)
}
