//! Where the server is, and how to get in.

use std::{path::PathBuf, time::Duration};

use async_nats::{ConnectOptions, ServerAddr};

use super::Error;

/// The oldest server that has what the driver uses.
pub(super) const OLDEST: (u64, u64, u64) = (2, 9, 0);

/// The oldest server without a published weakness that matters here.
pub(super) const ADVISED: (u64, u64, u64) = (2, 12, 7);

/// How to reach the store of one fleet.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `nats://HOST:PORT` or `tls://HOST:PORT`; several, with commas between them, for a cluster. A user and a password, or a token, may stand before the host.
    pub url: String,
    /// The name of the fleet: its bucket is `ralph-NAME`, its log `ralph-log-NAME`.
    pub fleet: String,
    pub access: Access,
    /// How long a worker may be silent before others take its jobs.
    pub lease: Duration,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How long a server that is away is waited for, where someone needs an answer: it may only be started anew. Looks at what changed do not wait.
    pub patience: Duration,
    /// How many values of a key the server keeps, 1 to 64. Only what a new bucket is made with.
    pub history: i64,
    /// How large the log may become; then its oldest lines go. Only what a new log is made with.
    pub log_bytes: i64,
}

/// Files that prove who this is, and who the server is. The names are those of the `nats` command.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `NATS_NKEY`: the seed of an nkey.
    pub nkey: Option<PathBuf>,
    /// `NATS_CREDS`: a credentials file.
    pub creds: Option<PathBuf>,
    /// `NATS_CA`: the certificate that the server's one is signed with.
    pub ca: Option<PathBuf>,
    /// `NATS_CERT` and `NATS_KEY`: a certificate of our own.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

impl Access {
    /// As the environment says.
    pub fn from_env(get: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        let path = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Access { nkey: path("NATS_NKEY"), creds: path("NATS_CREDS"), ca: path("NATS_CA"), cert: path("NATS_CERT"), key: path("NATS_KEY") }
    }
}

impl Settings {
    pub fn new(url: &str, fleet: &str) -> Self {
        Settings {
            url: url.to_owned(),
            fleet: fleet.to_owned(),
            access: Access::default(),
            lease: Duration::from_mins(1),
            timeout: Duration::from_secs(2),
            patience: Duration::from_secs(30),
            history: 1,
            log_bytes: 1 << 30,
        }
    }

    /// The address as people may see it: without a password or a token.
    pub(super) fn shown(&self) -> String {
        let shown = self.url.split(',').map(|url| match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            (None, Some((_, host))) => host.to_owned(),
            _ => url.to_owned(),
        });
        shown.collect::<Vec<_>>().join(",")
    }

    pub(super) fn addresses(&self) -> Result<Vec<ServerAddr>, Error> {
        let parsed: Result<Vec<ServerAddr>, _> = self.url.split(',').map(|url| url.trim().parse()).collect();
        parsed.map_err(|_| Error::Broken(format!("“{}” is no address of a NATS server: write nats://HOST:PORT", self.shown())))
    }

    pub(super) fn options(&self) -> Result<ConnectOptions, Error> {
        let mut options = ConnectOptions::new()
            .name("ralph-fleet")
            .connection_timeout(Duration::from_secs(5))
            .request_timeout(Some(self.timeout))
            // A line that says nothing counts as a good one until a ping has no answer.
            .ping_interval(Duration::from_secs(10))
            .reconnect_delay_callback(|attempts| Duration::from_millis((50 * attempts as u64).min(1000)));
        // The client does not take them from the address.
        let address = self.addresses()?.into_iter().find(ServerAddr::has_user_pass);
        match address.as_ref().map(|address| (address.username(), address.password())) {
            Some((Some(user), Some(password))) => options = options.user_and_password(decoded(user), decoded(password)),
            Some((Some(token), None)) => options = options.token(decoded(token)),
            _ => {}
        }
        if let Some(path) = &self.access.nkey {
            let seed = std::fs::read_to_string(path).map_err(|e| unreadable("NATS_NKEY", path, &e))?;
            let seed = seed.lines().map(str::trim).find(|line| line.starts_with('S'));
            let seed = seed.ok_or_else(|| {
                Error::Broken(format!("NATS_NKEY: {} has no seed of an nkey (a line that begins with S)", path.display()))
            })?;
            options = options.nkey(seed.to_owned());
        }
        if let Some(path) = &self.access.creds {
            let text = std::fs::read_to_string(path).map_err(|e| unreadable("NATS_CREDS", path, &e))?;
            options = options.credentials(&text).map_err(|e| unreadable("NATS_CREDS", path, &e))?;
        }
        if let Some(path) = &self.access.ca {
            options = options.add_root_certificates(path.clone()).require_tls(true);
        }
        match (&self.access.cert, &self.access.key) {
            (Some(cert), Some(key)) => options = options.add_client_certificate(cert.clone(), key.clone()),
            (None, None) => {}
            _ => return Err(Error::Broken("NATS_CERT and NATS_KEY belong together: set both or neither".to_owned())),
        }
        Ok(options)
    }
}

/// A part of an address without its `%` escapes.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn unreadable(name: &str, path: &std::path::Path, error: &std::io::Error) -> Error {
    Error::Broken(format!("{name}: cannot read {}: {error}", path.display()))
}

/// The three numbers of a version; what follows them does not count.
pub(super) fn numbers(version: &str) -> Option<(u64, u64, u64)> {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}
