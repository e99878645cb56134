//! Receiver and source of a law in kernel arithmetic, for the simulator.

use super::host::Host;
use super::{
    Arithmetic, KernelLaw, KernelLimit, KernelProtocol, RunsInKernel, Tcp, Value, Words, clock_us, scaled, span_us,
    whole_bytes,
};
use crate::protocol::{Ack, Connection, Event, PacketKind, Probe, Received, SendLimit, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Rate, Volume};

/// Receiver of a law in kernel arithmetic.
#[derive(Clone, Debug)]
pub struct Receiver {
    law: &'static KernelLaw,
    params: Words,
    state: Words,
}

impl Receiver {
    /// Creates the receiver of one connection.
    #[must_use]
    pub fn new<P: RunsInKernel>(params: &P::Params) -> Self {
        let law = P::law();
        Self { law, params: law.params(&P::numbers(params, 1.0)), state: law.receiver() }
    }

    /// Returns the law's C functions.
    #[must_use]
    pub const fn law(&self) -> &'static KernelLaw {
        self.law
    }

    /// Processes a received packet.
    pub fn on_data(&mut self, received: &Received<Value>) {
        let rtt_us = received.rtt.map_or(0, span_us);
        self.law.receive(&self.params, &mut self.state, clock_us(received.now), rtt_us, &received.header, 1);
    }

    /// Returns the value that the next acknowledgement carries.
    #[must_use]
    pub fn echo(&mut self) -> Value {
        self.law.echo(&mut self.state)
    }

    /// Lists the receiver's state for step logs.
    pub fn state(&self, fields: &mut StateFields) {
        fields.put_words("params", self.params.words());
        fields.put_words("receiver", self.state.words());
    }
}

/// Source of a law in kernel arithmetic.
///
/// The source calls the law for every acknowledgement, unless the host's program decides otherwise. A claimed RTT
/// replaces the smoothed RTT of the law.
#[derive(Clone, Debug)]
pub struct Source {
    form: &'static KernelProtocol,
    law: &'static KernelLaw,
    params: Words,
    state: Words,
    tcp: Tcp,
    /// Acknowledged bytes that do not yet add up to a whole packet.
    acked: Volume,
    /// Factor that scales the law's rate and window: the connection's weight, or 1 if the law's parameters contain the
    /// weight.
    scale: f64,
    initial_window: Volume,
    claimed_rtt: Option<Duration>,
    /// Limit that the law currently sets.
    allowed: KernelLimit,
    limit: SendLimit,
    /// Additions of the kernel's host program, if they are simulated.
    host: Option<Box<Host>>,
}

impl Source {
    /// Creates the source of one connection.
    #[must_use]
    pub fn new<P: RunsInKernel>(params: &P::Params, connection: &Connection) -> Self {
        let (law, form) = (P::law(), KernelProtocol::of::<P>());
        let packet = (whole_bytes(connection.packet) as u32).max(1);
        let initial_window = whole_bytes(connection.initial_window);
        let with_host = P::arithmetic(params) == Arithmetic::KernelHost;
        let mut source = Self {
            form,
            law,
            params: law.params(&P::numbers(params, connection.weight)),
            state: law.source(),
            // Pacing counts whole packets here, so all of a packet is payload. There is no TSO.
            tcp: Tcp { packet, payload: packet, max_segments: 1, unlimited: 1, ..Tcp::default() },
            acked: Volume::ZERO,
            scale: if form.weight_in_params { 1.0 } else { connection.weight },
            initial_window: connection.initial_window,
            claimed_rtt: connection.claimed_rtt,
            allowed: KernelLimit::default(),
            limit: SendLimit::default(),
            host: with_host.then(|| Box::new(Host::new(initial_window as u32 / packet))),
        };
        law.source_init(&source.params, &mut source.state, packet, initial_window);
        match &source.host {
            Some(host) => source.limit = host.limit(law, packet),
            None => source.set_limit(),
        }
        source
    }

