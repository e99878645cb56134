//! `waterfilld csig`.

use clap::Args;

use super::PinsOption;
use super::values::{any_rate, demand_time, device, locator, tpid};
use crate::daemon::csig::{Format, Options, Role, Signal};
use crate::daemon::settings::{CsigSettings, Names};

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
    #[arg(long, value_name = "N", default_value = "1", value_parser = locator)]
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

impl CsigCommand {
    /// Returns the settings of each device.
    fn settings(&self) -> Vec<CsigSettings> {
        let roles = [(Role::Inside, &self.inside), (Role::Edge, &self.edge), (Role::End, &self.end)];
        let devices = roles.into_iter().flat_map(|(role, devices)| devices.iter().map(move |device| (role, device)));
        let settings = |(role, device): (Role, &String)| CsigSettings {
            device: device.clone(),
            role,
            format: self.format,
            signal: self.signal,
            from: self.from.clone(),
            to: self.to.clone(),
            tpid_compact: self.tpid_compact,
            tpid_wide: self.tpid_wide,
            locator: self.locator,
            t: self.t.clone(),
            x_max: self.x_max.clone(),
        };
        devices.map(settings).collect()
    }

    /// Returns the options of each device.
    pub(crate) fn options(&self) -> anyhow::Result<Vec<Options>> {
        self.settings().iter().map(|settings| Ok(settings.options(Names::Options)?)).collect()
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
        self.settings().iter().try_for_each(|one| one.options(Names::Options).map(drop).map_err(|wrong| wrong.text))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use waterfill_laws::csig::{Bands, Format as Tags};

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        command: CsigCommand,
    }

    /// The bands as the codec of the simulator has them, which calls the kernel's functions.
    fn bands_of(arguments: &str) -> Result<(Bands, Bands), String> {
        let words = ["csig", "--inside", "x"].into_iter().chain(arguments.split_whitespace());
        let options = Line::try_parse_from(words).unwrap().command.options().map_err(|e| e.to_string())?;
        Ok((options[0].compact, options[0].wide))
    }

    #[test]
    fn a_price_in_a_wide_tag_keeps_20_of_its_23_bits() {
        let (_, wide) = bands_of("").unwrap();
        assert_eq!((wide.base, wide.step_log), (0, 3));
        for price in (0..1_u64 << 23).step_by(1001) {
            let back = wide.value(Tags::Wide, wide.code(Tags::Wide, price));
            assert!(back.abs_diff(price) <= 4, "{price} {back}");
        }
    }

    #[test]
    fn a_price_in_a_compact_tag_is_within_half_a_band_of_its_rate() {
        let (compact, _) = bands_of("--format compact --from 1mbit --to 100mbit").unwrap();
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
        let (compact, wide) = bands_of("--signal abw --to 10gbit").unwrap();
        assert_eq!((compact.lower[0], compact.lower[16], compact.end), (0, 5_000_000_000, 10_000_000_000));
        assert_eq!(wide.step_log, 14, "2^20 steps of 2^14 bit/s are 17 Gbit/s, of 2^13 less than 10");
        let (compact, wide) = bands_of("--signal abwc").unwrap();
        assert_eq!((compact.end, wide.step_log), (1_000_000, 0));
        let (compact, _) = bands_of("--signal delay --to 1ms").unwrap();
        assert_eq!(compact.end, 1_000_000);
        assert!(bands_of("--x-max 1gbit --to 2gbit").unwrap_err().contains("--x-max"));
    }
}
