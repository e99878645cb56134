//! Measures a path independently: sends numbered frames through one interface and receives them at another.
//!
//! A frame carries its number and its sending time; the kernel timestamps its arrival by the same clock. The probe does not
//! depend on what lies between: a delay line, or nothing.

use std::io;

use serde::{Deserialize, Serialize};

use super::config::{Config, MAX_FRAME_BYTES};
use super::lateness::{Lateness, Spread};
use super::packet::Port;
use super::sys::{self, Nanos};

/// Ethernet header of a probe frame: locally administered destination and source, and the EtherType for local
/// experiments (IEEE 802).
const HEAD: [u8; 14] = [0x02, 0, 0, 0, 0xff, 2, 0x02, 0, 0, 0, 0xff, 1, 0x88, 0xb5];
const MAGIC: &[u8; 8] = b"wf-probe";
/// Minimum length of a frame in bytes, with the header, the number and the time.
const MIN_FRAME_BYTES: usize = HEAD.len() + MAGIC.len() + 16;
const TICK_NS: u64 = 50_000;
const BATCH: u64 = 64;

/// Configuration of a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Interface that sends the frames.
    pub from: String,
    /// Interface that receives the frames.
    pub to: String,
    /// Length of a frame in bytes, with its Ethernet header but without checksum.
    pub frame_bytes: usize,
    /// Number of frames per second; 0 sends as many as possible.
    pub rate_per_s: u64,
    /// Duration of sending, in nanoseconds.
    pub send_ns: u64,
    /// Nominal delay of the path, in nanoseconds.
    pub delay_ns: u64,
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Report {
    /// Frames sent.
    pub sent: u64,
    /// Frames received, regardless of their order.
    pub received: u64,
    /// Frames received after a frame with a higher number.
    pub reordered: u64,
    /// Frames that arrived but were dropped because the probe's own ring was full.
    pub unseen: u64,
    /// Duration of sending, in seconds.
    pub sending_s: f64,
    /// Time from the first arrival to the last, in seconds.
    pub receiving_s: f64,
    /// Travel times minus the nominal delay, in nanoseconds; `None` if no frame was received.
    pub error_ns: Option<Spread>,
    /// CPU time of the probe process, in seconds.
    pub cpu_s: f64,
}

struct Seen {
    delay_ns: u64,
    received: u64,
    reordered: u64,
    next: u64,
    first: Option<Nanos>,
    last: Nanos,
    error: Lateness,
}

impl Probe {
    /// Parses and checks the configuration of a measurement. The error is one line; it names the key if a value is out
    /// of range.
    ///
    /// # Errors
    /// When it is not JSON of this shape, or frames are too short for number and time, or too long.
    pub fn parse(text: &str) -> Result<Self, String> {
        let probe: Self = serde_json::from_str(text).map_err(|e| format!("not a probe: {e}"))?;
        if !(MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&probe.frame_bytes) {
            let got = probe.frame_bytes;
            return Err(format!("frame_bytes: must be {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES}, got {got}"));
        }
        Ok(probe)
    }

