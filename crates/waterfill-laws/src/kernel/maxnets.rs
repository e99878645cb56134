//! Parameters of both MaxNets for tests that record calls, in the scales of their headers. In the simulator both have
//! routers, receivers and sources of their own, older than [`KernelLaw`](super::KernelLaw).

use super::Field;

/// `struct law_params` of `kernel/maxnet.h`: the defaults, or with every switch the other way.
fn maxnet(other: bool) -> Vec<Field> {
    vec![
        Field::U64("source.x_max", 1_000_000_000_000_000),
        Field::U32("source.alpha", 660),
        Field::U32("source.eta", 60),
        Field::U32("source.t", 400),
        Field::U32("source.dt_min", 1),
        Field::flag("source.average", !other),
        Field::flag("source.compensate", !other),
        Field::flag("source.xi_first", !other),
        Field::U32("source.reserved", 0),
        Field::U32("dt_p", 1000),
        Field::U32("t_0", 130000),
        Field::flag("promise", other),
        Field::U32("reserved", 0),
    ]
}

/// `struct law_params` of `kernel/maxnet2006.h`: likewise.
fn maxnet2006(other: bool) -> Vec<Field> {
    vec![
        Field::U64("source.x_max", 1_000_000_000_000_000),
        Field::U32("source.alpha", 300),
        Field::U32("source.eta", 140),
        Field::U32("source.t", 50),
        Field::U32("source.dt", 1000),
        Field::U32("source.rtt_unit", 1000),
        Field::U32("source.rateinc", 1250),
        Field::U32("source.mindeltaq", 16000),
        Field::U32("source.wnd_update_freq", if other { 4 } else { 1 }),
        Field::U32("source.max_wnd", 65535),
        Field::flag("source.average", !other),
        Field::flag("source.compensate", !other),
        Field::U32("source.reserved", 0),
        Field::U32("epsilon", if other { 20000 } else { 0 }),
        Field::U32("qs_min_divisor", 128),
        Field::U32("dt", 1000),
        Field::flag("quickstart", !other),
    ]
}

/// MaxNet's parameter sets.
pub(super) fn maxnet_sets() -> Vec<Vec<Field>> {
    [false, true].map(maxnet).into()
}

/// MaxNet 2006's parameter sets.
pub(super) fn maxnet2006_sets() -> Vec<Vec<Field>> {
    [false, true].map(maxnet2006).into()
}
