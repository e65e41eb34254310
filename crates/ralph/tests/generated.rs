//! S1-AC3: the files that ralph writes are what its schemas say, the settings that are documented too, and the schemas reject what ralph would reject.
//!
//! The judges are strangers: a YAML parser that shares no code with ours (libyaml's), and a JSON schema validator. That the schemas and the
//! template are fresh is checked where they are made, in xtask. The pictures of the demo and of `watch` need the program, so they are checked here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use boon::{Compiler, SchemaIndex, Schemas};
use ralph_engine::{store::runner, sys::clock};
use ralph_testkit::{Output, Project, Pty, story};
use serde_json::{Value, json};

const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// A checked-in schema, ready to judge.
struct Schema {
    all: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn load(name: &str) -> Self {
        let schema = serde_json::from_str(&checked_in(&format!("schemas/{name}"))).unwrap();
        let mut all = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.add_resource(name, schema).unwrap();
        let index = compiler.compile(name, &mut all).unwrap();
        Schema { all, index }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        self.all.validate(value, self.index).map_err(|e| format!("{e:#}\nin {value:#}"))
    }
}

fn checked_in(path: &str) -> String {
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&full).unwrap_or_else(|e| panic!("{}: {e}", full.display()))
}

/// The front matter of a loop file, read by a foreign YAML parser.
fn front_matter(file: &str) -> Value {
    let rest = file.strip_prefix("---\n").expect("begins with a front matter");
    let (front, _) = rest.split_once("\n---\n").expect("the front matter ends");
    yaml_serde::from_str(front).unwrap_or_else(|e| panic!("not YAML: {e}\n{front}"))
}

fn start(project: &Project, args: &[&str]) {
    let output: Output = project.run(env!("CARGO_BIN_EXE_ralph")).args(["start", "--endless"]).args(args).output();
    assert!(output.success(), "{}{}", output.stdout, output.stderr);
}

/// A loop file as `ralph start` writes it.
fn started(args: &[&str]) -> Value {
    let project = Project::without_git();
    start(&project, args);
    front_matter(&project.read(".claude/ralph-loop.local.md"))
}

#[test]
fn s1_ac3_a_started_loop_fits_the_schema() {
    let schema = Schema::load("loop.schema.json");
    let plain = started(&["Do it"]);
    schema.check(&plain).unwrap();
    assert_eq!(plain["iteration"], json!(1));
    assert_eq!(plain["completion_promise"], Value::Null);

    let full = started(&[
        "Do it",
        "--max-iterations=20",
        "--completion-promise=ALL DONE: \"yes\" \\ 100 % #1 – ✅",
        "--hours=1.5",
        "--idle-iterations=9",
        "--continue-with=context",
        "--session",
        SESSION,
    ]);
    schema.check(&full).unwrap();
    assert_eq!(full["completion_promise"], json!("ALL DONE: \"yes\" \\ 100 % #1 – ✅"));
    assert_eq!((&full["max_iterations"], &full["max_hours"], &full["idle_rounds"]), (&json!(20), &json!(1.5), &json!(9)));
    assert_eq!((&full["continue_with"], &full["session_id"]), (&json!("context"), &json!(SESSION)));
}

#[test]
fn s1_ac3_promises_that_look_like_something_else_stay_text() {
    let schema = Schema::load("loop.schema.json");
    for promise in ["null", "true", "1", "~", "- a", "{a: b}", "*x", "&x", "!t", "'", "a: b # c", "---", "tab\there", "two\nlines"] {
        let front = started(&["Do it", &format!("--completion-promise={promise}")]);
        schema.check(&front).unwrap();
        assert_eq!(front["completion_promise"], json!(promise));
    }
}

#[test]
fn s1_ac3_the_template_fits_the_schema() {
    let front = front_matter(&checked_in("docs/ralph-loop.template.md"));
    Schema::load("loop.schema.json").check(&front).unwrap();
    assert_eq!(front["iteration"], json!(1));
}

#[test]
fn s1_ac3_the_template_with_every_key_uncommented_fits_the_schema() {
    let schema = Schema::load("loop.schema.json");
    let keys = serde_json::from_str::<Value>(&checked_in("schemas/loop.schema.json")).unwrap();
    let keys: Vec<String> = keys["properties"].as_object().unwrap().keys().cloned().collect();
    let is_key = |line: &str| keys.iter().any(|key| line.starts_with(&format!("# {key}: ")));
    let template = checked_in("docs/ralph-loop.template.md");
    let full: String = template.lines().map(|l| if is_key(l) { &l[2..] } else { l }).flat_map(|l| [l, "\n"]).collect();
    let front = front_matter(&full);
    schema.check(&front).unwrap();
    for key in &keys {
        assert!(front.get(key).is_some(), "the template does not show `{key}`");
    }
}

