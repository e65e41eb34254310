//! The loop file: what its values mean, how a new one is written, and how one value of it is changed.
//!
//! The format is the well-known one (front matter, then the prompt), plus optional keys; [`crate::loop_keys`] lists them.

use std::fmt::Write as _;

use crate::{
    front_matter::{Entry, FrontMatter, Problem, Scalar, Value, quoted},
    gate::Command,
    loop_keys,
    prices::{self, Micros},
    spelling, time, verify_yaml,
};

/// The loop of a project that has only one.
pub const DEFAULT_FILE: &str = "ralph-loop.local.md";

/// Hours that a loop may run when its file does not say.
pub const DEFAULT_HOURS: f64 = 8.0;

/// Dollars that a loop about a pull request may spend, and rounds that may change nothing, when its file does not say (S2-7): it has no last round.
pub const DEFAULT_USD: f64 = 50.0;
pub const DEFAULT_STALL_ROUNDS: u64 = 6;

/// Rounds in fresh sessions that may change nothing when nobody says otherwise: nobody looks on.
pub const FRESH_STALL_ROUNDS: u64 = 4;

/// The same in the session of an agent, which its stop hook holds.
pub const HOOK_STALL_ROUNDS: u64 = 10;

/// A prompt larger than this was not meant as one.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// How the prompt goes back to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContinueWith {
    #[default]
    Auto,
    Block,
    Context,
}

/// Gates that need no `ralph.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The commands that a `worktree.yaml` asks for.
    Verify,
    /// The list of items that is in the project.
    Features,
    /// From code to an open pull request (S2-2).
    PrePr,
    /// From red CI to a merged pull request (S2-3).
    AfterPr,
}

impl Preset {
    pub const ALL: [Preset; 4] = [Preset::Verify, Preset::Features, Preset::PrePr, Preset::AfterPr];

    pub fn of(name: &str) -> Option<Self> {
        Preset::ALL.into_iter().find(|preset| preset.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Preset::Verify => "verify",
            Preset::Features => "features",
            Preset::PrePr => "pre-pr",
            Preset::AfterPr => "after-pr",
        }
    }

    /// What the agent must say in the end, where nobody chose other words.
    pub fn promise(self) -> Option<&'static str> {
        (self == Preset::AfterPr).then_some("CI_PASSED")
    }

    /// Dollars that its loops may spend when nobody says otherwise.
    pub fn max_usd(self) -> Option<f64> {
        self.is_of_a_pull_request().then_some(DEFAULT_USD)
    }

    /// Rounds that may change nothing when nobody says otherwise.
    pub fn stall_rounds(self) -> Option<u64> {
        self.is_of_a_pull_request().then_some(DEFAULT_STALL_ROUNDS)
    }

    /// Whether it looks at a pull request.
    pub fn is_of_a_pull_request(self) -> bool {
        matches!(self, Preset::PrePr | Preset::AfterPr)
    }
}

/// A loop as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopFile {
    pub active: bool,
    pub iteration: u64,
    /// 0 means no limit.
    pub max_iterations: u64,
    pub completion_promise: Option<String>,
    pub session_id: Option<String>,
    pub started_at: Option<String>,
    pub loop_id: Option<String>,
    pub max_hours: f64,
    /// 0 means no limit.
    pub max_usd: f64,
    /// 0 means no limit.
    pub max_tokens: u64,
    /// How full the session's context may be, in hundredths; 0 means no limit.
    pub max_context: u64,
    /// After so many rounds in one session its conversation is made shorter; 0 means never.
    pub compact_every: u64,
    pub idle_rounds: Option<u64>,
    /// 0 means no limit.
    pub stall_rounds: u64,
    /// The file itself says how many.
    pub says_stall_rounds: bool,
    pub continue_with: ContinueWith,
    pub remind: bool,
    /// Commands that must pass before the loop may end.
    pub verify: Vec<Command>,
    pub preset: Option<Preset>,
    /// The list of the feature folder that the loop was put together from; a loop file has none.
    pub list: Option<String>,
    pub prompt: String,
    /// Worth telling the person: a key that looks like a misspelt one sets nothing.
    pub warnings: Vec<String>,
    front_matter: FrontMatter,
}

