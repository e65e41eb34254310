//! Journals on disk: append one line, read the last one.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use ralph_core::{
    gate::{Finding, Kind},
    journal::{Event, Record, Runner, State, last_record, records},
    judge::{Next, session_outcome::Outcome},
    text::{
        messages,
        time::{self, Millis},
    },
};

use crate::{
    store::{
        denials::{self, Denials},
        loops::LoopOnDisk,
        project::Project,
        runner, seal,
    },
    sys::{files, process, secrets},
};

/// One record is shorter than this, and a larger buffer costs page faults at every call.
const TAIL: u64 = 8 * 1024;

/// A larger journal is none that ralph wrote.
const MOST: usize = 1 << 30;

/// A whole journal.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    files::read(path, MOST)
}

/// The end of a journal.
#[derive(Debug, Default)]
pub struct Tail {
    pub last: Option<Record>,
    /// The last line has no end: a writer was killed, and the next one must begin a new line.
    pub(super) torn: bool,
    /// How long the journal is.
    pub(super) size: u64,
    /// What a killed writer had sealed and not written.
    pub(super) missing: Vec<u8>,
    /// How the journal differs from its seal.
    pub misfit: Option<String>,
    pub(super) kind: seal::Kind,
}

/// Reads the end of a journal. A journal that cannot be read is an empty one: it must never decide whether an agent may stop.
pub(super) fn tail(path: &Path) -> Tail {
    read_tail(path).unwrap_or_default()
}

/// The last record of a loop that has a file, and the loop's state.
pub fn live(project: &Project, found: &LoopOnDisk) -> (Option<Record>, State) {
    let last = seal::last_of(project, &found.name, &found.id());
    let state = last.as_ref().map(|r| r.state.clone().of_live_file(found.parsed.as_ref().ok())).unwrap_or_default();
    (last, state)
}

/// The runner that carries a loop, as long as it lives.
pub fn runner_of(state: &State) -> Option<&Runner> {
    state.runner.as_ref().filter(|runner| runner::is_alive(runner))
}

/// Whether the session that a loop belongs to, or the runner that carries it, may still be there.
pub fn owner_may_live(state: &State) -> bool {
    if state.runner.is_some() {
        return runner_of(state).is_some();
    }
    !state.left_behind && state.client_pid.is_none_or(process::is_alive)
}

/// The state of a loop that has a file.
pub fn live_state(project: &Project, found: &LoopOnDisk) -> State {
    live(project, found).1
}

/// What was found at the last stop that was ruled on.
pub fn last_findings(path: &Path) -> Vec<Finding> {
    let end = files::read_end(path, 32 * TAIL).unwrap_or_default();
    let found = |record: Record| if let Event::Stop { evidence, .. } = record.event { Some(evidence.gates) } else { None };
    records(&end).0.into_iter().rev().find_map(found).unwrap_or_default()
}

/// What the end of a journal tells about a loop's past.
#[derive(Debug, Default)]
pub struct Past {
    /// What each gate found when it was last measured.
    pub findings: Vec<Finding>,
    /// The stop that paused the loop, if that was the last thing that changed it.
    pub paused_at: Option<u64>,
    /// What a hook waits for, and since when, if it has not answered or begun something else since.
    pub waiting: Option<(String, String)>,
    /// What nobody was there to allow, since a runner took the loop.
    pub denied: Vec<Denials>,
    /// A runner carried it last, and no session has it since.
    pub by_run: bool,
    /// Why it rests, or what went wrong last, if nobody has taken it up since.
    pub why: Option<String>,
    /// How full the session's context was at the last stop, in percent, where that was measured.
    pub context: Option<u64>,
}

/// Reads the end of a journal. Whatever lies further back is long ago.
pub fn past(path: &Path) -> Past {
    past_within(path, 32 * TAIL)
}

/// The same from the last few records, for whoever has no time.
pub fn recent_past(path: &Path) -> Past {
    past_within(path, 4 * TAIL)
}

fn past_within(path: &Path, reach: u64) -> Past {
    let end = files::read_end(path, reach).unwrap_or_default();
    let mut past = Past::default();
    let records = records(&end).0;
    past.denied = denials::of_this_run(&records);
    for record in records {
        if matches!(record.event, Event::Stop { .. } | Event::Checking { .. } | Event::Waiting { .. }) {
            past.waiting = None;
        }
        past.note_carrier(&record.event);
        match record.event {
            Event::Waiting { what } => past.waiting = Some((what, record.at)),
            Event::Stop { evidence, ruling, .. } => {
                past.context = (evidence.max_context > 0).then_some(evidence.context);
                past.note(evidence.gates, true);
                match ruling.next {
                    Next::Pauses => past.paused_at = Some(record.state.stops),
                    Next::Stays | Next::Parks => {}
                    Next::GoesOn { .. } | Next::Ends { .. } => past.paused_at = None,
                }
            }
            Event::Measured { findings } => past.note(findings, false),
            Event::Resumed { .. } | Event::Paused { .. } => past.paused_at = None,
            _ => {}
        }
    }
    past
}

