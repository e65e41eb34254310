//! Findings as a `JUnit` file, which every CI shows: a test case for each gate. (What is read of such files is in `test_results`.)
//!
//! Gates and commands are called and say whatever they like; nothing of it can break the file.

use std::fmt::Write as _;

use quick_xml::escape::escape;

use crate::{
    gate::{Finding, Verdict},
    text::{
        clean,
        time::{self, Millis},
    },
};

/// The whole file; `suite` is what the findings are about, `at` when they were measured.
pub fn of_findings(suite: &str, at: Millis, findings: &[Finding]) -> String {
    let count = |wanted| findings.iter().filter(|finding| Outcome::of(finding) == wanted).count();
    let sums = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
        findings.len(),
        count(Outcome::Failure),
        count(Outcome::Error),
        count(Outcome::Skipped),
        seconds(findings.iter().map(|finding| finding.took_ms).fold(0, u64::saturating_add)),
    );
    let (suite, at) = (attribute(suite), time::format(at));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{suite}\" {sums}>\n  <testsuite name=\"{suite}\" timestamp=\"{at}\" {sums}>\n"
    );
    for finding in findings {
        case(&mut xml, &suite, finding);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// The states of a test in such files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failure,
    /// It could not be measured.
    Error,
    /// It was not its turn, or is not decided yet.
    Skipped,
}

impl Outcome {
    fn of(finding: &Finding) -> Self {
        match finding.verdict {
            Verdict::Pass => Outcome::Passed,
            _ if finding.skipped => Outcome::Skipped,
            Verdict::Fail => Outcome::Failure,
            Verdict::Wait => Outcome::Skipped,
            Verdict::Unknown => Outcome::Error,
        }
    }
}

fn case(xml: &mut String, suite: &str, finding: &Finding) {
    let (name, time) = (attribute(&finding.gate), seconds(finding.took_ms));
    let _ = writeln!(xml, "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{time}\">");
    let element = match Outcome::of(finding) {
        Outcome::Passed => None,
        Outcome::Failure => Some("failure"),
        Outcome::Error => Some("error"),
        Outcome::Skipped => Some("skipped"),
    };
    if let Some(element) = element {
        let (message, detail) = (attribute(&finding.what), text(&finding.detail));
        let _ = writeln!(xml, "      <{element} type=\"{}\" message=\"{message}\">{detail}</{element}>", finding.verdict.as_str());
    }
    let _ = writeln!(xml, "      <system-out>{}</system-out>\n    </testcase>", text(&beside(finding)));
}

/// Details for a person.
fn beside(finding: &Finding) -> String {
    let known = finding.not_run_again();
    let flaky = finding.flaky.then(|| "it failed first, and passed when it was tried again".to_owned());
    let next = finding.next.as_ref().map(|next| format!("next: {next}"));
    let log = finding.log.as_ref().map(|log| format!("the whole output: {log}"));
    let parts = [Some(finding.what.clone()), known, flaky, finding.needs.clone(), next, log];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

/// One line, to stand between quotation marks.
fn attribute(value: &str) -> String {
    escape(allowed(&value.replace(['\n', '\t'], " "))).into_owned()
}

fn text(value: &str) -> String {
    escape(value.replace('\t', "    ").split('\n').map(allowed).collect::<Vec<_>>().join("\n")).into_owned()
}

/// Without what would steer a terminal, and without the two characters besides that no XML file may hold.
fn allowed(line: &str) -> String {
    clean(line).replace(['\u{fffe}', '\u{ffff}'], "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gate::{Kind, test_results::TestResults};

    fn found(gate: &str, verdict: Verdict, what: &str, detail: &str) -> Finding {
        Finding::new(gate, Kind::Command, verdict, what).with_detail(detail)
    }

    #[test]
    fn eyes_4_a_gate_is_a_test_case() {
        let findings = [
            Finding { took_ms: 1_250, log: Some(".ralph/logs/x.log".to_owned()), ..found("tests", Verdict::Pass, "passed in 1 s", "") },
            Finding { took_ms: 40, ..found("lint", Verdict::Fail, "exit code 1", "a <b> & ]]>\n\u{1b}[31mred\ttab") },
            Finding { skipped: true, ..found("docs", Verdict::Unknown, "not run, because \"lint\" does not hold", "") },
            found("slow", Verdict::Unknown, "did not end", ""),
            found("ci", Verdict::Wait, "CI runs", ""),
        ];
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="ralph gates" tests="5" failures="1" errors="1" skipped="2" time="1.290">
  <testsuite name="ralph gates" timestamp="2026-11-15T09:30:00.000Z" tests="5" failures="1" errors="1" skipped="2" time="1.290">
    <testcase classname="ralph gates" name="tests" time="1.250">
      <system-out>passed in 1 s
the whole output: .ralph/logs/x.log</system-out>
    </testcase>
    <testcase classname="ralph gates" name="lint" time="0.040">
      <failure type="fail" message="exit code 1">a &lt;b&gt; &amp; ]]&gt;
[31mred    tab</failure>
      <system-out>exit code 1</system-out>
    </testcase>
    <testcase classname="ralph gates" name="docs" time="0.000">
      <skipped type="unknown" message="not run, because &quot;lint&quot; does not hold"></skipped>
      <system-out>not run, because &quot;lint&quot; does not hold</system-out>
    </testcase>
    <testcase classname="ralph gates" name="slow" time="0.000">
      <error type="unknown" message="did not end"></error>
      <system-out>did not end</system-out>
    </testcase>
    <testcase classname="ralph gates" name="ci" time="0.000">
      <skipped type="wait" message="CI runs"></skipped>
      <system-out>CI runs</system-out>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(of_findings("ralph gates", 1_794_735_000_000, &findings), expected);
    }

    proptest! {
        #[test]
        fn eyes_4_whatever_gates_say_the_file_can_be_read(gate in "[a-z]{1,8}", said in any::<String>(), odd in "[\\x00-\\x1f<>&'\"\\]\u{fffe}\u{ffff}]{0,20}") {
            let what = format!("{said}{odd}");
            let findings = [found(&gate, Verdict::Fail, &what, &what), found(&what, Verdict::Pass, &odd, &said)];
            let results = TestResults::of_junit(of_findings(&odd, 0, &findings).as_bytes()).unwrap();
            prop_assert_eq!((results.passed, results.failed.len()), (1, 1));
            prop_assert!(results.failed.iter().all(|name| name.ends_with(&gate)));
        }
    }
}
