//! Requests to end this process, noticed instead of obeyed: whoever runs commands has to end them first.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whoever tells signals apart decides what is a request to end.
static TOLD: OnceLock<Told> = OnceLock::new();

/// From now on a request to end is only noticed. One that whoever started this process wanted it not to hear (`nohup`) stays unheard.
#[cfg(unix)]
pub fn notice() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    ASKED.get_or_init(|| {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP)) {
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

/// From now on a file that may not grow any more is an error of the write that met the limit, and not the end of this process.
#[cfg(unix)]
pub fn outlive_limits_on_files() {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

#[cfg(not(unix))]
pub fn outlive_limits_on_files() {}

/// Whether somebody asked since.
pub fn asked_to_end() -> bool {
    TOLD.get().map_or_else(was_asked, Told::ended)
}

/// Whether nobody wants to wait any more: the system asked, or a person did twice.
pub fn wants_the_end_now() -> bool {
    TOLD.get().map_or_else(was_asked, |told| told.ended() || told.interrupts() > 1)
}

fn was_asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// Signals of one process, told apart: a person at the keyboard, and the system.
#[derive(Debug, Clone, Default)]
pub struct Told {
    interrupted: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    interrupts: Arc<AtomicUsize>,
}

impl Told {
    /// From now on signals are only noticed, and an interrupt is no request to end for [`asked_to_end`]. What was asked for before this counts.
    #[cfg(unix)]
    pub fn listen() -> Self {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let told = Told::default();
        let _ = signal_hook::flag::register(SIGINT, Arc::clone(&told.interrupted));
        let _ = signal_hook::flag::register(SIGTERM, Arc::clone(&told.ended));
        if !is_ignored(SIGHUP) {
            let _ = signal_hook::flag::register(SIGHUP, Arc::clone(&told.ended));
        }
        if was_asked() {
            told.ended.store(true, Ordering::Relaxed);
        }
        TOLD.get_or_init(|| told).clone()
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

/// What the system tells whoever holds a whole screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// This process shall end, or its terminal is gone.
    End,
    /// The terminal has another size.
    Resized,
    /// This process had been stopped, and the screen may be somebody else's.
    Continued,
}

/// From now on `told` hears these, in a thread of its own, until it says `false`. A terminal that hangs up is told even under `nohup`: what has nothing but a
/// screen has nothing left then.
#[cfg(unix)]
pub fn hear(told: impl Fn(Call) -> bool + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGWINCH, SIGCONT])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let call = match signal {
                SIGWINCH => Call::Resized,
                SIGCONT => Call::Continued,
                _ => Call::End,
            };
            if !told(call) {
                return;
            }
        }
    })?;
    Ok(())
}

#[cfg(not(unix))]
pub fn hear(_told: impl Fn(Call) -> bool + Send + 'static) -> std::io::Result<()> {
    Ok(())
}

/// Whether this process was started so that it does not hear a signal; not known but on Linux.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
