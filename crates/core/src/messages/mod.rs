//! Messages to people and agents: one place for the sentences, so that they agree with each other and with the ruling.

pub mod gate_messages;
pub mod prompt;
mod session_messages;
pub mod subagent_messages;

use crate::{
    judge::{Code, Evidence, IdleLimitFrom, Next, Ruling, claim::Claim},
    loops::LoopSettings,
    money::{self, Micros},
    text::{
        clean, count, iterations, normalised, of_limit, opening,
        time::{self, in_words},
    },
};

/// A text for an agent that comes in the place of the usual one.
#[derive(Debug, Clone, Copy)]
pub enum ForAgent<'a> {
    /// A line for the person, where only the agent can show it.
    Line(&'a str),
    /// The same when the agent is sent back for nothing else: the loop is paused.
    LastWord(&'a str),
    /// A task that would be cut on its way to the agent, and its file.
    LongTask { task: &'a str, file: &'a str },
}

impl ForAgent<'_> {
    /// Its beginning, by which it is known where it comes back as a prompt.
    pub const MARK: &'static str = "[ralph] ";

    pub fn text(self) -> String {
        let text = match self {
            ForAgent::Line(line) => {
                format!("Tell the person this first, in these words, and then go on with what they asked for:\n{line}")
            }
            ForAgent::LastWord(line) => {
                format!("The loop is paused: do no more work on it now. Tell the person only this, in these words, and stop:\n{line}")
            }
            ForAgent::LongTask { task, file } => format!(
                "The task of this loop is too long for one message. It is in {file}, below the second `---`: read all of that file, and go on with the task. \
                 It begins: {}",
                opening(task, 400)
            ),
        };
        Self::MARK.to_owned() + &text
    }
}

/// The tag that the agent has to write.
pub fn tag(promise: &str) -> String {
    format!("<promise>{}</promise>", normalised(promise))
}

/// The person's line while the loop goes on (S0-10).
pub fn going_on(iteration: u64, max_iterations: u64, promise: Option<&str>, gated: bool) -> String {
    let round = of_limit(iteration, max_iterations);
    match promise {
        Some(promise) if gated => format!("Ralph: iteration {round}. Ends on {} with its proof.", tag(promise)),
        None if gated => format!("Ralph: iteration {round}. Ends when its gates hold."),
        Some(promise) => format!("Ralph: iteration {round}. Ends on {}.", tag(promise)),
        None if max_iterations == 0 => format!("Ralph: iteration {round}, no iteration limit and no promise. /cancel-ralph ends it."),
        None => format!("Ralph: iteration {round}, no promise: it ends at the limit or with /cancel-ralph."),
    }
}

/// The conditions that end a loop, in a few words.
pub fn ends_on(promise: Option<&str>, gated: bool) -> String {
    match promise {
        Some(promise) if gated => format!("{} with its proof", tag(promise)),
        Some(promise) => tag(promise),
        None if gated => "its gates".to_owned(),
        None => "a limit or a cancel".to_owned(),
    }
}

/// How to claim, for the agent.
pub(crate) fn how_to_claim(promise: &str) -> String {
    format!("Only when all of it is completely true, end your message with {} on a line of its own.", tag(promise))
}

/// How to say that it cannot go on, for the agent.
pub(crate) const HOW_TO_SAY_BLOCKED: &str = "If you cannot go on without a person, end your message with <blocked>why</blocked> on a line of its own, with the \
                                      reason in place of \"why\".";

/// How an agent ends its work, one way or the other.
pub fn how_to_end(promise: Option<&str>) -> String {
    promise.map(|promise| how_to_claim(promise) + " ").unwrap_or_default() + HOW_TO_SAY_BLOCKED
}

