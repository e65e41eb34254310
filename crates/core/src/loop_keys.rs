//! The keys of a loop file: one list, from which the documented template and the JSON schema are made.

use std::fmt::Write as _;

use serde_json::json;

/// What one key of the front matter is for.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    /// The value in the template, as YAML.
    pub example: &'static str,
    pub about: &'static str,
}

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Count,
    Number,
    Text,
    Choice(&'static [&'static str]),
    /// One line for the shell, or a list of them.
    Commands,
}

/// Every key that ralph reads. Any other key is left alone.
pub const KEYS: &[Key] = &[
    Key {
        name: "active",
        kind: Kind::Bool,
        required: false,
        example: "true",
        about: "false pauses the loop: stops are allowed and nothing is counted",
    },
    Key {
        name: "iteration",
        kind: Kind::Count,
        required: true,
        example: "1",
        about: "the round that is being worked on; ralph adds one each time it sends the agent back",
    },
    Key { name: "max_iterations", kind: Kind::Count, required: false, example: "20", about: "the last round; 0 means no limit" },
    Key {
        name: "completion_promise",
        kind: Kind::Text,
        required: false,
        example: "\"COMPLETE\"",
        about: "the words that the agent must put between <promise> and </promise>; null means that its gates end the loop, or without any only a limit or a cancel",
    },
    Key {
        name: "session_id",
        kind: Kind::Text,
        required: false,
        example: "null",
        about: "the session that this loop belongs to; null means the first one that stops in this project",
    },
    Key {
        name: "started_at",
        kind: Kind::Text,
        required: false,
        example: "\"2026-01-31T22:00:00.000Z\"",
        about: "when the loop was started",
    },
    Key {
        name: "loop_id",
        kind: Kind::Text,
        required: false,
        example: "\"main-20260131-220000\"",
        about: "the name of this loop's journal",
    },
    Key {
        name: "max_hours",
        kind: Kind::Number,
        required: false,
        example: "8",
        about: "how long the loop may run, pauses and closed sessions not counted; 0 means no limit; 8 if not given",
    },
    Key {
        name: "max_usd",
        kind: Kind::Number,
        required: false,
        example: "50",
        about: "about how many dollars the loop may spend, estimated from the tokens that the client reports; 0 means no limit; if not given, 50 with the presets pre-pr and after-pr, else no limit",
    },
    Key {
        name: "max_tokens",
        kind: Kind::Count,
        required: false,
        example: "20000000",
        about: "how many tokens of all kinds fresh sessions (`ralph run`) may use; 0 means no limit",
    },
    Key {
        name: "max_context",
        kind: Kind::Count,
        required: false,
        example: "85",
        about: "how full the session's context may get, in percent, before the loop is paused and handed over to `ralph run --continue`; 0 means no limit",
    },
    Key {
        name: "compact_every",
        kind: Kind::Count,
        required: false,
        example: "0",
        about: "after so many rounds in one session its conversation is made shorter; 0 means that the client decides",
    },
    Key {
        name: "idle_rounds",
        kind: Kind::Count,
        required: false,
        example: "7",
        about: "rounds in a row without any tool call after which the loop is paused; if not given, 7 under the client's own cap of 8 and 25 where that was lifted",
    },
    Key {
        name: "stall_rounds",
        kind: Kind::Count,
        required: false,
        example: "6",
        about: "rounds in a row that change nothing (no commit, no file, no finding) after which the loop is paused; 0 means never; if not given, 6 with the presets pre-pr and after-pr, else 10, and 4 in fresh sessions",
    },
    Key {
        name: "continue_with",
        kind: Kind::Choice(&["auto", "block", "context"]),
        required: false,
        example: "auto",
        about: "how the prompt goes back to the agent: as the hook's block reason, as added context, or as the client's version suggests",
    },
    Key {
        name: "remind",
        kind: Kind::Bool,
        required: false,
        example: "true",
        about: "true adds one line to the prompt each time it comes back: how to claim completion",
    },
    Key {
        name: "verify",
        kind: Kind::Commands,
        required: false,
        example: "[\"cargo test\"]",
        about: "commands that must pass before the loop may end, besides the gates of ralph.toml; they run once a person trusts them, and for at most 2 minutes: { run: \"cargo test\", deadline: 10m } gives more",
    },
    Key {
        name: "preset",
        kind: Kind::Choice(&["verify", "features", "pre-pr", "after-pr"]),
        required: false,
        example: "verify",
        about: "gates that need no ralph.toml: verify takes the commands of a worktree.yaml, features the list that is in the project, pre-pr leads to an open pull request, after-pr from red checks to the merge",
    },
];

/// A loop file with every key and what it is for (S1-2).
pub fn template() -> String {
    let mut out = String::from("---\n# A Ralph loop. Save as .claude/ralph-loop.local.md; edits count from the next stop on.\n");
    for key in KEYS {
        let _ = writeln!(out, "\n# {}{}", key.about, if key.required { " (required)" } else { "" });
        let unset =
            matches!(key.name, "session_id" | "started_at" | "loop_id" | "max_usd" | "idle_rounds" | "stall_rounds" | "verify" | "preset");
        let _ = writeln!(out, "{}{}: {}", if unset { "# " } else { "" }, key.name, key.example);
    }
    out.push_str("---\n\nDescribe the task here. When all of it is true, end with\n<promise>COMPLETE</promise>\non a line of its own.\n");
    out
}

/// The JSON schema of the front matter (S1-AC3).
pub fn schema() -> serde_json::Value {
    let properties: serde_json::Map<_, _> = KEYS
        .iter()
        .map(|key| {
            let mut spec = match key.kind {
                Kind::Bool => json!({ "type": "boolean" }),
                Kind::Count => json!({ "type": ["integer", "null"], "minimum": 0 }),
                Kind::Number => json!({ "type": ["number", "null"], "minimum": 0 }),
                Kind::Text => json!({ "type": ["string", "null"] }),
                Kind::Choice(values) => json!({ "enum": values }),
                Kind::Commands => json!({ "type": ["string", "array", "object", "null"], "items": { "type": ["string", "object"] } }),
            };
            if key.required {
                spec["type"] = json!("integer");
            }
            spec["description"] = json!(key.about);
            (key.name.to_owned(), spec)
        })
        .collect();
    let required: Vec<_> = KEYS.iter().filter(|k| k.required).map(|k| k.name).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Front matter of a Ralph loop file",
        "type": "object",
        "required": required,
        "properties": properties,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_file::LoopFile;

    #[test]
    fn s1_2_the_template_is_a_loop() {
        let parsed = LoopFile::parse(template().as_bytes());
        assert_eq!(parsed.as_ref().map(|l| (l.iteration, l.max_iterations, l.remind)), Ok((1, 20, true)));
        for key in KEYS {
            assert!(template().contains(&format!("{}: ", key.name)), "{}", key.name);
        }
    }
}
