//! HPCC: links write telemetry into departing packets, and a source steers the data in flight on its path's fullest link.
//!
//! # Law
//! Each acknowledgement returns, for each link of the path, the time, the bytes sent so far and the queue at the packet's
//! departure. Two such records of a link give the data in flight on it, in units of its rate times the base RTT.
//!
//! - `alg1.5`   u' = min(q, q_prev)/(B·T) + txRate/B for each link, txRate = Δbytes/Δts; u is the largest
//! - `alg1.9`   U ← (1 − τ/T)·U + (τ/T)·u, τ = min(Δts, T) of the link with the largest u'
//! - `alg1.13`  W = W_c/(U/η) + W_AI if U ≥ η or incStage ≥ maxStage
//! - `alg1.17`  W = W_c + W_AI otherwise
//! - `alg1.22`  W_c ← W once per RTT, with incStage ← 0 after `alg1.13` and incStage + 1 after `alg1.17`
//! - `alg1.27`  R = W/T paces the packets
//!
//! The reference window W_c is fixed within an RTT, so acknowledgements of the same packets in flight do not multiply their
//! reactions.
//!
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | W, W_c, R | `window`, `reference`, pacing rate | bytes, bytes, bit/s |
//! | U, u, τ | `level`, [`IntLaw::level`], `lasted` | 1, 1, s |
//! | T | `base_rtt` | s |
//! | η, maxStage, N | `eta`, `max_stage`, `flows` | 1, 1, 1 |
//! | B, q, txBytes, ts | [`Hop`]: `rate`, `queue`, `sent`, `time` | bit/s, bytes, bytes, s |
//!
//! # Header
//! [`Int`]: 42 bytes in data, for five routers. The simulator keeps the `Stack` next to the packet, in full precision.
//! Acknowledgements return it and keep the size that the scenario gives them.
//!
//! # Router
//! [`Telemetry`]: counts what the link sends, and writes its record when a packet's transmission starts.
//!
//! # Source
//! [`IntSource`]: the first stack tells the rate of the sender's own link. From then on the window is at most that rate times
//! T, with which it starts. One flow rests where `alg1.13` returns W_c: U = η + W_AI/(B·T), which is 0.9505 with the
//! defaults.
//!
//! # Parameters
//! [`Params`]: η and maxStage are the paper's. `max_stage = 0` is the configuration of the authors' ns-3 code (run.py).
//!
//! # Readings and deviations
//! The paper's full text was not at hand. The algorithm is the draft's (lines 2 to 27), as a public simulator quotes it.
//! Defaults and W_AI are from a secondary source, so no claim of the paper is judged here.
//!
//! - A packet leaves while less than W is in flight, as in the authors' ns-3 code. So W counts as whole packets, rounded up,
//!   and R limits a flow at rest. Rounded down, a window of 18.7 packets would let one flow carry 0.962 of its link. That
//!   code steers a rate, with a window of rate times T, which is the same law.
//! - T is one constant of the network in the paper (`base_rtt`). Without it, T is the connection's smallest RTT.
//! - W_AI = B·T·(1 − η)/N. N = 100 gives the 80 bytes that the paper is said to use at 100 Gbit/s and 13 µs.
//! - The sender's own link writes a record, too; in the authors' ns-3 code only switches do. The first acknowledgement only
//!   stores its records and sets W_c = B·T. The first window is the host's, B·T by default. A loss changes no window.
//! - `reading = "htsim"` has four differences of csg-htsim's code. A packet leaves if all of it fits into W. τ/T is
//!   divided in integers, so its weight is 0 or 1. Records are stored once per path, so txRate is the mean since the flow's
//!   first acknowledgement. There is no W_c, so every acknowledgement multiplies the window.
//!
//! # Validation
//! Equation tests below. In the simulator (`tests/telemetry.rs`): one flow carries η + W_AI/(B·T) of its link, and the queue of
//! an incast is the windows of all senders less what the link sends meanwhile. `tests/python/runs/test_telemetry.py` has
//! the algorithm a second time: one flow completes at the same time, incasts of 4 and 8 flows within 1 %.
//!
//! An incast of 4 flows of 200 packets takes 1.13 ms at 10 Gbit/s and 22.4 us, where the link alone needs 0.99 ms. This is
//! the law: the burst drives U to 2.3, and W_c falls three times before U is below η. Then the windows of 4 packets grow
//! by W_AI, 0.01 packets per RTT, for five RTTs before they are scaled. A sample of U above η at the end of an RTT lowers
//! W_c at once, so the 4 flows carry 0.92 of the link from 0.2 to 1 ms.
//!
//! # References
//! `hpcc-2019`: Li, Miao, Liu, Zhuang, Feng, Tang, Cao, Zhang, Kelly, Alizadeh, Yu, "HPCC: High Precision Congestion
//! Control", SIGCOMM 2019. Miao et al., "HPCC++: Enhanced High Precision Congestion Control", draft-miao-tsv-hpcc-01.

