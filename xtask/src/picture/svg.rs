//! A recording as an SVG, still or playing by itself, without scripts and fonts from elsewhere.
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

/// Whether a picture plays what was recorded, or shows its last screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    Plays,
    Still,
}

/// Draws what a command showed.
pub(crate) fn draw(recording: &Recording, command: &str, how: Motion) -> String {
    let (width, height) = (f64::from(recording.columns) * CELL + 2.0 * MARGIN, f64::from(recording.rows) * LINE + BAR + MARGIN);
    let mut groups: BTreeMap<Duration, Vec<&Run>> = BTreeMap::new();
    for run in &recording.runs {
        groups.entry(if how == Motion::Plays { run.at } else { Duration::ZERO }).or_default().push(run);
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"img\" aria-labelledby=\"title desc\" data-columns=\"{}\">",
        recording.columns
    );
    let _ = writeln!(out, "<!-- Made by `cargo xtask picture`. -->\n<title id=\"title\">{command} in a terminal</title>");
    let _ = writeln!(out, "<desc id=\"desc\">{}</desc>", escaped(&recording.lines.join("\n")));
    let motion = if how == Motion::Plays { motion(&groups, recording.length() + LAST) } else { String::new() };
    let _ = writeln!(out, "<style>\n{}{motion}</style>", looks());
    out.push_str(&window(width, height, command));
    for (n, runs) in groups.values().enumerate() {
        let _ = writeln!(out, "<g class=\"s s{n}\">{}</g>", runs.iter().map(|run| drawn(run)).collect::<String>());
    }
    out.push_str("</svg>\n");
    out
}

fn looks() -> String {
    let mut rules = format!(
        "text{{font:14px {FONT};white-space:pre}}text,.i{{fill:{INK}}}.p{{fill:{PAPER}}}.d{{fill:{FAINT}}}.b{{font-weight:700}}.bar{{fill:{FAINT};font-size:13px}}.f{{opacity:.35}}\n"
    );
    for (index, name, value) in COLOURS {
        let _ = write!(rules, ".c{index}{{fill:{value}}}/* {name} */");
    }
    rules + "\n"
}

/// The colours of the terminal that ralph uses, as they read well on [`PAPER`].
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
fn window(width: f64, height: f64, command: &str) -> String {
    let mut out = format!(
        "<rect x=\".5\" y=\".5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"10\" fill=\"{PAPER}\" stroke=\"#3d444d\"/>\n",
        width - 1.0,
        height - 1.0
    );
    for (n, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        let _ = write!(out, "<circle cx=\"{}\" cy=\"18\" r=\"5.5\" fill=\"{colour}\"/>", 21 + 19 * n);
    }
    let _ = writeln!(out, "<text class=\"bar\" x=\"{:.0}\" y=\"22.5\" text-anchor=\"middle\">{command}</text>", width / 2.0);
    out
}

fn drawn(run: &Run) -> String {
    let paper = if run.look.has_paper() { rect(run, (0.0, 1.0), &paper(run.look)) } else { String::new() };
    let sign = run.text.chars().next().unwrap_or(' ');
    paper + &block(sign).map_or_else(|| text(run), |part| rect(run, part, &class(run.look, sign == '░')))
}

/// The part of a line's height that a sign fills, from the top on. Fonts differ in how they draw blocks, and leave gaps between them.
fn block(sign: char) -> Option<(f64, f64)> {
    match sign {
        '▁'..='█' => Some((1.0 - f64::from(u32::from(sign) - 0x2580) / 8.0, 1.0)),
        '░' => Some((0.0, 1.0)),
        '─' => Some((0.5, 0.56)),
        _ => None,
    }
    // Bars in neighbouring rows do not touch.
    .map(|(from, to)| if sign == '─' { (from, to) } else { (0.14 + 0.76 * from, 0.14 + 0.76 * to) })
}

fn rect(run: &Run, (from, to): (f64, f64), class: &str) -> String {
    let class = if class.is_empty() { " class=\"i\"" } else { class };
    let (x, y) = (MARGIN + f64::from(run.column) * CELL, BAR + (f64::from(run.row) + from) * LINE);
    format!("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{class}/>", short(x), short(y), short(width(run)), short((to - from) * LINE))
}

fn text(run: &Run) -> String {
    let (x, y) = (MARGIN + f64::from(run.column) * CELL, BAR + (f64::from(run.row) + 0.8) * LINE);
    let length = if run.text.len() > 1 && run.text.is_ascii() { format!(" textLength=\"{}\"", short(width(run))) } else { String::new() };
    format!("<text x=\"{}\" y=\"{}\"{length}{}>{}</text>", short(x), short(y), class(run.look, false), escaped(&run.text))
}

fn width(run: &Run) -> f64 {
    f64::from(u32::try_from(run.text.chars().count()).unwrap_or(0)) * CELL
}

fn class(look: Look, faded: bool) -> String {
    let ink = if look.reversed { look.paper } else { look.colour };
    let mut names: Vec<String> = name(ink).or_else(|| look.reversed.then(|| "p".to_owned())).into_iter().collect();
    names.extend([(look.bold, "b"), (look.dim, "d"), (faded, "f")].iter().filter(|(is, _)| *is).map(|(_, name)| (*name).to_owned()));
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}

fn paper(look: Look) -> String {
    let paper = if look.reversed { look.colour } else { look.paper };
    name(paper).map(|name| format!(" class=\"{name}\"")).unwrap_or_default()
}

fn name(colour: Color) -> Option<String> {
    if let Color::Idx(n) = colour { Some(format!("c{n}")) } else { None }
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
        let svg = draw(&read(&parts, 5, 40).unwrap(), "ralph demo", Motion::Plays);
        assert!(svg.contains(">&lt;promise&gt;A&amp;B&lt;/promise&gt;</text>"), "{svg}");
        assert!(svg.contains("class=\"c1 b\">no</text>"), "{svg}");
        assert!(svg.contains("@keyframes k0{0%{opacity:0}5.00%{opacity:1}}"), "{svg}");
        let (still, moving) = svg.split_once("@media (prefers-reduced-motion:no-preference)").unwrap();
        assert!(!still.contains("opacity:0") && !still.contains("animation"), "{still}");
        assert!(!moving.contains("<script") && !svg.contains("url("), "{svg}");
    }

    #[test]
    fn a_still_picture_does_not_move_and_has_bars_and_reversed_keys() {
        let parts = [(Duration::ZERO, "\x1b[32m██\x1b[0m".into()), (Duration::from_secs(1), "\r\n\x1b[7m q \x1b[0m".into())];
        let svg = draw(&read(&parts, 5, 40).unwrap(), "ralph watch", Motion::Still);
        assert!(!svg.contains("animation") && svg.contains(">ralph watch</text>"), "{svg}");
        assert!(svg.contains("width=\"16.8\" height=\"14.4\" class=\"c2\"/>"), "{svg}");
        assert!(svg.contains("class=\"i\"/><text x=\"20\" y=\"70.2\" textLength=\"25.2\" class=\"p\"> q </text>"), "{svg}");
    }
}
