//! What the gates found, one line for each.

use ralph_core::{
    gate::{Finding, Verdict},
    words::clean,
};

use crate::{columns::columns, ui};

/// All findings. What the agent would be told of a failure is shown where the command's own output was not.
pub(super) fn show(findings: &[Finding], suspicions: &[String], has_shown_output: bool) {
    ui::line("");
    let name = findings.iter().map(|finding| columns(&clean(&finding.gate))).max().unwrap_or(0);
    for finding in findings {
        row(finding, name);
        if finding.verdict != Verdict::Pass && !finding.detail.is_empty() && (!has_shown_output || finding.cached) {
            for line in ui::harmless(&finding.detail).lines() {
                ui::line(format!("    {line}"));
            }
        }
    }
    for suspicion in suspicions {
        ui::paragraph(format!("{} {}", ui::warn("guard:"), clean(suspicion)), 7);
    }
}

fn row(finding: &Finding, width: usize) {
    let name = clean(&finding.gate);
    let pad = " ".repeat(width - columns(&name));
    let word = coloured(finding.verdict, &format!("{:<7}", finding.verdict.as_str()));
    let took = if finding.took_ms == 0 { String::new() } else { seconds(finding.took_ms) };
    ui::paragraph(format!("{}{pad}  {word}  {took:>9}  {}", ui::bold(name), what(finding)), width + 22);
    if let Some(log) = &finding.log {
        ui::line(ui::dim(format!("{}{}", " ".repeat(width + 22), clean(log))));
    }
    if let Some(needs) = &finding.needs {
        ui::paragraph(format!("{}{}", " ".repeat(width + 22), clean(needs)), width + 22);
    }
}

fn what(finding: &Finding) -> String {
    let known = if finding.cached { " (known from before, the tree is the same)" } else { "" };
    format!("{}{known}", clean(&finding.what))
}

/// `pass (3.2 s)`
pub(super) fn verdict(finding: &Finding) -> String {
    format!("{} ({})", coloured(finding.verdict, finding.verdict.as_str()), seconds(finding.took_ms))
}

fn coloured(verdict: Verdict, word: &str) -> String {
    match verdict {
        Verdict::Pass => ui::good(word),
        Verdict::Fail => ui::bad(word),
        Verdict::Wait | Verdict::Unknown => ui::warn(word),
    }
}

#[expect(clippy::cast_precision_loss, reason = "one digit after the point")]
fn seconds(ms: u64) -> String {
    if ms < 100 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1_000.0) }
}
