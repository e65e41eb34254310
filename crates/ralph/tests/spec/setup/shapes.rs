//! Settings files of every shape: the hooks get in, every other byte stays, and the way back leads to the byte.

use std::fs;

use ralph_testkit::nightly;
use serde_json::{Value, json};

use super::{
    CAP, SCOPES, USUAL, answering, bed_with, everything, has_lines_of, is_not_registered, is_registered, others, ours, put, says, settings,
    text_of, there_and_back,
};
use crate::common::{Bed, RALPH};

/// Files with line breaks in them. Ralph's lines come out again even when nothing is known of the file as it was.
pub(super) fn on_lines() -> Vec<String> {
    let others = r#"{"hooks": [{"type": "command", "command": "notify-send done"}]}"#;
    vec![
        USUAL.to_owned(),
        "{\n    \"model\": \"opus\",\n    \"permissions\": {\n        \"allow\": [\"Bash(ls:*)\"]\n    }\n}\n".to_owned(),
        "{\n\t\"model\": \"opus\"\n}\n".to_owned(),
        "{\r\n  \"model\": \"opus\",\r\n  \"env\": {\r\n    \"A\": \"1\"\r\n  }\r\n}\r\n".to_owned(),
        "\u{feff}{\n  \"model\": \"opus\"\n}\n".to_owned(),
        "{\n  \"model\": \"opus\"\n}".to_owned(),
        "\n\n{\n  \"model\"  :  \"opus\"  ,\n\n\n  \"x\":1\n}\n\n\n".to_owned(),
        "{\n  \"model\": \"opus\",\n  \"list\": [1, 2,],\n}\n".to_owned(),
        "// header\n/* and\n   more */\n{\n  // first\n  \"a\": 1, // one\n  /* between */\n  \"b\": [ // list\n    1, // one\n    2 /* last */\n    // end of list\n  ], // after\n  \"c\": {/* in */} // last\n  // end\n}\n// footer\n/* the end */".to_owned(),
        "{\n  // \"hooks\": {\"Stop\": []},\n  \"a\": \"// no comment /* nor this */\" // \"yes\"\n}\n".to_owned(),
        format!("{{\n  \"hooks\": {{\n    \"Stop\": [\n      {others}\n    ]\n  }}\n}}\n"),
        format!("{{\n  \"hooks\": {{\n    \"Stop\": [\n      {others}, // mine\n      {others}\n      // end\n    ],\n    // tools\n    \"PreToolUse\": [\n      {{\n        \"matcher\": \"Bash\",\n        \"hooks\": [{{\"type\": \"command\", \"command\": \"./check.sh\", \"timeout\": 5}}]\n      }}\n    ]\n  }},\n  \"z\": null\n}}\n"),
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"Is it done?\"}, {\"type\": \"command\", \"command\": \"ralphy hook\"}]}\n    ]\n  }\n}\n".to_owned(),
        format!("{{\n  \"env\": {{\n    \"{CAP}\": \"20\"\n  }}\n}}\n"),
        "{\n  \"grüße\": \"日本語 🎉 \\u00e9\\ud83d\\ude00 \\\"quoted\\\" \\\\ \\/ \\t\",\n  \"\": \"\\u0000\"\n}\n".to_owned(),
        format!("{{\n  \"deep\": {}1{}\n}}\n", "[".repeat(60), "]".repeat(60)),
        "{\n  \"a\": 1,\n  \"a\": 2,\n  \"b\": {\"c\": 1, \"c\": 2}\n}\n".to_owned(),
        "{\n  \"n\": [0, -0, 1E+2, 1e-400, 0.1e1, -1.50, 12345678901234567890123456789]\n}\n".to_owned(),
        format!("{{\n  \"permissions\": {{\n    \"allow\": [\n{}      \"Bash(last)\"\n    ]\n  }}\n}}\n", "      \"Bash(npm run test:*)\", // why\n".repeat(5_000)),
    ]
}

