//! Slots: clones that are made ready, numbers that no other fleet of the machine has, gates that take turns, and what a dead worker left.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::bed::{Bed, compact, lives};

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// `setup`, `copy`, `keep`, `env`, and the variables of a slot. Between two jobs what git ignores goes, but for what is kept.
#[test]
fn f3_a_slot_is_made_ready_for_each_job() {
    let toml = "[fleet]\nsetup = \"echo $RALPH_SLOT >> made; cp made made-before\"\ncopy = [\".env\"]\nkeep = [\"kept\"]\nenv = { DB = \"test_{slot}\" }\n";
    let agent = "echo \"$DB $RALPH_SLOT $RALPH_PORT $(cat .env) kept=$(cat kept/n 2>/dev/null) gone=$(cat gone 2>/dev/null) made=$(wc -l < made)\" >> \"$MARKS/seen\"\n\
        [ -d \"$TMPDIR\" ] && touch \"$TMPDIR/x\" || echo no-tmp >> \"$MARKS/seen\"\n\
        mkdir -p kept; echo \"$task\" >> kept/n; echo \"$task\" > gone; echo x > \"$task.txt\"; say x\n";
    let ignored = "made*\nkept/\ngone\n.env\n";
    let list = compact(&[("A", "alpha"), ("B", "beta")]);
    let bed = Bed::new(&[("feature_list.json", &list), ("ralph.toml", toml), (".gitignore", ignored)], agent);
    bed.write(".env", "SECRET=1\n");
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true"]);
    assert_eq!(code, 0, "{said}");
    let expected = ["test_1 1 20100 SECRET=1 kept= gone= made=1", "test_1 1 20100 SECRET=1 kept=alpha gone= made=1"];
    assert_eq!(lines(&bed.marks().join("seen")), expected);
    for path in [".env", "kept", "gone", "made"] {
        assert!(!bed.git(&["ls-tree", "-r", "--name-only", "ralph/feature-list"]).contains(path), "{path} was landed");
    }
    assert!(!bed.repo().join("kept").exists() && !bed.repo().join("made").exists());
}

/// A gate that says what it needs for itself runs alone, on the whole machine, the lander's slot included.
#[test]
fn f3_exclusive_gates_take_turns() {
    take_turns("[[gate]]\nname = \"db\"\ncommand = \"sh alone.sh\"\nexclusive = \"db\"\n");
}

/// So do all gates where one may run at a time.
#[test]
fn f3_no_more_gates_run_at_once_than_may() {
    take_turns("[[gate]]\nname = \"db\"\ncommand = \"sh alone.sh\"\n[fleet]\ngates_at_once = 1\n");
}

