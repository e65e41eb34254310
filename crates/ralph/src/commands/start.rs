//! `ralph start`: begin a loop.

use std::{sync::Arc, time::Duration};

use ralph_core::{gate::Gate, text::clean};
use ralph_engine::{
    gates::{Watch, durations::Time},
    ops::{
        Asker, Refusal,
        start::{self, Request, Started},
    },
    store::project::Project,
    sys::signals,
};

use crate::{
    commands::{agreed, asker, loop_flags::NewLoop, show_json},
    doctor::Case,
    exit::{Done, Failure},
    term::ask::{self, Answer},
    ui,
};

/// Start a loop in this project
///
/// The loop belongs to the session given with --session, or to the agent's session that runs this command; otherwise
/// the first session that stops in this project takes it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph start \"Make all tests pass\" --promise DONE --verify \"cargo test\" --deadline 10m
  ralph start --prompt-file TASK.md --hours 2
  git diff | ralph start - --promise REVIEWED")]
pub(crate) struct Args {
    #[command(flatten)]
    wanted: NewLoop,
    /// The session that the loop belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// For programs: the loop as JSON, as `ralph status --json` shows it
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(project: &Project, args: Args) -> Done {
    if let Some(place) = project.no_project() {
        return Err(Failure::new(format!("refusing to start a loop in {place}: cd into a project, or pass -C")));
    }
    let endless = args.wanted.endless;
    let request = args.wanted.request()?;
    confirm_endless(project, &request, endless, !args.json, "8 hours are over")?;
    let caller = asker();
    let asker = Asker { session: args.session.or(caller.session.clone()), ..caller };
    let started = begin(project, &request, &asker)?;
    let case = Case::of(project);
    if args.json {
        show_json(project, &started.id);
        case.warn();
        return Ok(());
    }
    ui::line(format!("{} {}", ui::good("Ralph loop started:"), ui::bold(clean(&started.id))));
    if let Some(remark) = request.remark() {
        ui::warning(&remark);
    }
    for limit in started.limits(case.survey.block_cap().as_deref()) {
        ui::paragraph(format!("  {}", clean(&limit)), 4);
    }
    for told in started.begun.told().iter().chain(&started.phase) {
        ui::paragraph(format!("  {}", clean(told)), 4);
    }
    ui::field("file", ui::path_from_home(&started.path));
    match started.file.session_id {
        Some(session) => ui::field("session", session),
        None => {
            let root = ui::path_from_home(project.root());
            ui::paragraph(format!("The first session that stops takes it: start the agent in {root} and tell it to begin."), 0);
        }
    }
    case.warn();
    Ok(())
}

/// A loop that nothing ends has to be wanted: by its flag, or by an answer in a terminal where that may be asked.
pub(super) fn confirm_endless(project: &Project, request: &Request, endless: bool, may_ask: bool, limits: &str) -> Done {
    if endless || !request.is_endless(project) {
        return Ok(());
    }
    let before = if request.settings.max_hours == Some(0.0) { String::new() } else { format!(" before {limits}") };
    let why = format!("nothing but you would end this loop{before}: it has no promise and no gate");
    let way = "`ralph init` finds checks for this project; or add --promise TEXT, --verify CMD or --max-iterations N, or --endless, if that is what you want";
    if !may_ask || !ask::is_possible() {
        return Err(Failure::usage(format!("{why}. {way}")));
    }
    ui::warning(&format!("{why}. {way}"));
    agreed(ask::ask("Start it all the same?", Answer::No, way), "no loop was started")
}

/// How long the commands whose old failures do not count may take together.
const BUDGET: Duration = Duration::from_hours(1);

/// Starts a loop for a person, who is told what takes long.
pub(super) fn begin(project: &Project, request: &Request, asker: &Asker) -> Result<Started, Refusal> {
    start::start(project, request, asker, BUDGET, Arc::new(Running), &signals::asked_to_end)
}

struct Running;

impl Watch for Running {
    fn begins(&self, gate: &Gate, _time: Time) {
        ui::note(&clean(&format!("running \"{}\" once, to know what fails before the loop begins …", gate.name)));
    }
}
