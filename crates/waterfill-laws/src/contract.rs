//! Tests of each explicit law's declarations: parameter limits, signals, logs and supported arithmetics.

use crate::kernel::Arithmetic;
use crate::params::Value;
use crate::protocol::{Ack, Connection, LinkView, PacketKind, Passing, Received, Sending};
use crate::registry::{AnyParams, ProtocolId, kernel_protocols};
use crate::steps::{LawPart, StepLog};
use crate::testing::Signals;
use crate::units::{Duration, Instant, Rate, Volume};

const PACKET: Volume = Volume::from_bytes(1500.0);

fn protocol(name: &str) -> ProtocolId {
    ProtocolId::by_name(name).expect("a protocol")
}

/// Returns a law's default parameters, changed by settings `name=word` or `name=number`.
fn with(law: &str, settings: &str) -> AnyParams {
    let mut params = protocol(law).params();
    for (name, value) in settings.split_whitespace().map(|setting| setting.split_once('=').expect("name=value")) {
        let value = value.parse().map_or_else(|_| Value::Word(value.to_owned()), Value::Number);
        params.set(name, &value).expect("a value of its type");
    }
    params
}

/// Returns the name of the parameter that these settings put out of its limits, or `None` if all values are within
/// them.
fn refused(law: &str, settings: &str) -> Option<String> {
    with(law, settings).validate().err().map(|error| error.0.split_once(':').expect("name: reason").0.to_owned())
}

