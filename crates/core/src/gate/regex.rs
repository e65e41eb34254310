//! Regular expressions from settings.

use regex_lite::{Error, Regex, RegexBuilder};

/// How large a compiled expression may be.
const MAX_SIZE: usize = 1 << 18;

/// The product of the sizes of a compiled expression and of the text that it is matched with. Matching takes time in proportion, and this much of it
/// is about a second at worst.
const MAX_WORK: usize = 2 << 30;

/// Why an expression could not be matched.
#[derive(Debug)]
pub(super) enum Unmatched {
    /// It is no regular expression.
    Wrong(Error),
    /// It could take too long.
    TooSlow,
}

/// The expression, ready to be matched with a whole file: `^` and `$` match at every line.
pub(crate) fn of_lines(expression: &str) -> Result<Regex, Error> {
    built(expression, MAX_SIZE)
}

/// Whether the expression matches somewhere in a whole file. The time is bounded, whatever the expression is.
pub(super) fn matches(expression: &str, text: &str) -> Result<bool, Unmatched> {
    if regex_lite::escape(expression) == expression {
        return Ok(text.contains(expression));
    }
    let regex = of_lines(expression).map_err(Unmatched::Wrong)?;
    match built(expression, MAX_SIZE.min(MAX_WORK / text.len().max(1))) {
        Ok(_) => Ok(regex.is_match(text)),
        Err(_) => Err(Unmatched::TooSlow),
    }
}

fn built(expression: &str, size: usize) -> Result<Regex, Error> {
    RegexBuilder::new(expression).multi_line(true).crlf(true).size_limit(size).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_would_take_too_long_is_not_tried() {
        let hostile = format!("{}b", ".*".repeat(400));
        assert!(matches!(matches(&hostile, &"a".repeat(1 << 20)), Err(Unmatched::TooSlow)));
        assert!(matches!(matches(&hostile, "aaab"), Ok(true)));
        assert!(matches!(matches("^Decision: (PASS|APPROVED)$", &"a".repeat(1 << 20)), Ok(false)));
        assert!(matches!(matches("Decision: PASS", &"a".repeat(16 << 20)), Ok(false)));
        assert!(matches!(matches("(", "a"), Err(Unmatched::Wrong(_))));
    }
}
