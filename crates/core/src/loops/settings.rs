//! The settings of a loop: the one list of its keys, flags and limits.
//!
//! Everything that names a setting is made from [`Setting::ALL`]: reading and writing the front matter, its template and its schema, the lines of `progress.txt`, the
//! flags of `ralph start`, `ralph run`, `ralph resume`, `/ralph-loop` and `/ralph-resume` with their help, and which edit of a file loosens the loop.
//!
//! A new limit is a field of [`LoopSettings`] and a row of [`Setting::ALL`]; for its seal also a field of [`Terms`].

use std::fmt::Write as _;

use serde_json::json;

use super::{
    edits::{Sealed, Terms},
    front_matter::quoted,
};
use crate::{
    gate::Command,
    money::{self, Micros},
    text::time,
};

/// Iterations in a row without any tool call after which a loop pauses when its file does not say and the agent has no cap of its own.
pub(crate) const DEFAULT_IDLE_ROUNDS: u64 = 25;

/// A loop about a pull request has no last iteration, so it has limits on money and on standstill when its file sets none (S2-7).
const PULL_REQUEST_USD: f64 = 50.0;

const PULL_REQUEST_STALL_ROUNDS: u64 = 6;

/// Iterations in a row that may change nothing by default: in fresh sessions, which run unattended, and in an agent's own session.
const FRESH_STALL_ROUNDS: u64 = 4;
const HOOK_STALL_ROUNDS: u64 = 10;

/// The settings that were given, on a command line or in a loop file. For all limits 0 means none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoopSettings {
    pub max_iterations: Option<u64>,
    pub completion_promise: Option<String>,
    pub max_hours: Option<f64>,
    pub max_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    /// How full the session's context may be, in per cent.
    pub max_context: Option<u64>,
    /// Iterations in one session after which its conversation is compacted; 0 means never.
    pub compact_every: Option<u64>,
    pub idle_rounds: Option<u64>,
    pub stall_rounds: Option<u64>,
    pub continue_with: Option<ContinueWith>,
    pub remind: Option<bool>,
    /// Lines for the shell that must pass before a new loop may end. A loop file can say more about each: [`super::LoopFile::verify`].
    pub verify: Vec<String>,
    /// How long each of them may run.
    pub deadline_ms: Option<u64>,
    pub preset: Option<Preset>,
    /// With the preset `pr`: the pull request must be merged, too.
    pub merge: Option<bool>,
    /// The one item of its list that the loop is about.
    pub item: Option<String>,
}

impl LoopSettings {
    /// Hours that a loop may run when its file does not say.
    pub const DEFAULT_HOURS: f64 = 8.0;

    /// The budget of `ralph run`, which works unattended, where the person sets none.
    pub const RUN_USD: f64 = 50.0;

    /// The settings of a loop that has these: what is not given comes from its preset, or is the default.
    #[must_use]
    pub fn with_defaults(mut self) -> Self {
        let is_of_a_pull_request = self.preset.is_some_and(Preset::is_of_a_pull_request);
        self.max_iterations.get_or_insert_default();
        self.max_hours.get_or_insert(Self::DEFAULT_HOURS);
        self.completion_promise = self.completion_promise.or_else(|| self.preset?.promise().map(str::to_owned));
        self.max_usd = self.max_usd.or(is_of_a_pull_request.then_some(PULL_REQUEST_USD));
        self.stall_rounds = self.stall_rounds.or(is_of_a_pull_request.then_some(PULL_REQUEST_STALL_ROUNDS));
        self
    }

    /// Whether nothing ends a loop with these settings but a cancel or a default brake: no promise, nothing to prove, no limit that the person set.
    pub fn is_endless(&self) -> bool {
        let has_limit = self.max_iterations() > 0 || self.max_hours > Some(0.0) || self.max_usd > Some(0.0) || self.max_tokens() > 0;
        !has_limit && self.completion_promise.is_none() && self.preset.is_none() && self.item.is_none() && self.verify.is_empty()
    }

