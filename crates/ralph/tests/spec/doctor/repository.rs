//! What the repository says: no repository, something under way, no branch, changes, loop files that could be committed.

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use serde_json::{Value, json};

use super::{Patient, sound::fifo};
use crate::common::{Bed, LOOP};

#[test]
fn s2_8_a_project_without_a_repository() {
    let patient = Patient::of(Bed::new());
    assert_eq!(patient.complains("git", "note", &["not in a git repository"])["fix"], "git init");
    patient.sh_ok("git init -q");
    let found = patient.complaints("git");
    assert!(found.iter().all(|f| !f["what"].as_str().unwrap().contains("not in a git repository")), "{found:?}");
}

#[test]
fn s2_8_something_that_is_under_way() {
    let patient = Patient::sound();
    let git = |args: &[&str]| patient.bed.git(args);
    git(&["switch", "-q", "-c", "other"]);
    patient.bed.write("README.md", "Theirs.\n");
    patient.bed.commit_all("theirs");
    git(&["switch", "-q", "main"]);
    patient.bed.write("README.md", "Ours.\n");
    patient.bed.commit_all("ours");
    for (begin, what, abort) in [
        ("git merge other", "a merge", "git merge --abort"),
        ("git rebase other", "a rebase", "git rebase --abort"),
        ("git cherry-pick other", "a cherry-pick", "git cherry-pick --abort"),
        ("git revert --no-edit HEAD~1", "a revert", "git revert --abort"),
    ] {
        assert_ne!(patient.sh(begin).code, Some(0), "{begin} must stop in a conflict");
        patient.mends("git", "warning", &[what, "under way"], abort);
    }
    patient.sh_ok("git bisect start");
    patient.mends("git", "warning", &["a bisection"], "git bisect reset");
}

#[test]
fn s2_8_no_branch_is_checked_out() {
    let patient = Patient::sound();
    patient.bed.git(&["checkout", "-q", "--detach"]);
    patient.mends("git", "warning", &["no branch"], "git switch -c work");
}

