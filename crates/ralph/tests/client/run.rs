//! `ralph run` with the real client and a scripted model: fresh sessions, and what the service does to them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::real::*;
use ralph_testkit::{Cached, Gate, Kind, ModelServer, Output, Reply, Request, SignIn, Version, nightly, or_skip};
use serde_json::{Value, json};

/// A project with ralph's hook registered, in which `claude` is the real client.
fn bed(version: Version, server: &ModelServer, sign_in: SignIn) -> Result<Bed, ralph_testkit::Skip> {
    let mut bed = Bed::new(version)?;
    bed.project.write("README.md", "a project\n");
    bed.project.commit_all("begin");
    let program = bed.client.as_program(&bed.project, server, sign_in, &[("CLAUDE_CODE_MAX_RETRIES", "0")]);
    bed.path = format!("{}:{}", program.parent().unwrap().display(), bed.path);
    Ok(bed)
}

/// `ralph run` to its end.
fn run(bed: &Bed, args: &[&str]) -> Output {
    let run = bed.project.run(RALPH).env("PATH", &bed.path).env("IS_SANDBOX", "1").arg("run");
    let output = run.args(args).args(["--permission-mode", "bypassPermissions"]).timeout(Duration::from_mins(3)).output();
    assert!(!output.timed_out, "{output:?}");
    output
}

fn ends(bed: &Bed, code: i32, args: &[&str]) -> Output {
    let output = run(bed, args);
    assert_eq!(output.code, Some(code), "{}\n{}", output.stdout, output.stderr);
    output
}

/// Whether this is a session's first request: its conversation holds nothing but the prompt.
fn is_first(request: &Request) -> bool {
    request.messages().iter().all(|message| message["role"] != "assistant")
}

fn now() -> i64 {
    ralph_engine::sys::clock::now() / 1_000
}

