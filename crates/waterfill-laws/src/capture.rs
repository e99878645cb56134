//! Kernel option values of simulated packets, for captures of simulated runs.
//!
//! In kernel arithmetic a packet carries the value itself. In real numbers its header is a paper's, and [`Values`] converts.

use crate::kernel::{KernelLaw, VALUE_MAX, Value};
use crate::math::{self, two_to};
use crate::protocols::{aecp, jetmax, xcp};
use crate::registry::{AnyEcho, AnyHeader, AnyParams};

/// Converter from the headers of a connection's packets to kernel option values.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    law: &'static KernelLaw,
    packet_bytes: f64,
    /// RTT that an XCP data packet stated last, in seconds. `total` is the sum of all echoes, which a kernel returns.
    rtt_s: f64,
    total: f64,
}

impl Values {
    /// Creates the converter for a connection with packets of this size. Returns `None` for a protocol without an
    /// option, and for MaxNet's price in a CSIG tag, which is in front of the captured IP header.
    #[must_use]
    pub fn new(params: &AnyParams, packet_bytes: u16) -> Option<Self> {
        let law = params.protocol().law()?;
        if matches!(params, AnyParams::MaxNet(params) if params.tag().is_some()) {
            return None;
        }
        Some(Self { law, packet_bytes: f64::from(packet_bytes), rtt_s: 0.0, total: 0.0 })
    }

