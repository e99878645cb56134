//! What a device's tags are: its role, their format and bands.

use std::fmt;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use waterfill_laws::csig::Bands;

use crate::daemon::interface::{CsigBands, CsigDevice, CsigFormat, CsigLayout, CsigRole, CsigType, write_name};
use crate::daemon::quantity::{show_rate, show_time};

/// Units of a price on the wire.
const PRICE_UNITS_PER_S: f64 = 262_144.0;
/// Bands of the wide tag.
const WIDE_BANDS: f64 = 1_048_576.0;
/// The highest price of a wide tag.
const MAX_PRICE_S: f64 = 32.0;

/// What is behind a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// A neighbour that reads tags: frames leave with one.
    Inside,
    /// One that does not: no frame leaves with a tag, and none that arrives is believed.
    Edge,
    /// As inside, and prices go into MaxNet's option on arrival, as this host is in the domain.
    End,
}

/// Which tags are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// 4 bytes with 32 bands.
    Compact,
    /// 8 bytes with 2²⁰ bands.
    Wide,
}

/// What tags carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Signal {
    /// MaxNet's price; the highest on the path (type 7, which is not assigned)
    Price,
    /// Available bandwidth; the smallest
    Abw,
    /// Available bandwidth over capacity; the smallest
    Abwc,
    /// The queue's delay; the longest
    Delay,
    /// The queue over the port's speed; the largest
    Nqd,
}

/// Writes the name that the file and the command line have for a variant.
macro_rules! names {
    ($type:ident { $($variant:ident = $name:literal),+ }) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $name),+ })
            }
        }
    };
}

names!(Role { Inside = "inside", Edge = "edge", End = "end" });
names!(Format { Compact = "compact", Wide = "wide" });
names!(Signal { Price = "price", Abw = "abw", Abwc = "abwc", Delay = "delay", Nqd = "nqd" });

impl Signal {
    /// The name of its metric, with the unit.
    pub(crate) fn metric(self) -> &'static str {
        match self {
            Self::Price => "price_s",
            Self::Abw => "abw_bps",
            Self::Abwc => "abwc_ratio",
            Self::Delay => "delay_s",
            Self::Nqd => "nqd_s",
        }
    }

    /// Returns the value that a hop computed: in s, bit/s, or as a share.
    pub(crate) fn value(self, raw: u64) -> f64 {
        let raw = raw as f64;
        match self {
            Self::Price => raw / PRICE_UNITS_PER_S,
            Self::Abw => raw,
            Self::Abwc => raw * 1e-6,
            Self::Delay | Self::Nqd => raw * 1e-9,
        }
    }

    /// Formats such a value.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Price | Self::Delay | Self::Nqd => show_time(value),
            Self::Abw => show_rate(value as u64),
            Self::Abwc => format!("{:.1} %", 100.0 * value),
        }
    }

    pub(crate) fn of(code: u32) -> Self {
        match CsigType(code) {
            CsigType::CSIG_ABW => Self::Abw,
            CsigType::CSIG_ABWC => Self::Abwc,
            CsigType::CSIG_DELAY => Self::Delay,
            CsigType::CSIG_NQD => Self::Nqd,
            _ => Self::Price,
        }
    }

    fn code(self) -> CsigType {
        match self {
            Self::Price => CsigType::CSIG_PRICE,
            Self::Abw => CsigType::CSIG_ABW,
            Self::Abwc => CsigType::CSIG_ABWC,
            Self::Delay => CsigType::CSIG_DELAY,
            Self::Nqd => CsigType::CSIG_NQD,
        }
    }
}

/// The options of one device, whose ranges are checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) device: String,
    pub(crate) role: Role,
    pub(crate) format: Format,
    pub(crate) signal: Signal,
    pub(crate) tpid_compact: u16,
    pub(crate) tpid_wide: u16,
    pub(crate) locator: u32,
    /// Bands in the signal's unit: 2⁻¹⁸ s, bit/s, 10⁻⁶ or ns.
    pub(crate) compact: Bands,
    pub(crate) wide: Bands,
}

/// MaxNet's demand function, which turns rates into prices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demand {
    pub(crate) t_s: f64,
    pub(crate) x_max_bps: f64,
}

