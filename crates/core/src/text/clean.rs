//! Foreign text made fit to show: without what steers a terminal, on one line, of a bounded length; and words with their numbers.

/// White space is one blank, at the ends none: both sides of the comparison are brought to this form (S0-8).
pub fn normalised(text: &str) -> String {
    // As it is shown, because the agent copies what it is shown.
    let mut line = String::with_capacity(text.len());
    let mut is_apart = false;
    for c in text.chars() {
        if c.is_whitespace() {
            is_apart = true;
        } else if is_shown(c) {
            if is_apart && !line.is_empty() {
                line.push(' ');
            }
            is_apart = false;
            line.push(c);
        }
    }
    line
}

/// `1 file`, `4 files`: how many of something there are, with the right word.
pub fn count(n: u64, one: &str, several: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { several })
}

/// `1 iteration`, `4 iterations`.
pub fn iterations(n: u64) -> String {
    count(n, "iteration", "iterations")
}

/// `4 of 20`, or `4` where there is no limit.
pub fn of_limit(iteration: u64, max_iterations: u64) -> String {
    if max_iterations == 0 { iteration.to_string() } else { format!("{iteration} of {max_iterations}") }
}

/// A word as a shell takes it for one.
pub fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "@/._-+".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A text without control characters, and without those that turn the order of what is drawn, or that draw nothing: what comes from files and agents
/// must not steer a terminal.
pub fn clean(text: &str) -> String {
    text.chars().filter(|c| is_shown(*c)).collect()
}

/// Whether a character is one that people see.
fn is_shown(c: char) -> bool {
    if c.is_ascii() { !c.is_ascii_control() } else { !c.is_control() && !is_unseen(c) }
}

/// Characters that turn or hide text; the last ones are an alphabet that only models read. The two joiners (U+200C, U+200D) are none of these: Persian words
/// and emoji of several people are spelled with them, and they turn nothing.
pub fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The last `max` characters of a text on one line, without control characters.
pub fn excerpt(text: &str, max: usize) -> String {
    // Only the end of a long text is looked at, and more of it as long as that was mostly blanks.
    let mut len = at_once(max);
    loop {
        let from = text.ceil_char_boundary(text.len().saturating_sub(len));
        let line = normalised(&text[from..]);
        match line.char_indices().nth_back(max.saturating_sub(1)) {
            Some((at, _)) if at > 0 => return format!("…{}", &line[at..]),
            _ if from == 0 => return line,
            _ => {}
        }
        len = len.saturating_mul(2);
    }
}

/// How many bytes of a text are looked at first for so many characters of it.
fn at_once(max: usize) -> usize {
    max.saturating_add(1).saturating_mul(8)
}

/// The first `max` characters of a text on one line, without control characters.
pub fn opening(text: &str, max: usize) -> String {
    let mut len = at_once(max);
    loop {
        let to = text.floor_char_boundary(len);
        let mut line = normalised(&text[..to]);
        match line.char_indices().nth(max) {
            Some((at, _)) => {
                line.truncate(at);
                line.push('…');
                return line;
            }
            None if to == text.len() => return line,
            None => len = len.saturating_mul(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_bounded_and_clean() {
        assert_eq!(excerpt("a\u{7}b\n\nc", 10), "ab c");
        assert_eq!(excerpt("0123456789", 4), "…6789");
        assert_eq!(excerpt("", 4), "");
        assert_eq!(opening("0123\u{1b}[31m456789", 4), "0123…");
        assert_eq!(opening("ab", 2), "ab");
    }

    #[test]
    fn what_draws_nothing_or_turns_the_order_is_not_shown() {
        assert_eq!(clean("a\u{202e}b\u{200b}c\u{2066}d\u{feff}e\u{2060}f\u{200f}g\u{61c}"), "abcdefg");
        assert_eq!(opening("safe \u{202e} txt.exe", 20), "safe txt.exe");
        let family_and_persian = "\u{1f469}\u{200d}\u{1f467} \u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}";
        assert_eq!(clean(family_and_persian), family_and_persian);
    }
}
