//! `ralph fleet serve`: a page on this machine that shows the fleet as it works, and with `--allow-control` takes what a person asks for.
//!
//! `http` reads requests within bounds, `guard` says who may ask, `feed` keeps what is shown up to date, `view` makes it.

mod feed;
mod guard;
mod http;
mod view;

use std::{
    io::Write as _,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use ralph_engine::sys::signals;
use serde_json::json;

use self::{
    feed::{Feed, News},
    guard::Guard,
    http::{Refusal, Request},
};
use crate::{
    board::Board,
    people::Act,
    problem::{Problem, Result},
    settings::{self, Place, Settings},
    signing::Pen,
    store::Store,
};

/// Show the fleet on a live page, on this machine alone
///
/// The address that it prints has a token in it, and anyone who has the address can look. Another one is made at each start. The page only shows, unless --allow-control is
/// given. From another machine or a phone: a tunnel, such as `ssh -L 8080:127.0.0.1:PORT`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The port on 127.0.0.1 [default: one that is free]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Let the page add tasks, and pause, steer, cancel, release, land and send back jobs
    #[arg(long)]
    allow_control: bool,
    /// Answer to this name, too: that of a proxy in front that encrypts the line; may be given several times
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    /// Write the address to this file, for you alone, and do not print it: for services, whose output others can read
    #[arg(long, value_name = "FILE")]
    address_file: Option<PathBuf>,
}

/// The most connections at once, and the most that look on.
const MOST_CONNECTIONS: usize = 64;
const MOST_WATCHERS: usize = 32;

/// A watcher hears something at least that often, so that both ends notice when the other is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Who does not read for so long is gone.
const MOST_SILENCE: Duration = Duration::from_secs(20);

const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page.js")),
];

const JSON: &str = "application/json";

pub(crate) fn run(args: &Args, place: &Place, settings: &Settings, store: &Arc<dyn Store>, pen: Pen) -> Result<u8> {
    let told = signals::Told::listen();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .map_err(|e| Problem::new(format!("port {} of 127.0.0.1 cannot be used: {e}; --port names another one", args.port)))?;
    let address = listener.local_addr().map_err(Problem::when("the page's address"))?;
    let guard = Guard::new(&args.name)?;
    let whole = format!("http://{address}/#{}", guard.token());
    let what = if args.allow_control { "it shows the fleet, and takes commands" } else { "it shows the fleet, and takes no commands" };
    match &args.address_file {
        Some(file) => {
            settings::write(file, format!("{whole}\n").as_bytes())?;
            anstream::println!("The address of the page is in {}; {what}", file.display());
        }
        None => anstream::println!("{whole}\nKeep this address to yourself: {what}. Ctrl-C ends it"),
    }
    let server = Arc::new(Server {
        guard,
        pen,
        feed: Feed::new(place.clone(), settings.clone(), Arc::clone(store), args.allow_control),
        connections: AtomicUsize::new(0),
    });
    let of_listener = Arc::clone(&server);
    thread::spawn(move || of_listener.listen(&listener));
    server.feed.follow(&|| told.interrupts() > 0 || told.ended());
    Ok(0)
}

/// One of the connections that are counted, for as long as it is served.
struct Connection(Arc<Server>);

impl Connection {
    fn counted(server: Arc<Server>) -> Self {
        server.connections.fetch_add(1, Ordering::AcqRel);
        Connection(server)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Debug)]
struct Server {
    guard: Guard,
    /// Signs the tasks that are added.
    pen: Pen,
    feed: Feed,
    connections: AtomicUsize,
}

impl Server {
    fn listen(self: Arc<Self>, listener: &TcpListener) {
        for line in listener.incoming() {
            let Ok(line) = line else {
                // Too many open files, perhaps.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            let connection = Connection::counted(Arc::clone(&self));
            if self.connections.load(Ordering::Acquire) <= MOST_CONNECTIONS {
                // Where the system has no thread for it, the line is closed.
                let _ = thread::Builder::new().spawn(move || connection.0.serve(line));
            }
        }
    }

    fn serve(&self, mut line: TcpStream) {
        let _ = line.set_write_timeout(Some(MOST_SILENCE));
        let answered = match http::read(&mut line) {
            Ok(request) => self.answer(&mut line, &request),
            Err(Some(refusal)) => Err(refusal),
            Err(None) => return,
        };
        if let Err(refusal) = answered {
            let body = json!({ "error": refusal.why }).to_string();
            let _ = http::answer(&mut line, refusal.code, JSON, body.as_bytes());
        }
    }

    fn answer(&self, line: &mut TcpStream, request: &Request) -> std::result::Result<(), Refusal> {
        self.guard.knows(request)?;
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/events") => {
                self.guard.admits(request)?;
                self.events(line)?;
            }
            ("POST", "/act") => {
                self.guard.admits(request)?;
                let said = self.act(request)?;
                let _ = http::answer(line, 200, JSON, json!({ "said": said }).to_string().as_bytes());
            }
            ("GET", path) => {
                let file = FILES.iter().find(|(name, ..)| *name == path);
                let (_, kind, text) = file.ok_or_else(|| Refusal::new(404, "there is no such page"))?;
                let _ = http::answer(line, 200, kind, text.as_bytes());
            }
            ("POST", _) => return Err(Refusal::new(404, "there is no such page")),
            _ => return Err(Refusal::new(405, "only GET and POST are answered")),
        }
        Ok(())
    }

    /// Tells all that changes, as long as someone listens. Who went away is noticed at the next sign of life.
    fn events(&self, line: &mut TcpStream) -> std::result::Result<(), Refusal> {
        let mut watcher = self.feed.watch(MOST_WATCHERS).ok_or_else(|| Refusal::new(503, "too many look on already"))?;
        let mut goes_on = http::begin_events(line);
        while goes_on.is_ok() {
            goes_on = match watcher.next(SIGN_OF_LIFE) {
                News::Changed(json) => write!(line, "data: {json}\n\n"),
                News::Nothing => line.write_all(b": still here\n\n"),
                News::Over => {
                    let _ = line.write_all(b"event: over\ndata: {}\n\n");
                    return Ok(());
                }
            };
        }
        Ok(())
    }

    fn act(&self, request: &Request) -> std::result::Result<String, Refusal> {
        if !self.feed.allows_control {
            return Err(Refusal::new(403, "this page only shows: `ralph fleet serve --allow-control` takes commands"));
        }
        // What a form of another site can send is never JSON.
        if request.header("Content-Type").is_none_or(|kind| kind.split(';').next().unwrap_or_default().trim() != JSON) {
            return Err(Refusal::new(415, "commands are JSON"));
        }
        let act: Act = serde_json::from_slice(&request.body).map_err(|e| Refusal::new(400, format!("no command: {e}")))?;
        let done = || -> Result<String> {
            let mut board = Board::default();
            board.refresh(&*self.feed.store)?;
            act.run(&*self.feed.store, &self.pen, &board)
        };
        done().map_err(|problem| Refusal::new(409, problem.to_string()))
    }
}
