//! Will the agent be asked for permission in the middle of the night? Settings against the tools that a loop needs.

use ralph_engine::setup::permissions::{Fate, Permissions, TOOLS};

use super::{Case, Finding};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let permissions = Permissions::of_settings(&case.survey);
    let ignored = permissions.ignored_mode.as_ref().map(|(mode, file)| {
        let what =
            format!("permission mode \"{mode}\" in {} does not count: the client takes it from your own settings only", file.display());
        Finding::warning("permissions.ignored", what).advice("Set it in the user settings, or start the session with --permission-mode.")
    });
    let (asked, denied) = (permissions.of_fate(Fate::Asked), permissions.of_fate(Fate::Denied));
    ignored.into_iter().chain([of_fates(permissions.mode.as_deref(), &asked, &denied)]).collect()
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
