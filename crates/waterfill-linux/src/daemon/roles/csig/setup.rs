//! Checked tag options of a device, with the bands that follow from them.

use waterfill_laws::csig::Bands;

use crate::daemon::kernel::interface::{CsigBands, CsigDevice, CsigFormat, CsigLayout, CsigRole, CsigType, write_name};
use crate::daemon::kernel::laws;
use crate::daemon::kernel::probe::{System, TCX};
use crate::daemon::options::quantity::{self, show_rate, show_time};
use crate::daemon::options::values::Text;
use crate::daemon::options::{CsigOptions, Names, TagFormat, TagRole, TagSignal, Wrong};

/// Number of price units per second on the wire.
const PRICE_UNITS_PER_S: f64 = 262_144.0;
/// Number of bands of a wide tag.
const WIDE_BANDS: f64 = 1_048_576.0;
/// Maximum locator in a compact tag.
const MAX_COMPACT_LOCATOR: u32 = 63;
/// Maximum price in a wide tag, in seconds.
const MAX_PRICE_S: f64 = 32.0;

impl TagSignal {
    /// Returns the name of the signal's metric, with the unit.
    pub(crate) fn metric(self) -> &'static str {
        match self {
            Self::Price => "price_s",
            Self::Abw => "abw_bps",
            Self::Abwc => "abwc_ratio",
            Self::Delay => "delay_s",
            Self::Nqd => "nqd_s",
        }
    }

    /// Converts a hop's value to s, bit/s or a fraction.
    pub(crate) fn value(self, raw: u64) -> f64 {
        let raw = raw as f64;
        match self {
            Self::Price => raw / PRICE_UNITS_PER_S,
            Self::Abw => raw,
            Self::Abwc => raw * 1e-6,
            Self::Delay | Self::Nqd => raw * 1e-9,
        }
    }

    /// Formats a value of the signal with its unit.
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

/// Checked setup of the tags at one device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TagSetup {
    /// Options that the user gave, without the band range and the demand function, which `compact` and `wide` reflect.
    pub(crate) options: CsigOptions,
    /// Bands of compact tags in the signal's unit: 2⁻¹⁸ s, bit/s, 10⁻⁶ or ns.
    pub(crate) compact: Bands,
    pub(crate) wide: Bands,
}

/// MaxNet's demand function, which converts rates to prices.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Demand {
    t_s: f64,
    x_max_bps: f64,
}

/// Returns the bands of compact and wide tags for a range in bit/s, 10⁻⁶ or ns.
///
/// The compact tag's are of one width between the ends. The wide tag's begin at 0 and have the smallest width, a power of
/// two, with which they reach the last end: prices of up to 32 s in steps of 2⁻¹⁵ s.
fn bands(signal: TagSignal, (mut from, mut to): (f64, f64), demand: Demand) -> (Bands, Bands) {
    if signal == TagSignal::Price {
        let price = |bps: f64| demand.t_s * (demand.x_max_bps / bps).ln() * PRICE_UNITS_PER_S;
        (from, to) = (price(to), price(from)); // the fastest rate has the lowest price
    }
    let mut compact = Bands { end: to.round() as u64, count: 32, ..Bands::default() };
    for (i, lower) in compact.lower.iter_mut().enumerate() {
        *lower = (from + (to - from) * i as f64 / 32.0).round() as u64;
    }
    let reach = if signal == TagSignal::Price { MAX_PRICE_S * PRICE_UNITS_PER_S } else { to };
    let step_log = (reach / WIDE_BANDS).log2().ceil().max(0.0) as u32;
    (compact, Bands { step_log, ..Bands::default() })
}

impl TagSetup {
    /// Checks that the options fit together, without asking the kernel.
    pub(crate) fn of(options: &CsigOptions, names: Names) -> Result<Self, Wrong> {
        let locator = options.locator.0;
        if options.format == TagFormat::Compact && locator > MAX_COMPACT_LOCATOR {
            let text = format!("{} {locator}: must be 1 to 63 in compact tags", names.of("locator"));
            return Err(Wrong::new("locator", text));
        }
        if options.tpid_compact == options.tpid_wide {
            let (name, other) = (names.of("tpid_wide"), names.of("tpid_compact"));
            return Err(Wrong::new("tpid_wide", format!("{name}: must differ from {other}")));
        }
        let range = range(options, names)?;
        let (compact, wide) = bands(options.signal, range, demand(options, names, range.1)?);
        let options = CsigOptions { from: None, to: None, t: None, x_max: None, ..options.clone() };
        Ok(Self { options, compact, wide })
    }

    /// Returns the name of the device.
    pub(crate) fn device(&self) -> &str {
        &self.options.device.0
    }

