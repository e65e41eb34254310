//! Will the agent be asked for permission in the middle of the night? Settings against the tools that a loop needs.

use ralph_engine::setup::{places::Scope, survey::Origin};

use super::{Case, Finding};

/// What nearly every task needs: changing files and running commands.
const TOOLS: [&str; 3] = ["Edit", "Write", "Bash"];

/// What happens when the agent wants to use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Allowed,
    /// The client asks; at night nobody answers, and without a terminal the answer is no.
    Asked,
    Denied,
}

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let (mode, ignored) = mode(case);
    let mut findings: Vec<Finding> = ignored.into_iter().collect();
    let list = |name: &str| case.survey.lists(&["permissions", name]);
    let (allow, ask, deny) = (list("allow"), list("ask"), list("deny"));
    let fate = |tool: &str| match () {
        () if names(&deny, tool) => Fate::Denied,
        () if names(&ask, tool) => Fate::Asked,
        () if names(&allow, tool) => Fate::Allowed,
        () => by_mode(mode.as_deref(), tool),
    };
    let of = |wanted: Fate| -> Vec<&str> { TOOLS.into_iter().filter(|tool| fate(tool) == wanted).collect() };
    findings.push(of_fates(mode.as_deref(), &of(Fate::Asked), &of(Fate::Denied)));
    findings
}

fn of_fates(mode: Option<&str>, asked: &[&str], denied: &[&str]) -> Finding {
    let named = mode.map_or_else(|| "the client's own permission mode".to_owned(), |mode| format!("permission mode \"{mode}\""));
    if mode == Some("plan") {
        return Finding::warning("permissions", format!("{named}: the agent may change nothing, so no loop gets anywhere")).advice(
            "Set \"permissions.defaultMode\" to \"acceptEdits\", or start the session with `claude --permission-mode acceptEdits`.",
        );
    }
    if !denied.is_empty() {
        let what = format!("{named}: {} will be refused, and the loop goes on without", denied.join(", "));
        return Finding::warning("permissions", what).advice(ADVICE);
    }
    if !asked.is_empty() {
        let what = format!(
            "{named}: {} can wait for your yes in the middle of the night, and without a terminal the answer is no",
            asked.join(", ")
        );
        return Finding::note("permissions", what).advice(ADVICE);
    }
    if mode == Some("bypassPermissions") {
        return Finding::note("permissions", format!("{named}: nothing is asked, and nothing is held back either"))
            .advice("Use it in a container, or on a machine that you can lose.");
    }
    Finding::good("permissions", format!("{named}: {} are allowed", TOOLS.join(", ")))
}

const ADVICE: &str = "To let a loop work alone: \"permissions\": {\"allow\": [\"Edit(./**)\", \"Bash\"]} in your settings, or narrower rules for the commands it needs.";

/// The mode that sessions here start in. Some modes count in the user's own settings only.
fn mode(case: &Case) -> (Option<String>, Option<Finding>) {
    let Some((mode, file)) = case.survey.says(&["permissions", "defaultMode"]) else { return (None, None) };
    let Some(mode) = mode.as_str() else { return (None, None) };
    let of_user = matches!(file.origin, Origin::Managed | Origin::Settings(Scope::User));
    if !of_user && matches!(mode, "auto" | "bypassPermissions") {
        let what = format!(
            "permission mode \"{mode}\" in {} does not count: the client takes it from your own settings only",
            file.path.display()
        );
        return (
            None,
            Some(
                Finding::warning("permissions.ignored", what)
                    .advice("Set it in the user settings, or start the session with --permission-mode."),
            ),
        );
    }
    (Some(mode.to_owned()), None)
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
