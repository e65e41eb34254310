//! Notifications (S4-8): every way is tried with the real thing, is bounded in time, and tells no secret when it fails.

use std::{
    fs,
    time::{Duration, Instant},
};

use ralph_testkit::{Manner, Output, Pty, Skip, Webhook};
use serde_json::{Value, json};

use crate::common::{Bed, RALPH, run};

/// `ralph notify …` with variables.
fn notify(bed: &Bed, args: &[&str], vars: &[(&str, &str)]) -> Output {
    let mut command = bed.command(RALPH);
    command.arg("notify").args(args).envs(vars.iter().copied());
    run(&mut command, b"")
}

#[track_caller]
fn sent(out: &Output) {
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", out.stdout);
}

#[track_caller]
fn untold(out: &Output, sentence: &str) {
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{}", out.stderr);
    assert_eq!(out.stderr, format!("warning: {sentence}\n"));
}

#[test]
fn s4_8_a_command_gets_the_news_in_its_environment_and_as_json() {
    let bed = Bed::new();
    sent(&notify(&bed, &["cmd:cat > news.json; env > news.env; echo noise; echo noise >&2"], &[]));
    let news: Value = serde_json::from_str(&bed.read("news.json")).unwrap();
    assert_eq!((&news["news"], &news["how"], &news["loop"], &news["rounds"]), (&json!("ended"), &json!("test"), &json!("test"), &json!(1)));
    assert_eq!((&news["project"], &news["title"]), (&json!("project"), &json!("project: test")));
    assert!(news["text"].as_str().unwrap().contains("next: ralph run"), "{news}");
    let env = bed.read("news.env");
    for line in ["RALPH_NEWS=ended", "RALPH_LOOP=test", "RALPH_ITERATION=1", "RALPH_TITLE=project: test"] {
        assert!(env.lines().any(|l| l == line), "{line}: {env}");
    }
    assert!(env.contains(&format!("RALPH_PROJECT={}", bed.dir().display())), "{env}");
}