/// The message to the agent besides the prompt: that it should try another way, what is not proven, why a tag did not count, and, if the loop wants it, how to claim.
pub fn hint(e: &Evidence, remind: bool) -> Option<String> {
    let parts: Vec<String> =
        [about_being_blocked(e), gate_messages::for_agent(e), about_the_claim(e, remind)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn about_the_claim(e: &Evidence, remind: bool) -> Option<String> {
    let promise = e.promise.as_deref();
    match (&e.claim, promise) {
        (Claim::Made, Some(promise)) if e.notes_waiting > 0 => Some(format!(
            "[ralph] {} was claimed, but the person had left a note by then. The note comes first: do what it says, and then claim again.",
            tag(promise)
        )),
        // A fresh session's prompt says how to claim anyway.
        (Claim::Refused { why }, Some(_)) if e.fresh => {
            Some(format!("[ralph] The last session's promise tag did not count: {}.", why.words()))
        }
        (Claim::Refused { why }, Some(_)) => {
            Some(format!("[ralph] Your message had a promise tag that does not count: {}. {}", why.words(), how_to_end(promise)))
        }
        (Claim::None, Some(_)) if remind && !e.fresh && e.blocked.is_none() => Some(format!("[ralph] {}", how_to_end(promise))),
        _ => None,
    }
}

/// The first time that it cannot go on, an agent is asked to try another way. A new session does not know what the one before said.
fn about_being_blocked(e: &Evidence) -> Option<String> {
    let why = e.blocked.as_deref()?;
    let who = if e.fresh { "The last iteration ended because it could not go on" } else { "You said that you cannot go on" };
    Some(format!(
        "[ralph] {who}: {}. Try another way first: look for what you can do yourself, and do what does not depend on it. If that does not work either, say so \
         again with <blocked>why</blocked> on the last line: then the loop pauses, and a person is asked.",
        why.trim_end_matches('.')
    ))
}

/// Where a message is read: it names what can be typed there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// In the agent's own session.
    Session,
    Terminal,
}

impl Reader {
    /// The command that goes on with a loop, with what follows it: `/ralph-resume`, `` `ralph resume docs --hours 8` ``.
    pub fn resume(self, more: &str) -> String {
        self.command("/ralph-resume", "ralph resume", more)
    }

    pub fn cancel(self, more: &str) -> String {
        self.command("/cancel-ralph", "ralph cancel", more)
    }

    pub fn status(self) -> String {
        self.command("/ralph-status", "ralph status", "")
    }

    fn command(self, slash: &str, command: &str, more: &str) -> String {
        match self {
            Reader::Session if more.is_empty() => slash.to_owned(),
            Reader::Session => format!("`{slash}{more}`"),
            Reader::Terminal => format!("`{command}{more}`"),
        }
    }
}

/// The person's line when a stop is allowed; `None` where silence is the better answer.
pub fn allowed(e: &Evidence, ruling: &Ruling) -> Option<String> {
    ending(e, ruling, Reader::Session).map(|line| format!("Ralph: {line}"))
}

/// The person's line at the first stop of a paused loop: a claim at the end of the session must not look like success.
pub fn unchecked(e: &Evidence) -> String {
    let (resume, cancel) = (Reader::Session.resume(""), Reader::Session.cancel(""));
    let round = of_limit(e.iteration, e.max_iterations);
    format!("Ralph: the loop is paused at iteration {round}, so this stop was not checked. {resume} goes on, {cancel} ends the loop.")
}

/// The limits of a loop, and how far it is.
pub struct Limits {
    pub iteration: u64,
    pub iterations: u64,
    pub ms: u64,
    pub usd_micros: Micros,
    pub tokens: u64,
}

impl Limits {
    /// The flag that gives a loop as much again of what it used up: ` --usd 3`. Time, money and tokens count from the resume on, iterations from the start.
    pub fn as_much_again(&self, code: Code) -> String {
        match code {
            Code::LimitIterations => format!(" --max-iterations {}", self.iteration.saturating_add(self.iterations.max(1))),
            Code::LimitTime => format!(" --hours {}", time::in_hours(self.ms)),
            Code::LimitCost => format!(" --usd {}", money::in_dollars(self.usd_micros)),
            Code::LimitTokens => format!(" --tokens {}", self.tokens),
            _ => String::new(),
        }
    }
}

/// How a loop ended, paused or parked at a stop, why, and how it goes on.
pub fn ending(e: &Evidence, ruling: &Ruling, reader: Reader) -> Option<String> {
    let round = of_limit(e.iteration, e.max_iterations);
    let resume = |more: &str| if e.fresh { format!("`ralph run --continue{more}`") } else { reader.resume(more) };
    let again = if e.fresh { "`ralph run --continue` goes on".to_owned() } else { format!("{} arms it again", reader.resume("")) };
    let cancel = reader.cancel("");
    let limits =
        Limits { iteration: e.iteration, iterations: e.max_iterations, ms: e.max_ms, usd_micros: e.max_usd_micros, tokens: e.max_tokens };
    let more = resume(&limits.as_much_again(ruling.code));
    let line = match (ruling.code, ruling.next) {
        (Code::GateWaiting, _) => {
            // A hook that has not waited leaves it to the hook beside it, which wakes the session.
            let (waited, then) = match e.waited_ms {
                0 => (String::new(), "This session goes on by itself when that is decided."),
                ms => (format!(" after {} of waiting", in_words(ms)), "`ralph pr --wait` waits on, and says how to go on."),
            };
            format!("parked at iteration {round}{waited}, for {}. {then}", gate_messages::in_short(e))
        }
        (_, Next::Stays | Next::Parks | Next::GoesOn { .. }) => return None,
        (Code::PromiseAccepted | Code::GatesPassed, _) => complete(e, ruling.code),
        (Code::GateUntrusted | Code::GateBroken | Code::GateBlocked, _) => {
            format!("paused at iteration {round}: {}. Then {again}.", gate_messages::needs(e))
        }
        (Code::FeaturesPerSession, _) => format!(
            "paused at iteration {round}: items done in this session: {}, and `per_session` is {}. {} goes on, best in a new session.",
            e.items_done,
            e.items_per_session,
            resume("")
        ),
        (Code::GateUnknown, _) => format!(
            "paused at iteration {round}: the proof could not be had {} in a row ({}). `ralph gate` tries it by hand; {again}.",
            count(e.unknown_rounds, "time", "times"),
            gate_messages::in_short(e)
        ),
        (Code::AgentBlocked, _) => format!(
            "paused at iteration {round}: the agent says that it cannot go on: {}. `ralph steer TEXT` leaves it an answer; {again}.",
            e.blocked.as_deref().unwrap_or_default().trim_end_matches('.')
        ),
        (Code::LimitIterations, _) => {
            format!("stopped at its limit of {}{}. The loop is kept: {more} goes on.", iterations(e.max_iterations), without(e))
        }
        (Code::LimitTime, _) => format!(
            "stopped at its time limit of {} (iteration {round}){}. The loop is kept: {more} goes on.",
            in_words(e.max_ms),
            at_a_limit(e)
        ),
        (Code::LimitCost, _) => format!(
            "stopped at its limit of {}: about {} spent (iteration {round}){}. The loop is kept: {more} goes on.",
            money::shown(e.max_usd_micros),
            money::shown(e.spent_usd_micros),
            at_a_limit(e)
        ),
        (Code::LimitTokens, _) => format!(
            "stopped at its limit of {}: {} used (iteration {round}){}. The loop is kept: {more} goes on.",
            count(e.max_tokens, "token", "tokens"),
            e.spent_tokens,
            at_a_limit(e)
        ),
        (Code::ProgressOscillating, _) => format!(
            "paused at iteration {round}: the files go back and forth between the same two states, {} in a row. {again}.",
            count(e.swings, "time", "times")
        ),
        (Code::HostDenied, _) => format!(
            "paused at iteration {round}: nothing changes, and these tools were denied: {}. Allow them in the agent's settings, or choose another \
             --permission-mode; {again}.",
            e.denied.iter().take(4).map(|rule| clean(rule)).collect::<Vec<_>>().join(", ")
        ),
        (Code::HostContextFull, _) => format!(
            "paused at iteration {round}: the session's context is {} % full, and `max_context` is {}. `ralph run --continue` goes on in fresh sessions; \
             in this one, /compact and then /ralph-resume do.",
            e.context, e.max_context
        ),
        (Code::HostBlockCap, _) if e.idle_limit_from == IdleLimitFrom::HostTurnCap => format!(
            "paused at iteration {round}: the agent was sent back {} in this turn, and would soon end it by itself as if it were done. {again}.",
            count(e.idle_rounds, "time", "times")
        ),
        (Code::HostBlockCap, _) => format!(
            "paused at iteration {round}: {} in a row without any tool call, and the client would soon end the turn by itself as if it were done. \
             {again}; `ralph init --block-cap 0` lifts the client's cap.",
            iterations(e.idle_rounds)
        ),
        (Code::ProgressNone, _) if e.idle_rounds < e.idle_limit => {
            let what = if e.gates.is_empty() { "same commit, same files" } else { "same commit, same files, same findings" };
            let open = gate_messages::in_short(e);
            let open = if open.is_empty() { String::new() } else { format!(" ({open})") };
            format!("paused at iteration {round}: {}: {what}{open}. {again}.", stood_still(e))
        }
        (Code::ProgressNone, _) => {
            format!("paused at iteration {round}: {} in a row without any tool call. {again}.", iterations(e.idle_rounds))
        }
        (Code::HostInterrupted, _) => {
            format!("you interrupted the agent, so the loop is paused at iteration {round}. {again}, {cancel} ends it.")
        }
        (Code::PersonStop, _) => format!("you said stop, so the loop is paused at iteration {round}. {again}, {cancel} ends it."),
        (Code::TranscriptMissing, _) => {
            format!("paused at iteration {round}: the event carries no message, and its transcript does not exist{}. {again}.", named(e))
        }
        (code, _) => format!("the loop stopped at iteration {round} ({}).", code.as_str()),
    };
    Some(line)
}

/// How many iterations changed nothing. A run has one more, for a last try.
fn stood_still(e: &Evidence) -> String {
    let (rounds, trial) = match e.stalled_rounds {
        rounds @ 2.. if e.fresh => (rounds - 1, ", and one more try did not either"),
        rounds => (rounds, ""),
    };
    format!("{} changed nothing{trial}", iterations(rounds))
}

/// How a loop is complete. An ending after which the proof is not what it was is never told as a plain one.
fn complete(e: &Evidence, code: Code) -> String {
    let gates = gate_messages::proven(e);
    if e.before_the_first {
        // With a promise, the agent would have been asked.
        let more = if e.promise.is_some() {
            ""
        } else {
            " If the task is more than that, add `--promise DONE`: then the agent has to claim it as well."
        };
        return format!("complete, with nothing to do: {} already. No session was started.{more}", gates.unwrap_or_default());
    }
    let complete = if e.suspicions.is_empty() { "complete" } else { "complete, with doubts," };
    let how = match (code, e.promise.as_deref()) {
        (Code::PromiseAccepted, Some(promise)) => {
            format!("the agent claimed {}{}", tag(promise), gates.map(|gates| format!(", and {gates}")).unwrap_or_default())
        }
        _ => gates.unwrap_or_default(),
    };
    format!("{complete} after {} ({}): {how}.", iterations(e.iteration), in_words(e.spent_ms))
}

/// The missing parts at the limit of iterations.
fn without(e: &Evidence) -> String {
    match e.claim {
        Claim::None if e.promise.is_some() && e.blocked.is_none() => ", without the promise".to_owned(),
        Claim::Made if e.notes_waiting == 0 => format!(", with a claim that is not proven ({})", gate_messages::in_short(e)),
        _ => at_a_limit(e),
    }
}

/// The unproven gates at a limit, and a claim of the agent that did not count.
fn at_a_limit(e: &Evidence) -> String {
    let said = match (&e.claim, &e.blocked) {
        (_, Some(why)) => format!(", and the agent says that it cannot go on ({why})"),
        (Claim::Refused { why }, _) if e.promise.is_some() => format!(", with an unclear claim ({})", why.words()),
        (Claim::Made, _) if e.notes_waiting > 0 => ", with a claim that was not judged, because a note was not delivered".to_owned(),
        _ => String::new(),
    };
    gate_messages::at_the_end(e) + &said
}

/// For the person's line while the loop goes on: what the agent said that does not end it.
pub fn going_on_although(code: Code) -> &'static str {
    match code {
        Code::AgentBlocked => " The agent says that it cannot go on; it is sent back once to try another way.",
        Code::NoteUndelivered => " The agent claims to be done; your note comes first.",
        _ => "",
    }
}

