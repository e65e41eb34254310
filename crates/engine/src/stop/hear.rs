//! Hears an agent out: its last message, its tool calls, and what waits in its queue. A hook reads the client's transcript; a run has listened to its session.

use std::time::{Duration, Instant};

use ralph_core::{
    journal::{Read, State},
    judge::{Claim, Message, ToolUse, join_blocks},
    loops::fnv1a,
    text::time::Millis,
};

use super::{Hook, Origin, SessionReport, Stop};
use crate::{
    hosts::{
        client,
        transcript::{self, Before, Iteration, OpenFile},
    },
    store::project_lock::Loop,
    sys::{clock, process},
};

/// The agent's side of one stop.
pub(crate) struct Heard {
    /// The agent's last message, all of its blocks.
    pub text: String,
    pub from: Message,
    pub tools: ToolUse,
    /// The person interrupted the turn.
    pub interrupted: bool,
    pub told_to_stop: bool,
    /// Input that waits in the client's queue.
    pub queue: Vec<String>,
    /// How far the transcript was read.
    pub read: Option<Read>,
}

/// A message is compared by this with the one before.
pub(crate) fn message_fingerprint(text: &str) -> String {
    format!("{:016x}", fnv1a(text.as_bytes()))
}

impl Heard {
    /// Compared with that of the next message.
    pub(super) fn fingerprint(&self) -> String {
        message_fingerprint(&self.text)
    }

    pub(super) fn claim(&self, stop: &Stop<'_>, l: &Loop) -> Claim {
        let prompt = stop.report().map_or(l.file.prompt.as_str(), |report| &report.prompt);
        l.file.completion_promise.as_deref().map_or(Claim::None, |promise| Claim::find(&self.text, promise, prompt))
    }
}

/// The client holds a message's lines back until the message has ended, and writes them up to 150 ms after it called the hook. Only then can
/// earlier blocks of the message be read, and only then do the other lines tell the whole iteration.
const PATIENCE: Duration = Duration::from_millis(150);
const STEP: Duration = Duration::from_millis(5);

/// More of the client's queue is not kept; the oldest come first.
const MOST_QUEUED: usize = 100;

/// Reading may take longer than waiting.
const LONGEST: Duration = Duration::from_secs(1);

pub(super) fn hear(stop: &Stop<'_>, l: &Loop, now: Millis) -> Heard {
    match &stop.origin {
        Origin::Hook(hook) => in_transcript(stop, hook, l, now),
        Origin::Run(report) => of_session(stop, report),
    }
}

/// A run has heard the whole session, which has no queue.
fn of_session(stop: &Stop<'_>, report: &SessionReport) -> Heard {
    let from = match (stop.message, &report.text) {
        (Some(_), _) => Message::Event,
        (None, Some(_)) => Message::Transcript,
        (None, None) => Message::NoText,
    };
    Heard {
        text: report.text.clone().unwrap_or_default(),
        from,
        tools: report.tools,
        interrupted: false,
        told_to_stop: false,
        queue: Vec::new(),
        read: None,
    }
}

fn in_transcript(stop: &Stop<'_>, hook: &Hook<'_>, l: &Loop, now: Millis) -> Heard {
    let look = Look {
        path: hook.transcript,
        session: stop.session(),
        before: before(stop, hook, &l.state, now),
        event_text: stop.message,
        sends_message: stop.message.is_some() || hook.client.sends_message,
    };
    // A claim in the event itself needs no waiting.
    let claimed = matches!((look.event_text, &l.file.completion_promise), (Some(text), Some(p)) if Claim::find(text, p, &l.file.prompt) == Claim::Made);
    let iteration = if l.file.active && !claimed { look.iteration_in_time() } else { look.iteration() };
    let from = match (&iteration, look.event_text) {
        (_, Some(_)) => Message::Event,
        (Some(Iteration { text: Some(_), .. }), None) => Message::Transcript,
        (None, None) if !look.sends_message => Message::Unreadable { transcript: look.path.to_owned() },
        _ => Message::NoText,
    };
    let alone = || look.event_text.map(|text| join_blocks([text].into_iter()));
    let mut iteration = iteration.unwrap_or_else(|| Iteration { text: alone(), ..Iteration::default() });
    // The queue is in every line of the journal.
    iteration.queue.truncate(MOST_QUEUED);
    Heard {
        text: iteration.text.unwrap_or_default(),
        from,
        tools: iteration.tools,
        interrupted: iteration.interrupted,
        told_to_stop: iteration.told_to_stop,
        queue: iteration.queue,
        read: (!look.path.is_empty()).then(|| Read { of: transcript_of(stop.session, hook.transcript), upto: iteration.upto }),
    }
}

