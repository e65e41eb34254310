//! A record that another one follows. Only the last state of a journal is shown as a whole; of those before it the history takes a few fields, and to
//! read all of them would take twice as long.

use serde::Deserialize;

use crate::{
    journal::{Event, Parked, Record, Runner, Spending, State},
    judge::{Ending, brakes::Standstill},
    money::Micros,
    text::time::Millis,
};

/// A record with the part of its state that [`super::History::take`] looks at.
#[derive(Deserialize)]
pub(super) struct Passing {
    v: u32,
    seq: u64,
    at: String,
    #[serde(rename = "loop")]
    loop_id: String,
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

impl From<Passing> for Record {
    fn from(passing: Passing) -> Self {
        let Passing { v, seq, at, loop_id, session, event, state } = passing;
        let state = State {
            stops: state.stops,
            iteration: state.iteration,
            owner: state.owner,
            host: state.host,
            left_behind: state.left_behind,
            armed_since: state.armed_since,
            spending: state.spending.map(|spent| Spending { usd_micros: spent.usd_micros, ..Spending::default() }),
            runner: state.runner,
            standstill: state.standstill.map(|standstill| Standstill { tree: standstill.tree, ..Standstill::default() }),
            parked: state.parked,
            ended: state.ended,
            ..State::default()
        };
        Record { v, seq, at, loop_id, session, event, state }
    }
}
