//! What is special about a server: it can be out of reach, refuse, be full, be too old, start anew, and go back in time. Each is told in words that help,
//! and none of them makes a living worker look dead.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, reason = "tests")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nkeys::KeyPair;
use ralph_fleet::{
    change,
    store::{
        Changes, Cursor, Error, Holder, Put, Store,
        nats::{Access, Nats, Settings},
    },
};
use ralph_testkit::{NatsServer, NatsVersion};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer};

/// Unwraps what may be missing on this machine, or says so and ends the test.
macro_rules! or_skip {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(skip) => return skip.tell(),
        }
    };
}

fn settings(url: &str) -> Settings {
    Settings { lease: Duration::from_secs(2), patience: Duration::from_secs(1), ..Settings::new(url, "test") }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn holder(worker: &str) -> Holder<'_> {
    Holder { worker, key: "job.a", revision: 1 }
}

#[test]
fn f2_a_server_that_is_out_of_reach_is_named_without_its_password() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = Nats::open(settings(&format!("nats://me:secret@127.0.0.1:{port}"))).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    assert!(text.contains(&format!("nats://127.0.0.1:{port}")) && text.contains("nats-server -js") && !text.contains("secret"), "{text}");
}

#[test]
fn f2_an_address_that_is_none_is_refused() {
    let error = Nats::open(settings("nats://[oh no")).unwrap_err();
    assert!(matches!(&error, Error::Broken(text) if text.contains("nats://HOST:PORT")), "{error:?}");
    let error = Nats::open(Settings::new("nats://127.0.0.1:1", "My Fleet")).unwrap_err();
    assert!(matches!(&error, Error::Broken(text) if text.contains("My Fleet")), "{error:?}");
}

#[test]
fn f2_a_server_that_is_too_old_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // No such server can be installed here any more: this one only says that it is one.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let info = r#"{"server_id":"X","server_name":"X","version":"2.2.6","proto":1,"go":"go1","host":"127.0.0.1","port":1,"headers":true,"max_payload":1048576,"jetstream":true}"#;
            stream.write_all(format!("INFO {info}\r\n").as_bytes()).unwrap();
            let mut seen = Vec::new();
            let mut bytes = [0; 1024];
            while !String::from_utf8_lossy(&seen).contains("PING") {
                let count = stream.read(&mut bytes).unwrap();
                seen.extend_from_slice(&bytes[..count]);
            }
            stream.write_all(b"PONG\r\n").unwrap();
            thread::sleep(Duration::from_secs(5));
        }
    });
    let error = Nats::open(settings(&format!("nats://127.0.0.1:{port}"))).unwrap_err();
    assert!(matches!(&error, Error::Broken(text) if text.contains("2.2.6") && text.contains("2.9.0")), "{error:?}");
}

#[test]
fn f2_a_server_without_jetstream_is_named() {
    let server = or_skip!(NatsServer::start_with(NatsVersion::Newest, |_| String::new()));
    let error = Nats::open(settings(&server.url())).unwrap_err();
    assert!(matches!(&error, Error::Broken(text) if text.contains("-js")), "{error:?}");
}

/// A seed in a file of its own, and its public key.
fn nkey(folder: &Path, name: &str) -> (std::path::PathBuf, String) {
    let pair = KeyPair::new_user();
    let path = folder.join(name);
    fs::write(&path, format!("{}\n", pair.seed().unwrap())).unwrap();
    (path, pair.public_key())
}

fn with_nkey(server: &NatsServer, nkey: &Path) -> Settings {
    Settings { access: Access { nkey: Some(nkey.to_owned()), ..Access::default() }, ..settings(&server.url()) }
}

#[test]
fn f2_wrong_credentials_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (good, public) = nkey(folder.path(), "good");
    let (bad, _) = nkey(folder.path(), "bad");
    let server = or_skip!(NatsServer::start(NatsVersion::Newest, &format!("authorization {{ users: [ {{ nkey: {public} }} ] }}")));
    Nats::open(with_nkey(&server, &good)).unwrap().put_if("job.a", b"1", 0).unwrap();
    for settings in [with_nkey(&server, &bad), settings(&server.url()), settings(&server.url().replace("//", "//me:secret@"))] {
        let error = Nats::open(settings).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Denied(_)), "{error:?}");
        assert!(text.contains("NATS_NKEY") && !text.contains("secret"), "{text}");
    }
    let error = Nats::open(with_nkey(&server, &folder.path().join("none"))).unwrap_err();
    assert!(matches!(&error, Error::Broken(text) if text.contains("NATS_NKEY")), "{error:?}");
}

