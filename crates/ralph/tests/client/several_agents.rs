//! One loop over several agents, with their real clients: begun in Claude Code, carried on by Codex in a run, finished by hand in Gemini CLI.

use std::time::Duration;

use crate::{
    hosts::Held,
    real::{Bed, LOOP, RALPH, say},
};
use ralph_testkit::{Agent, ModelServer, Reply, Version, or_skip};
use serde_json::{Value, json};

#[test]
fn h8_one_loop_goes_through_three_agents_and_every_view_says_who_did_what() {
    let bed = or_skip!(Bed::with_init(Version::Newest, "--user"));
    // The newest of each in the nightly run.
    let [codex, gemini] = ["codex", "gemini"].map(|name| Agent::releases(name).last().unwrap());
    let (codex, gemini) = (or_skip!(codex.installed()), or_skip!(gemini.installed()));
    bed.ralph_ok(&["start", "Write it down.", "--completion-promise", "DONE"]);

    // The first iteration, and then the person has to go.
    let held = Held::default();
    let script = held.clone();
    let server = ModelServer::with(move |request| match request.index {
        0 => say("I have begun."),
        _ => {
            script.wait();
            say("I rest.")
        }
    });
    std::thread::scope(|scope| {
        let session = scope.spawn(|| bed.run(&server, "begin"));
        assert!(server.wait_for_main(2, Duration::from_mins(2)), "it is sent back");
        bed.ralph_ok(&["pause"]);
        held.release();
        session.join().unwrap();
    });

    // The second, without anybody.
    let server = ModelServer::scripted([Reply::text("Half of it is written.")]);
    let program = codex.as_program(&bed.project, &server);
    let run = ["run", "--continue", "--once", "--agent", "codex", "--model", "gpt-5.5", "--permission-mode", "bypassPermissions"];
    let path = format!("{}:{}", program.parent().unwrap().display(), bed.path);
    let output = bed.project.run(RALPH).env("PATH", path).args(run).timeout(Duration::from_mins(4)).output();
    assert_eq!(output.code, Some(0), "{output:?}");

    // The third and the fourth.
    let server = ModelServer::scripted([Reply::text("Nearly all of it."), Reply::text("All of it.\n\n<promise>DONE</promise>")]);
    gemini.prepare(&bed.project, &server);
    // Gemini's own PATH has no `ralph`: its path is registered.
    assert!(bed.project.run(RALPH).args(["init", "--agent", "gemini"]).output().success());
    bed.ralph_ok(&["resume", "--session"]);
    let output = gemini.run(&bed.project, &server, "go on");
    assert!(!bed.project.exists(LOOP), "{output:?}");

    let report: Value = serde_json::from_str(&bed.ralph_ok(&["report", "--json"])).unwrap();
    let total = |one: &Value| -> u64 { one["used"]["tokens"].as_object().map_or(0, |all| all.values().filter_map(Value::as_u64).sum()) };
    let row = |one: &Value| json!([one["agent"], one["iterations"], total(one) / 110, one["used"]["usd_micros"]]);
    let rows: Vec<Value> = report["agents"].as_array().unwrap().iter().map(row).collect();
    // The scripted model counts 100 tokens read and 10 written for each answer. Claude Code has asked twice.
    assert_eq!(rows[0].as_array().unwrap()[..3], [json!("claude"), json!(1), json!(2)], "{report:#}");
    assert_eq!(rows[1..], [json!(["codex", 1, 1, 800]), json!(["gemini", 2, 2, 450])], "{report:#}");
    assert!(report["agents"][0]["used"]["usd_micros"].as_u64().is_some_and(|usd| usd > 0), "{report:#}");
    let models: Vec<&Value> = report["agents"].as_array().unwrap().iter().map(|one| &one["model"]).collect();
    assert_eq!(models[1..], [&json!("gpt-5.5"), &json!("gemini-2.5-pro")]);
    let by: Vec<&Value> = report["rounds"].as_array().unwrap().iter().map(|round| &round["agent"]).collect();
    assert_eq!(by, ["claude", "codex", "gemini", "gemini"]);
    let log = bed.ralph_ok(&["log"]);
    // The log names agents from the second one on.
    assert!(["Codex with gpt-5.5", "Gemini CLI"].iter().all(|name| log.contains(name)), "{log}");
    let page = bed.ralph_ok(&["report", "--markdown"]);
    assert!(page.contains("| Codex | gpt-5.5 | 1 |") && page.contains("| Gemini CLI | gemini-2.5-pro | 2 |"), "{page}");
}
