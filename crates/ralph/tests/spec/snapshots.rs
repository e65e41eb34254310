//! Snapshots of the files after each round: they have everything, and touch nothing. Taken through the library, as `ralph run` takes them.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
    },
    path::Path,
    time::Duration,
};

use ralph_engine::{
    git::snapshots::{self, Kept},
    store::project::Project,
};
use ralph_testkit::nightly;

use crate::common::{Bed, LOOP, ME, loop_text};

const LIMIT: Duration = Duration::from_mins(1);
/// The id of the loop that [`with_paused_loop`] makes.
pub(crate) const ID: &str = "main-20261115-093000";

/// The loop with that id.
pub(crate) fn loop_of(session: &str) -> String {
    loop_text(session, 7, 0, "DONE").replace("active: true", &format!("active: true\nloop_id: {ID}"))
}

/// A repository with a loop that nobody works on.
pub(crate) fn with_paused_loop() -> Bed {
    let bed = Bed::in_git();
    bed.write(LOOP, loop_of(ME).replace("active: true", "active: false"));
    bed.write(".gitignore", "ignored\n.env\n");
    bed.commit_all("ignore");
    bed
}

pub(crate) fn keep(bed: &Bed, round: u64) -> Kept {
    keep_in(bed.dir(), round)
}

fn keep_in(dir: &Path, round: u64) -> Kept {
    snapshots::keep(&Project::at(dir), ID, round, true, LIMIT).unwrap().unwrap()
}

/// The files of a snapshot: mode and name.
fn files_of(bed: &Bed, kept: &Kept) -> Vec<String> {
    let listed = bed.git(&["ls-tree", "-r", "-z", &kept.commit]);
    let one = |line: &str| format!("{} {}", &line[..6], line.split_once('\t').unwrap().1);
    listed.split_terminator('\0').map(one).collect()
}

fn content(bed: &Bed, kept: &Kept, path: &str) -> String {
    bed.git(&["cat-file", "blob", &format!("{}:{path}", kept.commit)])
}

/// What must be the same before and after: the index byte for byte, what git says about the files, HEAD, reflogs, and every ref but ralph's.
fn untouched(bed: &Bed) -> (Vec<u8>, [String; 4]) {
    let said = [
        bed.git(&["rev-parse", "HEAD"]),
        bed.git(&["reflog", "--all"]),
        bed.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]),
        format!("{:?}", bed.tree()),
    ];
    (fs::read(bed.path(".git/index")).unwrap(), said)
}

/// Hooks that leave a mark and fail.
fn with_hostile_hooks(bed: &Bed) {
    for hook in ["pre-commit", "post-index-change", "reference-transaction", "post-checkout", "post-commit", "pre-auto-gc"] {
        bed.script(format!(".git/hooks/{hook}"), "#!/bin/sh\ntouch \"$HOME/hook-ran\"\nexit 1\n");
        bed.script(format!(".hooks/{hook}"), "#!/bin/sh\ntouch \"$HOME/hook-ran\"\nexit 1\n");
    }
    bed.git(&["-c", "core.hooksPath=/dev/null", "config", "core.hooksPath", ".hooks"]);
}