impl LoopFile {
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        Self::of(FrontMatter::parse(bytes)?, bytes)
    }

    /// The loop of a document that has been taken apart already.
    fn of(front_matter: FrontMatter, bytes: &[u8]) -> Result<Self, Problem> {
        let keys = Reader(&front_matter);
        let prompt = prompt_text(front_matter.body(bytes));
        if prompt.trim().is_empty() {
            return Err(Problem::new(None, "there is no prompt after the front matter"));
        }
        let preset = keys.preset()?;
        let stall_rounds = keys.count("stall_rounds")?;
        Ok(LoopFile {
            active: keys.bool("active")?.unwrap_or(true),
            iteration: keys.count("iteration")?.ok_or_else(|| Problem::new(None, "`iteration` is missing"))?,
            max_iterations: keys.count("max_iterations")?.unwrap_or(0),
            completion_promise: keys.text("completion_promise")?.or_else(|| preset?.promise().map(str::to_owned)),
            session_id: keys.text("session_id")?,
            started_at: keys.text("started_at")?,
            loop_id: keys.text("loop_id")?,
            max_hours: keys.amount("max_hours", "hours")?.unwrap_or(DEFAULT_HOURS),
            max_usd: keys.amount("max_usd", "dollars")?.or_else(|| preset?.max_usd()).unwrap_or(0.0),
            max_tokens: keys.count("max_tokens")?.unwrap_or(0),
            max_context: keys.percent("max_context")?.unwrap_or(0),
            compact_every: keys.count("compact_every")?.unwrap_or(0),
            idle_rounds: keys.count("idle_rounds")?,
            stall_rounds: stall_rounds.or_else(|| preset?.stall_rounds()).unwrap_or(0),
            says_stall_rounds: stall_rounds.is_some(),
            continue_with: keys.continue_with()?,
            remind: keys.bool("remind")?.unwrap_or(false),
            verify: verify(&front_matter, bytes)?,
            preset,
            list: None,
            prompt,
            warnings: misspelt(&front_matter),
            front_matter,
        })
    }

    /// The file with one value changed, and the loop that it then describes; `bytes` are those that this loop was parsed from.
    pub fn with(&self, bytes: &[u8], key: &str, value: Value<'_>) -> Result<(Vec<u8>, LoopFile), Problem> {
        let (bytes, front_matter) = self.front_matter.with_value(bytes, key, value)?;
        let file = Self::of(front_matter, &bytes)?;
        Ok((bytes, file))
    }

    /// The loop's id: its own, else made from its name and its start. A copy under another name is another loop.
    pub fn id(&self, name: &str) -> String {
        let own = self.loop_id.clone().filter(|id| belongs(id, name));
        own.unwrap_or_else(|| derived_id(name, self.started_at.as_deref()))
    }

    /// Whether the file says itself which loop it is.
    pub fn is_named(&self, name: &str) -> bool {
        self.loop_id.as_deref().is_some_and(|id| belongs(id, name))
    }

    /// When the loop began, if its file says so.
    pub fn began(&self) -> Option<time::Millis> {
        self.started_at.as_deref().and_then(time::parse)
    }

    /// How many rounds in a row may change nothing in a session of its own.
    pub fn hook_stall_rounds(&self) -> u64 {
        if self.stalls_by_default() { HOOK_STALL_ROUNDS } else { self.stall_rounds }
    }

    /// Nobody said how many.
    pub fn stalls_by_default(&self) -> bool {
        !self.says_stall_rounds && self.stall_rounds == 0
    }

    /// How many rounds in a row may change nothing when ralph starts the sessions.
    pub fn fresh_stall_rounds(&self) -> u64 {
        if self.stalls_by_default() { FRESH_STALL_ROUNDS } else { self.stall_rounds }
    }

    pub fn max_millis(&self) -> u64 {
        time::of_hours(self.max_hours)
    }

    pub fn max_usd_micros(&self) -> Micros {
        prices::of_dollars(self.max_usd)
    }
}

