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
            all.extend(self.used_in(&bytes, kept, prices).into_iter().filter(|one| one.at > since));
        }
        all
    }

    fn used_in(&self, bytes: &[u8], kept: &SessionFiles, prices: &Prices) -> Vec<OwnUse> {
        let (mut all, mut known, mut current): (Vec<OwnUse>, HashMap<String, usize>, Option<String>) = Default::default();
        let nothing =
            OwnUse { agent: self.name, at: 0, model: None, tokens: Tokens::default(), tool_calls: 0, usd_micros: Some(0), context: 0 };
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            let Some(told) = (kept.line)(&line) else { continue };
            let at = line["timestamp"].as_str().and_then(time::parse).or_else(|| all.last().map(|one| one.at)).unwrap_or(0);
            match told {
                Told::Model(model) => current = Some(model),
                Told::ToolCall => all.push(OwnUse { at, tool_calls: 1, model: current.as_deref().map(Into::into), ..nothing.clone() }),
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
