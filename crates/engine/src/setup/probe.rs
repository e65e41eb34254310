//! A trial stop through the registered command line, in a temporary project with a loop of its own.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ralph_core::loops::LoopSettings;
use serde_json::{Value, json};

use crate::{
    gates::Unwatched,
    hosts::{Host, claude::registration::CommandLine},
    ops::{Asker, start},
    setup::survey::{Origin, Registration, Survey},
    store::project::Project,
    sys::{
        command::{self, Failure, Ran, Task, USUAL_OUTPUT},
        files, process,
        temp_dir::{self, Scratch},
    },
};

/// A hook that takes longer is broken.
const PATIENCE: Duration = Duration::from_secs(10);

const SESSION: &str = "ralph-doctor";
const PROMPT: &str = "Answer the doctor.";
const SAID: &str = "Hello, doctor.";

/// The stop was blocked, as it should be.
#[derive(Debug)]
pub struct Answered {
    pub took: Duration,
}

#[derive(Debug)]
pub enum Failed {
    /// The temporary project could not be made. The registration may be in order.
    NotTried(String),
    /// The stop was not blocked.
    Hook(Problem),
}

#[derive(Debug)]
pub struct Problem {
    pub what: String,
    /// The remedy; empty if registering again fixes it.
    pub advice: String,
}

const PREFIX: &str = "ralph-doctor-";

/// Whether a command line may be tried. One that came with a project runs only if the person trusts its folder, or if it starts this very program.
pub fn may_run(registration: &Registration, survey: &Survey, project: &Project) -> bool {
    survey.is_own(registration) || survey.trusts(project.root()) || is_this_program(&registration.hook.line)
}

/// Whether a command line starts this program as the hook, and nothing else.
fn is_this_program(line: &CommandLine) -> bool {
    let words: Vec<&str> = match line {
        CommandLine::Exec { program, args } => [program].into_iter().chain(args).map(String::as_str).collect(),
        CommandLine::Shell(line) if line.chars().all(|c| c.is_ascii_alphanumeric() || "/._- ".contains(c)) => line.split(' ').collect(),
        CommandLine::Shell(_) => return false,
    };
    let Some((program, args)) = words.split_first() else { return false };
    let path = Some(PathBuf::from(program)).filter(|path| path.is_absolute());
    let path = path.or_else(|| process::which(program).filter(|_| !program.contains('/')));
    path.is_some_and(|path| process::is_this_program(&path)) && CommandLine::calls_the_hook(args)
}

/// Sends the stop through the registered command line; see [`may_run`] first.
pub fn fire(registration: &Registration, survey: &Survey, at: &Project) -> Result<Answered, Failed> {
    let scratch = with_a_loop()?;
    let event = json!({
        "hook_event_name": "Stop", "session_id": SESSION, "cwd": scratch.path(), "stop_hook_active": false, "last_assistant_message": SAID,
    });
    let is_plugin = matches!(registration.origin, Origin::Plugin(_));
    let ran = task(registration, survey, at, scratch.path(), event.to_string().into_bytes()).run();
    ran.map_err(|e| not_run(is_plugin, &e)).and_then(|ran| judge(is_plugin, &ran)).map_err(Failed::Hook)
}

/// The same through the line that another agent has from its user's own settings, with an event of that agent's.
pub fn fire_for(host: &Host, line: &str) -> Result<Answered, Failed> {
    let scratch = with_a_loop()?;
    let transcript = scratch.path().join("transcript.jsonl");
    let (event, written) = host.made_up_stop(SESSION, scratch.path(), &transcript, SAID);
    if let Some(text) = written {
        files::replace_private(&transcript, text.as_bytes()).map_err(|e| Failed::NotTried(e.to_string()))?;
    }
    let (program, args) = command::shell(line);
    let mut vars = quiet(scratch.path());
    vars.push(("CLAUDE_PROJECT_DIR".into(), scratch.path().into()));
    let input = event.to_string().into_bytes();
    let task = Task { program, args, folder: scratch.path(), vars, hidden: Vec::new(), input, limit: PATIENCE, most_output: USUAL_OUTPUT };
    task.run().map_err(|e| not_run(false, &e)).and_then(|ran| judge(false, &ran)).map_err(Failed::Hook)
}

/// A temporary project with a loop of the session that stops.
fn with_a_loop() -> Result<Scratch, Failed> {
    temp_dir::remove_leftovers(PREFIX);
    let scratch = Scratch::create(PREFIX, false).map_err(|e| Failed::NotTried(e.to_string()))?;
    let project = Project::passing(scratch.path());
    let settings = LoopSettings { completion_promise: Some("HEALTHY".to_owned()), ..LoopSettings::default() };
    let request = start::Request { prompt: PROMPT.to_owned(), settings, ..Default::default() };
    let asker = Asker { session: Some(SESSION.to_owned()), ..Asker::default() };
    start::start(&project, &request, &asker, Duration::ZERO, Arc::new(Unwatched), &|| true).map_err(|e| Failed::NotTried(e.to_string()))?;
    Ok(scratch)
}

