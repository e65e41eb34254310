//! `ralph steer`: leave a note for the agent.

use std::io::{IsTerminal, Read, stdin};

use ralph_core::text::{messages::clean, prompt::MAX_NOTE};
use ralph_engine::{
    ops::steer::{self, Fate, Left, Story},
    store::{project::Project, seal},
};
use serde_json::json;

use crate::{
    commands::{asker, show_json},
    exit::{Done, Failure},
    find_loop,
    text::when,
    ui,
};

/// Leave a note for the agent: the next prompt tells it
///
/// The note is kept with the loop until the agent gets it: at its next stop, or with the prompt of the next iteration of `ralph run`. A loop that is paused
/// or parked tells it when it goes on.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph steer \"Leave the parser alone, the bug is in the printer\"
  ralph steer - < remarks.txt
  ralph steer --list")]
pub(crate) struct Args {
    /// What the agent shall know; - takes it from standard input
    #[arg(value_name = "TEXT", required_unless_present_any = ["list", "clear"])]
    text: Vec<String>,
    /// A loop's name or id, as `ralph list` shows them
    #[arg(long, value_name = "LOOP")]
    name: Option<String>,
    /// Show the notes, and which iteration was told which
    #[arg(long, conflicts_with_all = ["text", "clear"])]
    list: bool,
    /// Take back the notes that have not been told yet
    #[arg(long, conflicts_with = "text")]
    clear: bool,
    /// For programs: the loop as JSON, as `ralph status --json` shows it; with --list the notes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    if args.list { list(project, args) } else { steer(project, args) }
}

fn steer(project: &Project, args: &Args) -> Done {
    let (id, line) = if args.clear { clear(project, args)? } else { leave(project, args)? };
    if args.json {
        show_json(project, &id);
    } else {
        ui::paragraph(line, 0);
    }
    Ok(())
}

fn leave(project: &Project, args: &Args) -> Result<(String, String), Failure> {
    let left = steer::leave(project, args.name.as_deref(), &text(args)?, &asker())?;
    let line = line(&left);
    Ok((left.id, line))
}

pub(crate) fn line(left: &Left) -> String {
    let then = if left.paused { "It is told when the loop goes on: `ralph resume`." } else { "The next prompt tells it." };
    let others = match left.waiting - 1 {
        0 => String::new(),
        1 => " One more waits with it.".to_owned(),
        n => format!(" {n} more wait with it."),
    };
    format!("Note {} is left for the agent of {}. {then}{others}", left.note, ui::bold(clean(&left.id)))
}

fn clear(project: &Project, args: &Args) -> Result<(String, String), Failure> {
    let (id, cleared) = steer::clear(project, args.name.as_deref(), &asker())?;
    let line = match cleared.len() {
        0 => "No note waits to be told.".to_owned(),
        1 => "The note is taken back.".to_owned(),
        n => format!("{n} notes are taken back."),
    };
    Ok((id, line))
}

fn text(args: &Args) -> Result<String, Failure> {
    if args.text != ["-"] {
        return Ok(args.text.join(" "));
    }
    if stdin().is_terminal() {
        ui::note("the note is read from the terminal; end it with Ctrl-D on a line of its own");
    }
    let mut bytes = Vec::new();
    // Somewhat more than is taken, so that it is known to be too long, and not all that a pipe can bring.
    let most = 8 * MAX_NOTE as u64;
    stdin().lock().take(most).read_to_end(&mut bytes).map_err(|e| Failure::new(format!("cannot read standard input: {e}")))?;
    if bytes.len() as u64 == most {
        return Err(Failure::new(format!(
            "the note is longer than {MAX_NOTE} characters: put it into a file, and name the file in the note"
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("the note is not UTF-8 text"))
}

fn list(project: &Project, args: &Args) -> Done {
    let view = find_loop::view(project, args.name.as_deref())?;
    // A loop that nothing has happened to yet has no journal.
    let mut records = if view.journal.exists() { find_loop::read(&view.journal)?.0 } else { Vec::new() };
    // The last line may have been written down elsewhere and not here yet.
    let last = seal::last(project, &view.id).filter(|last| records.last().is_none_or(|known| known.seq < last.seq));
    records.extend(last);
    let stories = steer::stories(&records);
    if args.json {
        ui::json(&json!({ "loop": view.id, "notes": stories }));
        return Ok(());
    }
    if stories.is_empty() {
        ui::paragraph(format!("No note was left for the agent of {}. `ralph steer \"…\"` leaves one.", clean(&view.id)), 0);
    }
    for story in &stories {
        ui::line(format!("{}  {}  {}", ui::bold(format!("note {}", story.id)), when(&story.left_at), fate(story)));
        for line in story.text.lines() {
            ui::paragraph(format!("  {}", clean(line)), 2);
        }
    }
    Ok(())
}

fn fate(story: &Story) -> String {
    match (story.fate, story.told_in) {
        (Fate::Told, Some(round)) => ui::good(format!("told in iteration {round}")),
        (Fate::Told, None) => ui::good("told"),
        (Fate::Waiting, _) => ui::warn("waits to be told"),
        (Fate::TakenBack, _) => ui::dim("taken back"),
        (Fate::Dropped, _) => ui::dim("never told: the loop began anew"),
    }
}