fn named(e: &Evidence) -> String {
    match &e.message {
        crate::judge::Message::Unreadable { transcript } if !transcript.is_empty() => format!(" ({transcript})"),
        _ => String::new(),
    }
}

impl LoopSettings {
    /// The limits of a loop in words, as `start` and `status` print them back.
    pub fn limits_in_words(&self, gated: bool, idle_rounds: u64) -> Vec<String> {
        let (max_iterations, max_millis) = (self.max_iterations(), self.max_millis());
        vec![
            match self.completion_promise.as_deref() {
                Some(promise) if gated => format!("ends when the agent says {} and its gates prove it", tag(promise)),
                None if gated => "ends when its gates hold".to_owned(),
                Some(promise) => format!("ends when the agent truthfully says {}", tag(promise)),
                None => "no promise: only a limit or a cancel ends it".to_owned(),
            },
            if max_iterations == 0 { "no limit on iterations".to_owned() } else { format!("at most {}", iterations(max_iterations)) },
            if max_millis > 0 { format!("at most {}", in_words(max_millis)) } else { "no limit on time".to_owned() },
            if idle_rounds == u64::MAX {
                "no pause for iterations without tool use".to_owned()
            } else {
                format!("pauses after {} in a row without any tool call", iterations(idle_rounds))
            },
        ]
    }

