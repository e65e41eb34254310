//! The end of a JSON object in a text that still comes.

use memchr::arch::all::memchr::Two;

/// Finds where the first JSON object of a growing text ends. Each byte is looked at once, however the text comes.
#[derive(Debug, Default)]
pub(super) struct ObjectEnd {
    /// Everything before it has been looked at.
    at: usize,
    depth: usize,
    in_string: bool,
}

impl ObjectEnd {
    /// How long the text is with the object's end; `None`: that has not come yet, or the text begins with something else. `text` only ever grows.
    pub(super) fn find(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(&byte) = text.get(self.at) {
            if self.in_string {
                if self.skip_string(text) {
                    continue;
                }
                return None;
            }
            match byte {
                b'{' => self.depth += 1,
                b'}' if self.depth == 1 => return Some(self.at + 1),
                b'}' => self.depth = self.depth.saturating_sub(1),
                b'"' if self.depth > 0 => self.in_string = true,
                _ if self.depth > 0 || byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(&byte) => {}
                _ => return None,
            }
            self.at += 1;
        }
        None
    }

    /// Goes to the end of the string. `false`: that has not come yet, nor has perhaps the second byte of an escape, which is then gone back to.
    fn skip_string(&mut self, text: &[u8]) -> bool {
        while let Some(found) = Two::new(b'"', b'\\').find(&text[self.at..]) {
            self.at += found;
            match text[self.at] {
                b'"' => {
                    self.at += 1;
                    self.in_string = false;
                    return true;
                }
                _ if self.at + 1 < text.len() => self.at += 2,
                _ => return false,
            }
        }
        self.at = text.len();
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn t14_the_end_of_an_object_is_found_wherever_the_text_is_cut() {
        let end = |text: &str| ObjectEnd::default().find(text.as_bytes());
        for whole in [r"{}", "\u{feff} \n{\"a\": [1, {\"b\": 2}], \"c\": \"}{\"}", r#"{"a": "\\", "b": "\"}"}"#, "{\"a\": \"\u{1}\u{e9}\"}"]
        {
            assert_eq!(end(&format!("{whole} {{\"more\": 1}}")), Some(whole.len()), "{whole}");
            for cut in 0..whole.len() {
                let mut finder = ObjectEnd::default();
                assert_eq!(finder.find(&whole.as_bytes()[..cut]), None, "{whole} {cut}");
                assert_eq!(finder.find(whole.as_bytes()), Some(whole.len()), "{whole} {cut}");
            }
        }
        for none in ["", "  ", "{", "[{}]", "\"{}\"", "null", "x {}", "{\"a\": \"}"] {
            assert_eq!(end(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn t14_an_object_ends_where_the_parser_says(map in proptest::collection::btree_map(".{0,8}", ".{0,20}", 0..5), cut in 0usize..200) {
            let text = serde_json::to_vec(&map).unwrap_or_default();
            let mut finder = ObjectEnd::default();
            let cut = cut.min(text.len() - 1);
            prop_assert_eq!(finder.find(&text[..cut]), None);
            prop_assert_eq!(finder.find(&text), Some(text.len()));
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ObjectEnd::default().find(&bytes);
        }
    }
}
