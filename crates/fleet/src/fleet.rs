//! One process's hold on a fleet: its store, its repository, and the writes that workers and the lander share.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use ralph_core::text::time::Millis;
use ralph_engine::sys::{clock, random, secrets, signals::Told};
use serde_json::json;

use crate::{
    bell::Bell,
    board::{Board, Card},
    change::{self, Changed},
    hub::Hub,
    job_rules::{Claim, MOST_RETURNS, Money, Outcome},
    problem::{Problem, Result},
    records::{self, Job, LEDGER, Ledger, State, VERSION, WANT, WANT_ALL, Want, Wish, key},
    settings::{Land, Place, Settings},
    signing::Signers,
    store::{Revision, Store},
};

/// The log of everything that happened, one JSON object a line.
pub const LOG: &str = "events";

/// How long other jobs wait for one that came back for the last time, in milliseconds.
const LAST_TRY: Millis = 30 * 60_000;

/// How long a store that cannot be asked is left alone.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Fleet {
    pub place: Place,
    pub settings: Settings,
    pub store: Arc<dyn Store>,
    pub(crate) hub: Hub,
    /// No more claims: what runs finishes its iteration and is given back.
    pub drains: AtomicBool,
    /// Less money is left than a session needs.
    pub is_broke: AtomicBool,
    /// It is known what became of pull requests that were open before.
    pub has_asked: AtomicBool,
    /// Whose tasks are run.
    pub signers: Signers,
    /// Rings at everything that this process writes.
    pub(crate) bell: Bell,
    /// The signals of this process, once it works.
    pub told: OnceLock<Told>,
}

/// A job in the hands of one worker.
#[derive(Debug, Clone)]
pub struct Held {
    pub id: String,
    pub claim: Claim,
    pub job: Job,
    pub revision: Revision,
}

impl Fleet {
    pub fn open(place: Place, settings: Settings, store: Arc<dyn Store>, signers: Signers) -> Result<Self> {
        let hub = Hub::open(&place, &settings)?;
        let has_asked = AtomicBool::new(settings.land != Land::Pr);
        Ok(Fleet {
            place,
            settings,
            store,
            hub,
            drains: AtomicBool::new(false),
            is_broke: AtomicBool::new(false),
            has_asked,
            signers,
            bell: Bell::default(),
            told: OnceLock::new(),
        })
    }

    /// A view of its jobs, of which nothing is known yet.
    pub fn board(&self) -> Board {
        Board::of_signers(self.signers.clone())
    }

    /// Whether no more work is begun.
    pub fn drains(&self) -> bool {
        self.drains.load(Ordering::Relaxed) || self.asked() > 0
    }

    /// Whether the agents are ended in the middle of their iterations: this process was asked to end for a second time.
    pub fn ends_now(&self) -> bool {
        self.asked() > 1
    }

    /// Whether a person pressed Ctrl-C.
    pub fn is_interrupted(&self) -> bool {
        self.told.get().is_some_and(|told| told.interrupts() > 0)
    }

    fn asked(&self) -> usize {
        self.told.get().map_or(0, Told::requests)
    }

    /// Whether another job that came back for the last time is on its way: what lands before it may be its next conflict. It is not waited for for ever.
    pub fn is_last_try_under_way(&self, board: &Board, but: &str, now: Millis) -> bool {
        let lands_by_itself = self.settings.land == Land::Branch && !self.settings.review;
        board.open().filter(|(id, card)| *id != but && card.job.returns >= MOST_RETURNS).any(|(_, card)| {
            let is_under_way = match card.job.state {
                State::Runs | State::Lands => true,
                State::Proven => lands_by_itself && card.want.wish == Wish::Run,
                _ => false,
            };
            is_under_way && now - card.job.changed_at < LAST_TRY
        })
    }

    /// Takes a job. `None`: another one was faster, or it has been taken too often.
    pub fn claim(&self, worker: &str, id: &str, card: &Card) -> Result<Option<Held>> {
        let before = if card.revision == 0 { Job::new(clock::now()) } else { card.job.clone() };
        let (job, claim) = before.claimed(worker, clock::now());
        match change::job(&*self.store, id, job, card.revision, random::uuid())? {
            Changed::Done(job, revision) if job.is_of(&claim) => {
                self.settle_older(id, claim.token)?;
                self.note(id, &job, if job.state == State::Lands { "landing" } else { "began" }, "");
                Ok(Some(Held { id: id.to_owned(), claim, job, revision }))
            }
            Changed::Done(job, _) => {
                self.note(id, &job, "needs-person", &job.why);
                Ok(None)
            }
            Changed::Refused(_) => Ok(None),
        }
    }

    /// Writes a held job's next state. `false`: it is another's by now, and nothing of ours counts any more.
    pub fn write(&self, held: &mut Held, job: &Job) -> Result<bool> {
        // One nonce for all tries: a write whose answer was lost is known again.
        let nonce = random::uuid();
        let write = || Ok(change::job(&*self.store, &held.id, job.clone(), held.revision, nonce.clone())?);
        match self.patiently(write)? {
            Changed::Done(job, revision) => {
                (held.job, held.revision) = (job, revision);
                Ok(true)
            }
            Changed::Refused(_) => Ok(false),
        }
    }

