//! How full a session's context may be, and how it is made shorter in between (S4-5).

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::common::{Answer, Bed, CLIENT, LOOP, ME, OTHER, loop_text, tick};

const SETTINGS: &str = ".claude/settings.local.json";
const NAMES: [&str; 2] = ["CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"];

fn with_key(key: &str) -> Bed {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 20, "DONE").replace("active: true\n", &format!("active: true\n{key}\n")));
    bed
}

/// An answer of a model's, as the transcript has it.
fn answer(model: &str, requested: Option<&str>, [input, read, written]: [u64; 3]) -> Value {
    let usage = json!({"input_tokens": input, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, "output_tokens": 9});
    let message = json!({"id": "m", "role": "assistant", "model": model, "usage": usage, "content": [{"type": "text", "text": "Worked."}]});
    let mut line = json!({"type": "assistant", "isSidechain": false, "message": message});
    if let Some(requested) = requested {
        line["requestedModel"] = requested.into();
    }
    line
}

#[test]
fn s4_5_a_context_that_is_as_full_as_allowed_pauses_the_loop() {
    let half = [10_000, 60_000, 30_000];
    let cases = [
        ("claude-sonnet-4-5", None, half, Some(50)),
        ("claude-sonnet-4-5", None, [10_000, 60_000, 29_000], None),
        ("claude-sonnet-4-5", Some("claude-sonnet-4-5[1m]"), half, None),
        ("claude-opus-5-5", None, half, None),
        ("claude-sonnet-5-5", None, [0, 500_000, 0], Some(50)),
        // More than fits into the smaller one.
        ("claude-opus-4-8", None, [0, 300_000, 0], None),
    ];
    for (model, requested, tokens, pauses) in cases {
        let bed = with_key("max_context: 50");
        bed.transcript().user("go").line(answer(model, requested, tokens)).line(json!({
            "type": "assistant", "isSidechain": false, "isApiErrorMessage": true,
            "message": {"id": "e", "model": "<synthetic>", "usage": {"input_tokens": 0}, "content": []},
        }));
        let said = bed.stop("Worked.").client(CLIENT).send();
        let evidence = bed.journal().pop().unwrap()["event"]["evidence"].clone();
        assert_eq!(evidence["max_context"], 50);
        match pauses {
            Some(percent) => {
                let line = said.line();
                assert!(
                    line.contains("context is 50 % full") && line.contains("`ralph run --continue` goes on in fresh sessions"),
                    "{line}"
                );
                assert_eq!((&evidence["context"], bed.value("active").as_str()), (&percent.into(), "false"), "{model}");
            }
            None => assert!(said.blocks(), "{model} {requested:?}: {evidence}"),
        }
    }
}

#[test]
fn s4_5_a_context_that_was_made_shorter_is_not_full_and_nobody_looks_unasked() {
    let full = || answer("claude-sonnet-4-5", None, [190_000, 0, 0]);
    let bed = with_key("max_context: 50");
    bed.transcript()
        .user("go")
        .line(full())
        .line(json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"preTokens": 190_000}}));
    assert!(bed.stop("Worked.").send().blocks());
    let bed = with_key("idle_rounds: 9");
    bed.transcript().user("go").line(full());
    assert!(bed.stop("Worked.").send().blocks());
    let evidence = bed.journal().pop().unwrap()["event"]["evidence"].clone();
    assert_eq!((evidence.get("context"), evidence.get("max_context")), (None, None));
}

/// A round, and how long the hook took.
fn round(bed: &Bed) -> (Answer, Duration) {
    tick();
    let begun = Instant::now();
    let answer = bed.work().client(CLIENT).send();
    (answer, begun.elapsed())
}

/// What the settings say about the two variables.
fn set(bed: &Bed) -> [Value; 2] {
    let text = fs::read_to_string(bed.path(SETTINGS)).unwrap_or_else(|_| "{}".to_owned());
    let settings: Value = serde_json::from_str(&text).unwrap();
    NAMES.map(|name| settings["env"][name].clone())
}

fn compacts(bed: &Bed) -> Answer {
    bed.event("SessionStart").field("source", "compact").client(CLIENT).send()
}

