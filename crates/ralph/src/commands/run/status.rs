//! The line that tells how it goes right now: for how long, what was used, whether anything was heard.

use ralph_core::{
    judge::session_outcome::Then,
    text::{
        of_limit,
        time::{Millis, in_words},
    },
};
use ralph_engine::run::events::{Heard, RunEvent};

use crate::{
    journal_lines::in_thousands,
    run_wording::{self, money, subject, used_tokens},
    term::bar::Lasting,
    term::width::{cut, fit},
};

const SILENCE_MS: u64 = 10_000;

/// The present state of the run.
#[derive(Default)]
pub(super) struct Status {
    doing: Doing,
    /// A person asked for the end after this iteration.
    finishing: bool,
    /// The loop was paused from elsewhere.
    paused: bool,
    tokens: u64,
    usd: Option<f64>,
    context: u64,
    /// How large the context is; 0 until a session has told.
    window: u64,
    /// Hundredths of the account's quota.
    quota: Option<u64>,
}

#[derive(Default)]
enum Doing {
    #[default]
    Nothing,
    Works {
        round: String,
        since: Millis,
        heard: Millis,
        /// The service is asked again.
        again: Option<String>,
    },
    Judges {
        iteration: u64,
    },
    Checks {
        gate: String,
        since: Millis,
        limit_ms: u64,
        usual_ms: Option<u64>,
    },
    Rests {
        until: Millis,
    },
}

impl Status {
    pub(super) fn on_event(&mut self, told: &RunEvent<'_>, now: Millis) {
        match told {
            RunEvent::Iteration { iteration, max_iterations, .. } => {
                let round = format!("iteration {}", of_limit(*iteration, *max_iterations));
                let kept =
                    Status { window: self.window, quota: self.quota, finishing: self.finishing, paused: self.paused, ..Status::default() };
                *self = Status { doing: Doing::Works { round, since: now, heard: now, again: None }, ..kept };
            }
            RunEvent::Agent { heard } => self.listens(heard, now),
            RunEvent::Checking { gate, limit_ms, usual_ms } => {
                self.doing = Doing::Checks { gate: subject(gate), since: now, limit_ms: *limit_ms, usual_ms: *usual_ms };
            }
            RunEvent::Over { work, iteration, then, .. } => {
                self.doing = if *then == Then::Judge { Doing::Judges { iteration: *iteration } } else { Doing::Nothing };
                self.window = if work.context_window > 0 { work.context_window } else { self.window };
            }
            RunEvent::Rests { until_ms, .. } => self.doing = Doing::Rests { until: *until_ms },
            RunEvent::Ruled { .. } | RunEvent::GoesOn | RunEvent::Ended { .. } => self.doing = Doing::Nothing,
            RunEvent::Finishing => self.finishing = true,
            RunEvent::Paused { paused, .. } => self.paused = *paused,
            RunEvent::Run { .. } | RunEvent::Warning { .. } | RunEvent::Snapshot { .. } => {}
        }
    }

    fn listens(&mut self, agent: &Heard, now: Millis) {
        if let Doing::Works { heard, again, .. } = &mut self.doing {
            *heard = now;
            *again = matches!(agent, Heard::Retry { .. }).then(|| run_wording::heard(agent)).flatten();
        }
        match agent {
            Heard::Used { tokens, usd, context } => (self.tokens, self.usd, self.context) = (*tokens, *usd, *context),
            Heard::Quota { used: Some(used), .. } => self.quota = Some(*used),
            _ => {}
        }
    }

    /// Nothing changes by itself more often than once a second.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.doing, Doing::Nothing | Doing::Rests { .. })
    }

    /// The line, in at most `width` columns; empty if nothing goes on.
    pub(super) fn line(&self, width: usize, now: Millis) -> String {
        match &self.doing {
            Doing::Nothing => String::new(),
            Doing::Works { round, since, heard, again } => self.of_work((round, again.as_ref()), *since, *heard, width, now),
            Doing::Judges { iteration } => self.and_last(format!("iteration {iteration} is judged"), width),
            Doing::Checks { gate, since, limit_ms, usual_ms } => {
                let lasting = Lasting { passed: between(*since, now), usual: *usual_ms, limit: *limit_ms };
                self.and_last(format!("gate {gate}: {}", lasting.drawn()), width)
            }
            Doing::Rests { until } => cut(&format!("goes on in {}", in_words(between(now, *until))), width),
        }
    }

    fn last(&self) -> Option<&'static str> {
        match (self.finishing, self.paused) {
            (true, _) => Some("ends after this iteration, Ctrl-C ends it now"),
            (false, true) => Some("paused: this iteration is the last"),
            (false, false) => None,
        }
    }

    /// The same beside what is done now.
    fn and_last(&self, doing: String, width: usize) -> String {
        fit(std::iter::once((0, doing)).chain(self.last().map(|last| (1, last.to_owned()))).collect(), width)
    }

    /// The parts that fit, the most telling last to go.
    fn of_work(&self, (iteration, again): (&str, Option<&String>), since: Millis, heard: Millis, width: usize, now: Millis) -> String {
        let silence = between(heard, now);
        let context = match (self.context, self.window) {
            (0, _) => None,
            (tokens, 0) => Some(format!("context {}", in_thousands(tokens))),
            (tokens, window) if tokens < window / 100 => Some("context <1 %".to_owned()),
            (tokens, window) => Some(format!("context {} %", tokens.saturating_mul(100) / window)),
        };
        let parts = [
            (6_u8, Some(iteration.to_owned())),
            (0, Some(in_words(between(since, now)))),
            (4, used_tokens(self.tokens)),
            (5, self.usd.and_then(money)),
            (7, context),
            (8, self.quota.map(|used| format!("quota {used} %"))),
            (3, (silence >= SILENCE_MS).then(|| format!("quiet for {}", in_words(silence)))),
            (1, again.cloned()),
            (2, self.last().map(str::to_owned)),
        ];
        fit(parts.into_iter().filter_map(|(rank, part)| Some((rank, part?))).collect(), width)
    }
}

fn between(from: Millis, to: Millis) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}
