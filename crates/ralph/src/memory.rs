//! Memory for short calls.
//!
//! The C library of the released program takes two hundred instructions to give out a piece of memory and to take it back, and places pieces of different sizes on different
//! pages: a quarter of the instructions of a hook call, and half the time that a long journal takes. The first thread takes its small pieces from one reserve
//! instead, and uses again what it gave back. Everything else, and all that other threads need, comes from the C library.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, UnsafeCell},
    ptr::null_mut,
    sync::atomic::{AtomicBool, Ordering},
};

/// Pages of it that nothing touches cost nothing.
const RESERVE: usize = 1 << 20;

/// Pieces come in multiples of this, which is also what they are aligned to.
const STEP: usize = 32;

/// Larger pieces, which are few, come from the C library.
const LARGEST: usize = 8 << 10;

thread_local! {
    static IS_FIRST: Cell<bool> = const { Cell::new(false) };
}

/// Lets this thread use the reserve, if no other may.
pub(crate) fn open() {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    if !IS_TAKEN.swap(true, Ordering::Relaxed) {
        IS_FIRST.set(true);
    }
}

pub(crate) struct Memory(UnsafeCell<Reserve>);

#[repr(C, align(32))]
struct Reserve {
    bytes: [u8; RESERVE],
    used: usize,
    /// For each size the piece that was given back last. It holds the address of the one before.
    free: [*mut u8; LARGEST / STEP],
}

// SAFETY: only one thread looks at more than its address: `open` sees to that.
unsafe impl Sync for Memory {}

impl Memory {
    #[expect(clippy::large_stack_arrays, reason = "it is made for a static, at compile time")]
    pub(crate) const fn new() -> Self {
        Memory(UnsafeCell::new(Reserve { bytes: [0; RESERVE], used: 0, free: [null_mut(); LARGEST / STEP] }))
    }

    /// Whether a piece is of the reserve.
    fn holds(&self, piece: *mut u8) -> bool {
        piece.addr().wrapping_sub(self.0.get().addr()) < RESERVE
    }
}

/// How many steps a piece takes, less one. `None`: it is not for the reserve, or this thread is not.
fn size_of(layout: Layout) -> Option<usize> {
    let size = layout.size().wrapping_sub(1);
    (size < LARGEST && layout.align() <= STEP && IS_FIRST.get()).then_some(size / STEP)
}

// SAFETY: a piece has the size and the alignment of its layout, belongs to one owner, and goes back to where it came from: `holds` tells. What another thread gives back
// of the reserve is lost, which is no more than the reserve. Not inlined, because each copy of it would make the program larger.
unsafe impl GlobalAlloc for Memory {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(size) = size_of(layout) {
            let reserve = self.0.get();
            // SAFETY: no other thread is here, and nothing that is called here comes back. A piece in a list is of the reserve, is aligned, and begins with the address that
            // `dealloc` wrote; what is between `used` and the end was given to no one.
            unsafe {
                let last = (*reserve).free[size];
                if !last.is_null() {
                    (*reserve).free[size] = last.cast::<*mut u8>().read_unaligned();
                    return last;
                }
                let (from, to) = ((*reserve).used, (*reserve).used + (size + 1) * STEP);
                if to <= RESERVE {
                    (*reserve).used = to;
                    return reserve.cast::<u8>().add(from);
                }
            }
        }
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if !self.holds(piece) {
            // SAFETY: it came from there.
            return unsafe { System.dealloc(piece, layout) };
        }
        if let Some(size) = size_of(layout) {
            let reserve = self.0.get();
            // SAFETY: as in `alloc`; the piece is not used any more, and is large enough for an address.
            unsafe {
                piece.cast::<*mut u8>().write_unaligned((*reserve).free[size]);
                (*reserve).free[size] = piece;
            }
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.holds(piece) {
            // SAFETY: it came from there.
            return unsafe { System.realloc(piece, layout, size) };
        }
        // SAFETY: the caller promises a size that makes a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if size_of(wanted).is_some_and(|steps| size_of(layout) == Some(steps)) {
            return piece;
        }
        // SAFETY: the old piece is the caller's, the new one is another, and both have as many bytes as are copied.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                new.copy_from_nonoverlapping(piece, layout.size().min(size));
                self.dealloc(piece, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_keep_their_bytes_and_are_used_again() {
        static MEMORY: Memory = Memory::new();
        open();
        let layout = |n: usize| Layout::from_size_align(1 + n * 7_919 % 3_000, 8).unwrap();
        let later = |n: usize| Layout::from_size_align(1 + n * 104_729 % 5_000, 8).unwrap();
        for _ in 0..3 {
            // More than the reserve has: the rest comes from the C library.
            // SAFETY: no size is 0, and each piece is filled within its own.
            let fill = |n: usize| unsafe {
                let piece = MEMORY.alloc(layout(n));
                assert!(piece.addr().is_multiple_of(8));
                piece.write_bytes(u8::try_from(n % 251).unwrap(), layout(n).size());
                piece
            };
            let mut pieces: Vec<*mut u8> = (0..1_500).map(fill).collect();
            assert!(MEMORY.holds(pieces[0]) && !MEMORY.holds(pieces[1_499]));
            for (n, piece) in pieces.iter_mut().enumerate() {
                // SAFETY: the piece has this layout, and the bytes that are compared were written.
                let bytes = unsafe {
                    *piece = MEMORY.realloc(*piece, layout(n), later(n).size());
                    std::slice::from_raw_parts(*piece, layout(n).size().min(later(n).size()))
                };
                assert!(bytes.iter().all(|b| usize::from(*b) == n % 251), "piece {n}");
            }
            for (n, piece) in pieces.into_iter().enumerate() {
                // SAFETY: the piece has this layout now, and goes back once.
                unsafe { MEMORY.dealloc(piece, later(n)) };
            }
        }
    }
}
