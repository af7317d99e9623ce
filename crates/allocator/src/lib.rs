//! What the C library's allocator does with memory that is not needed any more.
//!
//! A gateway has moments of much memory: lists of tools are read, an index is built, a result of 10 MB passes. glibc keeps
//! most of that for good: each thread has a heap of its own, and after the first large block was freed, blocks of that size
//! are cut from the heap, where a small neighbour keeps all of it. Other C libraries and systems give it back by themselves.

/// Blocks from this size on, in bytes, are mapped by themselves, and given back when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_FROM: libc::c_int = 128 * 1024;

/// What may stay free at the end of the heap, in bytes, so that messages of usual size cost no system call.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_FREE: libc::c_int = 512 * 1024;

/// Has freed memory given back to the system soon. To be called once, before the first thread is started; does nothing where
/// the allocator is not glibc's.
pub fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "nothing safe sets these")]
    // What is refused stays as it was.
    for (parameter, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_MMAP_THRESHOLD, MAPPED_FROM),
        (libc::M_TRIM_THRESHOLD, KEPT_FREE),
    ] {
        // SAFETY: `mallopt` takes two numbers and touches settings of the allocator only, under its own lock.
        unsafe {
            libc::mallopt(parameter, value);
        }
    }
}
