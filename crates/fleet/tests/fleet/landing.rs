//! What is proven lands: one at a time, with the gates run again, and nothing of the person's is touched.

use std::{fs, process::Command};

use crate::bed::{Bed, compact};

/// Passes unless six and seven are there without peace; with a flaky file it fails once in the lander's slot.
const CHECK: &str = r#"set -e
if [ -f six.txt ] && [ -f seven.txt ]; then test -f peace.txt; fi
if [ -f flaky.txt ] && [ "$RALPH_SLOT" = 0 ] && [ ! -e "$MARKS/flaked" ]; then touch "$MARKS/flaked"; echo "flaked"; exit 1; fi
! grep -q '<<<<<<<' notes.txt
"#;

const AGENT: &str = r#"
case "$task" in
*note*) printf 'start\n%s\n' "$task" > notes.txt;;
*flaky*) echo flaky > flaky.txt;;
*six*) echo 6 > six.txt;;
*seven*) echo 7 > seven.txt;;
*) printf '%s' "$task" | tr -dc 'a-z' > "own-$(printf '%s' "$task" | tr -dc 'a-z').txt";;
esac
case "$prompt" in *"came back"*) echo peace > peace.txt;; esac
say "$task"
"#;

/// Twelve items with conflicts, a compact list, a dirty checkout, a person who commits meanwhile, a flaky gate, an item that breaks another's tests.
#[test]
fn f4_twelve_items_land_proven_and_no_file_of_the_persons_is_touched() {
    let items = [
        ("N1", "note one"),
        ("N2", "note two"),
        ("N3", "note three"),
        ("F", "a flaky one"),
        ("S", "six"),
        ("V", "seven"),
        ("A", "alpha"),
        ("B", "beta"),
        ("C", "gamma"),
        ("D", "delta"),
        ("E", "epsilon"),
        ("G", "zeta"),
    ];
    let list = compact(&items);
    let bed = Bed::new(&[("feature_list.json", &list), ("check.sh", CHECK), ("notes.txt", "start\n"), ("mine.txt", "mine\n")], AGENT);
    bed.write("mine.txt", "not committed\n");
    bed.write("untracked.txt", "untracked\n");
    let before = (bed.git(&["status", "--porcelain"]), bed.git(&["ls-files", "--stage"]), files_of(&bed));
    let mut run = bed.start("feature_list.json", &["--workers", "4", "--verify", "sh check.sh"]);
    // The person goes on in the same repository.
    bed.until("a landing", || bed.log().matches(" landed ").count() >= 2);
    bed.write("persons.txt", "by hand\n");
    bed.git(&["add", "persons.txt"]);
    bed.git(&["commit", "-qm", "By hand", "persons.txt"]);
    let code = run.wait().unwrap().code();
    assert_eq!(code, Some(0), "{}", bed.log());

    assert_eq!(bed.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(bed.git(&["status", "--porcelain"]), before.0);
    // Index and files are as they were, but for the person's own commit.
    let own = |line: &&str| !line.contains("persons.txt");
    let index = bed.git(&["ls-files", "--stage"]);
    assert_eq!(index.lines().filter(own).collect::<Vec<_>>(), before.1.lines().collect::<Vec<_>>());
    let mut files = files_of(&bed);
    assert_eq!(files.remove("persons.txt").as_deref(), Some(b"by hand\n".as_slice()));
    assert_eq!(files, before.2);
    // The list is as it was, with twelve values changed.
    assert_eq!(bed.git(&["show", "ralph/feature-list:feature_list.json"]), list.replace("false", "true"));
    assert!(bed.log().contains("flaky") && bed.log().contains("sent-back"), "{}", bed.log());
    every_commit_passes(&bed, "ralph/feature-list");
    let landed = bed.git(&["log", "--first-parent", "--format=%(trailers:key=Ralph-Job,valueonly)", "ralph/feature-list"]);
    let mut jobs: Vec<&str> = landed.lines().filter(|line| !line.is_empty()).collect();
    jobs.sort_unstable();
    let count = jobs.len();
    jobs.dedup();
    assert_eq!((jobs.len(), count), (12, 12), "each one once: {landed}");
    // What landed is on the branch, and nowhere else.
    let fleets = bed.root.path().join("home/.local/state/ralph/fleets");
    let hub = fs::read_dir(fleets).unwrap().next().unwrap().unwrap().path().join("hub.git");
    let refs = bed.git(&["--git-dir", hub.to_str().unwrap(), "for-each-ref", "--format=%(refname)"]);
    assert!(!refs.contains("refs/ralph-fleet"), "{refs}");
    // In the morning.
    bed.git(&["merge", "-q", "--ff-only", "ralph/feature-list"]);
    assert!(bed.git(&["show", "HEAD:notes.txt"]).lines().count() >= 4 && bed.repo().join("persons.txt").is_file());
}

/// All files of the person's but git's own, with their bytes.
fn files_of(bed: &Bed) -> std::collections::BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(bed.repo()).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())).collect()
}

