//! Gathering the evidence of one stop: what the agent said, what it did, what waits, and how far the loop is.

use std::{fs::File, path::Path, time::Duration};

use ralph_core::{
    judge::{Evidence, Message},
    limits::{self, ToolUse},
    loop_file::fnv1a,
    promise::{self, Claim},
    time::Millis,
    transcript::{self, Round, Source},
};

use crate::{
    hook::Call,
    hosts::claude::caller::MESSAGE_SINCE,
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
}

/// A client that does not send the message is still writing it when it calls us: some patience, but never much.
const RETRIES: usize = 4;
const RETRY_PAUSE: Duration = Duration::from_millis(20);

pub(super) fn gather(call: &Call, l: &Loop, now: Millis) -> Gathered {
    let event_text = call.event.last_message();
    let path = call.event.text("transcript_path").unwrap_or_default();
    let since = l.state.last.as_ref().map(|last| last.at);
    let sends_message = event_text.is_some() || call.client.is_some_and(|v| v >= MESSAGE_SINCE);
    let round = read_round(path, since, event_text, if sends_message { 0 } else { RETRIES });
    let message = match (&round, event_text) {
        (_, Some(_)) => Message::Event,
        (Some(Round { text: Some(_), .. }), None) => Message::Transcript,
        (None, None) if !sends_message => Message::Unreadable { transcript: path.to_owned() },
        _ => Message::NoText,
    };
    let (text, tools, queued_input) = match round {
        Some(round) => (round.text.unwrap_or_default(), round.tools, round.queued_input),
        None => (event_text.unwrap_or_default().to_owned(), ToolUse::Unknown, false),
    };
    let fingerprint = format!("{:016x}", fnv1a(text.as_bytes()));
    let claim = l.file.completion_promise.as_deref().map_or(Claim::None, |p| promise::find(&text, p, &l.file.prompt));
    let cap = limits::block_cap(env::block_cap().as_deref());
    let (idle_limit, idle_limit_from) = limits::idle_limit(l.file.idle_rounds, cap);
    // The client counts within one turn of the person's: so do we.
    let same_turn = l.state.turn.as_deref() == call.event.text("prompt_id");
    let idle_before = if same_turn { l.state.idle_rounds } else { 0 };
    let same_message = l.state.message.as_deref() == Some(fingerprint.as_str());
    let evidence = Evidence {
        active: l.file.active,
        iteration: l.file.iteration,
        max_iterations: l.file.max_iterations,
        promise: l.file.completion_promise.clone(),
        claim,
        message,
        queued_input,
        background: call.event.background(),
        spent_ms: l.state.spent(now),
        max_ms: l.file.max_millis(),
        tools,
        idle_rounds: limits::count_idle(idle_before, tools, same_message),
        idle_limit,
        idle_limit_from,
    };
    Gathered { evidence, text, message: fingerprint }
}

/// Reads the last round; `None` if there is no transcript.
fn read_round(path: &str, since: Option<Millis>, event_text: Option<&str>, retries: usize) -> Option<Round> {
    for _ in 0..retries {
        if let Some(round) = OpenFile::open(path).map(|file| transcript::last_round(&file, since, event_text))
            && round.text.is_some()
            && !round.torn
        {
            return Some(round);
        }
        std::thread::sleep(RETRY_PAUSE);
    }
    OpenFile::open(path).map(|file| transcript::last_round(&file, since, event_text))
}

/// Whether the transcript at `path` ends with an interrupt.
pub(super) fn was_interrupted(path: &str, typed: &str) -> bool {
    OpenFile::open(path).is_some_and(|file| transcript::was_interrupted(&file, typed))
}

/// A file as the transcript reader wants it.
struct OpenFile {
    file: File,
    size: u64,
}

impl OpenFile {
    fn open(path: &str) -> Option<Self> {
        if path.is_empty() {
            return None;
        }
        let file = File::open(Path::new(path)).ok()?;
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(OpenFile { size: meta.len(), file })
    }
}

impl Source for OpenFile {
    fn size(&self) -> u64 {
        self.size
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        use std::os::unix::fs::FileExt;
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) | Err(_) => break,
                Ok(n) => done += n,
            }
        }
        done
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        use std::os::windows::fs::FileExt;
        self.file.seek_read(buf, offset).unwrap_or(0)
    }
}
