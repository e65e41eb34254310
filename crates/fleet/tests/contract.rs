//! What every driver of the store must do. A new driver is right when these pass for it: add a line to `drivers!`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, reason = "tests")]

#[path = "common/histories.rs"]
mod histories;

use std::{
    any::Any,
    collections::BTreeSet,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ralph_fleet::store::{
    Changes, Cursor, Error, Holder, Put, Store,
    dir::Dir,
    memory::Memory,
    nats::{Nats, Settings},
};
use ralph_testkit::{NatsServer, NatsVersion, Skip};

/// A driver under test.
struct Driver {
    /// Each call gives another process's view of the same store.
    open: Open,
    /// As [`at`] opens it in another process; `None`: it is in this one alone.
    place: Option<String>,
    /// The values of a key that are still there, the oldest first.
    history: History,
    /// How long a holder may stand still before it counts as gone; `None`: for ever.
    lease: Option<Duration>,
    /// What it needs as long as it is used.
    _kept: Box<dyn Any>,
}

type History = Box<dyn Fn(&str) -> Vec<Vec<u8>>>;

type Open = Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// The lease of a server in these tests: long enough for a busy machine, short enough to wait for a worker that holds its name.
const LEASE: Duration = Duration::from_secs(10);

/// A store, by its place.
fn at(place: &str) -> Arc<dyn Store> {
    if !place.starts_with("nats://") {
        return Arc::new(Dir::open(Path::new(place)).unwrap());
    }
    Arc::new(Nats::open(Settings { lease: LEASE, timeout: Duration::from_secs(10), history: 64, ..Settings::new(place, "test") }).unwrap())
}

#[expect(clippy::unnecessary_wraps, reason = "all drivers are opened in one way")]
fn dir() -> Result<Driver, Skip> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let (place, keys) = (root.to_str().unwrap().to_owned(), root.join("keys"));
    let history = move |key: &str| {
        let count = std::fs::read_dir(keys.join(key)).unwrap().count();
        let value = |n: usize| std::fs::read(keys.join(key).join(n.to_string())).unwrap();
        // Every revision has its name. Old ones are emptied, but for what a killed writer did not live to empty.
        let kept = (1..=count).rev().take_while(|n| !value(*n).is_empty()).last().unwrap_or(count);
        (kept..=count).map(value).collect()
    };
    let open: Open = Box::new(move || Arc::new(Dir::open(&root).unwrap()));
    Ok(Driver { open, place: Some(place), history: Box::new(history), lease: None, _kept: Box::new(folder) })
}

#[expect(clippy::unnecessary_wraps, reason = "all drivers are opened in one way")]
fn memory() -> Result<Driver, Skip> {
    let store: Arc<Memory> = Arc::default();
    let kept = Arc::clone(&store);
    let open: Open = Box::new(move || Arc::clone(&store) as Arc<dyn Store>);
    Ok(Driver { open, place: None, history: Box::new(move |key| kept.history(key)), lease: None, _kept: Box::new(()) })
}

fn nats() -> Result<Driver, Skip> {
    on_server(NatsVersion::Newest)
}

fn nats_2_9() -> Result<Driver, Skip> {
    on_server(NatsVersion::Oldest)
}

fn on_server(version: NatsVersion) -> Result<Driver, Skip> {
    let server = NatsServer::start(version, "")?;
    let (url, place) = (server.url(), server.url());
    let history = move |key: &str| histories::of_keys(&url, "test").remove(key).unwrap_or_default();
    let (own, open) = (place.clone(), at as fn(&str) -> Arc<dyn Store>);
    Ok(Driver {
        open: Box::new(move || open(&own)),
        place: Some(place),
        history: Box::new(history),
        lease: Some(LEASE),
        _kept: Box::new(server),
    })
}

macro_rules! drivers {
    ($($driver:ident)*) => {$(
        mod $driver {
            drivers!(@ $driver
                f2_of_two_writers_one_wins
                f2_a_revision_is_never_given_twice
                f2_many_writers_lose_nothing
                f2_what_changed_is_told
                f2_keys_are_listed_by_prefix
                f2_lines_of_a_log_do_not_mix
                f2_a_holder_is_there_until_it_is_gone
                f2_what_is_no_key_is_refused
                f2_writers_that_are_killed_break_nothing
                f2_a_writer_that_stands_still_delays_nobody
            );
        }
    )*};
    (@ $driver:ident $($case:ident)*) => {$(
        #[test]
        fn $case() {
            match super::$driver() {
                Ok(driver) => super::$case(&driver),
                Err(skip) => skip.tell(),
            }
        }
    )*};
}

drivers! { dir memory nats nats_2_9 }

