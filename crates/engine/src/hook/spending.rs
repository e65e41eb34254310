//! What a loop has spent: the session's transcripts and those of its subagents, read on from where the stop before left off.
//!
//! Only a loop with a limit on money is looked at. What counts is newer than the loop's start, as its file has it; a loop that was written by hand without
//! one begins with its first stop. What is used while it is paused is the person's own.

use std::path::Path;

use ralph_core::{
    judge::Evidence,
    loops::fnv1a,
    time::Millis,
    usage::{REACH, Seen, Spending},
};

use crate::{
    hook::Call,
    hosts::claude::transcripts::{OpenFile, Transcript, of_subagents},
    store::locked::Loop,
};

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
    let own = Some(transcript.to_owned()).filter(|path| !path.as_os_str().is_empty()).and_then(Transcript::of);
    for (transcript, is_own) in own.into_iter().map(|own| (own, true)).chain(of_subagents(transcript).into_iter().map(|sub| (sub, false))) {
        if budget == 0 {
            break;
        }
        let file = format!("{:016x}", fnv1a(transcript.path.as_os_str().as_encoded_bytes()));
        if spending.has_read(&file, transcript.size, transcript.changed) {
            continue;
        }
        if let Some(source) = OpenFile::open(&transcript.path) {
            let seen = Seen { file, is_own, changed: transcript.changed, source: &source };
            spending.read(&seen, &mut budget);
        }
    }
}
