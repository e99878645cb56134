//! Prefetch hints for networks that do not fit into the CPU cache.

/// Size of a cache line, in bytes.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Starts loading a whole value into the cache without waiting for it. Does nothing on CPUs other than x86-64.
#[inline]
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "no safe function gives this hint"))]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..size_of::<T>().div_ceil(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = std::ptr::from_ref(value).cast::<i8>().wrapping_add(line * LINE);
        // SAFETY: a prefetch neither reads nor writes; an address that is not mapped has no effect.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