/// Files whose shape is known only from how they were.
pub(super) fn others_shapes() -> Vec<String> {
    let mut shapes: Vec<String> = [
        "",
        " ",
        "\n",
        " \r\n\t\n",
        "\u{feff}",
        "// only a comment",
        "/* only a comment */\n",
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "{ // nothing\n}",
        "{/* nothing */}",
        "{\"model\":\"opus\"}",
        "{\"model\":\"opus\",}",
        "{ \"model\": \"opus\" /* mine */ }\n",
        "{\"a\":1, /* last */}",
        "{\"a\":1}// end",
        "{\"hooks\":{}}",
        "{\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
        "{\"hooks\":{\"Stop\":[],},}",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      // nothing yet\n    ]\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": [{\"matcher\": \"\"}, {\"hooks\": []}]\n  }\n}\n",
        "{\"\\u0068ooks\":{\"St\\u006fp\":[]}}",
        "{\"env\":{}}",
        "{\n  \"env\": {\n    // nothing\n  }\n}\n",
        "{\r\n}\r\n",
    ]
    .iter()
    .map(|s| (*s).to_owned())
    .collect();
    shapes.push(format!("{{\"env\":{{\"A\":\"1\",\"{CAP}\":\"8\"}},\"x\":[1]}}"));
    let mine = r#"{"hooks": [{"type": "command", "command": "mine"}]}"#;
    shapes.push(format!("{{\n  \"hooks\": {{\n    \"SessionEnd\": [{mine}],\n    \"Stop\": [{mine}, {mine}]\n  }}\n}}\n"));
    shapes.push("{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]},]}}".to_owned());
    shapes
}

/// How the file is edited does not depend on where it is: elsewhere than with the user some shapes are enough.
fn shapes_in(scope: &str, some: usize) {
    for text in on_lines().iter().step_by(some) {
        has_lines_of(&there_and_back(&bed_with(scope, text), scope, text, &[]), text);
    }
    for text in others_shapes().iter().step_by(some) {
        there_and_back(&bed_with(scope, text), scope, text, &[]);
    }
    // No file, with and without the folder.
    let bed = Bed::new();
    there_and_back(&bed, scope, "", &[]);
    fs::create_dir_all(settings(&bed, scope).with_file_name("agents")).unwrap();
    there_and_back(&bed, scope, "", &[]);
}

#[test]
fn s1_1_every_shape_of_user_settings_there_and_back() {
    shapes_in("--user", 1);
}

#[test]
fn s1_1_shapes_of_project_settings_there_and_back() {
    shapes_in("--project", nightly::amount(3, 1));
}

#[test]
fn s1_1_shapes_of_local_settings_there_and_back() {
    shapes_in("--local", nightly::amount(4, 1));
}

/// With the cap too, whatever it was before.
#[test]
fn s1_1_the_cap_is_set_and_goes_back_to_what_it_was() {
    for text in on_lines().iter().take(16).chain(&others_shapes()) {
        let bed = bed_with("--user", text);
        there_and_back(&bed, "--user", text, &["--block-cap", "0"]);
        bed.ralph_ok(&["init", "--block-cap", "0"]);
        assert_eq!(says(&text_of(&settings(&bed, "--user")))["env"][CAP], "0", "{text}");
        // Another value, then none: the hooks stay as they are, and the way back is still known.
        bed.ralph_ok(&["init", "--block-cap", "30"]);
        assert_eq!(says(&text_of(&settings(&bed, "--user")))["env"][CAP], "30", "{text}");
        bed.ralph_ok(&["init"]);
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(&text_of(&settings(&bed, "--user")), text);
    }
}

/// What is new looks like what is there.
#[test]
fn s1_1_new_lines_take_up_the_style_of_the_file() {
    for (text, indent, end) in [
        ("{\n  \"a\": 1\n}\n", "  ", "\n"),
        ("{\n    \"a\": 1\n}\n", "    ", "\n"),
        ("{\n\t\"a\": 1\n}\n", "\t", "\n"),
        ("{\r\n  \"a\": 1\r\n}\r\n", "  ", "\r\n"),
    ] {
        let bed = bed_with("--user", text);
        bed.ralph_ok(&["init"]);
        let new = text_of(&settings(&bed, "--user"));
        assert!(new.contains(&format!("{end}{indent}\"hooks\": {{{end}{indent}{indent}\"Stop\": [{end}")), "{new:?}");
        assert_eq!(new.matches('\n').count(), new.matches(end).count(), "{new:?}");
    }
}

