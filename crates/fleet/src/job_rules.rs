//! Every rule about jobs and their money, as pure functions over their records: who may take one, what follows, and how often before a person is asked.
//!
//! ```text
//!  waits ──claim──▶ runs ──proven──▶ proven ──claim──▶ lands ──▶ landed
//!    ▲ ▲             │ │                ▲                │ │
//!    │ └── release ──┘ └─▶ parked       └─── release ────┘ │
//!    └───────────── sent back, at most twice ──────────────┘      anything but landed ──▶ needs-person, cancelled
//! ```

use ralph_core::text::time::Millis;

use crate::records::{Account, Job, Ledger, Spec, State, VERSION, Want, Wish};

/// After so many claims in a row that finished no iteration a person has to look.
pub const MOST_CLAIMS: u32 = 3;

/// How often landing sends a job back before a person has to look.
pub const MOST_RETURNS: u32 = 2;

/// A claim: whoever writes a job's record says under which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub worker: String,
    pub token: u64,
}

/// What an iteration brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Brought {
    pub commit: Option<String>,
    pub bundle: Option<String>,
    pub usd_micros: u64,
    pub tokens: u64,
    pub notes_told: usize,
}

/// How a claim ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The gates hold.
    Proven,
    Parked {
        until: Millis,
        why: String,
    },
    /// Given back unfinished: the worker ends, or a person paused it.
    GivenBack {
        why: String,
    },
    /// It ended without a word, as after a crash: the next claim tries again, and counts.
    Failed {
        why: String,
    },
    NeedsPerson {
        why: String,
    },
    Cancelled,
    Landed {
        commit: String,
    },
    /// A pull request has it: it lands when that is merged.
    Opened {
        url: String,
    },
    /// It could not be landed; the agent has to see to it.
    SentBack {
        why: String,
    },
}

/// The order in which jobs are taken, the smallest first.
pub type Rank = (bool, bool, i64, u64);

pub fn rank(spec: &Spec, job: &Job) -> Rank {
    // What came back twice goes before all others: each landing before it may be its next conflict.
    (job.returns < MOST_RETURNS, spec.optional, spec.priority.unwrap_or(i64::MAX), spec.number)
}

impl Job {
    pub fn new(now: Millis) -> Self {
        Job { version: VERSION, changed_at: now, ..Job::default() }
    }

