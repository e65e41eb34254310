//! The useful part of a command's output, collected while it comes: 100 MB cost no more memory than a page.
//!
//! To fix a failing command, an agent needs the first errors, then how it ended, then how it began; all of it in a few hundred
//! characters. Colours, control characters and redrawn lines are gone (`plain_lines.rs`); `errors.rs` knows which lines are errors.

mod errors;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::errors::{Rank, habit, is_noise, is_place_below, is_telling};
use crate::text::{PlainLines, is_unseen};

/// A line is cut after so many characters, however much may be shown.
const LONGEST_LINE: usize = 4000;

/// A shorter part of a line says nothing.
const SHORTEST_CUT: usize = 40;

/// From this limit on the start is worth some room even if there are errors to show.
const ROOMY: usize = 1000;

const CUT: &str = "…";

/// Where a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    Out,
    Err,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Stream::Out => "standard output",
            Stream::Err => "standard error",
        }
    }
}

/// Collects what is useful.
pub struct Useful {
    limit: usize,
    out: Side,
    err: Side,
}

/// One stream.
struct Side {
    lines: PlainLines,
    kept: Kept,
}

impl Useful {
    /// `limit`: how many characters will be shown at most.
    pub fn new(limit: usize) -> Self {
        let side = || Side { lines: PlainLines::new(limit.min(LONGEST_LINE)), kept: Kept { limit, ..Kept::default() } };
        Useful { limit, out: side(), err: side() }
    }

    pub fn feed(&mut self, stream: Stream, bytes: &[u8]) {
        let Side { lines, kept } = if stream == Stream::Out { &mut self.out } else { &mut self.err };
        lines.feed(bytes, &mut |line| kept.take(line));
    }

    /// The text for the agent: everything if it fits, else the errors, the end and the start, with `…` where something is left out.
    pub fn finish(mut self) -> String {
        for Side { lines, kept } in [&mut self.out, &mut self.err] {
            lines.finish(&mut |line| kept.take(line));
        }
        let (out, err) = (&self.out.kept, &self.err.kept);
        let mut text =
            whole(out, err).filter(|text| text.chars().count() <= self.limit).unwrap_or_else(|| Excerpt::new(self.limit, out, err).text());
        text.retain(|c| !is_unseen(c));
        text
    }
}

fn whole(out: &Kept, err: &Kept) -> Option<String> {
    let (out, err) = (out.whole()?, err.whole()?);
    Some(match (out.is_empty(), err.is_empty()) {
        (_, true) => out,
        (true, false) => err,
        (false, false) => format!("{}:\n{out}\n{}:\n{err}", Stream::Out.name(), Stream::Err.name()),
    })
}

/// A line that is not blank.
#[derive(Debug, Clone)]
struct Line {
    number: u64,
    text: String,
}

/// An error: its line, and its neighbours that belong to it.
struct Group {
    lines: Vec<Line>,
    /// Which of them is the error.
    main: usize,
}

/// The parts of one stream that are kept: never more than a few times the limit.
#[derive(Default)]
struct Kept {
    limit: usize,
    /// Lines that are not blank, so far.
    count: u64,
    /// The first lines; here, blank ones have no number of their own.
    head: Vec<Line>,
    head_size: usize,
    is_head_full: bool,
    /// The last lines after those, without blank ones.
    tail: VecDeque<Line>,
    tail_size: usize,
    heading: Option<Line>,
    why: Groups,
    which: Groups,
    /// The error whose neighbours come now: how many more of them are wanted, and whether none was seen yet.
    below: Option<(Rank, usize, bool)>,
    /// The error that lines further below may tell more about.
    further: Option<Further>,
}

/// What is still looked for below an error.
#[derive(Clone, Copy)]
struct Further {
    rank: Rank,
    /// So many more lines are looked at, and so many are taken.
    looks: usize,
    lines: usize,
    has_place: bool,
}

