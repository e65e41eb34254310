//! The repository that a scripted GitHub knows: its pull requests, branches and checks, and the rules for changing them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::checks::{Check, rollup};
use super::graphql::{ALL, Args, Problem};
use crate::project::{PATH, git_program};

/// When pull requests are opened and changed, unless a test says otherwise.
pub const OPENED: &str = "2026-03-04T05:00:00Z";
/// What the hub's own clock says, for commits that shall be the same every time. Merges and closures are of now: what ended before a loop began is another thing.
pub const MERGED: &str = "2026-03-04T06:00:00Z";

/// Who speaks: the owner of the token.
pub(super) const LOGIN: &str = "tester";

/// Where a pull request's branch lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// In the repository itself.
    Here,
    /// In somebody's fork, `owner/name`.
    Fork(String),
    /// In a fork that was deleted since.
    DeletedFork,
}

/// A pull request, as a test may change it at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    /// `OPEN`, `CLOSED` or `MERGED`.
    pub state: String,
    pub draft: bool,
    pub branch: String,
    pub oid: String,
    pub head: Head,
    pub base: String,
    pub title: String,
    pub body: String,
    pub created_at: String,
    pub updated_at: String,
    pub merged_at: Option<String>,
    /// What the base branch got.
    pub merge_commit: Option<String>,
    /// `MERGEABLE`, `CONFLICTING` or `UNKNOWN`.
    pub mergeable: String,
    /// `CLEAN`, `BLOCKED`, `BEHIND` …; worked out from the rest where it is not set.
    pub merge_state: Option<String>,
}

/// All that the hub knows. Branches map a name to its commit.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) pulls: Vec<PullRequest>,
    pub(super) branches: BTreeMap<String, String>,
    checks: BTreeMap<String, Vec<Check>>,
    /// A bare repository whose branches are the hub's.
    pub(super) bare: Option<PathBuf>,
    next_id: u64,
}

impl Model {
    pub(super) fn new(repository: &str) -> Self {
        let (owner, name) = repository.split_once('/').expect("owner/name");
        Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
            pulls: Vec::new(),
            branches: BTreeMap::new(),
            checks: BTreeMap::new(),
            bare: None,
            next_id: 100,
        }
    }

    pub(super) fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    pub(super) fn pull(&mut self, number: u64) -> &mut PullRequest {
        self.pulls.iter_mut().find(|pull| pull.number == number).unwrap_or_else(|| panic!("no pull request {number}"))
    }

    pub(super) fn open(&mut self, branch: &str, oid: &str, head: Head) -> u64 {
        let number = 1 + self.pulls.iter().map(|pull| pull.number).max().unwrap_or(0);
        if head == Head::Here {
            self.branches.insert(branch.to_owned(), oid.to_owned());
        }
        self.pulls.push(PullRequest {
            number,
            state: "OPEN".to_owned(),
            draft: false,
            branch: branch.to_owned(),
            oid: oid.to_owned(),
            head,
            base: "main".to_owned(),
            title: format!("Pull request {number}"),
            body: String::new(),
            created_at: OPENED.to_owned(),
            updated_at: OPENED.to_owned(),
            merged_at: None,
            merge_commit: None,
            mergeable: "MERGEABLE".to_owned(),
            merge_state: None,
        });
        number
    }

    pub(super) fn check(&mut self, oid: &str, mut check: Check) {
        let checks = self.checks.entry(oid.to_owned()).or_default();
        match checks.iter_mut().find(|known| known.is_same(&check)) {
            Some(known) => {
                check.ids = known.ids;
                *known = check;
            }
            None => {
                check.ids = (self.next_id, self.next_id + 1);
                self.next_id += 2;
                checks.push(check);
            }
        }
    }

    pub(super) fn forget_checks(&mut self, oid: &str) {
        self.checks.remove(oid);
    }

    pub(super) fn checks_of(&self, oid: &str) -> &[Check] {
        self.checks.get(oid).map_or(&[], Vec::as_slice)
    }

    /// The log of a job, as it is served.
    pub(super) fn log_of(&self, job: u64) -> Option<String> {
        self.checks.values().flatten().find(|check| check.ids.1 == job)?.log_as_served()
    }

    pub(super) fn job_of(&self, oid: &str, check: &str) -> Option<u64> {
        let found = self.checks_of(oid).iter().find(|known| known.is_same(&Check::run(check)))?;
        Some(found.ids.1)
    }

    /// Moves a branch, and with it the open pull requests that come from it.
    pub(super) fn moved(&mut self, branch: &str, oid: &str) {
        self.branches.insert(branch.to_owned(), oid.to_owned());
        for pull in &mut self.pulls {
            if pull.state == "OPEN" && pull.head == Head::Here && pull.branch == branch && pull.oid != oid {
                oid.clone_into(&mut pull.oid);
            }
        }
    }

    /// Takes over the branches of the bare repository, where there is one.
    pub(super) fn refresh(&mut self) {
        let Some(bare) = self.bare.clone() else { return };
        let listed = git(&bare, &["for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads"]);
        self.branches.clear();
        for (oid, branch) in listed.lines().filter_map(|line| line.split_once(' ')) {
            self.moved(branch, oid);
        }
    }

    pub(super) fn delete_branch(&mut self, branch: &str) -> bool {
        if let Some(bare) = &self.bare {
            git(bare, &["update-ref", "-d", &format!("refs/heads/{branch}")]);
        }
        self.branches.remove(branch).is_some()
    }

    /// Merges as the web page's button does; the base branch of the bare repository gets one commit with the branch's files.
    pub(super) fn merge(&mut self, number: u64) {
        let pull = self.pull(number);
        "MERGED".clone_into(&mut pull.state);
        pull.updated_at = now();
        pull.merged_at = Some(pull.updated_at.clone());
        let pull = pull.clone();
        let Some(bare) = self.bare.clone() else { return };
        let (base, tree) = (format!("refs/heads/{}", pull.base), format!("{}^{{tree}}", pull.oid));
        let commit = git(&bare, &["commit-tree", &tree, "-p", &base, "-m", &format!("{} (#{number})", pull.title)]);
        git(&bare, &["update-ref", &base, commit.trim()]);
        self.pull(number).merge_commit = Some(commit.trim().to_owned());
        self.branches.insert(pull.base, commit.trim().to_owned());
    }
}