    /// Checks that the running kernel supports the setup.
    pub(crate) fn check_kernel(&self, system: &System) -> Result<(), Wrong> {
        if system.has(TCX) {
            return Ok(());
        }
        let (device, kernel) = (self.device(), &system.kernel);
        let text =
            format!("device {device} needs the hook tcx (Linux 6.6), which this kernel, {kernel}, does not have");
        Err(Wrong::new("device", text))
    }

    /// Returns the configuration for the kernel programs. `max_frame` is the maximum frame length of the device.
    pub(super) fn config(&self, max_frame: u32, namespace: u64) -> CsigDevice {
        let options = &self.options;
        let bands = |of: &Bands| CsigBands {
            lower: of.lower,
            end: of.end,
            base: of.base,
            count: of.count,
            step_log: of.step_log,
        };
        let mut config = CsigDevice {
            role: match options.role {
                TagRole::Inside => CsigRole::CSIG_INSIDE.0,
                TagRole::Edge => CsigRole::CSIG_EDGE.0,
                TagRole::End => CsigRole::CSIG_END.0,
            },
            format: match options.format {
                TagFormat::Compact => CsigFormat::CSIG_COMPACT.0,
                TagFormat::Wide => CsigFormat::CSIG_WIDE.0,
            },
            tpid_compact: options.tpid_compact.0.into(),
            tpid_wide: options.tpid_wide.0.into(),
            signal: options.signal.code().0,
            locator: options.locator.0,
            max_frame,
            layout: CsigLayout::CSIG_LAYOUT.0,
            namespace,
            compact: bands(&self.compact),
            wide: bands(&self.wide),
            ..CsigDevice::default()
        };
        write_name(&mut config.device, self.device());
        config
    }
}

/// Returns the range of the signal in its unit: bit/s, 10⁻⁶ or ns.
fn range(options: &CsigOptions, names: Names) -> Result<(f64, f64), Wrong> {
    let signal = options.signal;
    let parse = |key: &str, text: &Option<Text>, default: f64| {
        let Some(Text(text)) = text else { return Ok(default) };
        let value = match signal {
            TagSignal::Price | TagSignal::Abw | TagSignal::Delay | TagSignal::Nqd if text == "0" => Ok(0.0),
            TagSignal::Price | TagSignal::Abw => quantity::rate(text).map(|bps| bps as f64),
            TagSignal::Abwc => {
                text.parse().map(|share: f64| share * 1e6).map_err(|_| "must be a share such as 0.5".into())
            }
            TagSignal::Delay | TagSignal::Nqd => quantity::time(text).map(|time| time.as_secs_f64() * 1e9),
        };
        value.map_err(|why| Wrong::new(key, format!("{} {text}: {why}", names.of(key))))
    };
    let (from, to) = match signal {
        TagSignal::Price => (1e5, 251_188_643_151.0),
        TagSignal::Abw => (0.0, 1e11),
        TagSignal::Abwc => (0.0, 1e6),
        TagSignal::Delay | TagSignal::Nqd => (0.0, 1e7),
    };
    let (from, to) = (parse("from", &options.from, from)?, parse("to", &options.to, to)?);
    let fits = from < to && (from > 0.0 || signal != TagSignal::Price) && to.is_finite();
    if !fits {
        let least = if signal == TagSignal::Price { "above zero and " } else { "" };
        let text = format!("{}: must be {least}less than {}", names.of("from"), names.of("to"));
        return Err(Wrong::new("from", text));
    }
    Ok((from, to))
}

/// Returns the demand function. `fastest` is the maximum rate of the price bands in bit/s.
fn demand(options: &CsigOptions, names: Names, fastest: f64) -> Result<Demand, Wrong> {
    let default = |name| laws::find("maxnet").ok().and_then(|law| law.default_number(name)).unwrap_or_default();
    let x_max = options.x_max.map_or_else(|| default("x_max"), |rate| rate.0 as f64);
    if options.signal == TagSignal::Price && fastest > x_max {
        let text = format!("{}: must be at most {}, {}", names.of("to"), names.of("x_max"), show_rate(x_max as u64));
        return Err(Wrong::new("to", text));
    }
    Ok(Demand { t_s: options.t.map_or_else(|| default("t"), |time| time.0.as_secs_f64()), x_max_bps: x_max })
}

/// Returns the role, format and signal in a device's configuration.
pub(super) fn read(config: &CsigDevice) -> (TagRole, TagFormat, TagSignal) {
    let role = match CsigRole(config.role) {
        CsigRole::CSIG_INSIDE => TagRole::Inside,
        CsigRole::CSIG_EDGE => TagRole::Edge,
        _ => TagRole::End,
    };
    let format = if config.format == CsigFormat::CSIG_COMPACT.0 { TagFormat::Compact } else { TagFormat::Wide };
    (role, format, TagSignal::of(config.signal))
}