/// How far below an error its comparison may stand, and how many lines of it are kept.
const FURTHER: usize = 30;
const FURTHER_LINES: usize = 6;

#[derive(Default)]
struct Groups {
    list: Vec<Group>,
    size: usize,
}

fn size(text: &str) -> usize {
    text.chars().count() + 1
}

fn is_indented(text: &str) -> bool {
    text.starts_with(' ')
}

impl Kept {
    fn take(&mut self, text: &str) {
        if text.trim_start().is_empty() {
            if !self.head.is_empty() {
                self.keep_in_head(text);
            }
            return;
        }
        if is_noise(text) {
            return;
        }
        self.take_error(text);
        if !self.keep_in_head(text) {
            self.tail_size += size(text);
            self.tail.push_back(self.line(text));
            while self.tail.front().is_some_and(|line| self.tail_size - size(&line.text) > self.limit) {
                self.tail_size -= self.tail.pop_front().map_or(0, |line| size(&line.text));
            }
        }
        self.count += 1;
    }

    fn line(&self, text: &str) -> Line {
        Line { number: self.count, text: text.to_owned() }
    }

    fn keep_in_head(&mut self, text: &str) -> bool {
        self.is_head_full |= self.head_size + size(text) > self.limit.saturating_add(1);
        if !self.is_head_full {
            self.head_size += size(text);
            self.head.push(self.line(text));
        }
        !self.is_head_full
    }

    fn groups(&mut self, rank: Rank) -> &mut Groups {
        if rank == Rank::Why { &mut self.why } else { &mut self.which }
    }

    fn take_error(&mut self, text: &str) {
        let line = self.line(text);
        let Some(habit) = habit(text) else {
            self.take_neighbour(line);
            if !is_indented(text) {
                self.heading = Some(self.line(text));
            }
            return;
        };
        (self.below, self.further) = (None, None);
        let heading = self.heading.clone().filter(|_| habit.has_heading);
        let limit = self.limit;
        let groups = self.groups(habit.rank);
        let is_known = groups.list.iter().any(|group| group.lines.get(group.main).is_some_and(|main| main.text == text));
        if groups.size > limit || is_known {
            return;
        }
        let lines: Vec<Line> = heading.into_iter().chain([line]).collect();
        groups.size += lines.iter().map(|line| size(&line.text)).sum::<usize>();
        groups.list.push(Group { main: lines.len() - 1, lines });
        self.below = Some((habit.rank, habit.below, true));
        self.further = Some(Further { rank: habit.rank, looks: FURTHER, lines: FURTHER_LINES, has_place: false });
    }

    /// The line below an error may be its explanation; further ones only if they are indented.
    fn take_neighbour(&mut self, line: Line) {
        let Some((rank, more @ 1.., is_first)) = self.below.take() else { return self.take_further(line) };
        let is_note = line.text.starts_with("note: run with");
        if is_note || !(is_first || is_indented(&line.text)) {
            return self.take_further(line);
        }
        self.add_to_group(rank, line);
        self.below = Some((rank, more - 1, false));
    }

    /// The two sides of a comparison, and its place, stand some lines below.
    fn take_further(&mut self, line: Line) {
        let Some(Further { rank, looks: looks @ 1.., lines: lines @ 1.., has_place }) = self.further.take() else { return };
        let is_place = !has_place && is_place_below(&line.text);
        let is_taken = (is_place || is_telling(&line.text)) && self.groups(rank).size <= self.limit;
        self.further = Some(Further { rank, looks: looks - 1, lines: lines - usize::from(is_taken), has_place: has_place || is_place });
        if is_taken {
            self.add_to_group(rank, line);
        }
    }

    fn add_to_group(&mut self, rank: Rank, line: Line) {
        let groups = self.groups(rank);
        groups.size += size(&line.text);
        if let Some(group) = groups.list.last_mut() {
            group.lines.push(line);
        }
    }