fn verify(front_matter: &FrontMatter, bytes: &[u8]) -> Result<Vec<Command>, Problem> {
    if front_matter.get("verify")?.is_none() {
        return Ok(Vec::new());
    }
    let (yaml, first_line) = front_matter.yaml(bytes);
    verify_yaml::commands(yaml).map_err(|p| Problem { line: p.line.map(|line| line + first_line - 1), ..p })
}

fn misspelt(front_matter: &FrontMatter) -> Vec<String> {
    let known = || loop_keys::KEYS.iter().map(|k| k.name);
    let near = |entry: &Entry| {
        // This runs at every stop; comparing letters is for the rare unknown key.
        let meant = if known().any(|k| k == entry.key) { None } else { spelling::nearest(&entry.key, known()) }?;
        Some(format!("line {}: `{}` sets nothing; did you mean `{meant}`?", entry.line, shown(&entry.key)))
    };
    front_matter.entries().iter().filter_map(near).collect()
}

/// What can still be told of a file that cannot be parsed: a broken file still belongs to somebody, and is still the same loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    pub session_id: Option<String>,
    pub id: String,
}

pub fn salvage(bytes: &[u8], name: &str) -> Salvaged {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(crate::front_matter::MAX_BYTES)]);
    let value = |key: &str| {
        let value = head.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty() && value != "null" && value != "~").then(|| value.to_owned())
    };
    let id = value("loop_id").filter(|id| belongs(id, name)).unwrap_or_else(|| derived_id(name, value("started_at").as_deref()));
    Salvaged { session_id: value("session_id"), id }
}

/// An id belongs to the loop that it begins with the name of.
fn belongs(id: &str, name: &str) -> bool {
    is_loop_id(id) && id.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

/// The id of a file that gives none. Written by hand, without a time of its start, it is known by its name alone: people edit the rest.
fn derived_id(name: &str, started_at: Option<&str>) -> String {
    match started_at {
        Some(at) => format!("{name}-{:08x}", fnv1a(at.as_bytes()) & 0xffff_ffff),
        None => format!("{name}-file"),
    }
}

/// The name in `ralph-loop.<name>.local.md`; `main` for the file without one.
pub fn name_of(file_name: &str) -> Option<&str> {
    if file_name == DEFAULT_FILE {
        return Some("main");
    }
    let name = file_name.strip_prefix("ralph-loop.")?.strip_suffix(".local.md")?;
    is_name(name).then_some(name)
}

/// The file of the loop called `name`.
pub fn file_of(name: &str) -> String {
    if name == "main" { DEFAULT_FILE.to_owned() } else { format!("ralph-loop.{name}.local.md") }
}

/// Names and ids become file names, so they are plain.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Whether a text can be the id of a loop.
pub fn is_loop_id(id: &str) -> bool {
    id.len() <= 100 && !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// 64-bit FNV-1a: a stable fingerprint that needs no seed and no crate.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// The prompt without the line breaks that frame it in the file.
fn prompt_text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim_start_matches(['\r', '\n']).trim_end_matches(['\r', '\n']).to_owned()
}

/// What a new loop file shall say.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLoop<'a> {
    pub id: &'a str,
    pub session_id: Option<&'a str>,
    pub started_at: &'a str,
    pub max_iterations: u64,
    pub completion_promise: Option<&'a str>,
    pub max_hours: f64,
    pub max_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    pub idle_rounds: Option<u64>,
    pub stall_rounds: Option<u64>,
    pub continue_with: Option<&'a str>,
    /// Lines for the shell that must pass.
    pub verify: &'a [String],
    /// How long each of them may run; `None`: as usual.
    pub deadline_ms: Option<u64>,
    pub preset: Option<&'a str>,
    pub prompt: &'a str,
}

