//! What an answer of the server, or its absence, means, and what a person can do about it.

use async_nats::{
    ConnectError, ConnectErrorKind, RequestError, RequestErrorKind,
    jetstream::{self, ErrorCode},
};

use super::{
    Error,
    settings::{OLDEST, Settings, numbers},
};

/// Another writer was first. No other answer says that.
pub(super) fn is_lost(error: &jetstream::Error) -> bool {
    matches!(error.error_code(), ErrorCode::STREAM_WRONG_LAST_SEQUENCE | ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}

pub(super) fn of_server(error: &jetstream::Error) -> Error {
    /// “maximum messages exceeded”, “maximum bytes exceeded”: the client has no name for it.
    const STORE_FAILED: ErrorCode = ErrorCode(10077);
    match error.error_code() {
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED
        | ErrorCode::STREAM_MAX_STREAM_BYTES_EXCEEDED
        | STORE_FAILED => {
            Error::Full(format!("{error}. Raise max_file_store of the NATS server, or the limits of its account, or free some disk space"))
        }
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => Error::Broken(format!("{error}: a record is larger than the NATS server takes")),
        // Not now: it is starting, or it has no leader.
        _ if error.code() == 503 => Error::Unreachable(error.to_string()),
        _ => Error::Broken(error.to_string()),
    }
}

pub(super) fn of_request(error: &RequestError) -> Error {
    match error.kind() {
        RequestErrorKind::NoResponders => {
            Error::Unreachable("JetStream does not answer: the server is starting, or the fleet's bucket was deleted".to_owned())
        }
        RequestErrorKind::TimedOut => Error::Unreachable("no answer in time".to_owned()),
        RequestErrorKind::MaxPayloadExceeded => Error::Broken("a record is larger than max_payload of the NATS server".to_owned()),
        RequestErrorKind::InvalidSubject | RequestErrorKind::Other => Error::Unreachable(error.to_string()),
    }
}

/// Any error of the client, by what lies at its root.
pub(super) fn of_chain(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(error) = error.downcast_ref::<jetstream::Error>() {
            return of_server(error);
        }
        if let Some(error) = error.downcast_ref::<RequestError>() {
            return of_request(error);
        }
        at = error.source();
    }
    Error::Unreachable(error.to_string())
}

pub(super) fn of_connect(error: &ConnectError, settings: &Settings) -> Error {
    let (url, why) = (settings.shown(), root(error));
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            let hint = "set NATS_NKEY or NATS_CREDS to a file that it accepts, or write nats://USER:PASSWORD@HOST";
            Error::Denied(format!("the NATS server at {url} refuses these credentials; {hint}"))
        }
        // What a certificate lacks comes as an error of the line.
        kind if kind == ConnectErrorKind::Tls || is_tls(error) => {
            Error::Broken(format!("no TLS connection to {url}: {why}; NATS_CA names the certificate of its issuer"))
        }
        _ => Error::Unreachable(format!("no NATS server at {url}: {why}; start one with: nats-server -js")),
    }
}

fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let inner = |error: &std::io::Error| error.get_ref().is_some_and(|inner| inner.downcast_ref::<async_nats::rustls::Error>().is_some());
    std::iter::successors(Some(error), |error| std::error::Error::source(*error)).any(|error| error.downcast_ref().is_some_and(inner))
}

/// The last cause, which says most.
fn root(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

pub(super) fn of_version(version: &str, settings: &Settings) -> Result<(), Error> {
    if numbers(version).is_some_and(|found| found >= OLDEST) {
        return Ok(());
    }
    let (major, minor, patch) = OLDEST;
    Err(Error::Broken(format!(
        "the NATS server at {} is version {version}; the fleet needs {major}.{minor}.{patch} or newer: upgrade it",
        settings.shown()
    )))
}

pub(super) fn no_jetstream(settings: &Settings) -> Error {
    Error::Broken(format!(
        "the NATS server at {} runs without JetStream: start it with -js, or add jetstream {{}} to its file",
        settings.shown()
    ))
}

/// What the server says about a subject that it does not let us use.
pub(super) fn of_violation(text: &str) -> Error {
    Error::Denied(format!(
        "{text}. Allow it for this user in the file of the NATS server (docs/fleet-server.md lists what each role needs)"
    ))
}