#[test]
fn f2_a_line_can_be_encrypted_and_both_ends_known() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    write("ca.pem", &params.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(params, key);
    for name in ["server", "worker"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        write(&format!("{name}.pem"), &certificate.pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
    let at = |name: &str| folder.path().join(name);
    let files = format!("cert_file: {:?}, key_file: {:?}, ca_file: {:?}", at("server.pem"), at("server.key"), at("ca.pem"));
    let server = or_skip!(NatsServer::start(NatsVersion::Newest, &format!("tls {{ {files}, verify: true }}")));
    let with = |access: Access| Nats::open(Settings { access, ..settings(&server.url()) });
    let known = Access { ca: Some(at("ca.pem")), cert: Some(at("worker.pem")), key: Some(at("worker.key")), ..Access::default() };
    with(known.clone()).unwrap().put_if("job.a", b"1", 0).unwrap();
    let error = with(Access { ca: None, ..known.clone() }).unwrap_err();
    assert!(error.to_string().contains("NATS_CA"), "{error:?}");
    let error = with(Access { key: None, ..known.clone() }).unwrap_err();
    assert!(error.to_string().contains("NATS_KEY"), "{error:?}");
    let error = with(Access { ca: Some(at("none.pem")), ..known }).unwrap_err();
    assert!(error.to_string().contains("none.pem") || error.to_string().contains("NATS_CA"), "{error:?}");
}

/// The server's file that `docs/fleet-server.md` shows, with real keys, without TLS, and with users who lack something.
fn documented(keys: &[(&str, &str)]) -> String {
    let page = include_str!("../../../docs/fleet-server.md");
    let file = page.split("```conf\n").nth(1).unwrap().split("```").next().unwrap();
    let mut file = file.lines().filter(|line| !line.starts_with("tls ")).collect::<Vec<_>>().join("\n");
    for (role, key) in keys {
        file = file.replace(&format!("nkey: {role},"), &format!("nkey: {key},"));
    }
    let blind = r#"{ user: blind, password: "x/@y", permissions: { publish: ["$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*"], subscribe: "_INBOX.>" } }"#;
    let deaf = r#"{ user: deaf, password: x, permissions: { publish: ">", subscribe: "nothing" } }"#;
    file.replace("/var/lib/nats", "store").replace("users: [", &format!("users: [\n  {blind}\n  {deaf}"))
}

#[test]
fn f2_what_is_not_allowed_is_told_with_the_servers_words() {
    let folder = tempfile::tempdir().unwrap();
    let keys = ["PERSON", "WORKER", "SCREEN"].map(|role| (role, nkey(folder.path(), role)));
    let public: Vec<(&str, &str)> = keys.iter().map(|(role, (_, public))| (*role, public.as_str())).collect();
    let server = or_skip!(NatsServer::start_with(NatsVersion::Newest, |_| documented(&public)));
    let named = |settings: Settings| Settings { fleet: "night".to_owned(), ..settings };
    let [person, worker, screen] = keys.map(|(_, (path, _))| Nats::open(named(with_nkey(&server, &path))).unwrap());
    for key in ["fleet", "ledger", "spec.a", "want", "want.a"] {
        person.put_if(key, b"1", 0).unwrap();
    }
    let hold = worker.hold("w-1").unwrap();
    for key in ["job.a", "account.claude"] {
        worker.put_if(key, b"1", 0).unwrap();
    }
    worker.append("events", "it began").unwrap();
    for (store, key) in [(&person, "job.b"), (&worker, "spec.b"), (&worker, "want"), (&screen, "want"), (&screen, "job.b")] {
        let error = store.put_if(key, b"2", 0).unwrap_err();
        let subject = format!("$KV.ralph-night.{key}");
        assert!(matches!(&error, Error::Denied(text) if text.contains(&subject) && text.contains("docs/fleet-server.md")), "{error:?}");
    }
    assert!(matches!(screen.append("events", "forged"), Err(Error::Denied(_))));
    // All may look.
    for store in [&person, &worker, &screen] {
        assert_eq!(store.list("").unwrap().len(), 7);
        assert_eq!(store.get("spec.a").unwrap().unwrap().value, b"1");
        assert_eq!(store.read_log("events").unwrap(), ["it began"]);
        assert!(!store.is_gone(holder("w-1")).unwrap());
    }
    drop(hold);
    let open = |user: &str| Nats::open(named(settings(&server.url().replace("//", &format!("//{user}@")))));
    let error = open("blind:x%2F%40y").unwrap().list("").unwrap_err();
    assert!(matches!(&error, Error::Denied(text) if text.contains("CONSUMER.CREATE")), "{error:?}");
    let error = open("deaf:x").unwrap_err();
    assert!(matches!(&error, Error::Denied(text) if text.contains("_INBOX")), "{error:?}");
}

/// An old server works, and a person is told that a newer one is safer.
#[test]
fn f2_an_old_server_is_told() {
    for (version, is_told) in [(NatsVersion::Oldest, true), (NatsVersion::Newest, false)] {
        let server = or_skip!(NatsServer::start(version, ""));
        let advice = Nats::open(settings(&server.url())).unwrap().advice();
        assert_eq!(advice.as_deref().is_some_and(|advice| advice.contains("2.12.7 or newer is safer")), is_told, "{advice:?}");
    }
}

#[test]
fn f2_a_full_server_says_so_and_nobody_loses() {
    let server =
        or_skip!(NatsServer::start_with(NatsVersion::Newest, |_| "jetstream { store_dir: store, max_file_store: 1MB }".to_owned()));
    let settings = Settings { log_bytes: 100_000, ..settings(&server.url()) };
    let store = Nats::open(settings).unwrap();
    let mine = store.put_if("job.a", b"1", 0).unwrap();
    let Put::Stored(revision) = mine else { panic!("nobody else writes") };
    let big = vec![b'x'; 100_000];
    let full = (0..100).find_map(|n| store.put_if(&format!("job.n{n}"), &big, 0).err()).expect("it takes everything");
    assert!(matches!(&full, Error::Full(text) if text.contains("max_file_store")), "{full:?}");
    let renewal = change::put(&store, "job.a", &big, revision);
    assert!(matches!(renewal, Err(Error::Full(_))), "a full server looks like a lost race: {renewal:?}");
    assert_eq!(store.get("job.a").unwrap().unwrap().value, b"1");
    let large = store.put_if("job.large", &vec![b'x'; 2_000_000], 0).unwrap_err();
    assert!(matches!(&large, Error::Broken(text) if text.contains("max_payload")), "{large:?}");
}

/// While the server is full no worker can renew its name. When there is space again, the first one to look must not take the jobs of those that live.
#[test]
fn f2_nobody_is_gone_because_the_server_was_full() {
    let server =
        or_skip!(NatsServer::start_with(NatsVersion::Newest, |_| "jetstream { store_dir: store, max_file_store: 1MB }".to_owned()));
    let settings = Settings { log_bytes: 100_000, ..settings(&server.url()) };
    let (store, other) = (Nats::open(settings.clone()).unwrap(), Nats::open(settings).unwrap());
    let holds = [store.hold("w-1").unwrap(), other.hold("w-2").unwrap()];
    for size in [100_000, 10_000, 1_000, 100, 1] {
        let is_full = (0..2_000).any(|n| store.put_if(&format!("job.s{size}-{n}"), &vec![b'x'; size], 0).is_err());
        assert!(is_full, "it takes everything");
    }
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        assert_eq!(other.is_gone(holder("w-1")), Ok(false), "while it was full");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(matches!(store.put_if("job.last", b"1", 0), Err(Error::Full(_))), "it was full all the time");
    purge(&server.url(), "$KV.ralph-test.job.>");
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        assert_eq!(other.is_gone(holder("w-1")), Ok(false), "when it had space again");
        thread::sleep(Duration::from_millis(5));
    }
    // And they are not there for ever.
    drop(holds);
    wait_for("it is gone", || other.is_gone(holder("w-1")).unwrap());
}

/// Deletes what a pattern names, as a person does who makes space.
fn purge(url: &str, subjects: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(url).await.unwrap());
        let stream = context.get_stream("KV_ralph-test").await.unwrap();
        let purged = stream.purge().filter(subjects).await.unwrap();
        assert!(purged.success && purged.purged > 0, "{purged:?}");
    });
}

