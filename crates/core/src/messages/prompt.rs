//! The prompt of a run's session: the task, then what this iteration has to know.
//!
//! The task comes first and unchanged, so that the start of every prompt is the same and can be had from the model's cache. What follows is bounded: a
//! session that begins with pages of old output works worse, not better.

use crate::{
    journal::{Note, State},
    judge::{
        brakes::SWINGS_TOLD,
        session_outcome::{Cut, Outcome},
    },
    loops::LoopFile,
    messages::{HOW_TO_SAY_BLOCKED, how_to_claim},
    money::Micros,
    text::{
        clean, count, of_limit, opening,
        time::{Millis, in_words},
    },
};

/// Of the last iteration's output no more than this; the rest is in the logs.
const MAX_LAST: usize = 8_000;

/// From this part of a limit on the agent is told to bring its work to an end.
const LANDING: f64 = 0.8;

/// Facts for an iteration besides its task.
#[derive(Debug, Default)]
pub struct Iteration<'a> {
    /// The item of a list that is open, in full.
    pub item: Option<&'a str>,
    /// The message of the last ruling.
    pub last: Option<&'a str>,
    pub notes: &'a [Note],
    /// How the session before this one ended, in this very iteration.
    pub broke: Option<&'a Outcome>,
    /// A run before this one began the iteration and was interrupted; it begins again.
    pub unfinished: bool,
    pub spent: Spent,
    /// Iterations in a row that changed nothing, and the limit.
    pub stalled: (u64, u64),
    pub swings: u64,
    /// The last iteration used no tool.
    pub idle: bool,
    /// Rules that would have allowed what was denied.
    pub denied: &'a [String],
}

/// How much of the limits is used.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    pub ms: u64,
    pub usd_micros: Micros,
    pub tokens: u64,
}

impl Spent {
    pub fn of(state: &State, now: Millis) -> Self {
        let usd_micros = state.spending.as_ref().map_or(0, |spending| spending.usd_micros);
        Spent { ms: state.spent(now), usd_micros, tokens: state.tokens.total() }
    }
}

impl Iteration<'_> {
    /// The whole prompt; `gated`: gates decide whether the work is done.
    pub fn prompt(&self, file: &LoopFile, gated: bool) -> String {
        let mut parts = vec![file.prompt.clone(), opened(file, gated)];
        let told: [Option<String>; 8] = [
            interrupted(self),
            self.item.map(|item| format!("[ralph] Work on this now, and on nothing else: {item}")),
            self.last.map(|last| bounded(last, MAX_LAST)),
            stuck(self),
            asked(self),
            not_allowed(self),
            landing(file, self.spent),
            notes(self.notes),
        ];
        parts.extend(told.into_iter().flatten());
        parts.join("\n\n")
    }
}

/// Where the iteration stands, and how it ends.
fn opened(file: &LoopFile, gated: bool) -> String {
    let round = of_limit(file.iteration, file.max_iterations());
    let ends = match (&file.completion_promise, gated) {
        (Some(promise), true) => format!("{} It is then measured, and counts only if it holds.", how_to_claim(promise)),
        (Some(promise), false) => how_to_claim(promise),
        (None, true) => "When you stop, the work is measured; what does not hold comes back.".to_owned(),
        (None, false) => "Do one piece of it well, then stop.".to_owned(),
    };
    format!(
        "[ralph] This is iteration {round} of a loop. Each iteration is a new session: what earlier ones did is in the files and in git, not in this conversation. \
         No person answers questions: decide, and write down why. Commit what works before you stop. {ends} {HOW_TO_SAY_BLOCKED}"
    )
}

fn interrupted(round: &Iteration<'_>) -> Option<String> {
    let how = match round.broke {
        Some(Outcome::Cut { by: Cut::Silence }) => "was ended, because nothing was heard of it any more",
        Some(Outcome::Cut { by: Cut::Time }) => "was ended, because it took too long",
        Some(_) => "broke off",
        None if round.unfinished => "was cut off",
        None => return None,
    };
    Some(format!(
        "[ralph] An earlier session of this iteration {how}. Look at `git status` and at the last commits before you begin: its work may be half done."
    ))
}

fn stuck(round: &Iteration<'_>) -> Option<String> {
    if round.swings >= SWINGS_TOLD {
        return Some(
            "[ralph] The files go back and forth between the same two states: one iteration undoes what the one before did. Find out why (`git log -p` shows it), \
             settle it, and write the reason down where the next iteration finds it."
                .to_owned(),
        );
    }
    let (rounds, limit) = round.stalled;
    (rounds > 0 && limit > 0).then(|| {
        let so_many = if rounds == 1 { "The last iteration".to_owned() } else { format!("The last {rounds} iterations") };
        let last = if rounds >= limit { " This is the last try before a person is asked." } else { "" };
        format!(
            "[ralph] {so_many} changed nothing: no commit, no file, no finding. Do not repeat what was tried. Find out first what stands in the way, \
             then take a smaller step.{last}"
        )
    })
}

fn asked(round: &Iteration<'_>) -> Option<String> {
    round.idle.then(|| {
        "[ralph] The last iteration used no tool. No person reads along: if it asked something, decide that yourself and go on.".to_owned()
    })
}

fn not_allowed(round: &Iteration<'_>) -> Option<String> {
    if round.denied.is_empty() {
        return None;
    }
    let rules: Vec<String> = round.denied.iter().take(8).map(|rule| format!("`{}`", opening(rule, 120))).collect();
    Some(format!(
        "[ralph] No one can allow these in this session, so they are denied: {}. Find another way, or do what can be done without.",
        rules.join(", ")
    ))
}

