//! Target `laws`: any sequence of calls of one protocol's router, receiver and source.
//!
//! Parameters, link and connection are any that pass the checks. Packets are reordered, lost and repeated, routers and
//! receivers lie with any header or echo that decodes, and events come in any order. Only what hosts and links guarantee is
//! kept: time does not run backwards, timers fire when they are due, and an RTT is never shorter than the shortest.

use std::collections::VecDeque;

use arbitrary::Unstructured;
use waterfill_laws::protocol::{
    Ack, Connection, Event, LinkView, PacketKind, Passing, PathView, Probe, Received, Sending, Validation,
};
use waterfill_laws::registry::{AnyEcho, AnyHeader, AnyReceiver, AnyRouter, AnySource, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate, Volume};

use crate::input::{below, byte, decades, param_lists, parameters};

/// Timers that one input may fire: a short interval and a long wait would take minutes.
const MAX_TIMERS: u32 = 500;
/// Maximum number of packets between the ends.
const MAX_WAITING: usize = 32;

/// Checks that every signal is finite.
struct Finite(ProtocolId);

impl Probe for Finite {
    fn record(&mut self, signal: &str, value: f64) {
        assert!(value.is_finite(), "{:?}: {signal} is {value}", self.0);
    }
}

/// One connection through one router.
struct Path {
    id: ProtocolId,
    link: LinkView,
    router: AnyRouter,
    receiver: AnyReceiver,
    source: AnySource,
    packet: Volume,
    now: Instant,
    base_rtt: Duration,
    timers: u32,
    headers: VecDeque<AnyHeader>,
    echoes: VecDeque<AnyEcho>,
}

/// Runs the calls that the bytes stand for.
///
/// # Panics
/// A call panics, a limit is negative or not a number, a signal is not finite, a header does not survive its encoding, or
/// a timer does not advance.
pub fn laws(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let Some(mut path) = path(&mut u) else { return };
    path.check();
    while !u.is_empty() && path.timers < MAX_TIMERS {
        path.step(&mut u);
        path.check();
    }
}

fn path(u: &mut Unstructured<'_>) -> Option<Path> {
    let which = usize::from(byte(u)) % ProtocolId::ALL.len();
    let id = ProtocolId::ALL[which];
    let params = parameters(u, id.params(), &param_lists()[which]);
    let link = LinkView {
        id: u32::from(byte(u)),
        capacity: Rate::from_bps(decades(u, 1.0, 1e18)),
        target: (byte(u) & 3 == 0).then(|| decades(u, 1e-6, 1.0)),
        queue: Volume::ZERO,
    };
    params.check_link(&link).ok()?;
    let packet = Volume::from_bytes(f64::from(u.int_in_range(64..=u16::MAX).unwrap_or(1500)));
    let connection = Connection {
        weight: if byte(u) & 3 == 0 { decades(u, 1e-6, 1e6) } else { 1.0 },
        packet,
        initial_window: decades(u, 1e-3, 1e9) * packet,
        claimed_rtt: (id.info().host.states_rtt && byte(u) & 3 == 0)
            .then(|| Duration::from_secs(decades(u, 1e-12, 1e6))),
        path: PathView { host_rate: link.capacity, hops: u32::from(byte(u)) },
        validation: id.info().host.validation.unwrap_or(Validation::Off),
        seed: u64::from(byte(u)),
    };
    Some(Path {
        id,
        router: params.router(&link),
        receiver: params.receiver(),
        source: params.source(&connection),
        link,
        packet,
        now: Instant::ZERO,
        base_rtt: Duration::MAX,
        timers: 0,
        headers: VecDeque::new(),
        echoes: VecDeque::new(),
    })
}

impl Path {
    fn check(&self) {
        let limit = self.source.limit();
        let window = limit.window.map_or(0.0, Volume::as_bytes);
        let pacing = limit.pacing.map_or(0.0, Rate::as_bps);
        assert!(window.is_finite() && window >= 0.0, "{:?}: a window of {window} bytes", self.id);
        // The kernel's host lets acknowledgements clock packets, without a rate.
        let clocked = matches!(self.source, AnySource::Kernel(..)) && pacing == f64::INFINITY;
        assert!((pacing.is_finite() || clocked) && pacing >= 0.0, "{:?}: a rate of {pacing} bit/s", self.id);
        self.source.observe(&mut Finite(self.id));
        self.router.observe(&mut Finite(self.id));
    }

    fn step(&mut self, u: &mut Unstructured<'_>) {
        match byte(u) % 16 {
            0..=3 => self.send(u),
            4 | 5 => self.deliver(u),
            6..=9 => self.acknowledge(u),
            10 => self.other(u),
            11 => {
                let event = [Event::Loss, Event::Timeout, Event::Marked, Event::Recovered][below(u, 4)];
                self.source.on_event(self.now, event);
            }
            12..=14 => self.wait(u),
            _ => self.link.capacity = Rate::from_bps(decades(u, 1.0, 1e18)),
        }
    }

