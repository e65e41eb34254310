//! SHA-256 digests.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// In hexadecimal.
pub(crate) fn of(bytes: &[u8]) -> String {
    let mut digest = Running::default();
    digest.add(bytes);
    digest.finish()
}

pub(crate) fn raw(bytes: &[u8]) -> [u8; 32] {
    let mut digest = Running::default();
    digest.add(bytes);
    digest.finish_raw()
}

/// Enough for a name: 32 digits.
pub fn short(bytes: &[u8]) -> String {
    let mut digest = of(bytes);
    digest.truncate(32);
    digest
}

/// A digest of several pieces.
#[derive(Default)]
pub(crate) struct Running(Sha256);

impl Running {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish_raw(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    pub(crate) fn finish(self) -> String {
        self.finish_raw().iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_well_known_one() {
        assert_eq!(of(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
