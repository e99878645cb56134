//! Decoders in the running kernel: the program `bpf/test/decode.bpf.c`, built for one law.

use std::mem::offset_of;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput, ProgramMut};
use waterfill_laws::kernel::{KernelLaw, Words};

use super::interface::types::{waterfill_command as Command, waterfill_request as Request, waterfill_result as Answer};
use super::scone::types::__sk_buff as Context;

/// Index of the loopback device, which BPF_PROG_TEST_RUN uses by default.
const LOOPBACK: u32 = 1;
/// Time in ns that is never reached. A link keeps its signal because no interval ends.
const LATE_NS: u64 = 1 << 62;
/// Length of the link header in bytes, which does not count as a link's load.
const ETHERNET: u32 = 14;

/// Kernel programs of a law, with a link.
pub(crate) struct Kernel {
    object: Object,
    slots: MapHandle,
}

/// Segment count and segment size of a super-packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gso {
    pub(crate) segments: u32,
    pub(crate) segment_bytes: u32,
}

#[expect(unsafe_code, reason = "a program's context is bytes")]
fn as_bytes<T>(of: &mut T) -> &mut [u8] {
    // SAFETY: the callers' types have integers without padding (bpf/router.h), for which any bytes are valid.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(of).cast(), size_of::<T>()) }
}

/// Returns the name and object path of each law, which the build script lists.
pub(crate) fn objects() -> Vec<(&'static str, &'static str)> {
    env!("DECODE_OBJECTS").split(';').map(|object| object.split_once('=').expect("law=path")).collect()
}

impl Kernel {
    /// Loads the object of a law.
    pub(crate) fn load(path: &str) -> Self {
        let object = ObjectBuilder::default().open_file(path).unwrap().load().unwrap();
        let slots = MapHandle::try_from(&object.maps().find(|map| map.name() == "slots").unwrap()).unwrap();
        Self { object, slots }
    }

    /// Returns the object, for replaying records.
    pub(crate) fn object(&self) -> &Object {
        &self.object
    }

    fn program(&self, name: &str) -> ProgramMut<'_> {
        self.object.progs_mut().find(|program| program.name() == name).expect("a program of decode.bpf.c")
    }

    /// Creates a new link with these parameters, a capacity in bit/s and a signal, on the device of test runs.
    pub(crate) fn set_link(&self, params: &Words, capacity: u64, signal: u64) {
        let links = self.object.maps().find(|map| map.name() == "links").unwrap();
        let key = LOOPBACK.to_ne_bytes();
        let _ = links.delete(&key); // there is none at first
        let empty = vec![0; links.value_size() as usize];
        links.update(&key, &empty, MapFlags::ANY).unwrap();
        let mut request = Request {
            command: Command::WATERFILL_SET,
            ifindex: LOOPBACK,
            now: LATE_NS,
            rate: capacity,
            overhead_bytes: 0,
            header_bytes: ETHERNET,
            ..Request::default()
        };
        request.attachment.price = signal;
        request.params[..params.words().len()].copy_from_slice(params.words());
        assert_eq!(self.ask(&mut request), Answer::WATERFILL_OK);
    }

    /// Returns the number of segments for each reason, and the number of all packets.
    pub(crate) fn counts(&self) -> (Vec<u64>, u64) {
        let mut request = Request { command: Command::WATERFILL_SHOW, ifindex: LOOPBACK, now: 1, ..Request::default() };
        assert_eq!(self.ask(&mut request), Answer::WATERFILL_OK);
        (request.counts.to_vec(), request.packets)
    }

    fn ask(&self, request: &mut Request) -> Answer {
        let input = ProgramInput { context_in: Some(as_bytes(request)), ..ProgramInput::default() };
        Answer(self.program("waterfill_ask").test_run(input).unwrap().return_value)
    }

    /// Returns the state that the law keeps for the link.
    pub(crate) fn link(&self, law: &KernelLaw) -> Vec<u64> {
        let value = self.slots.lookup(&LOOPBACK.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        let words = value.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        words.take(law.link().words().len()).collect()
    }

    /// Returns the verdict on a frame (`bpf/test/decode.h`). Returns `None` for a frame shorter than its IP header,
    /// which test runs refuse.
    pub(crate) fn frame(&self, frame: &[u8]) -> Option<u32> {
        let input = ProgramInput { data_in: Some(frame), ..ProgramInput::default() };
        match self.program("waterfill_decode").test_run(input) {
            Ok(answer) => Some(answer.return_value),
            Err(why) if frame.len() < 14 + 40 => {
                assert_eq!(why.kind(), libbpf_rs::ErrorKind::InvalidInput, "{why}: {frame:02x?}");
                None
            }
            Err(why) => panic!("{why}: {frame:02x?}"),
        }
    }

    /// Sends a frame through the router's program, and stores the resulting frame in `out`.
    pub(crate) fn route(&self, frame: &[u8], gso: Option<Gso>, out: &mut Vec<u8>) {
        let mut context = [0_u8; size_of::<Context>()];
        let mut put = |at: usize, value: u32| context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(offset_of!(Context, ifindex), LOOPBACK);
        if let Some(gso) = gso {
            put(offset_of!(Context, gso_segs), gso.segments);
            put(offset_of!(Context, gso_size), gso.segment_bytes);
        }
        out.resize(frame.len() + 256, 0);
        let input = ProgramInput {
            context_in: Some(&mut context),
            data_in: Some(frame),
            data_out: Some(out),
            ..ProgramInput::default()
        };
        let answer = self.program("waterfill_router").test_run(input).unwrap();
        assert_eq!(answer.return_value as i32, -1, "every packet continues");
        let length = answer.data.map_or(0, |data| data.len());
        out.truncate(length);
    }
}
