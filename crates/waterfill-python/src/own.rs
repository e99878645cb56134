//! Laws written in Python, which the simulator calls like the laws in Rust.
//!
//! A run has a table of them by name. It releases the interpreter's lock, and each call takes it again. An exception of a
//! law is kept with the law's name. No law is called after that, and `advance` raises the exception.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use waterfill_laws::protocol::{
    Ack, Connection, Ecn, Event, Host, LinkView, PacketKind, Passing, Probe, Received, Reduction, SendLimit, Sending,
};
use waterfill_laws::protocols::own::{FIELDS, Fields, Laws, Measured, Provider, ReceiverLaw, RouterLaw, SourceLaw};
use waterfill_laws::units::{Instant, Rate, Volume};

/// Maximum number of timers, or of packets sent without a limit, at one instant. A law that exceeds this number is
/// stuck at the instant.
const MAX_AT_ONE_INSTANT: u32 = 100_000;
/// Attribute of an exception that has the name of the law that raised it.
const RAISED_BY: &str = "__waterfill_law__";
/// Maximum number of characters of a returned value that a message shows.
const MAX_SHOWN: usize = 60;

/// Exception that a law of a run has raised.
#[derive(Default)]
pub(crate) struct Failure {
    raised: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Failure {
    /// Returns the stored exception of the law as an error, once. Without an exception, the result is `Ok`.
    pub(crate) fn check(&self) -> PyResult<()> {
        if !self.raised.load(Ordering::Acquire) {
            return Ok(());
        }
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Calls Python for a law with the GIL held. Returns `None` if this call or an earlier call raised an exception.
    fn call<T>(&self, law: &str, f: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.raised.load(Ordering::Acquire) {
            return None;
        }
        Python::attach(|py| f(py).inspect_err(|error| _ = error.value(py).setattr(RAISED_BY, law)))
            .map_err(|error| {
                *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                self.raised.store(true, Ordering::Release);
            })
            .ok()
    }
}

/// Names of a header's fields, in order.
type Names = Arc<[String]>;

/// Header or echo, with numbers under the law's own names. The numbers have single precision on the wire.
#[pyclass(name = "Header")]
struct Header {
    names: Names,
    values: [f32; FIELDS],
}

impl Header {
    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }

    fn set(&mut self, name: &str, value: f64) -> PyResult<()> {
        let place = self.place(name).ok_or_else(|| {
            let own = if self.names.is_empty() { "none".to_string() } else { self.names.join(", ") };
            PyAttributeError::new_err(format!("the header has no field {name:?}; known: {own}"))
        })?;
        if value.is_nan() {
            return Err(PyValueError::new_err(format!("the header's field {name:?} is not a number")));
        }
        if let Some(field) = self.values.get_mut(place) {
            *field = value as f32;
        }
        Ok(())
    }
}

#[pymethods]
impl Header {
    fn __getattr__(&self, name: &str) -> PyResult<f64> {
        let missing = || PyAttributeError::new_err(format!("the header has no field {name:?}"));
        self.place(name).and_then(|place| self.values.get(place)).map(|&value| f64::from(value)).ok_or_else(missing)
    }

    fn __setattr__(&mut self, name: &str, value: f64) -> PyResult<()> {
        self.set(name, value)
    }

