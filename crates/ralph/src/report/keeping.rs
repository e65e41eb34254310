//! The page that is kept while a loop goes on: written by a process that nobody waits for, and once more when a run ends.

use std::{fs, thread, time::Duration};

use ralph_engine::{
    store::{page, project::Project},
    sys::{env, process},
};

use crate::report;

/// A journal that grows faster than it can be read is read so often.
const ATTEMPTS: usize = 3;

/// Brings the page of a loop up to date, and again for as long as the journal goes on meanwhile. One process does that; whoever comes second has nothing to do.
pub(crate) fn keep(project: &Project, id: &str) {
    process::yield_to_others();
    loop {
        let Some(writing) = page::begin(project, id) else { return };
        let known = write(project, id);
        drop(writing);
        // Whoever was turned away in the meantime wrote into the journal before.
        if known.is_none() || known == size(project, id) {
            return;
        }
    }
}

/// Writes the page, not too soon after the last time; the size of the journal that it was drawn from.
fn write(project: &Project, id: &str) -> Option<u64> {
    if let Some(age) = page::age(project, id) {
        thread::sleep(hurried(page::YOUNG).saturating_sub(age));
    }
    let mut known = size(project, id)?;
    let mut gathered = report::gather(project, Some(id)).ok()?;
    // A run that ends meanwhile writes its last page by itself, and an older one must not take that one's place.
    for _ in 0..ATTEMPTS {
        let now = size(project, id)?;
        if now == known {
            break;
        }
        known = now;
        gathered = report::gather(project, Some(id)).ok()?;
    }
    report::write_page(&gathered, &page::place(project, id).ok()?).ok()?;
    Some(known)
}

/// The page of a run that is over: whoever started the run may want to take it away at once.
pub(crate) fn keep_at_the_end(project: &Project, id: &str) {
    if env::wants_pages()
        && let Ok(path) = page::place(project, id)
    {
        // If it cannot be written, `ralph report` says why.
        let _ = report::write(project, id, &path);
    }
}

fn size(project: &Project, id: &str) -> Option<u64> {
    fs::metadata(project.journal(id)).ok().map(|meta| meta.len())
}

fn hurried(time: Duration) -> Duration {
    time / u32::try_from(env::haste()).unwrap_or(1).max(1)
}
