//! Bad input, panics and broken surroundings: the agent may stop, the loop is kept, the person reads one line (S0-6, S0-11).

use std::{fs, process::Command, time::Duration};

use serde_json::json;

use crate::common::{Bed, LOOP, ME, OTHER, PROMPT, RALPH, loop_text};

/// S0-6: what is no JSON object is named, allowed, and changes nothing.
#[test]
fn s0_6_input_that_is_no_event_is_allowed_and_named() {
    let inputs: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b" \n\t".to_vec(),
        b"not json".to_vec(),
        b"[]".to_vec(),
        b"[{\"hook_event_name\":\"Stop\"}]".to_vec(),
        b"\"Stop\"".to_vec(),
        b"null".to_vec(),
        b"42".to_vec(),
        b"{".to_vec(),
        b"{\"hook_event_name\":\"Stop\",".to_vec(),
        vec![b'x'; 1024 * 1024],
        vec![0; 1024 * 1024],
        (0..1024 * 1024u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect(),
        [b"{\"a\":".repeat(100_000), b"1".to_vec()].concat(),
        vec![b'['; 1024 * 1024],
        b"\xff\xfe{\x00}\x00".to_vec(),
    ];
    let bed = Bed::with_loop(1, 0, "DONE");
    let before = bed.tree();
    for input in inputs {
        let line = bed.event("Stop").send_raw(input.clone()).line();
        let shown = String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned();
        assert!(line.starts_with("Ralph: the hook's input is not a JSON event ("), "{shown}: {line}");
        assert!(
            line.ends_with(&format!("; {} bytes). The stop is allowed and the loop is kept as it is.", input.len())),
            "{shown}: {line}"
        );
        assert_eq!(bed.tree(), before, "{shown}");
        // Where there is no loop there is nothing to say.
        let empty = Bed::new();
        empty.event("Stop").send_raw(input).is_silent();
        assert!(empty.tree().is_empty());
    }
    bed.work().send().blocks_with(PROMPT);
}

/// S0-6: an event with odd bytes in it is still an event: a byte order mark, lone surrogates, invalid UTF-8, duplicates, huge fields.
#[test]
fn s0_6_odd_events_are_events() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let event = |message: &str| bed.stop("WORDS").json().replace("WORDS", message);
    let mut inputs: Vec<Vec<u8>> = vec![
        format!("\u{feff}{}", event("bom")).into_bytes(),
        format!("\n\n  {}\n\n", event("space around")).into_bytes(),
        event("lone \\ud800 high").into_bytes(),
        event("lone \\udfff low \\ud83d\\ud83d\\ude00").into_bytes(),
        event("raw \u{0} \u{1f} \t controls").into_bytes(),
        event(&"big ".repeat(300_000)).into_bytes(),
    ];
    let mut invalid = event("invalid AAAA utf-8").into_bytes();
    let at = invalid.windows(4).position(|w| w == b"AAAA").unwrap();
    invalid.splice(at..at + 4, [0xff, 0xc3, 0x28, 0xf0]);
    inputs.push(invalid);
    for (n, input) in inputs.into_iter().enumerate() {
        bed.event("Stop").send_raw(input).blocks_with(PROMPT);
        assert_eq!(bed.iteration(), n as u64 + 2);
    }
    let nested = event("deep").replacen('{', &format!("{{\"x\":{}{},", "[".repeat(100), "]".repeat(100)), 1);
    bed.event("Stop").send_raw(nested).blocks_with(PROMPT);
}

/// S0-11: a panic allows the stop, pauses the loop, says so in one line, and shows no stack trace.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "a release build has no fault to provoke")]
fn s0_11_a_panic_allows_the_stop_and_pauses_the_loop() {
    let bed = Bed::with_loop(3, 9, "DONE");
    let event = bed.work().env("RALPH_FAULT", "panic").env("RUST_BACKTRACE", "full");
    // `send` has checked the exit code, an empty standard error and one line of JSON.
    event
        .send()
        .tells("Ralph: internal error: provoked by RALPH_FAULT. The stop is allowed and the loop is paused; /ralph-resume goes on.");
    assert_eq!(bed.read(LOOP), loop_text(ME, 3, 9, "DONE").replace("active: true", "active: false"));
    assert_eq!(bed.kinds(), ["error", "paused"]);
    assert!(bed.work().send().line().contains("so this stop was not checked"));
    bed.work().send().is_silent();
    bed.ralph_ok(&["resume"]);
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 4);
}

