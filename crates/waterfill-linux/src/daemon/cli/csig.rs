//! `waterfilld csig`.

use clap::{Args, ValueEnum};

use super::PinsOption;
use super::values::{any_rate, demand_time, device};
use crate::daemon::quantity;

/// `waterfilld csig`.
#[derive(Debug, Args)]
pub(crate) struct CsigCommand {
    /// Device whose neighbour reads tags: frames leave with one; repeatable
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub(crate) inside: Vec<String>,
    /// Device at the domain's edge: no frame leaves with a tag, and those that arrive are ignored; repeatable
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub(crate) edge: Vec<String>,
    /// Device of a host in the domain: as --inside, and prices go into MaxNet's option on arrival; repeatable
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub(crate) end: Vec<String>,
    /// Take all tags' programs off their devices
    #[arg(long, conflicts_with_all = ["inside", "edge", "end", "no_pin", "once", "line"])]
    pub(crate) off: bool,
    /// The tags that are pushed: 4 bytes with 32 bands, or 8 with 2^20
    #[arg(long, value_enum, default_value_t = Format::Wide)]
    pub(crate) format: Format,
    /// What the tags carry
    #[arg(long, value_enum, default_value_t = Signal::Price)]
    pub(crate) signal: Signal,
    /// The first band's end: a rate; of the other signals a time such as "0 s", or a share
    #[arg(long, value_name = "VALUE")]
    pub(crate) from: Option<String>,
    /// The last band's end [default: price 100 kbit/s to 250 Gbit/s, abw 0 to 100 Gbit/s, delay and nqd 0 to 10 ms]
    #[arg(long, value_name = "VALUE")]
    pub(crate) to: Option<String>,
    /// EtherType of compact tags
    #[arg(long, value_name = "TPID", default_value = "0x88b5", value_parser = tpid)]
    pub(crate) tpid_compact: u16,
    /// EtherType of wide tags
    #[arg(long, value_name = "TPID", default_value = "0x88b6", value_parser = tpid)]
    pub(crate) tpid_wide: u16,
    /// This hop's locator metadata, from 1 to 63, or to 32767 in wide tags
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=32767))]
    pub(crate) locator: u32,
    /// MaxNet's T of the demand function, for the bands of prices [default: 400 ms]
    #[arg(long, value_name = "TIME", value_parser = demand_time)]
    pub(crate) t: Option<String>,
    /// MaxNet's largest rate of a connection, for the bands of prices [default: 1 Pbit/s]
    #[arg(long, value_name = "RATE", value_parser = any_rate)]
    pub(crate) x_max: Option<String>,
    #[command(flatten)]
    pub(crate) pins: PinsOption,
    #[command(flatten)]
    pub(crate) life: Life,
}

/// How long the programs stay, and what the process does meanwhile.
#[derive(Debug, Args)]
pub(crate) struct Life {
    /// Pin nothing: the programs end with this process
    #[arg(long, conflicts_with_all = ["pins", "once"])]
    pub(crate) no_pin: bool,
    /// Exit after loading; the kernel programs keep running
    #[arg(long, conflicts_with = "line")]
    pub(crate) once: bool,
    /// Print {"ready":true}, then one JSON line of counters per line of standard input; exit when that closes
    #[arg(long)]
    pub(crate) line: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Compact,
    Wide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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

/// EtherTypes begin at 0x600; those of VLANs and IP have a meaning of their own.
fn tpid(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix("0x").and_then(|hex| u16::from_str_radix(hex, 16).ok());
    number
        .filter(|n| *n >= 0x600 && ![0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8].contains(n))
        .ok_or_else(|| "expected an EtherType from 0x0600, such as 0x88b5, and not IP's, ARP's or a VLAN's".into())
}

impl CsigCommand {
    /// Returns a signal's range in its unit: bit/s, 10^-6 or ns.
    pub(crate) fn range(&self) -> Result<(f64, f64), String> {
        let parse = |option: &str, text: &Option<String>, default: f64| {
            let Some(text) = text else { return Ok(default) };
            let value = match self.signal {
                Signal::Price | Signal::Abw | Signal::Delay | Signal::Nqd if text == "0" => Ok(0.0),
                Signal::Price | Signal::Abw => quantity::rate(text).map(|bps| bps as f64),
                Signal::Abwc => text.parse().map(|share: f64| share * 1e6).map_err(|_| "expected a share".into()),
                Signal::Delay | Signal::Nqd => quantity::time(text).map(|time| time.as_secs_f64() * 1e9),
            };
            value.map_err(|e| format!("{option} {text}: {e}"))
        };
        let (from, to) = match self.signal {
            Signal::Price => (1e5, 251_188_643_151.0),
            Signal::Abw => (0.0, 1e11),
            Signal::Abwc => (0.0, 1e6),
            Signal::Delay | Signal::Nqd => (0.0, 1e7),
        };
        let (from, to) = (parse("--from", &self.from, from)?, parse("--to", &self.to, to)?);
        let fits = from < to && (from > 0.0 || self.signal != Signal::Price) && to.is_finite();
        fits.then_some((from, to)).ok_or_else(|| "--from: expected less than --to".into())
    }

    /// Checks options against each other.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut devices: Vec<_> = self.inside.iter().chain(&self.edge).chain(&self.end).collect();
        if devices.is_empty() && !self.off {
            return Err("csig: expected a device, by --inside, --edge or --end; or --off".into());
        }
        devices.sort();
        if let Some((twice, _)) = devices.iter().zip(devices.iter().skip(1)).find(|(one, next)| one == next) {
            return Err(format!("device {twice}: expected once among --inside, --edge and --end"));
        }
        if self.format == Format::Compact && self.locator > 63 {
            return Err(format!("--locator {}: expected 1 to 63 in compact tags", self.locator));
        }
        if self.tpid_compact == self.tpid_wide {
            return Err("--tpid-wide: expected another EtherType than --tpid-compact".into());
        }
        self.range().map(|_| ())
    }
}
