//! The hook's edge: standard input to standard output, and an exit code that never stands in an agent's way.

use std::{
    ffi::{OsStr, OsString},
    io::{IsTerminal, Write, stderr, stdin, stdout},
    panic::{AssertUnwindSafe, catch_unwind},
};

use ralph_engine::{
    hook::Reply,
    hosts::{Invocation, claude::registration::CommandLine},
    sys::{
        env,
        input::{self, Input, SILENCE},
    },
};

use crate::{exit, report, ui};

/// An event is far smaller; a message in it may have some 100 KB.
const MAX_EVENT: usize = 64 * 1024 * 1024;

/// Whether the arguments after `hook` are some that ralph registers.
pub(crate) fn is_registered_so(args: &[OsString]) -> bool {
    let texts: Option<Vec<&str>> = ["hook"].map(Some).into_iter().chain(args.iter().map(|arg| arg.to_str())).collect();
    texts.is_some_and(|args| CommandLine::calls_the_hook(&args))
}

/// `unknown` is an argument that makes no sense. An exit code of 2 would block the agent, so that too is answered with a line for the person.
pub(crate) fn run(unknown: Option<&OsStr>) -> u8 {
    if env::is_disabled() && !stdin().is_terminal() {
        return 0;
    }
    if let Some(word) = unknown {
        let line = format!(
            "Ralph: the hook is registered as `ralph hook {}`, which is not known; it is `ralph hook claude`.",
            word.to_string_lossy()
        );
        ui::line(serde_json::json!({ "systemMessage": line }));
        return 0;
    }
    event().map_or_else(|code| code, |input| answer(&input))
}

/// `ralph` alone, without a terminal. `None`: no event came and no client is around, so a person or a script asks, and that is no trouble.
pub(crate) fn run_bare() -> Option<u8> {
    if env::is_disabled() {
        return Some(0);
    }
    match event() {
        Ok(input) if input.bytes.trim_ascii().is_empty() && env::project_dir().is_none() => None,
        Ok(input) => Some(answer(&input)),
        Err(code) => Some(code),
    }
}

fn answer(input: &Input) -> u8 {
    let reply = ralph_engine::hook::answer(input, invocation());
    if let Some(answer) = &reply.answer {
        let mut out = stdout().lock();
        // A client that went away needs no answer.
        let _ = out.write_all(answer.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    }
    after_the_answer(reply);
    0
}

/// The hook that waits in the background of a session. Here an exit code of 2 is the point: with it the client wakes the agent, and gives it what stands on
/// standard error.
pub(crate) fn wait() -> u8 {
    const WAKES: u8 = 2;
    if env::is_disabled() {
        return 0;
    }
    let input = match event() {
        Ok(input) => input,
        Err(code) => return code,
    };
    let Some(reply) = ralph_engine::hook::wait(&input, invocation()) else { return 0 };
    let code = reply.answer.as_ref().map_or(0, |text| {
        let mut out = stderr().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        WAKES
    });
    after_the_answer(reply);
    code
}

/// The process that sends the notifications of a session's loop, which only the hook starts; `false`: these arguments are for another.
pub(crate) fn sends_news(args: &[OsString]) -> bool {
    let line = || (!stdin().is_terminal()).then(|| input::read(MAX_EVENT, SILENCE).ok()).flatten();
    ralph_engine::hook::send_news(args, || line().map(|line| String::from_utf8_lossy(&line.bytes).into_owned()))
}

/// Sends notifications, and draws the page of a loop that ended, paused or parked. A failure here must not change the exit code: the client would drop
/// the answer.
fn after_the_answer(reply: Reply) {
    let _ = catch_unwind(AssertUnwindSafe(|| reply.send_news()));
    if let Some((project, id)) = reply.page_due {
        let _ = catch_unwind(|| report::save_page(&project, &id));
    }
}

fn invocation() -> Invocation {
    Invocation::of(crate::args())
}

/// The event on standard input, or the exit code where there is none to read.
fn event() -> Result<Input, u8> {
    if stdin().is_terminal() {
        ui::error("`ralph hook` is called by an agent, with an event on standard input. `ralph --help` lists what people use");
        return Err(exit::USAGE);
    }
    // Without an event there is nothing to decide: the one failure that is not answered with a zero (S0-11).
    input::read(MAX_EVENT, SILENCE).map_err(|e| {
        ui::error(&format!("cannot read the event from standard input: {e}"));
        ralph_engine::hook::unread(&e.to_string());
        exit::FAILED
    })
}