/// S0-11: a panic in another session, without a loop or in another event pauses nothing.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "a release build has no fault to provoke")]
fn s0_11_a_panic_elsewhere_pauses_nothing() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let file = bed.loop_bytes();
    for event in [bed.work().session(OTHER), bed.event("SubagentStop"), bed.event("PreCompact"), bed.typed("hello")] {
        event
            .env("RALPH_FAULT", "panic")
            .send()
            .tells("Ralph: internal error: provoked by RALPH_FAULT. The stop is allowed and the loop is kept as it is.");
        assert_eq!(bed.loop_bytes(), file);
    }
}

/// S0-11: closed and broken pipes are the client's affair.
#[test]
fn s0_11_a_client_that_went_away_needs_no_answer() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let shell = |script: &str| {
        let event = bed.work();
        let out = bed
            .run("/bin/sh")
            .args(["-c", script, "sh", RALPH])
            .env("CLAUDE_PROJECT_DIR", bed.dir())
            .env("CLAUDE_CODE_SESSION_ID", ME)
            .stdin(event.json())
            .output();
        assert!(!out.timed_out && !out.stderr.contains("panicked"), "{script}: {out:?}");
        out
    };
    // Nobody reads; the round is counted all the same.
    assert_eq!(shell("\"$1\" hook claude >&-; echo $?").stdout, "0\n");
    assert_eq!(shell("{ \"$1\" hook claude; echo $? >&2; } | true").stderr, "0\n");
    assert_eq!(bed.iteration(), 3);
    shell("\"$1\" hook claude 2>&-");
    assert_eq!(bed.iteration(), 4);
    // No standard input at all: nothing to decide, and no crash.
    let out = shell("\"$1\" hook claude <&-; echo $?");
    assert!(matches!(out.stdout.lines().last(), Some("0" | "1")), "{out:?}");
    assert_eq!(bed.iteration(), 4);
}

/// S0-11: started with its standard streams closed, the program must not take one of its own files for one of them: no answer and no error
/// message ever lands in a loop file, a journal or the lock.
#[test]
fn s0_11_closed_standard_streams_are_not_mistaken_for_files() {
    const AGAIN: &str = "resume --session 5e551017-0000-4000-8000-000000000001";
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"] {
        let bed = Bed::with_loop(1, 0, "DONE");
        bed.work().send();
        let event = bed.work();
        for command in ["hook claude", "pause", AGAIN, "status", "log", "explain", "list", "start x", "resume nobody", "cancel"] {
            let script = format!("\"$1\" {command} {closed}");
            let out = bed
                .run("/bin/sh")
                .args(["-c", &script, "sh", RALPH])
                .env("CLAUDE_PROJECT_DIR", bed.dir())
                // The rest is typed by a person.
                .env(if command == "hook claude" { "CLAUDE_CODE_SESSION_ID" } else { "UNUSED" }, ME)
                .stdin(event.json())
                .output();
            assert!(!out.timed_out && out.signal.is_none(), "{command} {closed}: {out:?}");
            assert_eq!(bed.read(".ralph/lock"), "", "{command} {closed}");
            assert_eq!(bed.read(".ralph/.gitignore"), "*\n", "{command} {closed}");
            if bed.exists(LOOP) {
                let active = bed.value("active");
                let expected = loop_text(ME, bed.iteration(), 0, "DONE").replace("active: true", &format!("active: {active}"));
                assert_eq!(bed.read(LOOP), expected, "{command} {closed}");
            }
            // Every line is a whole record.
            assert!(!bed.journal().is_empty(), "{command} {closed}");
        }
        assert!(!bed.exists(LOOP), "{closed}");
        assert_eq!(bed.files_in(".ralph/archive").len(), 1, "{closed}");
        for line in bed.hook_log() {
            assert!(line.starts_with("event="), "{closed}: {line}");
        }
    }
}

