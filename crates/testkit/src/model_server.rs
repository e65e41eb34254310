//! A scripted Anthropic Messages API on the loopback interface, for the real client to talk to; other agents' clients find the API of their own service there.
//!
//! A script is a closure from request to reply, or a list of replies used up in order. Only the main conversation (and
//! its subagents) asks the script: the client's own side requests (session titles, quota probes, classifiers …) get a
//! harmless answer, so that a script need not know about them.

mod dialects;

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{EventStream, RawRequest, read_request, write_json};
use dialects::Dialect;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The conversation the person sees.
    Main,
    /// A subagent's conversation. It asks the script too.
    Subagent,
    /// A request of the client's own; it does not use up the script.
    Side,
}

/// One request for a message.
#[derive(Debug, Clone)]
pub struct Request {
    pub kind: Kind,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
    /// How many requests of the same kind came before this one.
    pub index: usize,
}

impl Request {
    pub fn is_main(&self) -> bool {
        self.kind == Kind::Main
    }

    pub fn messages(&self) -> &[Value] {
        ["messages", "input", "contents"].iter().find_map(|name| self.body[name].as_array()).map_or(&[], Vec::as_slice)
    }

    /// All text of the last user message, tool results included, one block per line.
    pub fn last_user_text(&self) -> String {
        let last = self.messages().iter().rfind(|m| m["role"] == "user");
        last.map_or_else(String::new, text_of)
    }

    /// All text of all messages: what the model knows. For "did this reach the model at all".
    pub fn all_text(&self) -> String {
        let all: Vec<String> = self.messages().iter().map(text_of).collect();
        all.join("\n")
    }

    pub fn system_text(&self) -> String {
        text_of(&self.body["system"])
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The text of a message or its content: a string, or blocks (of which tool results hold blocks again).
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => {
            let held = ["text", "content", "parts", "output", "functionResponse", "response"].iter().find_map(|name| block.get(*name));
            text_of(held.unwrap_or(&Value::Null))
        }
        _ => String::new(),
    }
}

/// One content block of a reply.
#[derive(Debug, Clone)]
enum Block {
    Text(String),
    Thinking(String),
    Tool { name: String, input: Value },
}

#[derive(Debug, Clone)]
struct ApiError {
    status: u16,
    kind: String,
    message: String,
}

/// Tokens that went into the cache, for five minutes and for an hour, and that came out of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cached {
    pub written_5m: u64,
    pub written_1h: u64,
    pub read: u64,
}

/// What the model answers.
#[derive(Debug, Clone)]
pub struct Reply {
    blocks: Vec<Block>,
    stop_reason: Option<String>,
    input_tokens: u64,
    output_tokens: u64,
    cached: Cached,
    delay: Duration,
    gate: Option<Gate>,
    error: Option<ApiError>,
    headers: Vec<(String, String)>,
}

impl Reply {
    /// No content at all; the start of a chain of `and_…`.
    pub fn empty() -> Self {
        Self {
            blocks: Vec::new(),
            stop_reason: None,
            input_tokens: 100,
            output_tokens: 10,
            cached: Cached::default(),
            delay: Duration::ZERO,
            gate: None,
            error: None,
            headers: Vec::new(),
        }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::empty().and_text(text)
    }

