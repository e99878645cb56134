//! Parameters of the 2006 thesis's law (§4.2 and §4.3).

use crate::params::{ParamError, require};
use crate::protocols::maxnet::{PriceUnit, check_x_min};
use crate::units::{Duration, Rate};

crate::choice! {
    /// Number system for the computation of the law.
    pub enum Arithmetic {
        /// Real numbers.
        Real = "real",
        /// Fixed-point numbers, computed by `kernel/maxnet2006.h`.
        Kernel = "kernel",
        /// Fixed-point numbers, with the additions of the kernel's program at hosts (`kernel/host.h`).
        KernelHost = "kernel-host",
        /// Integers as the thesis prints them: units of 2⁻¹⁸, thousandths, milliseconds, a table of 64,000 records, and
        /// whole packets.
        Printed = "printed",
    }
}

crate::carriage::params_with_carriage! {
    /// Parameters of the thesis's law (§4.2 and §4.3).
    pub struct Params {
        /// Maximum supported rate x_max.
        x_max: Rate = Rate::from_bps(1e15), "tcp-maxnet-2006 §3.3",
            kernel whole(32.0..=1e15);
        /// Minimum rate x_min of the demand function, which bounds prices by p_max = T·ln(x_max/x_min).
        x_min: Rate = Rate::from_bps(32.0), "tcp-maxnet-2006 §3.3; as a bound of prices, our reading",
            kernel whole(32.0..=1e15);
        /// Speed of convergence T of the demand function.
        t: Duration = Duration::from_millis(50), "tcp-maxnet-2006 §4.3, tcp_maxnet_T",
            kernel millis(1e-3..=100.0);
        /// Convergence parameter α.
        alpha: f64 = 0.3, "tcp-maxnet-2006 §4.3, tcp_maxnet_alpha",
            kernel scaled(1e3, 0.001..=1.571);
        /// Convergence parameter η.
        eta: f64 = 0.14, "tcp-maxnet-2006 §4.3, tcp_maxnet_eta",
            kernel scaled(1e3, 0.001..=65.535);
        /// Minimum time between two updates of ξ and the window.
        dt_source: Duration = Duration::from_millis(1), "the dt of tcp-maxnet-2006 §4.2, taken for Fig. 5's too",
            kernel micros(0.0..=1.0).member("source.dt");
        /// Number of acknowledgements between two updates of ξ and the window.
        wnd_update_freq: u32 = 1, "tcp-maxnet-2006 §4.3, tcp_maxnet_wnd_update_freq",
            kernel at_least(1.0);
        /// Maximum window, in packets.
        max_wnd: u32 = 65_535, "tcp-maxnet-2006 §4.3, tcp_maxnet_max_wnd",
            kernel whole(1.0..=67_108_864.0);
        /// Start a connection at a rate that routers grant.
        quickstart: bool = true, "tcp-maxnet-2006 §4.3, tcp_maxnet_QS_enabled",
            kernel word();
        /// Growth factor of the start rate per RTT.
        rateinc: f64 = 1.25, "our choice: the thesis gives no value",
            kernel scaled(1e3, 1.001..=16.0);
        /// Rise of the price, in 2⁻¹⁸ per second, that stops the rise of the start rate.
        mindeltaq: u32 = 16_000, "tcp-maxnet-2006 §4.3, tcp_maxnet_dpdt_threshold",
            kernel at_least(0.0);
        /// Average prices over one RTT at the source.
        average: bool = true, "tcp-maxnet-2006 §4.5",
            kernel word();
        /// Correct ξ when the base RTT changes (eq. 12).
        compensate: bool = true, "tcp-maxnet-2006 §4.5",
            kernel word();
        /// Target utilization μ of a link.
        mu: f64 = 0.94, "tcp-maxnet-2006 §4.2",
            kernel link_target(1e-6..=1.0);
        /// Fraction ε of the capacity that start rates may use above the target.
        epsilon: f64 = 0.0, "tcp-maxnet-2006 §4.2",
            kernel scaled(1e6, 0.0..=1.0);
        /// Divisor of the link's capacity that gives the minimum start rate.
        qs_min_divisor: u32 = 128, "tcp-maxnet-2006 §4.2: QSminrate = C/128",
            kernel at_least(1.0);
        /// Interval dt between two price updates of a router.
        dt: Duration = Duration::from_millis(1), "tcp-maxnet-2006 §4.2",
            kernel micros(1e-6..=1.0);
        /// Unit of prices in a packet's header; 0 means 2⁻¹⁸ s.
        price_unit: Duration = Duration::ZERO, "tcp-maxnet-2006 §3.3: 18 fractional bits",
            kernel default_only();
        /// Marking interval n: a router marks every n-th packet, and every SYN.
        mark_every: u32 = 1, "tcp-maxnet-2006 §6";
    } and {
        /// Arithmetic of the law: real numbers, the fixed-point version, or the thesis's integers as printed.
        arithmetic: Arithmetic = Arithmetic::Real, "tcp-maxnet-2006 §4.1 and §4.3 for printed";
        /// Unit to which the fixed-point version rounds a base RTT.
        rtt_unit: Duration = Duration::from_millis(1), "tcp-maxnet-2006 §4.1: baseRTT × 1000",
            kernel micros(1e-6..=1.0);
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        require(
            self.x_max.as_bps() > 0.0 && self.x_max.as_bps() <= 1e18,
            "x_max",
            "a rate above zero, up to 1e18 bit/s",
        )?;
        check_x_min(self.x_min, self.x_max)?;
        require(!self.t.is_zero(), "t", "a time above zero")?;
        require(
            self.alpha > 0.0 && self.alpha < std::f64::consts::FRAC_PI_2,
            "alpha",
            "a number in (0, π/2), by maxnet-2007 eq. 4",
        )?;
        require(self.eta > 0.0 && self.eta <= 1e6, "eta", "a number above zero, up to 1e6")?;
        require(self.wnd_update_freq > 0, "wnd_update_freq", "at least 1")?;
        require(self.max_wnd > 0, "max_wnd", "at least 1")?;
        // One that does not grow never ends QuickStart; sixteenfold is past any use and keeps integers in range.
        require(self.rateinc > 1.0 && self.rateinc <= 16.0, "rateinc", "a number in (1, 16]")?;
        require(self.price_unit <= PriceUnit::MAX, "price_unit", "a time up to 4 ms, or 0 for 2⁻¹⁸ s")?;
        require(self.mu > 0.0 && self.mu <= 1.0, "mu", "a number in (0, 1]")?;
        require((0.0..=1.0).contains(&self.epsilon), "epsilon", "a number in [0, 1]")?;
        require(self.qs_min_divisor > 0, "qs_min_divisor", "at least 1")?;
        require(self.mark_every > 0, "mark_every", "at least 1")?;
        let marks_all = self.mark_every == 1 || matches!(self.arithmetic, Arithmetic::Real | Arithmetic::Printed);
        require(marks_all, "mark_every", "1 in kernel arithmetic, as a kernel marks every packet")?;
        require(!self.dt.is_zero(), "dt", "a time above zero")?;
        let paper = self.price_unit.is_zero() || self.arithmetic != Arithmetic::Printed;
        require(paper, "price_unit", "0 with the integers as printed")?;
        self.check_carriage()
    }
}
