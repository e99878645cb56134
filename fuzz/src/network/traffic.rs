//! Load next to the flows.

use arbitrary::Unstructured;
use waterfill_laws::units::{Duration, Rate};
use waterfill_network::{ArrivalSpec, Distribution, PeriodSpec, TrafficKind, TrafficSpec};

use crate::input::{below, byte, decades};

pub(super) fn traffic(u: &mut Unstructured<'_>, i: u8, links: usize, duration_s: f64, rate_max: f64) -> TrafficSpec {
    let path = super::path(u, links);
    let rate = Rate::from_bps(decades(u, rate_max / 1e3, rate_max * 2.0));
    let start_s = duration_s * f64::from(byte(u)) / 512.0;
    let span = [start_s, start_s + duration_s * f64::from(byte(u)) / 256.0].map(Duration::from_secs);
    let mut source = TrafficSpec::cbr(&format!("t{i}"), &path, rate, span);
    source.packet_bytes = [1500, 40, 9000][below(u, 3)];
    source.kind = [TrafficKind::Cbr, TrafficKind::Poisson, TrafficKind::OnOff, TrafficKind::Web][below(u, 4)];
    match source.kind {
        TrafficKind::OnOff => {
            let packet_s = f64::from(source.packet_bytes) * 8.0 / rate.as_bps();
            let [on_s, off_s] = [(); 2].map(|()| packet_s * decades(u, 1.0, 100.0));
            source.periods = Some(PeriodSpec { on_s: distribution(u, on_s), off_s: distribution(u, off_s) });
        }
        TrafficKind::Web => {
            source.rate_bps = None;
            let size = decades(u, 1.0, 1e5);
            let mut flow = super::flow(u, i, links, duration_s, rate_max);
            flow.count = 1;
            source.flows = Some(ArrivalSpec {
                arrivals_per_s: decades(u, 1.0, 100.0) / duration_s,
                at_s: Vec::new(),
                sizes_bytes: distribution(u, size),
                flow,
                routes: Vec::new(),
                pairs: Vec::new(),
                fan_in: 1,
            });
        }
        TrafficKind::Cbr | TrafficKind::Poisson => {
            source.access_bps = (byte(u) & 1 == 1).then(|| rate.as_bps() * decades(u, 1.0, 10.0));
        }
    }
    source
}

fn distribution(u: &mut Unstructured<'_>, mean: f64) -> Distribution {
    match byte(u) % 4 {
        0 => Distribution::Constant { mean },
        1 => Distribution::Exponential { mean },
        2 => {
            let max = (byte(u) & 1 == 1).then(|| mean * decades(u, 1.01, 1e3));
            Distribution::Pareto { mean, shape: decades(u, 1.01, 10.0), max }
        }
        _ => Distribution::Empirical { points: vec![[mean / 2.0, 0.0], [mean, 0.5], [mean * 2.0, 1.0]] },
    }
}
