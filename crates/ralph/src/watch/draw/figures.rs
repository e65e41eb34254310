//! The iterations in figures: a sparkline for each, the newest iteration at the right.

use ralph_core::{
    history::Iteration,
    money,
    text::{
        iterations,
        time::{in_words, measured},
    },
};

use crate::{
    journal_lines::in_thousands,
    watch::draw::{
        ACCENT, DIM, PLAIN, Part, Scene, headed,
        row::{Row, abreast},
    },
};

const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const NAME: usize = 9;
const MOST: usize = 60;

struct Figure {
    name: &'static str,
    values: Vec<u64>,
    words: String,
}

pub(super) fn part(scene: &Scene<'_>) -> Part {
    let rounds = &scene.history().rounds;
    if scene.is_low || rounds.is_empty() {
        return Part::default();
    }
    let figures: Vec<Figure> = all(rounds).into_iter().filter(|figure| figure.values.iter().any(|value| *value > 0)).collect();
    let count = iterations(rounds.len() as u64);
    let mut lines = headed(scene, "iterations", &count);
    lines.extend(abreast(&figures, scene.width, scene.is_high, drawn));
    Part { lines, least: 2, rank: 7, is_endless: false }
}

fn all(rounds: &[Iteration]) -> Vec<Figure> {
    let newest = &rounds[rounds.len().saturating_sub(MOST)..];
    let of = |value: fn(&Iteration) -> u64| newest.iter().map(value).collect::<Vec<u64>>();
    let last = |value: fn(&Iteration) -> u64| newest.last().map_or(0, value);
    let tokens = |round: &Iteration| round.used.total_tokens();
    let money = |round: &Iteration| round.used.usd();
    vec![
        Figure { name: "tokens", values: of(tokens), words: format!("{} last", in_thousands(last(tokens))) },
        Figure { name: "cost", values: of(money), words: format!("{} last", money::shown(last(money))) },
        Figure { name: "duration", values: of(Iteration::took_ms), words: newest.last().map(duration).unwrap_or_default() },
        Figure { name: "context", values: of(fill), words: format!("{} % last", last(fill)) },
    ]
}

/// `6 s last, 5 s of it gates`
fn duration(last: &Iteration) -> String {
    let gates = Some(last.took.gates_ms).filter(|ms| *ms >= 1_000);
    let gates = gates.map(|ms| format!(", {} of it gates", in_words(ms))).unwrap_or_default();
    format!("{} last{gates}", measured(last.took_ms()))
}

fn fill(round: &Iteration) -> u64 {
    round.used.context.saturating_mul(100).checked_div(round.used.context_window).unwrap_or(0)
}

fn drawn(row: Row, figure: &Figure, width: usize) -> Row {
    let words = &figure.words;
    let cells = width.saturating_sub(NAME + 2 + words.len()).min(MOST);
    let row = row.column(figure.name, NAME, DIM);
    if cells < 4 {
        return row.add(words, PLAIN);
    }
    row.add(&spark(&figure.values, cells), ACCENT).gap(1).add(words, PLAIN)
}

/// The last values as blocks, the largest of them as the highest. Nothing at all is a gap.
fn spark(values: &[u64], cells: usize) -> String {
    let shown = &values[values.len().saturating_sub(cells)..];
    let highest = shown.iter().copied().max().unwrap_or(0).max(1);
    let block = |value: &u64| match *value {
        0 => " ",
        value => {
            let step = u128::from(value) * 7 / u128::from(highest);
            BLOCKS[usize::try_from(step).unwrap_or(7).min(7)]
        }
    };
    shown.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eyes_1_a_sparkline_has_its_highest_at_the_highest_and_gaps_at_nothing() {
        assert_eq!(spark(&[1, 50, 100, 0, 25], 10), "▁▄█ ▂");
        assert_eq!(spark(&[1, 2, 3, 4], 2), "▆█");
        assert_eq!(spark(&[u64::MAX, 1], 4), "█▁");
        assert_eq!(spark(&[], 4), "");
    }
}