    fn __repr__(&self) -> String {
        let fields: Vec<_> =
            self.names.iter().zip(self.values).map(|(name, value)| format!("{name}={value}")).collect();
        format!("Header({})", fields.join(", "))
    }
}

/// Link direction, as a router law sees it.
#[pyclass(frozen, get_all, name = "Link")]
struct Link {
    id: u32,
    capacity_bps: f64,
    target: Option<f64>,
    queue_bytes: f64,
    params: Py<PyAny>,
}

/// Packet that passes a router. `header` is None for a packet of another protocol.
#[pyclass(frozen, get_all, name = "Passing")]
struct Packet {
    now_s: f64,
    bytes: f64,
    packets: f64,
    kind: &'static str,
    header: Option<Py<Header>>,
}

/// Packet at its receiver.
#[pyclass(frozen, get_all, name = "Received")]
struct Arrived {
    now_s: f64,
    kind: &'static str,
    header: Py<Header>,
    rtt_s: Option<f64>,
}

/// Packet about to be sent.
#[pyclass(frozen, get_all, name = "Sending")]
struct Leaving {
    now_s: f64,
    kind: &'static str,
    bytes: f64,
    in_flight_bytes: f64,
    app_limited: bool,
}

/// Acknowledgement at its source.
#[pyclass(frozen, get_all, name = "Ack")]
struct Acknowledged {
    now_s: f64,
    echo: Py<Header>,
    kind: &'static str,
    acked_bytes: f64,
    marked_bytes: f64,
    rtt_s: Option<f64>,
    smoothed_rtt_s: f64,
    base_rtt_s: f64,
    in_flight_bytes: f64,
    recovering: bool,
    window_limited: bool,
    lost_bytes: f64,
    delivered_bytes: f64,
    delivery_rate_bps: Option<f64>,
    app_limited: bool,
    round: u64,
    sent_s: Option<f64>,
    sent_in_flight_bytes: Option<f64>,
    sent_delivered_bytes: Option<f64>,
    sent_lost_bytes: Option<f64>,
}

/// Connection, as a source law sees it.
#[pyclass(frozen, get_all, name = "Connection")]
struct Opened {
    weight: f64,
    packet_bytes: f64,
    initial_window_bytes: f64,
    claimed_rtt_s: Option<f64>,
    seed: u64,
    params: Py<PyAny>,
}

const fn kind(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Syn => "syn",
        PacketKind::Data => "data",
        PacketKind::Ack => "ack",
        PacketKind::Other => "other",
    }
}

const fn event(event: Event) -> &'static str {
    match event {
        Event::Loss => "loss",
        Event::Timeout => "timeout",
        Event::Marked => "marked",
        Event::Recovered => "recovered",
        Event::SynsLost => "syns_lost",
        Event::Spurious => "spurious",
        Event::Idle => "idle",
    }
}

/// Returns the error for a call that did not return `wanted`.
fn wrong(call: &str, wanted: &str, returned: &Bound<'_, PyAny>) -> PyErr {
    // The value's own notation is the law's code, and may raise.
    let text = returned.repr().map(|repr| repr.to_string_lossy().into_owned());
    let text = text.or_else(|_| returned.get_type().name().map(|name| name.to_string_lossy().into_owned()));
    let text = text.unwrap_or_default();
    let shown: String = text.chars().take(MAX_SHOWN).collect();
    let cut = if shown.len() < text.len() { "…" } else { "" };
    PyTypeError::new_err(format!("{call}: must return {wanted}, got {shown}{cut}"))
}

/// Python classes of a law.
struct PythonLaw {
    router: Option<Py<PyAny>>,
    receiver: Option<Py<PyAny>>,
    source: Py<PyAny>,
    target: f64,
    paced: bool,
    host: Host,
    shared: Shared,
}

/// State shared by router, receiver and source of a law.
#[derive(Clone)]
struct Shared {
    law: Arc<str>,
    names: Names,
    signals: Names,
    /// Values of the law's parameters.
    params: Arc<Py<PyAny>>,
    failure: Arc<Failure>,
}

/// Reads a run's laws: a dictionary from their names to objects with the attributes of `waterfill.runs.laws.BoundLaw`.
/// Returns the laws with the store for exceptions that they raise.
pub(crate) fn table(laws: &Bound<'_, PyDict>) -> PyResult<(Laws, Arc<Failure>)> {
    let (mut table, failure) = (Laws::default(), Arc::<Failure>::default());
    for (name, law) in laws {
        let name: String = name.extract()?;
        let law = PythonLaw::new(&name, &law, &failure)?;
        table.add(name, Arc::new(law)).map_err(|error| PyValueError::new_err(error.to_string()))?;
    }
    Ok((table, failure))
}

