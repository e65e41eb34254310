//! For a pipe or a file: a plain line with its time for everything worth reading, the agent's words in whole lines.

use std::io::Write;

use ralph_core::text::{
    clean,
    time::{self, Millis, in_words},
};
use ralph_engine::run::events::{Heard, RunEvent};

use crate::{
    commands::run::{printed::Printed, prose::Prose, summary::Last},
    journal_lines::{short, when},
    run_wording,
    term::{bar::about, width::DOT},
    ui,
};

/// Whole lines, however long they are.
const WIDTH: usize = usize::MAX;

#[derive(Default)]
struct State {
    prose: Prose,
    of_subagent: bool,
    last: Last,
    folder: String,
    said: String,
}

pub(super) fn printed(out: Box<dyn Write + Send>, now: fn() -> Millis) -> Printed {
    let mut state = State::default();
    Printed::new(out, move |told| {
        let lines = state.lines(told);
        let at = when(&time::format(now()));
        lines.iter().flat_map(|line| format!("{at} {}\n", anstream::adapter::strip_str(line)).into_bytes()).collect()
    })
}

impl State {
    fn lines(&mut self, told: &RunEvent<'_>) -> Vec<String> {
        self.last.on_event(told);
        if let RunEvent::Agent { heard: Heard::Text { text, of_subagent } } = told {
            let mut lines = if *of_subagent == self.of_subagent { Vec::new() } else { self.rest() };
            self.of_subagent = *of_subagent;
            let whole = self.prose.feed(text, WIDTH);
            lines.extend(self.quoted(whole));
            return lines;
        }
        // Figures come in the middle of a sentence.
        if matches!(told, RunEvent::Agent { heard: Heard::Used { .. } | Heard::Quota { rejected: false, .. } }) {
            return Vec::new();
        }
        let mut lines = self.rest();
        lines.extend(self.others(told));
        lines
    }

    fn rest(&mut self) -> Vec<String> {
        let rest = self.prose.rest(WIDTH);
        self.quoted(rest)
    }

    fn quoted(&self, lines: Vec<String>) -> Vec<String> {
        let who = if self.of_subagent { "subagent" } else { "agent" };
        lines.into_iter().filter(|line| !line.is_empty()).map(|line| format!("{who}: {line}")).collect()
    }

    fn others(&mut self, told: &RunEvent<'_>) -> Vec<String> {
        match told {
            RunEvent::Run { of_loop, picked_up, folder, limits, .. } => {
                (*folder).clone_into(&mut self.folder);
                let picked_up = picked_up.iter().map(|what| ui::harmless(what));
                let limits = Some(clean(&limits.join("; "))).filter(|limits| !limits.is_empty());
                std::iter::once(format!("loop {} in {}", clean(of_loop), clean(folder))).chain(picked_up).chain(limits).collect()
            }
            RunEvent::Warning { text } => vec![format!("warning: {}", clean(text))],
            RunEvent::Iteration { log, session, .. } => {
                let (round, mut parts) = run_wording::round(told);
                parts.insert(0, round);
                parts.extend([format!("session {}", clean(short(Some(session)))), format!("log {}", clean(log))]);
                vec![parts.join(DOT)]
            }
            RunEvent::Agent { heard: Heard::Tool { name, what, of_subagent } } => {
                let who = if *of_subagent { "subagent's tool" } else { "tool" };
                vec![format!("{who}: {}", run_wording::call(name, &run_wording::subject_in(what, &self.folder)))]
            }
            RunEvent::Agent { heard: Heard::Denied { tool, what, rule } } => {
                vec![run_wording::denied(tool, &run_wording::subject_in(what, &self.folder), rule)]
            }
            RunEvent::Agent { heard: Heard::Line { text } } => vec![format!("agent: {}", clean(text))],
            RunEvent::Agent { heard } => run_wording::heard(heard).into_iter().collect(),
            RunEvent::Checking { gate, limit_ms, usual_ms } => {
                let usual = usual_ms.map(|usual| format!(" {},", about(usual))).unwrap_or_default();
                vec![format!("gate {} runs,{usual} for {} at most", run_wording::subject(gate), in_words(*limit_ms))]
            }
            RunEvent::Over { iteration, outcome, work, .. } => {
                self.said = outcome.words();
                vec![format!("iteration {iteration} is over: {}", run_wording::over(outcome, work))]
            }
            RunEvent::Ruled { iteration, ruling, findings, line, .. } => {
                let line = line.filter(|_| run_wording::goes_on(ruling)).map(clean);
                std::iter::once(run_wording::ruled(*iteration, findings, ruling)).chain(line).collect()
            }
            RunEvent::Snapshot { name, .. } => vec![format!("files kept as {}", clean(name))],
            RunEvent::Rests { until, why, .. } => vec![run_wording::rests(until, why, &self.said)],
            RunEvent::GoesOn => vec!["goes on".to_owned()],
            RunEvent::Finishing => vec!["ends after this iteration, because a person asked for it".to_owned()],
            RunEvent::Paused { paused, is_last } => vec![run_wording::paused(*paused, *is_last).to_owned()],
            RunEvent::Ended { .. } => {
                let (head, rest) = self.last.words(told);
                std::iter::once(head).chain(rest).collect()
            }
        }
    }
}
