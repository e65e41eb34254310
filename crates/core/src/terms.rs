//! The terms of a loop: what its file says about how long it may go on and how it ends.
//!
//! Ralph keeps them where the agent cannot write and compares them at every stop. A person's edit counts and is told. An edit that the agent made itself counts
//! only as far as it makes the loop stricter.

use serde::{Deserialize, Serialize};

use crate::{
    limits,
    loop_file::{HOOK_STALL_ROUNDS, LoopFile, fnv1a},
    prices::{self, Micros},
    time, words,
};

/// The terms as they were when ralph last wrote them down. For all limits 0 means none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Terms {
    pub active: bool,
    pub iteration: u64,
    pub max_iterations: u64,
    pub max_ms: u64,
    #[serde(skip_serializing_if = "crate::gate::is_zero")]
    pub max_usd_micros: Micros,
    #[serde(skip_serializing_if = "crate::gate::is_zero")]
    pub max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_rounds: Option<u64>,
    /// `None`: as many as are borne by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_rounds: Option<u64>,
    #[serde(skip_serializing_if = "crate::gate::is_zero")]
    pub max_context: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    /// The session that the file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Fingerprint of the prompt.
    pub prompt: u64,
}

/// One difference between the terms that were written down and those in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    key: Key,
    /// `max_iterations 5 → no limit`.
    pub what: String,
    /// It lets the loop go on for longer, or end more easily.
    pub looser: bool,
}

/// What can be edited; the names are the loop file's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Active,
    Iteration,
    MaxIterations,
    MaxHours,
    MaxUsd,
    MaxTokens,
    MaxContext,
    IdleRounds,
    StallRounds,
    Promise,
    Session,
    Prompt,
}

impl Key {
    const ALL: [Key; 12] = [
        Key::Active,
        Key::Iteration,
        Key::MaxIterations,
        Key::MaxHours,
        Key::MaxUsd,
        Key::MaxTokens,
        Key::MaxContext,
        Key::IdleRounds,
        Key::StallRounds,
        Key::Promise,
        Key::Session,
        Key::Prompt,
    ];

    fn name(self) -> &'static str {
        match self {
            Key::Active => "active",
            Key::Iteration => "iteration",
            Key::MaxIterations => "max_iterations",
            Key::MaxHours => "max_hours",
            Key::MaxUsd => "max_usd",
            Key::MaxTokens => "max_tokens",
            Key::MaxContext => "max_context",
            Key::IdleRounds => "idle_rounds",
            Key::StallRounds => "stall_rounds",
            Key::Promise => "completion_promise",
            Key::Session => "session_id",
            Key::Prompt => "prompt",
        }
    }
}

impl Terms {
    pub fn of(file: &LoopFile) -> Self {
        Terms {
            active: file.active,
            iteration: file.iteration,
            max_iterations: file.max_iterations,
            max_ms: file.max_millis(),
            max_usd_micros: file.max_usd_micros(),
            max_tokens: file.max_tokens,
            idle_rounds: file.idle_rounds,
            stall_rounds: (file.says_stall_rounds || file.stall_rounds > 0).then_some(file.stall_rounds),
            max_context: file.max_context,
            promise: file.completion_promise.clone(),
            session: file.session_id.clone(),
            prompt: fnv1a(file.prompt.as_bytes()),
        }
    }

    /// What is different in `now`.
    pub fn edits(&self, now: &Terms) -> Vec<Edit> {
        if self == now { Vec::new() } else { Key::ALL.into_iter().filter_map(|key| self.edit(key, now)).collect() }
    }

