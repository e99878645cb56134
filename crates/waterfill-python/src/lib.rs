//! Python module `waterfill._core`: conversions for the laws, the simulator and the fluid model.

// Objects of any shape come from Python: nothing here may panic on one. Exceptions state why they cannot.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::unreachable)
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration as WallDuration, Instant as WallInstant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use serde::Serialize;
use serde_json::{Value as Json, json};
use waterfill_endpoint::Side;
use waterfill_endpoint::library::EndpointLibrary;
use waterfill_laws::params::{ParamInfo, Unit, Value};
use waterfill_laws::protocol::ProtocolKind;
use waterfill_laws::registry::ProtocolId;
use waterfill_laws::units::Instant;
use waterfill_network::{ColumnType, Estimate, Network, Params, Series, Summary, digest, params_from};
use waterfill_sim::{CaptureOptions, EndpointPair, QlogFile};

use convert::{from_python, to_python};
use watch::Interruption;

mod convert;
mod memory;
mod numbers;
mod own;
mod steps;
mod watch;

/// Laws, simulator and fluid model of Waterfill.
#[pymodule(name = "_core")]
mod core {
    #[pymodule_export]
    use super::numbers::{asin, cbrt, cos, ln, ln_1p, log10, pow, sin};
    #[pymodule_export]
    use super::{PyFluid, PySimulation, protocols, targets, version};
}

/// A packet-level simulation of a resolved scenario.
#[pyclass(name = "Simulation")]
struct PySimulation {
    inner: waterfill_sim::Simulation,
    wall: WallDuration,
    /// Exception that a law in Python raised.
    failure: Arc<own::Failure>,
    interruption: Arc<Interruption>,
    estimate: Estimate,
}

#[pymethods]
impl PySimulation {
    /// Builds the network with the GIL released. Raises `ValueError` with one sentence if the network cannot be run.
    ///
    /// `laws` are laws in Python by name: objects with the attributes of `waterfill.runs.laws.BoundLaw`. Their exceptions are
    /// raised here and by `advance`, and so are those of `check`, which is called some twenty times a second. After an
    /// exception the run stays stopped.
    #[new]
    #[pyo3(signature = (network, laws=None, check=None))]
    fn new(
        py: Python<'_>,
        network: &Bound<'_, PyAny>,
        laws: Option<&Bound<'_, PyDict>>,
        check: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let mut network = from_python::<Network>(network)?;
        let (laws, failure) = laws.map(own::table).transpose()?.unwrap_or_default();
        network.own = laws;
        let network = network.checked().map_err(PyValueError::new_err)?;
        let estimate = waterfill_sim::estimate(&network);
        memory::fits(&estimate).map_err(PyValueError::new_err)?;
        let (interruption, watch) = Interruption::watch(check);
        watch.ask_here();
        let built = py.detach(|| waterfill_sim::Simulation::watched(network, watch));
        interruption.check()?;
        let inner = built.map_err(PyValueError::new_err)?;
        failure.check()?;
        Ok(Self { inner, wall: WallDuration::ZERO, failure, interruption, estimate })
    }

    /// Divides a run among at most `threads` threads before it begins. Returns the number of threads used. `None`
    /// selects the predicted optimum.
    #[pyo3(signature = (threads=None))]
    fn set_threads(&mut self, threads: Option<usize>) -> usize {
        self.inner.set_threads(threads)
    }

    /// Simulates the whole run with the threads' parts in turn on one thread. Returns the seconds of each part by `clock`,
    /// the sum over windows of the seconds of the slowest part, and the number of windows; None if the run is not divided.
    fn run_in_turns(&mut self, clock: &Bound<'_, PyAny>) -> Option<(Vec<f64>, f64, u64)> {
        let read = || clock.call0().and_then(|time| time.extract()).unwrap_or(f64::NAN);
        let turns = self.inner.run_in_turns(read)?;
        Some((turns.parts_s, turns.slowest_s, turns.windows))
    }

    /// Records packets in a file from now on. Raises `ValueError` with one sentence if the file cannot be written.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a path by value only")]
    fn start_capture(&mut self, file: PathBuf, snaplen: u32, limit_bytes: u64, links: Vec<u32>) -> PyResult<()> {
        let options = CaptureOptions { snaplen, limit_bytes, links };
        self.inner.start_capture(&file, &options).map_err(PyValueError::new_err)
    }

