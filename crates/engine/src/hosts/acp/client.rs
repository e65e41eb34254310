//! The client's side of ACP: JSON-RPC, one message on each line. `initialize`, `session/new`, perhaps a mode and a model, `session/prompt`; then the agent works
//! and asks, and its answer to the prompt is the end of the session.
//!
//! It is a [`Decode`] like the others, with a mouth: after each line, what is to be sent is taken from it. A log has the lines of both sides, ralph's behind `> `.

use std::{
    collections::VecDeque,
    path::PathBuf,
    time::{Duration, Instant},
};

use ralph_core::{
    judge::{
        ToolUse,
        session_outcome::{Cut, Outcome, Tokens, Trouble, Work},
    },
    text::parse_tolerant,
};
use serde_json::{Value, json};

use super::{
    permission::{Policy, is_allowed},
    tool_calls::ToolCalls,
};
use crate::{
    hosts::{
        Heard, Launch,
        agent_stream::{AgentStream, Says, text, tokens},
        prices::Prices,
        service_error,
        stream::{Decode, Exit, Line, why},
    },
    sys::{env, secrets},
};

/// The version of the protocol that ralph speaks.
const VERSION: u64 = 1;

/// Until then an agent has to be ready for its prompt. The slowest that we know needs half a minute on a busy machine.
const HANDSHAKE: Duration = Duration::from_mins(3);

/// After its last answer an agent has nothing to wait for: its input is closed.
const PATIENCE: Duration = Duration::from_secs(3);

/// So many requests wait for an answer.
const MOST_ASKED: usize = 256;

/// The numbers of ralph's requests, in their order.
const INITIALIZE: u64 = 1;
const NEW: u64 = 2;
const MODE: u64 = 3;
const MODEL: u64 = 4;
const PROMPT: u64 = 5;

/// They tell an error of their model's service as a message of the model's, which begins so, and then no tokens.
const ERRORS_AS_WORDS: [(&str, &str); 2] = [("Copilot", "Error: "), ("hermes-agent", "HTTP ")];

/// JSON-RPC's code for an unknown method, and ACP's for an agent that is not signed in.
const NO_SUCH_METHOD: i64 = -32601;
const SIGN_IN: i64 = -32000;

/// One session over ACP.
pub(crate) struct AcpClient {
    stream: AgentStream,
    /// `None`: only a log is read.
    live: Option<Live>,
    session: Option<String>,
    calls: ToolCalls,
    /// Requests for permission without an answer: their ids, their calls, their options.
    asked: VecDeque<(Value, String, Value)>,
    has_denied: bool,
    /// The last of ralph's requests that was answered.
    answered: u64,
    /// What is said before the prompt is no answer to it.
    is_prompted: bool,
    errors_begin: Option<&'static str>,
    /// The agent's words belong to this message.
    message: Option<String>,
    is_thinking: bool,
    usd: f64,
    context: Option<(u64, u64)>,
    /// How it ended, if not as the stream says.
    ended: Option<Outcome>,
}

/// What the client has to say.
struct Live {
    policy: Option<Policy>,
    folder: PathBuf,
    prompt: String,
    /// The model to ask for by the protocol, and the request for it, once it is known how.
    model: Option<String>,
    model_request: Option<(&'static str, Value)>,
    begun: Instant,
    out: Vec<Value>,
}

impl AcpClient {
    /// `sets_model`: the program has no option for it.
    pub(crate) fn new(launch: &Launch<'_>, sets_model: bool) -> Self {
        let live = Live {
            policy: launch.permission_mode.map(|mode| Policy::of(Some(mode))),
            folder: launch.folder.to_owned(),
            prompt: launch.prompt.to_owned(),
            model: launch.model.filter(|_| sets_model).map(str::to_owned),
            model_request: None,
            begun: Instant::now(),
            out: Vec::new(),
        };
        AcpClient { live: Some(live), ..AcpClient::over(AgentStream::new(|_, _| (), launch)) }
    }

    /// Reads a log.
    pub(crate) fn of_log() -> Self {
        let prices = Prices::default();
        AcpClient::over(AgentStream::new(|_, _| (), &Launch::of_log(&prices)))
    }

    fn over(stream: AgentStream) -> Self {
        AcpClient {
            stream,
            live: None,
            session: None,
            calls: ToolCalls::default(),
            asked: VecDeque::new(),
            has_denied: false,
            answered: 0,
            is_prompted: false,
            errors_begin: None,
            message: None,
            is_thinking: false,
            usd: 0.0,
            context: None,
            ended: None,
        }
    }

