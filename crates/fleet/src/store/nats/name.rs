//! The name of a worker: a key of its own in the bucket, written again and again for as long as the worker lives. One write serves all its jobs.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ralph_engine::sys::random;
use serde::{Deserialize, Serialize};
use tokio::{task::JoinHandle, time};

use super::{Entry, Error, Hold, Put, Revision, Runtime, link::Link, locked};

/// What is written. The name is no word of ours, so no reader is told of it as a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Beat {
    version: u32,
    /// Whose it is: a name may be taken again by another.
    nonce: String,
    /// Grows, so that each write is another one.
    count: u64,
    /// Given up by the worker itself.
    #[serde(default)]
    gone: bool,
}

/// A name that is held.
#[derive(Debug)]
pub(super) struct Name {
    runtime: Arc<Runtime>,
    link: Link,
    key: String,
    now: Arc<Mutex<(Beat, Revision)>>,
    renewal: JoinHandle<()>,
}

impl Hold for Name {}

impl Drop for Name {
    fn drop(&mut self) {
        self.renewal.abort();
        // If it cannot be said, others find out after a lease.
        let _ = self.runtime.block_on(give_up(&self.link, &self.key, &self.now));
    }
}

pub(super) fn key(worker: &str) -> String {
    format!("_worker.{worker}")
}

/// Whether a value says that its worker is there, as far as it knows itself.
fn is_held(entry: &Entry) -> bool {
    serde_json::from_slice::<Beat>(&entry.value).is_ok_and(|beat| !beat.gone)
}

/// How often a name is written.
fn interval(lease: Duration) -> Duration {
    lease / 4
}

/// Takes a name that is free, or whose holder has stood still for a lease while we looked.
pub(super) async fn take(link: &Link, worker: &str) -> Result<(Beat, Revision), Error> {
    let (key, lease) = (key(worker), link.settings.lease);
    let until = Instant::now() + lease * 2;
    let beat = Beat { version: 1, nonce: random::uuid(), count: 1, gone: false };
    let value = bytes(&beat)?;
    let mut first = None;
    loop {
        let entry = link.get(&key).await?;
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        let held = entry.as_ref().is_some_and(is_held) && link.watch.stood_still(&key) != Some(revision);
        if held {
            if *first.get_or_insert(revision) != revision || Instant::now() > until {
                return Err(Error::Denied(format!("another worker has the name {worker}")));
            }
            time::sleep((lease / 20).min(Duration::from_millis(500))).await;
            continue;
        }
        match written(link, &key, &value, revision).await? {
            Put::Stored(revision) => return Ok((beat, revision)),
            Put::Lost => first = None,
        }
    }
}

impl Name {
    /// Keeps a name that was just taken. Called on the runtime.
    pub(super) fn keep(runtime: &Arc<Runtime>, link: &Link, worker: &str, taken: (Beat, Revision)) -> Self {
        let (key, now) = (key(worker), Arc::new(Mutex::new(taken)));
        let renewal = tokio::spawn(renew(link.clone(), key.clone(), Arc::clone(&now)));
        Name { runtime: Arc::clone(runtime), link: link.clone(), key, now, renewal }
    }
}

/// Writes the name until it is another's.
async fn renew(link: Link, key: String, now: Arc<Mutex<(Beat, Revision)>>) {
    let pause = interval(link.settings.lease);
    time::sleep(pause).await;
    loop {
        match beat(&link, &key, &now, false).await {
            Ok(true) => time::sleep(pause).await,
            Ok(false) => return,
            // Sooner than usual: the others count.
            Err(_) => time::sleep(pause / 4).await,
        }
    }
}

async fn give_up(link: &Link, key: &str, now: &Mutex<(Beat, Revision)>) -> Result<(), Error> {
    // The renewal may have been stopped between its write and its answer: then the second try knows better.
    for _ in 0..3 {
        match beat(link, key, now, true).await {
            Err(Error::Unreachable(_)) => {}
            answer => return answer.map(|_| ()),
        }
    }
    Ok(())
}

/// Writes the next beat; `false`: the name is another's.
async fn beat(link: &Link, key: &str, now: &Mutex<(Beat, Revision)>, gone: bool) -> Result<bool, Error> {
    for _ in 0..3 {
        let (last, revision) = locked(now).clone();
        let next = Beat { count: last.count + 1, gone, ..last };
        if let Put::Stored(revision) = written(link, key, &bytes(&next)?, revision).await? {
            *locked(now) = (next, revision);
            return Ok(true);
        }
        let entry = link.get(key).await?;
        let found = entry.and_then(|entry| Some((serde_json::from_slice::<Beat>(&entry.value).ok()?, entry.revision)));
        match found {
            // Ours: its answer was lost.
            Some((beat, revision)) if beat.nonce == next.nonce => *locked(now) = (beat, revision),
            _ => return Ok(false),
        }
    }
    Err(Error::Unreachable("the name of this worker is written by someone else, too".to_owned()))
}

/// Writes, and reads back what has no answer.
async fn written(link: &Link, key: &str, value: &[u8], revision: Revision) -> Result<Put, Error> {
    match link.put_if(key, value, revision).await {
        Err(Error::Unreachable(why)) => match link.get(key).await? {
            Some(entry) if entry.value == value => Ok(Put::Stored(entry.revision)),
            Some(entry) if entry.revision > revision => Ok(Put::Lost),
            _ => Err(Error::Unreachable(why)),
        },
        answer => answer,
    }
}

/// Whether the worker of this name is gone: it said so, it was never there, or it has stood still for a lease. What was seen is asked again: it may be old.
pub(super) async fn is_gone(link: &Link, worker: &str) -> Result<bool, Error> {
    let key = key(worker);
    if link.watch.known(&key).is_some_and(|entry| is_held(&entry)) && link.watch.stood_still(&key).is_none() {
        return Ok(false);
    }
    let Some(entry) = link.get(&key).await? else { return Ok(true) };
    Ok(!is_held(&entry) || link.watch.stood_still(&key) == Some(entry.revision))
}

fn bytes(beat: &Beat) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(beat).map_err(|e| Error::Broken(e.to_string()))
}
