//! The settings of one device of the router.

use super::{Names, Wrong, named, parameters};
use crate::daemon::law::Law;
use crate::daemon::router::{CohabitController, CohabitParams, Options, Shape, check_scone};

/// Settings of one law on one device.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "options of a device that do not depend on each other")]
pub(crate) struct RouterSettings {
    pub(crate) device: String,
    pub(crate) rate_bps: u64,
    pub(crate) law: &'static Law,
    /// Parameters of the law, by name.
    pub(crate) values: Vec<(String, String)>,
    pub(crate) target: Option<f64>,
    pub(crate) overhead_bytes: i32,
    pub(crate) virtual_queue: bool,
    pub(crate) shape: bool,
    pub(crate) buffer_bytes: Option<u64>,
    pub(crate) cohabit: Option<CohabitController>,
    /// Parameters of `cohabit`, by name.
    pub(crate) cohabit_values: Vec<(String, String)>,
    /// A queue per class instead of a controller.
    pub(crate) separate: bool,
    /// Advice in SCONE packets.
    pub(crate) scone: bool,
}

impl RouterSettings {
    /// Returns the options of the device. Checks settings against each other.
    pub(crate) fn options(&self, names: Names) -> Result<Options, Wrong> {
        if self.buffer_bytes.is_some() && !self.shape {
            return Err(self.needs(names, "buffer", &names.given("shape")));
        }
        let cohabit = self.cohabit(names)?;
        self.check_scone(names)?;
        let parameters = parameters(self.law, names, &self.values, Some(&self.device))?;
        named(names, self.law.check_link(&self.values, self.rate_bps))?;
        Ok(Options {
            device: self.device.clone(),
            rate_bps: self.rate_bps,
            target: self.target.or_else(|| self.law.link_target()),
            overhead_bytes: self.overhead_bytes,
            parameters,
            // A device with two queues does not say which packets wait.
            virtual_queue: self.virtual_queue || self.separate,
            shape: self.shape.then_some(Shape { buffer_bytes: self.buffer_bytes }),
            cohabit,
            scone: self.scone,
        })
    }

    fn needs(&self, names: Names, key: &str, other: &str) -> Wrong {
        Wrong::new(key, format!("{}: expected only with {other} (device {})", names.of(key), self.device))
    }

    fn cohabit(&self, names: Names) -> Result<Option<CohabitParams>, Wrong> {
        let Some(controller) = self.cohabit else {
            return match () {
                () if self.separate => Err(self.needs(names, "separate", &names.of("cohabit"))),
                () if !self.cohabit_values.is_empty() => Err(self.needs(names, "cohabit_params", &names.of("cohabit"))),
                () => Ok(None),
            };
        };
        let name = |name: &str, value: &str| match names {
            Names::Options => format!("--cohabit-set {name}={value}"),
            Names::Keys => format!("cohabit_params.{name} {value}"),
        };
        let wrong = |of: &str, text: String| Wrong::new(format!("cohabit_params.{of}"), text);
        let params = CohabitParams::with(controller, &self.cohabit_values)
            .map_err(|(of, value, why)| wrong(of, format!("{}: {why}", name(of, value))))?;
        if self.separate {
            if !self.shape {
                return Err(self.needs(names, "separate", &names.given("shape")));
            }
            let apply = ["interval", "period", "explicit_weight"];
            if let Some((other, _)) = self.cohabit_values.iter().find(|(name, _)| !apply.contains(&name.as_str())) {
                let (what, separate) = match names {
                    Names::Options => (format!("--cohabit-set {other}"), "--separate"),
                    Names::Keys => (format!("cohabit_params.{other}"), "separate = true"),
                };
                return Err(wrong(other, format!("{what}: expected none with {separate}, which has no controller")));
            }
        }
        Ok(Some(CohabitParams { separate: self.separate, ..params }))
    }

    /// Checks that the law knows what a flow should send, and counts all packets.
    fn check_scone(&self, names: Names) -> Result<(), Wrong> {
        if !self.scone {
            return Ok(());
        }
        let name = names.of("scone");
        check_scone(self.law).map_err(|why| Wrong::new("scone", format!("{name}: {why}")))?;
        if self.separate {
            let text = format!("{name}: expected none with {}, which keeps UDP from the law", names.given("separate"));
            return Err(Wrong::new("scone", text));
        }
        Ok(())
    }
}
