//! A checkout as git sees it: its branch, its commit, its remotes.

use std::{path::Path, time::Instant};

use ralph_core::gate::pull_request::{Checkout, Relation, Remote, Repository, Trouble};

use super::{PATIENCE, Question};
use crate::git::{Ask, Problem, Repository as Git};

/// An answer of git.
struct Said {
    is_good: bool,
    text: String,
}

fn git(folder: &Path, until: Instant) -> Result<Git, Trouble> {
    let around = Git::around(folder, until.saturating_duration_since(Instant::now()).min(PATIENCE)).map_err(trouble)?;
    around.ok_or_else(|| Trouble::lasting("this is not a git repository", "make it one: `git init`, and add a remote"))
}

fn ask(git: &Git, args: &[&str]) -> Result<Said, Trouble> {
    let ran = git.ran(args, Ask::default()).map_err(trouble)?;
    Ok(Said { is_good: ran.code == Some(0), text: String::from_utf8_lossy(&ran.stdout).into_owned() })
}

fn trouble(problem: Problem) -> Trouble {
    match problem {
        Problem::NoGit => Trouble::lasting("git is not there", "install git"),
        Problem::Foreign { user, top } => Trouble::lasting(
            format!("this repository belongs to another user ({user}), so git is not asked about it"),
            format!("if you trust it: git config --global --add safe.directory '{}'", top.display()),
        ),
        other => Trouble::passing(other.to_string()),
    }
}

/// Reads the checkout in a folder.
pub(super) fn read(folder: &Path, until: Instant) -> Result<Checkout, Trouble> {
    let git = git(folder, until)?;
    let here = ask(&git, &["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"])?;
    let (head, name) = if here.is_good {
        let mut lines = here.text.lines();
        (lines.next().map(str::to_owned), lines.next().unwrap_or_default().to_owned())
    } else {
        // Before the first commit.
        (None, ask(&git, &["symbolic-ref", "-q", "HEAD"])?.text.trim().to_owned())
    };
    let branch = name.strip_prefix("refs/heads/").map(str::to_owned);
    let settings = Settings::read(&git)?;
    let remotes = settings.remotes();
    let default_branch = default_branch(&git, &remotes)?;
    let pushed_as = branch.as_deref().and_then(|branch| settings.pushed_as(branch)).filter(|name| Some(name) != branch.as_ref());
    Ok(Checkout { branch, pushed_as, head, default_branch, remotes, changed: 0 })
}

/// Git's configuration of remotes and branches: keys with their values, in order.
struct Settings(Vec<(String, String)>);

impl Settings {
    fn read(git: &Git) -> Result<Self, Trouble> {
        const WANTED: &str = r"^(remote\..*\.(url|pushurl|gh-resolved)|branch\..*\.merge|url\..*\.(insteadof|pushinsteadof))$";
        let said = ask(git, &["config", "-z", "--get-regexp", WANTED])?;
        let pairs = said.text.split_terminator('\0').filter_map(|setting| setting.split_once('\n'));
        Ok(Settings(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
    }

    fn remotes(&self) -> Vec<Remote> {
        let mut remotes: Vec<Remote> = Vec::new();
        for (key, value) in &self.0 {
            let Some((name, what)) = key.strip_prefix("remote.").and_then(|rest| rest.rsplit_once('.')) else { continue };
            let at = remotes.iter().position(|remote| remote.name == name).unwrap_or_else(|| {
                remotes.push(Remote { name: name.to_owned(), fetch: None, push: None, resolved: None });
                remotes.len() - 1
            });
            let remote = &mut remotes[at];
            match what {
                "url" if remote.fetch.is_none() => remote.fetch = Repository::of_url(&self.rewritten(value, "insteadof")),
                "pushurl" if remote.push.is_none() => remote.push = Repository::of_url(&self.rewritten(value, "pushinsteadof")),
                "gh-resolved" => remote.resolved = Some(value.clone()),
                _ => {}
            }
        }
        remotes
    }

    /// An address whose beginning stands for another one.
    fn rewritten(&self, url: &str, kind: &str) -> String {
        let rules = self.0.iter().filter_map(|(key, from)| {
            let (to, what) = key.strip_prefix("url.")?.rsplit_once('.')?;
            (what == kind && url.starts_with(from.as_str())).then_some((from.len(), to))
        });
        rules.max_by_key(|(length, _)| *length).map_or_else(|| url.to_owned(), |(length, to)| format!("{to}{}", &url[length..]))
    }

    /// The name of a branch where it is pushed to.
    fn pushed_as(&self, branch: &str) -> Option<String> {
        let key = format!("branch.{branch}.merge");
        self.0.iter().find(|(name, _)| *name == key)?.1.strip_prefix("refs/heads/").map(str::to_owned)
    }
}

/// The default branch of the first remote that names one, in gh's order.
fn default_branch(git: &Git, remotes: &[Remote]) -> Result<Option<String>, Trouble> {
    let said = ask(git, &["for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/*/HEAD"])?;
    let of = |name: &str| {
        let line = said.text.lines().find_map(|line| line.strip_prefix(&format!("refs/remotes/{name}/HEAD ")))?;
        line.strip_prefix(&format!("refs/remotes/{name}/")).map(str::to_owned)
    };
    Ok(["upstream", "github", "origin"].into_iter().chain(remotes.iter().map(|remote| remote.name.as_str())).find_map(of))
}

/// Compares the checked-out commit with another one.
pub(super) fn compare(question: &Question<'_>, head: &str, commit: &str) -> Relation {
    if head.eq_ignore_ascii_case(commit) {
        return Relation::Same;
    }
    let range = format!("{head}...{commit}");
    let counted = git(question.tree, question.until).and_then(|git| ask(&git, &["rev-list", "--left-right", "--count", &range, "--"]));
    let numbers = counted.ok().filter(|said| said.is_good).and_then(|said| {
        let mut numbers = said.text.split_whitespace().map(|n| n.parse::<u64>().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    match numbers {
        // Two commits that each hold the other are none that git made.
        None | Some((0, 0)) => Relation::NotHere,
        Some((ahead, 0)) => Relation::Ahead(ahead),
        Some((0, behind)) => Relation::Behind(behind),
        Some((ahead, behind)) => Relation::Diverged { ahead, behind },
    }
}

/// How many files that git knows differ from the commit. Only a hint, so nothing is compared byte by byte.
pub(super) fn changed(question: &Question<'_>) -> u64 {
    let said = git(question.tree, question.until)
        .and_then(|git| ask(&git, &["diff-index", "--name-only", "--ignore-submodules", "-z", "HEAD", "--"]));
    said.ok().filter(|said| said.is_good).map_or(0, |said| said.text.matches('\0').count() as u64)
}
