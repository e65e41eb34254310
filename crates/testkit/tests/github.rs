//! The real `gh` against the scripted GitHub: what ralph will ask, what it gets, and how each failure is worded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::time::{Duration, Instant};

use ralph_testkit::github::Head;
use ralph_testkit::{Check, Fault, Gh, GitHub, Origin, Output, Project};
use serde_json::{Value, json};

const FIELDS: &str = "number,state,isDraft,headRefOid,headRefName,headRepository,headRepositoryOwner,isCrossRepository,baseRefName,url,title,createdAt,updatedAt,mergedAt,mergeable,mergeStateStatus,statusCheckRollup";

/// A project with an origin at a hub, on the branch `feature/x` with one pushed commit.
struct Bed {
    gh: Gh,
    hub: GitHub,
    project: Project,
    oid: String,
}

impl Bed {
    /// `None`, and said so, where there is no `gh`.
    fn new() -> Option<Self> {
        let gh = Gh::installed().map_err(|skip| skip.tell()).ok()?;
        let (hub, project) = (GitHub::start("acme/widget"), Project::new());
        let origin = Origin::at(&hub, &project);
        origin.branch("feature/x");
        origin.commit("a.txt", "a\n");
        let oid = origin.push();
        Some(Self { gh, hub, project, oid })
    }

    fn origin(&self) -> Origin<'_> {
        Origin::known(&self.project)
    }

    fn gh(&self, args: &[&str]) -> Output {
        self.gh.run(&self.project, &self.hub).args(args).output()
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.gh(args);
        assert_eq!(output.code, Some(0), "gh {args:?}: {}\n{:?}", output.stderr, self.hub.unexpected());
        output.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    fn list(&self) -> Output {
        self.gh(&["pr", "list", "--head", "feature/x", "--state", "all", "--limit", "20", "--json", FIELDS])
    }

    fn listed(&self) -> Value {
        let output = self.list();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.hub.unexpected(), Vec::<String>::new());
        }
    }
}

/// A bed, or the end of the test.
macro_rules! bed {
    () => {
        match Bed::new() {
            Some(bed) => bed,
            None => return,
        }
    };
}

