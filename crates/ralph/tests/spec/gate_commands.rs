//! Commands that misbehave, and disks that are full: the verdict stays right, the agent gets what is useful, and nothing is left behind.

use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use ralph_testkit::{Skip, nightly};

use crate::{
    common::{Answer, Bed, Event, LOOP, OTHER, RALPH, run},
    gated::{COUNT, Gated, begin, gate, reason},
};

/// Prints what `printer` prints up to that size, notes how much memory ralph has used, and fails.
fn big(printer: &str, bytes: usize) -> String {
    format!("{printer} | head -c {bytes}; grep VmHWM /proc/$PPID/status > \"$HOME/memory\"; exit 1")
}

#[test]
fn s3_3_a_hundred_megabytes_are_kept_and_take_no_memory() {
    let long_lines = "yes \"error: $(seq 1 1000 | tr '\\n' ' ')\"";
    let tests = "yes 'test a::very::long::name::of::a::test ... FAILED'";
    // More than the memory that is allowed below.
    let big_size = nightly::amount(50, 100) << 20;
    for (printer, size) in [(long_lines, big_size), ("tr '\\0' x < /dev/zero", big_size), (tests, 5 << 20), ("cat /dev/zero", 5 << 20)] {
        let bed = Gated::new(&gate("loud", &big(printer, size), "deadline = \"20m\""));
        let (answer, _) = begin(&bed.claim(), &["--timeout", "3600"]).answer();
        let told = reason(&answer);
        assert!(told.contains("Gate \"loud\" fails: ") && told.len() < 2_000, "{printer}: {} bytes", told.len());
        let memory = bed.at_home("memory");
        let kilobytes: usize = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(kilobytes < 40 * 1024, "{printer}: {memory}");
        let log = bed.files_in(".ralph/logs").pop().unwrap();
        let written = usize::try_from(log.metadata().unwrap().len()).unwrap();
        assert!((size..size + 1_000).contains(&written), "{printer}: {written}");
    }
}

#[test]
fn s3_3_a_command_that_prints_for_ever_is_ended() {
    let bed = Gated::new(&gate("yes", "yes", "deadline = 1"));
    let told = reason(&bed.claim().send());
    assert!(told.contains("could not be measured") && told.contains("did not end within 1 s") && told.len() < 2_000, "{told}");
    bed.leaves_nothing();
}

#[test]
fn s3_3_a_command_that_ignores_the_request_to_end_is_ended() {
    for stubborn in ["trap '' TERM; while :; do sleep 1; done", "(trap '' TERM; sleep 60) & trap '' TERM; wait", "kill -STOP $$"] {
        let bed = Gated::new(&gate("stubborn", stubborn, "deadline = 1"));
        let begun = std::time::Instant::now();
        let told = reason(&bed.claim().send());
        assert!(told.contains("did not end within 1 s"), "{told}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{stubborn}: {:?}", begun.elapsed());
        bed.leaves_nothing();
    }
}

/// A daemon: its parent is gone, it has a session of its own, and it holds the pipes or not.
const DAEMONS: [&str; 9] = [
    "sleep 300 &",
    "setsid sleep 300 &",
    "nohup sleep 300 > /dev/null 2>&1 &",
    "(setsid sh -c 'sleep 300 & sleep 300 & wait' &)",
    "(setsid sh -c '(setsid sh -c \"trap \\\"\\\" TERM HUP; sleep 300 & wait\" &)' > /dev/null 2>&1 &)",
    "env -i setsid sh -c 'sleep 300; : MARK' &",
    "perl -e 'use POSIX; fork and exit; setsid; fork and exit; $0 = \"x\"; sleep 300'",
    "perl -e 'for (1..20) { if (!fork) { $n = 0; while ($n++ < 300) { fork and exit; select(undef, undef, undef, 0.01) } exit } }'",
    "perl -e 'for (1..200) { if (!fork) { sleep 300; exit } }'",
];

#[test]
fn s3_3_daemons_are_ended_and_nobody_waits_for_them() {
    for daemon in DAEMONS {
        for (exit, verdict) in [(0, "pass"), (3, "fail")] {
            let settings = format!("{daemon}\nexit {exit}");
            let bed = Gated::new(&(gate("daemon", &settings, "deadline = 30") + &gate("last", "exit 1", "")));
            let begun = std::time::Instant::now();
            bed.claim().send();
            assert!(begun.elapsed() < Duration::from_secs(10), "{daemon}: {:?}", begun.elapsed());
            assert_eq!(bed.verdicts()[0].1, verdict, "{daemon}: {:?}", bed.findings());
            bed.leaves_nothing();
        }
    }
}

