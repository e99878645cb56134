//! The shaper (`--shape`): limits a device to a rate, for a link that is slower than its device.
//!
//! It is a token bucket (tbf) as the device's root qdisc, set up by the program `tc`.
//!
//! - **Rate.** A packet counts with its IP length and the link's overhead, as for the price. The bucket counts frames, so a
//!   size table (stab) subtracts the Ethernet header and adds the overhead.
//! - **Depth.** What the rate sends in 250 us, to make up for a late timer, and at least two of the largest packets. A deeper
//!   bucket would send bursts that queue in front of the slower link, unseen. Larger super-packets are segmented.
//! - **Buffer.** By default what the rate sends in 100 ms, the RTT for which buffers are usually sized, and at least ten
//!   packets. MaxNet keeps it empty; it serves flows without prices and flows that start.
//! - **Two queues.** With a queue per class the root is htb with a class of the rate and two below it, each with a buffer of
//!   this size. Each gets its own rate first, then what the other leaves; explicit packets are first at both.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize, Serializer};

use crate::daemon::kernel::tc::{Qdisc, json, qdiscs, run};
use crate::daemon::options::error::user_error;

/// Handle by which the daemon recognises its qdisc.
const HANDLE: &str = "5746:";
/// Class identifiers of the queues for explicit and for other packets, as in a packet's priority.
pub(super) const QUEUES: (u32, u32) = (0x5746_0001, 0x5746_0002);
/// Handle of the queue for non-explicit packets.
const OTHER_QUEUE: &str = "5748:";
/// Delay of a late timer for which the bucket compensates, in seconds.
const TIMER_DELAY_S: f64 = 250e-6;
/// Default size of the buffer, in seconds at the link's rate.
const BUFFER_S: f64 = 0.1;
/// Minimum size of the default buffer, in packets.
const BUFFER_PACKETS: u64 = 10;

/// Shaper settings of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaping {
    pub(super) rate_bps: u64,
    /// Bytes added to a frame's length to obtain its length on the link.
    pub(super) correction_bytes: i32,
    /// Buffer size in bytes, or `None` for 100 ms at the rate.
    pub(super) buffer_bytes: Option<u64>,
    /// True if explicit and other packets have separate queues.
    pub(super) separate: bool,
}

/// State of the shaper that a link should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ShaperState {
    #[default]
    Present,
    /// It has another rate, or another number of queues.
    Changed,
    Removed,
    /// Another root qdisc is in its place, with this kind and handle.
    Replaced(String),
}

impl fmt::Display for ShaperState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present => f.write_str("present"),
            Self::Changed => f.write_str("changed"),
            Self::Removed => f.write_str("removed"),
            Self::Replaced(by) => write!(f, "replaced by {by}"),
        }
    }
}

impl Serialize for ShaperState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[derive(Debug, Deserialize)]
struct Device {
    mtu: u64,
}

