//! `ralph item`: seeing a list, and marking an item as done (point 4 of the issue).

use std::fs;

use serde_json::json;

use crate::common::{Bed, RALPH, run};

const PRD: &str = "{\r\n\t\"branchName\": \"x\",\r\n\t\"userStories\": [\r\n\t\t{\"id\":\"US-1\",\"title\":\"one\",\"priority\":2,\"passes\" : false},\r\n\t\t\
                   {\"id\":\"US-2\",\"title\":\"two\",\"acceptanceCriteria\":[\"a\"],\"priority\":1,\"passes\":\"true\"}\r\n\t]\r\n}";

#[test]
fn point_4_an_item_is_marked_and_nothing_else_changes() {
    let bed = Bed::new();
    bed.write("prd.json", PRD);
    let out = bed.ralph_ok(&["item", "done", "US-1"]);
    assert!(out.contains("Done: US-1.") && out.contains("Next: US-2: two\n") && out.contains("\nSteps:\n- a\n"), "{out}");
    assert_eq!(bed.read("prd.json"), PRD.replace("\"passes\" : false", "\"passes\" : true"));
    assert_eq!(bed.read(".ralph/backup/prd.json"), PRD);
    let out = bed.ralph_ok(&["item", "done", "US-1", "US-2"]);
    assert!(out.contains("US-1 was marked as done already.") && out.contains("Nothing in prd.json is open any more."), "{out}");
    assert_eq!(bed.read("prd.json"), PRD.replace("\"passes\" : false", "\"passes\" : true").replace("\"true\"", "true"));
}

#[test]
fn point_4_boxes_are_ticked_by_one_character() {
    let bed = Bed::new();
    let text = "# Plan\r\n\r\n* [ ] **US-3** build it [x] now\r\n    wrapped\r\n* [ ] other\r\n";
    bed.write("docs/PLAN.md", text);
    bed.ralph_ok(&["item", "done", "US-3", "--list", "docs/PLAN.md"]);
    assert_eq!(bed.read("docs/PLAN.md"), text.replacen("[ ]", "[x]", 1));
    bed.ralph_ok(&["item", "done", "item-2", "--list", "docs/PLAN.md"]);
    assert_eq!(bed.read("docs/PLAN.md"), text.replace("[ ]", "[x]"));
}

