//! The workspace and its toolchain: where things are, and the binary as it is shipped.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{Result, dist::Target, hot_functions};

/// The workspace's root folder.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// A way to build the binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// As it is released: for the published target, with the flags of `.cargo/config.toml`.
    Released,
    /// Without any flags of ours: what `cargo install ralph-loop` gives.
    Installed,
    /// What the tests start: after them there is nothing left to build.
    OfTests,
}

/// A program that people get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Ralph,
    /// What `ralph fleet` starts. It is built by itself, so that nothing that it needs gets into `ralph`.
    Fleet,
}

impl Program {
    pub(crate) const ALL: [Program; 2] = [Program::Ralph, Program::Fleet];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::Ralph => "ralph",
            Program::Fleet => "ralph-fleet",
        }
    }

    pub(crate) fn package(self) -> &'static str {
        match self {
            Program::Ralph => "ralph-loop",
            Program::Fleet => "ralph-fleet",
        }
    }
}

/// Builds a program, and says where it is.
pub(crate) fn binary(program: Program, build: Build) -> Result<PathBuf> {
    let (package, name) = (program.package(), program.name());
    let mut command = cargo();
    match build {
        Build::OfTests => command.args(["test", "--workspace", "--no-run"]),
        Build::Released | Build::Installed => command.args(["build", "--profile", "dist", "--package", package, "--bin", name]),
    };
    command.arg("--message-format=json-render-diagnostics");
    match build {
        Build::Released => ship(&mut command)?,
        // Set and empty: no flags at all, from wherever. The folder is its own, so that the two builds do not undo each other.
        Build::Installed => {
            command.env("CARGO_ENCODED_RUSTFLAGS", "").arg("--target-dir").arg(target_dir()?.join("default-flags"));
        }
        Build::OfTests => {}
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("the build failed".into());
    }
    let messages = String::from_utf8(output.stdout)?;
    let executable = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
        let is_it = message["target"]["name"] == name && message["profile"]["test"] == false;
        message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
    });
    executable.ok_or_else(|| "cargo did not say where the binary is".into())
}

/// The target of the build that people get: the published one of this machine, else the host itself.
pub(crate) fn shipped_target() -> Result<String> {
    Target::here().map_or_else(|| Ok(toolchain()?.1), |target| Ok(target.triple.to_owned()))
}

/// Why the build that people get cannot be made here.
pub(crate) fn cannot_ship() -> Result<Option<String>> {
    let target = shipped_target()?;
    let library = first_output("rustc", &["--print", "target-libdir", "--target", &target])?;
    let missing = || format!("the standard library for {target} is not installed: `rustup target add {target}` gets it");
    Ok((!Path::new(&library).is_dir()).then(missing))
}

/// Why the parts in C cannot be compiled for that target here. Only the fleet has such parts: the cryptography of its line to a server.
pub(crate) fn cannot_compile_c() -> Result<Option<String>> {
    let target = shipped_target()?;
    let Some(cpu) = target.strip_suffix("-unknown-linux-musl") else { return Ok(None) };
    let compilers = [format!("{cpu}-linux-musl-gcc"), "musl-gcc".to_owned()];
    let paths = env::var_os("PATH").unwrap_or_default();
    let is_there = env::split_paths(&paths).any(|folder| compilers.iter().any(|name| folder.join(name).is_file()));
    let is_named = env::var_os(format!("CC_{}", target.replace('-', "_"))).is_some();
    Ok((!is_there && !is_named).then(|| format!("there is no C compiler for {target}: `apt install musl-tools` gets it")))
}

/// Makes it the build that people get: for its target, and without the names of this machine's folders.
fn ship(command: &mut Command) -> Result<()> {
    if let Some(why) = cannot_ship()? {
        return Err(why.into());
    }
    let target = shipped_target()?;
    let of_cargo = home().ok_or("no home folder")?;
    let renamed = |folder: &Path, name: &str| format!("--remap-path-prefix={}={name}", folder.display());
    let mut flags = vec![renamed(&of_cargo, "cargo"), renamed(&root(), "ralph")];
    flags.extend(hot_functions::link_with(command, &target)?.iter().map(ToString::to_string));
    let flags = json!(flags);
    command.args(["--target", &target, "--config"]).arg(format!("target.{target}.rustflags={flags}"));
    Ok(())
}

/// Where cargo keeps the sources of packages.
pub(crate) fn home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// Where builds go; also a folder that is surely on a disk and that nobody minds.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let output = cargo().args(["metadata", "--no-deps", "--format-version=1"]).output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    metadata["target_directory"].as_str().map(PathBuf::from).ok_or_else(|| "cargo did not say where builds go".into())
}

/// The compiler's version and its host.
pub(crate) fn toolchain() -> Result<(String, String)> {
    let text = first_output("rustc", &["-vV"])?;
    let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).map(str::to_owned);
    let version = text.lines().next().unwrap_or_default().to_owned();
    Ok((version, field("host: ").ok_or("rustc did not name its host")?))
}

/// What a program prints.
pub(crate) fn first_output(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).current_dir(root()).output().map_err(|e| format!("{program}: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Cargo in the workspace, free of what a surrounding run (coverage, a wrapper) would change about the build.
pub(crate) fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root());
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "LLVM_PROFILE_FILE"] {
        command.env_remove(name);
    }
    command
}