fn f2_of_two_writers_one_wins(Driver { open, .. }: &Driver) {
    let (a, b) = (open(), open());
    assert_eq!(a.get("job.x").unwrap(), None);
    let Put::Stored(first) = a.put_if("job.x", b"a", 0).unwrap() else { panic!("the first write is refused") };
    assert_eq!(b.put_if("job.x", b"b", 0).unwrap(), Put::Lost);
    let seen = b.get("job.x").unwrap().unwrap();
    assert_eq!((seen.revision, seen.value.as_slice()), (first, b"a".as_slice()));
    let Put::Stored(second) = b.put_if("job.x", b"b", first).unwrap() else { panic!("the revision was right") };
    assert!(second > first);
    assert_eq!(a.put_if("job.x", b"c", first).unwrap(), Put::Lost, "a stale writer");
    assert_eq!(a.get("job.x").unwrap().unwrap().value, b"b");
}

fn f2_a_revision_is_never_given_twice(Driver { open, .. }: &Driver) {
    let store = open();
    let mut given = BTreeSet::new();
    let mut revision = 0;
    for n in 0..300 {
        let Put::Stored(next) = store.put_if("ledger", n.to_string().as_bytes(), revision).unwrap() else { panic!("nobody else writes") };
        assert!(given.insert(next));
        revision = next;
    }
    // Nobody who slept since any of them gets through.
    let sleeper = open();
    for old in given.iter().copied().filter(|old| *old != revision) {
        assert_eq!(sleeper.put_if("ledger", b"stale", old).unwrap(), Put::Lost);
    }
    assert_eq!(store.get("ledger").unwrap().unwrap().value, b"299");
}

fn add_one(store: &dyn Store, key: &str) {
    loop {
        let entry = store.get(key).unwrap();
        let (revision, count) = entry.map_or((0, 0), |e| (e.revision, String::from_utf8(e.value).unwrap().parse::<u64>().unwrap()));
        if store.put_if(key, (count + 1).to_string().as_bytes(), revision).unwrap() != Put::Lost {
            return;
        }
    }
}

fn f2_many_writers_lose_nothing(Driver { open, .. }: &Driver) {
    thread::scope(|scope| {
        for _ in 0..8 {
            let store = open();
            scope.spawn(move || (0..40).for_each(|_| add_one(&*store, "ledger")));
        }
    });
    assert_eq!(open().get("ledger").unwrap().unwrap().value, b"320");
}

fn f2_what_changed_is_told(Driver { open, .. }: &Driver) {
    let (reader, writer) = (open(), open());
    let mut cursor = Cursor::default();
    assert_eq!(reader.changes(&mut cursor).unwrap(), Changes::Unknown, "the first look is at everything");
    let mut told = BTreeSet::new();
    for key in ["spec.a", "job.a", "job.b"] {
        writer.put_if(key, b"1", 0).unwrap();
        match reader.changes(&mut cursor).unwrap() {
            Changes::Of(changed) => told.extend(changed.into_iter().map(|(key, entry)| (key, entry.value))),
            // A driver may ask for a look at everything at any time.
            Changes::Unknown => told.extend(reader.list("").unwrap().into_iter().map(|(key, entry)| (key, entry.value))),
        }
        assert!(told.contains(&(key.to_owned(), b"1".to_vec())), "{key}: {told:?}");
    }
    if let Changes::Of(changed) = reader.changes(&mut cursor).unwrap() {
        assert!(changed.is_empty(), "{changed:?} were told");
    }
}

fn f2_keys_are_listed_by_prefix(Driver { open, .. }: &Driver) {
    let store = open();
    for key in ["spec.b", "spec.a", "want", "want.a", "job.a"] {
        store.put_if(key, key.as_bytes(), 0).unwrap();
    }
    let keys = |prefix: &str| {
        store.list(prefix).unwrap().into_iter().map(|(key, entry)| (key.into_bytes() == entry.value).to_string()).collect::<Vec<_>>().len()
    };
    assert_eq!((keys("spec."), keys("want"), keys("job."), keys("none"), keys("")), (2, 2, 1, 0, 5));
    let names: Vec<String> = store.list("spec.").unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(names, ["spec.a", "spec.b"]);
}

fn f2_lines_of_a_log_do_not_mix(Driver { open, .. }: &Driver) {
    assert!(open().read_log("events").unwrap().is_empty());
    thread::scope(|scope| {
        for writer in 0..8 {
            let store = open();
            scope.spawn(move || (0..50).for_each(|n| store.append("events", &format!("{writer} {n} {}", "x".repeat(200))).unwrap()));
        }
    });
    let (store, mut from) = (open(), 0);
    let lines = store.log_since("events", &mut from).unwrap();
    assert_eq!(lines.len(), 400);
    assert!(store.log_since("events", &mut from).unwrap().is_empty(), "nothing has come since");
    store.append("events", "one more").unwrap();
    assert_eq!(store.log_since("events", &mut from).unwrap(), ["one more"]);
    assert_eq!(store.read_log("events").unwrap().len(), 401);
    assert!(lines.iter().all(|line| line.ends_with(&"x".repeat(200))), "a line is torn");
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), 400);
}

