//! The little of HTTP/1.1 that the page needs: one request on each connection, bounded in bytes and in time.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// The most bytes of a request's head, and of its body.
const MOST_HEAD: usize = 8 << 10;
const MOST_BODY: usize = 16 << 10;

/// A request has to be here by then.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// A header that stands there once. Twice is none: two readers could believe different ones.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str()).filter(|_| found.next().is_none())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name))
    }
}

/// Why a request is not answered as it was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: u16,
    pub why: String,
}

impl Refusal {
    pub(super) fn new(code: u16, why: impl Into<String>) -> Self {
        Refusal { code, why: why.into() }
    }
}

/// What is read from, with a time limit for each reading.
pub(super) trait Line: Read {
    fn patience(&mut self, left: Duration) -> io::Result<()>;
}

impl Line for TcpStream {
    fn patience(&mut self, left: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(left))
    }
}

/// Reads a request. `Err(None)`: the other end went away.
pub(super) fn read(line: &mut impl Line) -> Result<Request, Option<Refusal>> {
    let end = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > MOST_HEAD {
            return Err(Some(Refusal::new(431, "the request's head is too long")));
        }
        more(line, &mut bytes, end)?;
    };
    if head > MOST_HEAD {
        return Err(Some(Refusal::new(431, "the request's head is too long")));
    }
    let mut request = parse(&bytes[..head]).map_err(Some)?;
    let length = length(&request).map_err(Some)?;
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        more(line, &mut body, end)?;
    }
    body.truncate(length);
    request.body = body;
    Ok(request)
}

fn more(line: &mut impl Line, bytes: &mut Vec<u8>, end: Instant) -> Result<(), Option<Refusal>> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() || line.patience(left).is_err() {
        return Err(Some(Refusal::new(408, "the request took too long")));
    }
    let mut piece = [0; 4096];
    match line.read(&mut piece) {
        Ok(0) => Err(None),
        Ok(n) => {
            bytes.extend_from_slice(&piece[..n]);
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Err(Some(Refusal::new(408, "the request took too long")))
        }
        Err(_) => Err(None),
    }
}

fn parse(head: &[u8]) -> Result<Request, Refusal> {
    let odd = || Refusal::new(400, "this is no HTTP/1.1 request");
    let text = std::str::from_utf8(head).map_err(|_| odd())?;
    // A lone CR or LF could be read as the end of a line by one reader and not by another.
    if text.replace("\r\n", "").contains(['\r', '\n', '\0']) {
        return Err(odd());
    }
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path), Some(version), None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err(odd());
    };
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_method || !path.starts_with('/') || !["HTTP/1.1", "HTTP/1.0"].contains(&version) {
        return Err(odd());
    }
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(odd)?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            return Err(odd());
        }
        headers.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
    }
    Ok(Request { method: method.to_owned(), path: path.to_owned(), headers, body: Vec::new() })
}

fn length(request: &Request) -> Result<usize, Refusal> {
    if request.has("Transfer-Encoding") {
        return Err(Refusal::new(411, "say the body's length with Content-Length"));
    }
    if !request.has("Content-Length") {
        return Ok(0);
    }
    let told = request.header("Content-Length").filter(|told| told.bytes().all(|byte| byte.is_ascii_digit()));
    match told.and_then(|told| told.parse::<usize>().ok()) {
        Some(length) if length <= MOST_BODY => Ok(length),
        Some(_) => Err(Refusal::new(413, "the request's body is too long")),
        None => Err(Refusal::new(400, "an odd Content-Length")),
    }
}

/// What every answer says: nothing is kept, nothing comes from elsewhere, no other page may show it or read it.
const ALWAYS: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\nPermissions-Policy: camera=(), geolocation=(), microphone=()\r\nConnection: close\r\n";

pub(super) fn answer(line: &mut impl Write, code: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    let more = match code {
        401 => "WWW-Authenticate: Bearer\r\n",
        405 => "Allow: GET, POST\r\n",
        _ => "",
    };
    let head = format!("HTTP/1.1 {code} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{ALWAYS}{more}\r\n", reason(code), body.len());
    line.write_all(head.as_bytes())?;
    line.write_all(body)?;
    line.flush()
}

/// The head of an answer that goes on as long as both ends like.
pub(super) fn begin_events(line: &mut impl Write) -> io::Result<()> {
    write!(line, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{ALWAYS}\r\n")?;
    line.flush()
}

fn reason(code: u16) -> &'static str {
    match code {
        200 => "OK",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Bad Request",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Line for &[u8] {
        fn patience(&mut self, _left: Duration) -> io::Result<()> {
            Ok(())
        }
    }

    fn code(text: &str) -> Option<u16> {
        read(&mut text.as_bytes()).err().map(|refusal| refusal.map_or(0, |refusal| refusal.code))
    }

    #[test]
    fn f7_a_request_is_read_whole_or_refused() {
        let request = read(&mut &b"POST /act HTTP/1.1\r\nHost: x\r\ncontent-LENGTH: 2\r\nA: 1\r\na: 2\r\n\r\n{}more"[..]).unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str(), request.body.as_slice()), ("POST", "/act", &b"{}"[..]));
        assert_eq!((request.header("HOST"), request.header("A"), request.has("A")), (Some("x"), None, true));
        for (text, expected) in [
            ("GET / HTTP/1.1\r\nHost: x\r\n", 0),
            ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc", 0),
            ("GET /\r\n\r\n", 400),
            ("GET / HTTP/2\r\n\r\n", 400),
            ("get / HTTP/1.1\r\n\r\n", 400),
            ("GET http://x/ HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nnonsense\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        ] {
            assert_eq!(code(text), Some(expected), "{text:?}");
        }
        assert_eq!(code(&format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(MOST_HEAD))), Some(431));
        assert_eq!(code(&"a".repeat(3 * MOST_HEAD)), Some(431));
    }
}
