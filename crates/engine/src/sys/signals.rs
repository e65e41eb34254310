//! Requests to end this process are noted instead of obeyed: commands that it runs have to be ended first.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

#[cfg(unix)]
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// If signals are told apart, these decide what is a request to end.
static TOLD: OnceLock<Told> = OnceLock::new();

/// The parent of this process is gone, which is a request to end like any other.
static IS_ORPHAN: AtomicBool = AtomicBool::new(false);

/// Whether an interrupt ends this process, where it is caught for the sake of a question.
#[cfg(unix)]
static OBEYED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on a request to end is only noted. SIGHUP stays ignored under `nohup`.
pub fn notice() {
    ASKED.get_or_init(|| {
        let asked = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in [SIGTERM, SIGINT, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP)) {
            // A signal that cannot be caught ends the process, as it would have anyway.
            let _ = signal_hook::flag::register(signal, Arc::clone(&asked));
        }
        asked
    });
    #[cfg(unix)]
    obey_no_more();
}

/// From now on the end of standard input is a request to end, also where a parent that held it was killed. What comes before its end is dropped.
pub fn end_with_standard_input() -> std::io::Result<()> {
    let listens = move || {
        super::input::wait_for_the_end();
        IS_ORPHAN.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().name("parent".to_owned()).spawn(listens).map(drop)
}

/// From now on a write beyond the limit on file sizes is an error, and does not end this process.
pub fn outlive_limits_on_files() {
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Whether this process was asked to end.
pub fn asked_to_end() -> bool {
    TOLD.get().map_or_else(was_asked, Told::ended)
}

/// Whether it should end at once: the system asked, or a person did twice.
pub fn wants_the_end_now() -> bool {
    TOLD.get().map_or_else(was_asked, |told| told.ended() || told.interrupts() > 1)
}

/// Whether a Ctrl-C is told apart from a request to end, as in `ralph run`.
#[cfg(unix)]
pub(super) fn notes_interrupts() -> bool {
    TOLD.get().is_some()
}

fn was_asked() -> bool {
    IS_ORPHAN.load(Ordering::Relaxed) || ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// Signals of one process, told apart: a person at the keyboard, and the system.
#[derive(Debug, Clone, Default)]
pub struct Told {
    interrupted: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    interrupts: Arc<AtomicUsize>,
    asked: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
}

impl Told {
    /// From now on signals are only noted, and an interrupt is no request to end for [`asked_to_end`]. Earlier requests count.
    #[cfg(unix)]
    pub fn listen() -> Self {
        let told = Told::default();
        let _ = signal_hook::flag::register(SIGINT, Arc::clone(&told.interrupted));
        let _ = signal_hook::flag::register(SIGTERM, Arc::clone(&told.ended));
        let _ = signal_hook::flag::register(SIGINT, Arc::clone(&told.asked));
        let _ = signal_hook::flag::register(SIGTERM, Arc::clone(&told.asked));
        if !is_ignored(SIGHUP) {
            let _ = signal_hook::flag::register(SIGHUP, Arc::clone(&told.ended));
            let _ = signal_hook::flag::register(SIGHUP, Arc::clone(&told.asked));
        }
        if was_asked() {
            told.ended.store(true, Ordering::Relaxed);
            told.asked.store(true, Ordering::Relaxed);
        }
        obey_no_more();
        TOLD.get_or_init(|| told).clone()
    }

    #[cfg(not(unix))]
    pub fn listen() -> Self {
        Told::default()
    }

    /// How often Ctrl-C was pressed; several presses between two calls count as one.
    pub fn interrupts(&self) -> usize {
        if self.interrupted.swap(false, Ordering::Relaxed) {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
        }
        self.interrupts.load(Ordering::Relaxed)
    }

    /// How often this process was asked to end, by a person or by the system; several requests between two calls count as one.
    pub fn requests(&self) -> usize {
        if self.asked.swap(false, Ordering::Relaxed) {
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
        self.requests.load(Ordering::Relaxed)
    }

    /// The system wants this process to end, or its terminal or parent is gone.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || IS_ORPHAN.load(Ordering::Relaxed)
    }
}

/// Ctrl-C while a person is asked something: noted for as long as this lives. Then it ends the process again, unless it is noted for something else.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Held {
    came: Arc<AtomicBool>,
    was_obeyed: bool,
}

#[cfg(unix)]
impl Held {
    pub(super) fn new() -> Self {
        static CAME: OnceLock<Arc<AtomicBool>> = OnceLock::new();
        let obeyed = OBEYED.get_or_init(|| {
            let obeyed = Arc::new(AtomicBool::new(ASKED.get().is_none() && TOLD.get().is_none()));
            let _ = signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&obeyed));
            obeyed
        });
        let came = CAME.get_or_init(|| {
            let came = Arc::new(AtomicBool::new(false));
            let _ = signal_hook::flag::register(SIGINT, Arc::clone(&came));
            came
        });
        came.store(false, Ordering::SeqCst);
        Held { came: Arc::clone(came), was_obeyed: obeyed.swap(false, Ordering::SeqCst) }
    }

    pub(super) fn came(&self) -> bool {
        self.came.load(Ordering::SeqCst)
    }
}

#[cfg(unix)]
impl Drop for Held {
    fn drop(&mut self) {
        if let Some(obeyed) = OBEYED.get() {
            obeyed.store(self.was_obeyed, Ordering::SeqCst);
        }
    }
}

#[cfg(unix)]
fn obey_no_more() {
    if let Some(obeyed) = OBEYED.get() {
        obeyed.store(false, Ordering::SeqCst);
    }
}

/// A signal for a program that uses the whole screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// This process should end, or its terminal is gone.
    End,
    /// The terminal has another size.
    Resized,
    /// This process had been stopped, and the screen has to be drawn again.
    Continued,
}

impl Call {
    /// From now on `told` is called with these, in a thread of its own, until it returns `false`. A terminal that hangs up counts even under `nohup`: without its
    /// screen the program has nothing left.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "there are no such signals"))]
    pub fn hear(told: impl Fn(Call) -> bool + Send + 'static) -> std::io::Result<()> {
        #[cfg(unix)]
        {
            let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGWINCH, SIGCONT])?;
            let tells = move |signal| match signal {
                SIGWINCH => told(Call::Resized),
                SIGCONT => told(Call::Continued),
                _ => told(Call::End),
            };
            std::thread::Builder::new().name("signals".to_owned()).spawn(move || signals.forever().all(tells))?;
        }
        Ok(())
    }
}

/// Whether this process was started with a signal ignored; known only on Linux.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
