//! The loops of this project: what was left behind, what cannot be read, what stands in the way of the next one.

use std::{fs, path::PathBuf};

use ralph_engine::{
    ops::view::{self, Status, View},
    store::{self, locked::Locked},
    sys::{files, process},
};

use super::{Case, Finding, Repair};

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
    let is_left = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let dead = |pid: &str| pid.parse().is_ok_and(|pid| !process::is_alive(pid));
        name.ends_with(".ralph-new") || name.rsplit_once(".ralph-").is_some_and(|(_, pid)| dead(pid))
    };
    let folders = [Some(case.project.claude()), case.places.config.clone()];
    let files = folders.into_iter().flatten().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let mut left: Vec<PathBuf> = files.map(|entry| entry.path()).filter(is_left).collect();
    left.sort();
    left.dedup();
    let first = left.first()?.display().to_string();
    let what = format!("an interrupted ralph left {} temporary files, {first} among them", left.len());
    Some(Finding::warning("store.leftovers", what).fix("ralph doctor --fix").repair(Repair::Remove(left)))
}

/// Ralph's own folder: a real one, ignored by git, writable, and its lock free.
fn own_folder(case: &Case) -> Vec<Finding> {
    let own = case.project.own();
    if fs::symlink_metadata(&own).is_err() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if own.is_dir() && !own.join(".gitignore").exists() {
        let what = format!("{} is not ignored by git any more: its .gitignore is gone", own.display());
        findings.push(Finding::warning("store.ignored", what).fix("ralph doctor --fix").repair(Repair::Prepare));
        // Taking the lock would write it again.
        return findings;
    }
    findings.push(match Locked::acquire(&case.project) {
        Ok(_) => Finding::good("store", format!("{} is writable and its lock is free", own.display())),
        Err(store::Error::Busy) => Finding::error("store.lock", format!("another process holds {}/lock", own.display()))
            .advice(format!("`fuser {}/lock` says which; end it if it hangs.", own.display())),
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
