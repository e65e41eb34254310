//! `ralph init`, `ralph uninstall` and `ralph plugin`: whatever a settings file looks like, the hooks get in, every other byte stays, and the way
//! back leads to the byte.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use ralph_testkit::{
    Output,
    killer::{Filter, count_syscalls, kill_at_syscall},
};
use serde_json::{Value, json};

use crate::common::{Answer, Bed, LOOP, RALPH, loop_text, run};

const SCOPES: [&str; 3] = ["--user", "--project", "--local"];
const EVENTS: [&str; 5] = ["Stop", "StopFailure", "UserPromptSubmit", "SessionStart", "SessionEnd"];
const COMMANDS: [&str; 6] = ["ralph-loop", "ralph", "cancel-ralph", "ralph-status", "ralph-pause", "ralph-resume"];
const CAP: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
/// A file like most.
const USUAL: &str = "{\n  \"model\": \"opus\"\n}\n";

fn settings(bed: &Bed, scope: &str) -> PathBuf {
    match scope {
        "--user" => bed.home().join(".claude/settings.json"),
        "--project" => bed.path(".claude/settings.json"),
        _ => bed.path(".claude/settings.local.json"),
    }
}

fn command_file(bed: &Bed, scope: &str, name: &str) -> PathBuf {
    settings(bed, scope).with_file_name("commands").join(format!("{name}.md"))
}

/// A bed with this settings file.
fn bed_with(scope: &str, text: impl AsRef<[u8]>) -> Bed {
    let bed = Bed::new();
    put(&settings(&bed, scope), text);
    bed
}

fn put(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn text_of(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).unwrap()
}

/// Runs `ralph` with more in its environment.
fn ralph_with(bed: &Bed, vars: &[(&str, &Path)], args: &[&str]) -> Output {
    run(bed.command(RALPH).args(args).envs(vars.iter().copied()), b"")
}

/// A folder for the PATH in which `ralph` is this very program.
fn on_path(bed: &Bed) -> PathBuf {
    let folder = bed.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    symlink(RALPH, folder.join("ralph")).unwrap();
    folder
}

/// Home and project with all that is in them: kind, mode and bytes. The folders above ralph's state are any program's.
fn everything(bed: &Bed) -> BTreeMap<PathBuf, String> {
    let mut out = BTreeMap::new();
    let mut folders = vec![bed.home().to_owned(), bed.dir().to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let meta = path.symlink_metadata().unwrap();
            let is = if meta.is_symlink() {
                format!("link to {}", fs::read_link(&path).unwrap().display())
            } else if meta.is_dir() {
                folders.push(path.clone());
                "folder".to_owned()
            } else if meta.is_file() {
                format!("{:o} {}", meta.mode(), String::from_utf8_lossy(&fs::read(&path).unwrap()))
            } else {
                "special".to_owned()
            };
            if !path.ends_with(".local") && !path.ends_with(".local/state") {
                out.insert(path, is);
            }
        }
    }
    out
}

/// What a settings file says, by a reader that has nothing in common with ralph's: comments and trailing commas are cut, the rest is JSON.
fn says(text: &str) -> Value {
    let mut plain = String::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").unwrap() + 2,
            _ => c.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        if matches!(c, ']' | '}') && plain.trim_end().ends_with(',') {
            plain.truncate(plain.trim_end().len() - 1);
        }
        if c != '/' {
            plain.push_str(piece);
        }
        rest = after;
    }
    if plain.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(&plain).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    });
    end.unwrap().0 + 1
}

fn is_ralphs(entry: &Value) -> bool {
    let line = entry["command"].as_str().unwrap_or_default();
    line.split(' ').next().unwrap().rsplit('/').next() == Some("ralph")
}

/// Ralph's entries for an event.
fn ours(settings: &Value, event: &str) -> Vec<Value> {
    let groups = settings["hooks"][event].as_array().cloned().unwrap_or_default();
    groups.iter().flat_map(|g| g["hooks"].as_array().cloned().unwrap_or_default()).filter(is_ralphs).collect()
}

#[track_caller]
fn is_registered(text: &str, command: &str) {
    let says = says(text);
    for event in EVENTS {
        let entries = ours(&says, event);
        assert_eq!(entries.len(), 1, "{event}: {text}");
        let entry = &entries[0];
        assert_eq!((&entry["type"], &entry["command"], &entry["args"]), (&json!("command"), &json!(command), &json!(["hook", "claude"])));
        assert!(entry["timeout"].as_u64().is_some_and(|t| t >= 10), "{entry}");
    }
}

#[track_caller]
fn is_not_registered(text: &str) {
    let says = says(text);
    assert!(EVENTS.iter().all(|event| ours(&says, event).is_empty()), "{text}");
}

/// What is said beside ralph's hooks. An empty list of hooks says nothing.
fn others(text: &str) -> Value {
    let mut says = says(text);
    if let Some(events) = says["hooks"].as_object_mut() {
        for groups in events.values_mut().filter_map(Value::as_array_mut) {
            for group in groups.iter_mut() {
                if let Some(entries) = group["hooks"].as_array_mut() {
                    entries.retain(|entry| !is_ralphs(entry));
                }
            }
            groups.retain(|group| group["hooks"] != json!([]));
        }
        events.retain(|_, groups| *groups != json!([]));
    }
    if says["hooks"].as_object().is_none_or(serde_json::Map::is_empty) {
        says.as_object_mut().unwrap().remove("hooks");
    }
    says
}

/// Whether `all` holds every item of `part`, in order.
fn in_order<T: PartialEq>(part: impl IntoIterator<Item = T>, all: impl IntoIterator<Item = T>) -> bool {
    let mut all = all.into_iter();
    part.into_iter().all(|item| all.any(|other| other == item))
}

/// Every line of `old` is in `new`, with at most a comma more.
#[track_caller]
fn has_lines_of(new: &str, old: &str) {
    let lines = |text: &str| text.lines().map(|line| line.replace(',', "").trim_end().to_owned()).collect::<Vec<_>>();
    let (part, all) = (lines(old), lines(new));
    assert!(in_order(part.iter().filter(|line| !line.is_empty()), &all), "{old}\n→\n{new}");
}

