//! Proof, as a person gets it: the real Claude Code client, set up by `ralph init`, with loops that end only when their gates hold.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::real::terminal::*;
use crate::real::*;
use ralph_testkit::{ModelServer, Project, Reply, Version, or_skip};
use serde_json::json;

/// What proves the answer. Whoever runs it leaves a line in [`Counted::runs`].
const CHECK: &str = "grep -qx 42 answer.txt";

/// What a typed command asks for besides the proof.
const TASK: &str = "Make answer.txt say 42 --completion-promise DONE";

/// A project that `ralph init` set up, in which every run of [`CHECK`] is counted, outside of the project.
struct Counted {
    bed: Bed,
}

impl Counted {
    fn new(version: Version) -> Result<Self, ralph_testkit::Skip> {
        let bed = Bed::with_init(version, "--project")?;
        let runs = bed.project.home().join("runs");
        let note = format!("[ \"$1\" = -qx ] && echo \"$*\" >> '{}'", runs.display());
        bed.project.script(bed.project.home().join("bin/grep"), &format!("#!/bin/sh\n{note}\nPATH=/usr/bin:/bin\nexec grep \"$@\"\n"));
        Ok(Self { bed })
    }

    /// The arguments of every run so far.
    fn runs(&self) -> Vec<String> {
        let noted = fs::read_to_string(self.bed.project.home().join("runs")).unwrap_or_default();
        noted.lines().map(str::to_owned).collect()
    }
}

impl std::ops::Deref for Counted {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.bed
    }
}

/// The agent does the work, with a tool of its own.
fn write_answer(project: &Project) -> Reply {
    Reply::tool("Write", json!({"file_path": project.path("answer.txt"), "content": "42\n"})).delay(PACE / 2)
}

/// The processes that run for a gate of this project, and what these have started.
fn gate_processes(project: &Project) -> Vec<String> {
    let of_gate = |pid: &str| {
        let at = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let marked = variables.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"RALPH_GATE="));
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        (at.starts_with(project.dir()) && marked).then(|| String::from_utf8_lossy(&line).replace('\0', " "))
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    processes.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter_map(|pid| of_gate(&pid)).collect()
}

/// Waits until nothing runs for a gate any more; gives how long that took.
fn gates_gone(project: &Project) -> Duration {
    let begun = Instant::now();
    wait_until("the end of the gate's processes", || gate_processes(project).is_empty());
    begun.elapsed()
}

/// issue 4, S3-3: the promise is refused three times by a command that fails, with what the agent needs to know, and accepted when the agent has
/// mended the file with its tools. The command runs once for each state of the tree.
fn s3_3_a_promise_is_refused_until_the_command_passes(version: Version) {
    let bed = or_skip!(Counted::new(version));
    let server = ModelServer::scripted([claim(1), claim(2), claim(3), write_answer(&bed.project), claim(4), round(5)]);
    let output = bed.run(&server, &format!("/ralph-loop {TASK} --verify \"{CHECK}\""));
    assert_eq!(result_text(&output), claimed(4));
    let requests = server.main_requests();
    assert_eq!(requests.len(), 5);
    let log = bed.find("logs").remove(0);
    let log = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).min().unwrap();
    for (n, request) in requests.iter().enumerate() {
        let text = request.all_text();
        let refusals = [
            "<promise>DONE</promise> was claimed but is not proven.".to_owned(),
            format!("Gate \"{CHECK}\" fails: exit code 2"),
            "grep: answer.txt: No such file or directory".to_owned(),
            format!("The whole output: .ralph/logs/{log}"),
        ];
        for refusal in refusals {
            assert_eq!(count(&text, &refusal), n.min(3), "request {n}, {refusal}: {text}");
        }
    }
    assert!(bed.project.read(format!(".ralph/logs/{log}")).starts_with(&format!("$ {CHECK}\ngrep: answer.txt:")));
    assert_eq!(bed.runs(), ["-qx 42 answer.txt"; 2], "once for three refusals on an unchanged tree, once for the changed one");
    let journal = bed.journal();
    assert_eq!(journal.codes(), ["promise.unproven", "promise.unproven", "promise.unproven", "promise.accepted"]);
    assert_eq!((journal.iterations(), journal.of_kind("checking").len()), (vec![1, 2, 3, 4], 2));
    bed.assert_archived(4);
    assert!(bed.archive()[0].contains(&format!("verify:\n  - \"{CHECK}\"\n")), "{}", bed.archive()[0]);
    bed.assert_replays(4);
    for n in 1..=4 {
        let said = bed.ralph_ok(&["explain", &n.to_string()]);
        let verdict = if n == 4 { "pass" } else { "fail" };
        assert!(said.contains(&format!("{CHECK}: {verdict}")), "explain {n}: {said}");
    }
}
newest!(s3_3_a_promise_is_refused_until_the_command_passes);

