//! Other agents than Claude Code: their own events, in the forms that were captured from the real programs, through `ralph hook NAME`.
//!
//! One table of agents and one list of cases for all of them.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use ralph_testkit::pty::Pty;
use serde_json::{Map, Value, json};

use crate::common::{Answer, Bed, LOOP, PROMPT, RALPH, loop_text, now, now_ms, run};

/// For what happens at once on a quiet machine.
const SOON: Duration = Duration::from_mins(2);

/// A session of version 4, and one of version 7 for the agents that make such.
const V4: &str = "5e551017-0000-4000-8000-000000000001";
const V7: &str = "01a1e2ed-0c37-7510-bb73-dfe78fdd8113";

struct Agent {
    name: &'static str,
    session: &'static str,
    /// Of the environment of its hooks.
    vars: &'static [(&'static str, &'static str)],
    stop: &'static str,
    prompt: &'static str,
    /// Fields that all of its events have, and those of a stop.
    every: fn() -> Value,
    at_stop: fn(&str) -> Value,
    /// Its transcript: a prompt, words of the agent's, and whatever it writes when it calls its hook.
    transcript: Option<fn(&str) -> Vec<Value>>,
}

const AGENTS: [Agent; 7] = [
    Agent {
        name: "codex",
        session: V7,
        vars: &[],
        stop: "Stop",
        prompt: "UserPromptSubmit",
        every: || json!({"model": "m", "permission_mode": "bypassPermissions", "turn_id": "01a1e2ed-0c66-7573-94d0-500fffa96c2c"}),
        at_stop: |said| json!({"last_assistant_message": said}),
        transcript: None,
    },
    Agent {
        name: "gemini",
        session: V4,
        vars: &[("GEMINI_SESSION_ID", V4), ("GEMINI_PROJECT_DIR", "/project")],
        stop: "AfterAgent",
        prompt: "BeforeAgent",
        every: || json!({"timestamp": now()}),
        // All that was said in the turn, not the last message.
        at_stop: |said| json!({"prompt": "do it", "prompt_response": format!("I run it.\n{said}")}),
        transcript: Some(|said| vec![json!({"id": "a", "type": "gemini", "content": said}), json!({"$set": {"lastUpdated": now()}})]),
    },
    Agent {
        name: "copilot",
        session: V4,
        vars: &[("COPILOT_CLI", "1")],
        stop: "Stop",
        prompt: "UserPromptSubmit",
        every: || json!({"timestamp": now()}),
        at_stop: |_| json!({"stop_reason": "end_turn"}),
        transcript: Some(|said| {
            let input = json!({"timestamp": now_ms() + 1_000});
            vec![
                json!({"type": "assistant.message", "data": {"content": said, "toolRequests": []}}),
                json!({"type": "hook.start", "data": {"hookType": "agentStop", "input": input}}),
            ]
        }),
    },
    Agent {
        name: "qwen",
        session: V4,
        vars: &[("QWEN_CODE_SESSION_ID", V4), ("GEMINI_PROJECT_DIR", "/project")],
        stop: "Stop",
        prompt: "UserPromptSubmit",
        every: || json!({"timestamp": now(), "permission_mode": "yolo", "prompt_id": "s########0"}),
        at_stop: |said| json!({"last_assistant_message": said, "background_tasks": [], "crons": [], "context_usage": 0.1}),
        transcript: None,
    },
    Agent {
        name: "droid",
        session: V4,
        vars: &[("FACTORY_PROJECT_DIR", "/project"), ("DROID_PROJECT_DIR", "/project")],
        stop: "Stop",
        prompt: "UserPromptSubmit",
        every: || json!({"permission_mode": "auto-low"}),
        at_stop: |_| json!({"message_id": "m", "tool_execution_count": 0, "elapsed_time": 7}),
        transcript: Some(|said| {
            let content = json!([{"type": "text", "text": said}]);
            let hook = json!({"role": "user", "content": [], "hookEventName": "Stop"});
            vec![
                json!({"type": "message", "id": "m", "message": {"role": "assistant", "content": content}}),
                json!({"type": "message", "message": hook}),
            ]
        }),
    },
    Agent {
        name: "grok",
        session: V7,
        vars: &[("GROK_SESSION_ID", V7), ("GROK_HOOK_EVENT", "stop")],
        stop: "Stop",
        prompt: "UserPromptSubmit",
        every: || json!({"hookEventName": "stop", "sessionId": V7, "timestamp": now(), "promptId": "394502f9"}),
        at_stop: |said| json!({"reason": "end_turn", "lastAssistantMessage": said, "backgroundTasks": []}),
        transcript: None,
    },
    // The words of ralph's own plugin.
    Agent {
        name: "opencode",
        session: "ses_e117c28b0ffeTcOJUwuQgRdrbH",
        vars: &[],
        stop: "Stop",
        prompt: "UserPromptSubmit",
        every: || json!({"opencode": "plugin"}),
        at_stop: |said| json!({"prompt_id": "msg_1", "last_assistant_message": said}),
        transcript: None,
    },
];

impl Agent {
    fn event(&self, bed: &Bed, name: &str, more: Value) -> Map<String, Value> {
        let own = json!({"session_id": self.session, "cwd": bed.dir(), "hook_event_name": name, "transcript_path": self.file(bed)});
        [own, (self.every)(), more].into_iter().flat_map(|fields| fields.as_object().unwrap().clone()).collect()
    }

    fn file(&self, bed: &Bed) -> std::path::PathBuf {
        bed.home().join(format!("{}-transcript.jsonl", self.name))
    }

    /// The agent stops, and said so before.
    fn stops(&self, bed: &Bed, said: &str, active: bool) -> Answer {
        self.stops_as(bed, said, &json!({(if self.name == "grok" { "stopHookActive" } else { "stop_hook_active" }): active}))
    }

