//! Memory for short calls.
//!
//! The C library of the released program gives out memory in many small groups, each with a system call and page faults of its own, and takes a hundred
//! instructions for each piece: that is a third of a hook call. The first thread takes its small pieces from one reserve instead, as long as that lasts, and uses again what it
//! gave back. Everything else, and all that other threads need, comes from the C library.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, UnsafeCell},
    ptr,
};

/// A hook call needs less. Pages that nobody touches cost nothing.
const RESERVE: usize = 256 << 10;

/// Pieces up to `FINE` bytes come in multiples of `STEP`, larger ones in powers of two.
const STEP: usize = 32;
const FINE: usize = 1 << 10;
const LARGEST: usize = 32 << 10;
const CLASSES: usize = FINE / STEP + (LARGEST / FINE).ilog2() as usize;

/// What every piece is aligned to.
const ALIGNED: usize = 16;

thread_local! {
    /// Whether this thread may use the reserve.
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Lets this thread, the first, use the reserve.
pub(crate) fn open() {
    HERE.set(true);
}

pub(crate) struct Memory(UnsafeCell<Reserve>);

#[repr(C, align(16))]
struct Reserve {
    bytes: [u8; RESERVE],
    used: usize,
    /// The pieces of each class that were given back: each holds the address of the next.
    free: [*mut u8; CLASSES],
}

// SAFETY: only the thread that called `open` looks at the reserve, and `main` calls it once, in the first thread.
unsafe impl Sync for Memory {}

impl Memory {
    #[expect(clippy::large_stack_arrays, reason = "it is made for a static, at compile time")]
    pub(crate) const fn new() -> Self {
        Memory(UnsafeCell::new(Reserve { bytes: [0; RESERVE], used: 0, free: [ptr::null_mut(); CLASSES] }))
    }

    fn start(&self) -> *mut u8 {
        // SAFETY: nothing is read, only an address is made.
        unsafe { &raw mut (*self.0.get()).bytes }.cast()
    }

    fn holds(&self, piece: *mut u8) -> bool {
        let start = self.start();
        (start..start.wrapping_add(RESERVE)).contains(&piece)
    }

    /// A piece of the reserve; null: there is none left.
    ///
    /// # Safety
    ///
    /// This thread may use the reserve, and `class` is one that [`class_of`] gave.
    unsafe fn take(&self, class: usize) -> *mut u8 {
        let reserve = self.0.get();
        // SAFETY: no other thread is here, and this function calls nothing that could come here again. A piece in a list is in the reserve, is aligned, and holds the address
        // that `give_back` wrote. What lies between `used` and the end was given to nobody.
        unsafe {
            let first = (*reserve).free[class];
            if !first.is_null() {
                (*reserve).free[class] = first.cast::<*mut u8>().read_unaligned();
                return first;
            }
            let (at, size) = ((*reserve).used, size_of(class));
            if at + size > RESERVE {
                return ptr::null_mut();
            }
            (*reserve).used = at + size;
            self.start().add(at)
        }
    }

    /// # Safety
    ///
    /// As above; `piece` came from `take` with this class, and is not used any more.
    unsafe fn give_back(&self, piece: *mut u8, class: usize) {
        let reserve = self.0.get();
        // SAFETY: as above; the piece is large enough for an address and aligned for one.
        unsafe {
            piece.cast::<*mut u8>().write_unaligned((*reserve).free[class]);
            (*reserve).free[class] = piece;
        }
    }
}

/// The class of pieces that fits; `None`: the C library has to give it.
fn class_of(layout: Layout) -> Option<usize> {
    match layout.size() {
        0 => None,
        _ if layout.align() > ALIGNED => None,
        size @ ..=FINE => Some((size - 1) / STEP),
        size @ ..=LARGEST => Some(FINE / STEP + ((size - 1) / FINE).ilog2() as usize),
        _ => None,
    }
}

fn size_of(class: usize) -> usize {
    if class < FINE / STEP { (class + 1) * STEP } else { (2 * FINE) << (class - FINE / STEP) }
}

// SAFETY: a piece is as large and as aligned as its layout wants (a test says so), is given to one owner at a time, and goes back to where it came from: `holds` tells.
// Never inlined: a copy in each of some ten thousand places would make the program a fifth larger.
unsafe impl GlobalAlloc for Memory {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class_of(layout).filter(|_| HERE.get());
        // SAFETY: this thread may use the reserve.
        let piece = class.map_or(ptr::null_mut(), |class| unsafe { self.take(class) });
        // SAFETY: the caller keeps the promises of `alloc`.
        if piece.is_null() { unsafe { System.alloc(layout) } } else { piece }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let class = class_of(layout).filter(|_| HERE.get());
        // SAFETY: this thread may use the reserve.
        let piece = class.map_or(ptr::null_mut(), |class| unsafe { self.take(class) });
        if piece.is_null() {
            // SAFETY: the caller keeps the promises of `alloc_zeroed`.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the piece has at least this size.
        unsafe { piece.write_bytes(0, layout.size()) };
        piece
    }

    #[inline(never)]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if !self.holds(piece) {
            // SAFETY: it came from there.
            unsafe { System.dealloc(piece, layout) };
            return;
        }
        // What another thread gives back is lost. All of it is no more than the reserve.
        if let Some(class) = class_of(layout).filter(|_| HERE.get()) {
            // SAFETY: it came from the reserve with this layout, and this thread may use that.
            unsafe { self.give_back(piece, class) };
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.holds(piece) {
            // SAFETY: it came from there.
            return unsafe { System.realloc(piece, layout, size) };
        }
        // SAFETY: the caller promises that the new size makes a layout with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if class_of(layout) == class_of(wanted) {
            return piece;
        }
        // SAFETY: the old piece is the caller's, the new one is another one, and both have that many bytes.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                ptr::copy_nonoverlapping(piece, new, layout.size().min(size));
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
    fn every_piece_is_large_enough_and_wastes_less_than_half() {
        for size in 1..=LARGEST {
            let class = class_of(Layout::from_size_align(size, 8).unwrap()).unwrap();
            assert!(class < CLASSES && size_of(class) >= size, "{size}: class {class}");
            assert!(size_of(class) < 2 * size.max(STEP), "{size}: class {class}");
            assert_eq!(size_of(class) % ALIGNED, 0);
        }
        assert_eq!(class_of(Layout::from_size_align(LARGEST + 1, 8).unwrap()), None);
        assert_eq!(class_of(Layout::from_size_align(64, 32).unwrap()), None);
    }

    #[test]
    fn pieces_do_not_overlap_and_are_used_again() {
        static RESERVED: Memory = Memory::new();
        let memory = &RESERVED;
        open();
        let layout = |n: usize| Layout::from_size_align(1 + n * 7_919 % 3_000, 8).unwrap();
        let larger = |n: usize| Layout::from_size_align(layout(n).size() + 500, 8).unwrap();
        for _ in 0..3 {
            let mut pieces = Vec::new();
            // More than the reserve has: the rest comes from the C library.
            for n in 0..400 {
                // SAFETY: the size is not 0, and the piece is filled within it.
                pieces.push(unsafe {
                    let piece = memory.alloc(layout(n));
                    piece.write_bytes(u8::try_from(n % 251).unwrap(), layout(n).size());
                    piece
                });
            }
            for (n, piece) in pieces.iter_mut().enumerate() {
                // SAFETY: the piece has this layout, and the bytes that are compared were written.
                let bytes = unsafe {
                    *piece = memory.realloc(*piece, layout(n), larger(n).size());
                    std::slice::from_raw_parts(*piece, layout(n).size())
                };
                assert!(bytes.iter().all(|b| usize::from(*b) == n % 251), "piece {n}");
            }
            for (n, piece) in pieces.into_iter().enumerate() {
                // SAFETY: the piece has this layout now, and is given back once.
                unsafe { memory.dealloc(piece, larger(n)) };
            }
        }
        let layout = Layout::from_size_align(40, 8).unwrap();
        // SAFETY: as above.
        unsafe {
            let piece = memory.alloc_zeroed(layout);
            assert!(memory.holds(piece), "what was given back is used again");
            assert_eq!(std::slice::from_raw_parts(piece, 40), [0; 40]);
        }
    }
}
