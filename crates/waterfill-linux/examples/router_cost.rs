//! Measures the router program's time per packet, in nanoseconds (repeated BPF_PROG_TEST_RUN).
//!
//! As root, on an idle host: `cargo run --release --features daemon --package waterfill-linux --example router_cost`.
//! Prints one JSON line per kind of packet. `floor_ns` is the same run on a device without a link: the kernel's loop and one
//! lookup. Repetitions use the same packet, in the caches. A raised value stays raised within a run, so "marked" is the mean
//! of runs of one packet each, start of the run included, and "raised before" is from one long run.

#![cfg_attr(not(feature = "daemon"), allow(unused_crate_dependencies, reason = "the example is empty without"))]

#[cfg(feature = "daemon")]
#[path = "../tests/router/packet.rs"]
#[allow(dead_code, reason = "the test uses the rest")]
mod packet;
#[cfg(feature = "daemon")]
#[path = "../tests/common/requirements.rs"]
mod requirements;
#[cfg(feature = "daemon")]
#[path = "../tests/router/support.rs"]
mod support;

fn main() {
    #[cfg(feature = "daemon")]
    daemon::main();
    #[cfg(not(feature = "daemon"))]
    eprintln!("needs --features daemon");
}

#[cfg(feature = "daemon")]
mod daemon {
    use super::packet::{ethernet, forward, ipv4, ipv6, tcp, timestamps};
    use super::requirements::can_load_programs;
    use super::support::{LOOPBACK, Request, Router, idle_link};

    const REPEAT: u32 = 1_000_000;
    const RUNS: usize = 7;

    pub(super) fn main() {
        if let Err(why) = can_load_programs() {
            eprintln!("router_cost: {why}");
            std::process::exit(2);
        }
        let none = Router::load();
        let router = Router::load();
        // As on real links, the price changes every millisecond.
        router.set(Request { dt_p: 1000, t_0: 130_000, ..idle_link(LOOPBACK) });
        let raised_before = (1 << 23) - 1;
        let segment = |options: Vec<u8>| tcp(16, &options, &[0; 1400]);
        let v4 = |inside: Vec<u8>| ethernet(&[], 0x0800, &ipv4(&[], 0, 6, &inside));
        let udp = ethernet(&[], 0x0800, &ipv4(&[], 0, 17, &segment(Vec::new())));
        let tagged =
            ethernet(&[0x88a8, 0x8100], 0x86dd, &ipv6(&[(60, vec![0; 8])], 6, &segment(forward(raised_before))));
        let maxnet = |value| v4(segment([timestamps(), forward(value)].concat()));
        for (name, frame) in [
            ("UDP", udp),
            ("TCP without options", v4(segment(Vec::new()))),
            ("TCP with timestamps", v4(segment(timestamps()))),
            ("raised before", maxnet(raised_before)),
            ("raised before, IPv6 after two VLAN tags and an extension header", tagged),
        ] {
            let floor = best(&none, &frame);
            println!(r#"{{"packet": "{name}", "floor_ns": {floor}, "ns": {}}}"#, best(&router, &frame));
        }
        // Repetitions reuse the changed packet, so marking is measured one run at a time.
        let frame = maxnet(0);
        let mean = |router: &Router| {
            let total: u128 = (0..20_000).map(|_| router.send(&frame, None, 1).unwrap().1.as_nanos()).sum();
            total / 20_000
        };
        println!(r#"{{"packet": "marked", "floor_ns": {}, "ns": {}}}"#, mean(&none), mean(&router));
    }

    /// Returns the fastest of several runs, which other load on the host disturbed least.
    fn best(router: &Router, frame: &[u8]) -> u128 {
        (0..RUNS).map(|_| router.send(frame, None, REPEAT).unwrap().1.as_nanos()).min().unwrap_or(0)
    }
}
