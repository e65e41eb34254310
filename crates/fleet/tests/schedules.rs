//! Seeded schedules in virtual time: workers and landers that die, sleep past their lease and come back, clocks that are set, a store that loses answers. Whatever happens, each job
//! lands once, in the order of its dependencies, nothing is written under an old claim, and no more money is spent than there is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_possible_wrap, reason = "tests")]

use std::{collections::BTreeMap, sync::Arc};

use ralph_core::text::time::Millis;
use ralph_fleet::{
    board::Board,
    change::{self, Changed},
    job_rules::{Brought, Claim, Money, Outcome},
    records::{self, Found, JOB, Job, LEDGER, Ledger, SPEC, Spec, State, VERSION, WANT, Want, Wish, key},
    store::{
        Error, Hold, Holder, Revision, Store,
        memory::{Fault, Memory},
    },
};

/// A commit's name, in git's form, that tells the job and its claim.
fn commit(id: &str, token: u64) -> String {
    let id = id.bytes().fold(0_u64, |sum, b| sum * 256 + u64::from(b));
    format!("{id:020x}{token:020x}")
}

/// A small generator (xorshift): the same seed, the same schedule.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn in_hundred(&mut self, n: u64) -> bool {
        self.below(100) < n
    }
}

const JOBS: u64 = 12;
const SESSION: u64 = 100;

struct Actor {
    name: String,
    lands: bool,
    hold: Option<Box<dyn Hold>>,
    board: Board,
    has: Option<(String, Claim, Job, Revision)>,
    /// What a session's money was reserved as.
    reserved: bool,
    /// What its session cost, until that is booked.
    cost: Option<u64>,
    sleeps_until: u64,
    writes: u64,
    /// How far its clock is off.
    skew: i64,
}

struct World {
    store: Arc<Memory>,
    dice: Dice,
    now: u64,
    born: u64,
    actors: Vec<Actor>,
    /// The target branch.
    main: Vec<String>,
    refused: u64,
    calm: bool,
}

/// The time as someone's clock shows it.
fn shown(time: u64, skew: i64) -> Millis {
    Millis::try_from(time).unwrap_or_default() + skew
}

fn now(time: u64) -> Millis {
    Millis::try_from(time).unwrap_or_default()
}

impl World {
    fn new(seed: u64, budget: u64) -> Self {
        let mut faults = Dice::new(seed ^ 0xF00D);
        let store = Arc::new(Memory::with(Box::new(move || match faults.below(60) {
            0 => Fault::Unreachable,
            1 => Fault::AnswerLost,
            _ => Fault::None,
        })));
        let mut dice = Dice::new(seed);
        for n in 0..JOBS {
            // Only on earlier ones, so that there is no ring.
            let on = (0..n).filter(|_| dice.in_hundred(10)).map(|n| format!("j{n}")).collect();
            let spec = Spec { version: VERSION, id: format!("j{n}"), task: "x".into(), number: n, depends_on: on, ..Spec::default() };
            write_surely(&*store, &key(SPEC, &spec.id), &serde_json::to_vec(&spec).unwrap());
        }
        let ledger = Ledger { version: VERSION, limit_micros: budget, ..Ledger::default() };
        write_surely(&*store, LEDGER, &serde_json::to_vec(&ledger).unwrap());
        let mut world = World { store, dice, now: 1, born: 0, actors: Vec::new(), main: Vec::new(), refused: 0, calm: false };
        (0..4).for_each(|_| world.bear(false));
        (0..2).for_each(|_| world.bear(true));
        world
    }

    fn bear(&mut self, lands: bool) {
        self.born += 1;
        let name = format!("w{}", self.born);
        let hold = self.store.hold(&name).ok();
        self.actors.push(Actor {
            name,
            lands,
            hold,
            board: Board::default(),
            has: None,
            reserved: false,
            cost: None,
            sleeps_until: 0,
            writes: 0,
            skew: 0,
        });
    }