#[test]
fn the_list_names_none_one_and_several_with_one_request_each() {
    let bed = bed!();
    assert_eq!(bed.listed(), json!([]));
    let first = bed.hub.open("feature/x", &bed.oid);
    let one = bed.listed();
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0]["number"], first);
    assert_eq!(one[0]["state"], "OPEN");
    assert_eq!(one[0]["headRefOid"], bed.oid.as_str());
    assert_eq!(one[0]["headRepository"]["name"], "widget");
    assert_eq!(one[0]["headRepositoryOwner"]["login"], "acme");
    assert_eq!(one[0]["mergeStateStatus"], "CLEAN");
    assert_eq!(one[0]["statusCheckRollup"], json!([]), "a commit without checks");
    assert_eq!(one[0]["mergedAt"], Value::Null);
    bed.hub.close(first);
    let second = bed.hub.open_from_fork("bob/widget", "feature/x", &bed.oid);
    let third = bed.hub.open("feature/x", &bed.oid);
    bed.hub.edit(third, |pull| pull.head = Head::DeletedFork);
    bed.hub.open("another", &bed.oid);
    let several = bed.listed();
    let numbers: Vec<u64> = several.as_array().unwrap().iter().map(|pull| pull["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [third, second, first], "the newest first, of this branch only");
    assert_eq!(several[0]["headRepository"], Value::Null, "a fork that was deleted");
    assert_eq!(several[0]["headRepositoryOwner"], json!({"login": ""}));
    assert_eq!(several[1]["headRepositoryOwner"]["login"], "bob");
    assert_eq!(several[1]["isCrossRepository"], true);
    assert_eq!(several[2]["state"], "CLOSED");
    assert_eq!((bed.hub.count_of("PullRequestList"), bed.hub.requests().len()), (3, 3));
    assert_eq!(bed.hub.requests()[0].variables["headBranch"], "feature/x");
}

#[test]
fn a_view_is_by_number_or_by_branch() {
    let bed = bed!();
    let missing = bed.gh(&["pr", "view", "--json", "number"]);
    assert_eq!((missing.code, missing.stderr.trim()), (Some(1), "no pull requests found for branch \"feature/x\""));
    let missing = bed.gh(&["pr", "view", "7", "--json", "state"]);
    let words = "GraphQL: Could not resolve to a PullRequest with the number of 7. (repository.pullRequest)";
    assert_eq!((missing.code, missing.stderr.trim()), (Some(1), words));
    let pr = bed.hub.open("feature/x", &bed.oid);
    bed.hub.edit(pr, |pull| pull.draft = true);
    let by_number = bed.json(&["pr", "view", &pr.to_string(), "--json", FIELDS]);
    assert_eq!(by_number, bed.json(&["pr", "view", "--json", FIELDS]));
    assert_eq!((by_number["isDraft"].clone(), by_number["mergeStateStatus"].clone()), (json!(true), json!("DRAFT")));
    assert!(bed.ok(&["pr", "view", "1"]).contains("state:\tDRAFT"));
    bed.ok(&["pr", "ready", "1"]);
    assert!(!bed.hub.pull(pr).draft);
    assert_eq!((bed.hub.count_of("PullRequestByNumber"), bed.hub.count_of("PullRequestForBranch")), (4, 2));
}

#[test]
fn checks_are_runs_and_statuses_with_all_their_ends() {
    let bed = bed!();
    let pr = bed.hub.open("feature/x", &bed.oid).to_string();
    let none = bed.gh(&["pr", "checks", &pr]);
    assert_eq!((none.code, none.stderr.trim()), (Some(1), "no checks reported on the 'feature/x' branch"));
    bed.hub.check(&bed.oid, Check::run("build").required());
    bed.hub.check(&bed.oid, Check::status("legacy/ci").concluded("ERROR").url("https://ci.example.invalid/9"));
    bed.hub.check(&bed.oid, Check::run("lint").concluded("SKIPPED").workflow("Other"));
    bed.hub.check(&bed.oid, Check::run("late").queued());
    let rollup = bed.listed()[0]["statusCheckRollup"].clone();
    let run = &rollup[0];
    assert_eq!(
        (&run["__typename"], &run["name"], &run["workflowName"], &run["status"], &run["conclusion"]),
        (&json!("CheckRun"), &json!("build"), &json!("CI"), &json!("COMPLETED"), &json!("SUCCESS"))
    );
    let job = bed.hub.job(&bed.oid, "build");
    assert_eq!(run["detailsUrl"], format!("https://github.com/acme/widget/actions/runs/{}/job/{job}", job - 1));
    assert_eq!(rollup[1]["state"], "ERROR");
    assert_eq!(rollup[1]["context"], "legacy/ci");
    assert_eq!(rollup[2]["conclusion"], "SKIPPED");
    assert_eq!((&rollup[3]["status"], &rollup[3]["conclusion"]), (&json!("QUEUED"), &json!("")));
    let never = json!("0001-01-01T00:00:00Z");
    assert_eq!((&rollup[3]["startedAt"], &rollup[3]["completedAt"]), (&never, &never), "what has not happened yet");
    let red = bed.gh(&["pr", "checks", &pr]);
    assert_eq!(red.code, Some(1), "{red:?}");
    assert!(
        red.stdout.contains("legacy/ci\tfail") && red.stdout.contains("build\tpass\t10m0s") && red.stdout.contains("late\tpending"),
        "{red:?}"
    );
    let required = bed.ok(&["pr", "checks", &pr, "--required"]);
    assert_eq!(required.lines().count(), 1, "{required}");
    bed.hub.check(&bed.oid, Check::status("legacy/ci"));
    assert_eq!(bed.gh(&["pr", "checks", &pr]).code, Some(1), "pending: 8 in newer versions");
    bed.hub.passed(&bed.oid, "late");
    assert_eq!(bed.gh(&["pr", "checks", &pr]).code, Some(0));
}

#[test]
fn more_than_a_hundred_checks_are_paged() {
    let bed = bed!();
    let pr = bed.hub.open("feature/x", &bed.oid).to_string();
    for n in 0..250 {
        bed.hub.passed(&bed.oid, &format!("job {n}"));
    }
    assert_eq!(bed.listed()[0]["statusCheckRollup"].as_array().unwrap().len(), 100, "a list shows the first page only");
    let all = bed.json(&["pr", "view", &pr, "--json", "statusCheckRollup"]);
    assert_eq!(all["statusCheckRollup"].as_array().unwrap().len(), 250);
    assert_eq!(bed.ok(&["pr", "checks", &pr]).lines().count(), 250);
}

#[test]
fn a_query_of_ones_own_learns_which_checks_are_required() {
    let bed = bed!();
    let pr = bed.hub.open("feature/x", &bed.oid);
    bed.hub.check(&bed.oid, Check::run("build").required().failed());
    bed.hub.check(&bed.oid, Check::status("legacy"));
    let query = "query Required($owner:String!,$name:String!,$number:Int!,$after:String){repository(owner:$owner,name:$name){pullRequest(number:$number){headRefOid commits(last:1){nodes{commit{oid statusCheckRollup{state contexts(first:100,after:$after){pageInfo{hasNextPage endCursor}nodes{__typename ...on CheckRun{name isRequired(pullRequestNumber:$number)}...on StatusContext{context isRequired(pullRequestNumber:$number)}}}}}}}}}}";
    let number = format!("number={pr}");
    let answer = bed.json(&["api", "graphql", "-f", &format!("query={query}"), "-f", "owner=acme", "-f", "name=widget", "-F", &number]);
    let commit = &answer["data"]["repository"]["pullRequest"]["commits"]["nodes"][0]["commit"];
    assert_eq!(commit["oid"], bed.oid.as_str());
    let nodes = &commit["statusCheckRollup"]["contexts"]["nodes"];
    assert_eq!(
        *nodes,
        json!([{"__typename": "CheckRun", "name": "build", "isRequired": true}, {"__typename": "StatusContext", "context": "legacy", "isRequired": false}])
    );
    assert_eq!(commit["statusCheckRollup"]["state"], "FAILURE");
    assert_eq!(bed.hub.count_of("Required"), 1);
}

#[test]
fn the_log_of_a_job_comes_from_another_host_with_times_before_its_lines() {
    let bed = bed!();
    bed.hub.failed(&bed.oid, "test", "running 2 tests\nerror: it broke\n");
    bed.hub.pending(&bed.oid, "slow");
    let path = |check: &str| format!("repos/acme/widget/actions/jobs/{}/logs", bed.hub.job(&bed.oid, check));
    let log = bed.ok(&["api", &path("test")]);
    assert!(log.starts_with("\u{feff}2026-03-04T05:06:07.1234567Z running 2 tests\n"), "{log}");
    assert!(log.ends_with("Z error: it broke\n"), "{log}");
    let hosts: Vec<(String, u16)> = bed.hub.requests().into_iter().map(|asked| (asked.host, asked.status)).collect();
    assert_eq!(hosts[0], ("api.github.com".to_owned(), 302));
    assert_eq!(hosts[1].1, 200);
    assert_ne!(hosts[1].0, "api.github.com");
    let none = bed.gh(&["api", &path("slow")]);
    assert_eq!((none.code, none.stderr.trim()), (Some(1), "gh: Not Found (HTTP 404)"), "a job that still runs has no log");
}

#[test]
fn a_pull_request_is_created_from_a_pushed_branch_only_once() {
    let bed = bed!();
    let args = ["pr", "create", "--title", "A title", "--body", "b", "--head", "feature/x"];
    assert_eq!(bed.ok(&args).trim(), "https://github.com/acme/widget/pull/1");
    let pull = bed.hub.pull(1);
    assert_eq!((pull.title.as_str(), pull.oid.as_str(), pull.base.as_str()), ("A title", bed.oid.as_str(), "main"));
    let again = bed.gh(&args);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.starts_with("a pull request for branch \"feature/x\" into branch \"main\" already exists"), "{}", again.stderr);
    let unknown = bed.gh(&["pr", "create", "--title", "t", "--body", "b", "--head", "never-pushed"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("No commits between main and never-pushed"), "{}", unknown.stderr);
}

#[test]
fn a_push_moves_the_head_and_leaves_the_old_checks_behind() {
    let bed = bed!();
    bed.hub.open("feature/x", &bed.oid);
    bed.hub.passed(&bed.oid, "build");
    bed.origin().commit("b.txt", "b\n");
    let moved = bed.origin().push();
    let listed = bed.listed();
    assert_eq!((listed[0]["headRefOid"].clone(), listed[0]["statusCheckRollup"].clone()), (json!(moved), json!([])));
}

#[test]
fn a_merge_holds_the_head_to_its_word() {
    let bed = bed!();
    let pr = bed.hub.open("feature/x", &bed.oid);
    let merge = |oid: &str| bed.gh(&["pr", "merge", &pr.to_string(), "--squash", "--delete-branch", "--match-head-commit", oid]);
    let other = merge(&"0".repeat(40));
    assert_eq!(
        (other.code, other.stderr.trim()),
        (Some(1), "Message: Head branch was modified. Review and try the merge again., Locations: [{Line:1 Column:1}]")
    );
    bed.hub.edit(pr, |pull| pull.draft = true);
    let draft = merge(&bed.oid);
    assert_eq!(draft.code, Some(1), "{draft:?}");
    assert!(draft.stderr.contains("still a draft"), "{draft:?}");
    bed.hub.edit(pr, |pull| (pull.draft, pull.mergeable) = (false, "CONFLICTING".to_owned()));
    let conflict = merge(&bed.oid);
    assert!(
        conflict.code == Some(1) && conflict.stderr.contains("is not mergeable: the merge commit cannot be cleanly created"),
        "{conflict:?}"
    );
    bed.hub.edit(pr, |pull| "MERGEABLE".clone_into(&mut pull.mergeable));
    bed.hub.check(&bed.oid, Check::run("build").required().failed());
    let blocked = merge(&bed.oid);
    assert!(blocked.code == Some(1) && blocked.stderr.contains("the base branch policy prohibits the merge"), "{blocked:?}");
    assert_eq!(bed.hub.pull(pr).state, "OPEN");
    bed.hub.passed(&bed.oid, "build");
    let merged = merge(&bed.oid);
    assert_eq!(merged.code, Some(0), "{merged:?} {:?}", bed.hub.requests());
    assert_eq!(bed.hub.pull(pr).state, "MERGED");
    assert_eq!(bed.hub.branches().len(), 1, "the branch is gone: {:?}", bed.hub.branches());
    assert!(!merged.stderr.contains("warning"), "{merged:?}");
    assert_eq!(bed.hub.count_of("PullRequest_fields"), 1, "kept by gh, but only for this hub");
    let again = merge(&bed.oid);
    assert_eq!((again.code, again.stderr.trim()), (Some(0), "! Pull request #1 was already merged"));
    assert_eq!(bed.project.git(&["branch", "--show-current"]).trim(), "main", "gh leaves the branch that it deletes");
    assert_eq!(bed.project.read("a.txt"), "a\n", "and fetches what was merged");
}

#[test]
fn signing_in_is_checked_with_one_token() {
    let bed = bed!();
    let good = bed.gh(&["auth", "status"]);
    assert!(good.code == Some(0) && good.stderr.contains("Logged in to github.com as tester"), "{good:?}");
    let bad = bed.gh.run(&bed.project, &bed.hub).env("GH_TOKEN", "another").args(["pr", "list"]).output();
    assert!(bad.code == Some(1) && bad.stderr.starts_with("HTTP 401: Bad credentials"), "{bad:?}");
}

/// The words by which ralph tells one failure from another.
#[test]
fn every_fault_has_its_words() {
    let bed = bed!();
    let graphql = "(https://api.github.com/graphql)";
    let repository = "GraphQL: Could not resolve to a Repository with the name 'acme/widget'. (repository)";
    let secondary = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    let post = "Post \"https://api.github.com/graphql\":";
    let table = [
        (Fault::ServerError, format!("HTTP 500: Server Error {graphql}")),
        (Fault::BadGateway, format!("HTTP 502: 502 Bad Gateway {graphql}")),
        (Fault::BadCredentials, format!("HTTP 401: Bad credentials {graphql}\nTry authenticating with:  gh auth login")),
        (Fault::PrimaryLimit { reset: 1_900_000_000 }, format!("HTTP 403: API rate limit exceeded for user ID 1. {graphql}")),
        (Fault::SecondaryLimit { retry_after: 60 }, format!("HTTP 403: {secondary} {graphql}")),
        (Fault::GraphqlLimit { reset: 1_900_000_000 }, "GraphQL: API rate limit exceeded for user ID 1.".to_owned()),
        (Fault::NotFound, format!("HTTP 404: Not Found {graphql}")),
        (Fault::NoRepository, repository.to_owned()),
        (Fault::Truncated, "unexpected EOF".to_owned()),
        (Fault::Html, "invalid character '<' looking for beginning of value".to_owned()),
        (Fault::Refused, format!("{post} connection refused")),
        (Fault::Untrusted, format!("{post} x509: certificate signed by unknown authority")),
        (Fault::Garbage, format!("{post} tls: first record does not look like a TLS handshake")),
    ];
    for (fault, words) in &table {
        bed.hub.fail(fault.clone(), 1);
        let output = bed.list();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.trim()), (Some(1), "", words.as_str()), "{fault:?}");
    }
    assert_eq!(bed.hub.faults_given(), table.len());
    assert_eq!(bed.listed(), json!([]), "all is well again");
}

