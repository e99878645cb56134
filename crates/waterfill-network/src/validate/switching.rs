//! Checks of the switches that choose routes.

use waterfill_laws::registry::ProtocolId;

use crate::network::Network;
use crate::switching::{PathChoice, SwitchingSpec};
use crate::traffic::TrafficSpec;

impl Network {
    /// Checks the switches, and that what they forward allows it.
    pub(super) fn check_switching(&self) -> Result<(), String> {
        let switched = |source: &TrafficSpec| {
            source.switched || source.flows.as_ref().is_some_and(|flows| flows.flow.switched || !flows.pairs.is_empty())
        };
        let Some(switching) = &self.switching else {
            if let Some(flow) = self.flows.iter().find(|flow| flow.switched) {
                return Err(format!("flow.{}: the network has no switches that choose its route", flow.name));
            }
            return match self.traffic.iter().find(|source| switched(source)) {
                Some(source) => {
                    Err(format!("traffic.{}: the network has no switches that choose its route", source.name))
                }
                None => Ok(()),
            };
        };
        switching.check(self.links.len()).map_err(|e| format!("ecmp: {e}"))?;
        let own = self.flows.iter().map(|flow| (format!("flow.{}", flow.name), flow));
        let arriving = self
            .traffic
            .iter()
            .filter_map(|source| source.flows.as_ref().map(|flows| (format!("traffic.{}", source.name), &flows.flow)));
        for (at, flow) in own.chain(arriving).filter(|(_, flow)| flow.switched) {
            if !flow.routes.is_empty() {
                return Err(format!("{at}.route: not allowed, because switches choose the flow's route"));
            }
            let (there, back) = (switching.ends(&flow.forward), switching.ends(&flow.reverse));
            if there != back.map(|(from, to)| (to, from)) {
                return Err(format!("{at}.path: acknowledgements must return to where the data came from"));
            }
            let protocol = self.protocol_of(&at, flow)?;
            if switching.choice == PathChoice::Spray && protocol.has_telemetry() {
                return Err(format!(
                    "{at}.protocol: {} compares telemetry of one path, and ecmp = \"spray\" sends each packet on another; \
                     use ecmp = \"hash\" or \"flowlet\"",
                    flow.protocol
                ));
            }
            if switching.choice != PathChoice::Hash && matches!(protocol, ProtocolId::Sperc) {
                let choice = if switching.choice == PathChoice::Spray { "spray" } else { "flowlet" };
                return Err(format!(
                    "{at}.protocol: sperc keeps a slot for each link of one path, which ecmp = \"{choice}\" changes; use \
                     ecmp = \"hash\""
                ));
            }
        }
        let nodes = switching.count();
        for source in &self.traffic {
            let pairs = source.flows.iter().flat_map(SwitchingSpec::pairs);
            if let Some((from, to)) = pairs.into_iter().find(|&(a, b)| a == b || a.max(b) as usize >= nodes) {
                return Err(format!("traffic.{}.pairs: no pair of two nodes: {from}, {to}", source.name));
            }
        }
        Ok(())
    }
}
