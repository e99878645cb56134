//! The router's program in this process: loaded, asked, given packets.

#![allow(dead_code, reason = "the test and the bench use parts of it")]

use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags, ProgramInput};

/// As libbpf-cargo made it from `bpf/router.bpf.c`.
#[allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    unreachable_pub,
    unused_qualifications,
    missing_debug_implementations,
    reason = "generated"
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}

pub(crate) use skeleton::types::waterfill_request as Request;

/// Of bpf/router.h.
pub(crate) const SET: u32 = 0;
pub(crate) const SHOW: u32 = 1;
pub(crate) const ARRIVE: u32 = 2;
pub(crate) const SEEN: usize = 0;
pub(crate) const MARKED: usize = 1;
pub(crate) const STARTS: usize = 2;
pub(crate) const PLAIN: usize = 3;
pub(crate) const FRAGMENTS: usize = 4;
pub(crate) const MALFORMED: usize = 5;
pub(crate) const SEALED: usize = 6;
/// The loopback device, which BPF_PROG_TEST_RUN takes when it is not told another.
pub(crate) const LOOPBACK: u32 = 1;

/// The size of `struct __sk_buff`, and where fields are in it (linux/bpf.h).
const CONTEXT: usize = 192;
const IFINDEX: usize = 40;
const WIRE_LENGTH: usize = 160;
const SEGMENTS: usize = 164;
const SEGMENT_SIZE: usize = 176;

/// Why there can be no program here, or `None`.
pub(crate) fn missing() -> Option<&'static str> {
    if std::fs::metadata("/proc/self").map_or(true, |me| me.uid() != 0) {
        return Some("needs root");
    }
    (!Path::new("/sys/kernel/btf/vmlinux").exists()).then_some("needs a kernel with type information (BTF)")
}

/// How a super-packet is sent.
#[derive(Clone, Copy)]
pub(crate) struct Gso {
    pub(crate) wire_length: u32,
    pub(crate) segments: u32,
    pub(crate) segment_bytes: u32,
}

pub(crate) struct Router {
    skeleton: Box<skeleton::RouterSkel<'static>>,
}

impl Router {
    pub(crate) fn load() -> Self {
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = skeleton::RouterSkelBuilder::default().open(storage).unwrap();
        Self { skeleton: Box::new(open.load().unwrap()) }
    }

    /// Makes or changes the link of `request.ifindex`.
    pub(crate) fn set(&self, request: Request) -> Request {
        let links = &self.skeleton.maps.links;
        let key = request.ifindex.to_ne_bytes();
        if links.lookup(&key, MapFlags::ANY).unwrap().is_none() {
            links.update(&key, &vec![0; links.value_size() as usize], MapFlags::ANY).unwrap();
        }
        self.ask(Request { what: SET, ..request })
    }

    pub(crate) fn show(&self, ifindex: u32) -> Request {
        self.ask(Request { what: SHOW, ifindex, ..Request::default() })
    }

    pub(crate) fn ask(&self, mut request: Request) -> Request {
        let input = ProgramInput { context_in: Some(as_bytes(&mut request)), ..ProgramInput::default() };
        let answer = self.skeleton.progs.waterfill_ask.test_run(input).unwrap();
        assert_eq!(answer.return_value, 0);
        request
    }

    /// A packet as it leaves, and how long one took.
    pub(crate) fn send(&self, packet: &[u8], gso: Option<Gso>, repeat: u32) -> libbpf_rs::Result<(Vec<u8>, Duration)> {
        let mut context = [0_u8; CONTEXT];
        let mut put = |at: usize, value: u32| context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(IFINDEX, LOOPBACK);
        if let Some(gso) = gso {
            put(WIRE_LENGTH, gso.wire_length);
            put(SEGMENTS, gso.segments);
            put(SEGMENT_SIZE, gso.segment_bytes);
        }
        let mut out = vec![0; packet.len() + 256];
        let input = ProgramInput {
            context_in: Some(&mut context),
            data_in: Some(packet),
            data_out: Some(&mut out),
            repeat,
            ..ProgramInput::default()
        };
        let answer = self.skeleton.progs.waterfill_router.test_run(input)?;
        assert_eq!(answer.return_value as i32, -1, "every packet goes on");
        let (took, length) = (answer.duration, answer.data.map_or(0, |data| data.len()));
        out.truncate(length);
        Ok((out, took))
    }
}

/// A link of 1 Tbit/s whose price is its least, as no test loads it; the price changes every second at most.
pub(crate) fn quiet(ifindex: u32) -> Request {
    Request {
        ifindex,
        rate: 1_000_000_000_000,
        x_max: 1_000_000_000_000_000,
        mu: 940_000,
        t: 400,
        dt_p: 1_000_000,
        t_0: 130_000_000,
        overhead: 14,
        header: 14,
        ..Request::default()
    }
}

#[expect(unsafe_code, reason = "a program's context is bytes")]
fn as_bytes(request: &mut Request) -> &mut [u8] {
    // SAFETY: integers only and no byte between them; any value may be written to each.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(request).cast(), size_of::<Request>()) }
}
