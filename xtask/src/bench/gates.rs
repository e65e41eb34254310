//! What a gate costs: a claim that one trivial command has to prove, next to that command alone and to a hook of bash and jq that runs it.

use std::path::{Path, PathBuf};

use crate::{
    Result,
    bench::{
        cases::{Case, Stage, hook, id, text},
        floor,
        spawn::Program,
    },
    scene::{Cache, Project, Repository, Stops},
};

impl Stage<'_> {
    pub(super) fn gate_cases(&self) -> Result<Vec<Case>> {
        let alone = Project::bare(self.dir("g-alone"))?;
        let status = Project::with_repository(self.dir("g-status"))?;
        let plain = self.gated("g-plain", Cache::Off, Repository::No)?;
        let known = self.gated("g-known", Cache::On, Repository::Yes)?;
        let changed = self.gated("g-changed", Cache::On, Repository::Yes)?;
        let bash = self.gated("g-bash", Cache::Off, Repository::No)?;
        let edited = changed.source();
        let script = vec!["-c".to_owned(), text(&floor::baseline("verify-hook.sh"))];
        let sh = Path::new("/bin/sh");
        Ok(vec![
            silent(id::COMMAND_ALONE, sh, vec!["-c".to_owned(), "true".to_owned()], &alone),
            silent(
                id::GIT_STATUS,
                Path::new("/usr/bin/git"),
                vec!["-C".to_owned(), text(&status.dir), "status".to_owned(), "--porcelain".to_owned()],
                &status,
            ),
            claim(id::GATE, self.ralph, hook(), plain),
            claim(id::GATE_KNOWN, self.ralph, hook(), known),
            Case { edits: Some(edited), ..claim(id::GATE_CHANGED, self.ralph, hook(), changed) },
            Case { is_slow: true, ..claim(id::BASH_GATE, sh, script, bash) },
        ])
    }

    fn gated(&self, name: &str, cache: Cache, repository: Repository) -> Result<Project> {
        Project::with_gate(self.dir(name), self.ralph, cache, repository)
    }
}

/// A program that is no hook.
fn silent(id: &'static str, program: &Path, args: Vec<String>, project: &Project) -> Case {
    Case {
        id,
        program: started(program, args, project),
        stops: Stops::with_claim(project),
        counts: None,
        answers: false,
        edits: None,
        is_slow: false,
    }
}

/// A hook whose agent claims to be done, and is sent back.
fn claim(id: &'static str, program: &Path, args: Vec<String>, project: Project) -> Case {
    let (program, stops) = (started(program, args, &project), Stops::with_claim(&project));
    Case { id, program, stops, counts: Some(project), answers: true, edits: None, is_slow: false }
}

fn started(program: &Path, args: Vec<String>, project: &Project) -> Program {
    let stdin: PathBuf = project.dir.with_extension("event.json");
    Program { path: program.to_owned(), args, env: project.env(Some(super::cases::CLIENT)), stdin }
}
