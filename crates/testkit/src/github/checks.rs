//! What continuous integration says of a commit: check runs (with the logs of their jobs) and commit statuses.

use serde_json::{Value, json};

/// When checks begin and end, unless a test says otherwise.
pub const BEGUN: &str = "2026-03-04T05:06:07Z";
pub const ENDED: &str = "2026-03-04T05:16:07Z";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// A check run of an app (GitHub Actions, where it has a workflow).
    Run { status: &'static str, conclusion: Option<String>, workflow: Option<String> },
    /// A commit status of the older interface.
    Status { state: String },
}

/// One check; it has succeeded unless it is told otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    name: String,
    kind: Kind,
    begun: String,
    ended: String,
    url: Option<String>,
    required: bool,
    pub(super) log: Option<String>,
    /// The numbers of the workflow's run and of the job; the hub gives them.
    pub(super) ids: (u64, u64),
}

impl Check {
    /// A check run of the workflow `CI`.
    pub fn run(name: &str) -> Self {
        let kind = Kind::Run { status: "COMPLETED", conclusion: Some("SUCCESS".to_owned()), workflow: Some("CI".to_owned()) };
        Self::of(name, kind)
    }

    /// A commit status.
    pub fn status(context: &str) -> Self {
        Self::of(context, Kind::Status { state: "SUCCESS".to_owned() })
    }

    fn of(name: &str, kind: Kind) -> Self {
        let (begun, ended) = (BEGUN.to_owned(), ENDED.to_owned());
        Self { name: name.to_owned(), kind, begun, ended, url: None, required: false, log: None, ids: (0, 0) }
    }

    #[must_use]
    pub fn failed(self) -> Self {
        self.concluded("FAILURE")
    }

    /// Any end: `SKIPPED`, `NEUTRAL`, `CANCELLED`, `TIMED_OUT`, `ACTION_REQUIRED`, `STALE` …; of a status also `ERROR`.
    #[must_use]
    pub fn concluded(mut self, how: &str) -> Self {
        match &mut self.kind {
            Kind::Run { status, conclusion, .. } => (*status, *conclusion) = ("COMPLETED", Some(how.to_owned())),
            Kind::Status { state } => how.clone_into(state),
        }
        self
    }

    /// At work; of a status, announced.
    #[must_use]
    pub fn pending(self) -> Self {
        self.unfinished("IN_PROGRESS")
    }

    /// Waits for a machine.
    #[must_use]
    pub fn queued(self) -> Self {
        self.unfinished("QUEUED")
    }

    fn unfinished(mut self, how: &'static str) -> Self {
        match &mut self.kind {
            Kind::Run { status, conclusion, .. } => (*status, *conclusion) = (how, None),
            Kind::Status { state } => "PENDING".clone_into(state),
        }
        self
    }

    /// The branch's rules ask for it.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Another workflow; the empty name is a check run of an app without workflows.
    #[must_use]
    pub fn workflow(mut self, name: &str) -> Self {
        if let Kind::Run { workflow, .. } = &mut self.kind {
            *workflow = (!name.is_empty()).then(|| name.to_owned());
        }
        self
    }

    /// What the job printed. GitHub puts a time before every line.
    #[must_use]
    pub fn log(mut self, text: &str) -> Self {
        self.log = Some(text.to_owned());
        self
    }

    /// Where its details are, if not at a job of GitHub Actions.
    #[must_use]
    pub fn url(mut self, url: &str) -> Self {
        self.url = Some(url.to_owned());
        self
    }

    #[must_use]
    pub fn times(mut self, begun: &str, ended: &str) -> Self {
        (self.begun, self.ended) = (begun.to_owned(), ended.to_owned());
        self
    }

    pub(super) fn is_pending(&self) -> bool {
        match &self.kind {
            Kind::Run { conclusion, .. } => conclusion.is_none(),
            Kind::Status { state } => state == "PENDING" || state == "EXPECTED",
        }
    }

    pub(super) fn is_good(&self) -> bool {
        match &self.kind {
            Kind::Run { conclusion, .. } => conclusion.as_deref().is_some_and(|how| ["SUCCESS", "NEUTRAL", "SKIPPED"].contains(&how)),
            Kind::Status { state } => state == "SUCCESS",
        }
    }

    pub(super) fn is_required(&self) -> bool {
        self.required
    }

    /// Whether `other` is a newer report of the same check.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let place = |check: &Self| match &check.kind {
            Kind::Run { workflow, .. } => (true, workflow.clone()),
            Kind::Status { .. } => (false, None),
        };
        self.name == other.name && place(self) == place(other)
    }

    pub(super) fn log_as_served(&self) -> Option<String> {
        let log = self.log.as_ref()?;
        let lines = log.lines().map(|line| format!("2026-03-04T05:06:07.1234567Z {line}\n"));
        Some(std::iter::once("\u{feff}".to_owned()).chain(lines).collect())
    }

    pub(super) fn tree(&self, repository: &str) -> Value {
        let (run, job) = self.ids;
        match &self.kind {
            Kind::Run { status, conclusion, workflow } => {
                let job_url = || format!("https://github.com/{repository}/actions/runs/{run}/job/{job}");
                let of_workflow = workflow.as_ref().map(|name| {
                    json!({"__typename": "WorkflowRun", "databaseId": run, "event": "pull_request",
                        "workflow": {"__typename": "Workflow", "name": name}})
                });
                json!({
                    "__typename": "CheckRun",
                    "id": format!("CR_{job}"),
                    "databaseId": job,
                    "name": self.name,
                    "status": status,
                    "conclusion": conclusion,
                    "startedAt": (*status != "QUEUED").then_some(&self.begun),
                    "completedAt": conclusion.as_ref().map(|_| &self.ended),
                    "detailsUrl": self.url.clone().unwrap_or_else(job_url),
                    "title": null,
                    "summary": null,
                    "isRequired": self.required,
                    "checkSuite": {"__typename": "CheckSuite", "workflowRun": of_workflow,
                        "app": {"__typename": "App", "slug": "github-actions", "name": "GitHub Actions"}},
                })
            }
            Kind::Status { state } => json!({
                "__typename": "StatusContext",
                "id": format!("SC_{job}"),
                "context": self.name,
                "state": state,
                "description": null,
                "targetUrl": self.url.clone().unwrap_or_else(|| format!("https://ci.example.invalid/{job}")),
                "createdAt": self.begun,
                "isRequired": self.required,
            }),
        }
    }
}

/// The state of all checks of a commit together.
pub(super) fn rollup(checks: &[Check]) -> &'static str {
    if checks.iter().any(|check| !check.is_pending() && !check.is_good()) {
        "FAILURE"
    } else if checks.iter().any(Check::is_pending) {
        "PENDING"
    } else {
        "SUCCESS"
    }
}
