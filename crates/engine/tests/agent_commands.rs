//! Sessions of plain programs that behave badly: whatever they do, the session ends in time, and nothing of it is left.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ralph_core::judge::{
    ToolUse,
    session_outcome::{Cut, Outcome, Trouble},
};
use ralph_engine::{
    hosts::{Host, prices::Prices},
    run::{
        events::Heard,
        session::{Agent, Ended, Session},
    },
    store::runner,
    sys::random,
};
use ralph_testkit::Project;

/// How long anything may take that should be there at once, on a machine that is busy.
const SOON: Duration = Duration::from_secs(20);

struct Bed {
    project: Project,
    agent: Agent,
    prompt: String,
    mark: String,
    silence: Duration,
    limit: Duration,
    grace: Duration,
    heard: Mutex<Vec<Heard>>,
}

impl Bed {
    fn new(script: &str) -> Self {
        Bed {
            project: Project::without_git(),
            agent: Agent::Command(script.to_owned()),
            prompt: "the prompt".to_owned(),
            mark: runner::new_mark("test"),
            silence: SOON,
            limit: SOON,
            grace: Duration::from_millis(300),
            heard: Mutex::default(),
        }
    }

    fn log(&self) -> std::path::PathBuf {
        self.project.home().join("logs/1.log")
    }

    fn run(&self) -> Ended {
        self.run_while(&|| true)
    }

    fn run_while(&self, wish: &dyn Fn() -> bool) -> Ended {
        self.run_telling(&|heard| self.heard.lock().unwrap().push(heard.clone()), wish)
    }

    fn run_telling(&self, hears: &(dyn Fn(&Heard) + Send + Sync), wish: &dyn Fn() -> bool) -> Ended {
        let id = random::uuid();
        let session = Session {
            agent: &self.agent,
            folder: self.project.dir(),
            prompt: &self.prompt,
            id: &id,
            model: Some("a-model"),
            permission_mode: None,
            usd_micros_left: 0,
            prices: &Prices::default(),
            mark: &self.mark,
            iteration: 7,
            silence: self.silence,
            limit: self.limit,
            grace: self.grace,
            log: &self.log(),
        };
        let ended = session.run(hears, wish);
        assert_eq!(self.left(), Vec::<u32>::new(), "nothing is left");
        ended
    }

    /// The processes that are still there.
    fn left(&self) -> Vec<u32> {
        let variable = format!("RALPH_RUN={}", self.mark);
        let has_mark =
            |path: &Path| std::fs::read(path).is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|v| v == variable.as_bytes()));
        let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
        all.filter(|pid| has_mark(Path::new(&format!("/proc/{pid}/environ")))).collect()
    }

    fn lines(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter_map(|heard| if let Heard::Line { text } = heard { Some(text.clone()) } else { None }).collect()
    }
}

#[test]
fn s4_6_any_program_gets_the_prompt_and_its_words_are_the_answer() {
    let bed = Bed::new(
        "cat; echo; echo \"$RALPH_ITERATION $RALPH_MODEL ${#RALPH_SESSION} ${CLAUDECODE-none}\"; echo careful >&2; printf 'no end'",
    );
    let ended = bed.run();
    assert_eq!((ended.outcome, ended.tools), (Outcome::Stopped, ToolUse::Unknown));
    assert_eq!(ended.text.as_deref(), Some("the prompt\n7 a-model 36 none\nno end\n"));
    let mut lines = bed.lines();
    lines.sort();
    assert_eq!(lines, ["7 a-model 36 none", "careful", "no end", "the prompt"]);
    let log = std::fs::read_to_string(bed.log()).unwrap();
    assert!(log.starts_with("$ /bin/sh -c cat;") && log.contains("careful") && log.ends_with("\n# the agent stopped\n"), "{log}");
}

#[test]
fn s4_6_an_exit_code_says_how_it_went() {
    let outcome = |script: &str| Bed::new(script).run().outcome;
    let crash = |code, signal| Outcome::Failed { trouble: Trouble::Crash { code, signal } };
    assert_eq!(outcome("echo usage limit reached, 429; exit 0"), Outcome::Stopped, "words decide nothing");
    assert_eq!(outcome("exit 3"), crash(Some(3), None));
    assert_eq!(outcome("kill -9 $$"), crash(None, Some(9)));
    for script in ["no-such-program-anywhere", ": > x; ./x"] {
        let outcome = outcome(script);
        assert!(matches!(&outcome, Outcome::Failed { trouble: Trouble::CannotStart { why } } if !why.is_empty()), "{outcome:?}");
    }
    let absent = Bed { agent: Agent::Known(Host::ALL[0], "/no/such/claude".into()), ..Bed::new("") };
    assert!(matches!(absent.run().outcome, Outcome::Failed { trouble: Trouble::CannotStart { .. } }));
}

