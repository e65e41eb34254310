//! Check boxes in Markdown: which are items, what their steps are, and where they are ticked.
//!
//! A box is `[ ]`, `[x]` or `[X]` right after the marker of a list (`-`, `*`, `+`, `1.`, `1)`), followed by a space and words, as the common
//! flavour of Markdown has it. Dates, versions and references in brackets, links, and boxes in running text, in quotes, in code or in comments
//! are none.
//!
//! A box at the outermost level is an item, and so is one below a plain entry. Whatever is listed below an item, boxes or plain entries, are its
//! steps: an item is done when its own box and all boxes below it are ticked.
//!
//! What a JSON list says in keys can stand in a comment behind the words, which nothing that shows the file shows:
//! `- [ ] T-2: Build it <!-- dependsOn: T-1; priority: 1; model: opus; verify: cargo test -->`. `verify` is the last of them.
//!
//! A label at the beginning of the words is the item's id: `T-12:`, `**US-3**`, `T001`, `1.2`. Others are called `item-N`, the N-th item of the file.

use std::ops::Range;

use crate::{
    gate::list::{Item, Mark},
    text::markdown::{self, Fence},
};

/// Columns from which an entry that belongs to no list is code.
const CODE: usize = 4;

/// Columns by which an entry is indented that belongs to the one above it.
const BELOW: usize = 2;

/// More than that is no label.
const LONGEST_LABEL: usize = 24;

/// The items of a text in order, each with the places where it is ticked.
pub(crate) fn read(text: &str) -> Vec<(Item, Mark)> {
    let mut reader = Reader::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        reader.line(line.trim_end_matches(['\n', '\r']), at);
        at += line.len();
    }
    let number = |(n, found): (usize, Found)| found.item(n + 1);
    reader.found.into_iter().enumerate().map(number).collect()
}

/// One item in the making.
struct Found {
    text: String,
    ticked: bool,
    /// The bytes between the brackets.
    place: Range<usize>,
    steps: Vec<Step>,
}

struct Step {
    text: String,
    /// Whether its box is ticked; `None` for a plain entry.
    tick: Option<bool>,
    /// The bytes between the brackets.
    place: Range<usize>,
}

impl Found {
    fn item(self, place: usize) -> (Item, Mark) {
        let open: Vec<Range<usize>> = self.steps.iter().filter(|s| s.tick == Some(false)).map(|s| s.place.clone()).collect();
        let problem = (self.ticked && !open.is_empty())
            .then(|| format!("it is ticked, and {} of the boxes below it {} not", open.len(), if open.len() == 1 { "is" } else { "are" }));
        let (words, facts) = facts(&self.text);
        let (label, title) = label(words);
        let item = Item {
            id: label.unwrap_or_else(|| format!("item-{place}")),
            title: title.to_owned(),
            boxes: self.steps.iter().map(|s| s.tick).collect(),
            steps: self.steps.into_iter().map(|s| s.text).collect(),
            passes: self.ticked,
            problem,
            ..facts
        };
        let own = (!self.ticked).then_some(self.place);
        (item, Mark::Replace(own.into_iter().chain(open).collect(), "x"))
    }
}

/// An entry of a list that is still open: what is indented more than it belongs to it.
struct Level {
    indent: usize,
    /// It is an item, or below one.
    in_item: bool,
}

#[derive(Default)]
struct Reader {
    found: Vec<Found>,
    levels: Vec<Level>,
    fence: Fence,
    in_comment: bool,
    /// The line before was empty.
    after_gap: bool,
    /// Words of the next line still belong to the entry before.
    goes_on: bool,
}

impl Reader {
    fn line(&mut self, line: &str, at: usize) {
        let after_gap = std::mem::take(&mut self.after_gap);
        let goes_on = std::mem::take(&mut self.goes_on);
        let words = line.trim_start_matches([' ', '\t', '\u{feff}']);
        if self.is_hidden(words) {
            return;
        }
        if words.is_empty() {
            self.after_gap = true;
            return;
        }
        let indent = columns(&line[..line.len() - words.len()]);
        if let Some(entry) = Entry::of(words) {
            self.entry(&entry, indent, at + line.len() - words.len());
        } else if goes_on && !words.starts_with(['#', '>', '|']) {
            self.append(words);
        } else if words.starts_with('#') || after_gap {
            self.levels.retain(|level| indent > level.indent);
        }
    }

