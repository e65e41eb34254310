//! One iteration of a job: a child `ralph run` in its slot, which ends when this process does.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use ralph_core::gate::Stream;
use ralph_engine::sys::{
    command::{Asked, Failure, Leave, Listener, Task},
    files, process,
};
use serde_json::Value;

use crate::{
    problem::{Problem, Result},
    slot::Slot,
};

/// How long a run that was asked to end may take before it is killed; it has to end its agent.
const GRACE: Duration = Duration::from_secs(30);

/// The largest log of one iteration.
const MOST_LOG: usize = 32 << 20;

/// A job's log that is longer is put aside, and the one before it goes.
const MOST_LOGS: u64 = 32 << 20;

/// How an iteration ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Iteration {
    /// The word of the event `ended`: `complete`, `enough`, `parked` …
    pub how: String,
    pub line: String,
    /// By this child.
    pub spent_usd: f64,
    /// Since the loop began.
    pub total_tokens: u64,
    /// When the last session says that it can go on, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// The ref of the last snapshot.
    pub snapshot: Option<String>,
    pub doubtful: bool,
    /// The account's quota is used up.
    pub is_used_up: bool,
    /// Iterations that were ruled on.
    pub rounds: u64,
    /// Its agent was started.
    pub began: bool,
    /// The number of that iteration in its loop.
    pub number: u64,
    /// What it complained about, where it ended without that event.
    pub stderr: String,
}

impl Iteration {
    /// Its agent began, and it did not live to tell the end.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.began && self.how.is_empty()
    }
}

/// The program `ralph`: beside this one, or on the PATH.
pub(crate) fn ralph() -> Result<PathBuf> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|own| Some(own.parent()?.join(format!("ralph{}", std::env::consts::EXE_SUFFIX))))
        .filter(|path| path.is_file());
    beside.or_else(|| process::which("ralph")).ok_or_else(|| Problem::new("the program `ralph` is neither beside this one nor on the PATH"))
}

/// What a child is run for.
pub(crate) struct Run<'a> {
    pub slot: &'a Slot,
    pub args: Vec<String>,
    /// Gets the events, one JSON object a line.
    pub log: &'a Path,
    /// Gets what the agent does now, in a few words.
    pub live: &'a (dyn Fn(&str) + Sync),
    /// Asked many times a second: whether it should end.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl Run<'_> {
    pub(crate) fn run(self) -> Result<Iteration> {
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let (hold, more) = mpsc::channel();
        let listener = {
            let heard = Arc::clone(&heard);
            Arc::new(move |stream: Stream, bytes: &[u8]| heard.lock().unwrap_or_else(PoisonError::into_inner).hear(stream, bytes))
                as Listener
        };
        let task = Task {
            program: ralph()?.into(),
            args: self.args.iter().map(OsString::from).collect(),
            folder: &self.slot.folder,
            vars: self.slot.vars(),
            hidden: ["CLAUDE_PROJECT_DIR", "RALPH_LOOP_DIR", "RALPH_RUN"].map(OsString::from).to_vec(),
            input: Vec::new(),
            limit: Duration::MAX,
            most_output: 0,
        };
        let told = std::cell::RefCell::new(String::new());
        let cancelled = || {
            let now = heard.lock().unwrap_or_else(PoisonError::into_inner).live.clone();
            if *told.borrow() != now {
                (self.live)(&now);
                *told.borrow_mut() = now;
            }
            (self.cancelled)()
        };
        let leave = Leave { cancelled: &cancelled, grace: GRACE, hurry: GRACE, asked: &|| Asked::ToEnd, leave_running: None };
        let ended = task.run_in_conversation(&listener, leave, more);
        drop(hold);
        let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
        // The log is for people: without it the work goes on.
        let _ = files::append_bounded(self.log, &heard.log, MOST_LOGS);
        match ended {
            Ok(_) | Err(Failure::Cancelled) => Ok(heard.into_iteration()),
            Err(Failure::CannotStart(e)) => Err(Problem::new(format!("`ralph` cannot be started: {e}"))),
            Err(Failure::TookTooLong) => Err(Problem::new("`ralph run` took too long")),
        }
    }
}

/// What a child said so far.
#[derive(Default)]
struct Heard {
    log: Vec<u8>,
    line: Vec<u8>,
    stderr: Vec<u8>,
    live: String,
    iteration: Iteration,
}

impl Heard {
    fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Err {
            let room = 4096_usize.saturating_sub(self.stderr.len()).min(bytes.len());
            self.stderr.extend_from_slice(&bytes[..room]);
            return;
        }
        let room = MOST_LOG.saturating_sub(self.log.len()).min(bytes.len());
        self.log.extend_from_slice(&bytes[..room]);
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            if let Ok(event) = serde_json::from_slice::<Value>(&line) {
                self.note(&event);
            }
        }
    }

    fn note(&mut self, event: &Value) {
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let it = &mut self.iteration;
        match event.get("event").and_then(Value::as_str) {
            Some("round") => {
                it.began = true;
                it.number = event.get("iteration").and_then(Value::as_u64).unwrap_or(0);
            }
            Some("agent") => {
                let words = [text("text"), text("tool") + " " + &text("what")].into_iter().find(|words| !words.trim().is_empty());
                if let Some(words) =
                    words.and_then(|words| words.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned()))
                {
                    self.live = words;
                }
            }
            Some("checking") => self.live = format!("checks {}", text("gate")),
            Some("ruled") => self.live = text("line"),
            Some("snapshot") => it.snapshot = Some(text("name")),
            Some("over") => {
                it.is_used_up = event.pointer("/outcome/trouble/trouble").is_some_and(|trouble| trouble == "limit");
                it.until_ms = event.pointer("/then/until").or_else(|| event.pointer("/then/at")).and_then(Value::as_i64);
            }
            Some("ended") => {
                it.how = text("how");
                it.line = text("line");
                it.spent_usd = event.get("spent_usd").and_then(Value::as_f64).unwrap_or(0.0);
                it.total_tokens = event.get("total_tokens").and_then(Value::as_u64).unwrap_or(0);
                it.rounds = event.get("rounds").and_then(Value::as_u64).unwrap_or(0);
                it.doubtful = event.get("doubtful").and_then(Value::as_bool).unwrap_or(false);
            }
            _ => {}
        }
    }

    fn into_iteration(self) -> Iteration {
        let stderr = String::from_utf8_lossy(&self.stderr).trim().to_owned();
        Iteration { stderr, ..self.iteration }
    }
}
