//! What has to be done before what: every dependency is in the list, and none leads back to its item.

use std::collections::BTreeMap;

use super::Item;
use crate::text::{Problem, clean};

/// Refuses a list that could never be worked off.
pub(super) fn check(items: &[Item]) -> Result<(), Problem> {
    if items.iter().all(|item| item.optional) {
        return Err(Problem::new(None, "every item is optional, so the list proves nothing"));
    }
    if items.iter().all(|item| item.depends_on.is_empty()) {
        return Ok(());
    }
    let places = items.iter().enumerate().rev().flat_map(|(n, item)| [(clean(&item.id), n), (item.id.clone(), n)]).collect();
    for item in items {
        if let Some(unknown) = item.depends_on.iter().find(|id| !BTreeMap::contains_key(&places, *id)) {
            return Err(Problem::new(None, format!("{} depends on {}, which is not in the list", clean(&item.id), clean(unknown))));
        }
    }
    match circle(items, &places) {
        Some(circle) => Err(Problem::new(None, format!("these items wait for each other: {}", circle.join(" \u{2192} ")))),
        None => Ok(()),
    }
}

/// The ids of a circle, its first one again at the end.
fn circle(items: &[Item], places: &BTreeMap<String, usize>) -> Option<Vec<String>> {
    let depends = |n: usize| items[n].depends_on.iter().filter_map(|id| places.get(id).copied());
    // Items whose dependencies are all free are free; in what is left, every step along dependencies stays there.
    let mut is_free = vec![false; items.len()];
    let mut waiting: Vec<usize> = (0..items.len()).collect();
    loop {
        let before = waiting.len();
        waiting.retain(|n| {
            is_free[*n] = depends(*n).all(|on| is_free[on]);
            !is_free[*n]
        });
        if waiting.len() == before {
            break;
        }
    }
    let mut path = vec![*waiting.first()?];
    loop {
        let next = depends(*path.last()?).find(|on| !is_free[*on])?;
        let begin = path.iter().position(|seen| *seen == next);
        path.push(next);
        if let Some(begin) = begin {
            return Some(path[begin..].iter().map(|n| clean(&items[*n].id)).collect());
        }
    }
}
