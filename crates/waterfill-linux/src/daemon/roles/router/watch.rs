//! Qdiscs and filters that others change at the router's devices: the kernel reports them, the daemon compares.
//!
//! A shaper that was removed is installed again. One that another qdisc replaced is not, because somebody chose that qdisc:
//! it is reported until it goes. Two programs that undo each other's work would never end.

use anyhow::Result;

use super::shaper::{self, ShaperState};
use super::{CLSACT, FILTER, LinkSetup, PROGRAM, Router, SHAPER};
use crate::daemon::kernel::device::{self, NetworkChange, header_bytes, namespace};
use crate::daemon::kernel::interface::Attachment;
use crate::daemon::kernel::{hook, object, tc};

impl Router {
    /// Compares the qdiscs and filters of devices with their setup after a message of the kernel. Restores what others
    /// removed, and reports what they replaced. An error is logged.
    pub(crate) fn check_qdiscs(&mut self, change: &NetworkChange) {
        for (setup, ifindex) in self.followed.clone().into_values() {
            let changed = change.lost || change.qdiscs.contains(&ifindex);
            if ifindex == 0 || !changed {
                continue;
            }
            let device = setup.device();
            if let (Some(kind), false) = (change.roots.get(&ifindex), setup.options.shape) {
                let law = self.law.name;
                tracing::warn!(event = "qdisc_changed", device, law, "device {device}: its root qdisc is now {kind}");
            }
            if let Err(e) = self.repair(&setup, ifindex) {
                if !self.report_replaced(&setup, ifindex) {
                    tracing::warn!("device {device}: {e:#}");
                }
            }
        }
    }

    /// Installs the shaper and the filter of an attached device again if they are not as its setup says. Returns what was
    /// restored. Fails if another qdisc is in the shaper's place.
    pub(crate) fn restore(&mut self, device: &str) -> Result<Vec<&'static str>> {
        match self.followed.get(device).cloned() {
            Some((setup, ifindex)) if ifindex != 0 => self.repair(&setup, ifindex),
            _ => Ok(Vec::new()),
        }
    }

    fn repair(&mut self, setup: &LinkSetup, ifindex: u32) -> Result<Vec<&'static str>> {
        let (device, law) = (setup.device(), self.law.name);
        let mut restored = Vec::new();
        if self.repair_filter(setup, ifindex)? {
            tracing::warn!(
                event = "filter_restored",
                device,
                law,
                "device {device}: its filter was removed; added again"
            );
            restored.push("filter");
        }
        if !setup.options.shape {
            return Ok(restored);
        }
        let shaping = setup.shaping(header_bytes(device)?);
        let state = shaper::state(device, Some(&shaping))?;
        if state != ShaperState::Present {
            shaper::install(device, &shaping)?;
            self.divisions.remove(&ifindex); // its queues are divided anew
            let text = format!("device {device}: its shaper was {state}; installed it again");
            tracing::warn!(event = "shaper_restored", device, law, "{text}");
            restored.push("shaper");
        }
        self.replaced.remove(&ifindex);
        Ok(restored)
    }

    /// Adds the filter of a device without tcx again if it is missing. Returns true if it was.
    fn repair_filter(&self, setup: &LinkSetup, ifindex: u32) -> Result<bool> {
        let (device, mut created) = (setup.device(), self.show(ifindex)?.attachment.created);
        if created & FILTER == 0 || tc::egress_filters(device)?.iter().any(hook::is_ours) {
            return Ok(false);
        }
        if !tc::has_clsact(device)? {
            created |= CLSACT;
            self.set(setup, ifindex, header_bytes(device)?, created)?;
        }
        hook::attach_filter(&object::program(&self.object, PROGRAM)?, ifindex, created & CLSACT != 0)?;
        Ok(true)
    }

    /// Reports that another qdisc is in the shaper's place, once per qdisc. Returns false if there is none.
    fn report_replaced(&mut self, setup: &LinkSetup, ifindex: u32) -> bool {
        let (device, law) = (setup.device(), self.law.name);
        let Ok(ShaperState::Replaced(by)) = shaper::state(device, None) else { return false };
        if self.replaced.get(&ifindex) != Some(&by) {
            tracing::warn!(
                event = "shaper_replaced",
                device,
                law,
                "device {device}: {by} replaced its shaper, so the link is not limited to its rate; \
                 `tc qdisc del dev {device} root` lets the shaper return"
            );
            self.replaced.insert(ifindex, by);
        }
        true
    }

    /// Returns the state of a link's shaper, or `None` if the link has none. With `look`, it runs `tc`; without, it is the
    /// state at the kernel's last message.
    pub(super) fn shaper_state(
        &self,
        ifindex: u32,
        attachment: &Attachment,
        look: bool,
    ) -> Result<Option<ShaperState>> {
        if attachment.created & SHAPER == 0 || attachment.namespace != namespace()? {
            return Ok(None);
        }
        if !look {
            let replaced = self.replaced.get(&ifindex).cloned();
            return Ok(Some(replaced.map_or(ShaperState::Present, ShaperState::Replaced)));
        }
        shaper::state(&device::name(ifindex, attachment), None).map(Some)
    }
}
