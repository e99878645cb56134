//! Queue disciplines with any parameters.

use arbitrary::Unstructured;
use waterfill_network::{
    CodelSpec, CohabitSpec, ControllerSpec, CountDrops, DualPi2Spec, EstimatorSpec, FqCodelSpec, FqPieSpec, HashKey,
    Level, PacketClass, PieSpec, QueueSpec, RedSpec, Trials, UpdateSpec,
};

use crate::input::{below, byte, decades};

pub(super) fn queue(u: &mut Unstructured<'_>, duration_s: f64) -> QueueSpec {
    match byte(u) % 9 {
        0 => QueueSpec::Droptail { mark_at: Some(level(u)), ramp: None },
        1 => QueueSpec::Red(red(u)),
        2 => QueueSpec::Choke(red(u)),
        3 => QueueSpec::Codel(codel(u, duration_s)),
        4 => QueueSpec::FqCodel(FqCodelSpec {
            codel: codel(u, duration_s),
            quantum_bytes: u32::from(byte(u)) * 64,
            flows: 1 + u32::from(byte(u)),
        }),
        5 => QueueSpec::Pie(pie(u, duration_s)),
        6 => QueueSpec::FqPie(FqPieSpec {
            pie: pie(u, duration_s),
            quantum_bytes: u32::from(byte(u)) * 64,
            flows: 1 + u32::from(byte(u)),
        }),
        7 => QueueSpec::DualPi2(DualPi2Spec {
            target_s: decades(u, duration_s / 1e4, duration_s),
            rtt_max_s: decades(u, duration_s / 1e3, duration_s),
            coupling: decades(u, 0.1, 100.0),
            ramp_start_s: decades(u, duration_s / 1e4, duration_s),
            ramp_range_s: decades(u, duration_s / 1e4, duration_s),
            ramp_packets: u64::from(byte(u)),
            classic_share: share(u) / 2.0,
        }),
        _ => QueueSpec::Cohabit(cohabit(u, duration_s)),
    }
}

fn share(u: &mut Unstructured<'_>) -> f64 {
    f64::from(1 + u16::from(byte(u))) / 256.0
}

fn level(u: &mut Unstructured<'_>) -> Level {
    if byte(u) & 1 == 0 { Level::Packets(f64::from(byte(u))) } else { Level::Bytes(decades(u, 1.0, 1e6)) }
}

fn red(u: &mut Unstructured<'_>) -> RedSpec {
    let min_threshold = level(u);
    let more = min_threshold.amount() + decades(u, 0.1, 1e6);
    RedSpec {
        min_threshold,
        max_threshold: match min_threshold {
            Level::Bytes(_) => Level::Bytes(more),
            Level::Packets(_) => Level::Packets(more),
        },
        max_p: share(u),
        weight: share(u),
        gentle: byte(u) & 1 == 1,
        ecn: byte(u) & 1 == 1,
    }
}

fn codel(u: &mut Unstructured<'_>, duration_s: f64) -> CodelSpec {
    let target_s = decades(u, duration_s / 1e4, duration_s);
    CodelSpec { target_s, interval_s: target_s * decades(u, 1.01, 100.0), ecn: byte(u) & 1 == 1 }
}

fn pie(u: &mut Unstructured<'_>, duration_s: f64) -> PieSpec {
    PieSpec {
        target_s: decades(u, duration_s / 1e4, duration_s),
        update_s: decades(u, duration_s / 1e4, duration_s),
        alpha_hz: decades(u, 1e-3, 1e3),
        beta_hz: decades(u, 1e-3, 1e3),
        max_burst_s: decades(u, duration_s / 1e4, duration_s),
        ecn: byte(u) & 1 == 1,
        mark_below: share(u),
    }
}

fn cohabit(u: &mut Unstructured<'_>, duration_s: f64) -> CohabitSpec {
    let time = |u: &mut Unstructured<'_>| decades(u, duration_s / 1e3, duration_s);
    CohabitSpec {
        controller: match byte(u) % 4 {
            0 => ControllerSpec::Off,
            1 => ControllerSpec::Separate,
            2 => ControllerSpec::Improved {
                aim: share(u),
                integral: decades(u, 1e-3, 1e3),
                proportional: decades(u, 1e-3, 1e3),
                depth_s: time(u),
            },
            _ => ControllerSpec::Paper {
                initial: share(u),
                decrease: share(u) * 0.999,
                increase: decades(u, 1.001, 1e3),
                threshold: share(u),
                update: match byte(u) % 3 {
                    0 => UpdateSpec::Interval,
                    1 => UpdateSpec::Packet {
                        packets: [PacketClass::All, PacketClass::Explicit, PacketClass::Tcp][below(u, 3)],
                    },
                    _ => UpdateSpec::Period { period_s: time(u) },
                },
            },
        },
        estimator: match byte(u) % 3 {
            0 => EstimatorSpec::Exact { period_s: time(u) },
            1 => EstimatorSpec::Sred {
                size: 1 + u32::from(byte(u)),
                replace: share(u),
                delta: share(u),
                shared: byte(u) & 1 == 1,
                trials: [Trials::Class, Trials::All][below(u, 2)],
            },
            _ => EstimatorSpec::Nred {
                levels: 1 + u32::from(byte(u)) % 8,
                bins: 1 + u32::from(byte(u)),
                period_s: time(u),
                hash: [HashKey::Flow, HashKey::Pair][below(u, 2)],
            },
        },
        inspect: share(u),
        interval_s: time(u),
        interval_of_law: byte(u) & 1 == 1,
        count_drops: [CountDrops::Never, CountDrops::Module, CountDrops::Router][below(u, 3)],
        explicit_weight: decades(u, 1e-3, 1e3),
        ecn: byte(u) & 1 == 1,
    }
}
