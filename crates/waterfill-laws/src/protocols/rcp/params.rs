//! Parameters of RCP.

use crate::kernel::Arithmetic;
use crate::params::{ParamError, require};
use crate::units::{Duration, Rate};

crate::choice! {
    /// Average d̂ of the traffic's RTTs.
    pub enum Average {
        /// Average that falls as fast as it rises.
        Traffic = "traffic",
        /// Average that falls more slowly than it rises, by (R/C)·(sample/d̂).
        Reluctant = "reluctant",
    }
}

crate::choice! {
    /// Moment when a router writes its rate into a packet.
    pub enum Writes {
        /// Arrival of the packet, before it joins the queue.
        Arrival = "arrival",
        /// Start of the packet's transmission.
        Departure = "departure",
    }
}

crate::carriage::params_with_carriage! {
    /// Parameters of RCP's router.
    pub struct Params {
        /// Gain α of the spare capacity.
        alpha: f64 = 0.4, "maxnet-2007 §IX",
            kernel scaled(1e3, 0.001..=1.0);
        /// Gain β of the queue term.
        beta: f64 = 1.0, "maxnet-2007 §IX",
            kernel scaled(1e3, 0.0..=65.535);
        /// Initial rate of a link, as a fraction of its capacity.
        first_rate: f64 = 0.05, "the authors' ns-2 model",
            kernel scaled(1e6, 1e-6..=1.0);
        /// Maximum time T between two updates of a rate.
        max_interval: Duration = Duration::from_millis(10), "the authors' ns-2 model",
            kernel micros(10e-6..=1.0);
        /// Initial average RTT, until packets have reported one.
        first_rtt: Duration = Duration::from_millis(200), "the authors' ns-2 model",
            kernel micros(10e-6..=8.0);
        /// Unit of the RTT in a packet's header.
        rtt_unit: Duration = Duration::from_micros(1), "chosen here: 32 bits of µs",
            kernel default_only();
        /// Minimum of a link's average RTT d̂.
        min_rtt: Duration = Duration::from_micros(10), "chosen here; the ns-2 model has none",
            kernel default_only();
        /// Minimum rate of a link, R_min.
        r_min: Rate = Rate::from_bps(24e3), "1500 B in 0.5 s, the ns-2 model's longest time without asking",
            kernel whole(13.0..=4e9);
        /// Average of the traffic's RTTs.
        average: Average = Average::Traffic, "maxnet-2007 §IX: traffic-weighted",
            kernel word();
        /// Moment when a packet receives the link's rate.
        writes: Writes = Writes::Arrival, "the papers do not say; at departure in the authors' ns-2 model",
            kernel default_only();
    } and {
        /// Arithmetic of the law: real numbers, or the fixed-point version that the kernel runs.
        arithmetic: Arithmetic = Arithmetic::Real, "none; `kernel` is kernel/rcp.h";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.alpha > 0.0, "alpha", "a number above zero")?;
        require(self.beta >= 0.0, "beta", "a number, at least 0")?;
        require(self.first_rate > 0.0 && self.first_rate <= 1.0, "first_rate", "a share of capacity in (0, 1]")?;
        require(!self.max_interval.is_zero(), "max_interval", "a time above zero")?;
        require(!self.first_rtt.is_zero(), "first_rtt", "a time above zero")?;
        require(!self.rtt_unit.is_zero(), "rtt_unit", "a time above zero")?;
        require(!self.min_rtt.is_zero(), "min_rtt", "a time above zero")?;
        require(self.r_min.as_bps() > 0.0, "r_min", "a rate above zero")?;
        self.check_carriage()
    }
}
