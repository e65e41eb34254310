//! `ralph run` as the child of another program, which may die.

use std::{fs, process::Stdio};

use super::{Runs, lives, until};

/// Two processes, one of which leaves its group, that never end by themselves.
const FOREVER: &str =
    "echo \"$$\" > \"$OUT/pid\"; setsid sh -c 'echo $$ > \"$1/stray\"; exec sleep 600' sh \"$OUT\" & echo $N >> work.txt; sleep 600\n";

fn pid(runs: &Runs, name: &str) -> u32 {
    until(name, || runs.noted(name).ends_with('\n'));
    runs.noted(name).trim().parse().unwrap()
}

/// The parent holds the run's standard input and is killed: the agent and all that it started are gone, and the loop waits.
#[test]
fn f3_a_run_ends_with_the_parent_that_was_killed() {
    let runs = Runs::new(FOREVER);
    let run = runs.command(&["Go", "--completion-promise", "DONE", "--json", "--until-eof"]);
    let (pipe, note) = (runs.out("pipe"), runs.out("run.pid"));
    let script = "mkfifo \"$PIPE\"; \"$@\" < \"$PIPE\" & echo $! > \"$NOTE\"; exec 9> \"$PIPE\"; echo not-for-the-agent >&9; wait";
    let mut parent = runs.bed.command("sh");
    parent.args(["-c", script, "sh"]).arg(run.get_program()).args(run.get_args()).env("PIPE", pipe).env("NOTE", note);
    let mut parent = parent.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (agent, stray, child) = (pid(&runs, "pid"), pid(&runs, "stray"), pid(&runs, "run.pid"));
    assert!(lives(agent) && lives(stray) && lives(child));
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Its output has no reader any more, either.
    drop(parent);
    until("the run's end", || !lives(child));
    assert!(!lives(agent) && !lives(stray));
    assert_eq!((runs.bed.iteration(), runs.bed.value("active")), (1, "false".to_owned()));
    assert_eq!(runs.bed.kinds().last().map(String::as_str), Some("left"));
    assert!(!runs.prompt(1).contains("not-for-the-agent"), "{}", runs.prompt(1));
    // It goes on at the same iteration.
    fs::write(runs.out("agent.sh"), "cat > /dev/null; echo x >> work.txt; echo '<promise>DONE</promise>'\n").unwrap();
    runs.ends(0, &["--continue"]);
    assert_eq!(runs.ruled().iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1]);
}

/// The end comes as after SIGTERM also while a gate runs, and where standard input was never open.
#[test]
fn f3_gates_and_the_start_end_with_standard_input() {
    let runs = Runs::new("echo $N >> work.txt\n");
    let gate = format!("echo $$ > '{}'; sleep 600", runs.out("gate").display());
    let mut command = runs.command(&["Go", "--verify", &gate, "--until-eof"]);
    let mut run = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let gate = pid(&runs, "gate");
    drop(run.stdin.take());
    until("the run's end", || run.try_wait().unwrap().is_some());
    assert_eq!((run.wait().unwrap().code(), lives(gate), runs.bed.value("active")), (Some(130), false, "false".to_owned()));
    let sessions = runs.sessions();
    let (code, shown) = runs.start(&["--continue", "--until-eof"]).ends();
    assert_eq!((code, runs.bed.value("active")), (Some(130), "false".to_owned()), "{shown}");
    assert!(runs.sessions() <= sessions + 1);
}

#[test]
fn f3_standard_input_is_the_prompt_or_the_parent() {
    let runs = Runs::new("true\n");
    for args in [["-", "--until-eof"], ["--stdin", "--until-eof"]] {
        let out = runs.ends(2, &args);
        assert!(out.stderr.contains("--until-eof"), "{}", out.stderr);
    }
    let (long, short) = (runs.bed.ralph_ok(&["run", "--help"]), runs.bed.ralph_ok(&["run", "-h"]));
    assert!(long.contains("--until-eof") && !short.contains("--until-eof"));
}

