//! `ralph fleet serve`: the page in a real browser, and what it says to those who may not ask. `RALPH_PICTURES=FOLDER` keeps the pictures.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use ralph_testkit::browser::{Browser, Medium, Page, Theme};

use crate::bed::Bed;

const HOSTILE: &str = "<img src=x onerror=alert(1)><script>alert(2)</script> \\u202Eevil\\u001b[31m </title> javascript:alert(3) AVeryLongWordThatHasNoPlaceToBreakAtAllAndGoesOnAndOnAndOnAndOnAndOnAndOnAndOnAndOnAndOn";

/// Jobs that stand differently: one lands, one runs until it is let go, one waits for it, one is stuck, and one has a hostile title.
fn bed() -> Bed {
    let list = format!(
        r#"{{"features": [{{"id": "alpha", "description": "Search by author", "passes": false}},
        {{"id": "beta", "description": "Totals with tax, in every currency that the shop sells in", "passes": false}},
        {{"id": "gamma", "description": "Mail the receipt", "dependsOn": ["beta"], "passes": false}},
        {{"id": "delta", "description": "Sign in with a passkey", "passes": false}},
        {{"id": "<b>omega</b>", "description": "{HOSTILE}", "passes": false}}]}}"#
    );
    let agent = "case \"$task\" in\n\
        Search*) echo x > a.txt; say a;;\n\
        Totals*) touch \"$MARKS/beta\"; while ! [ -e \"$MARKS/go\" ]; do sleep 0.1; done; echo x > b.txt; say b;;\n\
        Mail*) echo x > c.txt; say c;;\n\
        Sign*) echo 'there is no key to test with';;\n\
        *) touch \"$MARKS/omega\"; while ! [ -e \"$MARKS/end\" ]; do sleep 0.1; done; echo x > e.txt; say e;;\n\
        esac\n";
    Bed::new(&[("feature_list.json", &list)], agent)
}

