//! The one way to write a record: read, compute, compare-and-set. An answer that was lost is found by reading back: each write has a nonce of its own.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    job_rules::Claim,
    records::{self, Found, JOB, Job, key},
    store::{Error, Put, Revision, Store},
};

/// What became of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed<T> {
    /// It is written, at this revision.
    Done(T, Revision),
    /// The record says no: it is another's by now, or it is of a newer version.
    Refused(String),
}

/// How often a change is computed anew because another writer was first.
const MOST_RACES: usize = 1000;

/// How often a write is tried that has no answer.
const MOST_TRIES: usize = 3;

/// Writes a value, and finds out what became of it.
pub fn put(store: &dyn Store, key: &str, value: &[u8], revision: Revision) -> Result<Put, Error> {
    let mut no_answer = None;
    for _ in 0..MOST_TRIES {
        match store.put_if(key, value, revision) {
            Err(Error::Unreachable(why)) => no_answer = Some(why),
            // A try before this one may have come late.
            Ok(Put::Lost) if no_answer.is_some() => {}
            answer => return answer,
        }
        match store.get(key)? {
            // Ours, or a later one. A later one says nothing of ours, but then ours no longer counts either way.
            Some(entry) if entry.value == value => return Ok(Put::Stored(entry.revision)),
            Some(entry) if entry.revision > revision => return Ok(Put::Lost),
            None if revision > 0 => return Err(Error::Broken(format!("{key} is gone"))),
            _ => {}
        }
    }
    Err(Error::Unreachable(no_answer.unwrap_or_default()))
}

/// Changes a record that many write, until it is written or `change` says no.
pub fn shared<T>(store: &dyn Store, key: &str, mut change: impl FnMut(T) -> Option<T>) -> Result<Changed<T>, Error>
where
    T: Default + Serialize + DeserializeOwned,
{
    for _ in 0..MOST_RACES {
        let entry = store.get(key)?;
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        let found = entry.map_or_else(|| Found::Known(T::default()), |entry| records::read(&entry.value));
        let is_newer = matches!(found, Found::Newer(_));
        let before = match found.or_why(key) {
            Ok(record) => record,
            Err(why) if is_newer => return Ok(Changed::Refused(why)),
            Err(why) => return Err(Error::Broken(why)),
        };
        let Some(after) = change(before) else { return Ok(Changed::Refused("there is nothing to change".to_owned())) };
        if let Put::Stored(revision) = put(store, key, &bytes(&after)?, revision)? {
            return Ok(Changed::Done(after, revision));
        }
    }
    Err(Error::Unreachable(format!("{key} is written by too many at once")))
}

/// Writes a job's record over the revision that the writer saw.
pub fn job(store: &dyn Store, id: &str, mut job: Job, revision: Revision, nonce: String) -> Result<Changed<Job>, Error> {
    job.nonce = nonce;
    match put(store, &key(JOB, id), &bytes(&job)?, revision)? {
        Put::Stored(revision) => Ok(Changed::Done(job, revision)),
        // Perhaps an earlier try of ours, whose answer was lost: no other write has this nonce.
        Put::Lost => Ok(match store.get(&key(JOB, id))?.map(|entry| (records::read::<Job>(&entry.value), entry.revision)) {
            Some((Found::Known(found), revision)) if found == job => Changed::Done(job, revision),
            _ => Changed::Refused("another worker has it".to_owned()),
        }),
    }
}

/// Whether a claim still counts, as the store says now.
pub fn is_mine(store: &dyn Store, id: &str, claim: &Claim) -> Result<bool, Error> {
    let Some(entry) = store.get(&key(JOB, id))? else { return Ok(false) };
    Ok(matches!(records::read::<Job>(&entry.value), Found::Known(job) if job.is_of(claim)))
}

fn bytes(record: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(record).map_err(|e| Error::Broken(e.to_string()))
}
