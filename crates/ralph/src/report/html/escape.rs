//! Texts of any origin, and moments, as a page may show them.

use ralph_core::text::{
    clean,
    time::{self, Millis},
};

use crate::{journal_lines::zone, report::shared::pieces};

/// A text on one line that is nothing but text, whatever stands in it.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in clean(&text.replace(['\n', '\t'], " ")).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// The same with its line breaks.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// A sentence in which everything between back quotes is to be typed.
pub(super) fn sentence(text: &str) -> String {
    pieces(text).into_iter().map(|(is_code, piece)| if is_code { format!("<code>{}</code>", plain(piece)) } else { plain(piece) }).collect()
}

/// `2026-11-15 09:30`, in the person's zone, with the whole moment for programs.
pub(super) fn moment(at: Millis) -> String {
    format!("<time datetime=\"{}\">{}</time>", time::format(at), moment_in_title(at))
}

/// The same without its mark, for titles.
pub(super) fn moment_in_title(at: Millis) -> String {
    time::minute_in_zone(at, zone())
}

/// How moments of that stretch of time are told: with seconds where it is short.
pub(super) fn moments(from: Millis, to: Millis) -> fn(Millis) -> String {
    if to.saturating_sub(from) < 600_000 { |at| time::second_in_zone(at, zone()) } else { moment_in_title }
}

/// `2026-11-15 10:30 CET`, with the whole moment for programs.
pub(super) fn moment_and_zone(at: Millis) -> String {
    format!("{} {}", moment(at), zone_at(at))
}

/// The name of the zone at that moment: `CET`.
pub(super) fn zone_at(at: Millis) -> String {
    plain(&time::zone_name(at, zone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eyes_2_no_text_becomes_markup() {
        assert_eq!(
            plain("<script>alert('x')</script> & \"y\"\u{202e}\u{7}"),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;y&quot;"
        );
        assert_eq!(lines("a<b\n\u{1b}[31mred"), "a&lt;b\n[31mred");
        assert_eq!(sentence("type `a<b` now"), "type <code>a&lt;b</code> now");
        assert_eq!(sentence("a ` b"), "a ` b");
        assert_eq!(sentence("a `b` ` c"), "a <code>b</code> ` c");
        assert_eq!(sentence(""), "");
    }
}
