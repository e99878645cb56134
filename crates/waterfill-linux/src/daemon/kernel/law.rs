//! Laws that the kernel programs run: their parameters as bytes, and their signals as readable numbers.
//!
//! A law is one entry of `LAWS` (`laws.rs`). Its signals stand in the order of its `law_source_read()` and `law_link_read()`.
//! Its parameters, with their defaults, ranges and units, are those of the registry that the C code has.

use std::fmt;
use std::fs;

use waterfill_laws::kernel::KernelLaw;
use waterfill_laws::params::{KernelPlace, ParamError, ParamInfo, Unit, Value};
use waterfill_laws::protocol::LinkView;
use waterfill_laws::registry::{AnyParams, ProtocolId};
use waterfill_laws::units::{Rate, Volume};

use crate::daemon::options::names::unknown;
use crate::daemon::options::quantity::{self, show_rate, show_time};
use crate::daemon::options::values::LawName;

/// A law that the daemon can load into the kernel.
pub(crate) struct LoadableLaw {
    /// Name of the law in the list of protocols.
    pub(crate) name: &'static str,
    /// Object file of the law's host programs.
    pub(crate) host: &'static [u8],
    /// Object file of the law's router programs.
    pub(crate) router: &'static [u8],
    /// Signals that the daemon shows for a link of this law.
    pub(crate) link: &'static [LawSignal],
    /// Signals that the daemon shows for a connection of this law.
    pub(crate) source: &'static [LawSignal],
    /// Signal that the receiver of a connection echoes.
    pub(crate) echoed: LawSignal,
    pub(crate) words: LawWords,
}

/// Words of a law for messages and tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LawWords {
    /// Value that routers write, as in "no router on the path writes …".
    pub(crate) value: &'static str,
    /// Observation that shows that the bottleneck's router does not write, as in "packets are lost while …".
    pub(crate) unmoved: &'static str,
    /// Name of the mode "priced" in tables.
    pub(crate) controlled: &'static str,
}

impl fmt::Debug for LoadableLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for LoadableLaw {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Parameter that only iXCP's links have: a name of 16 bits, by default derived from the device's name.
pub(crate) const LINK_NAME: &str = "link";
const LINK_NAME_MAX: u64 = 65535;

/// Error of a parameter: its name, and a sentence that begins with the name.
type Wrong = (String, String);

/// A number that a law shows in status output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LawSignal {
    /// Name in JSON, including its unit.
    pub(crate) name: &'static str,
    /// Title of the column in a table.
    pub(crate) title: &'static str,
    pub(crate) unit: SignalUnit,
    /// Function that converts the kernel's number to the signal's unit.
    pub(crate) convert: fn(u64) -> f64,
}

/// Unit of a signal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SignalUnit {
    Seconds,
    BitsPerSecond,
    One,
}

/// Name of the signal for a link's arrival rate in the last interval, from which `status` computes the load.
pub(crate) const ARRIVAL: &str = "arrival_bps";

impl LawSignal {
    /// Converts the kernel's number to the signal's unit.
    pub(crate) fn value(&self, raw: u64) -> f64 {
        (self.convert)(raw)
    }

    /// Returns true if the signal is the arrival rate in the last interval.
    pub(crate) fn is_arrival(&self) -> bool {
        self.name == ARRIVAL
    }

