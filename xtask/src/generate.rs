//! Files that are made from the code: the JSON schemas, the documented template of a loop file, the plugin and its marketplace.

use std::{fs, path::PathBuf};

use ralph_core::{journal::Record, loop_keys};
use ralph_engine::hosts::claude::plugin;
use serde_json::Value;

use crate::{Result, Verdict, cargo};

/// Write the generated files: schemas/*.schema.json, docs/ralph-loop.template.md, plugin/, .claude-plugin/
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if a file is not what it would be
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<Verdict> {
    let mut fresh = true;
    for (name, content) in artefacts()? {
        let path = path(&name);
        let current = fs::read_to_string(&path).unwrap_or_default();
        if current == content {
            println!("fresh    {name}");
        } else if args.check {
            fresh = false;
            println!("STALE    {name}: `cargo xtask generate` makes it anew\n{}", difference(&current, &content));
        } else {
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(&path, content)?;
            println!("written  {name}");
        }
    }
    Ok(Verdict::when(fresh))
}

fn path(name: &str) -> PathBuf {
    cargo::root().join(name)
}

/// Every generated file and what it should say.
fn artefacts() -> Result<Vec<(String, String)>> {
    let journal = serde_json::to_value(schemars::schema_for!(Record))?;
    let mut files = plugin::files(plugin::ON_PATH).map_err(|e| e.to_string())?;
    files.extend([
        ("schemas/loop.schema.json".to_owned(), pretty(loop_keys::schema())?),
        ("schemas/journal.schema.json".to_owned(), pretty(journal)?),
        ("docs/ralph-loop.template.md".to_owned(), loop_keys::template()),
    ]);
    Ok(files)
}

fn pretty(schema: Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(&sorted(schema))? + "\n")
}

/// Keys in alphabetical order: some dependency may make `serde_json` keep the order of insertion, and the files must not depend on that.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// The lines between the common beginning and the common end.
fn difference(current: &str, wanted: &str) -> String {
    const SHOWN: usize = 20;
    let (old, new): (Vec<&str>, Vec<&str>) = (current.lines().collect(), wanted.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let block = |sign: &str, lines: &[&str]| {
        let mut shown: Vec<String> = lines.iter().take(SHOWN).map(|l| format!("  {sign} {l}")).collect();
        if lines.len() > SHOWN {
            shown.push(format!("  {sign} … {} more lines", lines.len() - SHOWN));
        }
        shown
    };
    let mut out = vec![format!("  @ line {}", head + 1)];
    out.extend(block("-", &old[head..old.len() - tail]));
    out.extend(block("+", &new[head..new.len() - tail]));
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_fresh() {
        for (name, content) in artefacts().unwrap() {
            let current = fs::read_to_string(path(&name)).unwrap_or_default();
            assert!(current == content, "{name} is stale, run `cargo xtask generate`:\n{}", difference(&current, &content));
        }
    }

    #[test]
    fn a_difference_shows_only_what_changed() {
        assert_eq!(difference("a\nb\nc\n", "a\nB\nc\n"), "  @ line 2\n  - b\n  + B");
        assert_eq!(difference("a\na\n", "a\na\na\n"), "  @ line 3\n  + a");
        assert_eq!(difference("", "a\n"), "  @ line 1\n  + a");
    }
}
