//! Ralph's own copy of the last line of each loop's journal, in the user's state folder.
//!
//! An agent may write into the journal, so it decides nothing: the state of a loop is read from this copy, the *seal*. The journal is compared with it byte by byte, and
//! a difference is reported. The seal is written first: if a writer is killed in between, the next one adds the missing line to the journal.
//!
//! A live loop is sealed under its name (`loops/main`), so that a loop file cannot pose as another loop; an ended one under its id (`ended/<id>`). The first line of a seal has
//! the loop's id and the offset of the line in the journal. `previous/main` is the seal before: it counts where a power cut broke the last one.

use std::{fs, path::Path};

use ralph_core::{
    journal::{Record, State},
    loops::{is_loop_id, is_name},
    text::find_byte,
};

use crate::{
    store::{
        Error,
        journal::{self, Tail},
        project::Project,
        trouble,
    },
    sys::{exchange, files},
};

/// A larger file is no seal.
const MAX_BYTES: usize = 16 << 20;

const MAX_HEAD: usize = 256;

/// How many seals of ended loops are kept.
const KEPT: usize = 200;

const LIVE: &str = "loops";
const PREVIOUS: &str = "previous";
const ENDED: &str = "ended";

/// The first line of a seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) id: String,
    /// The loop's file has this id itself.
    pub(super) is_named: bool,
    /// Where the line begins in the journal.
    from: u64,
}

impl Head {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(line).ok()?.split(' ');
        let head = match (words.next(), words.next(), words.next(), words.next()) {
            (Some("1"), Some(id), Some(named @ ("named" | "unnamed")), Some(from)) => {
                Head { id: id.to_owned(), is_named: named == "named", from: from.parse().ok()? }
            }
            _ => return None,
        };
        is_loop_id(&head.id).then_some(head)
    }

    fn to_line(&self) -> String {
        format!("1 {} {} {}\n", self.id, if self.is_named { "named" } else { "unnamed" }, self.from)
    }
}

/// Where a seal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// There is none.
    #[default]
    None,
    Live,
    Ended,
}

/// A seal as it was read.
struct Seal {
    kind: Kind,
    head: Head,
    /// The journal's last line, with its end.
    line: Vec<u8>,
    record: Box<Record>,
}

impl Seal {
    fn read(project: &Project, kind: Kind, name: &str) -> Option<Self> {
        let path = if kind == Kind::Ended { ended(name) } else { live(name) };
        let read = |path: &str| files::read(&project.state_file(path)?, MAX_BYTES).ok();
        let seal = Seal::parse(kind, read(&path)?);
        if seal.is_some() || kind == Kind::Ended {
            return seal;
        }
        // Two records may have been written between opening and reading it: the file that was opened is written over then.
        read(&path).and_then(|bytes| Seal::parse(kind, bytes)).or_else(|| Seal::parse(kind, read(&previous(name))?))
    }

    fn parse(kind: Kind, bytes: Vec<u8>) -> Option<Self> {
        let end = find_byte(b'\n', &bytes)?;
        let head = Head::parse(&bytes[..end])?;
        let mut line = bytes;
        line.drain(..=end);
        let record = serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?;
        Some(Seal { kind, head, line, record })
    }

    /// The seal of the loop `id`, if that lives under this name.
    fn living(project: &Project, name: &str, id: &str) -> Option<Self> {
        Seal::read(project, Kind::Live, name).filter(|seal| seal.head.id == id)
    }

