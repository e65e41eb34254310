//! What a session of another agent than Claude Code used, from the file that the agent keeps of it: answer by answer, each with its time.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use ralph_core::{
    history::OwnUse,
    judge::session_outcome::Tokens,
    text::time::{self, Millis},
};
use serde_json::Value;

use super::{host::Host, prices::Prices};
use crate::sys::{env, files};

/// So much of the end of a file is read.
const MOST_READ: u64 = 64 << 20;

/// The beginning of a file, which names its session.
const HEAD: usize = 4 << 10;

/// Folders below the one of all sessions, and entries that are looked at.
const DEPTH: usize = 4;
const MOST_ENTRIES: usize = 200_000;

/// Where an agent keeps its sessions, and what it writes down.
pub(super) struct SessionFiles {
    /// In the user's home.
    pub folder: &'static str,
    /// The part of a session's id that stands in the path of its file.
    pub named: fn(&str) -> &str,
    pub line: fn(&Value) -> Option<Told>,
}

/// What a line tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The model of what follows.
    Model(String),
    /// An answer, with its model where the line has it. What is told again has the same id, and the later line counts.
    Answer {
        id: String,
        model: Option<String>,
        tokens: Tokens,
        tool_calls: u64,
    },
    ToolCall,
    /// All that a turn used, which has just ended: `took` is how long it lasted. A loop's iterations may be parts of it.
    Turn {
        model: Option<String>,
        tokens: Tokens,
        took: Millis,
    },
}

/// The whole id.
pub(super) fn whole(id: &str) -> &str {
    id
}

impl Host {
    /// What these sessions used that is newer than `since`. Nothing, where the agent writes none of it down.
    pub fn own_use<'s>(&self, sessions: impl IntoIterator<Item = &'s str>, since: Millis, prices: &Prices) -> Vec<OwnUse> {
        let (Some(kept), Some(home)) = (&self.session_files, env::home()) else { return Vec::new() };
        let mut all = Vec::new();
        for file in sessions.into_iter().flat_map(|session| kept.find(&home, session)) {
            let Ok(bytes) = files::read_end(&file, MOST_READ) else { continue };
            all.extend(self.used_in(&bytes, kept, since, prices).into_iter().filter(|one| one.at > since));
        }
        all
    }

    fn used_in(&self, bytes: &[u8], kept: &SessionFiles, since: Millis, prices: &Prices) -> Vec<OwnUse> {
        let (mut all, mut known, mut current): (Vec<OwnUse>, HashMap<String, usize>, Option<String>) = Default::default();
        let nothing =
            OwnUse { agent: self.name, at: 0, model: None, tokens: Tokens::default(), tool_calls: 0, usd_micros: Some(0), context: 0 };
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            let Some(told) = (kept.line)(&line) else { continue };
            let time = &line["timestamp"];
            let at = time.as_str().and_then(time::parse).or_else(|| time.as_i64().map(|seconds| seconds.saturating_mul(1000)));
            let at = at.or_else(|| all.last().map(|one| one.at)).unwrap_or(0);
            match told {
                Told::Model(model) => current = Some(model),
                Told::ToolCall => all.push(OwnUse { at, tool_calls: 1, model: current.as_deref().map(Into::into), ..nothing.clone() }),
                // It counts where it began; the one in which the loop was started counts for the loop.
                Told::Turn { model, tokens, took } => {
                    let usd_micros = model.as_deref().and_then(|model| prices.cost(model, tokens));
                    let began = at.saturating_sub(took);
                    let at = if began <= since && at >= since { since.saturating_add(1) } else { began };
                    all.push(OwnUse { at, model: model.as_deref().map(Into::into), tokens, usd_micros, ..nothing.clone() });
                }
                Told::Answer { id, model, tokens, tool_calls } => {
                    current = model.filter(|model| !model.is_empty()).or(current);
                    let usd_micros = current.as_deref().and_then(|model| prices.cost(model, tokens));
                    let model = current.as_deref().map(Into::into);
                    let context = tokens.total().saturating_sub(tokens.output);
                    let one = OwnUse { at, model, tokens, tool_calls, usd_micros, context, ..nothing.clone() };
                    match known.get(&id) {
                        Some(place) => all[*place] = one,
                        None => {
                            known.insert(id, all.len());
                            all.push(one);
                        }
                    }
                }
            }
        }
        all
    }
}

impl SessionFiles {
    /// The files of a session.
    fn find(&self, home: &Path, session: &str) -> Vec<PathBuf> {
        // The name comes from a journal, which can say anything.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if session.len() < 8 || !session.chars().all(is_plain) {
            return Vec::new();
        }
        let (root, name) = (home.join(self.folder), (self.named)(session));
        let (mut found, mut left) = (Vec::new(), MOST_ENTRIES);
        walk(&root, DEPTH, &mut left, &mut |path| {
            let below = path.strip_prefix(&root).unwrap_or(path).to_string_lossy();
            let is_it = || below.contains(session) || files::read_head(path, HEAD).is_ok_and(|head| has(&head, session));
            if below.ends_with(".jsonl") && below.contains(name) && is_it() {
                found.push(path.to_owned());
            }
        });
        found.sort();
        found
    }
}

