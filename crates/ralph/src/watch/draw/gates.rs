//! The gates: each with its state, how long it took, when, and how it went before.

use ralph_core::{
    gate::Verdict,
    history::GateHistory,
    text::{clean, count, time::measured},
};
use ratatui::{style::Style, text::Line};

use crate::{
    term::width::columns,
    watch::draw::{
        BAD, BOLD, DIM, GOOD, PLAIN, Part, Scene, WARN, age, headed,
        row::{Row, flowing},
    },
};

/// So much of a name tells which gate it is.
const WIDEST_NAME: usize = 24;
/// The columns of how long it takes and when it was measured.
const TOOK: usize = 11;
const AGO: usize = 12;
/// More measurements than this say no more.
const MARKS: usize = 24;

/// A gate, from what the loop declares and from what its journal tells.
struct Gate<'a> {
    name: String,
    verdict: Option<Verdict>,
    what: String,
    story: Option<&'a GateHistory>,
}

pub(super) fn part(scene: &Scene<'_>) -> Part {
    let mut gates = all(scene);
    // What needs work first.
    gates.sort_by_key(|gate| match gate.verdict {
        Some(Verdict::Fail) => 0,
        Some(Verdict::Unknown) => 1,
        Some(Verdict::Wait) => 2,
        None => 3,
        Some(Verdict::Pass) => 4,
    });
    let refused = refused(scene);
    if gates.is_empty() && refused.is_none() {
        return Part::default();
    }
    if scene.is_low {
        return Part { lines: in_short(scene, &gates).into_iter().chain(refused).collect(), least: 1, rank: 5, is_endless: false };
    }
    let held = gates.iter().filter(|gate| gate.verdict == Some(Verdict::Pass)).count();
    let count = if gates.is_empty() { String::new() } else { format!("{held} of {} hold", gates.len()) };
    let widest = gates.iter().map(|gate| columns(&gate.name)).max().unwrap_or(0).min(WIDEST_NAME).min(scene.width / 4);
    let mut lines = headed(scene, "gates", &count);
    lines.extend(gates.iter().flat_map(|gate| rows(scene, gate, widest)));
    lines.extend(refused);
    Part { lines, least: 3, rank: 4, is_endless: false }
}

/// Their marks and names. No dots between them: one is the mark of a gate that was not measured.
fn in_short(scene: &Scene<'_>, gates: &[Gate<'_>]) -> Vec<Line<'static>> {
    let named = gates.iter().map(|gate| (format!("{} {}", mark(gate.verdict).0, gate.name), mark(gate.verdict).1));
    flowing(scene.width, "  ", named)
}

/// The declared ones, and of an ended loop those that were measured.
fn all<'a>(scene: &'a Scene<'_>) -> Vec<Gate<'a>> {
    let stories = &scene.history().gates;
    let of = |name: &str| stories.iter().find(|story| story.last.gate == name);
    let mut gates: Vec<Gate<'a>> = scene
        .view
        .gates
        .iter()
        .map(|gate| Gate { name: clean(&gate.name), verdict: gate.verdict, what: clean(&gate.what), story: of(&gate.name) })
        .collect();
    if scene.view.file.is_none() || gates.is_empty() {
        let further = stories.iter().filter(|story| !story.gone);
        gates = further
            .map(|story| Gate {
                name: clean(&story.last.gate),
                verdict: Some(story.last.verdict),
                what: clean(&story.last.what),
                story: Some(story),
            })
            .collect();
    }
    gates
}

pub(super) fn mark(verdict: Option<Verdict>) -> (&'static str, Style) {
    let style = match verdict {
        Some(Verdict::Pass) => GOOD,
        Some(Verdict::Fail) => BAD,
        Some(Verdict::Wait | Verdict::Unknown) => WARN,
        None => DIM,
    };
    (verdict.map_or("·", Verdict::mark), style)
}

/// A row; where there are plenty, two for what does not fit on one.
fn rows(scene: &Scene<'_>, gate: &Gate<'_>, widest: usize) -> Vec<Line<'static>> {
    let (sign, style) = mark(gate.verdict);
    let begun = || Row::new(scene.width).add(sign, style).gap(1);
    let named = begun().column(&gate.name, widest, BOLD).gap(2);
    let Some(story) = gate.story else { return vec![named.add(&gate.what, DIM).line()] };
    let what = match story.last.tally {
        Some(tally) => format!("{} of {} done", tally.done, tally.total),
        None => gate.what.clone(),
    };
    let took = story.usual_ms().map(measured).unwrap_or_default();
    let timed = |row: Row| row.column(&took, TOOK, PLAIN).column(&format!("{} ago", age(scene.since(story.at))), AGO, DIM);
    let row = timed(named);
    let room = (row.left() / 3).min(MARKS);
    let fits = columns(&gate.name) <= widest && story.marks.len() <= room && story.marks.len() + 2 + columns(&what) <= row.left();
    if fits || !scene.is_high {
        return vec![history(row, story, room).add(&what, PLAIN).line()];
    }
    let name = widest.max(columns(&gate.name).min(scene.width.saturating_sub(4 + TOOK + AGO)));
    let below = Row::new(scene.width).gap(2);
    let below = history(below, story, (scene.width / 2).min(MARKS)).add(&what, PLAIN);
    vec![timed(begun().column(&gate.name, name, BOLD).gap(2)).line(), below.line()]
}

/// The last measurements, the newest at the right, with a mark where there were more.
fn history(row: Row, story: &GateHistory, most: usize) -> Row {
    let is_cut = story.marks.len() > most;
    let shown = story.marks.len().min(most).saturating_sub(usize::from(is_cut));
    let marks = story.marks[story.marks.len() - shown..].iter().map(|one| mark(Some(one.verdict)));
    let row = if is_cut && most > 0 { row.add("…", DIM) } else { row };
    let row = marks.fold(row, |row, (sign, style)| row.add(sign, style));
    row.gap(2)
}

/// How often the agent said that it was done and was not believed, and why last.
fn refused(scene: &Scene<'_>) -> Option<Line<'static>> {
    let refused = &scene.history().refused;
    let last = refused.kept.last()?;
    let claims = count(refused.count, "claim refused", "claims refused");
    let row = Row::new(scene.width).add("✗ ", BAD).add(&claims, BOLD);
    let why = format!(", last at stop {} ({}): {}", last.stop, scene.ago(last.at), clean(&last.why));
    Some(row.add(&why, PLAIN).line())
}
