//! Records the results of the host-compiled `kernel/maxnet.h` and `kernel/host.h`. A test compares them bit for bit
//! with those of the same C in a loaded kernel program. Calls 9 to 11 also go to the source and receiver that the
//! simulator runs with `arithmetic = "kernel-host"`, whose limits and echoes must be the recorded ones.
//!
//! `cargo run -p waterfill-laws --example maxnet_record -- N FILE` writes N records of 64 bytes, the same for every run. A
//! record is eight little-endian 64-bit numbers: the call, its three inputs, its four results; unused ones are 0. All calls
//! use one `maxnet_params`, `maxnet_link`, `maxnet_receiver` and `maxnet_source`, and calls 9 to 11 a second source and
//! receiver with a `host_pace`; every file begins with call 0, and call 0 repeats every 4096 records.
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
//! | 9 | now; base_rtt, srtt · 2³²; field, acked · 2²⁴, recovering · 2⁴⁰, app_limited · 2⁴¹, window_limited · 2⁴² | `maxnet_host_echo`, `host_control` with prices | H |
//! | 10 | | `host_time_out` | H |
//! | 11 | now; rtt; field | `maxnet_host_receive`, `maxnet_echo` | as 6 |
//!
//! L is price; arrival_rate; promised_age; price_code. S is window; rate; xi; xi_low, mode · 2³². H is window, ack_clocked
//! · 2³², mode · 2⁴⁰; rate of pacing; xi; tau, pacing_boost · 2³².

#![allow(unsafe_code, reason = "the C takes plain integers and references to structs, and keeps nothing")]

use std::io::Write as _;

use waterfill_laws::params::Value;
use waterfill_laws::protocol::{Ack, Connection, Event, Limit, PacketKind, Received};
use waterfill_laws::registry::{AnyReceiver, AnySource, ProtocolId};
use waterfill_laws::units::{Duration, Instant, Volume};

/// The C's structs as 64-bit words; little-endian.
type Params = [u64; 5];
type Link = [u64; 13];
type Receiver = [u64; 4];
type Source = [u64; 12];
type Host = [u64; 5];
type HostTcp = [u64; 8];
type HostLimit = [u64; 2];

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
    safe fn waterfill_maxnet_host_init(host: &mut Host);
    safe fn waterfill_maxnet_host_ack(
        params: &Params,
        source: &mut Source,
        pace: &mut Host,
        tcp: &HostTcp,
        field: u32,
        send: &mut HostLimit,
    ) -> u32;
    safe fn waterfill_maxnet_host_time_out(host: &mut Host);
    safe fn waterfill_maxnet_host_receive(params: &Params, receiver: &mut Receiver, now: u64, rtt: u32, field: u32);
}

/// Bytes of a full packet, and packets of the first window.
const PACKET: u64 = 1500;
const FIRST_WINDOW: u64 = 10;

fn low(word: u64) -> u64 {
    word & 0xffff_ffff
}

#[derive(Default)]
struct State {
    params: Params,
    link: Link,
    receiver: Receiver,
    source: Source,
    host: HostState,
}

/// The state of calls 9 to 11.
#[derive(Default)]
struct HostState {
    receiver: Receiver,
    source: Source,
    host: Host,
    limit: HostLimit,
    /// Packets since the connection began, and since the law was called.
    delivered: u64,
    acked: u64,
    /// Both ends as the simulator has them.
    simulated: Option<(AnySource, AnyReceiver)>,
}

fn maxnet() -> ProtocolId {
    *ProtocolId::ALL.iter().find(|id| id.info().name == "maxnet").expect("the registry has it")
}

/// Returns the simulator's source and receiver with these flags of call 0.
fn simulated(flags: u64) -> (AnySource, AnyReceiver) {
    let mut params = maxnet().params();
    let order = if flags & 4 == 0 { "rate-first" } else { "xi-first" };
    for (name, value) in [
        ("arithmetic", Value::Word("kernel-host".into())),
        ("compensate", Value::Flag(flags & 1 == 1)),
        ("average", Value::Flag(flags & 2 == 2)),
        ("order", Value::Word(order.into())),
    ] {
        params.set(name, &value).expect("a parameter of MaxNet");
    }
    let packet = Volume::from_bytes(PACKET as f64);
    let initial_window = FIRST_WINDOW as f64 * packet;
    (params.source(&Connection { weight: 1.0, packet, initial_window, claimed_rtt: None, seed: 0 }), params.receiver())
}

/// An option of Fig. 4 with this field as echo and as price.
fn option_bytes(field: u64) -> [u8; 8] {
    let [.., a, b, c] = field.to_be_bytes();
    [42, 8, a, b, c, a, b, c]
}

fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

impl HostState {
    fn start(&mut self, params: &Params, flags: u64) {
        *self = Self { simulated: Some(simulated(flags)), limit: [0, FIRST_WINDOW], ..Self::default() };
        waterfill_maxnet_source_init(params, &mut self.source, PACKET as u32, PACKET * FIRST_WINDOW, 1000);
        waterfill_maxnet_host_init(&mut self.host);
    }