#[test]
fn faults_can_be_counted_aimed_and_ended() {
    let bed = bed!();
    bed.hub.fail(Fault::ServerError, 2);
    assert_eq!([bed.list().code, bed.list().code, bed.list().code], [Some(1), Some(1), Some(0)]);
    bed.hub.fail_on("PullRequestByNumber", Fault::BadGateway, 1);
    assert_eq!(bed.list().code, Some(0));
    bed.hub.open("feature/x", &bed.oid);
    assert_eq!(bed.gh(&["pr", "view", "1", "--json", "state"]).code, Some(1));
    bed.hub.fail_always(Fault::Untrusted);
    assert_eq!([bed.list().code, bed.list().code], [Some(1), Some(1)]);
    bed.hub.heal();
    assert_eq!(bed.list().code, Some(0));
    let begun = Instant::now();
    bed.hub.fail(Fault::Slow(Duration::from_millis(1500)), 1);
    assert_eq!(bed.list().code, Some(0), "late but right");
    assert!(begun.elapsed() >= Duration::from_millis(1500));
    bed.hub.fail(Fault::Slow(Duration::MAX), 1);
    let hung = bed.gh.run(&bed.project, &bed.hub).args(["pr", "list"]).timeout(Duration::from_secs(2)).output();
    assert!(hung.timed_out, "gh has no limit of its own: {hung:?}");
}

