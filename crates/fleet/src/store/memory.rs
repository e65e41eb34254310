//! A store in memory, for schedules in virtual time: it can be made to lose answers, and to be out of reach.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use super::{Changes, Cursor, Entry, Error, Hold, Holder, Put, Revision, Store, is_key};

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Nothing happens, and there is no answer.
    Unreachable,
    /// It happens, and there is no answer.
    AnswerLost,
}

/// Says what goes wrong with the next call.
pub type Faults = Box<dyn FnMut() -> Fault + Send>;

#[derive(Default)]
struct Kept {
    values: BTreeMap<String, Vec<Vec<u8>>>,
    changes: Vec<String>,
    logs: BTreeMap<String, Vec<String>>,
    alive: BTreeSet<String>,
    /// Workers that are taken for gone although they live: their lease ran out.
    expired: BTreeSet<String>,
}

#[derive(Default)]
pub struct Memory {
    kept: Arc<Mutex<Kept>>,
    faults: Mutex<Option<Faults>>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

struct Name {
    kept: Arc<Mutex<Kept>>,
    worker: String,
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.worker)
    }
}

impl Hold for Name {}

impl Drop for Name {
    fn drop(&mut self) {
        locked(&self.kept).alive.remove(&self.worker);
    }
}

impl Memory {
    pub fn with(faults: Faults) -> Self {
        Memory { faults: Mutex::new(Some(faults)), ..Memory::default() }
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        *locked(&self.faults) = None;
    }

    /// The worker's lease has run out, though it may come back.
    pub fn expire(&self, worker: &str) {
        locked(&self.kept).expired.insert(worker.to_owned());
    }

    /// Every value that the key ever had, the oldest first.
    pub fn history(&self, key: &str) -> Vec<Vec<u8>> {
        locked(&self.kept).values.get(key).cloned().unwrap_or_default()
    }

    fn answer<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> Result<T, Error> {
        let fault = locked(&self.faults).as_mut().map_or(Fault::None, |faults| faults());
        if fault == Fault::Unreachable {
            return Err(Error::Unreachable("no answer".to_owned()));
        }
        let result = act(&mut locked(&self.kept));
        if fault == Fault::AnswerLost { Err(Error::Unreachable("the answer was lost".to_owned())) } else { Ok(result) }
    }
}

impl Store for Memory {
    fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        self.answer(|kept| entry(kept.values.get(key)?))
    }

    fn put_if(&self, key: &str, value: &[u8], revision: Revision) -> Result<Put, Error> {
        if !is_key(key) {
            return Err(Error::Broken(format!("“{key}” is no key")));
        }
        self.answer(|kept| {
            let values = kept.values.entry(key.to_owned()).or_default();
            if values.len() as Revision != revision {
                return Put::Lost;
            }
            values.push(value.to_vec());
            kept.changes.push(key.to_owned());
            Put::Stored(revision + 1)
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, Entry)>, Error> {
        self.answer(|kept| {
            let of_prefix = kept.values.iter().filter(|(key, _)| key.starts_with(prefix));
            of_prefix.filter_map(|(key, values)| Some((key.clone(), entry(values)?))).collect()
        })
    }

    fn changes(&self, cursor: &mut Cursor) -> Result<Changes, Error> {
        self.answer(|kept| {
            let from = usize::try_from(cursor.at).unwrap_or(usize::MAX).min(kept.changes.len());
            let first = cursor.of == 0;
            *cursor = Cursor { at: kept.changes.len() as u64, of: 1 };
            let keys: BTreeSet<&String> = kept.changes[from..].iter().collect();
            let changed = || keys.into_iter().filter_map(|key| Some((key.clone(), entry(kept.values.get(key)?)?))).collect();
            if first { Changes::Unknown } else { Changes::Of(changed()) }
        })
    }

    fn append(&self, log: &str, line: &str) -> Result<(), Error> {
        self.answer(|kept| kept.logs.entry(log.to_owned()).or_default().push(line.to_owned()))
    }

    fn log_since(&self, log: &str, from: &mut u64) -> Result<Vec<String>, Error> {
        self.answer(|kept| {
            let lines = kept.logs.get(log).map_or(&[][..], Vec::as_slice);
            let new = lines.iter().skip(usize::try_from(*from).unwrap_or(usize::MAX)).cloned().collect();
            *from = lines.len() as u64;
            new
        })
    }

    fn hold(&self, worker: &str) -> Result<Box<dyn Hold>, Error> {
        let mut kept = locked(&self.kept);
        if !kept.alive.insert(worker.to_owned()) {
            return Err(Error::Denied(format!("another worker has the name {worker}")));
        }
        kept.expired.remove(worker);
        Ok(Box::new(Name { kept: Arc::clone(&self.kept), worker: worker.to_owned() }))
    }

    fn is_gone(&self, holder: Holder<'_>) -> Result<bool, Error> {
        self.answer(|kept| !kept.alive.contains(holder.worker) || kept.expired.contains(holder.worker))
    }
}

fn entry(values: &[Vec<u8>]) -> Option<Entry> {
    Some(Entry { revision: values.len() as Revision, value: values.last()?.clone() })
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
