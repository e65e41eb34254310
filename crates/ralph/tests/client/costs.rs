//! What ralph thinks that a loop costs, and what the real client says that it cost.

use crate::real::*;
use ralph_testkit::{Cached, Kind, ModelServer, Reply, Version, nightly, or_skip};
use serde_json::json;

/// Models that the client knows the price of; two that differ in more than figures come first. The older client has the prices of its day.
fn models(version: Version) -> &'static [&'static str] {
    match version {
        Version::Older => &["claude-opus-4-8", "claude-sonnet-4-6", "claude-haiku-4-5", "claude-fable-5"],
        Version::Newest => {
            &["claude-opus-5-5", "claude-haiku-5-5", "claude-opus-4-8", "claude-sonnet-5-5", "claude-sonnet-4-6", "claude-fable-5-2"]
        }
    }
}

/// The client's own sum, and ralph's, of a run with this model.
fn sums(bed: &Bed, model: &str, server: &ModelServer) -> (f64, f64) {
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--usd", "1000"]);
    let output = bed.print(server, "begin").args(["--model", model]).output();
    assert_eq!(output.code, Some(0), "{output:?}");
    let clients = output.result().unwrap()["total_cost_usd"].as_f64().unwrap();
    let status: serde_json::Value = serde_json::from_str(&bed.ralph_ok(&["status", "--json"])).unwrap();
    (clients, status["last_ended"]["spent_usd"].as_f64().unwrap())
}

/// The client asks for a little more than it writes down, such as a title of the session.
fn assert_about(model: &str, (clients, ours): (f64, f64)) {
    assert!(clients > 0.05 && (ours / clients - 1.0).abs() < 0.01, "{model}: the client says ${clients}, ralph about ${ours}");
}

/// The claim that ends the loop: the client writes the last message down after the hook, so it must not cost anything here.
fn free(n: usize) -> Reply {
    claim(n).usage(0, 0)
}

/// S2-7: the estimate is what the client itself reckons, within 1 %, for every kind of token.
fn s2_7_the_estimate_is_the_clients_own_figure(version: Version) {
    for model in nightly::amount(&models(version)[..2], models(version)) {
        let bed = or_skip!(Bed::new(version));
        let cached = |written_5m, written_1h, read| Cached { written_5m, written_1h, read };
        let server = ModelServer::scripted([
            work(1).usage(30_000, 20_000).cached(cached(20_000, 0, 0)),
            // Two blocks: two lines in the transcript, one message.
            Reply::thinking("So it is.").and_text("This is iteration 1.").delay(PACE).usage(3, 40_000).cached(cached(0, 10_000, 90_000)),
            // A long prompt, and still so short that no client makes the conversation shorter.
            work(2).usage(50_000, 1_000).cached(cached(20_000, 20_000, 30_000)),
            round(2).usage(1, 1),
            free(3),
        ]);
        assert_about(model, sums(&bed, model, &server));
    }
}
both!(s2_7_the_estimate_is_the_clients_own_figure);

/// S2-7: what subagents use is in it.
fn s2_7_the_estimate_has_the_subagents_in_it(version: Version) {
    let bed = or_skip!(Bed::new(version));
    let task = json!({"description": "look", "prompt": "Look at it.", "subagent_type": "general-purpose", "run_in_background": false});
    let server = ModelServer::with(move |request| match (request.kind, request.index) {
        (Kind::Subagent, _) => say("I looked.").usage(10_000, 50_000),
        (_, 0) => Reply::tool("Agent", task.clone()).delay(PACE).usage(1_000, 1_000),
        (_, 1) => round(1).usage(1_000, 1_000),
        (_, n) => free(n),
    });
    assert_about("with a subagent", sums(&bed, "claude-opus-4-8", &server));
}
newest!(s2_7_the_estimate_has_the_subagents_in_it);

/// S2-7: the limit ends the loop in the real client, and the person is told what was spent.
fn s2_7_the_limit_on_money_ends_the_loop(version: Version) {
    let bed = or_skip!(Bed::new(version));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--usd", "2.5"]);
    // A dollar for each round.
    let server = ModelServer::scripted((1..=6).flat_map(|n| [work(n).usage(0, 0), round(n).usage(0, 40_000)]).collect::<Vec<Reply>>());
    let output = bed.print(&server, "begin").args(["--model", "claude-opus-4-8"]).output();
    assert_eq!(output.code, Some(0), "{output:?}");
    // A message that was written down too late counts at the next stop.
    let stops = bed.journal().codes().len();
    assert!((3..=4).contains(&stops), "{:?}", bed.journal().codes());
    assert_eq!(bed.journal().codes(), missing_then(stops - 1, "limit.cost"));
    let told = answers(&output, "Stop").last().copied().unwrap();
    assert!(told.contains("Ralph: stopped at its limit of $2.50: about $3") && told.contains("`/ralph-resume --usd 2.5`"), "{told}");
    bed.assert_replays(stops);
}
newest!(s2_7_the_limit_on_money_ends_the_loop);
