//! FAST TCP: a window that keeps α packets in the queue.
//!
//! # Law
//! - `[fast-2006:window]` once per RTT `w ← min{2w, (1 − γ)·w + γ·(baseRTT/RTT·w + α)}`
//! - `[fast-2006:rtt]` `RTT ← (1 − η)·RTT + η·T` for each RTT T seen, `η = min{3/w, 1/4}`
//!
//! In equilibrium `w·(1 − baseRTT/RTT) = α`: every flow has α packets in the queue, whatever its RTT.
//!
//! # Symbols
//! | Wei et al. | here | unit |
//! |---|---|---|
//! | w | `cwnd` | packets |
//! | baseRTT | `base_rtt` | s |
//! | RTT, T | `rtt`, `ack.rtt` | s |
//! | α, γ | `alpha`, `gamma` | packets, – |
//!
//! # Header
//! None.
//!
//! # Router
//! None.
//!
//! # Source
//! [`Fast`]: the host's `Host::TCP`, paced: the paper's burstiness control spaces packets out too.
//!
//! # Parameters
//! [`Params`]. α is per flow: N flows need a buffer of N·α packets, and a queue that cannot hold them makes a loss-based TCP
//! of FAST.
//!
//! # Readings and deviations
//! - The paper's prototype updates in every second RTT. Here the window is set once per RTT.
//! - α is constant, as in the paper's prototype, which goes from 0 to the path's window in slow start; when that ends the
//!   paper does not say. Here it ends when the law's own α packets are in the queue, from where equation and slow start
//!   would part.
//! - After a loss the window halves, as TCP Reno's.
//! - baseRTT is the smallest RTT of data. A SYN's would lack the transmission of a full packet at each hop, and so
//!   count one packet in the queue for each. It does not expire unless `base_rtt_window` says so, as Vegas's.
//! - A flow that starts into a standing queue takes it for the path's own RTT, and gets more than its share. This is a
//!   known weakness of the law and is not corrected here.
//!
//! # Validation
//! One flow and four hold α packets each in the queue and share evenly (`tcp_delay_based` of the simulator).
//!
//! # References
//! `fast-2006`: Wei, Jin, Low, Hegde, "FAST TCP: Motivation, Architecture, Algorithms, Performance", IEEE/ACM ToN 14(6),
//! 2006; before that Jin, Wei, Low, INFOCOM 2004.

use crate::params::{ParamError, require};
use crate::protocol::{Ack, BaseRtt, Connection, Event, Host, LawSignal, Probe};
use crate::protocols::tcp::round::Round;
use crate::protocols::tcp::{SIGNALS, SSTHRESH_MIN, TcpLaw, Window, reno, slow_start};
use crate::units::{Duration, Instant, Volume};

crate::params! {
    /// Parameters of FAST.
    pub struct Params {
        /// Packets α of a flow in the queue in equilibrium.
        alpha: f64 = 200.0, "fast-2006, its testbed of 800 Mbit/s";
        /// Fraction γ of the distance to the equation's window by which the window moves per RTT.
        gamma: f64 = 0.5, "fast-2006, its testbed";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.alpha > 0.0 && self.alpha <= 1e6, "alpha", "a number above 0, up to 1e6")?;
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number above 0, up to 1")
    }
}

/// `[fast-2006:window]` Returns the window of the next RTT.
#[must_use]
pub fn window(w: f64, base_rtt: Duration, rtt: Duration, params: &Params) -> f64 {
    let aim = base_rtt / rtt * w + params.alpha;
    ((1.0 - params.gamma) * w + params.gamma * aim).min(2.0 * w)
}

/// `[fast-2006:rtt]` Returns the averaged RTT after another sample.
#[must_use]
pub fn averaged(before: Duration, rtt: Duration, w: f64) -> Duration {
    let eta = (3.0 / w).min(0.25);
    Duration::from_secs((1.0 - eta) * before.as_secs() + eta * rtt.as_secs())
}

/// Returns the estimated number of packets in the queue, which is α in equilibrium.
fn backlog(w: f64, base_rtt: Duration, rtt: Duration) -> f64 {
    w * (1.0 - base_rtt / rtt)
}

/// Law of FAST TCP.
#[derive(Clone, Debug)]
pub struct Fast {
    params: Params,
    packet: Volume,
    round: Round,
    /// Averaged RTT; `None` before the first sample.
    rtt: Option<Duration>,
    base_rtt: Duration,
    /// Estimated number of the flow's own packets in the queue.
    backlog: f64,
    /// True if the current acknowledgement ended a round.
    ended: bool,
}

impl Fast {
    fn rtt(&self) -> Duration {
        // Averaging rounds, and a shorter base may have come since.
        self.rtt.unwrap_or(self.base_rtt).max(self.base_rtt)
    }
}

