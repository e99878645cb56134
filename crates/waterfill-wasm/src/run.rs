//! One run, from a request in JSON to encoded results.

use serde::Deserialize;
use serde_json::{Value, json};
use waterfill_fluid::Fluid;
use waterfill_laws::units::Instant;
use waterfill_network::{ColumnType, Network, Series, Summary, digest};
use waterfill_sim::Simulation;

/// Engine that runs a network.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The packet simulator.
    Sim,
    /// The fluid model.
    Fluid,
}

/// Request for a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The resolved network, with the keys of `waterfill.contract.Network.to_dict()` in Python.
    pub network: Network,
    /// Engine that runs it.
    pub backend: Backend,
    /// Time step of the fluid model in seconds; the engine chooses one by default.
    #[serde(default)]
    pub step_s: Option<f64>,
    /// Number of events after which the run stops early; by default it runs to its end.
    #[serde(default)]
    pub events: Option<u64>,
}

/// Finished run of either engine.
#[derive(Debug)]
pub struct Finished {
    summary: Summary,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Sim(Box<Simulation>, Series),
    Fluid(Box<Fluid>),
}

/// Runs the network of a request on one thread.
///
/// # Errors
/// One sentence: the request is not one, or its network cannot be run.
pub fn finish(request: &[u8]) -> Result<Finished, String> {
    let request: Request = serde_json::from_slice(request).map_err(|e| format!("the request cannot be read: {e}"))?;
    let network = request.network.checked()?;
    let until = Instant::from_secs(network.duration_s);
    let events = request.events.unwrap_or(u64::MAX);
    match request.backend {
        Backend::Sim if request.step_s.is_some() => {
            Err("step_s: only the fluid model has a time step, got \"backend\": \"sim\"".into())
        }
        Backend::Sim => {
            let mut sim = Simulation::new(network)?;
            let _ = sim.advance_slice(until, events);
            let (summary, arrivals) = (sim.summary(), sim.arrivals());
            Ok(Finished { summary, engine: Engine::Sim(Box::new(sim), arrivals) })
        }
        Backend::Fluid => {
            let mut fluid = Fluid::new(network, request.step_s)?;
            let _ = fluid.advance_slice(until, events);
            Ok(Finished { summary: fluid.summary(), engine: Engine::Fluid(Box::new(fluid)) })
        }
    }
}

impl Finished {
    /// Returns the tables of the run with their names: flows, links and traffic, and of the packet simulator also arrivals.
    #[must_use]
    pub fn tables(&self) -> Vec<(&'static str, &Series)> {
        let (series, arrivals) = match &self.engine {
            Engine::Sim(sim, arrivals) => (sim.series(), Some(arrivals)),
            Engine::Fluid(fluid) => (fluid.series(), None),
        };
        let names = ["flows", "links", "traffic", "arrivals"];
        names.into_iter().zip(series.into_iter().chain(arrivals)).collect()
    }

    /// Returns the hash of the results that `digest` of a run in Python returns too.
    ///
    /// # Errors
    /// One sentence: the summary cannot be written as JSON.
    pub fn digest(&self) -> Result<String, String> {
        let tables: Vec<_> = self.tables().into_iter().map(|(_, table)| table).collect();
        digest(&self.summary, &tables)
    }

    /// Returns the results as bytes: the header's length in 8 bytes, the header, and the columns.
    ///
    /// The header is JSON, padded with blanks to a multiple of 8 bytes: `digest`, `summary`, and for each of `tables` its
    /// `rows` and its `columns` with name and type. The columns follow in the same order as 64-bit floating-point numbers,
    /// whatever their type; all integers are exact, and NaN means "no value". All numbers are little-endian.
    ///
    /// # Errors
    /// One sentence: the summary cannot be written as JSON.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let tables = self.tables();
        let described: Vec<Value> = tables
            .iter()
            .map(|(name, table)| {
                let columns = table.names().iter().map(|c| json!({"name": c, "type": ColumnType::of(c).name()}));
                let rows = table.columns().first().map_or(0, Vec::len);
                json!({"name": name, "rows": rows, "columns": columns.collect::<Vec<_>>()})
            })
            .collect();
        let header = json!({"digest": self.digest()?, "summary": self.summary, "tables": described});
        let mut header = header.to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        let columns = tables.iter().flat_map(|(_, table)| table.columns());
        let numbers: usize = columns.clone().map(Vec::len).sum();
        let mut bytes = Vec::with_capacity(8 + header.len() + 8 * numbers);
        bytes.extend((header.len() as u64).to_le_bytes());
        bytes.append(&mut header);
        bytes.extend(columns.flatten().flat_map(|x| x.to_le_bytes()));
        Ok(bytes)
    }
}
