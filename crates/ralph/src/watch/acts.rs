//! What the keys do to a loop: the same as the commands, told in one line.

use ralph_core::{history::Chronicle, messages::clean};
use ralph_engine::{
    ops::{
        Refusal, resume, steer,
        view::{Status, View},
    },
    store::project::Project,
    sys::env,
};

use crate::commands::{self, asker, status::next};

/// What became of it.
pub(super) struct Said {
    pub(super) words: String,
    pub(super) refused: bool,
}

impl Said {
    pub(super) fn refused(words: impl Into<String>) -> Self {
        Said { words: words.into(), refused: true }
    }

    fn of(done: Result<String, Refusal>) -> Self {
        match done {
            Ok(line) => Said { words: clean(&anstream::adapter::strip_str(&line).to_string()), refused: false },
            Err(refusal) => Said::refused(clean(&refusal.to_string())),
        }
    }
}

/// An agent that could do this would act in the person's name.
pub(super) fn refusal_in_an_agents_shell() -> Option<Said> {
    let sign = env::of_an_agent()?;
    Some(Said::refused(format!("this is an agent's shell ({sign} is set): here the loop can be looked at, and nothing else")))
}

pub(super) fn pause(project: &Project, id: &str) -> Said {
    Said::of(commands::pause::act(project, Some(id)).map(|paused| commands::pause::line(&paused)))
}

/// What has to be typed instead, where a key is not enough.
pub(super) fn why_not_resumed(view: &View, chronicle: &Chronicle) -> Option<String> {
    let command = next::command(view, chronicle);
    match view.status {
        Status::Corrupt | Status::Failed => Some("its file cannot be read: fix it first".to_owned()),
        Status::Gone => {
            Some(format!("its file was removed; .ralph/backup/{}.md has the version before its last change", clean(&view.name)))
        }
        Status::Capped if !next::more(view, chronicle).is_empty() => Some(format!("it is at its limit: `{command}` goes on")),
        _ if view.is_in_its_last_round() => Some("its runner ends after this iteration, and can go on then".to_owned()),
        // `ralph resume` would hand it to whichever session stops here next, and nobody may be there.
        _ if next::was_run(view, chronicle) => Some(format!("a run carried it: `{command}` goes on; `ralph resume` hands it to a session")),
        _ => None,
    }
}

pub(super) fn resume(project: &Project, id: &str) -> Said {
    let request = resume::Request { which: Some(id.to_owned()), ..resume::Request::default() };
    Said::of(resume::resume(project, &request, &asker()).map(|resumed| commands::resume::lines(project, &resumed).join(" ")))
}

pub(super) fn cancel(project: &Project, id: &str) -> Said {
    Said::of(commands::cancel::act(project, Some(id)).map(|cancelled| cancelled.line()))
}

pub(super) fn steer(project: &Project, id: &str, note: &str) -> Said {
    Said::of(steer::leave(project, Some(id), note, &asker()).map(|left| commands::steer::line(&left)))
}
