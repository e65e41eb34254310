//! What has to stand in each form, and what must not.

use std::{fs, process::Command, thread, time::Duration};

use boon::{Compiler, Schemas};
use ralph_testkit::{Project, story};
use serde_json::{Value, json};

use crate::{
    common::{Bed, LOOP, ME, RALPH, loop_text},
    report::{hostile, night, report},
    run::{Runs, until},
};

fn schema(name: &str) -> (Schemas, boon::SchemaIndex) {
    let mut all = Schemas::new();
    let path = format!("{}/../../schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let index = Compiler::new().compile(&path, &mut all).unwrap();
    (all, index)
}

fn as_json(project: &Project) -> Value {
    let value: Value = serde_json::from_str(&report(project, &["--json"])).unwrap();
    let (all, index) = schema("report");
    all.validate(&value, index).unwrap_or_else(|e| panic!("{e:#}"));
    value
}

/// The made-up night is one that ralph could have written, and that its judge agrees with.
#[test]
fn eyes_2_the_story_is_a_journal_like_any_other() {
    let project = night();
    let journal = format!(".ralph/journal/{}.jsonl", story::ID);
    let (all, index) = schema("journal");
    for line in project.read(&journal).lines() {
        all.validate(&serde_json::from_str(line).unwrap(), index).unwrap_or_else(|e| panic!("{e:#}\n{line}"));
    }
    let replayed = project.run(RALPH).args(["explain", "--replay", &journal]).output();
    assert_eq!(replayed.stdout.trim(), "12 stops judged again: 12 the same, 0 different", "{replayed:?}");
}

#[test]
fn eyes_2_everything_is_in_the_json() {
    let project = night();
    let report = as_json(&project);
    let sentence =
        "Complete after 12 iterations (3 h 20 min): the agent claimed <promise>EVERY FORMAT PARSES</promise>, and all 4 gates hold";
    assert!(report["sentence"].as_str().unwrap().starts_with(sentence), "{}", report["sentence"]);
    let f = &report["figures"];
    assert_eq!(json!([report["status"], report["mood"], report["code"]]), json!(["complete", "good", "promise.accepted"]));
    assert_eq!(json!([f["rounds"], f["stops"], f["wanted"], f["verified"], f["refused"]]), json!([12, 12, 9, 8, 3]));
    assert_eq!(f["used"]["usd_micros"], 8_800_000);
    // u6: the time of the sentence, and what it was by the clock.
    assert_eq!(f["spent_ms"].as_u64().unwrap() / 60_000, 3 * 60 + 20);
    assert!(f["elapsed_ms"].as_u64() > f["spent_ms"].as_u64());
    let page = crate::report::report(&project, &["--html", "-"]);
    assert!(page.contains("by the clock</dt><dd>3 h 20 min</dd>"), "{page}");
    assert_eq!(report["cost"]["per_verified"], 1_100_000);
    assert_eq!(f["took"]["service_ms"], 2 * 3_600_000 + 12 * 60_000, "the quota");
    assert_eq!(f["took"]["elsewhere_ms"], (690 + 690 + 540) * 1_000, "the checks");
    assert_eq!(json!([f["changed"]["commits"], report["rounds"][0]["changed"]["commits"]]), json!([30, 3]));
    assert_eq!(report["rounds"].as_array().unwrap().len(), 12);
    let needs: Vec<&str> = report["needs"].as_array().unwrap().iter().map(|need| need["about"].as_str().unwrap()).collect();
    assert_eq!(needs, ["denied", "unproven"], "ralph's own folder is nothing that is left: {:#}", report["left"]);
    let of = |name: &str| report["acceptance"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    let tests = of("cargo test");
    assert_eq!(json!([tests["standing"], tests["evidence"]["stop"], tests["evidence"]["command"]]), json!(["proven", 12, "cargo test"]));
    assert_eq!(tests["evidence"]["commit"], json!(project.git(&["rev-parse", "HEAD"]).trim()));
    assert_eq!(json!([of("F1")["standing"], of("F6")["standing"]]), json!(["proven", "claimed"]));
    assert!(of("F6").get("evidence").is_none(), "nothing ever proved it");
    let counts: Vec<u64> =
        report["gates"][0]["marks"].as_array().unwrap().iter().map(|mark| mark["counts"]["failed"].as_u64().unwrap()).collect();
    assert_eq!(counts, [14, 11, 9, 7, 6, 4, 2, 2, 1, 0, 0, 0]);
}

#[test]
fn eyes_2_the_page_says_the_most_important_first() {
    let project = night();
    let out = report(&project, &[]);
    let path = format!(".ralph/reports/{}.html", story::ID);
    assert!(out.starts_with("Complete after 12 iterations") && out.trim_end().ends_with(&path), "{out}");
    let page = project.read(&path);
    assert!(page.contains("default-src 'none'") && !page.contains("<script") && !page.contains("href=") && !page.contains("src="));
    let order = [
        "<h1>Complete after 12 iterations",
        "Make `tidydate` parse",
        ">9 of 9<",
        "What needs a person",
        "<code>WebFetch(domain:www.unicode.org)</code>",
        "What had to hold, and what proves it",
        "claimed, not proven",
        "Where the time went",
        "waiting for quota <span class=\"aside\">2 h 12 min, 39 %",
        "Iteration over iteration",
        "Gates over time",
        "Failing tests: 14 at first, 0 at last",
        "$1.10 for each of the 8 things",
        "Claims that were refused",
        "the tag was in code or in a comment",
        "<h2 id=\"h-rounds\">",
        "2 → 3 of 4",
        "ralph explain --replay .ralph/journal/main-20261114-214000.jsonl",
        "ralph rollback 11 --loop main-20261114-214000",
        "<footer>",
    ];
    let mut rest = page.as_str();
    for part in order {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} does not come next"));
        rest = &rest[at + part.len()..];
    }
    let left: Vec<_> = fs::read_dir(project.path(".ralph/reports")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn eyes_2_no_text_of_a_stranger_becomes_markup() {
    let project = hostile();
    let page = report(&project, &["--html", "-"]);
    for bad in ["<script", "<img", "<a ", "\u{202e}", "\u{1b}", "\u{7}"] {
        assert!(!page.contains(bad), "{bad:?}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("1 line of the journal cannot be read"));
    let text = report(&project, &["--markdown"]);
    assert!(text.len() <= 60_000, "{}", text.len());
    // What stands in code is code, whatever it says.
    let outside: String = text.lines().map(|line| line.split('`').step_by(2).collect::<String>() + "\n").collect();
    for bad in ["<script", "<img", "<a ", "![", "](", "@somebody", "#12", "https://", "\u{202e}", "\u{1b}"] {
        assert!(!outside.contains(bad), "{bad:?} in\n{text}");
    }
    assert_eq!(as_json(&project)["figures"]["unreadable_lines"], 1);
}

/// A loop that still goes on is told as of now, and so is one whose session nobody knows anything about.
#[test]
fn eyes_2_a_loop_that_goes_on() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE"));
    assert!(bed.work().send().blocks());
    let value: Value = bed.ralph_json(&["report", "--json"]);
    assert_eq!(json!([value["status"], value["mood"], value["figures"]["rounds"]]), json!(["active", "going", 1]));
    assert!(value["sentence"].as_str().unwrap().starts_with("Still going: iteration 2 of 9"), "{}", value["sentence"]);
    assert!(value["cost"]["words"].as_str().unwrap().starts_with("Not known"), "{}", value["cost"]);
    assert!(["usd_micros", "tokens", "tool_calls"].iter().all(|name| value["figures"]["used"].get(name).is_none()), "{value}");
    let figures = bed.ralph_ok(&["report", "--prometheus"]);
    assert!(!figures.contains("cost_dollars_total") && !figures.contains("tokens_total"), "{figures}");
    let text = bed.ralph_ok(&["report", "--markdown"]);
    assert!(text.contains("| not known | not known |") && text.contains("| – | – | – |"), "{text}");
    assert_eq!(value["acceptance"][0]["standing"], "open");
    assert!(bed.ralph(&["pause"]).success());
    let paused = bed.ralph_json(&["report", "--json"]);
    assert_eq!(json!([paused["sentence"], paused["mood"]]), json!(["Paused by a person at iteration 2 of 9.", "held"]));
    assert_eq!(paused["needs"][0]["about"], "resting");
}

/// In the agent's own session nobody counts: the transcript tells what a round used, and where it is not, nothing is guessed.
#[test]
fn eyes_2_what_a_session_used_is_told_by_its_transcript() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE"));
    assert!(bed.work().send().blocks());
    let started: Value =
        serde_json::from_str(bed.read(format!(".ralph/journal/{}.jsonl", bed.status()["id"].as_str().unwrap())).lines().next().unwrap())
            .unwrap();
    // After the first stop, which is when ralph first saw this loop.
    let at = started["at"].as_str().unwrap().replace('Z', "9Z");
    let usage = json!({ "input_tokens": 1_000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 50 });
    let call = json!([{ "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {} }]);
    let message =
        json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": call, "usage": usage });
    let line = json!({ "type": "assistant", "sessionId": ME, "timestamp": at, "requestId": "req_1", "message": message });
    let folder = bed.home().join(".claude/projects/-p");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{ME}.jsonl")), format!("{line}\n")).unwrap();
    thread::sleep(Duration::from_millis(5));
    assert!(bed.work().send().blocks());
    let value = bed.ralph_json(&["report", "--json"]);
    let used = &value["figures"]["used"];
    assert_eq!(json!([used["tokens"]["input"], used["tokens"]["output"], used["estimated"]]), json!([1_000, 50, true]), "{value}");
    // $4 for a million tokens of input, $20 for a million of output.
    assert_eq!(json!([used["usd_micros"], used["tool_calls"]]), json!([5_000, 1]));
}

#[test]
fn eyes_2_without_a_loop_or_its_journal() {
    let bed = Bed::new();
    let none = "No loop has run in this project yet. Start one: ralph run \"…\"";
    let out = bed.ralph(&["report"]);
    assert_eq!((out.code, out.stdout.trim()), (Some(3), none));
    for form in ["--junit", "--prometheus", "--markdown", "--html=-"] {
        let out = bed.ralph(&["report", form]);
        assert_eq!((out.code, out.stdout.as_str(), out.stderr.trim()), (Some(3), "", none), "{form}: nobody takes a sentence for the file");
    }
    assert!(!bed.exists(".ralph"), "nothing is made for a loop that is not there");
    let project = night();
    fs::remove_file(project.path(format!(".ralph/journal/{}.jsonl", story::ID))).unwrap();
    let out = project.run(RALPH).args(["report", story::ID]).output();
    assert!(out.code == Some(1) && out.stderr.contains("its journal was removed"), "{out:?}");
}

fn acceptance(report: &Value, name: &str) -> Value {
    report["acceptance"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} in {report}")).clone()
}

/// A commit that does not have what was proven is not named as if it had.
#[test]
fn eyes_2_evidence_names_the_files_that_were_proven() {
    let runs = Runs::new("touch \"ok$RALPH_ITERATION\"; [ -e ok2 ] && commit; exit 0");
    runs.bed.write(".gitignore", "*.local.md\n");
    runs.bed.commit_all("loop files are no part of the work");
    for (files, uncommitted, words) in [("ok1", true, "on top of commit"), ("ok2", false, "commit <code>")] {
        runs.ends(0, &["Go", "--verify", &format!("test -f {files}"), "--name", files]);
        let evidence = acceptance(&runs.bed.ralph_json(&["report", files, "--json"]), &format!("test -f {files}"))["evidence"].clone();
        assert_eq!(json!([evidence["commit"], evidence["uncommitted"]]), json!([runs.bed.git(&["rev-parse", "HEAD"]).trim(), uncommitted]));
        let kept = evidence["kept_as"].as_str().unwrap();
        assert!(runs.bed.git(&["ls-tree", "--name-only", kept]).lines().any(|line| line == files), "{kept} has what was proven");
        let page = runs.bed.ralph_ok(&["report", files, "--html=-"]);
        assert!(page.contains(words) && page.contains("on top of") == uncommitted, "{page}");
    }
}

/// What nobody committed, nobody has counted where no files are kept.
#[test]
fn eyes_2_work_that_is_not_committed_is_not_told_as_none() {
    let bed = Bed::in_git();
    bed.write(LOOP, loop_text(ME, 1, 9, "DONE"));
    bed.commit_all("begin");
    assert!(bed.work().send().blocks());
    bed.write("new.txt", "a\nb\n");
    assert!(bed.work().send().blocks());
    let (text, page) = (bed.ralph_ok(&["report", "--markdown"]), bed.ralph_ok(&["report", "--html=-"]));
    assert!(!text.contains("+0 −0") && !page.contains("+0 −0"), "{text}");
}

/// A file of settings that the agent broke takes no gate out of the report.
#[test]
fn eyes_2_gates_that_vanish_are_still_told() {
    let runs = Runs::new("[ \"$RALPH_ITERATION\" = 2 ] && echo '[[gate]]' >> ralph.toml; exit 0");
    runs.bed.write(
        "ralph.toml",
        "keep_going = true\n[[gate]]\nname = \"good\"\ncommand = \"true\"\n[[gate]]\nname = \"bad\"\ncommand = \"false\"\n",
    );
    runs.bed.commit_all("gates");
    runs.bed.ralph_ok(&["trust", "--yes"]);
    let out = runs.run(&["Go", "-n", "4"]);
    let report = runs.bed.ralph_json(&["report", "--json"]);
    assert_eq!(json!([report["status"], report["figures"]["wanted"], report["figures"]["verified"]]), json!(["paused", 2, 0]), "{out:?}");
    let good = acceptance(&report, "good");
    assert_eq!(json!([good["standing"], good["evidence"]["stop"], good["evidence"]["command"]]), json!(["unknown", 1, "true"]));
    assert!(good["what"].as_str().unwrap().starts_with("not declared any more; last found: "), "{good}");
    let held: Vec<_> = report["rounds"].as_array().unwrap().iter().map(|row| json!([row["gates_held"], row["gates_known"]])).collect();
    assert_eq!(held, [json!([1, 2]), json!([0, 0])]);
    let about: Vec<_> = report["needs"].as_array().unwrap().iter().map(|need| need["about"].clone()).collect();
    assert_eq!(about, ["resting", "uncommitted"], "said once: {}", report["needs"]);
    assert!(!runs.bed.ralph_ok(&["report", "--html=-"]).contains("nothing to verify"));
}

/// Commands that nobody trusts, gates that nobody measured, and a loop without a stop: each is said, and every command that is named works.
#[test]
fn eyes_2_what_was_never_run_is_named_with_what_it_needs() {
    let runs = Runs::new("sleep 30");
    runs.bed.write(
        "feature_list.json",
        json!({"features": [{"id": "A", "description": "a", "passes": false, "verify": ["true"]}]}).to_string(),
    );
    runs.bed.write("ralph.toml", "[[gate]]\nfeatures = \"feature_list.json\"\n");
    runs.bed.commit_all("a list");
    let running = runs.start(&["Go", "--verify", "false"]);
    until("a session works", || runs.sessions() == 1);
    drop(running);
    let report = runs.bed.ralph_json(&["report", "--json"]);
    let trust = report["needs"].as_array().unwrap().iter().find(|need| need["about"] == "gate").unwrap().clone();
    assert!(trust["what"].as_str().unwrap().starts_with("feature_list.json is not trusted: its command is not run"), "{trust}");
    assert!(trust["how"][0].as_str().unwrap().contains("`ralph trust`"), "{trust}");
    let junit = runs.bed.ralph_ok(&["report", "--junit"]);
    assert!(junit.contains("tests=\"2\"") && junit.contains("skipped=\"2\"") && junit.contains("message=\"not measured yet\""), "{junit}");
    for way in report["ways"].as_array().unwrap() {
        let command = way["command"].as_str().unwrap();
        assert!(!command.contains("explain"), "there was no stop: {command}");
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        assert!(words[0] == "run" || runs.bed.ralph(&words).success(), "{command}");
    }
    assert!(!report["ways"].to_string().contains("no files were kept"), "the files before it were: {}", report["ways"]);
    runs.bed.ralph_ok(&["trust", "--yes"]);
    assert!(!runs.bed.ralph_json(&["report", "--json"])["needs"].to_string().contains("ralph trust"));
}

/// The browser is started and not waited for; a program of the project's own is not the person's browser.
#[test]
fn eyes_2_the_browser_shows_it() {
    let project = night();
    let browser = project.home().join("browser");
    let script = |path: &std::path::Path, text: &str| {
        fs::write(path, text).unwrap();
        assert!(Command::new("chmod").arg("+x").arg(path).status().unwrap().success());
    };
    script(&browser, &format!("#!/bin/sh\necho \"$1\" > {}/opened\nexec sleep 5\n", project.home().display()));
    let out = project.run(RALPH).args(["report", "--open"]).env("BROWSER", &browser).output();
    assert!(out.success() && out.stderr.is_empty(), "{out:?}");
    assert!(out.stdout.contains("Opened with ") && out.stdout.contains("browser."), "{out:?}");
    let opened = project.home().join("opened");
    until("the browser opens the page", || fs::read_to_string(&opened).is_ok_and(|text| text.contains(story::ID)));
    let planted = project.script("bin/evil", "#!/bin/sh\ntouch ../evil\n");
    let path = format!("{}:/nowhere", planted.parent().unwrap().display());
    let out = project.run(RALPH).args(["report", "--open"]).env("BROWSER", "evil").env("PATH", path).output();
    assert!(out.success() && out.stderr.contains("Not opened: ") && out.stderr.contains("Open the file yourself."), "{out:?}");
}

#[test]
fn eyes_2_thousands_of_rounds_are_a_page_of_some_hundred_kilobytes() {
    let project = Project::without_git();
    project.write_journal("main-1", &story::long("main-1", 4_000));
    let page = report(&project, &["--html", "-"]);
    assert!(page.len() < 1_500_000, "{}", page.len());
    assert!(page.contains("Each bar stands for 100 iterations") && page.contains("The last 200 of 4000 iterations"));
    assert!(report(&project, &["--markdown"]).len() <= 60_000);
}
