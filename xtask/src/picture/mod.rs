//! The pictures in the README: the real program in a real terminal or browser, recorded and drawn.

mod page;
mod record;
mod svg;
mod terminal;

use std::fs;

use clap::ValueEnum;

use crate::{
    Result, Verdict,
    cargo::{self, Build, Program},
};

/// Make the pictures of the README: docs/demo.svg, docs/watch.svg, docs/report-light.png, docs/report-dark.png
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only those of one command
    which: Option<Which>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Demo,
    Watch,
    Report,
}

/// A picture.
struct Made {
    file: &'static str,
    bytes: Vec<u8>,
    /// One that is slow to load is not looked at.
    most: usize,
}

pub(crate) fn run(args: &Args) -> Result<Verdict> {
    let ralph = cargo::binary(Program::Ralph, Build::Released)?;
    let mut made = Vec::new();
    for which in Which::value_variants().iter().filter(|which| args.which.is_none_or(|wanted| wanted == **which)) {
        match which {
            Which::Demo => made.push(terminal::demo(&ralph)?),
            Which::Watch => made.push(terminal::watch(&ralph)?),
            Which::Report => made.extend(page::report(&ralph)?),
        }
    }
    for picture in &made {
        fs::write(cargo::root().join(picture.file), &picture.bytes)?;
        println!("written  {}: {} bytes", picture.file, picture.bytes.len());
    }
    let wants_report = args.which.is_none_or(|wanted| wanted == Which::Report);
    if wants_report && !made.iter().any(|picture| page::FILES.contains(&picture.file)) {
        return Ok(Verdict::Skipped);
    }
    Ok(Verdict::when(made.iter().all(|picture| picture.bytes.len() <= picture.most)))
}
