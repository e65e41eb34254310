//! The port: where the records of a fleet are kept. It only stores. Every rule is in [`crate::job_rules`], so a driver knows nothing of jobs.
//!
//! What a driver must do is the text of `tests/contract.rs`. In short:
//! - a value has a *revision*, which grows by any step with each write to its key and is never given twice;
//! - [`Store::put_if`] writes only if the key is still at the revision that the writer saw, and of several such writers one wins;
//! - an error says that nothing is known: the write may have happened;
//! - [`Store::is_gone`] may be late, and must not be early while the holder can still believe that it holds.

pub mod dir;
pub mod memory;
pub mod nats;

use std::fmt;

/// Where a key stands. 0: it has no value yet.
pub type Revision = u64;

/// A value as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub revision: Revision,
    pub value: Vec<u8>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Stored(Revision),
    /// Someone else wrote first; nothing was changed.
    Lost,
}

/// Why the store has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// It cannot be asked now. A write may have happened.
    Unreachable(String),
    /// It takes no more.
    Full(String),
    /// It does not let this user do that.
    Denied(String),
    /// Something is wrong that waiting does not change.
    Broken(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreachable(why) => write!(f, "the queue cannot be reached: {why}"),
            Error::Full(why) => write!(f, "the queue is full: {why}"),
            Error::Denied(why) => write!(f, "the queue does not allow it: {why}"),
            Error::Broken(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

/// How far a reader has followed the changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The driver's own count.
    pub at: u64,
    /// The driver's own name for the line of changes: after a reconnect it is another one.
    pub of: u64,
}

/// What changed since a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// These keys, perhaps among others that did not, each with its value of now or one that is newer than the cursor.
    Of(Vec<(String, Entry)>),
    /// Nobody knows: list everything.
    Unknown,
}

/// Who has a record, as its reader sees it.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    pub worker: &'a str,
    pub key: &'a str,
    /// Of the record that names it.
    pub revision: Revision,
}

/// Says that a worker lives, for as long as this value does.
pub trait Hold: Send + fmt::Debug {}

pub trait Store: Send + Sync + fmt::Debug {
    fn get(&self, key: &str) -> Result<Option<Entry>, Error>;

    /// Writes a value if the key is still at `revision`; 0: if it has none.
    fn put_if(&self, key: &str, value: &[u8], revision: Revision) -> Result<Put, Error>;

    /// All keys that begin with `prefix`, with their values.
    fn list(&self, prefix: &str) -> Result<Vec<(String, Entry)>, Error>;

    /// What changed since the cursor, which moves on.
    fn changes(&self, cursor: &mut Cursor) -> Result<Changes, Error>;

    /// A key that is not written any more: its older values may go. A revision is never given twice all the same.
    fn let_go(&self, _key: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Adds a line to a log. Lines of several writers do not mix.
    fn append(&self, log: &str, line: &str) -> Result<(), Error>;

    /// The lines of a log, whole ones only, that came after those which a reader has: `from` is the driver's own count of them, 0 at first, and moves on.
    fn log_since(&self, log: &str, from: &mut u64) -> Result<Vec<String>, Error>;

    /// All lines of a log that are kept.
    fn read_log(&self, log: &str) -> Result<Vec<String>, Error> {
        self.log_since(log, &mut 0)
    }

    /// Takes the name of a worker; an error if a living one has it.
    fn hold(&self, worker: &str) -> Result<Box<dyn Hold>, Error>;

    /// Whether the worker that a record names is gone, so that another one may take the record.
    fn is_gone(&self, holder: Holder<'_>) -> Result<bool, Error>;
}

/// Whether a word can be part of a key: it is safe in file names, git refs and subjects of messages.
pub fn is_word(word: &str) -> bool {
    let fits = (1..=80).contains(&word.len());
    fits && !word.starts_with('-') && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether this is a key: words with dots between them.
pub fn is_key(key: &str) -> bool {
    key.split('.').all(is_word)
}
