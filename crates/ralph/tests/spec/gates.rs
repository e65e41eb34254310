//! Gates and the claim: what ends a loop, what sends the agent back, and what is measured when.

use std::{fs, time::Duration};

use serde_json::json;

use crate::{
    common::{Bed, LOOP, ME, PAUSED_BY_HAND, loop_text, next_stop},
    gated::{COUNT, Gated, begin, gate, line, reason, send_with},
};

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(gate, verdict)| ((*gate).to_owned(), (*verdict).to_owned())).collect()
}

#[test]
fn s3_5_a_claim_that_all_gates_prove_is_complete() {
    let bed = Gated::new(&(gate("one", "echo fine", "") + &gate("two", "true", "")));
    let told = bed.claim().send().line();
    assert!(told.starts_with("Ralph: complete after 1 iteration") && told.contains("all 2 gates hold (one, two)"), "{told}");
    assert_eq!((bed.code().as_str(), bed.verdicts()), ("promise.accepted", pairs(&[("one", "pass"), ("two", "pass")])));
    assert!(!bed.exists(LOOP));
    assert_eq!(bed.last_ended()["status"], "complete");
}

#[test]
fn s3_5_a_claim_that_a_gate_refutes_is_not_proven() {
    let loud = "echo something first; seq 1 5000; echo 'error: it broke here' >&2; seq 5001 9999; exit 3";
    let settings = String::from("keep_going = true\n") + &gate("fine", "true", "") + &gate("bad", loud, "") + &gate("worse", "exit 4", "");
    let bed = Gated::new(&settings);
    let answer = bed.claim().send();
    let told = reason(&answer);
    let (_, about) = told.split_once("[ralph] ").unwrap();
    let opening = "<promise>DONE</promise> was claimed but is not proven. Gate \"bad\" fails: ";
    assert!(about.starts_with(opening) && about.contains("exit code 3"), "{told}");
    assert!(about.find("exit code 3") < about.find("Gate \"worse\" fails"), "the first failing gate first: {told}");
    assert!(about.contains("error: it broke here") && !about.contains("\n4000\n"), "the useful part: {told}");
    assert!(!about.contains("\"fine\""), "{told}");
    assert!(line(&answer).contains("Claimed but not proven: bad: "), "{answer:?}");
    assert_eq!((bed.code().as_str(), bed.iteration()), ("promise.unproven", 2));
    assert_eq!(bed.verdicts(), pairs(&[("fine", "pass"), ("bad", "fail"), ("worse", "fail")]));
    let named = about.lines().find_map(|l| l.strip_prefix("The whole output: ")).expect("the log is named");
    let log = bed.read(named);
    assert!(
        log.contains("something first\n")
            && log.contains("1\n2\n")
            && log.contains("\n4000\n")
            && log.contains("\n9999\n")
            && log.contains("it broke here")
    );
    assert!(log.contains("exit code 3"), "how it ended stands there, too");
}

#[test]
fn s3_5_without_a_promise_the_gates_alone_decide() {
    let bed = Gated::new(&gate("done", "test -e done.txt", "")).without_promise();
    let answer = bed.works().send();
    assert!(reason(&answer).contains("[ralph] Not done yet. Gate \"done\" fails: "), "{answer:?}");
    assert!(line(&answer).contains("Ends when its gates hold. "), "{answer:?}");
    assert_eq!((bed.code().as_str(), bed.iteration()), ("gate.failed", 2));
    bed.write("done.txt", "");
    let told = bed.works().send().line();
    assert!(told.contains("complete after 2 iterations"), "{told}");
    assert_eq!(bed.code(), "gates.passed");
}

/// What could not be measured is no pass, however often; and no agent can help it.
#[test]
fn s3_3_unknown_never_passes_and_pauses_in_the_third_round() {
    let bed = Gated::new(&gate("slow", &format!("{COUNT}; sleep 60"), "deadline = 1"));
    for round in 1..=2 {
        let answer = bed.claim().send();
        assert!(reason(&answer).contains("Gate \"slow\" could not be measured: "), "{answer:?}");
        assert_eq!((bed.code().as_str(), bed.iteration()), ("gate.unknown", round + 1));
    }
    let told = bed.claim().send().line();
    assert!(told.contains("paused at iteration 3") && told.contains("3 times in a row") && told.contains("within 1 s"), "{told}");
    assert!(told.contains("a longer `deadline` gives it more time"), "what to do about it: {told}");
    assert_eq!((bed.value("active").as_str(), bed.runs()), ("false", 3), "and never believed from before");
    bed.leaves_nothing();
}

