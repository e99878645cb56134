//! Senders and receivers over patterns of losses, next to the pseudo-code of RFC 9002.

use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::Network;

use super::pseudocode;
use crate::binding::FlowProtocol;
use crate::flow::{FlowSetup, HostAccess, Owner, ReceivingHost, Route, SendingHost, connect};
use crate::packet::{Packet, Sacks};
use crate::sender::{FlowIndex, SenderSpec};

/// Propagation delay of each direction, and transmission time of a packet, in microseconds.
const ONE_WAY_US: u64 = 20_000;
const SERVICE_US: u64 = 1_000;
/// Number of data packets of the flow, and the time after which a comparison ends.
const TOTAL: u64 = 300;
const END_US: u64 = 60_000_000;

/// Fates of packets, by the number of the transmission, and of acknowledgements, by their order.
#[derive(Clone, Copy, Default)]
struct Pattern {
    name: &'static str,
    /// Transmissions that are lost.
    lost: &'static [u64],
    /// Transmissions that arrive late, and by how much (ms).
    late: &'static [u64],
    late_ms: u64,
    /// Share of acknowledgements that are lost: every n-th; 0 for none.
    acks_lost: usize,
    /// Outage of both directions (ms).
    outage: Option<(u64, u64)>,
    /// Outage of the reverse direction (ms).
    mute: Option<(u64, u64)>,
    /// Why the order of sends differs from the pseudo-code's; empty if it is the same.
    differs: &'static str,
}

/// The two ends of a connection: this crate's, or the pseudo-code's.
trait Ends {
    type Ack;
    fn send(&mut self, now: u64) -> Option<(u64, u64)>;
    fn arrive(&mut self, now: u64, number: u64, data: u64) -> Option<Self::Ack>;
    fn receiver_timer(&self) -> Option<u64>;
    fn on_receiver_timer(&mut self, now: u64) -> Option<Self::Ack>;
    fn on_ack(&mut self, now: u64, ack: &Self::Ack);
    fn timer(&self) -> Option<u64>;
    fn on_timer(&mut self, now: u64);
}

/// Runs a connection over a path with a pattern of losses. Returns the time, packet number and data number of each send.
fn sends<E: Ends>(mut ends: E, pattern: &Pattern) -> Vec<(u64, u64, u64)> {
    enum Event<A> {
        Data(u64, u64),
        Ack(A),
    }
    let mut found = Vec::new();
    // Arrivals in the order of their times; the position keeps the order of equal times.
    let mut transit: Vec<(u64, usize, Event<E::Ack>)> = Vec::new();
    let (mut now, mut free, mut order, mut acks) = (2 * ONE_WAY_US, 0, 0, 0usize);
    let within = |span: Option<(u64, u64)>, at: u64| span.is_some_and(|(from, to)| from * 1000 <= at && at < to * 1000);
    loop {
        while let Some((number, data)) = ends.send(now) {
            found.push((now, number, data));
            free = free.max(now) + SERVICE_US;
            order += 1;
            if !pattern.lost.contains(&number) && !within(pattern.outage, now) {
                let late = if pattern.late.contains(&number) { pattern.late_ms * 1000 } else { 0 };
                transit.push((free + ONE_WAY_US + late, order, Event::Data(number, data)));
            }
        }
        let arrival = transit.iter().map(|&(at, order, _)| (at, order)).min();
        let next = [arrival.map(|(at, _)| at), ends.receiver_timer(), ends.timer()].into_iter().flatten().min();
        let Some(time) = next.filter(|&time| time < END_US) else { return found };
        now = time.max(now);
        let ack = if arrival.is_some_and(|(at, _)| at == time) {
            let place = transit.iter().position(|&(at, order, _)| Some((at, order)) == arrival);
            match transit.swap_remove(place.expect("the first arrival")).2 {
                Event::Data(number, data) => ends.arrive(now, number, data),
                Event::Ack(ack) => {
                    ends.on_ack(now, &ack);
                    None
                }
            }
        } else if ends.receiver_timer() == Some(time) {
            ends.on_receiver_timer(now)
        } else {
            ends.on_timer(now);
            None
        };
        if let Some(ack) = ack {
            acks += 1;
            order += 1;
            let lost = pattern.acks_lost > 0 && acks % pattern.acks_lost == 0;
            if !lost && !within(pattern.outage, now) && !within(pattern.mute, now) {
                transit.push((now + ONE_WAY_US, order, Event::Ack(ack)));
            }
        }
    }
}

