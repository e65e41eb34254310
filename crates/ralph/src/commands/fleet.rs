//! `ralph fleet`: the program `ralph-fleet`, found and run in this one's place.

use std::ffi::OsString;

use ralph_engine::sys::process;

use crate::exit::{Done, Failure};

/// Work on a list with several agents at once, and land what is proven
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// A command of the fleet's and its options; --help lists them
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(args: Args, directory: Option<&std::path::Path>) -> Done {
    let name = format!("ralph-fleet{}", std::env::consts::EXE_SUFFIX);
    let beside =
        std::env::current_exe().ok().and_then(|own| Some(own.canonicalize().ok()?.parent()?.join(&name))).filter(|path| path.is_file());
    let Some(program) = beside.or_else(|| process::which("ralph-fleet")) else {
        return Err(Failure::new(
            "the program ralph-fleet is not installed: it comes with ralph's packages, or with `cargo install --path crates/fleet` from a checkout",
        ));
    };
    let folder = directory.map(|folder| [OsString::from("-C"), folder.into()]).into_iter().flatten();
    let failed = process::run_instead(&program, folder.chain(args.args));
    match failed {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::coded(code, "")),
        Err(e) => Err(Failure::new(format!("{} cannot be started: {e}", program.display()))),
    }
}