/// What the machine or the project lacks.
#[test]
fn every_lack_has_its_words() {
    let bed = bed!();
    let run = |env: Vec<(String, String)>, args: &[&str]| {
        let run = env.into_iter().fold(bed.project.run(&bed.gh.binary), |run, (name, value)| run.env(name, value));
        run.args(args).output()
    };
    let list = ["pr", "list", "--head", "feature/x", "--json", "number"];
    let signed_out = run(bed.hub.env_without_token(), &list);
    assert_eq!(signed_out.code, Some(4), "{signed_out:?}");
    assert!(signed_out.stderr.starts_with("To get started with GitHub CLI, please run:  gh auth login"), "{signed_out:?}");
    let offline = run(bed.hub.env_offline(), &list);
    let words = "Post \"https://api.github.com/graphql\": proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!((offline.code, offline.stderr.trim()), (Some(1), words));
    bed.project.git(&["checkout", "--quiet", "--detach"]);
    let detached = bed.gh(&["pr", "view", "--json", "number"]);
    let words = "could not determine current branch: failed to run git: not on any branch";
    assert_eq!((detached.code, detached.stderr.trim()), (Some(1), words));
    assert_eq!(bed.gh(&list).code, Some(0), "a branch that is named needs no HEAD");
    bed.project.git(&["remote", "set-url", "origin", "https://gitlab.com/acme/widget.git"]);
    let elsewhere = bed.gh(&list);
    let words = "none of the git remotes configured for this repository point to a known GitHub host.";
    assert!(elsewhere.code == Some(1) && elsewhere.stderr.starts_with(words), "{elsewhere:?}");
    bed.project.git(&["remote", "remove", "origin"]);
    let alone = bed.gh(&list);
    assert_eq!((alone.code, alone.stderr.trim()), (Some(1), "no git remotes found"));
    std::fs::rename(bed.project.path(".git"), bed.project.path("git-was-here")).unwrap();
    let nothing = bed.gh(&list);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("not a git repository"), "{nothing:?}");
}

#[test]
fn what_the_model_does_not_know_is_loud() {
    let gh = match Gh::installed() {
        Ok(gh) => gh,
        Err(skip) => return skip.tell(),
    };
    let (hub, project) = (GitHub::start("acme/widget"), Project::new());
    let output = gh.run(&project, &hub).args(["api", "graphql", "-f", "query=query Odd{viewer{shoeSize}}"]).output();
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("Field 'shoeSize' doesn't exist on type 'User' in query Odd"), "{output:?}");
    assert_eq!(gh.run(&project, &hub).args(["api", "gists"]).output().code, Some(1));
    let unexpected = hub.unexpected();
    assert_eq!(unexpected.len(), 2, "{unexpected:?}");
    assert!(unexpected[0].contains("shoeSize") && unexpected[1].starts_with("GET api.github.com/gists"), "{unexpected:?}");
}

#[test]
fn gh_writes_nothing_into_the_home_or_the_project() {
    let bed = bed!();
    bed.list();
    assert_eq!(std::fs::read_dir(bed.project.home()).unwrap().count(), 0);
    assert_eq!(bed.project.git(&["status", "--porcelain"]), "");
}
