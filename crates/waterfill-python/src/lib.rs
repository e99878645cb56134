//! `waterfill._core`: laws, simulator and fluid model for Python. Conversions only.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration as WallDuration, Instant as WallInstant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Value as Json, json};
use waterfill_laws::params::{ParamInfo, Unit, Value};
use waterfill_laws::protocol::Kind;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::Instant;
use waterfill_network::{Network, Params, Series, Summary, params_from};
use waterfill_sim::CaptureOptions;

use convert::{from_python, to_python};

mod convert;
mod own;

/// Laws, simulator and fluid model of Waterfill.
#[pymodule(name = "_core")]
mod core {
    #[pymodule_export]
    use super::{PyFluid, PySimulation, protocols, targets, version};
}

/// A packet-level simulation of a resolved scenario.
#[pyclass(name = "Simulation")]
struct PySimulation {
    inner: waterfill_sim::Simulation,
    wall: WallDuration,
    /// What a law in Python raised, where the run has one.
    failure: Option<Arc<own::Failure>>,
}

#[pymethods]
impl PySimulation {
    /// Builds the network, the GIL released; `ValueError` with one sentence if it cannot be run.
    ///
    /// `law`, a `waterfill.Law`, is what flows of the protocol `own` run; what it raises is raised here and by `advance`.
    #[new]
    #[pyo3(signature = (network, law=None))]
    fn new(py: Python<'_>, network: &Bound<'_, PyAny>, law: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut network = from_python::<Network>(network)?;
        let law = law.map(own::Law::new).transpose()?;
        let failure = law.as_ref().map(own::Law::failure);
        network.own = law.map(own::Law::params).unwrap_or_default();
        let network = network.checked().map_err(PyValueError::new_err)?;
        let inner = py.detach(|| waterfill_sim::Simulation::new(network)).map_err(PyValueError::new_err)?;
        failure.as_ref().map_or(Ok(()), |failure| failure.check())?;
        Ok(Self { inner, wall: WallDuration::ZERO, failure })
    }

    /// Divides a run that has not begun among up to this number of threads, `None` as is predicted to be the fastest;
    /// returns how many it uses.
    #[pyo3(signature = (threads=None))]
    fn set_threads(&mut self, threads: Option<usize>) -> usize {
        self.inner.set_threads(threads)
    }

    /// Records packets in a file from now on; `ValueError` with one sentence if it cannot be written.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a path by value only")]
    fn start_capture(&mut self, file: PathBuf, snaplen: u32, limit_bytes: u64, links: Vec<u32>) -> PyResult<()> {
        let options = CaptureOptions { snaplen, limit_bytes, links };
        self.inner.start_capture(&file, &options).map_err(PyValueError::new_err)
    }

    /// Ends the capture; returns its packets, its bytes and the time at which it reached its limit.
    fn finish_capture(&mut self) -> PyResult<Option<(u64, u64, Option<f64>)>> {
        let report = self.inner.finish_capture().map_err(PyValueError::new_err)?;
        Ok(report.map(|report| (report.packets, report.bytes, report.full_at_s)))
    }

    /// Simulates up to `until_s` seconds; releases the GIL. Raises what a law in Python raised.
    fn advance(&mut self, py: Python<'_>, until_s: f64) -> PyResult<()> {
        let started = WallInstant::now();
        py.detach(|| self.inner.advance(Instant::from_secs(until_s)));
        self.wall += started.elapsed();
        self.failure.as_ref().map_or(Ok(()), |failure| failure.check())
    }

    /// Returns the simulated time and the work done so far.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("now_s", self.inner.now().as_secs())?;
        dict.set_item("events", self.inner.events())?;
        dict.set_item("packet_hops", self.inner.packet_hops())?;
        Ok(dict)
    }

    /// Returns the summary up to now as dictionaries and lists.
    fn summary<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        summary(py, self.inner.summary(), self.wall)
    }

    /// Returns the series `flows`, `links` or `traffic`: column → (dtype, little-endian bytes).
    fn series<'py>(&self, py: Python<'py>, which: &str) -> PyResult<Bound<'py, PyDict>> {
        columns(py, one_of(self.inner.series(), which)?)
    }

    /// Returns the flows that traffic sources have started: column → (dtype, little-endian bytes).
    fn arrivals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, &self.inner.arrivals())
    }
}

/// A fluid run of a resolved scenario.
#[pyclass(name = "Fluid")]
struct PyFluid {
    inner: waterfill_fluid::Fluid,
    wall: WallDuration,
}

#[pymethods]
impl PyFluid {
    /// Builds the network, the GIL released; `ValueError` with one sentence if it cannot be run.
    #[new]
    #[pyo3(signature = (network, step_s=None))]
    fn new(py: Python<'_>, network: &Bound<'_, PyAny>, step_s: Option<f64>) -> PyResult<Self> {
        let network = read_network(network)?;
        let inner = py.detach(|| waterfill_fluid::Fluid::new(network, step_s)).map_err(PyValueError::new_err)?;
        Ok(Self { inner, wall: WallDuration::ZERO })
    }

