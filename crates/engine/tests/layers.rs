//! A lower layer never calls a higher one (docs/ARCHITECTURE.md).

#![expect(clippy::unwrap_used, reason = "a file that cannot be read fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The rooms of each crate from the bottom up: a module may use those before it.
const CRATES: [(&str, &[&str]); 3] = [
    ("core", &["text", "money", "gate", "config", "loops", "judge", "journal", "messages", "history", "report"]),
    ("engine", &["sys", "store", "git", "hosts", "gates", "notify", "stop", "view", "ops", "setup", "run", "hook"]),
    (
        "ralph",
        &[
            "agent_names",
            "journal_lines",
            "term",
            "run_wording",
            "advice",
            "exit",
            "help",
            "agents_shell",
            "arena",
            "find_loop",
            "doctor",
            "statusline",
            "report",
            "watch",
            "hook",
            "commands",
        ],
    ),
];

#[test]
fn house_no_module_uses_a_higher_one() {
    for (name, layers) in CRATES {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let mut upward = Vec::new();
        for (at, layer) in layers.iter().enumerate() {
            for (path, text) in sources_of(&src, layer) {
                let used = layers[at + 1..].iter().filter(|higher| uses(&text, higher));
                upward.extend(used.map(|higher| format!("{} uses {higher}", path.strip_prefix(&src).unwrap().display())));
            }
        }
        assert!(upward.is_empty(), "{name}: {upward:#?}");
        let root = ["lib.rs", "main.rs"].iter().find_map(|file| fs::read_to_string(src.join(file)).ok()).unwrap();
        let modules = root.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
        let missing: Vec<&str> = modules.filter(|module| !layers.contains(module) && !["entry", "tests"].contains(module)).collect();
        assert!(missing.is_empty(), "{name}: without a layer: {missing:?}");
    }
}

#[test]
fn house_a_use_is_seen_wherever_it_stands() {
    let list = "use crate::{\n    git::head,\n    store::{Error, run},\n    sys::{clock, env},\n};\n";
    assert!(uses(list, "git") && uses(list, "store") && uses(list, "sys") && !uses(list, "run") && !uses(list, "env"));
    assert!(uses("use crate::hook::Call;", "hook") && uses("let x = crate::ops::pause();", "ops") && !uses("// crate::ops", "ops"));
}

/// The most names that each library may show to the others: public items of public modules and `pub use`d names. Lower a number when it can be; a new name that
/// needs a higher one probably belongs behind an existing one.
const DOORS: [(&str, usize); 2] = [("core", 244), ("engine", 329)];

#[test]
fn house_the_doors_stay_small() {
    for (name, most) in DOORS {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let names = public_names(&src, "lib");
        assert!(names.len() <= most, "{name} shows {} names, and {most} are enough: {names:#?}", names.len());
    }
}

/// The names that a public module shows, with those of the public modules in it.
fn public_names(folder: &Path, module: &str) -> Vec<String> {
    let file = [folder.join(module).with_extension("rs"), folder.join(module).join("mod.rs")];
    let text = file.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap();
    let inner = if module == "lib" { folder.to_owned() } else { folder.join(module) };
    let mut names = Vec::new();
    for line in text.split_inclusive(';').flat_map(|part| part.lines().filter(|line| line.starts_with("pub "))) {
        let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        let at = words.iter().position(|word| ["fn", "struct", "enum", "const", "static", "trait", "type", "mod"].contains(word));
        match at.map(|at| (words[at], words[at + 1])) {
            Some(("mod", inside)) => names.extend(public_names(&inner, inside)),
            Some(("const", "fn")) => names.push(format!("{module}::{}", words[words.len().min(3)])),
            Some((_, item)) => names.push(format!("{module}::{item}")),
            None => {}
        }
    }
    for list in text.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let list =
            list.split_once('{').map_or_else(|| list.rsplit("::").next().unwrap_or(list), |(_, inside)| inside.trim_end_matches('}'));
        names.extend(list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(|item| format!("{module}::{item}")));
    }
    names
}

#[test]
fn house_core_names_no_agent() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    for (path, text) in files {
        for line in text.lines() {
            // Paths in a project are formats on disk, and a journal calls an agent by its name.
            let code = line
                .to_lowercase()
                .replace(".claude/", "")
                .replace("`claude`, or `command`", "")
                .replace("first_agent: &str = \"claude\"", "");
            assert!(!code.contains("claude"), "{}: {line}", path.display());
        }
    }
}

/// A room is a folder or a single file.
fn sources_of(src: &Path, layer: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    match fs::read_to_string(src.join(layer).with_extension("rs")) {
        Ok(text) => files.push((src.join(layer).with_extension("rs"), without_tests(&text))),
        Err(_) => sources(&src.join(layer), &mut files),
    }
    assert!(!files.is_empty(), "{layer} has no source files");
    files
}

fn sources(folder: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") && path.file_name().is_some_and(|name| name != "tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            into.push((path, without_tests(&text)));
        }
    }
}

/// Tests may use what they like.
fn without_tests(text: &str) -> String {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// Whether a source file names the module: as `crate::module`, or within `use crate::{…}`.
fn uses(text: &str, module: &str) -> bool {
    let code: String = text.split_inclusive('\n').filter(|line| !line.trim_start().starts_with("//")).collect();
    let in_list = |list: &str| {
        let mut depth = 0_usize;
        list.split_inclusive(['{', '}', ',']).any(|part| {
            let name =
                part.trim_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',')).split("::").next().unwrap_or_default();
            let found = depth == 0 && name == module;
            match part.chars().last() {
                Some('{') => depth += 1,
                Some('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            found
        })
    };
    let lists = code
        .split("use crate::{")
        .skip(1)
        .filter_map(|rest| rest.split("\n};").next().map(|list| list.split("};\n").next().unwrap_or(list)));
    code.split("crate::").skip(1).any(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next() == Some(module))
        || lists.into_iter().any(in_list)
}
