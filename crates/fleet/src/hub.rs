//! The fleet's own repository, without files: what comes from the person, from slots and back goes through it. Its refs:
//!
//! - `refs/person/heads/*`: the person's branches, as they were when they were last fetched;
//! - `refs/ralph-fleet/<job>/<token>`: the work of one claim; its snapshot is beside it, under `snapshots`.

use std::path::Path;

use crate::{
    git::{self, Git, Identity},
    problem::{Problem, Result},
    settings::{Place, Settings},
};

#[derive(Debug, Clone)]
pub(crate) struct Hub {
    pub git: Git,
    repository: String,
    pub base: String,
    pub target: String,
}

impl Hub {
    /// Opens it, and makes it where it is not there yet.
    pub(crate) fn open(place: &Place, settings: &Settings) -> Result<Self> {
        let folder = place.hub();
        if !folder.join("HEAD").is_file() {
            git::init(&folder, true)?;
        }
        let git = Git::at(&folder).by(&Identity::of(&settings.repository));
        let repository =
            settings.repository.to_str().ok_or_else(|| Problem::new("the repository's path is no text that git could be told"))?;
        Ok(Hub { git, repository: repository.to_owned(), base: settings.base.clone(), target: settings.target.clone() })
    }

    /// Fetches the person's branches.
    pub(crate) fn fetch_person(&self) -> Result<()> {
        let told = |problem: Problem| Problem(format!("the repository cannot be read: {problem}"));
        self.git.run(&["fetch", "--quiet", "--prune", "--no-tags", &self.repository, "+refs/heads/*:refs/person/heads/*"]).map_err(told)?;
        Ok(())
    }

    /// The tip of the person's branch.
    pub(crate) fn base_tip(&self) -> Result<String> {
        let tip = self.git.commit(&format!("refs/person/heads/{}", self.base))?;
        tip.ok_or_else(|| Problem(format!("the branch {} is gone: say another one with --base", self.base)))
    }

    /// The tip of the branch that work lands on, if it is there.
    pub(crate) fn target_tip(&self) -> Result<Option<String>> {
        self.git.commit(&format!("refs/person/heads/{}", self.target))
    }

    /// Where new work begins.
    pub(crate) fn start(&self) -> Result<String> {
        match self.target_tip()? {
            Some(tip) => Ok(tip),
            None => self.base_tip(),
        }
    }

    /// Fetches a slot's commit and, if there is one, its snapshot.
    pub(crate) fn fetch_slot(&self, slot: &Path, job: &str, token: u64) -> Result<Kept> {
        let from = slot.to_str().ok_or_else(|| Problem::new("the slot's path is no text that git could be told"))?;
        self.git.run(&["fetch", "--quiet", "--no-tags", from, &format!("+HEAD:refs/ralph-fleet/{job}/{token}")])?;
        let commit = self.git.word(&["rev-parse", &format!("refs/ralph-fleet/{job}/{token}")])?;
        Ok(Kept { commit })
    }

    /// Fetches a snapshot of a slot, by its ref there.
    pub(crate) fn fetch_snapshot(&self, slot: &Path, name: &str, job: &str, token: u64) -> Result<String> {
        let from = slot.to_str().ok_or_else(|| Problem::new("the slot's path is no text that git could be told"))?;
        let to = format!("refs/ralph-fleet-snapshots/{job}/{token}");
        self.git.run(&["fetch", "--quiet", "--no-tags", from, &format!("+{name}:{to}")])?;
        self.git.word(&["rev-parse", &to])
    }

    /// Pushes a commit to a branch of the person's, without force. `false`: someone else pushed first.
    pub(crate) fn push(&self, commit: &str, branch: &str) -> Result<bool> {
        let ran = self.git.ran(&["push", "--porcelain", "--no-verify", &self.repository, &format!("{commit}:refs/heads/{branch}")], b"")?;
        if ran.code == Some(0) {
            return Ok(true);
        }
        let said = format!("{} {}", ran.text(), ran.stderr);
        if said.contains("non-fast-forward")
            || said.contains("fetch first")
            || said.contains("failed to update ref")
            || said.contains("cannot lock ref")
        {
            return Ok(false);
        }
        if said.contains("checked out") {
            return Err(Problem(format!("you have {branch} checked out: switch to another branch, and landing goes on")));
        }
        Err(Problem(format!("{branch} cannot be pushed: {}", git::last_words(&ran))))
    }
}

/// What was kept of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub commit: String,
}
