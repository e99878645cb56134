//! Random numbers by seed: quinn's own generators where they take a seed, and the system's generator for those that do not.
#![expect(unsafe_code, reason = "the name and the signature of getrandom's custom backend")]

use std::cell::Cell;
use std::thread;

#[cfg(not(getrandom_backend = "custom"))]
compile_error!("run cargo in crates/waterfill-quinn, whose .cargo/config.toml selects the seeded generator");

/// Generator by splitmix64. It repeats by its seed and keeps no secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Returns the generator of a seed. Different `stream`s of one seed are independent.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        Self(seed ^ stream.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes()[..part.len()]);
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}

thread_local! {
    static SYSTEM: Cell<Random> = const { Cell::new(Random::new(0, 0)) };
}

/// Runs `f` on a thread of its own, whose system generator begins with `seed`.
///
/// quinn seeds its BBR from the generator of the thread, which cannot be seeded again.
pub(crate) fn with_system_seed<T: Send>(seed: u64, f: impl FnOnce() -> T + Send) -> T {
    let seeded = || {
        SYSTEM.set(Random::new(seed, 1));
        f()
    };
    thread::scope(|scope| scope.spawn(seeded).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The system's generator, as the crate getrandom calls it.
///
/// # Safety
/// `bytes` can hold `size` bytes.
#[unsafe(no_mangle)]
#[expect(clippy::unnecessary_wraps, reason = "the type that getrandom declares")]
unsafe extern "Rust" fn __getrandom_v03_custom(bytes: *mut u8, size: usize) -> Result<(), getrandom::Error> {
    let mut random = SYSTEM.get();
    // SAFETY: by the caller; the memory may be uninitialized, so it is set first.
    let bytes = unsafe {
        bytes.write_bytes(0, size);
        std::slice::from_raw_parts_mut(bytes, size)
    };
    random.fill(bytes);
    SYSTEM.set(random);
    Ok(())
}
