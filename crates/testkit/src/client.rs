//! Installs and runs the real Claude Code client, in print mode or in a pseudo terminal, against a scripted model.
//!
//! The client comes from npm into a cache folder under the target folder, once per version. It runs in a sealed
//! project: no settings, credentials or traffic of the machine it runs on.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::{Value, json};

use crate::model_server::ModelServer;
use crate::nightly;
use crate::process::{Output, bounded_methods, command_methods, run_bounded};
use crate::project::{Project, Run};
use crate::pty::Pty;
use crate::skip::Skip;

const PACKAGE: &str = "@anthropic-ai/claude-code";

/// The key the client shows to the scripted model. Its last 20 characters are what the client asks approval for.
const KEY: &str = "sk-ant-test-00000000000000000000000000000000";

/// No traffic but to the scripted model, and no objection to root, which is who runs tests in a container.
const SEALED: [(&str, &str); 8] = [
    ("IS_SANDBOX", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_UPDATES", "1"),
    ("TERM", "xterm-256color"),
    // The client's engine would compile what runs for long, on further threads; a test is over before that pays.
    ("BUN_JSC_useDFGJIT", "0"),
];

/// The client versions under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The last one that npm gives to a machine with an older node.
    Older,
    Newest,
}

impl Version {
    pub const BOTH: [Self; 2] = [Self::Older, Self::Newest];

    /// For what is the same in every version: the newest one, and in the nightly run both.
    pub fn usual() -> &'static [Self] {
        nightly::amount(&[Self::Newest], &Self::BOTH)
    }

    pub fn number(self) -> &'static str {
        match self {
            Self::Older => "2.1.197",
            Self::Newest => "2.1.325",
        }
    }
}

/// An installed client. Who has one may run it: see [`Permit`].
#[derive(Debug, Clone)]
pub struct Client {
    pub version: Version,
    pub binary: PathBuf,
    _permit: Arc<Permit>,
}

/// Leave to run a client. There are two for each core: a client that starts takes most of one, and more of them at once only make each other late.
#[derive(Debug)]
pub(crate) struct Permit;

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

impl Permit {
    /// Waits for one. A test needs only one, however many clients it runs: two that each wait for a second one would wait for ever.
    pub(crate) fn take() -> Arc<Self> {
        thread_local!(static MINE: RefCell<Weak<Permit>> = const { RefCell::new(Weak::new()) });
        MINE.with_borrow_mut(|mine| {
            mine.upgrade().unwrap_or_else(|| {
                let all = 2 * std::thread::available_parallelism().map_or(2, usize::from);
                let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
                *GIVEN_BACK.wait_while(taken, |taken| *taken >= all).unwrap_or_else(PoisonError::into_inner) += 1;
                let permit = Arc::new(Self);
                *mine = Arc::downgrade(&permit);
                permit
            })
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        GIVEN_BACK.notify_one();
    }
}

impl Client {
    /// Finds the client in the cache or installs it there; `Skip` where it cannot be had.
    pub fn installed(version: Version) -> Result<Self, Skip> {
        // One attempt per process: a test file should not wait for an absent registry in every test.
        static FAILED: Mutex<[Option<Skip>; 2]> = Mutex::new([None, None]);
        let permit = Permit::take();
        let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = &mut failed[version as usize];
        if let Some(skip) = failed {
            return Err(skip.clone());
        }
        match install_claude(version) {
            Ok(binary) => Ok(Self { version, binary, _permit: permit }),
            Err(skip) => Err(failed.insert(skip).clone()),
        }
    }

    /// Prepares `claude -p <prompt>`.
    pub fn print(&self, project: &Project, server: &ModelServer, prompt: &str) -> PrintRun {
        let mut command = self.command(project, server);
        command.arg("-p");
        PrintRun { command, prompt: prompt.to_owned(), stdin: Vec::new(), timeout: Duration::from_mins(2), events: false }
    }

    /// Prepares the client's terminal interface.
    pub fn interactive(&self, project: &Project, server: &ModelServer) -> TuiRun {
        TuiRun { command: self.command(project, server), rows: 40, cols: 120 }
    }

    /// Prepares a sub-command of the client's own (`plugin …`), which asks no model.
    pub fn run(&self, project: &Project) -> Run {
        write_client_state(project);
        SEALED.iter().fold(project.run(&self.binary), |run, (name, value)| run.env(name, value))
    }

    fn command(&self, project: &Project, server: &ModelServer) -> Command {
        write_client_state(project);
        let mut command = project.command(&self.binary);
        command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", KEY).envs(SEALED);
        command
    }

    /// A program called `claude` that is this client, sealed as in [`Self::print`]: for tests of what starts a client by itself. Of the environment it
    /// passes on what is ralph's; `vars` come on top. Returns the program; its folder can be put on a path.
    pub fn as_program(&self, project: &Project, server: &ModelServer, sign_in: SignIn, vars: &[(&str, &str)]) -> PathBuf {
        write_client_state(project);
        let base_url = server.base_url();
        let sign_in = match sign_in {
            SignIn::Key => ("ANTHROPIC_API_KEY", KEY),
            SignIn::Subscription => ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-test"),
        };
        let own = SEALED.into_iter().chain([("ANTHROPIC_BASE_URL", base_url.as_str()), sign_in]).chain(vars.iter().copied());
        sealed_program(project, "claude", &[self.binary.as_path()], own)
    }
}

/// A program of that name in the home's `bin` that starts these words in a sealed environment, with ralph's own variables and these on top.
pub(crate) fn sealed_program<'a>(
    project: &Project,
    name: &str,
    start: &[&Path],
    vars: impl Iterator<Item = (&'a str, &'a str)>,
) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let sealed = project.env().into_iter().map(|(name, value)| format!("{}={}", name.display(), value.display()));
    let all: Vec<String> = sealed.chain(vars.map(|(name, value)| format!("{name}={value}"))).map(|var| quoted(&var)).collect();
    let of_ralph = ["RALPH_RUN", "RALPH_ITERATION", "RALPH_SESSION"].map(|name| format!("{name}=\"${name}\"")).join(" ");
    let start: Vec<String> = start.iter().map(|word| quoted(word.to_str().unwrap())).collect();
    let script = format!("#!/bin/sh\nexec env -i {} {of_ralph} {} \"$@\"\n", all.join(" "), start.join(" "));
    let folder = project.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// How the client is signed in. Only a subscription has a limit that says when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignIn {
    Key,
    Subscription,
}

