//! The gates `pr`, `ci` and `merged` through the real gh: what a stop is told, what `ralph gate` shows, and who merges when.

use std::{fmt::Write as _, time::Duration};

use ralph_testkit::{Check, Fault};
use serde_json::Value;

use crate::{
    common::{Event, ME, run},
    gated::{line, send_with},
    hub,
    hub::Hubbed,
};

/// What `ralph gate --json` finds, by gate.
fn gate(hub: &Hubbed, code: i32) -> Vec<Value> {
    let out = hub.ralph_asking(&["gate", "--json"]);
    assert_eq!(out.code, Some(code), "{}{}", out.stdout, out.stderr);
    let report: Value = serde_json::from_str(&out.stdout).unwrap();
    report["findings"].as_array().unwrap().clone()
}

#[track_caller]
fn assert_found(found: &[Value], gate: &str, verdict: &str, what: &str) {
    let finding = found.iter().find(|finding| finding["gate"] == gate).unwrap_or_else(|| panic!("no {gate}: {found:?}"));
    assert_eq!(finding["verdict"], verdict, "{finding:#}");
    assert!(finding["what"].as_str().unwrap().contains(what), "{what}: {finding:#}");
}

const GATES: &str = "[[gate]]\npr = \"open\"\n[[gate]]\nci = \"all\"\n[[gate]]\npr = \"merged\"\n";

#[test]
fn s2_2_s2_3_the_gates_of_a_pull_request_in_their_order() {
    let hub = hub!();
    hub.write("ralph.toml", GATES);
    let found = gate(&hub, 1);
    assert_found(&found, "pr", "fail", "there is no pull request for feature/x");
    assert_found(&found, "ci", "unknown", "not run, because \"pr\" does not hold");
    assert_found(&found, "merged", "unknown", "not run, because \"pr\" does not hold");
    assert!(found[0]["next"].as_str().unwrap().contains("gh pr create"));
    hub.open(&[Check::run("build").pending()]);
    let asked = hub.hub.requests().len();
    let found = gate(&hub, 75);
    assert_found(&found, "pr", "pass", "#1 is open");
    assert_found(&found, "ci", "wait", "CI runs on");
    assert_found(&found, "merged", "unknown", "not run, because \"ci\" waits");
    assert_eq!(hub.hub.requests().len(), asked + 1, "one look for all gates");
    let pushed = hub.head();
    hub.origin().commit("src.txt", "two\n");
    let found = gate(&hub, 1);
    assert_found(&found, "pr", "fail", "1 commit is not pushed, and so not in #1");
    hub.git(&["reset", "--quiet", "--hard", &pushed]);
    hub.hub.passed(&pushed, "build");
    let found = gate(&hub, 1);
    assert_found(&found, "ci", "pass", "CI is green");
    assert_found(&found, "merged", "fail", "#1 is not merged yet");
    hub.write("ralph.toml", format!("{GATES}[pr]\nbase = \"main\"\n"));
    hub.hub.edit(1, |request| "scratch".clone_into(&mut request.base));
    assert_found(&gate(&hub, 1), "pr", "fail", "#1 goes to scratch, and must go to main");
    hub.hub.edit(1, |request| "main".clone_into(&mut request.base));
    hub.hub.merge(1);
    let found = gate(&hub, 0);
    assert_found(&found, "pr", "pass", "#1 is merged");
    assert_found(&found, "merged", "pass", "#1 is merged into main");
}

