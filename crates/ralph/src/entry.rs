//! Where the process begins.
//!
//! On Linux with glibc the C runtime calls us directly. Rust's own start-up reads `/proc/self/maps` to place a guard page and sets up a signal
//! stack for its stack-overflow message; that is two fifths of all instructions of a hook call in a project without a loop, paid at every
//! stop of every session. Arguments need no set-up there: glibc hands them to the standard library before `main`.

use std::{
    ffi::{c_char, c_int},
    panic::catch_unwind,
};

const SIGPIPE: c_int = 13;
const SIGXFSZ: c_int = 25;
const SIG_IGN: usize = 1;

unsafe extern "C" {
    fn signal(signal: c_int, handler: usize) -> usize;
}

/// The write that met the limit fails with an error, which says it all.
extern "C" fn pass(_signal: c_int) {}

// SAFETY: `no_main` leaves the symbol free, so this is its only definition, with the signature that the C runtime expects.
#[unsafe(no_mangle)]
extern "C" fn main(_argc: c_int, _argv: *const *const c_char) -> c_int {
    // As Rust's start-up does: a reader that goes away is an error to handle, not a reason to die.
    // SAFETY: called before there is any other thread, with a valid signal and a disposition that needs no handler function.
    unsafe { signal(SIGPIPE, SIG_IGN) };
    // So is a file that may not grow any more. A handler, because what is ignored stays ignored in the programs that this one starts.
    // SAFETY: as above; the handler has the signature that the system calls it with, and does nothing.
    unsafe { signal(SIGXFSZ, pass as *const () as usize) };
    // Unwinding must not reach the C runtime. The message has been printed by then.
    catch_unwind(crate::start).map_or(101, c_int::from)
}
