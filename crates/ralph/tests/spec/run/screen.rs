//! `ralph run` in a real terminal: what a person sees, while it works and when it has ended, and what Ctrl-C does.

use std::fs;

use ralph_testkit::pty::Pty;
use unicode_width::UnicodeWidthStr;

use super::{PATIENCE, Runs, lives, until};

/// Says something, then waits; what it is asked to say last comes before its end.
const TALKS: &str = r#"
trap 'touch "$OUT/hit"' INT
echo "$$" > "$OUT/pid"
echo "I look at the tests."
echo "$N" >> work.txt
while [ ! -f "$OUT/go" ]; do sleep 0.05; done
cat "$OUT/go"
rm "$OUT/go"
"#;

/// A run in a terminal of this width, in which the first session has said its first words.
fn begun(runs: &Runs, cols: u16, args: &[&str], env: &[(&str, &str)]) -> Pty {
    let mut command = runs.command(&["Go", "--completion-promise", "DONE", "--max-iterations", "3"]);
    command.args(args).env("TERM", "xterm-256color").envs(env.iter().copied());
    let pty = Pty::spawn(command, 30, cols);
    // Where a line is not cleared, blanks cover the rest of what was there.
    let says = |screen: &str| screen.lines().any(|line| line.trim_end() == "I look at the tests.");
    shows(&pty, "the first words", |screen| says(screen) && bottom(screen).contains(" s"));
    pty
}

#[track_caller]
fn shows(pty: &Pty, what: &str, wanted: impl Fn(&str) -> bool) -> String {
    pty.wait_for(wanted, PATIENCE).unwrap_or_else(|screen| panic!("{what}:\n{screen}"))
}

/// The last line that has something on it.
fn bottom(screen: &str) -> &str {
    screen.trim_end().lines().next_back().unwrap_or_default().trim_end()
}

fn go(runs: &Runs, last_words: &str) {
    let (draft, go) = (runs.out("draft"), runs.out("go"));
    fs::write(&draft, last_words).unwrap();
    fs::rename(draft, go).unwrap();
}

/// Its exit code and its last screen, on which nothing is left of the line at the bottom and the cursor is where a prompt comes.
fn ended(pty: &Pty) -> (Option<i32>, String) {
    assert!(pty.wait_closed(PATIENCE), "{}", pty.screen());
    let screen = pty.screen();
    for line in screen.lines() {
        let is_left_over = (line.starts_with("iteration ") && line.contains(" s ·")) || line.contains("is judged") || line.contains("^C");
        assert!(!is_left_over, "{line:?} is left over:\n{screen}");
    }
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    let cursor = |shown: &str| raw.rfind(&format!("\u{1b}[?25{shown}"));
    assert!(cursor("l") <= cursor("h"), "the cursor is hidden");
    assert!(!raw.contains("\u{1b}[?1049h"), "what went by would be gone");
    (pty.wait_exit(PATIENCE), screen)
}

/// S4-6: words as they come, below them a line that counts, and nothing of it is left at the end.
#[test]
fn s4_6_a_terminal_shows_a_round() {
    let runs = Runs::new(TALKS);
    let pty = begun(&runs, 80, &["-n", "1"], &[]);
    let screen = shows(&pty, "a line that counts", |screen| bottom(screen).starts_with("iteration 1 of 3 · 1 s"));
    assert!(screen.contains("\nIteration 1 of 3\nI look at the tests.\niteration 1 of 3 · "), "{screen}");
    go(&runs, "That is all.\n");
    let (code, screen) = ended(&pty);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("I look at the tests.\nThat is all.\n"), "{screen}");
    assert!(screen.contains("\niteration 1: not claimed yet · next is iteration 2\n\ndone for now · 1 iteration\n"), "{screen}");
    assert_eq!(bottom(&screen).trim_start(), "`ralph run --continue` goes on.", "{screen}");
}

/// S4-6: a terminal that changes its size, and one that is narrow: words are broken between them, and the line at the bottom stays one line.
#[test]
fn s4_6_a_terminal_may_change_its_size() {
    const LONG: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen.\n";
    let runs = Runs::new(TALKS);
    let pty = begun(&runs, 100, &["-n", "2"], &[]);
    pty.resize(30, 30);
    go(&runs, LONG);
    let screen = shows(&pty, "the second iteration", |screen| runs.sessions() == 2 && bottom(screen).starts_with("iteration 2 of 3 · 1 s"));
    assert!(screen.contains("one two three four five six\nseven eight nine ten eleven\ntwelve thirteen fourteen\nfifteen.\n"), "{screen}");
    pty.resize(30, 120);
    go(&runs, LONG);
    let (code, screen) = ended(&pty);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains(&format!("\n{LONG}")), "{screen}");
}

