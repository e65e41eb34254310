//! All loops: as tabs, as a list to choose from, or that there is none.

use ralph_core::{
    gate::Verdict,
    text::{
        clean, of_limit,
        time::{self, Millis, in_words},
    },
};
use ratatui::{style::Modifier, text::Line};

use crate::{
    ui,
    watch::{
        draw::{BOLD, DIM, PLAIN, REVERSED, age, gates, heading, row::Row, title},
        loops::{Entry, Loops},
    },
};

/// `1 main ●  2 docs ‖`
pub(super) fn tabs(loops: &Loops, width: usize) -> Line<'static> {
    let here = loops.position();
    // The chosen one is always among those that are shown.
    let first = here.saturating_sub(width / 16);
    let row = if first > 0 { Row::new(width).add("… ", DIM) } else { Row::new(width) };
    loops
        .entries
        .iter()
        .enumerate()
        .skip(first)
        .fold(row, |row, (n, entry)| {
            let (mark, style) = title::mark(entry.view.status);
            let name = format!(" {} {} ", n + 1, crate::term::width::cut(&clean(&loops.label(entry)), 26));
            let chosen = if n == here { BOLD.patch(REVERSED) } else { DIM };
            row.whole(&name, chosen).whole(mark, style).whole("  ", PLAIN)
        })
        .line()
}

pub(super) fn page(loops: &Loops, width: usize, height: usize, now: Millis) -> Vec<Line<'static>> {
    let here = loops.position();
    let count = ralph_core::text::count(loops.entries.len() as u64, "loop", "loops");
    let mut lines = vec![heading("loops", &count, width)];
    let mut chosen = 0;
    let mut folder = None;
    for (n, entry) in loops.entries.iter().enumerate() {
        if folder != Some(&entry.view.project) {
            folder = Some(&entry.view.project);
            lines.push(Row::new(width).add(&ui::path_from_home(&entry.view.project), DIM).line());
        }
        if n == here {
            chosen = lines.len();
        }
        lines.push(one(entry, n == here, width, now));
    }
    // The chosen one stays in sight.
    let from = (chosen + 2).saturating_sub(height);
    lines.drain(1..(1 + from).min(lines.len()));
    lines
}

fn one(entry: &Entry, is_chosen: bool, width: usize, now: Millis) -> Line<'static> {
    let view = &entry.view;
    let (mark, style) = title::mark(view.status);
    let named = if is_chosen { BOLD.add_modifier(Modifier::REVERSED) } else { BOLD };
    let name_room = (width / 3).clamp(8, 32);
    let row = Row::new(width).add(if is_chosen { "▸ " } else { "  " }, BOLD).add(mark, style).gap(1);
    let row = row.column(&clean(&view.id), name_room, named).gap(2).column(view.status.words(), 12, style).gap(1);
    let row = row.whole(&format!("{:<10}", of_limit(view.iteration, view.max_iterations)), PLAIN);
    let row = row.whole(&format!("{:<13}", in_words(view.spent_ms)), PLAIN);
    let last = view.last_event_at.as_deref().and_then(time::parse).map(|at| u64::try_from(now.saturating_sub(at)).unwrap_or(0));
    let row = row.whole(&format!("{:<12}", last.map(|ms| format!("{} ago", age(ms))).unwrap_or_default()), DIM);
    let open = view.gates.iter().filter(|gate| gate.verdict != Some(Verdict::Pass)).take(6);
    open.fold(row, |row, gate| {
        let (mark, style) = gates::mark(gate.verdict);
        row.whole(&format!("{mark} {} ", clean(&gate.name)), style)
    })
    .line()
}

pub(super) fn nothing(loops: &Loops, width: usize) -> Vec<Line<'static>> {
    let place = if loops.all { "in any of your projects".to_owned() } else { format!("in {}", ui::path_from_home(loops.here.root())) };
    let say = |text: &str, style| Row::new(width).add(text, style).line();
    vec![
        say(&format!("No loop {place} yet."), BOLD),
        say("This screen shows one as soon as it starts:", PLAIN),
        say("  ralph run \"…\"     in fresh sessions", PLAIN),
        say("  ralph start \"…\"   in the agent's own session", PLAIN),
    ]
}
