//! Every page of the documentation is true: its commands and flags exist, its settings are read, its samples are what the program prints, and its links lead
//! somewhere. `readme.rs` runs what the first two pages say, from the top to the bottom.

mod samples;
mod workflows;

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::{
    common::{Bed, RALPH},
    help::HIDDEN,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The pages, by their paths from the top of the checkout.
fn pages() -> Vec<String> {
    let docs = fs::read_dir(Path::new(ROOT).join("docs")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let docs = docs.filter(|name| Path::new(name).extension().is_some_and(|end| end == "md")).map(|name| format!("docs/{name}"));
    let all: Vec<String> = ["README.md", "CONTRIBUTING.md"].map(str::to_owned).into_iter().chain(docs).collect();
    assert!(all.len() > 15, "{all:?}");
    all
}

fn text_of(page: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(page)).unwrap()
}

/// What stands between fences, with the word behind the first one.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text_of(page).lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(_)) => all.extend(open.take()),
            (None, Some((_, text))) => text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block has no end");
    all
}

/// The blocks of one kind in all pages, with the page.
fn blocks_of(kind: &str) -> Vec<(String, String)> {
    let of_page = |page: String| blocks(&page).into_iter().filter(|(of, _)| of == kind).map(move |(_, text)| (page.clone(), text));
    pages().into_iter().flat_map(of_page).collect()
}

/// Text without its blocks.
fn prose(page: &str) -> String {
    text_of(page).split("\n```").step_by(2).collect()
}

/// Everything in a page that begins with this word and can be typed: lines of blocks, after a prompt or a YAML key, and words in backticks.
fn typed(page: &str, word: &str) -> Vec<String> {
    let in_blocks = blocks(page).into_iter().flat_map(|(_, text)| text.lines().map(str::to_owned).collect::<Vec<_>>());
    let line =
        |line: String| ["$ ", "- run: "].iter().find_map(|mark| line.trim_start().strip_prefix(mark)).unwrap_or(&line).trim().to_owned();
    let prose = prose(page);
    let in_words = prose.split('`').skip(1).step_by(2).map(|text| text.replace("\\|", "|"));
    in_blocks.map(line).chain(in_words).filter(|line| line.starts_with(word)).collect()
}

