//! The failing jobs and the useful end of their logs, for the agent that has to mend them (S2-4).

use std::sync::{Arc, Mutex, PoisonError};

use ralph_core::gate::{
    Finding,
    output::{Stream, Useful},
    pull_request::{CheckRun, job_log},
};

use crate::{
    forge::{self, Asking},
    gates::{Context, logs::Log},
    sys::secrets,
};

/// Of so many jobs the logs are fetched.
const MOST_JOBS: usize = 3;

/// How many characters of the logs the agent gets, of all jobs together.
const EXCERPT: usize = 1_800;

/// Adds them to the finding. A log that cannot be had changes no verdict.
pub(super) fn add(finding: Finding, failing: &[CheckRun], asking: &Asking<'_>, ctx: &Context<'_>) -> Finding {
    let jobs: Vec<&CheckRun> = failing.iter().filter(|check| check.job.is_some()).take(MOST_JOBS).collect();
    let room = EXCERPT / jobs.len().max(1);
    let names: Vec<String> = jobs.iter().map(|check| check.shown()).collect();
    let log = (!jobs.is_empty()).then(|| Log::begin(ctx.project, &finding.gate, &format!("the logs of {}", names.join(", "))));
    let log = Arc::new(Mutex::new(log));
    let mut parts = Vec::new();
    for check in failing {
        let head =
            format!("{} ({}){}", check.shown(), check.word.shown(), check.url.as_deref().map(|url| format!(": {url}")).unwrap_or_default());
        let excerpt = match check.job.filter(|_| jobs.iter().any(|job| std::ptr::eq(*job, check))) {
            Some(job) => useful(check, job, room, asking, &log),
            None => String::new(),
        };
        parts.push(if excerpt.is_empty() { head } else { format!("{head}\n{excerpt}") });
        if parts.len() >= 2 * MOST_JOBS {
            break;
        }
    }
    let log = log.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (log, problem) = log.map(|log| log.finish(ctx.project, &finding.what)).unwrap_or_default();
    parts.extend(problem);
    Finding { log, detail: parts.join("\n"), ..finding }
}

/// The useful part of one job's log; the whole goes to the log.
fn useful(check: &CheckRun, job: u64, room: usize, asking: &Asking<'_>, log: &Arc<Mutex<Option<Log>>>) -> String {
    write(log, format!("\n# {} (job {job})\n", check.shown()).as_bytes());
    let heard = Arc::new(Mutex::new((job_log::Reader::default(), Useful::new(room))));
    let (listening, copy) = (Arc::clone(&heard), Arc::clone(log));
    let masking = Arc::new(Mutex::new(secrets::masking()));
    let masks = Arc::clone(&masking);
    let sink = Box::new(move |_: Stream, bytes: &[u8]| {
        let mut masked = Vec::with_capacity(bytes.len());
        masks.lock().unwrap_or_else(PoisonError::into_inner).feed(bytes, &mut masked);
        write(&copy, &masked);
        let (reader, useful) = &mut *listening.lock().unwrap_or_else(PoisonError::into_inner);
        reader.feed(&masked, &mut |text| useful.feed(Stream::Out, text));
    });
    let fetched = forge::of(asking.repository).and_then(|forge| forge.job_log(asking, job, sink));
    let mut rest = Vec::new();
    masking.lock().unwrap_or_else(PoisonError::into_inner).finish(&mut rest);
    write(log, &rest);
    let (mut reader, mut useful) =
        std::mem::replace(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner), (job_log::Reader::default(), Useful::new(0)));
    reader.feed(&rest, &mut |text| useful.feed(Stream::Out, text));
    reader.finish(&mut |text| useful.feed(Stream::Out, text));
    match fetched {
        Ok(()) => useful.finish(),
        Err(trouble) => {
            write(log, format!("# {}\n", trouble.what).as_bytes());
            format!("its log cannot be had: {}", trouble.what)
        }
    }
}

fn write(log: &Mutex<Option<Log>>, bytes: &[u8]) {
    if let Some(log) = log.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        log.write(bytes);
    }
}
