//! The output of Claude Code without a person, one JSON document on each line: events to show, and the outcome in the end.
//!
//! Lines change with the client's versions, so unknown ones are skipped. Those of its transcripts are similar. A process may give several results, because a
//! background task that ends wakes the model again; the last one counts. Only structured fields decide about an error, never the words of a message.

mod fields;
mod verdict;

use std::collections::VecDeque;

use ralph_core::{
    judge::{
        ToolUse, join_blocks,
        session_outcome::{Denied, Outcome, Tokens, Work},
    },
    money::{self, Micros},
    text::{
        Masking, opening, parse_tolerant,
        time::{self, Millis},
    },
};
use serde_json::Value;

use crate::{
    hosts::{
        Heard,
        claude::{
            denials, prices,
            usage::{Meter, Spent, Usage},
            variables,
        },
        stream::{Decode, Exit, Line, without_result},
    },
    sys::secrets,
};
use fields::{status, tail, text, whole};
use verdict::{Fault, Verdict};

pub(super) use verdict::Quota;

/// So many calls are remembered until it is known whether they were denied.
const MOST_CALLS: usize = 256;

/// So many denials of one session are told.
const MOST_DENIED: usize = 200;

/// One session as it is heard.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The session that ralph started; `None`: only its lines are known.
    session: Option<String>,
    /// Any event was heard.
    begun: bool,
    /// When the newest line was written, where the client says so.
    at: Option<Millis>,
    /// The model that the session began with.
    model: Option<String>,
    meter: Meter,
    streamed: Option<Streamed>,
    /// The last message of the session's own: its id and its texts.
    message: Option<String>,
    texts: Vec<String>,
    /// The client's own error in the place of a message, if that came last.
    fault: Option<Fault>,
    quota: Option<Quota>,
    verdict: Option<Verdict>,
    /// Nothing was worked on since the last result.
    is_over: bool,
    turns: u64,
    tool_calls: u64,
    /// How full the context is, and was at its fullest.
    context: u64,
    fullest: u64,
    calls: VecDeque<(String, Vec<Denied>)>,
    denied: Vec<Denied>,
    /// The calls that were denied.
    denied_calls: Vec<String>,
}

/// The message that comes in pieces.
#[derive(Debug)]
struct Streamed {
    id: String,
    model: String,
    /// Pieces of a text were told, and whether the last one ended a line.
    text: Option<bool>,
    /// Texts that were told in pieces, and have yet to come as a whole.
    told: u64,
    /// A secret may be in several pieces.
    masking: Masking,
}

