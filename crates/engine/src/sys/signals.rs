//! Requests to end this process, noticed instead of obeyed: whoever runs commands has to end them first.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on a request to end is only noticed.
#[cfg(unix)]
pub fn notice() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    ASKED.get_or_init(|| {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            // Where a signal cannot be caught it ends the process, as it would have anyway.
            let _ = signal_hook::flag::register(signal, Arc::clone(&asked));
        }
        asked
    });
}

#[cfg(not(unix))]
pub fn notice() {
    ASKED.get_or_init(|| Arc::new(AtomicBool::new(false)));
}

/// Whether somebody asked since.
pub fn asked_to_end() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}
