//! The laws that the kernel programs run: their parameters as bytes, and their numbers for people.
//!
//! A law is one entry of [`LAWS`]. Its parameters stand in the order of `struct law_params` of its header in
//! `waterfill-laws/kernel`, its signals in the order of its `law_source_read()` and `law_link_read()`.

use std::fmt;

use super::error::user_error;
use super::object::embedded;
use super::quantity::{self, show_rate, show_time};

/// A law.
pub(super) struct Law {
    /// As in the protocols' list.
    pub(super) name: &'static str,
    /// The host's programs.
    pub(super) host: &'static [u8],
    /// The router's.
    pub(super) router: &'static [u8],
    parameters: &'static [Parameter],
    /// What a link shows.
    pub(super) link: &'static [Signal],
    /// What a connection shows.
    pub(super) source: &'static [Signal],
    /// What its receiving end echoes.
    pub(super) echoed: Signal,
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Law {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A parameter: a member of `struct law_params`.
pub(super) struct Parameter {
    name: &'static str,
    kind: Kind,
    bytes: usize,
    default: &'static str,
    /// Least and largest value, in the member's unit.
    range: (u64, u64),
}

/// What a parameter is, and its unit in the kernel.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A rate: bit/s.
    Rate,
    /// A time: this many nanoseconds.
    Time(u64),
    /// A number: this many parts of one.
    Number(f64),
    /// false or true: 0 or 1.
    Flag,
    /// A word: its place.
    Choice(&'static [&'static str]),
    /// Always 0.
    Reserved,
}

/// A number that a law shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// As in JSON, with its unit.
    pub(super) name: &'static str,
    /// As in a table.
    pub(super) title: &'static str,
    unit: SignalUnit,
    /// What the kernel's number is divided by.
    scale: f64,
    signed: bool,
}

#[derive(Clone, Copy, Debug)]
enum SignalUnit {
    Seconds,
    BitsPerSecond,
    One,
}

impl Signal {
    /// Converts the kernel's number.
    pub(super) fn value(&self, raw: u64) -> f64 {
        let number = if self.signed { raw.cast_signed() as f64 } else { raw as f64 };
        number / self.scale
    }

    /// Whether it is the rate that arrived in the last interval.
    pub(super) fn is_arrival(&self) -> bool {
        self.name == ARRIVAL.name
    }

    /// Writes a value for people.
    pub(super) fn show(&self, value: f64) -> String {
        match self.unit {
            SignalUnit::Seconds => show_time(value),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are positive")]
            SignalUnit::BitsPerSecond => show_rate(value as u64),
            SignalUnit::One => format!("{value:.3}"),
        }
    }
}