    /// Ends the capture. Returns the numbers of packets and bytes, and the time at which the capture reached its limit
    /// if it did. Returns None without a capture.
    fn finish_capture(&mut self) -> PyResult<Option<(u64, u64, Option<f64>)>> {
        let report = self.inner.finish_capture().map_err(PyValueError::new_err)?;
        Ok(report.map(|report| (report.packets, report.bytes, report.full_at_s)))
    }

    /// Puts the endpoints of a shared library with these options in the place of a flow's hosts. Returns their name. Raises
    /// `ValueError` with one sentence if the library cannot be loaded, refuses an option, or the run has begun.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a path by value only")]
    fn attach_endpoints(
        &mut self,
        flow: u32,
        library: PathBuf,
        options: Vec<(String, String)>,
        seed: u64,
    ) -> PyResult<String> {
        let mut attach = || {
            let library = EndpointLibrary::load(&library)?;
            let seed = seed.rotate_left(32) ^ u64::from(flow) << 1;
            let create = |side, seed| library.create(side, seed, &options);
            let (client, server) = (create(Side::Client, seed)?, create(Side::Server, seed | 1)?);
            let set: Vec<_> = options.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let name = [library.name(), &*set.join(",")].join(if set.is_empty() { "" } else { ":" });
            self.inner.attach_endpoints(flow, EndpointPair { name: name.clone(), client, server })?;
            Ok(name)
        };
        attach().map_err(|error: String| PyValueError::new_err(error))
    }

    /// Logs flows as qlog from now on: for each its index, file and title. The files together end after about
    /// `limit_bytes`. Raises `ValueError` with one sentence if a file cannot be written.
    fn start_qlog(&mut self, flows: Vec<(u32, PathBuf, String)>, limit_bytes: u64) -> PyResult<()> {
        let files: Vec<_> = flows.into_iter().map(|(flow, file, title)| QlogFile { flow, file, title }).collect();
        self.inner.start_qlog(&files, limit_bytes).map_err(PyValueError::new_err)
    }

    /// Ends the logs. Returns the numbers of events and bytes, and the time at which the logs reached their limit if they
    /// did. Returns None without logs.
    fn finish_qlog(&mut self) -> PyResult<Option<(u64, u64, Option<f64>)>> {
        let report = self.inner.finish_qlog().map_err(PyValueError::new_err)?;
        Ok(report.map(|report| (report.events, report.bytes, report.full_at_s)))
    }

    /// Logs up to `limit` steps of one law or of all laws from now on. A logged run stays on one thread.
    #[pyo3(signature = (limit, law=None))]
    fn log_steps(&mut self, limit: usize, law: Option<&str>) -> PyResult<()> {
        self.inner.log_steps(limit, steps::law(law)?);
        Ok(())
    }

    /// Returns the log of steps; None if logging is not enabled.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.inner.step_log().map(|log| steps::log(py, log)).transpose()
    }

    /// Simulates until `until_s` seconds, or for `events` events, with the GIL released. Returns true if more work is
    /// due before `until_s`.
    ///
    /// Raises any exception of a law in Python, of `check` or of a signal handler.
    #[pyo3(signature = (until_s, events=u64::MAX))]
    fn advance(&mut self, py: Python<'_>, until_s: f64, events: u64) -> PyResult<bool> {
        let started = WallInstant::now();
        let more = py.detach(|| self.inner.advance_slice(Instant::from_secs(until_s), events));
        self.wall += started.elapsed();
        self.interruption.check()?;
        self.failure.check()?;
        Ok(more)
    }

    /// Returns the estimate for the whole run: memory, events, CPU seconds and the keys of the largest contributions.
    fn estimate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        needs(py, &self.estimate)
    }

    /// Returns the simulated time and the work done so far.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("now_s", self.inner.now().as_secs())?;
        dict.set_item("events", self.inner.events())?;
        dict.set_item("packet_hops", self.inner.packet_hops())?;
        Ok(dict)
    }

    /// Returns the summary of the run up to now as dictionaries and lists.
    fn summary<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        summary(py, self.inner.summary(), self.wall)
    }

    /// Returns the series `flows`, `links` or `traffic` as a dictionary: column → (dtype, little-endian bytes).
    fn series<'py>(&self, py: Python<'py>, which: &str) -> PyResult<Bound<'py, PyDict>> {
        columns(py, one_of(self.inner.series(), which)?)
    }

    /// Returns the flows that traffic sources have started as a dictionary: column → (dtype, little-endian bytes).
    fn arrivals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, &self.inner.arrivals())
    }

    /// Returns the messages that applications have written as a dictionary: column → (dtype, little-endian bytes).
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, &self.inner.messages())
    }

    /// Returns a hash of the series, the arrivals and the summary, the same on every target.
    fn digest(&mut self) -> PyResult<String> {
        let (summary, arrivals) = (self.inner.summary(), self.inner.arrivals());
        let [flows, links, traffic] = self.inner.series();
        digest(&summary, &[flows, links, traffic, &arrivals]).map_err(PyValueError::new_err)
    }
}

