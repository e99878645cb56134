//! Tests of the protocol `own`: every call reaches the program that provides the law. Without a program, nothing is
//! controlled.

use std::sync::{Arc, Mutex};

use waterfill_laws::params::Params as _;
use waterfill_laws::protocol::{
    Ack, Connection, Event, LinkView, PacketKind, Passing, Received, Receiver as _, Router as _, SendLimit, Sending,
    Source as _, Wire,
};
use waterfill_laws::protocols::own::{
    Fields, Laws, Measured, OwnFields, Params, Provider, Receiver, ReceiverLaw, Router, RouterLaw, Source, SourceLaw,
};
use waterfill_laws::registry::{AnyHeader, AnyParams, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};

const PACKET: Volume = Volume::from_bytes(1500.0);
const LINK: LinkView = LinkView { id: 0, capacity: Rate::from_bps(1e7), target: None, queue: Volume::ZERO };
const CONNECTION: Connection = Connection {
    weight: 1.0,
    packet: PACKET,
    initial_window: PACKET,
    claimed_rtt: None,
    path: waterfill_laws::protocol::PathView::UNKNOWN,
    validation: waterfill_laws::protocol::Validation::Off,
    seed: 0,
};

/// Names of the calls that reached the program, in order.
type Calls = Arc<Mutex<Vec<&'static str>>>;

/// Program whose laws write their number of calls so far into the first field.
#[derive(Clone)]
struct Program {
    calls: Calls,
    target: f64,
    /// True if the program has laws for routers and receivers.
    all: bool,
    header: bool,
    measured: Arc<Mutex<Vec<Measured>>>,
    /// Window of the sources in packets; the number of calls if `None`.
    window: Option<f64>,
}

#[derive(Clone)]
struct End {
    calls: Calls,
    measured: Arc<Mutex<Vec<Measured>>>,
    count: f32,
    window: Option<f64>,
}

impl End {
    fn call(&mut self, name: &'static str) {
        self.count += 1.0;
        self.calls.lock().expect("no panic").push(name);
    }
}

impl Program {
    fn end(&self) -> End {
        End { calls: self.calls.clone(), measured: self.measured.clone(), count: 0.0, window: self.window }
    }
}

impl Provider for Program {
    fn target(&self) -> f64 {
        self.target
    }
    fn paced(&self) -> bool {
        false
    }
    fn has_header(&self) -> bool {
        self.header
    }
    fn router(&self, _link: &LinkView) -> Option<Box<dyn RouterLaw>> {
        self.all.then(|| Box::new(self.end()) as Box<dyn RouterLaw>)
    }
    fn receiver(&self) -> Option<Box<dyn ReceiverLaw>> {
        self.all.then(|| Box::new(self.end()) as Box<dyn ReceiverLaw>)
    }
    fn source(&self, _connection: &Connection) -> Box<dyn SourceLaw> {
        Box::new(self.end())
    }
}

impl RouterLaw for End {
    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Fields>) {
        self.call("on_arrival");
        if let Some(header) = &mut passing.header {
            header[1] = self.count;
        }
    }
    fn poll_at(&self) -> Instant {
        Instant::from_secs(f64::from(self.count))
    }
    fn on_timer(&mut self, _link: &LinkView, _now: Instant) {
        self.call("on_timer");
    }
    fn boxed(&self) -> Box<dyn RouterLaw> {
        Box::new(self.clone())
    }
}

impl ReceiverLaw for End {
    fn on_data(&mut self, _received: &Received<Fields>) {
        self.call("on_data");
    }
    fn echo(&mut self, _now: Instant) -> Fields {
        self.call("echo");
        [self.count, 0.0, 0.0, 0.0]
    }
    fn boxed(&self) -> Box<dyn ReceiverLaw> {
        Box::new(self.clone())
    }
}

impl SourceLaw for End {
    fn stamp(&mut self, _sending: &Sending) -> Fields {
        self.call("stamp");
        [self.count, 0.0, 0.0, 0.0]
    }
    fn on_ack(&mut self, _ack: &Ack<Fields>, measured: &Measured) {
        self.call("on_ack");
        self.measured.lock().expect("no panic").push(*measured);
    }
    fn on_event(&mut self, _now: Instant, _event: Event) {
        self.call("on_event");
    }
    fn on_idle_restart(&mut self, _now: Instant) {
        self.call("on_idle_restart");
    }
    fn limit(&self) -> SendLimit {
        SendLimit { window: Some(PACKET * self.window.unwrap_or(f64::from(self.count))), pacing: None }
    }
    fn boxed(&self) -> Box<dyn SourceLaw> {
        Box::new(self.clone())
    }
}

fn plain(calls: &Calls) -> Program {
    Program { calls: calls.clone(), target: 1.0, all: false, header: true, measured: Arc::default(), window: None }
}