    /// The same, with more in the event.
    fn stops_as(&self, bed: &Bed, said: &str, with: &Value) -> Answer {
        if let Some(lines) = self.transcript {
            let prompt = match self.name {
                "gemini" => json!({"type": "user", "content": [{"text": "go on"}]}),
                "copilot" => json!({"type": "user.message", "data": {"content": "go on"}}),
                _ => json!({"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": "go on"}]}}),
            };
            let lines = [vec![prompt], lines(said)].concat();
            let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
            let before = fs::read_to_string(self.file(bed)).unwrap_or_default();
            fs::write(self.file(bed), before + &text).unwrap();
        }
        let mut event = self.event(bed, self.stop, (self.at_stop)(said));
        event.extend(with.as_object().unwrap().clone());
        self.sends(bed, event, self.name)
    }

    /// Sends an event to the hook that is registered with `host`.
    fn sends(&self, bed: &Bed, event: Map<String, Value>, host: &str) -> Answer {
        let mut command = bed.command(RALPH);
        command.args(["hook", host, "--timeout", "3600", "--via", "user"]).envs(self.vars.iter().copied()).current_dir(bed.dir());
        Answer::of(&run(&mut command, Value::Object(event).to_string().as_bytes()))
    }

    /// What the hook is told of a command that was typed on the agent's screen.
    fn as_told(&self, command: &str) -> String {
        match (self.name, command.split_once(' ').unwrap_or((command, ""))) {
            ("codex", _) => format!("${command}"),
            ("droid", _) => format!("<system-notification>\n\n/{command}\n\n</system-notification>"),
            ("copilot", (name, typed)) => {
                let typed = if typed.is_empty() { String::new() } else { format!("\nARGUMENTS: {typed}\n") };
                format!(
                    "The user explicitly invoked the \"/{name}\" skill. Follow its instructions now.\n\n<skill-context name=\"{name}\">\nBase directory for this \
                     skill: /home/user/.copilot/skills/{name}\n\nWork on it.\n\n{typed}</skill-context>"
                )
            }
            _ => format!("/{command}"),
        }
    }

    fn types(&self, bed: &Bed, prompt: &str) -> Answer {
        self.sends(bed, self.event(bed, self.prompt, json!({"prompt": prompt})), self.name)
    }
}

/// A loop that waits for a session.
fn bed() -> Bed {
    let bed = Bed::new();
    bed.write(LOOP, loop_text("", 1, 0, "DONE").replace("session_id: \"\"\n", ""));
    bed
}

#[test]
fn h3_a_loop_goes_on_and_ends_with_a_claim_in_every_agent() {
    for agent in &AGENTS {
        let bed = bed();
        let answer = agent.stops(&bed, "I have begun.", false);
        assert!(answer.reason().starts_with(PROMPT), "{}: {answer:?}", agent.name);
        assert_eq!((bed.iteration(), bed.journal().last().unwrap()["state"]["host"].as_str()), (2, Some(agent.name)));
        // Quoted, it is no claim.
        let quoted = agent.stops(&bed, "I will say `<promise>DONE</promise>` when it is done.", true);
        assert!(quoted.blocks(), "{}: {quoted:?}", agent.name);
        agent.stops(&bed, "All is done.\n\n<promise>DONE</promise>", true);
        assert!(!bed.exists(LOOP), "{}: it is complete", agent.name);
        assert_eq!(bed.last_ended()["status"], "complete", "{}", agent.name);
    }
}

/// Codex, Gemini CLI and Qwen Code tell the agent of the tag with `&lt;` for `<`.
#[test]
fn h3_a_claim_that_came_back_escaped_counts_where_tags_are_escaped() {
    for (agent, ends) in [(&AGENTS[0], true), (&AGENTS[1], true), (&AGENTS[3], true), (&AGENTS[4], false)] {
        let bed = bed();
        agent.stops(&bed, "Done.\n\n&lt;promise&gt;DONE&lt;/promise&gt;", false);
        assert_eq!(!bed.exists(LOOP), ends, "{}", agent.name);
    }
}

/// Grok passes nothing on. Copilot calls a new session `new`.
#[test]
fn h3_a_session_that_begins_hears_of_a_loop_that_waits() {
    for agent in &AGENTS {
        let bed = bed();
        let source = if ["copilot", "grok"].contains(&agent.name) { "new" } else { "startup" };
        let mut event = agent.event(&bed, "SessionStart", json!({"source": source}));
        event.remove("turn_id");
        let answer = agent.sends(&bed, event, agent.name);
        let json = answer.json.clone().unwrap_or_default();
        let context = json["hookSpecificOutput"]["additionalContext"].as_str().or(json["additionalContext"].as_str());
        let hears = context.is_some_and(|context| context.contains(PROMPT));
        assert_eq!(hears, agent.name != "grok", "{}: {answer:?}", agent.name);
        assert_eq!(bed.iteration(), 1);
    }
}

#[test]
fn h2_a_stop_without_new_words_is_none() {
    for agent in &AGENTS {
        let bed = bed();
        agent.stops(&bed, "I have begun.", false);
        let answer = agent.stops(&bed, "", true);
        assert!(!answer.blocks(), "{}: {answer:?}", agent.name);
        assert_eq!(bed.iteration(), 2, "{}: it costs no iteration", agent.name);
    }
}