/// A fluid run of a resolved scenario.
#[pyclass(name = "Fluid")]
struct PyFluid {
    inner: waterfill_fluid::Fluid,
    wall: WallDuration,
    interruption: Arc<Interruption>,
    estimate: Estimate,
}

#[pymethods]
impl PyFluid {
    /// Builds the network with the GIL released. Raises `ValueError` with one sentence if the network cannot be run.
    ///
    /// For `check` see `Simulation`.
    #[new]
    #[pyo3(signature = (network, step_s=None, check=None))]
    fn new(
        py: Python<'_>,
        network: &Bound<'_, PyAny>,
        step_s: Option<f64>,
        check: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let network = read_network(network)?;
        let estimate = waterfill_fluid::estimate(&network, step_s).map_err(PyValueError::new_err)?;
        memory::fits(&estimate).map_err(PyValueError::new_err)?;
        let (interruption, watch) = Interruption::watch(check);
        watch.ask_here();
        let built = py.detach(|| waterfill_fluid::Fluid::watched(network, step_s, watch));
        interruption.check()?;
        Ok(Self { inner: built.map_err(PyValueError::new_err)?, wall: WallDuration::ZERO, interruption, estimate })
    }

    /// Logs up to `limit` steps of one law or of all laws from now on.
    #[pyo3(signature = (limit, law=None))]
    fn log_steps(&mut self, limit: usize, law: Option<&str>) -> PyResult<()> {
        self.inner.log_steps(limit, steps::law(law)?);
        Ok(())
    }

    /// Returns the log of steps; None if logging is not enabled.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.inner.step_log().map(|log| steps::log(py, log)).transpose()
    }

    /// Advances until `until_s` seconds, or by `events` events, with the GIL released. Returns true if more work is due
    /// before `until_s`.
    ///
    /// Raises any exception of `check` or of a signal handler.
    #[pyo3(signature = (until_s, events=u64::MAX))]
    fn advance(&mut self, py: Python<'_>, until_s: f64, events: u64) -> PyResult<bool> {
        let started = WallInstant::now();
        let more = py.detach(|| self.inner.advance_slice(Instant::from_secs(until_s), events));
        self.wall += started.elapsed();
        self.interruption.check()?;
        Ok(more)
    }

    /// Returns the estimate for the whole run: memory, events, CPU seconds and the keys of the largest contributions.
    fn estimate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        needs(py, &self.estimate)
    }

    /// Returns the simulated time and the work done so far.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("now_s", self.inner.now().as_secs())?;
        dict.set_item("events", self.inner.events())?;
        dict.set_item("packet_hops", self.inner.packet_hops())?;
        Ok(dict)
    }

    /// Returns the summary of the run up to now as dictionaries and lists.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        summary(py, self.inner.summary(), self.wall)
    }

    /// Returns the series `flows`, `links` or `traffic` as a dictionary: column → (dtype, little-endian bytes).
    fn series<'py>(&self, py: Python<'py>, which: &str) -> PyResult<Bound<'py, PyDict>> {
        columns(py, one_of(self.inner.series(), which)?)
    }

    /// Returns a hash of the series and the summary, the same on every target.
    fn digest(&self) -> PyResult<String> {
        digest(&self.inner.summary(), &self.inner.series()).map_err(PyValueError::new_err)
    }
}

fn read_network(object: &Bound<'_, PyAny>) -> PyResult<Network> {
    from_python::<Network>(object)?.checked().map_err(PyValueError::new_err)
}

/// Converts a summary to dictionaries and lists. Flows are converted one by one, because a whole document of a million
/// flows takes gigabytes.
fn summary(py: Python<'_>, mut summary: Summary, wall: WallDuration) -> PyResult<Bound<'_, PyAny>> {
    summary.engine.wall_s = Some(wall.as_secs_f64());
    let dict = PyDict::new(py);
    dict.set_item("engine", to_python(py, &summary.engine)?)?;
    dict.set_item("flows", list(py, summary.flows)?)?;
    dict.set_item("links", list(py, summary.links)?)?;
    dict.set_item("traffic", list(py, summary.traffic)?)?;
    if !summary.switches.is_empty() {
        dict.set_item("switches", list(py, summary.switches)?)?;
    }
    if let Some(deadlock) = &summary.deadlock {
        dict.set_item("deadlock", to_python(py, deadlock)?)?;
    }
    Ok(dict.into_any())
}

/// Converts the entries of a summary to a list. Process signals are handled during the conversion.
fn list<T: Serialize>(py: Python<'_>, entries: Vec<T>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for (i, entry) in entries.into_iter().enumerate() {
        list.append(to_python(py, &entry)?)?;
        if i % 1024 == 0 {
            py.check_signals()?;
        }
    }
    Ok(list)
}