const HOLDER: &str = "RALPH_FLEET_TEST_HOLDER";

/// Not a test: what a child process does.
#[test]
fn holds_a_name() {
    let Ok(url) = std::env::var(HOLDER) else { return };
    let store = Nats::open(settings(&url)).unwrap();
    let _hold = store.hold("w-1").unwrap();
    store.put_if("job.held", b"1", 0).unwrap();
    thread::sleep(Duration::from_mins(10));
}

#[test]
fn f2_a_worker_that_was_killed_is_gone_after_a_lease_and_not_before() {
    let server = or_skip!(NatsServer::start(NatsVersion::Newest, ""));
    let other = Nats::open(settings(&server.url())).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "holds_a_name"]).env(HOLDER, server.url()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut worker = command.spawn().unwrap();
    wait_for("it holds its name", || other.get("job.held").unwrap().is_some());
    thread::sleep(Duration::from_secs(3));
    assert!(!other.is_gone(holder("w-1")).unwrap(), "it renews its name");
    assert!(matches!(other.hold("w-1"), Err(Error::Denied(_))));
    worker.kill().unwrap();
    worker.wait().unwrap();
    let died = Instant::now();
    wait_for("it is gone", || other.is_gone(holder("w-1")).unwrap());
    // It wrote at most a quarter of a lease before.
    assert!(died.elapsed() > Duration::from_millis(1400), "{:?}", died.elapsed());
    let _taken = other.hold("w-1").unwrap();
    assert!(!other.is_gone(holder("w-1")).unwrap());
}

