//! `ralph watch`: loops on the whole screen, as they go. It reads and never writes, but where a key asks for what a command does.
//!
//! One thread draws. It sleeps until a key, a signal, a change of a file, or the moment at which something on the screen changes by itself.

mod app;
mod draw;
mod editor;
mod events;
mod files;
mod followed;
mod loops;
mod screen;

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use ralph_engine::{
    ops::Refusal,
    store::project::Project,
    sys::{clock, terminal},
};

use crate::{
    exit::{Done, Failure},
    find_loop, ui,
    watch::{
        app::{App, Then},
        draw::Looks,
        events::{Happening, Happenings},
        files::Watched,
        followed::Followed,
        loops::Loops,
        screen::Screen,
    },
};

/// The shortest time between two pictures: a person sees no more.
const BETWEEN_PICTURES: Duration = Duration::from_millis(100);
const STEPPING_ASIDE: Duration = Duration::from_millis(300);

/// The effects of keys on a loop.
pub(crate) enum Act {
    Pause,
    Resume,
    Cancel,
    Steer(String),
}

/// Carries it out on the loop with that id; the result is a line for the person.
pub(crate) type Command = fn(&Project, &str, &Act) -> Result<String, Refusal>;

pub(crate) fn run(project: &Project, which: Option<&str>, all: bool, command: Command) -> Done {
    let loops = Loops::of(project, which, all);
    if let (Some(which), None) = (which, &loops.chosen) {
        return Err(find_loop::no_such(which));
    }
    let looks = Looks { colour: !ui::is_plain(), ascii: ralph_engine::sys::env::is_ascii_only() };
    let cannot = |e: io::Error| Failure::new(format!("the terminal cannot be drawn on: {e}"));
    let happenings = Happenings::listen().map_err(cannot)?;
    let screen = Screen::take().map_err(cannot)?;
    let watched = Watched::new(happenings.changed.clone(), happenings.sender.clone());
    // A terminal that has gone away is no error, and there is no place left to print one.
    let _ = Watch { app: App::new(loops, command), screen, happenings, watched, looks, drawn: None }.run();
    Ok(())
}

struct Watch {
    app: App,
    screen: Screen,
    happenings: Happenings,
    watched: Watched,
    looks: Looks,
    drawn: Option<Instant>,
}

impl Watch {
    fn run(mut self) -> io::Result<()> {
        // What can be had at once is shown at once; a long journal is read on between the pictures.
        self.app.follow();
        loop {
            self.watch_files();
            self.draw()?;
            if !self.until_something_happens()? {
                return Ok(());
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let (app, looks) = (&mut self.app, self.looks);
        self.screen.draw(|frame| draw::draw(frame, app, looks, clock::now()))?;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    /// `false`: it is over.
    fn until_something_happens(&mut self) -> io::Result<bool> {
        let Some(first) = self.happenings.wait(self.app.rest()) else {
            if self.app.is_behind() {
                self.app.read_on();
            } else {
                self.app.tick();
            }
            return Ok(true);
        };
        let is_typed = matches!(first, Happening::Key(_) | Happening::Paste(_));
        if !self.take(first)? {
            return Ok(false);
        }
        // Who types sees it at once. Everything else may come in bursts: all that comes until the next picture is due is taken together.
        let due = if is_typed { Instant::now() } else { self.drawn.map_or_else(Instant::now, |drawn| drawn + BETWEEN_PICTURES) };
        while let Some(next) = self.happenings.wait(due.saturating_duration_since(Instant::now())) {
            let is_typed = matches!(next, Happening::Key(_));
            if !self.take(next)? {
                return Ok(false);
            }
            if is_typed {
                break;
            }
        }
        Ok(true)
    }

    fn take(&mut self, happening: Happening) -> io::Result<bool> {
        match happening {
            Happening::End => return Ok(false),
            Happening::Resized => {}
            Happening::Continued => self.screen.again()?,
            Happening::Paste(text) => self.app.paste(&text),
            Happening::Files => {
                let changed = self.happenings.changed.take();
                self.changed(&changed);
            }
            Happening::Key(key) => match self.app.key(key) {
                Then::GoesOn => {}
                Then::Quits => return Ok(false),
                Then::StepsAside => return self.step_aside(),
            },
        }
        Ok(true)
    }

    /// The agent's own log changes nothing about the loops; any other file may.
    fn changed(&mut self, changed: &BTreeSet<PathBuf>) {
        for path in changed {
            self.watched.forget(path);
        }
        let agent = self.app.followed.as_ref().and_then(|followed| followed.doing.as_ref()).map(|doing| doing.path().to_owned());
        let agent = agent.and_then(|path| path.canonicalize().ok());
        let beside = agent.as_deref().and_then(|path| path.parent()).map(std::path::Path::to_owned);
        let is_agents = |path: &PathBuf| Some(path) == agent.as_ref();
        // Beside its transcript lie those of others.
        if changed.iter().any(|path| path.parent() != beside.as_deref() && !is_agents(path)) {
            self.app.look();
        } else if changed.iter().any(is_agents) {
            self.app.read_on();
        }
    }

    fn watch_files(&mut self) {
        if !std::mem::take(&mut self.app.looked) {
            return;
        }
        let of_agent = self.app.followed.iter().flat_map(Followed::files).filter_map(|file| Some(file.parent()?.to_owned()));
        let wanted: Vec<PathBuf> = self.app.loops.folders().into_iter().chain(of_agent).collect();
        self.watched.only(wanted);
    }

    fn step_aside(&mut self) -> io::Result<bool> {
        screen::leave();
        terminal::step_aside();
        // The system stops all threads soon, but not at once.
        let until = Instant::now() + STEPPING_ASIDE;
        while let Some(happening) = self.happenings.wait(until.saturating_duration_since(Instant::now())) {
            match happening {
                Happening::Continued => break,
                Happening::End => return Ok(false),
                _ => {}
            }
        }
        self.screen.again()?;
        self.app.look();
        Ok(true)
    }
}
