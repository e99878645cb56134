//! Tests of the router on devices in new network namespaces. Without root, they are skipped.

use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::daemon::kernel::device::NetworkChange;
use crate::daemon::kernel::laws;

/// Name of the variable that marks a test process in its own namespace.
const INSIDE: &str = "WATERFILL_TEST_INSIDE";

fn setup() -> LinkSetup {
    with("")
}

/// Returns a link setup with additional keys of its table.
fn with(more: &str) -> LinkSetup {
    LinkSetup::read(&format!("device = 'wf0'\nrate = '100 Mbit/s'\ntarget = 0.94\noverhead = 0\n{more}"))
}

/// Runs a script and returns its output.
fn shell(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs the named test again in a new network namespace with a device `wf0`. Returns true inside that namespace.
fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        shell("ip link add wf0 type veth peer name wf1; ip link set wf0 up; ip link set wf1 up");
        return true;
    }
    if fs::metadata("/proc/self").map_or(true, |me| me.uid() != 0) {
        eprintln!("skipped: needs root");
        return false;
    }
    let this = std::env::current_exe().unwrap();
    let name = format!("daemon::roles::router::tests::{test}");
    let output = Command::new("timeout")
        .args(["50", "unshare", "-mn"])
        .arg(this)
        .args(["--exact", &name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Unloads the router of `wf0` and checks that no program stays at the device.
fn unload_leaves_no_program(pins: &Pins, device: u32) {
    unload(pins).unwrap();
    let other = another_program();
    let other = other.progs_mut().find(|program| program.name() == "path_price").unwrap();
    let alone = hook::attach(&other, device).unwrap().unwrap();
    let chain = hook::chain(device, alone.info().unwrap().prog_id).unwrap().unwrap();
    assert_eq!(chain, Chain::default(), "no program is left");
}

fn state() -> String {
    shell(
        "tc qdisc show; tc filter show dev wf0 egress; tc filter show dev wf0 ingress; bpftool net show 2>/dev/null || true",
    )
}

#[test]
fn a_kernel_without_tcx_uses_a_filter() {
    if !inside("a_kernel_without_tcx_uses_a_filter") {
        return;
    }
    let before = state();
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach_by(&setup(), Hook::Filter).unwrap();
    assert!(state().contains("clsact") && !router.links.contains_key(&if_nametoindex("wf0").unwrap()));
    shell("ip address replace 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0");
    std::net::UdpSocket::bind("10.9.0.1:0").unwrap().send_to(&[0; 72], "10.9.0.2:9").unwrap();
    let [link] = &router.links().unwrap()[..] else { panic!("one link") };
    assert!(link.packets > 0 && link.bytes >= 100, "{link:?}");
    // Attaching again keeps the filter and changes the values.
    router.attach_by(&setup().at_rate(1_000_000), Hook::Filter).unwrap();
    assert_eq!(shell("tc filter show dev wf0 egress").matches("handle 0x5747").count(), 1);
    assert_eq!(router.links().unwrap()[0].rate_bps, 1_000_000);
    drop(router);
    assert_eq!(state(), before);
}

/// A link with another rate keeps its price, its counters and its program, with and without other programs next to it.
#[test]
fn a_rate_changes_in_place() {
    if !inside("a_rate_changes_in_place") {
        return;
    }
    for shape in [false, true] {
        let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
        let first = with(&format!("shape = {shape}"));
        router.attach(&first).unwrap();
        shell("ip address replace 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0");
        let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
        for _ in 0..200 {
            socket.send_to(&[0; 1000], "10.9.0.2:9").unwrap();
        }
        let packets = router.links().unwrap()[0].packets;
        assert!(packets >= 200);
        router.set_rate(&first.at_rate(8_000_000)).unwrap();
        let [link] = &router.links().unwrap()[..] else { panic!("one link") };
        assert_eq!((link.rate_bps, link.packets >= packets), (8_000_000, true));
        assert_eq!(router.followed["wf0"].0.rate_bps(), 8_000_000);
        assert_eq!(shell("tc qdisc show dev wf0").contains("rate 8Mbit"), shape);
    }
}

/// A restarted link loses its price and counters, but keeps its program and its shaper.
#[test]
fn a_restart_loses_the_price_and_nothing_else() {
    if !inside("a_restart_loses_the_price_and_nothing_else") {
        return;
    }
    for shape in [false, true] {
        let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
        router.attach(&with(&format!("shape = {shape}")).at_rate(100_000)).unwrap();
        let fresh = router.links().unwrap()[0].signals["price_s"];
        shell("ip address replace 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0");
        let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
        // The price rises at the end of each interval, which the next packet notices.
        for _ in 0..2 {
            for _ in 0..1000 {
                socket.send_to(&[0; 1000], "10.9.0.2:9").unwrap();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let [before] = &router.links().unwrap()[..] else { panic!("one link") };
        assert!(before.signals["price_s"] > fresh + 1.0 && before.packets >= 1000, "{fresh}: {before:?}");
        let shown = state();
        router.restart("wf0").unwrap();
        let [link] = &router.links().unwrap()[..] else { panic!("one link") };
        assert!(link.signals["price_s"] < fresh + 0.5 && link.packets < 100, "{link:?}");
        assert_eq!((link.rate_bps, state()), (100_000, shown));
        socket.send_to(&[0; 72], "10.9.0.2:9").unwrap();
        assert!(router.links().unwrap()[0].packets > link.packets);
        let why = router.restart("lo").unwrap_err().to_string();
        assert_eq!(why, "device lo: not attached by this router");
    }
}

#[test]
fn what_a_killed_router_left_is_found_without_pins() {
    if !inside("what_a_killed_router_left_is_found_without_pins") {
        return;
    }
    let shaped = with("shape = true");
    let kill = || {
        let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
        router.attach_by(&shaped, Hook::Filter).unwrap();
        std::mem::forget(router); // nothing is undone
    };
    let before = state();
    kill();
    assert!(state().contains("clsact") && state().contains("tbf"), "{}", state());
    assert_eq!(remove_leftovers(&["wf1".into()]).unwrap(), [""; 0]);
    let claim = crate::daemon::kernel::claim::device(laws::default(), "wf0").unwrap();
    assert_eq!(remove_leftovers(&[]).unwrap(), [""; 0], "a router that runs has claimed it");
    drop(claim);
    assert_eq!(remove_leftovers(&[]).unwrap(), ["wf0"]);
    assert_eq!(state(), before);
    // The next router takes it over, and knows that clsact is ours.
    kill();
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach_by(&shaped, Hook::Filter).unwrap();
    assert_eq!(shell("tc filter show dev wf0 egress").matches("handle 0x5747").count(), 1);
    drop(router);
    assert_eq!(state(), before);
    // Another's clsact stays, and filters of other programs.
    shell("tc qdisc add dev wf0 clsact; tc filter add dev wf0 egress prio 9 handle 0x5746 bpf da bytecode '1,6 0 0 0'");
    let before = state();
    assert_eq!(remove_leftovers(&[]).unwrap(), [""; 0]);
    kill();
    assert_eq!(remove_leftovers(&["wf0".into()]).unwrap(), ["wf0"]);
    assert_eq!(state(), before);
}

#[test]
fn an_existing_clsact_stays() {
    if !inside("an_existing_clsact_stays") {
        return;
    }
    shell("tc qdisc add dev wf0 clsact");
    let before = state();
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach_by(&setup(), Hook::Filter).unwrap();
    assert_ne!(state(), before);
    drop(router);
    assert_eq!(state(), before);
}

#[test]
fn our_clsact_stays_while_others_use_it() {
    if !inside("our_clsact_stays_while_others_use_it") {
        return;
    }
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach_by(&setup(), Hook::Filter).unwrap();
    shell("tc filter add dev wf0 ingress bpf bytecode '1,6 0 0 0'");
    drop(router);
    assert!(shell("tc filter show dev wf0 ingress").contains("bytecode"));
    assert_eq!(shell("tc filter show dev wf0 egress"), "");
}

/// Returns a test program that answers TC_ACT_OK, which ends the chain. The program's object has other programs in
/// front of this one.
fn another_program() -> Object {
    let mut open = libbpf_rs::ObjectBuilder::default().open_file(env!("PATH_OBJECT")).unwrap();
    for mut program in open.progs_mut() {
        program.set_prog_type(libbpf_rs::ProgramType::SchedCls);
        program.set_attach_type(libbpf_rs::ProgramAttachType::TcxEgress);
        program.set_autoload(program.name() == "path_price");
    }
    open.load().unwrap()
}

fn send_packet() {
    shell("ip address replace 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0");
    std::net::UdpSocket::bind("10.9.0.1:0").unwrap().send_to(&[0; 72], "10.9.0.2:9").unwrap();
}

#[test]
fn a_program_that_ends_the_chain_runs_after_the_router() {
    if !inside("a_program_that_ends_the_chain_runs_after_the_router") {
        return;
    }
    let other = another_program();
    let program = || other.progs_mut().find(|program| program.name() == "path_price").unwrap();
    let device = if_nametoindex("wf0").unwrap();
    let first = hook::attach(&program(), device).unwrap().unwrap();
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach(&setup()).unwrap();
    send_packet();
    let [link] = &router.links().unwrap()[..] else { panic!("one link") };
    assert!(link.packets > 0, "the other program ended the chain: {link:?}");
    assert_eq!((link.programs_before.len(), &link.programs_after[..]), (0, &["path_price".to_owned()][..]));
    // Another one that puts itself first is shown; attaching again takes the head back.
    drop(first);
    let _again = hook::attach(&program(), device).unwrap().unwrap();
    assert_eq!(router.links().unwrap()[0].programs_before, ["path_price"]);
    router.attach(&setup()).unwrap();
    let [link] = &router.links().unwrap()[..] else { panic!("one link") };
    assert_eq!((link.programs_before.len(), &link.programs_after[..]), (0, &["path_price".to_owned()][..]));
}

#[test]
fn cohabitation_runs_before_the_router_and_ends_with_it() {
    if !inside("cohabitation_runs_before_the_router_and_ends_with_it") {
        return;
    }
    shell("mount -t bpf bpf /sys/fs/bpf; mkdir -p /sys/fs/bpf/wf/router");
    let pins = Pins::open(Some("/sys/fs/bpf/wf".into())).unwrap();
    let device = if_nametoindex("wf0").unwrap();
    let cohabits = with("cohabit = 'improved'\ncohabit_params = { interval = '10ms' }");
    let programs = || hook::chain(device, router_program(&pins, device)).unwrap().unwrap();
    for _ in 0..2 {
        let mut router = Router::load(laws::default(), &pins).unwrap();
        router.attach(&cohabits).unwrap();
        router.attach(&cohabits).unwrap(); // also a second time, and by a second process
        assert_eq!(programs().before, [cohabit::PROGRAM]);
        send_packet();
        std::thread::sleep(Duration::from_millis(25));
        send_packet();
        let [link] = &router.links().unwrap()[..] else { panic!("one link") };
        assert!(link.programs_before.is_empty() && link.packets >= 2, "{link:?}");
        let status = link.cohabit.clone().expect("the module's state");
        assert_eq!((status.explicit_flows, status.tcp_flows, status.dropped), (0, 0, 0));
        // Without flows there are no shares; the test's packets, which are not TCP's, count as other load.
        assert!((93_900_000..94_000_000).contains(&status.explicit_share_bps), "{status}");
    }
    // Another process reads it from the pins.
    let [link] = &pinned_links(laws::default(), &pins).unwrap().unwrap()[..] else { panic!("one link") };
    assert!(link.cohabit.is_some());
    // Without the option, the module goes.
    let mut router = Router::load(laws::default(), &pins).unwrap();
    router.attach(&setup()).unwrap();
    assert!(programs().before.is_empty());
    assert_eq!(router.links().unwrap()[0].cohabit, None);
    router.attach(&cohabits).unwrap();
    drop(router);
    unload_leaves_no_program(&pins, device);
}

#[test]
fn the_scone_element_runs_behind_the_router_and_ends_with_it() {
    if !inside("the_scone_element_runs_behind_the_router_and_ends_with_it") {
        return;
    }
    shell("mount -t bpf bpf /sys/fs/bpf; mkdir -p /sys/fs/bpf/wf/router");
    let pins = Pins::open(Some("/sys/fs/bpf/wf".into())).unwrap();
    let device = if_nametoindex("wf0").unwrap();
    let advises = with("scone = true");
    let programs = || hook::chain(device, router_program(&pins, device)).unwrap().unwrap();
    for _ in 0..2 {
        let mut router = Router::load(laws::default(), &pins).unwrap();
        router.attach(&advises).unwrap();
        router.attach(&advises).unwrap(); // also a second time, and by a second process
        assert_eq!((programs().before.len(), &programs().after[..]), (0, &[scone::PROGRAM.to_owned()][..]));
        let [link] = &router.links().unwrap()[..] else { panic!("one link") };
        assert!(link.programs_after.is_empty(), "{link:?}");
        let status = link.scone.clone().expect("the element's state");
        // At its lowest price a link advises its own rate.
        assert_eq!((advises.rate_bps(), status.signal, status.advice_bps), (100_000_000, Some(60), Some(100_000_000)));
        assert_eq!((status.seen, status.lowered, status.malformed), (0, 0, 0));
    }
    // Another process reads it from the pins.
    let [link] = &pinned_links(laws::default(), &pins).unwrap().unwrap()[..] else { panic!("one link") };
    assert_eq!(link.scone.as_ref().and_then(|status| status.signal), Some(60));
    // Without the option, the element goes.
    let mut router = Router::load(laws::default(), &pins).unwrap();
    router.attach(&setup()).unwrap();
    assert!(programs().after.is_empty());
    assert_eq!(router.links().unwrap()[0].scone, None);
    router.attach(&advises).unwrap();
    drop(router);
    unload_leaves_no_program(&pins, device);
}

#[test]
fn two_queues_follow_the_flows_and_end_with_the_router() {
    if !inside("two_queues_follow_the_flows_and_end_with_the_router") {
        return;
    }
    shell("mount -t bpf bpf /sys/fs/bpf; mkdir -p /sys/fs/bpf/wf/router; sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
    let before = state();
    let pins = Pins::open(Some("/sys/fs/bpf/wf".into())).unwrap();
    let device = if_nametoindex("wf0").unwrap();
    let shaped = "shape = true\nbuffer = 50000";
    let separates =
        format!("{shaped}\nseparate = true\ncohabit = 'improved'\ncohabit_params = {{ interval = '10ms' }}");
    let separates = with(&separates);
    let mut router = Router::load(laws::default(), &pins).unwrap();
    router.attach(&separates).unwrap();
    router.attach(&separates).unwrap(); // also where the queues are there
    let rates = || shell("tc class show dev wf0 | sort | grep -o '5746:[12] .*rate [^ ]*'");
    assert_eq!(shell("tc qdisc show dev wf0").matches("bfifo").count(), 2);
    assert_eq!(rates().matches("rate 50Mbit").count(), 2, "{}", rates());
    // Packets without an option wait in the second queue, and the law does not see them.
    let seen = router.links().unwrap()[0].packets;
    send_packet();
    let second = shell("tc -s qdisc show dev wf0 | grep -A1 'bfifo 5748:'");
    assert!(!second.contains(" 0 pkt"), "{second}");
    assert_eq!(router.links().unwrap()[0].packets, seen);
    // Six explicit flows with two others, then with six.
    for (others, rest) in [(2, 25.0), (6, 50.0)] {
        for _ in 0..3 {
            for port in 0..6 {
                assert_eq!(classify(&router, device, true, port), (-1, 0x5746_0001));
            }
            for port in 0..others {
                assert_eq!(classify(&router, device, false, 6 + port), (0, 0x5746_0002));
            }
            std::thread::sleep(Duration::from_millis(25));
            send_packet();
            router.divide();
        }
        // The UDP packets that end the intervals are other load, which both shares leave to itself.
        let mbps = other_mbps(&rates());
        assert!((rest..rest + 1.0).contains(&mbps), "{mbps}: {}", rates());
    }
    // Without the option it is one queue again.
    router.attach(&with(shaped)).unwrap();
    assert!(shell("tc qdisc show dev wf0").contains("tbf 5746:"));
    router.attach(&separates).unwrap();
    assert!(shell("tc qdisc show dev wf0").contains("htb 5746:"));
    drop(router);
    unload(&pins).unwrap();
    assert_eq!(state(), before);
}

/// Runs the cohabitation program on a segment. Returns its verdict and the packet's priority.
fn classify(router: &Router, device: u32, explicit: bool, port: u8) -> (i32, u32) {
    let mut segment = frame(0, 3);
    if !explicit {
        segment.truncate(54);
        segment[46] = 5 << 4;
    }
    segment[35] = port;
    segment.resize(segment.len() + 100, 0);
    segment[17] = segment.len() as u8 - 14;
    let (mut before, mut after) = ([0_u8; 192], [0_u8; 192]);
    before[40..44].copy_from_slice(&device.to_ne_bytes()); // __sk_buff.ifindex
    let input = ProgramInput {
        context_in: Some(&mut before),
        context_out: Some(&mut after),
        data_in: Some(&segment),
        ..ProgramInput::default()
    };
    let verdict = router.cohabit.as_ref().unwrap().test_run(input).unwrap().return_value as i32;
    (verdict, u32::from_ne_bytes(after[32..36].try_into().unwrap())) // __sk_buff.priority
}

/// Returns the second class's rate in Mbit/s from tc's output.
fn other_mbps(classes: &str) -> f64 {
    let rate = classes.lines().find(|line| line.starts_with("5746:2")).unwrap().rsplit(' ').next().unwrap();
    let (number, unit) = rate.split_at(rate.find(|c: char| c.is_ascii_alphabetic()).unwrap());
    number.parse::<f64>().unwrap()
        * if unit == "Kbit" {
            1e-3
        } else if unit == "bit" {
            1e-6
        } else {
            1.0
        }
}

/// Returns the id of the router's program on a device.
fn router_program(pins: &Pins, device: u32) -> u32 {
    Link::open(paths::device(pins, device).unwrap()).unwrap().info().unwrap().prog_id
}

#[test]
fn a_filter_that_ends_the_chain_runs_after_the_router() {
    if !inside("a_filter_that_ends_the_chain_runs_after_the_router") {
        return;
    }
    shell("tc qdisc add dev wf0 clsact; tc filter add dev wf0 egress prio 2 bpf da bytecode '1,6 0 0 0'");
    let before = state();
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach_by(&setup(), Hook::Filter).unwrap();
    send_packet();
    let [link] = &router.list(true).unwrap()[..] else { panic!("one link") };
    assert!(link.packets > 0, "the other filter ended the chain: {link:?}");
    assert_eq!(
        (link.programs_before.len(), &link.programs_after[..]),
        (0, &["bpf filter of priority 2".to_owned()][..])
    );
    drop(router);
    assert_eq!(state(), before);
    // Where a filter of another kind has the first priority, ours comes later, and that is shown.
    shell("tc filter add dev wf0 egress prio 1 protocol ip u32 match u32 0 0");
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach_by(&setup(), Hook::Filter).unwrap();
    let [link] = &router.list(true).unwrap()[..] else { panic!("one link") };
    assert!(link.programs_before.contains(&"u32 filter of priority 1".to_owned()), "{link:?}");
}

#[test]
fn a_filter_and_a_shaper_that_others_remove_are_added_again() {
    if !inside("a_filter_and_a_shaper_that_others_remove_are_added_again") {
        return;
    }
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach_by(&with("shape = true"), Hook::Filter).unwrap();
    let wf0 = if_nametoindex("wf0").unwrap();
    let state = || (tc::egress_filters("wf0").unwrap().iter().any(hook::is_ours), shell("tc qdisc show dev wf0 root"));
    let good = state();
    assert!(good.0 && good.1.starts_with("qdisc tbf 5746:"), "{good:?}");
    shell("tc qdisc del dev wf0 clsact; tc qdisc del dev wf0 root");
    router.check_qdiscs(&NetworkChange { qdiscs: [wf0 + 1].into(), ..NetworkChange::default() });
    assert!(!state().0, "a message on another device");
    router.check_qdiscs(&NetworkChange { qdiscs: [wf0].into(), ..NetworkChange::default() });
    assert_eq!(state(), good);
    // The same by a reload, which has no message.
    shell("tc qdisc del dev wf0 clsact; tc qdisc del dev wf0 root");
    assert_eq!(router.restore("wf0").unwrap(), ["filter", "shaper"]);
    assert_eq!(state(), good);
    assert_eq!(router.restore("wf0").unwrap(), <[&str; 0]>::default());
}

#[test]
fn a_device_that_comes_back_keeps_its_price() {
    if !inside("a_device_that_comes_back_keeps_its_price") {
        return;
    }
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    let slow = setup().at_rate(100_000);
    router.attach(&slow).unwrap();
    send_packet();
    router.follow();
    let first = router.links().unwrap()[0].clone();
    assert!(first.packets > 0, "nothing changed: {first:?}");
    // 800 packets are 64 s of this link's time: the price rises by 3.2 s, to p_max.
    let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
    for _ in 0..800 {
        socket.send_to(&[0; 972], "10.9.0.2:9").unwrap();
    }
    std::thread::sleep(Duration::from_millis(10));
    let full = router.links().unwrap()[0].signals["price_s"];
    assert!(full > first.signals["price_s"] + 3.0, "{full}");
    // With another index, then with the same one, and after a time without the device.
    for (pause, index) in [(false, ""), (false, "index 77"), (false, "index 77"), (true, "index 77"), (true, "")] {
        shell("ip link del wf0");
        if pause {
            router.follow();
            assert!(router.links().unwrap().is_empty());
        }
        shell(&format!("ip link add wf0 {index} type veth peer name wf1; ip link set wf0 up; ip link set wf1 up"));
        router.follow();
        send_packet();
        let [link] = &router.links().unwrap()[..] else { panic!("one link") };
        assert_eq!((link.ifindex, link.rate_bps), (if_nametoindex("wf0").unwrap(), 100_000));
        assert!(link.packets > 0 && link.signals["price_s"] > full - 2.5, "{pause} {index}: {link:?}");
    }
    // A device that has another name now loses the router to the one that has its name.
    shell(
        "ip link set wf0 down; ip link set wf0 name old; ip link add wf0 type veth peer name wf2; ip link set wf0 up",
    );
    router.follow();
    let [link] = &router.links().unwrap()[..] else { panic!("one link") };
    assert_eq!((link.ifindex, link.device.as_str()), (if_nametoindex("wf0").unwrap(), "wf0"));
}

/// Pins a map of links with another version's layout. Each device has a shaper, and the first one also has a filter.
fn pin_another_layout(pins: &Pins, devices: &[&str]) {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let kind = libbpf_rs::MapType::Hash;
    let mut map = MapHandle::create(kind, Some("links"), 4, size_of::<Attachment>() as u32 + 8, 8, &options).unwrap();
    for device in devices {
        let filter = if *device == devices[0] { FILTER | CLSACT } else { 0 };
        let mut attachment = Attachment {
            price: 10 << 34,
            namespace: namespace().unwrap(),
            layout: 99,
            created: SHAPER | filter,
            ..Attachment::default()
        };
        write_name(&mut attachment.device, device);
        let value = [attachment.as_bytes(), &[0; 8]].concat();
        map.update(&if_nametoindex(*device).unwrap().to_ne_bytes(), &value, MapFlags::ANY).unwrap();
        shell(&format!("tc qdisc add dev {device} root handle 5746: tbf rate 1mbit burst 5kb limit 9kb"));
    }
    shell(&format!(
        "tc qdisc add dev {0} clsact
         tc filter add dev {0} egress handle 0x5746 prio 22342 bpf da bytecode '1,6 0 0 0'",
        devices[0]
    ));
    map.pin(paths::links(pins).unwrap()).unwrap();
}

#[test]
fn an_upgrade_takes_over_what_another_layout_created() {
    if !inside("an_upgrade_takes_over_what_another_layout_created") {
        return;
    }
    shell("ip link set wf1 up; mount -t bpf bpf /sys/fs/bpf");
    let before = state();
    let pins = Pins::open(Some("/sys/fs/bpf/wf".into())).unwrap();
    for shape in [false, true] {
        shell("mkdir -p /sys/fs/bpf/wf/router");
        pin_another_layout(&pins, &["wf0", "wf1"]);
        let mut router = Router::load(laws::default(), &pins).unwrap();
        router.attach(&with(&format!("shape = {shape}"))).unwrap();
        assert_eq!(shell("tc qdisc show dev wf0").contains("tbf 5746:"), shape, "the shaper of wf0");
        assert!(shell("tc qdisc show dev wf1").contains("tbf 5746:"), "a device that is not named stays as it is");
        let [link] = &router.links().unwrap()[..] else { panic!("one link") };
        assert!((link.signals["price_s"] - 10.0).abs() < 0.5, "{link:?}");
        assert_eq!(shell("tc filter show dev wf0 egress").matches("handle 0x5747").count(), 1);
        drop(router);
        // The next start, without an upgrade, forgets nothing either.
        drop(Router::load(laws::default(), &pins).unwrap());
        unload(&pins).unwrap();
        assert_eq!(state(), before);
    }
}

#[test]
fn ip_bytes_are_counted_with_and_without_ethernet() {
    if !inside("ip_bytes_are_counted_with_and_without_ethernet") {
        return;
    }
    shell(
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=1
         ip address add 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0
         ip tuntap add wft mode tun; ip address add 10.8.0.1/24 dev wft; ip link set wft up",
    );
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    router.attach(&setup()).unwrap();
    router.attach(&LinkSetup::read("device = 'wft'\nrate = '100 Mbit/s'\ntarget = 0.94\noverhead = 0")).unwrap();
    let bytes = |device: &str| router.links().unwrap().into_iter().find(|l| l.device == device).unwrap().bytes;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    for (device, to) in [("wf0", "10.9.0.2:9"), ("wft", "10.8.0.2:9")] {
        let before = bytes(device);
        socket.send_to(&[0; 72], to).unwrap();
        assert_eq!(bytes(device) - before, 100, "{device}: the packet with its IP and UDP headers only");
    }
}

#[test]
fn a_queue_is_read_where_it_is_one_number() {
    if !inside("a_queue_is_read_where_it_is_one_number") {
        return;
    }
    let mut router = Router::load(laws::default(), &Pins::none()).unwrap();
    shell(
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=1
         ip address add 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0",
    );
    let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
    // A rate of almost zero, so that sent packets wait: 972 IP bytes each.
    for (qdisc, real) in [
        ("tbf rate 8bit burst 1600 limit 100000", true),
        ("tbf rate 8bit burst 1600 limit 100000 stab", true),
        ("pfifo_fast", false),
    ] {
        let (qdisc, stab) =
            qdisc.strip_suffix("stab").map_or((qdisc, ""), |q| (q, "stab overhead -14 linklayer ethernet"));
        shell(&format!("tc qdisc replace dev wf0 root handle 9: {stab} {qdisc}"));
        router.attach(&setup()).unwrap();
        for _ in 0..12 {
            socket.send_to(&[0; 944], "10.9.0.2:9").unwrap();
            std::thread::sleep(Duration::from_millis(3));
        }
        let link = &router.links().unwrap()[0];
        assert_eq!(link.queue_bytes.is_some(), real, "{qdisc}: {link:?}");
        assert_eq!(link.virtual_queue_bytes.is_some(), !real);
        if let Some(bytes) = link.queue_bytes {
            // The first one or two pass; the last one arrived after the last reading.
            assert!(bytes % 972 == 0 && (9 * 972..=11 * 972).contains(&bytes), "{qdisc} {stab}: {bytes}");
        }
        router.attach(&with("virtual_queue = true")).unwrap();
        socket.send_to(&[0; 944], "10.9.0.2:9").unwrap();
        assert_eq!(router.links().unwrap()[0].queue_bytes, None);
        shell("tc qdisc del dev wf0 root");
    }
}

/// Returns an Ethernet frame of TCP over IPv4 with a law's option.
fn frame(number: u8, value_bytes: usize) -> Vec<u8> {
    let mut option = vec![253, 5 + value_bytes as u8, 0x57, 0x46, 4 * number + 1];
    option.extend((1..=value_bytes as u8).map(|i| 0x11 * (i % 8)));
    option.resize(option.len().div_ceil(4) * 4, 1);
    let length = (40 + option.len()) as u8;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, length, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    frame.extend([0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 1, ((20 + option.len()) as u8 / 4) << 4, 16, 1, 0, 0, 0, 0, 0]);
    frame.extend(option);
    frame
}

#[test]
fn several_laws_share_a_device_and_read_their_own_options() {
    if !inside("several_laws_share_a_device_and_read_their_own_options") {
        return;
    }
    let on_the_wire: Vec<_> =
        laws::all().map(|law| (law.name, law.kernel().number() as u8, law.kernel().forward_bytes())).collect();
    shell("ip address add 10.9.0.1/24 dev wf0; ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev wf0");
    let routers: Vec<_> = on_the_wire
        .iter()
        .map(|(name, ..)| {
            let law = laws::find(name).unwrap();
            let mut router = Router::load(law, &Pins::none()).unwrap();
            let table = format!("device = 'wf0'\nrate = '100 Mbit/s'\noverhead = 0\nlaw = '{name}'");
            router.attach(&LinkSetup { target: None, ..LinkSetup::read(&table) }).unwrap();
            router
        })
        .collect();
    std::net::UdpSocket::bind("10.9.0.1:0").unwrap().send_to(&[0; 72], "10.9.0.2:9").unwrap();
    let mut context = [0_u8; 192];
    context[40..44].copy_from_slice(&if_nametoindex("wf0").unwrap().to_ne_bytes()); // __sk_buff.ifindex
    for (router, (name, ..)) in routers.iter().zip(&on_the_wire) {
        for (of, number, value_bytes) in &on_the_wire {
            let before = router.links().unwrap().remove(0);
            assert!(before.packets > 0, "{name} counts no packets");
            let (frame, mut out) = (frame(*number, *value_bytes), vec![0; 256]);
            let input = ProgramInput {
                context_in: Some(&mut context),
                data_in: Some(&frame),
                data_out: Some(&mut out),
                ..ProgramInput::default()
            };
            object::program(&router.object, PROGRAM).unwrap().test_run(input).unwrap();
            let after = router.links().unwrap().remove(0);
            let untouched = after.left_untouched["no option"] - before.left_untouched["no option"];
            if name == of {
                assert_eq!((after.seen - before.seen, untouched), (1, 0), "{name}'s option");
            } else {
                assert_eq!((after.seen - before.seen, untouched), (0, 1), "{of}'s option at {name}'s router");
                assert_eq!(out[..frame.len()], frame, "{of}'s option at {name}'s router");
            }
        }
    }
}
