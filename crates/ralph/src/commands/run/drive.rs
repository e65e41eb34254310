//! From the command line to the engine's runner: the agent, the settings, the place, the loop.

use std::{
    borrow::Cow,
    path::Path,
    sync::{Arc, OnceLock},
};

use ralph_core::{config::Running, loops::LoopSettings, text::clean};
use ralph_engine::{
    gates::{self, declared},
    hosts::{Host, acp::AcpAgent, prices::Prices},
    notify::Ways,
    ops::{
        self, Asker,
        command_sources::{Purpose, Source},
        resume, start, worktree,
    },
    run::{
        self, Orders,
        events::{End, Observer, RunEvent},
        preflight::{self, Weight},
        session,
    },
    store::{project::Project, run_options::RunOptions},
    sys::signals,
};

use super::{Request, Sessions, Subject, preconditions};
use crate::{
    commands::start::{begin as begin_loop, confirm_endless},
    exit::{BLOCKED, Failure},
    report,
};

pub(super) fn drive(project: &Project, request: Request, observer: &Arc<dyn Observer>) -> Result<End, Failure> {
    // Once there is a loop, it has to be put to rest first.
    signals::notice();
    let warn = |text: String| observer.on_event(&RunEvent::Warning { text });
    preconditions::look(project, &request, &warn)?;
    let mut place = place(project, &request, &warn)?;
    let (name, options) = options(&place, &request);
    if let Some(gates) = &options.gates {
        place = Cow::Owned(place.into_owned().under_settings(Path::new(gates))?);
    }
    let project = &*place;
    refuse_what_cannot_be_proven(project)?;
    let agents = find_agents(project, &options)?;
    let mut settings = settings(project, &options, request.sessions.no_snapshots, &warn);
    let (ways, left_out) = Ways::of_run(project, &request.notify).map_err(Failure::usage)?;
    left_out.into_iter().for_each(warn);
    let mut remarks = Vec::new();
    let task = task(project, &name, &request.subject);
    for (agent, _) in &agents {
        remarks.extend(look(project, &settings, &task, request.subject.verify(), agent)?);
    }
    untrusted_lists(project).into_iter().for_each(&warn);
    settings.permission_mode = preflight::mode_to_ask_for(project, settings.permission_mode);
    let is_bare = request.is_bare;
    let (resume, as_before) = match request.subject {
        Subject::Again(resume) => (resume, options.words()),
        Subject::New(mut wanted) => {
            let counts_money = agents.iter().any(|(agent, _)| agent.tells_use());
            let limits = if counts_money { "8 hours or $50 are used up" } else { "8 hours are over" };
            confirm_endless(project, &wanted, request.endless, request.may_ask, limits)?;
            wanted.remark().into_iter().for_each(&warn);
            // Money is limited unless the person says otherwise, where it can be counted at all.
            if counts_money {
                wanted.settings.max_usd.get_or_insert(LoopSettings::RUN_USD);
            }
            (begin(project, &wanted, &warn)?, None)
        }
    };
    // Without it, the next run needs the options again, and that is all.
    let _ = options.keep(project, &name);
    let prices = Prices(std::mem::take(&mut settings.prices));
    let orders = Orders { resume, agents, prices, rounds: request.iterations, settings, waits: !request.no_wait, ways, as_before, remarks };
    let observer: Arc<dyn Observer> =
        Arc::new(WithPage { observer: Arc::clone(observer), project: project.clone(), of_loop: OnceLock::new() });
    let ended = run::drive(project, &orders, &observer).map_err(|refusal| {
        let failure = Failure::from(refusal);
        // A live loop is what was meant.
        if is_bare && ops::choose(project, None, None).is_err() { preconditions::without_a_task(failure) } else { failure }
    })?;
    report::save_page(project, &ended.loop_id);
    Ok(ended.end)
}

/// An observer, and the loop's page whenever the run rests. When it is over the page is written anyway.
struct WithPage {
    observer: Arc<dyn Observer>,
    project: Project,
    of_loop: OnceLock<String>,
}

