//! What can come between a loop and what it waits for (S2-5): the person, the files, signals, limits, and other waits.

use std::{
    fs,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use ralph_testkit::{Check, Fault};

use crate::{
    common::{Answer, Event, LOOP, ME, OTHER},
    gated::{Running, begin, line, send_with},
    hub::Hubbed,
    waiting::{PRINT, soon, wakeable},
};

/// A loop whose pull request's only check runs; the commit.
fn undecided() -> Option<(Hubbed, String)> {
    let (bed, _, head) = Hubbed::with_request()?;
    bed.arm("after-pr", "CI_PASSED");
    bed.hub.pending(&head, "build");
    Some((bed, head))
}

fn wait_for(stop: &Event<'_>) -> Running {
    begin(stop, &["--wait", "--timeout", "120"])
}

/// Parks the loop at this stop; who waits.
#[track_caller]
fn parked_at(stop: &Event<'_>) -> Running {
    let waiter = wait_for(stop);
    let (answer, _) = send_with(stop, &["--timeout", "3600"]);
    assert!(line(&answer).contains("parked at iteration"), "{answer:?}");
    waiter
}

fn parked(bed: &Hubbed) -> Running {
    parked_at(&wakeable(bed))
}

/// A stop whose hook waits by itself.
fn waits_itself(bed: &Hubbed, limit: &str) -> Running {
    let hook = begin(&bed.works().env(PRINT.0, PRINT.1), &["--timeout", limit]);
    assert!(soon(|| bed.kinds_so_far().contains(&"waiting".to_owned())));
    hook
}

impl Hubbed {
    fn kinds_so_far(&self) -> Vec<String> {
        if self.files_in(".ralph/journal").is_empty() { Vec::new() } else { self.kinds() }
    }

    /// Changes the loop file as a person does.
    fn edit(&self, from: &str, to: &str) {
        let text = self.read(LOOP);
        assert!(text.contains(from), "{text}");
        self.write(LOOP, text.replace(from, to));
    }

    fn waiters(&self) -> Vec<std::path::PathBuf> {
        self.kept("waiters")
    }

    /// The line about who waits.
    fn waits_by(&self) -> String {
        self.status()["waits"]["by"].as_str().unwrap_or("no wait").to_owned()
    }
}

/// Its exit code and what it woke the session with, if it ends in time.
#[track_caller]
fn ends_within(mut child: Child, limit: Duration) -> (Option<i32>, String) {
    let until = Instant::now() + limit;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            let _ = child.kill();
            panic!("it goes on waiting after {limit:?}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[track_caller]
fn wakes(waiter: Running) -> String {
    let (code, told) = ends_within(waiter.child, Duration::from_secs(30));
    assert_eq!(code, Some(2), "{told}");
    told
}

#[track_caller]
fn ends_silently(waiter: Running, limit: Duration) {
    assert_eq!(ends_within(waiter.child, limit), (Some(0), String::new()));
}

fn signal(name: &str, pid: u32) {
    let kill = format!("kill -{name} {pid}");
    assert!(Command::new("/bin/sh").args(["-c", &kill]).status().unwrap().success());
}

/// What a hook in the background woke the session with, as the client reports it.
fn wake<'b>(bed: &'b Hubbed, told: &str) -> Event<'b> {
    bed.typed(&format!("<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n{told}"))
}

/// What the agent is sent back with, in either form.
#[track_caller]
fn reason(answer: &Answer) -> String {
    assert!(answer.blocks(), "{answer:?}");
    let json = answer.json.as_ref().unwrap();
    json["reason"].as_str().or(json["hookSpecificOutput"]["additionalContext"].as_str()).unwrap().to_owned()
}

const AT_ONCE: Duration = Duration::from_secs(3);

/// The findings of an earlier stop are history: a wait is over when what is waited for now has been decided, not when something once failed.
#[test]
fn s2_5_what_failed_at_an_earlier_stop_does_not_end_the_wait_again_and_again() {
    let Some((bed, _, head)) = Hubbed::with_request() else { return };
    bed.arm("after-pr", "CI_PASSED");
    bed.green(&head);
    assert!(reason(&wakeable(&bed).send()).contains("is not merged"), "the merge fails at this stop");
    let origin = bed.origin();
    origin.commit("src.txt", "two\n");
    let head = origin.push();
    bed.hub.pending(&head, "build");
    let waiter = parked(&bed);
    let asked = bed.hub.count_of("PullRequestList");
    assert!(soon(|| bed.hub.count_of("PullRequestList") >= asked + 2), "it looks again and again");
    assert_eq!(bed.codes(), ["promise.missing", "gate.waiting"], "nothing is ruled while nothing is decided");
    bed.hub.failed(&head, "build", "error: red\n");
    assert!(wakes(waiter).contains("error: red"));
    assert_eq!(bed.iteration(), 3);
}

/// Who speaks to a session that waits begins a turn: the stop after it is judged, and nobody is woken a second time.
#[test]
fn s2_5_a_message_of_the_persons_takes_over_from_the_wait() {
    let Some((bed, head)) = undecided() else { return };
    let waiter = parked(&bed);
    bed.typed("What are you waiting for?").send().is_silent();
    ends_silently(waiter, AT_ONCE);
    assert_eq!((bed.status()["status"].as_str(), bed.waits_by().as_str()), (Some("active"), "no wait"));
    bed.hub.failed(&head, "build", "error: red\n");
    let stop = wakeable(&bed);
    let waiter = wait_for(&stop);
    assert!(reason(&stop.send()).contains("error: red"));
    ends_silently(waiter, AT_ONCE);
    assert_eq!(bed.iteration(), 2, "counted once");
    assert_eq!(bed.waiters(), [""; 0].map(std::path::PathBuf::from));
}

/// A question to ralph itself begins no turn.
#[test]
fn s2_5_a_status_that_is_asked_for_in_the_session_does_not_end_the_wait() {
    let Some((bed, head)) = undecided() else { return };
    let waiter = parked(&bed);
    assert!(bed.typed("/ralph-status").send().instead().contains("parked"));
    thread::sleep(Duration::from_millis(500));
    assert_eq!(bed.waits_by(), "session");
    bed.hub.failed(&head, "build", "error: red\n");
    wakes(waiter);
    assert_eq!(bed.iteration(), 2);
}

/// A wake that comes when the loop is over, at rest, or waits again sends nobody to work.
#[test]
fn s2_5_a_wake_that_comes_too_late_is_dropped() {
    let Some((bed, head)) = undecided() else { return };
    let waiter = parked(&bed);
    bed.hub.failed(&head, "build", "error: red\n");
    let told = wakes(waiter);
    bed.ralph_ok(&["pause"]);
    assert!(wake(&bed, &told).send().instead().contains("paused"));
    bed.ralph_ok(&["resume"]);
    assert!(wake(&bed, &told).send().json.is_none_or(|json| json.get("continue").is_none()), "it is wanted again");
    bed.hub.pending(&head, "build");
    let waiter = parked(&bed);
    assert!(wake(&bed, &told).send().instead().contains("waits"));
    bed.ralph_ok(&["cancel"]);
    assert!(wake(&bed, &told).send().instead().contains("no loop"));
    ends_silently(waiter, AT_ONCE);
}

/// `/clear` takes the loop to a new session: that one is woken, and its person is told.
#[test]
fn s2_5_after_clear_the_new_session_is_woken_and_told() {
    let Some((bed, head)) = undecided() else { return };
    let pid = std::process::id().to_string();
    bed.event("SessionStart").field("source", "startup").env("CLAUDE_PID", &pid).send();
    let waiter = parked_at(&wakeable(&bed).env("CLAUDE_PID", &pid));
    bed.event("SessionEnd").field("reason", "clear").env("CLAUDE_PID", &pid).send();
    let answer = bed.event("SessionStart").session(OTHER).field("source", "clear").env("CLAUDE_PID", &pid).send();
    assert!(line(&answer).contains("after /clear"), "{answer:?}");
    assert_eq!((bed.status()["status"].as_str(), bed.waits_by().as_str()), (Some("parked"), "session"));
    bed.hub.failed(&head, "build", "error: red\n");
    let told = wakes(waiter);
    assert!(told.contains("Make the tests pass."), "the task stands on its own: {told}");
    let answer = wake(&bed, &told).session(OTHER).send();
    assert!(line(&answer).contains("iteration 2"), "{answer:?}");
    assert_eq!(bed.iteration(), 2);
}

/// Two registrations of both hooks report one stop four times.
#[test]
fn s2_5_two_registrations_count_once_and_wake_once() {
    let Some((bed, head)) = undecided() else { return };
    let stop = wakeable(&bed);
    let by_plugin = stop.clone().by_plugin(1);
    let waiters = [wait_for(&stop), wait_for(&by_plugin)];
    let judges = [begin(&stop, &["--timeout", "3600"]), begin(&by_plugin, &["--timeout", "3600"])];
    for judge in judges {
        let (answer, _) = judge.answer();
        assert!(line(&answer).contains("parked at iteration 1"), "{answer:?}");
    }
    assert_eq!(bed.codes(), ["gate.waiting"]);
    bed.hub.failed(&head, "build", "error: red\n");
    let mut codes = waiters.map(|waiter| ends_within(waiter.child, Duration::from_secs(30)).0);
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)]);
    assert_eq!((bed.iteration(), bed.codes().len()), (2, 2));
}