    /// The limits that only some loops have; `spelled_out`: their absence is told, too.
    pub fn further_limits_in_words(&self, stall_rounds: u64, spelled_out: bool) -> Vec<String> {
        let money = match self.max_usd_micros() {
            0 => spelled_out.then(|| "no limit on money".to_owned()),
            max => Some(format!("at most about {}, estimated from the tokens that the client reports", money::shown(max))),
        };
        let standstill = match stall_rounds {
            0 => spelled_out.then(|| "no pause for iterations that change nothing".to_owned()),
            n => Some(format!("pauses after {} in a row that change nothing: no commit, no file, no finding", iterations(n))),
        };
        money.into_iter().chain(standstill).collect()
    }
}

/// `about $3.20 of $50`.
pub fn spent_of(spent: Micros, max: Micros) -> String {
    let spent = money::shown(spent);
    if max == 0 { format!("about {spent}") } else { format!("about {spent} of {}", money::shown(max)) }
}

/// The person's line when a command that is not ralph's was let through before the loop goes on.
pub fn goes_first(command: &str) -> String {
    format!("Ralph: /{} goes first. If it leaves the agent with nothing to do, /ralph-resume goes on with the loop.", opening(command, 64))
}

/// The journal of a loop is not as ralph left it.
pub fn misfit(id: &str, what: &str) -> String {
    format!(
        "Ralph: the journal of {id} was changed by something other than ralph: {what}. Ralph decides by its own copy, so the loop goes on as it was."
    )
}