/// There and back: `init` registers and keeps what was there, a second one and dry runs change nothing, `uninstall` restores to the byte.
/// Returns what `init` made of the file.
fn there_and_back(bed: &Bed, scope: &str, text: &str, more: &[&str]) -> String {
    let path = settings(bed, scope);
    let args = |command: &'static str, last: &[&'static str]| {
        let more = if command == "init" { more } else { &[] };
        [&[command, scope], more, last].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let ralph = |args: Vec<String>| bed.ralph_ok(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let before = everything(bed);
    let shown = ralph(args("init", &["--dry-run"]));
    assert_eq!(everything(bed), before, "a dry run changes nothing");
    assert!(shown.lines().any(|l| l.starts_with("    +") && l.contains("\"hook\", \"claude\"")), "{shown}");
    let done = ralph(args("init", &[]));
    assert!(done.contains("\nRegistered for "), "{done}");
    let new = text_of(&path);
    is_registered(&new, if scope == "--project" { "ralph" } else { RALPH });
    let registered = (everything(bed), fs::metadata(&path).unwrap().modified().unwrap());
    let again = ralph(args("init", &[]));
    assert!(again.contains("Already registered for "), "{again}");
    assert_eq!((everything(bed), fs::metadata(&path).unwrap().modified().unwrap()), registered, "a second time changes nothing");
    ralph(args("uninstall", &["--dry-run"]));
    assert_eq!(everything(bed), registered.0, "a dry run changes nothing");
    let undone = ralph(args("uninstall", &[]));
    assert!(undone.ends_with("Undone.\n"), "{undone}");
    assert_eq!(everything(bed), before, "{text:?}\n→\n{new}");
    if more.is_empty() {
        let bytes = |text: &str| text.bytes().filter(|b| !b.is_ascii_whitespace()).collect::<Vec<_>>();
        assert!(in_order(bytes(text), bytes(&new)), "{text}\n→\n{new}");
        assert_eq!(others(&new), others(text));
    }
    new
}

/// Files with line breaks in them. Ralph's lines come out again even when nothing is known of the file as it was.
fn on_lines() -> Vec<String> {
    let others = r#"{"hooks": [{"type": "command", "command": "notify-send done"}]}"#;
    vec![
        USUAL.to_owned(),
        "{\n    \"model\": \"opus\",\n    \"permissions\": {\n        \"allow\": [\"Bash(ls:*)\"]\n    }\n}\n".to_owned(),
        "{\n\t\"model\": \"opus\"\n}\n".to_owned(),
        "{\r\n  \"model\": \"opus\",\r\n  \"env\": {\r\n    \"A\": \"1\"\r\n  }\r\n}\r\n".to_owned(),
        "\u{feff}{\n  \"model\": \"opus\"\n}\n".to_owned(),
        "{\n  \"model\": \"opus\"\n}".to_owned(),
        "\n\n{\n  \"model\"  :  \"opus\"  ,\n\n\n  \"x\":1\n}\n\n\n".to_owned(),
        "{\n  \"model\": \"opus\",\n  \"list\": [1, 2,],\n}\n".to_owned(),
        "// header\n/* and\n   more */\n{\n  // first\n  \"a\": 1, // one\n  /* between */\n  \"b\": [ // list\n    1, // one\n    2 /* last */\n    // end of list\n  ], // after\n  \"c\": {/* in */} // last\n  // end\n}\n// footer\n/* the end */".to_owned(),
        "{\n  // \"hooks\": {\"Stop\": []},\n  \"a\": \"// no comment /* nor this */\" // \"yes\"\n}\n".to_owned(),
        format!("{{\n  \"hooks\": {{\n    \"Stop\": [\n      {others}\n    ]\n  }}\n}}\n"),
        format!("{{\n  \"hooks\": {{\n    \"Stop\": [\n      {others}, // mine\n      {others}\n      // end\n    ],\n    // tools\n    \"PreToolUse\": [\n      {{\n        \"matcher\": \"Bash\",\n        \"hooks\": [{{\"type\": \"command\", \"command\": \"./check.sh\", \"timeout\": 5}}]\n      }}\n    ]\n  }},\n  \"z\": null\n}}\n"),
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"Is it done?\"}, {\"type\": \"command\", \"command\": \"ralphy hook\"}]}\n    ]\n  }\n}\n".to_owned(),
        format!("{{\n  \"env\": {{\n    \"{CAP}\": \"20\"\n  }}\n}}\n"),
        "{\n  \"grüße\": \"日本語 🎉 \\u00e9\\ud83d\\ude00 \\\"quoted\\\" \\\\ \\/ \\t\",\n  \"\": \"\\u0000\"\n}\n".to_owned(),
        format!("{{\n  \"deep\": {}1{}\n}}\n", "[".repeat(60), "]".repeat(60)),
        "{\n  \"a\": 1,\n  \"a\": 2,\n  \"b\": {\"c\": 1, \"c\": 2}\n}\n".to_owned(),
        "{\n  \"n\": [0, -0, 1E+2, 1e-400, 0.1e1, -1.50, 12345678901234567890123456789]\n}\n".to_owned(),
        format!("{{\n  \"permissions\": {{\n    \"allow\": [\n{}      \"Bash(last)\"\n    ]\n  }}\n}}\n", "      \"Bash(npm run test:*)\", // why\n".repeat(5_000)),
    ]
}

/// Files whose shape is known only from how they were.
fn others_shapes() -> Vec<String> {
    let mut shapes: Vec<String> = [
        "",
        " ",
        "\n",
        " \r\n\t\n",
        "\u{feff}",
        "// only a comment",
        "/* only a comment */\n",
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "{ // nothing\n}",
        "{/* nothing */}",
        "{\"model\":\"opus\"}",
        "{\"model\":\"opus\",}",
        "{ \"model\": \"opus\" /* mine */ }\n",
        "{\"a\":1, /* last */}",
        "{\"a\":1}// end",
        "{\"hooks\":{}}",
        "{\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
        "{\"hooks\":{\"Stop\":[],},}",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      // nothing yet\n    ]\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": [{\"matcher\": \"\"}, {\"hooks\": []}]\n  }\n}\n",
        "{\"\\u0068ooks\":{\"St\\u006fp\":[]}}",
        "{\"env\":{}}",
        "{\n  \"env\": {\n    // nothing\n  }\n}\n",
        "{\r\n}\r\n",
    ]
    .iter()
    .map(|s| (*s).to_owned())
    .collect();
    shapes.push(format!("{{\"env\":{{\"A\":\"1\",\"{CAP}\":\"8\"}},\"x\":[1]}}"));
    let mine = r#"{"hooks": [{"type": "command", "command": "mine"}]}"#;
    shapes.push(format!("{{\n  \"hooks\": {{\n    \"SessionEnd\": [{mine}],\n    \"Stop\": [{mine}, {mine}]\n  }}\n}}\n"));
    shapes.push("{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]},]}}".to_owned());
    shapes
}

fn every_shape_in(scope: &str) {
    for text in on_lines() {
        has_lines_of(&there_and_back(&bed_with(scope, &text), scope, &text, &[]), &text);
    }
    for text in others_shapes() {
        there_and_back(&bed_with(scope, &text), scope, &text, &[]);
    }
    // No file, with and without the folder.
    let bed = Bed::new();
    there_and_back(&bed, scope, "", &[]);
    fs::create_dir_all(settings(&bed, scope).with_file_name("agents")).unwrap();
    there_and_back(&bed, scope, "", &[]);
}

#[test]
fn s1_1_every_shape_of_user_settings_there_and_back() {
    every_shape_in("--user");
}

#[test]
fn s1_1_every_shape_of_project_settings_there_and_back() {
    every_shape_in("--project");
}

#[test]
fn s1_1_every_shape_of_local_settings_there_and_back() {
    every_shape_in("--local");
}

/// With the cap too, whatever it was before.
#[test]
fn s1_1_the_cap_is_set_and_goes_back_to_what_it_was() {
    for text in on_lines().iter().take(16).chain(&others_shapes()) {
        let bed = bed_with("--user", text);
        there_and_back(&bed, "--user", text, &["--block-cap", "0"]);
        bed.ralph_ok(&["init", "--block-cap", "0"]);
        assert_eq!(says(&text_of(&settings(&bed, "--user")))["env"][CAP], "0", "{text}");
        // Another value, then none: the hooks stay as they are, and the way back is still known.
        bed.ralph_ok(&["init", "--block-cap", "30"]);
        assert_eq!(says(&text_of(&settings(&bed, "--user")))["env"][CAP], "30", "{text}");
        bed.ralph_ok(&["init"]);
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(&text_of(&settings(&bed, "--user")), text);
    }
}

/// What is new looks like what is there.
#[test]
fn s1_1_new_lines_take_up_the_style_of_the_file() {
    for (text, indent, end) in [
        ("{\n  \"a\": 1\n}\n", "  ", "\n"),
        ("{\n    \"a\": 1\n}\n", "    ", "\n"),
        ("{\n\t\"a\": 1\n}\n", "\t", "\n"),
        ("{\r\n  \"a\": 1\r\n}\r\n", "  ", "\r\n"),
    ] {
        let bed = bed_with("--user", text);
        bed.ralph_ok(&["init"]);
        let new = text_of(&settings(&bed, "--user"));
        assert!(new.contains(&format!("{end}{indent}\"hooks\": {{{end}{indent}{indent}\"Stop\": [{end}")), "{new:?}");
        assert_eq!(new.matches('\n').count(), new.matches(end).count(), "{new:?}");
    }
}

/// Settings that live elsewhere stay there, and the link stays a link.
#[test]
fn s4_7_links_are_followed_and_stay() {
    for kind in ["absolute", "relative", "chain", "dangling", "folder"] {
        let bed = Bed::new();
        let (path, real) = (settings(&bed, "--user"), bed.home().join("dotfiles/claude.json"));
        put(&real.with_file_name("other"), "");
        if kind == "folder" {
            symlink("dotfiles", bed.home().join(".claude")).unwrap();
            put(&path, USUAL);
            there_and_back(&bed, "--user", USUAL, &[]);
            continue;
        }
        put(&path.with_file_name("other"), "");
        match kind {
            "absolute" => symlink(&real, &path).unwrap(),
            "chain" => {
                symlink("../dotfiles/second", &path).unwrap();
                symlink(bed.home().join("dotfiles/third"), bed.home().join("dotfiles/second")).unwrap();
                symlink("claude.json", bed.home().join("dotfiles/third")).unwrap();
            }
            _ => symlink("../dotfiles/claude.json", &path).unwrap(),
        }
        let text = if kind == "dangling" { "" } else { USUAL };
        if kind != "dangling" {
            put(&real, USUAL);
            fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        }
        there_and_back(&bed, "--user", text, &[]);
        bed.ralph_ok(&["init"]);
        is_registered(&text_of(&real), RALPH);
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink(), "{kind}");
    }
}

