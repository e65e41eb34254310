//! What other tools take: figures for Prometheus, JUnit for CI, the summary of a step. Read back by those who read such things for a living.

use std::{collections::BTreeSet, fs};

use ralph_testkit::{prometheus, story};
use serde_json::Value;

use crate::report::{HOSTILE, command, hostile, night, report};

#[test]
fn eyes_4_prometheus_reads_the_figures_of_a_night() {
    let project = night();
    let text = report(&project, &["--prometheus"]);
    let Some(samples) = prometheus::samples(&text) else { return };
    let value = |name: &str, label: &str, is: &str| {
        let found = samples.iter().filter(|(n, labels, _)| n == name && (label.is_empty() || labels[label] == is)).map(|s| s.2);
        found.collect::<Vec<f64>>()
    };
    assert_eq!(value("ralph_loop_status", "status", "complete"), [1.0]);
    assert_eq!(value("ralph_loop_stops_total", "", ""), [12.0]);
    assert_eq!(value("ralph_loop_claims_refused_total", "", ""), [3.0]);
    assert_eq!(value("ralph_loop_acceptance_items", "standing", "claimed"), [1.0]);
    assert_eq!(value("ralph_gate_verdict", "gate", "cargo test"), [1.0]);
    assert_eq!(value("ralph_gate_duration_seconds", "gate", "cargo test"), [41.0]);
    assert!(value("ralph_loop_seconds_total", "phase", "service")[0] > 7_000.0, "{text}");
    let json: Value = serde_json::from_str(&report(&project, &["--json"])).unwrap();
    let micros = json["figures"]["used"]["usd_micros"].as_f64().unwrap();
    assert_eq!(value("ralph_loop_cost_dollars_total", "", "").iter().map(|usd| (usd * 1e6).round()).collect::<Vec<_>>(), [micros]);
    assert!(samples.iter().all(|(_, labels, _)| labels["loop"] == story::ID && labels["name"] == "main"), "{text}");
}

/// Each family is told of once and stands together, whatever gates are called.
#[test]
fn eyes_4_no_name_breaks_the_figures() {
    let project = hostile();
    let text = report(&project, &["--prometheus"]);
    let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert_eq!(types.len(), types.iter().collect::<BTreeSet<_>>().len(), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{text}");
    let Some(samples) = prometheus::samples(&text) else { return };
    let gates: Vec<&Value> = samples.iter().filter(|s| s.0 == "ralph_gate_verdict").map(|s| &s.1["gate"]).collect();
    let named = gates.iter().filter_map(|gate| gate.as_str()).find(|gate| gate.starts_with("cargo clippy")).unwrap();
    assert!(named.contains("<script>") && named.contains("\"'>") && named.contains("style='x' \\ WWW"), "{named}");
    assert!(HOSTILE.contains("<script>"));
}

#[test]
fn eyes_4_the_gates_of_a_loop_as_test_cases() {
    // The stranger's journal knows nothing of one gate that the loop file has.
    let (known, unknown) = (
        "4 0 0 ['cargo clippy', 'cargo test', 'ci', 'features']",
        "5 0 1 ['cargo clippy', 'cargo clippy', 'cargo test', 'ci', 'features']",
    );
    for (project, cases) in [(night(), known), (hostile(), unknown)] {
        let file = project.dir().join("out/gates.xml");
        report(&project, &["--junit", "-o", "out/gates.xml"]);
        let read = "import sys, xml.etree.ElementTree as t\nr = t.parse(sys.argv[1]).getroot()\nprint(r.get('tests'), r.get('failures'), r.get('skipped'), sorted(c.get('name')[:12] for c in r.iter('testcase')))";
        let out = project
            .run("/usr/bin/env")
            .args(["python3", "-c", read])
            .args([file.as_os_str()])
            .env("PATH", std::env::var_os("PATH").unwrap())
            .output();
        assert_eq!(out.stdout.trim(), cases, "{}", out.stderr);
    }
}

/// Other steps have their summaries in the same file.
#[test]
fn eyes_4_a_step_adds_its_summary() {
    let project = night();
    let summary = project.dir().join("summary.md");
    fs::write(&summary, "# Before\n").unwrap();
    let out = command(&project, &["--step-summary"]).env("GITHUB_STEP_SUMMARY", &summary).output();
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), ""), "{}", out.stderr);
    let text = fs::read_to_string(&summary).unwrap();
    assert!(text.starts_with("# Before\n### ") && text.contains("Complete after 12 iterations"), "{text}");
    let out = command(&project, &["--step-summary"]).output();
    assert!(out.code == Some(2) && out.stderr.contains("GITHUB_STEP_SUMMARY is not set"), "{}", out.stderr);
}