    /// Returns the law's C functions.
    #[must_use]
    pub const fn law(&self) -> &'static KernelLaw {
        self.law
    }

    /// Reads the law's limit and converts it into a send limit. If the host's program is simulated, the program makes
    /// the conversion.
    fn set_limit(&mut self) {
        self.allowed = self.law.limit(&mut self.state, &self.tcp);
        let KernelLimit { rate, window, .. } = self.allowed;
        if let Some(host) = &mut self.host {
            let scaled = |number: u64| (number as f64 * self.scale) as u64;
            let allowed = KernelLimit { rate: scaled(rate), window: scaled(window), ..self.allowed };
            host.control(self.law, &allowed, &self.tcp);
            self.limit = host.limit(self.law, self.tcp.packet);
        } else if rate == 0 && window == 0 {
            self.limit = SendLimit { window: Some(self.initial_window), pacing: None };
        } else {
            let base_rtt_us = u64::from(self.tcp.base_rtt_us).max(1);
            let min = if self.form.packet_per_rtt { u64::from(self.tcp.packet) * 8_000_000 / base_rtt_us } else { 0 };
            self.limit = SendLimit {
                window: (window > 0).then_some(self.scale * Volume::from_bytes(window as f64)),
                pacing: (rate > 0 && self.law.paced()).then_some(self.scale * Rate::from_bps(rate.max(min) as f64)),
            };
        }
    }

    /// Returns the option value of a packet about to be sent.
    #[must_use]
    pub fn stamp(&mut self, sending: &Sending) -> Value {
        if sending.kind == PacketKind::Syn {
            self.law.request(&self.params)
        } else {
            self.law.forward(&self.params, &mut self.state)
        }
    }

    /// Processes an acknowledgement.
    pub fn on_ack(&mut self, ack: &Ack<Value>) {
        let packet = f64::from(self.tcp.packet);
        self.acked += ack.acked;
        let acked = (self.acked.as_bytes() / packet) as u32;
        self.acked -= Volume::from_bytes(f64::from(acked) * packet);
        self.tcp.now_us = clock_us(ack.now);
        self.tcp.srtt_us = span_us(self.claimed_rtt.unwrap_or(ack.smoothed_rtt)).saturating_mul(8);
        self.tcp.base_rtt_us = span_us(ack.base_rtt);
        self.tcp.delivered = self.tcp.delivered.wrapping_add(acked);
        self.tcp.acked = acked;
        self.tcp.in_flight = scaled((ack.in_flight + ack.acked).as_bytes(), 1.0 / packet);
        self.tcp.recovering = u32::from(ack.recovering);
        self.tcp.app_limited = u32::from(!ack.window_limited);
        self.tcp.window_limited = u32::from(ack.window_limited);
        if self.host.as_mut().is_some_and(|host| !host.is_due(&mut self.tcp, &self.allowed)) {
            return;
        }
        self.law.ack(&self.params, &mut self.state, &self.tcp, Some(&ack.echo));
        self.set_limit();
    }

    /// Processes a loss or a timeout, and ignores other events. With the host's program, the new limit applies from the
    /// next acknowledgement.
    pub fn on_event(&mut self, event: Event) {
        match event {
            Event::Loss => self.law.loss(&self.params, &mut self.state),
            Event::Timeout => self.law.timeout(&self.params, &mut self.state),
            Event::Marked | Event::Recovered | Event::Spurious | Event::Idle => return,
            Event::SynsLost => return self.start_over(),
        }
        match &mut self.host {
            None => self.set_limit(),
            Some(host) if event == Event::Timeout => host.on_timeout(),
            Some(_) => {}
        }
    }

    /// Starts the law again, with an initial window of one packet.
    fn start_over(&mut self) {
        let packet = self.tcp.packet;
        self.initial_window = Volume::from_bytes(f64::from(packet));
        self.state = self.law.source();
        self.law.source_init(&self.params, &mut self.state, packet, u64::from(packet));
        match &mut self.host {
            Some(host) => {
                **host = Host::new(1);
                self.limit = host.limit(self.law, packet);
            }
            None => self.set_limit(),
        }
    }

    /// Returns the current send limit.
    #[must_use]
    pub const fn limit(&self) -> SendLimit {
        self.limit
    }

    /// Records the source's signals.
    pub fn observe(&self, probe: &mut dyn Probe) {
        (self.form.observe_source)(&self.law.source_signals(&self.state), probe);
    }

    /// Lists the source's state for step logs.
    pub fn state(&self, fields: &mut StateFields) {
        fields.put_words("params", self.params.words());
        fields.put_words("source", self.state.words());
        crate::state_of!(fields, self: acked, scale, initial_window, claimed_rtt);
        if let Some(host) = &self.host {
            fields.put_words("host", &host.words());
        }
    }
}
