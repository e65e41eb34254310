//! A test that cannot run here says so where it can be seen, instead of passing silently.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::project::PATH;

/// Why a test was left out, in one line.
#[derive(Debug, Clone)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Skip {
    /// Prints `SKIPPED <test>: <reason>`; a panic instead where the environment says that clients are required.
    pub fn report(&self) {
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        assert!(
            std::env::var_os("RALPH_REQUIRE_CLIENT").is_none_or(|value| value != "1"),
            "RALPH_REQUIRE_CLIENT is set, but {test} cannot run: {self}"
        );
        self.tell();
    }

    /// The same for what no environment requires: a shell or a tool that a machine may do without.
    pub fn tell(&self) {
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        // The harness may have begun a line already.
        say(&format!("\nSKIPPED {test}: {self}\n"));
    }

    /// Where a program of the system is; a skip that says so where it is missing.
    pub fn unless_installed(program: &str) -> Result<PathBuf, Self> {
        let found = PATH.split(':').map(|folder| Path::new(folder).join(program)).find(|path| path.exists());
        found.ok_or_else(|| Skip(format!("{program} is not installed")))
    }
}

/// Writes past the test harness: it captures what goes through `eprintln!`, but not what goes to the descriptor itself.
fn say(line: &str) {
    // SAFETY: the pointer and the length describe a live string; a short write costs only part of a message.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Unwraps a `Result<T, Skip>`, or reports the skip and returns from the test.
#[macro_export]
macro_rules! or_skip {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(skip) => return $crate::Skip::report(&skip),
        }
    };
}
