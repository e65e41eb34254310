//! The page that is written while a loop goes on: there is one whatever happens to whom, and nobody waits for it.

use std::{fs, path::PathBuf, time::Duration};

use crate::{
    common::{Bed, run},
    run::{Runs, lives, until},
};

/// In debug builds the few seconds between two pages pass faster by this.
const HASTE: (&str, &str) = ("RALPH_HASTE", "50");

fn pages(bed: &Bed) -> Vec<PathBuf> {
    let mut found = bed.files_in(".ralph/reports");
    found.retain(|path| path.extension().is_some_and(|ext| ext == "html"));
    found
}

fn page(bed: &Bed) -> String {
    pages(bed).first().map(|path| fs::read_to_string(path).unwrap_or_default()).unwrap_or_default()
}

/// The processes that write pages in this bed.
fn writers(bed: &Bed) -> usize {
    let home = format!("HOME={}", bed.home().display());
    let is_one = |pid: &std::path::Path| {
        let read = |name: &str| String::from_utf8_lossy(&fs::read(pid.join(name)).unwrap_or_default()).into_owned();
        read("cmdline").contains("\0--keep\0") && read("environ").contains(&home)
    };
    fs::read_dir("/proc").unwrap().flatten().filter(|entry| is_one(&entry.path())).count()
}

/// Each ruling of a hook is on the page soon after, and at the end nobody writes any more.
#[test]
fn eyes_2_a_page_follows_the_rulings_of_the_hook() {
    let bed = Bed::with_loop(1, 9, "DONE");
    let stop = |said: &str| bed.stop(said).env("RALPH_REPORT", "on").env(HASTE.0, HASTE.1).send();
    assert!(stop("not yet").blocks());
    until("the first page", || page(&bed).contains("promise.missing"));
    assert!(stop("still <promise>NOT</promise>").blocks());
    until("the second ruling on it", || page(&bed).contains("promise.refused"));
    bed.work().env("RALPH_REPORT", "on").send();
    stop("<promise>DONE</promise>");
    until("the end on it", || page(&bed).contains("promise.accepted"));
    until("nobody writes", || writers(&bed) == 0);
    assert_eq!(pages(&bed).len(), 1);
    assert_eq!(bed.files_in(".ralph/reports").len(), 1, "nothing is left beside it");
}

/// Nobody asked for a page: none is written, and no process is started for it.
#[test]
fn eyes_2_without_pages_nothing_is_written() {
    let bed = Bed::with_loop(1, 9, "DONE");
    assert!(bed.stop("not yet").env("RALPH_REPORT", "off").send().blocks());
    assert_eq!((pages(&bed).len(), writers(&bed)), (0, 0));
}

/// Pains 19: the run is killed in the middle of its third round, and the page tells of the rounds before.
#[test]
fn pains_19_after_kill_9_there_is_a_page() {
    let runs = Runs::new("echo $N >> work.txt; commit\nif [ $N = 3 ]; then echo $$ > \"$OUT/pid\"; sleep 600; fi\n");
    let mut command = runs.command(&["Count", "--max-iterations", "9"]);
    let mut child = command.env("RALPH_REPORT", "on").env(HASTE.0, HASTE.1).stdout(std::process::Stdio::null()).spawn().unwrap();
    until("the third round", || runs.out("pid").exists() && page(&runs.bed).contains("promise.none"));
    let agent: u32 = runs.noted("pid").trim().parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    until("nobody writes", || writers(&runs.bed) == 0);
    let page = page(&runs.bed);
    assert!(page.contains("Count") && page.contains("</html>"), "{page}");
    let out = runs.run(&["--continue", "--once"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(!lives(agent));
}

/// When a run has ended its page tells the end: whoever takes the page away next need not wait.
#[test]
fn eyes_2_the_page_of_a_run_that_ended_tells_the_end() {
    let runs = Runs::new("echo $N >> work.txt\nif [ $N = 2 ]; then echo '<promise>DONE</promise>'; fi\n");
    let out = run(runs.command(&["Count", "--completion-promise", "DONE"]).env("RALPH_REPORT", "on").env(HASTE.0, HASTE.1), b"");
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let text = page(&runs.bed);
    assert!(text.contains("promise.accepted") && text.contains("</html>"), "{text}");
    until("nobody writes", || writers(&runs.bed) == 0);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(runs.bed.files_in(".ralph/reports").len(), 1, "nothing is left beside it");
}

/// An agent can put anything in the place of ralph's own files. A pipe there must not keep the hook, whose answer the client would drop.
#[test]
fn eyes_2_a_pipe_in_the_place_of_a_file_holds_nobody() {
    for place in ["locks/{}.page", "locks/{}.lock", "reports/{}.html", "journal/{}.jsonl", "last-ending.json"] {
        let bed = Bed::with_loop(1, 9, "DONE");
        assert!(bed.stop("not yet").send().blocks());
        let id = bed.status()["id"].as_str().unwrap().to_owned();
        let path = bed.path(".ralph").join(place.replace("{}", &id));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let begun = std::time::Instant::now();
        bed.work().env("RALPH_REPORT", "on").env(HASTE.0, HASTE.1).send();
        for args in [&["status"][..], &["log"], &["report"], &["list"]] {
            bed.ralph(args);
        }
        assert!(begun.elapsed() < Duration::from_secs(25), "{place}");
        until("nobody writes", || writers(&bed) == 0);
    }
}
