//! A scripted GitHub on the loopback interface, for the real `gh` to talk to.
//!
//! It is a small model, not a list of canned answers: pull requests, branches and checks lie behind a mutex and tests
//! change them while clients run. `gh` reaches it as it reaches the real one through a company's proxy: `CONNECT`, TLS
//! with a certificate of the test's own authority, HTTP/1.1 inside ([`GitHub::env`]). What the model does not know is
//! answered with 400 and kept in [`GitHub::unexpected`].

mod checks;
mod faults;
mod git;
mod graphql;
mod model;
mod tls;

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use checks::{BEGUN, Check, ENDED};
pub use faults::Fault;
pub use model::{Head, MERGED, OPENED, PullRequest};

use crate::http::{RawRequest, read_request, write_body};
use faults::Faults;
use graphql::{Document, Problem};
use model::Model;

const API: &str = "api.github.com";
const GIT: &str = "github.com";
/// Where job logs lie; the interface only points there.
const BLOBS: &str = "productionresultssa0.blob.core.windows.net";
/// The only token that is good.
pub const TOKEN: &str = "ghp_000000000000000000000000000000000000";

/// One request, as it was answered.
#[derive(Debug, Clone)]
pub struct Asked {
    pub at: Instant,
    pub host: String,
    pub method: String,
    pub path: String,
    /// The name of the GraphQL operation; empty for everything else.
    pub operation: String,
    pub variables: Value,
    /// What it was answered with; 0 where the answer was broken off.
    pub status: u16,
}

struct Shared {
    model: Mutex<Model>,
    faults: Mutex<Faults>,
    asked: Mutex<Vec<Asked>>,
    answered: Condvar,
    unexpected: Mutex<Vec<String>>,
    stop: AtomicBool,
    trusted: Arc<ServerConfig>,
    untrusted: Arc<ServerConfig>,
}

/// The hub; it listens until it is dropped.
pub struct GitHub {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<thread::JoinHandle<()>>,
    dir: TempDir,
}