/// S0-11: a full disk. Nothing is lost, the agent may stop, and when there is space again the loop goes on.
#[test]
fn s0_11_a_full_disk_loses_nothing() {
    let bed = Bed::new();
    let disk = bed.path("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&disk).output();
    if !mount.is_ok_and(|m| m.status.success()) {
        ralph_testkit::Skip("cannot mount a small disk here".to_owned()).report();
        return;
    }
    let text = loop_text(ME, 1, 0, "DONE").replace(PROMPT, &"Do it. ".repeat(3_000));
    let result = std::panic::catch_unwind(|| {
        fs::create_dir(disk.join(".claude")).unwrap();
        fs::write(disk.join(LOOP), &text).unwrap();
        let stop = || bed.work().env("CLAUDE_PROJECT_DIR", &disk);
        assert!(stop().send().blocks());
        let _ = fs::write(disk.join("filler"), vec![b'x'; 512 * 1024]);
        let _ = fs::write(disk.join("filler2"), vec![b'x'; 64 * 1024]);
        let full = fs::read_to_string(disk.join(LOOP)).unwrap();
        for _ in 0..3 {
            let answer = stop().send();
            let after = fs::read_to_string(disk.join(LOOP)).unwrap();
            // Sent back and counted, or allowed, told and kept: never a torn file.
            if answer.blocks() {
                assert_eq!(after.len(), full.len());
            } else {
                assert!(answer.line().starts_with("Ralph: cannot write "), "{answer:?}");
                assert!(after.ends_with(&full[200..]), "torn: {} of {} bytes", after.len(), full.len());
            }
        }
        fs::remove_file(disk.join("filler")).unwrap();
        let _ = fs::remove_file(disk.join("filler2"));
        bed.run(RALPH).args(["resume"]).cwd(&disk).output();
        assert!(stop().send().blocks());
    });
    let unmounted = Command::new("umount").arg("-l").arg(&disk).status().unwrap().success();
    assert!(unmounted);
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// S0-11: an unreadable or garbled journal never decides whether an agent may stop.
#[test]
fn s0_11_a_broken_journal_does_not_matter() {
    let garbage: [&[u8]; 6] = [
        b"",
        b"garbage",
        b"{\"v\":1,\"seq\":",
        b"\n\n\n",
        b"\xff\xfe\x00",
        b"{\"v\":9,\"seq\":1,\"at\":\"x\",\"loop\":\"l\",\"event\":{\"kind\":\"from-the-future\",\"x\":1},\"state\":{\"new\":true}}\n",
    ];
    for bytes in garbage {
        let bed = Bed::with_loop(1, 0, "DONE");
        bed.work().send();
        let path = bed.files_in(".ralph/journal")[0].clone();
        let is_torn = fs::read(&path).unwrap().starts_with(bytes);
        // Instead of the journal, and after it, as a killed writer leaves it.
        fs::write(&path, bytes).unwrap();
        bed.work().send().blocks_with(PROMPT);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [whole.as_slice(), bytes].concat()).unwrap();
        bed.work().send().blocks_with(PROMPT);
        assert_eq!(bed.iteration(), 4);
        for args in [vec!["status"], vec!["log"], vec!["explain"], vec!["list"], vec!["status", "--json"], vec!["log", "--json"]] {
            let out = bed.ralph(&args);
            assert_eq!(out.code, Some(0), "{args:?} {}: {out:?}", String::from_utf8_lossy(bytes));
        }
        // What was readable is still there, each record on its own line.
        let records = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let good =
            records.lines().filter(|l| serde_json::from_str::<serde_json::Value>(l).is_ok_and(|r| r["event"]["kind"] == "stop")).count();
        // The beginning of its only line is what a killed writer leaves: the line comes back.
        assert_eq!(good, if is_torn { 3 } else { 2 }, "{records}");
    }
}

/// S0-11: the journal as a folder, ralph's folder without its parts, a garbled last ending.
#[test]
fn s0_11_a_damaged_ralph_folder_does_not_trap_anybody() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    for part in ["lock", ".gitignore", "hook.log"] {
        let _ = fs::remove_file(bed.path(".ralph").join(part));
    }
    fs::remove_dir_all(bed.path(".ralph/archive")).unwrap();
    fs::remove_dir_all(bed.path(".ralph/backup")).unwrap();
    bed.write(".ralph/last-ending.json", "garbage");
    bed.work().send().blocks_with(PROMPT);
    bed.stop("<promise>DONE</promise>").send().line();
    assert_eq!(bed.files_in(".ralph/archive").len(), 1);
    bed.work().send().is_silent();
    // The journal's place is taken by a folder.
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let journal = bed.files_in(".ralph/journal")[0].clone();
    fs::remove_file(&journal).unwrap();
    fs::create_dir(&journal).unwrap();
    let answer = bed.work().send();
    assert!(answer.json.is_some());
    for args in [["status"], ["list"]] {
        assert_eq!(bed.ralph(&args).code, Some(0));
    }
}

