//! What ralph keeps is for its user alone, and holds no secret that a gate, an agent or an event printed (t9); what a hook could not do leaves a
//! line (t21). No secret in here ever opened anything.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    common::{Bed, LOOP, ME, RALPH, loop_text, run},
    gated::{Gated, gate, reason},
    run::Runs,
};

/// Everything below a folder, links not followed.
fn all_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                folders.push(path.clone());
            }
            found.push(path);
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

#[track_caller]
fn is_private(own: &Path) {
    assert_eq!(mode(own), 0o700, "{}", own.display());
    let open: Vec<(String, PathBuf)> = all_in(own)
        .into_iter()
        .filter(|path| !path.strip_prefix(own).unwrap().starts_with("worktrees/"))
        .filter(|path| mode(path) & 0o077 != 0)
        .map(|path| (format!("{:o}", mode(&path)), path))
        .collect();
    assert_eq!(open, []);
}

/// A token, put together where no scanner sees it.
fn token() -> String {
    format!("{}_{}", "ghp", "0a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D6e7F")
}

/// Whatever was written anywhere.
#[track_caller]
fn nowhere(bed: &Bed, secrets: &[&str], but: &[&str]) {
    let places = [bed.dir().to_owned(), bed.home().to_owned()];
    for path in places.iter().flat_map(|place| all_in(place)).filter(|path| path.is_file()) {
        if but.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for secret in secrets {
            let is_there = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!is_there, "{secret} stands in {}", path.display());
        }
    }
}

#[test]
fn t9_all_that_ralph_keeps_is_for_its_user_alone_whatever_the_mask() {
    for umask in ["000", "022", "077"] {
        let bed = Gated::in_git(&gate("fails", "echo no; exit 1", ""));
        let sh = |script: &str, input: &[u8]| {
            let mut command = bed.command("/bin/sh");
            command.args(["-c", &format!("umask {umask}; {script}")]).env("RALPH", RALPH).env("RALPH_REPORT", "on");
            for (name, value) in [("CLAUDE_PROJECT_DIR", bed.dir().to_str().unwrap()), ("CLAUDE_CODE_SESSION_ID", ME)] {
                command.env(name, value);
            }
            run(&mut command, input)
        };
        assert_eq!(sh("\"$RALPH\" hook claude", bed.claim().json().as_bytes()).code, Some(0));
        assert_eq!(sh("\"$RALPH\" hook claude", bed.work().json().as_bytes()).code, Some(0));
        let id = bed.status()["id"].as_str().unwrap().to_owned();
        assert_eq!(sh("env -u CLAUDE_CODE_SESSION_ID \"$RALPH\" cancel", b"").code, Some(0), "{umask}");
        let own = bed.path(".ralph");
        for folder in ["journal", "archive", "backup", "logs", "locks", "reports"] {
            assert!(!bed.files_in(&format!(".ralph/{folder}")).is_empty(), "{folder}");
        }
        is_private(&own);
        is_private(&bed.home().join(".local/state/ralph"));
        // Where a person says where it goes, their mask counts.
        let out = sh(&format!("env -u CLAUDE_CODE_SESSION_ID \"$RALPH\" report {id} --markdown -o report.md"), b"");
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        assert_eq!(mode(&bed.path("report.md")), 0o666 & !u32::from_str_radix(umask, 8).unwrap());
    }
}

#[test]
fn t9_what_an_older_version_left_open_is_closed_at_the_next_write() {
    let bed = Bed::with_loop(1, 20, "DONE");
    bed.work().send();
    let own = bed.path(".ralph");
    bed.write(".ralph/rounds/main-1/1.log", "a session");
    bed.write(".ralph/worktrees/x/tool", "#!/bin/sh\n");
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    for path in all_in(&own) {
        open(&path);
    }
    open(&own);
    let found = |id: &str| {
        let out = bed.ralph(&["doctor", "--json"]).stdout;
        let doc: Value = serde_json::from_str(&out).unwrap();
        doc["findings"].as_array().unwrap().iter().filter(|finding| finding["id"] == id).count()
    };
    assert_eq!(found("store.open"), 1);
    bed.work().send();
    is_private(&own);
    assert_eq!(found("store.open"), 0);
    assert_eq!(mode(&bed.path(".ralph/worktrees/x/tool")), 0o755, "what a working tree holds is git's affair");
    assert_eq!(mode(&bed.path(".ralph/rounds/main-1/1.log")), 0o700);
    open(&own);
    bed.ralph(&["doctor", "--fix"]);
    assert_eq!(mode(&own), 0o700);
}

