//! Self-describing parameters of protocols: name, unit, default, meaning and source.
//!
//! A protocol lists its parameters once, with [`params!`](crate::params!). The command line, the scenario check, the
//! generated pages, the C code's `struct law_params` and the daemon read the same list. Values cross in SI units.

use crate::math::ten_to;
use crate::units::{Duration, Rate, Volume};

pub mod kernel_form;

pub use kernel_form::{KernelForm, KernelPlace};

/// Type of a parameter, which determines the unit that a user writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number without a unit.
    Ratio,
    /// A rate in bit/s.
    Rate,
    /// A time in seconds.
    Time,
    /// A volume in bytes.
    Volume,
    /// A whole number.
    Count,
    /// A word from a fixed list.
    Choice(&'static [&'static str]),
    /// A flag, `true` or `false`.
    Flag,
}

impl Unit {
    /// Returns the unit's name in listings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Rate => "rate",
            Self::Time => "time",
            Self::Volume => "volume",
            Self::Count => "count",
            Self::Choice(_) => "choice",
            Self::Flag => "flag",
        }
    }

    /// Formats a value as people read and write values, for example `130 ms`.
    #[must_use]
    pub fn show(self, value: &Value) -> String {
        match (self, value) {
            (Self::Time, Value::Number(n)) => with_prefix(*n, "s", SMALL),
            (Self::Rate, Value::Number(n)) => with_prefix(*n, "bit/s", LARGE),
            (Self::Volume, Value::Number(n)) => with_prefix(*n, "B", LARGE),
            (_, Value::Number(n)) => n.to_string(),
            (_, Value::Word(word)) => word.clone(),
            (_, Value::Flag(flag)) => flag.to_string(),
        }
    }
}

const LARGE: &[(&str, i32)] = &[("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0)];
const SMALL: &[(&str, i32)] = &[("", 0), ("m", -3), ("µ", -6), ("n", -9), ("p", -12)];

/// Formats a number with the largest prefix that leaves it at least 1, or without a prefix if there is none. 15
/// significant digits are kept.
fn with_prefix(n: f64, unit: &str, prefixes: &[(&str, i32)]) -> String {
    let zero = ("", 0);
    let fits = |(_, exponent): &&(&str, i32)| n.abs() >= ten_to(*exponent) * (1.0 - 1e-12);
    let (prefix, exponent) = prefixes.iter().find(fits).copied().unwrap_or(zero);
    // A power of ten is not exact in binary; 15 digits of the quotient are.
    let digits: f64 = format!("{:.14e}", n / ten_to(exponent)).parse().unwrap_or(n);
    format!("{digits} {prefix}{unit}")
}

/// Value of a parameter as a user gave it, converted to SI units.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number: bit/s, seconds, bytes, a ratio or a count.
    Number(f64),
    /// A word of a choice.
    Word(String),
    /// A flag.
    Flag(bool),
}

/// Rust type that a parameter can have.
pub trait ParamType: Sized {
    /// Unit of the parameter.
    const UNIT: Unit;
    /// Converts the parameter to a value in SI units.
    fn to_value(&self) -> Value;
    /// Converts a value in SI units to the parameter; `None` if the value has the wrong type.
    fn from_value(value: &Value) -> Option<Self>;
    /// Returns the number that represents the parameter in the kernel.
    ///
    /// This is the value in the kernel's unit, rounded to the nearest integer, or the index of a word.
    fn kernel_number(&self, form: &KernelForm) -> u64 {
        kernel_form::number_of(form, Self::UNIT, &self.to_value())
    }
}

/// Implements [`ParamType`] for a type that holds one number.
macro_rules! number {
    ($t:ty, $unit:expr, $to:expr, $from:expr) => {
        impl ParamType for $t {
            const UNIT: Unit = $unit;
            fn to_value(&self) -> Value {
                Value::Number($to(*self))
            }
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Number(n) if n.is_finite() => $from(*n),
                    _ => None,
                }
            }
        }
    };
}
number!(f64, Unit::Ratio, |x| x, Some);
number!(Rate, Unit::Rate, Rate::as_bps, |n| Some(Rate::from_bps(n)));
number!(Volume, Unit::Volume, Volume::as_bytes, |n| Some(Volume::from_bytes(n)));
number!(u32, Unit::Count, f64::from, |n: f64| {
    (n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&n)).then_some(n as u32)
});