#[test]
fn s3_3_daemons_of_commands_that_take_too_long_are_ended_too() {
    for daemon in DAEMONS {
        let bed = Gated::new(&gate("daemon", &format!("{daemon}\nsleep 300"), "deadline = 1"));
        bed.claim().send();
        assert_eq!(bed.verdicts()[0].1, "unknown", "{daemon}");
        bed.leaves_nothing();
    }
}

/// Whose daemon it is cannot be told while others run; the last one sees to it.
#[test]
fn s3_3_daemons_of_commands_that_run_at_the_same_time_are_ended() {
    let both = "parallel = true";
    let holds = "setsid sleep 300 &";
    // The second one ends while the first one's pipes are still held.
    let settings = gate("first", &format!("{holds} echo > \"$HOME/a\""), both)
        + &gate("second", &format!("until [ -e \"$HOME/a\" ]; do sleep 0.02; done; {holds} sleep 0.2"), both)
        + &gate("third", &format!("until [ -e \"$HOME/a\" ]; do sleep 0.02; done; {holds} sleep 0.1"), both);
    for _ in 0..5 {
        let bed = Gated::new(&settings);
        let told = bed.claim().send().line();
        assert!(told.contains("all 3 gates hold"), "{told}");
        bed.leaves_nothing();
    }
}

/// Commands that begin while others end are nobody's orphans.
#[test]
fn s3_3_commands_that_run_at_the_same_time_do_not_end_each_other() {
    let one = |n: usize| gate(&format!("g{n}"), "true", "parallel = true");
    let settings: String = (0..12).map(one).collect();
    for _ in 0..15 {
        let bed = Gated::new(&settings);
        let told = bed.claim().send().line();
        assert!(told.contains("all 12 gates hold"), "{told}");
    }
}

#[test]
fn point_2_a_command_may_leave_something_running_if_that_is_wanted() {
    let settings =
        gate("server", "setsid sleep 300 > /dev/null 2>&1 &", "leave_running = true") + &gate("next", "setsid sleep 200 & exit 1", "");
    for bed in [Gated::new(&settings), Gated::in_git(&settings)] {
        bed.claim().send();
        assert_eq!(bed.verdicts()[0].1, "pass");
        let left = bed.left();
        assert!(left.len() == 1 && left[0].contains("sleep 300"), "{left:?}");
        let pid = left[0].split_once(':').unwrap().0;
        assert!(Command::new("/bin/sh").args(["-c", &format!("kill {pid}")]).status().unwrap().success());
    }
}

#[test]
fn s3_3_a_command_without_outputs_is_waited_for() {
    let bed = Gated::new(&gate("mute", "exec >&- 2>&-; sleep 0.5; exit 4", ""));
    assert!(reason(&bed.claim().send()).contains("exit code 4"));
}

#[test]
fn s3_3_a_command_that_reads_gets_nothing() {
    let bed = Gated::new(&gate("reads", "cat; read x; read y < /dev/stdin; exit 5", "deadline = 20"));
    assert!(reason(&bed.claim().send()).contains("exit code 5"));
}

#[test]
fn s3_3_no_control_character_reaches_the_agent() {
    let nasty = r"printf 'a\000b\377\376\033[31mred\033[0m \033]0;title\007 \010\010 \r over\n\302\233 error: \033[2Jgone\n'; printf '\000\033[6n' >&2; exit 1";
    let bed = Gated::new(&gate("nasty", nasty, ""));
    let answer = bed.claim().send();
    let (told, person) = (reason(&answer), answer.json.as_ref().unwrap()["systemMessage"].to_string());
    let bad: Vec<char> = told.chars().chain(person.chars()).filter(|c| c.is_control() && *c != '\n').collect();
    assert!(bad.is_empty() && told.contains("red") && told.contains("error: "), "{bad:?} in {told:?}");
    let log = bed.log("nasty");
    assert!(log.windows(3).any(|part| part == b"a\0b") && log.windows(5).any(|part| part == b"\x1b[31m"), "the log has it as it came");
    let shown = bed.ralph(&["explain"]).stdout;
    assert!(!shown.contains('\u{1b}') && !shown.contains('\0'), "{shown:?}");
}

#[test]
fn s3_3_however_a_command_ends_it_is_told() {
    for (command, told) in [
        ("kill -9 $$", "ended by signal 9"),
        ("kill -SEGV $$", "ended by signal 11"),
        ("kill -TERM $$", "ended by signal 15"),
        ("exit 255", "exit code 255"),
    ] {
        let bed = Gated::new(&gate("ends", command, ""));
        let reason = reason(&bed.claim().send());
        assert!(reason.contains("Gate \"ends\" fails: ") && reason.contains(told), "{command}: {reason}");
    }
}