/// `--deadline` is for what `--verify` and an item say, in the slot and where it lands.
#[test]
fn f1_a_deadline_is_for_the_commands_of_a_fleet() {
    let list = r#"{"features": [{"id": "A", "description": "alpha", "verify": "test -f alpha.txt", "passes": false}]}"#;
    let agent =
        "cat \"$(dirname \"$0\")\"/home/.local/state/ralph/fleets/*/jobs/a/gates.toml >> \"$MARKS/gates\"; echo x > \"$task.txt\"; say x\n";
    let toml = "[[gate]]\ncommand = \"test -f ralph.toml\"\n";
    let bed = Bed::new(&[("feature_list.json", list), ("ralph.toml", toml)], agent);
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    assert_eq!(bed.ralph(&["trust", "feature_list.json", "--yes"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--verify", "test -f feature_list.json", "--deadline", "1h 30m"]);
    assert_eq!(code, 0, "{said}");
    let lander = bed.root.path().join("home/.local/state/ralph/fleets");
    let lander = fs::read_dir(lander).unwrap().next().unwrap().unwrap().path().join("jobs/lander/gates.toml");
    for gates in [bed.marks().join("gates"), lander] {
        let gates: toml::Table = fs::read_to_string(&gates).unwrap().parse().unwrap();
        let told = gates["gate"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|gate| Some((gate.get("command")?.as_str()?, gate.get("deadline").and_then(toml::Value::as_str))));
        let expected = [("test -f ralph.toml", None), ("test -f feature_list.json", Some("1h 30m")), ("test -f alpha.txt", Some("1h 30m"))];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
    // A short one counts, too.
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > \"$task.txt\"; say x\n");
    let (code, said) = bed.run("feature_list.json", &["--verify", "sleep 30", "--deadline", "1s", "--max-iterations", "1"]);
    assert!(code == 12 && said.contains("sleep 30"), "{said}");
}

/// What the agent has to say is a gate of its slot. Where its work lands no agent says anything.
#[test]
fn f3_markers_are_asked_of_the_agent_and_not_of_the_lander() {
    let toml = "[[gate]]\nmarkers = [\"LINT_FINISH\"]\n[[gate]]\ncommand = \"test -f alpha.txt\"\n";
    let agent = "[ -f \"$MARKS/first\" ] && echo LINT_FINISH; touch \"$MARKS/first\"; echo x > \"$task.txt\"; say x\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")])), ("ralph.toml", toml)], agent);
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--workers", "1"]);
    assert_eq!((code, bed.of_job("a", "iterations").as_str()), (0, "2"), "{said}");
    assert!(!said.contains("left out"), "{said}");
}

fn take_turns(toml: &str) {
    let alone = "mkdir \"$MARKS/db\" || { echo clash >> \"$MARKS/clashes\"; exit 1; }\nsleep 0.4\necho ran >> \"$MARKS/ran\"\nrmdir \"$MARKS/db\"\n";
    let items = [("A", "alpha"), ("B", "beta"), ("C", "gamma"), ("D", "delta")];
    let list = compact(&items);
    let bed = Bed::new(&[("feature_list.json", &list), ("alone.sh", alone), ("ralph.toml", toml)], "echo x > \"$task.txt\"; say x\n");
    assert_eq!(bed.ralph(&["trust", "--yes"]).0, 0);
    let (code, said) = bed.run("feature_list.json", &["--workers", "4"]);
    assert_eq!((code, lines(&bed.marks().join("clashes"))), (0, Vec::<String>::new()), "{said}");
    // Each job in its slot, and again on the merged files.
    assert_eq!(lines(&bed.marks().join("ran")).len(), 2 * items.len(), "{said}");
}

/// Two fleets at work on one machine have no slot number in common, and so no port.
#[test]
fn f3_slots_of_two_fleets_have_their_own_numbers() {
    let agent = "echo \"$RALPH_SLOT $RALPH_PORT\" >> \"$MARKS/slots\"; touch \"$MARKS/here-$task\"\n\
        n=0; while [ ! -e \"$MARKS/here-alpha\" ] || [ ! -e \"$MARKS/here-beta\" ]; do n=$((n+1)); [ $n -gt 1200 ] && exit 1; sleep 0.1; done\n\
        echo x > \"$task.txt\"; say x\n";
    let bed = Bed::new(&[("one.json", &compact(&[("A", "alpha")])), ("two.json", &compact(&[("B", "beta")]))], agent);
    let mut runs =
        [bed.start("one.json", &["--workers", "1", "--verify", "true"]), bed.start("two.json", &["--workers", "1", "--verify", "true"])];
    for run in &mut runs {
        assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    }
    let mut slots = lines(&bed.marks().join("slots"));
    slots.sort();
    assert_eq!(slots, ["1 20100", "2 20200"]);
}

fn pid_of(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn parent_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
}