    pub fn max_iterations(&self) -> u64 {
        self.max_iterations.unwrap_or_default()
    }

    pub fn max_hours(&self) -> f64 {
        self.max_hours.unwrap_or(Self::DEFAULT_HOURS)
    }

    pub fn max_millis(&self) -> u64 {
        time::of_hours(self.max_hours())
    }

    pub fn max_usd(&self) -> f64 {
        self.max_usd.unwrap_or_default()
    }

    pub fn max_usd_micros(&self) -> Micros {
        money::of_dollars(self.max_usd())
    }

    pub fn max_tokens(&self) -> u64 {
        self.max_tokens.unwrap_or_default()
    }

    pub fn max_context(&self) -> u64 {
        self.max_context.unwrap_or_default()
    }

    pub fn compact_every(&self) -> u64 {
        self.compact_every.unwrap_or_default()
    }

    /// Iterations in a row that may change nothing in an agent's own session.
    pub fn hook_stall_rounds(&self) -> u64 {
        self.stall_rounds.unwrap_or(HOOK_STALL_ROUNDS)
    }

    /// Iterations in a row that may change nothing in fresh sessions.
    pub fn fresh_stall_rounds(&self) -> u64 {
        self.stall_rounds.unwrap_or(FRESH_STALL_ROUNDS)
    }

    pub fn continue_with(&self) -> ContinueWith {
        self.continue_with.unwrap_or_default()
    }

    pub fn remind(&self) -> bool {
        self.remind.unwrap_or_default()
    }

    /// The settings that were given and that a flag can set, each with its flag and its values as text.
    pub fn given(&self) -> impl Iterator<Item = (&'static Setting, &'static Flag, Vec<String>)> {
        let flags = Setting::ALL.iter().filter_map(|setting| Some((setting, setting.flag.as_ref()?, setting.values(self))));
        flags.filter(|(.., values)| !values.is_empty())
    }

    /// The limits that were given and that a loop can have anew, by key.
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.given().filter(|(_, flag, _)| flag.resume.is_some()).map(|(setting, _, values)| (setting.key, values.concat()))
    }

    /// The flag of a setting that was given and that only a new loop can have.
    pub fn only_for_a_new_loop(&self) -> Option<&'static str> {
        self.given().find(|(_, flag, _)| flag.resume.is_none()).map(|(_, flag, _)| flag.name)
    }
}

/// One setting: its key, its flag, the kind of its values, and where it is kept.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in the loop file.
    pub key: &'static str,
    pub kind: Kind,
    /// Its description in the template and the schema; `None`: the loop file has no such key.
    about: Option<&'static str>,
    /// The value in the template, as YAML.
    example: &'static str,
    /// The template shows the key as a comment.
    is_comment: bool,
    is_required: bool,
    /// `None`: a field of [`super::LoopFile`], not of [`LoopSettings`].
    field: Option<Field>,
    pub flag: Option<Flag>,
    /// How a line of `progress.txt` begins that sets it.
    pub progress: Option<&'static str>,
    sealed: Option<fn(&mut Terms) -> Sealed<'_>>,
}

/// The flag that sets a setting.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Without its hyphens.
    pub name: &'static str,
    /// Another name for it.
    pub alias: Option<&'static str>,
    /// The name that it had before: it still counts, and no page shows it.
    pub old_name: Option<&'static str>,
    /// The name of its value in help texts.
    pub value: &'static str,
    pub help: &'static str,
    /// Further sentences for the long help; may be empty.
    pub more: &'static str,
    /// The help of the flag where a loop is resumed; `None`: only a new loop takes it.
    pub resume: Option<&'static str>,
}

/// Where [`LoopSettings`] keeps a setting.
#[derive(Debug, Clone, Copy)]
struct Field {
    of: fn(&LoopSettings) -> &dyn Slot,
    of_mut: fn(&mut LoopSettings) -> &mut dyn Slot,
}

macro_rules! field {
    ($name:ident) => {
        Field { of: |settings| &settings.$name, of_mut: |settings| &mut settings.$name }
    };
}

