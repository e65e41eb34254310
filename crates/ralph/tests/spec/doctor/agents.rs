//! Other agents than Claude Code: what the doctor finds in their settings. Item 7 of the agents' requirements.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Patient, findings, write};

/// Each agent, the file that registers its hooks, and its name for a stop.
const AGENTS: [(&str, &str, &str); 7] = [
    ("codex", ".codex/hooks.json", "Stop"),
    ("gemini", ".gemini/settings.json", "AfterAgent"),
    ("copilot", ".copilot/hooks/ralph.json", "Stop"),
    ("qwen", ".qwen/settings.json", "Stop"),
    ("droid", ".factory/settings.json", "Stop"),
    ("grok", ".grok/hooks/ralph.json", "Stop"),
    ("opencode", ".config/opencode/plugin/ralph.js", "Stop"),
];

impl Patient {
    /// A sound set-up, with a program of that name on the path.
    fn with_agent(name: &str) -> Self {
        let patient = Self::sound();
        patient.program(name, "#!/bin/sh\n");
        patient
    }

    /// The same, and ralph registered with it.
    fn registered_with(name: &str) -> Self {
        let patient = Self::with_agent(name);
        patient.sh_ok(&format!("ralph init --agent {name}"));
        patient
    }

    fn agents_file(&self, name: &str) -> PathBuf {
        let (_, file, _) = AGENTS.iter().find(|(agent, ..)| *agent == name).unwrap();
        self.bed.home().join(file)
    }

    fn agents_settings(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.agents_file(name)).unwrap()).unwrap()
    }

    /// Changes that file.
    fn edit_agents(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut settings = self.agents_settings(name);
        change(&mut settings);
        write(&self.agents_file(name), &settings.to_string());
    }
}

#[test]
fn h7_an_agent_that_is_here_is_named_and_its_registration_is_tried() {
    for (name, ..) in AGENTS {
        let patient = Patient::with_agent(name);
        patient.mends(
            "agent.registered",
            "note",
            &["is on this machine, and ralph is not registered"],
            &format!("ralph init --agent {name}"),
        );
        let report = patient.report(&[]);
        let answers: Vec<Value> = findings(&report).into_iter().filter(|finding| finding["id"] == "agent.answers").collect();
        assert_eq!((answers.len(), &answers[0]["severity"]), (1, &json!("good")), "{name}: {report:#}");
        let others = findings(&report).into_iter().filter(|finding| finding["id"].as_str().unwrap().starts_with("agent."));
        let bad: Vec<Value> = others.filter(|finding| finding["severity"] != "good" && finding["id"] != "agent.review").collect();
        assert_eq!(bad, Vec::<Value>::new(), "{name}");
    }
    // One that is not here is none of a person's concern.
    let report = Patient::sound().report(&[]);
    assert!(findings(&report).iter().all(|finding| !finding["id"].as_str().unwrap().starts_with("agent.")), "{report:#}");
}

/// Nothing of an agent is changed or left by looking, and the trial is in no loop of the person's.
#[test]
fn h7_looking_at_an_agent_changes_nothing() {
    let patient = Patient::registered_with("gemini");
    let before = patient.snapshot();
    patient.report(&[]);
    assert_eq!(before, patient.snapshot());
}

#[test]
fn h7_a_line_that_does_not_answer_is_an_error() {
    for (name, _, stop) in AGENTS {
        let patient = Patient::registered_with(name);
        let mute = patient.bed.home().join("mute/ralph");
        super::executable(&mute, "#!/bin/sh\ncat >/dev/null\n");
        if name == "opencode" {
            let file = patient.agents_file(name);
            let text = fs::read_to_string(&file).unwrap();
            write(
                &file,
                &text.replacen("const HOOK = [\"", &format!("const HOOK = [\"{}\", \"hook\", \"opencode\", \"", mute.display()), 1),
            );
            patient.mends("agent.answers", "error", &["it said nothing"], "ralph init --agent opencode");
            continue;
        }
        patient.edit_agents(name, |settings| {
            let group = &mut settings["hooks"][stop][0];
            let entry = if group["hooks"].is_array() { &mut group["hooks"][0] } else { group };
            entry["command"] = format!("{} hook {name} --timeout 3600 --via user", mute.display()).into();
        });
        patient.mends("agent.answers", "error", &["it said nothing"], &format!("ralph init --agent {name}"));
    }
}

