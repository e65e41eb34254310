//! Messages about a subagent's proof: to the agent, what it has to fix; to the person, that its work is unverified.

use crate::{
    gate::{Finding, Verdict},
    judge::subagent::Tries,
    messages::gate_messages,
    text::{self, clean, opening, time::in_words},
};

/// For the agent that is sent back: what does not hold, failures first.
pub fn for_agent(findings: &[Finding], tries: Tries) -> String {
    let of = |verdict| findings.iter().filter(move |f| f.verdict == verdict && !f.skipped);
    let open: Vec<&Finding> = of(Verdict::Fail).chain(of(Verdict::Unknown)).chain(of(Verdict::Wait)).collect();
    // The caller does not see what a hook says, so only the agent itself can report it in the end.
    let last = if tries.iteration.saturating_add(1) >= tries.max_iterations {
        " The next iteration is the last: whatever fails then, name it first in your report, as unverified."
    } else {
        ""
    };
    format!(
        "[ralph] Your work is not verified (iteration {} of {}). {}\n\nFix it, then stop again: the same is checked once more.{last} Keep your full report, and append to it what you did \
         now: your last message is all that the agent who called you gets.",
        tries.iteration,
        tries.max_iterations,
        gate_messages::told(&open)
    )
}

/// For the person, while the agent is sent back.
pub fn going_on(agent: &str, findings: &[Finding], tries: Tries) -> String {
    let (iteration, most) = (tries.iteration, tries.max_iterations);
    format!("Ralph: the agent {} is sent back (iteration {iteration} of {most}): {}.", named(agent), gate_messages::short(findings))
}

/// For the person, when the agent is let go without a proof.
pub fn given_up(agent: &str, findings: &[Finding], tries: Tries) -> String {
    let after = if tries.iteration >= tries.max_iterations {
        format!("{} of {}", tries.iteration, text::iterations(tries.max_iterations))
    } else {
        in_words(tries.spent_ms)
    };
    format!("{}: {}. It was let go after {after}.", unverified(agent), gate_messages::short(findings))
}

/// For the person, when the agent is let go because of `why` its iterations cannot be counted.
pub fn uncounted(agent: &str, findings: &[Finding], why: &str) -> String {
    let (short, why) = (gate_messages::short(findings), opening(why, 300));
    format!("{}: {short}. It was let go because its iterations cannot be counted: {why}.", unverified(agent))
}

/// `Ralph: the work of the agent check is unverified`.
pub fn unverified(agent: &str) -> String {
    format!("Ralph: the work of the agent {} is unverified", named(agent))
}

/// For the person, when nothing is asked any more of an agent that was sent back.
pub fn gone(agent: &str) -> String {
    format!("{}: it was sent back, and what asked for its proof is gone since.", unverified(agent))
}

/// For the person, when only a person can go on.
pub fn needs_person(agent: &str, finding: &Finding) -> String {
    let needs = finding.needs.as_deref().map(|needs| format!(": {}", clean(needs))).unwrap_or_default();
    format!("{}: {}{needs}.", unverified(agent), clean(&finding.what))
}

fn named(agent: &str) -> String {
    opening(agent, 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Kind;

    #[test]
    fn s3_5_the_agent_is_told_what_failed_and_the_person_that_it_is_unverified() {
        let fails = Finding {
            log: Some(".ralph/logs/1-lint.log".to_owned()),
            ..Finding::new("pnpm lint", Kind::Command, Verdict::Fail, "exit code 1").with_detail("src/a.ts: no semicolon")
        };
        let skipped = Finding { skipped: true, ..Finding::new("pnpm test", Kind::Command, Verdict::Unknown, "not run") };
        let late = Finding::new("pnpm build", Kind::Command, Verdict::Unknown, "timed out after 2 min");
        let findings = [late, fails, skipped];
        let round = Tries { iteration: 2, max_iterations: 5, spent_ms: 60_000, max_ms: 1_800_000 };
        let text = for_agent(&findings, round);
        assert!(
            text.starts_with(
                "[ralph] Your work is not verified (iteration 2 of 5). Gate \"pnpm lint\" fails: exit code 1.\nsrc/a.ts: no semicolon\n"
            ),
            "{text}"
        );
        assert!(
            text.contains(".ralph/logs/1-lint.log") && text.contains("\"pnpm build\" could not be measured: timed out after 2 min"),
            "{text}"
        );
        assert!(
            !text.contains("the last") && for_agent(&findings, Tries { iteration: 4, ..round }).contains("The next iteration is the last")
        );
        assert!(!text.contains("pnpm test") && text.contains("append to it"), "{text}");
        assert!(
            going_on("p:check\u{1b}[31m", &findings, round).starts_with("Ralph: the agent p:check[31m is sent back (iteration 2 of 5): ")
        );
        let last = given_up("check", &findings, Tries { iteration: 5, ..round });
        assert!(
            last.starts_with("Ralph: the work of the agent check is unverified: ") && last.ends_with("after 5 of 5 iterations."),
            "{last}"
        );
        assert!(last.contains("pnpm lint failed: exit code 1"), "{last}");
        assert!(given_up("check", &findings, Tries { spent_ms: 1_860_000, ..round }).ends_with("after 31 min."));
    }
}
