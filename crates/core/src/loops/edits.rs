//! The terms of a loop: its limits, its promise and its session.
//!
//! Ralph keeps them where the agent cannot write and compares them at every stop. A person's edit counts and is told. An edit that the agent made itself counts
//! only as far as it makes the loop stricter.

use serde::{Deserialize, Serialize};

use super::{
    file::{LoopFile, fnv1a},
    settings::Setting,
};
use crate::{money::Micros, text};

/// The terms as they were when ralph last wrote them down. For all limits 0 means none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Terms {
    pub active: bool,
    pub iteration: u64,
    pub max_iterations: u64,
    pub max_ms: u64,
    #[serde(skip_serializing_if = "crate::is_default")]
    pub max_usd_micros: Micros,
    #[serde(skip_serializing_if = "crate::is_default")]
    pub max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_rounds: Option<u64>,
    /// `None`: as many as are borne by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_rounds: Option<u64>,
    #[serde(skip_serializing_if = "crate::is_default")]
    pub max_context: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    /// The one item of its list that the loop is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The session that the file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Fingerprint of the prompt.
    pub prompt: u64,
}

/// Where the terms keep a limit.
pub(super) enum Sealed<'t> {
    /// 0 means none.
    Limit(&'t mut u64),
    /// `None`: as many as by default.
    OrDefault(&'t mut Option<u64>, u64),
}

/// One difference between the terms that were written down and those in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// As the loop file names it.
    key: &'static str,
    /// `max_iterations 5 → no limit`.
    pub what: String,
    /// It lets the loop go on for longer, or end more easily.
    pub looser: bool,
}

impl Edit {
    /// Whether it paused the loop.
    pub fn is_pause(&self) -> bool {
        self.key == "active" && !self.looser
    }
}

impl Terms {
    pub fn of(file: &LoopFile) -> Self {
        let mut terms = Terms {
            active: file.active,
            iteration: file.iteration,
            promise: file.completion_promise.clone(),
            item: file.item.clone(),
            session: file.session_id.clone(),
            prompt: fnv1a(file.prompt.as_bytes()),
            ..Terms::default()
        };
        for (setting, sealed) in Setting::limits() {
            put(sealed(&mut terms), setting.sealed_value(file));
        }
        terms
    }

    /// The differences in `now`.
    pub fn edits(&self, now: &Terms) -> Vec<Edit> {
        if self == now { Vec::new() } else { keys().filter_map(|key| self.edit(key, now)).collect() }
    }

    fn edit(&self, key: &'static str, now: &Terms) -> Option<Edit> {
        // Two values may look the same and still differ.
        if self.is_same(key, now) {
            return None;
        }
        let text = |text: &Option<String>| text.as_deref().map_or_else(|| "none".to_owned(), |text| text::opening(text, 60));
        let (before, after, looser) = match key {
            "active" => (self.active.to_string(), now.active.to_string(), now.active),
            // A higher one is ralph's own: it was killed before it wrote that down.
            "iteration" if now.iteration > self.iteration => return None,
            "iteration" => (self.iteration.to_string(), now.iteration.to_string(), true),
            // Another promise may be one that the agent has made already; a first one only adds to what is asked for.
            "completion_promise" => {
                let quoted =
                    |promise: &Option<String>| promise.as_ref().map_or_else(|| text(promise), |_| format!("\"{}\"", text(promise)));
                (quoted(&self.promise), quoted(&now.promise), self.promise.is_some())
            }
            // Of one item less is asked than of the list, and another one may be done already.
            "item" => (text(&self.item), text(&now.item), now.item.is_some()),
            "session_id" => (text(&self.session), text(&now.session), self.session.is_some()),
            "prompt" => return Some(Edit { key, what: "the prompt".to_owned(), looser: false }),
            _ => limit_edit(key, self.clone(), now.clone())?,
        };
        Some(Edit { key, what: format!("{key} {before} → {after}"), looser })
    }

    fn is_same(&self, key: &str, now: &Terms) -> bool {
        let mut changed = self.clone();
        changed.set(key, now);
        changed == *self
    }

    /// Takes over what ralph itself wrote into the file under these keys.
    pub fn take(&mut self, taken: &[&str], file: &LoopFile) {
        let now = Terms::of(file);
        keys().filter(|key| taken.contains(key)).for_each(|key| self.set(key, &now));
    }

    /// Takes over these edits.
    pub fn accept<'e>(&mut self, edits: impl IntoIterator<Item = &'e Edit>, file: &LoopFile) {
        let now = Terms::of(file);
        edits.into_iter().for_each(|edit| self.set(edit.key, &now));
    }

    fn set(&mut self, key: &str, now: &Terms) {
        match key {
            "active" => self.active = now.active,
            "iteration" => self.iteration = now.iteration,
            "completion_promise" => self.promise.clone_from(&now.promise),
            "item" => self.item.clone_from(&now.item),
            "session_id" => self.session.clone_from(&now.session),
            "prompt" => self.prompt = now.prompt,
            _ => {
                if let Some((_, sealed)) = limit(key) {
                    put(sealed(self), got(&sealed(&mut now.clone())));
                }
            }
        }
    }

    /// The loop as it counts where these edits do not.
    pub fn hold<'e>(&self, edits: impl IntoIterator<Item = &'e Edit>, file: &mut LoopFile) {
        for edit in edits {
            match edit.key {
                "active" => file.active = self.active,
                "iteration" => file.iteration = self.iteration,
                "completion_promise" => file.settings.completion_promise.clone_from(&self.promise),
                "item" => file.settings.item.clone_from(&self.item),
                "session_id" => file.session_id.clone_from(&self.session),
                key => {
                    if let Some((setting, sealed)) = limit(key) {
                        setting.restore(&mut file.settings, got(&sealed(&mut self.clone())));
                    }
                }
            }
        }
    }
}