#[test]
fn s3_3_rounds_that_could_be_measured_begin_the_count_anew() {
    let bed = Gated::new(&gate("slow", "test -e quick && exit 1; sleep 60", "deadline = 1"));
    let mut codes = Vec::new();
    for quick in [false, false, true, false] {
        if quick {
            bed.write("quick", "");
        } else {
            let _ = fs::remove_file(bed.path("quick"));
        }
        bed.claim().send();
        codes.push(bed.code());
    }
    assert_eq!(codes, ["gate.unknown", "gate.unknown", "promise.unproven", "gate.unknown"]);
}

#[test]
fn point_7_what_nobody_trusts_is_not_run_and_pauses_the_loop() {
    let bed = Gated::new(&gate("evil", COUNT, ""));
    bed.write("ralph.toml", gate("evil", &format!("{COUNT}; true"), ""));
    let told = bed.claim().send().line();
    assert!(told.contains("paused at iteration 1") && told.contains("`ralph trust`") && told.contains("/ralph-resume"), "{told}");
    assert_eq!((bed.code().as_str(), bed.runs(), bed.value("active").as_str()), ("gate.untrusted", 0, "false"));
}

#[test]
fn s3_3_after_a_failure_nothing_more_is_run_unless_it_is_wanted() {
    let gates = gate("bad", "exit 1", "") + &gate("after", COUNT, "");
    let bed = Gated::new(&gates);
    bed.claim().send();
    assert_eq!((bed.runs(), bed.verdicts()), (0, pairs(&[("bad", "fail"), ("after", "unknown")])));
    assert!(bed.what("after").contains("not run, because \"bad\" does not hold"));
    bed.set(&format!("keep_going = true\n{gates}"));
    bed.claim().send();
    assert_eq!((bed.runs(), bed.verdicts()), (1, pairs(&[("bad", "fail"), ("after", "pass")])));
}

/// Each waits for the other one's file.
fn meeting(mine: &str, other: &str) -> String {
    format!("echo > \"$HOME/{mine}\"; until [ -e \"$HOME/{other}\" ]; do sleep 0.02; done")
}

#[test]
fn point_2_gates_that_may_run_at_the_same_time_do() {
    let both = "parallel = true\ndeadline = 15";
    let bed = Gated::new(&(gate("a", &meeting("a", "b"), both) + &gate("b", &meeting("b", "a"), both)));
    assert!(bed.claim().send().line().contains("all 2 gates hold (a, b)"));
    let bed = Gated::new(&(gate("a", &meeting("a", "b"), "deadline = 1") + &gate("b", &meeting("b", "a"), both)));
    bed.claim().send();
    assert_eq!(bed.verdicts(), pairs(&[("a", "unknown"), ("b", "unknown")]), "not allowed, not done");
}

#[test]
fn point_2_findings_keep_their_order_however_the_commands_end() {
    let both = "parallel = true";
    let slow = "until [ -e \"$HOME/quick\" ]; do sleep 0.02; done; sleep 0.3; exit 1";
    let bed = Gated::new(&(gate("slow", slow, both) + &gate("quick", "echo > \"$HOME/quick\"; exit 2", both)));
    let told = reason(&bed.claim().send());
    assert!(told.find("Gate \"slow\"").unwrap() < told.find("Gate \"quick\"").unwrap(), "{told}");
    assert_eq!(bed.verdicts(), pairs(&[("slow", "fail"), ("quick", "fail")]));
}

