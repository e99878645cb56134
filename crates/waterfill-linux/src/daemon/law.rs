//! The laws that the kernel programs run: their parameters as bytes, and their numbers for people.
//!
//! A law is one entry of [`laws::LAWS`]. Its parameters stand in the order of `struct law_params` of its header in
//! `waterfill-laws/kernel`, its signals in the order of its `law_source_read()` and `law_link_read()`.

use std::fmt;
use std::fs;

use super::laws;
use super::quantity::{self, show_rate, show_time};

/// A law.
pub(super) struct Law {
    /// As in the protocols' list.
    pub(super) name: &'static str,
    /// The host's programs.
    pub(super) host: &'static [u8],
    /// The router's.
    pub(super) router: &'static [u8],
    pub(super) parameters: &'static [Parameter],
    /// What a link shows.
    pub(super) link: &'static [Signal],
    /// What a connection shows.
    pub(super) source: &'static [Signal],
    /// What its receiving end echoes.
    pub(super) echoed: Signal,
    pub(super) words: Words,
}

/// How texts name what the law's routers write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// "no router on the path writes …".
    pub(super) value: &'static str,
    /// What contradicts a bottleneck that writes: "packets are lost while …".
    pub(super) unmoved: &'static str,
    /// What a table calls the mode "priced".
    pub(super) controlled: &'static str,
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
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) bytes: usize,
    pub(super) default: &'static str,
    /// Least and largest value, in the member's unit.
    pub(super) range: (u64, u64),
}

/// What a parameter is, and its unit in the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
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
    /// A link's name of 16 bits, which is made from the device's unless it is given.
    Name,
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
    pub(super) unit: SignalUnit,
    /// Converts the kernel's number.
    pub(super) convert: fn(u64) -> f64,
}

/// The unit of a signal.
#[derive(Clone, Copy, Debug)]
pub(super) enum SignalUnit {
    Seconds,
    BitsPerSecond,
    One,
}

/// The name of the signal that says what arrived in a link's last interval, from which `status` gets the load.
pub(super) const ARRIVAL: &str = "arrival_bps";

impl Signal {
    /// Converts the kernel's number.
    pub(super) fn value(&self, raw: u64) -> f64 {
        (self.convert)(raw)
    }

    /// Whether it is the rate that arrived in the last interval.
    pub(super) fn is_arrival(&self) -> bool {
        self.name == ARRIVAL
    }

    /// Writes a value for people; 0 of the first signal means that there is none yet.
    pub(super) fn show(&self, value: f64) -> String {
        match self.unit {
            SignalUnit::Seconds => show_time(value),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are positive")]
            SignalUnit::BitsPerSecond => show_rate(value as u64),
            // A damaged map may hold any power of two; written out, it would fill lines.
            SignalUnit::One if value.abs() >= 1e15 => format!("{value:.3e}"),
            SignalUnit::One => format!("{value:.3}"),
        }
    }
}

