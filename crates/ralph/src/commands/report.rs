//! `ralph report`: one page about a loop, for the morning after, and the same in the forms that other tools take.

mod prometheus;

use std::{
    io::{IsTerminal, stdout},
    path::{Path, PathBuf},
};

use clap::ValueHint;
use prometheus::Subject;
use ralph_core::report::{Report, junit};
use ralph_engine::{
    store::{known_projects, project::Project},
    sys::{env, files, process, secrets},
    view,
};

use crate::{
    commands::Which,
    exit::{Done, Failure, NO_LOOP},
    report, ui,
};

/// Write one page about a loop: how it went, what is proven
///
/// The page is HTML that needs nothing but itself: no network, no script. It says how the loop ended and why, what needs a person, what proves each thing that had
/// to hold, where the time and the money went, which claims were refused, and how to replay and undo it. Without an option it goes to .ralph/reports, where ralph
/// also writes one when a loop ends, pauses or parks.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph report --open
  ralph report main-20261115-093000 --html report.html
  ralph report --markdown | gh pr comment --body-file -
  ralph report --json | jq '.cost.per_verified'
  ralph report --step-summary               in a GitHub Actions step, with `if: always()`
  ralph report --prometheus --all -o /var/lib/node_exporter/ralph.prom")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Write the page there; `-` is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "form")]
    html: Option<PathBuf>,
    /// Print it in short as Markdown, for a pull request or a CI summary
    #[arg(long, group = "form")]
    markdown: bool,
    /// For programs: everything as JSON (schemas/report.schema.json)
    #[arg(long, group = "form")]
    json: bool,
    /// Print what the gates found as JUnit XML
    #[arg(long, group = "form")]
    junit: bool,
    /// Print figures in the text format of Prometheus
    #[arg(long, group = "form")]
    prometheus: bool,
    /// Add the Markdown to the summary of a GitHub Actions step
    #[arg(long, group = "form")]
    step_summary: bool,
    /// With --prometheus: the loops of all projects
    #[arg(long, requires = "prometheus", conflicts_with_all = ["which", "name"])]
    all: bool,
    /// Write it to a file, whole or not at all, instead of printing it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["html", "step_summary"])]
    output: Option<PathBuf>,
    /// Show the page in the browser
    #[arg(long, conflicts_with_all = ["markdown", "json", "junit", "prometheus", "step_summary"])]
    open: bool,
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    let done = report(project, args);
    // A form that a program reads holds nothing else.
    let is_for_programs = args.markdown || args.junit || args.prometheus || args.step_summary || args.html.is_some();
    done.map_err(|failure| if is_for_programs { aside(failure) } else { failure })
}

/// The answer that there is no loop, beside standard output.
fn aside(failure: Failure) -> Failure {
    if failure.code != NO_LOOP || failure.message.is_empty() {
        return failure;
    }
    ui::note(&failure.message);
    Failure { message: String::new(), in_json: true, ..failure }
}

fn report(project: &Project, args: &Args) -> Done {
    let gathered = || report::gather(project, args.which.get());
    if args.json {
        let text = serde_json::to_string(&gathered()?).map_err(|e| Failure::new(format!("cannot be written as JSON: {e}")))?;
        return put(args.output.as_deref(), &ui::escaped(&text));
    }
    if args.markdown {
        return put(args.output.as_deref(), &report::markdown(&gathered()?));
    }
    if args.step_summary {
        return add_to_summary(&report::markdown(&gathered()?));
    }
    if args.junit {
        return put(args.output.as_deref(), &of_gates(project, args.which.get())?);
    }
    if args.prometheus {
        return put(args.output.as_deref(), &figures(project, args)?);
    }
    let gathered = gathered()?;
    match args.html.as_deref().or(args.output.as_deref()) {
        Some(path) if path == Path::new("-") => put(None, &report::page(&gathered)),
        Some(path) => {
            put(Some(path), &report::page(&gathered))?;
            written(project, &gathered, path, args.open)
        }
        None => {
            let path = report::write_page(project, &gathered)?;
            written(project, &gathered, &path, args.open)
        }
    }
}

/// Says where it is, and shows it if that is wanted.
#[expect(clippy::unnecessary_wraps, reason = "every command ends the same way")]
fn written(project: &Project, gathered: &Report, path: &Path, open: bool) -> Done {
    ui::paragraph(&gathered.sentence, 0);
    ui::line(ui::path(path));
    if open {
        match process::open_in_browser(path, project.root()) {
            Some(program) => ui::line(format!("Opened with {}.", ui::path(&program))),
            None => ui::note("Not opened: there is no display, or no program that opens pages. Open the file yourself."),
        }
    }
    Ok(())
}

/// Prints a text as it is, or writes it to the file that was asked for. On a terminal nothing of it steers that: it quotes agents and gates.
fn put(file: Option<&Path>, text: &str) -> Done {
    let text = &secrets::own().mask(text);
    match file.filter(|path| *path != Path::new("-")) {
        Some(path) => files::write_named(path, text.as_bytes()).map_err(Failure::cannot_write(path)),
        None => {
            let text = text.trim_end();
            if stdout().is_terminal() {
                ui::try_raw(&ui::harmless(text))
            } else {
                ui::try_raw(text)
            };
            Ok(())
        }
    }
}

/// Other steps have their summaries in the same file.
fn add_to_summary(markdown: &str) -> Done {
    let path = env::step_summary().ok_or_else(|| {
        Failure::usage("GITHUB_STEP_SUMMARY is not set: this is no step of GitHub Actions. `ralph report --markdown` prints the same")
    })?;
    files::append_named(&path, secrets::mask(markdown).as_bytes()).map_err(Failure::cannot_write(&path))
}

/// The last findings of all gates of the loop.
fn of_gates(project: &Project, which: Option<&str>) -> Result<String, Failure> {
    let (view, at, findings) = report::findings(project, which)?;
    Ok(junit::of_findings(&format!("ralph gates of {}", view.id), at, &findings))
}

/// Of each project the loops that are live, or the one that ended last.
fn figures(project: &Project, args: &Args) -> Result<String, Failure> {
    let mut of_projects = Vec::new();
    if args.all {
        for project in known_projects::with(project) {
            let live = view::live(&project);
            let seen = if live.is_empty() { view::ended(&project).into_iter().take(1).collect() } else { live };
            // One whose journal is gone has nothing to tell, and is no reason to say nothing of the others.
            of_projects.extend(seen.iter().filter_map(|view| report::gather(&project, Some(&view.id)).ok()).map(|r| (project.clone(), r)));
        }
    } else {
        of_projects.push((project.clone(), report::gather(project, args.which.get())?));
    }
    let folders: Vec<String> = of_projects.iter().map(|(project, _)| project.root().display().to_string()).collect();
    let subjects: Vec<Subject<'_>> =
        of_projects.iter().zip(&folders).map(|((_, report), folder)| Subject { report, folder: folder.as_str() }).collect();
    Ok(prometheus::text(&subjects))
}
