//! What a person does while a loop waits for CI: the real client in a terminal, the real `gh`, a scripted model and a scripted GitHub.

use std::{fs, thread, time::Duration};

use crate::real::hub::{BRANCH, Hubbed};
use crate::real::terminal::*;
use crate::real::*;
use ralph_testkit::{Gate, ModelServer, Origin, Reply, Skip, Tui, Version, or_skip};

const TASK: &str = "Fix the checks of PR #1";

/// A project with an open pull request whose only check runs, and whose presets ask for nothing else.
struct Waits {
    hubbed: Hubbed,
    head: String,
}

impl std::ops::Deref for Waits {
    type Target = Hubbed;

    fn deref(&self) -> &Hubbed {
        &self.hubbed
    }
}

impl Waits {
    fn new(version: Version) -> Result<Self, Skip> {
        let hubbed = Hubbed::new(version, "[pr]\naudit = false\nquality = false\nevidence = false\n")?;
        let origin = Origin::known(&hubbed.project);
        origin.commit("src.txt", "it works, nearly\n");
        let head = origin.push();
        hubbed.hub.open(BRANCH, &head);
        hubbed.hub.pending(&head, "build");
        Ok(Self { hubbed, head })
    }

    /// A session whose loop was parked at its first stop; `more` are the options of the loop.
    fn parked(&self, server: &ModelServer, more: &str) -> Tui {
        let tui = self.open(server, &[]);
        enter(&tui, "/ralph-loop", &format!("{TASK}{more} --preset after-pr"));
        sees(&tui, "Ralph: parked at iteration 1");
        self.wait_for("its session is woken");
        tui
    }

    fn wait_for(&self, status: &str) {
        wait_until(status, || self.ralph_ok(&["status"]).contains(status));
    }

    fn goes_red(&self) {
        self.hub.failed(&self.head, "build", "error: nearly is not enough\n");
    }

    /// The processes of ralph's that wait in the background of a session of this project.
    fn waiters(&self) -> Vec<String> {
        let dir = self.project.dir().canonicalize().unwrap();
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        let here = all.filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == dir));
        let commands = here.map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default().replace('\0', " "));
        commands.filter(|command| command.contains("hook claude --wait")).collect()
    }

    /// No process is left, and no mark of one.
    fn assert_nobody_waits(&self) {
        wait_until("the end of the wait", || self.waiters().is_empty());
        let locks = fs::read_dir(self.project.path(".ralph/locks")).into_iter().flatten().map(|entry| entry.unwrap().path());
        let marks: Vec<_> = locks.filter(|path| path.extension().is_some_and(|e| e == "waiter")).collect();
        assert!(marks.is_empty() || !self.ralph_ok(&["status"]).contains("is woken"), "{marks:?}");
    }
}

/// A turn of the agent's that does not end: what comes after it is not this test's.
fn last_turn(gate: &Gate) -> Reply {
    say("I see to it at once, and").hang(gate)
}

/// S2-5: who speaks to a session that waits is answered; the wait goes on from the stop after that, Esc or no Esc, and the session is woken once.
fn s2_5_a_person_who_speaks_while_it_waits_is_answered_and_the_session_is_woken_once(version: Version) {
    let bed = or_skip!(Waits::new(version));
    // A second registration: every hook runs twice.
    bed.install(&bed.checkout());
    let gate = Gate::new();
    let _opens = Opens(&gate);
    let server = ModelServer::scripted([say("I looked."), say("It still runs."), last_turn(&gate), round(4)]);
    let tui = bed.parked(&server, "");
    tui.escape();
    thread::sleep(Duration::from_millis(300));
    tui.submit("what are you waiting for?");
    sees(&tui, "It still runs.");
    bed.wait_journal("the second stop", |journal| journal.codes() == ["gate.waiting", "gate.waiting"]);
    bed.wait_for("its session is woken");
    wait_until("one wait", || bed.waiters().len() == 1);
    bed.goes_red();
    sees(&tui, "Ralph: iteration 2.");
    assert!(gate.wait_reached(SOON));
    thread::sleep(QUIET);
    let requests = server.main_requests();
    assert_eq!(requests.len(), 3, "one wake");
    assert!(requests[2].last_user_text().contains("error: nearly is not enough"), "{}", requests[2].last_user_text());
    assert_eq!(bed.journal().codes(), ["gate.waiting", "gate.waiting", "promise.missing"]);
    assert_eq!((bed.value("active"), bed.value("iteration")), ("true".to_owned(), "2".to_owned()));
    bed.assert_nobody_waits();
}
newest!(s2_5_a_person_who_speaks_while_it_waits_is_answered_and_the_session_is_woken_once);

/// S2-5: checks that end while the person's own turn runs are seen at that turn's stop, and nobody is woken besides.
fn s2_5_checks_that_end_in_a_turn_of_the_persons_are_told_at_its_stop(version: Version) {
    let bed = or_skip!(Waits::new(version));
    let (turn, gate) = (Gate::new(), Gate::new());
    let _opens = (Opens(&turn), Opens(&gate));
    let server = ModelServer::scripted([say("I looked."), say("It still runs.").hang(&turn), last_turn(&gate), round(4)]);
    let tui = bed.parked(&server, "");
    tui.submit("what are you waiting for?");
    assert!(turn.wait_reached(SOON));
    bed.assert_nobody_waits();
    bed.goes_red();
    thread::sleep(Duration::from_secs(4));
    turn.release();
    sees(&tui, "Ralph: iteration 2.");
    assert!(gate.wait_reached(SOON));
    thread::sleep(QUIET);
    assert_eq!(server.main_requests().len(), 3);
    assert_eq!(bed.journal().codes(), ["gate.waiting", "promise.missing"]);
    assert_eq!(bed.value("iteration"), "2");
}
newest!(s2_5_checks_that_end_in_a_turn_of_the_persons_are_told_at_its_stop);

