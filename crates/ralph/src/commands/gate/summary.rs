//! The findings of the gates, one line for each.

use ralph_core::{
    gate::{Finding, Kind, Verdict},
    text::clean,
};

use crate::{term::width::columns, ui};

/// Columns before what stands below a row.
const BELOW: usize = 4;

/// All findings. What the agent would be told of a failure is shown where the command's own output was not.
pub(in crate::commands) fn show(findings: &[Finding], suspicions: &[String], has_shown_output: bool) {
    let (broken, measured): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(|finding| finding.kind == Kind::Config);
    let name = measured.iter().map(|finding| columns(&clean(&finding.gate))).max().unwrap_or(0);
    if !measured.is_empty() {
        ui::line("");
    }
    for finding in measured {
        row(finding, name);
        let was_shown = has_shown_output && finding.kind == Kind::Command && !finding.cached;
        if finding.verdict != Verdict::Pass && !was_shown {
            for line in ui::harmless(&finding.detail).lines() {
                ui::line(format!("{:BELOW$}{line}", ""));
            }
        }
        if let Some(next) = finding.next.as_ref().filter(|_| finding.verdict != Verdict::Pass) {
            ui::paragraph(format!("{:BELOW$}next: {}", "", clean(next)), BELOW + 6);
        }
        if let Some(log) = &finding.log {
            ui::line(ui::dim(format!("{:BELOW$}{}", "", clean(log))));
        }
    }
    for suspicion in suspicions {
        ui::paragraph(format!("{} {}", ui::warn("guard:"), clean(suspicion)), 7);
    }
    for finding in broken {
        ui::error(&unreadable(finding));
    }
}

/// A file of gates that cannot be read. The fix is shown only if it says more than the file's name.
fn unreadable(finding: &Finding) -> String {
    let needs = finding.needs.as_deref().filter(|needs| !needs.contains(&finding.gate));
    [Some(finding.what.as_str()), needs].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn row(finding: &Finding, width: usize) {
    let name = clean(&finding.gate);
    let pad = " ".repeat(width - columns(&name));
    let word = ui::judged(finding.verdict, format!("{:<7}", finding.verdict.as_str()));
    ui::paragraph(format!("{}{pad}  {word}  {}", ui::bold(name), finding.told()), width + 11);
    if let Some(needs) = &finding.needs {
        ui::paragraph(format!("{:BELOW$}{}", "", clean(needs)), BELOW);
    }
}

/// `pass (3.2 s)`, `interrupted (3.2 s)`
pub(super) fn ended(finding: &Finding, is_interrupted: bool) -> String {
    let word = if is_interrupted { ui::warn("interrupted") } else { ui::judged(finding.verdict, finding.verdict.as_str()) };
    format!("{word} ({})", seconds(finding.took_ms))
}

#[expect(clippy::cast_precision_loss, reason = "one digit after the point")]
fn seconds(ms: u64) -> String {
    if ms < 100 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1_000.0) }
}
