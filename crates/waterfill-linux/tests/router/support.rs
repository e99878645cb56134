//! The router programs in this process: loaded, asked, given packets.

#![allow(dead_code, reason = "the test and the example use parts of it")]

use std::mem::{MaybeUninit, offset_of};
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags, ProgramInput};

/// As libbpf-cargo generated them from `bpf/`.
#[allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    unreachable_pub,
    unused_imports,
    unused_qualifications,
    missing_debug_implementations,
    reason = "generated"
)]
mod skeleton {
    pub(super) mod router {
        include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
    }
    pub(super) mod interface {
        include!(concat!(env!("OUT_DIR"), "/interface.skel.rs"));
    }
}

use skeleton::interface::types;
use skeleton::router::types::__sk_buff as Context;
use skeleton::router::{RouterSkel, RouterSkelBuilder};

#[allow(unused_imports, reason = "the example uses a part of them")]
pub(crate) use types::{
    maxnet_link as LawLink, waterfill_command as Command, waterfill_count as Count, waterfill_request as Request,
};

/// The loopback device, which BPF_PROG_TEST_RUN uses by default.
pub(crate) const LOOPBACK: u32 = 1;

/// How a super-packet is sent.
#[derive(Clone, Copy)]
pub(crate) struct Gso {
    pub(crate) wire_length: u32,
    pub(crate) segments: u32,
    pub(crate) segment_bytes: u32,
}

pub(crate) struct Router {
    skeleton: Box<RouterSkel<'static>>,
}

impl Router {
    pub(crate) fn load() -> Self {
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = RouterSkelBuilder::default().open(storage).unwrap();
        Self { skeleton: Box::new(open.load().unwrap()) }
    }

    /// Makes or changes the link of `request.ifindex`.
    pub(crate) fn set(&self, request: Request) -> Request {
        let links = &self.skeleton.maps.links;
        let key = request.ifindex.to_ne_bytes();
        if links.lookup(&key, MapFlags::ANY).unwrap().is_none() {
            links.update(&key, &vec![0; links.value_size() as usize], MapFlags::ANY).unwrap();
        }
        self.execute(Request { command: Command::WATERFILL_SET, ..request })
    }

    pub(crate) fn show(&self, ifindex: u32) -> Request {
        self.execute(Request { command: Command::WATERFILL_SHOW, ifindex, ..Request::default() })
    }

    /// Counts bytes on a link at a time, as if in a packet.
    pub(crate) fn arrive(&self, request: &Request, now: u64, arriving_bytes: u64) -> Request {
        self.execute(Request { command: Command::WATERFILL_ARRIVE, now, arriving_bytes, ..*request })
    }

    fn execute(&self, mut request: Request) -> Request {
        let input = ProgramInput { context_in: Some(as_bytes(&mut request)), ..ProgramInput::default() };
        let answer = self.skeleton.progs.waterfill_ask.test_run(input).unwrap();
        assert_eq!(answer.return_value, 0);
        request
    }

    /// Sends a packet through the program. Returns the packet as it leaves, and the time that one run took.
    pub(crate) fn send(&self, packet: &[u8], gso: Option<Gso>, repeat: u32) -> libbpf_rs::Result<(Vec<u8>, Duration)> {
        let mut context = [0_u8; size_of::<Context>()];
        let mut put = |at: usize, value: u32| context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(offset_of!(Context, ifindex), LOOPBACK);
        if let Some(gso) = gso {
            put(offset_of!(Context, wire_len), gso.wire_length);
            put(offset_of!(Context, gso_segs), gso.segments);
            put(offset_of!(Context, gso_size), gso.segment_bytes);
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
        assert_eq!(answer.return_value as i32, -1, "every packet continues");
        let (took, length) = (answer.duration, answer.data.map_or(0, |data| data.len()));
        out.truncate(length);
        Ok((out, took))
    }
}

/// Reads one of a link's counters.
pub(crate) fn count(link: &Request, which: Count) -> u64 {
    link.counts[which.0 as usize]
}

/// A link of 1 Tbit/s at its minimum price, which no test loads; the price changes once a second at most.
pub(crate) fn idle_link(ifindex: u32) -> Request {
    Request {
        ifindex,
        rate: 1_000_000_000_000,
        x_max: 1_000_000_000_000_000,
        mu: 940_000,
        t: 400,
        dt_p: 1_000_000,
        t_0: 130_000_000,
        overhead_bytes: 14,
        header_bytes: 14,
        ..Request::default()
    }
}

#[expect(unsafe_code, reason = "a program's context is bytes")]
fn as_bytes(request: &mut Request) -> &mut [u8] {
    // SAFETY: integers without padding (bpf/router.h asserts its size), for which any bytes are valid.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(request).cast(), size_of::<Request>()) }
}