/// Limits of a law's parameters.
///
/// The items are the law, its settings and, for each parameter, the values within its limits, `|`, and the values just
/// outside.
type Limits = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const LIMITS: &[Limits] = &[
    ("bbr", "", &[("high_gain", "1.001 100 | 1 100.1"), ("cwnd_gain", "1 100 | 0.999 100.1")]),
    (
        "bbr3",
        "",
        &[
            ("startup_pacing_gain", "1.001 100 | 1 100.1"),
            ("loss_thresh", "0 0.999 | -0.001 1"),
            ("beta", "0 1 | -0.001 1.001"),
            ("headroom", "0 0.999 | -0.001 1"),
            ("pacing_margin", "0 0.999 | -0.001 1"),
            ("min_rtt_window", "1e-12 | 0"),
            ("probe_rtt_interval", "1e-12 | 0"),
        ],
    ),
    ("hpcc", "", &[("eta", "1e-9 1 | 0 1.001"), ("flows", "1 1e9 | 0.999 1.01e9")]),
    ("powertcp", "", &[("gamma", "1e-9 1 | 0 1.001"), ("flows", "1 1e9 | 0.999 1.01e9")]),
    (
        "dcqcn",
        "",
        &[
            ("g", "1e-9 1 | 0 1.001"),
            ("alpha_timer", "1e-12 | 0"),
            ("rate_timer", "1e-12 | 0"),
            ("byte_counter", "1 | 0"),
            ("r_ai", "1 | 0"),
            ("r_hai", "1 | 0"),
            ("r_min", "1 | 0"),
        ],
    ),
    (
        "swift",
        "",
        &[
            ("base_target", "1e-12 | 0"),
            ("ai", "1e-9 1e6 | 0 1.1e6"),
            ("beta", "1e-9 1e6 | 0 1.1e6"),
            ("max_mdf", "1e-9 0.999 | 0 1"),
            ("min_window", "1e-6 1 | 9e-7 1.1"),
            ("flow_min", "1e-6 99.9 | 0 100"),
            ("flow_max", "0.2 1e6 | 1.1e6"),
        ],
    ),
    ("theta_powertcp", "", &[("gamma", "1e-9 1 | 0 1.001"), ("flows", "1 1e9 | 0.999 1.01e9")]),
    ("copa", "", &[("delta", "1e-6 1 | 9e-7 1.001")]),
    ("dctcp", "", &[("gain", "1e-9 0.999 | 0 1"), ("alpha_initial", "0 1 | -0.001 1.001")]),
    (
        "prague",
        "",
        &[("gain", "1e-9 0.999 | 0 1"), ("alpha_initial", "0 1 | -0.001 1.001"), ("virtual_rtt", "0 1 | 1.001")],
    ),
    ("reno", "", &[("increase", "1e-9 1e6 | 0 1.01e6"), ("decrease", "1e-9 0.999 | 0 1")]),
    ("vegas", "", &[("alpha", "1e-9 | 0"), ("beta", "2 1e6 | 1.999 1.01e6"), ("gamma", "1e-9 1e6 | 0 1.01e6")]),
    ("westwood", "", &[("filter", "0 0.999 | -0.001 1")]),
    (
        "maxnet",
        "",
        &[
            ("x_max", "32 1e18 | 0 1.01e18"),
            ("x_min", "1e-300 1e15 | 0 1.01e15"),
            ("t", "1e-12 | 0"),
            ("alpha", "1e-9 1.5707 | 0 1.5707963267948966"),
            ("eta", "1e-9 1e6 | 0 1.01e6"),
            ("mu", "1e-9 1 | 0 1.001"),
            ("dt_p", "1e-9 | 0.999e-9"),
            ("t_0", "1.0001e-3 | 1e-3"),
            ("code_bits", "0 2 32 | 1 33"),
        ],
    ),
    ("maxnet", "carriage=csig", &[("code_bits", "0 5 20 | 2 7 32")]),
    (
        "maxnet",
        "arithmetic=kernel",
        &[
            ("x_max", "32 1e15 | 31 1.01e15"),
            ("x_min", "32 1e15 | 31 0 1.01e15"),
            ("t", "1e-3 100 | 0.999e-3 100.1"),
            ("alpha", "1e-3 | 0.9e-3"),
            ("eta", "1e-3 65.535 | 0.9e-3 65.536"),
            ("load_average", "0 | 1e-3"),
            ("average", "exponential off | sliding"),
            ("carriage", "option | csig"),
            ("mu", "1e-6 | 0.9e-6"),
            ("dt_min", "1 | 1.001"),
            ("t_0", "1.001e-3 4000 | 1.0005e-3 4000.1"),
            ("code_bits", "0 | 5"),
        ],
    ),
    ("maxnet", "arithmetic=kernel-host", &[("eta", "65.535 | 65.536")]),
    ("maxnet", "arithmetic=kernel t_0=2", &[("dt_p", "1e-6 1 | 1.001")]),
    (
        "maxnet2006",
        "",
        &[
            ("x_max", "32 1e18 | 0 1.01e18"),
            ("x_min", "1e-300 1e15 | 0 1.01e15"),
            ("t", "1e-12 | 0"),
            ("alpha", "1e-9 1.5707 | 0 1.5707963267948966"),
            ("eta", "1e-9 1e6 | 0 1.01e6"),
            ("wnd_update_freq", "1 | 0"),
            ("max_wnd", "1 | 0"),
            ("rateinc", "1.0001 16 | 1 16.1"),
            ("mu", "1e-9 1 | 0 1.001"),
            ("epsilon", "0 1 | -0.1 1.1"),
            ("qs_min_divisor", "1 | 0"),
            ("mark_every", "1 | 0"),
            ("dt", "1e-12 | 0"),
            ("code_bits", "0 2 32 | 1 33"),
        ],
    ),
    (
        "maxnet2006",
        "arithmetic=kernel",
        &[
            ("x_max", "32 1e15 | 31 1.01e15"),
            ("x_min", "32 1e15 | 31 0 1.01e15"),
            ("t", "1e-3 100 | 0.999e-3 100.1"),
            ("alpha", "1e-3 | 0.9e-3"),
            ("eta", "1e-3 65.535 | 0.9e-3 65.536"),
            ("rateinc", "1.001 | 1.0009"),
            ("mu", "1e-6 | 0.9e-6"),
            ("max_wnd", "67108864 | 67108865"),
            ("dt", "1e-6 1 | 0.9e-6 1.001"),
            ("dt_source", "1 | 1.001"),
            ("rtt_unit", "1e-6 1 | 0.9e-6 1.001"),
            ("mark_every", "1 | 2"),
            ("code_bits", "0 | 5"),
        ],
    ),
    (
        "rcp",
        "",
        &[
            ("alpha", "1e-9 | 0"),
            ("beta", "0 | -1e-9"),
            ("first_rate", "1e-9 1 | 0 1.1"),
            ("max_interval", "1e-12 | 0"),
            ("first_rtt", "1e-12 | 0"),
            ("r_min", "1 | 0"),
            ("code_bits", "0 2 32 | 1 33"),
        ],
    ),
    (
        "rcp",
        "arithmetic=kernel",
        &[
            ("alpha", "1e-3 1 | 0.9e-3 1.1"),
            ("beta", "65.535 | 65.536"),
            ("first_rate", "1e-6 | 0.9e-6"),
            ("max_interval", "10e-6 1 | 9.9e-6 1.001"),
            ("first_rtt", "10e-6 8 | 9.9e-6 8.001"),
            ("r_min", "13 4e9 | 12.9 4.1e9"),
            ("writes", "arrival | departure"),
            ("code_bits", "0 | 5"),
        ],
    ),
    (
        "jetmax",
        "",
        &[
            ("gamma", "1e-9 1 | 0 1.1"),
            ("tau", "1e-9 1.999 | 0 2"),
            ("interval", "1e-12 | 0"),
            ("epsilon", "0 0.1 | -0.1 1"),
            ("urgent", "0.02 0.999 | 0.019 1"),
            ("x_min", "1 1e18 | 0.9 1.1e18"),
        ],
    ),
    (
        "jetmax",
        "arithmetic=kernel",
        &[("interval", "1e-6 4 | 0.9e-6 4.001"), ("x_min", "32 1e15 | 31.9 1.1e15"), ("gamma", "1e-6 | 0.9e-6")],
    ),
    (
        "vcp",
        "",
        &[
            ("t_rho", "10e-3 | 0"),
            ("t_q", "1e-12 0.2 | 0 0.201"),
            ("kappa_q", "0 1e6 | -0.1 1.1e6"),
            ("gamma", "1e-6 1 | 0.9e-6 1.1"),
            ("queue_weight", "1e-9 1 | 0 1.1"),
            ("xi", "1e-9 1 | 0 1.1"),
            ("alpha", "1e-9 1e6 | 0 1.1e6"),
            ("beta", "1e-9 0.999 | 0 1"),
            ("t_d", "1e-12 | 0"),
        ],
    ),
    (
        "vcp",
        "arithmetic=kernel",
        &[
            ("t_q", "100e-6 | 50e-6"),
            ("t_rho", "0.03 10 | 0.025 10.01"),
            ("kappa_q", "65.535 | 65.536"),
            ("gamma", "1e-6 | 0.9e-6"),
            ("queue_weight", "1e-6 | 0.9e-6"),
            ("xi", "1e-6 | 0.9e-6"),
            ("alpha", "1e-3 1e3 | 0.9e-3 1001"),
            ("t_d", "1e-3 10 | 0.999e-3 10.01"),
        ],
    ),
    ("vcp", "arithmetic=kernel t_q=100e-6", &[("t_rho", "6.5536 | 6.5537")]),
    (
        "aecp",
        "",
        &[
            ("alpha", "1e-9 | 0"),
            ("beta", "1e-9 | 0"),
            ("t", "1e-12 | 0"),
            ("t_2", "1e-12 | 0"),
            ("q_0", "0 | -1e-9"),
            ("x_0", "0.25 4.6e18 | 0.249 4.61e18"),
            ("code_bits", "0 2 32 | 1 33"),
        ],
    ),
    (
        "aecp",
        "arithmetic=kernel",
        &[
            ("alpha", "1e-3 1e3 | 0.9e-3 1001"),
            ("beta", "1e-3 6.8 | 0.9e-3 7"),
            ("t_2", "1e-3 0.6 | 0.999e-3"),
            ("t", "0.1 1000 | 0.0999 1000.1"),
            ("q_0", "4e6 | 4.1e6"),
            ("x_0", "4e6 | 4.1e6"),
            ("source", "rate | window"),
            ("code_bits", "0 | 5"),
        ],
    ),
    ("aecp", "arithmetic=kernel beta=0.5", &[("t_2", "1 | 1.001")]),
    ("xcp", "", XCP),
    ("xcp", "arithmetic=kernel", XCP_KERNEL),
    ("pxcp", "", XCP),
    ("pxcp", "arithmetic=kernel", XCP_KERNEL),
    ("ixcp", "", XCP),
    ("ixcp", "arithmetic=kernel", XCP_KERNEL),
];

