//! The files that gates are made of: where they are declared, and what their commands run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use ralph_core::gate::{
    Check, Gate, Origin,
    guard::{Named, Source},
};
use serde_json::Value;

use crate::{
    store::project::Project,
    sys::{digest, files},
};

/// A larger one is no script.
const MAX_BYTES: usize = 1 << 20;

/// More of them than this are not looked at.
const MOST_WORKFLOWS: usize = 200;

/// Where the packages of one repository usually lie.
const AROUND_PACKAGES: [&str; 5] = ["", "packages", "apps", "libs", "services"];

/// The files that the gates depend on.
pub(super) struct Scripts {
    /// Digests; an empty one: it is not there.
    pub(super) digests: BTreeMap<String, String>,
    /// The gates that run each of them.
    pub(super) runners: BTreeMap<String, BTreeSet<String>>,
}

pub(super) fn of(project: &Project, gates: &[Gate]) -> Scripts {
    let mut scripts = Scripts { digests: BTreeMap::new(), runners: BTreeMap::new() };
    for gate in gates {
        let mut found = Found { root: project.root().to_owned(), digests: BTreeMap::new(), seen: BTreeSet::new() };
        if let Check::Command(command) = &gate.check {
            let folder = PathBuf::from(command.folder.as_deref().unwrap_or(""));
            found.all(&folder, Named::by(&command.run));
        }
        if let Check::Ci(_) = &gate.check {
            found.workflows();
        }
        for file in found.digests.keys() {
            scripts.runners.entry(file.clone()).or_default().insert(gate.name.clone());
        }
        if let Origin::File(path) = &gate.origin {
            found.file(Path::new(path));
        }
        scripts.digests.append(&mut found.digests);
    }
    scripts
}

struct Found {
    root: PathBuf,
    digests: BTreeMap<String, String>,
    /// Scripts that were looked up: one may run another, or itself.
    seen: BTreeSet<(PathBuf, String)>,
}

impl Found {
    fn all(&mut self, folder: &Path, named: Vec<(String, Named)>) {
        for (below, one) in named {
            let folder = &folder.join(below);
            match one {
                Named::File(path) => self.file(&folder.join(path)),
                Named::Script(name) => self.script(folder, &name),
                Named::OfPackage { package, script } => {
                    // `@scope/name` and `./packages/name` are in a folder of that name, or in an unknown one.
                    let name = package.rsplit('/').next().unwrap_or(&package);
                    for around in AROUND_PACKAGES {
                        self.script(&folder.join(around).join(name), &script);
                    }
                }
                Named::FirstOf(names) => {
                    let is_there = |name: &&&str| self.root.join(folder).join(name).is_file();
                    if let Some(name) = names.iter().find(is_there).or(names.last()) {
                        self.file(&folder.join(name));
                    }
                }
            }
        }
    }

    /// The workflows that GitHub runs. A new workflow asks for more, not for less.
    fn workflows(&mut self) {
        let folder = Path::new(".github/workflows");
        let is_workflow = |name: &str| Path::new(name).extension().is_some_and(|kind| kind == "yml" || kind == "yaml");
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        for name in names.filter(|name| is_workflow(name)).take(MOST_WORKFLOWS).collect::<BTreeSet<_>>() {
            self.file(&folder.join(name));
        }
    }

    /// A file in the project. One that holds tests is looked at as such.
    fn file(&mut self, path: &Path) {
        let Some(shown) = within(path) else { return };
        let digest = match files::read(&self.root.join(&shown), MAX_BYTES) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                if Source::read(&shown, &text).is_some_and(|source| !source.tests.is_empty()) {
                    return;
                }
                digest::of(essence(&text).as_bytes())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(_) => return,
        };
        self.digests.insert(shown, digest);
    }

    /// An entry of `package.json`, and what that runs in turn.
    fn script(&mut self, folder: &Path, name: &str) {
        if !self.seen.insert((folder.to_owned(), name.to_owned())) {
            return;
        }
        let Some(shown) = within(&folder.join("package.json")) else { return };
        let Ok(bytes) = files::read(&self.root.join(&shown), MAX_BYTES) else { return };
        let Ok(package) = serde_json::from_slice::<Value>(&bytes) else { return };
        for name in [format!("pre{name}"), name.to_owned(), format!("post{name}")] {
            let line = package.get("scripts").and_then(|scripts| scripts.get(&name)).and_then(Value::as_str);
            let digest = line.map(|line| digest::of(line.as_bytes())).unwrap_or_default();
            self.digests.insert(format!("{shown} (script \"{name}\")"), digest);
            self.all(folder, line.map(Named::in_line).unwrap_or_default());
        }
    }
}

/// The path relative to the root, if it does not lead out of it.
fn within(path: &Path) -> Option<String> {
    use std::path::Component::{CurDir, Normal};
    let parts: Option<Vec<&str>> = path
        .components()
        .filter(|part| *part != CurDir)
        .map(|part| match part {
            Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    Some(parts?.join("/"))
}

/// Without blank lines, comments and indentation at the end: the part of a script that only an intended change touches.
fn essence(text: &str) -> String {
    let says_something = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().map(str::trim_end).filter(says_something).fold(String::new(), |all, line| all + line + "\n")
}
