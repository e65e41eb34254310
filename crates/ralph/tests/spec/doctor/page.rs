//! `docs/doctor.md` has every finding that the code has, and no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::Patient;
use crate::common::{Bed, ME};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Every id in the code, with its severities.
fn in_the_code() -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(Path::new(ROOT).join("crates/ralph/src/doctor")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for severity in ["good", "note", "warning", "error"] {
            for rest in text.split(&format!("Finding::{severity}(")).skip(1) {
                let id = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                let id = id.unwrap_or_else(|| panic!("a finding without a plain id: {rest:.60}"));
                all.entry(id.to_owned()).or_default().insert(severity.to_owned());
            }
        }
    }
    all
}

/// Every id in the table, with its severities.
fn on_the_page() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/doctor.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let severities = cells[2].split(", ").map(str::to_owned).collect();
        assert!(!cells[3].is_empty() && !cells[4].is_empty(), "{row}");
        (cells[1].trim_matches('`').to_owned(), severities)
    })
    .collect()
}

#[test]
fn s2_8_every_finding_is_explained_on_the_page() {
    assert_eq!(in_the_code(), on_the_page());
}

/// The three questions stand first, each with the command that answers it.
#[test]
fn s2_8_the_three_questions_are_answered_by_commands() {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/doctor.md")).unwrap();
    let heads: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(heads[..3], ["The loop did not start", "The loop ended early", "The loop does not end"]);
    let part = |n: usize| page.split("\n## ").nth(n + 1).unwrap();
    for (n, command) in [(0, "$ ralph doctor"), (1, "$ ralph explain"), (1, "$ ralph log"), (2, "$ ralph status"), (2, "$ ralph cancel")] {
        assert!(part(n).contains(command), "{command} under {}", heads[n]);
    }
}

/// The sample of a command's output on the page, without its numbers.
fn sample(command: &str) -> Vec<String> {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/doctor.md")).unwrap();
    let begin = format!("```text\n$ {command}\n");
    let block = page.split(&begin).nth(1).unwrap_or_else(|| panic!("no sample of {command}")).split("```").next().unwrap();
    block.lines().map(without_numbers).collect()
}

/// Times, ids and versions differ from run to run, and so do the places of programs.
fn without_numbers(line: &str) -> String {
    let line = line.split_once(" (/").map_or(line, |(line, _)| line);
    line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

/// Every line of a sample is one that the program prints, in that order.
#[track_caller]
fn is_real(command: &str, printed: &str) {
    let printed: Vec<String> = printed.lines().map(without_numbers).collect();
    let mut rest = printed.iter();
    for line in sample(command) {
        assert!(rest.any(|real| *real == line), "`{command}` does not print this here: {line}\n{printed:#?}");
    }
}

#[test]
fn s2_8_the_samples_are_real() {
    let bed = Bed::new();
    let start = ["start", "Make the tests pass", "--completion-promise", "DONE", "--session", ME];
    bed.ralph_ok(&[&start[..], &["--max-iterations", "2"]].concat());
    bed.stop("I fixed two tests.").send();
    bed.stop("One is left, so I cannot say <promise>DONE</promise> yet.").send();
    is_real("ralph explain", &bed.ralph_ok(&["explain"]));
    is_real("ralph log", &bed.ralph_ok(&["log"]));
    let bed = Bed::new();
    bed.ralph_ok(&start);
    bed.work().send();
    bed.work().send();
    is_real("ralph status", &bed.ralph_ok(&["status"]));
    is_real("ralph cancel", &bed.ralph_ok(&["cancel"]));
    let patient = Patient::new();
    fs::write(patient.bed.path(".git/info/exclude"), ".claude/*.local.*\n").unwrap();
    is_real("ralph doctor", &patient.doctor(&[]).stdout);
}
