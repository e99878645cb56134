//! Tests of the protocol `own`: every call reaches the program that provides the law. Without a program, nothing is
//! controlled.

use std::sync::{Arc, Mutex};

use waterfill_laws::params::Params as _;
use waterfill_laws::protocol::{
    Ack, Connection, Event, LinkView, PacketKind, Passing, Received, Receiver as _, Router as _, SendLimit, Sending,
    Source as _, Wire,
};
use waterfill_laws::protocols::own::{
    OwnFields, Params, Provider, Receiver, ReceiverLaw, Router, RouterLaw, Source, SourceLaw,
};
use waterfill_laws::registry::{AnyParams, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};

const PACKET: Volume = Volume::from_bytes(1500.0);
const LINK: LinkView = LinkView { id: 0, capacity: Rate::from_bps(1e7), target: None, queue: Volume::ZERO };
const CONNECTION: Connection =
    Connection { weight: 1.0, packet: PACKET, initial_window: PACKET, claimed_rtt: None, seed: 0 };

/// Names of the calls that reached the program, in order.
type Calls = Arc<Mutex<Vec<&'static str>>>;

/// Program whose laws write their number of calls so far into the first field.
#[derive(Clone)]
struct Program {
    calls: Calls,
    target: f64,
    /// True if the program has laws for routers and receivers.
    all: bool,
}

#[derive(Clone)]
struct End {
    calls: Calls,
    count: f32,
}

impl End {
    fn call(&mut self, name: &'static str) {
        self.count += 1.0;
        self.calls.lock().expect("no panic").push(name);
    }
}

impl Program {
    fn end(&self) -> End {
        End { calls: self.calls.clone(), count: 0.0 }
    }
}

impl Provider for Program {
    fn target(&self) -> f64 {
        self.target
    }
    fn paced(&self) -> bool {
        false
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
    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, OwnFields>) {
        self.call("on_arrival");
        if let Some(header) = &mut passing.header {
            header.0[1] = self.count;
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
    fn on_data(&mut self, _received: &Received<OwnFields>) {
        self.call("on_data");
    }
    fn echo(&mut self, _now: Instant) -> OwnFields {
        self.call("echo");
        OwnFields([self.count, 0.0, 0.0, 0.0])
    }
    fn boxed(&self) -> Box<dyn ReceiverLaw> {
        Box::new(self.clone())
    }
}

impl SourceLaw for End {
    fn stamp(&mut self, _sending: &Sending) -> OwnFields {
        self.call("stamp");
        OwnFields([self.count, 0.0, 0.0, 0.0])
    }
    fn on_ack(&mut self, _ack: &Ack<OwnFields>) {
        self.call("on_ack");
    }
    fn on_event(&mut self, _now: Instant, _event: Event) {
        self.call("on_event");
    }
    fn limit(&self) -> SendLimit {
        SendLimit { window: Some(PACKET * f64::from(self.count)), pacing: None }
    }
    fn boxed(&self) -> Box<dyn SourceLaw> {
        Box::new(self.clone())
    }
}

fn program(target: f64, all: bool) -> (Params, Calls) {
    let calls = Calls::default();
    (Params::of(Arc::new(Program { calls: calls.clone(), target, all })), calls)
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
    assert_eq!((header, echo), (OwnFields([1.0, 1.0, 0.0, 0.0]), OwnFields([2.0, 0.0, 0.0, 0.0])));
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
    assert_eq!((receiver.echo(Instant::ZERO).0[0], other_receiver.echo(Instant::ZERO).0[0]), (3.0, 5.0));
}

/// If the program has only a source law, routers do nothing and the receiver copies the last header.
#[test]
fn a_program_may_have_a_source_only() {
    let (params, calls) = program(1.0, false);
    let (mut router, mut receiver, mut source) =
        (Router::new(&params, &LINK), Receiver::new(&params), Source::new(&params, &CONNECTION));
    let (header, echo) = exchange(&mut router, &mut receiver, &mut source);
    assert_eq!(called(&calls), ["stamp", "on_ack", "on_event"]);
    assert_eq!((header, echo), (OwnFields([1.0, 0.0, 0.0, 0.0]), header));
    assert_eq!(router.poll_at(), Instant::NEVER);
}

#[test]
fn without_a_program_the_window_stays() {
    let AnyParams::Own(params) = ProtocolId::Own.params() else { panic!("the parameters of another protocol") };
    let mut source = Source::new(&params, &CONNECTION);
    let (header, echo) = exchange(&mut Router::new(&params, &LINK), &mut Receiver::new(&params), &mut source);
    assert_eq!((header, echo), (OwnFields::default(), OwnFields::default()));
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
    assert_eq!(format!("{params:?}"), "Params { provided: true }");
    assert_eq!(format!("{:?}", Router::new(&params, &LINK)), "Router { provided: true }");
    assert_eq!(format!("{:?}", Receiver::new(&Params::default())), "Receiver { provided: false }");
    assert_eq!(format!("{:?}", Source::new(&params, &CONNECTION)), "Source { provided: true }");
}

#[test]
fn a_header_is_four_numbers_of_single_precision() {
    let fields = OwnFields([1.5, -2.0, 0.0, 1e30]);
    let mut wire = [0; OwnFields::BYTES];
    fields.encode(&mut wire);
    assert_eq!((OwnFields::decode(&wire), &wire[..4]), (Some(fields), &[0x3f, 0xc0, 0, 0][..]));
    assert_eq!(OwnFields::decode(&wire[..15]), None);
    wire[..4].copy_from_slice(&f32::NAN.to_be_bytes());
    assert_eq!(OwnFields::decode(&wire), None);
    assert!(ProtocolId::Own.info().needs_packets);
}
