//! The fixed-point version of the law: `kernel/maxnet2006.h`, compiled for the host and called unchanged.
//!
//! That file documents the scales. Only this module converts between them and real numbers.

#![allow(
    unsafe_code,
    reason = "the law is C. Its functions take plain integers and structs of them by reference, \
              keep no pointer, allocate nothing and have no state, so every call is safe"
)]

use super::thinned::Marking;
use super::{Echo, Field, Header, MaxNet2006, Params, stamped};
use crate::mirror::mirror;
use crate::protocol::{Ack, Connection, Limit, LinkView, Passing, Probe, Sending};
use crate::units::{Duration, Instant, Rate, Volume};

/// The scale 2³⁴ of prices, averages and ξ in memory.
const MEMORY_SCALE: f64 = (1u64 << 34) as f64;
/// `MAXNET2006_RATE_MAX_BPS`.
const RATE_MAX_BPS: u64 = 1 << 57;

mirror! {
    /// `struct maxnet2006_params`.
    struct SourceParams = waterfill_maxnet2006_params_fields {
        x_max: u64,
        alpha: u32,
        eta: u32,
        t: u32,
        dt: u32,
        rtt_unit: u32,
        rateinc: u32,
        mindeltaq: u32,
        wnd_update_freq: u32,
        max_wnd: u32,
        average: u32,
        compensate: u32,
        reserved: u32,
    }
}

mirror! {
    /// `struct maxnet2006_source`.
    struct SourceState = waterfill_maxnet2006_source_fields {
        demand_max: u64,
        window: u64,
        rate: u64,
        start_rate: u64,
        average: u64,
        xi: i64,
        price_at: u64,
        updated: u64,
        raised: u64,
        last_price: u32,
        base_rtt: u32,
        packet: u32,
        acks: u32,
        mode: u32,
        has_price: u32,
    }
}

mirror! {
    /// `struct maxnet2006_link`.
    struct LinkState = waterfill_maxnet2006_link_fields {
        capacity: u64,
        x_max: u64,
        start_share: u64,
        start_min: u64,
        price: u64,
        price_min: u64,
        target_time: u64,
        arrival_rate: u64,
        dt: u32,
        reserved: u32,
    }
}

// kernel/maxnet2006.c asserts the same sizes.
const _: () = assert!(size_of::<SourceParams>() == 56);
const _: () = assert!(size_of::<SourceState>() == 96);
const _: () = assert!(size_of::<LinkState>() == 72);

unsafe extern "C" {
    safe fn waterfill_maxnet2006_link_init(
        link: &mut LinkState,
        capacity: u64,
        x_max: u64,
        t: u32,
        mu: u32,
        start_share: u32,
        start_min_divisor: u32,
        dt: u32,
    );
    safe fn waterfill_maxnet2006_tick(link: &mut LinkState, bytes: u64);
    safe fn waterfill_maxnet2006_mark(link: &LinkState, field: u32) -> u32;
    safe fn waterfill_maxnet2006_ack(
        params: &SourceParams,
        source: &mut SourceState,
        now: u64,
        base_rtt: u64,
        field: u32,
    );
}

/// Returns a ratio times `scale`, rounded to nearest; saturates.
fn scaled(value: f64, scale: f64) -> u32 {
    (value * scale).round() as u32
}

fn micros(d: Duration) -> u64 {
    d.as_ps() / 1_000_000
}

fn capacity(link: &LinkView) -> u64 {
    (link.capacity.as_bps() as u64).clamp(1, RATE_MAX_BPS)
}

/// The router's fixed-point version.
#[derive(Clone, Debug)]
pub struct Router {
    state: LinkState,
    /// Needed again when the capacity changes.
    params: Params,
    /// Volume since the last update.
    arrived: Volume,
    next_update: Instant,
    marking: Marking,
}

impl Router {
    fn initial_state(params: &Params, link: &LinkView) -> LinkState {
        let mu = link.target.unwrap_or(params.mu);
        let mut state = LinkState::default();
        waterfill_maxnet2006_link_init(
            &mut state,
            capacity(link),
            params.x_max.as_bps() as u64,
            scaled(params.t.as_secs(), 1e3),
            scaled(mu, 1e6),
            scaled(mu + params.epsilon, 1e6),
            params.qs_min_divisor,
            micros(params.dt) as u32,
        );
        state
    }

