//! What can go wrong between a client and GitHub, in the form that GitHub (or the wire) gives it.

use std::time::Duration;

use serde_json::json;

use super::Response;
use super::graphql::Problem;

/// One way to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// 500 with a JSON body.
    ServerError,
    /// 502 with a page of HTML.
    BadGateway,
    /// 401, as for a token that was revoked.
    BadCredentials,
    /// 403 with the hour's requests used up until `reset` (seconds since 1970).
    PrimaryLimit { reset: u64 },
    /// 403 because too much came at once; `retry_after` in seconds.
    SecondaryLimit { retry_after: u64 },
    /// The primary limit as GraphQL tells it: 200 with `errors`.
    GraphqlLimit { reset: u64 },
    /// 404 for whatever was asked.
    NotFound,
    /// The repository is not there, or not for this token: `NOT_FOUND` in GraphQL, 404 elsewhere.
    NoRepository,
    /// The right answer, late. A wait beyond all limits is a hang: it ends with the server.
    Slow(Duration),
    /// The connection ends in the middle of the body.
    Truncated,
    /// 200 with a page of HTML, as a hotel's network gives.
    Html,
    /// The proxy cannot reach the host.
    Refused,
    /// A certificate that nobody trusts.
    Untrusted,
    /// Bytes that are no TLS.
    Garbage,
}

impl Fault {
    /// Whether it comes before any request is read.
    pub(super) fn is_of_connection(&self) -> bool {
        matches!(self, Self::Refused | Self::Untrusted | Self::Garbage)
    }

    /// What is sent instead of the answer; `None` for faults that change how the answer is sent.
    pub(super) fn response(&self, repository: &str, graphql: bool) -> Option<Response> {
        let limit = |reset: &u64| {
            [("x-ratelimit-limit", "5000".to_owned()), ("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-used", "5000".to_owned())]
                .into_iter()
                .chain([("x-ratelimit-reset", reset.to_string())])
        };
        let message =
            |status, text: &str| Response::json(status, &json!({"message": text, "documentation_url": "https://docs.github.com/rest"}));
        Some(match self {
            Self::ServerError => message(500, "Server Error"),
            Self::BadGateway => Response::html(502, "<html><head><title>Unicorn! &middot; GitHub</title></head></html>"),
            Self::BadCredentials => message(401, "Bad credentials"),
            Self::PrimaryLimit { reset } => message(403, "API rate limit exceeded for user ID 1.").headers(limit(reset)),
            Self::SecondaryLimit { retry_after } => {
                message(403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
                    .headers([("retry-after", retry_after.to_string())])
            }
            Self::GraphqlLimit { reset } => {
                let error = json!({"type": "RATE_LIMITED", "message": "API rate limit exceeded for user ID 1."});
                Response::json(200, &json!({"errors": [error]})).headers(limit(reset))
            }
            Self::NoRepository if graphql => {
                let text = format!("Could not resolve to a Repository with the name '{repository}'.");
                let Problem::Refused(error) = Problem::refused("NOT_FOUND", "repository", text) else { return None };
                Response::json(200, &json!({"data": {"repository": null}, "errors": [error]}))
            }
            Self::NotFound | Self::NoRepository => message(404, "Not Found"),
            Self::Html => Response::html(200, "<html><body>Welcome to our network</body></html>"),
            Self::Slow(_) | Self::Truncated | Self::Refused | Self::Untrusted | Self::Garbage => return None,
        })
    }
}

/// Faults that wait for their requests, in order.
#[derive(Debug, Default)]
pub(super) struct Faults {
    waiting: Vec<Waiting>,
    /// How many were given so far.
    pub(super) given: usize,
}

#[derive(Debug)]
struct Waiting {
    fault: Fault,
    operation: Option<String>,
    times: usize,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault, operation: Option<&str>, times: usize) {
        assert!(times > 0, "a fault that never comes");
        self.waiting.push(Waiting { fault, operation: operation.map(str::to_owned), times });
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn of_connection(&mut self) -> Option<Fault> {
        self.take(|waiting| waiting.fault.is_of_connection())
    }

    pub(super) fn of_request(&mut self, operation: &str) -> Option<Fault> {
        self.take(|waiting| !waiting.fault.is_of_connection() && waiting.operation.as_ref().is_none_or(|name| name == operation))
    }

    fn take(&mut self, fits: impl Fn(&Waiting) -> bool) -> Option<Fault> {
        let at = self.waiting.iter().position(fits)?;
        let waiting = &mut self.waiting[at];
        let fault = waiting.fault.clone();
        waiting.times -= 1;
        if waiting.times == 0 {
            self.waiting.remove(at);
        }
        self.given += 1;
        Some(fault)
    }
}
