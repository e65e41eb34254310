//! The last permission that the client asked the person for in a loop's session. Nothing tells when it was answered: views compare it with what happened since.

use ralph_core::text::time::Millis;
use serde::{Deserialize, Serialize};

use crate::{store::project::Project, sys::clock};

/// A question of the client's that waits for the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub session: String,
    pub since: Millis,
    /// The same in milliseconds since the machine was started.
    pub uptime_ms: u64,
    /// The registrations of the hook that have reported it.
    via: Vec<String>,
}

fn path(loop_id: &str) -> String {
    format!("permissions/{loop_id}.json")
}

/// The last question in this session of the loop, answered or not.
pub(crate) fn last(project: &Project, loop_id: &str, session: &str) -> Option<Asked> {
    project.load::<Asked>(&path(loop_id)).filter(|asked| asked.session == session)
}

/// Notes a question that the registration `via` reports; whether it is a new one. `is_second` says whether `via` reports one that others reported at that time.
pub(crate) fn note(project: &Project, loop_id: &str, session: &str, via: String, is_second: impl Fn(&[String], u64) -> bool) -> bool {
    let mut is_new = false;
    project.update(&path(loop_id), |last: &mut Option<Asked>| {
        match last.as_mut().filter(|asked| asked.session == session && is_second(&asked.via, asked.uptime_ms)) {
            Some(same) => same.via.push(via),
            None => {
                is_new = true;
                let (since, uptime_ms) = (clock::now(), clock::uptime_ms());
                *last = Some(Asked { session: session.to_owned(), since, uptime_ms, via: vec![via] });
            }
        }
        true
    });
    is_new
}
