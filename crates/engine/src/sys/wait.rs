//! Waiting for something outside of this process: look, sleep, look again, until there is something to see or the time is over.

use std::{
    thread,
    time::{Duration, Instant},
};

use ralph_core::text::time::Millis;

use super::clock;

/// How often to look for what another process does at any moment.
pub(crate) const SOON: Duration = Duration::from_millis(20);

/// How soon a wish to end is seen while nothing else happens.
pub const INTERRUPT: Duration = Duration::from_millis(200);

/// Looks every `step`, for no longer than `limit`, and once more when that is over. `None`: there was nothing to see.
pub(crate) fn poll<T>(limit: Duration, step: Duration, look: impl FnMut() -> Option<T>) -> Option<T> {
    poll_more_rarely(limit, step, step, look)
}

/// The same, each pause twice as long as the one before, up to `longest`.
pub(crate) fn poll_more_rarely<T>(
    limit: Duration,
    mut step: Duration,
    longest: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return Some(seen);
        }
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return None;
        }
        thread::sleep(step.min(left));
        step = (step * 2).min(longest);
    }
}

/// Waits for a moment by the wall clock, because a machine that was asleep has waited, too. A clock that is set back does not make the wait longer. Looks every
/// `step`; `None`: the moment has come.
pub fn until_moment<T>(moment: Millis, step: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let (begun, longest) = (clock::uptime_ms(), left(moment));
    loop {
        let passed = Duration::from_millis(clock::uptime_ms().saturating_sub(begun));
        let left = left(moment).min(longest.saturating_sub(passed));
        if left.is_zero() {
            return None;
        }
        if let Some(seen) = look() {
            return Some(seen);
        }
        thread::sleep(step.min(left));
    }
}

fn left(moment: Millis) -> Duration {
    Duration::from_millis(u64::try_from(moment - clock::now()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_what_is_seen_or_with_its_time() {
        let begun = Instant::now();
        let mut looks = 0;
        let third = poll(Duration::from_mins(1), Duration::from_millis(1), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(third, Some(3));
        assert_eq!(poll(Duration::from_millis(5), Duration::from_millis(1), || None::<()>), None);
        assert_eq!(poll(Duration::ZERO, SOON, || Some(1)), Some(1), "there is always one look");
        assert_eq!(until_moment(clock::now() + 60_000, SOON, || Some(1)), Some(1));
        assert_eq!(until_moment(clock::now() + 3, SOON, || None::<()>), None);
        assert_eq!(until_moment(clock::now() - 1, SOON, || Some(1)), None, "it has come");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
