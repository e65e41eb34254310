//! The client asks the person for a permission. It says so six seconds later, if there was no answer by then: the person is told, and views say since when the
//! agent waits.

use ralph_core::{judge::Reason, text};

use crate::{
    hook::{Call, Outcome, news::News},
    hosts::Heard,
    notify::Kind,
    store::permission,
    view::activity::{Doing, Source},
};

/// What `notification_type` says of such a question. Other notifications are about the session, not about the loop.
const PROMPT: &str = "permission_prompt";

pub(super) fn on_notification(call: &Call) -> Outcome {
    if call.event.about.as_deref() != Some(PROMPT) {
        return Outcome::silent(Reason::NOTIFICATION_OTHER);
    }
    let Some(found) = call.own_loop() else { return Outcome::silent(Reason::LOOP_NONE) };
    let id = found.id();
    let Some(file) = found.parsed.as_ref().ok().filter(|file| file.active) else {
        return Outcome::silent(Reason::LOOP_PAUSED).of_loop(&id);
    };
    let is_second = |via: &[String], at: u64| call.is_second_report(via, at);
    if !permission::note(&call.project, &id, call.session(), call.invocation.via(), is_second) {
        return Outcome::silent(Reason::STOP_REPEATED).of_loop(&id);
    }
    let round = text::of_limit(file.iteration, file.max_iterations());
    let tool = tool(call).map(|tool| format!(": {tool}")).unwrap_or_default();
    let line = format!("the agent waits for your permission at iteration {round}{tool}");
    let news = News { kind: Kind::NeedsPerson, how: "permission", line };
    Outcome::silent(Reason::PERMISSION_ASKED).of_loop(&id).with_news(Some(news))
}

/// The tool call that waits, in short: the event does not say, but it is the last one in the transcript.
fn tool(call: &Call) -> Option<String> {
    let mut doing = Doing::new(Source::Transcript(call.transcript().into()));
    doing.look();
    match &doing.now()?.heard {
        Heard::Tool { name, what, .. } => Some(text::opening(&format!("{name} {what}"), 120)),
        _ => None,
    }
}
