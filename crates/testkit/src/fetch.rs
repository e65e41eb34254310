//! Fetches programs that tests need into the cache, without root: once, whoever else fetches at the same time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::client::{cache_dir, find_on_path};
use crate::process::run_bounded;
use crate::skip::Skip;

/// The program at `binary` below the cache's folder `name`, which `fill` makes in the folder `root` of the one that it is given.
pub(crate) fn cached(name: &str, binary: &str, fill: impl FnOnce(&Path) -> Result<(), Skip>) -> Result<PathBuf, Skip> {
    let cache = cache_dir();
    let place = cache.join(name);
    if place.join(binary).exists() {
        return Ok(place.join(binary));
    }
    let io = |error: std::io::Error| Skip(format!("the cache {} is not usable: {error}", cache.display()));
    fs::create_dir_all(&cache).map_err(io)?;
    let lock = File::create(cache.join(format!("{name}.lock"))).map_err(io)?;
    lock.lock().map_err(io)?;
    // Another process may have finished it while this one waited for the lock.
    if place.join(binary).exists() {
        return Ok(place.join(binary));
    }
    let staging = tempfile::Builder::new().prefix("unpacking-").tempdir_in(&cache).map_err(io)?;
    fill(staging.path())?;
    if !staging.path().join("root").join(binary).exists() {
        return Err(Skip(format!("the package of {name} has no {binary}")));
    }
    let _ = fs::remove_dir_all(&place);
    fs::rename(staging.path().join("root"), &place).map_err(io)?;
    Ok(place.join(binary))
}

/// Unpacks a package of the distribution to `dir/root`.
pub(crate) fn debian(package: &str, dir: &Path) -> Result<(), Skip> {
    tool(package, dir, "apt-get", &["download", package])?;
    let mut files = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let file = files.find(|path| path.extension().is_some_and(|ext| ext == "deb"));
    let file = file.ok_or_else(|| Skip(format!("apt-get left no package of {package}")))?;
    tool(package, dir, "dpkg-deb", &["-x", &file.to_string_lossy(), "root"])
}

/// Installs a package of Python to `dir/root`.
pub(crate) fn pip(package: &str, dir: &Path) -> Result<(), Skip> {
    tool(
        package,
        dir,
        "python3",
        &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", "root", package],
    )
}

/// Installs a package of Python with all that it needs to `dir/root/lib`, and makes the program `dir/root/<program>` of one of its modules.
pub(crate) fn python_program(package: &str, module: &str, program: &str, dir: &Path) -> Result<(), Skip> {
    tool(package, dir, "python3", &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", "root/lib", package])?;
    // By the Python that has installed it, wherever the folder is moved.
    let script = "import os, sys; name, module = sys.argv[1:]; open(name, 'w').write(f'#!/bin/sh\\n\
                  PYTHONPATH=\"$(dirname \"$0\")/lib\" exec {sys.executable} -m {module} \"$@\"\\n'); os.chmod(name, 0o755)";
    tool(package, dir, "python3", &["-c", script, &format!("root/{program}"), module])
}

fn tool(package: &str, dir: &Path, program: &str, args: &[&str]) -> Result<(), Skip> {
    let path = find_on_path(program).ok_or_else(|| Skip(format!("{package} is not installed, nor is {program}")))?;
    let output = run_bounded(Command::new(path).current_dir(dir).args(args), b"", Duration::from_mins(10));
    let reason = output.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    if output.success() { Ok(()) } else { Err(Skip(format!("{package} is not installed, and {program} fails: {reason}"))) }
}
