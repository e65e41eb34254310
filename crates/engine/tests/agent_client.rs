//! Sessions of the real client, one at a time, against the scripted model.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ralph_core::judge::{
    ToolUse,
    session_outcome::{Cut, Outcome, Tokens, Trouble},
};
use ralph_engine::{
    hosts::{Host, claude::Spent, prices::Prices},
    run::{
        events::Heard,
        session::{Agent, Ended, Session},
    },
    store::runner,
    sys::{clock, random},
};
use ralph_testkit::{Cached, Client, Gate, ModelServer, Project, Reply, SignIn, Skip, Version, or_skip};

/// Whoever ends a session ends all that this program started otherwise and that has no other place: git, or an installation of the client.
static ALONE: Mutex<()> = Mutex::new(());

/// Longer than a client needs to begin on a machine that is very busy.
const PATIENT: Duration = Duration::from_secs(30);

struct Bed {
    _alone: MutexGuard<'static, ()>,
    project: Project,
    agent: Agent,
    id: String,
    silence: Duration,
    permission_mode: Option<&'static str>,
    heard: Mutex<Vec<Heard>>,
}

impl Bed {
    fn new(version: Version, server: &ModelServer, sign_in: SignIn) -> Result<Self, Skip> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let client = Client::installed(version)?;
        let project = Project::without_git();
        let program = client.as_program(&project, server, sign_in, &[("CLAUDE_CODE_MAX_RETRIES", "1")]);
        let (agent, id) = (Agent::Known(Host::ALL[0], program), random::uuid());
        let (silence, permission_mode) = (Duration::from_mins(1), Some("bypassPermissions"));
        Ok(Bed { _alone: alone, project, agent, id, silence, permission_mode, heard: Mutex::default() })
    }

    fn log(&self) -> PathBuf {
        self.project.home().join("session.log")
    }

    fn run(&self, wish: &dyn Fn() -> bool) -> Ended {
        let mark = runner::new_mark("client");
        let session = Session {
            agent: &self.agent,
            folder: self.project.dir(),
            prompt: "do it",
            id: &self.id,
            model: None,
            permission_mode: self.permission_mode,
            usd_micros_left: 50_000_000,
            prices: &Prices::default(),
            mark: &mark,
            iteration: 1,
            silence: self.silence,
            limit: Duration::from_mins(2),
            grace: Duration::from_secs(10),
            log: &self.log(),
        };
        let ended = session.run(&|heard| self.heard.lock().unwrap().push(heard.clone()), wish);
        assert_eq!(runner::end_leftovers(&mark), 0, "nothing is left");
        ended
    }

    fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

fn told_text(heard: &[Heard]) -> String {
    heard.iter().filter_map(|heard| if let Heard::Text { text, .. } = heard { Some(text.as_str()) } else { None }).collect()
}

/// S4-6: text, tools, tokens and cost of a whole session.
#[test]
fn s4_6_a_session_tells_what_it_does_and_what_it_used() {
    for version in Version::BOTH {
        let server = ModelServer::scripted([
            Reply::thinking("Well.")
                .and_text("I begin.")
                .and_tool("Bash", serde("echo $RALPH_RUN > mark.txt"))
                .usage(1_000, 200)
                .cached(Cached { written_5m: 30, written_1h: 0, read: 4 }),
            Reply::texts(["First.", "<promise>DONE</promise>"]).usage(2_000, 300),
        ]);
        let bed = or_skip!(Bed::new(version, &server, SignIn::Key));
        let ended = bed.run(&|| true);
        assert_eq!((ended.outcome, ended.tools), (Outcome::Stopped, ToolUse::Used));
        assert_eq!(ended.text.as_deref(), Some("First.\n\u{c}<promise>DONE</promise>"), "both blocks, told apart");
        let work = ended.work;
        assert_eq!(work.tokens, Tokens { input: 3_000, output: 500, cache_read: 4, cache_written: 30 });
        assert!(!work.estimated && work.usd_micros > 10_000 && work.tool_calls == 1 && work.denied.is_empty(), "{work:?}");
        assert_eq!((work.context, work.context_window > 100_000), (2_300, true));
        let heard = bed.heard();
        assert_eq!(told_text(&heard), "I begin.\nFirst.\n<promise>DONE</promise>\n", "in pieces, and once");
        assert!(
            matches!(&heard[0], Heard::Session { session, client: Some(client), .. } if *session == bed.id && client == version.number()),
            "{heard:?}"
        );
        assert!(heard.contains(&Heard::Thinking));
        assert!(heard.contains(&Heard::ToolEnded { failed: false, of_subagent: false }));
        assert!(bed.project.read("mark.txt").starts_with("client."));
        let log = std::fs::read_to_string(bed.log()).unwrap();
        assert!(!log.contains("stream_event") && log.contains("\"type\":\"result\"") && log.ends_with("# the agent stopped\n"), "{log}");
        // What the transcripts tell is the same.
        let used = Spent::of_session(&bed.project.home().join(".claude"), &bed.id).unwrap();
        assert_eq!(used.0, work.tokens);
    }
}

fn serde(command: &str) -> serde_json::Value {
    serde_json::json!({"command": command, "description": "x"})
}

