//! `ralph run`: carry a loop in fresh sessions, one for each iteration.

mod drive;
mod ground;
mod json;
mod lines;
mod out;
mod prose;
mod quiet;
mod screen;
mod status;
mod summary;
#[cfg(test)]
mod tests;

use std::{io::stdout, sync::Arc};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ralph_engine::{
    notify::Ways,
    ops::{resume, start},
    run::events::Observer,
    store::project::Project,
    sys::{clock, signals},
};

use crate::{
    commands::{
        loop_flags::only_for_a_new_loop,
        name,
        new_loop::{NewLoop, words},
    },
    exit::{Done, Failure},
    term::live_lines::Terminal,
    ui,
};

use json::Json;
use lines::Lines;
use out::Out;
use quiet::Quiet;
use screen::Screen;

/// Run a loop in fresh sessions, a new one for each iteration
///
/// Starts a loop with the prompt that is given, or goes on with the one that is there, at the iteration where it was, whoever carried it before. The
/// agent is started anew for each iteration; what it left in the files is judged by the same gates and limits as in an interactive session. Ctrl-C
/// finishes the iteration, a second one ends it now; `ralph run --continue` goes on.
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
    /// Go on with the loop that is there, also if it has ended at a limit; with limits, with new ones. The same as no prompt
    #[arg(long = "continue", help_heading = LOOP, conflicts_with_all = ["prompt", "prompt_file", "stdin"], conflicts_with_all = only_for_a_new_loop())]
    go_on: bool,
    /// Go on with a loop although it is complete
    #[arg(long, help_heading = LOOP, conflicts_with_all = ["prompt", "prompt_file", "stdin"])]
    again: bool,
    /// End after this many iterations; the loop waits for `ralph run --continue`
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one, allow_hyphen_values = true, help_heading = LOOP)]
    rounds: Option<u64>,
    /// The same as --rounds 1
    #[arg(long, conflicts_with = "rounds", help_heading = LOOP)]
    once: bool,
    /// Do not wait for a quota to come back or for checks to be decided: end with exit code 75
    #[arg(long, help_heading = LOOP)]
    no_wait: bool,
    /// Who is told when the run ends, waits or needs a person: desktop, terminal, an https:// address, or cmd:LINE for the shell; may be given several times
    #[arg(long, value_name = "WHERE", value_parser = whom, help_heading = LOOP)]
    notify: Vec<String>,

    #[command(flatten, next_help_heading = SESSIONS)]
    sessions: Sessions,

    /// Only what was ruled and how it ended; warnings on standard error
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
    /// The agent [default: claude; with --continue the one that it was]
    #[arg(long, value_name = "AGENT", value_parser = agents(), conflicts_with = "agent_cmd")]
    agent: Option<Agent>,
    /// Any program instead: a line for the shell that reads the prompt on its standard input and prints its answer
    #[arg(long, value_name = "CMD", value_parser = words, conflicts_with_all = ["permission_mode", "inner"])]
    agent_cmd: Option<String>,
    /// The model of the sessions, unless an item of a list names another
    #[arg(long, value_name = "MODEL", value_parser = words)]
    model: Option<String>,
    /// What the agent may do without asking, in the client's words; nobody is there to be asked
    #[arg(long, value_name = "MODE", value_parser = permission_modes())]
    permission_mode: Option<String>,
    /// So many times a session is sent back by its own stop hook while gates fail, before its iteration ends
    #[arg(long, value_name = "N", value_parser = super::count, allow_hyphen_values = true)]
    inner: Option<u64>,
    /// Work in a linked worktree, made if need be; =NAME if it shall not be called after the loop
    #[arg(long, value_name = "NAME", value_parser = worktree, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    worktree: Option<Worktree>,
    /// Do not keep the files after each iteration under refs/ralph/
    #[arg(long)]
    no_snapshots: bool,
}

/// The run that is wanted: what the command line says, and nothing of what ralph.toml says.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) carries: Carries,
    /// `None`: until the loop ends.
    pub(crate) rounds: Option<u64>,
    /// `None`: the one that it was, or the usual one.
    pub(crate) agent: Option<Agent>,
    pub(crate) model: Option<String>,
    pub(crate) permission_mode: Option<String>,
    pub(crate) inner: Option<u64>,
    /// `None`: in the project itself.
    pub(crate) worktree: Option<Worktree>,
    pub(crate) no_snapshots: bool,
    pub(crate) no_wait: bool,
    pub(crate) notify: Vec<String>,
}

/// Which loop.
#[derive(Debug)]
pub(crate) enum Carries {
    New(start::Request),
    /// The one that is there, or ended last, with limits as `ralph resume` takes them.
    Again(resume::Request),
}

/// What is started for each iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    Command(String),
}

/// A linked worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Worktree {
    CalledAfterTheLoop,
    Called(String),
}

fn at_least_one(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "must be a whole number from 1 on".to_owned())
}

fn worktree(text: &str) -> Result<Worktree, String> {
    if text.is_empty() { Ok(Worktree::CalledAfterTheLoop) } else { name(text).map(Worktree::Called) }
}

fn whom(text: &str) -> Result<String, String> {
    Ways::default().add(text).map(|()| text.to_owned())
}

fn agents() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(["claude"]).map(|_| Agent::Claude)
}

fn permission_modes() -> impl TypedValueParser<Value = String> {
    let modes = ["default", "acceptEdits", "auto", "dontAsk", "bypassPermissions"].map(PossibleValue::new);
    let plan = PossibleValue::new("plan").hide(true);
    PossibleValuesParser::new(modes.into_iter().chain([plan])).try_map(|mode| {
        if mode == "plan" {
            Err("in this mode the agent may change nothing, so that no iteration could ever get anywhere".to_owned())
        } else {
            Ok(mode)
        }
    })
}

pub(crate) fn run(project: &Project, args: Args) -> Done {
    let (json, quiet) = (args.json, args.quiet);
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
        _ if json => Arc::new(Json::new(out, clock::now)),
        _ if quiet => Arc::new(Quiet::new(out)),
        Some(_) => Arc::new(Screen::live(Terminal::on(out), clock::now)),
        None => Arc::new(Lines::new(out, clock::now)),
    }
}

fn request(args: Args) -> Result<Request, Failure> {
    let Args { wanted, go_on, again, rounds, once, no_wait, notify, sessions, .. } = args;
    let is_new = wanted.has_prompt();
    if let Some(option) = wanted.settings.0.only_for_a_new_loop().filter(|_| !is_new && !go_on) {
        return Err(Failure::usage(format!(
            "--{option} describes a new loop: give its prompt, too, as words, with --prompt-file FILE or with --stdin"
        )));
    }
    Ok(Request {
        carries: if is_new { Carries::New(wanted.request()?) } else { Carries::Again(resume::Request { again, ..wanted.again() }) },
        rounds: if once { Some(1) } else { rounds },
        agent: sessions.agent_cmd.map(Agent::Command).or(sessions.agent),
        model: sessions.model,
        permission_mode: sessions.permission_mode,
        inner: sessions.inner,
        worktree: sessions.worktree,
        no_snapshots: sessions.no_snapshots,
        no_wait,
        notify,
    })
}
