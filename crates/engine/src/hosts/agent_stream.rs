//! The output of agents other than Claude Code, one JSON document on each line. An agent's own file says what a line means, as [`Says`]; what follows from it is
//! the same for all of them.

use std::collections::{BTreeMap, VecDeque};

use ralph_core::{
    judge::{
        ToolUse, join_blocks,
        session_outcome::{Denied, Outcome, Tokens, Trouble, Work},
    },
    money::{self, Micros},
    text::{Masking, opening, parse_tolerant},
};
use serde_json::Value;

use super::{
    Heard,
    claude::denials,
    headless::Launch,
    prices::Prices,
    service_error,
    stream::{Decode, Exit, Line, without_result},
};
use crate::sys::secrets;

/// So many calls are remembered until they come back.
const MOST_CALLS: usize = 256;

/// So many denials of one session are told.
const MOST_DENIED: usize = 200;

/// So many errors in a row, and nothing else, are one that does not end.
const STUCK: u64 = 5;

/// The meaning of a line, or a part of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Says {
    Begins {
        session: Option<String>,
        model: Option<String>,
    },
    /// A whole message.
    Message(String),
    /// The next piece of one.
    Piece(String),
    /// The next piece is another's.
    MessageEnds,
    Tool {
        id: String,
        name: String,
        input: Value,
    },
    ToolEnded {
        id: String,
        failed: bool,
        denied: bool,
    },
    /// What was used, by a model if the line names it. `in_all`: by the whole session until now.
    Used {
        model: Option<String>,
        tokens: Tokens,
        usd: Option<f64>,
        in_all: bool,
    },
    Retry {
        attempt: u64,
        after_ms: u64,
        status: Option<u16>,
    },
    /// An error that the agent may get over.
    Error {
        message: String,
        status: Option<u16>,
    },
    /// The agent stopped by itself.
    Ended,
    /// It ended with an error.
    Failed {
        message: String,
        status: Option<u16>,
    },
}

/// Says what a line means.
pub(super) type Read = fn(&Value, &mut Vec<Says>);

type ByModel = BTreeMap<String, Tokens>;

/// What a session used, as a file of the agent's says, by the session's id.
pub(super) type File = fn(&str) -> Option<Vec<Says>>;

/// A text field of an event.
pub(super) fn text(event: &Value, key: &str) -> String {
    event[key].as_str().unwrap_or_default().to_owned()
}

/// Numbers of tokens by the names of their fields: input, output, read from the cache, written to it. An empty name: it tells no such number.
pub(super) fn tokens(usage: &Value, [input, output, read, written]: [&str; 4]) -> Tokens {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    Tokens { input: count(input), output: count(output), cache_read: count(read), cache_written: count(written) }
}

impl Says {
    /// An error with what it says.
    pub(super) fn failed(message: String) -> Self {
        Says::Failed { message, status: None }
    }
}

/// One session as it is heard.
pub(super) struct AgentStream {
    read: Read,
    file: Option<File>,
    prices: Prices,
    begun: bool,
    session: Option<String>,
    model: Option<String>,
    texts: Vec<String>,
    /// A message comes in pieces: its words are masked on the way.
    piece: Option<Masking>,
    calls: VecDeque<(String, String, Value)>,
    tool_calls: u64,
    turns: u64,
    used: ByModel,
    /// As the agent told it.
    usd_micros: Option<Micros>,
    trouble: Option<Trouble>,
    errors: u64,
    is_over: bool,
    denied: Vec<Denied>,
}

impl AgentStream {
    pub(super) fn new(read: Read, launch: &Launch<'_>) -> Self {
        AgentStream {
            read,
            file: None,
            prices: launch.prices.clone(),
            begun: false,
            session: None,
            model: launch.model.map(str::to_owned),
            texts: Vec::new(),
            piece: None,
            calls: VecDeque::new(),
            tool_calls: 0,
            turns: 0,
            used: ByModel::new(),
            usd_micros: None,
            trouble: None,
            errors: 0,
            is_over: false,
            denied: Vec::new(),
        }
    }

    /// For an agent that does not print what it used.
    pub(super) fn with_file(self, file: File) -> Self {
        AgentStream { file: Some(file), ..self }
    }