/// S4-6: rounds over a list, each in a session of its own, with a test that fails until it is mended; every token and every cent is counted.
fn s4_6_rounds_over_a_list(version: Version) {
    let items = nightly::amount(4, 9);
    let used = |n: usize| (1_000 + n as u64 * 7, 100 + n as u64 * 3);
    let cached = Cached { written_5m: 2_000, written_1h: 0, read: 3_000 };
    let server = ModelServer::with(move |request| {
        let (input, output) = used(request.index);
        let text = request.all_text();
        let reply = if is_first(request) {
            let item = (1..=items).find(|n| text.contains(&format!("F{n}: feature {n}"))).map_or(0, |n| n);
            let mends = if text.contains("Gate \"tests\" fails") { "echo good > f3.txt; " } else { "" };
            let makes = if item == 3 { "[ -f f3.txt ] || echo bad > f3.txt".to_owned() } else { format!("echo {item} > f{item}.txt") };
            let mark = format!("sed -i 's/\"id\":\"F{item}\",\"passes\":false/\"id\":\"F{item}\",\"passes\":true/' feature_list.json");
            Reply::bash(format!("{mends}{makes}; {mark}; git add -A; git commit -qm 'feature {item}'"))
        } else {
            Reply::text("I did what was asked.")
        };
        reply.usage(input, output).cached(cached)
    });
    let bed = or_skip!(bed(version, &server, SignIn::Key));
    let features: Vec<Value> =
        (1..=items).map(|n| json!({"id": format!("F{n}"), "passes": false, "description": format!("feature {n}")})).collect();
    bed.project.write("feature_list.json", json!({"features": features}).to_string());
    bed.project.write(
        "ralph.toml",
        "[[gate]]\nname = \"tests\"\ncommand = \"! grep -q bad f3.txt\"\n\n[[gate]]\nfeatures = \"feature_list.json\"\n",
    );
    bed.project.commit_all("a list");
    bed.ralph_ok(&["trust", "--yes"]);
    let output = ends(&bed, 0, &["Work off the list", "--model", "claude-sonnet-4-6"]);
    assert!(output.stdout.contains("complete · "), "{}", output.stdout);
    let journal = bed.journal();
    let rounds = journal.iterations();
    assert_eq!(rounds, (1..=rounds.len() as u64).collect::<Vec<_>>());
    assert!(rounds.len() >= items, "{rounds:?}");
    assert_eq!(bed.project.read("f3.txt").trim(), "good", "the failing test was fixed");

    // Every session has an id of its own, and its own hooks leave it alone.
    let sessions: Vec<&str> = journal.of_kind("began").iter().map(|r| r["session"].as_str().unwrap()).collect();
    let mut distinct = sessions.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), rounds.len());
    assert_eq!(bed.logged(&["event=Stop", "code=runner.drives"]), rounds.len(), "{:?}", bed.hook_log());

    // What the server counted is what the journal says.
    let requests = server.requests();
    let main = requests.iter().filter(|r| r.kind == Kind::Main);
    let (mut input, mut output, mut many) = (0, 0, 0);
    for request in main {
        input += used(request.index).0;
        output += used(request.index).1;
        many += 1;
    }
    let sides = requests.iter().filter(|r| r.kind == Kind::Side).count() as u64;
    let tokens = |name: &str| journal.stops().iter().map(|stop| stop["work"][name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(tokens("input"), input + sides * 100);
    assert_eq!(tokens("output"), output + sides * 10);
    assert_eq!((tokens("cache_read"), tokens("cache_written")), (many * 3_000, many * 2_000));
    let total = tokens("input") + tokens("output") + tokens("cache_read") + tokens("cache_written");
    let ended: Value = serde_json::from_str::<Value>(&bed.ralph_ok(&["status", "--json"])).unwrap()["last_ended"].clone();
    let micros: u64 = journal.stops().iter().map(|stop| stop["work"]["usd_micros"].as_u64().unwrap()).sum();
    let reckoned = (input as f64 * 3.0 + output as f64 * 15.0 + (many * 3_000) as f64 * 0.3 + (many * 2_000) as f64 * 3.75) / 1e6;
    let spent = ended["spent_usd"].as_f64().unwrap();
    assert!((spent * 1e6 - micros as f64).abs() < 1.5, "{spent} {micros}");
    assert!((spent / reckoned - 1.0).abs() < 0.01, "{spent} {reckoned}");
    let state = &journal.records.last().unwrap()["state"]["tokens"];
    let kept: u64 = ["input", "output", "cache_read", "cache_written"].iter().map(|name| state[name].as_u64().unwrap()).sum();
    assert_eq!(kept, total);
    bed.assert_replays(rounds.len());
}
newest!(s4_6_rounds_over_a_list);

/// U2: after `ralph init --yes`, `ralph run` with nothing but a task ends complete: the project's failing test is fixed, and ralph has seen it pass.
fn u2_after_init_a_run_needs_nothing_but_its_task(version: Version) {
    let folder = std::sync::Arc::new(std::sync::OnceLock::<std::path::PathBuf>::new());
    let of_server = std::sync::Arc::clone(&folder);
    let server = ModelServer::with(move |request| match request.messages().iter().filter(|m| m["role"] == "assistant").count() {
        0 => Reply::tool("Write", json!({"file_path": of_server.get().unwrap().join("answer.txt"), "content": "42\n"})),
        _ => say("The test passes now."),
    });
    let mut bed = or_skip!(Bed::with_program(version));
    folder.set(bed.project.dir().to_owned()).unwrap();
    bed.project.write("pom.xml", "<project/>\n");
    bed.project.script("mvnw", "#!/bin/sh\n# The one test of this project.\ngrep -qx 42 answer.txt\n");
    bed.project.commit_all("begin");
    let program = bed.client.as_program(&bed.project, &server, SignIn::Key, &[("CLAUDE_CODE_MAX_RETRIES", "0")]);
    bed.path = format!("{}:{}", program.parent().unwrap().display(), bed.path);
    let said = bed.ralph_ok(&["init", "--yes"]);
    assert!(said.contains("\nNext: ralph run \"Fix the failing tests\"\n"), "{said}");
    let output =
        bed.project.run(RALPH).env("PATH", &bed.path).args(["run", "Fix the failing tests"]).timeout(Duration::from_mins(5)).output();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("complete · "), "{}", output.stdout);
    assert_eq!((bed.project.read("answer.txt").trim(), bed.journal().iterations()), ("42", vec![1]));
}
newest!(u2_after_init_a_run_needs_nothing_but_its_task);

/// S1-4: the account's limit parks the loop until the reset, in the same round.
fn s1_4_a_limit_is_waited_for(version: Version) {
    let resets = now() + 45;
    let asked = AtomicUsize::new(0);
    let server = ModelServer::with(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::limit(resets),
        _ => claim(1),
    });
    let bed = or_skip!(bed(version, &server, SignIn::Subscription));
    let output = ends(&bed, 0, &["Do it", "--completion-promise", "DONE"]);
    assert!(now() >= resets, "it waited");
    assert!(output.stdout.contains("limit of the account is used up"), "{}", output.stdout);
    let journal = bed.journal();
    assert_eq!(journal.iterations(), [1], "no iteration was counted for it");
    assert_eq!(server.main_requests().len(), 2, "nobody asked meanwhile");
    let broke = &journal.of_kind("broke")[0]["event"];
    assert_eq!((broke["outcome"]["trouble"]["trouble"].as_str(), broke["then"]["then"].as_str()), (Some("limit"), Some("park")), "{broke}");
}
newest!(s1_4_a_limit_is_waited_for);

