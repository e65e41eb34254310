//! What this process sees of the bucket: all keys with their values, followed change by change, and for how long each has stood still.
//!
//! Time counts only while the server answers. A holder that did not write while no one could write is not gone, so every interruption, and a server that is full, starts a new *era*, and
//! a value stands still from its last change or from the beginning of the era, whichever is later.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use async_nats::jetstream::{
    consumer::{AckPolicy, DeliverPolicy, push},
    stream::{ConsumerErrorKind, Stream},
};
use futures_util::StreamExt as _;
use tokio::{sync::Notify, time};

use super::{Changes, Cursor, Entry, Error, Revision, faults, is_key, link::Link, locked};

#[derive(Debug)]
pub(super) struct Watch {
    lease: Duration,
    seen: Mutex<Seen>,
    /// Something was seen.
    moved: Notify,
    /// The line of changes is to be opened anew.
    again: Notify,
}

#[derive(Debug)]
struct Seen {
    /// Which line of changes this is, the first one 1.
    line: u64,
    /// Whether all that was there when the line was opened has come.
    is_whole: bool,
    /// The newest revision that came, of any key.
    at: Revision,
    keys: BTreeMap<String, Known>,
    by_revision: BTreeMap<Revision, String>,
    /// As it was on the line before.
    before: Option<(Revision, BTreeMap<String, Known>)>,
    /// The server has an older state than it had.
    went_back: bool,
    /// Why nothing comes.
    trouble: Option<Error>,
    era: Instant,
    answered: Instant,
}

#[derive(Debug, Clone)]
struct Known {
    entry: Entry,
    since: Instant,
}

impl Known {
    /// As a reader is told of it. What is no key is the driver's own, and what has no value was deleted by hand.
    fn told(&self, key: &str) -> Option<(String, Entry)> {
        (is_key(key) && !self.entry.value.is_empty()).then(|| (key.to_owned(), self.entry.clone()))
    }
}

impl Watch {
    pub(super) fn new(lease: Duration) -> Self {
        let now = Instant::now();
        let seen = Seen {
            line: 0,
            is_whole: false,
            at: 0,
            keys: BTreeMap::new(),
            by_revision: BTreeMap::new(),
            before: None,
            went_back: false,
            trouble: None,
            era: now,
            answered: now,
        };
        Watch { lease, seen: Mutex::new(seen), moved: Notify::new(), again: Notify::new() }
    }

    /// The server answered. If it had not for long, this is a new era: holders could not write either.
    pub(super) fn answered(&self) {
        let (mut seen, now) = (locked(&self.seen), Instant::now());
        if now.duration_since(seen.answered) > self.lease / 2 {
            seen.era = now;
        }
        seen.answered = now;
    }

    pub(super) fn silent_for(&self) -> Duration {
        locked(&self.seen).answered.elapsed()
    }

    /// The connection was lost.
    pub(super) fn interrupted(&self) {
        locked(&self.seen).era = Instant::now();
        self.again.notify_one();
    }

    /// The server takes nothing: holders cannot write either, so none of them is gone for its silence.
    pub(super) fn full(&self) {
        locked(&self.seen).era = Instant::now();
    }

    /// Whether the server still has all that it had.
    pub(super) fn trusted(&self) -> Result<(), Error> {
        if !locked(&self.seen).went_back {
            return Ok(());
        }
        let hint = "Restart this worker; `sync_interval: always` in the file of the server prevents it";
        Err(Error::Broken(format!("the NATS server went back to an older state, after a power cut or from a copy. {hint}")))
    }

    /// The revision at which a key has stood still for a lease.
    pub(super) fn stood_still(&self, key: &str) -> Option<Revision> {
        let seen = locked(&self.seen);
        let known = seen.keys.get(key)?;
        (known.since.max(seen.era).elapsed() >= self.lease).then_some(known.entry.revision)
    }

    pub(super) fn known(&self, key: &str) -> Option<Entry> {
        locked(&self.seen).keys.get(key).map(|known| known.entry.clone())
    }

    pub(super) fn list(&self, prefix: &str) -> Vec<(String, Entry)> {
        let seen = locked(&self.seen);
        let of_prefix = seen.keys.range(prefix.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        of_prefix.filter_map(|(key, known)| known.told(key)).collect()
    }

    pub(super) fn changes(&self, cursor: &mut Cursor) -> Changes {
        let seen = locked(&self.seen);
        let from = cursor.at + 1;
        let follows = cursor.of == seen.line;
        *cursor = Cursor { at: seen.at, of: seen.line };
        if !follows {
            return Changes::Unknown;
        }
        Changes::Of(seen.by_revision.range(from..).filter_map(|(_, key)| seen.keys.get(key)?.told(key)).collect())
    }

    /// Waits until all up to a revision has been seen, for as long as something comes. If nothing does, the line is opened anew.
    pub(super) async fn reach(&self, revision: Revision, patience: Duration) -> Result<(), Error> {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // From here on it counts: what moves before the wait begins is not missed.
            moved.as_mut().enable();
            if self.has(revision) {
                return Ok(());
            }
            if time::timeout(patience, moved).await.is_err() {
                self.again.notify_one();
                let trouble = locked(&self.seen).trouble.clone();
                return Err(trouble.unwrap_or_else(|| Error::Unreachable("the NATS server does not tell what changed".to_owned())));
            }
        }
    }

