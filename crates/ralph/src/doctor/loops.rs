//! The loops of this project: what was left behind, what cannot be read, what stands in the way of the next one.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::{
    config,
    loops::is_name,
    text::{clean, time},
};
use ralph_engine::{
    hosts::claude::{commands::Command, compaction::Compaction},
    store::{
        self,
        project_lock::Locked,
        trouble::{self, Trouble},
    },
    sys::{clock, files, process},
    view::{self, Status, View},
};

use super::{Case, Finding, Repair};
use crate::{advice, journal_lines::quoted};

/// Writing one small file never takes so long.
const ABANDONED: Duration = Duration::from_mins(1);
/// Older problems have been seen, or are over.
const TOLD_MS: i64 = 7 * 24 * 3_600_000;
const MOST_TROUBLES: usize = 5;
/// No system that ralph runs on gives a process a larger number.
const MAX_PID: u32 = 4_194_304;

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let loops = view::live(&case.project);
    let mut findings: Vec<Finding> = loops.iter().flat_map(of_loop).collect();
    if loops.is_empty() {
        findings.push(Finding::good("loops", "no loop is live in this project"));
    }
    findings.extend(compacting(case));
    findings.extend(leftovers(case));
    findings.extend(own_folder(case));
    findings.extend(troubles(case));
    findings
}

fn of_loop(view: &View) -> Vec<Finding> {
    let name = &view.name;
    let line = view.line();
    let goes_on = advice::resume(view);
    let mut findings = vec![match view.status {
        Status::LeftBehind => {
            Finding::warning("loop.left-behind", format!("{line}: its {} is gone", if view.by_run { "`ralph run`" } else { "session" }))
                .fix(goes_on)
                .advice(format!("`ralph cancel {name}` ends it instead."))
        }
        Status::Corrupt => {
            let path = view.file.as_deref().map(|p| p.display().to_string()).unwrap_or_default();
            Finding::error("loop.corrupt", line)
                .fix(format!("ralph cancel {name}"))
                .advice(format!("Or fix {path}; cancelled, it is in the archive."))
        }
        Status::Tracked => {
            let why = view.why.as_deref().unwrap_or("git tracks its file");
            Finding::warning("loop.tracked", format!("{line}: {why}; it does not start by itself"))
                .fix(format!("ralph resume {name}"))
                .advice("Read it first. Or remove the file: a loop is one person's.")
        }
        Status::Paused => Finding::note("loop.paused", line).fix(goes_on),
        _ => Finding::good("loops", line),
    }];
    findings.extend(
        view.warnings.iter().map(|warning| Finding::warning("loop.keys", format!("{name}: {warning}")).advice("Correct the loop file.")),
    );
    findings
}

/// Variables that make conversations shorter are on for seconds only, while a loop with `compact_every` goes on.
fn compacting(case: &Case) -> Option<Finding> {
    Compaction::noted(&case.project).filter(|noted| noted.on.is_some())?;
    let what = format!(
        "{} has Claude Code compact at every request, as a loop with `compact_every` asked for it, and was not restored",
        Compaction::settings(&case.project).display()
    );
    Some(Finding::warning("store.compaction", what).fix("ralph doctor --fix").repair(Repair::SwitchOff))
}

/// Files that a ralph left which was killed in the middle of a change.
fn leftovers(case: &Case) -> Option<Finding> {
    let claude: Vec<PathBuf> = [Some(case.project.claude()), case.places.config.clone()].into_iter().flatten().collect();
    let commands: Vec<String> = Command::ALL.iter().map(Command::file_name).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let mut left: Vec<PathBuf> = Vec::new();
    for folder in claude {
        left.extend(left_in(&folder.join("commands"), &commands));
        left.extend(left_in(&folder, &["settings.json", "settings.local.json"]));
    }
    left.extend(left_in(case.project.root(), &[config::FILE]));
    left.sort();
    left.dedup();
    let first = left.first()?.display().to_string();
    let what = match left.len() {
        1 => format!("an interrupted ralph left a temporary file, {first}"),
        n => format!("an interrupted ralph left {n} temporary files, {first} among them"),
    };
    Some(Finding::warning("store.leftovers", what).fix("ralph doctor --fix").repair(Repair::Remove(left)))
}

