//! Texts of any origin in Markdown as GitHub reads it: none becomes mark-up, a mention, a link, a picture or a reference.

use ralph_core::text::opening;

use crate::report::shared::pieces;

/// Draws nothing, and keeps apart what would be read together.
const APART: &str = "<!-- -->";

/// The beginning of a text, on one line, as nothing but text. Only what would be read as something else is changed: people read the source as well.
pub(super) fn plain(text: &str, max: usize) -> String {
    let line: Vec<char> = opening(text, max).chars().collect();
    let mut out = String::with_capacity(line.len() + 16);
    for (n, c) in line.iter().copied().enumerate() {
        let (before, rest) = (&line[..n], &line[n + 1..]);
        match c {
            '&' if rest.first().is_some_and(|next| next.is_alphanumeric() || *next == '#') => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            _ => {
                if is_markup(c, before, rest) {
                    out.push('\\');
                }
                out.push(c);
            }
        }
        if is_looked_for(c, before, rest) {
            out.push_str(APART);
        }
    }
    out
}

/// Whether Markdown would take a character for its own.
fn is_markup(c: char, before: &[char], rest: &[char]) -> bool {
    let is_word = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric());
    let begins = before.is_empty();
    match c {
        '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' => true,
        '(' => before.last() == Some(&']'),
        // Within a word it is a letter.
        '_' => !(is_word(before.last()) && is_word(rest.first())),
        '-' | '+' | '#' | '>' | '=' => begins,
        '.' | ')' => !begins && before.iter().all(char::is_ascii_digit),
        _ => false,
    }
}

/// Mentions, references, addresses and little pictures are looked for in what is drawn.
fn is_looked_for(c: char, before: &[char], rest: &[char]) -> bool {
    let next = rest.first().copied().unwrap_or(' ');
    let ends_in = |word: &str| {
        let start = before.len().checked_sub(word.len());
        start.is_some_and(|start| before[start..].iter().collect::<String>().eq_ignore_ascii_case(word))
    };
    match c {
        '@' => !next.is_whitespace(),
        '#' => next.is_alphanumeric(),
        ':' => next == '/' || rest.iter().find(|c| !(c.is_alphanumeric() || "_+-".contains(**c))) == Some(&':'),
        '-' => next.is_ascii_digit() && ends_in("gh"),
        '.' => !next.is_whitespace() && ends_in("www"),
        _ => false,
    }
}

/// The same as something to type. A table ends its cell at a bar, in code too.
pub(super) fn code(text: &str, max: usize) -> String {
    let line = opening(text, max).replace('|', "\\|");
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    if line.is_empty() { String::new() } else { format!("{fence}{pad}{line}{pad}{fence}") }
}

/// A sentence of ralph's own, in which everything between back quotes is to be typed.
pub(super) fn sentence(text: &str, max: usize) -> String {
    let text = opening(text, max);
    pieces(&text).into_iter().map(|(is_code, piece)| if is_code { code(piece, max) } else { with_blanks(piece) }).collect()
}

/// As text, with the blanks around it, which separate words.
fn with_blanks(part: &str) -> String {
    let blank = |is_there: bool| if is_there { " " } else { "" };
    if part.trim().is_empty() {
        return blank(!part.is_empty()).to_owned();
    }
    format!("{}{}{}", blank(part.starts_with(' ')), plain(part, usize::MAX), blank(part.ends_with(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eyes_2_no_text_becomes_markup_a_mention_or_a_link() {
        assert_eq!(plain("![x](https://e.x/y) @me #12 | <b>", 99), "!\\[x\\]\\(https:<!-- -->//e.x/y) @<!-- -->me #<!-- -->12 \\| &lt;b>");
        assert_eq!(plain("one\n# two\u{202e}", 99), "one # two");
        assert_eq!(plain("GH-12 www.x.y :tada: a@b.c", 99), "GH-<!-- -->12 www.<!-- -->x.y :<!-- -->tada: a@<!-- -->b.c");
        assert_eq!(
            ["# a", "- a", "+ a", "> a", "12. a", "3) a"].map(|text| plain(text, 99)),
            ["\\# a", "\\- a", "\\+ a", "\\> a", "12\\. a", "3\\) a"]
        );
        assert_eq!(plain("_a_ *b* ~c~ $d$ \\ &lt; &#60; `", 99), "\\_a\\_ \\*b\\* \\~c\\~ \\$d\\$ \\\\ &amp;lt; &amp;#<!-- -->60; \\`");
        let readable = "ralph.toml: line 9 of feature_list.json (test -f a/b-c.rs) & more > less, 2.5 + 1 = 3!";
        assert_eq!(plain(readable, 99), readable);
        assert_eq!(code("a`b|c", 99), "``a`b\\|c``");
        assert_eq!(code("`", 99), "`` ` ``");
        assert_eq!(sentence("type `ralph @x` now", 99), "type `ralph @x` now");
        assert_eq!(sentence("a ` b", 99), "a \\` b");
    }
}
