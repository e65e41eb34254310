//! The repository: can what a loop does be seen and undone, and do its files stay out of commits?

use std::{cell::Cell, time::Duration};

use ralph_core::{loops::file_of, text::count};
use ralph_engine::{
    git::{Ask, Problem, Repository},
    hosts::claude::commands::Command,
    setup::{places::Scope, survey::Origin},
    sys::command::Ran,
};

use super::{Case, Finding, Repair};

/// Git answers in milliseconds; in a very large repository on a busy machine it may take seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The project's git, which is asked no more once it did not answer.
struct Git<'a> {
    case: &'a Case,
    repository: Repository,
    hangs: Cell<bool>,
}

impl Git<'_> {
    /// Its answer without the last newline; `None` if it has none.
    fn says(&self, args: &[&str]) -> Option<String> {
        let ran = self.ask(args).filter(|ran| ran.code == Some(0))?;
        Some(String::from_utf8_lossy(&ran.stdout).trim_end_matches('\n').to_owned())
    }

    fn ask(&self, args: &[&str]) -> Option<Ran> {
        let ask = || self.repository.ran(args, Ask { folder: Some(self.case.project.root()), ..Ask::default() });
        let answer = (!self.hangs.get()).then(ask)?;
        self.hangs.set(matches!(answer, Err(Problem::TooSlow)));
        answer.ok()
    }
}

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let not_asked = |problem: Problem| {
        let finding = Finding::warning("git", format!("cannot ask git about the repository: {problem}"));
        vec![if problem == Problem::NoGit { finding.advice("Install git.") } else { finding }]
    };
    let repository = match Repository::around(case.project.root(), PATIENCE) {
        Ok(Some(repository)) => repository,
        Ok(None) => {
            return vec![
                Finding::note("git", "the project is not in a git repository: a loop's changes cannot be shown as a diff or undone")
                    .fix("git init"),
            ];
        }
        Err(problem) => return not_asked(problem),
    };
    let git = Git { case, repository, hangs: Cell::new(false) };
    // Files that must not be committed come first: the command that commits everything is named after them.
    let mut findings: Vec<Finding> = tracked(case, &git).into_iter().chain(unignored(case, &git)).collect();
    let state = state(&git);
    let is_clear = findings.is_empty();
    findings.push(if is_clear { state } else { Finding { fix: None, ..state } });
    if git.hangs.get() {
        let what = format!("git did not answer within {} s, so the repository was not checked", PATIENCE.as_secs());
        let hangs = Finding::warning("git", what).advice("Try `git status`. A named pipe in place of a .gitignore can cause this.");
        findings = vec![hangs];
    }
    findings
}

fn state(git: &Git<'_>) -> Finding {
    const UNDER_WAY: [(&str, &str, &str); 6] = [
        ("MERGE_HEAD", "a merge", "git merge --abort"),
        ("rebase-merge", "a rebase", "git rebase --abort"),
        ("rebase-apply", "a rebase", "git rebase --abort"),
        ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --abort"),
        ("REVERT_HEAD", "a revert", "git revert --abort"),
        ("BISECT_LOG", "a bisection", "git bisect reset"),
    ];
    if let Some((_, what, abort)) = UNDER_WAY.iter().find(|(file, ..)| git.repository.folders.git_dir.join(file).exists()) {
        return Finding::warning("git", format!("{what} is under way: an agent's commit would land in the middle of it"))
            .fix(*abort)
            .advice("Or finish it.");
    }
    let Some(branch) = git.says(&["symbolic-ref", "--short", "HEAD"]) else {
        return Finding::warning("git", "no branch is checked out: an agent's commits are easily lost here").fix("git switch -c work");
    };
    // Git would look into a submodule with its own configuration, which could run anything.
    let changed = git.says(&["status", "--porcelain", "--ignore-submodules=dirty"]).map_or(0, |text| text.lines().count());
    if changed == 0 {
        return Finding::good("git", format!("branch {branch}, nothing uncommitted"));
    }
    let changes = count(changed as u64, "uncommitted change", "uncommitted changes");
    Finding::note("git", format!("branch {branch}, {changes}: with everything committed, the loop's work is one diff"))
        .fix("git add -A && git commit -m 'Before the loop'")
}

/// Files of one person's own that were committed after all. To ignore them helps no more then.
fn tracked(case: &Case, git: &Git<'_>) -> Option<Finding> {
    let paths = [format!(".claude/{}", file_of("main")), ".claude/settings.local.json".to_owned()];
    let is_own =
        |path: &&String| case.project.root().join(path).exists() && git.says(&["ls-files", "--error-unmatch", "--", path]).is_some();
    let all: Vec<&str> = paths.iter().filter(is_own).map(String::as_str).collect();
    if all.is_empty() {
        return None;
    }
    let what = format!("git tracks {}, which is yours alone", all.join(" and "));
    Some(
        Finding::warning("git.tracked", what)
            .fix(format!("git rm -q --cached {}", all.join(" ")))
            .advice("Then commit that. The file itself stays."),
    )
}

/// A loop belongs to one person, and its file into no commit; nor does what that person has for themselves in this project.
fn unignored(case: &Case, git: &Git<'_>) -> Option<Finding> {
    let mut paths = vec![format!(".claude/{}", file_of("main"))];
    if case.project.claude().join("settings.local.json").exists() {
        paths.push(".claude/settings.local.json".to_owned());
    }
    // 1 means no; anything else means that git cannot say, as beyond a link, where nothing is committed from.
    let is_open = |path: &str| git.ask(&["check-ignore", "-q", "--no-index", path]).is_some_and(|ran| ran.code == Some(1));
    let mut open: Vec<String> = paths.into_iter().filter(|path| is_open(path)).collect();
    // The project may be a folder somewhere in the repository.
    let pattern = |path: &String| format!("**/{}", path.replace(&file_of("main"), "ralph-loop*.local.md"));
    let mut lines: Vec<String> = open.iter().map(pattern).collect();
    let commands = local_commands(case, git);
    lines.extend(commands.iter().map(pattern));
    match commands.as_slice() {
        [] => {}
        [one] => open.push(one.clone()),
        [first, ..] => open.push(format!("{first} with the other commands of `ralph init --local`")),
    }
    if open.is_empty() {
        return None;
    }
    let within = git.repository.folders.common.clone();
    let file = within.join("info/exclude");
    let they = if open.len() > 1 { "they" } else { "it" };
    let what = format!("git does not ignore {}: {they} could be committed by accident", open.join(" and "));
    Some(Finding::warning("git.ignored", what).fix("ralph doctor --fix").repair(Repair::Exclude { file, within, lines }))
}

/// The command files that git neither tracks nor ignores, where they are there for one person only.
fn local_commands(case: &Case, git: &Git<'_>) -> Vec<String> {
    let ours = case.survey.ours();
    let registers = |scope| ours.iter().any(|r| r.origin == Origin::Settings(scope));
    if !registers(Scope::Local) || registers(Scope::Project) {
        return Vec::new();
    }
    let paths: Vec<String> = Command::ALL.iter().map(|command| format!(".claude/commands/{}", command.file_name())).collect();
    let question = ["ls-files", "--others", "--exclude-standard", "--"];
    let args: Vec<&str> = question.into_iter().chain(paths.iter().map(String::as_str)).collect();
    git.says(&args).unwrap_or_default().lines().map(str::to_owned).collect()
}
