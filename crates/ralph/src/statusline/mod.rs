//! `ralph statusline`: the loop in the one line that the client shows below its prompt. Called every few hundred milliseconds, so only the loop's file and
//! the end of its journal are read; nothing is ever written, and nothing is an error.

mod chained;

use std::{
    ffi::OsString,
    io::{IsTerminal, Write, stdin, stdout},
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::text::{clean, parse_tolerant};
use ralph_engine::{
    hosts::{self, claude::variables as client},
    store::{loops, project::Project},
    sys::{env, input},
    view::{self, Status, View},
};
use serde_json::Value;

use crate::term::one_line::Brief;

/// The client's message is some kilobytes long.
const MAX_INPUT: usize = 1 << 20;

/// It comes at once, or not at all.
const PATIENCE: Duration = Duration::from_secs(2);

/// The client keeps two columns free on each side.
const MARGINS: usize = 4;

/// Prints the line if the command line asks for nothing, or for a command that comes first; `None`: it needs an argument parser.
pub(crate) fn without_parser(args: &[OsString]) -> Option<u8> {
    let after = match args {
        [] => None,
        [option, command] if option == "--after" => Some(command.to_str()?),
        [one] => Some(one.to_str()?.strip_prefix("--after=")?),
        _ => return None,
    };
    Some(run(None, after))
}

/// Prints the line, after that of `after`, which is a line for the shell. The exit code is 0 whatever happens: with any other the client shows nothing.
pub(crate) fn run(project: Option<Project>, after: Option<&str>) -> u8 {
    let input = input();
    // The command of a status line that was given this very program would show the loop twice.
    if env::is_within_statusline() {
        return 0;
    }
    let told = Told(parse_tolerant(&input).unwrap_or_default());
    let project = project.unwrap_or_else(|| told.project());
    // Where no hook does anything, a loop only seems to be there.
    let own = if env::is_disabled() { None } else { of_project(&project, &told) };
    let columns = env::columns().filter(|columns| *columns > MARGINS).map(|columns| columns - MARGINS);
    // An agent that may run `ralph` would have a shell.
    let after = after.filter(|_| client::is_called_by_client() || hosts::of_an_agent().is_none());
    let text = match after {
        Some(command) => chained::joined(&chained::said(command, &input), own, columns),
        None => own.map(|line| line.fitted(columns)).unwrap_or_default(),
    };
    if !text.is_empty() {
        let mut out = stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
    0
}

fn input() -> Vec<u8> {
    let said = if stdin().is_terminal() { None } else { input::read(MAX_INPUT, PATIENCE).ok() };
    said.unwrap_or_default().bytes
}

/// The client's message; every field may be missing, or be something else than it should.
struct Told(Value);

impl Told {
    fn text(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
    }

    fn session(&self) -> Option<String> {
        self.text("/session_id").map(str::to_owned).or_else(client::session)
    }

    fn folder(&self) -> PathBuf {
        let told = self.text("/workspace/current_dir").or_else(|| self.text("/cwd"));
        told.map(PathBuf::from).filter(|dir| dir.is_dir()).unwrap_or_else(|| PathBuf::from("."))
    }

    /// As the hooks of the same session find it: where the client was started, else upwards from where it is.
    fn project(&self) -> Project {
        match self.text("/workspace/project_dir").map(Path::new).filter(|dir| dir.is_absolute() && dir.is_dir()) {
            Some(root) => Project::at(root),
            None => Project::of_event(self.folder().to_str()),
        }
    }

    /// How full the session's context is, in percent.
    fn context(&self) -> Option<u64> {
        let used = self.0.pointer("/context_window/used_percentage")?.as_f64()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
        let percent = used.clamp(0.0, 100.0).round() as u64;
        Some(percent)
    }
}

/// The loop of this session; else the only one of the project, or how many there are.
fn of_project(project: &Project, told: &Told) -> Option<Brief> {
    let session = told.session();
    let is_mine = |view: &View| session.is_some() && view.session == session;
    let mut all: Vec<View> = loops::all(project).iter().map(|found| view::quick(project, found)).collect();
    // A file that a checkout brought belongs to no session; one that cannot be read to any.
    all.retain(|view| is_mine(view) || !matches!(view.status, Status::Tracked | Status::Corrupt));
    if let Some(own) = all.iter_mut().find(|view| is_mine(view)) {
        // The session that asks lives, whichever process it was in at its last stop.
        if own.status == Status::LeftBehind {
            own.status = Status::Active;
        }
        return Some(Brief::of(own, &called("ralph", own), told.context()));
    }
    match all.as_slice() {
        [] => None,
        [one] if one.status == Status::Waiting => Some(Brief::of(one, &called("ralph", one), None)),
        [one] if one.runner_pid.is_some() => Some(Brief::of(one, &called("ralph run", one), None)),
        [one] => Some(Brief::of(one, &called("ralph (another session)", one), None)),
        several => Some(Brief::plain(format!("ralph: {} loops here", several.len()))),
    }
}

fn called(whose: &str, view: &View) -> String {
    if view.name == "main" { whose.to_owned() } else { format!("{whose} {}", clean(&view.name)) }
}
