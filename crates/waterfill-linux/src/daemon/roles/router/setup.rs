//! Checked options of a link, with derived values.

use super::cohabit::CohabitParams;
use super::shaper::Shaping;
use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::laws;
use crate::daemon::kernel::probe::{HTB, System, TBF, TCX};
use crate::daemon::options::values::Rate;
use crate::daemon::options::{Names, RouterOptions, Wrong};
use crate::daemon::roles::{law_parameters, scone, wrong_parameter};

/// Checked setup of one law on one device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSetup {
    /// Options that the user gave, without parameters, which are in `parameters` and `cohabit`.
    pub(crate) options: RouterOptions,
    pub(crate) law: &'static LoadableLaw,
    /// Bytes of the law's `struct law_params`.
    pub(crate) parameters: Vec<u8>,
    /// Fraction of the rate to fill, or `None` for the law's own target.
    pub(crate) target: Option<f64>,
    /// Parameters of the module that protects explicit flows from TCP, if it is used.
    pub(crate) cohabit: Option<CohabitParams>,
}

impl LinkSetup {
    /// Checks that the options fit together, without asking the kernel.
    pub(crate) fn of(options: &RouterOptions, names: Names) -> Result<Self, Wrong> {
        let law = laws::named(options.law);
        if options.buffer.is_some() && !options.shape {
            return Err(needs(options, names, "buffer", &names.given("shape")));
        }
        let cohabit = cohabit(options, names)?;
        check_scone(law, options, names)?;
        let parameters = law_parameters(law, names, &options.params, Some(&options.device.0))?;
        wrong_parameter(names, law.check_link(&options.params, options.rate.0))?;
        let target = options.target.map(|target| target.0).or_else(|| law.link_target());
        let options = RouterOptions {
            params: Vec::new(),
            cohabit_params: Vec::new(),
            // A device with two queues does not say which packets wait.
            virtual_queue: options.virtual_queue || options.separate,
            ..options.clone()
        };
        Ok(Self { options, law, parameters, target, cohabit })
    }

    /// Parses a `[[router]]` table, for tests.
    #[cfg(test)]
    pub(crate) fn read(text: &str) -> Self {
        Self::of(&toml::from_str(text).unwrap(), Names::Keys).unwrap()
    }

    /// Returns the name of the device.
    pub(crate) fn device(&self) -> &str {
        &self.options.device.0
    }

    /// Returns the rate of the link in bit/s.
    pub(crate) fn rate_bps(&self) -> u64 {
        self.options.rate.0
    }

    /// Returns this setup with another rate.
    pub(super) fn at_rate(&self, bps: u64) -> Self {
        Self { options: RouterOptions { rate: Rate(bps), ..self.options.clone() }, ..self.clone() }
    }

    /// Returns true if both setups use the cohabitation module in the same way.
    pub(super) fn same_cohabit(&self, other: &Self) -> bool {
        let of = |setup: &Self| {
            let RouterOptions { rate, overhead, separate, .. } = &setup.options;
            (setup.cohabit.clone(), *rate, *overhead, *separate, setup.target)
        };
        self.cohabit.is_none() && other.cohabit.is_none() || of(self) == of(other)
    }

    /// Returns the shaper settings for a device with a link header of `header_bytes`.
    pub(super) fn shaping(&self, header_bytes: u32) -> Shaping {
        Shaping {
            rate_bps: self.rate_bps(),
            correction_bytes: self.options.overhead.0 - header_bytes as i32,
            buffer_bytes: self.options.buffer.map(|bytes| bytes.0),
            separate: self.options.separate,
        }
    }

    /// Checks that the running kernel supports the setup.
    pub(crate) fn check_kernel(&self, system: &System, names: Names) -> Result<(), Wrong> {
        let RouterOptions { shape, separate, scone, .. } = self.options;
        let wants = [
            ("shape", "the queueing discipline tbf", TBF, shape),
            ("separate", "the queueing discipline htb", HTB, separate),
            ("cohabit", "the hook tcx (Linux 6.6)", TCX, self.cohabit.is_some()),
            ("scone", "the hook tcx (Linux 6.6)", TCX, scone),
        ];
        match wants.into_iter().find(|(_, _, feature, wanted)| *wanted && !system.has(feature)) {
            Some((key, what, ..)) => {
                let (name, kernel) = (names.of(key), &system.kernel);
                Err(Wrong::new(key, format!("{name} needs {what}, which this kernel, {kernel}, does not have")))
            }
            None => Ok(()),
        }
    }
}

fn needs(options: &RouterOptions, names: Names, key: &str, other: &str) -> Wrong {
    Wrong::new(key, format!("{}: needs {other} (device {})", names.of(key), options.device))
}

fn cohabit(options: &RouterOptions, names: Names) -> Result<Option<CohabitParams>, Wrong> {
    let wrong = |of: &str, text: String| Wrong::new(format!("cohabit_params.{of}"), text);
    let Some(controller) = options.cohabit else {
        return match () {
            () if options.separate => Err(needs(options, names, "separate", &names.of("cohabit"))),
            () if !options.cohabit_params.is_empty() => {
                Err(needs(options, names, "cohabit_params", &names.of("cohabit")))
            }
            () => Ok(None),
        };
    };
    let params = CohabitParams::with(controller, &options.cohabit_params)
        .map_err(|(of, value, why)| wrong(of, format!("{}: {why}", names.cohabit_parameter(of, Some(value)))))?;
    if options.separate {
        if !options.shape {
            return Err(needs(options, names, "separate", &names.given("shape")));
        }
        let apply = ["interval", "period", "explicit_weight"];
        if let Some((other, _)) = options.cohabit_params.iter().find(|(name, _)| !apply.contains(&name.as_str())) {
            let (what, separate) = (names.cohabit_parameter(other, None), names.given("separate"));
            return Err(wrong(other, format!("{what}: has no effect with {separate}; leave it out")));
        }
    }
    Ok(Some(params))
}

/// Checks that `--scone` is possible: the law must know a flow's fair rate and count all packets.
fn check_scone(law: &LoadableLaw, options: &RouterOptions, names: Names) -> Result<(), Wrong> {
    if !options.scone {
        return Ok(());
    }
    let name = names.of("scone");
    scone::check_law(law).map_err(|why| Wrong::new("scone", format!("{name}: {why}")))?;
    if options.separate {
        let text = format!("{name}: not possible with {}, which keeps UDP from the law", names.given("separate"));
        return Err(Wrong::new("scone", text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shaper_needs_tbf() {
        let check = |more: &str, system: &System| {
            LinkSetup::read(&format!("device = 'lo'\nrate = '1 Mbit/s'\n{more}")).check_kernel(system, Names::Options)
        };
        let why = check("shape = true", &System::default()).unwrap_err();
        assert!(why.text.starts_with("--shape needs"), "{why}");
        check("shape = true", &System::with(&[TBF])).unwrap();
        check("", &System::default()).unwrap();
    }
}
