//! Searches in short texts, for every hook call. `memchr` asks the processor first what it can do; in a virtual machine each of these questions takes some
//! microseconds, and all of them a tenth of the call. Nothing is asked here.

use memchr::arch::all::memchr::One;

/// The first place of a byte.
pub fn find_byte(byte: u8, text: &[u8]) -> Option<usize> {
    One::new(byte).find(text)
}

/// The last place of a byte.
pub(crate) fn rfind_byte(byte: u8, text: &[u8]) -> Option<usize> {
    One::new(byte).rfind(text)
}

/// How often a byte is there.
pub(crate) fn count_byte(byte: u8, text: &[u8]) -> usize {
    One::new(byte).iter(text).count()
}
