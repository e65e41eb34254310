//! The npm packages: installed from their files, with a temporary cache and prefix, and without a registry.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use super::{Outcome, Package, ensure, fails, has, is_this_version, sealed, succeeds};
use crate::{Result, dist::npm};

const NO_NPM: Outcome = Outcome::Skipped("npm is not installed");

/// A person's home, with packages installed below it.
struct Home {
    folder: tempfile::TempDir,
}

/// Whether packages may run scripts when they are installed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scripts {
    Run,
    Ignored,
}

impl Home {
    fn new() -> Result<Self> {
        Ok(Home { folder: tempfile::tempdir()? })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// npm, which may ask nothing of the network.
    fn npm(&self, args: &[&str]) -> Command {
        let mut command = sealed("/usr/bin/env", self.path());
        command.arg("npm").args(args);
        for (name, value) in
            [("OFFLINE", "true"), ("AUDIT", "false"), ("FUND", "false"), ("UPDATE_NOTIFIER", "false"), ("LOGLEVEL", "error")]
        {
            command.env(format!("NPM_CONFIG_{name}"), value);
        }
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("NPM_CONFIG_PREFIX", self.path().join("prefix"));
        command.env("NPM_CONFIG_CACHE", self.path().join("cache")).env("NPM_CONFIG_USERCONFIG", self.path().join("npmrc"));
        command
    }

    /// Installs the command and its platform's package.
    fn installed(package: &Package, scripts: Scripts) -> Result<Self> {
        let home = Self::new()?;
        let mut command = home.npm(&["install", "--global", "--install-strategy=nested"]);
        command.arg(format!("--ignore-scripts={}", scripts == Scripts::Ignored));
        // From a registry the second comes as a part of the first. As files both are named.
        succeeds(command.arg(package.file(&npm::file_name(npm::MAIN))).arg(platform(package)))?;
        Ok(home)
    }

    /// The command that npm made.
    /// The installed program, in a project of its own: the home folder is none.
    fn ralph(&self) -> Command {
        let project = self.path().join("project");
        let mut command = sealed(self.command(), self.path());
        if std::fs::create_dir_all(&project).is_ok() {
            command.current_dir(project);
        }
        command.env("PATH", self.with_path());
        command
    }

    fn command(&self) -> PathBuf {
        self.path().join("prefix/bin/ralph")
    }

    fn with_path(&self) -> std::ffi::OsString {
        let folders = [self.path().join("prefix/bin")].into_iter();
        let others = std::env::var_os("PATH").unwrap_or_default();
        std::env::join_paths(folders.chain(std::env::split_paths(&others))).unwrap_or_default()
    }

    /// Whether the command is the program itself.
    fn is_program(&self) -> Result<bool> {
        is_program(&self.command())
    }

    /// The command that the stop hook is registered with.
    fn registered(&self) -> Result<String> {
        let settings: Value = serde_json::from_slice(&fs::read(self.path().join(".claude/settings.json"))?)?;
        let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str();
        Ok(command.ok_or_else(|| format!("no hook in {settings}"))?.to_owned())
    }
}

/// Whether a file is no script.
fn is_program(path: &Path) -> Result<bool> {
    let mut first = [0; 2];
    fs::File::open(path)?.read_exact(&mut first)?;
    Ok(&first != b"#!")
}

fn platform(package: &Package) -> PathBuf {
    package.file(&npm::file_name(&package.target.npm_package()))
}

pub(super) fn global(package: &Package) -> Result<Outcome> {
    if !has("npm") {
        return Ok(NO_NPM);
    }
    let home = Home::installed(package, Scripts::Run)?;
    is_this_version(|| home.ralph())?;
    ensure(home.is_program()?, || "the command is still the script".to_owned())?;
    succeeds(&mut home.npm(&["uninstall", "--global", npm::MAIN]))?;
    ensure(!home.command().exists(), || "uninstalled, and still there".to_owned())?;
    Ok(Outcome::Holds)
}

/// In a project that depends on it. Its command is on the PATH only while npm runs it, so `init` registers a path.
pub(super) fn npx(package: &Package) -> Result<Outcome> {
    if !has("npm") {
        return Ok(NO_NPM);
    }
    let home = Home::new()?;
    fs::write(home.path().join("package.json"), "{\"private\":true}\n")?;
    succeeds(home.npm(&["install"]).arg(package.file(&npm::file_name(npm::MAIN))).arg(platform(package)))?;
    is_this_version(|| home.npm(&["exec", "--no", npm::MAIN, "--"]))?;
    succeeds(&mut home.npm(&["exec", "--no", npm::MAIN, "--", "init", "--user"]))?;
    let registered = home.registered()?;
    ensure(Path::new(&registered).is_absolute(), || format!("registered {registered}"))?;
    Ok(Outcome::Holds)
}

/// The script in front of the program adds nothing and takes nothing away.
pub(super) fn shim(package: &Package) -> Result<Outcome> {
    if !has("npm") {
        return Ok(NO_NPM);
    }
    let home = Home::installed(package, Scripts::Ignored)?;
    ensure(!home.is_program()?, || "scripts were to be ignored".to_owned())?;
    is_this_version(|| home.ralph())?;
    let code = home.ralph().arg("--no-such-flag").stderr(Stdio::null()).status()?.code();
    ensure(code == Some(2), || format!("a wrong flag ends with {code:?}"))?;
    input_and_output(&home)?;
    signal(&home)?;
    Ok(Outcome::Holds)
}

/// A hook reads its event from the input and answers on the output.
fn input_and_output(home: &Home) -> Result<()> {
    succeeds(home.ralph().args(["start", "Work", "--max-iterations", "3"]))?;
    let mut child = home.ralph().args(["hook", "claude"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("no input")?.write_all(b"this is no JSON")?;
    let output = child.wait_with_output()?;
    let answer = String::from_utf8_lossy(&output.stdout);
    ensure(output.status.success() && answer.contains("not a JSON event"), || format!("an odd event: {:?}, {answer:?}", output.status))
}

/// A request to end reaches the program, and how it ended reaches the caller.
fn signal(home: &Home) -> Result<()> {
    // Runs until it is told to end.
    let mut child = home.ralph().args(["log", "--follow"]).stdout(Stdio::piped()).spawn()?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut rest = String::new();
    output.read_line(&mut rest)?;
    succeeds(Command::new("kill").args(["-TERM", &child.id().to_string()]))?;
    // Ends when the last process that writes to it does.
    output.read_to_string(&mut rest)?;
    let status = child.wait()?;
    ensure(ended_by_request(status), || format!("after a request to end: {status:?}"))
}

#[cfg(unix)]
fn ended_by_request(status: std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(15) || status.code() == Some(143)
}

#[cfg(not(unix))]
fn ended_by_request(status: std::process::ExitStatus) -> bool {
    !status.success()
}

/// Where the command is the script, the hook is the program's own path; where it is the program, the name.
pub(super) fn init(package: &Package) -> Result<Outcome> {
    if !has("npm") {
        return Ok(NO_NPM);
    }
    for scripts in [Scripts::Run, Scripts::Ignored] {
        let home = Home::installed(package, scripts)?;
        succeeds(home.ralph().args(["init", "--user"]))?;
        let registered = home.registered()?;
        match scripts {
            Scripts::Run => ensure(registered == "ralph", || format!("registered {registered}"))?,
            Scripts::Ignored => ensure(is_program(Path::new(&registered))?, || format!("{registered} is the script"))?,
        }
    }
    Ok(Outcome::Holds)
}

/// Without the platform's package, as with `--omit=optional`.
pub(super) fn missing(package: &Package) -> Result<Outcome> {
    if !has("npm") {
        return Ok(NO_NPM);
    }
    let home = Home::new()?;
    let main = package.file(&npm::file_name(npm::MAIN));
    succeeds(home.npm(&["install", "--global", "--omit=optional"]).arg(main))?;
    let said = fails(home.ralph().arg("--version"))?;
    ensure(said.contains(&package.target.npm_package()) && said.contains("--omit=optional"), || format!("it says {said:?}"))?;
    Ok(Outcome::Holds)
}