const XCP: &[(&str, &str)] = &[
    ("alpha", "1e-9 0.999 | 0 1"),
    ("beta", "0 0.999 | -0.1 1"),
    ("gamma", "0 0.999 | -0.1 1"),
    ("first_window", "1 1e6 | 0.9 1.1e6"),
    ("min_interval", "1e-12 0.05 | 0"),
    ("max_interval", "0.05 | 0.9e-3"),
    ("first_interval", "1e-3 1 | 0.9e-3 1.1"),
];

const XCP_KERNEL: &[(&str, &str)] = &[
    ("header", "katabi | falk"),
    ("first_window", "0 1 | 0.9 1.1e6"),
    ("min_interval", "1e-6 | 0.9e-6"),
    ("max_interval", "4 | 4.001"),
];

/// Values within a parameter's stated limits are accepted. Values just outside are refused with the parameter's name.
#[test]
fn parameters_have_the_limits_that_they_state() {
    for (law, settings, limits) in LIMITS {
        for (name, values) in *limits {
            let (within, outside) = values.split_once('|').expect("values | values");
            for value in within.split_whitespace() {
                let settings = format!("{settings} {name}={value}");
                assert_eq!(refused(law, &settings), None, "{law}: {settings}");
            }
            for value in outside.split_whitespace() {
                let settings = format!("{settings} {name}={value}");
                assert_eq!(refused(law, &settings).as_deref(), Some(*name), "{law}: {settings}");
            }
        }
    }
}

