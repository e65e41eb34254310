//! The repository: can what a loop does be seen and undone, and do its files stay out of commits?

use std::{ffi::OsStr, path::PathBuf};

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
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let output = process::git(case.project.root(), &args).ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}

fn state(case: &Case, folder: &std::path::Path) -> Finding {
    const UNDER_WAY: [(&str, &str, &str); 5] = [
        ("MERGE_HEAD", "a merge", "git merge --abort"),
        ("rebase-merge", "a rebase", "git rebase --abort"),
        ("rebase-apply", "a rebase", "git rebase --abort"),
        ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --abort"),
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
    let changed = git(case, &["status", "--porcelain"]).map_or(0, |text| text.lines().count());
    match changed {
        0 => Finding::good("git", format!("branch {branch}, nothing uncommitted")),
        n => Finding::note("git", format!("branch {branch}, {n} uncommitted changes: commit them first, and the loop's work is one diff"))
            .fix("git stash -u"),
    }
}

/// A loop belongs to one person, and its file into no commit.
fn unignored(case: &Case) -> Option<Finding> {
    let mut paths = vec![format!(".claude/{}", loop_file::file_of("main"))];
    if case.project.claude().join("settings.local.json").exists() {
        paths.push(".claude/settings.local.json".to_owned());
    }
    let is_ignored = |path: &str| git(case, &["check-ignore", "-q", "--no-index", path]).is_some();
    let open: Vec<String> = paths.into_iter().filter(|path| !is_ignored(path)).collect();
    if open.is_empty() {
        return None;
    }
    let file = case.project.root().join(git(case, &["rev-parse", "--git-path", "info/exclude"])?);
    let what = format!("git does not ignore {}: it could be committed by accident", open.join(" and "));
    let lines = open.iter().map(|path| path.replace(&loop_file::file_of("main"), "ralph-loop*.local.md")).collect();
    Some(Finding::warning("git.ignored", what).fix("ralph doctor --fix").repair(Repair::Exclude { file, lines }))
}
