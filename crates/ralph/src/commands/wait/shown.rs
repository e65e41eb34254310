//! What a person sees while `ralph wait` waits: on a terminal a line that says for what, for how long, and how long still; in a pipe a line when
//! something changes.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    time::{Duration, Instant},
};

use ralph_core::{
    gate::Finding,
    text::{
        gate_messages,
        messages::clean,
        time::{Millis, format, in_words, millis},
    },
};
use ralph_engine::{gates::wait::Onlooker, sys::clock};

use crate::{
    term::live_lines::{Bottom, redraw_every},
    term::width::{columns, cut},
    text::when,
    ui,
};

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(500);

/// Shows how it goes, until it is dropped.
pub(super) struct Shown {
    pub(super) screen: Arc<Screen>,
    /// The line is drawn as long as this is held.
    _ticking: Option<Sender<()>>,
}

pub(super) struct Screen {
    form: Form,
    since: Millis,
    state: Mutex<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Terminal,
    Lines,
    Silent,
}

#[derive(Default)]
struct State {
    what: String,
    next: Next,
    bottom: Bottom,
    is_over: bool,
}

/// What ends the wait, or this part of it.
#[derive(Clone, Copy, Default)]
enum Next {
    /// It is looked at right now.
    #[default]
    Looking,
    Look(Instant),
    GoesOn(Millis),
}

impl Shown {
    /// Silent where programs read the output. It may have been waited for by others before.
    pub(super) fn begin(silent: bool, since: Millis) -> Self {
        let form = match ui::width() {
            _ if silent => Form::Silent,
            Some(_) => Form::Terminal,
            None => Form::Lines,
        };
        let screen = Arc::new(Screen { form, since, state: Mutex::new(State { bottom: Bottom::new(ui::is_plain()), ..State::default() }) });
        let redraw_every = (form == Form::Terminal).then(|| tick(Arc::clone(&screen)));
        Shown { screen, _ticking: redraw_every }
    }

    /// It waits for a moment that is known.
    pub(super) fn until(&self, what: &str, until: Millis) {
        self.screen.state().next = Next::GoesOn(until);
        let left = in_words(u64::try_from(until.saturating_sub(clock::now())).unwrap_or(0));
        self.screen.changes(what, &format!(" (until {}, in {left})", when(&format(until))));
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let mut state = self.screen.state();
        state.is_over = true;
        if self.screen.form == Form::Terminal {
            // The terminal may have written what was typed to end it.
            write(&state.bottom.after(b"\r", Vec::new()));
        }
    }
}

/// Draws the line again and again until the sender is gone.
fn tick(screen: Arc<Screen>) -> Sender<()> {
    redraw_every(TICK, move || {
        screen.draw(&mut screen.state());
        TICK
    })
}

impl Onlooker for Screen {
    fn pauses(&self, pause: Duration) {
        let mut state = self.state();
        state.next = Next::Look(Instant::now() + pause);
        self.draw(&mut state);
    }

    fn found(&self, findings: &[Finding]) {
        self.state().next = Next::Looking;
        self.changes(&gate_messages::short(findings), "");
    }
}

impl Screen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is waited for is something else now, or is told for the first time. Nothing: there is nothing to wait for.
    fn changes(&self, what: &str, more: &str) {
        let what = clean(what);
        let mut state = self.state();
        if !what.is_empty() && what != state.what {
            if self.form == Form::Lines {
                ui::note(&format!("waits for {what}{more}"));
            }
            state.what = what;
        }
        self.draw(&mut state);
    }

    fn draw(&self, state: &mut State) {
        if self.form != Form::Terminal || state.is_over || state.what.is_empty() {
            return;
        }
        // The terminal may become narrower meanwhile. One column stays free: some go to the next line after the last one.
        let width = ui::width().unwrap_or(80).saturating_sub(1);
        let line = line(state, clock::now().saturating_sub(self.since), width);
        write(&state.bottom.after(b"", vec![line]));
    }
}

/// The times always fit; what is waited for is cut to what they leave.
fn line(state: &State, passed: Millis, width: usize) -> String {
    let next = match state.next {
        Next::Looking => "looks".to_owned(),
        Next::Look(at) => {
            format!("looks again in {}", in_words(millis(at.saturating_duration_since(Instant::now()) + Duration::from_millis(999))))
        }
        Next::GoesOn(at) => {
            format!("goes on in {}", in_words(u64::try_from(at.saturating_sub(clock::now()).saturating_add(999)).unwrap_or(0)))
        }
    };
    let times = format!(" · {} so far · {next}", in_words(u64::try_from(passed).unwrap_or(0)));
    let what = cut(&format!("waits for {}", state.what), width.saturating_sub(columns(&times)));
    cut(&format!("{what}{times}"), width)
}

fn write(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}
