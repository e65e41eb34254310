//! What an agent program is to ralph, as data: how its hook calls are recognised, what their fields are called, what it understands as an answer.
//!
//! One constant for each agent, in its own file; code only where an agent is odd. `docs/hosts.md` shows how to add one, and its table is made of these.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use ralph_core::{judge, text::time::Millis};
use serde_json::{Map, Value};

use crate::sys::{env, files, process};

use super::{
    Decode, Kind, Launch,
    claude::{self, settings_file::Settings},
    codex, copilot, droid, gemini, grok,
    headless::Headless,
    opencode,
    prices::Prices,
    qwen,
    session_files::SessionFiles,
    slash,
};

/// A larger file holds no settings.
const MOST_SETTINGS: usize = 4 << 20;

/// An agent program.
pub struct Host {
    /// The word in `ralph hook NAME` and `--agent NAME`.
    pub name: &'static str,
    /// The name that people know.
    pub title: &'static str,
    pub advice: Advice,
    /// How it works without a person.
    pub headless: Option<Headless>,
    pub(super) signature: Signature,
    /// The agent's names of events, beside those that it shares with Claude Code.
    pub(super) events: &'static [(&'static str, Kind)],
    pub(super) fields: Fields,
    pub(super) message: Message,
    pub(super) answers: Answers,
    /// The first character of a typed command.
    pub(super) command_mark: char,
    pub(super) typed: Typed,
    /// The name and the arguments of a typed command in what the agent makes of it, where that is not what was typed.
    pub(super) expanded: Option<Expanded>,
    pub(super) clear: Clear,
    /// It reports a command that a person entered, and no other, as an event of its own.
    pub(super) reports_typed: bool,
    /// How often it lets a hook send it back in one turn.
    pub(super) cap: Option<Cap>,
    /// Where it writes down what its sessions use. Claude Code's have readers of their own.
    pub(super) session_files: Option<SessionFiles>,
    /// How it is told to call ralph. Claude Code has more ways, and a folder for them.
    pub(crate) registration: Option<Registration>,
}

/// What its user can do, in the agent's own words.
pub struct Advice {
    /// How to allow what was denied.
    pub allow: &'static str,
    /// How to sign in.
    pub sign_in: &'static str,
    /// The command that opens a session again, without the session's id at its end.
    pub resume: Option<&'static str>,
}

impl Advice {
    /// Where calls are allowed by the mode alone, as far as ralph knows.
    pub(super) const BY_MODE: &'static str = "choose another --permission-mode";

    /// For agents that ralph does not know by name.
    const ANY: Advice = Advice { allow: Advice::BY_MODE, sign_in: "start the agent and sign in", resume: None };

    /// The advice for this agent; journals of the first versions name none.
    pub fn of(agent: Option<&str>) -> &'static Advice {
        Host::by_name(agent.unwrap_or(claude::HOST.name)).map_or(&Advice::ANY, |host| &host.advice)
    }
}

/// How an agent is told to call ralph, for its user in all projects.
pub(crate) struct Registration {
    /// The agent's folder in the user's home; or in the folder that a variable names, by that name.
    pub folder: &'static str,
    pub moved_by: Option<(&'static str, &'static str)>,
    /// The file in there.
    pub file: &'static str,
    pub form: Form,
    /// How it counts the time that it gives a hook.
    pub unit: Unit,
    /// The stop comes first.
    pub events: &'static [&'static str],
    /// Those that it gives no more than [`Registration::AT_MOST`].
    pub hasty_events: &'static [&'static str],
    /// Where it looks for commands, and in which form.
    pub commands: Option<(&'static str, CommandForm)>,
    /// What its user has to do besides.
    pub consent: Option<&'static str>,
    /// It runs a hook only after its user has reviewed it: the file that says so, and the events whose hooks wait for that.
    pub review: Option<(&'static str, Unreviewed)>,
    /// Settings that switch its hooks off.
    pub switches: &'static [Switch],
    /// The file that gives it a status line, and the lines for that.
    pub status_line: Option<(&'static str, &'static str)>,
}

/// From the path of the file that registers hooks, that file, and the one that tells what was reviewed.
pub(crate) type Unreviewed = fn(&Path, &Value, &Value) -> Vec<String>;

/// A setting that switches hooks off.
pub(crate) struct Switch {
    /// In the agent's folder: JSON, or TOML by its ending.
    pub file: &'static str,
    pub keys: &'static [&'static str],
    pub off: Off,
}

/// The value that does it.
pub(crate) enum Off {
    Is(bool),
    /// A list of names that has ralph's.
    Lists(&'static str),
}

/// How an agent counts the time that it gives a hook.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    /// Fewer than 1000 are seconds.
    MillisecondsFrom1000,
}

impl Unit {
    pub(crate) fn of_seconds(self, seconds: u64) -> u64 {
        if self == Unit::Seconds { seconds } else { seconds * 1_000 }
    }

    pub(crate) fn in_seconds(self, value: f64) -> f64 {
        match self {
            Unit::Seconds => value,
            Unit::MillisecondsFrom1000 if value < 1_000.0 => value,
            Unit::Milliseconds | Unit::MillisecondsFrom1000 => value / 1_000.0,
        }
    }
}

