//! Will the agent be asked for permission in the middle of the night? Settings against the tools that a loop needs.

use ralph_core::config::FILE;
use ralph_engine::{
    ops::command_sources::{Named, Source},
    setup::permissions::{Fate, Permissions},
    sys::env,
};

use super::{Case, Finding, Severity};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let permissions = Permissions::of_settings(&case.survey);
    let ignored = permissions.ignored_mode.as_ref().map(|(mode, file)| {
        let what =
            format!("permission mode \"{mode}\" in {} does not count: the client takes it from your own settings only", file.display());
        Finding::warning("permissions.ignored", what).advice("Set it in the user settings, or start the session with --permission-mode.")
    });
    let (asked, denied) = (permissions.of_fate(Fate::Asked), permissions.of_fate(Fate::Denied));
    let mut of_sessions = of_fates(permissions.mode.as_deref(), &asked, &denied);
    if of_sessions.severity > Severity::Good {
        of_sessions.what.extend(of_runs(case));
    }
    ignored.into_iter().chain([of_sessions]).chain(ralph_allowed(case)).collect()
}

/// What else holds for sessions of `ralph run`, where a trusted `ralph.toml` gives them a mode of their own.
fn of_runs(case: &Case) -> Option<String> {
    let (sources, _) = Source::all(&case.project);
    let trusted = sources.iter().filter(|source| source.trust.is_trusted());
    let mode = trusted.flat_map(|source| &source.commands).find_map(Named::permission_mode)?;
    let (permissions, _) = Permissions::unattended(&case.survey, case.project.root(), Some(mode));
    let allowed = permissions.of_fate(Fate::Allowed);
    (!allowed.is_empty()).then(|| format!(". In sessions of `ralph run`, \"{mode}\" of {FILE} allows {}", allowed.join(", ")))
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
        let what = format!("{named}: {} may need your approval; without a terminal they are refused", asked.join(", "));
        return Finding::note("permissions", what).advice(ADVICE);
    }
    if mode == Some("bypassPermissions") {
        let what = format!("{named}: nothing is asked, and nothing is held back either");
        let finding = if env::is_container() { Finding::note } else { Finding::warning };
        return finding("permissions", what).advice("Use it in a container, or on a machine that you can afford to lose.");
    }
    Finding::good("permissions", format!("{named}: {} are allowed", Permissions::TOOLS.join(", ")))
}

/// A rule that lets the agent run any command of ralph's, or any command at all.
fn ralph_allowed(case: &Case) -> Option<Finding> {
    let rules = case.survey.lists(&["permissions", "allow"]);
    let of_ralph = rules.iter().find(|rule| {
        let command = rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
        let (program, args) = command.split_once([':', ' ']).unwrap_or((command, ""));
        let program = program.trim_end_matches('*').rsplit('/').next().unwrap_or_default();
        program == "ralph" && matches!(args.trim(), "*" | "") && command != "ralph"
    });
    if let Some(rule) = of_ralph {
        let what = format!(
            "{rule} is allowed, which is more than it seems: `ralph gate` and `ralph item done` run trusted commands without asking"
        );
        return Some(Finding::warning("permissions.ralph", what).advice(
            "Allow what the agent needs: \"Bash(ralph item:*)\", \"Bash(ralph status:*)\". docs/SECURITY.md says what ralph refuses in an agent's shell.",
        ));
    }
    let wide = rules.iter().find(|rule| matches!(rule.as_str(), "Bash" | "Bash(*)" | "Bash(:*)"))?;
    let what = format!("{wide} is allowed: what ralph refuses in an agent's shell prevents mistakes, not attacks");
    Some(Finding::note("permissions.ralph", what).advice("docs/SECURITY.md says what an agent with a shell can still do."))
}

const ADVICE: &str =
    "To let a loop work alone, in your settings: \"permissions\": {\"allow\": [\"Edit(./**)\", \"Bash\"]}, or narrower rules.";
