//! `ralph doctor`: check the setup, and fix it.

use ralph_core::text::{clean, count};
use ralph_engine::store::project::Project;
use serde::Serialize;

use crate::{
    commands::notify,
    doctor::{Case, Finding, Severity},
    exit::{Done, Failure},
    ui,
};

/// Check the setup and suggest fixes
///
/// Looks at the client, the registration of the hook, the settings, the loops, the machine and the repository, and sends a made-up stop through
/// the registered command line. Changes nothing without --fix. Exit code 1 if there is an error, or if a repair failed; warnings
/// and notes are none.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ralph doctor
  ralph doctor --fix
  ralph doctor --notify desktop
  ralph doctor --json | jq '.findings[] | select(.severity == \"error\")'")]
pub(crate) struct Args {
    /// For programs: JSON
    #[arg(long)]
    json: bool,
    /// Fix what can be fixed without any risk, then look again
    #[arg(long)]
    fix: bool,
    /// Check nothing, and send a test notification: wherever ralph.toml and `RALPH_NOTIFY` say, and to desktop, terminal, an https:// address or cmd:LINE
    #[arg(long, value_name = "WHERE", num_args = 0.., conflicts_with = "fix")]
    notify: Option<Vec<String>>,
}

/// Where the text of a finding begins.
const TEXT: usize = 19;

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    version: &'static str,
    project: &'a std::path::Path,
    fixed: &'a [String],
    /// Repairs that could not be made, and why.
    failed: &'a [String],
    findings: &'a [Finding],
}

pub(crate) fn run(project: &Project, args: &Args) -> Done {
    if let Some(ways) = &args.notify {
        return notify::run(project, ways, args.json);
    }
    let mut findings = Case::of(project).examine();
    let (mut fixed, mut failed) = (Vec::new(), Vec::new());
    if args.fix {
        (fixed, failed) = fix(project, &findings);
        if !fixed.is_empty() {
            findings = Case::of(project).examine();
        }
    }
    let errors = number_of(&findings, Severity::Error);
    if args.json {
        let (version, project) = (env!("CARGO_PKG_VERSION"), project.root());
        ui::json(&Report { ok: errors == 0, version, project, fixed: &fixed, failed: &failed, findings: &findings });
    } else {
        for done in &fixed {
            ui::paragraph(format!("{} {}", ui::good("fixed"), clean(done)), 6);
        }
        for problem in &failed {
            ui::paragraph(format!("{} {}", ui::bad("not fixed:"), clean(problem)), 6);
        }
        findings.iter().for_each(show);
        ui::paragraph(summary(&findings), 0);
    }
    if errors == 0 && failed.is_empty() { Ok(()) } else { Err(Failure::reported()) }
}

/// Makes every safe repair once, and tells of those that it made and those that it could not make. The files are looked at anew for each: one repair
/// may have done another's work.
fn fix(project: &Project, findings: &[Finding]) -> (Vec<String>, Vec<String>) {
    let mut made = Vec::new();
    let (mut fixed, mut failed) = (Vec::new(), Vec::new());
    for repair in findings.iter().filter(|f| f.severity > Severity::Good).filter_map(|f| f.repair.as_ref()) {
        if !made.contains(repair) {
            match repair.make(&Case::of(project)) {
                Ok(done) => fixed.push(done),
                Err(failure) => failed.push(failure.message),
            }
            made.push(repair.clone());
        }
    }
    (fixed, failed)
}

fn show(finding: &Finding) {
    let mark = match finding.severity {
        Severity::Good => ui::good("✓"),
        Severity::Note => ui::dim("·"),
        Severity::Warning => ui::warn("!"),
        Severity::Error => ui::bad("✗"),
    };
    ui::paragraph(format!("{mark} {} {}", ui::dim(format!("{:<16}", finding.id)), clean(&finding.what)), TEXT);
    if finding.severity == Severity::Good {
        return;
    }
    let margin = " ".repeat(TEXT);
    if let Some(command) = &finding.fix {
        // A note needs no fix.
        let label = if finding.severity == Severity::Note { "option:" } else { "fix:" };
        ui::line(format!("{margin}{} {}", ui::dim(label), ui::bold(clean(command))));
    }
    if let Some(advice) = &finding.advice {
        ui::paragraph(format!("{margin}{}", ui::dim(clean(advice))), TEXT);
    }
}

fn number_of(findings: &[Finding], severity: Severity) -> u64 {
    findings.iter().filter(|f| f.severity == severity).count() as u64
}

fn summary(findings: &[Finding]) -> String {
    let (errors, warnings) = (number_of(findings, Severity::Error), number_of(findings, Severity::Warning));
    let fixable = findings.iter().any(|f| f.fixable && f.severity >= Severity::Warning);
    let hint = if fixable { " `ralph doctor --fix` fixes what is safe to fix." } else { "" };
    let of_warnings = count(warnings, "warning", "warnings");
    match (errors, warnings) {
        (0, 0) => format!("{}{hint}", ui::good("No problems found.")),
        (0, _) => format!("{}, no error.{hint}", ui::warn(of_warnings)),
        _ => format!("{}, {of_warnings}.{hint}", ui::bad(count(errors, "error", "errors"))),
    }
}
