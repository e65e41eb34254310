//! A subagent stops. One of the types that have to prove their work is let go when it is proven, or when ralph gives up and says so (S3).
//!
//! This file gathers and commits; `subagent` in the core decides.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ralph_core::{
    config::{Config, FILE},
    gate::{Check, Command, Finding, Gate, Markers, Origin},
    judge::{
        Reason,
        subagent::{self, AGENT, Asked, Evidence, Next, Tries, is_of_type},
    },
    loops::{ContinueWith, fnv1a},
    messages::subagent_messages,
    text,
};

use crate::{
    gates::{self, Context, Want, declared},
    hook::{Call, Outcome, session},
    hosts::Answer,
    store::{
        Error, check_task, notices,
        place::Place,
        project::Project,
        trust::Trust,
        verify_state::{Iteration, Stop, VerifyState},
    },
    sys::clock,
};

pub(super) fn on_stop(call: &Call) -> Result<Outcome, Error> {
    // The client's own compaction reports itself as a subagent without a type; blocking that breaks it.
    let Some(agent) = call.event.about.as_deref().map(str::trim).filter(|agent| !agent.is_empty()) else {
        return session::on_other(call);
    };
    let asked = Proofs::asked_of(agent, &call.project);
    let outcome = SubagentStop::new(call, agent, &asked).outcome();
    if outcome.code == Reason::EVENT_HEARD {
        return session::on_other(call);
    }
    let outcome = asked.with_problems(agent, outcome);
    keep_for_the_person(call, &outcome);
    Ok(noted(call, agent, outcome))
}

/// One stop of a subagent.
struct SubagentStop<'a> {
    call: &'a Call,
    agent: &'a str,
    asked: &'a Proofs,
    /// Tells this agent from others.
    key: String,
    /// The counts that know it as sent back.
    counts: Vec<VerifyState<'a>>,
}

impl<'a> SubagentStop<'a> {
    fn new(call: &'a Call, agent: &'a str, asked: &'a Proofs) -> Self {
        let key = agent_key(call);
        let folders = check_task::FOLDERS.into_iter().map(Some).chain([None]);
        let counts = folders.map(|folder| VerifyState::beside(&call.project, folder)).filter(|state| state.knows(&key)).collect();
        SubagentStop { call, agent, asked, key, counts }
    }

    fn outcome(&self) -> Outcome {
        let by = self.asked.gates.first().map(|gate| gate.origin.shown()).unwrap_or_default();
        let is_asked_else = || self.counts.iter().filter_map(|state| state.asked_by(&self.key)).any(|before| before != by);
        if self.asked.gates.is_empty() {
            self.unmeasured(if self.asked.problems.is_empty() { Asked::Nothing } else { Asked::Unreadable })
        } else if self.asked.gates.iter().any(|gate| !gate.trusted) {
            self.unmeasured(Asked::Untrusted)
        } else if is_asked_else() {
            self.unmeasured(Asked::SomethingElse)
        } else {
            self.measured(by)
        }
    }

    fn judge(&self, asked: Asked<'_>) -> subagent::Ruling {
        // Without an id of its own, another agent of the session may be the one that was sent back.
        let has_id = self.call.event.agent_id.as_ref().is_some_and(|id| !id.trim().is_empty());
        subagent::judge(Evidence { asked, was_sent_back: has_id && !self.counts.is_empty() })
    }

    /// A stop for which nothing is run.
    fn unmeasured(&self, asked: Asked<'_>) -> Outcome {
        let ruling = self.judge(asked);
        if ruling.next == Next::Forgotten {
            let errors: Vec<String> = self.counts.iter().filter_map(|state| state.remove(&self.key).err()).map(|e| e.to_string()).collect();
            let error = (!errors.is_empty()).then(|| errors.join("; "));
            return Outcome { error, ..Outcome::tell(ruling.code, subagent_messages::gone(self.agent)) };
        }
        if ruling.code != Reason::VERIFY_UNTRUSTED {
            return Outcome::silent(ruling.code);
        }
        let findings = gates::measure(&self.asked.gates, Want::Cheap, &Context::new(&self.call.project, "verify", Duration::ZERO));
        let line = findings
            .first()
            .map_or_else(|| subagent_messages::unverified(self.agent), |finding| subagent_messages::needs_person(self.agent, finding));
        Outcome::tell(ruling.code, line)
    }

