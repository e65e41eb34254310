//! `ralph uninstall` after the user, another program or time has changed something.

use std::{fs, os::unix::fs::symlink, path::Path};

use super::{
    CAP, USUAL, bed_with, everything, has_lines_of, in_order, is_not_registered, others,
    places::install_plugin,
    put, ralph_with,
    safety::is_refused,
    says, settings,
    shapes::{on_lines, others_shapes},
    text_of,
};
use crate::common::{Bed, RALPH, run};

/// Edits between the two stay, whatever they are.
#[test]
fn s1_1_edits_in_between_stay() {
    let text = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n    ]\n  }\n}\n";
    let hook = "\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"new\"}]},";
    for (at, add) in [
        ("{", "\n  \"added\": true,"),
        ("{", "\n  // a comment"),
        ("\"opus\",", " // a comment"),
        ("\"hooks\": {", "\n    // a comment"),
        ("\"hooks\": {", "\n    \"PreToolUse\": [],"),
        ("\"Stop\": [", hook),
        ("\"Stop\": [", "\n      // a comment"),
        ("\"SessionStart\": [", hook),
    ] {
        let bed = bed_with("--user", text);
        let path = settings(&bed, "--user");
        bed.ralph_ok(&["init"]);
        put(&path, text_of(&path).replacen(at, &format!("{at}{add}"), 1));
        bed.ralph_ok(&["init"]);
        bed.ralph_ok(&["uninstall"]);
        let left = text_of(&path);
        is_not_registered(&left);
        if text.contains(at) {
            assert_eq!(left, text.replacen(at, &format!("{at}{add}"), 1));
        } else {
            assert_eq!(says(&left)["hooks"]["SessionStart"][0]["hooks"][0]["command"], "new", "{left}");
            has_lines_of(&left, text);
        }
        assert!(!bed.home().join(".local/state/ralph").exists(), "no record is left");
    }
}

/// Another program printed the whole file anew.
#[test]
fn s1_1_a_file_that_was_printed_anew_loses_ralphs_entries_only() {
    for text in on_lines().iter().take(8).chain(&others_shapes()) {
        for cap in [&["init"][..], &["init", "--block-cap", "0"]] {
            let bed = bed_with("--user", text);
            let path = settings(&bed, "--user");
            bed.ralph_ok(cap);
            put(&path, serde_json::to_string_pretty(&says(&text_of(&path))).unwrap());
            bed.ralph_ok(&["uninstall"]);
            let left = text_of(&path);
            is_not_registered(&left);
            let bare = |text: &str| {
                let mut value = others(text);
                if value["env"].as_object().is_none_or(serde_json::Map::is_empty) {
                    value.as_object_mut().unwrap().remove("env");
                }
                value
            };
            assert_eq!(bare(&left), bare(text), "{text}");
        }
    }
}

/// A cap that the user chose since is theirs; one that is still ralph's goes back.
#[test]
fn s1_1_the_cap_after_an_edit() {
    let text = format!("{{\n  \"env\": {{\n    \"{CAP}\": \"20\"\n  }}\n}}\n");
    for (set, left) in [("0", "20"), ("5", "5")] {
        let bed = bed_with("--local", &text);
        let path = settings(&bed, "--local");
        bed.ralph_ok(&["init", "--local", "--block-cap", "0"]);
        put(&path, text_of(&path).replacen("\"0\"", &format!("\"{set}\""), 1).replacen('{', "{\n  \"added\": 1,", 1));
        bed.ralph_ok(&["uninstall", "--local"]);
        assert_eq!(text_of(&path), text.replace("20", left).replacen('{', "{\n  \"added\": 1,", 1));
    }
}

/// A file that ralph made and the user wrote into is the user's.
#[test]
fn s1_1_a_file_that_ralph_made_stays_when_the_user_wrote_into_it() {
    let bed = Bed::new();
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    put(&path, text_of(&path).replacen('{', "{\n  \"model\": \"opus\",", 1));
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&path), "{\n  \"model\": \"opus\"\n}\n");
    assert!(!path.with_file_name("commands").exists());
}

