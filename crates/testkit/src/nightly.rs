//! How much is tried: enough to prove the property at every change, and everything in the nightly run.
//!
//! `RALPH_TEST_NIGHTLY=1` is read here and nowhere else. A test must prove the same either way: the nightly run tries more moments, larger
//! sizes and the older client, never another property.

/// Whether this is the nightly run.
pub fn is_on() -> bool {
    std::env::var_os("RALPH_TEST_NIGHTLY").is_some_and(|value| value == "1")
}

/// How many tries or how large a size: `usual` at every change, `full` in the nightly run.
pub fn amount<T>(usual: T, full: T) -> T {
    if is_on() { full } else { usual }
}