/// Installs or changes the shaper of a device. A change keeps the queued packets. Fails if the device has another root
/// qdisc.
pub(super) fn install(device: &str, shaping: &Shaping) -> Result<()> {
    if let Some(other) = qdiscs(device)?.into_iter().find(|q| q.root && q.handle != "0:" && q.handle != HANDLE) {
        bail!(user_error(format!(
            "--shape: device {device} already has a root qdisc, {} {}; remove it with `tc qdisc del dev {device} root`",
            other.kind, other.handle
        )));
    }
    let kind = if shaping.separate { "htb" } else { "tbf" };
    // A qdisc cannot become one of another kind, and htb none with another size table.
    if qdiscs(device)?.iter().any(|q| q.root && q.handle == HANDLE && (q.kind != "tbf" || kind != "tbf")) {
        remove(device)?;
    }
    let frame = frame_bytes(device, shaping.correction_bytes)?;
    let rate = format!("{}bit", shaping.rate_bps);
    let burst = bucket_bytes(shaping.rate_bps, frame).to_string();
    let limit = shaping.buffer_bytes.unwrap_or_else(|| default_buffer_bytes(shaping.rate_bps, frame)).to_string();
    let correction = shaping.correction_bytes.to_string();
    let mut arguments = vec!["qdisc", "replace", "dev", device, "root", "handle", HANDLE];
    if shaping.correction_bytes != 0 {
        arguments.extend(["stab", "overhead", &correction, "linklayer", "ethernet"]);
    }
    if !shaping.separate {
        arguments.extend(["tbf", "rate", &rate, "burst", &burst, "limit", &limit]);
        run("tc", &arguments).with_context(|| format!("cannot shape {device}"))?;
        return Ok(());
    }
    arguments.extend(["htb", "default", "2"]);
    let install = || -> Result<()> {
        run("tc", &arguments)?;
        class(device, "5746:", "5746:3", [shaping.rate_bps; 2], frame, "0")?;
        divide(device, shaping, 0.5)?;
        for (class, queue) in [("5746:1", "5747:"), ("5746:2", OTHER_QUEUE)] {
            let leaf = ["qdisc", "add", "dev", device, "parent", class, "handle", queue, "bfifo", "limit", &limit];
            run("tc", &leaf)?;
        }
        Ok(())
    };
    install().with_context(|| format!("cannot shape {device}"))
}

/// Returns the state of a device's shaper. Its rate is compared with `shaping` if that is given, except with two queues.
pub(super) fn state(device: &str, shaping: Option<&Shaping>) -> Result<ShaperState> {
    let root = qdiscs(device)?.into_iter().find(|q| q.root);
    Ok(compare(root.as_ref(), shaping))
}

fn compare(root: Option<&Qdisc>, shaping: Option<&Shaping>) -> ShaperState {
    let Some(root) = root.filter(|root| root.handle != "0:") else { return ShaperState::Removed };
    if root.handle != HANDLE {
        return ShaperState::Replaced(format!("{} {}", root.kind, root.handle));
    }
    let bytes_per_s = root.options.as_ref().and_then(|options| options.rate);
    match shaping {
        Some(wanted) if (root.kind == "htb") != wanted.separate => ShaperState::Changed,
        Some(wanted) if bytes_per_s.is_some_and(|is| is.abs_diff(wanted.rate_bps / 8) > 1) => ShaperState::Changed,
        _ => ShaperState::Present,
    }
}

/// Divides the rate of a device with two queues. The fraction `explicit_part` is for explicit packets, the remainder
/// for all others.
pub(super) fn divide(device: &str, shaping: &Shaping, explicit_part: f64) -> Result<()> {
    let rate_bps = shaping.rate_bps;
    let explicit_bps = ((rate_bps as f64 * explicit_part) as u64).clamp(8, rate_bps.max(16) - 8);
    let frame = frame_bytes(device, shaping.correction_bytes)?;
    class(device, "5746:3", "5746:1", [explicit_bps, rate_bps], frame, "0")?;
    class(device, "5746:3", "5746:2", [rate_bps - explicit_bps, rate_bps], frame, "1")
}

/// Adds or changes a class of htb. `rates` are the rate of the class and its maximum rate, which includes capacity that
/// other classes leave unused.
fn class(device: &str, parent: &str, id: &str, rates: [u64; 2], frame: u64, priority: &str) -> Result<()> {
    let [rate, ceil] = rates.map(|rate| format!("{rate}bit"));
    let [burst, cburst] = rates.map(|rate| bucket_bytes(rate, frame).to_string());
    let quantum = frame.to_string();
    let mut arguments = vec!["class", "replace", "dev", device, "parent", parent, "classid", id, "htb"];
    arguments.extend(["rate", &rate, "ceil", &ceil, "burst", &burst, "cburst", &cburst]);
    arguments.extend(["quantum", &quantum, "prio", priority]);
    run("tc", &arguments).with_context(|| format!("cannot set the queues of {device}"))?;
    Ok(())
}

