//! Whole screens, in the sizes that people have.

use ralph_testkit::pty::Pty;
use unicode_width::UnicodeWidthStr;

use super::{PATIENCE, quits, shows, shows_that, story, trimmed, watch};
use crate::common::Bed;

/// What 80 columns and 24 rows show of a loop that rests.
const USUAL: &str = "\
‖ main-20261115-214500  paused                                          /project
iteration 12 of 20 · ends on <promise>DONE</promise> · started 2 h ago
task Make the importer read the new format.
next: you paused it: `ralph resume` goes on.
iterations █████░░░░ 12 of 20            time       ██░░░░░░░ 1 h 50 min of 8 h
money      ██░░░░░░░ about $9.90 of $50  tokens     1.0M, no limit
context    █░░░░░░░░ 10 % of 200k
gates ────────────────────────────────────────────────────────────── 1 of 2 hold
✗ lint   5 s        12 min ago  ✗✗✗✗✗✗✗✗✗✗✗  2 warnings are denied
✓ tests  41 s       12 min ago  ✗✗✗✗✗✓✓✓✓✓✓  142 tests pass
✗ 3 claims refused, last at stop 9 (32 min ago): lint failed: 2 warnings are de…
iterations ─────────────────────────────────────────────────────── 11 iterations
tokens   ███████████ 93k last            cost     ▂▃▄▄▅▆▇█▁▂▃ $0.30 last
duration ███████████ 10 min last         context  ▂▃▃▄▅▅▆▇█▁▂ 10 % last
decisions ──────────────────────────────────────────────────────────────────────
12 min ago  stop 11  sent back to iteration 12: lint failed: 2 warnings are
                     denied                                      promise.missing
22 min ago  stop 10  sent back to iteration 11: lint failed: 2 warnings are
                     denied                                      promise.missing
32 min ago  stop 9   sent back to iteration 10: lint failed: 2 warnings are
                     denied                                     promise.unproven
42 min ago  stop 8   sent back to iteration 9: lint failed: 2 warnings are
                     denied                                      promise.missing
q quit  ? help  l log  r resume  s steer  c cancel";

/// And what a corner of a screen does.
const SMALL: &str = "\
‖ main-20261115-214500  paused
task Make the importer read the new for…
next: you paused it: `ralph resume` goes
on.
iteration 12 of 20 · 1 h 50 min of 8 h
about $9.90 of $50
context 10 % of 200k
✗ lint  ✓ tests
✗ 3 claims refused, last at stop 9 (32…
12 min ago  sent back to iteration 12:
            lint failed: 2 warnings are
q quit  ? help  l log  r resume  s steer";

fn bed() -> Bed {
    let bed = Bed::new();
    story::paused(&bed, 11);
    bed
}

/// Waits for that very screen. One that is still being drawn is none yet.
#[track_caller]
fn is(pty: &Pty, wanted: &str, made: impl Fn(&str) -> String) {
    if let Err(screen) = pty.wait_for(|screen| made(screen) == wanted, PATIENCE) {
        assert_eq!(made(&screen), wanted);
    }
}

/// The temporary folder has another name each time.
fn without_folder(bed: &Bed, screen: &str) -> String {
    let folder = bed.dir().display().to_string();
    trimmed(&screen.replace(&folder, &format!("{:>width$}", "/project", width = folder.len())))
}

#[test]
fn eyes_1_one_screen_tells_where_a_loop_stands_and_follows_its_size() {
    let bed = bed();
    let pty = watch(&bed, &[]);
    is(&pty, USUAL, |screen| without_folder(&bed, screen));
    pty.resize(12, 40);
    is(&pty, SMALL, trimmed);
    pty.resize(50, 160);
    let large = shows_that(&pty, "a large screen", |screen| screen.lines().count() == 50 && screen.contains("stop 1 "));
    assert!(large.lines().all(|line| line.width() <= 160), "{large}");
    assert!(large.contains("promise.unproven") && large.contains("promise.missing"), "{large}");
    let beside = large.lines().find(|line| line.contains("iterations █")).unwrap();
    assert!(beside.contains("sent back to iteration") || beside.contains("decisions"), "side by side: {large}");
    // What does not fit on a small page can be moved to.
    pty.resize(12, 50);
    pty.send("?");
    shows(&pty, "leave; the loop goes on");
    pty.send("\u{1b}[6~\u{1b}[6~\u{1b}[6~\u{1b}[6~");
    shows(&pty, "`ralph steer` do.");
    pty.send("x");
    pty.resize(3, 9);
    shows_that(&pty, "as much as there is room for", |screen| screen.lines().count() == 3 && screen.contains("q quit"));
    quits(&pty);
}

/// All loops of the user: a list, one of them, and back.
#[test]
fn eyes_1_all_loops_of_the_user_are_a_list() {
    let bed = bed();
    let other = bed.home().join("other");
    std::fs::create_dir_all(&other).unwrap();
    bed.register();
    let there = other.display().to_string();
    bed.ralph_ok(&["-C", &there, "start", "Write the docs", "--name", "docs", "--endless"]);
    let pty = watch(&bed, &["--all"]);
    let screen = shows(&pty, "2 loops");
    assert!(screen.contains("~/other") && screen.contains(" docs-") && screen.contains("‖ main-20261115-214500"), "{screen}");
    // The first row is chosen, and above it there is none.
    let is_first = |screen: &str| screen.lines().position(|line| line.contains('▸')) == Some(2);
    assert!(is_first(&screen) && screen.contains("s steer  c cancel"), "{screen}");
    pty.send("\u{1b}[B");
    shows_that(&pty, "the second row", |screen| !is_first(screen));
    pty.send("\u{1b}[A\u{1b}[A");
    shows_that(&pty, "the first row", is_first);
    pty.send("\u{1b}[H\u{1b}[B\r");
    let first = shows_that(&pty, "one of them", |screen| screen.contains("task "));
    pty.send("\u{1b}");
    shows(&pty, "2 loops");
    pty.send("\u{1b}[A\r");
    let second = shows_that(&pty, "the other", |screen| screen.contains("task "));
    let both = format!("{first}{second}");
    assert!(both.contains("task Write the docs") && both.contains("task Make the importer"), "{both}");
    quits(&pty);
}
