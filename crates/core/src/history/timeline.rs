//! Where the time went: the time of a loop, cut into phases, and how much of each an iteration took.

use serde::Serialize;

use crate::{
    journal::{Event, State},
    judge::session_outcome::{Outcome, Then, Trouble},
    text::time::{Millis, measured},
};

/// The activity of a loop at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The agent works.
    Work,
    /// Ralph measures.
    Gates,
    /// It waits for what is decided elsewhere: checks, a review.
    Elsewhere,
    /// It waits for the model's service: a quota, an overload.
    Service,
    /// No agent works on it.
    Paused,
}

impl Phase {
    pub const ALL: [Phase; 5] = [Phase::Work, Phase::Gates, Phase::Elsewhere, Phase::Service, Phase::Paused];

    /// A stable word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Work => "work",
            Phase::Gates => "gates",
            Phase::Elsewhere => "elsewhere",
            Phase::Service => "service",
            Phase::Paused => "paused",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Phase::Work => "work",
            Phase::Gates => "gates",
            Phase::Elsewhere => "waiting for CI",
            Phase::Service => "waiting for quota",
            Phase::Paused => "paused",
        }
    }
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    pub from: Millis,
    pub to: Millis,
    pub phase: Phase,
}

/// Milliseconds by what was done meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Took {
    pub work_ms: u64,
    pub gates_ms: u64,
    pub elsewhere_ms: u64,
    pub service_ms: u64,
    pub paused_ms: u64,
}

impl Took {
    fn add(&mut self, phase: Phase, ms: u64) {
        let sum = match phase {
            Phase::Work => &mut self.work_ms,
            Phase::Gates => &mut self.gates_ms,
            Phase::Elsewhere => &mut self.elsewhere_ms,
            Phase::Service => &mut self.service_ms,
            Phase::Paused => &mut self.paused_ms,
        };
        *sum = sum.saturating_add(ms);
    }

    pub fn total(self) -> u64 {
        Phase::ALL.into_iter().map(|phase| self.of(phase)).fold(0, u64::saturating_add)
    }

    /// `2 h work, 20 min gates`; empty where nothing took any time.
    pub fn words(self) -> String {
        let parts = Phase::ALL.into_iter().filter(|phase| self.of(*phase) > 0);
        parts.map(|phase| format!("{} {}", measured(self.of(phase)), phase.words())).collect::<Vec<_>>().join(", ")
    }

    pub fn of(self, phase: Phase) -> u64 {
        match phase {
            Phase::Work => self.work_ms,
            Phase::Gates => self.gates_ms,
            Phase::Elsewhere => self.elsewhere_ms,
            Phase::Service => self.service_ms,
            Phase::Paused => self.paused_ms,
        }
    }

    #[must_use]
    pub fn plus(mut self, other: Took) -> Self {
        for phase in Phase::ALL {
            self.add(phase, other.of(phase));
        }
        self
    }
}

/// The time of a loop so far.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Spans that are over, the oldest first; neighbours differ in their phases.
    pub spans: Vec<Span>,
    /// The phase that goes on, and since when; `None`: the loop has ended, or not begun.
    pub now: Option<(Phase, Millis)>,
    pub total: Took,
    round: Took,
    iteration_from: Option<Millis>,
    latest: Millis,
    /// The service broke the last session that broke.
    of_service: bool,
    /// The clock ran at the last record, and the loop waited for its first session.
    waits_for_session: bool,
}

