//! What a person sees while gates run: the commands' own output, and below it which gate runs, for how long, and how long it may.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{Check, Finding, Gate, Origin, Verdict, output::Stream},
    text::{messages::clean, time::millis},
};
use ralph_engine::{
    gates::{Watch, durations::Time},
    sys::signals,
};

use crate::{
    commands::gate::{
        colours::Colours,
        lines::Lines,
        summary::{interrupted, verdict},
    },
    term::live_lines::{Bottom, redraw_every},
    term::progress::{Lasting, about},
    term::width::cut,
    ui,
};

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(250);

/// Shows how it goes, until it ends.
pub(super) struct Progress {
    pub(super) screen: Arc<Screen>,
    redraw_every: Mutex<Option<Sender<()>>>,
}

impl Progress {
    /// Silent where programs read the output.
    pub(super) fn begin(silent: bool, gates: &[Gate]) -> Self {
        let form = match ui::width() {
            _ if silent => Form::Silent,
            Some(width) => Form::Terminal { width },
            None => Form::Lines,
        };
        let screen = Arc::new(Screen {
            form,
            together: together(gates),
            runs: gates.iter().filter(|gate| !is_known_at_once(gate)).map(|gate| gate.name.clone()).collect(),
            state: Mutex::new(State { bottom: Bottom::new(ui::is_plain()), ..State::default() }),
        });
        let redraw_every = matches!(form, Form::Terminal { .. }).then(|| tick(Arc::clone(&screen)));
        Progress { screen, redraw_every: Mutex::new(redraw_every) }
    }

    /// Nothing is drawn any more.
    pub(super) fn end(&self) {
        self.redraw_every.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut state = self.screen.state();
        state.running.clear();
        self.screen.write(&mut state, b"");
    }

    /// A person ended it, and was told what was running.
    pub(super) fn has_told_of_the_end(&self) -> bool {
        !matches!(self.screen.form, Form::Silent) && self.screen.state().interrupted
    }

    pub(super) fn has_shown_output(&self) -> bool {
        matches!(self.screen.form, Form::Terminal { .. })
    }
}

/// Whether looking at it takes no time.
fn is_known_at_once(gate: &Gate) -> bool {
    matches!(gate.check, Check::File(_) | Check::Features(_) | Check::Markers(_))
}

/// The gates that run at the same time as a neighbour.
fn together(gates: &[Gate]) -> Vec<String> {
    let may = |gate: &Gate| matches!(&gate.check, Check::Command(command) if command.parallel);
    let rows = gates.chunk_by(|a, b| may(a) && may(b)).filter(|row| row.len() > 1);
    rows.flatten().map(|gate| gate.name.clone()).collect()
}

/// Draws the line again and again until the sender is gone.
fn tick(screen: Arc<Screen>) -> Sender<()> {
    redraw_every(TICK, move || {
        screen.write(&mut screen.state(), b"");
        TICK
    })
}

#[derive(Debug, Clone, Copy)]
enum Form {
    /// Output as it comes, and a line that is drawn in place.
    Terminal {
        width: usize,
    },
    /// A line when a gate begins and one when it ends.
    Lines,
    Silent,
}

/// The one place that writes while gates run; they do so from several threads.
pub(super) struct Screen {
    form: Form,
    /// Gates whose lines have to be told apart.
    together: Vec<String>,
    /// The gates that take their time, in order.
    runs: Vec<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Vec<Running>,
    /// The gates that were measured.
    ended: Vec<String>,
    bottom: Bottom,
    /// A command has begun a line and not ended it.
    open: bool,
    /// A command has spoken to the terminal itself, which may be left in any colour.
    styled: bool,
    /// A gate was ended by whoever started it.
    interrupted: bool,
}

struct Running {
    gate: String,
    label: String,
    /// Both streams of a gate whose lines have to be told apart.
    lines: [Lines; 2],
    colours: [Colours; 2],
    begun: Instant,
    time: Time,
}

