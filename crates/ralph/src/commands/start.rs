//! `ralph start`: begin a loop.

use std::{
    fs,
    io::{IsTerminal, Read, stdin},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use ralph_core::{gate::Gate, loop_file::Preset, words::clean};
use ralph_engine::{
    gates::{Watch, begin},
    ops::{Asker, phase, start},
    store::project::Project,
    sys::signals,
};

use crate::{
    commands::{amount, asker, count, name, show_json},
    doctor::Case,
    exit::{Done, Failure, told},
    ui,
};

/// Start a loop in this project
///
/// The loop belongs to the session given with --session, or to the agent's session that runs this command; otherwise
/// the first session that stops in this project takes it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph start \"Make all tests pass\" --completion-promise DONE --verify \"cargo test\" --deadline 10m
  ralph start --prompt-file TASK.md --hours 2
  git diff | ralph start --stdin --completion-promise REVIEWED")]
pub(crate) struct Args {
    /// What the agent shall work on
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
    /// Take the prompt from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "stdin"])]
    prompt_file: Option<PathBuf>,
    /// Take the prompt from standard input
    #[arg(long, conflicts_with = "prompt")]
    stdin: bool,
    /// End after this many iterations; 0 means no limit
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    max_iterations: Option<u64>,
    /// The words that the agent must put between <promise> and </promise> when all is done
    #[arg(long, value_name = "TEXT", value_parser = words)]
    completion_promise: Option<String>,
    /// A command that must pass before the loop may end; may be given several times
    #[arg(long, value_name = "CMD", value_parser = words)]
    verify: Vec<String>,
    /// How long each --verify command may run: 90s, 10m, 2h, or seconds [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = ralph_core::config::time_limit, requires = "verify")]
    deadline: Option<u64>,
    /// Gates that need no ralph.toml: the commands of a worktree.yaml, the list that is in the project, the way to an open pull request, or from red checks
    /// to the merge
    #[arg(long, value_parser = Preset::ALL.map(Preset::as_str))]
    preset: Option<String>,
    /// End after this many hours; 0 means no limit [default: 8]
    #[arg(long, value_name = "H", value_parser = amount, allow_hyphen_values = true)]
    hours: Option<f64>,
    /// End when about this many dollars are spent, estimated from the tokens that the client reports; 0 means no limit [default: 50 with the presets pre-pr
    /// and after-pr, else no limit]
    #[arg(long, value_name = "X", value_parser = amount, allow_hyphen_values = true)]
    usd: Option<f64>,
    /// End when fresh sessions (`ralph run`) have used this many tokens of all kinds; 0 means no limit
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    tokens: Option<u64>,
    /// Pause after this many rounds in a row without any tool call
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    idle_rounds: Option<u64>,
    /// Pause after this many rounds in a row that change nothing: no commit, no file, no finding; 0 means never [default: 6 with the presets pre-pr and
    /// after-pr, else never]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    stall_rounds: Option<u64>,
    /// A name, for more than one loop in a project
    #[arg(long, value_parser = name)]
    name: Option<String>,
    /// The session that the loop belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// How the prompt goes back to the agent
    #[arg(long, value_name = "FORM", value_parser = ["auto", "block", "context"])]
    continue_with: Option<String>,
    /// For programs: the loop as JSON, as `ralph status --json` shows it
    #[arg(long)]
    json: bool,
}

/// A text that is not empty.
fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("needs words".to_owned()) } else { Ok(text.to_owned()) }
}

pub(crate) fn run(project: &Project, args: Args) -> Done {
    told(args.json, start(project, args))
}

fn start(project: &Project, args: Args) -> Done {
    let prompt = prompt(&args)?;
    let caller = asker();
    let asker = Asker { session: args.session.or(caller.session.clone()), ..caller };
    let request = start::Request {
        name: args.name,
        prompt,
        max_iterations: args.max_iterations,
        completion_promise: args.completion_promise,
        hours: args.hours,
        usd: args.usd,
        tokens: args.tokens,
        idle_rounds: args.idle_rounds,
        stall_rounds: args.stall_rounds,
        continue_with: args.continue_with,
        verify: args.verify,
        deadline_ms: args.deadline,
        preset: args.preset,
    };
    let started = start::start(project, &request, &asker)?;
    let begun = begin::note(project, &started.id, &started.file, BUDGET, Arc::new(Running));
    let phase = phase::at_the_start(project, &started.id, &begun.declared, &signals::asked_to_end);
    let case = Case::of(project);
    if args.json {
        show_json(project, &started.id);
        case.warn();
        return Ok(());
    }
    ui::line(format!("{} {}", ui::good("Ralph loop started:"), ui::bold(clean(&started.id))));
    for limit in started.limits(case.survey.block_cap().as_deref()) {
        ui::paragraph(format!("  {}", clean(&limit)), 4);
    }
    for told in begun.told() {
        ui::paragraph(format!("  {}", clean(&told)), 4);
    }
    if let Some(phase) = phase {
        ui::paragraph(format!("  {phase}"), 4);
    }
    ui::field("file", started.path.display());
    match started.file.session_id {
        Some(session) => ui::field("session", session),
        None => {
            let root = ui::path(project.root());
            ui::paragraph(format!("The first session that stops takes it: start the agent in {root} and tell it to begin."), 0);
        }
    }
    case.warn();
    Ok(())
}

/// How long the commands whose old failures shall not count may take together.
const BUDGET: Duration = Duration::from_hours(1);

/// Tells the person what takes so long.
struct Running;

impl Watch for Running {
    fn begins(&self, gate: &Gate, _limit: Duration) {
        ui::note(&clean(&format!("running \"{}\" once, to know what fails before the loop begins …", gate.name)));
    }
}

fn prompt(args: &Args) -> Result<String, Failure> {
    let raw = if let Some(path) = &args.prompt_file {
        fs::read(path).map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?
    } else if args.stdin {
        if stdin().is_terminal() {
            ui::note("the prompt is read from the terminal; end it with Ctrl-D on a line of its own");
        }
        let mut bytes = Vec::new();
        stdin().lock().read_to_end(&mut bytes).map_err(|e| Failure::new(format!("cannot read standard input: {e}")))?;
        bytes
    } else {
        args.prompt.join(" ").into_bytes()
    };
    let text = String::from_utf8(raw).map_err(|_| Failure::usage("the prompt is not UTF-8 text"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let prompt = text.trim_matches(['\r', '\n']);
    if prompt.trim().is_empty() {
        return Err(Failure::usage(match (&args.prompt_file, args.stdin) {
            (Some(path), _) => format!("there is no prompt in {}", path.display()),
            (None, true) => "standard input was empty: there is no prompt".to_owned(),
            (None, false) => "there is no prompt: give it as words, with --prompt-file FILE or with --stdin".to_owned(),
        }));
    }
    Ok(prompt.to_owned())
}