impl Registration {
    /// In seconds.
    pub(crate) const AT_MOST: u64 = 3;

    /// What most of them have; an agent's row says what is its own.
    pub(super) const PLAIN: Self = Registration {
        folder: "",
        moved_by: None,
        file: "",
        form: Form::Own,
        unit: Unit::Seconds,
        events: &[],
        hasty_events: &[],
        commands: None,
        consent: None,
        review: None,
        switches: &[],
        status_line: None,
    };
}

/// The form of such a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Among other settings, as Claude Code has them.
    Settings,
    /// The same with a name for each entry and a pattern for the occasions.
    NamedSettings,
    /// A file of ralph's own, as Claude Code has them.
    Own,
    /// A file of ralph's own, a flat list for each event.
    OwnFlat,
    /// A program of ralph's own, in JavaScript, which calls the hook with the words that it has in the line [`Form::HOOK`].
    Plugin(&'static str),
}

impl Form {
    pub(crate) const HOOK: &'static str = "const HOOK = ";

    /// The whole file is ralph's own.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Form::Own | Form::OwnFlat | Form::Plugin(_))
    }
}

/// The form of a command's file; what a person typed after it takes the place of a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandForm {
    Markdown(&'static str),
    Toml(&'static str),
    /// A folder for each, with the text in it. The agent adds what was typed by itself.
    Skill,
}

/// What its hook calls have, and those of no other agent.
pub(super) struct Signature {
    /// Fields of which each event has at least one.
    pub fields: &'static [&'static str],
    /// A variable that holds the session's id. Agents inherit the variables of the one that started them, so only an equal id counts.
    pub session_in: Option<&'static str>,
    /// A variable that is set for each of its hooks, whatever it holds.
    pub variable: Option<&'static str>,
    /// For what a field or a variable cannot tell.
    pub else_by: fn(&Map<String, Value>) -> bool,
}

impl Signature {
    /// Nothing tells.
    pub(super) const NONE: Self = Signature { fields: &[], session_in: None, variable: None, else_by: |_| false };
}

/// The names of an event's fields.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub session: &'static str,
    /// The id of the person's turn.
    pub turn: &'static str,
    pub transcript: &'static str,
    pub message: &'static str,
    pub after_a_block: &'static str,
    pub background: &'static str,
    /// What the model's service said of a turn that failed.
    pub error: &'static str,
}

impl Fields {
    pub(super) const CLAUDE: Self = Fields {
        session: "session_id",
        turn: "prompt_id",
        transcript: "transcript_path",
        message: "last_assistant_message",
        after_a_block: "stop_hook_active",
        background: "background_tasks",
        error: "error_details",
    };
}

/// Where the agent's last message is.
pub(super) enum Message {
    /// In the event, and its transcript has the lines that ralph knows.
    Claude,
    /// In the event.
    Event,
    /// In its transcript: the meaning of each line. `lags`: the lines of a stop come after its hook was called, up to one that says so.
    /// `written`: the line that holds such words.
    Transcript { line: fn(&Value) -> Line, written: fn(&str) -> Value, lags: bool },
}

/// One line of a transcript.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Words of the agent's.
    Agent(String),
    /// A message for the agent: the words before it belong to another stop.
    Prompt,
    /// The agent says that it calls its stop hook now: everything of this stop is above.
    StopHook(Millis),
    Other,
}

/// What it understands as an answer. A stop is sent back with `{"decision": "block", "reason": …}` by all of them.
pub(super) struct Answers {
    /// Text for the model at a prompt or at the start of a session.
    pub context: Context,
    /// A hook can answer in the place of the model.
    pub instead: Instead,
    /// A line for the person is shown.
    pub shows_line: bool,
    /// What is sent back arrives with `&lt;` for `<`, so that a claim may come in the same form.
    pub escapes: bool,
    /// A longer text for the model, in bytes, is cut.
    pub longest: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// In `hookSpecificOutput`.
    Nested,
    /// `{"additionalContext": …}`, and nothing around it.
    Flat,
    Ignored,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Instead {
    /// `{"continue": false, "stopReason": …}`.
    Stop,
    /// `{"decision": "block", "reason": …}`.
    Block,
}

/// Where a typed command reaches the hook as it was typed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    Everywhere,
    /// Without its screen no hook is called for a prompt.
    OnScreen,
}

/// Finds the name and the arguments of a command in a prompt.
pub(super) type Expanded = fn(&str) -> Option<(&str, &str)>;

/// How a session that is cleared shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clear {
    /// Its end says so, before the next one begins.
    Told,
    /// Only its end says so: the next one begins as any other.
    ToldAtEnd,
    /// Only the beginning of the next one does.
    Untold,
    /// Not at all.
    NotSeen,
}

/// A cap on stops in a row that are sent back.
#[derive(Clone, Copy)]
pub(super) struct Cap {
    /// So many are honoured.
    pub honours: u64,
    /// The variable that raises it, and the setting in the file that registers hooks.
    pub variable: Option<&'static str>,
    pub setting: Option<&'static str>,
}

