//! The settings of one device of a CSIG domain.

use super::{Names, Wrong};
use crate::daemon::csig::{Demand, Format, Options, Role, Signal, bands};
use crate::daemon::{law, quantity};

/// The largest locator of a compact tag.
const MAX_COMPACT_LOCATOR: u32 = 63;

/// The tags of one device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CsigSettings {
    pub(crate) device: String,
    pub(crate) role: Role,
    pub(crate) format: Format,
    pub(crate) signal: Signal,
    /// The bands' ends, in the signal's unit; `None`: its usual range.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) tpid_compact: u16,
    pub(crate) tpid_wide: u16,
    pub(crate) locator: u32,
    /// MaxNet's demand function; `None`: its defaults.
    pub(crate) t: Option<String>,
    pub(crate) x_max: Option<String>,
}

impl CsigSettings {
    /// Returns the options of the device. Checks settings against each other.
    pub(crate) fn options(&self, names: Names) -> Result<Options, Wrong> {
        if self.format == Format::Compact && self.locator > MAX_COMPACT_LOCATOR {
            let text = format!("{} {}: expected 1 to 63 in compact tags", names.of("locator"), self.locator);
            return Err(Wrong::new("locator", text));
        }
        if self.tpid_compact == self.tpid_wide {
            let (name, other) = (names.of("tpid_wide"), names.of("tpid_compact"));
            return Err(Wrong::new("tpid_wide", format!("{name}: expected another EtherType than {other}")));
        }
        let range = self.range(names)?;
        let demand = self.demand(names, range.1)?;
        let (compact, wide) = bands(self.signal, range, demand);
        Ok(Options {
            device: self.device.clone(),
            role: self.role,
            format: self.format,
            signal: self.signal,
            tpid_compact: self.tpid_compact,
            tpid_wide: self.tpid_wide,
            locator: self.locator,
            compact,
            wide,
        })
    }

    /// Returns the signal's range in its unit: bit/s, 10⁻⁶ or ns.
    fn range(&self, names: Names) -> Result<(f64, f64), Wrong> {
        let parse = |key: &str, text: &Option<String>, default: f64| {
            let Some(text) = text else { return Ok(default) };
            let value = match self.signal {
                Signal::Price | Signal::Abw | Signal::Delay | Signal::Nqd if text == "0" => Ok(0.0),
                Signal::Price | Signal::Abw => quantity::rate(text).map(|bps| bps as f64),
                Signal::Abwc => text.parse().map(|share: f64| share * 1e6).map_err(|_| "expected a share".into()),
                Signal::Delay | Signal::Nqd => quantity::time(text).map(|time| time.as_secs_f64() * 1e9),
            };
            value.map_err(|why| Wrong::new(key, format!("{} {text}: {why}", names.of(key))))
        };
        let (from, to) = match self.signal {
            Signal::Price => (1e5, 251_188_643_151.0),
            Signal::Abw => (0.0, 1e11),
            Signal::Abwc => (0.0, 1e6),
            Signal::Delay | Signal::Nqd => (0.0, 1e7),
        };
        let (from, to) = (parse("from", &self.from, from)?, parse("to", &self.to, to)?);
        let fits = from < to && (from > 0.0 || self.signal != Signal::Price) && to.is_finite();
        if !fits {
            return Err(Wrong::new("from", format!("{}: expected less than {}", names.of("from"), names.of("to"))));
        }
        Ok((from, to))
    }

    /// Returns the demand function; `fastest` is the highest rate that a band of prices stands for.
    fn demand(&self, names: Names, fastest: f64) -> Result<Demand, Wrong> {
        let wrong = |key: &str, text: &str, why: String| Wrong::new(key, format!("{} {text}: {why}", names.of(key)));
        let default =
            |name| law::find("maxnet").ok().and_then(|maxnet| maxnet.default_number(name)).unwrap_or_default();
        let t_s = match &self.t {
            Some(text) => quantity::time(text).map_err(|why| wrong("t", text, why))?.as_secs_f64(),
            None => default("t"),
        };
        let x_max = match &self.x_max {
            Some(text) => quantity::rate(text).map_err(|why| wrong("x_max", text, why))?,
            None => default("x_max") as u64,
        };
        if self.signal == Signal::Price && fastest > x_max as f64 {
            let (to, name) = (names.of("to"), names.of("x_max"));
            let text = format!("{to}: expected at most {name}, {}", quantity::show_rate(x_max));
            return Err(Wrong::new("to", text));
        }
        Ok(Demand { t_s, x_max_bps: x_max as f64 })
    }
}
