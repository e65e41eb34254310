//! The spending of a loop, for the hook: transcripts only grow, so each stop reads on where the one before left off.

use std::path::Path;

use ralph_core::{
    journal::{Known, Spending},
    loops::fnv1a,
    money::Micros,
    text::{Lines, time::Millis},
};

use super::{Counted, MAX_LINE, Meter, Usage, read_lines};
use crate::hosts::claude::transcript::{OpenFile, Source, Transcript, of_subagents};

/// So much is read for one stop; the rest is read at the next. Of a file that is new, only so much of the end counts.
pub(super) const REACH: u64 = 64 << 20;

/// Messages that are remembered in the journal: their lines may be mixed with each other's.
const MOST_RECENT: usize = 3;

/// Adds what is new in the transcript of a session, and in those of its subagents.
pub(crate) fn read_on(spending: &mut Spending, transcript: &Path) {
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
            read(spending, &Seen { file, is_own, changed: transcript.changed, source: &source }, &mut budget);
        }
    }
}

/// A transcript that may have grown.
pub(super) struct Seen<'s, S: ?Sized> {
    pub file: String,
    /// The session's own, not a subagent's.
    pub is_own: bool,
    pub changed: u64,
    pub source: &'s S,
}

/// Reads on in a file, and adds what it tells. What was read is taken from `budget`.
pub(super) fn read(spending: &mut Spending, seen: &Seen<'_, impl Source + ?Sized>, budget: &mut u64) {
    let at = spending.files.iter().position(|known| known.file == seen.file);
    let mut known = at.map_or_else(|| Known { file: seen.file.clone(), ..Known::default() }, |at| spending.files.remove(at));
    known.changed = seen.changed;
    if seen.is_own {
        spending.files.iter_mut().for_each(|other| other.is_own = false);
        known.is_own = true;
    }
    let spent = read_file(&mut known, seen.source, spending.since, budget);
    spending.usd_micros = spending.usd_micros.saturating_add(spent);
    spending.files.push(known);
    spending.forget_the_oldest();
}

fn read_file(known: &mut Known, source: &(impl Source + ?Sized), since: Millis, budget: &mut u64) -> Micros {
    let size = source.size();
    if size < known.bytes || !begins_a_line(source, known.bytes) {
        known.bytes = 0;
        known.after = known.at;
        known.recent.clear();
    }
    let mut meter = meter(known, since);
    let jumps = known.bytes == 0 && size > REACH;
    let (at, lines) = if jumps { (size - REACH, Lines::from_the_middle(MAX_LINE)) } else { (known.bytes, Lines::new(MAX_LINE)) };
    known.bytes = read_lines(source, at, lines, budget, |line| {
        meter.line(line, |_| false);
    });
    keep(known, meter)
}

/// The meter as the stop before left it.
fn meter(known: &Known, since: Millis) -> Meter {
    let counted = |(id, usd_micros): &(String, Micros)| Counted { id: id.clone(), usage: Usage::default(), usd_micros: *usd_micros };
    Meter {
        at: known.at,
        needs_times: known.after > 0,
        model: known.model.as_deref().map(Into::into),
        recent: known.recent.iter().map(counted).collect(),
        ..Meter::since(since.max(known.after))
    }
}

/// Notes the state of the meter for the next stop; returns the money that it counted.
fn keep(known: &mut Known, meter: Meter) -> Micros {
    known.at = meter.at;
    known.model = meter.model.filter(|model| model.len() < 100).map(|model| model.to_string()).or(known.model.take());
    // A message without an id has a number, which counts for this call only.
    let mut recent: Vec<_> = meter.recent.into_iter().filter(|counted| !counted.id.starts_with('#')).collect();
    let recent = recent.split_off(recent.len().saturating_sub(MOST_RECENT));
    known.recent = recent.into_iter().map(|counted| (counted.id, counted.usd_micros)).collect();
    meter.usd_micros
}

/// Whether a line begins at this place; if not, it is another file than the one that was read.
fn begins_a_line(source: &(impl Source + ?Sized), at: u64) -> bool {
    let mut before = [0];
    at == 0 || (source.read_at(at - 1, &mut before) == 1 && before[0] == b'\n')
}