#[cfg(test)]
mod tests {
    use waterfill_laws::csig::Format as Tags;

    use super::*;

    fn setup(more: &str) -> Result<TagSetup, Wrong> {
        let options = toml::from_str(&format!("device = 'eth1'\nrole = 'inside'\n{more}")).unwrap();
        TagSetup::of(&options, Names::Keys)
    }

    #[test]
    fn a_configuration_says_what_the_options_said() {
        let mut setup = setup("signal = 'abw'\nto = '1 Gbit/s'\nlocator = 7").unwrap();
        for role in [TagRole::Inside, TagRole::Edge, TagRole::End] {
            for format in [TagFormat::Compact, TagFormat::Wide] {
                for signal in [TagSignal::Price, TagSignal::Abw, TagSignal::Abwc, TagSignal::Delay, TagSignal::Nqd] {
                    setup.options = CsigOptions { role, format, signal, ..setup.options };
                    let config = setup.config(1522, 9);
                    assert_eq!(read(&config), (role, format, signal));
                    assert_eq!((config.max_frame, config.namespace, config.compact.end), (1522, 9, 1_000_000_000));
                }
            }
        }
    }

    #[test]
    fn tags_need_tcx() {
        let system = System { kernel: "6.1.0-test".into(), ..System::default() };
        let why = setup("").unwrap().check_kernel(&system).unwrap_err().text;
        assert_eq!(why, "device eth1 needs the hook tcx (Linux 6.6), which this kernel, 6.1.0-test, does not have");
        setup("").unwrap().check_kernel(&System::with(&[TCX])).unwrap();
    }

    // The bands as the codec of the simulator has them, which calls the kernel's functions.

    #[test]
    fn a_price_in_a_wide_tag_keeps_20_of_its_23_bits() {
        let wide = setup("").unwrap().wide;
        assert_eq!((wide.base, wide.step_log), (0, 3));
        for price in (0..1_u64 << 23).step_by(1001) {
            let back = wide.value(Tags::Wide, wide.code(Tags::Wide, price));
            assert!(back.abs_diff(price) <= 4, "{price} {back}");
        }
    }

    #[test]
    fn a_price_in_a_compact_tag_is_within_half_a_band_of_its_rate() {
        let compact = setup("format = 'compact'\nfrom = '1mbit'\nto = '100mbit'").unwrap().compact;
        // 2^-18 s per unit, T = 0.4 s: half of one of 32 bands over a hundredfold.
        let half = 100_f64.ln() / 32.0 / 2.0;
        for i in 0..=1000 {
            let rate = 1e6 * 100_f64.powf(f64::from(i) / 1000.0);
            let price = (0.4 * (1e15 / rate).ln() * 262_144.0).round() as u64;
            let code = compact.code(Tags::Compact, price);
            let back = 1e15 * (-(compact.value(Tags::Compact, code) as f64) / 262_144.0 / 0.4).exp();
            assert!((back / rate).ln().abs() <= half * 1.001, "{rate} {back}");
        }
    }

    #[test]
    fn other_signals_have_their_units() {
        let abw = setup("signal = 'abw'\nto = '10gbit'").unwrap();
        let compact = &abw.compact;
        assert_eq!((compact.lower[0], compact.lower[16], compact.end), (0, 5_000_000_000, 10_000_000_000));
        assert_eq!(abw.wide.step_log, 14, "2^20 steps of 2^14 bit/s are 17 Gbit/s, of 2^13 less than 10");
        let abwc = setup("signal = 'abwc'").unwrap();
        assert_eq!((abwc.compact.end, abwc.wide.step_log), (1_000_000, 0));
        assert_eq!(setup("signal = 'delay'\nto = '1ms'").unwrap().compact.end, 1_000_000);
        assert!(setup("x_max = '1gbit'\nto = '2gbit'").unwrap_err().text.contains("x_max"));
    }

    #[test]
    fn values_have_the_units_of_their_metrics() {
        assert_eq!((TagSignal::Price.value(262_144), TagSignal::Price.show(6.45).as_str()), (1.0, "6.45 s"));
        assert_eq!((TagSignal::Abw.value(5_000_000), TagSignal::Abw.show(5e6).as_str()), (5e6, "5 Mbit/s"));
        assert_eq!((TagSignal::Abwc.value(250_000), TagSignal::Abwc.show(0.25).as_str()), (0.25, "25.0 %"));
        assert_eq!((TagSignal::Delay.value(2_000_000), TagSignal::Nqd.show(0.002).as_str()), (0.002, "2 ms"));
    }
}
