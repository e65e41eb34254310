//! `ralph run --agent` and `--fallback`, with small programs that print what the real ones do. What the real ones do is in `client/run_agents.rs`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use ralph_testkit::{Output, process::run_bounded};
use serde_json::{Value, json};

use super::PATIENCE;
use crate::common::{Bed, RALPH};

/// A project with programs on its path.
pub(super) struct Agents {
    pub(super) bed: Bed,
    bin: PathBuf,
}

impl Agents {
    pub(super) fn new() -> Self {
        let bed = Bed::in_git();
        bed.write("README.md", "a project\n");
        bed.commit_all("begin");
        let bin = bed.home().join("bin");
        fs::create_dir_all(&bin).unwrap();
        Agents { bed, bin }
    }

    /// Each line of `says` is printed; `first` is run before. It sees the number of its session as `$N`, and notes its arguments.
    pub(super) fn program(&self, name: &str, first: &str, says: &[Value], code: u8) {
        let lines = says.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let home = self.bin.display();
        let script = format!(
            "#!/bin/sh\nN=$(( $(cat '{home}/{name}.n' 2>/dev/null || echo 0) + 1 )); echo $N > '{home}/{name}.n'\necho \"$*\" >> '{home}/{name}.args'\n[ \"$1\" = --version ] || cat > '{home}/{name}.prompt'\n{first}\ncat <<'END'\n{lines}\nEND\nexit {code}\n"
        );
        let path = self.bin.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(super) fn run(&self, code: i32, args: &[&str]) -> Output {
        let mut command = self.bed.command(RALPH);
        command.arg("run").args(args).env("PATH", format!("{}:/usr/bin:/bin", self.bin.display())).env("IS_SANDBOX", "1");
        command.env("RALPH_HASTE", "60");
        let out = run_bounded(&mut command, b"", PATIENCE);
        assert_eq!(out.code, Some(code), "ralph run {args:?}\n{}\n{}", out.stdout, out.stderr);
        out
    }

    /// Who worked on which iteration.
    pub(super) fn began(&self) -> Vec<(u64, String)> {
        let began = self.bed.journal().into_iter().filter(|r| r["event"]["kind"] == "began");
        began.map(|r| (r["event"]["iteration"].as_u64().unwrap(), r["event"]["agent"].as_str().unwrap().to_owned())).collect()
    }

    fn args_of(&self, name: &str) -> String {
        fs::read_to_string(self.bin.join(format!("{name}.args"))).unwrap_or_default()
    }
}

/// What Gemini prints when it has said this.
pub(super) fn gemini_says(text: &str) -> Vec<Value> {
    let used = json!({"input_tokens": 1_000_000, "output_tokens": 100_000, "cached": 0});
    vec![
        json!({"type": "init", "session_id": "11111111-2222-4333-8444-555555555555", "model": "gemini-2.5-pro"}),
        json!({"type": "message", "role": "assistant", "content": text, "delta": true}),
        json!({"type": "result", "status": "success", "stats": {"models": {"gemini-2.5-pro": used}}}),
    ]
}

const UNTIL_LATER: &str = "You’ve hit your usage limit. Upgrade to Pro or try again at Jan 15th, 2099 8:00 AM.";

/// What Codex prints when its quota is used up.
pub(super) fn codex_is_used_up() -> Vec<Value> {
    vec![
        json!({"type": "thread.started", "thread_id": "01a1e2ed-0c37-7510-bb73-dfe78fdd8113"}),
        json!({"type": "error", "message": UNTIL_LATER}),
        json!({"type": "turn.failed", "error": {"message": UNTIL_LATER}}),
    ]
}

pub(super) const WORKS: [&str; 2] = ["--permission-mode", "bypassPermissions"];

#[test]
fn h5_an_agent_gets_its_own_flags_and_its_money_is_counted() {
    let agents = Agents::new();
    agents.program("gemini", "", &gemini_says("Done.\n\n<promise>DONE</promise>"), 0);
    let out = agents.run(0, &["Do it", "--promise", "DONE", "--agent", "gemini", "--model", "gemini-2.5-pro", WORKS[0], WORKS[1]]);
    let args = agents.args_of("gemini");
    assert!(args.contains("-o stream-json") && args.contains("-m gemini-2.5-pro") && args.contains("--approval-mode yolo"), "{args}");
    // 1 M in at $1.25, 0.1 M out at $10.
    assert!(format!("{}{}", out.stdout, out.stderr).contains("$2.25"), "{out:?}");
    assert!(fs::read_to_string(agents.bin.join("gemini.prompt")).unwrap().contains("Do it"));
}

#[test]
fn h5_prices_of_a_trusted_file_count_and_an_unknown_price_is_no_guess() {
    let agents = Agents::new();
    agents.bed.write("ralph.toml", "[run]\nprices = { \"gemini-2.5-pro\" = \"2, 20, 0.2\" }\n");
    agents.program("gemini", "", &gemini_says("Done.\n\n<promise>DONE</promise>"), 0);
    let run = |code| {
        let out = agents.run(code, &["Do it", "--promise", "DONE", "--agent", "gemini", WORKS[0], WORKS[1]]);
        format!("{}{}", out.stdout, out.stderr)
    };
    let before = run(0);
    assert!(before.contains("$2.25") && before.contains("ralph trust"), "{before}");
    assert!(agents.bed.run(RALPH).args(["trust", "--yes"]).output().success());
    let trusted = run(0);
    assert!(trusted.contains("about $4,"), "{trusted}");
    let mut nameless = gemini_says("Done.\n\n<promise>DONE</promise>");
    nameless[2]["stats"]["models"] = json!({"made-up-9": {"input_tokens": 5, "output_tokens": 5, "cached": 0}});
    agents.program("gemini", "", &nameless, 0);
    let unknown = run(0);
    assert!(!unknown.contains("$0") && unknown.contains("10 tokens, cost unknown"), "{unknown}");
}

/// Money stops nothing that has no price: that is told once, with what does stop it.
#[test]
fn h5_a_limit_on_money_that_cannot_stop_a_model_is_told() {
    let agents = Agents::new();
    let mut nameless = gemini_says("I go on.");
    nameless[2]["stats"]["models"] = json!({"made-up-9": {"input_tokens": 5, "output_tokens": 5, "cached": 0}});
    let works = "[ \"$1\" = --version ] || echo $N > work.txt";
    let warnings = |code, says: &[Value], more: &[&str]| {
        agents.program("gemini", works, says, 0);
        let args = ["Do it", "--promise", "DONE", "--agent", "gemini", "--max-iterations", "2", WORKS[0], WORKS[1]];
        let out = agents.run(code, &[&args[..], more].concat());
        let told = format!("{}{}", out.stdout, out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        (told.matches("cannot stop it").count(), told)
    };
    let (times, told) = warnings(10, &nameless, &[]);
    assert!(times == 1 && told.contains("no price is known for made-up-9, so the limit of $50 cannot stop it"), "{told}");
    assert!(told.contains("--tokens N") && told.contains("`[run] prices`"), "{told}");
    let (times, told) = warnings(10, &nameless, &["--usd", "3", "--tokens", "1000"]);
    assert!(times == 1 && told.contains("limit of $3 cannot stop it, and only the one on tokens can"), "{told}");
    let mut silent = nameless.clone();
    silent[2]["stats"] = json!({});
    let (times, told) = warnings(10, &silent, &[]);
    assert!(times == 1 && told.contains("what gemini-2.5-pro costs") && told.contains("--hours H"), "{told}");
    assert_eq!(warnings(10, &nameless, &["--usd", "0"]).0, 0, "no limit is promised");
    assert_eq!(warnings(10, &gemini_says("I go on."), &[]).0, 0, "its price is known");
}

#[test]
fn h5_when_a_quota_is_used_up_another_agent_goes_on() {
    let agents = Agents::new();
    agents.program("codex", "", &codex_is_used_up(), 1);
    agents.program("gemini", "", &gemini_says("Done.\n\n<promise>DONE</promise>"), 0);
    let args = ["Do it", "--promise", "DONE", "--agent", "codex", "--model", "gpt-5.5", "--fallback", "gemini=gemini-2.5-flash"];
    let out = agents.run(0, &[&args[..], &WORKS].concat());
    assert_eq!(agents.began(), [(1, "codex".to_owned()), (1, "gemini".to_owned())]);
    assert!(format!("{}{}", out.stdout, out.stderr).contains("Gemini CLI goes on"), "{out:?}");
    assert!(agents.args_of("codex").contains("-m gpt-5.5") && agents.args_of("gemini").contains("-m gemini-2.5-flash"));
}

/// Its weekly limit is only in the line about the request (a recording of 1.0.102).
#[test]
fn h5_when_copilots_weekly_limit_is_reached_another_agent_goes_on() {
    let agents = Agents::new();
    let recorded = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/agents/copilot.jsonl")).unwrap();
    let lines =
        recorded.lines().skip_while(|line| !line.contains("native-limit")).skip(1).take_while(|line| !line.starts_with(r##"{"#""##));
    let limit: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(limit.len(), 3, "{limit:?}");
    agents.program("copilot", "", &limit, 1);
    agents.program("gemini", "", &gemini_says("Done.\n\n<promise>DONE</promise>"), 0);
    let out = agents.run(0, &["Do it", "--promise", "DONE", "--agent", "copilot", "--fallback", "gemini", WORKS[0], WORKS[1]]);
    assert_eq!(agents.began(), [(1, "copilot".to_owned()), (1, "gemini".to_owned())]);
    assert!(format!("{}{}", out.stdout, out.stderr).contains("the weekly limit of the account is used up; Gemini CLI goes on"), "{out:?}");
}

/// A service may say no more of a quota than that there are too many requests. Alone, the agent is tried again.
#[test]
fn h5_when_an_agent_has_too_many_requests_again_and_again_another_one_goes_on() {
    let agents = Agents::new();
    let too_many = json!({"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"}});
    agents.program("codex", "", &[too_many], 1);
    agents.program("gemini", "[ \"$1\" = --version ] || echo $N > work.txt", &gemini_says("Begun."), 0);
    let args = ["Do it", "--promise", "DONE", "--agent", "codex", "--fallback", "gemini", "--max-iterations", "2", WORKS[0], WORKS[1]];
    let out = agents.run(10, &args);
    let began: Vec<(u64, String)> =
        [(1, "codex"), (1, "codex"), (1, "codex"), (1, "gemini"), (2, "gemini")].map(|(n, a)| (n, a.to_owned())).into();
    assert_eq!(agents.began(), began, "{out:?}");
    assert!(format!("{}{}", out.stdout, out.stderr).contains("(status 429); Gemini CLI goes on"), "{out:?}");
}

/// What a session did before its context was full counts; one that could not even begin is not tried again.
#[test]
fn h5_a_context_that_is_full_ends_the_session_and_one_that_does_not_fit_the_run() {
    let agents = Agents::new();
    let too_long = json!({"type": "turn.failed", "error": {"message": "400 This model's maximum context length is 1000 tokens."}});
    let work = json!({"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "ls", "exit_code": 0}});
    agents.program("codex", "[ \"$1\" = --version ] || echo $N > work.txt", &[work, too_long.clone()], 1);
    let args = ["Do it", "--promise", "DONE", "--agent", "codex", "--max-iterations", "2", WORKS[0], WORKS[1]];
    agents.run(10, &args);
    assert_eq!(agents.began().into_iter().map(|(n, _)| n).collect::<Vec<_>>(), [1, 2], "each counts");
    agents.program("codex", "", &[too_long], 1);
    let out = agents.run(12, &args);
    let told = format!("{}{}", out.stdout, out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("the context is too long for the model (status 400): a new session begins with") && told.contains("--model M"),
        "{told}"
    );
    assert!(!told.contains("several times"), "{told}");
}

/// The first agent's limit ends after a few seconds: it gets the next iteration then.
#[test]
fn h5_the_first_agent_comes_back() {
    let agents = Agents::new();
    let resets = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + Duration::from_secs(8);
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/streams/2.1.325-limit.jsonl");
    let limit = fs::read_to_string(recorded).unwrap().replace("1794784418", &resets.as_secs().to_string());
    let limit: Vec<Value> = limit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let claim = json!({"type": "result", "subtype": "success", "is_error": false, "result": "<promise>DONE</promise>", "session_id": "x"});
    let says = json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "<promise>DONE</promise>"}]}});
    let again = format!(
        "if [ \"$1\" != --version ] && [ \"$N\" -gt 2 ]; then echo '{says}'; echo '{claim}'; exit 0; fi\n[ \"$1\" != --version ] || {{ echo '2.1.325 (Claude Code)'; exit 0; }}"
    );
    agents.program("claude", &again, &limit, 1);
    agents.program("gemini", "sleep 1; echo $N > work.txt", &gemini_says("I go on."), 0);
    let out = agents.run(0, &["Do it", "--promise", "DONE", "--fallback", "gemini", "--max-iterations", "60", WORKS[0], WORKS[1]]);
    let began: Vec<String> = agents.began().into_iter().map(|(_, agent)| agent).collect();
    assert!(
        began.first().is_some_and(|first| first == "claude") && began.last().is_some_and(|last| last == "claude"),
        "{began:?} {}",
        out.stdout
    );
    assert!(began.iter().any(|agent| agent == "gemini"), "{began:?} {} {}", out.stdout, out.stderr);
}