fn program(target: f64, all: bool) -> (Params, Calls) {
    let calls = Calls::default();
    (Params::of(Arc::new(Program { target, all, ..plain(&calls) })), calls)
}

fn called(calls: &Calls) -> Vec<&'static str> {
    std::mem::take(&mut calls.lock().expect("no panic"))
}

fn received(header: OwnFields) -> Received<OwnFields> {
    Received { now: Instant::ZERO, kind: PacketKind::Data, header, rtt: None }
}

/// Sends a packet and its acknowledgement through router, receiver and source. Returns the header at the receiver and
/// the echo.
fn exchange(router: &mut Router, receiver: &mut Receiver, source: &mut Source) -> (OwnFields, OwnFields) {
    let now = Instant::ZERO;
    let mut header = source.stamp(&Sending::new(now, PacketKind::Data, PACKET));
    let mut passing = Passing { now, volume: PACKET, packets: 1.0, kind: PacketKind::Data, header: Some(&mut header) };
    router.on_arrival(&LINK, &mut passing);
    receiver.on_data(&received(header));
    let echo = receiver.echo(now);
    source.on_ack(&Ack::new(now, echo, Duration::from_millis(1)));
    source.on_event(now, Event::Loss);
    router.on_timer(&LINK, now);
    (header, echo)
}

#[test]
fn every_call_reaches_the_program() {
    let (params, calls) = program(0.9, true);
    let (mut router, mut receiver, mut source) =
        (Router::new(&params, &LINK), Receiver::new(&params), Source::new(&params, &CONNECTION));
    let (header, echo) = exchange(&mut router, &mut receiver, &mut source);
    assert_eq!(called(&calls), ["stamp", "on_arrival", "on_data", "echo", "on_ack", "on_event", "on_timer"]);
    assert_eq!((header.fields, echo.fields), ([1.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]));
    assert_eq!(source.limit().window, Some(PACKET * 3.0));
    assert_eq!(router.poll_at(), Instant::from_secs(2.0));
    let any = AnyParams::Own(params);
    assert_eq!((any.target(), any.paced()), (0.9, false));
}

/// A copy of a law continues from the same state and does not affect the original.
#[test]
fn a_copy_has_the_state_of_its_own() {
    let (params, calls) = program(1.0, true);
    let (mut router, mut receiver, mut source) =
        (Router::new(&params, &LINK), Receiver::new(&params), Source::new(&params, &CONNECTION));
    exchange(&mut router, &mut receiver, &mut source);
    let (mut other_router, mut other_receiver, mut other_source) = (router.clone(), receiver.clone(), source.clone());
    called(&calls);
    exchange(&mut other_router, &mut other_receiver, &mut other_source);
    assert_eq!(called(&calls).len(), 7);
    assert_eq!((source.limit().window, other_source.limit().window), (Some(PACKET * 3.0), Some(PACKET * 6.0)));
    assert_eq!((router.poll_at(), other_router.poll_at()), (Instant::from_secs(2.0), Instant::from_secs(4.0)));
    assert_eq!((receiver.echo(Instant::ZERO).fields[0], other_receiver.echo(Instant::ZERO).fields[0]), (3.0, 5.0));
}

/// If the program has only a source law, routers do nothing and the receiver copies the last header.
#[test]
fn a_program_may_have_a_source_only() {
    let (params, calls) = program(1.0, false);
    let (mut router, mut receiver, mut source) =
        (Router::new(&params, &LINK), Receiver::new(&params), Source::new(&params, &CONNECTION));
    let (header, echo) = exchange(&mut router, &mut receiver, &mut source);
    assert_eq!(called(&calls), ["stamp", "on_ack", "on_event"]);
    assert_eq!((header.fields, echo), ([1.0, 0.0, 0.0, 0.0], header));
    assert_eq!(router.poll_at(), Instant::NEVER);
}

#[test]
fn without_a_program_the_window_stays() {
    let AnyParams::Own(params) = ProtocolId::Own { law: 0 }.params() else {
        panic!("the parameters of another protocol")
    };
    let mut source = Source::new(&params, &CONNECTION);
    let (header, echo) = exchange(&mut Router::new(&params, &LINK), &mut Receiver::new(&params), &mut source);
    assert_eq!((header.fields, echo.fields), ([0.0; 4], [0.0; 4]));
    assert_eq!(source.limit(), SendLimit { window: Some(PACKET), pacing: None });
    params.validate().expect("valid");
}

#[test]
fn a_target_outside_of_its_range_is_refused() {
    for target in [0.0, 1.1, -1.0, f64::NAN] {
        let error = program(target, true).0.validate().expect_err("no target");
        assert_eq!(error.to_string(), "target: must be above 0 and at most 1");
    }
}

