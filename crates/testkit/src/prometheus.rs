//! Prometheus' own reader of its text format, from its Python library.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
};

use serde_json::Value;

use crate::fetch::{cached, pip};

const READ: &str = r"
import json, sys
from prometheus_client.parser import text_string_to_metric_families as read
out = [[f.name, f.type, s.name, s.labels, s.value] for f in read(sys.stdin.read()) for s in f.samples]
json.dump(out, sys.stdout)
";

/// The samples of a text: name, labels, value; it panics where the reader refuses the text. `None` where neither pip nor the library can be had.
pub fn samples(text: &str) -> Option<Vec<(String, Value, f64)>> {
    static READER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = READER.get_or_init(fetched).as_ref()?;
    let mut python = Command::new("python3");
    python.args(["-c", READ]).env_clear().env("PYTHONPATH", folder).env("PATH", std::env::var_os("PATH")?);
    let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}\n{text}", String::from_utf8_lossy(&out.stderr));
    let all: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    Some(all.iter().map(|s| (s[2].as_str().unwrap().to_owned(), s[3].clone(), s[4].as_f64().unwrap())).collect())
}

fn fetched() -> Option<PathBuf> {
    let found = cached("prometheus_client", "prometheus_client/parser.py", |dir| pip("prometheus_client", dir));
    let required = std::env::var_os("RALPH_REQUIRE_PIP").is_some();
    assert!(!required || found.is_ok(), "RALPH_REQUIRE_PIP is set, but {found:?}");
    match found {
        Ok(parser) => parser.parent()?.parent().map(Into::into),
        Err(skip) => {
            skip.tell();
            None
        }
    }
}