    /// Whether a line is part of fenced code or of a comment.
    fn is_hidden(&mut self, words: &str) -> bool {
        if self.in_comment {
            self.in_comment = !words.contains("-->");
            return true;
        }
        if self.fence.takes(words.trim_end()) {
            return true;
        }
        // Only a comment that a line begins with hides the lines after it.
        self.in_comment = words.starts_with("<!--") && !words.contains("-->");
        words.starts_with("<!--")
    }

    fn entry(&mut self, entry: &Entry<'_>, indent: usize, at: usize) {
        self.levels.retain(|level| indent >= level.indent + BELOW);
        if self.levels.is_empty() && indent >= CODE {
            return;
        }
        let below_item = self.levels.iter().any(|level| level.in_item);
        self.levels.push(Level { indent, in_item: below_item || entry.tick.is_some() });
        self.goes_on = true;
        let place = at + entry.inside..at + entry.inside + 1;
        match (below_item.then(|| self.found.last_mut()).flatten(), entry.tick) {
            (Some(item), tick) => item.steps.push(Step { text: entry.text.to_owned(), tick, place }),
            (None, Some(ticked)) => self.found.push(Found { text: entry.text.to_owned(), ticked, place, steps: Vec::new() }),
            (None, None) => self.goes_on = false,
        }
    }

    /// A line that goes on with the entry before it.
    fn append(&mut self, words: &str) {
        self.goes_on = true;
        let Some(item) = self.found.last_mut() else { return };
        let text = item.steps.last_mut().map_or(&mut item.text, |step| &mut step.text);
        text.push(' ');
        text.push_str(words.trim_end());
    }
}

/// One entry of a list.
struct Entry<'a> {
    /// Whether its box is ticked; `None` if it has no box.
    tick: Option<bool>,
    /// Where the byte between the brackets is.
    inside: usize,
    text: &'a str,
}

impl<'a> Entry<'a> {
    fn of(words: &'a str) -> Option<Self> {
        let rest = markdown::entry(words)?;
        let plain = Entry { tick: None, inside: 0, text: rest.trim_end() };
        let box_of = |rest: &'a str| {
            let (head, text) = (rest.get(..3)?, rest.get(3..)?);
            let ticked = match head {
                "[ ]" => false,
                "[x]" | "[X]" => true,
                _ => return None,
            };
            let is_box = text.starts_with([' ', '\t']) && !text.trim().is_empty();
            is_box.then(|| Entry { tick: Some(ticked), inside: words.len() - rest.len() + 1, text: text.trim() })
        };
        Some(box_of(rest).unwrap_or(plain))
    }
}

/// The words of an item, and what the comment behind them says. A comment that says anything else is part of the words.
fn facts(text: &str) -> (&str, Item) {
    let none = (text, Item::default());
    let Some((words, inside)) = text.trim_end().strip_suffix("-->").and_then(|text| text.rsplit_once("<!--")) else { return none };
    let (words, mut rest, mut facts) = (words.trim_end(), inside.trim(), Item::default());
    while !rest.is_empty() {
        let is_verify = rest.strip_prefix("verify").is_some_and(|rest| rest.trim_start().starts_with(':'));
        let (fact, others) = if is_verify { (rest, "") } else { rest.split_once(';').unwrap_or((rest, "")) };
        let (key, value) = fact.split_once(':').map_or((fact.trim(), ""), |(key, value)| (key.trim(), value.trim()));
        let text = || Some(value.to_owned());
        match key {
            "optional" if matches!(value, "" | "true") => facts.optional = true,
            _ if value.is_empty() => return none,
            "dependsOn" | "depends_on" | "blockedBy" => {
                facts.depends_on.extend(value.split(',').map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()));
            }
            "priority" => facts.priority = text(),
            "pool" => facts.pool = text(),
            "model" => facts.model = text(),
            "agent" => facts.agent = text(),
            "verify" => facts.verify.push(value.to_owned()),
            _ => return none,
        }
        rest = others.trim();
    }
    (words, facts)
}

/// How far a line is indented; a tab goes to the next multiple of four.
fn columns(space: &str) -> usize {
    space.chars().fold(0, |n, c| match c {
        '\t' => n / 4 * 4 + 4,
        ' ' => n + 1,
        _ => n,
    })
}