impl Flag {
    /// All the names that it answers to.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.current_names().chain(self.old_name)
    }

    /// Those of them that are shown.
    pub fn current_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [Some(self.name), self.alias].into_iter().flatten()
    }
}

impl Setting {
    /// Every setting, in the order in which people see them.
    pub const ALL: &[Setting] = &[
        Setting::key("active", Kind::YesNo, "true", "false pauses the loop: stops are allowed and nothing is counted"),
        Setting::key("iteration", Kind::Count, "1", "the iteration that is being worked on; ralph adds one each time it sends the agent back")
            .required(),
        Setting::key("session_id", Kind::Text, "null", "the session that this loop belongs to; null means the first one that stops in this project")
            .commented(),
        Setting::key("max_iterations", Kind::Count, "20", "the last iteration; 0 means no limit")
            .field(field!(max_iterations))
            .flag("max-iterations", "N", "End after this many iterations; 0 means no limit", "")
            .on_resume("A new limit on iterations; 0 means none")
            .in_progress("Max Iterations:")
            .sealed(|terms| Sealed::Limit(&mut terms.max_iterations)),
        Setting::key(
            "completion_promise",
            Kind::Text,
            "\"COMPLETE\"",
            "the words that the agent must put between <promise> and </promise>; null means that its gates end the loop, or without any only a limit or a cancel",
        )
        .field(field!(completion_promise))
        .flag("promise", "TEXT", "The words that the agent must put between <promise> and </promise> when all is done", "")
        .also("completion-promise"),
        Setting::key(
            "verify",
            Kind::Commands,
            "[\"cargo test\"]",
            "commands that must pass before the loop may end, besides the gates of ralph.toml; they run once a person trusts them, and for at most 2 minutes: { run: \"cargo test\", deadline: 10m } gives more",
        )
        .commented()
        .field(field!(verify))
        .flag("verify", "CMD", "A command that must pass before the loop may end; may be given several times", ""),
        Setting::key("deadline", Kind::Time, "", "")
            .only_a_flag()
            .field(field!(deadline_ms))
            .flag("deadline", "TIME", "How long each --verify command may run: 90s, 10m, 2h, or seconds [default: 2m]", ""),
        Setting::key(
            "preset",
            Kind::Choice(Preset::WORDS),
            "verify",
            "gates that need no ralph.toml: verify takes the commands of a worktree.yaml, features the list that is in the project, pr leads to an open pull request with green checks, pre-pr and after-pr are the two loops that docs/pull-requests.md defines",
        )
        .commented()
        .field(field!(preset))
        .flag(
            "preset",
            "PRESET",
            "Gates that need no ralph.toml",
            "verify: the commands of a worktree.yaml. features: the list in the project. pr: an open pull request with green checks. pre-pr: audit, quality gate and evidence, up to an open pull request. after-pr: the same, from red checks to the merge.",
        ),
        Setting::key("merge", Kind::YesNo, "true", "with the preset pr: the loop ends only when the pull request is merged")
            .commented()
            .field(field!(merge))
            .flag("merge", "", "With --preset pr: the pull request must be merged, too", ""),
        Setting::key(
            "item",
            Kind::Text,
            "\"US-2\"",
            "the id of one item of the list: the loop is about it alone, and the other items may stay open; without a gate that names a list it is the one that the preset features takes",
        )
        .commented()
        .field(field!(item))
        .flag(
            "item",
            "ID",
            "Work on this item of the list alone: the others may stay open",
            "The list is the one that ralph.toml names, else the one that --preset features takes.",
        ),
        Setting::key("started_at", Kind::Text, "\"2026-01-31T22:00:00.000Z\"", "when the loop was started").commented(),
        Setting::key("loop_id", Kind::Text, "\"main-20260131-220000\"", "the name of this loop's journal").commented(),
        Setting::key(
            "max_hours",
            Kind::Hours,
            "8",
            "how long the loop may run, pauses and closed sessions not counted; 0 means no limit; 8 if not given",
        )
        .field(field!(max_hours))
        .flag("hours", "H", "End after this many hours; 0 means no limit [default: 8]", "")
        .on_resume("A new allowance of time, from now on; 0 means no limit")
        .in_progress("Max Hours:")
        .sealed(|terms| Sealed::Limit(&mut terms.max_ms)),
        Setting::key(
            "max_usd",
            Kind::Dollars,
            "50",
            "about how many dollars the loop may spend, estimated from the tokens that the client reports; 0 means no limit; if not given, 50 for `ralph run` and with the presets pr, pre-pr and after-pr, else no limit",
        )
        .commented()
        .field(field!(max_usd))
        .flag(
            "usd",
            "X",
            "End when about this many dollars are spent; 0 means no limit",
            "Estimated from the tokens that the client reports. Default: 50 for `ralph run` and with the presets pr, pre-pr and after-pr, else no limit.",
        )
        .on_resume("A new allowance of dollars, from now on; 0 means no limit")
        .in_progress("Max USD:")
        .sealed(|terms| Sealed::Limit(&mut terms.max_usd_micros)),
        Setting::key(
            "max_tokens",
            Kind::Count,
            "20000000",
            "how many tokens of all kinds fresh sessions (`ralph run`) may use; 0 means no limit",
        )
        .field(field!(max_tokens))
        .flag("tokens", "N", "End when fresh sessions (`ralph run`) have used this many tokens of all kinds; 0 means no limit", "")
        .on_resume("A new allowance of tokens for fresh sessions (`ralph run`), from now on; 0 means no limit")
        .in_progress("Max Tokens:")
        .sealed(|terms| Sealed::Limit(&mut terms.max_tokens)),
        Setting::key(
            "max_context",
            Kind::Percent,
            "85",
            "how full the session's context may get, in percent, before the loop is paused and handed over to `ralph run --continue`; 0 means no limit",
        )
        .field(field!(max_context))
        .sealed(|terms| Sealed::Limit(&mut terms.max_context)),
        Setting::key(
            "compact_every",
            Kind::Count,
            "0",
            "after so many iterations in one session its conversation is made shorter; 0 means that the client decides",
        )
        .field(field!(compact_every)),
        Setting::key(
            "idle_rounds",
            Kind::Count,
            "7",
            "iterations in a row without any tool call after which the loop is paused; if not given, 7 under the client's own cap of 8 and 25 where that was lifted",
        )
        .commented()
        .field(field!(idle_rounds))
        .flag(
            "idle-iterations",
            "N",
            "Pause after this many iterations in a row without any tool call",
            "Default: 7 under the client's own cap of 8 blocked stops, 25 where that was lifted.",
        )
        .once_called("idle-rounds")
        .on_resume("A new limit on iterations in a row without any tool call")
        .in_progress("Idle Rounds:")
        .sealed(|terms| Sealed::OrDefault(&mut terms.idle_rounds, DEFAULT_IDLE_ROUNDS)),
        Setting::key(
            "stall_rounds",
            Kind::Count,
            "6",
            "iterations in a row that change nothing (no commit, no file, no finding) after which the loop is paused; 0 means never; if not given, 6 with the presets pr, pre-pr and after-pr, else 10, and 4 in fresh sessions",
        )
        .commented()
        .field(field!(stall_rounds))
        .flag(
            "stall-iterations",
            "N",
            "Pause after this many iterations in a row that change nothing; 0 means never",
            "Nothing: no commit, no file, no finding. Default: 6 with the presets pr, pre-pr and after-pr, else 4 in fresh sessions (`ralph run`) and 10 in a session of your own.",
        )
        .once_called("stall-rounds")
        .on_resume("A new limit on iterations in a row that change nothing; 0 means none")
        .in_progress("Stall Rounds:")
        .sealed(|terms| Sealed::OrDefault(&mut terms.stall_rounds, HOOK_STALL_ROUNDS)),
        Setting::key(
            "continue_with",
            Kind::Choice(ContinueWith::WORDS),
            "auto",
            "how the prompt goes back to the agent: as the hook's block reason, as added context, or as the client's version suggests",
        )
        .field(field!(continue_with))
        .flag("continue-with", "FORM", "How the prompt goes back to the agent", ""),
        Setting::key(
            "remind",
            Kind::YesNo,
            "true",
            "true adds one line to the prompt each time it comes back: how to claim completion",
        )
        .field(field!(remind)),
    ];

