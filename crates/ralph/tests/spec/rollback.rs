//! `ralph rollback`: the files go back, and nothing is lost on the way.

use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt, symlink},
    time::{Duration, SystemTime},
};

use ralph_testkit::{
    killer::{Filter, count_syscalls, kill_at_syscall},
    pty::Pty,
};
use serde_json::json;

use crate::{
    common::{Bed, LOOP, ME, RALPH, run},
    diff::three_rounds,
    snapshots::{ID, keep, loop_of, with_paused_loop},
};

fn refused(bed: &Bed, args: &[&str]) -> String {
    let tree = bed.tree();
    let refs = bed.git(&["for-each-ref"]);
    let out = bed.ralph(args);
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{args:?}: {}", out.stderr);
    let but_locks = |tree: std::collections::BTreeMap<std::path::PathBuf, String>| {
        tree.into_iter().filter(|(path, _)| !path.starts_with(".ralph")).collect::<Vec<_>>()
    };
    assert_eq!((but_locks(bed.tree()), bed.git(&["for-each-ref"])), (but_locks(tree), refs), "{args:?}");
    out.stderr
}

/// Files come back, change back and go; links and modes with them. What is ignored, the index, the branch and the loop stay.
#[test]
fn s4_6_rollback_restores_the_files_and_nothing_else() {
    let bed = with_paused_loop();
    bed.script("tool", "#!/bin/sh\n");
    symlink("tool", bed.path("link")).unwrap();
    bed.write("-rf", "first\n");
    bed.write("deep/er/file", "1\n");
    keep(&bed, 1);
    fs::set_permissions(bed.path("tool"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(bed.path("link")).unwrap();
    bed.write("link/now-a-folder", "x\n");
    fs::remove_dir_all(bed.path("deep")).unwrap();
    bed.write("deep", "now a file\n");
    bed.write("-rf", "second\n");
    bed.write("-new", "made\n");
    bed.write(".env", "SECRET=1\n");
    keep(&bed, 2);
    let (index, head, loop_bytes) = (fs::read(bed.path(".git/index")).unwrap(), bed.git(&["rev-parse", "HEAD"]), bed.loop_bytes());
    let said = bed.ralph_ok(&["rollback", "1"]);
    assert!(said.starts_with(&format!("The files are as they were at iteration 1 of {ID}.\n")), "{said}");
    assert!(said.contains("`ralph rollback before-rollback-1` brings it back") && said.contains("its iteration stays at 7"), "{said}");
    assert_eq!((bed.read("-rf"), bed.read("deep/er/file"), bed.read(".env")), ("first\n".into(), "1\n".into(), "SECRET=1\n".into()));
    assert_eq!(fs::read_link(bed.path("link")).unwrap().to_str(), Some("tool"));
    assert_eq!(fs::metadata(bed.path("tool")).unwrap().permissions().mode() & 0o111, 0o111);
    assert!(!bed.exists("-new"));
    assert_eq!((fs::read(bed.path(".git/index")).unwrap(), bed.git(&["rev-parse", "HEAD"]), bed.loop_bytes()), (index, head, loop_bytes));
    let last = bed.journal().pop().unwrap();
    assert_eq!((&last["event"]["kind"], &last["event"]["event"]), (&json!("heard"), &json!("rollback")));
    // And forth again.
    bed.ralph_ok(&["rollback", "before-rollback-1"]);
    assert_eq!((bed.read("-rf"), bed.read("deep"), bed.exists("-new")), ("second\n".into(), "now a file\n".into(), true));
    assert!(bed.ralph_ok(&["rollback", "2"]).contains("all as they were"));
}

/// In a terminal it shows what would change, and asks; an empty line is a no.
#[test]
fn eyes_2_rollback_asks_in_a_terminal() {
    let bed = three_rounds();
    let rollback = |args: &[&str], answer: &str| {
        let mut command = bed.command(RALPH);
        command.args(["rollback", "1"]).args(args).env("TERM", "xterm");
        let pty = Pty::spawn(command, 40, 100);
        if !answer.is_empty() {
            pty.wait_for(|screen| screen.contains("Put the files back? [y/N]"), Duration::from_mins(1)).unwrap();
            pty.send(answer);
        }
        pty.wait_exit(Duration::from_mins(1))
    };
    assert_eq!((rollback(&[], "\r"), bed.read("src/a")), (Some(1), "one\ntwo\n".to_owned()));
    assert_eq!((rollback(&[], "y\r"), bed.read("src/a")), (Some(0), "one\n".to_owned()));
    bed.ralph_ok(&["rollback", "3"]);
    assert_eq!((rollback(&["--yes"], ""), bed.read("src/a")), (Some(0), "one\n".to_owned()));
}

/// Work that no snapshot has is not lost: it is refused, and with --force it is kept first.
#[test]
fn s4_6_rollback_refuses_to_lose_work() {
    let bed = three_rounds();
    bed.write("src/a", "mine\n");
    bed.write("mine", "new\n");
    let why = refused(&bed, &["rollback", "1"]);
    assert_eq!(
        why,
        "error: the files changed since iteration 3 was kept: mine, src/a. `--force` goes back anyway, and keeps that work first\n"
    );
    bed.ralph_ok(&["rollback", "1", "--force"]);
    assert_eq!((bed.read("src/a"), bed.exists("mine")), ("one\n".to_owned(), false));
    bed.ralph_ok(&["rollback", "before-rollback-1"]);
    assert_eq!((bed.read("src/a"), bed.read("mine")), ("mine\n".to_owned(), "new\n".to_owned()));
}

/// A repository within is its own: its commit is told, and its files stay.
#[test]
fn s4_6_rollback_leaves_repositories_within_alone() {
    let bed = with_paused_loop();
    let library = Bed::in_git();
    keep(&bed, 0);
    bed.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.dir().to_str().unwrap(), "lib"]);
    bed.commit_all("lib");
    keep(&bed, 1);
    bed.write("lib/new", "x\n");
    bed.git(&["-C", "lib", "add", "new"]);
    bed.git(&["-C", "lib", "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "-m", "new"]);
    bed.write("own", "x\n");
    keep(&bed, 2);
    let said = bed.ralph_ok(&["rollback", "1"]);
    assert!(said.contains("lib stood at another commit then") && !said.contains("changed"), "{said}");
    assert!(bed.exists("lib/new") && !bed.exists("own"));
    bed.ralph_ok(&["rollback", "0", "--force"]);
    assert!(bed.exists("lib/new") && !bed.exists(".gitmodules"));
}

/// What git ignores is in no snapshot, so it must not be overwritten, wherever it lies.
#[test]
fn s4_6_rollback_never_overwrites_what_is_ignored() {
    let bed = with_paused_loop();
    bed.write("data/file", "kept\n");
    bed.write("plain", "kept\n");
    bed.write("folder", "kept\n");
    keep(&bed, 1);
    fs::remove_dir_all(bed.path("data")).unwrap();
    fs::remove_file(bed.path("plain")).unwrap();
    fs::remove_file(bed.path("folder")).unwrap();
    bed.write(".gitignore", "ignored\n.env\ndata\nplain\nfolder\n");
    symlink(bed.home(), bed.path("data")).unwrap();
    bed.write("plain", "secret\n");
    bed.write("folder/deep/secret", "secret\n");
    keep(&bed, 2);
    let why = refused(&bed, &["rollback", "1", "--force"]);
    assert!(why.contains("are not kept: data, folder/deep/secret, plain. Move those away first"), "{why}");
}

/// An agent at work is not disturbed: neither that of a session, nor that of a runner.
#[test]
fn s4_6_rollback_refuses_while_an_agent_works() {
    let bed = three_rounds();
    bed.write(LOOP, loop_of(ME));
    let why = refused(&bed, &["rollback", "1"]);
    assert!(why.contains(&format!("Pause it first: ralph pause {ID}")), "{why}");
    bed.ralph_ok(&["pause"]);
    fs::create_dir_all(bed.path(".ralph/locks")).unwrap();
    let held = File::create(bed.path(format!(".ralph/locks/{ID}.runner"))).unwrap();
    held.lock().unwrap();
    assert!(refused(&bed, &["rollback", "1"]).contains("`ralph run` is at work"));
    drop(held);
    bed.ralph_ok(&["rollback", "1"]);
}

/// Looking first changes nothing; programs get the same as JSON.
#[test]
fn s4_6_rollback_can_be_looked_at_first() {
    let bed = three_rounds();
    let (refs, tree) = (bed.git(&["for-each-ref"]), bed.tree_but_log());
    let said = bed.ralph_ok(&["rollback", "1", "--dry-run"]);
    assert!(said.starts_with("Nothing was done.") && said.contains("src/a") && said.contains("2 commits since then"), "{said}");
    let told = bed.ralph_json(&["rollback", "1", "--dry-run", "--json", "--commits"]);
    assert_eq!(json!([told["kept"], told["changed"], told["removed"], told["dry_run"]]), json!([null, ["src/a"], [], true]));
    assert!(told["moved_to"].is_string(), "{told}");
    let without_locks = |mut tree: std::collections::BTreeMap<std::path::PathBuf, String>| {
        tree.retain(|path, _| !path.starts_with(".ralph"));
        tree
    };
    assert_eq!((bed.git(&["for-each-ref"]), without_locks(bed.tree_but_log())), (refs, without_locks(tree)));
    assert!(bed.ralph(&["rollback", "8"]).stderr.contains("this loop has 0–3"));
}

/// The branch goes back only if it is asked to, with what was staged kept as well; and never past what others have.
#[test]
fn s4_6_rollback_takes_the_branch_along_if_asked() {
    let bed = three_rounds();
    let (old, start) = (bed.git(&["rev-parse", "HEAD"]), bed.git(&["rev-parse", "HEAD~2"]));
    bed.git(&["branch", "spare"]);
    bed.git(&["update-ref", "refs/remotes/origin/main", "HEAD~1"]);
    assert!(refused(&bed, &["rollback", "1", "--commits"]).contains("1 of the commits since iteration 1 are pushed"));
    bed.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    bed.git(&["checkout", "--quiet", "--detach"]);
    assert!(refused(&bed, &["rollback", "1", "--commits"]).contains("HEAD is detached"));
    bed.git(&["checkout", "--quiet", "spare"]);
    assert!(refused(&bed, &["rollback", "1", "--commits"]).contains("refs/heads/spare is checked out now"));
    bed.git(&["checkout", "--quiet", "main"]);
    bed.write(".git/MERGE_HEAD", &old);
    assert!(refused(&bed, &["rollback", "1", "--commits"]).contains("MERGE_HEAD exists"));
    fs::remove_file(bed.path(".git/MERGE_HEAD")).unwrap();
    let said = bed.ralph_ok(&["rollback", "1", "--commits"]);
    assert!(said.contains(&format!("main went from {} to {}", &old[..8], &start[..8])), "{said}");
    assert_eq!((bed.git(&["rev-parse", "main"]), bed.read("src/a")), (start, "one\n".to_owned()));
    assert_eq!(bed.git(&["status", "--porcelain", "--", "src", "b"]), "?? src/\n", "as it was then");
    assert!(bed.git(&["reflog", "-1", "main"]).contains("reset"), "{}", bed.git(&["reflog", "main"]));
    bed.ralph_ok(&["rollback", "before-rollback-1", "--commits"]);
    assert_eq!((bed.git(&["rev-parse", "main"]), bed.read("src/a")), (old, "one\ntwo\n".to_owned()));
    assert_eq!(bed.git(&["status", "--porcelain", "--", "src", "b"]), "");
    // What was staged and is nowhere else.
    bed.write("src/a", "only staged\n");
    bed.git(&["add", "src/a"]);
    bed.write("src/a", "one\ntwo\n");
    bed.ralph_ok(&["rollback", "1", "--commits"]);
    assert_eq!(bed.git(&["show", &format!("refs/ralph/{ID}/before-rollback-3^2:src/a")]), "only staged\n");
}

/// `kill -9` at every change that it makes: the work of the person is in the files or in a snapshot, and the way goes on from there.
#[test]
fn s4_6_a_killed_rollback_loses_nothing() {
    let bed = with_paused_loop();
    keep(&bed, 1);
    let victim = |bed: &Bed| {
        let mut command = bed.command(RALPH);
        command.args(["rollback", "1", "--force"]).env("TMPDIR", bed.home());
        command
    };
    let begin = || {
        bed.write("mine", "precious\n");
        let _ = bed.run("git").args(["update-ref", "-d", &format!("refs/ralph/{ID}/before-rollback-1")]).output();
        let _ = bed.run("git").args(["update-ref", "-d", &format!("refs/ralph/{ID}/before-rollback-2")]).output();
    };
    begin();
    let count = count_syscalls(&mut victim(&bed), Filter::Writes, b"");
    assert!(count > 5, "{count}");
    let index = fs::read(bed.path(".git/index")).unwrap();
    for n in 1..=count {
        begin();
        kill_at_syscall(&mut victim(&bed), Filter::Writes, n, b"");
        assert_eq!(fs::read(bed.path(".git/index")).unwrap(), index, "call {n}");
        let is_kept = || bed.run("git").args(["show", &format!("refs/ralph/{ID}/before-rollback-1:mine")]).output().stdout == "precious\n";
        assert!(is_kept() || bed.read("mine") == "precious\n", "call {n}");
        // What it left in the temporary folder goes once it is old.
        let left = || {
            fs::read_dir(bed.home())
                .unwrap()
                .map(|e| e.unwrap().path())
                .filter(|p| p.to_string_lossy().contains("ralph-git-"))
                .collect::<Vec<_>>()
        };
        for path in left() {
            File::open(path).unwrap().set_modified(SystemTime::now() - Duration::from_mins(11)).unwrap();
        }
        let again = run(&mut victim(&bed), b"");
        assert_eq!((again.code, left()), (Some(0), Vec::new()), "call {n}: {}", again.stderr);
        assert!(!bed.exists("mine") && is_kept(), "call {n}");
    }
    assert_eq!(bed.git(&["fsck", "--no-dangling", "--no-progress"]), "");
}