    /// Returns the protocol's law.
    #[must_use]
    pub const fn law(&self) -> &'static KernelLaw {
        self.law
    }

    /// Returns the request value of a server's SYN-ACK: the flag of MaxNet and MaxNet 2006, or zeros for any other law.
    #[must_use]
    pub fn request(&self) -> Value {
        match self.law.number() {
            0 | 1 => of_u24(1 << 23),
            _ => [0; VALUE_MAX],
        }
    }

    /// Returns the option value of data with this header.
    pub fn forward(&mut self, header: &AnyHeader) -> Value {
        match header {
            AnyHeader::Kernel(header) => header.value,
            AnyHeader::MaxNet(header) | AnyHeader::MaxNet2006(header) => of_u24(header.price.bits()),
            AnyHeader::Aecp(header) => aecp(*header),
            AnyHeader::Vcp(load) => of_u24(*load as u32),
            AnyHeader::Rcp(header) => {
                let mut value = of_u24(header.rate.rate().map_or(0, rate_code));
                value[3..5].copy_from_slice(&rtt_code(header.rtt).to_be_bytes());
                value
            }
            AnyHeader::Xcp(header) | AnyHeader::PXcp(header) => self.xcp(header),
            AnyHeader::IXcp(header) => {
                let mut value = self.xcp(&header.congestion);
                value[11..13].copy_from_slice(&name(header.bottleneck));
                value[13..15].copy_from_slice(&name(header.next_bottleneck));
                value
            }
            AnyHeader::JetMax(header) => {
                let jetmax::Header { rate, interval, loss, target, hops, bottleneck, next } = *header;
                // δ = w s / x.
                let weight = f64::from(interval) * f64::from(rate) / (8.0 * self.packet_bytes);
                let mut value = jetmax_rates(rate, share(rate, loss, weight, next), target);
                value[9] = weight_byte(weight);
                value[10..12].copy_from_slice(&routers([hops, bottleneck, next]));
                value
            }
            _ => [0; VALUE_MAX],
        }
    }

    /// Returns the option value of an acknowledgement with this echo.
    ///
    /// `counts` is true if the echo is seen for the first time. A kernel that returns a sum then adds the echo to it.
    pub fn echo(&mut self, echo: &AnyEcho, counts: bool) -> Value {
        match echo {
            AnyEcho::Kernel(echo) => echo.value,
            AnyEcho::MaxNet(echo) | AnyEcho::MaxNet2006(echo) => of_u24(echo.echo.bits()),
            AnyEcho::Aecp(echo) => aecp(*echo),
            AnyEcho::Vcp(load) => of_u24(*load as u32),
            AnyEcho::Rcp(echo) => of_u24(echo.rate.rate().map_or(0, rate_code)),
            AnyEcho::Xcp(echo) | AnyEcho::PXcp(echo) => self.xcp_total(*echo, counts),
            AnyEcho::IXcp(echo) => {
                let mut value = self.xcp_total(echo.congestion, counts);
                value[6..8].copy_from_slice(&name(echo.next_bottleneck));
                value
            }
            AnyEcho::JetMax(echo) => {
                let jetmax::Echo { rate, loss, target, bottleneck, next } = *echo;
                let mut value = jetmax_rates(rate, share(rate, loss, 1.0, next), target);
                value[9..11].copy_from_slice(&routers([0, bottleneck, next]));
                value
            }
            _ => [0; VALUE_MAX],
        }
    }

    /// Returns the value of a katabi-2002 or draft-falk header, in the scales of `kernel/xcp.h`.
    fn xcp(&mut self, header: &xcp::Header) -> Value {
        let (rtt_s, per_byte_s, feedback) = match *header {
            xcp::Header::Katabi { rtt, cwnd, feedback } => {
                let (rtt, cwnd) = (f64::from(rtt), f64::from(cwnd));
                let per_s = (feedback < f32::MAX && rtt > 0.0).then(|| f64::from(feedback) / rtt);
                (rtt, if cwnd > 0.0 { rtt / cwnd } else { 0.0 }, per_s)
            }
            xcp::Header::Falk { rtt, x, delta_throughput } => {
                let seconds = |ticks: u32| f64::from(ticks) / f64::from(1 << 28);
                let per_s = (delta_throughput < i32::MAX).then(|| f64::from(delta_throughput));
                (seconds(rtt), seconds(x) / self.packet_bytes, per_s)
            }
        };
        self.rtt_s = rtt_s;
        let mut value = [0; VALUE_MAX];
        write_code(&mut value, 0, rtt_s * two_to(24));
        write_code(&mut value, 3, per_byte_s * two_to(52));
        if let Some(per_s) = feedback {
            let zero = two_to(39);
            let word = (zero + per_s * 256.0).clamp(1.0, 2.0 * zero - 1.0) as u64;
            value[6..11].copy_from_slice(&word.to_be_bytes()[3..]);
        }
        value
    }

    /// Returns the value that holds the sum of all feedback, as a kernel returns it (XCP-r).
    fn xcp_total(&mut self, echo: xcp::Echo, counts: bool) -> Value {
        let change = match echo {
            xcp::Echo::Window(bytes) => f64::from(bytes),
            xcp::Echo::Throughput(change) => f64::from(change) * self.rtt_s,
            xcp::Echo::Total(total) => {
                self.total = f64::from(total);
                0.0
            }
        };
        if counts {
            self.total += change;
        }
        let heard = 1 << 47;
        let total = ((self.total * 256.0) as i64 as u64) % heard;
        let mut value = [0; VALUE_MAX];
        value[..6].copy_from_slice(&(heard | total).to_be_bytes()[2..]);
        value
    }
}

/// Returns the kernel's value of an AECP factor. Codes count up from the slowest rate; kernel values count up from the
/// fastest rate.
fn aecp(header: aecp::Header) -> Value {
    of_u24(u32::from(u16::MAX - header.factor.code()))
}

fn of_u24(word: u32) -> Value {
    let mut value = [0; VALUE_MAX];
    value[..3].copy_from_slice(&word.to_be_bytes()[1..]);
    value
}

/// Returns a link's identifier in the 16 bits of iXCP's option value. Larger identifiers become 65,535.
fn name(identifier: u32) -> [u8; 2] {
    u16::try_from(identifier).unwrap_or(u16::MAX).to_be_bytes()
}

/// Returns the code −ln(R / 10¹⁵ bit/s) in units of 2⁻¹⁸, rounded down and limited to 1 … 2²³ − 1. The C function
/// `fixed_rate_code()` does the same.
fn rate_code(rate: crate::units::Rate) -> u32 {
    let code = (-math::ln(rate.as_bps() / 1e15) * f64::from(1 << 18)).floor();
    code.clamp(1.0, f64::from((1 << 23) - 1)) as u32
}

