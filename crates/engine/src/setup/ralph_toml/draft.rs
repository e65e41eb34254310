//! A `ralph.toml` for a project that has none: the gates that were found, as text.

use std::fmt::Write as _;

use ralph_core::text::clean;

use super::detect::Proposal;

const HEADING: &str = "# What has to pass before a loop may end here. `ralph gate` runs it by hand.\n";

/// Building comes before testing, and the usual two minutes are short for both.
const LONGER: &str = "deadline = \"10m\"\n";

/// For projects whose client would ask: an unattended session has no one to ask.
const EDITS: &str = "\n[run]  # sessions of `ralph run` may edit files without asking\npermission_mode = \"acceptEdits\"\n";

impl Proposal {
    /// The `ralph.toml` that has these gates. `accept_edits`: sessions of `ralph run` could not edit files otherwise.
    pub(super) fn ralph_toml(proposals: &[Self], accept_edits: bool) -> String {
        let mut text = HEADING.to_owned();
        for Proposal { name, command, why, is_slow } in proposals {
            // The reason can name a file of the project, and a line break in that name must not end the comment.
            let _ = write!(text, "\n[[gate]]  # {}\nname = {}\ncommand = {}\n", clean(why), quoted(name), quoted(command));
            text.push_str(if *is_slow { LONGER } else { "" });
        }
        text.push_str(if accept_edits { EDITS } else { "" });
        text
    }
}

/// A TOML string: as it is between single quotes where that is easier to read, else between double quotes with what has to be escaped.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() && c != '\'';
    if text.contains(['"', '\\']) && text.chars().all(is_plain) {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => drop(write!(out, "\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_core::{
        config::Config,
        gate::{Check, Run},
    };

    fn proposal(name: &str, command: &str, why: &str) -> Proposal {
        Proposal { name: name.to_owned(), command: command.to_owned(), why: why.to_owned(), is_slow: false }
    }

    /// The commands of the gates, as they would be run.
    fn read(text: &str) -> Vec<(String, String)> {
        let of_gate = |gate: ralph_core::gate::Gate| match gate.check {
            Check::Command(command) => match command.run {
                Run::Shell(line) => (gate.name, line),
                Run::Argv(words) => panic!("{words:?}"),
            },
            other => panic!("{other:?}"),
        };
        let config = Config::parse(text.as_bytes()).unwrap_or_else(|problem| panic!("{problem}:\n{text}"));
        config.gates.into_iter().map(of_gate).collect()
    }

    #[test]
    fn u2_the_file_is_short_and_says_why() {
        let tests = Proposal { is_slow: true, ..proposal("tests", "npm test", "package.json has a script `test`") };
        let lint = proposal("lint", "npm run lint", "package.json has a script `lint`");
        let text = Proposal::ralph_toml(&[tests, lint], false);
        assert_eq!(
            text,
            "# What has to pass before a loop may end here. `ralph gate` runs it by hand.\n\n\
             [[gate]]  # package.json has a script `test`\nname = \"tests\"\ncommand = \"npm test\"\ndeadline = \"10m\"\n\n\
             [[gate]]  # package.json has a script `lint`\nname = \"lint\"\ncommand = \"npm run lint\"\n"
        );
    }

    /// No command is changed by its way through the file, and none of these makes the file unreadable.
    #[test]
    fn u2_commands_with_quotes_come_back_as_they_were() {
        for command in [
            "go list -f '{{.Dir}}/...' -m | xargs go test -v",
            r#"sh -c "a 'b' c""#,
            r#"echo "x""#,
            r"grep '\d' a\b",
            r"C:\tools\run",
            "a\nb\tc",
            "\u{1b}[31m \u{7f} \u{85} \u{1}x",
            "'''",
            "\"\"\"",
            "prüfe 世界 🚀 # no comment",
        ] {
            let text = Proposal::ralph_toml(&[proposal("tests", command, "x")], true);
            assert_eq!(read(&text), [("tests".to_owned(), command.to_owned())], "{text}");
        }
    }

    /// The name of a file cannot add a gate.
    #[test]
    fn u2_a_reason_stays_a_comment() {
        let why = "there is x\n[[gate]]\ncommand = \"touch pwned\"\r# \u{85}\u{2028}.sln";
        let text = Proposal::ralph_toml(&[proposal("tests", "dotnet test", why)], false);
        assert_eq!(read(&text), [("tests".to_owned(), "dotnet test".to_owned())], "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("[[gate]]")).count(), 1);
    }

    #[test]
    fn u2_sessions_of_a_run_may_edit_where_they_could_not_otherwise() {
        let text = Proposal::ralph_toml(&[proposal("tests", "x", "y")], true);
        assert_eq!(Config::parse(text.as_bytes()).unwrap().run.permission_mode.as_deref(), Some("acceptEdits"), "{text}");
    }
}
