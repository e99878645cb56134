//! Parameters of JetMax.

use crate::kernel::Arithmetic;
use crate::params::{ParamError, require};
use crate::units::{Duration, Rate};

crate::params! {
    /// Parameters of JetMax.
    pub struct Params {
        /// Target utilization γ of a link.
        gamma: f64 = 0.95, "ours: headroom of 5 % drains a queue of one RTT in 20",
            kernel scaled(1e6, 1e-6..=1.0);
        /// Gain τ of the source.
        tau: f64 = 0.6, "jetmax-2006 abstract: within 1 % in six control intervals",
            kernel scaled(1e6, 1e-6..=1.999999);
        /// Interval Δ of a router's measurements.
        interval: Duration = Duration::from_millis(100), "ours: at least 8 packets of 1500 B at 1 Mbit/s",
            kernel micros(1e-6..=4.0);
        /// Relative margin by which another router's share must be below the flow's target before the flow joins that
        /// router.
        epsilon: f64 = 0.02, "ours: below 1 - gamma, which then holds what the flow sends too much",
            kernel scaled(1e6, 0.0..=0.999999);
        /// Relative margin below the flow's rate that lets a flow join another router after only one interval.
        urgent: f64 = 0.1, "ours: above the noise of 20 packets in an interval",
            kernel scaled(1e6, 0.0..=0.999999);
        /// Minimum rate of a source.
        x_min: Rate = Rate::from_bps(1e4), "ours: a flow without a target learns of spare capacity within about a second",
            kernel whole(32.0..=1e15);
        /// Arithmetic of the law: real numbers, or the fixed-point version that the kernel runs.
        arithmetic: Arithmetic = Arithmetic::Real, "none; `kernel` is kernel/jetmax.h";
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), ParamError> {
        require(self.gamma > 0.0 && self.gamma <= 1.0, "gamma", "a number in (0, 1]")?;
        require(self.tau > 0.0 && self.tau < 2.0, "tau", "a number in (0, 2), outside which eq. source diverges")?;
        require(!self.interval.is_zero(), "interval", "a time above zero")?;
        require((0.0..1.0).contains(&self.epsilon), "epsilon", "a number in [0, 1)")?;
        require(self.epsilon <= self.urgent && self.urgent < 1.0, "urgent", "a number in [epsilon, 1)")?;
        require((1.0..=1e18).contains(&self.x_min.as_bps()), "x_min", "a rate from 1 bit/s to 1e18 bit/s")
    }
}
