//! Worker processes over one store, with someone who kills them, stops them past their lease and lets them go on, kills the server, and loses its answers; their
//! clocks differ by hours. Each job lands once, and nothing is written under an old claim. One case for each driver.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::disallowed_methods, reason = "tests")]

#[path = "common/histories.rs"]
mod histories;

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use histories::{check, of_jobs};
use ralph_core::text::time::Millis;
use ralph_fleet::{
    board::Board,
    change::{self, Changed},
    job_rules::{Brought, Claim, Outcome},
    records::{JOB, Job, SPEC, Spec, State, VERSION, WANT, Want, key},
    store::{
        Error, Revision, Store,
        dir::Dir,
        nats::{Nats, Settings},
    },
};
use ralph_testkit::{NatsServer, NatsVersion};

const JOBS: usize = 40;
const WORKERS: usize = 5;
const LEASE: Duration = Duration::from_millis(1500);

/// Where the store is: a folder, or an address. It travels to the workers as one word.
fn open(place: &str) -> Box<dyn Store> {
    if !place.starts_with("nats://") {
        return Box::new(Dir::open(Path::new(place)).unwrap());
    }
    let settings = Settings { lease: LEASE, timeout: Duration::from_millis(700), history: 64, ..Settings::new(place, "nemesis") };
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        match Nats::open(settings.clone()) {
            Ok(store) => return Box::new(store),
            // The server may have been killed just now.
            Err(e) => assert!(Instant::now() < until, "{e}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// A commit's name, in git's form, that tells the job and its claim.
fn commit(id: &str, token: u64) -> String {
    let id = id.bytes().fold(0_u64, |sum, b| sum * 256 + u64::from(b));
    format!("{id:020x}{token:020x}")
}

/// Each process has a clock of its own, hours from the others'.
fn now() -> Millis {
    let skew = Millis::from(std::process::id() % 5) - 2;
    Millis::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap() + skew * 3_600_000
}

// The worker.

const PLACE: &str = "RALPH_FLEET_TEST_PLACE";

/// Not a test: what a worker process does, until it is killed.
#[test]
fn worker() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let store = open(&place);
    let name = format!("w-{}", std::process::id());
    let _hold = loop {
        match store.hold(&name) {
            Ok(hold) => break hold,
            Err(Error::Unreachable(_)) => thread::sleep(Duration::from_millis(50)),
            Err(e) => panic!("{e}"),
        }
    };
    let mut worker = Worker { store, name, board: Board::default(), writes: 0 };
    loop {
        match worker.take() {
            Ok(Some((id, claim, job, revision))) => worker.work(&id, &claim, job, revision),
            Ok(None) | Err(Error::Unreachable(_)) => thread::sleep(Duration::from_millis(30)),
            Err(e) => panic!("{e}"),
        }
    }
}

struct Worker {
    store: Box<dyn Store>,
    name: String,
    board: Board,
    writes: u64,
}

impl Worker {
    fn take(&mut self) -> Result<Option<(String, Claim, Job, Revision)>, Error> {
        self.board.refresh(&*self.store)?;
        // A claim whose answer was lost: it is ours, and nobody else will take it.
        let is_mine = |job: &Job| job.is_held() && job.worker.as_deref() == Some(&self.name);
        if let Some((id, card)) = self.board.open().find(|(_, card)| is_mine(&card.job)) {
            let claim = Claim { worker: self.name.clone(), token: card.job.token };
            return Ok(Some((id.to_owned(), claim, card.job.clone(), card.revision)));
        }
        let to_land = self.board.to_land(&*self.store, false);
        let Some((id, card)) = to_land.or_else(|| self.board.to_run(&*self.store, &[], now()).next()) else { return Ok(None) };
        let (job, claim) = card.job.claimed(&self.name, now());
        let (id, revision) = (id.to_owned(), card.revision);
        self.writes += 1;
        match change::job(&*self.store, &id, job, revision, format!("{}:{}", self.name, self.writes))? {
            Changed::Done(job, revision) if job.is_held() => Ok(Some((id, claim, job, revision))),
            _ => Ok(None),
        }
    }

    /// Some iterations and the proof, or the landing.
    fn work(&mut self, id: &str, claim: &Claim, job: Job, revision: Revision) {
        let mut at = Some((job, revision));
        while let Some((job, revision)) = at {
            thread::sleep(Duration::from_millis(200));
            let next = match job.state {
                State::Runs if job.iterations < 3 => {
                    job.after(Brought { commit: Some(commit(id, claim.token)), ..Brought::default() }, now())
                }
                State::Runs => job.ended(Outcome::Proven, now()),
                _ => job.ended(Outcome::Landed { commit: commit(id, 0) }, now()),
            };
            at = self.write(id, claim, &next, revision).filter(|(job, _)| job.is_of(claim));
        }
    }

    /// Writes until the store has said what became of it; `None`: it is another's, or over.
    fn write(&mut self, id: &str, claim: &Claim, next: &Job, revision: Revision) -> Option<(Job, Revision)> {
        loop {
            self.writes += 1;
            match change::job(&*self.store, id, next.clone(), revision, format!("{}:{}", self.name, self.writes)) {
                Ok(Changed::Done(job, revision)) => return Some((job, revision)),
                Ok(Changed::Refused(_)) => {
                    if let Ok(Some(entry)) = self.store.get(&key(JOB, id)) {
                        let job: Job = serde_json::from_slice(&entry.value).unwrap();
                        if job.is_of(claim) {
                            return Some((job, entry.revision));
                        }
                        let _ = self.store.append("refused", &format!("{} {id} {}", self.name, claim.token));
                        return None;
                    }
                }
                Err(Error::Unreachable(_)) => {}
                Err(e) => panic!("{e}"),
            }
            thread::sleep(Duration::from_millis(30));
        }
    }
}

// The nemesis.

/// A small generator (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % n
    }
}