    const fn key(key: &'static str, kind: Kind, example: &'static str, about: &'static str) -> Self {
        let about = Some(about);
        Setting { key, kind, about, example, is_comment: false, is_required: false, field: None, flag: None, progress: None, sealed: None }
    }

    const fn only_a_flag(mut self) -> Self {
        self.about = None;
        self
    }

    const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    const fn commented(mut self) -> Self {
        self.is_comment = true;
        self
    }

    const fn field(mut self, field: Field) -> Self {
        self.field = Some(field);
        self
    }

    const fn flag(mut self, name: &'static str, value: &'static str, help: &'static str, more: &'static str) -> Self {
        self.flag = Some(Flag { name, alias: None, old_name: None, value, help, more, resume: None });
        self
    }

    const fn also(mut self, alias: &'static str) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.alias = Some(alias);
        }
        self
    }

    const fn once_called(mut self, name: &'static str) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.old_name = Some(name);
        }
        self
    }

    const fn on_resume(mut self, help: &'static str) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.resume = Some(help);
        }
        self
    }

    const fn in_progress(mut self, line: &'static str) -> Self {
        self.progress = Some(line);
        self
    }

    const fn sealed(mut self, sealed: fn(&mut Terms) -> Sealed<'_>) -> Self {
        self.sealed = Some(sealed);
        self
    }

    pub fn by_flag(name: &str) -> Option<&'static Setting> {
        Setting::ALL.iter().find(|setting| setting.flag.is_some_and(|flag| flag.names().any(|known| known == name)))
    }

    /// The keys that a loop file may have.
    pub(super) fn keys() -> impl Iterator<Item = &'static str> {
        Setting::ALL.iter().filter(|setting| setting.about.is_some()).map(|setting| setting.key)
    }

    /// The limits that are sealed, with their place among the terms.
    pub(super) fn limits() -> impl Iterator<Item = (&'static Setting, fn(&mut Terms) -> Sealed<'_>)> {
        Setting::ALL.iter().filter_map(|setting| Some((setting, setting.sealed?)))
    }

    /// A loop file sets it by one value that [`Setting::set`] can read.
    pub(super) fn is_plain_key(&self) -> bool {
        self.about.is_some() && self.field.is_some() && self.kind != Kind::Commands
    }

    /// Reads a value that a person wrote; the error says what is needed, as a noun: `a whole number from 0 on`.
    pub fn set(&self, settings: &mut LoopSettings, text: &str) -> Result<(), String> {
        let value = self.kind.read(text).ok_or_else(|| self.kind.wanted())?;
        if let Some(field) = self.field {
            (field.of_mut)(settings).put(Some(value));
        }
        Ok(())
    }

    fn get(&self, settings: &LoopSettings) -> Option<Typed> {
        (self.field?.of)(settings).get()
    }

    /// Its values as people write them; more than one only for commands.
    pub fn values(&self, settings: &LoopSettings) -> Vec<String> {
        match self.get(settings) {
            None => Vec::new(),
            Some(Typed::Lines(lines)) => lines,
            Some(Typed::YesNo(yes)) => vec![yes.to_string()],
            Some(Typed::Count(ms)) if self.kind == Kind::Time => vec![time::in_settings(ms)],
            Some(Typed::Count(n)) => vec![n.to_string()],
            Some(Typed::Amount(n)) => vec![n.to_string()],
            Some(Typed::Text(text)) => vec![text],
        }
    }

    /// A limit in the unit of the sealed terms: milliseconds, millionths of a dollar, or a count.
    pub(super) fn sealed_value(&self, settings: &LoopSettings) -> Option<u64> {
        match (self.kind, self.get(settings)?) {
            (Kind::Hours, Typed::Amount(hours)) => Some(time::of_hours(hours)),
            (_, Typed::Amount(dollars)) => Some(money::of_dollars(dollars)),
            (_, Typed::Count(n)) => Some(n),
            _ => None,
        }
    }

    /// Takes back a limit from the sealed terms.
    pub(super) fn restore(&self, settings: &mut LoopSettings, sealed: Option<u64>) {
        let value = sealed.map(|n| match self.kind {
            Kind::Hours => Typed::Amount(time::as_hours(n)),
            Kind::Dollars => Typed::Amount(money::in_dollars(n)),
            _ => Typed::Count(n),
        });
        if let Some(field) = self.field {
            (field.of_mut)(settings).put(value);
        }
    }

    /// A limit of the sealed terms, for people.
    pub(super) fn shown(&self, sealed: u64) -> String {
        match self.kind {
            Kind::Hours => time::in_words(sealed),
            Kind::Dollars => format!("${}", money::in_dollars(sealed)),
            Kind::Percent => format!("{sealed} %"),
            _ => sealed.to_string(),
        }
    }

    /// The front matter of a loop file with these settings; `own` has the values of the keys that are no settings, as YAML.
    pub(super) fn front_matter(settings: &LoopSettings, own: &[(&str, String)]) -> String {
        let lines = |setting: &Setting| match own.iter().find(|(key, _)| *key == setting.key) {
            Some((key, value)) => format!("{key}: {value}\n"),
            None => setting.lines(settings),
        };
        Setting::ALL.iter().filter(|setting| setting.about.is_some()).map(lines).collect()
    }

    fn lines(&self, settings: &LoopSettings) -> String {
        let key = self.key;
        match (self.kind, self.get(settings)) {
            (_, Some(Typed::Lines(lines))) => {
                let entry = |line: &String| match settings.deadline_ms {
                    None => format!("  - {}\n", quoted(line)),
                    Some(ms) => format!("  - run: {}\n    deadline: {}\n", quoted(line), time::in_settings(ms)),
                };
                format!("{key}:\n{}", lines.iter().map(entry).collect::<String>())
            }
            (Kind::Text, Some(Typed::Text(text))) => format!("{key}: {}\n", quoted(&text)),
            (Kind::Text, _) if !self.is_comment => format!("{key}: null\n"),
            _ => self.values(settings).iter().map(|value| format!("{key}: {value}\n")).collect::<Vec<_>>().concat(),
        }
    }

    /// A loop file with every key and its description (S1-2).
    pub fn template() -> String {
        let mut out = String::from("---\n# A Ralph loop. Save as .claude/ralph-loop.local.md; edits count from the next stop on.\n");
        for Setting { key, about, example, is_comment, is_required, .. } in Self::ALL {
            let Some(about) = about else { continue };
            let (required, comment) = (if *is_required { " (required)" } else { "" }, if *is_comment { "# " } else { "" });
            let _ = writeln!(out, "\n# {about}{required}\n{comment}{key}: {example}");
        }
        out.push_str(
            "---\n\nDescribe the task here. When all of it is true, end with\n<promise>COMPLETE</promise>\non a line of its own.\n",
        );
        out
    }

    /// The JSON schema of the front matter (S1-AC3).
    pub fn schema() -> serde_json::Value {
        let spec = |setting: &Setting| {
            let mut spec = setting.kind.schema();
            if setting.is_required {
                spec["type"] = json!("integer");
            }
            spec["description"] = json!(setting.about?);
            Some((setting.key.to_owned(), spec))
        };
        let properties: serde_json::Map<_, _> = Self::ALL.iter().filter_map(spec).collect();
        let required: Vec<_> = Setting::ALL.iter().filter(|setting| setting.is_required).map(|setting| setting.key).collect();
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Front matter of a Ralph loop file",
            "type": "object",
            "required": required,
            "properties": properties,
        })
    }
}

