//! A law's receiver and source in the simulator.

use super::{KernelLaw, Law, Tcp, Words, clock_us, scaled, span_us, whole_bytes};
use crate::protocol::{Ack, Connection, Event, Limit, PacketKind, Probe, Received, Sending};
use crate::state::StateFields;
use crate::units::{Duration, Instant, Rate, Volume};

/// The receiver of a law.
#[derive(Clone, Debug)]
pub struct Receiver {
    law: &'static Law,
    params: Words,
    state: Words,
}

impl<P: KernelLaw> crate::protocol::Receiver<P> for Receiver {
    fn new(params: &P::Params) -> Self {
        let law = P::law();
        Self { law, params: law.params(&P::numbers(params, 1.0)), state: law.receiver() }
    }

    fn on_data(&mut self, received: &Received<P::Header>) {
        let Some(value) = P::value_of(&received.header) else { return };
        let rtt_us = received.rtt.map_or(0, span_us);
        self.law.receive(&self.params, &mut self.state, clock_us(received.now), rtt_us, &value, 1);
    }

    fn echo(&mut self, _now: Instant) -> P::Echo {
        P::echo_of(&self.law.echo(&mut self.state))
    }

    fn state(&self, fields: &mut StateFields) {
        fields.put_words("params", self.params.words());
        fields.put_words("receiver", self.state.words());
    }
}

/// The source of a law. It calls the law for every acknowledgement. A claimed RTT is the law's smoothed one.
#[derive(Clone, Debug)]
pub struct Source {
    law: &'static Law,
    params: Words,
    state: Words,
    tcp: Tcp,
    /// Acknowledged bytes that are no whole packet yet.
    acked: Volume,
    weight: f64,
    initial_window: Volume,
    claimed_rtt: Option<Duration>,
    limit: Limit,
}

impl Source {
    fn set_limit<P: KernelLaw>(&mut self) {
        let limit = self.law.limit(&mut self.state, &self.tcp);
        let window = (limit.window > 0).then_some(Volume::from_bytes(limit.window as f64));
        let pacing = (limit.rate > 0 && self.law.paced()).then_some(Rate::from_bps(limit.rate as f64));
        self.limit = if limit.rate == 0 && limit.window == 0 {
            Limit { window: Some(self.initial_window), pacing: None }
        } else {
            P::weighted(Limit { window, pacing }, self.weight)
        };
    }
}

impl<P: KernelLaw> crate::protocol::Source<P> for Source {
    fn new(params: &P::Params, connection: &Connection) -> Self {
        let law = P::law();
        let packet = (whole_bytes(connection.packet) as u32).max(1);
        let mut source = Self {
            law,
            params: law.params(&P::numbers(params, connection.weight)),
            state: law.source(),
            // Pacing counts whole packets here, so all of a packet is payload. There is no TSO.
            tcp: Tcp { packet, payload: packet, max_segments: 1, unlimited: 1, ..Tcp::default() },
            acked: Volume::ZERO,
            weight: connection.weight,
            initial_window: connection.initial_window,
            claimed_rtt: connection.claimed_rtt,
            limit: Limit::default(),
        };
        law.source_init(&source.params, &mut source.state, packet, whole_bytes(connection.initial_window));
        source.set_limit::<P>();
        source
    }

    fn stamp(&mut self, sending: &Sending) -> P::Header {
        let value = if sending.kind == PacketKind::Syn {
            self.law.request(&self.params)
        } else {
            self.law.forward(&self.params, &mut self.state)
        };
        P::header_of(&value)
    }

    fn on_ack(&mut self, ack: &Ack<P::Echo>) {
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
        let echo = P::value_of_echo(&ack.echo);
        self.law.ack(&self.params, &mut self.state, &self.tcp, echo.as_ref());
        self.set_limit::<P>();
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        match event {
            Event::Loss => self.law.loss(&self.params, &mut self.state),
            Event::Timeout => self.law.timeout(&self.params, &mut self.state),
            Event::Marked | Event::Recovered => return,
        }
        self.set_limit::<P>();
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn observe(&self, probe: &mut dyn Probe) {
        P::observe_source(&self.law.source_signals(&self.state), probe);
    }

    fn state(&self, fields: &mut StateFields) {
        fields.put_words("params", self.params.words());
        fields.put_words("source", self.state.words());
        crate::state_of!(fields, self: acked, weight, initial_window, claimed_rtt);
    }
}
