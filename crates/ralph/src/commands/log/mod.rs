//! `ralph log`: a loop's journal, line by line.

mod filter;
mod lines;
mod page;

use std::{collections::VecDeque, io::ErrorKind, time::Duration};

use ralph_core::{
    journal::Record,
    text::time::{self, Millis},
};
use ralph_engine::{
    store::project::Project,
    sys::{clock, files},
};

use crate::{
    agent_names::Who,
    commands::Which,
    exit::{Done, Failure},
    find_loop,
};

use filter::Filter;
use lines::Lines;
use page::Page;

const PAUSE: Duration = Duration::from_millis(200);

/// Show what happened to a loop, line by line
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph log
  ralph log -f -n 20
  ralph log --since 2h --reason gate
  ralph log main-20261115-093000 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Keep showing what happens, until the loop ends
    #[arg(short, long)]
    follow: bool,
    /// Only what happened since then: 90s, 30m, 2h, 3d, or a time such as 2026-11-15, 2026-11-15T09:30 or 2026-11-15T09:30:00Z
    #[arg(short, long, value_name = "TIME", value_parser = since)]
    since: Option<Millis>,
    /// Only stops that were decided for this reason: promise.missing, or gate for all of gate.*; may be given several times
    #[arg(short, long, value_name = "CODE")]
    reason: Vec<String>,
    /// Only the last N lines
    #[arg(short = 'n', long = "lines", value_name = "N")]
    last: Option<usize>,
    /// For programs: the journal's own JSON lines
    #[arg(long)]
    json: bool,
}

fn since(text: &str) -> Result<Millis, String> {
    time::since(text, clock::now(), clock::zone())
        .ok_or_else(|| "say how long ago (90s, 30m, 2h, 3d), or when (2026-11-15, 2026-11-15T09:30:00Z)".to_owned())
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let filter = Filter::of(&args.reason, args.since)?;
    let view = find_loop::view(project, args.which.get())?;
    let cannot = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => Failure::new("nothing has happened to this loop yet"),
        _ => Failure::new(format!("cannot read {}: {e}", view.journal.display())),
    };
    let mut lines = Lines::of(files::open_regular(&view.journal).map_err(cannot)?.0);
    let (mut page, mut agents) = (Page::new(args.json), Who::default());
    let mut last = VecDeque::new();
    let mut most = args.last;
    let mut ended = false;
    loop {
        while let Some(line) = lines.next(args.follow).map_err(cannot)? {
            let record = serde_json::from_slice::<Record>(&line).ok();
            ended = record.as_ref().map_or(ended, |record| record.state.ended.is_some());
            let who = record.as_ref().and_then(|record| agents.take(record));
            if !filter.takes(record.as_ref()) {
                continue;
            }
            let Some(most) = most else {
                if page.show(&line, record.as_ref(), who.as_deref()) {
                    continue;
                }
                return Ok(());
            };
            last.push_back((line, record, who));
            if last.len() > most {
                last.pop_front();
            }
        }
        // From now on every line is new.
        most = None;
        // The reader may have gone. An ending that more follows on was not the last one.
        let is_read =
            last.drain(..).all(|(line, record, who)| page.show(&line, record.as_ref(), who.as_deref())) && page.tell_of_unreadable();
        if !args.follow || !is_read || ended {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
}
