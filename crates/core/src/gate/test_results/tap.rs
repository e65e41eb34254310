//! The Test Anything Protocol, versions 12 to 14: a plan, numbered results, and sub-tests indented by four blanks above the result that sums
//! them up.
//!
//! Every list of results needs its plan, and its numbers must go up one by one. Several documents may come one after the other. A failure
//! within sub-tests is named `outer > inner`, and the outer result is not counted again.

use super::{Heard, TestResults};

/// Sub-tests deeper than this are not followed.
const DEEPEST: usize = 20;

#[derive(Default)]
pub(super) struct Tap {
    total: TestResults,
    /// There was something that only TAP has.
    is_heard: bool,
    is_confused: bool,
    /// The open lists: the outermost, then its sub-tests.
    levels: Vec<Level>,
    /// Details of the last result are being told, indented so far.
    details: Option<usize>,
    /// The last line was a result.
    is_after_result: bool,
}

/// The results on one level, so far.
#[derive(Default)]
struct Level {
    plan: Option<u64>,
    count: u64,
    results: TestResults,
}

impl Level {
    fn is_complete(&self) -> bool {
        self.plan == Some(self.count)
    }
}

/// `not ok 2 - name # TODO later`.
#[derive(Debug, PartialEq)]
struct Outcome {
    is_ok: bool,
    number: u64,
    name: String,
    directive: Option<Directive>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Directive {
    Skip,
    Todo,
}

impl Tap {
    pub(super) fn take(&mut self, line: &str) {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let Some(depth) = self.details {
            if indent == depth && text == "..." {
                self.details = None;
            }
        } else if text == "---" && self.is_after_result {
            self.details = Some(indent);
        } else if indent.is_multiple_of(4) {
            self.is_after_result = false;
            let understood = self.statement(text, indent / 4);
            self.is_confused |= understood.is_none();
        }
    }

    /// `None`: it cannot be believed.
    fn statement(&mut self, text: &str, depth: usize) -> Option<()> {
        if depth == 0 && matches!(text, "TAP version 12" | "TAP version 13" | "TAP version 14") {
            self.is_heard = true;
            self.end_document()
        } else if depth == 0 && text.starts_with("Bail out!") {
            (!self.is_heard).then_some(())
        } else if let Some(plan) = plan(text) {
            self.plan(plan, depth)
        } else if let Some(outcome) = Outcome::parse(text) {
            self.is_heard |= depth == 0;
            self.is_after_result = true;
            // Sub-tests below their sum, in braces: a form of one program that is not followed here.
            (!text.ends_with(" {")).then(|| self.outcome(&outcome, depth)).flatten()
        } else {
            Some(())
        }
    }

    fn level(&mut self, depth: usize) -> Option<&mut Level> {
        if self.levels.len() <= depth && depth <= DEEPEST {
            self.levels.resize_with(depth + 1, Level::default);
        }
        self.levels.get_mut(depth)
    }

    fn plan(&mut self, plan: u64, depth: usize) -> Option<()> {
        if depth == 0 && self.levels.first().is_some_and(Level::is_complete) {
            self.end_document()?;
        }
        // Numbers that look like a plan are not yet TAP; results make them so.
        self.level(depth)?.plan.replace(plan).is_none().then_some(())
    }

    fn outcome(&mut self, outcome: &Outcome, depth: usize) -> Option<()> {
        if depth == 0 && outcome.number == 1 && self.levels.first().is_some_and(Level::is_complete) {
            self.end_document()?;
        }
        self.level(depth)?;
        let within = self.levels.split_off(depth + 1);
        let level = self.levels.get_mut(depth)?;
        level.count += 1;
        if level.count != outcome.number || within.len() > 1 {
            return None;
        }
        let is_excused = outcome.directive.is_some();
        match within.into_iter().next() {
            Some(inner) if !inner.is_complete() => return None,
            Some(inner) if inner.count > 0 => level.add_inner(outcome, &inner.results)?,
            _ if outcome.directive == Some(Directive::Skip) || (is_excused && !outcome.is_ok) => level.results.ignored += 1,
            _ if outcome.is_ok => level.results.passed += 1,
            _ => level.results.fail(&outcome.name)?,
        }
        Some(())
    }

    fn end_document(&mut self) -> Option<()> {
        let mut levels = std::mem::take(&mut self.levels).into_iter();
        let Some(outermost) = levels.next() else { return Some(()) };
        if !outermost.is_complete() || levels.next().is_some() {
            return None;
        }
        self.total.add(&outermost.results)
    }

    pub(super) fn finish(mut self) -> Heard {
        if !self.is_heard {
            return Heard::Nothing;
        }
        let is_planned = !self.levels.is_empty();
        let ended = self.end_document();
        if self.is_confused || self.details.is_some() || !is_planned || ended.is_none() {
            Heard::Confused
        } else {
            Heard::Results(self.total)
        }
    }
}

impl Level {
    /// Sub-tests count instead of the result that sums them up, if the two agree.
    fn add_inner(&mut self, outer: &Outcome, inner: &TestResults) -> Option<()> {
        self.results.passed = self.results.passed.checked_add(inner.passed)?;
        self.results.ignored = self.results.ignored.checked_add(inner.ignored)?;
        let failed_within = inner.failed.len();
        if outer.directive.is_some() {
            self.results.ignored = self.results.ignored.checked_add(u64::try_from(failed_within).ok()?)?;
            return Some(());
        }
        match (outer.is_ok, failed_within) {
            (true, 0) => Some(()),
            (true, _) => None,
            (false, 0) => self.results.fail(&outer.name),
            (false, _) => inner.failed.iter().try_for_each(|name| self.results.fail(&format!("{} > {name}", outer.name))),
        }
    }
}

/// `1..3`, and perhaps a comment.
fn plan(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("1..")?;
    let (number, comment) = rest.split_once(' ').unwrap_or((rest, "#"));
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (is_number && comment.trim_start().starts_with('#')).then(|| number.parse().ok()).flatten()
}

impl Outcome {
    /// The protocol allows results without a number; prose has them, too, so here they need one.
    fn parse(text: &str) -> Option<Outcome> {
        let (is_ok, rest) = match text.strip_prefix("not ok ") {
            Some(rest) => (false, rest),
            None => (true, text.strip_prefix("ok ")?),
        };
        let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let number = Some(number).filter(|n| n.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
        let (name, comment) = split_comment(rest.trim_start().trim_start_matches("- "));
        let name = if name.is_empty() { format!("test {number}") } else { name };
        Some(Outcome { is_ok, number, name, directive: directive(comment) })
    }
}

/// The name, and the comment after ` #`: a directive, or how long it took.
fn split_comment(text: &str) -> (String, &str) {
    let at = text.char_indices().find(|(at, c)| *c == '#' && (*at == 0 || text[..*at].ends_with(' ')));
    let (name, comment) = at.map_or((text, ""), |(at, _)| (&text[..at], &text[at + 1..]));
    if directive(comment).is_some() || comment.trim_start().starts_with("time=") || name.is_empty() {
        (name.trim_end().replace("\\#", "#"), comment)
    } else {
        (text.trim_end().replace("\\#", "#"), "")
    }
}

fn directive(comment: &str) -> Option<Directive> {
    let word: String = comment.trim_start().chars().take(4).map(|c| c.to_ascii_uppercase()).collect();
    match word.as_str() {
        "SKIP" => Some(Directive::Skip),
        "TODO" => Some(Directive::Todo),
        _ => None,
    }
}
