//! A lower layer never calls a higher one (docs/ARCHITECTURE.md).

#![expect(clippy::unwrap_used, reason = "a file that cannot be read fails the test")]

use std::{fs, path::Path};

/// From the bottom up: a module may use those before it.
const LAYERS: [&str; 14] =
    ["sys", "store", "git", "hosts", "forge", "snapshots", "gates", "notify", "stop", "view", "ops", "setup", "run", "hook"];

#[test]
fn house_no_module_uses_a_higher_one() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut upward = Vec::new();
    for (at, layer) in LAYERS.iter().enumerate() {
        let mut files = Vec::new();
        sources(&src.join(layer), &mut files);
        assert!(!files.is_empty(), "{layer} has no source files");
        for (path, text) in files {
            let used = LAYERS[at + 1..].iter().filter(|higher| uses(&text, higher));
            upward.extend(used.map(|higher| format!("{} uses {higher}", path.strip_prefix(&src).unwrap().display())));
        }
    }
    assert!(upward.is_empty(), "{upward:#?}");
    let listed = fs::read_to_string(src.join("lib.rs")).unwrap();
    let modules = listed.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    assert!(modules.into_iter().all(|module| LAYERS.contains(&module)), "every module has its layer");
}

#[test]
fn house_a_use_is_seen_wherever_it_stands() {
    let list = "use crate::{\n    git::head,\n    store::{Error, run},\n    sys::{clock, env},\n};\n";
    assert!(uses(list, "git") && uses(list, "store") && uses(list, "sys") && !uses(list, "run") && !uses(list, "env"));
    assert!(uses("use crate::hook::Call;", "hook") && uses("let x = crate::ops::pause();", "ops") && !uses("// crate::ops", "ops"));
}

fn sources(folder: &Path, into: &mut Vec<(std::path::PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") && path.file_name().is_some_and(|name| name != "tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            // What tests use is no part of the house.
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            into.push((path, text));
        }
    }
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
