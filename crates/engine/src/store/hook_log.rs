//! The debug log: one line for every hook call (S0-1), in `.ralph/hook.log` of a project that uses ralph.
//!
//! Elsewhere ralph leaves no trace, unless `RALPH_LOG` names a file. Failing to log never changes an answer.

use std::fmt::Write as _;

use ralph_core::{judge::Reason, text::time};

use crate::{
    store::{project::Project, trouble},
    sys::{clock, env, files, secrets},
};

/// A longer log is put aside; one old log is kept.
const MAX_BYTES: u64 = 1024 * 1024;

/// One hook call.
#[derive(Debug, Default)]
pub(crate) struct Entry<'a> {
    pub trigger: &'a str,
    pub session: &'a str,
    pub decision: &'a str,
    pub code: &'a str,
    pub loop_id: &'a str,
    pub error: Option<&'a str>,
}

/// `in_use`: the project uses ralph, see [`Project::is_in_use`]. No folder is made here.
pub(crate) fn write(project: &Project, in_use: bool, entry: &Entry<'_>) {
    let paths = [in_use.then(|| project.own().join("hook.log")), env::log_file()];
    for path in paths.into_iter().flatten() {
        if let Err(e) = files::append_bounded(&path, line(entry).as_bytes(), MAX_BYTES) {
            trouble::note(project, entry.trigger, Reason::LOG_UNWRITTEN, &format!("cannot write {}: {e}", path.display()));
        }
    }
}

fn line(entry: &Entry<'_>) -> String {
    let at = time::format(clock::now());
    let mut line =
        format!("{at} event={} decision={} code={} session={}", word(entry.trigger), entry.decision, entry.code, word(entry.session));
    if !entry.loop_id.is_empty() {
        line.push_str(" loop=");
        line.push_str(entry.loop_id);
    }
    if let Some(error) = entry.error {
        let _ = write!(line, " error={:?}", secrets::excerpt(error, 400));
    }
    line.push('\n');
    line
}

/// A value from outside as one word of the log.
fn word(text: &str) -> String {
    let word: String = text.chars().take(80).map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}
