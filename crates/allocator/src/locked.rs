//! dlmalloc behind a lock of the standard library, which takes a fifth of the instructions of musl's mutex, the lock of dlmalloc's own global allocator.

#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::Dlmalloc;

/// One heap for all threads.
pub(super) struct Locked(Mutex<Dlmalloc>);

impl Locked {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Dlmalloc::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Dlmalloc> {
        // dlmalloc does not panic while it has the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: dlmalloc has the contract of `GlobalAlloc`, if one thread at a time calls it.
unsafe impl GlobalAlloc for Locked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { self.lock().malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { self.lock().calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { self.lock().free(block, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe {
            self.lock()
                .realloc(block, layout.size(), layout.align(), size)
        }
    }
}
