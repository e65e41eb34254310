//! The loop file (S0-3): every way to write one, and exactly one value that differs after a block; and files that are no plain files.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    process::Command,
    time::Duration,
};

use crate::common::{Bed, LOOP, ME, OTHER, PAUSED_BY_HAND, PROMPT, loop_text, next_stop};

/// Blocks once and compares the file byte for byte with `after`.
fn block_once(before: &[u8], after: &[u8]) {
    let bed = Bed::new();
    bed.write(LOOP, before);
    assert!(bed.work().send().blocks(), "{}", String::from_utf8_lossy(before));
    let shown = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    assert_eq!(shown(&bed.loop_bytes()), shown(after));
    assert_eq!(bed.loop_bytes(), after);
}

/// S0-3: in every style of YAML only the value of `iteration` changes.
#[test]
fn s0_3_only_the_iteration_changes_in_every_style() {
    let cases: &[(&str, &str)] = &[
        ("---\niteration: 1\n---\nGo\n", "---\niteration: 2\n---\nGo\n"),
        ("---\r\niteration: 1\r\nother: x\r\n---\r\n\r\nGo\r\non\r\n", "---\r\niteration: 2\r\nother: x\r\n---\r\n\r\nGo\r\non\r\n"),
        ("\u{feff}---\niteration: 1\n---\nGo\n", "\u{feff}---\niteration: 2\n---\nGo\n"),
        ("\u{feff}---\r\niteration: 1\r\n---\r\nGo", "\u{feff}---\r\niteration: 2\r\n---\r\nGo"),
        ("---\niteration: \"1\"\n---\nGo\n", "---\niteration: \"2\"\n---\nGo\n"),
        ("---\niteration: '9'\n---\nGo\n", "---\niteration: '10'\n---\nGo\n"),
        ("---\niteration:    1    # the round\n---\nGo\n", "---\niteration:    2    # the round\n---\nGo\n"),
        ("---\n# top\niteration: 1\n\n# iteration: 7\nx: 1\n---\nGo\n", "---\n# top\niteration: 2\n\n# iteration: 7\nx: 1\n---\nGo\n"),
        ("---\n{iteration: 1, note: \"a, b: {c}\"}\n---\nGo\n", "---\n{iteration: 2, note: \"a, b: {c}\"}\n---\nGo\n"),
        ("---\n\"iteration\": 1\n'x': 1\n---\nGo\n", "---\n\"iteration\": 2\n'x': 1\n---\nGo\n"),
        (
            "---\niteration: 1\nnested:\n  iteration: 5\nlist: [iteration, 1]\n---\nGo\n",
            "---\niteration: 2\nnested:\n  iteration: 5\nlist: [iteration, 1]\n---\nGo\n",
        ),
        ("---\nnote: |\n  iteration: 1\n  more\niteration: 1\n---\nGo\n", "---\nnote: |\n  iteration: 1\n  more\niteration: 2\n---\nGo\n"),
        ("---\nunknown: [1, 2]\niteration: 1\nzeta: ~\n\n---\nGo\n", "---\nunknown: [1, 2]\niteration: 2\nzeta: ~\n\n---\nGo\n"),
        ("--- \t\niteration: 1\n---\t \nGo\n", "--- \t\niteration: 2\n---\t \nGo\n"),
        (
            "---\nmax_iterations: 11\niteration: 1\n---\niteration: 1\n---\nnot yaml: [\n",
            "---\nmax_iterations: 11\niteration: 2\n---\niteration: 1\n---\nnot yaml: [\n",
        ),
        ("---\nключ: значение\niteration: 1\n---\nПривет 🎉\n", "---\nключ: значение\niteration: 2\n---\nПривет 🎉\n"),
        ("---\niteration: 1\n---\nno line break at the end", "---\niteration: 2\n---\nno line break at the end"),
        ("---\niteration: 0\n---\nGo\n", "---\niteration: 1\n---\nGo\n"),
        ("---\niteration: 9\n---\nGo\n", "---\niteration: 10\n---\nGo\n"),
        ("---\niteration: 99\nx: 99\n---\nGo\n", "---\niteration: 100\nx: 99\n---\nGo\n"),
    ];
    for (before, after) in cases {
        block_once(before.as_bytes(), after.as_bytes());
    }
}