/// The unfinished versions in a folder of the files that ralph changes there.
fn left_in(folder: &Path, written: &[&str]) -> Vec<PathBuf> {
    let is_left = |entry: &fs::DirEntry| {
        let is_ours = entry.file_name().to_str().is_some_and(|name| is_unfinished(name, written));
        is_ours && entry.metadata().is_ok_and(|meta| meta.is_file() && files::is_older(&meta, ABANDONED))
    };
    fs::read_dir(folder).into_iter().flatten().flatten().filter(is_left).map(|entry| entry.path()).collect()
}

/// Whether ralph gives this name to a version of one of these files, or of a loop file, and no process is working on it: `.settings.json.ralph-123`,
/// `settings.ralph-new`. Any other name, however much alike, is a person's.
fn is_unfinished(name: &str, written: &[&str]) -> bool {
    let of_process = || {
        let (file, pid) = name.strip_prefix('.')?.rsplit_once(".ralph-")?;
        Some(written.contains(&file) && is_gone(pid))
    };
    let beside = || {
        let file = name.strip_suffix(".ralph-new")?;
        let name_of_loop = file.strip_prefix("ralph-loop.").and_then(|rest| rest.strip_suffix(".local"));
        let is_loop = file == "ralph-loop.local" || name_of_loop.is_some_and(is_name);
        Some(is_loop || written.iter().any(|known| known.rsplit_once('.').is_some_and(|(stem, _)| stem == file)))
    };
    of_process() == Some(true) || beside() == Some(true)
}

/// Whether a word is the number of a process, as ralph writes it, and there is no such process.
fn is_gone(pid: &str) -> bool {
    let is_number = pid.bytes().all(|b| b.is_ascii_digit()) && !pid.starts_with('0');
    is_number && pid.parse().is_ok_and(|pid| pid <= MAX_PID && !process::is_alive(pid))
}

/// Recent problems of hooks, here and elsewhere: the newest last.
fn troubles(case: &Case) -> Vec<Finding> {
    let is_recent = |at: &str| time::parse(at).is_some_and(|at| clock::now().saturating_sub(at) < TOLD_MS);
    let here = case.project.root().display().to_string();
    let told = |trouble: &Trouble| {
        let place = if trouble.project == here { String::new() } else { format!(" in {}", trouble.project) };
        let what = format!("{}, {}{place}: {} ({})", trouble.at, trouble.event, trouble.cause, trouble.code);
        Finding::note("hook.trouble", clean(&what)).advice(trouble.advice())
    };
    trouble::last(MOST_TROUBLES).iter().filter(|trouble| is_recent(&trouble.at)).map(told).collect()
}

/// A project that nothing can be written into has no place for ralph's folder, nor for the agent's work.
fn read_only(case: &Case) -> Option<Finding> {
    let root = case.project.root();
    (!files::may_write_into(root)).then(|| {
        Finding::error("store.folder", format!("{} cannot be written, so no loop can start here", root.display()))
            .advice("Make it a folder that you can write to, or work in a copy of it.")
    })
}

/// Ralph's own folder: a real one, ignored by git, writable, and its lock free.
fn own_folder(case: &Case) -> Vec<Finding> {
    let own = case.project.own();
    let Ok(meta) = fs::symlink_metadata(&own) else { return read_only(case).into_iter().collect() };
    let mut findings = Vec::new();
    if meta.is_dir() && files::is_open_to_others(&meta) {
        let what = format!("{} contains whole sessions, and other users can read it", own.display());
        findings.push(Finding::warning("store.open", what).fix("ralph doctor --fix").repair(Repair::Prepare));
    }
    if meta.is_dir() && !own.join(".gitignore").exists() {
        let what = format!("{} is no longer ignored by git: its .gitignore is missing", own.display());
        findings.push(Finding::warning("store.ignored", what).fix("ralph doctor --fix").repair(Repair::Prepare));
    }
    findings.push(match Locked::look(&case.project) {
        Ok(()) => Finding::good("store", format!("{} is writable and its lock is free", own.display())),
        Err(store::Error::Busy) => Finding::error("store.lock", format!("another process has locked {}/lock", own.display()))
            .advice(format!("`fuser {}` says which; end it if it hangs.", quoted(&own.join("lock").display().to_string()))),
        Err(e) => Finding::error("store.folder", e.to_string())
            .advice(format!("Make {} a folder that you can write to, or move it away.", own.display())),
    });
    if files::options().append(true).open(own.join("hook.log")).is_err_and(|e| e.kind() != std::io::ErrorKind::NotFound) {
        findings.push(
            Finding::warning("store.log", format!("{}/hook.log cannot be written", own.display()))
                .advice("Make it writable, or remove it."),
        );
    }
    findings
}
