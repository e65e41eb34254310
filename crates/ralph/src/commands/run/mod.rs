//! `ralph run`: run a loop in fresh sessions, one for each iteration.

mod drive;
mod lines;
mod out;
mod preconditions;
mod printed;
mod prose;
mod screen;
mod status;
mod summary;
#[cfg(test)]
mod tests;

use std::{io::stdout, path::PathBuf, sync::Arc};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ralph_engine::{
    hosts,
    notify::Ways,
    ops::{resume, start},
    run::events::Observer,
    store::project::Project,
    sys::{clock, signals},
};

use crate::{
    commands::{
        loop_flags::{NewLoop, only_for_a_new_loop, words},
        name,
    },
    exit::{Done, Failure},
    term::live_lines::Terminal,
    ui,
};

use out::Out;
use printed::Printed;
use screen::Screen;

/// Run a loop in fresh sessions, a new one for each iteration
///
/// Starts a loop with the given prompt, or continues the existing one where it was. The agent is started anew for each iteration; the same gates and
/// limits decide as in an interactive session. Ctrl-C finishes the iteration, a second one ends it now; `ralph run --continue` goes on.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph run \"Make all tests pass\" --verify \"cargo test\" --max-iterations 20
  ralph run --prompt-file TASK.md --usd 10 --permission-mode acceptEdits
  ralph run --continue --once               one more iteration
  ralph run --continue --hours 2 --quiet    two more hours
  ralph run \"Tidy up\" --agent-cmd 'my-agent --print' --json | tee events.jsonl")]
pub(crate) struct Args {
    #[command(flatten, next_help_heading = LOOP)]
    wanted: NewLoop,
    /// Continue the existing loop, or the one that is named (`ralph run --continue LOOP`), even if it ended at a limit; a limit on time, money or tokens that is given counts from now on, one on iterations from the loop's start. The same as no prompt
    #[arg(long = "continue", help_heading = LOOP, conflicts_with_all = ["prompt_file", "stdin"], conflicts_with_all = only_for_a_new_loop())]
    go_on: bool,
    /// Continue a loop even if it is complete
    #[arg(long, help_heading = LOOP, conflicts_with_all = ["prompt_file", "stdin"])]
    again: bool,
    /// End after this many iterations; the loop waits for `ralph run --continue`
    #[arg(short = 'n', long, alias = "rounds", value_name = "N", value_parser = at_least_one, allow_hyphen_values = true, help_heading = LOOP)]
    iterations: Option<u64>,
    /// The same as --iterations 1
    #[arg(long, conflicts_with = "iterations", help_heading = LOOP)]
    once: bool,
    /// Do not wait for a quota to come back or for checks to be decided: end with exit code 75
    #[arg(long, help_heading = LOOP)]
    no_wait: bool,
    /// Where to send a notification when the run ends, waits or needs a person: desktop, terminal, an https:// address, or cmd:LINE for the shell; may be given several times
    #[arg(long, value_name = "WHERE", value_parser = whom, help_heading = LOOP)]
    notify: Vec<String>,

    /// For programs: end as after SIGTERM when standard input is closed, as it is when the program that holds it dies
    #[arg(long, hide_short_help = true, conflicts_with = "stdin", help_heading = LOOP)]
    until_eof: bool,

    #[command(flatten, next_help_heading = SESSIONS)]
    sessions: Sessions,

    /// Show only the decisions and how it ended; warnings go to standard error
    #[arg(long, short = 'q', conflicts_with = "json", help_heading = SHOWN)]
    quiet: bool,
    /// For programs: everything that happens, one JSON object for each line
    #[arg(long, help_heading = SHOWN)]
    json: bool,
}

const LOOP: &str = "The loop";
const SESSIONS: &str = "The sessions";
const SHOWN: &str = "What is shown";

/// How the agent is started.
#[derive(clap::Args)]
struct Sessions {
    /// The agent, or acp:NAME for one over the Agent Client Protocol [default: claude, or with --continue the one it had]
    #[arg(long, value_name = "AGENT", value_parser = PossibleValuesParser::new(hosts::headless_names()), conflicts_with_all = ["agent_cmd", "acp_cmd"])]
    agent: Option<String>,
    /// An agent that goes on while the account of the one before is used up; with =MODEL its model; may be given several times
    #[arg(long, value_name = "AGENT[=MODEL]", value_parser = hosts::check_fallback)]
    fallback: Vec<String>,
    /// Another program instead: a shell command that reads the prompt on standard input and prints its answer
    #[arg(long, value_name = "CMD", value_parser = words, conflicts_with_all = ["permission_mode", "inner"])]
    agent_cmd: Option<String>,
    /// Another agent instead: a shell command that starts a program which speaks the Agent Client Protocol (ACP)
    #[arg(long, value_name = "CMD", value_parser = words, conflicts_with = "agent_cmd")]
    acp_cmd: Option<String>,
    /// The model of the sessions, unless an item of a list names another
    #[arg(long, value_name = "MODEL", value_parser = words)]
    model: Option<String>,
    /// What the agent may do without asking, in the client's words; during a run there is no one to ask
    #[arg(long, value_name = "MODE", value_parser = permission_modes())]
    permission_mode: Option<String>,
    /// How often its stop hook sends a session back while gates fail, before the iteration ends
    #[arg(long, value_name = "N", value_parser = super::count, allow_hyphen_values = true)]
    inner: Option<u64>,
    /// For programs: the gates and settings of this file instead of the project's ralph.toml, which then neither counts nor needs trust; a file of yours alone, outside of the project
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    gates: Option<PathBuf>,
    /// Work in a linked worktree, created if needed; =NAME if it should not be named after the loop
    #[arg(long, value_name = "NAME", value_parser = worktree, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    worktree: Option<String>,
    /// Do not keep the files after each iteration under refs/ralph/
    #[arg(long)]
    no_snapshots: bool,
}

