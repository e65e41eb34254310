//! The command line: one file for each command.

mod bundle;
mod cancel;
mod completions;
mod demo;
mod diff;
mod doctor;
mod explain;
mod first_page;
mod fleet;
mod gate;
mod init;
mod item;
mod list;
mod log;
mod loop_flags;
mod man;
mod notify;
mod pause;
mod pr;
mod report;
mod resume;
mod rollback;
mod run;
mod setup;
mod start;
mod status;
mod steer;
mod trust;
mod uninstall;
mod watch;
mod worktree_hint;

use std::{
    ffi::OsString,
    io::{IsTerminal, Read, stdin},
    path::PathBuf,
};

use clap::{
    ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint,
    builder::{PossibleValue, PossibleValuesParser},
};
use ralph_engine::{
    hosts::{Host, claude::variables as client},
    ops::Asker,
    store::project::Project,
    sys::env,
};

use crate::{
    agents_shell,
    exit::{self, Done, Failure},
    find_loop, help,
    term::ask::Answer,
    ui,
};

/// Keeps a coding agent working until the work is proven done.
///
/// The agent tries to stop; ralph, called as its stop hook, lets it stop or sends it back with the reason.
#[derive(Parser)]
#[command(name = "ralph", version, disable_help_subcommand = true, after_help = EXAMPLES)]
struct Cli {
    /// The project's folder [default: found from here upwards]
    #[arg(short = 'C', long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = GLOBAL)]
    directory: Option<PathBuf>,
    /// When to use colour: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = GLOBAL)]
    color: ColorChoice,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

const EXAMPLES: &str = "Examples:
  ralph demo
  ralph init
  ralph run \"Fix the failing tests\"
  ralph run \"Fix the failing tests\" --verify \"cargo test\" --max-iterations 20
  ralph start \"Fix the failing tests\" --promise DONE --max-iterations 20
  ralph status
  ralph explain";

#[derive(Subcommand)]
enum Command {
    Hook(HookArgs),
    Start(start::Args),
    Run(Box<run::Args>),
    Cancel(cancel::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Steer(steer::Args),
    Status(status::Args),
    Watch(watch::Args),
    Statusline(StatuslineArgs),
    #[command(hide = true)]
    List(list::Args),
    Pr(pr::Args),
    Log(log::Args),
    Explain(explain::Args),
    Report(report::Args),
    Diff(diff::Args),
    Rollback(rollback::Args),
    Item(item::Args),
    Init(init::Args),
    Uninstall(uninstall::Args),
    Doctor(doctor::Args),
    Gate(gate::Args),
    Trust(trust::Args),
    Bundle(bundle::Args),
    Fleet(fleet::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
    Help(HelpArgs),
}

/// Show the help of a command, or list all commands
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph help run
  ralph help --all")]
struct HelpArgs {
    /// The command
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// All commands, grouped by what they are for
    #[arg(long, conflicts_with = "command")]
    all: bool,
}

/// Answer an agent's hook event (called by agents, not by people)
///
/// Reads one event on standard input and answers on standard output, as one line of JSON or not at all.
#[derive(clap::Args)]
#[command(after_help = "Example:
  In .claude/settings.json, for each event that ralph should see:
  {
    \"hooks\": {
      \"Stop\": [{ \"hooks\": [{
        \"type\": \"command\", \"command\": \"ralph\",
        \"args\": [\"hook\", \"claude\", \"--timeout\", \"3600\"],
        \"timeout\": 3600
      }] }]
    }
  }")]
struct HookArgs {
    /// The agent that calls
    #[arg(value_parser = Host::ALL.map(|host| host.name))]
    host: Option<String>,

    /// Wait in the background for what a parked loop waits for, then wake the session with exit code 2
    #[arg(long)]
    wait: bool,

    /// Seconds after which the agent ends the hook; 60 if not given
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<String>,

    /// Where this hook is registered: user, project, local or plugin
    #[arg(long, value_name = "PLACE")]
    via: Option<String>,
}

/// Show the loop in Claude Code's status line (called by the client)
///
/// Reads the client's JSON on standard input, and prints one line about the loop of that session, or of the project; nothing if there is none.
/// The exit code is always 0. The line is coloured unless `NO_COLOR` is set, and cut to the terminal's width.
#[derive(clap::Args)]
#[command(after_help = "Example:
  In ~/.claude/settings.json or .claude/settings.json:
  {
    \"statusLine\": { \"type\": \"command\", \"command\": \"ralph statusline\" }
  }