/// Every first-parent commit, in a clone of its own.
fn every_commit_passes(bed: &Bed, branch: &str) {
    let clone = bed.root.path().join("looked");
    bed.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let commits = bed.git(&["rev-list", "--first-parent", branch]);
    for commit in commits.lines() {
        let checked = Command::new("git").current_dir(&clone).args(["checkout", "-q", commit]).status().unwrap();
        let passed = Command::new("sh").current_dir(&clone).arg("check.sh").env("RALPH_SLOT", "1").status().unwrap();
        assert!(checked.success() && passed.success(), "{commit}");
    }
}

/// What the target has without the job is nobody's fault: landing stops and says so, and the job stays proven.
#[test]
fn f4_a_red_target_blames_nobody() {
    let check = "if [ \"$RALPH_SLOT\" = 0 ]; then date +%s%3N >> \"$MARKS/tried\"; test ! -e red.txt; fi\n";
    let bed = Bed::new(
        &[("feature_list.json", &compact(&[("A", "alpha")])), ("check.sh", check), ("red.txt", "red\n")],
        "echo x > a.txt; say a\n",
    );
    let mut run = bed.start("feature_list.json", &["--verify", "sh check.sh"]);
    bed.until("the word", || bed.fleet(&["status"]).1.contains("fails without this job"));
    assert_eq!(bed.of_job("a", "returns"), "0");
    // Gates cost time: it is tried less and less often. Each try runs them twice on the job's files and twice without it.
    let tried = || fs::read_to_string(bed.marks().join("tried")).unwrap().lines().map(|ms| ms.parse().unwrap()).collect::<Vec<u64>>();
    bed.until("a third try", || tried().len() >= 9);
    let began: Vec<u64> = tried().into_iter().step_by(4).collect();
    assert!(began[1] - began[0] >= 3_000 && began[2] - began[1] >= 6_000, "{began:?}");
    // The person mends it, and landing goes on.
    bed.git(&["rm", "-q", "red.txt"]);
    bed.git(&["commit", "-qm", "Mended"]);
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
}

