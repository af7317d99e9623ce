//! An allocator that keeps small freed blocks of one thread for that thread, which then needs neither a lock nor a search for them.

#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keeps freed blocks of up to [`LARGEST`] bytes for the thread that called [`keep_here`](Self::keep_here); `S` has all others.
#[derive(Debug)]
pub(super) struct Recycled<S> {
    small: S,
    /// [`this_thread`] of the thread that keeps blocks, or 0.
    owner: AtomicUsize,
    /// Used by that thread alone.
    shelves: UnsafeCell<[Shelf; SHELVES]>,
}

/// Freed blocks of one size.
#[derive(Clone, Copy, Debug)]
struct Shelf {
    /// The block that was freed last, or null. Each block begins with the address of the next one.
    top: *mut *mut u8,
    bytes: usize,
}

/// In bytes; the memory of a task is among them.
const LARGEST: usize = STEP * SHELVES - HEADER;
const SHELVES: usize = 512;
/// A shelf keeps at most this many bytes, or two blocks.
const KEPT: usize = 4096;

/// dlmalloc's blocks are multiples of this, with a header of so many bytes. Sizes that differ by less cost as much.
const STEP: usize = 16;
const HEADER: usize = 8;

// SAFETY: the shelves, which alone are not `Sync`, are used by one thread.
unsafe impl<S: Sync> Sync for Recycled<S> {}

impl<S> Recycled<S> {
    pub(super) const fn new(small: S) -> Self {
        Self {
            small,
            owner: AtomicUsize::new(0),
            shelves: UnsafeCell::new(
                [Shelf {
                    top: ptr::null_mut(),
                    bytes: 0,
                }; SHELVES],
            ),
        }
    }