/// The keys that are compared.
fn keys() -> impl Iterator<Item = &'static str> {
    let limits = Setting::limits().map(|(setting, _)| setting.key);
    ["active", "iteration"].into_iter().chain(limits).chain(["completion_promise", "item", "session_id", "prompt"])
}

/// A limit, and where the terms hold it.
type Limit = (&'static Setting, fn(&mut Terms) -> Sealed<'_>);

fn limit(key: &str) -> Option<Limit> {
    Setting::limits().find(|(setting, _)| setting.key == key)
}

fn put(sealed: Sealed<'_>, value: Option<u64>) {
    match sealed {
        Sealed::Limit(limit) => *limit = value.unwrap_or_default(),
        Sealed::OrDefault(limit, _) => *limit = value,
    }
}

fn got(sealed: &Sealed<'_>) -> Option<u64> {
    match sealed {
        Sealed::Limit(limit) => Some(**limit),
        Sealed::OrDefault(limit, _) => **limit,
    }
}

/// A limit before and after, in words, and whether the later one is looser: larger, or none.
fn limit_edit(key: &str, mut before: Terms, mut now: Terms) -> Option<(String, String, bool)> {
    let (setting, sealed) = limit(key)?;
    let side = |sealed: Sealed<'_>| match sealed {
        Sealed::Limit(0) => ("no limit".to_owned(), 0),
        Sealed::Limit(n) => (setting.shown(*n), *n),
        Sealed::OrDefault(None, default) => ("default".to_owned(), default),
        Sealed::OrDefault(Some(n), _) => (n.to_string(), *n),
    };
    let ((before, most_before), (after, most)) = (side(sealed(&mut before)), side(sealed(&mut now)));
    Some((before, after, most_before != 0 && (most == 0 || most > most_before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(front_matter: &str) -> LoopFile {
        LoopFile::parse(format!("---\niteration: 3\n{front_matter}---\n\nWork.\n").as_bytes()).unwrap()
    }

    fn edits(before: &str, now: &str) -> Vec<(String, bool)> {
        let (before, now) = (Terms::of(&file(before)), Terms::of(&file(now)));
        before.edits(&now).into_iter().map(|edit| (edit.what, edit.looser)).collect()
    }

    #[test]
    fn t7_an_edit_is_named_and_known_as_looser_or_not() {
        let one = |before: &str, now: &str, what: &str, looser: bool| assert_eq!(edits(before, now), [(what.to_owned(), looser)]);
        assert_eq!(edits("max_iterations: 5\n", "max_iterations: 5\n"), []);
        one("max_iterations: 5\n", "max_iterations: 0\n", "max_iterations 5 → no limit", true);
        one("max_iterations: 5\n", "max_iterations: 4\n", "max_iterations 5 → 4", false);
        one("", "max_iterations: 4\n", "max_iterations no limit → 4", false);
        one("max_hours: 1\n", "max_hours: 2\n", "max_hours 1 h → 2 h", true);
        one("max_usd: 1\n", "max_usd: 0\n", "max_usd $1 → no limit", true);
        one("idle_rounds: 5\n", "", "idle_rounds 5 → default", true);
        one("", "stall_rounds: 0\n", "stall_rounds default → 0", true);
        one("", "stall_rounds: 1000\n", "stall_rounds default → 1000", true);
        one("", "stall_rounds: 4\n", "stall_rounds default → 4", false);
        one("max_hours: 24\n", "max_hours: 24.01\n", "max_hours 1 d → 1 d", true);
        one("completion_promise: DONE\n", "completion_promise: OK\n", "completion_promise \"DONE\" → \"OK\"", true);
        one("", "completion_promise: OK\n", "completion_promise none → \"OK\"", false);
        one("", "item: A\n", "item none → A", true);
        one("item: A\n", "item: B\n", "item A → B", true);
        one("item: A\n", "", "item A → none", false);
        one("", "active: false\n", "active true → false", false);
        one("active: false\n", "", "active false → true", true);
    }

    #[test]
    fn t7_what_does_not_count_is_held() {
        let sealed = Terms::of(&file("max_iterations: 5\nmax_hours: 0.5\nmax_usd: 2.5\ncompletion_promise: DONE\n"));
        let mut now = file("max_iterations: 0\nmax_hours: 9\nmax_usd: 1\ncompletion_promise: X\n");
        now.iteration = 1;
        let edits = sealed.edits(&Terms::of(&now));
        let (looser, stricter): (Vec<Edit>, Vec<Edit>) = edits.into_iter().partition(|edit| edit.looser);
        let mut kept = sealed.clone();
        kept.accept(&stricter, &now);
        kept.hold(&looser, &mut now);
        assert_eq!((now.iteration, now.max_iterations(), now.max_millis(), now.max_usd_micros()), (3, 5, 1_800_000, 1_000_000));
        assert_eq!(now.completion_promise.as_deref(), Some("DONE"));
        assert_eq!(Terms::of(&now), kept);
    }
}
