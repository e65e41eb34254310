//! Every reason code: a stable word for programs, log lines and `explain`. [`docs/hook-contract.md`] lists them.
//!
//! [`docs/hook-contract.md`]: ../../../../docs/hook-contract.md

use serde::{Deserialize, Serialize};

use super::{Evidence, claim::Claim};
use crate::gate::{Kind, Proof};

/// Makes the two types from their tables: a code that is in neither does not compile.
macro_rules! codes {
    (
        $(#[$of_code:meta])* enum Code { $($(#[$about:meta])* $name:ident = $code:literal,)+ }
        $(#[$of_reason:meta])* struct Reason { $($(#[doc = $why:literal])+ $reason:ident = $word:literal,)+ }
    ) => {
        $(#[$of_code])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Code { $($(#[$about])* #[serde(rename = $code)] $name,)+ }

        impl Code {
            /// Every one of them.
            pub const ALL: &[Code] = &[$(Code::$name,)+];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }
        }

        $(#[$of_reason])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Reason(&'static str);

        impl Reason {
            /// Every one of them; those of rulings are in [`Code::ALL`].
            pub const ALL: &[Reason] = &[$(Reason::$reason,)+];
            $($(#[doc = $why])+ pub const $reason: Reason = Reason($word);)+
        }
    };
}

codes! {
    /// Why: a stable word for programs, log lines and `explain`.
    enum Code {
        PromiseAccepted = "promise.accepted",
        /// No promise is configured, and all gates hold.
        GatesPassed = "gates.passed",
        /// The agent claims to be done, and a gate says otherwise.
        PromiseUnproven = "promise.unproven",
        /// No promise is configured, and a gate fails.
        GateFailed = "gate.failed",
        /// A gate could not be measured.
        GateUnknown = "gate.unknown",
        /// A gate needs a person: its commands are not trusted.
        GateUntrusted = "gate.untrusted",
        /// A gate needs a person: what declares it cannot be read, or is not there.
        GateBroken = "gate.broken",
        /// A gate needs a person: the service that decides it cannot be asked, or asks for one.
        GateBlocked = "gate.blocked",
        /// Something outside decides, and has not yet.
        GateWaiting = "gate.waiting",
        /// As many items as one session may do are done.
        FeaturesPerSession = "features.per-session",
        /// A promise is configured and was not claimed.
        PromiseMissing = "promise.missing",
        /// A promise tag was seen, and it does not count.
        PromiseRefused = "promise.refused",
        /// The agent claims to be done, and has not been told yet what the person said last.
        NoteUndelivered = "note.undelivered",
        /// The agent says that it cannot go on.
        AgentBlocked = "agent.blocked",
        /// No promise is configured: the loop goes on until a limit or a cancel.
        PromiseNone = "promise.none",
        LimitIterations = "limit.iterations",
        LimitTime = "limit.time",
        LimitCost = "limit.cost",
        LimitTokens = "limit.tokens",
        /// The files go back and forth between the same two states.
        ProgressOscillating = "progress.oscillating",
        /// Tools were denied because no person was there to allow them, and there is no progress without them.
        HostDenied = "host.denied",
        /// The session's context is as full as the loop may let it be.
        HostContextFull = "host.context-full",
        /// Iterations without any tool call, or iterations in which nothing changed.
        ProgressNone = "progress.none",
        HostBlockCap = "host.block-cap",
        HostBackground = "host.background",
        HostQueuedInput = "host.queued-input",
        HostInterrupted = "host.interrupted",
        /// The person told the agent to stop.
        PersonStop = "person.stop",
        LoopPaused = "loop.paused",
        TranscriptMissing = "transcript.missing",
    }

    /// Why a hook answered as it did: the code of a ruling, or one of the hook's own, which are these.
    struct Reason {
        /// `/ralph-cancel` was typed.
        COMMAND_CANCEL = "command.cancel",
        /// Help about a command was asked for.
        COMMAND_HELP = "command.help",
        /// A command that is not ralph's was typed.
        COMMAND_OTHER = "command.other",
        /// `/ralph-pause` was typed.
        COMMAND_PAUSE = "command.pause",
        /// A command of ralph's could not be done, and the answer says why.
        COMMAND_REFUSED = "command.refused",
        /// The client reported the same command twice.
        COMMAND_REPEATED = "command.repeated",
        /// `/ralph-resume` was typed.
        COMMAND_RESUME = "command.resume",
        /// A loop was started.
        COMMAND_START = "command.start",
        /// `/ralph-status` was typed.
        COMMAND_STATUS = "command.status",
        /// Nothing proves that a person typed the command.
        COMMAND_UNCONFIRMED = "command.unconfirmed",
        /// An event that changes nothing was noted in the journal.
        EVENT_HEARD = "event.heard",
        /// An agent that a gate's command runs.
        GATE_WITHIN = "gate.within",
        /// The client ended the hook while it measured: no answer, and nothing is counted.
        HOOK_ENDED = "hook.ended",
        /// The event came out of the agent's own shell.
        HOOK_SHELL = "hook.shell",
        /// The turn ended with an error of the API.
        HOST_API_ERROR = "host.api-error",
        /// The client ended the hook of a subagent's stop while it measured.
        HOST_ENDED = "host.ended",
        /// Another agent program called.
        HOST_FOREIGN = "host.foreign",
        /// The event is no JSON, or names no session.
        INPUT_INVALID = "input.invalid",
        /// The event could not be read.
        INPUT_UNREAD = "input.unread",
        /// Something failed in ralph: the agent may stop.
        INTERNAL_ERROR = "internal.error",
        /// The log of a project could not be written.
        LOG_UNWRITTEN = "log.unwritten",
        /// The loop's file cannot be read.
        LOOP_CORRUPT = "loop.corrupt",
        /// The person interrupted the agent and typed something: the loop is paused.
        LOOP_INTERRUPTED = "loop.interrupted",
        /// The session's loop is gone, or another session's, and no person told ralph.
        LOOP_LOST = "loop.lost",
        /// The list of a feature folder is gone.
        LOOP_LOST_LIST = "loop.lost-list",
        /// The session has no loop here.
        LOOP_NONE = "loop.none",
        /// The loop is paused.
        LOOP_PAUSED = "loop.paused",
        /// Git tracks the loop's file: it waits for `ralph resume`.
        LOOP_TRACKED = "loop.tracked",
        /// A notification about the loop could not be sent.
        NEWS_UNSENT = "news.unsent",
        /// A notification of the client's that is not about a permission.
        NOTIFICATION_OTHER = "notification.other",
        /// The client asks the person for a permission, and the agent waits meanwhile.
        PERMISSION_ASKED = "permission.asked",
        /// The agent reports the text that ralph sent it back with as a prompt.
        PROMPT_OWN = "prompt.own",
        /// The person typed a message while the loop works.
        PROMPT_TYPED = "prompt.typed",
        /// The loop runs in `ralph run`, which did not start this session.
        RUNNER_CARRIES = "runner.carries",
        /// `ralph run` started this session and decides about its stops.
        RUNNER_DRIVES = "runner.drives",
        /// In a session of `ralph run`: sent back by its own stop hook.
        RUNNER_INNER = "runner.inner",
        /// A session that an agent of `ralph run` started.
        RUNNER_WITHIN = "runner.within",
        /// The session was cleared: its loop goes on in the new one.
        SESSION_CLEARED = "session.cleared",
        /// The loop is another session's.
        SESSION_OTHER = "session.other",
        /// A session with a loop was started or resumed.
        SESSION_STARTED = "session.started",
        /// The wait after an API error is over: the session is woken.
        SESSION_WAKES = "session.wakes",
        /// The session was woken, and its loop goes on.
        SESSION_WOKEN = "session.woken",
        /// The session was woken for something that was over by then.
        SESSION_WOKEN_LATE = "session.woken-late",
        /// The same stop, reported a second time: it gets the same answer.
        STOP_REPEATED = "stop.repeated",
        /// The agent's transcript did not come to say what it said last: the stop is let through, and nothing is counted.
        TRANSCRIPT_LATE = "transcript.late",
        /// The file that asks for a subagent's proof cannot be read.
        VERIFY_BROKEN = "verify.broken",
        /// A subagent was sent back.
        VERIFY_FAILED = "verify.failed",
        /// The file that asked for the proof of a subagent is gone.
        VERIFY_GONE = "verify.gone",
        /// A subagent proved its work.
        VERIFY_PASSED = "verify.passed",
        /// The commands that a subagent must pass are not trusted.
        VERIFY_UNTRUSTED = "verify.untrusted",
        /// A subagent was let go without proof.
        VERIFY_UNVERIFIED = "verify.unverified",
        /// There was nothing to wait for. It is never logged.
        WAIT_NONE = "wait.none",
        /// The wait ended without anything to do.
        WAIT_OVER = "wait.over",
    }
}

impl Code {
    /// Why a loop whose gates need a person pauses: the first such gate tells.
    pub(super) fn needing_a_person(e: &Evidence) -> Self {
        match e.gates.iter().find(|f| f.needs.is_some()).map(|f| f.kind) {
            Some(Kind::Config) => Code::GateBroken,
            Some(kind) if kind.is_decided_elsewhere() => Code::GateBlocked,
            _ => Code::GateUntrusted,
        }
    }

    /// Why the agent is sent back.
    pub(super) fn of_block(e: &Evidence, proof: Proof) -> Self {
        let says_done = e.claim == Claim::Made || (e.promise.is_none() && proof != Proof::NotAsked);
        match (&e.promise, &e.claim) {
            _ if e.blocked.is_some() => Code::AgentBlocked,
            _ if e.notes_waiting > 0 && says_done && proof != Proof::Fails => Code::NoteUndelivered,
            (Some(_), Claim::None) => Code::PromiseMissing,
            (Some(_), Claim::Refused { .. }) => Code::PromiseRefused,
            (None, _) if proof == Proof::NotAsked => Code::PromiseNone,
            (None, _) if proof == Proof::Fails => Code::GateFailed,
            (Some(_), Claim::Made) if proof == Proof::Fails => Code::PromiseUnproven,
            _ => Code::GateUnknown,
        }
    }
}

impl Reason {
    /// The hook's own reason of that name.
    pub fn of(word: &str) -> Option<Reason> {
        Reason::ALL.iter().copied().find(|reason| reason.0 == word)
    }

    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl From<Code> for Reason {
    fn from(code: Code) -> Self {
        Reason(code.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_there_once_and_documented() {
        let pages = [include_str!("../../../../docs/hook-contract.md"), include_str!("../../../../docs/gates.md")].concat();
        let own: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert!(own.windows(2).all(|pair| pair[0] < pair[1]), "in the order of the alphabet, and each once");
        for code in Code::ALL.iter().map(|code| code.as_str()).chain(own) {
            assert!(pages.contains(&format!("`{code}`")), "{code} is in no page");
        }
    }
}
