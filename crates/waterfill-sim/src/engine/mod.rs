//! Simulation engine: handles the events of links, hosts and timers in order of time.
//!
//! Reading order: this file (public interface, and a [`Part`] of the network), `build`, `run` (event loop, a packet's path),
//! `order` (flows that follow others), `routes` (routes that change), `switching` (switches that choose routes), `buffers` (switches whose links share a buffer), `pfc` (switches that drop nothing), `nics` (hosts that send when their link is free), `arrivals` (traffic sources), `record` (samples and the summary's window), `summary`, `parallel`. There is at most one
//! event per link direction, delay line, access link, flow timer and traffic source, and none per packet in flight, except
//! for packets that a faulty wire delivers out of order. Events of one time are ordered by ranks that the seed draws (see
//! `event`). Nothing allocates per packet: rings and arenas grow to what the network holds and keep that size.

use std::path::Path;
use std::sync::Arc;

use waterfill_laws::registry::ProtocolId;
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::Instant;
use waterfill_network::series::{ARRIVAL_COLUMNS, MESSAGE_COLUMNS};
use waterfill_network::{Network, Series, Watch};

use crate::access::AccessLink;
use crate::capture::{Capture, CaptureOptions, CaptureReport};
use crate::delay_line::DelayLine;
use crate::flow::{ReceivingHost, SendingHost, log_steps};
use crate::link::Link;
use crate::packet::{SackId, Sacks};
use crate::qlog::{Qlog, QlogFile, QlogReport};
use crate::traffic::Traffic;

mod arrivals;
mod buffers;
mod build;
mod endpoint;
mod event;
mod nics;
mod order;
mod parallel;
mod pfc;
mod quic;
mod record;
mod routes;
mod run;
mod summary;
mod switching;

use arrivals::{Completed, Started};
use buffers::SharedBuffer;
use endpoint::EndpointFlow;
pub use endpoint::EndpointPair;
use event::Events;
use nics::Nics;
use order::Order;
use parallel::Division;
pub use parallel::Turns;
use pfc::Deadlock;
use record::Record;
use routes::RouteChanges;
use switching::Switches;

/// Packet-level simulation of a network.
#[derive(Debug)]
pub struct Simulation {
    /// The resolved network, which the parts share.
    network: Arc<Network>,
    now: Instant,
    end: Instant,
    /// One part for each thread.
    parts: Vec<Part>,
    /// What crosses between the parts, if there are several.
    division: Division,
    record: Record,
    /// Watch that asks the caller whether the run should stop.
    watch: Watch,
}

/// A part of the network that one thread simulates: links that begin in it, and hosts. With one thread it is the whole
/// network. All indices are those of the part, so nothing on a packet's path depends on other parts.
#[derive(Debug)]
struct Part {
    network: Arc<Network>,
    now: Instant,
    /// Start and end of the summary's measurement window.
    measure: (Instant, Instant),
    agenda: Events,
    /// Links that begin in the part, and the far ends of cut links.
    links: Vec<Link>,
    delay_lines: Vec<DelayLine>,
    access_links: Vec<AccessLink>,
    senders: Vec<SendingHost>,
    receivers: Vec<ReceivingHost>,
    /// Flows that start when others have completed.
    order: Order,
    /// Paths of all packets, one after the other, each with its [end](path::END).
    paths: Arc<[u32]>,
    /// Routes that change during the run.
    routes: RouteChanges,
    /// Switches that choose the links of packets; `None` if all paths are lists of links.
    switches: Option<Box<Switches>>,
    /// Buffers that the links of a switch share.
    buffers: Vec<SharedBuffer>,
    /// Input of each link at the switch at its end, if that switch drops nothing; empty without such switches.
    input_of: Vec<u32>,
    /// The first deadlock that was found.
    deadlock: Option<Deadlock>,
    /// Interfaces of hosts that send when their link is free.
    nics: Nics,
    traffic: Vec<Traffic>,
    sacks: Sacks,
    /// True if links write telemetry into packets of some flow.
    telemetry: bool,
    /// Flows of traffic sources whose sender in this part has finished.
    finished: Vec<Started>,
    /// Completed flows of traffic sources whose receiver in this part has a later flow.
    completed: Vec<Completed>,
    events: u64,
    packet_hops: u64,
    ledger: Ledger,
    /// Flows whose hosts are endpoints.
    endpoints: Vec<EndpointFlow>,
    /// Packet capture in progress, if any.
    capture: Option<Box<Capture>>,
    /// Logs of flows, if enabled.
    qlog: Option<Box<Qlog>>,
    /// Log of law steps, if enabled.
    steps: Option<StepLog>,
    watch: Watch,
}

/// Entries of a list of paths that are not links. A link is given by its index in the part where it begins.
mod path {
    /// End of a path, at a host.
    pub(super) const END: u32 = u32::MAX;
    /// Flag of a delay line, which ends a path: the other bits are its index.
    pub(super) const DELAY_LINE: u32 = 1 << 31;
    /// Flag of a destination, to which switches choose the links: the other bits are its index. Smaller entries are links.
    pub(super) const SWITCHED: u32 = 1 << 30;
    /// Number that stands for all routes among the links that change.
    pub(super) const ROUTES: u32 = u32::MAX;

