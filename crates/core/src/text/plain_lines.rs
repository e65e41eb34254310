//! The lines of a program's output as a terminal would show them at last: no colours, no escape sequences, no control characters, and of a
//! redrawn line only what stayed.
//!
//! Bytes may come in any pieces, and any bytes may come: what is not UTF-8 becomes U+FFFD. Only the start of a very long line is kept.

/// Puts bytes together to lines.
#[derive(Default)]
pub struct PlainLines {
    /// How many characters of a line are kept.
    width: usize,
    cells: Vec<char>,
    column: usize,
    /// Something was written to the right of what is kept.
    is_cut: bool,
    /// Something came since the last end of a line.
    is_begun: bool,
    undecoded: Vec<u8>,
    mode: Mode,
    text: String,
}

/// Where in an escape sequence we are.
#[derive(Clone, Copy, PartialEq, Default)]
enum Mode {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and a character that announces one more, as in `ESC ( B`.
    EscapeMore,
    /// After `ESC [`, with the first number.
    Control { number: usize, is_first: bool },
    /// Words for the terminal itself: a title, a link. They end with BEL, or with `ESC \`.
    Words,
}

impl PlainLines {
    pub fn new(width: usize) -> Self {
        PlainLines { width, ..PlainLines::default() }
    }

    /// Takes some bytes, and hands on every line that they end. A line that was cut ends with `…`.
    pub fn feed(&mut self, bytes: &[u8], line: &mut impl FnMut(&str)) {
        for &byte in bytes {
            if byte.is_ascii() && self.undecoded.is_empty() {
                self.see(char::from(byte), line);
            } else {
                self.decode(byte, line);
            }
        }
    }

    /// Hands on the last line, if nothing ended it.
    pub fn finish(&mut self, line: &mut impl FnMut(&str)) {
        if !std::mem::take(&mut self.undecoded).is_empty() {
            self.see(char::REPLACEMENT_CHARACTER, line);
        }
        if self.is_begun {
            self.end_line(line);
        }
    }

    fn decode(&mut self, byte: u8, line: &mut impl FnMut(&str)) {
        self.undecoded.push(byte);
        match std::str::from_utf8(&self.undecoded).map(|text| text.chars().next()) {
            Ok(c) => {
                self.undecoded.clear();
                if let Some(c) = c {
                    self.see(c, line);
                }
            }
            Err(e) if e.error_len().is_none() => {}
            Err(e) => {
                let rest = self.undecoded.split_off(e.error_len().unwrap_or(1));
                self.undecoded.clear();
                self.see(char::REPLACEMENT_CHARACTER, line);
                self.feed(&rest, line);
            }
        }
    }

    fn see(&mut self, c: char, line: &mut impl FnMut(&str)) {
        self.is_begun = true;
        match c {
            // A sequence ends with its line: one that is never closed must not swallow the rest.
            '\n' => return self.end_line(line),
            '\u{1b}' => return self.mode = Mode::Escape,
            '\u{9b}' => return self.mode = Mode::Control { number: 0, is_first: true },
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return self.mode = Mode::Words,
            _ => {}
        }
        match self.mode {
            Mode::Words => {
                if matches!(c, '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}') {
                    self.mode = Mode::Text;
                }
            }
            _ if c.is_control() => {
                self.mode = Mode::Text;
                self.steer(c);
            }
            Mode::Text => self.write(c),
            Mode::Escape => self.mode = after_escape(c),
            Mode::EscapeMore => self.mode = if matches!(c, ' '..='/') { Mode::EscapeMore } else { Mode::Text },
            Mode::Control { number, is_first } => self.control(c, number, is_first),
        }
    }

    fn control(&mut self, c: char, number: usize, is_first: bool) {
        match c {
            '0'..='9' if is_first => {
                let digit = c.to_digit(10).map_or(0, |d| d as usize);
                self.mode = Mode::Control { number: number.saturating_mul(10).saturating_add(digit), is_first };
            }
            ' '..='?' => self.mode = Mode::Control { number, is_first: false },
            _ => {
                self.mode = Mode::Text;
                match c {
                    'K' => self.erase(number),
                    'G' => self.column = number.saturating_sub(1),
                    '@'..='~' => {}
                    _ => self.write(c),
                }
            }
        }
    }

    fn steer(&mut self, c: char) {
        match c {
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\t' => self.write(' '),
            _ => {}
        }
    }

    fn write(&mut self, c: char) {
        if self.column >= self.width {
            self.is_cut |= c != ' ';
        } else if let Some(cell) = self.cells.get_mut(self.column) {
            *cell = c;
        } else {
            self.cells.resize(self.column, ' ');
            self.cells.push(c);
        }
        self.column = self.column.saturating_add(1);
    }

    /// `ESC [ K`: to the end of the line, `1`: to its start, `2`: all of it.
    fn erase(&mut self, what: usize) {
        if what == 1 {
            let until = self.cells.len().min(self.column.saturating_add(1));
            self.cells[..until].fill(' ');
            return;
        }
        self.cells.truncate(if what == 0 { self.column } else { 0 });
        self.is_cut &= what == 0 && self.column > self.width;
    }

