//! An allocator whose large blocks are mappings of their own: they grow without being copied, and freeing one returns its memory.

#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use super::MAPPED_FROM;

/// Maps blocks of [`MAPPED_FROM`] bytes and more; `S` has the smaller ones.
#[derive(Debug)]
pub(super) struct LargeMapped<S>(pub(super) S);

/// Mappings begin at a page, so a block that asks for more than this is left to the allocator of the small ones.
const ALIGNMENT: usize = 4096;

/// Whether a block is a mapping. Its layout alone decides, because that is all that is known when it is freed.
fn is_mapped(size: usize, alignment: usize) -> bool {
    size >= MAPPED_FROM as usize && alignment <= ALIGNMENT
}

// SAFETY: a mapping is as large as asked for and page-aligned, has no other owner, and begins as zeros. Whether a block is a
// mapping follows from its layout, which the caller repeats for `dealloc` and `realloc`. Everything else goes to `S`.
unsafe impl<S: GlobalAlloc> GlobalAlloc for LargeMapped<S> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_mapped(layout.size(), layout.align()) {
            true => map(layout.size()),
            // SAFETY: the caller's.
            false => unsafe { self.0.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_mapped(layout.size(), layout.align()) {
            true => map(layout.size()),
            // SAFETY: the caller's.
            false => unsafe { self.0.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match is_mapped(layout.size(), layout.align()) {
            // SAFETY: `block` is a mapping of this size, which is no longer used.
            true => drop(unsafe { libc::munmap(block.cast(), layout.size()) }),
            // SAFETY: the caller's.
            false => unsafe { self.0.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (was_mapped, is_mapped) = (
            is_mapped(layout.size(), layout.align()),
            is_mapped(size, layout.align()),
        );
        match (was_mapped, is_mapped) {
            // SAFETY: `block` is a mapping of this size, and the caller uses only the new one afterwards.
            (true, true) => unsafe { remap(block, layout.size(), size) },
            // SAFETY: the caller's.
            (false, false) => unsafe { self.0.realloc(block, layout, size) },
            // SAFETY: the new block is another one, both have the copied number of bytes, and the old one is freed once.
            _ => unsafe {
                let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !new.is_null() {
                    ptr::copy_nonoverlapping(block, new, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                new
            },
        }
    }
}

/// A new mapping of zeros, or null.
fn map(size: usize) -> *mut u8 {
    // SAFETY: a private mapping without an address touches no other memory.
    let mapped = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    block(mapped)
}

/// The mapping in another size, perhaps at another address; or null, and the mapping stays.
///
/// # Safety
/// `mapped` is a mapping of `before` bytes.
unsafe fn remap(mapped: *mut u8, before: usize, size: usize) -> *mut u8 {
    // SAFETY: the caller's.
    block(unsafe { libc::mremap(mapped.cast(), before, size, libc::MREMAP_MAYMOVE) })
}

fn block(mapped: *mut libc::c_void) -> *mut u8 {
    match mapped == libc::MAP_FAILED {
        true => ptr::null_mut(),
        false => mapped.cast(),
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    const LARGE: usize = MAPPED_FROM as usize;

    #[test]
    fn a_block_keeps_its_bytes_across_both_ways() {
        let allocator = LargeMapped(System);
        let layout = |size| Layout::from_size_align(size, 16).unwrap();
        // SAFETY: each block is used with the layout that it has at that moment.
        unsafe {
            let mut block = allocator.alloc(layout(100));
            (0..100).for_each(|at| block.add(at).write(at as u8));
            let mut before = 100;
            for size in [LARGE - 1, LARGE, 40 * LARGE, 2 * LARGE, LARGE - 1, 100] {
                block = allocator.realloc(block, layout(before), size);
                assert!(
                    (0..100).all(|at| block.add(at).read() == at as u8),
                    "{size}"
                );
                block.add(size - 1).write(block.add(size - 1).read());
                before = size;
            }
            allocator.dealloc(block, layout(before));
        }
    }

    #[test]
    fn large_blocks_begin_as_zeros_and_at_a_page() {
        let allocator = LargeMapped(System);
        let layout = Layout::from_size_align(LARGE, ALIGNMENT).unwrap();
        // SAFETY: the block is used with its layout.
        unsafe {
            let block = allocator.alloc_zeroed(layout);
            assert!(block.addr().is_multiple_of(ALIGNMENT));
            assert!((0..LARGE).all(|at| block.add(at).read() == 0));
            allocator.dealloc(block, layout);
        }
    }

    #[test]
    fn memory_that_there_is_not_is_null() {
        let allocator = LargeMapped(System);
        let layout = Layout::from_size_align(LARGE, 8).unwrap();
        // SAFETY: the block keeps its layout when it cannot grow.
        unsafe {
            let block = allocator.alloc(layout);
            block.write(7);
            let more = usize::try_from(isize::MAX).unwrap() - 8;
            assert!(allocator.realloc(block, layout, more).is_null());
            assert_eq!(block.read(), 7);
            allocator.dealloc(block, layout);
        }
    }
}