use crate::int::{EchoStack, Form, Int, IntLaw, IntSource, State, Telemetry};
use crate::params::{ParamError, require};
use crate::protocol::{BaseRtt, Host, Info, LawSignal, Probe, Protocol, ProtocolKind};
use crate::state::StateFields;
use crate::telemetry::Hop;
use crate::units::{Duration, Volume};

/// The protocol `hpcc`.
#[derive(Debug)]
pub struct Hpcc;

impl Protocol for Hpcc {
    const INFO: Info = Info {
        name: "hpcc",
        summary: "a stack of link telemetry in each packet steers the data in flight (2019)",
        kind: ProtocolKind::Explicit,
        needs_packets: true,
        paced: true,
        host: Host { base_rtt: Some(BaseRtt::EmptyQueues), ..Host::EXPLICIT },
        signals: &[
            LawSignal { name: "window", unit: "bytes", doc: "the window W" },
            LawSignal { name: "reference", unit: "bytes", doc: "the reference window W_c, set once per RTT" },
            LawSignal {
                name: "load",
                unit: "1",
                doc: "data in flight U on the fullest link, over rate times base RTT",
            },
        ],
    };
    type Params = Params;
    type Header = Int;
    type Echo = Int;
    type Router = Telemetry;
    type Receiver = EchoStack;
    type Source = Source;

    fn target(params: &Params) -> f64 {
        params.eta
    }
}

crate::choice! {
    /// Reading of the algorithm.
    pub enum Reading {
        /// The algorithm of the paper and its draft.
        Paper = "paper",
        /// The public code of csg-htsim, which differs in four points.
        Htsim = "htsim",
        /// The ns-3 of PowerTCP's authors, which differs in three points.
        Ns3 = "ns3",
    }
}

crate::params! {
    /// Parameters of HPCC.
    pub struct Params {
        /// Target η of the data in flight, in units of rate times base RTT.
        eta: f64 = 0.95, "hpcc-2019, from a secondary source";
        /// Number of RTTs (maxStage) of additive increase before the window is scaled to the target.
        max_stage: u32 = 5, "hpcc-2019, from a secondary source; 0 in the authors' run.py";
        /// Number N of flows for which the additive increase W_AI = B·T·(1 − η)/N leaves no queue.
        flows: f64 = 100.0, "80 bytes at 100 Gbit/s and 13 us, from a secondary source";
        /// Base RTT T of the network. 0 is the smallest RTT of the connection.
        base_rtt: Duration = Duration::ZERO, "the paper's T is a constant of the network";
        /// Reading of the algorithm: the paper's, or that of csg-htsim's or ns3-datacenter's code.
        reading: Reading = Reading::Paper, "hpcc-2019; htsim, ns3: the codes'";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.eta > 0.0 && self.eta <= 1.0, "eta", "a number in (0, 1]")?;
        require(self.flows >= 1.0 && self.flows <= 1e9, "flows", "a number from 1 to 1e9")
    }
}

/// Source of HPCC.
pub type Source = IntSource<Hosts>;

/// State of a host's law.
#[derive(Clone, Debug)]
pub struct Hosts {
    reference: Volume,
    stage: u32,
}

impl IntLaw for Hosts {
    type Protocol = Hpcc;

    fn base_rtt(params: &Params) -> Duration {
        params.base_rtt
    }

    fn new(limit: Volume) -> Self {
        Self { reference: limit, stage: 0 }
    }

    /// `[hpcc-2019:alg1.5]` Returns the load u' of a link.
    fn level(_: Form, hop: &Hop, last: &Hop, lasted: Duration, base_rtt: Duration) -> f64 {
        let queue = if hop.queue < last.queue { hop.queued() } else { last.queued() };
        queue / (hop.rate * base_rtt) + hop.sent_rate(last, lasted) / hop.rate
    }

    /// `[hpcc-2019:alg1.13, alg1.17, alg1.22]` Computes the window, and once per RTT the reference window.
    fn react(state: &mut State<Self>, params: &Params, weight: f64, ends: bool) {
        let Self { reference, stage } = state.law;
        let scales = state.level >= params.eta || stage >= params.max_stage;
        let increase = weight * ((1.0 - params.eta) / params.flows) * state.limit;
        let window = if scales { reference / (state.level / params.eta) } else { reference };
        state.set_window(window + increase);
        if ends || state.form == Form::Htsim {
            state.law.reference = state.window;
        }
        if ends {
            state.law.stage = if scales { 0 } else { stage + 1 };
        }
    }

