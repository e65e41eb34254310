//! Work that is counted, and money (t15 to t18): marks that are not lost, iterations that change nothing, sessions that are not needed, tests that vanish.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    api_errors::{fails, limit_line},
    common::{Bed, CLIENT, LOOP, ME, RALPH, loop_text, now_ms, run},
    gated::{Gated, gate},
    run::Runs,
};

/// So many write at once.
const WRITERS: usize = 16;

fn ids() -> Vec<String> {
    (1..=WRITERS).map(|n| format!("F{n}")).collect()
}

/// Starts them all, and waits for their ends; each must be a success.
fn all_succeed(commands: impl Iterator<Item = Command>) {
    let start = |mut command: Command| command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running: Vec<Child> = commands.map(start).collect();
    for child in running {
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{:?}: {}", out.status, String::from_utf8_lossy(&out.stderr));
    }
}

fn features() -> String {
    json!(ids().iter().map(|id| json!({"id": id, "description": format!("feature {id}"), "passes": false})).collect::<Vec<_>>()).to_string()
}

fn stories() -> String {
    let story = |(n, id): (usize, String)| json!({"id": id, "title": "a story", "priority": n, "passes": false});
    serde_json::to_string_pretty(&json!({"branchName": "x", "userStories": ids().into_iter().enumerate().map(story).collect::<Vec<_>>()}))
        .unwrap()
}

fn boxes() -> String {
    ids().iter().fold("# Plan\n\n".to_owned(), |text, id| format!("{text}- [ ] **{id}** do it\n"))
}

/// How many items of a list are marked; `None`: it is broken.
fn marked(path: &Path) -> Option<usize> {
    let text = fs::read_to_string(path).ok()?;
    if path.extension().is_some_and(|e| e == "md") {
        return (text.matches("- [").count() == WRITERS).then(|| text.matches("- [x]").count());
    }
    let list: Value = serde_json::from_str(&text).ok()?;
    let items = if list.is_array() { &list } else { &list["userStories"] };
    Some(items.as_array()?.iter().filter(|item| item["passes"] == true).count())
}

/// Whoever reads the list while it is written reads a whole one, every time.
fn watched<T>(path: &Path, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert!(marked(path).is_some(), "broken: {}", fs::read_to_string(path).unwrap_or_default());
                thread::sleep(Duration::from_millis(1));
            }
        });
        // The reader ends with the work, also where that fails.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn t15_sixteen_writers_lose_no_mark_in_any_kind_of_list() {
    for (list, text) in [("feature_list.json", features()), ("prd.json", stories()), ("PLAN.md", boxes())] {
        let bed = Bed::new();
        for round in 0..8 {
            bed.write(list, &text);
            let one = |id: String| {
                let mut command = bed.command(RALPH);
                command.args(["item", "done", &id, "--list", list]);
                command
            };
            watched(&bed.path(list), || all_succeed(ids().into_iter().map(one)));
            assert_eq!(marked(&bed.path(list)), Some(WRITERS), "{list}, iteration {round}: {}", bed.read(list));
        }
    }
}

/// Two lists of one name have one place for their backups, and two projects may share one list.
#[test]
fn t15_lists_of_one_name_and_a_list_of_two_projects() {
    let bed = Bed::new();
    for folder in ["a", "b"] {
        bed.write(format!("{folder}/feature_list.json"), features());
    }
    let one = |(n, id): (usize, String)| {
        let mut command = bed.command(RALPH);
        command.args(["item", "done", &id, "--list", &format!("{}/feature_list.json", if n % 2 == 0 { "a" } else { "b" })]);
        command
    };
    for _ in 0..4 {
        all_succeed(ids().into_iter().chain(ids().into_iter().rev()).enumerate().map(one));
    }
    for folder in ["a", "b"] {
        assert!(marked(&bed.path(format!("{folder}/feature_list.json"))).is_some_and(|n| n >= WRITERS / 2));
    }
    let shared = bed.home().join("shared");
    fs::create_dir_all(&shared).unwrap();
    for round in 0..6 {
        fs::write(shared.join("feature_list.json"), features()).unwrap();
        let one = |(n, id): (usize, String)| {
            let project = bed.home().join(format!("worktree-{}", n % 3));
            fs::create_dir_all(project.join(".claude")).unwrap();
            let mut command = bed.command(RALPH);
            command.args(["item", "done", &id]).current_dir(project).env("RALPH_LOOP_DIR", &shared);
            command
        };
        all_succeed(ids().into_iter().enumerate().map(one));
        assert_eq!(marked(&shared.join("feature_list.json")), Some(WRITERS), "iteration {round}");
    }
}