#[test]
fn f2_nobody_is_gone_because_the_server_was() {
    let server = or_skip!(NatsServer::start(NatsVersion::Newest, ""));
    let (store, other) = (Nats::open(settings(&server.url())).unwrap(), Nats::open(settings(&server.url())).unwrap());
    let _hold = store.hold("w-1").unwrap();
    let mut cursor = Cursor::default();
    assert_eq!(other.changes(&mut cursor).unwrap(), Changes::Unknown);
    let watched = |what: &str| {
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            assert!(!matches!(other.is_gone(holder("w-1")), Ok(true)), "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    server.signal("STOP");
    watched("while it stood still");
    assert!(matches!(other.get("job.a"), Err(Error::Unreachable(_))));
    server.signal("CONT");
    watched("when it went on");
    server.kill();
    watched("while it was away");
    assert!(matches!(other.put_if("job.a", b"1", 0), Err(Error::Unreachable(_))));
    server.restart();
    watched("when it was back");
    // Nothing is missed: the reader is told to look at everything.
    wait_for("it is back", || store.put_if("job.b", b"1", 0).is_ok());
    wait_for("all is told", || match other.changes(&mut cursor) {
        Ok(Changes::Unknown) => other.list("").is_ok_and(|all| all.iter().any(|(key, _)| key == "job.b")),
        Ok(Changes::Of(changed)) => changed.iter().any(|(key, _)| key == "job.b"),
        Err(_) => false,
    });
    assert_eq!(other.get("job.a").unwrap(), None, "what was refused was written later");
}

#[test]
fn f2_a_server_that_went_back_in_time_is_not_trusted() {
    let server = or_skip!(NatsServer::start(NatsVersion::Newest, ""));
    let (store, copy) = (Nats::open(settings(&server.url())).unwrap(), server.folder().join("copy"));
    store.put_if("job.a", b"1", 0).unwrap();
    server.kill();
    copy_folder(&server.folder().join("store"), &copy);
    server.restart();
    wait_for("it is back", || store.put_if("job.a", b"2", 1).is_ok());
    wait_for("it lists", || store.list("").is_ok());
    server.kill();
    fs::remove_dir_all(server.folder().join("store")).unwrap();
    fs::rename(&copy, server.folder().join("store")).unwrap();
    server.restart();
    wait_for("the worker notices", || matches!(store.put_if("job.a", b"3", 2), Err(Error::Broken(text)) if text.contains("older state")));
    let fresh = Nats::open(settings(&server.url())).unwrap();
    assert_eq!(fresh.put_if("job.a", b"3", 1).unwrap(), Put::Stored(2), "a worker that starts now may go on");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