/// The label at the beginning of an item's words, and the words without it.
fn label(text: &str) -> (Option<String>, &str) {
    let none = (None, text);
    let wrapped = ["**", "__", "`"].into_iter().find_map(|mark| text.strip_prefix(mark)?.split_once(mark));
    let (candidate, rest) = match wrapped {
        Some((inside, rest)) => (inside, rest),
        None => text.split_once(char::is_whitespace).unwrap_or((text, "")),
    };
    let bare = candidate.trim_end_matches([':', '.', ')', ',']);
    let is_closed = bare.len() < candidate.len() || rest.trim_start().starts_with(':') || wrapped.is_some();
    if bare.len() > LONGEST_LABEL || !is_label(bare, is_closed) {
        return none;
    }
    let title = rest.trim_start_matches([' ', '\t', ':', '.', ')', '-', '–', '—']);
    if title.is_empty() { none } else { (Some(bare.to_owned()), title) }
}

/// `T-12`, `US_3`, `T001`, `1.2`; with a colon behind it or in bold letters also `US3` and `3`.
fn is_label(word: &str, is_closed: bool) -> bool {
    let digits = word.len() - word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let head = &word[..word.len() - digits];
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return word.split('.').all(all_digits) && (is_closed || word.contains('.'));
    }
    let letters = head.trim_end_matches(['-', '_']);
    let separated = head.len() - letters.len();
    let plain = !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    digits > 0 && separated <= 1 && plain && (is_closed || separated == 1 || letters.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::list::List;
    use proptest::prelude::*;

    /// `id`, ticked or not, title, steps.
    fn items(text: &str) -> Vec<(String, bool, String, Vec<String>)> {
        read(text).into_iter().map(|(i, _)| (i.id, i.passes, i.title, i.steps)).collect()
    }

    fn titles(text: &str) -> Vec<String> {
        items(text).into_iter().map(|(_, _, title, _)| title).collect()
    }

    #[test]
    fn boxes_of_every_kind_of_list() {
        let text = "# Plan\r\n\r\n- [ ] one\r\n* [x] two\r\n+ [X] three\r\n1. [ ] four\r\n12) [x] five\r\n";
        let found: Vec<(String, bool)> = items(text).into_iter().map(|(_, ticked, title, _)| (title, ticked)).collect();
        let expected = [("one", false), ("two", true), ("three", true), ("four", false), ("five", true)];
        assert_eq!(found, expected.map(|(t, p)| (t.to_owned(), p)));
    }

    #[test]
    fn what_only_looks_like_a_box_is_none() {
        let none = [
            "- [2024-01-02] released",
            "- [v1.2] released",
            "- [#123] mended",
            "- [x](https://example.org) a link",
            "- [x]: a definition",
            "- [ ]",
            "- [] nothing",
            "- [  ] two spaces",
            "-[ ] no space",
            "- [x]glued",
            "- say [ ] in the middle",
            "running text with [x] in it",
            "[ ] no list",
            "> - [ ] quoted",
            "```\n- [ ] code\n```",
            "~~~md\n- [ ] code\n```\n- [ ] still code\n~~~",
            "````\n```\n- [ ] code\n```\n````",
            "- text\n  ```\n  - [ ] code in a list\n  ```",
            "<!-- - [ ] comment -->",
            "<!--\n- [ ] comment\n-->",
            "Paragraph\n\n    - [ ] indented code",
            "1234567890. [ ] too many digits",
        ];
        for text in none {
            assert_eq!(titles(text), Vec::<String>::new(), "{text:?}");
        }
        assert_eq!(titles("``` - [ ] inline ```\n- [ ] real"), ["real"]);
        assert_eq!(titles("<!-- done --> \n- [ ] real <!-- why -->"), ["real <!-- why -->"]);
        assert_eq!(titles("```\ncode\n```\n- [ ] after"), ["after"]);
        assert_eq!(titles("say <!-- in text\n- [ ] real"), ["real"], "nothing is hidden by accident");
        assert_eq!(titles("- [ ] one\n - [ ] two"), ["one", "two"], "one space makes no step");
    }

    #[test]
    fn what_is_below_an_item_are_its_steps() {
        let text = "- Part one\n  - [ ] T-1: a\n    - [x] first\n    - second\n      goes on\n\n      - [ ] third\n- [x] **US-3** b\n\twrapped\n- plain\n";
        let steps = ["first", "second goes on", "third"].map(str::to_owned).to_vec();
        assert_eq!(
            items(text),
            [("T-1".to_owned(), false, "a".to_owned(), steps), ("US-3".to_owned(), true, "b wrapped".to_owned(), Vec::new())]
        );
    }

    #[test]
    fn the_boxes_of_steps_are_told_apart() {
        let boxes = read("- [ ] a\n  - [x] b\n  - c\n  - [ ] d\n").remove(0).0.boxes;
        assert_eq!(boxes, [Some(true), None, Some(false)]);
    }

    #[test]
    fn a_ticked_item_with_an_open_box_below_it_is_open() {
        let list = List::parse(b"- [x] a\n  - [ ] b\n  - [x] c\n").ok();
        let open: Vec<_> = list.iter().flat_map(List::open).filter_map(|i| i.problem.clone()).collect();
        assert_eq!(open, ["it is ticked, and 1 of the boxes below it is not"]);
        let done = list.and_then(|l| l.with_done(b"- [x] a\n  - [ ] b\n  - [x] c\n", 0).ok());
        assert_eq!(done.as_deref(), Some(b"- [x] a\n  - [x] b\n  - [x] c\n".as_slice()));
    }

    #[test]
    fn f1_a_comment_says_what_a_json_list_says_in_keys() {
        let text = "- [ ] T-1: later <!-- priority: 2 -->\n- [ ] T-2: first <!--dependsOn: T-3, T-4; priority: 1; optional; model: opus; agent: codex; pool: gpu; verify: a; b: c -->\n\
                    - [x] T-3: done <!-- optional: true -->\n- [ ] T-4: plain <!-- see: there -->\n- [ ] T-5: wrapped\n  <!-- blockedBy: T-4 -->\n";
        let list = List::parse(text.as_bytes()).unwrap();
        let of = |id: &str| &list.items[list.find(id).unwrap()];
        let second = of("T-2");
        assert_eq!((second.title.as_str(), &second.depends_on), ("first", &vec!["T-3".to_owned(), "T-4".to_owned()]));
        assert_eq!(
            (second.priority.as_deref(), second.optional, second.verify.as_slice()),
            (Some("1"), true, ["a; b: c".to_owned()].as_slice())
        );
        assert_eq!((second.model.as_deref(), second.agent.as_deref(), second.pool.as_deref()), (Some("opus"), Some("codex"), Some("gpu")));
        assert!(of("T-3").optional && of("T-4").title == "plain <!-- see: there -->");
        // In order of priority; what waits is not next, and an optional one only where nothing else can be done.
        let ids: Vec<&str> = list.items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids, ["T-2", "T-1", "T-3", "T-4", "T-5"]);
        assert_eq!(list.next().map(|item| item.id.as_str()), Some("T-1"));
        // A mark changes the box of its own item.
        let done = list.with_done(text.as_bytes(), 0).unwrap();
        assert_eq!(String::from_utf8(done).unwrap(), text.replace("[ ] T-2", "[x] T-2"));
        let ring = List::parse(b"- [ ] T-1: a <!-- dependsOn: T-2 -->\n- [ ] T-2: b <!-- dependsOn: T-1 -->\n");
        assert!(ring.unwrap_err().to_string().contains("wait for each other"));
    }

    #[test]
    fn labels_are_ids() {
        let id = |text: &str| items(&format!("- [ ] {text}\n")).remove(0);
        let cases = [
            ("T-12: build it", "T-12", "build it"),
            ("**US-3** build it", "US-3", "build it"),
            ("**US-3: build** it", "item-1", "**US-3: build** it"),
            ("**FEAT_7:** build it", "FEAT_7", "build it"),
            ("`F1` - build it", "F1", "build it"),
            ("T001 [P] build it", "T001", "[P] build it"),
            ("1.2 build it", "1.2", "build it"),
            ("3. build it", "3", "build it"),
            ("SHA256 sums", "item-1", "SHA256 sums"),
            ("3 files move", "item-1", "3 files move"),
            ("Note: build it", "item-1", "Note: build it"),
            ("T-12", "item-1", "T-12"),
        ];
        for (text, expected, title) in cases {
            let found = id(text);
            assert_eq!((found.0.as_str(), found.2.as_str()), (expected, title), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_and_every_mark_is_a_space_between_brackets(text in "([-*+>#`~ \t\n<!x\\[\\]().:a1é]|- \\[ \\] a|\n  - \\[x\\] b|```\n){0,40}") {
            for (item, mark) in read(&text) {
                let Mark::Replace(spans, "x") = mark else { return Err(TestCaseError::fail("another mark")) };
                prop_assert!(!item.id.is_empty());
                for span in spans {
                    prop_assert_eq!(text.get(span.start - 1..span.end + 1), Some("[ ]"));
                }
            }
        }
    }
}
