//! Prompts in the agent's session: ralph's own commands, and a message after an interrupt.
//!
//! The text comes with the event, byte for byte: no shell and no model stands between the person and the loop. Clients report one command
//! through two events, in either order. Only `UserPromptExpansion` says that a person entered it: a prompt that the model scheduled comes as
//! `UserPromptSubmit`, too, and with the same words.

use std::sync::Arc;

use ralph_core::{
    journal::Actor,
    judge::Reason,
    messages::{self, ForAgent, Reader, gate_messages},
    text,
};

use crate::{
    gates::Unwatched,
    hook::{
        Call, Outcome,
        queued_command::{answered, was_sent_on},
        session::heard_that,
        wake,
    },
    hosts::{
        Answer, Kind,
        slash::{self, Verb},
    },
    ops::{Asker, Refusal, cancel, pause, resume, start},
    stop::{find::under_lock, hear::was_interrupted},
    store::{Error, journal, last_ending, loops, project_lock::Loop, seal},
    sys::clock,
    view,
};

/// A command's second report comes within this time.
const SAME_COMMAND_MS: i64 = 60_000;

pub(super) fn on_prompt(call: &Call) -> Result<Outcome, Error> {
    let typed = call.event.prompt.as_str();
    if is_own_text(call, typed) {
        return Ok(Outcome::silent(Reason::PROMPT_OWN));
    }
    let expanded = call.event.command.as_ref().map(|(name, args)| (name.as_str(), args.as_str()));
    if let Some((name, args)) = expanded.or_else(|| call.client.host.typed_command(typed))
        && let Some((verb, args)) = slash::verb_of(name, args)
    {
        return match Entered::of(call) {
            Entered::Unknown if verb != Verb::Status => Ok(left_to_the_other_event()),
            entered => carry_out(call, verb, args, entered),
        };
    }
    // Esc may well have come before it; it is still nothing that the person typed.
    if wake::is_wake(call) {
        return Ok(wake::on_wake(call));
    }
    if call.event.kind == Kind::Prompt { on_message(call, typed) } else { Ok(Outcome::silent(Reason::COMMAND_OTHER)) }
}

/// Whether it is what ralph sent the agent back with: several agents report that as a prompt. It begins with the loop's task, which may look like a command.
fn is_own_text(call: &Call, typed: &str) -> bool {
    let is_own = |task: &str| typed.trim_start().starts_with(task.trim()) || typed.trim_start().starts_with(ForAgent::MARK);
    let is_task = |found: loops::LoopOnDisk| found.parsed.is_ok_and(|file| is_own(&file.prompt));
    !call.client.host.is_claude() && call.own_loop().is_some_and(is_task)
}

/// Who entered a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entered {
    /// A person: typed, pasted, or handed to the client when it was started.
    ByPerson,
    /// Unknown; another event will tell if it was a person.
    Unknown,
    /// Unknown, and no other event will tell: an old client, or none at all. The command is done, and nothing is trusted because of it.
    Untold,
}

impl Entered {
    fn of(call: &Call) -> Self {
        match call.event.kind {
            _ if !call.client.reports_typed => Entered::Untold,
            Kind::TypedCommand => Entered::ByPerson,
            _ => Entered::Unknown,
        }
    }
}

/// Nothing is done, and the model learns what it means if nothing else is said in this message.
fn left_to_the_other_event() -> Outcome {
    let text = "[ralph] If nothing else in this message comes from ralph, this command was not carried out: no person entered it (a scheduled prompt \
                cannot command a loop), or the client does not know the command (`ralph init` adds it). Then do not act on it, and tell the person.";
    Outcome { answer: Answer::Context { text: text.to_owned(), line: None }, ..Outcome::silent(Reason::COMMAND_UNCONFIRMED) }
}

