//! Records calls of a law's C code compiled for the host. Each record has the hash of all state after the call.
//!
//! A test compares the records with calls of the same C code in a loaded kernel program. `kernel/replay.h` defines the
//! records and makes their calls.
//!
//! `cargo run -p waterfill-laws --example law_record -- LAW N FILE` writes N records of 96 bytes, the same for every run. A
//! record is twelve little-endian 64-bit numbers: the call, its eight inputs, a value in two, the hash.
//!
//! Calls are those of one link with two CPUs and one connection over it: load close to the capacity, packets from the source
//! through the link to the receiver, echoes back to the source. One value in fifty is random. Every 4096 records all begins
//! again, with another capacity, RTT and, in turn, another set of the law's parameters.

use std::io::Write as _;

use waterfill_laws::kernel::{KernelLaw, Record, Words};
use waterfill_laws::registry::ProtocolId;

/// Calls of a law, in the order of C's `enum replay_call`.
#[derive(Clone, Copy, Debug)]
enum Call {
    Start,
    Params,
    LinkSet,
    Count,
    Mark,
    Tick,
    Idle,
    Restore,
    SourceInit,
    Request,
    Forward,
    Ack,
    Limit,
    Loss,
    Timeout,
    Reduce,
    Tightens,
    Receive,
    Echo,
    Control,
    HostTimeOut,
}

/// Number of kinds of calls.
pub const CALLS: usize = Call::HostTimeOut as usize + 1;
/// Number of words in a record. `EPISODE` is the number of records between two starts.
const WORDS: usize = 12;
const EPISODE: u64 = 4096;
/// Size of a full packet in bytes.
const PACKET: u64 = 1500;

/// A wire value as two words of a record.
type Wire = [u64; 2];

struct Recorder<'a, W> {
    law: &'a KernelLaw,
    state: Words,
    out: &'a mut W,
    written: u64,
    count: u64,
    seed: u64,
}

impl<W: std::io::Write> Recorder<'_, W> {
    fn random(&mut self, n: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % n
    }

    /// Makes a call, and writes its record until `count` records are written. Returns the call's first result and the
    /// value that it wrote.
    fn call(&mut self, call: u64, inputs: &[u64], value: Wire) -> std::io::Result<(u64, Wire)> {
        let mut record: Record = [0; WORDS];
        record[0] = call;
        record[1..=inputs.len()].copy_from_slice(inputs);
        record[9..11].copy_from_slice(&value);
        record[11] = self.law.replay_step(&mut self.state, &record);
        if self.written < self.count {
            self.written += 1;
            for word in record {
                self.out.write_all(&word.to_le_bytes())?;
            }
        }
        let results = &self.state.words()[self.state.words().len() - 6..];
        Ok((results[0], [results[4], results[5]]))
    }

    fn make(&mut self, call: Call, inputs: &[u64]) -> std::io::Result<(u64, Wire)> {
        self.call(call as u64, inputs, [0; 2])
    }

    /// Returns the value or, in one of fifty calls, random bits.
    fn damaged(&mut self, value: Wire) -> Wire {
        if self.random(50) > 0 {
            return value;
        }
        [self.random(1 << 31) | self.random(1 << 31) << 31 | self.random(4) << 62, self.random(1 << 31)]
    }
}

/// Source end of a connection, with the state that TCP keeps.
struct Connection {
    now_us: u64,
    base_rtt_us: u64,
    delivered: u64,
    acked: u64,
}

impl Connection {
    /// Returns a C `struct law_tcp` of the connection as eight words.
    fn tcp<W: std::io::Write>(&mut self, recorder: &mut Recorder<'_, W>) -> [u64; 8] {
        let low = |a: u64, b: u64| (a & 0xffff_ffff) | b << 32;
        let srtt = 8 * self.base_rtt_us + recorder.random(2 * self.base_rtt_us + 8);
        let [recovering, app_limited, window_limited] =
            [30, 20, 2].map(|one_in: u64| u64::from(recorder.random(one_in) == 0));
        let in_flight = self.acked + recorder.random(1000);
        [
            self.now_us,
            low(srtt, self.base_rtt_us),
            low(self.delivered, self.acked),
            low(in_flight, PACKET),
            low(PACKET - 52, 1 + recorder.random(44)),
            low(recovering, app_limited),
            low(window_limited, 1),
            0,
        ]
    }
}

