//! The table of laws. To add one: its header in `waterfill-laws/kernel`, its name in build.rs, and its entry here.

use super::law::{ARRIVAL, Kind, Law, Parameter, Signal, SignalUnit, Words};
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

const fn count(name: &'static str, default: &'static str, range: (u64, u64)) -> Parameter {
    Parameter { name, kind: Kind::Number(1.0), bytes: 4, default, range }
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
fn parts_of<const BITS: i32>(raw: u64) -> f64 {
    raw as f64 / 2_f64.powi(BITS)
}

fn signed_parts_of<const BITS: i32>(raw: u64) -> f64 {
    i64::from_ne_bytes(raw.to_ne_bytes()) as f64 / 2_f64.powi(BITS)
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

const fn words(value: &'static str, unmoved: &'static str) -> Words {
    Words { value, unmoved, controlled: "controlled" }
}

const PRICE: Words = Words { value: "a price", unmoved: "the price does not rise", controlled: "priced" };
const FEEDBACK: Words = words("feedback", "the feedback is not negative");

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
/// XCP, or a form of it with the same parameters.
const fn xcp(name: &'static str, host: &'static [u8], router: &'static [u8]) -> Law {
    Law { name, host, router, parameters: XCP, link: XCP_LINK, source: XCP_SOURCE, echoed: XCP_ECHOED, words: FEEDBACK }
}

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
        words: PRICE,
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
        words: words("a factor", "the factor does not fall"),
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
        words: words("a rate", "the rate does not fall"),
    },
    xcp("xcp", embedded!("host_xcp"), embedded!("router_xcp")),
    xcp("pxcp", embedded!("host_pxcp"), embedded!("router_pxcp")),
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
        words: FEEDBACK,
    },
    Law {
        name: "jetmax",
        host: embedded!("host_jetmax"),
        router: embedded!("router_jetmax"),
        parameters: &[
            rate("x_min", "10 kbit/s"),
            parts("gamma", 1e6, "0.95", (1, 1_000_000)),
            parts("tau", 1e6, "0.6", (1, 1_999_999)),
            time("interval", MICRO, "100 ms", (1000, 10_000_000)),
            parts("epsilon", 1e6, "0.02", (0, 999_999)),
            parts("urgent", 1e6, "0.1", (0, 999_999)),
            RESERVED, // a connection's weight
        ],
        link: &[
            signal("target_bps", "target", SignalUnit::BitsPerSecond, whole),
            signal("flows", "flows", SignalUnit::One, parts_of::<20>),
            signal("unresponsive_bps", "others", SignalUnit::BitsPerSecond, whole),
        ],
        source: &[
            signal("target_bps", "target", SignalUnit::BitsPerSecond, whole),
            signal("bottleneck", "bottleneck", SignalUnit::One, whole),
        ],
        echoed: signal("share", "share", SignalUnit::One, whole),
        words: words("a share", "the share does not fall"),
    },
    Law {
        name: "vcp",
        host: embedded!("host_vcp"),
        router: embedded!("router_vcp"),
        parameters: &[
            time("t_rho", MICRO, "200 ms", (100, 10_000_000)),
            time("t_q", MICRO, "10 ms", (100, 10_000_000)),
            parts("kappa_q", 1e3, "0.5", (0, 65535)),
            parts("gamma", 1e6, "0.98", (1, 1_000_000)),
            parts("queue_weight", 1e6, "0.25", (1, 1_000_000)),
            parts("xi", 1e6, "0.0625", (1, 1_000_000)),
            parts("alpha", 1e3, "1", (1, 1_048_576)),
            parts("beta", 1e6, "0.875", (1, 999_999)),
            choice("freeze", &["always", "overload"], "always"),
            flag("whole_percent", "false"),
            time("t_d", MICRO, "200 ms", (1000, 10_000_000)),
            RESERVED,
        ],
        link: &[
            signal("load_code", "code", SignalUnit::One, whole),
            signal("load_factor", "load factor", SignalUnit::One, parts_of::<24>),
            arrival(),
        ],
        source: &[
            signal("load_code", "code", SignalUnit::One, whole),
            signal("window_packets_exact", "packets", SignalUnit::One, parts_of::<32>),
        ],
        echoed: signal("load_code", "code", SignalUnit::One, whole),
        words: words("a load code", "the load code does not rise"),
    },
    Law {
        name: "maxnet2006",
        host: embedded!("host_maxnet2006"),
        router: embedded!("router_maxnet2006"),
        parameters: &[
            rate("x_max", "1 Pbit/s"),
            parts("alpha", 1e3, "0.3", (1, 1570)),
            parts("eta", 1e3, "0.14", (1, 65535)),
            time("t", MILLI, "50 ms", (1, 100_000)),
            time("dt_source", MICRO, "1 ms", (0, 1_000_000)),
            time("rtt_unit", MICRO, "1 ms", (1, 1_000_000)),
            parts("rateinc", 1e3, "1.25", (1001, 16_000)),
            count("mindeltaq", "16000", (0, U32_MAX)),
            count("wnd_update_freq", "1", (1, U32_MAX)),
            count("max_wnd", "65535", (1, 1 << 26)),
            flag("average", "true"),
            flag("compensate", "true"),
            RESERVED,
            parts("epsilon", 1e6, "0", (0, 1_000_000)),
            count("qs_min_divisor", "128", (1, U32_MAX)),
            time("dt", MICRO, "1 ms", (1, 1_000_000)),
            flag("quickstart", "true"),
        ],
        link: &[
            signal("price_s", "price", SignalUnit::Seconds, parts_of::<34>),
            signal("price_min_s", "lowest", SignalUnit::Seconds, parts_of::<34>),
            arrival(),
        ],
        source: &[
            signal("price_s", "price", SignalUnit::Seconds, parts_of::<34>),
            signal("xi", "xi", SignalUnit::One, signed_parts_of::<34>),
        ],
        echoed: signal("price_s", "price", SignalUnit::Seconds, parts_of::<18>),
        words: PRICE,
    },
];

