//! Several processes at once: hooks with each other, with a cancel, with a hand that deletes and with one that edits (pains 9, 10; design 4).
//!
//! What a second process does to a hook is tried twice: while the hook is held at each of its system calls on files (in the nightly run at each of
//! all), one after the other, which leaves nothing to luck; and at some moments of a hook that runs freely (in the nightly run at many).

use std::{
    cell::Cell,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use ralph_testkit::{
    killer::{Filter, Outcome, count_syscalls, pause_at_syscall},
    nightly,
};

use crate::common::{Answer, Bed, Event, LOOP, ME, RALPH, loop_text, unique, value_in};

/// A project in memory where there is such a place: thousands of rounds need not wait for a disk.
struct Place {
    bed: Bed,
    dir: PathBuf,
}

impl Place {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let dir = memory.join(format!("ralph-race-{}-{}", std::process::id(), unique()));
        let bed = Bed::new();
        let dir = if fs::create_dir(&dir).is_ok() { dir } else { bed.path("race") };
        fs::create_dir_all(dir.join(".claude")).unwrap();
        Place { bed, dir }
    }

    fn file(&self) -> PathBuf {
        self.dir.join(LOOP)
    }

    fn write(&self, text: &str) {
        fs::write(self.file(), text).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn archive(&self) -> Vec<PathBuf> {
        fs::read_dir(self.dir.join(".ralph/archive")).into_iter().flatten().map(|e| e.unwrap().path()).collect()
    }

    fn event(&self, event: Event<'_>) -> (Command, String) {
        let event = event.env("CLAUDE_PROJECT_DIR", &self.dir).field("cwd", self.dir.to_str().unwrap());
        (event.command(), event.json())
    }

    /// A stop of the owner's, unlike any other.
    fn stop(&self) -> (Command, String) {
        self.event(self.bed.work())
    }

    fn cancel(&self) -> Command {
        let mut command = self.bed.command(RALPH);
        command.arg("cancel").current_dir(&self.dir);
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A started process that waits for its input.
struct Running {
    child: Child,
    stdin: String,
}

impl Running {
    fn start((mut command, stdin): (Command, String)) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running { child, stdin }
    }

    fn feed(mut self) -> Self {
        let mut pipe = self.child.stdin.take().unwrap();
        pipe.write_all(self.stdin.as_bytes()).unwrap();
        self
    }

    fn answer(mut self) -> Answer {
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!((status.code(), err.as_str()), (Some(0), ""), "{out}");
        Answer::of_stdout(&out)
    }
}

/// Waits busily: a sleep is too coarse to hit every moment of a run of some milliseconds.
fn spin(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// A moment of a hook's life, from before it reads the file to after it has answered; any number of tries in a row is spread over all of it.
fn moment(usual: Duration, round: u32) -> Duration {
    usual * (round * 7 % 50) / 40
}

/// Holds the hook of a fresh loop at each of its calls in turn while `meanwhile` happens, and then looks at what it answered and left.
fn at_every_call<T>(place: &Place, fresh: impl Fn(usize), meanwhile: impl Fn(usize) -> T, check: impl Fn(usize, &Answer, T)) {
    fresh(0);
    let (mut command, stdin) = place.stop();
    let count = count_syscalls(&mut command, Filter::pause_points(), stdin.as_bytes());
    assert!(count > 50, "only {count} calls: is this the program?");
    for n in 1..=count {
        fresh(n);
        let (mut command, stdin) = place.stop();
        let mut happened = None;
        let outcome = pause_at_syscall(&mut command, Filter::pause_points(), n, stdin.as_bytes(), || happened = Some(meanwhile(n)));
        let Outcome::Finished { stdout, code: Some(0) } = outcome else { panic!("call {n} of {count}: {outcome:?}") };
        // What is decided by what happened may take fewer calls; what came before it does not.
        let Some(happened) = happened else { continue };
        check(n, &Answer::of_stdout(&stdout), happened);
    }
}

/// How long one hook takes from its input to its end, here and now.
fn usual_time(place: &Place) -> Duration {
    place.write(&loop_text(ME, 1, 0, "DONE"));
    let mut times: Vec<Duration> = (0..5)
        .map(|_| {
            let hook = Running::start(place.stop());
            let begun = Instant::now();
            hook.feed().answer();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[2]
}

/// Eight hooks on one stop, as a plugin, settings and other registrations of one client would call them.
fn eight_at_once(place: &Place, said: &str) -> Vec<Answer> {
    // The brake on idle iterations is another matter: without a cap of the client's it lets 25 of them pass.
    let event = |n| place.event(place.bed.stop(said).by_plugin(n).env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0"));
    // All of them are born before the first one gets its input.
    let running: Vec<Running> = (0..8).map(|n| Running::start(event(n))).collect();
    let fed: Vec<Running> = running.into_iter().map(Running::feed).collect();
    fed.into_iter().map(Running::answer).collect()
}

/// design 4: two hooks for one stop count once. Eight do, too, and all give the same answer.
#[test]
fn pains_6_eight_hooks_on_one_stop_count_once() {
    let place = Place::new();
    // Nothing changes in fifty rounds, and that is not what is tried here.
    let text = |iteration: u64| loop_text(ME, iteration, 0, "DONE").replace("started_at", "stall_rounds: 0\nstarted_at");
    place.write(&text(1));
    for round in 0..50u64 {
        let answers = eight_at_once(&place, &format!("Iteration {round}."));
        assert!(answers[0].blocks(), "{:?}", answers[0]);
        assert!(answers.iter().all(|a| *a == answers[0]), "iteration {round}: {answers:?}");
        assert_eq!(place.text(), text(round + 2), "iteration {round}");
    }
}

/// t13: a model that says the same words again at once. No time tells the two stops apart; who reports them does.
#[test]
fn t13_the_same_words_again_and_again_are_counted_each_time_by_however_many_hooks() {
    let place = Place::new();
    let text =
        |iteration: u64| loop_text(ME, iteration, 20, "DONE").replace("max_iterations: 20\n", "max_iterations: 20\nstall_rounds: 0\n");
    place.write(&text(1));
    for iteration in 1..=19 {
        let answers = eight_at_once(&place, "No change.");
        assert!(answers[0].blocks() && answers.iter().all(|a| *a == answers[0]), "iteration {iteration}: {answers:?}");
        assert_eq!(place.text(), text(iteration + 1), "iteration {iteration}");
    }
    let answers = eight_at_once(&place, "No change.");
    assert!(answers.iter().all(|a| !a.blocks() && *a == answers[0]), "{answers:?}");
    assert!(answers[0].line().contains("limit of 20 iterations"), "{answers:?}");
    assert!(!place.file().exists() && place.archive().len() == 1);
}

/// The same for a stop that completes the loop.
#[test]
fn pains_6_eight_hooks_on_a_completing_stop_agree() {
    let place = Place::new();
    for round in 0..50 {
        place.write(&loop_text(ME, 3, 0, "DONE").replace("09:30:00", &format!("09:30:{round:02}")));
        let answers = eight_at_once(&place, &format!("Iteration {round}.\n<promise>DONE</promise>"));
        assert!(answers.iter().all(|a| !a.blocks()), "iteration {round}: {answers:?}");
        assert!(!place.file().exists());
        assert_eq!(place.archive().len(), round + 1);
        let told = answers[0].line();
        assert!(told.starts_with("Ralph: complete after 3 iterations"), "{told}");
        assert!(answers.iter().all(|a| *a == answers[0]), "iteration {round}: {answers:?}");
    }
}

/// And for one that adopts a loop, and one that reaches its limit.
#[test]
fn pains_6_eight_hooks_adopt_once_and_end_once() {
    let place = Place::new();
    for round in 0..10 {
        place.write(&loop_text("null", 1, 0, "DONE").replace("09:30:00", &format!("09:31:{round:02}")));
        let answers = eight_at_once(&place, &format!("Iteration {round}."));
        assert!(answers[0].blocks() && answers.iter().all(|a| *a == answers[0]), "iteration {round}: {answers:?}");
        assert_eq!(value_in(&place.text(), "iteration"), "2");
        place.write(&loop_text(ME, 3, 3, "DONE").replace("09:30:00", &format!("09:32:{round:02}")));
        let answers = eight_at_once(&place, &format!("Again {round}."));
        assert!(!answers[0].blocks() && answers.iter().all(|a| *a == answers[0]), "iteration {round}: {answers:?}");
    }
}

/// Four sessions stop at the same moment where a loop belongs to nobody: one of them takes it.
#[test]
fn pains_6_one_of_many_sessions_adopts() {
    let place = Place::new();
    for round in 0..25 {
        place.write(&loop_text("null", 1, 0, "DONE").replace("09:30:00", &format!("09:33:{round:02}")));
        let start = |n: u32| Running::start(place.event(place.bed.work().session(&format!("session-{n}"))));
        let running: Vec<Running> = (0..4).map(start).collect();
        let fed: Vec<Running> = running.into_iter().map(Running::feed).collect();
        let answers: Vec<Answer> = fed.into_iter().map(Running::answer).collect();
        assert_eq!(answers.iter().filter(|a| a.blocks()).count(), 1, "iteration {round}: {answers:?}");
        assert_eq!(answers.iter().filter(|a| a.json.is_none()).count(), 3, "iteration {round}: {answers:?}");
        assert_eq!(value_in(&place.text(), "iteration"), "2");
    }
}

/// pains 9: a cancel from another terminal wins against a running hook, wherever that is.
#[test]
fn pains_9_cancel_wins_at_every_call_of_a_hook() {
    let place = Place::new();
    at_every_call(
        &place,
        |n| place.write(&loop_text(ME, 1, 0, "DONE").replace("09:30:00", &format!("09:30:00.{n:03}"))),
        // A hook that has the lock is waited for: the cancel ends after it.
        |_| {
            let mut cancel = place.cancel();
            let mut child = cancel.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let held = Instant::now();
            while child.try_wait().unwrap().is_none() && held.elapsed() < Duration::from_millis(30) {
                std::thread::sleep(Duration::from_millis(1));
            }
            child
        },
        |n, _, cancel| {
            let cancel = cancel.wait_with_output().unwrap();
            assert_eq!(cancel.status.code(), Some(0), "call {n}: {}", String::from_utf8_lossy(&cancel.stderr));
            assert!(!place.file().exists(), "call {n}: the file is there after the cancel");
            let later = Running::start(place.stop()).feed().answer();
            assert!(!later.blocks(), "call {n}: sent back after the cancel: {later:?}");
        },
    );
}

/// The same with a hook that runs freely, 1,000 times of 1,000.
#[test]
fn pains_9_cancel_wins_a_thousand_times() {
    let place = Place::new();
    let usual = usual_time(&place);
    fs::remove_file(place.file()).unwrap();
    let tries = nightly::amount(50, 1000);
    for round in 0..tries {
        place.write(&loop_text(ME, 1, 0, "DONE").replace("09:30:00", &format!("09:30:00.{round:03}")));
        let hook = Running::start(place.stop()).feed();
        spin(moment(usual, round));
        let cancel = place.cancel().stdin(Stdio::null()).output().unwrap();
        // What the cancel says is that it is done: from here on no hook may send anybody back.
        assert!(!place.file().exists(), "iteration {round}: the file is there after the cancel");
        assert_eq!(cancel.status.code(), Some(0), "iteration {round}: {}", String::from_utf8_lossy(&cancel.stderr));
        if round % 10 == 0 {
            let later = Running::start(place.stop()).feed().answer();
            assert!(!later.blocks(), "iteration {round}: sent back after the cancel: {later:?}");
        }
        hook.answer();
        assert!(!place.file().exists(), "iteration {round}: the hook put the file back");
    }
    assert_eq!(place.archive().len(), usize::try_from(tries).unwrap());
}

/// pains 10: a file that somebody deletes while a hook runs is not put back.
#[test]
fn pains_10_a_file_that_is_deleted_meanwhile_stays_deleted() {
    let place = Place::new();
    let usual = usual_time(&place);
    at_every_call(
        &place,
        |_| place.write(&loop_text(ME, 1, 0, "DONE")),
        |_| fs::remove_file(place.file()).unwrap(),
        |n, _, ()| assert!(!place.file().exists(), "call {n}"),
    );
    for round in 0..nightly::amount(25, 400u32) {
        place.write(&loop_text(ME, 1, 0, "DONE"));
        let hook = Running::start(place.stop()).feed();
        spin(moment(usual, round));
        fs::remove_file(place.file()).unwrap();
        hook.answer();
        assert!(!place.file().exists(), "iteration {round}");
    }
}

/// An editor that saves as most do (a new file, renamed over the old one) while a hook runs: the edit stays.
#[test]
fn pains_10_an_edit_that_is_renamed_into_place_is_never_lost() {
    let place = Place::new();
    let usual = usual_time(&place);
    let aside = place.dir.join(".claude/edit.tmp");
    let begin = || place.write(&loop_text(ME, 1, 0, "DONE"));
    let edited = |n: &str| loop_text(ME, 1, 0, "DONE").replace("Make the tests pass.", &format!("Edited at {n}."));
    let is_kept = |n: &str, answer: &Answer| {
        let text = place.text();
        let iteration: u64 = value_in(&text, "iteration").parse().unwrap();
        assert!(iteration <= 2, "{n}: {answer:?}");
        assert_eq!(text, edited(n).replace("iteration: 1", &format!("iteration: {iteration}")), "{n}: {answer:?}");
    };
    let save = || fs::rename(&aside, place.file()).unwrap();
    at_every_call(
        &place,
        |n| {
            begin();
            fs::write(&aside, edited(&format!("call {n}"))).unwrap();
        },
        |_| save(),
        |n, answer, ()| is_kept(&format!("call {n}"), answer),
    );
    for round in 0..nightly::amount(25, 400) {
        let n = format!("iteration {round}");
        begin();
        let hook = Running::start(place.stop()).feed();
        fs::write(&aside, edited(&n)).unwrap();
        spin(moment(usual, round));
        save();
        is_kept(&n, &hook.answer());
    }
}

/// An editor that writes into the file itself (truncate, write) while a hook runs: the edit is not lost, and the loop does not end because the
/// hook read half a file.
#[test]
fn pains_10_an_edit_in_place_neither_gets_lost_nor_ends_the_loop() {
    let place = Place::new();
    let usual = usual_time(&place);
    let begin = |n: usize| place.write(&loop_text(ME, 1, 0, "DONE").replace("09:30:00", &format!("10:00:00.{n:03}")));
    let edited = |n: usize| format!("Edited at {n}.");
    let save = |n: usize, between: Duration| {
        let begun = Instant::now();
        let mut file = fs::File::options().write(true).truncate(true).open(place.file()).unwrap();
        spin(between);
        file.write_all(loop_text(ME, 1, 0, "DONE").replace("Make the tests pass.", &edited(n)).as_bytes()).unwrap();
        begun.elapsed()
    };
    let in_time = Cell::new(0);
    let is_kept = |n: usize, answer: &Answer, took: Duration| {
        // Ralph waits 20 ms for an editor. A busy machine may hold this one up for longer, between its two calls: then nothing was tried.
        if took > Duration::from_millis(15) {
            let _ = fs::remove_file(place.file());
            return;
        }
        in_time.set(in_time.get() + 1);
        let has = |path: &Path| fs::read_to_string(path).is_ok_and(|t| t.contains(&edited(n)));
        let is_archived = || place.archive().iter().any(|path| has(path));
        assert!(has(&place.file()), "{n}: {}: {answer:?}", if is_archived() { "ended by a file that was being written" } else { "lost" });
        fs::remove_file(place.file()).unwrap();
    };
    at_every_call(&place, begin, |n| save(n, Duration::ZERO), |n, answer, took| is_kept(n, answer, took));
    for round in 0..nightly::amount(25, 400) {
        begin(1000 + round);
        let hook = Running::start(place.stop()).feed();
        spin(moment(usual, u32::try_from(round).unwrap()));
        let took = save(1000 + round, Duration::from_micros(300));
        is_kept(1000 + round, &hook.answer(), took);
    }
    assert!(in_time.get() > 0, "every edit was held up");
}

/// Two sessions start their loops at the same moment: one gets the name, the other is told.
#[test]
fn s1_3_two_starts_at_once_make_one_loop() {
    for _ in 0..20 {
        let place = Place::new();
        let start = || {
            let mut command = place.bed.command(RALPH);
            command
                .args(["start", "Go", "--endless"])
                .current_dir(&place.dir)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let children: Vec<Child> = (0..4).map(|_| start()).collect();
        let codes: Vec<Option<i32>> = children.into_iter().map(|c| c.wait_with_output().unwrap().status.code()).collect();
        assert_eq!(codes.iter().filter(|c| **c == Some(0)).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|c| **c == Some(1)).count(), 3, "{codes:?}");
        assert!(place.file().exists());
    }
}
