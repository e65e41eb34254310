//! For a terminal: the agent's words and tools as they come, a line for each iteration, and below all of it a line that tells how it goes.

use std::{path::Path, time::Duration};

use ralph_core::text::{clean, time::Millis};
use ralph_engine::run::events::{Heard, Observer, RunEvent};

use crate::{
    commands::run::{prose::Prose, status::Status, summary::Last},
    run_wording,
    term::live_lines::{Live, Redraw, Terminal},
    term::width::{DOT, columns, cut, wrap},
    ui,
};

/// How often the lines at the bottom are drawn anew, while something goes on and otherwise.
const TICK: Duration = Duration::from_millis(200);
const SLOW_TICK: Duration = Duration::from_secs(1);

/// Draws until the run has ended.
pub(super) struct Screen {
    live: Live<State>,
}

impl Screen {
    /// A screen that is drawn anew by itself.
    pub(super) fn live(terminal: Terminal, now: fn() -> Millis) -> Self {
        Screen { live: Live::ticking(State::new(terminal, now), TICK) }
    }

    /// A screen on which only events change anything.
    #[cfg(test)]
    pub(super) fn still(terminal: Terminal, now: fn() -> Millis) -> Self {
        Screen { live: Live::still(State::new(terminal, now)) }
    }

    /// Time has passed.
    #[cfg(test)]
    pub(super) fn tick(&self) {
        self.live.state().write(&[]);
    }
}

impl Observer for Screen {
    fn on_event(&self, told: &RunEvent<'_>) {
        self.live.state().on_event(told);
        if matches!(told, RunEvent::Ended { .. }) {
            self.live.stop();
        }
    }
}

/// A run that ended without a word leaves no line behind.
impl Drop for Screen {
    fn drop(&mut self) {
        self.live.stop();
        let mut state = self.live.state();
        state.status = Status::default();
        state.end_of_words();
        state.write(&[]);
    }
}

struct State {
    terminal: Terminal,
    now: fn() -> Millis,
    /// The agent's words, and whether they are a subagent's.
    prose: Prose,
    of_subagent: bool,
    status: Status,
    /// The line about the last session; the next one is mostly like it.
    session: String,
    /// Denied calls that have not come back as failed ones yet.
    denied: u64,
    last: Last,
    folder: String,
    /// How the last session ended.
    said: String,
    /// The tool that was shown last, and what it was called with.
    called: (String, String),
}

impl Redraw for State {
    fn redraw(&mut self) -> Duration {
        self.write(&[]);
        if self.status.is_at_rest() { SLOW_TICK } else { TICK }
    }
}

impl State {
    fn new(terminal: Terminal, now: fn() -> Millis) -> Self {
        State {
            terminal,
            now,
            prose: Prose::default(),
            of_subagent: false,
            status: Status::default(),
            session: String::new(),
            denied: 0,
            last: Last::default(),
            folder: String::new(),
            said: String::new(),
            called: Default::default(),
        }
    }

    fn on_event(&mut self, told: &RunEvent<'_>) {
        self.status.on_event(told, (self.now)());
        self.last.on_event(told);
        match told {
            RunEvent::Agent { heard: Heard::Text { text, of_subagent } } => return self.words(text, *of_subagent),
            // Figures come in the middle of a sentence; they are drawn with the next tick.
            RunEvent::Agent { heard: Heard::Used { .. } | Heard::Quota { rejected: false, .. } } => return,
            _ => self.end_of_words(),
        }
        match told {
            RunEvent::Agent { heard } => self.agent(heard),
            RunEvent::Run { .. } | RunEvent::Warning { .. } | RunEvent::Iteration { .. } | RunEvent::Finishing => self.begins(told),
            RunEvent::Over { .. } | RunEvent::Ruled { .. } | RunEvent::Ended { .. } => self.ends(told),
            // `ralph diff` shows them.
            RunEvent::Snapshot { .. } => {}
            RunEvent::Rests { until, why, .. } => self.say(&ui::warn(run_wording::rests(until, why, &self.said)), 2),
            RunEvent::Paused { paused, is_last } => self.say(&ui::warn(run_wording::paused(*paused, *is_last)), 2),
            RunEvent::GoesOn | RunEvent::Checking { .. } => self.write(&[]),
        }
    }

    fn begins(&mut self, told: &RunEvent<'_>) {
        match told {
            RunEvent::Run { of_loop, picked_up, folder, limits, .. } => {
                self.say(
                    &format!("{} {} in {}", ui::good("Ralph runs"), ui::bold(clean(of_loop)), ui::path_from_home(Path::new(folder))),
                    2,
                );
                (*folder).clone_into(&mut self.folder);
                for line in picked_up.iter().chain(&run_wording::in_groups(limits)) {
                    self.say(&format!("  {}", clean(line)), 4);
                }
            }
            RunEvent::Warning { text } => self.say(&format!("{} {}", ui::warn("warning:"), clean(text)), 9),
            RunEvent::Iteration { .. } => {
                self.denied = 0;
                self.called = Default::default();
                let (iteration, mut parts) = run_wording::round(told);
                parts.insert(0, ui::bold(iteration));
                self.say("", 0);
                self.say(&parts.join(DOT), 2);
            }
            _ => self.say(&ui::warn("Ends after this iteration. Ctrl-C once more ends it now."), 2),
        }
    }