/// A dead worker is no dead agent: where the `ralph run` between them was killed, too, the next worker ends the agent before another begins.
#[test]
#[cfg(target_os = "linux")]
fn f3_what_a_dead_worker_left_running_is_ended_first() {
    let agent = "old=/proc/$(cat \"$MARKS/pid\" 2>/dev/null || echo none)/status\n\
        if [ -e \"$MARKS/pid\" ]; then [ -e $old ] && ! grep -q 'State:.Z' $old && touch \"$MARKS/two-at-once\"; echo x > a.txt; say x; exit; fi\n\
        echo $$ > \"$MARKS/pid\"; sleep 600\n";
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], agent);
    let mut run = bed.start("feature_list.json", &["--workers", "1", "--verify", "true"]);
    bed.until("the agent", || pid_of(&bed.marks().join("pid")).is_some());
    let agent = pid_of(&bed.marks().join("pid")).unwrap();
    // All processes between the fleet and the agent: a shell may be among them.
    let mut between = Vec::new();
    let mut at = parent_of(agent);
    while at != run.id() && at > 1 {
        between.push(at);
        at = parent_of(at);
    }
    assert!(at == run.id() && !between.is_empty(), "{between:?}");
    // The fleet must not see it, and `ralph run` has no time to end its agent.
    let _ = Command::new("kill").args(["-STOP", &run.id().to_string()]).status();
    for pid in between.into_iter().rev() {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(lives(agent), "the agent outlived them");
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true"]);
    assert_eq!(code, 0, "{said}");
    assert!(!bed.marks().join("two-at-once").exists(), "{said}");
}

/// A line for the shell within a namespace of its own, with a small disk at `at`. `None`: the system does not let us.
fn on_a_small_disk(bed: &Bed, at: &Path, size: &str, line: &str) -> Option<Command> {
    fs::create_dir_all(at).unwrap();
    let mount = format!("mount -t tmpfs -o size={size} none '{}'", at.display());
    let works = Command::new("unshare").args(["-rm", "sh", "-c", &mount]).stderr(Stdio::null()).status();
    let mut command = bed.clean("unshare");
    command.args(["-rm", "sh", "-c", &format!("{mount} && {line}"), "sh"]);
    works.is_ok_and(|status| status.success()).then_some(command)
}

fn spawn(bed: &Bed, command: &mut Command) -> Child {
    let log = fs::File::create(bed.root.path().join("run.log")).unwrap();
    command.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log).spawn().unwrap()
}

/// With little space on the disk of the slots no job is begun, and the screen says why.
#[test]
fn f3_without_space_on_the_disk_no_job_is_begun() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say x\n");
    let args = bed.run_args("feature_list.json", &["--workers", "1", "--verify", "true"]);
    let Some(mut command) = on_a_small_disk(&bed, &bed.root.path().join("home/.cache"), "100m", "exec \"$@\"") else {
        return println!("skipped: no namespaces here");
    };
    command.arg(bed.command(&[]).get_program()).args(args);
    let mut run = spawn(&bed, &mut command);
    bed.until("the word", || bed.fleet(&["status"]).1.contains("no job is begun: 0.1 GB are free"));
    assert_eq!(bed.of_job("a", "state"), "waits");
    Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
    run.wait().unwrap();
    assert_eq!(bed.run("feature_list.json", &["--verify", "true"]).0, 0, "with space it goes on");
    assert!(!bed.fleet(&["status"]).1.contains("no job is begun"));
}

/// A full disk under the records is told, and nothing that was there is lost.
#[test]
fn f2_a_full_disk_is_told_and_nothing_is_lost() {
    let bed = Bed::new(&[("feature_list.json", &compact(&[("A", "alpha")]))], "echo x > a.txt; say x\n");
    let state = bed.root.path().join("home/.local/state");
    // The same namespace for all of it: the disk is gone with it.
    let line = "\"$1\" add First thing && { dd if=/dev/zero of=\"$2/fill\" bs=1k 2>/dev/null; \"$1\" add Second thing; echo \"code $?\"; rm \"$2/fill\"; \"$1\" add Third thing && \"$1\" status; }";
    let Some(mut command) = on_a_small_disk(&bed, &state, "3m", line) else { return println!("skipped: no namespaces here") };
    command.arg(bed.command(&[]).get_program()).arg(&state);
    let output = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("code 1") && (said.contains("the queue is full") || said.contains("No space left")), "{said}");
    assert!(said.contains("First thing") && said.contains("Third thing") && !said.contains("Second thing"), "{said}");
}