/// A link within a project is nobody else's business either.
#[test]
fn s4_7_links_within_the_project_are_followed() {
    for scope in ["--project", "--local"] {
        let bed = Bed::new();
        put(&bed.path("config/claude.json"), USUAL);
        put(&settings(&bed, scope).with_file_name("other"), "");
        symlink("../config/claude.json", settings(&bed, scope)).unwrap();
        there_and_back(&bed, scope, USUAL, &[]);
    }
}

/// Settings can hold secrets.
#[test]
fn s4_7_the_mode_stays() {
    for mode in [0o600, 0o640, 0o644] {
        let bed = bed_with("--user", USUAL);
        let path = settings(&bed, "--user");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        there_and_back(&bed, "--user", USUAL, &[]);
        bed.ralph_ok(&["init"]);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
    }
}

/// An entry that was written by hand is brought up to date where it stands, keeps its timeout, and goes with the rest.
#[test]
fn s1_1_an_entry_by_hand_is_brought_up_to_date_and_goes_with_the_rest() {
    for by_hand in [
        r#"{"type": "command", "command": "ralph hook"}"#,
        r#"{"type": "command", "command": "/old/place/ralph hook claude", "timeout": 7}"#,
        r#"{"command": "ralph", "timeout": 7, "type": "command"}"#,
        r#"{"type": "command", "command": "/old/ralph", "args": ["hook"], "statusMessage": "mine"}"#,
    ] {
        let text = format!(
            "{{\n  \"hooks\": {{\n    \"Stop\": [\n      {{\"hooks\": [{{\"type\": \"command\", \"command\": \"mine\"}}, {by_hand}]}}\n    ]\n  }}\n}}\n"
        );
        let bed = bed_with("--user", &text);
        bed.ralph_ok(&["init"]);
        let new = says(&text_of(&settings(&bed, "--user")));
        let entries = ours(&new, "Stop");
        assert_eq!((entries.len(), &entries[0]["command"], &entries[0]["args"]), (1, &json!(RALPH), &json!(["hook", "claude"])), "{new}");
        let old: Value = serde_json::from_str(by_hand).unwrap();
        assert_eq!(entries[0].get("timeout"), old.get("timeout").or(Some(&json!(60))), "{new}");
        assert_eq!(new["hooks"]["Stop"][0]["hooks"][0]["command"], "mine");
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(text_of(&settings(&bed, "--user")), text.replace(&format!(", {by_hand}"), ""));
    }
}

/// Edits between the two stay, whatever they are.
#[test]
fn s1_1_edits_in_between_stay() {
    let text = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n    ]\n  }\n}\n";
    let hook = "\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"new\"}]},";
    for (at, add) in [
        ("{", "\n  \"added\": true,"),
        ("{", "\n  // a comment"),
        ("\"opus\",", " // a comment"),
        ("\"hooks\": {", "\n    // a comment"),
        ("\"hooks\": {", "\n    \"PreToolUse\": [],"),
        ("\"Stop\": [", hook),
        ("\"Stop\": [", "\n      // a comment"),
        ("\"SessionStart\": [", hook),
    ] {
        let bed = bed_with("--user", text);
        let path = settings(&bed, "--user");
        bed.ralph_ok(&["init"]);
        put(&path, text_of(&path).replacen(at, &format!("{at}{add}"), 1));
        bed.ralph_ok(&["init"]);
        bed.ralph_ok(&["uninstall"]);
        let left = text_of(&path);
        is_not_registered(&left);
        if text.contains(at) {
            assert_eq!(left, text.replacen(at, &format!("{at}{add}"), 1));
        } else {
            assert_eq!(says(&left)["hooks"]["SessionStart"][0]["hooks"][0]["command"], "new", "{left}");
            has_lines_of(&left, text);
        }
        assert!(!bed.home().join(".local/state/ralph").exists(), "no record is left");
    }
}

/// Another program printed the whole file anew.
#[test]
fn s1_1_a_file_that_was_printed_anew_loses_ralphs_entries_only() {
    for text in on_lines().iter().take(8).chain(&others_shapes()) {
        for cap in [&["init"][..], &["init", "--block-cap", "0"]] {
            let bed = bed_with("--user", text);
            let path = settings(&bed, "--user");
            bed.ralph_ok(cap);
            put(&path, serde_json::to_string_pretty(&says(&text_of(&path))).unwrap());
            bed.ralph_ok(&["uninstall"]);
            let left = text_of(&path);
            is_not_registered(&left);
            let bare = |text: &str| {
                let mut value = others(text);
                if value["env"].as_object().is_none_or(serde_json::Map::is_empty) {
                    value.as_object_mut().unwrap().remove("env");
                }
                value
            };
            assert_eq!(bare(&left), bare(text), "{text}");
        }
    }
}

/// A cap that the user chose since is theirs; one that is still ralph's goes back.
#[test]
fn s1_1_the_cap_after_an_edit() {
    let text = format!("{{\n  \"env\": {{\n    \"{CAP}\": \"20\"\n  }}\n}}\n");
    for (set, left) in [("0", "20"), ("5", "5")] {
        let bed = bed_with("--local", &text);
        let path = settings(&bed, "--local");
        bed.ralph_ok(&["init", "--local", "--block-cap", "0"]);
        put(&path, text_of(&path).replacen("\"0\"", &format!("\"{set}\""), 1).replacen('{', "{\n  \"added\": 1,", 1));
        bed.ralph_ok(&["uninstall", "--local"]);
        assert_eq!(text_of(&path), text.replace("20", left).replacen('{', "{\n  \"added\": 1,", 1));
    }
}

/// A file that ralph made and the user wrote into is the user's.
#[test]
fn s1_1_a_file_that_ralph_made_stays_when_the_user_wrote_into_it() {
    let bed = Bed::new();
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    put(&path, text_of(&path).replacen('{', "{\n  \"model\": \"opus\",", 1));
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&path), "{\n  \"model\": \"opus\"\n}\n");
    assert!(!path.with_file_name("commands").exists());
}

/// Without the record of what was.
#[test]
fn s1_1_uninstall_without_the_state_folder() {
    for text in on_lines() {
        let bed = bed_with("--user", &text);
        let before = everything(&bed);
        bed.ralph_ok(&["init"]);
        fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(everything(&bed), before, "{text}");
    }
    for text in others_shapes() {
        let bed = bed_with("--user", &text);
        bed.ralph_ok(&["init"]);
        fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
        bed.ralph_ok(&["uninstall"]);
        let left = text_of(&settings(&bed, "--user"));
        is_not_registered(&left);
        assert_eq!(others(&left), others(&text));
    }
}

