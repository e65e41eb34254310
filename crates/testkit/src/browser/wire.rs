//! The browser's protocol: JSON messages that end with a NUL, asked on one pipe and answered on the other, with events in between.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Everything that a browser is asked is answered sooner, even on a machine that is busy.
const LIMIT: Duration = Duration::from_mins(1);

/// Both pipes.
pub(super) struct Wire {
    input: Mutex<Input>,
    heard: Arc<Heard>,
}

struct Input {
    pipe: ChildStdin,
    last: u64,
}

#[derive(Default)]
struct Heard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    answers: HashMap<u64, Value>,
    /// What happened in which session, in order.
    events: Vec<Event>,
    is_over: bool,
}

/// Something that happened in a page.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) session: String,
    pub(super) method: String,
    pub(super) params: Value,
}

impl Wire {
    pub(super) fn new(pipe: ChildStdin, answers: ChildStdout) -> Self {
        let heard = Arc::<Heard>::default();
        let listener = Arc::clone(&heard);
        thread::spawn(move || listener.listen(answers));
        Self { input: Mutex::new(Input { pipe, last: 0 }), heard }
    }

    /// Sends a message without waiting for its answer; its number.
    pub(super) fn tell(&self, session: Option<&str>, method: &str, params: &Value) -> u64 {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.last += 1;
        let mut message = json!({ "id": input.last, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        // A browser that is gone is told where its answer is missed.
        let _ = input.pipe.write_all(format!("{message}\0").as_bytes()).and_then(|()| input.pipe.flush());
        input.last
    }

    /// The answer, or what is wrong.
    pub(super) fn ask(&self, session: Option<&str>, method: &str, params: &Value) -> Result<Value, String> {
        let id = self.tell(session, method, params);
        let mut answer = self.heard.wait(|state| state.answers.remove(&id)).map_err(|why| format!("{method}: {why}"))?;
        match answer.get("error") {
            Some(error) => Err(format!("{method}: {error}")),
            None => Ok(answer["result"].take()),
        }
    }

    /// The first event of a session that `wanted` says yes to, whether it has happened or is yet to.
    pub(super) fn event(&self, session: &str, wanted: impl Fn(&Event) -> bool) -> Result<(), String> {
        self.heard.wait(|state| state.events.iter().any(|event| event.session == session && wanted(event)).then_some(()))
    }

    /// What happened in a session.
    pub(super) fn events(&self, session: &str) -> Vec<Event> {
        self.heard.state().events.iter().filter(|event| event.session == session).cloned().collect()
    }

    /// What happened in a session so far is of no interest any more.
    pub(super) fn forget(&self, session: &str) {
        self.heard.state().events.retain(|event| event.session != session);
    }
}

impl Heard {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, answers: ChildStdout) {
        let mut reader = BufReader::new(answers);
        let mut bytes = Vec::new();
        while reader.read_until(0, &mut bytes).is_ok_and(|n| n > 0) {
            let message = serde_json::from_slice(bytes.strip_suffix(&[0]).unwrap_or(&bytes));
            self.note(message.unwrap_or_default());
            bytes.clear();
        }
        self.state().is_over = true;
        self.changed.notify_all();
    }

    fn note(&self, mut message: Value) {
        let mut state = self.state();
        if let Some(id) = message["id"].as_u64() {
            state.answers.insert(id, message);
        } else if let (Some(session), Some(method)) = (message["sessionId"].as_str(), message["method"].as_str()) {
            let event = Event { session: session.to_owned(), method: method.to_owned(), params: Value::Null };
            state.events.push(Event { params: message["params"].take(), ..event });
        }
        self.changed.notify_all();
    }

    fn wait<T>(&self, mut found: impl FnMut(&mut State) -> Option<T>) -> Result<T, String> {
        let until = Instant::now() + LIMIT;
        let mut state = self.state();
        loop {
            if let Some(found) = found(&mut state) {
                return Ok(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if state.is_over {
                return Err("it has ended".to_owned());
            } else if left.is_zero() {
                return Err(format!("nothing within {} s", LIMIT.as_secs()));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
