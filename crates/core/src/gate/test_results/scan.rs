//! Reads the results of all test programs of the table out of one command's output, both streams at once.
//!
//! The sum decides how many failed; the names count only as far as they agree with it. A program prints its sum before, after or beside (on the
//! other stream) the names, so the two are put together at the end.

use super::{
    Heard, MOST_FAILED, TestResults, bounded,
    frameworks::{After, Count, FRAMEWORKS, Failure, Framework, Is, Line, Name, Shape, Sum},
};

/// The most parts of a name that stand on lines of their own.
const MOST_PARTS: usize = 20;

/// What all programs have told so far.
pub(super) struct Scan {
    tallies: Vec<Tally>,
    /// For each first byte of a line the rows that may care for it, as bits: most lines are nothing to any of them.
    by_first_byte: [u32; 256],
}

/// What was told by one program.
#[derive(Default)]
struct Tally {
    starts: u64,
    sums: u64,
    total: Option<u64>,
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Failures that are not those of a test.
    outside: u64,
    /// Failures of parts of tests.
    parts: u64,
    names: TestResults,
    has_too_many: bool,
}

/// What was read last from one stream.
#[derive(Default)]
pub(super) struct Place {
    /// The last line that was not blank.
    above: String,
    rows: Vec<Row>,
    /// The rows that care for the next line, whatever it is, as bits.
    awake: u32,
}

/// The same, as one program means it.
#[derive(Default, Clone)]
struct Row {
    is_started: bool,
    /// The sum has begun.
    is_in_sum: bool,
    /// Failures are listed now.
    is_listing: bool,
    heading: String,
    /// A name whose last part has not come yet.
    open: Option<Vec<String>>,
}

impl Default for Scan {
    fn default() -> Self {
        let mut by_first_byte = [0; 256];
        for (bit, framework) in FRAMEWORKS.iter().enumerate() {
            for byte in framework.first_bytes() {
                if let Some(rows) = by_first_byte.get_mut(usize::from(byte)) {
                    *rows |= 1_u32 << bit;
                }
            }
        }
        Scan { tallies: FRAMEWORKS.iter().map(|_| Tally::default()).collect(), by_first_byte }
    }
}

impl Framework {
    /// The bytes that a line can begin with which means something here.
    fn first_bytes(&self) -> Vec<u8> {
        let lines = self.start.iter().chain(self.ends).chain(self.heading);
        let lines = lines.chain(self.sections.iter().map(|(line, _)| line)).chain(self.failures.iter().map(|failure| &failure.line));
        let mut all: Vec<u8> = lines.chain(self.sums.iter().map(|sum| &sum.line)).filter_map(|line| line.0.bytes().next()).collect();
        for sum in self.sums.iter().filter(|sum| sum.line.0.is_empty()) {
            match sum.shape {
                Shape::Named(_) => all.extend(self.words.iter().filter_map(|(word, _)| word.bytes().next())),
                // A number, or `no tests ran`.
                _ => all.extend(b"0123456789n"),
            }
        }
        all
    }
}

impl Scan {
    pub(super) fn take(&mut self, line: &str, place: &mut Place) {
        if place.rows.is_empty() {
            place.rows = FRAMEWORKS.iter().map(|framework| Row { is_listing: framework.sections.is_empty(), ..Row::default() }).collect();
        }
        let Place { above, rows, awake } = place;
        let first = line.bytes().next();
        let mut left = *awake | first.and_then(|byte| self.by_first_byte.get(usize::from(byte))).copied().unwrap_or_default();
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let at = bit as usize;
            let (Some(framework), Some(tally), Some(row)) = (FRAMEWORKS.get(at), self.tallies.get_mut(at), rows.get_mut(at)) else {
                continue;
            };
            row.take(framework, tally, line, above);
            let is_awake = row.open.is_some() || (row.is_listing && !framework.sections.is_empty());
            *awake = *awake & !(1 << bit) | u32::from(is_awake) << bit;
        }
        // A line of blanks is empty here: their ends are cut off.
        if first.is_some() {
            above.clear();
            above.push_str(line);
        }
    }

    pub(super) fn finish(self) -> Vec<Heard> {
        self.tallies.into_iter().map(Tally::finish).collect()
    }
}

impl Line {
    /// What comes after its beginning.
    fn rest(self, line: &str) -> Option<&str> {
        let is_indent = !self.0.is_empty() && self.0.trim().is_empty();
        line.strip_prefix(self.0).filter(|rest| !(is_indent && rest.starts_with(' ')) && rest.contains(self.1))
    }
}