impl Observer for WithPage {
    fn on_event(&self, told: &RunEvent<'_>) {
        self.observer.on_event(told);
        match (told, self.of_loop.get()) {
            (RunEvent::Run { of_loop, .. }, _) => drop(self.of_loop.set((*of_loop).to_owned())),
            (RunEvent::Rests { .. }, Some(id)) => report::save_page(&self.project, id),
            _ => {}
        }
    }
}

fn place<'p>(project: &'p Project, request: &Request, warn: &impl Fn(String)) -> Result<Cow<'p, Project>, Failure> {
    let Some(wanted) = &request.sessions.worktree else { return Ok(Cow::Borrowed(project)) };
    let name = if wanted.is_empty() { request.subject.name().unwrap_or("main") } else { wanted };
    let place = worktree::prepare(project, name)?;
    place.notes.into_iter().for_each(warn);
    Ok(Cow::Owned(place.project))
}

/// The loop's name, and how it is run: as the command line says, and otherwise as before.
fn options(project: &Project, request: &Request) -> (String, RunOptions) {
    let (asked, is_new) = (request.subject.name(), matches!(request.subject, Subject::New(_)));
    let name = match ops::choose(project, asked, None) {
        Ok(found) if !is_new => found.name,
        _ => asked.unwrap_or("main").to_owned(),
    };
    let Sessions { agent, fallback, agent_cmd, acp_cmd, model, permission_mode, inner, gates, .. } = &request.sessions;
    let said = RunOptions {
        agent: agent.clone().filter(|agent| agent != "claude"),
        fallback: fallback.clone(),
        agent_cmd: agent_cmd.clone(),
        acp_cmd: acp_cmd.clone(),
        model: model.clone(),
        permission_mode: permission_mode.clone(),
        inner: *inner,
        gates: gates.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()).to_string_lossy().into_owned()),
    };
    let mut before = if is_new { RunOptions::default() } else { RunOptions::of(project, &name) };
    // Another agent has other models.
    if agent.is_some() || agent_cmd.is_some() || acp_cmd.is_some() {
        (before.agent, before.agent_cmd, before.acp_cmd, before.model) = (None, None, None, None);
    }
    (name, said.or(before))
}

/// Refuses now what would stop the run in the middle of the night.
fn refuse_what_cannot_be_proven(project: &Project) -> Result<(), Failure> {
    let blocked = |message: String| Err(Failure::coded(BLOCKED, message));
    let declared = declared::of_project(project);
    if let Some(problem) = declared.problems.first() {
        return blocked(format!("{}. Fix it first: no iteration could prove anything", clean(&problem.what)));
    }
    match declared.gates.iter().find(|gate| gates::is_untrusted(gate)) {
        Some(gate) => {
            let needs = gates::untrusted(gate).needs.unwrap_or_default();
            blocked(format!("the gate \"{}\" may not run yet, so no iteration could prove anything: {}", clean(&gate.name), clean(&needs)))
        }
        None => Ok(()),
    }
}

/// The commands of a list's items run only once a person has seen them; until then no agent can mark an item.
fn untrusted_lists(project: &Project) -> Vec<String> {
    let is_open = |source: &&Source| !source.trust.is_trusted() && source.commands.iter().any(|named| named.purpose == Purpose::Loops);
    let sources = Source::all(project).0;
    let told = |source: &Source| {
        let origin = clean(&source.origin);
        format!("the commands of {origin} are not trusted, so nothing that they prove can be done: `ralph trust` shows them and asks")
    };
    sources.iter().filter(is_open).map(told).collect()
}

fn find_agents(project: &Project, options: &RunOptions) -> Result<Vec<(session::Agent, Option<String>)>, Failure> {
    let first = match (&options.agent_cmd, &options.acp_cmd) {
        (Some(line), _) => session::Agent::Command(line.clone()),
        (None, Some(line)) => session::Agent::AcpCommand(line.clone()),
        (None, None) => find_agent(project, options.agent.as_deref().unwrap_or("claude"))?,
    };
    let mut all = vec![(first, None)];
    for named in &options.fallback {
        let (name, model) = named.split_once('=').map_or((named.as_str(), None), |(name, model)| (name, Some(model.to_owned())));
        all.push((find_agent(project, name)?, model));
    }
    Ok(all)
}

