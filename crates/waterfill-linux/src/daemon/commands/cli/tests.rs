//! Tests of the command line.

use std::time::Duration;

use clap::CommandFactory as _;

use super::*;
use crate::daemon::options::values::OptionKind;
use crate::daemon::roles::csig::TagSetup;
use crate::daemon::roles::host::HostSetup;
use crate::daemon::roles::router::LinkSetup;

fn ask(line: &str) -> Result<Command, String> {
    // Blanks separate words, as in a shell; a comma stands for a blank inside a word.
    let words = line.split(' ').map(|word| word.replace(',', " "));
    let words = std::iter::once("waterfilld".into()).chain(words.map(OsString::from));
    parse_from(former::replace(words).0).map_err(|e| one_line(&e))
}

fn refused(line: &str) -> String {
    ask(line).expect_err(line)
}

pub(crate) fn router(line: &str) -> Vec<LinkSetup> {
    match ask(line) {
        Ok(Command::Router(command)) => command.setups().unwrap(),
        other => panic!("{line}: {other:?}"),
    }
}

pub(crate) fn csig(line: &str) -> Vec<TagSetup> {
    match ask(line) {
        Ok(Command::Csig(command)) => command.setups().unwrap(),
        other => panic!("{line}: {other:?}"),
    }
}