/// Returns the series with the name `flows`, `links` or `traffic`.
fn one_of<'a>(series: [&'a Series; 3], which: &str) -> PyResult<&'a Series> {
    let place = ["flows", "links", "traffic"].iter().position(|&name| name == which);
    place
        .and_then(|place| series.get(place))
        .copied()
        .ok_or_else(|| PyValueError::new_err("must be flows, links or traffic"))
}

/// Converts a table to a dictionary: column → (dtype, little-endian bytes).
fn columns<'py>(py: Python<'py>, series: &Series) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in series.names().iter().zip(series.columns()) {
        let kind = ColumnType::of(name);
        let bytes = match kind {
            ColumnType::U32 => buffer(py, column, |x| (x as u32).to_le_bytes())?,
            ColumnType::U64 => buffer(py, column, |x| (x as u64).to_le_bytes())?,
            ColumnType::F64 => buffer(py, column, f64::to_le_bytes)?,
        };
        dict.set_item(name, (kind.name(), bytes))?;
    }
    Ok(dict)
}

/// Converts a column to a single buffer of `N`-byte numbers.
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

/// Returns a description of every built-in protocol, with its parameters and signals.
#[pyfunction]
fn protocols(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // A program's law has its own name.
    let listed = ProtocolId::ALL.iter().filter(|id| !matches!(id, ProtocolId::Own { .. }));
    let list: Vec<Json> = listed.map(|&id| protocol(id)).collect();
    to_python(py, &list)
}

/// Returns the names of the backends that can run a protocol. The kernel's own TCPs are not included.
fn backends(id: ProtocolId) -> Vec<&'static str> {
    let fluid = (!id.info().needs_packets).then_some("fluid");
    let linux = id.kernel().map(|_| "linux");
    std::iter::once("sim").chain(fluid).chain(linux).collect()
}

fn protocol(id: ProtocolId) -> Json {
    let info = id.info();
    json!({
        "name": info.name,
        "kind": match info.kind { ProtocolKind::Explicit => "explicit", ProtocolKind::EndToEnd => "end-to-end" },
        "backends": backends(id),
        "paced": id.params().paced(),
        "recovery": info.host.retransmission.name(),
        "window_validation": info.host.validation.map(waterfill_laws::protocol::Validation::name),
        "base_rtt": id.info().host.base_rtt.map(|used| json!({
            "window_s": used.window().map(waterfill_laws::units::Duration::as_secs),
            "limits_rate": used.limits_rate(),
        })),
        "header_bytes": id.header_bytes(),
        "echo_bytes": id.echo_bytes(),
        "summary": info.summary,
        "params": id.params_list().iter().map(param).collect::<Vec<_>>(),
        "kernel": id.law().map(|law| json!({
            "number": law.number(),
            "forward_bytes": law.forward_bytes(),
            "echo_bytes": law.echo_bytes(),
            "members": law.params_fields().map(|(name, _, bytes)| json!({"name": name, "bytes": bytes})).collect::<Vec<_>>(),
        })),
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
    let kernel = info.kernel.map(|form| {
        let supported = form.supported(info.unit, &info.default);
        json!({
            "member": form.member_of(info.name),
            "scale": form.scale,
            "min": form.min,
            "max": form.max,
            "supported": supported,
        })
    });
    json!({
        "name": info.name,
        "unit": info.unit.name(),
        "default": default,
        "choices": choices,
        "doc": info.doc,
        "source": info.source,
        "kernel": kernel,
    })
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

/// Converts an estimate to a dictionary.
fn needs<'py>(py: Python<'py>, estimate: &Estimate) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes", estimate.bytes.total)?;
    dict.set_item("bytes_key", &estimate.bytes.key)?;
    dict.set_item("events", estimate.events.total)?;
    dict.set_item("events_key", &estimate.events.key)?;
    dict.set_item("cpu_s", estimate.cpu_s)?;
    Ok(dict)
}

/// Returns the version of the Rust core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