/// `gemini hooks migrate --from-claude` keeps the program, drops its arguments, and takes seconds for milliseconds.
#[test]
fn h7_entries_that_were_copied_from_claude_code_are_replaced() {
    let patient = Patient::with_agent("gemini");
    let entry = |timeout| json!([{"hooks": [{"type": "command", "command": "ralph", "timeout": timeout}]}]);
    let hooks = json!({"AfterAgent": entry(3_600), "BeforeAgent": entry(60), "SessionStart": entry(60), "Notification": entry(60)});
    let mine = json!([{"hooks": [{"type": "command", "command": "say done", "timeout": 5_000}]}]);
    write(&patient.agents_file("gemini"), &json!({"hooks": hooks, "ui": {"theme": "x"}}).to_string());
    patient.edit_agents("gemini", |settings| settings["hooks"]["AfterModel"] = mine.clone());
    patient.mends("agent.copied", "warning", &["4 entries", "Gemini CLI"], "ralph init --agent gemini");
    let settings = patient.agents_settings("gemini");
    assert!(settings["hooks"].get("Notification").is_none(), "{settings:#}");
    assert_eq!((&settings["hooks"]["AfterModel"], &settings["ui"]["theme"]), (&mine, &json!("x")));
    assert_eq!(settings["hooks"]["AfterAgent"].as_array().unwrap().len(), 1, "{settings:#}");
    patient.is_quiet_about("agent.timeout");
}

#[test]
fn h7_a_limit_in_the_wrong_unit_is_named() {
    let patient = Patient::registered_with("gemini");
    patient.edit_agents("gemini", |settings| settings["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"] = json!(60));
    patient.mends("agent.timeout", "warning", &["BeforeAgent", "only 0.06 s"], "ralph init --agent gemini");
    // The hook is told 3600 s, and cut off after less.
    patient.edit_agents("gemini", |settings| settings["hooks"]["AfterAgent"][0]["hooks"][0]["timeout"] = json!(60_000));
    patient.mends("agent.timeout", "warning", &["AfterAgent", "only 60 s"], "ralph init --agent gemini");
    // Qwen Code takes fewer than 1000 for seconds: the same figure is enough there.
    let patient = Patient::registered_with("qwen");
    patient.edit_agents("qwen", |settings| settings["hooks"]["SessionStart"][0]["hooks"][0]["timeout"] = json!(60));
    patient.is_quiet_about("agent.timeout");
    let patient = Patient::registered_with("copilot");
    patient.edit_agents("copilot", |settings| settings["hooks"]["Stop"][0]["timeoutSec"] = json!(30));
    patient.mends("agent.timeout", "warning", &["Stop", "only 30 s"], "ralph init --agent copilot");
}

#[test]
fn h7_hooks_that_are_switched_off_are_named_with_their_file() {
    let off = [
        ("gemini", ".gemini/settings.json", "hooksConfig.enabled", json!({"hooksConfig": {"enabled": false}})),
        ("gemini", ".gemini/settings.json", "hooksConfig.disabled", json!({"hooksConfig": {"disabled": ["other", "ralph"]}})),
        ("qwen", ".qwen/settings.json", "disableAllHooks", json!({"disableAllHooks": true})),
        ("droid", ".factory/settings.json", "hooks.hooksDisabled", json!({"hooks": {"hooksDisabled": true}})),
    ];
    for (name, file, key, more) in off {
        let patient = Patient::registered_with(name);
        let sound = patient.agents_settings(name);
        // In the person's own settings, and in the project's.
        patient.edit_agents(name, |settings| merge(settings, &more));
        patient.complains("agent.disabled", "error", &[key, &format!("~/{file}")]);
        patient.edit_agents(name, |settings| *settings = sound.clone());
        patient.is_quiet_about("agent.disabled");
        patient.bed.write(file, more.to_string());
        patient.complains("agent.disabled", "error", &[key]);
    }
    let patient = Patient::registered_with("codex");
    write(&patient.bed.home().join(".codex/config.toml"), "[features]\nhooks = false\n");
    patient.complains("agent.disabled", "error", &["features.hooks", "~/.codex/config.toml"]);
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().unwrap() {
        if value.is_object() && into[key].is_object() { merge(&mut into[key], value) } else { into[key] = value.clone() }
    }
}

