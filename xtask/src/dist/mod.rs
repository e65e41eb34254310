//! Everything that people install: archives, packages, checksums, from one build of each target.
//!
//! A target is packed on a machine that can run it, because its manual pages and completions come from the program itself. What a folder
//! has of several machines is then put together: checksums, formula and the npm package that names the platforms.

mod archive;
mod check;
mod contents;
mod deb;
mod formula;
mod licences;
mod npm;
mod sums;
mod targets;

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) use self::targets::Target;
use self::{contents::Contents, targets::TARGETS};
use crate::{Result, Verdict, cargo};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The installer, which is published beside the archives.
const INSTALLER: &str = "install.sh";

/// Build what people install: archives, checksums, packages for Debian, npm and Homebrew, and the installer
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to put the files [default: target/dist]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Build nothing: put together what several machines have built into DIR
    #[arg(long)]
    gather: bool,
    /// Then install every package into a temporary place and run it
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<Verdict> {
    let out = match &args.out {
        Some(out) => std::path::absolute(out)?,
        None => cargo::target_dir()?.join("dist"),
    };
    fs::create_dir_all(&out)?;
    if !args.gather {
        match pack(&out)? {
            Verdict::Good => {}
            other => return Ok(other),
        }
    }
    gather(&out)?;
    if args.check { check::run(&out) } else { Ok(Verdict::Good) }
}

/// Builds and packs the target of this machine.
fn pack(out: &Path) -> Result<Verdict> {
    let Some(target) = Target::here() else {
        println!("skipped: ralph is not published for {} on {}", std::env::consts::OS, std::env::consts::ARCH);
        return Ok(Verdict::Skipped);
    };
    for other in TARGETS.iter().filter(|other| *other != target) {
        println!("not built: {} (packed on a machine that can run it)", other.triple);
    }
    if let Some(why) = cargo::cannot_ship()?.or(cargo::cannot_compile_c()?) {
        println!("skipped: {why}");
        return Ok(Verdict::Skipped);
    }
    let contents = Contents::of(target)?;
    write(out, &format!("{}.tar.gz", target.archive()), &archive::of(target, &contents)?)?;
    write(out, &npm::file_name(&target.npm_package()), &npm::platform(target, &contents)?)?;
    if let Some(architecture) = target.deb {
        let (name, bytes) = deb::of(target, architecture, &contents)?;
        write(out, &name, &bytes)?;
    }
    Ok(Verdict::Good)
}

/// Writes what depends on all targets that are in the folder.
fn gather(out: &Path) -> Result<()> {
    let packed: Vec<_> = TARGETS.iter().filter(|target| out.join(npm::file_name(&target.npm_package())).exists()).collect();
    if packed.is_empty() {
        return Err(format!("{} has no packages of version {VERSION}", out.display()).into());
    }
    write(out, &npm::file_name(npm::MAIN), &npm::main(&packed)?)?;
    write(out, INSTALLER, &contents::document(INSTALLER)?.bytes)?;
    // The formula is made of checksums, and is checked like everything else.
    let _ = fs::remove_file(out.join(formula::FILE));
    write(out, formula::FILE, formula::of(&sums::of(out)?).as_bytes())?;
    write(out, sums::FILE, sums::text(&sums::of(out)?).as_bytes())
}

fn write(out: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    fs::write(out.join(name), bytes)?;
    println!("written  {name} ({} KB)", bytes.len().div_ceil(1024));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u8_the_installer_and_the_table_agree() {
        let script = fs::read_to_string(cargo::root().join(INSTALLER)).unwrap();
        assert!(script.contains(&format!("REPOSITORY={REPOSITORY}\n")), "install.sh names another repository");
        for target in TARGETS.iter().filter(|target| target.os != "windows") {
            let suffix = target.triple.trim_start_matches(target.arch);
            assert!(script.contains(&format!("$cpu{suffix}\"")), "install.sh does not know {}", target.triple);
        }
        // Another package of npm's has the short name: every line that installs or removes names ours.
        for page in [INSTALLER, "README.md", "docs/install.md", "crates/ralph/src/commands/uninstall.rs"] {
            let text = fs::read_to_string(cargo::root().join(page)).unwrap();
            let asks = |line: &&str| ["npm install -g", "npm uninstall -g", "npx @"].iter().any(|words| line.contains(words));
            let lines: Vec<&str> = text.lines().filter(asks).collect();
            assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(npm::MAIN)), "{page}: {lines:?}");
        }
        let workflow = fs::read_to_string(cargo::root().join(".github/workflows/release.yml")).unwrap();
        for target in TARGETS {
            assert!(workflow.contains(&format!("target: {},", target.triple)), "the release does not build {}", target.triple);
        }
    }
}
