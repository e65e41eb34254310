//! Points in time as milliseconds since the epoch, their text form, and durations in words.

use std::time::Duration;

use jiff::{Timestamp, Zoned, civil::DateTime, tz::TimeZone};

/// Milliseconds since 1970-01-01T00:00:00Z.
pub type Millis = i64;

/// RFC 3339 in UTC with milliseconds: `2026-11-15T09:30:00.250Z`.
pub fn format(at: Millis) -> String {
    let stamp = Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{stamp:.3}")
}

/// Reads an RFC 3339 time stamp.
pub fn parse(text: &str) -> Option<Millis> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// A moment as people in this zone read it: `2026-11-15 10:30:00 CET`, in UTC `2026-11-15 09:30:00Z`.
pub fn in_zone(at: Millis, zone: &TimeZone) -> String {
    let moment = moment(at, zone);
    match zone_name(at, zone).as_str() {
        "UTC" => moment.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        name => format!("{} {name}", moment.strftime("%Y-%m-%d %H:%M:%S")),
    }
}

/// The same to the minute, without the zone: `2026-11-15 10:30`.
pub fn minute_in_zone(at: Millis, zone: &TimeZone) -> String {
    moment(at, zone).strftime("%Y-%m-%d %H:%M").to_string()
}

/// The same to the second: `2026-11-15 10:30:07`.
pub fn second_in_zone(at: Millis, zone: &TimeZone) -> String {
    moment(at, zone).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The name of the zone's time at that moment: `UTC`, `CET`, `+05:30`.
pub fn zone_name(at: Millis, zone: &TimeZone) -> String {
    let moment = moment(at, zone);
    match moment.strftime("%Z").to_string() {
        name if name.starts_with(|c: char| c.is_ascii_alphabetic()) => name,
        _ => moment.strftime("%:z").to_string(),
    }
}

fn moment(at: Millis, zone: &TimeZone) -> Zoned {
    Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone.clone())
}

/// When that was, for people: so long ago (`90s`, `30m`, `2h`, `3d`), or at a time (`2026-11-15T09:30:00Z`); one without a zone is in theirs
/// (`2026-11-15 10:30`, `2026-11-15` for its beginning).
pub fn since(text: &str, now: Millis, zone: &TimeZone) -> Option<Millis> {
    let text = text.trim();
    let ago = || {
        let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
        let ms = match text.strip_suffix('d') {
            Some(days) => days.trim().parse::<u64>().ok()?.checked_mul(86_400_000)?,
            None => parse_duration(text).ok().filter(|_| has_unit)?,
        };
        now.checked_sub(Millis::try_from(ms).ok()?)
    };
    let local = || text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok().map(|moment| moment.timestamp().as_millisecond());
    ago().or_else(|| parse(text)).or_else(local)
}

/// Milliseconds of a length of time as people write it: `90s`, `10m`, `1h 30m`, `45`.
pub(crate) fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!("\"{}\" is no length of time: write \"90s\", \"10m\" or \"2h\"", text.chars().take(40).collect::<String>().escape_debug())
    };
    let mut rest = text.trim();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit_and_rest = rest[digits..].trim_start();
        let letters = unit_and_rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit_and_rest.len());
        let unit = match &unit_and_rest[..letters] {
            "ms" => 1,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hour" | "hours" => 3_600_000,
            _ => return Err(wrong()),
        };
        total = number.checked_mul(unit).and_then(|ms| total.checked_add(ms)).ok_or_else(wrong)?;
        rest = unit_and_rest[letters..].trim_start();
    }
    if total == 0 { Err(wrong()) } else { Ok(total) }
}

/// A length of time in milliseconds.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Hours as milliseconds, rounded up: a limit of next to nothing is still one. The hours are finite and not negative.
pub(crate) fn of_hours(hours: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
    let ms = (hours * 3_600_000.0).ceil() as u64;
    ms
}

/// Milliseconds as hours, as [`of_hours`] takes them.
pub(crate) fn as_hours(ms: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no loop runs for so long")]
    let hours = ms as f64 / 3_600_000.0;
    hours
}

/// Hours as a person types them: `8`, `1.5`.
pub(crate) fn in_hours(ms: u64) -> String {
    let tenths = ms.div_ceil(360_000);
    if tenths.is_multiple_of(10) { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

/// The two largest units of a duration: `3 h 20 min`, `45 s`.
pub fn in_words(ms: u64) -> String {
    let seconds = Duration::from_millis(ms).as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, m) => pair(m, "min", seconds % 60, "s"),
        (0, h, m) => pair(h, "h", m, "min"),
        (d, h, _) => pair(d, "d", h, "h"),
    }
}