/// The kind of a setting's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    YesNo,
    Count,
    Percent,
    Hours,
    Dollars,
    Text,
    /// `90s`, `10m`, `2h`.
    Time,
    Choice(&'static [&'static str]),
    /// One line for the shell, or a list of them.
    Commands,
}

impl Kind {
    fn read(self, text: &str) -> Option<Typed> {
        let plain = text.trim();
        match self {
            Kind::YesNo => match plain.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Some(Typed::YesNo(true)),
                "false" | "no" | "off" => Some(Typed::YesNo(false)),
                _ => None,
            },
            Kind::Count => plain.parse().ok().map(Typed::Count),
            Kind::Percent => plain.parse().ok().filter(|n| *n <= 100).map(Typed::Count),
            Kind::Hours | Kind::Dollars => plain.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0).map(Typed::Amount),
            Kind::Time => Command::parse_deadline(plain).ok().map(Typed::Count),
            Kind::Choice(names) => names.contains(&plain).then(|| Typed::Text(plain.to_owned())),
            Kind::Text | Kind::Commands => (!plain.is_empty()).then(|| Typed::Text(text.to_owned())),
        }
    }

    /// A loop file's `active`.
    pub(super) fn yes_or_no(text: &str) -> Result<bool, String> {
        if let Some(Typed::YesNo(yes)) = Kind::YesNo.read(text) { Ok(yes) } else { Err(Kind::YesNo.wanted()) }
    }

    /// A loop file's `iteration`.
    pub(super) fn count(text: &str) -> Result<u64, String> {
        if let Some(Typed::Count(n)) = Kind::Count.read(text) { Ok(n) } else { Err(Kind::Count.wanted()) }
    }

    /// The end of a sentence: "must be …".
    fn wanted(self) -> String {
        match self {
            Kind::YesNo => "true or false",
            Kind::Count => "a whole number from 0 on",
            Kind::Percent => "a whole number from 0 to 100",
            Kind::Hours => "a number of hours from 0 on",
            Kind::Dollars => "a number of dollars from 0 on",
            Kind::Text => "words",
            Kind::Time => "a length of time such as 90s, 10m or 2h, at most 24 hours",
            Kind::Choice(names) => return format!("one of {}", names.join(", ")),
            Kind::Commands => "a command",
        }
        .to_owned()
    }

    fn schema(self) -> serde_json::Value {
        match self {
            Kind::YesNo => json!({ "type": "boolean" }),
            Kind::Count | Kind::Percent | Kind::Time => json!({ "type": ["integer", "null"], "minimum": 0 }),
            Kind::Hours | Kind::Dollars => json!({ "type": ["number", "null"], "minimum": 0 }),
            Kind::Text => json!({ "type": ["string", "null"] }),
            Kind::Choice(values) => json!({ "enum": values }),
            Kind::Commands => json!({ "type": ["string", "array", "object", "null"], "items": { "type": ["string", "object"] } }),
        }
    }
}