/// The target utilization of a law is a parameter of the law, or 1 if the law has no such parameter.
#[test]
fn targets_are_the_laws_own() {
    for (law, settings, target) in [
        ("maxnet", "", 0.9),
        ("maxnet", "mu=0.5", 0.5),
        ("maxnet2006", "", 0.94),
        ("maxnet2006", "mu=0.5", 0.5),
        ("jetmax", "gamma=0.5", 0.5),
        ("vcp", "gamma=0.5", 0.5),
        ("xcp", "", 1.0),
        ("ixcp", "", 1.0),
        ("pxcp", "", 1.0),
        ("rcp", "", 1.0),
        ("aecp", "", 1.0),
    ] {
        assert_eq!(with(law, settings).target(), target, "{law} {settings}");
    }
}

/// Rate-based laws pace their packets, and window-based laws do not. The parameters decide whether a law is rate-based.
#[test]
fn laws_of_rates_are_paced() {
    for (law, settings, paced) in [
        ("maxnet", "", false),
        ("maxnet", "arithmetic=kernel", false),
        ("maxnet", "arithmetic=kernel-host", true),
        ("aecp", "", true),
        ("aecp", "source=window", false),
        ("rcp", "arithmetic=kernel-host", true),
        ("xcp", "arithmetic=kernel-host", false),
        ("xcp", "", false),
        ("rcp", "", true),
    ] {
        assert_eq!(with(law, settings).paced(), paced, "{law} {settings}");
    }
}

/// A law needs packets if its arithmetic counts them or if a host paces them. The fluid model has no packets.
#[test]
fn arithmetics_that_need_packets() {
    for (law, form) in kernel_protocols() {
        let needed = ["real", "kernel", "kernel-host"]
            .map(|arithmetic| with(law, &format!("arithmetic={arithmetic}")).needs_packets());
        assert_eq!(needed, [false, form.needs_packets(Arithmetic::Kernel), true], "{law}");
    }
    let counts = |law| with(law, "arithmetic=kernel").needs_packets();
    assert!(!counts("maxnet") && !counts("maxnet2006") && counts("rcp"));
    assert!(!with("maxnet2006", "arithmetic=printed").needs_packets());
    assert!(with("cubic", "").needs_packets() && !with("window", "").needs_packets());
}

