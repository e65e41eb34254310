//! What an iteration of `ralph run` costs besides the agent: iterations of a command that does nothing, next to that command alone and to a loop of bash, git and jq.

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

/// So many iterations make one case; the start of the run is part of it.
const ITERATIONS: &str = "5";

const AGENT: &str = "true";

impl Stage<'_> {
    pub(super) fn iteration_cases(&self) -> Result<Vec<Case>> {
        let alone = format!("for n in 1 2 3 4 5; do sh -c {AGENT}; done; echo done");
        let script = format!("exec {} {ITERATIONS} {AGENT}", text(&floor::baseline("run-loop.sh")));
        Ok(vec![
            case(id::RUN_ALONE, &alone, &Project::bare(self.dir("n-alone"))?),
            case(id::RUN_BASH, &script, &Project::with_repository(self.dir("n-bash"))?),
            self.iterations(id::RUN, &Project::bare(self.dir("n-plain"))?, &["--no-snapshots"])?,
            self.iterations(id::RUN_GIT, &Project::with_repository(self.dir("n-git"))?, &["--no-snapshots"])?,
            self.iterations(id::RUN_SNAPSHOTS, &Project::with_repository(self.dir("n-snapshots"))?, &[])?,
        ])
    }

    /// Goes on, each time, with a loop that nothing ends.
    fn iterations(&self, id: &'static str, project: &Project, options: &[&str]) -> Result<Case> {
        // Marks the project: without it a folder around it could be taken for one.
        fs::create_dir_all(project.dir.join(".claude"))?;
        let run = ["run", "--agent-cmd", AGENT, "--quiet"];
        let endless = ["Go", "--once", "--max-iterations", "0", "--hours", "0", "--stall-iterations", "0", "--idle-iterations", "0"];
        project.ralph(self.ralph, &[&run[..], &endless, options].concat())?;
        let args = [&run[..], &["--continue", "--iterations", ITERATIONS], options].concat().join(" ");
        Ok(case(id, &format!("exec {} {args}", text(self.ralph)), project))
    }
}

/// A line that a person types in a project.
fn case(id: &'static str, line: &str, project: &Project) -> Case {
    let program = Program {
        path: "/bin/sh".into(),
        args: vec!["-c".to_owned(), format!("cd {} && {line}", text(&project.dir))],
        env: project.env_of_person(),
        stdin: project.dir.with_extension("event.json"),
    };
    Case { id, program, stops: Stops::with_claim(project), counts: None, answers: true, edits: None, is_slow: true }
}