impl NewLoop<'_> {
    pub fn render(&self) -> String {
        let or_null = |v: Option<&str>| v.map_or_else(|| "null".to_owned(), quoted);
        let mut out = format!(
            "---\nactive: true\niteration: 1\nsession_id: {}\nmax_iterations: {}\ncompletion_promise: {}\nstarted_at: {}\nloop_id: {}\nmax_hours: {}\n",
            or_null(self.session_id),
            self.max_iterations,
            or_null(self.completion_promise),
            quoted(self.started_at),
            quoted(self.id),
            self.max_hours,
        );
        if let Some(dollars) = self.max_usd {
            let _ = writeln!(out, "max_usd: {dollars}");
        }
        for (key, rounds) in [("max_tokens", self.max_tokens), ("idle_rounds", self.idle_rounds), ("stall_rounds", self.stall_rounds)] {
            let _ = rounds.map(|rounds| writeln!(out, "{key}: {rounds}"));
        }
        if let Some(form) = self.continue_with {
            let _ = writeln!(out, "continue_with: {form}");
        }
        if !self.verify.is_empty() {
            out.push_str("verify:\n");
            for line in self.verify {
                let _ = match self.deadline_ms {
                    None => writeln!(out, "  - {}", quoted(line)),
                    Some(ms) => writeln!(out, "  - run: {}\n    deadline: {}", quoted(line), time::in_settings(ms)),
                };
            }
        }
        if let Some(preset) = self.preset {
            let _ = writeln!(out, "preset: {preset}");
        }
        out.push_str("remind: true\n---\n\n");
        out.push_str(self.prompt);
        out.push('\n');
        out
    }
}

/// Reads typed values; a value of the wrong type is a problem with a line number.
struct Reader<'a>(&'a FrontMatter);

impl Reader<'_> {
    /// The value of `key`; absent, empty and null are all `None`.
    fn scalar(&self, key: &str) -> Result<Option<(&Scalar, usize)>, Problem> {
        match self.0.get(key)? {
            None => Ok(None),
            Some(Entry { scalar: None, line, .. }) => Err(Problem::new(*line, format!("`{key}` must be a single value"))),
            Some(Entry { scalar: Some(s), line, .. }) => {
                let null = s.plain && matches!(s.text.as_str(), "" | "~" | "null" | "Null" | "NULL");
                Ok((!null).then_some((s, *line)))
            }
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, Problem> {
        Ok(self.scalar(key)?.map(|(s, _)| s.text.clone()).filter(|t| !t.trim().is_empty()))
    }

    fn bool(&self, key: &str) -> Result<Option<bool>, Problem> {
        let Some((s, line)) = self.scalar(key)? else { return Ok(None) };
        match s.text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(Some(true)),
            "false" | "no" | "off" => Ok(Some(false)),
            _ => Err(Problem::new(line, format!("`{key}` must be true or false, not `{}`", shown(&s.text)))),
        }
    }

    fn count(&self, key: &str) -> Result<Option<u64>, Problem> {
        let Some((s, line)) = self.scalar(key)? else { return Ok(None) };
        s.text
            .trim()
            .parse()
            .map(Some)
            .map_err(|_| Problem::new(line, format!("`{key}` must be a whole number from 0 on, not `{}`", shown(&s.text))))
    }

    fn percent(&self, key: &str) -> Result<Option<u64>, Problem> {
        match (self.count(key)?, self.scalar(key)?) {
            (Some(n), Some((s, line))) if n > 100 => {
                Err(Problem::new(line, format!("`{key}` must be a whole number from 0 to 100, not `{}`", shown(&s.text))))
            }
            (n, _) => Ok(n),
        }
    }

    fn amount(&self, key: &str, unit: &str) -> Result<Option<f64>, Problem> {
        let Some((s, line)) = self.scalar(key)? else { return Ok(None) };
        match s.text.trim().parse::<f64>() {
            Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(Some(amount)),
            _ => Err(Problem::new(line, format!("`{key}` must be a number of {unit} from 0 on, not `{}`", shown(&s.text)))),
        }
    }

    fn continue_with(&self) -> Result<ContinueWith, Problem> {
        let Some((s, line)) = self.scalar("continue_with")? else { return Ok(ContinueWith::Auto) };
        match s.text.trim() {
            "auto" => Ok(ContinueWith::Auto),
            "block" => Ok(ContinueWith::Block),
            "context" => Ok(ContinueWith::Context),
            other => Err(Problem::new(line, format!("`continue_with` must be auto, block or context, not `{}`", shown(other)))),
        }
    }

    fn preset(&self) -> Result<Option<Preset>, Problem> {
        let Some((s, line)) = self.scalar("preset")? else { return Ok(None) };
        let names = Preset::ALL.map(Preset::as_str).join(", ");
        let wrong = || Problem::new(line, format!("`preset` must be one of {names}, not `{}`", shown(&s.text)));
        Preset::of(s.text.trim()).map(Some).ok_or_else(wrong)
    }
}

