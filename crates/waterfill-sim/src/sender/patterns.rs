//! Senders and receivers over patterns of losses, for comparison with peers.

use waterfill_laws::protocol::{PathView, Retransmission};
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::{Duration, Instant, Rate, Volume};
use waterfill_network::Network;

use super::{FlowIndex, SenderSpec};
use crate::ack_frame::Numbers;
use crate::binding::FlowProtocol;
use crate::flow::{FlowSetup, HostAccess, Owner, ReceivingHost, Route, SendingHost, connect};
use crate::packet::{Packet, Role, Sacks};
use crate::testing::full_packet;

/// Propagation delay of each direction, and transmission time of a packet, in microseconds.
pub(super) const ONE_WAY_US: u64 = 20_000;
const SERVICE_US: u64 = 1_000;
/// Number of data packets of the flow, and the time after which a comparison ends.
pub(super) const TOTAL: u64 = 300;
const END_US: u64 = 60_000_000;

/// Fates of packets, by the number of the transmission, and of acknowledgements, by their order.
#[derive(Clone, Copy, Default)]
pub(super) struct Pattern<'a> {
    pub(super) name: &'a str,
    /// Transmissions that are lost.
    pub(super) lost: &'a [u64],
    /// Transmissions that arrive late, and by how much (ms).
    pub(super) late: &'a [u64],
    pub(super) late_ms: u64,
    /// Share of acknowledgements that are lost: every n-th; 0 for none.
    pub(super) acks_lost: usize,
    /// Outage of both directions (ms).
    pub(super) outage: Option<(u64, u64)>,
    /// Outage of the reverse direction (ms).
    pub(super) mute: Option<(u64, u64)>,
    /// Why the order of sends differs from the peer's; empty if it is the same.
    pub(super) differs: &'a str,
}

/// The two ends of a connection: this crate's, or a peer's.
pub(super) trait Ends {
    type Ack;
    fn send(&mut self, now: u64) -> Option<(u64, u64)>;
    fn arrive(&mut self, now: u64, sent: Sent) -> Option<Self::Ack>;
    fn receiver_timer(&self) -> Option<u64>;
    fn on_receiver_timer(&mut self, now: u64) -> Option<Self::Ack>;
    fn on_ack(&mut self, now: u64, ack: &Self::Ack);
    fn timer(&self) -> Option<u64>;
    fn on_timer(&mut self, now: u64);
}

/// A data packet: the time of its transmission, its place in the order of transmissions, and the number of its data.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: u64,
    pub(super) number: u64,
    pub(super) data: u64,
}

