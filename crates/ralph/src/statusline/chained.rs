//! A status line that the person had before: it runs as it did, and the loop comes after its first line. The client has one place for both.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ralph_core::gate::Stream;
use ralph_engine::sys::{
    command::{self, Asked, Failure, Leave, Task},
    env,
};

use crate::term::{one_line::Brief, width::columns};

/// The client gives up after five seconds.
const PATIENCE: Duration = Duration::from_secs(3);

/// More than this is no status line.
const MOST: usize = 64 << 10;

const BETWEEN: &str = " | ";

/// The command's output, or in short why there is none.
pub(super) fn said(command: &str, input: &[u8]) -> Result<String, String> {
    let (program, args) = command::shell(command);
    let vars = vec![(env::STATUSLINE.into(), "1".into())];
    // Where the client started this program, it would have started theirs.
    let folder = Path::new(".");
    let task = Task { program, args, folder, vars, hidden: Vec::new(), input: input.to_vec(), limit: PATIENCE, most_output: MOST };
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = {
        let heard = Arc::clone(&heard);
        Arc::new(move |stream: Stream, bytes: &[u8]| {
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            if stream == Stream::Out && heard.len() < MOST {
                heard.extend_from_slice(bytes);
            }
        })
    };
    // Many of them look something up for the next time, and go on with that after their line is out.
    let mark = format!("{}=1", env::STATUSLINE);
    let leave =
        Leave { cancelled: &|| false, grace: Duration::ZERO, hurry: Duration::ZERO, asked: &|| Asked::ToEnd, leave_running: Some(&mark) };
    match task.run_heard(&(listener as command::Listener), leave) {
        Ok(ended) if ended.code == Some(0) => {
            let bytes = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
            Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned())
        }
        Ok(ended) => Err(ended.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit {code}"))),
        Err(Failure::TookTooLong) => Err(format!("took more than {} s", PATIENCE.as_secs())),
        Err(Failure::CannotStart(e)) => Err(e.to_string()),
        Err(Failure::Cancelled) => Err("interrupted".to_owned()),
    }
}

/// Both as one text. Without a loop it is the person's own, as it came; where there is no room beside it, the loop has a line of its own.
pub(super) fn joined(said: &Result<String, String>, own: Option<Brief>, width: Option<usize>) -> String {
    let theirs = match said {
        Ok(theirs) => theirs.clone(),
        Err(why) => format!("(your status line: {why})"),
    };
    let Some(own) = own else { return theirs };
    if theirs.trim().is_empty() {
        return own.fitted(width);
    }
    if said.is_err() {
        let room = width.map(|width| width.saturating_sub(columns(BETWEEN) + columns(&theirs)));
        return format!("{}{BETWEEN}{theirs}", own.fitted(room));
    }
    let (first, rest) = theirs.split_once('\n').unwrap_or((&theirs, ""));
    let rest = if rest.is_empty() { String::new() } else { format!("\n{rest}") };
    let room = width.map(|width| width.saturating_sub(columns(first) + columns(BETWEEN)));
    // What they colour ends where they say so, and no later than here.
    let first = if first.contains('\x1b') { format!("{first}\x1b[0m") } else { first.to_owned() };
    match room {
        Some(room) if room < own.shortest() => format!("{first}\n{}{rest}", own.fitted(width)),
        room => format!("{first}{BETWEEN}{}{rest}", own.fitted(room)),
    }
}
