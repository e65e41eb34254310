//! Records as people read them: in the colour of what they mean, iterations apart; or as they are, for programs.

use ralph_core::{
    journal::{Event, Record},
    judge::{Ending, Next, session_outcome::Outcome},
};

use crate::{
    journal_lines::{of_event, when},
    term::width::cut,
    ui,
};

/// Where the text begins, after the time of day: on a terminal the day stands above.
const TEXT: usize = 10;

pub(super) struct Page {
    json: bool,
    /// The day of what stands above.
    day: Option<String>,
    /// Lines that could not be read since the last that could.
    unreadable: u64,
}

impl Page {
    pub(super) fn new(json: bool) -> Self {
        Page { json, day: None, unreadable: 0 }
    }

    /// Prints one line; `false` if the reader has gone.
    pub(super) fn show(&mut self, line: &[u8], record: Option<&Record>, who: Option<&str>) -> bool {
        let Some(record) = record else {
            self.unreadable += u64::from(!line.trim_ascii().is_empty());
            return true;
        };
        self.tell_of_unreadable()
            && match ui::width() {
                _ if self.json => ui::try_json(String::from_utf8_lossy(line).trim_end()),
                Some(width) => ui::try_line(self.on_a_terminal(record, who, width)),
                None => ui::try_line(format!("{} {}", ui::dim(when(&record.at)), painted(&record.event, of_event(record, who)))),
            }
    }

    /// Says how many lines in a row could not be read: once, because a file may hold nothing else.
    pub(super) fn tell_of_unreadable(&mut self) -> bool {
        let what = match std::mem::take(&mut self.unreadable) {
            0 => return true,
            1 => "(a line that cannot be read)".to_owned(),
            n => format!("({n} lines that cannot be read)"),
        };
        // Half a line of a killed writer would stop a program that reads the rest.
        if self.json {
            ui::note(&what);
            return true;
        }
        ui::try_line(ui::warn(what))
    }

    /// Each day has a line of its own, and iterations stand apart.
    fn on_a_terminal(&mut self, record: &Record, who: Option<&str>, width: usize) -> String {
        let at = when(&record.at);
        let (day, time) = at.split_once(' ').unwrap_or(("", &at));
        let is_new = self.day.as_deref() != Some(day);
        let is_apart = self.day.is_some() && (is_new || matches!(record.event, Event::Began { attempt: 1, .. }));
        let gap = if is_apart { "\n" } else { "" };
        let heading = if is_new && !day.is_empty() { format!("{}\n", ui::bold(day)) } else { String::new() };
        self.day = Some(day.to_owned());
        let text = of_event(record, who);
        // A prompt may be long, and the person knows it.
        let text = if matches!(record.event, Event::Started { .. }) { cut(&text, width.saturating_sub(TEXT)) } else { text };
        format!("{gap}{heading}{}", ui::fitted(&format!("{} {}", ui::dim(time), painted(&record.event, text)), TEXT))
    }
}

/// Ordinary records stay plain, so that the rest stands out.
fn painted(event: &Event, text: String) -> String {
    match event {
        Event::Stop { ruling, .. } => match ruling.next {
            Next::GoesOn { .. } | Next::Stays => text,
            Next::Ends { ending: Ending::Complete } => ui::good(text),
            Next::Ends { ending: Ending::Failed } => ui::bad(text),
            Next::Ends { .. } | Next::Pauses | Next::Parks => ui::warn(text),
        },
        Event::Error { .. } | Event::Misfit { .. } | Event::Corrupt { .. } | Event::Broke { outcome: Outcome::Failed { .. }, .. } => {
            ui::bad(text)
        }
        Event::Paused { .. } | Event::Edited { .. } | Event::Cancelled { .. } | Event::Left { .. } | Event::Broke { .. } => ui::warn(text),
        Event::Checking { .. } | Event::Waiting { .. } | Event::Heard { .. } | Event::Snapshot { .. } | Event::Unknown => ui::dim(text),
        _ => text,
    }
}
