//! GitHub, asked through the `gh` that people have.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ralph_core::gate::{
    Stream,
    pull_request::{CheckRun, PullRequest, Repository, Trouble},
};

use super::Asking;
use crate::sys::{
    command::{Asked, Failure, HURRY, Leave, Listener, Task},
    env, process, process_tree, signals,
};

/// The fields of a pull request that gh is asked for.
const FIELDS: &str = "number,state,isDraft,headRefOid,headRefName,headRepository,headRepositoryOwner,isCrossRepository,baseRefName,url,title,\
                      createdAt,closedAt,mergedAt,mergeable,mergeStateStatus,reviewDecision,statusCheckRollup";

/// More of an answer is not read.
const MOST_ANSWER: usize = 16 << 20;

/// The time between the request to end and the end.
const GRACE: Duration = Duration::from_millis(500);

/// Which checks of a pull request's head the base branch requires.
const REQUIRED: &str = "query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
    commits(last: 1) { nodes { commit { oid statusCheckRollup { contexts(first: 100) { nodes { __typename \
    ... on CheckRun { name isRequired(pullRequestNumber: $number) checkSuite { workflowRun { workflow { name } } } } \
    ... on StatusContext { context isRequired(pullRequestNumber: $number) } } } } } } } } } }";

/// The path of gh. One inside of the project is never used.
pub(super) fn program(folder: &Path) -> Result<PathBuf, Trouble> {
    process::which_outside("gh", folder).ok_or_else(|| {
        Trouble::lasting("`gh`, through which ralph asks GitHub, is not there", "install it (https://cli.github.com), then `gh auth login`")
    })
}

/// Whether gh has a token for the host; gh asks no server for that. The token itself is not looked at.
pub(super) fn has_token(asking: &Asking<'_>) -> Result<(), Trouble> {
    let host = &asking.repository.host;
    let code = run(asking, &["auth", "token", "--hostname", host], &(Arc::new(|_, _: &[u8]| {}) as Listener))?;
    if code == Some(0) { Ok(()) } else { Err(Trouble::of_failure(Some(4), "", host, "")) }
}

/// The newest pull requests whose head branch has this name, in any state and from any repository.
pub(super) fn of_branch(asking: &Asking<'_>, branch: &str, most: usize) -> Result<Vec<PullRequest>, Trouble> {
    let (repository, most) = (asking.repository.to_string(), most.to_string());
    let said = ask(asking, &["pr", "list", "-R", &repository, "--head", branch, "--state", "all", "--limit", &most, "--json", FIELDS])?;
    PullRequest::list(said.as_bytes(), asking.repository).ok_or_else(Trouble::of_answer)
}

pub(super) fn by_number(asking: &Asking<'_>, number: u64) -> Result<PullRequest, Trouble> {
    let repository = asking.repository.to_string();
    let said = ask(asking, &["pr", "view", &number.to_string(), "-R", &repository, "--json", FIELDS])?;
    let found = PullRequest::list(said.as_bytes(), asking.repository).and_then(|found| found.into_iter().next());
    found.ok_or_else(Trouble::of_answer)
}

/// Marks the checks that the base branch requires.
pub(crate) fn mark_required(asking: &Asking<'_>, request: &mut PullRequest) -> Result<(), Trouble> {
    let Repository { host, owner, name } = asking.repository;
    let (query, owner, name) = (format!("query={REQUIRED}"), format!("owner={owner}"), format!("name={name}"));
    let number = format!("number={}", request.number);
    let said = ask(asking, &["api", "graphql", "--hostname", host, "-f", &query, "-f", &owner, "-f", &name, "-F", &number])?;
    let required = CheckRun::required(said.as_bytes()).ok_or_else(Trouble::of_answer)?;
    for check in &mut request.checks {
        // The answer holds a hundred of them; the others count, because they may be required.
        check.required = required.get(&(check.workflow.clone(), check.name.clone())).copied();
    }
    Ok(())
}

/// Hands the log of a CI job to `hears`, piece by piece.
pub(crate) fn job_log(asking: &Asking<'_>, job: u64, hears: impl Fn(&[u8]) + Send + Sync + 'static) -> Result<(), Trouble> {
    let Repository { host, owner, name } = asking.repository;
    let path = format!("repos/{owner}/{name}/actions/jobs/{job}/logs");
    let errors = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&errors);
    let listener: Listener = Arc::new(move |stream, bytes: &[u8]| match stream {
        Stream::Out => hears(bytes),
        Stream::Err => keep(&kept, bytes),
    });
    let code = run(asking, &["api", "--hostname", host, &path], &listener)?;
    let said = errors.lock().unwrap_or_else(PoisonError::into_inner);
    if code == Some(0) { Ok(()) } else { Err(failure(asking, code, &String::from_utf8_lossy(&said))) }
}