/// Told from four fifths of a limit on.
fn landing(file: &LoopFile, spent: Spent) -> Option<String> {
    let nearly = |spent: u64, max: u64| max > 0 && is_landing(spent, max);
    let mut left = Vec::new();
    if nearly(spent.ms, file.max_millis()) {
        left.push(format!("about {} of {}", in_words(file.max_millis().saturating_sub(spent.ms)), in_words(file.max_millis())));
    }
    if nearly(spent.usd_micros, file.max_usd_micros()) {
        let left_over = file.max_usd_micros().saturating_sub(spent.usd_micros);
        left.push(format!("about {} of {}", crate::money::shown(left_over), crate::money::shown(file.max_usd_micros())));
    }
    if nearly(spent.tokens, file.max_tokens()) {
        left.push(format!("about {} of {}", file.max_tokens().saturating_sub(spent.tokens), count(file.max_tokens(), "token", "tokens")));
    }
    if file.max_iterations() > 1 && file.iteration == file.max_iterations() {
        left.push("no further iteration".to_owned());
    }
    (!left.is_empty()).then(|| {
        format!(
            "[ralph] There is little left: {}. Begin nothing new: finish or undo what is half done, commit, and write down what is open.",
            left.join(", ")
        )
    })
}

#[expect(clippy::cast_precision_loss, reason = "a part of a limit need not be exact")]
fn is_landing(spent: u64, max: u64) -> bool {
    spent as f64 >= max as f64 * LANDING
}

/// A person's notes, as the agent gets them.
pub fn notes(notes: &[Note]) -> Option<String> {
    if notes.is_empty() {
        return None;
    }
    let list: Vec<String> = notes.iter().map(|note| format!("- {}", note.text.trim())).collect();
    Some(format!("[ralph] The person who started this loop adds, and this comes before all else:\n{}", list.join("\n")))
}

/// A text that keeps its beginning and its end.
fn bounded(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let cut = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let from = (text.len() - max / 3..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{}\n… (more in the logs) …\n{}", &text[..cut(max * 2 / 3)], &text[from..])
}

impl Note {
    /// How many characters a note may have: a longer one is no steering.
    pub const MAX_CHARS: usize = 4_000;

    /// How many may wait.
    pub const MAX_WAITING: usize = 20;

    /// A note's text as it is kept; `None`: there is nothing in it.
    pub fn kept(text: &str) -> Option<String> {
        let kept: Vec<String> = text.trim().lines().map(clean).collect();
        let kept = kept.join("\n");
        (!kept.trim().is_empty()).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(keys: &str) -> LoopFile {
        LoopFile::parse(format!("---\niteration: 3\n{keys}\n---\n\nBuild the thing.\n").as_bytes()).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn the_task_comes_first_and_whole() {
        let text = Iteration::default().prompt(&file("max_iterations: 9\ncompletion_promise: DONE"), false);
        assert!(text.starts_with("Build the thing.\n\n[ralph] This is iteration 3 of 9 of a loop."), "{text}");
        assert!(text.contains("<promise>DONE</promise>"), "{text}");
    }

    #[test]
    fn a_round_knows_what_went_before() {
        let notes = [Note { id: 1, text: "Use tabs".to_owned(), told_in: None }];
        let denied = ["Bash(npm test)".to_owned()];
        let iteration = Iteration {
            item: Some("F2: the second"),
            last: Some("[ralph] Gate \"tests\" fails"),
            notes: &notes,
            broke: Some(&Outcome::Cut { by: Cut::Silence }),
            stalled: (2, 4),
            idle: true,
            denied: &denied,
            ..Iteration::default()
        };
        let text = iteration.prompt(&file(""), true);
        for part in [
            "F2: the second",
            "Gate \"tests\" fails",
            "- Use tabs",
            "nothing was heard",
            "The last 2 iterations changed nothing",
            "used no tool",
            "`Bash(npm test)`",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.ends_with("- Use tabs"), "the person has the last word\n{text}");
        assert!(!text.contains("last try"));
        assert!(Iteration { stalled: (4, 4), ..Iteration::default() }.prompt(&file(""), true).contains("last try"));
        assert!(Iteration { swings: 2, stalled: (1, 4), ..Iteration::default() }.prompt(&file(""), true).contains("back and forth"));
    }

    #[test]
    fn near_a_limit_the_agent_is_told_to_land() {
        let told = |keys: &str, spent: Spent| {
            Iteration { spent, ..Iteration::default() }.prompt(&file(keys), false).contains("There is little left")
        };
        let spent = Spent { ms: 0, usd_micros: 0, tokens: 0 };
        assert!(!told("max_usd: 10", Spent { usd_micros: 7_900_000, ..spent }));
        assert!(told("max_usd: 10", Spent { usd_micros: 8_000_000, ..spent }));
        assert!(told("max_hours: 1", Spent { ms: 48 * 60_000, ..spent }));
        assert!(told("max_tokens: 1000", Spent { tokens: 800, ..spent }));
        assert!(told("max_iterations: 3", spent));
        assert!(!told("max_iterations: 4", spent));
    }

    #[test]
    fn what_the_last_round_left_is_bounded() {
        let long = "é".repeat(20_000);
        let text = Iteration { last: Some(&long), ..Iteration::default() }.prompt(&file(""), true);
        assert!(text.len() < 10_000 && text.contains("more in the logs"));
        assert_eq!(Note::kept("  \n "), None);
        assert_eq!(Note::kept("a\u{1b}[31m\nb").as_deref(), Some("a[31m\nb"));
    }

    proptest! {
        #[test]
        fn any_text_can_be_bounded(text in ".{0,300}", max in 3usize..200) {
            prop_assert!(bounded(&text, max).len() <= text.len().max(max + 40));
        }
    }
}