/// Returns the code of an RTT, as the C function `rcp_rtt_code()` does.
fn rtt_code(rtt_us: u32) -> u16 {
    if rtt_us == 0 {
        return 0;
    }
    let rtt = rtt_us.clamp(2, 1 << 23);
    let exponent = rtt.ilog2();
    let fraction = ((u64::from(rtt) << 12 >> exponent) + 1) >> 1;
    ((exponent << 11) + fraction as u32 - (1 << 11)) as u16
}

/// Writes the nearest 24-bit code of a number, as the C function `float_code()` does.
fn write_code(value: &mut Value, at: usize, number: f64) {
    let whole = number.round().max(0.0) as u64;
    let shift = (u64::BITS - whole.leading_zeros()).saturating_sub(20);
    let rounded = if shift > 0 { ((whole >> (shift - 1)) + 1) >> 1 } else { whole };
    let code = (rounded + (u64::from(shift) << 19)).min((1 << 24) - 1);
    value[at..at + 3].copy_from_slice(&code.to_be_bytes()[5..]);
}

fn jetmax_rates(rate: f32, share: f64, target: f32) -> Value {
    let mut value = [0; VALUE_MAX];
    write_code(&mut value, 0, f64::from(rate));
    write_code(&mut value, 3, share);
    write_code(&mut value, 6, f64::from(target));
    value
}

/// Returns the rate share s = (1 − p) x / w for a JetMax loss p, at least 1. Returns 0 if no router has proposed a
/// share.
fn share(rate: f32, loss: f32, weight: f64, next: u8) -> f64 {
    let proposed = (1.0 - f64::from(loss)) * f64::from(rate) / weight;
    if next > 0 && proposed.is_finite() { proposed.max(1.0) } else { 0.0 }
}

/// Returns the code byte of a weight, (16 + m) 2^(e − 8), as the C function `jetmax_weight()` does.
fn weight_byte(weight: f64) -> u8 {
    let scaled = ((weight * 256.0) as u32).clamp(16, 3968 << 8);
    let shift = scaled.ilog2() - 4;
    let rounded = if shift > 0 { ((scaled >> (shift - 1)) + 1) >> 1 } else { scaled };
    ((shift << 4) + rounded - 16) as u8
}

