//! Three clocks: the wall clock, one that is never set, and the birth of a process; and the zone that people read the first one in.

use std::{
    path::Path,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use jiff::tz::TimeZone;

use ralph_core::text::time::{self, Millis};

use crate::sys::{env, files};

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "the one place that asks for the time")]
pub fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| Millis::try_from(d.as_millis()).unwrap_or(Millis::MAX))
}

/// The zone of the person: `TZ`, else the system's; UTC where neither can be read.
pub fn zone() -> &'static TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    // Tests expect the same words on every machine.
    let read = || if cfg!(test) { None } else { system_zone().or_else(|| TimeZone::try_system().ok()) };
    ZONE.get_or_init(|| read().unwrap_or(TimeZone::UTC))
}

/// The system's zone, where its rules are in the usual place and `TZ` names no other. To find out the zone's name, too, which is not shown, the whole
/// database of zones would be listed: that takes as long as a gate.
fn system_zone() -> Option<TimeZone> {
    const LARGEST: usize = 1 << 20;
    if env::names_a_zone() {
        return None;
    }
    TimeZone::tzif("local", &files::read(Path::new("/etc/localtime"), LARGEST).ok()?).ok()
}

/// A moment for people: `2026-11-15 10:30:00 CET`.
pub(crate) fn local(at: Millis) -> String {
    time::in_zone(at, zone())
}

/// A moment of the last hours for people: `10:30`; an older one with its day.
pub fn shortly(at: Millis) -> String {
    const HALF_A_DAY: Millis = 12 * 3_600_000;
    let minute = time::minute_in_zone(at, zone());
    match minute.split_once(' ') {
        Some((_, time)) if now() - at < HALF_A_DAY => time.to_owned(),
        _ => minute,
    }
}

/// Milliseconds on a clock that is the same for all processes and is never set.
#[cfg(unix)]
pub(crate) fn uptime_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let id = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let id = libc::CLOCK_MONOTONIC;
    // By the C library, which the standard library has had look for the fast way to a clock: rustix would look for it again, and that takes as long as ten looks at files.
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value of that type, which is written to and not kept.
    let is_known = unsafe { libc::clock_gettime(id, &raw mut at) } == 0;
    if is_known { u64::try_from(at.tv_sec).unwrap_or(0) * 1_000 + u64::try_from(at.tv_nsec).unwrap_or(0) / 1_000_000 } else { 0 }
}

/// Without such a clock in the standard library, the wall clock has to do.
#[cfg(not(unix))]
pub(crate) fn uptime_ms() -> u64 {
    u64::try_from(now()).unwrap_or(0)
}

/// When this process was started, on the clock of [`uptime_ms`].
///
/// Two hooks that the client starts for one stop are born within a few milliseconds of each other, however late the machine lets the second one run.
/// This tells a second report of one stop from the next stop. Where the system does not tell, it is the current time.
pub(crate) fn born_ms() -> u64 {
    birth_from_proc("self").unwrap_or_else(uptime_ms)
}

/// When a process was started, where the system tells: the number of a dead one may be reused.
pub(crate) fn birth_of(pid: u32) -> Option<u64> {
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
