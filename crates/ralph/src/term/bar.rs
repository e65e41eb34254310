//! Bars: how much of a limit is used, and how far something is that takes its time. Their characters take one column each and differ without colour.

use ralph_core::text::time::in_words;

use super::ui;

const CELLS: usize = 20;
/// Columns before the bar, without the value: the label, and a gap.
const AROUND: usize = ui::VALUE + 2;

/// The bar beside values of that width; empty where there is no limit, no terminal, or no room.
pub(crate) fn beside(widest: usize, spent: f64, most: f64) -> String {
    let has_room = ui::width().is_some_and(|width| AROUND + widest + CELLS <= width);
    if !has_room || most <= 0.0 {
        return String::new();
    }
    let bar = drawn(filled(spent, most, CELLS), CELLS);
    format!("  {}", if spent >= most * 0.9 { ui::warn(bar) } else { bar })
}

/// How many of `cells` are used. What rounds to a percent shows, and only what is used up is full.
pub(crate) fn filled(spent: f64, most: f64, cells: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and the number of cells"
    )]
    let full = (spent / most * cells as f64).clamp(0.0, cells as f64).round() as usize;
    match full {
        0 if spent >= most * 0.005 => 1,
        full if full == cells && spent < most => cells - 1,
        full => full,
    }
}

/// Columns of the bar before a duration.
const BAR: usize = 10;

/// Something that is not over yet; all in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lasting {
    pub(crate) passed: u64,
    /// `None`: not known.
    pub(crate) usual: Option<u64>,
    pub(crate) limit: u64,
}

impl Lasting {
    /// `12 s of about 40 s (2 min at most)`
    pub(crate) fn words(&self) -> String {
        let (passed, limit) = (in_words(self.passed), in_words(self.limit));
        match self.usual.map(in_seconds) {
            Some(usual) if self.is_longer_than(usual) => {
                format!("longer than usual: {passed}, usually {} ({limit} at most)", in_words(usual))
            }
            Some(usual) => format!("{passed} of about {} ({limit} at most)", in_words(usual)),
            None => format!("{passed} ({limit} at most)"),
        }
    }

    /// The same with a bar before it, where there is something to measure it by.
    pub(crate) fn drawn(&self) -> String {
        let usual = self.usual.map(in_seconds).filter(|usual| !self.is_longer_than(*usual));
        #[expect(clippy::cast_precision_loss, reason = "cells of a bar")]
        let bar = |usual: u64| drawn(filled(self.passed as f64, usual as f64, BAR), BAR) + " ";
        format!("{}{}", usual.map(bar).unwrap_or_default(), self.words())
    }

    /// No two runs take the same time.
    fn is_longer_than(&self, usual: u64) -> bool {
        self.passed > usual.saturating_add(usual / 5 + 1_000)
    }
}

/// `about 40 s`
pub(crate) fn about(usual_ms: u64) -> String {
    format!("about {}", in_words(in_seconds(usual_ms)))
}

/// Whole seconds, and never none.
fn in_seconds(ms: u64) -> u64 {
    (ms.saturating_add(500) / 1_000).max(1) * 1_000
}

fn drawn(full: usize, cells: usize) -> String {
    format!("{}{}", "█".repeat(full), "░".repeat(cells - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eyes_3_a_bar_is_empty_only_below_a_percent_and_full_only_at_the_limit() {
        let cells = |spent| filled(spent, 100.0, 20);
        assert_eq!([0.0, 0.01, 0.6, 20.0, 99.9, 100.0, 500.0].map(cells), [0, 0, 1, 4, 19, 20, 20]);
    }

    #[test]
    fn eyes_5_what_has_passed_is_told_by_what_is_usual() {
        let of = |passed, usual| Lasting { passed, usual, limit: 120_000 };
        assert_eq!(of(12_000, None).drawn(), "12 s (2 min at most)");
        assert_eq!(of(12_900, Some(39_600)).drawn(), "███░░░░░░░ 12 s of about 40 s (2 min at most)");
        assert_eq!(of(44_000, Some(40_000)).drawn(), "██████████ 44 s of about 40 s (2 min at most)");
        assert_eq!(of(50_000, Some(40_000)).drawn(), "longer than usual: 50 s, usually 40 s (2 min at most)");
        assert_eq!(of(300, Some(20)).drawn(), "███░░░░░░░ 0 s of about 1 s (2 min at most)");
        assert_eq!(about(61_400), "about 1 min 1 s");
        assert!(of(u64::MAX, Some(u64::MAX)).drawn().starts_with("██████████ "), "nothing overflows");
    }
}
