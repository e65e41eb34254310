//! Answers as an agent reads them: one JSON object on one line, or nothing at all.
//!
//! Anything else is invisible to the person or a schema error (`"decision":"allow"` is one in Claude Code, and Codex drops an answer with a key that it does not know),
//! so these are the only shapes that exist.

use ralph_core::messages::ForAgent;
use serde::Serialize;

use super::{
    Answer, Event, Host,
    host::{Context, Instead},
};
use crate::sys::secrets;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    goes_on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: &'a str,
    additional_context: &'a str,
}

/// The line to print in answer to that event; `None` for silence.
pub(super) fn print(answer: &Answer, event: &Event, host: &Host) -> Option<String> {
    if !host.answers.shows_line
        && let Some(passed_on) = passed_on(answer, event)
    {
        return print(&passed_on, event, host);
    }
    let empty = Wire {
        goes_on: None,
        stop_reason: None,
        decision: None,
        reason: None,
        hook_specific_output: None,
        additional_context: None,
        system_message: None,
    };
    // The agent's text holds the person's own prompt, and is masked where it is made.
    let told = answer.line().map(secrets::mask);
    let told = told.as_deref().map(|told| host.in_its_words(told));
    let told = told.as_deref();
    let shown = told.filter(|_| host.answers.shows_line);
    let wire = match answer {
        Answer::Silent => return None,
        Answer::Tell { .. } => Wire { system_message: Some(shown?), ..empty },
        Answer::Block { reason, .. } => Wire { decision: Some("block"), reason: Some(reason), system_message: shown, ..empty },
        Answer::Context { text, .. } => match host.answers.context {
            Context::Nested => {
                let specific = Specific { hook_event_name: &event.name, additional_context: text };
                Wire { hook_specific_output: Some(specific), system_message: shown, ..empty }
            }
            Context::Flat => Wire { additional_context: Some(text), ..empty },
            Context::Ignored => Wire { system_message: Some(shown?), ..empty },
        },
        Answer::Instead { .. } => match host.answers.instead {
            Instead::Stop => Wire { goes_on: Some(false), stop_reason: told, ..empty },
            Instead::Block => Wire { decision: Some("block"), reason: told, ..empty },
        },
    };
    serde_json::to_string(&wire).ok()
}

/// The same answer with its line for the agent, which passes it on, where it can be given a text.
fn passed_on(answer: &Answer, event: &Event) -> Option<Answer> {
    let told = ForAgent::Line(&secrets::mask(answer.line().filter(|_| event.kind.takes_context())?)).text();
    match answer {
        Answer::Tell { .. } => Some(Answer::Context { text: told, line: None }),
        Answer::Context { text, .. } => Some(Answer::Context { text: format!("{text}\n\n{told}"), line: None }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s0_10_answers_are_one_compact_line() {
        let json = |a: Answer| print(&a, &Event { name: "Stop".into(), ..Event::default() }, &crate::hosts::claude::HOST);
        assert_eq!(json(Answer::Silent), None);
        assert_eq!(json(Answer::Tell { line: "x".into() }).as_deref(), Some(r#"{"systemMessage":"x"}"#));
        let block = Answer::Block { reason: "a\n\"b\"".into(), line: "l".into() };
        assert_eq!(json(block).as_deref(), Some(r#"{"decision":"block","reason":"a\n\"b\"","systemMessage":"l"}"#));
        // h3: Codex has another mark for commands; a path stays a path.
        let line = "/ralph-resume goes on (see .claude/ralph-loop.local.md), `/cancel-ralph` ends it.".to_owned();
        let told = print(&Answer::Tell { line }, &Event::default(), crate::hosts::Host::by_name("codex").unwrap()).unwrap();
        assert!(told.contains("\"$ralph-resume goes on (see .claude/ralph-loop.local.md), `$cancel-ralph` ends it.\""), "{told}");
        assert_eq!(json(Answer::Instead { text: "t".into() }).as_deref(), Some(r#"{"continue":false,"stopReason":"t"}"#));
    }
}