    /// Returns the number of links before this place of its path. Every path ends with an entry that is not a link.
    pub(super) fn hop(paths: &[u32], place: u32) -> usize {
        paths[..place as usize].iter().rev().take_while(|&&before| before < SWITCHED).count()
    }

    /// Returns the index of the destination of a path that switches choose.
    pub(super) fn destination(paths: &[u32], place: u32) -> Option<u32> {
        let entry = paths[place as usize + 1];
        (SWITCHED..DELAY_LINE).contains(&entry).then_some(entry & !SWITCHED)
    }
}

/// Packet counts of a run. `sent` + `duplicated` always equals the sum of the other counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets sent by hosts and traffic sources.
    pub sent: u64,
    /// Packet copies made on wires that deliver packets twice.
    pub duplicated: u64,
    /// Packets delivered at the end of their path.
    pub delivered: u64,
    /// Packets dropped by queues.
    pub dropped: u64,
    /// Packets lost on wires.
    pub lost: u64,
    /// Packets in queues and on wires.
    pub in_transit: u64,
}

impl Ledger {
    const fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            duplicated: self.duplicated + other.duplicated,
            delivered: self.delivered + other.delivered,
            dropped: self.dropped + other.dropped,
            lost: self.lost + other.lost,
            in_transit: self.in_transit + other.in_transit,
        }
    }
}

impl Simulation {
    /// Builds the simulation of a network.
    ///
    /// # Errors
    /// One sentence: what of the network is missing or out of range.
    pub fn new(network: Network) -> Result<Self, String> {
        Self::watched(network, Watch::default())
    }

    /// Builds the simulation of a network. `watch` can stop both the build and the run, which then keeps the state
    /// reached.
    ///
    /// # Errors
    /// One sentence: what of the network is missing or out of range, or that building was stopped.
    pub fn watched(network: Network, watch: Watch) -> Result<Self, String> {
        let network = Arc::new(network);
        let mut part = Part::empty(&network, &watch);
        part.build()?;
        part.start_agenda();
        let record = Record::new(&part);
        let end = Instant::from_secs(network.duration_s);
        Ok(Self { network, now: Instant::ZERO, end, parts: vec![part], division: Division::default(), record, watch })
    }

    /// Starts recording packets in a file.
    ///
    /// # Errors
    /// One sentence: the file cannot be written.
    pub fn start_capture(&mut self, file: &Path, options: &CaptureOptions) -> Result<(), String> {
        let part = &mut self.parts[0];
        if !part.endpoints.is_empty() {
            return Err("a run with endpoints cannot be captured".into());
        }
        let capture = Capture::new(file, options, &self.network, &part.senders);
        let capture = capture.map_err(|e| format!("{}: cannot write a capture: {e}", file.display()))?;
        part.capture = Some(Box::new(capture));
        Ok(())
    }

    /// Ends the capture and returns its totals, or `None` if no capture was started.
    ///
    /// # Errors
    /// One sentence: the file could not be written.
    pub fn finish_capture(&mut self) -> Result<Option<CaptureReport>, String> {
        let Some(capture) = self.parts[0].capture.take() else { return Ok(None) };
        capture.finish(self.now).map(Some).map_err(|e| format!("the capture could not be written: {e}"))
    }

    /// Starts logging flows as qlog. The files together end after about `limit_bytes`. The run then stays on one thread.
    ///
    /// # Errors
    /// One sentence: a file cannot be written.
    pub fn start_qlog(&mut self, files: &[QlogFile], limit_bytes: u64) -> Result<(), String> {
        let qlog = Qlog::new(files, limit_bytes).map_err(|e| format!("cannot write the logs: {e}"))?;
        self.parts[0].qlog = Some(Box::new(qlog));
        Ok(())
    }

    /// Ends the logs and returns their totals, or `None` if there are none.
    ///
    /// # Errors
    /// One sentence: a file could not be written.
    pub fn finish_qlog(&mut self) -> Result<Option<QlogReport>, String> {
        let Some(qlog) = self.parts[0].qlog.take() else { return Ok(None) };
        qlog.finish().map(Some).map_err(|e| format!("the logs could not be written: {e}"))
    }

    /// Starts logging up to `limit` steps of one law or of all laws. The run then stays on one thread. Flows that
    /// traffic sources start later are not logged.
    pub fn log_steps(&mut self, limit: usize, only: Option<ProtocolId>) {
        let log = StepLog::new(limit, only);
        let (part, now) = (&mut self.parts[0], self.now);
        for (l, link) in (0u32..).zip(&mut part.links) {
            link.log_steps(l, &log);
        }
        for (f, (sending, receiving)) in (0u32..).zip(part.senders.iter_mut().zip(&mut part.receivers)) {
            log_steps((f, sending, receiving), now, &self.network, &log);
        }
        part.steps = Some(log);
    }

