//! Files that must be there, say so and be fresh.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use ralph_core::gate::{Kind, Origin};

use super::*;
use crate::{
    git::command::in_test,
    store::project::Project,
    sys::{files::write_whole, temp_dir::Scratch},
};

const AUDIT: &str = "docs/AUDIT.md";

struct Bed {
    scratch: Scratch,
    _state: Scratch,
    project: Project,
}

impl Bed {
    fn new() -> Self {
        let scratch = Scratch::create("ralph-file-", false).unwrap();
        let state = Scratch::create("ralph-file-", false).unwrap();
        let project = Project::with_state(scratch.path(), state.path());
        let bed = Bed { scratch, _state: state, project };
        bed.write("src/a.rs", "fn a() {}", 10);
        bed.write("src/b.rs", "fn b() {}", 10);
        bed
    }

    fn in_git() -> Self {
        let bed = Bed::new();
        bed.git(&["init", "-q"]);
        bed
    }

    fn git(&self, args: &[&str]) {
        in_test(self.scratch.path(), args, &[]);
    }

    fn at(&self, path: &str) -> PathBuf {
        self.scratch.path().join(path)
    }

    /// Writes a file as it would have been written `at` seconds after some beginning.
    fn write(&self, path: &str, text: &str, at: u64) {
        write_whole(&self.at(path), text.as_bytes()).unwrap();
        self.touch(path, at);
    }

    fn touch(&self, path: &str, at: u64) {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + at);
        fs::File::options().append(true).open(self.at(path)).unwrap().set_modified(at).unwrap();
    }

    fn measure(&self, check: &File, others: &[Gate]) -> (Verdict, String) {
        let one = gate(check.clone());
        let gates: Vec<Gate> = [one.clone()].into_iter().chain(others.iter().cloned()).collect();
        let finding = measure(&one, check, &gates, &Context::new(&self.project, "loop", Duration::from_secs(10)));
        assert_eq!((finding.gate.as_str(), finding.kind), ("audit", Kind::File));
        (finding.verdict, finding.what)
    }

    fn is(&self, check: &File, verdict: Verdict, what: &str) {
        assert_eq!(self.measure(check, &[]), (verdict, what.to_owned()));
    }

    fn is_fresh(&self, because: &str) {
        let (verdict, what) = self.measure(&fresh(&[]), &[]);
        assert_eq!(verdict, Verdict::Pass, "{because}: {what}");
    }

    fn is_stale(&self, what: &str) {
        let what = format!("{what}: run the checks again, then write it again");
        self.is(&fresh(&[]), Verdict::Fail, &what);
    }
}

fn gate(check: File) -> Gate {
    Gate { trusted: true, ..Gate::new("audit", Check::File(check), Origin::Loop) }
}

fn exists() -> File {
    File::at(AUDIT)
}

fn says(expression: &str) -> File {
    File { contains: Some(expression.to_owned()), ..exists() }
}

fn fresh(patterns: &[&str]) -> File {
    File { fresh: Some(patterns.iter().map(|p| (*p).to_owned()).collect()), ..exists() }
}

/// S2-2: a missing file has its own sentence.
#[test]
fn a_file_must_be_there() {
    let bed = Bed::new();
    bed.is(&exists(), Verdict::Fail, "docs/AUDIT.md is not there: write it");
    fs::create_dir_all(bed.at(AUDIT)).unwrap();
    bed.is(&exists(), Verdict::Fail, "docs/AUDIT.md is a folder: a file must be there");
    fs::remove_dir(bed.at(AUDIT)).unwrap();
    bed.write(AUDIT, "", 0);
    bed.is(&exists(), Verdict::Pass, "docs/AUDIT.md exists");
    bed.is(&File { path: "docs/AUDIT.md/x".to_owned(), ..exists() }, Verdict::Fail, "docs/AUDIT.md/x is not there: write it");
}

/// S2-2: nobody is told to write by hand what a command has to write.
#[test]
fn a_gate_that_says_what_to_do_says_nothing_else() {
    let bed = Bed::new();
    let one = Gate { next: Some("Run `make qa`.".to_owned()), ..gate(fresh(&[])) };
    let what = || measure(&one, &fresh(&[]), &[], &Context::new(&bed.project, "loop", Duration::from_secs(10))).what;
    assert_eq!(what(), "docs/AUDIT.md is not there");
    bed.write(AUDIT, "", 5);
    assert!(what().ends_with("changed after docs/AUDIT.md was written"), "{}", what());
}

