//! Networks built in code, with unit types, names and defaults, for tests and benchmarks.

use waterfill_laws::protocols::own;
use waterfill_laws::units::{Duration, Rate, Volume};

use crate::flow::FlowSpec;
use crate::link::{BufferSpec, LinkSpec};
use crate::network::{Network, ParamValue, Params};
use crate::queue::QueueSpec;
use crate::traffic::{TrafficKind, TrafficSpec};

/// Builder of a network. Every setter returns the builder.
#[derive(Clone, Debug)]
pub struct NetworkBuilder {
    network: Network,
    /// Error for the first flow over a link that the network does not have.
    error: Option<String>,
}

impl Network {
    /// Creates a builder for a network that runs for `duration` and is measured over the last third of the run.
    #[must_use]
    pub fn builder(duration: Duration) -> NetworkBuilder {
        let duration_s = duration.as_secs();
        let network = Self {
            name: "network".into(),
            seed: 1,
            duration_s,
            measure_s: [duration_s * 2.0 / 3.0, duration_s],
            sample_s: 0.1,
            packet_bytes: 1500,
            ack_bytes: 40,
            rto_min_s: 1.0,
            syn_rto_s: 1.0,
            rttvar_min_s: 0.2,
            params: Params::new(),
            links: Vec::new(),
            flows: Vec::new(),
            traffic: Vec::new(),
            switching: None,
            series: None,
            switches: Vec::new(),
            own: own::Laws::default(),
        };
        NetworkBuilder { network, error: None }
    }
}

impl NetworkBuilder {
    /// Adds both directions of a duplex link.
    #[must_use]
    pub fn link(mut self, name: &str, rate: Rate, delay: Duration, buffer: Volume) -> Self {
        self.network.links.extend(LinkSpec::duplex(name, rate, delay, buffer));
        self
    }

    /// Adds a flow that lasts to the end of the run.
    ///
    /// The path is given by the names of the link directions that the flow's data crosses.
    #[must_use]
    pub fn flow(mut self, name: &str, protocol: &str, path: &[&str]) -> Self {
        let index = |link: &&str| self.network.links.iter().position(|known| known.name == **link);
        let forward: Option<Vec<u32>> = path.iter().map(|link| index(link).map(|i| i as u32)).collect();
        let stop = Duration::from_secs(self.network.duration_s);
        match forward {
            Some(forward) => self.network.flows.push(FlowSpec::new(name, protocol, &forward, stop)),
            None => self.error = self.error.or_else(|| Some(format!("flow.{name}.path: unknown links, {path:?}"))),
        }
        self
    }

    /// Sets a parameter of a protocol.
    #[must_use]
    pub fn param(mut self, protocol: &str, name: &str, value: impl Into<ParamValue>) -> Self {
        self.network.set_param(protocol, name, value);
        self
    }

    /// Changes fields of the network that have no setter.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Network)) -> Self {
        change(&mut self.network);
        self
    }

    /// Returns the network without checking it, so that tests can build invalid networks.
    #[must_use]
    pub fn unchecked(self) -> Network {
        self.network
    }

    /// Checks and returns the network.
    ///
    /// # Errors
    /// One sentence: `KEY: must be …`.
    pub fn build(self) -> Result<Network, String> {
        self.error.map_or_else(|| self.network.checked(), Err)
    }
}

impl Network {
    /// Sets a parameter of a protocol.
    pub fn set_param(&mut self, protocol: &str, name: &str, value: impl Into<ParamValue>) {
        self.params.entry(protocol.into()).or_default().insert(name.into(), value.into());
    }
}

impl LinkSpec {
    /// Returns one link direction with a drop-tail queue and without faults.
    #[must_use]
    pub fn new(name: &str, rate: Rate, delay: Duration, buffer: Volume) -> Self {
        Self {
            name: name.into(),
            rate_bps: rate.as_bps(),
            changes: Vec::new(),
            shaper: None,
            policer: None,
            delay_s: delay.as_secs(),
            buffer: BufferSpec::Bytes(buffer.as_bytes() as u64),
            pull: false,
            queue: QueueSpec::default(),
            loss: 0.0,
            loss_model: None,
            reorder: None,
            duplicate: 0.0,
            faults: Vec::new(),
            target: None,
            routers: None,
        }
    }