impl PythonLaw {
    fn new(name: &str, law: &Bound<'_, PyAny>, failure: &Arc<Failure>) -> PyResult<Self> {
        let class = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            let found = law.getattr(name)?;
            Ok(if found.is_none() { None } else { Some(found.unbind()) })
        };
        let names: Vec<String> = law.getattr("header")?.extract()?;
        if names.len() > FIELDS {
            return Err(PyValueError::new_err(format!("a header has at most {FIELDS} fields, got {}", names.len())));
        }
        let signals: Vec<String> = law.getattr("signals")?.extract()?;
        Ok(Self {
            router: class("router")?,
            receiver: class("receiver")?,
            source: class("source")?.ok_or_else(|| PyValueError::new_err("no source class"))?,
            target: law.getattr("target")?.extract()?,
            paced: law.getattr("paced")?.extract()?,
            host: host(law)?,
            shared: Shared {
                law: name.into(),
                names: names.into(),
                signals: signals.into(),
                params: Arc::new(law.getattr("params")?.unbind()),
                failure: Arc::clone(failure),
            },
        })
    }
}

/// Returns the duties of the host that runs a law.
fn host(law: &Bound<'_, PyAny>) -> PyResult<Host> {
    let (ecn, reduction): (String, String) = (law.getattr("ecn")?.extract()?, law.getattr("reduction")?.extract()?);
    Ok(Host {
        ecn: match ecn.as_str() {
            "off" => Ecn::Off,
            "classic" => Ecn::Classic,
            "accurate" => Ecn::Accurate,
            "l4s" => Ecn::Counted,
            _ => return Err(PyValueError::new_err(format!("ecn: must be off, classic, accurate or l4s, got {ecn}"))),
        },
        l4s: ecn == "l4s",
        reduction: match reduction.as_str() {
            "law" => Reduction::Law,
            "proportional" => Reduction::Proportional,
            _ => return Err(PyValueError::new_err(format!("reduction: must be law or proportional, got {reduction}"))),
        },
        ..Host::EXPLICIT
    })
}

impl Shared {
    fn header(&self, py: Python<'_>, fields: Fields) -> PyResult<Py<Header>> {
        Py::new(py, Header { names: Arc::clone(&self.names), values: fields })
    }

    fn link(&self, py: Python<'_>, view: &LinkView) -> Link {
        Link {
            id: view.id,
            capacity_bps: view.capacity.as_bps(),
            target: view.target,
            queue_bytes: view.queue.as_bytes(),
            params: self.params.clone_ref(py),
        }
    }

    /// Converts the header that `call` returns: a dictionary by name, a header, or None for zeros.
    fn fields(&self, call: &str, returned: &Bound<'_, PyAny>) -> PyResult<Fields> {
        if returned.is_none() {
            return Ok(Fields::default());
        }
        if let Ok(header) = returned.cast::<Header>() {
            return Ok(header.borrow().values);
        }
        let wrong = || wrong(call, "a dictionary of the header's fields and their numbers, or None", returned);
        let given = returned.cast::<PyDict>().map_err(|_| wrong())?;
        let mut header = Header { names: Arc::clone(&self.names), values: [0.0; FIELDS] };
        for (name, value) in given {
            let value = value.extract().map_err(|_| wrong())?;
            header.set(name.cast::<PyString>().map_err(|_| wrong())?.to_str()?, value)?;
        }
        Ok(header.values)
    }

