//! The progress of `ralph pr --wait`: what it waits for, for how long, and how long still.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::Finding,
    messages::gate_messages,
    text::{
        clean,
        time::{Millis, format, in_words, millis},
    },
};
use ralph_engine::{gates::wait::Onlooker, sys::clock};

use crate::{
    journal_lines::when,
    term::{
        live_lines::{Form, Live, Redraw, Terminal},
        width::{columns, cut},
    },
    ui,
};

const TICK: Duration = Duration::from_millis(500);

/// Shows how it goes, until it is dropped.
pub(super) struct Progress {
    form: Form,
    live: Live<State>,
}

struct State {
    terminal: Terminal,
    since: Millis,
    /// Empty while nothing is known, and at the end.
    what: String,
    next: Next,
}

/// The end of the wait, or of this part of it.
#[derive(Clone, Copy)]
enum Next {
    Looking,
    Look(Instant),
    GoesOn(Millis),
}

impl Progress {
    /// `since`: others may have waited for it before.
    pub(super) fn begin(silent: bool, since: Millis) -> Arc<Self> {
        let form = Form::of(silent);
        let state = State { terminal: Terminal::stdout(), since, what: String::new(), next: Next::Looking };
        Arc::new(Progress { form, live: Live::of(form, state, TICK) })
    }

    pub(super) fn until(&self, what: &str, until: Millis) {
        self.live.state().next = Next::GoesOn(until);
        self.changes(what, &format!(" (until {}, in {})", when(&format(until)), left(until)));
    }

    fn changes(&self, what: &str, more: &str) {
        let what = clean(what);
        let mut state = self.live.state();
        if !what.is_empty() && what != state.what {
            if self.form == Form::Lines {
                ui::note(&format!("waits for {what}{more}"));
            }
            state.what = what;
        }
        self.draw(&mut state);
    }

    fn draw(&self, state: &mut State) {
        if self.form == Form::Terminal {
            state.redraw();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.live.stop();
        let mut state = self.live.state();
        state.what.clear();
        self.draw(&mut state);
    }
}

impl Onlooker for Progress {
    fn pauses(&self, pause: Duration) {
        let mut state = self.live.state();
        state.next = Next::Look(Instant::now() + pause);
        self.draw(&mut state);
    }

    fn found(&self, findings: &[Finding]) {
        self.live.state().next = Next::Looking;
        self.changes(&gate_messages::short(findings), "");
    }
}

impl Redraw for State {
    fn redraw(&mut self) -> Duration {
        let lines = if self.what.is_empty() { Vec::new() } else { vec![self.line()] };
        self.terminal.write(b"", lines);
        TICK
    }
}

impl State {
    /// The times always fit; what is waited for is cut to the room that they leave.
    fn line(&self) -> String {
        let width = self.terminal.width();
        let next = match self.next {
            Next::Looking => "looks".to_owned(),
            Next::Look(at) => {
                let left = at.saturating_duration_since(Instant::now()) + Duration::from_millis(999);
                format!("looks again in {}", in_words(millis(left)))
            }
            Next::GoesOn(at) => format!("goes on in {}", left(at.saturating_add(999))),
        };
        let passed = u64::try_from(clock::now().saturating_sub(self.since)).unwrap_or(0);
        let times = format!(" · {} so far · {next}", in_words(passed));
        let what = cut(&format!("waits for {}", self.what), width.saturating_sub(columns(&times)));
        cut(&format!("{what}{times}"), width)
    }
}

fn left(until: Millis) -> String {
    in_words(u64::try_from(until.saturating_sub(clock::now())).unwrap_or(0))
}
