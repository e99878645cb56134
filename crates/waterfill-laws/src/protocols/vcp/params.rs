//! Parameters of VCP.

use crate::kernel::Arithmetic;
use crate::params::{ParamError, require};
use crate::units::Duration;

crate::choice! {
    /// Reaction to a code below overload during the t_ρ after MD.
    pub enum Freeze {
        /// No reaction: the window stays constant.
        Always = "always",
        /// AI or MI, as usual: the freeze applies to overload only.
        Overload = "overload",
    }
}

crate::params! {
    /// Parameters of VCP.
    pub struct Params {
        /// Interval t_ρ of a load measurement.
        t_rho: Duration = Duration::from_millis(200), "vcp-2005",
            kernel micros(100e-6..=10.0);
        /// Interval t_q of queue samples.
        t_q: Duration = Duration::from_millis(10), "vcp-2005",
            kernel micros(100e-6..=10.0);
        /// Weight κ_q of the persistent queue in the load factor.
        kappa_q: f64 = 0.5, "vcp-2005",
            kernel scaled(1e3, 0.0..=65.535);
        /// Target utilization γ of a link.
        gamma: f64 = 0.98, "vcp-2005",
            kernel scaled(1e6, 1e-6..=1.0);
        /// Weight of the newest interval in the persistent queue.
        queue_weight: f64 = 0.25, "the authors' ns-2 code",
            kernel scaled(1e6, 1e-6..=1.0);
        /// Increase ξ per t_ρ in multiplicative increase (MI).
        xi: f64 = 0.0625, "vcp-2005",
            kernel scaled(1e6, 1e-6..=1.0);
        /// Increase α per t_ρ in additive increase (AI), in packets.
        alpha: f64 = 1.0, "vcp-2005",
            kernel scaled(1e3, 0.001..=1e3);
        /// Factor β of multiplicative decrease (MD).
        beta: f64 = 0.875, "vcp-2005",
            kernel scaled(1e6, 1e-6..=0.999999);
        /// Increases that a source suspends during the t_ρ after MD.
        freeze: Freeze = Freeze::Always, "vcp-2005; overload: the authors' ns-2 code",
            kernel word();
        /// Round the load factor up to whole per cent, which reaches both levels up to 1 % earlier.
        whole_percent: bool = false, "vcp-2005 (true in the authors' ns-2 code)",
            kernel word();
        /// Reference RTT t_d, for which AI is not scaled.
        t_d: Duration = Duration::from_millis(200), "vcp-2005: t_rho (100 ms in the authors' ns-2 code)",
            kernel micros(1e-3..=10.0);
        /// RTT below which AI is scaled in proportion to the RTT, not to its square.
        ai_rtt_min: Duration = Duration::from_millis(20), "the authors' ns-2 code",
            kernel default_only();
        /// RTT above which AI is scaled in proportion to the RTT again.
        ai_rtt_max: Duration = Duration::from_millis(500), "the authors' ns-2 code",
            kernel default_only();
        /// Arithmetic of the law: real numbers, or the fixed-point version that the kernel runs.
        arithmetic: Arithmetic = Arithmetic::Real, "none; `kernel` is kernel/vcp.h";
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), ParamError> {
        require(!self.t_rho.is_zero(), "t_rho", "a time above zero")?;
        require(!self.t_q.is_zero() && self.t_q <= self.t_rho, "t_q", "a time above zero, at most t_rho")?;
        require((0.0..=1e6).contains(&self.kappa_q), "kappa_q", "a number from 0 to 1e6")?;
        require((1e-6..=1.0).contains(&self.gamma), "gamma", "a number from 1e-6 to 1")?;
        require(self.queue_weight > 0.0 && self.queue_weight <= 1.0, "queue_weight", "a number in (0, 1]")?;
        require(self.xi > 0.0 && self.xi <= 1.0, "xi", "a number in (0, 1]: doubling in t_rho is slow start's pace")?;
        require(self.alpha > 0.0 && self.alpha <= 1e6, "alpha", "a number above 0, up to 1e6")?;
        require(self.beta > 0.0 && self.beta < 1.0, "beta", "a number in (0, 1)")?;
        require(!self.t_d.is_zero(), "t_d", "a time above zero")?;
        require(self.ai_rtt_min <= self.ai_rtt_max, "ai_rtt_min", "a time up to ai_rtt_max")?;
        let (t_rho, t_q) = (self.t_rho.as_ps(), self.t_q.as_ps());
        let whole = self.arithmetic == Arithmetic::Real || t_rho % t_q == 0 && t_rho / t_q <= 1 << 16;
        require(whole, "t_rho", "up to 65536 times t_q in kernel arithmetic")
    }
}
