//! Records the results of the host-compiled `kernel/maxnet.h`. A test compares them bit for bit with those of the same C
//! in a loaded kernel program.
//!
//! `cargo run -p waterfill-laws --example maxnet_record -- N FILE` writes N records of 64 bytes, the same for every run. A
//! record is eight little-endian 64-bit numbers: the call, its three inputs, its four results; unused ones are 0. All calls
//! use one `maxnet_params`, `maxnet_link`, `maxnet_receiver` and `maxnet_source`; every file begins with call 0, and
//! call 0 repeats every 4096 records.
//!
//! | call | inputs | C | results |
//! |---|---|---|---|
//! | 0 | capacity; mu, dt_p · 2³²; t_0, flags · 2³² | `maxnet_params_default`, then compensate = flags bit 0, average = bit 1, xi_first = bit 2; `maxnet_link_init` with x_max, t of the params, promise = bit 3; the receiver zeroed; `maxnet_source_init` with 1500 B, 15000 B, weight 1000 | L |
//! | 1 | bytes; queue | `maxnet_tick` | L |
//! | 2 | intervals; queue | `maxnet_idle` | L |
//! | 3 | capacity; mu | `maxnet_link_set` | L |
//! | 4 | field | `maxnet_mark` | field; promised |
//! | 5 | field | `maxnet_mark_price` | field |
//! | 6 | now; rtt; field | `maxnet_receive`, `maxnet_echo` | echo; average; rtt |
//! | 7 | now; base_rtt; field | `maxnet_ack` | S |
//! | 8 | base_rtt | `maxnet_base_rtt` | S |
//!
//! L is price; arrival_rate; promised_age; price_code. S is window; rate; xi; xi_low, mode · 2³².

#![allow(unsafe_code, reason = "the C takes plain integers and references to structs, and keeps nothing")]

use std::io::Write as _;
use waterfill_laws as _; // links the C

/// The C's structs as 64-bit words; little-endian.
type Params = [u64; 5];
type Link = [u64; 13];
type Receiver = [u64; 4];
type Source = [u64; 12];

unsafe extern "C" {
    safe fn waterfill_maxnet_params_default(params: &mut Params);
    safe fn waterfill_maxnet_link_init(
        link: &mut Link,
        capacity: u64,
        x_max: u64,
        t: u32,
        mu: u32,
        dt_p: u32,
        t_0: u32,
        promise: u32,
    );
    safe fn waterfill_maxnet_link_set(link: &mut Link, capacity: u64, mu: u32);
    safe fn waterfill_maxnet_tick(link: &mut Link, bytes: u64, queue: u64);
    safe fn waterfill_maxnet_idle(link: &mut Link, intervals: u64, queue: u64);
    safe fn waterfill_maxnet_mark(link: &mut Link, field: u32) -> u32;
    safe fn waterfill_maxnet_mark_price(link: &Link, field: u32) -> u32;
    safe fn waterfill_maxnet_receive(params: &Params, receiver: &mut Receiver, now: u64, rtt: u32, field: u32);
    safe fn waterfill_maxnet_echo(receiver: &Receiver) -> u32;
    safe fn waterfill_maxnet_source_init(params: &Params, source: &mut Source, packet: u32, window: u64, weight: u32);
    safe fn waterfill_maxnet_ack(params: &Params, source: &mut Source, now: u64, base_rtt: u32, field: u32);
    safe fn waterfill_maxnet_base_rtt(params: &Params, source: &mut Source, base_rtt: u32);
}

fn low(word: u64) -> u64 {
    word & 0xffff_ffff
}

#[derive(Default)]
struct State {
    params: Params,
    link: Link,
    receiver: Receiver,
    source: Source,
}

