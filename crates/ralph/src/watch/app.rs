//! The state of the screen, and how keys change it.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ralph_core::text::{
    clean,
    time::{self, Millis},
};
use ralph_engine::{
    hosts,
    sys::clock,
    view::{Status, View},
};

use crate::{
    advice,
    watch::{
        Act, Command,
        editor::{Editor, Typed},
        followed::Followed,
        loops::{Entry, Loops, is_busy},
    },
};

/// How long a line about what was done stays.
const SAID_FOR: Duration = Duration::from_secs(12);

/// While an agent works, a clock runs on the screen.
const TICK: Duration = Duration::from_secs(1);
/// Otherwise only what no notification tells has to be noticed.
const REST: Duration = Duration::from_secs(30);
/// Looks now and then for what no file tells: that a process has died.
const LOOK_AGAIN: Millis = 5_000;

/// The view that fills the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    Loop,
    /// All loops, to choose one.
    Overview,
    Log,
    Help,
}

pub(super) enum Asks {
    Nothing,
    /// Whether this loop, by its id, should end.
    Cancel {
        id: String,
        root: PathBuf,
    },
    Note(Editor),
    Search(Editor),
}

/// A line about what a key did.
pub(super) struct Said {
    pub(super) words: String,
    pub(super) refused: bool,
}

impl Said {
    fn refused(words: impl Into<String>) -> Self {
        Said { words: words.into(), refused: true }
    }
}

/// The program's next step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoesOn,
    Quits,
    /// Makes room for the shell.
    StepsAside,
}

pub(super) struct App {
    command: Command,
    pub(super) loops: Loops,
    pub(super) followed: Option<Followed>,
    pub(super) face: Face,
    pub(super) asks: Asks,
    pub(super) said: Option<(Said, Instant)>,
    /// The state of the loop when that was said: once it is another one, the line may be wrong.
    said_of: Option<Status>,
    /// How many lines of the log stand below the screen.
    pub(super) scrolled: usize,
    /// The words to look for in the log.
    pub(super) sought: String,
    /// How many lines stand below the one that was found last.
    found: Option<usize>,
    /// How many rows the log had when it was last drawn.
    pub(super) page: usize,
    /// Other files may matter than before.
    pub(super) looked: bool,
}

fn is_recent(view: &View) -> bool {
    let last = view.last_event_at.as_deref().and_then(time::parse);
    last.is_some_and(|at| (0..60_000).contains(&clock::now().saturating_sub(at)))
}

impl App {
    pub(super) fn new(mut loops: Loops, command: Command) -> Self {
        let face = if loops.all && loops.entries.len() > 1 { Face::Overview } else { Face::Loop };
        if face == Face::Overview {
            loops.choose(0);
        }
        App {
            command,
            loops,
            followed: None,
            face,
            asks: Asks::Nothing,
            said: None,
            said_of: None,
            scrolled: 0,
            sought: String::new(),
            found: None,
            page: 10,
            looked: true,
        }
    }

    /// Looks at the loops again, and follows the one that is chosen.
    pub(super) fn look(&mut self) {
        self.loops.look();
        self.follow();
        if self.status() != self.said_of {
            self.said = None;
        }
    }

    fn status(&self) -> Option<Status> {
        self.loops.chosen().map(|entry| entry.view.status)
    }

    pub(super) fn follow(&mut self) {
        self.looked = true;
        let Some(entry) = self.loops.chosen() else {
            self.followed = None;
            return;
        };
        if self.followed.as_ref().is_none_or(|followed| !followed.is_of(&entry.view)) {
            self.followed = Some(Followed::new(&entry.project, &entry.view));
            self.scrolled = 0;
        }
        if let Some(followed) = &mut self.followed {
            followed.read_on();
            followed.listen(&entry.view, true);
        }
    }

    /// Reads on in the journal and what the agent says, and nothing else.
    pub(super) fn read_on(&mut self) {
        if let (Some(followed), Some(entry)) = (&mut self.followed, self.loops.chosen()) {
            followed.read_on();
            followed.listen(&entry.view, false);
        }
    }

    pub(super) fn is_behind(&self) -> bool {
        self.followed.as_ref().is_some_and(|followed| followed.is_behind)
    }

    /// Time has passed, and nothing was heard.
    pub(super) fn tick(&mut self) {
        if self.said.as_ref().is_some_and(|(_, at)| at.elapsed() >= SAID_FOR) {
            self.said = None;
        }
        if clock::now().saturating_sub(self.loops.seen).abs() >= LOOK_AGAIN {
            self.look();
        }
    }