    /// Creates a router, receiver or source from its class. If the class raises, the result has no object.
    fn end(&self, class: &Py<PyAny>, argument: impl FnOnce(Python<'_>) -> PyResult<Option<Py<PyAny>>>) -> End {
        let object = self.failure.call(&self.law, |py| match argument(py)? {
            Some(argument) => class.call1(py, (argument,)),
            None => class.call0(py),
        });
        let has =
            |name| self.failure.call(&self.law, |py| object.as_ref().map_or(Ok(false), |o| o.bind(py).hasattr(name)));
        End {
            timed: has("poll_at").unwrap_or(false),
            stamps: has("stamp").unwrap_or(false),
            events: has("on_event").unwrap_or(false),
            losses: has("on_lost").unwrap_or(false),
            observed: !self.signals.is_empty() && has("observe").unwrap_or(false),
            object,
            shared: self.clone(),
            unlimited: AtomicBool::new(false),
            instant: Instants::default(),
        }
    }
}

/// Counter of calls at one instant.
#[derive(Default)]
struct Instants {
    /// Instant of the counted calls, as the bit pattern of its time in seconds.
    at: AtomicU64,
    count: AtomicU32,
}

impl Instants {
    /// Counts one more call at `now`. Returns true if there are too many calls at this instant.
    fn exceeded(&self, now: Instant) -> bool {
        let now = now.as_secs().to_bits();
        if self.at.swap(now, Ordering::Relaxed) != now {
            self.count.store(0, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed) >= MAX_AT_ONE_INSTANT
    }
}

/// Router, receiver or source of a law: a Python object, or nothing if its creation raised an exception.
#[expect(clippy::struct_excessive_bools, reason = "one for each optional call of the object")]
struct End {
    object: Option<Py<PyAny>>,
    timed: bool,
    stamps: bool,
    events: bool,
    losses: bool,
    observed: bool,
    shared: Shared,
    /// True if the law's last limit set neither a window nor a rate.
    unlimited: AtomicBool,
    /// Counter of the timers, or of the packets sent, at one instant.
    instant: Instants,
}

impl End {
    fn call<T>(&self, f: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        self.shared.failure.call(&self.shared.law, |py| f(py, object.bind(py)))
    }

    /// Records the signals that the object's `observe` returns: a dictionary by name.
    fn record(&self, probe: &mut dyn Probe) {
        if !self.observed {
            return;
        }
        let recorded = self.call(|_, law| {
            let returned = law.call_method0(intern!(law.py(), "observe"))?;
            let wrong = || wrong("observe", "a dictionary of the law's signals and their numbers", &returned);
            let given = returned.cast::<PyDict>().map_err(|_| wrong())?;
            let mut found = Vec::with_capacity(given.len());
            for (name, value) in given {
                let (name, value): (String, f64) =
                    (name.extract().map_err(|_| wrong())?, value.extract().map_err(|_| wrong())?);
                if !self.shared.signals.contains(&name) {
                    let known = self.shared.signals.join(", ");
                    return Err(PyValueError::new_err(format!("observe: unknown signal {name:?}; known: {known}")));
                }
                found.push((name, value));
            }
            Ok(found)
        });
        for (name, value) in recorded.unwrap_or_default() {
            probe.record(&name, value);
        }
    }

    /// Returns a copy of the router, receiver or source with separate state.
    fn copy(&self) -> Self {
        let copy = |py: Python<'_>, object: &Bound<'_, PyAny>| {
            Ok(py.import("copy")?.call_method1("deepcopy", (object,))?.unbind())
        };
        Self {
            object: self.call(copy),
            timed: self.timed,
            stamps: self.stamps,
            events: self.events,
            losses: self.losses,
            observed: self.observed,
            shared: self.shared.clone(),
            unlimited: AtomicBool::new(self.unlimited.load(Ordering::Relaxed)),
            instant: Instants::default(),
        }
    }
}

impl Provider for PythonLaw {
    fn target(&self) -> f64 {
        self.target
    }
    fn paced(&self) -> bool {
        self.paced
    }
    fn host(&self) -> Host {
        self.host
    }
    fn has_header(&self) -> bool {
        self.router.is_some() || !self.shared.names.is_empty()
    }
    fn signals(&self) -> &[String] {
        &self.shared.signals
    }
    fn router(&self, link: &LinkView) -> Option<Box<dyn RouterLaw>> {
        let class = self.router.as_ref()?;
        Some(Box::new(self.shared.end(class, |py| Ok(Some(Py::new(py, self.shared.link(py, link))?.into_any())))))
    }
    fn receiver(&self) -> Option<Box<dyn ReceiverLaw>> {
        // A receiver without parameters takes no argument.
        let params = |py: Python<'_>| {
            let params = self.shared.params.bind(py);
            Ok(if params.is_none() { None } else { Some(params.clone().unbind()) })
        };
        Some(Box::new(self.shared.end(self.receiver.as_ref()?, params)))
    }
    fn source(&self, connection: &Connection) -> Box<dyn SourceLaw> {
        let opened = |py: Python<'_>| Opened {
            weight: connection.weight,
            packet_bytes: connection.packet.as_bytes(),
            initial_window_bytes: connection.initial_window.as_bytes(),
            claimed_rtt_s: connection.claimed_rtt.map(waterfill_laws::units::Duration::as_secs),
            seed: connection.seed,
            params: self.shared.params.clone_ref(py),
        };
        Box::new(self.shared.end(&self.source, |py| Ok(Some(Py::new(py, opened(py))?.into_any()))))
    }
}

