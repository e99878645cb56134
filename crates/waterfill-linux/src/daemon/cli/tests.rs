//! Tests of the command line.

use std::time::Duration;

use clap::CommandFactory as _;

use super::*;
use crate::daemon::{host, law, router};

fn ask(line: &str) -> Result<Command, String> {
    // Blanks separate words, as in a shell; a comma stands for a blank inside a word.
    let words = line.split(' ').map(|word| word.replace(',', " "));
    parse_from(std::iter::once("waterfilld".into()).chain(words)).map_err(|e| one_line(&e))
}

fn refused(line: &str) -> String {
    ask(line).expect_err(line)
}

pub(crate) fn router(line: &str) -> Vec<router::Options> {
    match ask(line) {
        Ok(Command::Router(command)) => command.options().unwrap(),
        other => panic!("{line}: {other:?}"),
    }
}

pub(crate) fn csig(line: &str) -> Vec<crate::daemon::csig::Options> {
    match ask(line) {
        Ok(Command::Csig(command)) => command.options().unwrap(),
        other => panic!("{line}: {other:?}"),
    }
}

pub(crate) fn host(line: &str) -> host::Options {
    match ask(line) {
        Ok(Command::Host(command)) => command.options(|| Ok("/cgroups".into())).unwrap(),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_definition_passes_claps_checks() {
    CommandLine::command().debug_assert();
}

#[test]
fn a_router_defaults_to_the_papers_values() {
    let [one] = &router("router --dev eth1 --rate 1,Gbit/s")[..] else { panic!("one device") };
    let wanted = router::Options {
        device: "eth1".into(),
        rate_bps: 1_000_000_000,
        target: Some(0.9),
        overhead_bytes: 14,
        parameters: maxnet_defaults(),
        virtual_queue: false,
        shape: None,
        cohabit: None,
        scone: false,
    };
    assert_eq!(one, &wanted);
}

#[test]
fn a_router_gives_advice_where_its_law_knows_the_fair_rate() {
    for law in ["maxnet", "maxnet2006", "rcp", "jetmax"] {
        assert!(router(&format!("router --dev a --rate 1gbit --law {law} --scone"))[0].scone, "{law}");
    }
}

#[test]
fn a_router_can_have_two_devices() {
    let line =
        "router --dev a --rate 10mbit --dev b --rate 2Gbit/s --target 1 --overhead 0 --promise --shape --buffer 250,kB";
    let [a, b] = &router(line)[..] else { panic!("two devices") };
    assert_eq!((a.device.as_str(), a.rate_bps), ("a", 10_000_000));
    assert_eq!((b.device.as_str(), b.rate_bps), ("b", 2_000_000_000));
    assert_eq!((a.target, a.overhead_bytes), (Some(1.0), 0));
    assert_eq!(a.parameters[48..52], 1_u32.to_ne_bytes(), "--promise");
    assert_eq!(b.shape, Some(router::Shape { buffer_bytes: Some(250_000) }));
}

#[test]
fn cohabitation_takes_the_parameters_of_a_scenario() {
    let cohabit = |line: &str| router(line)[0].cohabit.clone().expect(line);
    let line = "router --dev a --rate 1gbit --cohabit improved";
    let defaults = cohabit(line);
    assert!(defaults.ecn && defaults.aim == 0.9 && defaults.depth == Duration::from_millis(300));
    let set = cohabit(&format!("{line} --cohabit-set aim=0.8 --cohabit-set interval=28ms --cohabit-set ecn=false"));
    assert_eq!((set.aim, set.interval, set.ecn), (0.8, Duration::from_millis(28), false));
    assert!(!set.separate);
    let separate = router(&format!("{line} --shape --separate --cohabit-set interval=28ms"));
    assert!(separate[0].separate() && separate[0].virtual_queue);
    let paper = cohabit("router --dev a --rate 1gbit --cohabit paper --cohabit-set update=packet");
    assert!(!paper.ecn && paper.threshold == 0.97 && format!("{:?}", paper.update) == "Packet");
}

#[test]
fn a_host_defaults_to_the_papers_values() {
    let wanted = host::Options {
        name: "bpf_maxnet".into(),
        cgroup: "/cgroups".into(),
        fallback: "cubic".into(),
        netns_cookies: Vec::new(),
        peers: Vec::new(),
        unrestricted: false,
        kind: host::Kind::Experiment,
        law: law::default(),
        parameters: maxnet_defaults(),
    };
    assert_eq!(host("host"), wanted);
}

/// x_max; alpha, eta, T, dt_min, average, compensate, order; dt_p, T_0, promise.
fn maxnet_defaults() -> Vec<u8> {
    let words = [660_u32, 60, 400, 1, 1, 1, 1, 0, 1000, 130_000, 0, 0].map(u32::to_ne_bytes).concat();
    [&1_000_000_000_000_000_u64.to_ne_bytes()[..], &words].concat()
}

#[test]
fn a_router_defaults_to_the_simulators_target() {
    let law = waterfill_laws::protocols::maxnet::Params::default();
    assert_eq!(router("router --dev eth1 --rate 1gbit")[0].target, Some(law.mu));
}

#[test]
fn every_host_option_has_an_effect() {
    let line = "host --cgroup /c --name bpf_other --fallback reno --netns-cookie 7 --netns-cookie 0x10 --option-kind 42 \
                --alpha 0.5 --eta 0.1 --t 200ms --x-max 10Gbit/s --dt-min 0s --no-average --no-compensate --unrestricted --peers 10.0.0.0/8 --peers fd00::/8";
    let options = host(line);
    assert!(options.unrestricted);
    assert_eq!(options.peers, ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
    assert_eq!(options.netns_cookies, [7, 16]);
    assert_eq!((options.kind, options.name.as_str()), (host::Kind::Paper, "bpf_other"));
    let words: Vec<_> = [500_u32, 100, 200, 0, 0, 0, 1, 0].map(u32::to_ne_bytes).concat();
    assert_eq!(options.parameters[..8], 10_000_000_000_u64.to_ne_bytes());
    assert_eq!(options.parameters[8..40], words);
    assert_eq!(options.cgroup, PathBuf::from("/c"));
    assert_eq!(host("host --set alpha=0.5 --set order=rate-first").parameters[8..12], 500_u32.to_ne_bytes());
}

#[test]
fn an_error_is_one_line_with_the_option_and_what_was_expected() {
    for (line, what, expected) in [
        ("router --dev a --rate fast", "--rate", "expected a rate such as"),
        ("router --dev a --rate 31bit/s", "--rate", "from 32 bit/s to 1 Pbit/s"),
        ("router --dev a", "--rate", "required"),
        ("router --dev a --rate 1gbit --rate 2gbit", "--rate", "one --rate for each --dev, got 2 --rate and 1 --dev"),
        ("router --dev a --rate 1gbit --dev a --rate 1gbit", "--dev a", "each device once"),
        ("router --dev a --rate 1gbit --target 0", "--target", "expected a fraction such as 0.9,"),
        ("router --dev a --rate 1gbit --target NaN", "--target", "expected a fraction such as 0.9,"),
        ("router --dev a --rate 1gbit --overhead 2000", "--overhead", "0..=1000"),
        ("router --dev a --rate 1gbit --dt-p 2s", "--dt-p", "from 1µs to 1s"),
        ("router --dev a --rate 1gbit --dt-p 1.5us", "--dt-p", "steps of 1µs"),
        ("router --dev a --rate 1gbit --t0 1ms", "t_0", "longer than dt_p, 1 ms, got 1 ms"),
        ("router --dev a --rate 1gbit --buffer 1MB", "--shape", "required"),
        ("router --dev a --rate 1gbit --x-max 1gbit", "x_max", "more than the link's 1 Gbit/s, got 1 Gbit/s"),
        ("router --dev a --rate 1kbit --t 2s", "t: ", "prices stay below 32 s"),
        ("router --dev a/b --rate 1gbit", "--dev", "name of a network device"),
        ("router --dev a --rate 1gbit --metrics 9465", "--metrics", "an address and a port"),
        ("router --dev a --rate 1gbit --once --no-pin", "--once", "--no-pin"),
        ("router --dev a --rate 1gbit --cohabit some", "--cohabit", "possible values: paper, improved"),
        ("router --dev a --rate 1gbit --cohabit-set aim=1", "--cohabit", "required"),
        (
            "router --dev a --rate 1gbit --cohabit paper --cohabit-set aim=1",
            "--cohabit-set aim=1",
            "expected interval,",
        ),
        ("router --dev a --rate 1gbit --cohabit improved --cohabit-set aim=2", "aim=2", "from 0.001 to 1"),
        ("router --dev a --rate 1gbit --cohabit improved --cohabit-set depth=2us", "depth=2us", "from 1ms to 10s"),
        ("router --dev a --rate 1gbit --cohabit improved --cohabit-set ecn", "--cohabit-set ecn", "true or false"),
        ("router --dev a --rate 1gbit --cohabit improved --separate", "--shape", "required"),
        ("router --dev a --rate 1gbit --shape --separate", "--cohabit", "required"),
        ("router --dev a --rate 1gbit --shape --cohabit improved --separate --once", "--separate", "--once"),
        (
            "router --dev a --rate 1gbit --shape --cohabit improved --separate --cohabit-set aim=1",
            "--cohabit-set aim",
            "no controller",
        ),
        ("router --dev a --rate 1gbit --law xcp --scone", "--scone", "xcp's do not"),
        (
            "router --dev a --rate 1gbit --shape --cohabit improved --separate --scone",
            "--scone",
            "none with --separate",
        ),
        ("host --alpha 1.5708", "--alpha", "pi/2"),
        ("host --alpha 0", "--alpha", "from 0.001"),
        ("host --eta 0", "--eta", "from 0.001"),
        ("host --option-kind 254", "--option-kind", "253"),
        ("host --law tcp", "--law", "expected one of maxnet"),
        ("host --set alpha", "--set", "a parameter and its value"),
        ("host --peers 10.0.0.1/8", "--peers", "expected a network such as"),
        ("host --netns-cookie 0", "--netns-cookie", "SO_NETNS_COOKIE"),
        ("host --name a_name_of_17_long", "--name", "1 to 15"),
        ("host --pins /x --no-pin", "--pins", "--no-pin"),
        ("unload --host --dev a", "--host", "--dev"),
        ("unload --config /f --pins /x", "--config", "--pins"),
        ("status --config /f --pins /x", "--config", "--pins"),
        ("reload --config /f --control /x", "--config", "--control"),
        ("statsu", "statsu", "unrecognized"),
    ] {
        let said = refused(line);
        assert!(said.contains(what) && said.contains(expected) && !said.contains('\n'), "{line}: {said}");
    }
    assert!(refused("").contains("expected a command") || refused("").contains("unrecognized"));
}

#[test]
fn the_bounds_of_each_range_are_accepted() {
    for line in [
        "router --dev a --rate 32bit/s --t 1ms --target 1e-6",
        "router --dev a --rate 999Tbit/s --dt-p 1us --t0 2us",
        "host --alpha 0.001 --eta 65.535 --t 100s --dt-min 1s --x-max 32bit/s",
        "host --alpha 1.5704 --name a_name_of_15___",
        "status --json --watch",
        "status --config /f",
        "reload --config /f",
        "unload",
        "probe --json",
        "laws --json",
    ] {
        assert!(ask(line).is_ok(), "{line}: {:?}", ask(line));
    }
}
