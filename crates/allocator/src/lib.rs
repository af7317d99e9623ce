//! The allocator of the program. With glibc it is glibc's, with settings that return freed memory to the system. With musl, whose
//! allocator is slow for many small blocks, it is dlmalloc for small blocks, and the system itself for large ones; the first thread, which
//! handles all messages, keeps a few small blocks for itself. musl's functions that copy and compare bytes are replaced, too.
//!
//! A gateway sometimes needs much memory: it reads tool lists, builds an index, or relays a result of 10 MB. By
//! default, glibc never returns most of it. Each thread has a heap of its own. After the first large block was
//! freed, blocks of that size are allocated on the heap, and a small block behind them keeps all of them from being
//! returned. dlmalloc has only that heap, so large blocks are mapped separately here. The allocators of other systems
//! return memory without such settings.

// Unoptimised, these functions would call themselves, so a profile without debug assertions has to optimise this crate.
#[cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    any(all(target_env = "musl", not(debug_assertions)), test)
))]
mod bytes;
#[cfg(all(target_os = "linux", target_env = "musl"))]
mod locked;
#[cfg(any(
    all(target_os = "linux", target_env = "musl"),
    all(test, target_os = "linux")
))]
mod mapped;
#[cfg(any(
    all(target_os = "linux", target_env = "musl"),
    all(test, target_os = "linux")
))]
mod recycled;

#[cfg(all(target_os = "linux", target_env = "musl"))]
#[global_allocator]
static ALLOCATOR: mapped::LargeMapped<recycled::Recycled<locked::Locked>> =
    mapped::LargeMapped(recycled::Recycled::new(locked::Locked::new()));

/// Blocks of at least this size, in bytes, are mapped separately and returned to the system when they are freed.
#[cfg(target_os = "linux")]
const MAPPED_FROM: libc::c_int = 128 * 1024;

/// Free bytes kept at the end of the heap, so that messages of the usual size need no system call.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_FREE: libc::c_int = 512 * 1024;

/// Makes glibc's allocator return freed memory soon, and ours keep small freed blocks for the current thread. Call it once, before
/// another thread starts. With other allocators it does nothing.
pub fn set_up() {
    #[cfg(all(target_os = "linux", target_env = "musl"))]
    ALLOCATOR.0.keep_here();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "nothing safe sets these")]
    // A setting that is rejected keeps its old value.
    for (parameter, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_MMAP_THRESHOLD, MAPPED_FROM),
        (libc::M_TRIM_THRESHOLD, KEPT_FREE),
    ] {
        // SAFETY: `mallopt` takes two numbers and only changes settings of the allocator, under its own lock.
        unsafe {
            libc::mallopt(parameter, value);
        }
    }
}
