//! S3: a check agent stops, and its work is verified.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::common::{Answer, Bed, CLIENT, Event, LOOP, ME, OTHER, unique};

const YAML: &str = ".ideal/worktree.yaml";
const STATE: &str = ".ideal/.verify-state.json";

/// A project whose settings ask for this, trusted by its person.
fn bed_with(file: &str, text: &str) -> Bed {
    let bed = Bed::new();
    bed.write(file, text);
    trust(&bed);
    bed
}

fn trust(bed: &Bed) {
    bed.ralph_ok(&["trust", "--yes"]);
}

/// A project that verifies with these commands.
fn bed(commands: &[&str]) -> Bed {
    bed_with(YAML, &yaml(commands))
}

fn yaml(commands: &[&str]) -> String {
    format!("verify: {}\n", json!(commands))
}

/// The stop of a subagent, with the fields that the client sends.
fn stops<'b>(bed: &'b Bed, agent: &str, id: &str) -> Event<'b> {
    says(bed, agent, id, &format!("I looked at it ({}).", unique()))
}

fn says<'b>(bed: &'b Bed, agent: &str, id: &str, message: &str) -> Event<'b> {
    bed.event("SubagentStop")
        .field("prompt_id", "prompt-1")
        .field("permission_mode", "bypassPermissions")
        .field("stop_hook_active", false)
        .field("agent_id", id)
        .field("agent_type", agent)
        .field("agent_transcript_path", bed.home().join("agent.jsonl").to_str().unwrap())
        .field("last_assistant_message", message)
        .field("background_tasks", json!([]))
}

fn check<'b>(bed: &'b Bed, id: &str) -> Event<'b> {
    stops(bed, "check", id)
}

/// Sent back; returns what the agent is told, and the person.
#[track_caller]
fn blocked(answer: &Answer) -> (String, String) {
    let json = answer.json.clone().expect("an answer");
    let (text, line) = (json["reason"].as_str().expect("a reason").to_owned(), json["systemMessage"].as_str().expect("a line").to_owned());
    assert_eq!(json, json!({"decision": "block", "reason": text, "systemMessage": line}));
    (text, line)
}

fn state(bed: &Bed) -> Value {
    serde_json::from_str(&bed.read(STATE)).unwrap()
}

fn codes(bed: &Bed) -> Vec<String> {
    let word = |line: &String, key: &str| line.split(' ').find_map(|w| w.strip_prefix(key).map(str::to_owned)).unwrap();
    bed.hook_log().iter().map(|line| format!("{} {}", word(line, "decision="), word(line, "code="))).collect()
}