/// issue 4: the same in a terminal, with a command that takes a while: the person sees that it runs, why the promise was refused, and the end.
fn issue_4_the_person_sees_the_gate_at_work(version: Version) {
    let bed = or_skip!(Counted::new(version));
    let server = ModelServer::scripted([claim(1), write_answer(&bed.project), claim(2), round(3)]);
    let tui = open(&bed, &server);
    // The command waits at a pipe, for as long as the screen takes.
    let go = bed.project.home().join("go");
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    enter(&tui, "/ralph-loop", &format!("{TASK} --verify \"cat $HOME/go; {CHECK}\""));
    wait_until("the command and its child", || gate_processes(&bed.project).len() == 2);
    sees(&tui, "ralph judges the stop");
    assert_eq!(gate_processes(&bed.project).len(), 2, "the spinner says so while it runs");
    let lets_go = fs::File::options().write(true).open(&go).unwrap();
    fs::remove_file(&go).unwrap();
    fs::write(&go, "").unwrap();
    drop(lets_go);
    sees(&tui, "Claimed but not proven: cat $HOME/go; grep -qx 42 answer.txt: exit code 2 after");
    sees(&tui, "Ralph: complete after 2 iterations");
    assert_eq!(server.main_requests().len(), 3);
    assert_eq!(bed.journal().codes(), ["promise.unproven", "promise.accepted"]);
    assert_eq!(bed.runs().len(), 2);
    bed.assert_archived(2);
    gates_gone(&bed.project);
}
newest!(issue_4_the_person_sees_the_gate_at_work);

/// A command that takes five minutes, with two children, unless `$HOME/go` is there; `first` is what it begins with.
fn long_check(first: &str) -> String {
    format!("{first} test -e $HOME/go || {{ sleep 300 & sleep 301; }}; {CHECK}")
}

/// Esc while a command runs: nothing of it is left, the loop is as it was, and the next message pauses it. Resumed, the command runs again, though no
/// file has changed: that it was ended says nothing about the work.
fn interrupted(version: Version, first: &str) {
    let bed = or_skip!(Counted::new(version));
    bed.project.write("answer.txt", "42\n");
    let server = ModelServer::scripted([claim(1), say("Here is your answer."), claim(2), round(3)]);
    let tui = open(&bed, &server);
    enter(&tui, "/ralph-loop", &format!("{TASK} --verify '{}'", long_check(first)));
    sees(&tui, "ralph judges the stop");
    wait_until("the command and its children", || gate_processes(&bed.project).len() == 3);
    tui.escape();
    let took = gates_gone(&bed.project);
    assert!(took < Duration::from_secs(3), "{took:?}");
    // The client waits for a hook that ends slowly before it says so.
    sees(&tui, "Interrupted");
    assert_eq!((bed.value("active"), bed.value("iteration")), ("true".to_owned(), "1".to_owned()));
    assert_eq!((server.main_requests().len(), bed.journal().codes()), (1, vec![]));
    tui.submit("what is this about?");
    sees(&tui, "Here is your answer.");
    sees(&tui, "Ralph: you interrupted the agent, so the loop is paused at iteration 1");
    bed.project.write(bed.project.home().join("go"), "");
    tui.submit("/ralph-resume");
    sees(&tui, "Ralph: complete after 1 iteration");
    assert_eq!(server.main_requests().len(), 3);
    assert_eq!(bed.journal().codes(), ["loop.paused", "promise.accepted"]);
    assert_eq!(bed.runs().len(), 1);
    bed.assert_archived(1);
}

/// issue 4: a command that ends when it is asked to.
fn issue_4_an_interrupt_ends_the_command_and_keeps_the_loop(version: Version) {
    interrupted(version, "");
}
newest!(issue_4_an_interrupt_ends_the_command_and_keeps_the_loop);

/// issue 4: one that does not. The client ends the hook a second later, and 2.1.197 only the hook.
fn issue_4_an_interrupt_ends_a_stubborn_command(version: Version) {
    interrupted(version, "trap \"\" TERM;");
}
newest!(issue_4_an_interrupt_ends_a_stubborn_command);

