//! What the page shows, in the words of the screen and of the report.

use ralph_core::{
    money,
    text::{clean, opening, time::Millis},
};
use serde_json::{Value, json};

use crate::{
    board::{Board, Card},
    history::{self, Line, Span},
    records::{State, Wish},
    report,
    screen::{self, Around},
    settings::{Place, Settings},
};

/// More rows than that are counted, not shown.
const MOST_JOBS: usize = 300;

/// How many of the last events are shown.
const MOST_EVENTS: usize = 40;

/// The most characters of one text.
const MOST_TEXT: usize = 300;

pub(super) struct Seen<'a> {
    pub board: &'a Board,
    pub around: &'a Around,
    pub lines: &'a [Line],
    pub place: &'a Place,
    pub settings: &'a Settings,
    pub allows_control: bool,
}

impl Seen<'_> {
    pub(super) fn json(&self) -> Value {
        let Seen { board, around, lines, settings, .. } = self;
        // What goes on has no end here: what does not change is not sent again.
        let spans = history::spans(lines, Millis::MAX);
        let ordered = screen::in_order(board);
        let jobs: Vec<Value> =
            ordered.iter().take(MOST_JOBS).map(|(id, card)| self.job(id, card, spans.get(id).map_or(&[][..], Vec::as_slice))).collect();
        let events: Vec<String> = lines.iter().rev().take(MOST_EVENTS).map(|line| opening(&history::told(line), MOST_TEXT)).collect();
        let flaky: Vec<Value> =
            history::flaky(lines).iter().map(|(gate, times)| json!({ "gate": opening(&clean(gate), MOST_TEXT), "times": times })).collect();
        let ledger = &around.ledger;
        json!({
            "list": clean(settings.list.as_deref().unwrap_or("tasks")), "target": clean(&settings.target), "base": clean(&settings.base),
            "summary": screen::summary(board), "money": report::money(board, around),
            "spent_micros": ledger.spent_micros, "limit_micros": ledger.limit_micros,
            "limit": (ledger.limit_micros > 0).then(|| money::shown(ledger.limit_micros).to_string()),
            "is_paused": board.want.wish == Wish::Pause, "trouble": around.trouble.as_deref().map(clean), "short": around.short.as_deref().map(clean),
            "jobs": jobs, "hidden": ordered.len().saturating_sub(MOST_JOBS), "events": events, "flaky": flaky,
            "backlog": report::backlog(board, lines), "bring": report::bring(board, settings), "allows_control": self.allows_control,
            "from": lines.iter().map(|line| line.at).min(), "to": lines.iter().map(|line| line.at).max(),
        })
    }

    fn job(&self, id: &str, card: &Card, spans: &[Span]) -> Value {
        let title = card.spec.task.lines().next().unwrap_or_default();
        let doing = screen::doing(self.board, id, card, self.place);
        let spans: Vec<Value> =
            spans.iter().map(|span| json!([span.phase, span.from, (span.to < Millis::MAX).then_some(span.to)])).collect();
        json!({
            "id": id, "name": opening(&clean(card.spec.item.as_deref().unwrap_or(id)), MOST_TEXT), "title": opening(&clean(title), MOST_TEXT),
            "state": card.job.state, "word": screen::word(card.job.state), "doing": opening(&clean(&doing), MOST_TEXT),
            "is_paused": card.want.wish == Wish::Pause, "iterations": card.job.iterations,
            "cost": (card.job.usd_micros > 0).then(|| money::shown(card.job.usd_micros).to_string()),
            "since": since(card), "line": spans, "acts": if self.allows_control { acts(card) } else { Vec::new() },
        })
    }
}

/// Since when it is in the hands of a worker or of the lander.
fn since(card: &Card) -> Option<Millis> {
    card.job.is_held().then_some(card.job.changed_at)
}

/// What a person can ask of a job as it is.
fn acts(card: &Card) -> Vec<&'static str> {
    if card.job.is_over() || card.left_alone().is_some() {
        return Vec::new();
    }
    let mut acts = Vec::new();
    if card.job.state == State::Proven {
        acts.extend(["land", "back"]);
    }
    if card.job.is_held() || card.job.state == State::NeedsPerson {
        acts.push("release");
    }
    acts.push("steer");
    if card.want.wish == Wish::Pause {
        acts.push("resume");
    } else if card.job.state != State::NeedsPerson {
        acts.push("pause");
    }
    acts.push("cancel");
    acts
}