    /// Several text blocks in one message.
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        texts.into_iter().fold(Self::empty(), Self::and_text)
    }

    pub fn thinking(text: impl Into<String>) -> Self {
        Self::empty().and_thinking(text)
    }

    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::empty().and_tool(name, input)
    }

    /// The Bash tool, the commonest one in tests.
    pub fn bash(command: impl Into<String>) -> Self {
        Self::tool("Bash", json!({"command": command.into(), "description": "run a command"}))
    }

    /// An API error: status and error type, e.g. `(529, "overloaded_error")`. The client is told not to retry, but it
    /// does not always obey (2.1.325 tries a 400 five times more with fewer features, 2.1.197 retries a 529 as often as
    /// `CLAUDE_CODE_MAX_RETRIES` says): a script that must count should be a closure.
    pub fn error(status: u16, kind: impl Into<String>, message: impl Into<String>) -> Self {
        let mut reply = Self::empty().header("x-should-retry", "false");
        reply.error = Some(ApiError { status, kind: kind.into(), message: message.into() });
        reply
    }

    /// The account's five hours are used up until then, in seconds since the epoch. Only a client that is signed in with a subscription understands it.
    pub fn limit(resets_at: i64) -> Self {
        Self::error(429, "rate_limit_error", "This request would exceed your account's rate limit.")
            .header("anthropic-ratelimit-unified-status", "rejected")
            .header("anthropic-ratelimit-unified-reset", resets_at.to_string())
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
    }

    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Text(text.into()));
        self
    }

    #[must_use]
    pub fn and_thinking(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Thinking(text.into()));
        self
    }

    #[must_use]
    pub fn and_tool(mut self, name: impl Into<String>, input: Value) -> Self {
        self.blocks.push(Block::Tool { name: name.into(), input });
        self
    }

    #[must_use]
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.input_tokens = input_tokens;
        self.output_tokens = output_tokens;
        self
    }

    #[must_use]
    pub fn cached(mut self, cached: Cached) -> Self {
        self.cached = cached;
        self
    }

    /// Waits before it answers at all.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Stops in mid-stream (half of the first block is out) until the gate is opened, the client hangs up, or the
    /// server is dropped.
    #[must_use]
    pub fn hang(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// `end_turn` or `tool_use` unless told, by what the message holds.
    #[must_use]
    pub fn stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// A response header, e.g. for rate limits.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Holds a reply in mid-stream; clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    reached: bool,
    open: bool,
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the reply go on.
    pub fn release(&self) {
        self.0.0.lock().unwrap().open = true;
        self.0.1.notify_all();
    }

    /// Waits until a reply hangs here; false if that did not happen in time.
    pub fn wait_reached(&self, timeout: Duration) -> bool {
        let state = self.0.0.lock().unwrap();
        let waited = self.0.1.wait_timeout_while(state, timeout, |s| !s.reached);
        waited.unwrap().0.reached
    }

    fn reach(&self) {
        self.0.0.lock().unwrap().reached = true;
        self.0.1.notify_all();
    }

    fn wait_open(&self, timeout: Duration) -> bool {
        let state = self.0.0.lock().unwrap();
        let waited = self.0.1.wait_timeout_while(state, timeout, |s| !s.open);
        waited.unwrap().0.open
    }
}

type Script = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

struct Shared {
    script: Script,
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    ids: AtomicUsize,
    stop: AtomicBool,
}

/// The server; it listens until it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<thread::JoinHandle<()>>,
}

impl std::fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ModelServer {
    /// Asks `script` for every main and subagent request; it runs on the connection's own thread.
    pub fn with(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            arrived: Condvar::new(),
            ids: AtomicUsize::new(1),
            stop: AtomicBool::new(false),
        });
        let for_thread = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accept(&listener, &for_thread));
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// Gives the replies in order; after the last one every request gets the text "(end of script)".
    pub fn scripted(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        let next = AtomicUsize::new(0);
        Self::with(move |_| {
            let at = next.fetch_add(1, Ordering::SeqCst);
            let reply = replies.get(at).cloned();
            reply.unwrap_or_else(|| Reply::text("(end of script)"))
        })
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request for a message so far, side requests included.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The requests of the main conversation so far.
    pub fn main_requests(&self) -> Vec<Request> {
        let mut all = self.requests();
        all.retain(Request::is_main);
        all
    }

    /// Waits until the main conversation has asked `count` times; false if that did not happen in time.
    pub fn wait_for_main(&self, count: usize, timeout: Duration) -> bool {
        let requests = self.shared.requests.lock().unwrap();
        let enough = |all: &Vec<Request>| all.iter().filter(|r| r.is_main()).count() >= count;
        let waited = self.shared.arrived.wait_timeout_while(requests, timeout, |all| !enough(all)).unwrap();
        enough(&waited.0)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // `accept` blocks; one last connection lets it see the flag.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || serve(&stream, &shared));
    }
}

/// Serves one connection until the client closes it; a broken connection is the client's business, not ours.
fn serve(stream: &TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(raw) = read_request(&mut reader) {
        if shared.stop.load(Ordering::SeqCst) || answer(&mut writer, &raw, shared).is_err() {
            return;
        }
    }
}

