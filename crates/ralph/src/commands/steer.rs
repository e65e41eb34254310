//! `ralph steer`: leave a note for the agent.

use ralph_core::{journal::Note, text::clean};
use ralph_engine::{
    ops::steer::{self, Fate, Left, Story},
    store::{project::Project, seal},
};
use serde_json::json;

use crate::{
    commands::{asker, read_stdin, show},
    exit::{Done, Failure},
    find_loop,
    journal_lines::when,
    ui,
};

/// Leave a note for the agent, delivered with its next prompt
///
/// The note is kept with the loop until the agent gets it: at its next stop, or with the prompt of the next iteration of `ralph run`. A paused or
/// parked loop delivers it when it goes on.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph steer \"Leave the parser alone, the bug is in the printer\"
  ralph steer docs \"Use British spelling\"
  ralph steer - < remarks.txt
  ralph steer --list")]
pub(crate) struct Args {
    /// The note; - reads it from standard input. Where there are several loops, the first of two arguments is a loop's name or id
    #[arg(value_name = "[LOOP] TEXT", required_unless_present_any = ["list", "clear"])]
    text: Vec<String>,
    /// The loop, as an option
    #[arg(long, value_name = "LOOP", hide = true)]
    name: Option<String>,
    /// Show the notes, and the iteration that got each of them
    #[arg(long, conflicts_with = "clear")]
    list: bool,
    /// Take back the notes that are not delivered yet
    #[arg(long)]
    clear: bool,
    /// For programs: the loop as JSON, as `ralph status --json` shows it; with --list the notes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let (which, words) = addressed(project, args)?;
    let which = which.as_deref();
    if args.list {
        return list(project, which, args.json);
    }
    let (id, line) = if args.clear { clear(project, which)? } else { leave(project, which, &words)? };
    show(project, &id, args.json, line);
    Ok(())
}

/// The loop that is named, and the words of the note. With --list and --clear there is no note, and the only word is a loop's name.
fn addressed(project: &Project, args: &Args) -> Result<(Option<String>, Vec<String>), Failure> {
    match &args.text[..] {
        [one] if args.list || args.clear => Ok((Some(one.clone()), Vec::new())),
        [_, ..] if args.list || args.clear => Err(Failure::usage("--list and --clear take the name of a loop, and no note")),
        [first, note] if args.name.is_none() && find_loop::view(project, Some(first)).is_ok() => {
            Ok((Some(first.clone()), vec![note.clone()]))
        }
        words => Ok((args.name.clone(), words.to_vec())),
    }
}

fn leave(project: &Project, which: Option<&str>, words: &[String]) -> Result<(String, String), Failure> {
    let left = steer::leave(project, which, &text(words)?, &asker())?;
    let line = line(&left);
    Ok((left.id, line))
}

pub(crate) fn line(left: &Left) -> String {
    let then =
        if left.paused { "The agent gets it when the loop goes on: `ralph resume`." } else { "The agent gets it with the next prompt." };
    let others = match left.waiting - 1 {
        0 => String::new(),
        1 => " One more waits with it.".to_owned(),
        n => format!(" {n} more wait with it."),
    };
    format!("Note {} is left for the agent of {}. {then}{others}", left.note, ui::bold(clean(&left.id)))
}

fn clear(project: &Project, which: Option<&str>) -> Result<(String, String), Failure> {
    let (id, cleared) = steer::clear(project, which, &asker())?;
    let line = match cleared.len() {
        0 => "No note is waiting.".to_owned(),
        1 => "The note is taken back.".to_owned(),
        n => format!("{n} notes are taken back."),
    };
    Ok((id, line))
}

fn text(words: &[String]) -> Result<String, Failure> {
    if words != ["-"] {
        return Ok(words.join(" "));
    }
    // More than is taken, so that a note that is too long is seen, but not all that a pipe can bring.
    let most = 8 * Note::MAX_CHARS;
    let bytes = read_stdin("the note", most as u64)?;
    if bytes.len() == most {
        return Err(Failure::new(format!(
            "the note is longer than {} characters: put it into a file, and name the file in the note",
            Note::MAX_CHARS
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("the note is not UTF-8 text"))
}

fn list(project: &Project, which: Option<&str>, json: bool) -> Done {
    let view = find_loop::view(project, which)?;
    // A loop that nothing has happened to yet has no journal.
    let mut records = if view.journal.exists() { find_loop::read(&view.journal)?.0 } else { Vec::new() };
    // The last line may have been written down elsewhere and not here yet.
    let last = seal::last(project, &view.id).filter(|last| records.last().is_none_or(|known| known.seq < last.seq));
    records.extend(last);
    let stories = Story::all(&records);
    if json {
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
        (Fate::Told, Some(iteration)) => ui::good(format!("delivered in iteration {iteration}")),
        (Fate::Told, None) => ui::good("delivered"),
        (Fate::Waiting, _) => ui::warn("waiting"),
        (Fate::TakenBack, _) => ui::dim("taken back"),
        (Fate::Dropped, _) => ui::dim("never delivered: the loop was started again"),
    }
}
