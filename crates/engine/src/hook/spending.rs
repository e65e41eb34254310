//! What a loop has spent: the session's transcripts and those of its subagents, read on from where the stop before left off.
//!
//! Only a loop with a limit on money is looked at. What counts is newer than the loop's start, as its file has it; a loop that was written by hand without
//! one begins with its first stop. What is used while it is paused is the person's own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ralph_core::{
    judge::Evidence,
    loop_file::fnv1a,
    time::Millis,
    usage::{REACH, Seen, Spending},
};

use crate::{
    hook::{Call, evidence::OpenFile},
    store::locked::Loop,
    sys::files,
};

/// More files of subagents than this are not looked at.
const MOST_FILES: usize = 5_000;

/// Counts what is new, and puts it into the evidence.
pub(super) fn count(call: &Call, l: &mut Loop, at: Millis, evidence: &mut Evidence) {
    evidence.max_usd_micros = l.file.max_usd_micros();
    if let Some(report) = &call.round {
        report.work.charge(&mut l.state, at);
        evidence.spent_usd_micros = l.state.spending.as_ref().map_or(0, |spending| spending.usd_micros);
        evidence.spent_tokens = l.state.tokens.total();
        return;
    }
    if evidence.max_usd_micros == 0 {
        return;
    }
    let mut spending = l.state.spending.take().unwrap_or_else(|| Spending::since(l.file.began().unwrap_or(at)));
    if l.file.active {
        read(&mut spending, Path::new(call.event.text("transcript_path").unwrap_or_default()));
    } else {
        spending.since = at;
    }
    evidence.spent_usd_micros = spending.usd_micros;
    l.state.spending = Some(spending);
}

fn read(spending: &mut Spending, transcript: &Path) {
    let mut budget = REACH;
    let own = Some(transcript.to_owned()).filter(|path| !path.as_os_str().is_empty()).and_then(Candidate::of);
    for (candidate, is_own) in own.into_iter().map(|own| (own, true)).chain(of_subagents(transcript).into_iter().map(|sub| (sub, false))) {
        if budget == 0 {
            break;
        }
        if spending.has_read(&candidate.file, candidate.size, candidate.changed) {
            continue;
        }
        if let Some(source) = candidate.path.to_str().and_then(OpenFile::open) {
            let seen = Seen { file: candidate.file, is_own, changed: candidate.changed, source: &source };
            spending.read(&seen, &mut budget);
        }
    }
}

/// A transcript that may have grown.
struct Candidate {
    path: PathBuf,
    /// A fingerprint of the path.
    file: String,
    size: u64,
    /// Milliseconds since the epoch.
    changed: u64,
}

impl Candidate {
    fn of(path: PathBuf) -> Option<Self> {
        let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let file = format!("{:016x}", fnv1a(path.as_os_str().as_encoded_bytes()));
        Some(Candidate { file, size: meta.len(), changed: files::changed_ms(&meta), path })
    }
}

/// `<session>/subagents/agent-*.jsonl` beside `<session>.jsonl`, the one that was changed first first: what is not read for want of time is newer than
/// all that was.
fn of_subagents(transcript: &Path) -> Vec<Candidate> {
    let is_agents = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("agent-") && path.extension().is_some_and(|e| e == "jsonl")
    };
    let entries = fs::read_dir(transcript.with_extension("").join("subagents")).into_iter().flatten().flatten();
    let mut all: Vec<Candidate> = entries.take(MOST_FILES).map(|entry| entry.path()).filter(is_agents).filter_map(Candidate::of).collect();
    all.sort_by_key(|candidate| candidate.changed);
    all
}
