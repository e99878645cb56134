//! Benchmark of the cohabitation module without a network: time per packet, memory, and estimation error.

use rand_core::Rng as _;
use rand_pcg::Pcg64;
use waterfill_laws::registry::{AnyHeader, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Rate};
use waterfill_network::CohabitSpec;
use waterfill_network::random::below;

use super::{Class, Cohabit};
use crate::packet::{Cargo, Flags, Packet, Role, SackId};
use crate::queue::discipline::QueueContext;

/// Cohabitation module on a 10 Gbit/s link. Full packets arrive from flows drawn at random, ten in eleven of them
/// explicit.
#[derive(Debug)]
pub struct ModuleBench {
    module: Cohabit,
    headers: [AnyHeader; 2],
    flows: [usize; 2],
    now: Instant,
    rng: Pcg64,
}

impl ModuleBench {
    /// Builds a module for this many flows, ten in eleven of them explicit.
    ///
    /// # Errors
    /// One sentence: which parameter is out of range.
    pub fn new(spec: &CohabitSpec, flows: u32) -> Result<Self, String> {
        spec.check()?;
        let context = QueueContext { capacity: Rate::from_bps(1e10), packet_bytes: 1500, rng: Pcg64::new(1, 1) };
        let header = |id: ProtocolId| id.decode_header(&[0; 64]).ok_or("a header of zeros");
        let tcp = (flows as usize / 11).max(1);
        Ok(Self {
            module: Cohabit::new(spec, context),
            headers: [header(ProtocolId::Rcp)?, header(ProtocolId::Reno)?],
            flows: [flows as usize - tcp, tcp],
            now: Instant::ZERO,
            rng: Pcg64::new(2, 1),
        })
    }

    /// Sends `count` packets through the module at the link's rate.
    pub fn run(&mut self, count: u32) {
        let all = self.flows[0] + self.flows[1];
        for _ in 0..count {
            self.now += Duration::from_ps(1_200_000); // 1500 B at 10 Gbit/s
            let flow = below(&mut self.rng, all);
            let class = usize::from(flow >= self.flows[0]);
            let packet = Packet {
                flow: flow as u32,
                to: flow as u32,
                place: 0,
                bytes: 1500,
                incarnation: 0,
                role: Role::Data,
                flags: Flags::default(),
                sack: SackId::NONE,
                number: 0,
                sent: self.now,
                echoed: Instant::ZERO,
                cargo: Cargo::Header(self.headers[class]),
            };
            self.module.on_arrival(self.now, &packet);
        }
    }

    /// Draws `count` packets without the module, to measure the benchmark's own cost.
    pub fn run_baseline(&mut self, count: u32) -> u64 {
        let all = self.flows[0] + self.flows[1];
        (0..count).fold(0, |sum, _| sum ^ below(&mut self.rng, all) as u64 ^ self.rng.next_u64())
    }

    /// Returns the estimated and true numbers of flows, first of the explicit class, then of the TCP class.
    #[must_use]
    pub fn estimates(&mut self) -> [(f64, usize); 2] {
        let found = self.module.estimator.flows(self.now);
        [(found[Class::Explicit], self.flows[0]), (found[Class::Tcp], self.flows[1])]
    }

    /// Returns the size of the module's state, in bytes.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.module.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waterfill_network::{ControllerSpec, CountDrops, EstimatorSpec, HashKey, Trials};

    fn state_bytes(estimator: EstimatorSpec, flows: u32) -> usize {
        let spec = CohabitSpec {
            controller: ControllerSpec::Off,
            estimator,
            inspect: 1.0,
            interval_s: 0.02,
            interval_of_law: false,
            count_drops: CountDrops::Never,
            explicit_weight: 1.0,
            ecn: true,
        };
        let mut bench = ModuleBench::new(&spec, flows).expect("a valid specification");
        bench.run(3 * flows);
        bench.state_bytes()
    }

    #[test]
    fn only_the_exact_estimators_state_grows_with_flows() {
        let sred =
            EstimatorSpec::Sred { size: 1000, replace: 0.25, delta: 0.00025, shared: false, trials: Trials::Class };
        let nred = EstimatorSpec::Nred { levels: 4, bins: 4096, period_s: 2.0, hash: HashKey::Flow };
        let exact = EstimatorSpec::Exact { period_s: 2.0 };
        for estimator in [sred, nred] {
            assert_eq!(state_bytes(estimator.clone(), 20_000), state_bytes(estimator, 100_000));
        }
        assert!(state_bytes(exact.clone(), 100_000) > 4 * state_bytes(exact, 20_000));
    }
}