    fn answers(&self) -> [u64; 4] {
        let [window, clocked] = [low(self.limit[1]), self.limit[1] >> 32];
        let mode = low(self.source[11]);
        let boost = self.host[3] >> 32;
        [window | clocked << 32 | mode << 40, self.limit[0], self.source[5], low(self.source[10]) | boost << 32]
    }

    fn on_ack(&mut self, params: &Params, [now, rtts, rest]: [u64; 3]) {
        let (base_rtt, srtt) = (low(rtts), rtts >> 32);
        let (field, acked) = (rest & 0xff_ffff, rest >> 24 & 0xffff);
        let [recovering, app_limited, window_limited] = [40, 41, 42].map(|bit| rest >> bit & 1);
        let window = low(self.limit[1]);
        self.delivered += acked;
        self.acked += acked;
        let tcp = [
            now,
            low(srtt * 8) | base_rtt << 32,
            low(self.delivered) | low(self.acked) << 32,
            PACKET << 32,
            PACKET | 1 << 32,
            recovering | app_limited << 32,
            window_limited | 1 << 32,
            0,
        ];
        let Self { source, host, limit, .. } = self;
        if waterfill_maxnet_host_ack(params, source, host, &tcp, field as u32, limit) != 0 {
            self.acked = 0;
        }

        let simulated = &mut self.simulated.as_mut().expect("call 0 came first").0;
        let packets = |n: u64| n as f64 * Volume::from_bytes(PACKET as f64);
        // The window was full before this acknowledgement, or one packet short.
        let before = if window_limited == 1 { window.max(acked) } else { window - 1 };
        simulated.on_ack(&Ack {
            now: Instant::ZERO + micros(now),
            echo: &maxnet().decode_echo(&option_bytes(field)).expect("a valid option"),
            kind: PacketKind::Ack,
            acked: packets(acked),
            marked: Volume::ZERO,
            rtt: Some(micros(srtt)),
            smoothed_rtt: micros(srtt),
            base_rtt: micros(base_rtt),
            in_flight: packets(before - acked),
            recovering: recovering == 1,
            window_limited: app_limited == 0,
        });
        let Limit { window, pacing } = simulated.limit();
        let [rate, window_and_clock] = self.limit;
        assert_eq!(window, Some(packets(low(window_and_clock))), "the simulator's window");
        let paced = pacing.map(waterfill_laws::units::Rate::as_bps);
        let expected = match (rate, window_and_clock >> 32) {
            (0, _) => None,
            (_, 1) => Some(f64::INFINITY),
            _ => Some(rate as f64 * 8.0),
        };
        assert_eq!(paced, expected, "the simulator's pacing");
    }

    fn receive(&mut self, params: &Params, [now, rtt, field]: [u64; 3]) -> [u64; 4] {
        waterfill_maxnet_host_receive(params, &mut self.receiver, now, rtt as u32, field as u32);
        let echo = u64::from(waterfill_maxnet_echo(&self.receiver));
        let simulated = &mut self.simulated.as_mut().expect("call 0 came first").1;
        simulated.on_data(&Received {
            now: Instant::ZERO + micros(now),
            kind: PacketKind::Data,
            header: &maxnet().decode_header(&option_bytes(field)).expect("a valid option"),
            rtt: (rtt > 0).then(|| micros(rtt)),
        });
        let echoed = simulated.echo(Instant::ZERO + micros(now)).encode();
        assert_eq!(echoed[2..5], option_bytes(echo)[2..5], "the simulator's echo");
        [echo, self.receiver[0], low(self.receiver[2]), 0]
    }
}

impl State {
    fn call(&mut self, call: u64, [a, b, c]: [u64; 3]) -> [u64; 4] {
        let Self { params, link, receiver, source, host } = self;
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
                waterfill_maxnet_source_init(params, source, PACKET as u32, PACKET * FIRST_WINDOW, 1000);
                host.start(params, flags);
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
            9 => {
                host.on_ack(params, [a, b, c]);
                return host.answers();
            }
            10 => {
                waterfill_maxnet_host_time_out(&mut host.host);
                host.simulated.as_mut().expect("call 0 came first").0.on_event(Instant::ZERO, Event::Timeout);
                return host.answers();
            }
            11 => return host.receive(params, [a, b, c]),
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
            match random(130) {
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
                98..100 => {
                    base_rtt = (base_rtt - random(2)).max(1);
                    (8, [base_rtt, 0, 0])
                }
                // Also slow flows, whose tau is the time of their packets; the window is full for one in three.
                100..122 => {
                    let code = match random(20) {
                        _ if record % 4096 < 60 => 0, // no router has answered yet
                        0 => any,
                        1..8 => echo + random(1 << 19),
                        _ => echo,
                    };
                    let acked = if random(10) == 0 { random(2000) } else { 1 + random(2) };
                    let srtt = base_rtt + random(base_rtt / 4 + 1);
                    let flags = [40, 41].map(|bit| u64::from(random(20) == 0) << bit);
                    let full = u64::from(random(3) == 0 || acked >= low(state.host.limit[1])) << 42;
                    let rest = (code & 0xff_ffff) | acked << 24 | flags[0] | flags[1] | full;
                    (9, [now, base_rtt | srtt << 32, rest])
                }
                122 => (10, [0; 3]),
                _ => (11, [now, if random(9) == 0 { base_rtt + random(base_rtt) } else { 0 }, field]),
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