impl RouterLaw for End {
    fn on_arrival(&mut self, link: &LinkView, passing: &mut Passing<'_, Fields>) {
        let written = self.call(|py, law| {
            let header = passing.header.as_deref().map(|fields| self.shared.header(py, *fields)).transpose()?;
            let packet = Packet {
                now_s: passing.now.as_secs(),
                bytes: passing.volume.as_bytes(),
                packets: passing.packets,
                kind: kind(passing.kind),
                header: header.as_ref().map(|header| header.clone_ref(py)),
            };
            law.call_method1(intern!(law.py(), "on_arrival"), (self.shared.link(py, link), packet))?;
            Ok(header.map(|header| header.borrow(py).values))
        });
        if let (Some(Some(written)), Some(header)) = (written, passing.header.as_deref_mut()) {
            *header = written;
        }
    }
    fn poll_at(&self) -> Instant {
        if !self.timed {
            return Instant::NEVER;
        }
        let at_s = self.call(|_, law| {
            let returned = law.call_method0(intern!(law.py(), "poll_at"))?;
            returned.extract::<Option<f64>>().map_err(|_| wrong("poll_at", "a time (s) or None", &returned))
        });
        at_s.flatten().filter(|at_s| at_s.is_finite()).map_or(Instant::NEVER, Instant::from_secs)
    }
    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        if self.instant.exceeded(now) {
            self.call(|_, law| -> PyResult<()> {
                let problem = "poll_at: must be later than now after on_timer";
                let at = law.call_method0(intern!(law.py(), "poll_at"))?;
                let now_s = now.as_secs();
                Err(PyValueError::new_err(format!("{problem}, got {at} at {now_s} s, {MAX_AT_ONE_INSTANT} times")))
            });
        }
        self.call(|py, law| {
            law.call_method1(intern!(law.py(), "on_timer"), (self.shared.link(py, link), now.as_secs())).map(drop)
        });
    }
    fn observe(&self, probe: &mut dyn Probe) {
        self.record(probe);
    }
    fn boxed(&self) -> Box<dyn RouterLaw> {
        Box::new(self.copy())
    }
}

impl ReceiverLaw for End {
    fn on_data(&mut self, received: &Received<Fields>) {
        self.call(|py, law| {
            let arrived = Arrived {
                now_s: received.now.as_secs(),
                kind: kind(received.kind),
                header: self.shared.header(py, received.header)?,
                rtt_s: received.rtt.map(waterfill_laws::units::Duration::as_secs),
            };
            law.call_method1(intern!(law.py(), "on_data"), (arrived,)).map(drop)
        });
    }
    fn echo(&mut self, now: Instant) -> Fields {
        let echo = self
            .call(|_, law| self.shared.fields("echo", &law.call_method1(intern!(law.py(), "echo"), (now.as_secs(),))?));
        echo.unwrap_or_default()
    }
    fn boxed(&self) -> Box<dyn ReceiverLaw> {
        Box::new(self.copy())
    }
}

