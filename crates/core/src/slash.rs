//! Commands that a person types in the agent's own prompt: which ones are ralph's, and what their text means.
//!
//! The text arrives byte for byte and never meets a shell. Flags may stand before, after and between the prompt's words, as `--x y` or
//! `--x=y`; quotes and backticks protect what they enclose; after a lone `--` everything is prompt. An unknown flag is an error, because
//! a limit that silently becomes prompt text is a loop without a limit.

use std::ops::Range;

use crate::{config, loop_file::Preset, spelling};

/// What a typed command asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Start,
    Cancel,
    Status,
    Pause,
    Resume,
}

/// The verb of a command name, with or without its slash. Short names are the well-known ones; scoped names are those of ralph's own plugin, so that
/// another plugin's `ralph-loop:ralph-loop` stays that plugin's.
pub fn verb(name: &str) -> Option<Verb> {
    match name.trim_start_matches('/') {
        "ralph-loop" | "ralph" | "ralph:loop" | "ralph:start" | "ralph:ralph-loop" | "ralph:ralph" => Some(Verb::Start),
        "cancel-ralph" | "ralph-cancel" | "ralph:cancel" | "ralph:cancel-ralph" => Some(Verb::Cancel),
        "ralph-status" | "ralph:status" | "ralph:ralph-status" => Some(Verb::Status),
        "ralph-pause" | "ralph:pause" => Some(Verb::Pause),
        "ralph-resume" | "ralph:resume" => Some(Verb::Resume),
        _ => None,
    }
}

/// What a command asks for, given its argument text: `/ralph cancel` is a cancel, not a loop with the prompt "cancel".
pub fn verb_of<'a>(name: &str, args: &'a str) -> Option<(Verb, &'a str)> {
    let verb = verb(name)?;
    let (word, rest) = args.trim_start().split_once(char::is_whitespace).unwrap_or((args.trim(), ""));
    let is_ralph = matches!(name.trim_start_matches('/'), "ralph" | "ralph:ralph");
    let sub = match word {
        "start" | "loop" => Some(Verb::Start),
        "cancel" | "stop" => Some(Verb::Cancel),
        "status" => Some(Verb::Status),
        "pause" => Some(Verb::Pause),
        "resume" => Some(Verb::Resume),
        _ => None,
    };
    // More words than that make a prompt, except after `start`, and after a loop's name or a flag.
    let alone = |rest: &str| rest.split_whitespace().count() <= 1 || rest.trim_start().starts_with("--");
    match sub {
        Some(sub) if is_ralph && (sub == Verb::Start || alone(rest)) => Some((sub, rest)),
        _ => Some((verb, args)),
    }
}

/// Splits a raw prompt that begins with a slash into the command's name and its argument text.
pub fn split(prompt: &str) -> Option<(&str, &str)> {
    let text = prompt.trim_start().strip_prefix('/')?;
    let (name, args) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!name.is_empty()).then_some((name, args))
}

/// The options of a loop, as typed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    pub prompt: String,
    pub max_iterations: Option<u64>,
    pub completion_promise: Option<String>,
    pub hours: Option<f64>,
    pub usd: Option<f64>,
    pub idle_rounds: Option<u64>,
    pub stall_rounds: Option<u64>,
    pub name: Option<String>,
    pub mode: Option<String>,
    /// Lines for the shell that must pass, in the order in which they were typed.
    pub verify: Vec<String>,
    /// How long each of them may run.
    pub deadline_ms: Option<u64>,
    pub preset: Option<String>,
    /// Worth telling the person, and no reason to refuse.
    pub warnings: Vec<String>,
}

const FLAGS: &[&str] = &[
    "max-iterations",
    "completion-promise",
    "hours",
    "usd",
    "idle-rounds",
    "stall-rounds",
    "name",
    "mode",
    "verify",
    "deadline",
    "preset",
];

/// Reads the argument text of a start or resume command.
pub fn parse(args: &str) -> Result<Options, String> {
    let mut options = Options::default();
    let mut prompt = String::with_capacity(args.len());
    let mut at = 0;
    while let Some(word) = next_word(args, at) {
        let text = &args[word.clone()];
        let flag = text.strip_prefix("--");
        match flag {
            Some("") => {
                prompt.push_str(args[word.end..].trim_start());
                break;
            }
            Some(flag) if flag.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                let (name, value, end) = flag_value(args, &word, flag)?;
                options.set(name, value)?;
                // The white space before a flag goes with it, so that what stays reads as it was typed.
                at = end;
                continue;
            }
            _ if is_dashed_flag(text) => {
                return Err(format!("\"{text}\" begins with a long dash: write two hyphens, or put the prompt in quotes"));
            }
            _ => {
                if starts_quoted(text) {
                    options.warn_of_flags_inside(text);
                }
                prompt.push_str(&args[at..word.end]);
            }
        }
        at = word.end;
    }
    unquoted(prompt.trim()).clone_into(&mut options.prompt);
    Ok(options)
}

