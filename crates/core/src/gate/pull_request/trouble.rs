//! Why a forge could not be asked: does it pass by itself, or does it take a person?

use crate::text::opening;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// It goes away by itself, so asking again later makes sense.
    pub is_passing: bool,
    /// One line.
    pub what: String,
    /// The action that a person has to take.
    pub needs: Option<String>,
}

impl Trouble {
    pub fn passing(what: impl Into<String>) -> Self {
        Trouble { is_passing: true, what: what.into(), needs: None }
    }

    pub fn lasting(what: impl Into<String>, needs: impl Into<String>) -> Self {
        Trouble { is_passing: false, what: what.into(), needs: Some(needs.into()) }
    }
}

impl Trouble {
    /// Gh printed something that is no answer.
    pub fn of_answer() -> Trouble {
        Trouble::passing("GitHub cannot be asked right now: gh's answer cannot be read")
    }
}

/// Words of a network, or of a server that is not well.
const NETWORK: [&str; 12] = [
    "HTTP 5",
    "HTTP 429",
    "error connecting",
    "Post \"",
    "Get \"",
    "EOF",
    "invalid character",
    "timeout",
    "timed out",
    "connection",
    "tls:",
    "dial tcp",
];

impl Trouble {
    /// Gh failed. `code`: `None` if a signal ended it. `host`: the server that it asked.
    ///
    /// By the words of gh 2.23 and later, the most telling ones first.
    pub fn of_failure(code: Option<i32>, stderr: &str, host: &str, repository: &str) -> Trouble {
        let said = opening(stderr, 300);
        let has = |word: &str| said.contains(word);
        let now = |why: &str| Trouble::passing(format!("GitHub cannot be asked right now: {why}"));
        let login = format!("`gh auth login --hostname {host}`");
        let Some(code) = code else { return now("gh was ended by a signal") };
        if has("none of the git remotes") || has("no git remotes found") {
            return Trouble::lasting("no remote of this repository is on GitHub", "add one: `git remote add origin URL`");
        }
        if has("Unknown JSON field") || has("unknown flag") || has("unknown command") {
            return Trouble::lasting(format!("this gh is too old: {said}"), "install a newer gh (2.23 is known to do)");
        }
        if has("SAML") || has("SSO") {
            return Trouble::lasting(format!("GitHub refuses: {said}"), "authorize the token for the organization: `gh auth refresh`");
        }
        if has("rate limit") {
            return now("its rate limit is used up");
        }
        if has("HTTP 401") || has("Bad credentials") {
            return Trouble::lasting("GitHub does not accept gh's token", login);
        }
        if code == 4 || has("gh auth login") {
            return Trouble::lasting(format!("gh is not signed in to {host}"), login);
        }
        if has("x509") || has("certificate") {
            return Trouble::lasting(
                format!("GitHub's certificate is not trusted: {said}"),
                format!("let the system trust it, or see what stands between here and {host}"),
            );
        }
        if has("Could not resolve to a Repository") || has("HTTP 404") || has("(HTTP 404)") {
            return Trouble::lasting(format!("GitHub knows no {repository}, or gh's user may not see it"), login);
        }
        if has("Resource not accessible") || has("required scopes") || has("HTTP 403") {
            return Trouble::lasting(
                format!("gh's token may not do that: {said}"),
                format!("give it the rights: `gh auth refresh --hostname {host} --scopes repo`"),
            );
        }
        if has("unable to find git") {
            return Trouble::lasting("gh needs git, which is not there", "install git");
        }
        if said.is_empty() {
            return now(&format!("gh ended with exit code {code}"));
        }
        if NETWORK.into_iter().any(has) {
            return now(&said);
        }
        Trouble { is_passing: false, what: format!("gh failed: {said}"), needs: None }
    }
}