    /// Ends a claim.
    pub fn end(&self, held: &mut Held, outcome: Outcome) -> Result<bool> {
        let word = match &outcome {
            Outcome::Proven => "proven",
            Outcome::Parked { .. } => "parked",
            Outcome::GivenBack { .. } => "given-back",
            Outcome::Failed { .. } => "failed",
            Outcome::NeedsPerson { .. } => "needs-person",
            Outcome::Cancelled => "cancelled",
            Outcome::Landed { .. } => "landed",
            Outcome::Opened { .. } => "pull-request",
            Outcome::SentBack { .. } => "sent-back",
        };
        let mut job = held.job.ended(outcome, clock::now());
        // What gates and agents said is in it.
        job.why = secrets::mask(&job.why);
        job.back = job.back.as_deref().map(secrets::mask);
        let why = job.why.clone();
        let written = self.write(held, &job)?;
        self.note(&held.id, &held.job, if written { word } else { "lost" }, &why);
        Ok(written)
    }

    /// Asks the store again while it cannot be asked: a session may be over, and what it brought must not be lost.
    fn patiently<T>(&self, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            match ask() {
                Err(problem) if problem.is_passing() && !self.ends_now() => thread::sleep(PATIENCE),
                answer => return answer,
            }
        }
    }

    /// Gives back what the board says is this worker's although it has nothing: the answer to a write was lost, and nobody else would take it.
    pub fn give_back_forgotten(&self, worker: &str, board: &Board) -> Result<()> {
        let is_its = |job: &Job| job.is_held() && job.worker.as_deref() == Some(worker);
        for (id, card) in board.open().filter(|(_, card)| is_its(&card.job)) {
            let claim = Claim { worker: worker.to_owned(), token: card.job.token };
            let mut held = Held { id: id.to_owned(), claim, job: card.job.clone(), revision: card.revision };
            self.end(&mut held, Outcome::GivenBack { why: "its worker lost sight of the queue".to_owned() })?;
        }
        Ok(())
    }

    /// Writes a job that nobody has, after a person's wish.
    pub fn wished(&self, id: &str, card: &Card, now: Millis) -> Result<()> {
        if let Some(job) = card.job.wished(&card.want, now) {
            let base = if card.revision == 0 { Job { version: VERSION, ..job } } else { job };
            if let Changed::Done(job, _) = change::job(&*self.store, id, base, card.revision, random::uuid())? {
                self.note(id, &job, "wished", &job.why);
            }
        }
        Ok(())
    }

    /// Writes that a job that nobody has is on the target.
    pub fn found_on_target(&self, id: &str, card: &Card, commit: &str) -> Result<()> {
        if let Some(job) = card.job.found_on_target(commit, clock::now())
            && let Changed::Done(job, _) = change::job(&*self.store, id, job, card.revision, random::uuid())?
        {
            self.note(id, &job, "landed", "");
        }
        Ok(())
    }

    /// Sets money aside for a session. `None`: too little is left.
    pub fn reserve(&self, held: &Held, wanted: u64, least: u64) -> Result<Option<u64>> {
        let mut granted = None;
        let token = held.claim.token;
        self.patiently(|| {
            change::shared::<Ledger>(&*self.store, LEDGER, |ledger| {
                let (after, micros) = Ledger { version: VERSION, ..ledger }.reserve(&held.id, token, wanted, least)?;
                granted = Some(micros);
                Some(after)
            })?;
            Ok(())
        })?;
        Ok(granted)
    }

    /// Whether there is as much as `least` for another session.
    pub fn money(&self, least: u64) -> Result<Money> {
        let entry = self.patiently(|| Ok(self.store.get(LEDGER)?))?;
        let ledger = entry.map(|entry| records::read::<Ledger>(&entry.value).or_why(LEDGER)).transpose().map_err(Problem::new)?;
        Ok(ledger.unwrap_or_default().money(least))
    }

    /// Books what a session cost.
    pub fn settle(&self, held: &Held, cost: u64) -> Result<()> {
        let token = held.claim.token;
        self.patiently(|| {
            change::shared::<Ledger>(&*self.store, LEDGER, |ledger| {
                Some(Ledger { version: VERSION, ..ledger }.settle(&held.id, token, cost))
            })?;
            Ok(())
        })
    }

    fn settle_older(&self, id: &str, token: u64) -> Result<()> {
        change::shared::<Ledger>(&*self.store, LEDGER, |ledger| Ledger { version: VERSION, ..ledger }.settle_older(id, token))?;
        Ok(())
    }

    /// What a person wants of a job; `None`: of all.
    pub fn want(&self, id: Option<&str>) -> Result<Want> {
        let key = id.map_or_else(|| WANT_ALL.to_owned(), |id| key(WANT, id));
        Ok(self.signers.want(&key, self.patiently(|| Ok(self.store.get(&key)?))?.as_ref().map(|entry| &*entry.value)))
    }

    /// Adds a line to the log of what happened, and tells the others of this process. The log is for people: without it the work goes on.
    pub fn note(&self, id: &str, job: &Job, event: &str, text: &str) {
        let line = json!({
            "at": clock::now(), "job": id, "event": event, "token": job.token, "worker": job.worker,
            "iterations": job.iterations, "usd_micros": job.usd_micros, "text": secrets::mask(text),
        });
        let _ = self.store.append(LOG, &line.to_string());
        self.bell.ring();
    }
}
