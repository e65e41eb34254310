//! How this process was called as the hook: `ralph hook AGENT [--wait] [--timeout SECONDS] [--via PLACE]`.

use std::{ffi::OsString, time::Duration};

use ralph_core::loops::fnv1a;

use crate::hosts::{claude, client};

/// How a hook is told that it is the one that waits.
pub const WAIT: &str = "--wait";

/// How a hook that measures is told its own limit: the client does not say, and kills it without a word.
pub(super) const TIMEOUT: &str = "--timeout";

/// How a hook is told where it is registered. The client gives a stop no id and runs every registration, so only this tells a second report of one stop
/// from the next stop.
pub(super) const VIA: &str = "--via";

/// Its value: the scope of a settings file, or this.
pub const PLUGIN: &str = "plugin";
pub(super) const PLACES: [&str; 4] = ["user", "project", "local", PLUGIN];

/// In seconds: enough for a judge that measures nothing. Also what a hook that was not told its limit must make do with.
pub const SHORT: u64 = 60;

/// More than a day is no limit that a hook ever sees.
const MAX_LIMIT: f64 = 86_400.0;

/// The whole command line, the program first.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    line: Vec<OsString>,
}

impl Invocation {
    pub fn of(line: Vec<OsString>) -> Self {
        Invocation { line }
    }

    /// The agent that this hook is registered with: `ralph hook NAME`. Old clients drop the arguments, and those are Claude Code's.
    pub(super) fn host(&self) -> &str {
        let hook = self.line.iter().position(|arg| arg == "hook");
        let name = hook.and_then(|at| self.line.get(at + 1)?.to_str()).filter(|name| !name.starts_with('-'));
        name.unwrap_or(claude::HOST.name)
    }

    /// How long the client lets it run. A value that makes no sense is none: the shortest limit that ralph registers is the safe guess.
    pub fn limit(&self) -> Duration {
        let seconds = self.value(TIMEOUT).and_then(|text| text.trim().parse::<f64>().ok()).filter(|seconds| *seconds > 0.0);
        let usual = Duration::from_secs(SHORT);
        seconds.map_or(usual, |seconds| Duration::try_from_secs_f64(seconds.min(MAX_LIMIT)).unwrap_or(usual))
    }

    /// Whether it is the hook that waits.
    pub fn waits(&self) -> bool {
        self.line.iter().any(|arg| arg == WAIT)
    }

    /// A name for the registration that this is a call of, the same at every stop: where it says that it is, and a hash of its command line and of the
    /// plugin that it came with. By these alone two registrations of an older version differ, and two plugins, and two entries of one file.
    pub fn via(&self) -> String {
        let plugin = client::plugin_root();
        let unnamed = if plugin.is_some() { PLUGIN } else { "other" };
        let place = self.value(VIA).filter(|place| PLACES.contains(place)).unwrap_or(unnamed);
        let parts = self.line.iter().chain(&plugin).map(|part| part.as_encoded_bytes());
        format!("{place}-{:016x}", fnv1a(&parts.collect::<Vec<_>>().join(&0)))
    }

    /// The value of an option, after it or joined to it.
    fn value(&self, option: &str) -> Option<&str> {
        let apart = self.line.iter().position(|arg| arg == option).and_then(|at| self.line.get(at + 1)?.to_str());
        apart.or_else(|| self.line.iter().find_map(|arg| arg.to_str()?.strip_prefix(option)?.strip_prefix('=')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_3_a_limit_in_any_form_is_a_limit() {
        let limit = |args: &[&str]| Invocation::of(args.iter().map(OsString::from).collect()).limit().as_secs_f64();
        for (timeout, seconds) in [
            ("3600", 3_600.0),
            (" 90 ", 90.0),
            ("1.5", 1.5),
            ("0", 60.0),
            ("-3", 60.0),
            ("", 60.0),
            ("soon", 60.0),
            ("NaN", 60.0),
            ("inf", 86_400.0),
            ("1e300", 86_400.0),
        ] {
            for args in [&["claude", "--timeout", timeout][..], &["claude", &format!("--timeout={timeout}")]] {
                assert!((limit(args) - seconds).abs() < 1e-6, "{args:?}");
            }
        }
        for args in [&[][..], &["claude"], &["claude", "--timeout"], &["--timeouts=8"]] {
            assert!((limit(args) - 60.0).abs() < 1e-6, "{args:?}");
        }
    }

    #[test]
    fn t13_a_registration_has_a_name_of_its_own() {
        let via = |line: &[&str]| Invocation::of(line.iter().map(OsString::from).collect()).via();
        let named = |place: &str| via(&["ralph", "hook", "claude", "--timeout", "3600", "--via", place]);
        let names: Vec<String> = ["user", "project", "local", "plugin", "a \u{1b}[2J place"].map(named).to_vec();
        for (name, place) in names.iter().zip(["user-", "project-", "local-", "plugin-", "other-"]) {
            assert!(name.starts_with(place) && name.len() == place.len() + 16, "{name}");
        }
        assert_eq!(names[0], named("user"), "the same at every stop");
        // Of older versions, and of one file that has two: the client runs one command line once, so both have one of their own.
        let old = ["ralph hook claude --timeout 3600", "/opt/ralph hook claude --timeout 3600", "ralph hook claude"];
        let mut all: Vec<String> = old.map(|line| via(&line.split(' ').collect::<Vec<_>>())).into_iter().chain(names).collect();
        all.push(via(&["/opt/ralph", "hook", "claude", "--timeout", "3600", "--via=user"]));
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
