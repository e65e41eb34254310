//! Trees in real repositories.

use std::{ffi::OsStr, fs, path::PathBuf, thread, time::SystemTime};

use super::*;
use crate::{
    git::command::{in_test, try_in_test},
    sys::{files::write_whole, temp_dir::Scratch},
};

struct Bed {
    scratch: Scratch,
    state: Scratch,
}

impl Bed {
    /// A folder with some files, without git.
    fn bare() -> Self {
        let bed = Bed { scratch: Scratch::create("ralph-tree-", false).unwrap(), state: Scratch::create("ralph-tree-", false).unwrap() };
        for (path, text) in
            [("src/a.rs", "fn a() {}\n"), ("src/deep/b.rs", "fn b() {}\n"), ("docs/x.md", "words\n"), ("README.md", "read\n")]
        {
            bed.write(path, text);
        }
        bed
    }

    /// The same with everything committed.
    fn committed() -> Self {
        let bed = Bed::bare();
        bed.git(&["init", "-q"]);
        bed.commit();
        bed
    }

    fn root(&self) -> &Path {
        self.scratch.path()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        write_whole(&self.at(path), text.as_bytes()).unwrap();
    }

    fn git(&self, args: &[&str]) {
        self.git_in("", args);
    }

    fn git_in(&self, folder: &str, args: &[&str]) {
        in_test(&self.at(folder), args, &[]);
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    fn print(&self) -> String {
        self.print_of(&[]).expect("a fingerprint")
    }

    fn print_of(&self, patterns: &[&str]) -> Option<String> {
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let (patterns, project) = (Patterns::new(&patterns).ok()?, self.project());
        let tree = Tree::of(self.root(), PATIENCE)?;
        let remembered = tree.fingerprint(Some(&project), |path| patterns.select(path));
        assert_eq!(remembered, tree.fingerprint(None, |path| patterns.select(path)), "what is remembered is what is there");
        remembered
    }

    fn project(&self) -> Project {
        Project::with_state(self.root(), &self.state.path().join("ralph"))
    }

    /// Waits until all files are old enough to be remembered, and has them remembered.
    fn settle(&self) -> String {
        thread::sleep(Duration::from_millis(2_100));
        let print = self.print();
        let seen = Seen::load(&self.project(), &self.root().canonicalize().unwrap());
        assert!(seen.knows("src/a.rs"), "it is remembered");
        print
    }

    /// Writes a file as if nothing had happened to it.
    fn write_unseen(&self, path: &str, text: &str) {
        let before = fs::metadata(self.at(path)).unwrap();
        assert_eq!(before.len(), text.len() as u64, "the same length");
        let mut file = fs::File::options().write(true).open(self.at(path)).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }

    /// The fingerprint differs after `change`, and stays what it became when that is added and committed.
    fn differs(&self, what: &str, change: impl FnOnce(&Bed)) {
        let before = self.print();
        change(self);
        let after = self.print();
        assert_ne!(before, after, "{what}");
        self.git(&["add", "-A"]);
        assert_eq!(self.print(), after, "{what}, added");
        self.git(&["commit", "-q", "-m", "x"]);
        assert_eq!(self.print(), after, "{what}, committed");
    }
}

#[test]
fn t17_a_verdict_belongs_to_the_ignored_files_beside_the_others_too() {
    let bed = Bed::committed();
    bed.write(".gitignore", "*.local\ntarget/\n*.big\n.env\n");
    bed.commit();
    let print = || Tree::of(bed.root(), PATIENCE).unwrap().ignored_fingerprint(Some(&bed.project())).unwrap();
    let (work, mut before) = (bed.print(), print());
    let mut differs = |what: &str| {
        let after = print();
        assert_ne!(std::mem::replace(&mut before, after.clone()), after, "{what}");
        assert_eq!(bed.print(), work, "{what}: the work is the same");
    };
    bed.write("src/data.local", "ok");
    differs("a new one");
    bed.write("src/data.local", "no");
    differs("another content of the same length");
    bed.write(".env", "A=1");
    differs("a second one");
    fs::remove_file(bed.at(".env")).unwrap();
    differs("one that is gone");
    bed.write("large.big", &"x".repeat(2 << 20));
    differs("a large one");
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::options().write(true).open(bed.at("large.big")).unwrap().set_modified(at(1_000)).unwrap();
    differs("a large one, by its time");
    bed.write("target/debug/x", "built");
    bed.write(".ralph/logs/x.local", "ralph's own");
    assert_eq!(print(), before, "ignored folders and ralph's own files stay out");
}

fn files(root: &Path) -> Option<Vec<String>> {
    Some(Tree::of(root, PATIENCE)?.files().map(str::to_owned).collect())
}

fn fingerprint(root: &Path, patterns: &[String]) -> Option<String> {
    let patterns = Patterns::new(patterns).ok()?;
    Tree::of(root, PATIENCE)?.fingerprint(None, |path| patterns.select(path))
}

fn set_modified(path: &Path, at: SystemTime) {
    fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

#[test]
fn every_change_counts_and_git_add_and_commit_do_not() {
    let bed = Bed::committed();
    bed.differs("a changed file", |bed| bed.write("src/a.rs", "fn a() { }\n"));
    bed.differs("a new file", |bed| bed.write("src/new.rs", ""));
    bed.differs("a removed file", |bed| fs::remove_file(bed.at("src/deep/b.rs")).unwrap());
    bed.differs("a renamed file", |bed| fs::rename(bed.at("README.md"), bed.at("READ.md")).unwrap());
    bed.differs("a name with a line break, quotes and a backslash", |bed| bed.write("src/\"a\nb\\.rs", "x"));
    bed.differs("and its change", |bed| bed.write("src/\"a\nb\\.rs", "y"));
    bed.differs("a name with letters", |bed| bed.write("src/größe 大.rs", "y"));
}

#[cfg(unix)]
#[test]
fn modes_and_links_count() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bed = Bed::committed();
    bed.differs("a mode", |bed| fs::set_permissions(bed.at("src/a.rs"), fs::Permissions::from_mode(0o755)).unwrap());
    bed.differs("a link", |bed| symlink("src/a.rs", bed.at("link")).unwrap());
    bed.differs("where it leads", |bed| {
        fs::remove_file(bed.at("link")).unwrap();
        symlink("/nowhere", bed.at("link")).unwrap();
    });
    bed.differs("a link that became a file", |bed| {
        fs::remove_file(bed.at("link")).unwrap();
        bed.write("link", "/nowhere");
    });
    bed.git(&["config", "core.fileMode", "false"]);
    let before = bed.print();
    fs::set_permissions(bed.at("README.md"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_ne!(bed.print(), before, "what a repository says about modes does not make a program of a text");
}

#[test]
fn modification_times_do_not_count() {
    let bed = Bed::committed();
    bed.write("new.rs", "untracked");
    let before = bed.print();
    for path in ["src/a.rs", "new.rs", "README.md"] {
        set_modified(&bed.at(path), SystemTime::UNIX_EPOCH);
    }
    assert_eq!(bed.print(), before);
    bed.write("src/a.rs", "other");
    bed.git(&["checkout", "-q", "src/a.rs"]);
    assert_eq!(bed.print(), before, "back again");
}

#[test]
fn what_is_ignored_or_ralphs_own_does_not_count() {
    let bed = Bed::committed();
    bed.write(".gitignore", "/target\n");
    bed.write("lists/feature_list.json", "{}");
    let before = bed.print();
    let own = [
        ".ralph/journal/x.jsonl",
        ".claude/ralph-loop.local.md",
        ".ideal/.verify-state.json",
        ".trellis/.verify-state.json",
        "lists/progress.txt",
        "lists/hook.log",
        "target/debug/x",
    ];
    for path in own {
        bed.write(path, "x");
    }
    assert_eq!(bed.print(), before);
    bed.write("progress.txt", "of somebody else");
    assert_ne!(bed.print(), before);
}

#[test]
fn files_are_tracked_and_new_ones_sorted() {
    let bed = Bed::committed();
    bed.write("b.txt", "");
    bed.write(".claude/settings.json", "{}");
    fs::remove_file(bed.at("docs/x.md")).unwrap();
    assert_eq!(files(bed.root()).unwrap(), ["README.md", "b.txt", "src/a.rs", "src/deep/b.rs"]);
    assert_eq!(files(&bed.at("src")).unwrap(), ["a.rs", "deep/b.rs"]);
}

#[test]
fn patterns_and_subfolders_narrow_it() {
    let bed = Bed::committed();
    let (rust, all_but_docs) = (bed.print_of(&["*.rs"]), bed.print_of(&["!docs"]));
    let below = fingerprint(&bed.at("src"), &[]);
    bed.write("docs/x.md", "other words");
    assert_eq!((bed.print_of(&["*.rs"]), bed.print_of(&["!docs"])), (rust.clone(), all_but_docs));
    assert_eq!(fingerprint(&bed.at("src"), &[]), below);
    bed.write("src/deep/b.rs", "changed");
    assert_ne!(bed.print_of(&["*.rs"]), rust);
    let changed = fingerprint(&bed.at("src"), &[]);
    assert_ne!(changed, below);
    bed.commit();
    assert_eq!(fingerprint(&bed.at("src"), &[]), changed);
    assert_eq!(bed.print_of(&["src/{"]), None, "a broken pattern selects nothing that could be told");
}

#[test]
fn what_git_is_told_not_to_watch_is_watched() {
    let bed = Bed::committed();
    let before = bed.print();
    bed.git(&["update-index", "--assume-unchanged", "src/a.rs"]);
    bed.git(&["update-index", "--skip-worktree", "README.md"]);
    assert_eq!(bed.print(), before);
    bed.write("src/a.rs", "changed unseen");
    let one = bed.print();
    assert_ne!(one, before);
    bed.write("README.md", "changed unseen");
    let two = bed.print();
    assert_ne!(two, one);
    fs::remove_file(bed.at("src/a.rs")).unwrap();
    assert_ne!(bed.print(), two);
}

#[test]
fn line_endings_count_as_git_would_write_them() {
    let bed = Bed::committed();
    bed.write(".gitattributes", "*.txt text eol=lf\n");
    bed.differs("a file with other line endings", |bed| bed.write("dos.txt", "a\r\nb\r\n"));
}

/// No git is asked, so whatever the repository names to be run is not, under any name.
#[cfg(unix)]
#[test]
fn t8_a_filter_of_the_repository_is_not_run() {
    let bed = Bed::committed();
    bed.write(".gitattributes", "*.md filter=evil\n*.rs filter=e=v\n");
    for filter in ["evil", "e=v"] {
        bed.git(&["config", &format!("filter.{filter}.clean"), "touch ran; cat"]);
        bed.git(&["config", &format!("filter.{filter}.required"), "true"]);
    }
    bed.write("README.md", "changed");
    bed.write("docs/new.md", "new");
    bed.print();
    assert!(!bed.at("ran").exists());
}

#[test]
fn a_merge_in_progress_cannot_be_told() {
    let bed = Bed::committed();
    bed.git(&["checkout", "-q", "-b", "other"]);
    bed.write("README.md", "theirs");
    bed.commit();
    bed.git(&["checkout", "-q", "-"]);
    bed.write("README.md", "ours");
    bed.commit();
    assert_eq!(try_in_test(bed.root(), &["merge", "-q", "other"], &[], Vec::new()).code, Some(1), "a conflict");
    assert_eq!(bed.print_of(&[]), None);
    assert_eq!(files(bed.root()).unwrap(), ["README.md", "docs/x.md", "src/a.rs", "src/deep/b.rs"], "but its files can be listed");
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_hides_nothing_else() {
    use std::os::unix::ffi::OsStrExt;
    for bed in [Bed::committed(), Bed::bare()] {
        write_whole(&bed.root().join(OsStr::from_bytes(b"src/odd\xff.rs")), b"x").unwrap();
        assert_eq!(bed.print_of(&[]), None);
        assert_eq!(files(bed.root()).unwrap(), ["README.md", "docs/x.md", "src/a.rs", "src/deep/b.rs"]);
        assert!(!Tree::of(bed.root(), PATIENCE).unwrap().is_whole());
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_cannot_be_told_and_is_not_waited_for() {
    let bed = Bed::committed();
    fs::remove_file(bed.at("README.md")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, bed.at("README.md"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    let begun = Instant::now();
    assert_eq!(bed.print_of(&[]), None);
    assert!(begun.elapsed() < PATIENCE / 2);
}

#[test]
fn a_broken_repository_cannot_be_told() {
    let bed = Bed::bare();
    bed.write(".git", "gitdir: /nowhere\n");
    assert_eq!(bed.print_of(&[]), None);
    assert_eq!(files(bed.root()), None);
}

#[test]
fn a_linked_worktree_has_the_same_fingerprint() {
    let bed = Bed::committed();
    let other = Scratch::create("ralph-tree-", false).unwrap();
    let path = other.path().join("wt");
    bed.git(&["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    assert_eq!(fingerprint(&path, &[]), bed.print_of(&[]));
    write_whole(&path.join("src/a.rs"), b"changed").unwrap();
    assert_ne!(fingerprint(&path, &[]), bed.print_of(&[]));
}

#[test]
fn repositories_within_count_by_their_contents() {
    let (bed, library) = (Bed::committed(), Bed::committed());
    bed.git(&["submodule", "--quiet", "add", library.root().to_str().unwrap(), "lib"]);
    bed.commit();
    let before = bed.print();
    assert!(files(bed.root()).unwrap().contains(&"lib/src/a.rs".to_owned()));
    bed.write("lib/src/a.rs", "dirty");
    let dirty = bed.print();
    assert_ne!(dirty, before);
    bed.git_in("lib", &["commit", "-q", "-am", "x"]);
    assert_eq!(bed.print(), dirty, "committed in the submodule");
    bed.commit();
    assert_eq!(bed.print(), dirty, "and in the repository around it");
    bed.git(&["submodule", "--quiet", "deinit", "-f", "lib"]);
    assert_ne!(bed.print(), dirty, "not checked out");

    bed.git(&["init", "-q", "other"]);
    bed.write("other/file", "1");
    let one = bed.print();
    bed.write("other/file", "2");
    assert_ne!(bed.print(), one, "a repository that is no submodule");
}

#[test]
fn without_git_contents_count() {
    let bed = Bed::bare();
    let before = bed.print();
    set_modified(&bed.at("src/a.rs"), SystemTime::UNIX_EPOCH);
    bed.write(".ralph/journal/x.jsonl", "x");
    bed.write("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    bed.write("cache/x", "x");
    bed.write("node_modules/x/index.js", "x");
    assert_eq!(bed.print(), before);
    bed.write("src/a.rs", "other");
    let after = bed.print();
    assert_ne!(after, before);
    fs::rename(bed.at("src/a.rs"), bed.at("src/b.rs")).unwrap();
    assert_ne!(bed.print(), after);
    assert_eq!(files(bed.root()).unwrap(), ["README.md", "docs/x.md", "src/b.rs", "src/deep/b.rs"]);
}

#[test]
fn a_folder_that_its_repository_ignores_is_looked_at_all_the_same() {
    let bed = Bed::committed();
    bed.write(".gitignore", "*\n");
    bed.write("ignored/a", "1");
    let print = || fingerprint(&bed.at("ignored"), &[]).unwrap();
    let before = print();
    bed.write("ignored/a", "2");
    assert_ne!(print(), before);
}

#[test]
fn too_many_files_or_bytes_cannot_be_told() {
    let bed = Bed::bare();
    fs::File::create(bed.at("large")).unwrap().set_len((256 << 20) + 1).unwrap();
    assert_eq!(bed.print_of(&[]), None);
    assert!(bed.print_of(&["src"]).is_some(), "what is not asked for is not read");
    fs::create_dir(bed.at("many")).unwrap();
    for n in 0..20_001 {
        fs::File::create(bed.at(&format!("many/{n}"))).unwrap();
    }
    assert_eq!(files(bed.root()), None);
}

#[test]
fn no_time_is_no_answer() {
    assert!(Tree::of(Bed::committed().root(), Duration::ZERO).is_none());
    assert!(Tree::of(Bed::bare().root(), Duration::ZERO).is_none());
}

/// An edit within one tick of the clock, of the same length, with the old time put back: with and without a memory of the file.
#[cfg(unix)]
#[test]
fn t8_no_edit_hides_behind_times() {
    let bed = Bed::committed();
    for (setting, value) in [("core.trustctime", "false"), ("core.checkStat", "minimal"), ("core.ignoreStat", "true")] {
        bed.git(&["config", setting, value]);
    }
    let mut before = bed.print();
    for n in 0..50 {
        bed.write_unseen("src/a.rs", &format!("fn {n:02}()  \n"));
        let after = bed.print();
        assert_ne!(after, before, "edit {n}");
        before = after;
    }
    bed.git(&["update-index", "--assume-unchanged", "src/a.rs"]);
    bed.git(&["update-index", "--skip-worktree", "README.md"]);
    let before = bed.settle();
    bed.write_unseen("src/a.rs", "fn b() {}\n");
    let after = bed.print();
    assert_ne!(after, before, "a remembered file");
    bed.write_unseen("README.md", "READ\n");
    assert_ne!(bed.print(), after, "and another one");
}

#[cfg(unix)]
#[test]
fn t8_what_replaces_a_remembered_file_is_seen() {
    let bed = Bed::committed();
    let old = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 50);
    for path in ["src/a.rs", "src/deep/b.rs"] {
        set_modified(&bed.at(path), old);
    }
    let before = bed.settle();
    // Another file of the same length and time.
    bed.write("beside", "fn x() {}\n");
    set_modified(&bed.at("beside"), old);
    fs::rename(bed.at("beside"), bed.at("src/a.rs")).unwrap();
    assert_ne!(bed.print(), before);
    bed.write("src/a.rs", "fn a() {}\n");
    assert_eq!(bed.print(), before);
    // Two files change places.
    bed.write("beside", "fn b() {}\n");
    let before = bed.settle();
    fs::rename(bed.at("src/a.rs"), bed.at("third")).unwrap();
    fs::rename(bed.at("beside"), bed.at("src/a.rs")).unwrap();
    fs::rename(bed.at("third"), bed.at("beside")).unwrap();
    assert_ne!(bed.print(), before);
}

#[test]
fn t8_what_is_tracked_counts_though_it_is_ignored() {
    let bed = Bed::committed();
    bed.write(".gitignore", "*.gen\n/made/\n");
    bed.write("kept.gen", "1");
    bed.write("made/deep/kept", "1");
    bed.write("made/deep/new", "1");
    bed.git(&["add", "-f", "kept.gen", "made/deep/kept"]);
    for split in [false, true] {
        if split {
            bed.git(&["update-index", "--split-index"]);
        }
        let before = bed.print();
        bed.write("made/deep/new", if split { "2" } else { "3" });
        bed.write("new.gen", if split { "2" } else { "3" });
        assert_eq!(bed.print(), before, "ignored and not tracked, split: {split}");
        bed.write("kept.gen", if split { "2" } else { "3" });
        let one = bed.print();
        assert_ne!(one, before, "split: {split}");
        bed.write("made/deep/kept", if split { "2" } else { "3" });
        assert_ne!(bed.print(), one, "split: {split}");
    }
    assert_eq!(files(bed.root()).unwrap().iter().filter(|path| path.contains("kept")).count(), 2);
}

#[test]
fn t8_ignore_rules_count_from_the_top_down() {
    let bed = Bed::committed();
    bed.write(".gitignore", "*.log\n/src/deep/x\n");
    bed.write("src/.gitignore", "!keep.log\n.gitignore\n");
    bed.write(".git/info/exclude", "private\n");
    for path in ["a.log", "src/a.log", "src/keep.log", "src/deep/x", "src/deep/y", "private", "src/private/z", "src/deep/keep.log"] {
        bed.write(path, "x");
    }
    let expected = [
        ".gitignore",
        "README.md",
        "docs/x.md",
        "src/.gitignore",
        "src/a.rs",
        "src/deep/b.rs",
        "src/deep/keep.log",
        "src/deep/y",
        "src/keep.log",
    ];
    assert_eq!(files(bed.root()).unwrap(), expected);
    assert_eq!(files(&bed.at("src")).unwrap(), [".gitignore", "a.rs", "deep/b.rs", "deep/keep.log", "deep/y", "keep.log"]);
}

/// A pipe, a folder or nonsense in the place of git's files keeps nobody waiting, and hides no change.
#[cfg(unix)]
#[test]
fn t8_strange_files_of_git_keep_nobody_waiting() {
    let bed = Bed::committed();
    let pipe = |path: &str| {
        let _ = fs::remove_file(bed.at(path));
        rustix::fs::mknodat(rustix::fs::CWD, bed.at(path), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    };
    bed.write(".git/config", "[include]\n\tpath = pipe\n");
    pipe(".git/pipe");
    pipe(".git/info/exclude");
    pipe("docs/.gitignore");
    let begun = Instant::now();
    let before = bed.print();
    bed.write("src/a.rs", "changed");
    assert_ne!(bed.print(), before);
    pipe(".git/config");
    bed.print();
    pipe(".git/index");
    assert_eq!(bed.print_of(&[]), None, "what is tracked cannot be told");
    assert!(begun.elapsed() < PATIENCE / 2);
}

#[cfg(unix)]
#[test]
fn t8_where_a_link_leads_is_not_a_part_of_the_tree() {
    let (bed, other) = (Bed::committed(), Bed::committed());
    fs::remove_dir_all(bed.at("src")).unwrap();
    std::os::unix::fs::symlink(other.at("src"), bed.at("src")).unwrap();
    let before = bed.print();
    assert_eq!(files(bed.root()).unwrap(), ["README.md", "docs/x.md", "src"]);
    other.write("src/a.rs", "changed");
    assert_eq!(bed.print(), before);
}
