//! Copying and comparing bytes. musl's `memcpy` takes 50 ns for a name, because it begins with an instruction for long copies, and its `memcmp`
//! looks at one byte at a time. A program without a C library of its own calls these two all the time.

#![allow(
    unsafe_code,
    reason = "functions of C get addresses and are found by their names"
)]

use std::arch::asm;
use std::arch::x86_64::__m128i as Wide;

/// From this length on, in bytes, the processor's instruction for copies is faster than a loop.
const LONG: usize = 2048;

/// Bytes that a step of a loop copies.
const STEP: usize = 4 * size_of::<Wide>();

/// `memcpy` of C.
///
/// # Safety
/// As in C: `length` bytes can be read at `from` and written at `to`, and they do not overlap.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe { copy(to, from, length) }
}

/// `memmove` of C.
///
/// # Safety
/// As in C: `length` bytes can be read at `from` and written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe { copy(to, from, length) }
}

/// `memcmp` of C.
///
/// # Safety
/// As in C: `length` bytes can be read at `one` and at `other`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    // SAFETY: the caller's.
    unsafe { compare(one, other, length) }
}

/// `bcmp` of C, by which the compiler compares for equality.
///
/// # Safety
/// That of [`memcmp`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    // SAFETY: the caller's.
    unsafe { compare(one, other, length) }
}

/// Copies `length` bytes, which may overlap: what a later write could change is read before it.
///
/// # Safety
/// That of [`memmove`].
#[inline(always)]
unsafe fn copy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: each branch stays within `length` bytes, which the caller permits.
    unsafe {
        match length {
            0 => {}
            1 => to.write(from.read()),
            2..4 => ends::<u16, 1>(to, from, length),
            4..8 => ends::<u32, 1>(to, from, length),
            8..16 => ends::<u64, 1>(to, from, length),
            16..=32 => ends::<Wide, 1>(to, from, length),
            33..=64 => ends::<Wide, 2>(to, from, length),
            65..=128 => ends::<Wide, 4>(to, from, length),
            // Behind the source, or before it.
            _ if to.addr().wrapping_sub(from.addr()) >= length => forwards(to, from, length),
            _ => backwards(to, from, length),
        }
    }
    to
}

/// Copies the first and the last `N` values, which together are all bytes.
///
/// # Safety
/// `length` bytes can be read at `from` and written at `to`, at least `N` values and at most twice as many.
#[inline(always)]
unsafe fn ends<T: Copy, const N: usize>(to: *mut u8, from: *const u8, length: usize) {
    let last = length - N * size_of::<T>();
    // SAFETY: the caller's.
    unsafe {
        let first = from.cast::<[T; N]>().read_unaligned();
        let end = from.add(last).cast::<[T; N]>().read_unaligned();
        to.cast::<[T; N]>().write_unaligned(first);
        to.add(last).cast::<[T; N]>().write_unaligned(end);
    }
}

/// Copies more than two steps from the first byte on.
///
/// # Safety
/// `length` bytes, at least two steps, can be read at `from` and written at `to`, which is before `from` or behind its bytes.
#[inline(always)]
unsafe fn forwards(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: the caller's; `rep movsb` copies upwards, because the direction flag is clear in each call.
    unsafe {
        if length >= LONG && from.addr().wrapping_sub(to.addr()) >= length {
            asm!(
                "rep movsb",
                inout("rcx") length => _,
                inout("rdi") to => _,
                inout("rsi") from => _,
                options(nostack, preserves_flags)
            );
            return;
        }
        let last = length - STEP;
        let end = from.add(last).cast::<[Wide; 4]>().read_unaligned();
        let mut at = 0;
        while at < last {
            let step = from.add(at).cast::<[Wide; 4]>().read_unaligned();
            to.add(at).cast::<[Wide; 4]>().write_unaligned(step);
            at += STEP;
        }
        to.add(last).cast::<[Wide; 4]>().write_unaligned(end);
    }
}

