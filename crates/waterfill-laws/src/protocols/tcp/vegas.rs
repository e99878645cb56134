//! TCP Vegas: a window that keeps a few packets in the queue, estimated from the RTT.
//!
//! # Law
//! - `[vegas-1994:diff]` `Diff = (Expected − Actual)·BaseRTT = cwnd·(1 − BaseRTT/RTT)`: packets in the queue
//! - `[vegas-1994:avoidance]` once per RTT: `cwnd + 1` if `Diff < α`, `cwnd − 1` if `Diff > β`, else no change
//! - `[vegas-1994:slow-start]` the window doubles in every other RTT, until `Diff > γ`
//!
//! # Symbols
//! | Brakmo et al. | here | unit |
//! |---|---|---|
//! | WindowSize | `sent_with` | packets |
//! | BaseRTT, RTT | `base_rtt`, the distinguished packet's | s |
//! | α, β, γ | `alpha`, `beta`, `gamma` | packets |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Vegas`]: the host's `Host::TCP`. The paper's earlier retransmission by a fine clock is not part of the law; selective
//! acknowledgements do what it was for.
//!
//! # Parameters
//! [`Params`].
//!
//! # Readings and deviations
//! - A flow that starts into a standing queue takes it for the path's own RTT, and gets more than its share. This is a known
//!   weakness of the law and is not corrected here.
//! - Slow start ends at `cwnd·BaseRTT/RTT + γ`, with γ packets in the queue, as in Linux. The paper only changes mode, and
//!   would then need an RTT for every excess packet.
//! - The distinguished packet is the first of a round, and its acknowledgement ends the round. In slow start it has seen the
//!   window of the round before, and shows it before the next round grows. The mean of a round would count the bursts of
//!   slow start as a queue and end it at a window of about √BDP.
//! - BaseRTT is the smallest RTT of data. A SYN's would lack the transmission of a full packet at each hop, and so count one
//!   packet in the queue for each. It does not expire unless `base_rtt_window` says so: after the path became longer, the
//!   law takes the difference for its queue. With a window it takes its own queue for the path.
//! - After a loss the window halves, as in Linux.
//!
//! [Other readings](../../validation/tcp-readings.md#vegas)
//!
//! # Validation
//! One flow and several hold α to β packets each in the queue (`tcp_delay_based` of the simulator).
//!
//! # References
//! `vegas-1994`: Brakmo, O'Malley, Peterson, "TCP Vegas: New Techniques for Congestion Detection and Avoidance", SIGCOMM
//! 1994. Brakmo, Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", JSAC 13(8), 1995.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, BaseRtt, Connection, Event, Host, LawSignal, Probe};
use crate::protocols::tcp::round::Round;
use crate::protocols::tcp::{SIGNALS, SSTHRESH_MIN, TcpLaw, Window, reno, slow_start};
use crate::units::{Duration, Instant, Volume};

crate::params! {
    /// Parameters of Vegas.
    pub struct Params {
        /// Minimum number of a flow's packets in the queue, below which the window grows.
        alpha: f64 = 2.0, "Brakmo and Peterson 1995: Vegas-2,4";
        /// Maximum number of a flow's packets in the queue, above which the window shrinks.
        beta: f64 = 4.0, "Brakmo and Peterson 1995: Vegas-2,4";
        /// Number of packets in the queue that ends slow start.
        gamma: f64 = 1.0, "vegas-1994 §3.3: one router buffer";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.alpha > 0.0 && self.alpha <= 1e6, "alpha", "a number above 0, up to 1e6")?;
        require(self.beta >= self.alpha && self.beta <= 1e6, "beta", "a number from alpha, up to 1e6")?;
        require(self.gamma > 0.0 && self.gamma <= 1e6, "gamma", "a number above 0, up to 1e6")
    }
}

/// `[vegas-1994:diff]` Returns the number of this flow's packets in the queue.
#[must_use]
pub fn diff(cwnd: f64, base_rtt: Duration, rtt: Duration) -> f64 {
    cwnd * (1.0 - base_rtt / rtt)
}

/// `[vegas-1994:avoidance]` Returns the change of the window per RTT, in packets.
#[must_use]
pub fn step(diff: f64, params: &Params) -> f64 {
    if diff < params.alpha {
        1.0
    } else if diff > params.beta {
        -1.0
    } else {
        0.0
    }
}

/// Measurements of one round.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Diff, the number of packets in the queue.
    queued: f64,
    /// Window minus Diff: the packets that the path holds without a queue.
    fits: f64,
}

/// Law of TCP Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    params: Params,
    packet: Volume,
    round: Round,
    /// Window with which the distinguished packet was sent, just after the acknowledgement that began the round.
    sent_with: f64,
    /// Estimate of the round that this acknowledgement ended; `None` if it ended no round.
    estimate: Option<Estimate>,
    /// Last value of Diff.
    diff: f64,
    /// True if the window grows in this round of slow start.
    grows: bool,
}

