//! The page that is written once when a loop ends, pauses or parks, by the process that did it: never by a stop that goes on, and never by another process.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use ralph_testkit::killer::{Filter, count_syscalls, kill_at_syscall};

use crate::{
    api_errors::fails,
    common::{Bed, Event, run},
    run::{Runs, lives, until},
};

fn pages(bed: &Bed) -> Vec<PathBuf> {
    let mut found = bed.files_in(".ralph/reports");
    found.retain(|path| path.extension().is_some_and(|ext| ext == "html"));
    found
}

/// The only page, which is whole; empty: there is none.
#[track_caller]
fn page(bed: &Bed) -> String {
    let found = pages(bed);
    assert!(found.len() <= 1, "{found:?}");
    let text = found.first().map(|path| fs::read_to_string(path).unwrap()).unwrap_or_default();
    assert!(text.is_empty() || text.trim_end().ends_with("</html>"), "{text}");
    text
}

fn with_pages(event: Event<'_>) -> Event<'_> {
    event.env("RALPH_REPORT", "on")
}

/// A stop that goes on starts no process and writes no page.
#[test]
fn eyes_2_a_stop_that_goes_on_writes_no_page_and_starts_nothing() {
    let bed = Bed::with_loop(1, 9, "DONE");
    for said in ["not yet", "still <promise>NOT</promise>"] {
        let event = with_pages(bed.stop(said));
        assert_eq!(count_syscalls(&mut event.command(), Filter::Spawns, event.json().as_bytes()), 0, "{said}");
    }
    assert_eq!(bed.codes(), ["promise.missing", "promise.refused"]);
    assert!(!bed.exists(".ralph/reports"));
}

/// The page is there as soon as the hook has ended.
#[test]
fn eyes_2_a_hook_writes_the_page_of_a_loop_that_ends_pauses_or_parks() {
    let ended = Bed::with_loop(1, 9, "DONE");
    with_pages(ended.stop("<promise>DONE</promise>")).send().line();
    assert!(page(&ended).contains("promise.accepted"));
    assert_eq!(ended.files_in(".ralph/reports").len(), 1, "nothing is left beside it");

    let paused = Bed::with_loop(1, 9, "DONE");
    with_pages(paused.stop("<blocked>no key</blocked>")).send().blocks();
    assert_eq!(page(&paused), "");
    with_pages(paused.stop("<blocked>still no key</blocked>")).send().line();
    assert!(page(&paused).contains("agent.blocked"), "{:?}", paused.codes());

    let parked = Bed::with_loop(1, 9, "DONE");
    with_pages(parked.work()).send().blocks();
    with_pages(fails(&parked, "server_error")).send().is_silent();
    assert_eq!(parked.status()["status"], "parked");
    // The iteration before it is on the page.
    assert!(page(&parked).contains("promise.missing"), "{:?}", parked.codes());

    let commanded = Bed::with_loop(1, 9, "DONE");
    with_pages(commanded.work()).send().blocks();
    with_pages(commanded.typed("/ralph-pause")).send().instead();
    assert!(page(&commanded).contains("promise.missing"));
    fs::remove_dir_all(commanded.path(".ralph/reports")).unwrap();
    with_pages(commanded.typed("/cancel-ralph")).send().instead();
    assert!(page(&commanded).contains("promise.missing"));
}

#[test]
fn eyes_2_the_commands_that_pause_and_cancel_write_the_page() {
    for command in ["pause", "cancel"] {
        let bed = Bed::with_loop(1, 9, "DONE");
        with_pages(bed.work()).send().blocks();
        assert_eq!(page(&bed), "");
        let out = run(bed.command(crate::common::RALPH).arg(command).env("RALPH_REPORT", "on"), b"");
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        assert!(page(&bed).contains("promise.missing"), "{command}");
    }
}

/// A person who wants no pages gets none, whatever happens to the loop.
#[test]
fn eyes_2_without_pages_nothing_is_written() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.stop("<promise>DONE</promise>").env("RALPH_REPORT", "off").send().line();
    assert_eq!(bed.codes(), ["promise.accepted"]);
    assert!(!bed.exists(".ralph/reports"));
}

