//! The fixed-point version of the law: `kernel/maxnet.h`, compiled for the host and called unchanged.
//!
//! That file documents the scales. Only this module converts between them and real numbers. With
//! `arithmetic = "kernel-host"` source and receiver are those of [`host`].

#![allow(
    unsafe_code,
    reason = "the law is C. Its functions take plain integers and structs of them by reference, \
              keep no pointer, allocate nothing and have no state, so every call is safe"
)]

use super::{Average, Echo, Field, Header, HostArithmetic, MaxNet, Order, Params};
use crate::mirror::mirror;
use crate::protocol::{Ack, Connection, Event, Limit, LinkView, PacketKind, Passing, Probe, Received, Sending};
use crate::units::{Duration, Instant, Rate, Volume};

mod host;

use host::Host;

/// The scale 2³⁴ of a link's price and of ξ in memory.
const MEMORY_SCALE: f64 = (1u64 << 34) as f64;
/// `MAXNET_RATE_MAX_BPS`.
const RATE_MAX_BPS: u64 = 1 << 57;

mirror! {
    /// `struct maxnet_params`.
    struct HostParams = waterfill_maxnet_params_fields {
        x_max: u64,
        alpha: u32,
        eta: u32,
        t: u32,
        dt_min: u32,
        average: u32,
        compensate: u32,
        xi_first: u32,
        reserved: u32,
    }
}

mirror! {
    /// `struct maxnet_source`.
    struct SourceState = waterfill_maxnet_source_fields {
        window: u64,
        rate: u64,
        demand_max: u64,
        start_rate: u64,
        start_initial: u64,
        xi: i64,
        xi_speed: u64,
        updated: u64,
        raised: u64,
        xi_low: u32,
        price: u32,
        base_rtt: u32,
        packet: u32,
        mode: u32,
        has_price: u32,
    }
}

mirror! {
    /// `struct maxnet_receiver`.
    struct ReceiverState = waterfill_maxnet_receiver_fields {
        average: u64,
        last: u64,
        rtt: u32,
        start: u32,
        has_price: u32,
        reserved: u32,
    }
}

mirror! {
    /// `struct maxnet_link`.
    struct LinkState = waterfill_maxnet_link_fields {
        capacity: u64,
        x_max: u64,
        start_share: u64,
        price: u64,
        price_min: u64,
        target_time: u64,
        arrival_rate: u64,
        promised: u64,
        promised_age: u64,
        aging: u64,
        price_code: u32,
        t: u32,
        mu: u32,
        dt_p: u32,
        t_0: u32,
        promise: u32,
    }
}

// kernel/maxnet.c asserts the same sizes.
const _: () = assert!(size_of::<HostParams>() == 40);
const _: () = assert!(size_of::<SourceState>() == 96);
const _: () = assert!(size_of::<ReceiverState>() == 32);
const _: () = assert!(size_of::<LinkState>() == 104);

unsafe extern "C" {
    safe fn waterfill_maxnet_link_init(
        link: &mut LinkState,
        capacity: u64,
        x_max: u64,
        t: u32,
        mu: u32,
        dt_p: u32,
        t_0: u32,
        promise: u32,
    );
    safe fn waterfill_maxnet_link_set(link: &mut LinkState, capacity: u64, mu: u32);
    safe fn waterfill_maxnet_tick(link: &mut LinkState, bytes: u64, queue: u64);
    safe fn waterfill_maxnet_mark(link: &mut LinkState, field: u32) -> u32;
    safe fn waterfill_maxnet_receive(params: &HostParams, receiver: &mut ReceiverState, now: u64, rtt: u32, field: u32);
    safe fn waterfill_maxnet_echo(receiver: &ReceiverState) -> u32;
    safe fn waterfill_maxnet_source_init(
        params: &HostParams,
        source: &mut SourceState,
        packet: u32,
        window: u64,
        weight: u32,
    );
    safe fn waterfill_maxnet_ack(params: &HostParams, source: &mut SourceState, now: u64, base_rtt: u32, field: u32);
    safe fn waterfill_maxnet_pacing(source: &SourceState) -> u64;
}

/// Returns a ratio times `scale`, rounded to nearest; saturates.
fn scaled(value: f64, scale: f64) -> u32 {
    (value * scale).round() as u32
}

/// Returns the time in whole microseconds.
fn clock_us(now: Instant) -> u64 {
    now.as_ps() / 1_000_000
}

/// Returns a span in microseconds, rounded to nearest, at least 1.
fn span_us(d: Duration) -> u32 {
    u32::try_from((d.as_ps() + 500_000) / 1_000_000).unwrap_or(u32::MAX).max(1)
}

/// Returns a volume rounded to whole bytes.
fn whole_bytes(volume: Volume) -> u64 {
    volume.as_bytes().round() as u64
}