#[test]
fn s4_6_one_that_says_nothing_is_ended_even_if_it_ignores_the_request() {
    for script in [
        "trap '' TERM INT HUP; echo here; while :; do sleep 0.2; done",
        "exec 1>&- 2>&-; sleep 1000",
        "(trap '' TERM; setsid sleep 1000) & sleep 1000",
    ] {
        let bed = Bed { silence: Duration::from_millis(700), ..Bed::new(script) };
        let ended = bed.run();
        assert_eq!(ended.outcome, Outcome::Cut { by: Cut::Silence }, "{script}");
        assert!(ended.work.took_ms >= 700);
    }
}

#[test]
fn s4_6_one_that_talks_for_ever_is_ended_too() {
    let bed = Bed { limit: Duration::from_millis(900), ..Bed::new("while :; do echo on; sleep 0.05; done") };
    assert_eq!(bed.run().outcome, Outcome::Cut { by: Cut::Time });
    assert!(bed.lines().len() > 3);
}

#[test]
fn s4_6_a_wish_to_end_is_heard_soon_and_the_agent_may_tidy_up() {
    let bed = Bed { grace: SOON, ..Bed::new("trap 'echo tidied; exit 1' TERM; echo ready; while :; do sleep 0.05; done") };
    let asked = AtomicUsize::new(0);
    let ended = bed.run_while(&|| {
        asked.fetch_add(1, Ordering::Relaxed);
        !bed.lines().contains(&"ready".to_owned())
    });
    assert_eq!(ended.outcome, Outcome::Interrupted);
    assert_eq!(ended.text.as_deref(), Some("ready\ntidied\n"));
    assert!(asked.into_inner() >= 1);
}

#[test]
fn s4_6_what_left_the_group_dies_with_the_session() {
    let bed = Bed::new(
        "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > daemon; exec sleep 1000' &) ; until test -s daemon; do sleep 0.02; done; echo done",
    );
    let begun = Instant::now();
    let ended = bed.run();
    assert_eq!(ended.outcome, Outcome::Stopped);
    assert!(begun.elapsed() < SOON, "it holds the pipe, and is not waited for");
}

#[test]
fn s4_6_two_hundred_megabytes_cost_neither_memory_nor_the_end_of_the_answer() {
    let bed = Bed {
        limit: Duration::from_mins(3),
        silence: Duration::from_mins(3),
        ..Bed::new(
            "head -c 100000000 /dev/zero | tr '\\0' x; echo; yes 'a line that is neither short nor long, as lines are' | head -c 100000000; echo; echo the end",
        )
    };
    let before = memory_kb();
    let counted = AtomicUsize::new(0);
    let count = |_: &Heard| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let ended = bed.run_telling(&count, &|| true);
    assert_eq!(ended.outcome, Outcome::Stopped);
    let text = ended.text.unwrap();
    assert!((200 << 10..=256 << 10).contains(&text.len()) && text.ends_with("\nthe end\n"), "{} bytes", text.len());
    assert!(counted.into_inner() > 1_000);
    assert!(bed.log().metadata().unwrap().len() < (64 << 20) + 200);
    assert!(memory_kb() < before + 100_000, "{} kB, before {before} kB", memory_kb());
}

/// The most memory that this process ever had, in kilobytes.
fn memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn s4_6_a_huge_prompt_arrives_whole_and_one_that_nobody_reads_does_no_harm() {
    let prompt = "0123456789".repeat(500_000);
    let counted = Bed { prompt: prompt.clone(), ..Bed::new("wc -c") }.run();
    assert_eq!(counted.text.unwrap().trim(), "5000000");
    let unread = Bed { prompt: prompt.clone(), ..Bed::new("exec 0<&-; echo fine") }.run();
    assert_eq!((unread.outcome, unread.text.as_deref()), (Outcome::Stopped, Some("fine\n")));
    let ignored = Bed { prompt, silence: Duration::from_millis(500), ..Bed::new("sleep 1000") }.run();
    assert_eq!(ignored.outcome, Outcome::Cut { by: Cut::Silence });
}

/// S4-6: whoever is told may be slow; that is no silence of the agent's.
#[test]
fn s4_6_a_slow_audience_is_no_silence() {
    let bed = Bed { silence: Duration::from_secs(2), ..Bed::new("for n in $(seq 40); do echo $n; sleep 0.01; done") };
    let ended = bed.run_telling(
        &|heard: &Heard| {
            if matches!(heard, Heard::Line { text } if text == "1") {
                std::thread::sleep(Duration::from_secs(3));
            }
            bed.heard.lock().unwrap().push(heard.clone());
        },
        &|| true,
    );
    assert_eq!(ended.outcome, Outcome::Stopped);
    assert_eq!(bed.lines().len(), 40);
}