pub(crate) fn host(line: &str) -> HostSetup {
    match ask(line) {
        Ok(Command::Host(command)) => command.setup(|| Ok("/cgroups".into())).unwrap(),
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
    assert_eq!((one.device(), one.rate_bps(), one.target), ("eth1", 1_000_000_000, Some(0.9)));
    assert_eq!(one.parameters, maxnet_defaults());
    assert_eq!(one, &LinkSetup::read("device = 'eth1'\nrate = '1 Gbit/s'"));
    let options = &one.options;
    assert_eq!((options.overhead.0, options.virtual_queue, options.shape, options.scone), (14, false, false, false));
    assert_eq!((&options.buffer, &one.cohabit), (&None, &None));
}

#[test]
fn a_router_gives_advice_where_its_law_knows_the_fair_rate() {
    for law in ["maxnet", "maxnet2006", "rcp", "jetmax"] {
        assert!(router(&format!("router --dev a --rate 1gbit --law {law} --scone"))[0].options.scone, "{law}");
    }
}

#[test]
fn a_router_can_have_two_devices() {
    let line = "router --dev a --rate 10mbit --dev b --rate 2Gbit/s --target 1 --overhead 0 --set promise=true --shape \
                --buffer 250,kB";
    let [a, b] = &router(line)[..] else { panic!("two devices") };
    assert_eq!((a.device(), a.rate_bps()), ("a", 10_000_000));
    assert_eq!((b.device(), b.rate_bps()), ("b", 2_000_000_000));
    assert_eq!((a.target, a.options.overhead.0), (Some(1.0), 0));
    assert_eq!(a.parameters[56..60], 1_u32.to_ne_bytes(), "promise");
    assert_eq!((b.options.shape, b.options.buffer.map(|bytes| bytes.0)), (true, Some(250_000)));
}

#[test]
fn cohabitation_takes_the_parameters_of_a_scenario() {
    let cohabit = |line: &str| router(line)[0].cohabit.clone().expect(line);
    let line = "router --dev a --rate 1gbit --cohabit improved";
    let defaults = cohabit(line);
    assert!(defaults.ecn && defaults.aim == 0.9 && defaults.depth == Duration::from_millis(300));
    let set = cohabit(&format!("{line} --cohabit-set aim=0.8 --cohabit-set interval=28ms --cohabit-set ecn=false"));
    assert_eq!((set.aim, set.interval, set.ecn), (0.8, Duration::from_millis(28), false));
    let separate = router(&format!("{line} --shape --separate --cohabit-set interval=28ms"));
    assert!(separate[0].options.separate && separate[0].options.virtual_queue);
    let paper = cohabit("router --dev a --rate 1gbit --cohabit paper --cohabit-set update=packet");
    assert!(!paper.ecn && paper.threshold == 0.97 && format!("{:?}", paper.update) == "Packet");
}

#[test]
fn a_host_defaults_to_the_papers_values() {
    let host = host("host");
    assert_eq!((host.name.as_str(), host.law.name), ("bpf_maxnet", "maxnet"));
    assert_eq!((host.cgroup, host.parameters), ("/cgroups".into(), maxnet_defaults()));
    assert_eq!((host.options.fallback.0.as_str(), host.options.option_kind), ("cubic", OptionKind::Experiment));
    assert!(!host.options.unrestricted && host.options.peers.is_empty() && host.options.netns_cookies.is_empty());
}

/// Returns MaxNet's default parameters as bytes, in the order x_max, x_min, alpha, eta, T, dt_min, average, compensate,
/// order, dt_p, T_0, promise.
fn maxnet_defaults() -> Vec<u8> {
    let words = [660_u32, 60, 400, 1, 1, 1, 1, 0, 1000, 130_000, 0, 0].map(u32::to_ne_bytes).concat();
    [&1_000_000_000_000_000_u64.to_ne_bytes()[..], &32_u64.to_ne_bytes(), &words].concat()
}

#[test]
fn a_router_defaults_to_the_simulators_target() {
    let law = waterfill_laws::protocols::maxnet::Params::default();
    assert_eq!(router("router --dev eth1 --rate 1gbit")[0].target, Some(law.mu));
}

#[test]
fn every_host_option_has_an_effect() {
    let line = "host --cgroup /c --name bpf_other --fallback reno --netns-cookie 7 --netns-cookie 0x10 --option-kind 42 \
                --set alpha=0.5 --set eta=0.1 --set t=200ms --set x_max=10Gbit/s --set x_min=100bit/s --set dt_min=0s \
                --set average=false --set compensate=false --unrestricted --peers 10.0.0.0/8 --peers fd00::/8";
    let HostSetup { options, parameters, name, cgroup, .. } = host(line);
    assert!(options.unrestricted);
    assert_eq!(options.peers, ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
    assert_eq!(options.netns_cookies.iter().map(|cookie| cookie.0).collect::<Vec<_>>(), [7, 16]);
    assert_eq!((options.option_kind, name.as_str()), (OptionKind::Paper, "bpf_other"));
    let words: Vec<_> = [500_u32, 100, 200, 0, 0, 0, 1, 0].map(u32::to_ne_bytes).concat();
    assert_eq!(parameters[..8], 10_000_000_000_u64.to_ne_bytes());
    assert_eq!(parameters[8..16], 100_u64.to_ne_bytes());
    assert_eq!(parameters[16..48], words);
    assert_eq!(cgroup, PathBuf::from("/c"));
    assert_eq!(host("host --set alpha=0.5 --set order=rate-first").parameters[16..20], 500_u32.to_ne_bytes());
}

/// Options of the previous release have the effect of their parameters.
#[test]
fn former_options_are_parameters() {
    let before = "--alpha 0.5 --eta=0.1 --t 200ms --x-max 10Gbit/s --dt-min 0s --no-average --no-compensate";
    let now = "--set alpha=0.5 --set eta=0.1 --set t=200ms --set x_max=10Gbit/s --set dt_min=0s --set average=false \
               --set compensate=false";
    assert_eq!(host(&format!("host {before}")), host(&format!("host {now}")));
    let before = "--dt-p 2ms --t0 1s --t 200ms --x-max 1Tbit/s --promise";
    let now = "--set dt_p=2ms --set t_0=1s --set t=200ms --set x_max=1Tbit/s --set promise=true";
    let line = "router --dev a --rate 1gbit";
    assert_eq!(router(&format!("{line} {before}")), router(&format!("{line} {now}")));
    let mut whole = CommandLine::command();
    for command in ["host", "router"] {
        let help = whole.find_subcommand_mut(command).unwrap().render_long_help().to_string();
        for option in ["--alpha", "--no-average", "--dt-p", "--t0", "--x-max", "--promise"] {
            assert!(!help.contains(option), "{help}");
        }
    }
}

#[test]
fn an_error_is_one_line_with_the_option_the_problem_and_what_to_type() {
    for (line, what, why) in [
        ("router --dev a --rate fast", "'fast' for '--rate", "must be a rate such as"),
        ("router --dev a --rate 1gbit --shape --buffer -3", "-3", "must be a volume such as"),
        ("router --dev a --rate 31bit/s", "--rate", "from 32 bit/s to 1 Pbit/s"),
        ("router --dev a", "--rate", "required"),
        ("router --dev a --rate 1gbit --rate 2gbit", "--rate", "2 --rate for 1 --dev; give each --dev its own"),
        ("router --dev a --rate 1gbit --dev a --rate 1gbit", "--dev a", "given twice"),
        ("router --dev a --rate 1gbit --target 0", "--target", "must be a fraction such as 0.9,"),
        ("router --dev a --rate 1gbit --target NaN", "--target", "must be a fraction such as 0.9,"),
        ("router --dev a --rate 1gbit --overhead 2000", "--overhead", "whole bytes from 0 to 1000"),
        ("router --dev a --rate 1gbit --set dt_p=2s", "dt_p: ", "from 1 µs to 1 s"),
        ("router --dev a --rate 1gbit --set dt_p=1.5us", "dt_p: ", "steps of 1 us, got 1.5us"),
        ("router --dev a --rate 1gbit --set t_0=1ms", "t_0: ", "longer than dt_p, 1 ms, got 1 ms"),
        ("router --dev a --rate 1gbit --buffer 1MB", "--buffer", "needs --shape"),
        ("router --dev a --rate 1gbit --set x_max=1gbit", "x_max: ", "more than the link's 1 Gbit/s, got 1 Gbit/s"),
        ("router --dev a --rate 1kbit --set x_min=2kbit", "x_min: ", "at most the link's 1 kbit/s, got 2 kbit/s"),
        ("router --dev a --rate 1kbit --set t=2s", "t: ", "prices stay below 32 s"),
        (
            "host --base-rtt-window 0s",
            "'0s' for '--base-rtt-window",
            "from \"1 ms\" to \"1000000 s\", or \"unlimited\"",
        ),
        ("host --queue-margin 2s", "'2s' for '--queue-margin", "from \"10 us\" to \"1 s\""),
        ("router --dev a/b --rate 1gbit", "--dev", "name of a network device"),
        ("router --dev a --rate 1gbit --metrics 9465", "--metrics", "an address and a port"),
        ("router --dev a --rate 1gbit --once --no-pin", "--once", "--no-pin"),
        ("router --dev a --rate 1gbit --cohabit some", "--cohabit", "possible values: paper, improved"),
        ("router --dev a --rate 1gbit --cohabit-set aim=1", "--cohabit-set", "needs --cohabit"),
        (
            "router --dev a --rate 1gbit --cohabit paper --cohabit-set aim=1",
            "--cohabit-set aim=1",
            "unknown parameter; known: interval,",
        ),
        ("router --dev a --rate 1gbit --cohabit improved --cohabit-set aim=2", "aim=2", "from 0.001 to 1"),
        ("router --dev a --rate 1gbit --cohabit improved --cohabit-set depth=2us", "depth=2us", "from 1ms to 10s"),
        ("router --dev a --rate 1gbit --cohabit improved --cohabit-set ecn", "--cohabit-set ecn", "true or false"),
        ("router --dev a --rate 1gbit --cohabit improved --separate", "--separate", "needs --shape"),
        ("router --dev a --rate 1gbit --shape --separate", "--separate", "needs --cohabit"),
        ("router --dev a --rate 1gbit --shape --cohabit improved --separate --once", "--separate", "--once"),
        (
            "router --dev a --rate 1gbit --shape --cohabit improved --separate --cohabit-set aim=1",
            "--cohabit-set aim",
            "no effect with --separate",
        ),
        ("router --dev a --rate 1gbit --law xcp --scone", "--scone", "routers of xcp do not know"),
        (
            "router --dev a --rate 1gbit --shape --cohabit improved --separate --scone",
            "--scone",
            "not possible with --separate",
        ),
        ("host --set alpha=1.5708", "alpha: ", "in (0, π/2)"),
        ("host --set alpha=0", "alpha: ", "from 0.001"),
        ("host --set eta=0", "eta: ", "from 0.001"),
        ("host --option-kind 254", "--option-kind", "253"),
        ("host --law tcp", "--law", "unknown law, did you mean \"rcp\"?"),
        ("host --law other", "--law", "unknown law; known: maxnet"),
        ("host --set alpha", "--set", "a parameter and its value"),
        ("host --peers 10.0.0.1/8", "--peers", "must be a network such as"),
        ("host --netns-cookie 0", "--netns-cookie", "SO_NETNS_COOKIE"),
        ("host --name a_name_of_17_long", "--name", "1 to 15"),
        ("host --pins /x --no-pin", "--pins", "--no-pin"),
        ("unload --host --dev a", "--host", "--dev"),
        ("unload --config /f --pins /x", "--config", "--pins"),
        ("status --config /f --pins /x", "--config", "--pins"),
        ("reload --config /f --control /x", "--config", "--control"),
        ("statsu", "statsu", "unknown command, did you mean \"status\"?"),
    ] {
        let said = refused(line);
        assert!(said.contains(what) && said.contains(why) && !said.contains('\n'), "{line}: {said}");
    }
    assert!(refused("").contains("no command given") || refused("").contains("unknown command"));
}

#[test]
fn the_bounds_of_each_range_are_accepted() {
    for line in [
        "router --dev a --rate 32bit/s --set t=1ms --target 1e-6",
        "router --dev a --rate 999Tbit/s --set dt_p=1us --set t_0=2us",
        "host --set alpha=0.001 --set eta=65.535 --set t=100s --set dt_min=1s --set x_max=32bit/s",
        "host --set alpha=1.5704 --name a_name_of_15___",
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