/// A value as an error message may show it.
fn shown(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(doc: &str) -> String {
        LoopFile::parse(doc.as_bytes()).err().map(|p| p.to_string()).unwrap_or_default()
    }

    #[test]
    fn s0_3_reads_the_well_known_format_with_lf_crlf_and_bom() {
        let lf = "---\niteration: 1\nmax_iterations: 50\ncompletion_promise: \"COMPLETE\"\n---\nDo the work.\n";
        for doc in [lf.to_owned(), lf.replace('\n', "\r\n"), format!("\u{feff}{lf}")] {
            let parsed = LoopFile::parse(doc.as_bytes());
            let got =
                parsed.as_ref().map(|l| (l.iteration, l.max_iterations, l.completion_promise.as_deref(), l.prompt.as_str(), l.active));
            assert_eq!(got, Ok((1, 50, Some("COMPLETE"), "Do the work.", true)), "{doc:?}");
        }
    }

    #[test]
    fn s0_4_says_what_is_wrong() {
        assert_eq!(problem("---\nmax_iterations: 3\n---\np"), "`iteration` is missing");
        assert_eq!(problem("---\niteration: -1\n---\np"), "line 2: `iteration` must be a whole number from 0 on, not `-1`");
        assert_eq!(problem("---\niteration: 1\nactive: maybe\n---\np"), "line 3: `active` must be true or false, not `maybe`");
        assert_eq!(problem("---\niteration: 1\n---\n \n\n"), "there is no prompt after the front matter");
        assert_eq!(problem("---\niteration: [1]\n---\np"), "line 2: `iteration` must be a single value");
    }

    #[test]
    fn null_empty_and_absent_mean_no_promise() {
        for value in ["null", "~", "", "\"\"", "''"] {
            let doc = format!("---\niteration: 0\ncompletion_promise: {value}\nsession_id: {value}\n---\np");
            let parsed = LoopFile::parse(doc.as_bytes()).map(|l| (l.completion_promise, l.session_id));
            assert_eq!(parsed, Ok((None, None)), "{value:?}");
        }
        let words = LoopFile::parse(b"---\niteration: 0\ncompletion_promise: yes\n---\np").map(|l| l.completion_promise);
        assert_eq!(words, Ok(Some("yes".to_owned())));
    }

    #[test]
    fn a_broken_file_is_still_the_same_loop() {
        for (doc, session) in [
            ("---\niteration: 1\nloop_id: \"main-1\"\nsession_id: s1\n---\np", Some("s1")),
            ("---\niteration: 1\nstarted_at: \"2026-11-15T00:00:00Z\"\n---\np", None),
            ("---\r\niteration: 1\r\n---\r\n\r\nThe prompt\r\nof two lines.\r\n", None),
        ] {
            let whole = LoopFile::parse(doc.as_bytes()).map(|l| l.id("main"));
            let broken = doc.replace("iteration: 1", "iteration: \"1");
            let salvaged = salvage(broken.as_bytes(), "main");
            assert_eq!(Ok(&salvaged.id), whole.as_ref(), "{doc:?}");
            assert_eq!(salvaged.session_id.as_deref(), session);
        }
    }

    #[test]
    fn a_misspelt_key_is_not_passed_over_in_silence() {
        let file = LoopFile::parse(b"---\niteration: 1\nmax_iteration: 2\nowner: me\n---\np").map(|l| l.warnings);
        assert_eq!(file, Ok(vec!["line 3: `max_iteration` sets nothing; did you mean `max_iterations`?".to_owned()]));
    }

    #[test]
    fn s2_7_loops_about_a_pull_request_have_brakes_of_their_own() {
        let brakes = |keys: &str| {
            let file = LoopFile::parse(format!("---\niteration: 1\n{keys}---\np").as_bytes());
            file.map(|l| (l.max_usd_micros(), l.stall_rounds)).map_err(|p| p.to_string())
        };
        assert_eq!(brakes(""), Ok((0, 0)));
        assert_eq!(brakes("preset: verify\n"), Ok((0, 0)));
        for preset in ["pre-pr", "after-pr"] {
            assert_eq!(brakes(&format!("preset: {preset}\n")), Ok((50_000_000, 6)));
            assert_eq!(brakes(&format!("preset: {preset}\nmax_usd: 0\nstall_rounds: 0\n")), Ok((0, 0)), "0 is no limit");
        }
        assert_eq!(brakes("max_usd: 0.0000001\nstall_rounds: 3\n"), Ok((1, 3)), "a tiny limit is one");
        assert_eq!(brakes("max_usd: -1\n"), Err("line 3: `max_usd` must be a number of dollars from 0 on, not `-1`".to_owned()));
        assert_eq!(brakes("max_usd: $5\n"), Err("line 3: `max_usd` must be a number of dollars from 0 on, not `$5`".to_owned()));
    }

    #[test]
    fn names_and_files_belong_together() {
        assert_eq!(name_of("ralph-loop.local.md"), Some("main"));
        assert_eq!(name_of("ralph-loop.docs.local.md"), Some("docs"));
        assert_eq!(name_of("ralph-loop.a/b.local.md"), None);
        assert_eq!(name_of("settings.json"), None);
        assert_eq!(file_of("docs"), "ralph-loop.docs.local.md");
        assert_eq!(name_of(&file_of("main")), Some("main"));
    }

    proptest! {
        /// Every prompt and every promise survives the way into the file and back.
        #[test]
        fn s0_3_new_files_read_back(prompt in "[^\r\n]\\PC*[^\r\n]", promise in "\\PC*\\S\\PC*", deadline_ms in proptest::option::of(1..86_400_000u64)) {
            prop_assume!(!prompt.trim().is_empty());
            let line = format!("run {}", promise.replace('\0', "0").trim_end());
            let new = NewLoop {
                id: "main-1", session_id: Some("s"), started_at: "2026-11-15T00:00:00Z", max_iterations: 3, completion_promise: Some(&promise),
                max_hours: 1.5, max_usd: Some(2.5), idle_rounds: Some(4), stall_rounds: Some(5), continue_with: Some("block"), verify: std::slice::from_ref(&line), deadline_ms, preset: Some("verify"), prompt: &prompt,
                max_tokens: None,
            };
            let file = LoopFile::parse(new.render().as_bytes());
            let got = file.as_ref().map(|l| (l.prompt.as_str(), l.completion_promise.as_deref(), l.id("main"), l.max_millis(), l.idle_rounds));
            prop_assert_eq!(got, Ok((prompt.as_str(), Some(promise.as_str()), "main-1".to_owned(), 5_400_000, Some(4))));
            prop_assert_eq!(file.as_ref().map(|l| (l.max_usd_micros(), l.stall_rounds)), Ok((2_500_000, 5)));
            let verify = file.as_ref().map(|l| l.verify.iter().map(|c| (c.run.shown(), c.deadline_ms)).collect::<Vec<_>>());
            prop_assert_eq!(verify, Ok(vec![(line.clone(), deadline_ms.unwrap_or(crate::gate::DEFAULT_DEADLINE_MS))]));
        }

        #[test]
        fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = LoopFile::parse(&[b"---\niteration: 1\n".as_slice(), &bytes].concat());
            let _ = salvage(&bytes, "main");
        }
    }
}