/// Without the record of what was.
#[test]
fn s1_1_uninstall_without_the_state_folder() {
    for text in on_lines() {
        let bed = bed_with("--user", &text);
        let before = everything(&bed);
        bed.ralph_ok(&["init"]);
        fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(everything(&bed), before, "{text}");
    }
    for text in others_shapes() {
        let bed = bed_with("--user", &text);
        bed.ralph_ok(&["init"]);
        fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
        bed.ralph_ok(&["uninstall"]);
        let left = text_of(&settings(&bed, "--user"));
        is_not_registered(&left);
        assert_eq!(others(&left), others(&text));
    }
}

/// A record that is damaged is as good as none.
#[test]
fn s1_1_a_damaged_record_does_no_harm() {
    for damage in ["", "{", "{\"path\": \"/else/where\", \"before\": \"EVIL\", \"after\": \"\"}"] {
        let bed = bed_with("--user", USUAL);
        bed.ralph_ok(&["init"]);
        for record in fs::read_dir(bed.home().join(".local/state/ralph/setup")).unwrap() {
            fs::write(record.unwrap().path(), damage).unwrap();
        }
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(text_of(&settings(&bed, "--user")), USUAL);
    }
}

#[test]
fn s1_1_uninstall_of_one_scope_leaves_the_commands_that_the_other_needs() {
    let bed = Bed::new();
    bed.ralph_ok(&["init", "--project"]);
    let before = everything(&bed);
    bed.ralph_ok(&["uninstall", "--local"]);
    assert_eq!(everything(&bed), before);
}

#[test]
fn s1_1_a_comment_beside_ralphs_entry_stays() {
    let bed = bed_with("--user", USUAL);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    put(&path, text_of(&path).replacen("\"Stop\": [", "\"Stop\": [\n      // my own words", 1));
    bed.ralph_ok(&["uninstall"]);
    let left = text_of(&path);
    is_not_registered(&left);
    assert!(left.contains("// my own words"), "{left}");
}

#[test]
fn s1_1_a_comment_in_an_empty_list_stays() {
    let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      // nothing yet\n    ]\n  }\n}\n";
    let bed = bed_with("--user", text);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    put(&path, text_of(&path).replacen('{', "{\n  \"added\": 1,", 1));
    bed.ralph_ok(&["uninstall"]);
    assert!(text_of(&path).contains("// nothing yet"), "{}", text_of(&path));
}

#[test]
fn s1_1_an_empty_list_of_the_users_stays() {
    let mine = r#"{"hooks": [{"type": "command", "command": "mine"}]}"#;
    let text = format!("{{\n  \"hooks\": {{\n    \"Stop\": [\n      {mine}\n    ],\n    \"PreToolUse\": []\n  }}\n}}\n");
    let bed = bed_with("--user", &text);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    fs::remove_dir_all(bed.home().join(".local/state/ralph")).unwrap();
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&path), text);
}

#[test]
fn s1_1_blank_lines_stay() {
    let text = "{\n\n  \"a\": 1,\n\n  \"b\": 2\n\n}\n";
    let bed = bed_with("--user", text);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init"]);
    assert!(in_order(text.bytes(), text_of(&path).bytes()), "{}", text_of(&path));
    put(&path, text_of(&path).replacen("\"a\": 1", "\"a\": 3", 1));
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&path), text.replacen("\"a\": 1", "\"a\": 3", 1));
}

#[test]
fn s1_1_a_cap_that_is_a_number_goes_back_after_an_edit() {
    let text = format!("{{\n  \"env\": {{\n    \"A\": \"1\",\n    \"{CAP}\": 20\n  }}\n}}\n");
    let bed = bed_with("--user", &text);
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init", "--block-cap", "0"]);
    put(&path, text_of(&path).replacen('{', "{\n  \"added\": 1,", 1));
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(says(&text_of(&path))["env"][CAP], 20, "{}", text_of(&path));
}

#[test]
fn s1_1_folders_that_were_there_stay() {
    for case in ["commands", "config", "behind a link"] {
        let bed = Bed::new();
        let path = settings(&bed, "--user");
        match case {
            "commands" => {
                put(&path, USUAL);
                fs::create_dir_all(path.with_file_name("commands")).unwrap();
            }
            "config" => fs::create_dir_all(path.parent().unwrap()).unwrap(),
            _ => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::create_dir_all(bed.home().join("dotfiles")).unwrap();
                symlink("../dotfiles/claude.json", &path).unwrap();
            }
        }
        let before = everything(&bed);
        bed.ralph_ok(&["init"]);
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(everything(&bed), before, "{case}");
    }
}