/// A page that is served; it ends on drop.
struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT`
    base: String,
    token: String,
}

impl Served {
    fn start(bed: &Bed, more: &[&str]) -> Self {
        let mut child = bed.command(&[&["serve"][..], more].concat()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (base, token) = line.trim().split_once("/#").unwrap_or_else(|| panic!("it printed {line:?}"));
        assert!(base.starts_with("http://127.0.0.1:") && token.len() == 64, "{line}");
        Served { child, base: base.to_owned(), token: token.to_owned() }
    }

    fn address(&self) -> String {
        format!("{}/#{}", self.base, self.token)
    }

    fn host(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// Sends these bytes, and returns all that comes back until the other end has enough, or nothing comes for a while.
    fn raw(&self, request: &str) -> String {
        let mut line = TcpStream::connect(self.host()).unwrap();
        line.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        line.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = line.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The code of an answer to a request with these headers, beside a right `Host` where none is given.
    fn code(&self, request: &str, headers: &[&str], body: &str) -> (u16, String) {
        let host = format!("Host: {}", self.host());
        let own = if headers.iter().any(|header| header.starts_with("Host:")) { None } else { Some(host.as_str()) };
        let headers: Vec<&str> = own.into_iter().chain(headers.iter().copied()).collect();
        let answer = self.raw(&format!("{request} HTTP/1.1\r\n{}\r\nContent-Length: {}\r\n\r\n{body}", headers.join("\r\n"), body.len()));
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (code, answer)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(page: &Page<'_>, what: &str, script: &str) {
    let end = Instant::now() + Duration::from_mins(1);
    while page.eval(script) != true {
        assert!(Instant::now() < end, "{what} did not come; the page shows {}", page.eval("document.body.innerText"));
        thread::sleep(Duration::from_millis(50));
    }
}

fn keep(name: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("RALPH_PICTURES") {
        fs::write(Path::new(&folder).join(name), bytes).unwrap();
    }
}

/// Looks at the page in both lights and on a phone, and finds nothing wrong with it.
fn looks_well(page: &Page<'_>, name: &str) {
    for (way, width, theme) in
        [("light", 1200, Theme::Light), ("dark", 1200, Theme::Dark), ("narrow", 360, Theme::Dark), ("narrow-light", 360, Theme::Light)]
    {
        page.size(width, 900);
        page.media(theme, Medium::Screen);
        keep(&format!("{name}-{way}.png"), &page.screenshot(true));
        let mut problems = page.contrast_problems();
        problems.extend(page.overflows());
        problems.extend(page.tiny_texts());
        problems.extend(page.console_errors());
        assert!(problems.is_empty(), "{name}, {way}:\n{}", problems.join("\n"));
    }
    page.size(1200, 900);
}

const STATE: &str = "(id) => document.querySelector(`article[data-job='${id}']`)?.className";

#[test]
fn f6_the_page_shows_the_fleet_as_it_works() {
    let Some(browser) = Browser::shared() else { return };
    let bed = bed();
    let mut run = bed.start("feature_list.json", &["--workers", "4", "--verify", "true"]);
    bed.until("both that wait", || bed.marks().join("beta").exists() && bed.marks().join("omega").exists());
    bed.until("the landing", || bed.of_job("alpha", "state") == "landed" && bed.of_job("delta", "state") == "needs-person");
    let served = Served::start(&bed, &[]);
    let page = browser.page();
    page.open(served.address());
    until(&page, "all jobs", "document.querySelectorAll('article').length === 5");
    until(&page, "the line", "document.getElementById('line').textContent === 'live'");
    for (id, state) in [("alpha", "landed"), ("beta", "runs"), ("gamma", "waits"), ("delta", "needs-person"), ("b-omega-b", "runs")] {
        assert_eq!(page.eval(&format!("({STATE})('{id}')")), state, "{id}");
    }
    let text = page.eval("document.body.innerText").as_str().unwrap().to_owned();
    for part in [
        "1 of 5 landed",
        "2 running",
        "1 needs you",
        "Needs you",
        "Search by author",
        "waits for beta",
        "4 iterations changed nothing",
        "feature_list.json → ralph/feature-list",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("git switch main && git merge --ff-only ralph/feature-list"), "{text}");
    // What an attacker wrote is text, and turns nothing.
    assert!(text.contains("<img src=x onerror=alert(1)><script>alert(2)</script>") && !text.contains('\u{202e}'), "{text}");
    let strangers = page
        .eval("document.querySelectorAll('img, iframe, object, embed, base, [onerror], article a, article script, article b > *').length");
    assert_eq!(strangers, 0);
    // A page that only shows has nothing to press.
    assert_eq!(page.eval("[...document.querySelectorAll('button, form')].filter(e => e.offsetParent).length"), 0);
    looks_well(&page, "fleet");
    // It changes by itself, and the element that a person may look at stays the same one.
    page.eval("window.before = document.querySelector(\"article[data-job='beta']\")");
    fs::write(bed.marks().join("go"), "").unwrap();
    until(&page, "beta's landing", &format!("({STATE})('beta') === 'landed' && ({STATE})('gamma') === 'landed'"));
    assert_eq!(
        page.eval(
            "window.before === document.querySelector(\"article[data-job='beta']\") && document.querySelectorAll('article').length === 5"
        ),
        true
    );
    assert!(page.eval("document.title").as_str().unwrap().starts_with("3 of 5 landed"), "{}", page.eval("document.title"));
    // The token is in nothing that travels or is kept in a history, and nothing comes from elsewhere.
    assert_eq!(page.eval("location.href"), format!("{}/", served.base));
    let requests = page.requests();
    let is_own = |url: &String| (url.starts_with(&served.base) || url.starts_with("data:")) && !url.contains(&served.token);
    assert!(requests.len() >= 4 && requests.iter().all(|url| is_own(&url.split('#').next().unwrap().to_owned())), "{requests:?}");
    assert!(requests.iter().filter(|url| url.ends_with("/events")).count() == 1, "{requests:?}");
    fs::write(bed.marks().join("end"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(12), "{}", bed.log());
    until(&page, "the end", &format!("({STATE})('b-omega-b') === 'landed'"));
    looks_well(&page, "fleet-morning");
}

#[test]
fn f6_the_page_takes_commands_where_it_may() {
    let Some(browser) = Browser::shared() else { return };
    let bed = bed();
    let mut run = bed.start("feature_list.json", &["--workers", "4", "--verify", "true"]);
    bed.until("both that wait", || bed.marks().join("beta").exists() && bed.marks().join("omega").exists());
    bed.until("who is stuck", || bed.of_job("delta", "state") == "needs-person");
    let served = Served::start(&bed, &["--allow-control"]);
    let page = browser.page();
    page.open(served.address());
    until(&page, "all jobs", "document.querySelectorAll('article').length === 5");
    let press = |script: &str| page.eval(&format!("{{ {script} }}; true"));
    let job = |id: &str, button: &str| {
        format!(
            "const b = [...document.querySelectorAll(\"article[data-job='{id}'] button\")].find(b => b.textContent === '{button}'); b.click()"
        )
    };
    let said = |part: &str| format!("document.getElementById('said').textContent.includes('{part}')");
    press("document.getElementById('all').click()");
    until(&page, "the pause", "!document.getElementById('paused').hidden && document.getElementById('all').textContent === 'Resume all'");
    assert_eq!(bed.status()["wish"], "pause");
    press("document.getElementById('all').click()");
    until(&page, "going on", "document.getElementById('paused').hidden");
    press("document.getElementById('task').value = 'Fix #123 <b>'; document.querySelector('#control button').click()");
    until(&page, "the task", "[...document.querySelectorAll('article')].some(a => a.innerText.includes('Fix #123 <b>'))");
    press("document.querySelectorAll('details').forEach(d => d.open = true)");
    press(&job("beta", "Steer"));
    press(
        "const f = document.querySelector(\"article[data-job='beta'] form\"); f.querySelector('input').value = 'Use tabs'; f.querySelector('button').click()",
    );
    until(&page, "the note", &said("beta hears it before its next iteration"));
    looks_well(&page, "control");
    // The first press asks.
    press(&job("delta", "Cancel"));
    assert_eq!(bed.of_job("delta", "state"), "needs-person");
    press(&job("delta", "Cancel it?"));
    until(&page, "the cancel", &format!("({STATE})('delta') === 'cancelled'"));
    press(&job("b-omega-b", "Cancel"));
    press(&job("b-omega-b", "Cancel it?"));
    until(&page, "its end", &format!("({STATE})('b-omega-b') === 'cancelled'"));
    fs::write(bed.marks().join("go"), "").unwrap();
    fs::write(bed.marks().join("end"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0), "{}", bed.log());
    // Commands from outside of the page: with the token and as JSON, and only what people may ask.
    let bearer = &*format!("Authorization: Bearer {}", served.token);
    let act = |kind: &str, body: &str| served.code("POST /act", &[bearer, kind], body);
    let json = "Content-Type: application/json";
    assert_eq!(act(json, r#"{"act":"add","text":"One more"}"#).0, 200);
    assert_eq!(act("Content-Type: text/plain", r#"{"act":"add","text":"Two more"}"#).0, 415);
    for (body, code) in [
        (r#"{"act":"add","text":" "}"#, 409),
        (r#"{"act":"cancel","job":"nowhere"}"#, 409),
        (r#"{"act":"land","job":"one-more"}"#, 409),
        (r#"{"act":"land","job":"one-more","force":true}"#, 400),
        (r#"{"act":"run"}"#, 400),
        ("{", 400),
    ] {
        assert_eq!(act(json, body).0, code, "{body}");
    }
    assert_eq!(served.code("POST /act", &[json], r#"{"act":"pause"}"#).0, 401);
    assert_eq!(served.code("POST /act", &[bearer, json, "Origin: http://evil.example"], r#"{"act":"pause"}"#).0, 403);
    assert_eq!(bed.status()["wish"], "run");
}

#[test]
fn f7_the_page_answers_only_those_who_may_ask() {
    let bed = Bed::new(&[("feature_list.json", "{\"features\": []}")], "say x\n");
    assert_eq!(bed.fleet(&["add", "Secret task"]).0, 0);
    for args in [&["serve"][..], &["serve", "--allow-control"]] {
        let refused = bed.command(args).env("CLAUDECODE", "1").output().unwrap();
        assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("agent's shell"), "{refused:?}");
    }
    let served = Served::start(&bed, &[]);
    let bearer = &*format!("Authorization: Bearer {}", served.token);
    let (code, page) = served.code("GET /", &[], "");
    assert_eq!(code, 200);
    for header in [
        "default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
    ] {
        assert!(page.contains(header), "{header}: {page}");
    }
    assert!(!page.contains("Secret task") && !page.contains("Access-Control") && !page.contains("Set-Cookie") && !page.contains("unsafe"));
    let wrong = format!("Authorization: Bearer {}{}", &served.token[..63], if served.token.ends_with('0') { '1' } else { '0' });
    for (request, headers, expected) in [
        ("GET /events", vec![], 401),
        ("GET /events", vec![wrong.as_str()], 401),
        ("GET /events", vec!["Cookie: token=1"], 401),
        ("GET /events", vec!["Host: evil.example", bearer], 421),
        ("GET /", vec!["Host: evil.example"], 421),
        ("GET /events", vec!["Origin: http://evil.example", bearer], 403),
        ("GET /events", vec!["Origin: null", bearer], 403),
        ("OPTIONS /act", vec!["Origin: http://evil.example", "Access-Control-Request-Method: POST"], 403),
        ("OPTIONS /act", vec![], 405),
        ("POST /act", vec![bearer, "Content-Type: application/json"], 403),
        ("GET /../../etc/passwd", vec![], 404),
        ("GET //etc/passwd", vec![bearer], 404),
        ("POST /", vec![], 404),
        ("DELETE /events", vec![bearer], 405),
    ] {
        let (code, answer) = served.code(request, &headers, "{\"act\":\"pause\"}");
        assert_eq!(code, expected, "{request} {headers:?}: {answer}");
        assert!(!answer.contains("Secret task") && !answer.contains(&served.token), "{answer}");
    }
    let (code, _) = served.code(&format!("GET /events?token={}", served.token), &[], "");
    assert_eq!(code, 404, "a token in an address would be written down");
    assert_eq!(bed.status()["wish"], "run");
    // Many who say nothing keep nobody else waiting for long, and bytes without an end are not read for ever.
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(served.host()).unwrap()).collect();
    assert_eq!(served.code("GET /page.js", &[], "").0, 200);
    drop(silent);
    assert!(served.raw(&format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(20_000))).starts_with("HTTP/1.1 431"));
    // Only this machine can ask at all.
    let port: u16 = served.host().rsplit(':').next().unwrap().parse().unwrap();
    let listens = fs::read_to_string("/proc/net/tcp").unwrap();
    let own: Vec<&str> = listens.lines().filter(|line| line.contains(&format!(":{port:04X} 00000000:0000 0A"))).collect();
    assert!(own.len() == 1 && own[0].contains("0100007F:"), "{own:?}");
}

#[test]
fn f7_the_address_of_a_service_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let bed = Bed::new(&[("feature_list.json", "{\"features\": []}")], "say x\n");
    assert_eq!(bed.fleet(&["add", "A task"]).0, 0);
    let file = bed.root.path().join("address");
    let mut child = bed
        .command(&["serve", "--address-file", file.to_str().unwrap(), "--name", "night.example"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    bed.until("the address", || file.exists());
    let address = fs::read_to_string(&file).unwrap();
    let (base, token) = address.trim().split_once("/#").unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let served =
        Served { child: bed.command(&["status"]).stdout(Stdio::null()).spawn().unwrap(), base: base.to_owned(), token: token.to_owned() };
    let bearer = &*format!("Authorization: Bearer {token}");
    let origin = "Origin: https://night.example";
    assert_eq!(served.code("POST /act", &["Host: night.example", bearer, origin, "Content-Type: application/json"], "{}").0, 403);
    assert_eq!(served.code("GET /", &["Host: night.example"], "").0, 200);
    assert!(std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("The address of the page is in") && !said.contains(token), "{said}");
}