/// S0-3: the body may hold any bytes; they stay.
#[test]
fn s0_3_bytes_of_the_body_that_are_no_text_survive() {
    let mut before = b"---\niteration: 9\n---\nGo \xff\xfe\x00\x01 on\n\x80".to_vec();
    let mut after = before.clone();
    after.splice(15..16, *b"10");
    block_once(&before, &after);
    before.extend([0u8; 3000]);
    after.extend([0u8; 3000]);
    block_once(&before, &after);
}

/// S0-3: CRLF files work from the first stop to the last (the upstream script dies on them), and a pause keeps their line ends.
#[test]
fn s0_3_a_crlf_file_lives_through_a_whole_loop() {
    let bed = Bed::new();
    let text = loop_text(ME, 1, 3, "ALL DONE").replace('\n', "\r\n");
    bed.write(LOOP, &text);
    assert_eq!(
        bed.work().send().blocks_with("Make the tests pass.\r\nThen write the notes."),
        "Ralph: iteration 2 of 3. Ends on <promise>ALL DONE</promise>."
    );
    bed.ralph_ok(&["pause"]);
    assert_eq!(bed.read(LOOP), text.replace("iteration: 1\r", "iteration: 2\r").replace("active: true", "active: false"));
    bed.ralph_ok(&["resume"]);
    assert_eq!(bed.read(LOOP), text.replace("iteration: 1\r", "iteration: 2\r"));
    bed.stop("<promise>ALL\r\nDONE</promise>").send();
    assert_eq!(bed.codes(), ["promise.missing", "promise.accepted"]);
}

/// S0-3: pausing a file that has no `active` key adds one line before the closing `---` and nothing else.
#[test]
fn s0_3_a_missing_key_is_added_as_one_line() {
    let bed = Bed::new();
    bed.write(LOOP, format!("---\r\niteration: 1\r\nsession_id: {ME}\r\n---\r\nGo\r\n"));
    bed.ralph_ok(&["pause"]);
    assert_eq!(bed.read(LOOP), format!("---\r\niteration: 1\r\nsession_id: {ME}\r\nactive: false\r\n---\r\nGo\r\n"));
}

/// S0-3: the mode of the file stays.
#[test]
fn s0_3_permissions_of_the_file_survive() {
    let bed = Bed::with_loop(1, 0, "DONE");
    for mode in [0o600, 0o640, 0o664] {
        fs::set_permissions(bed.path(LOOP), fs::Permissions::from_mode(mode)).unwrap();
        assert!(bed.work().send().blocks());
        assert_eq!(bed.path(LOOP).metadata().unwrap().permissions().mode() & 0o777, mode);
    }
}

/// S0-3: many rounds, each byte in its place.
#[test]
fn s0_3_twelve_rounds_differ_only_in_the_number() {
    let bed = Bed::new();
    let text = |n: u64| {
        format!("---\n# keep me\niteration: {n} # and me\nsession_id: {ME}\nstall_rounds: 0\nx: {{a: [1, 2]}}\n---\n\n{PROMPT}\n\n")
    };
    bed.write(LOOP, text(1));
    for n in 2..=13 {
        assert!(bed.work().client("claude-code_2-1-325_harness").send().blocks());
        assert_eq!(bed.read(LOOP), text(n));
    }
}

/// design 4: people edit the file and their edits count from the next stop on.
#[test]
fn s0_3_edits_by_hand_count_from_the_next_stop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send().blocks_with(PROMPT);
    let edited = bed.read(LOOP).replace(PROMPT, "Another task.").replace("max_iterations: 0", "max_iterations: 3");
    bed.write(LOOP, &edited);
    let line = bed.work().send().blocks_with("Another task.");
    let edits = "Ralph: the loop file was edited: max_iterations no limit → 3, the prompt.";
    assert_eq!(line, format!("Ralph: iteration 3 of 3. Ends on <promise>DONE</promise>.\n{edits}"), "t7");
    bed.write(LOOP, bed.read(LOOP).replace("\"DONE\"", "FERTIG"));
    assert!(!bed.stop("<promise>FERTIG</promise>").send().blocks());
    assert_eq!(bed.codes(), ["promise.missing", "promise.missing", "promise.accepted"]);
    // One loop, one journal, whatever was edited.
    assert_eq!(bed.files_in(".ralph/journal").len(), 1);
}

