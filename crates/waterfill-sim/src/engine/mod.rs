//! Simulation engine: handles the events of links, hosts and timers in order of time.
//!
//! Reading order: this file (public interface), `build`, `run` (event loop, a packet's path), `order` (flows
//! that follow others), `arrivals` (traffic sources), `sample`, `summary`. There is at most one event per link direction, delay line, access link,
//! flow timer and traffic source, and none per packet in flight, except for packets that a faulty wire delivers out of
//! order. Events of one time are ordered by ranks that the seed draws (see `event`). Nothing allocates per packet: rings and
//! arenas grow to what the network holds and keep that size.

use std::path::Path;
use std::sync::Arc;

use waterfill_laws::registry::ProtocolId;
use waterfill_laws::steps::StepLog;
use waterfill_laws::units::{Duration, Instant};
use waterfill_network::series::ARRIVAL_COLUMNS;
use waterfill_network::{Network, Series, Watch};

use crate::access::AccessLink;
use crate::capture::{Capture, CaptureOptions, CaptureReport};
use crate::delay_line::DelayLine;
use crate::flow::{Flow, Owner};
use crate::link::Link;
use crate::meter::Reading;
use crate::packet::{SackId, Sacks};
use crate::traffic::Traffic;

mod arrivals;
mod build;
mod event;
mod order;
mod parallel;
mod run;
mod sample;
mod summary;

use arrivals::arrival_row;
use event::Events;
use order::Order;
use parallel::Parallel;

