//! Codes of few bits, which limit the precision of the signals that routers write.
//!
//! A law's own header says a rate to a small fraction of a per cent. With the parameter `code_bits` a router writes only
//! the values that a code of so many bits has, as if the signal travelled in a CSIG tag or in SCONE's rate codes. A law
//! takes these parameters with `params_with_carriage!` and passes its signal through `Carriage::carry`.

use crate::csig::{Bands, Format};
use crate::math;
use crate::params::{ParamError, require};
use crate::units::Rate;

crate::choice! {
    /// Treatment of the rounding error of a signal's code.
    pub enum CodeRounding {
        /// The rounding error is discarded.
        Nearest = "nearest",
        /// The rounding error is added to the link's next signal, which keeps the mean exact.
        Carried = "carried",
    }
}

/// Declares a protocol's parameters as [`crate::params!`] does, and inserts the parameters of a carriage between two
/// groups.
macro_rules! params_with_carriage {
    ($(#[$meta:meta])* pub struct Params { $($before:tt)* } and { $($after:tt)* }) => {
        $crate::params! {
            $(#[$meta])*
            pub struct Params {
                $($before)*
                /// Bits of the code in which a router writes its signal; 0 is the law's own encoding.
                code_bits: u32 = 0, "none; 5 and 20 are CSIG's tags, 7 with the default range is SCONE's",
                    kernel default_only();
                /// Slowest rate of the code.
                code_min: $crate::units::Rate = $crate::carriage::CODE_MIN, "SCONE's slowest";
                /// Fastest rate of the code.
                code_max: $crate::units::Rate = $crate::carriage::CODE_MAX, "128 of SCONE's steps above code_min";
                /// Handling of the signal's rounding error: discarded, or added to the next signal.
                code_rounding: $crate::carriage::CodeRounding = $crate::carriage::CodeRounding::Nearest,
                    "CSIG and SCONE round";
                $($after)*
            }
        }

        impl Params {
            /// Creates the carriage of one router's signal.
            pub(super) fn carriage(&self) -> $crate::carriage::Carriage {
                $crate::carriage::Carriage::new(self.code_bits, self.code_min, self.code_max, self.code_rounding)
            }

            fn check_carriage(&self) -> Result<(), $crate::params::ParamError> {
                $crate::carriage::check(self.code_bits, self.code_min, self.code_max)
            }
        }
    };
}
pub(crate) use params_with_carriage;

/// Default range of the code's rates: 128 of SCONE's steps, from SCONE's slowest rate of 100 kbit/s.
pub(crate) const CODE_MIN: Rate = Rate::from_bps(1e5);
pub(crate) const CODE_MAX: Rate = Rate::from_bps(251_188_643_150.958);
/// Binary logarithm of the number of units per band in the C code's integers.
const UNITS_LOG: u32 = 20;

/// Checks the parameters of a signal's carriage.
pub(crate) fn check(bits: u32, min: Rate, max: Rate) -> Result<(), ParamError> {
    require(bits == 0 || (2..=32).contains(&bits), "code_bits", "0, or 2 to 32")?;
    require(min > Rate::ZERO, "code_min", "a rate above zero")?;
    require(max > min, "code_max", "a rate above code_min")
}

/// Carriage of a router's signal: the law's own encoding, or a code of few bits.
///
/// The code is in a box, so that routers without one stay small.
#[derive(Clone, Debug)]
pub(crate) struct Carriage(Option<Box<SignalCode>>);

impl Carriage {
    pub(crate) fn new(bits: u32, min: Rate, max: Rate, rounding: CodeRounding) -> Self {
        Self((bits > 0).then(|| Box::new(SignalCode::new(bits, min, max, rounding))))
    }

    /// Returns the signal that packets receive.
    ///
    /// Without a code this is the signal itself. With a code it is the signal for the rate that the code represents.
    pub(crate) fn carry<S>(&mut self, signal: S, rate: impl FnOnce(S) -> Rate, back: impl FnOnce(Rate) -> S) -> S {
        match &mut self.0 {
            None => signal,
            Some(code) => back(code.rate(rate(signal))),
        }
    }
}

/// Code of few bits for a rate, with bands of equal width in the rate's logarithm.
///
/// Five bits are the compact tag's and 20 the wide one's, by the functions that the kernel runs. Seven bits in the
/// default range have the steps of SCONE's rate codes, 10^(1/20).
#[derive(Clone, Debug)]
pub(crate) struct SignalCode {
    max: Rate,
    /// Number of bands in the code.
    count: f64,
    /// Width of a band in units of ln(rate).
    pub(crate) width: f64,
    format: Option<(Format, Bands)>,
    rounding: CodeRounding,
    /// Rounding error of the last signal, in bands.
    residue: f64,
}

impl SignalCode {
    pub(crate) fn new(bits: u32, min: Rate, max: Rate, rounding: CodeRounding) -> Self {
        let count = math::two_to(bits as i32);
        let format = match bits {
            5 => Some((Format::Compact, Bands::compact(0, 32 << UNITS_LOG))),
            20 => Some((Format::Wide, Bands::wide(0, UNITS_LOG))),
            _ => None,
        };
        Self { max, count, width: math::ln(max / min) / count, format, rounding, residue: 0.0 }
    }

    /// Rounds a rate to its code and returns the rate that the code represents.
    fn rate(&mut self, rate: Rate) -> Rate {
        let code = self.code(math::ln(self.max / rate) / self.width);
        self.max * math::exp(-self.middle(code) * self.width)
    }

    /// Returns the code of a place in the scale, which counts bands from the fastest rate.
    pub(crate) fn code(&mut self, place: f64) -> u32 {
        let place = place + self.residue;
        // Rates out of range are NaN or infinite here only if they are zero: `max` and `min` handle both.
        let place = place.max(0.0).min(self.count);
        let code = match &self.format {
            Some((format, bands)) => bands.code(*format, (place * f64::from(1_u32 << UNITS_LOG)) as u64),
            None => place.min(self.count - 1.0) as u32,
        };
        if self.rounding == CodeRounding::Carried {
            // Beyond the scale's ends nothing can be carried.
            self.residue = (place - self.middle(code)).clamp(-0.5, 0.5);
        }
        code
    }

    /// Returns the place of the middle of a code's band.
    fn middle(&self, code: u32) -> f64 {
        match &self.format {
            Some((format, bands)) => bands.value(*format, code) as f64 / f64::from(1_u32 << UNITS_LOG),
            None => f64::from(code) + 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(bits: u32, rounding: CodeRounding) -> SignalCode {
        SignalCode::new(bits, CODE_MIN, CODE_MAX, rounding)
    }

    #[test]
    fn a_signals_code_is_within_half_a_band() {
        for bits in [3, 5, 7, 12, 20, 24] {
            let mut code = code_of(bits, CodeRounding::Nearest);
            let half = (CODE_MAX / CODE_MIN).ln() / 2_f64.powi(bits as i32 + 1);
            for i in 1..1000 {
                let rate = CODE_MIN * (CODE_MAX / CODE_MIN).powf(f64::from(i) / 1000.0);
                let error = (code.rate(rate) / rate).ln().abs();
                assert!(error <= half * (1.0 + 1e-5) + 1e-9, "{bits} bits, {rate:?}: {error} above {half}");
            }
            assert!((code.rate(CODE_MAX * 1e9) / CODE_MAX).ln().abs() <= half * 1.001, "saturates");
            assert!((code.rate(Rate::ZERO) / CODE_MIN).ln().abs() <= half * 1.001, "saturates");
        }
        // Seven bits are SCONE's steps.
        let mut code = code_of(7, CodeRounding::Nearest);
        let step = code.rate(Rate::from_bps(11e6)) / code.rate(Rate::from_bps(9.7e6));
        assert!((step - 10_f64.powf(0.05)).abs() < 1e-9, "{step}");
    }

    #[test]
    fn carried_rounding_has_the_signals_mean() {
        let rate = Rate::from_bps(7.3e6);
        for bits in [3, 5, 7, 20] {
            let mut code = code_of(bits, CodeRounding::Carried);
            let n = 10_000;
            let mean = (0..n).map(|_| (code.rate(rate) / rate).ln()).sum::<f64>() / f64::from(n);
            assert!(mean.abs() < 14.8 / 2_f64.powi(bits as i32) / f64::from(n), "{bits} bits: {mean}");
        }
        let nearest = |rounding| code_of(3, rounding).rate(rate);
        assert_eq!(nearest(CodeRounding::Nearest), nearest(CodeRounding::Carried), "the first code is the same");
    }
}
