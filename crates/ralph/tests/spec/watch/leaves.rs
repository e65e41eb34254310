//! What is left behind: nothing. Not on the screen, not in the terminal's settings, and next to nothing of the processor's time.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use ralph_testkit::pty::Pty;

use super::{PATIENCE, command, quits, shows, story, watch};
use crate::common::{Bed, RALPH};

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

fn bed() -> Bed {
    let bed = Bed::new();
    story::paused(&bed, 11);
    bed
}

#[track_caller]
fn is_given_back(pty: &Pty) {
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    assert_eq!(raw.matches(ENTER).count(), raw.matches(LEAVE).count(), "{raw:?}");
    let (hidden, shown) = (raw.rfind("\u{1b}[?25l"), raw.rfind("\u{1b}[?25h"));
    assert!(hidden < shown, "the cursor is hidden");
    assert!(raw.rfind("\u{1b}[?2004h") < raw.rfind("\u{1b}[?2004l"), "pastes stay marked");
    assert!(!raw.contains("\u{1b}[?1000h") && !raw.contains("\u{1b}[?1003h"), "the mouse is the terminal's");
}

/// The shell that it came from finds its own screen, and a terminal that echoes; Ctrl-Z goes there and back.
#[test]
fn eyes_1_the_screen_is_given_back() {
    let bed = bed();
    let mut shell = bed.command("/bin/sh");
    let script = format!("set -m; echo before; '{RALPH}' watch; echo code $?; jobs; fg; echo then $?; stty -a; echo after");
    shell.args(["-c", &script]).env("TERM", "xterm-256color");
    let pty = Pty::spawn(shell, 24, 80);
    shows(&pty, "q quit");
    pty.send("\u{1a}");
    // The shell has the screen for a moment only: that it had it is seen in what was written.
    let begun = Instant::now();
    while String::from_utf8_lossy(&pty.raw()).matches(ENTER).count() < 2 {
        assert!(begun.elapsed() < PATIENCE, "{}", pty.screen());
        thread::sleep(Duration::from_millis(20));
    }
    shows(&pty, "q quit");
    quits(&pty);
    is_given_back(&pty);
    let screen = pty.screen();
    assert!(screen.contains("before") && screen.contains("then 0") && screen.contains("after"), "{screen}");
    assert!(["icanon", "echo", "isig", "opost"].iter().all(|set| screen.split_whitespace().any(|word| word == *set)), "{screen}");
    assert!(!screen.contains("q quit"), "{screen}");
}

/// Whoever ends it by a signal gets the terminal back, too.
#[test]
fn eyes_1_a_signal_gives_the_screen_back() {
    let bed = bed();
    for signal in ["-TERM", "-HUP", "-INT"] {
        let pty = watch(&bed, &[]);
        shows(&pty, "q quit");
        assert!(bed.run("kill").args([signal, &pty.pid().to_string()]).output().success());
        assert_eq!(pty.wait_exit(PATIENCE), Some(0), "{signal}");
        assert!(pty.wait_closed(PATIENCE));
        is_given_back(&pty);
        assert!(pty.screen().trim().is_empty(), "{}", pty.screen());
    }
}

/// Without colour there is none, not even by numbers; with nothing but plain characters there are marks for all of it.
#[test]
fn eyes_1_less_able_terminals_are_drawn_on_with_what_they_have() {
    let bed = bed();
    let drawn = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = command(&bed, args);
        command.envs(env.iter().copied());
        let pty = Pty::spawn(command, 24, 80);
        let screen = shows(&pty, "q quit");
        quits(&pty);
        (screen, String::from_utf8_lossy(&pty.raw()).into_owned())
    };
    let colours = |raw: &str| {
        let sequences = raw.split("\u{1b}[").filter_map(|part| part.split_once('m')).map(|(numbers, _)| numbers);
        let numbers =
            sequences.filter(|numbers| numbers.chars().all(|c| c.is_ascii_digit() || c == ';')).flat_map(|numbers| numbers.split(';'));
        numbers.filter_map(|number| number.parse::<u8>().ok()).filter(|n| matches!(n, 30..=38 | 40..=48 | 90..=107)).count()
    };
    assert!(colours(&drawn(&[], &[]).1) > 0);
    for (args, env) in [(&[][..], &[("NO_COLOR", "1")][..]), (&["--color", "never"], &[])] {
        let (screen, raw) = drawn(args, env);
        assert_eq!(colours(&raw), 0, "{raw:?}");
        assert!(screen.contains("✓ tests") && screen.contains("✗ lint"), "{screen}");
    }
    let (screen, _) = drawn(&[], &[("LC_ALL", "POSIX")]);
    assert!(screen.is_ascii() && screen.contains("+ tests") && screen.contains("x lint") && screen.contains("###"), "{screen}");
}

/// Where it cannot be drawn, it is said what to use instead.
#[test]
fn eyes_1_without_a_terminal_it_says_what_to_use() {
    let bed = bed();
    let piped = bed.ralph(&["watch"]);
    assert_eq!(piped.code, Some(2), "{piped:?}");
    assert!(piped.stderr.contains("`ralph status`") && piped.stderr.contains("`ralph log -f`"), "{piped:?}");
    let mut dumb = command(&bed, &[]);
    dumb.env("TERM", "dumb");
    let pty = Pty::spawn(dumb, 24, 80);
    assert_eq!(pty.wait_exit(PATIENCE), Some(2));
    assert!(pty.wait_closed(PATIENCE));
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    assert!(raw.contains("cannot draw on this terminal") && !raw.contains(ENTER), "{raw:?}");
    let none = watch(&bed, &["nobody"]);
    assert_eq!(none.wait_exit(PATIENCE), Some(1));
    assert!(!String::from_utf8_lossy(&none.raw()).contains(ENTER));
}

/// Ten thousand rounds are there at once, whole, and then nothing is done until something happens.
#[test]
fn eyes_1_a_long_journal_opens_and_a_resting_loop_costs_nothing() {
    let bed = Bed::new();
    story::paused(&bed, 10_000);
    let pty = watch(&bed, &[]);
    let screen = shows(&pty, "10000 iterations");
    assert!(screen.contains("3333 claims refused"), "{screen}");
    let used = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pty.pid())).unwrap();
        let fields: Vec<u64> = stat.rsplit(')').next().unwrap().split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Ticks of a hundredth of a second, in the program and in the system for it.
        fields[10] + fields[11]
    };
    let woken = || {
        let threads = fs::read_dir(format!("/proc/{}/task", pty.pid())).unwrap();
        let of_thread = |entry: fs::DirEntry| {
            let status = fs::read_to_string(entry.path().join("status")).unwrap();
            status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok()).unwrap()
        };
        threads.map(|entry| of_thread(entry.unwrap())).sum::<u64>()
    };
    thread::sleep(Duration::from_millis(500));
    let (ticks, wakes) = (used(), woken());
    thread::sleep(Duration::from_secs(3));
    let (ticks, wakes) = (used() - ticks, woken() - wakes);
    assert!(ticks <= 3 && wakes <= 20, "in three seconds of rest: {ticks} ticks, woken {wakes} times");
    quits(&pty);
}