impl Screen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the line away, writes, and draws the line again, unless a command is in the middle of one of its own.
    fn write(&self, state: &mut State, bytes: &[u8]) {
        let Form::Terminal { width } = self.form else { return };
        if let Some(last) = bytes.last() {
            state.open = *last != b'\n';
        }
        // One column stays free: some terminals go to the next line after the last one.
        let line = if state.open { String::new() } else { cut(&self.line(state), width.saturating_sub(1)) };
        let lines = if line.is_empty() { Vec::new() } else { vec![line] };
        let out = state.bottom.after(bytes, lines);
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(&out).and_then(|()| stdout.flush());
    }

    /// How much is done, what runs, for how long, and how long it may: of several the one that began first.
    fn line(&self, state: &State) -> String {
        let Some(first) = state.running.first() else { return String::new() };
        let names: Vec<String> = state.running.iter().skip(1).map(|r| clean(&r.gate)).collect();
        let names = std::iter::once(first.label.clone()).chain(names).collect::<Vec<_>>().join(", ");
        let (limit, usual) = (millis(first.time.limit), first.time.usual.map(millis));
        let lasting = Lasting { passed: millis(first.begun.elapsed()), usual, limit };
        format!("{}{names}: {}", self.done(&first.gate, &state.ended), lasting.drawn())
    }

    /// `2 of 5 done, `: those before the one that runs, whether or not they had to be run, and those that were faster.
    fn done(&self, running: &str, ended: &[String]) -> String {
        let all = self.runs.len();
        let Some(before) = self.runs.iter().position(|name| name == running).filter(|_| all > 1) else { return String::new() };
        let done = before + self.runs[before..].iter().filter(|name| ended.contains(name)).count();
        format!("{done} of {all} done, ")
    }

    /// A line of ralph's own, beginning at the left.
    fn say(&self, state: &mut State, text: &str) {
        let end = if state.open { "\n" } else { "" };
        let plain = if std::mem::take(&mut state.styled) { "\u{1b}[0m" } else { "" };
        let bytes = [plain.as_bytes(), end.as_bytes(), &ui::styled(text), b"\n"].concat();
        self.write(state, &bytes);
    }

    /// Whole lines of one of several gates, each with its name.
    fn quote(&self, state: &mut State, gate: &str, lines: &[Vec<u8>]) {
        let name = ui::styled(&ui::dim(format!("{} |", clean(gate))));
        let quoted = |line: &Vec<u8>| {
            let end: &[u8] = if line.contains(&0x1b) { b"\x1b[0m\n" } else { b"\n" };
            [&name, b" ".as_slice(), line, end].concat()
        };
        let bytes: Vec<u8> = lines.iter().flat_map(quoted).collect();
        self.write(state, &bytes);
    }
}

/// An item of a list is no gate of that name.
fn label(gate: &Gate) -> String {
    let name = clean(&gate.name);
    if matches!(gate.origin, Origin::List(_)) { name } else { format!("gate {name}") }
}

impl Watch for Screen {
    fn begins(&self, gate: &Gate, time: Time) {
        let mut state = self.state();
        let label = label(gate);
        state.running.push(Running {
            gate: gate.name.clone(),
            label: label.clone(),
            lines: Default::default(),
            colours: Default::default(),
            begun: Instant::now(),
            time,
        });
        match self.form {
            Form::Silent => {}
            Form::Lines => {
                let usual = time.usual.map(|usual| format!(" {}", about(millis(usual)))).unwrap_or_default();
                ui::try_line(format!("{label}: running…{usual}"));
            }
            Form::Terminal { .. } if self.together.contains(&gate.name) => self.write(&mut state, b""),
            Form::Terminal { .. } => self.say(&mut state, &ui::bold(label)),
        }
    }

    fn says(&self, gate: &str, stream: Stream, bytes: &[u8]) {
        if !matches!(self.form, Form::Terminal { .. }) || bytes.is_empty() {
            return;
        }
        let mut state = self.state();
        let Some(running) = state.running.iter_mut().find(|running| running.gate == gate) else { return };
        let bytes = running.colours[stream as usize].feed(bytes);
        if self.together.iter().any(|name| name == gate) {
            let lines = running.lines[stream as usize].feed(&bytes);
            self.quote(&mut state, gate, &lines);
            return;
        }
        state.styled |= bytes.contains(&0x1b);
        self.write(&mut state, &bytes);
    }

    fn ended(&self, finding: &Finding) {
        let mut state = self.state();
        let Some(at) = state.running.iter().position(|running| running.gate == finding.gate) else { return };
        let mut running = state.running.remove(at);
        state.ended.push(finding.gate.clone());
        let rest: Vec<Vec<u8>> = running.lines.iter_mut().filter_map(Lines::rest).collect();
        self.quote(&mut state, &finding.gate, &rest);
        let is_interrupted = signals::asked_to_end() && finding.verdict == Verdict::Unknown;
        state.interrupted |= is_interrupted;
        let text = format!("{}: {}", running.label, if is_interrupted { interrupted(finding) } else { verdict(finding) });
        match self.form {
            Form::Silent => {}
            Form::Lines => {
                ui::try_line(text);
            }
            // The terminal has written what was typed to end it.
            Form::Terminal { .. } if is_interrupted => self.say(&mut state, &format!("\r{text}")),
            Form::Terminal { .. } => self.say(&mut state, &text),
        }
    }
}