impl Past {
    fn note_carrier(&mut self, event: &Event) {
        match event {
            Event::Taken { .. } | Event::Began { .. } => (self.by_run, self.why) = (true, None),
            Event::Adopted | Event::Rebound { .. } | Event::Resumed { .. } => (self.by_run, self.why) = (false, None),
            Event::Broke { outcome: Outcome::Failed { trouble }, .. } => self.why = Some(trouble.words()),
            Event::Left { why } | Event::Paused { why, .. } if !why.is_empty() => self.why = Some(why.clone()),
            Event::Stop { evidence, ruling, .. } if ruling.next == Next::Pauses => self.why = messages::allowed(evidence, ruling),
            // Of a loop that rests, stops change nothing.
            Event::Stop { ruling, .. } if ruling.next == Next::Stays => {}
            Event::Stop { .. } | Event::Paused { .. } => self.why = None,
            _ => {}
        }
    }

    /// Newer findings replace older ones. The guard's is there or not, at a stop that asked for proof.
    fn note(&mut self, findings: Vec<Finding>, of_stop: bool) {
        let measured: Vec<Finding> = findings.into_iter().filter(|f| !f.skipped).collect();
        let replaces =
            |old: &Finding| measured.iter().any(|new| new.gate == old.gate) || (of_stop && !measured.is_empty() && old.kind == Kind::Guard);
        self.findings.retain(|old| !replaces(old));
        self.findings.extend(measured);
    }
}

/// Whether a session was ever started for a loop, as far as the end of its journal tells. One that ended and stands there again is another.
pub fn has_begun(path: &Path) -> bool {
    let end = files::read_end(path, 32 * TAIL).unwrap_or_default();
    let has_begun = |begun: bool, record: &Record| record.state.ended.is_none() && (begun || matches!(record.event, Event::Began { .. }));
    records(&end).0.iter().fold(false, has_begun)
}

/// When sessions were started for a loop since that moment, as far as the end of its journal tells.
pub fn began_since(path: &Path, since: Millis) -> Vec<Millis> {
    let end = files::read_end(path, 32 * TAIL).unwrap_or_default();
    let began = |record: Record| matches!(record.event, Event::Began { .. }).then(|| time::parse(&record.at)).flatten();
    records(&end).0.into_iter().filter_map(began).filter(|at| *at > since).collect()
}

fn read_tail(path: &Path) -> Option<Tail> {
    let (mut file, size) = files::open_regular(path).ok()?;
    let mut reach = TAIL;
    loop {
        let from = size.saturating_sub(reach);
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::with_capacity(usize::try_from(size - from).ok()?);
        file.by_ref().take(reach).read_to_end(&mut bytes).ok()?;
        let torn = bytes.last().is_some_and(|b| *b != b'\n');
        let last = last_record(&bytes);
        if last.is_some() || from == 0 || reach > 256 * TAIL {
            return Some(Tail { last, torn, size, ..Tail::default() });
        }
        reach *= 4;
    }
}

/// How long a journal is, and what is in it from a byte on. Of one that is shorter, or longer by more than `most` bytes, the last byte tells enough.
pub(super) fn from(path: &Path, from: u64, most: usize) -> io::Result<(u64, Vec<u8>)> {
    let (mut file, size) = files::open_regular(path)?;
    let is_near = (from..=from.saturating_add(most as u64)).contains(&size);
    file.seek(SeekFrom::Start(if is_near { from } else { size.saturating_sub(1) }))?;
    let mut bytes = Vec::with_capacity(most);
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok((size, bytes))
}

/// Whether all that others said about it was masked where it was heard: of a stop without gates nothing else is told. That is most of them.
pub(super) fn is_masked(event: &Event) -> bool {
    matches!(event, Event::Stop { evidence, .. } if evidence.gates.is_empty() && evidence.suspicions.is_empty())
}

/// A line whose event, which tells what agents, gates and clients said, has no secrets. The state, which comes last, has to be what it is.
pub(super) fn without_secrets(line: &[u8]) -> Vec<u8> {
    let state = memchr::memmem::rfind(line, b",\"state\":{").unwrap_or(line.len());
    let (event, state) = line.split_at(state);
    [&secrets::mask_bytes(event), state].concat()
}
