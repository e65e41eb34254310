//! Commands that a person types in the agent's own prompt: which ones are ralph's, and what their text means.
//!
//! The text arrives byte for byte and never meets a shell. Flags may come before, after and between the prompt's words, as `--x y` or
//! `--x=y`; quotes and backticks protect what they enclose; after a lone `--` everything is prompt. An unknown flag is an error, because
//! a limit that silently becomes prompt text is a loop without a limit.
//!
//! Commands are copied from pages that show them for a shell: a backslash at the end of a line that a flag follows, and a `# comment` after the
//! last flag, are read as a shell reads them. Anywhere else both are text.

use std::ops::Range;

use ralph_core::{
    loops::{self, Flag, Kind, LoopSettings, Setting},
    text::{nearest, normalised, opening, quoted},
};

/// The act that a typed command asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Start,
    Cancel,
    Status,
    Pause,
    Resume,
}

/// The verb of a command name, with or without its slash. Short names are the well-known ones; scoped names are those of ralph's own plugin, so that
/// another plugin's `ralph-loop:ralph-loop` stays that plugin's.
pub(crate) fn verb(name: &str) -> Option<Verb> {
    match name.trim_start_matches('/') {
        "ralph-loop" | "ralph" | "ralph:loop" | "ralph:start" | "ralph:ralph-loop" | "ralph:ralph" => Some(Verb::Start),
        "cancel-ralph" | "ralph-cancel" | "ralph:cancel" | "ralph:cancel-ralph" => Some(Verb::Cancel),
        "ralph-status" | "ralph:status" | "ralph:ralph-status" => Some(Verb::Status),
        "ralph-pause" | "ralph:pause" => Some(Verb::Pause),
        "ralph-resume" | "ralph:resume" => Some(Verb::Resume),
        _ => None,
    }
}

/// The act that a command asks for, given its argument text: `/ralph cancel` is a cancel, not a loop with the prompt "cancel".
pub(crate) fn verb_of<'a>(name: &str, args: &'a str) -> Option<(Verb, &'a str)> {
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
        None if is_ralph && word == "help" && rest.trim().is_empty() => Some((verb, "--help")),
        Some(sub) if is_ralph && (sub == Verb::Start || alone(rest)) => Some((sub, rest)),
        _ => Some((verb, args)),
    }
}

/// Splits a raw prompt that begins with a slash into the command's name and its argument text.
pub(crate) fn split(prompt: &str) -> Option<(&str, &str)> {
    split_at('/', prompt)
}

/// The same for an agent whose commands begin with another mark.
pub(crate) fn split_at(mark: char, prompt: &str) -> Option<(&str, &str)> {
    let text = prompt.trim_start().strip_prefix(mark)?;
    let (name, args) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!name.is_empty()).then_some((name, args))
}

/// The options of a loop, as typed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Options {
    pub prompt: String,
    pub settings: LoopSettings,
    pub name: Option<String>,
    pub mode: Option<String>,
    /// The person wants a loop that nothing else ends.
    pub endless: bool,
    /// The person asks what can be typed here.
    pub help: bool,
    /// Worth telling the person, and no reason to refuse.
    pub warnings: Vec<String>,
}

/// The flags that are no settings of the loop: name, value, help.
const OWN_FLAGS: [(&str, &str, &str); 2] = [
    ("name", "NAME", "A name, for more than one loop in a project"),
    ("mode", "hook", "Work in this session; fresh sessions are `ralph run`, in a terminal"),
];

/// The flags, by the names that people are shown.
fn flags() -> impl Iterator<Item = &'static str> {
    let of_settings = Setting::ALL.iter().filter_map(|setting| setting.flag.as_ref()).flat_map(Flag::current_names);
    of_settings.chain(OWN_FLAGS.map(|(name, ..)| name))
}