/// A record that is damaged is as good as none.
#[test]
fn s1_1_a_damaged_record_does_no_harm() {
    for damage in ["", "{", "{\"path\": \"/else/where\", \"before\": \"EVIL\", \"after\": \"\"}"] {
        let bed = bed_with("--user", USUAL);
        bed.ralph_ok(&["init"]);
        for record in fs::read_dir(bed.home().join(".local/state/ralph/setup")).unwrap() {
            fs::write(record.unwrap().path(), damage).unwrap();
        }
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(text_of(&settings(&bed, "--user")), USUAL);
    }
}

/// A generator of documents with comments, trailing commas and odd white space in every place that allows them.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn gap(&mut self) -> &'static str {
        ["", "", " ", "\n  ", "\r\n\t", " /* c, } */ ", " // c ]\n", "\n\n"][usize::try_from(self.below(8)).unwrap()]
    }

    /// Items in brackets.
    fn list(&mut self, open: char, close: char, items: &[String]) -> String {
        let mut out = format!("{open}{}", self.gap());
        for (i, item) in items.iter().enumerate() {
            let comma = if i + 1 < items.len() || self.below(3) == 0 { "," } else { "" };
            out.extend([self.gap(), item, self.gap(), comma, self.gap()]);
        }
        format!("{out}{}{close}", self.gap())
    }

    fn field(&mut self, name: &str, value: &str) -> String {
        format!("\"{name}\"{}:{}{value}", self.gap(), self.gap())
    }

    fn value(&mut self, depth: u64) -> String {
        let count = self.below(3);
        match self.below(if depth == 0 { 3 } else { 5 }) {
            0 => "\"a // b \\\" /* \\\\\"".to_owned(),
            1 => "-1.5e3".to_owned(),
            2 => "null".to_owned(),
            3 => {
                let items: Vec<String> = (0..count).map(|_| self.value(depth - 1)).collect();
                self.list('[', ']', &items)
            }
            _ => {
                let fields: Vec<String> = (0..count).map(|i| (i, self.value(depth - 1))).map(|(i, v)| format!("\"k{i}\":{v}")).collect();
                self.list('{', '}', &fields)
            }
        }
    }

    /// Groups of other people's hooks.
    fn hooks(&mut self) -> String {
        let mut events = Vec::new();
        for event in ["Stop", "Notification", "SessionEnd"] {
            let groups: Vec<String> = (0..self.below(3))
                .map(|_| {
                    let entry = self.list('{', '}', &["\"type\":\"command\"".to_owned(), "\"command\":\"mine\"".to_owned()]);
                    let entries = self.list('[', ']', &[entry]);
                    let field = self.field("hooks", &entries);
                    self.list('{', '}', &[field])
                })
                .collect();
            if self.below(2) == 0 {
                let groups = self.list('[', ']', &groups);
                events.push(self.field(event, &groups));
            }
        }
        self.list('{', '}', &events)
    }

    fn document(&mut self) -> String {
        let mut fields = Vec::new();
        for name in ["a", "hooks", "ünï", "z"] {
            if self.below(3) > 0 {
                let value = if name == "hooks" { self.hooks() } else { self.value(3) };
                fields.push(self.field(name, &value));
            }
        }
        format!("{}{}{}", self.gap(), self.list('{', '}', &fields), self.gap())
    }
}

#[test]
fn s1_1_random_documents_there_and_back() {
    for seed in 0..60 {
        let text = Dice(seed).document();
        let bed = bed_with("--user", &text);
        there_and_back(&bed, "--user", &text, &[]);
        bed.ralph_ok(&["init"]);
        fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
        bed.ralph_ok(&["uninstall"]);
        let left = text_of(&settings(&bed, "--user"));
        is_not_registered(&left);
        assert_eq!(others(&left), others(&text), "{text}\n→\n{left}");
    }
}

/// Another program rewrites the settings while `init` runs again and again. Its last version is there in the end, with ralph's hooks or without.
fn storm(write: impl Fn(&Path, &str) + Sync) {
    let bed = bed_with("--user", USUAL);
    let path = settings(&bed, "--user");
    let version = |n: u64| format!("{{\n  \"version\": {n},\n  \"more\": \"{}\"\n}}\n", "x".repeat(500));
    let is_there = |n: u64| fs::read_to_string(&path).is_ok_and(|text| text.contains(&format!("\"version\": {n},")));
    let over = AtomicBool::new(false);
    let last = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                n += 1;
                write(&path, &version(n));
                // For a moment `init` may show what it made of an older one.
                let is_back = (0..500).any(|_| {
                    is_there(n) || {
                        thread::sleep(Duration::from_millis(1));
                        false
                    }
                });
                assert!(is_back, "version {n} is lost: {}", text_of(&path));
            }
            n
        });
        for _ in 0..150 {
            let out = bed.ralph(&["init"]);
            assert!(matches!(out.code, Some(0 | 1)) && !out.stderr.contains("panicked"), "{out:?}");
            if writer.is_finished() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert_eq!(others(&text_of(&path)), says(&version(last)));
    let names = fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| !matches!(name.as_str(), "settings.json" | "commands")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn s4_7_a_program_that_renames_its_settings_into_place_loses_nothing() {
    storm(|path, text| {
        let beside = path.parent().unwrap().parent().unwrap().join("theirs");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, path).unwrap();
    });
}

#[test]
fn s4_7_a_program_that_writes_its_settings_in_place_loses_nothing() {
    storm(|path, text| {
        fs::write(path, text).unwrap();
        thread::sleep(Duration::from_micros(300));
    });
}

/// Two at once: one of them may fail, but nothing is there twice.
#[test]
fn s4_7_many_inits_at_once_register_once() {
    let bed = bed_with("--user", "{\"model\":\"opus\"}");
    thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(|| bed.ralph(&["init"])))));
    bed.ralph_ok(&["init"]);
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&settings(&bed, "--user")), "{\"model\":\"opus\"}");
}

/// `kill -9` at any call that writes: the file is as it was or as it shall be, and the way back is known.
#[test]
fn s4_7_a_crash_anywhere_leaves_one_version_or_the_other() {
    let text = "{\"model\":\"opus\"}";
    let victim = |bed: &Bed, args: &[&str]| {
        let mut command = bed.command(RALPH);
        command.args(args);
        command
    };
    for undo in [false, true] {
        let fresh = || {
            let bed = bed_with("--user", text);
            if undo {
                bed.ralph_ok(&["init"]);
            }
            bed
        };
        let args = if undo { ["uninstall", "--user"] } else { ["init", "--user"] };
        let count = count_syscalls(&mut victim(&fresh(), &args), Filter::Writes, b"");
        assert!(count > 20, "{count}");
        for n in 1..=count {
            let bed = fresh();
            kill_at_syscall(&mut victim(&bed, &args), Filter::Writes, n, b"");
            let left = text_of(&settings(&bed, "--user"));
            if left != text {
                is_registered(&left, RALPH);
            }
            bed.ralph_ok(&["init"]);
            is_registered(&text_of(&settings(&bed, "--user")), RALPH);
            bed.ralph_ok(&["uninstall"]);
            assert_eq!(text_of(&settings(&bed, "--user")), text, "killed at {n} of {count}");
            assert!(COMMANDS.iter().all(|name| !command_file(&bed, "--user", name).exists()), "killed at {n} of {count}");
        }
    }
}

/// Refused with exit code 1 and these words, and nothing at all was written.
#[track_caller]
fn is_refused(bed: &Bed, args: &[&str], path: &Path, said: &str) {
    let before = everything(bed);
    let out = bed.ralph(args);
    assert!(!out.timed_out, "{args:?} hangs");
    assert_eq!(out.code, Some(1), "{args:?}: {out:?}");
    assert!(out.stderr.starts_with(&format!("error: {} ", path.display())) && out.stderr.contains(said), "{}", out.stderr);
    assert_eq!(everything(bed), before, "{args:?}");
}

