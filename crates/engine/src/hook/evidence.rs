//! Gathering the evidence of one stop: what the agent said, what it did, what waits, and how far the loop is.

use std::time::{Duration, Instant};

use ralph_core::{
    journal::{Read, State},
    judge::{Evidence, Message},
    limits::{self, Repeated, Standstill, ToolUse},
    loops::fnv1a,
    promise::{self, Claim},
    time::Millis,
    transcript::{self, Before, Round},
};

use crate::{
    hook::{Call, notes, round::Report},
    hosts::claude::{caller::MESSAGE_SINCE, transcripts::OpenFile},
    store::locked::Loop,
    sys::{clock, env, process},
};

/// Evidence, and what the next stop will be compared with.
pub(super) struct Gathered {
    pub evidence: Evidence,
    /// The agent's last message.
    pub text: String,
    /// Fingerprint of that message.
    pub message: String,
    /// What waits in the client's queue.
    pub queue: Vec<String>,
    /// How far the transcript was read.
    pub read: Option<Read>,
    /// Since when nothing has changed, where that is counted.
    pub standstill: Option<Standstill>,
    /// Which failure was found, and how often in a row.
    pub failure: Option<Repeated>,
}

/// The client holds a message's lines back until the message has ended, and writes them up to 150 ms after it called the hook. Only then can
/// earlier blocks of the message be read, and only then do the other lines tell the whole round.
const PATIENCE: Duration = Duration::from_millis(150);
const STEP: Duration = Duration::from_millis(5);

/// So much of what waits in the client's queue is kept, the oldest first.
const MOST_QUEUED: usize = 100;

/// To read what is there may take longer than to wait for the rest.
const LONGEST: Duration = Duration::from_secs(1);

pub(super) fn gather(call: &Call, l: &Loop, now: Millis) -> Gathered {
    if let Some(report) = &call.round {
        return of_round(call, l, report, now);
    }
    let look = Look {
        path: call.event.text("transcript_path").unwrap_or_default(),
        session: call.event.session(),
        before: before(call, &l.state, now),
        event_text: call.event.last_message(),
        sends_message: call.event.last_message().is_some() || call.client.is_some_and(|v| v >= MESSAGE_SINCE),
    };
    // What is clear from the event alone needs no waiting.
    let claimed = matches!((look.event_text, &l.file.completion_promise), (Some(text), Some(p)) if promise::find(text, p, &l.file.prompt) == Claim::Made);
    let round = if l.file.active && !claimed { look.round_in_time() } else { look.round() };
    let mut seen = weigh(call, l, &look, round, now);
    // Before the loop is paused for idleness: rounds that looked idle may have had tools whose lines came late.
    let idle = &mut seen.evidence;
    if idle.idle_rounds >= idle.idle_limit && l.state.idle_since.is_some_and(|since| look.used_tools_since(since)) {
        idle.idle_rounds = u64::from(idle.tools == ToolUse::None);
    }
    seen
}

/// A runner has heard the whole round, and its session has no queue.
fn of_round(call: &Call, l: &Loop, report: &Report, now: Millis) -> Gathered {
    let look = Look { path: "", session: None, before: Before::default(), event_text: call.event.last_message(), sends_message: true };
    let round = Round { text: report.text.clone(), tools: report.tools, caught_up: true, ..Round::default() };
    let mut seen = weigh(call, l, &look, Some(round), now);
    seen.evidence.fresh = true;
    seen.evidence.before_the_first = report.before_the_first;
    seen.evidence.denied = report.denied();
    seen
}

/// What the ruling before this one knew.
fn before<'l>(call: &Call, state: &'l State, now: Millis) -> Before<'l> {
    let read = state.read.as_ref().filter(|read| read.of == transcript_of(call));
    let turn = call.event.text("prompt_id");
    Before {
        at: state.last.as_ref().map(|last| last.at),
        upto: read.map(|read| read.upto),
        queue: if read.is_some() { &state.queue } else { &[] },
        same_turn: turn.is_some() && state.turn.as_deref() == turn,
        born: if read.is_some() { None } else { client_born(now) },
        armed: state.armed_since,
    }
}

/// A fingerprint of the session and its transcript, which both may change in the middle of a loop.
fn transcript_of(call: &Call) -> String {
    let parts = [call.event.session().unwrap_or_default(), call.event.text("transcript_path").unwrap_or_default()];
    format!("{:016x}", fnv1a(parts.join("\0").as_bytes()))
}

/// All that is in the transcript has been seen.
pub(super) fn read_until_now(call: &Call) -> Option<Read> {
    let file = OpenFile::open(call.event.text("transcript_path")?)?;
    Some(Read { of: transcript_of(call), upto: transcript::Source::size(&file) })
}

/// When the client was started, where the system tells. A client that does not name its process started this one, unless a shell stands between them.
fn client_born(now: Millis) -> Option<Millis> {
    const SLACK_MS: u64 = 1_000;
    let pid = env::claude_pid().or_else(|| process::parent_pid().filter(|pid| !process::is_shell(*pid)))?;
    let age = clock::uptime_ms().saturating_sub(clock::birth_of(pid)?).saturating_add(SLACK_MS);
    now.checked_sub(Millis::try_from(age).ok()?)
}