/// Wherever a hook is killed that replaces a page, the old page or the new one is there, and `ralph report` draws the new one.
#[test]
fn pains_19_a_hook_killed_anywhere_leaves_the_old_page_or_the_new_one() {
    let setup = || {
        let bed = Bed::with_loop(1, 9, "DONE");
        with_pages(bed.work()).send().blocks();
        run(bed.command(crate::common::RALPH).args(["report"]), b"");
        assert!(page(&bed).contains("promise.missing"));
        bed
    };
    let victim = |bed: &Bed| with_pages(bed.stop("<promise>DONE</promise>")).command();
    let stdin = |bed: &Bed| bed.stop("<promise>DONE</promise>").json();
    let bed = setup();
    let count = count_syscalls(&mut victim(&bed), Filter::Writes, stdin(&bed).as_bytes());
    assert!(page(&bed).contains("promise.accepted"));
    let mut is_new = Vec::new();
    for n in 1..=count {
        let bed = setup();
        kill_at_syscall(&mut victim(&bed), Filter::Writes, n, stdin(&bed).as_bytes());
        let text = page(&bed);
        assert!(text.contains("promise.missing"), "killed at call {n} of {count}: {text}");
        is_new.push(text.contains("promise.accepted"));
        let has_ended = bed.codes().iter().any(|code| code == "promise.accepted");
        let id = bed.journal()[0]["loop"].as_str().map(str::to_owned);
        let args: Vec<&str> = ["report"].into_iter().chain(id.as_deref()).collect();
        assert_eq!(run(bed.command(crate::common::RALPH).args(&args), b"").code, Some(0), "killed at call {n} of {count}");
        assert_eq!(page(&bed).contains("promise.accepted"), has_ended, "killed at call {n} of {count}");
    }
    assert!(is_new.contains(&false), "{is_new:?}");
}

/// Pains 19: the run is killed in the middle of its third round, and `ralph report` tells of the rounds before.
#[test]
fn pains_19_after_kill_9_there_is_a_page() {
    let runs = Runs::new("echo $N >> work.txt; commit\nif [ $N = 3 ]; then echo $$ > \"$OUT/pid\"; sleep 600; fi\n");
    let mut command = runs.command(&["Count", "--max-iterations", "9"]);
    let mut child = command.env("RALPH_REPORT", "on").stdout(Stdio::null()).spawn().unwrap();
    until("the third iteration", || runs.out("pid").exists() && !runs.noted("pid").trim().is_empty());
    let agent: u32 = runs.noted("pid").trim().parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(page(&runs.bed), "", "a run that goes on writes no page");
    runs.bed.ralph_ok(&["report"]);
    let text = page(&runs.bed);
    assert!(text.contains("Count") && text.contains("promise.none"), "{text}");
    let out = runs.run(&["--continue", "--once"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(!lives(agent));
}

/// When a run has ended, its page tells the end: whoever takes the page away next need not wait.
#[test]
fn eyes_2_the_page_of_a_run_that_ended_tells_the_end() {
    let runs = Runs::new("echo $N >> work.txt\nif [ $N = 2 ]; then echo '<promise>DONE</promise>'; fi\n");
    let out = run(runs.command(&["Count", "--completion-promise", "DONE"]).env("RALPH_REPORT", "on"), b"");
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(page(&runs.bed).contains("promise.accepted"));
    assert_eq!(runs.bed.files_in(".ralph/reports").len(), 1, "nothing is left beside it");
}

/// A run that rests for half an hour has written the page before.
#[test]
fn eyes_2_a_run_that_rests_has_written_its_page() {
    let runs = Runs::new("true\n");
    runs.bed.write("ralph.toml", "[run]\ncooldown = \"30m\"\n");
    let mut command = runs.command(&["Go", "--completion-promise", "DONE", "--stall-iterations", "1"]);
    let mut child = command.env("RALPH_REPORT", "on").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the page", || !page(&runs.bed).is_empty());
    assert_eq!(runs.bed.status()["status"], "parked");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// An agent can put anything in the place of ralph's own files. A pipe there must not keep the hook, whose answer the client would drop.
#[test]
fn eyes_2_a_pipe_in_the_place_of_a_file_holds_nobody() {
    for place in ["locks/{}.lock", "reports/{}.html", "journal/{}.jsonl", "last-ending.json"] {
        let bed = Bed::with_loop(1, 9, "DONE");
        assert!(bed.stop("not yet").send().blocks());
        let id = bed.status()["id"].as_str().unwrap().to_owned();
        let path = bed.path(".ralph").join(place.replace("{}", &id));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let begun = std::time::Instant::now();
        with_pages(bed.work()).send();
        for args in [&["status"][..], &["log"], &["report"], &["list"]] {
            bed.ralph(args);
        }
        with_pages(bed.stop("<promise>DONE</promise>")).send();
        assert!(begun.elapsed() < Duration::from_secs(25), "{place}");
    }
}
