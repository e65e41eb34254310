//! The loops of this project: what was left behind, what cannot be read, what stands in the way of the next one.

use std::{fs, path::PathBuf, time::Duration};

use ralph_engine::{
    ops::view::{self, Status, View},
    store::{self, locked::Locked},
    sys::{files, process},
};

use super::{Case, Finding, Repair};
use crate::text::quoted;

/// Nobody writes on one small file for so long.
const ABANDONED: Duration = Duration::from_mins(1);

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let loops = view::live(&case.project);
    let mut findings: Vec<Finding> = loops.iter().flat_map(of_loop).collect();
    if loops.is_empty() {
        findings.push(Finding::good("loops", "no loop is live in this project"));
    }
    findings.extend(leftovers(case));
    findings.extend(own_folder(case));
    findings
}

fn of_loop(view: &View) -> Vec<Finding> {
    let name = &view.name;
    let line = view.line();
    let mut findings = vec![match view.status {
        Status::LeftBehind => Finding::warning("loop.left-behind", format!("{line}: its session is gone"))
            .fix(format!("ralph resume {name}"))
            .advice(format!("`ralph cancel {name}` ends it instead.")),
        Status::Corrupt => {
            let path = view.file.as_deref().map(|p| p.display().to_string()).unwrap_or_default();
            Finding::error("loop.corrupt", line)
                .fix(format!("ralph cancel {name}"))
                .advice(format!("Or mend {path}; cancelled, it lies in the archive."))
        }
        Status::Tracked => Finding::warning("loop.tracked", format!("{line}: git tracks its file, so it arms itself for nobody"))
            .fix(format!("ralph resume {name}"))
            .advice("Or remove the file from the repository: a loop is one person's."),
        Status::Paused => Finding::note("loop.paused", line).fix(format!("ralph resume {name}")),
        _ => Finding::good("loops", line),
    }];
    findings.extend(
        view.warnings.iter().map(|warning| Finding::warning("loop.keys", format!("{name}: {warning}")).advice("Correct the loop file.")),
    );
    findings
}

/// Files that a ralph left which was killed in the middle of a change.
fn leftovers(case: &Case) -> Option<Finding> {
    let claude = [Some(case.project.claude()), case.places.config.clone()].into_iter().flatten();
    let folders = claude.flat_map(|folder| [folder.join("commands"), folder]);
    let files = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let mut left: Vec<PathBuf> = files.filter(is_left).map(|entry| entry.path()).collect();
    left.sort();
    left.dedup();
    let first = left.first()?.display().to_string();
    let what = match left.len() {
        1 => format!("an interrupted ralph left a temporary file, {first}"),
        n => format!("an interrupted ralph left {n} temporary files, {first} among them"),
    };
    Some(Finding::warning("store.leftovers", what).fix("ralph doctor --fix").repair(Repair::Remove(left)))
}

/// Whether a file has a name that ralph gives to a version that is not finished (`.settings.json.ralph-123`, `settings.ralph-new`), and nobody works on it.
fn is_left(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy().into_owned();
    let is_dead = |pid: &str| pid.parse().is_ok_and(|pid| !process::is_alive(pid));
    let of_process = name.strip_prefix('.').and_then(|name| name.rsplit_once(".ralph-")).is_some_and(|(_, pid)| is_dead(pid));
    let is_new = name.ends_with(".ralph-new") && (name.starts_with("ralph-loop.") || name.starts_with("settings."));
    let is_old = |meta: fs::Metadata| meta.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED));
    (of_process || (is_new && entry.metadata().is_ok_and(is_old))) && entry.file_type().is_ok_and(|kind| kind.is_file())
}

/// Ralph's own folder: a real one, ignored by git, writable, and its lock free.
fn own_folder(case: &Case) -> Vec<Finding> {
    let own = case.project.own();
    let Ok(meta) = fs::symlink_metadata(&own) else { return Vec::new() };
    let mut findings = Vec::new();
    if meta.is_dir() && !own.join(".gitignore").exists() {
        let what = format!("{} is not ignored by git any more: its .gitignore is gone", own.display());
        findings.push(Finding::warning("store.ignored", what).fix("ralph doctor --fix").repair(Repair::Prepare));
        // Taking the lock would write it again.
        return findings;
    }
    findings.push(match Locked::acquire(&case.project) {
        Ok(_) => Finding::good("store", format!("{} is writable and its lock is free", own.display())),
        Err(store::Error::Busy) => Finding::error("store.lock", format!("another process holds {}/lock", own.display()))
            .advice(format!("`fuser {}` says which; end it if it hangs.", quoted(&own.join("lock").display().to_string()))),
        Err(e) => Finding::error("store.folder", e.to_string())
            .advice(format!("Make {} a folder that you can write to, or move it away.", own.display())),
    });
    if files::options().append(true).open(own.join("hook.log")).is_err_and(|e| e.kind() != std::io::ErrorKind::NotFound) {
        findings.push(
            Finding::warning("store.log", format!("{}/hook.log cannot be written", own.display()))
                .advice("Give it back to yourself, or remove it."),
        );
    }
    findings
}