/// What the service said counts, not the agent's word for it: Grok (captured from 1.0.41) calls a key that does not count a `server_error` and credit that is used up a
/// `rate_limit`. Qwen sends these fields on its screen (read in 0.24.4). The advice is the agent's own.
#[test]
fn h3_a_turn_that_fails_is_named_by_what_the_service_said() {
    const SIGN_IN: &str = "Unauthorized (401) from http://127.0.0.1:40123/v1/chat/completions: invalid_request_error: Incorrect API key provided\n\n  \
                           Model:     fake-model\n  Auth:      ApiKey\n  Version:   1.0.41\n  Available: grok-4.6, grok-4.5, fake…";
    const NO_CREDIT: &str = "insufficient_quota: You exceeded your current quota, please check your plan and billing details.";
    const TOO_LONG: &str = "This model's maximum context length is 1000 tokens. However, your messages resulted in 5000 tokens.";
    let grok = |said: &str| format!("API error (status 429 Too Many Requests): {said}");
    let (signs_in, fresh) = ("start `grok` and sign in, then /ralph-resume", "`ralph run --continue` goes on in fresh sessions");
    for (name, error, said, status, told) in [
        ("grok", "server_error", SIGN_IN.to_owned(), "paused", ["not signed in (status 401)", signs_in]),
        ("grok", "rate_limit", grok(NO_CREDIT), "paused", ["no credit left", "Add credit"]),
        ("grok", "rate_limit", grok("requests: Rate limit reached for requests"), "parked", ["the rate limit", ""]),
        ("grok", "invalid_request", format!("API error (status 400 Bad Request): {TOO_LONG}"), "paused", ["context is too long", fresh]),
        ("grok", "server_error", "something new".to_owned(), "parked", ["the model's service", ""]),
        ("qwen", "authentication_failed", "401 Incorrect API key provided".to_owned(), "paused", ["not signed in", "sign in (`/auth`)"]),
        ("qwen", "rate_limit", format!("429 {NO_CREDIT}"), "paused", ["no credit left", "Add credit"]),
        ("qwen", "rate_limit", "429 Rate limit reached for requests".to_owned(), "parked", ["the rate limit", ""]),
        ("qwen", "server_error", "500 The server had an error".to_owned(), "parked", ["status 500", ""]),
        ("qwen", "invalid_request", format!("400 {TOO_LONG}"), "paused", ["context is too long", fresh]),
        ("qwen", "loop_detected", "consecutive_identical_tool_calls".to_owned(), "active", ["", ""]),
    ] {
        let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
        let bed = bed();
        agent.stops(&bed, "I have begun.", false);
        let field = if name == "grok" { "errorDetails" } else { "error_details" };
        let event = agent.event(
            &bed,
            "StopFailure",
            json!({"error": error, field: said, "last_assistant_message": format!("Turn failed: {said}")}),
        );
        agent.sends(&bed, event, name).is_silent();
        let shown = bed.status();
        assert_eq!((shown["status"].as_str(), bed.iteration()), (Some(status), 2), "{name} {error} {said}: {shown}");
        // The agent shows no answer to this event: the line comes with the next stop.
        let line = agent.stops(&bed, "I go on.", false).json.map(|json| json["systemMessage"].to_string()).unwrap_or_default();
        let waits = shown["waits"]["what"].as_str().unwrap_or_default();
        assert!(told.iter().all(|part| format!("{waits}{line}").contains(part)), "{name} {error} {said}: {waits} {line}");
        assert!(!line.contains("/login"), "{name}: {line}");
    }
}

#[test]
fn h2_an_event_of_another_agent_is_none_of_ours() {
    for agent in &AGENTS {
        let bed = bed();
        for (name, more) in
            [("SessionStart", json!({"source": "startup"})), (agent.stop, (agent.at_stop)("x")), ("SessionEnd", json!({"reason": "other"}))]
        {
            let mut event = agent.event(&bed, name, more);
            // Codex's sessions begin and end without a turn.
            if name.starts_with("Session") {
                event.remove("turn_id");
            }
            // The hook that is registered with Claude Code, as others run it: with its arguments, or bare.
            agent.sends(&bed, event.clone(), "claude").is_silent();
            let mut bare = bed.command(RALPH);
            bare.envs(agent.vars.iter().copied()).current_dir(bed.dir());
            Answer::of(&run(&mut bare, Value::Object(event.clone()).to_string().as_bytes())).is_silent();
            let other = AGENTS.iter().find(|other| other.name != agent.name).unwrap();
            agent.sends(&bed, event, other.name).is_silent();
        }
        assert_eq!(bed.iteration(), 1);
        assert!(!bed.exists(".ralph/journal") || bed.journal().is_empty(), "{}", agent.name);
    }
    // Nor is Claude Code's an event of theirs.
    let bed = bed();
    let event = bed.stop("I have begun.");
    for agent in &AGENTS {
        let command = event.command();
        let mut own = bed.command(RALPH);
        own.args(["hook", agent.name]).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Answer::of(&run(&mut own, event.json().as_bytes())).is_silent();
    }
    assert_eq!(bed.iteration(), 1);
}

/// The agent would end the turn by itself: the loop pauses before, and says how to go on.
#[test]
fn h3_a_loop_pauses_one_block_before_the_agents_own_cap() {
    let of_the_loop = ["", "idle_rounds: 3\n", "idle_rounds: 0\n"];
    for ((name, blocks), own) in
        [("copilot", 6), ("qwen", 5), ("grok", 6), ("codex", 9)].into_iter().flat_map(|case| of_the_loop.map(|own| (case, own)))
    {
        let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
        let bed = bed();
        // No limit of the loop's lifts the agent's.
        bed.write(LOOP, format!("---\niteration: 1\ncompletion_promise: DONE\nstall_rounds: 0\n{own}---\n\n{PROMPT}\n"));
        let is_sent_on =
            |answer: &Answer| answer.json.as_ref().is_some_and(|json| json["reason"].as_str().is_some_and(|r| r.starts_with(PROMPT)));
        let sent_back = (0..9).map(|n| agent.stops(&bed, &format!("Step {n}."), n > 0)).take_while(is_sent_on).count();
        assert_eq!(sent_back, blocks, "{name}");
        if blocks < 9 {
            assert_eq!(
                (bed.status()["status"].as_str(), bed.codes().last().map(String::as_str)),
                (Some("paused"), Some("host.block-cap")),
                "{name}"
            );
        }
    }
}

