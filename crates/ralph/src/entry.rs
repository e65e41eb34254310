//! Where the process begins.
//!
//! On Linux the C runtime calls us directly. Rust's own start-up asks for the place of the stack and sets up another one for its stack-overflow message: with glibc that is
//! two fifths of all instructions of a hook call in a project without a loop, with musl a fifth of its system calls, paid at every stop of every session.

use std::{
    ffi::{CStr, OsString, c_char, c_int},
    os::unix::ffi::OsStringExt,
    panic::catch_unwind,
    sync::OnceLock,
};

const SIGPIPE: c_int = 13;
const SIGXFSZ: c_int = 25;
const SIG_IGN: usize = 1;
const F_GETFD: c_int = 1;
const O_RDWR: c_int = 2;

unsafe extern "C" {
    fn signal(signal: c_int, handler: usize) -> usize;
    fn fcntl(file: c_int, command: c_int, ...) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
}

static ARGS: OnceLock<Vec<OsString>> = OnceLock::new();

/// The command line, the program first. Without Rust's start-up the standard library knows it with glibc only.
pub(crate) fn args() -> Vec<OsString> {
    ARGS.get().cloned().unwrap_or_default()
}

/// The write that met the limit fails with an error, which says it all.
extern "C" fn pass(_signal: c_int) {}

// SAFETY: `no_main` leaves the symbol free, so this is its only definition, with the signature that the C runtime expects.
#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the C runtime passes that many pointers to texts that end with a zero, and none of them ever changes.
    let arg = |n: usize| OsString::from_vec(unsafe { CStr::from_ptr(*argv.add(n)) }.to_bytes().to_vec());
    ARGS.get_or_init(|| (0..usize::try_from(argc).unwrap_or(0)).map(arg).collect());
    // As Rust's start-up does: the place of a standard stream that is closed would be that of the next file that is opened.
    for stream in 0..3 {
        // SAFETY: both calls take a number and constants; the path ends with a zero.
        unsafe {
            if fcntl(stream, F_GETFD) < 0 {
                open(c"/dev/null".as_ptr(), O_RDWR);
            }
        }
    }
    // As it does, too: a reader that goes away is an error to handle, not a reason to die.
    // SAFETY: called before there is any other thread, with a valid signal and a disposition that needs no handler function.
    unsafe { signal(SIGPIPE, SIG_IGN) };
    // So is a file that may not grow any more. A handler, because what is ignored stays ignored in the programs that this one starts.
    // SAFETY: as above; the handler has the signature that the system calls it with, and does nothing.
    unsafe { signal(SIGXFSZ, pass as *const () as usize) };
    // Unwinding must not reach the C runtime. The message has been printed by then.
    catch_unwind(crate::start).map_or(101, c_int::from)
}