/// S4-6: in a narrow terminal no line is wider than it is, from the first to the last.
#[test]
fn s4_6_a_narrow_terminal_is_wide_enough() {
    let runs = Runs::new(TALKS);
    let pty = begun(&runs, 40, &["-n", "1", "--verify", "false"], &[]);
    go(&runs, "世界 平和 テスト 修正 世界 平和 テスト 修正 世界 平和 テスト 修正\n");
    let (code, screen) = ended(&pty);
    assert_eq!(code, Some(0), "{screen}");
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    let text = anstream::adapter::strip_str(&raw).to_string();
    for line in text.split(['\n', '\r']) {
        let has_long_word = line.split_whitespace().any(|word| word.width() > 30);
        assert!(line.width() <= 40 || has_long_word, "{line:?}");
    }
}

/// No colour where none is wanted; places on the screen are no colours.
#[test]
fn s4_6_no_color_is_respected_in_a_run() {
    let runs = Runs::new(TALKS);
    let coloured = |pty: &Pty| {
        let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
        ["[1m", "[2m", "[3", "[9"].iter().any(|style| raw.contains(&format!("\u{1b}{style}")))
    };
    for (env, wanted) in [(&[("NO_COLOR", "1")][..], false), (&[][..], true)] {
        let pty = begun(&runs, 80, &["-n", "1"], env);
        go(&runs, "");
        let (code, screen) = ended(&pty);
        assert_eq!(code, Some(0), "{screen}");
        assert_eq!(coloured(&pty), wanted, "{env:?}");
        runs.bed.ralph_ok(&["cancel"]);
        fs::remove_file(runs.out("sessions")).unwrap();
    }
}

/// S4-6: Ctrl-C once: the screen says that this is the last round, the agent hears nothing of it, and the round is finished and judged.
#[test]
fn s4_6_ctrl_c_once_finishes_the_round() {
    let runs = Runs::new(TALKS);
    let pty = begun(&runs, 80, &[], &[]);
    pty.send("\u{3}");
    let screen = shows(&pty, "the word of it", |screen| bottom(screen).ends_with("ends after this iteration, Ctrl-C ends it now"));
    assert!(screen.contains("\nEnds after this iteration. Ctrl-C once more ends it now.\n"), "{screen}");
    go(&runs, "Finished.\n");
    let (code, screen) = ended(&pty);
    assert_eq!(code, Some(130), "{screen}");
    assert!(
        screen.contains("Finished.\n") && screen.contains("\ninterrupted · 1 iteration\n  the loop stops at iteration 2\n"),
        "{screen}"
    );
    assert!(!runs.out("hit").exists(), "the agent got the person's Ctrl-C");
    assert_eq!((runs.ruled().len(), runs.bed.iteration(), runs.bed.value("active")), (1, 2, "false".to_owned()));
}

/// S4-6: twice: now, and nothing is left, neither of the agent nor on the screen.
#[test]
fn s4_6_ctrl_c_twice_ends_the_session() {
    let runs = Runs::new(TALKS);
    let pty = begun(&runs, 80, &[], &[]);
    until("the agent's number", || !runs.noted("pid").trim().is_empty());
    let agent: u32 = runs.noted("pid").trim().parse().unwrap();
    pty.send("\u{3}");
    shows(&pty, "the word of it", |screen| screen.contains("Ends after this iteration."));
    pty.send("\u{3}");
    let (code, screen) = ended(&pty);
    assert_eq!(code, Some(130), "{screen}");
    assert!(!lives(agent) && screen.contains("\ninterrupted · 0 iterations\n  the loop stops at iteration 1\n"), "{screen}");
    assert_eq!((runs.ruled().len(), runs.bed.iteration(), runs.bed.value("active")), (0, 1, "false".to_owned()));
}

/// S4-6: a gate that takes its time is shown, and so is that a Ctrl-C was heard meanwhile.
#[test]
fn s4_6_a_gate_that_runs_is_shown() {
    let runs = Runs::new(TALKS);
    let file = runs.out("gate");
    let gate = format!("while [ ! -f '{}' ]; do sleep 0.05; done", file.display());
    let pty = begun(&runs, 80, &["--verify", &format!("[ -f work.txt ] && {gate}")], &[]);
    go(&runs, "<promise>DONE</promise>\n");
    shows(&pty, "the gate", |screen| bottom(screen).starts_with("gate [ -f work.txt ]"));
    pty.send("\u{3}");
    shows(&pty, "the word of it", |screen| screen.contains("\nEnds after this iteration."));
    fs::write(&file, "").unwrap();
    let (code, screen) = ended(&pty);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("\n✓ complete · 1 iteration\n"), "{screen}");
}
