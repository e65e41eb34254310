//! Installs every package in a temporary place and runs it, as the people do who get it.

mod archive;
mod deb;
mod installer;
mod npm;
mod root;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use super::{Target, VERSION};
use crate::{Result, Verdict};

/// How one check came out.
pub(super) enum Outcome {
    Holds,
    /// A program that it needs is not here.
    Skipped(&'static str),
}

/// Checks, and what each proves.
type Check = (&'static str, fn(&Package) -> Result<Outcome>);

const CHECKS: &[Check] = &[
    ("u8_the_archive_is_complete_and_runs", archive::complete),
    ("u8_the_archive_is_the_same_when_packed_again", archive::reproducible),
    ("u8_the_program_needs_nothing_but_the_kernel", root::program),
    ("u8_the_hook_and_the_demo_run_in_an_empty_root", root::hook_and_demo),
    ("u8_the_checksums_are_right", archive::checksums),
    ("u8_the_debian_package_installs_runs_and_goes", deb::installs),
    ("u8_the_debian_package_has_no_errors_for_lintian", deb::lintian),
    ("u8_npm_installs_the_program_as_the_command", npm::global),
    ("u8_npx_runs_it", npm::npx),
    ("u8_npm_without_scripts_passes_codes_input_and_signals_on", npm::shim),
    ("u8_npm_init_registers_the_program_not_the_script", npm::init),
    ("u8_npm_says_what_is_missing", npm::missing),
    ("u8_the_formula_names_the_archive_and_its_checksum", archive::formula),
    ("u8_the_installer_installs", installer::installs),
    ("u8_the_installer_downloads_with_curl_and_with_wget", installer::downloads),
    ("u8_the_installer_refuses_a_wrong_checksum", installer::wrong_checksum),
    ("u8_the_installer_refuses_without_a_checksum", installer::no_checksum),
    ("u8_the_installer_says_where_it_cannot_write", installer::read_only),
];

/// The files to check.
pub(super) struct Package {
    pub(super) out: PathBuf,
    pub(super) target: &'static Target,
}

pub(super) fn run(out: &Path) -> Result<Verdict> {
    let target = Target::here().ok_or("ralph is not published for this machine")?;
    let package = Package { out: out.to_owned(), target };
    let mut good = true;
    for (name, check) in CHECKS {
        match check(&package) {
            Ok(Outcome::Holds) => println!("ok       {name}"),
            Ok(Outcome::Skipped(why)) => println!("SKIPPED  {name}: {why}"),
            Err(e) => {
                good = false;
                println!("FAILED   {name}: {e}");
            }
        }
    }
    Ok(Verdict::when(good))
}

impl Package {
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    pub(super) fn archive(&self) -> PathBuf {
        self.file(&format!("{}.tar.gz", self.target.archive()))
    }

    /// Unpacks the archive, and says where its files are.
    pub(super) fn unpack(&self, into: &Path) -> Result<PathBuf> {
        succeeds(Command::new("tar").arg("-xzf").arg(self.archive()).arg("-C").arg(into))?;
        Ok(into.join(self.target.archive()))
    }
}

/// Whether a program is on the path.
pub(super) fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// A program in a clean environment with its own home.
pub(super) fn sealed(program: impl AsRef<Path>, home: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8").current_dir(home).stdin(Stdio::null());
    command
}

/// Runs a program that has to succeed, and returns what it printed.
pub(super) fn succeeds(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(super::contents::output(command)?)?)
}

/// Runs a program that has to fail, and returns what it said.
pub(super) fn fails(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } = command.output()?;
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    if status.success() { Err(format!("{command:?} should have failed: {said}").into()) } else { Ok(said) }
}

/// Runs `ralph --version` and, through it, `ralph fleet --version`: both have to be of this build.
pub(super) fn is_this_version(ralph: impl Fn() -> Command) -> Result<()> {
    let said = succeeds(ralph().arg("--version"))?;
    ensure(said.trim() == format!("ralph {VERSION}"), || format!("--version says {said:?}"))?;
    let said = succeeds(ralph().args(["fleet", "--version"]))?;
    ensure(said.trim() == format!("ralph fleet {VERSION}"), || format!("fleet --version says {said:?}"))
}

pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}