/// S1-4: an overload is tried again, in the same round; a limit in words is none.
fn s1_4_an_overload_is_tried_again(version: Version) {
    let asked = AtomicUsize::new(0);
    let server = ModelServer::with(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::error(529, "overloaded_error", "Overloaded"),
        1 => say("You've hit your 5-hour limit. Error 429: rate limit. authentication_failed."),
        _ => claim(2),
    });
    let bed = or_skip!(bed(version, &server, SignIn::Key));
    ends(&bed, 0, &["Do it", "--completion-promise", "DONE"]);
    let journal = bed.journal();
    assert_eq!(journal.codes(), ["promise.missing", "promise.accepted"]);
    let broke = journal.of_kind("broke");
    assert_eq!(broke.len(), 1);
    assert_eq!(broke[0]["event"]["outcome"]["trouble"]["status"], 529);
}
newest!(s1_4_an_overload_is_tried_again);

/// S1-4: what only a person can mend ends the run at once, with what to do.
fn s1_4_a_sign_in_that_fails_asks_a_person(version: Version) {
    let server = ModelServer::with(|_| Reply::error(401, "authentication_error", "invalid x-api-key"));
    let bed = or_skip!(bed(version, &server, SignIn::Key));
    let output = ends(&bed, 12, &["Do it", "--completion-promise", "DONE"]);
    assert!(output.stdout.contains("not signed in") && output.stdout.contains("/login"), "{}", output.stdout);
    assert_eq!(bed.value("active"), "false");
    assert_eq!(bed.value("iteration"), "1");
}
newest!(s1_4_a_sign_in_that_fails_asks_a_person);

/// A stream that hangs is noticed; a client that does not listen to signals ends all the same, with all that it started.
fn pains_13_a_hung_stream_is_ended(version: Version) {
    let gate = Gate::new();
    let (hangs, asked) = (gate.clone(), AtomicUsize::new(0));
    let server = ModelServer::with(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::bash("sleep 300 & echo started").usage(10, 10),
        1 => say("half of it").hang(&hangs),
        _ => claim(1),
    });
    let bed = or_skip!(bed(version, &server, SignIn::Key));
    let _opens = Opens(&gate);
    let program = bed.project.home().join("bin/claude");
    fs::rename(&program, program.with_file_name("real-claude")).unwrap();
    fs::write(&program, "#!/bin/sh\ntrap '' TERM INT HUP\n\"$(dirname \"$0\")/real-claude\" \"$@\"\n[ \"$1\" = --version ] || sleep 60\n")
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    bed.project.write("ralph.toml", "[run]\nsilence = \"4s\"\n");
    let began = Instant::now();
    let output = ends(&bed, 0, &["Do it", "--completion-promise", "DONE", "-n", "2"]);
    assert!(began.elapsed() < Duration::from_mins(2), "{}", output.stdout);
    // It had used a tool, so what it did is a round.
    assert_eq!(bed.journal().codes(), ["promise.missing", "promise.accepted"]);
    assert_eq!(left_of(&bed), 0, "no process is left");
}
newest!(pains_13_a_hung_stream_is_ended);

/// One loop, two carriers: begun in a session, carried on by a run, finished in a session; one count, one budget, one journal.
fn s4_6_hand_over_and_back(version: Version) {
    let server = ModelServer::with(|request| match request.index {
        0 | 1 => say(format!("This is iteration {}.", request.index + 1)).usage(1_000, 1_000),
        n @ (2 | 4) => work(n),
        3 | 5 => say("I worked on it.").usage(1_000, 1_000),
        _ => claim(6),
    });
    let bed = or_skip!(bed(version, &server, SignIn::Key));
    bed.ralph_ok(&["start", "Go on.", "--completion-promise", "DONE", "--max-iterations", "20", "--usd", "100", "--idle-iterations", "2"]);
    // Two rounds without a tool, and the brake pauses the loop.
    bed.run(&server, "begin");
    assert_eq!((bed.value("active"), bed.value("iteration")), ("false".to_owned(), "2".to_owned()));
    let before = spent(&bed);
    let output = ends(&bed, 0, &["--continue", "-n", "2"]);
    assert!(output.stdout.contains("goes on at iteration 2 of 20"), "{}", output.stdout);
    assert_eq!((bed.value("active"), bed.value("iteration")), ("false".to_owned(), "4".to_owned()));
    assert!(spent(&bed) > before && before > 0.0, "one budget");
    bed.ralph_ok(&["resume", "--session"]);
    bed.run(&server, "go on");
    bed.assert_archived(4);
    assert_eq!(bed.journal().iterations(), [1, 2, 2, 3, 4], "the second iteration was ruled on when it was paused, and worked on anew");
}
newest!(s4_6_hand_over_and_back);

