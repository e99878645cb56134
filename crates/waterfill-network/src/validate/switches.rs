//! Checks of the switches with a shared buffer.

use std::collections::BTreeSet;

use crate::network::Network;
use crate::queue::QueueSpec;
use crate::switch::SwitchSpec;
use crate::traffic::ArrivalSpec;

impl Network {
    /// Checks the switches, and that the queues of their links can share a buffer.
    pub(super) fn check_switches(&self) -> Result<(), String> {
        let mut taken = BTreeSet::new();
        for switch in &self.switches {
            switch.check().map_err(|e| format!("switch.{e}"))?;
            self.check_pfc(switch)?;
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

    /// Checks that the links of a switch can pause, and that links bring all its packets.
    fn check_pfc(&self, switch: &SwitchSpec) -> Result<(), String> {
        let Some(pfc) = &switch.pfc else { return Ok(()) };
        let name = &switch.name;
        for input in &pfc.inputs {
            if !switch.outputs.contains(&input.back) || input.link as usize >= self.links.len() {
                return Err(format!("switch: an input of {name} has no link that carries its pause frames"));
            }
        }
        let links = switch.outputs.iter().chain(pfc.inputs.iter().map(|input| &input.link));
        for link in links.filter_map(|&l| self.links.get(l as usize)) {
            let (key, why) = if !matches!(link.queue, QueueSpec::Droptail { .. }) {
                ("queue", "needs droptail")
            } else if !link.changes.is_empty() {
                ("event", "allows no events")
            } else if link.shaper.is_some() {
                ("shaper", "allows no shaper")
            } else if link.policer.is_some() {
                ("policer", "allows no policer")
            } else {
                continue;
            };
            return Err(format!("link.{}.{key}: a link of a switch with pfc {why}", link.name));
        }
        let begins = |path: &[u32]| path.first().is_some_and(|l| switch.outputs.contains(l));
        let at_host = "is a switch with pfc, which counts packets by link; let the flow begin and end at hosts";
        for flow in &self.flows {
            if flow.ways().any(|(there, back)| begins(there) || begins(back)) {
                return Err(format!("flow.{}: {name} {at_host}", flow.name));
            }
        }
        for source in &self.traffic {
            let mut ways = source.flows.iter().flat_map(ArrivalSpec::ways);
            if begins(&source.path) || ways.any(|(there, back)| begins(there) || begins(back)) {
                return Err(format!("traffic.{}: {name} {at_host}", source.name));
            }
        }
        Ok(())
    }
}