/// A dirty index, odd names, links, modes, deletions, hooks that fail: all of it is kept, and none of it is touched.
#[test]
fn s4_6_a_snapshot_has_all_files_and_touches_nothing() {
    let bed = with_paused_loop();
    for name in ["kept", "staged", "changed", "gone", "gone-staged"] {
        bed.write(name, "old\n");
    }
    bed.commit_all("files");
    bed.git(&["config", "core.logAllRefUpdates", "always"]);
    bed.git(&["config", "commit.gpgSign", "true"]);
    bed.git(&["config", "--unset", "user.name"]);
    bed.write("staged", "staged\n");
    bed.git(&["add", "staged"]);
    bed.write("staged", "newer than staged\n");
    bed.write("changed", "new\n");
    fs::remove_file(bed.path("gone")).unwrap();
    bed.git(&["rm", "--quiet", "gone-staged"]);
    bed.write("-rf", "an option\n");
    bed.write("with\nbreak", "x\n");
    bed.write("*", "a pattern\n");
    bed.write(":(top)x", "magic\n");
    bed.write(OsStr::from_bytes(b"caf\xe9"), "latin\n");
    bed.write("ignored", "secret\n");
    bed.script("run.sh", "#!/bin/sh\n");
    symlink("nowhere", bed.path("link")).unwrap();
    bed.write(".ralph/journal/x", "own\n");
    with_hostile_hooks(&bed);
    let before = untouched(&bed);
    let kept = keep(&bed, 3);
    assert_eq!(untouched(&bed), before);
    assert!(!bed.home().join("hook-ran").exists());
    assert_eq!((kept.name.as_str(), kept.left_out.as_slice()), ("refs/ralph/main-20261115-093000/3", &[][..]));
    let files = files_of(&bed, &kept);
    for file in [
        "100644 kept",
        "100644 -rf",
        "100644 with\nbreak",
        "100644 *",
        "100644 :(top)x",
        "100755 run.sh",
        "120000 link",
        "100644 caf\u{fffd}",
    ] {
        assert!(files.iter().any(|f| f == file), "{file}: {files:?}");
    }
    for file in ["gone", "gone-staged", "ignored", LOOP, ".ralph/journal/x"] {
        assert!(!files.iter().any(|f| f.ends_with(file)), "{file}: {files:?}");
    }
    assert_eq!(content(&bed, &kept, "staged"), "newer than staged\n");
    assert_eq!(content(&bed, &kept, "changed"), "new\n");
    let log = bed.git(&["log", "-1", "--format=%an %ae %cn|%P|%s|%G?", &kept.commit]);
    let head = bed.git(&["rev-parse", "HEAD"]);
    assert_eq!(log.trim(), format!("ralph ralph@localhost ralph|{}|ralph: {ID} after iteration 3|N", head.trim()));
    assert_eq!(bed.git(&["branch", "--all"]).lines().count(), 1, "no branch noise");
}

/// A loop file that somebody committed is ralph's all the same: it never comes back from a snapshot.
#[test]
fn s4_6_ralphs_own_files_are_no_part_of_a_snapshot() {
    let bed = with_paused_loop();
    bed.git(&["add", "--force", LOOP]);
    let list = ".claude/data/ralph-loops/current/feature_list.json";
    bed.write(list, "[]");
    bed.write(".claude/data/ralph-loops/current/progress.txt", "Iteration: 3\n");
    bed.write("sub/.claude/ralph-loop.x.local.md", "x");
    bed.commit_all("all of it");
    let files = files_of(&bed, &keep(&bed, 1));
    assert!(files.iter().all(|f| !f.contains("ralph-loop.") && !f.contains("progress.txt")), "{files:?}");
    assert!(files.iter().any(|f| f.ends_with(list)), "the list is work: {files:?}");
}

/// Nobody has to wait for another git, nor for the end of a merge; and before the first commit there are files, too.
#[test]
fn s4_6_a_snapshot_needs_no_quiet_repository() {
    let bed = with_paused_loop();
    bed.write(".git/index.lock", "");
    bed.write("new", "1\n");
    assert!(files_of(&bed, &keep(&bed, 1)).contains(&"100644 new".to_owned()));
    assert!(bed.exists(".git/index.lock"));
    fs::remove_file(bed.path(".git/index.lock")).unwrap();
    bed.commit_all("new");
    bed.git(&["switch", "--quiet", "-c", "other"]);
    bed.write("new", "theirs\n");
    bed.commit_all("theirs");
    bed.git(&["switch", "--quiet", "main"]);
    bed.write("new", "ours\n");
    bed.commit_all("ours");
    assert!(!bed.run("git").args(["merge", "other"]).output().success());
    let before = untouched(&bed);
    let kept = keep(&bed, 2);
    assert_eq!(untouched(&bed), before);
    assert!(content(&bed, &kept, "new").starts_with("<<<<<<<"));

    let fresh = Bed::new();
    fresh.git(&["init", "--quiet"]);
    assert_eq!(files_of(&fresh, &keep(&fresh, 0)), Vec::<String>::new(), "an empty folder");
    fresh.write("first", "1\n");
    let kept = keep(&fresh, 1);
    assert_eq!(files_of(&fresh, &kept), ["100644 first"]);
    assert_eq!(fresh.git(&["log", "-1", "--format=%P", &kept.commit]).trim(), "");
}

