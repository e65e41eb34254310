//! Who may ask. The page itself has no data, and anyone on this machine may have it. Everything else needs the token, which is in no request line, no file and no
//! cookie: it is in the part of the address that browsers keep to themselves, and the page sends it in a header of its own, which no other site can set.

use std::{fmt::Write as _, fs::File, io::Read};

use ralph_engine::sys::random;

use super::http::{Refusal, Request};
use crate::problem::{Problem, Result};

#[derive(Debug)]
pub(super) struct Guard {
    token: String,
    /// Names that it answers to, beside those of this machine.
    names: Vec<String>,
}

impl Guard {
    pub(super) fn new(names: &[String]) -> Result<Self> {
        Ok(Guard { token: fresh_token()?, names: names.iter().map(|name| name.to_ascii_lowercase()).collect() })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// For every request: a page of another site whose name leads to 127.0.0.1 ("DNS rebinding") has its own name in `Host`, and what it sends its own in `Origin`.
    pub(super) fn knows(&self, request: &Request) -> std::result::Result<(), Refusal> {
        let host = request.header("Host").map(str::to_ascii_lowercase);
        let Some(host) = host.filter(|host| self.is_name(host)) else {
            return Err(Refusal::new(421, "this page answers to 127.0.0.1 and localhost; `--name` adds another name"));
        };
        if !request.has("Origin") {
            return Ok(());
        }
        let origin = request.header("Origin").map(str::to_ascii_lowercase).unwrap_or_default();
        let is_own = origin.split_once("://").is_some_and(|(scheme, from)| ["http", "https"].contains(&scheme) && from == host);
        if is_own { Ok(()) } else { Err(Refusal::new(403, "another site asks")) }
    }

    /// For everything but the page's own files.
    pub(super) fn admits(&self, request: &Request) -> std::result::Result<(), Refusal> {
        let given = request.header("Authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if is_same(given.as_bytes(), self.token.as_bytes()) { Ok(()) } else { Err(Refusal::new(401, "the token is missing, or wrong")) }
    }

    fn is_name(&self, host: &str) -> bool {
        // Any port: a tunnel has one of its own.
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port),
            _ => (host, ""),
        };
        let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&name);
        port.bytes().all(|byte| byte.is_ascii_digit()) && (is_here || self.names.iter().any(|known| known == name))
    }
}

/// Takes as long for a token that is nearly right as for one that is all wrong.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let mut differs = u8::from(given.len() != token.len());
    for (at, byte) in token.iter().enumerate() {
        differs |= byte ^ given.get(at).copied().unwrap_or(0);
    }
    std::hint::black_box(differs) == 0
}

/// 256 random bits of the system's.
fn fresh_token() -> Result<String> {
    let mut bytes = [0u8; 32];
    if cfg!(unix) {
        File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes)).map_err(Problem::when("/dev/urandom"))?;
        return Ok(bytes.iter().fold(String::new(), |mut token, byte| {
            let _ = write!(token, "{byte:02x}");
            token
        }));
    }
    Ok(format!("{}{}", random::uuid(), random::uuid()).replace('-', ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::http;

    fn request(headers: &str) -> Request {
        http::read(&mut format!("GET /events HTTP/1.1\r\n{headers}\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn f7_only_this_machines_names_and_the_page_itself_are_known() {
        let guard = Guard::new(&["Night.example".to_owned()]).unwrap();
        let code = |headers: &str| guard.knows(&request(headers)).err().map(|refusal| refusal.code);
        for host in ["127.0.0.1", "127.0.0.1:80", "localhost:8080", "LOCALHOST", "[::1]:9", "night.example", "night.example:443"] {
            assert_eq!(code(&format!("Host: {host}\r\n")), None, "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "evil.example:127", "127.0.0.1:80:evil", "", "127.0.0.1@evil.example", "0.0.0.0"]
        {
            assert_eq!(code(&format!("Host: {host}\r\n")), Some(421), "{host}");
        }
        assert_eq!(code(""), Some(421));
        assert_eq!(code("Host: localhost\r\nHost: evil.example\r\n"), Some(421));
        for (origin, expected) in [
            ("http://localhost:8080", None),
            ("https://localhost:8080", None),
            ("http://localhost:8081", Some(403)),
            ("http://localhost", Some(403)),
            ("http://evil.example", Some(403)),
            ("null", Some(403)),
            ("", Some(403)),
            ("file://localhost:8080", Some(403)),
        ] {
            assert_eq!(code(&format!("Host: localhost:8080\r\nOrigin: {origin}\r\n")), expected, "{origin}");
        }
    }

    #[test]
    fn f7_only_the_whole_token_is_admitted() {
        let guard = Guard::new(&[]).unwrap();
        let token = guard.token().to_owned();
        assert!(token.len() == 64 && token != Guard::new(&[]).unwrap().token());
        let code = |headers: &str| guard.admits(&request(headers)).err().map(|refusal| refusal.code);
        assert_eq!(code(&format!("Authorization: Bearer {token}\r\n")), None);
        for wrong in
            [format!("Bearer {token}0"), format!("Bearer {}", &token[1..]), "Bearer ".to_owned(), token.clone(), format!("Basic {token}")]
        {
            assert_eq!(code(&format!("Authorization: {wrong}\r\n")), Some(401), "{wrong}");
        }
        assert_eq!(code(""), Some(401));
        assert_eq!(code(&format!("Cookie: token={token}\r\n")), Some(401));
        assert_eq!(code(&format!("Authorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\n")), Some(401));
    }
}