/// Copies more than two steps from the last byte on.
///
/// # Safety
/// `length` bytes, at least two steps, can be read at `from` and written at `to`, which is behind `from`.
#[inline(always)]
unsafe fn backwards(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: the caller's.
    unsafe {
        let first = from.cast::<[Wide; 4]>().read_unaligned();
        let mut at = length;
        while at > STEP {
            at -= STEP;
            let step = from.add(at).cast::<[Wide; 4]>().read_unaligned();
            to.add(at).cast::<[Wide; 4]>().write_unaligned(step);
        }
        to.cast::<[Wide; 4]>().write_unaligned(first);
    }
}

/// Which bytes come first, in the order of their values: below zero `one`, above zero `other`; zero if they are equal.
///
/// # Safety
/// `length` bytes can be read at both.
#[inline(always)]
unsafe fn compare(one: *const u8, other: *const u8, length: usize) -> i32 {
    // SAFETY: each read stays within `length` bytes.
    unsafe {
        let differ = |at: usize| {
            let one = one.add(at).cast::<u64>().read_unaligned();
            let other = other.add(at).cast::<u64>().read_unaligned();
            (one != other).then(|| one.swap_bytes().cmp(&other.swap_bytes()) as i32)
        };
        if length >= 8 {
            let mut at = 0;
            while at < length - 8 {
                if let Some(order) = differ(at) {
                    return order;
                }
                at += 8;
            }
            // Bytes that were compared already are equal.
            return differ(length - 8).unwrap_or(0);
        }
        let mut at = 0;
        while at < length {
            let (one, other) = (one.add(at).read(), other.add(at).read());
            if one != other {
                return i32::from(one) - i32::from(other);
            }
            at += 1;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every length of the short ways, and some of the long ones.
    fn lengths() -> impl Iterator<Item = usize> {
        (0..400).chain([1000, 2047, 2048, 2049, 5000])
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn a_copy_is_the_standard_librarys() {
        for length in lengths() {
            for (from, to) in [(0, 0), (1, 0), (3, 5), (7, 1), (15, 16)] {
                let source = bytes(length + 32);
                let (mut copied, mut expected) = (vec![9; length + 32], vec![9; length + 32]);
                expected[to..to + length].copy_from_slice(&source[from..from + length]);
                // SAFETY: both have 32 bytes more.
                let returned = unsafe {
                    memcpy(
                        copied.as_mut_ptr().add(to),
                        source.as_ptr().add(from),
                        length,
                    )
                };
                assert_eq!(returned.addr(), copied.as_ptr().addr() + to);
                assert_eq!(copied, expected, "{length} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn bytes_that_overlap_are_moved() {
        for length in lengths() {
            for (from, to) in [
                (0, 1),
                (1, 0),
                (0, 15),
                (15, 0),
                (0, 16),
                (40, 0),
                (0, 63),
                (64, 0),
                (0, 65),
                (100, 0),
                (0, 127),
                (200, 0),
                (0, 300),
                (300, 0),
                (20, 20),
            ] {
                let mut moved = bytes(length + 300);
                let mut expected = moved.clone();
                expected.copy_within(from..from + length, to);
                let start = moved.as_mut_ptr();
                // SAFETY: there are 300 bytes more.
                unsafe { memmove(start.add(to), start.add(from), length) };
                assert_eq!(moved, expected, "{length} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn the_order_is_the_standard_librarys() {
        for length in (0..70).chain([200, 1001]) {
            let one = bytes(length);
            for at in 0..=length {
                for value in [0, 1, 127, 128, 255] {
                    let mut other = one.clone();
                    other[at..]
                        .iter_mut()
                        .take(1)
                        .for_each(|byte| *byte = value);
                    // A later difference does not count.
                    other[at..]
                        .iter_mut()
                        .skip(3)
                        .take(1)
                        .for_each(|byte| *byte ^= 255);
                    for (one, other) in [(&one, &other), (&other, &one)] {
                        // SAFETY: both have this length.
                        let (order, equal) = unsafe {
                            let (one, other) = (one.as_ptr(), other.as_ptr());
                            (memcmp(one, other, length), bcmp(one, other, length))
                        };
                        assert_eq!(order.cmp(&0), one.cmp(other), "{length} bytes, {at}");
                        assert_eq!(equal == 0, one == other);
                    }
                }
            }
        }
    }
}
