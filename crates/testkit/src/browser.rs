//! The system's Chromium, without a window: opens pages, photographs them, and says what is wrong with how they look.
//!
//! It is driven over a pair of pipes (`--remote-debugging-pipe`), so it listens on no port, and ends when this process does.

mod base64;
mod looks;
mod page;
mod wire;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::find_on_path;
use crate::process::kill_tree;
use crate::skip::Skip;

pub use page::{Medium, Page, Theme};
use wire::Wire;

/// Debian's name, and those of others.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const FLAGS: [&str; 13] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
];

/// The protocol's ends are descriptors 3 and 4. The shell stays, because it removes the profile, however this process ends.
const SHELL: &str = r#"profile=$1; shift
"$@" 3<&0 4>&1 </dev/null >/dev/null 2>"$profile/stderr"
rm -rf "$profile""#;

/// A browser that runs; it ends on drop.
pub struct Browser {
    wire: Wire,
    shell: Mutex<Child>,
    profile: PathBuf,
}

impl Browser {
    /// Starts one. Where there is none, the test is told to be skipped, or fails, where `RALPH_REQUIRE_BROWSER=1` says that there must be one.
    pub fn start() -> Option<Self> {
        let found = NAMES.into_iter().find_map(find_on_path);
        let required = std::env::var_os("RALPH_REQUIRE_BROWSER").is_some_and(|value| value == "1");
        assert!(!required || found.is_some(), "RALPH_REQUIRE_BROWSER is set, but chromium is not installed");
        if found.is_none() {
            Skip("chromium is not installed".to_owned()).tell();
        }
        found.as_deref().map(Self::start_program)
    }

    /// The one that all tests of this process share: starting it takes seconds. It ends with the process.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: Mutex<Option<&'static Browser>> = Mutex::new(None);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        *shared = shared.or_else(|| Self::start().map(|browser| &*Box::leak(Box::new(browser))));
        *shared
    }

    /// An empty page, 1280×800, light, on a screen.
    pub fn page(&self) -> Page<'_> {
        Page::new(self)
    }

    /// Where it keeps what it knows.
    pub fn profile(&self) -> &Path {
        &self.profile
    }

    fn start_program(program: &Path) -> Self {
        let profile = tempfile::Builder::new().prefix("ralph-browser-").tempdir().unwrap().keep();
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SHELL, "sh"])
            .arg(&profile)
            .arg(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .env("HOME", &profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let wire = Wire::new(shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let browser = Self { wire, shell: Mutex::new(shell), profile };
        browser.call("Browser.getVersion", &json!({}));
        browser
    }

    /// Asks the browser itself.
    fn call(&self, method: &str, params: &Value) -> Value {
        self.ask(None, method, params)
    }

    /// Asks; what goes wrong is told with what the browser said on its standard error.
    fn ask(&self, session: Option<&str>, method: &str, params: &Value) -> Value {
        self.wire.ask(session, method, params).unwrap_or_else(|problem| self.fail(&problem))
    }

    fn fail(&self, problem: &str) -> ! {
        let said = fs::read_to_string(self.profile.join("stderr")).unwrap_or_default();
        panic!("the browser: {problem}; its last words:\n{}", said.lines().rev().take(5).collect::<Vec<_>>().join("\n"))
    }

    fn shell(&self) -> MutexGuard<'_, Child> {
        self.shell.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.wire.tell(None, "Browser.close", &json!({}));
        let patience = Instant::now() + Duration::from_secs(5);
        let mut shell = self.shell();
        while matches!(shell.try_wait(), Ok(None)) && Instant::now() < patience {
            thread::sleep(Duration::from_millis(10));
        }
        if matches!(shell.try_wait(), Ok(None)) {
            kill_tree(shell.id());
        }
        let _ = shell.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}
