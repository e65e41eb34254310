//! What every driver of the store must do. A new driver is right when these pass for it: add a line to `drivers!`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, reason = "tests")]

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
    /// What it needs as long as it is used.
    _kept: Box<dyn Any>,
}

type Open = Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

#[expect(clippy::unnecessary_wraps, reason = "all drivers are opened in one way")]
fn dir() -> Result<Driver, Skip> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    Ok(Driver { open: Box::new(move || Arc::new(Dir::open(&root).unwrap())), _kept: Box::new(folder) })
}

#[expect(clippy::unnecessary_wraps, reason = "all drivers are opened in one way")]
fn memory() -> Result<Driver, Skip> {
    let store: Arc<Memory> = Arc::default();
    Ok(Driver { open: Box::new(move || Arc::clone(&store) as Arc<dyn Store>), _kept: Box::new(()) })
}

fn nats() -> Result<Driver, Skip> {
    on_server(NatsVersion::Newest)
}

fn nats_2_9() -> Result<Driver, Skip> {
    on_server(NatsVersion::Oldest)
}

fn on_server(version: NatsVersion) -> Result<Driver, Skip> {
    let server = NatsServer::start(version, "")?;
    // Long enough for a busy machine, short enough to wait for a worker that holds its name.
    let settings = Settings { lease: Duration::from_secs(10), timeout: Duration::from_secs(10), ..Settings::new(&server.url(), "test") };
    Ok(Driver { open: Box::new(move || Arc::new(Nats::open(settings.clone()).unwrap())), _kept: Box::new(server) })
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
            );
        }
    )*};
    (@ $driver:ident $($case:ident)*) => {$(
        #[test]
        fn $case() {
            match super::$driver() {
                Ok(driver) => super::$case(&driver.open),
                Err(skip) => skip.tell(),
            }
        }
    )*};
}

drivers! { dir memory nats nats_2_9 }

fn f2_of_two_writers_one_wins(open: &Open) {
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

fn f2_a_revision_is_never_given_twice(open: &Open) {
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

fn f2_many_writers_lose_nothing(open: &Open) {
    thread::scope(|scope| {
        for _ in 0..8 {
            let store = open();
            scope.spawn(move || (0..40).for_each(|_| add_one(&*store, "ledger")));
        }
    });
    assert_eq!(open().get("ledger").unwrap().unwrap().value, b"320");
}

fn f2_what_changed_is_told(open: &Open) {
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

fn f2_keys_are_listed_by_prefix(open: &Open) {
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

fn f2_lines_of_a_log_do_not_mix(open: &Open) {
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

fn f2_a_holder_is_there_until_it_is_gone(open: &Open) {
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

fn f2_what_is_no_key_is_refused(open: &Open) {
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
    let Ok(root) = std::env::var(WRITER) else { return };
    let store = Dir::open(Path::new(&root)).unwrap();
    let _hold = store.hold(&format!("w-{}", std::process::id())).unwrap();
    loop {
        add_one(&store, "job.count");
        store.append("events", "added").unwrap();
    }
}

fn start_writer(root: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "writer", "--nocapture"]).env(WRITER, root);
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

#[test]
fn f2_writers_that_are_killed_break_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Dir::open(folder.path()).unwrap();
    let mut workers = Vec::new();
    for _ in 0..25 {
        let before = count(&store);
        let mut writers = [start_writer(folder.path()), start_writer(folder.path())];
        wait_for("both write", || count(&store) > before + 20);
        for writer in &mut writers {
            workers.push(format!("w-{}", writer.id()));
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
    }
    // Every revision has its name, whole and one more than the one before: nothing was lost, nothing was counted twice. Only old ones may be emptied.
    let last = store.get("job.count").unwrap().unwrap();
    assert_eq!(count(&store), last.revision);
    for n in 1..=last.revision {
        let value = std::fs::read_to_string(folder.path().join("keys/job.count").join(n.to_string())).unwrap();
        assert!(value == n.to_string() || (value.is_empty() && n + 64 <= last.revision), "{n}: {value}");
    }
    // Whoever was told that it had written had written. The one write of each that nobody was told of may be there.
    let told = store.read_log("events").unwrap().len() as u64;
    assert!((last.revision - 50..=last.revision).contains(&told), "{told} of {}", last.revision);
    for worker in &workers {
        assert!(store.is_gone(Holder { worker, key: "job.count", revision: 1 }).unwrap());
    }
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

#[test]
#[cfg(unix)]
fn f2_a_writer_that_stands_still_delays_nobody_and_is_not_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Dir::open(folder.path()).unwrap();
    let mut sleeper = start_writer(folder.path());
    wait_for("it writes", || count(&store) > 5);
    signal(&sleeper, "STOP");
    let worker = format!("w-{}", sleeper.id());
    let before = count(&store);
    (0..500).for_each(|_| add_one(&store, "job.count"));
    assert!(count(&store) >= before + 500);
    assert!(!store.is_gone(Holder { worker: &worker, key: "job.count", revision: 1 }).unwrap(), "it only sleeps");
    signal(&sleeper, "CONT");
    let after = count(&store);
    wait_for("it goes on, with numbers that are new", || count(&store) > after + 5);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(count(&store), store.get("job.count").unwrap().unwrap().revision);
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