/// Items that have commands are proven at the same time; what was proven is remembered of each.
#[test]
fn t15_what_was_proven_is_not_forgotten_by_those_who_prove_something_else() {
    let bed = Bed::new();
    let list = json!(ids().iter().map(|id| json!({"id": id, "passes": false, "verify": ["true"]})).collect::<Vec<_>>());
    bed.write("feature_list.json", list.to_string());
    bed.ralph_ok(&["trust", "--yes"]);
    let one = |id: String| {
        let mut command = bed.command(RALPH);
        command.args(["item", "done", &id]);
        command
    };
    all_succeed(ids().into_iter().map(one));
    assert_eq!(marked(&bed.path("feature_list.json")), Some(WRITERS));
    let proven: Vec<String> = serde_json::from_slice(&fs::read(&bed.kept("items")[0]).unwrap()).unwrap();
    assert_eq!(proven.len(), WRITERS);
}

/// The log is put aside when it is full, and whoever finds it full at the same moment puts nothing over it.
#[test]
fn t15_a_log_that_is_full_for_many_at_once_is_put_aside_once() {
    let bed = Bed::with_loop(1, 0, "DONE");
    bed.work().send();
    for _ in 0..4 {
        let _ = fs::remove_file(bed.path(".ralph/hook.log.old"));
        let _ = fs::remove_file(bed.path(".ralph/log.old"));
        let line = format!("{}\n", "x".repeat(1023));
        fs::write(bed.path(".ralph/hook.log"), line.repeat(1024)).unwrap();
        let events: Vec<_> = (0..WRITERS).map(|n| bed.event("Notification").field("message", n.to_string())).collect();
        thread::scope(|scope| {
            for event in &events {
                scope.spawn(|| event.send());
            }
        });
        let lines: usize = bed
            .files_in(".ralph")
            .iter()
            .filter(|p| p.to_string_lossy().contains("log"))
            .map(|p| fs::read_to_string(p).unwrap_or_default().lines().count())
            .sum();
        assert_eq!(lines, 1024 + WRITERS, "{:?}", bed.files_in(".ralph"));
    }
}

/// How many stops went on before the one that was let through, and what it said.
fn stops_until_pause(bed: &Bed, most: u64, mut between: impl FnMut(u64)) -> Option<(u64, String)> {
    for n in 1..=most {
        let answer = bed.work().send();
        if !answer.blocks() {
            return Some((n, answer.line()));
        }
        between(n);
    }
    None
}

#[test]
fn t16_ten_iterations_that_change_nothing_pause_a_session() {
    for bed in [Bed::in_git(), Bed::new()] {
        bed.write("a.txt", "1");
        let out = bed.ralph(&["start", "Go", "--completion-promise", "DONE"]);
        assert!(out.stdout.contains("pauses after 10 "), "{}", out.stdout);
        let (stops, line) = stops_until_pause(&bed, 60, |_| {}).expect("60 of 60 went on");
        assert_eq!(stops, 10);
        assert_eq!(
            line,
            "Ralph: paused at iteration 10: 10 iterations changed nothing: same commit, same files. /ralph-resume arms it again."
        );
        assert_eq!(bed.codes().pop().unwrap(), "progress.none");
        // Who resumes it by hand wants as many again; now the first stop is what the others are compared with.
        bed.ralph_ok(&["resume"]);
        assert_eq!(stops_until_pause(&bed, 60, |_| {}).map(|(n, _)| n), Some(11));
    }
    let by_hand = Bed::with_loop(1, 0, "DONE");
    assert_eq!(stops_until_pause(&by_hand, 60, |_| {}).map(|(n, _)| n), Some(11), "what the first one changed is not known");
}