#[test]
fn h5_what_cannot_work_is_refused_before_it_begins() {
    let agents = Agents::new();
    agents.program("codex", "", &[], 0);
    let refused = |code, args: &[&str]| {
        let out = agents.run(code, &[&["Do it", "--promise", "DONE"], args].concat());
        assert!(!agents.bed.exists(".ralph/journal"), "{args:?}");
        out.stderr
    };
    assert!(refused(12, &["--agent", "grok"]).contains("npm install -g @xai-official/grok"));
    let other = refused(2, &["--agent", "nobody"]);
    assert!(other.contains("nobody") && other.contains("codex"), "{other}");
    assert!(refused(12, &["--agent", "codex", "--permission-mode", "dontAsk"]).contains("acceptEdits"), "it has other modes");
    // A task of which the agent would read a part, or the one that takes over.
    let long = "Write it down, and leave nothing out. ".repeat(2_500);
    agents.program("grok", "", &[], 0);
    for with in [&["--agent", "grok"][..], &["--agent", "codex", "--fallback", "grok"]] {
        let out = agents.run(12, &[&[long.as_str(), "--promise", "DONE"], with].concat());
        assert!(out.stderr.contains("the task has 95000 bytes, and Grok would read only a part of it"), "{}", out.stderr);
        assert!(!agents.bed.exists(".ralph/journal"));
    }
}