/// S2-5: `/clear` takes a loop that waits along: the new session is woken with the whole task, and the person is told.
fn s2_5_clear_takes_a_loop_that_waits_along(version: Version) {
    let bed = or_skip!(Waits::new(version));
    let gate = Gate::new();
    let _opens = Opens(&gate);
    let server = ModelServer::scripted([say("I looked."), last_turn(&gate), round(3)]);
    let tui = bed.parked(&server, "");
    tui.submit("/clear");
    sees(&tui, "Ralph: the loop (iteration 1) goes on in this session after /clear.");
    bed.wait_for("its session is woken");
    bed.goes_red();
    sees(&tui, "Ralph: iteration 2.");
    assert!(gate.wait_reached(SOON));
    let woken = server.main_requests()[1].all_text();
    assert!(woken.contains(TASK) && woken.contains("error: nearly is not enough") && !woken.contains("I looked."), "{woken}");
    assert_eq!((server.main_requests().len(), bed.value("iteration")), (2, "2".to_owned()));
}
newest!(s2_5_clear_takes_a_loop_that_waits_along);

/// S2-5: after `/exit` nobody waits, and nothing runs on; `ralph wait` does, and `claude --continue -p` goes on.
fn s2_5_after_exit_ralph_wait_and_continue_go_on(version: Version) {
    let bed = or_skip!(Waits::new(version));
    let server = ModelServer::scripted([say("I looked."), say("On it."), say("Not yet."), round(4)]);
    let tui = bed.parked(&server, " --max-iterations 2");
    tui.submit("/exit");
    assert!(tui.pty.wait_exit(SOON).is_some());
    bed.assert_nobody_waits();
    let status = bed.ralph_ok(&["status"]);
    assert!(status.contains("left behind") && status.contains("CI / build (in progress)"), "{status}");
    bed.goes_red();
    let run = bed.project.run(RALPH).env("PATH", &bed.path).args(["wait", "--timeout", "30"]);
    let waited = bed.env().into_iter().fold(run, |run, (name, value)| run.env(name, value)).output();
    assert!(waited.success() && waited.stdout.contains("CI fails"), "{waited:?}");
    let run = bed.print(&server, "Go on").arg("--continue");
    let output = bed.env().into_iter().fold(run, |run, (name, value)| run.env(name, value)).output();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(bed.journal().codes(), ["gate.waiting", "promise.missing", "limit.iterations"]);
    assert_eq!(server.main_requests().len(), 3);
    bed.assert_archived(2);
}
newest!(s2_5_after_exit_ralph_wait_and_continue_go_on);

/// S2-5: the session that is taken up again says that its loop is parked, and goes on from its next stop.
fn s2_5_a_session_that_is_taken_up_again_says_that_its_loop_is_parked(version: Version) {
    let bed = or_skip!(Waits::new(version));
    let gate = Gate::new();
    let _opens = Opens(&gate);
    let server = ModelServer::scripted([say("I looked."), say("It still runs."), last_turn(&gate), round(4)]);
    let tui = bed.parked(&server, "");
    // Killed without a word.
    assert!(bed.project.run("/bin/sh").args(["-c", &format!("kill -9 {}", tui.pty.pid())]).output().success());
    bed.assert_nobody_waits();
    drop(tui);
    let tui = bed.open(&server, &["--continue"]);
    sees(&tui, "Ralph: this session's loop is parked (iteration 1");
    tui.submit("hello again");
    sees(&tui, "It still runs.");
    bed.wait_for("its session is woken");
    bed.goes_red();
    sees(&tui, "Ralph: iteration 2.");
    assert!(gate.wait_reached(SOON));
    assert_eq!(bed.journal().codes(), ["gate.waiting", "gate.waiting", "promise.missing"]);
    assert_eq!((server.main_requests().len(), bed.value("iteration")), (3, "2".to_owned()));
}
newest!(s2_5_a_session_that_is_taken_up_again_says_that_its_loop_is_parked);

/// S2-5: a compaction changes nothing about the wait.
fn s2_5_a_compaction_does_not_end_the_wait(version: Version) {
    let bed = or_skip!(Waits::new(version));
    // An older client does not compact what is short.
    let server = ModelServer::with(|request| match request.all_text() {
        text if text.contains("error: nearly is not enough") => say("I see to it."),
        text if text.contains("third look") => say("I looked."),
        text if text.contains("second look") => Reply::bash("echo third look"),
        text if text.contains("first look") => Reply::bash("echo second look"),
        _ => Reply::bash("echo first look"),
    });
    let tui = bed.parked(&server, " --max-iterations 2");
    tui.submit("/compact");
    tui.expect("the compaction", SOON, |screen| screen.contains("Compacted"));
    assert!(bed.ralph_ok(&["status"]).contains("its session is woken"));
    bed.goes_red();
    sees(&tui, "Ralph: stopped at its limit of 2 iterations");
    assert_eq!(bed.journal().codes(), ["gate.waiting", "promise.missing", "limit.iterations"]);
}
newest!(s2_5_a_compaction_does_not_end_the_wait);
