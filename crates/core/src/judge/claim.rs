//! The claim: does the agent itself say, here and now, that it is done, or that it cannot go on?
//!
//! Form decides, not vocabulary, so the rule is the same in every language:
//!
//! 1. The last line of the message, or of one of its text blocks, is the tag alone (heading, bullet, tick, emphasis and a full stop aside), or the tag after a
//!    finished sentence.
//! 2. A tag in code, a comment, a block quote or an HTML or XML element does not count.
//! 3. A tag alone does not count if the line of words above it announces it (a colon, a question mark), or is the line above the tag in the loop's own prompt;
//!    no tag counts in a message with an open box.
//! 4. Nothing else above the tag matters.
//! 5. Any other tag is a mention. The answer to it says which line to write, so a strict reading costs one iteration and never a loop.

mod reading;

use reading::{Page, Spot};
use serde::{Deserialize, Serialize};

use crate::text::normalised;

/// More of a reason than this is not for one line.
const LONGEST_REASON: usize = 300;

/// The statement of the agent's last message about completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Claim {
    /// No promise tag at all.
    None,
    /// The agent claims completion.
    Made,
    /// A tag was seen, and it does not count.
    Refused { why: Refusal },
}

/// Why a promise tag does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum Refusal {
    /// The words between the tags are not the loop's promise.
    OtherWords {
        found: String,
    },
    InCode,
    InElement,
    Quoted,
    /// Other words on its line, which are no finished sentence before it.
    NotAlone,
    /// Words after it.
    NotLast,
    /// The line above it ends in a colon or a question mark.
    Announced,
    /// The prompt's own lines, repeated.
    Echo,
    /// The message has a box that is not ticked.
    OpenBox,
    /// The message says as well that the agent cannot go on.
    BothTags,
    /// In a sentence that negates or postpones it. Only journals of older versions have it: words do not decide any more.
    Negated {
        word: String,
    },
    /// Written by another version.
    #[serde(other)]
    Unclear,
}

impl Refusal {
    /// One clause for people and agents: "the tag …".
    pub fn words(&self) -> String {
        let words = match self {
            Refusal::OtherWords { found } => return format!("the words between the tags were \"{found}\""),
            Refusal::Negated { word } => return format!("the sentence around the tag says \"{word}\""),
            Refusal::InCode => "the tag was in code or in a comment",
            Refusal::InElement => "the tag was in an HTML or XML element",
            Refusal::Quoted => "the tag was in quotes",
            Refusal::NotAlone => "the tag shared its line with other words",
            Refusal::NotLast => "more words followed the tag",
            Refusal::Announced => "the line above the tag ends in a colon or a question mark",
            Refusal::Echo => "the line above the tag is the prompt's own",
            Refusal::OpenBox => "the message has an open box ([ ])",
            Refusal::BothTags => "the message has a blocked tag as well",
            Refusal::Unclear => "the tag was not on a line of its own at the end",
        };
        words.to_owned()
    }
}

/// The text blocks of one message as one text, in which each block still has its own last line.
pub fn join_blocks<'b>(blocks: impl Iterator<Item = &'b str>) -> String {
    let mut text = String::new();
    for (n, block) in blocks.enumerate() {
        if n > 0 {
            text.extend(['\n', reading::BLOCK_END]);
        }
        // An agent that quotes a page break ends no block with it.
        block.split(reading::BLOCK_END).enumerate().for_each(|(n, part)| text.extend([if n == 0 { "" } else { "\n" }, part]));
    }
    text
}

impl Claim {
    /// Looks for the claim of `promise` in `message` (its blocks [`join_blocks`]). `prompt` is the loop's own, to recognise an echo.
    pub fn find(message: &str, promise: &str, prompt: &str) -> Self {
        let wanted = normalised(promise);
        if wanted.is_empty() || !message.contains(reading::PROMISE.close) {
            return Claim::None;
        }
        let page = Page::read(message, &reading::PROMISE);
        let mut claim = Claim::None;
        for spot in &page.spots {
            let found = || normalised(spot.words);
            claim = match misplaced(spot, &page, prompt) {
                Some(why) => Claim::Refused { why },
                None if found() == wanted => return Claim::Made,
                None => Claim::Refused { why: Refusal::OtherWords { found: found().chars().take(80).collect() } },
            };
        }
        claim
    }

    /// The reason why the agent says that it cannot go on: `<blocked>why</blocked>`, alone on the last line.
    pub fn blocked(message: &str) -> Option<String> {
        if !message.contains(reading::BLOCKED.close) {
            return None;
        }
        let has_other = Page::read(message, &reading::BLOCKED).has_other;
        let page = Page::read(message.rsplit(reading::BLOCK_END).next().unwrap_or(message), &reading::BLOCKED);
        let counts =
            |spot: &&Spot<'_>| !has_other && spot.is_last().is_ok() && spot.is_bare() && !spot.is_announced() && spot.hidden.is_none();
        let why = normalised(page.spots.iter().rfind(counts)?.words);
        let plain = why.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let says_nothing = matches!(plain.as_str(), "" | "why" | "reason" | "the reason" | "your reason");
        (!says_nothing).then(|| crate::text::opening(&why, LONGEST_REASON))
    }
}

/// Why the place of a tag disqualifies it, if it does.
fn misplaced(spot: &Spot<'_>, page: &Page<'_>, prompt: &str) -> Option<Refusal> {
    if let Some(hidden) = &spot.hidden {
        return Some(hidden.clone());
    }
    if let Err(why) = spot.is_last() {
        return Some(why);
    }
    if !spot.is_bare() && !spot.is_after_a_sentence() {
        return Some(spot.what_is_before());
    }
    let vetoes = [
        (page.has_other, Refusal::BothTags),
        (page.has_open_box, Refusal::OpenBox),
        (spot.is_bare() && spot.is_announced(), Refusal::Announced),
        (spot.is_echo(prompt), Refusal::Echo),
    ];
    vetoes.into_iter().find_map(|(applies, why)| applies.then_some(why))
}

#[cfg(test)]
mod tests;
