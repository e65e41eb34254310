//! The machine: its clock, its disk.

use std::fs;

use ralph_core::text::time;
use ralph_engine::{
    sys::{clock, disk, files},
    view,
};

use super::{Case, Finding};

const MB: u64 = 1 << 20;
/// A loop writes little; the agent's builds and logs do not.
const LITTLE: u64 = 500 * MB;
const NOTHING: u64 = 20 * MB;
/// More than this is no rounding.
const SKEW_MS: i64 = 5_000;

pub(super) fn check(case: &Case) -> Vec<Finding> {
    vec![clock(case), disk(case)]
}

/// Limits and "which came first" hang on the clock.
fn clock(case: &Case) -> Finding {
    let now = clock::now();
    let newest = view::live(&case.project).into_iter().chain(view::ended(&case.project)).filter_map(|v| v.last_event_at);
    let newest = newest.filter_map(|at| time::parse(&at)).max();
    if let Some(ahead) = newest.map(|at| at - now).filter(|ahead| *ahead > SKEW_MS) {
        let ahead = time::in_words(ahead.unsigned_abs());
        return Finding::warning(
            "clock",
            format!("the clock says {}, but a journal was written {ahead} later than that", time::format(now)),
        )
        .advice("Set the clock: time limits count from it.");
    }
    match skew_of_disk(case) {
        Some(skew) if skew.abs() > SKEW_MS => {
            let skew = time::in_words(skew.unsigned_abs());
            Finding::warning("clock", format!("the project's file system and this machine disagree by {skew} about the time"))
                .advice("Set both clocks.")
        }
        _ => Finding::good("clock", format!("the clock says {}", time::format(now))),
    }
}

/// The file system's clock against ours, where ralph has a folder of its own to write in.
fn skew_of_disk(case: &Case) -> Option<i64> {
    let own = case.project.own();
    // A link could lead to another person's folder.
    fs::symlink_metadata(&own).ok().filter(fs::Metadata::is_dir)?;
    let file = own.join(format!("doctor-{}", std::process::id()));
    let written = files::options().write(true).create_new(true).open(&file).ok()?.metadata().and_then(|meta| meta.modified());
    let _ = fs::remove_file(&file);
    let ms = written.ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
    Some(i64::try_from(ms).ok()? - clock::now())
}

fn disk(case: &Case) -> Finding {
    let root = case.project.root();
    match disk::free(root) {
        None => Finding::note("disk", format!("cannot tell how much space is left for {}", root.display())),
        Some(free) if free < NOTHING => {
            Finding::error("disk", format!("{} MB are left for {}", free / MB, root.display())).advice("Free some space.")
        }
        Some(free) if free < LITTLE => {
            Finding::warning("disk", format!("only {} MB are left for {}", free / MB, root.display())).advice("Free some space.")
        }
        Some(free) => Finding::good("disk", format!("{:.1} GB are left for the project", disk::in_gb(free))),
    }
}
