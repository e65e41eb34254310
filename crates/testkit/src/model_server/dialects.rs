//! The same script in the words of other services: Responses and Chat Completions, and Gemini. As much of each as the clients read.

use std::io::Write;

use serde_json::{Value, json};

use super::{Block, Kind, Reply, Request};
use crate::http::{EventStream, write_json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Responses,
    Chat,
    Gemini,
}

/// A request of a conversation offers more tools than that; titles, suggestions and routers come with fewer, or none.
const FEW_TOOLS: usize = 3;

impl Dialect {
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/responses" => Some(Self::Responses),
            "/v1/chat/completions" => Some(Self::Chat),
            _ if path.ends_with("enerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    pub(super) fn kind_of(self, body: &Value) -> Kind {
        let tools = if self == Self::Gemini { &body["tools"][0]["functionDeclarations"] } else { &body["tools"] };
        if tools.as_array().map_or(0, Vec::len) < FEW_TOOLS { Kind::Side } else { Kind::Main }
    }

    pub(super) fn write(self, out: &mut impl Write, request: &Request, reply: &Reply, id: usize) -> std::io::Result<()> {
        let streams = request.body["stream"] == true || request.path.contains(":streamGenerateContent");
        let events = match self {
            Self::Responses => responses(reply, id),
            Self::Chat if streams => chat_chunks(request, reply, id),
            Self::Chat => vec![chat(request, reply, id, "chat.completion", "message")],
            Self::Gemini => vec![gemini(reply, id)],
        };
        if !streams {
            // The last event of a stream of responses holds the whole.
            let whole = events.last().map(|last| if self == Self::Responses { &last["response"] } else { last });
            return write_json(out, 200, &reply.headers, &whole.unwrap_or(&Value::Null).to_string(), false);
        }
        let mut stream = EventStream::open(out, &reply.headers)?;
        events.iter().try_for_each(|event| stream.event(event))?;
        if self == Self::Chat {
            stream.data("[DONE]")?;
        }
        stream.close()
    }
}

/// The words of a reply and its tool calls, each with an id.
fn parts(reply: &Reply, id: usize) -> (String, Vec<(String, &str, &Value)>) {
    let mut text = String::new();
    let mut tools = Vec::new();
    for (at, block) in reply.blocks.iter().enumerate() {
        match block {
            Block::Text(words) => text.push_str(words),
            Block::Thinking(_) => {}
            Block::Tool { name, input } => tools.push((format!("call_{id:08}{at:04}"), name.as_str(), input)),
        }
    }
    (text, tools)
}

fn responses(reply: &Reply, id: usize) -> Vec<Value> {
    let (text, tools) = parts(reply, id);
    let message = json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]});
    let calls = tools.iter().map(|(id, name, input)| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": input.to_string()}));
    let items: Vec<Value> = (!text.is_empty()).then_some(message).into_iter().chain(calls).collect();
    let usage = json!({"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens, "total_tokens": reply.input_tokens + reply.output_tokens});
    let response = json!({"id": format!("resp_{id}"), "object": "response", "status": "completed", "output": items, "usage": usage});
    let created = json!({"type": "response.created", "response": {"id": format!("resp_{id}")}});
    let done = items.iter().enumerate().map(|(at, item)| json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    let completed = json!({"type": "response.completed", "response": response});
    std::iter::once(created).chain(done).chain([completed]).collect()
}

/// A whole answer, or a chunk that is all of it: they differ in two names.
fn chat(request: &Request, reply: &Reply, id: usize, object: &str, holder: &str) -> Value {
    let (text, tools) = parts(reply, id);
    let calls: Vec<Value> = tools
        .iter()
        .enumerate()
        .map(|(at, (id, name, input))| json!({"index": at, "id": id, "type": "function", "function": {"name": name, "arguments": input.to_string()}}))
        .collect();
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let finish = if tools.is_empty() { "stop" } else { "tool_calls" };
    json!({
        "id": format!("chatcmpl-{id}"),
        "object": object,
        "created": 1,
        "model": request.body["model"],
        "choices": [{"index": 0, holder: message, "finish_reason": finish}],
        "usage": {"prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens, "total_tokens": reply.input_tokens + reply.output_tokens},
    })
}

/// The content first, and then why it ended and what it cost.
fn chat_chunks(request: &Request, reply: &Reply, id: usize) -> Vec<Value> {
    let mut content = chat(request, reply, id, "chat.completion.chunk", "delta");
    let mut end = content.clone();
    content["choices"][0]["finish_reason"] = Value::Null;
    content["usage"] = Value::Null;
    end["choices"][0]["delta"] = json!({});
    vec![content, end]
}

fn gemini(reply: &Reply, id: usize) -> Value {
    let (text, tools) = parts(reply, id);
    let words = (!text.is_empty()).then(|| json!({"text": text}));
    let calls = tools.iter().map(|(id, name, input)| json!({"functionCall": {"id": id, "name": name, "args": input}}));
    let parts: Vec<Value> = words.into_iter().chain(calls).collect();
    json!({
        "responseId": format!("r{id}"),
        "modelVersion": "fake-model",
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": reply.input_tokens, "candidatesTokenCount": reply.output_tokens, "totalTokenCount": reply.input_tokens + reply.output_tokens},
    })
}
