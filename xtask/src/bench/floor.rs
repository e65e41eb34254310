//! The programs that ralph is compared with: static C floors, compiled here, and hooks of bash and jq.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Result, bench::installed, cargo};

/// Compiled floors.
pub(super) struct Floors {
    pub(super) no_loop: PathBuf,
    pub(super) goes_on: PathBuf,
    pub(super) read: PathBuf,
    /// Not a floor: prints the peak memory of what it runs.
    pub(super) peak: PathBuf,
}

impl Floors {
    pub(super) fn compile(into: &Path) -> Result<Self> {
        let compile = |name: &str| -> Result<PathBuf> {
            let source = cargo::root().join("bench/floor").join(name).with_extension("c");
            let linked = into.join(name).with_extension("linked");
            let status = Command::new("cc").args(["-O2", "-Wall", "-static", "-o"]).arg(&linked).arg(&source).status()?;
            if !status.success() {
                return Err(format!("cc could not compile {}", source.display()).into());
            }
            installed(&linked, &into.join(name))
        };
        Ok(Floors { no_loop: compile("no_loop")?, goes_on: compile("loop")?, read: compile("read")?, peak: compile("peak")? })
    }
}

/// A hook of bash and jq.
pub(super) fn baseline(name: &str) -> PathBuf {
    cargo::root().join("bench/baseline").join(name)
}
