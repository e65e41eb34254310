//! A recorded terminal, read cell by cell: what stands where in the end, in which colour, and when it came.

use std::{num::NonZeroU16, time::Duration};

use vt100::{Cell, Color, Parser, Screen};

use crate::Result;

/// What comes within this time comes at once.
const AT_ONCE: u128 = 20;

/// The last screen of a recording.
pub(crate) struct Recording {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) runs: Vec<Run>,
    /// Each line as plain text.
    pub(crate) lines: Vec<String>,
}

/// Neighbouring cells of one look that came at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) row: u16,
    pub(crate) column: u16,
    pub(crate) text: String,
    pub(crate) look: Look,
    pub(crate) at: Duration,
}

/// How a cell looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) colour: Color,
    pub(crate) paper: Color,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    /// Ink and paper change places.
    pub(crate) reversed: bool,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        Look { colour: cell.fgcolor(), paper: cell.bgcolor(), bold: cell.bold(), dim: cell.dim(), reversed: cell.inverse() }
    }

    /// Even a blank can be seen.
    pub(crate) fn has_paper(self) -> bool {
        self.reversed || self.paper != Color::Default
    }
}

impl Recording {
    /// From the beginning to the last change.
    pub(crate) fn length(&self) -> Duration {
        self.runs.iter().map(|run| run.at).max().unwrap_or_default()
    }
}

/// Plays a recording to its end.
pub(crate) fn read(parts: &[(Duration, Vec<u8>)], rows: u16, columns: u16) -> Result<Recording> {
    let size = |n| NonZeroU16::new(n).ok_or("a terminal has at least one row and one column");
    let mut parser = Parser::new(size(rows)?, size(columns)?, 0);
    let mut times = vec![None; usize::from(rows) * usize::from(columns)];
    for (at, bytes) in parts {
        parser.process(bytes);
        for (place, came) in times.iter_mut().enumerate().filter(|(_, came)| came.is_none()) {
            let (row, column) = (place / usize::from(columns), place % usize::from(columns));
            if glyph(parser.screen(), u16::try_from(row)?, u16::try_from(column)?).is_some() {
                *came = Some(at_once(*at));
            }
        }
    }
    let screen = parser.screen();
    let lines: Vec<String> = screen.contents().lines().map(str::to_owned).collect();
    let used = u16::try_from(lines.len())?;
    let time = |row: u16, column: u16| times[usize::from(row) * usize::from(columns) + usize::from(column)].unwrap_or_default();
    let runs = (0..used).flat_map(|row| runs(screen, row, columns, |column| time(row, column))).collect();
    Ok(Recording { columns, rows: used, runs, lines })
}

fn at_once(at: Duration) -> Duration {
    let step = at.as_millis().next_multiple_of(AT_ONCE);
    Duration::from_millis(u64::try_from(step).unwrap_or(u64::MAX))
}

/// The cell at a place, if there is something to see.
fn glyph(screen: &Screen, row: u16, column: u16) -> Option<&Cell> {
    screen.cell(row, column).filter(|cell| !cell.contents().trim().is_empty() || Look::of(cell).has_paper())
}

/// The runs of one row. A single blank joins words; more of them keep runs apart, so that each begins where it should. So do signs that a font may lack,
/// but for one that is repeated.
fn runs(screen: &Screen, row: u16, columns: u16, time: impl Fn(u16) -> Duration) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = glyph(screen, row, column) else { continue };
        let sign = if cell.contents().is_empty() { " " } else { cell.contents() };
        let (look, at) = (Look::of(cell), time(column));
        let gap = |run: &Run| usize::from(column - run.column).saturating_sub(run.text.chars().count());
        let is_alike = |run: &Run| {
            let is_plain = run.text.is_ascii() && sign.is_ascii();
            if is_plain { gap(run) <= usize::from(!look.has_paper()) } else { gap(run) == 0 && run.text.ends_with(sign) }
        };
        match runs.last_mut().filter(|run| run.look == look && run.at == at && is_alike(run)) {
            Some(run) => {
                run.text.push_str(&" ".repeat(gap(run)));
                run.text.push_str(sign);
            }
            None => runs.push(Run { row, column, text: sign.to_owned(), look, at }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn cells_keep_their_place_their_colour_and_their_time() {
        let parts = [(ms(10), b"a \x1b[31mred\x1b[0m\r\n".to_vec()), (ms(95), "x   y\r\n● z".into())];
        let recording = read(&parts, 5, 20).unwrap();
        let seen: Vec<(u16, u16, &str, u64)> =
            recording.runs.iter().map(|r| (r.row, r.column, r.text.as_str(), u64::try_from(r.at.as_millis()).unwrap())).collect();
        assert_eq!(seen, [(0, 0, "a", 20), (0, 2, "red", 20), (1, 0, "x", 100), (1, 4, "y", 100), (2, 0, "●", 100), (2, 2, "z", 100)]);
        assert_eq!(recording.runs[1].look.colour, Color::Idx(1));
        assert_eq!(recording.lines, ["a red", "x   y", "● z"]);
    }

    #[test]
    fn a_bar_is_one_run_and_a_reversed_blank_is_seen() {
        let recording = read(&[(ms(0), "███░░ \x1b[7m on  \x1b[0m".into())], 2, 20).unwrap();
        let seen: Vec<(u16, &str, bool)> = recording.runs.iter().map(|r| (r.column, r.text.as_str(), r.look.reversed)).collect();
        assert_eq!(seen, [(0, "███", false), (3, "░░", false), (6, " on  ", true)]);
    }
}
