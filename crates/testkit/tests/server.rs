//! The scripted model server, spoken to over a bare connection.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ralph_testkit::{Gate, Kind, ModelServer, Reply};
use serde_json::{Value, json};

/// A main request's body: it has a tool, and asks for a stream.
fn main_body(text: &str) -> String {
    json!({
        "model": "m",
        "max_tokens": 100,
        "stream": true,
        "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
    })
    .to_string()
}

fn connect(server: &ModelServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

/// Sends one request and reads until the server's answer ends with `end`.
fn ask(server: &ModelServer, request: &str, end: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).unwrap();
    read_until(&mut stream, end)
}

fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut all = Vec::new();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&all).contains(end) {
        let n = stream.read(&mut part).unwrap();
        assert!(n > 0, "closed: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&part[..n]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn post(body: &str) -> String {
    format!("POST /v1/messages?beta=true HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// The `data:` lines of an event stream.
fn events(answer: &str) -> Vec<Value> {
    let data = answer.lines().filter_map(|l| l.strip_prefix("data: "));
    data.map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The text that an event stream builds up.
fn text_of(answer: &str) -> String {
    let events = events(answer);
    events.iter().filter_map(|e| e["delta"]["text"].as_str()).collect()
}

const ERROR_END: &str = "\"type\":\"error\"}";
const STREAM_END: &str = "\r\n0\r\n\r\n";

#[test]
fn streams_all_kinds_of_blocks() {
    let reply = Reply::thinking("hm").and_text("first").and_text("second").and_tool("Bash", json!({"command": "ls"})).usage(7, 9);
    let server = ModelServer::scripted([reply]);
    let answer = ask(&server, &post(&main_body("hello")), STREAM_END);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("text/event-stream"));
    let events = events(&answer);
    assert_eq!(events[0]["type"], "message_start");
    assert_eq!(events[0]["message"]["usage"]["input_tokens"], 7);
    let starts = events
        .iter()
        .filter(|e| e["type"] == "content_block_start")
        .map(|e| e["content_block"]["type"].as_str().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(starts, ["thinking", "text", "text", "tool_use"]);
    let delta = &events[events.len() - 2];
    assert_eq!(delta["delta"]["stop_reason"], "tool_use");
    assert_eq!(delta["usage"]["output_tokens"], 9);
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

#[test]
fn takes_a_chunked_body_and_records_the_request() {
    let server = ModelServer::with(|request| Reply::text(request.last_user_text()));
    let body = main_body("echo me");
    let (first, second) = body.split_at(10);
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let answer = ask(&server, &request, STREAM_END);
    assert_eq!(text_of(&answer), "echo me");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].kind, Kind::Main);
    assert_eq!(requests[0].last_user_text(), "echo me");
}

#[test]
fn side_requests_do_not_use_up_the_script() {
    let server = ModelServer::scripted([Reply::text("scripted"), Reply::text("last")]);
    let side = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]});
    let answer = ask(&server, &post(&side.to_string()), "}}");
    assert!(answer.contains("\"text\":\"ok\""), "{answer}");
    let answer = ask(&server, &post(&main_body("x")), STREAM_END);
    assert_eq!(text_of(&answer), "scripted");
    assert_eq!(server.requests().len(), 2);
    assert_eq!(server.main_requests().len(), 1);
}

#[test]
fn answers_errors_and_unknown_paths() {
    let server = ModelServer::scripted([Reply::error(529, "overloaded_error", "busy")]);
    let answer = ask(&server, &post(&main_body("x")), ERROR_END);
    assert!(answer.starts_with("HTTP/1.1 529 Overloaded"), "{answer}");
    assert!(answer.contains("overloaded_error"));
    let answer = ask(&server, "GET /api/hello HTTP/1.1\r\n\r\n", ERROR_END);
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let answer = ask(&server, "HEAD / HTTP/1.1\r\n\r\n", "\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let count = "POST /v1/messages/count_tokens HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
    assert!(ask(&server, count, "}").contains("input_tokens"));
}

#[test]
fn serves_several_requests_on_one_connection() {
    let server = ModelServer::scripted([Reply::text("alpha"), Reply::text("beta")]);
    let mut stream = connect(&server);
    for text in ["alpha", "beta"] {
        stream.write_all(post(&main_body("x")).as_bytes()).unwrap();
        let answer = read_until(&mut stream, STREAM_END);
        assert_eq!(text_of(&answer), text);
    }
}

#[test]
fn hangs_in_mid_stream_until_released() {
    let gate = Gate::new();
    let server = ModelServer::scripted([Reply::text("abcdef").hang(&gate)]);
    let mut stream = connect(&server);
    stream.write_all(post(&main_body("x")).as_bytes()).unwrap();
    assert!(gate.wait_reached(Duration::from_secs(5)));
    let first = read_until(&mut stream, "event: ping");
    assert!(first.contains("\"abc\"") && !first.contains("def"));
    gate.release();
    assert!(read_until(&mut stream, STREAM_END).contains("\"def\""));
}

#[test]
fn waits_as_told_and_stops_on_drop() {
    let server = ModelServer::scripted([Reply::text("x").delay(Duration::from_millis(300))]);
    let start = Instant::now();
    ask(&server, &post(&main_body("x")), STREAM_END);
    assert!(start.elapsed() >= Duration::from_millis(300));
    let address = server.address();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}