fn minutes_ago(minutes: u64) -> String {
    let out = Command::new("date").args(["-u", "-d", &format!("{minutes} minutes ago"), "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

#[test]
fn s3_1_only_agents_of_the_configured_types_are_verified() {
    let bed = bed(&["touch ran; false"]);
    for agent in ["general-purpose", "Explore", "checker", "precheck", "check:explore", "Check", "plugin:check:other"] {
        stops(&bed, agent, "a1").send().is_silent();
    }
    assert!(!bed.path("ran").exists());
    for agent in ["check", "quality:check", " check "] {
        fs::remove_file(bed.path("ran")).ok();
        blocked(&stops(&bed, agent, &format!("a{}", unique())).send());
        assert!(bed.path("ran").exists(), "{agent}");
    }
    // Other types, by ralph.toml; a scoped name means that one only.
    bed.write("ralph.toml", "[verify]\nagents = [\"review\", \"p:audit\"]\n");
    for (agent, is_verified) in
        [("check", false), ("review", true), ("x:review", true), ("p:audit", true), ("audit", false), ("q:audit", false)]
    {
        let answer = stops(&bed, agent, &format!("a{}", unique())).send();
        assert_eq!(answer.json.is_some(), is_verified, "{agent}");
    }
}

/// The client reports its own compaction as a subagent without a type: a block would break it.
#[test]
fn s3_1_an_agent_without_a_type_is_never_touched() {
    let bed = bed(&["touch ran; false"]);
    bed.write("ralph.toml", "[verify]\nagents = [\"\", \"check\"]\n");
    for event in
        [stops(&bed, "", "a1"), stops(&bed, "  ", "a1"), check(&bed, "a1").without("agent_type"), check(&bed, "a1").field("agent_type", 7)]
    {
        event.send().is_silent();
    }
    assert!(!bed.path("ran").exists() && !bed.path(STATE).exists());
}

#[test]
fn s3_2_commands_are_read_from_the_first_settings_that_have_any() {
    let leaves = |mark: &str| format!("verify: [\"touch {mark}\"]\n");
    let toml = "[verify]\ncommands = [\"touch toml\"]\n";
    for (ideal, trellis, expected) in [
        (Some(leaves("ideal")), Some(leaves("trellis")), "ideal"),
        (Some("copy: [.env]\n".to_owned()), Some(leaves("trellis")), "trellis"),
        (None, Some("verify: []\n".to_owned()), "toml"),
        (None, None, "toml"),
    ] {
        let bed = Bed::new();
        ideal.map(|text| bed.write(YAML, text));
        trellis.map(|text| bed.write(".trellis/worktree.yaml", text));
        bed.write("ralph.toml", toml);
        trust(&bed);
        check(&bed, "a1").send().is_silent();
        let ran: Vec<&str> = ["ideal", "trellis", "toml"].into_iter().filter(|mark| bed.path(mark).is_file()).collect();
        assert_eq!(ran, [expected]);
    }
}

#[test]
fn s3_2_real_yaml() {
    for yaml in [
        "verify:\n  - touch one # it\n  - \"touch 'two'\"\n",
        "# c\n---\nworktree_dir: ../w\nverify: [touch one, 'touch two']\n...\n",
        "x: &one touch one\nall: &all\n  - *one\n  - touch two\nverify: *all\n",
        "\u{feff}verify:\r\n  - touch one\r\n  - >-\r\n    touch\r\n    two\r\n",
        "verify: |\n  touch one\n  touch two\n",
        "verify:\n  - {run: touch one, timeout: 5}\n  - command: [touch, two]\n    deadline: 1m\n",
    ] {
        let bed = bed_with(YAML, yaml);
        check(&bed, "a1").send().is_silent();
        assert!(bed.path("one").is_file() && bed.path("two").is_file(), "{yaml}");
    }
}

#[test]
fn s3_2_what_is_missing_asks_for_nothing() {
    for yaml in [None, Some(""), Some("copy: [.env]\n"), Some("verify:\n"), Some("verify: []\n"), Some("# verify: [false]\n")] {
        let bed = Bed::new();
        yaml.map(|text| bed.write(YAML, text));
        let before = bed.tree();
        check(&bed, "a1").send().is_silent();
        assert_eq!(bed.tree(), before, "{yaml:?}: and nothing is left behind");
    }
}

#[test]
fn s3_2_what_is_broken_is_a_warning_and_no_commands() {
    for (yaml, line) in [
        (&b"verify:\n\t- touch ran\n"[..], "line 2"),
        (b"verify: [touch ran\n", "line 1"),
        (b"a: 1\nverify:\n  - [touch, ran]\n", "line 3"),
        (b"verify: {touch ran: 1}\n", "line 1"),
        (b"\x00\xff\xfe garbage {{{", "line 1"),
        (b"verify: *a\n", "line 1"),
    ] {
        let bed = Bed::new();
        bed.write(YAML, yaml);
        let told = check(&bed, "a1").send().line();
        assert!(
            told.starts_with("Ralph: the work of the agent check is unverified: .ideal/worktree.yaml cannot be read: ")
                && told.contains(line),
            "{told}"
        );
        assert!(!bed.path("ran").exists());
    }
    let bed = Bed::new();
    bed.write(YAML, vec![b'#'; 2 << 20]);
    assert!(check(&bed, "a1").send().line().contains("cannot be read"));
    // A pipe in its place keeps nobody waiting.
    let bed = Bed::new();
    fs::create_dir(bed.path(".ideal")).unwrap();
    assert!(Command::new("mkfifo").arg(bed.path(YAML)).status().unwrap().success());
    let begun = Instant::now();
    assert!(check(&bed, "a1").send().line().contains("cannot be read"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    // So is a broken ralph.toml, and the other settings still count.
    let bed = self::bed(&["false"]);
    bed.write("ralph.toml", "[verify\n");
    let (_, told) = blocked(&check(&bed, "a1").send());
    assert!(told.contains("ralph.toml cannot be read: line 1"), "{told}");
}

#[test]
fn s3_3_commands_run_in_order_in_the_shell_until_one_fails() {
    let bed = bed(&["echo 1 >> order", "echo 2 >> order && pwd > where", "echo 3 >> order; exit 7", "echo 4 >> order"]);
    let (text, _) = blocked(&check(&bed, "a1").cwd(bed.home()).send());
    assert_eq!(bed.read("order"), "1\n2\n3\n");
    assert_eq!(PathBuf::from(bed.read("where").trim()), bed.dir());
    assert!(text.contains("Gate \"echo 3 >> order; exit 7\" fails") && text.contains('7'), "{text}");
    assert!(!text.contains("echo 4"), "{text}");
}

#[test]
fn s3_3_a_command_that_takes_too_long_is_unknown_and_leaves_nothing_running() {
    let bed = bed_with(YAML, "verify:\n  - run: sleep 98765 & sleep 98765\n    timeout: 1\n");
    let begun = Instant::now();
    let (text, line) = blocked(&check(&bed, "a1").send());
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert!(text.contains("could not be measured") && line.contains("unknown"), "{text}\n{line}");
    let ps = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&ps.stdout).contains("sleep 98765"));
}

#[test]
fn s3_3_output_is_kept_in_full_and_its_useful_part_goes_to_the_agent() {
    let noisy =
        "for i in $(seq 1 400); do echo line $i of the output; done; echo 'error: the cause' >&2; printf '\\033[31mred\\033[0m\\n'; exit 1";
    let bed = bed(&[noisy]);
    let (text, _) = blocked(&check(&bed, "a1").send());
    assert!(text.contains("error: the cause") && text.contains("line 400 of"), "{text}");
    assert!(text.chars().count() < 2_000 && !text.contains('\u{1b}'), "{text}");
    let log = text.lines().find_map(|l| l.strip_prefix("The whole output: ")).unwrap_or_else(|| panic!("{text}"));
    let whole = bed.read(log);
    assert!((1..=400).all(|n| whole.contains(&format!("line {n} of the output\n"))) && whole.contains("error: the cause"), "{log}");
}

#[test]
fn s3_4_the_state_lies_beside_the_settings_that_asked() {
    let bed = bed(&["false"]);
    bed.write(".ideal/.current-task", "003-verify\u{1b}[31m\nmore\n");
    for iteration in 1..=2 {
        blocked(&check(&bed, "a1").send());
        let state = state(&bed);
        assert_eq!((&state["task"], &state["iteration"]), (&json!("003-verify[31m"), &json!(iteration)), "{state}");
        assert!(state["started_at"].as_str().is_some_and(|at| at.starts_with("20") && at.ends_with('Z')), "{state}");
        assert_eq!(state["agents"]["a1"]["iteration"], iteration);
    }
    assert!(!bed.path(".ralph/verify-state.json").exists());
    let bed = bed_with(".trellis/worktree.yaml", "verify: [\"false\"]\n");
    blocked(&check(&bed, "a1").send());
    assert!(bed.path(".trellis/.verify-state.json").is_file());
    let bed = bed_with("ralph.toml", "[verify]\ncommands = [\"false\"]\n");
    blocked(&check(&bed, "a1").send());
    assert!(bed.path(".ralph/verify-state.json").is_file());
}

#[test]
fn s3_4_a_state_that_cannot_be_read_begins_anew_and_is_logged() {
    for text in ["", "garbage", "[1]", "{\"agents\": 3}"] {
        let bed = bed(&["false"]);
        bed.write(STATE, text);
        let (text, _) = blocked(&check(&bed, "a1").send());
        assert!(text.contains("iteration 1 of 5"), "{text}");
        let log = bed.hook_log();
        assert!(log.iter().any(|line| line.contains("error=") && line.contains(".verify-state.json starts counting again")), "{log:?}");
        assert!(blocked(&check(&bed, "a1").send()).0.contains("iteration 2 of 5"));
    }
    // The old format has no agents, and its count is somebody else's.
    let bed = bed(&["false"]);
    bed.write(STATE, json!({"task": "t", "iteration": 4, "started_at": minutes_ago(600)}).to_string());
    assert!(blocked(&check(&bed, "a1").send()).0.contains("iteration 1 of 5"));
}

/// What cannot be counted is not sent back: nobody would know when to stop.
#[test]
fn s3_4_a_state_that_cannot_be_written_lets_the_agent_go_unverified() {
    let bed = bed(&["false"]);
    fs::create_dir_all(bed.path(STATE)).unwrap();
    let line = check(&bed, "a1").send().line();
    assert!(
        line.starts_with("Ralph: the work of the agent check is unverified: false failed") && line.contains("cannot be counted"),
        "{line}"
    );
    bed.write(YAML, yaml(&["true"]));
    trust(&bed);
    check(&bed, "a1").send().is_silent();
}

/// The line for the person waits for the client's next stop. A call from the agent's own shell, which no person sees, does not take it away.
#[test]
fn t2_s3_4_an_agents_own_call_takes_no_line_of_the_persons() {
    let bed = bed(&["false"]);
    fs::create_dir_all(bed.path(STATE)).unwrap();
    check(&bed, "a1").send();
    bed.stop("One.").env("AI_AGENT", "claude-code_2-1-325_agent").send().is_silent();
    let line = bed.stop("Two.").send().line();
    assert!(line.contains("the work of the agent check is unverified"), "{line}");
    bed.stop("Three.").send().is_silent();
}

/// Two check agents at once, as two processes at the same time.
#[test]
fn s3_4_two_agents_at_once_keep_separate_counts() {
    let bed = bed(&["sleep 0.2; false"]);
    let start = |event: &Event<'_>| {
        let mut child = event.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), event.json().as_bytes()).unwrap();
        child
    };
    for round in 1..=3 {
        let children = ["a1", "a2"].map(|id| start(&check(&bed, id)));
        for child in children {
            let out = child.wait_with_output().unwrap();
            let (text, _) = blocked(&Answer::of_stdout(&String::from_utf8(out.stdout).unwrap()));
            assert!(text.contains(&format!("iteration {round} of 5")), "{text}");
        }
        let agents = &state(&bed)["agents"];
        assert_eq!((&agents["a1"]["iteration"], &agents["a2"]["iteration"]), (&json!(round), &json!(round)));
    }
    // While commands run, the lock is free.
    let bed = self::bed(&["touch begun; sleep 4; false"]);
    let slow = start(&check(&bed, "a3"));
    let begun = Instant::now();
    while !bed.path("begun").exists() && begun.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let begun = Instant::now();
    assert_eq!(bed.ralph(&["start", "Go", "--endless"]).code, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(2));
    blocked(&Answer::of_stdout(&String::from_utf8(slow.wait_with_output().unwrap().stdout).unwrap()));
}