/// pains 10, t10: `active: false` is honoured, told once, and counts nothing; `active: true` goes on.
#[test]
fn pains_10_active_false_pauses_the_loop() {
    let bed = Bed::with_loop(2, 9, "DONE");
    bed.work().send();
    bed.write(LOOP, bed.read(LOOP).replace("active: true", "active: false"));
    let before = bed.loop_bytes();
    bed.work().send().tells(PAUSED_BY_HAND);
    for _ in 0..3 {
        bed.work().send().is_silent();
    }
    // Not even the promise ends a loop that its owner paused.
    bed.stop("<promise>DONE</promise>").send().is_silent();
    assert_eq!(bed.loop_bytes(), before);
    bed.write(LOOP, bed.read(LOOP).replace("active: false", "active: true"));
    bed.work().send().blocks_with(PROMPT);
    assert_eq!(bed.iteration(), 4);
}

/// pains 10: a file that somebody deleted is never re-created.
#[test]
fn pains_10_a_deleted_file_stays_deleted() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    fs::remove_file(bed.path(LOOP)).unwrap();
    assert!(bed.work().send().line().contains("was deleted, and not by ralph"), "t10");
    bed.work().send().is_silent();
    bed.event("SessionEnd").field("reason", "other").send().is_silent();
    bed.event("SessionStart").field("source", "clear").session(OTHER).send().is_silent();
    assert!(!bed.exists(LOOP));
    assert_eq!(bed.last_ended()["status"], "gone");
}

/// design 6: `.ralph` is written only where it is a real folder of ralph's own.
#[test]
fn s0_11_a_planted_link_in_place_of_ralphs_folder_is_not_written_through() {
    let bed = Bed::with_loop(1, 0, "DONE");
    let elsewhere = bed.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, bed.path(".ralph")).unwrap();
    let before = bed.tree();
    let line = bed.work().send().line();
    let path = bed.path(".ralph");
    assert_eq!(
        line,
        format!(
            "Ralph: {} is not a plain folder of ralph's own: move it away. The stop is allowed and the loop is kept as it is.",
            path.display()
        )
    );
    bed.event("PreCompact").send();
    bed.ralph(&["cancel"]);
    assert_eq!(bed.tree(), before);
    let left: Vec<_> = fs::read_dir(&elsewhere).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.is_empty(), "written through the link: {left:?}");
}

/// The same for the folders and files inside.
#[test]
fn s0_11_planted_links_inside_ralphs_folder_are_not_written_through() {
    for inside in ["journal", "archive", "backup", "lock", "hook.log", ".gitignore", "backup/main.md", "last-ending.json.new"] {
        let bed = Bed::with_loop(1, 0, "DONE");
        let folder = matches!(inside, "journal" | "archive" | "backup");
        let target = bed.home().join("target");
        if folder {
            fs::create_dir(&target).unwrap();
        } else {
            fs::write(&target, "precious").unwrap();
        }
        fs::create_dir_all(bed.path(".ralph/backup").parent().unwrap()).unwrap();
        if inside.starts_with("backup/") {
            fs::create_dir_all(bed.path(".ralph/backup")).unwrap();
        }
        symlink(&target, bed.path(".ralph").join(inside)).unwrap();
        bed.work().send();
        bed.stop("<promise>DONE</promise>").send();
        if folder {
            assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "{inside}");
        } else {
            assert_eq!(fs::read_to_string(&target).unwrap(), "precious", "{inside}");
        }
    }
}