/// This crate's hosts, with NewReno's window.
struct Hosts {
    from: SendingHost,
    to: ReceivingHost,
    sacks: Sacks,
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// Returns a time in microseconds, rounded up so that a timer has expired then.
fn us(time: Instant) -> Option<u64> {
    (time != Instant::NEVER).then(|| time.as_ps().div_ceil(1_000_000))
}

impl Hosts {
    /// Returns the hosts after their handshake.
    fn new() -> Self {
        let (rate, delay) = (Rate::from_bps(12e6), Duration::from_micros(ONE_WAY_US));
        let network = Network::builder(Duration::from_millis(60_000))
            .link("l", rate, delay, Volume::from_bytes(1e6))
            .flow("f", "sack", &["l"])
            .with(|network| {
                let flow = &mut network.flows[0];
                flow.recovery = Some("quic".into());
                flow.delayed_ack = true;
                flow.size_bytes = Some(TOTAL * 1460);
                flow.base_rtt_s = 0.04;
            })
            .build()
            .expect("a valid network");
        let (protocol, spec) = (ProtocolId::Sack, &network.flows[0]);
        let law = FlowProtocol { protocol, params: protocol.params() };
        let setup = FlowSetup {
            owner: Owner::Group(0),
            law: &law,
            spec,
            sender: SenderSpec::new(&network, spec, &law, FlowIndex { flow: 0, index: 0 }),
            from: 0,
            counted: (Instant::ZERO, Instant::NEVER),
            route: Route { forward: 0, reverse: 0, entry: HostAccess::Ideal, number: 0, damages: false },
        };
        let (from, to) = connect(&network, setup);
        let mut hosts = Self { from, to, sacks: Sacks::default() };
        let syn = hosts.from.sender.poll_transmit(Instant::ZERO).expect("a SYN");
        let answer = hosts.to.receiver.on_packet(at(ONE_WAY_US), &syn, &mut hosts.sacks).expect("an answer");
        hosts.from.sender.on_syn_ack(at(2 * ONE_WAY_US), &answer);
        hosts
    }
}

impl Ends for Hosts {
    type Ack = Packet;
    fn send(&mut self, now: u64) -> Option<(u64, u64)> {
        let packet = self.from.sender.poll_transmit(at(now))?;
        let numbers = crate::ack_frame::Numbers::decode(packet.number, 0);
        Some((numbers.packet, numbers.data))
    }
    fn arrive(&mut self, now: u64, number: u64, data: u64) -> Option<Packet> {
        let number = crate::ack_frame::Numbers { packet: number, data }.encode();
        let role = crate::packet::Role::Datagram;
        let packet = Packet { role, number, bytes: 1500, ..crate::testing::full_packet(0, at(now)) };
        self.to.receiver.on_datagram(at(now), &packet, &mut self.sacks)
    }
    fn receiver_timer(&self) -> Option<u64> {
        us(self.to.receiver.poll_timer())
    }
    fn on_receiver_timer(&mut self, now: u64) -> Option<Packet> {
        self.to.receiver.on_timer(at(now), &mut self.sacks)
    }
    fn on_ack(&mut self, now: u64, ack: &Packet) {
        let frame = self.sacks.take(ack.sack).expect("a frame");
        self.from.sender.on_ack_frame(at(now), ack, &frame);
    }
    fn timer(&self) -> Option<u64> {
        us(self.from.sender.recovery.due())
    }
    fn on_timer(&mut self, now: u64) {
        self.from.sender.on_timer(at(now));
    }
}

/// The pseudo-code's ends.
struct Pseudocode {
    from: pseudocode::Sender,
    to: pseudocode::Receiver,
    arrived: std::collections::BTreeSet<u64>,
}

impl Ends for Pseudocode {
    type Ack = pseudocode::Ack;
    fn send(&mut self, now: u64) -> Option<(u64, u64)> {
        self.from.send(now as f64)
    }
    fn arrive(&mut self, now: u64, number: u64, data: u64) -> Option<pseudocode::Ack> {
        let last = self.arrived.insert(data) && self.arrived.len() as u64 == TOTAL;
        self.to.on_packet(now as f64, number, last)
    }
    fn receiver_timer(&self) -> Option<u64> {
        self.to.timer.map(|time| time as u64)
    }
    fn on_receiver_timer(&mut self, now: u64) -> Option<pseudocode::Ack> {
        Some(self.to.ack(now as f64))
    }
    fn on_ack(&mut self, now: u64, ack: &pseudocode::Ack) {
        self.from.on_ack_received(now as f64, ack);
    }
    fn timer(&self) -> Option<u64> {
        self.from.loss_detection_timer.map(|time| time.ceil() as u64)
    }
    fn on_timer(&mut self, now: u64) {
        self.from.on_loss_detection_timeout(now as f64);
    }
}

impl Pseudocode {
    fn new() -> Self {
        Self {
            from: pseudocode::Sender::new(TOTAL, 2.0 * ONE_WAY_US as f64),
            to: pseudocode::Receiver::default(),
            arrived: std::collections::BTreeSet::new(),
        }
    }
}

const NONE: Pattern =
    Pattern { name: "no loss", lost: &[], late: &[], late_ms: 0, acks_lost: 0, outage: None, mute: None, differs: "" };
const UNDO: &str = "the window is restored when the late packets arrive; the pseudo-code keeps it reduced";
const LATE: &[u64] = &[40, 90, 140, 200];
const PATTERNS: [Pattern; 21] = [
    NONE,
    Pattern { name: "one loss", lost: &[50], ..NONE },
    Pattern { name: "burst of 3", lost: &[50, 51, 52], ..NONE },
    Pattern { name: "burst of 10", lost: &[60, 61, 62, 63, 64, 65, 66, 67, 68, 69], ..NONE },
    Pattern { name: "every fourth of 40", lost: &[60, 64, 68, 72, 76, 80, 84, 88, 92, 96], ..NONE },
    Pattern { name: "first packet", lost: &[0], ..NONE },
    Pattern { name: "first window", lost: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ..NONE },
    Pattern { name: "last packet", lost: &[299], ..NONE },
    Pattern { name: "last 3 packets", lost: &[297, 298, 299], ..NONE },
    Pattern { name: "last 3 packets and their probes", lost: &[297, 298, 299, 300, 301], ..NONE },
    Pattern { name: "lost retransmission", lost: &[50, 111], ..NONE },
    Pattern { name: "retransmissions lost twice", lost: &[50, 51, 110, 111, 112, 150, 151, 152, 153], ..NONE },
    Pattern { name: "late by 1 ms", late: LATE, late_ms: 1, ..NONE },
    Pattern { name: "late by 5 ms", late: LATE, late_ms: 5, differs: UNDO, ..NONE },
    Pattern { name: "late by 20 ms", late: LATE, late_ms: 20, differs: UNDO, ..NONE },
    Pattern { name: "late by 100 ms", late: LATE, late_ms: 100, differs: UNDO, ..NONE },
    Pattern { name: "every second acknowledgement lost", acks_lost: 2, lost: &[70, 75, 80], ..NONE },
    Pattern { name: "acknowledgements lost for 100 ms", mute: Some((100, 200)), ..NONE },
    Pattern { name: "outage of 150 ms", outage: Some((150, 300)), ..NONE },
    Pattern { name: "outage of 1 s", outage: Some((150, 1150)), ..NONE },
    Pattern { name: "outage of 5 s", outage: Some((150, 5150)), ..NONE },
];

/// `[rfc9002:§A]` The order in which data is sent is that of the pseudo-code, except where `differs` says why not.
#[test]
fn rfc9002_the_order_of_sends_is_that_of_the_pseudo_code() {
    for pattern in &PATTERNS {
        let order = |sends: Vec<(u64, u64, u64)>| sends.into_iter().map(|(_, _, data)| data).collect::<Vec<_>>();
        let (ours, theirs) = (order(sends(Hosts::new(), pattern)), order(sends(Pseudocode::new(), pattern)));
        let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert_eq!(ours == theirs, pattern.differs.is_empty(), "{}: first difference at {first:?}", pattern.name);
        let mut data: Vec<_> = (0..TOTAL).collect();
        data.retain(|number| !ours.contains(number));
        assert!(data.is_empty(), "{}: all data is sent", pattern.name);
    }
}
