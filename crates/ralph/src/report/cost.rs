//! The cost of what is proven, in words where a number would say too much.

use ralph_core::{
    history::AgentWork,
    money,
    report::{Cost, Figures},
    text::clean,
};
use ralph_engine::hosts::prices::Prices;

use crate::{agent_names, journal_lines::in_thousands};

/// `has_more`: an iteration that is not over cost something, too.
pub(super) fn of(f: &Figures, agents: &[AgentWork], has_more: bool) -> Cost {
    let unpriced = unpriced(agents);
    match unpriced {
        Some(tokens) if f.used.usd() == 0 => {
            Cost { words: format!("Not known: {tokens} have no known price. {ADD_A_PRICE}"), ..Cost::default() }
        }
        Some(tokens) => {
            let cost = of_known(f, has_more);
            Cost { words: format!("{} Not in it: {tokens}, which have no known price. {ADD_A_PRICE}", cost.words), ..cost }
        }
        None => of_known(f, has_more),
    }
}

const ADD_A_PRICE: &str = "Set it with `[run] prices` in ralph.toml.";

/// Tokens that are not in the money: `12k tokens of fake-model, 3k tokens of Codex`.
fn unpriced(agents: &[AgentWork]) -> Option<String> {
    let of = |one: &AgentWork| {
        let of = one.worker.model.as_deref().map_or_else(|| agent_names::title(&one.worker.agent), clean);
        format!("{} tokens of {of}", in_thousands(one.used.unpriced_tokens))
    };
    let all: Vec<String> = agents.iter().filter(|one| one.used.unpriced_tokens > 0).map(of).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn of_known(f: &Figures, has_more: bool) -> Cost {
    let spent = f.used.usd();
    if spent == 0 {
        let is_known = f.rounds == 0 && f.used.usd_micros == Some(0);
        let words = if is_known { "Nothing: no session was started.".to_owned() } else { unknown(f) };
        return Cost { words, ..Cost::default() };
    }
    let per = |n: u64| spent.checked_div(n);
    let (per_verified, per_round) = (per(f.verified), per(f.rounds + u64::from(has_more)));
    let a_round = per_round.map(|cost| format!(", {} for each iteration", money::shown(cost))).unwrap_or_default();
    let how = if f.used.estimated {
        let what = if f.used.sessions == 0 { "It" } else { "Some of it" };
        format!(" {what} is estimated from tokens and the public price lists of {}.", Prices::READ_IN)
    } else {
        String::new()
    };
    let words = match (per_verified, f.wanted) {
        (Some(cost), _) => format!("{} for {}{a_round}.{how}", money::shown(cost), things(f.verified)),
        (None, 0) => {
            format!("{} in all{a_round}. Nothing here can be verified: the loop has neither a gate nor a list.{how}", money::shown(spent))
        }
        (None, _) if f.by_mark > 0 => format!("{} in all{a_round}. What is done is done by marks alone.{how}", money::shown(spent)),
        (None, _) => format!("{} in all{a_round}, and nothing is verified yet.{how}", money::shown(spent)),
    };
    Cost { per_verified, per_round, words }
}

fn things(n: u64) -> String {
    if n == 1 { "the one thing that is verified".to_owned() } else { format!("each of the {n} things that are verified") }
}

fn unknown(f: &Figures) -> String {
    let why = if f.rounds == 0 {
        "no iteration has ended yet"
    } else if f.used.sessions == 0 {
        "the loop lives in the agent's own session, whose transcript is not here; ralph counts by itself only where there is a limit on money"
    } else {
        "the program that does the iterations does not say what it used"
    };
    format!("Not known: {why}.")
}
