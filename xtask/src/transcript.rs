//! Transcripts of any size, as the client writes them: a long history, then one round that is newer than any ruling.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    Result,
    scene::{MESSAGE, SESSION},
};

/// Before every run of the bench; after all of them. A line that is newer than the last ruling belongs to the round that is judged.
const PAST: &str = "2020-01-01T00:00:00.000Z";
const FUTURE: &str = "2099-01-01T00:00:00.000Z";

/// Writes a transcript of about `bytes` whose last message stands `before_end` bytes before its end.
pub(crate) fn write(path: &Path, bytes: u64, before_end: u64) -> Result<()> {
    let mut file = Counted { out: BufWriter::with_capacity(1 << 20, File::create(path)?), written: 0 };
    let history = history();
    while file.written + before_end < bytes {
        file.put(&history)?;
    }
    file.put(&round())?;
    let end = file.written + before_end;
    let notes = notes();
    while file.written < end {
        file.put(&notes)?;
    }
    // Nothing of it shall still be on its way to the disk when the measuring begins.
    file.out.into_inner()?.sync_all()?;
    Ok(())
}

struct Counted {
    out: BufWriter<File>,
    written: u64,
}

impl Counted {
    fn put(&mut self, lines: &[u8]) -> Result<()> {
        self.written += lines.len() as u64;
        Ok(self.out.write_all(lines)?)
    }
}

/// A turn of some 20 KB: question, thinking, tool calls with results of very different sizes, answer.
fn history() -> Vec<u8> {
    let mut lines = vec![user(PAST, &json!("Please look at the next point of docs/port.md."), false)];
    for size in [300, 4_000, 900, 12_000] {
        lines.push(assistant(
            PAST,
            "msg_old",
            &json!({ "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": "cargo test" } }),
        ));
        lines.push(user(PAST, &json!([{ "type": "tool_result", "tool_use_id": "t", "content": "test ok\n".repeat(size / 8) }]), false));
    }
    lines.push(assistant(PAST, "msg_old_end", &text("That point is done.")));
    lines.push(json!({ "type": "system", "subtype": "stop_hook_summary", "hookCount": 1, "timestamp": PAST }));
    joined(&lines)
}

/// The round that the hook judges: sent back, two tool calls, an answer.
fn round() -> Vec<u8> {
    let tool = |id: &str| {
        [
            assistant(FUTURE, id, &json!({ "type": "tool_use", "id": id, "name": "Edit", "input": { "file_path": "src/loader.rs" } })),
            user(FUTURE, &json!([{ "type": "tool_result", "tool_use_id": id, "content": "The file was updated.\n".repeat(40) }]), false),
        ]
    };
    let mut lines = vec![user(FUTURE, &json!("Stop hook feedback:\nPort the configuration loader to the new format."), true)];
    lines.extend(tool("msg_1"));
    lines.extend(tool("msg_2"));
    lines.push(assistant(FUTURE, "msg_3", &text(MESSAGE)));
    joined(&lines)
}

/// What the client itself writes after a message: some lines that the reader can pass over unread, some that it has to parse.
fn notes() -> Vec<u8> {
    let base =
        |kind: &str, size: usize| json!({ "type": kind, "timestamp": FUTURE, "sessionId": SESSION, "content": "note ".repeat(size / 5) });
    joined(&[base("system", 400), base("attachment", 2_000), base("prompt_snapshot", 30_000), base("attachment", 8_000)])
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn assistant(at: &str, id: &str, block: &Value) -> Value {
    let usage = json!({ "input_tokens": 4, "cache_read_input_tokens": 51_234, "output_tokens": 321 });
    let message = json!({ "id": id, "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": usage });
    framed("assistant", at, &message, false)
}

fn user(at: &str, content: &Value, is_meta: bool) -> Value {
    framed("user", at, &json!({ "role": "user", "content": content }), is_meta)
}

fn framed(kind: &str, at: &str, message: &Value, is_meta: bool) -> Value {
    json!({
        "type": kind, "isSidechain": false, "isMeta": is_meta, "message": message, "timestamp": at, "sessionId": SESSION,
        "uuid": "99999999-8888-4777-8666-555555555555", "parentUuid": "99999999-8888-4777-8666-444444444444",
        "cwd": "/home/somebody/project", "version": "2.1.325", "gitBranch": "main", "userType": "external",
    })
}

fn joined(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}