/// MaxNet refuses links whose prices have no code, by bounds of T, x_max and x_min.
///
/// x_max must be above every link's capacity, x_min at most that capacity, and the price of a thousandth of the capacity below 32 s. With x_max =
/// 10¹⁵ bit/s and 1 Gbit/s the price is T·ln 10⁹, so T is at most 1.544 s.
#[test]
fn maxnet_refuses_links_whose_prices_have_no_code() {
    let link = LinkView { id: 0, capacity: Rate::from_bps(1e9), target: None, queue: Volume::ZERO };
    let name = |law, settings| with(law, settings).check_link(&link).err().map(|e| e.0[..5].to_owned());
    for law in ["maxnet", "maxnet2006"] {
        for settings in ["", "x_max=1.001e9", "t=1.54"] {
            assert_eq!(name(law, settings), None, "{law} {settings}");
        }
        assert_eq!(name(law, "x_max=1e9").as_deref(), Some("x_max"), "{law}");
        assert_eq!(name(law, "x_min=1e9"), None, "{law}");
        assert_eq!(name(law, "x_min=1.001e9").as_deref(), Some("x_min"), "{law}");
        assert_eq!(name(law, "t=1.55").as_deref(), Some("t: mu"), "{law}");
    }
    let link = LinkView { capacity: Rate::from_bps(1e12), ..link };
    assert_eq!(with("rcp", "").check_link(&link), Ok(()));
}

/// Record of an exchange of packets: the final signals, the router's control interval and the log.
struct Exchange {
    router: Vec<(String, f64)>,
    source: Vec<(String, f64)>,
    interval: Option<Duration>,
    log: StepLog,
}

/// Path over a link of 100 Mbit/s whose rate is `later`, in bit/s, in the second half of the test. The load is a
/// fraction of 100 Mbit/s.
struct Path {
    load: f64,
    later: f64,
    target: Option<f64>,
}

const HALF_FULL: Path = Path { load: 0.5, later: 1e8, target: None };

/// Sends packets over a path for `ms` milliseconds with an RTT of 40 ms, and keeps a log of up to `steps` steps.
fn exchange(law: &str, settings: &str, path: &Path, ms: u64, steps: usize) -> Exchange {
    let (id, params, log) = (protocol(law), with(law, settings), StepLog::new(steps, None));
    let mut link = LinkView { id: 0, capacity: Rate::from_bps(1e8), target: path.target, queue: Volume::ZERO };
    let connection = Connection {
        weight: 1.0,
        packet: PACKET,
        initial_window: 10.0 * PACKET,
        claimed_rtt: None,
        path: crate::protocol::PathView::UNKNOWN,
        validation: crate::protocol::Validation::Off,
        seed: 0,
    };
    let (mut router, mut receiver, mut source) = (params.router(&link), params.receiver(), params.source(&connection));
    log.router(id, 0, &link, &mut router);
    log.receiver(id, 0, Instant::ZERO, &mut receiver);
    log.source(id, 0, Instant::ZERO, &connection, &mut source);
    let rtt = Duration::from_millis(40);
    let mut echoes = std::collections::VecDeque::new();
    let mut due = 0.0;
    for step in 0..ms * 10 {
        let now = Instant::ZERO + Duration::from_micros(100 * step);
        if step == ms * 5 {
            link.capacity = Rate::from_bps(path.later);
        }
        while router.poll_at() <= now {
            let at = router.poll_at();
            router.on_timer(&link, at);
        }
        due += path.load * 1e8 * 1e-4 / PACKET.as_bits();
        // The queue swings between none and ten packets.
        link.queue = f64::from((step / 500 % 11) as u32) * PACKET;
        while step == 0 || due >= 1.0 {
            due -= 1.0;
            let kind = if step == 0 { PacketKind::Syn } else { PacketKind::Data };
            let mut header = source.stamp(&Sending { in_flight: PACKET, ..Sending::new(now, kind, PACKET) });
            let mut passing = Passing { now, volume: PACKET, packets: 1.0, kind, header: Some(&mut header) };
            router.on_arrival(&link, &mut passing);
            router.on_departure(&link, &mut passing);
            receiver.on_data(&Received { now, kind, header: &header, rtt: Some(rtt) });
            echoes.push_back((now + rtt, kind, receiver.echo(now)));
            if step == 0 {
                due = 0.0;
                break;
            }
        }
        while let Some((at, kind, echo)) = echoes.front().filter(|(at, ..)| *at <= now) {
            let kind = if *kind == PacketKind::Syn { PacketKind::Syn } else { PacketKind::Ack };
            let in_flight = 10.0 * PACKET;
            source.on_ack(&Ack { kind, acked: PACKET, in_flight, ..Ack::new(*at, echo, rtt) });
            echoes.pop_front();
        }
    }
    let (at_router, at_source) = (Signals::of(|p| router.observe(p)).0, Signals::of(|p| source.observe(p)).0);
    Exchange { router: at_router, source: at_source, interval: router.interval(), log }
}

