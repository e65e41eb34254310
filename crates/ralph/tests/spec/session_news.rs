//! Loops in the person's own session are heard of as those of `ralph run` are (u6): the same notifications, once and quietly, and views that say when the agent
//! waits for its person. The events are as the client sends them.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use ralph_testkit::pty::Pty;
use serde_json::{Value, json};

use crate::common::{Bed, Event, LOOP, ME, OTHER, RALPH, Transcript, loop_text, run};

/// Time in which a second notification would show itself.
const QUIET: Duration = Duration::from_millis(700);

/// A way to notify that keeps what it is told.
const KEEPS: &str = "cmd:cat >> news.jsonl; echo >> news.jsonl";

/// A loop in the session [`ME`], of which the person wants to hear.
fn told(iteration: u64, max: u64) -> Bed {
    let bed = Bed::with_loop(iteration, max, "DONE");
    bed.write("ralph.toml", format!("[notify]\ncommand = \"{}\"\n", &KEEPS["cmd:".len()..]));
    bed.ralph_ok(&["trust", "--yes"]);
    bed
}

/// The news that have come, once there are as many.
#[track_caller]
fn news(bed: &Bed, count: usize) -> Vec<Value> {
    let until = Instant::now() + Duration::from_mins(1);
    let come = || -> Vec<Value> {
        let text = fs::read_to_string(bed.path("news.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    while come().len() < count && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(QUIET);
    let all = come();
    assert_eq!(all.len(), count, "{all:#?}\n{:#?}", bed.hook_log());
    all
}

/// The client shows a permission prompt, and nobody has answered for six seconds.
fn permission_prompt(bed: &Bed) -> Event<'_> {
    notification(bed, "permission_prompt", "Claude needs your permission")
}

fn notification<'b>(bed: &'b Bed, kind: &str, message: &str) -> Event<'b> {
    bed.event("Notification").field("prompt_id", "prompt-1").field("message", message).field("notification_type", kind)
}

/// A process that a client could be: it lives, and starts nothing.
struct Client(Child);

