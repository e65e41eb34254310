//! The report as one page that needs nothing but itself: no script, no font, no picture that is fetched; light and dark, on screens and on paper.

mod acceptance;
mod escape;
mod gates;
mod iterations;
mod plots;
mod summary;
mod time;

use std::fmt::Write as _;

use ralph_core::{report::Report, text::opening};

use escape::plain;

const STYLE: &str = include_str!("style.css");

/// Nothing may be loaded, whatever got into the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let mut out = String::with_capacity(256 * 1024);
    let title = format!("{} · {}", opening(&report.project, 60), opening(&report.id, 80));
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{}: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        plain(&title),
        plain(&opening(&report.sentence, 120))
    );
    out.push_str(&summary::header(report));
    out.push_str("<main>\n");
    let parts = [
        summary::needs(report),
        acceptance::shown(report),
        time::shown(report),
        plots::shown(report),
        gates::shown(report),
        summary::cost(report),
        iterations::refused(report),
        iterations::table(report),
        iterations::ways(report),
    ];
    out.push_str(&parts.concat());
    out.push_str("</main>\n");
    out.push_str(&summary::footer(report));
    out.push_str("</body>\n</html>\n");
    out
}

/// A part of the page under a heading.
fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{}</h2>\n{body}</section>\n", plain(heading))
}

/// `1 iteration`, `3 iterations`.
fn count(n: u64, one: &str) -> String {
    ralph_core::text::count(n, one, &format!("{one}s"))
}
