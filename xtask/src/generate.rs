//! Files that are made from the code: the JSON schemas, the documented template of a loop file, the plugin and its marketplace, and the tables of agents in
//! pages that are otherwise written by hand.

use std::{fs, path::PathBuf};

use ralph_core::{config::Config, journal::Record, loops::Setting, report::Report};
use ralph_engine::{
    hosts::{Host, acp::AcpAgent, claude::plugin},
    run::events::Line,
    view::status::Standing,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;
use similar::TextDiff;

use crate::{Result, Verdict, cargo};

/// Write the generated files: schemas/*.schema.json, docs/ralph-loop.template.md, plugin/, .claude-plugin/, and the tables of agents
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
    let events = serde_json::to_value(schemars::schema_for!(Line<'static>))?;
    let (status, report) = (written::<Standing>()?, written::<Report>()?);
    let mut files = plugin::files(plugin::ON_PATH).map_err(|e| e.to_string())?;
    files.extend([
        ("schemas/loop.schema.json".to_owned(), pretty(Setting::schema())?),
        ("schemas/journal.schema.json".to_owned(), pretty(journal)?),
        ("schemas/run-events.schema.json".to_owned(), pretty(events)?),
        ("schemas/status.schema.json".to_owned(), pretty(status)?),
        ("schemas/report.schema.json".to_owned(), pretty(report)?),
        ("schemas/ralph.schema.json".to_owned(), pretty(Config::schema())?),
        ("docs/ralph-loop.template.md".to_owned(), Setting::template()),
        ("docs/hosts.md".to_owned(), with_part("docs/hosts.md", &Host::table())?),
        ("docs/run.md".to_owned(), with_part("docs/run.md", &AcpAgent::table())?),
        ("README.md".to_owned(), with_part("README.md", &Host::short_table())?),
    ]);
    Ok(files)
}

/// A page that a person writes, with its generated part.
fn with_part(name: &str, part: &str) -> Result<String> {
    const MARKS: (&str, &str) = ("<!-- agents: made by `cargo xtask generate` -->\n", "<!-- end of agents -->\n");
    let page = fs::read_to_string(path(name))?;
    let parts = page.split_once(MARKS.0).and_then(|(before, rest)| Some((before, rest.split_once(MARKS.1)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{name} has no place for its table of agents"))?;
    Ok(format!("{before}{}{part}{}{after}", MARKS.0, MARKS.1))
}

/// What is written, not what could be read.
fn written<T: JsonSchema>() -> Result<Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    Ok(serde_json::to_value(settings.into_generator().into_root_schema_for::<T>())?)
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

/// What would change, as far as one screen shows it.
fn difference(current: &str, wanted: &str) -> String {
    const SHOWN: usize = 40;
    let all = TextDiff::from_lines(current, wanted).unified_diff().context_radius(1).to_string();
    all.lines().take(SHOWN).map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
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
}