impl SourceLaw for End {
    fn stamp(&mut self, sending: &Sending) -> Fields {
        if self.unlimited.load(Ordering::Relaxed) && self.instant.exceeded(sending.now) {
            self.call(|_, _| -> PyResult<()> {
                let problem = "limit: a source with more to send needs a window or a rate";
                let got = format!("got None and None, and {MAX_AT_ONE_INSTANT} packets at one instant");
                Err(PyValueError::new_err(format!("{problem}, {got}")))
            });
        }
        if !self.stamps {
            return Fields::default();
        }
        let leaving = Leaving {
            now_s: sending.now.as_secs(),
            kind: kind(sending.kind),
            bytes: sending.volume.as_bytes(),
            in_flight_bytes: sending.in_flight.as_bytes(),
            app_limited: sending.app_limited,
        };
        self.call(|_, law| self.shared.fields("stamp", &law.call_method1(intern!(law.py(), "stamp"), (leaving,))?))
            .unwrap_or_default()
    }
    fn on_ack(&mut self, ack: &Ack<Fields>, measured: &Measured) {
        self.call(|py, law| {
            let acknowledged = Acknowledged {
                now_s: ack.now.as_secs(),
                echo: self.shared.header(py, ack.echo)?,
                kind: kind(ack.kind),
                acked_bytes: ack.acked.as_bytes(),
                marked_bytes: ack.marked.as_bytes(),
                rtt_s: ack.rtt.map(waterfill_laws::units::Duration::as_secs),
                smoothed_rtt_s: ack.smoothed_rtt.as_secs(),
                base_rtt_s: ack.base_rtt.as_secs(),
                in_flight_bytes: ack.in_flight.as_bytes(),
                recovering: ack.recovering,
                window_limited: ack.window_limited,
                lost_bytes: measured.lost.as_bytes(),
                delivered_bytes: measured.delivered.as_bytes(),
                delivery_rate_bps: measured.rate.map(Rate::as_bps),
                app_limited: measured.app_limited,
                round: measured.round,
                sent_s: measured.sent.map(|sent| sent.at.as_secs()),
                sent_in_flight_bytes: measured.sent.map(|sent| sent.in_flight.as_bytes()),
                sent_delivered_bytes: measured.sent.map(|sent| sent.delivered.as_bytes()),
                sent_lost_bytes: measured.sent.map(|sent| sent.lost.as_bytes()),
            };
            law.call_method1(intern!(law.py(), "on_ack"), (acknowledged,)).map(drop)
        });
    }
    fn on_lost(&mut self, now: Instant, sent: Instant) {
        if self.losses {
            self.call(|_, law| {
                law.call_method1(intern!(law.py(), "on_lost"), (now.as_secs(), sent.as_secs())).map(drop)
            });
        }
    }
    fn on_event(&mut self, now: Instant, what: Event) {
        if self.events {
            self.call(|_, law| law.call_method1(intern!(law.py(), "on_event"), (now.as_secs(), event(what))).map(drop));
        }
    }
    fn on_idle_restart(&mut self, now: Instant) {
        if self.events {
            self.call(|_, law| {
                law.call_method1(intern!(law.py(), "on_event"), (now.as_secs(), "idle_restart")).map(drop)
            });
        }
    }
    fn limit(&self) -> SendLimit {
        let limit = self.call(|_, law| {
            let returned = law.call_method0(intern!(law.py(), "limit"))?;
            let wanted = "a window (bytes) and a rate (bit/s), each a finite number not below zero or None";
            let (window, pacing) =
                returned.extract::<(Option<f64>, Option<f64>)>().map_err(|_| wrong("limit", wanted, &returned))?;
            let valid = |number: Option<f64>| number.is_none_or(|number| number >= 0.0 && number.is_finite());
            if !valid(window) || !valid(pacing) {
                return Err(wrong("limit", wanted, &returned));
            }
            self.unlimited.store(window.is_none() && pacing.is_none(), Ordering::Relaxed);
            Ok(SendLimit { window: window.map(Volume::from_bytes), pacing: pacing.map(Rate::from_bps) })
        });
        // A law that raised sends no more; the run ends at its next slice.
        limit.unwrap_or(SendLimit { window: Some(Volume::ZERO), pacing: None })
    }
    fn observe(&self, probe: &mut dyn Probe) {
        self.record(probe);
    }
    fn boxed(&self) -> Box<dyn SourceLaw> {
        Box::new(self.copy())
    }
}
