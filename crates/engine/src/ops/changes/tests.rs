//! Real repositories, with iterations that commit, that do not, and that rewrite what was there.

use std::{ffi::OsStr, fmt::Write as _, fs, path::PathBuf};

use super::*;
use crate::{
    git::command::try_in_test,
    sys::{files::write_whole, temp_dir::Scratch},
};

const PATIENCE: Duration = Duration::from_mins(1);

/// When the loops of these tests begin, in seconds.
const BEGUN: Millis = 1_790_000_000;

struct Bed {
    scratch: Scratch,
    below: &'static str,
}

impl Bed {
    fn new() -> Self {
        Bed::below("")
    }

    fn below(below: &'static str) -> Self {
        let bed = Bed { scratch: Scratch::create("ralph-changes-", false).unwrap(), below };
        bed.git(0, &["init", "-q", "-b", "main"]);
        bed
    }

    fn at(&self, path: &str) -> PathBuf {
        self.scratch.path().join(path)
    }

    fn write(&self, path: &str, lines: usize) {
        write_whole(&self.at(path), "line\n".repeat(lines).as_bytes()).unwrap();
    }

    /// Runs git so many seconds after the beginning.
    fn git(&self, after: Millis, args: &[&str]) -> String {
        self.git_fed(after, args, "")
    }

    fn git_fed(&self, after: Millis, args: &[&str], input: &str) -> String {
        let date = format!("{} +0000", BEGUN + after);
        let vars = ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].map(|name| (name, OsStr::new(&date)));
        let ran = try_in_test(self.scratch.path(), args, &vars, input.as_bytes().to_vec());
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, after: Millis, subject: &str) -> String {
        self.git(after, &["add", "-A", "--", ".", ":!.ralph"]);
        self.git(after, &["commit", "-q", "--allow-empty", "-m", subject]);
        self.git(after, &["rev-parse", "HEAD"])
    }

    fn project(&self) -> Project {
        Project::with_state(self.at(self.below), &self.at(".state"))
    }

    fn changes(&self, begun: &Moment, ends: &[Moment]) -> Changes {
        Changes::of_iterations(&self.project(), "main-1", begun, ends, PATIENCE)
    }
}

fn moment(iteration: u64, after: Millis, head: Option<&str>) -> Moment {
    Moment { iteration, at: (BEGUN + after) * 1_000 + 500, head: head.map(str::to_owned) }
}

fn size(files: u64, added: u64, removed: u64) -> Size {
    Size { files, added, removed }
}

fn subjects(changes: &Changes) -> Vec<Vec<&str>> {
    changes.rounds.iter().map(|iteration| iteration.commits.iter().map(|commit| commit.subject.as_str()).collect()).collect()
}

#[test]
fn eyes_2_with_snapshots_what_was_not_committed_counts_too() {
    for below in ["", "packages/app"] {
        let bed = Bed::below(below);
        let path = |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        bed.write(&path("a.txt"), 3);
        bed.commit(-100, "before");
        let project = bed.project();
        let keep = |iteration| snapshots::keep(&project, "main-1", iteration, false, PATIENCE).unwrap().unwrap();
        keep(0);
        bed.write(&path("a.txt"), 5);
        bed.commit(10, "first \u{1b}[31mred\u{202e} subject");
        bed.write(&path("b.txt"), 7);
        bed.write(&path(".ralph/journal/x.jsonl"), 100);
        keep(1);
        keep(2);
        fs::remove_file(bed.at(&path("b.txt"))).unwrap();
        keep(3);
        let ends = [moment(1, 60, None), moment(2, 120, None), moment(3, 180, None)];
        let changes = bed.changes(&moment(0, 0, None), &ends);
        assert_eq!(changes.problems, Vec::<String>::new());
        assert_eq!(subjects(&changes), [vec!["first [31mred subject"], vec![], vec![]]);
        let sizes: Vec<_> = changes.rounds.iter().map(|iteration| (iteration.size, iteration.by)).collect();
        assert_eq!(
            sizes,
            [(Some(size(2, 9, 0)), By::Snapshots), (Some(size(0, 0, 0)), By::Snapshots), (Some(size(1, 0, 7)), By::Snapshots)],
            "{below}"
        );
        let commit = &changes.rounds[0].commits[0];
        assert_eq!((commit.size, commit.committed), (Some(size(1, 2, 0)), (BEGUN + 10) * 1_000));
    }
}