/// issue 4: a client that is gone without a word leaves nothing running, and nothing is decided for it.
fn issue_4_nothing_runs_on_after_the_client(version: Version) {
    let bed = or_skip!(Counted::new(version));
    let server = ModelServer::scripted([claim(1), round(2)]);
    let tui = open(&bed, &server);
    enter(&tui, "/ralph-loop", &format!("{TASK} --verify '{}'", long_check("")));
    wait_until("the command and its children", || gate_processes(&bed.project).len() == 3);
    assert!(bed.project.run("kill").args(["-9", &tui.pty.pid().to_string()]).output().success());
    let took = gates_gone(&bed.project);
    assert!(took < Duration::from_secs(1), "{took:?}");
    wait_until("the end of the hook", || bed.logged(&["event=Stop"]) == 1);
    assert_eq!((bed.value("active"), bed.value("iteration")), ("true".to_owned(), "1".to_owned()));
    assert_eq!(bed.journal().codes(), Vec::<&str>::new());
}
newest!(issue_4_nothing_runs_on_after_the_client);

/// issue 4, design 6: a gate of the repository that nobody trusted runs nothing. The loop pauses, the person is told what to type, and neither the
/// promise nor the agent's own shell gets around it. Trusted and resumed, the loop ends with its proof.
fn issue_4_an_untrusted_gate_pauses_the_loop(version: Version) {
    let bed = or_skip!(Counted::new(version));
    bed.project.write("ralph.toml", format!("[[gate]]\nname = \"answer\"\ncommand = \"{CHECK}\"\n"));
    bed.ralph_ok(&["start", "Make answer.txt say 42", "--completion-promise", "DONE"]);
    let server = ModelServer::scripted([Reply::bash("ralph trust --yes"), claim(1), round(2)]);
    let output = bed.run(&server, "begin");
    assert_eq!(result_text(&output), claimed(1));
    let requests = server.main_requests();
    assert_eq!(requests.len(), 2, "the stop is allowed");
    let told = requests[1].last_user_text();
    assert!(told.contains("only a person can trust commands"), "{told}");
    assert_eq!(bed.runs(), Vec::<String>::new());
    assert_eq!((bed.value("active"), bed.value("iteration")), ("false".to_owned(), "1".to_owned()));
    assert_eq!(bed.journal().codes(), ["gate.untrusted"]);
    let line = "Ralph: paused at iteration 1: answer: its command was not run, because ralph.toml is not trusted";
    let how = "`ralph trust` shows what it would run and asks. Then /ralph-resume arms it again.";
    let answer = answers(&output, "Stop").concat();
    assert!(answer.contains(line) && answer.contains(how), "{answer}");
    let shown = informed(&output).iter().filter(|text| text.contains(line) && text.contains(how)).count();
    assert_eq!(shown, usize::from(bed.is_newest()));
    let said = bed.ralph_ok(&["explain"]);
    assert!(said.contains("answer") && said.contains("ralph trust"), "{said}");

    let said = bed.ralph_ok(&["trust", "--yes"]);
    assert!(said.contains(CHECK), "what is trusted is shown: {said}");
    bed.ralph_ok(&["resume"]);
    let server = ModelServer::scripted([claim(2), write_answer(&bed.project), claim(3), round(4)]);
    let output = bed.print(&server, "go on").args(["--resume", &session_of(&output)]).output();
    assert_eq!((output.code, result_text(&output)), (Some(0), claimed(3).as_str()));
    let requests = server.main_requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].all_text().contains("Gate \"answer\" fails"), "{}", requests[1].all_text());
    assert_eq!(bed.journal().codes(), ["gate.untrusted", "promise.unproven", "promise.accepted"]);
    assert_eq!(bed.runs().len(), 2);
    bed.assert_archived(2);
}
both!(issue_4_an_untrusted_gate_pauses_the_loop);

/// issue 4, design 4: a cancel from another terminal while the stop hook runs a long command: the command is gone at once, the turn ends.
fn issue_4_a_cancel_ends_the_running_command(version: Version) {
    let bed = or_skip!(Counted::new(version));
    let server = ModelServer::scripted([claim(1), round(2)]);
    let (output, took) = thread::scope(|scope| {
        let client = scope.spawn(|| bed.run(&server, &format!("/ralph-loop {TASK} --verify '{}'", long_check(""))));
        wait_until("the command and its children", || gate_processes(&bed.project).len() == 3);
        let said = bed.ralph_ok(&["cancel"]);
        assert!(said.contains("Ralph loop cancelled at iteration 1"), "{said}");
        let (took, begun) = (gates_gone(&bed.project), Instant::now());
        let output = client.join().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5), "the turn ends: {:?}", begun.elapsed());
        (output, took)
    });
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(result_text(&output), claimed(1));
    assert_eq!(server.main_requests().len(), 1);
    let journal = bed.journal();
    assert_eq!((journal.codes(), journal.of_kind("cancelled").len()), (vec![], 1));
    bed.assert_archived(1);
}
newest!(issue_4_a_cancel_ends_the_running_command);

