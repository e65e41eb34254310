//! Will the agent be asked for permission in the middle of the night? Settings against the tools that a loop needs.

use serde_json::Value;

use super::{Case, Finding};

/// What nearly every task needs: changing files and running commands.
const TOOLS: [&str; 3] = ["Edit", "Write", "Bash"];

/// What happens when the agent wants to use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Allowed,
    /// The client asks; nobody answers at night.
    Asked,
    Denied,
}

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let mode = case.survey.says(&["permissions", "defaultMode"]).and_then(|(mode, _)| mode.as_str().map(str::to_owned));
    let list = |name: &str| case.survey.lists(&["permissions", name]);
    let (allow, ask, deny) = (list("allow"), list("ask"), list("deny"));
    let fate = |tool: &str| {
        if names(&deny, tool) {
            Fate::Denied
        } else if names(&ask, tool) {
            Fate::Asked
        } else if names(&allow, tool) {
            Fate::Allowed
        } else {
            by_mode(mode.as_deref(), tool)
        }
    };
    let of = |wanted: Fate| -> Vec<&str> { TOOLS.into_iter().filter(|tool| fate(tool) == wanted).collect() };
    let named = mode.as_deref().map_or_else(|| "the client's own".to_owned(), |mode| format!("\"{mode}\""));
    let (asked, denied) = (of(Fate::Asked), of(Fate::Denied));
    vec![if mode.as_deref() == Some("plan") {
        Finding::warning("permissions", "the permission mode is \"plan\": the agent may change nothing, so no loop gets anywhere")
            .advice("Start the session in another mode, or set \"permissions.defaultMode\" to \"acceptEdits\".")
    } else if !denied.is_empty() {
        let what = format!("permission mode {named}: {} will be refused, and the loop goes on without", denied.join(", "));
        Finding::warning("permissions", what).advice(allowing(&denied))
    } else if !asked.is_empty() {
        let what = format!("permission mode {named}: {} will wait for your yes, however late it is", asked.join(", "));
        Finding::note("permissions", what).advice(allowing(&asked))
    } else if mode.as_deref() == Some("bypassPermissions") {
        Finding::note("permissions", "permission mode \"bypassPermissions\": nothing is asked, and nothing is held back either")
            .advice("Use it in a container or on a machine that you can lose.")
    } else {
        Finding::good("permissions", format!("permission mode {named}: {} are allowed", TOOLS.join(", ")))
    }]
}

/// A whole tool, by its bare name; a rule with parentheses covers a part of it only.
fn names(rules: &[String], tool: &str) -> bool {
    rules.iter().any(|rule| rule == tool || *rule == format!("{tool}(*)"))
}

fn by_mode(mode: Option<&str>, tool: &str) -> Fate {
    match (mode, tool) {
        (Some("bypassPermissions" | "auto"), _) | (Some("acceptEdits"), "Edit" | "Write") => Fate::Allowed,
        (Some("dontAsk"), _) => Fate::Denied,
        _ => Fate::Asked,
    }
}

fn allowing(tools: &[&str]) -> String {
    let rules: Vec<Value> = tools.iter().map(|tool| (*tool).into()).collect();
    format!("To let a loop work alone: \"permissions\": {{\"allow\": {}}} in your settings, or narrower rules.", Value::from(rules))
}