/// What the person writes in the list while others land stays, also where git cannot merge it: only the marks are the lander's.
#[test]
fn f4_what_the_person_changes_in_the_list_meanwhile_stays() {
    let agent = "case \"$task\" in beta) while [ ! -e \"$MARKS/go\" ]; do sleep 0.1; done;; esac; echo x > \"$task.txt\"; say \"$task\"\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha"), ("B", "beta")]))], agent);
    let mut run = bed.start("feature_list.json", &["--workers", "2", "--verify", "true"]);
    bed.until("a landing", || bed.log().contains(" landed "));
    let persons = compact(&[("C", "a thought of the person's"), ("A", "alpha, in other words"), ("B", "beta")]);
    bed.write("feature_list.json", &persons);
    bed.git(&["commit", "-qam", "More to do"]);
    fs::write(bed.marks().join("go"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    let wanted = persons.replacen("\"alpha, in other words\",\"passes\":false", "\"alpha, in other words\",\"passes\":true", 1);
    let wanted = wanted.replacen("\"beta\",\"passes\":false", "\"beta\",\"passes\":true", 1);
    assert_eq!(bed.git(&["show", "ralph/feature-list:feature_list.json"]), wanted);
}

/// A job whose files cannot be set up, or whose lock file no tool can make anew, goes back to its agent, and the others land.
#[test]
fn f4_what_cannot_be_made_ready_is_sent_back_and_others_land() {
    let toml = "[fleet]\nsetup = \"[ ! -e broken.txt ] || [ $RALPH_SLOT != 0 ]\"\n";
    let agent = "case \"$prompt\" in *\"came back\"*) rm -f broken.txt;; *) [ \"$task\" != careless ] || echo x > broken.txt;; esac\n\
        [ \"$task\" = careless ] || printf '{\"by\": \"%s\"}\\n' \"$task\" > composer.lock; echo x > \"$task.txt\"; sleep 1; say \"$task\"\n";
    let list = compact(&[("A", "careless"), ("B", "beta"), ("C", "gamma")]);
    let bed = Bed::new(&[("feature_list.json", &list), ("ralph.toml", toml), ("composer.lock", "{}\n")], agent);
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--workers", "3", "--verify", "true"]);
    assert_eq!(code, 0, "{said}");
    let sent_back = |why: &str| said.lines().any(|line| line.contains("sent-back") && line.contains(why));
    assert!(sent_back("[fleet] setup"), "{said}");
    assert!(sent_back("composer.lock, and `composer update"), "{said}");
    assert_eq!(bed.git(&["ls-tree", "--name-only", "ralph/feature-list", "broken.txt"]), "");
}

/// A file that is named `union` keeps both sides.
#[test]
fn f4_files_of_which_both_sides_count_keep_both() {
    let toml = "[fleet]\nunion = [\"CHANGELOG.md\"]\n";
    let agent = "printf '# Changes\\n- %s\\n' \"$task\" > CHANGELOG.md; sleep 0.3; say \"$task\"\n";
    let list = compact(&[("A", "alpha"), ("B", "beta")]);
    let bed = Bed::new(&[("feature_list.json", &list), ("CHANGELOG.md", "# Changes\n"), ("ralph.toml", toml)], agent);
    let trusted = bed.ralph(&["trust", "--yes"]);
    assert_eq!(trusted.0, 0, "{}", trusted.1);
    let (code, said) = bed.run("feature_list.json", &["--workers", "2", "--verify", "true"]);
    assert_eq!(code, 0, "{said}");
    let log = bed.git(&["show", "ralph/feature-list:CHANGELOG.md"]);
    assert!(log.contains("- alpha") && log.contains("- beta"), "{log}");
    assert!(!said.contains("sent-back"), "{said}");
}

/// Nothing lands before a person has looked at it; what they send back comes again with their words.
#[test]
fn f4_with_review_a_person_decides_what_lands() {
    let agent = "case \"$prompt\" in *\"came back\"*) echo better > a.txt;; *) echo x > a.txt;; esac; say a\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], agent);
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--review"]);
    assert_eq!((code, bed.of_job("a", "state").as_str()), (12, "proven"), "{said}");
    assert_eq!(bed.fleet(&["back", "A", "Make it better"]).0, 0);
    assert_eq!(bed.run("feature_list.json", &["--verify", "true", "--review"]).0, 12);
    assert_eq!((bed.of_job("a", "state").as_str(), bed.of_job("a", "iterations").as_str()), ("proven", "2"));
    assert_eq!(bed.fleet(&["land", "A"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--review"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(bed.git(&["show", "ralph/feature-list:a.txt"]), "better");
}

/// A lander that is killed after its push is not told: the next one finds the job on the branch, whether or not it would have landed it.
#[test]
fn f4_what_was_pushed_without_a_word_has_landed() {
    pushed_without_a_word(true);
    pushed_without_a_word(false);
}

fn pushed_without_a_word(may_land: bool) {
    let bed = Bed::new(
        &[("feature_list.json", &compact(&[("A", "alpha")]))],
        "case \"$task\" in beta) while [ ! -e \"$MARKS/go\" ]; do sleep 0.1; done;; esac; echo x > a.txt; say a\n",
    );
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--review"]);
    assert_eq!(code, 12, "{said}");
    let status = bed.status();
    let fleet = status["fleet"].as_str().unwrap();
    let work = status["jobs"][0]["commit"].as_str().unwrap().to_owned();
    let hub = bed.root.path().join("home/.local/state/ralph/fleets").join(fleet).join("hub.git");
    bed.git(&["fetch", "-q", hub.to_str().unwrap(), &work]);
    let commit =
        bed.git(&["commit-tree", &format!("{work}^{{tree}}"), "-p", "main", "-p", &work, "-m", &format!("A\n\nRalph-Job: {fleet}/a\n")]);
    bed.git(&["branch", "ralph/feature-list", &commit]);
    if may_land {
        assert_eq!(bed.fleet(&["land", "A"]).0, 0);
    }
    // Something else goes on meanwhile.
    assert_eq!(bed.fleet(&["add", "beta"]).0, 0);
    let mut run = bed.start("feature_list.json", &["--verify", "true", "--review"]);
    bed.until("the landing", || bed.of_job("a", "state") == "landed");
    fs::write(bed.marks().join("go"), "").unwrap();
    run.wait().unwrap();
    assert_eq!((bed.of_job("a", "state"), bed.git(&["rev-parse", "ralph/feature-list"])), ("landed".to_owned(), commit), "{}", bed.log());
}

/// A lock file of which both sides changed: the target's version, brought up to date by its own tool.
#[test]
fn f4_a_lock_file_that_conflicts_is_made_anew_by_its_tool() {
    let member = |name: &str| {
        (format!("crates/{name}/Cargo.toml"), format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"))
    };
    let agent = "mkdir -p \"crates/$task/src\"; touch \"crates/$task/src/lib.rs\"\n\
        printf '[package]\\nname = \"%s\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' \"$task\" > \"crates/$task/Cargo.toml\"\n\
        cargo generate-lockfile --offline && sleep 1 && say \"$task\"\n";
    let lock = "version = 4\n\n[[package]]\nname = \"mid\"\nversion = \"0.1.0\"\n";
    let (mid, manifest) = member("mid");
    let list = compact(&[("A", "alpha"), ("B", "beta")]);
    let files = [
        ("feature_list.json", list.as_str()),
        ("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*\"]\n"),
        ("Cargo.lock", lock),
        (".gitignore", "target\n"),
    ];
    let bed = Bed::new(&files, agent);
    fs::create_dir_all(bed.repo().join("crates/mid/src")).unwrap();
    bed.write(&mid, &manifest);
    bed.write("crates/mid/src/lib.rs", "");
    bed.git(&["add", "-A"]);
    bed.git(&["commit", "-qm", "A crate"]);
    // The toolchain of this machine, not one that rustup would look for in the home folder.
    let (code, said) =
        bed.run("feature_list.json", &["--workers", "2", "--verify", "cargo metadata --locked --offline --format-version 1 >/dev/null"]);
    assert_eq!(code, 0, "{said}");
    let lock = bed.git(&["show", "ralph/feature-list:Cargo.lock"]);
    assert!(["alpha", "beta", "mid"].iter().all(|name| lock.contains(&format!("name = \"{name}\""))), "{lock}");
    assert!(!said.contains("sent-back"), "{said}");
}

/// `--squash`: one commit with one parent for each job.
#[test]
fn f4_a_squashed_job_is_one_commit_with_one_parent() {
    let agent = "echo 1 > one.txt; git add -A; git commit -qm 'a step'; echo x > \"$task.txt\"; say x\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha"), ("B", "beta")]))], agent);
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true", "--squash"]);
    assert_eq!(code, 0, "{said}");
    let log = bed.git(&["log", "--format=%p|%s", "main..ralph/feature-list"]);
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| !line.split('|').next().unwrap().contains(' ')), "{log}");
    assert_eq!(bed.git(&["show", "ralph/feature-list:one.txt"]), "1");
}