/// Returns a law by its name.
pub(super) fn find(name: &str) -> Result<&'static Law, String> {
    laws::LAWS.iter().find(|law| law.name == name).ok_or_else(|| {
        let names: Vec<_> = laws::LAWS.iter().map(|law| law.name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// The law of a daemon without `--law`.
pub(super) fn default() -> &'static Law {
    &laws::LAWS[0]
}

/// All laws.
pub(super) fn all() -> impl Iterator<Item = &'static Law> {
    laws::LAWS.iter()
}

impl Law {
    /// Returns a parameter as it is in the bytes of `struct law_params`; `None` if the law has none of this name.
    pub(super) fn raw(&self, parameters: &[u8], name: &str) -> Option<u64> {
        let place = self.parameters.iter().position(|parameter| parameter.name == name)?;
        let at: usize = self.parameters[..place].iter().map(|before| before.bytes).sum();
        let bytes = parameters.get(at..at + self.parameters[place].bytes)?;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// Whether it is the law of a daemon without `--law`.
    pub(super) fn is_default(&self) -> bool {
        self.name == laws::LAWS[0].name
    }

    /// The congestion control's usual name in TCP's list.
    pub(super) fn congestion_control(&self) -> String {
        format!("bpf_{}", self.name)
    }

    /// Returns `struct law_params` with these values, and defaults for the rest, for a link of this device or for a host.
    /// The error has the parameter's name, and a sentence that begins with it.
    pub(super) fn parameters(
        &self,
        values: &[(String, String)],
        device: Option<&str>,
    ) -> Result<Vec<u8>, (String, String)> {
        let known = |name: &str| self.parameters.iter().any(|p| p.name == name && !matches!(p.kind, Kind::Reserved));
        if let Some((name, _)) = values.iter().find(|(name, _)| !known(name)) {
            let names = self.list_names();
            return Err((name.clone(), format!("{name}: expected a parameter of {}: {names}", self.name)));
        }
        let mut bytes = Vec::new();
        for parameter in self.parameters {
            let given = values.iter().rev().find(|(name, _)| name == parameter.name);
            let name = link_name(device.unwrap_or_default()).to_string();
            let default = if matches!(parameter.kind, Kind::Name) { &name } else { parameter.default };
            let text = given.map_or(default, |(_, text)| text.as_str());
            let value = parameter
                .parse(text)
                .map_err(|why| (parameter.name.to_owned(), format!("{} {text}: {why}", parameter.name)))?;
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
            Kind::Name => text.parse().map_err(|_| "expected a whole number")?,
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

/// Makes a name for the link of a device: the same after every start, and another on other machines, in other network
/// namespaces and on other devices, but for one in 65,535.
fn link_name(device: &str) -> u64 {
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let text = format!("{machine}{}{device}", namespace.display());
    // FNV-1a.
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 32) % 65535 + 1
}

/// Parses a number of parts of one, rounded to the nearest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be positive and in range")]
fn number(text: &str, parts: f64) -> Result<u64, String> {
    let value: f64 = text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or("expected a number")?;
    // Less than one part is none, so that the range refuses it.
    let scaled = if value * parts < 0.999 { (value * parts).floor() } else { (value * parts).round() };
    if !(0.0..9e15).contains(&scaled) {
        return Err("expected a number that is not negative".into());
    }
    Ok(scaled as u64)
}

#[cfg(test)]
mod tests {
    use waterfill_laws::params::Value;
    use waterfill_laws::registry::ProtocolId;

    use super::*;

    /// One choice for simulator, fluid model, testbed and daemon: the registry's defaults, by the same names.
    #[test]
    fn parameters_default_to_the_simulators_values() {
        for law in laws::LAWS {
            let id = ProtocolId::ALL.iter().find(|id| id.info().name == law.name).expect("the registry has it");
            let values = id.params().values();
            for parameter in law.parameters.iter().filter(|p| !matches!(p.kind, Kind::Reserved | Kind::Name)) {
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
            ("eta", "0.0005", "eta 0.0005: expected a value from 0.001 to 65.535"),
            ("t", "1.5 ms", "expected a time in steps of 1 ms"),
            ("compensate", "yes", "expected true or false"),
            ("order", "last", "expected one of rate-first, xi-first"),
        ] {
            let said = law.parameters(&[(name.into(), text.into())], None).unwrap_err().1;
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn a_number_stays_short_however_large() {
        let aecp = find("aecp").unwrap();
        let signal = &aecp.link[0];
        assert!(matches!(signal.unit, SignalUnit::One), "{}", signal.name);
        let values: Vec<f64> = (0..64).map(|bit| signal.value(1 << bit)).collect();
        assert!(values.iter().any(|&value| value > 1e200), "{values:?}");
        assert!(values.iter().all(|&value| signal.show(value).len() < 20));
        assert_eq!((signal.show(1.25), signal.show(-2e15)), ("1.250".into(), "-2.000e15".into()));
    }

    #[test]
    fn links_have_names_of_their_own() {
        let names: Vec<u64> = ["eth0", "eth1"].map(link_name).into();
        assert!(names[0] != names[1] && names.iter().all(|name| (1..=65535).contains(name)), "{names:?}");
        assert_eq!(link_name("eth0"), names[0]);
    }

    #[test]
    fn parameters_are_bytes_in_the_order_of_the_law() {
        let bytes =
            default().parameters(&[("alpha".into(), "0.5".into()), ("t_0".into(), "1 s".into())], None).unwrap();
        assert_eq!(bytes.len(), 56);
        assert_eq!(bytes[8..12], 500_u32.to_ne_bytes());
        assert_eq!(bytes[44..48], 1_000_000_u32.to_ne_bytes());
    }
}
