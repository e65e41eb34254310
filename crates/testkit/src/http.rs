//! The little HTTP/1.1 that the scripted servers need: read one request, write one response or one event stream.

use std::io::{BufRead, Write};

/// One request as it came over the wire; header names are lower case.
#[derive(Debug, Clone)]
pub(crate) struct RawRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RawRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Reads the next request of a connection; `None` at its end (or when what came is no HTTP).
pub(crate) fn read_request(stream: &mut (impl BufRead + ?Sized)) -> Option<RawRequest> {
    let start = read_line(stream)?;
    let mut words = start.split_ascii_whitespace();
    let method = words.next()?.to_owned();
    let path = words.next()?.to_owned();
    let headers = read_headers(stream)?;
    let body = read_body(stream, &headers)?;
    Some(RawRequest { method, path, headers, body })
}

fn read_line(stream: &mut (impl BufRead + ?Sized)) -> Option<String> {
    let mut line = String::new();
    match stream.read_line(&mut line) {
        Ok(n) if n > 0 => Some(line.trim_end().to_owned()),
        _ => None,
    }
}

fn read_headers(stream: &mut (impl BufRead + ?Sized)) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            return Some(headers);
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

fn read_body(stream: &mut (impl BufRead + ?Sized), headers: &[(String, String)]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let chunked = find(headers, "transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    if chunked {
        loop {
            let line = read_line(stream)?;
            let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
            let start = body.len();
            body.resize(start + size, 0);
            stream.read_exact(&mut body[start..]).ok()?;
            // The line end after the chunk; after the last one also the (unused) trailer.
            while !read_line(stream)?.is_empty() {}
            if size == 0 {
                return Some(body);
            }
        }
    }
    let length = find(headers, "content-length").map_or(Some(0), |value| value.parse().ok())?;
    body.resize(length, 0);
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// Writes a whole response with a JSON body. A HEAD request gets the headers only.
pub(crate) fn write_json(
    out: &mut (impl Write + ?Sized),
    status: u16,
    headers: &[(String, String)],
    body: &str,
    head_only: bool,
) -> std::io::Result<()> {
    let head = head(status, headers, "application/json");
    let shown = if head_only { "" } else { body };
    write!(out, "{head}content-length: {}\r\n\r\n{shown}", body.len())?;
    out.flush()
}

/// Writes a whole response with a body of any kind.
pub(crate) fn write_body(
    out: &mut (impl Write + ?Sized),
    status: u16,
    headers: &[(String, String)],
    content_type: &str,
    body: &[u8],
) -> std::io::Result<()> {
    write!(out, "{}content-length: {}\r\n\r\n", head(status, headers, content_type), body.len())?;
    out.write_all(body)?;
    out.flush()
}

/// A server-sent event stream in chunked encoding.
pub(crate) struct EventStream<'a, W: Write> {
    out: &'a mut W,
}

impl<'a, W: Write> EventStream<'a, W> {
    pub(crate) fn open(out: &'a mut W, headers: &[(String, String)]) -> std::io::Result<Self> {
        let mut text = head(200, headers, "text/event-stream; charset=utf-8");
        text.push_str("cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n");
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(Self { out })
    }

    pub(crate) fn event(&mut self, data: &serde_json::Value) -> std::io::Result<()> {
        // Only where it has a name: OpenAI's own library takes a named event for one of another service.
        let name = data["type"].as_str().map(|name| format!("event: {name}\n"));
        self.send(&format!("{}data: {data}\n\n", name.unwrap_or_default()))
    }

    /// An event that is no JSON.
    pub(crate) fn data(&mut self, text: &str) -> std::io::Result<()> {
        self.send(&format!("data: {text}\n\n"))
    }

    fn send(&mut self, text: &str) -> std::io::Result<()> {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.out.write_all(chunk.as_bytes())?;
        self.out.flush()
    }

    pub(crate) fn close(self) -> std::io::Result<()> {
        self.out.write_all(b"0\r\n\r\n")?;
        self.out.flush()
    }
}

fn head(status: u16, headers: &[(String, String)], content_type: &str) -> String {
    let start = format!("HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\n", reason(status));
    let rest = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    std::iter::once(start).chain(rest).collect()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        422 => "Unprocessable Entity",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        529 => "Overloaded",
        _ => "Status",
    }
}
