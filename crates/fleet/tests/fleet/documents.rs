//! What the documents say to type: every command and option exists, and what is a file is valid.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::bed::Bed;

const PAGES: [&str; 5] = ["README.md", "docs/fleet.md", "docs/fleet-server.md", "docs/fleet-deploy.md", "docs/fleet-security.md"];

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

/// The blocks of a page in one language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    page.split(&start).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// All command lines of `ralph fleet` in a page, as words; options of what stands around are not theirs.
fn command_lines(page: &str) -> Vec<Vec<String>> {
    let flat = page.replace("\", \"", " ").replace(['[', ']'], " ");
    let ends = |c: char| "`|><&;)".contains(c) || c == '\n';
    let lines = flat.match_indices("ralph fleet ").filter(|(at, _)| flat[..*at].chars().next_back().is_none_or(|c| !c.is_alphanumeric()));
    lines.map(|(at, _)| flat[at..].split(ends).next().unwrap().split('#').next().unwrap()).map(words).collect()
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().skip(2).map(|word| word.trim_matches(['"', ',', '.', ':', '\'', '…']).to_owned()).collect()
}

#[test]
fn f8_every_command_and_option_of_the_documents_exists() {
    let bed = Bed::new(&[("x", "")], "");
    let (code, said) = bed.fleet(&["described"]);
    assert_eq!(code, 0, "{said}");
    let told: Value = serde_json::from_str(&said).unwrap();
    let longs = |of: &Value| -> Vec<String> {
        of["args"].as_array().unwrap().iter().filter_map(|arg| arg["long"].as_str()).map(|long| format!("--{long}")).collect()
    };
    let global = longs(&told);
    let mut seen = 0;
    for name in PAGES {
        for line in command_lines(&page(name)) {
            let named = line.iter().find_map(|word| told["commands"].as_array().unwrap().iter().find(|command| command["name"] == **word));
            let own = named.map(&longs).unwrap_or_default();
            for option in line.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap();
                assert!(global.contains(&option.to_owned()) || own.contains(&option.to_owned()), "{name}: {option} in {line:?}");
                seen += 1;
            }
            let first = line.iter().find(|word| word.chars().all(|c| c.is_ascii_lowercase()) && !word.is_empty());
            let is_prose = line.is_empty() || first.is_none() || !line.iter().any(|word| word.starts_with("--"));
            assert!(is_prose || named.is_some(), "{name}: no command in {line:?}");
        }
    }
    assert!(seen > 25, "only {seen} options were found");
}

#[test]
fn f8_the_units_of_the_page_are_valid() {
    let units = blocks(&page("docs/fleet-deploy.md"), "ini");
    assert_eq!(units.len(), 2);
    let folder = tempfile::tempdir().unwrap();
    for (unit, n) in units.iter().zip(1..) {
        for section in ["[Unit]", "[Service]", "[Install]"] {
            assert!(unit.lines().any(|line| line == section), "{section}: {unit}");
        }
        let is_fine = |line: &str| {
            line.is_empty()
                || line.starts_with(['#', '['])
                || line.split_once('=').is_some_and(|(key, _)| key.chars().all(char::is_alphanumeric))
        };
        assert!(unit.lines().all(is_fine), "{unit}");
        // systemd looks whether the program is there.
        let file = folder.path().join(format!("ralph-{n}.service"));
        fs::write(&file, unit.replace("%h/.local/bin/ralph", "/bin/true")).unwrap();
        let verified = Command::new("systemd-analyze").args(["--user", "verify"]).arg(&file).env("XDG_RUNTIME_DIR", folder.path()).output();
        let Ok(verified) = verified else {
            ralph_testkit::Skip("systemd-analyze is not installed".to_owned()).tell();
            continue;
        };
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && !said.contains(".service"), "{said}");
    }
}

#[test]
fn f8_the_manifests_and_the_workflow_of_the_page_are_valid() {
    let files = blocks(&page("docs/fleet-deploy.md"), "yaml");
    let [cluster, workflow] = &files[..] else { panic!("{} files", files.len()) };
    let parsed: Vec<Value> = cluster.split("\n---\n").map(|part| yaml_serde::from_str(part).unwrap()).collect();
    assert_eq!((parsed[0]["kind"].as_str(), parsed[1]["kind"].as_str()), (Some("Job"), Some("Deployment")));
    for resource in &parsed {
        let pod = &resource["spec"]["template"]["spec"];
        let volumes: Vec<&str> = pod["volumes"].as_array().unwrap().iter().filter_map(|volume| volume["name"].as_str()).collect();
        assert!(pod["terminationGracePeriodSeconds"].as_u64() >= Some(600), "an iteration takes its time");
        for container in pod["containers"].as_array().unwrap() {
            for mount in container["volumeMounts"].as_array().unwrap() {
                assert!(volumes.contains(&mount["name"].as_str().unwrap()), "{mount}");
            }
        }
    }
    let rule = &parsed[0]["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"];
    assert_eq!(rule["values"], serde_json::json!([2, 10, 12]));
    assert_eq!(rule["containerName"], parsed[0]["spec"]["template"]["spec"]["containers"][0]["name"]);
    let workflow: Value = yaml_serde::from_str(workflow).unwrap();
    for step in workflow["jobs"]["fleet"]["steps"].as_array().unwrap().iter().filter_map(|step| step["run"].as_str()) {
        let parsed = Command::new("bash").args(["-n", "-c", step]).output().unwrap();
        assert!(parsed.status.success(), "{step}: {}", String::from_utf8_lossy(&parsed.stderr));
    }
}
