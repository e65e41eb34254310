//! The agent's current activity, read from the log of its iteration or from the end of its session's transcript.
//!
//! A look reads only what is new since the look before, and the first one no more of a large file than of a small one.

use std::{
    collections::VecDeque,
    path::{Component, Path, PathBuf},
};

use ralph_core::{
    journal::{Event, records},
    judge::session_outcome::Tokens,
    money::Micros,
    text::time::Millis,
};
use serde::Serialize;

use crate::{
    hosts::{
        Decode, Heard, Host, Line,
        acp::{self, AcpClient},
        client, transcript,
    },
    store::project::Project,
    sys::{
        files,
        follow_file::{Follower, Look, Seen},
        secrets,
    },
    view::{Carrier, View},
};

/// How many activities a feed keeps.
const KEPT: usize = 200;

/// How much of a message is kept.
const MOST_WORDS: usize = 600;

/// A longer line is a tool's result, or no line at all.
const LONGEST_LINE: usize = 32 << 20;

/// A log is read from its beginning up to this size: its sums are the session's.
const REACH_OF_LOGS: u64 = 16 << 20;

/// How far back the end of a transcript is read: further only if nothing was done there, because a tool's result can be long.
const REACH_OF_TRANSCRIPTS: [u64; 4] = [256 << 10, 1 << 20, 4 << 20, 32 << 20];

/// The end of a journal in which the start of the iteration is looked for.
const END_OF_JOURNAL: u64 = 1 << 20;

/// A file that shows what an agent does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The log of a session of `ralph run`: the output of that agent.
    Log(&'static Host, PathBuf),
    /// The log of a session over ACP: the lines of both sides.
    Acp(PathBuf),
    /// The log of an unknown program: its output.
    Plain(PathBuf),
    /// The transcript of a session.
    Transcript(PathBuf),
}

impl Source {
    /// The log that a journal's `began` names, from the project's root on. `None`: it is no log of ralph's.
    pub fn of_log(project: &Project, agent: &str, log: &str) -> Option<Self> {
        let is_plain = Path::new(log).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || !Path::new(log).starts_with(".ralph/rounds") {
            return None;
        }
        let path = project.root().join(log);
        Some(match Host::by_name(agent).filter(|host| host.headless.is_some()) {
            Some(host) => Source::Log(host, path),
            None if agent.split(':').next() == Some(acp::COMMAND.name) => Source::Acp(path),
            None => Source::Plain(path),
        })
    }

    /// The transcript of a session, if its client has written one.
    pub fn of_session(session: &str) -> Option<Self> {
        transcript::find(&client::config_folder()?, session).map(Source::Transcript)
    }

    /// The file of this loop's agent, or of its last one.
    pub fn of_loop(project: &Project, view: &View) -> Option<Self> {
        if view.carrier == Carrier::Runner || view.by_run {
            let end = files::read_end(&view.journal, END_OF_JOURNAL).unwrap_or_default();
            return records(&end).0.iter().rev().find_map(|record| match &record.event {
                Event::Began { agent, log, .. } => Some(Source::of_log(project, agent, log)),
                _ => None,
            })?;
        }
        Source::of_session(view.session.as_deref()?)
    }

    /// The file that grows.
    pub fn path(&self) -> &Path {
        match self {
            Source::Log(_, path) | Source::Acp(path) | Source::Plain(path) | Source::Transcript(path) => path,
        }
    }
}

/// Something that the agent did or said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Activity {
    /// `None`: the file does not say.
    pub at: Option<Millis>,
    /// One of its words, tool calls, failed tool calls, denials, retries, compactions, limits or printed lines. Its texts are short and clean.
    #[serde(flatten)]
    pub heard: Heard,
}

/// Usage of the session so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Used {
    pub model: Option<String>,
    pub tokens: Tokens,
    pub usd_micros: Micros,
    /// How full the context is now, in tokens, and how large it is; `None`: nothing tells.
    pub context: Option<u64>,
    pub window: Option<u64>,
    /// The sums are the whole session's. Of a long transcript only the end is read; the context is right anyway.
    pub is_whole: bool,
}

/// The activity of one agent.
pub struct Doing {
    source: Source,
    follower: Option<Follower>,
    stream: Box<dyn Decode>,
    feed: VecDeque<Activity>,
    /// Tool calls that have not come back.
    calls: usize,
    lines: u64,
    /// When the file last changed.
    changed: Option<Millis>,
}

impl Doing {
    pub fn new(source: Source) -> Self {
        let stream = source.decoder();
        Doing { source, follower: None, stream, feed: VecDeque::new(), calls: 0, lines: 0, changed: None }
    }

    /// Switches to another file, the next iteration's. The feed goes on.
    pub fn turn_to(&mut self, source: Source) {
        if source != self.source {
            let feed = std::mem::take(&mut self.feed);
            *self = Doing { feed, ..Doing::new(source) };
        }
    }

    /// The file to watch.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Reads what is new; `true` if there was anything.
    pub fn look(&mut self) -> bool {
        let Some(mut follower) = self.follower.take() else { return self.first_look() };
        let look = self.read(&mut follower, false);
        if look.anew {
            return self.first_look();
        }
        self.follower = Some(follower);
        look.lines > 0
    }

