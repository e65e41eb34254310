//! `ralph run --item ID`: a loop about one item of a list.

use super::{Output, PATIENCE, Runs};

/// B waits for A, C is optional and has a command.
const LIST: &str = r#"{"features": [
  {"id": "A", "description": "First", "passes": false},
  {"id": "B", "description": "Second", "dependsOn": ["A"], "passes": false, "verify": "test -f b.txt"},
  {"id": "C", "description": "Third", "optional": true, "passes": false}
]}"#;

fn with_list(list: &str, file: &str, script: &str) -> Runs {
    let runs = Runs::new(script);
    runs.bed.write(file, list);
    runs.bed.commit_all("list");
    runs.bed.ralph_ok(&["trust", "--yes"]);
    runs
}

/// The session's script calls ralph.
fn run(runs: &Runs, args: &[&str]) -> Output {
    let mut command = runs.command(args);
    command.env("RALPH", crate::common::RALPH);
    ralph_testkit::process::run_bounded(&mut command, b"", PATIENCE)
}

/// The first session does something else, the second the item, in another run; neither A nor C is done, and the loop is complete.
#[test]
fn f3_a_run_that_is_held_to_one_item_is_complete_when_that_is_proven() {
    let script = "echo $N >> work.txt; [ $N = 1 ] || { touch b.txt; \"$RALPH\" item done B; }\n";
    let runs = with_list(LIST, "feature_list.json", script);
    let out = run(&runs, &["--item", "b", "-n", "1"]);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    assert_eq!(runs.ruled(), [(1, "gate.failed".to_owned())]);
    let prompt = runs.prompt(1);
    assert!(prompt.contains("B: Second") && !prompt.contains("First") && !prompt.contains("Third"), "{prompt}");
    let shown = runs.bed.ralph_ok(&["item"]);
    assert!(shown.contains("Next: B: Second"), "{shown}");
    let out = run(&runs, &["--continue"]);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    assert_eq!(runs.ruled().last(), Some(&(2, "gates.passed".to_owned())));
    assert!(!runs.is_live() && runs.sessions() == 2);
    let report = runs.bed.ralph_ok(&["report", "--markdown"]);
    assert!(report.contains("Second") && !report.contains("Third"), "{report}");
}

/// Optional for the list is not optional for the loop that is about it.
#[test]
fn f3_an_optional_item_has_to_be_done_by_the_loop_that_is_about_it() {
    let runs = with_list(LIST, "feature_list.json", "echo $N >> work.txt\n");
    let out = run(&runs, &["Go", "--item", "C", "-n", "1"]);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    assert_eq!(runs.ruled(), [(1, "gate.failed".to_owned())]);
}

/// An agent that points its loop at an item that is done already ends nothing: the person is asked.
#[test]
fn f3_the_item_is_sealed() {
    let list = LIST.replacen("\"passes\": false", "\"passes\": true", 1);
    let script = "echo $N >> work.txt; sed -i 's/^item: .*/item: A/' .claude/ralph-loop.local.md\n";
    let runs = with_list(&list, "feature_list.json", script);
    let out = run(&runs, &["Go", "--item", "B", "-n", "2"]);
    assert!(out.code == Some(12) && runs.is_live(), "{}{}", out.stdout, out.stderr);
    assert!(runs.ruled().iter().all(|(_, code)| code != "gates.passed"), "{:?}", runs.ruled());
    assert!(out.stderr.contains("item B → A") || out.stdout.contains("item B → A"), "{}{}", out.stdout, out.stderr);
}

/// Nor does one that takes its own item out of the list.
#[test]
fn f3_an_item_that_is_gone_is_not_done() {
    let script = "echo $N >> work.txt; printf '[{\"id\": \"A\", \"passes\": true}]' > feature_list.json\n";
    let runs = with_list(LIST, "feature_list.json", script);
    let out = run(&runs, &["Go", "--item", "B", "-n", "1"]);
    assert!(runs.is_live() && runs.ruled() == [(1, "gate.unknown".to_owned())], "{:?}: {}{}", runs.ruled(), out.stdout, out.stderr);
}

/// A check box without a label is called by its place; the loop stays with the box that was meant when another is put before it.
#[test]
fn f3_a_box_without_an_id_is_known_by_its_words() {
    let script = "echo $N >> work.txt; sed -i '1i - [x] Zeroth' feature_list.json\n";
    let runs = with_list("- [x] First\n- [ ] Second\n- [ ] Twin\n- [ ] Twin\n", "feature_list.json", script);
    let out = run(&runs, &["Go", "--item", "item-2", "-n", "1"]);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    assert_eq!(runs.ruled(), [(1, "gate.failed".to_owned())], "item-2 is the first one now, and done");
    runs.bed.ralph_ok(&["cancel"]);
    let out = run(&runs, &["Go", "--item", "item-5", "-n", "1"]);
    assert!(out.code == Some(1) && out.stderr.contains("give it an id"), "{}", out.stderr);
}

#[test]
fn f3_an_item_that_does_not_exist_is_refused_before_anything_starts() {
    let runs = with_list(LIST, "feature_list.json", "true\n");
    let out = run(&runs, &["Go", "--item", "BB", "-n", "1"]);
    assert!(out.code == Some(1) && out.stderr.contains("BB"), "{}", out.stderr);
    runs.bed.write(
        "ralph.toml",
        "[[gate]]\nname = \"a\"\nfeatures = \"feature_list.json\"\n[[gate]]\nname = \"b\"\nfeatures = \"other.json\"\n",
    );
    let out = run(&runs, &["Go", "--item", "B", "-n", "1"]);
    assert!(out.code == Some(1) && out.stderr.contains("one list"), "{}", out.stderr);
    assert!(!runs.is_live() && runs.sessions() == 0);
}