    fn tick(&mut self) {
        self.now += 1;
        let at = usize::try_from(self.dice.below(self.actors.len() as u64)).unwrap();
        if !self.calm && self.dice.in_hundred(2) {
            let lands = self.actors.swap_remove(at).lands;
            return self.bear(lands);
        }
        if !self.calm && self.dice.in_hundred(2) {
            // It sleeps, its lease runs out, and it goes on as if nothing had been.
            self.actors[at].sleeps_until = self.now + 30 + self.dice.below(100);
            self.store.expire(&self.actors[at].name);
        }
        if !self.calm && self.dice.in_hundred(2) {
            // Its clock is set, forward or back.
            self.actors[at].skew = i64::try_from(self.dice.below(400)).unwrap() - 200;
        }
        if self.actors[at].sleeps_until > self.now {
            return;
        }
        let mut actor = self.actors.swap_remove(at);
        // Out of reach: it tries again later.
        let stepped = if actor.has.is_some() { self.work(&mut actor) } else { self.look(&mut actor) };
        match stepped {
            Ok(()) | Err(Error::Unreachable(_)) => {}
            Err(e) => panic!("{e}"),
        }
        // A worker whose lease ran out takes a new name when it has nothing to do.
        if actor.has.is_none() && actor.hold.is_some() && self.dice.in_hundred(5) {
            let lands = actor.lands;
            drop(actor);
            return self.bear(lands);
        }
        self.actors.push(actor);
    }

    fn look(&mut self, actor: &mut Actor) -> Result<(), Error> {
        actor.board.refresh(&*self.store)?;
        if actor.lands {
            self.find_on_target(actor)?;
        } else if !self.has_money()? {
            return Ok(());
        }
        let pools = [];
        let found = if actor.lands {
            actor.board.to_land(&*self.store, false)
        } else {
            actor.board.to_run(&*self.store, &pools, shown(self.now, actor.skew)).next()
        };
        let Some((id, card)) = found else { return Ok(()) };
        let unlanded: Vec<&String> = card.spec.depends_on.iter().filter(|on| !self.main.contains(on)).collect();
        assert!(unlanded.is_empty(), "{id} begins before {unlanded:?}");
        let (job, claim) = card.job.claimed(&actor.name, shown(self.now, actor.skew));
        let (id, revision) = (id.to_owned(), card.revision);
        actor.has =
            self.write(actor, &id, job, revision)?.filter(|(job, _)| job.is_held()).map(|(job, revision)| (id, claim, job, revision));
        (actor.reserved, actor.cost) = (false, None);
        Ok(())
    }

    /// A lander tells what is on the target, whoever brought it there.
    fn find_on_target(&mut self, actor: &mut Actor) -> Result<(), Error> {
        for id in self.main.clone() {
            let Some(card) = actor.board.card(&id) else { continue };
            if let Some(job) = card.job.found_on_target("known", shown(self.now, actor.skew)) {
                let revision = card.revision;
                self.write(actor, &id, job, revision)?;
            }
        }
        actor.board.refresh(&*self.store)
    }

    fn has_money(&self) -> Result<bool, Error> {
        let Some(entry) = self.store.get(LEDGER)? else { return Ok(false) };
        let ledger: Ledger = serde_json::from_slice(&entry.value).unwrap();
        Ok(ledger.free().is_none_or(|free| free >= SESSION))
    }

    /// Writes a job's record; `None`: it is another's.
    fn write(&mut self, actor: &mut Actor, id: &str, job: Job, revision: Revision) -> Result<Option<(Job, Revision)>, Error> {
        actor.writes += 1;
        match change::job(&*self.store, id, job, revision, format!("{}:{}", actor.name, actor.writes))? {
            Changed::Done(job, revision) => Ok(Some((job, revision))),
            Changed::Refused(_) => {
                self.refused += 1;
                Ok(None)
            }
        }
    }

    fn work(&mut self, actor: &mut Actor) -> Result<(), Error> {
        let Some((id, claim, job, revision)) = actor.has.clone() else { return Ok(()) };
        let next = if actor.lands { self.landing(actor, &id, &job)? } else { self.session(actor, &id, &claim, &job)? };
        let Some(next) = next else { return Ok(()) };
        actor.has =
            self.write(actor, &id, next, revision)?.filter(|(job, _)| job.is_held()).map(|(job, revision)| (id, claim, job, revision));
        Ok(())
    }