#[test]
fn t16_what_changes_something_now_and_then_goes_on() {
    let bed = Bed::in_git();
    bed.ralph(&["start", "Go", "--completion-promise", "DONE"]);
    let change = |n: u64| {
        if n.is_multiple_of(4) {
            bed.write("a.txt", n.to_string());
        }
        if n.is_multiple_of(9) {
            bed.commit_all("a commit");
        }
    };
    assert_eq!(stops_until_pause(&bed, 40, change), None);
    assert!(stops_until_pause(&bed, 16, |_| {}).is_some(), "and then nothing changes any more");
}

/// A finding that changes is progress, a file that git ignores is none, and 0 lifts the brake.
#[test]
fn t16_findings_count_and_zero_lifts_it() {
    let gated = Gated::in_git(&gate("tests", "exit $(cat \"$HOME/code\")", "cache = false\nevery_stop = true"));
    let mut text = loop_text(ME, 1, 0, "DONE");
    gated.write(LOOP, &text);
    fs::write(gated.home().join("code"), "1").unwrap();
    let other = |n: u64| {
        if n.is_multiple_of(6) {
            fs::write(gated.home().join("code"), (n / 6 + 1).to_string()).unwrap();
        }
    };
    assert_eq!(stops_until_pause(&gated, 30, other), None);
    let bed = Bed::new();
    text = text.replace("---\n\n", "stall_rounds: 0\n---\n\n");
    bed.write(LOOP, &text);
    assert_eq!(stops_until_pause(&bed, 30, |_| {}), None);
}

/// The stops between two looks cost nothing: no git is asked.
#[test]
fn t16_most_stops_do_not_look_at_the_files() {
    let bed = Bed::in_git();
    bed.write("a.txt", "1");
    bed.commit_all("a");
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    let looks: Vec<bool> = (0..11)
        .map(|_| {
            bed.work().send();
            bed.journal().last().unwrap()["state"]["standstill"]["unseen"].is_null()
        })
        .collect();
    assert_eq!(looks.iter().filter(|looked| **looked).count(), 3, "{looks:?}");
    assert!(looks[0] && looks[5] && looks[10], "{looks:?}");
}

fn idle_runs() -> Runs {
    let bed = Bed::in_git();
    bed.write("ralph.toml", "[run]\ncooldown = 0\n");
    bed.commit_all("begin");
    Runs::of(bed, "echo 'What should I do?'\n")
}

#[test]
fn t16_a_run_that_goes_on_keeps_the_count() {
    let runs = idle_runs();
    runs.ends(0, &["Go", "--completion-promise", "DONE", "--iterations", "3"]);
    runs.ends(11, &["--continue"]);
    assert_eq!(runs.sessions(), 5, "four, and the trial");
    let out = runs.ends(11, &["--continue"]);
    assert_eq!(runs.sessions(), 6, "one trial more: {}", out.stdout);
    runs.bed.write("a.txt", "a person did something");
    runs.ends(0, &["--continue", "--iterations", "2"]);
    runs.ends(11, &["--continue", "--stall-iterations", "2"]);
    assert_eq!(runs.sessions(), 11, "a new limit begins a new count");
}

