//! Values of options: each parser says what was expected.

use std::f64::consts::FRAC_PI_2;
use std::net::SocketAddr;
use std::time::Duration;

use crate::daemon::quantity;

pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:9465 or [::1]:9465".into())
}

/// Names in TCP's list have up to 15 bytes (TCP_CA_NAME_MAX); BPF allows these characters.
pub(crate) fn law_name(text: &str) -> Result<String, String> {
    let fits = (1..16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    fits.then(|| text.into()).ok_or_else(|| "expected 1 to 15 letters, digits and underscores".into())
}

/// Names of devices have up to 15 bytes (IFNAMSIZ). Whether the device exists is checked later.
pub(crate) fn device(text: &str) -> Result<String, String> {
    let fits =
        (1..16).contains(&text.len()) && !text.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    fits.then(|| text.into()).ok_or_else(|| "expected the name of a network device".into())
}

pub(crate) fn cookie(text: &str) -> Result<u64, String> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    parsed.filter(|n| *n != 0).ok_or_else(|| "expected a cookie as of SO_NETNS_COOKIE, a number above 0".into())
}

/// EtherTypes begin at 0x600; those of VLANs and IP have a meaning of their own.
pub(crate) fn tpid(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u16::from_str_radix(hex, 16).ok());
    number
        .filter(|n| *n >= 0x600 && ![0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8].contains(n))
        .ok_or_else(|| "expected an EtherType from 0x0600, such as 0x88b5, and not IP's, ARP's or a VLAN's".into())
}

/// Parses a hop's locator; compact tags have space for 63.
pub(crate) fn locator(text: &str) -> Result<u32, String> {
    let fits = text.parse().ok().filter(|n| (1..=32767).contains(n));
    fits.ok_or_else(|| "expected a whole number from 1 to 63, or to 32767 in wide tags".into())
}

/// Parses a number that `fits`; the error says what was expected.
fn number(text: &str, fits: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x: &f64| x.is_finite() && fits(*x)).ok_or_else(|| format!("expected {expected}"))
}

pub(crate) fn target(text: &str) -> Result<f64, String> {
    number(text, |x| (1e-6..=1.0).contains(&x), "a fraction such as 0.9, from 1e-6 to 1")
}

/// Parses the bytes of a packet on a link beyond its IP length.
pub(crate) fn overhead(text: &str) -> Result<i32, String> {
    let fits = text.parse().ok().filter(|bytes| (0..=1000).contains(bytes));
    fits.ok_or_else(|| "expected whole bytes from 0 to 1000".into())
}

/// Parses `name=value`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected a parameter and its value, such as alpha=0.5")?;
    Ok((name.trim().into(), value.trim().into()))
}

/// Parses `name=value`; without a value, the parameter says what was expected.
#[expect(clippy::unnecessary_wraps, reason = "clap takes parsers that may fail")]
pub(crate) fn cohabit_assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    Ok((name.trim().into(), value.trim().into()))
}

// MaxNet's parameters are checked here, and converted with those of `--set`.

pub(crate) fn alpha(text: &str) -> Result<String, String> {
    number(text, |x| (0.001..FRAC_PI_2).contains(&x), "a number from 0.001 to below pi/2").map(|_| text.into())
}

pub(crate) fn eta(text: &str) -> Result<String, String> {
    number(text, |x| (0.001..=65.535).contains(&x), "a number from 0.001 to 65.535").map(|_| text.into())
}

pub(crate) fn any_rate(text: &str) -> Result<String, String> {
    quantity::rate(text).map(|_| text.into())
}

/// Parses a time within bounds, in whole steps.
fn span(text: &str, min: Duration, max: Duration, step: Duration) -> Result<Duration, String> {
    let time = quantity::time(text)?;
    if time < min || time > max || time.as_nanos() % step.as_nanos() != 0 {
        return Err(format!("expected a time from {min:?} to {max:?}, in steps of {step:?}"));
    }
    Ok(time)
}

const MICROSECOND: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);

pub(crate) fn demand_time(text: &str) -> Result<String, String> {
    span(text, MILLISECOND, Duration::from_secs(100), MILLISECOND).map(|_| text.into())
}

pub(crate) fn dt_min(text: &str) -> Result<String, String> {
    span(text, Duration::ZERO, Duration::from_secs(1), MICROSECOND).map(|_| text.into())
}

pub(crate) fn dt_p(text: &str) -> Result<String, String> {
    span(text, MICROSECOND, Duration::from_secs(1), MICROSECOND).map(|_| text.into())
}

pub(crate) fn t_0(text: &str) -> Result<String, String> {
    span(text, MICROSECOND, Duration::from_secs(4000), MICROSECOND).map(|_| text.into())
}
