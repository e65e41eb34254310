//! A person's message that is nothing but "stop": it holds the loop, whatever the agent makes of it.

use super::slash::{self, Verb};

/// The whole message, in lower case, without punctuation and "please". A longer one is the agent's to understand.
const WORDS: [&str; 36] = [
    "stop",
    "stop it",
    "stop now",
    "stop here",
    "stop this",
    "stop working",
    "stop the loop",
    "stop ralph",
    "halt",
    "wait",
    "hold on",
    "hold it",
    "pause",
    "abort",
    "cancel",
    "enough",
    "that's enough",
    "stopp",
    "warte",
    "arrête",
    "arrete",
    "attends",
    "para",
    "alto",
    "espera",
    "pare",
    "basta",
    "fermati",
    "стоп",
    "стой",
    "停",
    "停止",
    "停下",
    "止めて",
    "ストップ",
    "멈춰",
];

/// Whether a message that the person typed says stop, and nothing else.
pub(super) fn is_said(text: &str) -> bool {
    let text = text.trim();
    // A command that no hook carried out is in the transcript as it was typed, or as the client expanded it.
    let command = text.split_once("<command-name>").and_then(|(_, rest)| rest.split_once("</command-name>")).map_or(text, |(name, _)| name);
    if let Some((name, args)) = slash::split(command) {
        return matches!(slash::verb_of(name, args), Some((Verb::Cancel | Verb::Pause, _)));
    }
    let is_aside = |c: char| c.is_whitespace() || matches!(c, '.' | '!' | ',' | '…' | '。' | '！' | '，');
    let lower = text.to_lowercase();
    let said: Vec<&str> =
        lower.split(is_aside).filter(|word| !word.is_empty() && !matches!(*word, "please" | "bitte" | "ralph" | "claude")).collect();
    let is_one = said.first().is_some_and(|first| said.iter().all(|word| word == first));
    let said = if is_one { said[..1].join(" ") } else { said.join(" ") };
    WORDS.contains(&said.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t4_a_message_that_is_only_stop_says_so() {
        for said in [
            "stop",
            "STOP!",
            " Stop. ",
            "please stop",
            "stop please!",
            "Stop, Claude",
            "stop stop stop",
            "stop!!!",
            "halt",
            "wait",
            "Wait…",
            "hold on",
            "arrête",
            "СТОП",
            "停止。",
            "止めて",
            "stop the loop",
            "/cancel-ralph",
            "/ralph pause",
            " /ralph:cancel main",
            "<command-message>cancel-ralph</command-message>\n<command-name>/cancel-ralph</command-name>\n<command-args></command-args>",
        ] {
            assert!(is_said(said), "{said:?}");
        }
    }

    #[test]
    fn t4_anything_more_is_for_the_agent() {
        for other in [
            "",
            " ",
            "please",
            "stop?",
            "don't stop",
            "stop using tabs",
            "wait for CI, then merge",
            "the stop button is broken",
            "go on",
            "cancel the old jobs",
            "/ralph-loop stop",
            "/ralph-status",
            "/stop",
            "stop\nand then fix the tests",
            "/ralph-resume",
            "<promise>stop</promise>",
            "non-stop",
        ] {
            assert!(!is_said(other), "{other:?}");
        }
    }
}