/// Copilot shows its person no line of a hook's: its last block has the agent tell that the loop is paused, and that stop is none of the loop's.
#[test]
fn h3_copilots_agent_tells_that_the_loop_paused_at_the_cap() {
    let (copilot, bed) = (&AGENTS[2], bed());
    bed.write(LOOP, format!("---\niteration: 1\ncompletion_promise: DONE\nstall_rounds: 0\n---\n\n{PROMPT}\n"));
    for n in 0..6 {
        assert!(copilot.stops(&bed, &format!("Step {n}."), n > 0).reason().starts_with(PROMPT));
    }
    let last = copilot.stops(&bed, "Step 6.", true).reason();
    assert!(
        last.contains("Tell the person only this") && last.contains("paused at iteration 7") && last.contains("/ralph-resume"),
        "{last}"
    );
    // It comes back as a prompt, which no person typed.
    copilot.types(&bed, &last).is_silent();
    let before = bed.journal().len();
    copilot.stops(&bed, "Ralph: paused at iteration 7. <promise>DONE</promise>", true).is_silent();
    assert_eq!((bed.journal().len(), bed.codes().len(), bed.status()["status"].as_str()), (before, 7, Some("paused")));
    // A person types, and the next stop is told again that nothing was checked.
    copilot.types(&bed, "What is next?").is_silent();
    copilot.stops(&bed, "This is next.", false).is_silent();
    assert_eq!(bed.codes().last().unwrap(), "loop.paused");
    assert_eq!(context(&copilot.types(&bed, "Tell me.")).matches("Tell the person this first").count(), 1);
    copilot.types(&bed, "/ralph-resume");
    assert!(copilot.stops(&bed, "Step 7.", false).reason().starts_with(PROMPT), "a new turn, a new count");
}

/// The text for the agent, however the agent wants it.
fn context(answer: &Answer) -> String {
    let json = answer.json.clone().unwrap_or_default();
    json["hookSpecificOutput"]["additionalContext"].as_str().or(json["additionalContext"].as_str()).unwrap_or_default().to_owned()
}

/// What Copilot does not show waits for the person's next prompt, and is told once.
#[test]
fn h3_copilots_agent_passes_on_what_its_person_is_told() {
    let (copilot, bed) = (&AGENTS[2], bed());
    let started = context(&begins(copilot, &bed, V4, "new"));
    assert!(started.contains("Tell the person this first") && started.contains("a loop waits for a session"), "{started}");
    assert!(copilot.stops(&bed, "I have begun.", false).reason().starts_with(PROMPT));
    // What it is sent back with is no moment for it.
    copilot.types(&bed, PROMPT).is_silent();
    copilot.stops(&bed, "All is done.\n\n<promise>DONE</promise>", true).is_silent();
    assert_eq!(bed.last_ended()["status"], "complete");
    let told = context(&copilot.types(&bed, "And now?"));
    assert!(told.contains("Tell the person this first") && told.contains("complete"), "{told}");
    copilot.types(&bed, "And now?").is_silent();
    bed.write(LOOP, loop_text("", 3, 0, "DONE").replace("session_id: \"\"\n", "").replace("active: true", "active: false"));
    let told = context(&begins(copilot, &bed, "5e551017-0000-4000-8000-000000000009", "new"));
    assert!(told.contains("a loop is paused here") && told.contains("/ralph-resume goes on with it"), "{told}");
}

/// Codex cuts the middle out of what it passes on from 10,000 bytes on: the agent reads a longer task from its file, and the rest arrives whole.
#[test]
fn h3_a_task_that_the_agent_would_get_cut_is_read_from_its_file() {
    let task = "Write it down, and leave nothing out. ".repeat(300);
    for agent in &AGENTS {
        let bed = bed();
        bed.write(LOOP, loop_text("", 1, 0, "DONE").replace("session_id: \"\"\n", "").replace(PROMPT, task.trim()));
        let said = agent.stops(&bed, "I will say `<promise>DONE</promise>` when it is done.", false).reason();
        assert!(said.contains("Your message had a promise tag that does not count"), "{}: {said}", agent.name);
        bed.ralph_ok(&["pause"]);
        let resumed = match agent.name {
            "grok" | "opencode" => None,
            _ => Some(context(&agent.types(&bed, &agent.as_told("ralph-resume")))),
        };
        for text in resumed.iter().chain([&said]) {
            let by_file = text.contains("It is in .claude/ralph-loop.local.md") && text.len() < 10_000;
            assert_eq!((by_file, text.contains(task.trim())), (agent.name == "codex", agent.name != "codex"), "{}: {text}", agent.name);
        }
    }
}

/// Copilot did not write in time that it calls its hook, as on a machine that is busy, or in a version with another word for that: new words are the stop's. Old
/// ones are no stop, and the log says so.
#[test]
fn h2_a_transcript_that_stays_behind_is_taken_as_it_is_and_never_twice() {
    let (copilot, bed) = (&AGENTS[2], bed());
    let says = |line: Value| {
        let before = fs::read_to_string(copilot.file(&bed)).unwrap_or_default();
        fs::write(copilot.file(&bed), format!("{before}{line}\n")).unwrap();
    };
    let stops = |active: bool| {
        let event = copilot.event(&bed, "Stop", json!({"stop_reason": "end_turn", "stop_hook_active": active}));
        copilot.sends(&bed, event, "copilot")
    };
    let log = || bed.hook_log().pop().unwrap();
    // Nothing at all is written yet.
    stops(false).is_silent();
    assert_eq!(bed.iteration(), 1);
    let agent = |text: &str| json!({"type": "assistant.message", "data": {"content": text, "toolRequests": []}});
    says(json!({"type": "user.message", "data": {"content": "begin"}}));
    says(agent("I have begun."));
    assert!(stops(false).reason().starts_with(PROMPT));
    assert_eq!(bed.iteration(), 2);
    // Neither the prompt nor the new words are written yet.
    stops(true).is_silent();
    assert!(log().contains("transcript.late") && log().contains("did not write down in time"), "{}", log());
    assert_eq!((bed.iteration(), bed.codes().len()), (2, 1));
    assert!(bed.ralph_ok(&["log"]).contains("did not write down in time"));
    let told = context(&copilot.types(&bed, "Go on."));
    assert!(told.contains("this stop is allowed and the loop is kept as it is"), "{told}");
    says(json!({"type": "user.message", "data": {"content": "Go on."}}));
    says(agent("All is done.\n\n<promise>DONE</promise>"));
    stops(true).is_silent();
    assert!(!bed.exists(LOOP), "it is complete");
}