/// The loop file and `ralph.toml` may change while somebody waits: what they say now counts.
#[test]
fn s2_5_a_changed_ralph_toml_is_seen_while_the_hook_waits() {
    for in_background in [false, true] {
        let Some((bed, head)) = undecided() else { return };
        bed.hub.check(&head, Check::run("lint"));
        let (waiter, hook) = if in_background { (Some(parked(&bed)), None) } else { (None, Some(waits_itself(&bed, "60"))) };
        bed.write("ralph.toml", "[pr]\naudit = false\nquality = false\nevidence = false\nignore = ['build']\n");
        if let Some(hook) = hook {
            let (answer, took) = hook.answer();
            assert!(reason(&answer).contains("is not merged") && took < Duration::from_secs(30), "{took:?}");
        }
        if let Some(waiter) = waiter {
            assert!(wakes(waiter).contains("is not merged"));
        }
        assert_eq!(bed.iteration(), 2);
    }
}

#[test]
fn s2_5_a_broken_ralph_toml_ends_the_wait_with_the_reason() {
    for in_background in [false, true] {
        let Some((bed, _)) = undecided() else { return };
        let (waiter, hook) = if in_background { (Some(parked(&bed)), None) } else { (None, Some(waits_itself(&bed, "60"))) };
        bed.write("ralph.toml", "[pr\n");
        if let Some(hook) = hook {
            let (answer, took) = hook.answer();
            assert!(line(&answer).contains("ralph.toml cannot be read") && took < Duration::from_secs(30), "{answer:?} {took:?}");
        }
        if let Some(waiter) = waiter {
            let told = wakes(waiter);
            assert!(line(&wake(&bed, &told).send()).contains("ralph.toml cannot be read"));
        }
        assert_eq!(bed.iteration(), 2);
    }
}

