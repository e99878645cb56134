//! Helpers for the unit tests of several laws.

use crate::kernel::{Arithmetic, RunsInKernel, VALUE_MAX, Value};
use crate::protocol::{
    Connection, LinkView, PacketKind, Passing, PathView, Probe, Protocol, Received, Receiver as _, Router, Validation,
};
use crate::registry::{AnyEcho, AnyHeader, AnyParams, KernelValue, ProtocolId};
use crate::units::{Instant, Rate, Volume};

/// Asserts that `a` equals `b` within a tolerance relative to `b`.
#[track_caller]
pub(crate) fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} is not {b} within {relative}");
}

/// Signals recorded from a law.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals(pub(crate) Vec<(String, f64)>);

impl Probe for Signals {
    fn record(&mut self, signal: &str, value: f64) {
        self.0.push((signal.to_owned(), value));
    }
}

impl Signals {
    /// Returns the signals that a law's `observe` records.
    pub(crate) fn of(observe: impl FnOnce(&mut dyn Probe)) -> Self {
        let mut signals = Self::default();
        observe(&mut signals);
        signals
    }

    /// Returns the value of a signal, or `None` if the signal is not recorded.
    pub(crate) fn find(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(signal, _)| signal == name).map(|(_, value)| *value)
    }

    /// Returns the value of a recorded signal.
    #[track_caller]
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.find(name).expect("a recorded signal")
    }
}

/// Returns a link direction of `bps` bit/s with `queue_bytes` bytes in the queue.
pub(crate) const fn link(bps: f64, queue_bytes: f64) -> LinkView {
    LinkView { id: 0, capacity: Rate::from_bps(bps), target: None, queue: Volume::from_bytes(queue_bytes) }
}

/// Returns a connection of weight 1 with 1500-byte packets and a first window of ten packets.
pub(crate) const fn connection() -> Connection {
    let (packet, initial_window) = (Volume::from_bytes(1500.0), Volume::from_bytes(15_000.0));
    Connection {
        weight: 1.0,
        packet,
        initial_window,
        claimed_rtt: None,
        path: PathView::UNKNOWN,
        validation: Validation::Off,
        seed: 0,
    }
}

/// Passes a data packet of `bytes` bytes through a router on arrival. Returns the packet's header afterwards.
pub(crate) fn pass<P: Protocol>(
    router: &mut impl Router<P>,
    link: &LinkView,
    header: P::Header,
    bytes: f64,
) -> P::Header {
    let (mut header, volume) = (header, Volume::from_bytes(bytes));
    let (now, kind) = (Instant::ZERO, PacketKind::Data);
    router.on_arrival(link, &mut Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) });
    header
}

/// Returns the echo of `P`'s receiver after data packets with these headers.
pub(crate) fn echo_after<P: Protocol>(params: &P::Params, headers: &[P::Header]) -> P::Echo {
    let mut receiver = P::Receiver::new(params);
    for &header in headers {
        receiver.on_data(&Received { now: Instant::ZERO, kind: PacketKind::Data, header, rtt: None });
    }
    receiver.echo(Instant::ZERO)
}

/// Returns the parameters for real numbers and for kernel arithmetic.
pub(crate) fn real_and_fixed(of: impl Fn(Arithmetic) -> AnyParams) -> [AnyParams; 2] {
    [Arithmetic::Real, Arithmetic::Kernel].map(|arithmetic| {
        let params = of(arithmetic);
        params.validate().unwrap();
        params
    })
}

/// Returns a kernel value whose first 24 bits are `number`.
pub(crate) fn value_with(number: u32) -> Value {
    let mut value = [0; VALUE_MAX];
    value[..3].copy_from_slice(&number.to_be_bytes()[1..]);
    value
}

fn valued<P: RunsInKernel>(value: Value) -> KernelValue {
    KernelValue { protocol: ProtocolId::by_name(P::INFO.name).expect("a protocol"), value }
}

/// Returns a header in kernel arithmetic.
pub(crate) fn header_of<P: RunsInKernel>(value: Value) -> AnyHeader {
    AnyHeader::Kernel(valued::<P>(value))
}

/// Returns an echo in kernel arithmetic.
pub(crate) fn echo_of<P: RunsInKernel>(value: Value) -> AnyEcho {
    AnyEcho::Kernel(valued::<P>(value))
}

/// Returns the value of a kernel-arithmetic header.
#[track_caller]
pub(crate) fn value_of(header: &AnyHeader) -> Value {
    match header {
        AnyHeader::Kernel(header) => header.value,
        other => panic!("{other:?} is not in kernel arithmetic"),
    }
}

/// Returns the echoed value of a kernel-arithmetic receiver after data packets with these values.
pub(crate) fn answer_to<P: RunsInKernel>(params: &AnyParams, values: &[Value]) -> Value {
    let mut receiver = params.receiver();
    for &value in values {
        let (header, now) = (header_of::<P>(value), Instant::ZERO);
        receiver.on_data(&Received { now, kind: PacketKind::Data, header: &header, rtt: None });
    }
    match receiver.echo(Instant::ZERO) {
        AnyEcho::Kernel(echo) => echo.value,
        other => panic!("{other:?} is not in kernel arithmetic"),
    }
}

/// Returns a repeatable generator of numbers in [0, n).
pub(crate) fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |n| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    }
}

/// Returns a random number from `min` to `max`, uniform in its logarithm.
pub(crate) fn spread(random: &mut impl FnMut(u64) -> u64, min: f64, max: f64) -> u64 {
    (min * (max / min).powf(random(1 << 20) as f64 / f64::from(1 << 20))).round() as u64
}