#[test]
fn s2_8_changes_that_are_not_committed() {
    let patient = Patient::sound();
    patient.bed.write("README.md", "New.\n");
    patient.complains("git", "note", &["branch main", "1 uncommitted change:"]);
    patient.bed.write("more.md", "More.\n");
    let fix = "git add -A && git commit -m 'Before the loop'";
    patient.mends("git", "note", &["2 uncommitted changes"], fix);
    // Before the first commit, too.
    let patient = Patient::sound();
    fs::remove_dir_all(patient.bed.path(".git")).unwrap();
    patient.sh_ok("git init -q && git config user.name T && git config user.email t@example.invalid");
    // What must not be committed comes first, and until then nothing says how to commit everything.
    let report = patient.report(&[]);
    let ids: Vec<&str> = report["findings"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert!(ids.ends_with(&["git.ignored", "git"]), "{ids:?}");
    assert_eq!(report["findings"].as_array().unwrap().last().unwrap()["fix"], Value::Null);
    patient.report(&["--fix"]);
    patient.mends("git", "note", &["uncommitted"], fix);
}

#[test]
fn s2_8_a_loop_file_that_was_committed() {
    let patient = Patient::sound();
    patient.bed.write(LOOP, crate::common::loop_text(crate::common::ME, 1, 0, "DONE"));
    patient.bed.git(&["add", "-f", LOOP]);
    patient.mends("git.tracked", "warning", &[LOOP, "yours alone"], &format!("git rm -q --cached {LOOP}"));
    assert!(patient.bed.exists(LOOP));
}

#[test]
fn s2_8_loop_files_that_git_does_not_ignore() {
    let patient = Patient::sound();
    fs::write(patient.bed.path(".git/info/exclude"), "# no line end").unwrap();
    patient.mends("git.ignored", "warning", &[LOOP], "ralph doctor --fix");
    assert_eq!(patient.bed.read(".git/info/exclude"), "# no line end\n**/.claude/ralph-loop*.local.md\n");
    // Personal settings, in a project somewhere in a repository.
    let patient = Patient::sound();
    fs::write(patient.bed.path(".git/info/exclude"), "").unwrap();
    patient.bed.write("sub/.claude/settings.local.json", "{}");
    let look = |args: &[&str]| patient.run(patient.bin.join("ralph"), &[&["doctor", "--directory", "sub"], args].concat()).stdout;
    assert!(look(&[]).contains("! git.ignored      git does not ignore .claude/ralph-loop.local.md and .claude/settings.local.json"));
    assert!(look(&["--fix"]).starts_with("fixed added to "), "{}", look(&[]));
    assert!(!look(&[]).contains("git.ignored"));
}

/// A line that does not help is not written again and again.
#[test]
fn s4_7_a_gitignore_that_says_otherwise_is_a_repair_that_fails_once() {
    let patient = Patient::sound();
    fs::write(patient.bed.path(".git/info/exclude"), "").unwrap();
    patient.bed.write(".gitignore", "!.claude/ralph-loop.local.md\n");
    patient.fix();
    let text = patient.bed.read(".git/info/exclude");
    let report = patient.report(&["--fix"]);
    assert!(report["failed"][0].as_str().unwrap().ends_with("a .gitignore of the repository says otherwise"), "{report:#}");
    assert_eq!(patient.bed.read(".git/info/exclude"), text);
}

/// Whoever opens a pipe to read waits for ever, and git does.
#[test]
fn s4_7_a_git_that_hangs_is_waited_for_and_no_longer() {
    let patient = Patient::sound();
    fifo(&patient.bed.path(".gitignore"));
    let out = patient.doctor(&[]);
    assert!(out.duration < Duration::from_secs(18), "{:?}", out.duration);
    assert!(out.stdout.contains("! git              git did not answer within 10 s"), "{}", out.stdout);
    assert!(!out.stdout.contains("uncommitted"), "what was not seen is not told: {}", out.stdout);
}

/// An unpacked archive brings a `.git` whose parts lead anywhere.
#[test]
fn s4_7_nothing_is_written_outside_of_the_repository() {
    let elsewhere = |patient: &Patient| {
        let folder = patient.bed.home().join("elsewhere");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("exclude"), "mine\n").unwrap();
        folder
    };
    let ways: [fn(&Patient, &Path); 2] = [
        |patient, folder| symlink(folder, patient.bed.path(".git/info")).unwrap(),
        |patient, folder| {
            fs::create_dir(patient.bed.path(".git/info")).unwrap();
            symlink(folder.join("exclude"), patient.bed.path(".git/info/exclude")).unwrap();
        },
    ];
    for (n, way) in ways.iter().enumerate() {
        let patient = Patient::sound();
        let folder = elsewhere(&patient);
        fs::remove_dir_all(patient.bed.path(".git/info")).unwrap();
        way(&patient, &folder);
        let report = patient.report(&["--fix"]);
        assert_ne!(report["failed"], json!([]), "{n}: {report:#}");
        assert!(report["failed"][0].as_str().unwrap().contains("is not a plain file of the repository"), "{n}: {report:#}");
        assert_eq!(fs::read_to_string(folder.join("exclude")).unwrap(), "mine\n", "{n}");
    }
    // Where it is missing it is made, also for a linked worktree, whose repository is another folder.
    let patient = Patient::sound();
    fs::remove_dir_all(patient.bed.path(".git/info")).unwrap();
    patient.sh_ok("git worktree add -q ../tree");
    patient.sh_ok("cd ../tree && ralph doctor --fix");
    assert_eq!(patient.bed.read(".git/info/exclude"), "**/.claude/ralph-loop*.local.md\n");
}

/// `ralph init --local` is for one person, and so are the commands that it writes.
#[test]
fn s2_8_the_commands_of_a_local_set_up_are_not_for_the_repository() {
    let patient = Patient::new();
    fs::write(patient.bed.path(".git/info/exclude"), "*.local.*\n").unwrap();
    patient.sh_ok("ralph init --local");
    let words = [".claude/commands/", "with the other commands of `ralph init --local`"];
    patient.mends("git.ignored", "warning", &words, "ralph doctor --fix");
    let status = patient.sh_ok("git status --porcelain");
    assert_eq!(status, "", "nothing is left to commit by accident");
    // With everybody's settings they are everybody's, and a file that is in the repository already is, too.
    let patient = Patient::new();
    fs::write(patient.bed.path(".git/info/exclude"), "*.local.*\n").unwrap();
    patient.sh_ok("ralph init --project");
    patient.is_quiet_about("git.ignored");
    let patient = Patient::new();
    fs::write(patient.bed.path(".git/info/exclude"), "*.local.*\n").unwrap();
    patient.sh_ok("ralph init --local && git add -A");
    patient.is_quiet_about("git.ignored");
}