impl std::fmt::Debug for GitHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitHub").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The life of the server.
impl GitHub {
    /// A hub with one repository, `owner/name`, without pull requests.
    pub fn start(repository: &str) -> Self {
        let dir = TempDir::with_prefix("ralph-github-").unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        let hosts = [API, GIT, BLOBS];
        let shared = Arc::new(Shared {
            model: Mutex::new(Model::new(repository)),
            faults: Mutex::default(),
            asked: Mutex::default(),
            answered: Condvar::new(),
            unexpected: Mutex::default(),
            stop: AtomicBool::new(false),
            trusted: tls::trusted(&dir.path().join("ca.pem"), &hosts),
            untrusted: tls::untrusted(&hosts),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let for_thread = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accept(&listener, &for_thread));
        Self { address, shared, acceptor: Some(acceptor), dir }
    }

    /// What a child process needs to speak to this hub and to nothing else.
    pub fn env(&self) -> Vec<(String, String)> {
        let mut env = self.env_without_token();
        env.push(("GH_TOKEN".to_owned(), TOKEN.to_owned()));
        env
    }

    /// The same for somebody who is not signed in.
    pub fn env_without_token(&self) -> Vec<(String, String)> {
        self.env_through(&format!("http://{}", self.address))
    }

    /// The same for a machine that reaches nothing: nobody listens at its proxy.
    pub fn env_offline(&self) -> Vec<(String, String)> {
        let mut env = self.env_through("http://127.0.0.1:1");
        env.push(("GH_TOKEN".to_owned(), TOKEN.to_owned()));
        env
    }

    fn env_through(&self, proxy: &str) -> Vec<(String, String)> {
        let place = |name: &str| self.dir.path().join(name).display().to_string();
        let pairs = [
            ("HTTPS_PROXY", proxy.to_owned()),
            ("NO_PROXY", String::new()),
            ("SSL_CERT_FILE", place("ca.pem")),
            ("GIT_SSL_CAINFO", place("ca.pem")),
            ("GH_CONFIG_DIR", place("gh")),
            // gh keeps answers there for a day, for whoever asks the same with the same token.
            ("TMPDIR", place("tmp")),
            ("GH_PROMPT_DISABLED", "1".to_owned()),
            ("GH_NO_UPDATE_NOTIFIER", "1".to_owned()),
            ("NO_COLOR", "1".to_owned()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// The certificate of the authority that signs for this hub.
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The repository, which tests may change at any time.
impl GitHub {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.shared.model.lock().unwrap()
    }

    /// `owner/name`.
    pub fn repository(&self) -> String {
        self.model().repository()
    }

    /// Takes its branches from a bare repository: a push there moves the heads here, a merge here moves the base there.
    pub fn follow(&self, bare: &Path) {
        self.model().bare = Some(bare.to_owned());
    }

    /// Opens a pull request of a branch of the repository itself, into `main`; returns its number. Where the hub follows a
    /// repository, its head is what was pushed there, if anything was.
    pub fn open(&self, branch: &str, oid: &str) -> u64 {
        self.model().open(branch, oid, Head::Here)
    }

    /// Opens one from a fork, `owner/name`.
    pub fn open_from_fork(&self, fork: &str, branch: &str, oid: &str) -> u64 {
        self.model().open(branch, oid, Head::Fork(fork.to_owned()))
    }

    /// Changes anything of a pull request.
    pub fn edit(&self, number: u64, change: impl FnOnce(&mut PullRequest)) {
        change(self.model().pull(number));
    }

    pub fn pull(&self, number: u64) -> PullRequest {
        let mut model = self.model();
        model.refresh();
        model.pull(number).clone()
    }

    /// All pull requests, in the order of their numbers.
    pub fn pulls(&self) -> Vec<PullRequest> {
        let mut model = self.model();
        model.refresh();
        model.pulls.clone()
    }

    pub fn close(&self, number: u64) {
        self.edit(number, |pull| {
            "CLOSED".clone_into(&mut pull.state);
            pull.updated_at = model::now();
        });
    }

    /// Merges it, as somebody at the web page would.
    pub fn merge(&self, number: u64) {
        let mut model = self.model();
        model.refresh();
        model.merge(number);
    }

    /// Moves a branch and the open pull requests that come from it. Not needed for a hub that follows a repository.
    pub fn push(&self, branch: &str, oid: &str) {
        self.model().moved(branch, oid);
    }

    /// Sets a check of a commit, or reports it anew.
    pub fn check(&self, oid: &str, check: Check) {
        self.model().check(oid, check);
    }

    pub fn pending(&self, oid: &str, name: &str) {
        self.check(oid, Check::run(name).pending());
    }

    pub fn passed(&self, oid: &str, name: &str) {
        self.check(oid, Check::run(name));
    }

    pub fn failed(&self, oid: &str, name: &str, log: &str) {
        self.check(oid, Check::run(name).failed().log(log));
    }

    pub fn forget_checks(&self, oid: &str) {
        self.model().forget_checks(oid);
    }

    /// The number of the job behind a check run of the workflow `CI`.
    pub fn job(&self, oid: &str, check: &str) -> u64 {
        self.model().job_of(oid, check).unwrap_or_else(|| panic!("{oid} has no check {check}"))
    }

    /// The branches, by name, with their commits.
    pub fn branches(&self) -> Vec<(String, String)> {
        let mut model = self.model();
        model.refresh();
        model.branches.clone().into_iter().collect()
    }
}

/// Faults, and what was asked.
impl GitHub {
    /// The next `times` requests fail so.
    pub fn fail(&self, fault: Fault, times: usize) {
        self.shared.faults.lock().unwrap().add(fault, None, times);
    }

    /// The same for one GraphQL operation.
    pub fn fail_on(&self, operation: &str, fault: Fault, times: usize) {
        assert!(!fault.is_of_connection(), "{fault:?} comes before the operation is known");
        self.shared.faults.lock().unwrap().add(fault, Some(operation), times);
    }

    /// Every request fails so, until [`Self::heal`].
    pub fn fail_always(&self, fault: Fault) {
        self.fail(fault, usize::MAX);
    }

    /// No more faults.
    pub fn heal(&self) {
        self.shared.faults.lock().unwrap().clear();
    }

    /// How many faults were given.
    pub fn faults_given(&self) -> usize {
        self.shared.faults.lock().unwrap().given
    }

    /// Every request so far, in the order of the answers.
    pub fn requests(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// How often a GraphQL operation was asked.
    pub fn count_of(&self, operation: &str) -> usize {
        self.shared.asked.lock().unwrap().iter().filter(|asked| asked.operation == operation).count()
    }

    /// Waits until the requests so far satisfy `wanted`; false if they do not in time.
    pub fn wait_until(&self, timeout: Duration, wanted: impl Fn(&[Asked]) -> bool) -> bool {
        let asked = self.shared.asked.lock().unwrap();
        let waited = self.shared.answered.wait_timeout_while(asked, timeout, |asked| !wanted(asked));
        !waited.unwrap().1.timed_out()
    }

    /// What was asked that the model does not know. A test that ends with something here has tested nothing.
    pub fn unexpected(&self) -> Vec<String> {
        self.shared.unexpected.lock().unwrap().clone()
    }
}

impl Drop for GitHub {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // `accept` blocks; one last connection lets it see the flag.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// An answer in the making.
#[derive(Debug, Clone)]
struct Response {
    status: u16,
    kind: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, kind: kind.to_owned(), headers: Vec::new(), body: body.into() }
    }

    fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json; charset=utf-8", body.to_string())
    }

    fn html(status: u16, body: &str) -> Self {
        Self::new(status, "text/html; charset=utf-8", body)
    }

    fn headers<'a>(mut self, headers: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        self.headers.extend(headers.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || connect(stream, &shared));
    }
}

/// Plays the proxy, then the host behind it.
fn connect(mut stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    // The client says nothing more until it has the proxy's answer, so nothing is lost with this reader.
    let Some(request) = read_request(&mut BufReader::new(&stream)) else { return };
    let host = request.path.trim_end_matches(":443");
    if request.method != "CONNECT" || ![API, GIT, BLOBS].contains(&host) {
        shared.unexpected.lock().unwrap().push(format!("{} {}", request.method, request.path));
        let _ = stream.write_all(b"HTTP/1.1 403 no such host here\r\ncontent-length: 0\r\n\r\n");
        return;
    }
    let fault = shared.faults.lock().unwrap().of_connection();
    if fault == Some(Fault::Refused) {
        let _ = stream.write_all(b"HTTP/1.1 502 connection refused\r\ncontent-length: 0\r\n\r\n");
        return;
    }
    if stream.write_all(b"HTTP/1.1 200 connection established\r\n\r\n").is_err() {
        return;
    }
    match fault {
        Some(Fault::Garbage) => {
            // After the client's hello: a reset for unread bytes would hide the garbage.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"this is no handshake, whatever it may be\r\n");
        }
        Some(_) => serve(host, stream, &shared.untrusted, shared),
        None => serve(host, stream, &shared.trusted, shared),
    }
}

/// Serves one connection until the client closes it; a broken connection is the client's business, not ours.
fn serve(host: &str, stream: TcpStream, config: &Arc<ServerConfig>, shared: &Shared) {
    let Ok(connection) = ServerConnection::new(Arc::clone(config)) else { return };
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    while let Some(raw) = read_request(&mut stream) {
        let at = Instant::now();
        let (operation, variables) = operation_of(&raw);
        let graphql = raw.path == "/graphql";
        let fault = shared.faults.lock().unwrap().of_request(&operation);
        if let Some(Fault::Slow(delay)) = &fault {
            wait(*delay, shared);
        }
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let instead = fault.as_ref().and_then(|fault| fault.response(&shared.model.lock().unwrap().repository(), graphql));
        let response = instead.unwrap_or_else(|| answer(host, &raw, shared));
        let whole = fault != Some(Fault::Truncated);
        let status = if whole { response.status } else { 0 };
        let asked = Asked { at, host: host.to_owned(), method: raw.method, path: raw.path, operation, variables, status };
        shared.asked.lock().unwrap().push(asked);
        shared.answered.notify_all();
        let out = stream.get_mut();
        if !whole {
            let half = &response.body[..response.body.len() / 2];
            let _ = write!(out, "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ncontent-length: {}\r\n\r\n", response.kind, response.body.len());
            let _ = out.write_all(half).and_then(|()| out.flush());
            return;
        }
        if write_body(out, response.status, &response.headers, &response.kind, &response.body).is_err() {
            return;
        }
    }
}

/// Sleeps in small steps, so that a dropped server does not linger.
fn wait(delay: Duration, shared: &Shared) {
    let begun = Instant::now();
    while begun.elapsed() < delay && !shared.stop.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(10).min(delay.saturating_sub(begun.elapsed())));
    }
}