fn spent(bed: &Bed) -> f64 {
    let status: Value = serde_json::from_str(&bed.ralph_ok(&["status", "--json"])).unwrap();
    status["loops"][0]["spent_usd"].as_f64().unwrap()
}

/// Pains 17: what nobody allows is denied, kept with the rule that would have allowed it, and asked of a person if nothing goes without.
fn pains_17_denials_are_kept_and_told(version: Version) {
    let server = ModelServer::with(|request| if is_first(request) { Reply::bash("npm test --silent") } else { Reply::text("I may not.") });
    let bed = or_skip!(bed(version, &server, SignIn::Key));
    let run = bed.project.run(RALPH).env("PATH", &bed.path).env("IS_SANDBOX", "1").args(["run", "Do it", "--completion-promise", "DONE"]);
    let output = run.args(["--permission-mode", "default"]).timeout(Duration::from_mins(2)).output();
    assert_eq!(output.code, Some(12), "{}\n{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("Bash(npm test:*)"), "{}", output.stdout);
    assert!(bed.ralph_ok(&["status"]).contains("Bash(npm test:*)"));
    assert_eq!(bed.journal().codes().last(), Some(&"host.denied"));
}
newest!(pains_17_denials_are_kept_and_told);

/// `kill -9` of the runner again and again, at whatever moment: the loop completes, and no round is lost or counted twice.
fn s4_6_killed_again_and_again_the_loop_completes(version: Version) {
    let (last, kills) = nightly::amount((3, 6), (8, 20));
    let server = ModelServer::with(move |request| {
        let text = request.all_text();
        let round = (1..=last).rev().find(|n| text.contains(&format!("This is iteration {n} of a loop")));
        match (is_first(request), round) {
            (true, _) => Reply::bash("echo x >> work.txt; git add -A; git commit -qm work"),
            (false, Some(round)) if round == last => Reply::text("All of it.\n\n<promise>DONE</promise>"),
            (false, _) => Reply::text("One more step is done."),
        }
    });
    let bed = or_skip!(bed(version, &server, SignIn::Key));
    let start = || {
        let mut command = bed.project.command(RALPH);
        command.env("PATH", &bed.path).env("IS_SANDBOX", "1").args(["run", "--permission-mode", "bypassPermissions", "--quiet"]);
        // A loop that has ended is not begun again.
        let begun = !files_of(&bed, ".ralph/journal").is_empty();
        command.args(if begun { &["--continue"][..] } else { &["Do it", "--completion-promise", "DONE"] });
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut runner = start();
    let mut killed = 0;
    let end = Instant::now() + Duration::from_mins(8);
    let code = loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(if killed < kills { (seed >> 33) % 3_000 } else { 100 }));
        if let Some(status) = runner.try_wait().unwrap() {
            break status.code();
        }
        assert!(Instant::now() < end, "it does not end");
        if killed < kills {
            runner.kill().unwrap();
            runner.wait().unwrap();
            killed += 1;
            runner = start();
        }
    };
    let journal = bed.journal();
    // Killed between its last line and its exit, it leaves a loop that has ended, and the next runner finds nothing to go on with.
    let is_over = journal.codes().last() == Some(&"promise.accepted");
    assert!(code == Some(0) || (code == Some(1) && is_over), "{code:?} {:?}", journal.lines());
    assert!(killed >= kills / 4, "it was over too soon: {killed}");
    let unwritten = journal.of_kind("taken").into_iter().filter_map(|r| r["event"]["unwritten"].as_u64());
    let mut rounds: Vec<u64> = journal.iterations().into_iter().chain(unwritten).collect();
    rounds.sort_unstable();
    assert_eq!(rounds, (1..=last).collect::<Vec<_>>());
    assert_eq!(left_of(&bed), 0, "no process is left");
}
newest!(s4_6_killed_again_and_again_the_loop_completes);

fn files_of(bed: &Bed, folder: &str) -> Vec<std::path::PathBuf> {
    fs::read_dir(bed.project.path(folder)).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// How many processes live in this bed's home.
fn left_of(bed: &Bed) -> usize {
    let home = format!("HOME={}", bed.project.home().display());
    let lives = |process: &fs::DirEntry| {
        let environ = fs::read(process.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&home)
    };
    fs::read_dir("/proc").unwrap().flatten().filter(lives).count()
}