impl Client {
    fn start() -> Self {
        Client(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The transcript of [`ME`], where the client keeps it.
fn transcript(bed: &Bed) -> Transcript {
    let path: PathBuf = bed.home().join(format!(".claude/projects/-project/{ME}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    Transcript { path }
}

fn statusline(bed: &Bed) -> String {
    let input = json!({"session_id": ME, "workspace": {"current_dir": bed.dir(), "project_dir": bed.dir()}}).to_string();
    run(bed.command(RALPH).arg("statusline").env("NO_COLOR", "1"), input.as_bytes()).stdout
}

/// `ralph watch` shows this, sooner or later.
#[track_caller]
fn watch_shows(pty: &Pty, wanted: &str) {
    pty.wait_for(|screen| screen.contains(wanted), Duration::from_mins(1)).unwrap_or_else(|screen| panic!("{wanted}:\n{screen}"));
}

fn watch(bed: &Bed) -> Pty {
    let mut command = bed.command(RALPH);
    command.arg("watch").env("TERM", "xterm-256color");
    Pty::spawn(command, 24, 100)
}

#[test]
fn u6_a_permission_prompt_is_told_once_and_views_say_since_when() {
    let (bed, client) = (told(1, 9), Client::start());
    let transcript = transcript(&bed);
    transcript.says("m1", "I begin.");
    assert!(bed.work().env("CLAUDE_PID", client.pid()).send().blocks());
    transcript.block("m2", &json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make deploy"}}));
    let asks = permission_prompt(&bed).field("transcript_path", transcript.path.to_str().unwrap()).env("CLAUDE_PID", client.pid());
    let before = bed.journal().len();
    asks.send().is_silent();
    // The same prompt, reported by another registration.
    asks.clone().by_plugin(1).send().is_silent();
    let [one] = &news(&bed, 1)[..] else { unreachable!() };
    assert_eq!((&one["news"], &one["how"], &one["iteration"]), (&json!("needs-person"), &json!("permission"), &json!(2)));
    assert_eq!(one["line"], "the agent waits for your permission at iteration 2 of 9: Bash make deploy");
    assert_eq!(bed.journal().len(), before, "the journal is about the loop");
    // Views.
    let status = bed.status();
    assert_eq!((&status["status"], &status["waits"]["what"]), (&json!("active"), &json!("your permission")), "{status}");
    assert_eq!((&status["waits"]["by"], &status["interrupted"]), (&json!("person"), &Value::Null));
    let since = status["waits"]["since"].as_str().unwrap().get(11..16).unwrap().to_owned();
    let shown = bed.ralph_ok(&["status"]);
    assert!(shown.contains(&format!("for your permission since {since} UTC (")), "{shown}");
    assert!(shown.contains("answer in its session"), "{shown}");
    assert!(statusline(&bed).ends_with(&format!("waits for your permission since {since} UTC\n")), "{}", statusline(&bed));
    let pty = watch(&bed);
    watch_shows(&pty, &format!("waits for your permission since {since} UTC"));
    // The next prompt of the same session is another one.
    asks.send().is_silent();
    news(&bed, 2);
    // The person has answered: the tool's result is there.
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]);
    transcript.line(json!({"type": "user", "isSidechain": false, "message": {"role": "user", "content": result}}));
    assert_eq!(bed.status()["waits"], Value::Null);
    assert!(!statusline(&bed).contains("permission"));
    watch_shows(&pty, "works · iteration 2");
}

/// The client writes nothing of a tool call until it has ended. That the tool runs says that it was allowed.
#[test]
fn u6_a_tool_that_runs_was_allowed() {
    let bed = told(1, 9);
    let transcript = transcript(&bed);
    // A shell as the client: it starts a program when it is told to, and waits for it.
    let go = bed.path("go");
    let script = format!("while [ ! -e {0} ]; do sleep 0.05; done; sleep 600; true", go.display());
    let client = Client(Command::new("sh").args(["-c", &script]).spawn().unwrap());
    transcript.says("m1", "I begin.");
    assert!(bed.work().env("CLAUDE_PID", client.pid()).send().blocks());
    permission_prompt(&bed).env("CLAUDE_PID", client.pid()).send().is_silent();
    assert_eq!(bed.status()["waits"]["by"], "person");
    fs::write(&go, "").unwrap();
    let until = Instant::now() + Duration::from_mins(1);
    while bed.status()["waits"] != Value::Null {
        assert!(Instant::now() < until, "{}", bed.status());
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(bed.status()["status"], "active");
    // What it started ends with it.
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", client.pid())).unwrap_or_default();
    for pid in children.split_whitespace() {
        let _ = Command::new("kill").arg(pid).status();
    }
}

#[test]
fn u6_a_session_without_a_loop_leaves_no_trace() {
    let bed = Bed::new();
    let before = bed.tree();
    for kind in ["permission_prompt", "idle_prompt", "another"] {
        notification(&bed, kind, "Claude is waiting for your input").env("RALPH_NOTIFY", KEEPS).send().is_silent();
    }
    assert_eq!(bed.tree(), before);
    assert!(!bed.home().join(".local/state/ralph").exists());
    // Another session's loop is none of this one's, and a notification of another kind is none of the loop's.
    let bed = told(1, 9);
    bed.work().send();
    let mark = format!("{}.1", bed.status()["id"].as_str().unwrap());
    let before = bed.tree_but_log();
    permission_prompt(&bed).session(OTHER).send().is_silent();
    notification(&bed, "idle_prompt", "Claude is waiting for your input").send().is_silent();
    permission_prompt(&bed).env("RALPH_RUN", mark).send().is_silent();
    news(&bed, 0);
    assert_eq!(bed.tree_but_log(), before);
    bed.ralph_ok(&["pause"]);
    permission_prompt(&bed).send().is_silent();
    news(&bed, 0);
    assert_eq!(bed.kept("permissions"), Vec::<PathBuf>::new());
}

/// Complete, capped, blocked, stalled, with a file that cannot be read: each is told once, however many registrations report the stop.
#[test]
fn u6_what_ends_or_pauses_a_loop_is_told_once() {
    let blocked = "There is no key.\n\n<blocked>no API key</blocked>";
    let cases: [(&str, u64, &[&str], &str, &str); 3] = [
        ("ended", 9, &["It works.\n\n<promise>DONE</promise>"], "complete", "Ralph: complete"),
        ("ended", 2, &["Not yet."], "capped", "Ralph: "),
        ("needs-person", 9, &[blocked, "Still no key.\n\n<blocked>no API key</blocked>"], "blocked", "no API key"),
    ];
    for (kind, max, said, how, line) in cases {
        let bed = told(2, max);
        for text in said {
            let stop = bed.stop(text);
            let answer = stop.send();
            assert_eq!(stop.clone().by_plugin(1).send(), answer, "the second registration is answered the same");
        }
        let [one] = &news(&bed, 1)[..] else { unreachable!() };
        assert_eq!((&one["news"], &one["how"]), (&json!(kind), &json!(how)), "{one}");
        assert!(one["line"].as_str().unwrap().contains(line), "{one}");
    }
    let bed = told(1, 9);
    bed.work().send();
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE").replace("iteration: 1", "iteration: many"));
    bed.work().send();
    assert_eq!(news(&bed, 1)[0]["how"], "failed");
}

/// The client's errors pause the loop, or park it: a long rest is told once.
#[test]
fn u6_an_api_error_is_told() {
    let bed = told(1, 9);
    bed.work().send();
    let failure = |n: u32, error: &str| bed.event("StopFailure").field("error", error).field("prompt_id", format!("prompt-{n}")).send();
    failure(1, "server_error").is_silent();
    news(&bed, 0);
    failure(2, "server_error").is_silent();
    let [parked] = &news(&bed, 1)[..] else { unreachable!() };
    assert_eq!((&parked["news"], &parked["how"], parked["until"].is_string()), (&json!("parked"), &json!("parked"), true), "{parked}");
    failure(3, "server_error").is_silent();
    news(&bed, 1);
    failure(4, "authentication_failed").is_silent();
    assert_eq!(news(&bed, 2)[1]["how"], "blocked");
}

/// What the person did is no news to the person.
#[test]
fn u6_what_the_person_did_is_not_told() {
    let bed = told(1, 9);
    bed.work().send();
    bed.ralph_ok(&["pause"]);
    bed.ralph_ok(&["resume"]);
    let transcript = bed.transcript();
    transcript.user("go").says("m1", "half").user("[Request interrupted by user]");
    bed.typed("what is this?").send();
    assert_eq!(bed.value("active"), "false");
    bed.ralph_ok(&["cancel"]);
    news(&bed, 0);
}

/// The answer is out, and the process has ended, before the notification is.
#[test]
fn u6_the_session_is_not_held_by_a_slow_notification() {
    let bed = Bed::with_loop(1, 9, "DONE");
    let slow = "cmd:while [ ! -e go ]; do sleep 0.05; done; touch told";
    let answer = bed.stop("<promise>DONE</promise>").env("RALPH_NOTIFY", slow).send();
    assert!(answer.line().contains("complete"), "{answer:?}");
    assert!(!bed.exists("told"), "it waits for what this test has not written yet");
    bed.write("go", "");
    let until = Instant::now() + Duration::from_mins(1);
    while !bed.exists("told") {
        assert!(Instant::now() < until, "{:?}", bed.hook_log());
        thread::sleep(Duration::from_millis(20));
    }
}

/// A failure is quiet, and leaves a line in the log. Settings that nobody trusted tell nobody.
#[test]
fn u6_a_notification_that_fails_leaves_a_line() {
    let bed = Bed::with_loop(1, 9, "DONE");
    bed.write("ralph.toml", "[notify]\ncommand = \"touch told\"\n");
    bed.stop("<promise>DONE</promise>").env("RALPH_NOTIFY", "cmd:exit 3").send();
    let until = Instant::now() + Duration::from_mins(1);
    let line = loop {
        if let Some(line) = bed.hook_log().into_iter().find(|line| line.contains("code=news.unsent")) {
            break line;
        }
        assert!(Instant::now() < until, "{:?}", bed.hook_log());
        thread::sleep(Duration::from_millis(20));
    };
    assert!(line.contains("is not trusted") && line.contains("`exit 3` ended with exit code 3"), "{line}");
    assert!(!bed.exists("told"));
}

/// An agent that may run `ralph` gets no notification, and no shell, out of it.
#[test]
fn u6_an_agent_cannot_have_news_sent() {
    let bed = told(1, 9);
    bed.work().send();
    let id = bed.status()["id"].as_str().unwrap().to_owned();
    let mut command = bed.command(RALPH);
    command.args(["hook", "send-news", bed.dir().to_str().unwrap(), &id, "ended", "complete"]);
    let out = run(command.env("AI_AGENT", "claude-code_2-1-325_agent").env("RALPH_NOTIFY", KEEPS), b"All done.");
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(0), "", ""));
    news(&bed, 0);
}

#[test]
fn u6_an_interrupted_agent_does_not_work() {
    let (bed, client) = (told(1, 9), Client::start());
    let transcript = transcript(&bed);
    transcript.user("go").says("m1", "I begin.");
    bed.work().env("CLAUDE_PID", client.pid()).send();
    assert_eq!((&bed.status()["interrupted"], bed.ralph_ok(&["status"]).contains("interrupted")), (&Value::Null, false));
    transcript.says("m2", "half").line(json!({
        "type": "user", "isSidechain": false,
        "message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]},
    }));
    // The client's own note comes last.
    transcript.line(json!({"type": "system", "subtype": "turn_duration", "durationMs": 19_532}));
    let status = bed.status();
    assert_eq!((&status["status"], status["interrupted"].is_string()), (&json!("active"), true), "{status}");
    let shown = bed.ralph_ok(&["status"]);
    assert!(shown.lines().next().unwrap().ends_with("  interrupted") && shown.contains("/ralph-resume goes on"), "{shown}");
    assert!(statusline(&bed).ends_with(" · interrupted\n"), "{}", statusline(&bed));
    watch_shows(&watch(&bed), "interrupted · iteration 2");
    // Resumed, it waits for the person's word, and is interrupted no more.
    bed.ralph_ok(&["resume"]);
    let shown = bed.ralph_ok(&["status"]);
    assert_eq!(bed.status()["interrupted"], Value::Null);
    assert!(shown.contains("tell the agent in its session to go on"), "{shown}");
    transcript.user("go on").says("m3", "I go on.");
    assert_eq!((&bed.status()["interrupted"], &bed.status()["waits"]), (&Value::Null, &Value::Null));
}
