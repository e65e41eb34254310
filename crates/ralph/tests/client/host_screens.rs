//! Other agents than Claude Code on their screens, in a pseudo terminal: what a person types, and what comes of it. The clients are real, the model is scripted.

use std::{fs, time::Duration};

use crate::{
    hosts::{Bed, Held, in_every_agent, times_sent_back, typed, wait_until},
    real::{LOOP, RALPH},
};
use ralph_testkit::{Agent, ModelServer, Reply, Request, Tui, or_skip};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(2);

in_every_agent! { in [codex copilot qwen grok], nightly [gemini droid opencode]:
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

/// On Codex's screens sessions share one process, which runs all their hooks and outlives them. Two loops in one project, and a `/clear` in one of the sessions: the
/// other one is in the middle of its turn, and its loop stays. The test starts that process by itself: Codex would first install a copy of itself (0.166.0).
#[test]
fn h3_sessions_that_share_codexs_process_keep_their_own_loops() {
    let [left_held, right_held] = [Held::default(), Held::default()];
    let [left_script, right_script] = [left_held.clone(), right_held.clone()];
    let server = ModelServer::with(move |request| {
        let text = request.all_text();
        match times_sent_back(request) {
            _ if text.contains("Are you there") => Reply::text("Yes, I am here."),
            0 => Reply::text("I have begun."),
            _ if text.contains("the left one") => {
                left_script.wait();
                Reply::text("It is done.\n\n<promise>DONE</promise>")
            }
            _ => {
                right_script.wait();
                Reply::text("Now I rest.")
            }
        }
    });
    let bed = or_skip!(Bed::new(Agent::by_name("codex"), server));
    // It asks everything once.
    drop(bed.client.screen(&bed.project, &bed.server));
    let shared = bed.client.shared_server(&bed.project, &bed.server, &["app-server", "--listen", "unix://"]);
    let socket = bed.project.home().join(".codex/app-server-control/app-server-control.sock");
    wait_until("it listens", || socket.exists());
    let screen = || bed.client.screen_without(&bed.project, &bed.server, &["--no-daemon"]);
    let (left, right) = (screen(), screen());
    let sessions = || -> Vec<(String, String)> {
        let status = bed.project.run(RALPH).args(["status", "--json"]).output().stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        status["loops"].as_array().unwrap().iter().map(|one| (text(one, "name"), text(one, "session"))).collect()
    };
    let of = |name: &str| sessions().into_iter().find(|(named, _)| named == name).map(|(_, session)| session);
    for (tui, name) in [(&left, "left"), (&right, "right")] {
        tui.submit(&format!("$ralph-loop Write the {name} one down --name {name} --promise DONE"));
        let words = format!("the {name} one");
        wait_until("it is sent back", || {
            bed.server.main_requests().iter().any(|request| times_sent_back(request) > 0 && request.all_text().contains(&words))
        });
    }
    let (of_left, of_right) = (of("left").unwrap(), of("right").unwrap());
    assert!(of_left != of_right, "each has its own: {of_left}");
    assert!(bed.project.run(RALPH).args(["pause", "right"]).output().success());
    right_held.release();
    sees(&right, "Now I rest.");
    let clear = |question: &str| {
        // The turn is over when the stop hook has been let go, a moment after its words.
        std::thread::sleep(Duration::from_secs(2));
        right.submit("/clear");
        right.expect("an empty conversation", SOON, |screen| {
            !["Now I rest.", "I am here."].iter().any(|old| dense(screen).contains(&dense(old)))
        });
        std::thread::sleep(Duration::from_secs(2));
        right.submit(question);
        sees(&right, "Yes, I am here.");
    };
    clear("Are you there now");
    wait_until("the paused loop goes along", || of("right").is_some_and(|session| session != of_right));
    assert_eq!(of("left").as_ref(), Some(&of_left));
    // Nothing is paused: then nothing is taken, and the person is told.
    assert!(bed.project.run(RALPH).args(["cancel", "right"]).output().success());
    clear("Are you there again");
    sees(&right, "If that was the session you cleared");
    assert_eq!(of("left").as_ref(), Some(&of_left));
    left_held.release();
    wait_until("its session finds its loop", || of("left").is_none());
    assert_eq!(bed.codes().iter().filter(|code| *code == "promise.accepted").count(), 1, "{:?}", bed.codes());
    assert!(!bed.project.home().join(".codex/packages").exists(), "both screens found the process");
    let link = fs::read_link(&socket).unwrap();
    drop(shared);
    // They have no other one.
    for tui in [&left, &right] {
        sees(tui, "econnect");
    }
    for file in [link.clone(), link.with_extension("lock")] {
        let _ = fs::remove_file(file);
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
