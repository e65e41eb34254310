//! What is shown, kept up to date for all who look on: read as long as anyone does, and told when it changed.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::view::Seen;
use crate::{
    board::Board,
    history::{self, Line},
    problem::Result,
    screen::Around,
    settings::{Place, Settings},
    store::Store,
};

/// How often the queue is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// How long the end waits for those who look on.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The log is read as a whole: at most a tenth of the time goes into that.
const LOG_SHARE: u32 = 10;

#[derive(Debug)]
pub(super) struct Feed {
    pub place: Place,
    pub settings: Settings,
    pub store: Arc<dyn Store>,
    pub allows_control: bool,
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Shown {
    version: u64,
    json: Arc<str>,
    watchers: usize,
    is_over: bool,
}

/// Someone looks on, for as long as this value lives.
pub(super) struct Watcher<'a> {
    feed: &'a Feed,
    version: u64,
}

/// What a watcher was waiting for.
pub(super) enum News {
    Changed(Arc<str>),
    Nothing,
    /// The program ends.
    Over,
}

impl Feed {
    pub(super) fn new(place: Place, settings: Settings, store: Arc<dyn Store>, allows_control: bool) -> Self {
        Feed { place, settings, store, allows_control, shown: Mutex::default(), changed: Condvar::new() }
    }

    /// Follows the queue until the end is asked for.
    pub(super) fn follow(&self, is_over: &dyn Fn() -> bool) {
        let mut board = Board::default();
        let (mut lines, mut log_at): (Vec<Line>, Instant) = (Vec::new(), Instant::now());
        while !is_over() {
            if self.shown().watchers > 0 {
                if Instant::now() >= log_at {
                    let began = Instant::now();
                    lines = history::read(&*self.store).unwrap_or(lines);
                    log_at = Instant::now() + began.elapsed() * LOG_SHARE;
                }
                let told = match self.read(&mut board, &lines) {
                    Ok(json) => json.to_string(),
                    // What was shown last stays, with a word about it.
                    Err(problem) => serde_json::json!({ "problem": problem.to_string() }).to_string(),
                };
                self.tell(told);
            }
            thread::sleep(LOOK_EVERY);
        }
        let mut shown = self.shown();
        shown.is_over = true;
        self.changed.notify_all();
        // Who looks on is told that it ends.
        drop(self.changed.wait_timeout_while(shown, LAST_WORDS, |shown| shown.watchers > 0));
    }

    fn read(&self, board: &mut Board, lines: &[Line]) -> Result<serde_json::Value> {
        board.refresh(&*self.store)?;
        let around = Around::read(&*self.store, &self.place)?;
        let seen =
            Seen { board, around: &around, lines, place: &self.place, settings: &self.settings, allows_control: self.allows_control };
        Ok(seen.json())
    }

    fn tell(&self, json: String) {
        let mut shown = self.shown();
        if *shown.json != *json {
            shown.json = json.into();
            shown.version += 1;
            self.changed.notify_all();
        }
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more who looks on. `None`: there are too many.
    pub(super) fn watch(&self, most: usize) -> Option<Watcher<'_>> {
        let mut shown = self.shown();
        (shown.watchers < most).then(|| {
            shown.watchers += 1;
            Watcher { feed: self, version: 0 }
        })
    }
}

impl Watcher<'_> {
    /// Waits for something new, for at most so long.
    pub(super) fn next(&mut self, patience: Duration) -> News {
        let wait =
            self.feed.changed.wait_timeout_while(self.feed.shown(), patience, |shown| shown.version <= self.version && !shown.is_over);
        let shown = wait.unwrap_or_else(PoisonError::into_inner).0;
        if shown.is_over {
            return News::Over;
        }
        if shown.version <= self.version {
            return News::Nothing;
        }
        self.version = shown.version;
        News::Changed(Arc::clone(&shown.json))
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.feed.shown().watchers -= 1;
        self.feed.changed.notify_all();
    }
}
