use super::*;
use proptest::prelude::*;

const FEATURES: &str = "{\n  \"project\": \"x\",\n  \"features\": [\n    {\"id\": 1, \"description\": \"Log in\", \"steps\": [\"open\", \"type\"], \"passes\": true},\n    \
                        {\"id\": \"F-2\", \"description\": \"Log out\", \"steps\": \"click\", \"passes\": false, \"model\": \"opus\", \"verify\": \"make out\"}\n  ]\n}\n";

fn read(text: &str) -> List {
    List::parse(text.as_bytes()).unwrap_or_else(|p| List {
        format: Format::Features,
        items: Vec::new(),
        mistakes: vec![p.to_string()],
        marks: Vec::new(),
    })
}

fn refused(text: &str) -> String {
    List::parse(text.as_bytes()).err().map(|p| p.to_string()).unwrap_or_default()
}

fn done(text: &str, id: &str) -> Result<String, String> {
    let list = List::parse(text.as_bytes()).map_err(|p| p.to_string())?;
    let index = list.find(id).ok_or("no such item")?;
    list.with_done(text.as_bytes(), index).map(|b| String::from_utf8_lossy(&b).into_owned()).map_err(|p| p.to_string())
}

#[test]
fn s4_1_a_feature_list() {
    let list = read(FEATURES);
    assert_eq!((list.format, list.mistakes.len()), (Format::Features, 0));
    let second = Item {
        id: "F-2".to_owned(),
        title: "Log out".to_owned(),
        steps: vec!["click".to_owned()],
        model: Some("opus".to_owned()),
        verify: vec!["make out".to_owned()],
        ..Item::default()
    };
    assert_eq!(list.items[1], second);
    assert_eq!((list.items[0].id.as_str(), list.items[0].passes, list.items[0].steps.len()), ("1", true, 2));
    assert_eq!(list.open().count(), 1);
    let bare = read("[{\"id\": \"a\", \"passes\": true}]");
    assert_eq!((bare.format, bare.open().count()), (Format::Features, 0));
}

#[test]
fn stories_come_in_order_of_priority_then_of_the_file() {
    let prd = r#"{"branchName": "ralph/x", "userStories": [
        {"id": "US-1", "title": "late", "priority": 3, "passes": false},
        {"id": "US-2", "title": "never said", "passes": false},
        {"id": "US-3", "title": "first", "description": "As a user", "acceptanceCriteria": ["a", "b"], "priority": 1, "passes": false},
        {"id": "US-4", "title": "late too", "priority": 3, "passes": true}]}"#;
    let list = read(prd);
    let ids: Vec<&str> = list.items.iter().map(|i| i.id.as_str()).collect();
    assert_eq!((list.format, ids), (Format::Stories, vec!["US-3", "US-1", "US-4", "US-2"]));
    assert_eq!((list.items[0].title.as_str(), list.items[0].steps.join("+")), ("first: As a user", "a+b".to_owned()));
    assert_eq!(done(prd, "US-1"), Ok(prd.replacen("3, \"passes\": false", "3, \"passes\": true", 1)));
}

#[test]
fn what_it_is_is_told_by_its_content() {
    assert_eq!(read("- [ ] a\n").format, Format::Markdown);
    assert_eq!(read("[![badge](x)](y)\n\n- [x] a\n").format, Format::Markdown);
    assert_eq!(read("\u{feff}\r\n {\"features\": [{}]}").format, Format::Features);
    assert_eq!(read("\u{feff}- [ ] a\n").items.len(), 1);
}