    /// Advances to `until_s` seconds; releases the GIL.
    fn advance(&mut self, py: Python<'_>, until_s: f64) {
        let started = WallInstant::now();
        py.detach(|| self.inner.advance(Instant::from_secs(until_s)));
        self.wall += started.elapsed();
    }

    /// Returns the simulated time and the work done so far.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("now_s", self.inner.now().as_secs())?;
        dict.set_item("events", self.inner.events())?;
        dict.set_item("packet_hops", self.inner.packet_hops())?;
        Ok(dict)
    }

    /// Returns the summary up to now as dictionaries and lists.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        summary(py, self.inner.summary(), self.wall)
    }

    /// Returns the series `flows`, `links` or `traffic`: column → (dtype, little-endian bytes).
    fn series<'py>(&self, py: Python<'py>, which: &str) -> PyResult<Bound<'py, PyDict>> {
        columns(py, one_of(self.inner.series(), which)?)
    }
}

fn read_network(object: &Bound<'_, PyAny>) -> PyResult<Network> {
    from_python::<Network>(object)?.checked().map_err(PyValueError::new_err)
}

fn summary(py: Python<'_>, mut summary: Summary, wall: WallDuration) -> PyResult<Bound<'_, PyAny>> {
    summary.engine.wall_s = Some(wall.as_secs_f64());
    to_python(py, &summary)
}

/// Returns the series of flows, links or traffic.
fn one_of<'a>(series: [&'a Series; 3], which: &str) -> PyResult<&'a Series> {
    let place = ["flows", "links", "traffic"].iter().position(|&name| name == which);
    place.map(|place| series[place]).ok_or_else(|| PyValueError::new_err("expected flows, links or traffic"))
}

/// Returns a table as column → (dtype, little-endian bytes).
fn columns<'py>(py: Python<'py>, series: &Series) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in series.names().iter().zip(series.columns()) {
        let (dtype, bytes) = match name.as_str() {
            "flow" | "link" | "traffic" => ("u32", buffer(py, column, |x| (x as u32).to_le_bytes())?),
            "drops" | "marks" | "lost" | "index" | "size_bytes" => {
                ("u64", buffer(py, column, |x| (x as u64).to_le_bytes())?)
            }
            _ => ("f64", buffer(py, column, f64::to_le_bytes)?),
        };
        dict.set_item(name, (dtype, bytes))?;
    }
    Ok(dict)
}

/// Converts a column to one buffer of `N`-byte numbers.
fn buffer<'py, const N: usize>(
    py: Python<'py>,
    column: &[f64],
    bytes: impl Fn(f64) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, column.len() * N, |out| {
        for (place, &x) in out.chunks_exact_mut(N).zip(column) {
            place.copy_from_slice(&bytes(x));
        }
        Ok(())
    })
}

/// Returns a description of every protocol with its parameters and signals.
#[pyfunction]
fn protocols(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // One that no backend runs is a program's law, which has its own name.
    let listed = ProtocolId::ALL.iter().filter(|id| !id.info().backends.is_empty());
    let list: Vec<Json> = listed.map(|&id| protocol(id)).collect();
    to_python(py, &list)
}

fn protocol(id: ProtocolId) -> Json {
    let info = id.info();
    json!({
        "name": info.name,
        "kind": match info.kind { Kind::Explicit => "explicit", Kind::EndToEnd => "end-to-end" },
        "backends": info.backends,
        "header_bytes": id.header_bytes(),
        "echo_bytes": id.echo_bytes(),
        "summary": info.summary,
        "params": id.params_list().iter().map(param).collect::<Vec<_>>(),
        "signals": info.signals.iter().map(|s| json!({"name": s.name, "unit": s.unit, "doc": s.doc})).collect::<Vec<_>>(),
    })
}

fn param(info: &ParamInfo) -> Json {
    let choices = match info.unit {
        Unit::Choice(words) => json!(words),
        _ => Json::Null,
    };
    let default = match &info.default {
        Value::Number(n) => json!(n),
        Value::Word(w) => json!(w),
        Value::Flag(b) => json!(b),
    };
    json!({"name": info.name, "unit": info.unit.name(), "default": default, "choices": choices, "doc": info.doc, "source": info.source})
}

/// Returns the target utilization of every protocol under these parameters.
#[pyfunction]
fn targets<'py>(py: Python<'py>, params: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let set: Params = from_python(params)?;
    let targets = PyDict::new(py);
    for &id in ProtocolId::ALL {
        let name = id.info().name;
        targets.set_item(name, params_from(id, set.get(name)).map_err(PyValueError::new_err)?.target())?;
    }
    Ok(targets)
}

/// Returns the version of the core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
