//! Names of settings in messages, as the user wrote them.

use std::fmt;

use super::error::user_error;

/// Form in which messages name a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Names of options, such as `--virtual-queue`.
    Options,
    /// Keys of the configuration file, such as `virtual_queue`.
    Keys,
}

impl Names {
    /// Returns the name of a setting in this form.
    pub(crate) fn of(self, key: &str) -> String {
        match (self, key) {
            (Self::Keys, key) => key.to_owned(),
            (Self::Options, "device") => "--dev".into(),
            (Self::Options, "cohabit_params") => "--cohabit-set".into(),
            (Self::Options, key) => format!("--{}", key.replace('_', "-")),
        }
    }

    /// Returns the text that turns a setting on: an option, or a key with the value `true`.
    pub(crate) fn given(self, key: &str) -> String {
        match self {
            Self::Keys => format!("{key} = true"),
            Self::Options => self.of(key),
        }
    }

    /// Returns the name of a parameter of `cohabit`, with its value if one is given.
    pub(crate) fn cohabit_parameter(self, name: &str, value: Option<&str>) -> String {
        match (self, value) {
            (Self::Keys, Some(value)) => format!("cohabit_params.{name} {value}"),
            (Self::Keys, None) => format!("cohabit_params.{name}"),
            (Self::Options, Some(value)) => format!("--cohabit-set {name}={value}"),
            (Self::Options, None) => format!("--cohabit-set {name}"),
        }
    }
}

/// Separator between the message about an unknown name and the list of known names.
pub(crate) const KNOWN: &str = "; known: ";
/// Maximum number of typing errors for which a known name is suggested.
const MAX_TYPING_ERRORS: usize = 2;

/// Returns the message about an unknown name. The message suggests a known name at most two typing errors away, or
/// lists all known names.
///
/// A typing error inserts, deletes or replaces a letter, or swaps two neighbours (optimal string alignment).
pub(crate) fn unknown<'a>(what: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    let lower = word.to_lowercase();
    let near = known.iter().map(|name| {
        let name_lower = name.to_lowercase();
        (strsim::osa_distance(&lower, &name_lower), lower.chars().next() != name_lower.chars().next(), *name)
    });
    match near.min() {
        Some((distance, _, name)) if distance <= MAX_TYPING_ERRORS && distance < word.chars().count() => {
            format!("unknown {what}, did you mean \"{name}\"?")
        }
        _ => format!("unknown {what}{KNOWN}{}", known.join(", ")),
    }
}

/// Error of a wrong setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Key of the setting in the file, such as `params.x_max`.
    pub(crate) key: String,
    /// One sentence that states the problem with the value, and the advice.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_at_most_two_typing_errors_away_is_suggested() {
        let known = ["rate", "target", "device", "law", "rates"];
        for (word, name) in [("ratee", "rate"), ("RATE", "rate"), ("trgaet", "target"), ("devcie", "device")] {
            assert_eq!(unknown("key", word, known), format!("unknown key, did you mean \"{name}\"?"));
        }
        // Jaro-Winkler finds these alike: they begin with the same letters.
        for word in ["targets_of_all", "dev", "x", ""] {
            assert_eq!(unknown("key", word, known), "unknown key; known: rate, target, device, law, rates");
        }
    }
}