/// `--land none`: what is proven stays where it is, what waits for it waits, and the run ends.
#[test]
fn f4_without_landing_proven_work_stays_where_it_is() {
    let list = r#"{"features": [{"id": "A", "description": "alpha", "passes": false}, {"id": "B", "description": "beta", "dependsOn": ["A"], "passes": false}]}"#;
    let bed = Bed::new(&[("feature_list.json", list)], "echo x > \"$task.txt\"; say x\n");
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--land", "none"]);
    assert_eq!((code, bed.of_job("a", "state").as_str(), bed.of_job("b", "state").as_str()), (12, "proven", "waits"), "{said}");
    assert_eq!(bed.git(&["branch", "--list", "ralph/*"]), "");
}

/// What cannot be landed as it should be needs a person, with the reason: a submodule, a file that LFS keeps, a remote that takes signed commits only.
#[test]
fn f4_what_only_a_person_can_land_says_why() {
    let agent = "case \"$task\" in\n\
        module) mkdir lib; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib; git commit -qm module; echo '<promise>DONE</promise>';;\n\
        large) printf '*.bin filter=lfs\\n' > .gitattributes; echo x > big.bin; say large;;\n\
        esac\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("M", "module"), ("L", "large")]))], agent);
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true", "--max-iterations", "3"]);
    assert_eq!(code, 12, "{said}");
    for (id, why) in [("m", "submodule lib"), ("l", "big.bin, which Git LFS keeps")] {
        assert!(bed.of_job(id, "state") == "needs-person" && bed.of_job(id, "why").contains(why), "{id}: {}", bed.of_job(id, "why"));
    }
}