/// The name and the variables of a GraphQL request.
fn operation_of(raw: &RawRequest) -> (String, Value) {
    let body: Value = serde_json::from_slice(&raw.body).unwrap_or_default();
    let name = body["query"].as_str().and_then(|query| Document::parse(query).ok()).map(|document| document.name);
    (name.unwrap_or_default(), body["variables"].clone())
}

fn answer(host: &str, raw: &RawRequest, shared: &Shared) -> Response {
    let mut model = shared.model.lock().unwrap();
    model.refresh();
    let response = if host == BLOBS {
        blob(raw, &model)
    } else if host == GIT {
        model.bare.as_ref().and_then(|bare| git::answer(raw, &model.repository(), bare))
    } else if !is_signed(raw) {
        Fault::BadCredentials.response("", false)
    } else if raw.path == "/graphql" {
        Some(graphql_answer(raw, &mut model))
    } else {
        rest(raw, &mut model)
    };
    let response = response.unwrap_or_else(|| unknown("no such path"));
    if response.status == 400 {
        let asked = format!(
            "{} {}{}: {}\n{}",
            raw.method,
            host,
            raw.path,
            String::from_utf8_lossy(&response.body),
            String::from_utf8_lossy(&raw.body)
        );
        shared.unexpected.lock().unwrap().push(asked);
    }
    response
}

