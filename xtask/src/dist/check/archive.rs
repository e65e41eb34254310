//! The archive, its checksums and the formula that names them.

use std::{fs, process::Command};

use super::{Outcome, Package, ensure, has, is_this_version, sealed, succeeds};
use crate::{
    Result,
    cargo::Program,
    dist::{archive, contents::Contents, formula, sums},
};

/// Every command has a page, every shell its completions, and the program runs.
pub(super) fn complete(package: &Package) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let unpacked = package.unpack(folder.path())?;
    let ralph = unpacked.join(package.target.file_of(Program::Ralph));
    is_this_version(|| sealed(&ralph, folder.path()))?;
    for file in [
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "THIRD-PARTY-LICENSES.txt",
        "man/ralph.1",
        "man/ralph-start.1",
        "man/ralph-fleet.1",
        "man/ralph-fleet-run.1",
    ] {
        ensure(unpacked.join(file).is_file(), || format!("{file} is missing"))?;
    }
    let shells: [(&str, &str, &[&str]); 3] =
        [("bash", "ralph.bash", &["-n"]), ("zsh", "_ralph", &["-n"]), ("fish", "ralph.fish", &["--no-execute"])];
    for (shell, script, options) in shells {
        let script = unpacked.join("completions").join(script);
        ensure(script.metadata()?.len() > 1000, || format!("{} is too short", script.display()))?;
        ensure(fs::read_to_string(&script)?.contains("lease"), || format!("{} does not know the fleet", script.display()))?;
        if has(shell) {
            succeeds(Command::new(shell).args(options).arg(&script))?;
        }
    }
    let listing = succeeds(Command::new("tar").arg("-tvzf").arg(package.archive()))?;
    ensure(listing.lines().all(|line| line.contains("root/root")), || format!("somebody owns files: {listing}"))?;
    Ok(Outcome::Holds)
}

/// Packs the same program again and compares.
pub(super) fn reproducible(package: &Package) -> Result<Outcome> {
    let contents = Contents::of(package.target)?;
    let again = archive::of(package.target, &contents)?;
    ensure(fs::read(package.archive())? == again, || "the archive differs".to_owned())?;
    Ok(Outcome::Holds)
}

pub(super) fn checksums(package: &Package) -> Result<Outcome> {
    if !has("sha256sum") {
        return Ok(Outcome::Skipped("sha256sum is not installed"));
    }
    succeeds(Command::new("sha256sum").args(["--check", "--strict", sums::FILE]).current_dir(&package.out))?;
    Ok(Outcome::Holds)
}

pub(super) fn formula(package: &Package) -> Result<Outcome> {
    let text = fs::read_to_string(package.file(formula::FILE))?;
    let all = sums::of(&package.out)?;
    let name = format!("{}.tar.gz", package.target.archive());
    let sum = all.iter().find(|sum| sum.file == name).ok_or("the archive is missing")?;
    ensure(text.contains(&format!("/{name}\"\n")) && text.contains(&sum.hex), || format!("the formula does not name {name}:\n{text}"))?;
    if has("ruby") {
        succeeds(Command::new("ruby").arg("-c").arg(package.file(formula::FILE)))?;
    }
    Ok(Outcome::Holds)
}