#[test]
fn s1_1_what_cannot_be_changed_is_refused_and_nothing_is_written() {
    let cases: [(&[u8], &str); 14] = [
        (b"{\n  \"a\": 1\n  \"b\": 2\n}\n", "not valid JSON: line 2, column 9"),
        (b"{\n  \"a\": [1, 2\n}\n", "not valid JSON: line 3, column 1"),
        (b"{\"a\": 1", "not valid JSON: line 1, column "),
        (b"{\"a\": 1}\n{\"b\": 2}\n", "not valid JSON: line 2, column 1"),
        (b"{\"a\": 'x'}", "not valid JSON: line 1, column 7"),
        (b"{a: 1}", "not valid JSON: line 1, column "),
        (b"\xef\xbb\xbf\n{,}", "not valid JSON: line 2, column 2"),
        (b"[]", "not a JSON object"),
        (b"\"text\"", "not a JSON object"),
        (b"{\"hooks\": []}", "has something else than an object as \"hooks\""),
        (b"{\"hooks\": {\"Stop\": {}}}", "has something else than a list as \"hooks.Stop\""),
        (b"{\"hooks\": {}, \"hooks\": {}}", "has the key \"hooks\" twice"),
        (b"{\"hooks\": {\"Stop\": [], \"Stop\": []}}", "has the key \"hooks.Stop\" twice"),
        (b"{\"a\": \"\xff\"}", "not UTF-8 text"),
    ];
    for (text, said) in cases {
        for scope in SCOPES {
            let bed = bed_with(scope, text);
            is_refused(&bed, &["init", scope], &settings(&bed, scope), said);
            is_refused(&bed, &["init", scope, "--dry-run"], &settings(&bed, scope), said);
        }
    }
    let bed = bed_with("--user", "{\"env\": []}");
    is_refused(&bed, &["init", "--block-cap", "0"], &settings(&bed, "--user"), "has something else than an object as \"env\"");
}

#[test]
fn s4_7_what_is_no_plain_writable_file_is_refused() {
    for scope in SCOPES {
        let bed = bed_with(scope, USUAL);
        let path = settings(&bed, scope);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        is_refused(&bed, &["init", scope], &path, "is read-only");
        let bed = Bed::new();
        let path = settings(&bed, scope);
        fs::create_dir_all(&path).unwrap();
        is_refused(&bed, &["init", scope], &path, "cannot be read");
        for is_command in [false, true] {
            let bed = Bed::new();
            let path = if is_command { command_file(&bed, scope, "ralph") } else { settings(&bed, scope) };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            is_refused(&bed, &["init", scope], &path, "not a plain file");
        }
        let bed = Bed::new();
        put(&settings(&bed, scope).with_file_name("commands"), "a file");
        is_refused(&bed, &["init", scope], &command_file(&bed, scope, "ralph-loop"), "cannot be read");
        let bed = Bed::new();
        put(settings(&bed, scope).parent().unwrap(), "a file");
        is_refused(&bed, &["init", scope], &settings(&bed, scope), "cannot be read");
        let bed = Bed::new();
        let path = settings(&bed, scope);
        put(&path.with_file_name("other"), "");
        symlink("settings.json", path.with_file_name("settings.local.json")).unwrap();
        symlink("settings.local.json", path.with_file_name("settings.json")).unwrap();
        is_refused(&bed, &["init", scope], &path, "cannot be read");
    }
}

/// A checkout can carry links that lead anywhere.
#[test]
fn s4_7_a_link_out_of_the_project_is_refused() {
    for scope in ["--project", "--local"] {
        for dangling in [false, true] {
            let bed = Bed::new();
            let outside = bed.home().join("victim/file");
            put(&outside.with_file_name("other"), "");
            if !dangling {
                put(&outside, USUAL);
            }
            let path = settings(&bed, scope);
            put(&path.with_file_name("other"), "");
            symlink("../../home/victim/file", &path).unwrap();
            is_refused(&bed, &["init", scope], &path, "leads out of the project");
            // Over a stop inside.
            fs::remove_file(&path).unwrap();
            symlink(&outside, bed.path("inside")).unwrap();
            symlink("../inside", &path).unwrap();
            is_refused(&bed, &["init", scope], &path, "leads out of the project");
            // By a command file.
            fs::remove_file(&path).unwrap();
            let command = command_file(&bed, scope, "ralph-loop");
            fs::create_dir(command.parent().unwrap()).unwrap();
            symlink(&outside, &command).unwrap();
            if dangling {
                is_refused(&bed, &["init", scope], &command, "leads out of the project");
            } else {
                bed.ralph_ok(&["init", scope]);
                assert_eq!(text_of(&outside), USUAL);
            }
        }
        // By a folder on the way.
        for folder in [".claude", ".claude/commands"] {
            let bed = Bed::new();
            fs::create_dir_all(bed.home().join("victim")).unwrap();
            fs::create_dir_all(bed.path(folder).parent().unwrap()).unwrap();
            symlink(bed.home().join("victim"), bed.path(folder)).unwrap();
            let first = if folder == ".claude" { settings(&bed, scope) } else { command_file(&bed, scope, "ralph-loop") };
            is_refused(&bed, &["init", scope], &first, "leads out of the project");
        }
    }
}

/// Uninstall follows no link out of the project either.
#[test]
fn s4_7_uninstall_changes_nothing_outside_the_project() {
    let bed = Bed::new();
    bed.ralph_ok(&["init", "--local"]);
    let (path, outside) = (settings(&bed, "--local"), bed.home().join("victim.json"));
    fs::rename(&path, &outside).unwrap();
    symlink(&outside, &path).unwrap();
    is_refused(&bed, &["uninstall"], &path, "leads out of the project");
}

/// Where nothing can be written, nothing is left half done. (`/proc` takes no files from root either.)
#[test]
fn s4_7_what_cannot_be_written_fails_before_anything_is() {
    let bed = bed_with("--user", USUAL);
    let before = everything(&bed);
    for (name, value) in [("XDG_STATE_HOME", "/proc/self/nowhere"), ("CLAUDE_CONFIG_DIR", "/proc/self/nowhere")] {
        let out = ralph_with(&bed, &[(name, Path::new(value))], &["init"]);
        assert_eq!(out.code, Some(1), "{out:?}");
        assert!(out.stderr.starts_with("error: /proc/self/nowhere"), "{}", out.stderr);
        if name == "XDG_STATE_HOME" {
            assert_eq!(everything(&bed), before);
        }
    }
    assert_eq!(text_of(&settings(&bed, "--user")), USUAL);
}

#[test]
fn s1_1_without_a_home_there_is_no_user_but_a_project() {
    let bed = Bed::new();
    let homeless = |args: &[&str]| run(bed.command(RALPH).args(args).env_remove("HOME"), b"");
    let out = homeless(&["init", "--user"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""));
    assert_eq!(out.stderr, "error: the home folder is not known: set HOME, or use --project or --local\n");
    let before = everything(&bed);
    for scope in ["--project", "--local"] {
        assert_eq!(homeless(&["init", scope]).code, Some(0));
        is_registered(&text_of(&settings(&bed, scope)), if scope == "--project" { "ralph" } else { RALPH });
        let out = homeless(&["uninstall"]);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
        assert!(!command_file(&bed, scope, "ralph").exists());
        is_not_registered(&text_of(&settings(&bed, scope)));
        fs::remove_dir_all(bed.path(".claude")).unwrap();
    }
    assert_eq!(everything(&bed), before);
}