/// A branch that takes only signed commits refuses the fleet's: the work needs a person, and is not lost.
#[test]
fn f4_a_branch_that_wants_signatures_needs_a_person() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say x\n");
    // A server's rule: the hooks of the person's own repository are not run for a fleet.
    let remote = bed.root.path().join("remote.git");
    bed.git(&["clone", "-q", "--bare", ".", remote.to_str().unwrap()]);
    let hook = remote.join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let rule = "#!/bin/sh\nwhile read old new name; do case $name in refs/heads/*) echo 'error: GH006: Commits must have verified signatures.' >&2; exit 1;; esac; done\n";
    fs::write(&hook, rule).unwrap();
    Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
    let (code, said) = bed.run("feature_list.json", &["--verify", "true", "--remote", remote.to_str().unwrap()]);
    assert_eq!((code, bed.of_job("a", "state").as_str()), (12, "needs-person"), "{said}");
    assert!(bed.of_job("a", "why").contains("only signed commits"), "{}", bed.of_job("a", "why"));
}

/// A branch that is checked out is not moved, whatever the person's settings let others push.
#[test]
fn f4_no_setting_lets_a_checked_out_branch_be_moved() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say x\n");
    bed.git(&["config", "receive.denyCurrentBranch", "ignore"]);
    bed.git(&["switch", "-qc", "ralph/feature-list"]);
    let before = bed.git(&["rev-parse", "HEAD"]);
    let mut run = bed.start("feature_list.json", &["--verify", "true", "--base", "main"]);
    bed.until("the word", || bed.fleet(&["status"]).1.contains("checked out: switch"));
    assert_eq!((bed.git(&["rev-parse", "HEAD"]), bed.git(&["status", "--porcelain"])), (before, String::new()));
    bed.git(&["switch", "-q", "main"]);
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
}