/// Returns a law by its name.
pub(super) fn find(name: &str) -> Result<&'static Law, String> {
    LAWS.iter().find(|law| law.name == name).ok_or_else(|| {
        let names: Vec<_> = LAWS.iter().map(|law| law.name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// The law of a daemon without `--law`.
pub(super) fn default() -> &'static Law {
    &LAWS[0]
}

/// All laws.
pub(super) fn all() -> impl Iterator<Item = &'static Law> {
    LAWS.iter()
}

impl Law {
    /// Whether it is the law of a daemon without `--law`.
    pub(super) fn is_default(&self) -> bool {
        self.name == LAWS[0].name
    }

    /// The congestion control's usual name in TCP's list.
    pub(super) fn congestion_control(&self) -> String {
        format!("bpf_{}", self.name)
    }

    /// Returns `struct law_params` with these values, and defaults for the rest. The error names the parameter.
    pub(super) fn parameters(&self, values: &[(String, String)]) -> anyhow::Result<Vec<u8>> {
        let known = |name: &str| self.parameters.iter().any(|p| p.name == name && !matches!(p.kind, Kind::Reserved));
        if let Some((name, _)) = values.iter().find(|(name, _)| !known(name)) {
            let names = self.list_names();
            return Err(user_error(format!("{name}: expected a parameter of {}: {names}", self.name)));
        }
        let mut bytes = Vec::new();
        for parameter in self.parameters {
            let given = values.iter().rev().find(|(name, _)| name == parameter.name);
            let text = given.map_or(parameter.default, |(_, text)| text.as_str());
            let value = parameter.parse(text).map_err(|why| user_error(format!("{} {text}: {why}", parameter.name)))?;
            bytes.extend_from_slice(&value.to_ne_bytes()[..parameter.bytes]);
        }
        Ok(bytes)
    }

    /// The parameters' names, for messages.
    pub(super) fn list_names(&self) -> String {
        let named = self.parameters.iter().filter(|p| !matches!(p.kind, Kind::Reserved)).map(|p| p.name);
        named.collect::<Vec<_>>().join(", ")
    }
}

impl Parameter {
    /// Parses a value into the member's unit.
    fn parse(&self, text: &str) -> Result<u64, String> {
        let value = match self.kind {
            Kind::Rate => quantity::rate(text)?,
            Kind::Time(unit_ns) => {
                let ns = u64::try_from(quantity::time(text)?.as_nanos()).unwrap_or(u64::MAX);
                if ns % unit_ns != 0 {
                    return Err(format!("expected a time in steps of {}", show_time(unit_ns as f64 * 1e-9)));
                }
                ns / unit_ns
            }
            Kind::Number(parts) => number(text, parts)?,
            Kind::Flag => match text {
                "true" => 1,
                "false" => 0,
                _ => return Err("expected true or false".into()),
            },
            Kind::Choice(words) => {
                let place = words.iter().position(|word| *word == text);
                place.ok_or_else(|| format!("expected one of {}", words.join(", ")))? as u64
            }
            Kind::Reserved => 0,
        };
        let (least, largest) = self.range;
        if value < least || value > largest {
            return Err(format!("expected a value from {} to {}", self.show(least), self.show(largest)));
        }
        Ok(value)
    }

    fn show(&self, value: u64) -> String {
        match self.kind {
            Kind::Rate => show_rate(value),
            Kind::Time(unit_ns) => show_time((value * unit_ns) as f64 * 1e-9),
            Kind::Number(parts) => (value as f64 / parts).to_string(),
            _ => value.to_string(),
        }
    }
}

/// Parses a number of parts of one, rounded to the nearest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be positive and in range")]
fn number(text: &str, parts: f64) -> Result<u64, String> {
    let value: f64 = text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or("expected a number")?;
    let scaled = (value * parts).round();
    if !(0.0..9e15).contains(&scaled) {
        return Err("expected a number that is not negative".into());
    }
    Ok(scaled as u64)
}

const MICRO: u64 = 1000;
const MILLI: u64 = 1_000_000;

const fn rate(name: &'static str, default: &'static str) -> Parameter {
    let range = (quantity::MIN_RATE_BPS, quantity::MAX_RATE_BPS);
    Parameter { name, kind: Kind::Rate, bytes: 8, default, range }
}

const fn time(name: &'static str, unit_ns: u64, default: &'static str, range: (u64, u64)) -> Parameter {
    Parameter { name, kind: Kind::Time(unit_ns), bytes: 4, default, range }
}

const fn parts(name: &'static str, of_one: f64, default: &'static str, range: (u64, u64)) -> Parameter {
    Parameter { name, kind: Kind::Number(of_one), bytes: 4, default, range }
}

const fn flag(name: &'static str, default: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Flag, bytes: 4, default, range: (0, 1) }
}

const fn choice(name: &'static str, words: &'static [&'static str], default: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Choice(words), bytes: 4, default, range: (0, u32::MAX as u64) }
}

const RESERVED: Parameter = Parameter { name: "", kind: Kind::Reserved, bytes: 4, default: "", range: (0, 0) };

const fn signal(name: &'static str, title: &'static str, unit: SignalUnit, scale: f64) -> Signal {
    Signal { name, title, unit, scale, signed: false }
}

const fn two_to(exponent: u32) -> f64 {
    (1_u64 << exponent) as f64
}

/// A price as data carry it, and as a receiver averages it.
const PRICE: Signal = signal("price_s", "price", SignalUnit::Seconds, two_to(18));
const AVERAGE: Signal = signal("price_s", "price", SignalUnit::Seconds, two_to(58));
const LINK_PRICE: Signal = signal("price_s", "price", SignalUnit::Seconds, two_to(34));
const PRICE_MIN: Signal = signal("price_min_s", "lowest", SignalUnit::Seconds, two_to(34));
/// What arrived in the last interval, by which `status` shows the load.
const ARRIVAL: Signal = signal("arrival_bps", "arrival", SignalUnit::BitsPerSecond, 1.0);
const XI: Signal = Signal { signed: true, ..signal("xi", "xi", SignalUnit::One, two_to(34)) };

/// The laws; the first is the default.
static LAWS: &[Law] = &[Law {
    name: "maxnet",
    host: embedded!("host_maxnet"),
    router: embedded!("router_maxnet"),
    parameters: &[
        rate("x_max", "1 Pbit/s"),
        parts("alpha", 1e3, "0.66", (1, 1570)),
        parts("eta", 1e3, "0.06", (1, 65535)),
        time("t", MILLI, "400 ms", (1, 100_000)),
        time("dt_min", MICRO, "1 us", (0, 1_000_000)),
        flag("average", "true"),
        flag("compensate", "true"),
        choice("order", &["rate-first", "xi-first"], "xi-first"),
        RESERVED,
        time("dt_p", MICRO, "1 ms", (1, 1_000_000)),
        time("t_0", MICRO, "130 ms", (2, 4_000_000_000)),
        flag("promise", "false"),
        RESERVED,
    ],
    link: &[LINK_PRICE, PRICE_MIN, ARRIVAL],
    source: &[PRICE, XI],
    echoed: AVERAGE,
}];

#[cfg(test)]
mod tests {
    use waterfill_laws::params::Value;
    use waterfill_laws::registry::ProtocolId;

    use super::*;

    /// One choice for simulator, fluid model, testbed and daemon: the registry's defaults, by the same names.
    #[test]
    fn parameters_default_to_the_simulators_values() {
        for law in LAWS {
            let id = ProtocolId::ALL.iter().find(|id| id.info().name == law.name).expect("the registry has it");
            let values = id.params().values();
            for parameter in law.parameters.iter().filter(|p| !matches!(p.kind, Kind::Reserved)) {
                let raw = parameter.parse(parameter.default).expect("a default is valid");
                let what = format!("{} {}", law.name, parameter.name);
                let value = values.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| value);
                let unit = match parameter.kind {
                    Kind::Time(ns) => ns as f64 * 1e-9,
                    Kind::Number(of_one) => 1.0 / of_one,
                    _ => 1.0,
                };
                match (parameter.kind, value.unwrap_or_else(|| panic!("{what}"))) {
                    (Kind::Flag, Value::Flag(flag)) => assert_eq!(u64::from(*flag), raw, "{what}"),
                    (Kind::Choice(words), Value::Word(word)) => assert_eq!(words[raw as usize], word, "{what}"),
                    (_, Value::Number(real)) => {
                        assert!((real / unit - raw as f64).abs() <= 0.5, "{what}: {real} is not {raw} times {unit}");
                    }
                    (_, value) => panic!("{what}: {value:?}"),
                }
            }
        }
    }

    #[test]
    fn an_error_names_the_parameter_and_what_was_expected() {
        let law = default();
        for (name, text, expected) in [
            ("beta", "1", "beta: expected a parameter of maxnet: x_max, alpha,"),
            ("alpha", "much", "alpha much: expected a number"),
            ("alpha", "1.6", "alpha 1.6: expected a value from 0.001 to 1.57"),
            ("t", "1.5 ms", "expected a time in steps of 1 ms"),
            ("compensate", "yes", "expected true or false"),
            ("order", "last", "expected one of rate-first, xi-first"),
        ] {
            let said = law.parameters(&[(name.into(), text.into())]).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn parameters_are_bytes_in_the_order_of_the_law() {
        let bytes = default().parameters(&[("alpha".into(), "0.5".into()), ("t_0".into(), "1 s".into())]).unwrap();
        assert_eq!(bytes.len(), 56);
        assert_eq!(bytes[8..12], 500_u32.to_ne_bytes());
        assert_eq!(bytes[44..48], 1_000_000_u32.to_ne_bytes());
    }
}
