//! One session of an agent: started, listened to, and ended if need be.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    sync::{Arc, mpsc::sync_channel},
    thread,
    time::{Duration, Instant},
};

use ralph_core::{
    gate::Stream as Pipe,
    judge::{
        ToolUse,
        session_outcome::{Cut, Outcome, Trouble, Work},
    },
    text::time::millis,
};

use crate::{
    hosts::{
        self, Exit, Headless, Host, Launch,
        acp::{self, AcpAgent},
        prices::Prices,
        why,
    },
    run::{
        events::Heard,
        listener::{Decoder, Ear, Listening},
    },
    sys::{
        command::{self, Asked, Failure, Leave, Listener, Task},
        env, process_tree,
    },
};

/// How long an agent that was told to cancel its turn may take for that, before it is asked to end: this part of its grace.
const PART_OF_GRACE: u32 = 3;

/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// So many bundles of events wait for the observer before the agent has to wait.
const WAITING: usize = 16;

/// So many lines wait for an agent that ralph talks with.
const MOST_UNREAD: usize = 1_024;

/// The program that is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// One that ralph knows, and its program.
    Known(&'static Host, PathBuf),
    /// A line for the shell that reads the prompt from its standard input and prints its answer.
    Command(String),
    /// One that ralph knows, over ACP, and its program.
    Acp(&'static AcpAgent, PathBuf),
    /// A line for the shell that starts an agent which speaks ACP.
    AcpCommand(String),
}

impl Agent {
    /// It does not end by itself when the money is spent: ralph ends it, where it tells what it uses as it goes.
    fn needs_budget(&self) -> bool {
        match self {
            Agent::Known(host, _) => host.headless.as_ref().is_none_or(|headless| headless.budget.is_none()),
            Agent::Command(_) | Agent::Acp(..) | Agent::AcpCommand(_) => true,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Agent::Known(host, _) => host.name,
            Agent::Command(_) => "command",
            Agent::Acp(agent, _) => agent.name,
            Agent::AcpCommand(_) => acp::COMMAND.name,
        }
    }

    /// The name that people know.
    pub fn title(&self) -> &str {
        match self {
            Agent::Known(host, _) => host.title,
            Agent::Acp(agent, _) => agent.title,
            Agent::Command(line) | Agent::AcpCommand(line) => line,
        }
    }

    pub fn is_claude(&self) -> bool {
        matches!(self, Agent::Known(host, _) if host.is_claude())
    }

    /// Whether ralph talks with it over its standard input.
    fn talks(&self) -> bool {
        matches!(self, Agent::Acp(..) | Agent::AcpCommand(_))
    }

    /// Whether it tells what it used.
    pub fn tells_use(&self) -> bool {
        self.headless().is_some()
    }

    pub(super) fn headless(&self) -> Option<&'static Headless> {
        match self {
            Agent::Known(host, _) => host.headless.as_ref(),
            Agent::Acp(agent, _) => Some(&agent.headless),
            Agent::AcpCommand(_) => Some(&acp::COMMAND.headless),
            Agent::Command(_) => None,
        }
    }
}

/// One session that is wanted.
#[derive(Debug)]
pub struct Session<'a> {
    pub agent: &'a Agent,
    /// Where it works.
    pub folder: &'a Path,
    pub prompt: &'a str,
    /// Its id, a UUID.
    pub id: &'a str,
    pub model: Option<&'a str>,
    pub permission_mode: Option<&'a str>,
    /// The money that is left to the loop; 0: no limit.
    pub usd_micros_left: u64,
    /// For an agent that tells tokens and no money.
    pub prices: &'a Prices,
    /// `RALPH_RUN` in its environment, and so in that of all that it starts.
    pub mark: &'a str,
    pub iteration: u64,
    /// It is ended if nothing is heard for so long; zero: never.
    pub silence: Duration,
    /// It is ended after so long; zero: never.
    pub limit: Duration,
    /// The time between the request to end and the end.
    pub grace: Duration,
    /// All that it says is written here.
    pub log: &'a Path,
}

/// How a session ended.
#[derive(Debug)]
pub struct Ended {
    pub outcome: Outcome,
    /// The agent's last message.
    pub text: Option<String>,
    pub tools: ToolUse,
    pub work: Work,
}