#[test]
fn s1_1_a_folder_that_was_made_for_the_commands_goes_with_them() {
    let bed = Bed::new();
    install_plugin(&bed, 2, "--user", true);
    let before = everything(&bed);
    bed.ralph_ok(&["init", "--local"]);
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(everything(&bed), before);
}

#[test]
fn s1_1_no_record_outlives_uninstall() {
    for by_hand in [false, true] {
        let bed = bed_with("--user", USUAL);
        bed.ralph_ok(&["init"]);
        fs::remove_dir_all(bed.home().join(".claude")).unwrap();
        if by_hand {
            put(&settings(&bed, "--user"), USUAL);
        }
        bed.ralph_ok(&["uninstall"]);
        assert!(!bed.home().join(".local/state/ralph").exists(), "put back by hand: {by_hand}");
    }
}

#[test]
fn s1_1_uninstall_does_not_pass_over_settings_that_it_cannot_read() {
    let bed = Bed::new();
    bed.ralph_ok(&["init"]);
    let path = settings(&bed, "--user");
    put(&path, [text_of(&path).as_bytes(), b"// \xff\n"].concat());
    is_refused(&bed, &["uninstall"], &path, "not UTF-8");
}

#[test]
fn s1_1_the_way_back_is_known_by_whatever_path() {
    let text = "{\"model\":\"opus\"}";
    let bed = bed_with("--project", text);
    symlink(bed.dir(), bed.home().join("link")).unwrap();
    bed.ralph_ok(&["init", "--project", "-C", bed.home().join("link").to_str().unwrap()]);
    bed.ralph_ok(&["uninstall", "--project"]);
    assert_eq!(bed.read(".claude/settings.json"), text);
    put(&bed.path("config/settings.json"), text);
    assert_eq!(ralph_with(&bed, &[("CLAUDE_CONFIG_DIR", Path::new("config"))], &["init"]).code, Some(0));
    assert_eq!(ralph_with(&bed, &[("CLAUDE_CONFIG_DIR", &bed.path("config"))], &["uninstall"]).code, Some(0));
    assert_eq!(bed.read("config/settings.json"), text);
}

/// What was empty and the user's stays, though ralph's entries stood in it; and a file that holds nothing but the user's words is theirs.
#[test]
fn s1_1_what_was_empty_before_stays_after_an_edit() {
    for text in [
        "{\n  \"a\": 1,\n  \"hooks\": {}\n}\n",
        "{\n  \"a\": 1,\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
        "{\n  \"a\": 1,\n  \"env\": {}\n}\n",
    ] {
        let bed = bed_with("--user", text);
        let path = settings(&bed, "--user");
        bed.ralph_ok(&["init", "--block-cap", "0"]);
        put(&path, text_of(&path).replacen("\"a\": 1", "\"a\": 2", 1));
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(says(&text_of(&path)), says(&text.replacen("\"a\": 1", "\"a\": 2", 1)));
    }
    let bed = Bed::new();
    bed.ralph_ok(&["init"]);
    put(&settings(&bed, "--user"), "{\n  // my notes\n}\n");
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(text_of(&settings(&bed, "--user")), "{\n  // my notes\n}\n");
}

/// The home folder by another name is the home folder.
#[test]
fn s1_1_a_home_that_is_a_link_is_undone_at_once() {
    let bed = Bed::new();
    let link = bed.dir().join("home-link");
    std::os::unix::fs::symlink(bed.home(), &link).unwrap();
    for command in ["init", "uninstall"] {
        let mut ralph = bed.command(RALPH);
        let out = run(ralph.arg(command).env("HOME", &link).current_dir(bed.home()), b"");
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{command}: {}", out.stdout);
    }
    assert!(!settings(&bed, "--user").exists());
    for command in ["init", "uninstall"] {
        let out = run(bed.command(RALPH).args([command, "--project"]).current_dir(bed.home()), b"");
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{command}: {}", out.stdout);
    }
    assert!(!settings(&bed, "--user").exists());
}