    fn session(&mut self, actor: &mut Actor, id: &str, claim: &Claim, job: &Job) -> Result<Option<Job>, Error> {
        if !actor.reserved {
            let taken = change::shared(&*self.store, LEDGER, |ledger: Ledger| {
                let ledger = ledger.settle_older(id, claim.token).unwrap_or(ledger);
                ledger.reserve(id, claim.token, SESSION, SESSION).map(|(ledger, _)| ledger)
            })?;
            actor.reserved = matches!(taken, Changed::Done(..));
            let broke = Outcome::GivenBack { why: "the budget is used up".into() };
            return Ok((!actor.reserved).then(|| job.ended(broke, shown(self.now, actor.skew))));
        }
        // It costs what it costs, however often it is tried to book that.
        let cost = *actor.cost.get_or_insert_with(|| self.dice.below(SESSION + 1));
        change::shared(&*self.store, LEDGER, |ledger: Ledger| Some(ledger.settle(id, claim.token, cost)))?;
        (actor.reserved, actor.cost) = (false, None);
        let commit = Some(commit(id, claim.token));
        let job = job.after(Brought { commit, usd_micros: cost, ..Brought::default() }, shown(self.now, actor.skew));
        let outcome = match self.dice.below(10) {
            0..=3 => return Ok(Some(job)),
            4 => Outcome::Parked { until: shown(self.now + 20, actor.skew), why: "quota".into() },
            5 => Outcome::GivenBack { why: "the worker ends".into() },
            _ => Outcome::Proven,
        };
        Ok(Some(job.ended(outcome, shown(self.now, actor.skew))))
    }

    fn landing(&mut self, actor: &Actor, id: &str, job: &Job) -> Result<Option<Job>, Error> {
        if self.main.iter().any(|landed| landed == id) {
            // A lander before us died between the push and its record.
            return Ok(Some(job.ended(Outcome::Landed { commit: commit(id, 0) }, shown(self.now, actor.skew))));
        }
        if self.dice.in_hundred(20) {
            return Ok(Some(job.ended(Outcome::SentBack { why: "a conflict".into() }, shown(self.now, actor.skew))));
        }
        // The push is without force: what is on main cannot be pushed a second time.
        self.main.push(id.to_owned());
        if self.dice.in_hundred(30) {
            return Err(Error::Unreachable("it was pushed, and then nothing".into()));
        }
        Ok(Some(job.ended(Outcome::Landed { commit: commit(id, 0) }, shown(self.now, actor.skew))))
    }

    fn jobs(&self) -> BTreeMap<String, Job> {
        let entries = self.store.list("job.").unwrap();
        let read = |bytes: &[u8]| match records::read::<Job>(bytes) {
            Found::Known(job) => job,
            other => panic!("{other:?}"),
        };
        entries.into_iter().map(|(key, entry)| (key["job.".len()..].to_owned(), read(&entry.value))).collect()
    }

    /// Every write of a job's record was its holder's.
    fn check_writes(&self, id: &str) {
        let history = self.store.history(&key(JOB, id));
        let jobs: Vec<Job> = history.iter().map(|bytes| serde_json::from_slice(bytes).unwrap()).collect();
        for pair in jobs.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let writer = after.nonce.split(':').next().unwrap();
            if after.token == before.token {
                // Without a claim only the truth about the target is written.
                assert!(before.is_held() || after.state == State::Landed, "{id} was written without a claim: {before:?} → {after:?}");
                assert!(
                    !before.is_held() || before.worker.as_deref() == Some(writer),
                    "a stale write of {id} was accepted: {before:?} → {after:?}"
                );
            } else {
                assert_eq!(after.token, before.token + 1, "{before:?} → {after:?}");
                assert!(!before.is_over(), "{id} was over and taken again");
            }
        }
        let last = jobs.last().unwrap();
        assert_eq!(last.state == State::Landed, self.main.iter().any(|landed| landed == id), "{last:?}");
    }

    fn check_money(&self, budget: u64) {
        let ledgers = self.store.history(LEDGER);
        for bytes in &ledgers {
            let ledger: Ledger = serde_json::from_slice(bytes).unwrap();
            let taken = ledger.spent_micros + ledger.reserved.values().sum::<u64>();
            assert!(budget == 0 || taken <= budget, "{ledger:?}");
        }
        let spent = serde_json::from_slice::<Ledger>(ledgers.last().unwrap()).unwrap().spent_micros;
        let by_jobs: u64 = self.jobs().values().map(|job| job.usd_micros).sum();
        assert!(by_jobs <= spent, "more was counted with the jobs ({by_jobs}) than booked ({spent})");
    }
}