    fn ends(&mut self, told: &RunEvent<'_>) {
        match told {
            RunEvent::Over { outcome, work, .. } => {
                self.said = outcome.words();
                self.say(&ui::dim(run_wording::over(outcome, work)), 2);
            }
            RunEvent::Ruled { iteration, ruling, findings, line, .. } => {
                self.say(&run_wording::ruled(*iteration, findings, ruling), 2);
                if let Some(line) = line.filter(|_| run_wording::goes_on(ruling)) {
                    self.say(&format!("  {}", clean(line)), 2);
                }
            }
            RunEvent::Ended { .. } => {
                let (head, rest) = self.last.words(told);
                self.say("", 0);
                self.say(&head, 2);
                for line in rest {
                    self.say(&format!("  {line}"), 2);
                }
            }
            _ => {}
        }
    }

    fn agent(&mut self, heard: &Heard) {
        match heard {
            Heard::Tool { name, what, of_subagent } => self.tool(name, what, *of_subagent),
            Heard::Line { text } => self.say(&clean(text), 0),
            Heard::ToolEnded { failed: true, .. } if self.denied > 0 => self.denied -= 1,
            Heard::ToolEnded { failed: true, .. } => self.say(&ui::dim("  ✗ that failed"), 4),
            Heard::Session { .. } => {
                let about = run_wording::heard(heard).unwrap_or_default();
                if !about.is_empty() && about != self.session {
                    self.say(&ui::dim(&about), 2);
                    self.session = about;
                }
            }
            Heard::Denied { tool, what, rule } => {
                self.denied += 1;
                let is_below = (tool, what) == (&self.called.0, &self.called.1);
                let whole = || run_wording::denied(tool, &run_wording::subject_in(what, &self.folder), rule);
                let line = if is_below { format!("denied{}", run_wording::would_allow(rule)) } else { whole() };
                self.say(&ui::warn(format!("  ✗ {line}")), 4);
            }
            // The line at the bottom says so for as long as it matters.
            Heard::Retry { .. } => self.write(&[]),
            _ => match run_wording::heard(heard) {
                Some(line) => self.say(&ui::warn(line), 2),
                None => self.write(&[]),
            },
        }
    }

    /// One line, whatever the call is about.
    fn tool(&mut self, name: &str, what: &str, of_subagent: bool) {
        self.called = (name.to_owned(), what.to_owned());
        let (mark, name) = if of_subagent { ("  ○", clean(name)) } else { ("●", clean(name)) };
        let room = self.terminal.width().saturating_sub(columns(mark) + columns(&name) + 3);
        let what = cut(&run_wording::subject_in(what, &self.folder), room);
        let line = if of_subagent { ui::dim(format!("{mark} {name}  {what}")) } else { format!("{mark} {}  {what}", ui::bold(name)) };
        self.say(&line, 4);
    }

    /// Whole lines go by; the one that has only begun is drawn at the bottom, with the next tick.
    fn words(&mut self, text: &str, of_subagent: bool) {
        if of_subagent != self.of_subagent {
            self.end_of_words();
            self.of_subagent = of_subagent;
        }
        let width = self.terminal.width();
        let whole = self.prose.feed(text, width);
        self.show(&whole);
    }

    fn end_of_words(&mut self) {
        let width = self.terminal.width();
        let rest = self.prose.rest(width);
        self.show(&rest);
    }

    fn show(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            let text: Vec<String> = lines.iter().map(|line| self.coloured(line)).collect();
            self.write(&ui::styled(&(text.join("\n") + "\n")));
        }
    }

    fn coloured(&self, line: &str) -> String {
        if self.of_subagent && !line.is_empty() { ui::dim(line) } else { line.to_owned() }
    }

    /// A line of ralph's own, broken between words.
    fn say(&mut self, text: &str, hang: usize) {
        let text = wrap(text, self.terminal.width(), hang);
        self.write(&ui::styled(&format!("{text}\n")));
    }

    /// Writes above the lines at the bottom, which are drawn as they are by now.
    fn write(&mut self, above: &[u8]) {
        let lines = self.at_the_bottom();
        self.terminal.write(above, lines);
    }

    fn at_the_bottom(&self) -> Vec<String> {
        let width = self.terminal.width();
        let status = self.status.line(width, (self.now)());
        let begun = if status.is_empty() { String::new() } else { tail(self.prose.begun(), width) };
        let dim = |line: String| if self.terminal.plain { line } else { ui::dim(line) };
        [(begun, self.of_subagent), (status, true)]
            .into_iter()
            .filter(|(line, _)| !line.trim().is_empty())
            .map(|(line, is_dim)| if is_dim { dim(line) } else { line })
            .collect()
    }
}

/// The end of a line that is too long: that is where words are added.
fn tail(line: &str, width: usize) -> String {
    let mut from = line;
    while columns(from) > width {
        let mut chars = from.chars();
        chars.next();
        from = chars.as_str();
    }
    from.to_owned()
}
