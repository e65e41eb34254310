//! How much two trees differ, for thousands of pairs at once.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use super::Size;
use crate::git::{Ask, Repository, head::is_id, repository::pieces, snapshots::working_tree::is_own};

/// So many pairs are asked for at once: what does not fit into the time, or says too much, costs no more than its own.
const AT_ONCE: usize = 500;

/// The two sides of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Pair {
    /// Two trees.
    Trees(String, String),
    /// A commit with the one before it.
    Commit(String),
}

impl Pair {
    pub(super) fn trees(before: &str, after: &str) -> Self {
        Pair::Trees(before.to_owned(), after.to_owned())
    }

    fn is_none(&self) -> bool {
        matches!(self, Pair::Trees(before, after) if before == after)
    }
}

#[derive(Default)]
pub(super) struct Sizes(HashMap<Pair, Size>);

impl Sizes {
    /// `None`: it was not counted.
    pub(super) fn of(&self, pair: &Pair) -> Option<Size> {
        if pair.is_none() { Some(Size::default()) } else { self.0.get(pair).copied() }
    }

    /// Counts these pairs, as many as there is time for. The newest are counted first.
    pub(super) fn count(&mut self, repository: &Repository, pairs: &[Pair]) -> Result<(), String> {
        let mut asked = HashSet::new();
        let wanted: Vec<&Pair> = pairs.iter().rev().filter(|pair| self.of(pair).is_none() && asked.insert(*pair)).collect();
        let mut problem = None;
        for some in wanted.chunks(AT_ONCE) {
            match ask(repository, some) {
                // What differs in nothing is not told.
                Ok(told) => {
                    self.0.extend(some.iter().map(|pair| ((*pair).clone(), Size::default())));
                    self.add(&told);
                }
                Err(e) => problem = problem.or(Some(e)),
            }
        }
        problem.map_or(Ok(()), Err)
    }

    fn add(&mut self, told: &[u8]) {
        let mut current: Option<Pair> = None;
        for mut piece in pieces(told) {
            if let Some((pair, rest)) = head_of_trees(piece) {
                (current, piece) = (Some(pair), rest);
            }
            match std::str::from_utf8(piece).ok().filter(|word| is_id(word)) {
                Some(commit) => current = Some(Pair::Commit(commit.to_owned())),
                None => {
                    let size = current.as_ref().and_then(|pair| self.0.get_mut(pair)).zip(of_file(piece));
                    if let Some((sum, file)) = size {
                        *sum = sum.plus(file);
                    }
                }
            }
        }
    }
}

/// Lines of two kinds come back: `tree tree` with a line break, and a commit as a piece of its own.
fn ask(repository: &Repository, pairs: &[&Pair]) -> Result<Vec<u8>, String> {
    let mut input = String::new();
    for pair in pairs {
        let _ = match pair {
            Pair::Trees(before, after) => writeln!(input, "{before} {after}"),
            Pair::Commit(commit) => writeln!(input, "{commit}"),
        };
    }
    let options = ["diff-tree", "--stdin", "-r", "-z", "--root", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv"];
    Ok(repository.answer(&options, Ask { input: input.into_bytes(), ..Ask::default() })?)
}

/// The pairs of trees that a piece begins with: of several, all but the last differ in nothing.
fn head_of_trees(piece: &[u8]) -> Option<(Pair, &[u8])> {
    let mut found = None;
    let mut rest = piece;
    while let Some(end) = rest.iter().take(130).position(|b| *b == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).ok();
        let Some((before, after)) = line.and_then(|line| line.split_once(' ')).filter(|(a, b)| is_id(a) && is_id(b)) else { break };
        rest = &rest[end + 1..];
        found = Some((Pair::trees(before, after), rest));
    }
    found
}

/// `12<tab>3<tab>path`; lines of what is no text are not counted.
fn of_file(piece: &[u8]) -> Option<Size> {
    let mut parts = piece.splitn(3, |b| *b == b'\t');
    let mut number = || std::str::from_utf8(parts.next()?).ok().map(|text| text.parse().unwrap_or(0));
    let (added, removed) = (number()?, number()?);
    (!is_own(parts.next()?)).then_some(Size { files: 1, added, removed })
}
