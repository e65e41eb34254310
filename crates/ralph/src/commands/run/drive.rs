//! From the command line to the engine's runner: the agent, the settings, the place, the loop.

use std::{borrow::Cow, sync::Arc};

use ralph_core::{config::Running, words::clean};
use ralph_engine::{
    gates::{begin, declared},
    hosts::claude::program,
    notify::Ways,
    ops::{Asker, phase, resume, start, worktree},
    runner::{
        self, Orders, agent,
        preflight::{self, Weight},
        told::{Audience, End, Told},
    },
    store::project::Project,
    sys::{env, signals},
};

use super::{Agent, Carries, Request, Worktree};
use crate::{
    commands::begins,
    exit::{BLOCKED, Failure},
};

pub(super) fn drive(project: &Project, request: Request, audience: &Arc<dyn Audience>) -> Result<End, Failure> {
    refuse_runs_within_runs()?;
    let warn = |text: String| audience.hears(&Told::Warning { text });
    let project = &*place(project, &request, &warn)?;
    let agent = find_agent(project, &request.agent)?;
    let mut settings = settings(project, &request, &warn);
    let (ways, left_out) = Ways::of_run(project, &request.notify).map_err(Failure::usage)?;
    left_out.into_iter().for_each(warn);
    look(project, &settings, &agent, &warn)?;
    settings.permission_mode = preflight::mode_to_ask_for(project, settings.permission_mode);
    let resume = match request.carries {
        Carries::Again(resume) => resume,
        Carries::New(wanted) => begin(project, &wanted, &warn)?,
    };
    let orders = Orders { resume, agent, rounds: request.rounds, settings, waits: !request.no_wait, ways };
    Ok(runner::drive(project, &orders, audience)?.end)
}

/// A loop's limits count what its own sessions spend, and nothing of what runs that they start would.
fn refuse_runs_within_runs() -> Result<(), Failure> {
    let Some(_) = env::run_mark() else { return Ok(()) };
    let message = format!(
        "this is a session of a run ({} is set), and a run within it would spend what nobody counts: ask the person to start it in their own terminal",
        env::RUN
    );
    Err(Failure { code: BLOCKED, message, in_json: false })
}

/// Where the loop works.
fn place<'p>(project: &'p Project, request: &Request, warn: &impl Fn(String)) -> Result<Cow<'p, Project>, Failure> {
    let Some(wanted) = &request.worktree else { return Ok(Cow::Borrowed(project)) };
    let of_loop = match &request.carries {
        Carries::New(wanted) => wanted.name.as_deref(),
        Carries::Again(wanted) => wanted.which.as_deref(),
    };
    let name = match wanted {
        Worktree::Called(name) => name,
        Worktree::CalledAfterTheLoop => of_loop.unwrap_or("main"),
    };
    let place = worktree::prepare(project, name)?;
    place.notes.into_iter().for_each(warn);
    Ok(Cow::Owned(place.project))
}

fn find_agent(project: &Project, wanted: &Agent) -> Result<agent::Agent, Failure> {
    match wanted {
        Agent::Command(line) => Ok(agent::Agent::Command(line.clone())),
        Agent::Claude => program::find_outside(project.root()).map(agent::Agent::Claude).ok_or_else(|| {
            let message = "there is no `claude` on the PATH: install Claude Code, or name another program with --agent-cmd".to_owned();
            Failure { code: BLOCKED, message, in_json: false }
        }),
    }
}

/// What ralph.toml says, and what the command line says instead. A permission mode counts from a trusted file only.
fn settings(project: &Project, request: &Request, warn: &impl Fn(String)) -> Running {
    let mut settings = match declared::config_of_runs(project) {
        None => Running::default(),
        Some(Err(problem)) => {
            warn(format!("{}, so its settings for runs do not count", problem.what));
            Running::default()
        }
        Some(Ok((config, trust))) => {
            let mut run = config.run;
            if request.permission_mode.is_none() && !trust.is_trusted() && run.permission_mode.take().is_some() {
                warn("ralph.toml is not trusted, so its permission_mode does not count: `ralph trust` shows it and asks".to_owned());
            }
            run
        }
    };
    settings.model = request.model.clone().or(settings.model);
    settings.permission_mode = request.permission_mode.clone().or(settings.permission_mode);
    settings.inner = request.inner.unwrap_or(settings.inner);
    settings.snapshots &= !request.no_snapshots;
    settings
}

/// Would sessions that nobody watches get anywhere?
fn look(project: &Project, settings: &Running, agent: &agent::Agent, warn: &impl Fn(String)) -> Result<(), Failure> {
    for remark in preflight::look(project, settings.permission_mode.as_deref(), agent) {
        if remark.weight == Weight::Refusal {
            return Err(Failure { code: BLOCKED, message: remark.text, in_json: false });
        }
        warn(remark.text);
    }
    Ok(())
}

/// Starts the loop, which no session has.
fn begin(project: &Project, wanted: &start::Request, warn: &impl Fn(String)) -> Result<resume::Request, Failure> {
    let started = start::start(project, wanted, &Asker::default()).map_err(|refusal| {
        let failure = Failure::from(refusal);
        Failure { message: format!("{}; `ralph run --continue` goes on with it", failure.message), ..failure }
    })?;
    let begun = begin::note(project, &started.id, &started.file, begins::BUDGET, Arc::new(begins::Running));
    begun.told().into_iter().for_each(|told| warn(clean(&told)));
    let phase = phase::at_the_start(project, &started.id, &begun.declared, &signals::asked_to_end);
    if let Some(phase) = phase {
        warn(phase.clone());
    }
    Ok(resume::Request { which: Some(started.id), ..resume::Request::default() })
}