fn unknown(why: &str) -> Response {
    Response::json(400, &json!({"message": format!("the scripted GitHub does not know this: {why}")}))
}

fn is_signed(raw: &RawRequest) -> bool {
    raw.header("authorization").and_then(|value| value.split_ascii_whitespace().last()) == Some(TOKEN)
}

fn graphql_answer(raw: &RawRequest, model: &mut Model) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&raw.body) else { return unknown("the body is no JSON") };
    let query = body["query"].as_str().unwrap_or_default();
    let document = match Document::parse(query) {
        Ok(document) => document,
        Err(why) => return unknown(&format!("{why} in {query}")),
    };
    match document.run(&body["variables"], &mut |kind, field, args| model.resolve(kind, field, args)) {
        Ok(data) => Response::json(200, &json!({"data": data})),
        Err(Problem::Refused(error)) => {
            let path = error["path"][0].as_str().unwrap_or_default();
            Response::json(200, &json!({"data": {path: null}, "errors": [error]}))
        }
        Err(Problem::Unknown(why)) => unknown(&format!("{why} in {query}")),
    }
}

/// The part of the older interface that clients still use; `None` for the rest of it.
fn rest(raw: &RawRequest, model: &mut Model) -> Option<Response> {
    let not_found = || Response::json(404, &json!({"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}));
    let path = raw.path.split('?').next()?;
    if path == "/" {
        return Some(Response::json(200, &json!({})).headers([("x-oauth-scopes", "gist, read:org, repo, workflow".to_owned())]));
    }
    let within = format!("/repos/{}/", model.repository());
    let Some(rest) = path.strip_prefix(&within) else { return path.starts_with("/repos/").then(not_found) };
    if let Some(branch) = rest.strip_prefix("git/refs/heads/").filter(|_| raw.method == "DELETE") {
        let branch = branch.replace("%2F", "/");
        let gone = || Response::json(422, &json!({"message": "Reference does not exist"}));
        return Some(if model.delete_branch(&branch) { Response::new(204, "application/json", "") } else { gone() });
    }
    let job: u64 = rest.strip_prefix("actions/jobs/")?.strip_suffix("/logs")?.parse().ok()?;
    let place = format!("https://{BLOBS}/actions-results/job-logs/{job}.txt?sig=0");
    let found = Response::new(302, "text/html", "").headers([("location", place)]);
    Some(model.log_of(job).map_or_else(not_found, |_| found))
}

fn blob(raw: &RawRequest, model: &Model) -> Option<Response> {
    let name = raw.path.strip_prefix("/actions-results/job-logs/")?;
    let job = name.split_once(".txt")?.0.parse().ok()?;
    Some(Response::new(200, "text/plain", model.log_of(job)?))
}
