//! Table of all laws, with the signals that each law shows for links and connections. The registry defines the laws'
//! parameters.
//!
//! To add a law, add its entry here; build.rs compiles every law of the kernel folder.

use super::law::{ARRIVAL, LawSignal, LawWords, LoadableLaw, SignalUnit};
use super::object::embedded;
use crate::daemon::options::names::unknown;
use crate::daemon::options::values::LawName;

const fn signal(name: &'static str, title: &'static str, unit: SignalUnit, convert: fn(u64) -> f64) -> LawSignal {
    LawSignal { name, title, unit, convert }
}

/// Converts a fixed-point number with `BITS` fractional bits to floating point.
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

/// Converts microseconds with 16 fractional bits to seconds.
fn micros_16(raw: u64) -> f64 {
    raw as f64 / 65536e6
}

/// Converts a rate code to bit/s. The code is -ln(rate / 1 Pbit/s) in steps of 2^-18; 0 means no rate.
fn logarithm_of_rate(code: u64) -> f64 {
    if code == 0 { 0.0 } else { 1e15 * (-(code as f64) / 2_f64.powi(18)).exp() }
}

/// Converts an AECP rate position to packets/s. Positions count steps of 2^-32 octaves above a quarter of a packet per
/// second.
fn aecp_place(place: u64) -> f64 {
    0.25 * parts_of::<32>(place).exp2()
}

/// Converts AECP's value on the wire to packets/s; 0 means that no router wrote it.
fn aecp_value(value: u64) -> f64 {
    if value == 0 { 0.0 } else { 0.25 * (65535_u64.saturating_sub(value) as f64 / 1024.0).exp2() }
}

const fn arrival() -> LawSignal {
    signal(ARRIVAL, "arrival", SignalUnit::BitsPerSecond, whole)
}

const fn words(value: &'static str, unmoved: &'static str) -> LawWords {
    LawWords { value, unmoved, controlled: "controlled" }
}

const PRICE: LawWords = LawWords { value: "a price", unmoved: "the price does not rise", controlled: "priced" };
const FEEDBACK: LawWords = words("feedback", "the feedback is not negative");

/// Link signals that XCP and its variants show.
const XCP_LINK: &[LawSignal] = &[
    signal("interval_s", "interval", SignalUnit::Seconds, micros),
    signal("spare_bps", "spare", SignalUnit::One, signed_parts_of::<0>),
    signal("shuffled_bps", "shuffled", SignalUnit::BitsPerSecond, whole),
    signal("persistent_queue_bytes", "standing", SignalUnit::One, whole),
];
const XCP_SOURCE: &[LawSignal] = &[
    signal("allowed_bytes", "allowed", SignalUnit::One, whole),
    signal("rtt_stated_s", "stated RTT", SignalUnit::Seconds, micros),
    signal("feedback_bytes", "feedback", SignalUnit::One, signed_parts_of::<8>),
];
const XCP_ECHOED: LawSignal = signal("feedback_bytes", "feedback", SignalUnit::One, signed_parts_of::<8>);

/// Returns the entry of XCP, or of a variant that shows the same signals.
const fn xcp(name: &'static str, host: &'static [u8], router: &'static [u8]) -> LoadableLaw {
    LoadableLaw { name, host, router, link: XCP_LINK, source: XCP_SOURCE, echoed: XCP_ECHOED, words: FEEDBACK }
}

