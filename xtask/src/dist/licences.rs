//! The licences of everything that is linked into the programs: who ships it has to pass them on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::Path,
};

use serde_json::Value;

use super::contents::{File, output};
use crate::{Result, cargo};

const FILE: &str = "THIRD-PARTY-LICENSES.txt";

/// Each package with its licence, then each text once, with the packages that it came with.
pub(crate) fn of(triple: &str) -> Result<File> {
    let linked = linked(triple)?;
    let metadata = output(cargo::cargo().args(["metadata", "--format-version=1", "--locked", "--filter-platform", triple]))?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        if package["source"].is_null() || !linked.contains(&name) {
            continue;
        }
        let _ = writeln!(list, "{name}: {}", field("license"));
        for text in texts_in(Path::new(field("manifest_path")).parent().ok_or("no folder")?)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut all = format!(
        "ralph is made of the following packages, of the standard library of Rust (MIT OR Apache-2.0)\nand, on Linux, of the C library musl (MIT).\n\n{list}"
    );
    for (text, packages) in texts {
        let _ = write!(all, "\n{}\n{}\n\n{text}\n", "-".repeat(80), packages.join(", "));
    }
    Ok(File::text(FILE, all))
}

/// Names and versions of what is linked: neither build scripts nor macros.
fn linked(triple: &str) -> Result<BTreeSet<String>> {
    let edges = "normal,no-proc-macro";
    let args = [
        "tree",
        "--package",
        "ralph-loop",
        "--package",
        "ralph-fleet",
        "--edges",
        edges,
        "--target",
        triple,
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--locked",
    ];
    let tree = String::from_utf8(output(cargo::cargo().args(args))?)?;
    let package = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        Some(format!("{name} {}", rest.split(' ').next().unwrap_or(rest)))
    };
    Ok(tree.lines().filter_map(package).collect())
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.file_type()?.is_file() && ["LICEN", "COPY", "NOTICE", "UNLICENSE"].iter().any(|start| name.starts_with(start)) {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path())?).replace('\r', "").trim().to_owned());
        }
    }
    Ok(texts)
}
