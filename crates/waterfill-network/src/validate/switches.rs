//! Checks of the switches with a shared buffer.

use std::collections::BTreeSet;

use crate::network::Network;
use crate::queue::QueueSpec;

impl Network {
    /// Checks the switches, and that the queues of their links can share a buffer.
    pub(super) fn check_switches(&self) -> Result<(), String> {
        let mut taken = BTreeSet::new();
        for switch in &self.switches {
            switch.check().map_err(|e| format!("switch.{e}"))?;
            for &l in &switch.outputs {
                let Some(link) = self.links.get(l as usize) else {
                    return Err(format!("switch: {} has no link {l}", switch.name));
                };
                if !taken.insert(l) {
                    return Err(format!("switch: link {} leaves two switches", link.name));
                }
                if !matches!(link.queue, QueueSpec::Droptail { .. } | QueueSpec::Red(_)) {
                    return Err(format!(
                        "link.{}.queue: cannot share the buffer of switch {}; use droptail or red",
                        link.name, switch.name
                    ));
                }
            }
        }
        Ok(())
    }
}
