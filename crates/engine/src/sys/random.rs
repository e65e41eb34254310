//! Random numbers, from the standard library's only source of them: the keys of its hash maps.

use std::hash::{BuildHasher, RandomState};

pub(crate) fn number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// A random UUID (version 4).
pub fn uuid() -> String {
    let [high, low] = [number(), number()];
    let version = 0x4000 | (high & 0x0fff);
    let variant = 0x8000 | (low >> 48 & 0x3fff);
    format!("{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}", high >> 32, high >> 16 & 0xffff, low & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_8_ids_are_random_uuids() {
        let ids: std::collections::BTreeSet<String> = (0..1_000).map(|_| uuid()).collect();
        assert_eq!(ids.len(), 1_000);
        for id in &ids {
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert!(id.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()), "{id}");
            assert!(id[14..].starts_with('4') && matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        }
    }
}
