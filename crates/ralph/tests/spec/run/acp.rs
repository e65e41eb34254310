//! `ralph run --agent acp:NAME` and `--acp-cmd`, with a small script that speaks the protocol. What the real agents do is in `client/run_acp.rs`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use ralph_testkit::{Output, process::run_bounded};
use serde_json::Value;

use super::PATIENCE;
use crate::common::{Bed, RALPH};

/// Answers to what ralph sends. `$CHUNK` and `$END` are told by each test; it notes all that it gets beside itself.
const SPEAKS: &str = r#"#!/bin/sh
DIR="$(dirname "$0")"
say() { printf '%s\n' "$1"; }
update() { say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s-$$\",\"update\":$1}}"; }
words() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }
ends() { say "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"stopReason\":\"$1\",\"usage\":{\"inputTokens\":1000000,\"outputTokens\":100000,\"totalTokens\":1100000}}}"; }
fails() { say "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":$1,\"message\":\"$2\"}}"; }
ask() {
  say "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s-$$\",\"toolCall\":{\"toolCallId\":\"c1\",\"kind\":\"$1\",\"title\":\"$2\",\"rawInput\":{\"command\":\"$2\"}},\"options\":[{\"optionId\":\"always\",\"kind\":\"allow_always\"},{\"optionId\":\"once\",\"kind\":\"allow_once\"},{\"optionId\":\"no\",\"kind\":\"reject_once\"}]}}"
  read -r answer; echo "$answer" >> "$DIR/got"
}
while read -r line; do
  echo "$line" >> "$DIR/got"
  case "$line" in
    *'"initialize"'*) say "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":${VERSION:-1}}}" ;;
    *'"session/new"'*) say "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"sessionId\":\"s-$$\",\"modes\":{\"currentModeId\":\"default\",\"availableModes\":[{\"id\":\"default\"},{\"id\":\"yolo\"}]}}}" ;;
    *'"session/set_mode"'*) say '{"jsonrpc":"2.0","id":3,"result":{}}' ;;
    *'"session/set_model"'*) say '{"jsonrpc":"2.0","id":4,"result":{}}' ;;
    *'"session/prompt"'*) work ;;
  esac
done
"#;

struct Acp {
    bed: Bed,
    bin: PathBuf,
}