fn write_surely(store: &dyn Store, key: &str, value: &[u8]) {
    while change::put(store, key, value, 0).is_err() {}
}

fn run(seed: u64, budget: u64) -> World {
    let mut world = World::new(seed, budget);
    for _ in 0..1500 {
        world.tick();
    }
    // The storm is over: what is left is finished by whoever is there.
    world.calm = true;
    world.store.heal();
    for _ in 0..3000 {
        world.tick();
    }
    for id in world.jobs().keys() {
        world.check_writes(id);
    }
    let landed = world.main.len();
    world.main.sort();
    world.main.dedup();
    assert_eq!(world.main.len(), landed, "seed {seed}: a job landed twice");
    world.check_money(budget);
    world
}

#[test]
fn f2_each_job_lands_once_whatever_happens() {
    let (mut refused, mut with_people) = (0, 0);
    for seed in 0..100 {
        let world = run(seed, 0);
        refused += world.refused;
        let jobs = world.jobs();
        // What waits for a job that needs a person waits on.
        let stuck = |id: &str| jobs.get(id).is_some_and(|job| job.state == State::NeedsPerson);
        with_people += jobs.values().filter(|job| job.state == State::NeedsPerson).count();
        let unfinished: Vec<_> = jobs.iter().filter(|(_, job)| !matches!(job.state, State::Landed | State::NeedsPerson)).collect();
        assert!(unfinished.is_empty() || jobs.keys().any(|id| stuck(id)), "seed {seed}: {unfinished:?}");
    }
    assert!(refused > 50, "the schedules are too tame: {refused} stale writes");
    assert!(with_people > 0, "and nobody was ever asked");
}

#[test]
fn f2_no_more_is_spent_than_there_is() {
    for seed in 1000..1050 {
        let world = run(seed, 15 * SESSION);
        // What a dead worker had stays its own until there is money to go on.
        let lives =
            |id: &str, job: &Job| !world.store.is_gone(Holder { worker: job.worker.as_deref().unwrap(), key: id, revision: 1 }).unwrap();
        let working: Vec<_> = world.jobs().into_iter().filter(|(id, job)| job.state == State::Runs && lives(id, job)).collect();
        assert!(working.is_empty(), "seed {seed}: without money they work on {working:?}");
    }
}

#[test]
fn f2_a_persons_wish_counts() {
    let store = Memory::default();
    let spec = Spec { version: VERSION, id: "a".into(), number: 1, ..Spec::default() };
    store.put_if("spec.a", &serde_json::to_vec(&spec).unwrap(), 0).unwrap();
    let mut board = Board::default();
    let mut offered = |want: &Want, all: Option<&Want>| {
        change::shared(&store, &key(WANT, "a"), |_: Want| Some(want.clone())).unwrap();
        change::shared(&store, "want", |_: Want| Some(all.cloned().unwrap_or_default())).unwrap();
        board.refresh(&store).unwrap();
        board.to_run(&store, &[], now(1)).count()
    };
    let wish = |wish: Wish| Want { version: VERSION, wish, ..Want::default() };
    let run = wish(Wish::Run);
    assert_eq!(offered(&run, Some(&run)), 1);
    assert_eq!(offered(&wish(Wish::Pause), Some(&run)), 0);
    assert_eq!(offered(&run, Some(&wish(Wish::Pause))), 0, "pause alone stops all claims");
    assert_eq!(offered(&wish(Wish::Cancel), Some(&run)), 0);
    assert_eq!(Job::new(now(1)).wished(&wish(Wish::Cancel), now(2)).unwrap().state, State::Cancelled);
}