/// Reads the argument text of a start or resume command.
pub(crate) fn parse(args: &str) -> Result<Options, String> {
    let mut options = Options::default();
    let mut prompt = String::with_capacity(args.len());
    let mut at = 0;
    // The piece before is complete: a flag with its value, or a text in quotes.
    let mut is_after_a_piece = false;
    let mut promise = None;
    while let Some(word) = next_word(args, at) {
        let text = &args[word.clone()];
        match text.strip_prefix("--") {
            Some("") => {
                let rest = &args[word.end..];
                prompt.push_str(if prompt.trim().is_empty() { rest.trim_start() } else { rest });
                break;
            }
            Some("help") => {
                options.help = true;
                at = word.end;
            }
            Some("endless") => {
                options.endless = true;
                (at, is_after_a_piece) = (word.end, true);
            }
            Some(flag) if is_switch(flag) => {
                options.set(flag, "true")?;
                (at, is_after_a_piece) = (word.end, true);
            }
            Some(flag) if flag.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                let (name, value) = flag_value(args, &word, flag)?;
                options.set(name, unquoted(&args[value.clone()]))?;
                // The white space before a flag goes with it, so that what stays reads as it was typed.
                (at, is_after_a_piece) = (value.end, true);
                if Setting::by_flag(name).is_some_and(|setting| setting.key == "completion_promise") {
                    promise = Some(value);
                }
            }
            _ if is_dashed_flag(text) => {
                return Err(format!("\"{text}\" begins with a long dash: write two hyphens, or put the prompt in quotes"));
            }
            _ if continues_the_line(args, &word) && (is_after_a_piece || is_before_a_piece(args, word.end, &prompt)) => at = word.end,
            _ if is_after_a_piece && !prompt.trim().is_empty() && is_comment_to_the_end(&args[word.start..]) => {
                let comment = args[word.start..].split_whitespace().collect::<Vec<_>>().join(" ");
                options.warnings.push(format!("\"{comment}\" was read as a comment, and is no part of the task"));
                break;
            }
            _ => {
                is_after_a_piece = closing_quote(text) == Some(text.len());
                if is_after_a_piece {
                    options.warn_of_flags_inside(text);
                }
                prompt.push_str(&args[at..word.end]);
                at = word.end;
            }
        }
    }
    if options.help && !prompt.trim().is_empty() {
        return Err(unknown("help"));
    }
    if let Some(promise) = promise {
        is_whole(args, &promise, &prompt)?;
    }
    unquoted(prompt.trim()).clone_into(&mut options.prompt);
    Ok(options)
}

/// A lone backslash at the end of a line, or of the whole text.
fn continues_the_line(args: &str, word: &Range<usize>) -> bool {
    if &args[word.clone()] != "\\" {
        return false;
    }
    let rest = args[word.end..].trim_start_matches([' ', '\t', '\r']);
    rest.is_empty() || rest.starts_with('\n')
}

/// A flag comes next, or the prompt itself in quotes.
fn is_before_a_piece(args: &str, at: usize, prompt: &str) -> bool {
    let Some(next) = next_word(args, at).map(|word| &args[word]) else { return false };
    let is_flag = next.strip_prefix("--").is_some_and(|flag| is_known(flag.split('=').next().unwrap_or(flag)));
    is_flag || (prompt.is_empty() && closing_quote(next).is_some())
}

fn is_known(flag: &str) -> bool {
    flag == "endless" || Setting::by_flag(flag).is_some() || flags().any(|known| known == flag)
}

/// A flag that needs no value.
fn is_switch(flag: &str) -> bool {
    Setting::by_flag(flag).is_some_and(|setting| setting.kind == Kind::YesNo)
}

/// Comments, and nothing else until the end. `#12` is none.
fn is_comment_to_the_end(text: &str) -> bool {
    let is_comment = |line: &str| line.trim_start_matches('#').starts_with(char::is_whitespace) || line.trim_start_matches('#').is_empty();
    text.lines().map(str::trim_start).filter(|line| !line.is_empty()).all(|line| line.starts_with('#') && is_comment(line))
}

/// Words beside an unquoted promise may be its other words, or the prompt. They are the prompt where there is no other one and they do not go on in
/// the promise's capitals; otherwise only the person knows, and a promise that is cut short would end the loop too early.
fn is_whole(args: &str, promise: &Range<usize>, prompt: &str) -> Result<(), String> {
    let first = &args[promise.clone()];
    let line = args[promise.end..].lines().next().unwrap_or_default();
    let mut end = 0;
    while let Some(word) = next_word(line, end) {
        let text = &line[word.clone()];
        if text.starts_with("--") || text.starts_with('#') || text == "\\" || closing_quote(text).is_some() {
            break;
        }
        end = word.end;
    }
    let rest = line[..end].trim();
    let is_shouted = |word: &str| word.chars().any(char::is_uppercase) && !word.chars().any(char::is_lowercase);
    let goes_on = is_shouted(first) && rest.split_whitespace().next().is_some_and(is_shouted);
    // They are the beginning of a prompt that goes on right behind them, unless what follows is a prompt in quotes of its own.
    let after = line[end..].trim();
    let goes_straight_on = if after.is_empty() {
        // On the lines below. A promise in capitals is one word where the next one is not in capitals, too.
        is_shouted(first)
    } else {
        !after.starts_with("--") && closing_quote(after) != Some(after.len())
    };
    let (prompt, words) = (normalised(prompt), normalised(rest));
    let is_prompt = prompt == words || (goes_straight_on && prompt.starts_with(&words));
    if rest.is_empty() || closing_quote(first).is_some() || (is_prompt && !goes_on) {
        return Ok(());
    }
    let whole = opening(&format!("{first} {rest}"), 60);
    Err(format!(
        "a promise of several words needs quotes: --promise \"{whole}\". If \"{first}\" alone is the promise, write \
         --promise \"{first}\", and the words after it belong to the prompt"
    ))
}

