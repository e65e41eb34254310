//! A subagent stops. One of the types that have to prove their work is let go when it is proven, or when ralph gives up, which it says (S3).
//!
//! The loop of the session that called it is not judged by this.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::{
    config::{Config, FILE},
    gate::{Check, Command, Finding, Gate, Markers, Origin, Proof},
    judge::reason::Reason,
    loops::{ContinueWith, fnv1a},
    text::{messages, subagent_messages},
};

use crate::{
    gates::{self, Context, Want, declared},
    hook::{Call, Outcome, session},
    hosts::claude::answer::Answer,
    store::{
        Error, check_task, notices,
        project::Project,
        trust::{Trust, place::Place},
        verify_state::{Round, Stop, VerifyState},
    },
    sys::clock,
};

/// The agents that have to prove their work when nobody says otherwise (S3-1).
const AGENT: &str = "check";

pub(super) fn on_stop(call: &Call) -> Result<Outcome, Error> {
    // The client's own compaction reports itself as a subagent without a type: whoever blocks that breaks it.
    let Some(agent) = call.event.text("agent_type").map(str::trim).filter(|agent| !agent.is_empty()) else {
        return session::on_other(call);
    };
    let settings = Settings::of(&call.project);
    let is_meant = settings.agents.iter().any(|name| is_of_type(agent, name));
    let asked = is_meant.then(|| Asked::of(&call.project, settings)).filter(|asked| !asked.is_empty());
    let outcome = match &asked {
        Some(asked) => asked.told(agent, verify(call, agent, asked)),
        None => match freed(call, agent) {
            Some(outcome) => outcome,
            None => return session::on_other(call),
        },
    };
    keep_for_the_person(call, &outcome);
    Ok(noted(call, agent, outcome))
}

/// An agent that was sent back, and of which nothing is asked any more: what asked for its proof is gone, perhaps by its own hand.
fn freed(call: &Call, agent: &str) -> Option<Outcome> {
    // Without an id of its own nobody knows whether it is the one that was sent back.
    call.event.text("agent_id").filter(|id| !id.trim().is_empty())?;
    let key = agent_key(call);
    let counts: Vec<VerifyState<'_>> = counts(&call.project).filter(|state| state.knows(&key)).collect();
    if counts.is_empty() {
        return None;
    }
    let errors: Vec<String> = counts.iter().filter_map(|state| state.remove(&key).err()).map(|e| e.to_string()).collect();
    let error = (!errors.is_empty()).then(|| errors.join("; "));
    Some(Outcome { error, ..Outcome::tell(Reason::VERIFY_GONE, subagent_messages::gone(agent)) })
}

/// Everywhere that agents' rounds may have been counted.
fn counts(project: &Project) -> impl Iterator<Item = VerifyState<'_>> {
    let folders = check_task::FOLDERS.into_iter().map(Some).chain([None]);
    folders.map(move |folder| VerifyState::beside(project, folder))
}

/// The client shows the person nothing of what is said here, so the session's own stop says it again.
fn keep_for_the_person(call: &Call, outcome: &Outcome) {
    if let (Answer::Tell { line }, Some(session)) = (&outcome.answer, call.event.session()) {
        // The hook's log has it in any case.
        let _ = notices::keep(&call.project, session, clock::now(), line);
    }
}

/// `check` is also `plugin:check`.
fn is_of_type(agent: &str, name: &str) -> bool {
    agent == name || (!name.contains(':') && agent.rsplit(':').next() == Some(name))
}

/// A line in the journal of the session's loop, where it has one. What was decided does not hang on it.
fn noted(call: &Call, agent: &str, outcome: Outcome) -> Outcome {
    let detail = format!("{}: {}", messages::excerpt(agent, 60), outcome.code.as_str());
    let heard = session::heard_that(call, Some(detail), |_| {})
        .unwrap_or_else(|e| Outcome { error: Some(e.to_string()), ..Outcome::silent(Reason::INTERNAL_ERROR) });
    let error = outcome.error.clone().or(heard.error);
    Outcome { loop_id: heard.loop_id, error, ..outcome }
}

/// What `ralph.toml` says about subagents.
struct Settings {
    agents: Vec<String>,
    rounds: u64,
    minutes: u64,
    excerpt: Option<usize>,
    keep_going: bool,
    commands: Vec<Command>,
    is_trusted: bool,
    /// Why it says nothing.
    problem: Option<String>,
}