impl Ended {
    /// A session that was not even started.
    pub(super) fn of_nothing(text: Option<String>) -> Self {
        Ended { outcome: Outcome::Stopped, text, tools: ToolUse::Unknown, work: Work::default() }
    }
}

impl Session<'_> {
    /// Runs it to its end. While it runs, `hears` is told what is heard, and `wanted` is asked again and again whether it may go on. Afterwards nothing that
    /// it started is left.
    pub fn run(&self, hears: &(dyn Fn(&Heard) + Send + Sync), wanted: &dyn Fn() -> bool) -> Ended {
        process_tree::inherit_orphans();
        let (tell, told) = sync_channel(WAITING);
        let mut sense = match self.agent.headless() {
            Some(headless) => Decoder::Events((headless.stream)(&self.launch())),
            None => Decoder::plain(),
        };
        let mut task = self.task();
        let (answers, more) =
            sense.first_words().map(|words| (words, sync_channel(MOST_UNREAD))).map_or((None, None), |(words, (answers, more))| {
                task.input = words;
                (Some(answers), Some(more))
            });
        let ear = Arc::new(Ear::new(sense, self.log, &shown(&task), tell, answers));
        let (ended, reason, listening) = thread::scope(|scope| {
            scope.spawn(|| told.into_iter().map_while(|told| told).flatten().for_each(|heard| hears(&heard)));
            let listener: Listener = {
                let ear = Arc::clone(&ear);
                Arc::new(move |pipe: Pipe, bytes: &[u8]| ear.hear(pipe, bytes))
            };
            let reason = RefCell::new(None);
            let is_cancelled = || {
                let now = self.reason(&ear, wanted);
                let is_some = now.is_some();
                *reason.borrow_mut() = now;
                is_some
            };
            let leave =
                Leave { cancelled: &is_cancelled, grace: self.grace, hurry: self.grace, asked: &|| self.asked(&ear), leave_running: None };
            let ended = match more {
                Some(more) => task.run_in_conversation(&listener, leave, more),
                None => task.run_heard(&listener, leave),
            };
            (ended, reason.into_inner(), ear.finish())
        });
        // If another program ran at the same time, orphans were not looked for.
        if process_tree::has_children() {
            process_tree::end_marked(&format!("{}={}", env::RUN, self.mark));
        }
        Session::ended(ended, reason, listening, ear.took())
    }

    fn task(&self) -> Task<'_> {
        let vars = [(env::RUN, self.mark), ("RALPH_ITERATION", &self.iteration.to_string()), ("RALPH_SESSION", self.id)];
        let headless = self.agent.headless();
        let own = headless.into_iter().flat_map(|headless| headless.variables).copied();
        let vars = vars.into_iter().chain(self.model.map(|model| ("RALPH_MODEL", model))).chain(own);
        let (program, args) = match self.agent {
            Agent::Known(_, program) | Agent::Acp(_, program) => {
                (program.into(), headless.map(|headless| headless.args(&self.launch())).unwrap_or_default())
            }
            Agent::Command(line) | Agent::AcpCommand(line) => command::shell(line),
        };
        Task {
            program,
            args,
            folder: self.folder,
            vars: vars.map(|(name, value)| (name.into(), value.into())).collect(),
            hidden: hosts::of_a_session(),
            input: self.prompt.into(),
            limit: Duration::MAX,
            most_output: 0,
        }
    }

    fn launch(&self) -> Launch<'_> {
        Launch {
            session: self.id,
            model: self.model,
            permission_mode: self.permission_mode,
            usd_micros_left: self.usd_micros_left,
            prices: self.prices,
            folder: self.folder,
            prompt: self.prompt,
        }
    }

    /// How it is asked to end. A client that is interrupted tells what it used. One whose agent has stopped has done so, and takes any request for the end of
    /// what runs in its background, of which it tells the agent, who begins anew (2.1.197).
    fn asked(&self, ear: &Ear) -> Asked {
        ear.cancel();
        let until = Instant::now() + self.grace / PART_OF_GRACE;
        while self.agent.talks() && !ear.is_over() && Instant::now() < until {
            thread::sleep(LOOK_EVERY);
        }
        let heeds_interrupts = self.agent.headless().is_some_and(|headless| headless.heeds_interrupts);
        match heeds_interrupts {
            true if ear.is_over() => Asked::Not,
            true => Asked::ToStop,
            false => Asked::ToEnd,
        }
    }

    /// Why the session is to be ended now, if it is: the outcome that it has then.
    fn reason(&self, ear: &Ear, wanted: &dyn Fn() -> bool) -> Option<Outcome> {
        let is_over = |limit: Duration, time: Duration| !limit.is_zero() && time > limit;
        let silence = ear.silence();
        let reason = if !wanted() {
            Some(Outcome::Interrupted)
        } else if is_over(self.limit, ear.took()) {
            Some(Outcome::Cut { by: Cut::Time })
        } else if self.agent.needs_budget() && self.usd_micros_left > 0 && ear.spent() > self.usd_micros_left {
            Some(Outcome::Cut { by: Cut::Money })
        } else if is_over(self.silence, silence) || (ear.is_over() && silence > ear.patience()) || ear.is_stuck() {
            Some(Outcome::Cut { by: Cut::Silence })
        } else {
            None
        };
        // An agent that has come to its end is not cut off, whatever its process still waits for.
        let of_itself = || ear.now(|listening| listening.stopped(Exit::default())).flatten();
        reason.map(|reason| if ear.is_over() || ear.is_stuck() { of_itself().unwrap_or(reason) } else { reason })
    }

    fn ended(ended: Result<command::Ended, Failure>, reason: Option<Outcome>, listening: Option<Listening>, took: Duration) -> Ended {
        let complaints = listening.as_ref().map(Listening::complaints).unwrap_or_default();
        let outcome = match (ended, reason, &listening) {
            (Err(Failure::CannotStart(e)), ..) => cannot_start(e.to_string()),
            (Err(Failure::Cancelled | Failure::TookTooLong), Some(reason), _) => reason,
            (Ok(command::Ended { code, signal, .. }), _, Some(Listening { sense: Decoder::Events(stream), .. })) => {
                stream.outcome(Exit { code, signal }, &complaints)
            }
            (Ok(ended), ..) => of_command(&ended, &complaints),
            (Err(_), None, _) => Outcome::Interrupted,
        };
        let Some(mut listening) = listening else { return Ended { outcome, text: None, tools: ToolUse::Unknown, work: Work::default() } };
        listening.close(&outcome.words());
        let took_ms = millis(took);
        let is_cut = matches!(outcome, Outcome::Cut { .. });
        match &listening.sense {
            Decoder::Events(stream) => {
                Ended { outcome, text: stream.text(), tools: stream.tools(), work: Work { took_ms, ..stream.work() } }
            }
            Decoder::Plain(text) => Ended {
                outcome,
                // A program that was ended had not said its last word.
                text: Some(text.text()).filter(|text| !text.trim().is_empty() && !is_cut),
                tools: ToolUse::Unknown,
                work: Work { took_ms, ..Work::default() },
            },
        }
    }
}

impl Listening {
    /// How the agent ended by itself, if it did.
    fn stopped(&self, exit: Exit) -> Option<Outcome> {
        match &self.sense {
            Decoder::Events(stream) => Some(stream.outcome(exit, "")),
            Decoder::Plain(_) => None,
        }
    }
}

fn cannot_start(why: String) -> Outcome {
    Outcome::Failed { trouble: Trouble::CannotStart { why } }
}

/// The outcome of a plain program.
fn of_command(ended: &command::Ended, complaints: &str) -> Outcome {
    match (ended.code, ended.signal) {
        (Some(0), _) => Outcome::Stopped,
        // The shell's codes for a program that it does not find or may not run.
        (Some(code @ (126 | 127)), _) => cannot_start(why(code, complaints)),
        (code, signal) => Outcome::Failed { trouble: Trouble::Crash { code, signal } },
    }
}

/// The command line, for the log.
fn shown(task: &Task<'_>) -> String {
    let words = [&task.program].into_iter().chain(&task.args);
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