/// A disk that is full when an iteration ends: what the agent did is saved once there is space, also what it did not commit.
#[test]
fn f3_a_full_disk_loses_no_work() {
    let agent = "fill=\"$FILL/fill\"\n\
        if [ ! -e half.txt ]; then echo half > half.txt; mkdir \"$fill\"; n=0; while : > \"$fill/$n\"; do n=$((n+1)); done 2>/dev/null; exit; fi\n\
        echo whole >> half.txt; say x\n";
    let bed = Bed::new(&[("a.txt", "a\n")], agent);
    assert_eq!(bed.fleet(&["add", "First", "thing"]).0, 0);
    let fleets = bed.root.path().join("home/.local/state/ralph/fleets");
    let hub = fs::read_dir(fleets).unwrap().next().unwrap().unwrap().path().join("hub.git");
    // Space is there, and names for 400 files.
    let line = "\"$@\" & while [ ! -e \"$MARKS/free\" ]; do sleep 0.1; done; rm -r \"$FILL/fill\"; wait $!";
    let Some(mut command) = on_a_small_disk(&bed, &hub, "2g,nr_inodes=400", line) else { return println!("skipped: no namespaces here") };
    let agent = format!("sh '{}'", bed.root.path().join("agent.sh").display());
    command.env("FILL", &hub).arg(bed.command(&[]).get_program());
    command.args(["run", "--agent-cmd", &agent, "--workers", "1", "--verify", "true"]);
    let mut run = spawn(&bed, &mut command);
    bed.until("the word", || bed.fleet(&["status"]).1.contains("cannot be saved"));
    fs::write(bed.marks().join("free"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    assert_eq!(bed.git(&["show", "ralph/tasks:half.txt"]), "half\nwhole");
}

/// Nothing grows with the number of jobs: not the temporary files of a slot, not what is kept of jobs that are over, not the records' old values.
#[test]
fn f3_what_jobs_leave_behind_is_cleared_away() {
    let agent = "ls -A \"$TMPDIR\" >> \"$MARKS/found\"; touch \"$TMPDIR/$task\"; git stash list >> \"$MARKS/found\"; git branch | grep -v '^\\*' >> \"$MARKS/found\"\n\
        echo x > stashed; git add stashed; git stash -q; git branch mine; echo x > \"$task.txt\"; say x\n";
    let items = [("A", "alpha"), ("B", "beta"), ("C", "gamma")];
    let bed = Bed::new(&[("feature_list.json", &compact(&items))], agent);
    let (code, said) = bed.run("feature_list.json", &["--workers", "1", "--verify", "true"]);
    assert_eq!((code, lines(&bed.marks().join("found"))), (0, Vec::<String>::new()), "{said}");
    let fleets = bed.root.path().join("home/.local/state/ralph/fleets");
    let root = fs::read_dir(fleets).unwrap().next().unwrap().unwrap().path();
    let hub = root.join("hub.git");
    assert_eq!(bed.git(&["--git-dir", hub.to_str().unwrap(), "for-each-ref", "refs/ralph-fleet*"]), "");
    let names = |folder: &str| {
        let mut names: Vec<String> =
            fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!((names("jobs/a"), names("jobs")), (vec!["events.jsonl".to_owned()], ["a", "b", "c", "lander"].map(str::to_owned).to_vec()));
    let keys = root.join("queue/keys/job.a");
    let filled = names("queue/keys/job.a").iter().filter(|n| fs::metadata(keys.join(n)).unwrap().len() > 0).count();
    assert!(names("queue/keys/job.a").len() > 4 && filled == 1, "{filled} values");
}
