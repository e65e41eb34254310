//! What people and programs see: the screen in a terminal, the report, the figures for Prometheus.

use std::time::Duration;

use ralph_testkit::{Pty, prometheus};
use serde_json::Value;

use crate::bed::{Bed, compact};

/// One that landed after its gate failed once, one that needs a person, one that waits for it.
fn evening() -> Bed {
    let list = r#"{"features": [{"id": "a", "description": "alpha", "passes": false},
        {"id": "stuck", "description": "A long title that has more words than a narrow terminal has columns to show them in", "passes": false},
        {"id": "later", "description": "gamma", "dependsOn": ["stuck"], "passes": false}]}"#;
    let agent = "case \"$task\" in alpha) echo x > a.txt; say a;; *) echo 'there is no key';; esac\n";
    let bed = Bed::new(&[("feature_list.json", list)], agent);
    // It passes in the slot, fails when the lander tries it first, and passes then.
    bed.write_outside("gate.sh", "n=$(cat \"$MARKS/n\" 2>/dev/null || echo 0); n=$((n+1)); echo $n > \"$MARKS/n\"; [ $n != 2 ]\n");
    let gate = format!("test -f a.txt && sh '{}'", bed.root.path().join("gate.sh").display());
    let (code, said) = bed.run("feature_list.json", &["--workers", "2", "--verify", &gate, "--usd", "20"]);
    assert_eq!(code, 12, "{said}");
    bed
}

#[test]
fn f6_the_report_has_time_lines_costs_flaky_gates_and_the_backlog() {
    let bed = evening();
    let (code, said) = bed.fleet(&["report"]);
    assert_eq!(code, 0, "{said}");
    for part in [
        "1 of 3 landed",
        "1 needs you",
        "spent",
        "until it landed",
        "█ an agent works",
        "Backlog: 1 waits for others to land. One landed every",
        "waits for stuck",
        "Failed once and passed when tried again:\n  1 × ",
        "ralph fleet release JOB",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.trim_end().ends_with("git switch main && git merge --ff-only ralph/feature-list"), "{said}");
    let line = said.lines().skip_while(|line| !line.contains("a  alpha")).nth(1).unwrap();
    assert!(line.contains('█') && line.chars().count() <= 70, "{line:?}");
    let (_, json) = bed.fleet(&["report", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let job = json["jobs"].as_array().unwrap().iter().find(|job| job["id"] == "a").unwrap();
    let phases: Vec<&str> = job["time_line"].as_array().unwrap().iter().map(|span| span["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["work", "queue", "landing"], "{job}");
    assert_eq!((&job["attempts"][0]["iterations"], &job["attempts"][0]["usd"]), (&1.into(), &0.0.into()), "{job}");
    assert_eq!(json["flaky"].as_array().unwrap().len(), 1);
    let iterations: u64 = json["workers"].as_object().unwrap().values().map(|worker| worker["iterations"].as_u64().unwrap()).sum();
    let counted: u64 = json["jobs"].as_array().unwrap().iter().map(|job| job["iterations"].as_u64().unwrap()).sum();
    assert_eq!(iterations, counted, "{json}");
}

#[test]
fn f6_prometheus_reads_the_figures_of_a_fleet() {
    let bed = evening();
    let (code, text) = bed.fleet(&["metrics"]);
    assert_eq!(code, 0, "{text}");
    let Some(samples) = prometheus::samples(&text) else { return };
    let value = |name: &str, label: &str, is: &str| {
        let found = samples.iter().filter(|(n, labels, _)| n == name && (label.is_empty() || labels[label] == is)).map(|s| s.2);
        found.collect::<Vec<f64>>()
    };
    for (state, count) in [("landed", 1.0), ("needs you", 1.0), ("waits", 1.0), ("runs", 0.0)] {
        assert_eq!(value("ralph_fleet_jobs", "state", state), [count], "{state}: {text}");
    }
    assert_eq!(value("ralph_fleet_jobs_held_back", "", ""), [1.0]);
    assert_eq!(value("ralph_fleet_cost_dollars_total", "", ""), [0.0]);
    assert_eq!(value("ralph_fleet_cost_dollars_limit", "", ""), [20.0]);
    assert_eq!(value("ralph_fleet_paused", "", ""), [0.0]);
    assert_eq!(value("ralph_fleet_flaky_total", "", ""), [1.0]);
    assert!(value("ralph_fleet_seconds_total", "phase", "work")[0] > 0.0, "{text}");
    assert!(samples.iter().all(|(_, labels, _)| labels["fleet"].as_str().unwrap().starts_with("feature-list-")), "{text}");
    let types = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(types, text.lines().filter(|line| line.starts_with("# HELP ")).count());
}

/// Nothing wraps, what needs a person comes first, keys work, and the terminal is given back.
#[test]
fn f6_the_screen_fits_a_small_terminal_and_gives_it_back() {
    let bed = evening();
    for (rows, columns) in [(24, 80), (15, 60), (8, 40)] {
        let mut command = bed.command(&[]);
        command.env("TERM", "xterm-256color");
        let pty = Pty::spawn(command, rows, columns);
        let wait = |wanted: &str| {
            pty.wait_for(|screen| screen.contains(wanted), Duration::from_mins(1)).unwrap_or_else(|s| panic!("{wanted}: {s}"))
        };
        let screen = wait("q leaves");
        let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
        assert!(lines.len() <= usize::from(rows), "{screen}");
        assert!(lines[0].starts_with("ralph fleet · feature_list.json"), "{screen}");
        assert!(lines[1].starts_with("1 of 3 landed"), "{screen}");
        let at = |word: &str| lines.iter().position(|line| line.starts_with(word));
        assert!(at("needs you") < at("waits") && at("needs you").is_some() && at("waits") < at("landed"), "{screen}");
        assert!(lines.iter().any(|line| line.contains("Ralph: paused")), "what a person has to know is cut off: {screen}");
        pty.send("p");
        wait("paused: nothing new begins");
        assert_eq!(bed.status()["wish"], "pause");
        pty.send("p");
        wait("p pauses");
        pty.send("q");
        assert_eq!(pty.wait_exit(Duration::from_mins(1)), Some(0));
        let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
        assert!(raw.contains("\x1b[?1049h") && raw.trim_end().ends_with("\x1b[?1049l"), "{raw:?}");
    }
}

/// Hundreds of jobs: what matters is on the screen, and the rest is counted.
#[test]
fn f6_the_screen_counts_what_it_cannot_show() {
    let ids: Vec<String> = (0..300).map(|n| format!("item-{n}")).collect();
    let list = compact(&ids.iter().map(|id| (id.as_str(), "words")).collect::<Vec<_>>());
    let bed = Bed::new(&[("feature_list.json", &list)], "say x\n");
    assert_eq!(bed.run("feature_list.json", &["--verify", "true", "--usd", "0.01"]).0, 10);
    let mut command = bed.command(&[]);
    command.env("TERM", "xterm");
    let pty = Pty::spawn(command, 15, 60);
    let screen = pty.wait_for(|screen| screen.contains("q leaves"), Duration::from_mins(1)).unwrap_or_else(|s| panic!("{s}"));
    assert!(screen.contains("… and 29"), "{screen}");
    // Into a pipe goes all of it, once.
    let (code, said) = bed.fleet(&[]);
    assert!(code == 0 && said.lines().filter(|line| line.contains("item-")).count() == 300 && !said.contains('\x1b'), "{said}");
}