/// A command with something in each place that the page leaves open, and without what the shell does with its output.
fn filled(command: &str) -> String {
    let alone = [" #", " && ", " | "].iter().fold(command, |line, end| line.split(end).next().unwrap_or_default());
    let value = |word: &str| match word {
        "N" => "3".to_owned(),
        "X" => "5".to_owned(),
        "…" | "\"…\"" => String::new(),
        "NAME" => "codex".to_owned(),
        "acp:NAME" => "acp:gemini".to_owned(),
        "'CMD'" => "'true'".to_owned(),
        _ => word.to_owned(),
    };
    alone.split(' ').map(|word| value(word.trim_matches(['[', ']']))).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// What the program says of a command that is only looked at.
fn understood(bed: &Bed, command: &str) -> Result<(), String> {
    let bin = Path::new(RALPH).parent().unwrap();
    let out =
        bed.run("/bin/sh").args(["-c", &format!("{command} --help")]).env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output();
    // A page may speak of an option without a value.
    let is_open = out.code == Some(2) && out.stderr.contains("a value is required for");
    let is_understood = out.code == Some(0) && (out.stdout.contains("Usage:") || command.starts_with("ralph hook"));
    if is_open || is_understood { Ok(()) } else { Err(format!("{command}: {:?} {}{}", out.code, out.stdout, out.stderr)) }
}

#[test]
fn u10_every_command_of_every_page_is_understood() {
    let bed = Bed::new();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for page in pages() {
        // The fleet's commands are another program's.
        for command in typed(&page, "ralph ").into_iter().filter(|line| !line.starts_with("ralph fleet")) {
            let command = filled(&command);
            if seen.insert(command.clone())
                && let Err(why) = understood(&bed, &command)
            {
                wrong.push(format!("{page}: {why}"));
            }
        }
    }
    assert!(seen.len() > 80, "{seen:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(understood(&bed, "ralph run --usdd 3").is_err() && understood(&bed, "ralph starrt").is_err(), "a mistake is seen");
}

/// Pages name commands by the names that people see. (The table of what agents may do has all names.)
#[test]
fn u10_no_page_uses_a_hidden_name() {
    for page in pages().iter().filter(|page| *page != "docs/SECURITY.md") {
        for command in typed(page, "ralph ") {
            let name = command.split(' ').nth(1).unwrap_or_default();
            assert!(!HIDDEN.contains(&name), "{page}: {command}");
        }
    }
}

/// What is typed in Claude Code starts a loop, and no flag ends up in its prompt. (Presets need a pull request's branch: `pull_requests.rs`.)
#[test]
fn u10_every_slash_command_with_a_task_starts_a_loop() {
    let mut count = 0;
    for page in pages() {
        for line in
            typed(&page, "/ralph-loop ").into_iter().filter(|line| ![" TASK", "--help", "--preset"].iter().any(|word| line.contains(word)))
        {
            let bed = Bed::in_git();
            bed.typed(&line).send();
            let prompt = bed.status()["prompt"].as_str().unwrap_or_default().to_owned();
            assert!(!prompt.is_empty() && !prompt.contains("--"), "{page}: {line}: {prompt}");
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn u10_every_settings_block_is_read() {
    let all = blocks_of("toml");
    assert!(all.len() > 15, "{}", all.len());
    for (page, text) in all {
        ralph_core::config::Config::parse(text.as_bytes()).unwrap_or_else(|problem| panic!("{page}: {problem}\n{text}"));
    }
    for (page, text) in blocks_of("yaml") {
        let documents = text.split("\n---\n");
        let read = |text| yaml_serde::from_str(text).unwrap_or_else(|problem| panic!("{page}: {problem}\n{text}"));
        let values: Vec<Value> = documents.map(read).collect();
        if let [value] = &*values
            && value.get("verify").is_some()
        {
            let commands = ralph_core::config::worktree_commands(text.as_bytes()).unwrap_or_else(|problem| panic!("{page}: {problem}"));
            assert_eq!(commands.len(), value["verify"].as_array().unwrap().len(), "{page}");
        }
    }
    for (page, text) in blocks_of("json") {
        serde_json::from_str::<Value>(&text).unwrap_or_else(|problem| panic!("{page}: {problem}\n{text}"));
    }
}

/// The entries that the contract shows are those that `ralph init` writes.
#[test]
fn u10_the_registration_of_the_contract_is_the_real_one() {
    let (_, shown) = blocks_of("json").into_iter().find(|(page, _)| page == "docs/hook-contract.md").unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let bed = Bed::new();
    let bin = Path::new(RALPH).parent().unwrap();
    let out = bed.run(RALPH).args(["init"]).env("PATH", format!("{}:/usr/bin:/bin", bin.display())).output();
    assert_eq!(out.code, Some(0), "{out:?}");
    let written: Value = serde_json::from_str(&fs::read_to_string(bed.home().join(".claude/settings.json")).unwrap()).unwrap();
    let entries = |of: &Value| -> Vec<Value> {
        let groups = of["hooks"]["Stop"].as_array().unwrap();
        groups.iter().flat_map(|group| group["hooks"].as_array().unwrap().clone()).collect()
    };
    assert_eq!(entries(&shown).len(), entries(&written).len());
    for (shown, written) in entries(&shown).iter().zip(entries(&written)) {
        for (field, value) in shown.as_object().unwrap() {
            assert_eq!(&written[field], value, "{field}");
        }
    }
}

/// The name by which a heading is linked to: lower case, no signs, lines for blanks.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn u10_links_lead_somewhere() {
    let mut count = 0;
    for page in pages() {
        let folder = Path::new(ROOT).join(&page).parent().unwrap().to_owned();
        let text = prose(&page);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|link| !link.starts_with("http"));
        for link in links.filter(|link| !link.contains(char::is_whitespace)) {
            count += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { Path::new(ROOT).join(&page) } else { folder.join(file) };
            assert!(target.exists(), "{page}: {link}");
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let is_there = text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
                assert!(is_there, "{page}: {link}: no such heading");
            }
        }
    }
    assert!(count > 60, "{count}");
}