/// The help of a command.
pub(crate) fn help(verb: Verb) -> String {
    match verb {
        Verb::Start => start_help(),
        Verb::Cancel => "/cancel-ralph [NAME]: end the loop; its file goes to .ralph/archive.".to_owned(),
        Verb::Status => "/ralph-status: where the loops of this project stand.".to_owned(),
        Verb::Pause => "/ralph-pause [NAME]: let the agent stop for now; /ralph-resume goes on.".to_owned(),
        Verb::Resume => {
            let flags = Setting::ALL.iter().filter_map(|setting| setting.flag.filter(|flag| flag.resume.is_some()));
            let flags = flags.map(|flag| format!(" [--{} {}]", flag.name, flag.value)).collect::<Vec<_>>().concat();
            format!("/ralph-resume [NAME]{flags} [--again]: go on with a loop.")
        }
    }
}

fn start_help() -> String {
    let of_settings = Setting::ALL.iter().filter_map(|setting| {
        let flag = setting.flag?;
        let choices = if let Kind::Choice(names) = setting.kind { format!(": {}", names.join(", ")) } else { String::new() };
        let also = flag.alias.map(|alias| format!(" (also --{alias})")).unwrap_or_default();
        Some((format!("--{} {}", flag.name, flag.value).trim_end().to_owned(), format!("{}{choices}{also}", flag.help)))
    });
    let own = OWN_FLAGS.map(|(name, value, help)| (format!("--{name} {value}"), help.to_owned()));
    let rows = of_settings.chain(own).chain([
        ("--endless".to_owned(), "Start a loop that nothing ends but you: no promise, no gate, no limit".to_owned()),
        ("--".to_owned(), "All that follows is prompt".to_owned()),
    ]);
    let rows = rows.map(|(flag, help)| row(&flag, &help)).collect::<Vec<_>>().concat();
    format!(
        "/ralph-loop PROMPT [options]: work on PROMPT in this session.\n{rows}\
         Also: /ralph-status, /ralph-pause, /ralph-resume, /cancel-ralph.\nMore: `ralph start --help`, in a terminal."
    )
}

/// A flag and its help, in lines for a narrow session; the help goes on below itself.
fn row(flag: &str, help: &str) -> String {
    const WIDEST: usize = 76;
    const MARGIN: usize = 26;
    let mut lines = vec![format!("  {flag}")];
    for word in help.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() < MARGIN => *line = format!("{line:MARGIN$}{word}"),
            Some(line) if line.len() + 1 + word.len() <= WIDEST && line.trim_start() != flag => *line = format!("{line} {word}"),
            _ => lines.push(format!("{:MARGIN$}{word}", "")),
        }
    }
    lines.join("\n") + "\n"
}

