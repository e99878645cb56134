//! Parameters of AECP.

use crate::kernel::Arithmetic;
use crate::params::{ParamError, require};
use crate::units::Duration;

use super::{SLOWEST, fastest};

crate::choice! {
    /// Weight of r in a source's step.
    pub enum Form {
        /// Weight αT₁, as printed in eq. 47 and 48.
        Printed = "printed",
        /// Weight 1 − e^(−αT₁), the solution of eq. 3.
        Exact = "exact",
    }
}

crate::choice! {
    /// Interval between a source's steps.
    pub enum SourceStep {
        /// One step per RTT.
        RoundTrip = "round-trip",
        /// One step per acknowledgement. With `form = "exact"` these steps are eq. 3 without sampling.
        Acknowledgement = "acknowledgement",
    }
}

crate::choice! {
    /// Quantity that the rate x of a source limits.
    pub enum SourceKind {
        /// Sending rate of the source, which paces its packets and has no window.
        Rate = "rate",
        /// Data in flight, in a window of x·τ that acknowledgements clock.
        Window = "window",
    }
}

crate::choice! {
    /// RTT τ used to compute the window x·τ.
    pub enum WindowRtt {
        /// RTT of the acknowledgement that set x, including queueing delay.
        Latest = "latest",
        /// Smallest RTT so far.
        Base = "base",
    }
}

crate::choice! {
    /// Initial value of a link's factor.
    pub enum First {
        /// Initial rate x_0 of a source.
        SourceRate = "x_0",
        /// Capacity C of the link.
        Capacity = "capacity",
    }
}

crate::choice! {
    /// Maximum of a link's factor.
    pub enum Ceiling {
        /// C + q₀/T, the equilibrium of eq. 2 with an empty queue.
        EmptyQueue = "empty-queue",
        /// Capacity C of the link.
        Capacity = "capacity",
    }
}

crate::choice! {
    /// Rounding of a factor to a code.
    pub enum Rounding {
        /// Nearest code; the remainder is carried over to the next packet.
        Carried = "carried",
        /// Nearest code, without a carry.
        Nearest = "nearest",
    }
}

crate::carriage::params_with_carriage! {
    /// Parameters of AECP (§4.3 and §5). The relations β = α/2 and T = 4/α are `[aecp-2010:eq43]`.
    pub struct Params {
        /// Speed α of a source's approach to the factor, per second.
        alpha: f64 = 2.0, "aecp-2010 §4.3",
            kernel scaled(1e3, 0.001..=1e3);
        /// Growth rate β of the factor on an idle link, per second.
        beta: f64 = 1.0, "aecp-2010 §4.3",
            kernel scaled(1e3, 0.001..=1e3);
        /// Time T over which a queue beyond q_0 counts as load.
        t: Duration = Duration::from_millis(2000), "aecp-2010 §4.3",
            kernel micros(1e-3..=1e3);
        /// Sampling interval T_2 of a router.
        t_2: Duration = Duration::from_millis(100), "aecp-2010 §5",
            kernel micros(1e-3..=1.0);
        /// Target queue length q_0, in packets.
        q_0: f64 = 100.0, "aecp-2010 §5",
            kernel scaled(1e3, 0.0..=4e6);
        /// Initial rate of a source, in packets/s, until it receives a factor.
        x_0: f64 = 10.0, "not given; chosen here",
            kernel scaled(1e3, 0.25..=4e6);
        /// Initial factor of a link.
        r_0: First = First::SourceRate, "not given; aecp-2010 Theorem 2's first case",
            kernel word();
        /// Formula for the weight of r in a source's step.
        form: Form = Form::Printed, "aecp-2010 eq. 48",
            kernel word();
        /// Interval between a source's steps.
        step: SourceStep = SourceStep::RoundTrip, "aecp-2010 §5.2, T_1 = τ",
            kernel word();
        /// Quantity that the rate x limits: the sending rate, or a window of x·τ.
        source: SourceKind = SourceKind::Rate, "aecp-2010 §5.2 adjusts \"the sending rate\"; the window is a TCP sender's",
            kernel default_only();
        /// RTT that is used for the window x·τ (only with `source = "window"`).
        window_rtt: WindowRtt = WindowRtt::Latest, "aecp-2010 §5.2: \"tracks the RTT\"";
        /// Maximum of a link's factor.
        ceiling: Ceiling = Ceiling::EmptyQueue, "not given; aecp-2010 eq. 2 at rest",
            kernel word();
        /// Rounding of the factor to a code.
        rounding: Rounding = Rounding::Carried, "not given; chosen here",
            kernel word();
    } and {
        /// Arithmetic of the law: real numbers, or the fixed-point version that the kernel runs.
        arithmetic: Arithmetic = Arithmetic::Real, "none; `kernel` is kernel/aecp.h";
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.alpha > 0.0, "alpha", "a number above zero")?;
        require(self.beta > 0.0, "beta", "a number above zero")?;
        require(!self.t.is_zero(), "t", "a time above zero")?;
        require(!self.t_2.is_zero(), "t_2", "a time above zero")?;
        require(self.q_0 >= 0.0, "q_0", "a number of packets, at least 0")?;
        require(
            (SLOWEST..=fastest()).contains(&self.x_0),
            "x_0",
            "packets/s that the header can carry, from 0.25 to 4.6e18",
        )?;
        self.check_carriage()?;
        let real = self.arithmetic == Arithmetic::Real;
        let growth = self.beta * self.t_2.as_secs();
        require(real || growth <= 0.69, "beta", "at most 0.69/t_2 in kernel arithmetic, which doubles r in t_2")?;
        require(real || self.t >= self.t_2, "t", "at least t_2 in kernel arithmetic")
    }
}
