//! A command's output for a terminal: its colours are kept, and no other control sequence.
//!
//! A gate's command is trusted to run, but its output may come from anywhere: the name of a file, a test's message, a page that was fetched. A sequence
//! that sets the clipboard or the title, moves the cursor over what was said before or asks the terminal to type something never arrives.

use ralph_core::text::is_unseen;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// No sequence of colours is longer.
const LONGEST: usize = 64;

/// A stream of bytes, which may be cut anywhere.
#[derive(Default)]
pub(super) struct Colours {
    /// The beginning of a character or a sequence.
    begun: Vec<u8>,
    /// In a text for the terminal itself, which goes on until its end.
    in_text: bool,
}

enum Piece {
    Kept(usize),
    Dropped(usize),
    /// Something that a terminal reads up to its end.
    Text(usize),
    Garbled(usize),
    /// More has to come first.
    Unfinished,
}

impl Colours {
    /// Returns what may be shown of these bytes and of those that waited for them.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.begun.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.begun);
        let mut shown = Vec::with_capacity(all.len());
        let mut at = 0;
        while at < all.len() {
            let rest = &all[at..];
            at += match if self.in_text { self.text(rest) } else { piece(rest) } {
                Piece::Kept(len) => {
                    shown.extend_from_slice(&rest[..len]);
                    len
                }
                Piece::Dropped(len) => len,
                Piece::Text(len) => {
                    self.in_text = true;
                    len
                }
                Piece::Garbled(len) => {
                    shown.extend_from_slice("\u{fffd}".as_bytes());
                    len
                }
                Piece::Unfinished => {
                    self.begun = rest.to_vec();
                    break;
                }
            };
        }
        shown
    }

    /// Passes over a text for the terminal, up to a bell or `ESC \`. A line break ends it, too: the rest of the output must not be lost.
    fn text(&mut self, rest: &[u8]) -> Piece {
        let end = rest.iter().position(|byte| matches!(*byte, BELL | ESCAPE | b'\n'));
        let Some(end) = end else { return Piece::Dropped(rest.len()) };
        self.in_text = false;
        Piece::Dropped(if rest[end] == BELL { end + 1 } else { end })
    }
}

fn piece(rest: &[u8]) -> Piece {
    match rest[0] {
        ESCAPE => sequence(rest),
        b'\n' | b'\r' | b'\t' => Piece::Kept(1),
        byte if byte.is_ascii_control() => Piece::Dropped(1),
        byte if byte.is_ascii() => Piece::Kept(rest.iter().position(|byte| !matches!(*byte, b' '..=b'~')).unwrap_or(rest.len())),
        _ => character(rest),
    }
}

/// A sequence that begins with an escape. Of those only the ones for colours are kept: `ESC [ 1 ; 31 m`.
fn sequence(rest: &[u8]) -> Piece {
    match rest.get(1) {
        None => Piece::Unfinished,
        Some(b'[') => {
            let end = rest[2..].iter().position(|byte| !matches!(*byte, b' '..=b'?'));
            match end.map(|end| end + 2) {
                None if rest.len() < LONGEST => Piece::Unfinished,
                None => Piece::Dropped(rest.len()),
                Some(end) if rest[end] == b'm' && rest[2..end].iter().all(|byte| matches!(*byte, b'0'..=b';')) => Piece::Kept(end + 1),
                // Whatever else is in its place is the beginning of something new.
                Some(end) if matches!(rest[end], b'@'..=b'~') => Piece::Dropped(end + 1),
                Some(end) => Piece::Dropped(end),
            }
        }
        Some(b']' | b'P' | b'X' | b'^' | b'_') => Piece::Text(2),
        Some(b' '..=b'/') if rest.len() < 3 => Piece::Unfinished,
        Some(b' '..=b'/') => Piece::Dropped(3),
        Some(b'0'..=b'~') => Piece::Dropped(2),
        Some(_) => Piece::Dropped(1),
    }
}

/// A character of several bytes. Some steer a terminal by themselves, or turn what is drawn.
fn character(rest: &[u8]) -> Piece {
    let head = &rest[..rest.len().min(4)];
    let (valid, is_cut) = match std::str::from_utf8(head) {
        Ok(text) => (text, false),
        Err(e) => (std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default(), e.error_len().is_none()),
    };
    match valid.chars().next() {
        Some(c) if c.is_control() || is_unseen(c) => Piece::Dropped(c.len_utf8()),
        Some(c) => Piece::Kept(c.len_utf8()),
        None if is_cut => Piece::Unfinished,
        None => Piece::Garbled(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8]) -> String {
        String::from_utf8(Colours::default().feed(text)).unwrap()
    }

    #[test]
    fn t24_colours_arrive_and_nothing_else_that_steers_a_terminal() {
        let red = "\u{1b}[1;31mred\u{1b}[0m é 日本 \u{1b}[38:5:9mx\u{1b}[m\ttab\r\n";
        assert_eq!(shown(red.as_bytes()), red);
        for (evil, harmless) in [
            ("a\u{1b}]52;c;ZXZpbA==\u{7}b", "ab"),
            ("a\u{1b}]0;title\u{1b}\\b", "ab"),
            ("a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
            ("a\u{1b}P+q544e\u{1b}\\b", "ab"),
            ("a\u{1b}[2J\u{1b}[Hb\u{1b}[?1049hc\u{1b}[6nd", "abcd"),
            ("a\u{1b}[5;3Hb\u{1b}cc\u{1b}(0d\u{1b}#8e", "abcde"),
            ("a\u{7}\u{8}\u{0}\u{b}\u{7f}b", "ab"),
            ("a\u{9b}2Jb\u{85}c", "a2Jbc"),
            ("a\u{202e}b\u{200b}c", "abc"),
            ("a\u{1b}[>4;2mb", "ab"),
            ("a\u{1b}]0;no end\nb", "a\nb"),
            ("a\u{1b}\u{1b}[31mb", "a\u{1b}[31mb"),
        ] {
            assert_eq!(shown(evil.as_bytes()), harmless, "{evil:?}");
        }
        assert_eq!(shown(b"a\xffb\xc3"), "a\u{fffd}b");
    }

    /// Bytes that are mostly those that sequences are made of.
    fn dice(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33).to_le_bytes()[0]
        };
        let any = |n: u8, byte: u8| *[ESCAPE, ESCAPE, b'[', b'[', b']', b'm', b'1', b';', BELL, b'\n'].get(usize::from(n)).unwrap_or(&byte);
        (0..len).map(|_| any(next() % 20, next())).collect()
    }

    #[test]
    fn t24_wherever_the_bytes_are_cut_the_same_arrives() {
        for seed in 0..3_000 {
            let bytes = dice(seed, 40);
            let whole = Colours::default().feed(&bytes);
            for cut in 0..bytes.len() {
                let mut parts = Colours::default();
                assert_eq!([parts.feed(&bytes[..cut]), parts.feed(&bytes[cut..])].concat(), whole, "{bytes:?} {cut}");
            }
            // An escape is always followed by a sequence of colours.
            for (at, _) in whole.iter().enumerate().filter(|(_, byte)| **byte == ESCAPE) {
                let end = whole[at + 2..].iter().position(|byte| !matches!(*byte, b'0'..=b';')).map(|end| whole[at + 2 + end]);
                assert_eq!((whole[at + 1], end), (b'[', Some(b'm')), "{bytes:?}");
            }
        }
    }
}
