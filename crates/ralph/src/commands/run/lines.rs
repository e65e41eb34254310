//! For a pipe or a file: a plain line with its time for everything worth reading, the agent's words in whole lines.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
};

use ralph_core::{
    time::{self, Millis, in_words},
    words::clean,
};
use ralph_engine::runner::told::{Audience, Heard, Told};

use crate::{
    commands::run::{prose::Prose, says},
    text::when,
    ui,
};

/// Whole lines, however long they are.
const WIDTH: usize = usize::MAX;

pub(super) struct Lines {
    state: Mutex<State>,
    now: fn() -> Millis,
}

struct State {
    out: Box<dyn Write + Send>,
    prose: Prose,
    of_subagent: bool,
    of_loop: String,
    /// The person's line of the last ruling.
    said: String,
}

impl Lines {
    pub(super) fn new(out: Box<dyn Write + Send>, now: fn() -> Millis) -> Self {
        Lines {
            state: Mutex::new(State { out, prose: Prose::default(), of_subagent: false, of_loop: String::new(), said: String::new() }),
            now,
        }
    }
}

impl Audience for Lines {
    fn hears(&self, told: &Told<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = state.lines(told);
        if lines.is_empty() {
            return;
        }
        let at = when(&time::format((self.now)()));
        let stamped: Vec<String> = lines.iter().map(|line| format!("{at} {}", anstream::adapter::strip_str(line))).collect();
        let text = stamped.join("\n") + "\n";
        // A reader that has gone away misses it; the loop goes on.
        let _ = state.out.write_all(text.as_bytes()).and_then(|()| state.out.flush());
    }
}

impl State {
    fn lines(&mut self, told: &Told<'_>) -> Vec<String> {
        if let Told::Agent { heard: Heard::Text { text, of_subagent } } = told {
            let mut lines = if *of_subagent == self.of_subagent { Vec::new() } else { self.rest() };
            self.of_subagent = *of_subagent;
            let whole = self.prose.feed(text, WIDTH);
            lines.extend(self.quoted(whole));
            return lines;
        }
        // Figures come in the middle of a sentence.
        if matches!(told, Told::Agent { heard: Heard::Used { .. } | Heard::Quota { rejected: false, .. } }) {
            return Vec::new();
        }
        let mut lines = self.rest();
        lines.extend(self.others(told));
        lines
    }

    /// Words that no line break followed.
    fn rest(&mut self) -> Vec<String> {
        let rest = self.prose.rest(WIDTH);
        self.quoted(rest)
    }

    fn quoted(&self, lines: Vec<String>) -> Vec<String> {
        let who = if self.of_subagent { "subagent" } else { "agent" };
        lines.into_iter().filter(|line| !line.is_empty()).map(|line| format!("{who}: {line}")).collect()
    }

    fn others(&mut self, told: &Told<'_>) -> Vec<String> {
        match told {
            Told::Run { of_loop, picked_up, folder, limits, .. } => {
                (*of_loop).clone_into(&mut self.of_loop);
                let picked_up = picked_up.iter().map(|what| ui::harmless(what));
                let limits = limits.iter().map(|limit| format!("limit: {}", clean(limit)));
                std::iter::once(format!("loop {} in {}", clean(of_loop), clean(folder))).chain(picked_up).chain(limits).collect()
            }
            Told::Warning { text } => vec![format!("warning: {}", clean(text))],
            Told::Round { log, .. } => {
                let (round, rest) = says::round(told);
                vec![format!("{round}{}{rest}{}log {}", says::DOT, says::DOT, clean(log))]
            }
            Told::Agent { heard: Heard::Tool { name, what, of_subagent } } => {
                let who = if *of_subagent { "subagent's tool" } else { "tool" };
                vec![format!("{who}: {}", says::call(name, what))]
            }
            Told::Agent { heard: Heard::Line { text } } => vec![format!("agent: {}", clean(text))],
            Told::Agent { heard } => says::heard(heard).into_iter().collect(),
            Told::Checking { gate, limit_ms } => vec![format!("gate {} runs, for {} at most", says::subject(gate), in_words(*limit_ms))],
            Told::Over { iteration, outcome, work, then, .. } => {
                vec![format!("round {iteration} is over: {}", says::over(outcome, work, *then))]
            }
            Told::Ruled { iteration, ruling, findings, line, .. } => {
                self.said = line.map(clean).unwrap_or_default();
                let line = Some(self.said.clone()).filter(|line| !line.is_empty());
                std::iter::once(says::ruled(*iteration, findings, ruling)).chain(line).collect()
            }
            Told::Snapshot { name, commit } => vec![format!("files kept as {} ({})", clean(name), clean(commit))],
            Told::Rests { until, why, .. } => vec![format!("rests until {}: {}", when(until), clean(why))],
            Told::GoesOn => vec!["goes on".to_owned()],
            Told::Finishing => vec!["ends after this round, because a person asked for it".to_owned()],
            Told::Ended { how, line, rounds, spent_usd, spent_tokens, denied, .. } => {
                let line = Some(clean(line)).filter(|line| !line.is_empty() && *line != self.said);
                let head = format!("{}{}{}", says::ending(*how), says::DOT, says::spent(*rounds, *spent_tokens, *spent_usd));
                std::iter::once(head).chain(line).chain(says::denied(denied)).chain([says::next(*how, &self.of_loop)]).collect()
            }
        }
    }
}
