//! Parameters of MaxNet (§VI), and the check of a link.

use super::{Carrier, PriceUnit, demand_inverse};
use crate::kernel::Arithmetic;
use crate::params::{ParamError, ParamType, Unit, Value, require};
use crate::units::{Duration, Rate};

crate::choice! {
    /// Order of the updates of ξ and the rate in eq. 10.
    pub enum Order {
        /// Update ξ first, as Fig. 2 prints the steps.
        XiFirst = "xi-first",
        /// Update the rate first, from the old ξ.
        RateFirst = "rate-first",
    }
}

/// Average of prices over one RTT at a receiver.
///
/// It was a flag: `true` is still exponential, `false` off, and results have these values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// Exponential average, with the weight dt/τ for each price.
    Exponential,
    /// Mean of the last RTT, with the weight dt for each price.
    Sliding,
    /// No average: the newest price.
    Off,
}

impl ParamType for Average {
    const UNIT: Unit = Unit::Choice(&["exponential", "sliding", "off"]);

    fn to_value(&self) -> Value {
        match self {
            Self::Exponential => Value::Flag(true),
            Self::Sliding => Value::Word("sliding".to_owned()),
            Self::Off => Value::Flag(false),
        }
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Flag(true) => Some(Self::Exponential),
            Value::Flag(false) => Some(Self::Off),
            Value::Word(word) => match word.as_str() {
                "exponential" => Some(Self::Exponential),
                "sliding" => Some(Self::Sliding),
                "off" => Some(Self::Off),
                _ => None,
            },
            Value::Number(_) => None,
        }
    }
}

