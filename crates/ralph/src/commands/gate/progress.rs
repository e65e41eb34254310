//! What a person sees while gates run: the commands' own output, and below it which gate runs, for how long, and how long it may.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{Finding, Gate},
    output::Stream,
    time::in_words,
    words::clean,
};
use ralph_engine::gates::Watch;

use crate::{
    columns::{columns, cut},
    commands::gate::summary::verdict,
    ui,
};

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(250);

/// Shows how it goes, until it ends.
pub(super) struct Progress {
    pub(super) screen: Arc<Screen>,
    ticking: Mutex<Option<Sender<()>>>,
}

impl Progress {
    /// Silent where programs read the output.
    pub(super) fn begin(silent: bool) -> Self {
        let plain = anstream::stdout().current_choice() == anstream::ColorChoice::Never;
        let form = match ui::width() {
            _ if silent => Form::Silent,
            Some(width) => Form::Terminal { width, plain },
            None => Form::Lines,
        };
        let screen = Arc::new(Screen { form, state: Mutex::default() });
        let ticking = matches!(form, Form::Terminal { .. }).then(|| tick(Arc::clone(&screen)));
        Progress { screen, ticking: Mutex::new(ticking) }
    }

    /// Nothing is drawn any more.
    pub(super) fn end(&self) {
        self.ticking.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut state = self.screen.state();
        state.running.clear();
        self.screen.write(&mut state, b"");
    }

    pub(super) fn has_shown_output(&self) -> bool {
        matches!(self.screen.form, Form::Terminal { .. })
    }
}

/// Draws the line again and again until the sender is gone.
fn tick(screen: Arc<Screen>) -> Sender<()> {
    let (sender, gone) = channel();
    thread::spawn(move || {
        while gone.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            screen.write(&mut screen.state(), b"");
        }
    });
    sender
}

#[derive(Debug, Clone, Copy)]
enum Form {
    /// Output as it comes, and a line that is drawn in place.
    Terminal {
        width: usize,
        /// It may understand nothing but characters.
        plain: bool,
    },
    /// A line when a gate begins and one when it ends.
    Lines,
    Silent,
}

/// The one place that writes while gates run; they do so from several threads.
pub(super) struct Screen {
    form: Form,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Vec<Running>,
    /// How many columns the line takes that is drawn now.
    drawn: usize,
    /// A command has begun a line and not ended it.
    open: bool,
    /// A command has spoken to the terminal itself, which may be left in any colour.
    styled: bool,
    /// The gate whose output came last.
    speaker: String,
}

struct Running {
    gate: String,
    begun: Instant,
    limit: Duration,
}

impl Screen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the line away, writes, and draws the line again, unless a command is in the middle of one of its own.
    fn write(&self, state: &mut State, bytes: &[u8]) {
        let Form::Terminal { width, plain } = self.form else { return };
        let mut out = match (state.drawn, plain) {
            (0, _) => Vec::new(),
            (_, false) => b"\x1b[K".to_vec(),
            (drawn, true) => format!("\r{}\r", " ".repeat(drawn)).into_bytes(),
        };
        out.extend_from_slice(bytes);
        if let Some(last) = bytes.last() {
            state.open = *last != b'\n';
        }
        // One column stays free: some terminals go to the next line after the last one.
        let line = if state.open { String::new() } else { cut(&line(&state.running), width.saturating_sub(1)) };
        state.drawn = columns(&line);
        if state.drawn > 0 {
            // The command finds the place and the colour that it left.
            out.extend_from_slice(if plain { line } else { format!("\x1b7\x1b[0m{line}\x1b8") }.as_bytes());
        }
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(&out).and_then(|()| stdout.flush());
    }

    /// A line of ralph's own, beginning at the left.
    fn say(&self, state: &mut State, text: &str) {
        let end = if state.open { "\n" } else { "" };
        let plain = if std::mem::take(&mut state.styled) { "\u{1b}[0m" } else { "" };
        let mut styled = Vec::new();
        let _ = writeln!(anstream::AutoStream::new(&mut styled, anstream::stdout().current_choice()), "{text}");
        let bytes = [plain.as_bytes(), end.as_bytes(), &styled].concat();
        self.write(state, &bytes);
        state.speaker.clear();
    }
}

/// What runs, for how long, and how long it may: of several the one that began first.
fn line(running: &[Running]) -> String {
    let Some(first) = running.first() else { return String::new() };
    let names: Vec<&str> = running.iter().map(|r| r.gate.as_str()).collect();
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    format!("gate {}: {} of {}", names.join(", "), in_words(millis(first.begun.elapsed())), in_words(millis(first.limit)))
}

impl Watch for Screen {
    fn begins(&self, gate: &Gate, limit: Duration) {
        let name = clean(&gate.name);
        let mut state = self.state();
        match self.form {
            Form::Silent => {}
            Form::Lines => {
                ui::try_line(format!("gate {name}: running…"));
            }
            Form::Terminal { .. } => {
                state.running.push(Running { gate: name.clone(), begun: Instant::now(), limit });
                self.say(&mut state, &ui::bold(format!("gate {name}")));
            }
        }
    }

    fn says(&self, gate: &str, _stream: Stream, bytes: &[u8]) {
        if !matches!(self.form, Form::Terminal { .. }) || bytes.is_empty() {
            return;
        }
        let mut state = self.state();
        let several = state.running.len() > 1;
        if several && state.speaker != gate {
            self.say(&mut state, &ui::dim(format!("[{}]", clean(gate))));
            gate.clone_into(&mut state.speaker);
        }
        state.styled |= bytes.contains(&0x1b);
        self.write(&mut state, bytes);
    }

    fn ended(&self, finding: &Finding) {
        let name = clean(&finding.gate);
        let mut state = self.state();
        state.running.retain(|running| running.gate != name);
        let text = format!("gate {name}: {}", verdict(finding));
        match self.form {
            Form::Silent => {}
            Form::Lines => {
                ui::try_line(text);
            }
            Form::Terminal { .. } => self.say(&mut state, &text),
        }
    }
}