/// Packet-level simulation of a network.
#[derive(Debug)]
pub struct Simulation {
    /// The resolved network, which the threads of a run share.
    network: Arc<Network>,
    now: Instant,
    end: Instant,
    /// Start and end of the summary's measurement window.
    measure: (Instant, Instant),
    agenda: Events,
    links: Vec<Link>,
    delay_lines: Vec<DelayLine>,
    access_links: Vec<AccessLink>,
    flows: Vec<Flow>,
    /// Flows that start when others have completed.
    order: Order,
    traffic: Vec<Traffic>,
    sacks: Sacks,
    /// Interval between samples.
    sample: Duration,
    /// Time of the last sample.
    sampled: Instant,
    /// Statistics of each link at the last sample.
    link_readings: Vec<Reading>,
    /// Columns that queue disciplines add to the series of links.
    queue_columns: Vec<&'static str>,
    flow_series: Series,
    link_series: Series,
    traffic_series: Series,
    /// Rows of the traffic sources' finished flows.
    finished: Series,
    events: u64,
    packet_hops: u64,
    ledger: Ledger,
    /// Packet capture in progress, if any.
    capture: Option<Box<Capture>>,
    /// Log of law steps, if enabled.
    steps: Option<StepLog>,
    /// The other threads' parts of the network, if the run has several threads.
    parallel: Option<Box<Parallel>>,
    /// Watch that asks the caller whether the run should stop.
    watch: Watch,
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
        let links = (0u32..).zip(&network.links).map(|(l, spec)| Link::new(l, spec, &network, &watch)).collect();
        let mut sim = Self::unbuilt(Arc::new(network), links, watch);
        sim.build()?;
        Ok(sim)
    }

    /// Returns a simulation with these links and nothing else.
    fn unbuilt(network: Arc<Network>, links: Vec<Link>, watch: Watch) -> Self {
        let measure = (Instant::from_secs(network.measure_s[0]), Instant::from_secs(network.measure_s[1]));
        Self {
            now: Instant::ZERO,
            end: Instant::from_secs(network.duration_s),
            measure,
            agenda: Events::new(network.seed),
            link_readings: vec![Reading::default(); links.len()],
            links,
            delay_lines: Vec::new(),
            access_links: Vec::new(),
            flows: Vec::new(),
            order: Order::default(),
            traffic: Vec::new(),
            sacks: Sacks::default(),
            sample: Duration::from_secs(network.sample_s),
            sampled: Instant::ZERO,
            queue_columns: Vec::new(),
            flow_series: Series::default(),
            link_series: Series::default(),
            traffic_series: Series::default(),
            finished: Series::new(&ARRIVAL_COLUMNS),
            events: 0,
            packet_hops: 0,
            ledger: Ledger::default(),
            capture: None,
            steps: None,
            parallel: None,
            watch,
            network,
        }
    }

    /// Starts recording packets in a file.
    ///
    /// # Errors
    /// One sentence: the file cannot be written.
    pub fn start_capture(&mut self, file: &Path, options: &CaptureOptions) -> Result<(), String> {
        let capture = Capture::new(file, options, &self.network, &self.flows);
        let capture = capture.map_err(|e| format!("{}: cannot write a capture: {e}", file.display()))?;
        self.capture = Some(Box::new(capture));
        Ok(())
    }

    /// Ends the capture and returns its totals, or `None` if no capture was started.
    ///
    /// # Errors
    /// One sentence: the file could not be written.
    pub fn finish_capture(&mut self) -> Result<Option<CaptureReport>, String> {
        let Some(capture) = self.capture.take() else { return Ok(None) };
        capture.finish(self.now).map(Some).map_err(|e| format!("the capture could not be written: {e}"))
    }

    /// Starts logging up to `limit` steps of one law or of all laws. The run then stays on one thread. Flows that
    /// traffic sources start later are not logged.
    pub fn log_steps(&mut self, limit: usize, only: Option<ProtocolId>) {
        let log = StepLog::new(limit, only);
        for (l, link) in (0u32..).zip(&mut self.links) {
            link.log_steps(l, &log);
        }
        for (f, flow) in (0u32..).zip(&mut self.flows) {
            flow.log_steps(f, self.now, &self.network, &log);
        }
        self.steps = Some(log);
    }

    /// Returns the log of steps, if there is one.
    #[must_use]
    pub const fn step_log(&self) -> Option<&StepLog> {
        self.steps.as_ref()
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
        self.events + self.other_parts().iter().map(|part| part.events).sum::<u64>()
    }

    /// Returns the number of packets that have crossed links so far, counted once per link.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.packet_hops + self.other_parts().iter().map(|part| part.packet_hops).sum::<u64>()
    }

    /// Returns the series of flows, links and traffic: one row per sample and entity.
    #[must_use]
    pub const fn series(&self) -> [&Series; 3] {
        [&self.flow_series, &self.link_series, &self.traffic_series]
    }

    /// Returns one row per flow that traffic sources have started: finished flows in order of completion, then open
    /// flows.
    #[must_use]
    pub fn arrivals(&self) -> Series {
        let mut all = self.finished.clone();
        for flow in &self.flows {
            if let Owner::Traffic(t) = flow.owner {
                all.push(&arrival_row(flow, t));
            }
        }
        all
    }

    /// Returns the packet counts so far.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let links = self.links.iter().map(Link::packets);
        let lines = self.delay_lines.iter().map(DelayLine::packets);
        let access = self.access_links.iter().map(|access| access.wire.packets());
        let discarded: usize = self.links.iter().map(|link| link.discarded().len()).sum();
        let own = Ledger {
            dropped: self.ledger.dropped + discarded as u64,
            in_transit: links.chain(lines).chain(access).sum::<usize>() as u64,
            ..self.ledger
        };
        self.other_parts().iter().map(Self::ledger).fold(own, Ledger::plus)
    }

    /// Returns the number of selective acknowledgements in transit, which never exceeds the number of packets in
    /// transit.
    #[must_use]
    pub fn sacks_in_use(&self) -> usize {
        let discarded = self.links.iter().flat_map(Link::discarded).filter(|&&sack| sack != SackId::NONE);
        let own = self.sacks.in_use() - discarded.count();
        own + self.other_parts().iter().map(Self::sacks_in_use).sum::<usize>()
    }

    /// Returns the number of pending events.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.agenda.len() + self.parallel.as_ref().map_or(0, |parallel| parallel.pending())
    }

    /// Returns the heap memory in bytes, first of flows, then of queues and wires.
    #[must_use]
    pub fn heap_bytes(&self) -> (usize, usize) {
        let flows = self.flows.capacity() * size_of::<Flow>();
        let hosts: usize = self.flows.iter().map(|f| f.sender.heap_bytes()).sum();
        let links: usize = self.links.iter().map(Link::heap_bytes).sum();
        let lines: usize = self.delay_lines.iter().map(DelayLine::heap_bytes).sum();
        let access: usize = self.access_links.iter().map(|access| access.wire.heap_bytes()).sum();
        (flows + hosts, links + lines + access)
    }
}
