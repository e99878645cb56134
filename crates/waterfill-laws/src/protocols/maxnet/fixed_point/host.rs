//! What the kernel's host program adds to the law: `kernel/host.h` and the last part of `kernel/maxnet.h`, which that program includes
//! too.
//!
//! The simulated TCP differs from a real one in this: it has no super-packets, its timers are never late, and every
//! acknowledgement has an echo. What the program does where no price arrives, or where the path has another bottleneck,
//! is not here: there the connection leaves MaxNet.

use super::{HostParams, ReceiverState, SourceState, clock_us, scaled, span_us, whole_bytes};
use crate::kernel::Tcp;
use crate::mirror::mirror;
use crate::protocol::{Ack, Connection, Limit};
use crate::protocols::maxnet::Echo;
use crate::units::{Rate, Volume};

mirror! {
    /// `struct host_pace`.
    struct HostPace = waterfill_host_pace_fields {
        called_us: u64,
        boost_rate: u64,
        boost_since_us: u64,
        boost_delivered: u32,
        pacing_boost: u32,
        restart_window: u32,
        reserved: u32,
    }
}

mirror! {
    /// `struct host_send`.
    struct HostSend = waterfill_host_send_fields {
        rate: u64,
        window: u32,
        ack_clocked: u32,
    }
}

// kernel/maxnet.c asserts the same sizes.
const _: () = assert!(size_of::<HostPace>() == 40);
const _: () = assert!(size_of::<Tcp>() == 64);
const _: () = assert!(size_of::<HostSend>() == 16);

unsafe extern "C" {
    safe fn waterfill_maxnet_host_init(pace: &mut HostPace);
    safe fn waterfill_maxnet_host_ack(
        params: &HostParams,
        source: &mut SourceState,
        pace: &mut HostPace,
        tcp: &Tcp,
        field: u32,
        send: &mut HostSend,
    ) -> u32;
    safe fn waterfill_maxnet_host_time_out(pace: &mut HostPace);
    pub(super) safe fn waterfill_maxnet_host_receive(
        params: &HostParams,
        receiver: &mut ReceiverState,
        now: u64,
        rtt: u32,
        field: u32,
    );
}

/// The sending side of one connection beyond the law's state.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pace: HostPace,
    tcp: Tcp,
    send: HostSend,
}

impl Host {
    pub(super) fn new(connection: &Connection) -> Self {
        let packet = (whole_bytes(connection.packet) as u32).max(1);
        let mut pace = HostPace::default();
        waterfill_maxnet_host_init(&mut pace);
        Self {
            pace,
            // Pacing counts whole packets here, so all of a packet is payload. There is no TSO.
            tcp: Tcp { packet, payload: packet, max_segments: 1, unlimited: 1, ..Tcp::default() },
            send: HostSend {
                window: (whole_bytes(connection.initial_window) as u32 / packet).max(1),
                ..HostSend::default()
            },
        }
    }

    pub(super) fn on_ack(&mut self, params: &HostParams, source: &mut SourceState, ack: &Ack<Echo>) {
        let packets = |volume: Volume| scaled(volume.as_bytes(), 1.0 / f64::from(self.tcp.packet));
        let acked = packets(ack.acked);
        let in_flight = packets(ack.in_flight);
        self.tcp.now_us = clock_us(ack.now);
        self.tcp.srtt_us = span_us(ack.smoothed_rtt).saturating_mul(8);
        self.tcp.base_rtt_us = span_us(ack.base_rtt);
        self.tcp.acked = self.tcp.acked.wrapping_add(acked); // with those of acknowledgements that the law has not seen
        self.tcp.in_flight = in_flight;
        self.tcp.delivered = self.tcp.delivered.wrapping_add(acked);
        self.tcp.recovering = u32::from(ack.recovering);
        self.tcp.app_limited = u32::from(!ack.window_limited);
        self.tcp.window_limited = u32::from(in_flight + acked >= self.send.window);
        let Self { pace, tcp, send } = self;
        if waterfill_maxnet_host_ack(params, source, pace, tcp, ack.echo.echo.bits(), send) != 0 {
            tcp.acked = 0;
        }
    }

    pub(super) fn on_timeout(&mut self) {
        waterfill_maxnet_host_time_out(&mut self.pace);
    }

    pub(super) fn limit(&self) -> Limit {
        let HostSend { rate, window, ack_clocked } = self.send;
        let pacing = match (rate, ack_clocked) {
            (0, _) => None,
            (_, 0) => Some(Rate::from_bps(rate as f64 * 8.0)),
            _ => Some(Rate::UNLIMITED),
        };
        Limit { window: Some(f64::from(window) * Volume::from_bytes(f64::from(self.tcp.packet))), pacing }
    }
}

#[cfg(test)]
mod tests;
