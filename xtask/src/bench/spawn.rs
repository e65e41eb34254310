//! Starts a program as a client starts a hook, and says how long it took and how much memory it needed.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::Result;

/// A program, ready to be run again and again.
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(&'static str, String)>,
    /// The file that is its standard input.
    pub(super) stdin: PathBuf,
}

/// One run.
pub(super) struct Run {
    pub(super) wall: Duration,
    pub(super) stdout: Vec<u8>,
}

impl Program {
    /// Puts an event into the input file. In place: a new file for every run would keep the file system busy beside what is measured.
    pub(super) fn feed(&self, event: &str) -> Result<()> {
        let mut file = File::options().write(true).create(true).truncate(false).open(&self.stdin)?;
        file.write_all(event.as_bytes())?;
        Ok(file.set_len(event.len() as u64)?)
    }

    /// From the start of the process to its end and the end of its output.
    pub(super) fn run(&self) -> Result<Run> {
        let mut command = self.command(&self.path, &[]);
        let complaints = self.stdin.with_extension("err");
        command.stdin(File::open(&self.stdin)?).stdout(Stdio::piped()).stderr(File::create(&complaints)?);
        let mut stdout = Vec::with_capacity(4096);
        let start = Instant::now();
        let mut child = command.spawn()?;
        if let Some(mut pipe) = child.stdout.take() {
            pipe.read_to_end(&mut stdout)?;
        }
        let status = child.wait()?;
        let wall = start.elapsed();
        if status.success() {
            return Ok(Run { wall, stdout });
        }
        let said = fs::read(&complaints).unwrap_or_default();
        Err(format!("{} {}: {status}\n{}", self.path.display(), self.args.join(" "), String::from_utf8_lossy(&said)).into())
    }

    /// The peak of its memory in KB.
    pub(super) fn peak_kb(&self, launcher: &Path) -> Result<u64> {
        let mut command = self.command(launcher, &[self.path.display().to_string()]);
        let output = command.stdin(File::open(&self.stdin)?).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        // What the program itself says there comes first.
        text.lines()
            .last()
            .unwrap_or_default()
            .trim()
            .parse()
            .map_err(|_| format!("{}: {}, {text}", self.path.display(), output.status).into())
    }

    fn command(&self, program: &Path, before: &[String]) -> Command {
        let mut command = Command::new(program);
        command.args(before).args(&self.args).env_clear().envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }
}
