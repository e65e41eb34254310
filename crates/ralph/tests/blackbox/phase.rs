//! `ralph phase` through the real gh: one case for every situation that a branch can be in (S2-1), and what each fault of the forge leads to.

use std::{ops::Deref, path::Path, process::Command};

use ralph_testkit::{Check, Fault, Gh, GitHub, Origin, Output};
use serde_json::Value;

use crate::common::{Bed, RALPH, run};

/// A project with an origin at a scripted GitHub, on the branch `feature/x` with one pushed commit.
pub(crate) struct Hub {
    bed: Bed,
    pub(crate) github: GitHub,
    gh: Gh,
    pub(crate) head: String,
}

impl Deref for Hub {
    type Target = Bed;
    fn deref(&self) -> &Bed {
        &self.bed
    }
}

impl Hub {
    /// `None`, and said so, where there is no `gh`.
    pub(crate) fn new() -> Option<Self> {
        let gh = Gh::installed().map_err(|skip| skip.tell()).ok()?;
        let (github, bed) = (GitHub::start("acme/widget"), Bed::in_git());
        let origin = Origin::at(&github, &bed);
        origin.branch("feature/x");
        origin.commit("a.txt", "a\n");
        let head = origin.push();
        Some(Hub { bed, github, gh, head })
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        Origin::known(&self.bed)
    }

    /// `ralph` as a person runs it, with gh on the path and this hub behind it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.register();
        let mut command = self.bed.command(RALPH);
        command.args(args).env("PATH", self.gh.path()).envs(self.github.env());
        command
    }

    pub(crate) fn ralph(&self, args: &[&str]) -> Output {
        run(&mut self.command(args), b"")
    }

    pub(crate) fn phase(&self) -> Value {
        told(&self.ralph(&["phase", "--json"]))
    }

    /// An open pull request of the branch with these checks on its head.
    pub(crate) fn open(&self, checks: &[Check]) -> u64 {
        let number = self.github.open("feature/x", &self.head);
        for check in checks {
            self.github.check(&self.head, check.clone());
        }
        number
    }

    /// A program that is found before gh and is called like it.
    fn instead_of_gh(&self, script: &str) -> String {
        let folder = self.home().join("fake");
        std::fs::create_dir_all(&folder).unwrap();
        self.script(&folder.join("gh"), script);
        format!("{}:{}", folder.display(), self.gh.path().to_string_lossy())
    }

    fn script(&self, path: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.github.unexpected(), Vec::<String>::new());
        }
    }
}

fn told(out: &Output) -> Value {
    let told: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}{}", out.stdout, out.stderr));
    let code = i32::from(told["phase"] == "unknown");
    assert_eq!((out.code, out.stderr.as_str()), (Some(code), ""), "{told}");
    told
}

/// A hub, or the end of the test.
#[macro_export]
macro_rules! hub {
    () => {
        match $crate::phase::Hub::new() {
            Some(hub) => hub,
            None => return,
        }
    };
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
    assert_phase(&hub.phase(), "p0", "there is no pull request for feature/x in acme/widget", "gh pr create");
    assert_eq!(hub.github.requests().len(), 1, "one question is enough: {:?}", hub.github.requests());
}

#[test]
fn s2_1_checks_by_what_they_say() {
    let hub = hub!();
    hub.open(&[]);
    let many = |checks: &[Check]| checks.to_vec();
    #[rustfmt::skip]
    let table = [
        (many(&[Check::run("build")]), "p2", "CI is green", "gh pr merge 1 --squash --delete-branch"),
        (many(&[Check::run("build").failed(), Check::run("lint")]), "p1", "CI / build (failure); 1 passes", "Mend it, commit and push"),
        (many(&[Check::run("build").failed(), Check::run("lint").pending()]), "p1", "1 still runs", "Mend it"),
        (many(&[Check::run("build").pending(), Check::run("lint")]), "pending", "CI / build (in progress); 1 of 2 pass", "Wait"),
        (many(&[Check::run("build").queued()]), "pending", "CI / build (queued)", "Wait"),
        (many(&[Check::run("build").concluded("SKIPPED"), Check::run("lint").concluded("NEUTRAL")]), "p2", "2 checks pass", "merge"),
        (many(&[Check::run("build").concluded("CANCELLED")]), "p1", "CI / build (cancelled)", "Mend it"),
        (many(&[Check::run("build").concluded("TIMED_OUT")]), "p1", "CI / build (timed out)", "Mend it"),
        (many(&[Check::run("build").concluded("STARTUP_FAILURE")]), "p1", "(startup failure)", "Mend it"),
        (many(&[Check::run("build").concluded("STALE")]), "p1", "(stale)", "Mend it"),
        (many(&[Check::run("deploy").concluded("ACTION_REQUIRED")]), "unknown", "needs an approval: CI / deploy", "Approve it on https://"),
        (many(&[Check::run("build").concluded("MOONSHINE")]), "unknown", "says \"MOONSHINE\"", ""),
        (many(&[Check::status("ci/circle")]), "pending", "more checks may still appear", "Wait"),
        (many(&[Check::status("ci/circle"), Check::run("build")]), "p2", "2 checks pass", "merge"),
        (many(&[Check::status("ci/circle").failed(), Check::run("build")]), "p1", "ci/circle (failure); 1 passes", "Mend it"),
        (many(&[Check::status("ci/circle").concluded("ERROR")]), "p1", "ci/circle (error)", "Mend it"),
        (many(&[Check::status("ci/circle").pending(), Check::run("build")]), "pending", "ci/circle (pending)", "Wait"),
    ];
    for (checks, phase, because, next) in table {
        hub.github.forget_checks(&hub.head);
        for check in &checks {
            hub.github.check(&hub.head, check.clone());
        }
        let asked = hub.github.requests().len();
        assert_phase(&hub.phase(), phase, because, next);
        assert_eq!(hub.github.requests().len(), asked + 1, "one question is enough");
    }
}
