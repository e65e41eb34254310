//! The guard against gaming: what the work looked like when the loop began, compared with what it looks like now.
//!
//! A test that is gone, a test that is skipped, a gate that asks for less: each makes the proof easier without the work being done. Whatever could as well be
//! honest work stays unsaid, because a guard that cries wolf is switched off: a test may move, change its body or be formatted, files and tests may come.
//! A marker in a new file counts: a test that was written to be skipped proves nothing.

mod languages;
mod scripts;
mod source;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use scripts::Named;
pub use source::Source;

use crate::{
    gate::{Check, Gate, GuardPolicy, Kind, OldFailures, Origin},
    text::opening,
};

/// Facts that can be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Source files that hold tests; `None`: they could not all be seen.
    pub sources: Option<BTreeMap<String, Source>>,
    /// Why something of that could not be seen.
    #[serde(skip)]
    pub unseen: Vec<String>,
    pub gates: Vec<Asked>,
    /// Files that gates run or are declared in, with a digest; an empty one: the file is gone.
    pub files: BTreeMap<String, String>,
    /// The gates that run each of these files. Needed only to say so.
    #[serde(skip)]
    pub runners: BTreeMap<String, BTreeSet<String>>,
    /// Items of lists; `None`: they could not be read.
    pub items: Option<Vec<Item>>,
    pub guard: GuardPolicy,
}

/// The demand of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub name: String,
    pub kind: Kind,
    /// The file that declares it, where that is trusted as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The command, the file, the list or the words.
    pub what: Vec<String>,
    /// Further properties that must stay as they are.
    pub terms: BTreeMap<String, String>,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Item {
    /// The list's file.
    pub list: String,
    pub id: String,
    /// Its description, steps and commands, or a digest of them; not whether it passes.
    pub criteria: String,
}

impl Asked {
    /// Only what can weaken a gate: its deadline, its excerpt and its place in the order cannot.
    pub fn of(gate: &Gate) -> Self {
        let mut terms = BTreeMap::new();
        let mut must = |term: &str, value: Option<String>| value.map(|value| terms.insert(term.to_owned(), value));
        let what = match &gate.check {
            Check::Command(command) => {
                must("folder", Some(command.folder.clone().unwrap_or_default()));
                let env: Vec<String> = command.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
                must("environment", Some(env.join(" ")));
                must("word on old failures", (command.old_failures == OldFailures::Block).then(|| "block".to_owned()));
                vec![command.run.shown()]
            }
            Check::File(file) => {
                must("text", file.contains.clone());
                must("list of sources", file.fresh.as_ref().map(|patterns| patterns.join(", ")));
                must("number of entries", (file.entries > 0).then(|| file.entries.to_string()));
                vec![file.path.clone()]
            }
            Check::Features(list) => vec![list.path.clone()],
            Check::Markers(markers) => markers.words.clone(),
            Check::Committed => vec!["committed".to_owned()],
            Check::PullRequest(request) => {
                must("branch that it must go to", request.base.clone());
                vec![format!("{:?}", request.must_be).to_lowercase()]
            }
            Check::Ci(ci) => {
                must("word on optional checks", (!ci.required_only).then(|| "all".to_owned()));
                must("list of checks that do not count", Some(ci.ignore.join(", ")));
                must("word on commits without checks", (!ci.may_have_none).then(|| "ask".to_owned()));
                vec!["ci".to_owned()]
            }
        };
        let file = if let Origin::File(path) = &gate.origin { Some(path.clone()) } else { None };
        Asked { name: gate.name.clone(), kind: gate.kind(), file, what, terms }
    }

    fn asks_the_same(&self, other: &Asked) -> bool {
        (self.kind, &self.what, &self.terms) == (other.kind, &other.what, &other.terms)
    }
}

/// So many suspicions are said; more are counted.
const MOST: usize = 20;

/// So many names are given in one of them.
const MOST_NAMES: usize = 5;

impl Facts {
    /// Everything that became easier since the beginning, one sentence each: first about tests, then about the rest.
    pub fn suspicions(before: &Self, now: &Self) -> Vec<String> {
        Self::bounded(Self::about_tests(before, now).into_iter().chain(Self::about_the_rest(before, now)).collect())
    }

    /// Tests that are gone or skipped.
    pub fn about_tests(before: &Self, now: &Self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(then) = &before.sources {
            // Who hides the tests from the guard must not be better off than who removes them.
            all.extend(now.unseen.iter().map(|why| format!("the tests could not be compared with those of the start: {why}")));
            if let Some(now) = &now.sources {
                all.extend(tests_gone(then, now));
                all.extend(markers_added(then, now));
            }
        }
        all
    }