#[test]
fn s2_5_a_loop_file_that_is_edited_while_it_waits_counts_as_it_is_then() {
    for in_background in [false, true] {
        let Some((bed, _)) = undecided() else { return };
        bed.event("SessionStart").field("source", "startup").send();
        let (waiter, hook) = if in_background { (Some(parked(&bed)), None) } else { (None, Some(waits_itself(&bed, "60"))) };
        bed.edit("max_iterations: 0", "max_iterations: 0\nmax_hours: 0.0001");
        if let Some(hook) = hook {
            let (answer, took) = hook.answer();
            assert!(!answer.blocks() && line(&answer).contains("time") && took < Duration::from_secs(30), "{answer:?} {took:?}");
        }
        if let Some(waiter) = waiter {
            ends_silently(waiter, Duration::from_secs(30));
            // Nobody sees what a hook in the background says: it is told when the session stops again.
            assert!(line(&wakeable(&bed).send()).contains("time"));
        }
        assert!(!bed.path(LOOP).exists());
        assert_eq!(bed.last_ended()["status"], "capped");
        assert_eq!(bed.codes().last().unwrap(), "limit.time");
    }
}

/// Pause, a hand that says so, and a deleted file.
#[test]
fn s2_5_a_pause_or_a_deleted_file_ends_either_wait_at_once() {
    let pause: fn(&Hubbed) = |bed| drop(bed.ralph_ok(&["pause"]));
    let by_hand: fn(&Hubbed) = |bed| bed.edit("active: true", "active: false");
    let delete: fn(&Hubbed) = |bed| fs::remove_file(bed.path(LOOP)).unwrap();
    for (change, is_there) in [(pause, true), (by_hand, true), (delete, false)] {
        for in_background in [false, true] {
            let Some((bed, _)) = undecided() else { return };
            if in_background {
                let waiter = parked(&bed);
                change(&bed);
                ends_silently(waiter, AT_ONCE);
            } else {
                let hook = waits_itself(&bed, "600");
                let begun = Instant::now();
                change(&bed);
                let (answer, _) = hook.answer();
                assert!(!answer.blocks() && begun.elapsed() < AT_ONCE, "{answer:?}");
            }
            assert_eq!(bed.waiters().len(), 0);
            if is_there {
                assert_eq!((bed.iteration(), bed.status()["status"].as_str()), (1, Some("paused")));
            }
        }
    }
}

