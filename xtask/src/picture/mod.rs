//! The picture of the demo in the README: the real program in a real terminal, recorded and drawn.

mod record;
mod svg;

use std::{fs, process::Command, time::Duration};

use ralph_testkit::Pty;

use crate::{
    Result, Verdict,
    cargo::{self, Flags},
};

/// Record `ralph demo` in a terminal and draw docs/demo.svg
#[derive(clap::Args)]
pub(crate) struct Args {}

const FILE: &str = "docs/demo.svg";
/// About as wide as GitHub shows a page's text, in letters of a usual size.
const COLUMNS: u16 = 92;
/// So many that nothing scrolls away.
const ROWS: u16 = 80;
/// A picture that is slow to load is not looked at.
const MAX_BYTES: usize = 60_000;

pub(crate) fn run(_args: &Args) -> Result<Verdict> {
    let mut demo = Command::new(cargo::release_binary(Flags::Ours)?);
    demo.arg("demo").env_clear().env("TERM", "xterm-256color");
    let terminal = Pty::spawn(demo, ROWS, COLUMNS);
    let is_over = terminal.wait_closed(Duration::from_mins(1));
    if !is_over || terminal.wait_exit(Duration::from_secs(5)) != Some(0) {
        return Err(format!("the demo failed:\n{}", terminal.screen()).into());
    }
    let recording = record::read(&terminal.recording(), ROWS, COLUMNS)?;
    let picture = svg::draw(&recording);
    fs::write(cargo::root().join(FILE), &picture)?;
    println!("written  {FILE}: {} bytes, {:.1} s", picture.len(), recording.length().as_secs_f64());
    Ok(Verdict::when(picture.len() <= MAX_BYTES))
}