    /// Returns both directions of a duplex link.
    #[must_use]
    pub fn duplex(name: &str, rate: Rate, delay: Duration, buffer: Volume) -> [Self; 2] {
        [name.to_string(), format!("{name}:rev")].map(|name| Self::new(&name, rate, delay, buffer))
    }
}

impl FlowSpec {
    /// Returns one greedy flow from time 0 to `stop`.
    ///
    /// The links must come in pairs, as from [`LinkSpec::duplex`].
    #[must_use]
    pub fn new(name: &str, protocol: &str, forward: &[u32], stop: Duration) -> Self {
        Self {
            name: name.into(),
            count: 1,
            protocol: protocol.into(),
            forward: forward.into(),
            reverse: forward.iter().rev().map(|link| link ^ 1).collect(),
            start_s: 0.0,
            stagger_s: 0.0,
            start_jitter_s: Vec::new(),
            stop_s: stop.as_secs(),
            size_bytes: None,
            pad_s: 0.0,
            pad_jitter_s: Vec::new(),
            access_bps: None,
            base_rtt_s: 0.0,
            weight: 1.0,
            demand_bps: None,
            demands: Vec::new(),
            application: None,
            initial_window_packets: 10.0,
            handshake: true,
            pacing: None,
            delayed_ack: false,
            ack_frequency: None,
            ecn: None,
            ecn_feedback: None,
            ecn_codepoint: None,
            recovery: None,
            window_validation: None,
            pacing_quantum_packets: 1,
            pacing_quantum_s: None,
            claimed_rtt_s: None,
            base_rtt_window_s: None,
            faults: Vec::new(),
            after: Vec::new(),
            after_count: None,
            continues: None,
            routes: Vec::new(),
            switched: false,
        }
    }
}

impl TrafficSpec {
    /// Returns a source of full packets at a constant rate from `start` to `stop`.
    #[must_use]
    pub fn cbr(name: &str, path: &[u32], rate: Rate, [start, stop]: [Duration; 2]) -> Self {
        Self {
            name: name.into(),
            kind: TrafficKind::Cbr,
            path: path.into(),
            rate_bps: Some(rate.as_bps()),
            access_bps: None,
            start_s: start.as_secs(),
            stop_s: stop.as_secs(),
            packet_bytes: 1500,
            periods: None,
            flows: None,
            switched: false,
        }
    }
}

impl From<f64> for ParamValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for ParamValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for ParamValue {
    fn from(word: &str) -> Self {
        Self::Word(word.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> NetworkBuilder {
        let (rate, delay) = (Rate::from_bps(1e8), Duration::from_millis(10));
        let builder = Network::builder(Duration::from_secs(60.0));
        builder.link("a", rate, delay, Volume::from_bytes(1e5)).link("b", rate, delay, Volume::from_bytes(1e5))
    }

    #[test]
    fn paths_become_indexes_and_acknowledgements_take_them_backwards() {
        let network = builder().flow("f", "maxnet", &["a", "b"]).param("maxnet", "mu", 0.9).build().unwrap();
        assert_eq!((&network.flows[0].forward[..], &network.flows[0].reverse[..]), (&[0, 2][..], &[3, 1][..]));
        assert_eq!((network.links[3].name.as_str(), network.measure_s), ("b:rev", [40.0, 60.0]));
        assert_eq!(network.params["maxnet"]["mu"], ParamValue::Number(0.9));
    }

    #[test]
    fn what_is_wrong_is_said_by_build() {
        let unknown = builder().flow("f", "maxnet", &["c"]).build().unwrap_err();
        assert_eq!(unknown, r#"flow.f.path: unknown links, ["c"]"#);
        let refused = builder().with(|n| n.links[0].loss = 2.0).build().unwrap_err();
        assert_eq!(refused, "link.a.loss: must be in [0, 1], got 2");
    }
}