With a status line of your own:
  \"command\": \"ralph statusline --after '~/.claude/statusline.sh'\"")]
struct StatuslineArgs {
    /// A shell command whose output comes first; it gets the same input, and three seconds
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    after: Option<String>,
}

/// Commands that are options of others now; their names go on working.
const OLD_NAMES: [(&str, &[&str]); 4] =
    [("notify", &["doctor", "--notify"]), ("phase", &["pr"]), ("plugin", &["init", "--plugin"]), ("wait", &["pr", "--wait"])];

/// The words of the command line, with the command by its present name.
fn words() -> Vec<OsString> {
    let mut words = crate::args();
    let is_option =
        |at: usize| words[at].to_string_lossy().starts_with('-') || ["-C", "--directory", "--color"].iter().any(|o| words[at - 1] == *o);
    let command = (1..words.len()).find(|at| !is_option(*at));
    if let Some((at, (_, now))) = command.and_then(|at| Some((at, OLD_NAMES.iter().find(|(old, _)| words[at] == *old)?))) {
        words.splice(at..=at, now.iter().map(OsString::from));
    }
    words
}

pub(crate) fn run() -> u8 {
    let parsed = help::arranged(tree()).try_get_matches_from(words()).and_then(|matches| {
        let called = matches.subcommand().map(Called::of).unwrap_or_default();
        Cli::from_arg_matches(&matches).map(|cli| (cli, called))
    });
    let (cli, called) = match parsed {
        Ok(parsed) => parsed,
        Err(e) => {
            let e = help::with_the_closest_first(e);
            ui::colour(asked_colour(crate::args()));
            let _ = e.print();
            // An agent's hook that is registered with a typo must not block the agent, which is what 2 means to it.
            let usage = if env::project_dir().is_some() { exit::FAILED } else { exit::USAGE };
            return if e.use_stderr() { usage } else { 0 };
        }
    };
    ui::colour(cli.color);
    let end = |done: Done| exit::code(if called.wants_json { exit::with_json(done) } else { done });
    if let Some(refusal) = called.refusal {
        return end(Err(refusal));
    }
    if let Some(dir) = cli.directory.as_deref().filter(|dir| !dir.is_dir()) {
        return exit::code(Err(Failure::usage(format!("no such folder: {}", dir.display()))));
    }
    let project = match &cli.directory {
        Some(dir) => Project::at(std::path::absolute(dir).unwrap_or_else(|_| dir.clone())),
        None => Project::upwards_from(std::path::Path::new(".")),
    };
    let project = &project;
    let Some(command) = cli.command else { return end(first_page::run(project)) };
    let done = match command {
        Command::Hook(_) => return crate::hook::run(None),
        Command::Start(args) => start::run(project, args),
        Command::Run(args) => run::run(project, *args),
        Command::Cancel(args) => cancel::run(project, &args),
        Command::Pause(args) => pause::run(project, &args),
        Command::Resume(args) => resume::run(project, &args),
        Command::Steer(args) => steer::run(project, &args),
        Command::Status(args) => status::run(project, &args),
        Command::Watch(args) => watch::run(project, &args),
        Command::Statusline(args) => {
            return crate::statusline::run(cli.directory.is_some().then(|| project.clone()), args.after.as_deref());
        }
        Command::List(args) => list::run(project, &args),
        Command::Pr(args) => pr::run(project, args),
        Command::Log(args) => log::run(project, &args),
        Command::Explain(args) => explain::run(project, &args),
        Command::Report(args) => report::run(project, &args),
        Command::Diff(args) => diff::run(project, &args),
        Command::Rollback(args) => rollback::run(project, &args),
        Command::Item(args) => item::run(project, &args),
        Command::Init(args) => init::run(project, &args),
        Command::Uninstall(args) => uninstall::run(project, &args),
        Command::Doctor(args) => doctor::run(project, &args),
        Command::Gate(args) => gate::run(project, &args),
        Command::Trust(args) => trust::run(project, &args),
        Command::Bundle(args) => bundle::run(project, &args),
        Command::Fleet(args) => fleet::run(args, cli.directory.as_deref()),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Help(args) => {
            let tree = if args.command.as_deref() == Some("fleet") { whole_tree() } else { tree() };
            help::show(tree, args.command.as_deref(), args.all);
            Ok(())
        }
    };
    end(if called.wants_json { done } else { worktree_hint::pointed_out(project, &called.command, done) })
}

