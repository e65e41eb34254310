//! What git says about a checkout: its branch, its commit, its remotes.

use std::{ffi::OsStr, io, path::Path, time::Instant};

use ralph_core::pull_request::{Checkout, Relation, Remote, Repository, Trouble};

use super::{PATIENCE, Question};
use crate::sys::{
    bounded::{Failure, Ran},
    process,
};

fn git(folder: &Path, args: &[&str], until: Instant) -> Result<Ran, Trouble> {
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    process::git(folder, &args, until.saturating_duration_since(Instant::now()).min(PATIENCE)).map_err(|failure| match failure {
        Failure::CannotStart(e) if e.kind() == io::ErrorKind::NotFound => Trouble::lasting("git is not there", "install git"),
        Failure::CannotStart(e) => Trouble::passing(format!("git cannot be started: {e}")),
        Failure::TookTooLong | Failure::Cancelled => Trouble::passing("git did not answer in time"),
    })
}

/// What lies in a folder.
pub(super) fn read(folder: &Path, until: Instant) -> Result<Checkout, Trouble> {
    let here = git(folder, &["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"], until)?;
    let (head, name) = match here.code {
        Some(0) => {
            let mut lines = here.stdout.lines();
            (lines.next().map(str::to_owned), lines.next().unwrap_or_default().to_owned())
        }
        _ if here.stderr.contains("not a git repository") => {
            return Err(Trouble::lasting("this is not a git repository", "make it one: `git init`, and add a remote"));
        }
        // Before the first commit.
        _ => (None, git(folder, &["symbolic-ref", "-q", "HEAD"], until)?.stdout.trim().to_owned()),
    };
    let branch = name.strip_prefix("refs/heads/").map(str::to_owned);
    let settings = Settings::read(folder, until)?;
    let remotes = settings.remotes();
    let default_branch = default_branch(folder, &remotes, until)?;
    let pushed_as = branch.as_deref().and_then(|branch| settings.pushed_as(branch)).filter(|name| Some(name) != branch.as_ref());
    Ok(Checkout { branch, pushed_as, head, default_branch, remotes, changed: 0 })
}

/// What git's configuration says about remotes and branches: keys with their values, in order.
struct Settings(Vec<(String, String)>);

impl Settings {
    fn read(folder: &Path, until: Instant) -> Result<Self, Trouble> {
        const WANTED: &str = r"^(remote\..*\.(url|pushurl|gh-resolved)|branch\..*\.merge|url\..*\.(insteadof|pushinsteadof))$";
        let said = git(folder, &["config", "-z", "--get-regexp", WANTED], until)?;
        let pairs = said.stdout.split_terminator('\0').filter_map(|setting| setting.split_once('\n'));
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

    /// What a branch is called where it is pushed to.
    fn pushed_as(&self, branch: &str) -> Option<String> {
        let key = format!("branch.{branch}.merge");
        self.0.iter().find(|(name, _)| *name == key)?.1.strip_prefix("refs/heads/").map(str::to_owned)
    }
}

/// The branch that a remote calls its own: that of the first remote that says so, in gh's order.
fn default_branch(folder: &Path, remotes: &[Remote], until: Instant) -> Result<Option<String>, Trouble> {
    let said = git(folder, &["for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/*/HEAD"], until)?;
    let of = |name: &str| {
        let line = said.stdout.lines().find_map(|line| line.strip_prefix(&format!("refs/remotes/{name}/HEAD ")))?;
        line.strip_prefix(&format!("refs/remotes/{name}/")).map(str::to_owned)
    };
    Ok(["upstream", "github", "origin"].into_iter().chain(remotes.iter().map(|remote| remote.name.as_str())).find_map(of))
}

/// How the commit that lies here relates to another one.
pub(super) fn compare(question: &Question<'_>, head: &str, commit: &str) -> Relation {
    if head.eq_ignore_ascii_case(commit) {
        return Relation::Same;
    }
    let range = format!("{head}...{commit}");
    let counted = git(question.tree, &["rev-list", "--left-right", "--count", &range, "--"], question.until);
    let numbers = counted.ok().filter(|ran| ran.code == Some(0)).and_then(|ran| {
        let mut numbers = ran.stdout.split_whitespace().map(|n| n.parse::<u64>().ok());
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

/// How many files that git knows differ from the commit. Only a hint, so nothing is compared byte by byte, which could run programs that the repository names.
pub(super) fn changed(question: &Question<'_>) -> u64 {
    let ran = git(question.tree, &["diff-index", "--name-only", "--ignore-submodules", "-z", "HEAD", "--"], question.until);
    ran.ok().filter(|ran| ran.code == Some(0)).map_or(0, |ran| ran.stdout.matches('\0').count() as u64)
}