impl Row {
    fn take(&mut self, framework: &Framework, tally: &mut Tally, line: &str, above: &str) {
        // Half a name is none.
        if let Some(parts) = self.open.take().filter(|parts| line.starts_with("     ") && parts.len() < MOST_PARTS) {
            return self.add_part(parts, line, tally);
        }
        if line.trim().is_empty() {
            return;
        }
        if framework.start.is_some_and(|start| start.rest(line).is_some()) {
            tally.starts += 1;
            *self = Row { is_started: true, is_listing: framework.sections.is_empty(), ..Row::default() };
            return;
        }
        let is_sum = self.sum(framework, tally, line, above);
        let section = framework.sections.iter().find(|(opens, _)| opens.rest(line).is_some());
        if let Some((_, is_listing)) = section {
            self.is_listing = *is_listing;
        } else if !is_sum {
            self.failure(framework, tally, line, above);
        }
    }

    /// Whether the line is one of a sum.
    fn sum(&mut self, framework: &Framework, tally: &mut Tally, line: &str, above: &str) -> bool {
        let found = framework.sums.iter().find_map(|sum| Some((sum, self.numbers(sum, framework, line, above)?)));
        if let Some((sum, numbers)) = &found {
            tally.add(numbers);
            self.is_listing = framework.sections.is_empty();
            self.is_in_sum = true;
            if !matches!(sum.after, After::Sum) {
                tally.starts += u64::from(!framework.ends.is_empty() && framework.start.is_none());
                tally.sums += u64::from(framework.ends.is_empty());
            }
        }
        if self.is_in_sum && framework.ends.iter().any(|end| end.rest(line).is_some()) {
            tally.sums += 1;
            self.is_in_sum = false;
        }
        found.is_some()
    }

    fn is_after(&self, after: &After, above: &str) -> bool {
        match after {
            After::Any => true,
            After::Line(line) => line.rest(above).is_some(),
            After::Sum => self.is_in_sum,
            After::Start => self.is_started,
        }
    }

    fn numbers(&self, sum: &Sum, framework: &Framework, line: &str, above: &str) -> Option<Numbers> {
        let rest = sum.line.rest(line).filter(|_| self.is_after(&sum.after, above))?;
        Numbers::parse(rest, &sum.shape, framework.words)
    }

    fn failure(&mut self, framework: &Framework, tally: &mut Tally, line: &str, above: &str) {
        if let Some(file) = framework.heading.iter().find_map(|heading| heading.rest(line)) {
            without_brackets(file).trim().clone_into(&mut self.heading);
            return;
        }
        let may_be_here = |failure: &Failure| (self.is_listing || failure.is == Is::Outside) && self.is_after(&failure.after, above);
        let fits = |failure: &&Failure| failure.line.rest(line).is_some() && may_be_here(failure);
        let Some(failure) = framework.failures.iter().find(fits) else { return };
        let Some(rest) = failure.line.rest(line) else { return };
        // In a list each line is a failure; elsewhere the same one may be told twice.
        let is_listed = !framework.sections.is_empty() && failure.is != Is::Outside;
        let name = match failure.name {
            Name::None => return,
            Name::Path => return numbered(rest).map_or((), |name| self.add_part(Vec::new(), name, tally)),
            Name::Numbered => match numbered(rest) {
                Some(name) => name.trim().to_owned(),
                None => return,
            },
            Name::Until(ends) => until(rest, ends).to_owned(),
            Name::Test(ends) => without_place(until(rest, ends)),
            Name::Behind(mark) => without_number(rest.split_once(mark).map_or(rest, |(_, name)| name)).to_owned(),
            Name::UnderHeading => format!("{} > {}", self.heading, rest.trim()),
            Name::Heading => self.heading.clone(),
            Name::Line(end) => until(line, &[end]).to_owned(),
        };
        tally.name(&name, failure.is, is_listed);
    }

    fn add_part(&mut self, mut parts: Vec<String>, text: &str, tally: &mut Tally) {
        let last = text.trim_end().strip_suffix(':');
        parts.push(bounded(last.unwrap_or(text).trim(), ""));
        if last.is_some() {
            let name = parts.join(" > ");
            // A hook counts as a failure beside its tests.
            tally.name(&name, if name.contains("\" hook") { Is::Part } else { Is::Test }, true);
        } else {
            self.open = Some(parts);
        }
    }
}

impl Tally {
    fn add(&mut self, numbers: &Numbers) {
        let mut add = |to: &mut u64, more: u64| match to.checked_add(more) {
            Some(sum) => *to = sum,
            None => self.has_too_many = true,
        };
        if let Some(total) = numbers.total {
            add(self.total.get_or_insert(0), total);
        }
        add(&mut self.passed, numbers.passed);
        add(&mut self.failed, numbers.failed);
        add(&mut self.skipped, numbers.skipped);
        add(&mut self.outside, numbers.outside);
    }

