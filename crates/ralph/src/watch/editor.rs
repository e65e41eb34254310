//! One line that a person types.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::term::width::columns;

#[derive(Debug, Default)]
pub(super) struct Editor {
    text: Vec<char>,
    /// Characters before the cursor.
    at: usize,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    GoesOn,
    Done(String),
    Left,
}

impl Editor {
    pub(super) fn key(&mut self, key: KeyEvent) -> Typed {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Typed::Done(self.text.iter().collect()),
            KeyCode::Esc => return Typed::Left,
            KeyCode::Char('c') if with_control => return Typed::Left,
            KeyCode::Char('u') if with_control => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            KeyCode::Char('w') if with_control => self.take_a_word(),
            KeyCode::Char('a') if with_control => self.at = 0,
            KeyCode::Char('e') if with_control => self.at = self.text.len(),
            KeyCode::Char(c) if !with_control => self.insert(&c.to_string()),
            KeyCode::Backspace if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.at);
            }
            KeyCode::Delete if self.at < self.text.len() => {
                self.text.remove(self.at);
            }
            KeyCode::Left => self.at = self.at.saturating_sub(1),
            KeyCode::Right => self.at = (self.at + 1).min(self.text.len()),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            _ => {}
        }
        Typed::GoesOn
    }

    /// Pasted text has its line breaks as spaces: only Enter sends.
    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", " ");
        let shown: Vec<char> = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !c.is_control()).collect();
        let added = shown.len();
        self.text.splice(self.at..self.at, shown);
        self.at += added;
    }

    fn take_a_word(&mut self) {
        let before = &self.text[..self.at];
        let word =
            before.iter().rposition(|c| *c != ' ').map_or(0, |end| before[..end].iter().rposition(|c| *c == ' ').map_or(0, |at| at + 1));
        self.text.drain(word..self.at);
        self.at = word;
    }

    /// The part that fits into so many columns, and the column of the cursor.
    pub(super) fn shown(&self, width: usize) -> (String, usize) {
        let wide = |c: &char| columns(c.encode_utf8(&mut [0; 4]));
        // As much as fits before the cursor, which needs a column itself, then as much as fits after it.
        let mut cursor = 0;
        let fits_before = |c: &&char| {
            cursor += wide(c);
            cursor < width
        };
        let before = self.text[..self.at].iter().rev().take_while(fits_before).count();
        let from = self.at - before;
        let cursor = self.text[from..self.at].iter().map(wide).sum();
        let mut taken = cursor;
        let fits_after = |c: &&char| {
            taken += wide(c);
            taken <= width
        };
        let after = self.text[self.at..].iter().take_while(fits_after).count();
        (self.text[from..self.at + after].iter().collect(), cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut Editor, code: KeyCode) -> Typed {
        editor.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn eyes_1_a_line_is_typed_mended_and_sent() {
        let mut editor = Editor::default();
        editor.insert("leave the\r\nparser\u{1b}[2J alone");
        assert_eq!(editor.shown(80), ("leave the parser[2J alone".to_owned(), 25));
        editor.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        press(&mut editor, KeyCode::Backspace);
        press(&mut editor, KeyCode::Home);
        press(&mut editor, KeyCode::Delete);
        press(&mut editor, KeyCode::Char('L'));
        assert_eq!(press(&mut editor, KeyCode::Enter), Typed::Done("Leave the parser[2J".to_owned()));
        assert_eq!(press(&mut editor, KeyCode::Esc), Typed::Left);
    }

    #[test]
    fn eyes_1_wide_characters_move_along_and_never_stand_half() {
        let mut editor = Editor::default();
        editor.insert("世界平和です");
        let (shown, cursor) = editor.shown(7);
        assert!(shown == "和です" && cursor == 6, "{shown} {cursor}");
        (0..6).for_each(|_| drop(press(&mut editor, KeyCode::Left)));
        assert_eq!(editor.shown(7), ("世界平".to_owned(), 0));
        assert_eq!(editor.shown(0).1, 0);
    }
}