    fn first_look(&mut self) -> bool {
        let before = std::mem::take(&mut self.feed);
        let reaches = if matches!(self.source, Source::Transcript(_)) { REACH_OF_TRANSCRIPTS.as_slice() } else { &[REACH_OF_LOGS] };
        let mut look = Look::default();
        for reach in reaches {
            self.feed.clear();
            (self.stream, self.calls, self.lines) = (self.source.decoder(), 0, 0);
            let mut follower = Follower::from_end(self.path(), LONGEST_LINE, *reach);
            look = self.read(&mut follower, true);
            let is_enough = !self.feed.is_empty() || follower.is_whole();
            self.follower = Some(follower);
            if is_enough {
                break;
            }
        }
        let room = KEPT.saturating_sub(self.feed.len());
        before.into_iter().rev().take(room).for_each(|activity| self.feed.push_front(activity));
        look.lines > 0
    }

    fn read(&mut self, follower: &mut Follower, is_first: bool) -> Look {
        let mut heard: Vec<(Option<Millis>, Heard)> = Vec::new();
        let (source, stream, mut lines) = (&self.source, &mut self.stream, self.lines);
        let look = follower.look(u64::MAX, |seen| {
            let Seen::Line(line) = seen else { return };
            let mut told = Vec::new();
            source.hear(stream.as_mut(), line, lines, &mut told);
            lines += 1;
            heard.extend(told.into_iter().map(|told| (stream.at(), told)));
            // Only the end is shown.
            if heard.len() > 8 * KEPT {
                heard.drain(..4 * KEPT);
            }
        });
        self.lines = lines;
        self.changed = Millis::try_from(look.changed).ok().filter(|at| *at > 0);
        if look.anew {
            return look;
        }
        // A line that is new since the last look came when the file changed; at the first look only the last line did.
        let last = heard.len().saturating_sub(1);
        for (n, (at, heard)) in heard.into_iter().enumerate() {
            self.take(at.or(self.changed.filter(|_| !is_first || n == last)), heard);
        }
        look
    }

    fn take(&mut self, at: Option<Millis>, heard: Heard) {
        let heard = match heard {
            Heard::Session { .. } | Heard::Used { .. } | Heard::Quota { rejected: false, .. } => return,
            Heard::Tool { name, what, of_subagent } => {
                self.calls += usize::from(!of_subagent);
                Heard::Tool { name, what, of_subagent }
            }
            Heard::ToolEnded { failed, of_subagent } => {
                self.calls = self.calls.saturating_sub(usize::from(!of_subagent));
                if !failed {
                    return;
                }
                Heard::ToolEnded { failed, of_subagent }
            }
            Heard::Text { text, of_subagent } => {
                let text = short(&text);
                if text.is_empty() {
                    return;
                }
                // An agent that speaks has the results of its calls, or goes on without.
                if !of_subagent {
                    self.calls = 0;
                }
                Heard::Text { text, of_subagent }
            }
            Heard::Line { text } => Heard::Line { text: short(&text) },
            other => other,
        };
        if self.feed.len() >= KEPT {
            self.feed.pop_front();
        }
        self.feed.push_back(Activity { at, heard });
    }

    /// The last thing that the agent did or said itself.
    pub fn now(&self) -> Option<&Activity> {
        self.feed.iter().rev().find(|activity| !matches!(activity.heard, Heard::ToolEnded { .. }))
    }

    /// Whether a tool call of its own has not come back yet.
    pub fn is_in_a_call(&self) -> bool {
        self.calls > 0 && !self.stream.is_over()
    }

    /// The session has ended, and its agent has said what it used.
    pub fn is_over(&self) -> bool {
        self.stream.is_over()
    }

    /// Its last activities, the oldest first.
    pub fn feed(&self) -> impl DoubleEndedIterator<Item = &Activity> + ExactSizeIterator {
        self.feed.iter()
    }

    /// When the file last changed: the last sign of life.
    pub fn changed(&self) -> Option<Millis> {
        self.changed
    }

    /// `None`: the file does not tell.
    pub fn used(&self) -> Option<Used> {
        let work = self.stream.work();
        let context = self.stream.context();
        let is_whole = self.follower.as_ref().is_some_and(Follower::is_whole);
        (work.tokens.total() > 0).then_some(Used {
            model: work.model,
            tokens: work.tokens,
            usd_micros: work.usd_micros,
            context: context.map(|(tokens, _)| tokens),
            window: context.map(|(_, window)| window),
            is_whole,
        })
    }
}

impl Source {
    fn decoder(&self) -> Box<dyn Decode> {
        match self {
            Source::Log(host, _) => host.log_reader(),
            Source::Acp(_) => Box::new(AcpClient::of_log()),
            Source::Plain(_) | Source::Transcript(_) => Host::FIRST.log_reader(),
        }
    }

    /// Takes the line of that number.
    fn hear(&self, stream: &mut dyn Decode, line: &[u8], number: u64, told: &mut Vec<Heard>) {
        let has = |needle: &[u8]| memchr::memmem::find(line, needle).is_some();
        let is_plain = match self {
            Source::Transcript(_) => {
                // Other lines are the client's own notes, some of them large.
                if has(b"\"assistant\"") || has(b"\"tool_result\"") || has(b"\"compact_boundary\"") {
                    stream.line(line, told);
                }
                false
            }
            Source::Log(..) | Source::Acp(_) => stream.line(line, told) == Line::Plain,
            Source::Plain(_) => true,
        };
        let is_command = number == 0 && line.starts_with(b"$ ");
        if is_plain && !is_command && !line.trim_ascii().is_empty() {
            told.push(Heard::of_line(line));
        }
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    secrets::opening(text, MOST_WORDS)
}

#[cfg(test)]
mod tests;
