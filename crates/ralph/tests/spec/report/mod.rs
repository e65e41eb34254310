//! `ralph report`: the page, the Markdown and the JSON of a loop that ran through the night, and of one that an attacker wrote.

mod facts;
mod looks;
mod signals;
mod written;

use ralph_testkit::{Project, Run, story};

use crate::common::RALPH;

/// A project in which the loop of the night lies.
fn night() -> Project {
    let project = Project::new();
    story::night(&project);
    project
}

/// Text that would like to be something else: mark-up, an address, a mention, a picture, another direction.
const HOSTILE: &str = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'><a href='javascript:alert(3)'>x</a> ![p](https://evil.example/p.png) \
@somebody #12 | cell | `code` <!-- \u{202e}\u{7}\u{1b}[31m&lt; ]]> style='x' \\ ";

/// The same loop with such a text in every place that an agent or a repository writes.
fn hostile() -> Project {
    let project = night();
    let journal = format!(".ralph/journal/{}.jsonl", story::ID);
    let spelled = serde_json::to_string(HOSTILE).unwrap();
    let spelled = spelled.trim_matches('"');
    let mut text = project.read(&journal);
    for place in [
        "cargo clippy -- -D warnings",
        "RFC 2822 parses",
        "1 of 6 checks fails",
        "WebFetch(domain:www.unicode.org)",
        "\"item\":\"F4",
        "Make `tidydate`",
    ] {
        assert!(text.contains(place), "{place}");
        text = text.replace(place, &format!("{place}{spelled}{}", "W".repeat(300)));
    }
    project.write(&journal, text + "not a record\n");
    let list = project.read("feature_list.json").replace("Month names", &format!("Month names{spelled}"));
    project.write("feature_list.json", list);
    let archive = format!(".ralph/archive/{}.md", story::ID);
    let file = project.read(&archive) + HOSTILE + "\n" + &"x".repeat(5_000) + "\n";
    project.write(&archive, file);
    project
}

fn command(project: &Project, args: &[&str]) -> Run {
    project.run(RALPH).arg("report").args(args)
}

/// What `ralph report` prints with these arguments; it has to succeed.
fn report(project: &Project, args: &[&str]) -> String {
    let out = command(project, args).output();
    assert!(out.success(), "{out:?}");
    out.stdout
}