struct Storm {
    place: String,
    store: Box<dyn Store>,
    workers: Vec<Child>,
    stopped: Vec<Stopped>,
    dice: Dice,
    kills: usize,
    stops: usize,
}

/// A worker that stands still in the middle of a job. It goes on when someone else has taken that.
struct Stopped {
    child: Child,
    id: String,
    token: u64,
}

fn start(place: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let log = std::env::var_os("RALPH_FLEET_TEST_LOG")
        .map_or_else(Stdio::null, |path| fs::File::options().append(true).create(true).open(path).unwrap().into());
    command
        .args(["--exact", "worker", "--nocapture"])
        .env(PLACE, place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.workers.iter_mut().for_each(end);
        self.stopped.iter_mut().for_each(|stopped| end(&mut stopped.child));
    }
}

impl Storm {
    /// `place` is the workers'; the nemesis itself looks at `own`.
    fn new(place: &str, own: &str) -> Self {
        let store = open(own);
        for n in 0..JOBS {
            let spec = Spec { version: VERSION, id: format!("j{n}"), task: "x".into(), number: n as u64, ..Spec::default() };
            store.put_if(&key(SPEC, &spec.id), &serde_json::to_vec(&spec).unwrap(), 0).unwrap();
        }
        let workers = (0..WORKERS).map(|_| start(place)).collect();
        Storm { place: place.to_owned(), store, workers, stopped: Vec::new(), dice: Dice(0x5EED), kills: 0, stops: 0 }
    }

    /// One misfortune, or none.
    fn strike(&mut self) {
        let at = self.dice.below(self.workers.len());
        match self.dice.below(8) {
            0 | 1 => {
                end(&mut self.workers[at]);
                self.workers[at] = start(&self.place);
                self.kills += 1;
            }
            2 | 3 if self.stopped.len() < 2 => {
                let name = format!("w-{}", self.workers[at].id());
                signal(&self.workers[at], "STOP");
                match self.jobs().into_iter().find(|(_, job)| job.is_held() && job.worker.as_ref() == Some(&name)) {
                    Some((id, job)) => {
                        let child = std::mem::replace(&mut self.workers[at], start(&self.place));
                        self.stopped.push(Stopped { child, id, token: job.token });
                        self.stops += 1;
                    }
                    None => signal(&self.workers[at], "CONT"),
                }
            }
            _ => {}
        }
        self.wake();
    }

    fn wake(&mut self) {
        let jobs = self.jobs();
        for stopped in std::mem::take(&mut self.stopped) {
            if jobs.get(&stopped.id).is_none_or(|job| job.token == stopped.token) {
                self.stopped.push(stopped);
                continue;
            }
            signal(&stopped.child, "CONT");
            // Its place is taken: it goes on for a while, and the one that has been there longest ends.
            self.workers.push(stopped.child);
            if self.workers.len() > WORKERS + 2 {
                end(&mut self.workers.remove(0));
            }
        }
    }

    /// Where a stopped worker keeps its job, a person takes it from it.
    fn release(&self) {
        for Stopped { id, token, .. } in &self.stopped {
            change::shared(&*self.store, &key(WANT, id), |want: Want| Some(Want { version: VERSION, release: Some(*token), ..want }))
                .unwrap();
        }
    }

    fn jobs(&self) -> BTreeMap<String, Job> {
        let Ok(entries) = self.store.list("job.") else { return BTreeMap::new() };
        entries.into_iter().map(|(key, entry)| (key["job.".len()..].to_owned(), serde_json::from_slice(&entry.value).unwrap())).collect()
    }

    fn is_over(&self) -> bool {
        let jobs = self.jobs();
        // Three claims in a row may have been killed: a person lets it begin again.
        for (id, job) in jobs.iter().filter(|(_, job)| job.state == State::NeedsPerson) {
            let Ok(Some(entry)) = self.store.get(&key(JOB, id)) else { continue };
            let again = Job { state: State::Waits, claims: 0, ..job.clone() };
            let _ = change::job(&*self.store, id, again, entry.revision, "person:1".to_owned());
        }
        jobs.len() == JOBS && jobs.values().all(|job| job.state == State::Landed)
    }
}

