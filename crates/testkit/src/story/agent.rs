//! The log of a session in the middle of its work, as the client prints it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::journal::stamp;
use crate::project::Project;

/// How long ago the session began, in milliseconds.
pub(super) const SINCE: i64 = 4 * 60_000;

/// What it did, and how many seconds ago.
const STEPS: [(i64, &str, &str); 9] = [
    (224, "say", "One test is left: negative durations. I look at what the parser makes of them."),
    (221, "Read", "src/duration.rs"),
    (198, "Grep", "fn parse_sign"),
    (176, "Bash", "cargo test --test durations -- negative"),
    (131, "say", "The sign is read, and then lost when the days are carried over."),
    (128, "Edit", "src/duration.rs"),
    (97, "Edit", "tests/durations.rs"),
    (61, "Bash", "cargo test --test durations"),
    (8, "say", "Negative durations print what they parse. I run everything before I commit."),
];
/// It still runs.
const LAST: (i64, &str, &str) = (5, "Bash", "cargo test --workspace");

/// The log up to `now`.
pub(super) fn log(project: &Project, now: i64) -> String {
    let mut out = String::new();
    let mut put = |line: Value| {
        let _ = writeln!(out, "{line}");
    };
    put(json!({ "type": "system", "subtype": "init", "session_id": "0000000a-0000-4000-8000-000000000001", "model": "claude-opus-5-5" }));
    for (n, (ago, what, about)) in STEPS.into_iter().chain([LAST]).enumerate() {
        let call = format!("toolu_{n}");
        let content = match what {
            "say" => json!({ "type": "text", "text": about }),
            name => json!({ "type": "tool_use", "id": call, "name": name, "input": input(project, name, about) }),
        };
        let usage = json!({ "input_tokens": 40, "output_tokens": 900, "cache_read_input_tokens": 61_000 + 2_400 * n, "cache_creation_input_tokens": 2_400 });
        let message =
            json!({ "id": format!("msg_{n}"), "role": "assistant", "model": "claude-opus-5-5", "content": [content], "usage": usage });
        put(json!({ "type": "assistant", "timestamp": stamp(now - ago * 1_000), "message": message }));
        if what != "say" && ago != LAST.0 {
            let result = json!({ "type": "tool_result", "tool_use_id": call, "content": "done", "is_error": false });
            let at = stamp(now - ago * 1_000 + 2_000);
            put(json!({ "type": "user", "timestamp": at, "message": { "role": "user", "content": [result] } }));
        }
    }
    out
}

fn input(project: &Project, tool: &str, about: &str) -> Value {
    match tool {
        "Bash" => json!({ "command": about }),
        "Grep" => json!({ "pattern": about }),
        _ => json!({ "file_path": project.path(about) }),
    }
}
