//! Where the transcripts of a session and of its subagents are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::sys::files;

/// More files of subagents than this are not looked at.
const MOST_FILES: usize = 5_000;

/// A transcript on disk.
pub(crate) struct Transcript {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    /// Milliseconds since the epoch.
    pub(crate) changed: u64,
}

impl Transcript {
    pub(crate) fn of(path: PathBuf) -> Option<Self> {
        let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(Transcript { size: meta.len(), changed: files::changed_ms(&meta), path })
    }
}

/// `<session>/subagents/agent-*.jsonl` beside `<session>.jsonl`, in the order of their last changes: what is not read for lack of time is newer than
/// what was.
pub(crate) fn of_subagents(transcript: &Path) -> Vec<Transcript> {
    let is_agents = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("agent-") && path.extension().is_some_and(|e| e == "jsonl")
    };
    let entries = fs::read_dir(transcript.with_extension("").join("subagents")).into_iter().flatten().flatten();
    let mut all: Vec<Transcript> =
        entries.take(MOST_FILES).map(|entry| entry.path()).filter(is_agents).filter_map(Transcript::of).collect();
    all.sort_by_key(|candidate| candidate.changed);
    all
}

/// `projects/<folder>/<session>.jsonl`. The name of the folder is made of the project's path in ways that change; the session's id is enough.
pub(crate) fn find(claude_config: &Path, session: &str) -> Option<PathBuf> {
    // The name comes from a journal, which can say anything.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if session.is_empty() || !session.chars().all(is_plain) {
        return None;
    }
    let folders = fs::read_dir(claude_config.join("projects")).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join(format!("{session}.jsonl"))).find(|path| path.is_file())
}
