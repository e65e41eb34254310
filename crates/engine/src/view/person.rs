//! What keeps an agent in a session from working until its person does something: a permission that the client asked for, an interrupt (Esc).
//!
//! No event tells that a question was answered, or that the agent was interrupted. The transcript does.

use ralph_core::{
    journal::State,
    text::time::{self, Millis},
};

use crate::{
    hosts::transcript::{self, LastTalk, OpenFile},
    store::{
        permission::{self, Asked},
        project::Project,
    },
    sys::{clock, process_tree},
    view::{
        activity::Source,
        model::{Waiter, Waits},
    },
};

/// What a loop waits for that was resumed in a terminal, while its session is idle.
pub const A_MESSAGE: &str = "a message from you";

/// What a view says of it.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) waits: Option<Waits>,
    /// Since when.
    pub(super) interrupted: Option<String>,
}

/// Looks at the session that works on a loop.
pub(super) fn held(project: &Project, id: &str, session: &str, state: &State) -> Held {
    let source = Source::of_session(session);
    let last = source.as_ref().and_then(|source| transcript::last_talk(&OpenFile::open(source.path())?, ""));
    let ruled = state.last.as_ref().map_or(Millis::MIN, |last| last.at);
    let resumed = state.armed_since.unwrap_or(Millis::MIN);
    if let Some(at) = interrupted(last.as_ref()).filter(|at| *at > ruled && *at >= resumed) {
        return Held { interrupted: Some(time::format(at)), ..Held::default() };
    }
    // The ruling before a resume is forgotten.
    let is_idle = state.last.is_none() && state.stops > 0 && last.as_ref().and_then(|last| last.at).is_some_and(|at| at < resumed);
    if is_idle {
        return Held { waits: Some(waits(A_MESSAGE, resumed)), ..Held::default() };
    }
    let asked = permission::last(project, id, session).filter(|asked| asked.since > ruled && !is_answered(asked, source, last, state));
    Held { waits: asked.map(|asked| waits("your permission", asked.since)), ..Held::default() }
}

fn interrupted(last: Option<&LastTalk>) -> Option<Millis> {
    last.filter(|last| last.interrupted)?.at
}

fn waits(what: &str, since: Millis) -> Waits {
    let for_ms = u64::try_from(clock::now() - since).unwrap_or(0);
    Waits { what: what.to_owned(), since: time::format(since), for_ms, until: None, by: Waiter::Person }
}

/// The conversation went on, a subagent's did, or the tool runs: of that, the client writes nothing down until it has ended.
fn is_answered(asked: &Asked, source: Option<Source>, last: Option<LastTalk>, state: &State) -> bool {
    let since = u64::try_from(asked.since).unwrap_or(0);
    last.and_then(|last| last.at).is_some_and(|at| at > asked.since)
        || source.is_some_and(|source| transcript::of_subagents(source.path()).iter().any(|file| file.changed > since))
        || state.client_pid.is_some_and(|client| process_tree::has_child_since(client, asked.uptime_ms))
}