    /// A packet from the source over the router; or any header, written by a router before this one.
    fn send(&mut self, u: &mut Unstructured<'_>) {
        let flags = byte(u);
        let kind = if flags & 7 == 0 { PacketKind::Syn } else { PacketKind::Data };
        let volume = self.volume(u);
        let sending = Sending {
            now: self.now,
            kind,
            volume,
            in_flight: f64::from(byte(u)) * self.packet,
            app_limited: flags & 8 != 0,
        };
        self.source.advance(self.now);
        let mut header = self.source.stamp(&sending);
        self.survives(&header);
        if flags & 0x30 == 0x30 {
            let bytes = u.bytes(u.len().min(32)).unwrap_or(&[]);
            if let Some(forged) = header.decode_alike(bytes) {
                header = forged;
            }
        }
        self.link.queue = self.queue(u);
        let mut passing = Passing { now: self.now, volume, packets: 1.0, kind, header: Some(&mut header) };
        self.router.on_arrival(&self.link, &mut passing);
        if self.router.sees_departures() && flags & 0x40 == 0 {
            self.router.on_departure(&self.link, &mut passing);
        }
        self.survives(&header);
        if self.headers.len() < MAX_WAITING {
            self.headers.push_back(header);
        }
    }

    /// Delivery of one of the packets under way to the receiver, perhaps again, which perhaps answers.
    fn deliver(&mut self, u: &mut Unstructured<'_>) {
        let flags = byte(u);
        let Some(header) = taken(u, &mut self.headers, flags & 1 == 0) else { return };
        let kind = if flags & 14 == 0 { PacketKind::Syn } else { PacketKind::Data };
        let rtt = (flags & 16 == 0).then(|| Duration::from_secs(decades(u, 1e-12, 1e6)));
        if flags & 64 != 0 {
            self.receiver.on_mark(self.now);
        }
        self.receiver.on_data(&Received { now: self.now, kind, header: &header, rtt });
        if flags & 32 == 0 {
            let echo = self.receiver.echo(self.now);
            assert_eq!(echo.decode_alike(&echo.encode()), Some(echo), "{:?}", self.id);
            if self.echoes.len() < MAX_WAITING {
                self.echoes.push_back(echo);
            }
        }
    }

    /// Delivery of one of the echoes under way, or of any, to the source.
    fn acknowledge(&mut self, u: &mut Unstructured<'_>) {
        let flags = byte(u);
        let rtt = Duration::from_secs(decades(u, 1e-12, 1e6)).max(Duration::from_ps(1));
        self.base_rtt = self.base_rtt.min(rtt);
        let acked = f64::from(byte(u)) * self.packet;
        let ack = Ack {
            now: self.now,
            echo: (),
            kind: if flags & 7 == 0 { PacketKind::Syn } else { PacketKind::Ack },
            acked,
            marked: if flags & 8 != 0 { acked } else { Volume::ZERO },
            rtt: (flags & 0x10 == 0).then_some(rtt),
            smoothed_rtt: rtt,
            base_rtt: self.base_rtt,
            in_flight: f64::from(byte(u)) * self.packet,
            recovering: flags & 0x20 != 0,
            window_limited: flags & 0x40 == 0,
        };
        let echo = if flags & 0x80 == 0 {
            taken(u, &mut self.echoes, flags & 8 == 0)
        } else {
            self.receiver.echo(self.now).decode_alike(u.bytes(u.len().min(32)).unwrap_or(&[]))
        };
        let echo = echo.unwrap_or_else(|| self.receiver.echo(self.now));
        let limit = self.source.on_ack(&ack.with_echo(&echo));
        assert_eq!(limit, self.source.limit(), "{:?}", self.id);
    }

    /// Passing of another protocol's packet through the router.
    fn other(&mut self, u: &mut Unstructured<'_>) {
        self.link.queue = self.queue(u);
        let mut header = AnyHeader::None;
        let volume = self.volume(u);
        let mut passing =
            Passing { now: self.now, volume, packets: 1.0, kind: PacketKind::Other, header: Some(&mut header) };
        self.router.on_arrival(&self.link, &mut passing);
        assert_eq!(header, AnyHeader::None, "{:?} changes a header of another protocol", self.id);
    }

    /// Passing of time; timers fire when they are due.
    fn wait(&mut self, u: &mut Unstructured<'_>) {
        let until = self.now + Duration::from_secs(decades(u, 1e-12, 1e4));
        self.link.queue = self.queue(u);
        while self.router.poll_at() <= until && self.timers < MAX_TIMERS {
            let due = self.router.poll_at();
            self.now = self.now.max(due);
            self.router.on_timer(&self.link, due);
            assert!(self.router.poll_at() > due, "{:?}: a timer that does not advance", self.id);
            self.timers += 1;
        }
        if self.timers < MAX_TIMERS {
            self.now = until;
        }
    }

    fn volume(&self, u: &mut Unstructured<'_>) -> Volume {
        match byte(u) {
            0 => Volume::from_bytes(1.0),
            1..=63 => Volume::from_bytes(f64::from(u.int_in_range(1..=u16::MAX).unwrap_or(1))),
            _ => self.packet,
        }
    }

    fn queue(&self, u: &mut Unstructured<'_>) -> Volume {
        match byte(u) {
            0..=127 => Volume::ZERO,
            n @ 128..=191 => f64::from(n - 127) * self.packet,
            _ => Volume::from_bytes(decades(u, 1.0, 1e15).round()),
        }
    }

    /// Checks that the simulated header equals the one on the wire.
    fn survives(&self, header: &AnyHeader) {
        assert_eq!(header.decode_alike(&header.encode()), Some(*header), "{:?}", self.id);
    }
}

/// Takes or copies one of the entries.
fn taken<T: Copy>(u: &mut Unstructured<'_>, waiting: &mut VecDeque<T>, take: bool) -> Option<T> {
    if waiting.is_empty() {
        return None;
    }
    let at = below(u, waiting.len());
    if take { waiting.remove(at) } else { waiting.get(at).copied() }
}