    /// All of it, if nothing had to go.
    fn whole(&self) -> Option<String> {
        let lines: Vec<&str> = self.head.iter().map(|line| line.text.as_str()).collect();
        self.tail.is_empty().then(|| lines.join("\n").trim_end().to_owned())
    }

    fn lines(&self) -> impl DoubleEndedIterator<Item = &Line> {
        self.head.iter().filter(|line| !line.text.is_empty()).chain(&self.tail)
    }
}

/// Chooses lines until there is no more room. The cost of a line includes every label and mark that may come with it, so the text never gets
/// longer than the limit.
struct Excerpt<'a> {
    limit: usize,
    spent: usize,
    sides: [(Stream, &'a Kept); 2],
    errors: BTreeMap<(Stream, u64), String>,
    /// The errors' own words: they are not repeated where the same line comes again.
    said: BTreeSet<&'a str>,
    shown: BTreeMap<(Stream, u64), String>,
}

const ERRORS_LABEL: &str = "first errors:";
/// The most that a stream's label and its marks cost: `standard output, start and end:`, and three times `…`.
const SIDE_COST: usize = 38;
/// The cost of one `…` between lines.
const MARK_COST: usize = 2;

#[derive(Clone, Copy, PartialEq)]
enum From {
    Start,
    End,
}

impl<'a> Excerpt<'a> {
    fn new(limit: usize, out: &'a Kept, err: &'a Kept) -> Self {
        Excerpt {
            limit,
            spent: 0,
            sides: [(Stream::Out, out), (Stream::Err, err)],
            errors: BTreeMap::new(),
            said: BTreeSet::new(),
            shown: BTreeMap::new(),
        }
    }

    fn text(mut self) -> String {
        self.add_errors(Rank::Why, self.limit / 20 * 11);
        self.add_errors(Rank::Which, self.limit / 20 * 14);
        let is_start_worth_it = self.errors.is_empty() || self.limit >= ROOMY;
        self.add_sides(From::End, if is_start_worth_it { self.limit / 4 * 3 } else { self.limit });
        self.add_sides(From::Start, self.limit);
        self.add_sides(From::End, self.limit);
        self.add_errors(Rank::Why, self.limit);
        self.add_errors(Rank::Which, self.limit);
        let text = self.rendered();
        // What marks cost is an estimate: errors whose neighbours lie among each other have more of them.
        if text.is_empty() { self.one_line() } else { cut(&text, self.limit) }
    }

    /// Errors of both streams in turn.
    fn add_errors(&mut self, rank: Rank, until: usize) {
        let of = |(stream, kept): (Stream, &'a Kept)| {
            let groups = if rank == Rank::Why { &kept.why } else { &kept.which };
            groups.list.iter().enumerate().map(move |(at, group)| (at, stream, group))
        };
        let mut groups: Vec<_> = self.sides.into_iter().flat_map(of).collect();
        groups.sort_by_key(|(at, stream, _)| (*at, *stream));
        for (_, stream, group) in groups {
            self.add_group(stream, group, until);
        }
    }

    fn add_group(&mut self, stream: Stream, group: &'a Group, until: usize) {
        let mut first_cost = MARK_COST + if self.errors.is_empty() { size(ERRORS_LABEL) } else { 0 };
        for (at, line) in group.lines.iter().enumerate() {
            let key = (stream, line.number);
            let is_again = at == group.main && self.said.contains(line.text.as_str());
            if self.errors.contains_key(&key) {
                continue;
            }
            let Some(text) = self.fitting(&line.text, first_cost, until, at == group.main).filter(|_| !is_again) else { return };
            self.spent += first_cost + size(&text);
            first_cost = 0;
            self.errors.insert(key, text);
            if at == group.main {
                self.said.insert(&line.text);
            }
        }
    }

    fn add_sides(&mut self, from: From, until: usize) {
        let [out, err] = self.sides;
        let half = self.spent + until.saturating_sub(self.spent) / 2;
        self.add_side(err, from, half);
        self.add_side(out, from, until);
        self.add_side(err, from, until);
    }

    fn add_side(&mut self, (stream, kept): (Stream, &'a Kept), from: From, until: usize) {
        let lines: Box<dyn Iterator<Item = &'a Line>> =
            if from == From::Start { Box::new(kept.lines()) } else { Box::new(kept.lines().rev()) };
        let mut mark_cost = 0;
        for line in lines {
            let key = (stream, line.number);
            if self.shown.contains_key(&key) {
                continue;
            }
            if self.errors.contains_key(&key) || self.said.contains(line.text.as_str()) {
                mark_cost = MARK_COST;
                continue;
            }
            let is_empty = !self.shown.keys().any(|(s, _)| *s == stream);
            let cost = mark_cost + if is_empty { SIDE_COST } else { 0 };
            let Some(text) = self.fitting(&line.text, cost, until, is_empty) else { return };
            self.spent += cost + size(&text);
            mark_cost = 0;
            self.shown.insert(key, text);
        }
    }

    /// The line, as much of it as may be shown; a part of it only if `may_cut`.
    fn fitting(&self, text: &str, cost: usize, until: usize, may_cut: bool) -> Option<String> {
        let room = until.checked_sub(self.spent + cost + 1)?;
        let wanted = cut(text, self.limit / 2);
        if wanted.chars().count() <= room {
            Some(wanted)
        } else if may_cut && room >= SHORTEST_CUT {
            Some(cut(text, room))
        } else {
            None
        }
    }

    fn rendered(&self) -> String {
        let mut lines: Vec<&str> = Vec::new();
        if !self.errors.is_empty() {
            lines.push(ERRORS_LABEL);
        }
        let mut before = None;
        for (key, text) in &self.errors {
            if before.is_some_and(|b| !follows(b, *key)) {
                lines.push(CUT);
            }
            lines.push(text);
            before = Some(*key);
        }
        for (stream, kept) in self.sides {
            self.render_side(stream, kept, &mut lines);
        }
        lines.join("\n")
    }

    fn render_side<'s>(&'s self, stream: Stream, kept: &Kept, lines: &mut Vec<&'s str>) {
        let mine = || self.shown.range((stream, 0)..=(stream, u64::MAX));
        let (Some(((_, first), _)), Some(((_, last), _))) = (mine().next(), mine().next_back()) else { return };
        let last_of_all = kept.count.saturating_sub(1);
        lines.push(match (*first == 0, *last == last_of_all, stream) {
            (true, true, Stream::Out) => "standard output, start and end:",
            (true, true, Stream::Err) => "standard error, start and end:",
            (true, false, Stream::Out) => "standard output, start:",
            (true, false, Stream::Err) => "standard error, start:",
            (false, _, Stream::Out) => "standard output, end:",
            (false, _, Stream::Err) => "standard error, end:",
        });
        let mut before = None;
        for (key, text) in mine() {
            if before.map_or(key.1 > 0, |b| !follows(b, *key)) {
                lines.push(CUT);
            }
            lines.push(text);
            before = Some(*key);
        }
        if *last < last_of_all {
            lines.push(CUT);
        }
    }

    /// Where there is room for no label: the first error, or the last line.
    fn one_line(&self) -> String {
        let error = |(_, kept): (Stream, &'a Kept)| kept.why.list.first().or(kept.which.list.first()).and_then(|g| g.lines.get(g.main));
        let last = |(_, kept): (Stream, &'a Kept)| kept.lines().next_back();
        let sides = || self.sides.into_iter().rev();
        let line = sides().find_map(error).or_else(|| sides().find_map(last));
        line.map(|line| cut(line.text.trim_start(), self.limit)).unwrap_or_default()
    }
}

fn follows(before: (Stream, u64), key: (Stream, u64)) -> bool {
    before.0 == key.0 && before.1.saturating_add(1) == key.1
}

/// The first `max` characters; the last of them is `…` if there were more.
fn cut(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    if max == 0 { kept } else { kept + CUT }
}
