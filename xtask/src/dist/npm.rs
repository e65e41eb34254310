//! Packages for npm: one small package with the command, and one with the programs for each platform, of which npm installs the right one.

use serde_json::{Map, Value, json};

use super::{
    REPOSITORY, VERSION,
    archive::{self, Folders},
    contents::{self, Contents, File},
    targets::Target,
};
use crate::Result;

/// The package that people install. The name `ralph-loop` is another project's.
pub(crate) const MAIN: &str = "@ralph-loop/ralph";

/// The archive's name of a package, as `npm pack` would call it.
pub(crate) fn file_name(package: &str) -> String {
    format!("{}-{VERSION}.tgz", package.trim_start_matches('@').replace('/', "-"))
}

/// The package with the programs for one platform.
pub(crate) fn platform(target: &Target, contents: &Contents) -> Result<Vec<u8>> {
    let name = target.npm_package();
    let (os, cpu) = target.npm;
    let mut manifest = about(&name, &format!("The programs of ralph-loop for {os} on {cpu}"));
    manifest.insert("os".to_owned(), json!([os]));
    manifest.insert("cpu".to_owned(), json!([cpu]));
    manifest.insert("preferUnplugged".to_owned(), json!(true));
    let readme = format!(
        "# {name}\n\nThe programs of [ralph-loop](https://www.npmjs.com/package/@ralph-loop/ralph) for one platform. Install that one.\n"
    );
    let mut files = vec![File::text("README.md", readme), File::text("package.json", pretty(&manifest)?)];
    files.extend(contents.programs_in("bin/", target));
    files.extend(contents.documents.iter().filter(|document| document.path.contains("LICENSE")).cloned());
    pack(files)
}

/// The package that people install. `platforms` are those that are published with it.
pub(crate) fn main(platforms: &[&Target]) -> Result<Vec<u8>> {
    let mut manifest = about(MAIN, "Keeps a coding agent working until the work is proven done");
    let versions: Map<_, _> = platforms.iter().map(|target| (target.npm_package(), json!(VERSION))).collect();
    manifest.insert("bin".to_owned(), json!({ "ralph": "bin/ralph" }));
    manifest.insert("scripts".to_owned(), json!({ "postinstall": "node link.js" }));
    manifest.insert("engines".to_owned(), json!({ "node": ">=18" }));
    manifest.insert("optionalDependencies".to_owned(), Value::Object(versions));
    let mut files = vec![
        File::program("bin/ralph", include_str!("npm/ralph.js")),
        File::text("find.js", include_str!("npm/find.js")),
        File::text("link.js", include_str!("npm/link.js")),
        File::text("package.json", pretty(&manifest)?),
        contents::document("README.md")?,
    ];
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files.push(contents::document(name)?);
    }
    pack(files)
}

/// What both kinds of packages say of themselves.
fn about(name: &str, description: &str) -> Map<String, Value> {
    let about = json!({
        "name": name,
        "version": VERSION,
        "description": description,
        "license": "MIT OR Apache-2.0",
        "homepage": REPOSITORY,
        "repository": { "type": "git", "url": format!("git+{REPOSITORY}.git") },
    });
    about.as_object().cloned().unwrap_or_default()
}

fn pretty(manifest: &Map<String, Value>) -> Result<String> {
    Ok(serde_json::to_string_pretty(manifest)? + "\n")
}

/// Everything is in a folder `package`.
fn pack(files: Vec<File>) -> Result<Vec<u8>> {
    let within = |file: File| File { path: format!("package/{}", file.path), ..file };
    archive::tar_gz(files.into_iter().map(within).collect(), Folders::Implied)
}
