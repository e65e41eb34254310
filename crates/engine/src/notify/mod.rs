//! Notifications when a loop ends, parks or needs a person. A failure takes little time, and costs only a sentence.

mod desktop;
mod programs;
mod terminal;
mod ways;
mod webhook;

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use ralph_core::{
    money::{self, Micros},
    text::{
        clean, opening,
        time::{self, Millis},
    },
};
use serde_json::{Value, json};

use crate::sys::{clock, secrets};

pub use ways::Ways;

/// The time for all notifications together.
const LIMIT: Duration = Duration::from_secs(10);

/// A shorter rest is taken in any case, and is no news.
pub(crate) const LONG_REST: Millis = 60_000;

const LONGEST_LINE: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ended,
    NeedsPerson,
    Parked,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Ended, Kind::NeedsPerson, Kind::Parked];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Ended => "ended",
            Kind::NeedsPerson => "needs-person",
            Kind::Parked => "parked",
        }
    }
}

/// The content of a notification.
#[derive(Debug, Clone, Copy)]
pub struct News<'a> {
    pub loop_id: &'a str,
    /// The loop's name; `main` needs no mention.
    pub name: &'a str,
    /// The project.
    pub folder: &'a Path,
    pub kind: Kind,
    /// How it ended, in a word: `complete`, `capped`, `blocked`.
    pub how: &'a str,
    /// The same in a sentence.
    pub line: &'a str,
    pub iteration: u64,
    /// How many iterations this run had; in a session, the loop.
    pub rounds: u64,
    /// The cost of the loop; 0: not counted.
    pub usd_micros: Micros,
    /// When it goes on by itself.
    pub until: Option<Millis>,
    /// The command to type next.
    pub next: Option<&'a str>,
}

impl News<'_> {
    /// `shop: complete`, `shop (docs): needs you`.
    pub fn title(&self) -> String {
        let project = self.project();
        let named = if self.name == "main" { String::new() } else { format!(" ({})", opening(self.name, 40)) };
        let what = match self.kind {
            Kind::Ended => clean(self.how),
            Kind::NeedsPerson => "needs you".to_owned(),
            Kind::Parked => "parked".to_owned(),
        };
        format!("{project}{named}: {what}")
    }

    fn project(&self) -> String {
        opening(&self.folder.file_name().unwrap_or(self.folder.as_os_str()).to_string_lossy(), 60)
    }

    /// Everything important in one line.
    pub fn body(&self) -> String {
        let mut parts = vec![secrets::opening(self.line, LONGEST_LINE)];
        let rounds = ralph_core::text::iterations(self.rounds);
        let cost = if self.usd_micros > 0 { format!(", {}", money::shown(self.usd_micros)) } else { String::new() };
        parts.push(format!("{rounds}{cost}"));
        parts.extend(self.until.map(|until| format!("goes on at {}", when(until))));
        parts.extend(self.next.map(|next| format!("next: {}", opening(next, 120))));
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    }

    /// For programs. `text` and `content` are what the webhooks of chat services show.
    fn document(&self) -> Value {
        let told = format!("{}: {}", self.title(), self.body());
        json!({
            "news": self.kind.as_str(),
            "how": self.how,
            "loop": self.loop_id,
            "name": self.name,
            "project": self.project(),
            "title": self.title(),
            "line": secrets::opening(self.line, LONGEST_LINE),
            "iteration": self.iteration,
            "rounds": self.rounds,
            "usd": money::in_dollars(self.usd_micros),
            "until": self.until.map(time::format),
            "next": self.next,
            "text": told,
            "content": told,
        })
    }

    /// Sends all notifications at once, and returns a sentence for each that failed.
    pub fn tell(&self, ways: &Ways) -> Vec<String> {
        let until = Instant::now() + LIMIT;
        thread::scope(|scope| {
            let mut told = Vec::new();
            if ways.terminal {
                told.push(scope.spawn(move || terminal::tell(self, until)));
            }
            if ways.desktop {
                told.push(scope.spawn(move || desktop::tell(self, until)));
            }
            told.extend(ways.commands.iter().map(|line| scope.spawn(move || programs::command(line, self, until))));
            told.extend(ways.webhooks.iter().map(|address| scope.spawn(move || webhook::tell(address, self, until))));
            told.into_iter()
                .filter_map(|one| one.join().unwrap_or_else(|_| Err("a notification failed inside ralph".to_owned())).err())
                .collect()
        })
    }
}

/// `2026-11-15 10:30 CET`
fn when(at: Millis) -> String {
    let zone = clock::zone();
    format!("{} {}", time::minute_in_zone(at, zone), time::zone_name(at, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_8_the_news_can_be_read_at_a_glance() {
        let news = News {
            loop_id: "docs-1",
            name: "docs",
            folder: Path::new("/home/me/shop"),
            kind: Kind::Parked,
            how: "parked",
            line: "Ralph: the 5-hour limit\u{1b}]0;x\u{7} is used up.",
            iteration: 4,
            rounds: 3,
            usd_micros: 3_200_000,
            until: Some(0),
            next: Some("ralph run --continue"),
        };
        assert_eq!(news.title(), "shop (docs): parked");
        assert_eq!(
            news.body(),
            "Ralph: the 5-hour limit]0;x is used up. · 3 iterations, $3.20 · goes on at 1970-01-01 00:00 UTC · next: ralph run --continue"
        );
        let quiet = News { name: "main", kind: Kind::Ended, how: "complete", rounds: 1, usd_micros: 0, until: None, next: None, ..news };
        assert_eq!(
            (quiet.title(), quiet.body()),
            ("shop: complete".to_owned(), "Ralph: the 5-hour limit]0;x is used up. · 1 iteration".to_owned())
        );
        let long = "x".repeat(5_000);
        assert!(News { line: &long, ..news }.body().len() < 600);
        assert_eq!(news.document()["text"], format!("{}: {}", news.title(), news.body()));
    }
}