impl ParamType for Duration {
    const UNIT: Unit = Unit::Time;
    fn to_value(&self) -> Value {
        Value::Number(self.as_secs())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(n) if n.is_finite() && *n >= 0.0 => Some(Self::from_secs(*n)),
            _ => None,
        }
    }
    /// Returns the duration in the kernel's unit. Halves are rounded up, which floating-point seconds would not
    /// guarantee.
    fn kernel_number(&self, form: &KernelForm) -> u64 {
        let unit_ps = (1e12 / form.scale) as u64;
        (self.as_ps() + unit_ps / 2) / unit_ps
    }
}

impl ParamType for bool {
    const UNIT: Unit = Unit::Flag;
    fn to_value(&self) -> Value {
        Value::Flag(*self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Flag(b) => Some(*b),
            _ => None,
        }
    }
}

/// Description of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamInfo {
    /// Key of the parameter in a scenario.
    pub name: &'static str,
    /// Type and unit of the parameter.
    pub unit: Unit,
    /// Default value of the parameter.
    pub default: Value,
    /// Meaning of the parameter.
    pub doc: &'static str,
    /// Source of the default value.
    pub source: &'static str,
    /// Form of the parameter in the kernel; `None` if the C code neither has nor forbids the parameter.
    pub kernel: Option<KernelForm>,
}

/// Error for a refused parameter: its name, the problem and the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError(pub String);

impl std::fmt::Display for ParamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParamError {}

impl ParamError {
    /// Appends the parameter's value to the message, unless the message already contains a value.
    #[must_use]
    pub fn with_value<P: Params>(self, params: &P) -> Self {
        let name = self.0.split(':').next().unwrap_or_default();
        let values = params.values();
        let found = P::list()
            .iter()
            .zip(&values)
            .find(|(info, _)| info.name == name)
            .map(|(info, (_, value))| shown(info.unit, value));
        match found {
            Some(value) if !self.0.contains(", got ") => Self(format!("{}, got {value}", self.0)),
            _ => self,
        }
    }
}

/// Returns a value as a message quotes it: a word in quotes, a number with its unit, or a flag.
#[must_use]
pub fn shown(unit: Unit, value: &Value) -> String {
    match value {
        Value::Word(word) => format!("\"{word}\""),
        Value::Number(n) if *n != 0.0 && !(1e-12..1e21).contains(&n.abs()) => format!("{n:e}"),
        value => unit.show(value),
    }
}

