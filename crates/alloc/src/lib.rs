//! A global allocator that can count, so that `bigfleet bench` tells how often
//! and how much a piece of work allocates.
//!
//! Outside of [`counted`] the cost is one relaxed load per allocation, of a flag
//! that nobody writes.
//!
//! # Safety
//!
//! The only unsafe code of the workspace. [`Counting`] hands every call to the
//! allocator it wraps with the arguments it got, and returns what it returned;
//! its own work touches only atomics, allocates nothing and cannot unwind. So it
//! keeps the contract of [`GlobalAlloc`] exactly where the inner allocator does.
//! `cargo +nightly miri test -p bigfleet-alloc` runs it under an interpreter that
//! checks this.

use std::{
    alloc::{GlobalAlloc, Layout},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

static COUNTING: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Wraps an allocator; set it with `#[global_allocator]`.
pub struct Counting<A>(pub A);

fn count(bytes: usize) {
    if COUNTING.load(Relaxed) {
        CALLS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

// SAFETY: every method forwards to the inner allocator unchanged; see the crate docs.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: our caller keeps the contract of `alloc`.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: our caller keeps the contract of `alloc_zeroed`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from the inner allocator with this layout.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: `block` came from the inner allocator with this layout.
        unsafe { self.0.realloc(block, layout, new_size) }
    }
}

/// What a piece of work allocated, on all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Calls of the allocator: new blocks and blocks that grew or shrank.
    pub calls: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

/// Runs `work` and counts. Zero where [`Counting`] is not the global allocator.
/// One count at a time; a second caller waits.
pub fn counted<R>(work: impl FnOnce() -> R) -> (R, Allocations) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    struct Stop;
    impl Drop for Stop {
        fn drop(&mut self) {
            COUNTING.store(false, Relaxed);
        }
    }
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    CALLS.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    let stop = Stop;
    COUNTING.store(true, Relaxed);
    let result = work();
    drop(stop);
    (result, Allocations { calls: CALLS.load(Relaxed), bytes: BYTES.load(Relaxed) })
}

#[cfg(test)]
mod tests {
    use std::{alloc::System, hint::black_box};

    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting<System> = Counting(System);

    #[test]
    fn counts_what_the_work_allocates_and_nothing_else() {
        black_box(vec![0u8; 100]);
        let (kept, allocated) = counted(|| {
            let mut grown: Vec<u8> = Vec::with_capacity(1_000);
            grown.reserve_exact(2_000);
            let zeroed = vec![0u8; 500];
            (black_box(grown), black_box(zeroed))
        });
        assert!(allocated.calls >= 3, "{allocated:?}");
        assert!(allocated.bytes >= 3_500, "{allocated:?}");
        drop(kept);
        // The test harness may allocate on its own thread, but not always.
        let none = |_| counted(|| black_box(1 + 1)).1 == Allocations::default();
        assert!((0..1_000).any(none));
    }
}