    /// Formats a value of the signal with its unit.
    pub(crate) fn show(&self, value: f64) -> String {
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

impl LoadableLaw {
    fn protocol(&self) -> ProtocolId {
        ProtocolId::by_name(self.name).expect("the registry has every law")
    }

    /// Returns the law's C code and its description.
    pub(crate) fn kernel(&self) -> &'static KernelLaw {
        self.protocol().law().expect("every law has C code")
    }

    /// Returns the parameters that are members of `struct law_params`, without a link's name.
    pub(crate) fn parameters(&self) -> Vec<ParamInfo> {
        let has_member = |info: &ParamInfo| info.kernel.is_some_and(|form| form.member_of(info.name).is_some());
        self.protocol().params_list().into_iter().filter(has_member).collect()
    }

    /// Returns a parameter's default in SI units. Returns `None` for a word, a flag or an unknown name.
    pub(crate) fn default_number(&self, name: &str) -> Option<f64> {
        match self.parameters().into_iter().find(|info| info.name == name)?.default {
            Value::Number(number) => Some(number),
            Value::Word(_) | Value::Flag(_) => None,
        }
    }

    /// Returns true if the law's links have names.
    pub(crate) fn names_links(&self) -> bool {
        self.kernel().has_param(LINK_NAME)
    }

    /// Returns the default target of links if the target is not a member of `struct law_params`, and `None` otherwise.
    pub(crate) fn link_target(&self) -> Option<f64> {
        let of = |info: &ParamInfo| info.kernel.is_some_and(|form| form.place == KernelPlace::LinkTarget);
        self.protocol().params_list().iter().any(of).then(|| self.protocol().params().target())
    }

    /// Returns a member's integer in the bytes of `struct law_params`, or `None` if the law has no member of this name.
    pub(crate) fn raw(&self, parameters: &[u8], name: &str) -> Option<u64> {
        let mut members = self.kernel().params_fields();
        let (_, offset, size) = members.find(|(member, ..)| member.rsplit('.').next() == Some(name))?;
        let bytes = parameters.get(offset..offset + size)?;
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// Returns true if a daemon without `--law` uses this law.
    pub(crate) fn is_default(&self) -> bool {
        self.name == LawName::default().0
    }

    /// Returns the usual name of the law's congestion control, `bpf_LAW`.
    pub(crate) fn congestion_control(&self) -> String {
        format!("bpf_{}", self.name)
    }

    /// Encodes the given parameter values, and defaults for all other parameters, as bytes of `struct law_params`.
    /// `device` is the link's device, or `None` for a host.
    pub(crate) fn encode(&self, values: &[(String, String)], device: Option<&str>) -> Result<Vec<u8>, Wrong> {
        let mut numbers = self.valid(values)?.kernel_numbers();
        if self.names_links() {
            let given = values.iter().rev().find(|(name, _)| name == LINK_NAME);
            let name = given.map_or_else(|| Ok(link_name(device.unwrap_or_default())), |(_, text)| parse_link(text));
            numbers.push((LINK_NAME, name?));
        }
        Ok(self.kernel().params(&numbers).words().iter().flat_map(|word| word.to_ne_bytes()).collect())
    }

    /// Checks that the law can control a link of this rate with these parameter values.
    pub(crate) fn check_link(&self, values: &[(String, String)], rate_bps: u64) -> Result<(), Wrong> {
        let capacity = Rate::from_bps(rate_bps as f64);
        let link = LinkView { id: 0, capacity, target: None, queue: Volume::ZERO };
        self.valid(values)?.check_link(&link).map_err(wrong)
    }

    /// Returns the law's parameters with these values. If a name is repeated, its last value counts.
    fn valid(&self, values: &[(String, String)]) -> Result<AnyParams, Wrong> {
        let known = self.parameters();
        let mut params = self.protocol().params();
        params.set("arithmetic", &Value::Word("kernel".into())).map_err(wrong)?;
        for (name, text) in values.iter().filter(|(name, _)| !(self.names_links() && name == LINK_NAME)) {
            let Some(info) = known.iter().find(|info| info.name == name) else {
                let what = format!("parameter of {}", self.name);
                return Err((name.clone(), format!("{name}: {}", unknown(&what, name, self.names()))));
            };
            let value = parse(info, text).map_err(|why| (name.clone(), format!("{name}: {why}, got {text}")))?;
            params.set(name, &value).map_err(wrong)?;
        }
        params.validate().map_err(wrong)?;
        Ok(params)
    }

    /// Returns the names of the law's parameters.
    fn names(&self) -> Vec<&'static str> {
        let link = self.names_links().then_some(LINK_NAME);
        self.parameters().iter().map(|info| info.name).chain(link).collect()
    }
}

/// Converts a parameter error to the parameter's name and the sentence about it.
fn wrong(ParamError(text): ParamError) -> Wrong {
    (text.split(':').next().unwrap_or_default().to_owned(), text)
}

/// Parses a parameter's value and converts it to SI units.
fn parse(info: &ParamInfo, text: &str) -> Result<Value, String> {
    let form = info.kernel.ok_or("must be a parameter that the kernel has")?;
    match info.unit {
        Unit::Rate => Ok(Value::Number(quantity::rate(text)? as f64)),
        Unit::Time => {
            let time = quantity::time(text)?;
            let step_ns = (1e9 / form.scale) as u128;
            if time.as_nanos() % step_ns != 0 {
                return Err(format!("must be a time in steps of {}", show_time(1.0 / form.scale)));
            }
            Ok(Value::Number(time.as_secs_f64()))
        }
        Unit::Ratio | Unit::Count | Unit::Volume => {
            let number = text.parse().ok().filter(|x: &f64| x.is_finite()).ok_or("must be a number")?;
            Ok(Value::Number(number))
        }
        Unit::Choice(words) => {
            let words = form.words.unwrap_or(words);
            match text {
                "true" | "false" if matches!(info.default, Value::Flag(_)) => Ok(Value::Flag(text == "true")),
                _ if words.contains(&text) => Ok(Value::Word(text.into())),
                _ => Err(format!("must be one of {}", words.join(", "))),
            }
        }
        Unit::Flag => match text {
            "true" | "false" => Ok(Value::Flag(text == "true")),
            _ => Err("must be true or false".into()),
        },
    }
}

/// Parses the name of an iXCP link.
fn parse_link(text: &str) -> Result<u64, Wrong> {
    let name = text.parse().ok().filter(|name| (1..=LINK_NAME_MAX).contains(name));
    name.ok_or_else(|| {
        let why = format!("{LINK_NAME}: must be a whole number from 1 to {LINK_NAME_MAX}, got {text}");
        (LINK_NAME.to_owned(), why)
    })
}

/// Formats a parameter's default in the form that `--set` accepts.
pub(crate) fn default_of(info: &ParamInfo) -> String {
    info.unit.show(&info.default).replace('µ', "u")
}

/// Returns a stable 16-bit name for a device's link. The links of two devices, namespaces or hosts share a name with
/// probability 1/65,535.
fn link_name(device: &str) -> u64 {
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let text = format!("{machine}{}{device}", namespace.display());
    // FNV-1a.
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 32) % LINK_NAME_MAX + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::kernel::laws::{all, default, find};