fn find_agent(project: &Project, name: &str) -> Result<session::Agent, Failure> {
    let (found, title, headless) = if let Some(agent) = AcpAgent::by_name(name) {
        let program = agent.find_program(project.root());
        (program.map(|program| session::Agent::Acp(agent, program)), agent.title, Some(&agent.headless))
    } else {
        let host = Host::by_name(name).ok_or_else(|| Failure::usage(format!("there is no agent \"{name}\"")))?;
        let program = host.find_program(project.root());
        (program.map(|program| session::Agent::Known(host, program)), host.title, host.headless.as_ref())
    };
    found.ok_or_else(|| {
        let (program, install) = headless.map_or((name, ""), |headless| (headless.program, headless.install));
        let message = format!(
            "there is no `{program}` on the PATH: `{install}` installs {title}, or name another agent with --agent, --agent-cmd or --acp-cmd"
        );
        Failure::coded(BLOCKED, message)
    })
}

/// The settings of ralph.toml, overridden by the command line. A permission mode counts from a trusted file only.
fn settings(project: &Project, options: &RunOptions, no_snapshots: bool, warn: &impl Fn(String)) -> Running {
    let mut settings = match declared::config_of_runs(project) {
        None => Running::default(),
        Some(Err(problem)) => {
            warn(format!("{}, so its settings for runs do not count", problem.what));
            Running::default()
        }
        Some(Ok((config, trust))) => {
            let mut run = config.run;
            if options.permission_mode.is_none() && !trust.is_trusted() && run.permission_mode.take().is_some() {
                warn("ralph.toml is not trusted, so its permission_mode does not count: `ralph trust` shows it and asks".to_owned());
            }
            if !trust.is_trusted() && !run.prices.is_empty() {
                run.prices.clear();
                warn("ralph.toml is not trusted, so its prices do not count: `ralph trust` shows it and asks".to_owned());
            }
            run
        }
    };
    settings.model = options.model.clone().or(settings.model);
    settings.permission_mode = options.permission_mode.clone().or(settings.permission_mode);
    settings.inner = options.inner.unwrap_or(settings.inner);
    settings.snapshots &= !no_snapshots;
    settings
}

/// The task, as far as it is known before the loop is opened.
fn task(project: &Project, name: &str, subject: &Subject) -> String {
    let of_loop = || ops::choose(project, Some(name), None).ok()?.parsed.ok().map(|file| file.prompt);
    match subject {
        Subject::New(wanted) => wanted.prompt.clone(),
        Subject::Again(_) => of_loop().unwrap_or_default(),
    }
}

/// Checks that unattended sessions can get anywhere; what is left to say.
fn look(project: &Project, settings: &Running, task: &str, verify: &[String], agent: &session::Agent) -> Result<Vec<String>, Failure> {
    let remarks = preflight::look(project, settings.permission_mode.as_deref(), task, verify, agent);
    let mut told = Vec::new();
    for remark in remarks.into_iter().chain(preflight::inner_iterations(project, settings.inner, agent)) {
        if remark.weight == Weight::Refusal {
            return Err(Failure::coded(BLOCKED, remark.text));
        }
        told.push(remark.text);
    }
    Ok(told)
}

/// Starts the loop, which no session has.
fn begin(project: &Project, wanted: &start::Request, warn: &impl Fn(String)) -> Result<resume::Request, Failure> {
    let started = begin_loop(project, wanted, &Asker::default())?;
    let begun = &started.begun;
    begun.fails_already().into_iter().chain(begun.in_the_way()).chain(started.phase).for_each(warn);
    Ok(resume::Request { which: Some(started.id), ..resume::Request::default() })
}