/// Returns the names of the laws with a kernel form.
fn explicit() -> impl Iterator<Item = &'static str> {
    kernel_protocols().into_iter().map(|(name, _)| name)
}

/// A law's router and source together show every signal that the law lists, and no others.
#[test]
fn laws_show_the_signals_that_they_list() {
    for law in explicit() {
        let mut arithmetics = vec!["real", "kernel", "kernel-host"];
        arithmetics.extend((law == "maxnet2006").then_some("printed"));
        let expected = protocol(law).info().signals.iter().map(|signal| signal.name.to_owned()).collect::<Vec<_>>();
        for arithmetic in arithmetics {
            let Exchange { router, source, .. } =
                exchange(law, &format!("arithmetic={arithmetic}"), &HALF_FULL, 500, 0);
            let shown = [router, source].concat().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            assert!(shown.iter().all(|name| expected.contains(name)), "{law}, {arithmetic}: {shown:?}");
            assert!(expected.iter().all(|name| shown.contains(name)), "{law}, {arithmetic}: {shown:?}");
        }
    }
}

/// Real and kernel arithmetic show the same numbers within 2 %, after the same second of packets.
///
/// The loads are below and above the link's rate, also after that rate has changed, and with a target of one half.
#[test]
fn both_arithmetics_show_the_same_numbers() {
    let paths = [
        HALF_FULL,
        Path { load: 1.2, ..HALF_FULL },
        Path { later: 4e7, ..HALF_FULL },
        Path { load: 1.2, later: 1.1e8, ..HALF_FULL },
        Path { load: 0.3, target: Some(0.5), ..HALF_FULL },
    ];
    for law in explicit() {
        for (i, path) in paths.iter().enumerate() {
            let [real, kernel] = ["real", "kernel"].map(|arithmetic| {
                let Exchange { router, source, .. } = exchange(law, &format!("arithmetic={arithmetic}"), path, 1000, 0);
                [router, source].concat()
            });
            assert_eq!(real.len(), kernel.len(), "{law}: {real:?} and {kernel:?}");
            for ((name, real), (other, kernel)) in real.iter().zip(&kernel) {
                assert_eq!(name, other, "{law}");
                let near = (real - kernel).abs() <= 0.02 * real.abs() + 1e-9;
                assert!(near, "{law} on path {i}: {name} is {real} and {kernel}");
            }
        }
    }
}

/// Names of the state words that `validation/certificates` reads from a router, receiver and source, in order.
const STATES: &[(&str, &str, &str, &str)] = &[
    (
        "maxnet",
        "capacity price_min price_max price price_code arrived arrival_rate promised next_update",
        "rtt average last start_rate",
        "base_rtt gain zero rate_min weight packet price xi updated price_rate window pacing \
         start start_initial start_rate start_raised",
    ),
    (
        "maxnet2006",
        "capacity mu start_share price_min price_max price price_code arrived arrival_rate next_update since_mark",
        "last.0",
        "weight packet window pacing mode start_rate average xi base_rtt last_price_at updated acks raised last_price",
    ),
    ("xcp", XCP_ROUTER, "fresh total", XCP_SOURCE),
    ("pxcp", PXCP_ROUTER, "fresh total", XCP_SOURCE),
    (
        "rcp",
        "capacity rate_min rate mean_rtt measured arrived interval next_update written timed rtt_bytes",
        "last.0 last.1",
        "weight packet initial_window rate rtt claimed_rtt",
    ),
    (
        "aecp",
        "capacity q_0 r place residue packet arrived next_update data_volume data_packets",
        "last.0",
        "weight packet x tau r updated",
    ),
    (
        "jetmax",
        "gamma goal membership others flows unresponsive target next_update",
        "last.0 last.1",
        "weight packet initial_window rate target doubted_since joined counted_after rtt bottleneck",
    ),
    (
        "vcp",
        "capacity gamma arrived queue load_factor next_sample next_measurement samples sample_count load",
        "last.0",
        "weight packet window rtt load frozen_until adding_until",
    ),
];