/// Writes `count` records of a law. The same arguments give the same records.
///
/// # Errors
/// An error from writing to `out`.
///
/// # Panics
/// There is no such law.
pub fn record(name: &str, count: u64, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let form = ProtocolId::by_name(name).and_then(ProtocolId::kernel).expect("a law with a kernel form");
    let (law, sets) = (form.law(), form.recorded());
    let mut r = Recorder { law, state: law.replay(), out, written: 0, count, seed: 1 };
    for episode in 0_usize.. {
        if r.written >= count {
            break;
        }
        let end = r.written + EPISODE;
        let capacity = 10_u64.pow(5 + r.random(7) as u32) * (1 + r.random(9));
        let base_rtt_us = 10_u64.pow(1 + r.random(6) as u32) * (1 + r.random(9));
        r.make(Call::Start, &[])?;
        let params = law.params(&sets[episode % sets.len()]);
        for (i, words) in params.words().chunks(6).enumerate() {
            let mut inputs = [0; 7];
            inputs[0] = 6 * i as u64;
            inputs[1..=words.len()].copy_from_slice(words);
            r.make(Call::Params, &inputs)?;
        }
        let target = [0, 900_000][r.random(2) as usize];
        let mut interval_us = r.make(Call::LinkSet, &[capacity, target])?.0;
        r.make(Call::SourceInit, &[PACKET, 10 * PACKET])?;
        let mut source = Connection { now_us: 1_000_000, base_rtt_us, delivered: 0, acked: 0 };
        let mut tick_us = source.now_us + interval_us;
        let mut echo = handshake(&mut r, &source)?;
        // An overloaded link, an idle one, and one in between.
        let load = [3, 12, 22][r.random(3) as usize];
        while r.written < end.min(count) {
            if source.now_us >= tick_us {
                let volume = capacity / 8 * interval_us / 1_000_000;
                for cpu in 0..2 {
                    let bytes = volume * (r.random(load) + 1) / 20;
                    r.make(Call::Count, &[cpu, bytes])?;
                }
                let queue = volume * r.random(load) * r.random(2) / 10;
                if r.random(20) == 0 {
                    let most = [3, 100_000][r.random(2) as usize];
                    let intervals = 1 + r.random(most);
                    r.make(Call::Idle, &[intervals, queue])?;
                    source.now_us += intervals * interval_us;
                }
                interval_us = r.make(Call::Tick, &[queue])?.0;
                tick_us = source.now_us + interval_us;
            }
            step(&mut r, &mut source, &mut echo, capacity)?;
            source.now_us += r.random((interval_us.min(source.base_rtt_us) / 4).max(2));
        }
    }
    Ok(())
}

/// Sends a SYN to the receiver and returns the receiver's echo.
fn handshake<W: std::io::Write>(r: &mut Recorder<'_, W>, source: &Connection) -> std::io::Result<Wire> {
    let asked = r.make(Call::Request, &[])?.1;
    let cpu = r.random(2);
    let marked = r.call(Call::Mark as u64, &[cpu, 60, 1, 1], asked)?.1;
    r.call(Call::Receive as u64, &[source.now_us, 0, 1], marked)?;
    Ok(r.make(Call::Echo, &[])?.1)
}

/// Records the calls for a packet, an acknowledgement or a rarer event.
fn step<W: std::io::Write>(
    r: &mut Recorder<'_, W>,
    source: &mut Connection,
    echo: &mut Wire,
    capacity: u64,
) -> std::io::Result<()> {
    match r.random(100) {
        0..50 => {
            let sent = r.make(Call::Forward, &[])?.1;
            let sent = r.damaged(sent);
            let segments = if r.random(3) == 0 { 1 + r.random(44) } else { 1 };
            let bytes = segments * (PACKET - r.random(2) * r.random(1400));
            let cpu = r.random(2);
            let marked = r.call(Call::Mark as u64, &[cpu, bytes, segments, 0], sent)?.1;
            let rtt = if r.random(10) == 0 { source.base_rtt_us + r.random(source.base_rtt_us) } else { 0 };
            let merged = 1 + r.random(segments);
            r.call(Call::Receive as u64, &[source.now_us, rtt, merged], marked)?;
        }
        50..90 => {
            *echo = r.make(Call::Echo, &[])?.1;
            let heard = r.damaged(*echo);
            source.acked = if r.random(10) == 0 { r.random(2000) } else { r.random(3) };
            source.delivered += source.acked;
            let tcp = source.tcp(r);
            let has_echo = u64::from(r.random(20) > 0) << 32;
            r.call(Call::Ack as u64 | has_echo, &tcp, heard)?;
            r.call(Call::Limit as u64, &tcp, [0; 2])?;
            r.call(Call::Control as u64, &tcp, [0; 2])?;
        }
        90 => *echo = handshake(r, source)?,
        91 => {
            let bits = r.random(44);
            let signal = r.random(1 << 31) << 13 >> bits;
            r.make(Call::Restore, &[signal])?;
        }
        92 => {
            let (tenths, target) = (1 + r.random(20), r.random(3) * 450_000);
            r.make(Call::LinkSet, &[capacity * tenths / 10 + 1, target])?;
        }
        93 => drop(r.make(Call::Loss, &[])?),
        94 => {
            r.make(Call::Timeout, &[])?;
            r.make(Call::HostTimeOut, &[])?;
        }
        95 => {
            let shift = 1 + r.random(8);
            r.make(Call::Reduce, &[shift])?;
        }
        96..98 => {
            let (evidence, us) = (r.random(1 << 23), r.random(1_000_000));
            r.make(Call::Tightens, &[evidence, us])?;
        }
        _ => {
            source.base_rtt_us = (source.base_rtt_us - r.random(2)).max(1);
            let tcp = source.tcp(r);
            r.call(Call::Ack as u64, &tcp, [0; 2])?;
        }
    }
    Ok(())
}

/// Runs the command line. The function is unused where a test includes this file as a module.
#[allow(dead_code, reason = "a test includes this file for `record`")]
fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let law = arguments.next();
    let (Some(law), Some(Ok(count)), Some(path)) = (law, arguments.next().map(|n| n.parse::<u64>()), arguments.next())
    else {
        eprintln!("law_record: must be a law, a number of records and a file, as in `rcp 100000 rcp.bin`");
        std::process::exit(2);
    };
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    record(&law, count, &mut out)?;
    out.flush()
}