fn answer(out: &mut impl Write, raw: &RawRequest, shared: &Shared) -> std::io::Result<()> {
    let path = raw.path.split('?').next().unwrap_or_default();
    match (raw.method.as_str(), path) {
        ("POST", "/v1/messages") => answer_message(out, raw, shared, None),
        ("POST", path) if Dialect::of(path).is_some() => answer_message(out, raw, shared, Dialect::of(path)),
        ("POST", "/v1/messages/count_tokens") => write_json(out, 200, &[], r#"{"input_tokens":100}"#, false),
        ("HEAD" | "GET", "/") => write_json(out, 200, &[], "{}", raw.method == "HEAD"),
        _ => {
            let body = error_body("not_found_error", &format!("no such path: {path}"));
            write_json(out, 404, &[], &body, raw.method == "HEAD")
        }
    }
}

/// In the words of the Messages API, unless it is another service that is asked.
fn answer_message(out: &mut impl Write, raw: &RawRequest, shared: &Shared, dialect: Option<Dialect>) -> std::io::Result<()> {
    let Ok(body) = serde_json::from_slice::<Value>(&raw.body) else {
        let body = error_body("invalid_request_error", "the body is no JSON");
        return write_json(out, 400, &[], &body, false);
    };
    let kind = dialect.map_or_else(|| kind_of(raw, &body), |dialect| dialect.kind_of(&body));
    let request = record(raw, body, kind, shared);
    let reply = match request.kind {
        Kind::Side => side_reply(&request),
        Kind::Main | Kind::Subagent => (shared.script)(&request),
    };
    wait(reply.delay, shared);
    let id = shared.ids.fetch_add(1, Ordering::SeqCst);
    let mut headers = reply.headers.clone();
    headers.push(("request-id".to_owned(), format!("req_{id:024}")));
    if let Some(error) = &reply.error {
        let body = error_body(&error.kind, &error.message);
        return write_json(out, error.status, &headers, &body, false);
    }
    if let Some(dialect) = dialect {
        return dialect.write(out, &request, &reply, id);
    }
    if request.body["stream"] == true {
        let stream = EventStream::open(out, &headers)?;
        stream_message(stream, &request, &reply, id, shared)
    } else {
        let body = whole_message(&request, &reply, id).to_string();
        write_json(out, 200, &headers, &body, false)
    }
}

fn record(raw: &RawRequest, body: Value, kind: Kind, shared: &Shared) -> Request {
    let mut requests = shared.requests.lock().unwrap();
    let request = Request {
        kind,
        path: raw.path.clone(),
        headers: raw.headers.clone(),
        body,
        index: requests.iter().filter(|r| r.kind == kind).count(),
    };
    requests.push(request.clone());
    shared.arrived.notify_all();
    request
}

/// Sleeps in small steps, so that a dropped server does not linger.
fn wait(delay: Duration, shared: &Shared) {
    let end = Instant::now() + delay;
    while Instant::now() < end && !shared.stop.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(10).min(end.saturating_duration_since(Instant::now())));
    }
}

/// Tells the client's conversations from its side requests, by what versions 2.1.197 and 2.1.325 really send: a
/// subagent names itself in a header; a title, quota probe or judge comes without tools; a compaction comes with the
/// main conversation's tools and may not use them.
fn kind_of(raw: &RawRequest, body: &Value) -> Kind {
    let no_tools = body["tools"].as_array().is_none_or(Vec::is_empty);
    if no_tools || body["max_tokens"] == 1 || is_compaction(body) {
        Kind::Side
    } else if raw.header("x-claude-code-agent-id").is_some() {
        Kind::Subagent
    } else {
        Kind::Main
    }
}

fn is_compaction(body: &Value) -> bool {
    // A hook's context may stand behind the instruction, in a message of the system's.
    let last = body["messages"].as_array().and_then(|all| all.iter().rfind(|m| m["role"] == "user"));
    last.is_some_and(|m| text_of(&m["content"]).contains("followed by a <summary> block"))
}

fn side_reply(request: &Request) -> Reply {
    if is_compaction(&request.body) {
        Reply::text("<analysis>-</analysis>\n<summary>The conversation so far.</summary>")
    } else {
        Reply::text("ok")
    }
}

