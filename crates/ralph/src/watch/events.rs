//! All that can wake the screen: keys, signals, files. Between them nothing runs.

use std::{
    collections::BTreeSet,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ralph_engine::sys::{signals::Call, terminal};

const REST_OF_A_KEY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) enum Happening {
    Key(KeyEvent),
    Paste(String),
    Resized,
    /// This process was stopped, and goes on.
    Continued,
    /// Files changed: those that [`Happenings::changed`] names.
    Files,
    /// The terminal is gone, or the system wants the end.
    End,
}

pub(super) struct Happenings {
    receiver: Receiver<Happening>,
    pub(super) changed: Changed,
    pub(super) sender: Sender<Happening>,
}

/// Files that changed and have not been looked at yet: a file that changes a hundred times is looked at once.
#[derive(Clone, Default)]
pub(super) struct Changed(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Changed {
    /// `true`: it is the first one, and has to be announced.
    pub(super) fn note(&self, paths: impl IntoIterator<Item = PathBuf>) -> bool {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = set.is_empty();
        set.extend(paths);
        was_empty && !set.is_empty()
    }

    pub(super) fn take(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Happenings {
    pub(super) fn listen() -> io::Result<Self> {
        let (sender, receiver) = channel();
        let of_signals = sender.clone();
        Call::hear(move |call| {
            let happening = match call {
                Call::End => Happening::End,
                Call::Resized => Happening::Resized,
                Call::Continued => Happening::Continued,
            };
            of_signals.send(happening).is_ok()
        })?;
        let of_keys = sender.clone();
        thread::Builder::new().name("keys".to_owned()).spawn(move || {
            let _ = hear_keys(&of_keys);
            let _ = of_keys.send(Happening::End);
        })?;
        Ok(Happenings { receiver, changed: Changed::default(), sender })
    }

    /// The next one, or `None` if the time has passed.
    pub(super) fn wait(&self, most: Duration) -> Option<Happening> {
        match self.receiver.recv_timeout(most) {
            Ok(happening) => Some(happening),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Happening::End),
        }
    }
}

/// Until the listener or the terminal is gone.
fn hear_keys(sender: &Sender<Happening>) -> io::Result<()> {
    // The terminal is asked first: reading from one that has hung up would never end and never rest.
    while terminal::wait_for_input()? {
        // Elsewhere than on Unix this is what waits.
        let patience = if cfg!(unix) { REST_OF_A_KEY } else { Duration::from_hours(1) };
        while event::poll(patience)? {
            let happening = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => Happening::Key(key),
                Event::Paste(text) => Happening::Paste(text),
                Event::Resize(..) => Happening::Resized,
                _ => continue,
            };
            if sender.send(happening).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
