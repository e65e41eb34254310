//! Reads the JSON of `gh`: fields may be missing, null, or new.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{CheckRun, PullRequest, Repository, State, Word};
use crate::text::{
    json::parse_tolerant,
    opening,
    time::{self, Millis},
};

/// Names and titles are shown, and never longer than this.
const SHOWN: usize = 200;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Said {
    number: Option<u64>,
    state: Option<String>,
    is_draft: Option<bool>,
    head_ref_oid: Option<String>,
    head_ref_name: Option<String>,
    head_repository: Option<Named>,
    head_repository_owner: Option<Named>,
    is_cross_repository: Option<bool>,
    base_ref_name: Option<String>,
    url: Option<String>,
    title: Option<String>,
    created_at: Option<String>,
    closed_at: Option<String>,
    merged_at: Option<String>,
    mergeable: Option<String>,
    merge_state_status: Option<String>,
    review_decision: Option<String>,
    status_check_rollup: Option<Vec<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: Option<String>,
    login: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct SaidCheck {
    name: Option<String>,
    workflow_name: Option<String>,
    context: Option<String>,
    status: Option<String>,
    conclusion: Option<String>,
    state: Option<String>,
    started_at: Option<String>,
    completed_at: Option<String>,
    details_url: Option<String>,
    target_url: Option<String>,
}

impl PullRequest {
    /// `gh pr list` asks for no more checks than this, so exactly as many may be more.
    pub const MOST_CHECKS: usize = 100;

    /// The pull requests in what `gh pr list --json` or `gh pr view --json` printed. `asked`: the repository that they are in. `None`: it is no such answer.
    pub fn list(bytes: &[u8], asked: &Repository) -> Option<Vec<Self>> {
        let said: Value = parse_tolerant(bytes).ok()?;
        let list = match said {
            Value::Array(list) => list,
            one @ Value::Object(_) => vec![one],
            _ => return None,
        };
        // One that cannot be read may be the one that is meant, so the whole answer is not believed.
        list.into_iter().map(|said| request(serde_json::from_value(said).ok()?, asked)).collect()
    }
}

fn request(said: Said, asked: &Repository) -> Option<PullRequest> {
    let is = |field: &Option<String>, word: &str| field.as_deref().is_some_and(|text| text.eq_ignore_ascii_case(word));
    let state = match said.state.as_deref()? {
        state if state.eq_ignore_ascii_case("open") => State::Open,
        state if state.eq_ignore_ascii_case("closed") => State::Closed,
        state if state.eq_ignore_ascii_case("merged") => State::Merged,
        _ => return None,
    };
    let head = said.head_ref_oid.filter(|oid| is_commit(oid))?;
    let owner = said.head_repository_owner.and_then(|owner| owner.login).filter(|login| !login.is_empty());
    let name = said.head_repository.and_then(|repository| repository.name).filter(|name| !name.is_empty());
    let repository = match (owner, name) {
        (Some(owner), name) => Some(Repository { host: asked.host.clone(), owner, name: name.unwrap_or_else(|| asked.name.clone()) }),
        (None, _) => (said.is_cross_repository == Some(false)).then(|| asked.clone()),
    };
    Some(PullRequest {
        number: said.number?,
        state,
        is_draft: said.is_draft.unwrap_or(false),
        head,
        branch: said.head_ref_name.unwrap_or_default(),
        repository,
        base: opening(&said.base_ref_name.unwrap_or_default(), SHOWN),
        url: opening(&said.url.unwrap_or_default(), SHOWN),
        title: opening(&said.title.unwrap_or_default(), SHOWN),
        created_at: said.created_at.as_deref().and_then(moment),
        ended_at: said.merged_at.as_deref().and_then(moment).or_else(|| said.closed_at.as_deref().and_then(moment)),
        has_conflicts: is(&said.mergeable, "CONFLICTING") || is(&said.merge_state_status, "DIRTY"),
        lacks_review: is(&said.review_decision, "REVIEW_REQUIRED") && is(&said.merge_state_status, "BLOCKED"),
        checks: said.status_check_rollup.unwrap_or_default().into_iter().map(check).collect(),
    })
}

/// Ids are handed to git, so nothing else passes for one.
fn is_commit(oid: &str) -> bool {
    matches!(oid.len(), 40 | 64) && oid.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A time; forges write the year 1 for none.
fn moment(text: &str) -> Option<Millis> {
    time::parse(text).filter(|at| *at > 0)
}

/// One entry: a run of a workflow or an app, or a status that something set. One that cannot be read is still one, and never a pass.
fn check(said: Value) -> CheckRun {
    let said: SaidCheck = serde_json::from_value(said).unwrap_or_default();
    let name = said.name.or(said.context).filter(|name| !name.is_empty());
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    let is_done = said.status.as_deref().is_none_or(|status| status.eq_ignore_ascii_case("completed"));
    // A run has a status, and a conclusion once it is done; what is set by others has a state.
    let word = if is_done { text(said.conclusion).or(text(said.state)) } else { text(said.status) };
    let url = text(said.details_url).or(text(said.target_url)).map(|url| opening(&url, SHOWN));
    CheckRun {
        name: opening(name.as_deref().unwrap_or("a check without a name"), SHOWN),
        workflow: text(said.workflow_name).map(|name| opening(&name, SHOWN)),
        word: Word::of(word.as_deref().unwrap_or_default()),
        started_at: said.started_at.as_deref().and_then(moment),
        ended_at: said.completed_at.as_deref().and_then(moment),
        job: url.as_deref().and_then(job),
        url,
        required: None,
    }
}

/// The number of a job in the address of its page: `…/actions/runs/1/job/2`.
fn job(url: &str) -> Option<u64> {
    let (before, number) = url.split(['?', '#']).next()?.rsplit_once('/')?;
    (before.contains("/actions/runs/") && before.ends_with("/job")).then(|| number.parse().ok())?
}

/// Whether the base branch requires a check, by its workflow and its name.
type Required = BTreeMap<(Option<String>, String), bool>;

impl CheckRun {
    /// Which checks the base branch requires: the answer to the question that the engine asks about one pull request. What it does not speak of may be.
    pub fn required(bytes: &[u8]) -> Option<Required> {
        let said: Value = parse_tolerant(bytes).ok()?;
        let commit = said.pointer("/data/repository/pullRequest/commits/nodes/0/commit")?;
        let Some(nodes) = commit.pointer("/statusCheckRollup/contexts/nodes").and_then(Value::as_array) else {
            return Some(Required::new());
        };
        let text = |node: &Value, path: &str| {
            node.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty()).map(|t| opening(t, SHOWN))
        };
        let mut all = Required::new();
        for node in nodes {
            let name = text(node, "/name").or_else(|| text(node, "/context"));
            let Some((name, is_required)) = name.zip(node.get("isRequired").and_then(Value::as_bool)) else { continue };
            *all.entry((text(node, "/checkSuite/workflowRun/workflow/name"), name)).or_default() |= is_required;
        }
        Some(all)
    }
}