/// Where the client does not say where it was started, a session stays in the project of its loop, whatever folders appear below it.
#[test]
fn t10_a_folder_of_the_agents_making_takes_no_session_out_of_its_loop() {
    let codex = AGENTS.iter().find(|agent| agent.name == "codex").unwrap();
    let bed = bed();
    assert!(codex.stops(&bed, "I have begun.", false).blocks());
    bed.write("src/.ralph/x", "mine");
    std::fs::create_dir_all(bed.path("src/.claude")).unwrap();
    let mut event = codex.event(&bed, "Stop", json!({"last_assistant_message": "I am done, it seems.", "stop_hook_active": true}));
    event.insert("cwd".to_owned(), json!(bed.path("src")));
    let mut command = bed.command(RALPH);
    command.args(["hook", "codex"]).envs(codex.vars.iter().copied()).current_dir(bed.path("src"));
    let answer = Answer::of(&run(&mut command, Value::Object(event).to_string().as_bytes()));
    assert!(answer.blocks(), "{answer:?}");
    assert_eq!(bed.iteration(), 3);
}

/// Qwen's settings in the project count as they do there, but for a higher cap: an agent may write them.
#[test]
fn h3_a_lower_cap_of_the_project_counts_and_a_higher_one_does_not() {
    let qwen = &AGENTS[3];
    for (project, user, blocks) in [(4, None, 2), (100, None, 5), (4, Some(100), 2), (100, Some(6), 4)] {
        let bed = bed();
        bed.write(LOOP, format!("---\niteration: 1\ncompletion_promise: DONE\nstall_rounds: 0\n---\n\n{PROMPT}\n"));
        let text = |cap: u64| format!("{{\"stopHookBlockingCap\": {cap}}}");
        bed.write(".qwen/settings.json", text(project));
        if let Some(cap) = user {
            std::fs::create_dir_all(bed.home().join(".qwen")).unwrap();
            std::fs::write(bed.home().join(".qwen/settings.json"), text(cap)).unwrap();
        }
        let sent_back = (0..9).take_while(|n| qwen.stops(&bed, &format!("Step {n}."), *n > 0).blocks()).count();
        assert_eq!(sent_back, blocks, "{project} {user:?}");
    }
}

/// Another session of that agent begins, after `/clear` or as its `source` says.
fn begins(agent: &Agent, bed: &Bed, next: &str, source: &str) -> Answer {
    let mut start = agent.event(bed, "SessionStart", json!({"source": source, "session_id": next}));
    start.remove("turn_id");
    // Their variable follows the session.
    let mut command = bed.command(RALPH);
    let vars = agent.vars.iter().map(|(name, value)| (*name, if *value == V4 { next } else { value }));
    command.args(["hook", agent.name]).envs(vars).current_dir(bed.dir());
    Answer::of(&run(&mut command, Value::Object(start).to_string().as_bytes()))
}

const NEXT_V7: &str = "01a1e2ed-0c37-7510-bb73-dfe78fdd8114";

#[test]
fn h3_a_loop_goes_along_with_clear() {
    for name in ["gemini", "qwen", "codex", "droid"] {
        let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
        let bed = bed();
        agent.stops(&bed, "I have begun.", false);
        if name == "codex" {
            bed.ralph_ok(&["pause"]);
        } else {
            agent.sends(&bed, agent.event(&bed, "SessionEnd", json!({"reason": "clear"})), name);
        }
        let next = if name == "codex" { NEXT_V7 } else { "5e551017-0000-4000-8000-000000000009" };
        let answer = begins(agent, &bed, next, if name == "droid" { "resume" } else { "clear" });
        let state = if name == "codex" { "is paused" } else { "goes on in this session" };
        assert!(answer.line().contains(&format!("{state} after /clear")), "{name}: {answer:?}");
        assert_eq!(bed.status()["session"], next, "{name}");
    }
}

/// Codex does not say which session a `/clear` was in. An armed loop may be that of another one, which finds it again at its next stop.
#[test]
fn h3_a_clear_in_codex_takes_no_other_sessions_loop() {
    let (codex, bed) = (&AGENTS[0], bed());
    assert!(codex.stops(&bed, "I have begun.", false).blocks());
    let told = begins(codex, &bed, NEXT_V7, "clear");
    assert!(told.line().contains("If that was the session you cleared, $ralph-resume goes on with it in this one."), "{told:?}");
    assert_eq!(bed.status()["session"], V7);
    begins(codex, &bed, NEXT_V7, "startup").is_silent();
    assert!(codex.stops(&bed, "The next step.", true).blocks(), "its own session goes on");
    assert_eq!(bed.iteration(), 3);
    // The person says so.
    let resumed =
        codex.sends(&bed, codex.event(&bed, "UserPromptSubmit", json!({"prompt": "$ralph-resume", "session_id": NEXT_V7})), "codex");
    let line = resumed.json.as_ref().and_then(|json| json["systemMessage"].as_str()).unwrap_or_default();
    assert_eq!((bed.status()["session"].as_str(), line.contains("goes on at iteration 3")), (Some(NEXT_V7), true), "{resumed:?}");
    // Of two that rest, each is named.
    bed.write(".claude/ralph-loop.second.local.md", loop_text("", 1, 0, "DONE").replace("session_id: \"\"\n", ""));
    assert!(codex.stops(&bed, "I have begun, too.", false).blocks());
    bed.ralph_ok(&["pause", "main"]);
    bed.ralph_ok(&["pause", "second"]);
    let told = begins(codex, &bed, "01a1e2ed-0c37-7510-bb73-dfe78fdd8115", "clear");
    assert!(told.line().contains("$ralph-resume second") && told.line().lines().count() == 2, "{told:?}");
}