impl Options {
    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match (flag, Setting::by_flag(flag)) {
            ("name", _) if !loops::is_name(value) => return Err(format!("--name needs letters, digits, - and _ only, not \"{value}\"")),
            ("name", _) => self.name = Some(value.to_owned()),
            ("mode", _) => self.mode = Some(value.to_owned()),
            (_, Some(setting)) => {
                setting.set(&mut self.settings, value).map_err(|wanted| format!("--{flag} needs {wanted}, not \"{value}\""))?;
            }
            (_, None) => return Err(unknown(flag)),
        }
        Ok(())
    }

    /// The command line that does the same in fresh sessions.
    pub(crate) fn as_run(&self) -> String {
        let mut words = vec!["ralph run".to_owned()];
        words.extend((!self.prompt.is_empty()).then(|| quoted(&self.prompt)));
        words.extend(self.name.as_ref().map(|name| format!("--name {}", quoted(name))));
        for (setting, flag, values) in self.settings.given() {
            let spelled = |value: &String| match setting.kind {
                Kind::YesNo => format!("--{}={value}", flag.name),
                _ => format!("--{} {}", flag.name, quoted(value)),
            };
            words.extend(values.iter().map(spelled));
        }
        words.extend(self.endless.then(|| "--endless".to_owned()));
        words.join(" ")
    }

    fn warn_of_flags_inside(&mut self, text: &str) {
        for flag in flags().filter(|f| text.contains(&format!("--{f}"))) {
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
    name.is_some_and(is_known)
}

/// The length of the quoted piece that `text` begins with. An apostrophe inside a word opens nothing, and only a quote before white space or the end closes.
fn closing_quote(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let closes = |at: &usize| text[at + 1..].chars().next().is_none_or(char::is_whitespace);
    text.match_indices(quote).map(|(at, _)| at).skip(1).find(closes).map(|at| at + 1)
}

/// The name of the flag at `word`, and the place of its value.
fn flag_value<'a>(args: &str, word: &Range<usize>, flag: &'a str) -> Result<(&'a str, Range<usize>), String> {
    let name = flag.split_once('=').map_or(flag, |(name, _)| name);
    if !is_known(name) {
        return Err(unknown(name));
    }
    let value = if name.len() < flag.len() {
        let start = word.start + 2 + name.len() + 1;
        let end = closing_quote(&args[start..]).map_or(word.end, |n| start + n);
        start..end
    } else {
        let next = next_word(args, word.end);
        // The value may be on the next line.
        let next = next.map(|next| if continues_the_line(args, &next) { next_word(args, next.end) } else { Some(next) });
        next.flatten().filter(|v| !args[v.clone()].starts_with("--")).ok_or_else(|| format!("--{name} needs a value"))?
    };
    Ok((name, value))
}

/// A text without the quotes around the whole of it.
fn unquoted(text: &str) -> &str {
    let whole = !text.starts_with('`') && closing_quote(text) == Some(text.len()) && text.len() >= 2;
    if whole { &text[1..text.len() - 1] } else { text }
}