/// What the client remembers of a person who has used it here before: no first-run dialogs, a trusted folder.
fn write_client_state(project: &Project) {
    let path = project.home().join(".claude.json");
    if path.exists() {
        return;
    }
    let folder = json!({
        "hasTrustDialogAccepted": true,
        "hasCompletedProjectOnboarding": true,
        "projectOnboardingSeenCount": 4,
    });
    let state = json!({
        "hasCompletedOnboarding": true,
        "lastOnboardingVersion": "99.0.0",
        "theme": "dark",
        "numStartups": 10,
        "bypassPermissionsModeAccepted": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {project.dir().to_str().unwrap(): folder},
    });
    fs::write(path, state.to_string()).unwrap();
}

/// A print-mode run in the making.
#[derive(Debug)]
pub struct PrintRun {
    command: Command,
    prompt: String,
    stdin: Vec<u8>,
    timeout: Duration,
    events: bool,
}

impl PrintRun {
    command_methods!();
    bounded_methods!();

    /// Lets tools run without asking.
    #[must_use]
    pub fn skip_permissions(self) -> Self {
        self.arg("--dangerously-skip-permissions")
    }

    /// Asks for `stream-json` output, hook events included.
    #[must_use]
    pub fn stream_json(mut self) -> Self {
        self.events = true;
        self.args(["--output-format", "stream-json", "--verbose", "--include-hook-events"])
    }

    pub fn output(mut self) -> PrintOutput {
        // After `--`, because some options (`--allowedTools`) swallow every word that follows them.
        if !self.prompt.is_empty() {
            self.command.arg("--").arg(&self.prompt);
        }
        let output = run_bounded(&mut self.command, &self.stdin, self.timeout);
        let events = if self.events { parse_lines(&output.stdout) } else { Vec::new() };
        PrintOutput { output, events }
    }
}

fn parse_lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What a print-mode run left.
#[derive(Debug, Clone)]
pub struct PrintOutput {
    pub output: Output,
    /// The `stream-json` events; empty if they were not asked for.
    pub events: Vec<Value>,
}

impl PrintOutput {
    /// The last event of a `stream-json` run.
    pub fn result(&self) -> Option<&Value> {
        self.events.iter().rfind(|event| event["type"] == "result")
    }
}

impl std::ops::Deref for PrintOutput {
    type Target = Output;

    fn deref(&self) -> &Output {
        &self.output
    }
}

/// A terminal session in the making.
#[derive(Debug)]
pub struct TuiRun {
    command: Command,
    rows: u16,
    cols: u16,
}

impl TuiRun {
    command_methods!();

    #[must_use]
    pub fn size(mut self, rows: u16, cols: u16) -> Self {
        (self.rows, self.cols) = (rows, cols);
        self
    }

    #[must_use]
    pub fn skip_permissions(self) -> Self {
        self.arg("--dangerously-skip-permissions")
    }

    /// Starts the client and waits for its prompt; a panic with the screen if it does not come.
    pub fn start(self) -> Tui {
        let tui = Tui { pty: Pty::spawn(self.command, self.rows, self.cols) };
        tui.expect("the prompt", Duration::from_secs(30), at_prompt);
        tui
    }
}

/// Whether the screen shows the client's input line.
pub fn at_prompt(screen: &str) -> bool {
    screen.lines().any(|line| line.trim_start().starts_with('❯'))
}

/// A running terminal session.
#[derive(Debug)]
pub struct Tui {
    pub pty: Pty,
}

