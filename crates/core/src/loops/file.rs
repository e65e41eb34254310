//! The loop file: reading it, writing a new one, and changing one value of it.
//!
//! The format is the well-known one (front matter, then the prompt), plus optional keys; [`super::settings`] lists them.

use std::ops::Deref;

use super::{
    front_matter::{self, FrontMatter, Value, quoted},
    settings::{Kind, LoopSettings, Setting},
};
use crate::{
    config::worktree_yaml,
    gate::Command,
    text::{Problem, suggest, time, yaml::Node},
};

/// The loop of a project that has only one.
const DEFAULT_FILE: &str = "ralph-loop.local.md";

/// A prompt larger than this was not meant as one.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// A loop as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopFile {
    pub active: bool,
    pub iteration: u64,
    pub session_id: Option<String>,
    pub started_at: Option<String>,
    pub loop_id: Option<String>,
    /// With the defaults for what the file does not say.
    pub settings: LoopSettings,
    /// Commands that must pass before the loop may end.
    pub verify: Vec<Command>,
    /// The list of the feature folder that the loop was put together from; a loop file has none.
    pub list: Option<String>,
    pub prompt: String,
    /// For the person: a key that looks misspelt sets nothing.
    pub warnings: Vec<String>,
    front_matter: FrontMatter,
}

/// A loop's settings are read as if they were its own.
impl Deref for LoopFile {
    type Target = LoopSettings;

    fn deref(&self) -> &LoopSettings {
        &self.settings
    }
}

impl LoopFile {
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        Self::of(FrontMatter::parse(bytes)?, bytes)
    }

    fn of(front_matter: FrontMatter, bytes: &[u8]) -> Result<Self, Problem> {
        let keys = Reader(&front_matter);
        let prompt = prompt_text(front_matter.body(bytes));
        if prompt.trim().is_empty() {
            return Err(Problem::new(None, "there is no prompt after the front matter"));
        }
        Ok(LoopFile {
            active: keys.read("active", Kind::yes_or_no)?.unwrap_or(true),
            iteration: keys.read("iteration", Kind::count)?.ok_or_else(|| Problem::new(None, "`iteration` is missing"))?,
            session_id: keys.text("session_id")?,
            started_at: keys.text("started_at")?,
            loop_id: keys.text("loop_id")?,
            settings: keys.settings()?.with_defaults(),
            verify: worktree_yaml::verify(front_matter.yaml())?,
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
}

fn misspelt(front_matter: &FrontMatter) -> Vec<String> {
    let known = Setting::keys;
    let near = |key: &Node| {
        // This runs at every stop; comparing letters is for the rare unknown key.
        let name = key.text().filter(|name| !known().any(|k| k == *name))?;
        let meant = suggest::nearest(name, known())?;
        Some(format!("line {}: `{}` sets nothing; did you mean `{meant}`?", key.line, shown(name)))
    };
    front_matter.keys().filter_map(near).collect()
}

/// The identity of a file that cannot be parsed: it still belongs to a session, and is still the same loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    pub session_id: Option<String>,
    pub id: String,
}

pub fn salvage(bytes: &[u8], name: &str) -> Salvaged {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(front_matter::MAX_BYTES)]);
    let value = |key: &str| {
        let value = head.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty() && value != "null" && value != "~").then(|| value.to_owned())
    };
    let id = value("loop_id").filter(|id| belongs(id, name)).unwrap_or_else(|| derived_id(name, value("started_at").as_deref()));
    Salvaged { session_id: value("session_id"), id }
}

/// An id belongs to the loop whose name it begins with.
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

/// A loop file before it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLoop<'a> {
    pub id: &'a str,
    pub session_id: Option<&'a str>,
    pub started_at: &'a str,
    pub settings: LoopSettings,
    pub prompt: &'a str,
}

impl NewLoop<'_> {
    pub fn render(&self) -> String {
        let settings = LoopSettings { remind: Some(true), ..self.settings.clone().with_defaults() };
        let own = [
            ("active", "true".to_owned()),
            ("iteration", "1".to_owned()),
            ("session_id", self.session_id.map_or_else(|| "null".to_owned(), quoted)),
            ("started_at", quoted(self.started_at)),
            ("loop_id", quoted(self.id)),
        ];
        format!("---\n{}---\n\n{}\n", Setting::front_matter(&settings, &own), self.prompt)
    }
}

