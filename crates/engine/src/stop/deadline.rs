//! The time of one hook call: the client ends the process after a limit, and the answer has to be out before.

use std::time::{Duration, Instant};

use crate::sys::clock;

/// How long this process may take, counted from its birth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Duration);

impl Deadline {
    /// The client ends this process after `limit`.
    pub(crate) fn of_client(limit: Duration) -> Self {
        Deadline(limit)
    }

    /// From now on, commands may run for as long as `work`.
    pub(super) fn of_work(work: Duration) -> Self {
        Deadline(age() + work + (work / 49).max(Duration::from_secs(5)))
    }

    /// The time that the client gave this process.
    pub(super) fn limit(self) -> Duration {
        self.0
    }

    /// When commands have to end.
    pub(super) fn instant(self) -> Instant {
        let now = Instant::now();
        now.checked_add(time_to_work(self.0).saturating_sub(age())).unwrap_or(now)
    }

    /// How long commands may still run.
    pub(crate) fn time_left(self) -> Duration {
        self.instant().saturating_duration_since(Instant::now())
    }

    /// How long until the client ends this process.
    pub(crate) fn until_the_end(self) -> Duration {
        self.0.saturating_sub(age())
    }

    /// How long this process may wait for another one that measures the same stop: long enough for that one to run its commands, end them and answer.
    pub(super) fn patience(self) -> Duration {
        time_to_wait(self.0).saturating_sub(age())
    }
}

/// How long commands may run in a hook that the client ends after `limit`: the answer has to be out before.
pub fn time_to_work(limit: Duration) -> Duration {
    limit.saturating_sub((limit / 50).max(Duration::from_secs(5)))
}

fn time_to_wait(limit: Duration) -> Duration {
    let work = time_to_work(limit);
    work + limit.saturating_sub(work) * 4 / 5
}

/// How long this process has lived.
fn age() -> Duration {
    Duration::from_millis(clock::uptime_ms().saturating_sub(clock::born_ms()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_8_who_waits_for_another_hook_waits_longer_than_that_one_measures() {
        for seconds in [8, 60, 600, 3600] {
            let limit = Duration::from_secs(seconds);
            let wait = time_to_wait(limit);
            assert!(time_to_work(limit) + Duration::from_secs(3) < wait && wait < limit, "{seconds}");
        }
    }
}