#[test]
fn s2_4_red_checks_come_with_the_end_of_their_logs() {
    let hub = hub!();
    hub.write("ralph.toml", "[[gate]]\nci = \"all\"\n");
    let mut noise = String::new();
    (0..2_000).for_each(|n| writeln!(noise, "downloading crate {n}").unwrap());
    let log = format!(
        "{noise}##[group]Run cargo test\ntest widgets::turn ... FAILED\nassertion failed: left == right\n##[error]Process completed with exit code 101.\nPost job cleanup.\n/usr/bin/git version\n"
    );
    hub.open(&[
        Check::run("build").failed().log(&log),
        Check::run("lint").concluded("TIMED_OUT").log("nothing more came\n"),
        Check::run("docs"),
        Check::status("ci/circle").failed(),
    ]);
    let found = gate(&hub, 1);
    assert_found(&found, "ci", "fail", "CI / build (failure), CI / lint (timed out), ci/circle (failure); 1 passes");
    let detail = found[0]["detail"].as_str().unwrap();
    for wanted in [
        "CI / build (failure): https://",
        "assertion failed: left == right",
        "exit code 101",
        "nothing more came",
        "ci/circle (failure): https://",
    ] {
        assert!(detail.contains(wanted), "{wanted}: {detail}");
    }
    for unwanted in ["Post job cleanup", "##[", "T05:", "downloading crate 1000"] {
        assert!(!detail.contains(unwanted), "{unwanted}: {detail}");
    }
    assert!(detail.len() < 4_000, "{}", detail.len());
    let whole = hub.read(found[0]["log"].as_str().unwrap());
    assert!(
        whole.contains("downloading crate 1000") && whole.contains("Post job cleanup") && whole.contains("nothing more came"),
        "the whole log is kept"
    );
    assert_eq!(found[0]["next"], "Fix it, commit and push.");
}

#[test]
fn s2_4_a_log_that_cannot_be_had_changes_no_verdict() {
    let hub = hub!();
    hub.write("ralph.toml", "[[gate]]\nci = \"all\"\n");
    hub.open(&[Check::run("build").failed().log("x\n")]);
    // The first question is about the pull request; the second one is for the log.
    hub.hub.fail(Fault::Slow(Duration::ZERO), 1);
    hub.hub.fail(Fault::ServerError, 1);
    let found = gate(&hub, 1);
    assert_found(&found, "ci", "fail", "CI / build (failure)");
    assert!(found[0]["detail"].as_str().unwrap().contains("its log cannot be had"), "{found:?}");
}

#[test]
fn s2_5_trouble_that_passes_is_waited_for_and_trouble_that_lasts_is_told() {
    let hub = hub!();
    hub.write("ralph.toml", "[[gate]]\npr = \"open\"\n");
    hub.open(&[]);
    hub.hub.fail_always(Fault::BadGateway);
    let found = gate(&hub, 75);
    assert_found(&found, "pr", "wait", "GitHub cannot be asked right now: HTTP 502");
    assert!(found[0]["what"].as_str().unwrap().ends_with("ralph tries again"), "{found:?}");
    hub.hub.heal();
    hub.hub.fail_always(Fault::BadCredentials);
    let found = gate(&hub, 1);
    assert_found(&found, "pr", "unknown", "GitHub does not accept gh's token");
    assert_eq!(found[0]["needs"], "`gh auth login --hostname github.com`");
}