#[cfg(unix)]
#[test]
fn a_link_counts_only_within_the_project() {
    use std::os::unix::fs::symlink;
    let bed = Bed::new();
    fs::create_dir(bed.at("docs")).unwrap();
    symlink("../src/a.rs", bed.at(AUDIT)).unwrap();
    bed.is(&exists(), Verdict::Pass, "docs/AUDIT.md exists");
    fs::remove_file(bed.at(AUDIT)).unwrap();
    symlink("/etc/passwd", bed.at(AUDIT)).unwrap();
    bed.is(&exists(), Verdict::Fail, "docs/AUDIT.md leads out of the project: the file itself must lie there");
    let (verdict, _) = bed.measure(&File { path: "../../etc/passwd".to_owned(), ..exists() }, &[]);
    assert_eq!(verdict, Verdict::Fail);
    fs::remove_file(bed.at(AUDIT)).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, bed.at(AUDIT), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    bed.is(&exists(), Verdict::Fail, "docs/AUDIT.md is not a plain file");
}

/// The time that a stranger's expression takes is bounded, whatever it says and however large the file is.
#[test]
fn an_expression_that_would_take_too_long_is_not_tried() {
    let bed = Bed::new();
    bed.write(AUDIT, &"a".repeat(1 << 20), 0);
    let hostile = format!("{}b", ".*".repeat(400));
    let begun = std::time::Instant::now();
    let (verdict, what) = bed.measure(&says(&hostile), &[]);
    assert!(verdict == Verdict::Unknown && what.contains("in 1 MB would take too long: ask for plain words"), "{what}");
    bed.write(AUDIT, &format!("{}PASS", "a".repeat(MAX_BYTES - 4)), 0);
    bed.is(&says("PASS"), Verdict::Pass, "docs/AUDIT.md exists and says `PASS`");
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    bed.write(AUDIT, &"a".repeat(1_000), 0);
    assert_eq!(bed.measure(&says(&hostile), &[]).0, Verdict::Fail);
}

/// S2-2: so has one that does not say so, wherever the line stands.
#[test]
fn a_file_must_say_so() {
    let bed = Bed::new();
    bed.write(AUDIT, "# Audit\r\nDecision: FAIL\r\n", 0);
    bed.is(&says("Decision: PASS"), Verdict::Fail, "docs/AUDIT.md does not say `Decision: PASS`");
    bed.write(AUDIT, "# Audit\r\nDecision: PASS\r\n", 0);
    bed.is(&says("Decision: PASS"), Verdict::Pass, "docs/AUDIT.md exists and says `Decision: PASS`");
    assert_eq!(bed.measure(&says(r"^Decision:\s*PASS$"), &[]).0, Verdict::Pass, "lines, whatever ends them");
    assert_eq!(bed.measure(&says(r"^PASS"), &[]).0, Verdict::Fail);
    let (verdict, what) = bed.measure(&says("(unclosed\u{1b}"), &[]);
    assert_eq!(verdict, Verdict::Unknown);
    assert!(what.starts_with("`(unclosed`, which it must say, is no regular expression: "), "{what}");
    assert_eq!(bed.measure(&says("(a{1000}){1000}"), &[]).0, Verdict::Unknown, "too large to be matched in time");
}

#[test]
fn a_huge_file_is_not_read() {
    let bed = Bed::new();
    bed.write(AUDIT, "", 0);
    fs::File::options().write(true).open(bed.at(AUDIT)).unwrap().set_len(17 << 20).unwrap();
    bed.is(&exists(), Verdict::Unknown, "docs/AUDIT.md is larger than 16 MB: that is not read");
}

/// S2-2: it is not older than the newest code change.
#[test]
fn modification_times_decide_about_a_report_that_is_new() {
    for bed in [Bed::new(), Bed::in_git()] {
        bed.write(AUDIT, "ok", 5);
        let both = "src/b.rs changed after docs/AUDIT.md was written";
        bed.is_stale(both);
        bed.touch(AUDIT, 10);
        bed.is_fresh("as old as the newest source");
        let check = File { contains: Some("ok".to_owned()), ..fresh(&[]) };
        bed.is(&check, Verdict::Pass, "docs/AUDIT.md exists, says `ok` and is newer than the sources");
    }
}

