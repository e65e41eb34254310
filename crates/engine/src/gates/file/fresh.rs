//! Whether a report speaks about the sources as they are now.
//!
//! Modification times decide when a report is seen for the first time, because there is nothing else; and from then on the contents, because times change
//! with every checkout: what was fresh stays so while the sources' fingerprint is the same, and is stale as soon as it is not.

use std::{
    fs::{self, Metadata},
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use ralph_core::text::opening;
use serde::{Deserialize, Serialize};

use super::{Miss, SHOWN};
use crate::{
    gates::{
        Context,
        tree::{self, Patterns},
    },
    store::project::Project,
    sys::digest,
};

/// So many sightings are kept.
const KEPT: usize = 200;

/// A report that was read.
pub(super) struct Evidence<'a> {
    pub(super) shown: &'a str,
    pub(super) path: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) meta: &'a Metadata,
}

/// A report that was fresh, and the sources that it was fresh for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sighting {
    /// Which file and which sources were asked about.
    about: String,
    content: String,
    /// Nanoseconds since 1970: tells a report that was written anew with the same words.
    written: u64,
    sources: String,
}

pub(super) fn look(report: &Evidence<'_>, patterns: &[String], evidence: &[&str], ctx: &Context<'_>) -> Result<(), Miss> {
    let wanted = Patterns::new(patterns).map_err(|problem| Miss::unknown(format!("its sources cannot be told: {problem}")))?;
    let is_source = |path: &str| wanted.select(path) && !evidence.contains(&path);
    let tree = ctx
        .files()
        .or_else(|| tree::walked(ctx.tree, ctx.time_left().min(tree::PATIENCE)).map(Arc::new))
        .filter(|tree| tree.is_whole())
        .ok_or_else(|| Miss::unknown(format!("cannot tell whether {} is fresh: the project's files cannot be listed", report.shown)))?;
    let sources: Vec<String> = tree.files().filter(|path| is_source(path)).map(str::to_owned).collect();
    if sources.is_empty() && !patterns.is_empty() {
        let shown = opening(&patterns.join(", "), SHOWN);
        return Err(Miss::unknown(format!("cannot tell whether {} is fresh: there is no file among its sources ({shown})", report.shown)));
    }
    let now = tree.fingerprint(Some(ctx.project), is_source).map(|sources| Sighting {
        about: digest::of(serde_json::json!([report.path, patterns]).to_string().as_bytes()),
        content: digest::of(report.bytes),
        written: nanoseconds(report.meta.modified().ok()),
        sources,
    });
    let mut memory = Memory::of(ctx.project);
    match now.as_ref().and_then(|now| memory.remembers(now)) {
        Some(true) => Ok(()),
        Some(false) => Err(stale(report, newer_source(ctx.tree, &sources, report.meta))),
        None => match newer_source(ctx.tree, &sources, report.meta) {
            Some(source) => Err(stale(report, Some(source))),
            None => {
                if let Some(now) = now {
                    memory.keep(now);
                }
                Ok(())
            }
        },
    }
}

fn stale(report: &Evidence<'_>, source: Option<&str>) -> Miss {
    let what = match source {
        Some(source) => format!("{} changed after {} was written", opening(source, SHOWN), report.shown),
        None => {
            format!("the sources changed after {} was written (something was removed, or came back with an older date)", report.shown)
        }
    };
    Miss::fails(what).advises("run the checks again, then write it again")
}

/// The newest of the sources, if it is newer than the report.
fn newer_source<'a>(root: &Path, sources: &'a [String], report: &Metadata) -> Option<&'a str> {
    let written = report.modified().ok();
    let modified = |path: &String| fs::symlink_metadata(root.join(path)).and_then(|meta| meta.modified()).ok();
    let (at, path) = sources.iter().filter_map(|path| Some((modified(path)?, path))).max_by_key(|(at, _)| *at)?;
    (Some(at) > written).then_some(path)
}

fn nanoseconds(time: Option<SystemTime>) -> u64 {
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

/// Reports that were seen before.
struct Memory<'a> {
    project: &'a Project,
    seen: Vec<Sighting>,
}

const FILE: &str = "fresh.json";

impl<'a> Memory<'a> {
    fn of(project: &'a Project) -> Self {
        Memory { project, seen: project.load(FILE).unwrap_or_default() }
    }

    /// Whether these words were fresh for these sources; `Some(false)`: this very report was, for other ones. `None`: nothing is known.
    fn remembers(&self, now: &Sighting) -> Option<bool> {
        let mut same_words = self.seen.iter().filter(|seen| seen.about == now.about && seen.content == now.content).peekable();
        same_words.peek()?;
        let mut is_known = false;
        for seen in same_words {
            if seen.sources == now.sources {
                return Some(true);
            }
            is_known |= seen.written == now.written;
        }
        is_known.then_some(false)
    }

    /// Keeps a sighting. If that cannot be, modification times decide once more.
    fn keep(&mut self, sighting: Sighting) {
        self.seen.push(sighting);
        let too_many = self.seen.len().saturating_sub(KEPT);
        self.seen.drain(..too_many);
        let _ = self.project.save(FILE, &self.seen);
    }
}