/// A list of check boxes, and one that git does not know: it is marked where it is.
#[test]
fn f4_marks_are_set_in_every_kind_of_list() {
    let boxes = "# Plan\n\n- [ ] T-1: alpha\n  - [ ] a step\n- [ ] T-2: beta\n";
    let bed = Bed::new(&[("plan.md", boxes), ("x.txt", "x\n")], "echo x > \"$(echo \"$task\" | tr -dc a-z).txt\"; say x\n");
    let (code, said) = bed.run("plan.md", &["--workers", "2", "--verify", "true"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(bed.git(&["show", "ralph/plan:plan.md"]), boxes.replace("[ ]", "[x]").trim_end());
    assert!(!said.contains("sent-back"), "{said}");
    bed.write("mine.json", &compact(&[("A", "gamma"), ("B", "delta")]));
    let (code, said) = bed.run("mine.json", &["--workers", "2", "--verify", "true"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        fs::read_to_string(bed.repo().join("mine.json")).unwrap(),
        compact(&[("A", "gamma"), ("B", "delta")]).replace("false", "true")
    );
    assert_eq!(bed.git(&["status", "--porcelain"]), "?? mine.json");
}

/// A tree that is known to pass is not measured again where its gate says that it depends on nothing else.
#[test]
fn f4_a_known_tree_is_free() {
    let toml = "[[gate]]\nname = \"tests\"\ncommand = \"echo ran >> '{marks}/ran'\"\nany_clone = true\n";
    let bed = Bed::new(&[("a.txt", "a\n")], "echo x > b.txt; say x\n");
    bed.write("ralph.toml", &toml.replace("{marks}", bed.marks().to_str().unwrap()));
    bed.git(&["add", "-A"]);
    bed.git(&["commit", "-qm", "Gates"]);
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    assert_eq!(bed.fleet(&["add", "Write b"]).0, 0);
    let agent = format!("sh '{}'", bed.root.path().join("agent.sh").display());
    let (code, said) = bed.fleet(&["run", "--workers", "1", "--agent-cmd", &agent]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(bed.marks().join("ran")).unwrap().lines().count(), 1, "the lander measured what the slot had: {said}");
}

/// The gates are those that the person trusted: what an agent writes into ralph.toml has no word. What is not committed does not pass.
#[test]
fn f4_an_agents_branch_has_no_word_in_its_gates() {
    let agent = "printf '[[gate]]\\ncommand = \"true\"\\n' > ralph.toml; say weaker\n";
    let toml = "[[gate]]\nname = \"proof\"\ncommand = \"test -f proof.txt\"\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")])), ("ralph.toml", toml)], agent);
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--max-iterations", "2"]);
    assert_eq!((code, bed.of_job("a", "state").as_str()), (12, "needs-person"), "{said}");
    bed.write_outside("agent.sh", "cat >/dev/null; echo x > proof.txt; echo '<promise>DONE</promise>'\n");
    assert_eq!(bed.fleet(&["release", "A"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--max-iterations", "4"]);
    assert_eq!((code, bed.of_job("a", "state").as_str()), (12, "needs-person"), "nothing was committed: {said}");
}

/// Jobs that all change the same lines: each comes back at most twice, because nothing lands past the one that came back for the last time.
#[test]
fn f4_jobs_that_all_conflict_land_one_after_the_other() {
    let items: Vec<(String, String)> = (0..8).map(|n| (format!("J{n}"), format!("job{n}"))).collect();
    let list = compact(&items.iter().map(|(id, task)| (id.as_str(), task.as_str())).collect::<Vec<_>>());
    let agent = "printf 'start\\n%s\\n' \"$task\" > notes.txt; sleep 0.3; say \"$task\"\n";
    let bed = Bed::new(&[("feature_list.json", &list), ("notes.txt", "start\n")], agent);
    let (code, said) = bed.run("feature_list.json", &["--workers", "4", "--verify", "! grep -q '<<<<' notes.txt"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("sent-back"), "{said}");
    let notes = bed.git(&["show", "ralph/feature-list:notes.txt"]);
    assert!(items.iter().all(|(_, task)| notes.lines().filter(|line| line == task).count() == 1), "{notes}");
}
