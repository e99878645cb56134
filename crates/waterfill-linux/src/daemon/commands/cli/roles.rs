//! Command lines of the roles: `waterfilld host`, `router` and `csig`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::PinsOption;
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::laws;
use crate::daemon::kernel::steps::Target;
use crate::daemon::options::error::user_error;
use crate::daemon::options::values::{Address, Device, Rate};
use crate::daemon::options::{CsigOptions, HostOptions, Names, RouterOptions, TagRole};
use crate::daemon::roles::csig::TagSetup;
use crate::daemon::roles::host::{self, HostSetup};
use crate::daemon::roles::router::LinkSetup;

/// Options of `waterfilld host`.
#[derive(Debug, Args)]
pub(crate) struct HostCommand {
    #[command(flatten)]
    options: HostOptions,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of `waterfilld router`.
#[derive(Debug, Args)]
pub(crate) struct RouterCommand {
    /// Device whose outgoing packets carry the signal (repeatable, each with its --rate)
    #[arg(long = "dev", value_name = "DEVICE", required = true)]
    devices: Vec<Device>,
    /// Rate of the link behind the device
    #[arg(long = "rate", value_name = "RATE", required = true)]
    rates: Vec<Rate>,
    #[command(flatten)]
    options: RouterOptions,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of `waterfilld csig`.
#[derive(Debug, Args)]
pub(crate) struct CsigCommand {
    /// Device towards a neighbour that reads tags: frames leave with a tag (repeatable)
    #[arg(long, value_name = "DEVICE")]
    inside: Vec<Device>,
    /// Device at the domain's edge, where frames leave without a tag and arriving tags are ignored (repeatable)
    #[arg(long, value_name = "DEVICE")]
    edge: Vec<Device>,
    /// Device of a host in the domain: works like --inside and copies arriving prices into MaxNet's option (repeatable)
    #[arg(long, value_name = "DEVICE")]
    end: Vec<Device>,
    /// Detach the CSIG programs from all devices
    #[arg(long, conflicts_with_all = ["inside", "edge", "end", "no_pin", "once", "line"])]
    pub(crate) off: bool,
    #[command(flatten)]
    options: CsigOptions,
    #[command(flatten)]
    pub(crate) pins: PinsOption,
    #[command(flatten)]
    pub(crate) life: Life,
}

/// Options that `waterfilld host` and `waterfilld router` share.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) pins: PinsOption,
    /// Serve Prometheus metrics at this address, such as 127.0.0.1:9465
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "once")]
    metrics: Option<Address>,
    #[command(flatten)]
    pub(crate) life: Life,
    /// Log the law's steps to this file, for certificates; needs --no-pin
    #[arg(long, value_name = "FILE", requires = "no_pin")]
    log_steps: Option<PathBuf>,
    /// Maximum number of steps that --log-steps writes; later ones are only counted
    #[arg(long, value_name = "STEPS", default_value = "1000000", requires = "log_steps")]
    log_limit: u64,
}

/// Options for the lifetime of the kernel programs and of this process.
#[derive(Clone, Debug, Args)]
pub(crate) struct Life {
    /// Pin nothing: the programs end with this process
    #[arg(long, conflicts_with_all = ["pins", "once"])]
    pub(crate) no_pin: bool,
    /// Exit after loading; the kernel programs keep running
    #[arg(long, conflicts_with = "line")]
    pub(crate) once: bool,
    /// Print {"ready":true}, then one JSON line of state for each input line, and exit at the end of the input
    #[arg(long)]
    pub(crate) line: bool,
}

impl Common {
    /// Returns the address of the metrics server, or `None` if metrics are off.
    pub(crate) fn metrics(&self) -> Option<SocketAddr> {
        self.metrics.map(|address| address.0)
    }

    /// Returns the target of the step log, or `None` if the log is off.
    pub(crate) fn steps(&self) -> Option<Target> {
        self.log_steps.clone().map(|file| Target { file, limit: self.log_limit })
    }
}