impl Timeline {
    /// A record was written at that time, after which the loop is in `state`, and a session or a runner has it or not.
    pub(super) fn at(&mut self, at: Millis, event: &Event, state: &State, is_held: bool) {
        // Clocks are set back; what was counted stays.
        let at = at.max(self.latest);
        let before = std::mem::replace(&mut self.latest, at);
        if matches!(event, Event::Adopted | Event::Stop { .. }) && std::mem::take(&mut self.waits_for_session) {
            // A session that stops has worked, since when is not known, but the loop's clock ran.
            self.now = self.now.map(|(_, since)| (Phase::Work, since));
        }
        if is_after_a_death(event) {
            // The runner before died at a time that is not known.
            self.now = self.now.map(|(_, since)| (Phase::Paused, since));
        }
        if let Event::Broke { outcome, .. } = event {
            self.of_service = is_of_service(outcome);
        }
        let next = phase_after(event, state, is_held, self.now.map(|(phase, _)| phase), self.of_service);
        self.iteration_from.get_or_insert(at);
        match (self.now, next) {
            (Some((phase, _)), Some(next)) if phase == next && !matches!(event, Event::Stop { .. }) => {}
            (Some((phase, since)), _) => {
                self.close(phase, since, at);
                self.now = next.map(|next| (next, at));
            }
            (None, _) => {
                if next.is_some() && !self.spans.is_empty() {
                    // It had ended, and was taken up again.
                    self.close(Phase::Paused, before, at);
                }
                self.now = next.map(|next| (next, at));
            }
        }
        self.waits_for_session = !is_held && !state.left_behind && state.armed_since.is_some();
    }

    fn close(&mut self, phase: Phase, from: Millis, to: Millis) {
        let ms = u64::try_from(to - from).unwrap_or(0);
        if ms == 0 {
            return;
        }
        self.total.add(phase, ms);
        self.round.add(phase, ms);
        match self.spans.last_mut().filter(|last| last.phase == phase && last.to == from) {
            Some(last) => last.to = to,
            None => self.spans.push(Span { from, to, phase }),
        }
    }

    /// Ends an iteration: when it began, and how long it took.
    pub(super) fn end_iteration(&mut self) -> (Millis, Took) {
        let from = self.iteration_from.replace(self.latest).unwrap_or(self.latest);
        (from, std::mem::take(&mut self.round))
    }

    /// How long the iteration took so far that was not ruled on, until `now`.
    pub fn open_until(&self, now: Millis) -> Took {
        let mut all = self.clone();
        if let Some((phase, since)) = self.now {
            all.close(phase, since, now.max(since));
        }
        all.round
    }

    /// All with what goes on counted until `now`.
    pub fn until(&self, now: Millis) -> (Vec<Span>, Took) {
        let mut all = self.clone();
        if let Some((phase, since)) = self.now {
            all.close(phase, since, now.max(since));
        }
        (all.spans, all.total)
    }
}

fn is_after_a_death(event: &Event) -> bool {
    matches!(event, Event::Taken { unfinished: Some(_), .. } | Event::Taken { unwritten: Some(_), .. })
}

/// A crash, or a brake of ralph's own, is no fault of the service.
fn is_of_service(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { trouble: Trouble::Limit { .. } | Trouble::Service { .. } })
}

/// The phase after a record: the state says whether the loop is worked on, and the event at what.
fn phase_after(event: &Event, state: &State, is_held: bool, before: Option<Phase>, of_service: bool) -> Option<Phase> {
    if state.ended.is_some() {
        return None;
    }
    // A runner rests for several reasons; a session is parked until a time by its service alone.
    let rest = if of_service || state.runner.is_none() { Phase::Service } else { Phase::Paused };
    if let Some(parked) = &state.parked {
        // A service says when it is back; checks do not say when they are done.
        return Some(if parked.until.is_some() { rest } else { Phase::Elsewhere });
    }
    match event {
        Event::Checking { .. } => return Some(Phase::Gates),
        Event::Waiting { .. } => return Some(Phase::Elsewhere),
        Event::Broke { then: Then::Again { .. } | Then::Park { .. }, .. } => return Some(rest),
        _ => {}
    }
    // A runner finishes its iteration when a person pauses the loop.
    let works_on = matches!(event, Event::Paused { .. }) && state.runner.is_some();
    if works_on {
        return before;
    }
    if state.armed_since.is_none() || !is_held {
        return Some(Phase::Paused);
    }
    let says_nothing = matches!(
        event,
        Event::Heard { .. }
            | Event::Steered { .. }
            | Event::Measured { .. }
            | Event::Accepted { .. }
            | Event::Edited { .. }
            | Event::Misfit { .. }
    );
    if says_nothing { before.filter(|phase| *phase != Phase::Paused).or(Some(Phase::Work)) } else { Some(Phase::Work) }
}