    /// Returns the log of steps, if there is one.
    #[must_use]
    pub fn step_log(&self) -> Option<&StepLog> {
        self.parts[0].steps.as_ref()
    }

    /// Returns the current simulated time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the length of the run.
    #[must_use]
    pub const fn end(&self) -> Instant {
        self.end
    }

    /// Returns the number of events handled so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.record.events + self.parts.iter().map(|part| part.events).sum::<u64>()
    }

    /// Returns the number of packets that have crossed links so far, counted once per link.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.parts.iter().map(|part| part.packet_hops).sum()
    }

    /// Returns the series of flows, links and traffic: one row per sample and entity.
    #[must_use]
    pub const fn series(&self) -> [&Series; 3] {
        self.record.series()
    }

    /// Returns one row per flow that traffic sources have started: finished flows in order of completion, then open
    /// flows.
    #[must_use]
    pub fn arrivals(&self) -> Series {
        let mut rows = Series::new(&ARRIVAL_COLUMNS);
        for arrival in self.all_arrivals() {
            rows.push(&arrival.row());
        }
        rows
    }

    /// Returns one row per message that applications have written so far, by flow and in their order.
    #[must_use]
    pub fn messages(&self) -> Series {
        let mut rows = Series::new(&MESSAGE_COLUMNS);
        for (flow, sender) in self.group_senders().enumerate() {
            let Some(application) = sender.application() else { continue };
            for (index, [written_s, size_bytes, completed_s]) in application.rows(self.now).enumerate() {
                rows.push(&[flow as f64, index as f64, written_s, size_bytes, completed_s]);
            }
        }
        rows
    }

    /// Returns the packet counts so far.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.parts.iter().map(Part::ledger).fold(Ledger::default(), Ledger::plus)
    }

    /// Returns the number of selective acknowledgements in transit, which never exceeds the number of packets in
    /// transit.
    #[must_use]
    pub fn sacks_in_use(&self) -> usize {
        self.parts.iter().map(Part::sacks_in_use).sum()
    }

    /// Returns the number of pending events.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.record.pending() + self.parts.iter().map(|part| part.agenda.len()).sum::<usize>()
    }

    /// Returns the heap memory in bytes, first of flows, then of queues and wires.
    #[must_use]
    pub fn heap_bytes(&self) -> (usize, usize) {
        let both = self.parts.iter().map(Part::heap_bytes);
        both.fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1))
    }
}

impl Part {
    /// Returns a part of a network without links and hosts.
    fn empty(network: &Arc<Network>, watch: &Watch) -> Self {
        Self {
            now: Instant::ZERO,
            measure: (Instant::from_secs(network.measure_s[0]), Instant::from_secs(network.measure_s[1])),
            agenda: Events::new(network.seed),
            links: Vec::new(),
            delay_lines: Vec::new(),
            access_links: Vec::new(),
            senders: Vec::new(),
            receivers: Vec::new(),
            order: Order::default(),
            paths: Arc::default(),
            routes: RouteChanges::default(),
            switches: None,
            buffers: Vec::new(),
            input_of: Vec::new(),
            deadlock: None,
            nics: Nics::default(),
            traffic: Vec::new(),
            sacks: Sacks::default(),
            telemetry: false,
            finished: Vec::new(),
            completed: Vec::new(),
            events: 0,
            packet_hops: 0,
            ledger: Ledger::default(),
            endpoints: Vec::new(),
            capture: None,
            qlog: None,
            steps: None,
            watch: watch.clone(),
            network: Arc::clone(network),
        }
    }

    fn ledger(&self) -> Ledger {
        let links = self.links.iter().map(Link::packets);
        let lines = self.delay_lines.iter().map(DelayLine::packets);
        let access = self.access_links.iter().map(|access| access.wire.packets());
        let discarded: usize = self.links.iter().map(|link| link.discarded().len()).sum();
        Ledger {
            dropped: self.ledger.dropped + discarded as u64,
            in_transit: links.chain(lines).chain(access).sum::<usize>() as u64,
            ..self.ledger
        }
    }

    fn sacks_in_use(&self) -> usize {
        let discarded = self.links.iter().flat_map(Link::discarded).filter(|&&sack| sack != SackId::NONE);
        self.sacks.in_use() - discarded.count()
    }

    fn heap_bytes(&self) -> (usize, usize) {
        let senders = self.senders.capacity() * size_of::<SendingHost>();
        let receivers = self.receivers.capacity() * size_of::<ReceivingHost>();
        let hosts: usize = self.senders.iter().map(|host| host.sender.heap_bytes()).sum();
        let links: usize = self.links.iter().map(Link::heap_bytes).sum();
        let lines: usize = self.delay_lines.iter().map(DelayLine::heap_bytes).sum();
        let access: usize = self.access_links.iter().map(|access| access.wire.heap_bytes()).sum();
        (senders + receivers + hosts, links + lines + access)
    }
}
