//! A stop that nobody made, through the command line that is registered: in a project of its own, with a loop of its own.

use std::{ffi::OsString, io, path::Path, time::Duration};

use serde_json::{Value, json};

use crate::{
    hosts::claude::registration::CommandLine,
    ops::{Asker, start},
    setup::survey::{Origin, Registration, Survey},
    store::project::Project,
    sys::{
        bounded::{Failure, Ran, Task},
        scratch::Scratch,
    },
};

/// A hook that takes longer than this is broken.
const PATIENCE: Duration = Duration::from_secs(10);

const SESSION: &str = "ralph-doctor";
const PROMPT: &str = "Answer the doctor.";

/// The stop was sent back, as it should be.
#[derive(Debug)]
pub struct Answered {
    /// What the hook printed.
    pub answer: String,
    pub took: Duration,
}

/// The stop was not sent back.
#[derive(Debug)]
pub struct Problem {
    pub what: String,
    /// What to do; empty if registering again mends it.
    pub advice: String,
}

pub fn fire(registration: &Registration, survey: &Survey) -> Result<Answered, Problem> {
    let own = |e: String| Problem { what: format!("could not be tried: {e}"), advice: "Make room in the temporary folder.".to_owned() };
    let scratch = Scratch::create("ralph-doctor-", false).map_err(|e| own(e.to_string()))?;
    let project = Project::at(scratch.path());
    let request = start::Request { prompt: PROMPT.to_owned(), completion_promise: Some("HEALTHY".to_owned()), ..Default::default() };
    let asker = Asker { session: Some(SESSION.to_owned()), ..Asker::default() };
    start::start(&project, &request, &asker).map_err(|e| own(e.to_string()))?;
    let event = json!({
        "hook_event_name": "Stop", "session_id": SESSION, "cwd": scratch.path(), "stop_hook_active": false, "last_assistant_message": "Hello, doctor.",
    });
    let ran = task(registration, survey, scratch.path(), event.to_string().into_bytes()).run().map_err(|e| not_run(registration, &e))?;
    judge(registration, &ran)
}

/// The command line as the client would start it.
fn task<'a>(registration: &Registration, survey: &Survey, folder: &'a Path, input: Vec<u8>) -> Task<'a> {
    let root = registration.root.as_deref().unwrap_or(Path::new("")).display().to_string();
    let filled = |text: &String| {
        let project = folder.display().to_string();
        OsString::from(text.replace("${CLAUDE_PLUGIN_ROOT}", &root).replace("${CLAUDE_PROJECT_DIR}", &project))
    };
    let (program, args) = match &registration.hook.line {
        CommandLine::Exec { program, args } => (filled(program), args.iter().map(filled).collect()),
        CommandLine::Shell(line) => (OsString::from("/bin/sh"), vec!["-c".into(), filled(line)]),
    };
    let of_settings = survey.says(&["env"]).and_then(|(env, _)| env.as_object());
    let mut vars: Vec<(OsString, OsString)> =
        of_settings.into_iter().flatten().filter_map(|(name, value)| Some((name.into(), value.as_str()?.into()))).collect();
    vars.extend([
        ("CLAUDE_PROJECT_DIR".into(), folder.into()),
        ("CLAUDE_CODE_SESSION_ID".into(), SESSION.into()),
        ("CLAUDE_PLUGIN_ROOT".into(), root.into()),
    ]);
    Task { program, args, folder, vars, input, limit: PATIENCE }
}

fn not_run(registration: &Registration, failure: &Failure) -> Problem {
    match failure {
        Failure::CannotStart(e) if e.kind() == io::ErrorKind::NotFound => Problem {
            what: "the program was not found".to_owned(),
            advice: match &registration.origin {
                Origin::Plugin(_) => {
                    "Put `ralph` on the PATH (`cargo install --locked --path crates/ralph`), or install a plugin that brings it: `ralph plugin DIR`.".to_owned()
                }
                _ => String::new(),
            },
        },
        Failure::CannotStart(e) => Problem { what: format!("could not be started: {e}"), advice: String::new() },
        Failure::TookTooLong => Problem {
            what: format!("did not answer within {} s", PATIENCE.as_secs()),
            advice: "Is it really ralph that is registered there? Nothing of ralph's takes that long.".to_owned(),
        },
    }
}

fn judge(registration: &Registration, ran: &Ran) -> Result<Answered, Problem> {
    let answer = ran.stdout.trim().to_owned();
    let value: Option<Value> = serde_json::from_str(&answer).ok();
    let text = |value: &Value| {
        let context = value.get("hookSpecificOutput").and_then(|o| o.get("additionalContext"));
        value.get("reason").or(context).and_then(Value::as_str).is_some_and(|text| text.starts_with(PROMPT))
    };
    if value.as_ref().is_some_and(text) {
        return Ok(Answered { answer, took: ran.took });
    }
    let said = match (ran.code, answer.as_str(), ran.stderr.trim()) {
        (Some(127), ..) => return Err(not_run(registration, &Failure::CannotStart(io::ErrorKind::NotFound.into()))),
        (Some(0), "", "") => "it said nothing, so the agent would have been let go".to_owned(),
        (Some(0), out, "") => format!("the answer is not one of ralph's: {}", ralph_core::words::excerpt(out, 200)),
        (code, out, err) => {
            let code = code.map_or_else(|| "was killed".to_owned(), |code| format!("exit code {code}"));
            format!("{code}: {}", ralph_core::words::excerpt(&format!("{err} {out}"), 200))
        }
    };
    Err(Problem {
        what: said,
        advice: "Another program with the name `ralph`? `ralph init` registers this one by its path, if its name leads elsewhere."
            .to_owned(),
    })
}