#[test]
fn s2_5_a_server_that_hangs_is_left_after_a_while() {
    let hub = hub!();
    hub.open(&[]);
    hub.hub.fail_always(Fault::Slow(Duration::from_secs(100)));
    let out = hub.ralph_asking(&["start", "--preset", "pre-pr", "open one"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(out.stdout.contains("phase unknown: GitHub cannot be asked right now: it did not answer within"), "{}", out.stdout);
    assert!(out.duration < Duration::from_secs(15), "{:?}", out.duration);
}

/// The body of `ralph.toml` that asks for nothing but the pull request.
const BARE: &str = "[pr]\naudit = false\nquality = false\nevidence = false\n";

/// A stop of the loop's session, with gh and the hub: what the agent is told, in one text.
fn stop(hub: &Hubbed, said: &str) -> String {
    heard(&hub.asking(hub.stop(said)))
}

fn heard(event: &Event<'_>) -> String {
    let out = run(&mut event.command(), event.json().as_bytes());
    format!("{}{}", out.stdout, out.stderr)
}

#[test]
fn s2_3_s2_6_the_loop_keeps_to_its_pull_request_when_the_branch_is_gone() {
    let hub = hub!();
    hub.write("ralph.toml", BARE);
    let started = hub.ralph_asking(&["start", "--preset", "after-pr", "--session", ME, "get it merged"]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert!(started.stdout.contains("phase p0: there is no pull request"), "{}", started.stdout);
    hub.open(&[Check::run("build")]);
    let told = stop(&hub, "I opened it.");
    assert!(told.contains("#1 is not merged yet") && told.contains("gh pr merge 1 --squash --delete-branch"), "{told}");
    // What `gh pr merge --delete-branch` leaves behind.
    hub.hub.merge(1);
    hub.git(&["checkout", "--quiet", "main"]);
    hub.git(&["branch", "--quiet", "-D", "feature/x"]);
    // An agent may give the remote another address: the gates go on asking where the loop began.
    hub.git(&["remote", "set-url", "origin", "https://github.com/mallory/widget.git"]);
    let told = stop(&hub, "Merged. <promise>CI_PASSED</promise>");
    assert_eq!(hub.last_ended()["status"], "complete", "{told}");
}

#[test]
fn s2_6_ralph_merges_at_the_claim_and_not_before() {
    let hub = hub!();
    hub.write("ralph.toml", format!("{BARE}merge = \"ralph\"\n"));
    let trusted = hub.ralph_asking(&["trust", "--yes"]);
    assert!(trusted.stdout.contains("gh pr merge NUMBER --squash --delete-branch --match-head-commit COMMIT"), "{}", trusted.stdout);
    let started = hub.ralph_asking(&["start", "--preset", "after-pr", "--session", ME, "get it merged"]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    hub.open(&[Check::run("build").failed()]);
    stop(&hub, "Merge it. <promise>CI_PASSED</promise>");
    assert_eq!(hub.hub.pull(1).state, "OPEN", "red is not merged");
    hub.hub.passed(&hub.head(), "build");
    let told = stop(&hub, "It is green.");
    assert!(told.contains("ralph merges it once"), "{told}");
    assert_eq!(hub.hub.pull(1).state, "OPEN", "nothing was claimed");
    // Neither a draft nor what lies here and is not pushed.
    hub.hub.edit(1, |pull| pull.draft = true);
    let told = stop(&hub, "Now. <promise>CI_PASSED</promise>");
    assert!(told.contains("gh pr ready 1"), "{told}");
    hub.hub.edit(1, |pull| pull.draft = false);
    hub.origin().commit("b.txt", "b\n");
    let told = stop(&hub, "Now then. <promise>CI_PASSED</promise>");
    assert!(told.contains("1 commit is not pushed"), "{told}");
    assert_eq!(hub.hub.pull(1).state, "OPEN");
    hub.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let told = stop(&hub, "At last. <promise>CI_PASSED</promise>");
    assert_eq!(hub.hub.pull(1).state, "MERGED", "{told}");
    assert_eq!(hub.last_ended()["status"], "complete", "{told}");
    assert!(!hub.hub.branches().iter().any(|(name, _)| name == "feature/x"), "its branch is deleted there");
    assert_eq!(hub.git(&["branch", "--show-current"]).trim(), "feature/x", "and nothing happened here");
}

#[test]
fn s2_6_nothing_is_merged_that_nobody_trusted() {
    let hub = hub!();
    hub.write("ralph.toml", format!("{BARE}merge = \"ralph\"\n"));
    hub.open(&[Check::run("build")]);
    hub.ralph_asking(&["start", "--preset", "after-pr", "--session", ME, "get it merged"]);
    let told = heard(&hub.claims());
    assert_eq!(hub.hub.pull(1).state, "OPEN", "{told}");
    assert!(told.contains("because ralph.toml, which says `merge = ") && told.contains("`ralph trust`"), "{told}");
}

/// S2-5: who may merge is no question while the checks run, and no round is spent on it.
#[test]
fn s2_5_a_merge_that_nobody_trusted_does_not_keep_the_loop_from_waiting() {
    let hub = hub!();
    hub.write("ralph.toml", format!("{BARE}merge = \"ralph\"\n"));
    hub.open(&[Check::run("build").pending()]);
    hub.ralph_asking(&["start", "--preset", "after-pr", "--session", ME, "get it merged"]);
    let (answer, _) = send_with(&hub.works(), &["--timeout", "9"]);
    assert!(line(&answer).contains("parked at iteration 1"), "{answer:?}");
    assert_eq!(hub.codes(), ["gate.waiting"]);
}

#[test]
fn s2_2_evidence_needs_an_entry() {
    let hub = hub!();
    hub.write("ralph.toml", "[pr]\naudit = false\nquality = false\n");
    hub.open(&[]);
    hub.ralph_asking(&["start", "--preset", "pre-pr", "open it"]);
    let evidence = |text: &str| {
        hub.write(".layer2-evidence.md", text);
        gate(&hub, i32::from(!text.contains("pass")))
    };
    assert_found(
        &evidence("# Evidence\n\n<!-- one entry for each run -->\n- TODO\n"),
        "evidence",
        "fail",
        ".layer2-evidence.md has no entry",
    );
    assert_eq!(
        hub.hub.requests().iter().filter(|asked| asked.path.contains("graphql")).count(),
        1,
        "no network for what a file decides: only start asked"
    );
    assert_found(&evidence("# Evidence\n\n- `cargo test`: 12 pass\n"), "evidence", "pass", "has 1 entry");
}

#[test]
fn s2_2_a_preset_that_can_prove_nothing_is_refused() {
    let hub = hub!();
    for preset in ["pre-pr", "after-pr"] {
        let mut command = hub.asking_command(&["start", "--preset", preset, "go"]);
        let out = run(command.env("PATH", hub.path_without_gh()), b"");
        assert_eq!(out.code, Some(1), "{}", out.stdout);
        assert!(
            out.stderr.contains("`gh`, through which ralph asks GitHub, is not there") && out.stderr.contains("https://cli.github.com"),
            "{}",
            out.stderr
        );
    }
    let typed = hub.asking(hub.typed("/ralph-loop go --preset after-pr")).env("PATH", hub.path_without_gh());
    let told = heard(&typed);
    assert!(told.contains("`gh`, through which ralph asks GitHub, is not there"), "{told}");
    hub.git(&["remote", "remove", "origin"]);
    let out = hub.ralph_asking(&["start", "--preset", "pre-pr", "go"]);
    assert!(out.code == Some(1) && out.stderr.contains("has no remote") && out.stderr.contains("git remote add"), "{}", out.stderr);
    assert_eq!(hub.hub.requests().len(), 0);
}

#[test]
fn s2_8_doctor_says_what_gates_about_pull_requests_need() {
    let hub = hub!();
    hub.write("ralph.toml", "[[gate]]\nci = \"all\"\n");
    let finding = |remove_token: bool| {
        let mut command = hub.asking_command(&["doctor", "--json"]);
        if remove_token {
            command.env_remove("GH_TOKEN");
        }
        let report: Value = serde_json::from_str(&run(&mut command, b"").stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        findings.into_iter().find(|finding| finding["id"] == "gates.forge").unwrap()
    };
    assert_eq!(finding(false)["severity"], "good");
    let missing = finding(true);
    assert_eq!((&missing["severity"], &missing["fix"]), (&"error".into(), &"gh auth login --hostname github.com".into()), "{missing:#}");
    assert_eq!(hub.hub.requests().len(), 0, "nothing is asked over the network");
}

#[test]
fn s2_6_only_the_commit_that_was_checked_is_merged() {
    let hub = hub!();
    hub.write("ralph.toml", format!("{BARE}merge = \"ralph\"\n"));
    hub.ralph_asking(&["trust", "--yes"]);
    hub.open(&[Check::run("build")]);
    hub.ralph_asking(&["start", "--preset", "after-pr", "--session", ME, "get it merged"]);
    // Between the look and the merge somebody pushes: gh's answer to the first question is late, and already old then.
    let gh = hub.path_with_gh();
    let bare = hub.origin().bare().display().to_string();
    let push = format!(
        "c=$(git -C {bare} -c user.name=x -c user.email=x@example.invalid commit-tree 'feature/x^{{tree}}' -p feature/x -m late); \
         git -C {bare} update-ref refs/heads/feature/x $c"
    );
    let script = format!("PATH='{gh}'\ncase \"$1 $2\" in 'pr merge') {push};; esac\nexec gh \"$@\"");
    let told = heard(&hub.claims().env("PATH", hub.instead_of_gh(&script)));
    assert_eq!(hub.hub.pull(1).state, "OPEN", "{told}");
    assert!(told.contains("could not be merged"), "{told}");
}
