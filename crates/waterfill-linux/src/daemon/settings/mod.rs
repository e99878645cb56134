//! What the roles are to do, as people say it: by options of the command line or by keys of the configuration file. Both
//! go through the checks here, which name what is wrong as the user wrote it.

mod csig;
mod host;
mod router;

use std::fmt;

use super::error::user_error;
use super::law::Law;

pub(super) use csig::CsigSettings;
pub(super) use host::HostSettings;
pub(super) use router::RouterSettings;

/// How messages name a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// As options: `--x-max`.
    Options,
    /// As keys of the file: `params.x_max`.
    Keys,
}

impl Names {
    /// Names a setting.
    pub(super) fn of(self, key: &str) -> String {
        match (self, key) {
            (Self::Keys, key) => key.to_owned(),
            (Self::Options, "device") => "--dev".into(),
            (Self::Options, key) => format!("--{}", key.replace('_', "-")),
        }
    }

    /// Names a setting that is in force.
    fn given(self, key: &str) -> String {
        match self {
            Self::Keys => format!("{key} = true"),
            Self::Options => self.of(key),
        }
    }
}

/// A setting that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Where it is in the file, such as `params.x_max`.
    pub(super) key: String,
    /// One sentence: what is wrong, and what was expected.
    pub(super) text: String,
}

impl Wrong {
    pub(super) fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        Self { key: key.into(), text: text.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Wrong> for anyhow::Error {
    fn from(wrong: Wrong) -> Self {
        user_error(wrong.text)
    }
}

/// Returns a law's parameters with these values.
fn parameters(law: &Law, names: Names, values: &[(String, String)], device: Option<&str>) -> Result<Vec<u8>, Wrong> {
    named(names, law.encode(values, device))
}

/// Names a parameter that is wrong as the user wrote it.
fn named<T>(names: Names, found: Result<T, (String, String)>) -> Result<T, Wrong> {
    found.map_err(|(name, why)| {
        let prefix = if names == Names::Keys { "params." } else { "" };
        Wrong::new(format!("params.{name}"), format!("{prefix}{why}"))
    })
}
