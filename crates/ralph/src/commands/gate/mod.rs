//! `ralph gate`: run the gates now, as the hook would.

mod colours;
mod lines;
mod progress;
mod subject;
pub(super) mod summary;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::builder::PossibleValuesParser;
use ralph_core::{
    gate::{Check, Finding, Gate, Kind, Verdict, only_waits},
    loops::Preset,
    report::junit,
    text::clean,
};
use ralph_engine::{
    gates::{
        self, Context, Want, declared,
        guard::{self, Start},
    },
    hosts::{self, claude::registration::Hook},
    ops::manual_measure,
    stop,
    store::project::Project,
    sys::{clock, files, signals},
};
use serde::Serialize;

use crate::{
    exit::{Done, FAILED, Failure, INTERRUPTED, PARKED},
    ui,
};

use progress::Progress;
use subject::Subject;

/// Run the gates now, as the hook would
///
/// Measures the gates of the project's loop; without a loop, those of ralph.toml; without either, the commands for check agents. Their output is
/// shown while they run, and kept in .ralph/logs. The verdicts are kept, too, so that the hook need not measure an unchanged tree again (not in an
/// agent's shell). Gates that look for words in an agent's message cannot be measured here, and do not count. Exit code 0 if all others pass; 1 if
/// one does not, or if there is none; 75 if nothing fails and something outside is not decided yet.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph gate                    all gates
  ralph gate tests lint         these two
  ralph gate docs               all gates of the loop \"docs\"
  ralph gate --keep-going       keep running after a failure
  ralph gate --cached           use earlier verdicts on an unchanged tree
  ralph gate --junit gates.xml  also a report for CI
  ralph gate --preset verify    what check agents have to pass
  ralph gate --preset pr        an open pull request with green checks
  ralph gate --accept           accept the tests and gates as they are now")]
pub(crate) struct Args {
    /// Only these gates, by their names; a loop's name or id means the gates of that loop
    #[arg(value_name = "GATE|LOOP")]
    names: Vec<String>,
    /// The same for the loop, as an option
    #[arg(long = "loop", value_name = "LOOP", hide = true)]
    which: Option<String>,
    /// What a loop with this preset would have to prove; verify: only the commands that check agents have to pass
    #[arg(long, value_name = "PRESET", value_parser = PossibleValuesParser::new(Preset::WORDS), conflicts_with_all = ["which", "accept"])]
    preset: Option<String>,
    /// Use earlier verdicts on an unchanged tree
    #[arg(long, conflicts_with = "accept")]
    cached: bool,
    /// Keep running after a failure
    #[arg(long, conflicts_with = "accept")]
    keep_going: bool,
    /// Run nothing; accept the tests, gates and lists as they are now: the guard compares with them from now on
    #[arg(long)]
    accept: bool,
    /// For CI: also write the findings to a `JUnit` file, whether or not they pass
    #[arg(long, value_name = "FILE", conflicts_with = "accept")]
    junit: Option<PathBuf>,
    /// For programs: the gates of this file instead of the project's ralph.toml; a file of yours alone, outside of the project
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with_all = ["which", "preset", "accept"])]
    gates: Option<PathBuf>,
    /// For programs: the findings as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    /// Whether everything holds that can be measured here.
    passed: bool,
    #[serde(rename = "loop")]
    of_loop: Option<&'a str>,
    findings: &'a [Finding],
    /// Signs that the proof was weakened since the loop began.
    suspicions: &'a [String],
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let project = &match &args.gates {
        Some(file) => project.clone().under_settings(file)?,
        None => project.clone(),
    };
    let mut names = args.names.clone();
    let preset = args.preset.as_deref().and_then(Preset::of);
    let subject = match preset {
        Some(Preset::Verify) => Subject::of_check_agents(project),
        Some(preset) => Subject { of_loop: None, declared: declared::of_preset(project, preset), stands_in: false },
        None if args.gates.is_some() => Subject { of_loop: None, declared: declared::of_project(project), stands_in: false },
        None => subject::named(project, args.which.as_deref(), &mut names)?,
    };
    if args.accept && !names.is_empty() {
        return Err(Failure::usage("--accept is for all gates of a loop, and takes no names of gates"));
    }
    if args.accept {
        return accept(project, &subject, args.json);
    }
    let chosen = subject.chosen(&names)?;
    if chosen.is_empty() && subject.declared.problems.is_empty() {
        return Err(Failure::new(if preset.is_some() { NO_COMMAND } else { NO_GATE }));
    }
    if subject.stands_in && !args.json {
        ui::note("No gate is declared. These are the commands that check agents have to pass.");
    }
    let progress = Progress::begin(args.json, &chosen);
    let start = subject.of_loop.as_deref().map(|id| Start::of(project, id));
    let mut findings = subject.declared.problems.clone();
    findings.extend(start.iter().flat_map(|start| start.gone(&subject.declared)));
    findings.extend(measure(project, &subject, chosen, args, &progress));
    progress.end();
    if signals::asked_to_end() {
        write_junit(args.junit.as_deref(), &findings)?;
        return Err(Failure::coded(INTERRUPTED, if progress.has_shown_the_end() { "" } else { "interrupted" }));
    }
    let of_loop = subject.of_loop.as_deref();
    let suspicions = start.map(|start| start.weigh(project, &subject.declared, None, &mut findings)).unwrap_or_default();
    if let Some(id) = of_loop {
        // The findings count even if the journal cannot be written.
        let _ = manual_measure::by_hand(project, id, &findings);
    }
    let is_measured = findings.iter().any(|finding| !is_for_agents(finding));
    let passed = is_measured && findings.iter().filter(|finding| !is_for_agents(finding)).all(|finding| finding.verdict == Verdict::Pass);
    if args.json {
        ui::json(&Report { passed, of_loop, findings: &findings, suspicions: &suspicions });
    } else {
        summary::show(&findings, &suspicions, progress.has_shown_output());
        if of_loop.is_some() && only_waits(&findings) {
            ui::paragraph("Nothing fails; something outside is not decided yet: `ralph pr --wait` waits for it.", 0);
        }
    }
    write_junit(args.junit.as_deref(), &findings).map_err(|failure| Failure { in_json: args.json, ..failure })?;
    let code = if only_waits(&findings) { PARKED } else { FAILED };
    let failure = Failure::coded(code, if is_measured { "" } else { NOT_MEASURED });
    if passed { Ok(()) } else { Err(Failure { in_json: args.json, ..failure }) }
}