/// The knowledge of the ruling before this one.
fn before<'l>(stop: &Stop<'_>, hook: &Hook<'_>, state: &'l State, now: Millis) -> Before<'l> {
    let read = state.read.as_ref().filter(|read| read.of == transcript_of(stop.session, hook.transcript));
    Before {
        at: state.last.as_ref().map(|last| last.at),
        upto: read.map(|read| read.upto),
        queue: if read.is_some() { &state.queue } else { &[] },
        same_turn: stop.turn.is_some() && state.turn.as_deref() == stop.turn,
        born: if read.is_some() { None } else { client_born(now) },
        armed: state.armed_since,
    }
}

/// A fingerprint of the session and its transcript, which both may change in the middle of a loop.
fn transcript_of(session: &str, path: &str) -> String {
    format!("{:016x}", fnv1a([session, path].join("\0").as_bytes()))
}

/// All that is in the transcript has been seen.
pub(crate) fn read_until_now(session: &str, path: &str) -> Option<Read> {
    let file = OpenFile::open(path)?;
    Some(Read { of: transcript_of(session, path), upto: transcript::Source::size(&file) })
}

/// When the client was started, where the system tells. A client that does not name its process started this one, unless a shell stands between them.
fn client_born(now: Millis) -> Option<Millis> {
    const SLACK_MS: u64 = 1_000;
    let pid = client::pid().or_else(|| process::parent_pid().filter(|pid| !process::is_shell(*pid)))?;
    let age = clock::uptime_ms().saturating_sub(clock::birth_of(pid)?).saturating_add(SLACK_MS);
    now.checked_sub(Millis::try_from(age).ok()?)
}

/// Where to look in the transcript, and for what.
struct Look<'a> {
    path: &'a str,
    session: Option<&'a str>,
    before: Before<'a>,
    event_text: Option<&'a str>,
    /// The client sends the message with the event, so that an event without one means a message without text.
    sends_message: bool,
}

impl Look<'_> {
    /// The last iteration; `None` if there is no transcript.
    fn iteration(&self) -> Option<Iteration> {
        OpenFile::of_session(self.path, self.session).map(|file| transcript::last_iteration(&file, &self.before, self.event_text))
    }

    /// The last iteration once the transcript has caught up with the event, or as far as it is when patience ends.
    fn iteration_in_time(&self) -> Option<Iteration> {
        let (begun, mut waited) = (Instant::now(), Duration::ZERO);
        loop {
            let iteration = self.iteration();
            if waited >= PATIENCE || begun.elapsed() >= LONGEST || !self.is_worth_waiting(iteration.as_ref()) {
                return iteration;
            }
            std::thread::sleep(STEP);
            waited += STEP;
        }
    }

    fn is_worth_waiting(&self, round: Option<&Iteration>) -> bool {
        match (round, self.event_text) {
            (Some(round), Some(_)) => !round.caught_up,
            // Nothing says when the file is complete: wait for a message that has to be there, or until the queue is surely not stale.
            (Some(round), None) => !round.queue.is_empty() || round.torn || (!self.sends_message && round.text.is_none()),
            // A session's first stop may come before its transcript; later ones without any have none.
            (None, _) => !self.path.is_empty() && self.before.at.is_none(),
        }
    }
}

/// Whether the transcript shows a tool call since then. Lines of an iteration that looked idle may come late.
pub(super) fn used_tools_since(stop: &Stop<'_>, since: Millis) -> bool {
    transcript(stop).is_some_and(|file| transcript::used_tools_since(&file, since))
}

/// The session's transcript, where a client writes one.
pub(super) fn transcript(stop: &Stop<'_>) -> Option<OpenFile> {
    OpenFile::of_session(stop.hook()?.transcript, stop.session())
}

/// Whether the agent's own tool calls name the loop's file since the ruling before.
pub(super) fn named_in_tools(stop: &Stop<'_>, l: &Loop) -> bool {
    let Some(file) = l.found.own_file().file_name().and_then(|name| name.to_str()).map(str::to_owned) else { return false };
    let since = l.state.last.as_ref().map(|last| last.at);
    transcript(stop).is_some_and(|source| transcript::named_in_tools(&source, since, &file))
}

/// Whether the session's transcript, at `path`, ends with an interrupt of this loop. One that is older than a resume is over.
pub(crate) fn was_interrupted(path: &str, session: &str, typed: &str, state: &State) -> bool {
    let last = OpenFile::of_session(path, Some(session).filter(|session| !session.is_empty()))
        .and_then(|file| transcript::last_talk(&file, typed));
    last.is_some_and(|last| last.interrupted && last.at.is_none_or(|at| state.armed_since.is_none_or(|armed| at >= armed)))
}