impl Settings {
    fn of(project: &Project) -> Self {
        let (config, trust, problem) = match declared::config(project) {
            None => (Config::default(), Trust::Trusted, None),
            Some(Ok((config, trust))) => (config, trust, None),
            Some(Err(finding)) => (Config::default(), Trust::Untrusted, Some(finding.what)),
        };
        let verify = config.verify.unwrap_or_default();
        Settings {
            agents: verify.agents.unwrap_or_else(|| vec![AGENT.to_owned()]),
            rounds: verify.rounds,
            minutes: verify.minutes,
            excerpt: verify.excerpt,
            keep_going: config.keep_going,
            commands: verify.commands,
            is_trusted: trust.is_trusted(),
            problem,
        }
    }
}

/// What an agent has to prove, and how often it may try.
struct Asked {
    gates: Vec<Gate>,
    rounds: u64,
    minutes: u64,
    keep_going: bool,
    /// Where the settings lie, and so the counts; `None`: with ralph's own files.
    folder: Option<&'static str>,
    /// What cannot be read, for the person.
    problems: Vec<String>,
    /// Commands may stand in a file that cannot be read.
    misses_commands: bool,
}

impl Asked {
    /// The first settings that have commands; without any, the task's completion markers.
    fn of(project: &Project, settings: Settings) -> Self {
        let mut asked = Asked {
            gates: Vec::new(),
            rounds: settings.rounds,
            minutes: settings.minutes,
            keep_going: settings.keep_going,
            folder: None,
            misses_commands: settings.problem.is_some(),
            problems: settings.problem.into_iter().collect(),
        };
        match declared::worktree_commands(project) {
            Some(Ok((file, commands, trust))) => {
                let commands = commands.into_iter().map(|c| Command { excerpt: settings.excerpt.unwrap_or(c.excerpt), ..c }).collect();
                asked.gates = declared::of_commands(commands, &Origin::File(file.to_owned()), trust.is_trusted());
                asked.folder = Path::new(file).parent().and_then(Path::to_str);
                asked.misses_commands = false;
            }
            None if !settings.commands.is_empty() => {
                let origin = Origin::File(FILE.to_owned());
                asked.gates = declared::of_commands(settings.commands, &origin, settings.is_trusted);
            }
            broken => {
                asked.problems.extend(broken.and_then(Result::err).map(|finding| finding.what));
                asked.misses_commands = !asked.problems.is_empty();
                asked.ask_for_markers(project);
            }
        }
        asked
    }

    fn ask_for_markers(&mut self, project: &Project) {
        let found = check_task::FOLDERS.into_iter().find_map(|folder| Some((folder, check_task::markers(project, folder)?)));
        if let Some((folder, (file, words))) = found {
            let check = Check::Markers(Markers { words });
            self.gates = vec![Gate { trusted: true, every_stop: true, ..Gate::new("markers", check, Origin::List(file)) }];
            self.folder = Some(folder);
        }
    }

    /// Whether there is nothing to say about the agent.
    fn is_empty(&self) -> bool {
        self.gates.is_empty() && self.problems.is_empty()
    }

    /// Whether the agent is let go after this round, proven or not.
    fn is_last(&self, round: subagent_messages::Round) -> bool {
        round.iteration >= self.rounds || round.spent_ms >= self.minutes.saturating_mul(60_000)
    }

    /// The outcome, together with what cannot be read.
    fn told(&self, agent: &str, outcome: Outcome) -> Outcome {
        if self.problems.is_empty() {
            return outcome;
        }
        let problems = messages::opening(&self.problems.join("; "), 500);
        // Where it was sent back or given up, that is said already.
        let is_let_go = matches!(outcome.code, Reason::VERIFY_PASSED | Reason::VERIFY_BROKEN);
        let whose = if self.misses_commands && is_let_go { subagent_messages::unverified(agent) } else { "Ralph".to_owned() };
        let warning = format!("{whose}: {problems}.");
        Outcome { answer: outcome.answer.and_tell(&warning), ..outcome }
    }
}