/// The run that is wanted: what the command line says, and nothing of what ralph.toml says.
struct Request {
    subject: Subject,
    /// Neither a task nor --continue was given.
    is_bare: bool,
    /// A loop that nothing ends is wanted, or may be asked about.
    endless: bool,
    may_ask: bool,
    /// `None`: until the loop ends.
    iterations: Option<u64>,
    no_wait: bool,
    notify: Vec<String>,
    sessions: Sessions,
}

/// The loop that is run.
enum Subject {
    New(start::Request),
    /// The live one, or the one that ended last, with limits as `ralph resume` takes them.
    Again(resume::Request),
}

impl Subject {
    fn name(&self) -> Option<&str> {
        match self {
            Subject::New(wanted) => wanted.name.as_deref(),
            Subject::Again(wanted) => wanted.which.as_deref(),
        }
    }

    /// The commands that a new loop has to pass.
    fn verify(&self) -> &[String] {
        match self {
            Subject::New(wanted) => &wanted.settings.verify,
            Subject::Again(_) => &[],
        }
    }
}

fn at_least_one(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "must be a whole number from 1 on".to_owned())
}

/// Empty: named like the loop.
fn worktree(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { name(text) }
}

fn whom(text: &str) -> Result<String, String> {
    Ways::default().add(text).map(|()| text.to_owned())
}

fn permission_modes() -> impl TypedValueParser<Value = String> {
    let modes = hosts::PERMISSION_MODES.map(PossibleValue::new);
    let plan = PossibleValue::new("plan").hide(true);
    PossibleValuesParser::new(modes.into_iter().chain([plan])).try_map(|mode| {
        if mode == "plan" {
            Err("the agent may change nothing in this mode, so no iteration could get anywhere".to_owned())
        } else {
            Ok(mode)
        }
    })
}

pub(crate) fn run(project: &Project, args: Args) -> Done {
    let (json, quiet) = (args.json, args.quiet);
    if args.until_eof {
        if args.wanted.is_from_stdin() {
            return Err(Failure::usage(
                "standard input cannot be both the prompt and what --until-eof waits for: take the prompt from a file",
            ));
        }
        signals::end_with_standard_input().map_err(|e| Failure::new(format!("cannot listen to standard input: {e}")))?;
    }
    let request = request(args)?;
    match drive::drive(project, request, &observer(json, quiet))?.exit() {
        0 => Ok(()),
        // The observer has said why.
        code => Err(Failure::coded(code, "")),
    }
}

/// Who looks on: a program, a person at a terminal, or a file that is read later.
fn observer(json: bool, quiet: bool) -> Arc<dyn Observer> {
    let out = Box::new(Out::new(stdout(), signals::wants_the_end_now));
    match ui::width() {
        _ if json => Arc::new(Printed::json(out, clock::now)),
        _ if quiet => Arc::new(Printed::quiet(out)),
        Some(_) => Arc::new(Screen::live(Terminal::on(out), clock::now)),
        None => Arc::new(lines::printed(out, clock::now)),
    }
}

fn request(args: Args) -> Result<Request, Failure> {
    let Args { mut wanted, go_on, again, iterations, once, no_wait, notify, until_eof: _, sessions, quiet, json } = args;
    if go_on || again {
        wanted.take_the_loops_name()?;
    }
    let has_item = wanted.settings.0.item.is_some() && !again;
    let is_new = wanted.has_prompt() || has_item;
    if let Some(option) = wanted.settings.0.only_for_a_new_loop().filter(|_| !is_new && !go_on) {
        return Err(Failure::usage(format!(
            "--{option} describes a new loop: give its prompt, too, as words, with --prompt-file FILE, or - to read it from standard input"
        )));
    }
    // A number of iterations ends the run, if not the loop.
    let endless = wanted.endless || once || iterations.is_some();
    let is_bare = !is_new && !go_on && !again;
    let subject = if is_new { Subject::New(wanted.request()?) } else { Subject::Again(resume::Request { again, ..wanted.again() }) };
    Ok(Request {
        subject,
        is_bare,
        endless,
        may_ask: !(json || quiet),
        iterations: if once { Some(1) } else { iterations },
        no_wait,
        notify,
        sessions,
    })
}