/// The hook is registered twice: the second process on the same stop neither counts nor answers.
#[test]
fn s3_4_one_stop_that_is_reported_twice_counts_once() {
    let bed = bed(&["echo >> ran; sleep 0.3; false"]);
    let event = says(&bed, "check", "a1", "The same words.");
    let mut children = Vec::new();
    for n in 0..2 {
        let mut child = event.clone().by_plugin(n).command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), event.json().as_bytes()).unwrap();
        children.push(child);
    }
    let answers: Vec<String> = children.into_iter().map(|c| String::from_utf8(c.wait_with_output().unwrap().stdout).unwrap()).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_empty()).count(), 1, "{answers:?}");
    assert_eq!((bed.read("ran").as_str(), &state(&bed)["iteration"]), ("\n", &json!(1)));
}

#[test]
fn s3_5_a_failure_sends_the_agent_back_until_it_is_mended() {
    let bed = bed(&["test -f fixed || { echo 'fixed is missing'; exit 3; }"]);
    let (text, line) = blocked(&check(&bed, "a1").send());
    assert!(text.starts_with("[ralph] Your work is not verified (iteration 1 of 5). Gate \"test -f fixed"), "{text}");
    for part in ["fixed is missing", "3", "Keep your full report", ".ralph/logs/"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(line.starts_with("Ralph: the agent check is sent back (iteration 1 of 5): "), "{line}");
    blocked(&check(&bed, "a1").send());
    bed.write("fixed", "");
    check(&bed, "a1").send().is_silent();
    assert_eq!(state(&bed)["agents"]["a1"]["let_go"], true);
    assert_eq!(codes(&bed), ["block verify.failed", "block verify.failed", "allow verify.passed"]);
    // Called once more, it begins anew.
    fs::remove_file(bed.path("fixed")).unwrap();
    assert!(blocked(&check(&bed, "a1").send()).0.contains("iteration 1 of 5"));
}

/// A client that knows it gets the context form, under the name of this event.
#[test]
fn s3_5_the_context_form_is_of_this_event() {
    let bed = bed(&["false"]);
    let json = check(&bed, "a1").client(CLIENT).send().json.unwrap();
    assert_eq!(json["hookSpecificOutput"]["hookEventName"], "SubagentStop", "{json}");
    assert!(json["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("iteration 1 of 5"), "{json}");
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["hookSpecificOutput", "systemMessage"]);
    assert_eq!(codes(&bed), ["block verify.failed"]);
}

#[test]
fn s3_5_the_fifth_round_is_still_verified() {
    let bed = bed(&["echo >> ran; test -f fixed"]);
    for id in ["a1", "a2"] {
        for _ in 0..4 {
            blocked(&check(&bed, id).send());
        }
    }
    let line = check(&bed, "a1").send().line();
    assert!(line.starts_with("Ralph: the work of the agent check is unverified: echo >> ran; test -f fixed failed"), "{line}");
    assert!(line.ends_with("It was let go after 5 of 5 iterations."), "{line}");
    assert_eq!(bed.read("ran").lines().count(), 9);
    bed.write("fixed", "");
    check(&bed, "a2").send().is_silent();
    assert_eq!(bed.read("ran").lines().count(), 10, "it was verified");
    assert_eq!(codes(&bed)[8..], ["allow verify.unverified", "allow verify.passed"]);
}

#[test]
fn s3_5_after_thirty_minutes_it_is_verified_once_more() {
    let old = |bed: &Bed, minutes: u64| {
        let entry = json!({"task": null, "iteration": 1, "started_at": minutes_ago(minutes)});
        let text = json!({"task": null, "iteration": 1, "started_at": "x", "agents": {"a1": entry}}).to_string();
        bed.write(STATE, &text);
        // Ralph's own copy is what counts.
        fs::write(bed.place_of_kept("verify/ideal.json"), text).unwrap();
    };
    let bed = bed(&["test -f fixed"]);
    blocked(&check(&bed, "a0").send());
    old(&bed, 29);
    assert!(blocked(&check(&bed, "a1").send()).0.contains("iteration 2 of 5"));
    old(&bed, 31);
    let line = check(&bed, "a1").send().line();
    assert!(line.contains("is unverified: test -f fixed failed") && line.contains("let go after 31 min"), "{line}");
    old(&bed, 31);
    bed.write("fixed", "");
    check(&bed, "a1").send().is_silent();
}

#[test]
fn s3_5_rounds_and_minutes_can_be_set() {
    let bed = bed_with("ralph.toml", "[verify]\ncommands = [\"false\"]\nrounds = 2\n");
    assert!(blocked(&check(&bed, "a1").send()).0.contains("iteration 1 of 2"));
    assert!(check(&bed, "a1").send().line().contains("unverified"));
    let bed = bed_with("ralph.toml", "[verify]\ncommands = [\"false\"]\nrounds = 1\n");
    assert!(check(&bed, "a1").send().line().contains("unverified"));
}

/// To send an agent back for what only a person can do would trap it.
#[test]
fn s3_5_what_nobody_trusts_is_not_run_and_the_agent_goes_unverified() {
    let bed = Bed::new();
    bed.write(YAML, yaml(&["touch ran"]));
    let line = check(&bed, "a1").send().line();
    assert!(
        line.starts_with(
            "Ralph: the work of the agent check is unverified: its command was not run, because .ideal/worktree.yaml is not trusted"
        ),
        "{line}"
    );
    assert!(line.contains("`ralph trust`") && !bed.path("ran").exists() && !bed.path(STATE).exists(), "{line}");
    trust(&bed);
    check(&bed, "a1").send().is_silent();
    assert!(bed.path("ran").is_file());
    // An agent that rewrites what it has to pass is back where it was.
    bed.write(YAML, yaml(&["true"]));
    assert!(check(&bed, "a1").send().line().contains("unverified"));
}

#[test]
fn s3_6_without_commands_the_tasks_markers_must_stand_in_the_last_message() {
    for (current, list) in [
        (".ideal/.current-task", ".ideal/tasks/t1/check.jsonl"),
        (".ideal/.current-task", ".ideal/t1/check.jsonl"),
        (".trellis/.current-task", ".trellis/tasks/t1/check.jsonl"),
    ] {
        let bed = Bed::new();
        bed.write(current, if current.starts_with(".trellis") { ".trellis/tasks/t1\n" } else { "t1\n" });
        check(&bed, "a1").send().is_silent();
        bed.write(list, "{\"file\": \"a\", \"reason\": \"Lint\"}\n{\"file\": \"b\", \"reason\": \"type check\"}\n{\"file\": \"c\", \"reason\": \"lint\"}\n");
        let (text, _) = blocked(&says(&bed, "check", "a1", "All fine: LINT_FINISH").send());
        assert!(text.contains("lacks TYPE_CHECK_FINISH.") && text.contains("iteration 1 of 5"), "{text}");
        assert!(blocked(&check(&bed, "a1").no_message().send()).0.contains("lacks LINT_FINISH, TYPE_CHECK_FINISH"));
        assert!(bed.path(current).with_file_name(".verify-state.json").is_file());
        says(&bed, "check", "a1", "LINT_FINISH\nTYPE_CHECK_FINISH\n").send().is_silent();
    }
}

#[test]
fn s3_6_markers_give_up_like_commands_and_broken_yaml_falls_back_to_them() {
    let bed = Bed::new();
    bed.write(".ideal/.current-task", "t1");
    bed.write(".ideal/tasks/t1/check.jsonl", "{\"reason\": \"lint\"}\n");
    bed.write(YAML, "verify: [\n");
    for round in 1..=4 {
        let (text, line) = blocked(&check(&bed, "a1").send());
        assert!(text.contains(&format!("iteration {round} of 5")) && line.contains("worktree.yaml cannot be read"), "{text}\n{line}");
    }
    let line = check(&bed, "a1").send().line();
    assert!(line.contains("unverified: markers failed: the last message lacks LINT_FINISH") && line.contains("cannot be read"), "{line}");
    // Commands go first: then nobody asks for markers.
    bed.write(YAML, yaml(&["true"]));
    trust(&bed);
    check(&bed, "a1").send().is_silent();
}

/// A subagent that had a working tree to itself is verified there; a `cd` moves nothing.
#[test]
fn s3_3_commands_run_where_the_agent_worked() {
    let bed = Bed::in_git();
    bed.write(YAML, yaml(&["pwd > where"]));
    bed.write("sub/deep/file", "");
    bed.git(&["add", "-A"]);
    bed.git(&["commit", "-qm", "all"]);
    bed.git(&["worktree", "add", "-q", ".claude/worktrees/w1"]);
    trust(&bed);
    let tree = bed.path(".claude/worktrees/w1");
    let deep = tree.join("sub/deep");
    for cwd in [&tree, &deep] {
        check(&bed, "a1").field("cwd", cwd.to_str().unwrap()).cwd(cwd).send().is_silent();
        assert_eq!(PathBuf::from(fs::read_to_string(tree.join("where")).unwrap().trim()), tree);
        fs::remove_file(tree.join("where")).unwrap();
        assert!(!bed.path("where").exists());
    }
    let elsewhere = Bed::in_git();
    let fake = bed.path("fake");
    fs::create_dir_all(&fake).unwrap();
    fs::write(fake.join(".git"), format!("gitdir: {}\n", bed.path(".git/worktrees/w1").display())).unwrap();
    for cwd in [bed.path("sub/deep"), elsewhere.dir().to_owned(), fake, PathBuf::from("/nowhere")] {
        fs::remove_file(bed.path("where")).ok();
        check(&bed, "a1").field("cwd", cwd.to_str().unwrap()).send().is_silent();
        assert_eq!(PathBuf::from(bed.read("where").trim()), bed.dir(), "{}", cwd.display());
    }
    // From there a relative path of the log would lead nowhere.
    bed.write(YAML, yaml(&["echo no; false"]));
    trust(&bed);
    let (text, _) = blocked(&check(&bed, "a2").field("cwd", tree.to_str().unwrap()).send());
    let log = text.lines().find_map(|l| l.strip_prefix("The whole output: ")).unwrap();
    assert!(fs::read_to_string(log).unwrap().contains("no"), "{log}");
}

/// The client shows nobody what is said at a subagent's stop: the session's own stop says it again, once, and to nobody else.
#[test]
fn s3_5_the_person_is_told_when_the_session_stops() {
    let bed = Bed::new();
    bed.write(YAML, yaml(&["touch ran"]));
    let line = check(&bed, "a1").send().line();
    bed.stop("Done.").session(OTHER).send().is_silent();
    bed.stop("Done.").send().tells(&line);
    bed.stop("Done.").send().is_silent();
    // With a loop it goes along with what the loop says.
    bed.write(LOOP, crate::common::loop_text(ME, 1, 0, "DONE"));
    check(&bed, "a2").send();
    let told = bed.work().send().blocks_with(crate::common::PROMPT);
    assert!(told.starts_with("Ralph: iteration 2") && told.ends_with(&format!("\n{line}")), "{told}");
    // An agent that was sent back, or whose work is proven, is nothing to tell.
    trust(&bed);
    check(&bed, "a3").send().is_silent();
    bed.write(YAML, yaml(&["false"]));
    trust(&bed);
    blocked(&check(&bed, "a4").send());
    assert!(!bed.work().send().blocks_with(crate::common::PROMPT).contains("agent"));
}

/// An agent that was sent back does away with what asked for its proof: it goes, because nothing is left to measure, but never silently.
#[test]
fn s3_5_an_agent_that_frees_itself_is_told_as_unverified() {
    type Trick = fn(&Bed);
    let tricks: [(&str, Trick); 6] = [
        ("renamed", |bed| fs::rename(bed.path(YAML), bed.path("elsewhere.yaml")).unwrap()),
        ("emptied", |bed| drop(bed.write(YAML, ""))),
        ("without commands", |bed| drop(bed.write(YAML, "verify: []\n"))),
        ("other agents", |bed| drop(bed.write("ralph.toml", "[verify]\nagents = [\"other\"]\n"))),
        ("broken", |bed| drop(bed.write(YAML, "verify: [\n"))),
        ("a proof of its own choice", |bed| {
            fs::remove_file(bed.path(YAML)).unwrap();
            bed.write(".ideal/.current-task", "t1");
            bed.write(".ideal/tasks/t1/check.jsonl", "{\"reason\": \"lint\"}\n");
        }),
    ];
    for (name, trick) in tricks {
        let bed = bed(&["touch ran; false"]);
        blocked(&check(&bed, "a1").send());
        fs::remove_file(bed.path("ran")).unwrap();
        trick(&bed);
        let line = says(&bed, "check", "a1", "LINT_FINISH").send().line();
        assert!(line.starts_with("Ralph: the work of the agent check is unverified: it was sent back, and what asked"), "{name}: {line}");
        assert!(!bed.path("ran").exists() && !bed.read(STATE).contains("a1"), "{name}");
        assert!(codes(&bed).last().unwrap().ends_with("verify.gone"), "{name}");
        bed.stop("Done.").send().tells(&line);
        // It is told once, and an agent that nobody ever asked hears nothing.
        stops(&bed, "Explore", "a1").send().is_silent();
    }
    // The counts of settings in ralph.toml lie with ralph's own files.
    let bed = bed_with("ralph.toml", "[verify]\nagents = [\"review\"]\ncommands = [\"false\"]\n");
    blocked(&stops(&bed, "p:review", "a1").send());
    bed.write("ralph.toml", "[verify\n");
    stops(&bed, "p:review", "a2").send().is_silent();
    assert!(stops(&bed, "p:review", "a1").send().line().contains("unverified"));
    stops(&bed, "p:review", "a1").send().is_silent();
}

/// S3-5: what was mended lies where the tree does not show it: the last round is run, not remembered.
#[test]
fn s3_5_the_last_round_is_run_whatever_was_found_before() {
    let bed = Bed::in_git();
    let outside = bed.home().join("outside");
    bed.write(YAML, yaml(&[&format!("echo >> {0}.runs; test -f {0}", outside.display())]));
    bed.write("ralph.toml", "[verify]\nrounds = 3\n");
    trust(&bed);
    for _ in 0..2 {
        blocked(&check(&bed, "a1").send());
    }
    let runs = || fs::read_to_string(outside.with_extension("runs")).unwrap().lines().count();
    assert_eq!(runs(), 1, "no file has changed");
    fs::write(&outside, "").unwrap();
    check(&bed, "a1").send().is_silent();
    assert_eq!(runs(), 2);
}

/// The loop of the session that called it is not judged, and its journal has a line.
#[test]
fn s3_5_the_callers_loop_is_not_judged_by_a_subagents_stop() {
    let bed = Bed::with_loop(3, 0, "DONE");
    bed.write(YAML, yaml(&["false"]));
    trust(&bed);
    let before = bed.loop_bytes();
    blocked(&says(&bed, "check", "a1", "<promise>DONE</promise>").send());
    assert_eq!(bed.loop_bytes(), before);
    let heard = bed.journal().pop().unwrap();
    let expected = json!({"kind": "heard", "event": "SubagentStop", "detail": "check: verify.failed"});
    assert_eq!((&heard["event"], &heard["session"]), (&expected, &json!(ME)));
    assert!(bed.hook_log().pop().unwrap().contains("event=SubagentStop decision=block code=verify.failed"));
    // An agent of another type is heard as ever.
    stops(&bed, "Explore", "a2").send().is_silent();
    assert_eq!(bed.journal().pop().unwrap()["event"]["detail"], "Explore");
    assert!(bed.path(LOOP).exists());
}

/// Ids are the client's; odd ones count like any other, and name no file.
#[test]
fn s3_4_odd_agent_ids() {
    for id in ["../../x", "a b\u{1b}", &"x".repeat(5_000), "", "é"] {
        let bed = bed(&["false"]);
        for round in 1..=2 {
            let (text, _) = blocked(&check(&bed, id).send());
            assert!(text.contains(&format!("iteration {round} of 5")), "{text}");
        }
        assert_eq!(state(&bed)["agents"].as_object().unwrap().len(), 1);
    }
    let bed = bed(&["false"]);
    assert!(blocked(&check(&bed, "x").without("agent_id").send()).0.contains("iteration 1 of 5"));
    assert!(blocked(&check(&bed, "x").without("agent_id").send()).0.contains("iteration 2 of 5"));
}

/// Issue 4, point 8: commands end before the client's patience does.
#[test]
fn s3_3_commands_end_within_the_hooks_own_limit() {
    let bed = bed(&["sleep 30"]);
    let event = check(&bed, "a1");
    let begun = Instant::now();
    let mut command = event.command();
    command.args(["--timeout", "7"]);
    let out = crate::common::run(&mut command, event.json().as_bytes());
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    let (text, _) = blocked(&Answer::of(&out));
    assert!(text.contains("could not be measured"), "{text}");
}

/// Commands under a misspelt key would let every agent pass in silence.
#[test]
fn s3_2_a_misspelt_verify_is_told() {
    let bed = Bed::new();
    bed.write(YAML, "copy: [.env]\nverfy:\n  - touch ran\n");
    let told = check(&bed, "a1").send().line();
    assert!(told.contains("is unverified: .ideal/worktree.yaml cannot be read: line 2: `verfy` asks for nothing"), "{told}");
    assert!(told.contains("did you mean `verify`?"), "{told}");
    bed.write(YAML, "copy: [.env]\nversion: 2\n");
    check(&bed, "a2").send().is_silent();
}