#[test]
fn s1_4_an_overloaded_service_is_told_by_its_status() {
    for &version in Version::usual() {
        let server = ModelServer::with(|_| Reply::error(529, "overloaded_error", "Overloaded"));
        let bed = or_skip!(Bed::new(version, &server, SignIn::Key));
        let ended = bed.run(&|| true);
        assert_eq!(ended.outcome, Outcome::Failed { trouble: Trouble::Service { status: Some(529) } });
        assert_eq!((ended.text, ended.work.tokens.total()), (None, 0));
    }
}

#[test]
fn s1_4_a_limit_says_when_it_ends() {
    for &version in Version::usual() {
        let resets_at = clock::now() / 1_000 + 20;
        let server = ModelServer::with(move |_| Reply::limit(resets_at));
        let bed = or_skip!(Bed::new(version, &server, SignIn::Subscription));
        let limit = Trouble::Limit { until: Some(resets_at * 1_000), quota: Some("five_hour".to_owned()) };
        assert_eq!(bed.run(&|| true).outcome, Outcome::Failed { trouble: limit });
        assert!(bed.heard().iter().any(|heard| matches!(heard, Heard::Quota { rejected: true, .. })));
    }
}

#[test]
fn s4_6_what_nobody_may_allow_is_known_with_its_rule() {
    for &version in Version::usual() {
        let server = ModelServer::scripted([Reply::bash("npm test -- --all"), Reply::text("I may not.")]);
        let bed = Bed { permission_mode: Some("default"), ..or_skip!(Bed::new(version, &server, SignIn::Key)) };
        let ended = bed.run(&|| true);
        assert_eq!(ended.outcome, Outcome::Stopped);
        let denied: Vec<&str> = ended.work.denied.iter().map(|denied| denied.rule.as_str()).collect();
        assert_eq!(denied, ["Bash(npm test:*)"]);
        assert_eq!(bed.heard().iter().filter(|heard| matches!(heard, Heard::Denied { .. })).count(), 1);
    }
}

/// S4-6: the service holds the connection open and says nothing. What was used until then is known.
#[test]
fn s4_6_a_stream_that_hangs_is_silence() {
    for &version in Version::usual() {
        let gate = Gate::new();
        let server = ModelServer::scripted([Reply::bash("true").usage(500, 60), Reply::text("Half a word").usage(700, 80).hang(&gate)]);
        let bed = Bed { silence: PATIENT, ..or_skip!(Bed::new(version, &server, SignIn::Key)) };
        let ended = bed.run(&|| true);
        assert_eq!((ended.outcome, ended.tools), (Outcome::Cut { by: Cut::Silence }, ToolUse::Used));
        assert!(gate.wait_reached(Duration::ZERO));
        let tokens = ended.work.tokens;
        assert_eq!((tokens.input, tokens.output / 10), (1_200, 6), "the request that hung is counted: {:?}", ended.work);
        assert!(ended.work.estimated);
    }
}

/// S4-6: in the middle of a command that runs in a group of its own.
#[test]
fn s4_6_a_session_that_is_interrupted_leaves_no_command_behind() {
    for &version in Version::usual() {
        let server = ModelServer::scripted([Reply::bash("echo begun > begun.txt; timeout 300 tail -f /dev/null").usage(500, 60)]);
        let bed = or_skip!(Bed::new(version, &server, SignIn::Key));
        let ended = bed.run(&|| !bed.project.exists("begun.txt"));
        assert_eq!((ended.outcome, ended.tools), (Outcome::Interrupted, ToolUse::Used));
        assert_eq!(ended.work.tokens, Tokens { input: 500, output: 60, ..Tokens::default() });
    }
}

/// S4-6: the newer client waits for what runs in its background, for ever if need be. The agent has stopped all the same, and is not woken.
#[test]
fn s4_6_a_server_in_the_background_does_not_hold_the_round() {
    let in_background = serde_json::json!({"command": "tail -f /dev/null", "description": "x", "run_in_background": true});
    let server = ModelServer::scripted([Reply::tool("Bash", in_background).usage(500, 60), Reply::text("It runs.").usage(700, 80)]);
    let bed = Bed { silence: PATIENT, ..or_skip!(Bed::new(Version::Newest, &server, SignIn::Key)) };
    let ended = bed.run(&|| true);
    assert_eq!((ended.outcome, ended.text.as_deref()), (Outcome::Stopped, Some("It runs.")));
    assert_eq!((ended.work.tokens.input, ended.work.tokens.output, ended.work.estimated), (1_200, 140, false));
    assert_eq!(server.main_requests().len(), 2);
}

/// S4-6: somebody else kills the client.
#[test]
fn s4_6_a_client_that_is_killed_crashed_and_its_commands_die_too() {
    for &version in Version::usual() {
        let server = ModelServer::scripted([Reply::bash("echo $PPID > client.pid; timeout 300 tail -f /dev/null").usage(500, 60)]);
        let bed = or_skip!(Bed::new(version, &server, SignIn::Key));
        let killed = std::cell::Cell::new(false);
        let ended = bed.run(&|| {
            if let Some(pid) =
                std::fs::read_to_string(bed.project.path("client.pid")).ok().filter(|pid| pid.ends_with('\n') && !killed.get())
            {
                ralph_testkit::process::kill_tree(pid.trim().parse().unwrap());
                killed.set(true);
            }
            true
        });
        assert_eq!(ended.outcome, Outcome::Failed { trouble: Trouble::Crash { code: None, signal: Some(9) } });
        assert!(ended.work.estimated && ended.work.tokens.input == 500, "{:?}", ended.work);
    }
}
