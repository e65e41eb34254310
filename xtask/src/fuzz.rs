//! Long runs of the fuzz harness (`crates/engine/src/tests/fuzz`), optimised and with all assertions.

use crate::{Result, Verdict, cargo};

/// Give mutated bytes to every parser of foreign bytes, for as long as wanted
///
/// What fails is written to target/…/fuzz/TARGET/; put it into crates/engine/src/tests/fuzz/found/TARGET/, and it is tried by every `cargo test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// For how long, shared by all targets
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Try the same inputs as the run that printed this seed
    #[arg(long)]
    seed: Option<u64>,
    /// One target alone: event, toml, secrets, …
    target: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<Verdict> {
    let mut command = cargo::cargo();
    command.args(["test", "--profile", "fuzz", "--package", "ralph-engine", "--lib", "--", "--nocapture", "fuzz_every_parser"]);
    command.env("RALPH_FUZZ_SECONDS", (args.minutes * 60).to_string());
    if let Some(seed) = args.seed {
        command.env("RALPH_FUZZ_SEED", seed.to_string());
    }
    if let Some(target) = &args.target {
        command.env("RALPH_FUZZ_TARGET", target);
    }
    Ok(Verdict::when(command.status()?.success()))
}