#[test]
fn s0_11_a_file_in_place_of_ralphs_folder_lets_the_agent_stop() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.write(".ralph", "somebody's file");
    let before = bed.tree();
    let line = bed.work().send().line();
    assert!(line.contains("is not a plain folder of ralph's own") && line.ends_with("the loop is kept as it is."), "{line}");
    assert_eq!(bed.tree(), before);
    let out = bed.ralph(&["start", "x", "--endless"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert_eq!(bed.tree(), before);
}

/// A loop file that is a link: its target is not changed, and the loop works on, stop after stop.
#[test]
fn s0_3_a_loop_file_that_is_a_link_works_and_its_target_is_kept() {
    let bed = Bed::new();
    let target = bed.home().join("my loop.md");
    fs::write(&target, loop_text(ME, 1, 0, "DONE")).unwrap();
    fs::create_dir(bed.path(".claude")).unwrap();
    symlink(&target, bed.path(LOOP)).unwrap();
    for n in 2..5 {
        bed.work().send().blocks_with(PROMPT);
        assert_eq!(bed.iteration(), n);
    }
    bed.stop("<promise>DONE</promise>").send();
    assert!(bed.path(LOOP).symlink_metadata().is_err());
    assert!(target.exists(), "nothing is ever destroyed");
}

/// S0-11: files that are none must neither hold the hook nor break it.
#[test]
fn s0_11_a_folder_a_pipe_a_dangling_link_and_a_device_do_not_hold_the_hook() {
    for kind in ["folder", "pipe", "dangling", "device"] {
        let bed = Bed::new();
        fs::create_dir(bed.path(".claude")).unwrap();
        let path = bed.path(LOOP);
        match kind {
            "folder" => fs::create_dir(&path).unwrap(),
            "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            "dangling" => symlink("/nowhere/at/all", &path).unwrap(),
            _ => symlink("/dev/zero", &path).unwrap(),
        }
        let answer = bed.work().send();
        assert!(!answer.blocks(), "{kind}");
        assert!(path.symlink_metadata().is_ok(), "{kind} is still there");
        for event in ["SessionStart", "SessionEnd", "PreCompact"] {
            assert!(!bed.event(event).field("source", "startup").send().blocks());
        }
        for args in [["status"], ["list"], ["pause"]] {
            let out = bed.run(crate::common::RALPH).args(args).timeout(Duration::from_secs(5)).output();
            assert!(!out.timed_out && !out.stderr.contains("panicked"), "{kind} {args:?} {out:?}");
        }
    }
}

/// S0-4: a file of 20 MB was not meant as a prompt; it is named, and kept.
#[test]
fn s0_4_a_huge_file_lets_the_agent_stop() {
    let bed = Bed::new();
    let mut text = loop_text(ME, 1, 0, "DONE").into_bytes();
    text.resize(20 * 1024 * 1024, b'x');
    bed.write(LOOP, &text);
    let line = bed.work().send().line();
    assert!(line.contains("ralph-loop.local.md") && line.contains("larger than"), "{line}");
    let kept = if bed.exists(LOOP) { bed.loop_bytes() } else { bed.archived() };
    assert!(kept == text, "the file is kept as it is");
}

/// A huge file that names its session is no other session's business.
#[test]
fn s0_4_a_huge_file_of_another_session_is_left_alone() {
    let bed = Bed::new();
    let mut text = loop_text(OTHER, 1, 0, "DONE").into_bytes();
    text.resize(20 * 1024 * 1024, b'x');
    bed.write(LOOP, &text);
    bed.work().send().is_silent();
}

/// S0-11: nothing can be written (an immutable file binds even root). The stop is allowed, and the file is as it was.
#[test]
fn s0_11_an_immutable_file_or_folder_lets_the_agent_stop() {
    for what in [LOOP, ".claude"] {
        let bed = Bed::with_loop(1, 0, "DONE");
        let path = bed.path(what);
        let chattr = |flag: &str| Command::new("chattr").arg(flag).arg(&path).output().is_ok_and(|o| o.status.success());
        if !chattr("+i") {
            ralph_testkit::Skip("chattr does not work here".to_owned()).report();
            return;
        }
        let before = bed.loop_bytes();
        let answer = bed.work().send();
        let cancel = bed.ralph(&["cancel"]);
        let after = bed.loop_bytes();
        assert!(chattr("-i"));
        let line = answer.line();
        assert!(line.starts_with("Ralph: cannot write ") && line.ends_with("the loop is kept as it is."), "{line}");
        assert_eq!(after, before);
        assert_eq!(cancel.code, Some(1), "{cancel:?}");
        assert!(cancel.stderr.starts_with("error: cannot archive "), "{}", cancel.stderr);
        next_stop();
        bed.work().send().blocks_with(PROMPT);
    }
}
