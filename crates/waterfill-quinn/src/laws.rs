//! Waterfill's laws as quinn's congestion controllers.
//!
//! quinn reports acknowledgements packet by packet, and losses at most once per acknowledgement. A law gets one call for each
//! acknowledgement frame, and the host's part in between: recovery periods (RFC 9002 §7.3.1), during which the window does not grow.
//! A law's packet is the datagram size at the start of the connection.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};
use waterfill_laws::protocol::{Ack, Connection, Event, PacketKind, Protocol, Sending, Source, Validation};
use waterfill_laws::protocols::tcp::Tcp;
use waterfill_laws::protocols::tcp::cubic::Cubic;
use waterfill_laws::protocols::tcp::sack::Sack;
use waterfill_laws::units::{self, Volume};

const PS_PER_NS: u64 = 1000;
/// Initial window (packets), as in RFC 9002 §7.2.
const INITIAL_PACKETS: u64 = 10;

/// Laws that can be quinn's controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// `cubic`.
    Cubic,
    /// `sack`, the window of Reno.
    Reno,
}

/// Factory of controllers with a law of Waterfill.
#[derive(Clone, Copy, Debug)]
pub struct LawConfig {
    /// Law of the controllers.
    pub law: Law,
    /// Initial window (bytes); `None` for ten datagrams.
    pub initial_window: Option<u64>,
}

impl ControllerFactory for LawConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mtu = u64::from(current_mtu);
        let initial = self.initial_window.unwrap_or(INITIAL_PACKETS * mtu);
        match self.law {
            Law::Cubic => Box::new(LawController::<Tcp<Cubic>>::new(now, mtu, initial)),
            Law::Reno => Box::new(LawController::<Tcp<Sack>>::new(now, mtu, initial)),
        }
    }
}

/// Acknowledgements since the last call of the law.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    bytes: u64,
    /// Sending time of the newest packet.
    newest: Option<Instant>,
    /// Smoothed and smallest RTT.
    rtts: Option<(units::Duration, units::Duration)>,
    app_limited: bool,
}

/// A law behind quinn's interface.
struct LawController<P: Protocol> {
    law: P::Source,
    start: Instant,
    mtu: u64,
    initial: u64,
    batch: Batch,
    /// Start of the recovery period, while it lasts.
    recovery: Option<Instant>,
    /// End of the last recovery period's packets: losses of packets sent before are part of it.
    signaled: Option<Instant>,
}

impl<P: Protocol> Clone for LawController<P>
where
    P::Source: Clone,
{
    fn clone(&self) -> Self {
        Self { law: self.law.clone(), ..*self }
    }
}

impl<P: Protocol> fmt::Debug for LawController<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LawController").field("law", &P::INFO.name).finish_non_exhaustive()
    }
}

fn duration(d: std::time::Duration) -> units::Duration {
    units::Duration::from_ps((d.as_nanos() as u64).saturating_mul(PS_PER_NS))
}

impl<P: Protocol> LawController<P> {
    fn new(start: Instant, mtu: u64, initial: u64) -> Self {
        let connection = Connection {
            weight: 1.0,
            packet: Volume::from_bytes(mtu as f64),
            initial_window: Volume::from_bytes(initial as f64),
            claimed_rtt: None,
            path: waterfill_laws::protocol::PathView::UNKNOWN,
            validation: Validation::Off,
            seed: 0,
        };
        let law = P::Source::new(&P::Params::default(), &connection);
        Self { law, start, mtu, initial, batch: Batch::default(), recovery: None, signaled: None }
    }

    fn time(&self, at: Instant) -> units::Instant {
        units::Instant::from_ps(duration(at.saturating_duration_since(self.start)).as_ps())
    }
}

impl<P> Controller for LawController<P>
where
    P: Protocol<Header = (), Echo = ()> + 'static,
    P::Source: Clone + Send + Sync + 'static,
{
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let volume = Volume::from_bytes(bytes as f64);
        self.law.stamp(&Sending::new(self.time(now), PacketKind::Data, volume));
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.batch.bytes += bytes;
        self.batch.newest = self.batch.newest.max(Some(sent));
        self.batch.rtts = Some((duration(rtt.get()), duration(rtt.min())));
        self.batch.app_limited = app_limited;
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        let batch = std::mem::take(&mut self.batch);
        let (Some(newest), Some((smoothed, smallest))) = (batch.newest, batch.rtts) else { return };
        let at = self.time(now);
        if self.recovery.is_some_and(|start| newest > start) {
            self.recovery = None;
            self.law.on_event(at, Event::Recovered);
        }
        let sample = duration(now.saturating_duration_since(newest));
        self.law.on_ack(&Ack {
            acked: Volume::from_bytes(batch.bytes as f64),
            smoothed_rtt: smoothed,
            base_rtt: smallest.min(sample),
            in_flight: Volume::from_bytes(in_flight as f64),
            recovering: self.recovery.is_some(),
            window_limited: !batch.app_limited,
            ..Ack::new(at, (), sample)
        });
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        if self.signaled.is_some_and(|since| sent <= since) {
            return;
        }
        self.signaled = Some(now);
        self.recovery = Some(now);
        let event = match lost_bytes {
            _ if is_persistent_congestion => Event::Timeout,
            0 => Event::Marked,
            _ => Event::Loss,
        };
        self.law.on_event(self.time(now), event);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = u64::from(new_mtu);
    }

    fn window(&self) -> u64 {
        let window = self.law.limit().window.map_or(u64::MAX, |window| window.as_bytes() as u64);
        window.max(2 * self.mtu)
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
