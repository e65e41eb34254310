//! A NATS server as the store: for several machines. One bucket (a stream of keys) and one log for each fleet.
//!
//! A value's revision is its number in the stream, so it grows over all keys and a writer that slept is refused by the server itself. Acknowledgements, which
//! have no such fence, are not used. `link` asks the server, `watch` sees what changes, `name` keeps workers' names, `faults` says what went wrong.
//! The client needs an async runtime. It is the driver's own, and nothing outside of this folder knows of it.

mod faults;
mod link;
mod name;
mod settings;
mod watch;

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_nats::jetstream::consumer::DeliverPolicy;
use futures_util::StreamExt as _;
use ralph_engine::sys::random;

use self::{link::Link, name::Name};
use super::{Changes, Cursor, Entry, Error, Hold, Holder, Put, Revision, Store, is_key, is_word};

use self::settings::{ADVISED, numbers};
pub use self::settings::{Access, Settings};

#[derive(Debug)]
pub struct Nats {
    link: Link,
    runtime: Arc<Runtime>,
}

/// The runtime, which ends without waiting for what is under way.
#[derive(Debug)]
struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    fn new() -> Result<Self, Error> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let built = builder.worker_threads(2).thread_name("nats").enable_io().enable_time().build();
        built.map(|runtime| Runtime(Some(runtime))).map_err(|e| Error::Broken(format!("cannot start threads: {e}")))
    }

    fn block_on<T>(&self, question: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.0.as_ref().map_or_else(|| Err(Error::Broken("the queue is closed".to_owned())), |runtime| runtime.block_on(question))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(task);
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Nats {
    /// Connects, and makes the bucket and the log unless they exist.
    pub fn open(settings: Settings) -> Result<Self, Error> {
        if !is_word(&settings.fleet) {
            return Err(Error::Broken(format!("“{}” is no name of a fleet: use lower-case letters, digits and -", settings.fleet)));
        }
        let runtime = Arc::new(Runtime::new()?);
        let link = runtime.block_on(Link::open(settings))?;
        runtime.spawn(watch::follow(link.clone()));
        runtime.spawn(watch::probe(link.clone()));
        Ok(Nats { link, runtime })
    }

    /// What a person should know of this server. It works all the same.
    pub fn advice(&self) -> Option<String> {
        let version = self.link.server_version();
        let (major, minor, patch) = ADVISED;
        let is_old = numbers(&version).is_some_and(|found| found < ADVISED);
        is_old.then(|| format!("the NATS server is version {version}; {major}.{minor}.{patch} or newer is safer (docs/fleet-server.md)"))
    }

    /// Waits until all is seen that is written by now.
    async fn see_all(&self) -> Result<(), Error> {
        let last = self.link.last_revision().await?;
        self.link.watch.reach(last, self.link.settings.timeout).await
    }

    fn ask<T>(&self, question: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.runtime.block_on(question)
    }
}

impl Store for Nats {
    fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        checked(key)?;
        self.ask(self.link.patiently(|| self.link.get(key)))
    }

    fn put_if(&self, key: &str, value: &[u8], revision: Revision) -> Result<Put, Error> {
        checked(key)?;
        // Only until there is a connection: what was sent is not sent again.
        self.ask(async {
            self.link.connected(self.link.settings.patience).await?;
            self.link.put_if(key, value, revision).await
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, Entry)>, Error> {
        self.ask(self.see_all())?;
        Ok(self.link.watch.list(prefix))
    }

    fn changes(&self, cursor: &mut Cursor) -> Result<Changes, Error> {
        self.ask(self.see_all())?;
        Ok(self.link.watch.changes(cursor))
    }

    fn append(&self, log: &str, line: &str) -> Result<(), Error> {
        checked(log)?;
        let (line, id) = (line.replace('\n', " "), random::uuid());
        self.ask(self.link.patiently(|| self.link.append(log, &line, &id)))
    }

    fn log_since(&self, log: &str, from: &mut u64) -> Result<Vec<String>, Error> {
        checked(log)?;
        let (lines, next) = self.ask(self.link.patiently(|| log_since(&self.link, log, *from)))?;
        *from = next;
        Ok(lines)
    }

    fn hold(&self, worker: &str) -> Result<Box<dyn Hold>, Error> {
        if !is_word(worker) {
            return Err(Error::Broken(format!("“{worker}” is no name of a worker")));
        }
        let name = self.ask(async { Ok(Name::keep(&self.runtime, &self.link, worker, name::take(&self.link, worker).await?)) })?;
        Ok(Box::new(name))
    }

    fn is_gone(&self, holder: Holder<'_>) -> Result<bool, Error> {
        self.ask(name::is_gone(&self.link, holder.worker))
    }
}

/// The lines that are there now and are newer than a number of the stream's, and the number of the last one.
async fn log_since(link: &Link, log: &str, from: u64) -> Result<(Vec<String>, u64), Error> {
    let policy = if from == 0 { DeliverPolicy::All } else { DeliverPolicy::ByStartSequence { start_sequence: from + 1 } };
    let (mut messages, pending) = watch::deliver(link, &link.log, &link.settings.log_subject(log), policy).await?;
    let (mut lines, mut last) = (Vec::new(), from);
    while (lines.len() as u64) < pending {
        let next = tokio::time::timeout(link.settings.timeout, messages.next()).await;
        let Ok(Some(Ok(message))) = next else { return Err(Error::Unreachable(format!("the log {log} did not come whole"))) };
        last = message.info().map_or(last, |info| info.stream_sequence);
        lines.push(String::from_utf8_lossy(&message.payload).into_owned());
    }
    Ok((lines, last))
}

fn checked(key: &str) -> Result<(), Error> {
    if is_key(key) { Ok(()) } else { Err(Error::Broken(format!("“{key}” is no key"))) }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