    fn name(&mut self, name: &str, is: Is, is_listed: bool) {
        let failed = &mut self.names.failed;
        let is_new = is_listed || !failed.contains(&bounded(name, ""));
        if !is_new || failed.len() >= MOST_FAILED {
            self.has_too_many |= is_new;
            return;
        }
        self.has_too_many |= self.names.fail(name).is_none();
        match is {
            Is::Test => {}
            Is::Part => self.parts += 1,
            Is::Outside => self.outside += 1,
        }
    }

    fn finish(self) -> Heard {
        if self.sums == 0 && self.starts == 0 {
            return Heard::Nothing;
        }
        if self.starts > self.sums || self.has_too_many {
            return Heard::Confused;
        }
        let (Some(of_tests), Some(failed)) = (self.failed.checked_add(self.skipped), self.failed.checked_add(self.outside)) else {
            return Heard::Confused;
        };
        let parts = self.parts.min(self.failed).saturating_add(self.total.map_or(0, |total| of_tests.saturating_sub(total)));
        let passed = self.total.map_or(self.passed, |total| total.saturating_sub(of_tests));
        let named = self.names.failed.len() as u64;
        // More names than failures: some of them are not what they look like, and no one can tell which.
        let names = if named > failed { TestResults::default() } else { self.names };
        let unnamed = failed.saturating_sub(names.failed.len() as u64);
        Heard::Results(TestResults { passed, ignored: self.skipped, unnamed, outside: self.outside.saturating_add(parts), ..names })
    }
}

/// The numbers of one line.
#[derive(Default)]
struct Numbers {
    total: Option<u64>,
    passed: u64,
    failed: u64,
    skipped: u64,
    outside: u64,
}

impl Numbers {
    fn parse(rest: &str, shape: &Shape, words: &[(&str, Count)]) -> Option<Numbers> {
        let text = without_brackets(rest);
        let text = text.trim_matches([' ', '=', '.', ')']);
        let (text, separator, sign) = match shape {
            Shape::Zero => return Some(Numbers::default()),
            Shape::Numbers(separator) => (behind_run(text), *separator, None),
            Shape::Timed(separator) => {
                let (text, time) = text.rsplit_once(" in ")?;
                let seconds = time.strip_suffix('s')?;
                seconds.bytes().all(|b| b.is_ascii_digit() || b == b'.').then_some((text, *separator, None))?
            }
            Shape::Named(sign) => (text, ", ", Some(*sign)),
        };
        if matches!(text, "no tests ran" | "no tests") {
            return Some(Numbers::default());
        }
        let mut numbers = Numbers::default();
        let mut is_known = false;
        for part in text.split(separator) {
            let (number, word) = match sign {
                None => part.split_once(' ')?,
                Some(sign) => part.rsplit_once(sign).map(|(word, number)| (number, word))?,
            };
            let number = number.trim().parse().ok()?;
            let Some((_, count)) = words.iter().find(|(known, _)| *known == word.trim()) else { continue };
            is_known = true;
            let to = match count {
                Count::Total => numbers.total.get_or_insert(0),
                Count::Passed => &mut numbers.passed,
                Count::Failed => &mut numbers.failed,
                Count::Skipped => &mut numbers.skipped,
                Count::Outside => &mut numbers.outside,
            };
            *to = to.checked_add(number)?;
        }
        is_known.then_some(numbers)
    }
}

/// `0.7s] 4 tests run: 2 passed` has the counts after the colon.
fn behind_run(text: &str) -> &str {
    text.split_once(" run: ").map_or(text, |(_, counts)| counts)
}

/// Without what stands in round brackets.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let outside = |c: &char| {
        depth = if *c == '(' { depth + 1 } else { depth };
        let is_outside = depth == 0;
        depth = if *c == ')' { depth.saturating_sub(1) } else { depth };
        is_outside
    };
    text.chars().filter(outside).collect::<String>().replace(" ,", ",").replace("  |", " |")
}

/// The text up to the first of these that does not stand in square brackets, as parameters of tests do.
fn until<'a>(text: &'a str, ends: &[&str]) -> &'a str {
    let mut open = 0_i64;
    for (at, c) in text.char_indices() {
        if open <= 0 && at > 0 && ends.iter().any(|end| text[at..].starts_with(end)) {
            return text[..at].trim();
        }
        open += i64::from(c == '[') - i64::from(c == ']');
    }
    text.trim()
}

/// `1) name`.
fn numbered(text: &str) -> Option<&str> {
    let (number, name) = text.split_once(") ")?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(name)
}

/// `(2/4) name`.
fn without_number(text: &str) -> &str {
    let numbered = || text.trim_start().strip_prefix('(')?.split_once(") ");
    numbered().map_or(text, |(_, name)| name).trim()
}

/// `a.spec.js:3:1 › name`: lines come and go.
fn without_place(text: &str) -> String {
    let Some((place, name)) = text.split_once(" › ") else { return text.to_owned() };
    let file = place.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    format!("{file} › {name}")
}
