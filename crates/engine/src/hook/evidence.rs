//! Gathering the evidence of one stop: what the agent said, what it did, what waits, and how far the loop is.

use std::time::Duration;

use ralph_core::{
    judge::{Evidence, Message},
    limits::{self, Standstill, ToolUse},
    loop_file::fnv1a,
    promise::{self, Claim},
    time::Millis,
    transcript::{self, Round},
};

use crate::{
    hook::{Call, round::Report},
    hosts::claude::{caller::MESSAGE_SINCE, transcripts::OpenFile},
    store::locked::Loop,
    sys::env,
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
    /// Since when nothing has changed, where that is counted.
    pub standstill: Option<Standstill>,
}

/// The client holds a message's lines back until the message has ended, and writes them up to 150 ms after it called the hook. Only then can
/// earlier blocks of the message be read, and only then do the other lines tell the whole round.
const PATIENCE: Duration = Duration::from_millis(150);
const STEP: Duration = Duration::from_millis(5);

pub(super) fn gather(call: &Call, l: &Loop, now: Millis) -> Gathered {
    if let Some(report) = &call.round {
        return of_round(call, l, report, now);
    }
    let look = Look {
        path: call.event.text("transcript_path").unwrap_or_default(),
        since: l.state.last.as_ref().map(|last| last.at),
        queue: &l.state.queue,
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
    let look = Look { path: "", since: None, queue: &[], event_text: call.event.last_message(), sends_message: true };
    let round = Round { text: report.text.clone(), tools: report.tools, caught_up: true, ..Round::default() };
    let mut seen = weigh(call, l, &look, Some(round), now);
    seen.evidence.fresh = true;
    seen.evidence.denied = report.denied();
    seen
}

/// Puts together what is known.
fn weigh(call: &Call, l: &Loop, look: &Look<'_>, round: Option<Round>, now: Millis) -> Gathered {
    let message = match (&round, look.event_text) {
        (_, Some(_)) => Message::Event,
        (Some(Round { text: Some(_), .. }), None) => Message::Transcript,
        (None, None) if !look.sends_message => Message::Unreadable { transcript: look.path.to_owned() },
        _ => Message::NoText,
    };
    let round = round.unwrap_or_else(|| Round { text: look.event_text.map(str::to_owned), ..Round::default() });
    let text = round.text.unwrap_or_default();
    let fingerprint = format!("{:016x}", fnv1a(text.as_bytes()));
    let prompt = call.round.as_ref().map_or(l.file.prompt.as_str(), |report| &report.prompt);
    let claim = l.file.completion_promise.as_deref().map_or(Claim::None, |p| promise::find(&text, p, prompt));
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
        max_iterations: l.file.max_iterations,
        promise: l.file.completion_promise.clone(),
        claim,
        message,
        interrupted: round.interrupted,
        queued_input: !round.queue.is_empty(),
        background: call.event.background(),
        spent_ms: l.state.spent(now),
        max_ms: l.file.max_millis(),
        spent_usd_micros: 0,
        max_usd_micros: 0,
        spent_tokens: l.state.tokens.total(),
        max_tokens: l.file.max_tokens,
        tools: round.tools,
        idle_rounds: limits::count_idle(idle_before, round.tools, same_message),
        idle_limit,
        idle_limit_from,
        stalled_rounds: 0,
        stall_limit: 0,
        swings: 0,
        fresh: false,
        denied: Vec::new(),
        context: 0,
        max_context: 0,
        gates: Vec::new(),
        unknown_rounds: 0,
        items_done: 0,
        items_per_session: 0,
        suspicions: Vec::new(),
        waited_ms: 0,
    };
    Gathered { evidence, text, message: fingerprint, queue: round.queue, standstill: None }
}

/// Where to look in the transcript, and for what.
struct Look<'a> {
    path: &'a str,
    since: Option<Millis>,
    /// What waited in the queue then.
    queue: &'a [String],
    event_text: Option<&'a str>,
    /// The client sends the message with the event, so that an event without one means a message without text.
    sends_message: bool,
}

impl Look<'_> {
    /// The last round; `None` if there is no transcript.
    fn round(&self) -> Option<Round> {
        OpenFile::open(self.path).map(|file| transcript::last_round(&file, self.since, self.event_text, self.queue))
    }

    /// The last round once the transcript has caught up with the event, or as far as it is when patience ends.
    fn round_in_time(&self) -> Option<Round> {
        let mut waited = Duration::ZERO;
        loop {
            let round = self.round();
            if waited >= PATIENCE || !self.is_worth_waiting(round.as_ref()) {
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
            (None, _) => !self.path.is_empty() && self.since.is_none(),
        }
    }

    fn used_tools_since(&self, since: Millis) -> bool {
        OpenFile::open(self.path).is_some_and(|file| transcript::used_tools_since(&file, since))
    }
}

/// Whether the transcript at `path` ends with an interrupt.
pub(super) fn was_interrupted(path: &str, typed: &str) -> bool {
    OpenFile::open(path).is_some_and(|file| transcript::was_interrupted(&file, typed))
}