#[test]
fn s4_8_a_command_that_fails_or_hangs_costs_a_sentence() {
    let bed = Bed::new();
    untold(
        &notify(&bed, &["cmd:echo '\u{1b}[31mloud' >&2; exit 3"], &[]),
        "the notification command `echo '[31mloud' >&2; exit 3` ended with exit code 3",
    );
    let begun = Instant::now();
    let out = notify(&bed, &["cmd:sleep 600 & echo $! > pid; sleep 600", "cmd:touch told"], &[]);
    untold(&out, "the notification command `sleep 600 & echo $! > pid; sleep 600` did not end in time");
    assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
    assert!(bed.exists("told"), "the others are told all the same");
    let pid = bed.read("pid");
    // What was killed may need a moment to end, and may then still wait for somebody to take note of it.
    let stat = || fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    while !(stat().is_empty() || stat().contains(") Z ")) {
        assert!(begun.elapsed() < Duration::from_mins(2), "what it left runs on: {}", stat());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn s4_8_a_webhook_gets_json_by_post() {
    if let Err(skip) = Skip::unless_installed("curl") {
        return skip.tell();
    }
    let bed = Bed::new();
    let hook = Webhook::start(Manner::Status(204));
    // What stands in the person's own settings for curl could send the secret elsewhere.
    fs::write(bed.home().join(".curlrc"), "verbose\nlocation\nuser-agent = other\n").unwrap();
    sent(&notify(&bed, &[&hook.address("/hooks/T[0-9]/{a,b}?key=se%20cret")], &[]));
    let [posted] = &hook.posted()[..] else { panic!("{:?}", hook.posted()) };
    assert_eq!((posted.method.as_str(), posted.content_type.as_str()), ("POST", "application/json"));
    assert_eq!(posted.path, "/hooks/T[0-9]/{a,b}?key=se%20cret");
    let news: Value = serde_json::from_str(&posted.body).unwrap();
    assert_eq!((&news["title"], &news["text"]), (&json!("project: test"), &news["content"]));
    assert!(!posted.body.contains(bed.home().to_str().unwrap()), "no path of this machine leaves it: {news}");
}

#[test]
fn s4_8_a_webhook_that_fails_is_told_without_its_secret() {
    if let Err(skip) = Skip::unless_installed("curl") {
        return skip.tell();
    }
    let bed = Bed::new();
    let told = |address: &str, why: &str| {
        let out = notify(&bed, &[address], &[]);
        let host = address.split('/').nth(2).unwrap().rsplit('@').next().unwrap();
        untold(&out, &format!("the webhook at {host} was not notified: {why}"));
    };
    let refusing = Webhook::start(Manner::Status(403));
    told(&refusing.address("/secret"), "it answered with status 403");
    let leading = Webhook::start(Manner::Status(302));
    told(&leading.address("/secret"), "it answered with status 302");
    assert_eq!(leading.posted().len(), 1, "the news follows nobody elsewhere");
    told("http://me:secret@127.0.0.1:1/secret", "it cannot be reached");
}

#[test]
fn s4_8_a_webhook_that_hangs_takes_ten_seconds_at_most_and_shows_its_address_to_nobody() {
    if let Err(skip) = Skip::unless_installed("curl") {
        return skip.tell();
    }
    let bed = Bed::new();
    let hook = Webhook::start(Manner::Hang);
    let address = hook.address("/secret-part");
    let begun = Instant::now();
    // Curl's own command line is looked at while it waits; one process finds it, because a shell that looks at each of many takes too long on a busy machine.
    let look = "cmd:for n in 1 2 3 4 5; do sleep 0.3; for p in $(grep -lazx '.*curl' /proc/[0-9]*/cmdline 2>/dev/null); do tr '\\0' ' ' < $p | grep '^[^ ]*curl '; done; done > lines; true";
    let out = notify(&bed, &[look], &[("RALPH_NOTIFY", &address)]);
    untold(&out, &format!("the webhook at {} was not notified: it did not answer in time", address.split('/').nth(2).unwrap()));
    // Ten seconds, and those that a busy machine takes to start the processes.
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    let lines = bed.read("lines");
    assert!(lines.contains("curl --disable --config - ") && !lines.contains("secret"), "{lines}");
}

#[test]
fn s4_8_without_curl_a_webhook_costs_a_sentence() {
    let bed = Bed::new();
    // One that lies in the project is somebody else's.
    bed.script("bin/curl", "#!/bin/sh\ntouch ran\n");
    let out = notify(&bed, &["http://127.0.0.1:1/x"], &[("PATH", bed.path("bin").to_str().unwrap())]);
    untold(&out, "the webhook at 127.0.0.1:1 was not notified: curl is not installed");
    assert!(!bed.exists("ran"));
}

/// A `notify-send` that writes down its arguments.
fn desktop(bed: &Bed, then: &str) -> String {
    let folder = bed.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let written = bed.home().join("shown");
    let script = format!("#!/bin/sh\nfor word in \"$@\"; do echo \"$word\"; done > {}\n{then}\n", written.display());
    let path = bed.script("notify-send", &script);
    fs::rename(path, folder.join("notify-send")).unwrap();
    format!("{}:/usr/bin:/bin", folder.display())
}

#[test]
fn s4_8_the_desktop_is_told_by_arguments() {
    let bed = Bed::new();
    let path = desktop(&bed, "");
    sent(&notify(&bed, &["desktop"], &[("PATH", &path), ("DISPLAY", ":0")]));
    let shown = fs::read_to_string(bed.home().join("shown")).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[..4], ["--app-name=ralph", "--urgency=normal", "--", "project: test"], "{shown}");
    assert!(lines[4].starts_with("Ralph: this is a test.") && lines.len() == 5, "{shown}");
    untold(
        &notify(&bed, &["desktop"], &[("PATH", &path)]),
        "no desktop notification: there is no desktop in this session (no DISPLAY, no WAYLAND_DISPLAY)",
    );
    let out = notify(&bed, &["desktop"], &[("PATH", "/nowhere"), ("WAYLAND_DISPLAY", "w")]);
    untold(&out, "no desktop notification: notify-send is not installed (Debian, Ubuntu: apt install libnotify-bin)");
    let path = desktop(&bed, "exit 1");
    untold(
        &notify(&bed, &["desktop"], &[("PATH", &path), ("DISPLAY", ":0")]),
        "no desktop notification: its program ended with exit code 1",
    );
}

#[test]
fn s4_8_a_terminal_is_told_by_sequences_and_a_pipe_is_not() {
    let bed = Bed::new();
    untold(&notify(&bed, &["terminal"], &[]), "no notification in the terminal: the run is shown in none");
    let raw = |vars: &[(&str, &str)]| {
        let mut command = bed.command(RALPH);
        command.args(["notify", "terminal"]).env("TERM", "xterm").envs(vars.iter().copied());
        let pty = Pty::spawn(command, 24, 200);
        assert!(pty.wait_closed(Duration::from_secs(20)));
        assert_eq!(pty.wait_exit(Duration::from_secs(5)), Some(0));
        assert!(pty.screen().trim() == "Sent one notification.", "nothing of it is to be seen: {}", pty.screen());
        String::from_utf8(pty.raw()).unwrap()
    };
    let plain = raw(&[]);
    assert!(plain.contains("\u{1b}]9;project: test: Ralph: this is a test."), "{plain:?}");
    assert!(plain.contains("\u{1b}]777;notify;project: test;Ralph: this is a test."), "{plain:?}");
    assert!(raw(&[("TMUX", "/tmp/tmux-0/default,1,0")]).contains("\u{1b}Ptmux;\u{1b}\u{1b}]9;project: test"));
    assert!(raw(&[("STY", "1.pts-0")]).contains("\u{1b}P\u{1b}]777;notify;project: test"));
}

/// A repository may have anybody's news sent anywhere: only a person can want that.
#[test]
fn s4_8_a_repository_tells_nobody_until_a_person_trusts_it() {
    let bed = Bed::new();
    bed.write("ralph.toml", "[notify]\ncommand = \"touch told\"\n");
    let out = notify(&bed, &[], &[]);
    assert!(!bed.exists("told"));
    untold(
        &out,
        "ralph.toml is not trusted, or has changed since it was, so its notifications are left out: `ralph trust` shows them and asks",
    );
    let shown = bed.ralph_ok(&["trust", "--list"]);
    assert!(shown.contains("notify\n    $ touch told"), "{shown}");
    bed.ralph_ok(&["trust", "--yes"]);
    sent(&notify(&bed, &[], &[]));
    assert!(bed.exists("told"));
    bed.write(
        "ralph.toml",
        "[notify]\ncommand = \"touch other\"\nwebhook = \"https://example.org/x\"\n[run]\npermission_mode = \"bypassPermissions\"\n",
    );
    assert_eq!(notify(&bed, &[], &[]).code, Some(1));
    assert!(!bed.exists("other"));
    let shown = bed.ralph_ok(&["trust", "--list"]);
    for line in [
        "`ralph run` starts Claude Code with the permission mode bypassPermissions",
        "$ touch other",
        "$ curl --data NEWS 'https://example.org/x'",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    bed.write("ralph.toml", "[notify]\nterminal = true\n");
    untold(&notify(&bed, &[], &[]), "no notification in the terminal: the run is shown in none");
    bed.write("ralph.toml", "[notify]\nterminal = 7\n");
    assert!(notify(&bed, &["cmd:true"], &[]).stderr.contains("ralph.toml cannot be read"));
}

#[test]
fn s4_8_the_environment_counts_for_a_person_and_not_for_an_agent() {
    let bed = Bed::new();
    sent(&notify(&bed, &[], &[("RALPH_NOTIFY", "cmd:touch one, two")]));
    assert!(bed.exists("one,") && bed.exists("two"));
    let out = notify(&bed, &[], &[("RALPH_NOTIFY", "cmd:touch three"), ("CLAUDECODE", "1")]);
    assert_eq!((out.code, bed.exists("three")), (Some(1), false), "{}", out.stderr);
    untold(
        &notify(&bed, &["cmd:true"], &[("RALPH_NOTIFY", "dektop")]),
        "RALPH_NOTIFY: \"dektop\" is not a way to notify you: use desktop, terminal, an address (https://…) or cmd:LINE",
    );
    let out = notify(&bed, &["pigeon"], &[]);
    assert!(out.code == Some(2) && out.stderr.contains("--notify: \"pigeon\" is not a way to notify you"), "{}", out.stderr);
    let out = notify(&bed, &["cmd:exit 1", "--json"], &[]);
    let told: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!((out.code, &told["asked"], told["untold"].as_array().unwrap().len()), (Some(1), &json!(1), 1));
}
