//! Journals on disk: append one line, read the last one.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use ralph_core::{
    gate::Finding,
    history::{self, History},
    journal::{Event, Record, Runner, State, last_record, records},
    judge::{self, Claim},
    text::{
        Lines,
        time::{self, Millis},
    },
};

use crate::{
    store::{loops::LoopOnDisk, project::Project, runner, seal},
    sys::{files, process, secrets},
};

/// Most records are shorter, and a larger buffer costs page faults at every call.
const TAIL: u64 = 8 * 1024;

/// A larger file is no journal.
const MOST: usize = 1 << 30;

/// A journal is read in pieces of this size where it need not be in memory as a whole.
const PIECE: usize = 256 << 10;

/// A whole journal.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    files::read(path, MOST)
}

/// The end of a journal.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub last: Option<Box<Record>>,
    /// The last line has no end: a writer was killed, and the next one must begin a new line.
    pub(super) torn: bool,
    /// How long the journal is.
    pub(super) size: u64,
    /// The line that a killed writer had sealed and not written.
    pub(super) missing: Vec<u8>,
    /// How the journal differs from its seal.
    pub misfit: Option<String>,
    pub(super) kind: seal::Kind,
}

/// Reads the end of a journal. One that cannot be read counts as empty: it must never decide whether an agent may stop.
pub(super) fn tail(path: &Path) -> Tail {
    read_tail(path).unwrap_or_default()
}

/// The last record of a loop that has a file, and the loop's state.
pub(crate) fn live(project: &Project, found: &LoopOnDisk) -> (Option<Record>, State) {
    let last = seal::last_of(project, &found.name, &found.id());
    let state = last.as_ref().map(|r| r.state.clone().of_live_file(found.parsed.as_ref().ok())).unwrap_or_default();
    (last, state)
}

/// The run that has a loop, while it lives.
pub(crate) fn runner_of(state: &State) -> Option<&Runner> {
    state.runner.as_ref().filter(|runner| runner::is_alive(runner))
}

/// Whether the session or the run that has a loop may still live.
pub(crate) fn owner_may_live(state: &State) -> bool {
    if state.runner.is_some() {
        return runner_of(state).is_some();
    }
    !state.left_behind && state.client_pid.is_none_or(process::is_alive)
}

/// The state of a loop that has a file.
pub(crate) fn live_state(project: &Project, found: &LoopOnDisk) -> State {
    live(project, found).1
}

/// The findings of the last stop that was judged.
pub(crate) fn last_findings(path: &Path) -> Vec<Finding> {
    let end = files::read_end(path, 32 * TAIL).unwrap_or_default();
    let found = |record: Record| if let Event::Stop { evidence, .. } = record.event { Some(evidence.gates) } else { None };
    records(&end).0.into_iter().rev().find_map(found).unwrap_or_default()
}

/// The history that a whole journal tells.
pub fn whole_history(path: &Path) -> io::Result<History> {
    let (mut file, size) = files::open_regular(path)?;
    if size > MOST as u64 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let (mut reader, mut lines) = (history::Reading::default(), Lines::new(MOST));
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            n => lines.feed(&piece[..n], |line| reader.line(line)),
        }
    }
    if let Some(line) = lines.finish() {
        reader.line(&line);
    }
    Ok(reader.finish())
}

/// The history that the end of a journal tells. Whatever is further back is long ago.
pub fn history(path: &Path) -> History {
    History::of(&files::read_end(path, 32 * TAIL).unwrap_or_default())
}

/// The same from the last few records, where there is no time for more.
pub(crate) fn recent_history(path: &Path) -> History {
    History::of(&files::read_end(path, 4 * TAIL).unwrap_or_default())
}

/// Whether `ralph run` ever started a session for a loop, as far as the end of its journal tells. After an ending it counts as another loop.
pub(crate) fn has_begun(path: &Path) -> bool {
    let end = files::read_end(path, 32 * TAIL).unwrap_or_default();
    let has_begun = |begun: bool, record: &Record| record.state.ended.is_none() && (begun || matches!(record.event, Event::Began { .. }));
    records(&end).0.iter().fold(false, has_begun)
}

/// When sessions were started for a loop since then, as far as the end of its journal tells.
pub(crate) fn began_since(path: &Path, since: Millis) -> Vec<Millis> {
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
            return Some(Tail { last: last.map(Box::new), torn, size, ..Tail::default() });
        }
        reach *= 4;
    }
}

/// The size of a journal, and its bytes from an offset on. Of one that is shorter, or longer by more than `most` bytes, only the last byte is read.
pub(super) fn from(path: &Path, from: u64, most: usize) -> io::Result<(u64, Vec<u8>)> {
    let (mut file, size) = files::open_regular(path)?;
    let is_near = (from..=from.saturating_add(most as u64)).contains(&size);
    file.seek(SeekFrom::Start(if is_near { from } else { size.saturating_sub(1) }))?;
    let mut bytes = Vec::with_capacity(most);
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok((size, bytes))
}

/// Whether nothing in an event can be a secret: true of a plain stop, which most are. What the agent said at its end is masked already.
pub(super) fn is_masked(event: &Event) -> bool {
    let Event::Stop { evidence, work: None, .. } = event else { return false };
    let quotes_claim = matches!(evidence.claim, Claim::Refused { why: judge::Refusal::OtherWords { .. } });
    let lists = [&evidence.background, &evidence.denied, &evidence.suspicions];
    !quotes_claim && evidence.blocked.is_none() && evidence.gates.is_empty() && lists.iter().all(|list| list.is_empty())
}

/// Masks the event of a line, which has the words of agents, gates and clients. The state, which comes last, stays as it is.
pub(super) fn without_secrets(line: &[u8]) -> Vec<u8> {
    let state = memchr::memmem::rfind(line, b",\"state\":{").unwrap_or(line.len());
    let (event, state) = line.split_at(state);
    [&secrets::mask_bytes(event), state].concat()
}