crate::carriage::params_with_carriage! {
    /// Parameters of MaxNet (§VI).
    pub struct Params {
        /// Maximum supported rate x_max.
        x_max: Rate = Rate::from_bps(1e15), "maxnet-2007 §VI",
            kernel whole(32.0..=1e15);
        /// Minimum rate x_min of the demand function, which bounds prices by p_max = T·ln(x_max/x_min).
        x_min: Rate = Rate::from_bps(32.0), "maxnet-2007 §V; as a bound of prices, our reading",
            kernel whole(32.0..=1e15);
        /// Speed of convergence T of the demand function.
        t: Duration = Duration::from_millis(400), "maxnet-2007 §VI",
            kernel millis(1e-3..=100.0);
        /// Overall loop gain α.
        alpha: f64 = 0.66, "maxnet-2007 §VI",
            kernel scaled(1e3, 0.001..=1.571);
        /// Zero η/τ of the lead-lag compensator.
        eta: f64 = 0.06, "maxnet-2007 §VI",
            kernel scaled(1e3, 0.001..=65.535);
        /// Minimum time between two updates of ξ and W.
        dt_min: Duration = Duration::from_micros(1), "maxnet-2007 §VI",
            kernel micros(0.0..=1.0);
        /// Target utilization μ of a link.
        mu: f64 = 0.9, "maxnet-2007 §VII.A (0.94 in §VII.B)",
            kernel link_target(1e-6..=1.0);
        /// Interval dt_p between two price updates of a router.
        dt_p: Duration = Duration::from_millis(1), "maxnet-2007 §VI",
            kernel micros(1e-6..=1.0);
        /// Time scale T_0 over which a queue counts as load.
        t_0: Duration = Duration::from_millis(130), "maxnet-2007 §VI",
            kernel micros(2e-6..=4e3);
        /// Time over which a router averages the load that MaxStart subtracts. With 0, MaxStart subtracts the load of
        /// the last dt_p.
        load_average: Duration = Duration::ZERO, "tcp-maxnet-2006 §3.1.2: y/dt",
            kernel default_only();
        /// Unit of prices in a packet's header; 0 means 2⁻¹⁸ s.
        price_unit: Duration = Duration::ZERO, "maxnet-2007 §V: 18 fractional bits",
            kernel default_only();
        /// Place of prices in data packets: the option's field, or a CSIG tag of 20 bits (with `code_bits = 5` of 5), whose
        /// unit is T·ln(code_max/code_min)/2^bits.
        carriage: Carrier = Carrier::Option, "maxnet-2007 Fig. 4; csig: SAI 1.18",
            kernel default_only();
        /// Average of prices over one RTT at the receiver; `true` means exponential, `false` means off.
        average: Average = Average::Exponential, "maxnet-2007 §VI: \"averaged … over one RTT\"",
            kernel words(&["off", "exponential"]);
        /// Order of the updates of ξ and the rate in eq. 10.
        order: Order = Order::XiFirst, "maxnet-2007 Fig. 2",
            kernel words(&["rate-first", "xi-first"]).member("xi_first");
        /// Let a router remember, for T_0, the start rates that it granted.
        promise: bool = false, "maxnet-2007 §IV.B, further enhancements",
            kernel word();
        /// Correct ξ when the base RTT changes.
        compensate: bool = true, "tcp-maxnet-2006 eq. 12; not in maxnet-2007",
            kernel word();
        /// Send at the rate x, paced, instead of a window of x·τ in whole packets. A rate may then be below one packet per
        /// RTT.
        paced: bool = false, "maxnet-2007 §VI has a window; x is a rate",
            kernel default_only();
    } and {
        /// Arithmetic of the law: real numbers, the kernel's fixed-point version, or this version with the additions of
        /// the kernel's host program.
        arithmetic: Arithmetic = Arithmetic::Real, "maxnet-2007 §VI: fixed-point arithmetic";
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
            "a number in (0, π/2), by eq. 4",
        )?;
        require(self.eta > 0.0 && self.eta <= 1e6, "eta", "a number above zero, up to 1e6")?;
        require(self.price_unit <= PriceUnit::MAX, "price_unit", "a time up to 4 ms, or 0 for 2⁻¹⁸ s")?;
        require(self.mu > 0.0 && self.mu <= 1.0, "mu", "a number in (0, 1]")?;
        require(self.dt_p >= Duration::from_ps(1000), "dt_p", "a time of at least 1 ns")?;
        let show = |time: Duration| Unit::Time.show(&time.to_value());
        let longer = format!("a time longer than dt_p, {}, got {}", show(self.dt_p), show(self.t_0));
        require(self.t_0 > self.dt_p, "t_0", &longer)?;
        let apart = self.arithmetic == Arithmetic::Real || self.t_0 >= self.dt_p + Duration::from_micros(1);
        require(apart, "t_0", "at least dt_p + 1 µs in kernel arithmetic")?;
        self.check_carriage()?;
        let fits = self.carriage == Carrier::Option || matches!(self.code_bits, 0 | 5 | 20);
        require(fits, "code_bits", &format!("5 or 20 with carriage = \"csig\", got {}", self.code_bits))
    }

    /// Checks that the tag's code can represent a link's capacity.
    pub(super) fn check_tag(&self, capacity: Rate) -> Result<(), ParamError> {
        let Self { x_max, code_min, code_max, .. } = self;
        let named = |limit: &str, got: &Rate| format!("{limit} the link's {}, got {}", show(capacity), show(*got));
        require(*x_max > capacity, "x_max", &named("more than", x_max))?;
        require(*code_max >= capacity, "code_max", &named("at least", code_max))?;
        require(*code_min < capacity, "code_min", &named("less than", code_min))
    }
}

fn show(rate: Rate) -> String {
    Unit::Rate.show(&rate.to_value())
}

/// Checks that x_min is a rate up to x_max.
pub(in crate::protocols) fn check_x_min(x_min: Rate, x_max: Rate) -> Result<(), ParamError> {
    let expected = format!("a rate above zero, up to x_max, {}, got {}", show(x_max), show(x_min));
    require(x_min > Rate::ZERO && x_min <= x_max, "x_min", &expected)
}

/// Checks that the 23-bit field can represent the prices of a link, from the whole capacity to a thousandth of the
/// capacity, and that the link's minimum price is at most the maximum price.
pub(in crate::protocols) fn check_range(
    x_max: Rate,
    x_min: Rate,
    t: Duration,
    unit: PriceUnit,
    capacity: Rate,
) -> Result<(), ParamError> {
    require(x_max > capacity, "x_max", &format!("more than the link's {}, got {}", show(capacity), show(x_max)))?;
    require(x_min <= capacity, "x_min", &format!("at most the link's {}, got {}", show(capacity), show(x_min)))?;
    let highest = demand_inverse(capacity / 1000.0, x_max, t.as_secs());
    let limit = Unit::Time.show(&Duration::from_secs(unit.longest()).to_value());
    let expected =
        format!("a time whose prices stay below {limit}, but a thousandth of the link would have {highest:.1} s");
    require(highest < unit.price(super::CODE_MAX), "t", &expected)
}