    fn edit(&self, key: Key, now: &Terms) -> Option<Edit> {
        // What is shown of two values may be the same although they are not.
        if self.is_same(key, now) {
            return None;
        }
        let shown = |n: Option<u64>| n.map_or_else(|| "default".to_owned(), |n| n.to_string());
        let (before, after, looser) = match key {
            Key::Active => (self.active.to_string(), now.active.to_string(), now.active),
            // A higher one is ralph's own: it was killed before it wrote that down.
            Key::Iteration if now.iteration > self.iteration => return None,
            Key::Iteration => (self.iteration.to_string(), now.iteration.to_string(), true),
            Key::MaxIterations => limit(self.max_iterations, now.max_iterations, |n| n.to_string()),
            Key::MaxHours => limit(self.max_ms, now.max_ms, time::in_words),
            Key::MaxUsd => limit(self.max_usd_micros, now.max_usd_micros, |n| format!("${}", prices::in_dollars(n))),
            Key::MaxTokens => limit(self.max_tokens, now.max_tokens, |n| n.to_string()),
            Key::MaxContext => limit(self.max_context, now.max_context, |n| format!("{n} %")),
            Key::IdleRounds => {
                let size = |n: Option<u64>| n.unwrap_or(limits::DEFAULT_IDLE_ROUNDS);
                (shown(self.idle_rounds), shown(now.idle_rounds), is_looser(size(self.idle_rounds), size(now.idle_rounds)))
            }
            Key::StallRounds => {
                let size = |n: Option<u64>| n.unwrap_or(HOOK_STALL_ROUNDS);
                (shown(self.stall_rounds), shown(now.stall_rounds), is_looser(size(self.stall_rounds), size(now.stall_rounds)))
            }
            Key::Promise => {
                let shown =
                    |p: &Option<String>| p.as_deref().map_or_else(|| "none".to_owned(), |p| format!("\"{}\"", words::opening(p, 60)));
                // Another promise may be one that the agent has made already; a first one only adds to what is asked for.
                (shown(&self.promise), shown(&now.promise), self.promise.is_some())
            }
            Key::Session => {
                let shown = |s: &Option<String>| s.as_deref().map_or_else(|| "none".to_owned(), |s| words::opening(s, 60));
                (shown(&self.session), shown(&now.session), self.session.is_some())
            }
            Key::Prompt => return Some(Edit { key, what: "the prompt".to_owned(), looser: false }),
        };
        Some(Edit { key, what: format!("{} {before} → {after}", key.name()), looser })
    }

    fn is_same(&self, key: Key, now: &Terms) -> bool {
        let mut changed = self.clone();
        changed.set(key, now);
        changed == *self
    }

    /// Takes over what ralph itself wrote into the file under these keys.
    pub fn take(&mut self, keys: &[&str], file: &LoopFile) {
        let now = Terms::of(file);
        for key in Key::ALL.into_iter().filter(|key| keys.contains(&key.name())) {
            self.set(key, &now);
        }
    }

    /// Takes over these edits.
    pub fn accept<'e>(&mut self, edits: impl IntoIterator<Item = &'e Edit>, file: &LoopFile) {
        let now = Terms::of(file);
        for edit in edits {
            self.set(edit.key, &now);
        }
    }

    fn set(&mut self, key: Key, now: &Terms) {
        match key {
            Key::Active => self.active = now.active,
            Key::Iteration => self.iteration = now.iteration,
            Key::MaxIterations => self.max_iterations = now.max_iterations,
            Key::MaxHours => self.max_ms = now.max_ms,
            Key::MaxUsd => self.max_usd_micros = now.max_usd_micros,
            Key::MaxTokens => self.max_tokens = now.max_tokens,
            Key::IdleRounds => self.idle_rounds = now.idle_rounds,
            Key::StallRounds => self.stall_rounds = now.stall_rounds,
            Key::MaxContext => self.max_context = now.max_context,
            Key::Promise => self.promise.clone_from(&now.promise),
            Key::Session => self.session.clone_from(&now.session),
            Key::Prompt => self.prompt = now.prompt,
        }
    }

    /// The loop as it counts where these edits do not.
    pub fn hold<'e>(&self, edits: impl IntoIterator<Item = &'e Edit>, file: &mut LoopFile) {
        for edit in edits {
            match edit.key {
                Key::Active => file.active = self.active,
                Key::Iteration => file.iteration = self.iteration,
                Key::MaxIterations => file.max_iterations = self.max_iterations,
                Key::MaxHours => file.max_hours = time::as_hours(self.max_ms),
                Key::MaxUsd => file.max_usd = prices::in_dollars(self.max_usd_micros),
                Key::MaxTokens => file.max_tokens = self.max_tokens,
                Key::IdleRounds => file.idle_rounds = self.idle_rounds,
                Key::StallRounds => {
                    file.stall_rounds = self.stall_rounds.unwrap_or(0);
                    file.says_stall_rounds = self.stall_rounds.is_some();
                }
                Key::MaxContext => file.max_context = self.max_context,
                Key::Promise => file.completion_promise.clone_from(&self.promise),
                Key::Session => file.session_id.clone_from(&self.session),
                Key::Prompt => {}
            }
        }
    }
}

fn limit(before: u64, now: u64, shown: impl Fn(u64) -> String) -> (String, String, bool) {
    let shown = |n: u64| if n == 0 { "no limit".to_owned() } else { shown(n) };
    (shown(before), shown(now), is_looser(before, now))
}

fn is_looser(before: u64, now: u64) -> bool {
    before != 0 && (now == 0 || now > before)
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
        assert_eq!((now.iteration, now.max_iterations, now.max_millis(), now.max_usd_micros()), (3, 5, 1_800_000, 1_000_000));
        assert_eq!(now.completion_promise.as_deref(), Some("DONE"));
        assert_eq!(Terms::of(&now), kept);
    }
}