/// A value of any kind.
enum Typed {
    YesNo(bool),
    Count(u64),
    Amount(f64),
    Text(String),
    Lines(Vec<String>),
}

/// A field of [`LoopSettings`], whatever its type.
trait Slot {
    fn get(&self) -> Option<Typed>;
    /// Sets or clears it; a further line is added to those before.
    fn put(&mut self, value: Option<Typed>);
}

macro_rules! slot {
    ($type:ty, $value:ident => $get:expr, $put:pat => $read:expr) => {
        impl Slot for Option<$type> {
            fn get(&self) -> Option<Typed> {
                self.as_ref().map(|$value| $get)
            }

            fn put(&mut self, value: Option<Typed>) {
                *self = if let Some($put) = value { $read } else { None };
            }
        }
    };
}

slot!(bool, yes => Typed::YesNo(*yes), Typed::YesNo(yes) => Some(yes));
slot!(u64, n => Typed::Count(*n), Typed::Count(n) => Some(n));
slot!(f64, n => Typed::Amount(*n), Typed::Amount(n) => Some(n));
slot!(String, text => Typed::Text(text.clone()), Typed::Text(text) => Some(text));
slot!(Preset, preset => Typed::Text(preset.as_str().to_owned()), Typed::Text(name) => Preset::of(&name));
slot!(ContinueWith, form => Typed::Text(form.as_str().to_owned()), Typed::Text(name) => ContinueWith::of(&name));

