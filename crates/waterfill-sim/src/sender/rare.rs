//! Parts that few senders have: an application, a demand that changes, bursts.

use std::sync::Arc;

use waterfill_laws::protocol::Event;
use waterfill_laws::units::{Duration, Instant, Volume};
use waterfill_network::DemandCourse;

use super::Sender;
use super::first_flight::FirstFlight;
use super::quantum::PacingQuantum;
use crate::application::Application;
use crate::flow::FlowSetup;

/// Parts that few senders have. They are on the heap, because an idle flow has little space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    /// Demand over time; `None` if it is constant.
    demand: Option<Arc<DemandCourse>>,
    /// Application that writes the data; `None` for one that always has some.
    application: Option<Application>,
    /// Burst in progress, if more than one packet may leave at once.
    quantum: Option<PacingQuantum>,
    /// First flight until its first answer, if the flow has no handshake.
    pub(super) first_flight: Option<FirstFlight>,
    /// Index of the sender whose connection the flow goes on to use at its start.
    pub(super) continues: Option<u32>,
}

impl Rare {
    /// Returns the time at which the application or the changing demand has written a packet, which follows `before`;
    /// `None` without either.
    pub(super) fn written_at(&self, opened: Instant, number: u64, before: Volume) -> Option<Instant> {
        match (&self.application, &self.demand) {
            (Some(application), _) => Some(application.written_at(number)),
            (None, Some(course)) => Some(course.written_at(opened, before)),
            (None, None) => None,
        }
    }

    /// Returns the parts that are left after the first flight, if there are some.
    fn without_first_flight(mut self: Box<Self>) -> Option<Box<Self>> {
        self.first_flight = None;
        self.is_needed().then_some(self)
    }

    const fn is_needed(&self) -> bool {
        let written = self.demand.is_some() || self.application.is_some();
        written || self.quantum.is_some() || self.first_flight.is_some() || self.continues.is_some()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.application.as_ref().map_or(0, Application::heap_bytes)
    }
}

impl Sender {
    /// Removes what the sender keeps for its first flight.
    pub(super) fn forget_first_flight(&mut self) {
        self.rare = self.rare.take().and_then(Rare::without_first_flight);
    }

    /// Adds the parts that a flow asks for. The flows of a group share the `demand` over time.
    pub(crate) fn add_rare(&mut self, setup: &FlowSetup<'_>, demand: Option<&Arc<DemandCourse>>, seed: u64) {
        let flow = setup.spec;
        let rare = Rare {
            first_flight: FirstFlight::new(setup),
            demand: demand.cloned(),
            application: flow.application.as_ref().map(|spec| Application::new(spec, &self.spec, seed)),
            quantum: PacingQuantum::new(flow),
            continues: None,
        };
        if rare.is_needed() {
            self.timed |= rare.application.is_some();
            self.rare = Some(Box::new(rare));
        }
    }

    pub(crate) fn application(&self) -> Option<&Application> {
        self.rare.as_ref().and_then(|rare| rare.application.as_ref())
    }

    fn application_mut(&mut self) -> Option<&mut Application> {
        self.rare.as_mut().and_then(|rare| rare.application.as_mut())
    }

    /// Starts the application when the connection opens.
    pub(super) fn open_application(&mut self, now: Instant) {
        if let Some(application) = self.application_mut() {
            application.open(now);
        }
    }

    /// Returns the size of a packet that leaves now.
    #[inline(never)] // keeps the usual path short
    pub(super) fn on_message_sent(&mut self, number: u64, resent: bool) -> u16 {
        let bytes = self.spec.sizes.bytes_of(number);
        let Some(application) = self.application_mut() else { return bytes };
        let bytes = application.bytes_of(number);
        if !resent {
            application.on_sent(number);
        }
        bytes
    }

    /// Passes an acknowledgement to the application, which the receiver has delayed by `delay`.
    #[inline(never)] // keeps the usual path short
    pub(super) fn on_message_acked(&mut self, now: Instant, delay: Duration) {
        let received = self.echoed.before(delay);
        let una = self.recovery.next() - self.recovery.unacknowledged();
        if let Some(application) = self.application_mut() {
            application.on_acked(now.before(delay), received, una);
        }
    }

    /// Returns the time until the next packet, after one of `bytes` that takes `spacing` at the pacing rate.
    #[inline(never)] // keeps the usual path short
    pub(super) fn wait_for_burst(&mut self, spacing: Duration, bytes: u16) -> Duration {
        let quantum = self.rare.as_mut().and_then(|rare| rare.quantum.as_mut());
        quantum.map_or(spacing, |quantum| quantum.wait(spacing, bytes))
    }

    /// Stops the timer, because all data is acknowledged, and records when the last packet left.
    #[inline(never)] // keeps the usual path short
    pub(super) fn start_pause(&mut self, now: Instant) {
        self.rto_deadline = Instant::NEVER;
        let left = now.before(self.latest_rtt);
        self.limits.start_pause(left);
        if self.timed {
            self.shorten_wait(left);
        }
    }

    /// Shortens the wait for the next packet of a law whose window is below a packet, if its rate has risen since the last
    /// one, which left at `left`. Only the first acknowledgement of that packet can show the rise.
    fn shorten_wait(&mut self, left: Instant) {
        let (limit, bytes) = (self.law.limit(), self.spec.sizes.packet_bytes());
        if let (Some(window), Some(rate)) = (limit.window, limit.pacing)
            && window < Volume::from_bytes(f64::from(bytes))
        {
            self.next_send = self.next_send.min(left + rate.time_for(u32::from(bytes)));
        }
    }

    /// Reports a pause to the law when a packet leaves alone. `[rfc5681:§4.1]` A pause is longer than the timeout.
    pub(super) fn report_pause(&mut self, now: Instant) {
        let timeout = self.rto();
        let pause = now.since(self.limits.end_pause());
        let timeouts = (pause.as_ps() / timeout.as_ps().max(1)).min(Event::IDLE_MAX);
        if timeouts > 0 {
            (0..timeouts).for_each(|_| self.law.on_event(self.clock(now), Event::Idle));
            self.window_packets = self.law_window();
        }
    }
}
