//! Tests of a token bucket on a link: packets that pass, wait and are dropped, and the view of router laws.

use crate::common::{assert_close, cbr, column, flow, link, network, refusal, run};
use waterfill_network::{CodelSpec, Network, QueueSpec, ShaperSpec};

/// Returns a network with one link, a line of 100 Mbit/s behind a bucket of 10 Mbit/s, and a constant load of full
/// packets.
fn shaped(load_bps: f64, depth_bytes: f64, timer_s: f64) -> Network {
    let mut n = network(30.0, link("l", 1e7, 0.01, 150_000).to_vec(), Vec::new());
    n.links[0].shaper = Some(ShaperSpec { line_bps: 1e8, depth_bytes, timer_s });
    n.traffic = vec![cbr("load", &[0], load_bps, [0.0, 30.0], 1500)];
    n.sample_s = 1e-3;
    n
}

/// An overload fills the buffer and passes at the bucket's rate, or at depth/timer if that is less.
#[test]
fn the_long_run_rate_is_the_buckets() {
    for (depth, timer_s, rate) in [(3e3, 0.0, 1e7), (3e4, 0.01, 1e7), (6e3, 0.01, 4.8e6), (4e3, 0.01, 2.4e6)] {
        let s = run(&shaped(2e7, depth, timer_s)).1;
        assert_close(s.traffic[0].rate_bps.unwrap(), rate, 0.002);
        assert_close(s.links[0].utilization, rate / 1e7, 0.002);
        // The buffer holds a hundred packets; the packet that waits for tokens is one of them.
        assert!((s.links[0].queue_packets.max - 100.0).abs() < 0.5, "{:?}", s.links[0].queue_packets);
        assert!(s.links[0].drops > 0);
    }
}

/// With tokens for 12.5 packets every 15 ms and no more in the bucket, 12 packets pass per interval, or 9.6 Mbit/s.
#[test]
fn tokens_in_portions_make_bursts() {
    let smooth = run(&shaped(8e6, 30e3, 0.0)).1;
    assert_eq!((smooth.links[0].queue_packets.max, smooth.links[0].drops), (0.0, 0));
    let spare = run(&shaped(8e6, 18.75e3, 0.015)).1;
    assert_close(spare.traffic[0].rate_bps.unwrap(), 8e6, 0.002);
    assert!(spare.links[0].queue_packets.max <= 1.0, "ten packets find tokens for twelve: {:?}", spare.links[0]);
    let (sim, full) = run(&shaped(9.8e6, 18.75e3, 0.015));
    assert_close(full.traffic[0].rate_bps.unwrap(), 9.6e6, 0.002);
    let bursts = column(sim.series()[1], "utilization").iter().filter(|&&u| u > 9.0).count();
    assert!(bursts > 1000, "bursts leave at the line's rate, ten times the bucket's: {bursts}");
}

/// A policer passes the bucket's rate and drops the rest at once: nothing waits.
#[test]
fn a_policer_drops_what_a_shaper_delays() {
    for (depth, timer_s, rate) in [(3e3, 0.0, 1e7), (3e4, 0.01, 1e7), (6e3, 0.01, 4.8e6)] {
        let mut n = shaped(2e7, depth, timer_s);
        n.links[0].policer = n.links[0].shaper.take();
        let s = run(&n).1;
        assert_close(s.traffic[0].rate_bps.unwrap(), rate, 0.002);
        assert_close(s.links[0].utilization, rate / 1e7, 0.002);
        assert_eq!(s.links[0].queue_packets.max, 0.0, "conforming packets find the line idle");
        assert!(s.links[0].drops > 0);
        let s = run(&Network { traffic: vec![cbr("load", &[0], 0.9 * rate, [0.0, 30.0], 1500)], ..n }).1;
        assert!(timer_s > 0.0 || s.links[0].drops == 0, "below the rate nothing is dropped: {}", s.links[0].drops);
    }
}

/// A policer works with any queue behind it, and a link has one bucket.
#[test]
fn a_policer_needs_no_queue_in_order() {
    let mut n = shaped(2e7, 3e4, 0.0);
    n.links[0].policer = n.links[0].shaper;
    assert_eq!(refusal(n.clone()), "link.l.policer: not allowed on a link with a shaper");
    n.links[0].shaper = None;
    n.links[0].queue = QueueSpec::Codel(CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true });
    assert_close(run(&n).1.traffic[0].rate_bps.unwrap(), 1e7, 0.002);
    n.links[0].rate_bps = 1e8;
    assert_eq!(refusal(n), "link.l.policer.rate: must be below the line's 100000000 bit/s");
}

/// A router law sees the bucket's rate as the link's capacity, in both arithmetics of maxnet2006.
#[test]
fn router_laws_see_the_buckets_rate() {
    for arithmetic in ["real", "kernel"] {
        let mut n = network(10.0, link("l", 5e8, 0.014, 1_750_000).to_vec(), vec![flow("f", "maxnet2006", &[0], 10.0)]);
        n.links[0].shaper = Some(ShaperSpec { line_bps: 1e9, depth_bytes: 6e4, timer_s: 0.0 });
        n.set_param("maxnet2006", "arithmetic", arithmetic);
        let s = run(&n).1;
        assert_close(s.flows[0].rate_bps.unwrap(), 0.94 * 5e8, 0.005);
        assert_eq!(s.links[0].drops, 0);
    }
}

#[test]
fn what_a_bucket_cannot_be_is_refused() {
    let with = |change: fn(&mut Network)| {
        let mut n = shaped(1e6, 3e3, 1e-3);
        change(&mut n);
        refusal(n)
    };
    let shaper = |n: &mut Network, change: fn(&mut ShaperSpec)| change(n.links[0].shaper.as_mut().unwrap());
    let cases = [
        (with(|n| n.links[0].rate_bps = 1e8), "link.l.shaper.rate: must be below the line's 100000000 bit/s"),
        (with(|n| n.packet_bytes = 3001), "link.l.shaper.depth: must be at least one packet of 3001 B"),
        (with(|n| n.traffic[0].packet_bytes = 4000), "link.l.shaper.depth: must be at least one packet of 4000 B"),
    ];
    for (found, line) in cases {
        assert_eq!(found, line);
    }
    let mut late = shaped(1e6, 3e3, 1e-3);
    shaper(&mut late, |s| s.timer_s = 1.5);
    assert_eq!(refusal(late), "link.l.shaper.timer: must be 0 to 1 s, got 1.5");
    let mut endless = shaped(1e6, 3e3, 1e-3);
    shaper(&mut endless, |s| s.depth_bytes = f64::INFINITY);
    assert!(refusal(endless).starts_with("link.l.shaper.depth: must be above zero"));
    let mut chosen = shaped(1e6, 3e3, 1e-3);
    chosen.links[0].queue = QueueSpec::Codel(CodelSpec { target_s: 0.005, interval_s: 0.1, ecn: true });
    assert_eq!(refusal(chosen), "link.l.shaper: needs a queue that serves in order of arrival (droptail, red)");
}