#[test]
fn point_1_without_a_claim_only_what_is_wanted_at_every_stop_is_run() {
    let bed = Gated::new(&(gate("tests", COUNT, "") + &gate("lint", "echo dirty; exit 1", "every_stop = true")));
    let answer = bed.works().send();
    let told = reason(&answer);
    assert!(told.contains("[ralph] Gate \"lint\" fails: ") && told.contains("dirty") && !told.contains("claimed"), "{told}");
    assert_eq!((bed.code().as_str(), bed.runs()), ("promise.missing", 0));
    assert_eq!(bed.verdicts(), pairs(&[("tests", "unknown"), ("lint", "fail")]));
}

#[test]
fn point_2_shell_and_argv_form_folder_and_environment() {
    let argv = r#"
        [[gate]]
        name = "argv"
        command = ["sh", "-c", "printf '%s|' \"$@\" > \"$HOME/argv\"; pwd > \"$HOME/folder\"; echo \"$SAID\" > \"$HOME/said\"", "sh", "a b", "$HOME *"]
        folder = "sub/one"
        env = { SAID = "a $HOME 'b'" }
        [[gate]]
        name = "shell"
        command = "pwd > $HOME/root && echo $RALPH_GATE > \"$HOME/gate\" | cat"
    "#;
    let bed = Gated::new(argv);
    bed.write("sub/one/x", "");
    assert!(bed.claim().send().line().contains("all 2 gates hold"));
    assert_eq!((bed.at_home("argv").as_str(), bed.at_home("said").as_str()), ("a b|$HOME *|", "a $HOME 'b'\n"));
    assert_eq!(bed.at_home("folder").trim(), bed.path("sub/one").to_str().unwrap());
    assert_eq!((bed.at_home("root").trim(), bed.at_home("gate").trim()), (bed.dir().to_str().unwrap(), "shell"));
}

/// A passing gate that counts its runs, and a failing one that says what it measured.
fn counting(more: &str) -> String {
    gate("counts", COUNT, more) + &gate("good", "echo y >> \"$HOME/looks\"; grep -q good notes.txt", more)
}

fn cache_of(bed: &Gated) {
    bed.write("notes.txt", "bad\n");
    let counts = || (bed.runs(), bed.at_home("looks").lines().count());
    bed.claim().send();
    assert_eq!(counts(), (1, 1));
    let told = reason(&bed.claim().send());
    assert_eq!(counts(), (1, 1), "neither the pass nor the failure is measured again");
    assert!(told.contains("It was not run again: the files are the same as at "), "{told}");
    assert!(told.contains("No file was changed since \"good\" failed.") && !told.contains("in a row"), "u3: it ran once: {told}");
    assert_eq!(bed.verdicts(), pairs(&[("counts", "pass"), ("good", "fail")]));
    bed.write("notes.txt", "still bad\n");
    bed.claim().send();
    assert_eq!(counts(), (2, 2), "the tree has changed");
    bed.write("notes.txt", "bad\n");
    bed.claim().send();
    assert_eq!(counts(), (2, 2), "this very tree is known");
    bed.write("notes.txt", "good\n");
    assert!(bed.claim().send().line().contains("complete"));
}

#[test]
fn point_2_an_unchanged_tree_is_not_measured_again() {
    cache_of(&Gated::new(&counting("")));
    let bed = Gated::in_git(&counting(""));
    bed.write(".gitignore", "out\n");
    bed.write("out", "1");
    cache_of(&bed);
}

#[test]
fn u3_a_command_of_the_loop_that_is_a_gate_already_is_one_gate() {
    let bed = Gated::new(&gate("tests", "test -e done.txt", ""));
    let verify = "verify:\n  - run: \"test -e done.txt\"\n  - run: \"test -e other.txt\"\n";
    bed.write(LOOP, format!("---\niteration: 1\nsession_id: {ME}\n{verify}---\nGo\n"));
    bed.ralph_ok(&["trust", "--yes"]);
    bed.works().send();
    assert_eq!(bed.verdicts(), pairs(&[("tests", "fail"), ("test -e other.txt", "unknown")]));
}

/// A test that reads a file which git ignores.
const READS_IGNORED: &str = "echo x >> \"$HOME/runs\"; grep -q ok data.local";