/// Reads typed values; a value of the wrong type is a problem with a line number.
struct Reader<'a>(&'a FrontMatter);

impl Reader<'_> {
    /// The value of `key`; absent, empty and null are all `None`. The line is the key's.
    fn scalar(&self, key: &str) -> Result<Option<(&str, usize)>, Problem> {
        match self.0.yaml().get(key)? {
            None => Ok(None),
            Some((_, value)) if value.is_null() => Ok(None),
            Some((key_node, value)) => match value.text() {
                Some(text) => Ok(Some((text, key_node.line))),
                None => Err(key_node.problem(format!("`{key}` must be a single value"))),
            },
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, Problem> {
        Ok(self.scalar(key)?.map(|(text, _)| text.to_owned()).filter(|text| !text.trim().is_empty()))
    }

    /// The value of `key` as `set` reads it; its error says what the value must be.
    fn read<T>(&self, key: &str, set: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, Problem> {
        let Some((text, line)) = self.scalar(key)? else { return Ok(None) };
        set(text).map(Some).map_err(|wanted| Problem::new(line, format!("`{key}` must be {wanted}, not `{}`", shown(text))))
    }

    fn settings(&self) -> Result<LoopSettings, Problem> {
        let mut settings = LoopSettings::default();
        for setting in Setting::ALL.iter().filter(|setting| setting.is_plain_key()) {
            let is_empty = |text: &str| setting.kind == Kind::Text && text.trim().is_empty();
            self.read(setting.key, |text| if is_empty(text) { Ok(()) } else { setting.set(&mut settings, text) })?;
        }
        Ok(settings)
    }
}

/// A value as an error message may show it.
fn shown(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{ContinueWith, Preset};
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
                parsed.as_ref().map(|l| (l.iteration, l.max_iterations(), l.completion_promise.as_deref(), l.prompt.as_str(), l.active));
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
            let parsed = LoopFile::parse(doc.as_bytes()).map(|l| (l.settings.completion_promise, l.session_id));
            assert_eq!(parsed, Ok((None, None)), "{value:?}");
        }
        let words = LoopFile::parse(b"---\niteration: 0\ncompletion_promise: yes\n---\np").map(|l| l.settings.completion_promise);
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
        assert_eq!(brakes(""), Ok((0, None)));
        assert_eq!(brakes("preset: verify\n"), Ok((0, None)));
        for preset in ["pre-pr", "after-pr"] {
            assert_eq!(brakes(&format!("preset: {preset}\n")), Ok((50_000_000, Some(6))));
            assert_eq!(brakes(&format!("preset: {preset}\nmax_usd: 0\nstall_rounds: 0\n")), Ok((0, Some(0))), "0 is no limit");
        }
        assert_eq!(brakes("max_usd: 0.0000001\nstall_rounds: 3\n"), Ok((1, Some(3))), "a tiny limit is one");
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
            let settings = LoopSettings {
                max_iterations: Some(3), completion_promise: Some(promise.clone()), max_hours: Some(1.5), max_usd: Some(2.5), max_tokens: Some(7), max_context: Some(80),
                compact_every: Some(2), idle_rounds: Some(4), stall_rounds: Some(5), continue_with: Some(ContinueWith::Block), remind: Some(true), verify: vec![line.clone()],
                deadline_ms, preset: Some(Preset::Verify), item: Some("F1".to_owned()), merge: Some(true),
            };
            let new = NewLoop { id: "main-1", session_id: Some("s"), started_at: "2026-11-15T00:00:00Z", settings: settings.clone(), prompt: &prompt };
            let file = LoopFile::parse(new.render().as_bytes());
            let got = file.as_ref().map(|l| (l.prompt.as_str(), l.completion_promise.as_deref(), l.id("main"), l.max_millis(), l.max_usd_micros()));
            prop_assert_eq!(got, Ok((prompt.as_str(), Some(promise.as_str()), "main-1".to_owned(), 5_400_000, 2_500_000)));
            // A file says more about its commands than their lines.
            let plain = LoopSettings { verify: Vec::new(), deadline_ms: None, ..settings };
            prop_assert_eq!(file.as_ref().map(|l| &l.settings), Ok(&plain));
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
