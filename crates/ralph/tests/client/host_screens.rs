//! Other agents than Claude Code on their screens, in a pseudo terminal: what a person types, and what comes of it. The clients are real, the model is scripted.

use std::{fs, time::Duration};

use crate::{
    hosts::{Bed, Held, in_every_agent, typed, wait_until},
    real::{LOOP, RALPH},
};
use ralph_testkit::{Agent, ModelServer, Reply, Request, Tui, or_skip};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(2);

in_every_agent! {
    h3_h4_a_typed_command_starts_a_loop_that_goes_on_to_its_claim_on_the_screen
    h3_clear_takes_the_loop_along_where_the_agent_tells_of_it
}

/// The text, however the screen breaks its lines and whatever it draws beside them.
fn dense(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() && *c != '|').collect()
}

fn sees(tui: &Tui, text: &str) {
    tui.expect(text, SOON, |screen| dense(screen).contains(&dense(text)));
}

/// How often the model has been told of a stop that was sent back. Some agents ask it for other things in between.
fn times_sent_back(request: &Request) -> usize {
    request.all_text().matches("[ralph] ").count()
}

/// As `docs/hosts.md` says it, for the agents that have a status line.
fn with_status_line(bed: &Bed) -> bool {
    let line = json!({"type": "command", "command": format!("{RALPH} statusline")});
    let (file, keys): (_, &[&str]) = match bed.client.agent.name {
        "copilot" => (".copilot/settings.json", &["statusLine"]),
        "qwen" => (".qwen/settings.json", &["ui", "statusLine"]),
        "grok" => {
            let file = bed.project.home().join(".grok/config.toml");
            let before = fs::read_to_string(&file).unwrap();
            fs::write(&file, format!("{before}\n[ui.status_line]\ntype = \"command\"\ncommand = \"{RALPH} statusline\"\n")).unwrap();
            return true;
        }
        _ => return false,
    };
    let file = bed.project.home().join(file);
    let mut settings: Value = fs::read_to_string(&file).map_or_else(|_| json!({}), |text| serde_json::from_str(&text).unwrap());
    keys.iter().fold(&mut settings, |at, key| &mut at[*key]).clone_from(&line);
    bed.project.write(&file, settings.to_string());
    true
}

/// A task with quotes and a variable arrives as it was typed; what is not claimed goes on; a quoted claim is none; and a status needs no model.
fn h3_h4_a_typed_command_starts_a_loop_that_goes_on_to_its_claim_on_the_screen(agent: &'static Agent) {
    let task = "Write \"it\" & $HOME down";
    let held = Held::default();
    let script = held.clone();
    let server = ModelServer::with(move |request| match times_sent_back(request) {
        0 => Reply::text("I have begun."),
        1 => {
            script.wait();
            Reply::text("I will say `<promise>DONE</promise>` when it is done.")
        }
        _ => Reply::text("It is done.\n\n<promise>DONE</promise>"),
    });
    let bed = or_skip!(Bed::new(agent, server));
    let has_line = with_status_line(&bed);
    let tui = bed.client.screen(&bed.project, &bed.server);
    tui.submit(&typed(agent, &format!("ralph-loop {task} --promise DONE")));
    wait_until("it is sent back", || bed.server.main_requests().iter().any(|request| times_sent_back(request) > 0));
    assert!(bed.project.read(LOOP).ends_with(&format!("{task}\n")), "{}", bed.project.read(LOOP));
    if has_line {
        sees(&tui, "ralph 2");
    }
    held.release();
    wait_until("the end", || bed.codes().len() == 3 && !bed.project.exists(LOOP));
    assert_eq!(bed.codes(), ["promise.missing", "promise.refused", "promise.accepted"]);
    let came = |text: &str| text.replace("&amp;", "&").matches(task).count();
    let most = |times: usize| bed.server.main_requests().iter().filter(|r| times_sent_back(r) == times).map(|r| came(&r.all_text())).max();
    assert!(most(0).is_some() && most(1) > most(0) && most(2) > most(1), "{:?}", bed.told());
    let records = bed.records();
    assert!(records.iter().filter(|r| r["event"]["kind"] == "stop").all(|stop| stop["state"]["host"] == agent.name), "{records:?}");
    tui.submit(&typed(agent, "ralph-status "));
    sees(&tui, "No active Ralph loop");
    let asks_for = |request: &&Request| request.all_text().contains("/ralph-status");
    assert!(bed.server.requests().iter().all(|request| !asks_for(&request)), "no model was asked");
}

/// The loop rests while its session is cleared, and belongs to the next one where the agent says that they are one.
fn h3_clear_takes_the_loop_along_where_the_agent_tells_of_it(agent: &'static Agent) {
    let held = Held::default();
    let script = held.clone();
    let server = ModelServer::with(move |request| match times_sent_back(request) {
        _ if request.all_text().contains("Are you there now") => Reply::text("Yes, I am here."),
        0 => Reply::text("I have begun."),
        _ => {
            script.wait();
            Reply::text("Now I rest.")
        }
    });
    let bed = or_skip!(Bed::new(agent, server));
    bed.start(&[]);
    let tui = bed.client.screen(&bed.project, &bed.server);
    tui.submit("begin");
    wait_until("it is sent back", || bed.server.main_requests().iter().any(|request| times_sent_back(request) > 0));
    assert!(bed.project.run(RALPH).arg("pause").output().success());
    held.release();
    sees(&tui, "Now I rest.");
    // The turn is over when the stop hook has been let go.
    wait_until("the second stop", || bed.stops() == 2);
    submit_until(&tui, "/clear", |screen| !dense(screen).contains(&dense("Now I rest.")));
    let is_taken_along = || bed.records().iter().any(|record| record["event"]["kind"] == "rebound");
    let (says_so, is_silent) = (["gemini", "qwen", "droid"].contains(&agent.name), ["copilot", "grok", "opencode"].contains(&agent.name));
    if says_so {
        wait_until("the next session", is_taken_along);
    }
    submit_until(&tui, "Are you there now", |screen| dense(screen).contains(&dense("Yes, I am here.")));
    if is_silent {
        assert!(!is_taken_along(), "it says nothing of it");
    } else {
        // Codex tells of it with the first prompt.
        wait_until("the next session", is_taken_along);
    }
}

/// Some take no keys in a session's first moment: what is lost is typed again.
fn submit_until(tui: &Tui, text: &str, happened: impl Fn(&str) -> bool) {
    for _ in 0..6 {
        tui.submit(text);
        if tui.pty.wait_for(&happened, Duration::from_secs(20)).is_ok() {
            return;
        }
    }
    panic!("{text}: {}", tui.screen());
}