#[test]
fn eyes_2_without_snapshots_heads_tell_and_where_there_are_none_the_time() {
    let bed = Bed::new();
    bed.write("a.txt", 1);
    let begun = bed.commit(-5, "before");
    bed.write("a.txt", 2);
    bed.commit(10, "one");
    bed.write(".ralph/own.txt", 50);
    bed.git(11, &["add", "-f", ".ralph"]);
    let first = bed.commit(11, "two");
    // Committed long before, as a rebase or a cherry-pick has it: what the head can see counts.
    bed.write("b.txt", 4);
    let second = bed.commit(12, "three");
    bed.write("a.txt", 1);
    bed.commit(170, "four");
    let ends = [moment(1, 60, Some(&first)), moment(2, 120, Some(&second)), moment(3, 180, None), moment(4, 240, None)];
    let changes = bed.changes(&moment(0, 0, Some(&begun)), &ends);
    assert_eq!(changes.problems, Vec::<String>::new());
    assert_eq!(subjects(&changes), [vec!["one", "two"], vec!["three"], vec!["four"], vec![]]);
    let sizes: Vec<_> = changes.rounds.iter().map(|iteration| (iteration.size, iteration.by)).collect();
    let by_heads = [(Some(size(1, 1, 0)), By::Heads), (Some(size(1, 4, 0)), By::Heads)];
    assert_eq!(sizes, [by_heads[0], by_heads[1], (Some(size(1, 0, 1)), By::Commits), (Some(size(0, 0, 0)), By::Commits)]);
    // The same without any head.
    let ends = ends.map(|end| Moment { head: None, ..end });
    let by_time = bed.changes(&moment(0, 0, None), &ends);
    assert_eq!(subjects(&by_time), [vec!["one", "two", "three"], vec![], vec!["four"], vec![]]);
    // What was there before the loop began is nobody's, nor is what came after its end.
    assert_eq!(subjects(&bed.changes(&moment(0, 0, None), &ends[..2])), [vec!["one", "two", "three"], vec![]]);
}

#[test]
fn eyes_2_rewritten_history_keeps_what_is_still_there() {
    let bed = Bed::new();
    bed.write("a.txt", 1);
    let begun = bed.commit(-5, "before");
    bed.write("a.txt", 2);
    let lost = bed.commit(10, "to be amended");
    bed.git(70, &["commit", "-q", "--amend", "-m", "amended"]);
    let now = bed.git(0, &["rev-parse", "HEAD"]);
    let gone = "0123456789".repeat(4);
    let ends = [moment(1, 60, Some(&lost)), moment(2, 120, Some(&gone)), moment(3, 180, Some(&now))];
    let changes = bed.changes(&moment(0, 0, Some(&begun)), &ends);
    assert_eq!(subjects(&changes), [vec!["to be amended"], vec!["amended"], vec![]]);
    assert_eq!(changes.problems, Vec::<String>::new());
    for odd in ["HEAD", "--output=x", "main\n^main", ""] {
        let changes = bed.changes(&moment(0, 0, Some(odd)), &[moment(1, 180, Some(odd))]);
        assert_eq!(subjects(&changes), [vec!["amended"]], "a journal can say anything");
    }
}

#[test]
fn eyes_2_nothing_of_the_repository_is_run() {
    let bed = Bed::new();
    let trap = bed.at("ran");
    let touch = format!("touch {} #", trap.display());
    bed.write("a.txt", 1);
    write_whole(&bed.at(".gitattributes"), b"* diff=trap filter=trap\n").unwrap();
    bed.commit(-5, "before");
    let settings = [
        "diff.external",
        "diff.trap.command",
        "diff.trap.textconv",
        "filter.trap.clean",
        "filter.trap.smudge",
        "core.fsmonitor",
        "gpg.program",
    ];
    for name in settings {
        bed.git(0, &["config", name, &touch]);
    }
    bed.git(0, &["config", "log.showSignature", "true"]);
    bed.git(0, &["config", "diff.renames", "copies"]);
    let project = bed.project();
    snapshots::keep(&project, "main-1", 0, false, PATIENCE).unwrap();
    bed.write("a.txt", 5);
    let _ = bed.git(10, &["-c", "filter.trap.clean=", "commit", "-q", "-a", "-m", "one"]);
    let _ = fs::remove_file(&trap);
    snapshots::keep(&project, "main-1", 1, false, PATIENCE).unwrap();
    let changes = bed.changes(&moment(0, 0, None), &[moment(1, 60, None)]);
    assert_eq!((changes.rounds[0].size, changes.rounds[0].commits[0].size), (Some(size(1, 4, 0)), Some(size(1, 4, 0))));
    assert!(!trap.exists());
}