/// Two runs have the same parameters if the same program runs in both.
#[test]
fn parameters_are_equal_if_the_program_is_the_same() {
    let (params, _) = program(1.0, true);
    assert_eq!(params, params.clone());
    assert_ne!(params, program(1.0, true).0);
    assert_ne!(params, Params::default());
    assert_eq!(Params::default(), Params::default());
}

#[test]
fn what_is_printed_says_whether_there_is_a_program() {
    let (params, _) = program(1.0, true);
    assert_eq!(format!("{params:?}"), "Params { provided: true, law: 0 }");
    assert_eq!(format!("{:?}", Router::new(&params, &LINK)), "Router { provided: true }");
    assert_eq!(format!("{:?}", Receiver::new(&Params::default())), "Receiver { provided: false }");
    assert_eq!(format!("{:?}", Source::new(&params, &CONNECTION)), "Source { provided: true }");
}

#[test]
fn a_header_is_four_numbers_of_single_precision() {
    let (params, _) = program(1.0, false);
    let mut fields = Source::new(&params, &CONNECTION).stamp(&Sending::new(Instant::ZERO, PacketKind::Data, PACKET));
    fields.fields = [1.5, -2.0, 0.0, 1e30];
    let mut wire = [0; OwnFields::BYTES];
    fields.encode(&mut wire);
    assert_eq!((OwnFields::decode(&wire), &wire[..4]), (Some(fields), &[0x3f, 0xc0, 0, 0][..]));
    assert_eq!(OwnFields::decode(&wire[..15]), None);
    wire[..4].copy_from_slice(&f32::NAN.to_be_bytes());
    assert_eq!(OwnFields::decode(&wire), None);
    assert!(ProtocolId::Own { law: 0 }.info().needs_packets);
}

/// A table with two laws of the same program.
fn two() -> (Laws, Calls) {
    let (mut laws, calls) = (Laws::default(), Calls::default());
    for name in ["old", "new"] {
        laws.add(name.into(), Arc::new(Program { all: true, ..plain(&calls) })).expect("room for two");
    }
    (laws, calls)
}

/// A router counts the packets of another law, but neither reads nor writes their headers.
#[test]
fn routers_of_two_laws_leave_the_headers_of_each_other_alone() {
    let (laws, calls) = two();
    assert_eq!((laws.find("new"), laws.find("none"), laws.name(0)), (Some(1), None, Some("old")));
    let (old, new) = (AnyParams::Own(laws.params(0)), AnyParams::Own(laws.params(1)));
    assert_eq!((old.protocol(), new.protocol()), (ProtocolId::Own { law: 0 }, ProtocolId::Own { law: 1 }));
    assert_ne!(laws.params(0), laws.params(1));
    let mut header = new.source(&CONNECTION).stamp(&Sending::new(Instant::ZERO, PacketKind::Data, PACKET));
    assert_eq!(header.protocol(), Some(ProtocolId::Own { law: 1 }));
    assert_eq!(header.decode_alike(&header.encode()), Some(header));
    for (params, written) in [(&old, 0.0), (&new, 1.0)] {
        let mut router = params.router(&LINK);
        let (now, kind) = (Instant::ZERO, PacketKind::Data);
        called(&calls);
        router.on_arrival(&LINK, &mut Passing { now, volume: PACKET, packets: 1.0, kind, header: Some(&mut header) });
        assert_eq!(called(&calls), ["on_arrival"]);
        let AnyHeader::Own(own) = header else { panic!("another protocol's header") };
        assert_eq!(own.fields[1], written);
    }
}

/// A law without fields and without a router takes no bytes in packets and acknowledgements.
#[test]
fn a_law_without_a_header_takes_no_bytes() {
    let (calls, sending) = (Calls::default(), Sending::new(Instant::ZERO, PacketKind::Data, PACKET));
    for (header, bytes) in [(true, 16), (false, 0)] {
        let params = AnyParams::Own(Params::of(Arc::new(Program { header, ..plain(&calls) })));
        assert_eq!((params.header_bytes(), params.echo_bytes()), (bytes, bytes));
        let stamped = params.source(&CONNECTION).stamp(&sending);
        assert_eq!((stamped.wire_bytes(), stamped.encode().len()), (bytes, bytes));
        assert_eq!(stamped.decode_alike(&stamped.encode()), Some(stamped));
    }
}

#[test]
fn a_table_holds_255_laws() {
    let (mut laws, calls) = (Laws::default(), Calls::default());
    for i in 0..255 {
        laws.add(format!("law{i}"), Arc::new(plain(&calls))).expect("room");
    }
    let error = laws.add("one more".into(), Arc::new(plain(&calls))).expect_err("it is full");
    assert_eq!(error.to_string(), "laws: must be at most 255");
    assert_eq!(laws.find("law254"), Some(254));
}