impl Options {
    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let count = || value.parse::<u64>().map_err(|_| format!("--{flag} needs a whole number from 0 on, not \"{value}\""));
        let amount = |unit: &str| match value.parse::<f64>() {
            Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
            _ => Err(format!("--{flag} needs a number of {unit} from 0 on, not \"{value}\"")),
        };
        match flag {
            "max-iterations" => self.max_iterations = Some(count()?),
            "idle-rounds" => self.idle_rounds = Some(count()?),
            "stall-rounds" => self.stall_rounds = Some(count()?),
            "hours" => self.hours = Some(amount("hours")?),
            "usd" => self.usd = Some(amount("dollars")?),
            "completion-promise" if value.trim().is_empty() => return Err("--completion-promise needs words".to_owned()),
            "completion-promise" => self.completion_promise = Some(value.to_owned()),
            "name" if !crate::loop_file::is_name(value) => {
                return Err(format!("--name needs letters, digits, - and _ only, not \"{value}\""));
            }
            "name" => self.name = Some(value.to_owned()),
            "mode" => self.mode = Some(value.to_owned()),
            "verify" if value.trim().is_empty() => return Err("--verify needs a command".to_owned()),
            "verify" => self.verify.push(value.to_owned()),
            "deadline" => self.deadline_ms = Some(config::time_limit(value).map_err(|what| format!("--deadline: {what}"))?),
            "preset" if Preset::of(value).is_none() => {
                return Err(format!("--preset needs one of {}, not \"{value}\"", Preset::ALL.map(Preset::as_str).join(", ")));
            }
            "preset" => self.preset = Some(value.to_owned()),
            _ => return Err(unknown(flag)),
        }
        Ok(())
    }

    fn warn_of_flags_inside(&mut self, text: &str) {
        for flag in FLAGS.iter().filter(|f| text.contains(&format!("--{f}"))) {
            self.warnings.push(format!("--{flag} stands inside quotes, so it is part of the prompt and sets nothing"));
        }
    }
}

/// The next word from `at` on: a quoted piece counts as one.
fn next_word(text: &str, at: usize) -> Option<Range<usize>> {
    let start = at + text[at..].find(|c: char| !c.is_whitespace())?;
    let rest = &text[start..];
    let end = closing_quote(rest).or_else(|| rest.find(char::is_whitespace)).map_or(text.len(), |n| start + n);
    Some(start..end)
}

/// Editors make one long dash of two hyphens, and a limit must not become prompt text by that.
fn is_dashed_flag(text: &str) -> bool {
    let name = text.strip_prefix(['—', '–']).map(|n| n.split('=').next().unwrap_or(n));
    name.is_some_and(|n| FLAGS.contains(&n))
}

fn starts_quoted(text: &str) -> bool {
    closing_quote(text).is_some()
}

/// The length of the quoted piece that `text` begins with. An apostrophe inside a word opens nothing, and only a quote before white space or the end closes.
fn closing_quote(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let closes = |at: &usize| text[at + 1..].chars().next().is_none_or(char::is_whitespace);
    text.match_indices(quote).map(|(at, _)| at).skip(1).find(closes).map(|at| at + 1)
}

/// Name and value of the flag at `word`, and where it ends.
fn flag_value<'a>(args: &'a str, word: &Range<usize>, flag: &'a str) -> Result<(&'a str, &'a str, usize), String> {
    let name = flag.split_once('=').map_or(flag, |(name, _)| name);
    if !FLAGS.contains(&name) {
        return Err(unknown(name));
    }
    let value = if name.len() < flag.len() {
        let start = word.start + 2 + name.len() + 1;
        let end = closing_quote(&args[start..]).map_or(word.end, |n| start + n);
        start..end
    } else {
        next_word(args, word.end).filter(|v| !args[v.clone()].starts_with("--")).ok_or_else(|| format!("--{name} needs a value"))?
    };
    Ok((name, unquoted(&args[value.clone()]), value.end))
}

/// A text without the quotes around the whole of it.
fn unquoted(text: &str) -> &str {
    let whole = !text.starts_with('`') && closing_quote(text) == Some(text.len()) && text.len() >= 2;
    if whole { &text[1..text.len() - 1] } else { text }
}