/// The same for what was measured, which may be short: `526 ms`, `1.6 s`, `45 s`.
pub fn measured(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..9_950 => {
            let tenths = (ms + 50) / 100;
            if tenths.is_multiple_of(10) { format!("{} s", tenths / 10) } else { format!("{}.{} s", tenths / 10, tenths % 10) }
        }
        9_950..10_000 => "10 s".to_owned(),
        _ => in_words(ms),
    }
}

/// As settings have it, without any loss: `10m`, `90s`, `1500ms`.
pub(crate) fn in_settings(ms: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let (unit, name) = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit)).unwrap_or((1, "ms"));
    format!("{}{name}", ms / unit)
}

fn pair(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 { format!("{large} {large_unit}") } else { format!("{large} {large_unit} {small} {small_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        assert_eq!(format(1_794_735_000_250), "2026-11-15T09:30:00.250Z");
        assert_eq!(parse("2026-11-15T09:30:00.250Z"), Some(1_794_735_000_250));
        assert_eq!(parse("2026-11-15T10:30:00+01:00"), Some(1_794_735_000_000));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(format(0), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn eyes_3_moments_are_told_as_people_tell_them() {
        let now = 1_794_735_000_000;
        let told = [
            ("90s", Some(now - 90_000)),
            ("30m", Some(now - 1_800_000)),
            ("2h", Some(now - 7_200_000)),
            ("3 d", Some(now - 259_200_000)),
            ("2026-11-15T09:30:00Z", Some(now)),
            ("2026-11-15 09:30:00Z", Some(now)),
            ("2026-11-15T10:30:00+01:00", Some(now)),
            ("2026-11-15T09:30", Some(now)),
            ("2026-11-15", Some(now - 34_200_000)),
        ];
        for (text, at) in told {
            assert_eq!(since(text, now, &TimeZone::UTC), at, "{text}");
        }
        for odd in ["", "2", "h", "-2h", "2x", "99999999999999999999d", "2026-13-01", "yesterday"] {
            assert_eq!(since(odd, now, &TimeZone::UTC), None, "{odd}");
        }
    }

    #[test]
    fn u1_people_read_their_own_time() {
        let now = 1_794_735_000_250;
        assert_eq!(in_zone(now, &TimeZone::UTC), "2026-11-15 09:30:00Z");
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(in_zone(now, &berlin), "2026-11-15 10:30:00 CET");
        assert_eq!(in_zone(now - 10_368_000_000, &berlin), "2026-07-18 11:30:00 CEST");
        assert_eq!(minute_in_zone(now, &berlin), "2026-11-15 10:30");
        let kolkata = TimeZone::fixed(jiff::tz::Offset::constant(5));
        assert_eq!(in_zone(now, &kolkata), "2026-11-15 14:30:00 +05:00");
        // What they read, they may type.
        assert_eq!(since("2026-11-15 10:30", now, &berlin), Some(now - 250));
        assert_eq!(since("2026-11-15", now, &berlin), Some(now - 250 - 37_800_000));
        assert_eq!(since("2026-11-15T09:30:00Z", now, &berlin), Some(now - 250));
    }

    #[test]
    fn u7_what_was_measured_may_be_short() {
        let words = [0, 526, 1_000, 1_640, 9_949, 9_950, 10_400, 125_000].map(measured);
        assert_eq!(words, ["0 ms", "526 ms", "1 s", "1.6 s", "9.9 s", "10 s", "10 s", "2 min 5 s"]);
    }

    #[test]
    fn durations_in_words() {
        let words = [
            (900, "0 s"),
            (59_999, "59 s"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (12_000_000, "3 h 20 min"),
            (90_000_000, "1 d 1 h"),
        ];
        for (ms, expected) in words {
            assert_eq!(in_words(ms), expected);
        }
    }

    #[test]
    fn lengths_of_time_as_people_write_them() {
        for (text, ms) in
            [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1h30m", 5_400_000), (" 45 ", 45_000), ("1 min 5 sec", 65_000)]
        {
            assert_eq!(parse_duration(text), Ok(ms), "{text}");
        }
        for text in ["", "0", "s", "-1", "1.5h", "1d", "99999999999999999999"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
