//! The client's permissions for an agent: the permission mode, and the rules.

use std::path::{Path, PathBuf};

use crate::setup::{
    places::Scope,
    survey::{Origin, Survey},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Allowed,
    /// The client asks; without a terminal the answer is no.
    Asked,
    Denied,
}

/// The mode and the rules that a session would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// `None`: the client's own.
    pub mode: Option<String>,
    /// A mode in the project's settings that the client accepts only from the user's own; and its file.
    pub ignored_mode: Option<(String, PathBuf)>,
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

impl Permissions {
    /// The tools that nearly every task needs.
    pub const TOOLS: [&str; 3] = ["Edit", "Write", "Bash"];

    pub fn of_settings(survey: &Survey) -> Self {
        let (mode, ignored_mode) = mode(survey);
        let list = |name: &str| survey.lists(&["permissions", name]);
        Permissions { mode, ignored_mode, allow: list("allow"), ask: list("ask"), deny: list("deny") }
    }

    /// The same for an unattended session. Rules that came with the project count there only in a trusted folder; also returns how many do not count.
    pub fn unattended(survey: &Survey, folder: &Path, mode: Option<&str>) -> (Self, usize) {
        let all = Permissions::of_settings(survey);
        let allow = if survey.trusts(folder) { all.allow.clone() } else { survey.lists_without_trust(&["permissions", "allow"], folder) };
        let ignored = all.allow.len() - allow.len();
        match mode {
            Some(mode) => (Permissions { mode: Some(mode.to_owned()), ignored_mode: None, allow, ..all }, ignored),
            None => (Permissions { allow, ..all }, ignored),
        }
    }

    pub fn fate(&self, tool: &str) -> Fate {
        match () {
            () if names(&self.deny, tool) => Fate::Denied,
            () if names(&self.ask, tool) => Fate::Asked,
            () if names(&self.allow, tool) => Fate::Allowed,
            () => by_mode(self.mode.as_deref(), tool),
        }
    }

    /// The [`Permissions::TOOLS`] of this fate.
    pub fn of_fate(&self, wanted: Fate) -> Vec<&'static str> {
        Permissions::TOOLS.into_iter().filter(|tool| self.fate(tool) == wanted).collect()
    }

    pub(crate) fn has_command_rules(&self) -> bool {
        self.allow.iter().any(|rule| rule.starts_with("Bash"))
    }

    /// The rules that would allow the lines of gates, where none does. A line that cannot be allowed as a whole gets none.
    pub fn missing_rules(&self, lines: &[String]) -> Vec<String> {
        let mut rules: Vec<String> = Vec::new();
        for line in lines {
            let of_line: Option<Vec<String>> = self.unallowed(line).into_iter().map(rule).collect();
            for rule in of_line.into_iter().flatten().flat_map(|rule| spellings(&rule)) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
        rules
    }

    /// The commands of a shell line that no rule allows, split as the client splits them.
    pub(crate) fn unallowed<'l>(&self, line: &'l str) -> Vec<&'l str> {
        if self.fate("Bash") == Fate::Allowed {
            return Vec::new();
        }
        let parts = line.split(['|', '&', ';', '\n']).map(str::trim).filter(|part| !part.is_empty());
        parts.filter(|part| !self.allow.iter().any(|rule| covers_command(rule, part))).collect()
    }
}

/// Test runners: their arguments choose which tests run, so a rule for one leaves them free. Every other command is allowed only as the gate has it: further
/// words can be further targets (`make test deploy`).
const TEST_RUNNERS: [&str; 20] = [
    "bun test",
    "cargo nextest run",
    "cargo test",
    "deno test",
    "dotnet test",
    "go test",
    "jest",
    "mix test",
    "mocha",
    "npm test",
    "phpunit",
    "pnpm test",
    "pytest",
    "rspec",
    "swift test",
    "unittest",
    "vendor/bin/phpunit",
    "vitest",
    "vitest run",
    "yarn test",
];

/// What starts a test runner.
const STARTERS: [&str; 11] = [
    "bundle exec ",
    "bunx ",
    "npx ",
    "pipenv run ",
    "pnpm exec ",
    "poetry run ",
    "python -m ",
    "python3 -m ",
    "uv run ",
    "uv run python -m ",
    "yarn ",
];

/// The rule that allows one command of a gate. `None`: it has something that a shell or a rule would read as more than a word.
fn rule(command: &str) -> Option<String> {
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:=,@".contains(c));
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let sets_variable = words.first().is_none_or(|program| program.contains('='));
    if sets_variable || !words.iter().all(|word| is_plain(word)) {
        return None;
    }
    let command = words.join(" ");
    let begins = |runner: &str| command.strip_prefix(runner).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let starters = STARTERS.iter().copied().chain([""]);
    let runners = starters.flat_map(|starter| TEST_RUNNERS.iter().map(move |runner| format!("{starter}{runner}")));
    Some(match runners.filter(|runner| begins(runner)).max_by_key(String::len) {
        Some(runner) => format!("Bash({runner}:*)"),
        None => format!("Bash({command})"),
    })
}

/// The rule, and the ones for the same test runner by its other names: agents type the one that they know.
fn spellings(rule: &str) -> Vec<String> {
    const SAME: [&[&str]; 2] = [
        &["Bash(pytest:*)", "Bash(python -m pytest:*)", "Bash(python3 -m pytest:*)"],
        &["Bash(python -m unittest:*)", "Bash(python3 -m unittest:*)"],
    ];
    let same = SAME.iter().find(|same| same.contains(&rule)).into_iter().flat_map(|same| same.iter());
    let mut all = vec![rule.to_owned()];
    all.extend(same.filter(|other| **other != rule).map(|other| (*other).to_owned()));
    all
}