impl Acp {
    /// A program called gemini that does `work` at its prompt.
    fn new(work: &str) -> Self {
        let bed = Bed::in_git();
        bed.write("README.md", "a project\n");
        bed.commit_all("begin");
        let bin = bed.home().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let acp = Acp { bed, bin };
        let (first, rest) = SPEAKS.split_once('\n').unwrap();
        acp.program("gemini", &format!("{first}\nwork() {{ {work}; }}\n{rest}"));
        acp
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.bin.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run_as(&self, code: i32, agent: &[&str], more: &[&str]) -> Output {
        let mut command = self.bed.command(RALPH);
        command.args(["run", "Do it", "--promise", "DONE"]).args(agent).args(more);
        command.env("PATH", format!("{}:/usr/bin:/bin", self.bin.display())).env("IS_SANDBOX", "1").env("RALPH_HASTE", "60");
        let out = run_bounded(&mut command, b"", PATIENCE);
        assert_eq!(out.code, Some(code), "{more:?}\n{}\n{}", out.stdout, out.stderr);
        out
    }

    fn run(&self, code: i32, more: &[&str]) -> String {
        let out = self.run_as(code, &["--agent", "acp:gemini"], more);
        format!("{}{}", out.stdout, out.stderr)
    }

    fn got(&self) -> String {
        fs::read_to_string(self.bin.join("got")).unwrap_or_default()
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        self.bed.journal().into_iter().map(|record| record["event"].clone()).filter(|event| event["kind"] == kind).collect()
    }
}

const ALL: [&str; 2] = ["--permission-mode", "bypassPermissions"];

#[test]
fn h6_a_session_over_acp_is_judged_and_counted_like_any_other() {
    let acp = Acp::new("words 'I am done.'; words '\\n\\n<promise>DO'; words 'NE</promise>'; ends end_turn");
    let out = acp.run(0, &[&ALL[..], &["--model", "gemini-2.5-pro"]].concat());
    // 1 M in at $1.25, 0.1 M out at $10.
    assert!(out.contains("$2.25"), "{out}");
    let got = acp.got();
    for wanted in ["\"protocolVersion\":1", "\"mcpServers\":[]", "\"modeId\":\"yolo\"", "Do it", "\"readTextFile\":false"] {
        assert!(got.contains(wanted), "{wanted}: {got}");
    }
    let (began, stops) = (acp.events("began"), acp.events("stop"));
    assert_eq!(began[0]["agent"], "acp:gemini");
    assert!(stops[0]["work"]["agent_session"].as_str().unwrap().starts_with("s-"), "{stops:?}");
    let shown = acp.bed.run(RALPH).args(["log"]).output();
    assert!(shown.success(), "{shown:?}");
}

#[test]
fn h6_any_program_may_speak_it() {
    let acp = Acp::new("words '<promise>DONE</promise>'; ends end_turn");
    let line = format!("exec '{}' --some flag", acp.bin.join("gemini").display());
    acp.run_as(0, &["--acp-cmd", &line, "--model", "large"], &ALL);
    assert_eq!(acp.events("began")[0]["agent"], "acp");
    assert!(acp.got().contains("\"modelId\":\"large\""), "{}", acp.got());
}

/// What is asked for is allowed once or denied, and what was denied is in the journal.
#[test]
fn h6_requests_for_permission_are_answered_by_the_mode_and_kept() {
    let asks = "ask execute 'rm -r x'; words '<promise>DONE</promise>'; ends end_turn";
    for (mode, option, denied) in [("bypassPermissions", "once", 0), ("acceptEdits", "no", 1), ("default", "no", 1)] {
        let acp = Acp::new(asks);
        acp.run(0, &["--permission-mode", mode]);
        assert!(acp.got().contains(&format!("\"optionId\":\"{option}\"")), "{mode}: {}", acp.got());
        let work = &acp.events("stop")[0]["work"];
        assert_eq!(work["denied"].as_array().map_or(0, Vec::len), denied, "{mode}: {work}");
        assert_eq!(work["tool_calls"], 1, "{mode}");
        let log = fs::read_dir(acp.bed.path(".ralph/rounds")).unwrap().next().unwrap().unwrap().path().join("0001-1.jsonl");
        let log = fs::read_to_string(log).unwrap();
        assert!(log.contains("request_permission") && log.contains("> {\"id\":\"q\""), "{log}");
    }
}

#[test]
fn h6_each_ending_has_its_own_meaning() {
    for (work, code, words) in [
        ("fails -32603 'Unauthorized (401) from the service'", 12, "not signed in"),
        ("fails -32000 'Authentication required'", 12, "not signed in"),
        ("fails 402 'pay first'", 12, "no credit left"),
        ("ends refusal", 12, "rejected the request"),
        ("ends max_tokens", 12, "rejected the request"),
        ("exit 3", 12, "exit code 3"),
    ] {
        let acp = Acp::new(work);
        let out = acp.run(code, &ALL);
        assert!(out.contains(words), "{work}: {out}");
        assert!(acp.events("stop").is_empty(), "{work}");
    }
}

#[test]
fn h6_a_used_up_quota_is_passed_on_to_an_agent_over_acp() {
    let acp = Acp::new("words '<promise>DONE</promise>'; ends end_turn");
    let limit = "You have hit your usage limit. Try again later.";
    acp.program(
        "codex",
        &format!("#!/bin/sh\ncat >/dev/null\necho '{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}'\necho '{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{limit}\"}}}}'\nexit 1\n"),
    );
    acp.run_as(0, &["--agent", "codex", "--fallback", "acp:gemini=gemini-2.5-flash"], &ALL);
    let began: Vec<Value> = acp.events("began").into_iter().map(|began| began["agent"].clone()).collect();
    assert_eq!(began, ["codex", "acp:gemini"]);
}

/// Another version, words that are no protocol, an early end, silence: each is told, in bounded time, and not tried again.
#[test]
fn h6_a_program_that_does_not_speak_it_is_told() {
    for (script, words) in [
        ("VERSION=7; export VERSION; exec \"$0.real\"", "version 7 of ACP"),
        ("while :; do echo 'Welcome to the agent!'; sleep 0.2; done", "did not answer as an ACP agent does"),
        ("echo 'unknown option --acp' >&2; exit 2", "unknown option --acp"),
        ("exec sleep 1000", "did not answer as an ACP agent does"),
        ("exit 0", "did not answer as an ACP agent does"),
    ] {
        let acp = Acp::new("ends end_turn");
        fs::rename(acp.bin.join("gemini"), acp.bin.join("gemini.real")).unwrap();
        acp.program("gemini", &format!("#!/bin/sh\n{script}\n"));
        let begun = Instant::now();
        let out = acp.run(12, &ALL);
        assert!(out.contains(words), "{script}: {out}");
        assert_eq!(acp.events("began").len(), 1, "{script}");
        assert!(begun.elapsed() < Duration::from_mins(1), "{script}");
    }
}

/// An iteration that takes too long is cancelled by the protocol, and nothing of it is left.
#[test]
fn h6_a_session_that_is_cut_off_is_cancelled_and_nothing_lives_on() {
    let acp = Acp::new("trap '' TERM; sleep 1000 & echo $! > \"$DIR/child\"");
    acp.bed.write("ralph.toml", "[run]\nround = \"2s\"\nretries = 0\n");
    let mut command = acp.bed.command(RALPH);
    command.args(["run", "Do it", "--promise", "DONE", "--agent", "acp:gemini", "--max-iterations", "1"]).args(ALL);
    command.env("PATH", format!("{}:/usr/bin:/bin", acp.bin.display())).env("IS_SANDBOX", "1");
    let out = run_bounded(&mut command, b"", PATIENCE);
    assert!(!out.timed_out, "{out:?}");
    assert!(acp.got().contains("\"session/cancel\""), "{}", acp.got());
    let child = fs::read_to_string(acp.bin.join("child")).unwrap();
    assert!(!fs::exists(format!("/proc/{}", child.trim())).unwrap(), "{out:?}");
}

#[test]
fn h6_what_cannot_work_over_acp_is_refused_before_it_begins() {
    let acp = Acp::new("ends end_turn");
    let refused = |code, agent: &[&str], more: &[&str]| {
        let out = acp.run_as(code, agent, more);
        assert!(!acp.bed.exists(".ralph/journal"), "{agent:?}");
        out.stderr
    };
    assert!(refused(12, &["--agent", "acp:goose"], &ALL).contains("brew install block-goose-cli"));
    let other = refused(2, &["--agent", "acp:nobody"], &ALL);
    assert!(other.contains("acp:nobody") && other.contains("acp:kimi"), "{other}");
    assert!(refused(2, &["--agent", "acp:gemini", "--acp-cmd", "x"], &ALL).contains("cannot be used with"));
    assert!(refused(12, &["--agent", "acp:gemini"], &["--permission-mode", "auto"]).contains("acceptEdits"));
}
