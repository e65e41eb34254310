//! The progress of `ralph gate`: the commands' own output, and below it which gate runs, for how long, and how long it may.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::{Check, Finding, Gate, Origin, Stream, Verdict},
    text::{clean, time::millis},
};
use ralph_engine::{
    gates::{Watch, durations::Time},
    sys::signals,
};

use crate::{
    commands::gate::{colours::Colours, lines::Lines, summary},
    term::{
        bar::{Lasting, about},
        live_lines::{Form, Live, Redraw, Terminal},
        width::cut,
    },
    ui,
};

const TICK: Duration = Duration::from_millis(250);

/// Shows how it goes. Gates run in several threads, and this is the one place that writes meanwhile.
pub(super) struct Progress {
    form: Form,
    /// Gates that run side by side: each of their lines is quoted with the gate's name.
    together: Vec<String>,
    live: Live<State>,
}

struct State {
    terminal: Terminal,
    /// The gates that take their time, in order.
    runs: Vec<String>,
    running: Vec<Running>,
    ended: Vec<String>,
    /// A command may have left the terminal in any colour.
    styled: bool,
    interrupted: bool,
}

struct Running {
    gate: String,
    label: String,
    /// Both streams, in whole lines.
    lines: [Lines; 2],
    colours: [Colours; 2],
    begun: Instant,
    time: Time,
}

impl Progress {
    pub(super) fn begin(silent: bool, gates: &[Gate]) -> Arc<Self> {
        let form = Form::of(silent);
        let state = State {
            terminal: Terminal::stdout(),
            runs: gates.iter().filter(|gate| !is_known_at_once(gate)).map(|gate| gate.name.clone()).collect(),
            running: Vec::new(),
            ended: Vec::new(),
            styled: false,
            interrupted: false,
        };
        Arc::new(Progress { form, together: together(gates), live: Live::of(form, state, TICK) })
    }

    pub(super) fn end(&self) {
        self.live.stop();
        let mut state = self.live.state();
        state.running.clear();
        if self.has_shown_output() {
            state.write(b"");
        }
    }

    /// A person ended it, and has seen what was running.
    pub(super) fn has_shown_the_end(&self) -> bool {
        self.form != Form::Silent && self.live.state().interrupted
    }

    pub(super) fn has_shown_output(&self) -> bool {
        self.form == Form::Terminal
    }
}

/// Whether looking at it takes no time.
fn is_known_at_once(gate: &Gate) -> bool {
    matches!(gate.check, Check::File(_) | Check::Features(_) | Check::Markers(_) | Check::Committed)
}

/// The gates that run at the same time as a neighbour.
fn together(gates: &[Gate]) -> Vec<String> {
    let may = |gate: &Gate| matches!(&gate.check, Check::Command(command) if command.parallel);
    let rows = gates.chunk_by(|a, b| may(a) && may(b)).filter(|row| row.len() > 1);
    rows.flatten().map(|gate| gate.name.clone()).collect()
}

impl Redraw for State {
    fn redraw(&mut self) -> Duration {
        self.write(b"");
        TICK
    }
}

impl State {
    fn write(&mut self, above: &[u8]) {
        let line = cut(&self.line(), self.terminal.width());
        self.terminal.write(above, Some(line).filter(|line| !line.is_empty()).into_iter().collect());
    }

    /// How much is done, what runs, for how long, and how long it may: of several the one that began first.
    fn line(&self) -> String {
        let Some(first) = self.running.first() else { return String::new() };
        let names: Vec<String> = self.running.iter().skip(1).map(|r| clean(&r.gate)).collect();
        let names = std::iter::once(first.label.clone()).chain(names).collect::<Vec<_>>().join(", ");
        let (limit, usual) = (millis(first.time.limit), first.time.usual.map(millis));
        let lasting = Lasting { passed: millis(first.begun.elapsed()), usual, limit };
        format!("{}{names}: {}", self.done(&first.gate), lasting.drawn())
    }

    /// `2 of 5 done, `: those before the one that runs, whether or not they had to be run, and those that were faster.
    fn done(&self, running: &str) -> String {
        let all = self.runs.len();
        let Some(before) = self.runs.iter().position(|name| name == running).filter(|_| all > 1) else { return String::new() };
        let done = before + self.runs[before..].iter().filter(|name| self.ended.contains(name)).count();
        format!("{done} of {all} done, ")
    }

    /// A line of ralph's own, beginning at the left.
    fn say(&mut self, text: &str) {
        let end = if self.terminal.open { "\n" } else { "" };
        let plain = if std::mem::take(&mut self.styled) { "\u{1b}[0m" } else { "" };
        self.write(&[plain.as_bytes(), end.as_bytes(), &ui::styled(text), b"\n"].concat());
    }

    /// Whole lines of one of several gates, each with its name.
    fn quote(&mut self, gate: &str, lines: &[Vec<u8>]) {
        let name = ui::styled(&ui::dim(format!("{} |", clean(gate))));
        let quoted = |line: &Vec<u8>| {
            let end: &[u8] = if line.contains(&0x1b) { b"\x1b[0m\n" } else { b"\n" };
            [&name, b" ".as_slice(), line, end].concat()
        };
        self.write(&lines.iter().flat_map(quoted).collect::<Vec<u8>>());
    }
}

/// An item of a list is no gate of that name.
fn label(gate: &Gate) -> String {
    let name = clean(&gate.name);
    if matches!(gate.origin, Origin::List(_)) { name } else { format!("gate {name}") }
}

impl Watch for Progress {
    fn begins(&self, gate: &Gate, time: Time) {
        let mut state = self.live.state();
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
            Form::Terminal if self.together.contains(&gate.name) => state.write(b""),
            Form::Terminal => state.say(&ui::bold(label)),
        }
    }

    fn says(&self, gate: &str, stream: Stream, bytes: &[u8]) {
        if self.form != Form::Terminal || bytes.is_empty() {
            return;
        }
        let mut state = self.live.state();
        let Some(running) = state.running.iter_mut().find(|running| running.gate == gate) else { return };
        let bytes = running.colours[stream as usize].feed(bytes);
        if self.together.iter().any(|name| name == gate) {
            let lines = running.lines[stream as usize].feed(&bytes);
            state.quote(gate, &lines);
            return;
        }
        state.styled |= bytes.contains(&0x1b);
        state.write(&bytes);
    }

    fn ended(&self, finding: &Finding) {
        let mut state = self.live.state();
        let Some(at) = state.running.iter().position(|running| running.gate == finding.gate) else { return };
        let mut running = state.running.remove(at);
        state.ended.push(finding.gate.clone());
        let is_interrupted = signals::asked_to_end() && finding.verdict == Verdict::Unknown;
        state.interrupted |= is_interrupted;
        let text = format!("{}: {}", running.label, summary::ended(finding, is_interrupted));
        match self.form {
            Form::Silent => {}
            Form::Lines => {
                ui::try_line(text);
            }
            Form::Terminal => {
                let rest: Vec<Vec<u8>> = running.lines.iter_mut().filter_map(Lines::rest).collect();
                state.quote(&finding.gate, &rest);
                state.say(&text);
            }
        }
    }
}
