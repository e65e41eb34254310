//! What commands show in a terminal.

use std::{path::Path, process::Command, time::Duration};

use ralph_engine::{store::runner, sys::clock};
use ralph_testkit::{Project, Pty, story};

use crate::{
    Result,
    picture::{
        Made, record,
        svg::{self, Motion},
    },
};

/// About as wide as GitHub shows a page's text, in letters of a usual size.
const DEMO: (u16, u16) = (80, 92);
const WATCH: (u16, u16) = (32, 100);

/// The demo, from its beginning to its end.
pub(super) fn demo(ralph: &Path) -> Result<Made> {
    let mut command = Command::new(ralph);
    command.arg("demo").env_clear().env("TERM", "xterm-256color");
    let (rows, columns) = DEMO;
    let terminal = Pty::spawn(command, rows, columns);
    let is_over = terminal.wait_closed(Duration::from_mins(1));
    if !is_over || terminal.wait_exit(Duration::from_secs(5)) != Some(0) {
        return Err(format!("the demo failed:\n{}", terminal.screen()).into());
    }
    let recording = record::read(&terminal.recording(), rows, columns)?;
    if recording.rows >= rows {
        return Err("the demo is longer than the terminal is high".into());
    }
    Ok(Made { file: "docs/demo.svg", bytes: svg::draw(&recording, "ralph demo", Motion::Plays).into_bytes(), most: 60_000 })
}

/// A loop that is worked on; this process is its runner.
pub(super) fn watch(ralph: &Path) -> Result<Made> {
    let project = Project::at_home(story::NAME);
    story::under_way(&project, clock::now(), &serde_json::to_value(runner::this("picture", 0))?);
    let trusted = project.run(ralph).args(["trust", "--yes"]).output();
    if !trusted.success() {
        return Err(trusted.stderr.into());
    }
    let mut command = project.command(ralph);
    command.arg("watch").env("TERM", "xterm-256color");
    let (rows, columns) = WATCH;
    let terminal = Pty::spawn(command, rows, columns);
    // The last thing that the agent did, and the last row.
    let is_drawn = |screen: &str| screen.contains("cargo test --workspace") && screen.contains("cancel");
    terminal.wait_for(is_drawn, Duration::from_secs(20))?;
    let recording = record::read(&terminal.recording(), rows, columns)?;
    Ok(Made { file: "docs/watch.svg", bytes: svg::draw(&recording, "ralph watch", Motion::Still).into_bytes(), most: 60_000 })
}
