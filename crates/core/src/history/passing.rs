//! A record that another one follows. Only the last state of a journal is shown as a whole; of those before it the history takes a few fields, and to
//! read all of them would take twice as long.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::History;
use crate::{
    journal::{Event, Parked, Runner, Spending, State},
    judge::{Ending, brakes::Standstill},
    money::Micros,
    text::time::Millis,
};

/// A record whose state is not read yet.
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
    #[serde(borrow)]
    pub(super) state: &'a RawValue,
}

/// The part of a state that [`History::take`] looks at.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
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
    /// Adds it to the history, after `change` made the state after it from the one before.
    pub(super) fn add_to(self, history: &mut History, change: impl FnOnce(&mut State)) {
        history.add(&self.at, &self.loop_id, self.session.as_deref(), self.event, change);
    }
}

impl Part {
    /// The state keeps what is not in here.
    pub(super) fn change(self, to: &mut State) {
        to.stops = self.stops;
        to.iteration = self.iteration;
        to.owner = self.owner;
        to.host = self.host;
        to.left_behind = self.left_behind;
        to.armed_since = self.armed_since;
        to.spending = self.spending.map(|spent| Spending { usd_micros: spent.usd_micros, ..Spending::default() });
        to.runner = self.runner;
        to.standstill = self.standstill.map(|standstill| Standstill { tree: standstill.tree, ..Standstill::default() });
        to.parked = self.parked;
        to.ended = self.ended;
    }
}
