//! `waterfilld router`.

use clap::Args;

use super::values::{any_rate, cohabit_assignment, demand_time, device, dt_p, t_0, target};
use super::{Common, LawChoice};
use crate::daemon::error::user_error;
use crate::daemon::law::Law;
use crate::daemon::settings::{Names, RouterSettings};
use crate::daemon::{quantity, router};

/// How explicit and TCP flows share a device.
#[derive(Debug, Args)]
struct CohabitChoice {
    /// Drop or mark TCP packets so that explicit flows keep their fair share; needs Linux 6.6
    #[arg(long = "cohabit", id = "cohabit", value_name = "CONTROLLER", value_enum)]
    controller: Option<router::CohabitController>,
    /// Parameter of --cohabit, named as in a scenario's queue_params, such as interval=30ms; repeatable
    #[arg(long = "cohabit-set", id = "cohabit_set", value_name = "NAME=VALUE", requires = "cohabit", value_parser = cohabit_assignment)]
    set: Vec<(String, String)>,
    /// A queue for explicit flows and one for the rest instead of --cohabit's controller; implies --virtual-queue
    #[arg(long, requires_all = ["cohabit", "shape"])]
    separate: bool,
}

/// `waterfilld router`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "options of a device that do not depend on each other")]
pub(crate) struct RouterCommand {
    /// Device whose outgoing packets get the price; repeatable, each with its --rate
    #[arg(long = "dev", value_name = "DEVICE", required = true, value_parser = device)]
    devices: Vec<String>,
    /// Rate of the link behind the device
    #[arg(long = "rate", value_name = "RATE", required = true, value_parser = quantity::rate)]
    rates: Vec<u64>,
    #[command(flatten)]
    law: LawChoice,
    /// Fraction of the rate to fill, above 0 and up to 1 [default: the law's, MaxNet's is 0.9]
    #[arg(long, value_name = "FRACTION", value_parser = target)]
    target: Option<f64>,
    /// Bytes per packet on the link beyond its IP length; Ethernet's header has 14
    #[arg(long, value_name = "BYTES", default_value = "14", value_parser = clap::value_parser!(i32).range(0..=1000))]
    overhead: i32,
    /// MaxNet's price update interval [default: 1 ms]
    #[arg(long, value_name = "TIME", value_parser = dt_p)]
    dt_p: Option<String>,
    /// MaxNet's time in which a standing queue drains [default: 130 ms]
    #[arg(long, value_name = "TIME", value_parser = t_0)]
    t0: Option<String>,
    /// MaxNet's T of the demand function; must be the same on all hosts and routers [default: 400 ms]
    #[arg(long, value_name = "TIME", value_parser = demand_time)]
    t: Option<String>,
    /// MaxNet's largest rate of a connection; must be the same on all hosts and routers [default: 1 Pbit/s]
    #[arg(long, value_name = "RATE", value_parser = any_rate)]
    x_max: Option<String>,
    /// MaxNet: count granted start rates as load until they arrive
    #[arg(long)]
    promise: bool,
    /// Compute the queue from arrivals and the rate, even where the device's queue can be read
    #[arg(long)]
    virtual_queue: bool,
    /// Limit the device to the rate, for a link that is slower than its device
    #[arg(long)]
    shape: bool,
    /// Buffer of the shaper [default: 100 ms at the rate]
    #[arg(long, value_name = "BYTES", requires = "shape", value_parser = quantity::volume)]
    buffer: Option<u64>,
    #[command(flatten)]
    cohabit: CohabitChoice,
    /// Write the fair rate of a flow as advice into SCONE packets of QUIC; needs Linux 6.6
    #[arg(long)]
    scone: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl RouterCommand {
    /// The law that the links run.
    pub(crate) fn law(&self) -> &'static Law {
        self.law.law
    }

    /// Returns the settings of each device.
    fn settings(&self) -> impl Iterator<Item = RouterSettings> {
        let values = self.values();
        self.devices.iter().zip(&self.rates).map(move |(device, rate_bps)| RouterSettings {
            device: device.clone(),
            rate_bps: *rate_bps,
            law: self.law(),
            values: values.clone(),
            target: self.target,
            overhead_bytes: self.overhead,
            virtual_queue: self.virtual_queue,
            shape: self.shape,
            buffer_bytes: self.buffer,
            cohabit: self.cohabit.controller,
            cohabit_values: self.cohabit.set.clone(),
            separate: self.cohabit.separate,
            scone: self.scone,
        })
    }

    /// Returns the options of each device.
    pub(crate) fn options(&self) -> anyhow::Result<Vec<router::Options>> {
        self.settings().map(|settings| Ok(settings.options(Names::Options)?)).collect()
    }

    /// Returns the options of a device with another rate.
    pub(crate) fn at_rate(&self, device: &str, rate_bps: u64) -> anyhow::Result<router::Options> {
        let settings = self.settings().find(|settings| settings.device == device);
        let settings = settings.ok_or_else(|| user_error(format!("device {device}: expected one of this router's")))?;
        Ok(RouterSettings { rate_bps, ..settings }.options(Names::Options)?)
    }

    /// The parameters given, by MaxNet's own options and by `--set`.
    fn values(&self) -> Vec<(String, String)> {
        let options = [
            ("dt_p", self.dt_p.clone()),
            ("t_0", self.t0.clone()),
            ("t", self.t.clone()),
            ("x_max", self.x_max.clone()),
            ("promise", self.promise.then(|| "true".to_owned())),
        ];
        self.law.with(options)
    }

    /// Checks options against each other.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.devices.len() != self.rates.len() {
            return Err(format!(
                "expected one --rate for each --dev, got {} --rate and {} --dev",
                self.rates.len(),
                self.devices.len()
            ));
        }
        if let Some(twice) = (1..self.devices.len()).find(|i| self.devices[..*i].contains(&self.devices[*i])) {
            return Err(format!("--dev {}: expected each device once", self.devices[twice]));
        }
        if self.cohabit.separate && self.common.once {
            return Err("--separate: expected none with --once, as the daemon divides the link while it runs".into());
        }
        self.law.check(&self.values())?;
        self.settings().try_for_each(|settings| settings.options(Names::Options).map(drop).map_err(|wrong| wrong.text))
    }
}