impl TcpLaw for Fast {
    const NAME: &'static str = "fast";
    const SUMMARY: &'static str = "FAST: alpha packets in the queue, steered to by the queueing delay";
    const PACED: bool = true;
    const SIGNALS: &'static [LawSignal] = &[
        SIGNALS[0],
        SIGNALS[1],
        LawSignal { name: "backlog", unit: "packets", doc: "this flow's packets in the queue, as it estimates them" },
    ];
    const HOST: Host = Host { base_rtt: Some(BaseRtt::OwnQueue), ..Host::TCP };
    type Params = Params;

    fn new(params: &Params, connection: &Connection) -> Self {
        Self {
            params: params.clone(),
            packet: connection.packet,
            round: Round::default(),
            rtt: None,
            base_rtt: Duration::MAX,
            backlog: 0.0,
            ended: false,
        }
    }

    fn measure(&mut self, window: &Window, ack: &Ack<()>, acked: f64) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = ack.base_rtt;
            self.rtt = Some(self.rtt.map_or(rtt, |before| averaged(before, rtt, window.cwnd)));
        }
        self.backlog = backlog(window.cwnd, self.base_rtt, self.rtt());
        self.ended = self.round.ends(acked, ack.in_flight / self.packet);
    }

    fn slow_start(&mut self, window: &mut Window, _: &Ack<()>, acked: f64) -> f64 {
        if self.backlog > self.params.alpha {
            window.ssthresh = window.cwnd;
            return acked;
        }
        slow_start(window, acked)
    }

    fn avoid(&mut self, w: &mut Window, _: &Ack<()>, _: f64) {
        if std::mem::take(&mut self.ended) {
            w.cwnd = window(w.cwnd, self.base_rtt, self.rtt(), &self.params).max(SSTHRESH_MIN);
            // Below the threshold slow start would undo a step down.
            w.ssthresh = w.ssthresh.min(w.cwnd);
        }
    }

    fn reduced(&mut self, window: &Window, _: Instant, _: Event) -> f64 {
        reno::threshold(window.cwnd, 0.5)
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("backlog", self.backlog);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params as _;
    use crate::protocol::Source as _;
    use crate::protocols::tcp::testing::tcp;

    const BASE: Duration = Duration::from_millis(100);

    /// `[fast-2006:window]` The window keeps its size with α packets in the queue, rises without a queue, and at most
    /// doubles.
    #[test]
    fn fast_2006_window_by_hand() {
        let params = Params { alpha: 20.0, gamma: 0.5 };
        // 120 packets, 20 of them in the queue: 100/120 of the RTT is the path's. At rest.
        assert!((window(120.0, BASE, Duration::from_millis(120), &params) - 120.0).abs() < 1e-9);
        // No queue: half of α is added. Too much queue: 0.5·200 + 0.5·(100 + 20).
        assert!((window(100.0, BASE, BASE, &params) - 110.0).abs() < 1e-9);
        assert!((window(200.0, BASE, Duration::from_millis(200), &params) - 160.0).abs() < 1e-9);
        // Never more than twice as much.
        assert_eq!(window(4.0, BASE, BASE, &params), 8.0);
    }

    /// `[fast-2006:rtt]` A new RTT sample has the weight 3/w in the average, at most 1/4.
    #[test]
    fn fast_2006_rtt_by_hand() {
        let ms = Duration::from_millis;
        assert_eq!(averaged(ms(100), ms(120), 4.0), ms(105)); // η = 1/4
        assert_eq!(averaged(ms(100), ms(120), 30.0), ms(102)); // η = 3/30
    }

    /// Alone on a path of 1000 packets/s and 100 ms, a flow settles at 100 packets on the path and α packets in the
    /// queue.
    #[test]
    fn a_window_settles_alpha_above_the_paths_own() {
        let mut fast = tcp::<Fast>(&Params { alpha: 20.0, gamma: 0.5 });
        let packet = Volume::from_bytes(1500.0);
        for _ in 0..40 {
            let w = fast.window().cwnd;
            let rtt = Duration::from_secs((w / 1000.0).max(0.1));
            for _ in 0..w as u32 {
                let in_flight = (fast.window().cwnd - 1.0) * packet;
                let ack = Ack { acked: packet, base_rtt: BASE, in_flight, ..Ack::new(Instant::ZERO, (), rtt) };
                fast.on_ack(&ack);
            }
        }
        assert!((fast.window().cwnd - 120.0).abs() < 0.1, "{:?}", fast.window());
        fast.on_event(Instant::ZERO, Event::Loss);
        assert!((fast.window().cwnd - 60.0).abs() < 0.1);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let refused = |params: Params| params.validate().unwrap_err().0;
        assert_eq!(
            refused(Params { gamma: 1.1, ..Params::default() }),
            "gamma: must be a number above 0, up to 1, got 1.1"
        );
        assert_eq!(
            refused(Params { alpha: 0.0, ..Params::default() }),
            "alpha: must be a number above 0, up to 1e6, got 0"
        );
    }
}