fn has(head: &[u8], session: &str) -> bool {
    memchr::memmem::find(head, session.as_bytes()).is_some()
}

fn walk(folder: &Path, depth: usize, left: &mut usize, each: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => walk(&entry.path(), depth - 1, left, each),
            Ok(kind) if kind.is_file() => each(&entry.path()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{files, temp_dir::Scratch};

    const ID: &str = "01a1e2ed-0c37-7510-bb73-dfe78fdd8113";

    /// As the real programs write it: the path of the file, and its lines. Two answers, the first with a call of a tool; 10 of its tokens came from the cache.
    const FILES: [(&str, &str, &str); 5] = [
        (
            "codex",
            ".codex/sessions/2026/11/16/rollout-2026-11-16T05-55-48-01a1e2ed-0c37-7510-bb73-dfe78fdd8113.jsonl",
            r#"{"timestamp":"2026-11-16T05:55:48.483Z","type":"session_meta","payload":{"id":"01a1e2ed-0c37-7510-bb73-dfe78fdd8113"}}
{"timestamp":"2026-11-16T05:55:48.500Z","type":"turn_context","payload":{"model":"gpt-5.5"}}
{"timestamp":"2026-11-16T05:55:49.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"c"}}
{"timestamp":"2026-11-16T05:55:49.465Z","type":"token_usage_record","payload":{"response_id":"resp_1","usage":{"input_tokens":100,"cached_input_tokens":10,"cache_write_input_tokens":0,"output_tokens":10,"total_tokens":110}}}
{"timestamp":"2026-11-16T05:55:49.555Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100}}}}
{"timestamp":"2026-11-16T05:55:50.036Z","type":"token_usage_record","payload":{"response_id":"resp_2","usage":{"input_tokens":100,"cached_input_tokens":0,"output_tokens":10},"thread_token_usage":{"input_tokens":200}}}
"#,
        ),
        (
            "gemini",
            ".gemini/tmp/proj/chats/session-2026-11-16T05-56-01a1e2ed.jsonl",
            r#"{"sessionId":"01a1e2ed-0c37-7510-bb73-dfe78fdd8113","kind":"main"}
{"$set":{"lastUpdated":"2026-11-16T05:56:10.331Z"}}
{"id":"a","timestamp":"2026-11-16T05:56:11.136Z","type":"gemini","content":"I run it.","tokens":{"input":100,"output":10,"cached":10,"thoughts":0,"tool":0,"total":110},"model":"gpt-5.5"}
{"id":"a","timestamp":"2026-11-16T05:56:11.136Z","type":"gemini","content":"I run it.","tokens":{"input":100,"output":10,"cached":10,"thoughts":0,"tool":0,"total":110},"model":"gpt-5.5","toolCalls":[{"id":"c"}]}
{"id":"b","timestamp":"2026-11-16T05:56:12.734Z","type":"gemini","content":"one","tokens":{"input":100,"output":4,"cached":0,"thoughts":6,"tool":0,"total":110},"model":"gpt-5.5"}
{"id":"u","timestamp":"2026-11-16T05:56:13.584Z","type":"user","content":[{"text":"GO-ON 1"}]}
"#,
        ),
        (
            "copilot",
            ".copilot/session-state/01a1e2ed-0c37-7510-bb73-dfe78fdd8113/events.jsonl",
            r#"{"type":"assistant.message","data":{"model":"gpt-5.5","content":"one"},"timestamp":"2026-11-18T20:16:37.800Z"}
{"type":"session.usage_record","data":{"usage":{"model":"gpt-5.5","inputTokens":100,"outputTokens":10,"cacheReadTokens":10,"cacheWriteTokens":0,"numToolCalls":1}},"id":"a","timestamp":"2026-11-18T20:16:37.808Z"}
{"type":"session.usage_record","data":{"usage":{"model":"gpt-5.5","inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"numToolCalls":0}},"id":"b","timestamp":"2026-11-18T20:16:38.808Z"}
"#,
        ),
        (
            "qwen",
            ".qwen/projects/-project/chats/01a1e2ed-0c37-7510-bb73-dfe78fdd8113.jsonl",
            r#"{"uuid":"a","timestamp":"2026-11-16T05:56:34.706Z","type":"assistant","model":"gpt-5.5","message":{"parts":[{"text":"I run it."},{"functionCall":{"id":"c"}}]},"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"thoughtsTokenCount":0,"totalTokenCount":110,"cachedContentTokenCount":10}}
{"uuid":"t","timestamp":"2026-11-16T05:56:35.495Z","type":"tool_result","message":{"parts":[]}}
{"uuid":"b","timestamp":"2026-11-16T05:56:35.974Z","type":"assistant","model":"gpt-5.5","message":{"parts":[{"text":"one"}]},"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"thoughtsTokenCount":0,"cachedContentTokenCount":0}}
"#,
        ),
        (
            "grok",
            ".grok/sessions/%2Fproject/01a1e2ed-0c37-7510-bb73-dfe78fdd8113/updates.jsonl",
            r#"{"timestamp":1794808609,"method":"session/update","params":{"sessionId":"01a1e2ed-0c37-7510-bb73-dfe78fdd8113","update":{"sessionUpdate":"tool_call","toolCallId":"call_2","title":"run_terminal_command"}}}
{"timestamp":1794808610,"method":"session/update","params":{"sessionId":"01a1e2ed-0c37-7510-bb73-dfe78fdd8113","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_2","status":"completed"}}}
{"timestamp":1794808610,"method":"_x.ai/session/update","params":{"sessionId":"01a1e2ed-0c37-7510-bb73-dfe78fdd8113","update":{"sessionUpdate":"turn_completed","prompt_id":"394502f9-466c-4ec3-89de-a6d528f5edc6","stop_reason":"end_turn","usage":{"inputTokens":200,"outputTokens":20,"totalTokens":220,"cachedReadTokens":10,"cacheCreationTokens":0,"reasoningTokens":0,"modelCalls":2,"modelUsage":{"gpt-5.5":{"inputTokens":200,"outputTokens":20,"totalTokens":220,"cachedReadTokens":10,"cacheCreationTokens":0,"modelCalls":2}},"numTurns":2},"elapsed_ms":1023},"_meta":{"agentTimestampMs":1794808610505}}}
"#,
        ),
    ];

    #[test]
    fn h8_what_a_session_used_is_read_from_its_file() {
        for (name, path, text) in FILES {
            let (host, home) = (Host::by_name(name).unwrap(), Scratch::create("ralph-home-", false).unwrap());
            let kept = host.session_files.as_ref().unwrap();
            let file = home.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            files::write_whole(&file, text.as_bytes()).unwrap();
            // Another session, whose id begins in the same way.
            let other = path.replace("dfe78fdd8113", "dfe78fdd8119").replace("-01a1e2ed.jsonl", "-01a1e2ed-2.jsonl");
            let other = home.path().join(other);
            fs::create_dir_all(other.parent().unwrap()).unwrap();
            files::write_whole(&other, text.replace(ID, "01a1e2ed-0c37-7510-bb73-dfe78fdd8119").as_bytes()).unwrap();
            assert_eq!(kept.find(home.path(), ID), [file], "{name}");
            for odd in ["", "..", "../01a1e2ed", "01a1e2ed-0c37-7510-bb73-000000000000"] {
                assert_eq!(kept.find(home.path(), odd), [] as [PathBuf; 0], "{name} {odd}");
            }
            let used = host.used_in(text.as_bytes(), kept, 0, &Prices::default());
            let sum = used.iter().fold(Tokens::default(), |sum, one| sum.plus(one.tokens));
            assert_eq!(sum, Tokens { input: 190, output: 20, cache_read: 10, cache_written: 0 }, "{name}: {used:?}");
            assert_eq!(used.iter().map(|one| one.tool_calls).sum::<u64>(), 1, "{name}");
            // $5 for a million, $30 for what was written, $0.5 for what came from the cache.
            assert_eq!(used.iter().map(|one| one.usd_micros.unwrap()).sum::<u64>(), 950 + 600 + 5, "{name}");
            let last = used.last().unwrap();
            assert!(last.at > 1_794_000_000_000 && last.model.as_deref() == Some("gpt-5.5") && last.agent == name, "{last:?}");
            let unknown = host.used_in(text.replace("gpt-5.5", "made-up").as_bytes(), kept, 0, &Prices::default());
            assert!(unknown.iter().filter(|one| one.tokens.total() > 0).all(|one| one.usd_micros.is_none()), "no guess: {unknown:?}");
        }
    }

    /// Grok tells a whole turn, in which a loop may begin, and which ends after the loop does.
    #[test]
    fn h8_a_turn_counts_where_it_began() {
        let (host, (.., text)) = (Host::by_name("grok").unwrap(), FILES[4]);
        let at = |since| {
            let used = host.used_in(text.as_bytes(), host.session_files.as_ref().unwrap(), since, &Prices::default());
            used.last().unwrap().at
        };
        let (began, ended) = (1_794_808_608_977, 1_794_808_610_000);
        assert_eq!((at(0), at(began), at(ended)), (began, began + 1, ended + 1));
        assert_eq!(at(ended + 1), began, "it was before the loop");
    }
}