fn unknown(flag: &str) -> String {
    let hint = match spelling::nearest(&flag.replace('_', "-"), FLAGS.iter().copied()) {
        Some(near) => format!("did you mean --{near}?"),
        None => format!("the flags are {}.", FLAGS.iter().map(|f| format!("--{f}")).collect::<Vec<_>>().join(", ")),
    };
    format!("unknown flag --{flag}: {hint} If it belongs to the prompt, put the prompt in quotes or after a lone --")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(args: &str) -> (String, Option<u64>, Option<String>) {
        parse(args).map_or_else(|e| (e, None, None), |o| (o.prompt, o.max_iterations, o.completion_promise))
    }

    fn expect(args: &str, prompt: &str, max: Option<u64>, promise: Option<&str>) {
        assert_eq!(parsed(args), (prompt.to_owned(), max, promise.map(str::to_owned)), "{args:?}");
    }

    #[test]
    fn pains_8_flags_anywhere_in_both_spellings() {
        expect("fix it --max-iterations 3 --completion-promise DONE", "fix it", Some(3), Some("DONE"));
        expect("--max-iterations=3 fix it", "fix it", Some(3), None);
        expect("fix --max-iterations 3 it now", "fix it now", Some(3), None);
        expect("\"fix it\" --completion-promise \"ALL DONE\"", "fix it", None, Some("ALL DONE"));
        expect("fix it --completion-promise='ALL DONE' now", "fix it now", None, Some("ALL DONE"));
        expect("-- run x --max-iterations 3", "run x --max-iterations 3", None, None);
    }

    #[test]
    fn pains_8_no_byte_of_a_prompt_is_code() {
        for prompt in [
            "Don't break what isn't broken",
            "fix issue #12 now; rm -rf $(pwd) `id` | tee > x & (a) {b,c} <promise>X</promise> \\n",
            "line one\n\n  line two\twith tab\r\nthree",
            "emoji 🚀 and “typographic” quotes",
            "a - b -c d-- --",
        ] {
            let (got, max, promise) = parsed(prompt);
            let expected = prompt.strip_suffix(" --").unwrap_or(prompt);
            assert_eq!((got.as_str(), max, promise), (expected, None, None));
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |args: &str| parse(args).err().unwrap_or_default();
        assert!(error("fix --max-iteration 3").contains("did you mean --max-iterations?"));
        assert!(error("fix --max_iterations 3").contains("did you mean --max-iterations?"));
        assert!(error("cargo test --workspace").contains("after a lone --"));
        assert!(error("fix --bogus 3").contains("the flags are --max-iterations"));
        assert_eq!(error("fix --max-iterations"), "--max-iterations needs a value");
        assert_eq!(error("fix --max-iterations --hours 2"), "--max-iterations needs a value");
        assert_eq!(error("fix --max-iterations many"), "--max-iterations needs a whole number from 0 on, not \"many\"");
        assert!(error("fix --verify make --deadline soon").starts_with("--deadline: \"soon\" is no length of time"));
        assert!(error("fix --verify make --deadline 25h").contains("at most 24 hours"));
        let quoted = parse("\"fix it --max-iterations 3\"").map(|o| (o.prompt, o.max_iterations, o.warnings.len()));
        assert_eq!(quoted, Ok(("fix it --max-iterations 3".to_owned(), None, 1)));
    }

    #[test]
    fn s2_7_limits_on_money_and_standstill() {
        let options = parse("fix it --usd 12.5 --stall-rounds=4").map(|o| (o.prompt, o.usd, o.stall_rounds));
        assert_eq!(options, Ok(("fix it".to_owned(), Some(12.5), Some(4))));
        assert_eq!(parse("fix --usd $5").err().as_deref(), Some("--usd needs a number of dollars from 0 on, not \"$5\""));
    }

    #[test]
    fn s3_3_a_deadline_for_the_commands() {
        let options =
            parse("fix it --verify \"cargo test\" --deadline 10m --verify=make").map(|o| (o.prompt, o.verify.len(), o.deadline_ms));
        assert_eq!(options, Ok(("fix it".to_owned(), 2, Some(600_000))));
    }

    #[test]
    fn only_ralphs_own_commands_are_taken() {
        assert_eq!(split("/ralph-loop fix it").and_then(|(n, _)| verb(n)), Some(Verb::Start));
        assert_eq!(split("/cancel-ralph").and_then(|(n, _)| verb(n)), Some(Verb::Cancel));
        assert_eq!(split("/ralph:status ").and_then(|(n, _)| verb(n)), Some(Verb::Status));
        assert_eq!(split("/ralph-loop:ralph-loop x").and_then(|(n, _)| verb(n)), None);
        assert_eq!(split("please /ralph-loop"), None);
        assert_eq!(split("/ralph-loop\nfix\nit"), Some(("ralph-loop", "fix\nit")));
    }

    #[test]
    fn a_verb_after_ralph_is_that_verb() {
        assert_eq!(verb_of("ralph", "cancel"), Some((Verb::Cancel, "")));
        assert_eq!(verb_of("ralph", " status "), Some((Verb::Status, "")));
        assert_eq!(verb_of("ralph", "resume docs"), Some((Verb::Resume, "docs")));
        assert_eq!(verb_of("ralph", "cancel the old jobs in cron"), Some((Verb::Start, "cancel the old jobs in cron")));
        assert_eq!(verb_of("ralph", "start cancel the jobs"), Some((Verb::Start, "cancel the jobs")));
        assert_eq!(verb_of("ralph-loop", "cancel"), Some((Verb::Start, "cancel")));
        assert!(parse("fix it —max-iterations 20").is_err());
        assert!(parse("fix it — and then that").is_ok());
    }

    proptest! {
        /// Text without flags comes through byte for byte.
        #[test]
        fn any_text_survives(text in "[^-\"'`]{0,80}") {
            prop_assert_eq!(parse(&text).map(|o| o.prompt), Ok(text.trim().to_owned()));
        }

        #[test]
        fn never_panics(text in "(\\PC|--max-iterations|=|\"|'|\n| |3){0,30}") {
            let _ = parse(&text);
        }
    }
}
