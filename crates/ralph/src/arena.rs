//! The memory of a hook call: one piece of the program's own, handed out from its beginning.
//!
//! A hook call asks for memory some 500 times, for 70 KB in all, and ends a millisecond later. With musl's allocator a third of the call's instructions
//! went into that, and some twenty system calls. Here a request is an addition. What does not fit, of a command or of a run that goes on for a night, comes from the system's allocator.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::UnsafeCell,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Pages of it that are not touched cost nothing.
const SIZE: usize = 256 << 10;

/// Larger requests are the system's: a few of them would take all.
const LARGEST: usize = SIZE / 8;

const ALIGN: usize = 16;

#[repr(C, align(16))]
struct Memory(UnsafeCell<[u8; SIZE]>);

// SAFETY: no reference into the memory is ever made; what two threads get of it never overlaps, because `next` only moves by compare-and-swap.
unsafe impl Sync for Memory {}

/// Memory that is given out once. Only the last piece is taken back, which is what short-lived strings mostly are.
pub(crate) struct Arena {
    memory: Memory,
    /// How much has been given out.
    next: AtomicUsize,
}

impl Arena {
    #[allow(clippy::large_stack_arrays, reason = "the program has it as a static; only tests have others")]
    pub(crate) const fn new() -> Self {
        Arena { memory: Memory(UnsafeCell::new([0; SIZE])), next: AtomicUsize::new(0) }
    }

    fn begin(&self) -> *mut u8 {
        self.memory.0.get().cast()
    }

    /// Where in the arena that piece is.
    fn offset(&self, piece: *mut u8) -> Option<usize> {
        piece.addr().checked_sub(self.begin().addr()).filter(|offset| *offset < SIZE)
    }

    /// Moves the end of what is given out, if it is still there.
    fn moves(&self, from: usize, to: usize) -> bool {
        self.next.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn take(&self, layout: Layout) -> Option<*mut u8> {
        if layout.size() > LARGEST || layout.align() > ALIGN {
            return None;
        }
        loop {
            let next = self.next.load(Ordering::Relaxed);
            let from = next.next_multiple_of(layout.align());
            let to = from + layout.size();
            if to > SIZE {
                return None;
            }
            if self.moves(next, to) {
                // SAFETY: `from` is at most SIZE, so the pointer is in the memory or one past its end.
                return Some(unsafe { self.begin().add(from) });
            }
        }
    }
}

// SAFETY: a piece of the arena is aligned as asked (its beginning is aligned to ALIGN, and `from` to the layout), is in it as a whole, and overlaps no other that is in use:
// `next` moves back only over the very last piece, by the caller that gives it up. Everything else is the system's allocator, which gets back exactly what it gave.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        self.take(layout).unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(piece) = self.take(layout) else {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.alloc_zeroed(layout) };
        };
        // It may have been given out before. SAFETY: the piece has that size, and no one else has it.
        unsafe { piece.write_bytes(0, layout.size()) };
        piece
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match self.offset(piece) {
            Some(offset) => {
                self.moves(offset + layout.size(), offset);
            }
            // SAFETY: it is not of the arena, so the system gave it.
            None => unsafe { System.dealloc(piece, layout) },
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(offset) = self.offset(piece) else {
            // SAFETY: it is not of the arena, so the system gave it.
            return unsafe { System.realloc(piece, layout, size) };
        };
        let grows_in_place = size <= LARGEST && offset + size <= SIZE && self.moves(offset + layout.size(), offset + size);
        if size <= layout.size() || grows_in_place {
            return piece;
        }
        // SAFETY: the size is the caller's, and the alignment was good before.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both have as many bytes, and the new piece overlaps no other.
            unsafe { ptr::copy_nonoverlapping(piece, new, layout.size()) };
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn pieces_are_aligned_and_do_not_overlap() {
        let arena = Arena::new();
        let mut end = arena.begin().addr();
        for (size, align) in [(1, 1), (8, 8), (3, 2), (16, 16), (0, 1), (100, 4), (1, 16)] {
            // SAFETY: test code with a fitting layout.
            let piece = unsafe { arena.alloc(layout(size, align)) };
            assert!(piece.addr() >= end && piece.addr().is_multiple_of(align), "{size} {align}");
            end = piece.addr() + size;
        }
    }

    #[test]
    fn only_the_last_piece_is_taken_back_and_comes_back_zeroed_where_that_is_asked() {
        let arena = Arena::new();
        // SAFETY: all layouts are those that the pieces were asked with.
        unsafe {
            let (first, second) = (arena.alloc(layout(8, 8)), arena.alloc(layout(8, 8)));
            second.write_bytes(7, 8);
            arena.dealloc(first, layout(8, 8));
            assert_ne!(arena.alloc(layout(0, 1)), first);
            arena.dealloc(second, layout(8, 8));
            let again = arena.alloc_zeroed(layout(8, 8));
            assert_eq!((again, again.cast::<[u8; 8]>().read()), (second, [0; 8]));
        }
    }

    #[test]
    fn a_piece_grows_in_place_while_it_is_the_last_and_keeps_its_bytes() {
        let arena = Arena::new();
        // SAFETY: all layouts are those that the pieces were asked with.
        unsafe {
            let piece = arena.alloc(layout(4, 4));
            piece.cast::<[u8; 4]>().write(*b"kept");
            let same = arena.realloc(piece, layout(4, 4), 64);
            assert_eq!(same, piece);
            let other = arena.alloc(layout(1, 1));
            let moved = arena.realloc(same, layout(64, 4), 128);
            assert!(moved > other && moved.cast::<[u8; 4]>().read() == *b"kept");
            let system = arena.realloc(moved, layout(128, 4), LARGEST + 1);
            assert!(arena.offset(system).is_none() && system.cast::<[u8; 4]>().read() == *b"kept");
            arena.dealloc(system, layout(LARGEST + 1, 4));
        }
    }

    #[test]
    fn what_does_not_fit_is_the_systems() {
        let arena = Arena::new();
        let all = layout(LARGEST, 1);
        // SAFETY: all layouts are those that the pieces were asked with.
        unsafe {
            for _ in 0..SIZE / LARGEST {
                assert!(arena.offset(arena.alloc(all)).is_some());
            }
            let more = arena.alloc(all);
            assert!(arena.offset(more).is_none());
            more.write_bytes(1, LARGEST);
            arena.dealloc(more, all);
            let wide = layout(64, 4096);
            let piece = arena.alloc(wide);
            assert!(arena.offset(piece).is_none() && piece.addr().is_multiple_of(4096));
            arena.dealloc(piece, wide);
        }
    }

    #[test]
    fn threads_get_pieces_of_their_own() {
        let arena = Arena::new();
        let mut all: Vec<usize> = std::thread::scope(|scope| {
            // SAFETY: a fitting layout.
            let take = || (0..500).map(|_| unsafe { arena.alloc(layout(32, 8)) }.addr()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 32));
    }
}
