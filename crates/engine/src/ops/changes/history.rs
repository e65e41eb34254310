//! The commits that were made since a loop began, with their parents, and the trees of the commits that were checked out.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use ralph_core::text::{self, time::Millis};

use super::{
    Commit,
    sizes::{Pair, Sizes},
};
use crate::{git::Repository, sys::files};

/// More commits than this are not looked at.
const MOST_COMMITS: &str = "--max-count=100000";

/// A list of shallow commits is shorter.
const MOST_SHALLOW: usize = 16 << 20;

#[derive(Default)]
pub(super) struct History {
    /// Git could be asked.
    pub(super) is_known: bool,
    /// The newest first.
    pub(super) commits: Vec<Made>,
    /// The trees of the commits that were checked out and are still there.
    pub(super) trees: HashMap<String, String>,
}

/// A commit that was made.
pub(super) struct Made {
    pub(super) hash: String,
    pub(super) parents: Vec<String>,
    authored: Millis,
    pub(super) committed: Millis,
    subject: String,
    /// Its parents were never fetched: it would look as if it had made everything.
    is_shallow: bool,
}

impl Made {
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_shallow
    }

    pub(super) fn told(&self, sizes: &Sizes) -> Commit {
        Commit {
            hash: self.hash.clone(),
            subject: self.subject.clone(),
            authored: self.authored,
            committed: self.committed,
            size: sizes.of(&Pair::Commit(self.hash.clone())).filter(|_| !self.is_shallow),
        }
    }
}

impl History {
    /// Reads it, as far back as the loop's beginning. Heads that are not there any more, after a rebase for instance, are taken out of the list.
    /// `others` are further commits whose trees are wanted.
    pub(super) fn read<'o>(
        repository: &Repository,
        heads: &mut [Option<String>],
        others: impl Iterator<Item = &'o str>,
        since: Millis,
    ) -> Result<Self, String> {
        let mut wanted: HashSet<&str> = heads.iter().flatten().map(String::as_str).collect();
        others.for_each(|other| _ = wanted.insert(other));
        let trees = repository.trees(wanted)?;
        for head in heads.iter_mut() {
            head.take_if(|head| !trees.contains_key(head));
        }
        let now = repository.head()?;
        let tips: HashSet<&str> = heads.iter().skip(1).flatten().chain(&now).map(String::as_str).collect();
        let begun_at = heads.first().and_then(Option::as_deref);
        // Mostly no commit was made that git would have to be asked for.
        let is_none_new = tips.iter().all(|tip| Some(*tip) == begun_at);
        let commits = if is_none_new { Vec::new() } else { commits(repository, &tips, begun_at, since)? };
        Ok(History { is_known: true, commits, trees })
    }
}

fn commits(repository: &Repository, tips: &HashSet<&str>, begun_at: Option<&str>, since: Millis) -> Result<Vec<Made>, String> {
    let mut input = String::new();
    for tip in tips {
        let _ = writeln!(input, "{tip}");
    }
    if let Some(begun_at) = begun_at {
        let _ = writeln!(input, "^{begun_at}");
    }
    let since = format!("--max-age={}", since.div_euclid(1_000).max(0));
    let format = "--format=tformat:%H%x00%P%x00%at%x00%ct%x00%s%x00";
    let options =
        ["log", "--stdin", "--ignore-missing", "--no-patch", "--no-color", "--no-notes", "--no-decorate", "--encoding=UTF-8", MOST_COMMITS];
    let args: Vec<&str> = options.into_iter().chain([since.as_str(), format]).collect();
    let told = repository.text(&args, input)?;
    let shallow = shallow(repository);
    let fields: Vec<&str> = told.split('\0').collect();
    Ok(fields.chunks_exact(5).filter_map(|fields| made(fields, &shallow)).collect())
}

fn made(fields: &[&str], shallow: &HashSet<String>) -> Option<Made> {
    let [hash, parents, authored, committed, subject] = fields else { return None };
    let hash = hash.trim_start().to_owned();
    let ms = |seconds: &str| seconds.parse::<Millis>().ok()?.checked_mul(1_000);
    Some(Made {
        parents: parents.split_ascii_whitespace().map(str::to_owned).collect(),
        authored: ms(authored)?,
        committed: ms(committed)?,
        subject: text::opening(subject, 200),
        is_shallow: shallow.contains(&hash),
        hash,
    })
}

/// The commits whose past was not fetched.
fn shallow(repository: &Repository) -> HashSet<String> {
    let list = files::read(&repository.folders.common.join("shallow"), MOST_SHALLOW).unwrap_or_default();
    String::from_utf8_lossy(&list).lines().map(str::to_owned).collect()
}