/// The time, as forges write it.
pub(super) fn now() -> String {
    // SAFETY: all zero is a valid value of the structure; both functions write to live variables.
    let at = unsafe {
        let mut at = std::mem::zeroed();
        libc::gmtime_r(&libc::time(std::ptr::null_mut()), &raw mut at);
        at
    };
    let (year, month) = (at.tm_year + 1900, at.tm_mon + 1);
    format!("{year}-{month:02}-{:02}T{:02}:{:02}:{:02}Z", at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec)
}

/// Runs git in the bare repository with a name and a clock of its own; the same merge makes the same commit.
fn git(bare: &Path, args: &[&str]) -> String {
    let mut command = Command::new(git_program());
    command.arg("--git-dir").arg(bare).args(args).env_clear();
    command.envs([("PATH", PATH), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "GitHub").env(format!("GIT_{who}_EMAIL"), "noreply@example.invalid");
        command.env(format!("GIT_{who}_DATE"), MERGED);
    }
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What queries find.
impl Model {
    /// Answers the fields that have arguments, and the roots.
    pub(super) fn resolve(&mut self, kind: &str, field: &str, args: &Args) -> Option<Result<Value, Problem>> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        match (kind, field) {
            ("Query", "repository") => Some(self.found(text("owner"), text("name"))),
            ("Query", "viewer") => Some(Ok(user(LOGIN))),
            ("Query", "node") => Some(self.node(text("id"))),
            ("Query", "__type") => Some(Ok(self.fields_of(text("name")))),
            ("Query", "rateLimit") => {
                Some(Ok(json!({"__typename": "RateLimit", "limit": 5000, "remaining": 4999, "resetAt": MERGED, "cost": 1})))
            }
            ("Repository", "pullRequest") => {
                let number = args.get("number").and_then(Value::as_u64).unwrap_or_default();
                Some(self.numbered(number))
            }
            ("Repository", "pullRequests") => Some(Ok(self.listed(args))),
            ("CheckRun" | "StatusContext", "isRequired")
                if !args.contains_key("pullRequestId") && !args.contains_key("pullRequestNumber") =>
            {
                Some(Err(Problem::refused(
                    "MISSING_PULL_REQUEST",
                    "isRequired",
                    "Either a pull request ID or pull request number is required.",
                )))
            }
            ("Mutation", "createPullRequest") => Some(self.create(&args["input"])),
            ("Mutation", "mergePullRequest") => Some(self.asked_to_merge(&args["input"])),
            ("Mutation", "markPullRequestReadyForReview") => Some(self.ready(&args["input"])),
            _ => None,
        }
    }

    fn found(&self, owner: &str, name: &str) -> Result<Value, Problem> {
        if owner.eq_ignore_ascii_case(&self.owner) && name.eq_ignore_ascii_case(&self.name) {
            return Ok(self.repository_tree());
        }
        let message = format!("Could not resolve to a Repository with the name '{owner}/{name}'.");
        Err(Problem::refused("NOT_FOUND", "repository", message))
    }

    fn numbered(&self, number: u64) -> Result<Value, Problem> {
        let found = self.pulls.iter().find(|pull| pull.number == number).map(|pull| self.pull_tree(pull));
        let message = || format!("Could not resolve to a PullRequest with the number of {number}.");
        found.ok_or_else(|| {
            let mut problem = Problem::refused("NOT_FOUND", "repository", message());
            if let Problem::Refused(error) = &mut problem {
                error["path"] = json!(["repository", "pullRequest"]);
            }
            problem
        })
    }

    fn node(&self, id: &str) -> Result<Value, Problem> {
        let found = self.pulls.iter().find(|pull| id_of(pull) == id).map(|pull| self.pull_tree(pull));
        let message = || format!("Could not resolve to a node with the global id of '{id}'");
        found.ok_or_else(|| Problem::refused("NOT_FOUND", "node", message()))
    }

    /// The pull requests that the arguments allow, the newest first.
    fn listed(&self, args: &Args) -> Value {
        let fits = |name: &str, value: &str| args.get(name).and_then(Value::as_str).is_none_or(|wanted| wanted == value);
        let states = args.get("states").and_then(Value::as_array);
        let mut pulls: Vec<&PullRequest> = self
            .pulls
            .iter()
            .filter(|pull| states.is_none_or(|states| states.contains(&json!(pull.state))))
            .filter(|pull| fits("headRefName", &pull.branch) && fits("baseRefName", &pull.base))
            .collect();
        pulls.sort_by_key(|pull| std::cmp::Reverse((pull.created_at.clone(), pull.number)));
        let trees: Vec<Value> = pulls.into_iter().map(|pull| self.pull_tree(pull)).collect();
        connection("PullRequestConnection", &trees)
    }

    /// What clients ask to learn which fields this GitHub has.
    fn fields_of(&self, kind: &str) -> Value {
        let sample = match kind {
            "PullRequest" => {
                let mut sample = Self::new("acme/widget");
                sample.open("sample", "0", Head::Here);
                sample.pull_tree(&sample.pulls[0])
            }
            "Repository" => self.repository_tree(),
            _ => json!({}),
        };
        let names = sample.as_object().into_iter().flat_map(|fields| fields.keys()).filter(|name| !name.starts_with("__"));
        let fields: Vec<Value> = names.map(|name| json!({"__typename": "__Field", "name": name})).collect();
        json!({"__typename": "__Type", "name": kind, "fields": fields})
    }

    fn repository_tree(&self) -> Value {
        json!({
            "__typename": "Repository",
            "id": "R_1",
            "name": self.name,
            "nameWithOwner": self.repository(),
            "url": format!("https://github.com/{}", self.repository()),
            "owner": user(&self.owner),
            "description": "",
            "hasIssuesEnabled": true,
            "hasWikiEnabled": false,
            "isPrivate": false,
            "viewerPermission": "ADMIN",
            "viewerDefaultMergeMethod": "SQUASH",
            "defaultBranchRef": {"__typename": "Ref", "name": "main"},
            "parent": null,
            "mergeCommitAllowed": true,
            "rebaseMergeAllowed": true,
            "squashMergeAllowed": true,
            "deleteBranchOnMerge": false,
        })
    }

    fn pull_tree(&self, pull: &PullRequest) -> Value {
        let repository = |owner: &str, name: &str| {
            (
                json!({"__typename": "Repository", "id": format!("R_{owner}"), "name": name, "nameWithOwner": format!("{owner}/{name}"), "owner": user(owner)}),
                user(owner),
            )
        };
        let (head, owner) = match &pull.head {
            Head::Here => repository(&self.owner, &self.name),
            Head::Fork(fork) => {
                let (owner, name) = fork.split_once('/').expect("owner/name");
                repository(owner, name)
            }
            Head::DeletedFork => (Value::Null, Value::Null),
        };
        let nothing = || connection("Connection", &[]);
        json!({
            "__typename": "PullRequest",
            "id": id_of(pull),
            "number": pull.number,
            "url": format!("https://github.com/{}/pull/{}", self.repository(), pull.number),
            "state": pull.state,
            "isDraft": pull.draft,
            "closed": pull.state != "OPEN",
            "title": pull.title,
            "body": pull.body,
            "author": user(LOGIN),
            "createdAt": pull.created_at,
            "updatedAt": pull.updated_at,
            "mergedAt": pull.merged_at,
            "mergeCommit": pull.merge_commit.as_ref().map(|oid| json!({"__typename": "Commit", "oid": oid})),
            "closedAt": (pull.state != "OPEN").then(|| pull.merged_at.as_ref().unwrap_or(&pull.updated_at)),
            "baseRefName": pull.base,
            "headRefName": pull.branch,
            "headRefOid": pull.oid,
            "headRepository": head,
            "headRepositoryOwner": owner,
            "isCrossRepository": pull.head != Head::Here,
            "maintainerCanModify": false,
            "mergeable": if pull.state == "OPEN" { pull.mergeable.as_str() } else { "UNKNOWN" },
            "mergeStateStatus": self.merge_state(pull),
            "reviewDecision": null,
            "additions": 1,
            "deletions": 0,
            "changedFiles": 1,
            "milestone": null,
            "autoMergeRequest": null,
            "reactionGroups": [],
            "assignees": nothing(),
            "comments": nothing(),
            "labels": nothing(),
            "projectCards": nothing(),
            "reviewRequests": nothing(),
            "reviews": nothing(),
            "commits": connection("PullRequestCommitConnection", &[json!({"__typename": "PullRequestCommit", "commit": self.commit_tree(&pull.oid)})]),
        })
    }

    fn commit_tree(&self, oid: &str) -> Value {
        let checks = self.checks_of(oid);
        let contexts: Vec<Value> = checks.iter().map(|check| check.tree(&self.repository())).collect();
        let contexts = connection("StatusCheckRollupContextConnection", &contexts);
        let all = (!checks.is_empty()).then(|| json!({"__typename": "StatusCheckRollup", "state": rollup(checks), "contexts": contexts}));
        json!({"__typename": "Commit", "oid": oid, "statusCheckRollup": all})
    }

    fn merge_state(&self, pull: &PullRequest) -> String {
        if let Some(state) = &pull.merge_state {
            return state.clone();
        }
        let checks = self.checks_of(&pull.oid);
        let state = if pull.state != "OPEN" {
            "UNKNOWN"
        } else if pull.draft {
            "DRAFT"
        } else if pull.mergeable == "CONFLICTING" {
            "DIRTY"
        } else if checks.iter().any(|check| check.is_required() && !check.is_good()) {
            "BLOCKED"
        } else if checks.iter().any(|check| !check.is_good()) {
            "UNSTABLE"
        } else {
            "CLEAN"
        };
        state.to_owned()
    }
}

