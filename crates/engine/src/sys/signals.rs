//! Requests to end this process, noticed instead of obeyed: whoever runs commands has to end them first.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Requests of the system, and of a person at the keyboard.
static ASKED: OnceLock<[Arc<AtomicBool>; 2]> = OnceLock::new();

/// Somebody tells a person's requests from the system's, and decides what they mean.
static TOLD_APART: AtomicBool = AtomicBool::new(false);

/// From now on a request to end is only noticed.
#[cfg(unix)]
pub fn notice() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    ASKED.get_or_init(|| {
        let asked: [Arc<AtomicBool>; 2] = Default::default();
        for (signal, of) in [(SIGTERM, 0), (SIGHUP, 0), (SIGINT, 1)] {
            // Where a signal cannot be caught it ends the process, as it would have anyway.
            let _ = signal_hook::flag::register(signal, Arc::clone(&asked[of]));
        }
        asked
    });
}

#[cfg(not(unix))]
pub fn notice() {
    ASKED.get_or_init(Default::default);
}

/// Whether somebody asked since.
pub fn asked_to_end() -> bool {
    ASKED.get().is_some_and(|[system, person]| {
        system.load(Ordering::Relaxed) || (person.load(Ordering::Relaxed) && !TOLD_APART.load(Ordering::Relaxed))
    })
}

/// Signals of one process, told apart: a person at the keyboard, and the system.
#[derive(Debug, Clone, Default)]
pub struct Told {
    interrupted: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    interrupts: Arc<AtomicUsize>,
}

impl Told {
    /// From now on signals are only noticed, and what was noticed before is not forgotten. One that whoever started this process wanted it not to hear (`nohup`) stays unheard.
    #[cfg(unix)]
    pub fn listen() -> Self {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let told = Told { ended: Arc::new(AtomicBool::new(asked_to_end())), ..Told::default() };
        TOLD_APART.store(true, Ordering::Relaxed);
        let _ = signal_hook::flag::register(SIGINT, Arc::clone(&told.interrupted));
        let _ = signal_hook::flag::register(SIGTERM, Arc::clone(&told.ended));
        if !is_ignored(SIGHUP) {
            let _ = signal_hook::flag::register(SIGHUP, Arc::clone(&told.ended));
        }
        told
    }

    #[cfg(not(unix))]
    pub fn listen() -> Self {
        Told::default()
    }

    /// How often somebody pressed Ctrl-C since, as far as one look can tell from the next.
    pub fn interrupts(&self) -> usize {
        if self.interrupted.swap(false, Ordering::Relaxed) {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
        }
        self.interrupts.load(Ordering::Relaxed)
    }

    /// Whether the system wants this process to end, or the terminal is gone.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Whether this process was started so that it does not hear a signal; not known but on Linux.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
