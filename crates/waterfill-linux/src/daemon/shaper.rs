//! The shaper (`--shape`): makes a device send at no more than a rate, for a link that is slower than its device.
//!
//! It is a token bucket (tbf) as the device's root qdisc, set up by the program `tc`. That is simpler and sturdier than
//! messages of our own: tc knows each kernel's rate tables and 64-bit rates, takes the network
//! namespace that it is started in, and what it did is what its manual says. Who routes on Linux has it.
//!
//! - **Rate.** What a packet weighs is its IP length and the link's overhead, as for the price. The bucket counts frames, so a
//!   size table (stab) takes the Ethernet header off and puts the overhead on.
//! - **Depth.** What a timer that comes 250 us late must make up for, and at least two of the largest packets. Not more: what
//!   leaves in a burst waits in front of the slower link, where nobody sees it. Super-packets above it are cut up.
//! - **Buffer.** By default what the link sends in 100 ms, the round trip that a link's buffer is customarily made for, and ten
//!   packets at least. MaxNet keeps it empty; it is there for flows that do not hear prices and for those that start.

use std::io::ErrorKind;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::failure::wrong;

/// Our qdisc's number, by which it is known again.
const HANDLE: &str = "5746:";
/// A timer's lateness that costs no rate.
const LATE_S: f64 = 250e-6;
/// The buffer by default, in time.
const BUFFER_S: f64 = 0.1;
/// The smallest buffer by default.
const BUFFER_PACKETS: u64 = 10;

/// What a device is shaped to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaping {
    pub(super) rate_bps: u64,
    /// Added to the length of a frame, to give what it takes on the link.
    pub(super) correction_bytes: i32,
    /// `None`: what 100 ms of the rate are.
    pub(super) buffer_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Qdisc {
    kind: String,
    handle: String,
    #[serde(default)]
    root: bool,
}

#[derive(Debug, Deserialize)]
struct Device {
    mtu: u64,
}

/// Shapes a device. Refuses where somebody has set a root qdisc; ours is changed in place, and what waits in it stays.
pub(super) fn install(device: &str, shaping: &Shaping) -> Result<()> {
    if let Some(other) = qdiscs(device)?.into_iter().find(|q| q.root && q.handle != "0:" && q.handle != HANDLE) {
        bail!(wrong(format!(
            "--shape: device {device} has a root qdisc of its own, {} ({}): expected none (tc qdisc del dev {device} root)",
            other.kind, other.handle
        )));
    }
    let devices: Vec<Device> = json("ip", &["-j", "link", "show", "dev", device])?;
    let frame =
        devices.first().map_or(1500, |d| d.mtu).saturating_add_signed(shaping.correction_bytes.max(0).into()) + 22;
    let rate = format!("{}bit", shaping.rate_bps);
    let burst = bucket_bytes(shaping.rate_bps, frame).to_string();
    let limit = shaping.buffer_bytes.unwrap_or_else(|| default_buffer_bytes(shaping.rate_bps, frame)).to_string();
    let correction = shaping.correction_bytes.to_string();
    let mut arguments = vec!["qdisc", "replace", "dev", device, "root", "handle", HANDLE];
    if shaping.correction_bytes != 0 {
        arguments.extend(["stab", "overhead", &correction, "linklayer", "ethernet"]);
    }
    arguments.extend(["tbf", "rate", &rate, "burst", &burst, "limit", &limit]);
    run("tc", &arguments).with_context(|| format!("cannot shape {device}"))?;
    Ok(())
}

/// Takes our shaper away, if it is there; the kernel puts back what it gives a device by itself.
pub(super) fn remove(device: &str) -> Result<()> {
    if qdiscs(device)?.iter().any(|q| q.root && q.handle == HANDLE) {
        run("tc", &["qdisc", "del", "dev", device, "root", "handle", HANDLE])
            .with_context(|| format!("cannot remove the shaper of {device}"))?;
    }
    Ok(())
}

/// Whether a device has clsact.
pub(super) fn has_clsact(device: &str) -> Result<bool> {
    Ok(qdiscs(device)?.iter().any(|q| q.kind == "clsact"))
}

/// Whether a device's clsact has filters, of either direction.
pub(super) fn has_filters(device: &str) -> Result<bool> {
    for side in ["ingress", "egress"] {
        if !run("tc", &["filter", "show", "dev", device, side])?.trim().is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn bucket_bytes(rate_bps: u64, frame: u64) -> u64 {
    ((rate_bps as f64 / 8.0 * LATE_S).round() as u64).max(2 * frame)
}

fn default_buffer_bytes(rate_bps: u64, frame: u64) -> u64 {
    ((rate_bps as f64 / 8.0 * BUFFER_S).round() as u64).max(BUFFER_PACKETS * frame)
}

fn qdiscs(device: &str) -> Result<Vec<Qdisc>> {
    json("tc", &["-j", "qdisc", "show", "dev", device])
}

fn json<T: serde::de::DeserializeOwned>(program: &str, arguments: &[&str]) -> Result<T> {
    let text = run(program, arguments)?;
    serde_json::from_str(&text).with_context(|| format!("{program} {}: not the JSON expected", arguments.join(" ")))
}

/// What a program of iproute2 says; it may be where users do not look.
fn run(program: &str, arguments: &[&str]) -> Result<String> {
    for place in ["", "/usr/sbin/", "/sbin/"] {
        let output = match Command::new(format!("{place}{program}")).args(arguments).output() {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            output => output.with_context(|| format!("cannot run {program}"))?,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    bail!(wrong(format!("{program} is needed and not there: expected iproute2 to be installed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_makes_up_for_a_late_timer_and_takes_any_packet() {
        assert_eq!(bucket_bytes(1_000_000_000, 1522), 31_250);
        assert_eq!(bucket_bytes(10_000_000, 1522), 3044);
    }

    #[test]
    fn a_buffer_is_a_tenth_of_a_second() {
        assert_eq!(default_buffer_bytes(100_000_000, 1522), 1_250_000);
        assert_eq!(default_buffer_bytes(64_000, 1522), 15_220);
    }
}
