//! The `file` gate: a file that must be there, say something, and be no older than what it speaks about.

mod fresh;

#[cfg(test)]
mod tests;

use std::{
    fs::{self, Metadata},
    io,
    path::Path,
};

use ralph_core::{
    gate::{Check, File, Finding, Gate, Verdict},
    text::opening,
};

use crate::{gates::Context, sys::files};

/// A larger file is no report.
const MAX_BYTES: usize = 16 << 20;

/// How much of a path is shown.
const SHOWN: usize = 120;

/// A check that does not hold, or cannot be told.
struct Miss {
    verdict: Verdict,
    what: String,
    /// Advice, if the gate itself has none.
    advice: Option<&'static str>,
}

impl Miss {
    fn fails(what: String) -> Self {
        Miss { verdict: Verdict::Fail, what, advice: None }
    }

    fn unknown(what: String) -> Self {
        Miss { verdict: Verdict::Unknown, ..Miss::fails(what) }
    }

    fn advises(self, advice: &'static str) -> Self {
        Miss { advice: Some(advice), ..self }
    }

    /// An agent that hears "write it" beside "run the quality gate until it writes it" may well write it.
    fn finding(self, gate: &Gate) -> Finding {
        let what = match self.advice.filter(|_| gate.next.is_none()) {
            Some(advice) => format!("{}: {advice}", self.what),
            None => self.what,
        };
        gate.finding(self.verdict, what)
    }
}

/// Measures a `file` gate. `gates` are all that apply: what they ask for is evidence, and no evidence makes other evidence stale.
pub(super) fn measure(gate: &Gate, check: &File, gates: &[Gate], ctx: &Context<'_>) -> Finding {
    match look(check, gates, ctx) {
        Ok(what) => gate.finding(Verdict::Pass, what),
        Err(miss) => miss.finding(gate),
    }
}

fn look(check: &File, gates: &[Gate], ctx: &Context<'_>) -> Result<String, Miss> {
    let path = opening(&check.path, SHOWN);
    let (bytes, meta) = read(&path, &check.path, ctx.tree)?;
    let mut holds = vec![format!("{path} exists")];
    holds.extend(check.check(&String::from_utf8_lossy(&bytes)).map_err(|(verdict, what)| Miss { verdict, what, advice: None })?);
    if let Some(patterns) = &check.fresh {
        fresh::look(&fresh::Evidence { shown: &path, path: &check.path, bytes: &bytes, meta: &meta }, patterns, &evidence(gates), ctx)?;
        holds.push("is newer than the sources".to_owned());
    }
    Ok(match holds.as_slice() {
        [first, middle @ .., last] if !middle.is_empty() => format!("{first}, {} and {last}", middle.join(", ")),
        all => all.join(" and "),
    })
}

/// The file's content. A link counts as its target, if that is inside of the project.
fn read(shown: &str, path: &str, tree: &Path) -> Result<(Vec<u8>, Metadata), Miss> {
    let cannot = |e: &io::Error| Miss::unknown(format!("{shown} cannot be read: {e}"));
    let at = match tree.join(path).canonicalize() {
        Ok(at) => at,
        Err(e) if files::is_missing(&e) => {
            return Err(Miss::fails(format!("{shown} is not there")).advises("write it"));
        }
        Err(e) => return Err(cannot(&e)),
    };
    if !tree.canonicalize().is_ok_and(|root| at.starts_with(root)) {
        return Err(Miss::fails(format!("{shown} leads out of the project: the file itself must lie there")));
    }
    let meta = fs::metadata(&at).map_err(|e| cannot(&e))?;
    if meta.is_dir() {
        return Err(Miss::fails(format!("{shown} is a folder: a file must be there")));
    }
    if !meta.is_file() {
        return Err(Miss::fails(format!("{shown} is not a plain file")));
    }
    match files::read(&at, MAX_BYTES) {
        Ok(bytes) => Ok((bytes, meta)),
        Err(e) if e.kind() == io::ErrorKind::FileTooLarge => {
            Err(Miss::unknown(format!("{shown} is larger than {} MB: that is not read", MAX_BYTES >> 20)))
        }
        Err(e) => Err(cannot(&e)),
    }
}

/// The files that gates look at: reports and lists, not sources.
fn evidence(gates: &[Gate]) -> Vec<&str> {
    let paths = gates.iter().filter_map(|gate| match &gate.check {
        Check::File(file) => Some(file.path.as_str()),
        Check::Features(list) => Some(list.path.as_str()),
        Check::Command(command) => command.junit.as_deref(),
        Check::Markers(_) | Check::Committed | Check::PullRequest(_) | Check::Ci(_) => None,
    });
    paths.map(|path| path.strip_prefix("./").unwrap_or(path)).collect()
}