#[test]
fn what_cannot_be_a_list_is_refused_with_a_sentence() {
    let cases = [
        ("", "the file is empty"),
        ("\u{feff}\r\n", "the file is empty"),
        ("# Notes\n", "there is no item in it: neither JSON with `features` or `userStories`, nor a Markdown check box (`- [ ] text`)"),
        ("null", "there is no item in it: neither JSON with `features` or `userStories`, nor a Markdown check box (`- [ ] text`)"),
        ("{}", "there is no `features` list and no `userStories` list in it"),
        ("{\n\"features\": {}}", "line 2: `features` must be a list, and is an object"),
        ("{\"userStories\": \"none\"}", "line 1: `userStories` must be a list, and is a text"),
        ("{\n\n\"features\": []}", "line 3: the list is empty, and an empty list proves nothing"),
        ("[]", "line 1: the list is empty, and an empty list proves nothing"),
        ("{\"features\": [\n{\"id\": 1,}]}", "line 2: this is not valid JSON: trailing comma (column 10)"),
    ];
    for (text, problem) in cases {
        assert_eq!(refused(text), problem, "{text:?}");
    }
    assert!(List::parse(b"{\"features\": [\n\xFF").is_err_and(|p| p.line == Some(2)));
}

#[test]
fn mistakes_are_named_and_count_as_open() {
    let list = read(
        "[\n{\"id\": 1, \"passes\": \"true\"},\n{\"passes\": 1},\n\"words\",\n{\"id\": 1, \"passes\": true},\n{\"id\": [2], \"passes\": true, \"verify\": 7}\n]",
    );
    let ids: Vec<&str> = list.items.iter().map(|i| i.id.as_str()).collect();
    assert_eq!(ids, ["1", "item-2", "item-3", "1#2", "item-5"]);
    let problems: Vec<&str> = list.items.iter().filter_map(|i| i.problem.as_deref()).collect();
    assert_eq!(
        problems,
        [
            "line 2: item 1 has `passes: \"true\"`, which is a text: it must be true or false, so it counts as open",
            "line 3: item 2 has `passes: 1`, which is a number: it must be true or false, so it counts as open",
            "line 4: item 3 is a text, and must be an object",
            "line 6: item 5 has a `verify` that is a number: it must be a text or a list of texts, so it counts as open",
        ]
    );
    assert_eq!(
        list.mistakes,
        [
            "line 6: item 5 has an `id` that is a list; it is called item-5 here",
            "the id 1 is given more than once; the next item of that id is called 1#2"
        ]
    );
    assert_eq!(list.open().count(), 4);
}

#[test]
fn marking_an_item_changes_that_value_and_nothing_else() {
    let cases = [
        (FEATURES.to_owned(), "F-2", FEATURES.replacen("\"passes\": false", "\"passes\": true", 1)),
        (FEATURES.replace('\n', "\r\n"), "F-2", FEATURES.replace('\n', "\r\n").replacen("\"passes\": false", "\"passes\": true", 1)),
        ("\u{feff}[{\"id\":1,\"passes\" :\tnull }]".to_owned(), "1", "\u{feff}[{\"id\":1,\"passes\" :\ttrue }]".to_owned()),
        ("[{\"id\":1,\"passes\":\"yes\"}]".to_owned(), "1", "[{\"id\":1,\"passes\":true}]".to_owned()),
        ("[{\"id\":1}]".to_owned(), "1", "[{\"id\":1,\"passes\":true}]".to_owned()),
        ("[{}]".to_owned(), "item-1", "[{\"passes\": true}]".to_owned()),
        (
            "[\n  {\n    \"a\": 1,\n    \"id\" : \"z\"\n  }\n]".to_owned(),
            "z",
            "[\n  {\n    \"a\": 1,\n    \"id\" : \"z\",\n    \"passes\" : true\n  }\n]".to_owned(),
        ),
        ("[{\"id\":1,\"passes\":true,\"passes\":false}]".to_owned(), "1", "[{\"id\":1,\"passes\":true,\"passes\":true}]".to_owned()),
        ("# P\r\n\r\n* [ ] T-1: a\r\n* [ ] b\r\n".to_owned(), "T-1", "# P\r\n\r\n* [x] T-1: a\r\n* [ ] b\r\n".to_owned()),
    ];
    for (before, id, after) in cases {
        assert_eq!(done(&before, id), Ok(after), "{before:?}");
    }
    assert_eq!(done("{\"features\": [\"words\"]}", "item-1"), Err("it is not an item that could be marked as done".to_owned()));
    assert!(done("[{\"id\": 1, \"verify\": [{}]}]", "1").is_err_and(|e| e.contains("`verify`")));
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = List::parse(&bytes);
    }

    /// Whatever the items hold, marking one changes at most a few bytes, and exactly that item.
    #[test]
    fn marking_one_leaves_the_others(items in proptest::collection::vec((".{0,8}", any::<Option<bool>>(), ".{0,20}"), 1..6), pick in 0usize..6, pretty: bool) {
        let value = serde_json::json!({ "features": items.iter().map(|(id, passes, text)| serde_json::json!({ "id": id, "passes": passes, "description": text })).collect::<Vec<_>>() });
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap_or_default();
        let list = read(&text);
        prop_assert_eq!(list.items.len(), items.len());
        let pick = pick % items.len();
        let marked = list.with_done(text.as_bytes(), pick);
        let again = List::parse(&marked.unwrap_or_default());
        let passes: Vec<bool> = again.map(|l| l.items.iter().map(|i| i.passes).collect()).unwrap_or_default();
        let expected: Vec<bool> = items.iter().enumerate().map(|(n, (_, passes, _))| n == pick || *passes == Some(true)).collect();
        prop_assert_eq!(passes, expected);
    }
}