/// `ralph resume` in another terminal changes nothing about a loop whose session is woken by itself.
#[test]
fn s2_5_a_resume_from_outside_leaves_a_session_that_waits_to_be_woken() {
    let Some((bed, head)) = undecided() else { return };
    let waiter = parked(&bed);
    bed.ralph_ok(&["resume"]);
    assert_eq!(bed.waits_by(), "session");
    bed.hub.failed(&head, "build", "error: red\n");
    wakes(waiter);
    assert_eq!(bed.iteration(), 2);
}

/// `git clean` takes ralph's files away, the one about the wait too: nobody has taken over.
#[test]
fn s2_5_a_wait_whose_mark_is_gone_goes_on() {
    let Some((bed, head)) = undecided() else { return };
    let waiter = parked(&bed);
    fs::remove_dir_all(bed.path(".ralph/locks")).unwrap();
    thread::sleep(Duration::from_secs(1));
    bed.hub.failed(&head, "build", "error: red\n");
    wakes(waiter);
    assert_eq!(bed.iteration(), 2);
}

/// A time-out of `ralph wait` decides nothing.
#[test]
fn s2_5_a_wait_by_hand_that_times_out_leaves_the_loop_parked() {
    let Some((bed, _)) = undecided() else { return };
    let (answer, _) = send_with(&bed.works().env(PRINT.0, PRINT.1), &["--timeout", "7"]);
    assert!(line(&answer).contains("parked"), "{answer:?}");
    assert_eq!(bed.ralph_asking(&["wait", "--timeout", "1"]).code, Some(75));
    assert_eq!((bed.status()["status"].as_str(), bed.waits_by().as_str()), (Some("parked"), "nobody"));
}

/// Esc, and a kill without a word: nothing is answered or counted, nothing stays, and nobody says that somebody waits.
#[test]
fn s2_5_a_hook_that_is_ended_while_it_waits_leaves_the_loop_as_it_was() {
    for how in ["TERM", "KILL"] {
        let Some((bed, head)) = undecided() else { return };
        let hook = waits_itself(&bed, "600");
        assert_eq!(bed.waits_by(), "hook");
        signal(how, hook.child.id());
        let output = hook.child.wait_with_output().unwrap();
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{how}: {output:?}");
        assert_eq!((bed.iteration(), bed.codes().len()), (1, 0), "{how}");
        assert_eq!((bed.status()["status"].as_str(), bed.waits_by().as_str()), (Some("active"), "no wait"), "{how}");
        bed.hub.failed(&head, "build", "error: red\n");
        assert!(reason(&bed.works().env(PRINT.0, PRINT.1).send()).contains("error: red"));
        assert_eq!(bed.iteration(), 2);
    }
}

#[test]
fn s2_5_a_waiter_that_is_killed_is_known_to_be_gone() {
    let Some((bed, _)) = undecided() else { return };
    let mut waiter = parked(&bed);
    signal("KILL", waiter.child.id());
    waiter.child.wait().unwrap();
    assert_eq!((bed.status()["status"].as_str(), bed.waits_by().as_str()), (Some("parked"), "nobody"));
    // Its number may be somebody else's now.
    let [file] = bed.waiters().try_into().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(&waiter.child.id().to_string(), &std::process::id().to_string())).unwrap();
    assert_eq!(bed.waits_by(), "nobody");
    let again = parked(&bed);
    assert_eq!(bed.waits_by(), "session");
    signal("TERM", again.child.id());
    ends_silently(again, AT_ONCE);
    assert_eq!(bed.waiters().len(), 0);
}

/// `gh` dies, or hangs: that is no answer, and the hook's own answer is out in time.
#[test]
fn s2_5_a_gh_that_is_killed_or_hangs_does_not_decide_and_does_not_delay() {
    let Some((bed, _)) = undecided() else { return };
    let count = bed.home().join("asked");
    let text = format!(
        "echo x >> '{0}'\n[ $(wc -l < '{0}') = 2 ] && kill -9 $$\n[ $(wc -l < '{0}') -ge 3 ] && exec sleep 60\nPATH='{1}' exec gh \"$@\"",
        count.display(),
        bed.path_with_gh()
    );
    let path = bed.instead_of_gh(&text);
    let (answer, took) = send_with(&bed.works().env(PRINT.0, PRINT.1).env("PATH", path), &["--timeout", "14"]);
    assert!(line(&answer).contains("parked at iteration 1") && took < Duration::from_secs(12), "{answer:?} {took:?}");
    assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), 3);
    assert_eq!(bed.iteration(), 1);
}