fn write_junit(file: Option<&Path>, findings: &[Finding]) -> Done {
    let Some(file) = file else { return Ok(()) };
    let xml = junit::of_findings("ralph gates", clock::now(), findings);
    files::write_named(file, xml.as_bytes()).map_err(Failure::cannot_write(file))
}

const NOT_MEASURED: &str = "nothing was measured, so nothing is proven";

const NO_COMMAND: &str = "check agents have to pass no command: neither a worktree.yaml nor [verify] in ralph.toml has any";

const NO_GATE: &str =
    "no gate is declared, so nothing is proven. `ralph init` finds this project's checks. For one loop: ralph run \"…\" --verify \"cargo test\". For the project, in ralph.toml:
  [[gate]]
  name = \"tests\"
  command = \"cargo test\"";

fn measure(project: &Project, subject: &Subject, gates: Vec<Gate>, args: &Args, progress: &Arc<Progress>) -> Vec<Finding> {
    signals::notice();
    // As long as the commands have in a hook that is registered as ralph registers it.
    let budget = stop::time_to_work(Duration::from_secs(Hook::LONG));
    let mut context = Context::new(project, subject.of_loop.as_deref().unwrap_or(gates::BY_HAND), budget);
    context.cancelled = &signals::asked_to_end;
    context.watch = Arc::clone(progress) as Arc<dyn gates::Watch>;
    context.again = !args.cached;
    context.keeps = hosts::of_an_agent().is_none();
    context.keep_going = args.keep_going || subject.declared.keep_going;
    let (for_agents, measurable): (Vec<Gate>, Vec<Gate>) = gates.into_iter().partition(|gate| matches!(gate.check, Check::Markers(_)));
    let mut findings = gates::measure(&measurable, Want::Everything, &context);
    // There is no agent here whose message could be read.
    let no_message = |gate: &Gate| Finding { skipped: true, ..gate.finding(Verdict::Unknown, "only an agent's message can tell") };
    findings.extend(for_agents.iter().map(no_message));
    findings
}

fn is_for_agents(finding: &Finding) -> bool {
    finding.kind == Kind::Markers
}

fn accept(project: &Project, subject: &Subject, json: bool) -> Done {
    let Some(id) = subject.of_loop.as_deref() else { return Err(Failure::no_loop()) };
    let accepted = Start::of(project, id).suspicions(project, &subject.declared);
    guard::accept(project, id, &subject.declared)?;
    manual_measure::accepted(project, id, &accepted)?;
    if json {
        ui::json(&serde_json::json!({ "loop": id, "accepted": accepted }));
        return Ok(());
    }
    for suspicion in &accepted {
        ui::paragraph(format!("accepted: {}", clean(suspicion)), 10);
    }
    ui::paragraph(format!("The guard of {} compares with the present state from now on.", ui::bold(clean(id))), 0);
    Ok(())
}
