//! The platforms that ralph is published for: one row each, and every kind of package takes its names from here.

use crate::cargo::Program;

/// A platform, and what each package manager calls it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Rust's name for it; part of the archive's name.
    pub(crate) triple: &'static str,
    /// As `std::env::consts` has them: who can build and run it.
    pub(crate) os: &'static str,
    pub(crate) arch: &'static str,
    /// `process.platform` and `process.arch` of Node.
    pub(crate) npm: (&'static str, &'static str),
    /// Debian's name of the architecture, where there is a package for Debian.
    pub(crate) deb: Option<&'static str>,
    /// The blocks of a Homebrew formula that it belongs into, where Homebrew runs.
    pub(crate) brew: Option<(&'static str, &'static str)>,
}

pub(crate) const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-musl",
        os: "linux",
        arch: "x86_64",
        npm: ("linux", "x64"),
        deb: Some("amd64"),
        brew: Some(("on_linux", "on_intel")),
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        os: "linux",
        arch: "aarch64",
        npm: ("linux", "arm64"),
        deb: Some("arm64"),
        brew: Some(("on_linux", "on_arm")),
    },
    Target {
        triple: "x86_64-apple-darwin",
        os: "macos",
        arch: "x86_64",
        npm: ("darwin", "x64"),
        deb: None,
        brew: Some(("on_macos", "on_intel")),
    },
    Target {
        triple: "aarch64-apple-darwin",
        os: "macos",
        arch: "aarch64",
        npm: ("darwin", "arm64"),
        deb: None,
        brew: Some(("on_macos", "on_arm")),
    },
    Target { triple: "x86_64-pc-windows-msvc", os: "windows", arch: "x86_64", npm: ("win32", "x64"), deb: None, brew: None },
];

impl Target {
    /// The target of this machine, if ralph is published for it.
    pub(crate) fn here() -> Option<&'static Target> {
        TARGETS.iter().find(|target| (target.os, target.arch) == (std::env::consts::OS, std::env::consts::ARCH))
    }

    /// A program's file name.
    pub(crate) fn file_of(&self, program: Program) -> String {
        format!("{}{}", program.name(), if self.os == "windows" { ".exe" } else { "" })
    }

    /// The archive's name without its ending, which is also the folder in it.
    pub(crate) fn archive(&self) -> String {
        format!("ralph-loop-{}-{}", super::VERSION, self.triple)
    }

    /// The npm package with the program for this platform.
    pub(crate) fn npm_package(&self) -> String {
        format!("@ralph-loop/{}-{}", self.npm.0, self.npm.1)
    }
}