fn carry_out(call: &Call, verb: Verb, args: &str, entered: Entered) -> Result<Outcome, Error> {
    let fingerprint = call.command_fingerprint(&format!("{verb:?}"), args);
    let asker = Asker {
        by: Some(Actor::Session),
        session: call.event.session().map(str::to_owned),
        client_pid: call.client.pid(),
        command: Some(fingerprint.clone()),
        typed: entered == Entered::ByPerson,
    };
    if was_sent_on(call, &fingerprint) {
        return Ok(Outcome::silent(Reason::COMMAND_REPEATED));
    }
    if args.trim() == "-h" || (args.contains("--help") && slash::parse(args).is_ok_and(|options| options.help)) {
        return answered(call, Outcome::instead(Reason::COMMAND_HELP, slash::help(verb)), &fingerprint);
    }
    let result = match verb {
        Verb::Status => return answered(call, Outcome::instead(Reason::COMMAND_STATUS, status(call)), &fingerprint),
        _ if is_repeated(call, verb, &fingerprint) => return Ok(repeated(call, verb, &fingerprint)),
        Verb::Start => start_loop(call, args, &asker),
        Verb::Cancel => named(args)
            .and_then(|name| cancel::cancel(&call.project, name.as_deref(), &asker))
            .map(|c| Outcome::instead(Reason::COMMAND_CANCEL, c.line(Reader::Session)).of_loop(&c.id).at_rest()),
        Verb::Pause => named(args).and_then(|name| pause::pause(&call.project, name.as_deref(), &asker)).map(|paused| {
            let iteration = text::of_limit(paused.iteration, paused.max_iterations);
            Outcome::instead(Reason::COMMAND_PAUSE, format!("Ralph: paused at iteration {iteration}. /ralph-resume goes on."))
                .of_loop(&paused.id)
                .at_rest()
        }),
        Verb::Resume => go_on(call, args, &asker),
    };
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(Refusal::Store(e)) => return Err(e),
        // Another hook did the same command while this one waited for the lock.
        Err(_) if is_repeated(call, verb, &fingerprint) => return Ok(repeated(call, verb, &fingerprint)),
        Err(Refusal::NoLoop) => Outcome::instead(Reason::LOOP_NONE, no_loop(call)),
        Err(refusal) => Outcome::instead(Reason::COMMAND_REFUSED, format!("Ralph: {refusal}.")),
    };
    answered(call, outcome, &fingerprint)
}

/// Within the time in which a command is reported twice.
pub(super) fn is_recent(at: &str) -> bool {
    ralph_core::text::time::parse(at).is_some_and(|at| clock::now() - at < SAME_COMMAND_MS)
}

/// The loop that a cancel or a pause is about: nothing, a name, or `--name NAME`.
fn named(args: &str) -> Result<Option<String>, Refusal> {
    let options = slash::parse(args).map_err(Refusal::Because)?;
    Ok(options.name.or(Some(options.prompt).filter(|p| !p.is_empty())))
}

/// Whether this very command was done a moment ago.
fn is_repeated(call: &Call, verb: Verb, fingerprint: &str) -> bool {
    // Only a loop that is in the state that was asked for can be there because of this command.
    let as_asked = |found: &loops::LoopOnDisk| found.parsed.as_ref().is_ok_and(|f| f.active == (verb != Verb::Pause));
    let by_loop = loops::all(&call.project).iter().filter(|found| as_asked(found)).any(|found| {
        seal::last_of(&call.project, &found.name, &found.id())
            .is_some_and(|r| r.state.command.as_deref() == Some(fingerprint) && r.state.last.is_none() && is_recent(&r.at))
    });
    // Without the id of the turn, the same words may well be a second wish: a loop that lives was not ended by them.
    let tells_turns_apart = call.event.turn.is_some() || !loops::any(&call.project);
    by_loop || (tells_turns_apart && ended_by(call, fingerprint).is_some())
}

fn ended_by(call: &Call, fingerprint: &str) -> Option<last_ending::LastEnding> {
    let recent = |e: &last_ending::LastEnding| clock::uptime_ms().saturating_sub(e.uptime_ms) < SAME_COMMAND_MS.unsigned_abs();
    last_ending::read(&call.project).filter(|e| e.cause == fingerprint && recent(e))
}

fn repeated(call: &Call, verb: Verb, fingerprint: &str) -> Outcome {
    match (verb, ended_by(call, fingerprint)) {
        (Verb::Cancel, Some(ended)) => Outcome::instead(Reason::COMMAND_REPEATED, ended.line).of_loop(&ended.loop_id),
        _ => Outcome::silent(Reason::COMMAND_REPEATED),
    }
}

fn start_loop(call: &Call, args: &str, asker: &Asker) -> Result<Outcome, Refusal> {
    let options = slash::parse(args).map_err(Refusal::Because)?;
    match options.mode.as_deref() {
        None | Some("hook") => {}
        Some("fresh") => {
            let command = options.as_run();
            return Err(Refusal::Because(format!("in a terminal, `{command}` does that: fresh sessions are not started from this one")));
        }
        Some(mode) => {
            let mode = text::opening(mode, 40);
            return Err(Refusal::Because(format!(
                "--mode {mode} is not known here: `hook` works in this session, `fresh` is `ralph run` in a terminal"
            )));
        }
    }
    let request = start::Request { name: options.name, prompt: options.prompt, settings: options.settings };
    let is_endless = !options.endless && request.is_endless(&call.project);
    let started = start::start(&call.project, &request, asker, call.deadline.time_left(), Arc::new(Unwatched), &|| !call.is_awaited())?;
    let mut lines = vec![format!("Ralph: loop started: {}.", started.limits_of(call.client.host, call.project.root()).join("; "))];
    lines.extend(started.phase.as_ref().map(|phase| format!("Ralph: {phase}.")));
    lines.extend(started.begun.told().into_iter().chain(started.begun.in_the_way()).map(|told| format!("Ralph: {told}.")));
    lines.extend(is_endless.then(|| {
        "Ralph: nothing but you ends this loop before its 8 hours are over, because it has no promise, no gate and no limit. /cancel-ralph ends it; \
         the next time add --promise TEXT, --verify CMD or --max-iterations N (or --endless, if that is what you want)."
            .to_owned()
    }));
    lines.extend(request.remark().map(|remark| format!("Ralph: {remark}.")));
    lines.extend(options.warnings.iter().map(|w| format!("Ralph: {w}.")));
    let line = lines.join("\n");
    let claim = messages::how_to_end(started.file.completion_promise.as_deref());
    let text = format!(
        "A Ralph loop was started in this session. The task is the text of the person's message; options such as --max-iterations in it are \
         settings of the loop and already applied. Whenever you try to stop, the task comes back to you until it is done. {claim}"
    );
    let answer = Answer::Context { text: text.trim_end().to_owned(), line: Some(line) };
    Ok(Outcome::new(Reason::COMMAND_START, answer).of_loop(&started.id))
}