    fn end_line(&mut self, line: &mut impl FnMut(&str)) {
        self.text.clear();
        self.text.extend(&self.cells);
        if self.is_cut {
            self.text.push('…');
        }
        line(self.text.trim_end());
        self.cells.clear();
        self.column = 0;
        self.is_cut = false;
        self.is_begun = false;
        self.mode = Mode::Text;
    }
}

fn after_escape(c: char) -> Mode {
    match c {
        '[' => Mode::Control { number: 0, is_first: true },
        ']' | 'P' | 'X' | '^' | '_' => Mode::Words,
        ' '..='/' => Mode::EscapeMore,
        _ => Mode::Text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines_of(pieces: &[&[u8]], width: usize) -> Vec<String> {
        let mut out = Vec::new();
        let mut lines = PlainLines::new(width);
        for piece in pieces {
            lines.feed(piece, &mut |line| out.push(line.to_owned()));
        }
        lines.finish(&mut |line| out.push(line.to_owned()));
        out
    }

    fn shown(bytes: &[u8]) -> String {
        lines_of(&[bytes], 100).join("\n")
    }

    #[test]
    fn lines_end_where_they_end() {
        assert_eq!(lines_of(&[b"a\n\nb"], 10), ["a", "", "b"]);
        assert_eq!(lines_of(&[b"a\r\nb\r\n"], 10), ["a", "b"]);
        assert_eq!(lines_of(&[b""], 10), [""; 0]);
        assert_eq!(lines_of(&["äöü€!".as_bytes()], 4), ["äöü€…"]);
        assert_eq!(lines_of(&[b"abcd\nabcde  "], 4), ["abcd", "abcd…"]);
    }

    #[test]
    fn colours_titles_and_links_leave_nothing_behind() {
        assert_eq!(shown(b"\x1b[31mred\x1b[0m \x1b[1;38;5;9mbold\x1b[m"), "red bold");
        assert_eq!(shown(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b"), "alinkb");
        assert_eq!(shown(b"\x1b(Ba\x1b=b\x1bPq#0;1\x1b\\c\x1b[?25ld"), "abcd");
        assert_eq!(shown("\u{9b}31ma\u{9d}0;t\u{9c}b\u{85}c".as_bytes()), "abc");
        assert_eq!(shown(b"\x1b[31\nnext \x1b]0;never closed\nstill here\x1b["), "\nnext\nstill here");
        assert_eq!(shown("\u{1b}[3äx".as_bytes()), "äx");
    }

    #[test]
    fn a_redrawn_line_shows_what_stayed() {
        assert_eq!(shown(b" 10%\r 50%\r100%\n"), "100%");
        assert_eq!(shown(b"Downloading 9\rDone"), "Doneloading 9", "as a terminal has it");
        assert_eq!(shown(b"Downloading 9\r\x1b[KDone"), "Done");
        assert_eq!(shown(b"Downloading 9\x1b[2K\x1b[1GDone"), "Done");
        assert_eq!(shown(b"|\x08/\x08-\x08ok"), "ok");
        assert_eq!(shown(b"abc\x1b[1Kd"), "   d");
        assert_eq!(lines_of(&[b"0123456789\r\x1b[Kab"], 4), ["ab"], "what was cut is erased, too");
    }

    #[test]
    fn what_is_no_text_is_harmless() {
        assert_eq!(shown(b"a\0b\x07c\x7f\td"), "abc d");
        assert_eq!(shown(b"a\xffb\xe2\x82c\xe2\x82\xac"), "a\u{fffd}b\u{fffd}c€");
        assert_eq!(shown(b"\xe2\x82"), "\u{fffd}");
        assert_eq!(shown(b"\x1b[99999999999999999999999Gx").chars().count(), 1, "a column far away costs no memory");
    }

    /// Bytes that are likely to hit something: escape sequences, parts of characters, ends of lines.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..4),
            proptest::sample::select(vec![
                &b"\x1b"[..],
                b"[",
                b"31",
                b"m",
                b"K",
                b"2K",
                b"G",
                b"]0;",
                b"\x07",
                b"\\",
                b"\r",
                b"\n",
                b"\t",
                b"\x08",
                b"word",
                b"\xe2",
                b"\x82",
                b"\xac",
                b"\xc2\x9b",
                b"\xf0\x9f"
            ])
            .prop_map(<[u8]>::to_vec),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn s3_3_pieces_give_the_same_lines_as_the_whole(all in bytes(), width in 0_usize..20, size in 1_usize..7) {
            let whole = lines_of(&[&all], width);
            prop_assert_eq!(&whole, &lines_of(&all.chunks(size).collect::<Vec<_>>(), width));
            for line in whole {
                prop_assert!(line.chars().count() <= width + 1 && !line.chars().any(char::is_control));
            }
        }
    }
}