#[test]
fn t9_what_a_gate_prints_is_masked_everywhere_and_judged_as_it_is() {
    let token = token();
    let own = "a value of the user's own";
    let script = format!(
        "printf 'deploying with {}'; sleep 0.2; echo '{} to https://app:opensesame@db/x'; echo 'DB_PASSWORD=hunter2hunter2' >&2; echo \"$MY_API_KEY\"; \
         echo -----BEGIN PRIVATE KEY-----; echo MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ; echo -----END PRIVATE KEY-----; \
         echo 'test a::b ... FAILED'; exit 1",
        &token[..20],
        &token[20..]
    );
    let bed = Gated::new(&gate("deploy", "sh deploy.sh", ""));
    bed.write("deploy.sh", script);
    let secrets = [token.as_str(), "opensesame", "hunter2hunter2", own, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"];
    let answer = bed.claim().env("MY_API_KEY", own).send();
    let told = reason(&answer);
    for masked in ["ghp_[masked] to https://app:[masked]@db/x", "DB_PASSWORD=[masked]", "\n[masked]\n", "-----END PRIVATE KEY-----"] {
        assert!(told.contains(masked), "{masked}: {told}");
    }
    for secret in secrets {
        assert!(!format!("{answer:?}").contains(secret), "{secret}: {answer:?}");
    }
    let mut command = bed.command(RALPH);
    let out = run(command.args(["gate", "--junit", "junit.xml", "--json"]).env("MY_API_KEY", own), b"");
    assert!(bed.read("junit.xml").contains("[masked]"));
    for secret in secrets {
        assert!(!out.stdout.contains(secret) && !out.stderr.contains(secret), "{secret}: {}{}", out.stdout, out.stderr);
    }
    bed.ralph_ok(&["report", "-o", "page.html"]);
    nowhere(&bed, &secrets, &["deploy.sh"]);
    assert!(fs::read_to_string(bed.files_in(".ralph/logs").pop().unwrap()).unwrap().contains("ghp_[masked]"));
}

/// What decides is read as it was printed.
#[test]
fn t9_masking_changes_no_verdict() {
    let token = token();
    let bed = Gated::new("[[gate]]\nname = \"said\"\nfile = \"out.txt\"\ncontains = 'key: ghp_[0-9a-zA-Z]+$'\n");
    bed.write("out.txt", format!("key: {token}\n"));
    let promise = "PASSWORD=hunter2hunter2";
    bed.write(LOOP, loop_text(ME, 1, 20, promise));
    bed.stop(&format!("It works.\n\n<promise>{promise}</promise>")).send();
    assert_eq!(bed.codes().last().map(String::as_str), Some("promise.accepted"));
    nowhere(&bed, &[&token], &["out.txt"]);
}

#[test]
fn t9_what_an_event_says_is_masked_in_journal_and_log() {
    let token = token();
    let bed = Bed::with_loop(1, 20, "DONE");
    let long = format!("I set GITHUB_TOKEN={token} and {} went on with {token}, for more than is shown {}", "x".repeat(120), token);
    bed.stop(&long)
        .field("background_tasks", json!([{"type": "bash", "status": "running", "command": format!("deploy --token {token}")}]))
        .send();
    let said = bed.journal().last().unwrap()["event"]["said"].as_str().unwrap().to_owned();
    assert!(said.contains("ghp_[masked]"), "{said}");
    nowhere(&bed, &[&token, &token[4..20], &token[20..]], &["transcript.jsonl"]);
}

/// Words of the agent's that a ruling quotes, in a loop without gates.
#[test]
fn t9_what_a_ruling_quotes_is_masked_in_the_journal() {
    let token = token();
    let quoted = [
        (format!("<blocked>I need a key that works, {token} does not</blocked>"), "/event/evidence/blocked"),
        (format!("<promise>DONE with {token}</promise>"), "/event/evidence/claim/why/found"),
    ];
    for (message, place) in quoted {
        let bed = Bed::with_loop(1, 20, "DONE");
        bed.stop(&message).send();
        let stop = bed.journal().into_iter().find(|line| line.pointer(place).is_some()).unwrap_or_else(|| panic!("{:?}", bed.journal()));
        let text = stop.pointer(place).and_then(Value::as_str).unwrap();
        assert!(text.contains("ghp_[masked]"), "{text}");
        nowhere(&bed, &[&token], &["transcript.jsonl"]);
    }
}

#[test]
fn t9_what_a_session_of_a_run_prints_is_masked_in_its_log_and_on_the_screen() {
    let token = token();
    let script = format!(
        "printf 'I use {}'; sleep 0.1; echo '{}'; echo 'password: \"hunter2hunter2\"' >&2; echo done; exit 0\n",
        &token[..15],
        &token[15..]
    );
    let runs = Runs::new(&script);
    let told = runs.bed.home().join("told");
    let out = runs.run(&["Go", "--max-iterations", "1", "--notify", &format!("cmd:cat >> '{}'", told.display())]);
    for secret in [token.as_str(), "hunter2hunter2"] {
        assert!(!out.stdout.contains(secret) && !out.stderr.contains(secret), "{}{}", out.stdout, out.stderr);
    }
    let logs: Vec<PathBuf> = all_in(&runs.bed.path(".ralph/rounds")).into_iter().filter(|path| path.is_file()).collect();
    assert!(fs::read_to_string(&logs[0]).unwrap().contains("ghp_[masked]"), "{logs:?}");
    nowhere(&runs.bed, &[&token, "hunter2hunter2"], &["agent.sh"]);
    is_private(&runs.bed.path(".ralph"));
}

/// The person's own prompt reaches the agent as it is: a password that a person gives an agent is meant for it.
#[test]
fn t9_a_persons_prompt_and_notes_reach_the_agent_as_they_are() {
    let bed = Bed::new();
    bed.write(LOOP, loop_text(ME, 1, 20, "DONE") + "Log in with password=hunter2hunter2.\n");
    assert!(reason(&bed.work().send()).contains("password=hunter2hunter2"));
    bed.ralph_ok(&["steer", "The new one is password=hunter3hunter3"]);
    assert!(reason(&bed.work().send()).contains("password=hunter3hunter3"));
}

/// The lines of the log in the user's state folder.
fn troubles(bed: &Bed) -> Vec<Value> {
    let path = bed.home().join(".local/state/ralph/hook.log");
    fs::read_to_string(path).unwrap_or_default().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn t21_an_event_that_is_no_json_leaves_a_line_where_there_is_no_folder() {
    let bed = Bed::new();
    bed.stop("x").send_raw("no event");
    let [trouble] = &troubles(&bed)[..] else { panic!("{:?}", troubles(&bed)) };
    assert_eq!((&trouble["code"], &trouble["project"]), (&json!("input.invalid"), &json!(bed.dir())));
    assert!(trouble["cause"].as_str().unwrap().contains("not a JSON event"), "{trouble}");
    assert!(bed.tree().is_empty(), "the project itself stays untouched: {:?}", bed.tree());
    assert_eq!(mode(&bed.home().join(".local/state/ralph/hook.log")), 0o600);
    bed.stop("x").send_raw("no event");
    assert_eq!(troubles(&bed).len(), 1, "the same is written once an hour");
    let doctor = bed.ralph(&["doctor"]).stdout;
    assert!(
        doctor.contains("hook.trouble") && doctor.contains("not a JSON event") && doctor.contains("check the registered command"),
        "{doctor}"
    );
}

#[test]
fn t21_a_stop_where_there_never_was_a_loop_writes_nothing() {
    let bed = Bed::new();
    bed.work().send();
    assert!(bed.tree().is_empty() && !bed.home().join(".local").exists());
}

#[test]
fn t21_a_loop_that_waits_because_git_tracks_it_leaves_a_line() {
    let bed = Bed::in_git();
    bed.write(LOOP, loop_text("null", 1, 9, "DONE"));
    bed.git(&["add", "--force", LOOP]);
    bed.commit_all("with a loop");
    assert_eq!(bed.work().send().json, None);
    assert!(!bed.exists(".ralph"));
    let [trouble] = &troubles(&bed)[..] else { panic!("{:?}", troubles(&bed)) };
    assert_eq!((&trouble["code"], &trouble["event"]), (&json!("loop.tracked"), &json!("Stop")));
    let doctor = bed.ralph(&["doctor"]).stdout;
    assert!(doctor.contains("git tracks its file") && doctor.contains("git rm --cached"), "{doctor}");
}

#[test]
fn t21_a_state_folder_that_cannot_be_written_is_told_in_the_projects_log() {
    let bed = Bed::with_loop(1, 20, "DONE");
    fs::create_dir_all(bed.home().join(".local/state")).unwrap();
    fs::write(bed.home().join(".local/state/ralph"), "a file").unwrap();
    bed.work().send();
    let log = bed.hook_log();
    assert!(log.last().unwrap().contains("error=") && log.last().unwrap().contains(".local/state/ralph"), "{log:?}");
}

#[test]
fn t21_what_went_wrong_inside_leaves_its_cause() {
    let bed = Bed::with_loop(1, 20, "DONE");
    fs::write(bed.path(".ralph"), "a file").unwrap();
    bed.work().send();
    let [trouble] = &troubles(&bed)[..] else { panic!("{:?}", troubles(&bed)) };
    assert!(trouble["cause"].as_str().unwrap().contains("not a plain folder"), "{trouble}");
    assert_eq!(trouble["code"], "internal.error");
}
