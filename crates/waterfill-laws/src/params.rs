//! Parameters that describe themselves: name, unit, default, meaning and source.
//!
//! A protocol lists its parameters once, with [`params!`](crate::params!); the command line, the
//! scenario check and the generated pages read the same list. Values cross in SI units.

use crate::units::{Duration, Rate, Volume};

/// A parameter's type, and so the unit that a user writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Ratio,
    /// bit/s.
    Rate,
    /// Seconds.
    Time,
    /// Bytes.
    Volume,
    /// A whole number.
    Count,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
}

impl Unit {
    /// Returns its name in listings.
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
}

/// A parameter's value as a user gave it, converted to SI units.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// bit/s, seconds, bytes, a ratio or a whole number.
    Number(f64),
    /// One of a choice.
    Word(String),
    /// A flag.
    Flag(bool),
}

/// A Rust type that a parameter can have.
pub trait Kind: Sized {
    /// Its unit.
    const UNIT: Unit;
    /// Converts to a value in SI units.
    fn to_value(&self) -> Value;
    /// Converts from a value in SI units; `None` when it has the wrong type.
    fn from_value(value: &Value) -> Option<Self>;
}

/// Implements [`Kind`] for a type that is one number.
macro_rules! number {
    ($t:ty, $unit:expr, $to:expr, $from:expr) => {
        impl Kind for $t {
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
number!(Duration, Unit::Time, Duration::as_secs, |n: f64| (n >= 0.0).then(|| Duration::from_secs(n)));
number!(Volume, Unit::Volume, Volume::as_bytes, |n| Some(Volume::from_bytes(n)));
number!(u32, Unit::Count, f64::from, |n: f64| {
    (n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&n)).then_some(n as u32)
});

impl Kind for bool {
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

/// The description of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamInfo {
    /// Key in a scenario.
    pub name: &'static str,
    /// Type and unit.
    pub unit: Unit,
    /// Default.
    pub default: Value,
    /// What it does.
    pub doc: &'static str,
    /// Source of the default.
    pub source: &'static str,
}

/// Why a parameter was refused: its name and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError(pub String);

impl std::fmt::Display for ParamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParamError {}

/// The parameters of one protocol.
pub trait Params: Clone + Default {
    /// Lists the parameters with their defaults.
    fn list() -> Vec<ParamInfo>;
    /// Sets a parameter by name.
    ///
    /// # Errors
    /// The name is unknown, or the value has the wrong type.
    fn set(&mut self, name: &str, value: &Value) -> Result<(), ParamError>;
    /// Returns all values by name, in the order of the list.
    fn values(&self) -> Vec<(&'static str, Value)>;
    /// Checks ranges and combinations.
    ///
    /// # Errors
    /// Names the first parameter that is out of range.
    fn validate(&self) -> Result<(), ParamError>;
}

/// Checks a condition on a parameter.
///
/// # Errors
/// `name: expected {expected}` when `ok` is false.
pub fn require(ok: bool, name: &str, expected: &str) -> Result<(), ParamError> {
    if ok { Ok(()) } else { Err(ParamError(format!("{name}: expected {expected}"))) }
}

/// Declares a protocol's parameters: a struct with defaults that can be listed and set by name.
///
/// The type must then get a `fn check(&self) -> Result<(), ParamError>`.
#[macro_export]
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[doc = $doc:expr])+ $field:ident : $t:ty = $default:expr, $source:expr;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $t,)* }

        impl Default for $name {
            fn default() -> Self { Self { $($field: $default,)* } }
        }

        impl $crate::params::Params for $name {
            fn list() -> Vec<$crate::params::ParamInfo> {
                use $crate::params::{Kind, ParamInfo};
                let default = Self::default();
                vec![$(ParamInfo {
                    name: stringify!($field),
                    unit: <$t as Kind>::UNIT,
                    default: Kind::to_value(&default.$field),
                    doc: concat!($($doc),+).trim_ascii_start(),
                    source: $source,
                },)*]
            }
            fn set(&mut self, name: &str, value: &$crate::params::Value) -> Result<(), $crate::params::ParamError> {
                use $crate::params::{Kind, ParamError};
                match name {
                    $(stringify!($field) => {
                        self.$field = <$t as Kind>::from_value(value).ok_or_else(|| ParamError(format!(
                            "{name}: expected a {}", <$t as Kind>::UNIT.name())))?;
                        Ok(())
                    })*
                    _ => Err(ParamError(format!("{name}: unknown parameter"))),
                }
            }
            fn values(&self) -> Vec<(&'static str, $crate::params::Value)> {
                use $crate::params::Kind;
                vec![$((stringify!($field), Kind::to_value(&self.$field)),)*]
            }
            fn validate(&self) -> Result<(), $crate::params::ParamError> { self.check() }
        }
    };
}

/// Declares an enum whose variants are the words a user may write for a parameter.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $doc:expr])+ $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)* }

        impl $crate::params::Kind for $name {
            const UNIT: $crate::params::Unit = $crate::params::Unit::Choice(&[$($word),*]);
            fn to_value(&self) -> $crate::params::Value {
                $crate::params::Value::Word(match self { $(Self::$variant => $word,)* }.to_string())
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
