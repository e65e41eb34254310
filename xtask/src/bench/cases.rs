//! What is measured: ralph, the floors and the baseline, each in a project of its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Result,
    bench::{
        floor::{self, Floors},
        spawn::Program,
    },
    scene::{self, Project, Stops},
    transcript,
};

/// The names of the cases, by which the report finds them.
pub(super) mod id {
    pub(in crate::bench) const FLOOR_NO_LOOP: &str = "floor: no loop";
    pub(in crate::bench) const FLOOR_NO_LOOP_LOG: &str = "floor: no loop, one log line";
    pub(in crate::bench) const FLOOR_RENAME: &str = "floor: loop, rename";
    pub(in crate::bench) const FLOOR_RENAME_SYNC: &str = "floor: loop, fdatasync, rename";
    pub(in crate::bench) const FLOOR_SAME_WRITES: &str = "floor: loop, ralph's own writes";
    pub(in crate::bench) const NO_LOOP: &str = "no loop";
    pub(in crate::bench) const NO_LOOP_CLAUDE: &str = "no loop, .claude exists";
    pub(in crate::bench) const NO_LOOP_RALPH: &str = "no loop, project uses ralph";
    pub(in crate::bench) const LOOP: &str = "loop goes on";
    pub(in crate::bench) const LOOP_TRANSCRIPT: &str = "loop goes on, with transcript";
    pub(in crate::bench) const FALLBACK_SMALL: &str = "fallback, 100 KB";
    pub(in crate::bench) const FALLBACK_MIDDLE: &str = "fallback, 10 MB";
    pub(in crate::bench) const FALLBACK_LARGE: &str = "fallback, largest";
    pub(in crate::bench) const FALLBACK_FAR: &str = "fallback, largest, message 5 MB before the end";
    pub(in crate::bench) const INSTALLED_NO_LOOP: &str = "cargo install: no loop";
    pub(in crate::bench) const INSTALLED_LOOP: &str = "cargo install: loop goes on";
    pub(in crate::bench) const BASH_IDLE: &str = "bash + jq: no loop";
    pub(in crate::bench) const BASH_ACTIVE: &str = "bash + jq: loop goes on, 100 KB";
    pub(in crate::bench) const STATUSLINE: &str = "status line: ralph";
    pub(in crate::bench) const STATUSLINE_LONG: &str = "status line: ralph, 10 MB of journal";
    pub(in crate::bench) const STATUSLINE_NONE: &str = "status line: ralph, no loop";
    pub(in crate::bench) const FLOOR_READ: &str = "floor: reads a journal of 10,000 iterations";
    pub(in crate::bench) const REPORT_HTML: &str = "view: report, page, 10,000 iterations";
    pub(in crate::bench) const REPORT_JSON: &str = "view: report, JSON, 10,000 iterations";
    pub(in crate::bench) const WATCH_FIRST: &str = "view: watch, first screen, 10,000 iterations";
    pub(in crate::bench) const WATCH_ALL: &str = "view: watch, all of 10,000 iterations";
    pub(in crate::bench) const COMMAND_ALONE: &str = "command alone: sh -c true";
    pub(in crate::bench) const GIT_STATUS: &str = "git status alone";
    pub(in crate::bench) const GATE: &str = "gate";
    pub(in crate::bench) const GATE_KNOWN: &str = "gate in git, verdict known";
    pub(in crate::bench) const GATE_CHANGED: &str = "gate in git, file changed";
    pub(in crate::bench) const BASH_GATE: &str = "bash + jq: runs the command";
    pub(in crate::bench) const RUN_ALONE: &str = "command alone: five times";
    pub(in crate::bench) const RUN_BASH: &str = "bash + jq: five iterations in git";
    pub(in crate::bench) const RUN: &str = "run: five iterations";
    pub(in crate::bench) const RUN_GIT: &str = "run: five iterations in git, no snapshots";
    pub(in crate::bench) const RUN_SNAPSHOTS: &str = "run: five iterations in git";
}

pub(super) const CLIENT: &str = "claude-code_2-1-325_harness";

