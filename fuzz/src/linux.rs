//! Targets of `waterfill-linux` without the daemon: frames at a router, options at a host, the delay line.

#[path = "../../crates/waterfill-linux/tests/decoders/check.rs"]
mod check;
#[allow(dead_code, reason = "a test uses the rest")]
#[path = "../../crates/waterfill-linux/tests/decoders/host.rs"]
mod host;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../crates/waterfill-linux/tests/router/packet.rs"]
mod packet;

use std::sync::LazyLock;

use waterfill_linux::delay::config::{Config, LineConfig};
use waterfill_linux::delay::line::Line;
use waterfill_linux::delay::probe::Probe;
use waterfill_linux::delay::sys::Nanos;

use check::{Decoder, check_frame, check_option, decoders};

static DECODERS: LazyLock<Vec<Decoder>> = LazyLock::new(decoders);

/// A law's decoders, and the bytes after the one that selects it.
fn select(data: &[u8]) -> Option<(&'static Decoder, &[u8])> {
    let (&which, rest) = data.split_first()?;
    Some((&DECODERS[usize::from(which) % DECODERS.len()], rest))
}

/// Decodes a frame in Rust and in C, for the law that the first byte selects. The second byte selects how many bytes of
/// the frame lie in one piece.
///
/// # Panics
/// The verdicts differ, or C writes a byte that is neither the value's nor the checksum's.
pub fn frame(data: &[u8]) {
    let Some((decoder, data)) = select(data) else { return };
    let Some((&linear, frame)) = data.split_first() else { return };
    check_frame(decoder, frame, usize::from(linear));
}

/// Reads a host's option from the options of a TCP header, in Rust and in C; the second byte selects the option's kind.
///
/// # Panics
/// They differ.
pub fn option(data: &[u8]) {
    let Some((decoder, data)) = select(data) else { return };
    let Some((&paper, options)) = data.split_first() else { return };
    let kind = if paper % 2 == 1 && decoder.layout.law == 0 { 42 } else { 253 };
    check_option(decoder, &options[..options.len().min(40)], kind);
}

/// Longest memory of a line that the target runs.
const MAX_HOLD_BYTES: usize = 1 << 16;

/// Parses the bytes as the delay line's configuration and as its probe's, and runs frames through the lines.
///
/// # Panics
/// A refusal says nothing, or a line loses or makes up a frame.
pub fn delay(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(why) = Probe::parse(&text) {
        assert!(!why.is_empty());
    }
    match Config::parse(&text) {
        Err(why) => assert!(!why.is_empty()),
        Ok(config) => {
            for (i, line) in config.lines.iter().enumerate().take(4) {
                if line.hold_bytes <= MAX_HOLD_BYTES {
                    run_line(line, config.seed, i, data);
                }
            }
        }
    }
}

/// Sends frames of the input's own bytes a microsecond apart; due frames leave.
fn run_line(config: &LineConfig, seed: u64, index: usize, data: &[u8]) {
    let mut line = Line::new(config, seed, index);
    let mut now = Nanos::new(1_700_000_000_000_000_000);
    line.start(now);
    for chunk in data.chunks(61) {
        line.accept(now, chunk);
        let by = now.after(500);
        let mut frames = Vec::new();
        line.due(by, 8, &mut frames);
        let count = frames.len();
        line.sent(count, by, now, by);
        now = now.after(1000);
    }
    // Far later, all leave that are ever due.
    let end = now.after(1 << 62);
    for _ in 0..4 * data.len() {
        let mut frames = Vec::new();
        line.due(end, 64, &mut frames);
        let count = frames.len();
        if count == 0 {
            break;
        }
        line.sent(count, end, now, now);
    }
    let counts = line.counts;
    let held = line.held() as u64;
    assert_eq!(counts.received + counts.duplicated, counts.lost + counts.overflow + counts.sent + held, "{counts:?}");
}
