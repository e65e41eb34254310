//! `ralph init`, `ralph uninstall` and `ralph plugin`, and what their tests share: a bed with a settings file, and readers of such a file that have nothing in
//! common with ralph's.

mod deny_edits;
mod guide;
mod places;
mod real_shapes;
mod safety;
mod shapes;
mod way_back;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use ralph_testkit::Output;
use serde_json::{Value, json};

use crate::common::{Bed, RALPH, run};

const SCOPES: [&str; 3] = ["--user", "--project", "--local"];
const EVENTS: [&str; 8] =
    ["Stop", "SubagentStop", "StopFailure", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SessionEnd", "Notification"];
/// Those that have a second hook, which waits.
const WAITED_FOR: [&str; 2] = ["Stop", "StopFailure"];
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

fn waits(entry: &Value) -> bool {
    entry["args"].as_array().is_some_and(|args| args.contains(&json!("--wait")))
}

/// Those of them that answer, and do not wait.
fn answering(settings: &Value, event: &str) -> Vec<Value> {
    ours(settings, event).into_iter().filter(|entry| !waits(entry)).collect()
}

#[track_caller]
fn is_registered(text: &str, command: &str) {
    let says = says(text);
    // One name in all entries of a file.
    let via = answering(&says, "Stop")[0]["args"].as_array().and_then(|args| args.last().cloned()).unwrap();
    assert!(["user", "project", "local", "plugin"].iter().any(|place| via == *place), "{via}");
    for event in EVENTS {
        let entries = answering(&says, event);
        assert_eq!((entries.len(), ours(&says, event).len()), (1, 1 + usize::from(WAITED_FOR.contains(&event))), "{event}: {text}");
        let entry = &entries[0];
        let limit = entry["timeout"].as_u64().filter(|t| *t >= 10).unwrap_or_else(|| panic!("{entry}"));
        // What runs commands knows how long it may take.
        let told = json!(["hook", "claude", "--timeout", limit.to_string(), "--via", via]);
        let args = if event == "Stop" || event == "SubagentStop" { told } else { json!(["hook", "claude", "--via", via]) };
        assert_eq!((&entry["type"], &entry["command"], &entry["args"]), (&json!("command"), &json!(command), &args));
        // A notification is answered by nothing, so the client need not wait.
        let is_async = if event == "Notification" { json!(true) } else { Value::Null };
        assert_eq!((&entry["async"], &entry["asyncRewake"]), (&is_async, &Value::Null), "{entry}");
    }
    // A client that knows no arguments runs the last of two that have the same command.
    let args = json!(["hook", "claude", "--wait", "--timeout", "28800", "--via", via]);
    let waiter = json!({"type": "command", "command": command, "args": args, "timeout": 28_800, "asyncRewake": true});
    for event in WAITED_FOR {
        assert_eq!(ours(&says, event)[0], waiter, "{text}");
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
    // The client reads plain JSON only, and the person is told.
    let is_plain = serde_json::from_str::<Value>(text_of(&path).trim_start_matches('\u{feff}')).is_ok();
    let unread = "\nWritten, but not yet read by the client, for ";
    assert!(done.contains(if is_plain { "\nRegistered for " } else { unread }), "{done}");
    let new = text_of(&path);
    is_registered(&new, if scope == "--project" { "ralph" } else { RALPH });
    let registered = (everything(bed), fs::metadata(&path).unwrap().modified().unwrap());
    let again = ralph(args("init", &[]));
    assert!(again.contains(if is_plain { "Already registered for " } else { unread.trim_start() }), "{again}");
    assert_eq!((everything(bed), fs::metadata(&path).unwrap().modified().unwrap()), registered, "a second time changes nothing");
    ralph(args("uninstall", &["--dry-run"]));
    assert_eq!(everything(bed), registered.0, "a dry run changes nothing");
    let undone = ralph(args("uninstall", &[]));
    assert!(undone.contains("\nUndone.\n"), "{undone}");
    assert_eq!(everything(bed), before, "{text:?}\n→\n{new}");
    if more.is_empty() {
        let bytes = |text: &str| text.bytes().filter(|b| !b.is_ascii_whitespace()).collect::<Vec<_>>();
        assert!(in_order(bytes(text), bytes(&new)), "{text}\n→\n{new}");
        assert_eq!(others(&new), others(text));
    }
    new
}