    /// The end of the journal according to the seal, and how the journal differs from it.
    fn tail(self, journal: &Path) -> Tail {
        let mut tail = Tail { last: Some(self.record), kind: self.kind, ..Tail::default() };
        let (from, end) = (self.head.from, self.head.from + self.line.len() as u64);
        let misfit = match journal::from(journal, from, self.line.len() + 1) {
            Ok((size, bytes)) => {
                (tail.size, tail.torn) = (size, bytes.last().is_some_and(|b| *b != b'\n'));
                match size {
                    _ if size == end && bytes == self.line => return tail,
                    // A writer was killed before its line was complete.
                    _ if (from..end).contains(&size) && self.line.starts_with(&bytes) => {
                        tail.torn = false;
                        tail.missing = self.line[bytes.len()..].to_vec();
                        return tail;
                    }
                    _ if size < from => "lines are missing at its end".to_owned(),
                    _ if size > end => "something was added to it".to_owned(),
                    _ => "its last line was changed".to_owned(),
                }
            }
            Err(e) if files::is_missing(&e) && from == 0 => {
                tail.missing.clone_from(&self.line);
                return tail;
            }
            Err(e) if files::is_missing(&e) => "it was deleted".to_owned(),
            Err(e) => format!("it cannot be read: {e}"),
        };
        tail.misfit = Some(misfit);
        tail
    }
}

fn live(name: &str) -> String {
    format!("{LIVE}/{name}")
}

fn previous(name: &str) -> String {
    format!("{PREVIOUS}/{name}")
}

fn ended(id: &str) -> String {
    format!("{ENDED}/{id}")
}

/// The head of the live loop of this name.
pub(super) fn head(project: &Project, name: &str) -> Option<Head> {
    let bytes = files::read_head(&project.state_file(&live(name))?, MAX_HEAD).ok()?;
    Head::parse(&bytes[..find_byte(b'\n', &bytes)?])
}

/// The last line that ralph wrote about a loop, however the journal looks now. Without a seal it is the journal's, as far as that can be believed.
pub fn last(project: &Project, id: &str) -> Option<Record> {
    sealed(project, id).map(|seal| seal.record).or_else(|| unsealed(project, id).last).map(|record| *record)
}

/// The same for a loop whose name is known, which is faster.
pub(crate) fn last_of(project: &Project, name: &str, id: &str) -> Option<Record> {
    living(project, name, id).or_else(|| last(project, id))
}

/// Whether ralph has a seal of this loop. Without a state folder every loop is believed.
pub(crate) fn is_known(project: &Project, id: &str) -> bool {
    sealed(project, id).is_some() || !project.keeps_state()
}

/// Whether there is a seal of this loop.
pub(crate) fn has_seal(project: &Project, id: &str) -> bool {
    sealed(project, id).is_some()
}

/// Where the line of a seal of this loop begins in the journal; `None`: it is none.
pub(crate) fn begin(bytes: &[u8], id: &str) -> Option<u64> {
    Seal::parse(Kind::Live, bytes.to_vec()).filter(|seal| seal.head.id == id).map(|seal| seal.head.from)
}

/// The same seal for a journal in which its line begins there.
pub(crate) fn begun_at(seal: &str, from: u64) -> String {
    let Some((head, line)) = seal.split_once('\n') else { return seal.to_owned() };
    Head::parse(head.as_bytes()).map_or_else(|| seal.to_owned(), |head| Head { from, ..head }.to_line() + line)
}

/// The last line of the loop of this name and id, while it lives.
pub(super) fn living(project: &Project, name: &str, id: &str) -> Option<Record> {
    Some(*Seal::living(project, name, id)?.record)
}

/// How the journal of a sealed loop differs from its seal.
pub fn misfit(project: &Project, id: &str) -> Option<String> {
    sealed(project, id)?.tail(&project.journal(id)).misfit
}

/// The end of a loop's journal, for the next line to be added.
pub(super) fn tail(project: &Project, name: Option<&str>, id: &str) -> Tail {
    let own = name.and_then(|name| Seal::living(project, name, id));
    own.or_else(|| sealed(project, id)).map_or_else(|| unsealed(project, id), |seal| seal.tail(&project.journal(id)))
}

/// The seal of a loop, whether it lives or has ended.
fn sealed(project: &Project, id: &str) -> Option<Seal> {
    if let Some(seal) = Seal::read(project, Kind::Ended, id) {
        return Some(seal);
    }
    let folder = project.state_file(&live("main"))?.parent()?.to_owned();
    let names = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    // A writer that was killed leaves a file beside the one that it wrote.
    names.filter(|name| is_name(name)).find_map(|name| Seal::living(project, &name, id))
}

