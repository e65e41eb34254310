//! The finished picture for a terminal that has less: without colour, or with nothing but plain characters.

use ratatui::{buffer::Buffer, style::Color};

use crate::watch::draw::Looks;

pub(super) fn simplify(picture: &mut Buffer, looks: Looks) {
    for cell in &mut picture.content {
        if !looks.colour {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
        if looks.ascii && !cell.symbol().is_ascii() {
            let plain = cell.symbol().chars().next().map_or(' ', plain);
            cell.set_char(plain);
        }
    }
}

/// The character that looks most like it.
fn plain(c: char) -> char {
    match c {
        '█' | '▇' | '▆' => '#',
        '▅' | '▄' | '‖' => '=',
        '▁' => '_',
        '░' | '…' => '.',
        '✓' => '+',
        '●' => '*',
        '“' | '”' => '"',
        '✗' | '×' => 'x',
        '←' => '<',
        '▃' | '▂' | '─' | '·' | '–' => '-',
        '↑' => '^',
        '↓' => 'v',
        '▸' | '→' => '>',
        _ => '?',
    }
}
