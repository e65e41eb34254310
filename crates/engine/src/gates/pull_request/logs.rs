//! The failing jobs and the useful end of their logs, for the agent that has to fix them (S2-4).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ralph_core::{
    gate::{
        Finding, Stream, Useful,
        pull_request::{CheckRun, JobLog},
    },
    text::Masking,
};

use crate::{
    gates::{
        Context,
        forge::{self, Asking},
        logs::Log,
    },
    sys::secrets,
};

/// The logs of so many jobs are fetched.
const MOST_JOBS: usize = 3;

/// How many characters of the logs the agent gets, of all jobs together.
const EXCERPT: usize = 1_800;

/// Adds them to the finding. A log that cannot be fetched changes no verdict.
pub(super) fn add(finding: Finding, failing: &[CheckRun], asking: &Asking<'_>, ctx: &Context<'_>) -> Finding {
    let jobs: Vec<&CheckRun> = failing.iter().filter(|check| check.job.is_some()).take(MOST_JOBS).collect();
    let room = EXCERPT / jobs.len().max(1);
    let names: Vec<String> = jobs.iter().map(|check| check.shown()).collect();
    let mut log = (!jobs.is_empty()).then(|| Log::begin(ctx.project, &finding.gate, &format!("the logs of {}", names.join(", "))));
    let mut parts = Vec::new();
    for check in failing.iter().take(2 * MOST_JOBS) {
        let url = check.url.as_deref().map(|url| format!(": {url}")).unwrap_or_default();
        let mut part = format!("{} ({}){url}", check.shown(), check.word.shown());
        if let Some(job) = check.job.filter(|_| jobs.iter().any(|job| std::ptr::eq(*job, check))) {
            let (excerpt, written) = fetch(check, job, room, asking, log.take());
            log = written;
            if !excerpt.is_empty() {
                part = format!("{part}\n{excerpt}");
            }
        }
        parts.push(part);
    }
    let (log, problem) = log.map(|log| log.finish(ctx.project, &finding.what)).unwrap_or_default();
    parts.extend(problem);
    Finding { log, detail: parts.join("\n"), ..finding }
}

/// A log while it is fetched.
struct Heard {
    /// All of it is written here.
    log: Option<Log>,
    masking: Masking,
    reader: JobLog,
    useful: Useful,
}

impl Heard {
    fn hear(&mut self, bytes: &[u8]) {
        let mut masked = Vec::with_capacity(bytes.len());
        self.masking.feed(bytes, &mut masked);
        self.keep(&masked);
    }

    fn keep(&mut self, masked: &[u8]) {
        self.write(masked);
        let useful = &mut self.useful;
        self.reader.feed(masked, &mut |text| useful.feed(Stream::Out, text));
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(log) = &mut self.log {
            log.write(bytes);
        }
    }
}

/// Fetches the log of one job: its useful part, and the log that has all of it.
fn fetch(check: &CheckRun, job: u64, room: usize, asking: &Asking<'_>, log: Option<Log>) -> (String, Option<Log>) {
    let mut heard = Heard { log, masking: secrets::masking(), reader: JobLog::default(), useful: Useful::new(room) };
    heard.write(format!("\n# {} (job {job})\n", check.shown()).as_bytes());
    let heard = Arc::new(Mutex::new(Some(heard)));
    let listening = Arc::clone(&heard);
    let fetched = forge::job_log(asking, job, move |bytes| {
        if let Some(heard) = &mut *lock(&listening) {
            heard.hear(bytes);
        }
    });
    let Some(mut heard) = lock(&heard).take() else { return (String::new(), None) };
    let mut rest = Vec::new();
    heard.masking.finish(&mut rest);
    heard.keep(&rest);
    match fetched {
        Ok(()) => {
            let Heard { log, reader, mut useful, .. } = heard;
            reader.finish(&mut |text| useful.feed(Stream::Out, text));
            (useful.finish(), log)
        }
        Err(trouble) => {
            heard.write(format!("# {}\n", trouble.what).as_bytes());
            (format!("its log cannot be had: {}", trouble.what), heard.log)
        }
    }
}

fn lock(heard: &Mutex<Option<Heard>>) -> MutexGuard<'_, Option<Heard>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
