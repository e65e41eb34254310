//! What a `file` gate asks of the text in its file. That the file is there and new enough is for the engine to see.

use super::{
    File, Verdict,
    count_entries::count_entries,
    decision::{self, DECISION},
    regex::{self, Unmatched},
};
use crate::text::{count, opening};

/// How much of a path or an expression is shown.
const SHOWN: usize = 120;

impl File {
    /// All that holds of its text, one clause each: `` says `PASS` ``, `has 3 entries`. Else the first thing that does not, with its verdict.
    pub fn check(&self, text: &str) -> Result<Vec<String>, (Verdict, String)> {
        let path = opening(&self.path, SHOWN);
        let fails = |what: String| Err((Verdict::Fail, what));
        let mut holds = Vec::new();
        if let Some(expression) = &self.contains {
            let shown = opening(self.called.as_ref().unwrap_or(expression), SHOWN);
            if expression == DECISION {
                if let Err(instead) = decision::passes(text) {
                    let instead = instead.map(|says| format!(": its decision is `{}`", opening(&says, SHOWN))).unwrap_or_default();
                    return fails(format!("{path} does not say `{shown}`{instead}"));
                }
            } else if !says(text, expression)? {
                return fails(format!("{path} does not say `{shown}`"));
            }
            holds.push(format!("says `{shown}`"));
        }
        if let Some(line) = decision::failure(text).filter(|_| self.of_success) {
            return fails(format!("{path} exists, but says `{}`", opening(line, SHOWN)));
        }
        if self.entries > 0 {
            let entries_of = |n: u64| count(n, "entry", "entries");
            let found = count_entries(text);
            if found < self.entries {
                let has = if found == 0 { "no entry".to_owned() } else { entries_of(found) };
                let wanted = if self.entries == 1 { "at least one".to_owned() } else { format!("at least {}", self.entries) };
                return fails(format!("{path} has {has}, and {wanted} must be there"));
            }
            holds.push(format!("has {}", entries_of(found)));
        }
        Ok(holds)
    }
}

/// Whether the expression matches somewhere.
fn says(text: &str, expression: &str) -> Result<bool, (Verdict, String)> {
    let shown = opening(expression, SHOWN);
    regex::matches(expression, text).map_err(|why| {
        let what = match why {
            Unmatched::TooSlow => {
                let mb = text.len().div_ceil(1 << 20);
                format!("to look for `{shown}` in {mb} MB would take too long: ask for plain words, or write a shorter file")
            }
            Unmatched::Wrong(e) => format!("`{shown}`, which it must say, is no regular expression: {}", opening(&e.to_string(), 200)),
        };
        (Verdict::Unknown, what)
    })
}
