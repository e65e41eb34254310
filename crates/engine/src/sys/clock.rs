//! Three clocks: the wall clock, one that is never set, and the birth of a process.

use std::time::{SystemTime, UNIX_EPOCH};

use ralph_core::text::time::Millis;

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "the one place that asks for the time")]
pub fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| Millis::try_from(d.as_millis()).unwrap_or(Millis::MAX))
}

/// Milliseconds on a clock that is the same for all processes and is never set.
#[cfg(unix)]
pub fn uptime_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let id = rustix::time::ClockId::Monotonic;
    let t = rustix::time::clock_gettime(id);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000 + u64::try_from(t.tv_nsec).unwrap_or(0) / 1_000_000
}

/// Without such a clock in the standard library, the wall clock has to do.
#[cfg(not(unix))]
pub fn uptime_ms() -> u64 {
    u64::try_from(now()).unwrap_or(0)
}

/// When this process was started, on the clock of [`uptime_ms`].
///
/// Two hooks that the client starts for one stop are born within a few milliseconds of each other, however late the machine lets the second one run.
/// This tells a second report of one stop from the next stop. Where the system does not tell, it is the current time.
pub fn born_ms() -> u64 {
    birth_from_proc("self").unwrap_or_else(uptime_ms)
}

/// When a process was started, where the system tells: the number of a dead one may be reused.
pub fn birth_of(pid: u32) -> Option<u64> {
    birth_from_proc(&pid.to_string())
}

#[cfg(target_os = "linux")]
fn birth_from_proc(process: &str) -> Option<u64> {
    use std::io::Read;
    let mut buffer = [0; 1024];
    let n = std::fs::File::open(format!("/proc/{process}/stat")).ok()?.read(&mut buffer).ok()?;
    let stat = String::from_utf8_lossy(&buffer[..n]);
    // The command's name is in brackets and may hold anything; field 22 of the line is the 20th after it.
    let ticks: u64 = stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()?;
    Some(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}

#[cfg(not(target_os = "linux"))]
fn birth_from_proc(_process: &str) -> Option<u64> {
    None
}
