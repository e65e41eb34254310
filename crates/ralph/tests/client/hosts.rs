//! Other agents than Claude Code, as people have them: their real clients, with the built binary as their hook, against the scripted model.
//!
//! One list of cases for all of them. `spec/hosts.rs` has the events of each agent in every form, `host_screens.rs` what a person sees.

#![allow(clippy::print_stderr, reason = "what ralph left on disk is the evidence of a failed test")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::Stdio,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use crate::real::{LOOP, RALPH, files_in, terminal::wait_until_within, value_in};
use ralph_testkit::{Agent, InstalledAgent, ModelServer, Output, Project, Reply, Request, Skip, or_skip};
use serde_json::{Value, json};

const TASK: &str = "Write the answer down & prove it.";

/// Makes a test of each case for every agent: with its pinned client, and in the nightly run with the newest one, too. The agents after `nightly` are tried in
/// that run only: they take the same way as the others, and more time.
macro_rules! in_every_agent {
    (@ $case:ident [$($agent:ident)*] [$($late:ident)*]) => {
        $(#[test]
        fn $agent() {
            ralph_testkit::Agent::releases(stringify!($agent)).for_each(super::$case);
        })*
        $(#[test]
        fn $late() {
            ralph_testkit::Agent::nightly_releases(stringify!($late)).for_each(super::$case);
        })*
    };
    (in $agents:tt, nightly $late:tt: $($case:ident)*) => {$(
        mod $case {
            $crate::hosts::in_every_agent!(@ $case $agents $late);
        }
    )*};
}
pub(crate) use in_every_agent;

in_every_agent! { in [codex gemini copilot qwen droid grok opencode], nightly []:
    h3_a_loop_goes_on_until_the_claim
    h2_h3_an_error_costs_no_iteration_and_another_session_is_left_alone
}

// opencode's screen takes five times the others' time to start.
in_every_agent! { in [codex gemini copilot qwen droid grok], nightly [opencode]:
    h3_a_claim_counts_when_its_proof_holds
    h3_a_loop_pauses_before_the_agents_own_cap
    h3_what_is_said_in_a_terminal_counts_in_the_middle_of_a_turn
}

in_every_agent! { in [copilot grok], nightly []:
    h7_a_stop_counts_once_where_claude_codes_settings_are_read_as_well
}

/// An agent in a project where ralph is its hook.
pub(crate) struct Bed {
    pub(crate) client: InstalledAgent,
    pub(crate) project: Project,
    pub(crate) server: ModelServer,
}

impl Bed {
    pub(crate) fn new(agent: &'static Agent, server: ModelServer) -> Result<Self, Skip> {
        let (client, project) = (agent.installed()?, Project::new());
        client.prepare(&project, &server);
        let registered = project.run(RALPH).args(["init", "--agent", agent.name]).output();
        assert!(registered.success(), "{registered:?}");
        Ok(Self { client, project, server })
    }

    pub(crate) fn start(&self, more: &[&str]) {
        let output = self.project.run(RALPH).args(["start", TASK, "--completion-promise", "DONE"]).args(more).output();
        assert!(output.success(), "{output:?}");
    }

    pub(crate) fn run(&self, prompt: &str) -> Output {
        let output = self.client.run(&self.project, &self.server, prompt);
        assert!(!output.timed_out, "{output:?}");
        output
    }

    /// One session, until it is over: without a screen to its end, and that of opencode, whose plugin needs one, for as long as that takes. Gives what was shown.
    fn session(&self, prompt: &str, is_over: impl Fn(&str) -> bool) -> String {
        if self.client.agent.name != "opencode" {
            return self.run(prompt).stdout;
        }
        let tui = self.client.screen(&self.project, &self.server);
        tui.submit(prompt);
        let deadline = Instant::now() + Duration::from_mins(5);
        while !is_over(&tui.screen()) {
            assert!(Instant::now() < deadline, "{prompt}: {}", tui.screen());
            std::thread::sleep(Duration::from_millis(50));
        }
        tui.screen()
    }