/// Returns the length of the queue for non-explicit packets, in bytes.
pub(super) fn other_backlog(device: &str) -> Result<u64> {
    let qdiscs: Vec<Qdisc> = json("tc", &["-s", "-j", "qdisc", "show", "dev", device])?;
    Ok(qdiscs.iter().find(|q| q.handle == OTHER_QUEUE).map_or(0, |q| q.backlog))
}

/// Returns the maximum length of a frame on the link, in bytes.
fn frame_bytes(device: &str, correction_bytes: i32) -> Result<u64> {
    let devices: Vec<Device> = json("ip", &["-j", "link", "show", "dev", device])?;
    Ok(devices.first().map_or(1500, |d| d.mtu).saturating_add_signed(correction_bytes.max(0).into()) + 22)
}

/// Removes the daemon's shaper from a device, if there is one. The kernel restores the default qdisc.
pub(super) fn remove(device: &str) -> Result<()> {
    if qdiscs(device)?.iter().any(|q| q.root && q.handle == HANDLE) {
        run("tc", &["qdisc", "del", "dev", device, "root", "handle", HANDLE])
            .with_context(|| format!("cannot remove the shaper of {device}"))?;
    }
    Ok(())
}

/// Returns the devices of this network namespace that have clsact or the daemon's shaper. The value is true if the
/// device has the shaper.
pub(super) fn marked_devices() -> Result<BTreeMap<String, bool>> {
    let qdiscs: Vec<Qdisc> = json("tc", &["-j", "qdisc", "show"])?;
    let mut marked = BTreeMap::new();
    for qdisc in qdiscs {
        let ours = qdisc.root && qdisc.handle == HANDLE;
        if ours || qdisc.kind == "clsact" {
            *marked.entry(qdisc.dev).or_default() |= ours;
        }
    }
    Ok(marked)
}

fn bucket_bytes(rate_bps: u64, frame: u64) -> u64 {
    ((rate_bps as f64 / 8.0 * TIMER_DELAY_S).round() as u64).max(2 * frame)
}

fn default_buffer_bytes(rate_bps: u64, frame: u64) -> u64 {
    ((rate_bps as f64 / 8.0 * BUFFER_S).round() as u64).max(BUFFER_PACKETS * frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_makes_up_for_a_late_timer_and_holds_any_packet() {
        assert_eq!(bucket_bytes(1_000_000_000, 1522), 31_250);
        assert_eq!(bucket_bytes(10_000_000, 1522), 3044);
    }

    #[test]
    fn a_shaper_is_recognised_by_handle_kind_and_rate() {
        let shaping = Shaping { rate_bps: 50_000_001, correction_bytes: 0, buffer_bytes: None, separate: false };
        let of = |text: &str, shaping: &Shaping| {
            compare(serde_json::from_str::<Vec<Qdisc>>(text).unwrap().first(), Some(shaping)).to_string()
        };
        let tbf =
            r#"[{"kind":"tbf","handle":"5746:","root":true,"options":{"rate":6250000,"burst":10237,"lat":14746}}]"#;
        assert_eq!(of(tbf, &shaping), "present");
        assert_eq!(of(tbf, &Shaping { rate_bps: 40_000_000, ..shaping }), "changed");
        assert_eq!(of(tbf, &Shaping { separate: true, ..shaping }), "changed");
        let pfifo = r#"[{"kind":"pfifo","handle":"8007:","root":true,"options":{"limit":1000}}]"#;
        assert_eq!(of(pfifo, &shaping), "replaced by pfifo 8007:");
        let none = r#"[{"kind":"noqueue","handle":"0:","root":true,"options":{}}]"#;
        assert_eq!((of(none, &shaping), of("[]", &shaping)), ("removed".into(), "removed".into()));
    }

    #[test]
    fn the_default_buffer_is_a_tenth_of_a_second() {
        assert_eq!(default_buffer_bytes(100_000_000, 1522), 1_250_000);
        assert_eq!(default_buffer_bytes(64_000, 1522), 15_220);
    }
}
