//! The present: the agent's last tools and words, a gate that is measured, a wait.

use ralph_core::{
    history::GateHistory,
    text::{
        clean, opening,
        time::{self, Millis, in_words},
    },
};
use ralph_engine::{
    run::events::Heard,
    view::{
        Carrier, Status, Waiter, Waits,
        activity::{Activity, Doing},
    },
};
use ratatui::{style::Style, text::Line};

use crate::{
    advice, agent_names,
    journal_lines::in_thousands,
    run_wording::{self, subject_in},
    watch::draw::{
        BOLD, DIM, GOOD, PLAIN, Part, Scene, WARN, age, headed,
        row::{Row, parts},
    },
};

/// From here on silence is worth a word.
const QUIET: u64 = 60_000;
/// And from here on a look.
const VERY_QUIET: u64 = 10 * 60_000;
const BAR: usize = 12;
const MOST: usize = 60;

pub(super) fn part(scene: &Scene<'_>, in_short: bool) -> Part {
    let now = now(scene);
    let feed = feed(scene);
    if in_short {
        return Part { lines: now.into_iter().chain(feed).collect(), least: 1, rank: 2, is_endless: true };
    }
    if now.is_none() && feed.is_empty() {
        return Part::default();
    }
    let heading = match (&now, &scene.view.file) {
        (Some(_), _) => "now",
        (None, Some(_)) => "last heard",
        (None, None) => "at the end",
    };
    let mut lines = headed(scene, heading, &session(scene));
    lines.extend(now);
    lines.extend(feed);
    Part { lines, least: 4, rank: 3, is_endless: true }
}

