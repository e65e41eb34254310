//! The terminal: printing, questions, widths, bars, and lines that are drawn in place.

pub(crate) mod ask;
pub(crate) mod bar;
pub(crate) mod live_lines;
pub(crate) mod one_line;
pub(crate) mod ui;
pub(crate) mod width;
