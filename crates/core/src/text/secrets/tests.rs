//! Row by row, with values that are put together here: none of them ever opened anything.

#[cfg(unix)]
use std::time::Duration;

use super::*;

/// Something that looks random: letters and digits, the same each time.
fn body(n: usize) -> String {
    let letters = b"a7Kq2ZxW9bT4mR8sL1cV6nJ3pH5dG0fY";
    (0..n).map(|at| char::from(letters[at % letters.len()])).collect()
}

fn hex(n: usize) -> String {
    (0..n).map(|at| char::from(b"3f9a0c7be1d82645"[at % 16])).collect()
}

fn upper(n: usize) -> String {
    body(n).to_ascii_uppercase()
}

fn mask(text: &str) -> String {
    Secrets::default().mask(text).into_owned()
}

/// Begins of tokens, and what a token of that kind looks like.
fn tokens() -> Vec<(&'static str, String)> {
    let one = |starts: &'static str| match starts {
        "AKIA" | "ASIA" | "ABIA" | "ACCA" => upper(16),
        "AGE-SECRET-KEY-1" => upper(58),
        "SK" | "dapi" | "key-" => hex(32),
        "doo_v1_" | "dop_v1_" | "dor_v1_" | "rubygems_" | "sbp_" | "sntryu_" | "pul-" => hex(64),
        "hooks.slack.com/services/" | "hooks.slack.com/workflows/" => format!("T{}/B{}/{}", upper(8), upper(8), body(24)),
        "discord.com/api/webhooks/" | "discordapp.com/api/webhooks/" => format!("1234567890/{}", body(60)),
        "SG." => format!("{}.{}", body(22), body(43)),
        _ => body(64),
    };
    shapes::starts().into_iter().map(|starts| (starts, one(starts))).collect()
}

#[test]
fn t9_every_kind_of_token_is_masked_wherever_it_stands() {
    for (starts, body) in tokens() {
        let token = format!("{starts}{body}");
        for (before, after) in [
            ("", ""),
            ("with ", " it"),
            ("\"", "\","),
            ("(", ")"),
            ("x=", "\n"),
            ("line\\n", "\\nline"),
            ("\u{1b}[31m", "\u{1b}[0m"),
            ("%20", "%20"),
            ("ü", "ü"),
            ("user:", "@"),
        ] {
            let text = format!("{before}{token}{after}");
            assert_eq!(mask(&text), format!("{before}{starts}{MASK}{after}"), "{text}");
        }
    }
}

#[test]
fn t9_the_table_is_in_order() {
    let starts = shapes::starts();
    assert!(starts.len() < 255);
    assert!(starts.is_sorted_by_key(|starts| starts.as_bytes()[0]), "the rows of one first byte stand together");
    for (at, one) in starts.iter().enumerate() {
        assert!(!starts[at + 1..].iter().any(|later| later.starts_with(one)), "{one} hides what stands behind it");
    }
}