/// One thing to run, many times.
pub(super) struct Case {
    pub(super) id: &'static str,
    pub(super) program: Program,
    pub(super) stops: Stops,
    /// The loop that must have advanced by one with every run.
    pub(super) counts: Option<Project>,
    /// Whether it sends the agent back.
    pub(super) answers: bool,
    /// A file that gets another content before every run.
    pub(super) edits: Option<PathBuf>,
    /// It takes longer than a hundred hook calls, and is run less often.
    pub(super) is_slow: bool,
}

impl Case {
    /// Makes everything ready for run number `n`.
    pub(super) fn prepare(&self, n: u64) -> Result<()> {
        if let Some(file) = &self.edits {
            fs::write(file, format!("run {n}\n"))?;
        }
        self.program.feed(&self.stops.event(n))
    }
}

/// Everything that the cases are made from.
pub(super) struct Stage<'a> {
    pub(super) folder: &'a Path,
    pub(super) ralph: &'a Path,
    pub(super) cargo_install: Option<&'a Path>,
    pub(super) floors: &'a Floors,
    pub(super) largest: u64,
}

impl Stage<'_> {
    pub(super) fn cases(&self) -> Result<Vec<Case>> {
        let mut cases = self.floor_cases()?;
        cases.extend(self.idle_cases()?);
        cases.extend(self.loop_cases()?);
        cases.extend(self.fallback_cases()?);
        cases.extend(self.statusline_cases()?);
        cases.extend(self.bash_cases()?);
        cases.extend(self.gate_cases()?);
        cases.extend(self.iteration_cases()?);
        Ok(cases)
    }

    fn floor_cases(&self) -> Result<Vec<Case>> {
        let no_loop = |id, name, log: bool| -> Result<Case> {
            let project = Project::bare(self.dir(name))?;
            let log = log.then(|| text(&project.dir.join("hook.log")));
            let args = [text(&project.loop_file())].into_iter().chain(log).collect();
            Ok(self.case(id, &self.floors.no_loop, args, project, &Kind::Idle))
        };
        let goes_on = |id, name, how: &str, same: bool| -> Result<Case> {
            let project = Project::with_loop(self.dir(name), self.ralph)?;
            let own = |file: &str| text(&project.dir.join(".ralph").join(file));
            let mut args = vec![how.to_owned(), text(&project.loop_file()), own("backup/main.md"), own("journal/floor.jsonl")];
            if same {
                let sealed = |name: &str| project.home().join(name);
                fs::write(sealed("seal"), "")?;
                args.extend([own("hook.log"), text(&sealed("seal")), text(&sealed("previous"))]);
            }
            let mut case = self.case(id, &self.floors.goes_on, args, project, &Kind::Message(None));
            // It rewrites the file and counts nothing.
            case.counts = None;
            Ok(case)
        };
        Ok(vec![
            no_loop(id::FLOOR_NO_LOOP, "f-idle", false)?,
            no_loop(id::FLOOR_NO_LOOP_LOG, "f-idle-log", true)?,
            goes_on(id::FLOOR_RENAME, "f-rename", "rename", false)?,
            goes_on(id::FLOOR_RENAME_SYNC, "f-sync", "rename-sync", false)?,
            goes_on(id::FLOOR_SAME_WRITES, "f-exchange", "exchange-sync", true)?,
        ])
    }

    fn idle_cases(&self) -> Result<Vec<Case>> {
        let idle = |id, ralph: &Path, project| self.case(id, ralph, hook(), project, &Kind::Idle);
        let mut cases = vec![
            idle(id::NO_LOOP, self.ralph, Project::bare(self.dir("r-idle"))?),
            idle(id::NO_LOOP_CLAUDE, self.ralph, Project::with_claude(self.dir("r-claude"))?),
            idle(id::NO_LOOP_RALPH, self.ralph, Project::with_ended_loop(self.dir("r-ended"), self.ralph)?),
        ];
        if let Some(ralph) = self.cargo_install {
            cases.push(idle(id::INSTALLED_NO_LOOP, ralph, Project::bare(self.dir("d-idle"))?));
        }
        Ok(cases)
    }

    fn loop_cases(&self) -> Result<Vec<Case>> {
        let transcript = self.transcript("small", 60_000, 0)?;
        let goes_on = |id, ralph: &Path, name, transcript| -> Result<Case> {
            let project = Project::with_loop(self.dir(name), self.ralph)?;
            Ok(self.case(id, ralph, hook(), project, &Kind::Message(transcript)))
        };
        let mut cases = vec![
            goes_on(id::LOOP, self.ralph, "r-loop", None)?,
            goes_on(id::LOOP_TRANSCRIPT, self.ralph, "r-transcript", Some(transcript))?,
        ];
        if let Some(ralph) = self.cargo_install {
            cases.push(goes_on(id::INSTALLED_LOOP, ralph, "d-loop", None)?);
        }
        Ok(cases)
    }

    fn fallback_cases(&self) -> Result<Vec<Case>> {
        let sizes = [
            (id::FALLBACK_SMALL, "t-100kb", 100_000, 0),
            (id::FALLBACK_MIDDLE, "t-10mb", 10_000_000, 0),
            (id::FALLBACK_LARGE, "t-large", self.largest, 0),
            (id::FALLBACK_FAR, "t-far", self.largest, 5_000_000),
        ];
        let fallback = |(id, name, bytes, before_end)| {
            let project = Project::with_loop(self.dir(name), self.ralph)?;
            let transcript = self.transcript(name, bytes, before_end)?;
            Ok(self.case(id, self.ralph, hook(), project, &Kind::Transcript(transcript)))
        };
        sizes.into_iter().map(fallback).collect()
    }

    fn statusline_cases(&self) -> Result<Vec<Case>> {
        let line = |id, project: Project, shows: bool| Case {
            counts: None,
            answers: shows,
            ..self.case(id, self.ralph, vec!["statusline".to_owned()], project, &Kind::Idle)
        };
        let long = Project::with_loop(self.dir("s-long"), self.ralph)?;
        long.lengthen_journal(10_000_000)?;
        Ok(vec![
            line(id::STATUSLINE, Project::with_loop(self.dir("s-loop"), self.ralph)?, true),
            line(id::STATUSLINE_LONG, long, true),
            line(id::STATUSLINE_NONE, Project::bare(self.dir("s-none"))?, false),
        ])
    }

    fn bash_cases(&self) -> Result<Vec<Case>> {
        // As the client runs a script: through the shell.
        let (shell, args) = (Path::new("/bin/sh"), || vec!["-c".to_owned(), text(&floor::baseline("stop-hook.sh"))]);
        let idle = Project::bare(self.dir("b-idle"))?;
        let active = Project::with_loop(self.dir("b-active"), self.ralph)?;
        let transcript = self.transcript("b-active", 100_000, 0)?;
        Ok(vec![
            self.case(id::BASH_IDLE, shell, args(), idle, &Kind::Idle),
            Case { is_slow: true, ..self.case(id::BASH_ACTIVE, shell, args(), active, &Kind::Transcript(transcript)) },
        ])
    }

    fn case(&self, id: &'static str, program: &Path, args: Vec<String>, project: Project, kind: &Kind) -> Case {
        let nowhere = self.folder.join("none.jsonl");
        let (stops, answers, client) = match kind {
            Kind::Idle => (Stops::with_message(&project, &nowhere), false, Some(CLIENT)),
            Kind::Message(transcript) => (Stops::with_message(&project, transcript.as_ref().unwrap_or(&nowhere)), true, Some(CLIENT)),
            Kind::Transcript(transcript) => (Stops::without_message(&project, transcript), true, None),
        };
        let stdin = project.dir.with_extension("event.json");
        let program = Program { path: program.to_owned(), args, env: project.env(client), stdin };
        // A loop in which nothing changes is paused after a while.
        let edits = answers.then(|| project.dir.join("work.txt"));
        Case { id, program, stops, counts: answers.then_some(project), answers, edits, is_slow: false }
    }

    pub(super) fn dir(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn transcript(&self, name: &str, bytes: u64, before_end: u64) -> Result<PathBuf> {
        let path = self.folder.join(name).with_extension("jsonl");
        transcript::write(&path, bytes, before_end)?;
        Ok(path)
    }
}

/// What the stops of a case are like.
enum Kind {
    Idle,
    /// The event carries the message; perhaps there is a transcript too.
    Message(Option<PathBuf>),
    /// Only the transcript has the message.
    Transcript(PathBuf),
}

pub(super) fn hook() -> Vec<String> {
    scene::hook_args()
}

pub(super) fn text(path: &Path) -> String {
    path.display().to_string()
}