/// S0-11: another process holds the lock (a stopped ralph, say): the wait is bounded, and the agent may stop.
#[test]
fn s0_11_a_held_lock_is_waited_for_and_not_for_ever() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let lock = fs::File::options().write(true).open(bed.path(".ralph/lock")).unwrap();
    lock.lock().unwrap();
    let before = bed.loop_bytes();
    // A cancel wins even so.
    let hook = bed.work();
    let started = std::time::Instant::now();
    let answer = hook.send();
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    answer
        .tells("Ralph: another ralph process has held .ralph/lock for several seconds. The stop is allowed and the loop is kept as it is.");
    assert_eq!(bed.loop_bytes(), before);
    let out = bed.ralph(&["cancel"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(!bed.exists(LOOP));
    assert_eq!(bed.archived(), before);
    drop(lock);
    bed.work().send().is_silent();
}

/// A lock that is held for a moment is waited for.
#[test]
fn s0_11_a_lock_that_comes_free_is_taken() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    let lock = fs::File::options().write(true).open(bed.path(".ralph/lock")).unwrap();
    lock.lock().unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        drop(lock);
    });
    bed.work().send().blocks_with(PROMPT);
    release.join().unwrap();
}

/// Odd values in the fields that ralph reads.
#[test]
fn s0_6_fields_of_strange_types_are_no_error() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.write(LOOP, bed.read(LOOP).replace("started_at", "stall_rounds: 0\nstarted_at"));
    for strange in [json!(null), json!(1), json!([]), json!({"a": 1}), json!(true)] {
        for field in ["prompt_id", "stop_hook_active", "transcript_path", "cwd", "session_crons", "effort"] {
            bed.work().field(field, strange.clone()).send().blocks_with(PROMPT);
        }
    }
}

/// The client's folder on a file system of its own: nothing can be exchanged or renamed across, and everything works all the same.
#[test]
fn s0_3_a_claude_folder_on_another_file_system() {
    let bed = Bed::new();
    let folder = bed.path(".claude");
    std::fs::create_dir(&folder).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&folder).output();
    if !mount.is_ok_and(|m| m.status.success()) {
        ralph_testkit::Skip("cannot mount another file system here".to_owned()).report();
        return;
    }
    let result = std::panic::catch_unwind(|| {
        bed.ralph_ok(&["start", "The task.", "--session", ME, "--completion-promise", "DONE"]);
        assert!(bed.work().send().blocks());
        assert_eq!(bed.iteration(), 2);
        bed.ralph_ok(&["pause"]);
        bed.ralph_ok(&["cancel"]);
        assert!(!bed.exists(LOOP));
        bed.ralph_ok(&["resume"]);
        assert!(bed.work().send().blocks());
        bed.stop("<promise>DONE</promise>").send().line();
        assert!(!bed.exists(LOOP));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "nothing is left over");
    });
    assert!(Command::new("umount").arg("-l").arg(&folder).status().unwrap().success());
    result.unwrap();
}