    /// Gates, files and items that ask for less.
    pub fn about_the_rest(before: &Self, now: &Self) -> Vec<String> {
        let mut all = Asked::weakened(&before.gates, &now.gates);
        all.extend(files_changed(&before.files, now));
        if let (Some(before), Some(now)) = (&before.items, &now.items) {
            all.extend(items_changed(before, now));
        }
        if strictness(now.guard) < strictness(before.guard) {
            let (then, now) = (policy(before.guard), policy(now.guard));
            all.push(format!("the guard was set to \"{then}\" when the loop began, and is set to \"{now}\" now"));
        }
        all
    }

    /// As many as are said.
    pub fn bounded(mut all: Vec<String>) -> Vec<String> {
        let more = all.len().saturating_sub(MOST);
        if more > 0 {
            all.truncate(MOST);
            all.push(format!("and {more} more"));
        }
        all
    }
}

impl Asked {
    /// The gates that were declared at the beginning and are not any more, under whatever name.
    pub fn gone<'a>(before: &'a [Self], now: &[Self]) -> Vec<&'a Self> {
        let is_there =
            |gate: &Self| now.iter().any(|other| (other.name == gate.name && other.kind == gate.kind) || other.asks_the_same(gate));
        before.iter().filter(|gate| !is_there(gate)).collect()
    }

    /// The gates that are gone or ask for less.
    pub fn weakened(before: &[Self], now: &[Self]) -> Vec<String> {
        let mut said = Vec::new();
        for old in before {
            let name = opening(&old.name, 60);
            let Some(new) = now.iter().find(|gate| gate.name == old.name) else {
                if !now.iter().any(|gate| gate.asks_the_same(old)) {
                    said.push(format!("gate \"{name}\" is gone (`{}`)", asked(old)));
                }
                continue;
            };
            let is_weaker = match old.kind {
                Kind::Markers => old.what.iter().any(|word| !new.what.contains(word)),
                _ => old.what != new.what,
            };
            if is_weaker || old.kind != new.kind {
                said.push(format!("gate \"{name}\" asked for `{}` when the loop began, and asks for `{}` now", asked(old), asked(new)));
            }
            for (term, value) in &old.terms {
                let was = format!("gate \"{name}\": its {term} was `{}` when the loop began", opening(value, 120));
                match new.terms.get(term) {
                    _ if old.kind != new.kind => {}
                    Some(now) if now == value => {}
                    Some(now) => said.push(format!("{was}, and is `{}` now", opening(now, 120))),
                    None => said.push(format!("{was}, and is not asked for now")),
                }
            }
        }
        said
    }
}

impl GuardPolicy {
    /// The policy that counts: the stricter one of the beginning and of now. An agent must not be able to switch the guard off.
    #[must_use]
    pub fn stricter(self, now: Self) -> Self {
        if strictness(now) < strictness(self) { self } else { now }
    }
}

fn strictness(policy: GuardPolicy) -> u8 {
    match policy {
        GuardPolicy::Off => 0,
        GuardPolicy::Warn => 1,
        GuardPolicy::Tests => 2,
        GuardPolicy::Block => 3,
    }
}

fn policy(policy: GuardPolicy) -> &'static str {
    match policy {
        GuardPolicy::Off => "off",
        GuardPolicy::Warn => "warn",
        GuardPolicy::Tests => "tests",
        GuardPolicy::Block => "block",
    }
}

type Sources = BTreeMap<String, Source>;

fn counts<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    counts
}