impl HostParams {
    fn new(params: &Params) -> Self {
        Self {
            x_max: params.x_max.as_bps() as u64,
            alpha: scaled(params.alpha, 1e3),
            eta: scaled(params.eta, 1e3),
            t: scaled(params.t.as_secs(), 1e3),
            dt_min: scaled(params.dt_min.as_secs(), 1e6),
            average: u32::from(params.average == Average::Exponential),
            compensate: u32::from(params.compensate),
            xi_first: u32::from(params.order == Order::XiFirst),
            reserved: 0,
        }
    }
}

fn capacity(link: &LinkView) -> u64 {
    (link.capacity.as_bps() as u64).clamp(1, RATE_MAX_BPS)
}

/// The router's fixed-point version.
#[derive(Clone, Debug)]
pub struct Router {
    state: LinkState,
    dt_p: Duration,
    /// Volume since the last update; a fluid's fraction of a byte is carried to the next interval.
    arrived: Volume,
    next_update: Instant,
}

impl crate::protocol::Router<MaxNet> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        let mut state = LinkState::default();
        waterfill_maxnet_link_init(
            &mut state,
            capacity(link),
            params.x_max.as_bps() as u64,
            scaled(params.t.as_secs(), 1e3),
            scaled(link.target.unwrap_or(params.mu), 1e6),
            span_us(params.dt_p),
            span_us(params.t_0),
            u32::from(params.promise),
        );
        Self { state, dt_p: params.dt_p, arrived: Volume::ZERO, next_update: Instant::ZERO + params.dt_p }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(Header { price }) = passing.header.as_deref_mut() {
            *price = Field::from_bits(waterfill_maxnet_mark(&mut self.state, price.bits()));
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        if self.state.capacity != capacity(link) {
            let mu = self.state.mu;
            waterfill_maxnet_link_set(&mut self.state, capacity(link), mu);
        }
        let bytes = whole_bytes(self.arrived);
        self.arrived -= Volume::from_bytes(bytes as f64);
        waterfill_maxnet_tick(&mut self.state, bytes, whole_bytes(link.queue));
        self.next_update = now + self.dt_p;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("price", self.state.price as f64 / MEMORY_SCALE);
    }
}

/// The receiver's fixed-point version.
#[derive(Clone, Debug)]
pub struct Receiver {
    params: HostParams,
    state: ReceiverState,
    /// With the kernel's host program.
    with_host: bool,
}

impl crate::protocol::Receiver<MaxNet> for Receiver {
    fn new(params: &Params) -> Self {
        let with_host = params.arithmetic == HostArithmetic::KernelHost;
        Self { params: HostParams::new(params), state: ReceiverState::default(), with_host }
    }

    fn on_data(&mut self, received: &Received<Header>) {
        let field = received.header.price.bits();
        let rtt = received.rtt.map_or(0, span_us);
        let receive = if self.with_host { host::waterfill_maxnet_host_receive } else { waterfill_maxnet_receive };
        receive(&self.params, &mut self.state, clock_us(received.now), rtt, field);
    }

    fn echo(&mut self, _now: Instant) -> Echo {
        Echo { echo: Field::from_bits(waterfill_maxnet_echo(&self.state)) }
    }
}

/// The source's fixed-point version.
#[derive(Clone, Debug)]
pub struct Source {
    params: HostParams,
    state: SourceState,
    /// The kernel's host program; none for the bare law.
    host: Option<Host>,
}

impl crate::protocol::Source<MaxNet> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let host = (params.arithmetic == HostArithmetic::KernelHost).then(|| Host::new(connection));
        let params = HostParams::new(params);
        let mut state = SourceState::default();
        waterfill_maxnet_source_init(
            &params,
            &mut state,
            whole_bytes(connection.packet) as u32,
            whole_bytes(connection.initial_window),
            scaled(connection.weight, 1e3).max(1),
        );
        Self { params, state, host }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        Header { price: if sending.kind == PacketKind::Syn { Field::StartRate(0) } else { Field::Price(0) } }
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        if let Some(host) = &mut self.host {
            host.on_ack(&self.params, &mut self.state, ack);
            return;
        }
        let field = ack.echo.echo.bits();
        waterfill_maxnet_ack(&self.params, &mut self.state, clock_us(ack.now), span_us(ack.base_rtt), field);
    }

    fn on_event(&mut self, _now: Instant, event: Event) {
        if let (Some(host), Event::Timeout) = (&mut self.host, event) {
            host.on_timeout();
        }
    }

    fn limit(&self) -> Limit {
        if let Some(host) = &self.host {
            return host.limit();
        }
        let pacing = waterfill_maxnet_pacing(&self.state);
        Limit {
            window: Some(Volume::from_bytes(self.state.window as f64)),
            pacing: (pacing > 0).then_some(Rate::from_bps(pacing as f64)),
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if self.state.has_price == 1 {
            probe.record("price", super::real(self.state.price));
            probe.record("xi", self.state.xi as f64 / MEMORY_SCALE);
        }
    }
}

#[cfg(test)]
mod tests;