impl HostCommand {
    /// Returns the host setup to load. `root` finds the root of the control groups.
    pub(crate) fn setup(&self, root: impl FnOnce() -> Result<PathBuf>) -> Result<HostSetup> {
        HostSetup::of(&self.options, Names::Options, root)
    }

    /// Checks that the options fit together.
    pub(super) fn check(&self) -> Result<(), String> {
        host::check(&self.options, Names::Options).map(drop).map_err(|wrong| wrong.text)
    }
}

impl RouterCommand {
    /// Returns the router options of each device.
    fn options(&self) -> impl Iterator<Item = RouterOptions> {
        let links = self.devices.iter().cloned().zip(self.rates.iter().copied());
        links.map(|(device, rate)| RouterOptions { device, rate, ..self.options.clone() })
    }

    /// Returns the setups of all links. There is at least one link.
    pub(crate) fn setups(&self) -> Result<Vec<LinkSetup>> {
        self.options().map(|options| Ok(LinkSetup::of(&options, Names::Options)?)).collect()
    }

    /// Returns the law that the links run.
    pub(crate) fn law(&self) -> &'static LoadableLaw {
        laws::named(self.options.law)
    }

    /// Returns the setup of a device's link with another rate.
    pub(crate) fn at_rate(&self, device: &str, rate: Rate) -> Result<LinkSetup> {
        let options = self.options().find(|options| options.device.0 == device);
        let options = options.ok_or_else(|| user_error(format!("device {device}: not attached by this router")))?;
        Ok(LinkSetup::of(&RouterOptions { rate, ..options }, Names::Options)?)
    }

    /// Checks that the options fit together.
    pub(super) fn check(&self) -> Result<(), String> {
        let (devices, rates) = (&self.devices, self.rates.len());
        if devices.len() != rates {
            return Err(format!("{rates} --rate for {} --dev; give each --dev its own --rate", devices.len()));
        }
        if let Some(twice) = (1..devices.len()).find(|i| devices[..*i].contains(&devices[*i])) {
            return Err(format!("--dev {}: given twice; give each device once", devices[twice]));
        }
        if self.options.separate && self.common.life.once {
            return Err("--separate: not possible with --once, because a daemon must divide the link".into());
        }
        self.options()
            .try_for_each(|options| LinkSetup::of(&options, Names::Options).map(drop).map_err(|wrong| wrong.text))
    }
}

impl CsigCommand {
    /// Returns the CSIG options of each device.
    fn options(&self) -> impl Iterator<Item = CsigOptions> {
        let roles = [(TagRole::Inside, &self.inside), (TagRole::Edge, &self.edge), (TagRole::End, &self.end)];
        let devices = roles.into_iter().flat_map(|(role, devices)| devices.iter().map(move |device| (role, device)));
        devices.map(|(role, device)| CsigOptions { device: device.clone(), role, ..self.options.clone() })
    }

    /// Returns the tag setup of each device.
    pub(crate) fn setups(&self) -> Result<Vec<TagSetup>> {
        self.options().map(|options| Ok(TagSetup::of(&options, Names::Options)?)).collect()
    }

    /// Checks that the options fit together.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut devices: Vec<_> = self.inside.iter().chain(&self.edge).chain(&self.end).map(|one| &one.0).collect();
        if devices.is_empty() && !self.off {
            return Err("csig: no device given; name one with --inside, --edge or --end, or type --off".into());
        }
        devices.sort();
        if let Some((twice, _)) = devices.iter().zip(devices.iter().skip(1)).find(|(one, next)| one == next) {
            return Err(format!("device {twice}: given twice; give each device once, with --inside, --edge or --end"));
        }
        self.options()
            .try_for_each(|options| TagSetup::of(&options, Names::Options).map(drop).map_err(|wrong| wrong.text))
    }
}
