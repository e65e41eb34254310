//! What is wrong with how a page looks, asked of the page itself; each problem in one line, nothing where all is well.

use serde_json::Value;

use super::Page;

const LOOKS: &str = include_str!("looks.js");

impl Page<'_> {
    /// Texts that are hard to tell from what is behind them: a contrast below 4.5, or below 3 where they are large (WCAG 2, AA).
    pub fn contrast_problems(&self) -> Vec<String> {
        self.look("contrast")
    }

    /// What is wider than the window or sticks out of what it stands in, except in what scrolls.
    pub fn overflows(&self) -> Vec<String> {
        self.look("overflows")
    }

    /// Texts of less than 11 pixels.
    pub fn tiny_texts(&self) -> Vec<String> {
        self.look("tiny")
    }

    fn look(&self, what: &str) -> Vec<String> {
        let found = self.eval(&format!("({LOOKS}).{what}()"));
        let lines = found.as_array().unwrap_or_else(|| panic!("{what}: {found}"));
        lines.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}