/// Returns the bands of both tags for a range in bit/s, 10⁻⁶ or ns.
///
/// The compact tag's are of one width between the ends. The wide tag's begin at 0 and have the smallest width, a power of
/// two, with which they reach the last end: prices of up to 32 s in steps of 2⁻¹⁵ s.
pub(crate) fn bands(signal: Signal, (mut from, mut to): (f64, f64), demand: Demand) -> (Bands, Bands) {
    if signal == Signal::Price {
        let price = |bps: f64| demand.t_s * (demand.x_max_bps / bps).ln() * PRICE_UNITS_PER_S;
        (from, to) = (price(to), price(from)); // the fastest rate has the lowest price
    }
    let mut compact = Bands { end: to.round() as u64, count: 32, ..Bands::default() };
    for (i, lower) in compact.lower.iter_mut().enumerate() {
        *lower = (from + (to - from) * i as f64 / 32.0).round() as u64;
    }
    let reach = if signal == Signal::Price { MAX_PRICE_S * PRICE_UNITS_PER_S } else { to };
    let step_log = (reach / WIDE_BANDS).log2().ceil().max(0.0) as u32;
    (compact, Bands { step_log, ..Bands::default() })
}

impl Options {
    /// Returns the configuration for the programs: of a device of this namespace that can send frames of this length.
    pub(super) fn config(&self, max_frame: u32, namespace: u64) -> CsigDevice {
        let bands = |of: &Bands| CsigBands {
            lower: of.lower,
            end: of.end,
            base: of.base,
            count: of.count,
            step_log: of.step_log,
        };
        let mut config = CsigDevice {
            role: match self.role {
                Role::Inside => CsigRole::CSIG_INSIDE.0,
                Role::Edge => CsigRole::CSIG_EDGE.0,
                Role::End => CsigRole::CSIG_END.0,
            },
            format: match self.format {
                Format::Compact => CsigFormat::CSIG_COMPACT.0,
                Format::Wide => CsigFormat::CSIG_WIDE.0,
            },
            tpid_compact: self.tpid_compact.into(),
            tpid_wide: self.tpid_wide.into(),
            signal: self.signal.code().0,
            locator: self.locator,
            max_frame,
            layout: CsigLayout::CSIG_LAYOUT.0,
            namespace,
            compact: bands(&self.compact),
            wide: bands(&self.wide),
            ..CsigDevice::default()
        };
        write_name(&mut config.device, &self.device);
        config
    }
}

/// Reads what a device's configuration says of its tags.
pub(super) fn read(config: &CsigDevice) -> (Role, Format, Signal) {
    let role = match CsigRole(config.role) {
        CsigRole::CSIG_INSIDE => Role::Inside,
        CsigRole::CSIG_EDGE => Role::Edge,
        _ => Role::End,
    };
    let format = if config.format == CsigFormat::CSIG_COMPACT.0 { Format::Compact } else { Format::Wide };
    (role, format, Signal::of(config.signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_says_what_the_options_said() {
        let (compact, wide) = bands(Signal::Abw, (0.0, 1e9), Demand { t_s: 0.4, x_max_bps: 1e15 });
        for role in [Role::Inside, Role::Edge, Role::End] {
            for format in [Format::Compact, Format::Wide] {
                for signal in [Signal::Price, Signal::Abw, Signal::Abwc, Signal::Delay, Signal::Nqd] {
                    let options = Options {
                        device: "eth1".into(),
                        role,
                        format,
                        signal,
                        tpid_compact: 0x88b5,
                        tpid_wide: 0x88b6,
                        locator: 7,
                        compact,
                        wide,
                    };
                    let config = options.config(1522, 9);
                    assert_eq!(read(&config), (role, format, signal));
                    assert_eq!((config.max_frame, config.namespace, config.compact.end), (1522, 9, 1_000_000_000));
                }
            }
        }
    }

    #[test]
    fn values_have_the_units_of_their_metrics() {
        assert_eq!((Signal::Price.value(262_144), Signal::Price.show(6.45).as_str()), (1.0, "6.45 s"));
        assert_eq!((Signal::Abw.value(5_000_000), Signal::Abw.show(5e6).as_str()), (5e6, "5 Mbit/s"));
        assert_eq!((Signal::Abwc.value(250_000), Signal::Abwc.show(0.25).as_str()), (0.25, "25.0 %"));
        assert_eq!((Signal::Delay.value(2_000_000), Signal::Nqd.show(0.002).as_str()), (0.002, "2 ms"));
    }
}