/// The feature folder, and a list of three features in it; the second has a command of its own.
const FEATURES: &str = ".claude/data/ralph-loops/current";
const LIST: &str = r#"{
  "features": [
    { "id": 1, "description": "Say hello", "steps": ["open the door", "wave"], "passes": false },
    { "id": 2, "description": "Count to two", "steps": ["one", "two"], "verify": "test -f two.txt", "passes": false },
    { "id": 3, "description": "Say goodbye", "passes": false }
  ]
}
"#;

/// S4-1, S4-2, S4-3: a list of features is a loop by itself. The agent gets one feature after the other, marks each through the program, because it may
/// not write the list, and is believed only when the feature's own command passes.
fn s4_1_s4_2_s4_3_a_feature_list_is_worked_off(version: Version) {
    let bed = or_skip!(Counted::new(version));
    let in_folder = |name: &str| bed.project.read(format!("{FEATURES}/{name}"));
    bed.project.write(format!("{FEATURES}/feature_list.json"), LIST);
    bed.ralph_ok(&["trust", "--yes"]);
    let two = json!({"file_path": bed.project.path("two.txt"), "content": "1 2\n"});
    let server = ModelServer::scripted([
        say("What is there to do?"),
        Reply::bash(format!("sed -i s/false/true/ {FEATURES}/feature_list.json")),
        Reply::bash("ralph item done 1"),
        round(2),
        Reply::bash("ralph item done 2"),
        Reply::tool("Write", two),
        Reply::bash("ralph item done 2"),
        round(3),
        Reply::bash("ralph item done 3"),
        round(4),
        round(5),
    ]);
    let run = bed.client.print(&bed.project, &server, "begin").env("PATH", &bed.path).stream_json().timeout(Duration::from_mins(1));
    let output = run.args(["--allowedTools", "Bash(ralph:*)", "Bash(sed:*)", "Write"]).output();
    assert_eq!((output.code, result_text(&output)), (Some(0), "This is iteration 4."), "{output:?}");
    let requests = server.main_requests();
    assert_eq!(requests.len(), 10);
    let told = |n: usize, words: &[&str]| {
        let text = requests[n].all_text();
        for words in words {
            assert!(text.contains(words), "request {n}, {words}: {text}");
        }
    };
    told(1, &["3 of 3 features are open", "Next: 1: Say hello\nSteps:\n- open the door\n- wave\n", "mark it with `ralph item done 1`"]);
    assert!(!requests[1].all_text().contains("Count to two"), "one at a time");
    let denied = requests[2].last_user_text();
    assert!(denied.contains("sensitive file"), "the client keeps the agent from writing the list: {denied}");
    told(4, &["2 of 3 features are open", "Next: 2: Count to two\nSteps:\n- one\n- two\n", "It must pass: `test -f two.txt`"]);
    let refused = requests[5].last_user_text();
    assert!(refused.contains("exit code 1"), "not believed: {refused}");
    told(8, &["1 of 3 features is open", "Next: 3: Say goodbye"]);
    let line = answers(&output, "Stop").last().copied().unwrap_or_default().to_owned();
    assert!(line.contains("Ralph: complete after 4 iterations") && line.contains("3 features verified"), "{line}");
    assert_eq!(informed(&output).iter().filter(|line| line.contains("3 features verified")).count(), usize::from(bed.is_newest()));
    assert_eq!(in_folder("feature_list.json"), LIST.replace("false", "true"));
    assert_eq!(in_folder("progress.txt"), "Iteration: 4\nMax Iterations: 15\nStatus: COMPLETE\n");
    let log = in_folder("hook.log");
    let wanted = [
        "adopted",
        "block gate.failed: iteration 1 of 15",
        "iteration 2 of 15",
        "iteration 3 of 15",
        "allow gates.passed: iteration 4 of 15",
    ];
    assert_eq!(log.lines().count(), wanted.len(), "{log}");
    for (line, wanted) in log.lines().zip(wanted) {
        assert!(line.starts_with("[20") && line.contains(wanted) && line.contains(&session_of(&output)), "{line}");
    }
    assert_eq!(bed.journal().codes(), ["gate.failed", "gate.failed", "gate.failed", "gates.passed"]);
    assert_eq!(bed.loop_file(), None);
    bed.assert_replays(4);
}
both!(s4_1_s4_2_s4_3_a_feature_list_is_worked_off);