    pub(super) fn take(&mut self, says: Says, told: &mut Vec<Heard>) {
        self.begun = true;
        if !matches!(says, Says::Piece(_)) {
            self.end_piece(told);
        }
        if matches!(says, Says::Message(_) | Says::Piece(_) | Says::Tool { .. }) {
            (self.trouble, self.errors, self.is_over) = (None, 0, false);
        }
        match says {
            Says::Begins { session, model } => self.begins(session, model, told),
            Says::Message(text) => {
                self.turns += 1;
                told.push(Heard::Text { text: format!("{}\n", secrets::mask(text.trim_end_matches('\n'))), of_subagent: false });
                self.texts = vec![text];
            }
            Says::Piece(text) => self.piece(&text, told),
            Says::Tool { id, name, input } => self.tool(id, name, input, told),
            Says::ToolEnded { id, failed, denied } => self.tool_ended(&id, failed, denied, told),
            Says::Used { model, tokens, usd, in_all } => self.uses(model, tokens, usd, in_all, told),
            Says::Retry { attempt, after_ms, status } => told.push(Heard::Retry { attempt, after_ms, status }),
            Says::Error { message, status } => self.fails(&message, status, told),
            Says::Failed { message, status } => {
                self.fails(&message, status, told);
                self.trouble.get_or_insert(Trouble::Refused { status, too_long: false });
                self.is_over = true;
            }
            Says::Ended => {
                // It got over what went wrong before, unless that has ended it.
                if !self.is_over {
                    self.trouble = None;
                }
                self.is_over = true;
            }
            Says::MessageEnds => {}
        }
    }

    /// Whether it is known which model works.
    pub(super) fn has_model(&self) -> bool {
        self.model.is_some()
    }

    fn begins(&mut self, session: Option<String>, model: Option<String>, told: &mut Vec<Heard>) {
        let is_news = (session.is_some() && self.session != session) || (model.is_some() && self.model != model);
        self.session = session.or(self.session.take());
        self.model = model.or(self.model.take());
        if is_news {
            let session = self.session.clone().unwrap_or_default();
            told.push(Heard::Session { session, model: self.model.clone(), permission_mode: None, client: None });
        }
    }

    fn piece(&mut self, text: &str, told: &mut Vec<Heard>) {
        if self.piece.is_none() {
            self.turns += 1;
            self.texts = vec![String::new()];
        }
        if let Some(last) = self.texts.last_mut() {
            last.push_str(text);
        }
        let mut shown = Vec::new();
        self.piece.get_or_insert_with(secrets::masking).feed(text.as_bytes(), &mut shown);
        if !shown.is_empty() {
            told.push(Heard::Text { text: String::from_utf8_lossy(&shown).into_owned(), of_subagent: false });
        }
    }

    fn end_piece(&mut self, told: &mut Vec<Heard>) {
        let Some(mut masking) = self.piece.take() else { return };
        let mut shown = Vec::new();
        masking.finish(&mut shown);
        shown.push(b'\n');
        told.push(Heard::Text { text: String::from_utf8_lossy(&shown).into_owned(), of_subagent: false });
    }

    fn tool(&mut self, id: String, name: String, input: Value, told: &mut Vec<Heard>) {
        // Some agents tell of a call when it begins and again when it is done.
        if !id.is_empty() && self.calls.iter().any(|(known, ..)| *known == id) {
            return;
        }
        self.tool_calls += 1;
        // Text before a call is not the last word: a session may be cut off during the call.
        self.texts.clear();
        told.push(Heard::Tool { name: opening(&name, 100), what: denials::what(&input), of_subagent: false });
        if self.calls.len() >= MOST_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back((id, name, input));
    }

    fn tool_ended(&mut self, id: &str, failed: bool, denied: bool, told: &mut Vec<Heard>) {
        let at = self.calls.iter().position(|(known, ..)| known == id);
        let call = at.and_then(|at| self.calls.remove(at));
        if let (true, Some((_, name, input))) = (denied && self.denied.len() < MOST_DENIED, call) {
            let denied = Denied { tool: opening(&name, 100), what: denials::what(&input), rule: opening(&name, 100) };
            told.push(Heard::Denied { tool: denied.tool.clone(), what: denied.what.clone(), rule: denied.rule.clone() });
            if !self.denied.contains(&denied) {
                self.denied.push(denied);
            }
        }
        told.push(Heard::ToolEnded { failed, of_subagent: false });
    }