/// An entry that was written by hand is brought up to date where it stands, keeps its timeout, and goes with the rest.
#[test]
fn s1_1_an_entry_by_hand_is_brought_up_to_date_and_goes_with_the_rest() {
    for by_hand in [
        r#"{"type": "command", "command": "ralph hook"}"#,
        r#"{"type": "command", "command": "/old/place/ralph hook claude", "timeout": 7}"#,
        r#"{"command": "ralph", "timeout": 7, "type": "command"}"#,
        r#"{"type": "command", "command": "ralph", "args": ["hook", "claude"], "timeout": 60}"#,
        r#"{"type": "command", "command": "ralph", "args": ["hook", "claude", "--timeout", "30"], "timeout": 900}"#,
        r#"{"type": "command", "command": "/old/ralph", "args": ["hook"], "statusMessage": "mine"}"#,
    ] {
        let text = format!(
            "{{\n  \"hooks\": {{\n    \"Stop\": [\n      {{\"hooks\": [{{\"type\": \"command\", \"command\": \"mine\"}}, {by_hand}]}}\n    ]\n  }}\n}}\n"
        );
        let bed = bed_with("--user", &text);
        bed.ralph_ok(&["init"]);
        let new = says(&text_of(&settings(&bed, "--user")));
        let entries = answering(&new, "Stop");
        let old: Value = serde_json::from_str(by_hand).unwrap();
        // Sixty seconds are what an older ralph wrote, and not what a person chose.
        let limit = old.get("timeout").filter(|t| **t != json!(60)).cloned().unwrap_or(json!(3600));
        assert_eq!(entries[0].get("timeout"), Some(&limit), "{new}");
        let args = json!(["hook", "claude", "--timeout", limit.to_string(), "--via", "user"]);
        assert_eq!((entries.len(), &entries[0]["command"], &entries[0]["args"]), (1, &json!(RALPH), &args), "{new}");
        assert_eq!((ours(&new, "Stop").len(), &new["hooks"]["Stop"][1]["hooks"][0]["command"]), (2, &json!("mine")), "{new}");
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(text_of(&settings(&bed, "--user")), text.replace(&format!(", {by_hand}"), ""));
    }
}

/// What the version before wrote has no hook that waits: it gets one, and all of it goes together, with or without a record of what was there.
#[test]
fn s2_5_a_set_up_of_the_version_before_is_brought_up_to_date() {
    for scope in SCOPES {
        for has_record in [true, false] {
            let bed = bed_with(
                scope,
                "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n    ]\n  }\n}\n",
            );
            let before = everything(&bed);
            let program = if scope == "--project" { "ralph" } else { RALPH };
            bed.ralph_ok(&["init", scope]);
            let path = settings(&bed, scope);
            let old = without_waiter(&text_of(&path));
            put(&path, &old);
            if !has_record {
                fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
            }
            let said = bed.ralph_ok(&["init", scope]);
            assert!(said.lines().any(|line| line.starts_with("    +") && line.contains("--wait")), "{said}");
            assert!(!said.lines().any(|line| line.starts_with("    -")), "nothing else changes: {said}");
            let new = text_of(&path);
            is_registered(&new, program);
            has_lines_of(&new, &old);
            bed.ralph_ok(&["uninstall", scope]);
            assert_eq!(everything(&bed), before, "{scope} {has_record}: {new}");
        }
    }
}

/// t13: what an older version wrote does not say where it is registered. `ralph init` changes the arguments where they stand, and nothing else.
#[test]
fn t13_a_registration_without_a_name_gets_one_in_its_place() {
    for scope in SCOPES {
        let bed = bed_with(scope, "{\n  \"model\": \"opus\"\n}\n");
        let before = everything(&bed);
        bed.ralph_ok(&["init", scope]);
        let path = settings(&bed, scope);
        let new = text_of(&path);
        let name = format!(", \"--via\", \"{}\"", scope.trim_start_matches('-'));
        assert_eq!(new.matches(&name).count(), 10, "{new}");
        for has_record in [true, false] {
            put(&path, new.replace(&name, ""));
            if !has_record {
                fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
            }
            bed.ralph_ok(&["init", scope]);
            assert_eq!(text_of(&path), new);
        }
        // And both go, whoever wrote them.
        put(&path, new.replacen(&name, "", 4));
        bed.ralph_ok(&["uninstall", scope]);
        is_not_registered(&text_of(&path));
        assert_eq!(everything(&bed), before);
    }
}

/// A settings file as `ralph init` writes it, less the groups of the hooks that wait.
fn without_waiter(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(waits) = lines.iter().position(|line| line.contains("\"--wait\"")) else { return text.to_owned() };
    // A group begins and ends with a brace that is six blanks in.
    let is_group = |line: &&str| line.trim_start().len() + 6 == line.len();
    let begin = waits - lines[..waits].iter().rev().position(&is_group).unwrap() - 1;
    let end = waits + lines[waits..].iter().position(is_group).unwrap();
    let left: Vec<&str> = [&lines[..begin], &lines[end + 1..]].concat();
    without_waiter(&format!("{}\n", left.join("\n")))
}

