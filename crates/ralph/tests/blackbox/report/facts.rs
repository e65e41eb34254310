//! What has to stand in each form.

use std::fs;

use crate::report::{night, report};

#[test]
fn eyes_2_the_page_of_a_night() {
    let project = night();
    let page = report(&project, &["--html", "-"]);
    if let Some(folder) = std::env::var_os("RALPH_PICTURES") {
        fs::write(std::path::Path::new(&folder).join("night.html"), &page).unwrap();
        fs::write(std::path::Path::new(&folder).join("night.md"), report(&project, &["--markdown"])).unwrap();
        fs::write(std::path::Path::new(&folder).join("night.json"), report(&project, &["--json"])).unwrap();
    }
    assert!(page.contains("Complete after 12 iterations"), "{page}");
}
