//! The repository: can what a loop does be seen and undone, and do its files stay out of commits?

use std::{ffi::OsStr, path::PathBuf, process::Output};

use ralph_core::loop_file;
use ralph_engine::sys::process;

use super::{Case, Finding, Repair};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    if !case.project.root().ancestors().any(|dir| dir.join(".git").exists()) {
        return vec![
            Finding::note("git", "the project is in no git repository: what a loop changes cannot be seen as a diff or undone")
                .fix("git init"),
        ];
    }
    let Some(folder) = git(case, &["rev-parse", "--absolute-git-dir"]) else {
        return vec![Finding::warning("git", "there is a repository, but git could not be asked about it").advice("Is git installed?")];
    };
    let mut findings = vec![state(case, &PathBuf::from(folder))];
    findings.extend(unignored(case));
    findings
}

/// Git's answer without its last newline; `None` if it has none.
fn git(case: &Case, args: &[&str]) -> Option<String> {
    let output = ask(case, args).filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}

fn ask(case: &Case, args: &[&str]) -> Option<Output> {
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    process::git(case.project.root(), &args).ok()
}

fn state(case: &Case, folder: &std::path::Path) -> Finding {
    const UNDER_WAY: [(&str, &str, &str); 6] = [
        ("MERGE_HEAD", "a merge", "git merge --abort"),
        ("rebase-merge", "a rebase", "git rebase --abort"),
        ("rebase-apply", "a rebase", "git rebase --abort"),
        ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --abort"),
        ("REVERT_HEAD", "a revert", "git revert --abort"),
        ("BISECT_LOG", "a bisection", "git bisect reset"),
    ];
    if let Some((_, what, abort)) = UNDER_WAY.iter().find(|(file, ..)| folder.join(file).exists()) {
        return Finding::warning("git", format!("{what} is under way: an agent that commits would end in the middle of it"))
            .fix(*abort)
            .advice("Or finish it.");
    }
    let Some(branch) = git(case, &["symbolic-ref", "--short", "HEAD"]) else {
        return Finding::warning("git", "no branch is checked out: what an agent commits here is easily lost").fix("git switch -c work");
    };
    if brings_filters(case) && !case.survey.trusts(case.project.root()) {
        let what = format!(
            "branch {branch}; whether anything is uncommitted was not asked: the repository's own configuration has filters, which are programs \
             that git would run, and you have not told Claude Code to trust this folder"
        );
        return Finding::note("git", what);
    }
    // What a submodule holds is asked by a git of its own, which its own configuration could make run anything.
    let changed = git(case, &["status", "--porcelain", "--ignore-submodules=dirty"]).map_or(0, |text| text.lines().count());
    let changes = match changed {
        0 => return Finding::good("git", format!("branch {branch}, nothing uncommitted")),
        1 => "1 uncommitted change".to_owned(),
        n => format!("{n} uncommitted changes"),
    };
    Finding::note("git", format!("branch {branch}, {changes}: with everything committed, the loop's work is one diff"))
        .fix("git add -A && git commit -m 'Before the loop'")
}

/// Whether the repository itself, and not the person, has git run programs on the contents of files.
fn brings_filters(case: &Case) -> bool {
    let filters = git(case, &["config", "--show-scope", "--name-only", "--get-regexp", r"^filter\."]).unwrap_or_default();
    filters.lines().any(|line| !matches!(line.split('\t').next(), Some("system" | "global" | "command")))
}

/// A loop belongs to one person, and its file into no commit.
fn unignored(case: &Case) -> Option<Finding> {
    let mut paths = vec![format!(".claude/{}", loop_file::file_of("main"))];
    if case.project.claude().join("settings.local.json").exists() {
        paths.push(".claude/settings.local.json".to_owned());
    }
    // 1 means no; anything else means that git cannot say, as beyond a link, where nothing is committed from.
    let is_open = |path: &str| ask(case, &["check-ignore", "-q", "--no-index", path]).is_some_and(|output| output.status.code() == Some(1));
    let open: Vec<String> = paths.into_iter().filter(|path| is_open(path)).collect();
    if open.is_empty() {
        return None;
    }
    let file = case.project.root().join(git(case, &["rev-parse", "--git-path", "info/exclude"])?);
    let what = format!("git does not ignore {}: it could be committed by accident", open.join(" and "));
    // The project may be a folder somewhere in the repository.
    let lines = open.iter().map(|path| format!("**/{}", path.replace(&loop_file::file_of("main"), "ralph-loop*.local.md"))).collect();
    Some(Finding::warning("git.ignored", what).fix("ralph doctor --fix").repair(Repair::Exclude { file, lines }))
}
