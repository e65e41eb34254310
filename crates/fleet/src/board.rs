//! What one process knows of the store: all jobs, kept up to date change by change, and the order in which they can be taken.

use std::collections::{BTreeMap, BTreeSet};

use ralph_core::text::time::Millis;

use crate::{
    job_rules::{Rank, rank},
    pull_requests,
    records::{self, JOB, Job, SPEC, Spec, State, WANT, WANT_ALL, Want, Wish, key},
    signing::Signers,
    store::{Changes, Cursor, Entry, Error, Holder, Revision, Store},
};

/// A job with all that is known of it.
#[derive(Debug, Clone, Default)]
pub struct Card {
    pub spec: Spec,
    pub want: Want,
    pub want_revision: Revision,
    pub job: Job,
    /// 0: it has no record yet, and waits.
    pub revision: Revision,
    /// Why it is left alone, by kind of record: one is of a newer version, broken, or not signed.
    seals: BTreeMap<&'static str, String>,
}

#[derive(Debug, Default)]
pub struct Board {
    cursor: Cursor,
    cards: BTreeMap<String, Card>,
    /// Wishes and states whose task is not known yet.
    loose: BTreeMap<String, Entry>,
    /// Jobs that can still change, in the order in which they are taken.
    open: BTreeSet<(Rank, String)>,
    ranks: BTreeMap<String, Rank>,
    pub want: Want,
    /// Whose tasks count.
    signers: Signers,
    /// How many records were read.
    taken: u64,
}

impl Board {
    /// One that leaves alone what none of these signed.
    pub fn of_signers(signers: Signers) -> Self {
        Board { signers, ..Board::default() }
    }

    /// Reads what changed.
    pub fn refresh(&mut self, store: &dyn Store) -> Result<(), Error> {
        let mut cursor = self.cursor.clone();
        let changed = match store.changes(&mut cursor)? {
            Changes::Of(changed) => changed,
            Changes::Unknown => store.list("")?,
        };
        for (key, entry) in changed {
            self.take(&key, entry);
        }
        // Only now: after an error the same changes are read again.
        self.cursor = cursor;
        Ok(())
    }

    /// Takes in one record.
    pub fn take(&mut self, key: &str, entry: Entry) {
        self.taken += 1;
        if key == WANT_ALL {
            self.want = self.signers.want(WANT_ALL, Some(&entry.value));
            return;
        }
        // An id becomes a part of paths and refs. Ralph makes no other ones.
        let is_id = |id: &str| (1..=100).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let known = |of: &str| [SPEC, WANT, JOB].into_iter().find(|kind| *kind == of);
        let Some((kind, id)) = key.split_once('.').filter(|(_, id)| is_id(id)).and_then(|(of, id)| Some((known(of)?, id))) else { return };
        if kind != SPEC && !self.cards.contains_key(id) {
            self.loose.insert(key.to_owned(), entry);
            return;
        }
        let id = id.to_owned();
        let card = self.cards.entry(id.clone()).or_default();
        card.put(kind, key, &entry, &self.signers);
        if kind == SPEC {
            card.seal("signature", self.signers.refuse(key, &entry.value).map(|why| format!("its task {why}")));
            for kind in [WANT, JOB] {
                let key = records::key(kind, &id);
                if let Some(entry) = self.loose.remove(&key) {
                    card.put(kind, &key, &entry, &self.signers);
                }
            }
        }
        let (rank, is_open) = (rank(&card.spec, &card.job), !card.job.is_over() && card.left_alone().is_none());
        if let Some(before) = self.ranks.insert(id.clone(), rank) {
            self.open.remove(&(before, id.clone()));
        }
        if is_open {
            self.open.insert((rank, id));
        }
    }

    /// How many records were read: as long as that is the same, nothing has changed.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The pools that jobs which are not over are for.
    pub fn pools(&self) -> impl Iterator<Item = &str> {
        let all: BTreeSet<&str> = self.open().filter_map(|(_, card)| card.spec.pool.as_deref()).collect();
        all.into_iter()
    }

    /// How many jobs can change no more, as far as this process can tell.
    pub fn count_over(&self) -> usize {
        self.cards.len() - self.open.len()
    }

