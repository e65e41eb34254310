//! How much of a limit is used, as a bar of characters that take one column each and can be told apart without colour.

use crate::ui;

const CELLS: usize = 20;
/// What stands before the bar, but the value: the label, and a gap.
const AROUND: usize = ui::VALUE + 2;

/// The bar beside values of that width; empty where there is no limit, no terminal, or no room.
pub(crate) fn beside(widest: usize, spent: f64, most: f64) -> String {
    let has_room = ui::width().is_some_and(|width| AROUND + widest + CELLS <= width);
    if !has_room || most <= 0.0 {
        return String::new();
    }
    let full = filled(spent, most, CELLS);
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(CELLS - full));
    format!("  {}", if spent >= most * 0.9 { ui::warn(bar) } else { bar })
}

/// How many of `cells` are used. What has begun shows, and only what is used up is full.
pub(crate) fn filled(spent: f64, most: f64, cells: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and the number of cells"
    )]
    let full = (spent / most * cells as f64).clamp(0.0, cells as f64).round() as usize;
    match full {
        0 if spent > 0.0 => 1,
        full if full == cells && spent < most => cells - 1,
        full => full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eyes_3_a_bar_is_empty_only_at_nothing_and_full_only_at_the_limit() {
        let cells = |spent| filled(spent, 100.0, 20);
        assert_eq!([0.0, 0.1, 20.0, 99.9, 100.0, 500.0].map(cells), [0, 1, 4, 19, 20, 20]);
    }
}
