//! `ralph report`: the page, the Markdown and the JSON of a loop that ran through the night, and of some that attackers wrote.

mod facts;

use ralph_testkit::{Project, story};

use crate::common::RALPH;

/// A project in which the loop of the night lies.
fn night() -> Project {
    let project = Project::new();
    story::night(&project);
    project
}

/// What `ralph report` prints with these arguments; it has to succeed.
fn report(project: &Project, args: &[&str]) -> String {
    let out = project.run(RALPH).arg("report").args(args).output();
    assert!(out.success(), "{out:?}");
    out.stdout
}