/// What mutations change.
impl Model {
    fn create(&mut self, input: &Value) -> Result<Value, Problem> {
        let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
        let (branch, base) = (text("headRefName"), text("baseRefName"));
        let refuse = |message: String| Err(Problem::refused("UNPROCESSABLE", "createPullRequest", message));
        let Some(oid) = self.branches.get(&branch).cloned() else {
            return refuse(format!(
                "Head sha can't be blank, Base sha can't be blank, No commits between {base} and {branch}, Head ref must be a branch"
            ));
        };
        if self.pulls.iter().any(|pull| pull.state == "OPEN" && pull.branch == branch && pull.base == base) {
            return refuse(format!("A pull request already exists for {}:{branch}.", self.owner));
        }
        let number = self.open(&branch, &oid, Head::Here);
        let pull = self.pull(number);
        (pull.title, pull.body, pull.base) = (text("title"), text("body"), base);
        pull.draft = input["draft"] == true;
        let pull = pull.clone();
        Ok(json!({"__typename": "Payload", "pullRequest": self.pull_tree(&pull)}))
    }

    fn asked_to_merge(&mut self, input: &Value) -> Result<Value, Problem> {
        let pull = self.by_id(input, "mergePullRequest")?;
        let expected = input["expectedHeadOid"].as_str();
        let refusal = if pull.state != "OPEN" || pull.mergeable != "MERGEABLE" {
            "Pull Request is not mergeable"
        } else if pull.draft {
            "Pull Request is still a draft"
        } else if expected.is_some_and(|oid| oid != pull.oid) {
            "Head branch was modified. Review and try the merge again."
        } else if self.merge_state(&pull) == "BLOCKED" {
            "Repository rule violations found\n\nRequired status checks have not succeeded."
        } else {
            self.merge(pull.number);
            return Ok(json!({"__typename": "Payload", "clientMutationId": null}));
        };
        Err(Problem::refused("UNPROCESSABLE", "mergePullRequest", refusal))
    }

    fn ready(&mut self, input: &Value) -> Result<Value, Problem> {
        let number = self.by_id(input, "markPullRequestReadyForReview")?.number;
        self.pull(number).draft = false;
        Ok(json!({"__typename": "Payload", "pullRequest": self.numbered(number)?}))
    }

    fn by_id(&self, input: &Value, path: &str) -> Result<PullRequest, Problem> {
        let id = input["pullRequestId"].as_str().unwrap_or_default();
        let found = self.pulls.iter().find(|pull| id_of(pull) == id).cloned();
        found.ok_or_else(|| Problem::refused("NOT_FOUND", path, format!("Could not resolve to a node with the global id of '{id}'")))
    }
}

fn id_of(pull: &PullRequest) -> String {
    format!("PR_{}", pull.number)
}

fn user(login: &str) -> Value {
    json!({"__typename": "User", "id": format!("U_{login}"), "login": login, "name": login})
}

fn connection(kind: &str, all: &[Value]) -> Value {
    json!({"__typename": kind, ALL: all})
}
