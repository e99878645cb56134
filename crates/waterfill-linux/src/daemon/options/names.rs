//! Names of settings in messages, as the user wrote them.

use std::fmt;

use super::error::user_error;

/// Form in which messages name a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// As options: `--virtual-queue`.
    Options,
    /// As keys of the file: `virtual_queue`.
    Keys,
}

impl Names {
    /// Names a setting.
    pub(crate) fn of(self, key: &str) -> String {
        match (self, key) {
            (Self::Keys, key) => key.to_owned(),
            (Self::Options, "device") => "--dev".into(),
            (Self::Options, "cohabit_params") => "--cohabit-set".into(),
            (Self::Options, key) => format!("--{}", key.replace('_', "-")),
        }
    }

    /// Names a setting that is in force.
    pub(crate) fn given(self, key: &str) -> String {
        match self {
            Self::Keys => format!("{key} = true"),
            Self::Options => self.of(key),
        }
    }

    /// Names a parameter of `cohabit`, with its value if it is given.
    pub(crate) fn cohabit_parameter(self, name: &str, value: Option<&str>) -> String {
        match (self, value) {
            (Self::Keys, Some(value)) => format!("cohabit_params.{name} {value}"),
            (Self::Keys, None) => format!("cohabit_params.{name}"),
            (Self::Options, Some(value)) => format!("--cohabit-set {name}={value}"),
            (Self::Options, None) => format!("--cohabit-set {name}"),
        }
    }
}

/// A setting that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Its place in the file, such as `params.x_max`.
    pub(crate) key: String,
    /// One sentence: what is wrong, and what was expected.
    pub(crate) text: String,
}

impl Wrong {
    pub(crate) fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
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