    pub fn card(&self, id: &str) -> Option<&Card> {
        self.cards.get(id)
    }

    /// All jobs, by id.
    pub fn cards(&self) -> impl Iterator<Item = (&str, &Card)> {
        self.cards.iter().map(|(id, card)| (id.as_str(), card))
    }

    /// The jobs that can still change, in the order in which they are taken.
    pub fn open(&self) -> impl Iterator<Item = (&str, &Card)> {
        self.open.iter().filter_map(|(_, id)| Some((id.as_str(), self.cards.get(id)?)))
    }

    /// The jobs that must land before this one can begin, and have not.
    pub fn waits_for<'c>(&self, card: &'c Card) -> impl Iterator<Item = &'c str> {
        let has_landed = |id: &str| self.cards.get(id).is_some_and(|card| card.job.state == State::Landed);
        card.spec.depends_on.iter().map(String::as_str).filter(move |id| !has_landed(id))
    }

    /// The jobs that a worker may take now, the first one first. A claim decides.
    pub fn to_run<'b>(&'b self, store: &'b dyn Store, pools: &'b [String], now: Millis) -> impl Iterator<Item = (&'b str, &'b Card)> {
        let paused = self.want.wish != Wish::Run;
        self.open().filter(move |(id, card)| {
            let fits = card.spec.pool.as_ref().is_none_or(|pool| pools.contains(pool));
            !paused && fits && card.job.can_run(&card.want, now, || is_gone(store, id, card)) && self.waits_for(card).next().is_none()
        })
    }

    /// The job that is landed next.
    pub fn to_land<'b>(&'b self, store: &'b dyn Store, needs_review: bool) -> Option<(&'b str, &'b Card)> {
        let paused = self.want.wish != Wish::Run;
        let can = |(id, card): &(&str, &Card)| {
            !paused && card.pull_request().is_none() && card.job.can_land(&card.want, needs_review, || is_gone(store, id, card))
        };
        // Within a rank, what was proven first.
        self.open().filter(can).min_by_key(|(_, card)| {
            let (came_back, optional, priority, number) = rank(&card.spec, &card.job);
            (came_back, optional, priority, card.job.changed_at, number)
        })
    }
}

impl Card {
    /// Where its pull request is, if one has its work.
    pub fn pull_request(&self) -> Option<String> {
        pull_requests::of(&self.job).filter(|_| self.job.state == State::Proven).map(|opened| opened.url)
    }

    /// Why this process leaves it alone.
    pub fn left_alone(&self) -> Option<&str> {
        self.seals.values().next().map(String::as_str)
    }

    fn seal(&mut self, kind: &'static str, why: Option<String>) {
        match why {
            Some(why) => drop(self.seals.insert(kind, why)),
            None => drop(self.seals.remove(kind)),
        }
    }

    fn put(&mut self, kind: &'static str, key: &str, entry: &Entry, signers: &Signers) {
        let sealed = match kind {
            SPEC => adopt(kind, entry, &mut self.spec),
            WANT => {
                self.want_revision = entry.revision;
                let sealed = adopt(kind, entry, &mut self.want);
                let said = if sealed.is_some() { Want::unknown() } else { std::mem::take(&mut self.want) };
                self.want = signers.counted(key, &entry.value, said);
                sealed
            }
            // What was read earlier may come later.
            _ if entry.revision < self.revision => return,
            _ => {
                self.revision = entry.revision;
                adopt(kind, entry, &mut self.job).or_else(|| self.job.misnames().map(|what| format!("its {kind} record {what}")))
            }
        };
        self.seal(kind, sealed);
    }
}

/// Takes a record's contents; the result says why it cannot be.
fn adopt<T: serde::de::DeserializeOwned>(kind: &str, entry: &Entry, to: &mut T) -> Option<String> {
    records::read(&entry.value).or_why(&format!("its {kind} record")).map(|record| *to = record).err()
}

/// Whether the holder of a job is gone. Not to know is no.
fn is_gone(store: &dyn Store, id: &str, card: &Card) -> bool {
    let Some(worker) = &card.job.worker else { return true };
    store.is_gone(Holder { worker, key: &key(JOB, id), revision: card.revision }).unwrap_or(false)
}