#[test]
fn f2_newer_records_are_left_alone_and_unknown_fields_survive() {
    let store = Memory::default();
    store.put_if("spec.a", br#"{"version":1,"id":"a","task":"x","number":1,"colour":"red"}"#, 0).unwrap();
    store.put_if("job.a", br#"{"version":2,"state":"sleeps","token":1,"nonce":"n","changed_at":1}"#, 0).unwrap();
    store.put_if("spec.b", br#"{"version":1,"id":"b","task":"x","number":2}"#, 0).unwrap();
    store.put_if("job.b", br#"{"version":1,"state":"waits","token":1,"nonce":"n","changed_at":1,"mood":"good"}"#, 0).unwrap();
    let mut board = Board::default();
    board.refresh(&store).unwrap();
    // Its task and a person's wish come again when everything is listed anew.
    let spec = store.get("spec.a").unwrap().unwrap();
    board.take("spec.a", spec);
    store.put_if("want.a", br#"{"version":1,"wish":"run"}"#, 0).unwrap();
    board.refresh(&store).unwrap();
    assert!(board.card("a").unwrap().left_alone().unwrap().contains("version 2"));
    let ids: Vec<&str> = board.to_run(&store, &[], now(1)).map(|(id, _)| id).collect();
    assert_eq!(ids, ["b"], "the newer one is not taken");
    let card = board.card("b").unwrap();
    let (job, _) = card.job.claimed("w", now(2));
    let Changed::Done(..) = change::job(&store, "b", job, card.revision, "n2".into()).unwrap() else { panic!("it is free") };
    let text = String::from_utf8(store.get("job.b").unwrap().unwrap().value).unwrap();
    assert!(text.contains(r#""mood":"good""#), "{text}");
}

#[test]
fn f2_a_worker_that_never_finishes_anything_asks_a_person() {
    let mut job = Job::new(now(1));
    for n in 1..=3 {
        (job, _) = job.claimed("w", now(n));
        assert_eq!(job.state, State::Runs);
    }
    (job, _) = job.claimed("w", now(4));
    assert_eq!((job.state, job.worker.is_none()), (State::NeedsPerson, true), "{job:?}");
    // An iteration in between makes it good, and so does a worker that gives it back.
    let (job, _) = Job::new(now(1)).claimed("w", now(2));
    assert_eq!(job.after(Brought::default(), now(3)).claims, 0);
    assert_eq!(job.ended(Outcome::GivenBack { why: String::new() }, now(3)).claims, 0);
}

#[test]
fn f2_the_third_return_goes_to_a_person_and_the_second_goes_first() {
    let back = |job: &Job| job.ended(Outcome::SentBack { why: "a conflict".into() }, now(2));
    let (once, spec) = (back(&Job::new(now(1))), Spec { number: 9, ..Spec::default() });
    let twice = back(&once);
    assert_eq!((once.state, twice.state, back(&twice).state), (State::Waits, State::Waits, State::NeedsPerson));
    let rank = |job: &Job, spec: &Spec| ralph_fleet::job_rules::rank(spec, job);
    let first = Spec { priority: Some(1), number: 1, ..Spec::default() };
    assert!(rank(&twice, &spec) < rank(&Job::new(now(1)), &first), "before all others");
    assert!(rank(&once, &spec) > rank(&Job::new(now(1)), &first));
}

#[test]
fn f2_dependencies_that_cannot_be_met_are_named() {
    let spec = |id: &str, on: &[&str]| Spec { id: id.into(), depends_on: on.iter().map(ToString::to_string).collect(), ..Spec::default() };
    let wrong = ralph_fleet::job_rules::wrong_dependencies;
    assert!(wrong(&[spec("a", &[]), spec("b", &["a"]), spec("c", &["a", "b"])]).is_empty());
    assert_eq!(wrong(&[spec("a", &["x"])]), ["a depends on x, which is not in the list"]);
    let ring = wrong(&[spec("a", &["b"]), spec("b", &["a"]), spec("c", &[])]);
    assert!(ring.len() == 1 && ring[0].ends_with(": a, b"), "{ring:?}");
}

/// What a list says of its items is what their tasks say, and an item's id does not depend on what is done already.
#[test]
fn f5_money_that_is_set_aside_is_not_spent() {
    let ledger = |limit: u64, spent: u64, reserved: u64| {
        let reserved = [("a/1".to_owned(), reserved)].into();
        Ledger { limit_micros: limit, spent_micros: spent, reserved, ..Ledger::default() }
    };
    for (limit, spent, reserved, what) in [
        (100, 50, 20, Money::Left),
        (100, 50, 41, Money::SetAside),
        (100, 91, 0, Money::Spent),
        (100, 200, 10, Money::Spent),
        (0, 1_000, 1_000, Money::Left),
    ] {
        assert_eq!(ledger(limit, spent, reserved).money(10), what, "{limit} {spent} {reserved}");
    }
}

/// What is left alone says why in the same words everywhere.
#[test]
fn f2_a_record_that_is_left_alone_says_why() {
    let why = |bytes: &str| records::read::<Job>(bytes.as_bytes()).or_why("job.a").err();
    let newer = "job.a is of version 99, which this ralph does not know: upgrade ralph";
    assert_eq!(why(r#"{"version": 99, "state": "dances"}"#).as_deref(), Some(newer));
    assert!(why("{").is_some_and(|why| why.starts_with("job.a cannot be read: ")));
    let known = serde_json::to_string(&Job::new(1)).unwrap();
    assert_eq!(why(&known), None);
    let store = Memory::default();
    store.put_if(LEDGER, br#"{"version": 99}"#, 0).unwrap();
    let changed = change::shared(&store, LEDGER, |ledger: Ledger| Some(ledger)).unwrap();
    assert!(matches!(&changed, Changed::Refused(why) if why.starts_with("ledger is of version 99")), "{changed:?}");
}

#[test]
fn f1_the_tasks_of_a_list_say_what_it_says() {
    let list = |done: bool| {
        format!(
            r#"{{"features": [{{"id": "A.1", "description": "a", "passes": {done}}},
            {{"id": "A-1", "description": "b", "dependsOn": "A.1", "priority": 1.5, "pool": "GPU", "agent": "codex", "model": "m", "verify": "true", "passes": false}},
            {{"id": "C", "description": "c", "optional": true, "priority": 1, "blockedBy": ["A-1"], "passes": false}},
            {{"id": "D", "description": "d", "priority": 2, "passes": false}}]}}"#
        )
    };
    let specs = |done: bool| ralph_fleet::tasks::of_list(list(done).as_bytes()).unwrap();
    let find = |specs: &[Spec], item: &str| specs.iter().find(|spec| spec.item.as_deref() == Some(item)).unwrap().clone();
    let all = specs(false);
    let (first, second) = (find(&all, "A.1"), find(&all, "A-1"));
    assert_ne!(first.id, second.id);
    assert_eq!(second.depends_on, [first.id.as_str()]);
    assert_eq!((second.pool.as_deref(), second.agent.as_deref(), second.model.as_deref()), (Some("gpu"), Some("codex"), Some("m")));
    assert_eq!(second.verify, ["true"]);
    let later = find(&specs(true), "A-1");
    assert_eq!((&later.id, later.depends_on.len()), (&second.id, 0), "what is done holds nobody up");
    // In order of priority; an optional one comes last.
    let mut order: Vec<Spec> = all;
    order.sort_by_key(|spec| ralph_fleet::job_rules::rank(spec, &Job::new(now(1))));
    let items: Vec<&str> = order.iter().filter_map(|spec| spec.item.as_deref()).collect();
    assert_eq!(items, ["A-1", "D", "A.1", "C"]);
}