/// Command files: those of other people stay, those that were edited stay, the rest goes.
#[test]
fn s1_1_command_files_of_others_stay() {
    for scope in SCOPES {
        let bed = Bed::new();
        let (theirs, edited) = (command_file(&bed, scope, "ralph"), command_file(&bed, scope, "ralph-loop"));
        put(&theirs, "Wiggum.\n");
        let said = bed.ralph_ok(&["init", scope]);
        assert!(said.contains(&format!("\nnote: {} was not written by ralph: it is left as it is", theirs.display())), "{said}");
        for name in COMMANDS.iter().filter(|name| **name != "ralph") {
            let text = text_of(&command_file(&bed, scope, name));
            assert!(text.starts_with("---\ndescription: ") && text.contains("\ndisable-model-invocation: true\n---\n"), "{text}");
        }
        put(&edited, "Mine now.\n");
        let said = bed.ralph_ok(&["init", scope]);
        assert!(said.contains(&format!("note: {} was not written by ralph", edited.display())), "{said}");
        let said = bed.ralph_ok(&["uninstall", scope]);
        assert!(said.contains(&format!("note: {} was changed since ralph wrote it: it stays.", edited.display())), "{said}");
        assert_eq!((text_of(&theirs).as_str(), text_of(&edited).as_str()), ("Wiggum.\n", "Mine now.\n"));
        assert_eq!(fs::read_dir(theirs.parent().unwrap()).unwrap().count(), 2);
        assert!(!settings(&bed, scope).exists());
    }
}

/// One folder of commands for the project and for the user in it.
#[test]
fn s1_1_project_and_local_share_the_commands() {
    let bed = Bed::new();
    let path = on_path(&bed);
    let before = everything(&bed);
    let ralph = |args: &[&str]| {
        let out = ralph_with(&bed, &[("PATH", &path)], args);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{args:?}");
    };
    ralph(&["init", "--project"]);
    ralph(&["init", "--local"]);
    is_registered(&text_of(&settings(&bed, "--local")), "ralph");
    ralph(&["uninstall"]);
    assert_eq!(everything(&bed), before);
    ralph(&["init", "--user"]);
    ralph(&["init", "--project"]);
    ralph(&["uninstall", "--user"]);
    is_registered(&text_of(&settings(&bed, "--project")), "ralph");
    assert!(command_file(&bed, "--project", "ralph").exists() && !command_file(&bed, "--user", "ralph").exists());
    ralph(&["uninstall"]);
    assert_eq!(everything(&bed), before);
}

#[test]
fn s1_1_uninstall_of_one_scope_leaves_the_commands_that_the_other_needs() {
    let bed = Bed::new();
    bed.ralph_ok(&["init", "--project"]);
    let before = everything(&bed);
    bed.ralph_ok(&["uninstall", "--local"]);
    assert_eq!(everything(&bed), before);
}

/// An installed plugin that registers ralph.
fn install_plugin(bed: &Bed, version: u64, scope: &str, on: bool) {
    let root = bed.home().join("plugins/ralph");
    put(
        &root.join("hooks/hooks.json"),
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/bin/ralph", "args": ["hook", "claude"]}]}]}}"#,
    );
    let record = if version == 1 { json!({"installPath": root}) } else { json!([{"scope": "user", "installPath": root}]) };
    let installed = json!({"version": version, "plugins": {"ralph@ralph-loop": record}});
    put(&bed.home().join(".claude/plugins/installed_plugins.json"), installed.to_string());
    put(&settings(bed, scope), json!({"enabledPlugins": {"ralph@ralph-loop": on}}).to_string());
}

#[test]
fn s1_1_a_plugin_that_registers_the_hooks_is_enough() {
    for (version, enabled_in) in [(1, "--user"), (2, "--user"), (2, "--project"), (2, "--local")] {
        for scope in SCOPES {
            let bed = Bed::new();
            install_plugin(&bed, version, enabled_in, true);
            put(&settings(&bed, scope).with_file_name("other"), "");
            let before = everything(&bed);
            let said = bed.ralph_ok(&["init", scope]);
            assert!(said.contains("The plugin ralph@ralph-loop registers the hooks, so only the short commands are written."), "{said}");
            let mut with: Vec<_> = everything(&bed).into_keys().filter(|path| !before.contains_key(path)).collect();
            with.retain(|path| !path.to_str().unwrap().contains("/.local/"));
            assert_eq!(with.len(), 7, "a folder and six files: {with:?}");
            bed.ralph_ok(&["init", scope, "--block-cap", "0"]);
            let text = text_of(&settings(&bed, scope));
            is_not_registered(&text);
            assert_eq!(says(&text)["env"][CAP], "0");
            let said = bed.ralph_ok(&["uninstall"]);
            assert!(said.contains("`claude plugin uninstall ralph@ralph-loop`"), "{said}");
            assert_eq!(everything(&bed), before);
        }
    }
}