    /// Sends the frames, waits for those on the way, and returns the report.
    ///
    /// # Errors
    /// When an interface cannot be opened or fails.
    pub fn run(&self) -> io::Result<Report> {
        let config = Config::for_ports(self.frame_bytes.max(256));
        let mut out = Port::open(&self.from, &config)?;
        let mut into = Port::open(&self.to, &config)?;
        let mut frames = vec![self.blank(); BATCH as usize];
        let mut seen = Seen {
            delay_ns: self.delay_ns,
            received: 0,
            reordered: 0,
            next: 0,
            first: None,
            last: Nanos::default(),
            error: Lateness::default(),
        };
        let start = Nanos::now();
        let mut sent = 0;
        let mut now = start;
        while (now.since(start) as u64) < self.send_ns {
            let due = match self.rate_per_s {
                0 => BATCH,
                rate => ((now.since(start) as u128 * u128::from(rate) / 1_000_000_000) as u64).saturating_sub(sent),
            };
            let count = due.min(BATCH);
            sent += send(&mut out, &mut frames[..count as usize], sent)?;
            into.receive(|at, frame| seen.note(at, frame))?;
            if due <= BATCH && self.rate_per_s > 0 {
                Nanos::now().after(TICK_NS).sleep_until();
            }
            now = Nanos::now();
        }
        let sending_ns = now.since(start);
        // Frames on the way have twice the delay, in case the path is slow.
        let end = now.after(self.delay_ns.saturating_mul(2)).after(200_000_000);
        while Nanos::now() < end {
            into.receive(|at, frame| seen.note(at, frame))?;
            Nanos::now().after(TICK_NS * 10).sleep_until();
        }
        Ok(Report {
            sent,
            received: seen.received,
            reordered: seen.reordered,
            unseen: into.drops(),
            sending_s: sending_ns as f64 * 1e-9,
            receiving_s: seen.first.map_or(0.0, |first| seen.last.since(first) as f64 * 1e-9),
            error_ns: seen.error.spread(),
            cpu_s: sys::cpu_s(),
        })
    }

    fn blank(&self) -> Vec<u8> {
        let mut frame = vec![0; self.frame_bytes];
        frame[..HEAD.len()].copy_from_slice(&HEAD);
        frame[HEAD.len()..HEAD.len() + MAGIC.len()].copy_from_slice(MAGIC);
        frame
    }
}

/// Sends frames that are numbered from `first` on. Returns the number of frames that were sent.
fn send(out: &mut Port, frames: &mut [Vec<u8>], first: u64) -> io::Result<u64> {
    let at = HEAD.len() + MAGIC.len();
    let stamp = Nanos::now().as_ns().to_be_bytes();
    for (i, frame) in frames.iter_mut().enumerate() {
        frame[at..at + 8].copy_from_slice(&(first + i as u64).to_be_bytes());
        frame[at + 8..at + 16].copy_from_slice(&stamp);
    }
    let slices: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    Ok(if slices.is_empty() { 0 } else { out.send(&slices)? as u64 })
}

impl Seen {
    fn note(&mut self, at: Nanos, frame: &[u8]) {
        let start = HEAD.len() + MAGIC.len();
        if frame.len() < start + 16 || &frame[HEAD.len()..start] != MAGIC {
            return; // not a probe's frame
        }
        let field = |i: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&frame[start + i..start + i + 8]);
            u64::from_be_bytes(bytes)
        };
        let (number, sent) = (field(0), Nanos::new(field(8)));
        self.received += 1;
        self.reordered += u64::from(number < self.next);
        self.next = self.next.max(number + 1);
        self.first.get_or_insert(at);
        self.last = self.last.max(at);
        self.error.add(at.since(sent) - self.delay_ns as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_counted_ordered_and_timed() {
        let probe = Probe {
            from: String::new(),
            to: String::new(),
            frame_bytes: 60,
            rate_per_s: 0,
            send_ns: 0,
            delay_ns: 1000,
        };
        let mut seen = Seen {
            delay_ns: 1000,
            received: 0,
            reordered: 0,
            next: 0,
            first: None,
            last: Nanos::default(),
            error: Lateness::default(),
        };
        let at = HEAD.len() + MAGIC.len();
        for (number, sent, arrived) in [(0u64, 100u64, 1100u64), (2, 100, 1200), (1, 100, 1300)] {
            let mut frame = probe.blank();
            frame[at..at + 8].copy_from_slice(&number.to_be_bytes());
            frame[at + 8..at + 16].copy_from_slice(&sent.to_be_bytes());
            seen.note(Nanos::new(arrived), &frame);
        }
        seen.note(Nanos::new(5), &[0; 60]); // not a probe's frame
        assert_eq!((seen.received, seen.reordered, seen.next), (3, 1, 3));
        let spread = seen.error.spread().unwrap();
        assert_eq!((spread.min, spread.max), (0, 200));
    }
}