#[test]
fn eyes_2_what_cannot_be_known_is_said() {
    let scratch = Scratch::create("ralph-changes-", false).unwrap();
    let project = Project::with_state(scratch.path().join("none"), &scratch.path().join(".state"));
    fs::create_dir(project.root()).unwrap();
    let ends = [moment(1, 60, None), moment(2, 120, None)];
    let changes = Changes::of_iterations(&project, "main-1", &moment(0, 0, None), &ends, PATIENCE);
    assert_eq!((changes.rounds.len(), changes.rounds[0].size), (2, None));
    assert_eq!(changes.problems, ["there is no git repository here"]);

    let bed = Bed::new();
    let changes = bed.changes(&moment(0, 0, None), &ends);
    assert_eq!((subjects(&changes).concat().len(), changes.problems.len()), (0, 0), "no commit yet");
    bed.write("a.txt", 3);
    bed.commit(10, "one");
    bed.write("a.txt", 4);
    bed.commit(20, "two");
    let changes = Changes::of_iterations(&bed.project(), "main-1", &moment(0, 0, None), &ends, Duration::ZERO);
    assert_eq!((changes.rounds[0].size, changes.problems.is_empty()), (None, false), "no time");

    let source = format!("file://{}", bed.scratch.path().display());
    bed.git(30, &["clone", "-q", "--depth=1", &source, "clone"]);
    let clone = Project::with_state(bed.at("clone"), &bed.at(".state"));
    let changes = Changes::of_iterations(&clone, "main-1", &moment(0, 0, None), &ends, PATIENCE);
    assert_eq!(subjects(&changes), [vec!["two"], vec![]]);
    assert_eq!((changes.rounds[0].size, changes.rounds[0].commits[0].size), (None, None), "what lies before was not fetched");
}

#[test]
fn eyes_2_thousands_of_iterations_are_asked_for_at_once() {
    const ROUNDS: u64 = 1_200;
    let bed = Bed::new();
    let mut import = String::new();
    for n in 0..=ROUNDS {
        let (text, message) = ("x\n".repeat(usize::try_from(n % 7).unwrap() + 1), format!("iteration {n}"));
        let at = BEGUN + i64::try_from(n).unwrap() * 10;
        let _ = write!(
            import,
            "commit refs/heads/main\nmark :{}\ncommitter T <t@example.org> {at} +0000\ndata {}\n{message}\n",
            n + 1,
            message.len()
        );
        let _ = write!(import, "M 100644 inline f{}\ndata {}\n{text}\n", n % 3, text.len());
    }
    bed.git_fed(0, &["fast-import", "--quiet"], &import);
    let heads: Vec<String> = bed.git(0, &["rev-list", "--reverse", "main"]).lines().map(str::to_owned).collect();
    let moments: Vec<Moment> = (0..=ROUNDS)
        .map(|n| moment(n, i64::try_from(n).unwrap() * 10 + 5, heads.get(usize::try_from(n).unwrap()).map(String::as_str)))
        .collect();
    let changes = bed.changes(&moments[0], &moments[1..]);
    assert_eq!(changes.problems, Vec::<String>::new());
    assert!(changes.rounds.iter().all(|iteration| iteration.commits.len() == 1 && iteration.by == By::Heads));
    assert!(changes.rounds.iter().all(|iteration| iteration.size == iteration.commits[0].size && iteration.size.is_some()));
    assert_eq!(changes.rounds[0].commits[0].subject, "iteration 1");
    assert_eq!(changes.rounds[0].size, Some(size(1, 2, 0)));
}
