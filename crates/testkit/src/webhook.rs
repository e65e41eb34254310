//! A server that takes webhooks: it remembers what came, and answers as it was told, or never.

use std::io::BufReader;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::http::{RawRequest, read_request, write_json};

/// What it does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Answers with this status. One that leads elsewhere leads to `/elsewhere` on the same server.
    Status(u16),
    /// Takes the request and never answers.
    Hang,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Posted {
    pub method: String,
    pub path: String,
    pub content_type: String,
    pub body: String,
}

/// The server; it lives as long as the test's process.
#[derive(Debug)]
pub struct Webhook {
    address: SocketAddr,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl Webhook {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, posted) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&posted);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || serve(stream, manner, &kept));
            }
        });
        Self { address, posted }
    }

    /// An address on it, with this path.
    pub fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All that came until now.
    pub fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, manner: Manner, kept: &Mutex<Vec<Posted>>) {
    let Ok(mut out) = stream.try_clone() else { return };
    let Some(request) = read_request(&mut BufReader::new(stream)) else { return };
    kept.lock().unwrap().push(of(&request));
    match manner {
        Manner::Hang => thread::sleep(Duration::from_mins(10)),
        Manner::Status(status) => {
            let headers = [("connection".to_owned(), "close".to_owned()), ("location".to_owned(), "/elsewhere".to_owned())];
            let _ = write_json(&mut out, status, &headers, "{\"answer\":\"\u{1b}[31m\"}", false);
        }
    }
}

fn of(request: &RawRequest) -> Posted {
    Posted {
        method: request.method.clone(),
        path: request.path.clone(),
        content_type: request.header("content-type").unwrap_or_default().to_owned(),
        body: String::from_utf8_lossy(&request.body).into_owned(),
    }
}