    /// Counts the stop, measures, rules and writes down what was ruled. `by`: what asks for the proof.
    fn measured(&self, by: &str) -> Outcome {
        let (call, key) = (self.call, self.key.as_str());
        let state = VerifyState::beside(&call.project, self.asked.folder);
        let task = self.asked.folder.and_then(|folder| check_task::current(&call.project, folder));
        let (fingerprint, via) = (call.event.stop_fingerprint(), call.invocation.via());
        let stop = Stop { agent: key, asked_by: by, task: task.as_deref(), fingerprint: &fingerprint, via: &via };
        let now = clock::now();
        let (tries, error) = match state.count(&stop, now, &|via, at| call.is_second_report(via, at)) {
            Ok(Iteration::Repeated) => return Outcome::silent(Reason::STOP_REPEATED),
            Ok(Iteration::Counted { iteration, started_at, anew }) => {
                let spent_ms = u64::try_from(now.saturating_sub(started_at)).unwrap_or(0);
                (Some(Tries { iteration, spent_ms, ..self.asked.limits }), anew)
            }
            Err(e) => (None, Some(e.to_string())),
        };
        // The last iteration runs everything again: the agent may have fixed something outside of the files.
        let findings = self.measure(tries.is_none_or(Tries::is_last));
        if !call.is_awaited() {
            return Outcome::silent(Reason::HOST_ENDED);
        }
        let ruling = self.judge(Asked::Proof { findings: &findings, tries });
        let outcome = match (ruling.next, tries) {
            (Next::SentBack, Some(tries)) => {
                let text = subagent_messages::for_agent(&findings, tries);
                let line = subagent_messages::going_on(self.agent, &findings, tries);
                let answer = Answer::go_on(text, line, ContinueWith::Auto, call.client);
                Outcome::new(ruling.code, answer)
            }
            _ if ruling.code == Reason::VERIFY_PASSED => Outcome::silent(ruling.code),
            (_, Some(tries)) => Outcome::tell(ruling.code, subagent_messages::given_up(self.agent, &findings, tries)),
            (_, None) => {
                Outcome::tell(ruling.code, subagent_messages::uncounted(self.agent, &findings, error.as_deref().unwrap_or_default()))
            }
        };
        // The answer stands even if the count cannot be written.
        let kept = if ruling.next == Next::SentBack { state.sent_back(key) } else { state.let_go(key) };
        Outcome { error: error.or_else(|| kept.err().map(|e| e.to_string())), ..outcome }
    }

    fn measure(&self, again: bool) -> Vec<Finding> {
        let call = self.call;
        let tree = tree_of(&call.project, call.event.cwd.as_deref());
        let about = format!("verify-{}", self.key);
        let ctx = Context {
            tree: &tree,
            message: call.event.message.as_deref().unwrap_or_default(),
            cancelled: &|| !call.is_awaited(),
            keep_going: self.asked.keep_going,
            again,
            ..Context::new(&call.project, &about, call.deadline.time_left())
        };
        let mut findings = gates::measure(&self.asked.gates, Want::Everything, &ctx);
        if tree != call.project.root() {
            // From there the path of a log leads nowhere.
            for log in findings.iter_mut().filter_map(|finding| finding.log.as_mut()) {
                *log = call.project.root().join(&*log).display().to_string();
            }
        }
        findings
    }
}

/// The client shows the person nothing of what is said here, so the session's own stop says it again.
fn keep_for_the_person(call: &Call, outcome: &Outcome) {
    if let (Answer::Tell { line }, Some(session)) = (&outcome.answer, call.event.session()) {
        // The hook's log has it in any case.
        let _ = notices::keep(&call.project, session, clock::now(), line);
    }
}