/// Codex and Qwen Code tell of a subagent's stop as Claude Code does: the work of a check agent has to hold, and the loop's own stop is another one.
#[test]
fn h3_a_check_agents_work_is_verified() {
    for agent in AGENTS.iter().filter(|agent| ["codex", "qwen"].contains(&agent.name)) {
        let bed = bed();
        bed.write("ralph.toml", "[verify]\ncommands = [\"test -e made.txt\"]\n");
        bed.ralph_ok(&["trust", "--yes"]);
        let stops = |kind: &str| {
            let said = format!("I looked at it ({}).", now_ms());
            let fields = json!({"agent_id": "check-call_1", "agent_type": kind, "last_assistant_message": said, "stop_hook_active": false});
            agent.sends(&bed, agent.event(&bed, "SubagentStop", fields), agent.name)
        };
        stops("general-purpose").is_silent();
        let sent_back = stops("check");
        assert!(sent_back.blocks() && sent_back.reason().contains("made.txt"), "{}: {sent_back:?}", agent.name);
        bed.write("made.txt", "");
        assert!(!stops("check").blocks());
        assert_eq!(bed.iteration(), 1, "it was no stop of the loop's");
    }
}

#[test]
fn h3_an_interrupt_that_is_told_pauses_the_loop() {
    let (codex, bed) = (&AGENTS[0], bed());
    codex.stops(&bed, "I have begun.", false);
    codex.sends(&bed, codex.event(&bed, "Interrupt", json!({})), "codex").is_silent();
    assert_eq!(bed.status()["status"], "paused");
}

#[test]
fn h4_typed_commands_start_and_cancel_without_a_model_call() {
    for agent in &AGENTS {
        let bed = Bed::new();
        let started = match agent.name {
            "opencode" => {
                let command = json!({"command_name": "ralph-loop", "command_args": "Fix \"it\" $HOME --promise DONE", "prompt": "x"});
                agent.sends(&bed, agent.event(&bed, "UserPromptExpansion", command), agent.name)
            }
            _ => agent.types(&bed, &agent.as_told("ralph-loop Fix \"it\" $HOME --promise DONE")),
        };
        assert!(bed.exists(LOOP), "{}: {started:?}", agent.name);
        assert_eq!(bed.status()["prompt"], "Fix \"it\" $HOME", "{}", agent.name);
        // The model hears of it where the agent passes it on.
        let text = started.json.unwrap_or_default();
        let context = text["hookSpecificOutput"]["additionalContext"].as_str().or(text["additionalContext"].as_str());
        assert_eq!(
            context.is_some_and(|context| context.contains("<promise>DONE</promise>")),
            agent.name != "grok",
            "{}: {text}",
            agent.name
        );
        let cancelled = match agent.name {
            "opencode" => agent.sends(
                &bed,
                agent.event(
                    &bed,
                    "UserPromptExpansion",
                    json!({"command_name": "cancel-ralph", "command_args": "", "prompt_id": "s########1"}),
                ),
                agent.name,
            ),
            _ => agent.types(&bed, &agent.as_told("cancel-ralph")),
        };
        assert!(!bed.exists(LOOP), "{}: {cancelled:?}", agent.name);
        let json = cancelled.json.unwrap();
        let instead = if agent.name == "droid" { (None, Some(&json!(false))) } else { (Some("block"), None) };
        assert_eq!((json["decision"].as_str(), json.get("continue")), instead, "{}: the model is not asked", agent.name);
    }
}

/// Qwen Code reports a command as expanded when its model calls it as a skill, too (0.24.4): that is nobody's word. What is entered comes as a prompt.
#[test]
fn t1_h8_a_command_that_the_model_calls_does_nothing() {
    let qwen = &AGENTS[3];
    let calls = |bed: &Bed, name: &str, args: &str| {
        let command = json!({"command_name": name, "command_args": args, "prompt": format!("/{name} {args}")});
        qwen.sends(bed, qwen.event(bed, "UserPromptExpansion", command), "qwen")
    };
    let bed = bed();
    qwen.stops(&bed, "I have begun.", false);
    for (name, args) in
        [("cancel-ralph", ""), ("ralph-pause", ""), ("ralph-loop", "Tidy up --name other --verify 'touch ran'"), ("ralph-status", "")]
    {
        calls(&bed, name, args).is_silent();
    }
    assert_eq!((bed.status()["status"].as_str(), bed.exists(".claude/ralph-loop.other.local.md")), (Some("active"), false));
    // Entered, it is done; but its commands are not trusted because of it.
    qwen.types(&bed, "/cancel-ralph main");
    assert!(!bed.exists(LOOP));
    qwen.types(&bed, "/ralph-loop Tidy up --name other --promise DONE --verify 'touch ran'");
    assert!(bed.exists(".claude/ralph-loop.other.local.md"));
    qwen.stops(&bed, "All is done.\n\n<promise>DONE</promise>", false);
    assert!(bed.exists(".claude/ralph-loop.other.local.md") && !bed.exists("ran"));
}

/// Codex reports the prompt of a subagent, which the model wrote, under the session's own id (0.166.0).
#[test]
fn t1_h8_a_command_in_a_subagents_prompt_does_nothing() {
    for agent in &AGENTS {
        let bed = bed();
        agent.stops(&bed, "I have begun.", false);
        let mark = if agent.name == "codex" { '$' } else { '/' };
        let signs = [
            json!({"agent_id": "01a1f070-752c-7ec1-b4ec-b113466c7fdc", "agent_type": "default"}),
            json!({"agent_id": "c4f0f7eb", "parent_agent_id": agent.session}),
            json!({"subagentType": "general-purpose"}),
        ];
        for (said, sign) in ["cancel-ralph main", "ralph-pause", "ralph-loop Tidy up --name other --verify 'touch ran'"].iter().zip(signs) {
            let mut event = agent.event(&bed, agent.prompt, json!({"prompt": format!("{mark}{said}")}));
            event.extend(sign.as_object().unwrap().clone());
            agent.sends(&bed, event, agent.name).is_silent();
        }
        assert_eq!(bed.status()["status"], "active", "{}", agent.name);
        assert!(!bed.exists(".claude/ralph-loop.other.local.md"), "{}", agent.name);
    }
}

