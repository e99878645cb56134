//! Tests that every protocol of the registry must pass. New protocols are tested automatically.

use proptest::prelude::*;
use waterfill_laws::kernel::Arithmetic;
use waterfill_laws::params::{Unit, Value};
use waterfill_laws::protocol::{
    Ack, Connection, Event, LinkView, PacketKind, Passing, PathView, Probe, Received, SendLimit, Sending,
};
use waterfill_laws::registry::{AnyHeader, AnyParams, ProtocolId};
use waterfill_laws::telemetry::Stack;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};

/// Call of a fuzzed sequence, with the numbers from which its arguments are made.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// A data packet or SYN that passes from the source through the router to the receiver.
    Data { syn: bool, bytes: u32, queue: u32 },
    /// A packet of another protocol that arrives at the router.
    Other { bytes: u32, queue: u32 },
    /// An acknowledgement that arrives at the source.
    Ack { syn: bool, rtt_us: u32, acked: u32, marked: bool, recovering: bool, limited: bool },
    /// A loss, a timeout, a mark or the end of a recovery.
    Event(u8),
    /// A pause, during which timers run.
    Wait { us: u32 },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        4 => (prop::bool::weighted(0.1), 1u32..9_000, 0u32..10_000_000).prop_map(|(syn, bytes, queue)| Call::Data { syn, bytes, queue }),
        2 => (1u32..9_000, 0u32..10_000_000).prop_map(|(bytes, queue)| Call::Other { bytes, queue }),
        4 => (prop::bool::weighted(0.1), prop_oneof![1u32..1000, 1u32..4_000_000], 0u32..100_000, any::<[bool; 3]>())
            .prop_map(|(syn, rtt_us, acked, [marked, recovering, limited])|
                Call::Ack { syn, rtt_us, acked, marked, recovering, limited }),
        1 => (0u8..5).prop_map(Call::Event),
        3 => prop_oneof![0u32..1_000, 0u32..3_000_000].prop_map(|us| Call::Wait { us }),
    ];
    prop::collection::vec(call, 1..200)
}

/// Probe that asserts that every signal is finite.
struct Finite;

impl Probe for Finite {
    fn record(&mut self, signal: &str, value: f64) {
        assert!(value.is_finite(), "{signal} is {value}");
    }
}

/// Asserts that a source's limits are finite and not negative.
///
/// With a kernel's host, acknowledgements may clock the source, which is then not paced.
fn check_limit(params: &AnyParams, limit: SendLimit) {
    let id = params.protocol();
    let unpaced = |r: Rate| r == Rate::UNLIMITED && params.arithmetic() == Arithmetic::KernelHost;
    assert!(limit.window.is_none_or(|w| w.as_bytes().is_finite() && w.as_bytes() >= 0.0), "{id:?}: {limit:?}");
    let finite = |r: Rate| r.as_bps().is_finite() && r.as_bps() >= 0.0;
    assert!(limit.pacing.is_none_or(|r| finite(r) || unpaced(r)), "{id:?}: {limit:?}");
}

/// Returns the default parameters and, for a law with a kernel form, the parameters for each of its arithmetics.
fn variants(id: ProtocolId) -> Vec<AnyParams> {
    let in_kernel = ["kernel", "kernel-host"].into_iter().filter_map(|word| {
        let mut params = id.params();
        params.set("arithmetic", &Value::Word(word.into())).ok()?;
        params.validate().expect("the defaults fit the fixed-point version");
        Some(params)
    });
    std::iter::once(id.params()).chain(in_kernel).collect()
}

/// Returns a connection of full packets over a path of which nothing is known.
fn connection() -> Connection {
    let packet = Volume::from_bytes(1500.0);
    Connection {
        weight: 1.0,
        packet,
        initial_window: 10.0 * packet,
        claimed_rtt: None,
        path: PathView::UNKNOWN,
        validation: waterfill_laws::protocol::Validation::Off,
        seed: 0,
    }
}