#[test]
fn t9_values_whose_name_says_so() {
    let m = MASK;
    for (text, masked) in [
        ("DB_PASSWORD=hunter2", format!("DB_PASSWORD={m}")),
        ("export GITHUB_TOKEN=abcdef", format!("export GITHUB_TOKEN={m}")),
        ("PGPASSWORD=s3cr;et& psql", format!("PGPASSWORD={m} psql")),
        ("MYSQL_PWD=topsecret", format!("MYSQL_PWD={m}")),
        ("SECRET_KEY_BASE=0a1b2c3d", format!("SECRET_KEY_BASE={m}")),
        ("AWS_SECRET_ACCESS_KEY=wJalr/XUtn+FEMI", format!("AWS_SECRET_ACCESS_KEY={m}")),
        ("_authToken=0a1b2c3d4e", format!("_authToken={m}")),
        (r#"{"password": "hunter two", "n": 1}"#, r#"{"password": "hunter two", "n": 1}"#.to_owned()),
        (r#"{"password": "hunter2", "n": 1}"#, format!(r#"{{"password": "{m}", "n": 1}}"#)),
        (r#"{"apiKey":"abc\"def"}"#, format!(r#"{{"apiKey":"{m}"}}"#)),
        (r#"{"text":"{\"client_secret\":\"abcdef\"}"}"#, format!(r#"{{"text":"{{\"client_secret\":\"{m}\"}}"}}"#)),
        (r#""say: \\\"password\\\": \\\"abcdef\\\"""#, format!(r#""say: \\\"password\\\": \\\"{m}\\\"""#)),
        ("password = 'abcd'", format!("password = '{m}'")),
        ("api_key: \"0a1b2c\"", format!("api_key: \"{m}\"")),
        ("password: hunter2\n", format!("password: {m}\n")),
        ("accessToken: 0a1b2c3d", format!("accessToken: {m}")),
        ("?access_token=0a1b2c3d&x=1", format!("?access_token={m}&x=1")),
        ("curl --token 0a1b2c3d4e -v", format!("curl --token {m} -v")),
        ("--password=hunter2", format!("--password={m}")),
        ("X-Api-Key: 0a1b2c3d4e", format!("X-Api-Key: {m}")),
        ("Authorization: Basic dXNlcjpwYXNzMQ==", format!("Authorization: Basic {m}")),
        ("authorization: token 0a1b2c3d4e", format!("authorization: token {m}")),
        (r#""Authorization": "Bearer abcdef""#, format!(r#""Authorization": "Bearer {m}""#)),
        ("-H 'Authorization: Bearer 0a1b2c3d4e5f6a7b'", format!("-H 'Authorization: Bearer {m}'")),
        ("AccountName=x;AccountKey=0a1b2c3d+/==;EndpointSuffix=y", format!("AccountName=x;AccountKey={m};EndpointSuffix=y")),
        ("postgres://app:opensesame@db:5432/x", format!("postgres://app:{m}@db:5432/x")),
        ("https://user:p@ss@host/", format!("https://user:{m}@host/")),
        ("redis://:0a1b@h", format!("redis://:{m}@h")),
        ("https://0a1b2c3d4e5f6a7b8c9d0e1f@github.com/x", format!("https://{m}@github.com/x")),
    ] {
        assert_eq!(mask(text), masked, "{text}");
    }
    let signature = format!("?sv=1&sig={}%3D&se=2", body(43));
    assert_eq!(mask(&signature), format!("?sv=1&sig={m}&se=2"));
    let azure = format!("secret is abc8Q~{} there", body(34));
    assert_eq!(mask(&azure), format!("secret is {m} there"));
    let jwt = format!("eyJ{}.eyJ{}.{}", body(30), body(60), body(43));
    assert_eq!(mask(&format!("got {jwt}, then")), format!("got eyJ{m}, then"));
}

/// What an agent has to read stays as it is.
#[test]
fn t9_what_is_no_secret_stays() {
    for text in [
        "commit 3f9a0c7be1d826453f9a0c7be1d826453f9a0c7b",
        "sha256:3f9a0c7be1d826453f9a0c7be1d826453f9a0c7be1d826453f9a0c7be1d82645",
        "session 0b6cf4f5-8f2c-4c6b-9f0e-3f9a0c7be1d8",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        "PASSWORD=",
        "PASSWORD=\n",
        "PASSWORD= next",
        "API_TOKEN=$API_TOKEN",
        "API_TOKEN=${API_TOKEN}",
        "API_TOKEN=<token>",
        "API_TOKEN=****",
        "token_count=12",
        "max_tokens: 4096",
        "tokens=1234567",
        "\"tokens\": 123456",
        "MAX_TOKEN=4096000",
        "NEXT_TOKEN=12",
        "api_key = get_key()",
        "api_key = get_key2()",
        "let token = tokens2[3];",
        "self.token = token",
        "f(api_key=api_key, password=config.password)",
        "password: &str",
        "token: u64,",
        "secret: [u8; 32]",
        "token: String",
        "api_key: Option<String>",
        "password: str = None",
        "if token == \"abc123def456\" {",
        "token::Kind2345",
        "error: unexpected token: `foo12345`",
        "\"token\": \"ident\"",
        "token: 12345678",
        "\"password\": \"must have at least 8 characters\"",
        "Password: ",
        "password: required",
        "PWD=/home/x/y1",
        "OLDPWD=/home/x1",
        "GIT_ASKPASS=/usr/bin/askpass",
        "task-runner-of-the-project-with-a-long-name1",
        "sk-loading-spinner-of-the-page",
        "ghp_short",
        "npm_config_registry=https://registry.example.org/",
        "npm_lifecycle_event=test",
        "hf_hub_download",
        "key-value",
        "AKIAshort",
        "SKIP",
        "https://example.org:8080/a@b",
        "git@github.com:owner/name.git",
        "ssh://git@github.com/owner",
        "http://localhost:3000",
        "http://user:$PASS@host",
        "std::env::var",
        "eyJ",
        "eyJhbGciOi",
        "bearer of bad news",
        "Bearer token",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUAAAAaaaa0123456789\n-----END CERTIFICATE-----",
        "if text.contains(\"-----BEGIN PRIVATE KEY-----\") {\n    return keys::read(text);\n}",
        "secrets.GITHUB_TOKEN",
        "${{ secrets.NPM_TOKEN }}",
        "authorization: required",
        "test auth::token_is_checked ... ok",
        "",
        "\\",
        "%",
        ":",
        "\u{1b}",
        "\u{1b}[",
    ] {
        assert_eq!(mask(text), text);
    }
}

fn key(label: &str, line_end: &str) -> (String, Vec<String>) {
    let lines: Vec<String> = (0..6).map(|n| format!("{}{n}", body(63))).chain(["Qw7=".to_owned()]).collect();
    (format!("-----BEGIN {label}-----{line_end}{}{line_end}-----END {label}-----", lines.join(line_end)), lines)
}

#[test]
fn t9_private_keys_are_masked_line_by_line() {
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        for line_end in ["\n", "\r\n", "\\n", "\\\\n", " ", "\n  ", "\n+ ", "\n2026-01-02T03:04:05Z ", "\",\n  \"", "\\n\" +\n \""] {
            let (key, lines) = key(label, line_end);
            let text = format!("before\n{key}\nafter");
            let masked = mask(&text);
            for line in lines.iter().filter(|line| line.len() > 16) {
                assert!(!masked.contains(line.as_str()), "{line_end:?}: {masked}");
            }
            assert_eq!(masked.matches(MASK).count(), 1, "{line_end:?}: {masked}");
            assert!(masked.starts_with(&format!("before\n-----BEGIN {label}-----")), "{masked}");
            assert!(masked.ends_with(&format!("-----END {label}-----\nafter")), "{line_end:?}: {masked}");
        }
    }
    let (key, lines) = key("RSA PRIVATE KEY", "\n");
    let cut = key.replace("-----END RSA PRIVATE KEY-----", "and then the log goes on\n");
    let masked = mask(&cut);
    assert!(masked.ends_with("and then the log goes on\n") && !masked.contains(&lines[3]), "{masked}");
    let with_header = key.replacen("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,3F9A0C7BE1D82645\n\n", 1);
    assert!(!mask(&with_header).contains(&lines[0]));
    let json = serde_json::json!({"private_key": key, "text": format!("it is {key}"), "lines": key.lines().collect::<Vec<_>>(), "n": 12_345_678_901_234_567_u64}).to_string();
    let masked = mask(&json);
    let read: serde_json::Value = serde_json::from_str(&masked).unwrap();
    assert!(read["n"] == 12_345_678_901_234_567_u64 && lines[..6].iter().all(|line| !masked.contains(line.as_str())), "{masked}");
}

#[test]
fn t9_the_users_own_values_are_masked_word_for_word() {
    let own = Secrets::of([
        ("MY_TOKEN", "correct horse battery"),
        ("OTHER_SECRET", "one line of it\nanother line"),
        ("SHORT_SECRET", "short"),
        ("HARMLESS", "harmless value"),
        ("UNSET_TOKEN", "undefined"),
        ("LONGER_TOKEN", "correct horse battery staple"),
    ]);
    let text = "say correct horse battery, one line of it, another line, short, harmless value, undefined; correct horse battery staple";
    assert_eq!(own.mask(text), format!("say {MASK}, {MASK}, {MASK}, short, harmless value, undefined; {MASK}"));
    assert_eq!(own.and([("GATE_TOKEN", "of the gate")]).mask("of the gate: another line"), format!("{MASK}: {MASK}"));
    assert!(matches!(own.mask("nothing of it"), Cow::Borrowed(_)));
    let repeated = Secrets::of([("A_TOKEN", "abababab"), ("B_TOKEN", "babababab")]);
    assert!(!in_parts(&repeated, b"xabababababababababx", 1).windows(8).any(|w| w == b"abababab"));
}

fn in_parts(secrets: &Secrets, bytes: &[u8], size: usize) -> Vec<u8> {
    let mut masking = Masking::new(secrets);
    let mut out = Vec::new();
    bytes.chunks(size).for_each(|part| masking.feed(part, &mut out));
    masking.finish(&mut out);
    out
}

#[test]
fn t9_it_does_not_matter_how_a_text_is_cut() {
    let own = Secrets::of([("MY_TOKEN", "correct horse battery")]);
    let (key, _) = key("RSA PRIVATE KEY", "\n");
    let (escaped, _) = self::key("PRIVATE KEY", "\\n");
    let all: Vec<String> = tokens().into_iter().map(|(starts, body)| format!("got {starts}{body}, and")).collect();
    let text = format!(
        "{}\nX_TOKEN=abcdef\n{{\"password\" : \"hunter2\"}}\n--secret 0a1b2c3d4e\nhttps://a:b1@c/\ncorrect horse battery\n{key}\n{{\"k\":\"{escaped}\"}}\nAuthorization: Bearer {}\n",
        all.join("\n"),
        body(9_000)
    );
    let whole = own.mask(&text).into_owned();
    assert_eq!(whole.matches(MASK).count(), all.len() + 8, "{whole}");
    for size in [1, 2, 3, 7, 16, 100, 1_000, 4_096] {
        assert_eq!(String::from_utf8(in_parts(&own, text.as_bytes(), size)).unwrap(), whole, "{size}");
    }
    assert_eq!(own.mask(&whole), whole, "masking twice changes nothing");
}

#[test]
fn t9_a_token_that_a_line_break_cuts_is_one() {
    let token = format!("ghp_{}", body(36));
    for line_end in ["\n", "\r\n"] {
        let text = format!("it is {}{line_end}{} there\n", &token[..20], &token[20..]);
        assert_eq!(mask(&text), format!("it is ghp_{MASK} there\n"));
        for size in [1, 5, 21] {
            assert_eq!(in_parts(&Secrets::default(), text.as_bytes(), size), mask(&text).as_bytes());
        }
    }
    // A whole one takes nothing of the next line.
    assert_eq!(mask(&format!("{token}\n0123456789 tests\n")), format!("ghp_{MASK}\n0123456789 tests\n"));
}

/// What is said while it comes is shown while it comes.
#[test]
fn t9_only_what_may_be_a_secret_is_held_back() {
    let mut masking = Masking::new(&Secrets::default());
    let mut out = Vec::new();
    masking.feed(b"....F..", &mut out);
    assert_eq!(out, b"....F..");
    masking.feed(b" Compiling x (1/2", &mut out);
    assert_eq!(out, b"....F.. Compiling x (1/");
    masking.feed(b")\r", &mut out);
    assert_eq!(out, b"....F.. Compiling x (1/2)\r");
    masking.feed(&b"x".repeat(100_000), &mut out);
    assert!(masking.held.len() <= LONGEST, "memory does not grow with a line");
}

/// The time that this thread was at work: a busy machine adds nothing to it.
#[cfg(unix)]
fn worked() -> Duration {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(at.tv_sec.try_into().unwrap(), at.tv_nsec.try_into().unwrap())
}

/// Eight times as much takes eight times as long, with a generous margin; a square would take sixty-four times as long.
#[cfg(unix)]
#[test]
fn t9_it_is_linear_in_time() {
    let hard = [
        "token=",
        "token:",
        "a_token=\"",
        "'token': '",
        "://",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "\\",
        "%2",
        "eyJ",
        "sk-",
        "ghp_\n",
        "--token ",
        "\u{1b}[3",
        "bearer ",
        "Aa0/",
        "password=a:",
        "_",
        "\\\"token\\\":\\\"",
    ];
    let own = Secrets::of([("A_TOKEN", "aaaaaaaaaaaaaaaa")]);
    let took = |text: &str| {
        let begun = worked();
        assert!(own.mask(text).len() <= text.len() * 3);
        worked().saturating_sub(begun)
    };
    for piece in hard.into_iter().chain(["aaaaaaaaaaaaaaaaa"]) {
        let (small, large) = (piece.repeat(10_000 / piece.len()), piece.repeat(80_000 / piece.len()));
        // Who shares the core can slow down some of the tries, never all of them.
        let is_linear = || took(&large) < took(&small).max(Duration::from_micros(200)) * 8 * 6;
        assert!((0..20).any(|_| is_linear()), "{piece:?}: eight times as much takes far more than eight times as long");
    }
}