/// Copilot reports the stop of a subagent as a stop, in a session of its own: it takes no loop, and its words are no claim (1.0.102).
#[test]
fn t1_h9_a_subagents_stop_takes_no_loop() {
    for agent in &AGENTS {
        let bed = bed();
        agent
            .stops_as(&bed, "It is done.\n\n<promise>DONE</promise>", &json!({"agent_id": "c4f0f7eb", "agent_type": "general-purpose"}))
            .is_silent();
        assert!(bed.exists(LOOP), "{}", agent.name);
        assert_eq!(bed.iteration(), 1, "{}", agent.name);
    }
    // Of Droid's only the transcript's first line tells.
    let (droid, bed) = (&AGENTS[4], bed());
    fs::write(droid.file(&bed), json!({"type": "session_start", "id": V4, "callingSessionId": V7}).to_string() + "\n").unwrap();
    droid.stops(&bed, "It is done.\n\n<promise>DONE</promise>", false).is_silent();
    assert!(bed.exists(LOOP));
}

/// The files that make agents know ralph's commands keep their models from calling them.
#[test]
fn t1_h8_no_command_file_of_ralphs_may_be_called_by_a_model() {
    let bed = Bed::new();
    for (agent, folder) in [("qwen", ".qwen"), ("droid", ".factory"), ("grok", ".grok")] {
        fs::create_dir_all(bed.home().join(folder)).unwrap();
        let output = run(bed.command(RALPH).args(["init", "--agent", agent]), b"");
        assert!(output.success(), "{output:?}");
        let text = fs::read_to_string(bed.home().join(folder).join("commands/cancel-ralph.md")).unwrap();
        assert!(text.contains("\ndisable-model-invocation: true\n---\n"), "{agent}: {text}");
    }
}

/// Without its screen Copilot hands a command on as it was typed; words about a skill are no command.
#[test]
fn h4_only_the_whole_form_of_a_typed_command_is_one() {
    let copilot = &AGENTS[2];
    for (prompt, starts) in [
        ("/ralph-loop Fix it --promise DONE", true),
        ("Why does it say: The user explicitly invoked the \"/ralph-loop\" skill.\nARGUMENTS: Fix it\n</skill-context>", false),
        ("The user explicitly invoked the \"/ralph-loop\" skill.\nARGUMENTS: Fix it", false),
        ("The user explicitly invoked the \"/deploy\" skill.\nARGUMENTS: /ralph-loop Fix it\n</skill-context>", false),
    ] {
        let bed = Bed::new();
        copilot.types(&bed, prompt);
        assert_eq!(bed.exists(LOOP), starts, "{prompt}");
    }
    let (droid, bed) = (&AGENTS[4], Bed::new());
    droid.types(&bed, "<system-notification>\n\nThe build ran /ralph-loop.\n\n</system-notification>");
    assert!(!bed.exists(LOOP));
}

/// Several agents report what ralph sent them back with as a prompt, and a task may look like a command.
#[test]
fn h3_text_that_ralph_sent_back_is_no_command() {
    for agent in AGENTS.iter().filter(|agent| agent.name != "codex") {
        let bed = bed();
        bed.write(LOOP, "---\niteration: 1\ncompletion_promise: DONE\n---\n\n/cancel-ralph must be documented\n");
        let reason = agent.stops(&bed, "I have begun.", false).reason();
        agent.types(&bed, &reason).is_silent();
        assert!(bed.exists(LOOP), "{}: the loop lives", agent.name);
    }
}

#[test]
fn h3_another_session_is_left_alone() {
    for agent in &AGENTS {
        let bed = bed();
        agent.stops(&bed, "I have begun.", false);
        let other = if agent.name == "opencode" {
            "ses_other"
        } else if agent.session == V7 {
            "01a1e2ed-0c37-7510-bb73-dfe78fdd8199"
        } else {
            "5e551017-0000-4000-8000-000000000002"
        };
        let mut event = agent.event(&bed, agent.stop, (agent.at_stop)("<promise>DONE</promise>"));
        event.insert("session_id".to_owned(), other.into());
        let mut command = bed.command(RALPH);
        let vars = agent.vars.iter().map(|(name, value)| (*name, if *value == agent.session { other } else { value }));
        command.args(["hook", agent.name]).envs(vars).current_dir(bed.dir());
        Answer::of(&run(&mut command, Value::Object(event).to_string().as_bytes())).is_silent();
        assert_eq!(bed.iteration(), 2, "{}", agent.name);
    }
}

/// Every string in a JSON value that calls ralph's hook.
fn lines_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.contains(" hook ") => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(lines_of).collect(),
        Value::Object(fields) => fields.values().flat_map(lines_of).collect(),
        _ => Vec::new(),
    }
}

