//! One row of the screen, put together from the left; what does not fit is cut between characters, with a mark.

use ratatui::{
    style::Style,
    text::{Line, Span},
};

use crate::term::{
    bar::filled,
    width::{columns, cut, wrap},
};

pub(super) struct Row {
    spans: Vec<Span<'static>>,
    left: usize,
}

impl Row {
    pub(super) fn new(width: usize) -> Self {
        Row { spans: Vec::new(), left: width }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// A text, or as much of it as there is room for.
    pub(super) fn add(mut self, text: &str, style: Style) -> Self {
        if self.left == 0 {
            return self;
        }
        let text = cut(text, self.left);
        self.left = self.left.saturating_sub(columns(&text));
        self.spans.push(Span::styled(text, style));
        self
    }

    /// Another row behind it, which fits.
    pub(super) fn then(mut self, other: Line<'static>) -> Self {
        self.left = self.left.saturating_sub(other.width());
        self.spans.extend(other.spans);
        self
    }

    /// A text if all of it fits.
    pub(super) fn whole(self, text: &str, style: Style) -> Self {
        if columns(text) <= self.left { self.add(text, style) } else { self }
    }

    /// A text in a column of its own.
    pub(super) fn column(self, text: &str, width: usize, style: Style) -> Self {
        let text = cut(text, width.min(self.left));
        let pad = width.saturating_sub(columns(&text));
        self.add(&text, style).gap(pad)
    }

    pub(super) fn gap(self, width: usize) -> Self {
        let width = width.min(self.left);
        self.add(&" ".repeat(width), Style::new())
    }

    /// A text at the right end, if there is room for it and a gap.
    pub(super) fn right(self, text: &str, style: Style) -> Self {
        let wide = columns(text);
        if wide + 2 > self.left {
            return self;
        }
        let gap = self.left - wide;
        self.gap(gap).add(text, style)
    }

    /// How much of something is used.
    pub(super) fn bar(self, spent: f64, most: f64, cells: usize, style: Style) -> Self {
        let full = filled(spent, most, cells);
        self.add(&"█".repeat(full), style).add(&"░".repeat(cells - full), super::DIM)
    }

    pub(super) fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }
}

/// Rows of `width` columns, with two items side by side where there is room for two.
pub(super) fn abreast<T>(items: &[T], width: usize, is_narrow: bool, drawn: impl Fn(Row, &T, usize) -> Row) -> Vec<Line<'static>> {
    const LEAST: usize = 76;
    if width < LEAST || is_narrow {
        return items.iter().map(|item| drawn(Row::new(width), item, width).line()).collect();
    }
    let half = (width - 2) / 2;
    let pair = |pair: &[T]| {
        let first = drawn(Row::new(width), &pair[0], half);
        let gap = first.left().saturating_sub(width - half - 2);
        pair.iter().skip(1).fold(first.gap(gap), |row, second| drawn(row, second, half)).line()
    };
    items.chunks(2).map(pair).collect()
}

/// Parts with a dot in between, as many as fit from the first on.
pub(super) fn parts(mut row: Row, parts: impl IntoIterator<Item = (String, Style)>) -> Row {
    let mut is_first = true;
    for (text, style) in parts {
        if is_first {
            row = row.add(&text, style);
        } else if row.left() >= columns(&text) + 3 {
            row = row.add(" · ", super::DIM).add(&text, style);
        }
        is_first = false;
    }
    row
}

/// All parts, on as many rows as they need.
pub(super) fn flowing(width: usize, between: &str, parts: impl IntoIterator<Item = (String, Style)>) -> Vec<Line<'static>> {
    let (mut lines, mut row) = (Vec::new(), Row::new(width));
    for (text, style) in parts {
        if row.spans.is_empty() {
            row = row.add(&text, style);
        } else if row.left() >= columns(&text) + columns(between) {
            row = row.add(between, super::DIM).add(&text, style);
        } else {
            lines.push(std::mem::replace(&mut row, Row::new(width).add(&text, style)).line());
        }
    }
    if !row.spans.is_empty() {
        lines.push(row.line());
    }
    lines
}

/// A text on several rows, broken between words, of which the last one says if there is more.
pub(super) fn paragraph(text: &str, width: usize, most: usize, style: Style) -> Vec<Line<'static>> {
    let wrapped = wrap(text, width.max(1), 0);
    let lines: Vec<&str> = wrapped.split('\n').collect();
    let rest = |at: usize| if at + 1 == most && lines.len() > most { format!("{} …", lines[at]) } else { lines[at].to_owned() };
    (0..lines.len().min(most)).map(|at| Row::new(width).add(&rest(at), style).line()).collect()
}
