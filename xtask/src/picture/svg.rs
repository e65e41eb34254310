//! A recording as an SVG that plays by itself, without scripts and fonts from elsewhere.
//!
//! Everything is there and visible; only where animation is possible and wanted do style rules hide it until its time. So whoever cannot or
//! does not want to see it move sees the last screen.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use vt100::Color;

use super::record::{Look, Recording, Run};

/// Letters of 14 pixels are this wide in nearly every fixed-width font, and `textLength` makes the others fit.
const CELL: f64 = 8.4;
const LINE: f64 = 19.0;
const MARGIN: f64 = 20.0;
const BAR: f64 = 36.0;
/// How long the last screen stays before it all begins again.
const LAST: Duration = Duration::from_secs(8);

const FONT: &str = "ui-monospace,SFMono-Regular,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace";
const PAPER: &str = "#161b22";
const INK: &str = "#e6edf3";
const FAINT: &str = "#9198a1";

pub(crate) fn draw(recording: &Recording) -> String {
    let (width, height) = (f64::from(recording.columns) * CELL + 2.0 * MARGIN, f64::from(recording.rows) * LINE + BAR + MARGIN);
    let mut groups: BTreeMap<Duration, Vec<&Run>> = BTreeMap::new();
    for run in &recording.runs {
        groups.entry(run.at).or_default().push(run);
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"img\" aria-labelledby=\"title desc\" data-columns=\"{}\">",
        recording.columns
    );
    out.push_str("<!-- Made by `cargo xtask picture`. -->\n<title id=\"title\">ralph demo in a terminal</title>\n");
    let _ = writeln!(out, "<desc id=\"desc\">{}</desc>", escaped(&recording.lines.join("\n")));
    let _ = writeln!(out, "<style>\n{}{}</style>", looks(), motion(&groups, recording.length() + LAST));
    out.push_str(&window(width, height));
    for (n, runs) in groups.values().enumerate() {
        let _ = writeln!(out, "<g class=\"s s{n}\">{}</g>", runs.iter().map(|run| text(run)).collect::<String>());
    }
    out.push_str("</svg>\n");
    out
}

fn looks() -> String {
    let mut rules =
        format!("text{{font:14px {FONT};fill:{INK}}}.d{{fill:{FAINT}}}.b{{font-weight:700}}.bar{{fill:{FAINT};font-size:13px}}\n");
    for (index, name, value) in COLOURS {
        let _ = write!(rules, ".c{index}{{fill:{value}}}/* {name} */");
    }
    rules + "\n"
}

/// The colours of the terminal that the demo uses, as they read well on [`PAPER`].
const COLOURS: [(u8, &str, &str); 5] =
    [(1, "red", "#ff7b72"), (2, "green", "#56d364"), (3, "yellow", "#e3b341"), (5, "magenta", "#d2a8ff"), (6, "cyan", "#56d4dd")];

/// Hides each group until its time, over and over again.
fn motion(groups: &BTreeMap<Duration, Vec<&Run>>, length: Duration) -> String {
    let mut rules = "@media (prefers-reduced-motion:no-preference){\n".to_owned();
    let _ = writeln!(rules, ".s{{animation:{:.2}s step-end infinite}}", length.as_secs_f64());
    for (n, at) in groups.keys().enumerate() {
        let percent = 100.0 * at.as_secs_f64() / length.as_secs_f64();
        let _ = writeln!(rules, ".s{n}{{animation-name:k{n}}}@keyframes k{n}{{0%{{opacity:0}}{percent:.2}%{{opacity:1}}}}");
    }
    rules + "}\n"
}

/// The frame of a terminal's window, which looks the same on light and on dark pages.
fn window(width: f64, height: f64) -> String {
    let mut out = format!(
        "<rect x=\".5\" y=\".5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"10\" fill=\"{PAPER}\" stroke=\"#3d444d\"/>\n",
        width - 1.0,
        height - 1.0
    );
    for (n, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        let _ = write!(out, "<circle cx=\"{}\" cy=\"18\" r=\"5.5\" fill=\"{colour}\"/>", 21 + 19 * n);
    }
    let _ = writeln!(out, "<text class=\"bar\" x=\"{:.0}\" y=\"22.5\" text-anchor=\"middle\">ralph demo</text>", width / 2.0);
    out
}

fn text(run: &Run) -> String {
    let (x, y) = (MARGIN + f64::from(run.column) * CELL, BAR + (f64::from(run.row) + 0.8) * LINE);
    let length = match run.text.len() {
        n if n > 1 && run.text.is_ascii() => format!(" textLength=\"{}\"", short(f64::from(u32::try_from(n).unwrap_or(0)) * CELL)),
        _ => String::new(),
    };
    format!("<text x=\"{}\" y=\"{}\"{length}{}>{}</text>", short(x), short(y), class(run.look), escaped(&run.text))
}

fn class(look: Look) -> String {
    let mut names = Vec::new();
    if let Color::Idx(n) = look.colour {
        names.push(format!("c{n}"));
    }
    names.extend([(look.bold, "b"), (look.dim, "d")].iter().filter(|(is, _)| *is).map(|(_, name)| (*name).to_owned()));
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}

/// A number with at most one digit after the point.
fn short(n: f64) -> String {
    format!("{n:.1}").trim_end_matches(".0").to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::record::read;

    #[test]
    fn a_picture_shows_everything_and_hides_it_only_for_those_who_watch() {
        let parts =
            [(Duration::from_millis(500), b"<promise>A&B</promise>".to_vec()), (Duration::from_secs(2), b"\r\n\x1b[1;31mno".to_vec())];
        let svg = draw(&read(&parts, 5, 40).unwrap());
        assert!(svg.contains(">&lt;promise&gt;A&amp;B&lt;/promise&gt;</text>"), "{svg}");
        assert!(svg.contains("class=\"c1 b\">no</text>"), "{svg}");
        assert!(svg.contains("@keyframes k0{0%{opacity:0}5.00%{opacity:1}}"), "{svg}");
        let (still, moving) = svg.split_once("@media (prefers-reduced-motion:no-preference)").unwrap();
        assert!(!still.contains("opacity") && !still.contains("animation"), "{still}");
        assert!(!moving.contains("<script") && !svg.contains("url("), "{svg}");
    }
}