/// Nothing but what is waited for is measured at a look; what held before is measured again when it is over.
#[test]
fn s2_5_a_command_is_run_before_the_wait_and_after_it_and_not_between() {
    let Some((bed, head)) = undecided() else { return };
    bed.arm_with_files("after-pr", "CI_PASSED");
    let gate = "[[gate]]\nname = 'slow'\ncommand = 'echo x >> \"$HOME/runs\"; sleep 2'\ncache = false\n\
                [[gate]]\nname = 'note'\nfile = 'NOTE'\n";
    bed.write("ralph.toml", format!("[pr]\naudit = false\nquality = false\nevidence = false\n{gate}"));
    bed.ralph_ok(&["trust", "--yes"]);
    bed.write("NOTE", "");
    let stop = bed.claims().env("AI_AGENT", crate::common::CLIENT);
    let runs = || fs::read_to_string(bed.home().join("runs")).unwrap_or_default().lines().count();
    let waiter = parked_at(&stop);
    assert_eq!(runs(), 1);
    thread::sleep(Duration::from_secs(6));
    assert_eq!((runs(), bed.codes().len()), (1, 1));
    fs::remove_file(bed.path("NOTE")).unwrap();
    bed.hub.failed(&head, "build", "error: red\n");
    let told = wakes(waiter);
    assert!(told.contains("Gate \"note\" fails"), "what held before does not any more: {told}");
    assert!(runs() <= 2 && bed.iteration() == 2);
}

/// A limit that is reached while somebody waits ends the loop, and the person hears of it.
#[test]
fn s2_5_a_limit_that_is_reached_meanwhile_ends_the_loop() {
    let Some((bed, _)) = undecided() else { return };
    bed.edit("max_iterations: 0", "max_iterations: 0\nmax_hours: 0.001");
    bed.event("SessionStart").field("source", "startup").send();
    let waiter = parked(&bed);
    ends_silently(waiter, Duration::from_secs(30));
    assert_eq!(bed.last_ended()["status"], "capped");
    let answer = wakeable(&bed).send();
    assert!(line(&answer).contains("stopped at its time limit"), "{answer:?}");
    assert_eq!(bed.codes(), ["gate.waiting", "limit.time"]);
}

/// Stops that are not parked end their waiter, and nothing of it stays.
#[test]
fn s2_5_many_stops_leave_no_waiter_behind() {
    let Some((bed, head)) = undecided() else { return };
    bed.edit("max_iterations: 0", "max_iterations: 0\nstall_rounds: 0");
    bed.hub.failed(&head, "build", "error: red\n");
    let begun = Instant::now();
    for n in 0..20 {
        let stop = wakeable(&bed);
        let waiter = wait_for(&stop);
        assert!(stop.send().blocks(), "{n}");
        ends_silently(waiter, AT_ONCE);
    }
    assert_eq!((bed.iteration(), bed.waiters().len()), (21, 0));
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert!(!bed.kinds().contains(&"waiting".to_owned()));
}

/// While the hook that judges takes its time, the other one asks nobody; if that one is killed, it does not wait for ever.
#[test]
fn s2_5_a_waiter_whose_judge_is_killed_ends() {
    let Some((bed, _)) = undecided() else { return };
    bed.write("ralph.toml", "[pr]\naudit = false\nquality = false\nevidence = false\n[[gate]]\nname = 'slow'\ncommand = 'sleep 30'\n");
    bed.ralph_ok(&["trust", "--yes"]);
    let stop = bed.claims().env("AI_AGENT", crate::common::CLIENT);
    let waiter = wait_for(&stop);
    let judge = begin(&stop, &["--timeout", "3600"]);
    assert!(soon(|| bed.kinds_so_far().contains(&"checking".to_owned())));
    thread::sleep(Duration::from_secs(2));
    assert!(bed.hub.requests().is_empty(), "{:?}", bed.hub.requests());
    signal("KILL", judge.child.id());
    judge.child.wait_with_output().unwrap();
    ends_silently(waiter, Duration::from_secs(15));
    assert_eq!((bed.iteration(), bed.waiters().len()), (1, 0));
}