fn go_on(call: &Call, args: &str, asker: &Asker) -> Result<Outcome, Refusal> {
    // The only flag without a value, and only here.
    let (again, others): (Vec<&str>, Vec<&str>) = args.split_whitespace().partition(|word| *word == "--again");
    let options = slash::parse(&others.join(" ")).map_err(Refusal::Because)?;
    let which = Some(options.prompt).filter(|p| !p.is_empty()).or(options.name);
    if let Some(flag) = options.settings.only_for_a_new_loop() {
        return Err(Refusal::Because(format!("--{flag} is for a new loop: edit the loop's file to change it")));
    }
    let request = resume::Request { which, settings: options.settings, again: !again.is_empty(), ..resume::Request::default() };
    let resumed = resume::resume(&call.project, &request, asker)?;
    let iteration = text::of_limit(resumed.file.iteration, resumed.file.max_iterations());
    let edits = resumed.edits.join(", ");
    let edits = if edits.is_empty() { edits } else { format!(" Its file was edited, and that counts now: {edits}.") };
    let line = format!("Ralph: the loop goes on at iteration {iteration}.{edits}");
    let history = journal::history(&call.project.journal(&resumed.id));
    let known = gate_messages::last_measured(history.findings());
    let text = call.with_task("Go on with this task now:\n\n", &resumed.file.prompt, resumed.path.as_deref(), known.as_deref());
    let answer = Answer::Context { text, line: Some(line) };
    Ok(Outcome::new(Reason::COMMAND_RESUME, answer).of_loop(&resumed.id))
}

fn status(call: &Call) -> String {
    let lines: Vec<String> = view::live(&call.project).iter().map(view::View::line).collect();
    if lines.is_empty() { no_loop(call) } else { lines.join("\n") }
}

/// There is no live loop; how the last one ended, which may have been while the command waited.
fn no_loop(call: &Call) -> String {
    let none = "No active Ralph loop".to_owned();
    let Some(last) = view::ended(&call.project).into_iter().next() else { return none };
    format!("{none}. The last one ({}) is {}.", text::clean(&last.id), last.ended())
}

/// A session that answers a message works on the loop again.
fn go_on_with(l: &mut Loop) {
    l.state.parked = None;
    if l.file.active {
        l.state.arm(clock::now());
    }
}

/// A message begins a turn: its stop will be judged, so the wait for the one before is over.
///
/// Esc fires no hook. What the person types next is the first that ralph hears of it, and it must not end in the loop going on as if nothing had happened.
fn on_message(call: &Call, typed: &str) -> Result<Outcome, Error> {
    let session = call.session();
    let Some(seen) = call.own_loop() else { return Ok(Outcome::silent(Reason::LOOP_NONE)) };
    // Some of the client's own commands begin no turn, and then the wait has to go on.
    let state = journal::live_state(&call.project, &seen);
    let is_parked = slash::split(typed).is_none() && state.parked.is_some();
    if !was_interrupted(call.transcript(), call.session(), typed, &state) {
        return if is_parked { heard_that(call, None, go_on_with) } else { Ok(Outcome::silent(Reason::PROMPT_TYPED)) };
    }
    let Some((locked, mut l)) = under_lock(&call.project, seen)? else { return Ok(Outcome::silent(Reason::LOOP_NONE)) };
    if !l.file.active || !pause::set_paused(&locked, &mut l, Some(session), Actor::Session, "interrupted")? {
        return Ok(Outcome::silent(Reason::LOOP_PAUSED).of_loop(&l.id));
    }
    let iteration = text::of_limit(l.file.iteration, l.file.max_iterations());
    let line = format!(
        "Ralph: you interrupted the agent, so the loop is paused at iteration {iteration}. /ralph-resume goes on, /cancel-ralph ends it."
    );
    Ok(Outcome::tell(Reason::LOOP_INTERRUPTED, line).of_loop(&l.id).at_rest())
}
