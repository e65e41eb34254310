//! Starting a loop.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ralph_core::{
    gate::Run,
    journal::{Actor, Event},
    judge::{self, Standstill},
    loops::{LoopFile, LoopSettings, MAX_FILE_BYTES, NewLoop, Preset, file_of, is_name},
    messages::Reader,
    text::{self, time},
};

use crate::{
    gates::{
        Watch,
        declared::{self, LOOP_ORIGIN},
        loop_start::{self, Begun},
    },
    hosts::{self, Host},
    ops::{Asker, Refusal, item, linked_elsewhere},
    stop,
    store::{
        journal,
        loops::{self, LoopOnDisk},
        project::Project,
        project_lock::{Locked, Loop},
        trust,
    },
    sys::clock,
    view::{self, phase},
};

/// Leaves room for the front matter.
const MAX_PROMPT: usize = MAX_FILE_BYTES - (1 << 20);

/// How long fingerprinting the files may take before a loop begins.
const LOOK: Duration = Duration::from_secs(2);

/// The loop that is wanted.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub name: Option<String>,
    pub prompt: String,
    /// A person who asks for commands to verify with trusts them.
    pub settings: LoopSettings,
}

/// A prompt longer than this is worth a word: it is sent at every iteration.
const LONG_PROMPT: usize = 100 << 10;

impl Request {
    /// Whether it would start a loop that nothing ends but a cancel or a default brake.
    pub fn is_endless(&self, project: &Project) -> bool {
        let is_taken = || loops::all(project).iter().any(|found| found.name == self.name.as_deref().unwrap_or("main"));
        self.settings.is_endless() && declared::of_project(project).is_empty() && !is_taken()
    }

    /// What to tell the person who starts it, and no reason not to.
    pub fn remark(&self) -> Option<String> {
        let size = self.prompt.len();
        (size > LONG_PROMPT).then(|| {
            format!(
                "the prompt has {} KB, and all of it is sent at every iteration: put the details in a file and name that in the prompt",
                size >> 10
            )
        })
    }
}

/// The loop that was started.
pub struct Started {
    pub id: String,
    pub path: PathBuf,
    pub file: LoopFile,
    /// The gates that it has to pass, and those that fail already.
    pub begun: Begun,
    /// How far its pull request is, if it has to do with one.
    pub phase: Option<String>,
    /// It has something to prove.
    gated: bool,
}

impl Started {
    /// The effective limits in words, for a session of Claude Code with this setting of its cap.
    pub fn limits(&self, block_cap: Option<&str>) -> Vec<String> {
        self.limits_under(judge::block_cap(block_cap))
    }

    /// The same for a session of this agent.
    pub(crate) fn limits_of(&self, host: &Host, project: &Path) -> Vec<String> {
        if !host.counts_every_block() {
            return self.limits_under(host.block_cap(project));
        }
        let in_a_turn = host.blocks_in_a_turn(project).map(|most| format!("pauses when it was sent back {most} times in one turn"));
        self.limits_under(None).into_iter().chain(in_a_turn).collect()
    }

    fn limits_under(&self, cap: Option<u64>) -> Vec<String> {
        let (idle, _) = judge::idle_limit(self.file.idle_rounds, cap);
        let f = &self.file;
        let mut limits = f.limits_in_words(self.gated, idle);
        let is_of_a_pull_request = f.preset.is_some_and(Preset::is_of_a_pull_request);
        limits.extend(f.further_limits_in_words(f.hook_stall_rounds(), is_of_a_pull_request));
        limits
    }
}