#[test]
fn s1_ac3_the_schema_rejects_what_ralph_rejects() {
    let schema = Schema::load("loop.schema.json");
    let good = started(&["Do it"]);
    let bad = [
        ("iteration", Some(json!(-1))),
        ("iteration", Some(json!("one"))),
        ("iteration", Some(json!(1.5))),
        ("iteration", Some(Value::Null)),
        ("iteration", None),
        ("max_iterations", Some(json!(-20))),
        ("max_hours", Some(json!("long"))),
        ("completion_promise", Some(json!(["A", "B"]))),
        ("active", Some(json!("perhaps"))),
        ("continue_with", Some(json!("shout"))),
    ];
    for (key, value) in bad {
        let mut front = good.clone();
        match &value {
            Some(value) => front[key] = value.clone(),
            None => drop(front.as_object_mut().unwrap().remove(key)),
        }
        assert!(schema.check(&front).is_err(), "{key}: {value:?} passed");
    }
}

/// eyes 3, eyes 4: what `status --json` says of live, ended and broken loops is what its schema says, and the schema is strict enough to tell.
#[test]
fn eyes_3_status_fits_its_schema() {
    let schema = Schema::load("status.schema.json");
    let project = Project::without_git();
    let status = |args: &[&str]| {
        let output: Output = project.run(env!("CARGO_BIN_EXE_ralph")).args(["status", "--json"]).args(args).output();
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        schema.check(&value).unwrap();
        value
    };
    status(&[]);
    project.write("ralph.toml", "[[gate]]\nname = \"tests\"\ncommand = \"true\"\n");
    start(&project, &["Do it", "--completion-promise=DONE", "--usd=5", "--session", SESSION]);
    project.write(".claude/ralph-loop.broken.local.md", "garbage");
    let live = status(&[]);
    assert_eq!((live["loops"].as_array().unwrap().len(), &live["loops"][0]["max_usd"]), (2, &json!(5.0)));
    assert_eq!(status(&["--all"])["loops"].as_array().unwrap().len(), 2);
    assert!(project.run(env!("CARGO_BIN_EXE_ralph")).args(["cancel", "main"]).output().success());
    let mut ended = status(&[]);
    assert_eq!(ended["last_ended"]["status"], "cancelled");
    ended["last_ended"]["status"] = json!("lost");
    assert!(schema.check(&ended).is_err());
    ended["last_ended"] = json!({});
    assert!(schema.check(&ended).is_err());
}

#[test]
fn journal_lines_fit_their_schema() {
    let schema = Schema::load("journal.schema.json");
    let project = Project::without_git();
    start(&project, &["Do it", "--completion-promise=DONE", "--session", SESSION]);
    for message in ["Not yet.", "All is well.\n\n<promise>DONE</promise>"] {
        let event = json!({
            "session_id": SESSION, "hook_event_name": "Stop", "cwd": project.dir(), "prompt_id": "p", "stop_hook_active": false,
            "last_assistant_message": message,
        });
        let run = project.run(env!("CARGO_BIN_EXE_ralph")).args(["hook", "claude"]).env("CLAUDE_PROJECT_DIR", project.dir());
        assert!(run.stdin(event.to_string()).output().success());
    }
    let journals = project.path(".ralph/journal");
    let journal = std::fs::read_dir(journals).unwrap().next().unwrap().unwrap().path();
    let lines: Vec<Value> = std::fs::read_to_string(journal).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["event"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["started", "stop", "stop"]);
    for line in &lines {
        schema.check(line).unwrap();
    }
    let mut broken = lines[1].clone();
    broken["state"]["stops"] = json!(-1);
    assert!(schema.check(&broken).is_err());
}

/// The examples that together show every key.
fn full_settings() -> String {
    let longest = |page: &str| {
        let page = checked_in(page);
        let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        blocks.max_by_key(|block| block.len()).expect("the page has an example").to_owned()
    };
    ["docs/gates.md", "docs/pull-requests.md", "docs/run.md", "docs/fleet.md"].map(longest).join("\n")
}

fn from_toml(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap_or_else(|e| panic!("not TOML: {e}\n{text}"));
    serde_json::to_value(table).unwrap()
}

