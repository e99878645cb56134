//! Helpers that load the router programs in this process, send requests to them, and run packets through them.

#![allow(dead_code, reason = "the test and the example use parts of it")]

#[path = "../common/generated.rs"]
mod generated;

use std::mem::{MaybeUninit, offset_of};
use std::time::Duration;

use generated::generated;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags, ProgramInput};

generated!(router_skeleton, "router_maxnet.skel.rs");
generated!(interface_skeleton, "interface.skel.rs");

use interface_skeleton::types;
pub(crate) use router_skeleton::types::__sk_buff as Context;
#[allow(unused_imports, reason = "the example uses a part of them")]
pub(crate) use router_skeleton::types::maxnet_link as LawLink;
use router_skeleton::{RouterMaxnetSkel, RouterMaxnetSkelBuilder};

use types::{law_params as Params, waterfill_request as RawRequest};
#[allow(unused_imports, reason = "the example uses a part of them")]
pub(crate) use types::{
    waterfill_attachment as Attachment, waterfill_command as Command, waterfill_count as Count,
    waterfill_result as CommandResult,
};

/// Index of the loopback device, which BPF_PROG_TEST_RUN uses by default.
pub(crate) const LOOPBACK: u32 = 1;

/// A request with MaxNet's names for parameters and signals. Functions of [`Router`] add the command and its fields.
#[derive(Clone, Copy, Default)]
pub(crate) struct Request {
    pub(crate) ifindex: u32,
    pub(crate) now: u64,
    pub(crate) rate: u64,
    pub(crate) x_max: u64,
    pub(crate) x_min: u64,
    pub(crate) mu: u32,
    pub(crate) t: u32,
    pub(crate) dt_p: u32,
    pub(crate) t_0: u32,
    pub(crate) promise: u32,
    pub(crate) overhead_bytes: i32,
    pub(crate) header_bytes: u32,
    // Answers.
    pub(crate) attachment: Attachment,
    pub(crate) price_min: u64,
    pub(crate) price_code: u32,
    pub(crate) queue: u64,
    pub(crate) packets: u64,
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    pub(crate) counts: [u64; Count::WATERFILL_COUNTS.0 as usize],
}

impl Request {
    pub(crate) fn raw(&self, command: Command) -> RawRequest {
        let Self { ifindex, now, rate, mu, overhead_bytes, header_bytes, attachment, .. } = *self;
        let mut params = Params { dt_p: self.dt_p, t_0: self.t_0, promise: self.promise, ..Params::default() };
        params.source.x_max = self.x_max;
        params.source.x_min = self.x_min;
        params.source.t = self.t;
        let mut raw = RawRequest {
            command,
            ifindex,
            now,
            rate,
            target: mu,
            overhead_bytes,
            header_bytes,
            attachment,
            ..RawRequest::default()
        };
        let params = as_bytes(&mut params);
        as_bytes(&mut raw.params)[..params.len()].copy_from_slice(params);
        raw
    }
}

/// Wire length, segment count and segment size of a super-packet.
#[derive(Clone, Copy)]
pub(crate) struct Gso {
    pub(crate) wire_length: u32,
    pub(crate) segments: u32,
    pub(crate) segment_bytes: u32,
}

pub(crate) struct Router {
    skeleton: Box<RouterMaxnetSkel<'static>>,
}

impl Router {
    pub(crate) fn load() -> Self {
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = RouterMaxnetSkelBuilder::default().open(storage).unwrap();
        Self { skeleton: Box::new(open.load().unwrap()) }
    }

    /// Creates or changes the link of `request.ifindex`.
    pub(crate) fn set(&self, request: Request) -> Request {
        let links = &self.skeleton.maps.links;
        let key = request.ifindex.to_ne_bytes();
        if links.lookup(&key, MapFlags::ANY).unwrap().is_none() {
            links.update(&key, &vec![0; links.value_size() as usize], MapFlags::ANY).unwrap();
        }
        self.execute(request, Command::WATERFILL_SET, 0)
    }

    pub(crate) fn show(&self, ifindex: u32) -> Request {
        self.execute(Request { ifindex, ..Request::default() }, Command::WATERFILL_SHOW, 0)
    }

    /// Counts bytes on a link at time `now`, as if they arrived in a packet.
    pub(crate) fn arrive(&self, request: &Request, now: u64, arriving_bytes: u64) -> Request {
        self.execute(Request { now, ..*request }, Command::WATERFILL_ARRIVE, arriving_bytes)
    }

    fn execute(&self, request: Request, command: Command, arriving_bytes: u64) -> Request {
        let mut raw = RawRequest { arriving_bytes, ..request.raw(command) };
        while !self.ask(&mut raw) {}
        let [_, price_min, _, price_code] = raw.signals;
        let RawRequest { attachment, queue, packets, segments, bytes, counts, .. } = raw;
        let price_code = price_code as u32;
        Request { attachment, price_min, price_code, queue, packets, segments, bytes, counts, ..request }
    }

    /// Executes a request. Returns false if the request must be repeated.
    pub(crate) fn ask(&self, raw: &mut RawRequest) -> bool {
        let input = ProgramInput { context_in: Some(as_bytes(raw)), ..ProgramInput::default() };
        let result = CommandResult(self.skeleton.progs.waterfill_ask.test_run(input).unwrap().return_value);
        assert!([CommandResult::WATERFILL_OK, CommandResult::WATERFILL_BUSY].contains(&result));
        result == CommandResult::WATERFILL_OK
    }

    /// Sends a packet through the program. Returns the resulting packet and the mean time of a run.
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

/// Returns one of a link's counters.
pub(crate) fn count(link: &Request, which: Count) -> u64 {
    link.counts[which.0 as usize]
}

/// Returns a request for a link of 1 Tbit/s at its minimum price. No test loads this link. The price changes at most
/// once a second.
pub(crate) fn idle_link(ifindex: u32) -> Request {
    Request {
        ifindex,
        rate: 1_000_000_000_000,
        x_max: 1_000_000_000_000_000,
        x_min: 32,
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
pub(crate) fn as_bytes<T>(of: &mut T) -> &mut [u8] {
    // SAFETY: the callers' types have integers without padding (bpf/router.h), for which any bytes are valid.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(of).cast(), size_of::<T>()) }
}
