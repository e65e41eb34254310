//! Texts of strangers in Markdown as GitHub reads it: no mark-up, no mention, no link, no picture, no reference comes of them.

use ralph_core::words::opening;

/// Draws nothing, and keeps apart what would be read together.
const APART: &str = "<!-- -->";

/// The beginning of a text, on one line, as nothing but text.
pub(super) fn plain(text: &str, max: usize) -> String {
    let line = opening(text, max);
    let mut out = String::with_capacity(line.len() * 2);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let before_a_word = chars.peek().is_some_and(|next| !next.is_whitespace());
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '-' | '!' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
        // Mentions, references, addresses and little pictures are looked for in what is drawn.
        if before_a_word && matches!(c, '@' | '#' | ':' | '-' | '.' | '/') {
            out.push_str(APART);
        }
    }
    out
}

/// The same as something to type. A table ends its cell at a bar, in code too.
pub(super) fn code(text: &str, max: usize) -> String {
    let line = opening(text, max).replace('|', "\\|");
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    if line.is_empty() { String::new() } else { format!("{fence}{pad}{line}{pad}{fence}") }
}

/// A sentence of ralph's own, in which what stands between back quotes is meant to be typed.
pub(super) fn sentence(text: &str, max: usize) -> String {
    let text = opening(text, max);
    let parts: Vec<&str> = text.split('`').collect();
    let pairs = (parts.len() - 1) / 2 * 2;
    let shown = parts.iter().enumerate().map(|(n, part)| match (n % 2 == 1, n < pairs) {
        (true, true) => code(part, max),
        _ if n > pairs => format!("\\`{}", kept(part)),
        _ => kept(part),
    });
    shown.collect()
}

/// With the blanks around it, which keep words apart.
fn kept(part: &str) -> String {
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
        assert_eq!(
            plain("![x](https://e.x/y) @me #12 | <b>", 99),
            "\\!\\[x\\]\\(https:<!-- -->/<!-- -->/<!-- -->e.<!-- -->x/<!-- -->y\\) @<!-- -->me \\#<!-- -->12 \\| &lt;b&gt;"
        );
        assert_eq!(plain("one\n# two\u{202e}", 99), "one \\# two");
        assert_eq!(plain("GH-12 www.x.y :tada:", 99), "GH\\-<!-- -->12 www.<!-- -->x.<!-- -->y :<!-- -->tada:");
        assert_eq!(code("a`b|c", 99), "``a`b\\|c``");
        assert_eq!(code("`", 99), "`` ` ``");
        assert_eq!(sentence("type `ralph @x` now", 99), "type `ralph @x` now");
        assert_eq!(sentence("a ` b", 99), "a \\` b");
    }
}