#[test]
fn the_documented_settings_fit_the_schema_and_show_every_key() {
    let text = full_settings();
    let settings = from_toml(&text);
    Schema::load("ralph.schema.json").check(&settings).unwrap();
    ralph_core::config::Config::parse(text.as_bytes()).unwrap_or_else(|problem| panic!("ralph does not take it: {problem}"));
    let schema = serde_json::from_str::<Value>(&checked_in("schemas/ralph.schema.json")).unwrap();
    let keys = |of: &Value| of["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let gates = settings["gate"].as_array().unwrap();
    for key in keys(&schema["$defs"]["gate"]) {
        assert!(gates.iter().any(|gate| gate.get(&key).is_some()), "the example does not show `{key}` of a gate");
    }
    let tables = ["features", "fleet", "verify", "pr", "run", "notify"].map(|table| (&settings[table], &schema["$defs"][table]));
    for (place, of) in [(&settings, &schema)].into_iter().chain(tables) {
        for key in keys(of) {
            assert!(place.get(&key).is_some(), "the example does not show `{key}`");
        }
    }
}

#[test]
fn the_schema_of_settings_rejects_what_ralph_rejects() {
    let schema = Schema::load("ralph.schema.json");
    for text in [
        "[[gate]]\ncomand = \"cargo test\"\n",
        "[[gate]]\ncommand = \"cargo test\"\nretries = true\n",
        "[[gate]]\nname = \"tests\"\n",
        "[[gate]]\ncommand = \"a\"\nfile = \"b\"\n",
        "[[gates]]\ncommand = \"a\"\n",
        "guard = \"loud\"\n",
        "[verify]\ncommands = [{ comand = \"a\" }]\n",
        "[features]\nper_session = -1\n",
    ] {
        assert!(schema.check(&from_toml(text)).is_err(), "the schema takes {text}");
        assert!(ralph_core::config::Config::parse(text.as_bytes()).is_err(), "ralph takes {text}");
    }
}

/// The value of an attribute in an element's opening tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

/// The visible lines of the picture without their blanks, from top to bottom.
fn drawn(svg: &str) -> Vec<String> {
    let mut rows: BTreeMap<u32, BTreeMap<u32, &str>> = BTreeMap::new();
    for element in svg.split("<text").skip(1).filter_map(|rest| rest.split("</text>").next()) {
        let (tag, text) = element.split_once('>').unwrap();
        // The window's title is not the terminal's.
        if attribute(tag, "class") != Some("bar") {
            let place = |name| (attribute(tag, name).unwrap().parse::<f64>().unwrap() * 10.0).round().to_string().parse().unwrap();
            rows.entry(place("y")).or_default().insert(place("x"), text);
        }
    }
    let plain = |text: String| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace(' ', "");
    rows.into_values().map(|row| undated(&plain(row.into_values().collect()))).collect()
}

/// A line without the time that a log's line begins with.
fn undated(line: &str) -> String {
    let mask = |text: &str| text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("0");
    match line.split_at_checked("2026-11-1509:30:00Z".len()) {
        Some((at, rest)) if at.ends_with('Z') && mask(at) == "-0-0:0:0Z" => rest.to_owned(),
        _ => line.to_owned(),
    }
}

/// All lines as one text without what tells how long something took. Where lines break depends on that, too.
fn timeless(lines: &[String]) -> String {
    let text = lines.concat();
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = rest[at..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(rest.len(), |n| at + n);
        let unit = ["ms", "s)", "s.", "s;"].iter().any(|unit| rest[number..].starts_with(unit));
        out.push_str(&rest[..at]);
        out.push_str(if unit { "T" } else { &rest[at..number] });
        rest = if unit { rest[number..].trim_start_matches('m').trim_start_matches('s') } else { &rest[number..] };
    }
    out + rest
}

/// The picture in the README cannot lie: what it shows is what the demo says today.
#[test]
fn demo_picture_is_fresh() {
    let svg = checked_in("docs/demo.svg");
    assert!(svg.len() < 60_000);
    let columns = attribute(&svg, "data-columns").unwrap().parse().unwrap();
    let project = Project::without_git();
    let mut demo = project.command(env!("CARGO_BIN_EXE_ralph"));
    demo.args(["demo", "--fast"]).env("NO_COLOR", "1");
    let terminal = Pty::spawn(demo, 80, columns);
    assert!(terminal.wait_closed(Duration::from_secs(30)));
    let now: Vec<String> = terminal.screen().lines().map(|line| undated(&line.replace(' ', ""))).collect();
    assert_eq!(timeless(&drawn(&svg)), timeless(&now), "docs/demo.svg is stale: run `cargo xtask picture`");
}

/// Nor can the one of `ralph watch`: the same loop is drawn again, with other times.
#[test]
fn u10_watch_picture_is_fresh() {
    let svg = checked_in("docs/watch.svg");
    let columns = attribute(&svg, "data-columns").unwrap().parse().unwrap();
    let project = Project::at_home(story::NAME);
    story::under_way(&project, clock::now(), &serde_json::to_value(runner::this("picture", 0)).unwrap());
    let ralph = env!("CARGO_BIN_EXE_ralph");
    assert!(project.run(ralph).args(["trust", "--yes"]).output().success());
    let mut watch = project.command(ralph);
    watch.arg("watch").env("TERM", "xterm-256color");
    let terminal = Pty::spawn(watch, 32, columns);
    // The picture has bars and rules as shapes; and a minute goes on.
    let is_shape = |c: char| c == '─' || ('▁'..='▓').contains(&c);
    let numberless = |line: &str| {
        let text = line.replace(is_shape, "");
        let parts: Vec<&str> = text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
        parts.join("0").replace("min0s", "min")
    };
    let wanted: Vec<String> = drawn(&svg).iter().map(|line| numberless(line)).collect();
    let rows = |screen: &str| -> Vec<String> {
        let rows = screen.lines().map(|line| numberless(&line.replace(' ', "")));
        rows.filter(|row| !row.is_empty()).collect()
    };
    if let Err(screen) = terminal.wait_for(|screen| rows(screen) == wanted, Duration::from_mins(1)) {
        assert_eq!(wanted, rows(&screen), "docs/watch.svg is stale: run `cargo xtask picture watch`");
    }
}