/// A line to the server that can lose what it answers: what was asked arrives, nothing comes back, and then it breaks.
struct Line {
    port: u16,
    is_deaf: Arc<AtomicBool>,
    /// Writes that were stored without their writers being told.
    lost: Arc<AtomicUsize>,
}

impl Line {
    fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let line = Line { port: listener.local_addr().unwrap().port(), is_deaf: Arc::default(), lost: Arc::default() };
        let (is_deaf, lost) = (Arc::clone(&line.is_deaf), Arc::clone(&line.lost));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // The server may be away.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let (mut asks, mut hears) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (is_deaf, lost) = (Arc::clone(&is_deaf), Arc::clone(&lost));
                thread::spawn(move || {
                    let _ = std::io::copy(&mut asks, &mut hears);
                    let _ = hears.shutdown(Shutdown::Both);
                });
                thread::spawn(move || answer(server, client, &is_deaf, &lost));
            }
        });
        line
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn lose_answers(&self, length: Duration) {
        self.is_deaf.store(true, Ordering::Relaxed);
        thread::sleep(length);
        self.is_deaf.store(false, Ordering::Relaxed);
    }
}

fn answer(mut server: TcpStream, mut client: TcpStream, is_deaf: &AtomicBool, lost: &AtomicUsize) {
    let (mut bytes, mut was_deaf) = ([0; 16 << 10], false);
    while let Ok(count @ 1..) = server.read(&mut bytes) {
        if was_deaf && !is_deaf.load(Ordering::Relaxed) {
            break;
        }
        was_deaf = is_deaf.load(Ordering::Relaxed);
        if was_deaf {
            lost.fetch_add(String::from_utf8_lossy(&bytes[..count]).matches("{\"stream\":\"KV_ralph-nemesis\"").count(), Ordering::Relaxed);
        } else if client.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for end in [&server, &client] {
        let _ = end.shutdown(Shutdown::Both);
    }
}

/// A write's nonce begins with the name of who made it.
fn writer(job: &Job) -> Option<&str> {
    job.nonce.split(':').next()
}

fn tell(storm: &Storm, restarts: usize) {
    // Those who went on a moment ago find out at their next write.
    let until = Instant::now() + Duration::from_mins(1);
    let refused = || storm.store.read_log("refused").map_or(0, |lines| lines.len());
    while refused() == 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
    }
    let (kills, stops, refused) = (storm.kills, storm.stops, refused());
    println!("{kills} kills, {stops} stops, {restarts} restarts, {refused} stale writes refused");
    assert!(kills > 3 && stops > 1 && refused > 0, "the storm was too tame");
}

#[test]
fn f2_nemesis_dir() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_string_lossy();
    let mut storm = Storm::new(&place, &place);
    let until = Instant::now() + Duration::from_mins(2);
    while !storm.is_over() {
        assert!(Instant::now() < until, "{:#?}", storm.jobs());
        storm.strike();
        storm.release();
        thread::sleep(Duration::from_millis(150));
    }
    let mut histories = BTreeMap::new();
    for id in storm.jobs().into_keys() {
        let keys = folder.path().join("keys").join(key(JOB, &id));
        let count = fs::read_dir(&keys).unwrap().count();
        let read = |n: usize| serde_json::from_slice(&fs::read(keys.join(n.to_string())).unwrap()).unwrap();
        histories.insert(id, (1..=count).map(read).collect());
    }
    check(&histories, JOBS, writer);
    tell(&storm, 0);
}

#[test]
fn f2_nemesis_nats() {
    nemesis_nats(NatsVersion::Newest);
}

#[test]
fn f2_nemesis_nats_2_9() {
    nemesis_nats(NatsVersion::Oldest);
}

fn nemesis_nats(version: NatsVersion) {
    let server = match NatsServer::start(version, "") {
        Ok(server) => server,
        Err(skip) => return skip.tell(),
    };
    let line = Line::to(server.port());
    let mut storm = Storm::new(&line.url(), &server.url());
    let until = Instant::now() + Duration::from_mins(5);
    let (mut restarts, mut next) = (0, Instant::now() + Duration::from_secs(3));
    while !storm.is_over() {
        assert!(Instant::now() < until, "{:#?}", storm.jobs());
        storm.strike();
        if storm.dice.below(6) == 0 {
            line.lose_answers(Duration::from_millis(300));
        }
        if next < Instant::now() {
            server.kill();
            thread::sleep(Duration::from_millis(300));
            server.restart();
            restarts += 1;
            // Long enough for a lease in between: while the server is away nobody is gone.
            next = Instant::now() + LEASE * 3;
        }
        thread::sleep(Duration::from_millis(150));
    }
    check(&of_jobs(&server.url(), "nemesis"), JOBS, writer);
    tell(&storm, restarts);
    let lost = line.lost.load(Ordering::Relaxed);
    println!("{lost} writes whose answer was lost");
    assert!(lost > 0, "no answer was lost");
}