#[test]
fn f1_priority_and_dependencies_choose_the_next_item() {
    let text = r#"{"features": [
        {"id": "A", "passes": false},
        {"id": "B", "passes": false, "priority": 2, "dependsOn": ["C"]},
        {"id": "C", "passes": false, "priority": "3", "depends_on": "D", "agent": "codex", "pool": "rust"},
        {"id": "D", "passes": false, "priority": 9, "optional": true},
        {"id": 5, "passes": true, "blockedBy": []}]}"#;
    let list = List::parse(text.as_bytes()).unwrap();
    assert_eq!(list.items.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["B", "C", "D", "A", "5"]);
    assert_eq!(list.next().unwrap().id, "A", "B waits for C, C for D, and D is optional");
    assert_eq!(list.needed().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["B", "C", "A"]);
    assert_eq!((list.items[1].agent.as_deref(), list.items[1].pool.as_deref()), (Some("codex"), Some("rust")));
    let mut bytes = text.as_bytes().to_vec();
    for (done, next) in [("A", Some("D")), ("D", Some("C")), ("C", Some("B")), ("B", None)] {
        let list = List::parse(&bytes).unwrap();
        bytes = list.with_done(&bytes, list.find(done).unwrap()).unwrap();
        assert_eq!(List::parse(&bytes).unwrap().next().map(|item| item.id.clone()).as_deref(), next, "after {done}");
    }
}

#[test]
fn f1_a_list_that_cannot_be_worked_off_names_the_ids() {
    for (text, says) in [
        (r#"[{"id": "A", "dependsOn": ["Z"]}]"#, "A depends on Z, which is not in the list"),
        (r#"[{"id": "A", "dependsOn": ["A"]}]"#, "wait for each other: A \u{2192} A"),
        (
            r#"[{"id": "X", "dependsOn": ["A"]}, {"id": "A", "blockedBy": ["B"]}, {"id": "B", "depends_on": "A"}]"#,
            "A \u{2192} B \u{2192} A",
        ),
        (r#"[{"id": "A", "optional": true}]"#, "every item is optional"),
    ] {
        let problem = List::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(problem.contains(says), "{problem}");
    }
    let list = List::parse(br#"[{"id": "A", "dependsOn": [{}], "passes": true}]"#).unwrap();
    assert!(list.items[0].is_open() && list.items[0].problem.as_deref().unwrap().contains("`dependsOn` that is"));
}