    /// The blocks that the current thread frees are kept for it from now on, unless another thread has said so before.
    pub(super) fn keep_here(&self) {
        let _ = self
            .owner
            .compare_exchange(0, this_thread(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The shelf for blocks of `layout`, if the current thread has one.
    fn shelf(&self, layout: Layout) -> Option<*mut Shelf> {
        let is_kept = is_small(layout) && self.owner.load(Ordering::Relaxed) == this_thread();
        // SAFETY: `is_small` keeps the index within the shelves. Only the owner comes here, and no caller keeps the address.
        is_kept.then(|| unsafe { self.shelves.get().cast::<Shelf>().add(shelf_of(layout)) })
    }

    /// A kept block for `layout`.
    fn take(&self, layout: Layout) -> Option<*mut u8> {
        let shelf = self.shelf(layout)?;
        // SAFETY: this thread alone uses the shelf, and the blocks in it are free and begin with the address of the next one.
        unsafe {
            let block = (*shelf).top;
            if block.is_null() {
                return None;
            }
            (*shelf).top = block.read().cast();
            (*shelf).bytes -= whole(layout).size();
            Some(block.cast())
        }
    }

    /// Whether the block is kept now.
    ///
    /// # Safety
    /// The block has this layout and is no longer used.
    unsafe fn keep(&self, block: *mut u8, layout: Layout) -> bool {
        let Some(shelf) = self.shelf(layout) else {
            return false;
        };
        let size = whole(layout).size();
        // SAFETY: this thread alone uses the shelf; the block has room for an address and is aligned for one (`whole`).
        unsafe {
            let is_kept = (*shelf).bytes + size <= KEPT.max(2 * size);
            if is_kept {
                let block = block.cast::<*mut u8>();
                block.write((*shelf).top.cast());
                (*shelf).top = block;
                (*shelf).bytes += size;
            }
            is_kept
        }
    }
}

/// An address that no other living thread has.
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| ptr::from_ref(mark).addr())
}

fn is_small(layout: Layout) -> bool {
    layout.size() <= LARGEST && layout.align() <= STEP
}

fn shelf_of(layout: Layout) -> usize {
    (layout.size() + HEADER - 1) / STEP
}

/// The largest layout with the same shelf, so that each of its blocks serves for all; layouts without a shelf are as they are.
fn whole(layout: Layout) -> Layout {
    match is_small(layout) {
        // SAFETY: a power of two, and far from the end of the address space.
        true => unsafe {
            Layout::from_size_align_unchecked(shelf_of(layout) * STEP + HEADER, STEP)
        },
        false => layout,
    }
}

// SAFETY: a block has the layout `whole` of the one that was asked for, which is at least as large and as aligned; equal shelves
// have equal ones. It comes from `S`, or was freed by this thread and is in no shelf any more.
unsafe impl<S: GlobalAlloc> GlobalAlloc for Recycled<S> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout)
            // SAFETY: the caller's.
            .unwrap_or_else(|| unsafe { self.small.alloc(whole(layout)) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            // SAFETY: the block has at least this size.
            Some(block) => unsafe {
                block.write_bytes(0, layout.size());
                block
            },
            // SAFETY: the caller's.
            None => unsafe { self.small.alloc_zeroed(whole(layout)) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's; the block came from `S` with the layout `whole`.
        unsafe {
            if !self.keep(block, layout) {
                self.small.dealloc(block, whole(layout));
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's, whose size makes a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_small(layout), is_small(wanted)) {
            (true, true) if shelf_of(layout) == shelf_of(wanted) => block,
            // SAFETY: the caller's; no block of these layouts is rounded.
            (false, false) => unsafe { self.small.realloc(block, layout, size) },
            // SAFETY: the new block is another one, both have the copied number of bytes, and the old one is freed once.
            _ => unsafe {
                let new = self.alloc(wanted);
                if !new.is_null() {
                    ptr::copy_nonoverlapping(block, new, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                new
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// The system's allocator, and the number of bytes that it has given away.
    struct Counted(AtomicUsize);

    // SAFETY: the system's allocator does all of it.
    unsafe impl GlobalAlloc for Counted {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.0.fetch_add(layout.size(), Relaxed);
            // SAFETY: the caller's.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            self.0.fetch_sub(layout.size(), Relaxed);
            // SAFETY: the caller's.
            unsafe { System.dealloc(block, layout) }
        }
    }

    fn recycled() -> Recycled<Counted> {
        Recycled::new(Counted(AtomicUsize::new(0)))
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn the_thread_gets_the_block_that_it_freed_and_another_thread_does_not() {
        let allocator = recycled();
        allocator.keep_here();
        let (small, large) = (layout(40, 8), layout(LARGEST + 1, 8));
        // SAFETY: each block is freed once, with its layout.
        unsafe {
            let block = allocator.alloc(small);
            allocator.dealloc(block, small);
            let other = std::thread::scope(|scope| {
                let other = || {
                    // It comes too late.
                    allocator.keep_here();
                    let block = allocator.alloc(small);
                    allocator.dealloc(block, small);
                    block.addr()
                };
                scope.spawn(other).join().unwrap()
            });
            assert_ne!(other, block.addr());
            assert_eq!(allocator.alloc(layout(25, 1)), block, "the same shelf");
            assert_eq!(allocator.small.0.load(Relaxed), 40);
            allocator.dealloc(block, layout(25, 1));

            allocator.dealloc(allocator.alloc(large), large);
            assert_eq!(allocator.small.0.load(Relaxed), 40, "too large to be kept");
        }
    }

    #[test]
    fn little_is_kept() {
        let allocator = recycled();
        allocator.keep_here();
        for (size, kept) in [(1, 4096), (24, 4080), (1000, 4000), (8000, 16_016)] {
            let before = allocator.small.0.load(Relaxed);
            // SAFETY: each block is freed once, with its layout.
            unsafe {
                let blocks: Vec<_> = (0..1000)
                    .map(|_| allocator.alloc(layout(size, 8)))
                    .collect();
                blocks
                    .into_iter()
                    .for_each(|block| allocator.dealloc(block, layout(size, 8)));
            }
            assert_eq!(allocator.small.0.load(Relaxed) - before, kept, "{size}");
        }
    }

    /// Many blocks of all sizes, which are made, resized and freed in an order of chance, keep their bytes.
    #[test]
    fn no_two_blocks_share_a_byte() {
        let allocator = recycled();
        allocator.keep_here();
        let mut state = 1_u64;
        let mut chance = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let mut blocks: Vec<(*mut u8, Layout, u8)> = Vec::new();
        // SAFETY: each block is used and freed with the layout that it has at that moment.
        unsafe {
            let intact = |block: *mut u8, size: usize, mark: u8| {
                assert!((0..size).all(|at| block.add(at).read() == mark));
            };
            for turn in 0..20_000_usize {
                let mark = turn.to_le_bytes()[0];
                let size = 1 + match chance(4) {
                    0 => chance(2 * LARGEST),
                    _ => chance(200),
                };
                match chance(5) {
                    0 | 1 => {
                        let wanted = layout(size, 1 << chance(6));
                        let block = match chance(2) {
                            0 => allocator.alloc(wanted),
                            _ => {
                                let block = allocator.alloc_zeroed(wanted);
                                intact(block, size, 0);
                                block
                            }
                        };
                        assert!(block.addr().is_multiple_of(wanted.align()));
                        block.write_bytes(mark, size);
                        blocks.push((block, wanted, mark));
                    }
                    _ if blocks.is_empty() => {}
                    2 => {
                        let at = chance(blocks.len());
                        let (block, old, kept) = blocks[at];
                        let new = allocator.realloc(block, old, size);
                        intact(new, old.size().min(size), kept);
                        new.write_bytes(mark, size);
                        blocks[at] = (new, layout(size, old.align()), mark);
                    }
                    _ => {
                        let (block, layout, kept) = blocks.swap_remove(chance(blocks.len()));
                        intact(block, layout.size(), kept);
                        allocator.dealloc(block, layout);
                    }
                }
            }
            for (block, layout, kept) in blocks {
                intact(block, layout.size(), kept);
                allocator.dealloc(block, layout);
            }
        }
    }
}
