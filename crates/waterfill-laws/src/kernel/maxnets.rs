//! Parameters of both MaxNets for tests that record calls: the defaults, and every switch the other way. In the simulator
//! both have routers, receivers and sources of their own, older than [`KernelLaw`](super::KernelLaw).

use super::Numbers;
use crate::params::Params as _;
use crate::protocols::{maxnet, maxnet2006};

/// MaxNet's parameter sets.
pub(super) fn maxnet_sets() -> Vec<Numbers> {
    let defaults = maxnet::Params::default();
    let other = maxnet::Params {
        average: maxnet::Average::Off,
        compensate: false,
        order: maxnet::Order::RateFirst,
        promise: true,
        ..defaults.clone()
    };
    vec![defaults.kernel_numbers(), other.kernel_numbers()]
}

/// MaxNet 2006's parameter sets.
pub(super) fn maxnet2006_sets() -> Vec<Numbers> {
    let defaults = maxnet2006::Params::default();
    let other = maxnet2006::Params {
        wnd_update_freq: 4,
        average: false,
        compensate: false,
        epsilon: 0.02,
        quickstart: false,
        ..defaults.clone()
    };
    vec![defaults.kernel_numbers(), other.kernel_numbers()]
}
