//! `ralph init --deny-edits` (t7): a deny rule for ralph's own files, and the way back.

use super::{bed_with, says, settings, text_of};

const RULE: &str = "Edit(.ralph/**)";

#[test]
fn t7_a_deny_rule_is_added_when_asked_for_and_given_back() {
    for text in
        ["{}\n", "{\n  \"permissions\": {\n    \"allow\": [\"Bash(ls:*)\"]\n  }\n}\n", "{\"permissions\": {\"deny\": [\"Read(.env)\"]}}\n"]
    {
        let bed = bed_with("--user", text);
        let path = settings(&bed, "--user");
        let out = bed.ralph_ok(&["init"]);
        assert!(out.contains("--deny-edits") && !text_of(&path).contains(RULE), "it is offered, not taken: {out}");
        let out = bed.ralph_ok(&["init", "--deny-edits"]);
        assert!(!out.contains("keeps it from trying"), "{out}");
        let denied = || says(&text_of(&path))["permissions"]["deny"].as_array().unwrap().iter().filter(|rule| *rule == RULE).count();
        assert_eq!(denied(), 1);
        bed.ralph_ok(&["init", "--deny-edits"]);
        assert_eq!(denied(), 1);
        bed.ralph_ok(&["uninstall"]);
        assert_eq!(text_of(&path), text);
    }
}

/// Edits in between stay, and only ralph's own rule goes.
#[test]
fn t7_only_ralphs_own_rule_goes() {
    let bed = bed_with("--user", "{}\n");
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init", "--deny-edits"]);
    std::fs::write(&path, text_of(&path).replace(RULE, &format!("{RULE}\", \"Read(.env)"))).unwrap();
    bed.ralph_ok(&["uninstall"]);
    assert_eq!(says(&text_of(&path))["permissions"]["deny"], serde_json::json!(["Read(.env)"]));
    let bed = bed_with("--user", format!("{{\"permissions\": {{\"deny\": [\"{RULE}\"]}}}}\n"));
    let path = settings(&bed, "--user");
    bed.ralph_ok(&["init", "--deny-edits"]);
    bed.ralph_ok(&["uninstall"]);
    assert!(text_of(&path).contains(RULE), "it was there before");
}