/// Starts a loop, and notes what later iterations are compared with. Commands whose old failures do not count run once, within `budget`.
pub fn start(
    project: &Project,
    request: &Request,
    asker: &Asker,
    budget: Duration,
    watch: Arc<dyn Watch>,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Started, Refusal> {
    let Loop { id, found, file, state, .. } = *create(project, request, asker)?;
    let begun = loop_start::note(project, &id, &file, budget, watch);
    let phase = phase::at_the_start(project, &id, &begun.declared, cancelled);
    Ok(Started { id, path: found.path, file, begun, phase, gated: state.gated })
}

/// Writes the loop's file and the first line of its journal.
fn create(project: &Project, request: &Request, asker: &Asker) -> Result<Box<Loop>, Refusal> {
    let name = request.name.as_deref().unwrap_or("main");
    let verify = checked(project, request, name)?;
    let item = request.settings.item.as_deref().map(|id| item::lasting_name(project, id)).transpose()?;
    // The first iteration is compared with it. Taken before the lock, which others may be waiting for.
    let tree = stop::tree(project, name, LOOK);
    let locked = Locked::acquire(project)?;
    refuse_a_live_one(project, name, asker)?;
    // A person who types a command trusts it. An agent that runs ralph in its shell does not, nor does a prompt that anything may have written.
    let by_person = if asker.actor() == Actor::Session { asker.typed } else { hosts::of_an_agent().is_none() };
    if by_person && !verify.is_empty() {
        trust::trust_commands(project, LOOP_ORIGIN, &verify)?;
    }
    let now = clock::now();
    let started_at = &time::format(now);
    let id = new_id(project, name, started_at);
    let settings = LoopSettings { item, ..request.settings.clone() };
    let new = NewLoop { id: &id, session_id: asker.session.as_deref(), started_at, settings, prompt: &request.prompt };
    if !locked.create(name, &new)? {
        return Err(Refusal::Because(format!("{} already exists", file_of(name))));
    }
    let found = loops::read(project, name)?.ok_or(Refusal::NoLoop)?;
    let mut l = locked.open(found).map_err(|f| Refusal::Because(format!("{} cannot be read back", f.path.display())))?;
    l.state.client_pid = asker.client_pid;
    l.state.command.clone_from(&asker.command);
    // A loop that has no session yet starts its clock with the first one, and is there for it because a person said so.
    if asker.session.is_some() {
        l.state.arm(now);
    } else {
        l.state.released = true;
    }
    l.state.standstill = Standstill::after(None, tree.as_deref(), &[]).filter(|_| l.file.hook_stall_rounds() > 0);
    l.state.gated = !declared::of_loop(project, &l.file).is_empty();
    let event = Event::Started { file: file_of(name), by: asker.actor(), prompt: text::opening(&request.prompt, 200) };
    locked.record(&mut l, now, asker.session.as_deref(), event)?;
    project.introduce();
    Ok(l)
}

/// Checks the request. Returns its commands as they will be read from the file: only what is trusted letter by letter runs.
fn checked(project: &Project, request: &Request, name: &str) -> Result<Vec<Run>, Refusal> {
    let LoopSettings { completion_promise, verify, deadline_ms, preset, merge, .. } = &request.settings;
    let verify: Vec<Run> = verify.iter().map(|line| Run::Shell(line.trim().to_owned())).collect();
    let problem = if request.prompt.trim().is_empty() {
        Some("there is no prompt: say what the agent should work on, as in `/ralph-loop Fix the failing tests`; `/ralph help` shows the options".to_owned())
    } else if completion_promise.as_ref().is_some_and(|p| p.trim().is_empty()) {
        Some("the completion promise needs words".to_owned())
    } else if request.prompt.len() > MAX_PROMPT {
        Some(format!("the prompt is longer than {} MB: put the details in a file and name it in the prompt", MAX_PROMPT >> 20))
    } else if !is_name(name) {
        Some(format!("\"{name}\" is no name for a loop: use letters, digits, - and _"))
    } else if verify.iter().any(|run| run.shown().is_empty() || run.shown().contains('\0')) {
        Some("a command to verify with needs words".to_owned())
    } else if merge.is_some() && *preset != Some(Preset::Pr) {
        Some("--merge goes with --preset pr".to_owned())
    } else if deadline_ms.is_some() && verify.is_empty() {
        Some("a deadline needs a command that it is for: give --verify as well".to_owned())
    } else {
        // Later the loop could only pause for it; now a person is there to fix it.
        linked_elsewhere(project).or_else(|| preset.and_then(|preset| declared::preset_problem(project, preset)))
    };
    problem.map_or(Ok(verify), |problem| Err(Refusal::Because(problem)))
}

/// A live loop is never overwritten, and a session has one loop at a time.
fn refuse_a_live_one(project: &Project, name: &str, asker: &Asker) -> Result<(), Refusal> {
    for found in loops::all(project) {
        let of_session = asker.session.is_some() && view::owner(project, &found) == asker.session;
        if found.name == name || of_session {
            return Err(live(project, &found, asker.reader()));
        }
    }
    Ok(())
}

/// Why no loop can be started beside this one.
fn live(project: &Project, found: &LoopOnDisk, reader: Reader) -> Refusal {
    let named = if found.name == "main" { String::new() } else { format!(" {}", found.name) };
    Refusal::Because(match &found.parsed {
        Ok(file) => {
            let iteration = text::of_limit(file.iteration, file.max_iterations());
            let by_run = || journal::history(&project.journal(&found.id())).by_run;
            let resume = match reader {
                Reader::Session => format!(", {} goes on with it", reader.resume(&named)),
                Reader::Terminal if by_run() => format!(", `ralph run --continue{named}` goes on with it"),
                // Its session works on it.
                Reader::Terminal if file.active && file.session_id.is_some() => String::new(),
                Reader::Terminal => {
                    format!(", {} goes on with it in a session, `ralph run --continue{named}` in fresh ones", reader.resume(&named))
                }
            };
            let state = if file.active { "active" } else { "paused" };
            let (status, cancel) = (reader.status(), reader.cancel(&named));
            let name = if named.is_empty() { String::new() } else { format!(" \"{}\"", found.name) };
            format!("a loop{name} is {state} in this project (iteration {iteration}). {status} shows it{resume}, {cancel} ends it")
        }
        Err(problem) => format!("{} cannot be read: {problem}. Fix it, or {} puts it aside", found.path.display(), reader.cancel(&named)),
    })
}

/// `main-20261115-093000`, made unique where two start within a second.
fn new_id(project: &Project, name: &str, now: &str) -> String {
    let digits: String = now.chars().take(19).filter_map(|c| if c == 'T' { Some('-') } else { c.is_ascii_digit().then_some(c) }).collect();
    let base = format!("{name}-{digits}");
    let taken = |id: &str| project.journal(id).exists() || project.archive().join(format!("{id}.md")).exists();
    let numbered = (2..).map(|n| format!("{base}-{n}"));
    std::iter::once(base.clone()).chain(numbered).find(|id| !taken(id)).unwrap_or(base)
}