/// Parameters of one protocol.
pub trait Params: Clone + Default {
    /// Lists the parameters with their defaults.
    fn list() -> Vec<ParamInfo>;
    /// Sets a parameter by name.
    ///
    /// # Errors
    /// The name is unknown, or the value has the wrong type.
    fn set(&mut self, name: &str, value: &Value) -> Result<(), ParamError>;
    /// Returns the values of all parameters with their names, in the order of the list.
    fn values(&self) -> Vec<(&'static str, Value)>;
    /// Returns the members of the law's `struct law_params` with their numbers.
    fn kernel_numbers(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// Checks the ranges and combinations of all parameters.
    ///
    /// # Errors
    /// Names the first parameter that is out of range.
    fn validate(&self) -> Result<(), ParamError>;
    /// Checks that the C code supports the values, unless `arithmetic` selects real numbers.
    ///
    /// # Errors
    /// Names the first parameter that it does not support, the range and the value.
    fn check_kernel(&self) -> Result<(), ParamError> {
        let values = self.values();
        let real = Value::Word("real".to_owned());
        if values.iter().all(|(name, value)| *name != "arithmetic" || *value == real) {
            return Ok(());
        }
        Self::list().iter().zip(&values).try_for_each(|(info, (name, value))| match info.kernel {
            Some(form) => form.check(name, info.unit, &info.default, value),
            None => Ok(()),
        })
    }
}

/// Checks a condition on a parameter, and names the parameter in the error.
///
/// # Errors
/// `name: must be {wanted}` when `ok` is false.
pub fn require(ok: bool, name: &str, wanted: &str) -> Result<(), ParamError> {
    if ok { Ok(()) } else { Err(ParamError(format!("{name}: must be {wanted}"))) }
}

/// Declares a protocol's parameters: a struct whose fields have defaults and can be listed and set by name.
///
/// A parameter is one statement: its name, type, default and the default's source. If the law's C code has it, its form
/// there follows after the word `kernel`, made by a function of [`kernel_form`] such as
/// [`micros`](kernel_form::micros). The type must then get a `fn check(&self) -> Result<(), ParamError>`, which leaves the
/// ranges of the C code to the forms.
#[macro_export]
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[doc = $doc:expr])+
        $field:ident : $t:ty = $default:expr, $source:expr $(, kernel $form:expr)?;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $t,)* }

        impl Default for $name {
            fn default() -> Self { Self { $($field: $default,)* } }
        }

        impl $name {
            const KERNEL_FORMS: &'static [Option<$crate::params::KernelForm>] = {
                #[allow(unused_imports, clippy::wildcard_imports, reason = "for the forms, if there are any")]
                use $crate::params::kernel_form::*;
                &[$(form_of(&[$($form)?]),)*]
            };
        }

        impl $crate::params::Params for $name {
            fn list() -> Vec<$crate::params::ParamInfo> {
                use $crate::params::{ParamInfo, ParamType};
                let default = Self::default();
                let mut forms = Self::KERNEL_FORMS.iter().copied();
                vec![$(ParamInfo {
                    name: stringify!($field),
                    unit: <$t as ParamType>::UNIT,
                    default: ParamType::to_value(&default.$field),
                    doc: concat!($($doc),+).trim_ascii_start(),
                    source: $source,
                    kernel: forms.next().flatten(),
                },)*]
            }
            fn set(&mut self, name: &str, value: &$crate::params::Value) -> Result<(), $crate::params::ParamError> {
                use $crate::params::{ParamError, ParamType};
                match name {
                    $(stringify!($field) => {
                        self.$field = <$t as ParamType>::from_value(value).ok_or_else(|| ParamError(format!(
                            "{name}: must be a {}, got {}", <$t as ParamType>::UNIT.name(), $crate::params::shown(<$t as ParamType>::UNIT, value))))?;
                        Ok(())
                    })*
                    _ => Err(ParamError(format!("{name}: unknown parameter"))),
                }
            }
            fn values(&self) -> Vec<(&'static str, $crate::params::Value)> {
                use $crate::params::ParamType;
                vec![$((stringify!($field), ParamType::to_value(&self.$field)),)*]
            }
            fn kernel_numbers(&self) -> Vec<(&'static str, u64)> {
                let mut forms = Self::KERNEL_FORMS.iter().copied();
                [$(forms.next().flatten().and_then(|form| form.number_of(stringify!($field), &self.$field)),)*]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            fn validate(&self) -> Result<(), $crate::params::ParamError> {
                $crate::params::Params::check_kernel(self)?;
                self.check().map_err(|error| error.with_value(self))
            }
        }
    };
}

/// Declares an enum whose variants are the words that a user may write for a parameter.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $doc:expr])+ $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)* }

        impl $name {
            /// Returns the word for this variant.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl $crate::params::ParamType for $name {
            const UNIT: $crate::params::Unit = $crate::params::Unit::Choice(&[$($word),*]);
            fn to_value(&self) -> $crate::params::Value {
                $crate::params::Value::Word(self.word().to_string())
            }
            fn kernel_number(&self, form: &$crate::params::KernelForm) -> u64 {
                form.place_of(&[$($word),*], self.word())
            }
            fn from_value(value: &$crate::params::Value) -> Option<Self> {
                match value {
                    $crate::params::Value::Word(w) => match w.as_str() { $($word => Some(Self::$variant),)* _ => None },
                    _ => None,
                }
            }
        }
    };
}
