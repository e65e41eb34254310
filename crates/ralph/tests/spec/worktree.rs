//! Working trees for loops: made beside the person's files, found again, and out of their way.

use std::{fs, path::Path};

use ralph_engine::{
    gates::tree::{PATIENCE, Tree},
    ops::worktree::{self, Place},
    store::project::Project,
};
use ralph_testkit::Output;

use crate::common::{Bed, LOOP, OTHER, RALPH, loop_text, run};

fn prepare(bed: &Bed, name: &str) -> Result<Place, String> {
    worktree::prepare(&Project::at(bed.dir()), name).map_err(|refusal| refusal.to_string())
}

fn ralph_in(bed: &Bed, dir: &Path, args: &[&str]) -> Output {
    run(bed.command(RALPH).args(args).current_dir(dir), b"")
}

#[test]
fn s4_6_a_working_tree_is_made_once_and_found_again() {
    let bed = Bed::in_git();
    bed.script(".git/hooks/post-checkout", "#!/bin/sh\ntouch \"$HOME/hook-ran\"\nexit 1\n");
    bed.write(".gitignore", ".claude/settings.local.json\n");
    bed.commit_all("ignore");
    bed.write(".claude/settings.local.json", "{\"permissions\":{}}");
    bed.write("README.md", "changed\n");
    let place = prepare(&bed, "try").unwrap();
    let root = bed.path(".ralph/worktrees/try");
    assert_eq!((place.project.root(), place.branch.as_str(), place.is_new), (root.as_path(), "ralph/try", true));
    assert!(!bed.home().join("hook-ran").exists());
    assert_eq!(fs::read_to_string(root.join("README.md")).unwrap(), "A project.\n");
    assert_eq!(fs::read_to_string(root.join(".claude/settings.local.json")).unwrap(), "{\"permissions\":{}}");
    let notes = place.notes.join("\n");
    assert!(notes.starts_with("1 changed or new file is not committed") && notes.contains(".claude/settings.local.json"), "{notes}");
    assert!(notes.contains("node_modules"), "{notes}");
    assert_eq!(bed.git(&["status", "--porcelain"]), " M README.md\n", "git does not see it");
    fs::write(root.join("work"), "x").unwrap();
    let again = prepare(&bed, "try").unwrap();
    assert_eq!((again.is_new, again.notes.len(), again.branch.as_str()), (false, 0, "ralph/try"));
    assert!(root.join("work").exists());
    // Somebody removed it by hand: the branch has the work that was committed.
    fs::remove_dir_all(&root).unwrap();
    assert!(prepare(&bed, "try").unwrap().is_new);
    assert_eq!(bed.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn s4_6_a_working_tree_that_cannot_be_made_is_refused_in_words() {
    let bed = Bed::in_git();
    assert!(prepare(&bed, "../x").unwrap_err().contains("up to 64 letters"));
    bed.write(".ralph/worktrees/mine/file", "x");
    assert!(prepare(&bed, "mine").unwrap_err().contains("is no working tree of this repository"));
    bed.git(&["worktree", "add", "--quiet", "-b", "ralph/busy", bed.home().join("elsewhere").to_str().unwrap()]);
    let busy = prepare(&bed, "busy").unwrap_err();
    assert!(busy.starts_with("the branch ralph/busy is checked out in another working tree") && busy.contains("elsewhere"), "{busy}");
    let empty = Bed::new();
    assert!(prepare(&empty, "x").unwrap_err().contains("needs a git repository"));
    empty.git(&["init", "--quiet"]);
    assert!(prepare(&empty, "x").unwrap_err().contains("needs a commit"));
}

/// What runs in there finds that working tree and not the one around it; from outside its loops can be seen.
#[test]
fn s4_6_a_loop_in_a_working_tree_is_its_own() {
    let bed = Bed::in_git();
    let root = prepare(&bed, "try").unwrap().project.root().to_owned();
    fs::create_dir_all(root.join(".claude")).unwrap();
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(root.join(LOOP), loop_text(OTHER, 3, 9, "DONE")).unwrap();
    let inside = ralph_in(&bed, &root.join("src"), &["status", "--json"]);
    let inside: serde_json::Value = serde_json::from_str(&inside.stdout).unwrap();
    assert_eq!(inside["loops"][0]["file"], root.join(LOOP).to_str().unwrap());
    let outside = bed.ralph_json(&["status", "--json"]);
    assert_eq!((outside["loops"].as_array().unwrap().len(), &outside["worktrees"][0]["worktree"]), (0, &"try".into()));
    assert!(
        bed.ralph_ok(&["status"]).contains(".ralph/worktrees/try  Ralph loop: active, iteration 3 of 9"),
        "{}",
        bed.ralph_ok(&["status"])
    );
    assert_eq!(bed.ralph_json(&["list", "--json"])[0]["worktree"], "try");
    assert!(bed.ralph_ok(&["list"]).contains("ralph -C .ralph/worktrees/try status"));
    // The stops of sessions in the project around it are not this loop's.
    assert!(!bed.work().session(OTHER).send().blocks());
}

/// Trust is shared by the working trees of a repository, and gates outside are not disturbed by what happens within.
#[test]
fn s4_6_a_working_tree_shares_trust_and_disturbs_no_gate() {
    let bed = Bed::in_git();
    bed.write("ralph.toml", "[[gate]]\nname = \"readme\"\ncommand = \"test -f README.md\"\n");
    bed.commit_all("gate");
    bed.ralph_ok(&["trust", "--yes"]);
    let root = prepare(&bed, "try").unwrap().project.root().to_owned();
    let within = ralph_in(&bed, &root, &["gate"]);
    assert_eq!(within.code, Some(0), "{within:?}");
    let project = Project::at(bed.dir());
    let fingerprint = || Tree::of(bed.dir(), PATIENCE).unwrap().fingerprint(Some(&project), |_| true).unwrap();
    let before = fingerprint();
    fs::write(root.join("new-within"), "x").unwrap();
    assert_eq!(fingerprint(), before, "the tree outside is the same");
    fs::write(bed.path("new-outside"), "x").unwrap();
    assert_ne!(fingerprint(), before);
}