    fn send(&mut self, id: u64, method: &str, params: &Value) {
        if let Some(live) = &mut self.live {
            live.out.push(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        }
    }

    fn take(&mut self, message: &Value, told: &mut Vec<Heard>) {
        let mut says = Vec::new();
        match (message["method"].as_str(), message.get("id").filter(|id| !id.is_null())) {
            (Some("session/update"), _) => self.update(&message["params"], &mut says, told),
            (Some("session/request_permission"), Some(id)) => self.asks(id, &message["params"], &mut says),
            (Some(method), Some(id)) => {
                let error = json!({"code": NO_SUCH_METHOD, "message": format!("ralph has no method {method}")});
                self.answer(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            (None, Some(id)) => self.answered(id.as_u64().unwrap_or_default(), message, &mut says),
            // A notification of the agent's own.
            _ => {}
        }
        self.say(says, told);
    }

    fn say(&mut self, says: Vec<Says>, told: &mut Vec<Heard>) {
        for says in says {
            self.stream.take(says, told);
        }
    }

    fn answer(&mut self, answer: Value) {
        if let Some(live) = &mut self.live {
            live.out.push(answer);
        }
    }

    /// Something happens in the session.
    fn update(&mut self, params: &Value, says: &mut Vec<Says>, told: &mut Vec<Heard>) {
        // A session within the session is not ours.
        if self.session.as_deref().is_some_and(|session| params["sessionId"] != session) {
            return;
        }
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if kind == "agent_thought_chunk" {
            if !std::mem::replace(&mut self.is_thinking, true) {
                told.push(Heard::Thinking);
            }
            return;
        }
        match kind {
            "agent_message_chunk" if self.is_prompted => self.words(update, says),
            "tool_call" | "tool_call_update" => self.calls.update(update, says),
            "usage_update" => self.context(update, says),
            _ => return,
        }
        self.is_thinking = false;
    }

    fn words(&mut self, update: &Value, says: &mut Vec<Says>) {
        let message = update["messageId"].as_str().map(str::to_owned);
        if message.is_some() && message != self.message {
            says.push(Says::MessageEnds);
            self.message = message;
        }
        if update["content"]["type"] == "text" && update["content"]["text"] != "" {
            says.push(Says::Piece(text(&update["content"], "text")));
        }
        // Qwen Code tells it after each answer of its model.
        if update["_meta"]["usage"].is_object() {
            says.push(Says::Used { model: None, tokens: used(&update["_meta"]["usage"]), usd: None, in_all: false });
        }
    }

    /// How full the context is, and the money until now. It is told between messages: Codex's warnings and its answer have nothing else between them.
    fn context(&mut self, update: &Value, says: &mut Vec<Says>) {
        says.push(Says::MessageEnds);
        if let (Some(used), Some(size)) = (update["used"].as_u64(), update["size"].as_u64()) {
            self.context = Some((used, size)).filter(|_| size > 0);
        }
        let cost = &update["cost"];
        let usd = cost["amount"].as_f64().filter(|usd| cost["currency"] == "USD" && *usd > self.usd && usd.is_finite());
        if let Some(usd) = usd {
            let more = usd - std::mem::replace(&mut self.usd, usd);
            says.push(Says::Used { model: None, tokens: Tokens::default(), usd: Some(more), in_all: false });
        }
    }

    /// The agent asks whether it may call a tool.
    fn asks(&mut self, id: &Value, params: &Value, says: &mut Vec<Says>) {
        let call = self.calls.asked_about(&params["toolCall"], says);
        let options = params["options"].clone();
        if self.asked.len() >= MOST_ASKED {
            self.asked.pop_front();
        }
        self.asked.push_back((id.clone(), call.id().to_owned(), options.clone()));
        if let Some(live) = &mut self.live {
            let result = live.policy.unwrap_or(Policy::Nothing).answer(&options, &call, &live.folder);
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            self.sent(&answer, says);
            self.answer(answer);
        }
    }

    /// Ralph answered a request.
    fn sent(&mut self, answer: &Value, says: &mut Vec<Says>) {
        let Some(at) = self.asked.iter().position(|(id, ..)| *id == answer["id"]) else { return };
        let Some((_, call, options)) = self.asked.remove(at) else { return };
        if !is_allowed(&answer["result"], &options) {
            self.has_denied = true;
            self.calls.denied(&call, says);
        }
    }

    /// The agent answered one of ralph's requests. Each counts once, in their order.
    fn answered(&mut self, id: u64, message: &Value, says: &mut Vec<Says>) {
        if id <= self.answered || id > PROMPT || (id > NEW && self.session.is_none()) {
            return;
        }
        self.answered = id;
        let result = &message["result"];
        match message.get("error") {
            // It asks then, and is answered.
            Some(_) if id == MODE && self.live.as_ref().is_some_and(|live| live.policy == Some(Policy::Everything)) => {
                self.prompt_or_model();
            }
            Some(error) => self.fails(id, error, says),
            None => match id {
                INITIALIZE if result["protocolVersion"] != VERSION => {
                    let other = secrets::opening(&result["protocolVersion"].to_string(), 20);
                    self.cannot_start(format!("it speaks version {other} of ACP, and ralph speaks version {VERSION}"), says);
                }
                INITIALIZE => {
                    let name = &result["agentInfo"]["name"];
                    self.errors_begin = ERRORS_AS_WORDS.iter().find(|(agent, _)| name == agent).map(|(_, begin)| *begin);
                    let folder = self.live.as_ref().map(|live| live.folder.display().to_string());
                    self.send(NEW, "session/new", &json!({"cwd": folder, "mcpServers": []}));
                }
                NEW => self.begins(result, says),
                MODE => self.prompt_or_model(),
                MODEL => self.prompt(),
                _ => self.ends(result, says),
            },
        }
    }

    fn begins(&mut self, result: &Value, says: &mut Vec<Says>) {
        let Some(session) = result["sessionId"].as_str().filter(|id| !id.is_empty()) else {
            return self.cannot_start("it began no session".to_owned(), says);
        };
        self.session = Some(session.to_owned());
        let model = result["models"]["currentModelId"].as_str().map(str::to_owned);
        says.push(Says::Begins { session: self.session.clone(), model: model.filter(|_| !self.stream.has_model()) });
        let mode = self.live.as_ref().and_then(|live| live.policy?.session_mode(&result["modes"]));
        if let Some(live) = &mut self.live {
            live.ask_for_model(result);
        }
        match mode {
            Some(mode) => self.send(MODE, "session/set_mode", &json!({"sessionId": self.session, "modeId": mode})),
            None => self.prompt_or_model(),
        }
    }

    fn prompt_or_model(&mut self) {
        match self.live.as_mut().and_then(|live| live.model_request.take()) {
            Some((method, mut params)) => {
                params["sessionId"] = json!(self.session);
                self.send(MODEL, method, &params);
            }
            None => self.prompt(),
        }
    }

    fn prompt(&mut self) {
        let Some(live) = &mut self.live else { return };
        self.is_prompted = true;
        let prompt = json!([{"type": "text", "text": std::mem::take(&mut live.prompt)}]);
        self.send(PROMPT, "session/prompt", &json!({"sessionId": self.session, "prompt": prompt}));
    }

    /// The turn is over.
    fn ends(&mut self, result: &Value, says: &mut Vec<Says>) {
        let used = uses(result);
        let words = self.stream.text().filter(|text| used.is_empty() && self.errors_begin.is_some_and(|begin| text.starts_with(begin)));
        if let Some(message) = words {
            return says.push(Says::failed(message));
        }
        for (model, tokens) in used {
            says.push(Says::Used { model, tokens, usd: None, in_all: true });
        }
        says.push(Says::Ended);
        let failed = |trouble| Some(Outcome::Failed { trouble });
        self.ended = match result["stopReason"].as_str().unwrap_or_default() {
            "max_tokens" | "refusal" => failed(Trouble::Refused { status: None, too_long: false }),
            "max_turn_requests" => Some(Outcome::Cut { by: Cut::Turns }),
            // Some agents end their turn when they may not do what they want.
            "cancelled" if !self.has_denied => failed(Trouble::Crash { code: None, signal: None }),
            _ => None,
        };
    }

    fn fails(&mut self, id: u64, error: &Value, says: &mut Vec<Says>) {
        let code = error["code"].as_i64().unwrap_or(0);
        let data = match &error["data"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            data => data.to_string(),
        };
        let message = [text(error, "message"), data].join(" ").trim().to_owned();
        let status = u16::try_from(code).ok().filter(|status| (400..600).contains(status));
        let trouble = match service_error::trouble(status, &message) {
            None if code == SIGN_IN => Some(Trouble::SignIn { status: None }),
            None if id == MODEL => Some(Trouble::Model { name: None }),
            None if id < PROMPT => Some(Trouble::CannotStart { why: secrets::opening(&message, 300) }),
            trouble => trouble,
        };
        says.push(Says::Failed { message, status });
        self.ended = trouble.map(|trouble| Outcome::Failed { trouble });
    }

    fn cannot_start(&mut self, why: String, says: &mut Vec<Says>) {
        says.push(Says::failed(why.clone()));
        self.ended = Some(Outcome::Failed { trouble: Trouble::CannotStart { why } });
    }

    fn is_ready(&self) -> bool {
        self.session.is_some()
    }
}

impl Live {
    /// Finds out how the agent is asked for a model: by an option of the session, or by a method of its own.
    fn ask_for_model(&mut self, session: &Value) {
        let Some(model) = self.model.take() else { return };
        let mut options = session["configOptions"].as_array().into_iter().flatten();
        let option = options.find(|option| option["category"] == "model" || option["id"] == "model").map(|option| &option["id"]);
        self.model_request = Some(match option {
            Some(option) => ("session/set_config_option", json!({"configId": option, "value": model})),
            None => ("session/set_model", json!({"modelId": model})),
        });
    }
}

/// What a prompt used, by model where it is told.
fn uses(result: &Value) -> Vec<(Option<String>, Tokens)> {
    let meta = &result["_meta"];
    let gemini = meta["quota"]["model_usage"].as_array().into_iter().flatten();
    let gemini = gemini
        .map(|one| (one["model"].as_str().map(str::to_owned), tokens(&one["token_count"], ["input_tokens", "output_tokens", "", ""])));
    let grok = meta["usage"]["modelUsage"].as_object().into_iter().flatten();
    let grok = grok.map(|(model, usage)| (Some(model.clone()), used(usage)));
    let all = if result["usage"].is_object() { vec![(None, used(&result["usage"]))] } else { gemini.chain(grok).collect() };
    all.into_iter().filter(|(_, tokens)| tokens.total() > 0).collect()
}

/// Numbers of tokens in the protocol's words.
fn used(usage: &Value) -> Tokens {
    let mut tokens = tokens(usage, ["inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens"]);
    // Some count what comes from the cache as input, too.
    let is_within = usage["totalTokens"].as_u64().is_some_and(|total| total < tokens.total());
    if is_within {
        tokens.input = tokens.input.saturating_sub(tokens.cache_read.saturating_add(tokens.cache_written));
    }
    tokens
}

impl Decode for AcpClient {
    fn line(&mut self, line: &[u8], told: &mut Vec<Heard>) -> Line {
        if let Some(sent) = line.strip_prefix(b"> ").filter(|_| self.live.is_none()) {
            let mut says = Vec::new();
            self.is_prompted |= memchr::memmem::find(sent, b"\"session/prompt\"").is_some();
            if let Ok(answer) = parse_tolerant::<Value>(sent) {
                self.sent(&answer, &mut says);
            }
            self.say(says, told);
            return Line::Event;
        }
        match parse_tolerant::<Value>(line) {
            Ok(message) if message["jsonrpc"] == "2.0" => self.take(&message, told),
            _ => return Line::Plain,
        }
        Line::Event
    }

    fn first_words(&mut self) -> Option<Vec<u8>> {
        let client = json!({"name": "ralph", "title": "ralph", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let params = json!({"protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": client});
        self.send(INITIALIZE, "initialize", &params);
        Some(self.words_to_send().concat())
    }

    fn words_to_send(&mut self) -> Vec<Vec<u8>> {
        let out = self.live.as_mut().map(|live| std::mem::take(&mut live.out)).unwrap_or_default();
        out.into_iter().map(|message| format!("{message}\n").into_bytes()).collect()
    }

    fn cancel(&mut self) -> Vec<Vec<u8>> {
        if let (Some(session), Some(live), false) = (&self.session, &mut self.live, self.stream.is_over()) {
            live.out.push(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
        }
        self.words_to_send()
    }

    fn is_over(&self) -> bool {
        self.stream.is_over()
    }

    /// A program that is no ACP agent may wait for ever.
    fn is_stuck(&self) -> bool {
        let scale = u32::try_from(env::time_scale()).unwrap_or(1).max(1);
        !self.is_ready() && self.live.as_ref().is_some_and(|live| live.begun.elapsed() > HANDSHAKE / scale)
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn outcome(&self, exit: Exit, complaint: &str) -> Outcome {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        if self.is_ready() {
            return self.stream.outcome(exit, complaint);
        }
        let cannot_start = || {
            let what = if self.answered == 0 { "it did not answer as an ACP agent does" } else { "it began no session" };
            let words = match exit {
                Exit { code: None, signal: None } if complaint.trim().is_empty() => what.to_owned(),
                exit => format!("{what}: {}", why(exit.code.unwrap_or_default(), complaint)),
            };
            Trouble::CannotStart { why: words }
        };
        Outcome::Failed { trouble: service_error::trouble(None, complaint).unwrap_or_else(cannot_start) }
    }

    fn text(&self) -> Option<String> {
        self.stream.text()
    }

    fn tools(&self) -> ToolUse {
        self.stream.tools()
    }

    fn work(&self) -> Work {
        self.stream.work()
    }

    fn context(&self) -> Option<(u64, u64)> {
        self.context
    }
}