/// Runs a sequence of calls through one protocol and returns all of the output.
fn play(id: ProtocolId, params: &AnyParams, calls: &[Call], capacity: Rate, weight: f64) -> Vec<String> {
    let mut link = LinkView { id: 0, capacity, target: None, queue: Volume::ZERO };
    let packet = Volume::from_bytes(1500.0);
    let mut router = params.router(&link);
    let mut receiver = params.receiver();
    let mut source =
        params.source(&Connection { weight, path: PathView { host_rate: capacity, hops: 2 }, ..connection() });
    let mut now = Instant::ZERO;
    let mut base_rtt = Duration::MAX;
    let mut seen = Vec::new();
    let mut stack = Stack::default();
    for &call in calls {
        match call {
            Call::Wait { us } => {
                let until = now + Duration::from_micros(u64::from(us));
                while router.poll_at() <= until {
                    let due = router.poll_at();
                    router.on_timer(&link, due);
                    assert!(router.poll_at() > due, "a timer that does not advance");
                }
                now = until;
                source.advance(now);
            }
            Call::Data { syn, bytes, queue } => {
                let kind = if syn { PacketKind::Syn } else { PacketKind::Data };
                let volume = Volume::from_bytes(f64::from(bytes));
                link.queue = Volume::from_bytes(f64::from(queue));
                let mut header = source.stamp(&Sending { now, kind, volume, in_flight: packet, app_limited: false });
                let mut arrived = header;
                for departs in [false, true] {
                    let mut passing = Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) };
                    if departs {
                        router.on_departure(&link, &mut passing);
                        let silent = router.sees_departures() || header == arrived;
                        assert!(silent, "{id:?} writes at departure, so its router's DEPARTURES must be true");
                    } else {
                        router.on_arrival(&link, &mut passing);
                        arrived = header;
                    }
                }
                // What is simulated is what would be sent.
                assert!(id.info().host.notes || header.encode().len() == params.header_bytes());
                assert_eq!(header.decode_alike(&header.encode()), Some(header));
                seen.push(format!("{header:?}"));
                let rtt = (base_rtt < Duration::MAX).then_some(base_rtt);
                if let Some(hop) = header.take_hop(&link) {
                    stack.push(hop);
                }
                if queue % 2 == 1 {
                    receiver.on_mark(now);
                }
                receiver.on_data(&Received { now, kind, header: &header, rtt });
            }
            Call::Other { bytes, queue } => {
                link.queue = Volume::from_bytes(f64::from(queue));
                let mut header = AnyHeader::None;
                let mut passing = Passing {
                    now,
                    volume: Volume::from_bytes(f64::from(bytes)),
                    packets: 1.0,
                    kind: PacketKind::Other,
                    header: Some(&mut header),
                };
                router.on_arrival(&link, &mut passing);
                assert_eq!(header, AnyHeader::None, "a header of another protocol was changed");
            }
            Call::Ack { syn, rtt_us, acked, marked, recovering, limited } => {
                let rtt = Duration::from_micros(u64::from(rtt_us));
                base_rtt = base_rtt.min(rtt);
                let echo = receiver.echo(now);
                assert!(id.info().host.notes || echo.encode().len() == params.echo_bytes());
                assert_eq!(echo.decode_alike(&echo.encode()), Some(echo));
                seen.push(format!("{echo:?}"));
                source.on_stack(&std::mem::take(&mut stack));
                source.on_ack(&Ack {
                    now,
                    echo: &echo,
                    kind: if syn { PacketKind::Syn } else { PacketKind::Ack },
                    acked: Volume::from_bytes(f64::from(acked)),
                    marked: Volume::from_bytes(if marked { f64::from(acked) } else { 0.0 }),
                    rtt: Some(rtt),
                    smoothed_rtt: rtt,
                    base_rtt,
                    in_flight: packet,
                    recovering,
                    window_limited: limited,
                });
            }
            Call::Event(which) => {
                source.on_event(now, Event::ALL[usize::from(which)]);
            }
        }
        let limit = source.limit();
        check_limit(params, limit);
        source.observe(&mut Finite);
        router.observe(&mut Finite);
        seen.push(format!("{limit:?}"));
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// No sequence of calls panics or gives an invalid window, rate or signal. The same sequence always gives the same
    /// output.
    #[test]
    fn any_sequence_of_calls_is_valid_and_repeatable(calls in calls(), decade in 2.0..15.0f64, weight in 0.01..100.0f64) {
        let capacity = Rate::from_bps(10f64.powf(decade));
        for &id in ProtocolId::ALL {
            for params in variants(id) {
                let once = play(id, &params, &calls, capacity, weight);
                prop_assert_eq!(once, play(id, &params, &calls, capacity, weight));
            }
        }
    }

    /// Bytes that decode to a header or echo give the same value again after encoding. Too few bytes are refused.
    #[test]
    fn wire_formats_refuse_invalid_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..64), option in prop::bool::ANY) {
        if let (true, [kind, length, ..]) = (option, &mut bytes[..]) {
            (*kind, *length) = (42, 8); // MaxNet's option, so that random bytes pass its first check
        }
        for &id in ProtocolId::ALL {
            if let Some(header) = id.decode_header(&bytes) {
                prop_assert_eq!(id.decode_header(&header.encode()), Some(header));
            }
            if let Some(echo) = id.decode_echo(&bytes) {
                prop_assert_eq!(id.decode_echo(&echo.encode()), Some(echo));
            }
            prop_assert!(bytes.len() >= id.header_bytes() || id.decode_header(&bytes).is_none());
            prop_assert!(bytes.len() >= id.echo_bytes() || id.decode_echo(&bytes).is_none());
        }
    }
}