    /// The defaults of `struct law_params` equal those of the registry. Formatting and parsing a default does not
    /// change it.
    #[test]
    fn parameters_default_to_the_simulators_values() {
        for law in all() {
            let of_registry = law.kernel().params(&law.protocol().params().kernel_numbers());
            let mut bytes = law.encode(&[], None).unwrap();
            let shown: Vec<_> = law.parameters().iter().map(|p| (p.name.to_owned(), default_of(p))).collect();
            assert_eq!(law.encode(&shown, None).unwrap(), bytes, "{}", law.name);
            if law.names_links() {
                let (_, at, size) = law.kernel().params_fields().find(|(name, ..)| *name == LINK_NAME).unwrap();
                bytes[at..at + size].fill(0);
            }
            let words: Vec<_> =
                bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
            assert_eq!(words, of_registry.words(), "{}", law.name);
        }
    }

    #[test]
    fn an_error_names_the_parameter_its_value_and_what_to_write() {
        let law = default();
        for (name, text, expected) in [
            ("gamma", "1", "gamma: unknown parameter of maxnet; known: x_max, x_min, t,"),
            ("alhpa", "1", "alhpa: unknown parameter of maxnet, did you mean \"alpha\"?"),
            ("alpha", "much", "alpha: must be a number, got much"),
            ("alpha", "1.6", "alpha: must be a value from 0.001 to 1.571 in kernel arithmetic, got 1.6"),
            ("eta", "0.0005", "eta: must be a value from 0.001 to 65.535 in kernel arithmetic, got 0.0005"),
            ("t", "1.5 ms", "t: must be a time in steps of 1 ms, got 1.5 ms"),
            ("t_0", "1 ms", "t_0: must be a time longer than dt_p"),
            ("compensate", "yes", "compensate: must be true or false, got yes"),
            ("average", "sliding", "average: must be one of off, exponential, got sliding"),
            ("order", "last", "order: must be one of rate-first, xi-first, got last"),
        ] {
            let (of, said) = law.encode(&[(name.into(), text.into())], None).unwrap_err();
            assert_eq!(of, name);
            assert!(said.contains(expected), "{said}");
        }
        let slow = [("x_max".to_owned(), "1 Mbit/s".to_owned())];
        let said = law.check_link(&slow, 10_000_000).unwrap_err();
        assert_eq!(said, ("x_max".into(), "x_max: must be more than the link's 10 Mbit/s, got 1 Mbit/s".into()));
        let ixcp = find("ixcp").unwrap();
        let said = ixcp.encode(&[("link".into(), "0".into())], None).unwrap_err().1;
        assert_eq!(said, "link: must be a whole number from 1 to 65535, got 0");
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
        let bytes = default().encode(&[("alpha".into(), "0.5".into()), ("t_0".into(), "1 s".into())], None).unwrap();
        assert_eq!(bytes.len(), 64);
        assert_eq!(bytes[16..20], 500_u32.to_ne_bytes());
        assert_eq!(bytes[52..56], 1_000_000_u32.to_ne_bytes());
        assert_eq!((default().raw(&bytes, "alpha"), default().raw(&bytes, "t_0")), (Some(500), Some(1_000_000)));
    }
}
