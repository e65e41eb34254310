//! The transcripts that Claude Code writes: where those of a session and of its subagents lie, and what a session used by them.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    hosts::claude::{transcript::Source, usage::Tally},
    sys::files,
};

/// More files of subagents than this are not looked at.
const MOST_FILES: usize = 5_000;

/// A transcript as it lies there.
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

/// `<session>/subagents/agent-*.jsonl` beside `<session>.jsonl`, the one that was changed first first: what is not read for want of time is newer than
/// all that was.
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

/// What a session used, its subagents included, as far as its transcripts under the client's folder tell.
pub fn used(claude_config: &Path, session: &str) -> Option<Tally> {
    let own = find(claude_config, session)?;
    let mut tally = Tally::default();
    // The session's own comes last: its model is the one to name.
    for path in of_subagents(&own).into_iter().map(|transcript| transcript.path).chain([own]) {
        if let Some(source) = OpenFile::open(&path) {
            tally.read(&source);
        }
    }
    Some(tally)
}

/// `projects/<folder>/<session>.jsonl`. The name of the folder is made of the project's path in ways that change; the session's id is enough.
pub fn find(claude_config: &Path, session: &str) -> Option<PathBuf> {
    // A journal can say that a session has any name.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if session.is_empty() || !session.chars().all(is_plain) {
        return None;
    }
    let folders = fs::read_dir(claude_config.join("projects")).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join(format!("{session}.jsonl"))).find(|path| path.is_file())
}

/// So long the end of a transcript may be read, by the clock on the wall: somebody waits for the answer. The client's own takes some milliseconds.
const LONGEST: Duration = Duration::from_secs(1);

/// A file as the transcript reader wants it.
pub(crate) struct OpenFile {
    file: File,
    size: u64,
    session: Option<String>,
    until: Option<Instant>,
}

impl OpenFile {
    pub(crate) fn open(path: impl AsRef<Path>) -> Option<Self> {
        let (file, size) = files::open_regular(path.as_ref()).ok()?;
        Some(OpenFile { file, size, session: None, until: None })
    }

    /// The same for a hook that asks about a session: only that one's lines count, and only those that can be read in time.
    pub(crate) fn of_session(path: impl AsRef<Path>, session: Option<&str>) -> Option<Self> {
        let file = OpenFile::open(path)?;
        Some(OpenFile { session: session.map(str::to_owned), until: Some(Instant::now() + LONGEST), ..file })
    }
}

impl Source for OpenFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        use std::os::unix::fs::FileExt;
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) | Err(_) => break,
                Ok(n) => done += n,
            }
        }
        done
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        use std::os::windows::fs::FileExt;
        self.file.seek_read(buf, offset).unwrap_or(0)
    }
}
