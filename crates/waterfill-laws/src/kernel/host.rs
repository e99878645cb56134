//! Additions of the kernel's host program to any law: `kernel/host.h`, which the BPF programs include too.
//!
//! The simulated TCP differs from a real one in this: it has no super-packets, its timers are never late, and every
//! acknowledgement has an echo. What the program does where no router answers, or where the path has another bottleneck,
//! is not here: there the connection leaves the law.

#![allow(
    unsafe_code,
    reason = "the additions are C. These functions take plain integers and structures of them by reference, and keep nothing"
)]

use super::{KernelLaw, KernelLimit, Tcp};
use crate::mirror::mirror;
use crate::protocol::SendLimit;
use crate::units::{Rate, Volume};

mirror! {
    /// State of pacing, boost and restart: C's `struct host_pace`.
    pub(super) struct Pace = waterfill_host_pace_fields {
        called_us: u64,
        boost_rate: u64,
        boost_since_us: u64,
        boost_delivered: u32,
        pacing_boost: u32,
        restart_window: u32,
        silent_window: u32,
    }
}

mirror! {
    /// Limits for TCP: C's `struct host_send`.
    pub(super) struct Send = waterfill_host_send_fields {
        rate: u64,
        window: u32,
        ack_clocked: u32,
    }
}

unsafe extern "C" {
    safe fn waterfill_host_init(pace: &mut Pace);
    safe fn waterfill_host_is_due(pace: &mut Pace, tcp: &Tcp, rate: u64) -> u32;
    safe fn waterfill_host_time_out(pace: &mut Pace);
}

/// State that a source's host keeps in addition to the law's state.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pace: Pace,
    send: Send,
    /// Number of acknowledged packets that have not yet been reported to the law.
    waiting: u32,
}

impl Host {
    pub(super) fn new(initial_packets: u32) -> Self {
        let mut pace = Pace::default();
        waterfill_host_init(&mut pace);
        Self { pace, send: Send { window: initial_packets.max(1), ..Send::default() }, waiting: 0 }
    }

    /// Returns true if the law must receive this acknowledgement, together with earlier acknowledgements that are still
    /// waiting.
    pub(super) fn is_due(&mut self, tcp: &mut Tcp, law: &KernelLimit) -> bool {
        tcp.acked = tcp.acked.wrapping_add(self.waiting);
        tcp.window_limited = u32::from(tcp.in_flight >= self.send.window);
        let due = waterfill_host_is_due(&mut self.pace, tcp, law.rate) != 0;
        self.waiting = if due { 0 } else { tcp.acked };
        due
    }

    /// Computes TCP's limits from the law's limit.
    pub(super) fn control(&mut self, law: &KernelLaw, limit: &KernelLimit, tcp: &Tcp) {
        law.host_control(&mut self.pace, limit, tcp, &mut self.send);
    }

    pub(super) fn on_timeout(&mut self) {
        waterfill_host_time_out(&mut self.pace);
    }

    /// Returns the send limit of TCP, for packets of `packet` bytes.
    pub(super) fn limit(&self, law: &KernelLaw, packet: u32) -> SendLimit {
        let Send { rate, window, ack_clocked } = self.send;
        let pacing = match (rate, ack_clocked) {
            _ if !law.paced() => None,
            (0, _) => None,
            (_, 0) => Some(Rate::from_bps(rate as f64 * 8.0)),
            _ => Some(Rate::UNLIMITED),
        };
        SendLimit { window: Some(f64::from(window) * Volume::from_bytes(f64::from(packet))), pacing }
    }

    /// Returns the host's state as words for logs.
    pub(super) const fn words(&self) -> [u64; 8] {
        let Self { pace, send, waiting } = self;
        [
            pace.called_us,
            pace.boost_rate,
            pace.boost_since_us,
            pace.boost_delivered as u64 | (pace.pacing_boost as u64) << 32,
            pace.restart_window as u64,
            send.rate,
            send.window as u64 | (send.ack_clocked as u64) << 32,
            *waiting as u64,
        ]
    }
}

#[cfg(test)]
mod tests;