    /// How long nothing on the screen changes by itself.
    pub(super) fn rest(&self) -> Duration {
        if self.is_behind() {
            return Duration::ZERO;
        }
        let is_running = match self.face {
            Face::Loop => self.loops.chosen().is_some_and(|entry| is_busy(&entry.view) || is_recent(&entry.view)),
            Face::Overview => self.loops.entries.iter().any(|entry| is_recent(&entry.view)),
            Face::Log | Face::Help => false,
        };
        let rest = match (is_running, self.loops.is_busy()) {
            (true, _) => TICK,
            (false, true) => Duration::from_millis(LOOK_AGAIN.unsigned_abs()),
            (false, false) => REST,
        };
        let said = self.said.as_ref().map_or(REST, |(_, at)| SAID_FOR.saturating_sub(at.elapsed()));
        rest.min(said.max(Duration::from_millis(50)))
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Asks::Note(editor) | Asks::Search(editor) = &mut self.asks {
            editor.insert(text);
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Then {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if with_control && key.code == KeyCode::Char('z') {
            return Then::StepsAside;
        }
        self.said = None;
        match std::mem::replace(&mut self.asks, Asks::Nothing) {
            Asks::Cancel { id, root } => self.confirmed(key, &id, &root),
            Asks::Note(editor) => self.noted(key, editor),
            Asks::Search(editor) => self.searched(key, editor),
            Asks::Nothing if with_control && key.code == KeyCode::Char('c') => return Then::Quits,
            Asks::Nothing if key.code == KeyCode::Char('q') => return Then::Quits,
            Asks::Nothing if key.code == KeyCode::Esc => return self.back(),
            Asks::Nothing if self.face == Face::Help => self.reads_help(key.code),
            Asks::Nothing if self.face == Face::Log && self.scrolls(key.code) => {}
            Asks::Nothing if self.face == Face::Overview && self.chooses(key.code) => {}
            Asks::Nothing => self.command(key.code),
        }
        Then::GoesOn
    }

    /// A page that is too long moves; any other key leaves it.
    fn reads_help(&mut self, code: KeyCode) {
        match code {
            KeyCode::Down | KeyCode::Char('j') => self.scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scrolled += self.page,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(self.page),
            _ => (self.face, self.scrolled) = (Face::Loop, 0),
        }
    }

    /// From wherever to where one came from; from there, out.
    fn back(&mut self) -> Then {
        match self.face {
            Face::Log | Face::Help => self.face = Face::Loop,
            Face::Loop if self.loops.all && self.loops.entries.len() > 1 => self.face = Face::Overview,
            Face::Overview if !self.loops.all => self.show_the_chosen(),
            Face::Loop | Face::Overview => return Then::Quits,
        }
        Then::GoesOn
    }

    fn command(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('p') => self.act(|app| app.unless_it_is_over(|app| app.on_the_chosen(&Act::Pause))),
            KeyCode::Char('r') => self.act(App::bring_back),
            KeyCode::Char('c') => self.act(|app| app.unless_it_is_over(App::ask_about_the_end)),
            KeyCode::Char('s') => self.act(|app| app.unless_it_is_over(|app| app.asks = Asks::Note(Editor::default()))),
            KeyCode::Char('l') => {
                (self.face, self.scrolled) = (if self.face == Face::Log { Face::Loop } else { Face::Log }, 0);
            }
            KeyCode::Char('?' | 'h') => (self.face, self.scrolled) = (Face::Help, 0),
            KeyCode::Char('/') if self.face == Face::Log => self.asks = Asks::Search(Editor::default()),
            KeyCode::Tab | KeyCode::Right => self.go_to(self.loops.position() + 1),
            KeyCode::BackTab | KeyCode::Left => self.go_to((self.loops.position() + self.loops.entries.len()).saturating_sub(1)),
            KeyCode::Char(digit @ '1'..='9') => {
                let at = usize::from(digit as u8 - b'1');
                if at < self.loops.entries.len() {
                    self.go_to(at);
                } else {
                    self.say(Said::refused(format!("there is no loop {digit} here")));
                }
            }
            KeyCode::Backspace => {
                (self.face, self.loops.with_ended) = (Face::Overview, true);
                self.look();
            }
            _ => self.say(Said::refused("no key of this screen: ? shows the keys")),
        }
    }

    fn show_the_chosen(&mut self) {
        (self.face, self.loops.with_ended) = (Face::Loop, false);
        self.look();
    }

    fn act(&mut self, act: impl FnOnce(&mut Self)) {
        match hosts::of_an_agent() {
            // An agent that could do this would act in the person's name.
            Some(sign) => self
                .say(Said::refused(format!("this is an agent's shell ({sign} is set): here the loop can be looked at, and nothing else"))),
            None if self.loops.chosen().is_none() => self.say(Said::refused("there is no loop here")),
            None => act(self),
        }
    }

    fn say(&mut self, said: Said) {
        (self.said, self.said_of) = (Some((said, Instant::now())), self.status());
    }

    fn on_the_chosen(&mut self, act: &Act) {
        if let Some(entry) = self.loops.chosen() {
            let said = match (self.command)(&entry.project, &entry.view.id, act) {
                Ok(line) => Said { words: clean(&anstream::adapter::strip_str(&line).to_string()), refused: false },
                Err(refusal) => Said::refused(clean(&refusal.to_string())),
            };
            self.look();
            self.say(said);
        }
    }

    fn unless_it_is_over(&mut self, act: impl FnOnce(&mut Self)) {
        if self.is_over() {
            let back = if self.can_resume() { ": r brings it back" } else { "" };
            self.say(Said::refused(format!("it has ended{back}")));
        } else {
            act(self);
        }
    }

    fn ask_about_the_end(&mut self) {
        if let Some(entry) = self.loops.chosen() {
            self.asks = Asks::Cancel { id: entry.view.id.clone(), root: entry.project.root().to_owned() };
        }
    }

    fn bring_back(&mut self) {
        match self.why_not_resumed() {
            Some(why) => self.say(Said::refused(why)),
            None => self.on_the_chosen(&Act::Resume),
        }
    }

    /// Ids are those of one project.
    fn confirmed(&mut self, key: KeyEvent, id: &str, root: &Path) {
        let is_still_it = self.loops.chosen().is_some_and(|entry| entry.view.id == id && entry.project.root() == root);
        match key.code {
            KeyCode::Char('y' | 'Y') if is_still_it => self.on_the_chosen(&Act::Cancel),
            _ => self.say(Said { words: "nothing was cancelled".to_owned(), refused: false }),
        }
    }

    fn noted(&mut self, key: KeyEvent, mut editor: Editor) {
        match editor.key(key) {
            Typed::GoesOn => self.asks = Asks::Note(editor),
            Typed::Left => self.say(Said { words: "no note was left".to_owned(), refused: false }),
            Typed::Done(note) => self.on_the_chosen(&Act::Steer(note)),
        }
    }

    fn searched(&mut self, key: KeyEvent, mut editor: Editor) {
        match editor.key(key) {
            Typed::GoesOn => self.asks = Asks::Search(editor),
            Typed::Left => self.sought.clear(),
            Typed::Done(sought) => {
                (self.sought, self.found) = (sought.to_lowercase(), None);
                self.seek_further();
            }
        }
    }

    /// To the next older line with the words that are looked for.
    fn seek_further(&mut self) {
        let Some(followed) = &self.followed else { return };
        if self.sought.is_empty() {
            return;
        }
        let from = self.found.map_or(0, |found| found + 1);
        let found = followed.log.iter().rev().skip(from).position(|line| line.words.to_lowercase().contains(&self.sought));
        match found.map(|further| from + further) {
            Some(found) => (self.found, self.scrolled) = (Some(found), found.min(followed.log.len().saturating_sub(self.page))),
            None if self.found.is_some() => self.say(Said::refused("found nothing more above")),
            None => self.say(Said::refused("found nowhere in the log")),
        }
    }

    /// `false`: the key is for others.
    fn scrolls(&mut self, code: KeyCode) -> bool {
        let all = self.followed.as_ref().map_or(0, |followed| followed.log.len());
        let top = all.saturating_sub(self.page);
        self.scrolled = match code {
            KeyCode::Up | KeyCode::Char('k') => (self.scrolled + 1).min(top),
            KeyCode::Down | KeyCode::Char('j') => self.scrolled.saturating_sub(1),
            KeyCode::PageUp => (self.scrolled + self.page).min(top),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scrolled.saturating_sub(self.page),
            KeyCode::Home | KeyCode::Char('g') => top,
            KeyCode::End | KeyCode::Char('G') => 0,
            KeyCode::Char('n') => {
                self.seek_further();
                return true;
            }
            KeyCode::Backspace => {
                self.face = Face::Loop;
                return true;
            }
            _ => return false,
        };
        true
    }

    fn chooses(&mut self, code: KeyCode) -> bool {
        let (at, all) = (self.loops.position(), self.loops.entries.len());
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.go_to(at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go_to((at + 1).min(all.saturating_sub(1))),
            KeyCode::Home => self.go_to(0),
            KeyCode::End => self.go_to(all.saturating_sub(1)),
            KeyCode::Enter => self.show_the_chosen(),
            KeyCode::Backspace => {}
            _ => return false,
        }
        true
    }

    fn go_to(&mut self, at: usize) {
        self.loops.choose(at);
        self.scrolled = 0;
        self.follow();
    }

    pub(super) fn is_over(&self) -> bool {
        self.loops.chosen().is_some_and(|entry| entry.view.file.is_none())
    }

    /// The chosen loop rests, or is over, and a key is enough to bring it back.
    pub(super) fn can_resume(&self) -> bool {
        let rests = |entry: &Entry| !matches!(entry.view.status, Status::Active | Status::Parked | Status::Waiting);
        self.loops.chosen().is_some_and(rests) && self.why_not_resumed().is_none()
    }

    fn why_not_resumed(&self) -> Option<String> {
        let (entry, followed) = (self.loops.chosen()?, self.followed.as_ref()?);
        advice::why_no_key_resumes(&entry.view, &followed.history)
    }
}
