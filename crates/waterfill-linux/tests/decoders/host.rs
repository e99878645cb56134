//! Decoders in C, compiled for the host from `bpf/test/decode_host.c` for each law.

#![allow(
    unsafe_code,
    reason = "the decoders are C. They take a pointer and a length, write only to what they are given, and keep nothing"
)]

/// Maximum length of an option of any law, in bytes (`bpf/host_option.h`).
pub(crate) const OPTION_MAX_BYTES: usize = 28;

/// Host decoders of a law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    /// Name of the law.
    pub(crate) law: &'static str,
    frame: unsafe extern "C" fn(*mut u8, u32, u32) -> u32,
    write: unsafe extern "C" fn(*mut u8, u32, *const u8, *mut u8) -> u32,
    option: unsafe extern "C" fn(*const u8, u32, u32, *mut u8, *mut i32, *mut u8, *mut u8) -> u32,
}

/// Values that a host decodes from a TCP header's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Option {
    /// Bits that name the values present: 1 for `forward`, 2 for `echo`; 0 means that there is none.
    pub(crate) values: u32,
    pub(crate) forward: [u8; 16],
    pub(crate) echo: [u8; 16],
    /// Bytes of the option that the kernel's search found. The search's result is `length`.
    pub(crate) raw: [u8; OPTION_MAX_BYTES],
    pub(crate) length: i32,
}

impl Host {
    /// Returns the verdict on a frame (`bpf/test/decode.h`). The frame's first `linear` bytes are contiguous in memory.
    pub(crate) fn frame(&self, frame: &[u8], linear: usize) -> u32 {
        let mut copy = frame.to_vec();
        // SAFETY: the pointer and the length are of one vector, whose bytes the function only reads.
        let verdict = unsafe { (self.frame)(copy.as_mut_ptr(), copy.len() as u32, linear as u32) };
        assert_eq!(copy, frame, "decoding has changed the frame");
        verdict
    }

    /// Replaces the value in a frame. Returns the former value.
    pub(crate) fn write(&self, frame: &mut [u8], value: &[u8; 16]) -> std::option::Option<[u8; 16]> {
        let mut old = [0; 16];
        let (bytes, length) = (frame.as_mut_ptr(), frame.len() as u32);
        // SAFETY: as above; a value has at most 15 bytes, so both arrays hold it.
        let written = unsafe { (self.write)(bytes, length, value.as_ptr(), old.as_mut_ptr()) };
        (written == 1).then_some(old)
    }

    /// Decodes the option of this kind from a TCP header's options.
    pub(crate) fn option(&self, options: &[u8], kind: u32) -> Option {
        let mut read = Option::default();
        let (raw, length) = (read.raw.as_mut_ptr(), &raw mut read.length);
        let (forward, echo) = (read.forward.as_mut_ptr(), read.echo.as_mut_ptr());
        // SAFETY: as above; the arrays have the lengths that the function writes (`OPTION_MAX_BYTES`, and 16 twice).
        read.values =
            unsafe { (self.option)(options.as_ptr(), options.len() as u32, kind, raw, length, forward, echo) };
        read
    }
}

/// Declares the C functions of each law and the table of them.
macro_rules! hosts {
    ($($law:literal: $frame:ident, $write:ident, $option:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $frame(frame: *mut u8, length: u32, linear: u32) -> u32;
                fn $write(frame: *mut u8, length: u32, value: *const u8, old: *mut u8) -> u32;
                fn $option(
                    options: *const u8, bytes: u32, kind: u32, raw: *mut u8, length: *mut i32, forward: *mut u8, echo: *mut u8,
                ) -> u32;
            )*
        }
        /// Decoders of all laws that run in the kernel.
        pub(crate) const HOSTS: &[Host] = &[$(Host { law: $law, frame: $frame, write: $write, option: $option }),*];
    };
}

// The build script lists every law of the kernel folder.
include!(concat!(env!("OUT_DIR"), "/decoders.rs"));