#[test]
fn t17_an_ignored_file_that_a_test_reads_is_no_false_ending_and_no_stale_failure() {
    let bed = Gated::in_git(&(gate("reads", READS_IGNORED, "") + &gate("never", "false", "")));
    bed.write(".gitignore", "*.local\nout/\n");
    let verdict = |data: &str| {
        bed.write("data.local", data);
        bed.claim().send();
        (bed.verdicts()[0].1.clone(), bed.runs())
    };
    assert_eq!(verdict("ok"), ("pass".to_owned(), 1));
    assert_eq!(verdict("no"), ("fail".to_owned(), 2));
    assert_eq!(verdict("ok"), ("pass".to_owned(), 2), "this very tree is known, in this loop");
    bed.write("out/built", "an ignored folder stays out");
    assert_eq!(verdict("ok"), ("pass".to_owned(), 2));
}

/// A tool that writes such a file is measured all the same, and again the next time.
#[test]
fn t17_a_command_that_writes_an_ignored_file_is_only_not_kept() {
    let bed = Gated::in_git(&gate("covers", &format!("{COUNT}; wc -l < \"$HOME/runs\" > .coverage; exit 1"), ""));
    bed.write(".gitignore", ".coverage\n");
    for runs in 1..=2 {
        bed.claim().send();
        assert_eq!((bed.verdicts()[0].1.as_str(), bed.runs()), ("fail", runs));
    }
}

/// Folders that git ignores, services, the network: what is not seen may have changed since.
#[test]
fn t17_a_pass_from_before_the_loop_ends_nothing() {
    let passes = format!("{COUNT}; test ! -e \"$HOME/broken\"");
    let bed = Gated::new(&gate("passes", &passes, ""));
    bed.ralph_ok(&["gate"]);
    assert!(bed.claim().send().line().contains("complete"));
    assert_eq!(bed.runs(), 2, "a pass that was measured by hand is measured again");
    fs::write(bed.home().join("broken"), "").unwrap();
    bed.write(LOOP, loop_text(ME, 1, 20, "DONE"));
    assert!(reason(&bed.claim().send()).contains("exit code 1"), "a pass of the loop before is measured again");
    let bed = Gated::new(&(gate("passes", &passes, "") + &gate("fails", "false", "")));
    bed.claim().send();
    bed.claim().send();
    assert_eq!(bed.runs(), 1, "within a loop it is known");
    bed.ralph_ok(&["pause"]);
    bed.ralph_ok(&["resume"]);
    bed.claim().send();
    assert_eq!(bed.runs(), 2, "and not after a person had it paused");
}

#[test]
fn point_2_unless_it_shall_be() {
    let bed = Gated::new(&counting("cache = false"));
    bed.write("notes.txt", "bad\n");
    bed.claim().send();
    bed.claim().send();
    assert_eq!((bed.runs(), bed.at_home("looks").lines().count()), (2, 2));
}

#[test]
fn point_2_a_command_that_changes_the_tree_was_measured_on_none() {
    let bed = Gated::new(&gate("writes", &format!("{COUNT}; wc -l < \"$HOME/runs\" > made.txt; exit 1"), ""));
    bed.claim().send();
    bed.claim().send();
    assert_eq!(bed.runs(), 2);
}

/// A verdict on the tree from before another command changed it would be a false one.
#[test]
fn point_2_what_one_command_changes_the_next_one_measures() {
    let spoils = "if [ -e \"$HOME/spoil\" ]; then echo bad > notes.txt; fi";
    let settings = gate("first", "true", "")
        + &gate("spoils", spoils, "cache = false")
        + &gate("good", "grep -q good notes.txt", "")
        + &gate("last", "test -e \"$HOME/end\"", "cache = false");
    let bed = Gated::new(&settings);
    bed.write("notes.txt", "good\n");
    bed.claim().send();
    assert_eq!(bed.verdicts()[2], ("good".to_owned(), "pass".to_owned()));
    fs::write(bed.home().join("spoil"), "").unwrap();
    bed.claim().send();
    assert_eq!(bed.verdicts()[2], ("good".to_owned(), "fail".to_owned()), "{:?}", bed.findings());
}