const XCP_ROUTER: &str = "capacity interval sum_rtt_x spare shuffled residue_gain residue_loss queue \
     queue_min next_control next_queue volume x local_volume local_x gain_all gain_local loss_all loss_local";
const PXCP_ROUTER: &str = "capacity interval sum_rtt_x spare shuffled residue_gain residue_loss queue \
     queue_min next_control next_queue volume x local_volume local_x gain_all gain_local loss_all loss_local \
     left_x lowered_x";
const XCP_SOURCE: &str = "weight packet cwnd srtt claimed_rtt total";

/// A step log names the state words of router, receiver and source as listed in `STATES`.
#[test]
fn logs_have_the_state_by_its_names() {
    for (law, router, receiver, source) in STATES {
        let fields = exchange(law, "", &HALF_FULL, 20, 1000).log.fields();
        for (part, call, expected) in
            [(LawPart::Router, 0, router), (LawPart::Receiver, 0, receiver), (LawPart::Source, 0, source)]
        {
            let names = fields[&(protocol(law), part, call)][2].iter().map(|(name, _)| name.as_str());
            assert_eq!(names.collect::<Vec<_>>().join(" "), *expected, "{law}, {part:?}");
        }
    }
}

/// XCP's routers follow the RTT that packets state, in real and in kernel arithmetic. Other laws use their own
/// intervals.
#[test]
fn control_intervals_are_the_stated_rtt() {
    for law in explicit() {
        for arithmetic in ["real", "kernel"] {
            let interval = exchange(law, &format!("arithmetic={arithmetic}"), &HALF_FULL, 500, 0).interval;
            assert_eq!(interval.is_some(), ["xcp", "ixcp", "pxcp"].contains(&law), "{law}, {arithmetic}");
            if let Some(interval) = interval {
                assert!((interval.as_secs() / 0.04 - 1.0).abs() < 0.01, "{law}, {arithmetic}: {interval:?}");
            }
        }
    }
}

/// Returns a state word's values after each call of a law's router, receiver or source.
fn words(log: &StepLog, law: &str, part: LawPart, name: &str) -> Vec<u64> {
    let fields = log.fields();
    log.with_rows(|rows| {
        let states = &rows.lists[2];
        let of_part = (0..rows.call.len()).filter(|&row| rows.part[row] == part as u32);
        let word = |row: usize| {
            let names = &fields[&(protocol(law), part, rows.call[row])][2];
            let place = names.iter().position(|(found, _)| found == name).expect("a field of the state");
            states.words[states.ends[row] as usize + place]
        };
        of_part.map(word).collect()
    })
}

/// `[maxnet-2007:IV.B]` The log records MaxNet's start: mode 0 while a source asks for a start rate, 1 while the rate
/// rises, then 2.
#[test]
fn a_log_says_how_maxnet_starts() {
    let log = exchange("maxnet", "", &HALF_FULL, 500, 100_000).log;
    let [modes, initial, rate] =
        ["start", "start_initial", "start_rate"].map(|name| words(&log, "maxnet", LawPart::Source, name));
    let mut seen = modes.clone();
    seen.dedup();
    assert_eq!(seen, [0, 1, 2]);
    for ((mode, initial), rate) in modes.iter().zip(initial).zip(rate) {
        let [initial, rate] = [initial, rate].map(f64::from_bits);
        assert_eq!((initial > 0.0, rate >= initial), (*mode == 1, *mode == 1), "{mode}: {initial} and {rate}");
    }
}
