//! PowerTCP: a source divides its window by the power of its path's fullest link, arrivals times data in flight.
//!
//! # Law
//! Power is current times voltage: the arrival rate λ at a link, times the queue plus the bandwidth-delay product. A full
//! link without a queue has the power b²·τ. HPCC's telemetry gives both factors.
//!
//! - `alg1.14`  λ = dq/dt + μ, from two records of a link: the change of its queue, and the rate μ at which it sends
//! - `alg1.19`  Γ' = λ·(q + b·τ)/(b²·τ) for each link; Γ is the largest
//! - `alg1.24`  Γ_s ← (Γ_s·(τ − Δt) + Γ·Δt)/τ, Δt ≤ τ the time between the records of that link
//! - `alg1.27`  w ← γ·(w_old/Γ_s + β) + (1 − γ)·w, with w_old the window of about one RTT ago
//! - `alg1.7`   w_old ← w once per RTT
//! - `alg1.6`   w/τ paces the packets
//!
//! The queue's slope lets a source see an incast before its queue is long, and the end of one before its queue is empty.
//! At rest Γ_s is 1 + q/(b·τ), and n flows with Σw = b·τ + q queue n·β = n/N of b·τ. The delay of w_old keeps the queue
//! swinging about that.
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | w, w_old | `window`, `old` | bytes, bytes |
//! | Γ', Γ_s, Δt | [`IntLaw::level`], `level`, `lasted` | 1, 1, s |
//! | τ | `base_rtt` | s |
//! | γ, β | `gamma`, B·τ/`flows` | 1, bytes |
//! | b, q, μ | [`Hop`]: `rate`, `queue`, from `sent` | bit/s, bytes, bit/s |
//!
//! # Header
//! [`Int`], as [`hpcc`](super::hpcc): 42 bytes in data.
//!
//! # Router
//! [`Telemetry`], as [`hpcc`](super::hpcc).
//!
//! # Source
//! [`IntSource`]: the first stack tells the rate B of the sender's own link. From then on the window is at most B·τ, with
//! which it starts.
//!
//! # Parameters
//! [`Params`]: γ is the paper's. The paper leaves N, the number of flows that share a host's link, to the user.
//!
//! # Readings and deviations
//! Equations and line numbers are those of the authors' preprint.
//!
//! - w_old is the window at the end of the last RTT, as in the algorithm. Eq. 7 has the window at the time when the
//!   acknowledged packet was sent. In the second program 20 flows then queue 0.205 of b·τ, and 0.27 with the algorithm's.
//! - A packet leaves while less than w is in flight, so w counts as whole packets, rounded up. See [`hpcc`](super::hpcc).
//! - The window is at most B·τ. Line 20 compares with Γ' before it is divided by e; here the divided ones are compared.
//! - Links of the way back write no records, the sender's own link does. A loss changes no window.
//! - `reading = "ns3"` has six differences of the authors' ns-3. It steers a rate, so (1 − γ) weighs w_old. It divides Γ
//!   by 0.95, and bounds λ from below by b/2. The host's own link writes no record, and w counts payload. No rate is below
//!   100 Mbit/s. The first record is compared with zeros. That code leaves those zeros to chance, so its results change
//!   from run to run, see [the comparison](../../validation/fabric-ns3.md). Its β is 150 Mbit/s · τ: `flows` = B/150 Mbit/s.
//!   θ-PowerTCP, which measures delay instead of telemetry, is not here.
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/telemetry.rs`): one flow fills its link without a queue, and 2 to 20 flows
//! fill 0.97 to 0.98 of it with a mean queue of n/N to n/N + 0.1 of b·τ. `tests/python/runs/test_telemetry.py` has the
//! algorithm a second time: one flow completes at the same time, and incasts have the same largest queue. Incasts of 4 and 8
//! flows complete within 1 % on the mean of five patterns of starts. Single patterns differ by up to 7 %, because the
//! queue's slope makes the law sensitive to the order of packets.
//!
//! # References
//! `powertcp-2022`: Addanki, Michel, Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022
//! (arXiv 2112.14309).

use crate::int::{EchoStack, Form, Int, IntLaw, IntSource, State, Telemetry};
use crate::params::{ParamError, require};
use crate::protocol::{BaseRtt, Host, Info, LawSignal, Probe, Protocol, ProtocolKind};
use crate::state::StateFields;
use crate::telemetry::Hop;
use crate::units::{Duration, Volume};

/// The protocol `powertcp`.
#[derive(Debug)]
pub struct PowerTcp;

impl Protocol for PowerTcp {
    const INFO: Info = Info {
        name: "powertcp",
        summary: "link telemetry in each packet gives the power, rate times data in flight (2022)",
        kind: ProtocolKind::Explicit,
        needs_packets: true,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::EmptyQueues), ..Host::EXPLICIT },
        signals: &[
            LawSignal { name: "window", unit: "bytes", doc: "the window w" },
            LawSignal { name: "power", unit: "1", doc: "the smoothed power Γ_s of the fullest link, over b²·τ" },
        ],
    };
    type Params = Params;
    type Header = Int;
    type Echo = Int;
    type Router = Telemetry;
    type Receiver = EchoStack;
    type Source = Source;

    fn target(_: &Params) -> f64 {
        1.0
    }
}

crate::choice! {
    /// Reading of the algorithm.
    pub enum Reading {
        /// The algorithm of the paper.
        Paper = "paper",
        /// The ns-3 of the paper's authors, which differs in six points.
        Ns3 = "ns3",
    }
}

crate::params! {
    /// Parameters of PowerTCP.
    pub struct Params {
        /// Weight γ of the new window.
        gamma: f64 = 0.9, "powertcp-2022, §3.3";
        /// Number N of flows in the additive increase β = B·τ/N. n flows at rest queue n/N bandwidth-delay products.
        flows: f64 = 100.0, "as hpcc; the paper names none";
        /// Base RTT τ of the network. 0 is the smallest RTT of the connection.
        base_rtt: Duration = Duration::ZERO, "the paper's τ is a constant of the network";
        /// Reading of the algorithm: the paper's, or that of its authors' ns-3.
        reading: Reading = Reading::Paper, "powertcp-2022; ns3: the code's";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number in (0, 1]")?;
        require(self.flows >= 1.0 && self.flows <= 1e9, "flows", "a number from 1 to 1e9")
    }
}

/// Source of PowerTCP.
pub type Source = IntSource<Hosts>;

/// Target of the power in the authors' ns-3 (U_TARGET).
const NS3_TARGET: f64 = 0.95;

/// State of a host's law.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Window at the end of the last RTT.
    old: Volume,
}

impl IntLaw for Hosts {
    type Protocol = PowerTcp;

    fn base_rtt(params: &Params) -> Duration {
        params.base_rtt
    }

    fn form(params: &Params) -> Form {
        match params.reading {
            Reading::Paper => Form::Paper,
            Reading::Ns3 => Form::Ns3,
        }
    }

    const FROM_ZEROS: bool = true;

    fn new(limit: Volume) -> Self {
        Self { old: limit }
    }

    /// `[powertcp-2022:alg1.14, alg1.19]` Returns the power Γ' of a link.
    fn level(form: Form, hop: &Hop, last: &Hop, lasted: Duration, base_rtt: Duration) -> f64 {
        let mut arrivals = hop.sent_rate(last, lasted) + (hop.queued() - last.queued()) / lasted;
        if form == Form::Ns3 {
            arrivals = arrivals.max(0.5 * hop.rate);
        }
        arrivals / hop.rate * (hop.queued() / (hop.rate * base_rtt) + 1.0)
    }

    /// `[powertcp-2022:alg1.7, alg1.27]` Computes the window, and keeps it once per RTT.
    fn react(state: &mut State<Self>, params: &Params, weight: f64, ends: bool) {
        let increase = (weight / params.flows) * state.limit;
        // The power is zero after a pause, and negative if a queue has dropped packets at departure: no limit but B·τ.
        let (target, current) = match state.form {
            Form::Ns3 => (NS3_TARGET, state.law.old),
            _ => (1.0, state.window),
        };
        let scaled = target * state.law.old / state.level.max(0.0);
        state.set_window(params.gamma * (scaled + increase) + (1.0 - params.gamma) * current);
        if ends {
            state.law.old = state.window;
        }
    }

    fn observe(state: &State<Self>, probe: &mut dyn Probe) {
        probe.record("power", state.level);
    }

    fn state(state: Option<&State<Self>>, fields: &mut StateFields) {
        fields.put("old", &state.map(|state| state.law.old));
        fields.put("power", &state.map(|state| state.level));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::int::fullest;
    use crate::protocol::{Ack, Source as _};
    use crate::telemetry::Stack;
    use crate::testing::{close, connection};
    use crate::units::{Instant, Rate};

    const T: Duration = Duration::from_micros(10);

    /// Returns the record of a link of 100 Gbit/s, whose b·τ is 125,000 bytes.
    fn hop(ns: u64, sent: u64, queue: u32) -> Hop {
        let time = Instant::from_ps(1000 * ns);
        Hop { time, sent, queue, link: 0, rate: Rate::from_bps(100e9) }
    }

    /// Acknowledges a packet with one record, and returns the window in bytes.
    fn ack(source: &mut Source, hop: Hop, in_flight: u32) -> f64 {
        ack_path(source, &[hop], in_flight)
    }

    /// Acknowledges a packet with the records of a path, and returns the window in bytes.
    fn ack_path(source: &mut Source, hops: &[Hop], in_flight: u32) -> f64 {
        let mut stack = Stack::default();
        for &hop in hops {
            stack.push(hop);
        }
        source.on_stack(&stack);
        let (packet, echo) = (connection().packet, Int::default());
        let in_flight = f64::from(in_flight) * packet;
        source.on_ack(&Ack { acked: packet, in_flight, ..Ack::new(hops[0].time, echo, T) });
        source.state.as_ref().expect("a state").window.as_bytes()
    }

    /// `[powertcp-2022:alg1.14, alg1.19]` A link sends 100 Gbit/s while its queue grows at 100 Gbit/s to half of b·τ: the
    /// arrivals are 2 and the voltage is 1.5. With the same queue at rest the power is 1.5, and with a queue that falls at
    /// 100 Gbit/s it is zero.
    #[test]
    fn powertcp_2022_power_is_arrivals_times_queue_and_pipe() {
        let of = |before| {
            fullest::<Hosts>(Form::Paper, &[hop(4000, 50_000, 62_500)], &[hop(0, 0, before)], T).expect("two records")
        };
        close(of(12_500).0, 3.0, 1e-12);
        close(of(62_500).0, 1.5, 1e-12);
        assert!(of(112_500).0.abs() < 1e-12);
        assert_eq!(of(0).1, Duration::from_micros(4));
        // An idle second link does not count.
        let idle = |us: u64| Hop { link: 1, ..hop(1000 * us, 1, 0) };
        let (both, _) =
            fullest::<Hosts>(Form::Paper, &[hop(4000, 50_000, 62_500), idle(9)], &[hop(0, 0, 62_500), idle(1)], T)
                .expect("two");
        close(both, 1.5, 1e-12);
    }

    /// `[powertcp-2022:alg1.24, alg1.27, alg1.6, alg1.7]` The power 3 over 4 of 10 µs gives 1.8, after which the queue stays.
    /// The first acknowledgement begins an RTT. The three after it start from its window, and the third ends the RTT.
    #[test]
    fn powertcp_2022_the_window_of_one_rtt_ago_is_divided_by_the_power() {
        let mut source = Source::new(&Params { base_rtt: T, ..Params::default() }, &connection());
        close(ack(&mut source, hop(0, 0, 12_500), 2), 125_000.0, 1e-12);
        let next = |old: f64, power: f64, window: f64| 0.9 * (old / power + 1250.0) + 0.1 * window;
        let first = next(125_000.0, 1.8, 125_000.0);
        close(ack(&mut source, hop(4000, 50_000, 62_500), 2), first, 1e-12);
        close(source.limit().pacing.expect("a rate").as_bps(), first * 8.0 / 10e-6, 1e-12);
        let (mut power, mut window) = (1.8, first);
        for i in 2..=3 {
            power = 0.6 * power + 0.4 * 1.5;
            window = next(125_000.0, power, window);
            close(ack(&mut source, hop(4000 * i, 50_000 * i, 62_500), 2), window, 1e-12);
        }
        power = 0.6 * power + 0.4 * 1.5;
        close(ack(&mut source, hop(16_000, 200_000, 62_500), 2), next(window, power, window), 1e-12);
    }

    /// The authors' ns-3. The host's own link, which is full, writes no record. The first record, of 2 b·τ of queue, is
    /// compared with zeros 1 ms ago, so λ is b/2 and the power 1.5. It sets w_old, which the later ones divide by a power that
    /// grows towards 3, and is the window before as well. W counts payload: 84,875 bytes are 60 packets with 1418 each.
    #[test]
    fn ns3_compares_the_first_record_with_zeros() {
        let params = Params { base_rtt: T, reading: Reading::Ns3, ..Params::default() };
        let mut source = Source::new(&params, &connection());
        let next = |old: f64, power: f64| 0.9 * (0.95 * old / power + 1250.0) + 0.1 * old;
        let path = |i: u64| {
            [Hop { link: 1, ..hop(4000 * i, 50_000 * i, 900_000) }, hop(1_000_000 + 4000 * i, 50_000 * i, 250_000)]
        };
        let first = next(125_000.0, 1.5);
        close(ack_path(&mut source, &path(0), 9), first, 1e-12);
        close(source.limit().window.expect("a window").as_bytes(), 90_000.0, 1e-12);
        close(ack_path(&mut source, &path(1), 9), next(first, 2.1), 1e-12);
        close(ack_path(&mut source, &path(2), 9), next(first, 2.46), 1e-12);
    }

    /// Ten flows with β = 1250 bytes rest with 12,500 bytes of queue, a tenth of b·τ: each has a tenth of 137,500 bytes.
    #[test]
    fn ten_flows_rest_where_the_queue_is_their_increases() {
        let mut source = Source::new(&Params { base_rtt: T, ..Params::default() }, &connection());
        ack(&mut source, hop(0, 0, 12_500), 9);
        let state = source.state.as_mut().expect("a state");
        (state.level, state.window) = (1.1, Volume::from_bytes(13_750.0));
        state.law.old = state.window;
        for i in 1..=3 {
            close(ack(&mut source, hop(4000 * i, 50_000 * i, 12_500), 9), 13_750.0, 1e-12);
        }
    }

    /// The window stays below B·τ of the sender's own link, also where nothing has arrived or a queue has drained.
    #[test]
    fn the_window_is_bounded_by_the_own_link() {
        let mut source = Source::new(&Params { base_rtt: T, ..Params::default() }, &connection());
        ack(&mut source, hop(0, 0, 125_000), 0);
        for (us, sent, queue) in [(100, 125_000, 0), (200, 125_000, 0), (300, 125_001, 0)] {
            close(ack(&mut source, hop(1000 * us, sent, queue), 0), 125_000.0, 1e-12);
        }
    }
}