impl State {
    fn call(&mut self, call: u64, [a, b, c]: [u64; 3]) -> [u64; 4] {
        let Self { params, link, receiver, source } = self;
        match call {
            0 => {
                let flags = c >> 32;
                waterfill_maxnet_params_default(params);
                // Words 2 to 4 are t, dt_min; average, compensate; xi_first, reserved.
                params[3] = (flags >> 1 & 1) | ((flags & 1) << 32);
                params[4] = flags >> 2 & 1;
                let (x_max, t) = (params[0], low(params[2]) as u32);
                waterfill_maxnet_link_init(
                    link,
                    a,
                    x_max,
                    t,
                    b as u32,
                    (b >> 32) as u32,
                    c as u32,
                    (flags >> 3) as u32 & 1,
                );
                *receiver = Receiver::default();
                waterfill_maxnet_source_init(params, source, 1500, 15_000, 1000);
            }
            1 => waterfill_maxnet_tick(link, a, b),
            2 => waterfill_maxnet_idle(link, a, b),
            3 => waterfill_maxnet_link_set(link, a, b as u32),
            4 => return [waterfill_maxnet_mark(link, a as u32).into(), link[7], 0, 0],
            5 => return [waterfill_maxnet_mark_price(link, a as u32).into(), 0, 0, 0],
            6 => {
                waterfill_maxnet_receive(params, receiver, a, b as u32, c as u32);
                return [waterfill_maxnet_echo(receiver).into(), receiver[0], low(receiver[2]), 0];
            }
            7 => waterfill_maxnet_ack(params, source, a, b as u32, c as u32),
            _ => waterfill_maxnet_base_rtt(params, source, a as u32),
        }
        if call < 4 {
            [link[3], link[6], link[8], low(link[10])]
        } else {
            // xi_low, price; base_rtt, packet; mode, has_price are words 9 to 11.
            [source[0], source[1], source[5], low(source[9]) | (low(source[11]) << 32)]
        }
    }
}

/// Writes `count` records; the same for every call.
///
/// # Errors
/// What `out` says.
pub fn record(count: u64, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let mut seed = 1_u64;
    let mut random = move |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let mut state = State::default();
    let (mut now, mut capacity, mut base_rtt) = (0, 0, 0);
    let (mut field, mut echo) = (0, 0);
    for record in 0..count {
        let any = random(1 << 24);
        let (call, inputs) = if record % 4096 == 0 {
            capacity = 10_u64.pow(5 + random(7) as u32) * (1 + random(9));
            base_rtt = 10_u64.pow(1 + random(6) as u32) * (1 + random(9));
            let dt_p = [10, 100, 1000, 10_000][random(4) as usize];
            let t_0 = dt_p * (2 + random(200));
            (0, [capacity, (500_000 + random(500_001)) | (dt_p << 32), t_0 | (random(16) << 32)])
        } else {
            // Load close to the capacity, and prices from the link through the receiver to the source; one field in a hundred
            // is random.
            match random(100) {
                0..20 => (1, [capacity / 8 * random(2001) / 1_000_000, capacity / 8 * random(20) / 1000, 0]),
                20..24 => (2, [random(1000), capacity / 8 * random(20) / 1000, 0]),
                24 => (3, [capacity * (1 + random(20)) / 10 + 1, random(1_000_001), 0]),
                25 => (4, [any, 0, 0]),
                26..45 => (4, [if record % 4096 < 40 { 1 << 23 } else { 0 }, 0, 0]),
                45..50 => (5, [any & 0x7f_ffff, 0, 0]),
                50..74 => (6, [now, if random(20) == 0 { base_rtt + random(base_rtt) } else { 0 }, field]),
                74 => (6, [now, any, any]),
                75..97 => (7, [now, base_rtt, echo]),
                97 => (7, [now, base_rtt, any]),
                _ => {
                    base_rtt = (base_rtt - random(2)).max(1);
                    (8, [base_rtt, 0, 0])
                }
            }
        };
        now += random(base_rtt / 20 + 2);
        let answers = state.call(call, inputs);
        match call {
            4 => field = answers[0],
            6 => echo = answers[0],
            _ => {}
        }
        for number in [call].into_iter().chain(inputs).chain(answers) {
            out.write_all(&number.to_le_bytes())?;
        }
    }
    Ok(())
}

/// The command line; unused where a test includes this file as a module.
#[allow(dead_code, reason = "a test includes this file for `record`")]
fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(Ok(count)), Some(path)) = (arguments.next().map(|n| n.parse::<u64>()), arguments.next()) else {
        eprintln!("maxnet_record: expected a number of records and a file, as in `100000 maxnet.bin`");
        std::process::exit(2);
    };
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    record(count, &mut out)?;
    out.flush()
}