#[test]
fn t16_what_a_loop_is_parked_for_is_waited_for_by_whoever_goes_on() {
    let bed = Bed::in_git();
    bed.write(LOOP, loop_text(ME, 1, 0, "DONE"));
    bed.commit_all("begin");
    bed.work().send();
    bed.transcript().user("go").line(limit_line(now_ms() / 1_000 + 3_600));
    fails(&bed, "rate_limit").no_env("RALPH_HASTE").send();
    let until = bed.status()["waits"]["until"].clone();
    assert!(until.is_string(), "{}", bed.status());
    bed.event("SessionEnd").field("reason", "prompt_input_exit").send();
    let runs = Runs::of(bed, "echo hello\n");
    for _ in 0..2 {
        let out = runs.ends(75, &["--continue", "--no-wait"]);
        assert!(out.stdout.contains("parked until "), "{}", out.stdout);
        assert_eq!(runs.sessions(), 0);
    }
    assert!(runs.bed.journal().last().unwrap()["state"]["parked"]["until"].is_i64());
    // A person who knows better says so.
    runs.bed.ralph_ok(&["resume"]);
    runs.ends(0, &["--continue", "--once"]);
    assert_eq!(runs.sessions(), 1);
}

#[test]
fn t16_the_clock_of_a_loop_that_waits_for_a_session_stands_still() {
    let bed = Bed::new();
    let spent = || bed.status()["spent_ms"].as_u64().unwrap();
    bed.ralph(&["start", "Go", "--completion-promise", "DONE"]);
    let nap = || thread::sleep(Duration::from_millis(400));
    nap();
    assert_eq!(spent(), 0, "no session has it");
    bed.ralph_ok(&["pause"]);
    bed.ralph_ok(&["resume"]);
    nap();
    assert_eq!((spent(), bed.status()["status"].as_str()), (0, Some("waiting")), "nor now");
    bed.work().send();
    nap();
    let worked = spent();
    assert!(worked >= 400, "{worked}");
    bed.event("SessionEnd").field("reason", "prompt_input_exit").send();
    let left = spent();
    nap();
    assert_eq!(spent(), left, "its session has left it");
    bed.event("SessionStart").field("source", "resume").send();
    nap();
    assert!(spent() >= left + 400);
    // A client that was killed says nothing; what was written last is when it worked last.
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    bed.work().env("CLAUDE_PID", gone.id().to_string()).send();
    let killed = spent();
    nap();
    nap();
    bed.ralph_ok(&["resume"]);
    assert!(spent() < killed + 400, "{} of {killed}", spent());
}

#[test]
fn t17_gates_that_hold_start_no_session() {
    let runs = Runs::new("echo hello\n");
    let out = runs.ends(0, &["Go", "--verify", "true"]);
    assert_eq!(runs.sessions(), 0);
    assert!(out.stdout.contains("nothing to do") && out.stdout.contains("No session was started"), "{}", out.stdout);
    assert!(out.stdout.contains("add `--promise DONE`"), "{}", out.stdout);
    let explained = runs.bed.ralph_ok(&["explain"]);
    for line in [
        "  iteration   none: no session was started",
        "  message     none: no session was started",
        "  tools       none: no session was started",
    ] {
        assert!(explained.contains(line), "{explained}");
    }
    assert!(!explained.contains("standstill"), "{explained}");
    assert_eq!((runs.bed.last_ended()["status"].as_str(), runs.is_live()), (Some("complete"), false));
    // u6: nor does any line about it name one.
    for args in [&["status", "--all"][..], &["status"]] {
        let said = runs.bed.ralph(args).stdout;
        assert!(said.contains("complete with nothing to do") && !said.contains("iteration 1"), "{args:?}: {said}");
    }
    let page = run(&mut runs.bed.command(RALPH), b"").stdout;
    assert!(page.contains("complete with nothing to do, ") && !page.contains("iteration"), "{page}");
    let id = runs.bed.last_ended()["id"].as_str().unwrap().to_owned();
    let said = runs.bed.ralph_ok(&["status", &id]);
    assert!(said.contains("iteration   0 ("), "{said}");
    // eyes_2: a report of it has no iteration, and nothing that is not known.
    let page = runs.bed.ralph_ok(&["report", "--html", "-"]);
    assert!(page.contains("<dt>iterations</dt><dd>0</dd>") && page.contains("<dd>$0</dd>") && !page.contains("not known"), "{page}");
    assert!(page.contains("Nothing: no session was started.") && page.contains(">Look again, undo</h2>"), "{page}");
    // A pass from before is measured again: what is not seen may have changed (u1).
    let runs = Runs::new("rm \"$HOME/broken\"\necho x > work.txt\n");
    runs.bed.write("ralph.toml", "[[gate]]\nname = \"tests\"\ncommand = 'test ! -e \"$HOME/broken\"'\n");
    runs.bed.ralph_ok(&["trust", "--yes"]);
    runs.bed.ralph_ok(&["gate"]);
    fs::write(runs.bed.home().join("broken"), "").unwrap();
    runs.ends(0, &["Go"]);
    assert_eq!(runs.sessions(), 1);
    // What is left to prove, is worked on; and a promise is the agent's to make.
    let runs = Runs::new("touch done.txt\n");
    runs.ends(0, &["Go", "--verify", "test -e done.txt"]);
    assert_eq!(runs.sessions(), 1);
    let runs = Runs::new("echo '<promise>DONE</promise>'\n");
    runs.ends(0, &["Go", "--verify", "true", "--completion-promise", "DONE"]);
    assert_eq!(runs.sessions(), 1);
}