/// The command that was called, as far as all commands are treated the same.
#[derive(Default)]
struct Called {
    command: String,
    wants_json: bool,
    /// Why an agent may not do this in its shell.
    refusal: Option<Failure>,
}

impl Called {
    fn of((command, args): (&str, &clap::ArgMatches)) -> Self {
        let wants_json = args.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or(false);
        Called { command: command.to_owned(), wants_json, refusal: agents_shell::refusal(command, args) }
    }
}

pub(crate) fn tree() -> clap::Command {
    let tree = help::in_order(Cli::command());
    let name = |sub: &clap::Command| PossibleValue::new(sub.get_name().to_owned()).hide(sub.is_hide_set());
    let names: Vec<PossibleValue> = tree.get_subcommands().map(name).collect();
    // Only the whole tree knows which pages there are.
    ["man", "help"].into_iter().fold(tree, |tree, command| {
        let names = PossibleValuesParser::new(names.clone());
        tree.mut_subcommand(command, |sub| sub.mut_arg("command", |arg| arg.value_parser(names).hide_possible_values(true)))
    })
}

/// The same with the commands of `ralph fleet`, which another program has.
fn whole_tree() -> clap::Command {
    fleet::with_its_commands(tree())
}

/// The colour that was asked for on a command line that ends in help or an error, which clap prints before it tells the options.
fn asked_colour(args: impl IntoIterator<Item = OsString>) -> ColorChoice {
    let words: Vec<String> = args.into_iter().take_while(|word| word != "--").map(|word| word.to_string_lossy().into_owned()).collect();
    let apart = words.iter().position(|word| word == "--color").and_then(|at| words.get(at + 1)).map(String::as_str);
    let asked = apart.or_else(|| words.iter().find_map(|word| word.strip_prefix("--color=")));
    asked.and_then(|when| ColorChoice::from_str(when, false).ok()).unwrap_or_default()
}

/// A loop after something was done to it: as a line for people, or as `ralph status --json` shows it.
fn show(project: &Project, id: &str, json: bool, line: impl std::fmt::Display) {
    if json {
        show_json(project, id);
    } else {
        ui::paragraph(line, 0);
    }
}

fn show_json(project: &Project, id: &str) {
    match find_loop::view(project, Some(id)) {
        Ok(view) => ui::json(&view),
        Err(_) => ui::json(&serde_json::json!({ "id": id })),
    }
}

/// Standard input, of at most `most` bytes; `what` is for a person who has to type it.
fn read_stdin(what: &str, most: u64) -> Result<Vec<u8>, Failure> {
    if stdin().is_terminal() {
        ui::note(&format!("reading {what} from the terminal; end it with Ctrl-D on a line of its own"));
    }
    let mut bytes = Vec::new();
    stdin().lock().take(most).read_to_end(&mut bytes).map_err(|e| Failure::new(format!("cannot read standard input: {e}")))?;
    Ok(bytes)
}

/// Goes on if the person said yes.
fn agreed(answer: Answer, otherwise: &str) -> Done {
    if answer == Answer::Yes { Ok(()) } else { Err(Failure::new(otherwise)) }
}

/// A whole number from 0 on.
fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number from 0 on".to_owned())
}

fn name(text: &str) -> Result<String, String> {
    if ralph_core::loops::is_name(text) { Ok(text.to_owned()) } else { Err("use up to 64 letters, digits, - and _".to_owned()) }
}

/// Which loop is meant, where there are several.
#[derive(clap::Args)]
struct Which {
    /// A loop's name or id, as `ralph status --all` shows them
    #[arg(value_name = "LOOP")]
    which: Option<String>,
    /// The same, as an option
    #[arg(long = "name", value_name = "LOOP", hide = true, conflicts_with = "which")]
    name: Option<String>,
}

impl Which {
    fn get(&self) -> Option<&str> {
        self.which.as_deref().or(self.name.as_deref())
    }
}

/// Who is asking: a person in a terminal, or an agent's shell, whose session is in the environment.
pub(crate) fn asker() -> Asker {
    Asker { session: client::session(), ..Asker::default() }
}