/// Without git there is nothing to keep, and that is no error; nor is a repository that ignores the project.
#[test]
fn s4_6_without_a_repository_nothing_is_kept() {
    let kept = |dir: &Path| snapshots::keep(&Project::at(dir), ID, 1, false, LIMIT);
    let bed = Bed::new();
    assert_eq!(kept(bed.dir()), Ok(None));
    let around = Bed::in_git();
    around.write(".gitignore", "inner\n");
    around.write("inner/x", "x");
    assert_eq!(kept(&around.path("inner")), Ok(None));
    // A repository that says that its files lie elsewhere would have those kept, and overwritten.
    around.git(&["config", "core.worktree", around.home().to_str().unwrap()]);
    assert!(kept(around.dir()).unwrap_err().contains("takes"), "{:?}", kept(around.dir()));
    // One that cannot be written says so.
    let broken = Bed::in_git();
    broken.write(".git/refs/ralph", "not a folder");
    let problem = kept(broken.dir()).unwrap_err();
    assert!(problem.starts_with("git update-ref: ") && !problem.contains('\n'), "{problem}");
}

/// Repositories within, submodules, sparse checkouts and linked working trees.
#[test]
fn s4_6_snapshots_of_repositories_with_more_in_them() {
    let bed = with_paused_loop();
    let library = Bed::in_git();
    bed.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.dir().to_str().unwrap(), "lib"]);
    bed.write("a/1", "1");
    bed.write("b/2", "2");
    bed.commit_all("lib");
    bed.git(&["init", "--quiet", "nested"]);
    bed.write("nested/file", "x");
    let kept = keep(&bed, 1);
    let files = files_of(&bed, &kept);
    assert!(files.contains(&"160000 lib".to_owned()) && !files.iter().any(|f| f.contains("nested")), "{files:?}");
    assert_eq!(kept.left_out, ["nested/ (a repository of its own)"]);
    bed.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/b"]);
    assert!(!bed.exists("b/2"));
    bed.write("a/new", "x");
    bed.write("b/beside", "x");
    let before = untouched(&bed);
    let files = files_of(&bed, &keep(&bed, 2));
    assert_eq!(untouched(&bed), before);
    for file in ["100644 b/2", "100644 a/1", "100644 a/new", "100644 b/beside"] {
        assert!(files.contains(&file.to_owned()), "{file}: {files:?}");
    }
    let linked = bed.home().join("linked");
    bed.git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    fs::write(linked.join("only-here"), "x").unwrap();
    let kept = keep_in(&linked, 1);
    assert!(files_of(&bed, &kept).contains(&"100644 only-here".to_owned()));
    assert!(
        kept.name.starts_with("refs/ralph/main-20261115-093000.") && kept.name.ends_with("/1"),
        "loops of the same id are told apart: {}",
        kept.name
    );
}

/// What the repository names to be run over its files is not run; the bytes on the disk are kept, and come back.
#[test]
fn s4_6_no_filter_of_the_repository_runs() {
    let bed = with_paused_loop();
    bed.write(".gitattributes", "*.txt filter=evil\n");
    bed.write("a.txt", "plain\n");
    bed.write("same.txt", "same\n");
    bed.commit_all("filtered");
    for program in ["clean", "smudge"] {
        bed.git(&["config", &format!("filter.evil.{program}"), "touch \"$HOME/filter-ran\"; echo printed >&2; tr a-z A-Z"]);
    }
    bed.git(&["config", "filter.evil.required", "true"]);
    let first = keep(&bed, 0);
    assert_eq!(content(&bed, &first, "a.txt"), "plain\n");
    bed.write("a.txt", "work\n");
    keep(&bed, 1);
    bed.ralph_ok(&["rollback", "0"]);
    assert_eq!((bed.read("a.txt"), bed.read("same.txt")), ("plain\n".to_owned(), "same\n".to_owned()));
    assert!(!bed.home().join("filter-ran").exists());
}

