//! What `go test` prints, as text or with `-json`.
//!
//! Each package ends with a line of its own, after those of its tests. Only with `-v` (or `-json`) are there lines of tests that passed; without, the
//! packages are counted, and the failures are named all the same. A package that fails without a failed test is itself the failure: it does not
//! build, or crashed.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Heard, TestResults};

/// More packages at the same time are not followed.
const MOST_PACKAGES: usize = 10_000;

#[derive(Default)]
pub(super) struct Go {
    total: TestResults,
    is_heard: bool,
    is_confused: bool,
    /// By name; as text there is only one at a time, whose name comes last.
    open: BTreeMap<String, Package>,
}

/// A package whose end has not come yet.
#[derive(Default)]
struct Package {
    is_verbose: bool,
    passed: u64,
    skipped: u64,
    failed: Vec<String>,
    has_crashed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    test: Option<String>,
    output: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Passed,
    Failed,
    /// No tests in it.
    Empty,
}

impl Go {
    pub(super) fn take(&mut self, line: &str) {
        let understood = if line.starts_with("{\"") { self.event(line) } else { self.line(line) };
        self.is_confused |= understood.is_none();
    }

    /// `None`: it cannot be believed.
    fn line(&mut self, line: &str) -> Option<()> {
        let text = line.trim_start_matches(' ');
        if let Some(result) = text.strip_prefix("--- ") {
            self.test(result)
        } else if line.starts_with("=== RUN ") {
            self.package("")?.is_verbose = true;
            Some(())
        } else if line.starts_with("panic: ") || line.starts_with("fatal error: ") {
            if let Some(package) = self.open.get_mut("") {
                package.has_crashed = true;
            }
            Some(())
        } else if let Some((end, name)) = package_line(line) {
            self.is_heard = true;
            let package = self.open.remove("").unwrap_or_default();
            self.end(&package, name, end)
        } else {
            Some(())
        }
    }

    /// `PASS: TestName (0.00s)`.
    fn test(&mut self, result: &str) -> Option<()> {
        let (outcome, rest) =
            result.split_once(": ").filter(|(outcome, _)| matches!(*outcome, "PASS" | "FAIL" | "SKIP")).unwrap_or_default();
        let Some((name, _)) = rest.rsplit_once(" (").filter(|(_, time)| time.ends_with("s)")) else { return Some(()) };
        let name = name.to_owned();
        self.package("")?.count(outcome, name)
    }

    fn event(&mut self, line: &str) -> Option<()> {
        let Ok(event) = serde_json::from_str::<Event>(line) else { return Some(()) };
        let end = match event.action.as_str() {
            "pass" => End::Passed,
            "fail" => End::Failed,
            "skip" => End::Empty,
            "output" if event.output.is_some_and(|text| text.starts_with("panic: ") || text.starts_with("fatal error: ")) => {
                self.package(&event.package)?.has_crashed = true;
                return Some(());
            }
            _ => return Some(()),
        };
        if event.package.is_empty() {
            return Some(());
        }
        if let Some(test) = event.test {
            let package = self.package(&event.package)?;
            package.is_verbose = true;
            let outcome = match end {
                End::Passed => "PASS",
                End::Failed => "FAIL",
                End::Empty => "SKIP",
            };
            return package.count(outcome, test);
        }
        self.is_heard = true;
        let package = self.open.remove(&event.package).unwrap_or_default();
        self.end(&package, &event.package, end)
    }

    fn package(&mut self, name: &str) -> Option<&mut Package> {
        let has_room = self.open.len() < MOST_PACKAGES || self.open.contains_key(name);
        has_room.then(|| self.open.entry(name.to_owned()).or_default())
    }

    fn end(&mut self, package: &Package, name: &str, end: End) -> Option<()> {
        let has_failed = !package.failed.is_empty();
        if has_failed && end != End::Failed {
            return None;
        }
        if package.is_verbose {
            self.total.passed = self.total.passed.checked_add(package.passed)?;
            self.total.ignored = self.total.ignored.checked_add(package.skipped)?;
        } else if end != End::Empty {
            self.total.packages = self.total.packages.checked_add(1)?;
            self.total.outside = self.total.outside.checked_add(package.failed.len() as u64)?;
        }
        package.failed.iter().try_for_each(|test| self.total.fail(&format!("{name}.{test}")))?;
        if end == End::Failed && (!has_failed || package.has_crashed) {
            self.total.outside = self.total.outside.checked_add(1)?;
            self.total.fail(name)?;
        }
        Some(())
    }

    pub(super) fn finish(self) -> Heard {
        if !self.is_heard {
            Heard::Nothing
        } else if self.is_confused || self.open.values().any(|package| package.is_verbose || !package.failed.is_empty()) {
            Heard::Confused
        } else {
            Heard::Results(self.total)
        }
    }
}

impl Package {
    fn count(&mut self, outcome: &str, name: String) -> Option<()> {
        match outcome {
            "PASS" => self.passed += 1,
            "SKIP" => self.skipped += 1,
            _ if self.failed.len() < super::MOST_FAILED => self.failed.push(name),
            _ => return None,
        }
        Some(())
    }
}

/// `ok      package 0.1s` (there are tabs in it, which are blanks here), and what it says of the package.
fn package_line(line: &str) -> Option<(End, &str)> {
    let (word, rest) = ["ok   ", "FAIL ", "?    "].into_iter().find_map(|word| Some((word, line.strip_prefix(word)?)))?;
    let (name, state) = rest.split_once(' ').filter(|(name, _)| !name.is_empty())?;
    let is_time = |text: &str| text.strip_suffix('s').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let is_timed = || state.split(' ').next().is_some_and(|first| first == "(cached)" || is_time(first));
    let end = match word {
        "ok   " if is_timed() => {
            if state.ends_with("[no tests to run]") {
                End::Empty
            } else {
                End::Passed
            }
        }
        "FAIL " if is_time(state) || matches!(state, "[build failed]" | "[setup failed]") => End::Failed,
        "?    " if state == "[no test files]" => End::Empty,
        _ => return None,
    };
    Some((end, name))
}
