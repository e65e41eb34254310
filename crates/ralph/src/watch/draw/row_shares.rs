//! Who gets how many rows: the important first what they cannot do without, then all of them what they would like.

use ratatui::text::Line;

/// A part of the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    pub(super) lines: Vec<Line<'static>>,
    /// Fewer rows than this say nothing.
    pub(super) least: usize,
    /// The lower, the longer it stays.
    pub(super) rank: u8,
    /// It has always more to tell, and takes what others leave.
    pub(super) is_endless: bool,
}

/// The rows that each part gets, in the parts' order.
pub(super) fn shares(parts: &[Part], height: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| parts[*at].rank);
    let mut rows = vec![0; parts.len()];
    let mut left = height;
    for at in &order {
        let least = parts[*at].least.min(parts[*at].lines.len());
        if least <= left {
            rows[*at] = least;
            left -= least;
        }
    }
    // One that has no room for its least has none at all.
    order.retain(|at| rows[*at] > 0 || parts[*at].least == 0);
    for at in order.iter().filter(|at| !parts[**at].is_endless) {
        // No part takes all that is left from the others.
        let more = (parts[*at].lines.len() - rows[*at]).min(left).min((height / 2).saturating_sub(rows[*at]));
        rows[*at] += more;
        left -= more;
    }
    // In turn, so that those that have always more to tell share it.
    while left > 0 {
        let wanting: Vec<usize> = order.iter().copied().filter(|at| rows[*at] < parts[*at].lines.len()).take(left).collect();
        if wanting.is_empty() {
            break;
        }
        left -= wanting.len();
        for at in wanting {
            rows[at] += 1;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(lines: usize, least: usize, rank: u8) -> Part {
        Part { lines: vec![Line::default(); lines], least, rank, is_endless: lines > 9 }
    }

    #[test]
    fn eyes_1_the_important_stays_where_there_is_little_room() {
        let parts = [part(5, 2, 1), part(20, 3, 2), part(4, 1, 0)];
        assert_eq!(shares(&parts, 1), [0, 0, 1]);
        assert_eq!(shares(&parts, 4), [2, 0, 2]);
        assert_eq!(shares(&parts, 8), [2, 3, 3]);
        assert_eq!(shares(&parts, 14), [5, 5, 4]);
        assert_eq!(shares(&[part(30, 3, 1), part(30, 3, 2), part(9, 1, 3)], 20), [6, 5, 9], "the endless share");
        assert_eq!(shares(&parts, 100), [5, 20, 4]);
        assert_eq!(shares(&[], 10), Vec::<usize>::new());
    }
}