/// The parameter `arithmetic` selects the kernel form of every law behind `kernel/law.h`.
#[test]
fn laws_of_the_kernel_are_selected_by_arithmetic() {
    for (name, _) in waterfill_laws::registry::kernel_protocols() {
        assert_eq!(variants(ProtocolId::by_name(name).expect("a protocol")).len(), 3, "{name}");
    }
}

/// Returns byte strings of 32-bit words that are NaN, infinite or negative as single-precision numbers.
///
/// The last ones start with the first bytes of a valid header `start`, for formats with a kind or version in front.
fn invalid_numbers(start: &[u8]) -> Vec<Vec<u8>> {
    let words = [0x7f80_0001_u32, 0x7fc0_0000, 0xff80_0000, 0xbf80_0000, 0xffff_ffff];
    let repeated = words.map(|word| word.to_be_bytes().repeat(16));
    let ends = repeated.iter().flat_map(|bytes| (1..start.len()).map(|i| [&start[..i], &bytes[..]].concat()));
    ends.chain(repeated.iter().cloned()).collect()
}

/// Headers and echoes that decode from invalid numbers contain no NaN, and no invalid echo breaks a source.
#[test]
fn wire_formats_refuse_invalid_numbers() {
    let packet = Volume::from_bytes(1500.0);
    let (link, rtt) = (LinkView { id: 0, capacity: Rate::from_bps(1e8), target: None, queue: Volume::ZERO }, 0.01);
    let all = ProtocolId::ALL.iter().flat_map(|&id| variants(id).into_iter().map(move |params| (id, params)));
    for (id, params) in all {
        let connection = connection();
        let sending = Sending::new(Instant::ZERO, PacketKind::Data, packet);
        let mut header = params.source(&connection).stamp(&sending);
        let mut passing = Passing {
            now: Instant::ZERO,
            volume: packet,
            packets: 1.0,
            kind: PacketKind::Data,
            header: Some(&mut header),
        };
        params.router(&link).on_arrival(&link, &mut passing);
        for bytes in invalid_numbers(&header.encode()) {
            let Some(decoded) = header.decode_alike(&bytes) else { continue };
            assert!(is_equal_to_itself(&decoded), "{}", not_a_number(id, &bytes, &decoded));
        }
        let mut receiver = params.receiver();
        receiver.on_data(&Received { now: Instant::ZERO, kind: PacketKind::Data, header: &header, rtt: None });
        let echo = receiver.echo(Instant::ZERO);
        for bytes in invalid_numbers(&echo.encode()) {
            let Some(decoded) = echo.decode_alike(&bytes) else { continue };
            assert!(is_equal_to_itself(&decoded), "{}", not_a_number(id, &bytes, &decoded));
            let mut source = params.source(&connection);
            for i in 1..10 {
                let now = Instant::from_secs(rtt * f64::from(i));
                source.stamp(&Sending { now, ..sending });
                let ack = Ack::new(now, &decoded, Duration::from_secs(rtt));
                source.on_ack(&Ack { acked: packet, in_flight: packet, ..ack });
                check_limit(&params, source.limit());
                source.observe(&mut Finite);
            }
        }
    }
}

/// Returns true if a decoded header or echo equals itself, which is false if it contains NaN.
#[expect(clippy::eq_op, reason = "this is the property that is tested")]
fn is_equal_to_itself<T: PartialEq>(decoded: &T) -> bool {
    decoded == decoded
}

fn not_a_number(id: ProtocolId, bytes: &[u8], decoded: &impl std::fmt::Debug) -> String {
    format!("{id:?} decodes {bytes:02x?} to {decoded:?}, which is not equal to itself: decode must return None for NaN")
}

#[test]
fn names_are_unique_and_found() {
    for (i, &id) in ProtocolId::ALL.iter().enumerate() {
        assert_eq!(ProtocolId::by_name(id.info().name), Some(id));
        assert!(ProtocolId::ALL[..i].iter().all(|other| other.info().name != id.info().name));
    }
    assert_eq!(ProtocolId::by_name("no such protocol"), None);
}