#[test]
fn from_then_on_contents_decide() {
    for bed in [Bed::new(), Bed::in_git()] {
        bed.write(AUDIT, "ok", 20);
        bed.is_fresh("newer");
        bed.touch("src/a.rs", 30);
        bed.is_fresh("a time is no change");
        bed.write("src/a.rs", "fn a() { changed }", 40);
        bed.is_stale("src/a.rs changed after docs/AUDIT.md was written");
        bed.touch("src/a.rs", 1);
        bed.is_stale("the sources changed after docs/AUDIT.md was written (something was removed, or came back with an older date)");
        bed.write("src/a.rs", "fn a() {}", 50);
        bed.is_fresh("back as it was");
        fs::remove_file(bed.at("src/b.rs")).unwrap();
        bed.is_stale("src/a.rs changed after docs/AUDIT.md was written");
        bed.touch(AUDIT, 60);
        bed.is_fresh("written anew with the same words");
        bed.write("src/b.rs", "fn b() {}", 70);
        bed.is_fresh("the state that it was written for in the beginning");
    }
}

#[test]
fn commits_and_checkouts_change_nothing() {
    let bed = Bed::in_git();
    bed.write(AUDIT, "ok", 20);
    bed.is_fresh("newer");
    bed.git(&["add", "-A"]);
    bed.git(&["commit", "-qm", "x"]);
    bed.is_fresh("committed");
    bed.git(&["rm", "-q", "-r", "--cached", "."]);
    bed.git(&["reset", "-q", "--hard"]);
    bed.touch(AUDIT, 0);
    bed.is_fresh("checked out anew, in any order");
}

#[test]
fn evidence_and_ralphs_files_are_no_sources() {
    let bed = Bed::new();
    bed.write(AUDIT, "ok", 20);
    bed.write(".quality-gate-passed", "", 30);
    bed.write(".ralph/journal/x.jsonl", "", 30);
    bed.write(".claude/ralph-loop.local.md", "", 30);
    let other = gate(File::at("./.quality-gate-passed"));
    assert_eq!(bed.measure(&fresh(&[]), std::slice::from_ref(&other)).0, Verdict::Pass);
    bed.write(".quality-gate-passed", "again", 40);
    assert_eq!(bed.measure(&fresh(&[]), &[other]).0, Verdict::Pass);
    let (verdict, what) = bed.measure(&fresh(&[]), &[]);
    assert_eq!(
        (verdict, what.starts_with(".quality-gate-passed changed after")),
        (Verdict::Fail, true),
        "no gate of this loop asks for it: {what}"
    );
}

#[test]
fn only_the_sources_that_are_named_count() {
    let bed = Bed::new();
    bed.write("README.md", "x", 90);
    bed.write(AUDIT, "ok", 20);
    assert_eq!(bed.measure(&fresh(&["src/**"]), &[]).0, Verdict::Pass);
    let none = "cannot tell whether docs/AUDIT.md is fresh: there is no file among its sources (lib/**)";
    bed.is(&fresh(&["lib/**"]), Verdict::Unknown, none);
    bed.is(&fresh(&["src/{"]), Verdict::Unknown, "its sources cannot be told: `src/{` is not a pattern of files");
}

#[test]
fn without_a_fingerprint_times_decide() {
    let bed = Bed::new();
    bed.write(".git", "gitdir: /nowhere\n", 0);
    bed.write(AUDIT, "ok", 20);
    bed.is_fresh("newer");
    bed.touch("src/a.rs", 30);
    bed.is_stale("src/a.rs changed after docs/AUDIT.md was written");
}

#[test]
fn a_memory_that_is_broken_or_no_ones_own_is_none() {
    let bed = Bed::new();
    bed.write(AUDIT, "ok", 20);
    let memory = bed.project.make_state_file("fresh.json").unwrap();
    write_whole(&memory, b"[{\"about\": 3").unwrap();
    bed.is_fresh("newer");
    bed.touch("src/a.rs", 30);
    bed.is_fresh("remembered now");
    let kept = fs::read(memory).unwrap();
    assert!(kept.starts_with(b"[{\"about\":"), "written anew");
}