impl Slot for Vec<String> {
    fn get(&self) -> Option<Typed> {
        (!self.is_empty()).then(|| Typed::Lines(self.clone()))
    }

    fn put(&mut self, value: Option<Typed>) {
        match value {
            Some(Typed::Text(line)) => self.push(line),
            _ => self.clear(),
        }
    }
}

/// Declares an enum whose values people write as words.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $value,)+ }

        impl $name {
            #[allow(dead_code, reason = "not every one is the value of a setting")]
            pub const WORDS: &[&str] = &[$($word,)+];

            pub fn of(word: &str) -> Option<Self> {
                [$($name::$value,)+].into_iter().find(|value| value.as_str().eq_ignore_ascii_case(word))
            }

            pub fn as_str(self) -> &'static str {
                match self { $($name::$value => $word,)+ }
            }
        }
    };
}
pub(super) use words;

words! {
    /// How the prompt goes back to the agent.
    #[derive(Default)]
    ContinueWith {
        #[default]
        Auto = "auto",
        Block = "block",
        Context = "context",
    }
}

words! {
    /// Gates that need no `ralph.toml`.
    Preset {
        /// The commands that a `worktree.yaml` asks for.
        Verify = "verify",
        /// The list of items in the project.
        Features = "features",
        /// The project's own gates, an open pull request, green checks.
        Pr = "pr",
        /// From code to an open pull request (S2-2).
        PrePr = "pre-pr",
        /// From red CI to a merged pull request (S2-3).
        AfterPr = "after-pr",
    }
}

