//! Structures and constants that the daemon shares with the kernel programs.
//!
//! build.rs generates them from the type information of `bpf/interface.bpf.c`. Rust finds fields by name, so it follows
//! every change of the C structures, also one that leaves their sizes as they were.
#![expect(unsafe_code, reason = "structures cross to the kernel and back as bytes")]

use std::ptr;
use std::slice;

pub(crate) use crate::daemon::kernel::skeleton::interface::types::{
    cohabit_controller as CohabitController, cohabit_setup as CohabitSetup, cohabit_state as CohabitState,
    cohabit_update as CohabitUpdate, csig_bands as CsigBands, csig_counts as CsigCounts, csig_device as CsigDevice,
    csig_format as CsigFormat, csig_layout as CsigLayout, csig_reading as CsigReading, csig_role as CsigRole,
    csig_type as CsigType, host_counters as HostCounters, host_event as HostEvent, host_event_kind as HostEventKind,
    host_events as HostEvents, host_flag as HostFlag, host_listener as HostListener, host_mode as HostMode,
    host_params as HostParams, host_prefix as Prefix, host_reason as HostReason, host_record as HostRecord,
    host_samples as HostSamples, host_summary as HostSummary, scone_link as SconeLink, scone_rule as SconeRule,
    waterfill_attachment as Attachment, waterfill_command as Command, waterfill_count as Count,
    waterfill_created as Created, waterfill_layout as Layout, waterfill_option_kind as OptionKind,
    waterfill_request as Request, waterfill_result as CommandResult,
};

/// A C structure that is passed to and from the kernel as bytes.
///
/// # Safety
/// It has only integer fields and no padding, so that each byte can be read, and any value of a byte is valid.
pub(crate) unsafe trait Bytes: Copy {
    /// Returns the bytes of the structure, for the kernel to read.
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: every byte is initialised, as there is no padding.
        unsafe { slice::from_raw_parts(ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// Returns the bytes of the structure, for the kernel to read and write.
    fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes that are written make a valid structure.
        unsafe { slice::from_raw_parts_mut(ptr::from_mut(self).cast(), size_of::<Self>()) }
    }

    /// Reads a structure from the start of `bytes`. Returns `None` if there are too few bytes.
    fn from_prefix(bytes: &[u8]) -> Option<Self> {
        // SAFETY: there are enough bytes, any bytes make a valid structure, and the read may be unaligned.
        (bytes.len() >= size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

// bpf/router.h asserts the same of Attachment and Request, bpf/conn.h of HostRecord and HostSummary.
const _: () = assert!(size_of::<HostParams>() == 32 * 8 + 4 * 4 + 8 + 2 * 16, "padding");

// SAFETY: integers without padding.
unsafe impl Bytes for Attachment {}
// SAFETY: integers without padding.
unsafe impl Bytes for Request {}
// SAFETY: integers without padding.
unsafe impl Bytes for HostParams {}
// SAFETY: integers of one size.
unsafe impl Bytes for Prefix {}
// SAFETY: integers without padding.
unsafe impl Bytes for HostRecord {}
// SAFETY: integers without padding.
unsafe impl Bytes for HostSummary {}
// SAFETY: integers without padding (bpf/conn.h asserts it).
unsafe impl Bytes for HostEvent {}
// SAFETY: integers without padding.
unsafe impl Bytes for HostListener {}
// SAFETY: integers without padding.
unsafe impl Bytes for CohabitState {}
// SAFETY: integers without padding (bpf/csig_state.h asserts it).
unsafe impl Bytes for CsigDevice {}
// SAFETY: integers of one size.
unsafe impl Bytes for CsigCounts {}
// SAFETY: integers without padding (bpf/csig_state.h asserts it).
unsafe impl Bytes for CsigReading {}
// SAFETY: integers without padding.
unsafe impl Bytes for SconeLink {}
// SAFETY: integers of one size.
unsafe impl Bytes for HostCounters {}

/// Writes the bytes of a law's `struct law_params` into the start of `words`. Their number is a multiple of the word
/// size.
pub(crate) fn write_params(words: &mut [u64], params: &[u8]) {
    for (word, bytes) in words.iter_mut().zip(params.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
}

/// Copies a name into a C string of fixed size. A long name is truncated to leave space for the final zero.
pub(crate) fn write_name(into: &mut [i8], name: &str) {
    into.fill(0);
    let end = into.len() - 1;
    for (to, from) in into[..end].iter_mut().zip(name.bytes()) {
        *to = from as i8;
    }
}

/// Reads a C string of fixed size. Returns an empty string if the bytes have no final zero.
pub(crate) fn read_name(from: &[i8]) -> String {
    let bytes: Vec<u8> = from.iter().map(|c| *c as u8).collect();
    std::ffi::CStr::from_bytes_until_nul(&bytes)
        .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The layout of attachments never changes, because a newer daemon reads the map of an older one.
    #[test]
    fn the_layout_of_attachments_is_the_first_versions() {
        let offsets = [
            offset_of!(Attachment, price),
            offset_of!(Attachment, namespace),
            offset_of!(Attachment, layout),
            offset_of!(Attachment, created),
            offset_of!(Attachment, reserved),
            offset_of!(Attachment, device),
        ];
        assert_eq!((offsets, size_of::<Attachment>()), ([0, 8, 16, 20, 24, 32], 48));
    }

    #[test]
    fn a_structure_is_read_from_its_bytes() {
        let mut attachment =
            Attachment { price: 7, created: Created::WATERFILL_CREATED_SHAPER.0, ..Default::default() };
        write_name(&mut attachment.device, "a name of more than 15 bytes");
        let again = Attachment::from_prefix(attachment.as_bytes()).unwrap();
        assert_eq!((again.price, again.created), (7, 4));
        assert_eq!(read_name(&again.device), "a name of more ");
        assert!(Attachment::from_prefix(&attachment.as_bytes()[1..]).is_none());
        assert_eq!(read_name(&[b'a' as i8; 3]), "");
    }
}
