//! Advice: the one place that knows which command goes on with a loop.

use ralph_core::{
    history::History,
    judge::Ending,
    messages::Limits,
    money,
    text::{
        clean,
        time::{self, in_words},
    },
};
use ralph_engine::{
    run::events::End,
    sys::clock,
    view::{A_MESSAGE, Status, View, Waiter, Waits},
};

use crate::journal_lines::quoted;

/// The next step for a person; `None`: it goes on by itself.
pub(crate) fn step(v: &View) -> Option<String> {
    Some(match v.status {
        Status::Paused if v.is_in_its_last_iteration() => {
            "`ralph run` ends after this iteration; `ralph resume` takes the pause back".to_owned()
        }
        Status::Paused => after_a_pause(v),
        Status::Parked => after_the_wait(v),
        Status::LeftBehind => after_the_session(v),
        Status::Active if v.interrupted.is_some() => "in its session, /ralph-resume goes on; any other message pauses the loop".to_owned(),
        Status::Active if v.waits.as_ref().is_some_and(|waits| waits.by == Waiter::Person) => {
            let is_told = v.waits.as_ref().is_some_and(|waits| waits.what == A_MESSAGE);
            if is_told { "tell the agent in its session to go on" } else { "answer in its session" }.to_owned()
        }
        Status::Tracked => "`ralph resume` starts it: a loop that came with a repository does not start by itself".to_owned(),
        _ => return None,
    })
}

fn after_a_pause(v: &View) -> String {
    let goes_on = if v.by_run { again(v) } else { "`ralph resume`".to_owned() };
    let why = v.paused_at.map(|n| format!(" `ralph explain {n}` says why it paused.")).unwrap_or_default();
    // Whatever else pauses a loop says why.
    let who = if v.paused_at.is_none() && v.why.is_none() { "you paused it: " } else { "" };
    match v.gates.iter().find_map(|gate| gate.needs.as_deref()) {
        Some(needs) => format!("{who}{needs}; then {goes_on} goes on.{why}"),
        None => format!("{who}{goes_on} goes on.{why}"),
    }
}

/// Goes on in fresh sessions, as a quoted command.
pub(crate) fn again(v: &View) -> String {
    format!("`{}`", run_again(&v.name))
}

/// The usual loop needs no name.
fn run_again(name: &str) -> String {
    let which = if name == "main" { String::new() } else { format!(" {name}") };
    format!("ralph run --continue{which}")
}

/// Goes on with a live loop in the way it was driven before.
pub(crate) fn resume(v: &View) -> String {
    if v.by_run { run_again(&v.name) } else { format!("ralph resume {}", v.name) }
}

/// Starts the first loop of a project.
pub(crate) const START: &str = "ralph run \"…\"";

pub(crate) const REPORT: &str = "`ralph report` shows how it went.";

/// The next step after a run of the loop with this id. `has_kept`: the files of an iteration were kept.
pub(crate) fn after_run(how: End, id: &str, has_kept: bool) -> String {
    let again = run_again(&if id.starts_with("main-") { "main".to_owned() } else { clean(id) });
    match how {
        End::Complete if has_kept => "`ralph report` shows how it went, `ralph diff` what it changed.".to_owned(),
        End::Complete => REPORT.to_owned(),
        End::Capped => format!("Give it more: `{again} --max-iterations N` (or --hours, --usd, --tokens)."),
        End::Stalled => format!("`ralph explain` says why, `ralph steer \"…\"` tells the agent what to do, `{again}` goes on."),
        End::Blocked => format!("See to that; then `{again}` goes on."),
        End::Enough | End::Paused | End::Interrupted => format!("`{again}` goes on."),
        End::Parked => format!("`{again}` goes on, later."),
        End::Cancelled => "`ralph status --all` shows what can be brought back.".to_owned(),
        End::Failed => format!("`ralph doctor` looks for what is wrong; `{again}` goes on."),
    }
}

/// Goes on with a loop that rests or has ended, in the way it was driven before.
pub(crate) fn command(v: &View, c: &History) -> String {
    let more = more(v, c);
    if was_run(v, c) { format!("{}{more}", run_again(&v.name)) } else { format!("ralph resume {}{more}", quoted(&v.id)) }
}

/// Whether fresh sessions worked on it last.
pub(crate) fn was_run(v: &View, c: &History) -> bool {
    let in_last_iteration = || c.open.sessions > 0 || c.rounds.last().is_some_and(|iteration| iteration.used.sessions > 0);
    v.by_run || (v.file.is_none() && in_last_iteration())
}

/// A loop at its limit needs more of what it has used up: as much again.
fn more(v: &View, c: &History) -> String {
    let limits = Limits {
        iteration: v.iteration.max(c.state.iteration),
        iterations: v.max_iterations,
        ms: v.max_ms,
        usd_micros: money::of_dollars(v.max_usd),
        tokens: v.max_tokens,
    };
    let code = c.ended.filter(|ended| ended.ending == Ending::Capped).and_then(|ended| ended.code);
    code.map(|code| limits.as_much_again(code)).unwrap_or_default()
}

/// Why a key in `watch` is not enough to bring it back, with what has to be typed instead.
pub(crate) fn why_no_key_resumes(v: &View, c: &History) -> Option<String> {
    match v.status {
        Status::Corrupt | Status::Failed => Some("its file cannot be read: fix it first".to_owned()),
        Status::Gone => Some(format!("its file was removed; .ralph/backup/{}.md has the version before its last change", clean(&v.name))),
        Status::Capped if !more(v, c).is_empty() => Some(format!("it is at its limit: `{}` goes on", command(v, c))),
        _ if v.is_in_its_last_iteration() => Some("`ralph run` ends after this iteration: `ralph resume` takes the pause back".to_owned()),
        // `ralph resume` would hand it to the next session that stops here, and there may be none.
        _ if was_run(v, c) => {
            Some(format!("it was in `ralph run`: `{}` goes on; `ralph resume --session` hands it to a session", command(v, c)))
        }
        _ => None,
    }
}

/// How a loop goes on that its session, or its runner, has left behind.
fn after_the_session(v: &View) -> String {
    let resume = "`ralph resume` hands it to the next session that stops here";
    match &v.waits {
        _ if v.by_run => format!("`ralph run` has ended: {} goes on", again(v)),
        Some(_) if is_until(v) => format!("its session has ended: {} goes on in fresh ones; {resume}", again(v)),
        Some(_) => format!("its session has ended: `ralph pr --wait` waits for that, and says how to go on; {resume}"),
        None => format!("its session has ended: {resume}"),
    }
}

/// Whether it waits for a time, and for nothing that can be looked at.
fn is_until(v: &View) -> bool {
    v.waits.as_ref().is_some_and(|waits| waits.until.is_some())
}

fn after_the_wait(v: &View) -> String {
    match v.waits.as_ref().map(|waits| waits.by) {
        Some(Waiter::Runner) => format!("`ralph run` goes on by itself{}", v.waits.as_ref().and_then(left).unwrap_or_default()),
        Some(Waiter::Session) if is_until(v) => "its session is woken then".to_owned(),
        Some(Waiter::Session) => "its session is woken when that is decided".to_owned(),
        _ if is_until(v) => format!("in its session, /ralph-resume goes on; {} does in fresh ones", again(v)),
        _ => "`ralph pr --wait` waits for it; in its session, /ralph-resume goes on".to_owned(),
    }
}

/// `, in 4 min`
fn left(waits: &Waits) -> Option<String> {
    let until = time::parse(waits.until.as_deref()?)?;
    Some(format!(", in {}", in_words(u64::try_from(until - clock::now()).unwrap_or(0))))
}