#[test]
fn parameters_describe_themselves() {
    for &id in ProtocolId::ALL {
        let mut params = id.params();
        params.validate().expect("defaults are valid");
        let values = params.values();
        for (info, (name, value)) in id.params_list().iter().zip(values) {
            assert_eq!((info.name, &info.default), (name, &value));
            assert!(!info.doc.is_empty() && !info.source.is_empty(), "{name} of {id:?} has a description and a source");
            params.set(name, &value).expect("the default");
            let wrong = match info.unit {
                Unit::Flag | Unit::Choice(_) => Value::Number(1.0), // a choice may have been a flag once
                _ => Value::Flag(true),
            };
            params.set(name, &wrong).expect_err("a value of the wrong type");
            params.set(name, &Value::Number(f64::NAN)).expect_err("not a number");
        }
        assert_eq!(params, id.params());
        params.set("no_such_parameter", &Value::Number(1.0)).expect_err("unknown");
        assert!((0.0..=1.0).contains(&params.target()) && params.target() > 0.0);
    }
}

/// Parameter values that would make a window, a rate or a signal infinite are refused.
#[test]
fn parameters_that_overflow_are_refused() {
    for (protocol, name, value, expected) in [
        ("window", "packets", 1e308, "packets: must be a number from 1 to 1e9"),
        ("jetmax", "x_min", 1e308, "x_min: must be a rate from 1 bit/s to 1e18 bit/s"),
        ("maxnet", "x_max", 1e308, "x_max: must be a rate above zero, up to 1e18 bit/s"),
        ("maxnet", "eta", 1e308, "eta: must be a number above zero, up to 1e6"),
        ("maxnet2006", "x_max", 1e308, "x_max: must be a rate above zero, up to 1e18 bit/s"),
        ("maxnet2006", "eta", 1e308, "eta: must be a number above zero, up to 1e6"),
        ("vcp", "kappa_q", 1e308, "kappa_q: must be a number from 0 to 1e6"),
        ("vcp", "gamma", 1e-308, "gamma: must be a number from 1e-6 to 1"),
        ("vcp", "alpha", 1e308, "alpha: must be a number above 0, up to 1e6"),
    ] {
        let mut params = ProtocolId::by_name(protocol).expect("a protocol").params();
        params.set(name, &Value::Number(value)).expect("a number");
        assert_eq!(params.validate().map_err(|e| e.0), Err(format!("{expected}, got {value:e}")), "{protocol}");
    }
}

#[test]
fn an_echo_of_another_protocol_is_ignored() {
    let packet = Volume::from_bytes(1500.0);
    for &id in ProtocolId::ALL {
        let mut source = id.params().source(&connection());
        let before = source.limit();
        let other = if id == ProtocolId::MaxNet { ProtocolId::Rcp } else { ProtocolId::MaxNet };
        let echo = other.params().receiver().echo(Instant::ZERO);
        assert_eq!(echo.protocol(), Some(other));
        let ack = Ack::new(Instant::from_secs(1.0), &echo, Duration::from_millis(10));
        source.on_ack(&Ack { acked: packet, rtt: None, in_flight: packet, ..ack });
        assert_eq!(source.limit(), before);
    }
}

/// A protocol with a source file but without a line in the registry is detected.
#[test]
fn every_protocol_in_the_source_is_registered() {
    fn names_below(folder: &std::path::Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder of this crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                names_below(&path, names);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            for (before, after) in [("const INFO: Info = Info {", "name: \""), ("const NAME: &'static str =", "\"")] {
                let quoted = text.split(before).skip(1).filter_map(|rest| rest.trim_start().strip_prefix(after));
                names.extend(quoted.filter_map(|rest| Some(rest.split_once('"')?.0.to_string())));
            }
        }
    }
    let mut names = Vec::new();
    names_below(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocols"), &mut names);
    for name in &names {
        assert!(ProtocolId::by_name(name).is_some(), "{name} has no line at the end of src/registry.rs");
    }
    assert_eq!(names.len(), ProtocolId::ALL.len(), "{names:?}");
}

/// After lost SYNs, no law's window allows more than one packet (RFC 5681 §3.1), in any arithmetic. A test window keeps
/// its size.
#[test]
fn lost_syns_leave_a_window_of_one_packet() {
    let packet = Volume::from_bytes(1500.0);
    let connection = connection();
    for params in ProtocolId::ALL.iter().filter(|id| id.info().name != "window").flat_map(|&id| variants(id)) {
        let mut source = params.source(&connection);
        source.stamp(&Sending::new(Instant::ZERO, PacketKind::Syn, packet));
        source.on_event(Instant::ZERO, Event::SynsLost);
        let window = source.limit().window.unwrap_or(Volume::ZERO);
        assert!(window <= packet, "{:?} {:?}: {window:?}", params.protocol(), params.arithmetic());
    }
}
