//! Records as people read them: in the colour of what they mean, rounds apart; or as they are, for programs.

use ralph_core::{
    attempt::Outcome,
    journal::{Event, Record},
    judge::{Ending, Next},
};

use crate::{
    columns::cut,
    text::{of_event, when},
    ui,
};

/// Where the text begins, after the time.
const TEXT: usize = 21;

const UNREADABLE: &str = "(a line that cannot be read)";

pub(super) struct Page {
    json: bool,
    /// Something stands above.
    begun: bool,
}

impl Page {
    pub(super) fn new(json: bool) -> Self {
        Page { json, begun: false }
    }

    /// Prints one line; `false` if nobody reads any more.
    pub(super) fn show(&mut self, line: &[u8], record: Option<&Record>) -> bool {
        let raw = String::from_utf8_lossy(line);
        match record {
            _ if raw.trim().is_empty() => true,
            Some(_) if self.json => ui::try_json(raw.trim_end()),
            Some(record) => {
                let is_apart = self.begun && ui::width().is_some() && matches!(record.event, Event::Began { attempt: 1, .. });
                self.begun = true;
                ui::try_line(format!("{}{}", if is_apart { "\n" } else { "" }, in_words(record)))
            }
            // Half a line of a killed writer would stop a program that reads the rest.
            None if self.json => {
                ui::note(UNREADABLE);
                true
            }
            None => ui::try_line(ui::warn(UNREADABLE)),
        }
    }
}

fn in_words(record: &Record) -> String {
    let (at, text) = (ui::dim(when(&record.at)), of_event(record));
    // A prompt may be long, and everybody knows it.
    let text = match (&record.event, ui::width()) {
        (Event::Started { .. }, Some(width)) => cut(&text, width.saturating_sub(TEXT)),
        _ => text,
    };
    ui::fitted(&format!("{at} {}", painted(&record.event, text)), TEXT)
}

/// What is usual stays as it is, so that the rest stands out.
fn painted(event: &Event, text: String) -> String {
    match event {
        Event::Stop { ruling, .. } => match ruling.next {
            Next::GoesOn { .. } | Next::Stays => text,
            Next::Ends { ending: Ending::Complete } => ui::good(text),
            Next::Ends { ending: Ending::Failed } => ui::bad(text),
            Next::Ends { .. } | Next::Pauses | Next::Parks => ui::warn(text),
        },
        Event::Error { .. } | Event::Corrupt { .. } | Event::Broke { outcome: Outcome::Failed { .. }, .. } => ui::bad(text),
        Event::Paused { .. } | Event::Cancelled { .. } | Event::Left { .. } | Event::Broke { .. } => ui::warn(text),
        Event::Checking { .. } | Event::Waiting { .. } | Event::Heard { .. } | Event::Snapshot { .. } | Event::Unknown => ui::dim(text),
        _ => text,
    }
}
