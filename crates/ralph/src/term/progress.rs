//! How far something is that takes its time: how long it has run, how long it usually does, how long it may.

use ralph_core::text::time::in_words;

/// Columns of a bar.
const BAR: usize = 10;

/// A run that is not over yet; all in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lasting {
    pub(crate) passed: u64,
    /// `None`: nobody knows.
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
        format!("{}{}", usual.map(|usual| bar(self.passed, usual) + " ").unwrap_or_default(), self.words())
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

fn bar(part: u64, whole: u64) -> String {
    let is_past = |n: &usize| u128::from(part) * BAR as u128 >= u128::from(whole) * *n as u128;
    let full = (1..=BAR).take_while(is_past).count();
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

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