/// Switched off, not installed, or without ralph's hook: then it does not count.
#[test]
fn s1_1_a_plugin_that_does_not_register_the_hooks_does_not_count() {
    for case in ["off", "off here", "not installed", "other hooks", "damaged list", "no hooks"] {
        let bed = Bed::new();
        install_plugin(&bed, 2, "--user", case != "off");
        match case {
            "off here" => put(&settings(&bed, "--local"), r#"{"enabledPlugins": {"ralph@ralph-loop": false}}"#),
            "not installed" => put(&bed.home().join(".claude/plugins/installed_plugins.json"), r#"{"version": 2, "plugins": {}}"#),
            "other hooks" => put(
                &bed.home().join("plugins/ralph/hooks/hooks.json"),
                r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#,
            ),
            "damaged list" => put(&bed.home().join(".claude/plugins/installed_plugins.json"), "{"),
            "no hooks" => fs::remove_dir_all(bed.home().join("plugins/ralph/hooks")).unwrap(),
            _ => {}
        }
        bed.ralph_ok(&["init", "--local"]);
        is_registered(&text_of(&settings(&bed, "--local")), RALPH);
    }
}

/// Two different command lines would both run; two equal ones run once.
#[test]
fn s1_1_a_second_registration_in_another_scope() {
    let bed = Bed::new();
    bed.ralph_ok(&["init", "--project"]);
    for (scope, said) in [("--user", "`ralph uninstall --project`"), ("--local", "`ralph uninstall --project`")] {
        is_refused(&bed, &["init", scope], &settings(&bed, "--project"), said);
    }
    bed.ralph_ok(&["uninstall", "--project"]);
    bed.ralph_ok(&["init", "--user"]);
    bed.ralph_ok(&["init", "--local"]);
    is_registered(&text_of(&settings(&bed, "--local")), RALPH);
    is_refused(&bed, &["init", "--project"], &settings(&bed, "--user"), "`ralph uninstall --user`");
    bed.ralph_ok(&["uninstall"]);
    put(&settings(&bed, "--project"), r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ralph hook claude"}]}]}}"#);
    is_refused(&bed, &["init"], &settings(&bed, "--project"), "as `ralph hook claude`");
}

#[test]
fn s1_1_one_scope_at_a_time() {
    let bed = Bed::new();
    for command in ["init", "uninstall"] {
        for args in [
            [command, "--user", "--project"],
            [command, "--project", "--local"],
            [command, "--user", "--block-cap=-1"],
            [command, "--global", ""],
        ] {
            let out = bed.ralph(&args);
            assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{args:?}");
            assert!(out.stderr.starts_with("error: "), "{}", out.stderr);
        }
    }
    assert!(everything(&bed).is_empty());
}

/// Plain text in a pipe, with the difference in it.
#[test]
fn s1_1_the_change_is_shown() {
    let bed = bed_with("--user", USUAL);
    let said = bed.ralph_ok(&["init"]);
    let path = settings(&bed, "--user");
    assert!(
        said.starts_with(&format!(
            "changed {}\n     {{\n    -  \"model\": \"opus\"\n    +  \"model\": \"opus\",\n    +  \"hooks\": {{\n",
            path.display()
        )),
        "{said}"
    );
    assert!(said.contains(&format!("\nnew     {}\n", command_file(&bed, "--user", "ralph-loop").display())), "{said}");
    assert!(said.contains("`ralph init --block-cap 0` lifts that cap"), "{said}");
    let undone = bed.ralph_ok(&["uninstall"]);
    assert!(
        undone.contains("    -  \"hooks\": {\n")
            && undone.contains(&format!("\nremoved {}", command_file(&bed, "--user", "ralph").display())),
        "{undone}"
    );
    assert!(!said.contains('\u{1b}') && !undone.contains('\u{1b}'));
    assert_eq!(bed.ralph_ok(&["uninstall"]), "There is nothing to undo: the hook is registered in none of these files.\n");
}

#[test]
fn s1_1_the_clients_folder_and_the_state_folder_can_be_elsewhere() {
    let bed = Bed::new();
    let (config, state) = (bed.home().join("my config"), bed.home().join("my state"));
    let vars = [("CLAUDE_CONFIG_DIR", config.as_path()), ("XDG_STATE_HOME", state.as_path())];
    put(&config.join("settings.json"), "{\"model\":\"opus\"}");
    let before = everything(&bed);
    assert_eq!(ralph_with(&bed, &vars, &["init"]).code, Some(0));
    is_registered(&text_of(&config.join("settings.json")), RALPH);
    assert!(config.join("commands/ralph-loop.md").exists() && !bed.home().join(".claude").exists() && !bed.home().join(".local").exists());
    let records: Vec<PathBuf> = fs::read_dir(state.join("ralph/setup")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(records.len(), 7);
    assert!(records.iter().all(|record| fs::metadata(record).unwrap().mode() & 0o777 == 0o600));
    assert_eq!(ralph_with(&bed, &vars, &["uninstall"]).code, Some(0));
    fs::remove_dir(&state).unwrap();
    assert_eq!(everything(&bed), before);
}

/// By its name where that is this program; else by its path, but never in a file that is checked in.
#[test]
fn s1_1_the_registered_command_is_this_program() {
    let bed = Bed::new();
    let here = on_path(&bed);
    let other = bed.script("other bin/ralph", "#!/bin/sh\n").parent().unwrap().to_owned();
    for (path, note) in [
        (&here, None),
        (&other, Some("the `ralph` on your PATH is another one (")),
        (&PathBuf::from("/usr/bin"), Some("`ralph` is not on your PATH")),
    ] {
        for scope in SCOPES {
            let out = ralph_with(&bed, &[("PATH", path)], &["init", scope]);
            assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
            is_registered(&text_of(&settings(&bed, scope)), if note.is_none() || scope == "--project" { "ralph" } else { RALPH });
            assert_eq!(out.stdout.lines().find(|l| l.starts_with("note:")).is_some(), note.is_some(), "{}", out.stdout);
            assert!(out.stdout.contains(note.unwrap_or_default()), "{}", out.stdout);
            // A moved program is registered anew where it stands.
            put(&settings(&bed, scope), text_of(&settings(&bed, scope)).replace(RALPH, "/old/ralph"));
            assert_eq!(ralph_with(&bed, &[("PATH", path)], &["init", scope]).code, Some(0));
            is_registered(&text_of(&settings(&bed, scope)), if note.is_none() || scope == "--project" { "ralph" } else { RALPH });
            assert_eq!(ralph_with(&bed, &[("PATH", path)], &["uninstall"]).code, Some(0));
        }
    }
}

/// Runs a registered entry as the client does, with a stop of a session that has a loop.
fn answer_of(bed: &Bed, entry: &Value, path: &Path) -> Answer {
    bed.write(LOOP, loop_text(crate::common::ME, 1, 0, "DONE"));
    let program = entry["command"].as_str().unwrap().replace("${CLAUDE_PLUGIN_ROOT}", path.to_str().unwrap());
    let args: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    let mut command = bed.command("/usr/bin/env");
    command.arg(program).args(args).env("PATH", format!("{}:/usr/bin:/bin", path.display())).env("CLAUDE_PROJECT_DIR", bed.dir());
    Answer::of(&run(&mut command, bed.work().json().as_bytes()))
}

#[test]
fn s1_1_what_is_registered_answers_a_stop() {
    for scope in SCOPES {
        let bed = Bed::new();
        bed.ralph_ok(&["init", scope]);
        let entry = ours(&says(&text_of(&settings(&bed, scope))), "Stop")[0].clone();
        assert!(answer_of(&bed, &entry, &on_path(&bed)).blocks(), "{entry}");
        let said = bed.ralph_ok(&["uninstall"]);
        assert!(said.contains("A loop is live in this project"), "{said}");
    }
}

#[test]
fn s1_1_the_plugin_brings_its_own_program() {
    let bed = Bed::new();
    let folder = bed.path("a folder/plugins");
    let mut tree = BTreeMap::new();
    for round in 0..2 {
        let said = bed.ralph_ok(&["plugin", "a folder/plugins"]);
        assert!(said.contains(folder.to_str().unwrap()) && said.contains("claude plugin install ralph@ralph-loop"), "{said}");
        if round == 0 {
            tree = everything(&bed);
            put(&folder.join("plugin/hooks/hooks.json"), "old");
            put(&folder.join("plugin/bin/ralph"), "old");
        }
    }
    assert_eq!(everything(&bed), tree, "a second run brings everything up to date, and leaves nothing else");
    let root = folder.join("plugin");
    let market = says(&text_of(&folder.join(".claude-plugin/marketplace.json")));
    assert_eq!((&market["name"], &market["plugins"][0]["source"]), (&json!("ralph-loop"), &json!("./plugin")));
    assert_eq!(says(&text_of(&root.join(".claude-plugin/plugin.json")))["name"], "ralph");
    assert_eq!(fs::read_dir(root.join("commands")).unwrap().count(), 6);
    assert!(root.join("README.md").exists());
    let hooks = text_of(&root.join("hooks/hooks.json"));
    is_registered(&hooks, "${CLAUDE_PLUGIN_ROOT}/bin/ralph");
    assert!(answer_of(&bed, &ours(&says(&hooks), "Stop")[0], &root).blocks());
    // It can be updated by itself, and its folder can be elsewhere.
    let out = run(bed.command(root.join("bin/ralph")).args(["plugin", folder.to_str().unwrap()]), b"");
    assert_eq!(out.code, Some(0), "{out:?}");
    put(&bed.path("file"), "");
    let out = bed.ralph(&["plugin", "file"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.starts_with("error: cannot write "), "{}", out.stderr);
}

#[test]
fn s1_1_two_old_entries_become_one() {
    let text = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ralph hook"}]}, {"hooks": [{"type": "command", "command": "/old/ralph hook"}]}]}}"#;
    let bed = bed_with("--user", text);
    bed.ralph_ok(&["init"]);
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
}

#[test]
fn s1_1_an_entry_for_some_session_starts_is_no_registration() {
    let text = r#"{"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "ralph hook"}]}]}}"#;
    let bed = bed_with("--user", text);
    bed.ralph_ok(&["init"]);
    let starts = says(&text_of(&settings(&bed, "--user")))["hooks"]["SessionStart"].as_array().unwrap().clone();
    assert!(starts.iter().any(|group| matches!(group["matcher"].as_str(), None | Some("" | "*"))), "{starts:?}");
}

#[test]
fn s1_1_a_comment_beside_ralphs_entry_stays() {
    let bed = bed_with("--user", USUAL);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    put(&path, text_of(&path).replacen("\"Stop\": [", "\"Stop\": [\n      // my own words", 1));
    bed.ralph_ok(&["uninstall"]);
    let left = text_of(&path);
    is_not_registered(&left);
    assert!(left.contains("// my own words"), "{left}");
}

#[test]
fn s1_1_a_comment_in_an_empty_list_stays() {
    let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      // nothing yet\n    ]\n  }\n}\n";
    let bed = bed_with("--user", text);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    put(&path, text_of(&path).replacen('{', "{\n  \"added\": 1,", 1));
    bed.ralph_ok(&["uninstall"]);
    assert!(text_of(&path).contains("// nothing yet"), "{}", text_of(&path));
}

#[test]
fn s1_1_an_empty_list_of_the_users_stays() {
    let mine = r#"{"hooks": [{"type": "command", "command": "mine"}]}"#;
    let text = format!("{{\n  \"hooks\": {{\n    \"Stop\": [\n      {mine}\n    ],\n    \"Notification\": []\n  }}\n}}\n");
    let bed = bed_with("--user", &text);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&path), text);
}

#[test]
fn s1_1_blank_lines_stay() {
    let text = "{\n\n  \"a\": 1,\n\n  \"b\": 2\n\n}\n";
    let bed = bed_with("--user", text);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    assert!(in_order(text.bytes(), text_of(&path).bytes()), "{}", text_of(&path));
    put(&path, text_of(&path).replacen("\"a\": 1", "\"a\": 3", 1));
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&path), text.replacen("\"a\": 1", "\"a\": 3", 1));
}

#[test]
fn s1_1_a_cap_that_is_a_number_goes_back_after_an_edit() {
    let text = format!("{{\n  \"env\": {{\n    \"A\": \"1\",\n    \"{CAP}\": 20\n  }}\n}}\n");
    let bed = bed_with("--user", &text);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init", "--block-cap", "0"]);
    put(&path, text_of(&path).replacen('{', "{\n  \"added\": 1,", 1));
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(says(&text_of(&path))["env"][CAP], 20, "{}", text_of(&path));
}

#[test]
fn s1_1_folders_that_were_there_stay() {
    for case in ["commands", "config", "behind a link"] {
        let bed = Bed::new();
        let path = settings(&bed, "--user");
        match case {
            "commands" => {
                put(&path, USUAL);
                fs::create_dir_all(path.with_file_name("commands")).unwrap();
            }
            "config" => fs::create_dir_all(path.parent().unwrap()).unwrap(),
            _ => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::create_dir_all(bed.home().join("dotfiles")).unwrap();
                symlink("../dotfiles/claude.json", &path).unwrap();
            }
        }
        let before = everything(&bed);
        bed.ralph_ok(&["init"]);
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(everything(&bed), before, "{case}");
    }
}

