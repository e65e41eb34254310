//! What the report looks like in a browser.

use std::path::Path;

use ralph_testkit::{
    Project,
    browser::{Browser, Medium, Theme},
    story,
};

use crate::{Result, picture::Made};

pub(super) const FILES: [&str; 2] = ["docs/report-light.png", "docs/report-dark.png"];

/// The top of the page.
const SIZE: (u32, u32) = (1040, 1300);

/// The page of a night, in both lights. None where there is no browser: that was said.
pub(super) fn report(ralph: &Path) -> Result<Vec<Made>> {
    let Some(browser) = Browser::start() else { return Ok(Vec::new()) };
    let project = Project::at_home(story::NAME);
    story::night(&project);
    let written = project.run(ralph).args(["report", "--html", "report.html"]).output();
    if !written.success() {
        return Err(written.stderr.into());
    }
    let page = browser.page();
    page.size(SIZE.0, SIZE.1);
    let made = FILES.into_iter().zip([Theme::Light, Theme::Dark]).map(|(file, theme)| {
        page.media(theme, Medium::Screen);
        page.open(project.path("report.html"));
        Made { file, bytes: page.screenshot(false), most: 200_000 }
    });
    Ok(made.collect())
}