/// What `init` writes is what the agent runs: the line of the stop, taken from the agent's own file, carries a loop. A second time changes nothing, and
/// `uninstall` gives every byte back.
#[test]
fn h7_init_registers_with_every_agent_and_uninstall_gives_the_bytes_back() {
    let files = [
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
        ("copilot", ".copilot/hooks/ralph.json"),
        ("qwen", ".qwen/settings.json"),
        ("droid", ".factory/settings.json"),
        ("grok", ".grok/hooks/ralph.json"),
    ];
    for (agent, (name, file)) in AGENTS.iter().zip(files) {
        assert_eq!(agent.name, name);
        let bed = bed();
        let path = bed.home().join(file);
        let before = "{\n   \"theme\": \"dark\",\n   \"hooks\": {\"Other\": []}\n}\n";
        let is_shared = !file.ends_with("ralph.json");
        if is_shared {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, before).unwrap();
        }
        let said = bed.ralph_ok(&["init", "--agent", name]);
        assert!(said.contains("Registered with") && said.contains(file), "{said}");
        assert!(bed.ralph_ok(&["init", "--agent", name]).starts_with("Already registered"), "{name}");
        let registered: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let lines = lines_of(&registered);
        let stop = lines.iter().find(|line| line.contains("--timeout 3600")).unwrap();
        assert!(lines.len() >= 4 && lines.iter().all(|line| line.contains(&format!(" hook {name} "))), "{name}: {lines:?}");
        if agent.transcript.is_none() {
            let event = agent.event(&bed, agent.stop, (agent.at_stop)("I have begun."));
            let mut shell = bed.command("/bin/sh");
            shell.args(["-c", stop]).envs(agent.vars.iter().copied()).current_dir(bed.dir());
            assert!(Answer::of(&run(&mut shell, Value::Object(event).to_string().as_bytes())).blocks(), "{name}: {stop}");
        }
        bed.ralph_ok(&["uninstall"]);
        if is_shared {
            assert_eq!(fs::read_to_string(&path).unwrap(), before, "{name}");
        } else {
            assert!(!path.exists(), "{name}");
        }
        let left = fs::read_dir(path.parent().unwrap().join("commands")).map(Iterator::count).unwrap_or_default();
        assert_eq!(left, 0, "{name}: its commands are gone");
        assert!(!bed.home().join(".copilot").exists(), "{name}: so are the folders of its skills");
    }
}

/// opencode's registration is a plugin: it has the line that it runs, comes back after a change, honours where opencode looks, and goes with `uninstall`.
#[test]
fn h7_the_plugin_of_opencode_comes_and_goes() {
    for moved in [false, true] {
        let bed = Bed::new();
        let config = if moved { bed.home().join("elsewhere") } else { bed.home().join(".config") };
        let ralph = |args: &[&str]| {
            let mut command = bed.command(RALPH);
            command.args(args);
            if moved {
                command.env("XDG_CONFIG_HOME", &config);
            }
            let out = run(&mut command, b"");
            assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", out.stdout);
            out.stdout
        };
        let file = config.join("opencode/plugin/ralph.js");
        let said = ralph(&["init", "--agent", "opencode"]);
        assert!(said.contains("will write  ") && said.contains("opencode/plugin/ralph.js") && said.contains("6 commands in"), "{said}");
        assert!(said.contains("Checked: a made-up stop of opencode"), "{said}");
        let text = fs::read_to_string(&file).unwrap();
        let words = text.lines().find_map(|line| line.strip_prefix("const HOOK = ")?.strip_suffix(';')).unwrap();
        let words: Vec<String> = serde_json::from_str(words).unwrap();
        assert_eq!(words[1..], ["hook", "opencode", "--timeout", "3600", "--via", "user"]);
        assert!(ralph(&["init", "--agent", "opencode"]).starts_with("Already registered"));
        bed.write(&file, text.replace("3600", "60"));
        ralph(&["init", "--agent", "opencode"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        ralph(&["uninstall"]);
        assert!(!file.exists() && !config.join("opencode/command").exists());
    }
}

/// `all` is what is on the path, and an agent's folder in the home alone is no sign of it: it may be a leftover.
#[test]
fn h7_init_all_takes_the_agents_that_are_here() {
    let bed = Bed::new();
    let bin = bed.home().join("bin");
    fs::create_dir_all(bed.home().join(".grok")).unwrap();
    let init = |names: &[&str], more: &[&str]| {
        for name in names {
            bed.write(bin.join(name), "#!/bin/sh\n");
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = bed.command(RALPH);
        command.args(["init", "--agent"]).args(more).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        run(&mut command, b"")
    };
    let out = init(&[], &["all"]);
    assert_eq!((out.code, out.stderr.contains("none of these agents is on this machine")), (Some(1), true), "{}", out.stderr);
    let out = init(&["qwen", "codex"], &["all"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", out.stdout);
    assert!(out.stdout.contains("Registered with Qwen Code") && out.stdout.contains("Registered with Codex"), "{}", out.stdout);
    assert_eq!(out.stdout.matches("Checked: a made-up stop of").count(), 2, "{}", out.stdout);
    assert!(out.stdout.contains("only after you have reviewed them") && !bed.home().join(".grok/hooks").exists(), "{}", out.stdout);
    let out = init(&[], &["cursor"]);
    assert_eq!(out.code, Some(2), "{}", out.stderr);
}

/// In a terminal the agents that are here are shown and asked for, and no answer but yes changes anything.
#[test]
fn h7_init_asks_for_each_agent_in_a_terminal() {
    for (answer, code, is_registered) in [("\r", 0, true), ("n\r", 0, false), ("q\r", 1, false)] {
        for whole in [true, false] {
            let bed = Bed::new();
            let bin = bed.home().join("bin");
            bed.write(bin.join("qwen"), "#!/bin/sh\n");
            fs::set_permissions(bin.join("qwen"), fs::Permissions::from_mode(0o755)).unwrap();
            let mut command = bed.command(RALPH);
            command.arg("init").args(if whole { &[][..] } else { &["--agent", "all"] });
            command.env("TERM", "xterm-256color").env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
            let pty = Pty::spawn(command, 60, 100);
            let asks = |what: &str, answer: &str| {
                pty.wait_for(|screen| screen.contains(what), SOON).unwrap_or_else(|screen| panic!("no {what:?}: {screen}"));
                pty.send(answer);
            };
            if whole {
                asks("Register ralph with Claude Code for you, in all projects? [Y/n]", "n\r");
            }
            asks("Register ralph with Qwen Code for you, in all projects? [Y/n]", answer);
            assert_eq!(pty.wait_exit(SOON), Some(code), "{}", pty.screen());
            let screen = pty.screen();
            assert!(screen.contains("will write  ~/.qwen/settings.json"), "{screen}");
            assert_eq!(bed.home().join(".qwen/settings.json").exists(), is_registered, "{answer:?}: {screen}");
        }
    }
}