#[test]
fn point_2_a_flake_is_told_as_one() {
    let flaky = "[ -e \"$HOME/tried\" ] || { echo > \"$HOME/tried\"; exit 1; }";
    let bed = Gated::new(&gate("flaky", flaky, "retry = true"));
    let told = bed.claim().send().line();
    assert!(told.contains("complete") && told.contains("after it had failed once: a flake"), "{told}");
    let bed = Gated::new(&gate("flaky", flaky, ""));
    bed.claim().send();
    assert_eq!(bed.verdicts(), pairs(&[("flaky", "fail")]), "only where it is wanted");
    let bed = Gated::new(&gate("bad", &format!("{COUNT}; exit 7"), "retry = true"));
    let told = reason(&bed.claim().send());
    assert!(bed.runs() == 2 && told.contains("exit code 7") && told.contains("twice"), "{told}");
}

/// Two hooks on one stop, the plugin's and that of the settings: the commands run once, one iteration is counted, both say the same.
#[test]
fn pains_9_two_hooks_on_one_stop_measure_once() {
    let bed = Gated::new(&gate("slow", &format!("{COUNT}; sleep 1; exit 1"), "cache = false"));
    let claim = bed.claim();
    let (one, two) = (begin(&claim, &["--timeout", "3600"]), begin(&claim.clone().by_plugin(1), &["--timeout", "3600"]));
    let ((one, _), (two, _)) = (one.answer(), two.answer());
    assert!(reason(&one).contains("Gate \"slow\" fails"), "{one:?}");
    assert_eq!(one, two);
    assert_eq!((bed.runs(), bed.iteration(), bed.codes().len()), (1, 2, 1));
    next_stop();
    bed.claim().send();
    assert_eq!((bed.runs(), bed.iteration()), (2, 3), "the next stop is another one");
}

#[test]
fn pains_9_two_hooks_on_the_last_stop_say_the_same() {
    let bed = Gated::new(&gate("slow", &format!("{COUNT}; sleep 1"), ""));
    let claim = bed.claim();
    let (one, two) = (begin(&claim, &[]), begin(&claim.clone().by_plugin(1), &[]));
    let ((one, _), (two, _)) = (one.answer(), two.answer());
    assert!(one.line().contains("complete"), "{one:?}");
    assert_eq!((one, bed.runs()), (two, 1));
}

/// The one that waits has no less patience than the one that measures.
#[test]
fn pains_9_two_hooks_whose_time_ends_while_one_measures() {
    let bed = Gated::new(&gate("slow", &format!("{COUNT}; trap '' TERM; while :; do sleep 1; done"), ""));
    let claim = bed.claim();
    let (one, two) = (begin(&claim, &["--timeout", "8"]), begin(&claim.clone().by_plugin(1), &["--timeout", "8"]));
    let ((one, _), (two, _)) = (one.answer(), two.answer());
    assert!(reason(&one).contains("could not be measured"), "{one:?}");
    assert_eq!((one, bed.runs(), bed.iteration()), (two, 1, 2));
}

/// The client ends a hook that takes too long, without a word; so the hook has to be faster.
#[test]
fn point_8_a_command_ends_before_the_hooks_own_time_does() {
    let bed = Gated::new(&(gate("slow", "sleep 60", "") + &gate("next", "true", "")));
    let (answer, took) = send_with(&bed.claim(), &["--timeout", "8"]);
    assert!(reason(&answer).contains("Gate \"slow\" could not be measured: "), "{answer:?}");
    assert!(took < Duration::from_millis(6500), "{took:?}");
    assert!(
        bed.what("slow").ends_with("and was ended; the hook's time ended first"),
        "a longer deadline would not help: {}",
        bed.what("slow")
    );
    assert_eq!(bed.verdicts(), pairs(&[("slow", "unknown"), ("next", "unknown")]));
    bed.leaves_nothing();
}

/// Something that runs for long, with children that left its group, and says when it runs.
const LONG: &str = "sleep 60 & setsid sleep 60 & echo x > \"$HOME/runs\"; wait";

fn long_running() -> Gated {
    Gated::new(&(String::from("keep_going = true\n") + &gate("long", LONG, "") + &gate("next", "echo > \"$HOME/next\"", "")))
}

