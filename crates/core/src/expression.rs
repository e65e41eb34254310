//! Regular expressions that people write into their settings.

use regex_lite::{Error, Regex, RegexBuilder};

/// How large a compiled expression may be: matching takes time in proportion.
const MAX_SIZE: usize = 1 << 18;

/// The expression, ready to be matched with a whole file: `^` and `$` match at every line.
pub fn of_lines(text: &str) -> Result<Regex, Error> {
    RegexBuilder::new(text).multi_line(true).crlf(true).size_limit(MAX_SIZE).build()
}