impl Host {
    /// Every agent whose hooks ralph answers, the first one first.
    pub const ALL: [&Host; 8] =
        [&claude::HOST, &codex::HOST, &gemini::HOST, &copilot::HOST, &qwen::HOST, &droid::HOST, &grok::HOST, &opencode::HOST];

    /// The one whose transcripts ralph reads.
    pub(crate) const FIRST: &'static Host = &claude::HOST;

    /// Reads what the agent printed in a session, long after or meanwhile.
    pub(crate) fn log_reader(&self) -> Box<dyn Decode> {
        let prices = Prices::default();
        let launch = Launch::of_log(&prices);
        match &self.headless {
            Some(headless) if !self.is_claude() => (headless.stream)(&launch),
            _ => Box::<claude::stream::Stream>::default(),
        }
    }

    pub fn by_name(name: &str) -> Option<&'static Host> {
        Host::ALL.into_iter().find(|host| host.name == name)
    }

    /// Where its program is, but never one in the project: anyone who can push may have written that.
    pub fn find_program(&self, project: &Path) -> Option<PathBuf> {
        if self.is_claude() {
            return claude::program::find_outside(project);
        }
        process::which_outside(self.headless.as_ref()?.program, project)
    }

    /// A command as people type it: `/ralph-resume`, `$ralph-resume`.
    pub fn as_typed(&self, name: &str) -> String {
        format!("{}{name}", self.command_mark)
    }

    /// What ralph tells people, with commands as they are typed here.
    pub(super) fn in_its_words<'t>(&self, told: &'t str) -> Cow<'t, str> {
        if self.command_mark == '/' {
            return Cow::Borrowed(told);
        }
        let mut marked = told.to_owned();
        // A path may have the same letters: a command stands at the beginning of a word.
        for (at, _) in told.match_indices('/').filter(|(at, _)| !told[..*at].ends_with(|c: char| c.is_alphanumeric() || "._-/".contains(c)))
        {
            if slash::verb(told[at..].split(|c: char| !c.is_alphanumeric() && !"/-".contains(c)).next().unwrap_or_default()).is_some() {
                marked.replace_range(at..=at, &self.command_mark.to_string());
            }
        }
        Cow::Owned(marked)
    }

    /// Its name in a journal. Journals of the first versions name none.
    pub(crate) fn in_journal(&self) -> Option<String> {
        (!self.is_claude()).then(|| self.name.to_owned())
    }

    pub fn is_claude(&self) -> bool {
        self.name == claude::HOST.name
    }

    /// How often the agent can be sent back before it ends the turn by itself; `None`: as often as need be.
    pub(crate) fn block_cap(&self, project: &Path) -> Option<u64> {
        if self.is_claude() {
            return judge::block_cap(claude::variables::block_cap().as_deref());
        }
        let cap = self.cap?;
        let raised = cap.variable.and_then(env::text).and_then(|value| value.trim().parse().ok());
        let set = |root: &Path| self.setting(root, cap.setting?)?.as_u64();
        let honours = raised.or_else(|| set(&env::home()?)).unwrap_or(cap.honours);
        // The project's own settings count there, too. They are not believed where they raise it: the agent may write them.
        Some(set(project).map_or(honours, |of_project| of_project.min(honours)))
    }

    /// How often it is sent back in one turn, where it counts every time: one block fewer than it honours. The loop's own limit has no say in it.
    pub(crate) fn blocks_in_a_turn(&self, project: &Path) -> Option<u64> {
        let cap = self.block_cap(project).filter(|_| self.counts_every_block())?;
        Some(judge::idle_limit(Some(0), Some(cap)).0)
    }

    /// A setting beside the hooks, below the home folder or the project's.
    fn setting(&self, root: &Path, key: &str) -> Option<Value> {
        let registration = self.registration.as_ref()?;
        let text = files::read(&root.join(registration.folder).join(registration.file), MOST_SETTINGS).ok()?;
        Settings::parse(&text).ok()?.value().get(key).cloned()
    }

    /// The name and the arguments of a command that was typed.
    pub(crate) fn typed_command<'p>(&self, prompt: &'p str) -> Option<(&'p str, &'p str)> {
        let expanded = self.expanded.and_then(|expanded| expanded(prompt));
        expanded.or_else(|| slash::split_at(self.command_mark, prompt))
    }

    /// The end of a session says that it was cleared, before the next one begins.
    pub(crate) fn announces_clear(&self) -> bool {
        self.clear != Clear::Untold
    }

    /// The next session after that says nothing of it.
    pub(crate) fn begins_silently(&self) -> bool {
        self.clear == Clear::ToldAtEnd
    }

    /// A text for the model arrives as it is.
    pub(crate) fn takes_whole(&self, text: &str) -> bool {
        self.answers.longest.is_none_or(|longest| text.len() <= longest)
    }

    /// A line for the person is shown. Otherwise the agent has to tell it.
    pub(crate) fn shows_line(&self) -> bool {
        self.answers.shows_line
    }

    /// Whether every stop that is sent back counts towards the cap, and not only those without a tool call.
    pub(crate) fn counts_every_block(&self) -> bool {
        !self.is_claude()
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Host {}