#[test]
fn point_2_a_cancel_ends_what_runs_at_once() {
    let bed = long_running();
    let hook = begin(&bed.claim(), &[]);
    bed.wait_for("runs");
    bed.ralph_ok(&["cancel"]);
    let begun = std::time::Instant::now();
    let (answer, _) = hook.answer();
    answer.is_silent();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    bed.leaves_nothing();
    assert!(!bed.exists(LOOP) && bed.at_home("next").is_empty(), "nothing is begun for nobody");
    assert_eq!(bed.last_ended()["status"], "cancelled");
}

#[test]
fn point_2_a_pause_ends_what_runs_at_once() {
    for by_hand in [false, true] {
        let bed = long_running();
        let hook = begin(&bed.claim(), &[]);
        bed.wait_for("runs");
        if by_hand {
            bed.write(LOOP, bed.read(LOOP).replace("active: true", "active: false"));
        } else {
            bed.ralph_ok(&["pause"]);
        }
        let begun = std::time::Instant::now();
        let (answer, _) = hook.answer();
        if by_hand {
            answer.tells(PAUSED_BY_HAND);
        } else {
            assert!(answer.line().contains("so this stop was not checked"), "{answer:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        bed.leaves_nothing();
        assert_eq!((bed.value("active").as_str(), bed.iteration(), bed.at_home("next").as_str()), ("false", 1, ""));
    }
}

/// What the client does on Esc and when its patience ends; a second later it kills.
#[test]
fn point_2_a_hook_that_is_ended_ends_what_runs_and_changes_nothing() {
    for command in [LONG, "trap '' TERM INT HUP; echo x > \"$HOME/runs\"; while :; do sleep 1; done"] {
        let bed =
            Gated::new(&(String::from("keep_going = true\n") + &gate("long", command, "") + &gate("next", "echo > \"$HOME/next\"", "")));
        let before = bed.loop_bytes();
        let hook = begin(&bed.claim(), &[]);
        bed.wait_for("runs");
        let begun = std::time::Instant::now();
        hook.terminate();
        let (answer, _) = hook.answer();
        answer.is_silent();
        // The client waits a second before it kills. On a busy machine everything takes longer, but no command is waited for.
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        bed.leaves_nothing();
        assert_eq!((bed.loop_bytes(), bed.codes()), (before, Vec::<String>::new()));
        assert!(bed.at_home("next").is_empty(), "nothing is begun for nobody");
        assert_eq!(bed.status()["iteration"], json!(1));
    }
}

/// A hook that was killed leaves nothing that is in the way of the next one.
#[test]
fn point_2_a_hook_that_was_killed_is_in_nobodys_way() {
    let bed = Gated::new(&gate("slow", "echo x >> \"$HOME/runs\"; [ $(wc -l < \"$HOME/runs\") = 1 ] && sleep 2; exit 1", "cache = false"));
    let mut hook = begin(&bed.claim(), &[]);
    bed.wait_for("runs");
    hook.child.kill().unwrap();
    hook.child.wait().unwrap();
    let answer = bed.claim().send();
    assert!(reason(&answer).contains("exit code 1"), "{answer:?}");
    assert_eq!(bed.iteration(), 2);
}

/// What once had to be proven does not vanish with the file that says so: deleted, emptied, replaced, or with its gates taken out.
#[test]
fn point_1_gates_that_are_taken_away_are_missed() {
    type Edit = fn(&Gated);
    let edits: [(&str, Edit); 4] = [
        ("deleted", |bed| fs::remove_file(bed.path("ralph.toml")).unwrap()),
        ("emptied", |bed| drop(bed.write("ralph.toml", ""))),
        ("a link to nowhere", |bed| {
            fs::remove_file(bed.path("ralph.toml")).unwrap();
            std::os::unix::fs::symlink("nowhere.toml", bed.path("ralph.toml")).unwrap();
        }),
        ("words instead of work", |bed| drop(bed.write("ralph.toml", "[[gate]]\nname = \"t\"\nfile = \"ralph.toml\"\n"))),
    ];
    for guard in ["warn", "block", "off"] {
        for (how, edit) in &edits {
            let bed = Gated::new(&format!("guard = \"{guard}\"\n{}", gate("t", "exit 1", "")));
            bed.claim().send();
            edit(&bed);
            bed.claim().send();
            let status = bed.status();
            let expected = if guard == "block" { ["active", "promise.unproven"] } else { ["paused", "gate.broken"] };
            assert_eq!([&status["status"], &status["last_code"]], expected, "{guard}, {how}");
        }
    }
}

/// Who types a command sees how long it may run, and can give it more.
#[test]
fn s3_3_a_deadline_for_the_commands_of_one_loop() {
    let bed = Bed::new();
    let usual = bed.ralph_ok(&["start", "x", "--name", "usual", "--verify", "cargo test"]);
    assert!(usual.contains("gate: cargo test (at most 2 min)"), "{usual}");
    let longer = bed.ralph_ok(&["start", "x", "--session", ME, "--verify", "true", "--verify", "test 1", "--deadline", "10m"]);
    assert!(longer.contains("gates: true · test 1 (at most 10 min each)"), "{longer}");
    assert!(bed.read(LOOP).contains("verify:\n  - run: \"true\"\n    deadline: 10m\n  - run: \"test 1\"\n    deadline: 10m\n"));
    let told = bed.work().send().line();
    assert!(told.contains("complete") && told.contains("all 2 gates hold"), "they run, and nobody is asked again: {told}");
    for args in [&["start", "x", "--deadline", "10m"][..], &["start", "x", "--verify", "true", "--deadline", "soon"]] {
        assert_eq!(bed.ralph(args).code, Some(2), "{args:?}");
    }
}

/// What could only pause the loop later is refused while there is somebody to mend it.
#[test]
fn s3_2_a_preset_that_finds_nothing_is_refused_at_the_start() {
    for (preset, expected) in [("verify", "the preset \"verify\" finds no commands"), ("features", "the preset \"features\" finds no list")]
    {
        let bed = Bed::new();
        let refused = bed.ralph(&["start", "x", "--preset", preset]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
        let typed =
            bed.event("UserPromptSubmit").field("prompt", format!("/ralph-loop x --preset {preset}")).field("prompt_id", "t").send();
        assert!(typed.json.as_ref().unwrap()["stopReason"].as_str().unwrap().contains(expected), "{typed:?}");
        assert!(!bed.exists(LOOP), "nothing was written");
    }
    let bed = Bed::new();
    bed.write(".ideal/worktree.yaml", "verify: [\"true\"]\n");
    assert_eq!(bed.ralph(&["start", "x", "--session", ME, "--preset", "verify"]).code, Some(0));
    bed.write(".ideal/worktree.yaml", "verify: []\n");
    assert!(bed.work().send().line().contains("finds no commands"));
    assert_eq!(bed.codes(), ["gate.broken"]);
}

/// Trusting it would not help.
#[test]
fn s3_2_settings_that_cannot_be_read_pause_the_loop_under_their_own_code() {
    let bed = Gated::new(&gate("fine", "true", ""));
    bed.write("ralph.toml", "[gate]\ncommand = \"true\"\n");
    let told = bed.claim().send().line();
    assert!(told.contains("paused at iteration 1") && told.contains("write [[gate]], with two brackets"), "{told}");
    assert_eq!(bed.code(), "gate.broken");
    let bed = Bed::new();
    bed.write("ralph.toml", "[gate]\n");
    let started = bed.ralph(&["start", "x", "--preset", "verify"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    assert!(started.stderr.contains("with two brackets"), "{started:?}");
}

/// Where nobody could see what fails already, everything counts, and the person knows it.
#[test]
fn point_2_old_failures_that_could_not_be_noted_are_told() {
    let bed = Bed::new();
    bed.write("ralph.toml", gate("slow", "sleep 30", "deadline = \"1s\"\nold_failures = \"allow\""));
    bed.ralph_ok(&["trust", "--yes"]);
    let started = bed.ralph(&["start", "x", "--session", ME, "--endless"]).stdout;
    assert!(started.contains("slow: what fails already could not be noted, so all failures count"), "{started}");
}
