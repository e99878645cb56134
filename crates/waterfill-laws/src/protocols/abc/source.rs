//! Source law of ABC.

use crate::protocol::{Ack, Connection, Event, PacketKind, Probe, SendLimit, Sending};
use crate::protocols::tcp::cubic::{self, Cubic};
use crate::protocols::tcp::hystart::Variant;
use crate::protocols::tcp::{LOSS_WINDOW, Tcp, WINDOW_MAX};
use crate::units::{Instant, Volume};

use super::params::{Fallback, Params};
use super::{Abc, Mark};

/// Source with the window that every acknowledgement changes and, unless the fallback is off, CUBIC's window.
#[derive(Clone, Debug)]
pub struct Source {
    packet: Volume,
    weight: f64,
    /// Window w_abc, in packets.
    pub(super) abc: f64,
    /// CUBIC's window w_nonabc, boxed to keep the sources of all protocols small.
    pub(super) nonabc: Option<Box<Tcp<Cubic>>>,
}

impl Source {
    /// `[abc-2020:window]` Returns the smaller of w_abc and w_nonabc, in packets.
    pub(super) fn window(&self) -> f64 {
        self.nonabc.as_ref().map_or(self.abc, |nonabc| self.abc.min(nonabc.cwnd()))
    }
}

impl crate::protocol::Source<Abc> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let cubic = cubic::Params { hystart: Variant::Off, ..cubic::Params::default() };
        Self {
            packet: connection.packet,
            weight: connection.weight,
            abc: (connection.initial_window / connection.packet).max(LOSS_WINDOW),
            nonabc: (params.fallback == Fallback::Cubic).then(|| Box::new(Tcp::new(&cubic, connection))),
        }
    }

    fn stamp(&mut self, _sending: &Sending) -> Mark {
        Mark::Accelerate
    }

    fn on_ack(&mut self, ack: &Ack<Mark>) {
        let packets = ack.acked / self.packet;
        if ack.kind == PacketKind::Syn || packets <= 0.0 {
            return;
        }
        let most = cap((ack.in_flight + ack.acked) / self.packet);
        self.abc = next_window(self.abc, ack.echo, packets, self.weight).min(most);
        if let Some(nonabc) = &mut self.nonabc {
            nonabc.on_ack(&ack.with_echo(()));
            nonabc.cap(most);
        }
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        if matches!(event, Event::Timeout | Event::SynsLost) {
            self.abc = LOSS_WINDOW;
        }
        if let Some(nonabc) = &mut self.nonabc {
            nonabc.on_event(now, event);
        }
    }

    fn limit(&self) -> SendLimit {
        SendLimit { window: Some(self.window() * self.packet), pacing: None }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("w_abc", self.abc);
        if let Some(nonabc) = &self.nonabc {
            probe.record("w_nonabc", nonabc.cwnd());
        }
    }
}

/// `[abc-2020:eq3]` Returns the next window, w ± 1 + 1/w for each acknowledged packet. A weight multiplies the last
/// term.
pub(super) fn next_window(window: f64, mark: Mark, packets: f64, weight: f64) -> f64 {
    let step = if mark == Mark::Accelerate { 1.0 } else { -1.0 };
    (window + packets * (step + weight / window)).clamp(LOSS_WINDOW, WINDOW_MAX)
}

/// `[abc-2020:cap]` Returns the upper limit of both windows: twice the packets in flight, at least 1.
pub(super) fn cap(in_flight: f64) -> f64 {
    (2.0 * in_flight).max(LOSS_WINDOW)
}