fn f2_a_holder_is_there_until_it_is_gone(Driver { open, .. }: &Driver) {
    let (store, other) = (open(), open());
    let holder = Holder { worker: "w-1", key: "job.a", revision: 1 };
    let hold = store.hold("w-1").unwrap();
    assert!(!other.is_gone(holder).unwrap());
    assert!(matches!(other.hold("w-1"), Err(Error::Denied(_))), "two workers have one name");
    wait_for("nobody of this name was ever there", || other.is_gone(Holder { worker: "w-2", ..holder }).unwrap());
    drop(hold);
    // A driver may be late with it.
    wait_for("it gave its name up", || other.is_gone(holder).unwrap());
    let _again = other.hold("w-1").unwrap();
    assert!(!store.is_gone(holder).unwrap());
}

fn f2_what_is_no_key_is_refused(Driver { open, .. }: &Driver) {
    let store = open();
    for key in ["", "../x", "job/x", "job..x", "Job.x", "job.-x", "job.a b", ".x", &"x".repeat(100)] {
        let put = store.put_if(key, b"1", 0);
        assert!(matches!(put, Err(Error::Broken(_))), "“{key}” was taken for a key: {put:?}");
    }
}

// What only processes can show. A child runs this test program again, as a writer.

const WRITER: &str = "RALPH_FLEET_TEST_WRITER";

/// Not a test: what a child process does.
#[test]
fn writer() {
    let Ok(place) = std::env::var(WRITER) else { return };
    let store = at(&place);
    let _hold = store.hold(&format!("w-{}", std::process::id())).unwrap();
    loop {
        add_one(&*store, "job.count");
        store.append("events", "added").unwrap();
    }
}

fn start_writer(place: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "writer", "--nocapture"]).env(WRITER, place);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn count(store: &dyn Store) -> u64 {
    store.get("job.count").unwrap().map_or(0, |entry| String::from_utf8(entry.value).unwrap().parse().unwrap())
}

/// Every value is whole and one more than the one before: nothing was lost, nothing was counted twice.
fn nothing_is_lost(driver: &Driver) -> u64 {
    let values: Vec<u64> =
        (driver.history)("job.count").into_iter().map(|value| String::from_utf8(value).unwrap().parse().unwrap()).collect();
    assert!(values.len() > 20 && values.windows(2).all(|pair| pair[1] == pair[0] + 1), "{values:?}");
    assert_eq!(values.last(), Some(&count(&*(driver.open)())));
    values[values.len() - 1]
}

fn f2_writers_that_are_killed_break_nothing(driver: &Driver) {
    let Some(place) = &driver.place else { return };
    let store = (driver.open)();
    let mut workers = Vec::new();
    for _ in 0..25 {
        let before = count(&*store);
        let mut writers = [start_writer(place), start_writer(place)];
        wait_for("both write", || count(&*store) > before + 20);
        for writer in &mut writers {
            workers.push(format!("w-{}", writer.id()));
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
    }
    let last = nothing_is_lost(driver);
    // Whoever was told that it had written had written. The one write of each that nobody was told of may be there.
    let told = store.read_log("events").unwrap().len() as u64;
    assert!((last - 50..=last).contains(&told), "{told} of {last}");
    for worker in &workers {
        wait_for("it is gone", || store.is_gone(Holder { worker, key: "job.count", revision: 1 }).unwrap());
    }
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

#[cfg(not(unix))]
fn f2_a_writer_that_stands_still_delays_nobody(_: &Driver) {}

#[cfg(unix)]
fn f2_a_writer_that_stands_still_delays_nobody(driver: &Driver) {
    let Some(place) = &driver.place else { return };
    let store = (driver.open)();
    let mut sleeper = start_writer(place);
    wait_for("it writes", || count(&*store) > 5);
    signal(&sleeper, "STOP");
    let worker = format!("w-{}", sleeper.id());
    let is_gone = || store.is_gone(Holder { worker: &worker, key: "job.count", revision: 1 }).unwrap();
    let before = count(&*store);
    (0..500).for_each(|_| add_one(&*store, "job.count"));
    assert!(count(&*store) >= before + 500);
    match driver.lease {
        None => assert!(!is_gone(), "it only sleeps"),
        Some(_) => wait_for("it has slept for a lease", is_gone),
    }
    signal(&sleeper, "CONT");
    let after = count(&*store);
    wait_for("it goes on, with numbers that are new", || count(&*store) > after + 5);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    nothing_is_lost(driver);
}

#[test]
#[cfg(unix)]
fn f2_a_child_does_not_inherit_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = Dir::open(folder.path()).unwrap();
    let hold = store.hold("w-1").unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    drop(hold);
    // Another test's child has a copy for the moment between its fork and its exec.
    wait_for("the worker's child has not kept its name", || store.is_gone(Holder { worker: "w-1", key: "job.a", revision: 1 }).unwrap());
    assert!(child.try_wait().unwrap().is_none(), "the child lives");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
#[cfg(unix)]
fn f2_the_folder_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("fleet");
    let store = Dir::open(&root).unwrap();
    store.put_if("job.a", b"1", 0).unwrap();
    store.append("events", "x").unwrap();
    let mode = |path: &str| root.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(""), mode("keys"), mode("keys/job.a"), mode("keys/job.a/1"), mode("logs/events")),
        (0o700, 0o700, 0o700, 0o600, 0o600)
    );
}