#[test]
fn s3_3_what_cannot_be_started_is_unknown() {
    let argv = |words: &str, more: &str| format!("[[gate]]\nname = \"x\"\ncommand = {words}\n{more}\n");
    for (settings, told) in [
        (argv("[\"no-such-program-at-all\"]", ""), "cannot be started: there is no such program"),
        (argv("[\"./plain\"]", ""), "cannot be started: Permission denied"),
        (argv("\"./plain\"", ""), "exit code 126"),
        (argv("\"no-such-program-at-all\"", ""), "exit code 127"),
        // Like a program that is not found: none of the checks ran.
        (argv("\"python3 -m no_such_module -v\"", ""), "no_such_module"),
        (argv("[\"python3\", \"-m\", \"no_such_module\"]", ""), "no_such_module"),
        (argv("[\"true\"]", "folder = \"nowhere\""), "its folder nowhere is not there"),
        (argv("[\"true\"]", "folder = \"plain\""), "its folder plain is not there"),
        (argv("[\"true\"]", "folder = \"out\""), "its folder out leads out of the project"),
    ] {
        let bed = Gated::new(&settings);
        bed.write("plain", "x");
        std::os::unix::fs::symlink("/", bed.path("out")).unwrap();
        let reason = reason(&bed.claim().send());
        assert!(reason.contains("could not be measured") && reason.contains(told), "{reason}");
        assert_eq!(bed.code(), "gate.unknown");
    }
}

#[test]
fn s3_3_a_report_that_is_no_file_keeps_nobody_waiting() {
    for made in ["mkfifo report.xml", "ln -s /dev/zero report.xml", "mkdir report.xml", "head -c 100000000 /dev/zero > report.xml"] {
        let bed = Gated::new(&gate("x", &format!("{made}; exit 1"), "junit = \"report.xml\""));
        assert!(reason(&bed.claim().send()).contains("exit code 1"), "{made}");
    }
}

/// A cleaning rule can remove ignored files: what ralph knew is gone, but neither the loop nor the verdict.
#[test]
fn s3_3_a_command_that_removes_ralphs_files() {
    let bed = Gated::new(&gate("cleans", "rm -rf .ralph; exit 1", ""));
    let told = reason(&bed.claim().send());
    assert!(told.contains("Gate \"cleans\" fails: "), "{told}");
    assert_eq!((bed.iteration(), bed.code().as_str()), (2, "promise.unproven"));
    bed.set(&gate("cleans", "rm -rf .ralph", ""));
    let told = bed.claim().send().line();
    assert!(told.contains("complete"), "{told}");
}

#[test]
fn s3_3_a_command_that_removes_ralphs_files_of_a_loop_that_was_adopted() {
    let bed = Gated::new(&gate("cleans", "rm -rf .ralph; exit 1", ""));
    let text = bed.read(LOOP).lines().filter(|l| !l.starts_with("session_id")).fold(String::new(), |text, l| text + l + "\n");
    bed.write(LOOP, text);
    let told = reason(&bed.claim().send());
    assert!(told.contains("Gate \"cleans\" fails: "), "{told}");
    assert_eq!(bed.iteration(), 2);
}

#[test]
fn s3_3_a_command_that_removes_the_loop_file_has_cancelled() {
    let bed = Gated::new(&gate("cleans", &format!("rm {LOOP}; sleep 60"), ""));
    bed.claim().send().is_silent();
    assert!(!bed.exists(LOOP));
    bed.leaves_nothing();
}

/// A gate that runs gates would never end.
#[test]
fn point_2_gates_do_not_run_gates() {
    let bed = Bed::new();
    bed.copy_of_ralph(&bed.home().join("ralph"));
    let own = |bed: &Gated| bed.copy_of_ralph(&bed.home().join("ralph"));
    for (command, told) in [("\"$HOME/ralph\" gate", "gates do not run gates"), ("\"$HOME/ralph\" gate x --json", "gates do not run gates")]
    {
        let bed = Gated::new(&gate("x", &format!("{COUNT}; {command}"), ""));
        own(&bed);
        let reason = reason(&bed.claim().send());
        assert!(reason.contains(told), "{reason}");
        assert_eq!(bed.runs(), 1);
    }
}

/// An agent that a gate asks for its opinion is no part of the loop, whoever it says that it is.
#[test]
fn point_2_hooks_within_gates_are_silent() {
    let bed = Gated::new(&gate(
        "agent",
        "\"$HOME/ralph\" hook claude < \"$HOME/event\" > \"$HOME/answer\"; echo x >> \"$HOME/runs\"; exit 1",
        "",
    ));
    bed.copy_of_ralph(&bed.home().join("ralph"));
    for event in [bed.claim(), bed.claim().session(OTHER), bed.typed("/cancel-ralph")] {
        fs::write(bed.home().join("event"), event.json()).unwrap();
        let iteration = bed.iteration();
        bed.write("changes", event.json());
        let answer = bed.claim().send();
        assert!(reason(&answer).contains("exit code 1"), "{answer:?}");
        assert_eq!((bed.at_home("answer").as_str(), bed.iteration()), ("", iteration + 1));
    }
    assert_eq!(bed.runs(), 3);
}

