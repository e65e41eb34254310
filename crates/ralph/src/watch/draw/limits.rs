//! How much of each limit is used.

use ralph_core::{
    history::Used,
    money,
    text::{of_limit, time::in_words},
};
use ralph_engine::view::activity::{self, Doing};
use ratatui::style::Style;

use crate::{
    journal_lines::in_thousands,
    term::width::{DOT, columns, cut},
    watch::draw::{
        BAD, DIM, GOOD, PLAIN, Part, Scene, WARN,
        row::{Row, abreast, flowing},
    },
};

struct Limit {
    name: &'static str,
    spent: f64,
    /// 0: there is none.
    most: f64,
    words: String,
}

const NAME: usize = 11;
/// A bar with fewer cells says nothing.
const SHORTEST_BAR: usize = 6;
const LONGEST_BAR: usize = 30;

pub(super) fn part(scene: &Scene<'_>) -> Part {
    let all = all(scene);
    if scene.is_low {
        // What has no limit and no figure of its own says nothing here.
        let is_said = |limit: &&Limit| match limit.name {
            "tokens" => limit.most > 0.0,
            "money" => limit.most > 0.0 || limit.spent > 0.0,
            _ => true,
        };
        let said = all.iter().filter(is_said);
        let lines = flowing(scene.width, DOT, said.map(|limit| (short(limit), style(limit))));
        return Part { lines, least: 1, rank: 2, is_endless: false };
    }
    Part { lines: abreast(&all, scene.width, scene.is_high, drawn), least: 2, rank: 2, is_endless: false }
}

fn all(scene: &Scene<'_>) -> Vec<Limit> {
    let (view, used) = (scene.view, scene.history().used());
    let under_way = scene.followed.under_way(view).unwrap_or_default();
    let rounds = of_or_none(&view.iteration.to_string(), view.max_iterations, of_limit(view.iteration, view.max_iterations));
    // Time goes on between two looks.
    let armed = scene.history().state.armed_since.is_some() && view.file.is_some();
    let spent_ms = view.spent_ms.saturating_add(if armed { scene.since(scene.seen) } else { 0 });
    let time = of_or_none(&in_words(spent_ms), view.max_ms, format!("{} of {}", in_words(spent_ms), in_words(view.max_ms)));
    let limit = |name, spent: u64, most: u64, words| Limit { name, spent: float(spent), most: float(most), words };
    let mut all = vec![
        limit("iterations", view.iteration, view.max_iterations, rounds),
        limit("time", spent_ms, view.max_ms, time),
        money(scene, used, &under_way),
        tokens(scene, used, &under_way),
    ];
    all.extend(context(scene));
    all
}

fn money(scene: &Scene<'_>, used: Used, under_way: &activity::Used) -> Limit {
    let view = scene.view;
    let spent = view.spent_usd.unwrap_or(0.0).max(money::in_dollars(used.usd())) + money::in_dollars(under_way.usd_micros);
    let shown = money::shown(money::of_dollars(spent)).to_string();
    let most = money::shown(money::of_dollars(view.max_usd)).to_string();
    let words = match (view.max_usd > 0.0, spent > 0.0, view.uncounted_money()) {
        (true, false, Some(uncounted)) => format!("{uncounted}, limit {most}"),
        (true, ..) => format!("about {shown} of {most}"),
        (false, true, _) => format!("about {shown}, no limit"),
        (false, false, _) => uncounted(scene, |used| used.usd_micros > 0),
    };
    Limit { name: "money", spent, most: view.max_usd, words }
}

/// Without a limit nothing is counted. Where the session's own sum is shown below, that is not said above it.
fn uncounted(scene: &Scene<'_>, is_summed: impl Fn(&activity::Used) -> bool) -> String {
    let used = scene.followed.doing.as_ref().and_then(Doing::used);
    if used.is_some_and(|used| used.is_whole && is_summed(&used)) { "no limit".to_owned() } else { "not counted, no limit".to_owned() }
}

fn tokens(scene: &Scene<'_>, used: Used, under_way: &activity::Used) -> Limit {
    let view = scene.view;
    let spent = view.tokens.max(used.total_tokens()).saturating_add(under_way.tokens.total());
    let words = match (view.max_tokens, spent, view.uncounted_tokens()) {
        (0, 0, _) => uncounted(scene, |_| true),
        (0, spent, _) => format!("{}, no limit", in_thousands(spent)),
        (most, 0, Some(uncounted)) => format!("{uncounted}, limit {}", in_thousands(most)),
        (most, spent, _) => format!("{} of {}", in_thousands(spent), in_thousands(most)),
    };
    Limit { name: "tokens", spent: float(spent), most: float(view.max_tokens), words }
}

/// How full the agent's memory of this session is: of the session that runs, else of the last iteration.
fn context(scene: &Scene<'_>) -> Option<Limit> {
    let heard = scene.followed.doing.as_ref().and_then(Doing::used).and_then(|used| Some((used.context?, used.window?)));
    let last = scene.history().rounds.last().map(|iteration| (iteration.used.context, iteration.used.context_window));
    let (spent, window) =
        heard.or(last).filter(|(spent, window)| *spent > 0 && *window > 0).or(scene.view.context.map(|full| (full, 100)))?;
    let percent = match spent.saturating_mul(100) / window {
        0 => "<1".to_owned(),
        percent => percent.to_string(),
    };
    let size = if window > 100 { format!(" of {}", in_thousands(window)) } else { String::new() };
    let pauses = if scene.view.max_context > 0 { format!(", pauses at {} %", scene.view.max_context) } else { String::new() };
    Some(Limit { name: "context", spent: float(spent), most: float(window), words: format!("{percent} %{size}{pauses}") })
}

fn of_or_none(spent: &str, most: u64, of_most: String) -> String {
    if most == 0 { format!("{spent}, no limit") } else { of_most }
}

#[expect(clippy::cast_precision_loss, reason = "a bar has some cells")]
fn float(n: u64) -> f64 {
    n as f64
}

fn style(limit: &Limit) -> Style {
    match limit.spent / limit.most {
        _ if limit.most <= 0.0 => PLAIN,
        share if share >= 1.0 => BAD,
        share if share >= 0.8 => WARN,
        _ => GOOD,
    }
}

fn short(limit: &Limit) -> String {
    match limit.name {
        "iterations" => format!("iteration {}", limit.words),
        "money" | "time" => limit.words.clone(),
        name => format!("{name} {}", limit.words),
    }
}

fn drawn(row: Row, limit: &Limit, width: usize) -> Row {
    let row = row.column(limit.name, NAME, DIM);
    let room = width.saturating_sub(NAME + 1);
    let cells = room.saturating_sub(columns(&limit.words).max(18)).min(LONGEST_BAR);
    if limit.most > 0.0 && cells >= SHORTEST_BAR {
        let row = row.bar(limit.spent, limit.most, cells, style(limit)).gap(1);
        return row.add(&cut(&limit.words, room - cells), PLAIN);
    }
    row.add(&cut(&limit.words, width.saturating_sub(NAME)), PLAIN)
}
