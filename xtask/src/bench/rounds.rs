//! What a round of `ralph run` costs besides the agent: rounds of a command that does nothing, next to that command alone and to a loop of bash, git and jq.

use std::path::PathBuf;

use std::fs;

use crate::{
    Result,
    bench::{
        cases::{Case, Stage, id, text},
        floor,
        spawn::Program,
    },
    scene::{Project, Stops},
};

/// So many rounds make one case; the start of what carries them is part of it.
const ROUNDS: &str = "5";

const AGENT: &str = "true";

impl Stage<'_> {
    pub(super) fn round_cases(&self) -> Result<Vec<Case>> {
        let alone = format!("for n in 1 2 3 4 5; do sh -c {AGENT}; done; echo done");
        let script = format!("exec {} {ROUNDS} {AGENT}", text(&floor::baseline("run-loop.sh")));
        Ok(vec![
            case(id::ROUNDS_ALONE, &alone, &Project::bare(self.dir("n-alone"))?),
            case(id::ROUNDS_BASH, &script, &Project::with_repository(self.dir("n-bash"))?),
            self.rounds(id::ROUNDS, &Project::bare(self.dir("n-plain"))?, &["--no-snapshots"])?,
            self.rounds(id::ROUNDS_GIT, &Project::with_repository(self.dir("n-git"))?, &["--no-snapshots"])?,
            self.rounds(id::ROUNDS_SNAPSHOTS, &Project::with_repository(self.dir("n-snapshots"))?, &[])?,
        ])
    }

    /// Goes on, each time, with a loop that nothing ends.
    fn rounds(&self, id: &'static str, project: &Project, options: &[&str]) -> Result<Case> {
        // What marks a project: without it the folder around it would be the one, and that is the workspace.
        fs::create_dir_all(project.dir.join(".claude"))?;
        let run = ["run", "--agent-cmd", AGENT, "--quiet"];
        let endless = ["Go", "--once", "--max-iterations", "0", "--hours", "0", "--stall-rounds", "0", "--idle-rounds", "0"];
        project.ralph_of(&home(project), self.ralph, &[&run[..], &endless, options].concat())?;
        let args = [&run[..], &["--continue", "--rounds", ROUNDS], options].concat().join(" ");
        Ok(case(id, &format!("exec {} {args}", text(self.ralph)), project))
    }
}

/// A run does not begin in the home folder.
fn home(project: &Project) -> PathBuf {
    project.dir.with_extension("home")
}

/// A line that a person types in a project.
fn case(id: &'static str, line: &str, project: &Project) -> Case {
    let program = Program {
        path: "/bin/sh".into(),
        args: vec!["-c".to_owned(), format!("cd {} && {line}", text(&project.dir))],
        env: vec![("PATH", "/usr/bin:/bin".to_owned()), ("HOME", text(&home(project)))],
        stdin: project.dir.with_extension("event.json"),
    };
    Case { id, program, stops: Stops::with_claim(project), counts: None, answers: true, edits: None }
}
