//! Text in columns: how wide it is on a terminal, and how it is cut or wrapped to fit.

use unicode_width::UnicodeWidthChar;

pub(crate) const DOT: &str = " · ";

/// Asks a terminal to draw the character before it as a picture, which is wider than the character.
const AS_A_PICTURE: char = '\u{fe0f}';

/// How many columns a text takes; what styles it takes none.
pub(crate) fn columns(text: &str) -> usize {
    anstream::adapter::strip_str(text).flat_map(str::chars).map(of_char).sum()
}

/// East Asian characters and emoji take two. Where terminals disagree the larger number is the safe one.
fn of_char(c: char) -> usize {
    if c == AS_A_PICTURE { 1 } else { c.width().unwrap_or(0) }
}

/// The beginning of a text without styles, in at most `max` columns; `…` stands for the rest.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if columns(text) <= max {
        return text.to_owned();
    }
    let mut taken = 0;
    let fits = |c: &char| {
        taken += of_char(*c);
        taken < max
    };
    let beginning: String = text.chars().take_while(fits).collect();
    format!("{}…", beginning.trim_end())
}

/// Parts of a line with dots between them, in at most `width` columns. The least important ones (of the highest rank) go first; the last one is cut.
pub(crate) fn fit<R: Ord + Copy>(mut parts: Vec<(R, String)>, width: usize) -> String {
    loop {
        let line = parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(DOT);
        let last = parts.iter().map(|(rank, _)| *rank).max().filter(|_| parts.len() > 1 && columns(&line) > width);
        let Some(at) = last.and_then(|last| parts.iter().rposition(|(rank, _)| *rank == last)) else {
            // A cut through a colour would leave it on.
            return if columns(&line) <= width { line } else { cut(&anstream::adapter::strip_str(&line).to_string(), width) };
        };
        parts.remove(at);
    }
}

/// Breaks a text between words, so that no line is wider than `width`; all lines but the first are indented by `hang`.
///
/// A word that is too long for any line stays whole: people copy paths.
pub(crate) fn wrap(text: &str, width: usize, hang: usize) -> String {
    // A narrow terminal needs its columns for words.
    let hang = if hang * 2 > width { 4.min(hang) } else { hang };
    let mut out = String::new();
    let mut at = 0;
    let mut fresh = true;
    for word in text.split_inclusive(' ') {
        let bare = columns(word.trim_end_matches(' '));
        if !fresh && at + bare > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', hang));
            at = hang;
        }
        out.push_str(word);
        at += columns(word);
        fresh &= bare == 0;
    }
    out
}