/// Puts together what is known.
fn weigh(call: &Call, l: &Loop, look: &Look<'_>, round: Option<Round>, now: Millis) -> Gathered {
    let message = match (&round, look.event_text) {
        (_, Some(_)) => Message::Event,
        (Some(Round { text: Some(_), .. }), None) => Message::Transcript,
        (None, None) if !look.sends_message => Message::Unreadable { transcript: look.path.to_owned() },
        _ => Message::NoText,
    };
    let alone = || look.event_text.map(|text| promise::joined([text].into_iter()));
    let mut round = round.unwrap_or_else(|| Round { text: alone(), ..Round::default() });
    // Nobody types so much; what is kept stands in every line of the journal.
    round.queue.truncate(MOST_QUEUED);
    let text = round.text.unwrap_or_default();
    let fingerprint = format!("{:016x}", fnv1a(text.as_bytes()));
    let prompt = call.round.as_ref().map_or(l.file.prompt.as_str(), |report| &report.prompt);
    let claim = l.file.completion_promise.as_deref().map_or(Claim::None, |p| promise::find(&text, p, prompt));
    let blocked = promise::blocked(&text);
    let is_fresh = call.round.is_some();
    // The client's cap is on one session.
    let cap = if is_fresh { None } else { limits::block_cap(env::block_cap().as_deref()) };
    let (idle_limit, idle_limit_from) = limits::idle_limit(l.file.idle_rounds, cap);
    // The client counts within one turn of the person's: so do we.
    let same_turn = is_fresh || l.state.turn.as_deref() == call.event.text("prompt_id");
    let idle_before = if same_turn { l.state.idle_rounds } else { 0 };
    // A message that nobody could read is no message like the last one.
    let is_read = !matches!(message, Message::Unreadable { .. });
    let same_message = is_read && l.state.message.as_deref() == Some(fingerprint.as_str());
    let evidence = Evidence {
        active: call.is_ruled_on(&l.file),
        iteration: l.file.iteration,
        max_iterations: l.file.max_iterations(),
        promise: l.file.completion_promise.clone(),
        claim,
        blocked_rounds: if blocked.is_some() { l.state.blocked_rounds.saturating_add(1) } else { 0 },
        blocked,
        notes_waiting: notes::waiting(&l.state, call),
        message,
        interrupted: round.interrupted,
        told_to_stop: round.told_to_stop,
        queued_input: !round.queue.is_empty(),
        background: call.event.background(),
        spent_ms: l.state.spent(now),
        max_ms: l.file.max_millis(),
        spent_usd_micros: 0,
        max_usd_micros: 0,
        spent_tokens: l.state.tokens.total(),
        max_tokens: l.file.max_tokens(),
        tools: round.tools,
        idle_rounds: limits::count_idle(idle_before, round.tools, same_message),
        idle_limit,
        idle_limit_from,
        stalled_rounds: 0,
        stall_limit: 0,
        swings: 0,
        fresh: false,
        before_the_first: false,
        denied: Vec::new(),
        context: 0,
        max_context: 0,
        gates: Vec::new(),
        unknown_rounds: 0,
        same_failure: 0,
        items_done: 0,
        items_per_session: 0,
        suspicions: Vec::new(),
        waited_ms: 0,
    };
    let read = (!look.path.is_empty()).then(|| Read { of: transcript_of(call), upto: round.upto });
    Gathered { evidence, text, message: fingerprint, queue: round.queue, read, standstill: None, failure: None }
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
    /// The last round; `None` if there is no transcript.
    fn round(&self) -> Option<Round> {
        OpenFile::of_session(self.path, self.session).map(|file| transcript::last_round(&file, &self.before, self.event_text))
    }

    /// The last round once the transcript has caught up with the event, or as far as it is when patience ends.
    fn round_in_time(&self) -> Option<Round> {
        let (begun, mut waited) = (Instant::now(), Duration::ZERO);
        loop {
            let round = self.round();
            if waited >= PATIENCE || begun.elapsed() >= LONGEST || !self.is_worth_waiting(round.as_ref()) {
                return round;
            }
            std::thread::sleep(STEP);
            waited += STEP;
        }
    }

    fn is_worth_waiting(&self, round: Option<&Round>) -> bool {
        match (round, self.event_text) {
            (Some(round), Some(_)) => !round.caught_up,
            // Nothing says when the file is complete: wait for a message that has to be there, or until the queue is surely not stale.
            (Some(round), None) => !round.queue.is_empty() || round.torn || (!self.sends_message && round.text.is_none()),
            // A session's first stop may come before its transcript; later ones without any have none.
            (None, _) => !self.path.is_empty() && self.before.at.is_none(),
        }
    }

    fn used_tools_since(&self, since: Millis) -> bool {
        OpenFile::of_session(self.path, self.session).is_some_and(|file| transcript::used_tools_since(&file, since))
    }
}

/// Whether the agent's own tool calls name the loop's file since the ruling before.
pub(super) fn named_in_tools(call: &Call, l: &Loop) -> bool {
    let Some(file) = l.found.own_file().and_then(|path| path.file_name()?.to_str().map(str::to_owned)) else { return false };
    let path = call.event.text("transcript_path").unwrap_or_default();
    let since = l.state.last.as_ref().map(|last| last.at);
    OpenFile::of_session(path, call.event.session()).is_some_and(|source| transcript::named_in_tools(&source, since, &file))
}

/// Whether the transcript at `path` ends with an interrupt.
pub(super) fn was_interrupted(path: &str, typed: &str) -> bool {
    OpenFile::of_session(path, None).is_some_and(|file| transcript::was_interrupted(&file, typed))
}