#[test]
fn point_4_the_commands_of_an_item_run_first() {
    let bed = Bed::new();
    let list = r#"[{"id": "F 1", "passes": false, "verify": ["echo first", "echo because of this >&2; test -e ready"]}]"#;
    bed.write("feature_list.json", list);
    let out = bed.ralph(&["item", "done", "F 1"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("ralph trust") && out.stderr.contains("person"), "{}", out.stderr);
    bed.ralph_ok(&["trust", "--yes"]);
    let out = bed.ralph(&["item", "done", "F 1"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("F 1 is not done") && out.stderr.contains("because of this"), "{}", out.stderr);
    assert_eq!(bed.read("feature_list.json"), list);
    bed.write("ready", "");
    let out = bed.ralph(&["item", "done", "F 1"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(out.stdout.contains("Done: F 1; its 2 commands pass."), "{}", out.stdout);
    assert_eq!(bed.read("feature_list.json"), list.replace("false", "true"));
}

/// A list that came with a repository leads nobody to change a file elsewhere.
#[test]
fn point_4_a_link_that_leads_out_of_the_project_is_no_list() {
    use std::os::unix::fs::symlink;
    const LIST: &str = r#"[{"id": "A", "passes": false}]"#;
    let outside = Bed::new();
    outside.write("feature_list.json", LIST);
    let elsewhere = outside.path("feature_list.json");
    let bed = Bed::new();
    symlink(&elsewhere, bed.path("link.json")).unwrap();
    symlink(outside.path("."), bed.path("folder")).unwrap();
    for path in ["link.json", "folder/feature_list.json"] {
        bed.write("ralph.toml", format!("[[gate]]\nname = \"list\"\nfeatures = \"{path}\"\n"));
        for args in [
            &["item", "done", "A"][..],
            &["item"],
            &["item", "done", "A", "--list", path],
            &["item", "done", "A", "--list", elsewhere.to_str().unwrap()],
        ] {
            let out = bed.ralph(args);
            assert_eq!(out.code, Some(1), "{args:?}");
            assert!(out.stderr.contains("it leads out of the project"), "{args:?}: {}", out.stderr);
        }
        let out = bed.ralph(&["gate"]);
        assert!(out.stdout.contains("leads out of the project"), "{}", out.stdout);
    }
    assert_eq!(outside.read("feature_list.json"), LIST);
    // Within the project a link is followed, and stays one.
    bed.write("plans/list.json", LIST);
    symlink("plans/list.json", bed.path("prd.json")).unwrap();
    bed.ralph_ok(&["item", "done", "A", "--list", "prd.json"]);
    assert!(bed.read("plans/list.json").contains("true") && bed.path("prd.json").is_symlink());
    // A folder that a person names in the environment may lie anywhere.
    fs::remove_file(bed.path("ralph.toml")).unwrap();
    let out = run(bed.command(RALPH).args(["item", "done", "A"]).env("RALPH_LOOP_DIR", elsewhere.parent().unwrap()), b"");
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(outside.read("feature_list.json").contains("true"));
}

#[test]
fn point_4_from_an_agents_shell_in_a_subfolder() {
    let bed = Bed::new();
    bed.write(".claude/data/ralph-loops/current/feature_list.json", r#"{"features": [{"id": 7, "passes": false}]}"#);
    bed.write("src/deep/x", "");
    let mut command = bed.command(RALPH);
    command.args(["item", "done", "7"]).current_dir(bed.path("src/deep")).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s");
    let out = run(&mut command, b"");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", out.stdout);
    assert_eq!(bed.read(".claude/data/ralph-loops/current/feature_list.json"), r#"{"features": [{"id": 7, "passes": true}]}"#);
}

#[test]
fn point_4_an_unknown_id_is_told_what_there_is() {
    let bed = Bed::new();
    bed.write("prd.json", PRD);
    let out = bed.ralph(&["item", "done", "US-3"]);
    assert_eq!(out.code, Some(1));
    assert!(
        out.stderr.contains("there is no item \"US-3\" in prd.json. Open: US-2, US-1."),
        "another number is no misspelling: {}",
        out.stderr
    );
    let out = bed.ralph(&["item", "done", "US1"]);
    assert!(out.stderr.contains("Did you mean US-1?"), "{}", out.stderr);
    assert_eq!(bed.read("prd.json"), PRD);
}

#[test]
fn point_4_lists_are_found_and_shown() {
    let bed = Bed::new();
    let out = bed.ralph(&["item"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("there is no list of items here"), "{}", out.stderr);
    bed.write("prd.json", PRD);
    let out = bed.ralph_ok(&["item"]);
    for part in ["prd.json  2 of 2 open", "open  US-2  two", "`passes: \"true\"`, which is a text", "When it is done: ralph item done US-2"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let found = bed.ralph_json(&["item", "list", "--json"]);
    assert_eq!((&found["lists"][0]["format"], &found["lists"][0]["open"]), (&json!("stories"), &json!(2)));
    assert_eq!(found["lists"][0]["items"][0]["steps"], json!(["a"]));
    // The list that ralph.toml names, a broken one, and the same id in two.
    bed.write("TODO.md", "- [ ] US-1: x\n");
    bed.write("ralph.toml", "[[gate]]\nfeatures = \"TODO.md\"\n[[gate]]\nfeatures = \"prd.json\"\n[[gate]]\nfeatures = \"gone.json\"\n");
    let out = bed.ralph(&["item"]);
    assert_eq!(out.code, Some(0));
    assert!(
        out.stdout.contains("TODO.md  1 of 1 open") && out.stderr.contains("gone.json is not there") && !out.stderr.contains("os error"),
        "{out:?}"
    );
    let out = bed.ralph(&["item", "done", "US-1"]);
    assert!(
        out.code == Some(1) && out.stderr.contains("\"US-1\" is in TODO.md and prd.json: say which with --list FILE"),
        "{}",
        out.stderr
    );
    assert_eq!(bed.ralph(&["item", "done"]).code, Some(2));
}

#[test]
fn point_4_hostile_lists_steer_no_terminal() {
    let bed = Bed::new();
    bed.write(
        "feature_list.json",
        "[{\"id\": \"a\\u001b[31m\", \"description\": \"x\\u0007\\u001b]0;t\\u0007\", \"steps\": [\"\\u001b[2J\"], \"passes\": false}]",
    );
    let out = bed.ralph_ok(&["item", "--list", "feature_list.json"]);
    assert!(!out.contains('\u{1b}') && !out.contains('\u{7}'), "{out:?}");
    let out = bed.ralph(&["item", "done", "\u{1b}[31m"]);
    assert!(!out.stderr.contains('\u{1b}'), "{out:?}");
}

/// The letters of an id may be large or small, as long as it is clear which item is meant.
#[test]
fn point_4_an_id_is_known_by_its_letters() {
    let bed = Bed::new();
    bed.write("prd.json", PRD);
    assert!(bed.ralph_ok(&["item", "done", "us-1"]).contains("Done: US-1."));
    assert_eq!(bed.read("prd.json"), PRD.replace("\"passes\" : false", "\"passes\" : true"));
    bed.write("feature_list.json", r#"[{"id": "A", "passes": false}, {"id": "a", "passes": false}]"#);
    assert!(bed.ralph_ok(&["item", "done", "a", "--list", "feature_list.json"]).contains("Done: a."));
    bed.write("feature_list.json", r#"[{"id": "Ab", "passes": false}, {"id": "aB", "passes": false}]"#);
    let out = bed.ralph(&["item", "done", "ab", "--list", "feature_list.json"]);
    assert!(out.code == Some(1) && out.stderr.contains("\"ab\" can be Ab or aB"), "{out:?}");
}

#[test]
fn point_4_one_item_is_shown_with_its_boxes() {
    let bed = Bed::new();
    bed.write("PLAN.md", "- [ ] US-1: build it\n  - [x] first\n  - plain\n  - [ ] last\n- [x] other\n");
    let out = bed.ralph_ok(&["item", "us-1", "--list", "PLAN.md"]);
    assert_eq!(
        out,
        "PLAN.md  open\nUS-1: build it\nSteps:\n- [x] first\n- plain\n- [ ] last\nWhen it is done: ralph item done --list PLAN.md US-1\n"
    );
    assert!(bed.ralph_ok(&["item", "item-2", "--list", "PLAN.md"]).ends_with("item-2: other\n"));
    let one = bed.ralph_json(&["item", "list", "US-1", "--list", "PLAN.md", "--json"]);
    assert_eq!((one["lists"][0]["items"].as_array().unwrap().len(), &one["lists"][0]["total"]), (1, &json!(2)));
    assert_eq!(one["lists"][0]["items"][0]["boxes"], json!([true, null, false]));
    assert_eq!(bed.ralph(&["item", "US-7", "--list", "PLAN.md"]).code, Some(1));
}

/// What is printed as the next command does what it says.
#[test]
fn point_4_the_hint_can_be_typed() {
    let bed = Bed::new();
    bed.write("my plans/PLAN.md", "- [ ] one\n- [ ] two\n");
    let out = bed.ralph_ok(&["item", "--list", "my plans/PLAN.md"]);
    let hint = out.lines().last().unwrap().strip_prefix("When it is done: ralph ").unwrap();
    let typed = run(bed.command("/bin/sh").args(["-c", &format!("'{RALPH}' {hint}")]), b"");
    assert_eq!(typed.code, Some(0), "{typed:?}");
    assert!(typed.stdout.ends_with("When it is done: ralph item done --list 'my plans/PLAN.md' item-2\n"), "{typed:?}");
}