fn unknown(flag: &str) -> String {
    let hint = match nearest(&flag.replace('_', "-"), flags()) {
        Some(near) => format!("did you mean --{near}?"),
        None => format!("the flags are {}.", flags().map(|f| format!("--{f}")).collect::<Vec<_>>().join(", ")),
    };
    format!("unknown flag --{flag}: {hint} If it belongs to the prompt, put the prompt in quotes or after a lone --")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(args: &str) -> (String, Option<u64>, Option<String>) {
        parse(args).map_or_else(|e| (e, None, None), |o| (o.prompt, o.settings.max_iterations, o.settings.completion_promise))
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

    /// Document 002, as it stands there: each command, the prompt, the promise and the limit that it asks for.
    #[test]
    fn t19_the_commands_of_document_002_start_what_they_say() {
        for (args, prompt, promise, max) in DOCUMENT_002 {
            let args = args.strip_prefix("/ralph-loop").unwrap_or(args);
            expect(args, prompt, *max, *promise);
        }
        let warnings = parse(DOCUMENT_002[0].0.strip_prefix("/ralph-loop").unwrap_or_default()).map(|o| o.warnings).unwrap_or_default();
        assert_eq!(warnings, ["\"# 不设置 --max-iterations = 无限循环\" was read as a comment, and is no part of the task"]);
    }

    type Shown = (&'static str, &'static str, Option<&'static str>, Option<u64>);

    const DOCUMENT_002: &[Shown] = &[
        (
            "/ralph-loop \"实现 <功能描述>，完成质检并创建 PR 后输出 <promise>QUALITY_GATE_PASSED</promise>\" \\\n    --completion-promise \"QUALITY_GATE_PASSED\"\n    # 不设置 --max-iterations = 无限循环\n",
            "实现 <功能描述>，完成质检并创建 PR 后输出 <promise>QUALITY_GATE_PASSED</promise>",
            Some("QUALITY_GATE_PASSED"),
            None,
        ),
        (
            "/ralph-loop \"修复 PR #<number> 的 CI 失败，CI 通过并合并后输出 <promise>CI_PASSED</promise>\" \\\n    --completion-promise \"CI_PASSED\"\n    # 不设置 --max-iterations = 无限循环",
            "修复 PR #<number> 的 CI 失败，CI 通过并合并后输出 <promise>CI_PASSED</promise>",
            Some("CI_PASSED"),
            None,
        ),
        ("/ralph-loop \"任务描述\" --completion-promise \"SIGNAL\"", "任务描述", Some("SIGNAL"), None),
        ("/ralph-loop \"任务描述\" --completion-promise \"SIGNAL\" --max-iterations 20", "任务描述", Some("SIGNAL"), Some(20)),
        (
            "/ralph-loop \"实现功能X，完成质检并创建 PR 后输出 <promise>DONE</promise>\" \\\r\n    --completion-promise \"DONE\"",
            "实现功能X，完成质检并创建 PR 后输出 <promise>DONE</promise>",
            Some("DONE"),
            None,
        ),
        ("/ralph-loop \"实现功能X，完成质检并创建 PR\"", "实现功能X，完成质检并创建 PR", None, None),
        (
            "/ralph-loop \"修复 PR #123 的 CI 失败，CI 通过并合并\" \\\n    --completion-promise \"CI_PASSED\"",
            "修复 PR #123 的 CI 失败，CI 通过并合并",
            Some("CI_PASSED"),
            None,
        ),
    ];

    #[test]
    fn t19_what_a_shell_would_drop_is_dropped_only_between_flags() {
        expect("fix it \\\n --max-iterations 3 \\\n --completion-promise \\\n DONE", "fix it", Some(3), Some("DONE"));
        expect("\\\n \"fix it\" \\\n --max-iterations 3 \\", "fix it", Some(3), None);
        expect("fix it --max-iterations 3 # three are enough", "fix it", Some(3), None);
        expect("\"fix it\" # now", "fix it", None, None);
        // Text stays text: in the middle of a prompt, before it, or where it is no comment.
        for text in ["run a \\\n b", "# Task\nFix it\n# Notes\nnone", "fix issue # 12", "fix it\n# and then\nthat", "a\\ b"] {
            expect(text, text, None, None);
        }
        expect("--max-iterations 3\n# Task\nFix it", "# Task\nFix it", Some(3), None);
        expect("fix --max-iterations 3 #12", "fix #12", Some(3), None);
        expect("fix --hours 2\n# Notes\nall of it", "fix\n# Notes\nall of it", None, None);
    }

    #[test]
    fn t19_a_promise_of_several_words_asks_for_quotes() {
        for (args, quoted) in [
            ("Fix it --completion-promise ALL TESTS PASS", "\"ALL TESTS PASS\""),
            ("--completion-promise ALL TESTS PASS", "\"ALL TESTS PASS\""),
            ("--completion-promise ALL TESTS PASS --max-iterations 3 Fix it", "\"ALL TESTS PASS\""),
            ("Fix it --completion-promise=all tests pass", "\"all tests pass\""),
            ("--completion-promise all tests pass --max-iterations 3 \"Fix it\"", "\"all tests pass\""),
            ("Fix it --completion-promise DONE and commit", "\"DONE and commit\""),
            ("--completion-promise ALL TESTS PASS\nFix it", "\"ALL TESTS PASS\""),
            ("--completion-promise all tests pass\nFix it", "\"all tests pass\""),
            ("Fix it --completion-promise DONE and commit\nsoon", "\"DONE and commit\""),
        ] {
            let error = parse(args).err().unwrap_or_default();
            assert!(error.contains(&format!("--promise {quoted}")), "{args}: {error}");
        }
        expect("Fix it --completion-promise DONE", "Fix it", None, Some("DONE"));
        expect("--completion-promise DONE Fix it", "Fix it", None, Some("DONE"));
        expect("Fix it --completion-promise \"DONE\" and commit", "Fix it and commit", None, Some("DONE"));
        expect("Fix it --completion-promise DONE\n\nMore about it.", "Fix it\n\nMore about it.", None, Some("DONE"));
        expect("Fix it --completion-promise DONE --max-iterations 3 please", "Fix it please", Some(3), Some("DONE"));
        expect("--completion-promise DONE \"Fix it\"", "Fix it", None, Some("DONE"));
        expect("--completion-promise DONE Fix it,\nand this", "Fix it,\nand this", None, Some("DONE"));
    }

    #[test]
    fn t19_after_a_lone_double_hyphen_everything_is_prompt() {
        expect("fix -- run x", "fix run x", None, None);
        expect("--max-iterations 3 -- run --hours 2", "run --hours 2", Some(3), None);
        expect("--", "", None, None);
        expect("fix it --\n--help", "fix it\n--help", None, None);
    }

    #[test]
    fn t23_the_command_line_for_fresh_sessions_is_the_very_one_to_type() {
        let run = |args: &str| parse(args).map(|o| o.as_run()).unwrap_or_default();
        assert_eq!(run("Fix it --mode fresh"), "ralph run 'Fix it'");
        assert_eq!(
            run(
                "Don't stop --mode fresh --completion-promise \"ALL DONE\" --max-iterations 5 --hours 1.5 --verify \"cargo test\" --deadline 10m"
            ),
            "ralph run 'Don'\\''t stop' --max-iterations 5 --promise 'ALL DONE' --verify 'cargo test' --deadline 10m --hours 1.5"
        );
    }

    #[test]
    fn t23_help_is_asked_for_alone() {
        let asks = |args: &str| parse(args).is_ok_and(|o| o.help);
        assert!(asks("--help") && asks(" --max-iterations 3 --help "));
        assert!(!asks("-- --help") && !asks("\"--help\""));
        assert!(parse("add a --help flag").err().unwrap_or_default().contains("put the prompt in quotes"));
        assert_eq!(verb_of("ralph", "help"), Some((Verb::Start, "--help")));
        // u1: it fits a narrow session, and what goes on is below its own text.
        for line in help(Verb::Start).lines() {
            assert!(line.len() <= 76, "{line:?}");
            assert!(!line.starts_with(' ') || line.starts_with("  --") || line.starts_with(&" ".repeat(26)), "{line:?}");
        }
        for flag in flags() {
            assert!(help(Verb::Start).contains(&format!("--{flag}")), "{flag}");
        }
        for preset in ["verify", "features", "pre-pr", "after-pr"] {
            assert!(help(Verb::Start).contains(preset));
        }
    }

    /// The limits of the command line are those of the session's own commands.
    #[test]
    fn every_limit_can_be_typed() {
        let limits = "--max-iterations 1 --hours 2.5 --usd 3 --tokens 4 --idle-iterations 5 --stall-iterations 6";
        let LoopSettings { max_iterations, max_hours, max_usd, max_tokens, idle_rounds, stall_rounds, .. } =
            parse(limits).map(|o| o.settings).unwrap_or_default();
        assert_eq!((max_iterations, max_hours, max_usd), (Some(1), Some(2.5), Some(3.0)));
        assert_eq!((max_tokens, idle_rounds, stall_rounds), (Some(4), Some(5), Some(6)));
        assert_eq!(parse(&format!("fix {limits}")).map(|o| o.as_run()), Ok(format!("ralph run fix {limits}")));
        assert!(limits.split(' ').filter(|word| word.starts_with("--")).all(|flag| help(Verb::Resume).contains(flag)));
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
        let no_time = "--deadline needs a length of time such as 90s, 10m or 2h, at most 24 hours, not \"soon\"";
        assert_eq!(error("fix --verify make --deadline soon"), no_time);
        assert!(error("fix --verify make --deadline 25h").contains("at most 24 hours"));
        let quoted = parse("\"fix it --max-iterations 3\"").map(|o| (o.prompt, o.settings.max_iterations, o.warnings.len()));
        assert_eq!(quoted, Ok(("fix it --max-iterations 3".to_owned(), None, 1)));
    }

    #[test]
    fn s2_7_limits_on_money_and_standstill() {
        let options = parse("fix it --usd 12.5 --stall-iterations=4").map(|o| (o.prompt, o.settings.max_usd, o.settings.stall_rounds));
        assert_eq!(options, Ok(("fix it".to_owned(), Some(12.5), Some(4))));
        let by_old_names = parse("fix it --idle-rounds 5 --stall-rounds=4").map(|o| (o.settings.idle_rounds, o.settings.stall_rounds));
        assert_eq!(by_old_names, Ok((Some(5), Some(4))));
        assert_eq!(parse("fix --usd $5").err().as_deref(), Some("--usd needs a number of dollars from 0 on, not \"$5\""));
    }

    #[test]
    fn s3_3_a_deadline_for_the_commands() {
        let options = parse("fix it --verify \"cargo test\" --deadline 10m --verify=make")
            .map(|o| (o.prompt, o.settings.verify.len(), o.settings.deadline_ms));
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
