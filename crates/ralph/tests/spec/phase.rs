//! `ralph phase` through the real gh: one case for every situation that a branch can be in (S2-1), and what each fault of the forge leads to.

use ralph_testkit::{Check, Fault, Output};
use serde_json::Value;

use crate::{
    common::{Bed, run},
    hub,
    hub::{Hubbed, script},
};

fn phase(hub: &Hubbed) -> Value {
    told(&hub.ralph_asking(&["phase", "--json"]))
}

fn told(out: &Output) -> Value {
    let told: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}{}", out.stdout, out.stderr));
    let code = i32::from(told["phase"] == "unknown");
    assert_eq!((out.code, out.stderr.as_str()), (Some(code), ""), "{told}");
    told
}

fn evidence(told: &Value) -> String {
    told["evidence"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_phase(told: &Value, phase: &str, because: &str, next: &str) {
    assert_eq!(told["phase"], phase, "{told:#}");
    assert!(evidence(told).contains(because), "{because}: {told:#}");
    assert!(told["next"].as_str().unwrap_or_default().contains(next), "{next}: {told:#}");
}

#[test]
fn s2_1_no_pull_request_yet() {
    let hub = hub!();
    assert_phase(&phase(&hub), "p0", "there is no pull request for feature/x in acme/widget", "gh pr create");
    assert_eq!(hub.hub.requests().len(), 1, "one question is enough: {:?}", hub.hub.requests());
}

#[test]
fn s2_1_checks_by_what_they_say() {
    let hub = hub!();
    hub.open(&[]);
    let many = |checks: &[Check]| checks.to_vec();
    #[rustfmt::skip]
    let table = [
        (many(&[Check::run("build")]), "p2", "CI is green", "gh pr merge 1 --squash --delete-branch"),
        (many(&[Check::run("build").failed(), Check::run("lint")]), "p1", "CI / build (failure); 1 passes", "Fix it, commit and push"),
        (many(&[Check::run("build").failed(), Check::run("lint").pending()]), "p1", "1 still runs", "Fix it"),
        (many(&[Check::run("build").pending(), Check::run("lint")]), "pending", "CI / build (in progress); 1 of 2 pass", "Wait"),
        (many(&[Check::run("build").queued()]), "pending", "CI / build (queued)", "Wait"),
        (many(&[Check::run("build").concluded("SKIPPED"), Check::run("lint").concluded("NEUTRAL")]), "p2", "2 checks pass", "merge"),
        (many(&[Check::run("build").concluded("CANCELLED")]), "p1", "CI / build (cancelled)", "run it again: `gh run rerun"),
        (many(&[Check::run("build").concluded("TIMED_OUT")]), "p1", "CI / build (timed out)", "run it again: `gh run rerun"),
        (many(&[Check::run("build").concluded("STARTUP_FAILURE")]), "p1", "(startup failure)", "run it again: `gh run rerun"),
        (many(&[Check::run("build").concluded("STALE")]), "p1", "(stale)", "run it again: `gh run rerun"),
        (many(&[Check::run("deploy").concluded("ACTION_REQUIRED")]), "unknown", "needs an approval: CI / deploy", "Approve it on https://"),
        (many(&[Check::run("build").concluded("MOONSHINE")]), "unknown", "says \"MOONSHINE\"", ""),
        (many(&[Check::status("ci/circle")]), "pending", "more checks may still appear", "Wait"),
        (many(&[Check::status("ci/circle"), Check::run("build")]), "p2", "2 checks pass", "merge"),
        (many(&[Check::status("ci/circle").failed(), Check::run("build")]), "p1", "ci/circle (failure); 1 passes", "Fix it"),
        (many(&[Check::status("ci/circle").concluded("ERROR")]), "p1", "ci/circle (error)", "Fix it"),
        (many(&[Check::status("ci/circle").pending(), Check::run("build")]), "pending", "ci/circle (pending)", "Wait"),
    ];
    for (checks, wanted, because, next) in table {
        // Each row sees the head for the first time: the table as a whole may take longer than checks are given to appear.
        let _ = std::fs::remove_file(hub.place_of_kept("forge/heads.json"));
        hub.hub.forget_checks(&hub.head());
        for check in &checks {
            hub.hub.check(&hub.head(), check.clone());
        }
        let asked = hub.hub.requests().len();
        assert_phase(&phase(&hub), wanted, because, next);
        assert_eq!(hub.hub.requests().len(), asked + 1, "one question is enough");
    }
}

#[test]
fn s2_1_right_after_a_push_no_checks_are_pending_and_later_a_question() {
    let hub = hub!();
    hub.open(&[]);
    assert_phase(&phase(&hub), "pending", "no check reports on", "Wait");
    // As if the head had been seen for the first time three minutes ago, on the clock that nobody sets.
    let path = hub.place_of_kept("forge/heads.json");
    let mut heads: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let at = heads[0]["at_ms"].as_u64().unwrap();
    heads[0]["at_ms"] = at.saturating_sub(180_000).into();
    std::fs::write(&path, heads.to_string()).unwrap();
    assert_phase(&phase(&hub), "unknown", "no check reports on", "no_checks = \"pass\"");
    hub.write("ralph.toml", "[pr]\nno_checks = \"pass\"\n");
    assert_phase(&phase(&hub), "p2", "none is asked for", "gh pr merge");
}

#[test]
fn s2_1_a_clock_that_jumps_changes_nothing() {
    let hub = hub!();
    hub.open(&[]);
    assert_phase(&phase(&hub), "pending", "no check reports on", "Wait");
    // A sighting that lies in the future is from before the machine was started again: the wait begins anew, and does not end at once.
    let path = hub.place_of_kept("forge/heads.json");
    let mut heads: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    heads[0]["at_ms"] = u64::MAX.into();
    std::fs::write(&path, heads.to_string()).unwrap();
    assert_phase(&phase(&hub), "pending", "no check reports on", "Wait");
    // No date of GitHub's is compared with the clock here: checks of the year 2001 and of 2099 count alike.
    for (begun, ended) in [("2001-01-01T00:00:00Z", "2001-01-01T00:10:00Z"), ("2099-01-01T00:00:00Z", "2099-01-01T00:10:00Z")] {
        hub.hub.forget_checks(&hub.head());
        hub.hub.check(&hub.head(), Check::run("build").times(begun, ended));
        assert_phase(&phase(&hub), "p2", "CI is green", "merge");
    }
}

#[test]
fn s2_1_conflicts_keep_workflows_from_running() {
    let hub = hub!();
    let number = hub.open(&[]);
    hub.hub.edit(number, |pull| pull.mergeable = "CONFLICTING".to_owned());
    assert_phase(&phase(&hub), "p1", "has conflicts with main", "git pull --no-rebase origin main");
}

#[test]
fn s2_1_a_draft_is_a_pull_request() {
    let hub = hub!();
    let number = hub.open(&[Check::run("build")]);
    hub.hub.edit(number, |pull| pull.draft = true);
    assert_phase(&phase(&hub), "p2", "#1 is open as a draft", "gh pr ready 1");
}

#[test]
fn s2_1_of_several_the_newest_open_one_counts() {
    let hub = hub!();
    hub.open(&[Check::run("build")]);
    let second = hub.hub.open("feature/x", &hub.head());
    hub.hub.edit(second, |pull| pull.base = "next".to_owned());
    let told = phase(&hub);
    assert_phase(&told, "p2", "further open ones of the branch: #1", "gh pr merge 2");
    assert_eq!(told["pull_request"]["number"], second);
}

#[test]
fn s2_1_closed_and_merged_ones() {
    let hub = hub!();
    let number = hub.open(&[Check::run("build")]);
    hub.hub.close(number);
    assert_phase(&phase(&hub), "p0", "#1 was closed and not merged", "gh pr reopen 1");
    let number = hub.hub.open("feature/x", &hub.head());
    hub.hub.merge(number);
    let told = phase(&hub);
    assert_phase(&told, "p2", "#2 is merged", "");
    assert_eq!(told["pull_request"]["state"], "merged");
    // New commits on the same branch: what was merged is history.
    hub.origin().commit("b.txt", "b\n");
    assert_phase(&phase(&hub), "p0", "#2 was merged before the commits here", "gh pr create");
}

#[test]
fn s2_1_a_strangers_fork_is_not_ours_and_our_own_is() {
    let hub = hub!();
    hub.hub.open_from_fork("mallory/widget", "feature/x", &hub.head());
    hub.hub.passed(&hub.head(), "build");
    assert_phase(&phase(&hub), "p0", "there is no pull request for feature/x", "gh pr create");
    hub.git(&["remote", "add", "fork", "https://github.com/me/widget.git"]);
    let number = hub.hub.open_from_fork("me/widget", "feature/x", &hub.head());
    let told = phase(&hub);
    assert_phase(&told, "p2", "#2 is open", "gh pr merge 2");
    assert_eq!(told["pull_request"]["number"], number);
}

#[test]
fn s2_1_without_a_branch_or_on_the_default_one() {
    let hub = hub!();
    hub.open(&[Check::run("build")]);
    hub.git(&["checkout", "--quiet", "--detach"]);
    assert_phase(&phase(&hub), "p0", "no branch is checked out", "git switch");
    hub.git(&["checkout", "--quiet", "main"]);
    assert_phase(&phase(&hub), "p0", "main is checked out", "git switch -c NAME");
    assert_eq!(hub.hub.requests().len(), 0, "nothing to ask");
}

#[test]
fn s2_1_s2_5_a_head_that_moved_meanwhile() {
    let hub = hub!();
    hub.open(&[Check::run("build")]);
    hub.origin().commit("b.txt", "b\n");
    hub.origin().commit("c.txt", "c\n");
    assert_phase(&phase(&hub), "p1", "2 commits are not pushed", "git push");
    hub.git(&["reset", "--quiet", "--hard", "HEAD~2"]);
    assert_phase(&phase(&hub), "p2", "CI is green", "merge");
    // Somebody else pushed.
    let bare = hub.origin().bare().to_str().unwrap().to_owned();
    let moved = hub
        .git(&[
            "-C",
            &bare,
            "-c",
            "user.name=they",
            "-c",
            "user.email=they@example.invalid",
            "commit-tree",
            "feature/x^{tree}",
            "-p",
            "feature/x",
            "-m",
            "theirs",
        ])
        .trim()
        .to_owned();
    hub.git(&["-C", &bare, "update-ref", "refs/heads/feature/x", &moved]);
    hub.hub.passed(&moved, "build");
    assert_phase(&phase(&hub), "p1", "is not known here: it moved meanwhile", "git pull");
    hub.git(&["fetch", "--quiet", &bare, "feature/x"]);
    assert_phase(&phase(&hub), "p1", "1 commit is missing here", "git pull");
    hub.origin().commit("d.txt", "d\n");
    assert_phase(&phase(&hub), "p1", "1 commit is not pushed, and 1 commit is missing here", "git pull --rebase");
}

#[test]
fn s2_1_required_and_optional_checks() {
    let hub = hub!();
    hub.write("ralph.toml", "[pr]\nchecks = \"required\"\nignore = [\"codecov/*\"]\n");
    hub.open(&[Check::run("build").required(), Check::run("nightly").failed()]);
    assert_phase(&phase(&hub), "p2", "CI is green", "merge");
    hub.hub.check(&hub.head(), Check::run("build").required().failed());
    assert_phase(&phase(&hub), "p1", "CI / build (failure)", "Fix it");
    hub.hub.check(&hub.head(), Check::run("build").required().pending());
    assert_phase(&phase(&hub), "pending", "CI / build (in progress)", "Wait");
    hub.hub.check(&hub.head(), Check::run("build").required());
    hub.hub.check(&hub.head(), Check::status("codecov/patch").failed().required());
    assert_phase(&phase(&hub), "p2", "CI is green", "merge");
    hub.write("ralph.toml", "");
    assert_phase(&phase(&hub), "p1", "CI / nightly (failure)", "Fix it");
}

#[test]
fn s2_1_more_checks_than_a_list_holds() {
    let hub = hub!();
    hub.open(&[]);
    for n in 0..105 {
        hub.hub.check(&hub.head(), Check::run(&format!("job{n:03}")));
    }
    hub.hub.check(&hub.head(), Check::run("zz-last").failed());
    assert_phase(&phase(&hub), "p1", "zz-last (failure)", "Fix it");
}

#[test]
fn s2_1_what_lasts_says_what_to_type() {
    let hub = hub!();
    hub.open(&[Check::run("build")]);
    // Not signed in.
    let mut command = hub.asking_command(&["phase", "--json"]);
    command.env_remove("GH_TOKEN");
    assert_phase(&told(&run(&mut command, b"")), "unknown", "gh is not signed in to github.com", "gh auth login");
    // No gh.
    let mut command = hub.asking_command(&["phase", "--json"]);
    command.env("PATH", hub.path_without_gh());
    assert_phase(&told(&run(&mut command, b"")), "unknown", "`gh`, through which ralph asks GitHub, is not there", "Install it");
    for (fault, because, next) in [
        (Fault::BadCredentials, "GitHub does not accept gh's token", "gh auth login"),
        (Fault::NoRepository, "GitHub knows no acme/widget", "gh auth login"),
        (Fault::Untrusted, "certificate is not trusted", "rust"),
    ] {
        hub.hub.fail_always(fault);
        assert_phase(&phase(&hub), "unknown", because, next);
        hub.hub.heal();
    }
}

#[test]
fn s2_1_a_gh_of_the_project_is_not_run() {
    let hub = hub!();
    hub.open(&[Check::run("build").failed()]);
    std::fs::create_dir_all(hub.path("bin")).unwrap();
    script(&hub.path("bin/gh"), "touch \"$HOME/forged\"; echo '[]'");
    let mut command = hub.asking_command(&["phase", "--json"]);
    command.env("PATH", format!("bin:{}:{}", hub.path("bin").display(), hub.path_with_gh()));
    assert_phase(&told(&run(&mut command, b"")), "p1", "CI / build (failure)", "Fix it");
    assert!(!hub.home().join("forged").exists());
}

#[test]
fn s2_1_what_passes_by_is_unknown_and_says_so() {
    let hub = hub!();
    hub.open(&[Check::run("build")]);
    for (fault, because) in [
        (Fault::ServerError, "HTTP 500"),
        (Fault::BadGateway, "HTTP 502"),
        (Fault::PrimaryLimit { reset: 4_000_000_000 }, "rate limit"),
        (Fault::SecondaryLimit { retry_after: 60 }, "rate limit"),
        (Fault::GraphqlLimit { reset: 4_000_000_000 }, "rate limit"),
        (Fault::Truncated, "EOF"),
        (Fault::Html, "invalid character"),
        (Fault::Refused, "connection refused"),
        (Fault::Garbage, "right now"),
    ] {
        hub.hub.fail_always(fault.clone());
        assert_phase(&phase(&hub), "unknown", because, "Try again");
        hub.hub.heal();
    }
    let mut offline = hub.asking_command(&["phase", "--json"]);
    offline.envs(hub.hub.env_offline());
    assert_phase(&told(&run(&mut offline, b"")), "unknown", "connection refused", "Try again");
    // Gh dies, or prints what is no answer.
    for (script, because) in [("kill -9 $$", "ended by a signal"), ("echo '[{\"number\":1,'", "cannot be read"), ("exit 3", "exit code 3")]
    {
        let path = hub.instead_of_gh(script);
        let mut command = hub.asking_command(&["phase", "--json"]);
        command.env("PATH", path);
        assert_phase(&told(&run(&mut command, b"")), "unknown", because, "Try again");
    }
    hub.hub.fail(Fault::Slow(std::time::Duration::from_secs(3)), 1);
    assert_phase(&phase(&hub), "p2", "CI is green", "merge");
}

#[test]
fn s2_1_no_repository_no_remote_and_another_forge() {
    let bed = Bed::new();
    assert_phase(&told(&bed.ralph(&["phase", "--json"])), "unknown", "not a git repository", "git init");
    let bed = Bed::in_git();
    assert_phase(&told(&bed.ralph(&["phase", "--json"])), "unknown", "no remote", "git remote add");
    bed.git(&["remote", "add", "origin", "git@gitlab.com:acme/widget.git"]);
    assert_phase(&told(&bed.ralph(&["phase", "--json"])), "unknown", "is on GitLab", "");
    bed.git(&["remote", "set-url", "origin", "/srv/widget.git"]);
    assert_phase(&told(&bed.ralph(&["phase", "--json"])), "unknown", "leads to GitHub", "git remote add");
}

#[test]
fn s2_1_for_people() {
    let hub = hub!();
    hub.open(&[Check::run("build").failed()]);
    let out = hub.ralph_asking(&["phase"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let head = &hub.head()[..7];
    assert_eq!(
        out.stdout,
        format!(
            "p1  the pull request needs work\n  request     #1 Pull request 1\n  because     #1 is open (https://github.com/acme/widget/pull/1)\n\
             \x20 because     CI fails on {head}: CI / build (failure)\n  next        Fix it, commit and push.\n"
        )
    );
    // The first line says which of the two it is.
    let opening = || hub.ralph_asking(&["phase"]).stdout.lines().next().unwrap().to_owned();
    hub.hub.close(1);
    assert_eq!(opening(), "p0  the pull request was closed");
    hub.open(&[Check::run("build")]);
    assert_eq!(opening(), "p2  CI is green");
    hub.hub.merge(2);
    assert_eq!(opening(), "p2  the pull request is merged");
}
