//! The page as a browser shows it: in both themes, on a telephone, on paper. `RALPH_PICTURES=FOLDER` keeps the pictures.

use std::{fs, path::Path};

use ralph_testkit::{
    Project,
    browser::{Browser, Medium, Page, Theme},
    story,
};

use crate::report::{hostile, night, report};

/// How a page is looked at: a name for its picture, how wide, in which light, on what.
type Way = (&'static str, u32, Theme, Medium);
const LIGHT: Way = ("light", 1200, Theme::Light, Medium::Screen);
const DARK: Way = ("dark", 1200, Theme::Dark, Medium::Screen);
const NARROW: Way = ("narrow", 360, Theme::Dark, Medium::Screen);
const PRINT: Way = ("print", 720, Theme::Dark, Medium::Print);

fn keep(name: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("RALPH_PICTURES") {
        fs::write(Path::new(&folder).join(name), bytes).unwrap();
    }
}

/// Looks at a page in these ways, and finds nothing wrong with it.
fn looks_well(page: &Page<'_>, project: &Project, name: &str, ways: &[Way]) {
    let file = project.path(format!("{name}.html"));
    report(project, &["--html", file.to_str().unwrap()]);
    keep(&format!("{name}.html"), &fs::read(&file).unwrap());
    for &(way, width, theme, medium) in ways {
        page.size(width, 900);
        page.media(theme, medium);
        page.open(&file);
        keep(&format!("{name}-{way}.png"), &page.screenshot(true));
        let mut problems = page.contrast_problems();
        problems.extend(page.overflows());
        problems.extend(page.tiny_texts());
        problems.extend(page.console_errors());
        assert!(problems.is_empty(), "{name}, {way}:\n{}", problems.join("\n"));
        let requests = page.requests();
        assert!(requests.len() == 1 && requests[0].starts_with("file://"), "{name}, {way}: {requests:?}");
    }
    if std::env::var_os("RALPH_PICTURES").is_some() {
        keep(&format!("{name}.pdf"), &page.pdf());
    }
}

#[test]
fn eyes_2_the_page_looks_well_in_every_light_and_size() {
    let Some(browser) = Browser::shared() else { return };
    let page = browser.page();
    let project = night();
    looks_well(&page, &project, "night", &[LIGHT, DARK, NARROW, PRINT]);
    page.media(Theme::Light, Medium::Print);
    let is_shown = page.eval("[...document.querySelectorAll('details')].every(d => d.lastElementChild.getBoundingClientRect().height > 0)");
    assert_eq!(is_shown, true, "on paper nobody can open anything");
    looks_well(&page, &hostile(), "hostile", &[DARK, NARROW, PRINT]);
    let strangers =
        page.eval("document.querySelectorAll('script, img, a, link, iframe, object, embed, form, base, [onerror], [href], [src]').length");
    assert_eq!(strangers, 0, "what an attacker wrote is text");
}

#[test]
fn eyes_2_hundreds_of_rounds_look_as_well_as_three() {
    let Some(browser) = Browser::shared() else { return };
    let page = browser.page();
    for rounds in [3, 500] {
        let project = Project::without_git();
        project.write_journal("main-1", &story::long("main-1", rounds));
        looks_well(&page, &project, &format!("rounds-{rounds}"), &[LIGHT, NARROW]);
    }
}