    /// Whether it can change no more.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Landed | State::Cancelled)
    }

    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Runs | State::Lands)
    }

    /// Whether this claim is the one that counts.
    pub fn is_of(&self, claim: &Claim) -> bool {
        self.is_held() && self.token == claim.token && self.worker.as_deref() == Some(&claim.worker)
    }

    /// Whether a worker may take it to work on it. `is_gone`: whether the one that has it is gone.
    pub fn can_run(&self, want: &Want, now: Millis, is_gone: impl FnOnce() -> bool) -> bool {
        let wanted = want.wish == Wish::Run;
        match self.state {
            State::Waits => wanted,
            State::Parked => wanted && self.until.is_none_or(|until| until <= now),
            State::Runs => want.release == Some(self.token) || is_gone(),
            _ => false,
        }
    }

    /// What it names that is no object of git's: who may write where a job stands may not have git do something else.
    pub(crate) fn misnames(&self) -> Option<&'static str> {
        let snapshot = self.rest.get("snapshot").map(|value| value.as_str().unwrap_or_default());
        let named = [self.commit.as_deref(), self.bundle.as_deref(), snapshot];
        named.into_iter().flatten().any(|name| !is_object(name)).then_some("names something else than a commit")
    }

    /// Whether a lander may take it.
    pub fn can_land(&self, want: &Want, needs_review: bool, is_gone: impl FnOnce() -> bool) -> bool {
        let reviewed = || want.review.as_ref().is_some_and(|review| review.back.is_none() && Some(&review.commit) == self.commit.as_ref());
        match self.state {
            State::Proven => want.wish == Wish::Run && (!needs_review || reviewed()),
            State::Lands => want.release == Some(self.token) || is_gone(),
            _ => false,
        }
    }

    /// Taken by a worker, or by a lander if it is proven. A claim too many goes to a person.
    pub fn claimed(&self, worker: &str, now: Millis) -> (Job, Claim) {
        let lands = matches!(self.state, State::Proven | State::Lands);
        let token = self.token + 1;
        let mut job = Job { version: VERSION, token, worker: Some(worker.to_owned()), until: None, changed_at: now, ..self.clone() };
        job.state = if lands { State::Lands } else { State::Runs };
        job.claims += 1;
        if job.claims > MOST_CLAIMS {
            job.state = State::NeedsPerson;
            job.worker = None;
            job.why = format!("{MOST_CLAIMS} workers in a row took it and ended before an iteration was over");
        }
        (job, Claim { worker: worker.to_owned(), token })
    }

    /// An iteration is over, and the work goes on.
    #[must_use]
    pub fn after(&self, brought: Brought, now: Millis) -> Job {
        Job {
            claims: 0,
            iterations: self.iterations + 1,
            commit: brought.commit.or_else(|| self.commit.clone()),
            bundle: brought.bundle.or_else(|| self.bundle.clone()),
            usd_micros: self.usd_micros.saturating_add(brought.usd_micros),
            tokens: self.tokens.saturating_add(brought.tokens),
            notes_told: self.notes_told.max(brought.notes_told),
            back: None,
            is_renewed: false,
            changed_at: now,
            ..self.clone()
        }
    }

    /// The claim ends.
    #[must_use]
    pub fn ended(&self, outcome: Outcome, now: Millis) -> Job {
        let mut job = Job { worker: None, until: None, changed_at: now, ..self.clone() };
        match outcome {
            Outcome::Proven => (job.state, job.claims, job.why) = (State::Proven, 0, String::new()),
            Outcome::Parked { until, why } => (job.state, job.until, job.claims, job.why) = (State::Parked, Some(until), 0, why),
            // Nobody failed: it does not count as a claim.
            Outcome::GivenBack { why } => {
                job.state = if self.state == State::Lands { State::Proven } else { State::Waits };
                job.claims = self.claims.saturating_sub(1);
                job.why = why;
            }
            Outcome::Failed { why } => (job.state, job.why) = (State::Waits, why),
            Outcome::NeedsPerson { why } => (job.state, job.why) = (State::NeedsPerson, why),
            Outcome::Cancelled => (job.state, job.why) = (State::Cancelled, String::new()),
            Outcome::Landed { commit } => (job.state, job.commit, job.why) = (State::Landed, Some(commit), String::new()),
            Outcome::Opened { url } => (job.state, job.claims, job.why) = (State::Proven, 0, url),
            Outcome::SentBack { why } => {
                job.returns += 1;
                job.claims = 0;
                job.state = if job.returns > MOST_RETURNS { State::NeedsPerson } else { State::Waits };
                job.back = Some(why.clone());
                job.why = why;
            }
        }
        job
    }

    /// Its work is on the target: a lander pushed it and was not heard of again, or its claim was void by then. `None`: whoever has it will see that.
    pub fn found_on_target(&self, commit: &str, now: Millis) -> Option<Job> {
        let is_open = !self.is_held() && self.state != State::Landed;
        is_open.then(|| self.ended(Outcome::Landed { commit: commit.to_owned() }, now))
    }

    /// What a person's wish makes of a job that nobody has. `None`: nothing.
    pub fn wished(&self, want: &Want, now: Millis) -> Option<Job> {
        if self.is_over() || self.is_held() {
            return None;
        }
        if want.wish == Wish::Cancel {
            return Some(self.ended(Outcome::Cancelled, now));
        }
        if self.state == State::NeedsPerson && want.release == Some(self.token) {
            return Some(Job { state: State::Waits, claims: 0, returns: 0, is_renewed: true, changed_at: now, ..self.clone() });
        }
        let review = want.review.as_ref().filter(|review| self.state == State::Proven && Some(&review.commit) == self.commit.as_ref())?;
        let back = review.back.clone()?;
        // A person's word is no failure of the agent's.
        Some(Job { state: State::Waits, why: back.clone(), back: Some(back), changed_at: now, ..self.clone() })
    }
}