fn verify(call: &Call, agent: &str, asked: &Asked) -> Outcome {
    if asked.gates.is_empty() {
        return freed(call, agent).unwrap_or_else(|| Outcome::silent(Reason::VERIFY_BROKEN));
    }
    if asked.gates.iter().any(|gate| !gate.trusted) {
        // Only a person can change that: to send the agent back would trap it.
        let finding = gates::measure(&asked.gates, Want::Cheap, &Context::new(&call.project, "verify", Duration::ZERO));
        let line =
            finding.first().map_or_else(|| subagent_messages::unverified(agent), |finding| subagent_messages::needs_person(agent, finding));
        return Outcome::tell(Reason::VERIFY_UNTRUSTED, line);
    }
    let key = agent_key(call);
    let by = asked.gates.first().map(|gate| gate.origin.shown()).unwrap_or_default();
    if counts(&call.project).filter_map(|state| state.asked_by(&key)).any(|before| before != by) {
        // Whoever may choose what to prove proves nothing.
        return freed(call, agent).unwrap_or_else(|| Outcome::silent(Reason::VERIFY_GONE));
    }
    let state = VerifyState::beside(&call.project, asked.folder);
    let task = asked.folder.and_then(|folder| check_task::current(&call.project, folder));
    let stop =
        Stop { agent: &key, asked_by: by, task: task.as_deref(), fingerprint: &call.event.stop_fingerprint(), via: &call.invocation.via() };
    let now = clock::now();
    let (round, error) = match state.count(&stop, now, &|via, at| call.is_second_report(via, at)) {
        Ok(Round::Repeated) => return Outcome::silent(Reason::STOP_REPEATED),
        Ok(Round::Counted { iteration, started_at, anew }) => {
            let spent_ms = u64::try_from(now.saturating_sub(started_at)).unwrap_or(0);
            (Some(subagent_messages::Round { iteration, rounds: asked.rounds, spent_ms }), anew)
        }
        // Without a count nobody knows when to give up, so this is the last round.
        Err(e) => (None, Some(e.to_string())),
    };
    // The last round is run whatever was found before: the agent may have mended something outside of the files.
    let is_last = round.is_none_or(|round| asked.is_last(round));
    let findings = measure(call, asked, &key, is_last);
    if !call.is_awaited() {
        return Outcome::silent(Reason::HOST_ENDED);
    }
    let outcome = answer(call, agent, asked, &findings, round, error.as_deref());
    // Whatever becomes of the count, the answer stands.
    let kept = if outcome.code == Reason::VERIFY_FAILED { state.sent_back(&key) } else { state.let_go(&key) };
    Outcome { error: error.or_else(|| kept.err().map(|e| e.to_string())), ..outcome }
}

fn measure(call: &Call, asked: &Asked, key: &str, again: bool) -> Vec<Finding> {
    let tree = tree_of(&call.project, call.event.text("cwd"));
    let about = format!("verify-{key}");
    let ctx = Context {
        tree: &tree,
        message: call.event.last_message().unwrap_or_default(),
        cancelled: &|| !call.is_awaited(),
        keep_going: asked.keep_going,
        again,
        ..Context::new(&call.project, &about, call.deadline.time_left())
    };
    let mut findings = gates::measure(&asked.gates, Want::Everything, &ctx);
    if tree != call.project.root() {
        // From there the path of a log leads nowhere.
        for log in findings.iter_mut().filter_map(|finding| finding.log.as_mut()) {
            *log = call.project.root().join(&*log).display().to_string();
        }
    }
    findings
}

fn answer(
    call: &Call,
    agent: &str,
    asked: &Asked,
    findings: &[Finding],
    round: Option<subagent_messages::Round>,
    error: Option<&str>,
) -> Outcome {
    if Proof::of(findings) == Proof::Holds {
        return Outcome::silent(Reason::VERIFY_PASSED);
    }
    match round {
        Some(round) if !asked.is_last(round) => {
            let text = subagent_messages::for_agent(findings, round);
            let line = subagent_messages::going_on(agent, findings, round);
            let answer = Answer::go_on(text, line, ContinueWith::Auto, call.client).at("SubagentStop");
            Outcome { answer, ..Outcome::silent(Reason::VERIFY_FAILED) }
        }
        Some(round) => Outcome::tell(Reason::VERIFY_UNVERIFIED, subagent_messages::given_up(agent, findings, round)),
        None => {
            let short = ralph_core::text::gate_messages::short(findings);
            let why = messages::opening(error.unwrap_or_default(), 300);
            let line = format!(
                "{}: {short}. It was let go because its iterations cannot be counted: {why}.",
                subagent_messages::unverified(agent)
            );
            Outcome::tell(Reason::VERIFY_UNVERIFIED, line)
        }
    }
}

/// What tells this agent from others, as a key and as part of a file's name.
fn agent_key(call: &Call) -> String {
    let id = call.event.text("agent_id").filter(|id| !id.trim().is_empty());
    let id = id.or_else(|| call.event.session()).unwrap_or("unknown");
    let is_plain = id.len() <= 64 && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if is_plain { id.to_owned() } else { format!("{:016x}", fnv1a(id.as_bytes())) }
}

/// Where the commands run: in the project, or in the linked working tree that the agent had to itself. A `cd` within one moves nothing.
fn tree_of(project: &Project, cwd: Option<&str>) -> PathBuf {
    let moved = || {
        let cwd = Path::new(cwd?);
        let here = Place::of(project);
        let there = Place::of(&Project::at(cwd.is_absolute().then_some(cwd)?));
        there.is_linked_to(&here).then(|| there.counterpart_of(&here))
    };
    moved().unwrap_or_else(|| project.root().to_owned())
}