fn error_body(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

fn message(request: &Request, reply: &Reply, id: usize) -> Value {
    json!({
        "id": format!("msg_{id:024}"),
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": reply.input_tokens,
            "output_tokens": 1,
            "cache_creation_input_tokens": reply.cached.written_5m + reply.cached.written_1h,
            "cache_read_input_tokens": reply.cached.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": reply.cached.written_5m,
                "ephemeral_1h_input_tokens": reply.cached.written_1h,
            },
        },
    })
}

fn stop_reason(reply: &Reply) -> String {
    let tool = reply.blocks.iter().any(|b| matches!(b, Block::Tool { .. }));
    let default = if tool { "tool_use" } else { "end_turn" };
    reply.stop_reason.clone().unwrap_or_else(|| default.to_owned())
}

fn whole_message(request: &Request, reply: &Reply, id: usize) -> Value {
    let mut whole = message(request, reply, id);
    let blocks = reply.blocks.iter().enumerate();
    whole["content"] = blocks.map(|(at, block)| whole_block(block, id, at)).collect();
    whole["stop_reason"] = stop_reason(reply).into();
    whole["usage"]["output_tokens"] = reply.output_tokens.into();
    whole
}

fn whole_block(block: &Block, id: usize, at: usize) -> Value {
    match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Thinking(text) => {
            json!({"type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl"})
        }
        Block::Tool { name, input } => {
            let tool_id = format!("toolu_{id:020}{at:04}");
            json!({"type": "tool_use", "id": tool_id, "name": name, "input": input})
        }
    }
}

/// The block as it opens (no content yet) and the deltas that fill it.
fn streamed_block(block: &Block, id: usize, at: usize) -> (Value, Vec<Value>) {
    let mut start = whole_block(block, id, at);
    let deltas = match block {
        Block::Text(text) => {
            start["text"] = "".into();
            let (first, second) = halves(text);
            vec![json!({"type": "text_delta", "text": first}), json!({"type": "text_delta", "text": second})]
        }
        Block::Thinking(text) => {
            start["thinking"] = "".into();
            start["signature"] = "".into();
            vec![json!({"type": "thinking_delta", "thinking": text}), json!({"type": "signature_delta", "signature": "c2lnbmF0dXJl"})]
        }
        Block::Tool { input, .. } => {
            start["input"] = json!({});
            let input = input.to_string();
            let (first, second) = halves(&input);
            vec![json!({"type": "input_json_delta", "partial_json": first}), json!({"type": "input_json_delta", "partial_json": second})]
        }
    };
    (start, deltas)
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}

fn stream_message<W: Write>(
    mut stream: EventStream<'_, W>,
    request: &Request,
    reply: &Reply,
    id: usize,
    shared: &Shared,
) -> std::io::Result<()> {
    let start = json!({"type": "message_start", "message": message(request, reply, id)});
    stream.event(&start)?;
    for (at, block) in reply.blocks.iter().enumerate() {
        let (start, deltas) = streamed_block(block, id, at);
        stream.event(&json!({"type": "content_block_start", "index": at, "content_block": start}))?;
        for (step, delta) in deltas.into_iter().enumerate() {
            if at == 0 && step == 1 {
                hang(&mut stream, reply, shared)?;
            }
            stream.event(&json!({"type": "content_block_delta", "index": at, "delta": delta}))?;
        }
        stream.event(&json!({"type": "content_block_stop", "index": at}))?;
    }
    stream.event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
        "usage": {"output_tokens": reply.output_tokens},
    }))?;
    stream.event(&json!({"type": "message_stop"}))?;
    stream.close()
}

/// Keeps the stream open behind the reply's gate, if it has one. The pings are how we notice that the client left.
fn hang<W: Write>(stream: &mut EventStream<'_, W>, reply: &Reply, shared: &Shared) -> std::io::Result<()> {
    let Some(gate) = &reply.gate else { return Ok(()) };
    gate.reach();
    while !gate.wait_open(Duration::from_millis(50)) {
        if shared.stop.load(Ordering::SeqCst) {
            return Err(std::io::ErrorKind::ConnectionAborted.into());
        }
        stream.event(&json!({"type": "ping"}))?;
    }
    Ok(())
}