/// A made-up stop needs no page, and nothing of its project is remembered: a folder of its own is not believed.
fn quiet(folder: &Path) -> Vec<(OsString, OsString)> {
    vec![("RALPH_REPORT".into(), "off".into()), ("XDG_STATE_HOME".into(), folder.into())]
}

/// The command line as the client would start it: relative to the project `at`, though the stop is in `folder`.
fn task<'a>(registration: &Registration, survey: &Survey, at: &Project, folder: &'a Path, input: Vec<u8>) -> Task<'a> {
    let root = registration.root.as_deref().unwrap_or(Path::new("")).display().to_string();
    let here = at.root().display().to_string();
    let filled = |text: &String| OsString::from(text.replace("${CLAUDE_PLUGIN_ROOT}", &root).replace("${CLAUDE_PROJECT_DIR}", &here));
    let (program, args) = match &registration.hook.line {
        CommandLine::Exec { program, args } => {
            let program = filled(program);
            let is_relative = program.to_string_lossy().contains('/');
            (if is_relative { at.root().join(program).into() } else { program }, args.iter().map(filled).collect())
        }
        CommandLine::Shell(line) => {
            let line = line.replace("${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR").replace("$CLAUDE_PROJECT_DIR", "${RALPH_DOCTOR_AT}");
            (OsString::from("/bin/sh"), vec!["-c".into(), filled(&line)])
        }
    };
    let of_settings = survey.variables(survey.trusts(at.root()));
    let mut vars: Vec<(OsString, OsString)> = of_settings.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    vars.extend([
        ("CLAUDE_PROJECT_DIR".into(), folder.into()),
        ("CLAUDE_CODE_SESSION_ID".into(), SESSION.into()),
        ("CLAUDE_PLUGIN_ROOT".into(), root.into()),
        ("RALPH_DOCTOR_AT".into(), here.into()),
    ]);
    vars.extend(quiet(folder));
    Task { program, args, folder, vars, hidden: Vec::new(), input, limit: PATIENCE, most_output: USUAL_OUTPUT }
}

fn not_run(is_plugin: bool, failure: &Failure) -> Problem {
    match failure {
        Failure::CannotStart(e) if e.kind() == io::ErrorKind::NotFound => Problem {
            what: "the program was not found".to_owned(),
            advice: if is_plugin {
                "Put `ralph` on the PATH (`cargo install --locked --profile dist --path crates/ralph`), or install a plugin that brings it: `ralph init --plugin`.".to_owned()
            } else {
                String::new()
            },
        },
        Failure::CannotStart(e) => Problem { what: format!("could not be started: {e}"), advice: String::new() },
        Failure::TookTooLong | Failure::Cancelled => Problem {
            what: format!("did not answer within {} s", PATIENCE.as_secs()),
            advice: "Is it really ralph that is registered there? Nothing of ralph's takes that long.".to_owned(),
        },
    }
}

fn judge(is_plugin: bool, ran: &Ran) -> Result<Answered, Problem> {
    let answer = ran.text();
    let value: Option<Value> = serde_json::from_str(&answer).ok();
    let text = |value: &Value| {
        let context = value.get("hookSpecificOutput").and_then(|o| o.get("additionalContext"));
        value.get("reason").or(context).and_then(Value::as_str).is_some_and(|text| text.starts_with(PROMPT))
    };
    if value.as_ref().is_some_and(text) {
        return Ok(Answered { took: ran.took });
    }
    let said = match (ran.code, answer.as_str(), ran.stderr.trim()) {
        (Some(127), ..) => return Err(not_run(is_plugin, &Failure::CannotStart(io::ErrorKind::NotFound.into()))),
        (Some(0), "", "") => "it said nothing, so the agent would have been let go".to_owned(),
        (Some(0), out, "") => format!("the answer is not one of ralph's: {}", ralph_core::text::excerpt(out, 200)),
        (code, out, err) => {
            let code = code.map_or_else(|| "was killed".to_owned(), |code| format!("exit code {code}"));
            format!("{code}: {}", ralph_core::text::excerpt(&format!("{err} {out}"), 200))
        }
    };
    Err(Problem {
        what: said,
        advice: "Another program with the name `ralph`? `ralph init` registers this one by its path, if its name leads elsewhere."
            .to_owned(),
    })
}
