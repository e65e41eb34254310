//! A record that another one follows. Only the last state of a journal is shown as a whole; of those before it the history takes a few fields, and to
//! read all of them would take twice as long.

use std::borrow::Cow;

use serde::Deserialize;

use super::History;
use crate::{
    journal::{Event, Parked, Runner, Spending},
    judge::{Ending, brakes::Standstill},
    money::Micros,
    text::time::Millis,
};

/// A record with the part of its state that [`super::History::take`] looks at.
#[derive(Deserialize)]
pub(super) struct Passing<'a> {
    #[expect(dead_code, reason = "a line without it is no record")]
    v: u32,
    #[expect(dead_code, reason = "a line without it is no record")]
    seq: u64,
    #[serde(borrow)]
    at: Cow<'a, str>,
    #[serde(borrow, rename = "loop")]
    loop_id: Cow<'a, str>,
    #[serde(default)]
    session: Option<String>,
    event: Event,
    state: Part,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    stops: u64,
    iteration: u64,
    owner: Option<String>,
    host: Option<String>,
    left_behind: bool,
    armed_since: Option<Millis>,
    spending: Option<Spent>,
    runner: Option<Runner>,
    standstill: Option<Tree>,
    parked: Option<Parked>,
    ended: Option<Ending>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spent {
    usd_micros: Micros,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tree {
    tree: String,
}

impl Passing<'_> {
    /// Adds it to the history, whose state keeps what is not in here.
    pub(super) fn add_to(self, history: &mut History) {
        let Passing { at, loop_id, session, event, state, .. } = self;
        history.add(&at, &loop_id, session.as_deref(), event, |to| {
            to.stops = state.stops;
            to.iteration = state.iteration;
            to.owner = state.owner;
            to.host = state.host;
            to.left_behind = state.left_behind;
            to.armed_since = state.armed_since;
            to.spending = state.spending.map(|spent| Spending { usd_micros: spent.usd_micros, ..Spending::default() });
            to.runner = state.runner;
            to.standstill = state.standstill.map(|standstill| Standstill { tree: standstill.tree, ..Standstill::default() });
            to.parked = state.parked;
            to.ended = state.ended;
        });
    }
}