impl Streamed {
    /// The next words without secrets, as far as that can be told; all that was held back at the end.
    fn masked(&mut self, words: &str, is_end: bool) -> String {
        let mut text = Vec::new();
        self.masking.feed(words.as_bytes(), &mut text);
        if is_end {
            self.masking.finish(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Stream {
    /// A session that ralph started, under that id.
    pub(super) fn of_session(id: &str) -> Self {
        Stream { session: Some(id.to_owned()), ..Stream::default() }
    }

    fn system(&mut self, event: &Value, told: &mut Vec<Heard>) {
        let own = |key| text(event, key).map(str::to_owned);
        match text(event, "subtype").unwrap_or_default() {
            "init" => {
                self.is_over = false;
                // A woken session begins again.
                if self.model.is_none() {
                    self.model = own("model");
                    told.push(Heard::Session {
                        session: own("session_id").unwrap_or_default(),
                        model: own("model"),
                        permission_mode: own("permissionMode"),
                        client: own("claude_code_version"),
                    });
                }
            }
            "api_retry" => told.push(Heard::Retry {
                attempt: event["attempt"].as_u64().unwrap_or(0),
                after_ms: whole(&event["retry_delay_ms"]),
                status: status(&event["error_status"]),
            }),
            "status" if event["status"] == "compacting" => told.push(Heard::Compacting),
            "compact_boundary" => self.context = 0,
            "permission_denied" => {
                let (tool, call) = (text(event, "tool_name").unwrap_or_default(), text(event, "tool_use_id").unwrap_or_default());
                let known = self.calls.iter().find(|(id, _)| id == call).map(|(_, denied)| denied.clone());
                self.deny(call, known.unwrap_or_else(|| denials::denied(tool, &Value::Null)), told);
            }
            _ => {}
        }
    }

    fn assistant(&mut self, event: &Value, told: &mut Vec<Heard>) {
        let message = &event["message"];
        let of_subagent = is_subagents(event);
        let model = text(message, "model").unwrap_or_default();
        // Otherwise the client says something itself.
        let is_real = !model.starts_with('<');
        if !of_subagent {
            self.is_over = false;
            self.fault = (!is_real).then(|| Fault::of(event)).flatten();
        }
        let id = text(message, "id").unwrap_or_default();
        if is_real {
            self.count(id, model, &message["usage"], of_subagent, told);
        }
        if is_real && !of_subagent && self.message.as_deref() != Some(id) {
            // A transcript has no first line that names it.
            self.model = self.model.take().or_else(|| text(event, "requestedModel").map(str::to_owned));
            self.message = Some(id.to_owned());
            self.texts.clear();
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let is_own = is_real && !of_subagent;
            self.block(block, id, is_own, of_subagent, told);
        }
    }

    fn block(&mut self, block: &Value, id: &str, is_own: bool, of_subagent: bool, told: &mut Vec<Heard>) {
        let is_streamed = !of_subagent && self.streamed.as_ref().is_some_and(|streamed| streamed.id == id);
        match text(block, "type").unwrap_or_default() {
            "text" => {
                let words = text(block, "text").unwrap_or_default();
                if is_own {
                    self.texts.push(tail(words).to_owned());
                }
                let is_told = is_streamed && self.was_told(told);
                if !is_told && !words.is_empty() {
                    told.push(Heard::Text { text: format!("{}\n", secrets::mask(words.trim_end_matches('\n'))), of_subagent });
                }
            }
            "thinking" | "redacted_thinking" if !is_streamed => told.push(Heard::Thinking),
            kind @ ("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                self.tool_calls += 1;
                // Text before a call is not the last word: a session may be cut off during the call.
                if is_own && kind == "tool_use" {
                    self.texts.clear();
                }
                let name = text(block, "name").unwrap_or_default();
                if self.calls.len() >= MOST_CALLS {
                    self.calls.pop_front();
                }
                self.calls.push_back((text(block, "id").unwrap_or_default().to_owned(), denials::denied(name, &block["input"])));
                told.push(Heard::Tool { name: opening(name, 100), what: denials::what(&block["input"]), of_subagent });
            }
            _ => {}
        }
    }

    /// A piece of a message. A subagent's message is told when it is whole.
    fn piece(&mut self, event: &Value, told: &mut Vec<Heard>) -> Line {
        let piece = &event["event"];
        let kind = text(piece, "type").unwrap_or_default();
        if kind == "ping" {
            return Line::Ping;
        }
        if !event["parent_tool_use_id"].is_null() {
            return Line::Piece;
        }
        match kind {
            "message_start" => {
                let message = &piece["message"];
                let own = |key| text(message, key).unwrap_or_default().to_owned();
                self.is_over = false;
                self.streamed = Some(Streamed { id: own("id"), model: own("model"), text: None, told: 0, masking: secrets::masking() });
                self.count(&own("id"), &own("model"), &message["usage"], false, told);
            }
            "message_delta" => {
                if let Some((id, model)) = self.streamed.as_ref().map(|streamed| (streamed.id.clone(), streamed.model.clone())) {
                    self.count(&id, &model, &piece["usage"], false, told);
                }
            }
            "content_block_start" if piece["content_block"]["type"] == "thinking" => told.push(Heard::Thinking),
            "content_block_delta" => {
                let words = text(&piece["delta"], "text").unwrap_or_default();
                if let Some(streamed) = self.streamed.as_mut().filter(|_| !words.is_empty()) {
                    let text = streamed.masked(words, false);
                    streamed.text = Some(text.ends_with('\n'));
                    told.extend((!text.is_empty()).then_some(Heard::Text { text, of_subagent: false }));
                }
            }
            "content_block_stop" => self.end_text(told),
            _ => {}
        }
        Line::Piece
    }

    /// Ends the text that came in pieces with a line's end.
    fn end_text(&mut self, told: &mut Vec<Heard>) {
        let Some(streamed) = &mut self.streamed else { return };
        let Some(ends_line) = streamed.text.take() else { return };
        streamed.told += 1;
        let mut text = streamed.masked("", true);
        if !(if text.is_empty() { ends_line } else { text.ends_with('\n') }) {
            text.push('\n');
        }
        told.extend((!text.is_empty()).then_some(Heard::Text { text, of_subagent: false }));
    }

    /// Whether the text that comes as a whole now was told in pieces. The clients send it before they say that it has ended.
    fn was_told(&mut self, told: &mut Vec<Heard>) -> bool {
        self.end_text(told);
        let left = self.streamed.as_mut().and_then(|streamed| Some((streamed.told.checked_sub(1)?, streamed)));
        left.map(|(left, streamed)| streamed.told = left).is_some()
    }

    fn count(&mut self, id: &str, model: &str, usage: &Value, of_subagent: bool, told: &mut Vec<Heard>) {
        if !usage.is_object() {
            return;
        }
        let before = self.meter.tokens.total();
        let of_message = self.meter.count(id, model, Usage::of(usage));
        if !of_subagent {
            self.context = of_message;
            self.fullest = self.fullest.max(of_message);
        }
        if self.meter.tokens.total() != before {
            let usd = Some(money::in_dollars(self.meter.usd_micros));
            told.push(Heard::Used { tokens: self.meter.tokens.total(), usd, context: self.context });
        }
    }

    fn quota(&mut self, info: &Value, told: &mut Vec<Heard>) {
        let quota = Quota::of(info);
        told.push(Heard::Quota { used: quota.used, resets_at_ms: quota.resets_at, quota: quota.name.clone(), rejected: quota.is_rejected });
        self.quota = Some(quota);
    }

    fn result(&mut self, event: &Value, told: &mut Vec<Heard>) {
        for denial in event["permission_denials"].as_array().into_iter().flatten() {
            let (tool, call) = (text(denial, "tool_name").unwrap_or_default(), text(denial, "tool_use_id").unwrap_or_default());
            self.deny(call, denials::denied(tool, &denial["tool_input"]), told);
        }
        let mut verdict = Verdict::of(event, self.model.as_deref());
        if let Some(before) = &self.verdict {
            verdict.count_on(before);
        }
        self.turns = self.turns.saturating_add(verdict.turns);
        told.push(Heard::Used { tokens: verdict.tokens.total(), usd: Some(money::in_dollars(verdict.usd_micros)), context: self.context });
        self.verdict = Some(verdict);
        self.is_over = true;
    }

    /// Notes that a call was denied. The newer client says so twice.
    fn deny(&mut self, call: &str, denied: Vec<Denied>, told: &mut Vec<Heard>) {
        if self.denied_calls.iter().any(|known| known == call) || self.denied_calls.len() >= MOST_DENIED {
            return;
        }
        self.denied_calls.push(call.to_owned());
        for denied in denied {
            told.push(Heard::Denied { tool: denied.tool.clone(), what: denied.what.clone(), rule: denied.rule.clone() });
            if !self.denied.contains(&denied) {
                self.denied.push(denied);
            }
        }
    }

    /// Whether the client told what the session used, to its end.
    fn is_accounted(&self) -> bool {
        self.is_over && self.verdict.as_ref().is_some_and(|verdict| !verdict.is_aborted())
    }
}

impl Decode for Stream {
    fn line(&mut self, line: &[u8], told: &mut Vec<Heard>) -> Line {
        let Ok(event) = parse_tolerant::<Value>(line) else { return Line::Plain };
        let Some(kind) = text(&event, "type") else { return Line::Plain };
        self.begun = true;
        self.at = text(&event, "timestamp").and_then(time::parse);
        match kind {
            "system" => self.system(&event, told),
            "assistant" => self.assistant(&event, told),
            "user" => tool_results(&event, told),
            "stream_event" => return self.piece(&event, told),
            "rate_limit_event" => self.quota(&event["rate_limit_info"], told),
            "result" => self.result(&event, told),
            _ => {}
        }
        Line::Event
    }

    /// Whether the agent has come to its end, and only the process has not.
    fn is_over(&self) -> bool {
        self.is_over
    }

    /// When the newest line was written, where the client says so.
    fn at(&self) -> Option<Millis> {
        self.at
    }

    /// How full the context is now, in tokens, and how large it is; `None`: nothing tells, or it was made shorter since.
    fn context(&self) -> Option<(u64, u64)> {
        let told = self.verdict.as_ref().map(|verdict| verdict.context_window).filter(|window| *window > 0);
        let model = self.model.as_deref().or(self.meter.model.as_deref()).unwrap_or_default();
        (self.context > 0).then(|| (self.context, told.unwrap_or_else(|| prices::window(model, self.fullest))))
    }

    /// How the session ended, if it ended by itself. `complaint` is what the client said to a person.
    fn outcome(&self, exit: Exit, complaint: &str) -> Outcome {
        match &self.verdict {
            Some(verdict) if self.is_over => verdict.outcome(self.fault.as_ref(), self.quota.as_ref(), exit, self.model.as_deref()),
            _ => without_result(self.begun, exit, complaint),
        }
    }

    /// All texts of the last message.
    fn text(&self) -> Option<String> {
        let of_result = || self.verdict.as_ref()?.text.clone();
        let text = Some(join_blocks(self.texts.iter().map(String::as_str))).filter(|text| !text.trim().is_empty());
        text.or_else(|| of_result().filter(|_| self.is_over && self.message.is_none()))
    }

    fn tools(&self) -> ToolUse {
        if self.tool_calls > 0 { ToolUse::Used } else { ToolUse::None }
    }

    /// The usage of the session: as the client counted it, or else by the meter.
    fn work(&self) -> Work {
        let verdict = self.verdict.as_ref();
        let counted = verdict.map(|verdict| (verdict.tokens, verdict.usd_micros)).unwrap_or_default();
        let heard: (Tokens, Micros) = (self.meter.tokens, self.meter.usd_micros);
        let estimated = !self.is_accounted() && (verdict.is_none() || heard.0.total() > counted.0.total());
        let (mut tokens, mut usd_micros) = if estimated { heard } else { counted };
        let mut estimated = estimated;
        // If the client could not report it at its end, its transcripts may know more than was heard.
        let written = || Spent::of_session(&variables::config_folder()?, self.session.as_deref()?);
        if let Some(known) = (!self.is_accounted()).then(written).flatten().filter(|(known, _)| known.total() > tokens.total()) {
            ((tokens, usd_micros), estimated) = (known, true);
        }
        Work {
            model: verdict
                .and_then(|verdict| verdict.model.clone())
                .or_else(|| self.meter.model.as_deref().map(str::to_owned))
                .or_else(|| self.model.clone()),
            turns: if verdict.is_some() { self.turns } else { self.meter.messages },
            tool_calls: self.tool_calls,
            tokens,
            usd_micros,
            estimated,
            context: self.fullest,
            context_window: verdict.map_or(0, |verdict| verdict.context_window),
            denied: self.denied.clone(),
            ..Work::default()
        }
    }
}

/// A subagent's message, in a stream or in a transcript.
fn is_subagents(event: &Value) -> bool {
    !event["parent_tool_use_id"].is_null() || event["isSidechain"] == true
}

fn tool_results(event: &Value, told: &mut Vec<Heard>) {
    let of_subagent = is_subagents(event);
    for block in event["message"]["content"].as_array().into_iter().flatten() {
        if block["type"] == "tool_result" {
            told.push(Heard::ToolEnded { failed: block["is_error"] == true, of_subagent });
        }
    }
}

#[cfg(test)]
mod tests;