/// Returns JetMax's R_T, R_S and R_N, packed in 5 bits each.
fn routers(numbers: [u8; 3]) -> [u8; 2] {
    let [here, own, next] = numbers.map(|number| u16::from(number.min(31)));
    (here << 10 | own << 5 | next).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Ack, PacketKind, Passing, Received, Sending, Wire as _};
    use crate::protocols::rcp;
    use crate::registry::{ProtocolId, kernel_protocols};
    use crate::testing::{connection, link};
    use crate::units::{Duration, Instant, Rate, Volume};

    #[test]
    fn values_of_real_headers_by_hand() {
        let values = |params, header: &AnyHeader| Values::new(&params, 1000).unwrap().forward(header);
        // −ln(10⁸/10¹⁵) = 7 ln 10 = 16.118; in 2⁻¹⁸ 4225262 = 0x4078ee. 100 ms = 2^16 (1 + 0.526) µs: 16 · 2048 + 1077.
        let mut wire = [0; 12];
        wire[..4].copy_from_slice(&1e8_f32.to_be_bytes());
        wire[8..].copy_from_slice(&100_000_u32.to_be_bytes());
        let header = AnyHeader::Rcp(rcp::Header::decode(&wire).unwrap());
        let value = values(AnyParams::Rcp(rcp::Params::default()), &header);
        assert_eq!(value[..5], [0x40, 0x78, 0xee, 0x84, 0x35]);
        // 125 ms in 2⁻²⁴ s is 2²¹, of exponent 2: code 3 2¹⁹. 1 µs a byte is 2³² 1.04858 2⁻⁵² s, of exponent 13 and fraction
        // 0.04858. 2.5 bytes a packet in 125 ms are 20 byte/s: 2³⁹ + 5120.
        let header = AnyHeader::Xcp(xcp::Header::Katabi { rtt: 0.125, cwnd: 125_000.0, feedback: 2.5 });
        let value = values(AnyParams::Xcp(xcp::Params::default()), &header);
        assert_eq!(value[..11], [0x18, 0, 0, 0x70, 0x63, 0x7c, 0x80, 0, 0, 0x14, 0]);
        // draft-falk states the same RTT in 2⁻²⁸ s and X, the RTT per packet of the window, in the same unit. 20 byte/s
        // as before.
        let x = (1e-3 * f64::from(1 << 28)) as u32;
        let header = AnyHeader::Xcp(xcp::Header::Falk { rtt: 1 << 25, x, delta_throughput: 20 });
        let falk = values(AnyParams::Xcp(xcp::Params::default()), &header);
        assert_eq!((&falk[..3], &falk[6..11]), (&value[..3], &value[6..11]));
        // 10 Mbit/s of weight 2 in packets of 1000 bytes: δ = 2 · 8000/10⁷ s. p = 0.5: a share of 2.5 Mbit/s.
        let header =
            jetmax::Header { rate: 1e7, interval: 1.6e-3, loss: 0.5, target: 1e6, hops: 2, bottleneck: 1, next: 2 };
        let value = values(AnyParams::JetMax(jetmax::Params::default()), &AnyHeader::JetMax(header));
        let code = |number: f64| {
            let mut value = [0; VALUE_MAX];
            write_code(&mut value, 0, number);
            [value[0], value[1], value[2]]
        };
        assert_eq!([code(1e7), code(2.5e6), code(1e6)].as_flattened(), &value[..9]);
        assert_eq!(value[9..12], [0x50, 2 << 2, 1 << 5 | 2]);
    }

    /// Every law of the kernel has values for a header that a router has written in real numbers, and for the echo of
    /// this header.
    #[test]
    fn every_law_of_the_kernel_has_values() {
        let link = link(1e8, 0.0);
        for (name, _) in kernel_protocols() {
            let params = ProtocolId::by_name(name).expect("a protocol").params();
            let (mut router, mut receiver) = (params.router(&link), params.receiver());
            let mut source = params.source(&connection());
            let mut values = Values::new(&params, 1500).expect("a law");
            let [mut forward, mut echo] = [[0; VALUE_MAX]; 2];
            // A source learns its RTT from the first acknowledgement.
            for ms in [0, 10] {
                let (now, rtt) = (Instant::ZERO + Duration::from_millis(ms), Duration::from_millis(10));
                let (volume, kind) = (Volume::from_bytes(1500.0), PacketKind::Data);
                let mut header = source.stamp(&Sending::new(now, kind, volume));
                router.on_arrival(&link, &mut Passing { now, volume, packets: 1.0, kind, header: Some(&mut header) });
                receiver.on_data(&Received { now, kind, header: &header, rtt: Some(rtt) });
                let returned = receiver.echo(now);
                source.on_ack(&Ack::new(now + rtt, &returned, rtt));
                (forward, echo) = (values.forward(&header), values.echo(&returned, true));
            }
            for (value, function) in [(forward, "forward"), (echo, "echo")] {
                assert!(value != [0; VALUE_MAX], "{name}: src/capture.rs needs a line in Values::{function}()");
            }
        }
    }

    #[test]
    fn codes_are_those_of_the_kernel() {
        // float.h: below 2²⁰ the number itself, then the fraction with a leading one.
        let mut value = [0; VALUE_MAX];
        for (number, code) in [(0.0, 0), (1_048_575.0, 0x0f_ffff), (1_048_576.0, 0x10_0000), (2_097_152.0, 0x18_0000)] {
            write_code(&mut value, 0, number);
            assert_eq!(u32::from_be_bytes([0, value[0], value[1], value[2]]), code, "{number}");
        }
        assert_eq!([1, 2, 3, 31].map(|weight| weight_byte(f64::from(weight))), [0x40, 0x50, 0x58, 0x8f]);
        assert_eq!(rate_code(Rate::from_bps(1e15)), 1, "0 is: no router");
        assert_eq!(rtt_code(2048), 11 << 11);
    }
}