impl Tui {
    /// Types a line and sends it.
    pub fn submit(&self, text: &str) {
        self.pty.send(text);
        // On a busy machine the client takes its time to read; what is typed twice before it has is one burst.
        let dense = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        let typed: String = dense(text).chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
        let _ = self.pty.wait_for(|screen| dense(screen).contains(&typed), Duration::from_secs(10));
        // The client takes a fast burst that ends in a line end for a paste; a person pauses before Enter.
        std::thread::sleep(Duration::from_millis(300));
        self.pty.send("\r");
    }

    pub fn escape(&self) {
        self.pty.send("\x1b");
    }

    pub fn screen(&self) -> String {
        self.pty.screen()
    }

    /// Waits until the screen satisfies `wanted`; a panic with the screen if it does not in time.
    pub fn expect(&self, what: &str, timeout: Duration, wanted: impl Fn(&str) -> bool) -> String {
        let reached = self.pty.wait_for(wanted, timeout);
        reached.unwrap_or_else(|screen| panic!("{what} did not come within {timeout:?}; the screen:\n{screen}"))
    }

    pub fn expect_text(&self, text: &str, timeout: Duration) -> String {
        self.expect(text, timeout, |screen| screen.contains(text))
    }
}

/// The cache folder, `<target>/claude-code` unless `RALPH_TEST_CACHE` names another one.
pub(crate) fn cache_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("RALPH_TEST_CACHE") {
        return dir.into();
    }
    // Cargo marks its target folder, wherever it was told to put it.
    let exe = std::env::current_exe().unwrap_or_default();
    let target = exe.ancestors().find(|dir| dir.join("CACHEDIR.TAG").exists());
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    target.map_or_else(default, Path::to_path_buf).join("claude-code")
}

/// The link in an installation that points to the client's native binary. It is made last: where it is, all is there.
const LINK: &str = "claude";

fn install_claude(version: Version) -> Result<PathBuf, Skip> {
    let package = format!("{PACKAGE}@{}", version.number());
    install_once(version.number(), &[&package], LINK, |dir| link_binary(dir, version))
}

/// Installs packages into a folder of the cache, unless `last` is there, which `finish` makes. Returns its path.
pub(crate) fn install_once(
    folder: &str,
    packages: &[&str],
    last: &str,
    finish: impl FnOnce(&Path) -> Result<(), Skip>,
) -> Result<PathBuf, Skip> {
    let cache = cache_dir();
    let place = cache.join(folder);
    let last = place.join(last);
    if last.exists() {
        return Ok(last);
    }
    let io = |error: std::io::Error| Skip(format!("the cache {} is not usable: {error}", cache.display()));
    fs::create_dir_all(&cache).map_err(io)?;
    let lock = File::create(cache.join(format!("{folder}.lock"))).map_err(io)?;
    lock.lock().map_err(io)?;
    // Another process may have finished it while this one waited for the lock.
    if last.exists() {
        return Ok(last);
    }
    let staging = tempfile::Builder::new().prefix("installing-").tempdir_in(&cache).map_err(io)?;
    npm_install(staging.path(), packages)?;
    finish(staging.path())?;
    let _ = fs::remove_dir_all(&place);
    fs::rename(staging.path(), &place).map_err(io)?;
    Ok(last)
}

pub(crate) fn npm_install(dir: &Path, packages: &[&str]) -> Result<(), Skip> {
    let npm = find_on_path("npm").ok_or_else(|| Skip("npm is not installed".to_owned()))?;
    let mut command = Command::new(npm);
    command
        .current_dir(dir)
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"])
        .args(["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--prefix"])
        .arg(dir)
        .args(packages);
    let output = run_bounded(&mut command, b"", Duration::from_mins(5));
    if output.success() {
        return Ok(());
    }
    let reason = output.stderr.lines().find(|line| !line.trim().is_empty());
    Err(Skip(format!("npm cannot install {}: {}", packages.join(" "), reason.unwrap_or("no reason given"))))
}

pub(crate) fn find_on_path(program: &str) -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Links the native binary that runs here: npm may have fetched one for each C library.
fn link_binary(dir: &Path, version: Version) -> Result<(), Skip> {
    let scope = dir.join("node_modules/@anthropic-ai");
    let folders = fs::read_dir(&scope).into_iter().flatten().flatten();
    let binary = folders
        .map(|folder| folder.path().join("claude"))
        .find(|binary| binary.is_file() && runs(&mut Command::new(binary), version.number()));
    let binary = binary.ok_or_else(|| Skip("no native client binary for this machine".to_owned()))?;
    let relative = binary.strip_prefix(dir).unwrap();
    std::os::unix::fs::symlink(relative, dir.join(LINK)).map_err(|error| Skip(format!("cannot link the client: {error}")))
}

/// Whether a program says that it is of that version.
pub(crate) fn runs(command: &mut Command, version: &str) -> bool {
    let home = tempfile::tempdir().unwrap();
    command.arg("--version").env_clear().env("HOME", home.path());
    let output = run_bounded(command, b"", Duration::from_mins(1));
    output.stdout.contains(version)
}
