//! The browser that looks at pages: it sees the faults that it is there to see, and none where there is none.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "test code")]

use std::path::{Path, PathBuf};

use ralph_testkit::{Browser, Medium, Page, Theme};

struct File {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

fn file(html: &str) -> File {
    let folder = tempfile::tempdir().unwrap();
    // Whatever the folder is called.
    let path = folder.path().join("a page #1 ü.html");
    std::fs::write(&path, format!("<!doctype html><meta charset=utf-8><title>t</title><body style='margin:0;font:16px sans-serif'>{html}"))
        .unwrap();
    File { path, _folder: folder }
}

fn open<'a>(browser: &'a Browser, html: &str) -> Page<'a> {
    let (page, file) = (browser.page(), file(html));
    page.open(&file.path);
    page
}

/// Lines that begin and contain as said, and no others.
fn assert_found(found: &[String], expected: &[&[&str]]) {
    let fits = |line: &String, parts: &&[&str]| line.starts_with(parts[0]) && parts.iter().all(|part| line.contains(part));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    assert!(found.iter().zip(expected).all(|(line, parts)| fits(line, parts)), "{found:#?}");
}

#[test]
fn a_text_that_is_hard_to_read_is_seen() {
    let Some(browser) = Browser::shared() else { return };
    let page = open(
        browser,
        "<p style='color:#777'>grey</p><p style='color:#767676'>just readable</p>
         <p style='color:#888;font-size:24px'>large</p><p style='color:#888;font-size:19px;font-weight:700'>bold</p>
         <div style='background:#000;color:#333'>dark <b style='color:#fff'>white</b></div>
         <div style='background:#000'><p style='background:rgba(255,255,255,.5);color:#fff'>veiled</p></div>
         <p style='opacity:.4'>faded</p><p style='color:oklch(0.8 0 0)'>modern</p>
         <p style='background:linear-gradient(#000,#fff);color:#fff'>gradient</p>
         <p hidden style='color:#fff'>hidden</p><div style='visibility:hidden;color:#fff'>invisible</div>
         <details><summary>more</summary><p style='color:#eee'>closed</p></details>",
    );
    assert_found(
        &page.contrast_problems(),
        &[
            &["4.48 \"grey\" <p>: #777777 on #ffffff"],
            &["1.66 \"dark\" <div>: #333333 on #000000"],
            &["3.9", "\"veiled\""],
            &["2.8", "\"faded\" <p>: #999999 on #ffffff"],
            &["1.", "\"modern\""],
            &["1.00 \"gradient\""],
        ],
    );
}

#[test]
fn a_text_in_a_drawing_is_seen_on_what_is_drawn_below_it() {
    let Some(browser) = Browser::shared() else { return };
    let page = open(
        browser,
        "<svg viewBox='0 0 100 50' width=400 height=200>
         <text x=5 y=10 font-size=4 fill=white>on nothing</text>
         <rect x=0 y=12 width=100 height=12 fill=#036 /><text x=5 y=20 font-size=4 fill=white>on a bar</text>
         <text x=5 y=30 font-size=2.5>tiny</text>
         <g opacity=.2><rect x=0 y=32 width=100 height=12 fill=#036 /></g><text x=5 y=40 font-size=4 fill=white>on a pale bar</text>
         <text x=80 y=48 font-size=8>sticks out</text></svg>",
    );
    assert_found(&page.contrast_problems(), &[&["1.00 \"on nothing\" <text>"], &["1.", "\"on a pale bar\""]]);
    assert_found(&page.tiny_texts(), &[&["10.0 px \"tiny\" <text>"]]);
    assert_found(&page.overflows(), &[&["<text> \"sticks out\": the drawing ends"]]);
}

