//! The repository itself at `github.com`: `git fetch` and `git pull` of the bare repository that a hub follows.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::Response;
use crate::http::RawRequest;
use crate::process::run_bytes;
use crate::project::{PATH, git_program};

/// Lets git's own server answer; `None` for a path outside the repository.
pub(super) fn answer(raw: &RawRequest, repository: &str, bare: &Path) -> Option<Response> {
    let (path, query) = raw.path.split_once('?').unwrap_or((&raw.path, ""));
    let within = path.strip_prefix(&format!("/{repository}.git"))?;
    let mut command = Command::new(git_program());
    command.arg("http-backend").env_clear().envs([
        ("PATH", PATH),
        ("GIT_HTTP_EXPORT_ALL", "1"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("REQUEST_METHOD", &raw.method),
        ("QUERY_STRING", query),
        ("CONTENT_TYPE", raw.header("content-type").unwrap_or_default()),
        ("HTTP_CONTENT_ENCODING", raw.header("content-encoding").unwrap_or_default()),
        ("HTTP_GIT_PROTOCOL", raw.header("git-protocol").unwrap_or_default()),
    ]);
    command.env("CONTENT_LENGTH", raw.body.len().to_string());
    command.env("GIT_PROJECT_ROOT", bare).env("PATH_INFO", within);
    parse(&run_bytes(&mut command, &raw.body, Duration::from_secs(30)))
}

/// Reads what a CGI program prints: headers, an empty line, the body.
fn parse(printed: &[u8]) -> Option<Response> {
    let end = printed.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&printed[..end]).into_owned();
    let mut response = Response::new(200, "", &printed[end + 4..]);
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        match name.to_ascii_lowercase().as_str() {
            "status" => response.status = value.split(' ').next()?.parse().ok()?,
            "content-type" => value.clone_into(&mut response.kind),
            _ => response = response.headers([(name, value.to_owned())]),
        }
    }
    Some(response)
}
