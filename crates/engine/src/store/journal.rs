//! Journals on disk: append one line, read the last one.

use std::{
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use ralph_core::{
    gate::Finding,
    journal::{Event, Record, State, last_record, records},
};

use crate::{
    store::{Error, loops::Found, project::Project},
    sys::{files, process},
};

/// One record is shorter than this, and a larger buffer costs page faults at every call.
const TAIL: u64 = 8 * 1024;

/// The end of a journal.
#[derive(Debug, Default)]
pub struct Tail {
    pub last: Option<Record>,
    /// The last line has no end: a writer was killed, and the next one must begin a new line.
    torn: bool,
}

impl Tail {
    /// The end of a journal right after `record` was appended.
    pub fn ending_with(record: Record) -> Self {
        Tail { last: Some(record), torn: false }
    }
}

/// Reads the end of a journal. A journal that cannot be read is an empty one: it must never decide whether an agent may stop.
pub fn tail(path: &Path) -> Tail {
    read_tail(path).unwrap_or_default()
}

/// The last record of a loop that has a file, and the loop's state.
pub fn live(project: &Project, found: &Found) -> (Option<Record>, State) {
    let last = tail(&project.journal(&found.id())).last;
    let state = last.as_ref().map(|r| r.state.clone().of_live_file(found.parsed.as_ref().ok())).unwrap_or_default();
    (last, state)
}

/// Whether the session that a loop belongs to may still be there.
pub fn owner_may_live(state: &State) -> bool {
    !state.left_behind && state.client_pid.is_none_or(process::is_alive)
}

/// The state of a loop that has a file.
pub fn live_state(project: &Project, found: &Found) -> State {
    live(project, found).1
}

/// What the gates found at the last stop, as far as the journal's end tells.
pub fn last_findings(path: &Path) -> Vec<Finding> {
    let end = files::read_end(path, 32 * TAIL).unwrap_or_default();
    let (records, _) = records(&end);
    let of_stop = records.into_iter().rev().find_map(|record| match record.event {
        Event::Stop { evidence, .. } => Some(evidence.gates),
        _ => None,
    });
    of_stop.unwrap_or_default()
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
            return Some(Tail { last, torn });
        }
        reach *= 4;
    }
}

/// Appends one record in one write.
pub fn append(path: &Path, tail: &Tail, record: &Record) -> Result<(), Error> {
    let mut line = Vec::with_capacity(1024);
    if tail.torn {
        line.push(b'\n');
    }
    serde_json::to_writer(&mut line, record).map_err(|e| Error::io("write", path)(e.into()))?;
    line.push(b'\n');
    files::append(path, &line).map_err(Error::io("write", path))
}