#[test]
fn s4_5_every_n_rounds_the_client_is_had_compact_and_the_settings_are_as_they_were() {
    let bed = with_key("compact_every: 2");
    bed.write(SETTINGS, "{\n  \"env\": { \"A\": \"1\", \"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE\": \"80\" },\n  \"model\": \"opus\"\n}\n");
    let before = bed.read(SETTINGS);
    assert!(round(&bed).0.blocks());
    assert_eq!(bed.read(SETTINGS), before);
    let (answer, took) = round(&bed);
    assert!(answer.blocks() && took >= Duration::from_millis(2_500), "{took:?}: the client needs its time");
    assert_eq!(set(&bed), [json!("100000"), json!("1")]);
    assert!(compacts(&bed).json.unwrap()["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("A Ralph loop is active"));
    assert_eq!(set(&bed), [json!(""), json!("80")], "taken out it would still count");
    let (answer, took) = round(&bed);
    assert!(answer.blocks() && took > Duration::from_secs(1), "{took:?}: a short iteration ends before the client has seen it");
    assert_eq!(set(&bed), [json!(""), json!("80")], "the count begins anew");
    assert!(round(&bed).0.blocks());
    assert_eq!(set(&bed), [json!("100000"), json!("1")]);
    compacts(&bed);
    bed.event("SessionEnd").field("reason", "other").send().is_silent();
    assert_eq!(serde_json::from_str::<Value>(&bed.read(SETTINGS)).unwrap(), serde_json::from_str::<Value>(&before).unwrap());
    assert!(!bed.path(".ralph/compaction.json").exists());
    let asked = bed.journal().iter().filter(|r| r["event"]["event"] == "compaction").count();
    assert_eq!(asked, 2);
}

#[test]
fn s4_5_nothing_is_left_on_whatever_happens() {
    let on = || {
        let bed = with_key("compact_every: 1");
        assert!(round(&bed).0.blocks());
        assert_eq!(set(&bed), [json!("100000"), json!("1")]);
        bed
    };
    let off = |bed: &Bed| assert!(set(bed).iter().all(|value| *value == json!("") || value.is_null()), "{:?}", set(bed));
    let bed = on();
    bed.ralph_ok(&["pause"]);
    off(&bed);
    let bed = on();
    bed.ralph_ok(&["cancel"]);
    off(&bed);
    let bed = on();
    assert!(bed.stop("<promise>DONE</promise>").client(CLIENT).send().line().contains("complete"));
    off(&bed);
    let bed = on();
    bed.event("SessionEnd").field("reason", "other").send().is_silent();
    assert!(!bed.path(SETTINGS).exists(), "there was none");
    // Killed in between: whoever begins or stops here next.
    let bed = on();
    bed.event("SessionStart").field("source", "startup").session(OTHER).send();
    off(&bed);
    let bed = on();
    bed.typed("/cancel-ralph").session(OTHER).send().instead();
    bed.work().session(OTHER).send().is_silent();
    off(&bed);
    let bed = on();
    let found = bed.ralph(&["doctor", "--json"]).stdout;
    assert!(found.contains("store.compaction"), "{found}");
    bed.ralph(&["doctor", "--fix"]);
    off(&bed);
    assert!(!bed.ralph(&["doctor", "--json"]).stdout.contains("store.compaction"));
}

#[test]
fn s4_5_a_client_that_does_not_compact_is_given_up_once() {
    let bed = with_key("compact_every: 1");
    round(&bed);
    assert!(round(&bed).0.blocks());
    assert_eq!(set(&bed), [json!("100000"), json!("1")], "it has two stops");
    let (answer, _) = round(&bed);
    assert!(answer.blocks() && answer.json.unwrap()["systemMessage"].as_str().unwrap().contains("not made shorter"));
    assert_eq!(set(&bed), [json!(""), json!("")]);
    let (answer, _) = round(&bed);
    assert!(!answer.json.unwrap().to_string().contains("not made shorter"));
    assert_eq!(bed.iteration(), 5);
    // Settings that cannot be changed safely are left alone, and the loop goes on.
    for broken in ["{ // mine\n}", "[]", "{\"env\": 3}"] {
        let bed = with_key("compact_every: 1");
        bed.write(SETTINGS, broken);
        let (answer, took) = round(&bed);
        assert_eq!((answer.blocks(), bed.read(SETTINGS).as_str(), took < Duration::from_secs(2)), (true, broken, true));
        assert!(answer.json.unwrap().to_string().contains("not made shorter"));
        assert!(!round(&bed).0.json.unwrap().to_string().contains("not made shorter"));
    }
    // An older client is not known to do it.
    let bed = with_key("compact_every: 1");
    let told = bed.work().client("claude-code_2-1-100_harness").send();
    assert!(told.blocks() && told.json.unwrap().to_string().contains("not known to do it"));
    assert!(!bed.path(SETTINGS).exists());
}