/// Whether a rule like `Bash(npm test:*)` or `Bash(npm *)` allows this command.
fn covers_command(rule: &str, command: &str) -> bool {
    let Some(pattern) = rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let begins = |prefix: &str| command.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    match (pattern.strip_suffix(":*"), pattern.strip_suffix(" *")) {
        (Some(prefix), _) | (None, Some(prefix)) => begins(prefix),
        (None, None) => pattern == command,
    }
}

/// The mode of sessions here. Some modes count in the user's own settings only.
fn mode(survey: &Survey) -> (Option<String>, Option<(String, PathBuf)>) {
    let Some((mode, file)) = survey.says(&["permissions", "defaultMode"]) else { return (None, None) };
    let Some(mode) = mode.as_str().map(str::to_owned) else { return (None, None) };
    let of_user = matches!(file.origin, Origin::Managed | Origin::Settings(Scope::User));
    if !of_user && matches!(mode.as_str(), "auto" | "bypassPermissions") {
        (None, Some((mode, file.path.clone())))
    } else {
        (Some(mode), None)
    }
}

/// Whether a rule covers a whole tool. A rule for editing files covers writing them, if it names files.
fn names(rules: &[String], tool: &str) -> bool {
    let covers = |rule: &str| match rule.split_once('(').map_or((rule, ""), |(name, rest)| (name, rest.trim_end_matches(')'))) {
        (name, "" | "*" | "**" | "./**" | "/**") if name == tool => true,
        ("Edit", "**" | "./**" | "/**") => tool == "Write",
        _ => false,
    };
    rules.iter().any(|rule| covers(rule))
}

fn by_mode(mode: Option<&str>, tool: &str) -> Fate {
    match (mode, tool) {
        (Some("bypassPermissions" | "auto"), _) | (Some("acceptEdits"), "Edit" | "Write") => Fate::Allowed,
        (Some("dontAsk"), _) => Fate::Denied,
        _ => Fate::Asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_6_a_line_is_taken_apart_and_each_command_needs_its_rule() {
        let with = |rules: &[&str]| Permissions {
            mode: Some("acceptEdits".to_owned()),
            ignored_mode: None,
            allow: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            ask: Vec::new(),
            deny: Vec::new(),
        };
        let line = "npm ci && npm test -- --all | tee log";
        assert_eq!(with(&[]).unallowed(line), ["npm ci", "npm test -- --all", "tee log"]);
        assert_eq!(with(&["Bash(npm test:*)", "Bash(npm ci)"]).unallowed(line), ["tee log"]);
        assert_eq!(with(&["Bash(npm *)", "Bash(tee:*)"]).unallowed(line), Vec::<&str>::new());
        assert_eq!(with(&["Bash(np:*)"]).unallowed("npm ci"), ["npm ci"], "a word is a word");
        assert_eq!(with(&["Bash"]).unallowed(line), Vec::<&str>::new());
        let anything = Permissions { mode: Some("bypassPermissions".to_owned()), ..with(&[]) };
        assert_eq!(anything.unallowed(line), Vec::<&str>::new());
    }

    #[test]
    fn u2_a_rule_allows_the_command_of_a_gate_and_no_other() {
        for (command, wanted) in [
            ("python3 -m pytest", Some("Bash(python3 -m pytest:*)")),
            ("python3 -m unittest discover -s tests", Some("Bash(python3 -m unittest:*)")),
            ("uv run pytest -q", Some("Bash(uv run pytest:*)")),
            ("cargo test --workspace", Some("Bash(cargo test:*)")),
            ("go test ./...", Some("Bash(go test:*)")),
            ("npx vitest run", Some("Bash(npx vitest run:*)")),
            ("npm test", Some("Bash(npm test:*)")),
            // These can do more than test, given one word more.
            ("npm run test:unit", Some("Bash(npm run test:unit)")),
            ("python3 manage.py test", Some("Bash(python3 manage.py test)")),
            ("make test", Some("Bash(make test)")),
            ("./gradlew --console=plain test", Some("Bash(./gradlew --console=plain test)")),
            ("cargo clippy --all-targets -- -D warnings", Some("Bash(cargo clippy --all-targets -- -D warnings)")),
            ("./check.sh", Some("Bash(./check.sh)")),
            ("pytest-watch", Some("Bash(pytest-watch)")),
            // And these are not plain.
            ("FOO=1 make", None),
            ("$(evil) x", None),
            ("sh -c 'make test'", None),
            ("make *", None),
            ("make test)", None),
            ("make test > /etc/passwd", None),
            ("make\ttest", None),
            ("", None),
        ] {
            assert_eq!(rule(command).as_deref(), wanted, "{command}");
        }
    }

    #[test]
    fn u2_a_line_of_which_a_part_cannot_be_allowed_gets_no_rule() {
        let none = Permissions { mode: None, ignored_mode: None, allow: Vec::new(), ask: Vec::new(), deny: Vec::new() };
        let missing = |line: &str| none.missing_rules(&[line.to_owned()]);
        assert_eq!(missing("npm ci && npm test"), ["Bash(npm ci)", "Bash(npm test:*)"]);
        assert_eq!(missing("python -m unittest discover -s tests"), ["Bash(python -m unittest:*)", "Bash(python3 -m unittest:*)"]);
        assert_eq!(missing("npm test && sh -c \"$X\""), Vec::<String>::new());
        assert_eq!(missing("go list -f '{{.Dir}}/...' -m | xargs go test -v"), Vec::<String>::new());
    }
}