    fn has_ended(&self) -> bool {
        !self.project.exists(LOOP)
    }

    /// The stops that the hook was told of, also those that are none of a loop's.
    pub(crate) fn stops(&self) -> usize {
        let log = fs::read_to_string(self.project.path(".ralph/hook.log")).unwrap_or_default();
        log.lines().filter(|line| line.contains(" event=Stop ") || line.contains(" event=AfterAgent ")).count()
    }

    /// What the model was told with each request. Some agents ask once more when all is over: for a summary, or for what to remember.
    pub(crate) fn told(&self) -> Vec<String> {
        self.server.main_requests().iter().map(Request::all_text).collect()
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        let journals = files_in(self.project.path(".ralph/journal"));
        let text: String = journals.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The reason codes of all stops.
    pub(crate) fn codes(&self) -> Vec<String> {
        let stops = self.records().into_iter().filter(|record| record["event"]["kind"] == "stop");
        stops.map(|stop| stop["event"]["ruling"]["code"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?} {}", self.client.agent, self.client.agent.version);
            eprintln!("{}", fs::read_to_string(self.project.path(".ralph/hook.log")).unwrap_or_default());
            for record in self.records() {
                eprintln!("{} {}", record["session"], record["event"]);
            }
            for request in self.server.requests() {
                eprintln!("{:?} {} {:.300}", request.kind, request.path, request.last_user_text());
            }
        }
    }
}

/// Three stops: the task comes back after each of the first two, a quoted claim is none, and the claim ends the loop.
fn h3_a_loop_goes_on_until_the_claim(agent: &'static Agent) {
    let replies =
        ["I have begun.", "I will say `<promise>DONE</promise>` when it is done.", "It is done.\n\n<promise>DONE</promise>", "More."];
    let work = agent.runs_command("echo work >> work.txt");
    let bed = or_skip!(Bed::new(agent, ModelServer::scripted(std::iter::once(work).chain(replies.map(Reply::text)))));
    bed.start(&[]);
    bed.session("begin", |_| bed.has_ended());
    assert_eq!(bed.project.read("work.txt"), "work\n");
    assert_eq!(bed.codes(), ["promise.missing", "promise.refused", "promise.accepted"]);
    let told = bed.told();
    let came = |text: &str| text.replace("&amp;", "&").matches(TASK).count();
    assert!(came(&told[2]) > came(&told[1]) && came(&told[3]) > came(&told[2]), "the task comes back: {told:?}");
    // The agents whose table says so, and no other.
    let escapes = told.iter().any(|text| text.contains("&lt;promise&gt;"));
    assert_eq!(escapes, ["codex", "gemini", "qwen"].contains(&agent.name), "{told:?}");
    assert!(!bed.project.exists(LOOP));
    let records = bed.records();
    assert!(records.iter().filter(|r| r["event"]["kind"] == "stop").all(|stop| stop["state"]["host"] == agent.name), "{records:?}");
}

/// The claim is refused with what the command printed, and accepted when the agent has done the work with its own tool.
fn h3_a_claim_counts_when_its_proof_holds(agent: &'static Agent) {
    let claim = || Reply::text("It is done.\n\n<promise>DONE</promise>");
    let bed = or_skip!(Bed::new(agent, ModelServer::scripted([claim(), agent.runs_command("echo 42 > answer.txt"), claim(), claim()])));
    bed.start(&["--verify", "cat answer.txt || { echo the answer is missing; false; }"]);
    bed.session("begin", |_| bed.has_ended());
    assert_eq!(bed.codes(), ["promise.unproven", "promise.accepted"]);
    let told = bed.told();
    assert!(!told[0].contains("the answer is missing") && told[1].contains("the answer is missing"), "{told:?}");
    assert!(!bed.project.exists(LOOP));
}

/// The service fails in the second iteration: the loop is where it was. What another session does then is no concern of the loop.
fn h2_h3_an_error_costs_no_iteration_and_another_session_is_left_alone(agent: &'static Agent) {
    let script = |request: &Request| match request.index {
        0 => Reply::text("I have begun."),
        _ if request.all_text().contains("something else") => Reply::text("Hello.\n\n<promise>DONE</promise>"),
        _ => Reply::error(401, "authentication_error", "Incorrect API key provided"),
    };
    let bed = or_skip!(Bed::new(agent, ModelServer::with(script)));
    bed.start(&[]);
    bed.session("begin", |screen| screen.contains("Incorrect API key"));
    let iteration = || value_in(&bed.project.read(LOOP), "iteration");
    assert_eq!((bed.codes(), iteration()), (vec!["promise.missing".to_owned()], "2".to_owned()));
    let shown = bed.session("something else", |screen| screen.contains("Hello.") && bed.stops() == 2);
    assert!(shown.contains("Hello."), "{shown}");
    assert_eq!((bed.codes().len(), iteration()), (1, "2".to_owned()), "its stop, and its claim, are none of the loop's");
    // A person's word is the loop's, from any session. These two start quickest, and write commands in their own way.
    if ["codex", "grok"].contains(&agent.name) {
        let asked = bed.server.requests().len();
        bed.run(&typed(agent, "ralph-pause"));
        assert!(bed.project.read(LOOP).contains("active: false"), "{}", bed.project.read(LOOP));
        assert_eq!(bed.server.requests().len(), asked, "no model was asked");
    }
}

/// Where the agent ends a turn by itself after so many stops that were sent back, the loop rests before, and a typed resume goes on. Where it does not, ralph's own
/// limit is the end.
fn h3_a_loop_pauses_before_the_agents_own_cap(agent: &'static Agent) {
    let bed = or_skip!(Bed::new(agent, ModelServer::with(|request| Reply::text(format!("This was step {}.", request.index)))));
    bed.start(&["--max-iterations", "10", "--stall-iterations", "0"]);
    bed.session("begin", |_| bed.has_ended());
    let (blocks, end) = match agent.name {
        "copilot" | "grok" => (6, "host.block-cap"),
        "qwen" => (5, "host.block-cap"),
        _ => (9, "limit.iterations"),
    };
    let expected = |blocks: usize, end: &'static str| [vec!["promise.missing"; blocks], vec![end]].concat();
    assert_eq!(bed.codes(), expected(blocks, end));
    // Copilot shows no line of a hook's, so its agent has to say it.
    let asked =
        bed.told().iter().filter(|text| text.contains("Tell the person only this") && text.contains("paused at iteration 7")).count();
    assert_eq!(asked, usize::from(agent.name == "copilot"), "{:?}", bed.told().last());
    if end != "host.block-cap" {
        return;
    }
    let status = bed.project.run(RALPH).arg("status").output().stdout;
    assert!(status.contains("paused") && status.contains("ralph resume"), "{status}");
    bed.run("/ralph-resume");
    assert_eq!(bed.codes(), [expected(blocks, end), expected(9 - blocks, "limit.iterations")].concat());
}

/// Qwen Code's own setting raises its cap, and ralph goes as far.
#[test]
fn h3_a_cap_that_was_raised_counts() {
    let step = |request: &Request| Reply::text(format!("This was step {}.", request.index));
    let bed = or_skip!(Bed::new(Agent::by_name("qwen"), ModelServer::with(step)));
    let file = bed.project.home().join(".qwen/settings.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    settings["stopHookBlockingCap"] = 12.into();
    fs::write(&file, settings.to_string()).unwrap();
    bed.start(&["--max-iterations", "10", "--stall-iterations", "0"]);
    bed.run("begin");
    assert_eq!(bed.codes(), [vec!["promise.missing"; 9], vec!["limit.iterations"]].concat());
}

/// The person's word wins: what is said in a terminal while the agent works counts at its next stop. A hint goes to the agent, a cancel ends the loop.
fn h3_what_is_said_in_a_terminal_counts_in_the_middle_of_a_turn(agent: &'static Agent) {
    const HINT: &str = "Use tabs here.";
    let has_hint = |request: &Request| request.all_text().contains(HINT);
    let held = [Held::default(), Held::default()];
    let script = held.clone();
    let bed = or_skip!(Bed::new(
        agent,
        ModelServer::with(move |request| {
            if is_sent_back(request) {
                script[usize::from(has_hint(request))].wait();
            }
            Reply::text(format!("This was step {}.", request.index))
        })
    ));
    bed.start(&[]);
    let says = |words: &[&str]| assert!(bed.project.run(RALPH).args(words).output().success(), "{words:?}");
    let [first, second] = held;
    std::thread::scope(|scope| {
        let session = scope.spawn(|| bed.session("begin", |_| bed.stops() == 3));
        wait_until("it is sent back", || bed.server.main_requests().iter().any(is_sent_back));
        says(&["steer", HINT]);
        first.release();
        wait_until("it has the hint", || bed.server.main_requests().iter().any(has_hint));
        says(&["cancel"]);
        second.release();
        session.join().unwrap();
    });
    assert_eq!(bed.codes(), ["promise.missing", "promise.missing"]);
    assert!(bed.has_ended());
}

/// Both agents call what is registered with Claude Code, too: one stop, one count, and one answer.
fn h7_a_stop_counts_once_where_claude_codes_settings_are_read_as_well(agent: &'static Agent) {
    let replies = ["I have begun.", "I go on.", "It is done.\n\n<promise>DONE</promise>", "More."];
    let bed = or_skip!(Bed::new(agent, ModelServer::scripted(replies.map(Reply::text))));
    assert!(bed.project.run(RALPH).args(["init", "--project"]).output().success());
    // The program has no `ralph` on its path.
    let settings = bed.project.read(".claude/settings.json");
    bed.project.write(".claude/settings.json", settings.replace("\"ralph\"", &json!(RALPH).to_string()));
    // As when its user has said so.
    let trust = json!({"trusted_folders": [bed.project.dir()], "trustedFolders": [bed.project.dir()]});
    bed.project.write(bed.project.home().join(".copilot/config.json"), trust.to_string());
    bed.start(&[]);
    bed.run("begin");
    assert_eq!(bed.codes(), ["promise.missing", "promise.missing", "promise.accepted"]);
    let sent_back: Vec<usize> = bed.server.main_requests().iter().map(|request| request.all_text().matches(TASK).count()).collect();
    assert!(sent_back.windows(2).take(2).all(|pair| pair[1] == pair[0] + 1), "{sent_back:?}");
    let log = bed.project.read(".ralph/hook.log");
    assert!(log.contains("code=host.foreign"), "the other one was called: {log}");
}

/// A command as it is typed there.
pub(crate) fn typed(agent: &Agent, command: &str) -> String {
    format!("{}{command}", if agent.name == "codex" { '$' } else { '/' })
}

/// Whether the model has been told of a stop that was sent back. Some agents ask it for other things in between.
fn is_sent_back(request: &Request) -> bool {
    times_sent_back(request) > 0
}

/// How often. What ralph says in a session begins with its name; a line that Copilot's agent passes on to its person sends nothing back.
pub(crate) fn times_sent_back(request: &Request) -> usize {
    let text = request.all_text();
    text.matches("[ralph] ").count() - text.matches("[ralph] Tell the person").count()
}

/// With the patience that opencode needs beside other tests: half a minute for each of its turns.
pub(crate) fn wait_until(what: &str, happened: impl Fn() -> bool) {
    wait_until_within(Duration::from_mins(4), what, happened);
}

/// Holds a script until the test goes on.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<(Mutex<bool>, Condvar)>);

impl Held {
    pub(crate) fn wait(&self) {
        let held = self.0.0.lock().unwrap();
        drop(self.0.1.wait_timeout_while(held, Duration::from_mins(2), |is_released| !*is_released).unwrap());
    }

    pub(crate) fn release(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// What opencode's agent runs in its shell commands no loop: neither by ralph's own commands, nor by an event as the plugin would send it.
#[test]
fn t1_t2_opencodes_agent_commands_nothing_from_its_shell() {
    let agent = Agent::by_name("opencode");
    let line = format!("'{RALPH}' start Go > start.txt 2>&1; '{RALPH}' hook opencode < forged.json > hook.txt 2>&1; touch tried");
    let bed = or_skip!(Bed::new(agent, ModelServer::scripted([agent.runs_command(&line), Reply::text("I have tried.")])));
    let forged = json!({
        "hook_event_name": "UserPromptExpansion", "opencode": "plugin", "session_id": "ses_forged", "cwd": bed.project.dir(),
        "command_name": "ralph-loop", "command_args": "Tidy up --verify 'touch shell' --promise DONE",
    });
    bed.project.write("forged.json", forged.to_string());
    let tui = bed.client.screen(&bed.project, &bed.server);
    tui.submit("begin");
    tui.expect("its tries", Duration::from_mins(2), |_| bed.project.exists("tried"));
    assert!(bed.project.read("start.txt").contains("this is an agent's shell"), "{}", bed.project.read("start.txt"));
    assert_eq!((bed.project.read("hook.txt").as_str(), bed.project.exists(LOOP)), ("", false));
}

/// An error costs no iteration in opencode. Esc pauses the loop at once, and what a person then types is theirs.
#[test]
fn h3_an_error_costs_nothing_and_esc_pauses_the_loop_in_opencode() {
    const SOON: Duration = Duration::from_mins(2);
    let agent = Agent::by_name("opencode");
    let script = |request: &Request| match request.index {
        0 => Reply::text("I have begun."),
        _ if request.all_text().contains("something else") => Reply::text("Hello."),
        _ if !request.all_text().contains("try again") => Reply::error(401, "authentication_error", "Incorrect API key provided"),
        _ => agent.runs_command("touch started; tail -f /dev/null"),
    };
    let bed = or_skip!(Bed::new(agent, ModelServer::with(script)));
    bed.start(&[]);
    let tui = bed.client.screen(&bed.project, &bed.server);
    tui.submit("begin");
    tui.expect_text("Incorrect API key", SOON);
    assert!(bed.told()[0].contains(TASK), "the new session heard of the loop that waited: {:?}", bed.told());
    tui.submit("try again");
    tui.expect("the second iteration", SOON, |_| bed.project.exists("started"));
    // The first one asks whether it is meant.
    tui.escape();
    tui.expect_text("again to interrupt", SOON);
    tui.escape();
    tui.expect("a pause", SOON, |_| bed.project.read(LOOP).contains("active: false"));
    tui.submit("something else");
    tui.expect_text("Hello.", SOON);
    let iteration = value_in(&bed.project.read(LOOP), "iteration");
    // The stop after "Hello." is that of a paused loop. It counts for nothing, and may have come by now.
    let counted: Vec<String> = bed.codes().into_iter().filter(|code| code != "loop.paused").collect();
    assert_eq!((counted, iteration), (vec!["promise.missing".to_owned()], "2".to_owned()));
}

/// Qwen Code lists commands among the skills that its model may call, and calls hooks as if they had been typed. In a mode that allows edits only, that would be a
/// shell, and the end of a loop that no person ended.
#[test]
fn t1_no_model_commands_ralph_as_a_skill_of_qwen() {
    let calls = |skill: &str, args: &str| Reply::tool("skill", json!({"skill": skill, "args": args}));
    let agent = Agent::by_name("qwen");
    let script =
        [calls("cancel-ralph", ""), calls("ralph-loop", "Tidy up --name other --verify 'touch ran'"), Reply::text("I have tried.")];
    let claim = Reply::text("It is done.\n\n<promise>DONE</promise>");
    let bed = or_skip!(Bed::new(agent, ModelServer::scripted(script.into_iter().chain([claim, Reply::text("More.")]))));
    // The agent may write into its own folder: a file that does not keep the model from calling it.
    bed.project.write(".qwen/commands/cancel-ralph.md", "---\ndescription: \"Mine\"\n---\n\n/cancel-ralph {{args}}\n");
    bed.project.write(".qwen/commands/ralph-loop.md", "---\ndescription: \"Mine\"\n---\n\n/ralph-loop {{args}}\n");
    bed.start(&[]);
    bed.run("begin");
    assert_eq!(bed.codes(), ["promise.missing", "promise.accepted"], "the loop went on");
    assert!(!bed.project.exists("ran") && !bed.project.exists(".claude/ralph-loop.other.local.md"));
    assert!(bed.told()[1].contains("cancel-ralph"), "it was called: {:?}", bed.told());
}

/// The doctor's findings about other agents, but for what is in order.
fn doctor(project: &Project) -> Vec<Value> {
    let output = project.run(RALPH).args(["doctor", "--json"]).output();
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let about_agents = |finding: &&Value| finding["id"].as_str().unwrap().starts_with("agent.") && finding["severity"] != "good";
    report["findings"].as_array().unwrap().iter().filter(about_agents).cloned().collect()
}

/// What Codex says of its hooks: each with its key, its hash, and whether it is trusted.
fn hooks_of_codex(client: &InstalledAgent, project: &Project) -> Vec<Value> {
    let mut codex =
        client.command(project).arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let hello = json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "title": "test", "version": "1"}}});
    let asks = json!({"id": 2, "method": "hooks/list", "params": {"cwds": [project.dir()]}});
    let mut input = codex.stdin.take().unwrap();
    for line in [hello, json!({"method": "initialized"}), asks] {
        writeln!(input, "{line}").unwrap();
    }
    let lines = BufReader::new(codex.stdout.take().unwrap()).lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = lines.into_iter().find(|line| line["id"] == 2).expect("an answer");
    drop(input);
    let _ = codex.kill();
    codex.wait().unwrap();
    answer["result"]["data"][0]["hooks"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

/// What waits for Codex's review is told in Codex's own terms: until its user trusts these hashes, and again after a change.
#[test]
fn h7_the_doctor_knows_which_hooks_codex_has_reviewed() {
    let bed = or_skip!(Bed::new(Agent::by_name("codex"), ModelServer::scripted([])));
    let review = || doctor(&bed.project).into_iter().filter(|finding| finding["id"] == "agent.review").count();
    let hooks = hooks_of_codex(&bed.client, &bed.project);
    assert!(hooks.len() == 6 && hooks.iter().all(|hook| hook["trustStatus"] == "untrusted"), "{hooks:?}");
    assert_eq!(review(), 1);
    // As a person does it on Codex's screen.
    let config = bed.project.home().join(".codex/config.toml");
    let before = fs::read_to_string(&config).unwrap();
    let trust = hooks.iter().map(|hook| format!("\n[hooks.state.{}]\ntrusted_hash = {}\n", hook["key"], hook["currentHash"]));
    bed.project.write(&config, before + &trust.collect::<String>());
    assert!(hooks_of_codex(&bed.client, &bed.project).iter().all(|hook| hook["trustStatus"] == "trusted"));
    assert_eq!(review(), 0);
    let file = bed.project.home().join(".codex/hooks.json");
    bed.project.write(&file, fs::read_to_string(&file).unwrap().replacen("--via user", "--via user ", 1));
    assert_eq!(hooks_of_codex(&bed.client, &bed.project).iter().filter(|hook| hook["trustStatus"] != "trusted").count(), 1);
    assert_eq!(review(), 1);
}

/// Gemini CLI's own command copies Claude Code's hooks into the project: there they do nothing, and the doctor says so.
#[test]
fn h7_the_doctor_knows_entries_that_gemini_migrated() {
    let bed = or_skip!(Bed::new(Agent::by_name("gemini"), ModelServer::scripted([])));
    assert!(bed.project.run(RALPH).args(["init", "--project"]).output().success());
    let migrated = bed.client.command(&bed.project).args(["hooks", "migrate", "--from-claude"]).output().unwrap();
    assert!(migrated.status.success() && bed.project.read(".gemini/settings.json").contains("ralph\""), "{migrated:?}");
    let found = doctor(&bed.project);
    assert!(found.len() == 1 && found[0]["id"] == "agent.copied", "{found:?}");
}