#[test]
fn s1_1_a_folder_that_was_made_for_the_commands_goes_with_them() {
    let bed = Bed::new();
    install_plugin(&bed, 2, "--user", true);
    let before = everything(&bed);
    bed.ralph_ok(&["init", "--local"]);
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(everything(&bed), before);
}

#[test]
fn s1_1_beside_a_plugin_nothing_wrong_is_said_and_nothing_runs_twice() {
    let bed = Bed::new();
    install_plugin(&bed, 2, "--user", false);
    bed.ralph_ok(&["init"]);
    let path = settings(&bed, "--user");
    put(&path, text_of(&path).replace("\"ralph@ralph-loop\":false", "\"ralph@ralph-loop\":true"));
    let said = bed.ralph_ok(&["init"]);
    assert!(!said.contains("so the hook is registered by its path"), "{said}");
    let still = !ours(&says(&text_of(&path)), "Stop").is_empty();
    assert!(!still || said.contains("ralph uninstall"), "registered twice, without a word: {said}");
}

#[test]
fn s4_7_all_of_it_or_nothing() {
    for scope in SCOPES {
        let bed = bed_with(scope, USUAL);
        let commands = settings(&bed, scope).with_file_name("commands");
        symlink("not/there", &commands).unwrap();
        let before = everything(&bed);
        let out = bed.ralph(&["init", scope]);
        if out.code != Some(0) {
            assert_eq!(everything(&bed), before, "{}", out.stderr);
        }
    }
}

#[test]
fn s1_1_no_record_outlives_uninstall() {
    for by_hand in [false, true] {
        let bed = bed_with("--user", USUAL);
        bed.ralph_ok(&["init"]);
        fs::remove_dir_all(bed.home().join(".claude")).unwrap();
        if by_hand {
            put(&settings(&bed, "--user"), USUAL);
        }
        bed.ralph_ok(&["uninstall"]);
        assert!(!bed.home().join(".local/state/ralph").exists(), "put back by hand: {by_hand}");
    }
}

#[test]
fn s1_1_init_in_the_home_folder_knows_its_own_file() {
    let bed = bed_with("--user", r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/old/ralph hook"}]}]}}"#);
    let out = run(bed.command(RALPH).arg("init").current_dir(bed.home()), b"");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""));
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
}

#[test]
fn s1_1_uninstall_does_not_pass_over_settings_that_it_cannot_read() {
    let bed = Bed::new();
    bed.ralph_ok(&["init"]);
    let path = settings(&bed, "--user");
    put(&path, [text_of(&path).as_bytes(), b"// \xff\n"].concat());
    is_refused(&bed, &["uninstall"], &path, "not UTF-8");
}

#[test]
fn s1_1_the_way_back_is_known_by_whatever_path() {
    let text = "{\"model\":\"opus\"}";
    let bed = bed_with("--project", text);
    symlink(bed.dir(), bed.home().join("link")).unwrap();
    bed.ralph_ok(&["init", "--project", "-C", bed.home().join("link").to_str().unwrap()]);
    bed.ralph_ok(&["uninstall", "--project"]);
    assert_eq!(bed.read(".claude/settings.json"), text);
    put(&bed.path("config/settings.json"), text);
    assert_eq!(ralph_with(&bed, &[("CLAUDE_CONFIG_DIR", Path::new("config"))], &["init"]).code, Some(0));
    assert_eq!(ralph_with(&bed, &[("CLAUDE_CONFIG_DIR", &bed.path("config"))], &["uninstall"]).code, Some(0));
    assert_eq!(bed.read("config/settings.json"), text);
}

#[test]
fn s4_7_secrets_are_never_readable_by_others() {
    let fresh = || {
        let bed = bed_with("--user", "{\n  \"apiKeyHelper\": \"secret\"\n}\n");
        fs::set_permissions(settings(&bed, "--user"), fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = bed.command(RALPH);
        command.arg("init");
        (bed, command)
    };
    let (bed, mut command) = fresh();
    let count = count_syscalls(&mut command, Filter::Writes, b"");
    drop(bed);
    for n in 1..=count {
        let (bed, mut command) = fresh();
        kill_at_syscall(&mut command, Filter::Writes, n, b"");
        for (path, is) in everything(&bed) {
            assert!(!is.contains("secret") || is.starts_with("100600 "), "killed at {n} of {count}: {} {}", path.display(), &is[..6]);
        }
    }
}

#[test]
fn s1_1_what_a_file_says_does_not_command_the_terminal() {
    let bed = bed_with("--project", "{\n  \"a\": 1 // \u{1b}]0;owned\u{7}\n}\n");
    let out = run(bed.command(RALPH).args(["init", "--project", "--dry-run"]).env("CLICOLOR_FORCE", "1"), b"");
    assert_eq!(out.code, Some(0));
    assert!(!out.stdout.contains("\u{1b}]") && !out.stdout.contains('\u{7}'), "{:?}", out.stdout);
}

#[test]
fn s1_1_refusals_are_sentences() {
    for (text, said) in [("{\"hooks\": []}", "is \"hooks\" is"), ("{\"hooks\": {}, \"hooks\": {}}", "is \"hooks\" stands")] {
        let bed = bed_with("--user", text);
        let stderr = bed.ralph(&["init"]).stderr;
        assert!(!stderr.contains(said), "{stderr}");
    }
}

#[test]
fn s1_1_the_lines_to_copy_work_with_spaces_in_the_path() {
    let bed = Bed::new();
    let said = bed.ralph_ok(&["plugin", "a folder"]);
    let line = said.lines().find(|l| l.contains("marketplace add")).unwrap().replace("claude plugin", "printf '%s\\n'");
    let out = run(bed.command("/bin/sh").args(["-c", &line]), b"");
    assert_eq!(out.stdout.lines().last(), bed.path("a folder").to_str(), "{line}");
}