#[test]
fn s3_3_zombies_and_many_children() {
    for command in [
        "perl -e 'for (1..50) { fork or exit } select(undef, undef, undef, 0.2)'",
        "for i in $(seq 200); do (sleep 0.2; setsid sleep 300 &) & done; wait",
    ] {
        let bed = Gated::new(&(gate("many", command, "") + &gate("last", "exit 1", "")));
        bed.claim().send();
        assert_eq!(bed.verdicts()[0].1, "pass", "{command}");
        bed.leaves_nothing();
    }
}

/// The hook on mounts of its own, made by `mounts` in a shell; a skip where the machine does not allow it.
fn in_mounts_of_its_own(event: &Event<'_>, bed: &Bed, mounts: &str) -> Result<Answer, Skip> {
    let is_allowed = |option: &&str| {
        let mut attempt = Command::new("unshare");
        attempt.args([option, "sh", "-c", "mount -t tmpfs x /mnt"]).stdout(Stdio::null()).stderr(Stdio::null());
        attempt.status().is_ok_and(|status| status.success())
    };
    let option = ["-m", "-rm"].into_iter().find(is_allowed).ok_or_else(|| Skip("mounts are not allowed here".to_owned()))?;
    let hook = event.command();
    let mut command = bed.command("unshare");
    command.args([option, "sh", "-ec", &format!("{mounts}; {RALPH} hook claude")]);
    command.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(bed.dir());
    Ok(Answer::of(&run(&mut command, event.json().as_bytes())))
}

#[test]
fn s3_3_a_full_disk_changes_no_verdict() {
    for (command, code) in [("seq 1 400000; echo 'error: late'; exit 3", "exit code 3"), ("seq 1 400000", "")] {
        let bed = Gated::new(&gate("loud", command, ""));
        fs::create_dir_all(bed.path(".ralph")).unwrap();
        let mounts = "mount -t tmpfs -o size=512k,mode=755 tmpfs .ralph; trap 'cp -r .ralph/journal \"$HOME/\"' EXIT";
        let answer = match in_mounts_of_its_own(&bed.claim(), &bed, mounts) {
            Ok(answer) => answer,
            Err(skip) => return skip.tell(),
        };
        if code.is_empty() {
            assert!(answer.line().contains("complete") && answer.line().contains("the log is not whole"), "{answer:?}");
            assert!(!bed.exists(LOOP));
        } else {
            let told = reason(&answer);
            assert!(told.contains(code) && told.contains("error: late") && told.contains("the log is not whole: No space left"), "{told}");
            assert_eq!(bed.iteration(), 2);
        }
        assert_eq!(fs::read_dir(bed.home().join("journal")).unwrap().count(), 1, "the journal has its room");
    }
}

#[test]
fn s3_3_a_read_only_folder_lets_the_agent_go_and_proves_nothing() {
    let bed = Gated::new(&gate("fine", "true", ""));
    bed.works().send();
    let before = bed.loop_bytes();
    for mounts in
        ["mount --bind .ralph .ralph; mount -o remount,ro,bind .ralph", "mount --bind . . && cd \"$PWD\" && mount -o remount,ro,bind ."]
    {
        let answer = match in_mounts_of_its_own(&bed.claim(), &bed, mounts) {
            Ok(answer) => answer,
            Err(skip) => return skip.tell(),
        };
        let told = answer.line();
        assert!(told.contains("Read-only file system") && told.contains("The stop is allowed and the loop is kept as it is"), "{told}");
        assert_eq!(bed.loop_bytes(), before);
    }
}

/// What has no place for its log or its lock is measured all the same.
#[test]
fn s3_3_something_in_the_place_of_ralphs_folders() {
    for folder in ["logs", "locks"] {
        for link in [false, true] {
            let bed = Gated::new(&gate("bad", "echo 'error: it broke'; exit 3", ""));
            bed.works().send();
            let place = bed.path(format!(".ralph/{folder}"));
            let _ = fs::remove_dir_all(&place);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            if link {
                std::os::unix::fs::symlink(bed.home(), &place).unwrap();
            } else {
                fs::write(&place, "").unwrap();
            }
            let told = reason(&bed.claim().send());
            assert!(told.contains("exit code 3") && told.contains("error: it broke"), "{folder}: {told}");
            assert_eq!(told.contains("there is no log"), folder == "logs", "{told}");
            assert_eq!(
                (bed.iteration(), fs::read_dir(bed.home()).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count()),
                (3, 0)
            );
        }
    }
}