#[test]
fn what_is_too_wide_is_seen() {
    let Some(browser) = Browser::shared() else { return };
    let html = "<p>fine</p><div style='overflow-x:auto'><div style='width:900px'>scrolls</div></div>
        <div style='width:80px;white-space:nowrap' id=a>far too long for its place</div>
        <div style='width:80px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis'>cut on purpose, with dots</div>
        <div style='height:20px;overflow:hidden' class=b>one<br>two<br>three</div>";
    let page = open(browser, html);
    page.size(600, 400);
    let inside = [["<div#a>", "its content is"].as_slice(), ["<div.b> \"onetwothree\"", "higher"].as_slice()];
    assert_found(&page.overflows(), &inside);
    let page = open(browser, &format!("{html}<section><p style='width:700px'>wide</p></section>"));
    page.size(600, 400);
    let wide =
        [["the page is 100 px wider than the window"].as_slice(), inside[0], inside[1], ["<p> \"wide\": it ends 100 px right"].as_slice()];
    assert_found(&page.overflows(), &wide);
}

#[test]
fn light_dark_paper_and_width_change_what_is_seen() {
    let Some(browser) = Browser::shared() else { return };
    let page = open(
        browser,
        "<style>:root{color-scheme:light dark} .l{color:#333} @media print{.l{color:#ccc}} @media (max-width:500px){h1{width:600px}}</style>
         <h1>Title</h1><p class=l>text</p>",
    );
    assert_eq!(page.contrast_problems(), [""; 0]);
    page.media(Theme::Dark, Medium::Screen);
    assert_found(&page.contrast_problems(), &[&["1.", "\"text\" <p.l>: #333333 on #1"]]);
    page.media(Theme::Light, Medium::Print);
    assert_found(&page.contrast_problems(), &[&["1.", "\"text\" <p.l>: #cccccc on #ffffff"]]);
    page.media(Theme::Light, Medium::Screen);
    assert_eq!(page.overflows(), [""; 0]);
    page.size(400, 600);
    assert_eq!(page.eval("[innerWidth, innerHeight]"), serde_json::json!([400, 600]));
    assert_eq!(page.overflows().len(), 2);
}

#[test]
fn pictures_and_paper_come_out_while_others_are_made() {
    let Some(browser) = Browser::shared() else { return };
    let photograph = || {
        let page = open(browser, "<div style='height:2000px;background:#fed'>high</div>");
        page.size(300, 200);
        (page.screenshot(false), page.screenshot(true), page.pdf())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..3).map(|_| scope.spawn(photograph)).collect();
        for (window, whole, paper) in all.into_iter().map(|one| one.join().unwrap()) {
            assert_eq!((png_size(&window), png_size(&whole)), ((300, 200), (300, 2000)));
            assert!(paper.starts_with(b"%PDF-") && paper.len() > 500);
        }
    });
}

fn png_size(png: &[u8]) -> (u32, u32) {
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn what_a_page_asks_for_and_what_goes_wrong_in_it_is_known() {
    let Some(browser) = Browser::shared() else { return };
    let page = open(browser, "<p>nothing but itself</p>");
    assert_eq!(page.requests().len(), 1, "{:?}", page.requests());
    assert!(page.requests()[0].ends_with("a%20page%20%231%20%C3%BC.html"), "{:?}", page.requests());
    assert_eq!(page.console_errors(), [""; 0]);
    let bad = file("<img src='http://127.0.0.1:9/picture.png'><script>console.error('told', 7); nowhere()</script>");
    page.open(&bad.path);
    assert!(page.requests().contains(&"http://127.0.0.1:9/picture.png".to_owned()), "{:?}", page.requests());
    let errors = page.console_errors().join("\n");
    assert!(errors.contains("told 7") && errors.contains("nowhere is not defined") && errors.contains("127.0.0.1:9"), "{errors}");
}

#[test]
fn a_browser_that_is_dropped_leaves_nothing() {
    let Some(browser) = Browser::start() else { return };
    let page = browser.page();
    assert_eq!(page.eval("Promise.resolve(6 * 7)"), 42);
    drop(page);
    let profile = browser.profile().to_owned();
    assert!(profile.exists() && is_named_by_a_process(&profile));
    drop(browser);
    assert!(!profile.exists() && !is_named_by_a_process(&profile));
}

fn is_named_by_a_process(path: &Path) -> bool {
    let lines = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(&*path.to_string_lossy()))
}