fn session(scene: &Scene<'_>) -> String {
    let Some(used) = scene.followed.doing.as_ref().and_then(Doing::used) else { return String::new() };
    let model = used.model.as_deref().map(clean);
    let tokens = used.is_whole.then(|| format!("this session {} tokens", in_thousands(used.tokens.total())));
    let money = (used.is_whole && used.usd_micros > 0).then(|| ralph_core::money::shown(used.usd_micros).to_string());
    [model, tokens, money].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn now(scene: &Scene<'_>) -> Option<Line<'static>> {
    let view = scene.view;
    if let Some(checking) = &view.checking {
        return Some(measuring(scene, &checking.gate, time::parse(&checking.since).unwrap_or(scene.now), checking.limit_ms));
    }
    if let Some(waits) = &view.waits {
        return Some(waiting(scene, waits));
    }
    match (view.status, view.carrier) {
        (Status::Active, Carrier::Runner | Carrier::Session) | (Status::Paused, Carrier::Runner) => Some(working(scene)),
        (Status::Active, Carrier::Nobody) => Some(Row::new(scene.width).add("active; no agent has reported yet", PLAIN).line()),
        (Status::Waiting, _) => Some(Row::new(scene.width).add("waits for the first session that stops here", PLAIN).line()),
        _ => None,
    }
}

/// A gate's command runs: how long already, and how long it takes about.
fn measuring(scene: &Scene<'_>, gate: &str, since: Millis, limit_ms: u64) -> Line<'static> {
    let elapsed = scene.since(since);
    let usual = scene.history().gates.iter().find(|story| story.last.gate == gate).and_then(GateHistory::usual_ms);
    let row = Row::new(scene.width).add("checks ", PLAIN).add(&opening(gate, 40), BOLD).add(&format!(" for {}", in_words(elapsed)), PLAIN);
    match usual.filter(|usual| *usual >= 1_000) {
        None => row.whole(&format!(", for {} at most", in_words(limit_ms)), DIM).line(),
        Some(usual) => {
            let row = row.whole(&format!(" of about {}", in_words(usual)), PLAIN);
            if row.left() < BAR + 1 {
                return row.line();
            }
            #[expect(clippy::cast_precision_loss, reason = "a bar has some cells")]
            row.gap(1).bar(elapsed as f64, usual as f64, BAR, GOOD).line()
        }
    }
}

fn waiting(scene: &Scene<'_>, waits: &Waits) -> Line<'static> {
    let since = time::parse(&waits.since).map_or(waits.for_ms, |since| scene.since(since));
    let left = waits.until.as_deref().and_then(time::parse).map(|until| match until.saturating_sub(scene.now) {
        left @ 1.. => format!("goes on in {}", in_words(left.unsigned_abs())),
        _ => "goes on at any moment".to_owned(),
    });
    let then = advice::step(scene.view).filter(|_| left.is_none());
    let what = if waits.by == Waiter::Person { waits.words() } else { opening(&waits.what, 80) };
    let all = [Some(format!("waits for {what}")), left, Some(format!("{} so far", in_words(since))), then];
    let styled = all.into_iter().flatten().enumerate().map(|(n, text)| (text, if n == 0 { WARN } else { PLAIN }));
    parts(Row::new(scene.width), styled).line()
}

/// The agent works, or nothing is heard of it.
fn working(scene: &Scene<'_>) -> Line<'static> {
    let history = scene.history();
    let working = history.working.as_ref().filter(|_| scene.view.carrier == Carrier::Runner);
    let since = history.works_since();
    let iteration = format!("iteration {}", scene.view.iteration);
    let iteration = since.map_or(iteration.clone(), |since| format!("{iteration} for {}", in_words(scene.since(since))));
    let doing = scene.followed.doing.as_ref();
    let quiet = doing.and_then(Doing::changed).map(|at| scene.since(at));
    let (state, style) = match quiet {
        _ if scene.view.interrupted.is_some() => ("interrupted".to_owned(), WARN),
        Some(quiet) if quiet >= VERY_QUIET => (format!("quiet for {}", age(quiet)), WARN),
        Some(quiet) if quiet >= QUIET && doing.is_some_and(Doing::is_in_a_call) => (format!("in a tool call for {}", age(quiet)), PLAIN),
        Some(quiet) if quiet >= QUIET => (format!("quiet for {}", age(quiet)), PLAIN),
        Some(_) => ("works".to_owned(), GOOD),
        None => ("works; it cannot be heard from here".to_owned(), PLAIN),
    };
    let who = history.has_many_agents().then(|| agent_names::title(history.agent_now()));
    let attempt = working.filter(|working| working.attempt > 1).map(|working| format!("try {}", working.attempt));
    let item = working.and_then(|working| working.item.as_deref()).map(|item| format!("item {}", opening(item, 40)));
    let rest = [Some(iteration), who, attempt, item].into_iter().flatten().map(|text| (text, PLAIN));
    parts(Row::new(scene.width), std::iter::once((state, style)).chain(rest)).line()
}

/// Tools and words, the newest first: where there is little room, those count.
fn feed(scene: &Scene<'_>) -> Vec<Line<'static>> {
    let Some(doing) = &scene.followed.doing else { return Vec::new() };
    let folder = scene.followed.project.root().display().to_string();
    // A session may have done much before its loop began.
    let is_of_the_loop = |at: Option<Millis>| at.is_none_or(|at| scene.history().started.is_none_or(|started| at >= started));
    let mut denied: Option<(String, String)> = None;
    // The call itself comes right before its denial, which says all of it.
    let mut is_told = move |activity: &&Activity| match &activity.heard {
        Heard::Denied { tool, what, .. } => {
            denied = Some((tool.clone(), what.clone()));
            false
        }
        Heard::Tool { name, what, .. } => denied.take_if(|(tool, of)| tool == name && of == what).is_some(),
        _ => false,
    };
    doing
        .feed()
        .rev()
        .filter(|activity| is_of_the_loop(activity.at))
        .filter(|activity| !is_told(activity))
        .filter_map(|activity| said(activity, &folder).map(|said| (activity.at, said)))
        .take(MOST)
        .map(|(at, (text, style))| {
            let at = at.map(|at| age(scene.since(at))).unwrap_or_default();
            Row::new(scene.width).add(&format!("{at:>6}"), DIM).gap(2).add(&text, style).line()
        })
        .collect()
}

fn said(activity: &Activity, folder: &str) -> Option<(String, Style)> {
    Some(match &activity.heard {
        Heard::Text { text, .. } => (format!("\u{201c}{}\u{201d}", clean(text)), PLAIN),
        Heard::Tool { name, what, of_subagent } => {
            let who = if *of_subagent { "subagent: " } else { "" };
            (format!("{who}{}", run_wording::call(name, &subject_in(what, folder))), BOLD)
        }
        Heard::ToolEnded { failed: true, .. } => ("✗ a tool call failed".to_owned(), WARN),
        Heard::Denied { tool, what, rule } => (run_wording::denied(tool, &subject_in(what, folder), rule), WARN),
        Heard::Line { text } => (clean(text), PLAIN),
        Heard::Thinking => ("thinks".to_owned(), DIM),
        Heard::Quota { rejected: true, .. } => ("the quota is used up".to_owned(), WARN),
        heard => (run_wording::heard(heard)?, WARN),
    })
}
