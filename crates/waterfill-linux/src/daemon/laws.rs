//! The table of laws. To add one: its header in `waterfill-laws/kernel`, its two programs of a few lines in `bpf/`, its name
//! in build.rs, and its entry here.

use super::law::{ARRIVAL, Kind, Law, Parameter, Signal, SignalUnit};
use super::object::embedded;
use super::quantity;

const U32_MAX: u64 = u32::MAX as u64;
const MICRO: u64 = 1000;
const MILLI: u64 = 1_000_000;

const fn rate(name: &'static str, default: &'static str) -> Parameter {
    let range = (quantity::MIN_RATE_BPS, quantity::MAX_RATE_BPS);
    Parameter { name, kind: Kind::Rate, bytes: 8, default, range }
}

const fn time(name: &'static str, unit_ns: u64, default: &'static str, range: (u64, u64)) -> Parameter {
    Parameter { name, kind: Kind::Time(unit_ns), bytes: 4, default, range }
}

const fn parts(name: &'static str, of_one: f64, default: &'static str, range: (u64, u64)) -> Parameter {
    Parameter { name, kind: Kind::Number(of_one), bytes: 4, default, range }
}

const fn flag(name: &'static str, default: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Flag, bytes: 4, default, range: (0, 1) }
}

const fn choice(name: &'static str, words: &'static [&'static str], default: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Choice(words), bytes: 4, default, range: (0, U32_MAX) }
}

const RESERVED: Parameter = Parameter { name: "", kind: Kind::Reserved, bytes: 4, default: "", range: (0, 0) };

const fn signal(name: &'static str, title: &'static str, unit: SignalUnit, convert: fn(u64) -> f64) -> Signal {
    Signal { name, title, unit, convert }
}

/// Shares of one of 2^18, 2^34 and so on.
fn parts_of<const BITS: u32>(raw: u64) -> f64 {
    raw as f64 / 2_f64.powi(BITS.cast_signed())
}

fn signed_parts_of<const BITS: u32>(raw: u64) -> f64 {
    raw.cast_signed() as f64 / 2_f64.powi(BITS.cast_signed())
}

fn whole(raw: u64) -> f64 {
    raw as f64
}

fn micros(raw: u64) -> f64 {
    raw as f64 * 1e-6
}

/// Microseconds with 16 more bits, as seconds.
fn micros_16(raw: u64) -> f64 {
    raw as f64 / 65536e6
}

/// The rate that a code of -ln(rate / 1 Pbit/s) in 2^-18 stands for; 0: none.
fn logarithm_of_rate(code: u64) -> f64 {
    if code == 0 { 0.0 } else { 1e15 * (-(code as f64) / 2_f64.powi(18)).exp() }
}

/// AECP's places: 2^-32 octaves above a quarter of a packet per second.
fn aecp_place(place: u64) -> f64 {
    0.25 * parts_of::<32>(place).exp2()
}

/// AECP's value on the wire; 0: no router wrote.
fn aecp_value(value: u64) -> f64 {
    if value == 0 { 0.0 } else { 0.25 * (65535_u64.saturating_sub(value) as f64 / 1024.0).exp2() }
}

const fn arrival() -> Signal {
    signal(ARRIVAL, "arrival", SignalUnit::BitsPerSecond, whole)
}

/// XCP's parameters, links and connections, as its family has them too.
const XCP: &[Parameter] = &[
    parts("alpha", 1e6, "0.4", (1, 999_999)),
    parts("beta", 1e6, "0.226", (0, 999_999)),
    parts("gamma", 1e6, "0.1", (0, 999_999)),
    time("min_interval", MICRO, "1 ms", (1, 4_000_000)),
    time("max_interval", MICRO, "1 s", (1, 4_000_000)),
    time("first_interval", MICRO, "50 ms", (1, 4_000_000)),
    parts("first_window", 1e3, "1", (0, 1_000_000_000)),
    flag("halve_on_loss", "true"),
    RESERVED, // a connection's weight
    choice("counts", &["all", "own"], "all"),
];
const XCP_LINK: &[Signal] = &[
    signal("interval_s", "interval", SignalUnit::Seconds, micros),
    signal("spare_bps", "spare", SignalUnit::One, signed_parts_of::<0>),
    signal("shuffled_bps", "shuffled", SignalUnit::BitsPerSecond, whole),
    signal("persistent_queue_bytes", "standing", SignalUnit::One, whole),
];
const XCP_SOURCE: &[Signal] = &[
    signal("allowed_bytes", "allowed", SignalUnit::One, whole),
    signal("rtt_stated_s", "stated RTT", SignalUnit::Seconds, micros),
    signal("feedback_bytes", "feedback", SignalUnit::One, signed_parts_of::<8>),
];
const XCP_ECHOED: Signal = signal("feedback_bytes", "feedback", SignalUnit::One, signed_parts_of::<8>);

/// The laws; the first is the default.
pub(super) static LAWS: &[Law] = &[
    Law {
        name: "maxnet",
        host: embedded!("host_maxnet"),
        router: embedded!("router_maxnet"),
        parameters: &[
            rate("x_max", "1 Pbit/s"),
            parts("alpha", 1e3, "0.66", (1, 1570)),
            parts("eta", 1e3, "0.06", (1, 65535)),
            time("t", MILLI, "400 ms", (1, 100_000)),
            time("dt_min", MICRO, "1 us", (0, 1_000_000)),
            flag("average", "true"),
            flag("compensate", "true"),
            choice("order", &["rate-first", "xi-first"], "xi-first"),
            RESERVED,
            time("dt_p", MICRO, "1 ms", (1, 1_000_000)),
            time("t_0", MICRO, "130 ms", (2, 4_000_000_000)),
            flag("promise", "false"),
            RESERVED,
        ],
        link: &[
            signal("price_s", "price", SignalUnit::Seconds, parts_of::<34>),
            signal("price_min_s", "lowest", SignalUnit::Seconds, parts_of::<34>),
            arrival(),
        ],
        source: &[
            signal("price_s", "price", SignalUnit::Seconds, parts_of::<18>),
            signal("xi", "xi", SignalUnit::One, signed_parts_of::<34>),
        ],
        echoed: signal("price_s", "price", SignalUnit::Seconds, parts_of::<58>),
    },
    Law {
        name: "aecp",
        host: embedded!("host_aecp"),
        router: embedded!("router_aecp"),
        parameters: &[
            parts("alpha", 1e3, "2", (1, 1_000_000)),
            parts("beta", 1e3, "1", (1, 1_000_000)),
            time("t", MICRO, "2 s", (1, 1_000_000_000)),
            time("t_2", MICRO, "100 ms", (1000, 1_000_000)),
            parts("q_0", 1e3, "100", (0, U32_MAX)),
            parts("x_0", 1e3, "10", (250, U32_MAX)),
            choice("r_0", &["x_0", "capacity"], "x_0"),
            choice("form", &["printed", "exact"], "printed"),
            choice("step", &["round-trip", "acknowledgement"], "round-trip"),
            choice("ceiling", &["empty-queue", "capacity"], "empty-queue"),
            choice("rounding", &["carried", "nearest"], "carried"),
            RESERVED,
        ],
        link: &[
            signal("r", "r", SignalUnit::One, aecp_place),
            signal("r_max", "highest", SignalUnit::One, aecp_place),
            arrival(),
        ],
        source: &[signal("r", "r", SignalUnit::One, aecp_value), signal("x", "x", SignalUnit::One, aecp_place)],
        echoed: signal("r", "r", SignalUnit::One, aecp_value),
    },
    Law {
        name: "rcp",
        host: embedded!("host_rcp"),
        router: embedded!("router_rcp"),
        parameters: &[
            parts("alpha", 1e3, "0.4", (1, 1_000_000)),
            parts("beta", 1e3, "1", (0, 1_000_000)),
            parts("first_rate", 1e6, "0.05", (1, 1_000_000)),
            time("max_interval", MICRO, "10 ms", (1, 1_000_000)),
            time("first_rtt", MICRO, "200 ms", (1, 16_000_000)),
            Parameter { bytes: 4, range: (quantity::MIN_RATE_BPS, U32_MAX), ..rate("r_min", "24 kbit/s") },
            choice("average", &["traffic", "reluctant"], "traffic"),
            RESERVED,
        ],
        link: &[
            signal("rate_bps", "rate", SignalUnit::BitsPerSecond, parts_of::<10>),
            signal("mean_rtt_s", "mean RTT", SignalUnit::Seconds, micros_16),
            arrival(),
        ],
        source: &[signal("rate_heard_bps", "heard", SignalUnit::BitsPerSecond, logarithm_of_rate)],
        echoed: signal("rate_bps", "rate", SignalUnit::BitsPerSecond, logarithm_of_rate),
    },
    Law {
        name: "xcp",
        host: embedded!("host_xcp"),
        router: embedded!("router_xcp"),
        parameters: XCP,
        link: XCP_LINK,
        source: XCP_SOURCE,
        echoed: XCP_ECHOED,
    },
    Law {
        name: "pxcp",
        host: embedded!("host_pxcp"),
        router: embedded!("router_pxcp"),
        parameters: XCP,
        link: XCP_LINK,
        source: XCP_SOURCE,
        echoed: XCP_ECHOED,
    },
    Law {
        name: "ixcp",
        host: embedded!("host_ixcp"),
        router: embedded!("router_ixcp"),
        parameters: &[
            XCP[0],
            XCP[1],
            XCP[2],
            XCP[3],
            XCP[4],
            XCP[5],
            XCP[6],
            XCP[7],
            XCP[8],
            RESERVED, // iXCP counts all packets
            Parameter { name: "link", kind: Kind::Name, bytes: 4, default: "", range: (1, 65535) },
            choice("claim", &["full-link", "least-feedback"], "full-link"),
            choice("shuffle", &["paired", "draft"], "paired"),
            RESERVED,
        ],
        link: XCP_LINK,
        source: &[
            XCP_SOURCE[0],
            XCP_SOURCE[1],
            XCP_SOURCE[2],
            signal("bottleneck", "bottleneck", SignalUnit::One, whole),
        ],
        echoed: XCP_ECHOED,
    },
];

#[cfg(test)]
mod tests {
    use super::LAWS;
    use crate::daemon::{object, privileges};

    /// Needs root and skips without.
    #[test]
    fn the_kernel_accepts_the_programs_of_every_law() {
        if let Err(why) = privileges::check() {
            eprintln!("skipped: {why}");
            return;
        }
        for law in LAWS {
            for (role, bytes) in [("host", law.host), ("router", law.router)] {
                let loaded = object::open(bytes).unwrap().load();
                assert!(loaded.is_ok(), "{} {role}: {:#}", law.name, loaded.unwrap_err());
            }
        }
    }
}
