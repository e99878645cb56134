//! Frame counts at the devices of a CSIG domain, and the values that their tags would carry now.

use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore, MapFlags, ProgramInput, ProgramMut};
use serde::Serialize;

use super::setup::read;
use crate::daemon::kernel::device::name_in;
use crate::daemon::kernel::interface::{Bytes as _, CsigCounts, CsigDevice, CsigReading};
use crate::daemon::options::{TagFormat, TagRole, TagSignal};

/// State of a device in a CSIG domain. Counts are frames since the device was set up; a super-packet counts as one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TagStatus {
    pub(crate) device: String,
    pub(crate) ifindex: u32,
    pub(crate) role: TagRole,
    pub(crate) format: TagFormat,
    pub(crate) signal: TagSignal,
    /// Present signal of the device's link, in s, bit/s or as a fraction. `None` at an edge, and without a router of
    /// MaxNet.
    pub(crate) value: Option<f64>,
    /// Code of this value in a tag, or `None` without a value.
    pub(crate) code: Option<u32>,
    pub(crate) pushed: u64,
    pub(crate) compared: u64,
    pub(crate) replaced: u64,
    pub(crate) popped: u64,
    pub(crate) stripped: u64,
    pub(crate) stored: u64,
    pub(crate) too_long: u64,
    pub(crate) other: u64,
    pub(crate) failed: u64,
}

impl TagStatus {
    /// Returns the frame counts with their names.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 9] {
        [
            ("pushed", self.pushed),
            ("compared", self.compared),
            ("replaced", self.replaced),
            ("popped", self.popped),
            ("stripped", self.stripped),
            ("stored", self.stored),
            ("too long", self.too_long),
            ("other", self.other),
            ("failed", self.failed),
        ]
    }
}

/// Returns the state of all devices in the maps, sorted by name. The program `reader` computes the value that a tag
/// would carry.
pub(super) fn tags(devices: &impl MapCore, counters: &impl MapCore, reader: &ProgramMut<'_>) -> Result<Vec<TagStatus>> {
    let mut tags = Vec::new();
    for key in devices.keys() {
        let Some(config) = devices.lookup(&key, MapFlags::ANY)? else { continue };
        let config = CsigDevice::from_prefix(&config).context("the map of devices is not waterfilld's")?;
        let ifindex = u32::from_ne_bytes(key.as_slice().try_into().unwrap_or_default());
        let found = counters.lookup_percpu(&key, MapFlags::ANY)?;
        let cpus: Vec<_> = found.iter().flatten().filter_map(|bytes| CsigCounts::from_prefix(bytes)).collect();
        let sum = |of: fn(&CsigCounts) -> u64| cpus.iter().map(of).fold(0, u64::saturating_add);
        let (role, format, signal) = read(&config);
        let reading = Some(reading(reader, ifindex)?).filter(|reading| reading.found != 0 && role != TagRole::Edge);
        tags.push(TagStatus {
            device: name_in(ifindex, config.namespace, &config.device),
            ifindex,
            role,
            format,
            signal,
            value: reading.map(|reading| signal.value(reading.value)),
            code: reading.map(|reading| reading.code),
            pushed: sum(|c| c.pushed),
            compared: sum(|c| c.compared),
            replaced: sum(|c| c.replaced),
            popped: sum(|c| c.popped),
            stripped: sum(|c| c.stripped),
            stored: sum(|c| c.stored),
            too_long: sum(|c| c.too_long),
            other: sum(|c| c.other),
            failed: sum(|c| c.failed),
        });
    }
    tags.sort_by(|a, b| a.device.cmp(&b.device));
    Ok(tags)
}

fn reading(reader: &ProgramMut<'_>, ifindex: u32) -> Result<CsigReading> {
    let mut reading = CsigReading { ifindex, ..CsigReading::default() };
    let input = ProgramInput { context_in: Some(reading.as_bytes_mut()), ..ProgramInput::default() };
    reader.test_run(input).context("cannot run CSIG's programs")?;
    Ok(reading)
}