/// The entries that are in `before` more often than in `now`.
fn lost<'a>(before: &[&'a str], now: &[&'a str]) -> Vec<&'a str> {
    let mut left = now.to_vec();
    let is_lost = |name: &&&str| match left.iter().position(|other| other == *name) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    before.iter().filter(is_lost).copied().collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Tests are told apart by their names over all files, so that one may move.
fn tests_gone(before: &Sources, now: &Sources) -> Vec<String> {
    let all_before = counts(before.values().flat_map(|source| &source.tests));
    let all_now = counts(now.values().flat_map(|source| &source.tests));
    let mut missing: BTreeMap<&str, usize> = all_before
        .iter()
        .filter_map(|(name, count)| {
            Some((*name, count.checked_sub(all_now.get(name).copied().unwrap_or(0))?)).filter(|(_, missing)| *missing > 0)
        })
        .collect();
    let nothing = Source::default();
    let mut said = Vec::new();
    for (file, source) in before {
        let (then, here) = (texts(&source.tests), texts(&now.get(file).unwrap_or(&nothing).tests));
        let mut gone = lost(&then, &here);
        gone.retain(|name| missing.get_mut(name).filter(|left| **left > 0).map(|left| *left -= 1).is_some());
        if gone.is_empty() {
            continue;
        }
        let new = lost(&here, &then).iter().filter(|name| !all_before.contains_key(*name)).count();
        let new = match new {
            0 => String::new(),
            1 => "; 1 is new".to_owned(),
            n => format!("; {n} are new"),
        };
        let are = crate::text::count(gone.len() as u64, "test is", "tests are");
        said.push(format!("{}: {are} gone ({}){new}", shown(file), listed(&gone)));
    }
    said
}

/// Only if there are more of them in all: a test may move with its marker.
fn markers_added(before: &Sources, now: &Sources) -> Vec<String> {
    let total = |sources: &Sources| sources.values().map(|source| source.markers.len()).sum::<usize>();
    if total(now) <= total(before) {
        return Vec::new();
    }
    let nothing = Source::default();
    let mut said = Vec::new();
    for (file, source) in now {
        let old = before.get(file).unwrap_or(&nothing);
        let added = source.markers.len().saturating_sub(old.markers.len());
        if added == 0 {
            continue;
        }
        let new: BTreeSet<String> =
            lost(&texts(&source.markers), &texts(&old.markers)).iter().map(|marker| format!("`{marker}`")).collect();
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        let markers = if added == 1 {
            "1 marker that skips or singles out tests was".to_owned()
        } else {
            format!("{added} markers that skip or single out tests were")
        };
        said.push(format!("{}: {markers} added ({})", shown(file), listed(&new)));
    }
    said
}

fn asked(gate: &Asked) -> String {
    opening(&gate.what.join(", "), 120)
}

/// Changed files that a gate used. If no gate uses a file any more, the suspicion about that gate covers it.
fn files_changed(before: &BTreeMap<String, String>, now: &Facts) -> Vec<String> {
    let changed = |(file, old): (&String, &String)| {
        let what = match now.files.get(file)? {
            new if new.is_empty() => "is gone",
            new if new != old => "has changed since the loop began",
            _ => return None,
        };
        Some(format!("{}, which {}, {what}", shown(file), role(now.runners.get(file))))
    };
    before.iter().filter_map(changed).collect()
}

/// The role of a file for gates: `the gate "tests" runs`.
fn role(runners: Option<&BTreeSet<String>>) -> String {
    let names: Vec<String> = runners.into_iter().flatten().map(|name| format!("\"{}\"", opening(name, 60))).collect();
    match &names[..] {
        [] => "declares gates".to_owned(),
        [one] => format!("the gate {one} runs"),
        several => format!("the gates {} run", listed(&texts(several))),
    }
}

fn items_changed(before: &[Item], now: &[Item]) -> Vec<String> {
    // Several items may be called the same: the first is compared with the first, the second with the second.
    let known = |items: &[Item]| -> BTreeMap<(String, String, usize), String> {
        let mut called: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut all = BTreeMap::new();
        for item in items {
            let number = *called.entry((&item.list, &item.id)).and_modify(|n| *n += 1).or_insert(0);
            all.insert((item.list.clone(), item.id.clone(), number), item.criteria.clone());
        }
        all
    };
    let (before, now) = (known(before), known(now));
    let mut lists: BTreeMap<&str, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    // A list that is not asked for any more is said with its gate.
    for (key @ (list, id, _), criteria) in before.iter().filter(|((list, ..), _)| now.keys().any(|(known, ..)| known == list)) {
        let (gone, changed) = lists.entry(list).or_default();
        match now.get(key) {
            None => gone.push(id),
            Some(new) if new != criteria => changed.push(id),
            Some(_) => {}
        }
    }
    let mut said = Vec::new();
    for (list, (gone, changed)) in lists {
        if !gone.is_empty() {
            let items = crate::text::count(gone.len() as u64, "item is", "items are");
            said.push(format!("{}: {items} gone ({})", shown(list), listed(&gone)));
        }
        if !changed.is_empty() {
            let items = crate::text::count(changed.len() as u64, "item", "items");
            said.push(format!("{}: what {items} asked for changed ({})", shown(list), listed(&changed)));
        }
    }
    said
}

fn shown(path: &str) -> String {
    opening(path, 120)
}

/// Some names, and how many more.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| opening(name, 60)).collect();
    let more = names.len() - shown.len();
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
