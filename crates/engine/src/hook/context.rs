//! How full the session's context is, where the loop has a limit on that.

use ralph_core::{judge::Evidence, prices, transcript};

use crate::{hook::Call, hosts::claude::transcripts::OpenFile, store::locked::Loop};

/// Puts it into the evidence. A runner's rounds each begin with an empty one.
pub(super) fn measure(call: &Call, l: &Loop, evidence: &mut Evidence) {
    if l.file.max_context() == 0 || call.round.is_some() || !l.file.active {
        return;
    }
    evidence.max_context = l.file.max_context();
    let transcript = OpenFile::of_session(call.event.text("transcript_path").unwrap_or_default(), call.event.session());
    let fill = transcript.and_then(|file| transcript::context(&file));
    evidence.context = fill.map_or(0, |fill| fill.tokens.saturating_mul(100) / prices::window(&fill.model, fill.tokens));
}
