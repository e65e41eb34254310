//! A repository that would run programs in every way that git knows, and ralph's commands in it: none of them runs. And edits that git would not notice.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    thread,
    time::Duration,
};

use ralph_testkit::pty::Pty;

use crate::{
    common::{Bed, LOOP, ME, RALPH, loop_text, run},
    gated::{COUNT, Gated, gate},
    run::Runs,
};

/// Every hook that a command of ralph's could come near.
const HOOKS: [&str; 12] = [
    "post-index-change",
    "post-checkout",
    "pre-commit",
    "post-commit",
    "reference-transaction",
    "fsmonitor-watchman",
    "pre-auto-gc",
    "post-rewrite",
    "post-merge",
    "update",
    "pre-push",
    "sendemail-validate",
];

/// Names of filters: no text, with an equals sign, with a dot and a quote.
const FILTERS: [&[u8]; 4] = [b"\xff\xfe", b"e=v", b"a.b \\\"c", b"plain"];

/// A program that writes down that it ran, and why.
struct Trap(std::path::PathBuf);

impl Trap {
    fn in_home(home: &Path) -> Self {
        let program = home.join("trap");
        fs::write(&program, format!("#!/bin/sh\necho \"$*\" >> '{}/ran'\ncat\n", home.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Trap(program)
    }

    /// The configuration that runs it.
    fn configuration(&self, place: &str) -> Vec<u8> {
        let program = self.0.display();
        let mut out = Vec::new();
        let mut add = |section: &[u8], keys: &[&str]| {
            out.extend([b"[".as_slice(), section, b"]\n"].concat());
            for key in keys {
                out.extend(format!("\t{key} = {program} {place}-{key}\n").as_bytes());
            }
        };
        let core = ["fsmonitor", "pager", "editor", "sshCommand", "askPass", "gitProxy", "alternateRefsCommand"];
        add(b"core", &core);
        add(b"diff", &["external"]);
        add(b"diff \"evil\"", &["command", "textconv"]);
        add(b"merge \"evil\"", &["driver"]);
        add(b"pager", &["diff", "log", "status", "config", "branch"]);
        add(b"credential", &["helper"]);
        add(b"gpg", &["program"]);
        add(b"interactive", &["diffFilter"]);
        add(b"uploadpack", &["packObjectsHook"]);
        add(b"remote \"evil\"", &["uploadpack", "receivepack"]);
        for filter in FILTERS {
            add(&[b"filter \"", filter, b"\""].concat(), &["clean", "smudge"]);
        }
        // A process is asked in a protocol of its own, and is started in any case.
        add(b"filter \"process\"", &["process"]);
        out.extend(format!("[alias]\n\tstatus = !{program} alias\n\tls-files = !{program} alias\n").as_bytes());
        out.extend(format!("[remote \"evil\"]\n\turl = ext::{program} url\n\tpromisor = true\n").as_bytes());
        out.extend(b"[log]\n\tshowSignature = true\n[submodule]\n\trecurse = true\n[diff]\n\tignoreSubmodules = none\n");
        out
    }

    fn attributes() -> Vec<u8> {
        [
            b"*.txt filter=\xff\xfe diff=evil merge=evil\n".as_slice(),
            b"*.rs filter=e=v diff=evil\n",
            b"*.md filter=plain diff=evil\n",
            b"*.inc filter=included diff=evil\n",
            b"*.wt filter=of-worktree diff=evil\n",
            b"new.txt filter=process\n",
        ]
        .concat()
    }

    /// Sets it in a git folder: in its configuration, in an included file, in a working tree's own, in attributes and in hooks.
    fn set_in(&self, git_dir: &Path, place: &str) {
        let program = self.0.display();
        let mut config = fs::OpenOptions::new().append(true).open(git_dir.join("config")).unwrap();
        config.write_all(&self.configuration(place)).unwrap();
        config
            .write_all(format!("[include]\n\tpath = included\n[core]\n\thooksPath = {}/evil-hooks\n", git_dir.display()).as_bytes())
            .unwrap();
        config.write_all(b"[extensions]\n\tworktreeConfig = true\n\tpartialClone = evil\n").unwrap();
        for (file, filter) in [("included", "included"), ("config.worktree", "of-worktree")] {
            let text = format!(
                "[filter \"{filter}\"]\n\tclean = {program} {place}-{file}\n\tsmudge = {program} {place}-{file}\n\trequired = true\n"
            );
            fs::write(git_dir.join(file), format!("{text}[core]\n\tfsmonitor = {program} {place}-{file}\n")).unwrap();
        }
        fs::create_dir_all(git_dir.join("info")).unwrap();
        fs::write(git_dir.join("info/attributes"), Self::attributes()).unwrap();
        for folder in ["hooks", "evil-hooks"] {
            fs::create_dir_all(git_dir.join(folder)).unwrap();
            for hook in HOOKS {
                let path = git_dir.join(folder).join(hook);
                fs::write(&path, format!("#!/bin/sh\n{program} {place}-{folder}-{hook}\n")).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
    }
}

/// A repository with a submodule, both full of traps, and files that git would have to read.
fn trapped() -> Bed {
    let bed = Bed::in_git();
    for path in ["a.txt", "b.rs", "c.md", "d.inc", "e.wt", "sub/a.txt", "sub/d.inc"] {
        bed.write(path, format!("{path}\n"));
    }
    let git = |folder: &str, args: &[&str]| {
        let out = run(bed.command("git").args(args).current_dir(bed.path(folder)), b"");
        assert!(out.success(), "{args:?}: {}", out.stderr);
    };
    git("sub", &["init", "--quiet"]);
    git("sub", &["add", "."]);
    git("sub", &["-c", "user.name=T", "-c", "user.email=t@e.invalid", "commit", "--quiet", "--message", "sub"]);
    bed.write(".gitignore", ".ralph\nignored\n.claude/ralph-loop*.local.md\n");
    bed.commit_all("with a submodule");
    let trap = Trap::in_home(bed.home());
    bed.write(".gitattributes", Trap::attributes());
    bed.write("sub/.gitattributes", Trap::attributes());
    trap.set_in(&bed.path(".git"), "top");
    trap.set_in(&bed.path("sub/.git"), "sub");
    make_dirty(&bed);
    bed
}

/// What git has in its index looks different now, so that it would have to be read, through every filter.
fn make_dirty(bed: &Bed) {
    for path in ["a.txt", "b.rs", "c.md", "d.inc", "e.wt", "sub/a.txt", "sub/d.inc"] {
        let file = fs::File::options().append(true).open(bed.path(path)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_hours(1)).unwrap();
    }
    bed.write("new.txt", "new\n");
    bed.write("sub/new.txt", "new\n");
}

#[track_caller]
fn nothing_ran(bed: &Bed, after: &str) {
    let ran = fs::read_to_string(bed.home().join("ran")).unwrap_or_default();
    assert_eq!(ran, "", "after {after}");
}

/// The traps are good: git falls into them.
#[test]
fn t8_git_itself_runs_what_the_repository_names() {
    for args in [&["status"][..], &["add", "--all"], &["diff"], &["-c", "core.fsmonitor=false", "add", "--all"]] {
        let bed = trapped();
        let _ = run(bed.command("git").args(args), b"");
        assert_ne!(fs::read_to_string(bed.home().join("ran")).unwrap_or_default(), "", "{args:?}");
    }
    let bed = trapped();
    let _ = run(bed.command("git").args(["status"]).current_dir(bed.path("sub")), b"");
    assert!(fs::read_to_string(bed.home().join("ran")).unwrap_or_default().contains("sub-"));
}

#[test]
fn t8_no_command_runs_what_the_repository_names() {
    let bed = trapped();
    bed.write("ralph.toml", gate("good", "test -f a.txt", ""));
    let ralph = |args: &[&str]| {
        make_dirty(&bed);
        let out = bed.ralph(args);
        nothing_ran(&bed, &format!("ralph {args:?}"));
        out
    };
    assert_eq!(ralph(&["trust", "--yes"]).code, Some(0));
    for args in [&["gate"][..], &["gate"], &["gate", "--json"]] {
        assert_eq!(ralph(args).code, Some(0), "{args:?}");
    }
    bed.write(LOOP, loop_text(ME, 1, 20, "DONE").replace("active: true", "active: true\nstall_rounds: 3"));
    for said in ["I work.", "Still.", "All works.\n\n<promise>NOT YET</promise>"] {
        make_dirty(&bed);
        assert!(bed.stop(said).send().blocks());
        nothing_ran(&bed, "a stop");
    }
    for args in [&["status"][..], &["phase"], &["report", "--json"], &["doctor"], &["doctor", "--fix"], &["list"], &["diff"], &["cancel"]] {
        let out = ralph(args);
        assert!(out.code.is_some_and(|code| code < 100), "{args:?}: {out:?}");
    }
    bed.write("ralph.toml", "[[gate]]\nname = \"pr\"\npull_request = \"open\"\n");
    ralph(&["gate"]);
    ralph(&["doctor"]);
    assert!(ralph(&["start", "Go", "--name", "other", "--session", "x", "--verify", "test -f a.txt"]).code.is_some());
}

#[test]
fn t8_no_run_nor_rollback_runs_what_the_repository_names() {
    let runs = Runs::of(
        trapped(),
        "echo $N > work.txt\necho $N >> a.txt\necho $N >> sub/a.txt\n[ $N = 3 ] && echo '<promise>DONE</promise>'\ntrue\n",
    );
    let out = runs.ends(0, &["Go", "--completion-promise", "DONE", "--max-iterations", "5"]);
    nothing_ran(&runs.bed, "a run");
    assert_eq!(runs.sessions(), 3, "{}", out.stdout);
    let bed = &runs.bed;
    for args in [&["diff"][..], &["diff", "2"], &["diff", "2", "now", "--stat"], &["report"], &["report", "--json"]] {
        make_dirty(bed);
        let out = bed.ralph(args);
        assert_eq!(out.code, Some(0), "{args:?}: {out:?}");
        nothing_ran(bed, &format!("ralph {args:?}"));
    }
    // On a terminal git uses a pager: the person's, and not the repository's, however large its configuration is.
    let mut config = fs::OpenOptions::new().append(true).open(bed.path(".git/config")).unwrap();
    config.write_all("[x]\n\ty = zzzzzzzzzzzzzzzzzzzz\n".repeat(100_000).as_bytes()).unwrap();
    let mut command = bed.command(RALPH);
    command.args(["diff", "2"]).env("PAGER", "cat").env("TERM", "xterm");
    let pty = Pty::spawn(command, 40, 100);
    assert_eq!(pty.wait_exit(Duration::from_mins(2)), Some(0));
    assert!(String::from_utf8_lossy(&pty.raw()).contains("work.txt"));
    nothing_ran(bed, "a diff on a terminal");
    for args in [&["rollback", "1", "--force"][..], &["rollback", "2", "--force", "--dry-run"]] {
        make_dirty(bed);
        let out = bed.ralph(args);
        assert_eq!(out.code, Some(0), "{args:?}: {out:?}");
        nothing_ran(bed, &format!("ralph {args:?}"));
    }
    assert_eq!((bed.read("work.txt").as_str(), bed.read("a.txt").as_str()), ("1\n", "a.txt\n1\n"));
    assert_eq!(bed.read("sub/a.txt"), "sub/a.txt\n1\n2\n3\n", "a submodule's files are its own");
}

#[test]
fn t8_no_working_tree_runs_what_the_repository_names() {
    let runs = Runs::of(trapped(), "touch ok\n");
    let out = runs.ends(0, &["Go", "--worktree=try", "--verify", "test -f ok"]);
    nothing_ran(&runs.bed, "a run in a working tree");
    let there = runs.bed.path(".ralph/worktrees/try");
    assert_eq!(fs::read_to_string(there.join("a.txt")).unwrap(), "a.txt\n");
    assert!(out.stdout.contains("a filter of this repository's own, which ralph does not run"), "{}", out.stdout);
    for args in [&["diff", "1"][..], &["report"], &["rollback", "0", "--force"]] {
        let out = run(runs.bed.command(RALPH).args(args).current_dir(&there), b"");
        assert_eq!(out.code, Some(0), "{args:?}: {out:?}");
        nothing_ran(&runs.bed, &format!("ralph {args:?} in there"));
    }
    assert!(!there.join("ok").exists(), "it went back");
    // For git it is a working tree like any other.
    fs::write(runs.bed.path(".git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
    let said = run(runs.bed.command("git").args(["worktree", "list"]), b"");
    assert!(said.stdout.contains(".ralph/worktrees/try") && said.stdout.contains("[ralph/try]"), "{said:?}");
    let said = run(runs.bed.command("git").args(["status", "--porcelain"]).current_dir(&there), b"");
    assert!(said.success(), "{said:?}");
    assert!(run(runs.bed.command("git").args(["fsck", "--connectivity-only"]), b"").success());
}

/// Git refuses a repository of another user's; so does ralph, in plain words, and no loop is lost by that.
#[test]
fn t8_a_repository_of_another_user_is_not_asked() {
    let bed = Bed::in_git();
    if chown(bed.path(".git"), Some(12_345), None).is_err() {
        return; // Only root can give files away.
    }
    bed.write(LOOP, loop_text(ME, 1, 20, "DONE").replace("active: true", "active: true\nstall_rounds: 3"));
    assert!(bed.work().send().blocks(), "the loop goes on");
    assert!(bed.work().send().blocks(), "the loop goes on");
    let words = "belongs to another user (12345), so git is not asked about it. If you trust it: git config --global --add safe.directory";
    let doctor = bed.ralph(&["doctor"]);
    assert!(doctor.stdout.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "{}", doctor.stdout);
    assert!(bed.ralph(&["diff"]).stderr.contains("belongs to another user"), "{:?}", bed.ralph(&["diff"]));
    let runs = Runs::of(bed, "touch ok\n");
    let out = runs.ends(0, &["Go", "--name", "other", "--verify", "test -f ok"]);
    assert!(out.stdout.contains("belongs to another user"), "{}", out.stdout);
    let bed = &runs.bed;
    fs::write(bed.home().join(".gitconfig"), format!("[safe]\n\tdirectory = {}\n", bed.dir().display())).unwrap();
    assert!(!bed.ralph(&["doctor"]).stdout.contains("another user"));
}

/// What cannot be read is said at once, and holds nobody up.
#[test]
fn t8_a_configuration_that_cannot_be_read_is_said_at_once() {
    type Spoil = fn(&Path);
    let ways: [(&str, Spoil); 4] = [
        ("not a plain file", |path| {
            fs::remove_file(path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("not a plain file", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("larger than", |path| fs::File::options().write(true).open(path).unwrap().set_len(1 << 30).unwrap()),
        ("line 2 is broken", |path| fs::write(path, "[core]\n= x\n").unwrap()),
    ];
    for (words, spoil) in ways {
        let bed = Gated::in_git(&gate("good", "test -f README.md", ""));
        spoil(&bed.path(".git/config"));
        let doctor = bed.ralph(&["doctor"]);
        assert!(doctor.stdout.contains("git's configuration cannot be read") && doctor.stdout.contains(words), "{}", doctor.stdout);
        assert!(doctor.duration < Duration::from_secs(10), "{:?}", doctor.duration);
        let begun = std::time::Instant::now();
        assert!(bed.works().send().blocks(), "{words}: the loop is still there");
        assert!(!bed.claim().send().blocks(), "{words}: and can end");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    // A pipe that is included is not even opened.
    let bed = Gated::in_git(&gate("good", "test -f README.md", ""));
    assert!(std::process::Command::new("mkfifo").arg(bed.path(".git/pipe")).status().unwrap().success());
    let mut config = fs::OpenOptions::new().append(true).open(bed.path(".git/config")).unwrap();
    config.write_all(b"[include]\n\tpath = pipe\n").unwrap();
    assert!(!bed.ralph(&["doctor"]).stdout.contains("did not answer"));
    assert!(bed.works().send().blocks());
    assert!(!bed.claim().send().blocks());
}

/// A verdict is believed for the very files that it was about, whatever git would think of them.
#[test]
fn t8_a_stale_pass_is_not_believed() {
    let settings: [&[&str]; 4] = [
        &["config", "core.trustctime", "false"],
        &["config", "core.checkStat", "minimal"],
        &["update-index", "--assume-unchanged", "state.txt"],
        &["update-index", "--skip-worktree", "state.txt"],
    ];
    let bed = Gated::in_git(&gate("good", &format!("{COUNT}; grep -q good state.txt"), ""));
    let path = bed.write("state.txt", "good\n");
    let file = || fs::File::options().write(true).open(&path).unwrap();
    let old = std::time::SystemTime::now() - Duration::from_hours(1);
    file().set_modified(old).unwrap();
    bed.commit_all("good");
    for setting in settings {
        bed.git(setting);
    }
    // Long enough for the file to be remembered, and then believed.
    thread::sleep(Duration::from_millis(2_200));
    assert_eq!(bed.ralph(&["gate", "--cached"]).code, Some(0));
    assert_eq!((bed.ralph(&["gate", "--cached"]).code, bed.runs()), (Some(0), 1), "the verdict is remembered");
    let write = |text: &str| {
        let mut file = file();
        file.write_all(text.as_bytes()).unwrap();
        file.set_modified(old).unwrap();
    };
    for n in 0..5 {
        write("evil\n");
        assert_eq!(bed.ralph(&["gate", "--cached"]).code, Some(1), "{n}: it is not good any more");
        write("good\n");
        assert_eq!(bed.ralph(&["gate", "--cached"]).code, Some(0), "{n}: and now it is");
    }
}