/// The end of a journal without a seal: it is an older version's, another machine's, or forged.
fn unsealed(project: &Project, id: &str) -> Tail {
    let mut tail = journal::tail(&project.journal(id));
    if let Some(record) = tail.last.as_mut().filter(|_| project.keeps_state()) {
        let before = std::mem::take(&mut record.state);
        // A loop that is in the archive does not come back by itself: that it ended can be believed.
        let ended = before.ended.filter(|_| project.archive().join(format!("{id}.md")).exists());
        record.state = State { ended, ..before.unsealed() };
    }
    tail
}

/// Adds a record to the journal of a loop, sealed first. Without a state folder nothing is sealed.
pub(super) fn append(project: &Project, is_named: bool, tail: &mut Tail, record: Box<Record>) -> Result<(), Error> {
    let path = project.journal(&record.loop_id);
    let written = Error::io("write", &path);
    let mut bytes = std::mem::take(&mut tail.missing);
    if tail.torn {
        bytes.push(b'\n');
    }
    let begins = bytes.len();
    if let Err(e) = serde_json::to_writer(&mut bytes, &record) {
        return Err(written(e.into()));
    }
    bytes.push(b'\n');
    if !journal::is_masked(&record.event) {
        let line = journal::without_secrets(&bytes[begins..]);
        bytes.truncate(begins);
        bytes.extend(line);
    }
    let head = Head { id: record.loop_id.clone(), is_named, from: tail.size + begins as u64 };
    let kind = write(project, &head, &record.state, tail.kind, &bytes[begins..])?;
    if let Err(e) = files::append(&path, &bytes) {
        // The seal has it, and that decides; the next look at the journal reports the difference.
        if kind == Kind::None {
            return Err(written(e));
        }
        trouble::missed(&format!("cannot write {}: {e}", path.display()));
    }
    *tail = Tail { last: Some(record), size: tail.size + bytes.len() as u64, kind, ..Tail::default() };
    Ok(())
}

/// Writes a seal to where it belongs, and says where that is.
fn write(project: &Project, head: &Head, state: &State, before: Kind, line: &[u8]) -> Result<Kind, Error> {
    let name = state.name.as_deref().unwrap_or("main");
    let (kind, path) = if state.ended.is_some() { (Kind::Ended, ended(&head.id)) } else { (Kind::Live, live(name)) };
    let Ok(file) = project.make_state_file(&path) else { return Ok(Kind::None) };
    if before == Kind::None {
        make_room(project, name, &head.id);
    }
    let bytes = [head.to_line().as_bytes(), line].concat();
    let rewritten = || exchange::rewrite(&file, &project.make_state_file(&previous(name)).ok()?, &bytes).ok();
    if kind == Kind::Ended || rewritten().is_none() {
        files::replace_private(&file, &bytes).map_err(Error::io("write", &file))?;
    }
    match (before, kind) {
        (Kind::Live, Kind::Ended) => {
            project.delete(&live(name));
            project.delete(&previous(name));
        }
        (Kind::Ended, Kind::Live) => project.delete(&ended(&head.id)),
        _ => {}
    }
    if before != kind && kind == Kind::Ended {
        files::prune_beside(&file, KEPT);
    }
    Ok(kind)
}

/// A loop takes this name: the seal of another one that had it is kept under that one's id.
pub(crate) fn make_room(project: &Project, name: &str, id: &str) {
    if head(project, name).is_some_and(|other| other.id != id) {
        close(project, name);
    }
}

/// The loop of this name is gone: its seal is kept under its id.
pub(super) fn close(project: &Project, name: &str) {
    let Some(head) = head(project, name) else { return };
    if let (Some(from), Ok(to)) = (project.state_file(&live(name)), project.make_state_file(&ended(&head.id))) {
        let _ = fs::rename(from, to);
    }
}
