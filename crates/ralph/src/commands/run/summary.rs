//! The last words of a run: how it ended and what it used, why, where its work is, and what to type next.

use std::path::{Path, PathBuf};

use ralph_core::{
    money::{self, Micros},
    text::clean,
};
use ralph_engine::run::events::{End, RunEvent};

use crate::{
    advice,
    run_wording::{money, subject, used_tokens},
    term::width::DOT,
    ui,
};

/// The part of a run that its summary needs.
#[derive(Default)]
pub(super) struct Last {
    of_loop: String,
    folder: PathBuf,
    /// The loop began with this run.
    is_first: bool,
    /// Files of an iteration were kept.
    has_kept: bool,
    /// Used by this run's own sessions.
    tokens: u64,
    usd_micros: Micros,
}

impl Last {
    pub(super) fn on_event(&mut self, told: &RunEvent<'_>) {
        match told {
            RunEvent::Run { of_loop, folder, iteration, .. } => {
                self.is_first = *iteration <= 1;
                (*of_loop).clone_into(&mut self.of_loop);
                self.folder = PathBuf::from(folder);
            }
            RunEvent::Snapshot { .. } => self.has_kept = true,
            RunEvent::Over { work, .. } => {
                self.tokens = self.tokens.saturating_add(work.tokens.total());
                self.usd_micros = self.usd_micros.saturating_add(work.usd_micros);
            }
            _ => {}
        }
    }

    pub(super) fn words(&self, ended: &RunEvent<'_>) -> (String, Vec<String>) {
        let RunEvent::Ended { how, line, rounds, total_usd, total_tokens, denied, allow, doubtful, .. } = ended else {
            return Default::default();
        };
        let of_run = if self.is_first { "" } else { " in this run" };
        let rounds = format!("{}{of_run}", ralph_core::text::iterations(*rounds));
        let head =
            joined([Some(ending(*how, *doubtful)), Some(rounds), used_tokens(self.tokens), money(money::in_dollars(self.usd_micros))]);
        let head = head + &self.of_the_loop(*total_tokens, *total_usd);
        let why = clean(line);
        let why = why.strip_prefix("Ralph: ").unwrap_or(&why);
        let why = why.strip_prefix(how.as_str()).and_then(|why| why.strip_prefix(": ")).unwrap_or(why);
        let why = if *how == End::Complete { proof(why) } else { why.to_owned() };
        let next = (!why.contains("`ralph run --continue")).then(|| advice::after_run(*how, &self.of_loop, self.has_kept));
        let told =
            matches!(how, End::Capped | End::Stalled | End::Blocked | End::Cancelled | End::Failed).then(|| advice::REPORT.to_owned());
        let tree = Tree::around(&self.folder);
        let from_here = |text: String| tree.as_ref().map_or_else(|| text.clone(), |tree| tree.seen_from_outside(&text));
        let why = Some(why).filter(|why| !why.is_empty()).map(from_here);
        let work = tree.as_ref().map(Tree::has_the_work);
        (head, [why, of_denied(denied, allow), next.map(from_here), told.map(from_here), work].into_iter().flatten().collect())
    }

    /// The cost of the whole loop, if that is more than this run's.
    fn of_the_loop(&self, tokens: u64, usd: f64) -> String {
        if tokens <= self.tokens && money::of_dollars(usd) <= self.usd_micros {
            return String::new();
        }
        format!(" (the loop in all: {})", joined([used_tokens(tokens), money(usd)]))
    }
}

/// Why it is complete, without the words of the headline: `complete after 2 iterations (5 s): its gate holds.`
fn proof(why: &str) -> String {
    let told = why.strip_prefix("complete").and_then(|rest| rest.split_once("): ")).filter(|(head, _)| head.contains(" after "));
    let Some((_, how)) = told else { return why.to_owned() };
    let mut letters = how.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(DOT)
}

/// The loop's own working tree, seen from the project around it.
struct Tree {
    name: String,
    /// `.ralph/worktrees/main`, and the project's folder in it.
    place: String,
}

impl Tree {
    fn around(folder: &Path) -> Option<Self> {
        // From inside, the commands work as they are.
        if std::env::current_dir().is_ok_and(|here| here.starts_with(folder)) {
            return None;
        }
        let words: Vec<String> = folder.iter().map(|word| clean(&word.to_string_lossy())).collect();
        let at = words.windows(3).rposition(|three| three[0] == ".ralph" && three[1] == "worktrees")?;
        Some(Tree { name: words[at + 2].clone(), place: words[at..].join("/") })
    }

    /// Commands, so that they find the loop from outside.
    fn seen_from_outside(&self, text: &str) -> String {
        let there = format!("`ralph -C {} ", self.place);
        text.replace("`ralph ", &there)
            .replace(&format!("{there}run --continue"), &format!("`ralph run --continue --worktree={}", self.name))
    }

    fn has_the_work(&self) -> String {
        let Tree { name, place } = self;
        format!("The work is in {place}, on the branch ralph/{name}: what is committed there `git merge ralph/{name}` brings here.")
    }
}

fn ending(how: End, is_doubtful: bool) -> String {
    match how {
        End::Complete if is_doubtful => ui::warn("! complete, with doubts"),
        End::Complete => ui::good("✓ complete"),
        End::Capped => ui::warn("stopped at a limit"),
        End::Stalled => ui::warn("stopped: no progress"),
        End::Blocked => ui::warn("stopped: it needs you"),
        End::Enough => ui::good("done for now"),
        End::Paused => ui::warn("paused"),
        End::Cancelled => ui::warn("cancelled"),
        End::Parked => ui::warn("parked"),
        End::Interrupted => ui::warn("interrupted"),
        End::Failed => ui::bad("failed"),
    }
}

fn of_denied(rules: &[String], allow: &str) -> Option<String> {
    let rules: Vec<String> = rules.iter().map(|rule| subject(rule)).collect();
    (!rules.is_empty()).then(|| format!("Some calls were denied: {}; {allow}", rules.join(", ")))
}