/// How an edit that pauses the loop is called.
const PAUSED_BY_HAND: &str = "active true → false";

/// The loop file was edited: what counts now, and what does not.
pub fn edited(counting: &[String], refused: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let (paused, counting): (Vec<&String>, Vec<&String>) = counting.iter().partition(|change| *change == PAUSED_BY_HAND);
    if !paused.is_empty() {
        lines.push("Ralph: the loop is paused: its file says `active: false` now. /ralph-resume goes on.".to_owned());
    }
    if !counting.is_empty() {
        let counting: Vec<&str> = counting.into_iter().map(String::as_str).collect();
        lines.push(format!("Ralph: the loop file was edited: {}.", counting.join(", ")));
    }
    if !refused.is_empty() {
        lines.push(format!(
            "Ralph: the agent seems to have edited the loop file itself: {}. That does not count; /ralph-resume with the limit that you want sets it.",
            refused.join(", ")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_where_the_loop_is() {
        assert_eq!(going_on(4, 20, Some("ALL  DONE"), false), "Ralph: iteration 4 of 20. Ends on <promise>ALL DONE</promise>.");
        assert_eq!(going_on(4, 0, None, false), "Ralph: iteration 4, no iteration limit and no promise. /cancel-ralph ends it.");
    }

    #[test]
    fn limits_are_spelled_out() {
        assert_eq!(
            LoopSettings::default().limits_in_words(false, 7),
            [
                "no promise: only a limit or a cancel ends it",
                "no limit on iterations",
                "at most 8 h",
                "pauses after 7 iterations in a row without any tool call"
            ]
        );
        let one = LoopSettings {
            max_iterations: Some(1),
            completion_promise: Some("X".to_owned()),
            max_hours: Some(0.0),
            ..LoopSettings::default()
        };
        assert_eq!(one.limits_in_words(false, u64::MAX)[1..3], ["at most 1 iteration", "no limit on time"]);
    }

    #[test]
    fn s2_7_money_and_standstill_are_spelled_out() {
        assert_eq!(
            LoopSettings { max_usd: Some(50.0), ..LoopSettings::default() }.further_limits_in_words(6, true),
            [
                "at most about $50, estimated from the tokens that the client reports",
                "pauses after 6 iterations in a row that change nothing: no commit, no file, no finding"
            ]
        );
        let none = LoopSettings::default();
        assert_eq!(none.further_limits_in_words(0, true), ["no limit on money", "no pause for iterations that change nothing"]);
        assert!(none.further_limits_in_words(0, false).is_empty());
        assert_eq!(spent_of(3_200_000, 50_000_000), "about $3.20 of $50");
    }
}
