//! `--land pr`: what is proven gets a branch and a pull request of its own, and has landed once that is merged. GitHub is asked through the `gh` that people have.

use std::time::Duration;

use ralph_core::gate::pull_request::Repository;
use ralph_engine::sys::{command::Task, process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    fleet::{Fleet, Held},
    git::Git,
    job_rules::Outcome,
    problem::{Problem, Result},
    records::{Job, Spec},
};

/// The field of a job's record.
const FIELD: &str = "pull_request";

/// How long an answer of GitHub's may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// The pull request of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub url: String,
    /// The work that it has.
    pub of: String,
}

/// The pull request that the work of a job is in.
pub(crate) fn of(job: &Job) -> Option<Opened> {
    let opened: Opened = serde_json::from_value(job.rest.get(FIELD)?.clone()).ok()?;
    (Some(&opened.of) == job.commit.as_ref()).then_some(opened)
}

/// Where pull requests are opened, and where their branches are pushed to.
struct Place {
    repository: Repository,
    push: String,
}

/// Says before anything begins why there can be no pull requests.
pub(crate) fn check(repository: &std::path::Path, remote: Option<&str>) -> Result<()> {
    gh()?;
    place(repository, remote).map(drop)
}

fn gh() -> Result<std::path::PathBuf> {
    let none =
        || Problem::new("--land pr needs `gh`, through which GitHub is asked: install it (https://cli.github.com), then `gh auth login`");
    process::which("gh").ok_or_else(none)
}

fn place(repository: &std::path::Path, remote: Option<&str>) -> Result<Place> {
    let (asked, push) = match remote {
        Some(url) => (url.to_owned(), url.to_owned()),
        None => {
            let git = Git::at(repository);
            let none = |_| Problem::new("--land pr needs a remote on GitHub: `git remote add origin URL`");
            (git.word(&["remote", "get-url", "origin"]).map_err(none)?, git.word(&["remote", "get-url", "--push", "origin"])?)
        }
    };
    match Repository::of_url(&asked) {
        Some(repository) if repository.other_forge().is_none() => Ok(Place { repository, push }),
        _ => Err(Problem::new(format!("--land pr knows only GitHub, and {asked} is elsewhere"))),
    }
}

/// Pushes a commit to a branch of the job's own and opens a pull request for it. The result names it.
pub(crate) fn open(fleet: &Fleet, held: &mut Held, spec: &Spec, commit: &str) -> Result<Outcome> {
    let settings = &fleet.settings;
    let place = place(&settings.repository, settings.remote.as_deref())?;
    // The same work keeps its branch and its pull request, whoever lands it; work that came back gets others: nothing is forced.
    let work = held.job.commit.clone().unwrap_or_default();
    let branch = format!("{}-{}-{}", settings.target, held.id, work.get(..12).unwrap_or(&work));
    fleet.hub.push_new(&place.push, commit, &branch)?;
    let repository = place.repository.to_string();
    let title = spec.task.lines().next().unwrap_or(&held.id);
    let title = spec.item.as_ref().map_or_else(|| title.to_owned(), |item| format!("{item}: {title}"));
    let gates = "Its gates have passed on these files, merged with the base branch.";
    let body = format!("{}\n\n{gates}\n\nRalph-Job: {}/{}\n", spec.task.trim(), settings.id, held.id);
    let known = ask(fleet, &["pr", "list", "-R", &repository, "--head", &branch, "--state", "all", "--limit", "1", "--json", "url"])?;
    let known: Value = serde_json::from_str(&known).unwrap_or_default();
    let url = match known.pointer("/0/url").and_then(Value::as_str) {
        Some(url) => url.to_owned(),
        None => ask(
            fleet,
            &["pr", "create", "-R", &repository, "--head", &branch, "--base", &settings.base, "--title", &title, "--body", &body],
        )?,
    };
    let opened = Opened { url: url.clone(), of: work };
    held.job.rest.insert(FIELD.to_owned(), serde_json::to_value(opened).map_err(Problem::when("a pull request"))?);
    Ok(Outcome::Opened { url })
}

/// What became of a pull request. `None`: it is open.
pub(crate) fn look(fleet: &Fleet, opened: &Opened) -> Result<Option<Outcome>> {
    let said = ask(fleet, &["pr", "view", "--json", "state,mergeCommit", "--", &opened.url])?;
    let view: Value = serde_json::from_str(&said).map_err(Problem::when("what gh said"))?;
    Ok(match view.get("state").and_then(Value::as_str) {
        Some("MERGED") => {
            let commit = view.pointer("/mergeCommit/oid").and_then(Value::as_str).unwrap_or(&opened.of);
            Some(Outcome::Landed { commit: commit.to_owned() })
        }
        Some("CLOSED") => Some(Outcome::NeedsPerson { why: format!("its pull request was closed: {}", opened.url) }),
        _ => None,
    })
}

fn ask(fleet: &Fleet, args: &[&str]) -> Result<String> {
    let task = Task {
        program: gh()?.into(),
        args: args.iter().map(Into::into).collect(),
        // No project: what it asks about is named.
        folder: &fleet.hub.git.folder,
        vars: vec![("GH_PROMPT_DISABLED".into(), "1".into())],
        hidden: Vec::new(),
        input: Vec::new(),
        limit: PATIENCE,
        most_output: 4 << 20,
    };
    match task.run() {
        Ok(ran) if ran.code == Some(0) => Ok(ran.text()),
        Ok(ran) => Err(Problem::new(format!("gh {} {}: {}", args[0], args[1], ran.stderr.trim()))),
        Err(_) => Err(Problem::new(format!("gh {} {} has no answer", args[0], args[1]))),
    }
}