fn ms(t: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(t)
}

/// Sends packets at these times and returns the measurements of acknowledgements, each with its time, the time at
/// which its packet left, and the packets that are then in flight.
fn measured(window: f64, sends: &[(u64, f64, bool)], acks: &[(u64, u64, f64, f64)]) -> (Vec<Measured>, Calls) {
    let calls = Calls::default();
    let program = Program { window: Some(window), ..plain(&calls) };
    let found = program.measured.clone();
    let mut source = Source::new(&Params::of(Arc::new(program)), &CONNECTION);
    let mut header = OwnFields::default();
    for &(at, in_flight, app_limited) in sends {
        let sending =
            Sending { in_flight: in_flight * PACKET, app_limited, ..Sending::new(ms(at), PacketKind::Data, PACKET) };
        header = source.stamp(&sending);
    }
    for &(at, sent, acked, in_flight) in acks {
        let rtt = Duration::from_millis(at - sent);
        let ack = Ack::new(ms(at), header, rtt);
        let (acked, in_flight) = (acked * PACKET, in_flight * PACKET);
        source.on_ack(&Ack { acked, in_flight, base_rtt: Duration::from_millis(100), ..ack });
    }
    let found = std::mem::take(&mut *found.lock().expect("no panic"));
    (found, calls)
}

/// Four packets leave 10 ms apart and arrive as they left: 1 packet in 100 ms, 2 in 110 ms and so on.
#[test]
fn a_program_gets_delivery_rates_and_the_state_at_departure() {
    let sends = [(1000, 0.0, false), (1010, 1.0, false), (1020, 2.0, false), (1030, 3.0, false)];
    let acks = [(1100, 1000, 1.0, 3.0), (1110, 1010, 1.0, 2.0), (1120, 1020, 1.0, 1.0), (1130, 1030, 1.0, 0.0)];
    let (found, _) = measured(10.0, &sends, &acks);
    for (i, one) in found.iter().enumerate() {
        let (count, number) = (1.0 + i as f64, i as u64);
        let rate = count * 12_000.0 / (0.1 + 0.01 * i as f64);
        assert!((one.rate.expect("a sample").as_bps() - rate).abs() < 1e-6, "{one:?}");
        assert_eq!((one.delivered, one.lost, one.app_limited), (count * PACKET, Volume::ZERO, false));
        let sent = one.sent.expect("the host has it");
        assert_eq!((sent.at, sent.in_flight), (ms(1000 + 10 * number), (count - 1.0) * PACKET));
        assert_eq!((sent.delivered, one.round), (Volume::ZERO, 1));
    }
}

#[test]
fn a_program_gets_losses_once() {
    let sends = [(1000, 0.0, false), (1010, 1.0, false), (1020, 2.0, false), (1030, 3.0, false)];
    // The second acknowledgement shows that two of the packets in flight are lost.
    let (found, _) = measured(10.0, &sends, &[(1100, 1000, 1.0, 3.0), (1130, 1030, 1.0, 0.0), (1140, 1030, 0.0, 0.0)]);
    let lost: Vec<Volume> = found.iter().map(|one| one.lost).collect();
    assert_eq!(lost, [Volume::ZERO, 2.0 * PACKET, Volume::ZERO]);
    assert_eq!((found[2].rate, found[2].sent.map(|sent| sent.at)), (None, Some(ms(1030))));
}

/// A packet after a pause of the application is announced, and its sample says that the application limited it.
#[test]
fn a_program_gets_pauses_of_the_application() {
    let sends = [(1000, 0.0, true), (2000, 0.0, true)];
    let (found, calls) = measured(10.0, &sends, &[(2100, 2000, 1.0, 0.0)]);
    assert_eq!(called(&calls), ["stamp", "on_idle_restart", "stamp", "on_ack"]);
    assert!(found[0].app_limited && found[0].sent.expect("the host has it").app_limited);
    // The window limited the sender of this one.
    let (found, calls) = measured(1.0, &sends, &[(2100, 2000, 1.0, 0.0)]);
    assert_eq!(called(&calls), ["stamp", "stamp", "on_ack"]);
    assert!(!found[0].app_limited);
}

#[test]
fn the_host_forgets_departures_of_an_rtt_before() {
    let sends = [(1000, 0.0, false), (1300, 1.0, false)];
    let (found, _) = measured(10.0, &sends, &[(1400, 1300, 1.0, 1.0), (1500, 1000, 1.0, 0.0)]);
    assert_eq!(found[0].sent.map(|sent| sent.at), Some(ms(1300)));
    assert_eq!((found[1].sent, found[1].rate), (None, None));
}