/// Codex keeps a hash of each hook that its user has reviewed. The doctor reads them, and neither it nor `init` ever writes one.
#[test]
fn h7_hooks_that_wait_for_codexs_review_are_told_until_they_are_reviewed() {
    let patient = Patient::registered_with("codex");
    let config = patient.bed.home().join(".codex/config.toml");
    let asks = patient.complains("agent.review", "warning", &["Codex skips", "Stop, UserPromptSubmit"]);
    assert!(asks["advice"].as_str().unwrap().contains("`codex`"), "{asks}");
    assert!(!config.exists(), "consent is the person's");
    let state = |edited: &str| -> String {
        let hooks = patient.agents_settings("codex");
        let one = |(event, groups): (&String, &Value)| {
            let snake: String =
                event.chars().flat_map(|c| if c.is_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] }).collect();
            let snake = snake.trim_start_matches('_');
            let entry = &groups[0]["hooks"][0];
            let hashed = format!(
                r#"{{"event_name":"{snake}","hooks":[{{"async":false,"command":{},"timeout":{},"type":"command"}}]}}"#,
                entry["command"], entry["timeout"]
            );
            let hash: String = Sha256::digest(hashed)
                .iter()
                .flat_map(|byte| [byte >> 4, byte & 15].map(|n| char::from_digit(n.into(), 16).unwrap()))
                .collect();
            let hash = if event == edited { hash.replace(|c: char| c.is_ascii_digit(), "0") } else { hash };
            format!("[hooks.state.\"{}:{snake}:0:0\"]\ntrusted_hash = \"sha256:{hash}\"\n\n", patient.agents_file("codex").display())
        };
        hooks["hooks"].as_object().unwrap().iter().map(one).collect()
    };
    write(&config, &state("Stop"));
    let what = patient.complains("agent.review", "warning", &["Stop"])["what"].clone();
    assert!(!what.as_str().unwrap().contains("SessionEnd"), "only the one that changed since: {what}");
    write(&config, &state(""));
    patient.is_quiet_about("agent.review");
}

#[test]
fn h7_an_event_without_an_entry_is_named() {
    let patient = Patient::registered_with("grok");
    patient.edit_agents("grok", |settings| drop(settings["hooks"].as_object_mut().unwrap().remove("SessionEnd")));
    patient.mends("agent.events", "warning", &["Grok does not call ralph for SessionEnd"], "ralph init --agent grok");
}

#[test]
fn h7_settings_that_cannot_be_read_are_left_alone_and_named() {
    let patient = Patient::with_agent("qwen");
    write(&patient.agents_file("qwen"), "{ \"hooks\": ");
    let said = patient.complains("agent.settings", "warning", &["~/.qwen/settings.json", "unknown"]);
    assert!(said["advice"].is_string());
    assert_ne!(patient.sh("ralph init --agent qwen").code, Some(0));
    assert_eq!(fs::read_to_string(patient.agents_file("qwen")).unwrap(), "{ \"hooks\": ");
}

/// Words somewhere in a file are no registration.
#[test]
fn h7_only_an_entry_that_calls_ralph_is_a_registration() {
    let patient = Patient::with_agent("codex");
    let others = json!({"Stop": [{"hooks": [{"type": "command", "command": "echo see ralph hook codex --via user"}]}]});
    write(&patient.agents_file("codex"), &json!({"description": "ralph hook codex --via user", "hooks": others}).to_string());
    patient.mends("agent.registered", "note", &["ralph is not registered with it"], "ralph init --agent codex");
    assert_eq!(patient.agents_settings("codex")["hooks"]["Stop"].as_array().unwrap().len(), 2, "the other one stays");
}

/// Who has only another agent is told of no error about Claude Code.
#[test]
fn h7_without_claude_code_another_agent_is_enough() {
    let patient = Patient::new();
    fs::remove_file(patient.bin.join("claude")).unwrap();
    patient.program("qwen", "#!/bin/sh\n");
    patient.sh_ok("ralph init --agent qwen");
    assert_eq!(patient.report(&[])["ok"], true);
    patient.complains("client", "note", &["registered with another agent"]);
    patient.complains("hook.registered", "note", &["which is not on this machine"]);
}