/// All laws; the first is the default.
static LAWS: &[LoadableLaw] = &[
    LoadableLaw {
        name: "maxnet",
        host: embedded!("host_maxnet"),
        router: embedded!("router_maxnet"),
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
    LoadableLaw {
        name: "aecp",
        host: embedded!("host_aecp"),
        router: embedded!("router_aecp"),
        link: &[
            signal("r", "r", SignalUnit::One, aecp_place),
            signal("r_max", "highest", SignalUnit::One, aecp_place),
            arrival(),
        ],
        source: &[signal("r", "r", SignalUnit::One, aecp_value), signal("x", "x", SignalUnit::One, aecp_place)],
        echoed: signal("r", "r", SignalUnit::One, aecp_value),
        words: words("a factor", "the factor does not fall"),
    },
    LoadableLaw {
        name: "rcp",
        host: embedded!("host_rcp"),
        router: embedded!("router_rcp"),
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
    LoadableLaw {
        name: "ixcp",
        host: embedded!("host_ixcp"),
        router: embedded!("router_ixcp"),
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
    LoadableLaw {
        name: "jetmax",
        host: embedded!("host_jetmax"),
        router: embedded!("router_jetmax"),
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
    LoadableLaw {
        name: "vcp",
        host: embedded!("host_vcp"),
        router: embedded!("router_vcp"),
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
    LoadableLaw {
        name: "maxnet2006",
        host: embedded!("host_maxnet2006"),
        router: embedded!("router_maxnet2006"),
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

/// Returns the law with this name, or an error that suggests known names.
pub(crate) fn find(name: &str) -> Result<&'static LoadableLaw, String> {
    let found = LAWS.iter().find(|law| law.name == name);
    found.ok_or_else(|| unknown("law", name, LAWS.iter().map(|law| law.name)))
}

/// Returns the law with a valid name. A test checks that each valid name has an entry in the table.
pub(crate) fn named(name: LawName) -> &'static LoadableLaw {
    find(name.0).unwrap_or_else(|_| default())
}

/// Returns the default law, which a daemon without `--law` uses.
pub(crate) fn default() -> &'static LoadableLaw {
    &LAWS[0]
}

/// Returns all laws.
pub(crate) fn all() -> impl Iterator<Item = &'static LoadableLaw> {
    LAWS.iter()
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::types::{Func, FuncProto, MemberAttr, Struct};
    use libbpf_rs::btf::{Btf, ReferencesType as _};

    use super::LAWS;
    use crate::daemon::kernel::{object, privileges};

    /// The kernel accepts the programs of every law. Without root, the test is skipped.
    #[test]
    fn the_kernel_accepts_the_programs_of_every_law() {
        if let Err(why) = privileges::check() {
            eprintln!("skipped: {why}");
            return;
        }
        for law in LAWS {
            for (role, open) in [("host", object::open_host(law.host)), ("router", object::open(law.router))] {
                let loaded = open.unwrap().load();
                assert!(loaded.is_ok(), "{} {role}: {:#}", law.name, loaded.unwrap_err());
            }
        }
    }

    /// Linux 7.3 refuses a function with a sixth argument in its type information, even if the argument is never used.
    #[test]
    fn no_function_of_the_programs_has_more_than_five_arguments() {
        let objects = std::fs::read_dir(env!("OUT_DIR")).unwrap().map(|entry| entry.unwrap().path());
        let objects: Vec<_> = objects.filter(|path| path.to_string_lossy().ends_with(".bpf.o")).collect();
        assert!(objects.len() > 2 * LAWS.len(), "{objects:?}");
        for path in objects {
            let btf = Btf::from_path(&path).unwrap();
            for function in btf.type_by_kind::<Func<'_>>() {
                let arguments = FuncProto::try_from(function.referenced_type()).unwrap().len();
                assert!(arguments <= 5, "{path:?}: {:?} has {arguments}", function.name());
            }
        }
    }

    /// Rust and the kernel programs agree on the offsets of all members of `struct law_params`.
    #[test]
    fn parameters_have_the_places_of_the_laws_structure() {
        for law in LAWS {
            // The host's object has no type information of it if the compiler inlines all functions that take parameters.
            let path = format!("{}/replay_law_{}.bpf.o", env!("OUT_DIR"), law.name);
            let btf = Btf::from_path(&path).unwrap();
            let params: Struct<'_> = btf.type_by_name("law_params").unwrap();
            let mut members = Vec::new();
            list_members(&btf, &params, "", 0, &mut members);
            let of_host: Vec<_> =
                law.kernel().params_fields().map(|(name, offset, _)| (name.to_owned(), offset)).collect();
            assert_eq!(members, of_host, "{}", law.name);
        }
    }

    /// Lists the members of a structure with their byte offsets. Members of inner structures have a prefix and a dot.
    fn list_members(btf: &Btf<'_>, of: &Struct<'_>, prefix: &str, at: usize, members: &mut Vec<(String, usize)>) {
        for member in of.iter() {
            let (MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. }) = member.attr;
            let name = format!("{prefix}{}", member.name.unwrap_or_default().to_string_lossy());
            let place = at + offset as usize / 8;
            match btf.type_by_id::<Struct<'_>>(member.ty) {
                Some(inner) => list_members(btf, &inner, &format!("{name}."), place, members),
                None => members.push((name, place)),
            }
        }
    }
}