    fn form(params: &Params) -> Form {
        match params.reading {
            Reading::Paper => Form::Paper,
            Reading::Htsim => Form::Htsim,
            Reading::Ns3 => Form::Ns3,
        }
    }

    fn observe(state: &State<Self>, probe: &mut dyn Probe) {
        probe.record("reference", state.law.reference.as_bytes());
        probe.record("load", state.level);
    }

    fn state(state: Option<&State<Self>>, fields: &mut StateFields) {
        fields.put("reference", &state.map(|state| state.law.reference));
        fields.put("load", &state.map(|state| state.level));
        fields.put("stage", &state.map(|state| state.law.stage));
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

    /// Returns the record of a link of 100 Gbit/s, whose B·T is 125,000 bytes.
    fn hop(ns: u64, sent: u64, queue: u32) -> Hop {
        let time = Instant::from_ps(1000 * ns);
        Hop { time, sent, queue, link: 0, rate: Rate::from_bps(100e9) }
    }

    fn stack(hops: &[Hop]) -> Stack {
        let mut stack = Stack::default();
        for &hop in hops {
            stack.push(hop);
        }
        stack
    }

    /// `[hpcc-2019:alg1.5]` 25,000 bytes wait at least, a fifth of B·T, and 50 of 100 Gbit/s are sent: 0.7. The second
    /// link sends 8 of 10 Gbit/s and has no queue: 0.8.
    #[test]
    fn hpcc_2019_the_fullest_link_counts() {
        let first = [hop(0, 0, 25_000), hop(4000, 12_500, 31_000)];
        let (load, lasted) = fullest::<Hosts>(Form::Paper, &first[1..], &first[..1], T).expect("two records");
        close(load, 0.2 + 12_500.0 * 8.0 / 4e-6 / 100e9, 1e-12);
        assert_eq!(lasted, Duration::from_micros(4));
        let slow = |us: u64, sent| Hop { link: 1, rate: Rate::from_bps(10e9), ..hop(1000 * us, sent, 0) };
        let (load, lasted) = fullest::<Hosts>(Form::Paper, &[first[1], slow(9, 9000)], &[first[0], slow(0, 0)], T)
            .expect("two records of each");
        close(load, 0.8, 1e-12);
        assert_eq!(lasted, Duration::from_micros(9));
        assert_eq!(fullest::<Hosts>(Form::Paper, &first[..1], &[slow(0, 0)], T), None, "another path");
    }

    /// Returns a source that has had its first stack.
    fn started(params: &Params) -> Source {
        let mut source = Source::new(params, &connection());
        assert_eq!(source.limit().window, Some(connection().initial_window));
        ack(&mut source, hop(0, 0, 0), 0);
        // 83.3 packets are 84, or 83 that the host rounds down to.
        let window = if params.reading == Reading::Paper { 126_000.0 } else { 125_000.0 };
        close(source.limit().window.expect("a window").as_bytes(), window, 1e-12);
        close(source.limit().pacing.expect("a rate").as_bps(), 100e9, 1e-12);
        source
    }

    /// Acknowledges a packet with one record, and returns W and W_c in bytes.
    fn ack(source: &mut Source, hop: Hop, in_flight: u32) -> (f64, f64) {
        source.on_stack(&stack(&[hop]));
        let packet = connection().packet;
        source.on_ack(&Ack {
            acked: packet,
            in_flight: f64::from(in_flight) * packet,
            ..Ack::new(hop.time, Int::default(), T)
        });
        source.state.as_ref().map_or((0.0, 0.0), |state| (state.window.as_bytes(), state.law.reference.as_bytes()))
    }

    /// `[hpcc-2019:alg1.13, alg1.17, alg1.22, alg1.27]` W_AI is 125,000·0.05/100 = 62.5 bytes. A load of 1.9 halves the
    /// window, and the reference is set with the first acknowledgement of an RTT only. Below η the window grows by W_AI each
    /// RTT, and after five it is scaled to the target. The pacing rate is W/T.
    #[test]
    fn hpcc_2019_the_window_follows_the_reference() {
        let params = Params { base_rtt: T, ..Params::default() };
        let mut source = started(&params);
        // A full link with 0.9·B·T of queue, measured over more than T.
        ack(&mut source, hop(10_000, 125_000, 112_500), 0);
        let mut source = started(&params);
        source.state.as_mut().expect("a state").last = stack(&[hop(0, 0, 112_500)]);
        let (window, reference) = ack(&mut source, hop(10_000, 125_000, 112_500), 2);
        close(window, 62_562.5, 1e-12);
        close(reference, 62_562.5, 1e-12);
        // The same RTT: U is still 1.9, so W is W_c/2 + W_AI. It would be halved again and again without W_c.
        for i in 1..=2 {
            let (window, reference) = ack(&mut source, hop(10_000 + 10_000 * i, 125_000 * (i + 1), 112_500), 2);
            close(window, 62_562.5 / 2.0 + 62.5, 1e-12);
            close(reference, 62_562.5, 1e-12);
        }
        // An idle path, one packet in flight: each acknowledgement ends an RTT.
        let mut source = started(&params);
        source.state.as_mut().expect("a state").law.reference = Volume::from_bytes(10_000.0);
        for i in 1..=5_u64 {
            let (window, _) = ack(&mut source, hop(10_000 * i, 11_875 * i, 0), 0);
            close(window, 10_000.0 + 62.5 * i as f64, 1e-12);
        }
        // U is 0.095, a tenth of η.
        let (window, _) = ack(&mut source, hop(60_000, 71_250, 0), 0);
        close(window, 103_125.0 + 62.5, 1e-9);
        let (window, _) = ack(&mut source, hop(70_000, 71_250, 0), 0);
        close(window, 103_187.5 + 62.5, 1e-9);
        close(source.limit().pacing.expect("a rate").as_bps(), 103_250.0 * 8.0 / 10e-6, 1e-9);
    }

    /// The window stays below B·T of the sender's own link, also after a pause in which nothing was sent.
    #[test]
    fn the_window_is_bounded_by_the_own_link() {
        let mut source = started(&Params { base_rtt: T, max_stage: 0, ..Params::default() });
        let (window, _) = ack(&mut source, hop(1_000_000, 0, 0), 0);
        close(window, 125_000.0, 1e-12);
        let (window, _) = ack(&mut source, hop(1_000_100, 1, 0), 0);
        assert!(window.is_finite() && window <= 125_000.001, "{window}");
    }

    /// `[hpcc-2019:alg1.9]` A load of 0.5 over 4 of 10 µs weighs 0.4. Divided in integers, 4/10 is 0, and U stays 1.
    #[test]
    fn hpcc_2019_the_load_is_smoothed_over_the_base_rtt() {
        for (reading, load) in [(Reading::Paper, 0.8), (Reading::Htsim, 1.0)] {
            let mut source = started(&Params { base_rtt: T, reading, ..Params::default() });
            ack(&mut source, hop(4000, 25_000, 0), 9);
            close(source.state.expect("a state").level, load, 1e-12);
        }
    }

    /// In the ns-3 of PowerTCP's authors, the host's own link writes no record: it is full, but U falls to the 0.5 of the
    /// switch. W counts payload: 125,000 bytes are 89 packets with 1418 each. No rate is below 100 Mbit/s.
    #[test]
    fn ns3_counts_payload_and_no_record_of_the_host() {
        let params = Params { base_rtt: T, reading: Reading::Ns3, ..Params::default() };
        let mut source = Source::new(&params, &connection());
        let path =
            |i: u64, queue| [Hop { link: 1, ..hop(10_000 * i, 125_000 * i, 9000) }, hop(10_000 * i, 62_500 * i, queue)];
        let mut ack = |hops: &[Hop]| {
            source.on_stack(&stack(hops));
            let packet = connection().packet;
            source.on_ack(&Ack { acked: packet, ..Ack::new(hops[0].time, Int::default(), T) });
            let state = source.state.as_ref().expect("a state");
            (state.level, source.limit().window.expect("a window").as_bytes(), state.window.as_bytes())
        };
        close(ack(&path(1, 0)).1, 89.0 * 1500.0, 1e-12);
        close(ack(&path(2, 0)).0, 0.5, 1e-12);
        ack(&path(3, u32::MAX));
        close(ack(&path(4, u32::MAX)).2, 125.0, 1e-12);
    }

    /// Without W_c, each acknowledgement halves the window, and the rate is the mean since the first acknowledgement.
    #[test]
    fn htsim_compounds_its_reactions() {
        let params = Params { base_rtt: T, reading: Reading::Htsim, ..Params::default() };
        let mut source = started(&params);
        source.state.as_mut().expect("a state").last = stack(&[hop(0, 0, 112_500)]);
        let mut expected = 125_000.0;
        for i in 1..=3 {
            expected = expected / 2.0 + 62.5;
            let (window, _) = ack(&mut source, hop(10_000 * i, 125_000 * i, 112_500), 9);
            close(window, expected, 1e-12);
        }
        assert_eq!(source.state.expect("a state").last.hops()[0].time, Instant::ZERO);
    }
}