#[cfg(test)]
mod tests {
    use libbpf_rs::HasSize as _;
    use libbpf_rs::btf::Btf;
    use libbpf_rs::btf::types::{MemberAttr, Struct};

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

    /// The table and the law's header agree: sizes, and the place of every member that has a parameter's name.
    #[test]
    fn parameters_have_the_places_of_the_laws_structure() {
        for law in LAWS {
            let path = format!("{}/host_{}.bpf.o", env!("OUT_DIR"), law.name);
            let btf = Btf::from_path(&path).unwrap();
            let params: Struct<'_> = btf.type_by_name("law_params").unwrap();
            let members = |of: &Struct<'_>, at: u32| -> Vec<(String, u32)> {
                let place = |attr: MemberAttr| match attr {
                    MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. } => at + offset / 8,
                };
                of.iter().map(|m| (m.name.unwrap_or_default().to_string_lossy().into_owned(), place(m.attr))).collect()
            };
            let mut found = members(&params, 0);
            // MaxNet's own parameters are a structure within.
            for own in ["maxnet_params", "maxnet2006_params"] {
                let inner = btf.type_by_name::<Struct<'_>>(own).filter(|_| found[0].0 == "source");
                found.extend(inner.iter().flat_map(|inner| members(inner, 0)));
            }
            let mut at = 0;
            let mut named = 0;
            for parameter in law.parameters {
                if let Some((_, place)) = found.iter().find(|(name, _)| name == parameter.name) {
                    assert_eq!(at as u32, *place, "{} {}", law.name, parameter.name);
                    named += 1;
                }
                at += parameter.bytes;
            }
            assert_eq!(at, params.size(), "{}", law.name);
            assert!(named * 2 >= law.parameters.len(), "{}: only {named} have the names of members", law.name);
        }
    }
}