#[test]
fn t17_a_list_in_which_everything_is_done_starts_no_session() {
    for more in [&[][..], &["--completion-promise", "DONE"][..]] {
        let runs = Runs::new("echo hello\n");
        runs.bed.write("feature_list.json", features().replace("false", "true"));
        let out = runs.ends(0, &[&["Go", "--preset", "features"], more].concat());
        assert_eq!(runs.sessions(), 0, "{}", out.stdout);
        assert!(out.stdout.contains("nothing to do"), "{}", out.stdout);
    }
}

#[test]
fn t17_what_is_complete_is_not_started_again_unless_somebody_says_so() {
    let runs = Runs::new("echo $N >> work.txt\necho '<promise>DONE</promise>'\n");
    runs.ends(0, &["Go", "--completion-promise", "DONE"]);
    for _ in 0..2 {
        let out = runs.ends(1, &["--continue"]);
        assert!(out.stderr.contains("is complete after 1 iteration") && out.stderr.contains("--again"), "{}", out.stderr);
    }
    let out = runs.bed.ralph(&["resume"]);
    assert!(out.code == Some(1) && out.stderr.contains("--again starts it again"), "{out:?}");
    let typed = runs.bed.typed("/ralph-resume").send();
    assert!(!typed.blocks() && !runs.is_live(), "typed in a session neither");
    assert_eq!((runs.sessions(), runs.is_live()), (1, false));
    runs.ends(0, &["--continue", "--again"]);
    assert_eq!(runs.sessions(), 2);
    runs.bed.ralph_ok(&["resume", "--again", "--session"]);
    assert!(runs.is_live());
}