/// What git was told not to look at changes all the same.
#[test]
fn s4_6_a_snapshot_sees_what_git_was_told_to_overlook() {
    let bed = with_paused_loop();
    bed.write("assumed", "old\n");
    bed.write("skipped", "old\n");
    bed.commit_all("two");
    bed.git(&["update-index", "--assume-unchanged", "assumed"]);
    bed.git(&["update-index", "--skip-worktree", "skipped"]);
    bed.write("assumed", "new\n");
    bed.write("skipped", "new\n");
    let before = untouched(&bed);
    let kept = keep(&bed, 1);
    assert_eq!(untouched(&bed), before);
    assert_eq!((content(&bed, &kept, "assumed").as_str(), content(&bed, &kept, "skipped").as_str()), ("new\n", "new\n"));
}

/// A file of the same length that is written in the same moment as git's index.
#[test]
fn s4_6_a_snapshot_is_not_fooled_by_quick_changes() {
    let bed = with_paused_loop();
    for n in 0..nightly::amount(8, 20) {
        bed.write("quick", format!("{n:02}-a"));
        bed.git(&["add", "quick"]);
        bed.write("quick", format!("{n:02}-b"));
        assert_eq!(content(&bed, &keep(&bed, 1), "quick"), format!("{n:02}-b"));
    }
}

/// A dump of many megabytes that nobody ignored is not copied round by round, and that is said.
#[test]
fn s4_6_a_snapshot_leaves_huge_files_out_and_says_so() {
    let bed = with_paused_loop();
    File::create(bed.path("dump.sql")).unwrap().set_len(60 << 20).unwrap();
    bed.write("small", "x");
    let closed = bed.write("closed", "x");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let kept = keep(&bed, 1);
    let files = files_of(&bed, &kept);
    assert!(files.contains(&"100644 small".to_owned()) && !files.iter().any(|f| f.ends_with("dump.sql")), "{files:?}");
    assert_eq!(kept.left_out[0], "dump.sql (60 MB)");
    // Root can read everything.
    let is_read = files.iter().any(|f| f.ends_with("closed"));
    assert!(is_read || kept.left_out.contains(&"closed (cannot be read)".to_owned()), "{kept:?}");
    assert!(bed.git(&["log", "-1", "--format=%b", &kept.commit]).contains("Left out: dump.sql (60 MB)"));
}

/// Snapshots go when their loop has been over for a month; those of a live loop stay, and a new loop of the same id begins anew.
#[test]
fn s4_6_old_snapshots_go_by_themselves() {
    let bed = with_paused_loop();
    let tree = bed.git(&["rev-parse", "HEAD^{tree}"]);
    let made = |name: &str, days: i64| {
        let at = format!("{} +0000", crate::common::now_ms() / 1_000 - days * 86_400);
        let mut git = bed.command("git");
        git.args(["commit-tree", "-m", "old", tree.trim()]).env("GIT_COMMITTER_DATE", &at).env("GIT_AUTHOR_DATE", &at);
        let commit = crate::common::run(&mut git, b"").stdout;
        bed.git(&["update-ref", &format!("refs/ralph/{name}"), commit.trim()]);
    };
    made("main-20200101-000000/1", 31);
    made("main-20200101-000000/2", 31);
    made("other-20200101-000000/1", 29);
    made(&format!("{ID}/5"), 100);
    made(&format!("{ID}/before-rollback-1"), 100);
    made("main-1.12345678/1", 89);
    made("main-2.12345678/1", 91);
    keep(&bed, 6);
    let refs = || bed.git(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/ralph"]);
    let expected = format!("main-1.12345678/1\n{ID}/5\n{ID}/6\n{ID}/before-rollback-1\nother-20200101-000000/1\n");
    assert_eq!(refs(), expected);
    keep(&bed, 0);
    assert_eq!(refs(), format!("main-1.12345678/1\n{ID}/0\n{ID}/before-rollback-1\nother-20200101-000000/1\n"));
}