/// A line in the journal of the session's loop, where it has one. The ruling stands without it.
fn noted(call: &Call, agent: &str, outcome: Outcome) -> Outcome {
    let detail = format!("{}: {}", text::excerpt(agent, 60), outcome.code.as_str());
    let heard = session::heard_that(call, Some(detail), |_| {})
        .unwrap_or_else(|e| Outcome { error: Some(e.to_string()), ..Outcome::silent(Reason::INTERNAL_ERROR) });
    let error = outcome.error.clone().or(heard.error);
    Outcome { loop_id: heard.loop_id, error, ..outcome }
}

/// The proof that is asked of an agent, and how often it may try.
#[derive(Default)]
struct Proofs {
    gates: Vec<Gate>,
    limits: Tries,
    keep_going: bool,
    /// The folder of the settings, and so of the counts; `None`: with ralph's own files.
    folder: Option<&'static str>,
    /// Settings that cannot be read, for the person.
    problems: Vec<String>,
    /// A file that cannot be read may hold commands.
    misses_commands: bool,
}

impl Proofs {
    /// The first settings that have commands; without any, the task's completion markers. Nothing for agents of other types.
    fn asked_of(agent: &str, project: &Project) -> Self {
        let (config, trust, problem) = match declared::config(project) {
            None => (Config::default(), Trust::Trusted, None),
            Some(Ok((config, trust))) => (config, trust, None),
            Some(Err(finding)) => (Config::default(), Trust::Untrusted, Some(finding.what)),
        };
        let verify = config.verify.unwrap_or_default();
        let agents = verify.agents.unwrap_or_else(|| vec![AGENT.to_owned()]);
        if !agents.iter().any(|name| is_of_type(agent, name)) {
            return Proofs::default();
        }
        let mut asked = Proofs {
            limits: Tries { max_iterations: verify.rounds, max_ms: verify.minutes.saturating_mul(60_000), ..Tries::default() },
            keep_going: config.keep_going,
            misses_commands: problem.is_some(),
            problems: problem.into_iter().collect(),
            ..Proofs::default()
        };
        match declared::worktree_commands(project) {
            Some(Ok((file, commands, trust))) => {
                let commands = commands.into_iter().map(|c| Command { excerpt: verify.excerpt.unwrap_or(c.excerpt), ..c }).collect();
                asked.gates = declared::of_commands(commands, &Origin::File(file.to_owned()), trust.is_trusted());
                asked.folder = Path::new(file).parent().and_then(Path::to_str);
                asked.misses_commands = false;
            }
            None if !verify.commands.is_empty() => {
                asked.gates = declared::of_commands(verify.commands, &Origin::File(FILE.to_owned()), trust.is_trusted());
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

    /// The outcome, together with what cannot be read.
    fn with_problems(&self, agent: &str, outcome: Outcome) -> Outcome {
        if self.problems.is_empty() {
            return outcome;
        }
        let problems = text::opening(&self.problems.join("; "), 500);
        // Where it was sent back or given up, that is said already.
        let is_let_go = matches!(outcome.code, Reason::VERIFY_PASSED | Reason::VERIFY_BROKEN);
        let whose = if self.misses_commands && is_let_go { subagent_messages::unverified(agent) } else { "Ralph".to_owned() };
        Outcome { answer: outcome.answer.and_tell(&format!("{whose}: {problems}.")), ..outcome }
    }
}

/// Tells this agent from others, as a key and as part of a file's name.
fn agent_key(call: &Call) -> String {
    let id = call.event.agent_id.as_deref().filter(|id| !id.trim().is_empty());
    let id = id.or_else(|| call.event.session()).unwrap_or("unknown");
    let is_plain = id.len() <= 64 && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if is_plain { id.to_owned() } else { format!("{:016x}", fnv1a(id.as_bytes())) }
}

/// The folder in which the commands run: the project's, or the linked working tree that the agent had to itself. A `cd` within one moves nothing.
fn tree_of(project: &Project, cwd: Option<&str>) -> PathBuf {
    let moved = || {
        let cwd = Path::new(cwd?);
        let here = Place::of(project);
        let there = Place::of(&Project::at(cwd.is_absolute().then_some(cwd)?));
        there.is_linked_to(&here).then(|| there.counterpart_of(&here))
    };
    moved().unwrap_or_else(|| project.root().to_owned())
}