    fn has(&self, revision: Revision) -> bool {
        let seen = locked(&self.seen);
        seen.is_whole && seen.at >= revision
    }

    fn open_line(&self) {
        let mut seen = locked(&self.seen);
        if seen.is_whole {
            let at = seen.at;
            seen.before = Some((at, std::mem::take(&mut seen.keys)));
        }
        seen.line += 1;
        (seen.is_whole, seen.at) = (false, 0);
        seen.keys.clear();
        seen.by_revision.clear();
        seen.era = Instant::now();
    }

    fn take(&self, key: &str, entry: Entry) {
        let mut seen = locked(&self.seen);
        let revision = entry.revision;
        seen.at = seen.at.max(revision);
        if let Some(old) = seen.keys.insert(key.to_owned(), Known { entry, since: Instant::now() }) {
            seen.by_revision.remove(&old.entry.revision);
        }
        seen.by_revision.insert(revision, key.to_owned());
        drop(seen);
        self.moved.notify_waiters();
    }

    /// All that was there has come. A number that was given to something else, or is missing, shows that the server went back.
    fn whole(&self) {
        let mut seen = locked(&self.seen);
        (seen.is_whole, seen.trouble) = (true, None);
        if let Some((at, before)) = seen.before.take() {
            let is_other =
                |(key, now): (&String, &Known)| now.entry.revision <= at && before.get(key).is_none_or(|then| then.entry != now.entry);
            let went_back = seen.at < at || seen.keys.iter().any(is_other);
            seen.went_back |= went_back;
        }
        drop(seen);
        self.moved.notify_waiters();
    }
}

/// Follows the bucket for as long as the driver lives.
pub(super) async fn follow(link: Link) {
    loop {
        while !link.is_connected() {
            time::sleep(Duration::from_millis(10)).await;
        }
        if let Err(error) = follow_once(&link).await {
            locked(&link.watch.seen).trouble = Some(error);
            time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Follows the bucket until the line breaks, or is found to be blind.
async fn follow_once(link: &Link) -> Result<(), Error> {
    let watch = &link.watch;
    watch.open_line();
    let (mut messages, pending) = deliver(link, &link.bucket, &link.settings.subject(">"), DeliverPolicy::LastPerSubject).await?;
    if pending == 0 {
        watch.whole();
    }
    let skip = link.settings.subject("").len();
    let mut came = 0;
    loop {
        let message = tokio::select! {
            () = watch.again.notified() => return Ok(()),
            message = messages.next() => message,
        };
        let Some(Ok(message)) = message else { return Err(Error::Unreachable("the line of changes broke".to_owned())) };
        let Ok(info) = message.info() else { continue };
        came += 1;
        if info.consumer_sequence != came {
            return Err(Error::Unreachable("a change was lost on the way".to_owned()));
        }
        if let Some(key) = message.subject.get(skip..) {
            watch.take(key, Entry { revision: info.stream_sequence, value: message.payload.to_vec() });
        }
        if came == pending {
            watch.whole();
        }
    }
}

/// Opens a line on which the server sends messages of a stream. The number says how many there are now.
pub(super) async fn deliver(link: &Link, stream: &Stream<()>, filter: &str, policy: DeliverPolicy) -> Result<(push::Messages, u64), Error> {
    let config = push::Config {
        deliver_subject: link.new_inbox(),
        deliver_policy: policy,
        ack_policy: AckPolicy::None,
        filter_subject: filter.to_owned(),
        flow_control: true,
        idle_heartbeat: Duration::from_secs(5),
        inactive_threshold: Duration::from_secs(30),
        memory_storage: true,
        num_replicas: 1,
        max_deliver: 1,
        ..push::Config::default()
    };
    link.ask("$JS.API.CONSUMER.CREATE.", async {
        let consumer = stream.create_consumer(config).await.map_err(|e| match e.kind() {
            ConsumerErrorKind::JetStream(error) => faults::of_server(&error),
            _ => faults::of_chain(&e),
        })?;
        let messages = consumer.messages().await.map_err(|e| faults::of_chain(&e))?;
        Ok((messages, consumer.cached_info().num_pending))
    })
    .await
}

/// Asks the server at short intervals, so that its silence is noticed, and that a line is found on which nothing comes any more.
pub(super) async fn probe(link: Link) {
    let mut ticks = time::interval((link.settings.lease / 10).min(Duration::from_secs(5)));
    ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match link.last_revision().await {
            // The line is opened anew if it does not come.
            Ok(last) => drop(link.watch.reach(last, link.settings.timeout).await),
            Err(_) if link.is_connected() && link.watch.silent_for() > link.settings.lease / 2 => {
                link.watch.interrupted();
                link.reconnect().await;
            }
            Err(_) => {}
        }
    }
}