impl Preset {
    /// The promise of its loops, unless they have their own.
    fn promise(self) -> Option<&'static str> {
        (self == Preset::AfterPr).then_some("CI_PASSED")
    }

    /// Whether it looks at a pull request.
    pub fn is_of_a_pull_request(self) -> bool {
        matches!(self, Preset::Pr | Preset::PrePr | Preset::AfterPr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::LoopFile;

    #[test]
    fn s1_2_the_template_is_a_loop() {
        let parsed = LoopFile::parse(Setting::template().as_bytes());
        assert_eq!(parsed.as_ref().map(|l| (l.iteration, l.max_iterations(), l.remind())), Ok((1, 20, true)));
        for key in Setting::keys() {
            assert!(Setting::template().contains(&format!("{key}: ")), "{key}");
        }
    }

    /// A value that a person gives is the one that is kept, shown again and sealed.
    #[test]
    fn every_row_keeps_what_it_is_given() {
        for setting in Setting::ALL.iter().filter(|setting| setting.field.is_some()) {
            let given = match setting.kind {
                Kind::YesNo => "true",
                Kind::Choice(names) => names[1],
                Kind::Time => "10m",
                Kind::Text | Kind::Commands => "some words",
                _ => "12",
            };
            let mut settings = LoopSettings::default();
            assert_eq!(setting.set(&mut settings, given), Ok(()), "{}", setting.key);
            assert_eq!(setting.values(&settings), [given], "{}", setting.key);
            let others = Setting::ALL.iter().filter(|other| !other.values(&settings).is_empty()).count();
            assert_eq!(others, 1, "{} is kept in a field of its own", setting.key);
            if setting.sealed.is_some() {
                let mut again = LoopSettings::default();
                setting.restore(&mut again, setting.sealed_value(&settings));
                assert_eq!(again, settings);
            }
        }
    }

    #[test]
    fn choices_have_their_words() {
        for word in Preset::WORDS {
            assert_eq!(Preset::of(word).map(Preset::as_str), Some(*word));
        }
        for word in ContinueWith::WORDS {
            assert_eq!(ContinueWith::of(word).map(ContinueWith::as_str), Some(*word));
        }
    }
}
