//! Checked options of a host, with derived values.

use std::path::PathBuf;

use anyhow::Result;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

use crate::daemon::kernel::law::LoadableLaw;
use crate::daemon::kernel::laws;
use crate::daemon::kernel::probe::System;
use crate::daemon::options::values::OptionKind;
use crate::daemon::options::{HostOptions, Names, Wrong};
use crate::daemon::roles::law_parameters;

/// Checked setup of one law on this host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostSetup {
    /// Options that the user gave, without the law's parameters, which are in `parameters`.
    pub(crate) options: HostOptions,
    pub(crate) law: &'static LoadableLaw,
    /// Bytes of the law's `struct law_params`.
    pub(crate) parameters: Vec<u8>,
    /// Name of the congestion control in the kernel.
    pub(crate) name: String,
    pub(crate) cgroup: PathBuf,
}

impl HostSetup {
    /// Checks that the options fit together, without asking the kernel. `root` finds the root of the control groups.
    pub(crate) fn of(options: &HostOptions, names: Names, root: impl FnOnce() -> Result<PathBuf>) -> Result<Self> {
        let (law, name, parameters) = check(options, names)?;
        Ok(Self {
            options: HostOptions { params: Vec::new(), ..options.clone() },
            law,
            parameters,
            name,
            cgroup: options.cgroup.clone().map_or_else(root, Ok)?,
        })
    }

    /// Parses a `[host]` table, for tests.
    #[cfg(test)]
    pub(crate) fn read(text: &str) -> Self {
        Self::of(&toml::from_str(text).unwrap(), Names::Keys, || System::find()?.cgroup()).unwrap()
    }

    /// Checks that this host supports the setup.
    pub(crate) fn check_kernel(&self, system: &System, names: Names) -> Result<(), Wrong> {
        let cgroup = self.cgroup.display();
        let wrong = |why: String| Err(Wrong::new("cgroup", format!("{} {cgroup}: {why}", names.of("cgroup"))));
        match statfs(&self.cgroup) {
            Err(e) => return wrong(e.desc().into()),
            Ok(found) if found.filesystem_type() != CGROUP2_SUPER_MAGIC => {
                let below = |point: &PathBuf| format!("; choose one below {}", point.display());
                let place = system.cgroup2.as_ref().map_or_else(String::new, below);
                return wrong(format!("not a control group of version 2{place}"));
            }
            Ok(_) => {}
        }
        let fallback = &self.options.fallback.0;
        if !system.congestion_controls.contains(fallback) {
            let (name, known) = (names.of("fallback"), system.congestion_controls.join(", "));
            let text = format!("{name} {fallback}: this congestion control is not loaded; loaded: {known}");
            return Err(Wrong::new("fallback", text));
        }
        Ok(())
    }
}

/// Checks that the options fit together. Returns the law, the congestion control's name, and the law's parameters.
pub(crate) fn check(options: &HostOptions, names: Names) -> Result<(&'static LoadableLaw, String, Vec<u8>), Wrong> {
    let law = laws::named(options.law);
    if options.option_kind == OptionKind::Paper && !law.is_default() {
        let (kind, of_law) = (names.of("option_kind"), names.of("law"));
        return Err(Wrong::new("option_kind", format!("{kind} 42: must be 253 with {of_law} {}", law.name)));
    }
    let name = options.name.as_ref().map_or_else(|| law.congestion_control(), |name| name.0.clone());
    if options.fallback.0 == name {
        let text = format!("{} {name}: is the law's own name; choose another", names.of("fallback"));
        return Err(Wrong::new("fallback", text));
    }
    let parameters = law_parameters(law, names, &options.params, None)?;
    Ok((law, name, parameters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_cgroup_is_named() {
        for (text, said) in [
            ("cgroup = '/proc'", "--cgroup /proc: not a control group"),
            ("cgroup = '/no/such/folder'", "--cgroup /no/such/folder"),
        ] {
            let wrong = HostSetup::read(text).check_kernel(&System::default(), Names::Options).unwrap_err();
            assert!(wrong.text.contains(said), "{wrong}");
        }
    }
}
