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
fn f1_a_run_ends_with_the_parent_that_was_killed() {
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
fn f1_gates_and_the_start_end_with_standard_input() {
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
fn f1_standard_input_is_the_prompt_or_the_parent() {
    let runs = Runs::new("true\n");
    for args in [["-", "--until-eof"], ["--stdin", "--until-eof"]] {
        let out = runs.ends(2, &args);
        assert!(out.stderr.contains("--until-eof"), "{}", out.stderr);
    }
    let (long, short) = (runs.bed.ralph_ok(&["run", "--help"]), runs.bed.ralph_ok(&["run", "-h"]));
    assert!(long.contains("--until-eof") && !short.contains("--until-eof"));
}
