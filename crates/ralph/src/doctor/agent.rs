//! This program and the client that calls it.

use ralph_core::text::opening;
use ralph_engine::hosts::{
    Version,
    claude::program::{find, said_version},
};

use super::{Case, Finding, agents};

pub(super) fn check(case: &Case) -> Vec<Finding> {
    let exe = std::env::current_exe().map_or_else(|_| "an unknown place".to_owned(), |path| path.display().to_string());
    let mut findings = vec![Finding::good("ralph", format!("ralph {} ({exe})", env!("CARGO_PKG_VERSION"))), client()];
    findings.extend(homeless(case));
    findings.extend(untrusted(case));
    findings
}

fn homeless(case: &Case) -> Option<Finding> {
    let what = "HOME is not set: your own settings, commands and plugins cannot be found, neither by ralph nor by Claude Code";
    case.places.config.is_none().then(|| Finding::warning("home", what).advice("Set HOME to your home folder."))
}

/// In a folder that was never trusted, an interactive session runs no hook, not even the user's own, until the person has said yes.
fn untrusted(case: &Case) -> Option<Finding> {
    // A client that was never used has no folder that it trusts.
    let is_used = !case.survey.trusted_folders().is_empty();
    let what = "Claude Code does not trust this folder yet: it asks at its first start here, and runs no hook before that";
    (is_used && !case.survey.trusts(case.project.root()))
        .then(|| Finding::note("client.trust", what).advice("Start `claude` here once, and answer its question."))
}

fn client() -> Finding {
    let Some(path) = find() else {
        if agents::any_is_registered() {
            return Finding::note("client", "Claude Code is not on this machine; ralph is registered with another agent");
        }
        return Finding::warning("client", "Claude Code was not found: there is no `claude` on your PATH")
            .fix("npm install -g @anthropic-ai/claude-code");
    };
    let said = said_version(&path);
    let Some(version) = said.as_deref().and_then(Version::said_in) else {
        let said = said.map_or_else(|| "did not answer".to_owned(), |said| format!("said {:?}", opening(&said, 100)));
        return Finding::warning("client", format!("{} --version {said}", path.display())).advice("Reinstall Claude Code.");
    };
    of_version(version, &path.display().to_string())
}

fn of_version(version: Version, path: &str) -> Finding {
    let named = format!("Claude Code {version} ({path})");
    match version {
        v if v < Version::MESSAGE_SINCE => {
            let why = format!("{named} is too old: before {} it does not tell hooks what the agent said last", Version::MESSAGE_SINCE);
            Finding::error("client", why).fix("claude update")
        }
        v if v < Version::EXEC_SINCE => {
            let why = format!("{named} ignores the arguments of a hook; ralph works without them, but newer is better");
            Finding::warning("client", why).fix("claude update")
        }
        v if v < Version::CONTEXT_SINCE => {
            let why = format!("{named} shows each iteration of a loop as a \"Stop hook error\", which it is not");
            Finding::note("client", why).fix("claude update")
        }
        v if v > Version::TESTED => {
            Finding::good("client", format!("{named}, newer than the newest that ralph was tested with, {}", Version::TESTED))
        }
        _ => Finding::good("client", named),
    }
}