#[test]
fn t17_untrusted_commands_of_a_list_end_the_run_after_its_first_session() {
    let runs = Runs::new("echo $N >> work.txt\n");
    runs.bed.write("feature_list.json", r#"[{"id": "F1", "passes": false, "verify": ["test -e f1"]}, {"id": "F2", "passes": false}]"#);
    let out = runs.ends(12, &["Go", "--preset", "features"]);
    assert_eq!(runs.sessions(), 1);
    assert!(out.stdout.contains("the commands that prove F1 are not trusted: `ralph trust`"), "{}", out.stdout);
    runs.bed.ralph_ok(&["trust", "--yes"]);
    runs.ends(0, &["--continue", "--iterations", "2"]);
    assert_eq!(runs.sessions(), 3, "trusted, it goes on");
}

const TESTS: &str = "#[test]\nfn one() {}\n#[test]\nfn two() {}\n";

/// A loop whose gate always holds, with a file of tests.
fn guarded(guard: &str) -> Gated {
    let gated = Gated::in_git(&format!("{guard}{}", gate("tests", "true", "")));
    gated.write("tests/a.rs", TESTS);
    gated.commit_all("tests");
    assert!(gated.works().send().blocks());
    gated
}

#[test]
fn t18_tests_that_vanish_or_are_skipped_keep_the_loop_from_ending() {
    for less in ["#[test]\nfn one() {}\n", "#[test]\nfn one() {}\n#[test]\n#[ignore]\nfn two() {}\n"] {
        let gated = guarded("");
        gated.write("tests/a.rs", less);
        let answer = gated.claim().send();
        assert!(answer.blocks(), "{less}");
        assert_eq!(gated.codes().pop().unwrap(), "promise.unproven");
        assert_eq!(gated.what("guard"), "tests are gone or skipped that were there when the loop began");
        // Back again, it ends; or a person says that it is right.
        gated.write("tests/a.rs", TESTS);
        let line = gated.claim().send().line();
        assert!(line.starts_with("Ralph: complete after "), "{line}");
    }
    let gated = guarded("");
    gated.write("tests/a.rs", "#[test]\nfn one() {}\n");
    assert!(gated.claim().send().blocks());
    gated.ralph_ok(&["gate", "--accept"]);
    let line = gated.claim().send().line();
    assert!(line.starts_with("Ralph: complete after "), "{line}");
    assert_eq!(gated.last_ended()["doubtful"], false);
}

/// What the loop began with may get lost, by a disk or a clean-up. Then nothing tells what is missing, and that is no proof.
#[test]
fn t7_t18_a_lost_beginning_is_not_taken_from_the_present() {
    let gated = guarded("");
    fs::remove_dir_all(gated.place_of_kept("baseline")).unwrap();
    gated.write("tests/a.rs", "#[test]\nfn one() {}\n");
    let line = gated.claim().send().line();
    assert!(line.contains("what the loop began with is lost") && gated.value("active") == "false", "a person is asked: {line}");
    assert_eq!(gated.what("guard"), "what the loop began with is lost, so nothing tells whether the proof was made easier");
    let by_hand = gated.ralph(&["gate"]);
    assert_eq!(by_hand.code, Some(1), "{by_hand:?}");
    assert!(by_hand.stderr.contains("what the loop began with is lost") && by_hand.stderr.contains("ralph gate --accept"), "{by_hand:?}");
    gated.ralph_ok(&["gate", "--accept"]);
    gated.ralph_ok(&["resume"]);
    let line = gated.claim().send().line();
    assert!(line.starts_with("Ralph: complete after "), "{line}");
}

/// Many loops that came and went since take nothing from one that lives.
#[test]
fn t7_what_a_live_loop_began_with_outlives_all_later_loops() {
    let gated = guarded("");
    let folder = gated.place_of_kept("baseline");
    let own = gated.kept("baseline");
    for path in &own {
        fs::File::options().write(true).open(path).unwrap().set_modified(UNIX_EPOCH).unwrap();
    }
    for n in 0..300 {
        fs::write(folder.join(format!("other-{n}.json")), "{}").unwrap();
    }
    gated.ralph_ok(&["start", "Go", "--name", "second", "--completion-promise", "DONE"]);
    assert!(fs::read_dir(&folder).unwrap().count() < 250, "the rest was cleared away");
    assert!(own.iter().all(|path| path.exists()), "{own:?}");
}

/// What else changes is listed, as it always was; the ending says so.
#[test]
fn t18_the_rest_is_a_warning() {
    let gated = Gated::in_git(&gate("tests", "sh verify.sh", ""));
    gated.write("verify.sh", "exit 0\n");
    assert!(gated.works().send().blocks());
    gated.write("verify.sh", "exit 0 # other\n");
    let line = gated.claim().send().line();
    assert!(line.starts_with("Ralph: complete, with doubts, after ") && line.contains("verify.sh"), "{line}");
}

#[test]
fn t18_with_a_guard_that_only_warns_or_is_off_the_ending_is_not_told_as_a_plain_one() {
    for guard in ["guard = \"warn\"\n", "guard = \"off\"\n"] {
        let gated = guarded(guard);
        gated.write("tests/a.rs", "#[test]\nfn one() {}\n");
        let line = gated.claim().send().line();
        assert!(line.starts_with("Ralph: complete, with doubts, after ") && line.contains("1 test is gone (two)"), "{guard}: {line}");
        let ended = gated.last_ended();
        assert_eq!((&ended["status"], &ended["doubtful"]), (&json!("complete"), &json!(true)));
        let status = gated.ralph(&["status"]).stdout;
        assert!(status.contains("complete, with doubts"), "{status}");
        assert!(gated.ralph_ok(&["report", "--markdown"]).contains("with doubts"));
    }
}

#[test]
fn t18_a_run_says_so_too() {
    let bed = Bed::in_git();
    bed.write("tests/a.rs", TESTS);
    bed.write("ralph.toml", "guard = \"warn\"\n");
    bed.commit_all("begin");
    let runs = Runs::of(bed, "rm tests/a.rs\necho '<promise>DONE</promise>'\n");
    let out = runs.ends(0, &["Go", "--completion-promise", "DONE", "--verify", "true"]);
    assert!(out.stdout.contains("complete, with doubts") && out.stdout.contains("2 tests are gone"), "{}", out.stdout);
}

/// A gate that holds with fewer tests than it had at first: nothing in the files need show it.
#[test]
fn t18_what_a_gate_itself_counts_is_compared() {
    let ran = |passed: usize, ignored: usize| {
        let good = (0..passed).map(|n| format!("test t{n} ... ok\n"));
        let tests = good.chain((0..ignored).map(|n| format!("test i{n} ... ignored\n"))).collect::<Vec<_>>().concat();
        let sum = format!("{passed} passed; 0 failed; {ignored} ignored; 0 measured; 0 filtered out; finished in 0.01s");
        format!("running {} tests\n{tests}\ntest result: ok. {sum}\n", passed + ignored)
    };
    for (fewer, said) in [(ran(3, 0), "3 tests ran, and 5 did at first"), (ran(5, 2), "2 tests were skipped, and 0 were at first")] {
        let gated = Gated::in_git(&gate("tests", "cat \"$HOME/out\"", "cache = false"));
        fs::write(gated.home().join("out"), ran(5, 0)).unwrap();
        assert!(gated.works().send().blocks());
        gated.ralph_ok(&["gate"]);
        fs::write(gated.home().join("out"), fewer).unwrap();
        let answer = gated.claim().send();
        assert!(answer.blocks() && gated.journal().last().unwrap().to_string().contains(said), "{said}: {:?}", gated.journal().last());
        gated.ralph_ok(&["gate", "--accept"]);
        assert!(!gated.claim().send().blocks());
    }
    // The hook's own first measurement counts as well, and one that fails.
    let gated = Gated::in_git(&gate("tests", "cat \"$HOME/out\"; test -f \"$HOME/fine\"", "cache = false"));
    fs::write(gated.home().join("out"), ran(5, 0)).unwrap();
    assert!(gated.claim().env("AI_AGENT", CLIENT).send().blocks());
    fs::write(gated.home().join("out"), ran(3, 0)).unwrap();
    fs::write(gated.home().join("fine"), "").unwrap();
    let answer = gated.claim().env("AI_AGENT", CLIENT).send();
    assert!(answer.blocks() && gated.journal().last().unwrap().to_string().contains("3 tests ran, and 5 did at first"), "{answer:?}");
}
