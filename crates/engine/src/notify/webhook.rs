//! A webhook: the news as JSON, by POST, through curl, which knows certificates and proxies.
//!
//! Most addresses hold a secret. It goes to curl on its standard input, where no list of processes shows it, and messages quote only the host.

use std::time::{Duration, Instant};

use ralph_core::text::opening;

use super::{
    News,
    programs::{problem, run},
};
use crate::sys::{command::Ran, process};

pub(super) fn tell(address: &str, news: &News<'_>, until: Instant) -> Result<(), String> {
    let host = host(address);
    let curl = process::which_outside("curl", news.folder)
        .ok_or_else(|| format!("the webhook at {host} was not notified: curl is not installed"))?;
    let left = until.saturating_duration_since(Instant::now()).saturating_sub(Duration::from_secs(1)).max(Duration::from_millis(500));
    let config = config(address, &news.document().to_string(), left);
    // The user's own settings for curl could undo these: they are not read.
    let args = ["--disable", "--config", "-"].map(Into::into).to_vec();
    let ran = run(curl.into(), args, news.folder, Vec::new(), config.into_bytes(), until);
    answered(ran.map_err(|failure| problem(Err(failure)).err().unwrap_or_default()))
        .map_err(|why| format!("the webhook at {host} was not notified: {why}"))
}

/// The options for curl, one a line.
fn config(address: &str, document: &str, limit: Duration) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let nowhere = if cfg!(windows) { "NUL" } else { "/dev/null" };
    let agent = concat!("ralph/", env!("CARGO_PKG_VERSION"));
    let options = [
        ("url", quoted(address)),
        ("header", quoted("Content-Type: application/json")),
        ("user-agent", quoted(agent)),
        ("data-raw", quoted(document)),
        ("proto", quoted("=http,https")),
        ("max-redirs", "0".to_owned()),
        ("max-time", format!("{:.1}", limit.as_secs_f64())),
        ("output", quoted(nowhere)),
        ("write-out", quoted("%{http_code}")),
    ];
    // Brackets in an address are no patterns.
    options.iter().map(|(name, value)| format!("{name} = {value}\n")).chain(["globoff\nsilent\n".to_owned()]).collect()
}

fn answered(ran: Result<Ran, String>) -> Result<(), String> {
    let ran = ran.map_err(|why| format!("curl {why}"))?;
    match (ran.code, ran.text().as_str()) {
        (Some(0), status) if status.len() == 3 && status.starts_with('2') => Ok(()),
        (Some(0), status) => Err(format!("it answered with status {}", opening(status, 3))),
        (Some(5 | 6), _) => Err("there is no such host".to_owned()),
        (Some(7), _) => Err("it cannot be reached".to_owned()),
        (Some(28), _) => Err("it did not answer in time".to_owned()),
        (Some(35 | 51 | 53 | 58 | 59 | 60 | 77 | 83), _) => Err("its certificate is not accepted".to_owned()),
        (Some(52 | 56), _) => Err("it gave no answer".to_owned()),
        (Some(code), _) => Err(format!("curl ended with exit code {code}")),
        (None, _) => Err("curl was ended by a signal".to_owned()),
    }
}

/// The part of an address that may be shown: the host.
fn host(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    opening(authority.rsplit('@').next().unwrap_or_default(), 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_8_no_secret_of_an_address_is_shown() {
        for address in [
            "https://me:key@example.org:8443/hooks/T0/B0/key?token=key#key",
            "http://example.org:8443?key",
            "https://key@key@example.org:8443/",
        ] {
            assert_eq!(host(address), "example.org:8443", "{address}");
        }
    }

    #[test]
    fn s4_8_a_document_is_one_option_whatever_is_in_it() {
        let text = config("https://example.org/", r#"{"a":"\"quoted\" \\ \n"}"#, Duration::from_secs(9));
        assert!(text.contains(r#"data-raw = "{\"a\":\"\\\"quoted\\\" \\\\ \\n\"}""#), "{text}");
        assert_eq!(text.lines().count(), 11, "{text}");
    }
}