/// The single loop works on the items in the order that the list asks for, and an optional one that is open does not hold the ending.
#[test]
fn f1_a_run_takes_the_items_in_their_order() {
    let runs = Runs::new(
        "id=$(sed -n 's/.*ralph item done \\([A-Z]\\).*/\\1/p' \"$OUT/prompt.$N\" | head -1); echo $id >> \"$OUT/order\"; \"$RALPH\" item done $id >/dev/null\n",
    );
    let list = r#"{"features": [{"id": "A", "dependsOn": ["B"], "passes": false}, {"id": "B", "passes": false},
        {"id": "C", "priority": 1, "passes": false}, {"id": "O", "optional": true, "passes": false}]}"#;
    runs.bed.write("feature_list.json", list);
    runs.bed.commit_all("list");
    let mut command = runs.command(&["Work it off", "--preset", "features", "--max-iterations", "9"]);
    command.env("RALPH", crate::common::RALPH);
    let out = ralph_testkit::process::run_bounded(&mut command, b"", super::PATIENCE);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    assert_eq!(runs.noted("order").split_whitespace().collect::<Vec<_>>(), ["C", "B", "A"]);
    // A circle is an error that names the ids, before anything runs.
    runs.bed.write("feature_list.json", r#"[{"id": "A", "dependsOn": ["B"]}, {"id": "B", "dependsOn": ["A"]}]"#);
    let out = runs.bed.ralph(&["item"]);
    assert!(format!("{}{}", out.stdout, out.stderr).contains("A \u{2192} B \u{2192} A"), "{}{}", out.stdout, out.stderr);
}

/// The gates of a file outside of the project count, also for `--continue`; the branch's `ralph.toml` neither counts nor stops the run, whatever is in it.
#[test]
fn f3_gates_from_outside_stand_in_for_those_of_the_branch() {
    let runs = Runs::new("echo $N >> work.txt; if [ $N = 2 ]; then touch done; fi\n");
    runs.bed.write("ralph.toml", "[[gate]]\nname = \"mine\"\ncommand = \"touch ran\"\n");
    runs.bed.commit_all("gates of the branch");
    let refused = runs.ends(12, &["Go", "-n", "1"]);
    assert!(refused.stderr.contains("may not run yet"), "{}", refused.stderr);
    let file = runs.out("gates.toml");
    fs::write(&file, "[[gate]]\nname = \"theirs\"\ncommand = \"test -f done\"\n").unwrap();
    runs.ends(0, &["Go", "-n", "1", "--gates", file.to_str().unwrap()]);
    assert_eq!(runs.ruled(), [(1, "gate.failed".to_owned())]);
    runs.bed.write("ralph.toml", "not toml at all [");
    runs.ends(0, &["--continue"]);
    assert_eq!(runs.ruled().last().map(|(_, code)| code.as_str()), Some("gates.passed"));
    assert!(!runs.bed.exists("ran"), "nothing of the branch ran");
}

#[test]
fn f3_a_file_that_an_agent_could_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let runs = Runs::new("true\n");
    let gates = "[[gate]]\nname = \"g\"\ncommand = \"true\"\n";
    runs.bed.write("inside.toml", gates);
    let open = runs.out("open.toml");
    fs::write(&open, gates).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
    let link = runs.out("link.toml");
    std::os::unix::fs::symlink(runs.bed.path("inside.toml"), &link).unwrap();
    for file in [runs.bed.path("inside.toml"), open, link, runs.out("missing.toml")] {
        let out = runs.ends(1, &["Go", "-n", "1", "--gates", file.to_str().unwrap()]);
        assert!(runs.sessions() == 0 && !runs.is_live(), "{}", out.stderr);
    }
}

/// A gate that everything is committed fails while anything is not, and says what; ralph's own files and the list do not count.
#[test]
fn f3_a_gate_asks_that_everything_is_committed() {
    let runs = Runs::new(
        "case $N in 1) echo new > new.txt; echo 2 >> kept.txt;; 2) git add -A; git commit -qm work; git update-index --assume-unchanged kept.txt; echo 3 >> kept.txt;; \
         *) git update-index --no-assume-unchanged kept.txt; git commit -qam more;; esac; sed -i s/false/true/ feature_list.json\n",
    );
    runs.bed.write("kept.txt", "1\n");
    runs.bed.write("feature_list.json", r#"[{"id": "A", "passes": false}]"#);
    runs.bed.commit_all("start");
    let file = runs.out("gates.toml");
    fs::write(&file, "[[gate]]\ncommitted = true\n[[gate]]\nfeatures = \"feature_list.json\"\n").unwrap();
    let out = runs.ends(0, &["Go", "--gates", file.to_str().unwrap()]);
    let codes: Vec<String> = runs.ruled().into_iter().map(|(_, code)| code).collect();
    assert_eq!(codes, ["gate.failed", "gate.failed", "gates.passed"], "{}{}", out.stdout, out.stderr);
    let (second, third) = (runs.prompt(2), runs.prompt(3));
    assert!(second.contains("2 files are not committed: kept.txt, new.txt"), "{second}");
    assert!(third.contains("git was told not to look at kept.txt"), "{third}");
}