/// Runs a connection over a path with a pattern of losses. Returns the numbers of the data in the order
/// of their sending.
pub(super) fn sends<E: Ends>(mut ends: E, pattern: &Pattern<'_>) -> Vec<u64> {
    enum Event<A> {
        Data(Sent),
        Ack(A),
    }
    let mut found = Vec::new();
    // Arrivals in the order of their times; the position keeps the order of equal times.
    let mut transit: Vec<(u64, usize, Event<E::Ack>)> = Vec::new();
    let (mut now, mut free, mut order, mut acks) = (2 * ONE_WAY_US, 0, 0, 0usize);
    let within = |span: Option<(u64, u64)>, at: u64| span.is_some_and(|(from, to)| from * 1000 <= at && at < to * 1000);
    loop {
        while let Some((number, data)) = ends.send(now) {
            found.push(data);
            free = free.max(now) + SERVICE_US;
            order += 1;
            if !pattern.lost.contains(&number) && !within(pattern.outage, now) {
                let late = if pattern.late.contains(&number) { pattern.late_ms * 1000 } else { 0 };
                transit.push((free + ONE_WAY_US + late, order, Event::Data(Sent { at: now, number, data })));
            }
        }
        let arrival = transit.iter().map(|&(at, order, _)| (at, order)).min();
        let next = [arrival.map(|(at, _)| at), ends.receiver_timer(), ends.timer()].into_iter().flatten().min();
        let Some(time) = next.filter(|&time| time < END_US) else { return found };
        now = time.max(now);
        let ack = if arrival.is_some_and(|(at, _)| at == time) {
            let place = transit.iter().position(|&(at, order, _)| Some((at, order)) == arrival);
            match transit.swap_remove(place.expect("the first arrival")).2 {
                Event::Data(sent) => ends.arrive(now, sent),
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
pub(super) struct Hosts {
    from: SendingHost,
    to: ReceivingHost,
    sacks: Sacks,
    /// Number of transmissions.
    count: u64,
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// Returns a time in microseconds, rounded up so that a timer has expired then.
fn us(time: Instant) -> Option<u64> {
    (time != Instant::NEVER).then(|| time.as_ps().div_ceil(1_000_000))
}

impl Hosts {
    /// Returns the hosts after their handshake, for a method of recovery.
    pub(super) fn new(recovery: &str, delayed_ack: bool) -> Self {
        let (rate, delay) = (Rate::from_bps(12e6), Duration::from_micros(ONE_WAY_US));
        let network = Network::builder(Duration::from_millis(60_000))
            .link("l", rate, delay, Volume::from_bytes(1e6))
            .flow("f", "sack", &["l"])
            .with(|network| {
                (network.rto_min_s, network.rttvar_min_s) = (0.2, 0.2); // Linux's
                let flow = &mut network.flows[0];
                flow.recovery = Some(recovery.into());
                flow.delayed_ack = delayed_ack;
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
            route: Route {
                forward: 0,
                reverse: 0,
                entry: HostAccess::Ideal,
                number: 0,
                damages: false,
                view: PathView::UNKNOWN,
            },
        };
        let (from, to) = connect(&network, &setup);
        let mut hosts = Self { from, to, sacks: Sacks::default(), count: 0 };
        let syn = hosts.from.sender.poll_transmit(Instant::ZERO).expect("a SYN");
        let answer = hosts.to.receiver.on_packet(at(ONE_WAY_US), &syn, &mut hosts.sacks).expect("an answer");
        hosts.from.sender.on_syn_ack(at(2 * ONE_WAY_US), &answer, None);
        hosts
    }
}

impl Ends for Hosts {
    type Ack = Packet;
    fn send(&mut self, now: u64) -> Option<(u64, u64)> {
        let packet = self.from.sender.poll_transmit(at(now)).ok()?;
        self.count += 1;
        let data = if packet.role == Role::Datagram { Numbers::decode(packet.number, 0).data } else { packet.number };
        Some((self.count - 1, data))
    }
    fn arrive(&mut self, now: u64, Sent { at: sent, number, data }: Sent) -> Option<Packet> {
        let packet = Packet { number: data, ..full_packet(0, at(sent)) };
        if self.from.sender.spec.host.retransmission != Retransmission::Quic {
            return self.to.receiver.on_packet(at(now), &packet, &mut self.sacks);
        }
        let number = Numbers { packet: number, data }.encode();
        let packet = Packet { role: Role::Datagram, number, ..packet };
        self.to.receiver.on_datagram(at(now), &packet, &mut self.sacks)
    }
    fn receiver_timer(&self) -> Option<u64> {
        us(self.to.receiver.poll_timer())
    }
    fn on_receiver_timer(&mut self, now: u64) -> Option<Packet> {
        self.to.receiver.on_timer(at(now), &mut self.sacks)
    }
    fn on_ack(&mut self, now: u64, ack: &Packet) {
        let blocks = self.sacks.take(ack.sack);
        match (ack.role, &blocks) {
            (Role::AckFrame, Some(frame)) => self.from.sender.on_ack_frame(at(now), ack, frame),
            _ => self.from.sender.on_ack(at(now), ack, blocks.as_ref()),
        }
    }
    fn timer(&self) -> Option<u64> {
        us(self.from.sender.poll_timer())
    }
    fn on_timer(&mut self, now: u64) {
        self.from.sender.on_timer(at(now));
    }
}

pub(super) const NONE: Pattern<'static> =
    Pattern { name: "no loss", lost: &[], late: &[], late_ms: 0, acks_lost: 0, outage: None, mute: None, differs: "" };