/// Whether it is the name of an object, and nothing that git could take for an option, a range or a path.
fn is_object(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The key of a reservation.
pub fn reservation(id: &str, token: u64) -> String {
    format!("{id}/{token}")
}

/// What there is for another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Money {
    Left,
    /// Sessions that run have set it aside, and may not need it.
    SetAside,
    Spent,
}

impl Ledger {
    /// What is neither spent nor reserved. `None`: there is no limit.
    pub fn free(&self) -> Option<u64> {
        let taken = self.reserved.values().fold(self.spent_micros, |sum, micros| sum.saturating_add(*micros));
        (self.limit_micros > 0).then(|| self.limit_micros.saturating_sub(taken))
    }

    /// What there is for a session that needs at least so much.
    pub fn money(&self, least: u64) -> Money {
        match self.free() {
            Some(free) if free < least && self.limit_micros.saturating_sub(self.spent_micros) < least => Money::Spent,
            Some(free) if free < least => Money::SetAside,
            _ => Money::Left,
        }
    }

    /// Sets money aside for a session: as much as is wanted, or as there is. `None`: less than `least` is left.
    pub fn reserve(&self, id: &str, token: u64, wanted: u64, least: u64) -> Option<(Ledger, u64)> {
        let granted = self.free().map_or(wanted, |free| free.min(wanted));
        if granted < least.min(wanted) {
            return None;
        }
        let mut ledger = self.clone();
        ledger.reserved.insert(reservation(id, token), granted);
        Some((ledger, granted))
    }

    /// Books what the session cost, which may be more than was reserved. A claim that did not reserve has nothing to settle.
    #[must_use]
    pub fn settle(&self, id: &str, token: u64, cost: u64) -> Ledger {
        let mut ledger = self.clone();
        if ledger.reserved.remove(&reservation(id, token)).is_some() {
            ledger.spent_micros = ledger.spent_micros.saturating_add(cost);
        }
        ledger
    }

    /// Books the reservations of a job's older claims: they ended without a word, so all that was reserved counts as spent.
    pub fn settle_older(&self, id: &str, token: u64) -> Option<Ledger> {
        let older = |key: &&String| key.rsplit_once('/').is_some_and(|(job, of)| job == id && of.parse::<u64>().is_ok_and(|of| of < token));
        let keys: Vec<String> = self.reserved.keys().filter(older).cloned().collect();
        if keys.is_empty() {
            return None;
        }
        let mut ledger = self.clone();
        for key in keys {
            let micros = ledger.reserved.remove(&key).unwrap_or(0);
            ledger.spent_micros = ledger.spent_micros.saturating_add(micros);
        }
        Some(ledger)
    }
}

impl Account {
    pub fn is_used_up(&self, now: Millis) -> bool {
        self.until.is_some_and(|until| until > now)
    }
}

/// What is wrong with the dependencies of a list: one sentence for each mistake.
pub fn wrong_dependencies(specs: &[Spec]) -> Vec<String> {
    let by_id: std::collections::BTreeMap<&str, &Spec> = specs.iter().map(|spec| (spec.id.as_str(), spec)).collect();
    let mut wrong = Vec::new();
    for spec in specs {
        for on in spec.depends_on.iter().filter(|on| !by_id.contains_key(on.as_str())) {
            wrong.push(format!("{} depends on {on}, which is not in the list", spec.id));
        }
    }
    // What can be done in some order is taken away; a ring stays.
    let mut open: std::collections::BTreeSet<&str> = by_id.keys().copied().collect();
    loop {
        let free: Vec<&str> = open.iter().copied().filter(|id| by_id[id].depends_on.iter().all(|on| !open.contains(on.as_str()))).collect();
        if free.is_empty() {
            break;
        }
        for id in free {
            open.remove(id);
        }
    }
    if !open.is_empty() {
        let ids: Vec<&str> = open.into_iter().collect();
        wrong.push(format!("these wait for each other in a ring, or for one that does: {}", ids.join(", ")));
    }
    wrong
}
