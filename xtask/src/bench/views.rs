//! What looking costs: a journal of ten thousand iterations in `ralph report` and in `ralph watch`, next to reading that file.
//!
//! Each of these takes longer than a hundred hook calls, so they run interleaved among themselves, and not often.

use std::{
    fs,
    time::{Duration, Instant},
};

use ralph_testkit::{Pty, story};

use crate::{
    Result,
    bench::{
        Dice,
        cases::{Stage, id, text},
        report::Measured,
        spawn::Program,
    },
    scene::Project,
};

const ITERATIONS: u64 = 10_000;
const LOOP: &str = "main-20261101-080000";
const SCREEN: (u16, u16) = (40, 120);
const PATIENCE: Duration = Duration::from_mins(1);

/// A program that ends by itself, and what it took.
struct Reader {
    id: &'static str,
    program: Program,
    times: Vec<Duration>,
}

/// `ralph watch`, until it shows something, and until it knows every iteration.
#[derive(Default)]
struct Watched {
    first: Vec<Duration>,
    all: Vec<Duration>,
    peak_kb: u64,
}

impl Stage<'_> {
    /// Measures all of them, so many times.
    pub(super) fn views(&self, runs: u64) -> Result<Vec<Measured>> {
        let project = self.long_loop()?;
        let mut readers = self.readers(&project)?;
        let mut watched = Watched::default();
        let mut order: Vec<usize> = (0..=readers.len()).collect();
        let mut dice = Dice(0x5eed);
        for n in 0..=runs {
            if n == 1 {
                // The first time was to warm up.
                for reader in &mut readers {
                    reader.times.clear();
                }
                watched = Watched::default();
            }
            dice.shuffle(&mut order);
            for at in &order {
                match readers.get_mut(*at) {
                    Some(reader) => reader.times.push(reader.program.run()?.wall),
                    None => self.watch(&project, &mut watched)?,
                }
            }
        }
        let mut all = Vec::new();
        for reader in readers {
            let peak = reader.program.peak_kb(&self.floors.peak)?;
            all.push(Measured::of(reader.id, reader.times, peak));
        }
        all.push(Measured::of(id::WATCH_FIRST, watched.first, watched.peak_kb));
        all.push(Measured::of(id::WATCH_ALL, watched.all, watched.peak_kb));
        Ok(all)
    }

    /// A project with a live loop that has come that far.
    fn long_loop(&self) -> Result<Project> {
        let project = Project::with_claude(self.dir("e-long"))?;
        let own = project.dir.join(".ralph/journal");
        fs::create_dir_all(&own)?;
        fs::write(own.join(LOOP).with_extension("jsonl"), story::long(LOOP, ITERATIONS))?;
        let head = format!(
            "active: true\niteration: {}\nmax_iterations: 0\ncompletion_promise: \"{}\"\nloop_id: {LOOP}",
            ITERATIONS + 1,
            story::PROMISE
        );
        fs::write(project.loop_file(), format!("---\n{head}\n---\n\nGo on.\n"))?;
        Ok(project)
    }

    fn readers(&self, project: &Project) -> Result<Vec<Reader>> {
        let journal = project.dir.join(".ralph/journal").join(LOOP).with_extension("jsonl");
        let (dir, ralph) = (text(&project.dir), text(self.ralph));
        let report = |how: &str| format!("cd {dir} && exec {ralph} report {how}");
        let all = [
            (id::FLOOR_READ, format!("exec {} {}", text(&self.floors.read), text(&journal))),
            (id::REPORT_HTML, report("--html -")),
            (id::REPORT_JSON, report("--json")),
        ];
        let reader = |(id, line): (&'static str, String)| {
            let args = vec!["-c".to_owned(), format!("{line} >/dev/null")];
            let program =
                Program { path: "/bin/sh".into(), args, env: project.env_of_person(), stdin: project.dir.with_extension("event.json") };
            program.feed("")?;
            Ok(Reader { id, program, times: Vec::new() })
        };
        all.into_iter().map(reader).collect()
    }

    fn watch(&self, project: &Project, watched: &mut Watched) -> Result<()> {
        let mut command = std::process::Command::new(self.ralph);
        command.arg("watch").current_dir(&project.dir).env_clear().envs(project.env_of_person()).env("TERM", "xterm-256color");
        let begun = Instant::now();
        let terminal = Pty::spawn(command, SCREEN.0, SCREEN.1);
        terminal.wait_for(|screen| screen.contains(LOOP) && screen.contains("quit"), PATIENCE)?;
        watched.first.push(begun.elapsed());
        let every = format!(" {ITERATIONS} iterations");
        terminal.wait_for(|screen| screen.contains(&every), PATIENCE)?;
        watched.all.push(begun.elapsed());
        watched.peak_kb = watched.peak_kb.max(peak_kb(terminal.pid())?);
        terminal.send("q");
        if terminal.wait_exit(PATIENCE) == Some(0) { Ok(()) } else { Err("ralph watch did not quit".into()) }
    }
}

/// The peak of a process that lives.
fn peak_kb(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("the system does not tell a process's peak memory")?;
    Ok(peak.trim().trim_end_matches(" kB").parse()?)
}