    fn uses(&mut self, model: Option<String>, tokens: Tokens, usd: Option<f64>, in_all: bool, told: &mut Vec<Heard>) {
        add(&mut self.used, model.or_else(|| self.model.clone()).unwrap_or_default(), tokens, in_all);
        if let Some(usd) = usd.map(money::of_reported) {
            let before = if in_all { 0 } else { self.usd_micros.unwrap_or(0) };
            self.usd_micros = Some(before.saturating_add(usd));
        }
        let usd = self.cost(&self.used).map(money::in_dollars);
        told.push(Heard::Used { tokens: sum(&self.used).total(), usd, context: 0 });
    }

    fn fails(&mut self, message: &str, status: Option<u16>, told: &mut Vec<Heard>) {
        self.errors += 1;
        let before = self.trouble.take();
        // A general sentence often follows the one that tells.
        let told_more = matches!(before, Some(Trouble::Limit { .. } | Trouble::Billing { .. }));
        self.trouble = service_error::trouble(status, message)
            .filter(|trouble| !told_more || *trouble != Trouble::Service { status: Some(429) })
            .or(before);
        let text = secrets::opening(message, 300);
        if !text.is_empty() {
            told.push(Heard::Line { text });
        }
    }

    /// What was told, or what the agent's file says.
    fn used_or_written(&self) -> ByModel {
        let mut used = self.used.clone();
        if let (true, Some(file), Some(session)) = (used.is_empty(), self.file, &self.session) {
            for says in file(session).into_iter().flatten() {
                if let Says::Used { model, tokens, in_all, .. } = says {
                    add(&mut used, model.or_else(|| self.model.clone()).unwrap_or_default(), tokens, in_all);
                }
            }
        }
        used
    }

    /// As the agent told it, or by the lists of prices; `None`: not known.
    fn cost(&self, used: &ByModel) -> Option<Micros> {
        let by_list = || {
            let used = used.iter().filter(|(_, tokens)| tokens.total() > 0);
            used.map(|(model, tokens)| self.prices.cost(model, *tokens)).try_fold(0u64, |sum, cost| Some(sum.saturating_add(cost?)))
        };
        self.usd_micros.or_else(|| if used.is_empty() { None } else { by_list() })
    }
}

impl Decode for AgentStream {
    fn line(&mut self, line: &[u8], told: &mut Vec<Heard>) -> Line {
        let Some(event) = parse_tolerant::<Value>(line).ok().filter(Value::is_object) else { return Line::Plain };
        self.begun = true;
        let mut says = Vec::new();
        (self.read)(&event, &mut says);
        for says in says {
            self.take(says, told);
        }
        Line::Event
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn is_stuck(&self) -> bool {
        self.errors >= STUCK && matches!(self.trouble, Some(Trouble::Refused { .. }))
    }

    fn outcome(&self, exit: Exit, complaint: &str) -> Outcome {
        match &self.trouble {
            Some(trouble) => Outcome::Failed { trouble: trouble.clone() },
            None if self.is_over => Outcome::Stopped,
            None => match service_error::trouble(None, complaint).filter(|_| exit.code != Some(0)) {
                Some(trouble) => Outcome::Failed { trouble },
                None => without_result(self.begun, exit, complaint),
            },
        }
    }

    fn text(&self) -> Option<String> {
        Some(join_blocks(self.texts.iter().map(String::as_str))).filter(|text| !text.trim().is_empty())
    }

    fn tools(&self) -> ToolUse {
        if self.tool_calls > 0 { ToolUse::Used } else { ToolUse::None }
    }

    fn work(&self) -> Work {
        let used = self.used_or_written();
        let tokens = sum(&used);
        let cost = self.cost(&used);
        let most_used = used.iter().max_by_key(|(_, tokens)| tokens.total()).map(|(model, _)| model.clone());
        Work {
            model: most_used.filter(|model| !model.is_empty()).or_else(|| self.model.clone()),
            turns: self.turns,
            tool_calls: self.tool_calls,
            tokens,
            usd_micros: cost.unwrap_or(0),
            cost_unknown: cost.is_none(),
            estimated: self.usd_micros.is_none() && tokens.total() > 0,
            denied: self.denied.clone(),
            agent_session: self.session.clone(),
            ..Work::default()
        }
    }
}

fn sum(used: &ByModel) -> Tokens {
    used.values().fold(Tokens::default(), |sum, tokens| sum.plus(*tokens))
}

/// Adds what a line says.
fn add(used: &mut ByModel, model: String, tokens: Tokens, in_all: bool) {
    let before = used.entry(model).or_default();
    *before = if in_all { tokens } else { before.plus(tokens) };
}

#[cfg(test)]
mod tests;