/// Merges this very head commit as one commit, and deletes the branch on the forge.
pub(crate) fn merge(asking: &Asking<'_>, request: &PullRequest) -> Result<(), Trouble> {
    let (number, repository) = (request.number.to_string(), asking.repository.to_string());
    let args = ["pr", "merge", &number, "-R", &repository, "--squash", "--delete-branch", "--match-head-commit", &request.head];
    ask(asking, &args).map(drop)
}

fn failure(asking: &Asking<'_>, code: Option<i32>, said: &str) -> Trouble {
    let Repository { host, owner, name } = asking.repository;
    Trouble::of_failure(code, said, host, &format!("{owner}/{name}"))
}

fn keep(kept: &Mutex<Vec<u8>>, bytes: &[u8]) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let room = (MOST_ANSWER + 1).saturating_sub(kept.len()).min(bytes.len());
    kept.extend_from_slice(&bytes[..room]);
}

/// The output of gh, if it succeeds.
fn ask(asking: &Asking<'_>, args: &[&str]) -> Result<String, Trouble> {
    let kept = Arc::new([Mutex::new(Vec::new()), Mutex::new(Vec::new())]);
    let heard = Arc::clone(&kept);
    let listener: Listener = Arc::new(move |stream: Stream, bytes: &[u8]| keep(&heard[stream as usize], bytes));
    let code = run(asking, args, &listener)?;
    let text = |stream: Stream| {
        let bytes = kept[stream as usize].lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    if code == Some(0) { Ok(text(Stream::Out)) } else { Err(failure(asking, code, &text(Stream::Err))) }
}

/// Tokens for a server of one's own, which gh would send to any server that a remote names. By itself gh asks only the one that `GH_HOST` names.
fn foreign_tokens(host: &str) -> &'static [&'static str] {
    let is_ones_own = env::gh_host().is_some_and(|own| own.eq_ignore_ascii_case(host));
    if is_ones_own { &[] } else { &["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"] }
}

/// Runs gh, bounded: by itself it waits for ever. Its exit code; `None`: a signal ended it.
fn run(asking: &Asking<'_>, args: &[&str], listener: &Listener) -> Result<Option<i32>, Trouble> {
    const QUIET: [(&str, &str); 5] = [
        ("GH_PROMPT_DISABLED", "1"),
        ("GH_NO_UPDATE_NOTIFIER", "1"),
        ("NO_COLOR", "1"),
        ("GH_PAGER", "cat"),
        // What gh starts is inside of a gate, like a command.
        (env::GATE, "forge"),
    ];
    // These make it print other things, or ask about another repository.
    const LOUD: [&str; 6] = ["GH_DEBUG", "DEBUG", "GH_FORCE_TTY", "CLICOLOR_FORCE", "GH_REPO", "GH_HOST"];
    let limit = asking.limit();
    let task = Task {
        program: program(asking.folder)?.into(),
        args: args.iter().map(OsString::from).collect(),
        folder: asking.folder,
        vars: QUIET.map(|(name, value)| (name.into(), value.into())).into(),
        hidden: LOUD.iter().chain(foreign_tokens(&asking.repository.host)).map(OsString::from).collect(),
        input: Vec::new(),
        limit,
        most_output: 0,
    };
    process_tree::inherit_orphans();
    signals::notice();
    let leave = Leave { cancelled: &|| (asking.cancelled)(), grace: GRACE, hurry: HURRY, asked: &|| Asked::ToEnd, leave_running: None };
    let now = |why: String| Trouble::passing(format!("GitHub cannot be asked right now: {why}"));
    match task.run_heard(listener, leave) {
        Ok(ended) => Ok(ended.code),
        Err(Failure::TookTooLong) => Err(now(format!("it did not answer within {} s", limit.as_secs()))),
        Err(Failure::Cancelled) => Err(now("the answer is not wanted any more".to_owned())),
        Err(Failure::CannotStart(e)) => Err(now(format!("gh cannot be started: {e}"))),
    }
}
