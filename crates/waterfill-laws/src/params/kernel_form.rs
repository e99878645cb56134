//! Kernel form of a parameter: its member of `struct law_params`, the member's unit and its range.
//!
//! [`params!`](crate::params!) states the form next to the parameter, by one of the functions here. The checks of kernel
//! arithmetic, the words that the C code receives and the daemon's table of parameters all follow from it.

use std::ops::RangeInclusive;

use super::{ParamError, ParamType, Unit, Value, shown};

/// Location of a parameter in the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KernelPlace {
    /// Member of `struct law_params` with this name or, without one, the parameter's name. The member may belong to a
    /// nested structure.
    Member(Option<&'static str>),
    /// Target of each link, which the daemon and the simulator pass separately.
    LinkTarget,
    /// No location: the C code supports only the default.
    Nowhere,
}

/// Form of a parameter in the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelForm {
    /// Location of the parameter in the kernel.
    pub place: KernelPlace,
    /// Number of the member's units in one SI unit, for example 1e6 for a time in microseconds.
    pub scale: f64,
    /// Smallest value that the C code supports, in SI units.
    pub min: f64,
    /// Largest value that the C code supports, in SI units.
    pub max: f64,
    /// Words of a choice that the C code supports, in the order of the C code's numbers. `None` means all words in the
    /// choice's own order.
    pub words: Option<&'static [&'static str]>,
}

const ANY: KernelForm = KernelForm {
    place: KernelPlace::Member(None),
    scale: 1.0,
    min: f64::NEG_INFINITY,
    max: f64::INFINITY,
    words: None,
};

/// Creates the form of a number with `scale` units of the member in one SI unit.
#[must_use]
pub const fn scaled(scale: f64, range: RangeInclusive<f64>) -> KernelForm {
    KernelForm { scale, min: *range.start(), max: *range.end(), ..ANY }
}

/// Creates the form of a time in whole microseconds.
#[must_use]
pub const fn micros(range_s: RangeInclusive<f64>) -> KernelForm {
    scaled(1e6, range_s)
}

/// Creates the form of a time in whole milliseconds.
#[must_use]
pub const fn millis(range_s: RangeInclusive<f64>) -> KernelForm {
    scaled(1e3, range_s)
}

/// Creates the form of a whole number, or of a rate in bit/s.
#[must_use]
pub const fn whole(range: RangeInclusive<f64>) -> KernelForm {
    scaled(1.0, range)
}

/// Creates the form of a whole number with a lower bound. The only upper bound is the maximum of the number's type.
#[must_use]
pub const fn at_least(min: f64) -> KernelForm {
    KernelForm { min, ..ANY }
}

/// Creates the form of a flag, or of a choice whose words keep the choice's own order.
#[must_use]
pub const fn word() -> KernelForm {
    ANY
}

/// Creates the form of a choice for which the C code supports these words, numbered from 0.
#[must_use]
pub const fn words(words: &'static [&'static str]) -> KernelForm {
    KernelForm { words: Some(words), ..ANY }
}

/// Creates the form of a link's target.
#[must_use]
pub const fn link_target(range: RangeInclusive<f64>) -> KernelForm {
    KernelForm { place: KernelPlace::LinkTarget, ..scaled(1e6, range) }
}

/// Creates the form of a parameter that the C code lacks. In kernel arithmetic the parameter must have its default.
#[must_use]
pub const fn default_only() -> KernelForm {
    KernelForm { place: KernelPlace::Nowhere, ..ANY }
}

/// Returns the kernel form of a parameter, if there is one, for [`params!`](crate::params!).
#[must_use]
pub const fn form_of(forms: &[KernelForm]) -> Option<KernelForm> {
    match forms {
        [form, ..] => Some(*form),
        [] => None,
    }
}

impl KernelForm {
    /// Sets the member's name, if it differs from the parameter's name.
    #[must_use]
    pub const fn member(self, name: &'static str) -> Self {
        Self { place: KernelPlace::Member(Some(name)), ..self }
    }

    /// Returns the name of the member for the parameter `name`; `None` if the parameter has no member.
    #[must_use]
    pub const fn member_of(&self, name: &'static str) -> Option<&'static str> {
        match self.place {
            KernelPlace::Member(Some(other)) => Some(other),
            KernelPlace::Member(None) => Some(name),
            KernelPlace::LinkTarget | KernelPlace::Nowhere => None,
        }
    }

    /// Returns the member and its number for a value of the parameter `name`; `None` if the parameter has no member.
    #[must_use]
    pub fn number_of(&self, name: &'static str, value: &impl ParamType) -> Option<(&'static str, u64)> {
        self.member_of(name).map(|member| (member, value.kernel_number(self)))
    }

    /// Returns the kernel's number for a word of a choice, or 0 if the C code does not support the word.
    #[must_use]
    pub fn place_of(&self, all: &[&str], word: &str) -> u64 {
        let words = self.words.unwrap_or(all);
        words.iter().position(|known| *known == word).map_or(0, |place| place as u64)
    }

    /// Checks that the C code supports a value.
    pub(super) fn check(&self, name: &str, unit: Unit, default: &Value, value: &Value) -> Result<(), ParamError> {
        // Times are compared in whole picoseconds, as the simulator stores them.
        let exact = |x: f64| if unit == Unit::Time { (x * 1e12).round() } else { x };
        let supports = match (self.place, value) {
            (KernelPlace::Nowhere, value) => value == default,
            (_, Value::Number(n)) => (exact(self.min)..=exact(self.max)).contains(&exact(*n)),
            (_, value) => self.words.is_none_or(|words| words.contains(&word_of(unit, value))),
        };
        if supports {
            return Ok(());
        }
        let wanted = self.supported(unit, default).unwrap_or_default();
        Err(ParamError(format!("{name}: must be {wanted} in kernel arithmetic, got {}", shown(unit, value))))
    }

    /// Returns the values that the C code supports, as text for a table; `None` if the C code supports all values of
    /// the parameter.
    #[must_use]
    pub fn supported(&self, unit: Unit, default: &Value) -> Option<String> {
        let show = |n: f64| unit.show(&Value::Number(n));
        match (self.place, self.words, self.min, self.max) {
            (KernelPlace::Nowhere, ..) => Some(shown(unit, default)),
            (_, Some(words), ..) => {
                Some(words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or "))
            }
            (_, None, f64::NEG_INFINITY, _) => None,
            (_, None, min, f64::INFINITY) => Some(format!("at least {}", show(min))),
            (_, None, min, max) => Some(format!("a value from {} to {}", show(min), show(max))),
        }
    }
}

/// Returns the word that a choice's value represents, or an empty string if the value represents none.
///
/// A choice that used to be a flag accepts `true` for its first word and `false` for its last.
fn word_of(unit: Unit, value: &Value) -> &str {
    match (unit, value) {
        (Unit::Choice([first, ..]), Value::Flag(true)) => first,
        (Unit::Choice([.., last]), Value::Flag(false)) => last,
        (_, Value::Word(word)) => word,
        _ => "",
    }
}

/// Returns the kernel's number for a value. See [`ParamType::kernel_number`].
pub(super) fn number_of(form: &KernelForm, unit: Unit, value: &Value) -> u64 {
    match (unit, value) {
        (_, Value::Number(n)) => (n * form.scale).round() as u64,
        (Unit::Choice(all), value) => form.place_of(all, word_of(unit, value)),
        (_, value) => u64::from(*value == Value::Flag(true)),
    }
}
