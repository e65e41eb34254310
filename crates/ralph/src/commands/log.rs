//! `ralph log`: a loop's journal, line by line.

use std::{
    fs::File,
    io::{BufRead, BufReader, ErrorKind},
    time::Duration,
};

use ralph_core::journal::{Event, Record};
use ralph_engine::store::project::Project;

use crate::{
    columns::cut,
    commands::{Which, pick},
    exit::{Done, Failure, told},
    text::{of_event, when},
    ui,
};

/// How often a followed journal is looked at.
const PAUSE: Duration = Duration::from_millis(200);
/// Where the text begins, after the time.
const TEXT: usize = 21;

/// Show what happened to a loop, line by line
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph log
  ralph log -f
  ralph log main-20261115-093000 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Go on showing what happens, until the loop ends
    #[arg(short, long)]
    follow: bool,
    /// For programs: the journal's own JSON lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    told(args.json, log(project, args))
}

fn log(project: &Project, args: &Args) -> Done {
    let view = pick::view(project, args.which.get())?;
    let cannot = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => Failure::new("nothing has happened to this loop yet"),
        _ => Failure::new(format!("cannot read {}: {e}", view.journal.display())),
    };
    let mut journal = BufReader::new(File::open(&view.journal).map_err(cannot)?);
    let mut line = Vec::new();
    loop {
        let n = journal.read_until(b'\n', &mut line).map_err(cannot)?;
        let complete = line.ends_with(b"\n");
        if !complete && (args.follow || n == 0) {
            // Nothing more yet, or only the beginning of a line.
            if !args.follow {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
            continue;
        }
        let record = serde_json::from_slice::<Record>(&line).ok();
        let ended = record.as_ref().is_some_and(|r| r.state.ended.is_some());
        // An ending that more follows on was not the last one.
        let over = args.follow && ended && journal.fill_buf().map_err(cannot)?.is_empty();
        if !show(&line, record.as_ref(), args.json) || over {
            return Ok(());
        }
        line.clear();
    }
}

/// Prints one line; `false` if nobody reads any more.
fn show(line: &[u8], record: Option<&Record>, json: bool) -> bool {
    let raw = String::from_utf8_lossy(line);
    match record {
        _ if raw.trim().is_empty() => true,
        Some(_) if json => ui::try_json(raw.trim_end()),
        Some(record) => ui::try_line(in_words(record)),
        // Half a line of a killed writer would stop a program that reads the rest.
        None if json => {
            ui::note(UNREADABLE);
            true
        }
        None => ui::try_line(ui::warn(UNREADABLE)),
    }
}

const UNREADABLE: &str = "(a line that cannot be read)";

fn in_words(record: &Record) -> String {
    let (at, text) = (ui::dim(when(&record.at)), of_event(record));
    match (&record.event, ui::width()) {
        // A prompt may be long, and everybody knows it.
        (Event::Started { .. }, Some(width)) => format!("{at} {}", cut(&text, width.saturating_sub(TEXT))),
        _ => ui::fitted(&format!("{at} {text}"), TEXT),
    }
}