    /// Takes the link's capacity. If it changed, computes again what depends on it; price and arrival rate stay.
    fn set_capacity(&mut self, link: &LinkView) {
        if self.state.capacity != capacity(link) {
            let LinkState { price, arrival_rate, .. } = self.state;
            let initial = Self::initial_state(&self.params, link);
            self.state = LinkState { price: price.max(initial.price_min), arrival_rate, ..initial };
        }
    }

    fn tick(&mut self, arrived: Volume) {
        waterfill_maxnet2006_tick(&mut self.state, arrived.as_bytes().round() as u64);
    }

    fn mark(&self, field: Field) -> Field {
        Field::from_bits(waterfill_maxnet2006_mark(&self.state, field.bits()))
    }

    /// Returns p in seconds.
    fn price(&self) -> f64 {
        self.state.price as f64 / MEMORY_SCALE
    }
}

impl crate::protocol::Router<MaxNet2006> for Router {
    fn new(params: &Params, link: &LinkView) -> Self {
        Self {
            state: Self::initial_state(params, link),
            params: params.clone(),
            arrived: Volume::ZERO,
            next_update: Instant::ZERO + params.dt,
            marking: Marking::new(params.mark_every),
        }
    }

    fn on_arrival(&mut self, _link: &LinkView, passing: &mut Passing<'_, Header>) {
        self.arrived += passing.volume;
        if let Some(price) = self.marking.field(passing) {
            *price = self.mark(*price);
        }
    }

    fn poll_at(&self) -> Instant {
        self.next_update
    }

    fn on_timer(&mut self, link: &LinkView, now: Instant) {
        self.set_capacity(link);
        self.tick(self.arrived);
        self.arrived = Volume::ZERO;
        self.next_update = now + self.params.dt;
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.record("price", self.price());
    }
}

/// The source's fixed-point version.
#[derive(Clone, Debug)]
pub struct Source {
    quickstart: bool,
    params: SourceParams,
    state: SourceState,
}

impl crate::protocol::Source<MaxNet2006> for Source {
    fn new(params: &Params, connection: &Connection) -> Self {
        let packet = connection.packet.as_bytes() as u32;
        let demand_max = (params.x_max * connection.weight).as_bps() as u64;
        Self {
            quickstart: params.quickstart,
            params: SourceParams {
                x_max: params.x_max.as_bps() as u64,
                alpha: scaled(params.alpha, 1e3),
                eta: scaled(params.eta, 1e3),
                t: scaled(params.t.as_secs(), 1e3),
                dt: micros(params.dt_source) as u32,
                rtt_unit: micros(params.rtt_unit) as u32,
                rateinc: scaled(params.rateinc, 1e3),
                mindeltaq: params.mindeltaq,
                wnd_update_freq: params.wnd_update_freq,
                max_wnd: params.max_wnd,
                average: u32::from(params.average),
                compensate: u32::from(params.compensate),
                reserved: 0,
            },
            state: SourceState {
                demand_max: demand_max.clamp(1, RATE_MAX_BPS),
                window: connection.initial_window.as_bytes() as u64,
                packet,
                ..SourceState::default()
            },
        }
    }

    fn stamp(&mut self, sending: &Sending) -> Header {
        stamped(self.quickstart, sending)
    }

    fn on_ack(&mut self, ack: &Ack<Echo>) {
        let now = micros(ack.now.since(Instant::ZERO));
        let field = ack.echo.echo.bits();
        waterfill_maxnet2006_ack(&self.params, &mut self.state, now, micros(ack.base_rtt), field);
    }

    fn limit(&self) -> Limit {
        // No rate before the first field of a router.
        let pacing = (self.state.rate > 0).then_some(Rate::from_bps(self.state.rate as f64));
        Limit { window: Some(Volume::from_bytes(self.state.window as f64)), pacing }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        let SourceState { average, xi, has_price, .. } = self.state;
        if has_price == 1 {
            probe.record("price", average as f64 / MEMORY_SCALE);
            probe.record("xi", xi as f64 / MEMORY_SCALE);
        }
    }
}

#[cfg(test)]
mod tests;