/// An entry of each kind is enough, and no kind is left that runs in the wrong place.
#[test]
fn s2_5_two_hooks_that_wait_become_one() {
    let waiter =
        |more: &str| format!(r#"{{"hooks": [{{"type": "command", "command": "ralph", "args": ["hook", "claude", "--wait"]{more}}}]}}"#);
    let judge = r#"{"hooks": [{"type": "command", "command": "/old/ralph hook", "async": true}]}"#;
    let text = format!(r#"{{"hooks": {{"Stop": [{}, {judge}, {}]}}}}"#, waiter(""), waiter(r#", "asyncRewake": true"#));
    let bed = bed_with("--user", text);
    bed.ralph_ok(&["init"]);
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
}

/// A generator of documents with comments, trailing commas and odd white space in every place that allows them.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn gap(&mut self) -> &'static str {
        ["", "", " ", "\n  ", "\r\n\t", " /* c, } */ ", " // c ]\n", "\n\n"][usize::try_from(self.below(8)).unwrap()]
    }

    /// Items in brackets.
    fn list(&mut self, open: char, close: char, items: &[String]) -> String {
        let mut out = format!("{open}{}", self.gap());
        for (i, item) in items.iter().enumerate() {
            let comma = if i + 1 < items.len() || self.below(3) == 0 { "," } else { "" };
            out.extend([self.gap(), item, self.gap(), comma, self.gap()]);
        }
        format!("{out}{}{close}", self.gap())
    }

    fn field(&mut self, name: &str, value: &str) -> String {
        format!("\"{name}\"{}:{}{value}", self.gap(), self.gap())
    }

    fn value(&mut self, depth: u64) -> String {
        let count = self.below(3);
        match self.below(if depth == 0 { 3 } else { 5 }) {
            0 => "\"a // b \\\" /* \\\\\"".to_owned(),
            1 => "-1.5e3".to_owned(),
            2 => "null".to_owned(),
            3 => {
                let items: Vec<String> = (0..count).map(|_| self.value(depth - 1)).collect();
                self.list('[', ']', &items)
            }
            _ => {
                let fields: Vec<String> = (0..count).map(|i| (i, self.value(depth - 1))).map(|(i, v)| format!("\"k{i}\":{v}")).collect();
                self.list('{', '}', &fields)
            }
        }
    }

    /// Groups of other people's hooks.
    fn hooks(&mut self) -> String {
        let mut events = Vec::new();
        for event in ["Stop", "Notification", "SessionEnd"] {
            let groups: Vec<String> = (0..self.below(3))
                .map(|_| {
                    let entry = self.list('{', '}', &["\"type\":\"command\"".to_owned(), "\"command\":\"mine\"".to_owned()]);
                    let entries = self.list('[', ']', &[entry]);
                    let field = self.field("hooks", &entries);
                    self.list('{', '}', &[field])
                })
                .collect();
            if self.below(2) == 0 {
                let groups = self.list('[', ']', &groups);
                events.push(self.field(event, &groups));
            }
        }
        self.list('{', '}', &events)
    }

    fn document(&mut self) -> String {
        let mut fields = Vec::new();
        for name in ["a", "hooks", "ünï", "z"] {
            if self.below(3) > 0 {
                let value = if name == "hooks" { self.hooks() } else { self.value(3) };
                fields.push(self.field(name, &value));
            }
        }
        format!("{}{}{}", self.gap(), self.list('{', '}', &fields), self.gap())
    }
}

#[test]
fn s1_1_random_documents_there_and_back() {
    for seed in 0..nightly::amount(20, 60) {
        let text = Dice(seed).document();
        let bed = bed_with("--user", &text);
        there_and_back(&bed, "--user", &text, &[]);
        bed.ralph_ok(&["init"]);
        fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
        bed.ralph_ok(&["uninstall"]);
        let left = text_of(&settings(&bed, "--user"));
        is_not_registered(&left);
        assert_eq!(others(&left), others(&text), "{text}\n→\n{left}");
    }
}

#[test]
fn s1_1_two_old_entries_become_one() {
    let text = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ralph hook"}]}, {"hooks": [{"type": "command", "command": "/old/ralph hook"}]}]}}"#;
    let bed = bed_with("--user", text);
    bed.ralph_ok(&["init"]);
    is_registered(&text_of(&settings(&bed, "--user")), RALPH);
}

#[test]
fn s1_1_an_entry_for_some_session_starts_is_no_registration() {
    let text = r#"{"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "ralph hook"}]}]}}"#;
    let bed = bed_with("--user", text);
    bed.ralph_ok(&["init"]);
    let starts = says(&text_of(&settings(&bed, "--user")))["hooks"]["SessionStart"].as_array().unwrap().clone();
    assert!(starts.iter().any(|group| matches!(group["matcher"].as_str(), None | Some("" | "*"))), "{starts:?}");
}