/// A session that stops beside the one that takes a loop must not take the wait away from it.
#[test]
fn s2_5_only_the_session_that_has_the_loop_waits_for_it() {
    let Some((bed, head)) = undecided() else { return };
    bed.edit(&format!("session_id: {ME}\n"), "");
    let (mine, others) = (wakeable(&bed), wakeable(&bed).session(OTHER));
    let waiter = wait_for(&mine);
    let other = wait_for(&others);
    thread::sleep(Duration::from_millis(300));
    let (answer, took) = send_with(&mine, &["--timeout", "3600"]);
    assert!(line(&answer).contains("parked") && took < Duration::from_secs(10), "{answer:?}");
    others.send().is_silent();
    ends_silently(other, Duration::from_secs(15));
    bed.hub.failed(&head, "build", "error: red\n");
    wakes(waiter);
    assert_eq!(bed.iteration(), 2);
}

/// However the forge fails, it is asked ever more rarely.
#[test]
fn s2_5_a_limit_of_the_forge_is_met_with_ever_fewer_requests() {
    for fault in [Fault::PrimaryLimit { reset: 4_000_000_000 }, Fault::SecondaryLimit { retry_after: 3_600 }] {
        let Some((bed, _)) = undecided() else { return };
        bed.hub.fail_always(fault);
        let hook = waits_itself(&bed, "600");
        thread::sleep(Duration::from_secs(11));
        let asked = bed.hub.requests().len();
        assert!((3..=6).contains(&asked), "{asked} requests in 11 s");
        bed.ralph_ok(&["cancel"]);
        hook.answer();
    }
}

/// A forge that answers now and then is no reason to ask as often as at first.
#[test]
fn s2_5_a_flaky_forge_is_asked_ever_more_rarely_too() {
    let Some((bed, _)) = undecided() else { return };
    let count = bed.home().join("asked");
    // Every second request fails.
    let text = format!(
        "echo x >> '{0}'\n[ $(( $(wc -l < '{0}') % 2 )) = 1 ] && {{ echo 'HTTP 502: Bad Gateway' >&2; exit 1; }}\nPATH='{1}' exec gh \"$@\"",
        count.display(),
        bed.path_with_gh()
    );
    let path = bed.instead_of_gh(&text);
    let hook = begin(&bed.works().env(PRINT.0, PRINT.1).env("PATH", path), &["--timeout", "600"]);
    thread::sleep(Duration::from_secs(20));
    let asked = fs::read_to_string(&count).unwrap().lines().count();
    assert!(asked <= 12, "{asked} requests in 20 s");
    bed.ralph_ok(&["cancel"]);
    hook.answer();
}

/// Whoever measures by hand meanwhile gets an answer of their own, and disturbs nobody.
#[test]
fn s2_5_a_measurement_by_hand_disturbs_no_wait() {
    let Some((bed, head)) = undecided() else { return };
    let hook = waits_itself(&bed, "60");
    assert_eq!(bed.ralph_asking(&["gate"]).code, Some(75));
    assert_eq!(bed.waits_by(), "hook");
    bed.hub.failed(&head, "build", "error: red\n");
    assert!(reason(&hook.answer().0).contains("error: red"));
    assert_eq!(bed.iteration(), 2);
}

/// A wait costs next to nothing, and its process does not grow.
#[test]
fn s2_5_a_waiter_hardly_works() {
    let Some((bed, _)) = undecided() else { return };
    let waiter = parked(&bed);
    let process = format!("/proc/{}", waiter.child.id());
    // Its own time, in hundredths of a second.
    let used = || {
        let stat = fs::read_to_string(format!("{process}/stat")).unwrap();
        let fields: Vec<u64> = stat.rsplit(')').next().unwrap().split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        fields[11] + fields[12]
    };
    // While it looks, the pipes of `gh` are open too: at rest is when the fewest are.
    let open_at_rest = || {
        let open = (0..40).map(|_| {
            thread::sleep(Duration::from_millis(50));
            fs::read_dir(format!("{process}/fd")).unwrap().count()
        });
        open.min().unwrap()
    };
    assert!(soon(|| bed.kinds().contains(&"waiting".to_owned())));
    let (before, open) = (used(), open_at_rest());
    thread::sleep(Duration::from_secs(6));
    let (still_open, after) = (open_at_rest(), used());
    assert!(after - before < 100 && still_open <= open, "{} hundredths of a second; {open} and {still_open} descriptors", after - before);
    bed.ralph_ok(&["cancel"]);
    ends_silently(waiter, AT_ONCE);
}