impl TcpLaw for Vegas {
    const NAME: &'static str = "vegas";
    const SUMMARY: &'static str = "Vegas: two to four packets in the queue, estimated from the RTT";
    const SIGNALS: &'static [LawSignal] =
        &[SIGNALS[0], SIGNALS[1], LawSignal { name: "diff", unit: "packets", doc: "this flow's packets in the queue" }];
    const HOST: Host = Host { base_rtt: Some(BaseRtt::OwnQueue), ..Host::TCP };
    type Params = Params;

    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            params: params.clone(),
            packet: connection.packet,
            round: Round::default(),
            sent_with: connection.initial_window / connection.packet,
            estimate: None,
            diff: 0.0,
            grows: false, // the first acknowledgement begins a round that grows
        }
    }

    fn measure(&mut self, window: &Window, ack: &Ack<()>, acked: f64) {
        self.estimate = None;
        if !self.round.ends(acked, ack.in_flight / self.packet) {
            return;
        }
        // The acknowledgement that ends a round is that of the first packet sent in it: the distinguished one.
        self.estimate = ack.rtt.map(|rtt| {
            let queued = diff(self.sent_with, ack.base_rtt, rtt);
            Estimate { queued, fits: self.sent_with - queued }
        });
        self.diff = self.estimate.map_or(self.diff, |estimate| estimate.queued);
        self.sent_with = window.cwnd;
        self.grows = !self.grows;
    }

    /// `[vegas-1994:slow-start]` Grows the window in every other round, and ends slow start with more than γ packets in
    /// the queue.
    fn slow_start(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) -> f64 {
        if let Some(estimate) = self.estimate.filter(|estimate| estimate.queued > self.params.gamma) {
            window.cwnd = window.cwnd.min(estimate.fits + self.params.gamma).max(SSTHRESH_MIN);
            window.ssthresh = window.cwnd;
            return 0.0;
        }
        if self.grows { slow_start(window, acked) } else { 0.0 }
    }

    fn avoid(&mut self, window: &mut Window, _: &Ack<()>, _: f64) {
        if let Some(estimate) = self.estimate.take() {
            window.cwnd = (window.cwnd + step(estimate.queued, &self.params)).max(SSTHRESH_MIN);
            // Below the threshold slow start would undo a step down.
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    fn reduced(&mut self, window: &Window, _: Instant, _: Event) -> f64 {
        reno::threshold(window.cwnd, 0.5)
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("diff", self.diff);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::Tcp;
    use crate::protocols::tcp::testing::tcp;

    const BASE: Duration = Duration::from_millis(100);

    /// Acknowledges a window's packets at this RTT, and sends another packet for each; returns the window.
    fn round(vegas: &mut Tcp<Vegas>, rtt: Duration) -> f64 {
        let packet = Volume::from_bytes(1500.0);
        let mut in_flight = vegas.window().cwnd.floor();
        for _ in 0..in_flight as u32 {
            let ack = Ack {
                acked: packet,
                base_rtt: BASE,
                in_flight: (in_flight - 1.0) * packet,
                ..Ack::new(Instant::ZERO, (), rtt)
            };
            vegas.on_ack(&ack);
            in_flight = vegas.window().cwnd.floor();
        }
        vegas.window().cwnd
    }

    /// `[vegas-1994:diff, avoidance]` At 110 packets and an RTT of 110 instead of 100 ms, ten packets are in the queue.
    /// The window changes by one packet if fewer than 2 or more than 4 packets are in the queue.
    #[test]
    fn vegas_1994_diff_by_hand() {
        // 110 packets, 100 ms without a queue and 110 with: 1100 packets/s expected, 1000 seen, ten in the queue.
        assert!((diff(110.0, BASE, Duration::from_millis(110)) - 10.0).abs() < 1e-9);
        let params = Params::default();
        let steps = [1.9, 2.0, 3.0, 4.0, 4.1].map(|queued| step(queued, &params));
        assert_eq!(steps, [1.0, 0.0, 0.0, 0.0, -1.0]);
    }

    /// `[vegas-1994:slow-start]` Slow start doubles the window in every other RTT.
    #[test]
    fn slow_start_doubles_every_other_round_trip() {
        let mut vegas = tcp::<Vegas>(&Params::default());
        let windows: Vec<f64> = (0..5).map(|_| round(&mut vegas, BASE)).collect();
        assert_eq!(windows, [20.0, 20.0, 40.0, 40.0, 80.0]);
    }

    /// `[vegas-1994:slow-start]` Slow start ends at the path's 16 packets plus γ, when 4 of 20 packets are in the
    /// queue.
    #[test]
    fn slow_start_ends_with_gamma_packets_in_the_queue() {
        let mut vegas = tcp::<Vegas>(&Params::default());
        assert_eq!([BASE; 2].map(|rtt| round(&mut vegas, rtt)), [20.0, 20.0]);
        // 20 packets at 125 ms where the path takes 100: 16 fit, 4 wait.
        round(&mut vegas, Duration::from_millis(125));
        assert!((vegas.window().cwnd - 17.0).abs() < 1e-9, "{:?}", vegas.window());
        assert!((vegas.window().ssthresh - 17.0).abs() < 1e-9);
    }

    #[test]
    fn avoidance_moves_by_a_packet_a_round_trip_and_rests_between() {
        let mut vegas = tcp::<Vegas>(&Params::default());
        *vegas.window() = Window { cwnd: 100.0, ssthresh: 50.0, initial: 10.0 };
        vegas.law().sent_with = 100.0;
        let ms = Duration::from_millis;
        assert_eq!([101, 101, 101].map(|t| round(&mut vegas, ms(t))), [101.0, 102.0, 103.0]); // 1 in the queue
        assert_eq!([103, 103, 103].map(|t| round(&mut vegas, ms(t))), [103.0, 103.0, 103.0]); // 3
        assert_eq!([110, 110, 110].map(|t| round(&mut vegas, ms(t))), [102.0, 101.0, 100.0]); // 9
        assert_eq!(vegas.window().ssthresh, 50.0);
    }

    #[test]
    fn parameters_out_of_order_are_refused() {
        let params = Params { beta: 1.0, ..Params::default() };
        assert_eq!(params.validate().unwrap_err().0, "beta: must be a number from alpha, up to 1e6, got 1");
    }
}
