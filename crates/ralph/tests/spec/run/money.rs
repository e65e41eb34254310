//! What a run costs, and what it may do, as its person is told: the session that runs, the whole loop after `--continue`, one hint about permissions.

use std::{fs, process::Stdio};

use serde_json::json;

use super::{Runs, until};
use crate::common;

/// A session that changes a file and costs a dollar.
const A_DOLLAR: &str = r#"cat > /dev/null; echo "$$" >> work.txt
echo '{"type":"result","subtype":"success","is_error":false,"total_cost_usd":1.0,"modelUsage":{"m":{"inputTokens":100,"costUSD":1.0}}}'
"#;

/// u6: `--usd` for a loop that goes on begins a new count, and the whole is told with it: at the end of the run, and by `explain`.
#[test]
fn u6_the_money_of_the_whole_loop_is_told_after_continue() {
    let runs = Runs::new("");
    let run = |args: &[&str]| {
        let out = common::run(runs.with_client(A_DOLLAR).arg("run").args(args), b"");
        assert_eq!(out.code, Some(10), "{args:?}\n{}\n{}", out.stdout, out.stderr);
        out.stdout
    };
    let first = run(&["Go", "--promise", "DONE", "--usd", "2"]);
    assert!(first.contains("· $2\n") && !first.contains("the loop in all"), "{first}");
    let explained = runs.bed.ralph_ok(&["explain"]);
    assert!(explained.contains("  money       about $2 of $2\n"), "{explained}");
    let second = run(&["--continue", "--usd", "1"]);
    assert!(second.contains("1 iteration in this run") && second.contains("(the loop in all: 300 tokens · $3)"), "{second}");
    let explained = runs.bed.ralph_ok(&["explain"]);
    let flat = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("about $1 of $1 since the limit was set; the loop in all: about $3"), "{explained}");
}

/// u4: a run that nobody gave a limit may spend $50, and says so; `--usd 0` lifts that.
#[test]
fn u4_a_run_may_spend_fifty_dollars_unless_it_is_told_otherwise() {
    for (args, limit) in [(&[][..], Some("of $50")), (&["--usd", "7"], Some("of $7")), (&["--usd", "0"], None)] {
        let runs = Runs::new("");
        let out = common::run(runs.with_client(A_DOLLAR).args(["run", "Go", "--promise", "DONE", "--once"]).args(args), b"");
        assert_eq!(out.code, Some(0), "{args:?}\n{}\n{}", out.stdout, out.stderr);
        let status = runs.bed.ralph_ok(&["status"]);
        match limit {
            Some(limit) => assert!(status.contains("about $1") && status.contains(limit), "{args:?}\n{status}"),
            None => assert!(status.contains("no limit") && !status.contains("of $"), "{args:?}\n{status}"),
        }
    }
}

/// u6: `ralph status` adds the cost of the session that runs, which counts for the limit when it ends.
#[test]
fn u6_status_has_the_cost_of_the_running_session() {
    let runs = Runs::new("");
    let says = json!({"type": "assistant", "message": {
        "id": "m1", "type": "message", "role": "assistant", "model": "claude-opus-5",
        "content": [{"type": "text", "text": "I look at it."}],
        "usage": {"input_tokens": 200_000, "output_tokens": 20_000},
    }});
    let go = runs.out("go");
    let script = format!("cat > /dev/null; echo '{says}'; while [ ! -f '{}' ]; do sleep 0.05; done\n", go.display());
    let mut command = runs.with_client(&script);
    let mut child = command.args(["run", "Go", "--promise", "DONE", "-n", "1"]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    until("the cost", || runs.is_live() && runs.bed.ralph(&["status"]).stdout.contains("in the session that runs"));
    let status = runs.bed.ralph_ok(&["status"]);
    fs::write(go, "").unwrap();
    child.wait().unwrap();
    assert!(status.contains(", and about $"), "{status}");
    assert!(!runs.bed.ralph(&["status"]).stdout.contains("in the session that runs"));
}

/// u6: one hint about permissions, whatever is missing; none where nothing is, or where there is nothing to do.
#[test]
fn u6_one_hint_about_permissions() {
    let edits = ("--permission-mode", "acceptEdits");
    for (mode, rules, gate, hints, said) in [
        (("--permission-mode", "default"), json!([]), "test -e done", 1, "lets it change files; "),
        (("--permission-mode", "default"), json!(["Bash(ls:*)"]), "npm test", 1, "\"Bash(npm test:*)\" under permissions.allow"),
        (edits, json!([]), "npm test", 1, "\"Bash(npm test:*)\" under permissions.allow"),
        (edits, json!(["Bash(ls:*)"]), "npm test", 1, "the agent cannot run the gates by itself"),
        (edits, json!(["Bash(npm test:*)", "WebFetch", "WebSearch"]), "npm test", 0, ""),
        (("--permission-mode", "default"), json!([]), "true", 0, "nothing to do"),
    ] {
        let runs = Runs::new("");
        let user = json!({"permissions": {"allow": rules}}).to_string();
        fs::create_dir_all(runs.bed.home().join(".claude")).unwrap();
        fs::write(runs.bed.home().join(".claude/settings.json"), user).unwrap();
        let out = common::run(runs.with_client(A_DOLLAR).args(["run", "Go", "--verify", gate, "-n", "1", mode.0, mode.1]), b"");
        let flat = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(flat.matches("permissions.allow").count(), hints, "{mode:?} {rules} {gate}:\n{}", out.stdout);
        assert!(flat.contains(said.trim()), "{mode:?} {rules} {gate}:\n{}", out.stdout);
    }
}
